/* Asynchronous training: turns of children, and steps of parents that do not wait for all of them. */
#include "net/node_parts.h"

#include "base/alloc.h"
#include "base/error.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

hfsad_status async_create(node *n, hfsad_error *err)
{
    n->async.held_w = alloc_zero(n->s.M, sizeof(double));
    n->question.own_numbers = alloc_zero(node_figures_count(n), sizeof(double));
    n->leaf.local_steps = n->s.leaf ? n->s.leaf->local_steps : 1;
    return n->async.held_w && n->question.own_numbers ? unit_create(n, err)
                                                      : error_memory(err, n->s.M * sizeof(double), "a node's vectors");
}

void async_free(node *n)
{
    unit_free(n);
    record_free(n);
    free(n->async.held_w);
    free(n->question.own_numbers);
    free(n->async.heard);
    free(n->async.lines);
}

void async_start(node *n)
{
    for (size_t c = 0; c < n->s.n_children; c++) {
        inner_assume(n, c, &n->s.children[c].rule, n->s.start);
        if (n->s.children[c].out)
            (void)async_leave_child(n, c, 0);
    }
}

/* An edge that was readmitted in the middle of a turn has made steps in vain, less than a turn for each of its lives.
 */
uint64_t async_extra(const node *n, uint64_t begun)
{
    return n->s.async ? (begun >> NODE_BEGUN_BIT) * n->K : 0;
}

/* ---- a turn ---- */

/* Versions of the parent's w that there will be at most. */
static uint64_t versions(const node *n)
{
    return n->s.depth == 1 ? n->s.p->iterations : n->end_round + async_extra(n, n->parent_begun);
}

static bool is_frozen(const node *n)
{
    const question *q = &n->question;
    return n->state == NODE_HALTED || n->answer.final || n->answer.round < 0 ||
           (uint64_t)n->answer.round >= n->end_round ||
           (question_holds(n) && !(q->row == &QUESTION_FIGURES && async_is_between(n, q->round)));
}

static bool is_resting(const node *n)
{
    return !n->up.live && n->async.turn_left == 0 && !is_frozen(n);
}

static void take_turn(node *n, uint64_t version, const double *w_parent)
{
    n->down_round = version;
    n->changed = true;
    if (n->s.inner) {
        memmove(n->inner.w_parent, w_parent, n->s.M * sizeof *w_parent);
        n->async.turn_left = n->period;
        return;
    }
    leaf_step(n, w_parent, (uint32_t)n->period * n->leaf.local_steps);
    n->sent_up++;
    n->up_round = version;
    memcpy(n->up_digest, n->down_digest, sizeof n->up_digest);
    node_send(n, &n->up);
}

/* A member of a cohort. Its parent calls it when it has the UPs of all members, so the call acknowledges the last. */
static bool answer_call(node *n, const message *m, node_refusal *why)
{
    if (m->round == n->down_round && memcmp(m->digest, n->down_digest, sizeof m->digest) != 0)
        return node_refuse(n, why, NODE_REFUSED_VALUE);
    if (m->round <= n->down_round || !unit_is_called(n, m) || n->async.turn_left || is_frozen(n))
        return node_refuse(n, why, NODE_REFUSED_OLD);
    channel_stop(&n->up);
    memcpy(n->down_digest, m->digest, sizeof m->digest);
    take_turn(n, m->round, m->values);
    return true;
}

/* A parent that asks for more steps than the budget of the noise was divided over. */
static bool is_spent(const node *n)
{
    return n->s.leaf && plan_has_noise(n->s.p) && n->k + n->period * n->leaf.local_steps > n->s.p->noise.rounds;
}

bool async_handle_down(node *n, const message *m, node_refusal *why)
{
    if (m->count != unit_down_count(n))
        return node_refuse(n, why, NODE_REFUSED_SIZE);
    if (m->round > versions(n) || (m->round > n->down_round && is_spent(n)))
        return node_refuse(n, why, NODE_REFUSED_FUTURE);
    if (n->answer.round < 0) /* no version comes before the first row, so that went without this node */
        n->answer.round = 0;
    if (unit_waits_for_call(n))
        return answer_call(n, m, why);
    if (m->round <= n->down_round || m->round <= n->async.held || is_frozen(n))
        return node_refuse(n, why, NODE_REFUSED_OLD);
    if (is_resting(n)) {
        take_turn(n, m->round, m->values);
        return true;
    }
    n->async.held = m->round;
    memcpy(n->async.held_w, m->values, n->s.M * sizeof *n->async.held_w);
    return true;
}

