#include "data/features.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/fixed.h"
#include "data/rows.h"
#include "data/shares.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static size_t scores_of(const dataset *d)
{
    return d->classes ? d->classes : 1;
}

size_t features_weights(const dataset *d)
{
    return features_count(d) * scores_of(d);
}

size_t features_model(const dataset *d, double constant)
{
    return (features_count(d) + (constant != 0)) * scores_of(d);
}

size_t features_count(const dataset *d)
{
    return d->rows.first ? d->rows.F : d->M;
}

/* Zeros that are not stored are added at the end, by their total weight. Adding and removing them one at a time would
 * lose digits in columns far from 0. */
void rows_sum_columns(const client_rows *rows, const double *centre, bool squares, double *sums)
{
    double *sum = sums + 1, *stored = sum + rows->F;
    for (size_t r = 0; r < rows->count; r++) {
        const double weight = row_weight(rows, r);
        const size_t first = row_from(rows, r), end = rows->start ? rows->start[r + 1] : first + rows->F;
        for (size_t i = first; i < end; i++) {
            const size_t m = rows->start ? rows->column[i] : i - first;
            const double apart = rows->x[i] - centre[m];
            sum[m] += weight * (squares ? apart * apart : apart);
            stored[m] += weight;
        }
        sums[0] += weight;
    }
}

/* Adds a client's sums to its parent's and sets them to zero. A column without values in the client's rows adds zeros
 * only. */
static void move_sums(const client_rows *rows, double *sums, double *to)
{
    const size_t F = rows->F, count = rows->start ? rows->start[rows->count] - rows->start[0] : F;
    to[0] += sums[0];
    sums[0] = 0;
    for (size_t i = 0; i < count; i++) {
        const size_t m = rows->start ? rows->column[rows->start[0] + i] : i;
        to[1 + m] += sums[1 + m];
        to[1 + F + m] += sums[1 + F + m];
        sums[1 + m] = sums[1 + F + m] = 0;
    }
}

/* Working memory of the sums over a tree: 1 + 2 F numbers for every depth; the clients' are last. */
typedef struct {
    const dataset *d;
    double *room;
    uint64_t *words; /* for every depth, if sums are in fixed point; otherwise NULL */
    bool over;       /* a number did not fit in fixed point */
} tree_sums;

/* The same in fixed point. */
static void sum_fixed(tree_sums *t, size_t i, const double *centre, bool squares)
{
    const dataset *d = t->d;
    const inner_node *node = &d->inner[i];
    const size_t size = 1 + 2 * d->rows.F;
    double *sums = t->room + node->depth * size, *client = t->room + (d->depth + 1) * size;
    child_sum all = child_sum_begin(size, sums, t->words + node->depth * size * FIXED_WORDS);
    for (size_t c = node->first_inner; c < node->first_inner + node->n_inner; c++) {
        sum_fixed(t, c, centre, squares);
        t->over = !child_sum_add(&all, sums + size) || t->over;
    }
    for (size_t leaf = node->first_leaf; leaf < node->first_leaf + node->n_leaves; leaf++) {
        const client_rows rows = dataset_rows(d, leaf);
        memset(client, 0, size * sizeof *client);
        rows_sum_columns(&rows, centre, squares, client);
        t->over = !child_sum_add(&all, client) || t->over;
    }
    child_sum_end(&all);
}

static void sum_below(const tree_sums *t, size_t i, const double *centre, bool squares)
{
    const dataset *d = t->d;
    const inner_node *node = &d->inner[i];
    const size_t size = 1 + 2 * d->rows.F;
    double *sums = t->room + node->depth * size, *client = t->room + (d->depth + 1) * size;
    memset(sums, 0, size * sizeof *sums);
    for (size_t c = node->first_inner; c < node->first_inner + node->n_inner; c++) {
        sum_below(t, c, centre, squares);
        for (size_t m = 0; m < size; m++)
            sums[m] += sums[size + m];
    }
    for (size_t leaf = node->first_leaf; leaf < node->first_leaf + node->n_leaves; leaf++) {
        const client_rows rows = dataset_rows(d, leaf);
        if (!dataset_asks(d, leaf))
            continue;
        rows_sum_columns(&rows, centre, squares, client);
        move_sums(&rows, client, sums);
    }
}

