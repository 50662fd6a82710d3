/* The kernels, written once over vec.h; kernels_plain.c, kernels_avx2.c and kernels_avx512.c include this file. */
#include "core/kernels.h"
#include "core/link_vec.h"
#include "math/box.h"
#include "math/losses.h"

#include <math.h>
#include <string.h>

/* Figures are summed leaf by leaf, in the order of a node that receives the leaves one at a time. */
VEC_FN void add_lanes(double *sum, vec a)
{
    double lane[VEC_LANES];
    vec_store(lane, a);
    for (int i = 0; i < VEC_LANES; i++)
        *sum += lane[i];
}

/* Prefetches data that is needed soon into the second-level cache. Past the end of an array the hint has no effect. */
VEC_FN void soon(const double *p)
{
    __builtin_prefetch(p, 0, 2);
}

#include "core/block_body.h"

/* Elements m … m+7 of a row; fewer at its end. */
VEC_FN vec row_load(const double *p, size_t m, size_t M)
{
    return M - m >= VEC_LANES ? vec_load(p + m) : vec_load_part(p + m, M - m);
}

VEC_FN void row_store(double *p, vec a, size_t m, size_t M)
{
    if (M - m >= VEC_LANES)
        vec_store(p + m, a);
    else
        vec_store_part(p + m, a, M - m);
}

/* Elements past the end of the row are 0, because a concave link's prox at 0 need not be 0. */
VEC_FN vec row_cut(vec a, size_t m, size_t M)
{
    return M - m >= VEC_LANES ? a : vec_select(vec_mask((1u << (M - m)) - 1), a, vec_zero());
}

#include "core/linear_body.h"
#include "core/rows_body.h"

#include "core/group_body.h"

/* If the loss's prox at centre leaves the box: writes the prox in the box to w and returns true. `most`: the largest
 * |centre|. */
static bool row_box(const scalar_loss *law, size_t M, const double *x, double n, const double *centre, double most,
                    vec a, double sigma, double *w, double *scratch)
{
    const hfsad_loss *loss = law->loss;
    if (!(loss->box < (most + fabs(vec_first(a)) * sqrt(n)) * (1 + 1e-12))) /* the bound of block_outside */
        return false;
    vec reach = vec_zero();
    for (size_t m = 0; m < M; m += VEC_LANES)
        reach = vec_max(reach, vec_abs(vec_fma(a, row_load(x, m, M), row_load(centre, m, M))));
    if (!(loss->box < vec_largest(reach)))
        return false;
    box_prox(law, M, x, centre, sigma, w, scratch);
    return true;
}

/* The link step on a row, with Lambda from z and q. Returns sigma^2 (|dz|^2 + |dq|^2). */
static double row_link(const link_step_vec *c, const penalty_vec *p, size_t M, double *z, double *q,
                       const double *w_child, const double *w_parent)
{
    vec change = vec_zero();
    if (p->group)
        return group_link(c, p, M, z, q, w_child, w_parent);
    for (size_t m = 0; m < M; m += VEC_LANES) {
        const vec z_old = row_load(z, m, M), q_old = row_load(q, m, M);
        vec z_new = z_old, q_new;
        link_copies(c, p, c->relaxes, c->sweeps, link_centre(c, p, z_old, q_old), row_load(w_child, m, M),
                    row_load(w_parent, m, M), &z_new, &q_new);
        const vec dz = vec_sub(z_new, z_old), dq = vec_sub(q_new, q_old);
        change = vec_add(change, row_cut(vec_fma(dz, dz, vec_mul(dq, dq)), m, M));
        row_store(z, z_new, m, M);
        row_store(q, q_new, m, M);
    }
    return vec_first(vec_mul(c->sigma, c->sigma)) * vec_sum(change);
}

/* A leaf's row between the two halves of a step. */
typedef struct {
    const double *x, *centre, *w_parent;
    double *z, *q;
    double *w;   /* NULL: not kept */
    double *sum; /* u is added to it; may be NULL */
    bool boxed;  /* w already holds the prox */
    vec a, up_sigma, up_inv_mu;
    double split; /* of leaf_run */
} row_half;

/* Features m to end - 1, at most eight: w = centre + a x, the link step and the message. Returns `change` with
 * |dz|^2 + |dq|^2 added; `plain`: without it, for a linear link that neither relaxes nor sweeps, outside of no box,
 * with a sum. */
