/*
 * Intercepts of clients or edges as coordinates of one model: star and polish solve for the coefficients, which all
 * nodes share, and behind them an intercept for every node that has its own. Of several scores each has K numbers.
 *
 *     w1 … wF, b1 … bO        a row of a client of node o has its constant in coordinate F + o
 */
#ifndef HFSAD_PLAN_OWNERS_H
#define HFSAD_PLAN_OWNERS_H

#include "plan/plan.h"

/* Answers of all clients to one question have this many numbers at most: each has one for every intercept. */
enum { OWNERS_NUMBERS_MOST = 1 << 24 };

/* Fills owners and owner of the plan, whose losses and priors are known. */
hfsad_status owners_find(plan *p, const hfsad_spec *spec, const dataset *d, hfsad_error *err);
/* Coordinates of star and polish; M: numbers of a node's model. */
size_t owners_coordinates(const plan *p, const dataset *d);
/* Which intercept a client's rows have; 0 if there is only one. */
size_t owners_of(const plan *p, const dataset *d, size_t leaf);
/* From a node's model to the coordinates: each owner has its intercept. */
void owners_spread(const plan *p, const dataset *d, const double *w, double *all);
/* From the coordinates to a node's model; inner nodes without an intercept have the mean of their clients'. */
void owners_model(const plan *p, const dataset *d, size_t node, const double *all, double *w);

#endif
