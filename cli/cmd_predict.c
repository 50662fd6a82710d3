/* hfsad predict: what trained models say about rows, as CSV. */
#include "base/batch.h"
#include "base/error.h"
#include "base/format_number.h"
#include "cli.h"
#include "out/model_scoring.h"
#include "progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    NAME_SIZE = (HFSAD_TIERS_MAX + 1) * 256, /* of a node, with its path */
    ROWS_AT_A_TIME = 4096,                   /* between two looks at clock and interrupts */
};

typedef struct {
    const char *model, *data, *out;
    int with;
    bool quiet;
} predict_arguments;

static int parse_arguments(predict_arguments *a, int argc, char **argv)
{
    static const char *const choices[] = {MODEL_CHOICES, NULL};
    const cli_option options[] = {
        {"model", CLI_NEEDED, &a->model, 0, 0, NULL, "DIR", "output folder of `hfsad run`; required"},
        {"data", CLI_NEEDED, &a->data, 0, 0, NULL, "FILE",
         "rows to predict, in the format of a spec's data;\n"
         "required"},
        {"with", CLI_CHOICE, &a->with, 0, 0, choices, "WHOSE",
         "model to use for a client: client, edge, cloud or auto\n"
         "(the default): its own if there is one, otherwise that\n"
         "of its nearest ancestor"},
        {"out", CLI_TEXT, &a->out, 0, 0, NULL, "FILE",
         "file for the predictions, replaced as a whole; by\n"
         "default standard output"},
        {"quiet", CLI_FLAG, &a->quiet, 0, 0, NULL, NULL, "no progress"},
    };
    const cli_syntax syntax = {
        .usage = "predict --model DIR --data FILE [--with auto|client|edge|cloud]\n"
                 "              [--out FILE] [--quiet]",
        .about = "Predicts y of every row with the models of a run.",
        .options = options,
        .n_options = sizeof options / sizeof *options,
        .after = "The CSV has the columns edge, client, row (counted from 1 within the client),\n"
                 "prediction, label (losses of labels), node (the node whose model was used) and\n"
                 "y (if the data has it). The rows of a client keep the order of the data.\n\n"
                 "A prediction is <x,w>, plus the intercept if the model has one; its square for\n"
                 "phase-retrieval, the mean count exp(<x,w>) for poisson, the probability of the\n"
                 "label 1 for logistic, the margin for hinge. The loss is that of the run, with\n"
                 "its overrides.\n\n"
                 "Exit status: 0 done, 1 the file could not be written, 2 the model, data or\n"
                 "arguments are wrong, 129 after SIGHUP, 130 after Ctrl-C, 143 after SIGTERM.\n"
                 "If the status is not 0, --out FILE is unchanged.",
    };
    return cli_parse(&syntax, argc, argv, NULL);
}

/* Folder and name of a path; to be freed. NULL: no memory. */
static char *folder_of(const char *path, const char **name)
{
    const char *slash = strrchr(path, '/');
    *name = slash ? slash + 1 : path;
    if (!slash)
        return strdup(".");
    return strndup(path, slash == path ? 1 : (size_t)(slash - path));
}

/* What stands at --out must be a file that may be replaced, and none of those that are read. */
static hfsad_status check_output(const predict_arguments *a, hfsad_error *err)
{
    struct stat info;
    const char *name;
    char *folder = folder_of(a->out, &name), table[4096], summary[4096];
    if (!folder)
        return error_memory(err, strlen(a->out), "a file name");
    hfsad_status status = folder_check(folder, err);
    free(folder);
    if (!status)
        status = folder_check_outside(a->out, a->data, err);
    if (status)
        return status;
    if (!*name || (stat(a->out, &info) == 0 && !S_ISREG(info.st_mode)))
        return error_set(err, HFSAD_ERROR_INPUT,
                         "--out %.300s is not a regular file; name another file, or omit --out for standard output",
                         a->out);
    snprintf(table, sizeof table, "%s/model.csv", a->model);
    snprintf(summary, sizeof summary, "%s/summary.json", a->model);
    return scoring_check_output(a->out, (const char *const[]){a->data, table, summary}, 3, err);
}

