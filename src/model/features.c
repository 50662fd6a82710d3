#include "model/features.h"

#include "base/alloc.h"
#include "base/error.h"
#include "model/rows.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

size_t features_count(const dataset *d)
{
    return d->rows.first ? d->rows.F : d->M;
}

/* sum_m = sum weight (x_m - centre_m), or of its squares, over all rows. Zeros that are not stored come in at the end,
 * by their weight: added and taken out again one by one they would take the digits of columns far from 0 with them. */
static void add_columns(const dataset *d, const double *centre, bool squares, double total, double *stored, double *sum)
{
    const row_table *t = &d->rows;
    memset(sum, 0, t->F * sizeof *sum);
    memset(stored, 0, t->F * sizeof *stored);
    for (size_t r = 0; r < d->n_rows; r++) {
        const double weight = t->weight ? t->weight[r] : 1;
        const size_t first = t->start ? t->start[r] : r * t->F, end = t->start ? t->start[r + 1] : first + t->F;
        for (size_t i = first; i < end; i++) {
            const size_t m = t->start ? t->column[i] : i - first;
            const double apart = t->x[i] - centre[m];
            sum[m] += weight * (squares ? apart * apart : apart);
            stored[m] += weight;
        }
    }
    for (size_t m = 0; m < t->F; m++)
        sum[m] += (total - stored[m]) * (squares ? centre[m] * centre[m] : -centre[m]);
}

static double total_weight(const dataset *d)
{
    double sum = 0;
    for (size_t r = 0; r < d->n_rows; r++)
        sum += d->rows.weight ? d->rows.weight[r] : 1;
    return sum;
}

/* Mean and standard deviation of every column into d->centre and d->scale; stored: room for F numbers. The mean is
 * reckoned from the first row on, so that of a column which does not vary it is that number exactly. */
static void measure_columns(dataset *d, double *stored)
{
    const row_table *t = &d->rows;
    const double total = total_weight(d);
    for (size_t i = 0; i < (t->start ? t->start[1] : t->F); i++)
        d->centre[t->start ? t->column[i] : i] = t->x[i];
    add_columns(d, d->centre, false, total, stored, d->scale);
    for (size_t m = 0; m < t->F; m++)
        d->centre[m] += d->scale[m] / total;
    add_columns(d, d->centre, true, total, stored, d->scale);
    for (size_t m = 0; m < t->F; m++)
        d->scale[m] = sqrt(d->scale[m] / total);
}

static void apply(const dataset *d)
{
    const row_table *t = &d->rows;
    if (t->start) {
        for (size_t i = 0; i < t->start[d->n_rows]; i++)
            t->x[i] /= d->scale[t->column[i]];
        return;
    }
    for (size_t r = 0; r < d->n_rows; r++)
        for (size_t m = 0; m < t->F; m++)
            t->x[r * t->F + m] = (t->x[r * t->F + m] - d->centre[m]) / d->scale[m];
}

static hfsad_status standardise(dataset *d, bool intercept, const char *path, hfsad_error *err)
{
    const size_t F = d->rows.F;
    double *stored = alloc_raw(F, sizeof *stored);
    d->centre = alloc_zero(F, sizeof *d->centre);
    d->scale = alloc_zero(F, sizeof *d->scale);
    if (!d->centre || !d->scale || !stored) {
        free(stored);
        return error_memory(err, 3 * F * sizeof(double), "the columns' means");
    }
    measure_columns(d, stored);
    free(stored);
    for (size_t m = 0; m < F; m++) {
        if (d->rows.start && d->scale[m] == 0 && d->centre[m] == 0) { /* an index that no sparse row has */
            d->scale[m] = 1;
            continue;
        }
        if (!isfinite(d->scale[m]))
            return error_set(err, HFSAD_ERROR_INPUT,
                             "%s: feature %zu is too large to be standardised; give it in larger units", path, m + 1);
        if (!(d->scale[m] > 1e-13 * fabs(d->centre[m])))
            return error_set(err, HFSAD_ERROR_INPUT,
                             "%s: feature %zu is %.6g in every row and cannot be standardised; take the column out%s",
                             path, m + 1, d->centre[m],
                             intercept ? " (the intercept stands for it)" : " or set features.intercept instead");
    }
    if (!intercept || d->rows.start)
        memset(d->centre, 0, F * sizeof *d->centre);
    apply(d);
    return HFSAD_OK;
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

/* In the order of plan/survey.h, so that who asks the clients one by one reaches the same bits. */
static rows_energy energy_below(const dataset *d, size_t i)
{
    const inner_node *node = &d->inner[i];
    rows_energy sum = {0};
    for (size_t c = 0; c < (size_t)node->n_inner + node->n_leaves; c++) {
        rows_energy part;
        if (c < node->n_inner) {
            part = energy_below(d, node->first_inner + c);
        } else {
            const client_rows rows = dataset_rows(d, node->first_leaf + c - node->n_inner);
            part = rows_measure_energy(&rows);
        }
        sum.weight += part.weight;
        sum.energy += part.energy;
    }
    return sum;
}

double intercept_column(rows_energy all, size_t F, bool standardized)
{
    return !standardized && all.energy > 0 ? sqrt(all.energy / all.weight / (double)F) : 1;
}

/* The leaves' vectors have one number more. */
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
    assert(d->rows.first && d->rows.constant == 0);
    const hfsad_status status = standardize ? standardise(d, intercept, path, err) : HFSAD_OK;
    if (status || !intercept)
        return status;
    d->rows.constant = intercept_column(energy_below(d, 0), d->rows.F, standardize);
    d->M = d->rows.F + 1;
    lay_vectors(d);
    return HFSAD_OK;
}

hfsad_status features_check_names(const dataset *d, const char *path, const char *known, const char *whose,
                                  hfsad_error *err)
{
    enum { SHOWN = 300, NAME = 60 };
    const char *name = d->feature_names;
    for (size_t m = 0; name && known && m < features_count(d); m++) {
        if (strcmp(name, known) != 0)
            return error_set(err, HFSAD_ERROR_INPUT,
                             "%.*s: feature %zu is \"%.*s\", and \"%.*s\" in %.*s; give the same columns in the same "
                             "order",
                             SHOWN, path, m + 1, NAME, name, NAME, known, SHOWN, whose);
        name += strlen(name) + 1;
        known += strlen(known) + 1;
    }
    return HFSAD_OK;
}

void model_to_user(const dataset *d, const double *w, double *user)
{
    const size_t F = features_count(d);
    double shift = 0;
    for (size_t m = 0; m < F; m++) {
        user[m] = d->scale ? w[m] / d->scale[m] : w[m];
        shift += d->centre ? d->centre[m] * user[m] : 0;
    }
    if (d->M > F)
        user[F] = d->rows.constant * w[F] - shift;
}

void model_from_user(const dataset *d, const double *user, double *w)
{
    const size_t F = features_count(d);
    double shift = 0;
    for (size_t m = 0; m < F; m++) {
        shift += d->centre ? d->centre[m] * user[m] : 0;
        w[m] = d->scale ? user[m] * d->scale[m] : user[m];
    }
    if (d->M > F)
        w[F] = (user[F] + shift) / d->rows.constant;
}