VEC_FN vec row_features(const row_half *r, const link_step_vec *c, const penalty_vec *p, size_t m, size_t end,
                        bool plain, vec change)
{
    const vec z_old = row_load(r->z, m, end), v = row_load(r->centre, m, end);
    const vec w = !plain && r->boxed ? row_load(r->w, m, end) : vec_fma(r->a, row_load(r->x, m, end), v);
    vec z = z_old, q;
    link_copies(c, p, !plain && c->relaxes, !plain && c->sweeps, v, w, row_load(r->w_parent, m, end), &z, &q);
    if (!plain && r->split > 0)
        link_shorten(vec_set(r->split), &z, &q);
    if (!plain) {
        const vec dz = vec_sub(z, z_old), dq = vec_sub(q, row_load(r->q, m, end));
        change = vec_add(change, row_cut(vec_fma(dz, dz, vec_mul(dq, dq)), m, end));
    }
    row_store(r->z, z, m, end);
    row_store(r->q, q, m, end);
    if (r->w)
        row_store(r->w, w, m, end);
    if (plain || r->sum)
        row_store(r->sum, vec_add(row_load(r->sum, m, end), link_up(p, r->up_sigma, r->up_inv_mu, z, q)), m, end);
    return change;
}

/* All features of a row. Returns |dz|^2 + |dq|^2. */
VEC_FN double row_pass(const row_half *h, const link_step_vec *step, const penalty_vec *penalty, size_t M, bool plain)
{
    const row_half r = *h; /* copies in registers: see centre_pass */
    const link_step_vec c = *step;
    const penalty_vec p = plain ? linear_penalty(penalty) : *penalty;
    vec change = vec_zero();
    size_t m = 0;
    for (; m + VEC_LANES <= M; m += VEC_LANES) {
        if (plain) {
            soon(r.z + M + m);
            soon(r.q + M + m);
        }
        change = row_features(&r, &c, &p, m, m + VEC_LANES, plain, change);
    }
    if (m < M)
        change = row_features(&r, &c, &p, m, M, plain, change);
    return plain ? 0 : vec_sum(change);
}

BLOCK_PASS void row_update_plain(const row_half *h, const link_step_vec *c, const penalty_vec *p, size_t M)
{
    (void)row_pass(h, c, p, M, true);
}

/* Returns sigma^2 (|dz|^2 + |dq|^2). */
BLOCK_PASS double row_update_any(const row_half *h, const link_step_vec *c, const penalty_vec *p, size_t M)
{
    return vec_first(vec_mul(c->sigma, c->sigma)) * row_pass(h, c, p, M, false);
}

/* The same for a link of norms, which needs all of w before the link step; own: room for M numbers. */
static double group_update(const row_half *h, const link_step_vec *c, const penalty_vec *p, size_t M, double *own)
{
    for (size_t m = 0; m < M && !h->boxed; m += VEC_LANES)
        row_store(own, vec_fma(h->a, row_load(h->x, m, M), row_load(h->centre, m, M)), m, M);
    const double dual = group_link(c, p, M, h->z, h->q, own, h->w_parent);
    const vec pull = group_pull(p, M, h->z, h->q, h->up_inv_mu);
    for (size_t m = 0; m < M && h->sum; m += VEC_LANES) {
        const vec u = row_up(p, pull, h->up_sigma, h->up_inv_mu, row_load(h->z, m, M), row_load(h->q, m, M));
        row_store(h->sum, vec_add(row_load(h->sum, m, M), u), m, M);
    }
    return dual;
}

/* Working vectors of a leaf's step on a row: centre and own have M numbers each. */
typedef struct {
    double *centre, *own, *box;
} row_space;

/* <x, w_parent>, summed as in block_anchors. */
VEC_FN double row_anchor(const double *x, const double *w_parent, size_t M)
{
    vec part = vec_zero();
    for (size_t m = 0; m < M; m += VEC_LANES)
        part = vec_fma(row_load(x, m, M), row_load(w_parent, m, M), part);
    return vec_sum(part);
}

/* centre = z - Lambda/sigma, <x, centre> in eight partial sums, and the largest |centre| of each lane. */
VEC_FN centre_facts row_centre_pass(const double *x, const double *z, const double *q, const link_step_vec *step,
                                    const penalty_vec *penalty, vec pull, size_t M, double *centre)
{
    const link_step_vec c = *step;
    const penalty_vec p = *penalty;
    vec part = vec_zero(), most = vec_zero();
    size_t m = 0;
    for (; m + VEC_LANES <= M; m += VEC_LANES) {
        soon(x + M + m); /* the next leaf's vectors follow; z and q are asked for in the second pass */
        const vec v = row_centre(&c, &p, pull, vec_load(z + m), vec_load(q + m));
        vec_store(centre + m, v);
        part = vec_fma(vec_load(x + m), v, part);
        most = vec_max(most, vec_abs(v));
    }
    if (m < M) {
        const vec v = row_centre(&c, &p, pull, row_load(z, m, M), row_load(q, m, M));
        row_store(centre, v, m, M);
        part = vec_fma(row_load(x, m, M), v, part);
        most = vec_max(most, row_cut(vec_abs(v), m, M));
    }
    return (centre_facts){part, most};
}

