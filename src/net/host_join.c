/* How nodes come into a process: their names, their topics, and the node itself once the set-up has its result. */
#define _POSIX_C_SOURCE 200809L
#include "net/host_parts.h"

#include "base/alloc.h"
#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int host_by_path(const void *a, const void *b)
{
    return strcmp(((const child_name *)a)->path, ((const child_name *)b)->path);
}

static bool sort_children(hosted *at)
{
    size_t *by_slot = alloc_zero(at->n_children, sizeof *by_slot);
    if (!by_slot)
        return false;
    qsort(at->children, at->n_children, sizeof *at->children, host_by_path);
    for (size_t c = 0; c < at->n_children; c++)
        by_slot[at->children[c].slot] = c;
    for (size_t c = 0; c < at->n_children; c++)
        at->children[c].next = by_slot[(at->children[c].slot + 1) % at->n_children];
    free(by_slot);
    return true;
}

static bool name_nodes(hosted *at, const host_place *place)
{
    char parent[TOPIC_MAX];
    at->path = strdup(place->path);
    at->parent = topic_parent(place->path, parent) ? strdup(parent) : NULL;
    at->children = alloc_zero(place->n_children, sizeof *at->children);
    at->n_children = place->n_children;
    at->n_inner = place->n_inner;
    at->slot = place->slot;
    if (!at->path || !at->children || (topic_parent(place->path, parent) && !at->parent))
        return false;
    for (size_t c = 0; c < place->n_children; c++) {
        at->children[c] = (child_name){.path = strdup(place->children[c]), .slot = c};
        if (!at->children[c].path)
            return false;
    }
    return sort_children(at);
}

enum { FILTERS_MOST = TOPICS + 2 };

/* Its filters on one way; 0: too long. */
static size_t filters_of(const host *h, const hosted *at, int way, char filters[][TOPIC_MAX])
{
    char below[TOPIC_MAX];
    size_t count = 0;
    const bool same = h->way[ABOVE] == h->way[BELOW];
    snprintf(below, sizeof below, at->parent ? "%.1000s/+" : "+", at->path);
    for (int kind = 0; kind < TOPICS; kind++) {
        const bool from_parent = topic_to_children((topic_kind)kind);
        if (kind == TOPIC_STATUS) { /* its own: a second process of its name shows there */
            if (h->s.process && !topic_write(filters[count++], h->run, at->path, TOPIC_STATUS))
                return 0;
            if (h->s.process && at->n_children && (same || way == BELOW) &&
                !topic_write(filters[count++], h->run, below, TOPIC_STATUS))
                return 0;
            continue;
        }
        if (kind == TOPIC_HELLO) {
            if (!at->keys || !at->keys->c)
                continue;
            if (at->parent && (same || way == ABOVE) && !topic_write(filters[count++], h->run, at->parent, TOPIC_HELLO))
                return 0;
            if (at->n_children && (same || way == BELOW) && !topic_write(filters[count++], h->run, below, TOPIC_HELLO))
                return 0;
            continue;
        }
        if ((from_parent ? !at->parent : !at->n_children) || (!same && from_parent != (way == ABOVE)))
            continue;
        if (!topic_write(filters[count++], h->run, from_parent ? at->parent : below, (topic_kind)kind))
            return 0;
    }
    return count;
}

static hfsad_status join_way(host *h, size_t i, int way, const host_place *place, hfsad_error *err)
{
    hosted *at = &h->all[i];
    char filters[FILTERS_MOST][TOPIC_MAX], will_topic[TOPIC_MAX];
    const char *list[FILTERS_MOST];
    double values[HOST_STATUS_NUMBERS];
    const size_t count = filters_of(h, at, way, filters);
    if (count == 0 || !topic_write(will_topic, h->run, at->path, TOPIC_STATUS))
        return error_set(err, HFSAD_ERROR_INPUT, "%s: the name is too long for a topic", at->path);
    for (size_t f = 0; f < count; f++)
        list[f] = filters[f];
    const message gone = host_status_of(h, at, false, values);
    size_t size = host_encode(h, at, &gone, err);
    if (size && host_seal(h, at, TOPIC_STATUS, &size, err))
        return HFSAD_ERROR_MEMORY;
    const transport_member member = {
        .name = at->path,
        .filters = list,
        .n_filters = count,
        .will_topic = will_topic,
        .will = h->out.bytes,
        .will_size = size,
        .certificate = place->certificate,
        .key = place->key,
    };
    const hfsad_status status =
        size ? transport_join(h->way[way], &member, &at->member[way], err) : error_memory(err, 0, "a message");
    if (status)
        return status;
    if (!alloc_grow((void **)&h->whose[way], &h->whose_room[way], at->member[way] + 1, sizeof *h->whose[way]))
        return error_memory(err, at->member[way], "the members of a process");
    h->whose[way][at->member[way]] = i;
    return HFSAD_OK;
}