void async_acknowledged(node *n)
{
    if (n->async.held > n->down_round && is_resting(n))
        take_turn(n, n->async.held, n->async.held_w);
    if (n->s.inner)
        inner_advance(n);
}

/* ---- questions ---- */

bool async_is_between(const node *n, uint64_t round)
{
    return round > 0 && round < n->end_round;
}

bool async_may_ask(const node *n, uint64_t round)
{
    if (n->answer.round < 0)
        return round == 0;
    return round > (uint64_t)n->answer.round && round <= n->end_round;
}

/* The last ones are sent when every node has received everything. */
bool async_can_answer(const node *n, uint64_t round)
{
    return async_is_between(n, round) || !n->up.live;
}

static bool is_last_version(const node *n)
{
    return n->async.version == n->s.p->iterations ||
           (n->async.stopping && n->async.version > (uint64_t)n->answer.round / n->K);
}

bool async_measures(const node *n, uint64_t *round)
{
    const uint64_t every = n->s.p->trace_every;
    const bool first = n->answer.round < 0, last = !first && is_last_version(n);
    *round = first ? 0 : last ? n->end_round : n->async.version * n->K;
    return first || last || n->async.version >= ((uint64_t)n->answer.round / n->K / every + 1) * every;
}

/* ---- a parent ---- */

static bool is_asking_for_figures(const node *n)
{
    const question *q = &n->question;
    return q->state == QUESTION_ASKED && q->row == &QUESTION_FIGURES && q->round == n->end_round;
}

/* In the record: the counter, after the life of the link. */
uint64_t async_lived(const child_state *child, uint64_t k)
{
    return (child->life << 32) + k;
}

static bool has_room_for_heard(node *n, size_t more)
{
    return alloc_grow((void **)&n->async.heard, &n->async.heard_room, n->async.n_heard + more, sizeof *n->async.heard);
}

bool async_note_heard(node *n, size_t c, uint64_t version, uint64_t k)
{
    if (!has_room_for_heard(n, 1))
        return false;
    n->async.heard[n->async.n_heard++] = (heard){(uint32_t)c, version, k};
    return true;
}

bool async_leave_child(node *n, size_t c, uint64_t life)
{
    child_state *child = &n->inner.child[c];
    if (unit_end(n, c) - unit_first(n, c) > 1)
        return unit_leave(n, c, life);
    if (!async_note_heard(n, c, n->async.version + 1, (life << 32) + UINT32_MAX))
        return false;
    child->out = true;
    child->fresh = child->absent = false;
    return true;
}

bool async_begin_child(node *n, size_t c, uint64_t life)
{
    child_state *child = &n->inner.child[c];
    if (!async_note_heard(n, c, n->async.version + 1, life << 32))
        return false;
    child->out = false;
    child->answered = child->answered && n->s.children[c].leaf; /* an inner node answers with its new link */
    child->need = n->async.version;
    child->fresh = false;
    child->absent = !n->s.pace.stale_waits; /* until it speaks */
    return true;
}

bool async_handle_up(node *n, size_t c, const message *m, node_refusal *why)
{
    child_state *child = &n->inner.child[c];
    if (child->aside || child->out || child->closing)
        return node_refuse(n, why, NODE_REFUSED_OLD);
    if (m->count != n->s.M)
        return node_refuse(n, why, NODE_REFUSED_SIZE);
    if (m->round > n->async.version + 1)
        return node_refuse(n, why, NODE_REFUSED_FUTURE);
    if (m->round <= child->need) {
        n->ack_up = child->ack_up = true;
        return node_refuse(n, why, NODE_REFUSED_OLD);
    }
    if ((is_frozen(n) && !is_asking_for_figures(n)) || !unit_expects(n, c, m->round))
        return node_refuse(n, why, NODE_REFUSED_OLD);
    if (m->k <= child->k) {
        n->ack_up = child->ack_up = child->is_behind = true;
        return node_refuse(n, why, NODE_REFUSED_VALUE);
    }
    if (!(m->sigma > 0) || m->k > UINT32_MAX)
        return node_refuse(n, why, NODE_REFUSED_VALUE);
    if (!record_has_steps(n, c, m->k))
        return node_refuse(n, why, NODE_REFUSED_OLD); /* it is sent again, after its lines */
    if (!bounds_of_turn(n, c, m->k - child->k) || !bounds_of_up(n, c, m))
        return node_refuse_lie(n, c, why);
    if (!has_room_for_heard(n, unit_entries(n, c)))
        return node_refuse(n, why, NODE_REFUSED_OLD); /* it will be sent again */
    n->changed = true;
    n->ack_up = child->ack_up = true;
    record_pay(n, c);
    child->turns++;
    child->need = m->round;
    child->k = m->k;
    if (!unit_take(n, c, m))
        return true;
    unit_note(n, unit_first(n, c));
    if (n->state == NODE_TRAINS)
        unit_call(n);
    return true;
}

