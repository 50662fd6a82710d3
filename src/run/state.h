/* Internal declarations of the simulator: its state, and views of it for the kernels. */
#ifndef HFSAD_RUN_STATE_H
#define HFSAD_RUN_STATE_H

#include "cell/cell.h"
#include "core/kernels.h"
#include "data/shares.h"
#include "run/sim.h"

enum { MIXED = 0xffff };

/* Consecutive leaves of one parent. */
typedef struct {
    uint32_t parent, first_slot, count;
    uint16_t class; /* class of all its leaves, or MIXED */
    bool mine;      /* this rank computes it (data/shares.h); numbers of other ranks' runs are out of date */
    uint32_t stepped, first_time; /* leaves that step in this round; leaves among them that step for the first time in
                                     this global iteration */
    double sum_sigma, dual;
} run_of_leaves;

typedef struct {
    uint32_t k, last;
    bool mine;                /* this rank computes it; every rank computes the cloud */
    bool stepped, first_time; /* steps in this round; steps for the first time in this global iteration */
    double dual;              /* dual residual of the last edge round; 0 if the node took no part */
    uint64_t key;
    size_t first_run, n_runs;
} inner_state;

/* Additional data for clients with many rows; all NULL if there are none. */
typedef struct {
    double *slope;            /* n_rows */
    double *anchor;           /* n_rows; NULL: no phase retrieval */
    double *eta;              /* n_leaves; NULL: no client is linearised */
    double *factor;           /* n_leaves: of the rows' weights */
    squared_factor **squared; /* n_leaves; NULL: no squared loss is factored */
    uint8_t *active;          /* n_leaves */
    double *intercept;        /* 2 n_inner: room for many_settle */
    uint64_t *noise;          /* n_leaves: seeds of their noise; NULL: none */
    double *dual;             /* n_leaves: sigma^2 (|dz|^2 + |dq|^2) of this round */
} many_rows;

/* Scratch memory of a thread. */
typedef struct {
    double *scratch; /* for a run, or 8 rows of M */
    double *rows;    /* x, z, q, w, u, sum: 6 rows of M */
    double *solver;  /* rows_scratch; NULL if no client has many rows */
    uint8_t *active; /* run_slots(M) */
    double *said;    /* messages of a node's children, for core/robust.h; NULL: plain sums */
    const double **of;
    double *sigma;
    robust_share *shares;
    uint64_t visits; /* rows read by the clients' steps, for benchmarks */
} thread_space;

/* Numbers that follow the message of a unit. */
typedef struct {
    double sigma;
    guard_strain strain;
    double bytes_up, bytes_down; /* sums over all nodes of the rank; only in its first unit */
} unit_rest;

/* A unit's part of a measurement. */
typedef struct {
    tally below;    /* of an inner child, with its link */
    link_sums sums; /* of a run */
    double dual;
} unit_part;

struct sim {
    const dataset *d;
    const plan *p;
    const double *truth;
    pool *threads;
    size_t M;
    double *z, *q, *w;  /* leaves, block layout; w may be NULL */
    double *leaf_start; /* where all leaves begin, whose z, q and w are not written yet; NULL: they are */
    uint32_t *k, *last; /* leaves; last only if a node may be absent */
    uint64_t *key;      /* likewise */
    many_rows many;
    double *inner_w, *inner_z, *inner_q; /* rows */
    double
        *leaf_dual; /* of the last round; only with fixed point or restarting links, and if no client has many rows */
    link_sums *leaf_sums; /* fixed point: of a measurement */
    size_t over;          /* 1 + a node whose message did not fit into fixed point; 0: all did */
    double *said;         /* inner_w as the children receive it in this round; NULL: not rounded */
    inner_state *inner;
    size_t n_runs;
    run_of_leaves *runs;
    double *run_u;                 /* n_runs rows: sum of u over the run */
    link_sums *run_sums;           /* of a measurement */
    unit_part *parts;              /* by unit; NULL: one process */
    double *unit_u;                /* by unit: its message, M numbers, then a unit_rest */
    struct sim_device *device;     /* computes the rounds (run/device.h); NULL: this processor does */
    uint64_t round_up, round_down; /* bytes of this rank's nodes since the last exchange */
    thread_space *spaces;
    size_t level[HFSAD_TIERS_MAX + 2]; /* first inner node of each depth, and the end */
    uint64_t iteration, round, bytes_up, bytes_down;
    guard_state guard;           /* calm is NULL if the safeguard is off */
    hfsad_link_rule *leaf_rules; /* by class, after repairs in a tree with one tier; NULL: the rules of the plan */
    stop_state stop;
    struct anew *anew; /* links that restart (anew.h), in the order of their rounds; NULL: none */
    size_t n_anew, next_anew;
    uint8_t *here;      /* by node, inner nodes first: part of a measurement (replay.c); NULL: all */
    const uint8_t *out; /* by leaf: has left or not joined yet (replay.c), and its link does not count; NULL: none */
    uint8_t *left;      /* by leaf: had left at the end of a record; NULL: none */
    int unpolished;     /* reason for which the polish of a record failed; 0: it did not */
    uint8_t *lent;      /* by node: its model is missing, and the output has its parent's; NULL: none */
    bool absences;      /* a node may be absent */
    bool sign_free;     /* the sign of the truth cannot be determined: all losses are phase retrieval */
    bool first_round, last_round, want_dual, dual_known;
};

