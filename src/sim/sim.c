/*
 * Algorithm 1 over a tree in memory. One global iteration:
 *
 *     edge_rounds times { every participating client steps; every participating inner node steps, deepest first };
 *     the cloud steps once.
 *
 * Clients are worked off in runs (kernels.h), each with its own place for its sums, so the bits do not depend on
 * which thread takes which run. All memory is taken in sim_create.
 */
#include "sim/sim.h"

#include "admm/fold.h"
#include "admm/kernels.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MIXED = 0xffff };

/* Below so many numbers a thread costs more than it brings. */
enum { WORTH_A_THREAD = 16384 };

/* Consecutive leaves of one parent. */
typedef struct {
    uint32_t parent, first_slot, count;
    uint16_t class; /* of all its leaves, or MIXED */
    uint32_t stepped;
    double sum_sigma, dual;
} run_of_leaves;

typedef struct {
    uint32_t k, last;
    bool stepped; /* in this round */
    double dual;  /* of the last edge round; 0 where it took no part */
    uint64_t key;
    size_t first_run, n_runs;
} inner_state;

/* What a thread works with. */
typedef struct {
    double *scratch; /* for a run, or 8 rows of M */
    double *rows;    /* x, z, q, w, u, sum: 6 rows of M */
    uint8_t *active; /* run_slots(M) */
} thread_space;

struct sim {
    const dataset *d;
    const plan *p;
    const double *truth;
    pool *threads;
    size_t M;
    double *z, *q, *w;                   /* leaves, block layout; w may be NULL */
    uint32_t *k, *last;                  /* leaves; last only where somebody may sit out */
    uint64_t *key;                       /* likewise */
    double *inner_w, *inner_z, *inner_q; /* rows */
    inner_state *inner;
    size_t n_runs;
    run_of_leaves *runs;
    double *run_u;       /* n_runs rows: sum of u over the run */
    link_sums *run_sums; /* of a measurement */
    thread_space *spaces;
    size_t level[HFSAD_TIERS_MAX + 2]; /* first inner node of each depth, and the end */
    uint64_t iteration, round, bytes_up, bytes_down;
    bool last_round, want_dual, dual_known, converged;
};

/* ---- participation ------------------------------------------------------------------------------------------ */

/* Whether a node takes part: a draw keyed by (seed, node, round), and at the latest in the last round of the K_a-th
 * global iteration since it last did. */
static bool takes_part(const sim *s, double probability, uint64_t key, uint32_t last)
{
    if (rng_uniform(key, s->round) < probability)
        return true;
    return s->last_round && s->iteration - last >= s->p->at_least_every;
}

/* Fills active; returns how many take part. */
static uint32_t draw_leaves(sim *s, const run_of_leaves *r, size_t first, uint8_t *active)
{
    uint32_t stepping = 0;
    for (size_t i = 0; i < r->count; i++) {
        const size_t leaf = first + i;
        const leaf_class *class = &s->p->leaf_classes[s->p->leaf_class_of ? s->p->leaf_class_of[leaf] : 0];
        active[i] = class->participation >= 1 || takes_part(s, class->participation, s->key[leaf], s->last[leaf]);
        if (active[i]) {
            s->last[leaf] = (uint32_t)s->iteration;
            stepping++;
        }
    }
    return stepping;
}

/* ---- leaves ------------------------------------------------------------------------------------------------- */

static size_t run_first_leaf(const sim *s, const run_of_leaves *r)
{
    return s->d->inner[r->parent].first_leaf + r->first_slot;
}

static leaf_run run_view(const sim *s, const run_of_leaves *r, size_t index, thread_space *space)
{
    const inner_node *parent = &s->d->inner[r->parent];
    const size_t at = parent->base + (size_t)r->first_slot * s->M, leaf = run_first_leaf(s, r);
    const leaf_class *class = &s->p->leaf_classes[r->class == MIXED ? 0 : r->class];
    return (leaf_run){
        .M = s->M,
        .count = r->count,
        .lanes = s->d->lanes,
        .loss = &class->loss,
        .rule = &class->rule,
        .local_steps = class->local_steps,
        .x = s->d->x + at,
        .y = s->d->y + leaf,
        .n = s->d->n + leaf,
        .z = s->z + at,
        .q = s->q + at,
        .w = s->w ? s->w + at : NULL,
        .k = s->k + leaf,
        .w_parent = s->inner_w + (size_t)r->parent * s->M,
        .scratch = space->scratch,
        .sum_u = s->run_u + index * s->M,
        .want_dual = s->want_dual,
    };
}

