/*
 * The plan of a run: spec and data resolved to numbers for every link and node; the start vector; the check of Theorem
 * 1's conditions for these numbers. Every driver of the steps uses it.
 */
#ifndef HFSAD_PLAN_PLAN_H
#define HFSAD_PLAN_PLAN_H

#include "base/words.h"
#include "core/precision.h"
#include "core/rows_prox.h"
#include "core/scores.h"
#include "math/penalty_kind.h"
#include "plan/scales.h"

/* Settings that all clients of a class share. */
typedef struct {
    hfsad_loss loss;
    hfsad_link_rule rule;
    double participation;
    uint32_t local_steps;
    rows_solver solver; /* for clients with many rows */
    bool mean;          /* its loss is the mean over the rows */
} leaf_class;

typedef struct {
    hfsad_penalty prior;
    hfsad_link_rule rule; /* of the link to the parent; unused at the root */
    double participation;
    bool watched; /* the safeguard watches the link: a tv link of preset tuned, whose weight no multiplier should reach;
                     of the cloud: the links of its clients, in a tree with one tier */
} inner_class;

/* Budget of differential privacy (noise.h); all 0: no noise. */
typedef struct {
    double rho, delta, clip; /* rho: of the whole run */
    double round_rho;        /* of each of `rounds` rounds of a client */
    uint64_t rounds, each;   /* rounds: largest number of rounds of a client; each: rounds of a global iteration */
    bool ahead;              /* a client may have begun the next iteration */
    double row;              /* the budget is one for each row: the most by which a row pulls; 0: for each client */
    double sigma;            /* then: the least of a client's first step */
} noise_budget;

/* Everything that a run needs besides data and start: presets and overrides resolved to numbers. */
typedef struct {
    size_t n_leaf_classes;
    leaf_class *leaf_classes;
    uint16_t *leaf_class_of; /* n_leaves; NULL: all are class 0 */
    inner_class *inner;      /* n_inner */
    uint64_t seed;
    uint32_t edge_rounds, at_least_every;
    uint64_t iterations;
    uint64_t trace_every; /* figures are measured every trace_every iterations; 0: never */
    bool keep_w;          /* keep every client's own w */
    bool rounds;          /* messages are rounded (base/wire.h) */
    int aggregate;        /* AGGREGATE_xxx of core/robust.h */
    bool fixed;           /* messages to the parent are in fixed point (base/fixed.h) */
    bool secure;          /* secure aggregation: these messages are masked */
    int fraction;         /* fixed: bits after the binary point of u/sigma */
    size_t cohort;        /* fixed: smallest size of a cohort (plan/cohort.h); 0: no cohorts */
    bool async;           /* nodes do not wait for all others, and members may leave their cohorts */
    double largest;       /* bound of the numbers of models that a client steps on or is asked about; NAN: none */
    noise_budget noise;
    double stop_absolute, stop_relative;
    bool cycles;        /* phase retrieval: a run that no longer moves begins a new cycle (guard.h) */
    bool keeps_best;    /* not convex, one model: the answer is the best w_0 of all rows (guard.h) */
    double split;       /* run.precision: of core/precision.h; 0: double */
    double pace;        /* growth of r in an edge round, in the limit */
    bool positive;      /* features.positive */
    bool errors;        /* output.errors: compute standard errors */
    bool star;          /* solved by polish/star.h, without iterations of HFSAD */
    double gap;         /* relative gap at which the star stops */
    uint64_t limit;     /* upper limit on the star's rows */
    double star_c;      /* the clients' c by the preset, for the safeguard in a tree with one tier */
    double length;      /* the likely size of a model */
    bool level;         /* data_scales.level */
    size_t owners;      /* number of nodes with their own intercepts, which the polish solves for (owners.h); 0: none */
    uint32_t *owner;    /* n_inner: number of the owner that an inner node is; NULL: clients are the owners */
    hfsad_own_loss own; /* the caller's own loss */
    score_losses scores;       /* losses with several scores, the same for all clients */
    hfsad_own_loss scores_own; /* the same as functions of a client */
} plan;

/* NULL: rows have one score, or those of core/softmax.h. */
static inline const score_losses *plan_scores(const plan *p)
{
    return p->scores.K ? &p->scores : NULL;
}

/* Call it after a plan was copied: corrects the pointers into the plan itself. */
void plan_settle(plan *p);

static inline const leaf_class *plan_leaf(const plan *p, size_t leaf)
{
    return &p->leaf_classes[p->leaf_class_of ? p->leaf_class_of[leaf] : 0];
}

