/*
 * The penalties on eight numbers at once. No other file contains their mathematics.
 *
 *     P(t; mu) = omega ( lambda |t|_mu - h(t) )
 *
 * With a = |t|, b = clip(a - theta, 0, kappa lambda):   h = b^2/(2 kappa) + lambda max(a - gamma lambda, 0)
 * mcp: theta = 0, kappa = gamma;   scad: theta = lambda, kappa = gamma - 1;   l1: h = 0.
 */
#ifndef HFSAD_MATH_PENALTY_VEC_H
#define HFSAD_MATH_PENALTY_VEC_H

#include "math/penalty_elastic_net.h"
#include "math/penalty_group_mcp.h"
#include "math/penalty_group_scad.h"
#include "math/penalty_l1.h"
#include "math/penalty_l2.h"
#include "math/penalty_mcp.h"
#include "math/penalty_none.h"
#include "math/penalty_scad.h"
#include "math/vec.h"

typedef struct {
    penalty_form form;
    bool group; /* core/group_body.h */
    vec slope;  /* omega lambda */
    vec omega, lambda, theta, inv_kappa;
    vec reach; /* gamma lambda: the penalty is constant beyond it */
    vec bend;  /* kappa lambda = reach - theta */
    vec ridge;
} penalty_vec;

VEC_FN penalty_shape penalty_shape_of(const hfsad_penalty *p)
{
    switch (p->kind) {
#define PENALTY_CASE(KIND, prefix, link, prior, gamma_above)                                                           \
    case HFSAD_PENALTY_##KIND:                                                                                         \
        return prefix##_shape(p);
        HFSAD_PENALTY_LIST(PENALTY_CASE)
#undef PENALTY_CASE
    }
    return (penalty_shape){0};
}

VEC_FN penalty_vec penalty_vec_of(const hfsad_penalty *p)
{
    const penalty_shape shape = penalty_shape_of(p);
    return (penalty_vec){
        .form = penalty_kind_of(p)->form,
        .group = penalty_kind_of(p)->group,
        .slope = vec_set(shape.slope),
        .omega = vec_set(p->weight),
        .lambda = vec_set(p->lambda),
        .theta = vec_set(shape.theta),
        .inv_kappa = vec_set(1 / shape.kappa),
        .reach = vec_set(p->gamma * p->lambda),
        .bend = vec_set(shape.kappa * p->lambda),
        .ridge = vec_set(shape.ridge),
    };
}

VEC_FN bool penalty_is_linear(penalty_form form)
{
    return form <= PENALTY_LINEAR;
}

/* omega h(a), a >= 0 */
VEC_FN vec penalty_concave_part(const penalty_vec *p, vec a)
{
    const vec b = vec_clip(vec_sub(a, p->theta), vec_zero(), p->bend);
    const vec bent = vec_mul(vec_mul(vec_mul(b, b), vec_set(0.5)), p->inv_kappa);
    const vec flat = vec_mul(p->lambda, vec_max(vec_sub(a, p->reach), vec_zero()));
    return vec_mul(p->omega, vec_add(bent, flat));
}

/* P(a; 0), a >= 0 */
VEC_FN vec penalty_exact(const penalty_vec *p, vec a)
{
    const vec linear = vec_mul(p->slope, a);
    if (p->form == PENALTY_RIDGED)
        return vec_add(linear, vec_mul(vec_mul(vec_set(0.5), p->ridge), vec_mul(a, a)));
    return penalty_is_linear(p->form) ? linear : vec_sub(linear, penalty_concave_part(p, a));
}

/* P(a; mu) - P(a; 0) = slope max(mu - a, 0)^2 / (2 mu); inv_mu = 1/mu, both 0 for the exact penalty */
VEC_FN vec penalty_smoothing(const penalty_vec *p, vec a, vec mu, vec inv_mu)
{
    const vec below = vec_max(vec_sub(mu, a), vec_zero());
    return vec_mul(p->slope, vec_mul(vec_mul(vec_mul(below, below), vec_set(0.5)), inv_mu));
}

