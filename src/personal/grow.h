/*
 * The cloud's side of the groups (mixture.h): a mixture is grown from one model by splits. A group is split along the
 * direction in which its clients' gradients differ most, all models are fitted again together with the clients'
 * weights, and the split stays if the BIC falls. The caller transports a question to the clients and sums the answers.
 */
#ifndef HFSAD_PERSONAL_GROW_H
#define HFSAD_PERSONAL_GROW_H

#include "personal/mixture.h"

typedef struct {
    size_t M, boxed; /* boxed: number of leading coordinates that are bounded */
    double box;      /* INFINITY: none */
    size_t n_priors;
    const hfsad_penalty *priors; /* of every group's model */
    const hfsad_loss *loss;      /* of all clients */
    size_t most;                 /* limit on the number of groups */
    size_t least;                /* lower limit on the total weight of a group's clients */
    size_t n_clients;
    double length; /* likely size of a coefficient */
    bool members;  /* ask for the clients' weights at the end; otherwise only for the groups' sizes */
    /* sum: mixture_length numbers; false: give up. */
    bool (*ask)(void *context, const mixture_question *question, double *sum);
    void *context;
} personal_problem;

typedef struct {
    size_t K; /* 1: all clients share one model */
    double T;
    double share[MIXTURE_MOST];
    double *w;                   /* K M */
    double *p;                   /* n_clients K; NULL: not asked for, or one group */
    uint64_t size[MIXTURE_MOST]; /* clients of every group, by their largest weight */
    uint64_t exchanges;          /* questions, each answered by all clients */
    uint64_t down, up;           /* numbers sent to, and by, every client */
    double gain;                 /* fall of the BIC from one group to K */
    bool finished;               /* false: ask failed, or broken */
    bool broken;                 /* models or scale were no longer finite */
} personal_result;

/* w: the start of the first model. false: no memory; the caller frees the result in any case. */
bool personal_grow(const personal_problem *problem, const double *w, personal_result *result);
/* Length of the longest answer. */
size_t personal_longest(const personal_problem *problem);
void personal_free(personal_result *result);

#endif
