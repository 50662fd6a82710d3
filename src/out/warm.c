#include "out/warm.h"

#include "base/alloc.h"
#include "base/error.h"
#include "data/features.h"
#include "out/model.h"
#include "run/save.h"

#include <stdlib.h>
#include <string.h>

/* The model of a node or of its nearest ancestor, in the end the cloud's. Shortens `name` on the way. */
static const double *nearest(const model *m, char *name)
{
    for (;;) {
        const uint32_t node = model_find(m, name);
        char *slash = strrchr(name, '/');
        if (node != MODEL_NONE)
            return model_weights(m, node);
        if (!slash)
            return model_weights(m, model_find(m, "cloud"));
        *slash = 0;
    }
}

static hfsad_status check(const hfsad_run *run, const model *m, const char *path, hfsad_error *err)
{
    const size_t F = run->data->classes ? run->data->M : features_count(run->data);
    const bool intercept = hfsad_run_intercept(run);
    if (m->F != F || m->intercept != intercept)
        return error_set(err, HFSAD_ERROR_INPUT, "%.300s: a model of %zu features%s, but the data have %zu%s", path,
                         m->F, m->intercept ? " and an intercept" : "", F,
                         intercept ? " and features.intercept is set" : " and features.intercept is none");
    if (m->n_nodes == 0 || model_find(m, "cloud") == MODEL_NONE)
        return error_set(err, HFSAD_ERROR_INPUT, "%.300s: no row for the cloud; give a whole model.csv", path);
    if (run->data->classes) /* the names of a model.csv are those of its scores */
        return HFSAD_OK;
    return features_check_names(run->data, "the data", m->feature_names, path, err);
}

/* w: room for a model. */
static void apply(hfsad_run *run, const model *m, double *w)
{
    char name[HFSAD_TIERS_MAX * 256];
    for (size_t i = 0; i < hfsad_run_nodes(run); i++) {
        hfsad_run_node_name(run, i, name, sizeof name);
        model_from_user(run->data, nearest(m, name), w);
        sim_set_model(run->sim, i, w);
    }
}

hfsad_status warm_start_from(hfsad_run *run, const model *m, const char *path, hfsad_error *err)
{
    if (!run->algorithm->links)
        return error_set(err, HFSAD_ERROR_INPUT, "warm start: a baseline starts from one vector; give run.start");
    if (sim_iteration(run->sim) > 0)
        return error_set(err, HFSAD_ERROR_INPUT, "warm start: the run has iterated already; create another one");
    const hfsad_status status = check(run, m, path, err);
    if (status)
        return status;
    double *w = alloc_zero(hfsad_run_features(run), sizeof *w);
    char *kind = strdup(path);
    if (!w || !kind) {
        free(w);
        free(kind);
        return error_memory(err, strlen(path), "a model");
    }
    apply(run, m, w);
    free(w);
    free(run->start_kind);
    run->start_kind = kind;
    return run_resolve(run, err);
}

hfsad_status warm_start(hfsad_run *run, const char *path, hfsad_error *err)
{
    model *m;
    hfsad_status status = model_read_models(&m, path, err);
    if (!status)
        status = warm_start_from(run, m, path, err);
    model_free(m);
    return status;
}
