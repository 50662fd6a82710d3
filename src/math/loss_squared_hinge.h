/* Squared hinge loss: max(0, 1 - y s)^2, y = -1 or 1. t = 1 - y s below. */
#ifndef HFSAD_MATH_LOSS_SQUARED_HINGE_H
#define HFSAD_MATH_LOSS_SQUARED_HINGE_H

#include "math/loss_kind.h"

VEC_FN vec squared_hinge_value(const hfsad_loss *loss, vec y, vec s)
{
    (void)loss;
    const vec t = vec_max(vec_sub(vec_set(1), vec_mul(y, s)), vec_zero());
    return vec_mul(t, t);
}

/* The minimiser's t has the sign of t at s0. */
VEC_FN vec squared_hinge_shift(const hfsad_loss *loss, vec y, vec s0, vec kappa)
{
    (void)loss;
    const vec t = vec_max(vec_sub(vec_set(1), vec_mul(y, s0)), vec_zero()), bent = vec_mul(vec_set(2), kappa);
    return vec_mul(vec_mul(y, t), vec_div(bent, vec_add(vec_set(1), bent)));
}

LOSS_FN double squared_hinge_row_slope(const hfsad_loss *loss, double y, double s0, double kappa, double now)
{
    (void)loss, (void)now;
    return -y * (2 * fmax(1 - y * s0, 0) / (1 + 2 * kappa));
}

LOSS_FN double squared_hinge_slope(const hfsad_loss *loss, double y, double s)
{
    (void)loss;
    return -2 * y * fmax(1 - y * s, 0);
}

LOSS_FN double squared_hinge_bend(const hfsad_loss *loss, double y, double s)
{
    (void)loss;
    return y * s <= 1 ? 2 : 0;
}

/* With b = -y a >= 0: b^2 / 4 - b. */
LOSS_FN double squared_hinge_conjugate(const hfsad_loss *loss, double y, double a)
{
    (void)loss;
    return a * a / 4 + y * a;
}

LOSS_FN void squared_hinge_slopes(const hfsad_loss *loss, double y, double *low, double *high)
{
    (void)loss;
    *low = y > 0 ? -INFINITY : 0;
    *high = y > 0 ? 0 : INFINITY;
}

LOSS_FN double squared_hinge_gap(const hfsad_loss *loss, double y, double s, double a)
{
    (void)loss;
    const double t = 1 - y * s, b = -y * a, off = t - b / 2;
    return t >= 0 ? off * off : b * b / 4 - b * t;
}

LOSS_FN double squared_hinge_steepest(const hfsad_loss *loss, double y)
{
    (void)loss, (void)y;
    return 2;
}

LOSS_FN double squared_hinge_growth(const hfsad_loss *loss, double span, double n)
{
    (void)loss;
    return 2 * span * n;
}

LOSS_FN double squared_hinge_likely_bend(const hfsad_loss *loss, double spread)
{
    (void)loss, (void)spread;
    return 2;
}

LOSS_FN double squared_hinge_noise(const hfsad_loss *loss, double spread)
{
    (void)loss, (void)spread;
    return 1;
}

/* The second derivative bounds the slope: |slope|^2 <= 2 bend phi. */
LOSS_FN double squared_hinge_polish_slope(const hfsad_loss *loss, double y)
{
    (void)loss, (void)y;
    return 0;
}

LOSS_ROW squared_hinge_kind = {
    .labels = true,
    .fit = LOSS_FIT_FIXED,
    .start = LOSS_START_ZERO,
    .fits = loss_is_label,
    .takes = "the labels -1 and 1",
    .slope = squared_hinge_slope,
    .bend = squared_hinge_bend,
    .conjugate = squared_hinge_conjugate,
    .slopes = squared_hinge_slopes,
    .gap = squared_hinge_gap,
    .steepest = squared_hinge_steepest,
    .growth = squared_hinge_growth,
    .likely_bend = squared_hinge_likely_bend,
    .noise = squared_hinge_noise,
    .ease = 0.1,
    .polish_slope = squared_hinge_polish_slope,
    .polish_bend = squared_hinge_likely_bend,
};

#endif
