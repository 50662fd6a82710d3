/* Input: messages for the nodes, and events of the connections. */
#include "base/clock.h"
#include "net/host_parts.h"
#include "net/warden.h"

#include "base/alloc.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>

static void refuse_message(const host *h, const hosted *at, const char *topic, const char *why)
{
    host_tell(h, HOST_MESSAGE_REFUSED, at->path, why, topic, NULL);
}

/* The number of steps that fit into a time, if `steps` of them took `seconds`. */
static uint32_t steps_in(double time, double took, uint64_t steps)
{
    const double fit = took > 0 ? time * (double)steps / took : NODE_STEPS_MOST;
    return fit > NODE_STEPS_MOST ? NODE_STEPS_MOST : fit < 1 ? 1 : (uint32_t)fit;
}

child_name *host_child_of(hosted *at, const char *path)
{
    const child_name wanted = {.path = (char *)path};
    child_name *child = at->next_child < at->n_children ? &at->children[at->next_child] : NULL;
    if (!child || strcmp(child->path, path) != 0)
        child = bsearch(&wanted, at->children, at->n_children, sizeof wanted, host_by_path);
    if (child)
        at->next_child = child->next;
    return child;
}

typedef struct {
    size_t slot;
    child_name *child;     /* NULL: the parent */
    vector_before *before; /* the last vector of the topic; NULL: the topic has no vectors */
} sender;

static bool sender_of(hosted *at, const char *path, topic_kind kind, sender *from)
{
    if (topic_to_children(kind) || (kind == TOPIC_HELLO && at->parent && strcmp(path, at->parent) == 0)) {
        *from = (sender){NODE_PARENT, NULL, kind == TOPIC_DOWN ? &at->heard : NULL};
        return at->parent && strcmp(path, at->parent) == 0;
    }
    child_name *found = host_child_of(at, path);
    *from = (sender){found ? found->slot : 0, found, found && kind == TOPIC_UP ? &found->heard : NULL};
    return found != NULL;
}

/* With two brokers a STATUS goes to both. */
static int own_way(const host *h, const hosted *at)
{
    return h->way[ABOVE] == h->way[BELOW] || at->parent ? ABOVE : BELOW;
}

static bool is_setup(const message *m)
{
    return m->phase == NODE_PHASE_SETUP;
}

/* The result of the set-up has arrived: creates the node, and commits both before any message about them is sent. */
void host_take_setup(host *h, hosted *at)
{
    hfsad_error err;
    size_t count;
    const double *result = inquiry_result(at->q, &count);
    if (at->n || !result || h->dismisses)
        return;
    if (!h->result) {
        h->result = alloc_zero(count, sizeof *result);
        if (!h->result) {
            host_break_down(h, error_memory(&err, count * sizeof *result, "the result of the set-up"), &err);
            return;
        }
        memcpy(h->result, result, count * sizeof *result);
        h->n_result = count;
    }
    const hfsad_status status = host_make_node(h, at, &err);
    host_break_down(h, status, &err);
    at->status_due = 0;
    if (!status)
        host_tell(h, HOST_READY, at->path, "", "", NULL);
}

hfsad_status host_set_up(host *h, hfsad_error *err)
{
    host_take_setup(h, &h->all[0]);
    if (h->failed)
        *err = h->broken;
    return h->failed;
}

static bool hand_over(host *h, hosted *at, size_t from, const message *m, node_refusal *why)
{
    if (m->phase == NODE_PHASE_COHORT) {
        host_cohort_hear(h, at, from, m);
        *why = NODE_REFUSED_OLD;
        return false;
    }
    if (is_setup(m) && m->kind == MESSAGE_ANSWER && m->round == HOST_COMPLAINT && !m->fixed) {
        host_hear_complaint(h, at, from, m);
        *why = NODE_REFUSED_OLD;
        return false;
    }
    if (at->left && !host_is_admission(m)) {
        *why = NODE_REFUSED_OLD;
        return false;
    }
    if (host_is_admission(m)) {
        host_hear_admission(h, at, from, m);
        *why = NODE_REFUSED_OLD;
        return false;
    }
    if (!at->q || !is_setup(m)) {
        if (at->n)
            return node_handle(at->n, from, m, why);
        *why = m->run == h->s.run_id ? NODE_REFUSED_OLD : NODE_REFUSED_RUN;
        if (from == NODE_PARENT && m->run == h->s.run_id)
            host_note_training(h, at, m);
        return false;
    }
    hfsad_error err;
    hfsad_status failed = HFSAD_OK;
    const bool news = inquiry_handle(at->q, from, m, why, &failed, &err);
    host_break_down(h, failed, &err);
    if (failed)
        *why = NODE_REFUSED_OLD;
    host_take_setup(h, at);
    if (inquiry_dismissal(at->q) && !at->dismissed) {
        at->dismissed = true;
        host_tell(h, HOST_DISMISSED, at->path, inquiry_dismissal(at->q), "", NULL);
    }
    return news;
}

