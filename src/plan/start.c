/* Start vectors: zero, N(0, I), the spectral one, or a file. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/rng.h"
#include "math/dot.h"
#include "model/features.h"
#include "plan/plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { POWER_STEPS = 500 };

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void normal_vector(double *v, size_t M, uint64_t seed, const char *stream)
{
    rng r = {rng_key(seed, rng_stream(stream)), 0};
    for (size_t m = 0; m < M; m++)
        v[m] = rng_next_normal(&r);
}

static double normalise(double *v, size_t M)
{
    const double size = sqrt(dot8(M, v, v));
    for (size_t m = 0; m < M; m++)
        v[m] /= size;
    return size;
}

/* What the power iteration works with. */
typedef struct {
    const dataset *d;
    double *weight; /* n_rows: min(y, 3 median), at least 0 */
    double *row, *next;
} spectrum;

/* next = sum weight x <x, v> */
static void apply(const spectrum *s, const double *v)
{
    size_t i = 0;
    memset(s->next, 0, s->d->M * sizeof *s->next);
    for (size_t leaf = 0; leaf < s->d->n_leaves; leaf++) {
        const client_rows rows = dataset_rows_any(s->d, leaf, s->row);
        for (size_t r = 0; r < rows.count; r++)
            row_add(&rows, r, s->weight[i++] * row_dot(&rows, r, v), s->next);
    }
}

/* The length t that fits best: t^2 minimises sum |y - t^2 <x,v>^2|, the median of y/<x,v>^2 with weights <x,v>^2. */
typedef struct {
    double ratio, weight;
} weighted;

static int by_ratio(const void *a, const void *b)
{
    return ascending(&((const weighted *)a)->ratio, &((const weighted *)b)->ratio);
}

static double fit_length(const spectrum *s, const double *v, weighted *list)
{
    const dataset *d = s->d;
    double total = 0, sum = 0;
    size_t n = 0;
    for (size_t leaf = 0; leaf < d->n_leaves; leaf++) {
        const client_rows rows = dataset_rows_any(d, leaf, s->row);
        for (size_t r = 0; r < rows.count; r++) {
            const double p = row_dot(&rows, r, v), p2 = row_weight(&rows, r) * p * p, ratio = rows.y[r] / (p * p);
            if (p2 > 0 && isfinite(ratio)) {
                list[n++] = (weighted){ratio, p2};
                total += p2;
            }
        }
    }
    qsort(list, n, sizeof *list, by_ratio);
    for (size_t i = 0; i < n; i++)
        if ((sum += list[i].weight) >= total / 2)
            return sqrt(fmax(list[i].ratio, 0));
    return 0;
}

static hfsad_status find_spectrum(spectrum *s, double *v, uint64_t seed, weighted *list, hfsad_error *err)
{
    const dataset *d = s->d;
    const size_t n = d->n_rows;
    const double *y = d->rows.first ? d->rows.y : d->y;
    memcpy(s->weight, y, n * sizeof *s->weight);
    qsort(s->weight, n, sizeof *s->weight, ascending);
    const double median = n % 2 ? s->weight[n / 2] : (s->weight[n / 2 - 1] + s->weight[n / 2]) / 2;
    for (size_t i = 0; i < n; i++)
        s->weight[i] = fmax(0, fmin(y[i], 3 * median)) * (d->rows.weight ? d->rows.weight[i] : 1);
    normal_vector(v, d->M, seed, "spectral");
    normalise(v, d->M);
    for (int step = 0; step < POWER_STEPS; step++) {
        apply(s, v);
        const double size = normalise(s->next, d->M);
        if (!(size > 0) || !isfinite(size))
            return error_set(err, HFSAD_ERROR_INPUT,
                             "run.start: spectral needs observations that are mostly positive; take zero or normal");
        double moved = 0;
        for (size_t m = 0; m < d->M; m++) {
            moved = fmax(moved, fabs(s->next[m] - v[m]));
            v[m] = s->next[m];
        }
        if (moved < 1e-12)
            break;
    }
    const double length = fit_length(s, v, list);
    for (size_t m = 0; m < d->M; m++)
        v[m] *= length;
    return HFSAD_OK;
}

static hfsad_status spectral_vector(double *v, const dataset *d, uint64_t seed, hfsad_error *err)
{
    spectrum s = {d, alloc_raw(d->n_rows, sizeof(double)), alloc_raw(d->M, sizeof(double)),
                  alloc_raw(d->M, sizeof(double))};
    weighted *list = alloc_raw(d->n_rows, sizeof *list);
    hfsad_status status;
    if (s.weight && s.row && s.next && list)
        status = find_spectrum(&s, v, seed, list, err);
    else
        status = error_memory(err, d->n_rows * sizeof *list, "the spectral start");
    free(s.weight);
    free(s.row);
    free(s.next);
    free(list);
    return status;
}

void start_intercept(double *start, const dataset *d)
{
    const size_t F = features_count(d);
    double sum = 0, weights = 0;
    start[F] = 0;
    for (size_t leaf = 0; leaf < d->n_leaves; leaf++) {
        const client_rows rows = dataset_rows(d, leaf);
        for (size_t r = 0; r < rows.count; r++) {
            sum += row_weight(&rows, r) * (rows.y[r] - row_dot(&rows, r, start));
            weights += row_weight(&rows, r);
        }
    }
    start[F] = sum / weights / d->rows.constant;
}

hfsad_status start_vector(double *start, const char *kind, const dataset *d, uint64_t seed, hfsad_error *err)
{
    const size_t F = features_count(d);
    memset(start, 0, d->M * sizeof *start);
    if (!strcmp(kind, "zero"))
        return HFSAD_OK;
    if (!strcmp(kind, "spectral"))
        return spectral_vector(start, d, seed, err);
    if (!strcmp(kind, "normal")) {
        normal_vector(start, F, seed, "start");
        return HFSAD_OK;
    }
    const hfsad_status status = vector_read(start, F, kind, "run.start", err);
    if (!status)
        model_from_user(d, start, start);
    return status;
}
