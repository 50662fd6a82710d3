/* Results: made from a run or from a folder, and their contents. result_use.c predicts and evaluates with them. */
#include "out/result.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/read_file.h"
#include "out/training.h"
#include "spec/pack.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static hfsad_status take_groups(hfsad_result *r, hfsad_error *err)
{
    const model *m = r->model;
    const size_t clients = m->n_nodes - m->n_inner;
    if (!m->groups.count)
        return HFSAD_OK;
    r->group = alloc_zero(clients, sizeof *r->group);
    if (!r->group)
        return error_memory(err, clients * sizeof *r->group, "the groups");
    for (size_t i = 0; i < clients; i++)
        r->group[i] = client_groups_find(&m->groups, model_name(m, (uint32_t)(m->n_inner + i)));
    return HFSAD_OK;
}

static hfsad_status fill_from_run(hfsad_result *r, hfsad_run *run, hfsad_error *err)
{
    training_record *record = NULL;
    hfsad_status status = training_record_of(run, &record, err);
    if (!status)
        status = model_of_run(&r->model, run, err);
    if (!status)
        status = trace_table_parse(&r->trace, report_trace(record->report), "the trace", err);
    if (!status)
        status = spec_copy(&r->settings, run->resolved, err);
    if (status)
        return status;
    r->settings->own = (hfsad_own_loss){0}; /* the program's callbacks may end with the run */
    r->stop = (hfsad_stop)record->end.stopped;
    snprintf(r->algorithm, sizeof r->algorithm, "%s", summary_algorithm(run, run->spec));
    if (run->errors && !(r->errors = alloc_raw(run->data->M, sizeof *r->errors)))
        return error_memory(err, run->data->M * sizeof *r->errors, "the standard errors");
    if (run->errors)
        memcpy(r->errors, run->errors, run->data->M * sizeof *r->errors);
    run_verdict(run, run->spec, r->stop == HFSAD_STOP_RUNNING || r->stop == HFSAD_STOP_INTERRUPTED, &r->verdict);
    return take_groups(r, err);
}

static hfsad_status fill_from_folder(hfsad_result *r, const char *folder, bool models, hfsad_error *err)
{
    char *path = path_join(folder, "trace.csv");
    if (!path)
        return error_memory(err, strlen(folder), "a file name");
    hfsad_status status = models ? model_read(&r->model, folder, err) : HFSAD_OK;
    if (!models && !(r->model = alloc_zero(1, sizeof *r->model)))
        status = error_memory(err, sizeof *r->model, "a result");
    if (!status)
        status = result_read_summary(r, folder, err);
    if (!status)
        status = trace_table_read(&r->trace, path, err);
    free(path);
    return status ? status : take_groups(r, err);
}

static hfsad_result *make(const char *name)
{
    hfsad_result *r = alloc_zero(1, sizeof *r);
    if (r && !(r->name = strdup(name))) {
        free(r);
        r = NULL;
    }
    return r;
}

hfsad_status hfsad_result_take(hfsad_result **result, hfsad_run *run, hfsad_error *err)
{
    hfsad_result *r = make("the result");
    *result = NULL;
    const hfsad_status status = r ? fill_from_run(r, run, err) : error_memory(err, sizeof *r, "a result");
    if (status)
        hfsad_result_free(r);
    else
        *result = r;
    return status;
}

static hfsad_status load(hfsad_result **result, const char *folder, bool models, hfsad_error *err)
{
    hfsad_result *r = make(folder);
    *result = NULL;
    const hfsad_status status = r ? fill_from_folder(r, folder, models, err) : error_memory(err, sizeof *r, "a result");
    if (status)
        hfsad_result_free(r);
    else
        *result = r;
    return status;
}

hfsad_status hfsad_result_load(hfsad_result **result, const char *folder, hfsad_error *err)
{
    return load(result, folder, true, err);
}

hfsad_status hfsad_result_load_trace(hfsad_result **result, const char *folder, hfsad_error *err)
{
    return load(result, folder, false, err);
}

void hfsad_result_free(hfsad_result *r)
{
    if (!r)
        return;
    model_free(r->model);
    trace_table_free(&r->trace);
    hfsad_spec_free(r->settings);
    free(r->group);
    free(r->errors);
    free(r->name);
    free(r);
}

const char *hfsad_result_algorithm(const hfsad_result *r)
{
    return r->algorithm;
}

size_t hfsad_result_nodes(const hfsad_result *r)
{
    return r->model->n_nodes;
}

const double *hfsad_result_errors(const hfsad_result *r)
{
    return r->errors;
}

size_t hfsad_result_inner_nodes(const hfsad_result *r)
{
    return r->model->n_inner;
}

size_t hfsad_result_width(const hfsad_result *r)
{
    return model_width(r->model);
}

bool hfsad_result_intercept(const hfsad_result *r)
{
    return r->model->intercept;
}

const double *hfsad_result_models(const hfsad_result *r)
{
    return r->model->w;
}

const char *hfsad_result_node_name(const hfsad_result *r, size_t node)
{
    return model_name(r->model, (uint32_t)node);
}

size_t hfsad_result_find(const hfsad_result *r, const char *name)
{
    const uint32_t node = model_find(r->model, name);
    return node == MODEL_NONE ? SIZE_MAX : node;
}

size_t hfsad_result_trace_rows(const hfsad_result *r)
{
    return r->trace.rows;
}

size_t hfsad_result_trace_columns(const hfsad_result *r)
{
    return r->trace.columns;
}

const char *hfsad_result_trace_name(const hfsad_result *r, size_t column)
{
    return r->trace.name[column];
}

const double *hfsad_result_trace(const hfsad_result *r, const char *name)
{
    return trace_table_column(&r->trace, name);
}

size_t hfsad_result_groups(const hfsad_result *r)
{
    return r->model->groups.count;
}

size_t hfsad_result_group(const hfsad_result *r, size_t node)
{
    return r->group && node >= r->model->n_inner && node < r->model->n_nodes ? r->group[node - r->model->n_inner] : 0;
}

const hfsad_spec *hfsad_result_settings(const hfsad_result *r)
{
    return r->settings;
}

hfsad_stop hfsad_result_stop(const hfsad_result *r)
{
    return r->stop;
}

const hfsad_verdict *hfsad_result_verdict(const hfsad_result *r)
{
    return &r->verdict;
}