bool async_may_open(const node *n)
{
    if (n->state == NODE_FINISHED || is_frozen(n))
        return false;
    return is_root(n) ? !is_last_version(n) : n->async.turn_left > 0;
}

void async_open(node *n)
{
    node_move(n, NODE_TRAINS);
    n->async.since = n->now;
    node_send(n, &n->down);
    unit_call(n);
}

/* Steps by which a child may be behind: K_a global iterations. */
static uint64_t lag_allowed(const node *n)
{
    return n->s.p->at_least_every * (is_root(n) ? 1 : n->K);
}

bool async_is_stale(const node *n, size_t c)
{
    return !n->inner.child[c].absent && !n->inner.child[c].aside && !n->inner.child[c].out &&
           n->async.version + 1 - n->inner.child[c].need > lag_allowed(n);
}

static bool somebody_is_stale(const node *n)
{
    for (size_t c = 0; c < n->s.n_children; c++)
        if (async_is_stale(n, c))
            return true;
    return false;
}

static size_t count_fresh(const node *n)
{
    size_t fresh = 0;
    for (size_t c = 0; c < n->s.n_children; c = unit_end(n, c))
        fresh += unit_is_fresh(n, c);
    return fresh;
}

static size_t count_present(const node *n)
{
    size_t present = 0;
    for (size_t c = 0; c < n->s.n_children; c = unit_end(n, c))
        present += !unit_is_absent(n, c);
    return present;
}

/* Longer at nodes above others, which wait in turn: an edge must not be left out for a client of its own. */
static uint64_t answer_ms(const node *n)
{
    return n->s.pace.answer_ms * (uint64_t)(n->s.tiers - n->s.depth);
}

/* The first row and the end are not repeated, and no step waits for them: a child that lives has more time. */
static uint64_t live_answer_ms(const node *n)
{
    enum { LIVE_ANSWER_MS = 60000 };
    const uint64_t most = (uint64_t)LIVE_ANSWER_MS * (uint64_t)(n->s.tiers - n->s.depth);
    return async_is_between(n, n->question.round) || most < answer_ms(n) ? answer_ms(n) : most;
}

/* Training goes on while a row of the trace waits, so the wait costs no step. */
bool async_answers_without(const node *n, size_t c)
{
    if (!n->s.async || n->s.pace.stale_waits)
        return false;
    const child_state *child = &n->inner.child[c];
    if (child->absent && child->silent) /* the wait is paid once for an absence */
        return true;
    return n->now - n->question.ask.since >= (child->lives ? live_answer_ms(n) : answer_ms(n));
}

bool node_asks(const node *n)
{
    return n->s.async && n->question.state == QUESTION_ASKED;
}

void node_child_lives(node *n, size_t c, bool lives)
{
    n->inner.child[c].lives = lives;
    n->inner.child[c].silent = !lives;
}

bool async_is_ready(const node *n)
{
    const size_t fresh = count_fresh(n);
    if (n->async.steps_on)
        return true;
    if (fresh == 0)
        return false;
    if (somebody_is_stale(n) && (n->s.pace.stale_waits || n->now - n->async.since < n->s.pace.stale_ms))
        return false;
    return (double)fresh >= n->s.pace.quorum * (double)count_present(n) ||
           n->now - n->async.since >= n->s.pace.deadline_ms;
}

/* When the question in hand goes on without those that have not answered. */
static uint64_t question_due(const node *n)
{
    const uint64_t since = n->question.ask.since, first = since + answer_ms(n), last = since + live_answer_ms(n);
    if (n->question.state != QUESTION_ASKED || n->s.pace.stale_waits)
        return UINT64_MAX;
    return first > n->now ? first : last > n->now ? last : UINT64_MAX;
}

static uint64_t step_due(const node *n)
{
    if (n->state != NODE_TRAINS || count_fresh(n) == 0)
        return UINT64_MAX;
    const uint64_t deadline = n->async.since + n->s.pace.deadline_ms;
    if (!somebody_is_stale(n))
        return deadline;
    const uint64_t patience = n->async.since + n->s.pace.stale_ms;
    return n->s.pace.stale_waits ? UINT64_MAX : patience > deadline ? patience : deadline;
}

uint64_t async_due(const node *n)
{
    const uint64_t answers = question_due(n), step = step_due(n);
    return answers < step ? answers : step;
}

