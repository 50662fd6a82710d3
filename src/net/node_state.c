/* The state of a node as words: what it must still know after it was killed. */
#include "net/node_parts.h"

#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

/* One list of what is kept serves both ways. */
typedef struct {
    word_writer *out; /* NULL: read */
    word_reader *in;
} transfer;

static void pass_reals(const transfer *t, double *v, size_t count)
{
    if (t->out)
        words_put_reals(t->out, v, count);
    else
        words_get_reals(t->in, v, count);
}

static uint64_t pass(const transfer *t, uint64_t v)
{
    if (t->out)
        words_put(t->out, v);
    return t->out ? v : words_get(t->in);
}

static void pass_link(const transfer *t, node *n)
{
    const size_t M = n->s.M;
    n->begun = pass(t, n->begun);
    n->round = pass(t, n->round);
    n->down_round = pass(t, n->down_round);
    n->up_round = pass(t, n->up_round);
    n->k = (uint32_t)pass(t, n->k);
    n->last = (uint32_t)pass(t, n->last);
    n->sent_up = pass(t, n->sent_up);
    n->sent_down = pass(t, n->sent_down);
    n->answer.round = (int64_t)pass(t, (uint64_t)n->answer.round);
    n->answer.k = pass(t, n->answer.k);
    n->answer.final = pass(t, n->answer.final) != 0;
    n->repairs = pass(t, n->repairs);
    n->state = (node_state)pass(t, (uint64_t)n->state);
    if (t->in && n->state >= NODE_STATES)
        t->in->bad = true;
    pass_reals(t, &n->dual, 1);
    pass_reals(t, n->answer.figures, node_figures_count(n));
    if (n->s.inner || n->s.keeps_w)
        pass_reals(t, n->w, M);
    if (!is_root(n)) {
        pass_reals(t, n->z, M);
        pass_reals(t, n->q, M);
    }
}

static void pass_leaf(const transfer *t, node *n)
{
    n->leaf.local_steps = (uint32_t)pass(t, n->leaf.local_steps);
    pass_reals(t, n->leaf.slope, n->s.x ? 0 : n->s.rows.count);
    pass_reals(t, &n->leaf.eta, 1);
}

static void pass_inner(const transfer *t, node *n)
{
    n->took_part = pass(t, n->took_part) != 0;
    n->inner.has_settled = pass(t, n->inner.has_settled) != 0;
    pass_reals(t, &n->inner.settled, 1);
    if (!is_root(n))
        pass_reals(t, n->inner.w_parent, n->s.M);
    for (size_t c = 0; c < n->s.n_children; c++) {
        child_state *child = &n->inner.child[c];
        child->last = (uint32_t)pass(t, child->last);
        child->need = pass(t, child->need);
        child->k = pass(t, child->k);
        pass_reals(t, &child->strain.sum, 1);
        pass_reals(t, &child->strain.count, 1);
    }
    if (!is_root(n))
        return;
    n->root.stop.met_since = pass(t, n->root.stop.met_since);
    pass_reals(t, n->root.guard.calm, n->root.guard.calm ? 2 * n->s.M : 0);
    pass_reals(t, &n->root.guard.first_step, 1);
    n->root.guard.wild = pass(t, n->root.guard.wild);
    n->root.guard.repairs = pass(t, n->root.guard.repairs);
    n->root.guard.repaired_last = pass(t, n->root.guard.repaired_last);
    n->root.end = (node_end)pass(t, n->root.end);
    pass_reals(t, n->root.polish, n->root.polish ? n->s.polish : 0);
    n->root.prelude.bytes_up = pass(t, n->root.prelude.bytes_up);
    n->root.prelude.bytes_down = pass(t, n->root.prelude.bytes_down);
    n->root.prelude.kept = pass(t, n->root.prelude.kept);
    pass_reals(t, &n->root.least, 1);
    pass_reals(t, n->root.first, n->root.first ? n->s.M : 0);
    if (pass(t, n->state == NODE_FINISHED && n->inner.models)) {
        if (!n->inner.models)
            n->inner.models = alloc_zero(n->nodes * n->s.M, sizeof(double));
        if (n->inner.models)
            pass_reals(t, n->inner.models, n->nodes * n->s.M);
        n->inner.has_models = n->inner.models != NULL;
    }
}

