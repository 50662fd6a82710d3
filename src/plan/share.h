/* A node's share of the state of a run: what a checkpoint needs of it, wherever the node was trained. */
#ifndef HFSAD_PLAN_SHARE_H
#define HFSAD_PLAN_SHARE_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    const double *w;     /* M */
    const double *z, *q; /* M each, of its link; not of the root */
    uint32_t k, last;    /* the link's counter, and the global iteration in which it last took part */
    double dual;         /* of the last edge round */
    const double *slope; /* of a client with many rows, one for each; NULL: none */
    double eta;          /* likewise */
} run_share;

#endif
