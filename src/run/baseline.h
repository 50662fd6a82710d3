/*
 * Hierarchical FedAvg and FedProx by sub-gradients, to compare with: the same spec, data, tree, participation and count
 * of bytes as the simulator's. They minimise the consensus objective, sum f_j(w) + sum R_w(w).
 *
 * a_j is the weight of a client's loss, the sum of its rows' weights (1 if loss.scale is mean); F_j = f_j / a_j, the
 * mean over its rows. In round k, with the step t of the rule, a client makes local_steps times
 *
 *     w = P_box( (w - t g + t rho w_parent) / (1 + t rho) ),   g in the subdifferential of F_j(w)      FedAvg: rho = 0
 *
 * from its parent's model, or from its own if the parent has not sent one since the client's last step. An inner
 * node averages those of its children that moved since it last sent, weighted by a (of an inner child: of all clients
 * below), and takes the prox of its prior with the steps made since then, over its own a. Then it sends its model,
 * which all nodes below it adopt. The inner nodes do so in every round, deepest first, the cloud after the last round
 * of a global iteration.
 *
 * A child's own intercept, which its link does not tie, is neither sent nor averaged.
 */
#ifndef HFSAD_RUN_BASELINE_H
#define HFSAD_RUN_BASELINE_H

#include "base/pool.h"
#include "plan/plan.h"
#include "run/subgradient.h"

typedef struct {
    step_rule step; /* constant, power or geometric; counts edge rounds */
    double rho;     /* 0: FedAvg */
} baseline_rule;

/* The numbers that the settings leave to the data. d has its rows in the table. */
hfsad_status baseline_rule_of(baseline_rule *rule, const hfsad_spec *spec, const dataset *d, const plan *p,
                              const double *start, pool *threads, hfsad_error *err);

typedef struct baseline baseline;

/* Keeps references to d, p and truth; takes all memory. d has its rows in the table. start has M numbers; truth too, or
 * is NULL. */
hfsad_status baseline_create(baseline **b, const dataset *d, const plan *p, const baseline_rule *rule,
                             const double *start, const double *truth, pool *threads, hfsad_error *err);
void baseline_free(baseline *b);
void baseline_iterate(baseline *b);
/* objective is the consensus objective; residuals and smoothing gap, which belong to links, are NAN; seconds is left
 * alone. */
void baseline_measure(baseline *b, hfsad_figures *figures);

const double *baseline_inner_model(const baseline *b, size_t i);
/* After the client's last step. */
void baseline_leaf_model(const baseline *b, size_t leaf, double *w);

/* a_j: the sum of the factors of a client's rows in the objective. */
double baseline_mass(const dataset *d, const plan *p, size_t leaf);

#endif
