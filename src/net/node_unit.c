/*
 * Asynchronous training by cohorts (plan/cohort.h). A unit is a cohort of two or more children, or a child by itself.
 * A cohort is called: a DOWN of M numbers is followed by one number for each unit, 1 if it calls the unit. All its
 * members step on that version, and none steps on another. Their messages are kept apart until all of them are there;
 * then they replace those of the last call together, and the cohort may be called again. A call that a member has not
 * answered is retransmitted, whatever version its parent has come to.
 */
#include "net/node_parts.h"

#include "base/alloc.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>

/* Whether this node calls cohorts. */
bool unit_calls(const node *n)
{
    return n->s.async && n->s.p->fixed && n->s.p->cohort >= COHORT_LEAST;
}

/* ---- the units of a node ---- */

size_t unit_first(const node *n, size_t c)
{
    return unit_calls(n) ? n->inner.child[c].unit : c;
}

size_t unit_end(const node *n, size_t c)
{
    return unit_calls(n) ? n->inner.child[c].unit_end : c + 1;
}

static void find_units(const node *n)
{
    const size_t leaves = inner_first_leaf(n);
    for (size_t c = 0; c < n->s.n_children; c++) {
        child_state *child = &n->inner.child[c];
        const size_t base = c < leaves ? 0 : leaves, count = c < leaves ? leaves : n->s.n_children - leaves;
        child->unit = base + cohort_of(n->s.p, count, c - base);
        child->unit_end = child->unit + cohort_members(n->s.p, count, c - base);
    }
}

static bool is_cohort(const node *n, size_t c)
{
    return unit_end(n, unit_first(n, c)) - unit_first(n, c) > 1;
}

bool unit_is_fresh(const node *n, size_t first)
{
    return n->inner.child[first].fresh;
}

/* A member that has left, or will have when the others have made another step. */
static bool is_gone(const child_state *child)
{
    return child->out || child->leaving;
}

bool node_child_stays(const node *n, size_t c)
{
    return !is_gone(&n->inner.child[c]) && !n->inner.child[c].closing;
}

/* Whether a cohort is large enough to go on without another member. */
static bool may_shrink(const node *n, size_t c)
{
    size_t left = 0;
    for (size_t i = unit_first(n, c); i < unit_end(n, c); i++)
        left += node_child_stays(n, i);
    return left > n->s.p->cohort;
}

static bool is_wanted(const node *n, size_t c)
{
    return n->now < n->inner.child[c].wanted_until && node_child_stays(n, c) && may_shrink(n, c);
}

/* A member is about to leave: the others answer the last call, and are not called again before it has left. */
static bool is_held(const node *n, size_t first)
{
    for (size_t c = first; c < unit_end(n, first); c++)
        if (n->inner.child[c].closing || is_wanted(n, c))
            return true;
    return false;
}

bool unit_is_renewed(const node *n, size_t first)
{
    bool gone = false;
    for (size_t c = first; c < unit_end(n, first); c++)
        gone = gone || is_gone(&n->inner.child[c]);
    return gone && is_cohort(n, first);
}

/* A unit with a member that is not waited for is not waited for. */
bool unit_is_absent(const node *n, size_t first)
{
    bool any = false;
    for (size_t c = first; c < unit_end(n, first); c++) {
        const child_state *child = &n->inner.child[c];
        if (!is_gone(child) && (child->absent || child->aside))
            return true;
        any = any || !is_gone(child);
    }
    return !any;
}

bool unit_has_answered(const node *n, size_t first)
{
    for (size_t c = first; c < unit_end(n, first); c++)
        if (!n->inner.child[c].answered)
            return false;
    return true;
}

/* What some members of a cohort have answered means nothing. */
void unit_drop_partial(node *n)
{
    for (size_t first = 0; first < n->s.n_children; first = unit_end(n, first))
        for (size_t c = first, all = unit_has_answered(n, first); !all && c < unit_end(n, first); c++)
            n->inner.child[c].answered = false;
}

