/*
 * The sum of the leaves' messages, given one by one in the order of their slots, to the same bits as the kernels'
 * sums over blocks (kernels.h says in which order those add).
 */
#ifndef HFSAD_CORE_FOLD_H
#define HFSAD_CORE_FOLD_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    size_t M, slots, next;
    uint32_t lanes;
    double *partial; /* lanes * M, the caller's */
    double partial_sigma[8];
    double *sum_u; /* M, the caller's: the result */
    double sum_sigma;
} fold;

/* partial: tree_lanes(M) * M doubles of scratch. */
void fold_begin(fold *f, size_t M, double *partial, double *sum_u);
void fold_add(fold *f, const double *u, double sigma);
/* After the last one: sum_u and sum_sigma are the sums. */
void fold_end(fold *f);

#endif