/* One leaf of a run, copied out into rows. */
static leaf_run leaf_view(const sim *s, size_t leaf, uint32_t parent, thread_space *space)
{
    const size_t M = s->M;
    double *rows = space->rows;
    const leaf_class *class = &s->p->leaf_classes[s->p->leaf_class_of[leaf]];
    dataset_gather(s->d, s->d->x, leaf, rows);
    dataset_gather(s->d, s->z, leaf, rows + M);
    dataset_gather(s->d, s->q, leaf, rows + 2 * M);
    dataset_gather(s->d, s->w ? s->w : s->z, leaf, rows + 3 * M);
    return (leaf_run){
        .M = M,
        .count = 1,
        .lanes = 1,
        .loss = &class->loss,
        .rule = &class->rule,
        .local_steps = class->local_steps,
        .x = rows,
        .y = s->d->y + leaf,
        .n = s->d->n + leaf,
        .z = rows + M,
        .q = rows + 2 * M,
        .w = rows + 3 * M,
        .k = s->k + leaf,
        .w_parent = s->inner_w + (size_t)parent * M,
        .scratch = space->scratch,
        .sum_u = rows + 4 * M,
        .want_dual = s->want_dual,
    };
}

/* A run whose leaves differ in loss, link or schedule: one by one, to the same bits. */
static void step_mixed_run(sim *s, run_of_leaves *r, size_t index, thread_space *space)
{
    const size_t M = s->M, first = run_first_leaf(s, r);
    fold sum;
    fold_begin(&sum, M, space->scratch + leaf_run_scratch(M), s->run_u + index * M);
    r->dual = 0;
    for (size_t i = 0; i < r->count; i++) {
        leaf_run one = leaf_view(s, first + i, r->parent, space);
        const uint8_t active = space->active[i];
        one.active = &active;
        kernels()->leaf_run(&one);
        if (active) {
            dataset_scatter(s->d, s->z, first + i, one.z);
            dataset_scatter(s->d, s->q, first + i, one.q);
            if (s->w)
                dataset_scatter(s->d, s->w, first + i, one.w);
        }
        fold_add(&sum, one.sum_u, one.sum_sigma);
        r->dual += one.dual;
    }
    fold_end(&sum);
    r->sum_sigma = sum.sum_sigma;
}

static void step_run(void *context, size_t index, unsigned thread)
{
    sim *s = context;
    run_of_leaves *r = &s->runs[index];
    thread_space *space = &s->spaces[thread];
    r->stepped = r->count;
    if (s->last)
        r->stepped = draw_leaves(s, r, run_first_leaf(s, r), space->active);
    else
        memset(space->active, 1, r->count);
    if (r->class == MIXED) {
        step_mixed_run(s, r, index, space);
        return;
    }
    leaf_run run = run_view(s, r, index, space);
    run.active = r->stepped < r->count ? space->active : NULL;
    kernels()->leaf_run(&run);
    r->sum_sigma = run.sum_sigma;
    r->dual = run.dual;
}

/* ---- inner nodes and the root --------------------------------------------------------------------------------- */

static hfsad_link inner_link(const sim *s, size_t i)
{
    return (hfsad_link){s->inner_z + i * s->M, s->inner_q + i * s->M, s->inner[i].k};
}

/* Sum of the children's u, inner ones first, each in the order of its slot; returns the sum of their sigma. */
static double sum_children(const sim *s, size_t i, thread_space *space)
{
    const inner_node *node = &s->d->inner[i];
    double *sum = space->rows + 5 * s->M, *u = space->rows + 4 * s->M, sigma = 0;
    memset(sum, 0, s->M * sizeof *sum);
    for (size_t c = node->first_inner; c < node->first_inner + node->n_inner; c++) {
        const hfsad_link link = inner_link(s, c);
        sigma += hfsad_link_message(&s->p->inner[c].rule, &link, s->M, u);
        kernels()->add(s->M, sum, u);
    }
    const inner_state *state = &s->inner[i];
    for (size_t r = state->first_run; r < state->first_run + state->n_runs; r++) {
        sigma += s->runs[r].sum_sigma;
        kernels()->add(s->M, sum, s->run_u + r * s->M);
    }
    return sigma;
}

