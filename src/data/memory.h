/* hfsad_data: rows in the caller's arrays or in copies of them, and the data set that is built from them. */
#ifndef HFSAD_DATA_MEMORY_H
#define HFSAD_DATA_MEMORY_H

#include "data/builder.h"

#include <stdatomic.h>

typedef struct {
    const double *at;
    ptrdiff_t stride;
    double *copy; /* NULL: the caller owns the array */
} number_column;

struct hfsad_data {
    atomic_size_t references; /* the handle, and every data set that borrows its rows */
    size_t rows, features;
    hfsad_keep keep;
    lent_rows dense; /* x is NULL: none */
    double *dense_copy;
    const double *value; /* sparse; NULL: none */
    double *value_copy;
    const void *start, *column; /* integers of 4 or 8 bytes */
    void *start_copy, *column_copy;
    bool wide; /* integers have 8 bytes */
    number_column y, weight;
    uint32_t *codes; /* for every row, the number of its path among the names; NULL: none */
    text_pool names;
    uint32_t *name_at; /* n_names */
    size_t n_names;
    char *feature_names; /* as in dataset */
    double *truth;
};

/* Builds the data set. as_rows: always in the table `rows`. needs_y: data without y is an error; otherwise such data
 * has rows.y NULL. places: room for the place of every row in the order of the leaves, or NULL. */
hfsad_status data_lay(hfsad_data *data, bool as_rows, bool needs_y, uint32_t *places, dataset **d, hfsad_error *err);

#endif