BLOCK_PASS centre_facts row_centre_linear(const double *x, const double *z, const double *q, const link_step_vec *c,
                                          const penalty_vec *p, size_t M, double *centre)
{
    const penalty_vec linear = linear_penalty(p);
    return row_centre_pass(x, z, q, c, &linear, vec_zero(), M, centre);
}

/* One leaf step on plain rows. w: NULL or M numbers, out; sum: NULL or u is added to it. Returns sigma^2 (|dz|^2 +
 * |dq|^2), or 0 if the run does not want it. */
static double row_leaf_step(const leaf_run *run, const penalty_vec *p, size_t leaf, const row_space *space, double *w,
                            double *sum)
{
    const size_t M = run->M, at = leaf * M;
    const double *x = run->x + at, *z = run->z + at, *q = run->q + at, y = run->y[leaf], n = run->n[leaf];
    const hfsad_schedule *schedule = &run->rule->schedule;
    const vec k = vec_set(++run->k[leaf]);
    const link_step_vec c = link_step_of(schedule, p, k);
    const bool linear = penalty_is_linear(p->form) && !p->group;
    const centre_facts facts =
        linear ? row_centre_linear(x, z, q, &c, p, M, space->centre)
               : row_centre_pass(x, z, q, &c, p, group_pull(p, M, z, q, c.inv_mu_before), M, space->centre);
    row_half h = {
        .x = x,
        .centre = space->centre,
        .w_parent = run->w_parent,
        .z = run->z + at,
        .q = run->q + at,
        .w = w,
        .sum = sum,
        .up_sigma = schedule_sigma(schedule, vec_add(k, vec_set(1))),
        .up_inv_mu = c.inv_mu,
        .split = run->split,
    };
    const double anchor = run->majorant ? row_anchor(x, run->w_parent, M) : 0;
    const vec s0 = vec_set(vec_sum(facts.dot));
    h.a = run->majorant ? majorant_coefficient(vec_set(y), vec_set(n), vec_set(anchor), s0, c.inv_sigma)
                        : loss_coefficient(run->loss, vec_set(y), vec_set(n), s0, c.inv_sigma);
    const scalar_loss law = {run->loss, y, run->majorant ? &anchor : NULL};
    double *prox = w ? w : space->own;
    if (run->loss->box < INFINITY &&
        row_box(&law, M, x, n, space->centre, vec_largest(facts.most), h.a, vec_first(c.sigma), prox, space->box)) {
        h.boxed = true;
        h.w = prox;
    }
    if (p->group)
        return group_update(&h, &c, p, M, prox);
    if (!linear || run->want_dual || run->split > 0 || c.relaxes || c.sweeps || h.boxed || !sum)
        return row_update_any(&h, &c, p, M);
    row_update_plain(&h, &c, p, M);
    return 0;
}

/* Writes u to the M numbers at `to`, or adds it to them; returns sigma(k+1). */
VEC_FN double row_message(const hfsad_schedule *schedule, const penalty_vec *p, const hfsad_link *link, size_t M,
                          double *to, bool added)
{
    const vec k = vec_set(link->k), sigma = schedule_sigma(schedule, vec_add(k, vec_set(1)));
    const vec inv_mu = schedule_inv_mu(schedule, k), pull = group_pull(p, M, link->z, link->q, inv_mu);
    for (size_t m = 0; m < M; m += VEC_LANES) {
        const vec u = row_up(p, pull, sigma, inv_mu, row_load(link->z, m, M), row_load(link->q, m, M));
        row_store(to, added ? vec_add(row_load(to, m, M), u) : u, m, M);
    }
    return vec_first(sigma);
}

static void leaf_step(leaf_run *run)
{
    const penalty_vec p = penalty_vec_of(&run->rule->penalty);
    const row_space space = {run->scratch, NULL, run->scratch + run->M};
    (void)row_leaf_step(run, &p, 0, &space, run->w, NULL);
}

