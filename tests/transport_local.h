/*
 * A transport within a process, for tests: a sent frame waits in a slot of each subscribed member, and the next wait
 * delivers it. See net/transport.h.
 */
#ifndef HFSAD_TESTS_TRANSPORT_LOCAL_H
#define HFSAD_TESTS_TRANSPORT_LOCAL_H

#include "base/alloc.h"
#include "base/error.h"
#include "net/slots.h"
#include "net/topic.h"
#include "net/transport.h"

#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    char **filters;
    size_t n_filters;
    char *will_topic; /* NULL: none */
    parcel *will;
    bool here, greeted;
} local_member;

/* The subscribers of a topic; rebuilt when members have come or gone. */
typedef struct {
    size_t *listeners;
    size_t count, capacity;
    uint64_t made; /* the number of changes that it knows of */
} local_route;

typedef struct {
    transport front;
    local_member *members;
    size_t n_members, capacity, n_greeted;
    slot_table retained; /* by topic */
    local_route *routes; /* a topic's has the number of its place in `retained` */
    size_t routes_capacity;
    uint64_t changes;
    slot_table inboxes;
    slot_queue queue;
} local_transport;

/* The retained values belong to no member. */
enum { NOBODY = 0 };

static hfsad_status no_memory(hfsad_error *err, size_t bytes)
{
    return error_memory(err, bytes, "messages within the process");
}

static bool listens(const local_member *m, const char *topic)
{
    for (size_t i = 0; m->here && i < m->n_filters; i++)
        if (topic_matches(m->filters[i], topic))
            return true;
    return false;
}

static void member_clear(local_member *m)
{
    for (size_t i = 0; i < m->n_filters; i++)
        free(m->filters[i]);
    free(m->filters);
    free(m->will_topic);
    parcel_drop(m->will);
    *m = (local_member){0};
}

static void local_free(transport *t)
{
    local_transport *l = (local_transport *)t;
    for (size_t i = 0; i < l->n_members; i++)
        member_clear(&l->members[i]);
    for (size_t i = 0; i < l->retained.count && i < l->routes_capacity; i++)
        free(l->routes[i].listeners);
    slots_free(&l->retained);
    slots_free(&l->inboxes);
    free(l->routes);
    free(l->members);
    free(l);
}

/* The route of the topic at this place of `retained`, up to date; NULL: no memory. */
static local_route *route_to(local_transport *l, size_t topic)
{
    const size_t before = l->routes_capacity;
    void *grown = l->routes;
    const bool room = alloc_grow(&grown, &l->routes_capacity, topic + 1, sizeof *l->routes);
    l->routes = grown;
    if (!room)
        return NULL;
    if (l->routes_capacity > before)
        memset(l->routes + before, 0, (l->routes_capacity - before) * sizeof *l->routes);
    local_route *r = &l->routes[topic];
    if (r->made == l->changes)
        return r;
    r->count = 0;
    for (size_t i = 0; i < l->n_members; i++) {
        if (!listens(&l->members[i], l->retained.slots[topic].topic))
            continue;
        void *listeners = r->listeners;
        const bool more = alloc_grow(&listeners, &r->capacity, r->count + 1, sizeof *r->listeners);
        r->listeners = listeners;
        if (!more)
            return NULL;
        r->listeners[r->count++] = i;
    }
    r->made = l->changes;
    return r;
}

static bool put_in(local_transport *l, size_t to, const char *topic, parcel *value)
{
    const size_t place = slots_find(&l->inboxes, to, topic);
    if (place == NO_SLOT)
        return false;
    l->front.counts.replaced += slots_put(&l->inboxes, &l->queue, place, parcel_hold(value), false);
    return true;
}

static hfsad_status local_send(transport *t, size_t from, const char *topic, const void *bytes, size_t size,
                               bool retain, hfsad_error *err)
{
    local_transport *l = (local_transport *)t;
    if (from >= l->n_members || !l->members[from].here)
        return HFSAD_OK;
    const size_t place = slots_find(&l->retained, NOBODY, topic);
    const local_route *r = place == NO_SLOT ? NULL : route_to(l, place);
    parcel *value = parcel_make(bytes, size);
    bool good = r && value;
    for (size_t i = 0; good && i < r->count; i++)
        good = put_in(l, r->listeners[i], topic, value);
    if (good && retain) {
        slot *kept = &l->retained.slots[place];
        parcel_drop(kept->value);
        kept->value = size ? parcel_hold(value) : NULL;
    }
    parcel_drop(value);
    if (!good)
        return no_memory(err, size);
    t->counts.frames_sent++;
    t->counts.bytes_sent += size + strlen(topic);
    return HFSAD_OK;
}

