/*
 * Last values on their way: a table from (member, topic) to a place for one frame, and queues of such places. A frame
 * that meets an older one in its place puts it out, so what waits is bounded by the number of topics.
 */
#ifndef HFSAD_NET_SLOTS_H
#define HFSAD_NET_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes that several places may hold. */
typedef struct {
    size_t holders, size;
    unsigned char bytes[];
} parcel;

parcel *parcel_make(const void *bytes, size_t size); /* with one holder; NULL: no memory */
parcel *parcel_hold(parcel *p);
void parcel_drop(parcel *p); /* NULL is allowed */

#define NO_SLOT SIZE_MAX

typedef struct {
    size_t member;
    char *topic;
    parcel *value; /* NULL: empty */
    bool queued, retain;
    size_t next; /* in its queue */
    size_t chain;
} slot;

typedef struct {
    slot *slots;
    size_t count, capacity;
    size_t *buckets; /* a power of two of them; the first of each chain, or NO_SLOT */
    size_t n_buckets;
} slot_table;

void slots_free(slot_table *t);
/* The number of the slot, created if it is missing; NO_SLOT: no memory. Numbers are stable, addresses are not. */
size_t slots_find(slot_table *t, size_t member, const char *topic);

typedef struct {
    size_t first, last;
} slot_queue;
#define SLOT_QUEUE_EMPTY ((slot_queue){NO_SLOT, NO_SLOT})

/* Puts a parcel (whose holder it becomes) into a place and the place into the queue, unless it is there. True if a
 * waiting frame was put out. */
bool slots_put(slot_table *t, slot_queue *queue, size_t number, parcel *value, bool retain);
/* Takes the first place off the queue; its parcel is the caller's. False: the queue is empty. */
bool slots_take(slot_table *t, slot_queue *queue, size_t *number, parcel **value);
/* Empties the queue; the number of frames dropped. */
size_t slots_drop(slot_table *t, slot_queue *queue);

#endif
