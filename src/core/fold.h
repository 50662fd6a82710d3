/*
 * The sum of the leaves' messages, added one by one in the order of their slots. The bits are those of the kernels'
 * sums over blocks (kernels.h states the order of summation).
 */
#ifndef HFSAD_CORE_FOLD_H
#define HFSAD_CORE_FOLD_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    size_t M, slots, next;
    uint32_t lanes;
    double *partial; /* lanes * M, owned by the caller */
    double partial_sigma[8];
    double *sum_u; /* M, owned by the caller: the result */
    double sum_sigma;
} fold;

/* partial: scratch of tree_lanes(M) * M doubles. */
void fold_begin(fold *f, size_t M, double *partial, double *sum_u);
void fold_add(fold *f, const double *u, double sigma);
/* Called after the last message: sum_u and sum_sigma are then the sums. */
void fold_end(fold *f);

#endif
