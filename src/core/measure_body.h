/* What links and clients add to the figures of a row of the trace, written once over vec.h; kernels_body.h includes
 * this file. */
#include "core/measure_vec.h"

VEC_FN void measure_mask(measure_vec *t, vmask there)
{
    const vec o = vec_zero();
    *t = (measure_vec){vec_select(there, t->penalty, o),   vec_select(there, t->smoothing, o),
                       vec_select(there, t->primal, o),    vec_select(there, t->gap, o),
                       vec_select(there, t->w, o),         vec_select(there, t->zq, o),
                       vec_select(there, t->multiplier, o)};
}

static void measure_add(const measure_vec *t, link_sums *sums)
{
    sums->penalty += vec_sum(t->penalty);
    sums->smoothing += vec_sum(t->smoothing);
    sums->primal += vec_sum(t->primal);
    sums->gap = fmax(sums->gap, vec_largest(t->gap));
    sums->size_w += vec_sum(t->w);
    sums->size_zq += vec_sum(t->zq);
    sums->size_multiplier += 2 * vec_sum(t->multiplier); /* Lambda and Gamma */
}

/* Eight leaves side by side. */
static void measure_add_lanes(const measure_vec *t, link_sums *sums)
{
    add_lanes(&sums->penalty, t->penalty);
    add_lanes(&sums->smoothing, t->smoothing);
    add_lanes(&sums->primal, t->primal);
    sums->gap = fmax(sums->gap, vec_largest(t->gap));
    add_lanes(&sums->size_w, t->w);
    add_lanes(&sums->size_zq, t->zq);
    add_lanes(&sums->size_multiplier, vec_mul(vec_set(2), t->multiplier));
}

/* Order of summation of a row: element m in partial sum m mod 8. */
#define MEASURE_FIELD(field)                                                                                           \
    do {                                                                                                               \
        vec p[VEC_LANES];                                                                                              \
        for (int i = 0; i < VEC_LANES; i++)                                                                            \
            p[i] = part[i].field;                                                                                      \
        t.field = vec_sum_of(p);                                                                                       \
    } while (0)

VEC_FN measure_vec measure_sum_of(const measure_vec part[VEC_LANES])
{
    measure_vec t = part[0];
    MEASURE_FIELD(penalty);
    MEASURE_FIELD(smoothing);
    MEASURE_FIELD(primal);
    MEASURE_FIELD(w);
    MEASURE_FIELD(zq);
    MEASURE_FIELD(multiplier);
    for (int i = 1; i < VEC_LANES; i++)
        t.gap = vec_max(t.gap, part[i].gap);
    return t;
}
#undef MEASURE_FIELD

VEC_FN vec measure_mu(const hfsad_schedule *s, vec k)
{
    return vec_select(vec_less(vec_zero(), k), vec_div(vec_set(s->alpha), schedule_root(s, k)), vec_zero());
}

static void measure_block(const leaf_run *run, const penalty_vec *p, size_t first, const double *w0, link_sums *sums)
{
    const size_t M = run->M, left = run->count - first, width = left < VEC_LANES ? left : VEC_LANES, at = first * M;
    const double *ws = (run->w ? run->w : run->z) + at;
    uint32_t counters[VEC_LANES] = {0};
    memcpy(counters, run->k + first, width * sizeof *counters);
    const vec k = vec_load_counters(counters), y = vec_load_part(run->y + first, width);
    const vec mu = measure_mu(&run->rule->schedule, k), inv_mu = schedule_inv_mu(&run->rule->schedule, k);
    const vmask there = vec_mask((1u << width) - 1);
    measure_vec part[VEC_LANES];
    vec s[VEC_LANES], s0[VEC_LANES];
    for (size_t i = 0; i < VEC_LANES; i++) {
        part[i] = measure_zero();
        s[i] = s0[i] = vec_zero();
    }
    for (size_t m = 0; m < M; m++) {
        const size_t i = at + m * width, j = m % VEC_LANES;
        const vec x = vec_load_part(run->x + i, width), w = vec_load_part(ws + m * width, width), root = vec_set(w0[m]);
        s[j] = vec_fma(x, w, s[j]);
        s0[j] = vec_fma(x, root, s0[j]);
        measure_element(&part[j], p, mu, inv_mu, w, vec_load_part(run->z + i, width), vec_load_part(run->q + i, width),
                        vec_set(run->w_parent[m]), root);
    }
    measure_vec t = measure_sum_of(part);
    measure_mask(&t, there);
    measure_add_lanes(&t, sums);
    add_lanes(&sums->loss, vec_select(there, loss_value(run->loss, y, vec_sum_of(s)), vec_zero()));
    add_lanes(&sums->consensus_loss, vec_select(there, loss_value(run->loss, y, vec_sum_of(s0)), vec_zero()));
}

