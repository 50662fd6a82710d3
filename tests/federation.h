/* Problems for a federation of nodes, their results in the simulator, and the comparison with the nodes' results. */
#ifndef HFSAD_TESTS_FEDERATION_H
#define HFSAD_TESTS_FEDERATION_H

#include "tools.h"

#include "data/features.h"
#include "net/tree.h"
#include "run/replay.h"

#include <inttypes.h>

/* ---- what is trained ---- */

typedef struct {
    const char *name;
    size_t edges;
    const char *const *paths;
    const size_t *clients;
    size_t M, rows; /* rows: of a client, at most; 1: the layout in blocks */
    int intercept;
    bool labels;
    const char *spec;
} problem;

static const char *const flat[] = {""}, *const two[] = {"a", "b", "c"}, *const deep[] = {"r/a", "r/b", "s/c", "d", ""};
static const size_t flat_clients[] = {11}, two_clients[] = {9, 3, 1}, deep_clients[] = {3, 2, 9, 4, 2};

static const problem problems[] = {
    {"poisson", 3, two, two_clients, 6, 5, INTERCEPT_EDGE, false,
     "loss: {kind: poisson}\nfeatures: {intercept: edge}\nprior: {cloud: {penalty: elastic-net, weight: 2, ratio: "
     "0.3}}\n"
     "run: {iterations: 5, edge_rounds: 2, polish: false}\n"},
    {"smoothed quantile and expectile", 5, deep, deep_clients, 4, 6, 0, false,
     "loss: {kind: smoothed-quantile, tau: 0.3, h: 0.4}\nprior: {edge: {penalty: l2, weight: 3}}\n"
     "run: {iterations: 5, edge_rounds: 2, participation: {client: 0.7}}\n"
     "overrides:\n  - {node: 'r/a/*', loss: {kind: expectile, tau: 0.8}}\n"},
    {"poisson of one row each", 1, flat, flat_clients, 3, 1, 0, false,
     "loss: {kind: poisson, box: 2}\nrun: {iterations: 6, edge_rounds: 3}\n"},
    {"flat", 1, flat, flat_clients, 5, 1, 0, false,
     "loss: {kind: phase-retrieval, box: 5}\nrun: {iterations: 6, edge_rounds: 3}\n"},
    {"links in floats", 5, deep, deep_clients, 5, 1, 0, false,
     "loss: {kind: absolute}\nalgorithm: hfsad\n"
     "run: {iterations: 6, edge_rounds: 2, polish: false, precision: float, start: normal, participation: {client: "
     "0.7}}\n"},
    {"links in bfloat16", 3, two, two_clients, 7, 1, 0, false,
     "loss: {kind: phase-retrieval, box: 5}\npreset: paper\n"
     "run: {iterations: 5, edge_rounds: 4, local_steps: 2, precision: bfloat16}\n"},
    {"phase retrieval", 3, two, two_clients, 7, 1, 0, false,
     "loss: {kind: phase-retrieval, box: 5}\npreset: paper\nrun: {iterations: 5, edge_rounds: 4}\n"},
    {"cycles", 3, two, two_clients, 4, 1, 0, false,
     "loss: {kind: phase-retrieval, box: 5}\nschedule: {client: {growth: 1.5}, edge: {growth: 1.5}}\n"
     "run: {iterations: 16, edge_rounds: 40, cycles: true}\n"},
    {"cycles of many rows", 5, deep, deep_clients, 3, 4, 0, false,
     "loss: {kind: phase-retrieval}\nschedule: {client: {growth: 1.5}, edge: {growth: 1.5}}\n"
     "run: {iterations: 20, edge_rounds: 40, cycles: true, local_steps: 2, participation: {client: 0.8}}\n"},
    {"cycles of a star", 1, flat, flat_clients, 3, 1, 0, false,
     "loss: {kind: phase-retrieval, box: 5}\nschedule: {client: {growth: 1.5}, edge: {growth: 1.5}}\n"
     "run: {iterations: 16, edge_rounds: 40, cycles: true}\n"},
    {"absences", 3, two, two_clients, 6, 1, 0, false,
     "loss: {kind: absolute}\nrun: {iterations: 12, edge_rounds: 2, trace_every: 3, participation: {client: 0.3, edge: "
     "0.6, at_least_every: 2}}\n"},
    {"iterations that nobody takes part in", 5, deep, deep_clients, 4, 1, 0, false,
     "loss: {kind: absolute}\npreset: paper\nrun: {iterations: 24, edge_rounds: 1, participation: {client: 0.5, edge: "
     "0.2}}\n"},
    {"deep", 5, deep, deep_clients, 9, 1, 0, false,
     "loss: {kind: phase-retrieval}\nrun: {iterations: 6, edge_rounds: 2, local_steps: 2, trace_every: 4}\n"},
    {"deep absences", 5, deep, deep_clients, 4, 1, 0, false,
     "loss: {kind: quantile, tau: 0.3}\nrun: {iterations: 10, edge_rounds: 3, trace_every: 2, participation: {client: "
     "0.4, edge: 0.5, at_least_every: 3}}\n"},
    {"rows", 3, two, two_clients, 6, 12, 0, false,
     "loss: {kind: quantile, tau: 0.7}\nrun: {iterations: 6, edge_rounds: 2}\n"},
    {"intercept of clients", 5, deep, deep_clients, 5, 9, INTERCEPT_CLIENT, false,
     "loss: {kind: huber}\nfeatures: {intercept: client}\nrun: {iterations: 4, edge_rounds: 2, participation: {client: "
     "0.5}}\n"},
    {"intercept of edges", 5, deep, deep_clients, 5, 9, INTERCEPT_EDGE, true,
     "loss: {kind: logistic}\nfeatures: {intercept: edge}\nrun: {iterations: 4, edge_rounds: 2}\n"},
    {"one intercept", 3, two, two_clients, 5, 9, INTERCEPT_GLOBAL, false,
     "loss: {kind: squared, scale: mean}\nfeatures: {intercept: global}\nrun: {iterations: 6, edge_rounds: 3, stop: "
     "{relative: 0.3}}\noutput: {clients: false}\n"},
    {"overrides", 3, two, two_clients, 6, 1, 0, true,
     "loss: {kind: logistic}\nlink: {client: {penalty: mcp}}\nrun: {iterations: 5, edge_rounds: 3}\n"
     "overrides:\n  - {node: a/client2, loss: {kind: hinge}, local_steps: 3}\n"
     "  - {node: b, prior: {penalty: mcp, lambda: 0.2, gamma: 3}}\n  - {node: 'c/*', participation: 0.4}\n"},
    {"linearized", 3, two, two_clients, 5, 6, 0, false,
     "loss: {kind: phase-retrieval, solver: linearized}\nrun: {iterations: 5, edge_rounds: 2}\n"
     "overrides:\n  - {node: 'a/*', loss: {solver: exact}}\n"},
    {"repairs", 3, two, two_clients, 6, 1, 0, false,
     "loss: {kind: absolute}\nlink: {edge: {weight: 2}}\nschedule: {edge: {c: 0.3}}\nrun: {iterations: 30, "
     "edge_rounds: 5, trace_every: 4}\n"},
    {"repairs in the deep", 5, deep, deep_clients, 4, 7, 0, false,
     "loss: {kind: huber}\nlink: {edge: {weight: 2}}\nschedule: {edge: {c: 0.3}}\nrun: {iterations: 30, edge_rounds: "
     "4, trace_every: 3, "
     "participation: {client: 0.6, edge: 0.7}}\n"},
    {"consensus", 3, two, two_clients, 6, 1, 0, false,
     "loss: {kind: absolute}\nlink: {client: {penalty: mcp}, edge: {penalty: scad}}\nrun: {iterations: 6, edge_rounds: "
     "2, start: consensus, participation: {client: 0.6, edge: 0.7}}\n"},
    {"tries", 5, deep, deep_clients, 4, 1, 0, false,
     "loss: {kind: phase-retrieval}\nrun: {iterations: 6, edge_rounds: 2, trace_every: 2, tries: 3}\n"},
    {"consensus and tries, with repairs", 3, two, two_clients, 5, 6, INTERCEPT_EDGE, false,
     "loss: {kind: huber}\nfeatures: {intercept: edge}\nlink: {client: {penalty: mcp}, edge: {weight: 2}}\nschedule: "
     "{edge: {c: 0.3}}\nrun: {iterations: 24, edge_rounds: 3, trace_every: 4, start: consensus, tries: 2}\n"},
    {"repairs of a star", 1, flat, flat_clients, 4, 9, 0, false,
     "loss: {kind: absolute}\nschedule: {client: {c: 0.001}}\nrun: {iterations: 30, edge_rounds: 6, trace_every: 3, "
     "participation: {client: 0.7}}\n"},
    {"tries that diverge", 3, two, two_clients, 4, 1, 0, false,
     "loss: {kind: squared}\npreset: paper\nprior: {edge: {penalty: none}, cloud: {penalty: none}}\nrun: {iterations: "
     "12, edge_rounds: 4, trace_every: 2, tries: 3, participation: {client: 0.7, edge: 0.5}}\n"},
    {"consensus that diverges, and tries", 3, two, two_clients, 4, 12, 0, false,
     "loss: {kind: squared}\npreset: paper\nprior: {edge: {penalty: none}, cloud: {penalty: none}}\nlink: {client: "
     "{penalty: mcp}}\nrun: {iterations: 12, edge_rounds: 3, start: consensus, "
     "tries: 2}\n"},
    {"tries that diverge in spite of repairs", 3, two, two_clients, 4, 1, 0, false,
     "loss: {kind: absolute}\nlink: {edge: {weight: 2}}\nschedule: {edge: {c: 0.3}}\nrun: {iterations: 16, "
     "edge_rounds: 2, trace_every: 4, tries: 2}\n"},
};
enum { PROBLEMS = sizeof problems / sizeof *problems };

