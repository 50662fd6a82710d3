/*
 * From a spec and the data to numbers for every link and node, to a start vector, and to whether Theorem 1's conditions
 * hold for those numbers. Any driver of the steps begins here.
 */
#ifndef HFSAD_PLAN_PLAN_H
#define HFSAD_PLAN_PLAN_H

#include "base/words.h"
#include "core/rows_prox.h"
#include "core/scores.h"
#include "math/penalty_kind.h"
#include "plan/scales.h"

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
    bool watched; /* tuned: a tv link of a weight that no multiplier should reach; the cloud's: the star of its clients.
                     The driver sees to it */
} inner_class;

/* Of differential privacy (noise.h); all 0: there is no noise. */
typedef struct {
    double rho, delta, clip; /* rho: of the whole run */
    double round_rho;        /* of each of `rounds` rounds of a client */
    uint64_t rounds, each;   /* rounds: the most of a client; each: of a global iteration */
    bool ahead;              /* a client may have begun the next iteration */
} noise_budget;

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
    bool rounds;          /* what nodes say to each other is rounded, as base/wire.h says */
    int aggregate;        /* AGGREGATE_xxx of core/robust.h */
    bool fixed;           /* what goes up is in fixed point (base/fixed.h) */
    bool secure;          /* and masked */
    int fraction;         /* fixed: bits after the binary point of u/sigma */
    size_t cohort;        /* fixed: least size of a cohort (plan/cohort.h); 0: every child by itself */
    bool async;           /* nodes do not wait for all others, and members may leave their cohorts */
    noise_budget noise;
    double stop_absolute, stop_relative;
    bool cycles;               /* phase retrieval: a run that has frozen begins a new cycle (guard.h) */
    bool keeps_best;           /* not convex, one model: the answer is the best w_0 of all rows (guard.h) */
    double pace;               /* by what r grows in an edge round at last */
    bool positive;             /* features.positive */
    bool errors;               /* standard errors are wanted */
    bool star;                 /* solved by polish/star.h: there are no iterations of HFSAD */
    double gap;                /* relative, at which the star stops */
    uint64_t limit;            /* of the star's rows */
    double star_c;             /* the preset's c of clients, for the safeguard of a star */
    double length;             /* the likely size of a model */
    bool level;                /* data_scales.level */
    size_t owners;             /* nodes with intercepts of their own that a polish can find (owners.h); 0: none */
    uint32_t *owner;           /* n_inner: which of them an inner node is; NULL: the clients are */
    hfsad_own_loss own;        /* of the clients whose loss is their program's */
    score_losses scores;       /* of all clients */
    hfsad_own_loss scores_own; /* the same as functions of a client */
} plan;

/* NULL: rows have one score, or those of softmax.h. */
static inline const score_losses *plan_scores(const plan *p)
{
    return p->scores.K ? &p->scores : NULL;
}

/* After a plan was copied to where it is: what points into it. */
void plan_settle(plan *p);

static inline const leaf_class *plan_leaf(const plan *p, size_t leaf)
{
    return &p->leaf_classes[p->leaf_class_of ? p->leaf_class_of[leaf] : 0];
}

/* The loss of a class of clients as functions of the client; NULL: it is one of rows. */
const hfsad_own_loss *plan_client_loss(const plan *p, const leaf_class *class);

/* Whether clients add noise, so that nothing else is computed from their rows. */
static inline bool plan_has_noise(const plan *p)
{
    return p->noise.rho > 0;
}

/* By what the u of a link is multiplied before it is rounded: a power of two. */
double plan_up_factor(const plan *p, double sigma);

/* Asks for the scales, which are settled unless the star is to solve the problem, and resolves preset and overrides. */
hfsad_status plan_find(plan **p, data_scales *scales, const hfsad_spec *spec, const dataset *d, const surveyor *ask,
                       hfsad_error *err);
/* The same of data in memory. */
hfsad_status plan_create(plan **p, const hfsad_spec *spec, const dataset *d, hfsad_error *err);
/* The same from what the clients' rows come to. Of d only the tree, the names and, to check the labels of two classes,
 * y are looked at. consensus: with tv links everywhere, for what all clients together would find. */
