/* Output: the messages of nodes, and the STATUS of the process. */
#define _POSIX_C_SOURCE 200809L
#include "base/clock.h"
#include "net/host_parts.h"

#include "base/alloc.h"
#include "base/error.h"

#include <math.h>

size_t host_encode(host *h, hosted *at, const message *m, hfsad_error *err)
{
    size_t size = 0;
    if (!alloc_grow((void **)&h->out.bytes, &h->out.room, message_bytes_most(m->count), 1)) {
        (void)error_memory(err, message_bytes_most(m->count), "a message");
        return 0;
    }
    const bool plain = m->fixed || (m->kind != MESSAGE_UP && m->kind != MESSAGE_DOWN);
    const message_fault fault =
        plain ? message_encode(NULL, m, m->fixed ? WIRE_FIXED : WIRE_DOUBLE, NULL, h->out.bytes, &size)
              : host_encode_difference(h, at, m, &size);
    return fault ? 0 : size;
}

static uint64_t bytes_of(const host *h, bool sent)
{
    uint64_t bytes = 0;
    for (int way = 0; way < WAYS; way++)
        if (h->way[way] && (way == ABOVE || h->way[ABOVE] != h->way[BELOW]))
            bytes += sent ? h->way[way]->counts.bytes_sent : h->way[way]->counts.bytes_received;
    return bytes;
}

message host_status_of(const host *h, const hosted *at, bool lives, double values[HOST_STATUS_NUMBERS])
{
    const node_status status = at->n ? node_get_status(at->n) : (node_status){0};
    const bool ended = at->left || (at->n && node_ended(at->n) != NODE_RUNNING);
    message m = {.kind = MESSAGE_STATUS,
                 .run = h->s.run_id,
                 .phase = ended    ? NODE_PHASE_FINAL
                          : !at->n ? NODE_PHASE_SETUP
                                   : NODE_PHASE_TRAIN,
                 .round = status.round,
                 .k = !lives                                                           ? 0
                      : at->n && at->parent && at->n_children && !host_has_members(at) ? 2
                                                                                       : 1,
                 .values = values};
    if (!lives && !h->leaving)
        return m;
    m.phase += (at->n && at->parent ? node_life(at->n) : 0) << NODE_LIFE_BIT;
    values[HOST_STATUS_K] = (double)status.k;
    values[HOST_STATUS_REPEATED] = (double)status.repeated;
    for (size_t i = 0; i < NODE_REFUSALS; i++)
        values[HOST_STATUS_REFUSED + i] = (double)status.refused[i];
    const host_waits waits = host_get_waits(h, (size_t)(at - h->all));
    values[HOST_STATUS_PROCESS] = (double)h->s.process;
    values[HOST_STATUS_TERM] = at->n ? (double)node_begun(at->n) : 0;
    values[HOST_STATUS_INSTANCE] = h->s.state ? (double)store_instance(h->s.state) : 0;
    values[HOST_STATUS_GARBLED] = (double)(at->garbled + at->strangers);
    values[HOST_STATUS_UPTIME] = (double)(clock_ms() - h->began);
    values[HOST_STATUS_MEETS] = at->meets;
    values[HOST_STATUS_WAITS] = (double)waits.count;
    values[HOST_STATUS_WAITS_FOR] = (double)waits.first;
    values[HOST_STATUS_WAITS_MS] = (double)waits.ms;
    values[HOST_STATUS_SAID] = (double)clock_wall_ms();
    values[HOST_STATUS_SENT] = (double)bytes_of(h, true);
    values[HOST_STATUS_RECEIVED] = (double)bytes_of(h, false);
    m.count = HOST_STATUS_ITERATION;
    if (at->parent)
        return m;
    const hfsad_figures *f = &h->last;
    const bool has = f->iteration != UINT64_MAX;
    const double figures[] = {has ? (double)f->iteration : -1, f->objective, f->primal_residual, f->dual_residual};
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        values[m.count++] = isfinite(figures[i]) ? figures[i] : 0;
    return m;
}

