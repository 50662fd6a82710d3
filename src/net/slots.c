/* Places for last values; see slots.h. */
#include "net/slots.h"

#include "base/alloc.h"
#include "base/rng.h"

#include <stdlib.h>
#include <string.h>

parcel *parcel_make(const void *bytes, size_t size)
{
    parcel *p = size <= SIZE_MAX - sizeof *p ? malloc(sizeof *p + size) : NULL;
    if (!p)
        return NULL;
    p->holders = 1;
    p->size = size;
    if (size)
        memcpy(p->bytes, bytes, size);
    return p;
}

parcel *parcel_hold(parcel *p)
{
    p->holders++;
    return p;
}

void parcel_drop(parcel *p)
{
    if (p && --p->holders == 0)
        free(p);
}

void slots_free(slot_table *t)
{
    for (size_t i = 0; i < t->count; i++) {
        free(t->slots[i].topic);
        parcel_drop(t->slots[i].value);
    }
    free(t->slots);
    free(t->buckets);
    *t = (slot_table){0};
}

static size_t bucket_of(const slot_table *t, size_t member, const char *topic)
{
    return (size_t)rng_mix(rng_stream(topic) + member) & (t->n_buckets - 1);
}

static void link_slot(slot_table *t, size_t number)
{
    size_t *bucket = &t->buckets[bucket_of(t, t->slots[number].member, t->slots[number].topic)];
    t->slots[number].chain = *bucket;
    *bucket = number;
}

static bool more_buckets(slot_table *t)
{
    const size_t n = t->n_buckets ? 2 * t->n_buckets : 64;
    size_t *buckets = malloc(n * sizeof *buckets);
    if (!buckets)
        return false;
    free(t->buckets);
    t->buckets = buckets;
    t->n_buckets = n;
    for (size_t i = 0; i < n; i++)
        buckets[i] = NO_SLOT;
    for (size_t i = 0; i < t->count; i++)
        link_slot(t, i);
    return true;
}

size_t slots_find(slot_table *t, size_t member, const char *topic)
{
    if (t->n_buckets > 0)
        for (size_t i = t->buckets[bucket_of(t, member, topic)]; i != NO_SLOT; i = t->slots[i].chain)
            if (t->slots[i].member == member && !strcmp(t->slots[i].topic, topic))
                return i;
    if (t->count >= t->n_buckets && !more_buckets(t))
        return NO_SLOT;
    void *grown = t->slots;
    const bool room = alloc_grow(&grown, &t->capacity, t->count + 1, sizeof *t->slots);
    t->slots = grown;
    char *name = room ? strdup(topic) : NULL;
    if (!name)
        return NO_SLOT;
    t->slots[t->count] = (slot){.member = member, .topic = name};
    link_slot(t, t->count);
    return t->count++;
}

bool slots_put(slot_table *t, slot_queue *queue, size_t number, parcel *value, bool retain)
{
    slot *s = &t->slots[number];
    const bool older = s->queued;
    parcel_drop(s->value);
    s->value = value;
    s->retain = retain;
    if (older)
        return true;
    s->queued = true;
    s->next = NO_SLOT;
    if (queue->last == NO_SLOT)
        queue->first = number;
    else
        t->slots[queue->last].next = number;
    queue->last = number;
    return false;
}

bool slots_take(slot_table *t, slot_queue *queue, size_t *number, parcel **value)
{
    if (queue->first == NO_SLOT)
        return false;
    slot *s = &t->slots[queue->first];
    *number = queue->first;
    *value = s->value;
    s->value = NULL;
    s->queued = false;
    queue->first = s->next;
    if (queue->first == NO_SLOT)
        queue->last = NO_SLOT;
    return true;
}

size_t slots_drop(slot_table *t, slot_queue *queue)
{
    size_t number, dropped = 0;
    parcel *value;
    for (; slots_take(t, queue, &number, &value); dropped++)
        parcel_drop(value);
    return dropped;
}
