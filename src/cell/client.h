/* A client with many rows, for the simulator and for a node of a federation alike: the steps of a round, its part of
 * the figures, and the cloud's model with the intercept that applies to its rows. */
#ifndef HFSAD_CELL_CLIENT_H
#define HFSAD_CELL_CLIENT_H

#include "core/kernels.h"
#include "plan/noise.h"

/* Noise of differential privacy on a client's messages (plan/noise.h). */
typedef struct {
    const plan *p;
    word_source words; /* for plain aggregation */
    double *z, *q;     /* room for M numbers each */
    int64_t *steps;    /* room: M */
} client_noise;

/* The local steps of a round; returns the dual residual of the last step. noise: NULL for none; with noise, local_steps
 * is 1. *too_large is set if a number does not fit into fixed point, or a step was not solved as exactly as the noise
 * requires. */
double client_steps(const rows_leaf *leaf, uint32_t times, client_noise *noise, bool *too_large);
/* Adds the client's part of the figures, at its w and at w0 (see client_view). */
void client_measure(const rows_leaf *leaf, const double *w, const double *w0, link_sums *sums);
/* w0, the cloud's model, whose last number is replaced by the client's or its edge's intercept if they have their own;
 * room: M numbers. */
const double *client_consensus(size_t M, const double *w0, const double *intercept, double *room);

#endif
