/* How well the models of an output folder predict held-out rows: both result files, and the table that the program
 * prints. */
#include "base/alloc.h"
#include "base/error.h"
#include "out/model_evaluation.h"
#include "plan/choices.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TABLE, SUMMARY, FILES };
static const char *const NAMES[FILES] = {"evaluation.csv", "evaluation.json"};

static hfsad_status check_outputs(const hfsad_evaluate_settings *a, hfsad_error *err)
{
    hfsad_status status = folder_check(a->out, err);
    if (!status)
        status = folder_check_outside(a->out, a->data, err);
    for (int i = 0; i < FILES && !status; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", a->out, NAMES[i]);
        status = file_check_output(path, (const char *const[]){a->data, a->truth, a->groups}, 3, err);
    }
    return status;
}

/* *truth is NULL if no truth was given; the caller frees it in any case. */
static hfsad_status read_truth(const hfsad_evaluate_settings *a, size_t F, double **truth, hfsad_error *err)
{
    double size = 0;
    *truth = a->truth ? calloc(F, sizeof **truth) : NULL;
    if (!a->truth)
        return HFSAD_OK;
    if (!*truth)
        return error_memory(err, F * sizeof **truth, "the truth");
    const hfsad_status status = vector_read(*truth, F, a->truth, "truth", err);
    for (size_t m = 0; m < F; m++)
        size += (*truth)[m] * (*truth)[m];
    if (!status && !(size > 0 && isfinite(size)))
        return error_set(err, HFSAD_ERROR_INPUT,
                         "%.300s: the truth is %s, so the relative error is undefined; leave the truth out", a->truth,
                         size > 0 ? "too large" : "all zero");
    return status;
}

/* ---- the table ---- */

__attribute__((format(printf, 3, 4))) static void print_row(FILE *o, const char *label, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(o, "%-20s ", label);
    vfprintf(o, format, args);
    va_end(args);
    fputc('\n', o);
}

static const char *plural(size_t n)
{
    return n == 1 ? "" : "s";
}

/* Lists the worst nodes of [first, end), the worst first; returns their number. */
enum { WORST_SHOWN = 10 };
static size_t find_worst(const evaluation *e, size_t first, size_t end, size_t worst[WORST_SHOWN])
{
    size_t n = 0;
    for (size_t node = first; node < end; node++) {
        const double loss = mean_loss(&e->nodes[node]);
        size_t at = n < WORST_SHOWN ? n++ : WORST_SHOWN;
        while (at > 0 && loss > mean_loss(&e->nodes[worst[at - 1]])) {
            if (at < WORST_SHOWN)
                worst[at] = worst[at - 1];
            at--;
        }
        if (at < WORST_SHOWN)
            worst[at] = node;
    }
    return n;
}

static void print_share(FILE *o, double share)
{
    if (isnan(share))
        fprintf(o, "  %9s", "");
    else
        fprintf(o, "  %9.4f", share);
}

static void print_nodes(FILE *o, const evaluation *e, const char *kind, size_t first, size_t end)
{
    char heading[80], name[EVALUATION_NAME_SIZE];
    size_t worst[WORST_SHOWN];
    const size_t n = find_worst(e, first, end, worst);
    if (n < end - first)
        snprintf(heading, sizeof heading, "worst %zu of %zu %ss", n, end - first, kind);
    else
        snprintf(heading, sizeof heading, "%s%s", kind, plural(n));
    size_t width = strlen(heading);
    for (size_t i = 0; i < n; i++) {
        evaluation_name(e, worst[i], name, sizeof name);
        width = strlen(name) > width ? strlen(name) : width;
    }
    fprintf(o, "\n%-*s  %9s  %12s%s%s\n", (int)width, heading, "rows", "loss", e->labels ? "   accuracy" : "",
            e->levels ? "   coverage" : "");
    for (size_t i = 0; i < n; i++) {
        const row_figures *f = &e->nodes[worst[i]];
        evaluation_name(e, worst[i], name, sizeof name);
        fprintf(o, "%-*s  %9zu  %12.6g", (int)width, name, f->rows, mean_loss(f));
        if (e->labels)
            print_share(o, accuracy_of(f));
        if (e->levels)
            print_share(o, coverage_of(f));
        fputc('\n', o);
    }
}