static void step_inner(void *context, size_t i, unsigned thread)
{
    sim *s = context;
    inner_state *state = &s->inner[i];
    const inner_class *class = &s->p->inner[i];
    state->dual = 0;
    state->stepped = class->participation >= 1 || takes_part(s, class->participation, state->key, state->last);
    if (!state->stepped)
        return;
    const double sigma = sum_children(s, i, &s->spaces[thread]);
    const double *sum = s->spaces[thread].rows + 5 * s->M;
    double *w = s->inner_w + i * s->M;
    hfsad_link link = inner_link(s, i);
    link.k++;
    kernels()->inner_update(&class->prior, &class->rule, &link, s->M, sum, sigma, w);
    kernels()->link_step(&class->rule, &link, s->M, w, s->inner_w + (size_t)s->d->inner[i].parent * s->M, &state->dual);
    state->k = link.k;
}

static void step_root(sim *s)
{
    const double sigma = sum_children(s, 0, &s->spaces[0]);
    hfsad_root_step(&s->p->inner[0].prior, s->M, s->spaces[0].rows + 5 * s->M, sigma, s->inner_w);
}

/* ---- an iteration ------------------------------------------------------------------------------------------- */

typedef struct {
    sim *s;
    size_t first;
    void (*work)(void *, size_t, unsigned);
} span;

static void work_at(void *context, size_t item, unsigned thread)
{
    const span *a = context;
    a->work(a->s, a->first + item, thread);
}

/* work(s, i, thread) for first <= i < end, by all threads where there is enough to do. */
static void for_each(sim *s, size_t first, size_t end, size_t rows, void (*work)(void *, size_t, unsigned))
{
    span a = {s, first, work};
    if (rows * s->M >= WORTH_A_THREAD)
        pool_run(s->threads, end - first, work_at, &a);
    else
        for (size_t i = first; i < end; i++)
            work(s, i, 0);
}

static uint64_t children(const inner_node *node)
{
    return (uint64_t)node->n_inner + node->n_leaves;
}

/* A vector up per client that stepped; down per child of every node that stepped. An inner node's vector goes up once
 * in a global iteration, since its parent uses only the last. */
static void count_round(sim *s)
{
    const uint64_t vector = s->M * sizeof(double);
    for (size_t r = 0; r < s->n_runs; r++)
        s->bytes_up += vector * s->runs[r].stepped;
    for (size_t i = 1; i < s->d->n_inner; i++)
        if (s->inner[i].stepped) {
            s->bytes_down += vector * children(&s->d->inner[i]);
            s->bytes_up += s->inner[i].last < s->iteration ? vector : 0;
            s->inner[i].last = (uint32_t)s->iteration;
        }
}

static void play_round(sim *s)
{
    for_each(s, 0, s->n_runs, s->d->n_leaves, step_run);
    for (uint32_t depth = s->d->depth; depth-- > 1;) {
        const size_t first = s->level[depth], end = s->level[depth + 1];
        for_each(s, first, end, end - first, step_inner);
    }
    count_round(s);
    s->round++;
}

void sim_iterate(sim *s)
{
    const plan *p = s->p;
    s->iteration++;
    const bool measured = p->trace_every && (s->iteration % p->trace_every == 0 || s->iteration == p->iterations);
    for (uint32_t round = 1; round <= p->edge_rounds; round++) {
        s->last_round = round == p->edge_rounds;
        s->want_dual = measured && s->last_round;
        play_round(s);
    }
    step_root(s);
    s->bytes_down += s->M * sizeof(double) * children(&s->d->inner[0]);
    s->dual_known = measured;
}

/* ---- measurement ---------------------------------------------------------------------------------------------- */