/* The way from a far start is quiet at first: repairs do not lead back to it. */
static const problem afar[] = {
    {"repairs from afar, intercepts of clients", 5, deep, deep_clients, 5, 9, INTERCEPT_CLIENT, false,
     "loss: {kind: absolute}\nfeatures: {intercept: client}\nlink: {edge: {weight: 50}}\nschedule: {edge: {c: "
     "0.01}}\nrun: "
     "{iterations: 60, edge_rounds: 8, trace_every: 3}\n"},
    {"repairs from afar, intercepts of edges", 5, deep, deep_clients, 5, 9, INTERCEPT_EDGE, false,
     "loss: {kind: absolute}\nfeatures: {intercept: edge}\nlink: {edge: {weight: 50}}\nschedule: {edge: {c: "
     "0.01}}\nrun: "
     "{iterations: 60, edge_rounds: 8, trace_every: 3}\n"},
    {"repairs from afar, one intercept", 5, deep, deep_clients, 5, 9, INTERCEPT_GLOBAL, false,
     "loss: {kind: absolute}\nfeatures: {intercept: global}\nlink: {edge: {weight: 50}}\nschedule: {edge: {c: "
     "0.01}}\nrun: "
     "{iterations: 60, edge_rounds: 8, trace_every: 3}\n"},
};
enum { AFAR = sizeof afar / sizeof *afar };