static void print_groups(FILE *o, const evaluation *e)
{
    enum { SHOWN = 20 };
    size_t width = strlen("group");
    for (size_t i = 0; i < e->sets->count && i < SHOWN; i++)
        width = strlen(e->sets->labels[i]) > width ? strlen(e->sets->labels[i]) : width;
    fprintf(o, "\n%-*s  %9s  %9s  %12s%s%s%s\n", (int)width, "group", "clients", "rows", "loss",
            e->labels ? "   accuracy" : "", e->levels ? "   coverage" : "", e->truth ? "  relative error" : "");
    for (size_t i = 0; i < e->sets->count && i < SHOWN; i++) {
        const group_figures *g = &e->groups[i];
        if (g->clients == 0)
            continue;
        fprintf(o, "%-*s  %9zu  %9zu  %12.6g", (int)width, e->sets->labels[i], g->clients, g->rows.rows,
                mean_loss(&g->rows));
        if (e->labels)
            print_share(o, accuracy_of(&g->rows));
        if (e->levels)
            print_share(o, coverage_of(&g->rows));
        if (e->truth)
            fprintf(o, "  %14.6g", g->relative_error);
        fputc('\n', o);
    }
    if (e->sets->count > SHOWN)
        fputs("and others; evaluation.json has all\n", o);
}

static void print_loss(FILE *o, const model *m)
{
    char text[100];
    const hfsad_loss loss = loss_of(&m->loss, NULL);
    if (m->scores.K && !m->scores.labels)
        snprintf(text, sizeof text, ", %zu levels", m->scores.K);
    else if (m->classes)
        snprintf(text, sizeof text, ", %zu classes", m->classes);
    else
        loss_parameters_text(&loss, ", ", text, sizeof text);
    print_row(o, "loss", "%s%s%s", loss_names[loss.kind], text, m->n_overrides ? ", with overrides" : "");
}

/* Prints a ratio, or words instead of 0/0. */
static void print_ratio(FILE *o, const char *label, double ratio, const char *otherwise)
{
    if (isnan(ratio))
        print_row(o, label, "%s", otherwise);
    else
        print_row(o, label, "%.6g", ratio);
}

static void print_support(FILE *o, const evaluation *e)
{
    const support_figures cloud = evaluation_support(e, 0);
    print_row(o, "non-zero", "%zu of %zu in the cloud's model", cloud.nonzero, model_slopes(e->scoring->model));
    if (!e->truth)
        return;
    print_ratio(o, "recall", cloud.recall, "?");
    print_ratio(o, "precision", cloud.precision, "none: the cloud's model is all zero");
    print_ratio(o, "relative error", cloud.relative_error, "?");
}

enum { LABEL_SIZE = 40 };

/* The name that the table uses. */
static const char *name_class(const evaluation *e, size_t class, const char *otherwise, char name[LABEL_SIZE])
{
    slice label = {otherwise, strlen(otherwise)};
    (void)label_at(e->scoring->model->table.labels, class, &label);
    snprintf(name, LABEL_SIZE, "%.*s", (int)label.length, label.text);
    return name;
}

