/*
 * The automatic first step size of the baselines: 1 / L, with L the largest curvature of an edge's average,
 *
 *     H = sum a_j kappa_j mean_j(x x^T) / sum a_j     over the clients of an inner node
 *
 * kappa is the second derivative of the loss in s = <x, w>; if there is none, that of a parabola with the slope nu of
 * the loss and its typical height v at the start, nu^2 / v. L of a node is the largest eigenvalue of H; if only b of
 * its n clients take part on average, it is mixed with the largest of a single client as for mini-batches (Gower et
 * al., "SGD: General Analysis and Improved Rates", 2019),
 *
 *     L = n (b - 1) / (b (n - 1)) L_node + (n - b) / (b (n - 1)) L_client
 *
 * and if a client makes several steps by itself, L is L_client.
 */
#include "run/baseline.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/rng.h"
#include "math/dot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { POWER_STEPS = 12 }; /* within a tenth or so, where up to twice is stable */

typedef struct {
    const dataset *d;
    const plan *p;
    const double *start;
    double residual;         /* median |y - s| of the rows with a loss of y - s */
    double count;            /* mean y of the rows with a loss of exp(s) */
    double height, size;     /* medians of |y - s^2| and |y| over the rows of phase retrieval */
    const double *direction; /* M: where the power iteration starts */
    double *space;           /* 2 M per thread */
    double *curvature;       /* n_inner: L */
} step_search;

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double residual_of(double y, double s)
{
    return fabs(y - s);
}

static double height_of(double y, double s)
{
    return fabs(y - s * s);
}

static double size_of(double y, double s)
{
    (void)s;
    return fabs(y);
}

/* Median of a figure over the rows of the clients with, or without, phase retrieval; 0 if there are none. */
static double median_of(const step_search *t, bool phase, double (*figure)(double y, double s), double *list)
{
    size_t n = 0;
    for (size_t leaf = 0; leaf < t->d->n_leaves; leaf++) {
        if (loss_kind_of(&plan_leaf(t->p, leaf)->loss)->majorised != phase)
            continue;
        const client_rows rows = dataset_rows(t->d, leaf);
        for (size_t r = 0; r < rows.count; r++)
            list[n++] = figure(rows.y[r], row_dot(&rows, r, t->start));
    }
    qsort(list, n, sizeof *list, ascending);
    return n ? list[n / 2] : 0;
}

static double mean_count(const step_search *t)
{
    double sum = 0, n = 0;
    for (size_t leaf = 0; leaf < t->d->n_leaves; leaf++) {
        if (loss_kind_of(&plan_leaf(t->p, leaf)->loss)->start != LOSS_START_LOG)
            continue;
        const client_rows rows = dataset_rows(t->d, leaf);
        for (size_t r = 0; r < rows.count; r++, n++)
            sum += rows.y[r];
    }
    return n > 0 ? sum / n : 0;
}

static double kappa_of(const step_search *t, const hfsad_loss *loss)
{
    if (loss->kind == HFSAD_LOSS_OWN)
        return 1;
    if (loss_kind_of(loss)->majorised) /* nu^2 = 4 s^2 = 4 y; a start that fits must not end the run */
        return t->size > 0 ? 4 * t->size / fmax(t->height, 1e-3 * t->size) : 1;
    if (loss_kind_of(loss)->start == LOSS_START_LOG) /* exp(s) bends more on the way */
        return 5 * loss_kind_of(loss)->likely_bend(loss, t->count > 0 ? t->count : 1);
    return loss_kind_of(loss)->likely_bend(loss, t->residual > 0 ? t->residual : 1);
}

/* next = H v over the leaves first to end - 1 */
static void apply(const step_search *t, size_t first, size_t end, const double *v, double *next)
{
    double total = 0;
    memset(next, 0, t->d->M * sizeof *next);
    for (size_t leaf = first; leaf < end; leaf++)
        total += baseline_mass(t->d, t->p, leaf);
    for (size_t leaf = first; leaf < end && total > 0; leaf++) {
        const client_rows rows = dataset_rows(t->d, leaf);
        const double weights = rows_weight(&rows);
        const double share = baseline_mass(t->d, t->p, leaf) / total * kappa_of(t, &plan_leaf(t->p, leaf)->loss);
        for (size_t r = 0; r < rows.count && weights > 0; r++)
            row_add(&rows, r, share * row_weight(&rows, r) / weights * row_dot(&rows, r, v), next);
    }
}

