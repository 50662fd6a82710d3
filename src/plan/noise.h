/*
 * Noise of differential privacy (docs/privacy.md). A client's round comes to a vector of whole multiples of a step, a
 * power of two: its distance from a centre that its parent knows, clipped to `most` steps in length, and on every
 * coordinate a discrete Gaussian of `variance` steps^2. Everything that its parent can learn of the round follows from
 * this vector. Whatever rows the client has, two such vectors without noise are at most 2 most apart, so that a round
 * costs (2 most)^2 / (2 variance) of rho.
 *
 * Plain aggregation: the centre is the parent's w, and the client's w with its noise takes the place of w before its
 * link steps. Secure aggregation: the centre is sigma w of the parent; u is clipped as the client steps, which moves z
 * and q, and the client's share of the noise is added to the words of UP.
 */
#ifndef HFSAD_PLAN_NOISE_H
#define HFSAD_PLAN_NOISE_H

#include "base/gaussian.h"
#include "plan/plan.h"

typedef struct {
    double step;
    int64_t most;      /* steps */
    uint64_t variance; /* steps^2, of all noise on a sum */
} noise_lattice;

/* rho: of a round; radius: of the ball that is clipped to; least: no step is smaller. */
noise_lattice noise_lattice_of(double rho, double radius, double least);

/* Plain, of a step with this sigma on M numbers: if the budget is one for each row, less noise is enough. */
noise_lattice noise_lattice_at(const noise_budget *b, double sigma, size_t M);
/* rows_problem.pull: a step ends within this over sigma of its solution. 0: the budget is one for each client. */
double noise_pull(const noise_budget *b);
/* Finds out by how much a row pulls, if the budget is one for each row. */
hfsad_status noise_take_rows(plan *p, const hfsad_spec *spec, hfsad_error *err);
/* A format for the node's name. */
#define NOISE_INEXACT                                                                                                  \
    "%.60s: a step was not solved as closely as privacy.record needs, or a number is too large; scale the columns"

/* The parts of a spec that noise needs or excludes; one line on the first that is wrong. */
hfsad_status noise_check_spec(const hfsad_spec *spec, hfsad_error *err);
/* The rounds that the budget is divided over, once the draws of all clients are known: the most of a client. */
void noise_count_rounds(plan *p, const dataset *d);
/* The budget of a spec with noise, divided over all rounds. */
noise_budget noise_budget_of(const hfsad_spec *spec);
/* Of the noise on a coordinate of a client's model in a round; secure: of the sum over a cohort, in the same units. */
double noise_deviation(const noise_budget *b);
/* The likely size of what a client says. */
double noise_size(const noise_budget *b);
/* Refused: a budget so small that nothing but noise would be said, and shares of noise on too coarse a lattice. */
hfsad_status noise_check_budget(const plan *p, hfsad_error *err);
/* Spent after this number of global iterations. */
double noise_spent(const noise_budget *b, uint64_t iterations);

/* The seed of a client's words in a simulation. */
uint64_t noise_key(uint64_t seed, const char *client);

/* Clips v to `most` steps around centre: out is what is left, in whole steps. A vector that is not finite is the
 * centre itself. */
void noise_clip(const noise_lattice *l, size_t M, const double *centre, const double *v, int64_t *out);

/* Plain: w becomes what the client says of it, in step k of its link with this sigma. steps: room for M numbers. */
void noise_model(const noise_budget *b, const word_source *words, uint64_t k, double sigma, size_t M,
                 const double *w_parent, double *w, int64_t *steps);
/* Secure: a link that has stepped comes to a u that is clipped. u, centre: room for M numbers each. false: numbers are
 * so large that rounding would undo it. */
bool noise_clip_link(const plan *p, const hfsad_link_rule *rule, hfsad_link *link, size_t M, const double *w_parent,
                     double *u, double *centre, int64_t *steps);
/* Secure: the share of one of `members` on the words of u at step k. */
void noise_words(const plan *p, const word_source *words, uint64_t k, size_t members, double sigma, size_t M,
                 int64_t *u);

#endif
