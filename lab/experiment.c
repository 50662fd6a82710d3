/* The paper's experiment over many trials; see paper.h. */
#include "lab/experiment.h"

#include "base/alloc.h"
#include "base/error.h"
#include "run/device_batch.h"
#include "run/sim.h"
#include "spec/table.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const paper_settings *settings;
    const paper_method *methods;
    const paper_hooks *hooks;
    paper_result *result;
    pthread_mutex_t lock; /* protects the members below and the done hook */
    size_t done;
    size_t failed_trial; /* the first in trial order, so that the message does not depend on the threads */
    hfsad_error failure;
    atomic_bool stopped;
} campaign;

/* One trial's data, shared by all its methods. */
typedef struct {
    phase_retrieval data;
    dataset *observations;
    double *truth, *start, *w, *g; /* M each, one block */
    hfsad_spec *spec;
    pool *single; /* the trials are the parallel loop; inside one there is one thread */
    central_problem *central;
} trial;

const double *paper_errors(const paper_result *r, size_t method, size_t iteration)
{
    return r->error + (method * r->points + iteration) * r->trials;
}

static double *error_place(const campaign *c, size_t method, size_t iteration, size_t t)
{
    const paper_result *r = c->result;
    return r->error + (method * r->points + iteration) * r->trials + t;
}

static void record(const campaign *c, size_t method, size_t iteration, size_t t, const trial *k, const double *w)
{
    const double error = relative_error(k->data.features, w, k->truth, true);
    *error_place(c, method, iteration, t) = isfinite(error) ? error : INFINITY;
}

static bool must_stop(campaign *c)
{
    if (c->hooks->stop && c->hooks->stop(c->hooks->context))
        atomic_store_explicit(&c->stopped, true, memory_order_relaxed);
    return atomic_load_explicit(&c->stopped, memory_order_relaxed);
}

static hfsad_status find_start(const trial *k, double *start, const char *kind, hfsad_error *err)
{
    local_survey survey;
    hfsad_status status = local_survey_make(&survey, NULL, k->observations, err);
    if (status)
        return status;
    const surveyor ask = local_surveyor(&survey);
    status = start_vector(start, kind, k->observations, k->data.seed, &ask, err);
    local_survey_free(&survey);
    return status;
}

/* HFSAD through the same plan and driver as `hfsad run`. */
static hfsad_status make_sim(const paper_method *m, trial *k, plan **p, sim **s, hfsad_error *err)
{
    const double *start = k->start;
    k->spec->top.preset = m->tuned ? PRESET_TUNED : PRESET_PAPER;
    k->spec->run.edge_rounds = m->edge_rounds;
    k->spec->participation.client = m->participation;
    hfsad_status status = plan_create(p, k->spec, k->observations, err);
    if (status)
        return status;
    if (m->tuned) {
        start = k->w;
        status = find_start(k, k->w, start_default(k->spec), err);
    }
    if (!status)
        status = sim_create(s, k->observations, *p, start, NULL, k->single, err);
    if (status) {
        plan_free(*p);
        *p = NULL;
    }
    return status;
}

static hfsad_status run_hfsad(campaign *c, size_t method, size_t t, trial *k, hfsad_error *err)
{
    plan *p;
    sim *s;
    const hfsad_status status = make_sim(&c->methods[method], k, &p, &s, err);
    if (status)
        return status;
    for (size_t i = 0; i < c->result->points && !must_stop(c); i++) {
        if (i)
            sim_iterate(s);
        record(c, method, i, t, k, sim_cloud(s));
    }
    sim_free(s);
    plan_free(p);
    return HFSAD_OK;
}

static void run_central(campaign *c, size_t method, size_t t, trial *k)
{
    /* Polyak's step needs the smallest objective. It is unknown, so the objective at the truth replaces it. */
    const double target = central_objective(k->central, k->truth, NULL);
    memcpy(k->w, k->start, k->data.features * sizeof *k->w);
    for (size_t i = 0; i < c->result->points && !must_stop(c); i++) {
        if (i)
            subgradient_step(k->central, &c->methods[method].rule, target, i - 1, k->w, k->g);
        record(c, method, i, t, k, k->w);
    }
}