/* The largest eigenvalue of H over these leaves. */
static double largest_curvature(const step_search *t, size_t first, size_t end, unsigned thread)
{
    const size_t M = t->d->M;
    double *v = t->space + (size_t)thread * 2 * M, *next = v + M, size = 0;
    const client_rows rows = dataset_rows(t->d, first);
    if (end - first == 1 && rows.count == 1)
        return kappa_of(t, &plan_leaf(t->p, first)->loss) * row_norm2(&rows, 0);
    memcpy(v, t->direction, M * sizeof *v);
    for (int step = 0; step < POWER_STEPS; step++) {
        apply(t, first, end, v, next);
        size = sqrt(dot8(M, next, next));
        if (!(size > 0))
            break;
        for (size_t m = 0; m < M; m++)
            v[m] = next[m] / size;
    }
    return size;
}

static void find_curvature(void *context, size_t i, unsigned thread)
{
    const step_search *t = context;
    const size_t first = t->d->inner[i].first_leaf, n = t->d->inner[i].n_leaves;
    if (!n)
        return;
    double part = 0, client = 0;
    bool alone = false;
    for (size_t leaf = first; leaf < first + n; leaf++) {
        part += fmin(1, plan_leaf(t->p, leaf)->participation);
        alone = alone || plan_leaf(t->p, leaf)->local_steps > 1;
    }
    const double b = fmax(1, part), count = (double)n;
    alone = alone || i == 0; /* a client of the cloud makes all the rounds of an iteration by itself */
    for (size_t leaf = first; leaf < first + n && (alone || b < count); leaf++)
        client = fmax(client, largest_curvature(t, leaf, leaf + 1, thread));
    const double node = alone ? 0 : largest_curvature(t, first, first + n, thread);
    if (alone || n == 1)
        t->curvature[i] = fmax(client, node);
    else
        t->curvature[i] = count * (b - 1) / (b * (count - 1)) * node + (count - b) / (b * (count - 1)) * client;
}

static double search(step_search *t, double *list, double *direction, pool *threads)
{
    rng r = {rng_key(t->p->seed, rng_stream("step")), 0};
    double most = 0, size = 0;
    t->residual = median_of(t, false, residual_of, list);
    t->count = mean_count(t);
    t->height = median_of(t, true, height_of, list);
    t->size = median_of(t, true, size_of, list);
    for (size_t m = 0; m < t->d->M; m++) {
        direction[m] = rng_next_normal(&r);
        size += direction[m] * direction[m];
    }
    for (size_t m = 0; m < t->d->M; m++)
        direction[m] /= sqrt(size);
    pool_run(threads, t->d->n_inner, find_curvature, t);
    for (size_t i = 0; i < t->d->n_inner; i++)
        most = fmax(most, t->curvature[i]);
    return most > 0 ? 1 / most : 1;
}

static hfsad_status find_step(double *step, const dataset *d, const plan *p, const double *start, pool *threads,
                              hfsad_error *err)
{
    double *list = alloc_raw(d->n_rows, sizeof *list), *direction = alloc_raw(d->M, sizeof *direction);
    step_search t = {.d = d, .p = p, .start = start, .direction = direction};
    t.space = alloc_raw(2 * d->M * pool_threads(threads), sizeof *t.space);
    t.curvature = alloc_zero(d->n_inner, sizeof *t.curvature);
    hfsad_status status = HFSAD_OK;
    if (list && direction && t.space && t.curvature)
        *step = search(&t, list, direction, threads);
    else
        status = error_memory(err, d->n_rows * sizeof *list, "the baseline's step");
    free(list);
    free(direction);
    free(t.space);
    free(t.curvature);
    if (!status && !(isfinite(*step) && *step > 0))
        status = error_set(err, HFSAD_ERROR_INPUT,
                           "baseline.step: auto fails for data of this size; set a number, or scale the data");
    return status;
}

hfsad_status baseline_rule_of(baseline_rule *rule, const hfsad_spec *spec, const dataset *d, const plan *p,
                              const double *start, pool *threads, hfsad_error *err)
{
    static const step_kind kinds[] = {
        [STEP_RULE_CONSTANT] = STEP_CONSTANT, [STEP_RULE_POWER] = STEP_POWER, [STEP_RULE_GEOMETRIC] = STEP_GEOMETRIC};
    const BASELINE_settings *s = &spec->baseline;
    const double rounds = (double)p->iterations * p->edge_rounds;
    rule->step.kind = kinds[s->rule];
    rule->step.size = s->step;
    rule->step.shrink = s->decay;
    if (isnan(s->decay))
        rule->step.shrink = s->rule == STEP_RULE_GEOMETRIC ? pow(1e-3, 1 / fmax(rounds, 1)) : 0.5;
    hfsad_status status = HFSAD_OK;
    if (isnan(s->step))
        status = find_step(&rule->step.size, d, p, start, threads, err);
    if (!status && spec->top.algorithm == ALGORITHM_FEDPROX)
        rule->rho = isnan(s->rho) ? 1 / rule->step.size : s->rho;
    else
        rule->rho = 0;
    return status;
}
