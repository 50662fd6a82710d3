/*
 * Sums over children that a minority of lying children cannot move far. A parent steps on sum u_c / sum sigma_c: the
 * mean of the children's proposals u_c/sigma_c with weights sigma_c. The robust means are formed for each coordinate
 * separately:
 *
 *     trimmed   the mean without the lowest and the highest quarter (rounded down) of the children
 *     median    the median; for an even number of children the mean of the two in the middle
 */
#ifndef HFSAD_CORE_ROBUST_H
#define HFSAD_CORE_ROBUST_H

#include <stddef.h>

enum { AGGREGATE_MEAN, AGGREGATE_TRIMMED, AGGREGATE_MEDIAN };

/* A child's proposal for one coordinate. */
typedef struct {
    double value, weight;
} robust_share;

/* u: n vectors of M numbers; room: n shares. Writes to sum the mean of `kind` (not MEAN) times the sum of sigma;
 * returns the sum of sigma. */
double robust_sum(int kind, size_t M, size_t n, const double *const *u, const double *sigma, robust_share *room,
                  double *sum);

#endif