hfsad_status unit_create(node *n, hfsad_error *err)
{
    const size_t M = n->s.M;
    bool enough = true;
    if (!unit_calls(n) || !n->s.inner)
        return HFSAD_OK;
    find_units(n);
    n->async.down = alloc_zero(M + n->s.n_children, sizeof *n->async.down);
    for (size_t c = 0; c < n->s.n_children; c++) {
        child_state *child = &n->inner.child[c];
        if (!is_cohort(n, c))
            continue;
        child->staged_u = alloc_zero(M, sizeof *child->staged_u);
        if (unit_first(n, c) == c)
            child->call_w = alloc_zero(M, sizeof *child->call_w);
        enough = enough && child->staged_u && (unit_first(n, c) != c || child->call_w);
    }
    return n->async.down && enough ? HFSAD_OK : error_memory(err, M * sizeof(double), "the messages of a cohort");
}

void unit_free(node *n)
{
    free(n->async.down);
    for (size_t c = 0; n->inner.child && c < n->s.n_children; c++) {
        free(n->inner.child[c].staged_u);
        free(n->inner.child[c].call_w);
    }
}

/* ---- the parent calls ---- */

static bool is_pending(const node *n, size_t first)
{
    for (size_t c = first; c < unit_end(n, first); c++)
        if (n->inner.child[c].need < n->inner.child[first].call && !is_gone(&n->inner.child[c]))
            return true;
    return false;
}

static bool any_pending(const node *n)
{
    for (size_t first = 0; first < n->s.n_children; first = unit_end(n, first))
        if (n->inner.child[first].call_w && is_pending(n, first))
            return true;
    return false;
}

void unit_call(node *n)
{
    const uint64_t version = n->async.version + 1;
    for (size_t first = 0; first < n->s.n_children; first = unit_end(n, first)) {
        child_state *child = &n->inner.child[first];
        if (!child->call_w || child->call >= version || is_pending(n, first) || is_held(n, first))
            continue;
        child->call = version;
        memcpy(child->call_w, n->w, n->s.M * sizeof *n->w);
        n->changed = true;
        node_send(n, &n->down);
    }
}

/* Calls of earlier versions are retransmitted while a member is to answer them. */
void unit_remind(node *n, bool now)
{
    channel *calls = &n->async.calls;
    if (!n->async.down || !any_pending(n)) {
        channel_stop(calls);
        return;
    }
    const bool send = calls->send || now;
    if (!calls->live)
        node_send(n, calls);
    calls->send = send;
}

/* M numbers of that version, and the calls. */
static message down_of(node *n, uint64_t version, const double *w)
{
    const size_t M = n->s.M;
    message m = node_letter_of(n, MESSAGE_DOWN, NODE_PHASE_TRAIN, version);
    m.k = n->begun;
    m.values = n->async.down;
    m.count = M;
    memcpy(m.values, w, M * sizeof *w);
    (void)numbers_hide(m.values, M);
    for (size_t first = 0; first < n->s.n_children; first = unit_end(n, first))
        m.values[m.count++] = n->inner.child[first].call_w && n->inner.child[first].call == version;
    return m;
}

message unit_down(node *n)
{
    return down_of(n, n->async.version + 1, n->w);
}

/* One letter for each earlier version that is still called. */
bool unit_next_call(node *n, message *m)
{
    if (channel_take(&n->async.calls, &n->status.repeated))
        n->async.saying = 1;
    while (n->async.saying && n->async.saying <= n->s.n_children) {
        const size_t first = n->async.saying - 1;
        const child_state *child = &n->inner.child[first];
        const bool open = n->state == NODE_TRAINS && child->call == n->async.version + 1; /* n->down is */
        n->async.saying = unit_end(n, first) + 1;
        if (!child->call_w || open || !is_pending(n, first))
            continue;
        *m = down_of(n, child->call, child->call_w);
        return true;
    }
    n->async.saying = 0;
    return false;
}

