/* Absolute loss: |r|. */
#ifndef HFSAD_MATH_LOSS_ABSOLUTE_H
#define HFSAD_MATH_LOSS_ABSOLUTE_H

#include "math/loss_kind.h"

VEC_FN vec absolute_value(const hfsad_loss *loss, vec y, vec s)
{
    (void)loss;
    return vec_abs(vec_sub(y, s));
}

VEC_FN vec absolute_shift(const hfsad_loss *loss, vec y, vec s0, vec kappa)
{
    (void)loss;
    return vec_clip(vec_sub(y, s0), vec_sub(vec_zero(), kappa), kappa);
}

LOSS_FN double absolute_row_slope(const hfsad_loss *loss, double y, double s0, double kappa, double now)
{
    (void)loss, (void)now;
    const double inv_kappa = 1 / kappa;
    return -loss_clip((y - s0) * inv_kappa, -1, 1);
}

LOSS_FN double absolute_slope(const hfsad_loss *loss, double y, double s)
{
    (void)loss;
    const double r = y - s;
    return r > 0 ? -1 : r < 0 ? 1 : 0;
}

LOSS_FN double absolute_smoothed(const hfsad_loss *loss, double y, double s, double mu, double *slope)
{
    (void)loss;
    double side;
    const double value = smooth_abs(y - s, mu, &side);
    *slope = -side;
    return value;
}

LOSS_FN double absolute_conjugate(const hfsad_loss *loss, double y, double a)
{
    (void)loss;
    return a * y;
}

LOSS_FN void absolute_slopes(const hfsad_loss *loss, double y, double *low, double *high)
{
    (void)loss, (void)y;
    *low = -1;
    *high = 1;
}

LOSS_FN double absolute_gap(const hfsad_loss *loss, double y, double s, double a)
{
    (void)loss;
    const double r = y - s;
    return r >= 0 ? (1 + a) * r : (1 - a) * -r;
}

LOSS_FN double absolute_likely_bend(const hfsad_loss *loss, double spread)
{
    (void)loss;
    return 1 / spread;
}

LOSS_FN double absolute_noise(const hfsad_loss *loss, double spread)
{
    (void)loss, (void)spread;
    return 1;
}

LOSS_ROW absolute_kind = {
    .fit = LOSS_FIT_LAPLACE,
    .start = LOSS_START_MEAN,
    .slope = absolute_slope,
    .smoothed = absolute_smoothed,
    .conjugate = absolute_conjugate,
    .slopes = absolute_slopes,
    .gap = absolute_gap,
    .steepest = loss_one,
    .likely_bend = absolute_likely_bend,
    .noise = absolute_noise,
    .ease = 0.5,
    .polish_slope = loss_one,
    .polish_bend = loss_one,
};

#endif
