/* What the files of a replay share: the record as it was read. */
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
    size_t number; /* in the file */
    bool end;
    bool heard;    /* entries alone: no step */
    uint64_t life; /* above 0: its link begins anew after `step` steps */
    uint64_t step, version;
    size_t first, count; /* of its entries */
} line;

/* What is known of an inner node. */
typedef struct {
    line *lines;
    size_t n_lines, room, next;
    uint64_t steps, down;               /* and vectors that it has sent down */
    uint64_t read_steps, read_life;     /* of the lines so far */
    uint64_t life;                      /* of its link */
    uint64_t told;                      /* of its last message to its parent: counter, and life above 32 bits */
    uint64_t turns, turns_before, base; /* messages to its parent; the same, and its steps, when this life began */
    bool owned;                         /* the record has lines of its own, */
    uint64_t owned_from;                /* from this life on; 0: from the first */
    bool copied;                        /* copies of its parent's were read up to there */
    bool over;                          /* it was readmitted after the end: what follows counts for nothing */
    size_t lag;                         /* of the oldest version that is needed */
    double *ring;                       /* lag + 1 models; NULL: the plan is only checked */
} inner_record;

/* A question between the first and the last. */
typedef struct {
    uint64_t round;
    uint64_t *at; /* of every node, inner ones first: its steps, or its link's counter, with the life above 32 bits; or
                     NO_LINE, ABSENT */
    uint64_t *version; /* of every leaf: that of its last step */
    sim *shown;        /* the nodes as they were asked; NULL: not open, or done */
    size_t filled;     /* nodes that are there */
    size_t wanted;     /* nodes that are not absent */
    uint8_t *here;     /* of every node whether it is wanted; NULL: all are */
    uint64_t up, down;
    double *leaf_dual;
} row;

typedef struct {
    sim *s;
    const char *path;
    const replay_rows *listener;
    row *rows; /* by round */
    size_t n_rows, rows_room, opened, told;
    sim **spare; /* simulations to show rows in; as many as were open at once */
    size_t n_spare, spare_room;
    uint64_t *turns; /* of the leaves */
    int unpolished;  /* how the polish failed, 0: it did not */
    stop_state stop;
    bool met;
    inner_record *inner;
    entry *entries;
    size_t n_entries, room;
    uint8_t *gone; /* nodes that the last figures went without, or that are below one */
    uint8_t *out;  /* leaves that are no members now */
    uint8_t *lent; /* the same of the models */
    size_t n_gone, n_lent;
    uint64_t *leaf_k; /* the life of the link above the lowest 32 bits */
    double *leaf_dual;
    double *model; /* M */
    uint64_t up, down;
    hfsad_error *err;
} replay;

/* Every node, inner ones first. */
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
/* The lines of a record. */
hfsad_status replay_read(replay *r, const char *text, size_t size);

#endif
