/* hfsad evaluate: how well trained models do on held-out rows. */
#include "base/error.h"
#include "cli.h"
#include "out/model_evaluation.h"
#include "plan/choices.h"
#include "progress.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *model, *data, *truth, *groups, *out;
    int with;
    bool quiet;
} evaluate_arguments;

enum { TABLE, SUMMARY, FILES };
static const char *const NAMES[FILES] = {"evaluation.csv", "evaluation.json"};

static int parse_arguments(evaluate_arguments *a, int argc, char **argv)
{
    static const char *const choices[] = {MODEL_CHOICES, NULL};
    const cli_option options[] = {
        {"model", CLI_NEEDED, &a->model, 0, 0, NULL, "DIR", "output folder of `hfsad run`; required"},
        {"data", CLI_NEEDED, &a->data, 0, 0, NULL, "FILE", "held-out rows, in the format of a spec's data; required"},
        {"with", CLI_CHOICE, &a->with, 0, 0, choices, "WHOSE",
         "model to use for a client: client, edge, cloud or auto\n"
         "(the default): its own if there is one, otherwise that\n"
         "of its nearest ancestor"},
        {"truth", CLI_TEXT, &a->truth, 0, 0, NULL, "FILE",
         "true model, one number per line and feature; adds\n"
         "recall, precision and relative error"},
        {"groups", CLI_TEXT, &a->groups, 0, 0, NULL, "FILE",
         "CSV client,group: figures for these groups; by default\n"
         "for the groups that the run found"},
        {"out", CLI_TEXT, &a->out, 0, 0, NULL, "DIR", "folder for evaluation.csv and evaluation.json"},
        {"quiet", CLI_FLAG, &a->quiet, 0, 0, NULL, NULL, "no progress, no table"},
    };
    const cli_syntax syntax = {
        .usage = "evaluate --model DIR --data FILE [--with auto|client|edge|cloud]\n"
                 "               [--truth FILE] [--groups FILE] [--out DIR] [--quiet]",
        .about = "Measures the models of a run on rows that were not used in training, with the\n"
                 "loss of the run (including overrides, without the box).",
        .options = options,
        .n_options = sizeof options / sizeof *options,
        .after = "evaluation.csv has one row per node of the data, with these columns: rows; weight\n"
                 "(sum of their weights); loss (weighted mean over the rows below the node); total\n"
                 "(sum of the clients' losses, each a sum or mean by loss.scale of the run);\n"
                 "accuracy (losses of labels); coverage (quantile losses: share of rows with y at or\n"
                 "below the prediction, to compare with tau); model (the model used for a client;\n"
                 "an edge's own); nonzero (its non-zero features); recall and precision of these\n"
                 "and relative error against the truth. A field without a value is empty.\n"
                 "evaluation.json has the overall figures: mean and total, worst client and edge,\n"
                 "median client, the cloud's model, the groups. The relative error of a group is the\n"
                 "mean over the models of its clients.\n\n"
                 "Exit status: 0 done, 1 the files could not be written, 2 the model, data or\n"
                 "arguments are wrong, 129 after SIGHUP, 130 after Ctrl-C, 143 after SIGTERM.\n"
                 "If the status is not 0, --out DIR is unchanged.",
    };
    return cli_parse(&syntax, argc, argv, NULL);
}

static hfsad_status check_outputs(const evaluate_arguments *a, hfsad_error *err)
{
    hfsad_status status = folder_check(a->out, err);
    if (!status)
        status = folder_check_outside(a->out, a->data, err);
    for (int i = 0; i < FILES && !status; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", a->out, NAMES[i]);
        status = scoring_check_output(path, (const char *const[]){a->data, a->truth, a->groups}, 3, err);
    }
    return status;
}

/* NULL where none was given; to be freed in any case. */
static hfsad_status read_truth(const evaluate_arguments *a, size_t F, double **truth, hfsad_error *err)
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
                         "%.300s: the truth is %s, so the relative error is undefined; omit --truth", a->truth,
                         size > 0 ? "too large" : "all zero");
    return status;
}

/* ---- the table ---- */

__attribute__((format(printf, 2, 3))) static void print_row(const char *label, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    printf("%-20s ", label);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
}

static const char *plural(size_t n)
{
    return n == 1 ? "" : "s";
}

/* The worst nodes of [first, end), the worst first; returns how many. */
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

static void print_share(double share)
{
    if (isnan(share))
        printf("  %9s", "");
    else
        printf("  %9.4f", share);
}

static void print_nodes(const evaluation *e, const char *kind, size_t first, size_t end)
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
    printf("\n%-*s  %9s  %12s%s%s\n", (int)width, heading, "rows", "loss", e->labels ? "   accuracy" : "",
           e->levels ? "   coverage" : "");
    for (size_t i = 0; i < n; i++) {
        const row_figures *f = &e->nodes[worst[i]];
        evaluation_name(e, worst[i], name, sizeof name);
        printf("%-*s  %9zu  %12.6g", (int)width, name, f->rows, mean_loss(f));
        if (e->labels)
            print_share(accuracy_of(f));
        if (e->levels)
            print_share(coverage_of(f));
        putchar('\n');
    }
}

