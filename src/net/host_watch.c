/* What a process knows about its neighbours besides their training messages: which are live, which it waits for, which
 * do not have the state that they should have, and whether another process has its name. */
#include "base/clock.h"
#include "net/host_parts.h"
#include "plan/fixed_answer.h"
#include "plan/noise.h"

#include "base/error.h"

#include <math.h>
#include <stdio.h>

/* ---- children ---- */

static const char advice[] =
    "restore a copy of its folder that is not older, or let its link start anew with `hfsad readmit`";

/* The phase of a STATUS, and the life of the link in which its sender is. */
static uint64_t phase_of(const message *m)
{
    return m->phase & ((UINT64_C(1) << NODE_LIFE_BIT) - 1);
}

static uint64_t life_of(const message *m)
{
    return m->phase >> NODE_LIFE_BIT;
}

/* A child that has left, or is live without a state, although its messages have been part of the training. The report
 * can be trusted: it is the child's own, and the child's process does not continue. */
static void note_state(host *h, hosted *at, child_name *child, const message *m)
{
    char text[500];
    const double k = m->values[HOST_STATUS_K], process = m->values[HOST_STATUS_PROCESS];
    const uint64_t seen = node_child_k(at->n, child->slot);
    const uint64_t life = node_child_life(at->n, child->slot);
    const bool set_up = phase_of(m) == NODE_PHASE_SETUP;
    if (node_child_is_out(at->n, child->slot)) {
        if (life > 0)
            child->dismissed = at->dismisses = m->k == 1 && phase_of(m) != NODE_PHASE_FINAL;
        else if (m->k == 1)
            host_wish(h, at, child->path);
        return;
    }
    if (m->k == 0 && !set_up && life_of(m) < life && node_child_is_admitted(at->n, child->slot)) {
        snprintf(text, sizeof text,
                 "%.100s has ended with a state from before its readmission, in life %llu of its link, and this node "
                 "has seen life %llu: %s",
                 child->path, (unsigned long long)life_of(m), (unsigned long long)life, advice);
    } else if (m->k == 0 && !set_up && life_of(m) == life && k < (double)seen) {
        snprintf(text, sizeof text, "%.100s was at step %.0f when it ended, and this node has seen step %llu: %s",
                 child->path, k, (unsigned long long)seen, advice);
    } else if (m->k == 1 && set_up && node_child_trains(at->n, child->slot)) {
        const bool again = child->stateless == process; /* one may have been on its way for long */
        child->stateless = process;
        if (!again)
            return;
        snprintf(text, sizeof text, "%.100s has an empty state folder, and this node has seen step %llu: %s",
                 child->path, (unsigned long long)seen, advice);
    } else {
        child->behind = child->behind && m->k == 0;
        return;
    }
    if (!child->behind)
        host_tell(h, HOST_CHILD_BEHIND, at->path, text, "", NULL);
    child->behind = true;
}

/* An inner node below which no client takes part has no figures, and its parent does not wait for them. */
bool host_has_members(const hosted *at)
{
    for (size_t c = 0; c < at->n_children; c++)
        if (!at->children[c].deserted && node_child_counts(at->n, at->children[c].slot) &&
            !node_child_is_mute(at->n, at->children[c].slot))
            return true;
    return false;
}

/* In lock step a child ends the run after its parent: a parent that has not goes on from an old copy of its state.
 * (What a broker remembers of an earlier run was replaced in the set-up of this one.) */
static void meet_ended(host *h, hosted *at, const child_name *child, const message *m)
{
    if (node_is_async(at->n) || node_ended(at->n) != NODE_RUNNING)
        return;
    if (!at->awake)
        at->woke = node_get_status(at->n).round;
    at->awake = true;
    host_meet_newer(h, at, child->path, child->slot, m);
}

void host_note_child(host *h, hosted *at, const char *path, const message *m)
{
    child_name *found = host_child_of(at, path);
    if (!found)
        return;
    found->deserted = m->k == 2;
    found->lives_until = m->k == 0 || m->run != h->s.run_id ? 0 : clock_ms() + 3 * (uint64_t)h->s.status_ms;
    if (at->n && m->run == h->s.run_id && m->count > HOST_STATUS_TERM)
        note_state(h, at, found, m);
    if (at->n && m->run == h->s.run_id && phase_of(m) == NODE_PHASE_FINAL)
        meet_ended(h, at, found, m);
}

void host_watch_children(hosted *at, uint64_t now)
{
    const bool asks = at->n && node_asks(at->n), over = at->n && at->q && node_is_async(at->n) && node_is_over(at->n);
    for (size_t c = 0; (asks || over) && c < at->n_children; c++) {
        const size_t slot = at->children[c].slot;
        const bool lives = at->children[c].lives_until > now && !at->children[c].deserted;
        node_child_lives(at->n, slot, lives);
        if (at->q)
            inquiry_note_child(at->q, slot, lives, node_child_is_out(at->n, slot));
    }
}

