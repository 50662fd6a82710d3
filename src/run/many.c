/*
 * Clients with many rows in the simulator. Their steps are distributed over the threads one at a time, because they
 * differ in length; then the messages of every run are summed in the order of kernels.h.
 */
#include "run/state.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/wire.h"
#include "core/fold.h"
#include "plan/client_terms.h"
#include "plan/noise.h"

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

/* plan/noise.h; only one thread has this leaf. */
static void step_with_noise(sim *s, size_t leaf, const rows_leaf *one, thread_space *space)
{
    const size_t M = s->M;
    double *z = space->rows + M, *q = space->rows + 2 * M;
    hfsad_link link = {one->z, one->q, 0};
    int64_t *steps = (int64_t *)(void *)(space->rows + 4 * M);
    if (s->p->secure) {
        s->many.dual[leaf] = kernels()->rows_step(one);
        link.k = *one->k;
        if (!noise_clip_link(s->p, one->rule, &link, M, one->w_parent, z, q, steps))
            s->over = 1 + s->d->n_inner + leaf;
        return;
    }
    memcpy(z, one->z, M * sizeof *z);
    memcpy(q, one->q, M * sizeof *q);
    (void)kernels()->rows_step(one);
    memcpy(one->z, z, M * sizeof *z);
    memcpy(one->q, q, M * sizeof *q);
    link.k = *one->k;
    seeded_words seeded = {s->many.noise[leaf], 0, 0};
    const word_source words = seeded_words_source(&seeded);
    noise_model(&s->p->noise, &words, link.k, M, one->w_parent, one->w, steps);
    s->many.dual[leaf] = kernels()->link_step(one->rule, &link, M, one->w, one->w_parent);
}

static void step_leaf(void *context, size_t leaf, unsigned thread)
{
    sim *s = context;
    s->many.dual[leaf] = 0; /* active: of no leaf of another rank */
    if (!s->many.active[leaf])
        return;
    rows_leaf one = rows_view(s, leaf, &s->spaces[thread]);
    one.w_parent = w_heard(s, one.w_parent);
    if (s->many.noise) {
        step_with_noise(s, leaf, &one, &s->spaces[thread]);
        return;
    }
    for (uint32_t step = plan_leaf(s->p, leaf)->local_steps; step > 0; step--)
        s->many.dual[leaf] = kernels()->rows_step(&one);
}

static void sum_run(void *context, size_t index, unsigned thread)
{
    sim *s = context;
    run_of_leaves *r = &s->runs[index];
    thread_space *space = &s->spaces[thread];
    if (!r->mine)
        return;
    const size_t M = s->M, first = run_first_leaf(s, r);
    double *u = space->rows + 4 * M;
    fold sum;
    fold_begin(&sum, M, space->scratch + leaf_run_scratch(M), s->run_u + index * M);
    r->dual = 0;
    for (size_t leaf = first; leaf < first + r->count; leaf++) {
        const rows_leaf one = rows_view(s, leaf, space);
        const hfsad_link link = {one.z, one.q, *one.k};
        const double sigma = hfsad_link_message(one.rule, &link, M, u);
        if (s->said)
            (void)wire_round(u, M);
        fold_add(&sum, u, sigma);
        r->dual += s->many.dual[leaf];
    }
    fold_end(&sum);
    r->sum_sigma = sum.sum_sigma;
}

void many_round(sim *s)
{
    for (size_t i = 0; i < s->n_runs; i++)
        if (s->runs[i].mine)
            draw_run(s, &s->runs[i], s->many.active + run_first_leaf(s, &s->runs[i]));
    for_each(s, 0, s->d->n_leaves, s->d->n_rows, step_leaf);
    if (!s->p->fixed) /* sum_fixed does it by cohorts */
        for_each(s, 0, s->n_runs, s->d->n_leaves, sum_run);
}

/* If clients or edges have their own intercepts, the nodes above are not tied: their models get the mean over the
 * clients below. */
void many_settle(sim *s)
{
    const size_t F = s->d->rows.F, M = s->M;
    const bool own_client = s->p->leaf_classes[0].rule.penalty.free;
    if (!own_client && !(s->d->n_inner > 1 && s->p->inner[1].rule.penalty.free))
        return;
    double *sum = s->many.intercept, *count = sum + s->d->n_inner;
    for (size_t i = s->d->n_inner; i-- > 0;) {
        const inner_node *node = &s->d->inner[i];
        double *w = s->inner_w + i * M + F;
        sum[i] = count[i] = 0;
        if (i == 0)
            ranks_intercepts(s, sum, count);
        for (size_t c = node->first_inner; c < node->first_inner + node->n_inner; c++) {
            if (!inner_is_here(s, c))
                continue;
            sum[i] += sum[c];
            count[i] += count[c];
        }
        size_t leaves = 0;
        for (size_t slot = 0; slot < node->n_leaves; slot++) {
            if (!leaf_is_here(s, node->first_leaf + slot))
                continue;
            leaves++;
            if (own_client)
                sum[i] += (s->w ? s->w : s->z)[node->base + slot * M + F];
        }
        if (!own_client)
            sum[i] += (double)leaves * *w;
        count[i] += (double)leaves;
        if (inner_is_here(s, i) && (own_client || node->n_leaves == 0))
            *w = sum[i] / count[i];
    }
}

double sim_intercept(const sim *s, size_t leaf)
{
    const size_t F = s->d->rows.F;
    const uint32_t parent = dataset_parent(s->d, leaf);
    const inner_node *node = &s->d->inner[parent];
    if (plan_leaf(s->p, leaf)->rule.penalty.free)
        return (s->w ? s->w : s->z)[dataset_place(s->d, node, (uint32_t)(leaf - node->first_leaf)).first + F];
    return s->inner_w[(parent && s->p->inner[parent].rule.penalty.free ? parent * s->M : 0) + F];
}

/* w_0, with the node's own intercept if it has one. */
static const double *consensus_model(const sim *s, size_t leaf, double *w)
{
    memcpy(w, s->inner_w, s->M * sizeof *w);
    if (s->d->rows.constant != 0)
        w[s->d->rows.F] = sim_intercept(s, leaf);
    return w;
}

void many_measure(const sim *s, const run_of_leaves *r, thread_space *space, link_sums *sums)
{
    const size_t first = run_first_leaf(s, r);
    for (size_t leaf = first; leaf < first + r->count; leaf++) {
        if (!leaf_is_here(s, leaf))
            continue;
        const rows_leaf one = rows_view(s, leaf, space);
        const hfsad_link link = {one.z, one.q, *one.k};
        const double *w = s->w ? one.w : one.z, *w0 = consensus_model(s, leaf, space->rows + 5 * s->M);
        sums->loss += kernels()->rows_loss(&one.problem, w);
        sums->consensus_loss += kernels()->rows_loss(&one.problem, w0);
        kernels()->link_measure(one.rule, &link, s->M, w, one.w_parent, w0, sums);
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
    if (factored) /* where one fails the rows are swept, which takes longer */
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
