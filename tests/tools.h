/* Functions that several tests share: random draws, comparisons that print the seed, a folder, a small federation. */
#ifndef HFSAD_TESTS_TOOLS_H
#define HFSAD_TESTS_TOOLS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "run/sim.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOOL static inline __attribute__((unused))

TOOL double uniform(rng *r, double low, double high)
{
    return low + (high - low) * rng_next_uniform(r);
}

/* Rate 1. */
TOOL double exponential(rng *r)
{
    return -log(rng_next_uniform(r));
}

/* Spread over powers of ten. */
TOOL double log_uniform(rng *r, double low, double high)
{
    return exp(uniform(r, log(low), log(high)));
}

TOOL size_t below(rng *r, size_t n)
{
    return (size_t)rng_next_below(r, n);
}

TOOL void ok(hfsad_status status, const hfsad_error *err)
{
    if (status)
        fail_msg("%s", err->message);
}

/* A folder that is there during a test or a group of tests, for cmocka's setup and teardown. */
static char folder[128] __attribute__((unused));

TOOL int enter_folder(void **state)
{
    (void)state;
    const char *temporary = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%.100s/hfsad-test-XXXXXX", temporary ? temporary : "/tmp");
    return mkdtemp(folder) ? 0 : -1;
}

TOOL int leave_folder(void **state)
{
    (void)state;
    char command[160];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

/* Four of these paths live at a time. */
TOOL const char *in_folder(const char *name)
{
    static char path[4][600];
    static int turn;
    turn = (turn + 1) % 4;
    snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
    return path[turn];
}

/* Least value of f over [low, high]: a dense scan, then a finer one around the best points. */
TOOL double brute_minimum(double (*f)(const void *, double), const void *context, double low, double high)
{
    enum { POINTS = 1500, ROUNDS = 5 };
    double best = f(context, low), at = low;
    for (int round = 0; round < ROUNDS; round++) {
        const double step = (high - low) / POINTS;
        for (int i = 0; i <= POINTS; i++) {
            const double x = low + step * i, value = f(context, x);
            if (value < best) {
                best = value;
                at = x;
            }
        }
        low = at - 2 * step > low ? at - 2 * step : low;
        high = at + 2 * step < high ? at + 2 * step : high;
    }
    return best;
}

/* A tree given as one path per edge and a number of clients each, with random data that a loss can use. */
TOOL dataset *random_dataset(rng *r, size_t edges, const char *const *paths, const size_t *clients, size_t M,
                             bool labels)
{
    hfsad_error err;
    dataset_builder *b;
    dataset *d;
    double *x = alloc_zero(M, sizeof *x);
    ok(dataset_builder_create(&b, M, &err), &err);
    for (size_t e = 0, number = 0; e < edges; e++)
        for (size_t c = 0; c < clients[e]; c++) {
            char name[32];
            snprintf(name, sizeof name, "client%zu", ++number);
            double s = 0;
            for (size_t m = 0; m < M; m++) {
                x[m] = below(r, 5) ? rng_next_normal(r) : 0;
                s += m % 3 ? 0 : x[m] / sqrt((double)M / 3 + 1);
            }
            const double y = labels ? (s > 0 ? 1 : -1) : s * s + 0.1 * exponential(r);
            ok(dataset_builder_add(b, paths[e], name, y, x, NULL, 0, &err), &err);
        }
    ok(dataset_builder_finish(b, &d, &err), &err);
    free(x);
    return d;
}

/* A plan with one class of leaves; inner nodes all alike. Free with plan_free. */
TOOL plan *simple_plan(const dataset *d, leaf_class leaves, inner_class inner, uint32_t edge_rounds, bool keep_w)
{
    plan *p = alloc_zero(1, sizeof *p);
    p->n_leaf_classes = 1;
    p->leaf_classes = alloc_zero(1, sizeof *p->leaf_classes);
    p->leaf_classes[0] = leaves;
    p->inner = alloc_zero(d->n_inner, sizeof *p->inner);
    for (size_t i = 0; i < d->n_inner; i++)
        p->inner[i] = inner;
    p->seed = 7;
    p->edge_rounds = edge_rounds;
    p->at_least_every = 20;
    p->trace_every = 1;
    p->keep_w = keep_w;
    return p;
}

/* start_vector over data in memory. */
TOOL hfsad_status start_of(double *start, const char *kind, const dataset *d, uint64_t seed, hfsad_error *err)
{
    local_survey survey;
    ok(local_survey_make(&survey, NULL, d, err), err);
    const surveyor ask = local_surveyor(&survey);
    const hfsad_status status = start_vector(start, kind, d, seed, &ask, err);
    local_survey_free(&survey);
    return status;
}

/* Every number of a simulation's state, one after another; free it. */
TOOL double *whole_state(const sim *s, const dataset *d, size_t *count)
{
    const size_t rows = d->n_inner * 3 + d->n_leaves * 3;
    double *all = alloc_zero(rows * d->M + 2 * (d->n_inner + d->n_leaves), sizeof *all), *next = all;
    for (size_t i = 0; i < d->n_inner; i++, next += 3 * d->M) {
        memcpy(next, sim_inner_model(s, i), d->M * sizeof *next);
        const link_counters k = sim_inner_link(s, i, next + d->M, next + 2 * d->M);
        all[rows * d->M + 2 * i] = k.k;
        all[rows * d->M + 2 * i + 1] = k.last;
    }
    for (size_t leaf = 0; leaf < d->n_leaves; leaf++, next += 3 * d->M) {
        sim_leaf_model(s, leaf, next);
        const link_counters k = sim_leaf_link(s, leaf, next + d->M, next + 2 * d->M);
        all[rows * d->M + 2 * (d->n_inner + leaf)] = k.k;
        all[rows * d->M + 2 * (d->n_inner + leaf) + 1] = k.last;
    }
    *count = rows * d->M + 2 * (d->n_inner + d->n_leaves);
    return all;
}

#endif
