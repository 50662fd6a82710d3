/* Matches a model with data; see model_scoring.h. */
#include "out/model_scoring.h"

#include "base/alloc.h"
#include "base/error.h"
#include "data/features.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Longest name of a client with its path. */
enum { NAME_SIZE = (HFSAD_TIERS_MAX + 1) * 256, SHOWN = 300 };

double score_prediction(hfsad_loss_kind kind, double score)
{
    return loss_kinds[kind]->predict ? loss_kinds[kind]->predict(score) : score;
}

bool scoring_has_y(const scoring *s)
{
    return s->data->rows.y != NULL;
}

/* Sparse rows have no column after the last non-zero one, so fewer features are not an error there. */
static hfsad_status check_features(const scoring *s, hfsad_error *err)
{
    const size_t of_data = s->data->rows.F, of_model = s->model->classes ? s->model->features : s->model->F;
    if (of_data == of_model || (s->data->rows.start && of_data < of_model))
        return features_check_names(s->data, s->path, s->model->feature_names, s->folder, err);
    return error_set(
        err, HFSAD_ERROR_INPUT,
        "%.*s has %zu features, but the model in %.*s has %zu; give data with the columns that the model was "
        "trained on",
        SHOWN, s->path, of_data, SHOWN, s->folder, of_model);
}

/* The inner node's own model; MODEL_NONE if there is none. A client of the same name does not count. */
static uint32_t find_inner(const model *m, const char *name)
{
    const uint32_t node = model_find(m, name);
    return node < m->n_inner ? node : MODEL_NONE;
}

static uint32_t find_client(const model *m, const char *name)
{
    const uint32_t node = model_find(m, name);
    return node >= m->n_inner ? node : MODEL_NONE;
}

static hfsad_status refuse_client(const scoring *s, const char *name, hfsad_error *err)
{
    if (s->model->n_nodes == s->model->n_inner)
        return error_set(
            err, HFSAD_ERROR_INPUT,
            "%.*s/model.csv has no clients' models, because its run had output.clients: false; choose other "
            "models or train with output.clients: true",
            SHOWN, s->folder);
    return error_set(err, HFSAD_ERROR_INPUT,
                     "%.*s: the client %.*s has no model in %.*s; the choice auto takes its nearest ancestor's", SHOWN,
                     s->path, SHOWN, name, SHOWN, s->folder);
}

static hfsad_status refuse_edge(const scoring *s, const char *edge, hfsad_error *err)
{
    return error_set(err, HFSAD_ERROR_INPUT,
                     "%.*s: the edge %.*s has no model in %.*s; the choice auto takes its nearest ancestor's", SHOWN,
                     s->path, SHOWN, edge, SHOWN, s->folder);
}

/* inner: room for a node per inner node of the data; receives the nearest node that has a model. */
static hfsad_status choose(scoring *s, model_choice with, uint32_t *inner, hfsad_error *err)
{
    const dataset *d = s->data;
    char name[NAME_SIZE];
    for (size_t i = 0; i < d->n_inner; i++) { /* parents come before their children */
        inner[i] = with == WITH_CLOUD ? 0 : find_inner(s->model, d->inner[i].name);
        if (inner[i] == MODEL_NONE && with == WITH_EDGE && d->inner[i].n_leaves)
            return refuse_edge(s, d->inner[i].name, err);
        if (inner[i] == MODEL_NONE)
            inner[i] = inner[d->inner[i].parent];
        for (size_t leaf = d->inner[i].first_leaf; leaf < d->inner[i].first_leaf + d->inner[i].n_leaves; leaf++) {
            s->node[leaf] = inner[i];
            if (with == WITH_EDGE || with == WITH_CLOUD)
                continue;
            dataset_leaf_name(d, leaf, name, sizeof name);
            const uint32_t own = find_client(s->model, name);
            if (own != MODEL_NONE)
                s->node[leaf] = own;
            else if (with == WITH_CLIENT)
                return refuse_client(s, name, err);
        }
    }
    return HFSAD_OK;
}

hfsad_status scoring_match(scoring *s, model_choice with, hfsad_error *err)
{
    const dataset *d = s->data;
    hfsad_status status = check_features(s, err);
    if (status)
        return status;
    uint32_t *inner = alloc_raw(d->n_inner, sizeof *inner);
    s->node = alloc_raw(d->n_leaves, sizeof *s->node);
    if (inner && s->node)
        status = choose(s, with, inner, err);
    else
        status = error_memory(err, (d->n_inner + d->n_leaves) * sizeof *inner, "the choice of models");
    free(inner);
    for (size_t leaf = 0; leaf < d->n_leaves; leaf++) {
        const size_t rows = d->rows.first[leaf + 1] - d->rows.first[leaf];
        s->most_rows = rows > s->most_rows ? rows : s->most_rows;
    }
    return status;
}