static void measure_run(void *context, size_t index, unsigned thread)
{
    sim *s = context;
    const run_of_leaves *r = &s->runs[index];
    link_sums *sums = &s->run_sums[index];
    *sums = (link_sums){0};
    if (r->class == MIXED) {
        for (size_t i = 0; i < r->count; i++) {
            const leaf_run one = leaf_view(s, run_first_leaf(s, r) + i, r->parent, &s->spaces[thread]);
            kernels()->leaf_measure(&one, s->inner_w, sums);
        }
        return;
    }
    const leaf_run run = run_view(s, r, index, &s->spaces[thread]);
    kernels()->leaf_measure(&run, s->inner_w, sums);
}

static void add_sums(link_sums *total, const link_sums *part)
{
    total->loss += part->loss;
    total->consensus_loss += part->consensus_loss;
    total->penalty += part->penalty;
    total->smoothing += part->smoothing;
    total->primal += part->primal;
    total->gap = fmax(total->gap, part->gap);
    total->size_w += part->size_w;
    total->size_zq += part->size_zq;
    total->size_multiplier += part->size_multiplier;
}

/* Sums per tier (the depth of the child, less one), and the dual residual's beside them. */
static void measure_tiers(sim *s, link_sums *tier, double *dual)
{
    for_each(s, 0, s->n_runs, s->d->n_leaves, measure_run);
    for (size_t i = 1; i < s->d->n_inner; i++) {
        const inner_node *node = &s->d->inner[i];
        const hfsad_link link = inner_link(s, i);
        link_sums sums = {0};
        kernels()->link_measure(&s->p->inner[i].rule, &link, s->M, s->inner_w + i * s->M,
                                s->inner_w + (size_t)node->parent * s->M, s->inner_w, &sums);
        add_sums(&tier[node->depth - 1], &sums);
        dual[node->depth - 1] += s->inner[i].dual;
    }
    for (size_t r = 0; r < s->n_runs; r++) {
        const uint32_t t = s->d->inner[s->runs[r].parent].depth;
        add_sums(&tier[t], &s->run_sums[r]);
        dual[t] += s->runs[r].dual;
    }
}

/* Both residuals below  sqrt(number of constraints) absolute + relative * the size of what they compare. */
static bool stop_rule(const sim *s, const link_sums *total, double primal, double dual)
{
    const plan *p = s->p;
    if (!(p->stop_absolute > 0 || p->stop_relative > 0) || s->iteration == 0)
        return false;
    const double links = (double)(s->d->n_leaves + s->d->n_inner - 1);
    const double absolute = sqrt(2 * links * (double)s->M) * p->stop_absolute;
    const double size = sqrt(fmax(total->size_w, total->size_zq));
    return primal <= absolute + p->stop_relative * size &&
           dual <= absolute + p->stop_relative * sqrt(total->size_multiplier);
}

void sim_measure(sim *s, hfsad_figures *f)
{
    link_sums tier[HFSAD_TIERS_MAX] = {{0}}, total = {0};
    double dual[HFSAD_TIERS_MAX] = {0}, all_dual = 0, priors = 0, consensus_priors = 0;
    measure_tiers(s, tier, dual);
    for (size_t i = 0; i < s->d->n_inner; i++) {
        priors += kernels()->prior_value(&s->p->inner[i].prior, s->M, s->inner_w + i * s->M);
        consensus_priors += kernels()->prior_value(&s->p->inner[i].prior, s->M, s->inner_w);
    }
    f->iteration = s->iteration;
    f->tiers = s->d->depth;
    const bool known = s->dual_known || s->iteration == 0;
    for (size_t t = 0; t < f->tiers; t++) {
        add_sums(&total, &tier[t]);
        all_dual += dual[t];
        f->primal_tier[t] = sqrt(tier[t].primal);
        f->dual_tier[t] = known ? sqrt(dual[t]) : NAN;
    }
    f->objective = total.loss + total.penalty + priors;
    f->consensus_objective = total.consensus_loss + consensus_priors;
    f->primal_residual = sqrt(total.primal);
    f->dual_residual = known ? sqrt(all_dual) : NAN;
    f->consensus_gap = total.gap;
    f->smoothing_gap = total.smoothing;
    const bool sign_free = s->p->leaf_classes[0].loss.kind == HFSAD_LOSS_PHASE_RETRIEVAL;
    f->relative_error = s->truth ? relative_error(s->M, s->inner_w, s->truth, sign_free) : NAN;
    f->bytes_up = s->bytes_up;
    f->bytes_down = s->bytes_down;
    s->converged = stop_rule(s, &total, f->primal_residual, f->dual_residual);
}

