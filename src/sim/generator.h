/*
 * Data of the paper's experiment (section 6): observations y = <x,w>^2 + noise of a sparse w, one per client.
 *
 * Every draw is a function of (seed, name of the node, counter). A data set can be made alone, and one client's row
 * does not depend on how many others there are, up to the noise level that they share.
 */
#ifndef HFSAD_SIM_GENERATOR_H
#define HFSAD_SIM_GENERATOR_H

#include "model/dataset.h"

typedef struct {
    size_t edges, clients, features; /* L, clients below each edge, M */
    double snr_db;
    double keep_x, keep_w; /* ratio of coordinates that are not zero: x per edge, w */
    uint64_t seed;
} phase_retrieval;

/* The paper's numbers, at the snr that its -20 dB means when read as noise to signal. */
phase_retrieval phase_retrieval_paper(void);

/* The data set, with edges edge1, edge2, … and clients numbered through the federation, and the true w in truth
 * (M numbers). Needs edges, clients, features >= 1 and ratios in (0, 1]. */
hfsad_status phase_retrieval_generate(const phase_retrieval *g, dataset **d, double *truth, hfsad_error *err);

/* ceil(ratio M), where ratio M means the decimal number that was written. */
size_t kept_count(double ratio, size_t M);

/* 1/lambda_1 for n observations whose <x,w>^2 add up to sum; 0 where the sum is 0. */
double noise_scale(size_t n, double sum, double snr_db);

/* One noise term from two uniform draws in (0, 1). */
double noise_draw(double scale, double pick, double u);

#endif
