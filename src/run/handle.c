/* A run from a spec: read, plan, start, iterate, measure. */
#define _POSIX_C_SOURCE 200809L
#include "run/handle.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/ranks.h"
#include "data/features.h"
#include "data/memory.h"
#include "data/nodes.h"
#include "data/part.h"
#include "plan/fixed_answer.h"
#include "plan/labels.h"
#include "plan/method.h"
#include "plan/noise.h"
#include "plan/owners.h"
#include "plan/read_table.h"
#include "plan/refusal.h"
#include "plan/tally.h"
#include "run/anew.h"
#include "run/personal_run.h"
#include "run/replay.h"
#include "run/save.h"
#include "spec/pack.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The truth that the spec names, if it names one; r->data is there. */
static hfsad_status read_truth(hfsad_run *r, const hfsad_spec *spec, hfsad_error *err)
{
    if (!spec->top.truth || r->truth)
        return HFSAD_OK;
    char *path = spec_find_file(spec, spec->top.truth);
    const size_t F = features_count(r->data);
    r->truth = alloc_zero(F, sizeof *r->truth);
    if (!path || !r->truth) {
        free(path);
        return error_memory(err, F * sizeof *r->truth, "the truth");
    }
    hfsad_status status = vector_read(r->truth, F, path, "truth", err);
    double size = 0;
    for (size_t m = 0; m < F; m++)
        size += r->truth[m] * r->truth[m];
    if (!status && !(size > 0))
        status = error_set(err, HFSAD_ERROR_INPUT,
                           "%s: the truth is all zero, so the relative error is undefined; remove it", path);
    free(path);
    return status;
}

/* Runs the plan for this number of iterations from start, which becomes the cloud's model; f: the figures there. */
static hfsad_status try_start(const hfsad_run *r, const plan *p, int iterations, double *start, pool *threads,
                              hfsad_figures *f, hfsad_error *err)
{
    sim *s = NULL;
    const hfsad_status status = sim_create(&s, r->data, p, start, NULL, threads, err);
    if (status)
        return status;
    for (int i = 0; i < iterations; i++)
        sim_iterate(s);
    sim_measure(s, f);
    memcpy(start, sim_cloud(s), r->data->M * sizeof *start);
    sim_free(s);
    return HFSAD_OK;
}

/* A stage of the search for a start. */
typedef struct {
    double *w; /* the start, then the model so far */
    hfsad_figures figures;
    hfsad_status status;
    hfsad_error err;
} trial;

typedef struct {
    const hfsad_run *run;
    const plan *plan;
    int iterations;
    trial *trials;
} trials;

static void run_trial(void *context, size_t item, unsigned thread)
{
    (void)thread;
    const trials *all = context;
    trial *t = &all->trials[item];
    pool *single = NULL;
    if (!(t->status = pool_create(&single, 1, &t->err)))
        t->status = try_start(all->run, all->plan, all->iterations, t->w, single, &t->figures, &t->err);
    pool_free(single);
}

/* Stages that do not depend on each other, from `stage` on: several side by side, each by one thread; one by all. */
static hfsad_status run_stages(const trials *all, start_search *search, uint64_t stage, size_t count, hfsad_error *err)
{
    hfsad_run *r = (hfsad_run *)all->run;
    hfsad_status status = HFSAD_OK;
    for (size_t i = 0; i < count; i++)
        start_search_begin(search, stage + i, all->trials[i].w);
    if (count > 1 && ranks()->count == 1)
        pool_run(r->threads, count, run_trial, (void *)all);
    else
        for (trial *t = all->trials; t < all->trials + count; t++)
            t->status = try_start(r, all->plan, all->iterations, t->w, r->threads, &t->figures, &t->err);
    for (size_t i = 0; i < count && !status; i++) {
        const trial *t = &all->trials[i];
        if ((status = t->status) && err)
            *err = t->err;
        if (!status)
            start_search_conclude(search, stage + i, &t->figures, t->w);
    }
    return status;
}

/* From r->start, the start of the first stage, to the start of the run. Consensus is the result with all nodes tied.
 * From there only clients that follow another law leave. From any other start all clients would leave their edges
 * before the edges have moved. */