bool sim_converged(const sim *s)
{
    return s->converged;
}

double relative_error(size_t M, const double *estimate, const double *truth, bool sign_free)
{
    double minus = 0, plus = 0, size = 0;
    for (size_t m = 0; m < M; m++) {
        minus += (estimate[m] - truth[m]) * (estimate[m] - truth[m]);
        plus += (estimate[m] + truth[m]) * (estimate[m] + truth[m]);
        size += truth[m] * truth[m];
    }
    return (sign_free && plus < minus ? plus : minus) / size;
}

/* ---- what others read --------------------------------------------------------------------------------------- */

const double *sim_cloud(const sim *s)
{
    return s->inner_w;
}

const double *sim_inner_model(const sim *s, size_t i)
{
    return s->inner_w + i * s->M;
}

void sim_leaf_model(const sim *s, size_t leaf, double *w)
{
    dataset_gather(s->d, s->w ? s->w : s->z, leaf, w);
}

link_counters sim_leaf_link(const sim *s, size_t leaf, double *z, double *q)
{
    dataset_gather(s->d, s->z, leaf, z);
    dataset_gather(s->d, s->q, leaf, q);
    return (link_counters){s->k[leaf], s->last ? s->last[leaf] : (uint32_t)s->iteration};
}

link_counters sim_inner_link(const sim *s, size_t i, double *z, double *q)
{
    const hfsad_link link = inner_link(s, i);
    memcpy(z, link.z, s->M * sizeof *z);
    memcpy(q, link.q, s->M * sizeof *q);
    return (link_counters){link.k, s->inner[i].last};
}

/* ---- set-up --------------------------------------------------------------------------------------------------- */

static uint16_t class_of_run(const sim *s, const run_of_leaves *r)
{
    if (!s->p->leaf_class_of)
        return 0;
    const uint16_t *class = s->p->leaf_class_of + run_first_leaf(s, r);
    for (size_t i = 1; i < r->count; i++)
        if (class[i] != class[0])
            return MIXED;
    return class[0];
}

static size_t runs_of(const inner_node *node, size_t slots)
{
    return (node->n_leaves + slots - 1) / slots;
}

static void make_runs(sim *s)
{
    const size_t slots = run_slots(s->M);
    size_t next = 0;
    for (size_t i = 0; i < s->d->n_inner; i++) {
        const inner_node *node = &s->d->inner[i];
        s->inner[i].first_run = next;
        s->inner[i].n_runs = runs_of(node, slots);
        for (size_t first = 0; first < node->n_leaves; first += slots) {
            const size_t left = node->n_leaves - first;
            run_of_leaves *r = &s->runs[next++];
            *r = (run_of_leaves){(uint32_t)i, (uint32_t)first, (uint32_t)(left < slots ? left : slots), 0, 0, 0, 0};
            r->class = class_of_run(s, r);
        }
    }
}

static void make_levels(sim *s)
{
    for (size_t i = s->d->n_inner; i-- > 0;)
        s->level[s->d->inner[i].depth] = i;
    size_t end = s->d->n_inner;
    for (uint32_t depth = HFSAD_TIERS_MAX + 2; depth-- > 1;) {
        if (depth > s->d->depth || !s->level[depth])
            s->level[depth] = end;
        end = s->level[depth];
    }
}

static void make_start(sim *s, const double *start)
{
    const dataset *d = s->d;
    for (size_t leaf = 0; leaf < d->n_leaves; leaf++) {
        dataset_scatter(d, s->z, leaf, start);
        dataset_scatter(d, s->q, leaf, start);
        if (s->w)
            dataset_scatter(d, s->w, leaf, start);
    }
    for (size_t i = 0; i < d->n_inner; i++) {
        memcpy(s->inner_w + i * s->M, start, s->M * sizeof *start);
        memcpy(s->inner_z + i * s->M, start, s->M * sizeof *start);
        memcpy(s->inner_q + i * s->M, start, s->M * sizeof *start);
    }
}

static bool somebody_sits_out(const plan *p)
{
    for (size_t c = 0; c < p->n_leaf_classes; c++)
        if (p->leaf_classes[c].participation < 1)
            return true;
    return false;
}