/* Whether a measurement includes an inner node with all nodes below it; whether it includes a leaf. */
static inline bool inner_is_here(const sim *s, size_t i)
{
    return !s->here || s->here[i];
}
static inline bool leaf_is_here(const sim *s, size_t leaf)
{
    return !s->here || s->here[s->d->n_inner + leaf];
}
/* The first leaf of a run. */
size_t run_first_leaf(const sim *s, const run_of_leaves *r);
/* A run in the form that the kernels need. */
leaf_run run_view(const sim *s, const run_of_leaves *r, size_t index, thread_space *space);
/* One leaf of a run of mixed classes, copied out into rows of the space. */
leaf_run leaf_view(const sim *s, size_t leaf, uint32_t parent, thread_space *space);
/* A leaf with many rows. */
rows_leaf rows_view(const sim *s, size_t leaf, thread_space *space);
/* Allocates and frees s->many. */
hfsad_status many_create(sim *s, hfsad_error *err);
void many_free(sim *s);
/* The round of all clients with many rows: the steps, and the sums of every run. */
void many_round(sim *s);
/* Steps of a client on this w, with its noise if there is any; returns its part of the dual residual. */
double many_step(sim *s, size_t leaf, const double *w_parent, uint32_t steps, thread_space *space);
/* Restarts the link of a node at w (anew.c). */
void sim_restart(sim *s, size_t node, const double *w, bool repaired);
/* Gives nodes that are not tied to their children's intercepts the mean of those. */
void many_settle(sim *s);
/* Exchanges between ranks: messages, strains and counts of all units; the tallies of a measurement; the intercepts
 * below the cloud, before many_settle; the whole state, after which all ranks have the same. */
void ranks_exchange(sim *s);
void ranks_measure(sim *s);
void ranks_intercepts(sim *s, double *sum, double *count);
/* The number of a run's unit, and the place of a unit's message. */
static inline double *unit_message(const sim *s, size_t unit)
{
    return s->unit_u + unit * (s->M + sizeof(unit_rest) / sizeof(double));
}
/* On a device: one round; the cloud's step, and whether the device took it; copy the cloud's w to the device; copy the
 * figures of all runs and the inner nodes' state from the device, and whether it has them; copy all state from the
 * device; note that the state here has changed. */
void device_play(sim *s);
bool device_step_cloud(sim *s);
void device_tell_cloud(sim *s);
bool device_measure(sim *s);
void device_collect(sim *s);
/* The same for the inner nodes alone. */
void device_collect_inner(sim *s);
/* Writes the leaves' start, if it is not written yet. device_collect does it, too. */
void sim_settle_leaves(sim *s);
void device_changed(sim *s);
void device_close(sim *s);
/* Counts the bytes that a round has sent. */
void count_round(sim *s);
/* What the figures and the safeguard receive from an inner child of the cloud. */
tally sim_tally_of(sim *s, size_t i);
cell_strain sim_strain_of(sim *s, size_t i);
/* The answers of node i's children, for its cell. */
bool measure_inner_child(void *context, size_t slot, tally *t);
void measure_run_of(void *context, size_t run, tally *t);
const uint64_t *measure_words(void *context, size_t slot, uint64_t *room);
/* Adds the figures of a run's clients. */
void many_measure(const sim *s, const run_of_leaves *r, thread_space *space, link_sums *sums);
/* Fills active for a run's leaves, and counts the participants and those that take part for the first time in this
 * iteration. */
void draw_run(sim *s, run_of_leaves *r, uint8_t *active);
/* Fills s->said, which must not be NULL, for a round. */
void messages_down(sim *s);
/* Writes the message of an inner node's link, as the parent receives it, to u; returns its sigma. */
double inner_message(const sim *s, size_t i, double *u);
/* An inner node with its children (cell/cell.h); it uses rows 1, 2 and 4 of the thread's space. */
typedef struct {
    sim *s;
    size_t i;
    thread_space *space;
} sim_cell;
cell sim_cell_of(sim_cell *at);
/* Recomputes the sum of a run from the messages of its clients. */
void sim_sum_run(sim *s, size_t index, thread_space *space);
/* The parent's w of a view, as the children receive it. */
static inline const double *w_heard(const sim *s, const double *w_parent)
{
    return s->said ? s->said + (w_parent - s->inner_w) : w_parent;
}
/* Sets w, z and q of a node to w. */
void sim_place(sim *s, size_t node, const double *w);
/* Called after every global iteration: detects diverging multipliers, and restarts with a larger c. */
void sim_guard(sim *s);
/* A client's rule after the repairs so far, as sim_find_rules left it at the beginning of the iteration. */
const hfsad_link_rule *sim_leaf_rule(const sim *s, const leaf_class *class);
void sim_find_rules(sim *s);
/* The step of a single leaf; writes the view back. */
void sim_step_leaf(sim *s, size_t leaf, leaf_run *one);
/* The step of inner node i, or of the cloud, on the current sums of the runs below it. */
void sim_step_inner(sim *s, size_t i, thread_space *space, const double *w_parent);
/* The link of inner node i to its parent. */
hfsad_link inner_link(const sim *s, size_t i);
/* Calls work(s, i, thread) for first <= i < end, on all threads if `rows` rows of M numbers are enough work. */
void for_each(sim *s, size_t first, size_t end, size_t rows, void (*work)(void *, size_t, unsigned));

#endif