/* All of them before the first is written, so that one which is not finite leaves nothing behind. */
static double *score_all(const scoring *s, bool *labels, hfsad_error *err)
{
    const dataset *d = s->data;
    double *scores = calloc(d->n_rows, sizeof *scores);
    if (!scores) {
        error_memory(err, d->n_rows * sizeof *scores, "the predictions");
        return NULL;
    }
    for (size_t leaf = 0; leaf < d->n_leaves; leaf++) {
        const hfsad_loss_kind kind = scoring_law(s, leaf).loss.kind;
        *labels |= loss_kinds[kind]->labels && !s->model->classes;
        *labels |= s->model->classes && s->model->table.labels;
        if (scoring_scores(s, leaf, kind, scores + d->rows.first[leaf], err)) {
            free(scores);
            return NULL;
        }
    }
    return scores;
}

typedef struct {
    const scoring *scoring;
    const double *scores;
    whole_file *file; /* NULL: standard output */
    bool labels;      /* the column is there */
    size_t done;      /* rows */
    size_t leaf;      /* of the last row; line has `head` bytes that its rows begin with */
    size_t head;
    hfsad_loss_kind kind;
    progress progress;
    char line[3 * NAME_SIZE + (4 + SOFTMAX_CLASSES) * NUMBER_SIZE + 2 * LEVEL_BYTES];
} writer;

static void put(writer *w, const char *text, size_t length)
{
    if (w->file)
        whole_file_put(w->file, text, length);
    else
        fwrite(text, 1, length, stdout);
}

/* Whether to go on. */
static bool look_around(writer *w)
{
    progress_draw(&w->progress, w->done, "");
    return !cli_interrupted() && !ferror(w->file ? w->file->stream : stdout);
}

/* The label of a class as the table writes it, otherwise its number. */
static char *put_label(const writer *w, char *at, size_t class, double number)
{
    slice label;
    if (!label_at(w->scoring->model->table.labels, class, &label))
        return at + number_write(at, number);
    memcpy(at, label.text, label.length);
    return at + label.length;
}

/* y as the table has it; its reader has put the places of labels. */
static char *put_y(const writer *w, char *at, double y)
{
    const char *labels = w->scoring->model->table.labels;
    const bool placed = labels && !labels_are_plain(labels);
    return placed ? put_label(w, at, (size_t)y, y) : at + number_write(at, y);
}

/* Names hold no comma and no quote: the data's reader has seen to it, and a model's name is one of the data's. */
static void write_row(writer *w, size_t leaf, size_t r)
{
    const scoring *s = w->scoring;
    const dataset *d = s->data;
    if (leaf != w->leaf) { /* what the rows of a client share */
        const uint32_t parent = dataset_parent(d, leaf);
        w->leaf = leaf;
        w->kind = scoring_law(s, leaf).loss.kind;
        w->head = (size_t)snprintf(w->line, 2 * (size_t)NAME_SIZE, "%s,%s,", parent ? d->inner[parent].name : "",
                                   d->names + d->leaf_name[leaf]);
    }
    char *at = w->line + w->head;
    at += number_write_whole(at, r - d->rows.first[leaf] + 1);
    *at++ = ',';
    at += number_write(at, score_prediction(w->kind, w->scores[r]));
    const size_t first = d->rows.first[leaf], classes = s->model->classes;
    double p[SOFTMAX_CLASSES];
    if (classes) {
        const client_rows rows = dataset_rows(d, leaf);
        (void)scoring_class(s, leaf, &rows, r - first, 0, p);
    }
    for (size_t k = 0; k < classes; k++) {
        *at++ = ',';
        at += number_write(at, p[k]);
    }
    if (w->labels)
        *at++ = ',';
    if (w->labels && classes)
        at = put_label(w, at, (size_t)w->scores[r], w->scores[r]);
    else if (w->labels && loss_kinds[w->kind]->labels)
        at = put_label(w, at, w->scores[r] >= 0, score_label(w->scores[r]));
    *at++ = ',';
    at = stpcpy(at, model_name(s->model, s->node[leaf]));
    if (scoring_has_y(s)) {
        *at++ = ',';
        at = put_y(w, at, d->rows.y[r]);
    }
    *at++ = '\n';
    put(w, w->line, (size_t)(at - w->line));
}

