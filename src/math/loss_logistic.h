/* Logistic loss: log(1 + exp(-y s)), y = -1 or 1. */
#ifndef HFSAD_MATH_LOSS_LOGISTIC_H
#define HFSAD_MATH_LOSS_LOGISTIC_H

#include "math/loss_kind.h"

LOSS_FN double logistic_lane_value(double y, double s, double unused)
{
    (void)unused;
    const double margin = y * s;
    return margin > 0 ? same_log1p(same_exp(-margin)) : same_log1p(same_exp(margin)) - margin;
}

VEC_FN vec logistic_value(const hfsad_loss *loss, vec y, vec s)
{
    (void)loss;
    return loss_each(logistic_lane_value, y, s, vec_zero());
}

/*
 * With a = y d: a = kappa p(a), p(a) = 1 / (1 + exp(y s0 + a)), a in (0, kappa); a exp(a) <= kappa exp(-y s0) bounds it
 * too. The function a - kappa p(a) is increasing; if Newton's step leaves the bracket or does not halve the last one,
 * the bracket is halved instead.
 */
LOSS_FN double logistic_lane_shift(double y, double s0, double kappa)
{
    const double margin = y * s0;
    double low = 0, high = fmin(kappa, fmax(1, same_log(kappa) - margin)), a = high / 2, step = high;
    for (int i = 0; i < 200; i++) {
        const double p = 1 / (1 + same_exp(margin + a)), f = a - kappa * p;
        if (f > 0)
            high = a;
        else
            low = a;
        const double before = a, newton = f / (1 + kappa * p * (1 - p));
        a -= newton;
        if (!(a > low && a < high) || 2 * fabs(newton) > step)
            a = low + (high - low) / 2;
        step = fabs(a - before);
        if (step <= 2e-16 * a)
            break;
    }
    return y * a;
}

VEC_FN vec logistic_shift(const hfsad_loss *loss, vec y, vec s0, vec kappa)
{
    (void)loss;
    return loss_each(logistic_lane_shift, y, s0, kappa);
}

/*
 * With the margin m = y s: m - y s0 = kappa p(m), p(m) = 1 / (1 + exp(m)). m - y s0 - kappa p(m) increases, by at least
 * 1 per unit, and its zero lies between y s0 and y s0 + kappa. Newton's step squares the error, so the one after a step
 * of 1e-8 would be lost in rounding.
 */
LOSS_FN double logistic_row_slope(const hfsad_loss *loss, double y, double s0, double kappa, double now)
{
    (void)loss;
    double low = y * s0, high = low + kappa, m = y * now;
    m = m > low && m < high ? m : low + (high - low) / 2;
    double last = 2 * kappa; /* step; if Newton's does not halve it, the bracket is halved instead */
    for (int i = 0; i < 200; i++) {
        const double p = 1 / (1 + same_exp(m)), f = m - y * s0 - kappa * p, step = -f / (1 + kappa * p * (1 - p));
        if (f > 0)
            high = m;
        else
            low = m;
        const double before = m, newton = m + step;
        if (fabs(step) <= 1e-8)
            return -y / (1 + same_exp(newton));
        m = newton > low && newton < high && 2 * fabs(step) <= last ? newton : low + (high - low) / 2;
        last = fabs(m - before);
        if (last == 0)
            break;
    }
    return -y / (1 + same_exp(m));
}

LOSS_FN double logistic_slope(const hfsad_loss *loss, double y, double s)
{
    (void)loss;
    return -y / (1 + same_exp(y * s));
}

LOSS_FN double logistic_bend(const hfsad_loss *loss, double y, double s)
{
    (void)loss, (void)y;
    const double e = same_exp(-fabs(s));
    return e / ((1 + e) * (1 + e));
}

LOSS_FN double logistic_predict(double s)
{
    return 1 / (1 + same_exp(-s));
}

/* With b = -y a, from 0 to 1: b log b + (1 - b) log(1 - b). */
LOSS_FN double logistic_conjugate(const hfsad_loss *loss, double y, double a)
{
    (void)loss;
    const double b = -y * a;
    return (b > 0 ? b * same_log(b) : 0) + (b < 1 ? (1 - b) * same_log1p(-b) : 0);
}

LOSS_FN void logistic_slopes(const hfsad_loss *loss, double y, double *low, double *high)
{
    (void)loss;
    *low = y > 0 ? -1 : 0;
    *high = y > 0 ? 0 : 1;
}

/* The divergence of b from p = 1 / (1 + exp(y s)). */
LOSS_FN double logistic_gap(const hfsad_loss *loss, double y, double s, double a)
{
    (void)loss;
    const double b = -y * a, m = y * s, rest = same_log1p(same_exp(-fabs(m)));
    return loss_entropy_gap(b, 1 / (1 + same_exp(m)), -fmax(m, 0) - rest) +
           loss_entropy_gap(1 - b, 1 / (1 + same_exp(-m)), fmin(m, 0) - rest);
}

/* Scale of y, and of the spread. */
LOSS_FN double logistic_quarter(const hfsad_loss *loss, double any)
{
    (void)loss, (void)any;
    return 0.25;
}

LOSS_FN double logistic_noise(const hfsad_loss *loss, double spread)
{
    (void)loss, (void)spread;
    return 0.5;
}

LOSS_ROW logistic_kind = {
    .labels = true,
    .endless = true,
    .fit = LOSS_FIT_FIXED,
    .start = LOSS_START_ZERO,
    .fits = loss_is_label,
    .takes = "the labels -1 and 1",
    .slope = logistic_slope,
    .bend = logistic_bend,
    .predict = logistic_predict,
    .conjugate = logistic_conjugate,
    .slopes = logistic_slopes,
    .gap = logistic_gap,
    .steepest = loss_one,
    .likely_bend = logistic_quarter,
    .noise = logistic_noise,
    .ease = 0.1,
    .polish_slope = loss_one,
    .polish_bend = logistic_quarter,
};

#endif
