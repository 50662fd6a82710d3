/* Symmetric matrices as their lower triangle, row by row, and the Cholesky factor L in its place. */
#ifndef HFSAD_POLISH_TRIANGLE_H
#define HFSAD_POLISH_TRIANGLE_H

#include <stddef.h>

/* A pivot that rounding has destroyed is restored. fast: with fused multiply-adds, which give other bits. */
void triangle_factorise(size_t M, double *h);
void triangle_factorise_fast(size_t M, double *h);
/* Replaces v by (L L')^-1 v. */
void triangle_solve(size_t M, const double *l, double *v);
/* Replaces v by L^-1 v; many: for vectors stored one after the other, which is faster. */
void triangle_forward(size_t M, const double *l, double *v);
void triangle_forward_many(size_t M, const double *l, size_t count, double *v);
/* product = matrix v */
void triangle_product(size_t M, const double *h, const double *v, double *product);
/* L becomes a square matrix of M lines with M numbers each; the memory must have room. */
void triangle_spread(size_t M, double *l);
/* product = L v, and L' v, for such a matrix */
void square_lower(size_t M, const double *l, const double *v, double *product);
void square_upper(size_t M, const double *l, const double *v, double *product);

#endif
