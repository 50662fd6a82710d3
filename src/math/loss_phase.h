/* Phase retrieval: |y - s^2|. Not convex; the sign of the model is free. */
#ifndef HFSAD_MATH_LOSS_PHASE_H
#define HFSAD_MATH_LOSS_PHASE_H

#include "math/loss_kind.h"

VEC_FN vec phase_value(const hfsad_loss *loss, vec y, vec s)
{
    (void)loss;
    return vec_abs(vec_sub(y, vec_mul(s, s)));
}

/*
 * Stationary on s^2 > y at s0/(1 + 2 kappa), on s^2 < y at s0/(1 - 2 kappa) (a minimum only if 2 kappa < 1), kinks at
 * +-sqrt(y), of which the one on the side of s0 is the better. Compared by the objective.
 */
VEC_FN vec phase_shift(const hfsad_loss *loss, vec y, vec s0, vec kappa)
{
    (void)loss;
    const vec one = vec_set(1), two_kappa = vec_add(kappa, kappa), half_inv = vec_div(vec_set(0.5), kappa);
    const vec candidates[3] = {
        vec_div(s0, vec_add(one, two_kappa)),
        vec_copysign(vec_sqrt(vec_max(y, vec_zero())), s0),
        vec_div(s0, vec_sub(one, two_kappa)),
    };
    vec best = vec_zero(), least = vec_set(INFINITY);
    for (int i = 0; i < 3; i++) {
        const vec s = candidates[i], d = vec_sub(s, s0);
        const vec value = vec_add(vec_abs(vec_sub(y, vec_mul(s, s))), vec_mul(vec_mul(d, d), half_inv));
        const vmask better = vec_less(value, least); /* false if 2 kappa = 1 made s infinite */
        best = vec_select(better, d, best);
        least = vec_select(better, value, least);
    }
    return best;
}

/* The majorant uses majorant_row_slope instead. */
LOSS_FN double phase_row_slope(const hfsad_loss *loss, double y, double s0, double kappa, double now)
{
    (void)loss, (void)y, (void)s0, (void)kappa, (void)now;
    return 0;
}

/* row_slope of |y + t^2 - 2 t s| + (s - t)^2, which lies above |y - s^2| and touches it at s = t, the anchor. */
LOSS_FN double majorant_row_slope(double y, double t, double s0, double kappa)
{
    const double bend = 2 + 1 / kappa, s_bar = (2 * t + s0 / kappa) / bend, B = 2 * t;
    const double side = B != 0 ? loss_clip((y + t * t - B * s_bar) * bend / (B * B), -1, 1) : 0;
    const double s = s_bar + B * side / bend;
    return -B * side + 2 * (s - t);
}

/* The same for eight rows: s - s0 of the prox. */
VEC_FN vec majorant_shift(vec y, vec t, vec s0, vec kappa)
{
    const vec inv = vec_div(vec_set(1), kappa), bend = vec_add(vec_set(2), inv), B = vec_add(t, t), B2 = vec_mul(B, B);
    const vec s_bar = vec_div(vec_fma(s0, inv, B), bend), left = vec_fnma(B, s_bar, vec_fma(t, t, y));
    const vmask some = vec_less(vec_zero(), B2);
    const vec ratio = vec_div(vec_mul(left, bend), vec_select(some, B2, vec_set(1)));
    const vec side = vec_select(some, vec_clip(ratio, vec_set(-1), vec_set(1)), vec_zero());
    return vec_sub(vec_add(s_bar, vec_div(vec_mul(B, side), bend)), s0);
}

/* The smallest slope of the majorant at s. */
LOSS_FN double majorant_least_slope(double y, double t, double s)
{
    const double left = y + t * t - 2 * t * s;
    return (left != 0 ? -copysign(2 * t, t * left) : -fabs(2 * t)) + 2 * (s - t);
}

/* All stationary s of |y - s^2| + (s - s0)^2 / (2 kappa), in any order; returns their number. */
LOSS_FN size_t phase_stationary(double y, double s0, double two_kappa, double found[4])
{
    const double root = sqrt(y > 0 ? y : 0);
    const double s[4] = {s0 / (1 + two_kappa), s0 / (1 - two_kappa), root, -root};
    size_t count = 0;
    for (size_t i = 0; i < 4; i++)
        if (isfinite(s[i]))
            found[count++] = s[i];
    return count;
}

LOSS_FN double phase_slope(const hfsad_loss *loss, double y, double s)
{
    (void)loss;
    return s * s > y ? 2 * s : s * s < y ? -2 * s : 0;
}

LOSS_FN double phase_smoothed(const hfsad_loss *loss, double y, double s, double mu, double *slope)
{
    (void)loss;
    double side;
    const double value = smooth_abs(s * s - y, mu, &side);
    *slope = 2 * s * side;
    return value;
}

LOSS_FN double phase_predict(double s)
{
    return s * s;
}

/* The value of the paper. */
LOSS_FN double phase_steepest(const hfsad_loss *loss, double y)
{
    (void)loss, (void)y;
    return 5;
}

/* The second derivative is 2 in absolute value on either side of the kink. */
LOSS_FN double phase_likely_bend(const hfsad_loss *loss, double spread)
{
    (void)loss, (void)spread;
    return 2;
}

LOSS_FN double phase_noise(const hfsad_loss *loss, double spread)
{
    (void)loss, (void)spread;
    return 1;
}

/* y has the scale of <x,w>^2. */
LOSS_FN double phase_score(double spread)
{
    return sqrt(spread);
}

LOSS_ROW phase_kind = {
    .majorised = true,
    .fit = LOSS_FIT_LAPLACE,
    .start = LOSS_START_ZERO,
    .slope = phase_slope,
    .smoothed = phase_smoothed,
    .predict = phase_predict,
    .steepest = phase_steepest,
    .likely_bend = phase_likely_bend,
    .noise = phase_noise,
    .score = phase_score,
    .ease = 3,
    .polish_slope = loss_one,
    .polish_bend = loss_one,
};

#endif
