/* The kernels, written once over vec.h; kernels_plain.c, kernels_avx2.c and kernels_avx512.c include this. */
#include "core/kernels.h"
#include "core/link_vec.h"
#include "math/box.h"
#include "math/losses.h"

#include <math.h>
#include <string.h>

/* Figures are summed leaf by leaf: the same order as for a node that receives the leaves one at a time. */
VEC_FN void add_lanes(double *sum, vec a)
{
    double lane[VEC_LANES];
    vec_store(lane, a);
    for (int i = 0; i < VEC_LANES; i++)
        *sum += lane[i];
}

/* One block: pointers to its first element. */
typedef struct {
    const double *x;
    double *z, *q, *w;
    vec y, n, k;
} block;

/* Prefetches data that is needed soon into the second-level cache. Past the end of an array the hint has no effect. */
VEC_FN void soon(const double *p)
{
    __builtin_prefetch(p, 0, 2);
}

/* centre[m] = z - Lambda/sigma; <x, centre>, element m in partial sum m mod 8, and the largest |centre| of each lane.
 */
typedef struct {
    vec dot, most;
} centre_facts;

VEC_FN centre_facts block_centre(const block *at, const link_step_vec *step, const penalty_vec *penalty, size_t M,
                                 double *centre)
{
    /* Copies in registers: otherwise a store through one pointer might change the target of another. */
    const double *x = at->x, *z = at->z, *q = at->q;
    const link_step_vec c = *step;
    const penalty_vec p = *penalty;
    vec part[VEC_LANES], most = vec_zero();
    for (int i = 0; i < VEC_LANES; i++)
        part[i] = vec_zero();
    size_t m = 0;
#define CENTRE_ELEMENT(i)                                                                                              \
    do {                                                                                                               \
        const size_t o = (m + (i)) * VEC_LANES;                                                                        \
        const vec v = link_centre(&c, &p, vec_load(z + o), vec_load(q + o));                                           \
        vec_store(centre + o, v);                                                                                      \
        part[i] = vec_fma(vec_load(x + o), v, part[i]);                                                                \
        most = vec_max(most, vec_abs(v));                                                                              \
    } while (0)
    for (; m + VEC_LANES <= M; m += VEC_LANES) {
        CENTRE_ELEMENT(0);
        CENTRE_ELEMENT(1);
        CENTRE_ELEMENT(2);
        CENTRE_ELEMENT(3);
        CENTRE_ELEMENT(4);
        CENTRE_ELEMENT(5);
        CENTRE_ELEMENT(6);
        CENTRE_ELEMENT(7);
    }
    for (size_t i = 0; m + i < M; i++)
        CENTRE_ELEMENT(i);
#undef CENTRE_ELEMENT
    return (centre_facts){vec_sum_of(part), most};
}

/* w of the lanes whose unconstrained prox leaves the box, into boxed (M * 8). */
static __attribute__((noinline)) void block_box(const block *b, const leaf_run *run, vec anchors, const double *centre,
                                                vec sigma, unsigned outside, double *boxed, double *scratch)
{
    const size_t M = run->M;
    double y[VEC_LANES], s[VEC_LANES], anchor[VEC_LANES];
    vec_store(y, b->y);
    vec_store(s, sigma);
    vec_store(anchor, anchors);
    double *x = scratch, *w = scratch + M;
    for (size_t i = 0; i < VEC_LANES; i++) {
        if (!(outside >> i & 1))
            continue;
        for (size_t m = 0; m < M; m++) {
            x[m] = b->x[m * VEC_LANES + i];
            w[m] = centre[m * VEC_LANES + i];
        }
        const scalar_loss law = {run->loss, y[i], run->majorant ? &anchor[i] : NULL};
        box_prox(&law, M, x, w, s[i], w, scratch + 2 * M);
        for (size_t m = 0; m < M; m++)
            boxed[m * VEC_LANES + i] = w[m];
    }
}

/* Which lanes' prox leaves the box. |centre + a x| <= |centre| + |a| |x|_2 says mostly at once that none does. */
VEC_FN unsigned block_outside(const block *b, const hfsad_loss *loss, size_t M, const double *centre, vec most,
                              vec coefficient)
{
    const vec bound = vec_set(loss->box);
    const vec reach = vec_fma(vec_abs(coefficient), vec_sqrt(b->n), most);
    if (!vec_bits(vec_less(bound, vec_mul(reach, vec_set(1 + 1e-12)))))
        return 0;
    most = vec_zero();
    for (size_t o = 0; o < M * VEC_LANES; o += VEC_LANES)
        most = vec_max(most, vec_abs(vec_fma(coefficient, vec_load(b->x + o), vec_load(centre + o))));
    return vec_bits(vec_less(bound, most));
}