/* ---- the parent receives ---- */

bool unit_expects(const node *n, size_t c, uint64_t round)
{
    return !is_cohort(n, c) || n->inner.child[unit_first(n, c)].call == round;
}

/* The message of a member; true: the cohort is complete, and its messages are in force. */
bool unit_take(node *n, size_t c, const message *m)
{
    const size_t first = unit_first(n, c), end = unit_end(n, c), M = n->s.M;
    child_state *child = n->inner.child;
    if (!is_cohort(n, c)) {
        child[c].sigma = m->sigma;
        memcpy(n->inner.child_u + c * M, m->values, M * sizeof(double));
        return true;
    }
    child[c].staged = true;
    child[c].staged_sigma = m->sigma;
    memcpy(child[c].staged_u, m->values, M * sizeof(double));
    for (size_t i = first; i < end; i++)
        if (!child[i].staged && !is_gone(&child[i]))
            return false;
    for (size_t i = first; i < end; i++) {
        if (is_gone(&child[i]))
            continue;
        child[i].staged = false;
        child[i].sigma = child[i].staged_sigma;
        memcpy(n->inner.child_u + i * M, child[i].staged_u, M * sizeof(double));
    }
    return true;
}

/* ---- the record ---- */

size_t unit_entries(const node *n, size_t c)
{
    return (2 + UNIT_SKIPS) * (unit_end(n, c) - unit_first(n, c));
}

static void note_skipped(node *n, size_t c)
{
    child_state *child = &n->inner.child[c];
    for (size_t i = 0; i < child->n_skipped; i++)
        (void)async_note_heard(n, c, child->skipped[i].round, child->skipped[i].k);
    child->n_skipped = 0;
}

static void note_left(node *n, size_t c)
{
    child_state *child = &n->inner.child[c];
    if (child->leaving)
        (void)async_note_heard(n, c, n->async.version + 1, async_lived(child, UINT32_MAX));
    child->out = child->out || child->leaving;
    child->leaving = false;
}

void unit_note(node *n, size_t first)
{
    const size_t end = unit_end(n, first);
    for (size_t c = first; c < end; c++)
        note_left(n, c);
    for (size_t c = first; c < end; c++) {
        child_state *child = &n->inner.child[c];
        if (child->out)
            continue;
        note_skipped(n, c);
        (void)async_note_heard(n, c, child->need, async_lived(child, child->k));
        child->absent = false;
        child->fresh = true;
    }
}

/* Members of cohorts that are incomplete have stepped, too. */
void unit_note_rest(node *n)
{
    for (size_t c = 0; c < n->s.n_children; c++) {
        child_state *child = &n->inner.child[c];
        note_left(n, c);
        note_skipped(n, c);
        if (child->staged)
            (void)async_note_heard(n, c, child->need, async_lived(child, child->k));
    }
}

/* ---- a member is lost for good ---- */

bool unit_leave(node *n, size_t c, uint64_t life)
{
    const size_t first = unit_first(n, c), end = unit_end(n, c);
    (void)life;
    if (!node_child_may_leave(n, c))
        return false;
    for (size_t i = first; i < end; i++) {
        child_state *child = &n->inner.child[i];
        if (child->staged && i != c)
            child->skipped[child->n_skipped++] = (unit_skip){child->need, async_lived(child, child->k)};
        child->staged = false;
    }
    n->inner.child[c].n_skipped = 0;
    n->inner.child[c].leaving = true;
    n->inner.child[c].closing = false;
    n->inner.child[c].absent = false;
    n->async.steps_on = n->state == NODE_TRAINS && n->inner.child[first].call == n->async.version + 1;
    if (n->state == NODE_TRAINS)
        unit_call(n);
    return true;
}

/* All that stay have answered the last call, so that they have the same step before them. Members that are to leave
 * with this one are not waited for. */