static void loss_prox(const hfsad_loss *loss, size_t M, const double *x, double y, double n, const double *v,
                      double sigma, double *w, double *scratch)
{
    vec part = vec_zero(), most = vec_zero();
    for (size_t m = 0; m < M; m += VEC_LANES) {
        const vec at = row_load(v, m, M);
        part = vec_fma(row_load(x, m, M), at, part);
        most = vec_max(most, vec_abs(at));
    }
    const vec a = loss_coefficient(loss, vec_set(y), vec_set(n), vec_set(vec_sum(part)), vec_set(1 / sigma));
    const scalar_loss law = {loss, y, NULL};
    if (loss->box < INFINITY && row_box(&law, M, x, n, v, vec_largest(most), a, sigma, w, scratch))
        return;
    for (size_t m = 0; m < M; m += VEC_LANES)
        row_store(w, vec_fma(a, row_load(x, m, M), row_load(v, m, M)), m, M);
}

static const hfsad_penalty no_penalty = {.kind = HFSAD_PENALTY_NONE, .lambda = 1, .gamma = 3};

static double link_message(const hfsad_link_rule *rule, const hfsad_link *link, size_t M, double *u)
{
    const penalty_vec p = penalty_vec_of(&rule->penalty);
    const size_t tied = M - rule->penalty.free;
    if (tied < M) {
        const penalty_vec none = penalty_vec_of(&no_penalty);
        const hfsad_link rest = {link->z + tied, link->q + tied, link->k};
        (void)row_message(&rule->schedule, &none, &rest, M - tied, u + tied, false);
    }
    return row_message(&rule->schedule, &p, link, tied, u, false);
}

static void add(size_t M, double *sum, const double *term)
{
    for (size_t m = 0; m < M; m += VEC_LANES)
        row_store(sum, vec_add(row_load(sum, m, M), row_load(term, m, M)), m, M);
}

static void leaf_run_rows(leaf_run *run)
{
    const size_t M = run->M;
    const penalty_vec p = penalty_vec_of(&run->rule->penalty);
    const row_space space = {run->scratch, run->scratch + M, run->scratch + 2 * M};
    for (size_t m = 0; m < M; m++)
        run->sum_u[m] = 0;
    run->sum_sigma = run->dual = 0;
    for (size_t leaf = 0; leaf < run->count; leaf++) {
        double *w = run->w ? run->w + leaf * M : NULL, dual = 0;
        const hfsad_link link = {run->z + leaf * M, run->q + leaf * M, run->k[leaf]};
        if (run->active && !run->active[leaf]) {
            run->sum_sigma += row_message(&run->rule->schedule, &p, &link, M, run->sum_u, true);
            continue;
        }
        for (uint32_t step = 1; step <= run->local_steps; step++)
            dual = row_leaf_step(run, &p, leaf, &space, w, step == run->local_steps ? run->sum_u : NULL);
        run->dual += dual;
        run->sum_sigma += hfsad_schedule_sigma(&run->rule->schedule, (uint64_t)run->k[leaf] + 1);
    }
}

/* Copies leaf i of a run in blocks to a run of one row, and back; rows: room for 4 M numbers. */
static leaf_run leaf_out(const leaf_run *run, size_t i, double *rows)
{
    const size_t M = run->M, first = i - i % VEC_LANES, left = run->count - first;
    const size_t width = left < VEC_LANES ? left : VEC_LANES, at = first * M + i - first;
    leaf_run one = *run;
    for (size_t m = 0; m < M; m++) {
        rows[m] = run->x[at + m * width];
        rows[M + m] = run->z[at + m * width];
        rows[2 * M + m] = run->q[at + m * width];
        rows[3 * M + m] = run->w ? run->w[at + m * width] : rows[M + m];
    }
    one.count = one.lanes = 1;
    one.x = rows;
    one.z = rows + M;
    one.q = rows + 2 * M;
    one.w = rows + 3 * M;
    one.y += i;
    one.n += i;
    one.k += i;
    return one;
}

static void leaf_back(leaf_run *run, size_t i, const leaf_run *one)
{
    const size_t M = run->M, first = i - i % VEC_LANES, left = run->count - first;
    const size_t width = left < VEC_LANES ? left : VEC_LANES, at = first * M + i - first;
    for (size_t m = 0; m < M; m++) {
        run->z[at + m * width] = one->z[m];
        run->q[at + m * width] = one->q[m];
        if (run->w)
            run->w[at + m * width] = one->w[m];
    }
}