/* <x, w_parent>, added up as in block_centre. */
VEC_FN vec block_anchors(const block *b, size_t M, const double *w_parent)
{
    vec part[VEC_LANES];
    for (int i = 0; i < VEC_LANES; i++)
        part[i] = vec_zero();
    for (size_t m = 0; m < M; m++)
        part[m % VEC_LANES] = vec_fma(vec_load(b->x + m * VEC_LANES), vec_set(w_parent[m]), part[m % VEC_LANES]);
    return vec_sum_of(part);
}

/* What the second pass needs besides the step's coefficients. */
typedef struct {
    vec coefficient;         /* of x in the prox */
    vmask active;            /* lanes that take part */
    vec up_sigma, up_inv_mu; /* of the counter after the round */
    bool last;               /* the last local step: the message is formed */
    vmask outside;           /* lanes whose w is in boxed */
    const double *boxed;
    vec dual; /* out: |dz|^2 + |dq|^2 of each lane, added up as on a row; not of a plain pass */
} block_pass;

/* w = centre + coefficient x (or boxed), the link step, and u. `plain`: all lanes take part, one step, no dual wanted,
 * no box touched. sweeps: that of the step, as a constant if possible. */
VEC_FN void block_update(const block *at, const link_step_vec *step, const penalty_vec *penalty, block_pass *pass,
                         size_t M, const double *w_parent, const double *centre, double *sum, bool plain, bool sweeps)
{
    const double *xs = at->x;
    double *zs = at->z, *qs = at->q, *ws = at->w;
    const link_step_vec c = *step;
    const penalty_vec p = *penalty;
    const vec coefficient = pass->coefficient, up_sigma = pass->up_sigma, up_inv_mu = pass->up_inv_mu;
    const vmask active = pass->active, outside = pass->outside;
    const double *boxed = pass->boxed;
    const bool last = plain || pass->last;
    const size_t ahead = 4 * M * VEC_LANES; /* four blocks on: measured best on rounds that come from memory */
    vec dual[VEC_LANES];
    for (int i = 0; i < VEC_LANES; i++)
        dual[i] = vec_zero();
    for (size_t m = 0, o = 0; m < M; m++, o += VEC_LANES) {
        if (plain) {
            soon(xs + o + ahead);
            soon(zs + o + ahead);
            soon(qs + o + ahead);
        }
        const vec v = vec_load(centre + o), z_old = vec_load(zs + o);
        vec w = vec_fma(coefficient, vec_load(xs + o), v), z = z_old, q;
        if (!plain)
            w = vec_select(outside, vec_load(boxed + o), w);
        link_copies(&c, &p, !plain && c.relaxes, sweeps, v, w, vec_set(w_parent[m]), &z, &q);
        if (!plain) {
            const vec q_old = vec_load(qs + o);
            z = vec_select(active, z, z_old);
            q = vec_select(active, q, q_old);
            const vec dz = vec_sub(z, z_old), dq = vec_sub(q, q_old);
            dual[m % VEC_LANES] = vec_add(dual[m % VEC_LANES], vec_fma(dz, dz, vec_mul(dq, dq)));
        }
        vec_store(zs + o, z);
        vec_store(qs + o, q);
        if (ws)
            vec_store(ws + o, plain ? w : vec_select(active, w, vec_load(ws + o)));
        if (last)
            vec_store(sum + o, vec_add(vec_load(sum + o), link_up(&p, up_sigma, up_inv_mu, z, q)));
    }
    if (!plain)
        pass->dual = vec_sum_of(dual);
}

/* What the blocks of a run share. */
typedef struct {
    penalty_vec p;
    double *sum; /* M partial sums of u in eight lanes */
    vec sum_sigma;
    double *centre[2]; /* M * 8 each */
    double *wide;      /* x, z, q, w of a narrow block, M * 8 each */
    double *boxed;     /* M * 8 */
    double *box;       /* scratch of block_box */
} block_space;

/* Full width; lanes may be absent or step several times, and the dual residual is formed. `bits`: the lanes that take
 * part; `there`: the lanes that exist. Returns the new counters. */
