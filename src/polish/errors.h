/*
 * Standard errors of a model at the minimum: the roots of the diagonal of the sandwich
 *
 *     V = H^-1 S H^-1       H = sum of c bend x x' + ridge,   S = sum of c^2 slope^2 x x'
 *
 * which holds if the rows are independent, whatever their variances. H and S are sums over the clients' rows, so that a
 * federation finds them as it finds the model. The width of a kink's density is Hall's and Sheather's (errors.c).
 */
#ifndef HFSAD_POLISH_ERRORS_H
#define HFSAD_POLISH_ERRORS_H

#include "polish/inner.h"

/* Computes V at w into s->p->variance; all NAN if the questions are not answered. */
void polish_errors(polish_state *s, const double *w);
/* Converts V in a run's coordinates (its lower triangle) to standard errors in the units of the data. false: no
 * memory. */
bool errors_to_user(const dataset *d, const double *variance, double *errors);

#endif
