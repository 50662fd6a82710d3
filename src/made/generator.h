/*
 * Data of the paper's experiment: observations y = <x,w>^2 + noise of a sparse w, one per client
 * or, dealt out in order, several.
 *
 * Every draw is a function of (seed, name of the node, counter). A data set can be made alone, and one client's row
 * does not depend on how many others there are, up to the noise level that they share.
 */
#ifndef HFSAD_MADE_GENERATOR_H
#define HFSAD_MADE_GENERATOR_H

#include "base/rng.h"
#include "hfsad/hfsad.h"

/* An observation from a generator; its pointers are valid until the call returns. */
typedef struct {
    const char *edge, *client;
    double y;
    const double *x; /* one number per feature */
} generated_row;

/* Takes rows one after the other, a client's rows together; false: stop. */
typedef bool (*row_use)(void *context, const generated_row *row);

typedef struct {
    size_t edges, clients, features; /* L, clients below each edge, M */
    double snr_db;
    double keep_x, keep_w; /* ratio of coordinates that are not zero: x per edge, w */
    uint64_t seed;
    size_t rows; /* observations per client; 0 counts as 1. The same as this number of clients with one row each */
} phase_retrieval;

/* The paper's numbers; its snr of -20 dB is read as noise to signal. */
phase_retrieval phase_retrieval_paper(void);

/* The true w, M numbers. */
hfsad_status phase_retrieval_truth(const phase_retrieval *g, double *truth, hfsad_error *err);
/* The true w (M numbers) and 1/lambda_1, which depends on all rows. Needs edges, clients, features >= 1 and ratios in
 * (0, 1]. */
hfsad_status phase_retrieval_prepare(const phase_retrieval *g, double *truth, double *scale, hfsad_error *err);
/* Then passes every row to `use`. HFSAD_OK also if `use` stopped early. */
hfsad_status phase_retrieval_rows(const phase_retrieval *g, const double *truth, double scale, row_use use,
                                  void *context, hfsad_error *err);

/* The coordinates of x that edge l has, counted from 1: keep[m] is 1 or 0. index: room for M. */
void phase_retrieval_support(const phase_retrieval *g, size_t l, size_t *index, double *keep);
/* y of observation `number`, counted from 1, with <x,w> = s. */
double phase_retrieval_observe(const phase_retrieval *g, size_t number, double s, double scale);

/* keep[m] = 1 on a random set of `kept` coordinates, 0 elsewhere. index: room for M. */
void support_draw(rng r, size_t kept, size_t M, size_t *index, double *keep);

/* ceil(ratio M), with ratio M computed as for decimal numbers. */
size_t kept_count(double ratio, size_t M);

/* 1/lambda_1 for n observations whose <x,w>^2 add up to sum; 0 if the sum is 0. */
double noise_scale(size_t n, double sum, double snr_db);

/* One noise term from two uniform draws in (0, 1). */
double noise_draw(double scale, double pick, double u);

#endif
