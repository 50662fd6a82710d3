/*
 * Poisson loss for counts, y >= 0, of mean exp(s): half of the deviance,
 *
 *     phi = exp(s) - y s - y + y log y          (0 log 0 = 0)
 *
 * which differs from the negative logarithm of the likelihood by a constant, and whose least value over s is 0.
 */
#ifndef HFSAD_MATH_LOSS_POISSON_H
#define HFSAD_MATH_LOSS_POISSON_H

#include "math/loss_kind.h"

LOSS_FN double poisson_lane_value(double y, double s, double unused)
{
    (void)unused;
    return loss_entropy_gap(y, same_exp(s), s);
}

VEC_FN vec poisson_value(const hfsad_loss *loss, vec y, vec s)
{
    (void)loss;
    return loss_each(poisson_lane_value, y, s, vec_zero());
}

/*
 * The minimiser solves s + kappa exp(s) = t, t = s0 + kappa y. The left side is convex and increases, so Newton's steps
 * from the right of the solution fall towards it, and one from the left leads to its right. `high` is on the right:
 * with u = kappa exp(s) the equation is log u + u = L, L = log kappa + t, so u <= L if L > 1, and s <= t in any case.
 */
LOSS_FN double poisson_minimiser(double y, double s0, double kappa, double from)
{
    const double t = s0 + kappa * y, log_kappa = same_log(kappa), L = log_kappa + t,
                 high = L > 1 ? same_log(L) - log_kappa : t;
    double s = from < high ? from : high;
    for (int i = 0; i < 100; i++) {
        const double u = kappa * same_exp(s), step = (s + u - t) / (1 + u);
        const double next = s - step < high ? s - step : high;
        const bool last = fabs(step) <= 1e-8 || next == s; /* the next step would be lost in rounding */
        s = next;
        if (last)
            break;
    }
    return s;
}

LOSS_FN double poisson_lane_shift(double y, double s0, double kappa)
{
    const double s = poisson_minimiser(y, s0, kappa, s0), u = kappa * same_exp(s);
    return u < 1 ? kappa * y - u : s - s0; /* the form that loses fewer digits */
}

VEC_FN vec poisson_shift(const hfsad_loss *loss, vec y, vec s0, vec kappa)
{
    (void)loss;
    return loss_each(poisson_lane_shift, y, s0, kappa);
}

LOSS_FN double poisson_row_slope(const hfsad_loss *loss, double y, double s0, double kappa, double now)
{
    (void)loss;
    const double s = poisson_minimiser(y, s0, kappa, now), e = same_exp(s),
                 slope = kappa * e < 1 ? e - y : (s0 - s) / kappa;
    return slope > -y ? slope : -y;
}

LOSS_FN double poisson_slope(const hfsad_loss *loss, double y, double s)
{
    (void)loss;
    return same_exp(s) - y;
}

LOSS_FN double poisson_bend(const hfsad_loss *loss, double y, double s)
{
    (void)loss, (void)y;
    return same_exp(s);
}

LOSS_FN double poisson_predict(double s)
{
    return same_exp(s);
}

/* With u = y + a: u log u - u + y - y log y. */
LOSS_FN double poisson_conjugate(const hfsad_loss *loss, double y, double a)
{
    (void)loss;
    const double u = y + a;
    if (y > 0)
        return loss_entropy_gap(u, y, same_log(y)) + a * same_log(y);
    return u > 0 ? u * same_log(u) - u : 0;
}

LOSS_FN void poisson_slopes(const hfsad_loss *loss, double y, double *low, double *high)
{
    (void)loss;
    *low = -y;
    *high = INFINITY;
}

LOSS_FN double poisson_gap(const hfsad_loss *loss, double y, double s, double a)
{
    (void)loss;
    return loss_entropy_gap(y + a, same_exp(s), s);
}

LOSS_FN bool poisson_fits(double y)
{
    return y >= 0;
}

LOSS_FN double poisson_steepest(const hfsad_loss *loss, double y)
{
    (void)loss;
    return fmax(y, 1);
}

LOSS_FN double poisson_growth(const hfsad_loss *loss, double span, double n)
{
    (void)loss;
    return same_exp(span * sqrt(n)) * sqrt(n);
}

/* The mean of y equals the mean of exp(s). */
LOSS_FN double poisson_likely_bend(const hfsad_loss *loss, double spread)
{
    (void)loss;
    return spread;
}

LOSS_FN double poisson_noise(const hfsad_loss *loss, double spread)
{
    (void)loss;
    return sqrt(spread);
}

LOSS_FN double poisson_score(double spread)
{
    (void)spread;
    return 1;
}

LOSS_ROW poisson_kind = {
    .endless = true,
    .fit = LOSS_FIT_FIXED,
    .start = LOSS_START_LOG,
    .fits = poisson_fits,
    .takes = "counts, which are 0 or more",
    .slope = poisson_slope,
    .bend = poisson_bend,
    .predict = poisson_predict,
    .conjugate = poisson_conjugate,
    .slopes = poisson_slopes,
    .gap = poisson_gap,
    .steepest = poisson_steepest,
    .growth = poisson_growth,
    .likely_bend = poisson_likely_bend,
    .noise = poisson_noise,
    .score = poisson_score,
    .ease = 0.25,
    .polish_slope = poisson_steepest,
    .polish_bend = poisson_steepest,
};

#endif
