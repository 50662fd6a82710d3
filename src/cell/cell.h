/*
 * A cell: an inner node and its children, for the simulator and for a node of a federation alike. The caller supplies
 * functions that get the message of a child. The order of all sums is fixed here, so that both drivers get the same
 * bits: inner children one after another, then the clients in runs of run_slots(M) (core/kernels.h). Slots count the
 * inner children first. With plan.fixed the numbers of a message are words (base/fixed.h), which are added up by
 * cohorts, because the words of a single child may be masked.
 */
#ifndef HFSAD_CELL_CELL_H
#define HFSAD_CELL_CELL_H

#include "core/robust.h"
#include "plan/guard.h"
#include "plan/noise.h"
#include "plan/tally.h"

/* What an inner child reports about its link and all links below it. */
typedef union {
    guard_strain numbers;
    uint64_t words[2]; /* plan.fixed */
} cell_strain;

typedef struct {
    const plan *p;
    size_t M, n_inner, n_leaves;
    void *context;
    /* The last message of a child: u, which may be stored in `room` (M numbers), and its sigma. NULL: the child does
     * not count. */
    const double *(*message)(void *context, size_t slot, double *room, double *sigma);
    /* The sum over a run of clients, if kernels have formed it. If the function is NULL, the sum is formed from
     * messages. */
    const double *(*run)(void *context, size_t run, double *sigma);
    /* The answer of a child, or of a run of clients together, to the question for figures; false: no answer. If the
     * function for runs is NULL, a run is summed from its clients. */
    bool (*tally)(void *context, size_t slot, tally *t);
    void (*run_tally)(void *context, size_t run, tally *t);
    /* The same with plan.fixed: words, which may be stored in `room`. */
    const uint64_t *(*tally_words)(void *context, size_t slot, uint64_t *room);
    /* What an inner child reports to the safeguard. */
    cell_strain (*strain)(void *context, size_t slot);
    double *partial;      /* room for tree_lanes(M) * M numbers; M more if there is no `run` */
    double *room;         /* room for messages: M numbers; with plan.aggregate M for every child; NULL: not needed */
    const double **said;  /* plan.aggregate: room for a pointer for every child, ... */
    double *sigma;        /* ... a number ... */
    robust_share *shares; /* ... and a share */
} cell;

/* Turns a child's u into words; `members` such messages will be added. noise: a client's source of noise for step k of
 * its link, or NULL. false: a number does not fit. */
bool cell_words(const plan *p, size_t M, double sigma, size_t members, const word_source *noise, uint64_t k, double *u);
/* Writes the sum of the messages of one run to sum; returns the sum of sigma. */
double cell_sum_run(const cell *c, size_t run, double *sum);
/* Writes the sum of all children's messages to sum; returns the sum of sigma. */
double cell_sum(const cell *c, double *sum);
/* Adds the answers of all children to the node's own part of the figures. */
void cell_add_tallies(const cell *c, size_t tiers, tally *t);
/* The strain of the links below, for the safeguard; the same including the node's own link, which is sent to its
 * parent. */
guard_strain cell_strain_below(const cell *c);
guard_strain cell_strain_up(const cell *c, const inner_class *class, const hfsad_link_rule *rule,
                            const hfsad_link *link);

/* An inner node's own part of the figures: its prior, and its link, which is NULL for the cloud. */
typedef struct {
    const inner_class *class;
    const hfsad_link_rule *rule;
    const hfsad_link *link;
    const double *w, *w_parent;
    double dual;  /* dual residual of its last step */
    size_t depth; /* 0: the cloud */
} cell_node;
tally cell_own_tally(const cell_node *n, size_t M, const double *w0);

/* The link of a node to its parent, and the slopes of a client's rows. */
typedef struct {
    double *w, *z, *q; /* M each; NULL: the caller sets them */
    uint32_t *k;
    double *dual; /* residual of the last step; NULL: not kept */
    double *slope, *eta;
    size_t rows; /* length of slope; 0 if slope is NULL */
} cell_link;
/* Starts the link again at w: after a repair of the safeguard, or because the node is readmitted. */
void cell_begin_anew(const cell_link *l, size_t M, const double *w, bool repaired);

/* Intercepts of clients or edges: the nodes above are not tied to them and report the mean over the clients below. */
typedef struct {
    bool client, edge; /* clients have their own intercept; otherwise edges */
} intercept_owner;
/* sum: of the children's intercepts; of clients only if they have their own. leaves: number of clients that answered.
 * w: the node's own intercept. true: the node reports *mean instead. */
bool cell_settle(const cell *c, intercept_owner owner, size_t leaves, double w, double *sum, double count,
                 double *mean);

#endif
