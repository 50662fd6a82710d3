/* evaluation.csv and evaluation.json; see model_evaluation.h. */
#include "base/error.h"
#include "base/format_number.h"
#include "data/builder.h"
#include "out/json.h"
#include "out/model_evaluation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- evaluation.csv ---- */

static void put_text(whole_file *f, const char *text)
{
    whole_file_put(f, text, strlen(text));
}

/* An empty field if there is no number. */
static void put_real(whole_file *f, double v)
{
    char text[1 + NUMBER_SIZE] = ",";
    whole_file_put(f, text, isnan(v) ? 1 : 1 + number_write(text + 1, v));
}

static void put_whole(whole_file *f, uint64_t v)
{
    char text[1 + NUMBER_SIZE] = ",";
    whole_file_put(f, text, 1 + number_write_whole(text + 1, v));
}

static void put_model(whole_file *f, const evaluation *e, uint32_t of)
{
    if (of == MODEL_NONE) {
        put_text(f, e->truth ? ",,,,," : ",,");
        return;
    }
    const support_figures support = evaluation_support(e, of);
    put_text(f, ",");
    put_text(f, model_name(e->scoring->model, of));
    put_whole(f, support.nonzero);
    if (e->truth) {
        put_real(f, support.recall);
        put_real(f, support.precision);
        put_real(f, support.relative_error);
    }
}

/* Names hold no comma and no quote: the reader of the data refuses them, and every name of a model is a name of its
 * data. */
static void put_node_row(whole_file *f, const evaluation *e, size_t node)
{
    char name[EVALUATION_NAME_SIZE];
    const row_figures *figures = &e->nodes[node];
    const uint32_t of = evaluation_model(e, node);
    evaluation_name(e, node, name, sizeof name);
    put_text(f, name);
    put_whole(f, figures->rows);
    put_real(f, figures->weight);
    put_real(f, mean_loss(figures));
    put_real(f, figures->total);
    if (e->labels || e->confusion)
        put_real(f, accuracy_of(figures));
    if (e->levels) {
        put_real(f, coverage_of(figures));
        put_real(f, level_of(figures));
    }
    put_model(f, e, of);
    for (size_t k = 0, K = evaluation_levels(e); k < K; k++) {
        put_real(f, e->levels_by_node[node * K + k].pinball / figures->weight);
        put_real(f, e->levels_by_node[node * K + k].covered / figures->weight);
    }
    for (measure kind = 0; kind < MEASURES; kind++)
        if (evaluation_has(e, kind))
            put_real(f, measure_of(&figures->measures, kind));
    put_text(f, "\n");
}

void evaluation_table(whole_file *f, const evaluation *e)
{
    const dataset *d = e->scoring->data;
    put_text(f, "node,rows,weight,loss,total");
    put_text(f, e->labels || e->confusion ? ",accuracy" : "");
    put_text(f, e->levels ? ",coverage,tau" : "");
    put_text(f, ",model,nonzero");
    put_text(f, e->truth ? ",recall,precision,relative_error" : "");
    for (size_t k = 0; k < evaluation_levels(e); k++) {
        char names[80];
        const double tau = e->scoring->model->scores.levels[k];
        snprintf(names, sizeof names, ",pinball_%.15g,coverage_%.15g", tau, tau);
        put_text(f, names);
    }
    for (measure kind = 0; kind < MEASURES; kind++)
        if (evaluation_has(e, kind)) {
            put_text(f, ",");
            put_text(f, measure_kinds[kind].name);
        }
    put_text(f, "\n");
    for (size_t node = 0; node < d->n_inner + d->n_leaves; node++)
        put_node_row(f, e, node);
}

/* ---- evaluation.json ---- */

