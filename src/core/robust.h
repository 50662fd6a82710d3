/*
 * Sums over children that a minority of liars cannot move far. A parent steps on  sum u_c / sum sigma_c, the mean of
 * what its children propose, u_c/sigma_c with weight sigma_c. Here that mean is taken over each coordinate by itself,
 * as
 *
 *     trimmed   the mean without the lowest and the highest quarter (rounded down) of the children
 *     median    the median; of an even number of children the mean of the two in the middle
 */
#ifndef HFSAD_CORE_ROBUST_H
#define HFSAD_CORE_ROBUST_H

#include <stddef.h>

enum { AGGREGATE_MEAN, AGGREGATE_TRIMMED, AGGREGATE_MEDIAN };

/* A child's proposal for one coordinate. */
typedef struct {
    double value, weight;
} robust_share;

/* u: n vectors of M numbers; room: n shares. Into sum: the mean of `kind` (not MEAN) times the sum of sigma, which is
 * returned. */
double robust_sum(int kind, size_t M, size_t n, const double *const *u, const double *sigma, robust_share *room,
                  double *sum);

#endif
