/* The models of runs in one picture; see model_picture.h. */
#include "lab/model_picture.h"

#include "base/alloc.h"
#include "base/batch.h"
#include "base/error.h"
#include "lab/plot.h"
#include "out/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLOURED_MOST = 4, FEATURES_MOST = 1000, LABEL_SIZE = 100 };
const char *const model_picture_names[] = {"models.png", "models.svg"};

struct model_picture {
    model_picture_settings args;
    model *models[1 + MODEL_PICTURE_OTHERS];
    client_groups groups;      /* of the file */
    const client_groups *sets; /* groups of the file or of the run; NULL: none */
    double *truths[MODEL_PICTURE_TRUTHS];
    const double **w; /* models that the bundles point to */
    size_t n_w, n_bundles;
    plot_bundle bundles[PLOT_BUNDLES_MOST];
    char labels[PLOT_BUNDLES_MOST][LABEL_SIZE];
    char *names; /* names of several scores */
};

/* ---- reading ---- */

static hfsad_status read_one(model **m, const char *folder, hfsad_error *err)
{
    const hfsad_status status = model_read(m, folder, err);
    if (status || (*m)->F <= FEATURES_MOST)
        return status;
    return error_set(err, HFSAD_ERROR_INPUT, "%.300s has %zu features; a plot shows at most %d", folder, (*m)->F,
                     FEATURES_MOST);
}

static hfsad_status read_models(model_picture *p, hfsad_error *err)
{
    const char *const *folders = p->args.folders;
    hfsad_status status = read_one(&p->models[0], folders[0], err);
    if (status)
        return status;
    const model *first = p->models[0];
    if (first->n_nodes == first->n_inner)
        return error_set(err, HFSAD_ERROR_INPUT,
                         "%.300s has no models of clients; repeat the run with output.clients true", folders[0]);
    for (int i = 1; i <= MODEL_PICTURE_OTHERS && folders[i]; i++) {
        status = read_one(&p->models[i], folders[i], err);
        if (status)
            return status;
        if (p->models[i]->F != first->F)
            return error_set(err, HFSAD_ERROR_INPUT,
                             "%.300s has %zu features and %.300s has %zu; a plot needs equal numbers", folders[i],
                             p->models[i]->F, folders[0], first->F);
    }
    return HFSAD_OK;
}

static hfsad_status read_truths(model_picture *p, hfsad_error *err)
{
    const size_t F = p->models[0]->F;
    hfsad_status status = HFSAD_OK;
    for (size_t i = 0; i < p->args.n_truths && !status; i++) {
        p->truths[i] = alloc_zero(F, sizeof(double));
        status = p->truths[i] ? vector_read(p->truths[i], F, p->args.truths[i], "truth", err)
                              : error_memory(err, F * sizeof(double), "a true model");
    }
    return status;
}

static hfsad_status read_groups(model_picture *p, hfsad_error *err)
{
    const model *m = p->models[0];
    if (!p->args.groups) {
        p->sets = m->groups.count ? &m->groups : NULL;
        return HFSAD_OK;
    }
    p->sets = &p->groups;
    const hfsad_status status = client_groups_read(&p->groups, p->args.groups, err);
    for (size_t node = m->n_inner; node < m->n_nodes && !status; node++)
        if (client_groups_find(p->sets, model_name(m, (uint32_t)node)) == GROUP_NONE)
            return error_set(err, HFSAD_ERROR_INPUT,
                             "%.300s lists no group for %.300s, a client of %.300s; add a line for it", p->args.groups,
                             model_name(m, (uint32_t)node), p->args.folders[0]);
    return status;
}

static bool is_standardized(const model_picture *p)
{
    return p->models[0]->scales && !p->args.raw;
}

static void multiply(const model *by, double *w)
{
    for (size_t i = 0; i < model_slopes(by); i++)
        w[i] *= by->scales[by->classes ? i / by->classes : i];
}

/* Divides all models and truths by the scales of the first run's features. */
static void standardize(model_picture *p)
{
    const model *first = p->models[0];
    for (int i = 0; i <= MODEL_PICTURE_OTHERS && is_standardized(p); i++)
        for (size_t node = 0; p->models[i] && node < p->models[i]->n_nodes; node++)
            multiply(first, p->models[i]->w + node * model_width(p->models[i]));
    for (size_t i = 0; i < p->args.n_truths && is_standardized(p); i++)
        multiply(first, p->truths[i]);
}

/* "age:0.1", "age:0.9", ... of several levels, "age:0", "age:1", ... of several classes. */
static hfsad_status first_names(model_picture *p, hfsad_error *err)
{
    const model *m = p->models[0];
    const char *name = m->feature_names;
    size_t size = 0;
    if (!m->classes || !name)
        return HFSAD_OK;
    FILE *o = open_memstream(&p->names, &size);
    for (size_t i = 0; o && i < m->features; i++, name += strlen(name) + 1)
        for (size_t k = 0; k < m->classes; k++)
            fprintf(o, "%s:%.15g%c", name, m->scores.K && !m->scores.labels ? m->scores.levels[k] : (double)k, 0);
    return o && !fclose(o) ? HFSAD_OK : error_memory(err, size, "the features' names");
}

/* ---- bundles ---- */

