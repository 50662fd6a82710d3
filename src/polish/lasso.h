/*
 * The cloud's step of the star (star.h): the minimum of
 *
 *     w' G w / 2 - b' w + sum over m of  l1_m |w_m| + ridge_m w_m^2 / 2        |w_m| <= box_m
 *
 * and some w_m >= 0, by an active set. Coordinates are free, at 0 or at their box. The free coordinates solve a linear
 * system; a coordinate that would pass 0 or its box stops there.
 */
#ifndef HFSAD_POLISH_LASSO_H
#define HFSAD_POLISH_LASSO_H

#include <stdbool.h>
#include <stddef.h>

typedef struct {
    size_t M;
    const double *G; /* lower triangle, row by row; or the diagonal alone */
    bool diagonal;
    const double *b, *l1, *ridge, *box; /* M each; box: INFINITY: none */
    double factor;                      /* factor of l1 and ridge */
    size_t positive;                    /* number of leading coordinates that may not be below 0 */
} lasso_problem;

typedef struct lasso lasso;

lasso *lasso_create(size_t M, bool diagonal);
void lasso_free(lasso *l);
/* w: on entry the start, on return the minimum. */
void lasso_solve(lasso *l, const lasso_problem *p, double *w);

#endif
