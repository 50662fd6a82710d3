/* A client with many rows, as the simulator and a node of a federation both have it: the steps of a round, its part of
 * the figures, and the cloud's model as its rows see it. */
#ifndef HFSAD_CELL_CLIENT_H
#define HFSAD_CELL_CLIENT_H

#include "core/kernels.h"
#include "plan/noise.h"

/* Noise of differential privacy on what a client sends (plan/noise.h). */
typedef struct {
    const plan *p;
    word_source words; /* plain aggregation */
    double *z, *q;     /* room: M each */
    int64_t *steps;    /* room: M */
} client_noise;

/* The local steps of a round; returns the dual residual of the last. noise: NULL for none; local_steps is then 1.
 * *too_large is set if a number does not fit into fixed point, or a step is not solved as closely as noise needs. */
double client_steps(const rows_leaf *leaf, uint32_t times, client_noise *noise, bool *too_large);
/* Adds the client's part of the figures, at its w and at w0, the cloud's model as its rows see it. */
void client_measure(const rows_leaf *leaf, const double *w, const double *w0, link_sums *sums);
/* w0, the last number of which is the client's or its edge's intercept if one of them has its own; room: M numbers. */
const double *client_consensus(size_t M, const double *w0, const double *intercept, double *room);

#endif