static hfsad_status search_start(hfsad_run *r, const hfsad_spec *spec, bool consensus, hfsad_error *err)
{
    const size_t M = r->data->M, tries = spec->run.tries > 1 && r->algorithm->links ? (size_t)spec->run.tries : 0,
                 most = tries ? tries : 1;
    start_search search = {.M = M,
                           .seed = (uint64_t)spec->run.seed,
                           .stages = consensus + tries + 1,
                           .likely = r->scales.length,
                           .consensus = consensus,
                           .first = r->start,
                           .least = INFINITY};
    trial *tried = alloc_zero(most, sizeof *tried);
    double *w = alloc_zero(most * M, sizeof *w);
    plan *tied = NULL;
    hfsad_status status = tried && w ? HFSAD_OK : error_memory(err, most * M * sizeof *w, "the starts");
    for (size_t i = 0; i < most && !status; i++)
        tried[i].w = w + i * M;
    if (!status && consensus && !(status = plan_resolve(&tied, spec, r->data, &r->scales, true, err))) {
        tied->iterations = tied->trace_every = START_CONSENSUS_ITERATIONS;
        status = run_stages(&(trials){r, tied, START_CONSENSUS_ITERATIONS, tried}, &search, 0, 1, err);
    }
    plan brief = *r->plan;
    brief.iterations = brief.trace_every = START_TRY_ITERATIONS;
    if (!status && tries)
        status = run_stages(&(trials){r, &brief, START_TRY_ITERATIONS, tried}, &search, consensus, tries, err);
    start_search_begin(&search, search.stages - 1, r->start);
    r->before.bytes_up += search.bytes_up;
    r->before.bytes_down += search.bytes_down;
    r->start_index = (uint32_t)search.kept;
    plan_free(tied);
    free(w);
    free(tried);
    return status;
}

/* With the current folder, so that the names in it can be found from another one. */
static hfsad_status remember_spec(hfsad_spec **copy, const hfsad_spec *spec, hfsad_error *err)
{
    const hfsad_status status = spec_copy(copy, spec, err);
    if (!status && !(*copy)->base)
        (*copy)->base = getcwd(NULL, 0); /* NULL if that folder is gone */
    return status;
}

/* What is asked of all clients before training, and the search for the start. */
static hfsad_status survey(hfsad_run *r, const hfsad_spec *spec, hfsad_error *err)
{
    local_survey local;
    run_beginning found;
    hfsad_status status = local_survey_make(&local, spec, r->data, err);
    if (status)
        return status;
    local.threads = r->threads;
    const surveyor ask = local_surveyor(&local);
    r->start = alloc_zero(r->data->M, sizeof *r->start);
    status = r->start ? run_begin(&found, spec, r->data, &ask, r->start, err)
                      : error_memory(err, r->data->M * sizeof *r->start, "the start vector");
    if (r->start) {
        r->scales = found.scales;
        r->plan = found.plan;
        r->nu_f = found.nu_f;
        r->rule = found.rule;
        r->start_kind = found.start_kind;
    }
    if (!status && (found.consensus || (spec->run.tries > 1 && r->algorithm->links)))
        status = search_start(r, spec, found.consensus, err);
    r->before.questions = local.cost.questions;
    r->before.bytes_up += local.cost.bytes_up;
    r->before.bytes_down += local.cost.bytes_down;
    local_survey_free(&local);
    return status;
}

static hfsad_status take_known(hfsad_run *r, const hfsad_spec *spec, const run_known *known, hfsad_error *err)
{
    r->scales = known->scales;
    r->nu_f = known->nu_f;
    r->start = alloc_zero(r->data->M, sizeof *r->start);
    r->start_kind = strdup(known->start_kind);
    if (!r->start || !r->start_kind)
        return error_memory(err, r->data->M * sizeof *r->start, "the start vector");
    if (!known->driver)
        return plan_resolve(&r->plan, spec, r->data, &r->scales, false, err);
    memcpy(r->start, known->start, r->data->M * sizeof *r->start);
    r->plan = known->plan;
    r->rule = *known->rule;
    return HFSAD_OK;
}

