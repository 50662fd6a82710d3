/*
 * Intercept and standardisation: transforms the columns before training, and transforms every reported model back to
 * the user's units.
 */
#ifndef HFSAD_DATA_FEATURES_H
#define HFSAD_DATA_FEATURES_H

#include "data/dataset.h"

#include <float.h>

/* Transforms d, which has the row table, in place. path names the data in messages. */
hfsad_status features_prepare(dataset *d, bool intercept, bool standardize, const char *path, hfsad_error *err);

/* Sums over rows: of the weights w, and of w |x|^2. */
typedef struct {
    double weight, energy;
} rows_energy;
rows_energy rows_measure_energy(const client_rows *rows);
/* Adds over a client's rows to 1 + 2 F numbers, which the caller sets to 0: the weights w; w (x_m - centre_m), or w
 * times its square, over the stored values; w over the stored values. */
void rows_sum_columns(const client_rows *rows, const double *centre, bool squares, double *sums);
/* Mean and standard deviation of every column from three passes of such sums over all clients, which `ask` forms. The
 * first pass is centred at 0, the second at the first mean, so that the mean of a constant column is exactly its value.
 * path names the data in messages; sums: room for 1 + 2 F numbers. */
typedef struct {
    size_t F;
    bool sparse, intercept;
    const char *path;
    void *context;
    hfsad_status (*ask)(void *context, const double *centre, bool squares, double *sums, hfsad_error *err);
} columns_search;
hfsad_status columns_find(const columns_search *s, double *centre, double *scale, double *sums, hfsad_error *err);
/* A table with standardised values, in memory or on a disk like the table t. It owns x and pages, which columns_free
 * frees; t owns the rest. */
hfsad_status columns_standardise(row_table *to, const row_table *t, size_t n_rows, const double *centre,
                                 const double *scale, hfsad_error *err);
void columns_free(row_table *to);
/* Standardises the table in place; it must be in memory. */
void columns_standardise_here(row_table *t, size_t n_rows, const double *centre, const double *scale);

/* The constant of the intercept's column, from the sums over all clients: the root mean square of a feature, so that
 * the intercept moves as fast as the coefficients. */
double intercept_column(rows_energy all, size_t F, bool standardized);

/* The scale of a column that does not vary; it is finite, because it is sent to the clients. */
#define COLUMN_CONSTANT DBL_MAX
static inline bool column_is_constant(const dataset *d, size_t m)
{
    return d->scale && !(d->scale[m] < COLUMN_CONSTANT);
}
/* Number of features of the data, without the intercept. */
size_t features_count(const dataset *d);
/* Numbers of a model that multiply features; all numbers of a model whose intercept's column is `constant` (0: no
 * intercept). */
size_t features_weights(const dataset *d);
size_t features_model(const dataset *d, double constant);
/* Gives the model numbers for each class; d has the row table. */
void features_set_classes(dataset *d, size_t classes);
/* An error if the features of the data (path) have other names than the features of `whose`; NULL: names unknown. */
hfsad_status features_check_names(const dataset *d, const char *path, const char *known, const char *whose,
                                  hfsad_error *err);
/* Converts a model from the run's units to the user's, and back; M numbers each, which may be the same memory. */
void model_to_user(const dataset *d, const double *w, double *user);
void model_from_user(const dataset *d, const double *user, double *w);

#endif
