/*
 * Every loss by its definition, independently of the library: the value, the derivative from either side, the second
 * derivative of the smooth ones. A new loss adds a line to each switch, and the tests that walk through all losses
 * include it.
 */
#ifndef HFSAD_TESTS_DEFINED_LOSSES_H
#define HFSAD_TESTS_DEFINED_LOSSES_H

#include "math/loss_kind.h"
#include "tools.h"

/* All losses of one score: not the program's own, and not multinomial, which has a score for each class. */
enum { LOSSES = HFSAD_LOSS_COUNT - 2 };
_Static_assert(HFSAD_LOSS_OWN < HFSAD_LOSS_MULTINOMIAL, "kind_at skips the two in this order");

TOOL hfsad_loss_kind kind_at(size_t i)
{
    size_t at = i % LOSSES;
    at += at >= HFSAD_LOSS_OWN;
    at += at >= HFSAD_LOSS_MULTINOMIAL;
    return (hfsad_loss_kind)at;
}

TOOL bool has_labels(hfsad_loss_kind kind)
{
    return kind == HFSAD_LOSS_LOGISTIC || kind == HFSAD_LOSS_HINGE || kind == HFSAD_LOSS_SQUARED_HINGE;
}

/* An observation that the loss takes, near what the model says. */
TOOL double observation_near(rng *r, hfsad_loss_kind kind, double s)
{
    const double noise = rng_next_normal(r);
    if (kind == HFSAD_LOSS_POISSON)
        return floor(exp(fmin(s + noise / 2, 2))); /* far larger ones make many rows slow */
    if (has_labels(kind))
        return s + noise > 0 ? 1 : -1;
    return kind == HFSAD_LOSS_PHASE_RETRIEVAL ? s * s + 0.3 * noise : s + noise;
}

/* Twice the integral of the quantile loss from 0 to t. */
TOOL long double square_side(long double t, double tau)
{
    return t >= 0 ? tau * t * t : -(1 - tau) * t * t;
}

TOOL long double defined_loss(const hfsad_loss *l, double y, long double s)
{
    const long double r = y - s, a = fabsl(r);
    switch (l->kind) {
    case HFSAD_LOSS_PHASE_RETRIEVAL:
        return fabsl(y - s * s);
    case HFSAD_LOSS_QUANTILE:
        return r >= 0 ? l->tau * r : (1 - l->tau) * a;
    case HFSAD_LOSS_ABSOLUTE:
        return a;
    case HFSAD_LOSS_SQUARED:
        return r * r / 2;
    case HFSAD_LOSS_HUBER:
        return a <= l->delta ? r * r / 2 : l->delta * a - l->delta * l->delta / 2;
    case HFSAD_LOSS_LOGISTIC:
        return y * s < 0 ? -y * s + log1pl(expl(y * s)) : log1pl(expl(-y * s));
    case HFSAD_LOSS_HINGE:
        return y * s >= 1 ? 0 : 1 - y * s;
    case HFSAD_LOSS_EXPECTILE:
        return (r >= 0 ? l->tau : 1 - l->tau) * r * r;
    case HFSAD_LOSS_SMOOTHED_QUANTILE: /* the integral of the quantile loss from r - h to r + h, over 2 h */
        return (square_side(r + l->h, l->tau) - square_side(r - l->h, l->tau)) / (4 * l->h);
    case HFSAD_LOSS_POISSON:
        return expl(s) - y * s - y + (y > 0 ? y * logl(y) : 0);
    case HFSAD_LOSS_SQUARED_HINGE:
        return y * s >= 1 ? 0 : (1 - y * s) * (1 - y * s);
    case HFSAD_LOSS_OWN:
    case HFSAD_LOSS_MULTINOMIAL:
        break;
    }
    return NAN;
}

/* The derivative from the left (side -1) or from the right (1). */
TOOL double defined_slope(const hfsad_loss *l, double y, double s, int side)
{
    const double beyond = s != y ? s - y : side;
    switch (l->kind) {
    case HFSAD_LOSS_PHASE_RETRIEVAL:
        if (s * s != y)
            return s * s > y ? 2 * s : -2 * s;
        return s * side > 0 ? 2 * s : -2 * s;
    case HFSAD_LOSS_QUANTILE:
        return beyond > 0 ? 1 - l->tau : -l->tau;
    case HFSAD_LOSS_ABSOLUTE:
        return beyond > 0 ? 1 : -1;
    case HFSAD_LOSS_SQUARED:
        return s - y;
    case HFSAD_LOSS_HUBER:
        return fmin(l->delta, fmax(-l->delta, s - y));
    case HFSAD_LOSS_LOGISTIC:
        return -y / (1 + exp(y * s));
    case HFSAD_LOSS_HINGE:
        return y * s < 1 || (y * s == 1 && y * side < 0) ? -y : 0;
    case HFSAD_LOSS_EXPECTILE:
        return 2 * (s < y ? l->tau : 1 - l->tau) * (s - y);
    case HFSAD_LOSS_SMOOTHED_QUANTILE: /* minus the mean slope of the quantile loss there */
        return fmin(1, fmax(0, (s - y + l->h) / (2 * l->h))) - l->tau;
    case HFSAD_LOSS_POISSON:
        return exp(s) - y;
    case HFSAD_LOSS_SQUARED_HINGE:
        return y * s < 1 ? -2 * y * (1 - y * s) : 0;
    case HFSAD_LOSS_OWN:
    case HFSAD_LOSS_MULTINOMIAL:
        break;
    }
    return NAN;
}

/* NAN: the loss has a kink. */
TOOL double defined_bend(const hfsad_loss *l, double y, double s)
{
    const double e = exp(-fabs(s));
    switch (l->kind) {
    case HFSAD_LOSS_SQUARED:
        return 1;
    case HFSAD_LOSS_HUBER:
        return fabs(y - s) <= l->delta;
    case HFSAD_LOSS_LOGISTIC:
        return e / ((1 + e) * (1 + e));
    case HFSAD_LOSS_EXPECTILE:
        return 2 * (s <= y ? l->tau : 1 - l->tau);
    case HFSAD_LOSS_SMOOTHED_QUANTILE:
        return fabs(y - s) <= l->h ? 1 / (2 * l->h) : 0;
    case HFSAD_LOSS_POISSON:
        return exp(s);
    case HFSAD_LOSS_SQUARED_HINGE:
        return y * s <= 1 ? 2 : 0;
    case HFSAD_LOSS_PHASE_RETRIEVAL:
    case HFSAD_LOSS_QUANTILE:
    case HFSAD_LOSS_ABSOLUTE:
    case HFSAD_LOSS_HINGE:
    case HFSAD_LOSS_OWN:
    case HFSAD_LOSS_MULTINOMIAL:
        break;
    }
    return NAN;
}

#endif