/* Links of norms: the leaves of a block one after the other, with sums in the order of blocks. */
static void leaf_run_groups(leaf_run *run)
{
    const size_t M = run->M, row = M * VEC_LANES;
    const penalty_vec p = penalty_vec_of(&run->rule->penalty);
    double *sum = run->scratch, *rows = sum + row, *u = rows + 4 * M, sigma[VEC_LANES] = {0};
    const row_space space = {u + M, u + 2 * M, run->scratch + LEAF_RUN_ROWS * row};
    memset(sum, 0, row * sizeof *sum);
    run->dual = 0;
    for (size_t i = 0; i < run->count; i++) {
        leaf_run one = leaf_out(run, i, rows);
        const hfsad_link link = {one.z, one.q, *one.k};
        memset(u, 0, M * sizeof *u);
        if (run->active && !run->active[i]) {
            sigma[i % VEC_LANES] += row_message(&run->rule->schedule, &p, &link, M, u, true);
        } else {
            double dual = 0;
            for (uint32_t step = 1; step <= run->local_steps; step++)
                dual = row_leaf_step(&one, &p, 0, &space, one.w, step == run->local_steps ? u : NULL);
            run->dual += dual;
            sigma[i % VEC_LANES] += hfsad_schedule_sigma(&run->rule->schedule, (uint64_t)*one.k + 1);
            leaf_back(run, i, &one);
        }
        for (size_t m = 0; m < M; m++)
            sum[m * VEC_LANES + i % VEC_LANES] += u[m];
    }
    for (size_t m = 0; m < M; m++)
        run->sum_u[m] = vec_sum(vec_load(sum + m * VEC_LANES));
    run->sum_sigma = vec_sum(vec_load(sigma));
}

static void leaf_run_any(leaf_run *run)
{
    if (run->lanes == VEC_LANES && run->count > 1 && penalty_kind_of(&run->rule->penalty)->group)
        leaf_run_groups(run);
    else if (run->lanes == VEC_LANES && run->count > 1) /* a block of one leaf is a plain row */
        leaf_run_blocks(run);
    else
        leaf_run_rows(run);
}

/* The tied coordinates, then the free ones. Nothing ties a free coordinate to the parent: both copies are the child's
 * number, without a multiplier and a residual, and the parent's number never enters them. */
static double link_step(const hfsad_link_rule *rule, hfsad_link *link, size_t M, const double *w_child,
                        const double *w_parent)
{
    const penalty_vec p = penalty_vec_of(&rule->penalty);
    const link_step_vec c = link_step_of(&rule->schedule, &p, vec_set(link->k));
    const size_t tied = M - rule->penalty.free;
    for (size_t m = tied; m < M; m++)
        link->z[m] = link->q[m] = w_child[m];
    return row_link(&c, &p, tied, link->z, link->q, w_child, w_parent);
}

/* centre = z - Lambda/sigma */
static void link_centres(const hfsad_link_rule *rule, const hfsad_link *link, size_t M, double *centre)
{
    const penalty_vec p = penalty_vec_of(&rule->penalty);
    const link_step_vec c = link_step_of(&rule->schedule, &p, vec_set(link->k));
    const size_t tied = M - rule->penalty.free;
    const vec pull = group_pull(&p, tied, link->z, link->q, c.inv_mu_before);
    for (size_t m = 0; m < tied; m += VEC_LANES)
        row_store(centre, row_centre(&c, &p, pull, row_load(link->z, m, tied), row_load(link->q, m, tied)), m, tied);
    for (size_t m = tied; m < M; m++) /* a free coordinate has no penalty and no multiplier */
        centre[m] = link->z[m];
}

static double rows_step(const rows_leaf *leaf)
{
    const size_t M = leaf->problem.M;
    hfsad_link link = {leaf->z, leaf->q, ++*leaf->k};
    link_centres(leaf->rule, &link, M, leaf->centre);
    const double sigma = hfsad_schedule_sigma(&leaf->rule->schedule, link.k);
    rows_prox(&leaf->problem, leaf->majorant ? leaf->w_parent : NULL, leaf->centre, sigma,
              hfsad_schedule_mu(&leaf->rule->schedule, link.k), leaf->w);
    return link_step(leaf->rule, &link, M, leaf->w, leaf->w_parent);
}

#include "core/inner_body.h"
#include "core/measure_body.h"

const kernel_table KERNELS = {
    .name = KERNELS_NAME,
    .leaf_run = leaf_run_any,
    .leaf_step = leaf_step,
    .loss_prox = loss_prox,
    .rows_step = rows_step,
    .rows_loss = rows_loss,
    .rows_subgradient = rows_subgradient,
    .leaf_measure = leaf_measure,
    .link_step = link_step,
    .link_message = link_message,
    .link_measure = link_measure,
    .inner_update = inner_update,
    .prior_value = prior_value,
    .add = add,
    .dot = linear_dot,
    .dot4 = linear_dot4,
    .add_scaled = linear_add,
    .add4 = linear_add4,
    .add_terms = linear_add_terms,
};