static hfsad_status sum_tree(void *context, const double *centre, bool squares, double *sums, hfsad_error *err)
{
    tree_sums *t = context;
    if (t->words) {
        sum_fixed(t, 0, centre, squares);
        memset(t->room + (t->d->depth + 1) * (1 + 2 * t->d->rows.F), 0, (1 + 2 * t->d->rows.F) * sizeof *sums);
    } else {
        sum_below(t, 0, centre, squares);
    }
    if (t->over)
        return error_set(err, HFSAD_ERROR_INPUT,
                         "a sum over the features of a client is too large for federation.wire fixed; give them in "
                         "larger units");
    memcpy(sums, t->room, (1 + 2 * t->d->rows.F) * sizeof *sums);
    return HFSAD_OK;
}

/* A column that does not vary adds nothing to an intercept: it becomes 0 in every row. */
static hfsad_status check_columns(const columns_search *s, const double *centre, double *scale, hfsad_error *err)
{
    for (size_t m = 0; m < s->F; m++) {
        if (s->sparse && scale[m] == 0 && centre[m] == 0) { /* no sparse row has this index */
            scale[m] = 1;
            continue;
        }
        if (!isfinite(scale[m]))
            return error_set(err, HFSAD_ERROR_INPUT,
                             "%s: feature %zu is too large to be standardised; give it in larger units", s->path,
                             m + 1);
        if (!(scale[m] > 1e-13 * fabs(centre[m])))
            scale[m] = COLUMN_CONSTANT;
    }
    return HFSAD_OK;
}

hfsad_status columns_find(const columns_search *s, double *centre, double *scale, double *sums, hfsad_error *err)
{
    memset(centre, 0, s->F * sizeof *centre);
    for (int pass = 0; pass < 3; pass++) {
        const bool squares = pass == 2;
        hfsad_status status = s->ask(s->context, centre, squares, sums, err);
        if (status)
            return status;
        for (size_t m = 0; m < s->F; m++) {
            const double not_stored = sums[0] - sums[1 + s->F + m];
            const double mean = (sums[1 + m] + not_stored * (squares ? centre[m] * centre[m] : -centre[m])) / sums[0];
            if (squares)
                scale[m] = sqrt(mean);
            else
                centre[m] += mean;
        }
    }
    const hfsad_status status = check_columns(s, centre, scale, err);
    if (!s->intercept || s->sparse)
        memset(centre, 0, s->F * sizeof *centre);
    return status;
}

/* from and to may be the same memory. */
static void apply_to_row(size_t F, const double *centre, const double *scale, const double *from, double *to)
{
    for (size_t m = 0; m < F; m++)
        to[m] = scale[m] < COLUMN_CONSTANT ? (from[m] - centre[m]) / scale[m] : 0;
}

/* Writes to x, which may be the memory of the table itself. */
static void apply(const row_table *t, size_t n_rows, const double *centre, const double *scale, double *x)
{
    if (t->start)
        for (size_t i = 0; i < t->start[n_rows]; i++)
            x[i] = scale[t->column[i]] < COLUMN_CONSTANT ? t->x[i] / scale[t->column[i]] : 0;
    else
        for (size_t r = 0; r < n_rows; r++)
            apply_to_row(t->F, centre, scale, t->x + r * t->F, x + r * t->F);
}

static hfsad_status apply_on_disk(row_table *to, const row_table *t, size_t n_rows, const double *centre,
                                  const double *scale, hfsad_error *err)
{
    hfsad_status status = pages_create(&to->pages, pages_folder(t->pages), t->F, err);
    for (size_t r = 0; r < n_rows && !status; r++) {
        const double *from = t->x + r * t->F;
        pages_visit(t->pages, from);
        apply_to_row(t->F, centre, scale, from, pages_next(to->pages));
        status = pages_commit(to->pages, err);
    }
    pages_leave(t->pages);
    if (!status)
        status = pages_map(to->pages, &to->x, err);
    if (!status)
        pages_seal(to->pages);
    return status;
}