/* Rounds restart with each stage; the stage is part of the phase. */
static bool is_later(const message *m, const vector_before *before)
{
    return m->phase > before->phase || (m->phase == before->phase && m->round > before->round);
}

/* Whether this frame was the last one distributed. */
static bool is_spread(const host *h, const void *bytes, size_t size)
{
    return h->frame.size == size && memcmp(h->frame.bytes, bytes, size) == 0;
}

static void audit(const host *h, const hosted *at, const message *m, const char *refused)
{
    if (h->s.audit && at->n_children == 0 && (m->kind == MESSAGE_DOWN || m->kind == MESSAGE_ASK))
        h->s.audit(h->s.context, at->path, at->parent, m, refused);
}

/* The other clients of the same parent will receive the same message. They process it now, so that all of them step in
 * one turn, with one commit; their own copies are skipped when they arrive. */
static void spread(host *h, const hosted *first, const message *m)
{
    for (size_t i = 0; i < h->count; i++) {
        hosted *at = &h->all[i];
        at->early = false;
        if (at == first || !at->n || !node_follows(at->n) || strcmp(at->parent, first->parent) != 0)
            continue;
        at->early = node_handle(at->n, NODE_PARENT, m, NULL);
        if (!at->early)
            continue;
        host_keep_message(h, at, m);
        audit(h, at, m, NULL);
        if (m->kind == MESSAGE_DOWN)
            host_keep_heard(h, &at->heard, m);
    }
}

/* For how long a message is at work. The time on a processor is a system call, which is worth it only for long
 * messages: the others are over before another process is given their processor. */
static double work_clock(size_t size)
{
    enum { LONG = 64 << 10 };
    return size > LONG ? clock_work_seconds() : clock_seconds();
}

/* A synchronous client has accepted a message of its parent. */
static void note_news(host *h, hosted *at, const message *m, const void *bytes, size_t size, double before)
{
    if (!is_spread(h, bytes, size)) {
        host_note_frame(h, bytes, size);
        host_keep_message(h, at, m);
        spread(h, at, m);
    } else {
        host_keep_message(h, at, m);
    }
    h->replay_seconds += work_clock(size) - before;
}

/* A child has reported another spec: its parent answers once, so that the child knows that the parent is alive and not
 * only retained by the broker. */
static void answer_stranger(const hosted *at, const message *m)
{
    if (m->kind != MESSAGE_ANSWER)
        return;
    if (at->q)
        inquiry_repeat(at->q);
    if (at->n)
        node_repeat(at->n);
}

/* quiet: do not report a message that is refused because it belongs to another run. */
static void handle(host *h, hosted *at, const char *topic, const char *path, const sender *from, const message *m,
                   bool quiet, const void *bytes, size_t size)
{
    node_refusal why;
    if (at->n && !at->awake) {
        at->awake = true;
        at->woke = node_get_status(at->n).round;
    }
    const bool paced = h->s.local_seconds > 0 && at->n_children == 0;
    const uint64_t k = paced && at->n ? node_get_status(at->n).k : 0;
    const double before = at->n && node_follows(at->n) ? work_clock(size) : 0, began = paced ? clock_seconds() : 0;
    const bool news = hand_over(h, at, from->slot, m, &why), old = !news && why == NODE_REFUSED_OLD;
    const char *reason = !news && why == NODE_REFUSED_VALUE && at->q ? inquiry_why(at->q) : NULL;
    if (!news && why == NODE_REFUSED_BOUND && from->slot == NODE_PARENT)
        reason = WARDEN_TOO_LARGE;
    if (!news && !reason)
        reason = node_refusal_text(why);
    if (!news && !old && !(quiet && why == NODE_REFUSED_RUN))
        refuse_message(h, at, topic, reason);
    if (from->slot == NODE_PARENT && !old)
        audit(h, at, m, reason);
    if (!news && why == NODE_REFUSED_BOUND && from->slot != NODE_PARENT)
        host_meet_liar(h, at, path, from->slot);
    if (!news && why == NODE_REFUSED_BOUND && from->slot == NODE_PARENT) {
        hfsad_error err; /* without this client nothing goes on: end by name instead of waiting */
        const hfsad_status status = error_set(
            &err, HFSAD_ERROR_INPUT,
            "%.200s: refuses " WARDEN_TOO_LARGE "; the run diverges, or privacy.largest is too small", at->path);
        host_break_down(h, status, &err);
    }
    if (!news && why == NODE_REFUSED_FUTURE && at->n)
        host_meet_newer(h, at, path, from->slot, m);
    if (news && at->n && node_follows(at->n) && !(at->q && is_setup(m)))
        note_news(h, at, m, bytes, size, before);
    if (from->before &&
        (news || (old && is_later(m, from->before)))) /* a node that does not need it may need the next one */
        host_keep_heard(h, from->before, m);
    const uint64_t steps = paced && at->n ? node_get_status(at->n).k - k : 0;
    if (steps > 0)
        node_set_local_steps(at->n, steps_in(h->s.local_seconds, clock_seconds() - began, steps));
}