static hfsad_status put_message(host *h, hosted *at, int way, topic_kind kind, const message *m, bool retain,
                                hfsad_error *err)
{
    UNFILLED char topic[TOPIC_MAX];
    if (at->member[way] == SIZE_MAX)
        way = !way;
    message leaves = *m;
    if (!host_cohort_mask(h, at, &leaves))
        return HFSAD_OK; /* the neighbour will ask again */
    size_t size = host_encode(h, at, &leaves, err);
    if (!size || !topic_write(topic, h->run, at->path, kind)) /* a number that does not fit a float */
        return HFSAD_OK;
    const hfsad_status status = host_seal(h, at, kind, &size, err);
    return status || !size ? status
                           : transport_send(h->way[way], at->member[way], topic, h->out.bytes, size, retain, err);
}

hfsad_status host_send(host *h, hosted *at, int way, topic_kind kind, const message *m, hfsad_error *err)
{
    return put_message(h, at, way, kind, m, kind == TOPIC_STATUS || !h->s.fleeting, err);
}

/* At both brokers if there are two: an observer may reach only one of them. */
static hfsad_status send_status(host *h, hosted *at, bool lives, hfsad_error *err)
{
    double values[HOST_STATUS_NUMBERS];
    const message m = host_status_of(h, at, lives, values);
    hfsad_status status = HFSAD_OK;
    for (int way = 0; way < WAYS && !status; way++) {
        if (at->member[way] == SIZE_MAX)
            continue;
        status = host_send(h, at, way, TOPIC_STATUS, &m, err);
        at->leaves[way] = !lives && h->s.process && at->connected[way]; /* it listens to itself */
    }
    return status;
}

static bool all_left(const host *h)
{
    for (size_t i = 0; i < h->count; i++)
        for (int way = 0; way < WAYS; way++)
            if (h->all[i].leaves[way] && h->all[i].connected[way])
                return false;
    return true;
}

void host_leave(host *h, uint32_t patience_ms)
{
    enum { PAUSE_MS = 20 };
    const uint64_t end = clock_ms() + patience_ms;
    hfsad_error err;
    hfsad_status status = HFSAD_OK;
    h->leaving = true;
    for (size_t i = 0; i < h->count && !status; i++)
        if (h->all[i].twins < HOST_TWINS)
            status = send_status(h, &h->all[i], false, &err);
    while (!status && !all_left(h) && clock_ms() < end)
        status = host_wait(h, PAUSE_MS, &err);
}

hfsad_status host_send_all(host *h, uint64_t now, hfsad_error *err)
{
    hfsad_status status = HFSAD_OK;
    for (size_t i = 0; i < h->count && !status; i++) {
        hosted *at = &h->all[i];
        UNFILLED node_letter letter;
        if (at->keys && at->keys->hello_due)
            status = host_send_hello(h, at, err);
        if (!status && at->call)
            status = host_cohort_send(h, at, err);
        while (!status &&
               ((at->q && inquiry_next_letter(at->q, &letter)) || (at->n && node_next_letter(at->n, &letter))))
            status = host_send(h, at, letter.to_parent ? ABOVE : BELOW, topic_of(&letter.m, letter.to_parent),
                               &letter.m, err);
        if (!status && host_admits(at))
            status = host_admit_send(h, at, err);
        if ((at->q && inquiry_is_too_large(at->q)) || (at->n && node_is_too_large(at->n)))
            host_end_too_large(h, at);
        if (!status && h->s.status_ms && now >= at->status_due) {
            status = send_status(h, at, true, err);
            at->status_due = now + h->s.status_ms;
            if (at->keys)
                at->keys->hello_due = at->keys->hello_due || !host_all_sure(at);
        }
    }
    return status;
}

hfsad_status host_say(host *h, size_t i, const message *m, hfsad_error *err)
{
    return put_message(h, &h->all[i], ABOVE, topic_of(m, true), m, false, err);
}
