/* Squared loss: r^2 / 2. */
#ifndef HFSAD_MATH_LOSS_SQUARED_H
#define HFSAD_MATH_LOSS_SQUARED_H

#include "math/loss_kind.h"

VEC_FN vec squared_value(const hfsad_loss *loss, vec y, vec s)
{
    (void)loss;
    const vec r = vec_sub(y, s);
    return vec_mul(vec_set(0.5), vec_mul(r, r));
}

VEC_FN vec squared_shift(const hfsad_loss *loss, vec y, vec s0, vec kappa)
{
    (void)loss;
    return vec_mul(vec_sub(y, s0), vec_div(kappa, vec_add(vec_set(1), kappa)));
}

LOSS_FN double squared_row_slope(const hfsad_loss *loss, double y, double s0, double kappa, double now)
{
    (void)loss, (void)now;
    return -(y - s0) / (1 + kappa);
}

LOSS_FN double squared_slope(const hfsad_loss *loss, double y, double s)
{
    (void)loss;
    return -(y - s);
}

LOSS_FN double squared_bend(const hfsad_loss *loss, double y, double s)
{
    (void)loss, (void)y, (void)s;
    return 1;
}

LOSS_FN double squared_conjugate(const hfsad_loss *loss, double y, double a)
{
    (void)loss;
    return a * y + a * a / 2;
}

LOSS_FN void squared_slopes(const hfsad_loss *loss, double y, double *low, double *high)
{
    (void)loss, (void)y;
    *low = -INFINITY;
    *high = INFINITY;
}

LOSS_FN double squared_gap(const hfsad_loss *loss, double y, double s, double a)
{
    (void)loss;
    const double off = y - s + a;
    return off * off / 2;
}

LOSS_FN double squared_steepest(const hfsad_loss *loss, double y)
{
    (void)loss;
    return fabs(y);
}

LOSS_FN double squared_growth(const hfsad_loss *loss, double span, double n)
{
    (void)loss;
    return span * n;
}

LOSS_FN double squared_likely_bend(const hfsad_loss *loss, double spread)
{
    (void)loss, (void)spread;
    return 1;
}

LOSS_FN double squared_noise(const hfsad_loss *loss, double spread)
{
    (void)loss;
    return spread;
}

/* The second derivative bounds the slope: |slope|^2 = 2 phi. */
LOSS_FN double squared_polish_slope(const hfsad_loss *loss, double y)
{
    (void)loss, (void)y;
    return 0;
}

LOSS_ROW squared_kind = {
    .squared = true,
    .fit = LOSS_FIT_NORMAL,
    .start = LOSS_START_MEAN,
    .slope = squared_slope,
    .bend = squared_bend,
    .conjugate = squared_conjugate,
    .slopes = squared_slopes,
    .gap = squared_gap,
    .steepest = squared_steepest,
    .growth = squared_growth,
    .likely_bend = squared_likely_bend,
    .noise = squared_noise,
    .ease = 0.25,
    .polish_slope = squared_polish_slope,
    .polish_bend = loss_one,
};

#endif
