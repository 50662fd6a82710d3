/* A last value on its way: it is sent, and retransmitted until no node waits for it. The one way in which anything in a
 * federation is repeated. Times are in ms. */
#ifndef HFSAD_NET_CHANNEL_H
#define HFSAD_NET_CHANNEL_H

#include <stdbool.h>
#include <stdint.h>

/* How long to wait before a message is repeated: at first, and at most; it doubles in between. */
typedef struct {
    uint32_t first_ms, most_ms;
} node_patience;

typedef struct {
    bool live;  /* a node waits for it */
    bool send;  /* now */
    bool again; /* it has been sent before */
    uint64_t due;
    uint32_t wait;
    bool open, repeated; /* of the value in hand: nothing was learned from it yet; it was repeated by the clock */
    uint64_t since;      /* it was first sent */
    uint32_t patience;   /* with the next, in ms; 0: the least */
} channel;

/* A new value, to be sent now. */
void channel_start(channel *c, uint64_t now, const node_patience *p);
/* It is acknowledged or overtaken. */
void channel_stop(channel *c);
/* Whether a tick has something to do: every turn of a process asks each channel of each node. */
static inline bool channel_wants_tick(const channel *c, uint64_t now)
{
    return c->live ? c->due <= now : c->open;
}
void channel_do_tick(channel *c, uint64_t now, const node_patience *p);
static inline void channel_tick(channel *c, uint64_t now, const node_patience *p)
{
    if (channel_wants_tick(c, now))
        channel_do_tick(c, now, p);
}
/* When the next tick is wanted; UINT64_MAX: never. */
static inline uint64_t channel_due(const channel *c)
{
    return c->live ? c->due : UINT64_MAX;
}
/* The connection was lost and is back. */
void channel_repeat(channel *c);
/* Whether the value is to be sent now, which counts as done; *repeated counts those that were sent before. */
static inline bool channel_take(channel *c, uint64_t *repeated)
{
    if (!c->send)
        return false;
    *repeated += c->again;
    c->send = false;
    return c->again = true;
}

#endif
