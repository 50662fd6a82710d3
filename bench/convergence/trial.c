/* Every method on every trial; see trial.h. */
#define _GNU_SOURCE
#include "convergence/trial.h"

#include "base/alloc.h"
#include "data/generated.h"
#include "run/handle.h"
#include "run/state.h"
#include "tools.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *bench_take(size_t count, size_t size)
{
    void *p = alloc_zero(count, size);
    if (!p)
        die("no memory", "");
    return p;
}

size_t problem_starts(const problem *p, const char *names[STARTS_MOST])
{
    names[0] = p->quantile ? "zero" : "spectral";
    names[1] = "robust";
    return p->quantile ? 1 : 2;
}

typedef struct {
    const problem *problem;
    uint64_t seed;
    central_problem central;
    double *truth, *w, *g; /* M each */
    double *start[STARTS_MOST];
    double start_bytes[STARTS_MOST], start_seconds[STARTS_MOST];
    double optimum; /* quantile; phase retrieval: the objective at the truth, which Polyak's rule takes for it */
    double links;   /* of the tree */
} trial;

/* ---- data ---- */

static dataset *phase_data(const problem *p, uint64_t seed, bool as_rows, double *truth)
{
    hfsad_error err;
    dataset *d;
    double scale;
    row_collector c;
    phase_retrieval law = phase_retrieval_paper();
    law.edges = p->edges;
    law.clients = p->clients;
    law.features = p->features;
    law.snr_db = p->snr_db;
    law.seed = seed;
    must(phase_retrieval_prepare(&law, truth, &scale, &err), &err);
    must(row_collector_begin(&c, law.features, &err), &err);
    if (as_rows)
        dataset_builder_use_rows(c.builder);
    must(row_collector_end(&c, phase_retrieval_rows(&law, truth, scale, row_collect, &c, &err), &d), &err);
    return d;
}

/* `hfsad generate quantile` */
static dataset *quantile_data(const problem *p, uint64_t seed, double *truth)
{
    hfsad_error err;
    population *people;
    dataset *d;
    const population_law law = {.edges = p->edges,
                                .clients = p->clients,
                                .features = p->features,
                                .nonzero = 4,
                                .rho = 0.5,
                                .task = TASK_REGRESSION,
                                .noise = {.kind = NOISE_STUDENT, .scale = 1, .df = 2},
                                .tau = 0.5,
                                .groups = 1,
                                .distance = 2,
                                .seed = seed};
    must(population_create(&people, &law, &err), &err);
    must(population_dataset(people, ROWS_TRAIN, p->rows, &d, &err), &err);
    memcpy(truth, population_truth(people, 0), p->features * sizeof *truth);
    population_free(people);
    return d;
}

static dataset *data_make(const trial *k, bool as_rows, double *truth)
{
    return k->problem->quantile ? quantile_data(k->problem, k->seed, truth)
                                : phase_data(k->problem, k->seed, as_rows, truth);
}

static double quantile_lambda(const problem *p)
{
    const double rows = (double)(p->edges * p->clients * p->rows);
    return 0.5 * sqrt(2 * rows * log(2 * (double)p->features));
}

/* All rows in one place, with the priors of all nodes: of phase retrieval's their weights add up to the clients. */
static void central_make(trial *k, const dataset *d)
{
    const problem *p = k->problem;
    const size_t M = p->features, n = d->n_rows;
    central_problem *c = &k->central;
    double *room = bench_take(M, sizeof *room);
    size_t row = 0;
    *c = (central_problem){.n = n, .M = M, .x = bench_take(n * M, sizeof(double)), .y = bench_take(n, sizeof(double))};
    if (p->quantile) {
        c->loss = (hfsad_loss){HFSAD_LOSS_QUANTILE, 0.5, 1, INFINITY, 0.3};
        c->prior = (hfsad_penalty){.kind = HFSAD_PENALTY_L1, .weight = 1, .lambda = quantile_lambda(p)};
    } else {
        const double clients = (double)d->n_leaves;
        c->loss = (hfsad_loss){HFSAD_LOSS_PHASE_RETRIEVAL, 0.5, 1, 5, 0.3};
        c->prior = (hfsad_penalty){.kind = HFSAD_PENALTY_SCAD, .weight = clients, .lambda = 0.1, .gamma = 2.4};
    }
    for (size_t leaf = 0; leaf < d->n_leaves; leaf++) {
        const client_rows rows = dataset_rows_any(d, leaf, room);
        memcpy(c->x + row * M, rows.x, rows.count * M * sizeof *c->x);
        memcpy(c->y + row, rows.y, rows.count * sizeof *c->y);
        row += rows.count;
    }
    free(room);
}