/* dP/dt at t with inv_mu = 1/mu; inv_mu = 0 is mu = infinity */
VEC_FN vec penalty_gradient(const penalty_vec *p, vec t, vec inv_mu)
{
    const vec linear = vec_mul(p->slope, vec_unit(vec_mul(t, inv_mu)));
    if (penalty_is_linear(p->form))
        return linear;
    if (p->form == PENALTY_RIDGED)
        return vec_add(linear, vec_mul(p->ridge, t));
    const vec bent = vec_mul(vec_sub(vec_abs(t), p->theta), p->inv_kappa);
    const vec h = vec_mul(p->omega, vec_clip(bent, vec_zero(), p->lambda));
    return vec_sub(linear, vec_copysign(h, t));
}

/* step times the prox's objective at x >= 0 */
VEC_FN vec penalty_prox_objective(const penalty_vec *p, vec x, vec v, vec step, vec mu, vec inv_mu)
{
    const vec far = vec_sub(x, v);
    const vec value = vec_add(penalty_exact(p, x), penalty_smoothing(p, x, mu, inv_mu));
    return vec_add(vec_mul(step, value), vec_mul(vec_set(0.5), vec_mul(far, far)));
}

/*
 * Prox of a concave penalty: on x >= 0 (the sign of v) the objective is a quadratic on each cell between the
 * breakpoints mu, theta, reach. It is smooth except at 0 if mu = 0, so a global minimiser is the stationary point of a
 * convex cell, or 0. A stationary point outside its cell is clipped to the cell. A clipped point wins only if it is
 * clearly better, which happens at a breakpoint that rounding put outside both of its cells. So objectives that differ
 * by a rounding decide only between two minima. Without smoothing there are no cells below mu.
 */
typedef struct {
    vec x, value;
} penalty_candidate;

VEC_FN void penalty_consider(penalty_candidate *best, vmask where, vec x, vec value)
{
    const vec counted = vec_select(where, value, vec_set(INFINITY));
    const vmask better = vec_less(counted, best->value);
    best->x = vec_select(better, x, best->x);
    best->value = vec_select(better, value, best->value);
}

VEC_FN vec penalty_prox_concave(const penalty_vec *p, vec v, vec step, vec mu, vec inv_mu, bool smoothed)
{
    const vec a = vec_abs(v), zero = vec_zero(), infinity = vec_set(INFINITY), one = vec_set(1);
    const vec low[3] = {zero, p->theta, p->reach}, high[3] = {p->theta, p->reach, infinity};
    const vec bent = vec_mul(p->omega, p->inv_kappa);
    const vmask all = vec_mask(0xff);
    penalty_candidate minimum = {zero, infinity}, any = {zero, infinity};
    if (!smoothed) { /* 0 is a minimum if the kink holds it; written as not greater */
        const vec value = penalty_prox_objective(p, zero, a, step, mu, inv_mu);
        penalty_consider(&any, all, zero, value);
        minimum.value = vec_select(vec_less(vec_mul(step, p->slope), a), infinity, value);
    }
    for (int smooth = 0; smooth < 1 + smoothed; smooth++)
        for (int piece = 0; piece < 3; piece++) {
            /* P' = A x + B on this cell */
            vec A = smooth ? vec_mul(p->slope, inv_mu) : zero;
            vec B = smooth ? zero : p->slope;
            if (piece == 1) {
                A = vec_sub(A, bent);
                B = vec_add(B, vec_mul(bent, p->theta));
            } else if (piece == 2) {
                B = vec_sub(B, p->slope);
            }
            const vec bottom = smooth ? low[piece] : vec_max(low[piece], mu);
            const vec top = smooth ? vec_min(high[piece], mu) : high[piece];
            const vec curvature = vec_add(one, vec_mul(step, A));
            const vec x = vec_div(vec_sub(a, vec_mul(step, B)), curvature), cut = vec_clip(x, bottom, top);
            const vec value = penalty_prox_objective(p, cut, a, step, mu, inv_mu);
            /* x = cut, and the cell is convex and not empty */
            const vmask inside =
                vec_mask(~(vec_bits(vec_less(x, cut)) | vec_bits(vec_less(cut, x)) | vec_bits(vec_less(top, bottom))) &
                         vec_bits(vec_less(zero, curvature)));
            penalty_consider(&minimum, inside, cut, value);
            penalty_consider(&any, all, cut, value);
        }
    const vmask clearly = vec_less(any.value, vec_mul(minimum.value, vec_set(1 - 1e-12)));
    return vec_copysign(vec_select(clearly, any.x, minimum.x), v);
}

