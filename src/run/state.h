/* What the files of the simulator share: its state, and views of it for the kernels. */
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
    uint16_t class;               /* of all its leaves, or MIXED */
    bool mine;                    /* this rank's (data/shares.h); of another's the numbers are old ones */
    uint32_t stepped, first_time; /* in this round; of those, for the first time in this global iteration */
    double sum_sigma, dual;
} run_of_leaves;

typedef struct {
    uint32_t k, last;
    bool mine;                /* this rank's, as of a run; the cloud is everybody's */
    bool stepped, first_time; /* in this round; and that for the first time in this global iteration */
    double dual;              /* of the last edge round; 0 where it took no part */
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

/* What a thread works with. */
typedef struct {
    double *scratch; /* for a run, or 8 rows of M */
    double *rows;    /* x, z, q, w, u, sum: 6 rows of M */
    double *solver;  /* rows_scratch; NULL if no client has many rows */
    uint8_t *active; /* run_slots(M) */
    double *said;    /* messages of a node's children; NULL: they are only added up (core/robust.h) */
    const double **of;
    double *sigma;
    robust_share *shares;
    uint64_t visits; /* rows read by the clients' steps, for benchmarks */
} thread_space;

/* Behind the message of a unit. */
typedef struct {
    double sigma;
    guard_strain strain;
    double bytes_up, bytes_down; /* of all nodes of the rank; in its first unit */
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
    uint32_t *k, *last; /* leaves; last only if a node may be absent */
    uint64_t *key;      /* likewise */
    many_rows many;
    double *inner_w, *inner_z, *inner_q; /* rows */
    double *leaf_dual;    /* of the last round, in fixed point or if links begin anew, and no client has many rows */
    link_sums *leaf_sums; /* fixed point: of a measurement */
    size_t over;          /* 1 + a node whose message did not fit into fixed point; 0: all did */
    double *said;         /* inner_w as the children hear it in this round; NULL: as it is */
    inner_state *inner;
    size_t n_runs;
    run_of_leaves *runs;
    double *run_u;                 /* n_runs rows: sum of u over the run */
    link_sums *run_sums;           /* of a measurement */
    unit_part *parts;              /* of every unit; NULL: this process is alone */
    double *unit_u;                /* of every unit its message, M numbers, then what unit_rest is */
    struct sim_device *device;     /* takes the rounds (run/device.h); NULL: this processor does */
    uint64_t round_up, round_down; /* bytes of this rank's nodes since the last exchange */
    thread_space *spaces;
    size_t level[HFSAD_TIERS_MAX + 2]; /* first inner node of each depth, and the end */
    uint64_t iteration, round, bytes_up, bytes_down;
    guard_state guard;           /* calm: NULL where nothing is watched */
    hfsad_link_rule *leaf_rules; /* of every class, after the repairs of a star; NULL: the plan's */
    stop_state stop;
    struct anew *anew; /* links that begin anew (anew.h), in the order of their rounds; NULL: none */
    size_t n_anew, next_anew;
    uint8_t *here;      /* nodes, inner ones first, that a measurement is of (replay.c); NULL: all */
    const uint8_t *out; /* leaves that are no members (replay.c): their links do not count; NULL: all are */
    uint8_t *left;      /* leaves that were no members at the end of a record; NULL: all were */
    int unpolished;     /* how the polish of a record failed; 0: it did not */
    uint8_t *lent;      /* nodes whose model is missing: the output has that of the node above; NULL: none */
    bool absences;      /* a node may be absent */
    bool sign_free;     /* the truth's sign cannot be told: all losses are phase retrieval's */
    bool first_round, last_round, want_dual, dual_known;
};

/* Whether a measurement has an inner node, with all below it, and a leaf. */
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
/* A run as the kernels take it. */
leaf_run run_view(const sim *s, const run_of_leaves *r, size_t index, thread_space *space);
/* One leaf of a run of mixed classes, copied out into rows of the space. */
leaf_run leaf_view(const sim *s, size_t leaf, uint32_t parent, thread_space *space);
/* A leaf with many rows. */
rows_leaf rows_view(const sim *s, size_t leaf, thread_space *space);
/* Takes and gives back s->many. */
hfsad_status many_create(sim *s, hfsad_error *err);
void many_free(sim *s);
/* The round of all clients with many rows: the steps, and the sums of every run. */
void many_round(sim *s);
/* Steps of a client on this w, with its noise if there is any; the result is its part of the dual residual. */
double many_step(sim *s, size_t leaf, const double *w_parent, uint32_t steps, thread_space *space);
/* The link of a node begins anew at w (anew.c). */
void sim_restart(sim *s, size_t node, const double *w, bool repaired);
/* Gives nodes that are not tied to their children's intercepts the mean of those. */
void many_settle(sim *s);
/* Between ranks: messages, strains and counts of all units; the tallies of a measurement; before many_settle of the
 * cloud, the intercepts below; and the whole state, after which it is the same on all ranks. */
void ranks_exchange(sim *s);
void ranks_measure(sim *s);
void ranks_intercepts(sim *s, double *sum, double *count);
/* The number of a run's unit, and the place of a unit's message. */
static inline double *unit_message(const sim *s, size_t unit)
{
    return s->unit_u + unit * (s->M + sizeof(unit_rest) / sizeof(double));
}
/* On a device: a round; the end of an iteration, before the cloud's step and after it; the clients' state comes here;
 * or has changed here. */
void device_play(sim *s);
void device_settle(sim *s);
void device_tell_cloud(sim *s);
void device_collect(sim *s);
void device_changed(sim *s);
void device_close(sim *s);
/* Counts what a round has sent. */
void count_round(sim *s);
/* What the figures and the safeguard hear of an inner child of the cloud. */
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
/* Fills said, which is there, for a round. */
void messages_down(sim *s);
/* The message of an inner node's link as the parent hears it, into u; returns its sigma. */
double inner_message(const sim *s, size_t i, double *u);
/* An inner node with its children (cell/cell.h); it takes rows 1, 2 and 4 of the space. */
typedef struct {
    sim *s;
    size_t i;
    thread_space *space;
} sim_cell;
cell sim_cell_of(sim_cell *at);
/* Makes the sum of a run anew, of the messages of its clients. */
void sim_sum_run(sim *s, size_t index, thread_space *space);
/* The parent's w of a view, as its children hear it. */
static inline const double *w_heard(const sim *s, const double *w_parent)
{
    return s->said ? s->said + (w_parent - s->inner_w) : w_parent;
}
/* w, z and q of a node become w. */
void sim_place(sim *s, size_t node, const double *w);
/* Called after every global iteration: detects diverging multipliers, and restarts with a larger c. */
void sim_guard(sim *s);
/* A client's rule after the repairs so far, as sim_find_rules left it at the beginning of the iteration. */
const hfsad_link_rule *sim_leaf_rule(const sim *s, const leaf_class *class);
void sim_find_rules(sim *s);
/* A leaf's step by itself: the view is stepped and put back. */
void sim_step_leaf(sim *s, size_t leaf, leaf_run *one);
/* The step of inner node i, or of the cloud, on the current sums of the runs below it. */
void sim_step_inner(sim *s, size_t i, thread_space *space, const double *w_parent);
/* The link of inner node i to its parent. */
hfsad_link inner_link(const sim *s, size_t i);
/* work(s, i, thread) for first <= i < end, by all threads where `rows` rows of M numbers are enough to do. */
void for_each(sim *s, size_t first, size_t end, size_t rows, void (*work)(void *, size_t, unsigned));

#endif
