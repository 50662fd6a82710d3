/*
 * The in-process driver: Algorithm 1 over a tree in memory. It owns the state of all links and calls the steps;
 * the mathematics is in src/admm and src/math.
 */
#ifndef HFSAD_SIM_SIM_H
#define HFSAD_SIM_SIM_H

#include "base/pool.h"
#include "model/dataset.h"
#include "spec/settings.h"

/* What a class of leaves has in common. */
typedef struct {
    hfsad_loss loss;
    hfsad_link_rule rule;
    double participation;
    uint32_t local_steps;
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

/* Resolves preset and overrides against the data. */
hfsad_status plan_create(plan **p, const hfsad_spec *spec, const dataset *d, hfsad_error *err);
void plan_free(plan *p);

/* Bound of |phi'(s)| by which the presets scale: exact for the Lipschitz losses, the paper's 5 for phase retrieval,
 * |y| for the squared loss (its slope at s = 0). */
double loss_slope_bound(const hfsad_loss *loss, double y);

typedef struct sim sim;

/* Keeps references to d and p; takes all memory. start has M numbers; truth too, or is NULL. */
hfsad_status sim_create(sim **s, const dataset *d, const plan *p, const double *start, const double *truth,
                        pool *threads, hfsad_error *err);
void sim_free(sim *s);
void sim_iterate(sim *s);
/* seconds is left alone; dual residuals are NAN where the iteration was not to be measured */
void sim_measure(sim *s, hfsad_figures *figures);
bool sim_converged(const sim *s);

const double *sim_cloud(const sim *s);                 /* w_0 */
const double *sim_inner_model(const sim *s, size_t i); /* w of inner node i */
void sim_leaf_model(const sim *s, size_t leaf, double *w);
/* State of a link: leaf or inner node's link to its parent (i >= 1). z, q: M numbers each. last: the global
 * iteration in which it last took part, 0 for none. */
typedef struct {
    uint32_t k, last;
} link_counters;
link_counters sim_leaf_link(const sim *s, size_t leaf, double *z, double *q);
link_counters sim_inner_link(const sim *s, size_t i, double *z, double *q);

/* min(|a-b|^2, |a+b|^2)/|b|^2 where the sign cannot be told (phase retrieval), |a-b|^2/|b|^2 otherwise. */
double relative_error(size_t M, const double *estimate, const double *truth, bool sign_free);

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
