/*
 * The inner product for set-up code: element m is added to partial sum m mod 8, multiply and add rounded apart, and the
 * eight sums are added as vec_sum does. The kernels keep the same order but fuse the multiply-add, so their bits
 * differ.
 */
#ifndef HFSAD_MATH_DOT_H
#define HFSAD_MATH_DOT_H

#include <stddef.h>

static inline double dot8(size_t M, const double *a, const double *b)
{
    double p[8] = {0};
    size_t m = 0;
    for (; M - m >= 8; m += 8)
        for (size_t i = 0; i < 8; i++)
            p[i] += a[m + i] * b[m + i];
    for (size_t i = 0; m + i < M; i++)
        p[i] += a[m + i] * b[m + i];
    return ((p[0] + p[4]) + (p[2] + p[6])) + ((p[1] + p[5]) + (p[3] + p[7]));
}

#endif