static void make_keys(sim *s)
{
    for (size_t i = 0; i < s->d->n_inner; i++)
        s->inner[i].key = rng_key(s->p->seed, rng_stream(s->d->inner[i].name));
    if (!s->key)
        return;
    char name[HFSAD_TIERS_MAX * 256];
    for (size_t leaf = 0; leaf < s->d->n_leaves; leaf++) {
        dataset_leaf_name(s->d, leaf, name, sizeof name);
        s->key[leaf] = rng_key(s->p->seed, rng_stream(name));
    }
}

static bool take_spaces(sim *s)
{
    const unsigned threads = pool_threads(s->threads);
    s->spaces = alloc_zero(threads, sizeof *s->spaces);
    for (unsigned t = 0; s->spaces && t < threads; t++) {
        thread_space *space = &s->spaces[t];
        space->scratch = alloc_zero(leaf_run_scratch(s->M) + tree_lanes(s->M) * s->M, sizeof(double));
        space->rows = alloc_zero(6 * s->M, sizeof(double));
        space->active = alloc_zero(run_slots(s->M), 1);
        if (!space->scratch || !space->rows || !space->active)
            return false;
    }
    return s->spaces != NULL;
}

static bool take_memory(sim *s)
{
    const dataset *d = s->d;
    const size_t rows = d->n_inner * s->M, slots = run_slots(s->M);
    s->n_runs = 0;
    for (size_t i = 0; i < d->n_inner; i++)
        s->n_runs += runs_of(&d->inner[i], slots);
    const bool draws = somebody_sits_out(s->p);
    s->z = alloc_zero(d->leaf_doubles, sizeof(double));
    s->q = alloc_zero(d->leaf_doubles, sizeof(double));
    s->w = s->p->keep_w ? alloc_zero(d->leaf_doubles, sizeof(double)) : NULL;
    s->k = alloc_zero(d->n_leaves, sizeof *s->k);
    s->last = draws ? alloc_zero(d->n_leaves, sizeof *s->last) : NULL;
    s->key = draws ? alloc_zero(d->n_leaves, sizeof *s->key) : NULL;
    s->inner_w = alloc_zero(rows, sizeof(double));
    s->inner_z = alloc_zero(rows, sizeof(double));
    s->inner_q = alloc_zero(rows, sizeof(double));
    s->inner = alloc_zero(d->n_inner, sizeof *s->inner);
    s->runs = alloc_zero(s->n_runs, sizeof *s->runs);
    s->run_u = alloc_zero(s->n_runs * s->M, sizeof(double));
    s->run_sums = alloc_zero(s->n_runs, sizeof *s->run_sums);
    return take_spaces(s) && s->z && s->q && (s->w || !s->p->keep_w) && s->k && (!draws || (s->last && s->key)) &&
           s->inner_w && s->inner_z && s->inner_q && s->inner && s->runs && s->run_u && s->run_sums;
}

hfsad_status sim_create(sim **out, const dataset *d, const plan *p, const double *start, const double *truth,
                        pool *threads, hfsad_error *err)
{
    *out = NULL;
    sim *s = alloc_zero(1, sizeof *s);
    if (!s)
        return error_memory(err, sizeof *s, "a run");
    s->d = d;
    s->p = p;
    s->truth = truth;
    s->threads = threads;
    s->M = d->M;
    if (!take_memory(s)) {
        sim_free(s);
        return error_memory(err, d->leaf_doubles * sizeof(double) * (p->keep_w ? 3 : 2), "the state of the links");
    }
    make_runs(s);
    make_levels(s);
    make_start(s, start);
    make_keys(s);
    *out = s;
    return HFSAD_OK;
}

void sim_free(sim *s)
{
    if (!s)
        return;
    for (unsigned t = 0; s->spaces && t < pool_threads(s->threads); t++) {
        free(s->spaces[t].scratch);
        free(s->spaces[t].rows);
        free(s->spaces[t].active);
    }
    free(s->spaces);
    free(s->z);
    free(s->q);
    free(s->w);
    free(s->k);
    free(s->last);
    free(s->key);
    free(s->inner_w);
    free(s->inner_z);
    free(s->inner_q);
    free(s->inner);
    free(s->runs);
    free(s->run_u);
    free(s->run_sums);
    free(s);
}
