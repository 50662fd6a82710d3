/*
 * One link on eight numbers at once (docs/algorithm.md, "One link: two vectors, not five"), with Gamma = -Lambda:
 *
 *     v = z - Lambda/sigma,  Lambda = -grad R(q - z; mu(k-1))       the point of the child's prox
 *     a = w_child + over (w_child - z)                              w_child without over-relaxation
 *     e = prox of R(.; mu(k)) at (w_parent - a - 2 Lambda/sigma) with step 2/sigma
 *     z = (a + w_parent - e)/2,  q = (a + w_parent + e)/2
 *     u = sigma(k+1) q - grad R(q - z; mu(k))                       the message to the parent
 *
 * Coefficients are vectors: eight clients with different counters, or one link with equal lanes.
 *
 * Numbers of z and q below LINK_TINY become 0 in every LINK_SWEEP-th step of a link. A coordinate that a prior holds at
 * 0 shrinks from step to step; without this rule it ends as a subnormal number, with which some processors are slow.
 * Between two sweeps no number falls from LINK_TINY to a subnormal one unless it shrinks to 1/197 in every step.
 */
#ifndef HFSAD_CORE_LINK_VEC_H
#define HFSAD_CORE_LINK_VEC_H

#include "core/precision.h"
#include "math/penalty_vec.h"

#define LINK_TINY 0x1p-900 /* 1.2e-271: the product of such a number with any coefficient is a normal number */
enum { LINK_SWEEP = 16 };

/* a, or 0 with the sign of a if |a| is below the limit. */
VEC_FN vec link_cut(vec a, vec limit)
{
    return vec_select(vec_less(vec_abs(a), limit), vec_copysign(vec_zero(), a), a);
}

/* LINK_TINY if the counter is a multiple of LINK_SWEEP, otherwise 0. Adding 2^52 rounds to a whole number. */
VEC_FN vec link_limit(vec k)
{
    const vec share = vec_mul(k, vec_set(1.0 / LINK_SWEEP)), big = vec_set(0x1p52);
    const vec rest = vec_sub(share, vec_sub(vec_add(share, big), big));
    return vec_select(vec_less(vec_abs(rest), vec_set(0.5 / LINK_SWEEP)), vec_set(LINK_TINY), vec_zero());
}

#if !defined(HFSAD_VEC_CUDA) /* on a device, r(k) is an argument */
/* r(k). Lanes beyond the turn are computed one after the other. */
VEC_FN vec schedule_root(const hfsad_schedule *s, vec k)
{
    const vec root = vec_sqrt(k);
    if (!(s->growth > 0) || !vec_bits(vec_less(vec_set(s->turn), k)))
        return root;
    double counter[VEC_LANES], grown[VEC_LANES] = {0};
    vec_store(counter, k);
    for (int i = 0; i < VEC_LANES; i++) {
        const bool again = i > 0 && counter[i] == counter[i - 1];
        grown[i] = again ? grown[i - 1] : hfsad_schedule_root(s, (uint64_t)fmax(counter[i], 0));
    }
    return vec_load(grown);
}

/* 1/mu(k) = r(k)/alpha is finite for k = 0 too; the multiplier is 0 there. */
VEC_FN vec schedule_inv_mu(const hfsad_schedule *s, vec k)
{
    return vec_div(schedule_root(s, k), vec_set(s->alpha));
}

VEC_FN vec schedule_sigma(const hfsad_schedule *s, vec k)
{
    return vec_mul(vec_set(s->c), schedule_root(s, k));
}

#endif

typedef struct {
    vec sigma, inv_sigma;
    vec inv_mu_before; /* 1/mu that belongs to the multiplier held in z and q */
    vec step;          /* 2/sigma */
    vec mu, inv_mu;
    vec pull, ratio; /* linear penalty: step * slope, mu/(mu + pull) */
    vec over;
    vec limit;    /* numbers of z and q below it become 0; see LINK_TINY */
    bool relaxes; /* over is not 0 */
    bool sweeps;  /* limit is not 0 in some lane */
} link_step_vec;