hfsad_status plan_resolve(plan **p, const hfsad_spec *spec, const dataset *d, const data_scales *scales, bool consensus,
                          hfsad_error *err);
void plan_free(plan *p);

/* Whether any link stops pulling a child that is far away. */
bool plan_lets_go(const plan *p, size_t n_inner);

/* omega_0 (docs/algorithm.md, "Presets" and "Theorem 1"), by depth (HFSAD_TIERS_MAX + 2 numbers): what pulls an inner
 * node of that depth from below, with its own prior, the most of its depth. leaf_pull: of one client. */
void omega_0_by_depth(const dataset *d, double leaf_pull, double (*prior_pull)(const hfsad_penalty *, double length),
                      const plan *p, double *omega_0);

/* Start vectors: "zero", "normal", "spectral", "robust" or the path of a file in the user's units. */
hfsad_status start_vector(double *start, const char *kind, const dataset *d, uint64_t seed, const surveyor *ask,
                          hfsad_error *err);
/* What a spec without run.start begins from, where no link lets go. */
const char *start_default(const hfsad_spec *spec);
/* start_vector, and the intercept where a regression has one: by the scales if these are settled, and otherwise a mean.
 * Phase retrieval with run.cycles: or the robust start, if that has the smaller loss. */
hfsad_status start_plain(double *start, const char *kind, const hfsad_spec *spec, const dataset *d,
                         const data_scales *scales, const surveyor *ask, hfsad_error *err);
/* The index-th further start: a direction drawn, of that length. */
void start_draw(double *start, size_t M, uint64_t seed, uint64_t index, double length);
/* Start number `index` of run.tries: the first itself, the others drawn, of its length, or of the likely one where that
 * is 0. */
void start_try(double *start, const double *first, size_t M, uint64_t seed, uint64_t index, double likely);
/* Stages before the run that find its start: iterations of a consensus start, with all nodes tied, and of each of
 * run.tries. The try with the smallest consensus objective is kept, the earliest of equal ones. The run is the last
 * stage. */
enum { START_CONSENSUS_ITERATIONS = 100, START_TRY_ITERATIONS = 20 };
typedef struct {
    size_t M;
    uint64_t seed, stages; /* stages: with the run */
    double likely;         /* length of a model */
    bool consensus;
    double *first; /* M, the driver's: the start of the first stage, then that which the tries are made from */
    double least;  /* objective of the try that is kept; INFINITY at first */
    uint64_t kept, bytes_up, bytes_down; /* bytes: of all stages that counted */
} start_search;
/* Where a stage begins; w may be first. */
void start_search_begin(const start_search *s, uint64_t stage, double *w);
/* A stage has come to w, the cloud's model. If that or a figure is not finite, it is as if it had not been tried. */
void start_search_conclude(start_search *s, uint64_t stage, const hfsad_figures *f, const double *w);
/* What a driver keeps of it. */
void start_search_pass(const word_transfer *t, start_search *s);
/* The intercept, the last coordinate: what the features leave of y, in the mean over the rows. */
hfsad_status start_intercept(double *start, const dataset *d, const surveyor *ask, hfsad_error *err);

/* Whether Theorem 1's conditions hold for the numbers in p. */
typedef struct {
    bool holds;
    bool links_are_tv;
    double nu_f, nu_r;                    /* bounds of the subgradients used */
    double client_alpha_c, client_needed; /* alpha c >= sqrt(20) nu_f, smallest margin over the client links */
    double edge_beta_d, edge_needed;      /* beta d >= sqrt(20) omega_0; 0 without edges */
    double client_weight, client_weight_needed, edge_weight, edge_weight_needed;
    char reason[200]; /* why not, or "" */
} theorem_report;
/* nu_f: the hardest pull of a client, which theorem_bound asks for. d: for the tree. */
hfsad_status theorem_bound(double *nu_f, const surveyor *ask, hfsad_error *err);
void theorem_check(theorem_report *t, const dataset *d, const plan *p, double nu_f);

#endif