/* The settings of `preset: paper` as a spec file would give them; every other one keeps its default. */
static hfsad_status paper_spec(hfsad_spec **out, uint64_t seed, hfsad_error *err)
{
    hfsad_spec *spec;
    const hfsad_status status = spec_create(&spec, "paper", err);
    if (status)
        return status;
    spec->top.preset = PRESET_PAPER;
    spec->loss.kind = HFSAD_LOSS_PHASE_RETRIEVAL;
    spec->loss.box = 5;
    spec->run.seed = (int64_t)seed;
    spec->output.clients = 0; /* only the cloud's model is looked at */
    *out = spec;
    return HFSAD_OK;
}

/* Sets the problem that HFSAD's consensus solves, in one place: the priors of all nodes apply to the same w. They are
 * also written into the spec for the tuned preset, which has no default priors. */
static hfsad_status centralize(trial *k, hfsad_error *err)
{
    plan *p;
    hfsad_status status = plan_create(&p, k->spec, k->observations, err);
    if (status)
        return status;
    hfsad_penalty prior = p->inner[0].prior;
    k->spec->prior_cloud = (PRIOR_settings){(int)prior.kind, NAN, prior.lambda, prior.gamma, NAN};
    k->spec->prior_edge = k->spec->prior_cloud;
    for (size_t i = 1; i < k->observations->n_inner; i++)
        prior.weight += p->inner[i].prior.weight;
    status = central_problem_create(&k->central, k->observations, &p->leaf_classes[0].loss, &prior, err);
    plan_free(p);
    return status;
}

static hfsad_status trial_create(trial *k, const campaign *c, size_t t, hfsad_error *err)
{
    const size_t M = c->settings->data.features;
    *k = (trial){.data = c->settings->data};
    k->data.seed += t;
    k->truth = alloc_zero(4 * M, sizeof(double));
    if (!k->truth) {
        error_memory(err, 4 * M * sizeof(double), "a trial's vectors");
        return HFSAD_ERROR_MEMORY;
    }
    k->start = k->truth + M;
    k->w = k->start + M;
    k->g = k->w + M;
    hfsad_status status = phase_retrieval_generate(&k->data, &k->observations, k->truth, err);
    if (!status)
        status = find_start(k, k->start, c->settings->start, err);
    if (!status)
        status = pool_create(&k->single, 1, err);
    if (!status)
        status = paper_spec(&k->spec, k->data.seed, err);
    if (status)
        return status;
    return centralize(k, err);
}

static void trial_free(trial *k)
{
    central_problem_free(k->central);
    hfsad_spec_free(k->spec);
    if (k->single)
        pool_free(k->single);
    if (k->observations)
        dataset_free(k->observations);
    free(k->truth);
}

static bool is_refused(const paper_method *m, trial *k)
{
    hfsad_error err;
    plan *p;
    sim *s;
    if (make_sim(m, k, &p, &s, &err))
        return true; /* the processor reports the reason */
    const bool refused = device_batch_refuses(s) != NULL;
    sim_free(s);
    plan_free(p);
    return refused;
}

static void note_failure(campaign *c, size_t t, const hfsad_error *err)
{
    pthread_mutex_lock(&c->lock);
    if (t < c->failed_trial) {
        c->failed_trial = t;
        c->failure = *err;
    }
    pthread_mutex_unlock(&c->lock);
}

static void note_done(campaign *c)
{
    pthread_mutex_lock(&c->lock);
    c->done++;
    if (c->hooks->done && !atomic_load_explicit(&c->stopped, memory_order_relaxed))
        c->hooks->done(c->hooks->context, c->done);
    pthread_mutex_unlock(&c->lock);
}