/* ---- the record ---- */

bool async_all_are_first(const node *n)
{
    bool all = true;
    for (size_t c = 0; c < n->s.n_children; c++)
        all = all && n->inner.child[c].answered && n->inner.child[c].life == 0;
    return all;
}

/* Lack of memory shows as a record that cannot be replayed, never as another run. */
void async_put_own(node *n, const char *text)
{
    const size_t size = strlen(text);
    if (!alloc_grow((void **)&n->async.lines, &n->async.lines_room, n->async.lines_size + size + 1, 1))
        return;
    memcpy(n->async.lines + n->async.lines_size, text, size + 1);
    n->async.lines_size += size;
}

void async_put(node *n, const char *text)
{
    async_put_own(n, text);
    record_add(n, text);
}

static void put_heard(node *n)
{
    char text[80];
    for (size_t i = 0; i < n->async.n_heard; i++) {
        snprintf(text, sizeof text, " %" PRIu32 ":%" PRIu64 ":%" PRIu64, n->async.heard[i].slot,
                 n->async.heard[i].version, n->async.heard[i].k);
        async_put(n, text);
    }
    n->async.n_heard = 0;
}

static void put_absent(node *n, size_t c)
{
    char text[40];
    snprintf(text, sizeof text, " %zu:-", c);
    async_put(n, text);
}

void async_step(node *n)
{
    char text[80];
    snprintf(text, sizeof text, "%" PRIu64 " %" PRIu64, n->async.version + 1, n->down_round);
    async_put(n, text);
    put_heard(n);
    async_put(n, "\n");
    for (size_t c = 0; c < n->s.n_children && !n->s.pace.stale_waits; c++) /* the wait is paid once for an absence */
        n->inner.child[c].absent = n->inner.child[c].absent || async_is_stale(n, c);
    node_step(n);
    n->async.version++;
    n->async.steps_on = false;
    node_move(n, NODE_RESTS);
    for (size_t c = 0; c < n->s.n_children; c++)
        n->inner.child[c].fresh = false;
    const bool unsent = n->down.send; /* several messages have come in one turn */
    channel_stop(&n->down);
    unit_remind(n, unsent);
    if (is_root(n) || --n->async.turn_left > 0)
        return;
    n->sent_up++;
    n->up_round = n->down_round;
    memcpy(n->up_digest, n->down_digest, sizeof n->up_digest);
    record_mark(n);
    node_send(n, &n->up);
}

/* What was received since the last step: a row may show a child's later state. */
static void put_heard_line(node *n)
{
    if (n->async.n_heard == 0)
        return;
    async_put(n, "heard");
    put_heard(n);
    async_put(n, "\n");
}

void async_row(node *n)
{
    char text[80];
    if (record_is_copied(n) && !is_root(n))
        put_heard_line(n);
    snprintf(text, sizeof text, "row %" PRIu64 " %" PRIu64, n->question.round, n->question.asked_version);
    async_put(n, text);
    for (size_t c = 0; c < n->s.n_children; c++) {
        if (!n->inner.child[c].answered)
            put_absent(n, c);
        if (!n->inner.child[c].answered || !n->s.children[c].leaf)
            continue;
        snprintf(text, sizeof text, " %zu:%" PRIu64 ":%" PRIu64, c, n->inner.child[c].answer_k,
                 n->inner.child[c].answer_version);
        async_put(n, text);
    }
    async_put(n, "\n");
}

static void put_aside(node *n)
{
    bool any = false;
    for (size_t c = 0; c < n->s.n_children; c++) {
        if (!n->inner.child[c].aside)
            continue;
        async_put(n, any ? "" : "aside");
        put_absent(n, c);
        any = true;
    }
    async_put(n, any ? "\n" : "");
}

void async_end(node *n)
{
    char text[80];
    put_aside(n);
    snprintf(text, sizeof text, "end %" PRIu64, n->down_round);
    async_put(n, text);
    unit_note_rest(n);
    put_heard(n);
    for (size_t c = 0; c < n->s.n_children; c++) {
        n->inner.child[c].missed = !n->inner.child[c].answered;
        if (n->inner.child[c].missed)
            put_absent(n, c);
    }
    async_put(n, "\n");
}

void async_models(node *n)
{
    bool any = false;
    for (size_t c = 0; c < n->s.n_children; c++) {
        child_state *child = &n->inner.child[c];
        if (child->missed || child->answered)
            continue;
        if (!any)
            async_put(n, "models");
        put_absent(n, c);
        any = child->missed = true;
    }
    if (any)
        async_put(n, "\n");
}
