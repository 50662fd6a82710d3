/* A client's rows, one at a time, for set-up and slow paths. The kernels have their own code (rows_body.h). */
#include "data/rows.h"

#include "math/dot.h"

#include <string.h>

double row_dot(const client_rows *rows, size_t r, const double *w)
{
    double sum = rows->constant != 0 ? rows->constant * w[rows_level(rows)] : 0;
    if (!rows->start)
        return sum + dot8(rows->F, rows->x + row_from(rows, r), w);
    for (size_t i = rows->start[r]; i < rows->start[r + 1]; i++)
        sum += rows->x[i] * w[rows->column[i]];
    return sum;
}

void row_add(const client_rows *rows, size_t r, double a, double *w)
{
    if (rows->constant != 0)
        w[rows_level(rows)] += a * rows->constant;
    const double *x = rows->x + row_from(rows, r);
    if (rows->start)
        for (size_t i = rows->start[r]; i < rows->start[r + 1]; i++)
            w[rows->column[i]] += a * rows->x[i];
    else
        for (size_t m = 0; m < rows->F; m++)
            w[m] += a * x[m];
}

void row_add_scaled(const client_rows *rows, size_t r, double a, const double *scale, double *w)
{
    const size_t first = row_from(rows, r);
    const size_t end = rows->start ? rows->start[r + 1] : first + rows->F;
    for (size_t i = first; i < end; i++) {
        const size_t m = rows->start ? rows->column[i] : i - first;
        w[m] += a * rows->x[i] * scale[m];
    }
    if (rows->constant != 0)
        w[rows_level(rows)] += a * rows->constant * scale[rows_level(rows)];
}

void row_add_squares(const client_rows *rows, size_t r, double a, double *sum)
{
    const size_t first = row_from(rows, r);
    const size_t end = rows->start ? rows->start[r + 1] : first + rows->F;
    for (size_t i = first; i < end; i++)
        sum[rows->start ? rows->column[i] : i - first] += a * rows->x[i] * rows->x[i];
    if (rows->constant != 0)
        sum[rows_level(rows)] += a * rows->constant * rows->constant;
}

double row_norm2(const client_rows *rows, size_t r)
{
    double sum = rows->constant * rows->constant;
    const double *x = rows->x + row_from(rows, r);
    if (!rows->start)
        return sum + dot8(rows->F, x, x);
    for (size_t i = rows->start[r]; i < rows->start[r + 1]; i++)
        sum += rows->x[i] * rows->x[i];
    return sum;
}

double rows_weight(const client_rows *rows)
{
    double sum = 0;
    for (size_t r = 0; r < rows->count; r++)
        sum += row_weight(rows, r);
    return sum;
}

void row_spread(const client_rows *rows, size_t r, size_t M, double *x)
{
    memset(x, 0, M * sizeof *x);
    row_add(rows, r, 1, x);
}

double hfsad_client_dot(const hfsad_client *client, size_t row, const double *w)
{
    return row_dot(client->inside, row, w);
}

void hfsad_client_add(const hfsad_client *client, size_t row, double a, double *g)
{
    row_add(client->inside, row, a, g);
}

void hfsad_client_row(const hfsad_client *client, size_t row, double *x)
{
    row_spread(client->inside, row, client->M, x);
}