static void print_groups(const evaluation *e)
{
    enum { SHOWN = 20 };
    size_t width = strlen("group");
    for (size_t i = 0; i < e->sets->count && i < SHOWN; i++)
        width = strlen(e->sets->labels[i]) > width ? strlen(e->sets->labels[i]) : width;
    printf("\n%-*s  %9s  %9s  %12s%s%s%s\n", (int)width, "group", "clients", "rows", "loss",
           e->labels ? "   accuracy" : "", e->levels ? "   coverage" : "", e->truth ? "  relative error" : "");
    for (size_t i = 0; i < e->sets->count && i < SHOWN; i++) {
        const group_figures *g = &e->groups[i];
        if (g->clients == 0)
            continue;
        printf("%-*s  %9zu  %9zu  %12.6g", (int)width, e->sets->labels[i], g->clients, g->rows.rows,
               mean_loss(&g->rows));
        if (e->labels)
            print_share(accuracy_of(&g->rows));
        if (e->levels)
            print_share(coverage_of(&g->rows));
        if (e->truth)
            printf("  %14.6g", g->relative_error);
        putchar('\n');
    }
    if (e->sets->count > SHOWN)
        puts("and others; --out DIR writes all to evaluation.json");
}

static void print_loss(const model *m)
{
    char text[100];
    const hfsad_loss loss = loss_of(&m->loss, NULL);
    if (m->scores.K && !m->scores.labels)
        snprintf(text, sizeof text, ", %zu levels", m->scores.K);
    else if (m->classes)
        snprintf(text, sizeof text, ", %zu classes", m->classes);
    else
        loss_parameters_text(&loss, ", ", text, sizeof text);
    print_row("loss", "%s%s%s", loss_names[loss.kind], text, m->n_overrides ? ", with overrides" : "");
}

/* 0/0 is said in words. */
static void print_ratio(const char *label, double ratio, const char *otherwise)
{
    if (isnan(ratio))
        print_row(label, "%s", otherwise);
    else
        print_row(label, "%.6g", ratio);
}

static void print_support(const evaluation *e)
{
    const support_figures cloud = evaluation_support(e, 0);
    print_row("non-zero", "%zu of %zu in the cloud's model", cloud.nonzero, model_slopes(e->scoring->model));
    if (!e->truth)
        return;
    print_ratio("recall", cloud.recall, "?");
    print_ratio("precision", cloud.precision, "none: the cloud's model is all zero");
    print_ratio("relative error", cloud.relative_error, "?");
}

enum { LABEL_SIZE = 40 };

/* As the table calls it. */
static const char *name_class(const evaluation *e, size_t class, const char *otherwise, char name[LABEL_SIZE])
{
    slice label = {otherwise, strlen(otherwise)};
    (void)label_at(e->scoring->model->table.labels, class, &label);
    snprintf(name, LABEL_SIZE, "%.*s", (int)label.length, label.text);
    return name;
}

static void print_measures(const evaluation *e)
{
    const measure_sums *m = &e->nodes[0].measures;
    if (e->numbers) {
        print_row("RMSE, MAE", "%.6g, %.6g", measure_of(m, MEASURE_rmse), measure_of(m, MEASURE_mae));
        if (e->levels)
            print_row("pinball loss", "%.6g", measure_of(m, MEASURE_pinball));
        print_ratio("R2", measure_of(m, MEASURE_r2), "none: all y are equal");
    }
    if (!e->labels)
        return;
    print_ratio("AUC", measure_of(m, MEASURE_auc), "none: one class only");
    print_ratio("F1", measure_of(m, MEASURE_f1), "none: no positive");
    char negative[LABEL_SIZE], positive[LABEL_SIZE];
    print_row("confusion", "of %s: %.6g right, %.6g wrong; of %s: %.6g right, %.6g wrong",
              name_class(e, 1, "1", positive), measure_of(m, MEASURE_true_positive),
              measure_of(m, MEASURE_false_negative), name_class(e, 0, "-1", negative),
              measure_of(m, MEASURE_true_negative), measure_of(m, MEASURE_false_positive));
    if (!isnan(measure_of(m, MEASURE_calibration)))
        print_row("calibration error", "%.6g", measure_of(m, MEASURE_calibration));
}

/* A line for each class: its rows by the class that was predicted. */
static void print_confusion(const evaluation *e)
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
        print_row(label, "%s", text);
    }
}

