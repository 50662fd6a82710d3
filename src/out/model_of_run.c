/* Makes the model of a run in memory, equal to what model_read gives for the run's output folder. */
#include "base/alloc.h"
#include "base/error.h"
#include "data/features.h"
#include "out/groups.h"
#include "out/model.h"
#include "run/handle.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static hfsad_status take_models(model *m, const hfsad_run *run, hfsad_error *err)
{
    const size_t width = model_width(m);
    char name[HFSAD_TIERS_MAX * 256];
    size_t size = 0, at = 0;
    for (size_t i = 0; i < m->n_nodes; i++)
        size += hfsad_run_node_name(run, i, NULL, 0) + 1;
    m->w = alloc_raw(m->n_nodes * width, sizeof *m->w);
    m->name_at = alloc_raw(m->n_nodes, sizeof *m->name_at);
    m->names = alloc_raw(size, 1);
    if (!m->w || !m->name_at || !m->names)
        return error_memory(err, m->n_nodes * width * sizeof *m->w, "the models");
    for (size_t i = 0; i < m->n_nodes; i++) {
        const size_t length = hfsad_run_node_name(run, i, name, sizeof name) + 1;
        hfsad_run_node_model(run, i, m->w + i * width);
        m->name_at[i] = at;
        memcpy(m->names + at, name, length);
        at += length;
    }
    return model_index(m, "the run", err);
}

static hfsad_status take_feature_names(model *m, const dataset *d, hfsad_error *err)
{
    size_t size = 0;
    for (size_t i = 0; d->feature_names && i < m->features; i++)
        size += strlen(d->feature_names + size) + 1;
    if (!size)
        return HFSAD_OK;
    m->feature_names = alloc_raw(size, 1);
    if (!m->feature_names)
        return error_memory(err, size, "the features' names");
    memcpy(m->feature_names, d->feature_names, size);
    return HFSAD_OK;
}

static hfsad_status take_loss(model *m, const hfsad_spec *spec, hfsad_error *err)
{
    m->loss = spec->loss;
    m->loss.levels = NULL; /* the spec owns them; model.scores has a copy */
    m->overrides = alloc_zero(spec->n_overrides, sizeof *m->overrides);
    if (!m->overrides)
        return error_memory(err, spec->n_overrides * sizeof *m->overrides, "overrides");
    for (size_t i = 0; i < spec->n_overrides; i++) {
        m->overrides[i].loss = spec->overrides[i].loss;
        m->overrides[i].pattern = strdup(spec->overrides[i].node);
        if (!m->overrides[i].pattern)
            return error_memory(err, strlen(spec->overrides[i].node), "overrides");
        m->n_overrides++;
    }
    return model_list_patterns(m) ? HFSAD_OK : error_memory(err, m->n_overrides * sizeof(char *), "overrides");
}

/* Groups are named as in summary.json; clients of the cloud's group are not listed. */
static hfsad_status take_groups(model *m, const hfsad_run *run, hfsad_error *err)
{
    node_groups g;
    hfsad_status status = groups_find(&g, run, err);
    char name[HFSAD_TIERS_MAX * 256];
    uint32_t group;
    for (size_t i = 0; i < g.count && !status; i++) {
        snprintf(name, sizeof name, "%zu", i + 1);
        status = client_groups_label(&m->groups, name, &group, err);
    }
    for (size_t node = run->data->n_inner; g.count && node < hfsad_run_nodes(run) && !status; node++) {
        hfsad_run_node_name(run, node, name, sizeof name);
        if (g.group[node])
            status = client_groups_add(&m->groups, name, g.group[node], err);
    }
    client_groups_sort(&m->groups);
    groups_free(&g);
    return status;
}

hfsad_status model_of_run(model **made, const hfsad_run *run, hfsad_error *err)
{
    *made = NULL;
    model *m = alloc_zero(1, sizeof *m);
    if (!m)
        return error_memory(err, sizeof *m, "a model");
    m->n_inner = run->data->n_inner;
    m->n_nodes = spec_shows_clients(run->spec) ? hfsad_run_nodes(run) : m->n_inner;
    m->F = hfsad_run_intercept(run) ? run->data->M - 1 : run->data->M;
    m->classes = run->data->classes;
    m->scores = run->plan->scores;
    m->features = features_count(run->data);
    m->intercept = hfsad_run_intercept(run);
    hfsad_status status = take_models(m, run, err);
    if (!status)
        status = take_feature_names(m, run->data, err);
    if (!status)
        status = take_loss(m, run->spec, err);
    if (!status)
        status = take_groups(m, run, err);
    if (status)
        model_free(m);
    else
        *made = m;
    return status;
}