/* A question between the first and the last: what its answers were made with must stay. */
static void pass_question(const transfer *t, node *n)
{
    question *q = &n->question;
    const bool between = q->state == QUESTION_ASKED && q->row == &QUESTION_FIGURES && async_is_between(n, q->round);
    if (!pass(t, between))
        return;
    q->number = q->round = pass(t, q->round);
    q->asked_version = pass(t, q->asked_version);
    pass_reals(t, q->w, 2 * n->s.M);
    pass_reals(t, q->parent, n->s.M);
    if (t->out)
        tally_pack(&q->own, n->s.tiers, q->own_numbers);
    pass_reals(t, q->own_numbers, node_figures_count(n));
    if (!t->in)
        return;
    tally_unpack(&q->own, n->s.tiers, q->own_numbers);
    q->state = QUESTION_ASKED;
    q->row = &QUESTION_FIGURES;
}

static void pass_async(const transfer *t, node *n)
{
    n->async.version = pass(t, n->async.version);
    n->async.turn_left = pass(t, n->async.turn_left);
    n->async.stopping = pass(t, n->async.stopping) != 0;
    pass_question(t, n);
    for (size_t c = 0; c < n->s.n_children; c++) {
        n->inner.child[c].fresh = pass(t, n->inner.child[c].fresh) != 0;
        pass_reals(t, &n->inner.child[c].sigma, 1);
        pass_reals(t, n->inner.child_u + c * n->s.M, n->s.M);
    }
    const size_t count = (size_t)pass(t, n->async.n_heard);
    if (t->in && (count > t->in->left ||
                  !alloc_grow((void **)&n->async.heard, &n->async.heard_room, count, sizeof *n->async.heard))) {
        t->in->bad = true;
        return;
    }
    n->async.n_heard = count;
    for (size_t i = 0; i < count; i++) {
        n->async.heard[i].slot = (uint32_t)pass(t, n->async.heard[i].slot);
        n->async.heard[i].version = pass(t, n->async.heard[i].version);
        n->async.heard[i].k = pass(t, n->async.heard[i].k);
    }
}

static void pass_state(const transfer *t, node *n)
{
    pass_link(t, n);
    if (n->s.leaf)
        pass_leaf(t, n);
    else
        pass_inner(t, n);
    if (n->s.async && n->s.inner)
        pass_async(t, n);
}

/* What a state begins with: whose it is. */
static uint64_t print_of(const node *n)
{
    uint64_t sum = words_sum_add(n->s.run, n->s.key);
    const uint64_t shape[] = {n->s.M,     n->s.depth,        n->s.slot, n->s.n_children, n->s.leaf != NULL,
                              n->s.tiers, n->leaf.data_print};
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
    const transfer t = {.out = w};
    words_put(w, print_of(n));
    words_put(w, n->s.stage);
    pass_state(&t, n);
    n->changed = false;
}

/* Everything that was said may be lost: it is said again. */
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
    if (!is_root(n) && n->up_round > 0 && !n->took_part)
        node_send(n, &n->up); /* asynchronous: no new turn before it is acknowledged (again) */
    n->async.since = n->now;
    if (n->state == NODE_TRAINS)
        node_send(n, &n->down);
    if (n->s.leaf && n->answer.final)
        node_send(n, &n->answer.models);
    if (n->s.inner) {
        n->answer.final = n->state == NODE_FINISHED; /* otherwise the models below have to be asked for again */
        inner_advance(n);
    }
}

bool node_unpack(node *n, word_reader *r)
{
    const transfer t = {.in = r};
    if (words_get(r) != print_of(n))
        return false;
    const uint64_t stage = words_get(r);
    if (stage != n->s.stage && (stage >= n->s.stages || !stage_begin(n, stage, n->s.start)))
        return false;
    channel_stop(&n->question.ask);
    n->question.state = QUESTION_NONE; /* with the children's answers it is lost; one that is kept follows */
    pass_state(&t, n);
    if (r->bad || r->left)
        return false;
    begin_again(n);
    return true;
}

/* ---- for who puts a whole run together ---- */

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
