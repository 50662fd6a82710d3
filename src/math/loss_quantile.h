/* Quantile loss: tau r if r >= 0, (tau - 1) r otherwise. */
#ifndef HFSAD_MATH_LOSS_QUANTILE_H
#define HFSAD_MATH_LOSS_QUANTILE_H

#include "math/loss_kind.h"

VEC_FN vec quantile_value(const hfsad_loss *loss, vec y, vec s)
{
    const vec r = vec_sub(y, s);
    return vec_max(vec_mul(vec_set(loss->tau), r), vec_mul(vec_set(loss->tau - 1), r));
}

VEC_FN vec quantile_shift(const hfsad_loss *loss, vec y, vec s0, vec kappa)
{
    return vec_clip(vec_sub(y, s0), vec_mul(kappa, vec_set(loss->tau - 1)), vec_mul(kappa, vec_set(loss->tau)));
}

LOSS_FN double quantile_row_slope(const hfsad_loss *loss, double y, double s0, double kappa, double now)
{
    (void)now;
    const double inv_kappa = 1 / kappa; /* a separate division, because kappa is known before s0 */
    return -loss_clip((y - s0) * inv_kappa, loss->tau - 1, loss->tau);
}

LOSS_FN double quantile_slope(const hfsad_loss *loss, double y, double s)
{
    const double r = y - s;
    return r > 0 ? -loss->tau : r < 0 ? 1 - loss->tau : 0;
}

/* (tau - 1/2) r + |r|/2 */
LOSS_FN double quantile_smoothed(const hfsad_loss *loss, double y, double s, double mu, double *slope)
{
    const double r = y - s;
    double side;
    const double value = (loss->tau - 0.5) * r + smooth_abs(r, mu, &side) / 2;
    *slope = -(loss->tau - 0.5) - side / 2;
    return value;
}

LOSS_FN double quantile_conjugate(const hfsad_loss *loss, double y, double a)
{
    (void)loss;
    return a * y;
}

LOSS_FN void quantile_slopes(const hfsad_loss *loss, double y, double *low, double *high)
{
    (void)y;
    *low = -loss->tau;
    *high = 1 - loss->tau;
}

LOSS_FN double quantile_gap(const hfsad_loss *loss, double y, double s, double a)
{
    const double r = y - s;
    return r >= 0 ? (loss->tau + a) * r : (1 - loss->tau - a) * -r;
}

LOSS_FN double quantile_steepest(const hfsad_loss *loss, double y)
{
    (void)y;
    return fmax(loss->tau, 1 - loss->tau);
}

LOSS_FN double quantile_likely_bend(const hfsad_loss *loss, double spread)
{
    return fmax(loss->tau, 1 - loss->tau) / spread;
}

LOSS_FN double quantile_noise(const hfsad_loss *loss, double spread)
{
    (void)spread;
    return sqrt(loss->tau * (1 - loss->tau));
}

LOSS_ROW quantile_kind = {
    .parameters = LOSS_HAS_tau,
    .levels = true,
    .fit = LOSS_FIT_LAPLACE,
    .start = LOSS_START_MEAN,
    .slope = quantile_slope,
    .smoothed = quantile_smoothed,
    .conjugate = quantile_conjugate,
    .slopes = quantile_slopes,
    .gap = quantile_gap,
    .steepest = quantile_steepest,
    .likely_bend = quantile_likely_bend,
    .noise = quantile_noise,
    .ease = 0.5,
    .polish_slope = loss_one,
    .polish_bend = loss_one,
};

#endif
