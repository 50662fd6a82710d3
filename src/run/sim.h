/*
 * The in-process driver: Algorithm 1 over a tree in memory. It owns the state of all links and calls the steps
 * of src/core and src/math.
 */
#ifndef HFSAD_RUN_SIM_H
#define HFSAD_RUN_SIM_H

#include "base/pool.h"
#include "plan/plan.h"
#include "run/readmission.h"

typedef struct sim sim;

/* Keeps references to d and p, and allocates all memory. start has M numbers; truth has M numbers or is NULL. */
hfsad_status sim_create(sim **s, const dataset *d, const plan *p, const double *start, const double *truth,
                        pool *threads, hfsad_error *err);
void sim_free(sim *s);
void sim_iterate(sim *s);
/* seconds is not set; dual residuals are NAN if the plan does not measure this iteration */
void sim_measure(sim *s, hfsad_figures *figures);
bool sim_converged(const sim *s);
/* Moves the rounds to the device of this name (device.h); call it before the first round. NULL for s is an error. */
hfsad_status sim_use_device(sim *s, const char *name, hfsad_error *err);
/* The reason for a failure of the device, after which the state is not valid; NULL: no failure. s may be NULL. */
const char *sim_failure(const sim *s);
/* Several ranks: copies the state of the inner nodes to every rank, and the state of the clients to rank 0, which
 * writes it. All ranks must call it. */
void sim_collect(sim *s);

/* Replay: whether the end of the run lacks the node. */
run_absence sim_absence(const sim *s, size_t node);
const double *sim_cloud(const sim *s);                 /* w_0 */
const double *sim_inner_model(const sim *s, size_t i); /* w of inner node i */
/* The cloud's best w of all rows, and its objective (plan/guard.h); NULL: the run does not keep it. */
const double *sim_best(const sim *s, double *objective);
void sim_leaf_model(const sim *s, size_t leaf, double *w);
/* The intercept that a leaf uses with the cloud's coefficients: its own, its parent's or the cloud's. Only if the model
 * has an intercept. */
double sim_intercept(const sim *s, size_t leaf);
/* Sets w, z and q of a node (inner nodes first, then leaves) to w. Only before the first iteration, because z and q of
 * a link that has stepped contain its multiplier. */
void sim_set_model(sim *s, size_t node, const double *w);
/* State of the link of a leaf or of inner node i >= 1 to its parent. z, q: M numbers each. last: the last global
 * iteration in which it took part, 0: none. */
typedef struct {
    uint32_t k, last;
} link_counters;
link_counters sim_leaf_link(const sim *s, size_t leaf, double *z, double *q);
link_counters sim_inner_link(const sim *s, size_t i, double *z, double *q);

/* The current rule of inner node i's link, and the number of the safeguard's repairs (plan/guard.c). */
hfsad_link_rule sim_inner_rule(const sim *s, size_t i);
uint64_t sim_repairs(const sim *s, uint64_t *last_iteration);

/* Whether the sign of the truth cannot be determined: all losses are phase retrieval. */
bool signs_are_free(const plan *p, size_t n_leaves);
/* min(|a-b|^2, |a+b|^2)/|b|^2 if sign_free (phase retrieval), otherwise |a-b|^2/|b|^2. */
double relative_error(size_t M, const double *estimate, const double *truth, bool sign_free);
/* The relative error of a model of the run, without its intercept, against a truth in the user's units. scratch: M
 * numbers. */
double model_error(const dataset *d, const double *w, const double *truth, bool sign_free, double *scratch);

/* 1 + a node whose message did not fit into fixed point; 0: all did. */
size_t sim_too_large(const sim *s);

#endif
