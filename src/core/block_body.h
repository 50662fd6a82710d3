/*
 * Eight leaves at once, one in each lane: the steps of a run in blocks, written once over vec.h; kernels_body.h
 * includes this.
 *
 * A block has two passes over its features: the first forms the point of the prox and its product with x, the second
 * takes the step. The usual case of each pass is a function of its own, because compilers keep the coefficients of a
 * short loop in registers, and load them again for every feature if the loop is part of a long function.
 */
#define BLOCK_PASS static __attribute__((noinline))

/* One block: pointers to its first element. The last block of a parent may have fewer leaves than lanes; its vectors
 * then have `width` numbers per feature, and its other lanes hold zeros. */
typedef struct {
    const double *x;
    double *z, *q, *w;
    size_t width;
    vec y, n, k;
} block;

/* full: width is 8, a constant for the compiler if possible. */
VEC_FN vec block_load(const double *p, size_t m, size_t width, bool full)
{
    return full ? vec_load(p + m * VEC_LANES) : vec_load_part(p + m * width, width);
}

VEC_FN void block_store(double *p, vec a, size_t m, size_t width, bool full)
{
    if (full)
        vec_store(p + m * VEC_LANES, a);
    else
        vec_store_part(p + m * width, a, width);
}

VEC_FN bool block_is_full(const block *b)
{
    return b->width == VEC_LANES;
}

/* Mask of the lanes that hold a leaf. */
VEC_FN unsigned block_there(const block *b)
{
    return (1u << b->width) - 1;
}

/* What the blocks of a run share. */
typedef struct {
    penalty_vec p;
    double *sum; /* M partial sums of u in eight lanes */
    vec sum_sigma;
    double *centre[2]; /* M * 8 each */
    double *old;       /* z before the step of a partial block, M * 8 */
    double *boxed;     /* M * 8 */
    double *box;       /* scratch of block_box */
} block_space;

/* Forms centre[m] = z - Lambda/sigma, <x, centre> with element m in partial sum m mod 8, and the largest |centre| of
 * each lane. */
typedef struct {
    vec dot, most;
} centre_facts;

VEC_FN centre_facts centre_pass(const block *at, const link_step_vec *step, const penalty_vec *penalty, size_t M,
                                double *centre, double *old, bool full)
{
    /* Copies in registers. Otherwise the compiler must assume that a store through one pointer changes the target of
     * another. */
    const double *x = at->x, *z = at->z, *q = at->q;
    const size_t width = at->width;
    const link_step_vec c = *step;
    const penalty_vec p = *penalty;
    vec most = vec_zero();
    vec part_0 = most, part_1 = most, part_2 = most, part_3 = most, part_4 = most, part_5 = most, part_6 = most,
        part_7 = most; /* single variables, because an array would be kept in memory */
    size_t m = 0;
#define CENTRE_ELEMENT(i)                                                                                              \
    do {                                                                                                               \
        const vec z_m = block_load(z, m + (i), width, full);                                                           \
        const vec v = link_centre(&c, &p, z_m, block_load(q, m + (i), width, full));                                   \
        if (!full)                                                                                                     \
            vec_store(old + (m + (i)) * VEC_LANES, z_m);                                                               \
        vec_store(centre + (m + (i)) * VEC_LANES, v);                                                                  \
        part_##i = vec_fma(block_load(x, m + (i), width, full), v, part_##i);                                          \
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
#define CENTRE_REST(i)                                                                                                 \
    if (M - m > (i))                                                                                                   \
    CENTRE_ELEMENT(i)
    CENTRE_REST(0);
    CENTRE_REST(1);
    CENTRE_REST(2);
    CENTRE_REST(3);
    CENTRE_REST(4);
    CENTRE_REST(5);
    CENTRE_REST(6);
#undef CENTRE_REST
#undef CENTRE_ELEMENT
    const vec part[VEC_LANES] = {part_0, part_1, part_2, part_3, part_4, part_5, part_6, part_7};
    return (centre_facts){vec_sum_of(part), most};
}

VEC_FN penalty_vec linear_penalty(const penalty_vec *p)
{
    penalty_vec linear = *p;
    linear.form = PENALTY_LINEAR;
    linear.group = false;
    return linear;
}

BLOCK_PASS centre_facts centre_full(const block *b, const link_step_vec *c, const penalty_vec *p, size_t M,
                                    double *centre)
{
    const penalty_vec linear = linear_penalty(p);
    return centre_pass(b, c, &linear, M, centre, NULL, true);
}

BLOCK_PASS centre_facts centre_any(const block *b, const link_step_vec *c, const penalty_vec *p, size_t M,
                                   double *centre, double *old)
{
    return centre_pass(b, c, p, M, centre, old, block_is_full(b));
}

static centre_facts block_centre(const block *b, const link_step_vec *c, const block_space *space, size_t M,
                                 double *centre)
{
    return block_is_full(b) && penalty_is_linear(space->p.form) ? centre_full(b, c, &space->p, M, centre)
                                                                : centre_any(b, c, &space->p, M, centre, space->old);
}

/* Writes w to `boxed` (M * 8) for the lanes whose unconstrained prox leaves the box. */
BLOCK_PASS void block_box(const block *b, const leaf_run *run, vec anchors, const double *centre, vec sigma,
                          unsigned outside, double *boxed, double *scratch)
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
            x[m] = b->x[m * b->width + i];
            w[m] = centre[m * VEC_LANES + i];
        }
        const scalar_loss law = {run->loss, y[i], run->majorant ? &anchor[i] : NULL};
        box_prox(&law, M, x, w, s[i], w, scratch + 2 * M);
        for (size_t m = 0; m < M; m++)
            boxed[m * VEC_LANES + i] = w[m];
    }
}

