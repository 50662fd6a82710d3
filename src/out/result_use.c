/* What results are used for: predictions, evaluation, a start. Rows come from memory. */
#include "base/alloc.h"
#include "base/error.h"
#include "data/memory.h"
#include "out/model_evaluation.h"
#include "out/result.h"
#include "out/warm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Lays out the rows and matches them with the models; the result keeps the model. places: see data_lay. */
static hfsad_status match_rows(scoring *s, const hfsad_result *r, hfsad_data *data, hfsad_with with, uint32_t *places,
                               hfsad_error *err)
{
    static const model_choice choices[] = {
        [HFSAD_WITH_AUTO] = WITH_AUTO,
        [HFSAD_WITH_CLIENT] = WITH_CLIENT,
        [HFSAD_WITH_EDGE] = WITH_EDGE,
        [HFSAD_WITH_CLOUD] = WITH_CLOUD,
    };
    *s = (scoring){.folder = r->name, .path = "data", .model = r->model};
    if ((unsigned)with > HFSAD_WITH_CLOUD)
        return error_set(err, HFSAD_ERROR_INPUT, "with = %d; expected one of hfsad_with", (int)with);
    const hfsad_status status = data_lay(data, true, false, places, &s->data, err);
    return status ? status : scoring_match(s, choices[with], err);
}

static void end(scoring *s)
{
    s->model = NULL;
    scoring_free(s);
}

/* by_place: room for a number per row, in the order of the clients. */
static hfsad_status predict(const scoring *s, const uint32_t *places, double *by_place, double *prediction,
                            hfsad_error *err)
{
    const dataset *d = s->data;
    hfsad_status status = HFSAD_OK;
    for (size_t leaf = 0; leaf < d->n_leaves && !status; leaf++) {
        const hfsad_loss_kind kind = scoring_law(s, leaf).loss.kind;
        status = scoring_scores(s, leaf, kind, by_place + d->rows.first[leaf], err);
        for (size_t i = d->rows.first[leaf]; i < d->rows.first[leaf + 1] && !status; i++)
            by_place[i] = score_prediction(kind, by_place[i]);
    }
    for (size_t row = 0; row < d->n_rows && !status; row++)
        prediction[row] = by_place[places[row]];
    return status;
}

hfsad_status hfsad_result_predict(const hfsad_result *r, hfsad_data *data, hfsad_with with, double *prediction,
                                  hfsad_error *err)
{
    scoring s = {0};
    uint32_t *places = alloc_raw(data->rows, sizeof *places);
    double *by_place = alloc_raw(data->rows, sizeof *by_place);
    hfsad_status status = places && by_place ? match_rows(&s, r, data, with, places, err)
                                             : error_memory(err, data->rows * sizeof *by_place, "the predictions");
    if (!status)
        status = predict(&s, places, by_place, prediction, err);
    end(&s);
    free(places);
    free(by_place);
    return status;
}

struct hfsad_evaluation {
    size_t nodes;
    row_figures *figures;
    char **names;
    double median;
};

static hfsad_status measure_all(evaluation *e, hfsad_error *err)
{
    double *scores = alloc_raw(e->scoring->most_rows, sizeof *scores);
    hfsad_status status =
        scores ? HFSAD_OK : error_memory(err, e->scoring->most_rows * sizeof *scores, "the predictions");
    for (size_t leaf = 0; leaf < e->scoring->data->n_leaves && !status; leaf++)
        status = evaluation_add(e, leaf, scores, err);
    free(scores);
    return status ? status : evaluation_finish(e, err);
}

static hfsad_status keep_figures(hfsad_evaluation *to, evaluation *e, hfsad_error *err)
{
    char name[EVALUATION_NAME_SIZE];
    to->nodes = e->scoring->data->n_inner + e->scoring->data->n_leaves;
    to->median = e->median_loss;
    to->figures = e->nodes;
    e->nodes = NULL;
    to->names = alloc_zero(to->nodes, sizeof *to->names);
    for (size_t i = 0; to->names && i < to->nodes; i++) {
        evaluation_name(e, i, name, sizeof name);
        if (!(to->names[i] = strdup(name)))
            return error_memory(err, strlen(name), "the names of the nodes");
    }
    return to->names ? HFSAD_OK : error_memory(err, to->nodes * sizeof *to->names, "the names of the nodes");
}

hfsad_status hfsad_result_evaluate(const hfsad_result *r, hfsad_data *data, hfsad_with with, hfsad_evaluation **out,
                                   hfsad_error *err)
{
    scoring s;
    evaluation e = {0};
    hfsad_evaluation *made = alloc_zero(1, sizeof *made);
    *out = NULL;
    if (!made)
        return error_memory(err, sizeof *made, "an evaluation");
    hfsad_status status = match_rows(&s, r, data, with, NULL, err);
    if (!status)
        status = evaluation_create(&e, &s, NULL, err);
    if (!status)
        status = measure_all(&e, err);
    if (!status)
        status = keep_figures(made, &e, err);
    evaluation_free(&e);
    end(&s);
    if (status)
        hfsad_evaluation_free(made);
    else
        *out = made;
    return status;
}

void hfsad_evaluation_free(hfsad_evaluation *e)
{
    if (!e)
        return;
    for (size_t i = 0; e->names && i < e->nodes; i++)
        free(e->names[i]);
    free(e->names);
    free(e->figures);
    free(e);
}

size_t hfsad_evaluation_nodes(const hfsad_evaluation *e)
{
    return e->nodes;
}

const char *hfsad_evaluation_node_name(const hfsad_evaluation *e, size_t node)
{
    return e->names[node];
}

void hfsad_evaluation_figures(const hfsad_evaluation *e, size_t node, hfsad_row_figures *figures)
{
    const row_figures *f = &e->figures[node];
    const hfsad_row_figures all = {
        .size = figures->size,
        .rows = f->rows,
        .weight = f->weight,
        .loss = mean_loss(f),
        .total = f->total,
        .accuracy = accuracy_of(f),
        .coverage = coverage_of(f),
        .rmse = measure_of(&f->measures, MEASURE_rmse),
        .mae = measure_of(&f->measures, MEASURE_mae),
        .r2 = measure_of(&f->measures, MEASURE_r2),
        .auc = measure_of(&f->measures, MEASURE_auc),
        .f1 = measure_of(&f->measures, MEASURE_f1),
        .calibration = measure_of(&f->measures, MEASURE_calibration),
        .true_positive = measure_of(&f->measures, MEASURE_true_positive),
        .false_positive = measure_of(&f->measures, MEASURE_false_positive),
        .true_negative = measure_of(&f->measures, MEASURE_true_negative),
        .false_negative = measure_of(&f->measures, MEASURE_false_negative),
        .pinball = measure_of(&f->measures, MEASURE_pinball),
    };
    memcpy(figures, &all, figures->size < sizeof all ? figures->size : sizeof all);
}

double hfsad_evaluation_median(const hfsad_evaluation *e)
{
    return e->median;
}

hfsad_status hfsad_run_warm_start(hfsad_run *run, const hfsad_result *from, hfsad_error *err)
{
    return warm_start_from(run, from->model, from->name, err);
}
