/* The state of a node as words: everything that must survive a crash. */
#include "net/node_parts.h"

#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

static void pass_link(const word_transfer *t, node *n)
{
    const size_t M = n->s.M;
    words_pass(t, &n->begun);
    words_pass(t, &n->round);
    words_pass(t, &n->down_round);
    words_pass(t, &n->up_round);
    words_pass_32(t, &n->k);
    words_pass_32(t, &n->last);
    words_pass(t, &n->sent_up);
    words_pass(t, &n->sent_down);
    uint64_t round = (uint64_t)n->answer.round, state = n->state;
    words_pass(t, &round);
    n->answer.round = (int64_t)round;
    words_pass(t, &n->answer.k);
    words_pass_flag(t, &n->answer.final);
    words_pass(t, &n->repairs);
    words_pass(t, &n->life);
    if (n->s.async || n->life > 0) /* messages of the parent's earlier life are old */
        words_pass(t, &n->parent_begun);
    words_pass(t, &state);
    n->state = (node_state)state;
    if (t->in && state >= NODE_STATES)
        t->in->bad = true;
    for (size_t i = 0; i < 4 && n->s.p->secure; i++) {
        words_pass(t, &n->down_digest[i]);
        words_pass(t, &n->up_digest[i]);
        words_pass(t, &n->answer.digest[i]);
    }
    words_pass_reals(t, &n->dual, 1);
    words_pass_reals(t, n->answer.figures, node_figures_count(n));
    if (n->s.inner || n->s.keeps_w)
        words_pass_reals(t, n->w, M + n->a->down);
    if (!is_root(n)) {
        words_pass_reals(t, n->z, M);
        words_pass_reals(t, n->q, M);
    }
}

static void pass_leaf(const word_transfer *t, node *n)
{
    words_pass_32(t, &n->leaf.local_steps);
    words_pass_reals(t, n->leaf.slope, n->s.x ? 0 : n->s.rows.count);
    words_pass_reals(t, &n->leaf.eta, 1);
    if (plan_has_noise(n->s.p)) /* a step that its noise does not cover must not be sent after a restart either */
        words_pass_flag(t, &n->too_large);
}

static void pass_begin(const word_transfer *t, const node *n, child_state *child)
{
    if (!child->begin)
        child->begin = alloc_zero(n->s.M, sizeof *child->begin);
    if (child->begin)
        words_pass_reals(t, child->begin, n->s.M);
    else
        t->in->bad = true;
}

static void pass_order(const word_transfer *t, node_readmission *o)
{
    words_pass(t, &o->number);
    words_pass_flag(t, &o->retires);
    for (size_t i = 0; o->number && i < sizeof o->path; i++) {
        uint32_t byte = (unsigned char)o->path[i];
        words_pass_32(t, &byte);
        o->path[i] = (char)byte;
    }
}

/* Most children have never been readmitted, and only asynchronous ones have turns: what is 0 is left out, because an
 * edge writes all this in every round. */
static void pass_child(const word_transfer *t, const node *n, child_state *child)
{
    enum {
        LIFE = 1,
        DUE = 2,
        TURNS = 4,
        STRAIN = 8,
        ADMITTED = 16,
        ASIDE = 32,
        OUT = 64,
        BEGIN = 128,
        COPIED = 256,
        ALL = 511
    };
    uint64_t has = 0;
    if (t->out)
        has =
            (uint64_t)((child->life || child->begun_at || child->where ? LIFE : 0) | (child->due_k ? DUE : 0) |
                       (child->turns ? TURNS : 0) | (child->strain.sum != 0 || child->strain.count != 0 ? STRAIN : 0) |
                       (child->admitted ? ADMITTED : 0) | (child->aside ? ASIDE : 0) | (child->out ? OUT : 0) |
                       (child->begin ? BEGIN : 0) | (child->copied.bytes || child->copied.steps ? COPIED : 0));
    words_pass(t, &has);
    if (t->in && has > ALL)
        t->in->bad = true;
    words_pass_32(t, &child->last);
    words_pass(t, &child->need);
    words_pass(t, &child->k);
    if (t->in) {
        child->admitted = has & ADMITTED;
        child->aside = has & ASIDE;
        child->out = has & OUT;
        child->life = child->begun_at = child->due_k = child->turns = 0;
        child->where = (anew_where)0;
        child->strain.sum = child->strain.count = 0;
        child->copied.bytes = child->copied.steps = child->copied.before = 0;
    }
    if (has & LIFE) {
        uint32_t where = (uint32_t)child->where;
        words_pass(t, &child->life);
        words_pass(t, &child->begun_at);
        words_pass_32(t, &where);
        child->where = (anew_where)where;
    }
    if (has & DUE)
        words_pass(t, &child->due_k);
    if (has & TURNS)
        words_pass(t, &child->turns);
    if (has & STRAIN) {
        words_pass_reals(t, &child->strain.sum, 1);
        words_pass_reals(t, &child->strain.count, 1);
    }
    if (has & BEGIN)
        pass_begin(t, n, child);
    if (has & COPIED) {
        words_pass(t, &child->copied.bytes);
        words_pass(t, &child->copied.steps);
        words_pass(t, &child->copied.before);
    }
    for (size_t i = 0; i < 2 && n->s.p->fixed; i++)
        words_pass(t, &child->strain_words[i]);
}