/* Mask of the lanes whose prox leaves the box. The bound |centre + a x| <= |centre| + |a| |x|_2 usually rules out all
 * lanes at once. */
VEC_FN unsigned block_outside(const block *b, const hfsad_loss *loss, size_t M, const double *centre, vec most,
                              vec coefficient)
{
    const vec bound = vec_set(loss->box);
    const vec reach = vec_fma(vec_abs(coefficient), vec_sqrt(b->n), most);
    if (!vec_bits(vec_less(bound, vec_mul(reach, vec_set(1 + 1e-12)))))
        return 0;
    most = vec_zero();
    for (size_t m = 0; m < M; m++)
        most = vec_max(most, vec_abs(vec_fma(coefficient, block_load(b->x, m, b->width, block_is_full(b)),
                                             vec_load(centre + m * VEC_LANES))));
    return vec_bits(vec_less(bound, most));
}

/* <x, w_parent>, summed in the order of centre_pass. */
VEC_FN vec block_anchors(const block *b, size_t M, const double *w_parent)
{
    vec part[VEC_LANES];
    for (int i = 0; i < VEC_LANES; i++)
        part[i] = vec_zero();
    for (size_t m = 0; m < M; m++)
        part[m % VEC_LANES] =
            vec_fma(block_load(b->x, m, b->width, block_is_full(b)), vec_set(w_parent[m]), part[m % VEC_LANES]);
    return vec_sum_of(part);
}

/* What the second pass needs besides the block and the step's coefficients. */
typedef struct {
    size_t M;
    const double *w_parent, *centre;
    const double *old;       /* z before the step, M * 8 */
    double *sum;             /* u of the block is added to it */
    vec coefficient;         /* factor of x in the prox */
    vmask active;            /* lanes that take part in the round */
    vec up_sigma, up_inv_mu; /* for the counter after the round; up_sigma is 0 in lanes without a leaf */
    vec up_slope;            /* slope of the link's penalty, likewise */
    bool last;               /* this is the last local step: the message is formed */
    vmask outside;           /* lanes whose w is in boxed */
    const double *boxed;
    double split; /* of leaf_run */
    vec dual;     /* out: |dz|^2 + |dq|^2 of each lane, summed in the order of a row; not set by a plain pass */
} block_pass;

/* w = centre + coefficient x (or boxed), the link step, and u. A plain pass: all lanes take part in one step over a
 * linear link without over-relaxation; the dual residual is not needed and no lane leaves the box. sweeps: as in the
 * step's coefficients, a constant for the compiler if possible. */