hfsad_status scoring_create(scoring *s, const char *folder, const char *path, model_choice with, hfsad_error *err)
{
    *s = (scoring){.folder = folder, .path = path};
    hfsad_status status = model_read(&s->model, folder, err);
    if (!status)
        status = dataset_read_inputs(&s->data, path, &s->model->table, err);
    if (!status)
        status = scoring_match(s, with, err);
    if (status)
        scoring_free(s);
    return status;
}

void scoring_free(scoring *s)
{
    model_free(s->model);
    dataset_free(s->data);
    free(s->node);
    *s = (scoring){0};
}

client_law scoring_law(const scoring *s, size_t leaf)
{
    char name[NAME_SIZE] = "";
    if (s->model->n_overrides) /* otherwise all clients have the same loss */
        dataset_leaf_name(s->data, leaf, name, sizeof name);
    return model_law(s->model, name);
}

hfsad_status scoring_overflow(const scoring *s, size_t leaf, size_t row, const char *what, hfsad_error *err)
{
    char name[NAME_SIZE];
    dataset_leaf_name(s->data, leaf, name, sizeof name);
    return error_set(
        err, HFSAD_ERROR_INPUT,
        "%.*s: the %s of row %zu of %.*s by the model of %.*s is not finite; the numbers of the model or of "
        "the row are too large",
        SHOWN, s->path, what, row + 1, SHOWN, name, SHOWN, model_name(s->model, s->node[leaf]));
}

bool scoring_has_levels(const scoring *s)
{
    return s->model->scores.K && !s->model->scores.labels;
}

size_t scoring_middle(const scoring *s)
{
    const double *levels = s->model->scores.levels;
    size_t best = 0;
    for (size_t k = 1; k < s->model->scores.K; k++)
        best = fabs(levels[k] - 0.5) < fabs(levels[best] - 0.5) ? k : best;
    return best;
}

static int compare_reals(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

double scoring_class(const scoring *s, size_t leaf, const client_rows *rows, size_t r, double y, double *p)
{
    const model *m = s->model;
    const double *w = model_weights(m, s->node[leaf]);
    double scores[SOFTMAX_CLASSES];
    softmax_scores(rows, r, m->classes, w, scores);
    for (size_t k = 0; k < m->classes && m->F > m->features * m->classes; k++)
        scores[k] += w[m->features * m->classes + k];
    if (!m->scores.K)
        return softmax_loss(m->classes, scores, y, p);
    if (!m->scores.labels) /* rearrangement: sorting never moves a level away from the truth */
        qsort(scores, m->classes, sizeof *scores, compare_reals);
    memcpy(p, scores, m->classes * sizeof *p);
    return scores_loss(&m->scores, p, y);
}

double most_likely(size_t classes, const double *p)
{
    size_t best = 0;
    for (size_t k = 1; k < classes; k++)
        best = p[k] > p[best] ? k : best;
    return (double)best;
}

/* Predicts the class of every row. */
static hfsad_status scoring_classes(const scoring *s, size_t leaf, double *scores, hfsad_error *err)
{
    const client_rows rows = dataset_rows(s->data, leaf);
    double p[SOFTMAX_CLASSES];
    for (size_t r = 0; r < rows.count; r++) {
        if (!isfinite(scoring_class(s, leaf, &rows, r, 0, p)))
            return scoring_overflow(s, leaf, r, "prediction", err);
        scores[r] = scoring_has_levels(s) ? p[scoring_middle(s)] : most_likely(s->model->classes, p);
    }
    return HFSAD_OK;
}

hfsad_status scoring_scores(const scoring *s, size_t leaf, hfsad_loss_kind kind, double *scores, hfsad_error *err)
{
    const client_rows rows = dataset_rows(s->data, leaf);
    const double *w = model_weights(s->model, s->node[leaf]);
    const double intercept = s->model->intercept ? w[s->model->F] : 0;
    if (s->model->classes)
        return scoring_classes(s, leaf, scores, err);
    for (size_t r = 0; r < rows.count; r++) {
        const double score = row_dot(&rows, r, w) + intercept;
        if (!isfinite(score) || !isfinite(score_prediction(kind, score)))
            return scoring_overflow(s, leaf, r, "prediction", err);
        scores[r] = score;
    }
    return HFSAD_OK;
}
