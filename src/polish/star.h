/*
 * The first part of the solver for convex problems: a star of all clients around the cloud, in coordinates that the
 * data chose. With the metric of star_client.h a round is
 *
 *     cloud     z = argmin h(z) + sigma/2 |z|^2_G - sigma m' z,    m = sum of B_j s_j
 *     clients   x_j = argmin f_j(x) + sigma/2 |x - (2 z - s_j)|^2_Bj,  s_j <- anchor/(t+2) + (t+1)/(t+2) (s_j + 2 (x_j
 * - z))
 *
 * (h: priors and box), which is Halpern's iteration on the Peaceman-Rachford splitting. It restarts when the residual
 * has fallen or has become old; sigma then follows the ratio of dual to primal movement. Clients send the sum of their
 * rows' slopes, p_j = sum a_r x_r, from which the cloud makes m: B_j (x_j - z) = B_j (z - s_j) - p_j / sigma, and the
 * B_j add up to G.
 *
 * Above `direct` coordinates, or where the clients' matrices would take too much memory, G and B_j are diagonal.
 */
#ifndef HFSAD_POLISH_STAR_H
#define HFSAD_POLISH_STAR_H

#include "polish/inner.h"

typedef struct {
    void *context;
    /* After every round, with the point of the smallest objective so far; returns whether to continue. */
    bool (*round)(void *context, const double *w, double objective, double primal, double dual);
    /* Asks for a bound at w; returns whether it is small enough. */
    bool (*certify)(void *context, const double *w);
    /* Once, on the way: whether other columns are needed, which ends the star; NULL: there are no others. */
    bool (*look)(void *context, const double *w);
    double gap;     /* relative: the goal */
    double least;   /* F at the start */
    double per_row; /* rounds of a row of the trace */
    bool stays;     /* with its diagonal metric: a client has no memory for the whole one */
    bool hard;      /* Newton's method would need many second derivatives */
    bool alone;     /* Newton's method would not be better: losses with kinks and too many coordinates for its matrix */
} star_watch;

/* From s->w, until the watch ends it or another method is cheaper: Newton's or, if slow is set, a star with the metric
 * of all columns together. false: no memory, or no answer. */
bool star_solve(polish_state *s, const star_watch *watch, bool *slow);

#endif