VEC_FN void update_pass(const block *at, const link_step_vec *step, const penalty_vec *penalty, block_pass *pass,
                        bool plain, bool sweeps, bool full)
{
    const double *xs = at->x;
    double *zs = at->z, *qs = at->q, *ws = at->w, *sum = pass->sum;
    const size_t M = pass->M, width = at->width;
    const double *w_parent = pass->w_parent, *centre = pass->centre, *old = pass->old, *boxed = pass->boxed;
    const link_step_vec c = *step;
    const penalty_vec p = plain ? linear_penalty(penalty) : *penalty;
    penalty_vec up = p;
    up.slope = pass->up_slope;
    const vec coefficient = pass->coefficient, up_sigma = pass->up_sigma, up_inv_mu = pass->up_inv_mu;
    const vmask active = pass->active, outside = pass->outside;
    const bool last = plain || pass->last;
    const size_t ahead = 4 * M * VEC_LANES; /* four blocks: the fastest distance if the data come from memory */
    vec dual[VEC_LANES];
    for (int i = 0; i < VEC_LANES && !plain; i++)
        dual[i] = vec_zero();
    for (size_t m = 0, o = 0; m < M; m++, o += VEC_LANES) {
        if (plain && full) {
            soon(xs + o + ahead);
            soon(zs + o + ahead);
            soon(qs + o + ahead);
        }
        const vec v = vec_load(centre + o), z_old = vec_load(old + o);
        vec w = vec_fma(coefficient, block_load(xs, m, width, full), v), z = z_old, q;
        if (!plain)
            w = vec_select(outside, vec_load(boxed + o), w);
        link_copies(&c, &p, !plain && c.relaxes, sweeps, v, w, vec_set(w_parent[m]), &z, &q);
        if (!plain && pass->split > 0)
            link_shorten(vec_set(pass->split), &z, &q);
        if (!plain) {
            const vec q_old = block_load(qs, m, width, full);
            z = vec_select(active, z, z_old);
            q = vec_select(active, q, q_old);
            const vec dz = vec_sub(z, z_old), dq = vec_sub(q, q_old);
            dual[m % VEC_LANES] = vec_add(dual[m % VEC_LANES], vec_fma(dz, dz, vec_mul(dq, dq)));
        }
        block_store(zs, z, m, width, full);
        block_store(qs, q, m, width, full);
        if (ws)
            block_store(ws, plain ? w : vec_select(active, w, block_load(ws, m, width, full)), m, width, full);
        if (last)
            vec_store(sum + o, vec_add(vec_load(sum + o), link_up(&up, up_sigma, up_inv_mu, z, q)));
    }
    if (!plain)
        pass->dual = vec_sum_of(dual);
}

BLOCK_PASS void update_full(const block *b, const link_step_vec *c, const penalty_vec *p, block_pass *pass)
{
    update_pass(b, c, p, pass, true, false, true);
}

BLOCK_PASS void update_narrow(const block *b, const link_step_vec *c, const penalty_vec *p, block_pass *pass)
{
    update_pass(b, c, p, pass, true, false, false);
}

BLOCK_PASS void update_sweep(const block *b, const link_step_vec *c, const penalty_vec *p, block_pass *pass)
{
    update_pass(b, c, p, pass, true, true, block_is_full(b));
}

BLOCK_PASS void update_any(const block *b, const link_step_vec *c, const penalty_vec *p, block_pass *pass)
{
    update_pass(b, c, p, pass, false, c->sweeps, block_is_full(b));
}

static void block_update(const block *b, const link_step_vec *c, const penalty_vec *p, block_pass *pass, bool plain)
{
    if (!plain)
        update_any(b, c, p, pass);
    else if (c->sweeps)
        update_sweep(b, c, p, pass);
    else if (block_is_full(b))
        update_full(b, c, p, pass);
    else
        update_narrow(b, c, p, pass);
}

VEC_FN vec only_there(const block *b, vec a)
{
    return vec_select(vec_mask(block_there(b)), a, vec_zero());
}

/* A step of any block: lanes may be absent or take several steps, and the dual residual is formed. `bits`: lanes that
 * take part. Returns the new counters. */
