/* See observe.h. */
#define _POSIX_C_SOURCE 200809L
#include "observe.h"

#include "base/alloc.h"
#include "base/clock.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A node that is restarted within milliseconds is shown as gone for HOLD_MS, so that a person can see it. */
enum { WRITE_MS = 1000, HOLD_MS = 1500, LISTEN_MS = 100, BATCH = 1000 };

typedef struct {
    hfsad_seen_state shown;
    uint64_t said, losses, process;
    double lost, back; /* when it was lost, and came back, on clock_seconds; 0: never */
    bool entered;
} node_memory;

struct observation {
    recorder *r;
    hfsad_observer *from;
    node_memory *nodes;
    size_t count;
    pthread_t thread;
    atomic_bool ending;
};

static void tell_gone(observation *o, node_memory *m, const hfsad_seen *n)
{
    m->lost = clock_seconds();
    m->back = 0;
    m->losses++;
    recorder_event(o->r, HISTORY_WARNING, n->path, "gone: its process has ended or is cut off");
}

static void tell_back(observation *o, node_memory *m, const hfsad_seen *n)
{
    char text[100];
    if (m->back - m->lost >= 0.01)
        snprintf(text, sizeof text, "back after %.2g s", m->back - m->lost);
    else /* its end was not seen: only its new process shows it */
        snprintf(text, sizeof text, "back, in a new process");
    recorder_event(o->r, HISTORY_INFO, n->path, text);
    m->lost = 0;
}

/* The state to show; adds events. A process that was replaced was lost, too, even if its end was not seen. */
static hfsad_seen_state follow(observation *o, node_memory *m, const hfsad_seen *n)
{
    const bool replaced = n->has_numbers && m->process && n->process != m->process;
    const bool gone = n->state == HFSAD_SEEN_GONE;
    if (m->lost == 0 && m->entered &&
        ((gone && m->shown != HFSAD_SEEN_GONE && m->shown != HFSAD_SEEN_DONE) || replaced))
        tell_gone(o, m, n);
    if (n->has_numbers)
        m->process = n->process;
    if (m->lost > 0 && !gone) {
        m->back = m->back > 0 ? m->back : clock_seconds();
        if (1000 * (clock_seconds() - m->lost) < HOLD_MS && !atomic_load(&o->ending))
            return HFSAD_SEEN_GONE;
        tell_back(o, m, n);
    }
    return n->state;
}

static size_t enter(observation *o, size_t i, bool all, recorder_node *to, char *path, char *waits)
{
    node_memory *m = &o->nodes[i];
    hfsad_seen n = {.size = sizeof n}, child = {.size = sizeof child};
    hfsad_observer_node(o->from, i, &n);
    const hfsad_seen_state state = follow(o, m, &n);
    const bool changed = state != m->shown || !m->entered;
    if (!changed && !(all && n.said_ms != m->said))
        return 0;
    snprintf(path, sizeof n.path, "%s", n.path);
    waits[0] = 0;
    if (n.waits) {
        hfsad_observer_node(o->from, n.waits_for, &child);
        snprintf(waits, sizeof child.path, "%s", child.path);
    }
    *to = (recorder_node){.number = i,
                          .parent = n.parent,
                          .path = path,
                          .inner = n.children > 0,
                          .state = hfsad_seen_state_name(state),
                          .phase = n.phase,
                          .round = n.round,
                          .refused = n.refused,
                          .repeated = n.repeated,
                          .sent = n.sent,
                          .received = n.received,
                          .losses = m->losses,
                          .waits_for = n.waits ? waits : NULL,
                          .waits_more = n.waits ? n.waits - 1 : 0,
                          .waits_ms = n.waits_ms,
                          .said = (double)n.said_ms};
    m->shown = state;
    m->said = n.said_ms;
    m->entered = true;
    return 1;
}

/* all: with figures; otherwise only nodes whose state has changed. */
static void write_nodes(observation *o, bool all, recorder_node *batch, char (*texts)[2][1024])
{
    size_t n = 0;
    for (size_t i = 0; i < o->count; i++) {
        n += enter(o, i, all, &batch[n], texts[n][0], texts[n][1]);
        if (n == BATCH || i + 1 == o->count) {
            recorder_nodes(o->r, batch, n);
            n = 0;
        }
    }
}

static void *work(void *context)
{
    observation *o = context;
    hfsad_error err = {0};
    recorder_node *batch = alloc_zero(BATCH, sizeof *batch);
    char(*texts)[2][1024] = alloc_zero(BATCH, sizeof *texts);
    double next = 0;
    bool good = batch && texts;
    while (good && !atomic_load(&o->ending)) {
        good = hfsad_observer_wait(o->from, LISTEN_MS / 1e3, false, &err) == HFSAD_OK;
        const bool due = clock_seconds() >= next;
        write_nodes(o, due, batch, texts);
        if (due)
            next = clock_seconds() + WRITE_MS / 1e3;
    }
    if (!good)
        recorder_event(o->r, HISTORY_WARNING, "", err.message[0] ? err.message : "no memory for the nodes");
    else
        write_nodes(o, true, batch, texts);
    free(batch);
    free(texts);
    return NULL;
}

observation *observe_begin(recorder *r, const hfsad_spec *spec, const hfsad_observer_settings *settings)
{
    hfsad_error err = {0};
    sigset_t all, old;
    observation *o = r ? alloc_zero(1, sizeof *o) : NULL;
    if (!o)
        return NULL;
    o->r = r;
    if (hfsad_observer_create(&o->from, spec, settings, &err)) {
        recorder_event(r, HISTORY_WARNING, "", err.message);
        free(o);
        return NULL;
    }
    o->count = hfsad_observer_nodes(o->from);
    o->nodes = alloc_zero(o->count, sizeof *o->nodes);
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old);
    const bool started = o->nodes && pthread_create(&o->thread, NULL, work, o) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (started)
        return o;
    hfsad_observer_free(o->from);
    free(o->nodes);
    free(o);
    return NULL;
}

void observe_end(observation *o)
{
    if (!o)
        return;
    atomic_store(&o->ending, true);
    pthread_join(o->thread, NULL);
    hfsad_observer_free(o->from);
    free(o->nodes);
    free(o);
}