static void link_measure(const hfsad_link_rule *rule, const hfsad_link *link, size_t M, const double *w_child,
                         const double *w_parent, const double *w0, link_sums *sums)
{
    const penalty_vec p = penalty_vec_of(&rule->penalty), each = p.group ? penalty_vec_of(&no_penalty) : p;
    const vec k = vec_set(link->k), mu = measure_mu(&rule->schedule, k), inv_mu = schedule_inv_mu(&rule->schedule, k);
    measure_vec t = measure_zero();
    M -= rule->penalty.free; /* a free coordinate has no residual */
    for (size_t m = 0; m < M; m += VEC_LANES) {
        measure_vec part = measure_zero();
        measure_element(&part, &each, mu, inv_mu, row_load(w_child, m, M), row_load(link->z, m, M),
                        row_load(link->q, m, M), row_load(w_parent, m, M), row_load(w0, m, M));
        if (M - m < VEC_LANES) /* |0|_mu is mu/2, not 0, so that elements past the end are masked out */
            measure_mask(&part, vec_mask((1u << (M - m)) - 1));
        t = (measure_vec){vec_add(t.penalty, part.penalty),
                          vec_add(t.smoothing, part.smoothing),
                          vec_add(t.primal, part.primal),
                          vec_max(t.gap, part.gap),
                          vec_add(t.w, part.w),
                          vec_add(t.zq, part.zq),
                          vec_add(t.multiplier, part.multiplier)};
    }
    measure_add(&t, sums);
    if (p.group) {
        const vec apart = vec_set(group_norm(M, w_child, w_parent)), copies = vec_set(group_norm(M, link->q, link->z));
        const double lambda = vec_first(penalty_gradient(&p, copies, inv_mu));
        sums->penalty += vec_first(penalty_exact(&p, apart));
        sums->smoothing += vec_first(penalty_smoothing(&p, apart, mu, inv_mu));
        sums->size_multiplier += 2 * lambda * lambda;
    }
}

static void measure_row(const leaf_run *run, size_t leaf, const double *w0, link_sums *sums)
{
    const size_t M = run->M, at = leaf * M;
    const double *w = (run->w ? run->w : run->z) + at;
    const hfsad_link link = {run->z + at, run->q + at, run->k[leaf]};
    vec s = vec_zero(), s0 = vec_zero();
    for (size_t m = 0; m < M; m += VEC_LANES) {
        const vec x = row_load(run->x + at, m, M);
        s = vec_fma(x, row_load(w, m, M), s);
        s0 = vec_fma(x, row_load(w0, m, M), s0);
    }
    const vec y = vec_set(run->y[leaf]);
    sums->loss += vec_first(loss_value(run->loss, y, vec_set(vec_sum(s))));
    sums->consensus_loss += vec_first(loss_value(run->loss, y, vec_set(vec_sum(s0))));
    link_measure(run->rule, &link, M, w, run->w_parent, w0, sums);
}

static void leaf_measure(const leaf_run *run, const double *w0, link_sums *sums)
{
    const penalty_vec p = penalty_vec_of(&run->rule->penalty);
    if (run->lanes == VEC_LANES && p.group)
        for (size_t leaf = 0; leaf < run->count; leaf++) {
            const leaf_run one = leaf_out(run, leaf, run->scratch);
            measure_row(&one, 0, w0, sums);
        }
    else if (run->lanes == VEC_LANES)
        for (size_t first = 0; first < run->count; first += VEC_LANES)
            measure_block(run, &p, first, w0, sums);
    else
        for (size_t leaf = 0; leaf < run->count; leaf++)
            measure_row(run, leaf, w0, sums);
}