/* Of several ranks each reads its part if all questions to the rows go through sums of the ranks. */
static hfsad_status read_data(hfsad_run *r, const hfsad_spec *spec, const char *path, bool as_rows, const char *record,
                              hfsad_error *err)
{
    const table_settings table = table_of_spec(spec);
    const part_model model = {.possible = r->algorithm->links && !record && !spec_is_fixed(spec) && !spec->own.value &&
                                          !spec_has_noise(spec) && !plan_standardizes(spec),
                              .intercept = spec->features.intercept != INTERCEPT_NONE,
                              .scores = spec_scores(spec)};
    const hfsad_status status =
        ranks()->count > 1 ? dataset_read_part(&r->data, path, &table, as_rows, &model, err) : HFSAD_OK;
    return status || r->data ? status : dataset_read_table(&r->data, path, &table, as_rows, err);
}

/* The data that the spec names, or that is in memory, as the run needs it. */
static hfsad_status take_data(hfsad_run *r, const hfsad_spec *spec, hfsad_data *memory, const char *record,
                              hfsad_error *err)
{
    const bool intercept = spec->features.intercept != INTERCEPT_NONE, standardize = plan_standardizes(spec);
    const size_t scores = spec_scores(spec);
    const bool as_rows = r->algorithm->as_rows || intercept || standardize || scores || spec->own.value ||
                         spec_has_noise(spec); /* the number of rows of a client stays private then */
    char *path = spec->top.data ? spec_find_file(spec, spec->top.data) : strdup("data");
    hfsad_status status = path ? HFSAD_OK : error_memory(err, 0, "a path");
    if (!status && memory && !r->data)
        status = data_lay(memory, as_rows, true, NULL, &r->data, err);
    else if (!status && !r->data)
        status = read_data(r, spec, path, as_rows, record, err);
    if (!status)
        status = labels_settle(r->data, spec, err);
    if (!status)
        r->data->fixed = spec_is_fixed(spec);
    if (!status && record)
        status = replay_find_absent(r->data, record, err);
    if (!status && (intercept || standardize))
        status = features_prepare(r->data, intercept, standardize, memory ? "data" : path, err);
    if (!status && scores)
        features_set_classes(r->data, scores);
    free(path);
    if (!status && memory && memory->truth) {
        r->truth = alloc_zero(memory->features, sizeof *r->truth);
        if (!r->truth)
            return error_memory(err, memory->features * sizeof *r->truth, "the truth");
        memcpy(r->truth, memory->truth, memory->features * sizeof *r->truth);
    }
    return status;
}

/* Inputs of a run besides its spec. */
typedef struct {
    const run_known *known; /* NULL: the data is asked */
    dataset *data;          /* read already; NULL: not yet */
    hfsad_data *memory;     /* NULL: files */
    const char *record;     /* NULL: no run is replayed */
    unsigned threads;
} run_source;

static hfsad_status check_rows(const dataset *d, const hfsad_spec *spec, hfsad_error *err)
{
    char path[HFSAD_TIERS_MAX * 256];
    hfsad_status status = HFSAD_OK;
    const bool checked = spec->privacy.least_rows > 1 || !isnan(spec->privacy.record);
    for (size_t leaf = 0; leaf < d->n_leaves && checked && !status; leaf++) {
        const client_rows rows = dataset_rows(d, leaf);
        dataset_leaf_name(d, leaf, path, sizeof path);
        status = refusal_check_rows(spec, path, &rows, err);
    }
    return status;
}

/* Whether the spec can be run in this process. */
static hfsad_status check_spec(const hfsad_run *r, const hfsad_spec *spec, bool files, hfsad_error *err)
{
    hfsad_status status = spec_check_settings(spec, files, err);
    if (status || (status = refusal_check(spec, err)))
        return status;
    if (r->algorithm->refuses(spec))
        return error_set(err, HFSAD_ERROR_INPUT, "%s", r->algorithm->refuses(spec));
    if (spec_is_fixed(spec) && ranks()->count > 1)
        return error_set(err, HFSAD_ERROR_INPUT, "federation.wire: fixed and secure aggregation need one process");
    if (spec->top.aggregate && ranks()->count > 1)
        return error_set(err, HFSAD_ERROR_INPUT, "aggregate: trimmed and median need one process");
    return HFSAD_OK;
}