static bool truth_is_unseen(const trial *k)
{
    const size_t M = k->problem->features;
    for (size_t m = 0; m < M; m++) {
        bool seen = k->truth[m] == 0;
        for (size_t i = 0; i < k->central.n && !seen; i++)
            seen = k->central.x[i * M + m] != 0;
        if (!seen)
            return true;
    }
    return false;
}

/* ---- HFSAD and FedAvg ---- */

static void set_priors(hfsad_spec *spec, const problem *p)
{
    static const char *const phase[][2] = {
        {"loss.kind", "phase-retrieval"}, {"loss.box", "5"},
        {"prior.edge.penalty", "scad"},   {"prior.edge.lambda", "0.1"},
        {"prior.edge.gamma", "2.4"},      {"prior.cloud.penalty", "scad"},
        {"prior.cloud.lambda", "0.1"},    {"prior.cloud.gamma", "2.4"},
    };
    static const char *const quantile[][2] = {
        {"loss.kind", "quantile"},     {"loss.tau", "0.5"},         {"prior.edge.penalty", "none"},
        {"prior.cloud.penalty", "l1"}, {"prior.cloud.weight", "1"},
    };
    if (!p->quantile) {
        for (size_t i = 0; i < sizeof phase / sizeof *phase; i++)
            spec_put(spec, phase[i][0], phase[i][1]);
        return;
    }
    for (size_t i = 0; i < sizeof quantile / sizeof *quantile; i++)
        spec_put(spec, quantile[i][0], quantile[i][1]);
    spec_put_number(spec, "prior.cloud.lambda", quantile_lambda(p));
}

/* What a user must say: data, loss, priors. trace_every: nobody reads the trace. */
static hfsad_spec *spec_make(const trial *k, const method *m)
{
    hfsad_error err;
    hfsad_spec *spec;
    must(hfsad_spec_create(&spec, &err), &err);
    spec_put(spec, "data", "memory");
    set_priors(spec, k->problem);
    spec_put(spec, "preset", m->kind == BY_PAPER ? "paper" : "tuned");
    spec_put(spec, "algorithm", m->kind == BY_FEDAVG ? "fedavg" : "hfsad");
    spec_put_number(spec, "run.iterations", m->iterations);
    spec_put_number(spec, "run.edge_rounds", m->edge_rounds);
    spec_put_number(spec, "run.seed", (double)k->seed);
    spec_put_number(spec, "run.participation.client", m->participation);
    spec_put(spec, "run.trace_every", "1000000000");
    spec_put(spec, "output.clients", "false");
    if (m->set) {
        char key[80];
        snprintf(key, sizeof key, "%.*s", (int)strcspn(m->set, "="), m->set);
        spec_put(spec, key, strchr(m->set, '=') + 1);
    }
    return spec;
}

static hfsad_run *federation_open(const trial *k, const method *m, double *seconds)
{
    hfsad_error err;
    hfsad_run *run;
    dataset *d = data_make(k, m->kind == BY_FEDAVG, k->g);
    hfsad_spec *spec = spec_make(k, m);
    const double before = seconds_on(CLOCK_THREAD_CPUTIME_ID);
    must(run_create_on(&run, spec, d, 1, &err), &err);
    *seconds = seconds_on(CLOCK_THREAD_CPUTIME_ID) - before;
    hfsad_spec_free(spec);
    return run;
}