/* Clients that add noise, of the seed, to what they say (plan/noise.h). */
static const problem noisy[] __attribute__((unused)) = {
    {"noise", 5, deep, deep_clients, 4, 6, 0, false,
     "loss: {kind: absolute}\nprivacy: {rho: 2, clip: 0.5, noise: seed}\nfederation: {wire: fixed}\n"
     "run: {iterations: 8, edge_rounds: 3}\n"},
    {"noise on labels", 1, flat, flat_clients, 5, 7, 0, true,
     "loss: {kind: logistic}\nprivacy: {epsilon: 5, clip: 0.2, noise: seed, cohort: 4}\nfederation: {wire: fixed}\n"
     "run: {iterations: 8, edge_rounds: 3, trace_every: 3}\n"},
};

/* The same problem where messages are rounded; text: room for its spec. */
TOOL problem rounded(const problem *p, char text[1000])
{
    problem with = *p;
    snprintf(text, 1000, "%sfederation: {wire: float}\n", p->spec);
    with.spec = text;
    return with;
}

/* The same problem in fixed point; cohort: of clients. */
TOOL problem in_fixed_point(const problem *p, int cohort, char text[1000])
{
    problem with = *p;
    snprintf(text, 1000, "%sfederation: {wire: fixed}\nprivacy: {cohort: %d}\n", p->spec, cohort);
    with.spec = text;
    return with;
}

