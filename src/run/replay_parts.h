/* Internal declarations of replay.c and replay_read.c: the record in memory. */
#ifndef HFSAD_RUN_REPLAY_PARTS_H
#define HFSAD_RUN_REPLAY_PARTS_H

#include "run/replay.h"
#include "run/state.h"

static const uint64_t NO_LINE = UINT64_MAX, ABSENT = UINT64_MAX - 1;

typedef struct {
    uint32_t slot;
    uint64_t version, k;
} entry;

typedef struct {
    size_t number; /* line number in the file */
    bool end;
    bool heard;    /* entries alone: no step */
    uint64_t life; /* above 0: its link restarts after `step` steps */
    uint64_t step, version;
    size_t first, count; /* of its entries */
} line;

/* Lines and state of an inner node. */
typedef struct {
    line *lines;
    size_t n_lines, room, next;
    uint64_t steps, down;               /* down: number of vectors sent to its children */
    uint64_t read_steps, read_life;     /* of the lines read so far */
    uint64_t life;                      /* of its link */
    uint64_t told;                      /* counter of its last message to its parent, with the life above 32 bits */
    uint64_t turns, turns_before, base; /* messages to its parent; at the begin of this life: the same, and its steps */
    bool owned;                         /* the record has lines of this node itself, */
    uint64_t owned_from;                /* from this life on; 0: from the first */
    bool copied;                        /* the copies of lost lines are complete */
    bool over;                          /* readmitted after the end: its further lines are void */
    size_t lag;                         /* age of the oldest version that is needed */
    double *ring;                       /* lag + 1 models; NULL: the record is only checked */
} inner_record;

/* A question for figures between the first and the last. */
typedef struct {
    uint64_t round;
    uint64_t *at; /* by node, inner nodes first: number of steps, or counter of a leaf's link, with the life above 32
                   * bits; or NO_LINE, ABSENT */
    uint64_t *version; /* by leaf: the version that its last step used */
    sim *shown;        /* the nodes at the moments of their answers; NULL: not open, or complete */
    size_t filled;     /* number of nodes in `shown` */
    size_t wanted;     /* number of nodes that are not absent */
    uint8_t *here;     /* by node: not absent; NULL: all */
    uint64_t up, down;
    double *leaf_dual;
} row;

typedef struct {
    sim *s;
    const char *path;
    const replay_rows *listener;
    row *rows; /* by round */
    size_t n_rows, rows_room, opened, told;
    sim **spare; /* simulations for `shown`; as many as were open at the same time */
    size_t n_spare, spare_room;
    uint64_t *turns; /* by leaf: number of turns */
    int unpolished;  /* reason for which the polish failed, 0: it did not */
    stop_state stop;
    bool met;
    inner_record *inner;
    entry *entries;
    size_t n_entries, room;
    uint8_t *gone; /* by node: the last figures lack it or a node above it */
    uint8_t *out;  /* by leaf: has left, or has not joined yet */
    uint8_t *lent; /* by node: its model, or the model of a node above it, is missing */
    size_t n_gone, n_lent;
    uint64_t *leaf_k; /* by leaf: counter of the link, with the life of the link above the lowest 32 bits */
    double *leaf_dual;
    double *model; /* M */
    uint64_t up, down;
    hfsad_error *err;
} replay;

/* The number of all nodes; inner nodes come first. */
static inline size_t nodes_of(const sim *s)
{
    return s->d->n_inner + s->d->n_leaves;
}

static inline size_t parent_of(const dataset *d, size_t node)
{
    return node < d->n_inner ? d->inner[node].parent : dataset_parent(d, node - d->n_inner);
}

hfsad_status replay_bad_line(const replay *r, size_t number, const char *what);
/* The row of a round, created if it is missing; NULL: no memory. */
row *replay_row(replay *r, uint64_t round);
/* Reads the lines of a record. */
hfsad_status replay_read(replay *r, const char *text, size_t size);

#endif
