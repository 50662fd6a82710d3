/* Writes the predictions for all rows of a file as CSV. */
#include "base/error.h"
#include "base/format_number.h"
#include "out/model_scoring.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_SIZE = (HFSAD_TIERS_MAX + 1) * 256 }; /* longest name of a node with its path */

/* Predicts all rows before the first is written, so that a prediction that is not finite leaves no output behind. */
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
    hfsad_put *put;
    void *context;
    bool stopped; /* the caller has cancelled */
    bool labels;  /* the output has a column of labels */
    size_t done;  /* rows written */
    size_t leaf;  /* leaf of the last row; `line` begins with `head` bytes that all its rows share */
    size_t head;
    hfsad_loss_kind kind;
    char line[3 * NAME_SIZE + (4 + SOFTMAX_CLASSES) * NUMBER_SIZE + 2 * (LEVEL_BYTES + 2)];
} writer;

static void append_text(writer *w, const char *text, size_t length)
{
    w->stopped = w->stopped || !w->put(w->context, text, length, w->done, w->scoring->data->n_rows);
}

/* The label of a class as in the table, otherwise its number. */
static char *put_label(const writer *w, char *at, size_t class, double number)
{
    slice label;
    if (!label_at(w->scoring->model->table.labels, class, &label))
        return at + number_write(at, number);
    const bool quotes = memchr(label.text, '"', label.length) != NULL; /* quotes are doubled, as in the table */
    if (quotes)
        *at++ = '"';
    memcpy(at, label.text, label.length);
    at += label.length;
    if (quotes)
        *at++ = '"';
    return at;
}

/* y as in the table; the reader has replaced labels by their places. */
static char *put_y(const writer *w, char *at, double y)
{
    const char *labels = w->scoring->model->table.labels;
    const bool placed = labels && !labels_are_plain(labels);
    return placed ? put_label(w, at, (size_t)y, y) : at + number_write(at, y);
}

/* Names hold no comma and no quote: the reader of the data refuses them, and every name of a model is a name of its
 * data. */
static void write_row(writer *w, size_t leaf, size_t r)
{
    const scoring *s = w->scoring;
    const dataset *d = s->data;
    if (leaf != w->leaf) { /* the part of the line that all rows of a client share */
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
    append_text(w, w->line, (size_t)(at - w->line));
}

/* Finds the leaf of a row by bisection; guess: the likely leaf. */
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

/* Writes a column: the probability or score of a class, or the prediction of a level. */
static size_t put_score_name(const writer *w, size_t k, char *text, size_t size)
{
    const score_losses *s = &w->scoring->model->scores;
    if (scoring_has_levels(w->scoring))
        return (size_t)snprintf(text, size, ",q%.15g", s->levels[k]);
    return (size_t)snprintf(text, size, s->K ? ",score%zu" : ",p%zu", k);
}

static void write_all(writer *w)
{
    const dataset *d = w->scoring->data;
    size_t head = (size_t)snprintf(w->line, sizeof w->line, "edge,client,row,prediction");
    for (size_t k = 0; k < w->scoring->model->classes; k++)
        head += put_score_name(w, k, w->line + head, sizeof w->line - head);
    head += (size_t)snprintf(w->line + head, sizeof w->line - head, "%s,node%s\n", w->labels ? ",label" : "",
                             scoring_has_y(w->scoring) ? ",y" : "");
    append_text(w, w->line, head);
    w->leaf = SIZE_MAX;
    for (size_t i = 0; i < d->n_rows && !w->stopped; i++) { /* in the order of the input */
        const size_t r = d->order ? d->order[i] : i;
        write_row(w, row_leaf(d, w->leaf, r), r);
        w->done++;
    }
}

hfsad_status hfsad_predict_table(const char *folder, const char *data, hfsad_with with, hfsad_put *put, void *context,
                                 hfsad_error *err)
{
    scoring s;
    writer w = {.put = put, .context = context};
    hfsad_status status = scoring_create(&s, folder, data, (model_choice)with, err);
    if (status)
        return status;
    double *scores = score_all(&s, &w.labels, err);
    w.scoring = &s;
    w.scores = scores;
    if (scores)
        write_all(&w);
    else
        status = err->status;
    free(scores);
    scoring_free(&s);
    return status;
}