static __attribute__((noinline)) vec block_steps(leaf_run *run, block_space *space, block b, unsigned bits,
                                                 unsigned there)
{
    const vmask active = vec_mask(bits);
    penalty_vec p = space->p;
    p.slope = vec_select(vec_mask(there), p.slope, vec_zero()); /* so that a lane that is not there sends 0 */
    const hfsad_schedule *schedule = &run->rule->schedule;
    const bool all =
        bits == there && run->local_steps == 1 && !run->want_dual && penalty_is_linear(p.form) && schedule->over == 0;
    const vec one = vec_set(1);
    double *centre = space->centre[0];
    for (uint32_t step = 1; step <= run->local_steps; step++) {
        const vec k = vec_add(b.k, one);
        const link_step_vec c = link_step_of(schedule, &p, k);
        const centre_facts facts = block_centre(&b, &c, &p, run->M, centre);
        const vec anchors = run->majorant ? block_anchors(&b, run->M, run->w_parent) : vec_zero();
        const vec a = run->majorant ? majorant_coefficient(b.y, b.n, anchors, facts.dot, c.inv_sigma)
                                    : loss_coefficient(run->loss, b.y, b.n, facts.dot, c.inv_sigma);
        unsigned outside = 0;
        if (run->loss->box < INFINITY)
            outside = block_outside(&b, run->loss, run->M, centre, facts.most, a) & bits;
        if (outside)
            block_box(&b, run, anchors, centre, c.sigma, outside, space->boxed, space->box);
        b.k = vec_select(active, k, b.k);
        const vec next = schedule_sigma(schedule, vec_add(b.k, one));
        block_pass pass = {
            .coefficient = a,
            .active = active,
            .up_sigma = vec_select(vec_mask(there), next, vec_zero()),
            .up_inv_mu = schedule_inv_mu(schedule, b.k),
            .last = step == run->local_steps,
            .outside = vec_mask(outside),
            .boxed = space->boxed,
        };
        if (all && !outside && !c.sweeps)
            block_update(&b, &c, &p, &pass, run->M, run->w_parent, centre, space->sum, true, false);
        else
            block_update(&b, &c, &p, &pass, run->M, run->w_parent, centre, space->sum, false, c.sweeps);
        if (pass.last) {
            space->sum_sigma = vec_add(space->sum_sigma, pass.up_sigma);
            add_lanes(&run->dual, vec_select(active, vec_mul(vec_mul(c.sigma, c.sigma), pass.dual), vec_zero()));
        }
    }
    return b.k;
}

static block block_at(const leaf_run *run, size_t first)
{
    const size_t at = first * run->M;
    return (block){run->x + at,
                   run->z + at,
                   run->q + at,
                   run->w ? run->w + at : NULL,
                   vec_load(run->y + first),
                   vec_load(run->n + first),
                   vec_load_counters(run->k + first)};
}

static unsigned active_bits(const leaf_run *run, size_t first, size_t width)
{
    unsigned bits = 0;
    for (size_t i = 0; i < width; i++)
        bits |= (unsigned)(run->active ? run->active[first + i] != 0 : 1) << i;
    return bits;
}

static void widen(double *to, const double *from, size_t M, size_t width)
{
    for (size_t m = 0; m < M; m++)
        vec_store(to + m * VEC_LANES, vec_load_part(from + m * width, width));
}

static void narrow(double *to, const double *from, size_t M, size_t width)
{
    for (size_t m = 0; m < M; m++)
        vec_store_part(to + m * width, vec_load(from + m * VEC_LANES), width);
}

/* The last block of a parent has fewer lanes: it is worked on in a copy of full width, whose other lanes sit out. */
static void narrow_block(leaf_run *run, block_space *space, size_t first)
{
    const size_t M = run->M, width = run->count - first, at = first * M, row = M * VEC_LANES;
    double *x = space->wide, *z = x + row, *q = z + row, *w = q + row;
    uint32_t k[VEC_LANES] = {0};
    double y[VEC_LANES] = {0}, n[VEC_LANES] = {0};
    memcpy(k, run->k + first, width * sizeof *k);
    memcpy(y, run->y + first, width * sizeof *y);
    memcpy(n, run->n + first, width * sizeof *n);
    widen(x, run->x + at, M, width);
    widen(z, run->z + at, M, width);
    widen(q, run->q + at, M, width);
    if (run->w)
        widen(w, run->w + at, M, width);
    const block b = {x, z, q, run->w ? w : NULL, vec_load(y), vec_load(n), vec_load_counters(k)};
    vec_store_counters(k, block_steps(run, space, b, active_bits(run, first, width), (1u << width) - 1));
    memcpy(run->k + first, k, width * sizeof *k);
    narrow(run->z + at, z, M, width);
    narrow(run->q + at, q, M, width);
    if (run->w)
        narrow(run->w + at, w, M, width);
}