hfsad_status columns_standardise(row_table *to, const row_table *t, size_t n_rows, const double *centre,
                                 const double *scale, hfsad_error *err)
{
    *to = *t;
    to->x = NULL;
    to->lent = false;
    to->pages = NULL;
    if (t->pages) {
        const hfsad_status status = apply_on_disk(to, t, n_rows, centre, scale, err);
        if (status)
            columns_free(to);
        return status;
    }
    const size_t held = t->start ? t->start[n_rows] : n_rows * t->F;
    to->x = alloc_raw(held, sizeof *to->x);
    if (!to->x)
        return error_memory(err, held * sizeof *to->x, "the standardised rows");
    apply(t, n_rows, centre, scale, to->x);
    return HFSAD_OK;
}

void columns_standardise_here(row_table *t, size_t n_rows, const double *centre, const double *scale)
{
    apply(t, n_rows, centre, scale, t->x);
}

void columns_free(row_table *to)
{
    if (to->pages)
        pages_free(to->pages);
    else
        free(to->x);
    to->pages = NULL;
    to->x = NULL;
}

static hfsad_status standardise(dataset *d, bool intercept, const char *path, hfsad_error *err)
{
    const size_t F = d->rows.F, size = 1 + 2 * F;
    tree_sums t = {d, alloc_zero((d->depth + 3) * size, sizeof *t.room),
                   d->fixed ? alloc_zero((d->depth + 1) * size * FIXED_WORDS, sizeof *t.words) : NULL, false};
    d->centre = alloc_zero(F, sizeof *d->centre);
    d->scale = alloc_zero(F, sizeof *d->scale);
    const columns_search s = {F, d->rows.start != NULL, intercept, path, &t, sum_tree};
    if (!d->centre || !d->scale || !t.room || (d->fixed && !t.words)) {
        free(t.room);
        free(t.words);
        return error_memory(err, 3 * F * sizeof(double), "the columns' means");
    }
    hfsad_status status = columns_find(&s, d->centre, d->scale, t.room + (d->depth + 2) * size, err);
    free(t.room);
    free(t.words);
    if (!status)
        status = dataset_own_rows(d, err);
    if (!status)
        apply(&d->rows, d->n_rows, d->centre, d->scale, d->rows.x);
    return status;
}

rows_energy rows_measure_energy(const client_rows *rows)
{
    rows_energy e = {0};
    for (size_t r = 0; r < rows->count; r++) {
        e.weight += row_weight(rows, r);
        e.energy += row_weight(rows, r) * row_norm2(rows, r);
    }
    return e;
}

/* Sums in the order of plan/survey.h, so that asking the clients one at a time gives the same bits. */
static rows_energy energy_below(const dataset *d, size_t i)
{
    const inner_node *node = &d->inner[i];
    double sums[2];
    uint64_t words[2 * FIXED_WORDS];
    child_sum all = child_sum_begin(2, sums, d->fixed ? words : NULL);
    for (size_t c = 0; c < (size_t)node->n_inner + node->n_leaves; c++) {
        rows_energy part;
        if (c >= node->n_inner && !dataset_asks(d, node->first_leaf + c - node->n_inner))
            continue;
        if (c < node->n_inner) {
            part = energy_below(d, node->first_inner + c);
        } else {
            const client_rows rows = dataset_rows(d, node->first_leaf + c - node->n_inner);
            part = rows_measure_energy(&rows);
        }
        (void)child_sum_add(&all, (double[]){part.weight, part.energy}); /* infinite if the sum is too large */
    }
    child_sum_end(&all);
    return (rows_energy){sums[0], sums[1]};
}

/* The cloud's sums, if several ranks hold a part of the rows each (part.h). */
typedef struct {
    const dataset *d;
    rows_energy all;
} ranks_energy;

static void add_energy(ranks_energy *e, rows_energy part)
{
    e->all.weight += part.weight;
    e->all.energy += part.energy;
}

