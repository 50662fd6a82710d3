/*
 * Smoothed quantile loss: the quantile loss averaged over residuals r + v, v uniform on (-h, h), which conquer
 * (He, Pan, Tan, Zhou 2023) minimises:
 *
 *     phi = (tau - 1/2) r + |r|_h / 2,     |r|_h = |r| if |r| >= h, r^2 / (2 h) + h / 2 otherwise
 *
 * Its least value over s is h tau (1 - tau).
 */
#ifndef HFSAD_MATH_LOSS_SMOOTHED_QUANTILE_H
#define HFSAD_MATH_LOSS_SMOOTHED_QUANTILE_H

#include "math/loss_kind.h"

/* |r|_h = a + max(h - a, 0)^2 / (2 h), a = |r| */
VEC_FN vec smoothed_quantile_value(const hfsad_loss *loss, vec y, vec s)
{
    const vec r = vec_sub(y, s), a = vec_abs(r), half = vec_set(0.5);
    const vec below = vec_max(vec_sub(vec_set(loss->h), a), vec_zero());
    const vec rounded = vec_add(a, vec_mul(vec_mul(below, below), vec_set(0.5 / loss->h)));
    return vec_add(vec_mul(vec_set(loss->tau - 0.5), r), vec_mul(half, rounded));
}

/* The minimiser's r if it lies within h: its shift is then within the bounds of the quantile loss. Any other shift is
 * clipped to these bounds. */
VEC_FN vec smoothed_quantile_shift(const hfsad_loss *loss, vec y, vec s0, vec kappa)
{
    const vec tilt = vec_mul(kappa, vec_set(loss->tau - 0.5)), steep = vec_mul(kappa, vec_set(0.5 / loss->h));
    const vec r = vec_div(vec_sub(vec_sub(y, s0), tilt), vec_add(vec_set(1), steep));
    return vec_clip(vec_add(tilt, vec_mul(steep, r)), vec_mul(kappa, vec_set(loss->tau - 1)),
                    vec_mul(kappa, vec_set(loss->tau)));
}

LOSS_FN double smoothed_quantile_row_slope(const hfsad_loss *loss, double y, double s0, double kappa, double now)
{
    (void)now;
    const double tilt = loss->tau - 0.5, steep = 0.5 / loss->h, r = (y - s0 - kappa * tilt) / (1 + kappa * steep);
    return -loss_clip(tilt + steep * r, loss->tau - 1, loss->tau);
}

LOSS_FN double smoothed_quantile_slope(const hfsad_loss *loss, double y, double s)
{
    return -loss_clip(loss->tau - 0.5 + 0.5 * (y - s) / loss->h, loss->tau - 1, loss->tau);
}

LOSS_FN double smoothed_quantile_bend(const hfsad_loss *loss, double y, double s)
{
    return fabs(y - s) <= loss->h ? 0.5 / loss->h : 0;
}

/* With b = 1 - 2 tau - 2 a, from -1 to 1, which is r/h at the slope a: a y + h (b^2 - 1) / 4. */
LOSS_FN double smoothed_quantile_side(const hfsad_loss *loss, double a)
{
    return loss_clip(1 - 2 * loss->tau - 2 * a, -1, 1);
}

LOSS_FN double smoothed_quantile_conjugate(const hfsad_loss *loss, double y, double a)
{
    const double b = smoothed_quantile_side(loss, a);
    return a * y + loss->h * (b - 1) * (b + 1) / 4;
}

LOSS_FN void smoothed_quantile_slopes(const hfsad_loss *loss, double y, double *low, double *high)
{
    (void)y;
    *low = -loss->tau;
    *high = 1 - loss->tau;
}

LOSS_FN double smoothed_quantile_gap(const hfsad_loss *loss, double y, double s, double a)
{
    const double h = loss->h, b = smoothed_quantile_side(loss, a), r = y - s, off = 1 - (r > 0 ? b : -b);
    if (fabs(r) <= h)
        return (r - h * b) * (r - h * b) / (4 * h);
    return off * (2 * (fabs(r) - h) + h * off) / 4;
}

LOSS_FN double smoothed_quantile_steepest(const hfsad_loss *loss, double y)
{
    (void)y;
    return fmax(loss->tau, 1 - loss->tau);
}

LOSS_FN double smoothed_quantile_likely_bend(const hfsad_loss *loss, double spread)
{
    return fmin(0.5 / loss->h, fmax(loss->tau, 1 - loss->tau) / spread);
}

LOSS_FN double smoothed_quantile_noise(const hfsad_loss *loss, double spread)
{
    (void)spread;
    return sqrt(loss->tau * (1 - loss->tau));
}

LOSS_FN double smoothed_quantile_polish_bend(const hfsad_loss *loss, double y)
{
    (void)y;
    return 0.5 / loss->h;
}

LOSS_ROW smoothed_quantile_kind = {
    .parameters = LOSS_HAS_tau | LOSS_HAS_h,
    .levels = true,
    .fit = LOSS_FIT_LAPLACE,
    .start = LOSS_START_MEAN,
    .slope = smoothed_quantile_slope,
    .bend = smoothed_quantile_bend,
    .conjugate = smoothed_quantile_conjugate,
    .slopes = smoothed_quantile_slopes,
    .gap = smoothed_quantile_gap,
    .steepest = smoothed_quantile_steepest,
    .likely_bend = smoothed_quantile_likely_bend,
    .noise = smoothed_quantile_noise,
    .ease = 0.5,
    .polish_slope = loss_one,
    .polish_bend = smoothed_quantile_polish_bend,
};

#endif