static void print_measures(FILE *o, const evaluation *e)
{
    const measure_sums *m = &e->nodes[0].measures;
    if (e->numbers) {
        print_row(o, "RMSE, MAE", "%.6g, %.6g", measure_of(m, MEASURE_rmse), measure_of(m, MEASURE_mae));
        if (e->levels)
            print_row(o, "pinball loss", "%.6g", measure_of(m, MEASURE_pinball));
        print_ratio(o, "R2", measure_of(m, MEASURE_r2), "none: all y are equal");
    }
    if (!e->labels)
        return;
    print_ratio(o, "AUC", measure_of(m, MEASURE_auc), "none: one class only");
    print_ratio(o, "F1", measure_of(m, MEASURE_f1), "none: no positive");
    char negative[LABEL_SIZE], positive[LABEL_SIZE];
    print_row(o, "confusion", "of %s: %.6g right, %.6g wrong; of %s: %.6g right, %.6g wrong",
              name_class(e, 1, "1", positive), measure_of(m, MEASURE_true_positive),
              measure_of(m, MEASURE_false_negative), name_class(e, 0, "-1", negative),
              measure_of(m, MEASURE_true_negative), measure_of(m, MEASURE_false_positive));
    if (!isnan(measure_of(m, MEASURE_calibration)))
        print_row(o, "calibration error", "%.6g", measure_of(m, MEASURE_calibration));
}

/* Prints a line for each class: its rows by the predicted class. */
static void print_confusion(FILE *o, const evaluation *e)
{
    enum { SHOWN = 20 };
    const size_t K = e->confusion ? e->scoring->model->classes : 0;
    char text[20 * SHOWN], label[LABEL_SIZE + 30], number[20], name[LABEL_SIZE];
    for (size_t k = 0; k < K && K <= SHOWN; k++) {
        size_t n = 0;
        for (size_t i = 0; i < K; i++)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%.6g", i ? " " : "", e->confusion[k * K + i]);
        snprintf(number, sizeof number, "class %zu", k);
        snprintf(label, sizeof label, "%s as 0, 1, ...", name_class(e, k, number, name));
        print_row(o, label, "%s", text);
    }
}

static void print_table(FILE *o, const evaluation *e)
{
    const scoring *s = e->scoring;
    const dataset *d = s->data;
    const row_figures *all = &e->nodes[0];
    char name[EVALUATION_NAME_SIZE];
    print_row(o, "model", "%s", s->folder);
    print_loss(o, s->model);
    print_row(o, "data", "%zu edge%s, %zu client%s, %zu row%s, %zu feature%s", d->n_inner - 1, plural(d->n_inner - 1),
              d->n_leaves, plural(d->n_leaves), d->n_rows, plural(d->n_rows), d->rows.F, plural(d->rows.F));
    print_row(o, "predicted by", "own model: %zu client%s, an edge's: %zu, the cloud's: %zu", e->used_own,
              plural(e->used_own), e->used_edge, e->used_cloud);
    print_row(o, "mean loss", "%.8g", mean_loss(all));
    print_row(o, "total loss", "%.8g", all->total);
    if (e->worst_edge)
        print_row(o, "worst edge", "%.8g  %s", mean_loss(&e->nodes[e->worst_edge]), d->inner[e->worst_edge].name);
    evaluation_name(e, d->n_inner + e->worst_client, name, sizeof name);
    print_row(o, "worst client", "%.8g  %s", mean_loss(&e->nodes[d->n_inner + e->worst_client]), name);
    print_row(o, "median client", "%.8g", e->median_loss);
    if (e->labels || e->confusion)
        print_row(o, "accuracy", "%.6g", accuracy_of(all));
    print_confusion(o, e);
    if (e->levels)
        print_row(o, "coverage", "%.6g, tau %.6g", coverage_of(all), level_of(all));
    for (size_t k = 0; k < evaluation_levels(e); k++) {
        const level_sums *sums = &e->levels_by_node[k];
        snprintf(name, sizeof name, "tau %g", s->model->scores.levels[k]);
        print_row(o, name, "pinball loss %.6g, coverage %.6g", sums->pinball / all->weight,
                  sums->covered / all->weight);
    }
    print_measures(o, e);
    print_support(o, e);
    if (e->sets)
        print_groups(o, e);
    if (d->n_inner > 1)
        print_nodes(o, e, "edge", 1, d->n_inner);
    print_nodes(o, e, "client", d->n_inner, d->n_inner + d->n_leaves);
}