/* Everything that a run has before it is planned. If a driver trains, the data are elsewhere. */
static hfsad_status gather(hfsad_run *r, const hfsad_spec *spec, const run_source *from, hfsad_error *err)
{
    hfsad_status status;
    r->algorithm = algorithm_of(spec);
    r->engine = from->known && from->known->driver ? from->known->engine : engine_of(r->algorithm);
    r->driver = from->known ? from->known->driver : NULL;
    if (r->driver) {
        r->data = from->known->data;
        status = read_truth(r, spec, err);
        return status ? status : pool_create(&r->threads, from->threads, err);
    }
    if ((status = check_spec(r, spec, !from->memory, err)))
        return status;
    if (!(status = take_data(r, spec, from->memory, from->record, err)) && !(status = read_truth(r, spec, err)) &&
        !(status = check_rows(r->data, spec, err)))
        status = pool_create(&r->threads, from->threads, err);
    return ranks_compare(r, spec, status, err);
}

static hfsad_status fill_run(hfsad_run *r, const hfsad_spec *spec, const run_source *from, hfsad_error *err)
{
    hfsad_status status = gather(r, spec, from, err);
    if (!status)
        status = from->known ? take_known(r, spec, from->known, err) : survey(r, spec, err);
    if (!status)
        status = r->engine->create(r, spec, err);
    if (!status)
        status = remember_spec(&r->spec, spec, err);
    return status ? status : run_resolve(r, err);
}

static hfsad_status create(hfsad_run **out, const hfsad_spec *spec, const run_source *from, hfsad_error *err)
{
    *out = NULL;
    hfsad_run *r = alloc_zero(1, sizeof *r);
    if (!r) {
        dataset_free(from->data);
        return error_memory(err, sizeof *r, "a run");
    }
    r->data = from->data;
    const hfsad_status status = fill_run(r, spec, from, err);
    if (status) {
        hfsad_run_free(r);
        return status;
    }
    *out = r;
    return HFSAD_OK;
}

hfsad_status run_create_on(hfsad_run **out, const hfsad_spec *spec, dataset *data, unsigned threads, hfsad_error *err)
{
    return run_create_from(out, spec, data, NULL, threads, err);
}

hfsad_status run_create_from(hfsad_run **out, const hfsad_spec *spec, dataset *data, hfsad_data *memory,
                             unsigned threads, hfsad_error *err)
{
    return create(out, spec, &(run_source){.data = data, .memory = memory, .threads = threads}, err);
}

hfsad_status run_create_known(hfsad_run **out, const hfsad_spec *spec, const run_known *known, hfsad_error *err)
{
    return create(out, spec, &(run_source){.known = known, .threads = 1}, err);
}

hfsad_status run_create_replay(hfsad_run **out, const hfsad_spec *spec, const char *record, unsigned threads,
                               hfsad_error *err)
{
    return create(out, spec, &(run_source){.record = record, .threads = threads}, err);
}

hfsad_status hfsad_run_create(hfsad_run **out, const hfsad_spec *spec, unsigned threads, hfsad_error *err)
{
    return create(out, spec, &(run_source){.threads = threads}, err);
}

hfsad_status hfsad_run_create_on(hfsad_run **out, const hfsad_spec *spec, hfsad_data *data, unsigned threads,
                                 hfsad_error *err)
{
    return create(out, spec, &(run_source){.memory = data, .threads = threads}, err);
}

hfsad_status run_replan(hfsad_run *r, const hfsad_spec *spec, hfsad_error *err)
{
    plan *made;
    hfsad_spec *copy = NULL;
    hfsad_status status = plan_resolve(&made, spec, r->data, &r->scales, false, err);
    if (!status)
        status = remember_spec(&copy, spec, err);
    if (!status && made->n_leaf_classes != r->plan->n_leaf_classes)
        status = error_set(err, HFSAD_ERROR_INPUT, "overrides: the kinds of clients change with the settings");
    if (status) {
        plan_free(made);
        hfsad_spec_free(copy);
        return status;
    }
    const plan old = *r->plan; /* the simulator keeps the pointer */
    *r->plan = *made;
    plan_settle(r->plan);
    *made = old;
    plan_free(made);
    hfsad_spec_free(r->spec);
    r->spec = copy;
    return run_resolve(r, err);
}