static void print_table(const evaluation *e)
{
    const scoring *s = e->scoring;
    const dataset *d = s->data;
    const row_figures *all = &e->nodes[0];
    char name[EVALUATION_NAME_SIZE];
    print_row("model", "%s", s->folder);
    print_loss(s->model);
    print_row("data", "%zu edge%s, %zu client%s, %zu row%s, %zu feature%s", d->n_inner - 1, plural(d->n_inner - 1),
              d->n_leaves, plural(d->n_leaves), d->n_rows, plural(d->n_rows), d->rows.F, plural(d->rows.F));
    print_row("predicted by", "own model: %zu client%s, an edge's: %zu, the cloud's: %zu", e->used_own,
              plural(e->used_own), e->used_edge, e->used_cloud);
    print_row("mean loss", "%.8g", mean_loss(all));
    print_row("total loss", "%.8g", all->total);
    if (e->worst_edge)
        print_row("worst edge", "%.8g  %s", mean_loss(&e->nodes[e->worst_edge]), d->inner[e->worst_edge].name);
    evaluation_name(e, d->n_inner + e->worst_client, name, sizeof name);
    print_row("worst client", "%.8g  %s", mean_loss(&e->nodes[d->n_inner + e->worst_client]), name);
    print_row("median client", "%.8g", e->median_loss);
    if (e->labels || e->confusion)
        print_row("accuracy", "%.6g", accuracy_of(all));
    print_confusion(e);
    if (e->levels)
        print_row("coverage", "%.6g, tau %.6g", coverage_of(all), level_of(all));
    for (size_t k = 0; k < evaluation_levels(e); k++) {
        const level_sums *sums = &e->levels_by_node[k];
        snprintf(name, sizeof name, "tau %g", s->model->scores.levels[k]);
        print_row(name, "pinball loss %.6g, coverage %.6g", sums->pinball / all->weight, sums->covered / all->weight);
    }
    print_measures(e);
    print_support(e);
    if (e->sets)
        print_groups(e);
    if (d->n_inner > 1)
        print_nodes(e, "edge", 1, d->n_inner);
    print_nodes(e, "client", d->n_inner, d->n_inner + d->n_leaves);
}

/* ---- the command ---- */

static hfsad_status measure_all(evaluation *e, bool quiet, hfsad_error *err)
{
    const dataset *d = e->scoring->data;
    double *scores = calloc(e->scoring->most_rows, sizeof *scores);
    if (!scores)
        return error_memory(err, e->scoring->most_rows * sizeof *scores, "the predictions");
    progress p;
    hfsad_status status = HFSAD_OK;
    progress_start(&p, "client", 0, d->n_leaves, quiet);
    for (size_t leaf = 0; leaf < d->n_leaves && !status; leaf++) {
        status = evaluation_add(e, leaf, scores, err);
        progress_draw(&p, leaf + 1, "");
    }
    progress_end(&p);
    free(scores);
    return status ? status : evaluation_finish(e, err);
}

/* Both files or none; none too where interrupted. */
static int write_files(const evaluation *e, const evaluate_arguments *a)
{
    hfsad_error err = {0};
    file_batch files = {0};
    cli_catch_interrupts(); /* before this the default action does no harm; from here on it would leave temporaries */
    hfsad_status status = file_batch_begin(&files, a->out, &err);
    whole_file *open[FILES] = {0};
    for (int i = 0; i < FILES && !status; i++) {
        open[i] = file_batch_add(&files, NAMES[i], &err);
        status = open[i] ? HFSAD_OK : err.status;
    }
    if (!status) {
        evaluation_table(open[TABLE], e);
        status = evaluation_summary(open[SUMMARY], e, (model_choice)a->with, a->truth, &err);
    }
    const int interrupted = cli_interrupted();
    if (!status && !interrupted)
        status = file_batch_commit(&files, &err);
    file_batch_drop(&files);
    if (status)
        return cli_fail(&err);
    if (!interrupted)
        return CLI_GO;
    fputs("hfsad: interrupted; nothing was written\n", stderr);
    return 128 + interrupted;
}

static int conclude(const evaluation *e, const evaluate_arguments *a)
{
    const int status = a->out ? write_files(e, a) : CLI_GO;
    if (status != CLI_GO)
        return status;
    if (!a->quiet)
        print_table(e);
    if (!a->quiet && a->out)
        printf("\nwritten to %s\n", a->out);
    return cli_finish_stdout(CLI_DONE);
}

static int carry_out(const evaluate_arguments *a)
{
    hfsad_error err = {0};
    scoring s;
    evaluation e = {0};
    double *truth;
    client_groups groups = {0};
    if ((a->out && check_outputs(a, &err)) || scoring_create(&s, a->model, a->data, (model_choice)a->with, &err))
        return cli_fail(&err);
    hfsad_status status = read_truth(a, s.model->F, &truth, &err);
    if (!status && a->groups)
        status = client_groups_read(&groups, a->groups, &err);
    if (!status)
        status = evaluation_create(&e, &s, truth, &err);
    if (!status)
        status = measure_all(&e, a->quiet, &err);
    if (!status && (a->groups || s.model->groups.count))
        status = evaluation_split(&e, a->groups ? &groups : &s.model->groups, a->groups, &err);
    const int exit_status = status ? cli_fail(&err) : conclude(&e, a);
    evaluation_free(&e);
    client_groups_free(&groups);
    free(truth);
    scoring_free(&s);
    return exit_status;
}

int cmd_evaluate(int argc, char **argv)
{
    evaluate_arguments a = {.with = WITH_AUTO};
    const int status = parse_arguments(&a, argc, argv);
    return status == CLI_GO ? carry_out(&a) : status;
}
