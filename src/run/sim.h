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

/* Keeps references to d and p; takes all memory. start has M numbers; truth too, or is NULL. */
hfsad_status sim_create(sim **s, const dataset *d, const plan *p, const double *start, const double *truth,
                        pool *threads, hfsad_error *err);
void sim_free(sim *s);
void sim_iterate(sim *s);
/* seconds is left alone; dual residuals are NAN where the iteration was not to be measured */
void sim_measure(sim *s, hfsad_figures *figures);
bool sim_converged(const sim *s);
/* The rounds go to the device of this name from now on (device.h); before the first. s may be NULL, which it refuses.
 */
hfsad_status sim_use_device(sim *s, const char *name, hfsad_error *err);
/* Why the state cannot be trusted: the device has failed; NULL: it has not. */
const char *sim_failure(const sim *s);
/* If several ranks train: the state of the inner nodes comes to every rank, that of the clients to rank 0, which
 * writes it. All ranks call it. */
void sim_collect(sim *s);

/* Of a replay: whether the end went without the node. */
run_absence sim_absence(const sim *s, size_t node);
const double *sim_cloud(const sim *s);                 /* w_0 */
const double *sim_inner_model(const sim *s, size_t i); /* w of inner node i */
/* The cloud's best w of all rows and its objective (plan/guard.h); NULL: none is kept. */
const double *sim_best(const sim *s, double *objective);
void sim_leaf_model(const sim *s, size_t leaf, double *w);
/* The intercept of the leaf's rows with the cloud's coefficients: its own, its parent's or the cloud's. Only if there
 * is one. */
double sim_intercept(const sim *s, size_t leaf);
/* w, z and q of a node (inner ones first, then the leaves) become w: before the first iteration only, because a link
 * that has stepped has its multiplier in z and q. */
void sim_set_model(sim *s, size_t node, const double *w);
/* State of a link: leaf or inner node's link to its parent (i >= 1). z, q: M numbers each. last: the global
 * iteration in which it last took part, 0 for none. */
typedef struct {
    uint32_t k, last;
} link_counters;
link_counters sim_leaf_link(const sim *s, size_t leaf, double *z, double *q);
link_counters sim_inner_link(const sim *s, size_t i, double *z, double *q);

/* The rule of inner node i's link as it is in force, and how often the safeguard (guard.c) had to change it. */
hfsad_link_rule sim_inner_rule(const sim *s, size_t i);
uint64_t sim_repairs(const sim *s, uint64_t *last_iteration);

/* Whether the truth's sign cannot be told: all losses are phase retrieval's. */
bool signs_are_free(const plan *p, size_t n_leaves);
/* min(|a-b|^2, |a+b|^2)/|b|^2 where the sign cannot be told (phase retrieval), |a-b|^2/|b|^2 otherwise. */
double relative_error(size_t M, const double *estimate, const double *truth, bool sign_free);
/* Of a model as the run has it, without the intercept, against a truth in the user's units. scratch: M numbers. */
double model_error(const dataset *d, const double *w, const double *truth, bool sign_free, double *scratch);

/* 1 + a node whose message did not fit into fixed point; 0: all did. */
size_t sim_too_large(const sim *s);

#endif