static bool member_fill(local_member *m, const transport_member *from)
{
    m->here = true;
    m->filters = calloc(from->n_filters ? from->n_filters : 1, sizeof *m->filters);
    bool good = m->filters != NULL;
    for (; good && m->n_filters < from->n_filters; m->n_filters += good)
        good = (m->filters[m->n_filters] = strdup(from->filters[m->n_filters])) != NULL;
    if (good && from->will_topic) {
        m->will_topic = strdup(from->will_topic);
        m->will = parcel_make(from->will, from->will_size);
        good = m->will_topic && m->will;
    }
    return good;
}

static hfsad_status local_join(transport *t, const transport_member *from, size_t *number, hfsad_error *err)
{
    local_transport *l = (local_transport *)t;
    void *grown = l->members;
    bool good = alloc_grow(&grown, &l->capacity, l->n_members + 1, sizeof *l->members);
    l->members = grown;
    if (!good)
        return no_memory(err, sizeof *l->members);
    local_member *m = &l->members[l->n_members];
    *m = (local_member){0};
    good = member_fill(m, from);
    for (size_t i = 0; good && i < l->retained.count; i++) {
        const slot *kept = &l->retained.slots[i];
        if (kept->value && listens(m, kept->topic))
            good = put_in(l, l->n_members, kept->topic, kept->value);
    }
    if (!good) {
        member_clear(m); /* frames in its inbox are dropped */
        return no_memory(err, sizeof *m);
    }
    *number = l->n_members++;
    l->changes++;
    return HFSAD_OK;
}

static void local_leave(transport *t, size_t number, bool with_will)
{
    local_transport *l = (local_transport *)t;
    if (number >= l->n_members || !l->members[number].here)
        return;
    local_member *m = &l->members[number];
    if (with_will && m->will_topic) /* without memory it is lost, as everything may be */
        (void)local_send(t, number, m->will_topic, m->will->bytes, m->will->size, true, NULL);
    member_clear(m);
    l->changes++;
}

static bool greet(local_transport *l)
{
    bool any = false;
    for (; l->n_greeted < l->n_members; l->n_greeted++) {
        l->front.counts.connects++;
        any = true;
        if (l->front.handler.event && l->members[l->n_greeted].here)
            l->front.handler.event(l->front.handler.context, l->n_greeted, TRANSPORT_UP, "");
    }
    return any;
}

static hfsad_status local_wait(transport *t, int64_t timeout_ms, hfsad_error *err)
{
    local_transport *l = (local_transport *)t;
    size_t place;
    parcel *value;
    bool any = greet(l);
    (void)err;
    /* What is sent from here on waits for the next call. */
    slot_queue now = l->queue;
    l->queue = SLOT_QUEUE_EMPTY;
    while (slots_take(&l->inboxes, &now, &place, &value)) {
        const slot *s = &l->inboxes.slots[place];
        if (s->member < l->n_members && l->members[s->member].here && value->size) {
            any = true;
            t->counts.frames_received++;
            t->counts.bytes_received += value->size + strlen(s->topic);
            t->handler.receive(t->handler.context, s->member, s->topic, value->bytes, value->size);
        }
        parcel_drop(value);
    }
    /* Nobody else could bring anything. */
    if (!any && timeout_ms > 0 && l->queue.first == NO_SLOT)
        poll(NULL, 0, timeout_ms < INT_MAX ? (int)timeout_ms : INT_MAX);
    return HFSAD_OK;
}

static hfsad_status transport_local_create(transport **t, const transport_handler *handler, hfsad_error *err)
{
    static const transport_ops ops = {local_free, local_join, local_leave, local_send, local_wait, NULL};
    local_transport *l = calloc(1, sizeof *l);
    *t = NULL;
    if (!l)
        return no_memory(err, sizeof *l);
    l->front.ops = &ops;
    l->front.handler = *handler;
    l->queue = SLOT_QUEUE_EMPTY;
    l->changes = 1;
    *t = &l->front;
    return HFSAD_OK;
}

#endif
