/*
 * Lanczos with full reorthogonalisation: an orthonormal basis V of the Krylov space, in which A is the tridiagonal
 * matrix with diagonal a and neighbours b; the leading eigenvector s of that one gives V s.
 */
#include "math/lanczos.h"

#include "base/alloc.h"
#include "base/error.h"
#include "math/dot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

extern void dstev_(const char *job, const int *n, double *diagonal, double *beside, double *z, const int *ldz,
                   double *work, int *info);

typedef struct {
    size_t M, size, most; /* size: vectors of the basis whose product is known */
    double *basis;        /* (most + 1) rows of M */
    double *a, *b;        /* most each */
    double *d, *e, *work; /* copies for LAPACK: most, most, 2 most */
    double *vectors;      /* most^2: eigenvectors of the tridiagonal matrix, the largest eigenvalue's last */
} krylov;

static bool krylov_take(krylov *k, size_t M, size_t most)
{
    *k = (krylov){.M = M, .most = most};
    k->basis = alloc_raw((most + 1) * M, sizeof(double));
    k->a = alloc_zero(6 * most, sizeof(double));
    k->vectors = alloc_raw(most * most, sizeof(double));
    if (!k->basis || !k->a || !k->vectors)
        return false;
    k->b = k->a + most;
    k->d = k->b + most;
    k->e = k->d + most;
    k->work = k->e + most;
    return true;
}

static void krylov_free(krylov *k)
{
    free(k->basis);
    free(k->a);
    free(k->vectors);
}

static void subtract(size_t M, double *from, double factor, const double *v)
{
    for (size_t m = 0; m < M; m++)
        from[m] -= factor * v[m];
}

/* Adds `next` = A basis[size] to the basis. Returns the norm of its part orthogonal to the other vectors. */
static double extend(krylov *k, double *next)
{
    const size_t M = k->M, i = k->size++;
    k->a[i] = dot8(M, next, k->basis + i * M);
    for (int twice = 0; twice < 2; twice++) /* a single pass leaves rounding errors that grow */
        for (size_t j = 0; j <= i; j++)
            subtract(M, next, dot8(M, next, k->basis + j * M), k->basis + j * M);
    return k->b[i] = sqrt(dot8(M, next, next));
}

/* The eigenvectors of the tridiagonal matrix; false if LAPACK fails. Eigenvalues increase in k->d. */
static bool solve_tridiagonal(krylov *k)
{
    const int n = (int)k->size;
    int info = 0;
    memcpy(k->d, k->a, k->size * sizeof *k->d);
    memcpy(k->e, k->b, k->size * sizeof *k->e);
    dstev_("V", &n, k->d, k->e, k->vectors, &n, k->work, &info);
    return info == 0;
}

static void combine(const krylov *k, double *v)
{
    const double *s = k->vectors + (k->size - 1) * k->size;
    memset(v, 0, k->M * sizeof *v);
    for (size_t j = 0; j < k->size; j++)
        subtract(k->M, v, -s[j], k->basis + j * k->M);
    const double size = sqrt(dot8(k->M, v, v));
    for (size_t m = 0; m < k->M; m++)
        v[m] /= size;
}

static hfsad_status climb(krylov *k, double tolerance, matrix_times times, void *context, double *v, hfsad_error *err)
{
    const double size = sqrt(dot8(k->M, v, v));
    for (size_t m = 0; m < k->M; m++)
        k->basis[m] = v[m] / size;
    for (bool done = false; !done;) {
        double *next = k->basis + (k->size + 1) * k->M;
        const hfsad_status status = times(context, next - k->M, next, err);
        if (status)
            return status;
        const double left = extend(k, next);
        if (!isfinite(left) || !solve_tridiagonal(k))
            return error_set(err, HFSAD_ERROR_INPUT,
                             "the leading eigenvector of the data was not found; set run.start to another start");
        const double largest = fmax(fabs(k->d[0]), fabs(k->d[k->size - 1]));
        const double residual = left * fabs(k->vectors[k->size * k->size - 1]);
        done = residual <= tolerance * largest || k->size == k->most;
        for (size_t m = 0; m < k->M && !done; m++)
            next[m] /= left;
    }
    combine(k, v);
    return HFSAD_OK;
}

hfsad_status lanczos_largest(size_t M, size_t steps, double tolerance, matrix_times times, void *context, double *v,
                             double *value, hfsad_error *err)
{
    krylov k;
    if (!krylov_take(&k, M, steps < M ? steps : M)) {
        krylov_free(&k);
        return error_memory(err, (steps + 1) * M * sizeof(double), "the spectral start");
    }
    const hfsad_status status = climb(&k, tolerance, times, context, v, err);
    if (!status && value)
        *value = k.d[k.size - 1];
    krylov_free(&k);
    return status;
}
