/*
 * The squared loss of a client, factored once for every sigma.
 *
 *     (X^T W X + sigma) w = X^T W y + sigma v,      X^T W X = Q D Q^T                    (tall)
 *     w = v + A^T Q (D + sigma)^-1 Q^T (b - A v),   A = sqrt(W) X, A A^T = Q D Q^T       (wide: fewer rows than M)
 *
 * W holds the rows' weights. LAPACK's dsyevd finds Q and D.
 */
#include "model/rows.h"

#include "base/alloc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

extern void dsyevd_(const char *job, const char *half, const int *n, double *a, const int *lda, double *w, double *work,
                    const int *lwork, int *iwork, const int *liwork, int *info);
extern void dgemv_(const char *transposed, const int *m, const int *n, const double *alpha, const double *a,
                   const int *lda, const double *x, const int *incx, const double *beta, double *y, const int *incy);
/* Clients are shared out over our own threads; a BLAS with threads of its own is told to use one. */
extern void openblas_set_num_threads(int threads) __attribute__((weak));

struct squared_factor {
    size_t M, size; /* size: of Q */
    bool wide;
    double factor;
    double *Q, *D;
    double *right; /* tall: X^T W y */
};

enum { SIZE_MOST = (1 << 15) - 1 }; /* LAPACK counts in int, dsyevd's work of 2 n^2 + 6 n + 1 numbers too */

size_t squared_doubles(size_t rows, size_t M)
{
    const size_t size = rows < M ? rows : M;
    return size < SIZE_MOST ? size * size + size + M : SIZE_MAX;
}

static void fill_tall(squared_factor *s, const client_rows *rows, double *x)
{
    const size_t M = s->M;
    for (size_t r = 0; r < rows->count; r++) {
        const double weight = s->factor * row_weight(rows, r);
        row_add(rows, r, weight * rows->y[r], s->right);
        row_spread(rows, r, M, x);
        for (size_t i = 0; i < M; i++)
            if (x[i] != 0)
                for (size_t j = i; j < M; j++)
                    s->Q[i * M + j] += weight * x[i] * x[j];
    }
}

static void fill_wide(squared_factor *s, const client_rows *rows, double *x)
{
    for (size_t r = 0; r < s->size; r++) {
        row_spread(rows, r, s->M, x);
        const double weight = s->factor * row_weight(rows, r);
        for (size_t j = r; j < s->size; j++)
            s->Q[r * s->size + j] = sqrt(weight * s->factor * row_weight(rows, j)) * row_dot(rows, j, x);
    }
}

/* Our upper half, row by row, is LAPACK's lower one. */
static bool decompose(squared_factor *s)
{
    const int n = (int)s->size, lwork = 1 + 6 * n + 2 * n * n, liwork = 3 + 5 * n;
    int info = -1;
    double *work = alloc_raw((size_t)lwork, sizeof *work);
    int *iwork = alloc_raw((size_t)liwork, sizeof *iwork);
    if (openblas_set_num_threads)
        openblas_set_num_threads(1);
    if (work && iwork)
        dsyevd_("V", "L", &n, s->Q, &n, s->D, work, &lwork, iwork, &liwork, &info);
    free(work);
    free(iwork);
    return info == 0;
}

squared_factor *squared_create(const client_rows *rows, size_t M, double factor)
{
    squared_factor *s = alloc_zero(1, sizeof *s);
    double *x = alloc_raw(M, sizeof *x);
    if (s) {
        *s = (squared_factor){.M = M, .size = rows->count < M ? rows->count : M, .factor = factor};
        s->wide = s->size < M;
        s->Q = alloc_zero(s->size * s->size, sizeof *s->Q);
        s->D = alloc_zero(s->size, sizeof *s->D);
        s->right = alloc_zero(M, sizeof *s->right);
    }
    bool done = s && x && s->Q && s->D && s->right;
    if (done) {
        if (s->wide)
            fill_wide(s, rows, x);
        else
            fill_tall(s, rows, x);
        done = decompose(s);
    }
    free(x);
    if (done)
        return s;
    squared_free(s);
    return NULL;
}

void squared_free(squared_factor *s)
{
    if (!s)
        return;
    free(s->Q);
    free(s->D);
    free(s->right);
    free(s);
}

/* to = Q^T from, or Q from */
static void multiply(const squared_factor *s, const char *transposed, const double *from, double *to)
{
    const int n = (int)s->size, one = 1;
    const double unit = 1, zero = 0;
    dgemv_(transposed, &n, &n, &unit, s->Q, &n, from, &one, &zero, to, &one);
}

/* a = Q (D + sigma)^-1 Q^T a */
static void solve(const squared_factor *s, double sigma, double *a, double *scratch)
{
    multiply(s, "T", a, scratch);
    for (size_t i = 0; i < s->size; i++)
        scratch[i] /= fmax(s->D[i], 0) + sigma; /* the least of D may be below 0 by rounding */
    multiply(s, "N", scratch, a);
}

void squared_prox(const squared_factor *s, const client_rows *rows, const double *v, double sigma, double *w,
                  double *scratch)
{
    double *a = scratch, *room = scratch + s->M;
    if (!s->wide) {
        for (size_t m = 0; m < s->M; m++)
            a[m] = s->right[m] + sigma * v[m];
        solve(s, sigma, a, room);
        memcpy(w, a, s->M * sizeof *w);
        return;
    }
    for (size_t r = 0; r < s->size; r++)
        a[r] = sqrt(s->factor * row_weight(rows, r)) * (rows->y[r] - row_dot(rows, r, v));
    solve(s, sigma, a, room);
    memcpy(w, v, s->M * sizeof *w);
    for (size_t r = 0; r < s->size; r++)
        row_add(rows, r, sqrt(s->factor * row_weight(rows, r)) * a[r], w);
}
