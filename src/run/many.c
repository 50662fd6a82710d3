/*
 * Clients with many rows in the simulator. Their steps are distributed over the threads one at a time, because they
 * differ in length; then the messages of every run are summed in the order of kernels.h.
 */
#include "run/state.h"

#include "base/alloc.h"
#include "base/error.h"
#include "cell/client.h"
#include "plan/client_terms.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

rows_leaf rows_view(const sim *s, size_t leaf, thread_space *space)
{
    const leaf_class *class = plan_leaf(s->p, leaf);
    const uint32_t parent = dataset_parent(s->d, leaf);
    const inner_node *node = &s->d->inner[parent];
    const size_t at = dataset_place(s->d, node, (uint32_t)(leaf - node->first_leaf)).first;
    const size_t row = s->d->rows.first[leaf];
    return (rows_leaf){
        .problem =
            {
                .loss = &class->loss,
                .solver = &class->solver,
                .rows = dataset_rows(s->d, leaf),
                .M = s->M,
                .factor = s->many.factor[leaf],
                .slope = s->many.slope + row,
                .anchor = rows_anchored(&class->loss) ? s->many.anchor + row : NULL,
                .eta = s->many.eta ? s->many.eta + leaf : NULL,
                .squared = s->many.squared ? s->many.squared[leaf] : NULL,
                .own = plan_client_loss(s->p, class),
                .node = s->d->n_inner + leaf,
                .scratch = space->solver,
                .visits = &space->visits,
            },
        .rule = sim_leaf_rule(s, class),
        .z = s->z + at,
        .q = s->q + at,
        .w = s->w ? s->w + at : space->rows + 3 * s->M,
        .k = s->k + leaf,
        .w_parent = s->inner_w + (size_t)parent * s->M,
        .majorant = guard_majorises(s->p, s->guard.repairs),
        .centre = space->rows,
    };
}

double many_step(sim *s, size_t leaf, const double *w_parent, uint32_t steps, thread_space *space)
{
    rows_leaf one = rows_view(s, leaf, space);
    one.w_parent = w_parent;
    double *rows = space->rows;
    seeded_words seeded = {s->many.noise ? s->many.noise[leaf] : 0, 0, 0};
    client_noise noise = {s->p, seeded_words_source(&seeded), rows + s->M, rows + 2 * s->M,
                          (int64_t *)(void *)(rows + 4 * s->M)};
    bool too_large = false;
    const double dual = client_steps(&one, steps, s->many.noise ? &noise : NULL, &too_large);
    if (too_large) /* any of them is named */
        s->over = 1 + s->d->n_inner + leaf;
    return dual;
}

static void step_leaf(void *context, size_t leaf, unsigned thread)
{
    sim *s = context;
    const double *w_parent = s->inner_w + (size_t)dataset_parent(s->d, leaf) * s->M;
    s->many.dual[leaf] = 0; /* active: of no leaf of another rank */
    if (s->many.active[leaf])
        s->many.dual[leaf] =
            many_step(s, leaf, w_heard(s, w_parent), plan_leaf(s->p, leaf)->local_steps, &s->spaces[thread]);
}

static void sum_run(void *context, size_t index, unsigned thread)
{
    sim *s = context;
    run_of_leaves *r = &s->runs[index];
    if (!r->mine)
        return;
    sim_sum_run(s, index, &s->spaces[thread]);
    const size_t first = run_first_leaf(s, r);
    r->dual = 0;
    for (size_t leaf = first; leaf < first + r->count; leaf++)
        r->dual += s->many.dual[leaf];
}

void many_round(sim *s)
{
    for (size_t i = 0; i < s->n_runs; i++)
        if (s->runs[i].mine)
            draw_run(s, &s->runs[i], s->many.active + run_first_leaf(s, &s->runs[i]));
    for_each(s, 0, s->d->n_leaves, s->d->n_rows, step_leaf);
    if (!s->p->fixed) /* added up by cohorts instead (cell/cell.h) */
        for_each(s, 0, s->n_runs, s->d->n_leaves, sum_run);
}

static intercept_owner owner_of(const sim *s)
{
    return (intercept_owner){s->p->leaf_classes[0].rule.penalty.free > 0,
                             s->d->n_inner > 1 && s->p->inner[1].rule.penalty.free > 0};
}

/* Of the clients of a node: how many are there, and the sum of their own intercepts. */
static size_t leaves_here(const sim *s, const inner_node *node, bool own, double *sum)
{
    size_t leaves = 0;
    for (size_t slot = 0; slot < node->n_leaves; slot++) {
        if (!leaf_is_here(s, node->first_leaf + slot))
            continue;
        leaves++;
        if (own)
            *sum += (s->w ? s->w : s->z)[node->base + slot * s->M + s->d->rows.F];
    }
    return leaves;
}

void many_settle(sim *s)
{
    const intercept_owner owner = owner_of(s);
    if (!owner.client && !owner.edge)
        return;
    double *sum = s->many.intercept, *count = sum + s->d->n_inner, mean;
    for (size_t i = s->d->n_inner; i-- > 0;) {
        const inner_node *node = &s->d->inner[i];
        double *w = s->inner_w + i * s->M + s->d->rows.F;
        sim_cell at = {s, i, &s->spaces[0]};
        const cell c = sim_cell_of(&at);
        sum[i] = count[i] = 0;
        if (i == 0)
            ranks_intercepts(s, sum, count);
        for (size_t child = node->first_inner; child < node->first_inner + node->n_inner; child++) {
            if (!inner_is_here(s, child))
                continue;
            sum[i] += sum[child];
            count[i] += count[child];
        }
        const size_t leaves = leaves_here(s, node, owner.client, &sum[i]);
        count[i] += (double)leaves;
        if (cell_settle(&c, owner, leaves, *w, &sum[i], count[i], &mean) && inner_is_here(s, i))
            *w = mean;
    }
}