void host_tell_absences(const host *h, hosted *at)
{
    for (size_t c = 0; at->n && c < at->n_children; c++) {
        child_name *child = &at->children[c];
        const bool absent = node_child_is_absent(at->n, child->slot);
        if (absent != child->absent)
            host_tell(h, absent ? HOST_CHILD_ABSENT : HOST_CHILD_BACK, at->path, child->path, "", NULL);
        child->absent = absent;
    }
}

bool host_waits_for(const host *h, size_t i, size_t slot)
{
    const hosted *at = &h->all[i];
    return (at->q && inquiry_waits_for(at->q, slot)) || (at->n && node_waits_for(at->n, slot));
}

host_waits host_get_waits(const host *h, size_t i)
{
    const hosted *at = &h->all[i];
    host_waits waits = {0};
    for (size_t c = 0; c < at->n_children; c++) {
        if (!host_waits_for(h, i, c))
            continue;
        const uint64_t since =
                           at->q && inquiry_waits_for(at->q, c) ? inquiry_waits_since(at->q) : node_waits_since(at->n),
                       now = clock_ms();
        if (waits.count++ == 0)
            waits.first = c;
        const uint64_t from = since > h->began ? since : h->began; /* a question may be older than the first tick */
        waits.ms = now > from ? now - from : 0;
    }
    return waits;
}

void host_describe_waits(const host *h, size_t i, char *text, size_t size)
{
    enum { SHOWN = 4 };
    const host_waits waits = host_get_waits(h, i);
    size_t shown = 0, at = 0;
    text[0] = 0;
    for (size_t c = 0; c < h->all[i].n_children && shown < SHOWN && at < size; c++)
        if (host_waits_for(h, i, c))
            at += (size_t)snprintf(text + at, size - at, "%s%.100s", shown++ ? ", " : "", host_child(h, i, c));
    if (waits.count > shown && at < size)
        at += (size_t)snprintf(text + at, size - at, " and %zu more", waits.count - shown);
    if (waits.count && at < size)
        snprintf(text + at, size - at, " for %llu s", (unsigned long long)waits.ms / 1000);
}

const char *host_child(const host *h, size_t i, size_t slot)
{
    const hosted *at = &h->all[i];
    for (size_t c = 0; c < at->n_children; c++)
        if (at->children[c].slot == slot)
            return at->children[c].path;
    return NULL;
}

/* Ends the run here, and tells the parent why, so that it ends too: up to the cloud, which tells all nodes. */
static void end_run(host *h, hosted *at, const char *why)
{
    hfsad_error err;
    double values[INQUIRY_WHY_MOST];
    message m = {.kind = MESSAGE_ANSWER,
                 .run = h->s.run_id,
                 .phase = NODE_PHASE_SETUP,
                 .round = HOST_COMPLAINT,
                 .values = values};
    for (; why[m.count] && m.count < INQUIRY_WHY_MOST; m.count++)
        values[m.count] = (unsigned char)why[m.count];
    if (at->parent && host_send(h, at, ABOVE, TOPIC_ANSWER, &m, &err))
        return;
    host_break_down(h, error_set(&err, HFSAD_ERROR_INPUT, "%.500s", why), &err);
}

void host_meet_liar(host *h, hosted *at, const char *path, size_t slot)
{
    char why[INQUIRY_WHY_MOST];
    if (!(at->n && node_child_lies(at->n, slot)) && !(at->q && inquiry_child_lies(at->q, slot)))
        return;
    if (at->n && node_is_async(at->n) && node_child_lies(at->n, slot)) {
        node_set_aside(at->n, slot);
        host_tell(h, HOST_CHILD_ASIDE, at->path, path, "", NULL);
        return;
    }
    snprintf(why, sizeof why,
             "%.90s has sent messages beyond the bounds of the mathematics to %.50s: repair or replace it", path,
             at->path);
    end_run(h, at, why);
}

void host_end_too_large(host *h, hosted *at)
{
    char why[INQUIRY_WHY_MOST];
    if (at->n && node_protects_rows(at->n))
        snprintf(why, sizeof why, NOISE_INEXACT, at->path);
    else
        snprintf(why, sizeof why, FIXED_TOO_LARGE, at->path);
    end_run(h, at, why);
}

/* From inner nodes only: a client cannot end a run by its word. In fixed point it may have to. */
void host_hear_complaint(host *h, hosted *at, size_t from, const message *m)
{
    char why[INQUIRY_WHY_MOST + 1];
    size_t i = 0;
    if (m->run != h->s.run_id || from == NODE_PARENT || (from >= at->n_inner && h->s.encoding != WIRE_FIXED))
        return;
    for (; i < m->count && i < INQUIRY_WHY_MOST; i++) /* it goes to a terminal */
        why[i] = m->values[i] >= ' ' && m->values[i] <= '~' ? (char)m->values[i] : '?';
    why[i] = 0;
    end_run(h, at, why);
}

/* ---- this node ---- */

static void tell_lost(const host *h, hosted *at, const message *m)
{
    char text[600];
    if (++at->left_out != 2)
        return;
    snprintf(text, sizeof text, "the state folder %.200s is empty, and the run has come to round %llu: %s",
             h->s.state ? store_folder(h->s.state) : "of this process", (unsigned long long)m->round, advice);
    host_tell(h, HOST_STATE_LOST, at->path, text, "", NULL);
}

