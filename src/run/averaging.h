/*
 * The steps of hierarchical FedAvg and FedProx by sub-gradients (docs/baselines.md), used by the in-process driver
 * (baseline.h) and by the nodes of a federation (node_averaging.c). They minimise sum f_j(w) + sum R_w(w).
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
#ifndef HFSAD_RUN_AVERAGING_H
#define HFSAD_RUN_AVERAGING_H

#include "plan/tally.h"
#include "run/subgradient.h"

typedef struct {
    step_rule step; /* constant, power or geometric; counts edge rounds */
    double rho;     /* 0: FedAvg */
} baseline_rule;

/* From the settings; a step that they leave to the data is asked for. */
hfsad_status baseline_rule_of(baseline_rule *rule, const hfsad_spec *spec, const dataset *d, const plan *p,
                              const double *start, const surveyor *ask, hfsad_error *err);
/* The same with a step that was found before. */
baseline_rule baseline_rule_with(const hfsad_spec *spec, const plan *p, double step);

/* The least local_steps of a client: a client with more makes shorter steps, or its loss would count for more. */
uint32_t averaging_least_steps(const plan *p);
/* The sum of the steps that clients make in a round, counted from 0. */
static inline double averaging_steps(const baseline_rule *rule, uint32_t least_steps, uint64_t round)
{
    return step_length(&rule->step, round, 0, 0) * least_steps;
}

/* a_j */
double averaging_mass(const leaf_class *class, const client_rows *rows);
/* A client's local steps in a round; g: M numbers. */
void averaging_step(const baseline_rule *rule, uint32_t least_steps, const leaf_class *class, const client_rows *rows,
                    size_t M, uint64_t round, const double *anchor, double *w, double *g);

/* A child as its parent averages it. */
typedef struct {
    const double *w;
    double mass; /* 0: it did not move */
    bool own;    /* its last coordinate is its own */
} averaging_part;

/* The model of a node from those of its n children, and the prox of its prior for these steps. False: none moved, and w
 * stays. If all children have their own intercepts, the model contains their mean; it is not sent. */
bool averaging_mean(const hfsad_penalty *prior, double step, size_t M, size_t n,
                    averaging_part (*part)(const void *context, size_t slot), const void *context, bool intercept,
                    double *w);

/* A client's part of the figures: w0 has its own intercept if it has one. */
void averaging_measure(const leaf_class *class, const client_rows *rows, size_t M, const double *w, const double *w0,
                       link_sums *sums);
/* Largest difference of the first M numbers. */
double averaging_gap(size_t M, const double *w, const double *w0);
/* A row of the trace: objective is the consensus objective; residuals and smoothing gap, which belong to links, are
 * NAN. seconds and relative_error are left alone. */
void averaging_figures(const tally *t, size_t M, size_t tiers, uint64_t iteration, hfsad_figures *f);
bool averaging_is_finite(const hfsad_figures *f);

#endif
