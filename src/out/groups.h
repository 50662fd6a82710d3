/*
 * Groups of nodes with their own model. `personal: groups` found them, or links let go: a link with mcp or scad lets go
 * of a child that is gamma lambda or farther away in some coordinate; such a child is not in its parent's group. It
 * joins the first group whose first model is closer than that in every coordinate, or starts a new one. Group 0 is that
 * of the cloud.
 */
#ifndef HFSAD_OUT_GROUPS_H
#define HFSAD_OUT_GROUPS_H

#include "hfsad/hfsad.h"

typedef struct {
    size_t count;    /* 0: no link of the run lets go, and no groups were looked for */
    uint32_t *group; /* of every node, in the order of hfsad_run_nodes */
    size_t *clients; /* of every group */
} node_groups;

enum { GROUPS_MOST = 1000 }; /* those beyond are in the last one together */

hfsad_status groups_find(node_groups *g, const hfsad_run *run, hfsad_error *err);
/* How many clients of group 0 have the cloud's model: no coordinate that their links tie is off by more than 1% of its
 * largest. */
size_t groups_count_same(const node_groups *g, const hfsad_run *run);
void groups_free(node_groups *g);

#endif