TOOL bool fits_fixed_point(const problem *p)
{
    return p->intercept != INTERCEPT_CLIENT && p->intercept != INTERCEPT_EDGE && !strstr(p->name, "diverge");
}

TOOL dataset *make_data(const problem *p, rng *r)
{
    hfsad_error err;
    dataset_builder *b;
    dataset *d;
    double x[96];
    ok(dataset_builder_create(&b, p->M, &err), &err);
    for (size_t e = 0, number = 0; e < p->edges; e++)
        for (size_t c = 0; c < p->clients[e]; c++) {
            char name[32];
            snprintf(name, sizeof name, "client%zu", ++number);
            for (size_t row = p->rows == 1 ? 1 : 2 + below(r, p->rows - 1); row > 0; row--) {
                double s = 0.5 * (p->intercept != 0);
                for (size_t m = 0; m < p->M; m++) {
                    x[m] = below(r, 5) ? rng_next_normal(r) : 0;
                    s += m % 3 ? 0 : x[m];
                }
                const double y = p->labels ? (s > 0 ? 1 : -1) : s * s + 0.1 * exponential(r);
                ok(dataset_builder_add(b, p->paths[e], name, y, x, NULL, 0, &err), &err);
            }
        }
    if (p->intercept)
        dataset_builder_use_rows(b);
    ok(dataset_builder_finish(b, &d, &err), &err);
    if (p->intercept)
        ok(features_prepare(d, true, true, "data", &err), &err);
    return d;
}

/* ---- what the simulator makes of it ---- */

typedef struct {
    size_t nodes, M, n_rows;
    double *models;          /* as the run has them */
    uint64_t repairs, moved; /* moved: those that did not lead back to the start */
    hfsad_figures rows[64];
} outcome;

TOOL void simulate(outcome *o, const dataset *d, const plan *p, const double *start)
{
    hfsad_error err;
    pool *threads;
    sim *s;
    ok(pool_create(&threads, 1, &err), &err);
    ok(sim_create(&s, d, p, start, NULL, threads, &err), &err);
    *o = (outcome){.nodes = d->n_inner + d->n_leaves, .M = d->M};
    o->models = alloc_zero(o->nodes * o->M, sizeof *o->models);
    bool finite = true;
    for (uint64_t t = 0; t <= p->iterations && !sim_converged(s) && finite; t++) {
        if (t)
            sim_iterate(s);
        if (plan_measures(p, t)) {
            sim_measure(s, &o->rows[o->n_rows++]);
            finite = figures_are_finite(&o->rows[o->n_rows - 1]);
        }
        uint64_t last;
        const uint64_t repairs = sim_repairs(s, &last);
        o->moved += repairs > o->repairs && memcmp(sim_cloud(s), start, (o->M - 1) * sizeof *start) != 0;
        o->repairs = repairs;
    }
    if (p->cycles && p->iterations >= 16 && o->repairs == 0)
        fail_msg("no cycle was begun in %" PRIu64 " iterations", p->iterations);
    for (size_t i = 0; i < d->n_inner; i++)
        memcpy(o->models + i * o->M, sim_inner_model(s, i), o->M * sizeof(double));
    for (size_t leaf = 0; leaf < d->n_leaves; leaf++)
        sim_leaf_model(s, leaf, o->models + (d->n_inner + leaf) * o->M);
    sim_free(s);
    pool_free(threads);
}

/* ---- the comparison ---- */