BLOCK_PASS vec block_steps(leaf_run *run, block_space *space, block b, unsigned bits)
{
    const vmask active = vec_mask(bits);
    const hfsad_schedule *schedule = &run->rule->schedule;
    const bool plain = bits == block_there(&b) && run->local_steps == 1 && !run->want_dual && !(run->split > 0) &&
                       penalty_is_linear(space->p.form) && schedule->over == 0;
    const vec one = vec_set(1);
    double *centre = space->centre[0];
    for (uint32_t step = 1; step <= run->local_steps; step++) {
        const vec k = vec_add(b.k, one);
        const link_step_vec c = link_step_of(schedule, &space->p, k);
        const centre_facts facts = block_centre(&b, &c, space, run->M, centre);
        const vec anchors = run->majorant ? block_anchors(&b, run->M, run->w_parent) : vec_zero();
        const vec a = run->majorant ? majorant_coefficient(b.y, b.n, anchors, facts.dot, c.inv_sigma)
                                    : loss_coefficient(run->loss, b.y, b.n, facts.dot, c.inv_sigma);
        unsigned outside = 0;
        if (run->loss->box < INFINITY)
            outside = block_outside(&b, run->loss, run->M, centre, facts.most, a) & bits;
        if (outside)
            block_box(&b, run, anchors, centre, c.sigma, outside, space->boxed, space->box);
        b.k = vec_select(active, k, b.k);
        block_pass pass = {
            .M = run->M,
            .w_parent = run->w_parent,
            .centre = centre,
            .old = block_is_full(&b) ? b.z : space->old,
            .sum = space->sum,
            .coefficient = a,
            .active = active,
            .up_sigma = only_there(&b, schedule_sigma(schedule, vec_add(b.k, one))),
            .up_inv_mu = schedule_inv_mu(schedule, b.k),
            .up_slope = only_there(&b, space->p.slope),
            .last = step == run->local_steps,
            .split = run->split,
            .outside = vec_mask(outside),
            .boxed = space->boxed,
            .dual = vec_zero(),
        };
        block_update(&b, &c, &space->p, &pass, plain && !outside);
        if (pass.last) {
            space->sum_sigma = vec_add(space->sum_sigma, pass.up_sigma);
            add_lanes(&run->dual, vec_select(active, vec_mul(vec_mul(c.sigma, c.sigma), pass.dual), vec_zero()));
        }
    }
    return b.k;
}

/* Lanes without a leaf get the counter of the first lane, so that they have the coefficients of
 * that lane. */
VEC_FN void block_at(block *b, const leaf_run *run, size_t first)
{
    const size_t at = first * run->M, left = run->count - first;
    b->x = run->x + at;
    b->z = run->z + at;
    b->q = run->q + at;
    b->w = run->w ? run->w + at : NULL;
    b->width = left < VEC_LANES ? left : VEC_LANES;
    if (left >= VEC_LANES) {
        b->y = vec_load(run->y + first);
        b->n = vec_load(run->n + first);
        b->k = vec_load_counters(run->k + first);
        return;
    }
    uint32_t k[VEC_LANES];
    for (size_t i = 0; i < VEC_LANES; i++)
        k[i] = run->k[i < left ? first + i : first];
    b->y = vec_load_part(run->y + first, left);
    b->n = vec_load_part(run->n + first, left);
    b->k = vec_load_counters(k);
}

static void block_count(leaf_run *run, size_t first, size_t width, vec k)
{
    uint32_t counters[VEC_LANES];
    vec_store_counters(width == VEC_LANES ? run->k + first : counters, k);
    for (size_t i = 0; i < width && width < VEC_LANES; i++)
        run->k[first + i] = counters[i];
}

static unsigned active_bits(const leaf_run *run, size_t first, size_t width)
{
    unsigned bits = 0;
    for (size_t i = 0; i < width; i++)
        bits |= (unsigned)(run->active ? run->active[first + i] != 0 : 1) << i;
    return bits;
}

/* Coefficients that depend on the counters only. */
typedef struct {
    vec k;
    link_step_vec c;
    vec up_sigma;
} step_facts;

