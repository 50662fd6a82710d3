#define _POSIX_C_SOURCE 200809L
#include "base/clock.h"
#include "net/host_parts.h"

#include "base/alloc.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>

const char *host_event_text(host_event_kind kind)
{
    static const char *const texts[] = {
#define TEXT(name, text) text,
        HOST_EVENT_LIST(TEXT)
#undef TEXT
    };
    return texts[kind];
}

void host_tell(const host *h, host_event_kind kind, const char *path, const char *text, const char *from,
               const hfsad_figures *figures)
{
    const host_event event = {kind, path, text, from, figures};
    if (h->s.event)
        h->s.event(h->s.context, &event);
}

void host_break_down(host *h, hfsad_status status, const hfsad_error *err)
{
    if (!status || h->failed)
        return;
    h->failed = status;
    h->broken = *err;
}

hfsad_status host_create(host **out, const host_settings *settings, hfsad_error *err)
{
    *out = NULL;
    if (!topic_run_valid(settings->run))
        return error_set(err, HFSAD_ERROR_INPUT,
                         "\"%s\" cannot be the name of a run: it must be one level of a topic, without + and #",
                         settings->run);
    host *h = alloc_zero(1, sizeof *h);
    if (!h || !(h->run = strdup(settings->run))) {
        free(h);
        return error_memory(err, sizeof *h, "a process of a federation");
    }
    h->s = *settings;
    h->s.run = h->run;
    h->began = clock_ms();
    h->last.iteration = UINT64_MAX;
    for (int way = 0; way < WAYS; way++)
        h->senses[way] = (sense){h, way};
    *out = h;
    return HFSAD_OK;
}

void host_free(host *h)
{
    if (!h)
        return;
    for (size_t i = 0; i < h->count; i++) {
        hosted *at = &h->all[i];
        host_cohort_leave(at);
        node_free(at->n);
        inquiry_free(at->q);
        free(at->q_context);
        for (size_t c = 0; at->children && c < at->n_children; c++) {
            free(at->children[c].path);
            vector_before_free(&at->children[c].heard);
        }
        vector_before_free(&at->said[ABOVE]);
        vector_before_free(&at->said[BELOW]);
        vector_before_free(&at->heard);
        host_free_keys(at);
        free(at->children);
        free(at->lines);
        free(at->orders);
        free(at->path);
        free(at->parent);
    }
    veil_free(h->veil);
    EVP_MAC_CTX_free(h->hasher);
    free(h->masked.bytes);
    free(h->all);
    free(h->whose[ABOVE]);
    free(h->whose[BELOW]);
    free(h->values);
    free(h->result);
    free(h->out.bytes);
    message_codec_free(h->codec);
    free(h->frame.bytes);
    free(h->run);
    free(h);
}

void host_connect(host *h, transport *above, transport *below)
{
    h->way[ABOVE] = above;
    h->way[BELOW] = below;
}

/* ---- a turn ---- */

static uint64_t due_of(const hosted *at)
{
    const uint64_t trains = at->n ? node_due(at->n) : UINT64_MAX, asks = at->q ? inquiry_due(at->q) : UINT64_MAX;
    const uint64_t first = trains < asks ? trains : asks, admits = host_admits(at) ? host_admit_due(at) : UINT64_MAX,
                   calls = at->call ? channel_due(&at->call->ask) : UINT64_MAX, own = admits < calls ? admits : calls,
                   renews = at->call ? channel_due(&at->call->renew) : UINT64_MAX, least = own < renews ? own : renews;
    return first < least ? first : least;
}

static void tick(hosted *at, uint64_t now)
{
    if (host_admits(at))
        host_admit_tick(at, now);
    if (at->q)
        inquiry_tick(at->q, now);
    if (at->n_children)
        host_watch_children(at, now);
    if (at->n)
        node_tick(at->n, now);
    if (at->call)
        channel_tick(&at->call->ask, now, &at->call->patience);
    if (at->call)
        channel_tick(&at->call->renew, now, &at->call->patience);
}

hfsad_status host_wait(const host *h, int64_t timeout_ms, hfsad_error *err)
{
    if (h->way[ABOVE] == h->way[BELOW] || !h->way[ABOVE] || !h->way[BELOW])
        return transport_wait(h->way[h->way[ABOVE] ? ABOVE : BELOW], timeout_ms, err);
    return transport_wait_both(h->way[ABOVE], h->way[BELOW], timeout_ms, err);
}