static void pass_inner(const word_transfer *t, node *n)
{
    words_pass_flag(t, &n->took_part);
    words_pass_reals(t, &n->reach, 1);
    words_pass(t, &n->inner.opened);
    words_pass_flag(t, &n->inner.has_settled);
    words_pass_reals(t, &n->inner.settled, 1);
    if (!is_root(n))
        words_pass_reals(t, n->inner.w_parent, n->s.M);
    for (size_t c = 0; c < n->stored_children; c++)
        pass_child(t, n, &n->inner.child[c]);
    if (!is_root(n))
        return;
    words_pass(t, &n->root.stop.met_since);
    words_pass_reals(t, n->root.guard.calm, n->root.guard.calm ? GUARD_VECTORS * n->s.M : 0);
    guard_pass(t, &n->root.guard);
    uint64_t end = n->root.end;
    words_pass(t, &end);
    n->root.end = (node_end)end;
    words_pass_reals(t, n->root.polish, n->root.polish ? n->s.polish : 0);
    for (size_t i = 0; i < NODE_ORDERS; i++)
        pass_order(t, &n->root.orders[i]);
    start_search_pass(t, &n->root.search);
    bool models = n->state == NODE_FINISHED && n->inner.models;
    words_pass_flag(t, &models);
    if (models) {
        if (!n->inner.models)
            n->inner.models = alloc_zero(n->nodes * n->s.M, sizeof(double));
        if (n->inner.models)
            words_pass_reals(t, n->inner.models, n->nodes * n->s.M);
        n->inner.has_models = n->inner.models != NULL;
    }
}

/* A question between the first and the last: what its answers were made with must stay. */
static void pass_question(const word_transfer *t, node *n)
{
    question *q = &n->question;
    bool between = q->state == QUESTION_ASKED && q->row == &QUESTION_FIGURES && async_is_between(n, q->round);
    words_pass_flag(t, &between);
    if (!between)
        return;
    words_pass(t, &q->round);
    q->number = q->round;
    words_pass(t, &q->asked_version);
    words_pass_reals(t, q->w, 2 * n->s.M);
    words_pass_reals(t, q->parent, n->s.M);
    for (size_t i = 0; i < 4 && n->s.p->secure; i++)
        words_pass(t, &q->digest[i]);
    if (t->out)
        tally_pack(&q->own, n->s.tiers, q->own_numbers);
    words_pass_reals(t, q->own_numbers, node_figures_count(n));
    if (!t->in)
        return;
    tally_unpack(&q->own, n->s.tiers, q->own_numbers);
    q->state = QUESTION_ASKED;
    q->row = &QUESTION_FIGURES;
}

static void pass_async(const word_transfer *t, node *n)
{
    words_pass(t, &n->async.version);
    words_pass(t, &n->async.turn_left);
    words_pass_flag(t, &n->async.stopping);
    words_pass_flag(t, &n->async.steps_on);
    pass_question(t, n);
    for (size_t c = 0; c < n->stored_children; c++) {
        words_pass_flag(t, &n->inner.child[c].fresh);
        words_pass_flag(t, &n->inner.child[c].missed);
        words_pass_reals(t, &n->inner.child[c].sigma, 1);
        words_pass_reals(t, n->inner.child_u + c * n->s.M, n->s.M);
        unit_pass(t, n, c);
    }
    uint64_t count = n->async.n_heard;
    words_pass(t, &count);
    if (t->in && (count > t->in->left ||
                  !alloc_grow((void **)&n->async.heard, &n->async.heard_room, count, sizeof *n->async.heard))) {
        t->in->bad = true;
        return;
    }
    n->async.n_heard = count;
    for (size_t i = 0; i < count; i++) {
        words_pass_32(t, &n->async.heard[i].slot);
        words_pass(t, &n->async.heard[i].version);
        words_pass(t, &n->async.heard[i].k);
    }
    record_pass(t, n);
}

