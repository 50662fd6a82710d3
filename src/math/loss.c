/* The losses for one number at a time. The prox of an observation is in src/core/steps.c. */
#include "math/loss_row.h"
#include "math/loss_vec.h"

double logistic_value(double margin)
{
    return margin > 0 ? log1p(exp(-margin)) : log1p(exp(margin)) - margin;
}

/*
 * With a = y d: a = kappa p(a), p(a) = 1 / (1 + exp(y s0 + a)), a in (0, kappa); a exp(a) <= kappa exp(-y s0) bounds it
 * too. The function a - kappa p(a) is increasing; where Newton's step leaves the bracket or does not halve the last
 * one, the bracket is halved instead.
 */
double logistic_shift(double y, double s0, double kappa)
{
    const double margin = y * s0;
    double low = 0, high = fmin(kappa, fmax(1, log(kappa) - margin)), a = high / 2, step = high;
    for (int i = 0; i < 200; i++) {
        const double p = 1 / (1 + exp(margin + a)), f = a - kappa * p;
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

/*
 * With the margin m = y s: m - y s0 = kappa p(m), p(m) = 1 / (1 + exp(m)). m - y s0 - kappa p(m) increases, by at least
 * 1 per unit, and its zero lies between y s0 and y s0 + kappa. Newton's step squares the error, so the one after a step
 * of 1e-8 would be lost in rounding.
 */
double logistic_row_slope(double y, double s0, double kappa, double now)
{
    double low = y * s0, high = low + kappa, m = now > low && now < high ? now : low + (high - low) / 2;
    double last = 2 * kappa; /* step; where Newton's does not halve it, the bracket is halved instead */
    for (int i = 0; i < 200; i++) {
        const double p = 1 / (1 + exp(m)), f = m - y * s0 - kappa * p, step = -f / (1 + kappa * p * (1 - p));
        if (f > 0)
            high = m;
        else
            low = m;
        const double before = m, newton = m + step;
        if (fabs(step) <= 1e-8)
            return -y / (1 + exp(newton));
        m = newton > low && newton < high && 2 * fabs(step) <= last ? newton : low + (high - low) / 2;
        last = fabs(m - before);
        if (last == 0)
            break;
    }
    return -y / (1 + exp(m));
}

double hfsad_loss_value(const hfsad_loss *loss, double y, double s)
{
    return vec_first(loss_value(loss, vec_set(y), vec_set(s)));
}

double hfsad_loss_slope(const hfsad_loss *loss, double y, double s)
{
    const double r = y - s;
    switch (loss->kind) {
    case HFSAD_LOSS_PHASE_RETRIEVAL:
        return s * s > y ? 2 * s : s * s < y ? -2 * s : 0;
    case HFSAD_LOSS_QUANTILE:
        return r > 0 ? -loss->tau : r < 0 ? 1 - loss->tau : 0;
    case HFSAD_LOSS_ABSOLUTE:
        return r > 0 ? -1 : r < 0 ? 1 : 0;
    case HFSAD_LOSS_SQUARED:
        return -r;
    case HFSAD_LOSS_HUBER:
        return r > loss->delta ? -loss->delta : r < -loss->delta ? loss->delta : -r;
    case HFSAD_LOSS_LOGISTIC:
        return -y / (1 + exp(y * s));
    case HFSAD_LOSS_HINGE:
        return y * s < 1 ? -y : 0;
    case HFSAD_LOSS_OWN:
        break;
    }
    return 0;
}