/* Training begins when every node has the set-up's result on its disk, so the folder of this one was lost. A message
 * that the broker remembers of an earlier run comes once in a connection. */
void host_note_training(const host *h, hosted *at, const message *m)
{
    if ((m->kind == MESSAGE_DOWN || m->kind == MESSAGE_ASK) && m->phase != NODE_PHASE_SETUP)
        tell_lost(h, at, m);
}

static const char remedy[] = "restore a copy of the folder that is not older, or remove it and let the node's link "
                             "start anew with `hfsad readmit`";

/* The parent has answered an UP with what it has seen: a life of the link that this node does not know, or a step. */
static void say_behind(const host *h, const hosted *at, const char *path, const message *m, char *text, size_t size)
{
    const node_status status = node_get_status(at->n);
    const char *folder = store_folder(h->s.state);
    uint64_t life = 0;
    for (size_t i = 1; i + 1 < m->count; i += 2)
        if (m->values[i] == (double)at->slot && m->values[i + 1] < 0 && m->values[i + 1] >= -0x1p53)
            life = (uint64_t)-m->values[i + 1] >> 32;
    if (life > node_life(at->n))
        snprintf(text, size,
                 "the state of %.100s in %.200s is older than what %.100s has seen: it is from before the readmission "
                 "of the node, in life %llu of its link, that one is in life %llu; %s",
                 at->path, folder, path, (unsigned long long)node_life(at->n), (unsigned long long)life, remedy);
    else
        snprintf(text, size,
                 "the state of %.100s in %.200s is older than what %.100s has seen: that one has an UP that is not in "
                 "it, after step %llu; %s",
                 at->path, folder, path, (unsigned long long)status.k, remedy);
}

/* In lock step no node is ahead of its neighbours, so this one goes on from an old copy of its state, or from none. A
 * child is believed only before this node has made a step: later it could end a run by a lie. */
void host_meet_newer(host *h, hosted *at, const char *path, size_t from, const message *m)
{
    hfsad_error err;
    char text[700];
    const node_status status = node_get_status(at->n);
    if (!h->s.state || m->run != h->s.run_id || (from != NODE_PARENT && status.round != at->woke))
        return;
    if (at->parent && at->unstored && status.round == 0 && status.k == 0 && node_life(at->n) == 0) {
        tell_lost(h, at, m); /* the broker remembered the result of the set-up */
        return;
    }
    if (m->kind == MESSAGE_ACK)
        say_behind(h, at, path, m, text, sizeof text);
    else
        snprintf(
            text, sizeof text,
            "the state of %.100s in %.200s is older than what %.100s has seen: round %llu, that one is at %llu; %s",
            at->path, store_folder(h->s.state), path, (unsigned long long)status.round, (unsigned long long)m->round,
            remedy);
    host_break_down(h, error_set(&err, HFSAD_ERROR_INPUT, "%s", text), &err);
}

/* Of two processes of one name, the one with the smaller list of these stays: the one in a later life of its link, that
 * has come further, has a state; if both have none, was started first; then the one that was started less often from
 * its folder, and by the numbers that were drawn. The clocks that count the time since a start cannot be set. */
enum { RANKS = 7 };
typedef struct {
    double by[RANKS];
} ranks;

static ranks rank_of(const message *m)
{
    const double *v = m->values;
    const bool stateless = phase_of(m) != NODE_PHASE_TRAIN && phase_of(m) != NODE_PHASE_FINAL;
    return (ranks){{-(double)life_of(m), -v[HOST_STATUS_K], stateless, stateless ? -v[HOST_STATUS_UPTIME] : 0,
                    v[HOST_STATUS_TERM], v[HOST_STATUS_INSTANCE], v[HOST_STATUS_PROCESS]}};
}

static bool is_before(const ranks *a, const ranks *b)
{
    static const double alike[RANKS] = {[3] = 500}; /* a message takes its time */
    size_t i = 0;
    while (i < RANKS - 1 && fabs(a->by[i] - b->by[i]) <= alike[i])
        i++;
    return a->by[i] < b->by[i];
}

void host_meet_twin(host *h, hosted *at, const message *m)
{
    double values[HOST_STATUS_NUMBERS];
    hfsad_error err;
    if (m->k == 0)
        at->status_due = 0;
    if (m->k == 0 || m->count < HOST_STATUS_ITERATION || m->values[HOST_STATUS_PROCESS] == (double)h->s.process)
        return;
    at->meets = m->values[HOST_STATUS_PROCESS];
    const message own = host_status_of(h, at, true, values);
    const ranks theirs = rank_of(m), mine = rank_of(&own);
    if (!is_before(&theirs, &mine)) {
        at->status_due = 0;
        return;
    }
    /* The broker may keep the message of a process that has ended, or an attacker may replay it. */
    if (m->values[HOST_STATUS_MEETS] == (double)h->s.process && ++at->twins >= HOST_TWINS)
        host_break_down(h,
                        error_set(&err, HFSAD_ERROR_INPUT,
                                  "%s already runs in another process: end that process, or use another name",
                                  at->path),
                        &err);
}