static void pass_state(const word_transfer *t, node *n)
{
    pass_link(t, n);
    if (n->s.leaf)
        pass_leaf(t, n);
    else
        pass_inner(t, n);
    if (n->a->pass)
        n->a->pass(t, n);
    if (n->s.async && n->s.inner)
        pass_async(t, n);
}

/* A state begins with a print of its node. */
static uint64_t print_of(const node *n)
{
    uint64_t sum = words_sum_add(n->s.run, n->s.key);
    enum { FORMAT = 3 }; /* of the words that follow; 2 was before copies of records */
    const uint64_t shape[] = {
        FORMAT, n->s.M, n->s.depth, n->s.slot, n->stored_children, n->s.leaf != NULL, n->s.tiers, n->leaf.data_print};
    for (size_t i = 0; i < sizeof shape / sizeof *shape; i++)
        sum = words_sum_add(sum, shape[i]);
    return sum;
}

bool node_changed(const node *n)
{
    return n->changed;
}

bool node_follows(const node *n)
{
    return n->s.leaf && !n->s.async;
}

void node_keep(node *n)
{
    n->changed = false;
}

void node_pack(node *n, word_writer *w)
{
    const word_transfer t = {.out = w};
    n->stored_children = n->s.n_children;
    words_put(w, print_of(n));
    words_put(w, n->s.stage);
    pass_state(&t, n);
    n->changed = false;
}

/* Whether z, q and k are still those of its last UP. In the middle of a turn they are not, and another UP under the
 * number of the last would have its mask; the last one was acknowledged before the turn began. */
static bool has_up(const node *n)
{
    return n->s.async ? n->up_round == n->down_round : !n->took_part;
}

/* Every message sent before may be lost, so all are sent again. */
static void begin_again(node *n)
{
    n->begun++;
    n->changed = true;
    node_find_rule(n);
    channel_stop(&n->down);
    if (n->question.state == QUESTION_ASKED)
        node_send(n, &n->question.ask);
    if (n->state == NODE_FINISHED && !is_root(n))
        return;
    if (!is_root(n) && n->up_round > 0 && has_up(n))
        node_send(n, &n->up); /* asynchronous: no new turn before it is acknowledged (again) */
    n->async.since = n->now;
    if (n->state == NODE_TRAINS)
        node_send(n, &n->down);
    if (n->s.async && n->s.inner && n->state != NODE_HALTED)
        unit_remind(n, true);
    if (n->s.leaf && n->answer.final)
        node_send(n, &n->answer.models);
    if (n->s.inner) {
        n->answer.final = n->state == NODE_FINISHED; /* otherwise the models below have to be asked for again */
        inner_advance(n);
    }
}

/* Children may have been added to the end of the list since; they have not joined yet. */
static bool is_own(node *n, uint64_t print)
{
    for (size_t later = 0; later <= n->s.n_later; later++) {
        n->stored_children = n->s.n_children - later;
        if (print == print_of(n))
            return true;
    }
    return false;
}

bool node_unpack(node *n, word_reader *r)
{
    const word_transfer t = {.in = r};
    if (!is_own(n, words_get(r)))
        return false;
    const size_t stored = n->stored_children;
    const uint64_t stage = words_get(r);
    if (stage != n->s.stage && (stage >= n->s.stages || !stage_begin(n, stage, n->s.start)))
        return false;
    n->stored_children = stored; /* of whatever stage */
    channel_stop(&n->question.ask);
    n->question.state = QUESTION_NONE; /* with the children's answers it is lost; one that is kept follows */
    pass_state(&t, n);
    if (r->bad || r->left)
        return false;
    begin_again(n);
    return true;
}

/* ---- for callers that assemble a whole run ---- */

bool node_get_share(const node *n, uint64_t round, double *w, run_share *share)
{
    const bool runs_off = is_root(n) && (n->state == NODE_REPAIRS || !all_finite(n->w, n->s.M));
    if (is_prelude(n) || runs_off || n->answer.round != (int64_t)round)
        return false;
    if (!n->s.async && n->round != round)
        return false;
    node_model(n, w);
    *share = (run_share){.w = w, .z = n->z, .q = n->q, .k = n->k, .last = n->last, .dual = n->dual};
    if (n->s.leaf && !n->s.x) {
        share->slope = n->leaf.slope;
        share->eta = n->leaf.eta;
    }
    return true;
}

int64_t node_last_row(const node *n)
{
    return is_prelude(n) ? -1 : n->answer.round;
}

const guard_state *node_guard(const node *n)
{
    return &n->root.guard;
}

stop_state node_stop(const node *n)
{
    return n->root.stop;
}
