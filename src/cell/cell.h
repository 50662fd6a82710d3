/*
 * A cell: an inner node and its children, as the simulator and a node of a federation both see it. The caller says how
 * to get what a child has said; the order of all sums is here, so that both come to the same bits: inner children one
 * after another, then the clients in runs of run_slots(M) (core/kernels.h).
 *
 * Slots count the inner children first. With plan.fixed the numbers of a message are words (base/fixed.h), which are
 * added up by cohorts: those of a single child may be masked.
 */
#ifndef HFSAD_CELL_CELL_H
#define HFSAD_CELL_CELL_H

#include "core/robust.h"
#include "plan/guard.h"
#include "plan/noise.h"
#include "plan/tally.h"

/* What an inner child reports of its link and all links below it. */
typedef union {
    guard_strain numbers;
    uint64_t words[2]; /* plan.fixed */
} cell_strain;

typedef struct {
    const plan *p;
    size_t M, n_inner, n_leaves;
    void *context;
    /* The last message of a child: u, which may be put into `room` (M numbers), and its sigma. NULL: the child does not
     * count. */
    const double *(*message)(void *context, size_t slot, double *room, double *sigma);
    /* The sum over a run of clients, if kernels have made it; a NULL function: it is made of messages. */
    const double *(*run)(void *context, size_t run, double *sigma);
    double *partial;      /* room: tree_lanes(M) * M; M more if there is no `run` */
    double *room;         /* of messages: M; plan.aggregate: M for every child. NULL: messages are elsewhere */
    const double **said;  /* plan.aggregate: room of every child for a pointer, ... */
    double *sigma;        /* ... a number ... */
    robust_share *shares; /* ... and a share */
} cell;

/* A child's message as words: u becomes them; `members` of them will be added. noise: a client's source of noise, which
 * is in step k of its link, or NULL. false: a number does not fit. */
bool cell_words(const plan *p, size_t M, double sigma, size_t members, const word_source *noise, uint64_t k, double *u);
/* The number of runs of the clients. */
size_t cell_runs(const cell *c);
/* The sum of the messages of one run, into sum; returns that of sigma. */
double cell_sum_run(const cell *c, size_t run, double *sum);
/* The sum of all children's messages, into sum; returns that of sigma. */
double cell_sum(const cell *c, double *sum);

#endif
