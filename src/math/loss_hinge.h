/* Hinge loss: max(0, 1 - y s), y = -1 or 1. */
#ifndef HFSAD_MATH_LOSS_HINGE_H
#define HFSAD_MATH_LOSS_HINGE_H

#include "math/loss_kind.h"

VEC_FN vec hinge_value(const hfsad_loss *loss, vec y, vec s)
{
    (void)loss;
    return vec_max(vec_sub(vec_set(1), vec_mul(y, s)), vec_zero());
}

VEC_FN vec hinge_shift(const hfsad_loss *loss, vec y, vec s0, vec kappa)
{
    (void)loss;
    return vec_mul(y, vec_clip(vec_sub(vec_set(1), vec_mul(y, s0)), vec_zero(), kappa));
}

LOSS_FN double hinge_row_slope(const hfsad_loss *loss, double y, double s0, double kappa, double now)
{
    (void)loss, (void)now;
    const double inv_kappa = 1 / kappa;
    return -y * loss_clip((1 - y * s0) * inv_kappa, 0, 1);
}

LOSS_FN double hinge_slope(const hfsad_loss *loss, double y, double s)
{
    (void)loss;
    return y * s < 1 ? -y : 0;
}

/* (t + |t|)/2, t = 1 - y s */
LOSS_FN double hinge_smoothed(const hfsad_loss *loss, double y, double s, double mu, double *slope)
{
    (void)loss;
    double side;
    const double value = smooth_abs(1 - y * s, mu, &side);
    *slope = -y * (1 + side) / 2;
    return (1 - y * s + value) / 2;
}

/* With b = -y a, from 0 to 1: -b. */
LOSS_FN double hinge_conjugate(const hfsad_loss *loss, double y, double a)
{
    (void)loss;
    return y * a;
}

LOSS_FN void hinge_slopes(const hfsad_loss *loss, double y, double *low, double *high)
{
    (void)loss;
    *low = y > 0 ? -1 : 0;
    *high = y > 0 ? 0 : 1;
}

LOSS_FN double hinge_gap(const hfsad_loss *loss, double y, double s, double a)
{
    (void)loss;
    const double t = 1 - y * s, b = -y * a;
    return t >= 0 ? (1 - b) * t : b * -t;
}

LOSS_FN double hinge_likely_bend(const hfsad_loss *loss, double spread)
{
    (void)loss, (void)spread;
    return 1;
}

LOSS_FN double hinge_noise(const hfsad_loss *loss, double spread)
{
    (void)loss, (void)spread;
    return 0.5;
}

LOSS_ROW hinge_kind = {
    .labels = true,
    .fit = LOSS_FIT_FIXED,
    .start = LOSS_START_ZERO,
    .fits = loss_is_label,
    .takes = "the labels -1 and 1",
    .slope = hinge_slope,
    .smoothed = hinge_smoothed,
    .conjugate = hinge_conjugate,
    .slopes = hinge_slopes,
    .gap = hinge_gap,
    .steepest = loss_one,
    .likely_bend = hinge_likely_bend,
    .noise = hinge_noise,
    .ease = 0.05,
    .polish_slope = loss_one,
    .polish_bend = loss_one,
};

#endif
