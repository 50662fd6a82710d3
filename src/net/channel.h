/* Retransmission: a channel sends its last value and retransmits it until it is acknowledged or replaced. Every
 * retransmission of a federation goes through a channel. Times are in ms. */
#ifndef HFSAD_NET_CHANNEL_H
#define HFSAD_NET_CHANNEL_H

#include <stdbool.h>
#include <stdint.h>

/* Delay before a retransmission: the first one, and the upper limit; it doubles in between. */
typedef struct {
    uint32_t first_ms, most_ms;
} node_patience;

typedef struct {
    bool live;  /* not acknowledged yet */
    bool send;  /* to be sent now */
    bool again; /* the value has been sent before */
    uint64_t due;
    uint32_t wait;
    bool open,
        repeated;      /* current value: the delay has not been adapted to it yet; it was retransmitted after a delay */
    uint64_t since;    /* time of its first transmission */
    uint32_t patience; /* first delay of the next value; 0: first_ms */
} channel;

/* Starts to send a new value. */
void channel_start(channel *c, uint64_t now, const node_patience *p);
/* The value is acknowledged or obsolete. */
void channel_stop(channel *c);
/* Whether a tick has something to do. Inline, because every turn of a process asks each channel of each node. */
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
/* Time of the next tick that the channel needs; UINT64_MAX: none. */
static inline uint64_t channel_due(const channel *c)
{
    return c->live ? c->due : UINT64_MAX;
}
/* Call it after a reconnect: retransmits at once. */
void channel_repeat(channel *c);
/* Whether the value has to be sent now; the call counts as the transmission. *repeated counts retransmissions. */
static inline bool channel_take(channel *c, uint64_t *repeated)
{
    if (!c->send)
        return false;
    *repeated += c->again;
    c->send = false;
    return c->again = true;
}

#endif