/* Where it is; NULL: it is the cloud's. */
static const double *own_intercept(const sim *s, size_t leaf)
{
    const size_t F = s->d->rows.F;
    const uint32_t parent = dataset_parent(s->d, leaf);
    const inner_node *node = &s->d->inner[parent];
    if (s->d->rows.constant == 0)
        return NULL;
    if (plan_leaf(s->p, leaf)->rule.penalty.free)
        return (s->w ? s->w : s->z) + dataset_place(s->d, node, (uint32_t)(leaf - node->first_leaf)).first + F;
    return parent && s->p->inner[parent].rule.penalty.free ? s->inner_w + parent * s->M + F : NULL;
}

double sim_intercept(const sim *s, size_t leaf)
{
    const double *own = own_intercept(s, leaf);
    return own ? *own : s->inner_w[s->d->rows.F];
}

void many_measure(const sim *s, const run_of_leaves *r, thread_space *space, link_sums *sums)
{
    const size_t first = run_first_leaf(s, r);
    for (size_t leaf = first; leaf < first + r->count; leaf++) {
        if (!leaf_is_here(s, leaf))
            continue;
        const rows_leaf one = rows_view(s, leaf, space);
        client_measure(&one, s->w ? one.w : one.z,
                       client_consensus(s->M, s->inner_w, own_intercept(s, leaf), space->rows + 5 * s->M), sums);
    }
}

static bool factors(const sim *s, size_t leaf)
{
    const client_rows rows = dataset_rows(s->d, leaf);
    return client_is_factored(plan_leaf(s->p, leaf), &rows, s->M);
}

static void make_factor(void *context, size_t leaf, unsigned thread)
{
    sim *s = context;
    (void)thread;
    const client_rows rows = dataset_rows(s->d, leaf);
    const bool wanted = factors(s, leaf) && dataset_holds(s->d, leaf);
    s->many.squared[leaf] = wanted ? squared_create(&rows, s->M, s->many.factor[leaf]) : NULL;
}

static bool take(double **array, size_t count, bool wanted)
{
    *array = wanted ? alloc_zero(count, sizeof **array) : NULL;
    return *array || !wanted;
}

/* most: rows of one client */
static bool take_many(sim *s, bool anchored, bool linearized, bool factored, size_t most)
{
    many_rows *m = &s->many;
    const size_t n = s->d->n_leaves;
    bool done = take(&m->intercept, 2 * s->d->n_inner, true) && take(&m->slope, s->d->n_rows, true) &&
                take(&m->anchor, s->d->n_rows, anchored) && take(&m->eta, n, linearized) && take(&m->factor, n, true) &&
                take(&m->dual, n, true);
    m->active = alloc_zero(n, 1);
    m->noise = plan_has_noise(s->p) ? alloc_zero(n, sizeof *m->noise) : NULL;
    done = done && (m->noise || !plan_has_noise(s->p));
    m->squared = factored ? alloc_zero(n, sizeof(squared_factor *)) : NULL;
    done = done && m->active && (m->squared || !factored);
    for (unsigned t = 0; t < pool_threads(s->threads) && done; t++)
        done = take(&s->spaces[t].solver, rows_scratch(s->M, most), true);
    return done;
}

hfsad_status many_create(sim *s, hfsad_error *err)
{
    bool anchored = false, linearized = false, factored = false;
    size_t most = 0;
    for (size_t leaf = 0; leaf < s->d->n_leaves; leaf++) {
        const leaf_class *class = plan_leaf(s->p, leaf);
        const size_t rows = dataset_rows(s->d, leaf).count;
        most = rows > most ? rows : most;
        anchored = anchored || rows_anchored(&class->loss);
        linearized = linearized || class->solver.method == ROWS_LINEARIZED;
        factored = factored || factors(s, leaf);
    }
    if (!take_many(s, anchored, linearized, factored, most))
        return error_memory(err, s->d->n_rows * sizeof(double), "the clients' rows");
    for (size_t leaf = 0; leaf < s->d->n_leaves; leaf++) {
        const client_rows rows = dataset_rows(s->d, leaf);
        if (dataset_holds(s->d, leaf))
            s->many.factor[leaf] = client_factor(plan_leaf(s->p, leaf), &rows);
    }
    char name[HFSAD_TIERS_MAX * 256];
    for (size_t leaf = 0; s->many.noise && leaf < s->d->n_leaves; leaf++) {
        dataset_leaf_name(s->d, leaf, name, sizeof name);
        s->many.noise[leaf] = noise_key(s->p->seed, name);
    }
    if (factored) /* if a factorisation fails, the rows are swept instead, which takes longer */
        for_each(s, 0, s->d->n_leaves, s->d->n_rows, make_factor);
    return HFSAD_OK;
}

void many_free(sim *s)
{
    for (size_t leaf = 0; s->many.squared && leaf < s->d->n_leaves; leaf++)
        squared_free(s->many.squared[leaf]);
    free(s->many.intercept);
    free(s->many.slope);
    free(s->many.anchor);
    free(s->many.eta);
    free(s->many.factor);
    free(s->many.squared);
    free(s->many.active);
    free(s->many.noise);
    free(s->many.dual);
}
