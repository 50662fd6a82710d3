/*
 * The last stage of a run (`run.polish`): from the end of the iterations to the minimum of the consensus problem, in
 * which all nodes share one w,
 *
 *     F(w) = sum over leaves f_j(w) + sum over inner nodes R_w(w)        |w_m| <= box
 *
 * without smoothing. The cloud's side: it asks all clients at once, sees the sums of their answers (client.h) and owns
 * the priors and the box. The caller transports a question to the clients and sums the answers.
 *
 * Method: proximal method of multipliers with semismooth Newton. Each outer step minimises the sum of the envelopes and
 * a small proximal term by Newton's method, then the multipliers move; kappa shrinks where the gap does not. For phase
 * retrieval and the concave part of scad and mcp this is one stage; at its end both are linearised again. Phase
 * retrieval first searches for a low valley (search.h).
 */
#ifndef HFSAD_POLISH_POLISH_H
#define HFSAD_POLISH_POLISH_H

#include "polish/answers.h"

/* A row of the trace: after every round of the star and every outer step of Newton's method. */
typedef struct {
    uint64_t number;  /* from 1 */
    double objective; /* F at the best point so far */
    double primal, dual;
    double bound;      /* upper bound on its distance from the minimum; INFINITY: unknown yet */
    uint64_t down, up; /* as in polish_result, so far */
    const double *w;
} polish_row;

/* What one star keeps for the next, because a path solves problems that differ only in their priors. */
typedef struct {
    bool known;   /* the clients have their metric, whose sum is G */
    double *G;    /* room for it: star_metric_size numbers */
    double total; /* sum of the rows' weights */
    double first; /* sigma of a star without earlier rounds */
    double sigma; /* sigma of the last round; 0: use first */
    /* Gives every client s_j = w - B_j^-1 sum a_r x_r / sigma by the slopes a_r of its rows. sum: of all a_r x_r. */
    bool (*resume)(void *context, const double *w, double sigma, double *sum);
} star_memory;

/* Numbers of G. */
static inline size_t star_metric_size(size_t columns, bool whole)
{
    return whole ? columns * (columns + 1) / 2 : columns;
}

typedef struct choice choice;

typedef struct {
    size_t M;
    size_t boxed;  /* number of leading coordinates that are bounded */
    double box;    /* INFINITY: none */
    bool positive; /* these are not below 0 */
    size_t n_priors;
    const hfsad_penalty *priors; /* one for every inner node */
    size_t direct;               /* limit on the coordinates for POLISH_HESSIAN; beyond it POLISH_PRODUCT is asked */
    bool anchored;               /* some client's loss is phase retrieval */
    bool endless;                /* some rows' losses may fall for ever, and none has a kink: a minimum may not exist */
    bool one_sided;              /* some rows' losses do not grow on one side: nothing limits how far a better w is */
    bool star;                   /* the problem is convex, and this is all of the run */
    bool rounds;                 /* begin with star.h */
    bool whole_metric;           /* its metric is not the diagonal only, from the beginning */
    size_t whole_most;           /* coordinates up to which it may become so */
    star_memory *memory;         /* NULL: nothing is kept */
    bool may_choose;             /* clients know POLISH_CHOOSE, and have the memory for it */
    choice *choice;              /* NULL: all coordinates (choice.h) */
    size_t clients;
    size_t owned; /* the last coordinates: intercepts that only some clients have; 0: none */
    uint64_t seed;
    double length;    /* the likely size of a model */
    double gap;       /* ends when F is proven to be this close to its minimum, relatively; 0: to rounding */
    uint64_t limit;   /* limit on the number of rows; 0: none */
    double *variance; /* room for the lower triangle of V (errors.h), filled at the end; NULL: not wanted */
    double level;     /* level of a quantile, for the variance; 0: the losses have no kink */
    /* May be NULL. */
    void (*row)(void *context, const polish_row *row);
    /* sum: polish_length numbers; false: give up. */
    bool (*ask)(void *context, const polish_question *question, double *sum);
    void *context;
} polish_problem;

typedef struct {
    double before, after; /* F at the start, clipped to the box, and at w */
    double zero;          /* F at 0: the reference for `after` */
    double bound;         /* how far F may be above the minimum of the last stage's convex problem, never less than it
                             is; INFINITY: not known */
    double residual;      /* largest derivative of its Lagrangian over the sum of what it is made of */
    uint64_t exchanges;   /* questions, each answered by all clients */
    uint64_t down, up;    /* numbers sent to, and by, every client */
    uint32_t stages;
    bool finished;          /* false: ask failed, or no memory */
    bool endless, vanishes; /* there is no minimum (endless.h); and the loss of every row goes to 0 */
} polish_result;

/* w: on entry the start, on return the best point found, never above the start. false: no memory. */
bool polish_solve(const polish_problem *problem, double *w, polish_result *result);

#endif
