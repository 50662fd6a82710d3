/*
 * The losses for one observation and the minimiser that their prox needs, eight clients at once.
 *
 * With s = <x, w>, s0 = <x, v> and kappa = |x|^2 / sigma, the prox of the loss is v + (d/|x|^2) x, where s0 + d is
 * the global minimiser of    phi(s) + (s - s0)^2 / (2 kappa).
 */
#ifndef HFSAD_MATH_LOSS_VEC_H
#define HFSAD_MATH_LOSS_VEC_H

#include "hfsad/hfsad.h"
#include "math/vec.h"

/* Logistic needs exp and log of libm, one number at a time (src/math/loss.c). */
double logistic_value(double margin);
double logistic_shift(double y, double s0, double kappa);

VEC_FN vec loss_value(const hfsad_loss *loss, vec y, vec s)
{
    const vec zero = vec_zero(), half = vec_set(0.5);
    const vec r = vec_sub(y, s), a = vec_abs(r);
    switch (loss->kind) {
    case HFSAD_LOSS_PHASE_RETRIEVAL:
        return vec_abs(vec_sub(y, vec_mul(s, s)));
    case HFSAD_LOSS_QUANTILE:
        return vec_max(vec_mul(vec_set(loss->tau), r), vec_mul(vec_set(loss->tau - 1), r));
    case HFSAD_LOSS_ABSOLUTE:
        return a;
    case HFSAD_LOSS_SQUARED:
        return vec_mul(half, vec_mul(r, r));
    case HFSAD_LOSS_HUBER: {
        const vec inner = vec_min(a, vec_set(loss->delta));
        return vec_add(vec_mul(half, vec_mul(inner, inner)), vec_mul(vec_set(loss->delta), vec_sub(a, inner)));
    }
    case HFSAD_LOSS_LOGISTIC: {
        double margin[VEC_LANES];
        vec_store(margin, vec_mul(y, s));
        for (int i = 0; i < VEC_LANES; i++)
            margin[i] = logistic_value(margin[i]);
        return vec_load(margin);
    }
    case HFSAD_LOSS_HINGE:
        return vec_max(vec_sub(vec_set(1), vec_mul(y, s)), zero);
    case HFSAD_LOSS_OWN:
        break;
    }
    return zero;
}

/*
 * |y - s^2|: stationary on s^2 > y at s0/(1 + 2 kappa), on s^2 < y at s0/(1 - 2 kappa) (a minimum only where
 * 2 kappa < 1), kinks at +-sqrt(y), of which the one on the side of s0 is the better. Compared by the objective.
 */
VEC_FN vec phase_shift(vec y, vec s0, vec kappa)
{
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
        const vmask better = vec_less(value, least); /* false where 2 kappa = 1 made s infinite */
        best = vec_select(better, d, best);
        least = vec_select(better, value, least);
    }
    return best;
}

/* d = s - s0 of the prox; kappa > 0 */
VEC_FN vec loss_shift(const hfsad_loss *loss, vec y, vec s0, vec kappa)
{
    const vec zero = vec_zero(), one = vec_set(1), r = vec_sub(y, s0);
    switch (loss->kind) {
    case HFSAD_LOSS_PHASE_RETRIEVAL:
        return phase_shift(y, s0, kappa);
    case HFSAD_LOSS_QUANTILE:
        return vec_clip(r, vec_mul(kappa, vec_set(loss->tau - 1)), vec_mul(kappa, vec_set(loss->tau)));
    case HFSAD_LOSS_ABSOLUTE:
        return vec_clip(r, vec_sub(zero, kappa), kappa);
    case HFSAD_LOSS_SQUARED:
        return vec_mul(r, vec_div(kappa, vec_add(one, kappa)));
    case HFSAD_LOSS_HUBER: {
        const vec most = vec_mul(kappa, vec_set(loss->delta));
        return vec_clip(vec_mul(r, vec_div(kappa, vec_add(one, kappa))), vec_sub(zero, most), most);
    }
    case HFSAD_LOSS_LOGISTIC: {
        double label[VEC_LANES], at[VEC_LANES], scale[VEC_LANES], d[VEC_LANES];
        vec_store(label, y);
        vec_store(at, s0);
        vec_store(scale, kappa);
        for (int i = 0; i < VEC_LANES; i++)
            d[i] = logistic_shift(label[i], at[i], scale[i]);
        return vec_load(d);
    }
    case HFSAD_LOSS_HINGE:
        return vec_mul(y, vec_clip(vec_sub(one, vec_mul(y, s0)), zero, kappa));
    case HFSAD_LOSS_OWN:
        break;
    }
    return zero;
}

/* The coefficient of x in the prox, d/|x|^2; 0 where x is 0. */
VEC_FN vec loss_coefficient(const hfsad_loss *loss, vec y, vec n, vec s0, vec inv_sigma)
{
    const vmask some = vec_less(vec_zero(), n);
    const vec safe = vec_select(some, n, vec_set(1));
    const vec d = loss_shift(loss, y, s0, vec_mul(safe, inv_sigma));
    return vec_select(some, vec_div(d, safe), vec_zero());
}

#endif
