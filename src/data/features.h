/*
 * Intercept and standardisation: transforms the columns before training, and transforms every reported model back.
 *
 * A run trains on x'_m = (x_m - centre_m) / scale_m and, for an intercept, on one more column that is `constant` in
 * every row. Centre, scale and constant come from sums over the clients' rows. Dense columns are centred if there is an
 * intercept to absorb the shift; sparse columns are not, because that would fill them.
 */
#ifndef HFSAD_DATA_FEATURES_H
#define HFSAD_DATA_FEATURES_H

#include "data/dataset.h"

#include <float.h>

/* Changes d, which has the row table, in place. path names the data in messages. */
hfsad_status features_prepare(dataset *d, bool intercept, bool standardize, const char *path, hfsad_error *err);

/* Sums over rows: of their weights w, and of w |x|^2. */
typedef struct {
    double weight, energy;
} rows_energy;
rows_energy rows_measure_energy(const client_rows *rows);
/* Sums over a client's rows, 1 + 2 F numbers, all 0 before: of the weights w; of w (x_m - centre_m), or of w times its
 * square, over the values that are stored; of w over those. */
void rows_sum_columns(const client_rows *rows, const double *centre, bool squares, double *sums);
/* Mean and standard deviation of every column from three such sums over all clients, which `ask` finds. The first is
 * that from 0 on, the second from the first mean, so that of a column which does not vary the mean is that number.
 * path names the data in messages; sums: room for 1 + 2 F numbers. */
typedef struct {
    size_t F;
    bool sparse, intercept;
    const char *path;
    void *context;
    hfsad_status (*ask)(void *context, const double *centre, bool squares, double *sums, hfsad_error *err);
} columns_search;
hfsad_status columns_find(const columns_search *s, double *centre, double *scale, double *sums, hfsad_error *err);
/* A table with the rows' values standardised, in memory or on a disk as those of t are. x and pages are its own, for
 * columns_free, all else is t's. */
hfsad_status columns_standardise(row_table *to, const row_table *t, size_t n_rows, const double *centre,
                                 const double *scale, hfsad_error *err);
void columns_free(row_table *to);
/* The same to the table itself, which is in memory. */
void columns_standardise_here(row_table *t, size_t n_rows, const double *centre, const double *scale);

/* The column of an intercept, from the sums over all clients: the root mean square of a feature, so that the intercept
 * moves as fast as the coefficients do. */
double intercept_column(rows_energy all, size_t F, bool standardized);

/* The scale of a column that does not vary; finite, because it is sent to the clients. */
#define COLUMN_CONSTANT DBL_MAX
static inline bool column_is_constant(const dataset *d, size_t m)
{
    return d->scale && !(d->scale[m] < COLUMN_CONSTANT);
}
/* Features of the data, the intercept not counted. */
size_t features_count(const dataset *d);
/* Numbers of a model that multiply features, and of all of it if the intercept's column is `constant`, 0: none. */
size_t features_weights(const dataset *d);
size_t features_model(const dataset *d, double constant);
/* From now on a model has numbers for each class; d has the row table. */
void features_set_classes(dataset *d, size_t classes);
/* Error if the features of the data (path) have other names than the known names of `whose`; NULL: names not known. */
hfsad_status features_check_names(const dataset *d, const char *path, const char *known, const char *whose,
                                  hfsad_error *err);
/* A model as the run has it to the user's units, and back; M numbers each, and both may be the same. */
void model_to_user(const dataset *d, const double *w, double *user);
void model_from_user(const dataset *d, const double *user, double *w);

#endif