TOOL bool same(const double *a, const double *b, size_t count)
{
    return memcmp(a, b, count * sizeof *a) == 0;
}

TOOL bool same_row(const hfsad_figures *a, const hfsad_figures *b)
{
    const double mine[] = {a->objective,     a->consensus_objective, a->primal_residual,
                           a->dual_residual, a->consensus_gap,       a->smoothing_gap};
    const double its[] = {b->objective,     b->consensus_objective, b->primal_residual,
                          b->dual_residual, b->consensus_gap,       b->smoothing_gap};
    return same(mine, its, sizeof mine / sizeof *mine) && a->iteration == b->iteration && a->bytes_up == b->bytes_up &&
           a->bytes_down == b->bytes_down && a->tiers == b->tiers && same(a->primal_tier, b->primal_tier, a->tiers) &&
           same(a->dual_tier, b->dual_tier, a->tiers);
}

/* rows: of the trace; nodes: by number; below_root: as the root has the models of the others. */
TOOL void compare(const outcome *o, const dataset *d, const hfsad_figures *rows, size_t n_rows, node *const *nodes,
                  const double *below_root, const char *name, uint64_t seed)
{
    size_t order[128];
    if (n_rows != o->n_rows)
        fail_msg("%s, seed %" PRIu64 ": %zu rows of the trace, not %zu", name, seed, n_rows, o->n_rows);
    for (size_t i = 0; i < o->n_rows; i++)
        if (!same_row(&rows[i], &o->rows[i]))
            fail_msg("%s, seed %" PRIu64
                     ": row %zu differs: objective %.17g %.17g, residuals %.17g %.17g, %.17g %.17g, "
                     "bytes %" PRIu64 " %" PRIu64,
                     name, seed, i, rows[i].objective, o->rows[i].objective, rows[i].primal_residual,
                     o->rows[i].primal_residual, rows[i].dual_residual, o->rows[i].dual_residual, rows[i].bytes_up,
                     o->rows[i].bytes_up);
    assert_non_null(below_root);
    assert_true(o->nodes <= 128);
    tree_order(d, order);
    for (size_t i = 0; i < o->nodes; i++) {
        double own[64];
        node_model(nodes[order[i]], own);
        const size_t number = order[i],
                     parent = number < d->n_inner ? d->inner[number].parent : dataset_parent(d, number - d->n_inner);
        const double *wanted = o->models + number * o->M;
        /* the end went without it: the model of the node above is in the place of its own */
        const bool lent = i && same(wanted, o->models + parent * o->M, o->M);
        const double *below = i ? below_root + (i - 1) * o->M : wanted;
        if ((!lent && !same(own, wanted, o->M)) || (!same(below, wanted, o->M) && !(lent && node_model_absence(below))))
            fail_msg("%s, seed %" PRIu64 ": the model of node %zu differs: %.17g %.17g", name, seed, order[i], own[0],
                     wanted[0]);
    }
}

TOOL void take_row(void *context, const hfsad_figures *figures)
{
    outcome *o = context;
    assert_true(o->n_rows < 63);
    o->rows[o->n_rows++] = *figures;
}