/* The leaf whose row it is, by bisection; guess: often it. */
static size_t row_leaf(const dataset *d, size_t guess, size_t r)
{
    const size_t *first = d->rows.first;
    if (guess < d->n_leaves && first[guess] <= r && r < first[guess + 1])
        return guess;
    size_t low = 0, high = d->n_leaves;
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        *(first[middle] <= r ? &low : &high) = middle;
    }
    return low;
}

/* The column of a class's probability or score, or of a level. */
static size_t put_score_name(const writer *w, size_t k, char *text, size_t size)
{
    const score_losses *s = &w->scoring->model->scores;
    if (scoring_has_levels(w->scoring))
        return (size_t)snprintf(text, size, ",q%.15g", s->levels[k]);
    return (size_t)snprintf(text, size, s->K ? ",score%zu" : ",p%zu", k);
}

/* false: interrupted, or it cannot be written. */
static bool write_all(writer *w, bool quiet)
{
    const dataset *d = w->scoring->data;
    bool on = true;
    size_t head = (size_t)snprintf(w->line, sizeof w->line, "edge,client,row,prediction");
    for (size_t k = 0; k < w->scoring->model->classes; k++)
        head += put_score_name(w, k, w->line + head, sizeof w->line - head);
    head += (size_t)snprintf(w->line + head, sizeof w->line - head, "%s,node%s\n", w->labels ? ",label" : "",
                             scoring_has_y(w->scoring) ? ",y" : "");
    put(w, w->line, head);
    progress_start(&w->progress, "row", 0, d->n_rows, quiet);
    w->leaf = SIZE_MAX;
    for (size_t i = 0; i < d->n_rows && on; i++) { /* in the order of the input */
        const size_t r = d->order ? d->order[i] : i;
        write_row(w, row_leaf(d, w->leaf, r), r);
        on = ++w->done % ROWS_AT_A_TIME != 0 || look_around(w);
    }
    progress_end(&w->progress);
    return on;
}

static int write_file(writer *w, const predict_arguments *a)
{
    hfsad_error err = {0};
    file_batch files = {0};
    const char *name;
    char *folder = folder_of(a->out, &name);
    hfsad_status status = folder ? HFSAD_OK : error_memory(&err, strlen(a->out), "a file name");
    bool whole = false;
    cli_catch_interrupts(); /* before this the default action does no harm; from here on it would leave a temporary */
    if (!status)
        status = file_batch_begin(&files, folder, &err);
    w->file = status ? NULL : file_batch_add(&files, name, &err);
    if (w->file) {
        whole = write_all(w, a->quiet) || !cli_interrupted();
        if (whole)
            status = file_batch_commit(&files, &err);
    }
    file_batch_drop(&files);
    free(folder);
    if (status || !w->file)
        return cli_fail(&err);
    if (whole)
        return CLI_DONE;
    fputs("hfsad: interrupted; nothing was written\n", stderr);
    return 128 + cli_interrupted();
}

static int carry_out(const predict_arguments *a)
{
    hfsad_error err = {0};
    scoring s;
    writer w = {0};
    if ((a->out && check_output(a, &err)) || scoring_create(&s, a->model, a->data, (model_choice)a->with, &err))
        return cli_fail(&err);
    int status;
    double *scores = score_all(&s, &w.labels, &err);
    w.scoring = &s;
    w.scores = scores;
    if (!scores) {
        status = cli_fail(&err);
    } else if (a->out) {
        status = write_file(&w, a);
    } else {
        write_all(&w, a->quiet);
        status = cli_finish_stdout(CLI_DONE);
    }
    free(scores);
    scoring_free(&s);
    return status;
}

int cmd_predict(int argc, char **argv)
{
    predict_arguments a = {.with = WITH_AUTO};
    const int status = parse_arguments(&a, argc, argv);
    return status == CLI_GO ? carry_out(&a) : status;
}