/* ---- all of evaluate ---- */

static bool goes_on(const hfsad_evaluate_settings *a, size_t done, size_t clients)
{
    return !a->proceed || a->proceed(a->context, done, clients);
}

static hfsad_status measure_all(evaluation *e, const hfsad_evaluate_settings *a, hfsad_error *err)
{
    const dataset *d = e->scoring->data;
    double *scores = alloc_zero(e->scoring->most_rows, sizeof *scores);
    if (!scores)
        return error_memory(err, e->scoring->most_rows * sizeof *scores, "the predictions");
    hfsad_status status = HFSAD_OK;
    for (size_t leaf = 0; leaf < d->n_leaves && !status; leaf++) {
        status = evaluation_add(e, leaf, scores, err);
        if (!status && !goes_on(a, leaf + 1, d->n_leaves))
            status = error_set(err, HFSAD_ERROR_INPUT, "interrupted; nothing was written");
    }
    free(scores);
    return status ? status : evaluation_finish(e, err);
}

/* Writes both files or none; none if the caller has cancelled. */
static hfsad_status write_evaluation(const evaluation *e, const hfsad_evaluate_settings *a, hfsad_error *err)
{
    file_batch files = {0};
    const size_t clients = e->scoring->data->n_leaves;
    whole_file *open[FILES] = {0};
    hfsad_status status = file_batch_begin(&files, a->out, err);
    for (int i = 0; i < FILES && !status; i++) {
        open[i] = file_batch_add(&files, NAMES[i], err);
        status = open[i] ? HFSAD_OK : err->status;
    }
    if (!status) {
        evaluation_table(open[TABLE], e);
        status = evaluation_summary(open[SUMMARY], e, (model_choice)a->with, a->truth, err);
    }
    if (!status && !goes_on(a, clients, clients))
        status = error_set(err, HFSAD_ERROR_INPUT, "interrupted; nothing was written");
    if (!status)
        status = file_batch_commit(&files, err);
    file_batch_drop(&files);
    return status;
}

static hfsad_status conclude(const evaluation *e, const hfsad_evaluate_settings *a, char **text, hfsad_error *err)
{
    size_t size;
    const hfsad_status status = a->out ? write_evaluation(e, a, err) : HFSAD_OK;
    FILE *o = status ? NULL : open_memstream(text, &size);
    if (o)
        print_table(o, e);
    return status || (o && fclose(o) == 0) ? status : error_memory(err, 0, "the table");
}

hfsad_status hfsad_evaluate_folder(const hfsad_evaluate_settings *settings, char **text, hfsad_error *err)
{
    hfsad_evaluate_settings given = {0}, *a = &given;
    memcpy(a, settings, settings->size < sizeof given ? settings->size : sizeof given);
    scoring s;
    evaluation e = {0};
    double *truth;
    client_groups groups = {0};
    hfsad_status status = a->out ? check_outputs(a, err) : HFSAD_OK;
    *text = NULL;
    if (status || (status = scoring_create(&s, a->model, a->data, (model_choice)a->with, err)))
        return status;
    status = read_truth(a, s.model->F, &truth, err);
    if (!status && a->groups)
        status = client_groups_read(&groups, a->groups, err);
    if (!status)
        status = evaluation_create(&e, &s, truth, err);
    if (!status)
        status = measure_all(&e, a, err);
    if (!status && (a->groups || s.model->groups.count))
        status = evaluation_split(&e, a->groups ? &groups : &s.model->groups, a->groups, err);
    if (!status)
        status = conclude(&e, a, text, err);
    evaluation_free(&e);
    client_groups_free(&groups);
    free(truth);
    scoring_free(&s);
    return status;
}