/* What the simulator makes of the record. */
TOOL void replay_record(outcome *o, const tree *t, const char *record, size_t size)
{
    const dataset *d = t->d;
    hfsad_error err;
    pool *threads;
    sim *s;
    ok(pool_create(&threads, 1, &err), &err);
    ok(sim_create(&s, d, t->p, t->start, NULL, threads, &err), &err);
    *o = (outcome){.nodes = d->n_inner + d->n_leaves, .M = d->M, .n_rows = 1};
    o->models = alloc_zero(o->nodes * o->M, sizeof *o->models);
    sim_measure(s, &o->rows[0]);
    const replay_rows rows = {o, take_row};
    bool met;
    ok(sim_replay(s, record, size, "record", &rows, &met, &err), &err);
    sim_measure(s, &o->rows[o->n_rows++]);
    for (size_t i = 0; i < d->n_inner; i++)
        memcpy(o->models + i * o->M, sim_inner_model(s, i), o->M * sizeof(double));
    for (size_t leaf = 0; leaf < d->n_leaves; leaf++)
        sim_leaf_model(s, leaf, o->models + (d->n_inner + leaf) * o->M);
    sim_free(s);
    /* cut or with a line missing it is refused, not played */
    size_t first = 0; /* the first line of a step: copies are needed only if the line itself is lost */
    for (const char *at = record; at[strcspn(at, " ") + 1] < '0' || at[strcspn(at, " ") + 1] > '9'; at = record + first)
        first += strcspn(at, "\n") + 1;
    const size_t line = strcspn(record + first, "\n") + 1, sizes[] = {size - 1, size - first - line, size / 2},
                 starts[] = {0, first + line, 0};
    for (size_t i = 0; i < 3; i++) {
        ok(sim_create(&s, d, t->p, t->start, NULL, threads, &err), &err);
        assert_int_equal(sim_replay(s, record + starts[i], sizes[i], "record", NULL, &met, &err), HFSAD_ERROR_INPUT);
        assert_non_null(strstr(err.message, "record"));
        sim_free(s);
    }
    pool_free(threads);
}

/* A problem ready to be run. */
typedef struct {
    dataset *d;
    plan *p, *tied;
    plan trial;            /* what it points to is p's */
    double *start, *found; /* of the first stage, and of the run */
    uint64_t tries;        /* 1: none */
    start_search before;
    uint64_t repairs, diverged; /* of all stages */
    leaf_class *wild;           /* of a trial that diverges */
    outcome expected;
} prepared;

/* A stage before the run; returns its objective, which is not finite where it has diverged: then nothing counts. */
TOOL double simulate_stage(prepared *made, const plan *p, const double *start, double *end)
{
    outcome o;
    simulate(&o, made->d, p, start);
    const hfsad_figures *last = &o.rows[o.n_rows - 1];
    if (isfinite(last->consensus_objective)) {
        made->before.bytes_up += last->bytes_up;
        made->before.bytes_down += last->bytes_down;
        memcpy(end, o.models, o.M * sizeof *end);
    }
    made->diverged += isfinite(last->consensus_objective) ? 0 : 1;
    made->repairs += o.repairs;
    free(o.models);
    return last->consensus_objective;
}

/* Where the run begins. */
TOOL void find_start(prepared *made)
{
    const size_t M = made->d->M;
    double begin[64], end[64], length = 0, least = INFINITY;
    memcpy(made->found, made->start, M * sizeof *begin);
    if (made->tied)
        (void)simulate_stage(made, made->tied, made->start, made->found);
    for (size_t m = 0; m < M; m++)
        length += made->found[m] * made->found[m];
    double first[64];
    memcpy(first, made->found, M * sizeof *first);
    for (uint64_t i = 0; made->tries > 1 && i < made->tries; i++) {
        memcpy(begin, first, M * sizeof *begin);
        if (i)
            start_draw(begin, M, made->p->seed, i, sqrt(length));
        const double objective = simulate_stage(made, &made->trial, begin, end);
        if (!(objective < least))
            continue;
        least = objective;
        made->before.kept = i;
        memcpy(made->found, begin, M * sizeof *begin);
    }
}

/* Its nodes, in lock step. */
TOOL tree tree_of(const prepared *made, const problem *p, uint64_t run, node_patience patience)
{
    return (tree){.d = made->d,
                  .p = made->p,
                  .start = made->start,
                  .intercept = p->intercept,
                  .run = run,
                  .patience = patience,
                  .tied = made->tied,
                  .trial = made->tries > 1 ? &made->trial : NULL,
                  .tries = made->tries};
}

TOOL void check_prelude(const prepared *made, const node *root, const char *name, uint64_t seed)
{
    const start_search found = *node_get_search(root);
    if (found.bytes_up != made->before.bytes_up || found.bytes_down != made->before.bytes_down ||
        found.kept != made->before.kept)
        fail_msg("%s, seed %" PRIu64 ": before the run %" PRIu64 " bytes up, not %" PRIu64 ", start %" PRIu64
                 ", not %" PRIu64,
                 name, seed, found.bytes_up, made->before.bytes_up, found.kept, made->before.kept);
}

