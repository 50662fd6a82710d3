/* The paper's experiment over many trials; see paper.h. */
#include "lab/experiment.h"

#include "base/alloc.h"
#include "base/error.h"
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
    pthread_mutex_t lock; /* of what follows and of the done hook */
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
static hfsad_status run_hfsad(campaign *c, size_t method, size_t t, trial *k, hfsad_error *err)
{
    const paper_method *m = &c->methods[method];
    const double *start = k->start;
    k->spec->top.preset = m->tuned ? PRESET_TUNED : PRESET_PAPER;
    k->spec->run.edge_rounds = m->edge_rounds;
    k->spec->participation.client = m->participation;
    plan *p;
    hfsad_status status = plan_create(&p, k->spec, k->observations, err);
    if (status)
        return status;
    if (m->tuned) {
        start = k->w;
        status = find_start(k, k->w, start_default(k->spec), err);
    }
    sim *s;
    if (!status)
        status = sim_create(&s, k->observations, p, start, NULL, k->single, err);
    if (!status) {
        for (size_t i = 0; i < c->result->points && !must_stop(c); i++) {
            if (i)
                sim_iterate(s);
            record(c, method, i, t, k, sim_cloud(s));
        }
        sim_free(s);
    }
    plan_free(p);
    return status;
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

/* The problem that HFSAD's consensus solves, in one place: the priors of all nodes fall on the same w. They are also
 * written into the spec, for the tuned preset, which has no default priors. */
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

static void run_trial(void *context, size_t t, unsigned thread)
{
    campaign *c = context;
    (void)thread;
    if (must_stop(c))
        return;
    hfsad_error err;
    trial k;
    hfsad_status status = trial_create(&k, c, t, &err);
    for (size_t method = 0; method < c->result->methods && !status; method++) {
        if (c->methods[method].skip)
            continue;
        if (c->methods[method].central)
            run_central(c, method, t, &k);
        else
            status = run_hfsad(c, method, t, &k, &err);
    }
    trial_free(&k);
    pthread_mutex_lock(&c->lock);
    if (status && t < c->failed_trial) {
        c->failed_trial = t;
        c->failure = err;
    }
    c->done++;
    if (!status && c->hooks->done && !atomic_load_explicit(&c->stopped, memory_order_relaxed))
        c->hooks->done(c->hooks->context, c->done);
    pthread_mutex_unlock(&c->lock);
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
        pool_run(threads, s->trials, run_trial, &c);
        pthread_mutex_destroy(&c.lock);
        pool_free(threads);
        if (c.failed_trial != SIZE_MAX)
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
    if (part == 0 || sorted[below] == sorted[below + 1]) /* two infinities have no difference */
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
