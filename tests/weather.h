/* Messages in transit between the nodes of a tree: lost, doubled, delayed and reordered, and the messages that the
 * broker retains. Times are in ms. */
#ifndef HFSAD_TESTS_WEATHER_H
#define HFSAD_TESTS_WEATHER_H

#include "tools.h"

#include "net/tree.h"

enum { FLYING = 4096 };

typedef struct {
    double lose, twice, late, crash, hostile;
} weather;

typedef struct {
    size_t to, from; /* node; NODE_PARENT or slot */
    uint64_t at;
    message m;
} parcel;

typedef struct {
    const dataset *d; /* the tree */
    weather weather;
    rng r;
    uint64_t now, sent;
    message *retained; /* of every node, way and kind */
    size_t n_flying;
    parcel flying[FLYING];
} sky;

TOOL message copy_of(const message *m)
{
    message copy = *m;
    copy.values = NULL;
    copy.plain = false; /* not in a frame: what arrives may be another number than was sent */
    if (m->count) {
        copy.values = malloc(m->count * sizeof(double));
        assert_non_null(copy.values);
        memcpy(copy.values, m->values, m->count * sizeof(double));
    }
    return copy;
}

TOOL void sky_open(sky *s, const dataset *d, weather outside, uint64_t seed)
{
    *s = (sky){.d = d, .weather = outside, .r = {rng_key(seed, rng_stream("weather")), 0}};
    s->retained = alloc_zero(2 * (d->n_inner + d->n_leaves) * MESSAGE_KINDS, sizeof *s->retained);
    assert_non_null(s->retained);
}

TOOL void sky_close(sky *s)
{
    for (size_t i = 0; i < 2 * (s->d->n_inner + s->d->n_leaves) * MESSAGE_KINDS; i++)
        free(s->retained[i].values);
    for (size_t i = 0; i < s->n_flying; i++)
        free(s->flying[i].m.values);
    free(s->retained);
}

TOOL bool chance(sky *s, double p)
{
    return rng_next_uniform(&s->r) < p;
}

TOOL void sky_throw(sky *s, size_t to, size_t from, const message *m)
{
    if (s->n_flying == FLYING) /* a queue that is full loses the new one */
        return;
    const uint64_t delay = chance(s, s->weather.late) ? below(&s->r, 3000) : below(&s->r, 10);
    s->flying[s->n_flying++] = (parcel){to, from, s->now + delay, copy_of(m)};
}

TOOL void sky_post(sky *s, size_t to, size_t from, const message *m)
{
    s->sent++;
    if (!chance(s, s->weather.lose))
        sky_throw(s, to, from, m);
    if (chance(s, s->weather.twice))
        sky_throw(s, to, from, m);
}

/* Takes those of a kind and sender down that have not arrived. */
TOOL void sky_clear(sky *s, size_t to, size_t from, message_kind kind)
{
    for (size_t i = s->n_flying; i-- > 0;) {
        const parcel p = s->flying[i];
        if (p.to != to || p.from != from || p.m.kind != kind)
            continue;
        free(p.m.values);
        s->flying[i] = s->flying[--s->n_flying];
    }
}

TOOL message *sky_retained(sky *s, size_t sender, bool to_parent)
{
    return s->retained + (2 * sender + to_parent) * MESSAGE_KINDS;
}

TOOL void sky_publish(sky *s, size_t number, const node_letter *letter)
{
    message *kept = sky_retained(s, number, letter->to_parent) + letter->m.kind;
    free(kept->values);
    *kept = copy_of(&letter->m);
    if (letter->to_parent) {
        sky_post(s, tree_parent(s->d, number), tree_slot(s->d, number), &letter->m);
        return;
    }
    for (size_t c = 0; c < tree_children(s->d, number); c++)
        sky_post(s, tree_child(s->d, number, c), NODE_PARENT, &letter->m);
}

static void sky_return_from(sky *s, size_t to, size_t from, size_t sender)
{
    for (size_t kind = 0; kind < MESSAGE_KINDS; kind++) {
        const message *m = sky_retained(s, sender, from != NODE_PARENT) + kind;
        if (m->run && chance(s, 0.5)) /* or the broker has forgotten it */
            sky_throw(s, to, from, m);
    }
}

/* A node is connected anew. */
TOOL void sky_return(sky *s, size_t number)
{
    if (number)
        sky_return_from(s, number, NODE_PARENT, tree_parent(s->d, number));
    for (size_t c = 0; c < tree_children(s->d, number); c++)
        sky_return_from(s, number, c, tree_child(s->d, number, c));
}

/* When the next one comes down; UINT64_MAX: there is none. */
TOOL uint64_t sky_next(const sky *s)
{
    uint64_t next = UINT64_MAX;
    for (size_t i = 0; i < s->n_flying; i++)
        next = s->flying[i].at < next ? s->flying[i].at : next;
    return next;
}

/* One that has come down by now; its numbers are the caller's. *from: where to look, 0 at first. */
TOOL bool sky_take(sky *s, size_t *from, parcel *p)
{
    for (; *from < s->n_flying; (*from)++)
        if (s->flying[*from].at <= s->now) {
            *p = s->flying[*from];
            s->flying[*from] = s->flying[--s->n_flying];
            return true;
        }
    return false;
}

TOOL size_t chaos_times(void)
{
    const char *given = getenv("HFSAD_CHAOS");
    return given && atoi(given) > 0 ? (size_t)atoi(given) : 1;
}

/* A state as a node has packed it. */
typedef struct {
    unsigned char *bytes;
    size_t size, room;
} blob;

/* For word_writer.put. */
TOOL void blob_append(void *to, const void *bytes, size_t count)
{
    blob *b = to;
    if (b->size + count > b->room) {
        b->room = 2 * (b->size + count);
        b->bytes = realloc(b->bytes, b->room);
        assert_non_null(b->bytes);
    }
    if (count)
        memcpy(b->bytes + b->size, bytes, count);
    b->size += count;
}

#endif
