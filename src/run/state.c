/* Set-up of the simulator, and how the rest of the program reads its state. */
#include "run/state.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/rng.h"
#include "data/generated.h"
#include "plan/client_terms.h"
#include "plan/cohort.h"
#include "run/anew.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

size_t run_first_leaf(const sim *s, const run_of_leaves *r)
{
    return s->d->inner[r->parent].first_leaf + r->first_slot;
}

leaf_run run_view(const sim *s, const run_of_leaves *r, size_t index, thread_space *space)
{
    const inner_node *parent = &s->d->inner[r->parent];
    const size_t at = parent->base + (size_t)r->first_slot * s->M, leaf = run_first_leaf(s, r);
    const leaf_class *class = &s->p->leaf_classes[r->class == MIXED ? 0 : r->class];
    return (leaf_run){
        .M = s->M,
        .count = r->count,
        .lanes = s->d->lanes,
        .loss = &class->loss,
        .rule = sim_leaf_rule(s, class),
        .local_steps = class->local_steps,
        .x = s->d->x + at,
        .y = s->d->y + leaf,
        .n = s->d->n + leaf,
        .z = s->z + at,
        .q = s->q + at,
        .w = s->w ? s->w + at : NULL,
        .k = s->k + leaf,
        .w_parent = s->inner_w + (size_t)r->parent * s->M,
        .split = s->p->split,
        .majorant = guard_majorises(s->p, s->guard.repairs),
        .scratch = space->scratch,
        .sum_u = s->run_u + index * s->M,
        .want_dual = s->want_dual,
    };
}

leaf_run leaf_view(const sim *s, size_t leaf, uint32_t parent, thread_space *space)
{
    const size_t M = s->M;
    double *rows = space->rows;
    const leaf_class *class = plan_leaf(s->p, leaf);
    dataset_gather(s->d, s->d->x, leaf, rows);
    dataset_gather(s->d, s->z, leaf, rows + M);
    dataset_gather(s->d, s->q, leaf, rows + 2 * M);
    dataset_gather(s->d, s->w ? s->w : s->z, leaf, rows + 3 * M);
    return (leaf_run){
        .M = M,
        .count = 1,
        .lanes = 1,
        .loss = &class->loss,
        .rule = sim_leaf_rule(s, class),
        .local_steps = class->local_steps,
        .x = rows,
        .y = s->d->y + leaf,
        .n = s->d->n + leaf,
        .z = rows + M,
        .q = rows + 2 * M,
        .w = rows + 3 * M,
        .k = s->k + leaf,
        .w_parent = s->inner_w + (size_t)parent * M,
        .split = s->p->split,
        .majorant = guard_majorises(s->p, s->guard.repairs),
        .scratch = space->scratch,
        .sum_u = rows + 4 * M,
        .want_dual = s->want_dual,
    };
}

hfsad_link inner_link(const sim *s, size_t i)
{
    return (hfsad_link){s->inner_z + i * s->M, s->inner_q + i * s->M, s->inner[i].k};
}

/* Below this count of numbers a thread costs more than it gains. */
enum { WORTH_A_THREAD = 16384 };

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

void for_each(sim *s, size_t first, size_t end, size_t rows, void (*work)(void *, size_t, unsigned))
{
    span a = {s, first, work};
    if (rows * s->M >= WORTH_A_THREAD)
        pool_run(s->threads, end - first, work_at, &a);
    else
        for (size_t i = first; i < end; i++)
            work(s, i, 0);
}

const double *sim_cloud(const sim *s)
{
    return s->inner_w;
}

const double *sim_best(const sim *s, double *objective)
{
    *objective = s->guard.least;
    return guard_best(&s->guard, s->p, s->iteration, NULL);
}

run_absence sim_absence(const sim *s, size_t node)
{
    return s->lent ? (run_absence)s->lent[node] : ABSENCE_NONE;
}

const double *sim_inner_model(const sim *s, size_t i)
{
    while (s->lent && s->lent[i])
        i = s->d->inner[i].parent;
    return s->inner_w + i * s->M;
}