/* As of a spec whose links do not let go. */
TOOL plan *tied_plan(const hfsad_spec *spec, const dataset *d)
{
    hfsad_error err;
    local_survey survey;
    data_scales scales;
    plan *tied;
    ok(local_survey_make(&survey, spec, d, &err), &err);
    const surveyor ask = local_surveyor(&survey);
    ok(data_scales_find(&scales, spec, d, &ask, &err), &err);
    ok(plan_resolve(&tied, spec, d, &scales, true, &err), &err);
    local_survey_free(&survey);
    return tied;
}

TOOL void watch_all(plan *p, size_t n_inner)
{
    p->length = 1e-9;
    for (size_t i = n_inner > 1; i < n_inner; i++)
        p->inner[i].watched = true;
}

/* Before long the sums of sigma are not finite at edges with several clients. */
TOOL void run_off(leaf_class *classes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        classes[i].rule.schedule.c = 1e308;
}

/* times: as many iterations, and as many fewer rows of the trace. */
TOOL prepared prepare_longer(const problem *p, uint64_t seed, uint64_t times)
{
    rng r = {rng_key(seed, rng_stream(p->name)), 0};
    hfsad_error err;
    char text[1000];
    hfsad_spec *spec;
    prepared made = {.d = make_data(p, &r)};
    made.start = alloc_zero(made.d->M, sizeof *made.start);
    made.found = alloc_zero(made.d->M, sizeof *made.found);
    snprintf(text, sizeof text, "data: x\n%s", p->spec);
    ok(spec_load_text(&spec, "spec.yaml", text, strlen(text), &err), &err);
    ok(plan_create(&made.p, spec, made.d, &err), &err);
    for (size_t m = 0; m < made.d->M; m++)
        made.start[m] = (strstr(p->name, "from afar") ? 30 : 1) * rng_next_normal(&r);
    made.p->iterations *= times;
    made.p->trace_every *= times;
    made.tries = (uint64_t)spec->run.tries;
    if (spec->run.start && !strcmp(spec->run.start, "consensus"))
        made.tied = tied_plan(spec, made.d);
    if (strstr(p->name, "repairs")) { /* so that the safeguard takes every model for one that has run off */
        watch_all(made.p, made.d->n_inner);
        if (made.tied)
            watch_all(made.tied, made.d->n_inner);
    }
    made.trial = *made.p;
    made.trial.iterations = made.trial.trace_every = made.p->iterations / 2;
    if (strstr(p->name, "diverge")) {
        made.wild = alloc_zero(made.p->n_leaf_classes, sizeof *made.wild);
        memcpy(made.wild, made.p->leaf_classes, made.p->n_leaf_classes * sizeof *made.wild);
        made.trial.leaf_classes = made.wild;
        run_off(made.wild, made.p->n_leaf_classes);
        if (made.tied)
            run_off(made.tied->leaf_classes, made.tied->n_leaf_classes);
    }
    if (made.tied)
        made.tied->iterations = made.tied->trace_every = made.p->iterations / 2;
    find_start(&made);
    simulate(&made.expected, made.d, made.p, made.found);
    made.repairs += made.expected.repairs;
    if (strstr(p->name, "repairs") && !strstr(p->name, "from afar") && made.repairs == 0)
        fail_msg("%s, seed %" PRIu64 ": no repairs", p->name, seed);
    if (strstr(p->name, "diverge") && made.diverged == 0)
        fail_msg("%s, seed %" PRIu64 ": nothing diverges", p->name, seed);
    hfsad_spec_free(spec);
    return made;
}

TOOL prepared prepare(const problem *p, uint64_t seed)
{
    return prepare_longer(p, seed, 1);
}

TOOL void unprepare(prepared *made)
{
    free(made->expected.models);
    free(made->start);
    free(made->found);
    free(made->wild);
    plan_free(made->p);
    plan_free(made->tied);
    dataset_free(made->d);
}

#endif