/* Prox of slope |.|_mu with pull = step slope, ratio = mu/(mu + pull): the larger of |v| ratio (inside mu) and |v| -
 * pull (outside). */
VEC_FN vec penalty_prox_linear(vec v, vec pull, vec ratio)
{
    const vec a = vec_abs(v);
    return vec_copysign(vec_max(vec_mul(a, ratio), vec_sub(a, pull)), v);
}

/* Prox of slope |.|_mu + ridge t^2 / 2: the prox of slope |.|_mu with v and the step divided by 1 + step ridge. */
VEC_FN vec penalty_prox_ridged(const penalty_vec *p, vec v, vec step, vec mu)
{
    const vec shorter = vec_div(vec_set(1), vec_add(vec_set(1), vec_mul(step, p->ridge)));
    const vec pull = vec_mul(vec_mul(step, shorter), p->slope);
    return penalty_prox_linear(vec_mul(v, shorter), pull, vec_div(mu, vec_add(mu, pull)));
}

/* Prox of the smoothed penalty, if it is not linear. */
VEC_FN vec penalty_prox_bent(const penalty_vec *p, vec v, vec step, vec mu, vec inv_mu)
{
    return p->form == PENALTY_RIDGED ? penalty_prox_ridged(p, v, step, mu)
                                     : penalty_prox_concave(p, v, step, mu, inv_mu, true);
}

/* Prox of the exact penalty if step omega / kappa < 1: the objective is convex, and the stationary point within its own
 * cell is the minimiser. */
VEC_FN vec penalty_prox_convex(const penalty_vec *p, vec v, vec step, vec bent)
{
    const vec a = vec_abs(v), pull = vec_mul(step, p->slope);
    const vec first = vec_max(vec_sub(a, pull), vec_zero());
    const vec middle = vec_div(vec_fnma(bent, p->theta, vec_sub(a, pull)), vec_sub(vec_set(1), bent));
    const vec inner = vec_select(vec_less(p->theta, first), middle, first);
    /* mcp: theta = 0, and first > 0 means that the middle cell contains the minimiser */
    return vec_copysign(vec_select(vec_less(p->reach, a), a, inner), v);
}

/* Prox of the exact penalty (mu = 0), which an inner node's prior needs. */
VEC_FN vec penalty_prox_exact(const penalty_vec *p, vec v, vec step)
{
    if (p->form == PENALTY_FLAT)
        return v;
    if (p->form == PENALTY_LINEAR)
        return vec_copysign(vec_max(vec_sub(vec_abs(v), vec_mul(step, p->slope)), vec_zero()), v);
    if (p->form == PENALTY_RIDGED) {
        const vec shrunk = vec_max(vec_sub(vec_abs(v), vec_mul(step, p->slope)), vec_zero());
        return vec_copysign(vec_div(shrunk, vec_add(vec_set(1), vec_mul(step, p->ridge))), v);
    }
    const vec bent = vec_mul(step, vec_mul(p->omega, p->inv_kappa));
    if (vec_bits(vec_less(bent, vec_set(1 - 1e-6))) == 0xff)
        return penalty_prox_convex(p, v, step, bent);
    return penalty_prox_concave(p, v, step, vec_zero(), vec_zero(), false);
}

#endif