/* A block between its two passes: the centre is known, the coefficient is being computed. */
typedef struct {
    block b;
    const step_facts *step;
    centre_facts facts;
    double *centre;
} half_block;

/* Counters are equal in most blocks; the square roots and divisions of the schedule are then reused. */
VEC_FN bool same_counters(vec a, vec b)
{
    return !vec_bits(vec_less(a, b)) && !vec_bits(vec_less(b, a));
}

/* steps: room for two, because the previous block may still need its coefficients. */
static void half_begin(half_block *h, const half_block *before, step_facts steps[2], leaf_run *run, block_space *space,
                       size_t first)
{
    block_at(&h->b, run, first);
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
    h->facts = block_centre(&h->b, &h->step->c, space, run->M, h->centre);
}

static void half_end(half_block *h, vec coefficient, leaf_run *run, block_space *space, size_t first)
{
    const link_step_vec *c = &h->step->c;
    unsigned outside = 0;
    if (run->loss->box < INFINITY)
        outside = block_outside(&h->b, run->loss, run->M, h->centre, h->facts.most, coefficient) & block_there(&h->b);
    if (outside)
        block_box(&h->b, run, vec_zero(), h->centre, c->sigma, outside, space->boxed, space->box);
    block_pass pass = {
        .M = run->M,
        .w_parent = run->w_parent,
        .centre = h->centre,
        .old = block_is_full(&h->b) ? h->b.z : space->old,
        .sum = space->sum,
        .coefficient = coefficient,
        .active = vec_mask(0xff),
        .up_sigma = only_there(&h->b, h->step->up_sigma),
        .up_inv_mu = c->inv_mu,
        .up_slope = only_there(&h->b, space->p.slope),
        .last = true,
        .outside = vec_mask(outside),
        .boxed = space->boxed,
        .dual = vec_zero(),
    };
    block_update(&h->b, c, &space->p, &pass, !outside);
    space->sum_sigma = vec_add(space->sum_sigma, pass.up_sigma);
    block_count(run, first, h->b.width, h->b.k);
}

/* Blocks in which every lane takes one step over a linear link without the dual residual, which is nearly all of the
 * work. The centre of the next block is computed while the divisions for the coefficient of this block are in
 * flight. */
static void blocks_plain(leaf_run *run, block_space *space)
{
    half_block halves[2];
    step_facts steps[2];
    half_begin(&halves[0], NULL, steps, run, space, 0);
    for (size_t first = 0; first < run->count; first += VEC_LANES) {
        half_block *h = &halves[first / VEC_LANES % 2];
        const vec a = loss_coefficient(run->loss, h->b.y, h->b.n, h->facts.dot, h->step->c.inv_sigma);
        if (first + VEC_LANES < run->count)
            half_begin(&halves[(first / VEC_LANES + 1) % 2], h, steps, run, space, first + VEC_LANES);
        half_end(h, a, run, space, first);
    }
}

static void leaf_run_blocks(leaf_run *run)
{
    const size_t M = run->M, row = M * VEC_LANES;
    double *scratch = run->scratch;
    block_space space = {
        .p = penalty_vec_of(&run->rule->penalty),
        .sum = scratch,
        .sum_sigma = vec_zero(),
        .centre = {scratch + row, scratch + 2 * row},
        .old = scratch + 3 * row,
        .boxed = scratch + 4 * row,
        .box = scratch + LEAF_RUN_ROWS * row,
    };
    for (size_t o = 0; o < row; o += VEC_LANES)
        vec_store(space.sum + o, vec_zero());
    run->dual = 0;
    if (!run->active && !run->want_dual && !(run->split > 0) && run->local_steps == 1 &&
        penalty_is_linear(space.p.form) && run->rule->schedule.over == 0 && !run->majorant)
        blocks_plain(run, &space);
    else
        for (size_t first = 0; first < run->count; first += VEC_LANES) {
            block b;
            block_at(&b, run, first);
            block_count(run, first, b.width, block_steps(run, &space, b, active_bits(run, first, b.width)));
        }
    for (size_t m = 0; m < M; m++)
        run->sum_u[m] = vec_sum(vec_load(space.sum + m * VEC_LANES));
    run->sum_sigma = vec_sum(space.sum_sigma);
}
