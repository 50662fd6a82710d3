/* One client's rows: products with a row, sums over rows. Rows are dense, sparse or paged from a disk. */
#ifndef HFSAD_DATA_ROWS_H
#define HFSAD_DATA_ROWS_H

#include "data/dataset.h"

/* Start of a row's values in rows->x. Every reader calls this first, so that rows on a disk are paged in. */
static inline size_t row_from(const client_rows *rows, size_t r)
{
    if (rows->start)
        return rows->start[r];
    if (rows->pages)
        pages_visit(rows->pages, rows->x + r * rows->F);
    return r * rows->F;
}

/* The operations on a row that most files need: <x, w> and w += a x. */
double row_dot(const client_rows *rows, size_t r, const double *w);
void row_add(const client_rows *rows, size_t r, double a, double *w);
/* w_m += a x_m scale_m */
void row_add_scaled(const client_rows *rows, size_t r, double a, const double *scale, double *w);
/* The same with the squares of x. */
void row_add_squares(const client_rows *rows, size_t r, double a, double *sum);
/* |x|^2, including the intercept's column. */
double row_norm2(const client_rows *rows, size_t r);
/* Sum of the rows' weights. */
double rows_weight(const client_rows *rows);
/* Writes the row as M plain numbers. */
void row_spread(const client_rows *rows, size_t r, size_t M, double *x);

static inline double row_weight(const client_rows *rows, size_t r)
{
    return rows->weight ? rows->weight[r] : 1;
}

#endif