/* Quantile regression: the objective; its optimum is taken off when all methods are done. */
static double value_of(const trial *k, const double *w)
{
    const double value = k->problem->quantile ? central_objective(&k->central, w, NULL)
                                              : relative_error(k->problem->features, w, k->truth, true);
    return isfinite(value) ? value : INFINITY;
}

static void run_federated(const trial *k, const method *m, outcome *o)
{
    hfsad_figures figures;
    hfsad_run *run = federation_open(k, m, &o->setup_seconds);
    for (uint32_t i = 0; i <= m->iterations; i++) {
        const double before = seconds_on(CLOCK_THREAD_CPUTIME_ID);
        if (i)
            hfsad_run_iterate(run);
        o->seconds += seconds_on(CLOCK_THREAD_CPUTIME_ID) - before;
        hfsad_run_node_model(run, 0, k->w);
        o->value[i] = value_of(k, k->w);
    }
    (void)run->engine->measure(run, &figures, NULL); /* a trial that failed has no finite values */
    o->setup_bytes = (double)(run->before.bytes_up + run->before.bytes_down);
    o->bytes = (double)(figures.bytes_up + figures.bytes_down);
    if (run->sim)
        o->repairs = sim_repairs(run->sim, &(uint64_t){0});
    hfsad_run_free(run);
}

/* ---- the sub-gradient method ---- */

static void run_central(const trial *k, const method *m, outcome *o)
{
    const size_t M = k->problem->features;
    memcpy(k->w, k->start[m->start], M * sizeof *k->w);
    for (uint32_t i = 0; i <= m->iterations; i++) {
        const double before = seconds_on(CLOCK_THREAD_CPUTIME_ID);
        if (i)
            subgradient_step(&k->central, &m->rule, k->optimum, i - 1, k->w, k->g);
        o->seconds += seconds_on(CLOCK_THREAD_CPUTIME_ID) - before;
        o->value[i] = value_of(k, k->w);
    }
    o->setup_seconds = k->start_seconds[m->start];
    o->setup_bytes = k->start_bytes[m->start];
    o->bytes = m->iterations * k->links * (double)(2 * M * sizeof(double));
}

static void find_starts(trial *k, const dataset *d)
{
    const char *names[STARTS_MOST];
    const size_t n = problem_starts(k->problem, names);
    for (size_t i = 0; i < n; i++) {
        hfsad_error err;
        local_survey survey;
        const double before = seconds_on(CLOCK_THREAD_CPUTIME_ID);
        must(local_survey_make(&survey, NULL, d, &err), &err);
        const surveyor ask = local_surveyor(&survey);
        must(start_vector(k->start[i], names[i], d, k->seed, &ask, &err), &err);
        k->start_seconds[i] = seconds_on(CLOCK_THREAD_CPUTIME_ID) - before;
        k->start_bytes[i] = (double)(survey.cost.bytes_up + survey.cost.bytes_down);
        local_survey_free(&survey);
    }
}

/* ---- the optimum of quantile regression ---- */

/* The rows' slopes, scaled until they are feasible for the dual: nothing is below this. */
static double lower_bound(const trial *k, const sim *s)
{
    const central_problem *c = &k->central;
    double value = 0, most = 0;
    memset(k->g, 0, c->M * sizeof *k->g);
    for (size_t i = 0; i < c->n; i++) {
        for (size_t m = 0; m < c->M; m++)
            k->g[m] -= s->many.slope[i] * c->x[i * c->M + m];
        value -= s->many.slope[i] * c->y[i];
    }
    for (size_t m = 0; m < c->M; m++)
        most = fmax(most, fabs(k->g[m]));
    return value * fmin(1, c->prior.lambda / most);
}

