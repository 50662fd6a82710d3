/* Frames that wait for transmission: a table from (member, topic) to a slot for one frame, and queues of slots. A new
 * frame replaces an older one in its slot, so the number of topics limits the number of waiting frames. */
#ifndef HFSAD_NET_SLOTS_H
#define HFSAD_NET_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes that several slots may share. */
typedef struct {
    size_t holders, size;
    unsigned char bytes[];
} parcel;

parcel *parcel_make(const void *bytes, size_t size); /* with one reference; NULL: no memory */
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

/* Puts a parcel, whose reference it takes over, into a slot, and the slot into the queue unless it is queued already.
 * True: a waiting frame was replaced. */
bool slots_put(slot_table *t, slot_queue *queue, size_t number, parcel *value, bool retain);
/* Removes the first slot of the queue and passes its parcel to the caller. False: the queue is empty. */
bool slots_take(slot_table *t, slot_queue *queue, size_t *number, parcel **value);
/* Empties the queue; returns the number of dropped frames. */
size_t slots_drop(slot_table *t, slot_queue *queue);

#endif