static void add_loss(json *j, cJSON *root, const model *m)
{
    static const char *const scales[] = {SCALE_NAMES};
    cJSON *loss = json_add_object(j, root, "loss");
    json_add_text(j, loss, "kind", loss_names[m->loss.kind]);
#define ADD_PARAMETER(name)                                                                                            \
    if (loss_kinds[m->loss.kind]->parameters & LOSS_HAS_##name)                                                        \
        json_add_real(j, loss, #name, m->loss.name);
    LOSS_PARAMETERS(ADD_PARAMETER)
#undef ADD_PARAMETER
    if (m->classes && !(m->scores.K && !m->scores.labels))
        json_add_whole(j, loss, "classes", m->classes);
    json_add_text(j, loss, "scale", scales[m->loss.scale]);
}

static void add_node(json *j, cJSON *root, const char *key, const evaluation *e, size_t node)
{
    char name[EVALUATION_NAME_SIZE];
    cJSON *object = json_add_object(j, root, key);
    evaluation_name(e, node, name, sizeof name);
    json_add_text(j, object, "node", name);
    json_add_real(j, object, "loss", mean_loss(&e->nodes[node]));
}

static void add_measures(json *j, cJSON *object, const evaluation *e, const row_figures *f)
{
    for (measure kind = 0; kind < MEASURES; kind++)
        if (evaluation_has(e, kind))
            json_add_real(j, object, measure_kinds[kind].name, measure_of(&f->measures, kind));
}

/* An object for each level. */
static void add_levels(json *j, cJSON *to, const evaluation *e, const level_sums *sums, double weight)
{
    const size_t K = evaluation_levels(e);
    cJSON *list = K ? cJSON_CreateArray() : NULL;
    for (size_t k = 0; k < K; k++) {
        cJSON *object = cJSON_CreateObject();
        json_add_real(j, object, "tau", e->scoring->model->scores.levels[k]);
        json_add_real(j, object, "pinball", sums[k].pinball / weight);
        json_add_real(j, object, "coverage", sums[k].covered / weight);
        json_append(j, list, object);
    }
    if (K)
        json_add_item(j, to, "levels", list);
}

/* A list for each class: the weight of its rows by the predicted class. */
static void add_confusion(json *j, cJSON *root, const evaluation *e)
{
    const size_t K = e->scoring->model->classes;
    cJSON *lists = cJSON_CreateArray();
    for (size_t k = 0; k < K; k++) {
        cJSON *list = cJSON_CreateDoubleArray(e->confusion + k * K, (int)K);
        if (!list || !cJSON_AddItemToArray(lists, list))
            j->ok = false;
    }
    json_add_item(j, root, "confusion", lists);
}

static void add_rows(json *j, cJSON *root, const evaluation *e)
{
    const dataset *d = e->scoring->data;
    const row_figures *all = &e->nodes[0];
    json_add_whole(j, root, "edges", d->n_inner - 1);
    json_add_whole(j, root, "clients", d->n_leaves);
    json_add_whole(j, root, "rows", all->rows);
    json_add_real(j, root, "weight", all->weight);
    json_add_real(j, root, "mean_loss", mean_loss(all));
    json_add_real(j, root, "total_loss", all->total);
    if (e->worst_edge)
        add_node(j, root, "worst_edge", e, e->worst_edge);
    add_node(j, root, "worst_client", e, d->n_inner + e->worst_client);
    json_add_real(j, root, "median_client_loss", e->median_loss);
    if (e->labels || e->confusion)
        json_add_real(j, root, "accuracy", accuracy_of(all));
    if (e->confusion)
        add_confusion(j, root, e);
    add_levels(j, root, e, e->levels_by_node, all->weight);
    if (e->levels) {
        json_add_real(j, root, "coverage", coverage_of(all));
        json_add_real(j, root, "tau", level_of(all));
    }
    add_measures(j, root, e, all);
}

static void add_models(json *j, cJSON *root, const evaluation *e)
{
    const model *m = e->scoring->model;
    const support_figures cloud = evaluation_support(e, 0);
    cJSON *used = json_add_object(j, root, "clients_by_model");
    json_add_whole(j, used, "own", e->used_own);
    json_add_whole(j, used, "edge", e->used_edge);
    json_add_whole(j, used, "cloud", e->used_cloud);
    json_add_whole(j, root, "features", m->classes ? m->features : m->F);
    cJSON *object = json_add_object(j, root, "cloud_model");
    json_add_whole(j, object, "nonzero", cloud.nonzero);
    if (!e->truth)
        return;
    json_add_real(j, object, "recall", cloud.recall);
    json_add_real(j, object, "precision", cloud.precision);
    json_add_real(j, object, "relative_error", cloud.relative_error);
}

static void add_groups(json *j, cJSON *root, const evaluation *e)
{
    cJSON *list = cJSON_CreateArray();
    for (size_t i = 0; i < e->sets->count; i++) {
        const group_figures *g = &e->groups[i];
        cJSON *object = cJSON_CreateObject();
        json_add_text(j, object, "group", e->sets->labels[i]);
        json_add_whole(j, object, "clients", g->clients);
        json_add_whole(j, object, "rows", g->rows.rows);
        json_add_real(j, object, "mean_loss", g->clients ? mean_loss(&g->rows) : NAN);
        if (e->labels || e->confusion)
            json_add_real(j, object, "accuracy", accuracy_of(&g->rows));
        if (e->levels)
            json_add_real(j, object, "coverage", coverage_of(&g->rows));
        if (e->truth)
            json_add_real(j, object, "relative_error", g->relative_error);
        add_measures(j, object, e, &g->rows);
        add_levels(j, object, e, e->levels_by_group + i * evaluation_levels(e), g->rows.weight);
        json_append(j, list, object);
    }
    json_add_item(j, root, "groups", list);
}

hfsad_status evaluation_summary(whole_file *f, const evaluation *e, model_choice with, const char *truth_path,
                                hfsad_error *err)
{
    static const char *const choices[] = {MODEL_CHOICES};
    json state = {.ok = true}, *j = &state;
    cJSON *root = cJSON_CreateObject();
    json_add_text(j, root, "version", hfsad_version());
    json_add_text(j, root, "model", e->scoring->folder);
    json_add_text(j, root, "data", e->scoring->path);
    json_add_text(j, root, "with", choices[with]);
    if (truth_path)
        json_add_text(j, root, "truth", truth_path);
    add_loss(j, root, e->scoring->model);
    add_rows(j, root, e);
    add_models(j, root, e);
    if (e->sets)
        add_groups(j, root, e);
    char *text = j->ok ? cJSON_Print(root) : NULL;
    cJSON_Delete(root);
    if (!text)
        return error_memory(err, 0, "evaluation.json");
    put_text(f, text);
    put_text(f, "\n");
    cJSON_free(text);
    return HFSAD_OK;
}