void sim_leaf_model(const sim *s, size_t leaf, double *w)
{
    if (s->lent && s->lent[s->d->n_inner + leaf])
        memcpy(w, sim_inner_model(s, dataset_parent(s->d, leaf)), s->M * sizeof *w);
    else
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

static uint16_t class_of_run(const sim *s, const run_of_leaves *r)
{
    if (s->p->fixed) /* the figures of each leaf are wanted */
        return MIXED;
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
        s->inner[i].mine = i == 0 || !s->unit_u || share_is_mine(s->d, share_of_inner(s->d, i));
        s->inner[i].first_run = next;
        s->inner[i].n_runs = runs_of(node, slots);
        for (size_t first = 0; first < node->n_leaves; first += slots) {
            const size_t left = node->n_leaves - first;
            run_of_leaves *r = &s->runs[next++];
            *r = (run_of_leaves){
                .parent = (uint32_t)i, .first_slot = (uint32_t)first, .count = (uint32_t)(left < slots ? left : slots)};
            r->class = class_of_run(s, r);
            r->mine = !s->unit_u || share_is_mine(s->d, share_of_slot(s->d, i, first));
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

void sim_set_model(sim *s, size_t node, const double *w)
{
    assert(s->iteration == 0);
    sim_place(s, node, w);
}

/* After z, q and w of a client have become one vector. */
static void shorten_leaf(sim *s, size_t leaf)
{
    const inner_node *parent = &s->d->inner[dataset_parent(s->d, leaf)];
    if (!(s->p->split > 0))
        return;
    const leaf_place place = dataset_place(s->d, parent, (uint32_t)(leaf - parent->first_leaf));
    for (size_t m = 0; m < s->M; m++) {
        const size_t o = place.first + m * place.stride;
        s->z[o] = s->q[o] = precision_round(s->p->split, s->z[o]);
        if (s->w)
            s->w[o] = s->z[o];
    }
}

void sim_place(sim *s, size_t node, const double *w)
{
    device_changed(s);
    sim_settle_leaves(s);
    const dataset *d = s->d;
    if (node >= d->n_inner) {
        const size_t leaf = node - d->n_inner;
        dataset_scatter(d, s->z, leaf, w);
        dataset_scatter(d, s->q, leaf, w);
        if (s->w)
            dataset_scatter(d, s->w, leaf, w);
        shorten_leaf(s, leaf);
        return;
    }
    memcpy(s->inner_w + node * s->M, w, s->M * sizeof *w);
    if (node == 0) /* it has no link */
        return;
    memcpy(s->inner_z + node * s->M, w, s->M * sizeof *w);
    memcpy(s->inner_q + node * s->M, w, s->M * sizeof *w);
}

static void start_leaves(sim *s, const double *start)
{
    for (const run_of_leaves *r = s->runs; r < s->runs + s->n_runs; r++)
        for (size_t i = 0; i < r->count && r->mine; i++)
            sim_place(s, s->d->n_inner + run_first_leaf(s, r) + i, start);
}

void sim_settle_leaves(sim *s)
{
    double *start = s->leaf_start;
    if (!start)
        return;
    s->leaf_start = NULL;
    start_leaves(s, start);
    free(start);
}

/* Rows that are not drawn yet may be a device's, and then the clients' state is, too: it is not begun here. */
static void make_start(sim *s, const double *start)
{
    for (size_t i = 0; i < s->d->n_inner; i++)
        sim_place(s, i, start);
    const bool later = s->d->generated && !generated_is_drawn(s->d->generated) && !s->unit_u;
    s->leaf_start = later ? alloc_raw(s->M, sizeof *start) : NULL;
    if (s->leaf_start) {
        memcpy(s->leaf_start, start, s->M * sizeof *start);
        plan_shorten(s->p, s->M, s->leaf_start);
    } else {
        start_leaves(s, start);
    }
    if (s->guard.calm)
        guard_begin(&s->guard, s->guard.calm, s->M, start);
}

static bool keeps_w(const sim *s)
{
    return plan_keeps_w(s->p, s->d->rows.first != NULL);
}

static void make_keys(sim *s)
{
    for (size_t i = 0; i < s->d->n_inner; i++) {
        const inner_node *parent = &s->d->inner[s->d->inner[i].parent];
        const size_t first = i ? parent->first_inner + cohort_of(s->p, parent->n_inner, i - parent->first_inner) : 0;
        s->inner[i].key = rng_key(s->p->seed, rng_stream(s->d->inner[first].name));
    }
    if (!s->key)
        return;
    char name[HFSAD_TIERS_MAX * 256];
    for (size_t leaf = 0; leaf < s->d->n_leaves; leaf++) {
        const inner_node *node = &s->d->inner[dataset_parent(s->d, leaf)];
        dataset_leaf_name(s->d, node->first_leaf + cohort_of(s->p, node->n_leaves, leaf - node->first_leaf), name,
                          sizeof name);
        s->key[leaf] = rng_key(s->p->seed, rng_stream(name));
    }
}

bool signs_are_free(const plan *p, size_t n_leaves)
{
    for (size_t leaf = 0; leaf < n_leaves; leaf++)
        if (!loss_kind_of(&plan_leaf(p, leaf)->loss)->majorised)
            return false;
    return true;
}

static bool take_said(const sim *s, thread_space *space)
{
    size_t most = 0;
    for (size_t i = 0; i < s->d->n_inner; i++) {
        const size_t n = (size_t)s->d->inner[i].n_inner + s->d->inner[i].n_leaves;
        most = n > most ? n : most;
    }
    space->said = alloc_zero(most * s->M, sizeof(double));
    space->of = alloc_zero(most, sizeof(double *));
    space->sigma = alloc_zero(most, sizeof(double));
    space->shares = alloc_zero(most, sizeof *space->shares);
    return space->said && space->of && space->sigma && space->shares;
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
        if (!space->scratch || !space->rows || !space->active || (s->p->aggregate && !take_said(s, space)))
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
    const bool draws = plan_leaves_sit_out(s->p);
    s->z = alloc_zero(d->leaf_doubles, sizeof(double));
    s->q = alloc_zero(d->leaf_doubles, sizeof(double));
    s->w = keeps_w(s) ? alloc_zero(d->leaf_doubles, sizeof(double)) : NULL;
    s->k = alloc_zero(d->n_leaves, sizeof *s->k);
    s->last = draws ? alloc_zero(d->n_leaves, sizeof *s->last) : NULL;
    s->key = draws ? alloc_zero(d->n_leaves, sizeof *s->key) : NULL;
    s->inner_w = alloc_zero(rows, sizeof(double));
    s->inner_z = alloc_zero(rows, sizeof(double));
    s->inner_q = alloc_zero(rows, sizeof(double));
    s->leaf_dual = s->p->fixed && !d->rows.first ? alloc_zero(d->n_leaves, sizeof(double)) : NULL;
    s->leaf_sums = s->p->fixed ? alloc_zero(d->n_leaves, sizeof *s->leaf_sums) : NULL;
    s->said = s->p->rounds ? alloc_zero(rows, sizeof(double)) : NULL;
    s->guard.calm = plan_has_guard(s->p, s->d->n_inner) ? alloc_zero(GUARD_VECTORS * s->M, sizeof(double)) : NULL;
    s->guard.star = s->p->inner[0].watched && d->n_inner == 1;
    s->leaf_rules = s->guard.star || s->p->cycles ? alloc_zero(s->p->n_leaf_classes, sizeof *s->leaf_rules) : NULL;
    s->inner = alloc_zero(d->n_inner, sizeof *s->inner);
    s->runs = alloc_zero(s->n_runs, sizeof *s->runs);
    s->run_u = alloc_zero(s->n_runs * s->M, sizeof(double));
    s->run_sums = alloc_zero(s->n_runs, sizeof *s->run_sums);
    const bool several = ranks()->count > 1 && !s->p->fixed; /* fixed point: every rank alike */
    const size_t units = several ? share_units(d) : 0;
    s->parts = several ? alloc_zero(units, sizeof *s->parts) : NULL;
    s->unit_u = several ? alloc_zero(units, s->M * sizeof(double) + sizeof(unit_rest)) : NULL;
    if (several && !(s->parts && s->unit_u))
        return false;
    return take_spaces(s) && (s->leaf_rules || !(s->guard.star || s->p->cycles)) && s->z && s->q &&
           (s->w || !keeps_w(s)) && s->k && (!draws || (s->last && s->key)) &&
           (s->guard.calm || !plan_has_guard(s->p, s->d->n_inner)) && s->inner_w && s->inner_z && s->inner_q &&
           (s->said || !s->p->rounds) && (s->leaf_dual || !s->p->fixed || d->rows.first) &&
           (s->leaf_sums || !s->p->fixed) && s->inner && s->runs && s->run_u && s->run_sums;
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
    s->stop.met_since = UINT64_MAX;
    s->absences = plan_leaves_sit_out(p) || plan_inner_sit_out(p, d->n_inner);
    if (!take_memory(s)) {
        const size_t vectors = keeps_w(s) ? 3 : 2;
        sim_free(s);
        return error_memory(err, d->leaf_doubles * sizeof(double) * vectors, "the state of the links");
    }
    sim_find_rules(s);
    make_runs(s);
    make_levels(s);
    make_start(s, start);
    make_keys(s);
    s->sign_free = signs_are_free(p, d->n_leaves);
    const hfsad_status status = d->rows.first ? many_create(s, err) : HFSAD_OK;
    if (!status && d->rows.constant != 0)
        many_settle(s);
    if (status)
        sim_free(s);
    else
        *out = s;
    return status;
}

void sim_free(sim *s)
{
    if (!s)
        return;
    device_close(s);
    for (unsigned t = 0; s->spaces && t < pool_threads(s->threads); t++) {
        free(s->spaces[t].scratch);
        free(s->spaces[t].rows);
        free(s->spaces[t].active);
        free(s->spaces[t].solver);
        free(s->spaces[t].said);
        free(s->spaces[t].of);
        free(s->spaces[t].sigma);
        free(s->spaces[t].shares);
    }
    many_free(s);
    free(s->spaces);
    free(s->leaf_start);
    free(s->z);
    free(s->q);
    free(s->w);
    free(s->k);
    free(s->last);
    free(s->key);
    free(s->inner_w);
    free(s->inner_z);
    free(s->inner_q);
    free(s->said);
    free(s->leaf_dual);
    free(s->leaf_sums);
    free(s->guard.calm);
    free(s->leaf_rules);
    sim_free_anew(s);
    free(s->here);
    free(s->lent);
    free(s->left);
    free(s->inner);
    free(s->runs);
    free(s->run_u);
    free(s->run_sums);
    free(s->parts);
    free(s->unit_u);
    free(s);
}