/* What the counters decide. */
typedef struct {
    vec k;
    link_step_vec c;
    vec up_sigma;
} step_facts;

/* A block half done: its centre is known, its coefficient is on the way. */
typedef struct {
    block b;
    const step_facts *step;
    centre_facts facts;
    double *centre;
} half_block;

/* Counters are mostly the same in all blocks: the roots and divisions of the schedule are then reused. */
VEC_FN bool same_counters(vec a, vec b)
{
    return !vec_bits(vec_less(a, b)) && !vec_bits(vec_less(b, a));
}

/* steps: room for two, because the previous block may still need its own. */
VEC_FN void half_begin(half_block *h, const half_block *before, step_facts steps[2], leaf_run *run, block_space *space,
                       size_t first)
{
    h->b = block_at(run, first);
    h->b.k = vec_add(h->b.k, vec_set(1));
    if (before && same_counters(before->step->k, h->b.k)) {
        h->step = before->step;
    } else {
        step_facts *step = before && before->step == &steps[0] ? &steps[1] : &steps[0];
        step->k = h->b.k;
        step->c = link_step_of(&run->rule->schedule, &space->p, h->b.k);
        step->up_sigma = schedule_sigma(&run->rule->schedule, vec_add(h->b.k, vec_set(1)));
        h->step = step;
    }
    h->centre = space->centre[first / VEC_LANES % 2];
    h->facts = block_centre(&h->b, &h->step->c, &space->p, run->M, h->centre);
}

VEC_FN void half_end(half_block *h, vec coefficient, leaf_run *run, block_space *space, size_t first)
{
    const link_step_vec *c = &h->step->c;
    block_pass pass = {.coefficient = coefficient, .up_sigma = h->step->up_sigma, .up_inv_mu = c->inv_mu};
    unsigned outside = 0;
    if (run->loss->box < INFINITY)
        outside = block_outside(&h->b, run->loss, run->M, h->centre, h->facts.most, coefficient);
    if (outside) {
        block_box(&h->b, run, vec_zero(), h->centre, c->sigma, outside, space->boxed, space->box);
        pass.active = vec_mask(0xff);
        pass.last = true;
        pass.outside = vec_mask(outside);
        pass.boxed = space->boxed;
        block_update(&h->b, c, &space->p, &pass, run->M, run->w_parent, h->centre, space->sum, false, c->sweeps);
    } else if (c->sweeps) {
        block_update(&h->b, c, &space->p, &pass, run->M, run->w_parent, h->centre, space->sum, true, true);
    } else {
        block_update(&h->b, c, &space->p, &pass, run->M, run->w_parent, h->centre, space->sum, true, false);
    }
    space->sum_sigma = vec_add(space->sum_sigma, h->step->up_sigma);
    vec_store_counters(run->k + first, h->b.k);
}

/* Full blocks in which every lane takes one step over a linear link, without the dual residual: nearly all of the work.
 * The centre of the next block is computed while the divisions for the coefficient of this block are in flight. */
static void blocks_plain(leaf_run *run, block_space *space, size_t full)
{
    half_block halves[2];
    step_facts steps[2];
    if (full)
        half_begin(&halves[0], NULL, steps, run, space, 0);
    for (size_t first = 0; first < full; first += VEC_LANES) {
        half_block *h = &halves[first / VEC_LANES % 2];
        const vec a = loss_coefficient(run->loss, h->b.y, h->b.n, h->facts.dot, h->step->c.inv_sigma);
        if (first + VEC_LANES < full)
            half_begin(&halves[(first / VEC_LANES + 1) % 2], h, steps, run, space, first + VEC_LANES);
        half_end(h, a, run, space, first);
    }
}

