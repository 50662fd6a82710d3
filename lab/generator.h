/*
 * Data of the paper's experiment: observations y = <x,w>^2 + noise of a sparse w, one per client
 * or, dealt out in order, several.
 *
 * Every draw is a function of (seed, name of the node, counter). A data set can be made alone, and one client's row
 * does not depend on how many others there are, up to the noise level that they share.
 */
#ifndef HFSAD_LAB_GENERATOR_H
#define HFSAD_LAB_GENERATOR_H

#include "base/rng.h"
#include "data/dataset.h"

/* An observation from a generator; its pointers are valid until the call returns. */
typedef struct {
    const char *edge, *client;
    double y;
    const double *x; /* as many as there are features */
} generated_row;

/* Takes one row after the other, those of a client together; false: no more of them. */
typedef bool (*row_use)(void *context, const generated_row *row);

/* Rows into a data set: begin, row_collect as the row_use, end. */
typedef struct {
    dataset_builder *builder;
    hfsad_status status;
    hfsad_error *err;
} row_collector;
hfsad_status row_collector_begin(row_collector *c, size_t features, hfsad_error *err);
bool row_collect(void *context, const generated_row *row);
/* status: the generator's own. Frees the builder in any case. */
hfsad_status row_collector_end(row_collector *c, hfsad_status status, dataset **d);

typedef struct {
    size_t edges, clients, features; /* L, clients below each edge, M */
    double snr_db;
    double keep_x, keep_w; /* ratio of coordinates that are not zero: x per edge, w */
    uint64_t seed;
    size_t rows; /* observations per client, 0 counts as 1: the same as those of that number of clients with one each */
} phase_retrieval;

/* The paper's numbers, at the snr that its -20 dB means when read as noise to signal. */
phase_retrieval phase_retrieval_paper(void);

/* The true w (M numbers) and 1/lambda_1, which depends on all rows. Needs edges, clients, features >= 1 and ratios in
 * (0, 1]. */
hfsad_status phase_retrieval_prepare(const phase_retrieval *g, double *truth, double *scale, hfsad_error *err);
/* Then gives out every row. HFSAD_OK also where `use` wanted no more. */
hfsad_status phase_retrieval_rows(const phase_retrieval *g, const double *truth, double scale, row_use use,
                                  void *context, hfsad_error *err);

/* The data set, with edges edge1, edge2, … and clients numbered through the federation, and the true w in
 * truth. */
hfsad_status phase_retrieval_generate(const phase_retrieval *g, dataset **d, double *truth, hfsad_error *err);

/* keep[m] = 1 on a random set of `kept` coordinates, 0 elsewhere. index: room for M. */
void support_draw(rng r, size_t kept, size_t M, size_t *index, double *keep);

/* ceil(ratio M), where ratio M means the decimal number that was written. */
size_t kept_count(double ratio, size_t M);

/* 1/lambda_1 for n observations whose <x,w>^2 add up to sum; 0 if the sum is 0. */
double noise_scale(size_t n, double sum, double snr_db);

/* One noise term from two uniform draws in (0, 1). */
double noise_draw(double scale, double pick, double u);

#endif
