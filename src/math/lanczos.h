/* The eigenvector of a symmetric matrix's largest eigenvalue, from products with the matrix only. */
#ifndef HFSAD_MATH_LANCZOS_H
#define HFSAD_MATH_LANCZOS_H

#include "hfsad/hfsad.h"

/* product = A v, both M numbers. */
typedef hfsad_status (*matrix_times)(void *context, const double *v, double *product, hfsad_error *err);

/* v: on entry the start, not 0; on return the eigenvector, of length 1. At most `steps` products; fewer if the residual
 * |A v - value v| falls to `tolerance` times the largest |eigenvalue| seen. value may be NULL. */
hfsad_status lanczos_largest(size_t M, size_t steps, double tolerance, matrix_times times, void *context, double *v,
                             double *value, hfsad_error *err);

#endif