static void leaf_run_blocks(leaf_run *run)
{
    const size_t M = run->M, row = M * VEC_LANES, full = run->count - run->count % VEC_LANES;
    double *scratch = run->scratch;
    block_space space = {
        .p = penalty_vec_of(&run->rule->penalty),
        .sum = scratch,
        .sum_sigma = vec_zero(),
        .centre = {scratch + row, scratch + 2 * row},
        .wide = scratch + 3 * row,
        .boxed = scratch + 7 * row,
        .box = scratch + 8 * row,
    };
    for (size_t o = 0; o < row; o += VEC_LANES)
        vec_store(space.sum + o, vec_zero());
    run->dual = 0;
    if (!run->active && !run->want_dual && run->local_steps == 1 && penalty_is_linear(space.p.form) &&
        run->rule->schedule.over == 0 && !run->majorant)
        blocks_plain(run, &space, full);
    else
        for (size_t first = 0; first < full; first += VEC_LANES) {
            const unsigned bits = active_bits(run, first, VEC_LANES);
            vec_store_counters(run->k + first, block_steps(run, &space, block_at(run, first), bits, 0xff));
        }
    if (full < run->count)
        narrow_block(run, &space, full);
    for (size_t m = 0; m < M; m++)
        run->sum_u[m] = vec_sum(vec_load(space.sum + m * VEC_LANES));
    run->sum_sigma = vec_sum(space.sum_sigma);
}

/* The numbers m … m+7 of a row, fewer at its end. */
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

/* 0 past the end of the row: a concave link's prox at 0 need not be 0. */
VEC_FN vec row_cut(vec a, size_t m, size_t M)
{
    return M - m >= VEC_LANES ? a : vec_select(vec_mask((1u << (M - m)) - 1), a, vec_zero());
}

#include "core/linear_body.h"
#include "core/rows_body.h"

#include "core/group_body.h"

/* If the loss's prox at centre leaves the box: it, into w, and true. `most`: the largest |centre|. */
static bool row_box(const scalar_loss *law, size_t M, const double *x, double n, const double *centre, double most,
                    vec a, double sigma, double *w, double *scratch)
{
    const hfsad_loss *loss = law->loss;
    if (!(loss->box < (most + fabs(vec_first(a)) * sqrt(n)) * (1 + 1e-12))) /* as in block_outside */
        return false;
    vec reach = vec_zero();
    for (size_t m = 0; m < M; m += VEC_LANES)
        reach = vec_max(reach, vec_abs(vec_fma(a, row_load(x, m, M), row_load(centre, m, M))));
    if (!(loss->box < vec_largest(reach)))
        return false;
    box_prox(law, M, x, centre, sigma, w, scratch);
    return true;
}

/* The link step on a row, Lambda taken from z and q. Returns sigma^2 (|dz|^2 + |dq|^2). */
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

/* A leaf's row, half way through a step. */
typedef struct {
    const double *x, *centre, *w_parent,
        *next_x; /* next_x: NULL, or the next leaf's, whose z and q follow this one's */
    double *z, *q;
    double *w;   /* NULL: not kept */
    double *sum; /* NULL, or u is added to it */
    bool boxed;  /* w holds the prox already */
    vec a, up_sigma, up_inv_mu;
} row_half;

/* w = centre + a x, the link step and the message in one pass. Returns sigma^2 (|dz|^2 + |dq|^2). */
VEC_FN double row_update(const row_half *h, const link_step_vec *step, const penalty_vec *penalty, size_t M)
{
    const row_half r = *h;
    const link_step_vec c = *step;
    const penalty_vec p = *penalty;
    vec change = vec_zero();
    for (size_t m = 0; m < M; m += VEC_LANES) {
        if (r.next_x) {
            soon(r.next_x + m);
            soon(r.z + M + m);
            soon(r.q + M + m);
        }
        const vec z_old = row_load(r.z, m, M), q_old = row_load(r.q, m, M), v = row_load(r.centre, m, M);
        const vec w = r.boxed ? row_load(r.w, m, M) : vec_fma(r.a, row_load(r.x, m, M), v);
        vec z = z_old, q;
        link_copies(&c, &p, c.relaxes, c.sweeps, v, w, row_load(r.w_parent, m, M), &z, &q);
        const vec dz = vec_sub(z, z_old), dq = vec_sub(q, q_old);
        change = vec_add(change, row_cut(vec_fma(dz, dz, vec_mul(dq, dq)), m, M));
        row_store(r.z, z, m, M);
        row_store(r.q, q, m, M);
        if (r.w)
            row_store(r.w, w, m, M);
        if (r.sum)
            row_store(r.sum, vec_add(row_load(r.sum, m, M), link_up(&p, r.up_sigma, r.up_inv_mu, z, q)), m, M);
    }
    return vec_first(vec_mul(c.sigma, c.sigma)) * vec_sum(change);
}