static void add_own_energy(void *context, bool inner, const share_children *own)
{
    ranks_energy *e = context;
    const inner_node *cloud = &e->d->inner[0];
    for (size_t i = own->inner; inner && i < own->inner_end; i++)
        add_energy(e, energy_below(e->d, cloud->first_inner + i));
    for (size_t slot = own->slot; !inner && slot < own->slot_end; slot++) {
        const client_rows rows = dataset_rows(e->d, cloud->first_leaf + slot);
        add_energy(e, rows_measure_energy(&rows));
    }
}

static rows_energy energy_of_all(const dataset *d)
{
    ranks_energy e = {.d = d};
    if (!d->held)
        return energy_below(d, 0);
    share_add(d, &e.all, sizeof e.all, &e, add_own_energy);
    return e.all;
}

double intercept_column(rows_energy all, size_t F, bool standardized)
{
    return !standardized && all.energy > 0 ? sqrt(all.energy / all.weight / (double)F) : 1;
}

/* The leaves' vectors get one more number. */
static void lay_vectors(dataset *d)
{
    enum { ALIGN = 8 };
    size_t end = 0;
    for (size_t i = 0; i < d->n_inner; i++) {
        d->inner[i].base = (end + ALIGN - 1) / ALIGN * ALIGN;
        end = d->inner[i].base + d->inner[i].n_leaves * d->M;
    }
    d->leaf_doubles = (end + ALIGN - 1) / ALIGN * ALIGN;
}

hfsad_status features_prepare(dataset *d, bool intercept, bool standardize, const char *path, hfsad_error *err)
{
    assert(d->rows.first && d->rows.constant == 0 && !d->rows.pages);
    const hfsad_status status = standardize ? standardise(d, intercept, path, err) : HFSAD_OK;
    if (status || !intercept)
        return status;
    d->rows.constant = intercept_column(energy_of_all(d), d->rows.F, standardize);
    d->M = d->rows.F + 1;
    lay_vectors(d);
    return HFSAD_OK;
}

void features_set_classes(dataset *d, size_t classes)
{
    d->classes = classes;
    d->M = features_model(d, d->rows.constant);
    lay_vectors(d);
}

hfsad_status features_check_names(const dataset *d, const char *path, const char *known, const char *whose,
                                  hfsad_error *err)
{
    enum { SHOWN = 300, NAME = 60 };
    const char *name = d->feature_names;
    for (size_t m = 0; name && known && m < features_count(d); m++) {
        if (strcmp(name, known) != 0)
            return error_set(
                err, HFSAD_ERROR_INPUT,
                "%.*s: feature %zu is \"%.*s\", but \"%.*s\" in %.*s; use the same columns in the same order", SHOWN,
                path, m + 1, NAME, name, NAME, known, SHOWN, whose);
        name += strlen(name) + 1;
        known += strlen(known) + 1;
    }
    return HFSAD_OK;
}

void model_to_user(const dataset *d, const double *w, double *user)
{
    const size_t F = features_count(d), K = scores_of(d);
    for (size_t k = 0; k < K; k++) {
        double shift = 0;
        for (size_t m = 0; m < F; m++) {
            user[m * K + k] = column_is_constant(d, m) ? 0 : d->scale ? w[m * K + k] / d->scale[m] : w[m * K + k];
            shift += d->centre ? d->centre[m] * user[m * K + k] : 0;
        }
        if (d->M > F * K)
            user[F * K + k] = d->rows.constant * w[F * K + k] - shift;
    }
}

void model_from_user(const dataset *d, const double *user, double *w)
{
    const size_t F = features_count(d), K = scores_of(d);
    for (size_t k = 0; k < K; k++) {
        double shift = 0;
        for (size_t m = 0; m < F; m++) {
            shift += d->centre ? d->centre[m] * user[m * K + k] : 0;
            w[m * K + k] = column_is_constant(d, m) ? 0 : d->scale ? user[m * K + k] * d->scale[m] : user[m * K + k];
        }
        if (d->M > F * K)
            w[F * K + k] = (user[F * K + k] + shift) / d->rows.constant;
    }
}
