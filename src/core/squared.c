/*
 * The squared loss of a client: one tridiagonal form serves every sigma.
 *
 *     (X^T W X + sigma) w = X^T W y + sigma v,      X^T W X = Q T Q^T                    (tall)
 *     w = v + A^T Q (T + sigma)^-1 Q^T (b - A v),   A = sqrt(W) X, A A^T = Q T Q^T       (wide: fewer rows than M)
 *
 * W holds the rows' weights. LAPACK's dsytrd overwrites the matrix with T and Q; Q is a product of reflections
 * 1 - tau v v^T. This needs no further memory, and no eigenvectors, which would take several times as long.
 */
#include "core/rows_prox.h"

#include "base/alloc.h"
#include "math/dot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

extern void dsytrd_(const char *half, const int *n, double *a, const int *lda, double *d, double *e, double *tau,
                    double *work, const int *lwork, int *info);
/* Clients are distributed over our threads, so a multi-threaded BLAS is limited to one thread. */
extern void openblas_set_num_threads(int threads) __attribute__((weak));

struct squared_factor {
    size_t M, size; /* size of Q */
    bool wide;
    double factor;
    double *Q;     /* size^2: row i has reflection i from column i + 2 on; its v is 1 in column i + 1 and 0 before */
    double *tau;   /* size numbers, as are D and E */
    double *D, *E; /* T: its diagonal and subdiagonal */
    double *right; /* tall: X^T W y */
};

enum {
    SIZE_MOST = (1 << 15) - 1, /* LAPACK counts rows and the elements of a matrix in int */
    BLOCK = 32,                /* block size of dsytrd: room for 32 columns */
    SPREAD = 8,                /* rows that are expanded at a time; divides the number of passes over the other rows */
};

size_t squared_doubles(size_t rows, size_t M)
{
    const size_t size = rows < M ? rows : M;
    return size < SIZE_MOST ? size * size + 3 * size + M : SIZE_MAX;
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

/* x: room for SPREAD rows. */
static void fill_wide(squared_factor *s, const client_rows *rows, double *x)
{
    for (size_t first = 0; first < s->size; first += SPREAD) {
        const size_t end = first + SPREAD < s->size ? first + SPREAD : s->size;
        for (size_t r = first; r < end; r++)
            row_spread(rows, r, s->M, x + (r - first) * s->M);
        for (size_t j = first; j < s->size; j++)
            for (size_t r = first; r < end && r <= j; r++) {
                const double weight = s->factor * row_weight(rows, r);
                s->Q[r * s->size + j] =
                    sqrt(weight * s->factor * row_weight(rows, j)) * row_dot(rows, j, x + (r - first) * s->M);
            }
    }
}

/* Our upper triangle, stored by rows, is LAPACK's lower triangle. */
static bool reduce(squared_factor *s)
{
    const int n = (int)s->size, lwork = BLOCK * n;
    int info = -1;
    double *work = alloc_raw((size_t)lwork, sizeof *work);
    if (openblas_set_num_threads)
        openblas_set_num_threads(1);
    if (work)
        dsytrd_("L", &n, s->Q, &n, s->D, s->E, s->tau, work, &lwork, &info);
    free(work);
    return info == 0;
}

squared_factor *squared_create(const client_rows *rows, size_t M, double factor)
{
    squared_factor *s = alloc_zero(1, sizeof *s);
    double *x = alloc_raw(M, SPREAD * sizeof *x);
    if (s) {
        *s = (squared_factor){.M = M, .size = rows->count < M ? rows->count : M, .factor = factor};
        s->wide = s->size < M;
        s->Q = alloc_zero(s->size * s->size, sizeof *s->Q);
        s->tau = alloc_zero(s->size, sizeof *s->tau);
        s->D = alloc_zero(s->size, sizeof *s->D);
        s->E = alloc_zero(s->size, sizeof *s->E);
        s->right = alloc_zero(M, sizeof *s->right);
    }
    bool done = s && x && s->Q && s->tau && s->D && s->E && s->right;
    if (done) {
        if (s->wide)
            fill_wide(s, rows, x);
        else
            fill_tall(s, rows, x);
        done = reduce(s);
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
    free(s->tau);
    free(s->D);
    free(s->E);
    free(s->right);
    free(s);
}

static void reflect(const squared_factor *s, size_t i, double *a)
{
    const double *v = s->Q + i * s->size + i + 2;
    const size_t length = s->size - i - 2;
    double *rest = a + i + 2;
    const double along = s->tau[i] * (a[i + 1] + dot8(length, v, rest));
    a[i + 1] -= along;
    for (size_t m = 0; m < length; m++)
        rest[m] -= along * v[m];
}

/* a = (T + sigma)^-1 a by T + sigma = L C L^T; inverse: room for C^-1. Apart from rounding, T has no negative
 * eigenvalue, so no element of C is below sigma. */
static void solve_tridiagonal(const squared_factor *s, double sigma, double *a, double *inverse)
{
    const size_t n = s->size;
    inverse[0] = 1 / (fmax(s->D[0], 0) + sigma);
    for (size_t i = 1; i < n; i++) {
        const double l = s->E[i - 1] * inverse[i - 1];
        inverse[i] = 1 / fmax(s->D[i] + sigma - l * s->E[i - 1], sigma);
        a[i] -= l * a[i - 1];
    }
    a[n - 1] *= inverse[n - 1];
    for (size_t i = n - 1; i-- > 0;)
        a[i] = (a[i] - s->E[i] * a[i + 1]) * inverse[i];
}

/* a = Q (T + sigma)^-1 Q^T a */
static void solve_factored(const squared_factor *s, double sigma, double *a, double *scratch)
{
    for (size_t i = 0; i + 1 < s->size; i++)
        reflect(s, i, a);
    solve_tridiagonal(s, sigma, a, scratch);
    for (size_t i = s->size - 1; i-- > 0;)
        reflect(s, i, a);
}

void squared_prox(const squared_factor *s, const client_rows *rows, const double *v, double sigma, double *w,
                  double *scratch)
{
    double *a = scratch, *room = scratch + s->M;
    if (!s->wide) {
        for (size_t m = 0; m < s->M; m++)
            a[m] = s->right[m] + sigma * v[m];
        solve_factored(s, sigma, a, room);
        memcpy(w, a, s->M * sizeof *w);
        return;
    }
    for (size_t r = 0; r < s->size; r++)
        a[r] = sqrt(s->factor * row_weight(rows, r)) * (rows->y[r] - row_dot(rows, r, v));
    solve_factored(s, sigma, a, room);
    memcpy(w, v, s->M * sizeof *w);
    for (size_t r = 0; r < s->size; r++)
        row_add(rows, r, sqrt(s->factor * row_weight(rows, r)) * a[r], w);
}
