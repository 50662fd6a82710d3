/*
 * From a spec and the data to numbers for every link and node, to a start vector, and to whether Theorem 1's conditions
 * hold for those numbers. Any driver of the steps begins here.
 */
#ifndef HFSAD_PLAN_PLAN_H
#define HFSAD_PLAN_PLAN_H

#include "model/rows.h"
#include "spec/settings.h"

/* What a class of leaves has in common. */
typedef struct {
    hfsad_loss loss;
    hfsad_link_rule rule;
    double participation;
    uint32_t local_steps;
    rows_solver solver; /* of a client with many rows */
    bool mean;          /* its loss is the mean over the rows */
} leaf_class;

typedef struct {
    hfsad_penalty prior;
    hfsad_link_rule rule; /* of the link to the parent; unused at the root */
    double participation;
} inner_class;

/* Everything a run needs besides data and start: presets and overrides resolved to numbers. */
typedef struct {
    size_t n_leaf_classes;
    leaf_class *leaf_classes;
    uint16_t *leaf_class_of; /* n_leaves; NULL: all are class 0 */
    inner_class *inner;      /* n_inner */
    uint64_t seed;
    uint32_t edge_rounds, at_least_every;
    uint64_t iterations;
    uint64_t trace_every; /* the dual residual is formed in the iterations that will be measured; 0: in none */
    bool keep_w;          /* keep every client's own w */
    double stop_absolute, stop_relative;
} plan;

static inline const leaf_class *plan_leaf(const plan *p, size_t leaf)
{
    return &p->leaf_classes[p->leaf_class_of ? p->leaf_class_of[leaf] : 0];
}

/* Resolves preset and overrides against the data. */
hfsad_status plan_create(plan **p, const hfsad_spec *spec, const dataset *d, hfsad_error *err);
void plan_free(plan *p);

/* Bound of |phi'(s)| by which the presets scale: exact for the Lipschitz losses, the paper's 5 for phase retrieval,
 * |y| for the squared loss (its slope at s = 0). */
double loss_slope_bound(const hfsad_loss *loss, double y);

/* Bound of a client's subgradients |sum weight phi'(s) x|, over its rows or their mean. reach > 0: of every |w_m|, for
 * the squared loss; 0: at w = 0. */
double loss_pull(const dataset *d, size_t leaf, const hfsad_loss *loss, bool mean, double reach);

/* omega_0 of section 6 and of Theorem 1, by depth (HFSAD_TIERS_MAX + 2 numbers): what pulls an inner node of that depth
 * from below, with its own prior, the most of its depth. leaf_pull: of one client. */
void omega_0_by_depth(const dataset *d, double leaf_pull, double (*prior_pull)(const hfsad_penalty *), const plan *p,
                      double *omega_0);

/* Start vectors. "zero", "normal", "spectral" or a file's path. */
hfsad_status start_vector(double *start, const char *kind, const dataset *d, uint64_t seed, hfsad_error *err);

/* Whether Theorem 1's conditions hold for the numbers in p. */
typedef struct {
    bool holds;
    bool links_are_tv;
    double nu_f, nu_r;                    /* bounds of the subgradients used */
    double client_alpha_c, client_needed; /* alpha c >= sqrt(20) nu_f, smallest margin over the client links */
    double edge_beta_d, edge_needed;      /* beta d >= sqrt(20) omega_0, 0 where there are no edges */
    double client_weight, client_weight_needed, edge_weight, edge_weight_needed;
    char reason[200]; /* why not, or "" */
} theorem_report;
void theorem_check(theorem_report *t, const dataset *d, const plan *p);

#endif
