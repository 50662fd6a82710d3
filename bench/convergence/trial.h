/*
 * The runs of bench/convergence.c: problems, methods, and every method on every trial of a problem.
 *
 * A trial draws everything from its seed. What is looked at after every iteration is one number, 0 for a solution:
 * the relative error of the cloud's model (phase retrieval), or how far its objective is above the optimum, over the
 * optimum (quantile regression).
 */
#ifndef BENCH_CONVERGENCE_TRIAL_H
#define BENCH_CONVERGENCE_TRIAL_H

#include "lab/experiment.h"

typedef struct {
    bool quantile;
    size_t edges, clients, features;
    size_t rows;   /* quantile: of a client; phase retrieval has one */
    double snr_db; /* phase retrieval */
    char label[48];
} problem;

/* Phase retrieval: the sub-gradient method begins at the paper's start and at ours. Quantile regression: at zero. */
enum { STARTS_MOST = 2 };
size_t problem_starts(const problem *p, const char *names[STARTS_MOST]);

typedef enum { BY_PAPER, BY_TUNED, BY_FEDAVG, BY_SUBGRADIENT } method_kind;

typedef struct {
    method_kind kind;
    uint32_t iterations;
    uint32_t edge_rounds; /* K_m; the sub-gradient method: 1 */
    double participation; /* p_c; likewise 1 */
    const char *set;      /* HFSAD: a further setting, "key=value"; NULL: none */
    size_t start;         /* sub-gradient: index into problem_starts */
    step_rule rule;       /* sub-gradient */
    unsigned roles;       /* sub-gradient: what it was chosen for, see report.h */
} method;

/* One run. Seconds are the processor's. Bytes go over all links, up and down; the sub-gradient method's are those of
 * gradients that are summed along the tree, although it may as well have the rows sent to one place. */
typedef struct {
    double *value; /* iterations + 1; INFINITY where it is not finite */
    double setup_seconds, seconds;
    double setup_bytes, bytes; /* before the first iteration, and in all iterations */
    uint64_t repairs;          /* of the safeguard */
} outcome;

typedef struct {
    const problem *problem;
    uint64_t seed; /* of trial 0 */
    size_t trials, methods;
    const method *method;
    outcome *outcome; /* methods x trials */
    bool *unseen;     /* of every trial: a coordinate of the truth is in no row, so nobody can find it */
    double *gap;      /* quantile, of every trial: the optimum is at most this part below what was taken for it */
} campaign;

static inline const outcome *campaign_outcome(const campaign *c, size_t which, size_t trial)
{
    return &c->outcome[which * c->trials + trial];
}

/* Runs all; threads: 0 one per core. Ends the program on failure. */
void campaign_run(campaign *c, const problem *p, uint64_t seed, size_t trials, const method *methods, size_t n_methods,
                  unsigned threads);
void campaign_free(campaign *c);

/* Zeroed memory, for free. */
void *bench_take(size_t count, size_t size);

#endif