static hfsad_status listen(host *h, uint64_t now, int64_t timeout_ms, hfsad_error *err)
{
    for (size_t i = 0; i < h->count; i++) {
        const uint64_t due = due_of(&h->all[i]);
        const int64_t left = due == UINT64_MAX ? INT64_MAX : due <= now ? 0 : (int64_t)(due - now);
        if (timeout_ms < 0 || left < timeout_ms)
            timeout_ms = left == INT64_MAX ? timeout_ms : left;
    }
    if (h->store_failed && (timeout_ms < 0 || timeout_ms > 1000))
        timeout_ms = 1000;
    return host_wait(h, timeout_ms, err);
}

hfsad_status host_step(host *h, int64_t timeout_ms, hfsad_error *err)
{
    uint64_t now = clock_ms();
    bool waits = true;
    for (size_t i = 0; i < h->count; i++)
        tick(&h->all[i], now);
    hfsad_status status = host_recall(h, err);
    if (status)
        return status;
    for (size_t i = 0; i < h->count;
         i++) { /* a new node has a first message to send, the root's code may have a question */
        const hosted *at = &h->all[i];
        waits = waits && !(at->n && node_changed(at->n)) && !(at->q && inquiry_speaks(at->q)) &&
                !(at->call && at->call->ask.send);
    }
    status = listen(h, now, waits || h->store_failed ? timeout_ms : 0, err);
    now = clock_ms();
    for (size_t i = 0; i < h->count; i++)
        tick(&h->all[i], now);
    if (!status && h->failed) {
        *err = h->broken;
        return h->failed;
    }
    if (!status && host_commit(h))
        status = host_send_all(h, now, err);
    return status;
}

bool host_is_connected(const host *h)
{
    for (size_t i = 0; i < h->count; i++)
        for (int way = 0; way < WAYS; way++)
            if (h->all[i].member[way] != SIZE_MAX && !h->all[i].connected[way])
                return false;
    return true;
}

bool host_ended(const host *h)
{
    for (size_t i = 0; i < h->count; i++)
        if (!h->all[i].ended)
            return false;
    return true;
}

hfsad_status host_dismiss(host *h, const char *why, hfsad_error *err)
{
    hosted *root = &h->all[0];
    if (root->twins >= HOST_TWINS) /* the other nodes train with the older process */
        return error_set(err, HFSAD_ERROR_INPUT, "%s already runs in another process", root->path);
    node_free(root->n);
    root->n = NULL;
    h->dismisses = true;
    h->failed = HFSAD_OK;
    return inquiry_dismiss(root->q, why, err);
}

bool host_all_dismissed(const host *h)
{
    for (size_t i = 0; i < h->count; i++)
        if (!inquiry_all_dismissed(h->all[i].q))
            return false;
    return true;
}

/* ---- queries ---- */

size_t host_nodes(const host *h)
{
    return h->count;
}

node *host_node(const host *h, size_t i)
{
    return h->all[i].n;
}

const char *host_folder(const host *h)
{
    return h->s.state ? store_folder(h->s.state) : NULL;
}

bool host_has_state(const host *h)
{
    return h->s.state && store_instance(h->s.state) != 0;
}

inquiry *host_inquiry(const host *h, size_t i)
{
    return h->all[i].q;
}

const char *host_path(const host *h, size_t i)
{
    return h->all[i].path;
}

host_counts host_get_counts(const host *h)
{
    host_counts c = {.commits = h->commits, .commit_failures = h->commit_failures, .commit_seconds = h->commit_seconds};
    for (int way = 0; way < WAYS; way++) {
        if (!h->way[way] || (way == BELOW && h->way[ABOVE] == h->way[BELOW]))
            continue;
        const transport_counts *t = &h->way[way]->counts;
        c.frames.frames_sent += t->frames_sent;
        c.frames.frames_received += t->frames_received;
        c.frames.bytes_sent += t->bytes_sent;
        c.frames.bytes_received += t->bytes_received;
        c.frames.replaced += t->replaced;
        c.frames.lost += t->lost;
        c.frames.connects += t->connects;
    }
    return c;
}

host_links host_get_links(const host *h, size_t i)
{
    const hosted *at = &h->all[i];
    const uint64_t now = clock_ms();
    host_links links = {.connected = true,
                        .parent_ms = at->parent_heard ? now - at->parent_heard : UINT64_MAX,
                        .children = at->n_children,
                        .garbled = at->garbled,
                        .strangers = at->strangers};
    for (int way = 0; way < WAYS; way++)
        links.connected = links.connected && (at->member[way] == SIZE_MAX || at->connected[way]);
    for (size_t c = 0; c < at->n_children; c++)
        links.live += at->children[c].lives_until > now;
    return links;
}

const hfsad_figures *host_last_row(const host *h)
{
    return h->last.iteration == UINT64_MAX ? NULL : &h->last;
}

void host_show_row(host *h, const hfsad_figures *row)
{
    h->last = *row;
}