void hfsad_run_free(hfsad_run *r)
{
    if (!r)
        return;
    if (r->record)
        r->record_free(r->record);
    sim_free(r->sim);
    baseline_free(r->baseline);
    pool_free(r->threads);
    if (!r->driver) {
        plan_free(r->plan);
        dataset_free(r->data);
    }
    free(r->truth);
    free(r->start);
    free(r->start_kind);
    run_unpolish(r);
    run_star_free(r->kept);
    run_free_readmissions(r);
    hfsad_spec_free(r->spec);
    hfsad_spec_free(r->resolved);
    free(r);
}

void run_ungroup(hfsad_run *r)
{
    personal_free(&r->personal.found);
    r->personal = (run_personal){0};
}

void run_unpolish(hfsad_run *r)
{
    run_ungroup(r);
    free(r->polished);
    free(r->errors);
    free(r->owned);
    r->polished = r->errors = r->owned = NULL;
    r->best = NAN;
    r->has_star = false;
    r->polish = (hfsad_polish){0};
}

const double *run_best(const hfsad_run *r)
{
    double objective;
    const double *best = r->engine->best ? r->engine->best(r, &objective) : NULL;
    return best ? best : r->engine->inner_model(r, 0);
}

void hfsad_run_iterate(hfsad_run *r)
{
    run_unpolish(r);
    const double before = clock_seconds();
    r->engine->iterate(r);
    r->seconds += clock_seconds() - before;
}

hfsad_status run_too_large(const hfsad_run *r, size_t node, hfsad_error *err)
{
    char name[NODE_NAME_SIZE];
    nodes_name(r->data, node, name, sizeof name);
    return r->plan->noise.row > 0 ? error_set(err, HFSAD_ERROR_INPUT, NOISE_INEXACT, name)
                                  : error_set(err, HFSAD_ERROR_INPUT, FIXED_TOO_LARGE, name);
}

hfsad_status run_measure(hfsad_run *r, hfsad_figures *f, hfsad_error *err)
{
    if (r->has_star) {
        *f = r->star;
        return HFSAD_OK;
    }
    const hfsad_status status = r->engine->measure(r, f, err);
    f->seconds = r->seconds;
    r->last = *f;
    if (status)
        return status;
    if (!r->algorithm->is_finite(f))
        return error_set(err, HFSAD_ERROR_DIVERGED, "iteration %llu: the objective is no longer finite; try %s",
                         (unsigned long long)f->iteration, r->algorithm->remedy);
    if (plan_has_noise(r->plan))
        figures_hide(f);
    return HFSAD_OK;
}

hfsad_status hfsad_run_measure(hfsad_run *r, const hfsad_figures **figures, hfsad_error *err)
{
    *figures = &r->figures;
    return run_measure(r, &r->figures, err);
}

bool hfsad_run_converged(const hfsad_run *r)
{
    return r->engine->converged(r);
}

size_t hfsad_run_features(const hfsad_run *r)
{
    return r->data->M;
}

size_t hfsad_run_nodes(const hfsad_run *r)
{
    return r->data->n_inner + r->data->n_leaves;
}

size_t hfsad_run_node_name(const hfsad_run *r, size_t node, char *buffer, size_t size)
{
    if (node >= r->data->n_inner)
        return dataset_leaf_name(r->data, node - r->data->n_inner, buffer, size);
    const char *name = r->data->inner[node].name;
    const size_t length = strlen(name);
    if (size) {
        const size_t kept = length < size ? length : size - 1;
        memcpy(buffer, name, kept);
        buffer[kept] = 0;
    }
    return length;
}

void hfsad_run_node_model(const hfsad_run *r, size_t node, double *w)
{
    const personal_result *g = &r->personal.found;
    if (node >= r->data->n_inner && g->p)
        mixture_model(&(mixture){g->K, g->T, g->share, g->w}, r->data->M, g->p + (node - r->data->n_inner) * g->K, w);
    else if (node >= r->data->n_inner && run_is_held(r))
        memcpy(w, g->w, r->data->M * sizeof *w);
    else if (r->owned)
        owners_model(r->plan, r->data, node, r->owned, w);
    else if (node < r->data->n_inner || r->polished)
        memcpy(w, run_inner_model(r, node), r->data->M * sizeof *w);
    else
        r->engine->leaf_model(r, node - r->data->n_inner, w);
    model_to_user(r->data, w, w);
}

bool hfsad_run_intercept(const hfsad_run *r)
{
    return r->data->rows.constant != 0 && !r->data->classes;
}