/* A long run of the tuned preset; returns by which part the optimum may be lower still. */
static double find_optimum(trial *k)
{
    enum { TOGETHER = 20, MOST = 1500 };
    double seconds, bound = 0;
    const method m = {.kind = BY_TUNED, .iterations = MOST, .edge_rounds = 10, .participation = 1};
    hfsad_run *run = federation_open(k, &m, &seconds);
    k->optimum = value_of(k, k->start[0]);
    for (int i = 0; i < MOST && k->optimum - bound > 1e-7 * k->optimum; i++) {
        hfsad_run_iterate(run);
        if ((i + 1) % TOGETHER)
            continue;
        hfsad_run_node_model(run, 0, k->w);
        k->optimum = fmin(k->optimum, value_of(k, k->w));
        bound = fmax(bound, lower_bound(k, run->sim));
    }
    hfsad_run_free(run);
    return (k->optimum - bound) / k->optimum;
}

static void take_optimum_off(const trial *k, const campaign *c, size_t t)
{
    double best = k->optimum;
    for (size_t i = 0; i < c->methods; i++)
        for (uint32_t n = 0; n <= c->method[i].iterations; n++)
            best = fmin(best, campaign_outcome(c, i, t)->value[n]);
    for (size_t i = 0; i < c->methods; i++)
        for (uint32_t n = 0; n <= c->method[i].iterations; n++) {
            double *value = &campaign_outcome(c, i, t)->value[n];
            *value = *value / best - 1;
        }
}

/* ---- trials ---- */

static void run_trial(void *context, size_t t, unsigned thread)
{
    campaign *c = context;
    const problem *p = c->problem;
    const size_t M = p->features;
    (void)thread;
    trial k = {.problem = p, .seed = c->seed + t};
    k.truth = bench_take((3 + STARTS_MOST) * M, sizeof *k.truth);
    k.w = k.truth + M;
    k.g = k.w + M;
    for (size_t i = 0; i < STARTS_MOST; i++)
        k.start[i] = k.g + (1 + i) * M;
    dataset *d = data_make(&k, false, k.truth);
    k.links = (double)(d->n_leaves + d->n_inner - 1);
    central_make(&k, d);
    find_starts(&k, d);
    dataset_free(d);
    c->unseen[t] = !p->quantile && truth_is_unseen(&k);
    if (p->quantile)
        c->gap[t] = find_optimum(&k);
    else
        k.optimum = central_objective(&k.central, k.truth, NULL);
    for (size_t i = 0; i < c->methods; i++) {
        outcome *o = &c->outcome[i * c->trials + t];
        if (c->method[i].kind == BY_SUBGRADIENT)
            run_central(&k, &c->method[i], o);
        else
            run_federated(&k, &c->method[i], o);
    }
    if (p->quantile)
        take_optimum_off(&k, c, t);
    free(k.central.x);
    free(k.central.y);
    free(k.truth);
}

void campaign_run(campaign *c, const problem *p, uint64_t seed, size_t trials, const method *methods, size_t n_methods,
                  unsigned threads)
{
    hfsad_error err;
    pool *workers;
    *c = (campaign){.problem = p, .seed = seed, .trials = trials, .methods = n_methods, .method = methods};
    c->outcome = bench_take(n_methods * trials, sizeof *c->outcome);
    c->unseen = bench_take(trials, sizeof *c->unseen);
    c->gap = bench_take(trials, sizeof *c->gap);
    for (size_t i = 0; i < n_methods * trials; i++)
        c->outcome[i].value = bench_take((size_t)methods[i / trials].iterations + 1, sizeof(double));
    must(pool_create(&workers, threads, &err), &err);
    pool_run(workers, trials, run_trial, c);
    pool_free(workers);
}

void campaign_free(campaign *c)
{
    for (size_t i = 0; i < c->methods * c->trials; i++)
        free(c->outcome[i].value);
    free(c->outcome);
    free(c->unseen);
    free(c->gap);
}
