/* The tree of a federation as hfsad/net.h offers it, and what concerns all of its nodes: the broker's folder, and the
 * states of all processes as one run. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/read_file.h"
#include "data/nodes.h"
#include "net/federation.h"
#include "net/gather.h"
#include "net/keys.h"
#include "net/member.h"
#include "out/report.h"
#include "spec/pack.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct hfsad_tree {
    federation *f;
    hfsad_spec *spec;
    char *list;
};

hfsad_status hfsad_tree_create(hfsad_tree **out, const hfsad_spec *spec, hfsad_error *err)
{
    dataset *shape = NULL;
    hfsad_tree *t = *out = alloc_zero(1, sizeof *t);
    hfsad_status status = t ? spec_copy(&t->spec, spec, err) : error_memory(err, sizeof *t, "a tree");
    if (!status && !(status = member_shape(&shape, t->spec, NULL, NULL, err)) &&
        !(status = federation_create(&t->f, t->spec, shape, err))) {
        t->list = nodes_text(federation_shape(t->f));
        status = t->list ? HFSAD_OK : error_memory(err, 0, "the list of nodes");
    }
    if (status) {
        hfsad_tree_free(t);
        *out = NULL;
    }
    return status;
}

void hfsad_tree_free(hfsad_tree *t)
{
    if (!t)
        return;
    federation_free(t->f);
    hfsad_spec_free(t->spec);
    free(t->list);
    free(t);
}

size_t hfsad_tree_nodes(const hfsad_tree *t)
{
    const dataset *d = federation_shape(t->f);
    return d->n_inner + d->n_leaves;
}

size_t hfsad_tree_inner_nodes(const hfsad_tree *t)
{
    return federation_shape(t->f)->n_inner;
}

size_t hfsad_tree_node_name(const hfsad_tree *t, size_t number, char *buffer, size_t size)
{
    return nodes_name(federation_shape(t->f), number, buffer, size);
}

size_t hfsad_tree_clients(const hfsad_tree *t, size_t inner, size_t *first)
{
    const dataset *d = federation_shape(t->f);
    *first = d->n_inner + d->inner[inner].first_leaf;
    return d->inner[inner].n_leaves;
}

const char *hfsad_tree_list(const hfsad_tree *t)
{
    return t->list;
}

hfsad_status hfsad_tree_check_state(const hfsad_tree *t, const char *folder, hfsad_error *err)
{
    store *state = NULL;
    char *path = path_join(folder, "cloud");
    if (!path)
        return error_memory(err, strlen(folder), "a file name");
    const hfsad_status status = federation_open_store(t->f, path, folder, &state, err);
    store_discard(state);
    rmdir(path);
    free(path);
    return status;
}

hfsad_status hfsad_tree_gather(const hfsad_tree *t, const hfsad_tree_process *processes, size_t count, const char *out,
                               bool *whole, hfsad_error *err)
{
    const dataset *d = federation_shape(t->f);
    *whole = true;
    if ((!t->spec->output.state && !t->spec->output.checkpoint) || !report_exists(out))
        return HFSAD_OK;
    return gather_states(t->spec, d, processes, count, out, whole, err);
}

/* ---- the broker ---- */

static void free_names(char **names, size_t count)
{
    for (size_t i = 0; names && i < count; i++)
        free(names[i]);
    free(names);
}

static char **names_of(const hfsad_tree *t)
{
    char name[HFSAD_TIERS_MAX * 256];
    const size_t count = hfsad_tree_nodes(t);
    char **names = alloc_zero(count, sizeof *names);
    for (size_t i = 0; names && i < count; i++) {
        (void)hfsad_tree_node_name(t, i, name, sizeof name);
        if (!(names[i] = strdup(name))) {
            free_names(names, i);
            return NULL;
        }
    }
    return names;
}

hfsad_status hfsad_keys_broker(const char *keys, const hfsad_tree *t, const char *out, const char *place,
                               hfsad_error *err)
{
    char **names = names_of(t);
    const keys_broker b = {.keys = keys,
                           .folder = out,
                           .place = place,
                           .run = t->spec->federation.name,
                           .nodes = (const char *const *)names,
                           .n_nodes = hfsad_tree_nodes(t),
                           .numbers = federation_message_most(t->f)};
    const hfsad_status status = names ? keys_broker_make(&b, err) : error_memory(err, 0, "the names of the nodes");
    free_names(names, b.n_nodes);
    return status;
}

bool hfsad_keys_clustered(const char *keys)
{
    return keys_clustered(keys);
}

const char *hfsad_keys_cluster(const char *keys)
{
    return keys_cluster_name(keys);
}