/* The same with a link of norms, which needs w before the link step; own: M numbers. */
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

/* What a leaf's step on a row works with: centre and own have M numbers each. */
typedef struct {
    double *centre, *own, *box;
} row_space;

/* <x, w_parent> as in block_anchors. */
VEC_FN double row_anchor(const double *x, const double *w_parent, size_t M)
{
    vec part = vec_zero();
    for (size_t m = 0; m < M; m += VEC_LANES)
        part = vec_fma(row_load(x, m, M), row_load(w_parent, m, M), part);
    return vec_sum(part);
}

/* One leaf step on plain rows. w: NULL or M numbers, out; sum: NULL or u is added to it. Returns what row_update does.
 */
static double row_leaf_step(const leaf_run *run, const penalty_vec *p, size_t leaf, const row_space *space, double *w,
                            double *sum)
{
    const size_t M = run->M, at = leaf * M;
    const double *x = run->x + at, *z = run->z + at, *q = run->q + at, y = run->y[leaf], n = run->n[leaf];
    const hfsad_schedule *schedule = &run->rule->schedule;
    const vec k = vec_set(++run->k[leaf]);
    const link_step_vec c = link_step_of(schedule, p, k);
    const vec pull = group_pull(p, M, z, q, c.inv_mu_before);
    vec part = vec_zero(), most = vec_zero();
    for (size_t m = 0; m < M; m += VEC_LANES) {
        const vec v = row_centre(&c, p, pull, row_load(z, m, M), row_load(q, m, M));
        row_store(space->centre, v, m, M);
        part = vec_fma(row_load(x, m, M), v, part);
        most = vec_max(most, row_cut(vec_abs(v), m, M));
    }
    row_half h = {
        .x = x,
        .centre = space->centre,
        .w_parent = run->w_parent,
        .next_x = leaf + 1 < run->count ? x + M : NULL,
        .z = run->z + at,
        .q = run->q + at,
        .w = w,
        .sum = sum,
        .up_sigma = schedule_sigma(schedule, vec_add(k, vec_set(1))),
        .up_inv_mu = c.inv_mu,
    };
    const double anchor = run->majorant ? row_anchor(x, run->w_parent, M) : 0;
    const vec s0 = vec_set(vec_sum(part));
    h.a = run->majorant ? majorant_coefficient(vec_set(y), vec_set(n), vec_set(anchor), s0, c.inv_sigma)
                        : loss_coefficient(run->loss, vec_set(y), vec_set(n), s0, c.inv_sigma);
    const scalar_loss law = {run->loss, y, run->majorant ? &anchor : NULL};
    double *prox = w ? w : space->own;
    if (run->loss->box < INFINITY &&
        row_box(&law, M, x, n, space->centre, vec_largest(most), h.a, vec_first(c.sigma), prox, space->box)) {
        h.boxed = true;
        h.w = prox;
    }
    return p->group ? group_update(&h, &c, p, M, prox) : row_update(&h, &c, p, M);
}

/* u into, or added to, the M numbers at `to`; returns sigma(k+1). */
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

/* Leaf i of a run in blocks as a run of one row, and back; rows: 4 M numbers. */
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

/* Links of norms: one leaf of a block after the other, added up as blocks are. */
static void leaf_run_groups(leaf_run *run)
{
    const size_t M = run->M, row = M * VEC_LANES;
    const penalty_vec p = penalty_vec_of(&run->rule->penalty);
    double *sum = run->scratch, *rows = sum + row, *u = rows + 4 * M, sigma[VEC_LANES] = {0};
    const row_space space = {u + M, u + 2 * M, run->scratch + 8 * row};
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
    else if (run->lanes == VEC_LANES && run->count > 1) /* a block of one leaf is a row */
        leaf_run_blocks(run);
    else
        leaf_run_rows(run);
}

/* The tied coordinates, then the free ones: nothing ties these to the parent, so both copies are the child's own
 * number, without a multiplier and without a residual, and nothing of the parent's gets into them. */
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
    for (size_t m = tied; m < M; m++) /* no penalty, no multiplier */
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
};
