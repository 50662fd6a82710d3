/*
 * Groups of nodes that share a model. Either `personal: groups` found them, or links have let go: a link with mcp or
 * scad lets go of a child whose model is gamma lambda or farther away in some coordinate. Such a child is not in its
 * parent's group. The child joins the first group whose first model is closer than that in every coordinate; otherwise
 * it starts a new group. Group 0 is the cloud's group.
 */
#ifndef HFSAD_OUT_GROUPS_H
#define HFSAD_OUT_GROUPS_H

#include "hfsad/hfsad.h"

typedef struct {
    size_t count;    /* 0: no link of the run lets go, and the run did not look for groups */
    uint32_t *group; /* group of every node, in the order of hfsad_run_nodes */
    size_t *clients; /* number of clients in every group */
} node_groups;

enum { GROUPS_MOST = 1000 }; /* upper limit; the last group takes all further nodes */

hfsad_status groups_find(node_groups *g, const hfsad_run *run, hfsad_error *err);
/* Number of clients in group 0 that have the cloud's model: no coordinate that their links tie differs by more than 1%
 * of the largest coordinate. */
size_t groups_count_same(const node_groups *g, const hfsad_run *run);
void groups_free(node_groups *g);

#endif
