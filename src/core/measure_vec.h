/* What one number of a link adds to the figures, for eight numbers at once; a device compiles this file too. */
#ifndef HFSAD_CORE_MEASURE_VEC_H
#define HFSAD_CORE_MEASURE_VEC_H

#include "math/penalty_vec.h"

typedef struct {
    vec penalty, smoothing, primal, gap, w, zq, multiplier;
} measure_vec;

/* mu = 0: the link has not stepped yet, so nothing is smoothed */
VEC_FN void measure_element(measure_vec *t, const penalty_vec *p, vec mu, vec inv_mu, vec w, vec z, vec q, vec parent,
                            vec root)
{
    const vec apart = vec_abs(vec_sub(w, parent)), dz = vec_sub(w, z), dq = vec_sub(parent, q);
    const vec lambda = penalty_gradient(p, vec_sub(q, z), inv_mu);
    t->penalty = vec_add(t->penalty, penalty_exact(p, apart));
    t->smoothing = vec_add(t->smoothing, penalty_smoothing(p, apart, mu, inv_mu));
    t->primal = vec_add(t->primal, vec_add(vec_mul(dz, dz), vec_mul(dq, dq)));
    t->gap = vec_max(t->gap, vec_abs(vec_sub(w, root)));
    t->w = vec_add(t->w, vec_add(vec_mul(w, w), vec_mul(parent, parent)));
    t->zq = vec_add(t->zq, vec_add(vec_mul(z, z), vec_mul(q, q)));
    t->multiplier = vec_add(t->multiplier, vec_mul(lambda, lambda));
}

VEC_FN measure_vec measure_zero(void)
{
    const vec o = vec_zero();
    const measure_vec t = {o, o, o, o, o, o, o};
    return t;
}

#endif