hfsad_status host_take_room(host *h, size_t most, hfsad_error *err)
{
    if (most <= h->most)
        return HFSAD_OK;
    double *values = realloc(h->values, most * sizeof *values);
    if (!values)
        return error_memory(err, most * sizeof *values, "a message");
    h->values = values;
    h->most = most;
    return HFSAD_OK;
}

/* The node that came last. */
static hfsad_status join_ways(host *h, const host_place *place, hfsad_error *err)
{
    const hosted *at = &h->all[h->count - 1];
    const bool two = h->way[ABOVE] != h->way[BELOW];
    hfsad_status status = HFSAD_OK;
    if (!h->way[ABOVE] && !h->way[BELOW]) /* for host_recall */
        return HFSAD_OK;
    if (at->parent || !two)
        status = join_way(h, h->count - 1, ABOVE, place, err);
    if (!status && two && at->n_children)
        status = join_way(h, h->count - 1, BELOW, place, err);
    return status;
}

/* A place for one node more, named; *taken: it has what `with` brought, also on failure. */
static hfsad_status take_place(host *h, const hosted *with, const host_place *place, bool *taken, hfsad_error *err)
{
    *taken = alloc_grow((void **)&h->all, &h->room, h->count + 1, sizeof *h->all);
    if (!*taken)
        return error_memory(err, sizeof *h->all, "the nodes of a process");
    hosted *at = &h->all[h->count++];
    *at = *with;
    at->unkept = true;
    at->member[ABOVE] = at->member[BELOW] = SIZE_MAX;
    if (!topic_path_valid(place->path))
        return error_set(err, HFSAD_ERROR_INPUT, "%s cannot be a node's name in topics", place->path);
    if (!name_nodes(at, place))
        return error_memory(err, TOPIC_MAX, "the names of a process's nodes");
    const hfsad_status status = host_take_keys(h, at, place, err);
    return status ? status : host_cohort_enter(h, at, place, err);
}

hfsad_status host_join(host *h, node *n, const host_place *place, hfsad_error *err)
{
    bool taken;
    hfsad_status status = take_place(h, &(hosted){.n = n}, place, &taken, err);
    if (!taken)
        node_free(n);
    if (!status)
        status = host_take_room(h, HOST_STATUS_NUMBERS, err);
    if (!status)
        status = host_take_room(h, node_message_most(n), err);
    if (!status)
        status = host_restore(h, &h->all[h->count - 1], err);
    return status ? status : join_ways(h, place, err);
}

/* Creates the node if the result exists; it continues from its state. */
hfsad_status host_make_node(host *h, hosted *at, hfsad_error *err)
{
    hfsad_status status = h->s.make(h->s.maker, at->path, h->result, h->n_result, &at->n, err);
    if (!status)
        status = host_take_room(h, node_message_most(at->n), err);
    if (!status)
        status = host_restore(h, at, err);
    if (!status && h->s.lived)
        h->s.lived(h->s.maker, at->path, node_life(at->n));
    if (!status)
        host_admit_resume(at);
    return status;
}

hfsad_status host_enter(host *h, inquiry *q, void *context, size_t most, const host_place *place, hfsad_error *err)
{
    bool taken;
    hfsad_status status = take_place(h, &(hosted){.q = q, .q_context = context}, place, &taken, err);
    if (!taken) {
        inquiry_free(q);
        free(context);
        return status;
    }
    hosted *at = &h->all[h->count - 1];
    if (!status)
        status = host_take_room(h, most > HOST_STATUS_NUMBERS ? most : HOST_STATUS_NUMBERS, err);
    if (!status)
        status = host_restore_result(h, err);
    if (!status && h->result)
        status = host_make_node(h, at, err);
    if (!status && h->result)
        status = inquiry_remember(q, h->result, h->n_result, err);
    return status ? status : join_ways(h, place, err);
}