/* Runs all methods except those in `elsewhere`. */
static hfsad_status run_methods(campaign *c, size_t t, trial *k, const bool *elsewhere, hfsad_error *err)
{
    hfsad_status status = HFSAD_OK;
    for (size_t method = 0; method < c->result->methods && !status; method++) {
        if (c->methods[method].skip || (elsewhere && elsewhere[method]))
            continue;
        if (c->methods[method].central)
            run_central(c, method, t, k);
        else
            status = run_hfsad(c, method, t, k, err);
    }
    return status;
}

static void run_trial(void *context, size_t t, unsigned thread)
{
    campaign *c = context;
    (void)thread;
    if (must_stop(c))
        return;
    hfsad_error err;
    trial k;
    hfsad_status status = trial_create(&k, c, t, &err);
    if (!status)
        status = run_methods(c, t, &k, NULL, &err);
    trial_free(&k);
    if (status)
        note_failure(c, t, &err);
    else
        note_done(c);
}

/* ---- on a device: some thousand trials at once fill it; their number limits the memory ---- */

enum { TOGETHER = 4096 };

typedef struct {
    campaign *c;
    size_t first, count; /* trials */
    trial *trials;
    plan **plans;
    sim **sims;
    const bool *there; /* methods that the device supports */
    size_t method;
} group;

static void create_trial(void *context, size_t i, unsigned thread)
{
    group *g = context;
    hfsad_error err;
    (void)thread;
    if (trial_create(&g->trials[i], g->c, g->first + i, &err))
        note_failure(g->c, g->first + i, &err);
}

static void create_sim(void *context, size_t i, unsigned thread)
{
    group *g = context;
    hfsad_error err;
    (void)thread;
    if (make_sim(&g->c->methods[g->method], &g->trials[i], &g->plans[i], &g->sims[i], &err))
        note_failure(g->c, g->first + i, &err);
}

static void free_sim(void *context, size_t i, unsigned thread)
{
    group *g = context;
    (void)thread;
    sim_free(g->sims[i]);
    plan_free(g->plans[i]);
    g->sims[i] = NULL;
    g->plans[i] = NULL;
}

static void run_here(void *context, size_t i, unsigned thread)
{
    group *g = context;
    hfsad_error err;
    (void)thread;
    if (must_stop(g->c))
        return;
    if (run_methods(g->c, g->first + i, &g->trials[i], g->there, &err))
        note_failure(g->c, g->first + i, &err);
    else
        note_done(g->c);
}

static hfsad_status run_there(group *g, pool *threads, hfsad_error *err)
{
    campaign *c = g->c;
    device_batch *b = NULL;
    pool_run(threads, g->count, create_sim, g);
    hfsad_status status = HFSAD_OK;
    if (c->failed_trial == SIZE_MAX)
        status = device_batch_create(&b, g->sims, g->count, c->settings->device, err);
    pool_run(threads, g->count, free_sim, g);
    for (size_t i = 0; b && i < c->result->points && !status && !must_stop(c); i++) {
        if (i)
            status = device_batch_iterate(b, err);
        for (size_t t = 0; t < g->count && !status; t++)
            record(c, g->method, i, g->first + t, &g->trials[t], device_batch_cloud(b, t));
    }
    device_batch_free(b);
    return status;
}

static hfsad_status run_group(group *g, pool *threads, bool *there, hfsad_error *err)
{
    campaign *c = g->c;
    hfsad_status status = HFSAD_OK;
    pool_run(threads, g->count, create_trial, g);
    for (size_t m = 0; m < c->result->methods && c->failed_trial == SIZE_MAX && g->first == 0; m++)
        there[m] = !c->methods[m].skip && !c->methods[m].central && !is_refused(&c->methods[m], &g->trials[0]);
    for (g->method = 0; g->method < c->result->methods && !status && c->failed_trial == SIZE_MAX; g->method++)
        if (there[g->method])
            status = run_there(g, threads, err);
    if (!status && c->failed_trial == SIZE_MAX)
        pool_run(threads, g->count, run_here, g);
    for (size_t i = 0; i < g->count; i++)
        trial_free(&g->trials[i]);
    return status;
}

