/*
 * The losses for one row at a time, as the solvers of many rows need them: the slope at the minimiser of
 * phi(s) + (s - s0)^2 / (2 kappa), which is (s0 - s)/kappa, and the smoothed value.
 */
#ifndef HFSAD_MATH_LOSS_ROW_H
#define HFSAD_MATH_LOSS_ROW_H

#include "hfsad/hfsad.h"

#include <math.h>

/* The logistic loss's slope at its minimiser, found from the margin y s that the row has now. */
double logistic_row_slope(double y, double s0, double kappa, double now);

static inline double loss_row_clip(double a, double low, double high)
{
    const double above = low > a ? low : a;
    return high < above ? high : above;
}

/* Convex losses; kappa > 0; now: the row's s at present, near which the minimiser may lie. Exact at the bounds of the
 * slope, so that a row which stays there does not move. */
static inline double loss_row_slope(const hfsad_loss *loss, double y, double s0, double kappa, double now)
{
    const double r = y - s0, inv_kappa = 1 / kappa; /* divided apart, since kappa is known before s0 is */
    switch (loss->kind) {
    case HFSAD_LOSS_QUANTILE:
        return -loss_row_clip(r * inv_kappa, loss->tau - 1, loss->tau);
    case HFSAD_LOSS_ABSOLUTE:
        return -loss_row_clip(r * inv_kappa, -1, 1);
    case HFSAD_LOSS_SQUARED:
        return -r / (1 + kappa);
    case HFSAD_LOSS_HUBER:
        return -loss_row_clip(r / (1 + kappa), -loss->delta, loss->delta);
    case HFSAD_LOSS_LOGISTIC:
        return logistic_row_slope(y, s0, kappa, y * now);
    case HFSAD_LOSS_HINGE:
        return -y * loss_row_clip((1 - y * s0) * inv_kappa, 0, 1);
    case HFSAD_LOSS_PHASE_RETRIEVAL:
    case HFSAD_LOSS_OWN:
        break;
    }
    return 0;
}

/* The same for |y + t^2 - 2 t s| + (s - t)^2, which lies above |y - s^2| and touches it at s = t. */
static inline double phase_majorant_slope(double y, double t, double s0, double kappa)
{
    const double bend = 2 + 1 / kappa, s_bar = (2 * t + s0 / kappa) / bend, B = 2 * t;
    const double side = B != 0 ? loss_row_clip((y + t * t - B * s_bar) * bend / (B * B), -1, 1) : 0;
    const double s = s_bar + B * side / bend;
    return -B * side + 2 * (s - t);
}

/* |t|_mu and its slope. */
static inline double smooth_abs(double t, double mu, double *slope)
{
    const double a = fabs(t);
    *slope = a >= mu ? copysign(1, t) : t / mu;
    return a >= mu ? a : t * t / (2 * mu) + mu / 2;
}

/* The loss with every |.| replaced by |.|_mu, and its slope in s. */
static inline double loss_row_smooth(const hfsad_loss *loss, double y, double s, double mu, double *slope)
{
    const double r = y - s;
    double side, value;
    switch (loss->kind) {
    case HFSAD_LOSS_PHASE_RETRIEVAL:
        value = smooth_abs(s * s - y, mu, &side);
        *slope = 2 * s * side;
        return value;
    case HFSAD_LOSS_QUANTILE: /* (tau - 1/2) r + |r|/2 */
        value = (loss->tau - 0.5) * r + smooth_abs(r, mu, &side) / 2;
        *slope = -(loss->tau - 0.5) - side / 2;
        return value;
    case HFSAD_LOSS_ABSOLUTE:
        value = smooth_abs(r, mu, &side);
        *slope = -side;
        return value;
    case HFSAD_LOSS_HINGE: /* (t + |t|)/2, t = 1 - y s */
        value = smooth_abs(1 - y * s, mu, &side);
        *slope = -y * (1 + side) / 2;
        return (1 - y * s + value) / 2;
    case HFSAD_LOSS_SQUARED:
    case HFSAD_LOSS_HUBER:
    case HFSAD_LOSS_LOGISTIC: /* smooth as they are */
    case HFSAD_LOSS_OWN:
        break;
    }
    *slope = hfsad_loss_slope(loss, y, s);
    return hfsad_loss_value(loss, y, s);
}

#endif
