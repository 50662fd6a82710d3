/* Creation of the nodes of a tree, from the plan and the rows of this process's clients. Nodes are numbered as in
 * hfsad_run_node_name: inner nodes by depth, with the cloud as 0, then clients. */
#ifndef HFSAD_NET_TREE_H
#define HFSAD_NET_TREE_H

#include "net/node.h"

typedef struct {
    const dataset *d;
    const plan *p;
    const double *start; /* M */
    const dataset *rows; /* NULL: d has the rows. Otherwise a table of rows in which leaf j of d is leaf own[j] */
    const size_t *own;
    int intercept; /* INTERCEPT_xxx */
    uint64_t run;
    node_patience patience;
    unsigned exclude_after;
    const uint8_t *out; /* by leaf: the client has not joined yet; NULL: all have */
    bool async;
    node_pace pace;
    const plan *tied;  /* plan of the consensus start; NULL: no consensus start */
    const plan *trial; /* plan of each of `tries` starts; NULL: one start */
    uint64_t tries;
    const baseline_rule *average; /* FedAvg or FedProx; NULL: HFSAD */
    size_t part, polish;          /* as in node_setup */
    const word_source *noise;     /* by client: random words of its noise; NULL: from the seed */
} tree;

/* The message with which an asynchronous federation refuses a spec with participation draws. */
#define TREE_ASYNC_DRAWS                                                                                               \
    "federation.mode async: nodes take part when they are ready, not by draws; leave out run.participation.client "    \
    "and .edge, and participation in overrides"

/* Delays before retransmissions. They grow with the number of children, because a round with many children takes longer
 * and early retransmissions would slow it further. */
node_patience tree_patience(const dataset *d);
/* Asynchronous: upper limit on the wait for an answer of a node `tiers` above the lowest; 0: no limit. */
uint32_t tree_answer_ms(const hfsad_spec *spec, size_t tiers);
/* Fills in patience, async and pace from the spec. An error if an asynchronous federation cannot do what the spec asks
 * for. */
hfsad_status tree_settings(tree *t, const hfsad_spec *spec, hfsad_error *err);
/* Creates a node. A node with several stages keeps a reference to t. */
hfsad_status tree_node(node **n, const tree *t, size_t number, hfsad_error *err);
/* NO_NODE for the cloud. */
uint32_t tree_parent(const dataset *d, size_t number);
size_t tree_slot(const dataset *d, size_t number);
size_t tree_children(const dataset *d, size_t number);
size_t tree_child(const dataset *d, size_t number, size_t slot);
/* The nodes in the order of a MODEL: a node, then each child followed by all nodes below it. order: n_inner + n_leaves
 * numbers. */
void tree_order(const dataset *d, size_t *order);

#endif