/* k: the counter after its increment; root, before: r of that counter and of the previous one */
VEC_FN link_step_vec link_step_by(const hfsad_schedule *s, const penalty_vec *p, vec k, vec root, vec before)
{
    const vec one = vec_set(1);
    link_step_vec c;
    c.sigma = vec_mul(vec_set(s->c), root);
    c.inv_sigma = vec_div(one, c.sigma);
    c.inv_mu_before = vec_div(before, vec_set(s->alpha));
    c.step = vec_add(c.inv_sigma, c.inv_sigma);
    c.mu = vec_div(vec_set(s->alpha), root);
    c.inv_mu = vec_div(root, vec_set(s->alpha));
    c.pull = vec_mul(c.step, p->slope);
    c.ratio = vec_div(c.mu, vec_add(c.mu, c.pull));
    c.over = vec_set(s->over);
    c.limit = link_limit(k);
    c.relaxes = s->over != 0;
    c.sweeps = vec_bits(vec_less(vec_zero(), c.limit)) != 0;
    return c;
}

#if !defined(HFSAD_VEC_CUDA)
VEC_FN link_step_vec link_step_of(const hfsad_schedule *s, const penalty_vec *p, vec k)
{
    return link_step_by(s, p, k, schedule_root(s, k), schedule_root(s, vec_sub(k, vec_set(1))));
}
#endif

/* v = z - Lambda/sigma */
VEC_FN vec link_centre(const link_step_vec *c, const penalty_vec *p, vec z, vec q)
{
    return vec_fma(penalty_gradient(p, vec_sub(q, z), c->inv_mu_before), c->inv_sigma, z);
}

/* The point at which e is the prox; sets *a (see above). */
VEC_FN vec link_target(const link_step_vec *c, bool relaxes, vec v, vec w_child, vec w_parent, vec z, vec *a)
{
    const vec shift = vec_sub(z, v); /* Lambda/sigma */
    *a = relaxes ? vec_fma(c->over, vec_sub(w_child, z), w_child) : w_child;
    return vec_fnma(vec_set(2), shift, vec_sub(w_parent, *a));
}

/* Sets z and q from e. */
VEC_FN void link_place(const link_step_vec *c, bool sweeps, vec a, vec w_parent, vec e, vec *z, vec *q)
{
    const vec half = vec_set(0.5), middle = vec_mul(half, vec_add(a, w_parent));
    *z = vec_fnma(half, e, middle);
    *q = vec_fma(half, e, middle);
    if (sweeps) {
        *z = link_cut(*z, c->limit);
        *q = link_cut(*q, c->limit);
    }
}

/* precision_round on eight numbers. */
VEC_FN vec link_short(vec split, vec a)
{
    const vec big = vec_mul(split, a), high = vec_sub(big, vec_sub(big, a)), size = vec_abs(high);
    const vec finite = vec_select(vec_less(size, vec_set(PRECISION_TINY)), vec_zero(), high);
    return vec_select(vec_less(vec_set(PRECISION_MOST), size), vec_copysign(vec_set(INFINITY), high), finite);
}

/* A link that a step has formed. */
VEC_FN void link_shorten(vec split, vec *z, vec *q)
{
    *z = link_short(split, *z);
    *q = vec_add(*z, link_short(split, vec_sub(*q, *z)));
}

/* relaxes, sweeps: the members of c, or the constant false if the caller knows that the member is false. */
VEC_FN void link_copies(const link_step_vec *c, const penalty_vec *p, bool relaxes, bool sweeps, vec v, vec w_child,
                        vec w_parent, vec *z, vec *q)
{
    vec a;
    const vec t = link_target(c, relaxes, v, w_child, w_parent, *z, &a);
    const vec e = penalty_is_linear(p->form) ? penalty_prox_linear(t, c->pull, c->ratio)
                                             : penalty_prox_bent(p, t, c->step, c->mu, c->inv_mu);
    link_place(c, sweeps, a, w_parent, e, z, q);
}

/* u from z and q alone: sigma = sigma(k+1), inv_mu = 1/mu(k) */
VEC_FN vec link_up(const penalty_vec *p, vec sigma, vec inv_mu, vec z, vec q)
{
    if (penalty_is_linear(p->form)) {
        const vec rho = vec_unit(vec_mul(vec_sub(q, z), inv_mu));
        return vec_fnma(p->slope, rho, vec_mul(sigma, q));
    }
    return vec_sub(vec_mul(sigma, q), penalty_gradient(p, vec_sub(q, z), inv_mu));
}

#endif
