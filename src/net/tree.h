/* Nodes of a tree whose plan and, for the clients in question, rows are on this machine. Nodes are numbered as in
 * hfsad_run_node_name: the inner ones by depth, 0 the cloud, then the clients. */
#ifndef HFSAD_NET_TREE_H
#define HFSAD_NET_TREE_H

#include "net/node.h"

typedef struct {
    const dataset *d;
    const plan *p;
    const double *start; /* M */
    const dataset *rows; /* NULL: the rows are d's. Otherwise a table, and leaf j of d is leaf own[j] there */
    const size_t *own;
    int intercept; /* INTERCEPT_xxx */
    uint64_t run;
    node_patience patience;
    unsigned exclude_after;
    const uint8_t *out; /* by leaf: no members, until they join; NULL: all are */
    bool async;
    node_pace pace;
    const plan *tied;  /* of a consensus start, which is trained for its iterations; NULL: none */
    const plan *trial; /* of every one of `tries` starts; NULL: there is one */
    uint64_t tries;
    const baseline_rule *average; /* FedAvg or FedProx; NULL: HFSAD */
    size_t part, polish;          /* of node_setup */
    const word_source *noise;     /* by client: of its noise; NULL: by the seed */
} tree;

/* Why an asynchronous federation refuses a spec with draws. */
#define TREE_ASYNC_DRAWS                                                                                               \
    "federation.mode async: nodes take part when they are ready, not by draws; leave out run.participation.client "    \
    "and .edge, and participation in overrides"

/* How long nodes wait before they repeat themselves. What a parent says all its children hear: where they are many, a
 * round takes longer, and repeating too soon would make it longer still. */
node_patience tree_patience(const dataset *d);
/* Asynchronous: how long a node, `tiers` above the lowest, waits for an answer; 0: for ever. */
uint32_t tree_answer_ms(const hfsad_spec *spec, size_t tiers);
/* How the spec wants its federation: patience, async and pace. Refused: what an asynchronous one cannot do. */
hfsad_status tree_settings(tree *t, const hfsad_spec *spec, hfsad_error *err);
/* Nodes that are to train in several stages keep a reference to t. */
hfsad_status tree_node(node **n, const tree *t, size_t number, hfsad_error *err);
/* NO_NODE for the cloud. */
uint32_t tree_parent(const dataset *d, size_t number);
size_t tree_slot(const dataset *d, size_t number);
size_t tree_children(const dataset *d, size_t number);
size_t tree_child(const dataset *d, size_t number, size_t slot);
/* The nodes in the order of MODEL's numbers: a node, then its children with all below them. order: n_inner + n_leaves.
 */
void tree_order(const dataset *d, size_t *order);

#endif
