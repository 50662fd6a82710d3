/* Expectile loss: tau r^2 if r >= 0, (1 - tau) r^2 otherwise. tau = 0.5 is the squared loss. */
#ifndef HFSAD_MATH_LOSS_EXPECTILE_H
#define HFSAD_MATH_LOSS_EXPECTILE_H

#include "math/loss_kind.h"

/* The second derivative on the side of r: phi = weight r^2 / 2. */
VEC_FN vec expectile_weights(const hfsad_loss *loss, vec r)
{
    return vec_select(vec_less(r, vec_zero()), vec_set(2 * (1 - loss->tau)), vec_set(2 * loss->tau));
}

LOSS_FN double expectile_weight(const hfsad_loss *loss, double r)
{
    return r < 0 ? 2 * (1 - loss->tau) : 2 * loss->tau;
}

VEC_FN vec expectile_value(const hfsad_loss *loss, vec y, vec s)
{
    const vec r = vec_sub(y, s);
    return vec_mul(vec_mul(vec_set(0.5), expectile_weights(loss, r)), vec_mul(r, r));
}

/* The minimiser's r has the sign of y - s0. */
VEC_FN vec expectile_shift(const hfsad_loss *loss, vec y, vec s0, vec kappa)
{
    const vec r = vec_sub(y, s0), bent = vec_mul(kappa, expectile_weights(loss, r));
    return vec_mul(r, vec_div(bent, vec_add(vec_set(1), bent)));
}

LOSS_FN double expectile_row_slope(const hfsad_loss *loss, double y, double s0, double kappa, double now)
{
    (void)now;
    const double r = y - s0, weight = expectile_weight(loss, r);
    return -weight * r / (1 + kappa * weight);
}

LOSS_FN double expectile_slope(const hfsad_loss *loss, double y, double s)
{
    return -expectile_weight(loss, y - s) * (y - s);
}

LOSS_FN double expectile_bend(const hfsad_loss *loss, double y, double s)
{
    return expectile_weight(loss, y - s);
}

/* A slope a < 0 belongs to r > 0. */
LOSS_FN double expectile_conjugate(const hfsad_loss *loss, double y, double a)
{
    return a * y + a * a / (2 * expectile_weight(loss, -a));
}

LOSS_FN void expectile_slopes(const hfsad_loss *loss, double y, double *low, double *high)
{
    (void)loss, (void)y;
    *low = -INFINITY;
    *high = INFINITY;
}

LOSS_FN double expectile_gap(const hfsad_loss *loss, double y, double s, double a)
{
    const double r = y - s, weight = expectile_weight(loss, r), off = weight * r + a;
    if (r * a <= 0)
        return off * off / (2 * weight);
    return weight * r * r / 2 + a * r + a * a / (2 * expectile_weight(loss, -a));
}

LOSS_FN double expectile_steeper(const hfsad_loss *loss)
{
    return 2 * fmax(loss->tau, 1 - loss->tau);
}

LOSS_FN double expectile_steepest(const hfsad_loss *loss, double y)
{
    return expectile_steeper(loss) * fabs(y);
}

LOSS_FN double expectile_growth(const hfsad_loss *loss, double span, double n)
{
    return expectile_steeper(loss) * span * n;
}

LOSS_FN double expectile_likely_bend(const hfsad_loss *loss, double spread)
{
    (void)spread;
    return expectile_steeper(loss);
}

LOSS_FN double expectile_noise(const hfsad_loss *loss, double spread)
{
    return 2 * sqrt(loss->tau * (1 - loss->tau)) * spread;
}

/* The second derivative bounds the slope: |slope|^2 <= 2 bend phi. */
LOSS_FN double expectile_polish_slope(const hfsad_loss *loss, double y)
{
    (void)loss, (void)y;
    return 0;
}

LOSS_ROW expectile_kind = {
    .parameters = LOSS_HAS_tau,
    .fit = LOSS_FIT_NORMAL,
    .start = LOSS_START_MEAN,
    .slope = expectile_slope,
    .bend = expectile_bend,
    .conjugate = expectile_conjugate,
    .slopes = expectile_slopes,
    .gap = expectile_gap,
    .steepest = expectile_steepest,
    .growth = expectile_growth,
    .likely_bend = expectile_likely_bend,
    .noise = expectile_noise,
    .ease = 0.25,
    .polish_slope = expectile_polish_slope,
    .polish_bend = expectile_likely_bend,
};

#endif