static hfsad_status run_on_device(campaign *c, pool *threads, hfsad_error *err)
{
    const size_t most = c->settings->trials < TOGETHER ? c->settings->trials : TOGETHER;
    bool *there = alloc_zero(c->result->methods, sizeof *there);
    group g = {.c = c,
               .trials = alloc_zero(most, sizeof(trial)),
               .plans = alloc_zero(most, sizeof(plan *)),
               .sims = alloc_zero(most, sizeof(sim *)),
               .there = there};
    hfsad_status status = HFSAD_OK;
    if (!there || !g.trials || !g.plans || !g.sims)
        status = error_memory(err, most * sizeof(trial), "the trials");
    for (; !status && g.first < c->settings->trials && c->failed_trial == SIZE_MAX && !must_stop(c); g.first += most) {
        const size_t left = c->settings->trials - g.first;
        g.count = left < most ? left : most;
        status = run_group(&g, threads, there, err);
    }
    free(there);
    free(g.trials);
    free(g.plans);
    free(g.sims);
    return status;
}

static paper_result *result_create(size_t methods, const paper_settings *s)
{
    paper_result *r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    *r = (paper_result){.methods = methods, .points = (size_t)s->iterations + 1, .trials = s->trials};
    size_t count;
    if (!__builtin_mul_overflow(r->points * methods, r->trials, &count))
        r->error = alloc_zero(count, sizeof(double));
    if (r->error)
        return r;
    free(r);
    return NULL;
}

void paper_result_free(paper_result *r)
{
    if (!r)
        return;
    free(r->error);
    free(r);
}

hfsad_status paper_run(paper_result **out, const paper_settings *s, const paper_method *methods, size_t n_methods,
                       const paper_hooks *hooks, hfsad_error *err)
{
    static const paper_hooks none;
    campaign c = {.settings = s, .methods = methods, .hooks = hooks ? hooks : &none, .failed_trial = SIZE_MAX};
    *out = NULL;
    c.result = result_create(n_methods, s);
    if (!c.result)
        return error_memory(err, n_methods * (s->iterations + (size_t)1) * s->trials * sizeof(double),
                            "the errors of all trials; fewer trials or iterations need less");
    pool *threads;
    hfsad_status status = pool_create(&threads, s->threads, err);
    if (!status) {
        pthread_mutex_init(&c.lock, NULL);
        if (s->device)
            status = run_on_device(&c, threads, err);
        else
            pool_run(threads, s->trials, run_trial, &c);
        pthread_mutex_destroy(&c.lock);
        pool_free(threads);
        if (!status && c.failed_trial != SIZE_MAX)
            status = error_set(err, c.failure.status, "trial %zu: %s", c.failed_trial + 1, c.failure.message);
    }
    if (status || c.stopped) {
        paper_result_free(c.result);
        return status;
    }
    *out = c.result;
    return HFSAD_OK;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The p-quantile of sorted values, between neighbours by linear interpolation. */
static double quantile(size_t n, const double *sorted, double p)
{
    const double place = p * (double)(n - 1);
    const size_t below = (size_t)place;
    const double part = place - (double)below;
    if (part == 0 || sorted[below] == sorted[below + 1]) /* the difference of two infinities is undefined */
        return sorted[below];
    return sorted[below] + part * (sorted[below + 1] - sorted[below]);
}

spread spread_of(size_t n, const double *values, double *room)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += values[i];
    memcpy(room, values, n * sizeof *room);
    qsort(room, n, sizeof *room, ascending);
    return (spread){sum / (double)n, quantile(n, room, 0.5), quantile(n, room, 0.25), quantile(n, room, 0.75)};
}