static void add_bundle(model_picture *p, bundle_style style, size_t look, size_t n)
{
    p->bundles[p->n_bundles] = (plot_bundle){p->labels[p->n_bundles], style, look, n, p->w + p->n_w - n};
    p->n_bundles++;
}

/* The clients of one group; the last colour shows all further groups. */
static void add_group(model_picture *p, uint32_t first, uint32_t end)
{
    const model *m = p->models[0];
    size_t n = 0;
    for (size_t node = m->n_inner; node < m->n_nodes; node++) {
        const uint32_t group = p->sets ? client_groups_find(p->sets, model_name(m, (uint32_t)node)) : 0;
        if (group < first || group >= end)
            continue;
        p->w[p->n_w++] = model_weights(m, (uint32_t)node);
        n++;
    }
    if (n == 0)
        return;
    char *label = p->labels[p->n_bundles];
    const char *clients = n == 1 ? "client" : "clients";
    if (!p->sets)
        snprintf(label, LABEL_SIZE, "%zu %s", n, clients);
    else if (end - first > 1)
        snprintf(label, LABEL_SIZE, "other groups: %zu %s", n, clients);
    else
        snprintf(label, LABEL_SIZE, "group %s: %zu %s", p->sets->labels[first], n, clients);
    add_bundle(p, BUNDLE_THIN, first, n);
}

/* The text after the last slash, ignoring slashes at the end. */
static void put_last_part(char *label, const char *before, const char *path)
{
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/')
        end--;
    size_t begin = end;
    while (begin > 0 && path[begin - 1] != '/')
        begin--;
    snprintf(label, LABEL_SIZE, "%s%.*s", before, (int)(end - begin), path + begin);
}

static void add_bundles(model_picture *p)
{
    const uint32_t groups = p->sets ? (uint32_t)p->sets->count : 1;
    for (uint32_t g = 0; g < groups && g < COLOURED_MOST; g++)
        add_group(p, g, g + 1);
    if (groups > COLOURED_MOST)
        add_group(p, COLOURED_MOST, groups);
    for (size_t i = 1; i <= MODEL_PICTURE_OTHERS && p->models[i]; i++) {
        p->w[p->n_w++] = model_weights(p->models[i], 0);
        put_last_part(p->labels[p->n_bundles], "cloud of ", p->args.folders[i]);
        add_bundle(p, BUNDLE_DASHED, PLOT_SERIES_MOST - i, 1);
    }
    for (size_t i = 0; i < p->args.n_truths; i++) {
        p->w[p->n_w++] = p->truths[i];
        put_last_part(p->labels[p->n_bundles], "", p->args.truths[i]);
        add_bundle(p, BUNDLE_MARKS, i, 1);
    }
}

/* ---- the picture ---- */

static hfsad_status draw_files(const model_picture *p, file_batch *batch, int (*interrupted)(void), hfsad_error *err)
{
    const model *first = p->models[0];
    const model_plot drawing = {model_slopes(first), p->n_bundles, p->bundles,
                                first->classes ? p->names : first->feature_names, is_standardized(p)};
    const whole_file *files[2] = {0};
    hfsad_status status = file_batch_begin(batch, p->args.out, err);
    for (int i = 0; i < 2 && !status; i++) {
        files[i] = file_batch_add(batch, model_picture_names[i], err);
        status = files[i] ? HFSAD_OK : err->status;
    }
    if (!status)
        status = model_plot_draw(&drawing, files[0], files[1], err);
    return status || interrupted() ? status : file_batch_commit(batch, err);
}

hfsad_status model_picture_draw(const model_picture *p, int (*interrupted)(void), hfsad_error *err)
{
    file_batch batch = {0};
    const hfsad_status status = draw_files(p, &batch, interrupted, err);
    file_batch_drop(&batch);
    return status;
}

static hfsad_status set_up_picture(model_picture *p, hfsad_error *err)
{
    hfsad_status status = folder_check(p->args.out, err);
    if (!status)
        status = read_models(p, err);
    if (!status)
        status = read_truths(p, err);
    if (!status)
        status = read_groups(p, err);
    if (!status)
        status = plot_check("plot model.csv with another program", err);
    if (status)
        return status;
    const size_t most = p->models[0]->n_nodes + MODEL_PICTURE_OTHERS + MODEL_PICTURE_TRUTHS;
    p->w = alloc_zero(most, sizeof *p->w);
    if (!p->w)
        return error_memory(err, most * sizeof *p->w, "the plot");
    standardize(p);
    add_bundles(p);
    return first_names(p, err);
}

void model_picture_free(model_picture *p)
{
    if (!p)
        return;
    for (int i = 0; i <= MODEL_PICTURE_OTHERS; i++)
        model_free(p->models[i]);
    for (int i = 0; i < MODEL_PICTURE_TRUTHS; i++)
        free(p->truths[i]);
    client_groups_free(&p->groups);
    free(p->w);
    free(p->names);
    free(p);
}

hfsad_status model_picture_create(model_picture **out, const model_picture_settings *settings, hfsad_error *err)
{
    model_picture *p = *out = alloc_zero(1, sizeof *p);
    if (!p)
        return error_memory(err, sizeof *p, "the plot");
    p->args = *settings;
    const hfsad_status status = set_up_picture(p, err);
    if (status) {
        model_picture_free(p);
        *out = NULL;
    }
    return status;
}