bool node_child_may_leave(const node *n, size_t c)
{
    const size_t first = unit_first(n, c), end = unit_end(n, c);
    for (size_t i = first; i < end; i++) {
        const child_state *child = &n->inner.child[i];
        if (child->n_skipped == UNIT_SKIPS) /* the cohort must speak first */
            return false;
        if (i != c && node_child_stays(n, i) && !is_wanted(n, i) && child->need < n->inner.child[first].call)
            return false;
    }
    return !is_gone(&n->inner.child[c]);
}

void node_child_wish(node *n, size_t c)
{
    enum { HOLD_MS = 10000 }; /* the order is repeated every second */
    n->inner.child[c].wanted_until = n->now + HOLD_MS;
}

bool node_child_is_closing(const node *n, size_t c)
{
    return n->inner.child[c].closing;
}

static void close_child(node *n, size_t c)
{
    child_state *child = &n->inner.child[c];
    if (!node_child_stays(n, c) || !may_shrink(n, c))
        return;
    child->closing = true;
    if (n->question.state == QUESTION_ASKED && n->question.row == &QUESTION_FIGURES)
        child->answered = false; /* perhaps after a step that its parent will never receive */
    n->changed = true;
}

/* From the first member that takes it out of its masks on, no sum with it means anything: it may live, and answer. A
 * cohort that would be too small refuses to go without it, and goes on with it. */
void node_child_close(node *n, size_t c)
{
    close_child(n, c);
    for (size_t i = unit_first(n, c); i < unit_end(n, c); i++)
        if (is_wanted(n, i))
            close_child(n, i);
}

void node_unit(const node *n, size_t c, size_t *first, size_t *end)
{
    *first = unit_first(n, c);
    *end = unit_end(n, c);
}

/* ---- a child ---- */

/* The number of units of its parent, and which it is in. */
static size_t units_above(const node *n, size_t *own)
{
    const size_t inner = n->s.inner_siblings, leaves = n->s.siblings - inner, before = cohorts_of(n->s.p, inner),
                 count = n->s.leaf ? leaves : inner, slot = n->s.leaf ? n->s.slot - inner : n->s.slot,
                 cohorts = cohorts_of(n->s.p, count);
    *own = n->s.leaf ? before : 0;
    for (size_t i = 0; i + 1 < cohorts && cohort_first(count, cohorts, i + 1) <= slot; i++)
        ++*own;
    return before + cohorts_of(n->s.p, leaves);
}

size_t unit_down_count(const node *n)
{
    size_t own;
    return n->s.M + (unit_calls(n) ? units_above(n, &own) : 0);
}

bool unit_waits_for_call(const node *n)
{
    return unit_calls(n) && fixed_cohort(n) > 1;
}

bool unit_is_called(const node *n, const message *m)
{
    size_t own;
    (void)units_above(n, &own);
    return m->values[n->s.M + own] == 1;
}

/* ---- state ---- */

void unit_pass(const word_transfer *t, const node *n, size_t c)
{
    child_state *child = &n->inner.child[c];
    if (child->call_w) {
        words_pass(t, &child->call);
        words_pass_reals(t, child->call_w, n->s.M);
    }
    if (!child->staged_u)
        return;
    uint64_t skipped = child->n_skipped;
    words_pass(t, &skipped);
    child->n_skipped = skipped < UNIT_SKIPS ? (size_t)skipped : UNIT_SKIPS;
    for (size_t i = 0; i < child->n_skipped; i++) {
        words_pass(t, &child->skipped[i].round);
        words_pass(t, &child->skipped[i].k);
    }
    words_pass_flag(t, &child->closing);
    words_pass_flag(t, &child->leaving);
    words_pass_flag(t, &child->staged);
    words_pass_reals(t, &child->staged_sigma, 1);
    words_pass_reals(t, child->staged_u, child->staged ? n->s.M : 0);
}