/* Processes a hello, or checks the tag of a frame; false: nothing to decode. */
static bool is_genuine(host *h, hosted *at, const char *topic, topic_kind kind, const sender *from, const void *bytes,
                       size_t *size)
{
    const char *why = NULL;
    if (kind != TOPIC_HELLO && host_unseal(h, at, kind, from->child, bytes, size, &why))
        return true;
    if (kind == TOPIC_HELLO)
        why = host_hear_hello(h, at, from->child, bytes, *size);
    at->garbled += why != NULL;
    if (why)
        refuse_message(h, at, topic, why);
    return false;
}

static void receive(void *context, size_t member, const char *topic, const void *bytes, size_t size)
{
    const sense *s = context;
    host *h = s->h;
    hosted *at = &h->all[h->whose[s->way][member]];
    UNFILLED char path[TOPIC_MAX];
    topic_kind kind;
    sender from = {0};
    UNFILLED message m;
    if (size == 0) /* a retained value that was cleared */
        return;
    const size_t frame = message_frame_size(bytes, size);
    if (at->early && is_spread(h, bytes, frame)) {
        at->early = false;
        h->heard++;
        return;
    }
    const bool known = topic_read(topic, h->run, path, &kind),
               own = known && (kind == TOPIC_STATUS || kind == TOPIC_HELLO) && strcmp(path, at->path) == 0;
    if (own && kind == TOPIC_HELLO)
        return;
    if (!own && (!known || !sender_of(at, path, kind, &from))) {
        at->strangers++;
        refuse_message(h, at, topic, "from a node that is not a neighbour");
        return;
    }
    if (!is_genuine(h, at, topic, kind, &from, bytes, &size))
        return;
    const message_fault fault = host_decode_difference(h, from.before, at->keys != NULL, bytes, size, &m);
    if (fault == MESSAGE_FAULT_REFERENCE && h->s.encoding == WIRE_DELTA) /* as if it were lost */
        return;
    if (fault) {
        at->garbled++;
        refuse_message(h, at, topic, message_fault_text(fault));
        return;
    }
    if (m.kind != topic_message_kind(kind)) {
        at->garbled++;
        refuse_message(h, at, topic, "kind does not match its topic");
        return;
    }
    if (own || h->leaving) {
        if (own && m.k == 0)
            at->leaves[s->way] = false;
        if (own && !h->leaving && s->way == own_way(h, at))
            host_meet_twin(h, at, &m);
        return;
    }
    if (kind == TOPIC_STATUS) {
        host_note_child(h, at, path, &m);
        return;
    }
    h->heard++;
    const bool other = m.run != h->s.run_id;
    if (!other && from.slot == NODE_PARENT)
        at->parent_heard = clock_ms();
    const bool quiet = other && !m.fixed && h->s.other_run && h->s.other_run(h->s.context, at->path, path, &m);
    if (quiet)
        answer_stranger(at, &m);
    if (at->n && from.slot == NODE_PARENT) /* once for all clients of the process */
        node_digest(at->n, &m);
    handle(h, at, topic, path, &from, &m, quiet, bytes, size);
}

/* The broker may have retained the last messages of an earlier run of the same spec, its end among them. They are
 * cleared before a node takes part. This is early enough: no neighbour has a node before all nodes have answered in the
 * set-up. */
static void clear_topics(host *h, const hosted *at, int way)
{
    char topic[TOPIC_MAX];
    hfsad_error err;
    const bool same = h->way[ABOVE] == h->way[BELOW];
    for (int kind = 0; kind < TOPICS; kind++)
        if (kind != TOPIC_STATUS && kind != TOPIC_HELLO &&
            (same || topic_to_children((topic_kind)kind) == (way == BELOW)) &&
            topic_write(topic, h->run, at->path, (topic_kind)kind))
            host_break_down(h, transport_send(h->way[way], at->member[way], topic, NULL, 0, true, &err), &err);
}

static void connection(void *context, size_t member, transport_event event, const char *why)
{
    static const host_event_kind kinds[] = {
        [TRANSPORT_UP] = HOST_CONNECTED, [TRANSPORT_DOWN] = HOST_DISCONNECTED, [TRANSPORT_REFUSED] = HOST_REFUSED};
    const sense *s = context;
    host *h = s->h;
    if (member >= h->whose_room[s->way])
        return;
    hosted *at = &h->all[h->whose[s->way][member]];
    at->connected[s->way] = event == TRANSPORT_UP;
    if (event == TRANSPORT_UP) {
        at->twins = at->left_out = 0;
        if (at->n)
            node_repeat(at->n);
        if (at->q && !at->n)
            clear_topics(h, at, s->way);
        if (at->q)
            inquiry_repeat(at->q);
        if (at->call)
            channel_repeat(&at->call->ask);
        host_admit_repeat(at);
        at->status_due = 0;
        at->meets = 0;
        if (at->keys)
            at->keys->hello_due = at->keys->c != NULL;
    }
    host_tell(h, kinds[event], at->path, why, "", NULL);
}

transport_handler host_handler(host *h, bool above)
{
    return (transport_handler){&h->senses[above ? ABOVE : BELOW], receive, connection};
}