/* The loss of a class of clients as functions of a whole client; NULL: it is a sum over rows. */
const hfsad_own_loss *plan_client_loss(const plan *p, const leaf_class *class);

/* Whether clients add noise; nothing else is then computed from their rows. */
static inline bool plan_has_noise(const plan *p)
{
    return p->noise.rho > 0;
}

/* The start of a client's link by run.precision. */
static inline void plan_shorten(const plan *p, size_t M, double *w)
{
    for (size_t m = 0; m < M && p->split > 0; m++)
        w[m] = precision_round(p->split, w[m]);
}

/* The factor of a link's u before rounding: a power of two. */
double plan_up_factor(const plan *p, double sigma);

/* Asks for the scales, which are settled unless the star is to solve the problem, and resolves preset and overrides. */
hfsad_status plan_find(plan **p, data_scales *scales, const hfsad_spec *spec, const dataset *d, const surveyor *ask,
                       hfsad_error *err);
/* The same of data in memory. */
hfsad_status plan_create(plan **p, const hfsad_spec *spec, const dataset *d, hfsad_error *err);
/* The same from the scales of the data. Of d it reads only the tree, the names and y (to check the labels of two
 * classes). consensus: with tv links everywhere, for a consensus start. */
hfsad_status plan_resolve(plan **p, const hfsad_spec *spec, const dataset *d, const data_scales *scales, bool consensus,
                          hfsad_error *err);
void plan_free(plan *p);

/* Whether any link lets a child that is far away keep its own model. */
bool plan_lets_go(const plan *p, size_t n_inner);

/* omega_0 (docs/algorithm.md, "Presets" and "Theorem 1"), by depth (HFSAD_TIERS_MAX + 2 numbers): the largest
 * pull on an inner node of that depth from below, its own prior included. leaf_pull: the pull of one client. */
void omega_0_by_depth(const dataset *d, double leaf_pull, double (*prior_pull)(const hfsad_penalty *, double length),
                      const plan *p, double *omega_0);

/* Start vectors: "zero", "normal", "spectral", "robust" or the path of a file in the user's units. */
hfsad_status start_vector(double *start, const char *kind, const dataset *d, uint64_t seed, const surveyor *ask,
                          hfsad_error *err);
/* The default of run.start if no link lets go. */
const char *start_default(const hfsad_spec *spec);
/* Number of steps from each of two starts of phase retrieval, after which they are compared. */
enum { START_STEPS = 60 };
/* start_vector with the intercept of a regression: by the scales if these are settled, otherwise a mean. Phase
 * retrieval with run.cycles: the robust start instead, if that leads to a smaller loss. */
hfsad_status start_plain(double *start, const char *kind, const hfsad_spec *spec, const dataset *d,
                         const data_scales *scales, const surveyor *ask, hfsad_error *err);
/* Draws further start number index: a random direction with this length. */
void start_draw(double *start, size_t M, uint64_t seed, uint64_t index, double length);
/* Stages before the run that find its start: iterations of a consensus start, with all nodes tied, and of each of
 * run.tries. The try with the smallest consensus objective is kept, the earliest of equal ones. The run is the last
 * stage. */
enum { START_CONSENSUS_ITERATIONS = 100, START_TRY_ITERATIONS = 20 };
typedef struct {
    size_t M;
    uint64_t seed, stages; /* stages: the run included */
    double likely;         /* length of a model */
    bool consensus;
    double
        *first;   /* M numbers of the driver: start of the first stage, then the start from which the tries are drawn */
    double least; /* objective of the best try; INFINITY at first */
    uint64_t kept, bytes_up, bytes_down; /* bytes of all stages that count */
} start_search;
/* The start of a stage; w may be `first`. */
void start_search_begin(const start_search *s, uint64_t stage, double *w);
/* A stage has ended at w, the cloud's model. A stage with a figure or a model that is not finite does not count. */
void start_search_conclude(start_search *s, uint64_t stage, const hfsad_figures *f, const double *w);
/* Packs or unpacks the state that a driver stores. */
void start_search_pass(const word_transfer *t, start_search *s);

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
/* nu_f: the largest pull of a client; theorem_bound asks the clients for it. Of d only the tree is used. */
hfsad_status theorem_bound(double *nu_f, const surveyor *ask, hfsad_error *err);
void theorem_check(theorem_report *t, const dataset *d, const plan *p, double nu_f);

#endif
