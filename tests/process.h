/* A process of a federation with one node, as far as its set-up and polish go. */
#ifndef HFSAD_TESTS_PROCESS_H
#define HFSAD_TESTS_PROCESS_H

#include "tools.h"

#include "data/nodes.h"
#include "net/federation.h"

typedef struct {
    federation *f;
    inquiry *q;
    void *context;
} process;

/* d: the tree; rows: a client's, taken over. */
TOOL void process_begin(process *at, const hfsad_spec *spec, const dataset *d, size_t number, dataset *rows)
{
    hfsad_error err;
    char *text = nodes_text(d);
    dataset *shape;
    ok(nodes_parse(&shape, text, "nodes", &err), &err);
    free(text);
    ok(federation_create(&at->f, spec, shape, &err), &err);
    if (rows)
        ok(federation_take_rows(at->f, rows, "data", &err), &err);
    ok(federation_inquiry(at->f, number, &at->q, &at->context, &err), &err);
}

TOOL void process_end(process *at)
{
    inquiry_free(at->q);
    free(at->context);
    federation_free(at->f);
}

/* The node, from what its set-up came to. */
TOOL node *process_node(const process *at, const dataset *d, size_t number, const double *result, size_t count)
{
    hfsad_error err;
    char path[300];
    node *n;
    nodes_name(d, number, path, sizeof path);
    ok(federation_make(at->f, path, result, count, &n, &err), &err);
    return n;
}

#endif
