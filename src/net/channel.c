#include "net/channel.h"

/* How long to wait before repeating the next value, set when a value is acknowledged or replaced, so that rounds of
 * seconds are not full of repeated vectors. As in TCP, a value that was repeated only shows that the wait was too short
 * or a message was lost, so the longer wait stays. */
static void learn(channel *c, uint64_t now, const node_patience *p)
{
    if (!c->open)
        return;
    c->open = false;
    const uint64_t took = now - c->since, least = c->patience - c->patience / 4;
    uint64_t wait = c->repeated ? c->wait : 3 * took;
    wait = wait < least ? least : wait;
    c->patience = (uint32_t)(wait < p->first_ms ? p->first_ms : wait > p->most_ms ? p->most_ms : wait);
}

void channel_start(channel *c, uint64_t now, const node_patience *p)
{
    learn(c, now, p);
    const uint32_t wait = c->patience ? c->patience : p->first_ms;
    *c = (channel){.live = true,
                   .send = true,
                   .due = now + wait,
                   .wait = wait,
                   .open = true,
                   .since = now,
                   .patience = c->patience};
}

void channel_stop(channel *c)
{
    c->live = c->send = false;
}

void channel_do_tick(channel *c, uint64_t now, const node_patience *p)
{
    if (!c->live)
        learn(c, now, p);
    if (!c->live || c->due > now)
        return;
    c->send = c->repeated = true;
    c->wait = c->wait < p->most_ms / 2 ? 2 * c->wait : p->most_ms;
    c->due = now + c->wait;
}

void channel_repeat(channel *c)
{
    c->send = c->live;
}
