/*
 * A device, such as a GPU, that takes the rounds of HFSAD (`hfsad run --device cuda`): the rows, z, q and w of all
 * clients are there, and the steps of all nodes and the figures of the clients are computed there. The module compiles
 * the mathematics of src/math and src/core/link_vec.h for the device, and sums in the order of kernels.h: the bits are
 * those of the processor.
 *
 * A problem is a forest: the first n_roots inner nodes are clouds. A run has one; a batch (device_batch.h) has many,
 * all of one shape.
 */
#ifndef HFSAD_RUN_DEVICE_H
#define HFSAD_RUN_DEVICE_H

#include "hfsad/hfsad.h"
#include "made/draws.h"

/* As penalty_vec has it. */
typedef struct {
    int form;
    double slope, omega, lambda, theta, inv_kappa, reach, bend, ridge;
} device_penalty;

typedef struct {
    hfsad_schedule schedule;
    device_penalty penalty;
} device_rule;

typedef struct {
    size_t at;                    /* the first number of its clients */
    uint32_t parent, leaf, count; /* leaf: the first; count: 0 if its clients are another rank's */
    uint32_t rule;                /* of its clients' links */
    bool below_inner;             /* its parent is not a cloud */
} device_run;

typedef struct {
    uint32_t parent, first_inner, n_inner;
    bool mine; /* this rank's */
    size_t first_run, n_runs;
    device_penalty prior;
    device_rule rule;
} device_node;

/* Clients with many dense rows, as data/dataset.h has them. */
typedef struct {
    size_t n_rows;
    const size_t *first;  /* of each client, and the end; NULL: one row per client, in device_problem */
    const double *x, *y;  /* M numbers a row */
    const double *weight; /* NULL: all 1 */
    const double *factor; /* of each client's weights */
    double *slope;        /* state */
    double tolerance;     /* of rows_solver */
    uint32_t sweeps;
    uint32_t lanes;   /* of the sums over clients: tree_lanes(M) */
    uint64_t *visits; /* rows read are added; NULL: not wanted */
} device_rows;

typedef struct {
    device_rule rule;
    hfsad_loss loss;
    double participation, tolerance; /* tolerance and sweeps: of rows_solver */
    uint32_t local_steps, sweeps;
    uint32_t pace; /* which table of r(k) */
} device_class;

/* Clients that differ, sit out or step several times. */
typedef struct {
    size_t n_classes; /* 0: all clients have the rule of their run, and take one step in every round */
    const device_class *classes;
    const uint16_t *class_of; /* n_leaves; NULL: all are of class 0 */
    uint32_t most_steps;
    uint32_t *k;         /* n_leaves; state */
    uint32_t *last;      /* likewise, of draw_takes_part; NULL: all take part */
    const uint64_t *key; /* likewise */
    uint32_t edge_rounds, at_least_every;
    size_t n_paces, n_roots; /* n_roots: numbers of each table */
    const double *roots;     /* r(0), r(1), … of each pace */
} device_members;

/* Rows that the device draws itself: data/generated.h. */
typedef struct {
    const feature_law *law; /* NULL: x is given */
    const double *keep;     /* M for every edge; NULL: none */
    size_t clients, edges;  /* clients: of every edge */
    size_t first;           /* the first client here, among all */
} device_draw;

/* The caller owns all arrays; those that are not const are the state, copied in both directions. */
typedef struct {
    size_t M, n_leaves, leaf_doubles, n_runs, n_inner, n_roots, n_rules;
    uint32_t depth, rank; /* rank: of this process on its machine, which chooses among several devices */
    const size_t *level;  /* first inner node of each depth, and the end */
    hfsad_loss loss;
    int precision;            /* precision_kind of z and q on the device; not double: all clients are members */
    double split;             /* of it */
    const device_rule *rules; /* of the clients' links */
    const double *x, *y, *n;
    const device_run *runs;
    const device_node *inner;
    double *z, *q, *w; /* w: NULL if it is not kept */
    double *inner_w, *inner_z, *inner_q, *inner_dual;
    double *dual;        /* n_leaves: of the last round that wanted it */
    const double *start; /* of all clients, in place of z, q and w; NULL: these are written */
    device_draw draw;
    device_rows rows;
    device_members members;
} device_problem;

/* r(k) of a round for the counter after it, before it and the next one. */
typedef struct {
    double k, root, before, next;
} device_clock;

typedef struct {
    device_clock leaf, inner;
    bool want_dual;
    uint64_t number;            /* from 1 */
    const device_clock *clocks; /* of every inner node, if they differ; NULL: inner */
    const unsigned char *steps; /* likewise: whether it takes part */
} device_round;

/* Of a run's clients: link_sums (core/kernels.h) and the dual residual of the last round that wanted it. */
typedef struct {
    double loss, consensus_loss, penalty, smoothing, primal, gap, size_w, size_zq, size_multiplier, dual;
} device_figures;

/* All return whether it worked; why: a line if not. */
typedef struct {
    bool (*open)(void **device, const device_problem *p, char *why, size_t size);
    void (*close)(void *device);
    /* The state and the rules to the device. */
    bool (*put)(void *device, const device_problem *p, char *why, size_t size);
    bool (*put_cloud)(void *device, const double *w, char *why, size_t size);
    bool (*round)(void *device, const device_round *r, char *why, size_t size);
    /* The step of every cloud, on the clock of its inner children and of its clients; w: n_roots vectors, out. */
    bool (*step_roots)(void *device, const device_round *r, double *w, char *why, size_t size);
    /* The figures of every run after a round of this clock, and the inner nodes' state. */
    bool (*measure)(void *device, const device_problem *p, const device_round *r, device_figures *figures, char *why,
                    size_t size);
    /* Messages of members so far: one for every step of a client, but of one below a cloud only the first of an
     * iteration.
     */
    bool (*heard)(void *device, uint64_t *count, char *why, size_t size);
    /* The inner nodes' state; of all clients, too. */
    bool (*fetch)(void *device, const device_problem *p, bool all, char *why, size_t size);
    /* Bytes per second that a copy on the device reads and writes, for benchmarks. */
    double (*copy_rate)(void);
} device_table;

/* What a module exports under this name: a device_table. */
#define DEVICE_TABLE "hfsad_device"

#endif
