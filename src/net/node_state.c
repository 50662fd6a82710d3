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
    n->answered = (int64_t)pass(t, (uint64_t)n->answered);
    n->answered_k = pass(t, n->answered_k);
    n->answer_phase = pass(t, n->answer_phase);
    n->repairs = pass(t, n->repairs);
    n->diverged = pass(t, n->diverged) != 0;
    n->finished = pass(t, n->finished) != 0;
    pass_reals(t, &n->dual, 1);
    pass_reals(t, n->figures, node_figures_count(n));
    if (n->s.inner || n->s.keeps_w)
        pass_reals(t, n->w, M);
    if (!is_root(n)) {
        pass_reals(t, n->z, M);
        pass_reals(t, n->q, M);
    }
}

static void pass_leaf(const transfer *t, node *n)
{
    n->local_steps = (uint32_t)pass(t, n->local_steps);
    pass_reals(t, n->slope, n->s.x ? 0 : n->s.rows.count);
    pass_reals(t, &n->eta, 1);
}

static void pass_inner(const transfer *t, node *n)
{
    n->open = pass(t, n->open) != 0;
    n->took_part = pass(t, n->took_part) != 0;
    n->has_settled = pass(t, n->has_settled) != 0;
    pass_reals(t, &n->settled, 1);
    if (!is_root(n))
        pass_reals(t, n->w_parent, n->s.M);
    for (size_t c = 0; c < n->s.n_children; c++) {
        child_state *child = &n->child[c];
        child->last = (uint32_t)pass(t, child->last);
        child->need = pass(t, child->need);
        child->k = pass(t, child->k);
        pass_reals(t, &child->strain.sum, 1);
        pass_reals(t, &child->strain.count, 1);
    }
    if (!is_root(n))
        return;
    n->stop.met_since = pass(t, n->stop.met_since);
    n->anew = pass(t, n->anew) != 0;
    pass_reals(t, n->guard.calm, n->guard.calm ? 2 * n->s.M : 0);
    pass_reals(t, &n->guard.first_step, 1);
    n->guard.wild = pass(t, n->guard.wild);
    n->guard.repairs = pass(t, n->guard.repairs);
    n->guard.repaired_last = pass(t, n->guard.repaired_last);
    n->end = (node_end)pass(t, n->end);
    n->polished = pass(t, n->polished) != 0;
    pass_reals(t, n->polish, n->polish ? n->s.polish : 0);
    n->stage_over = pass(t, n->stage_over) != 0;
    n->prelude.bytes_up = pass(t, n->prelude.bytes_up);
    n->prelude.bytes_down = pass(t, n->prelude.bytes_down);
    n->prelude.kept = pass(t, n->prelude.kept);
    pass_reals(t, &n->least, 1);
    pass_reals(t, n->first, n->first ? n->s.M : 0);
    if (pass(t, n->finished && n->models)) {
        if (!n->models)
            n->models = alloc_zero(n->nodes * n->s.M, sizeof(double));
        if (n->models)
            pass_reals(t, n->models, n->nodes * n->s.M);
    }
}

/* A question between the first and the last: what its answers were made with must stay. */
static void pass_question(const transfer *t, node *n)
{
    const bool asks = pass(t, n->asking && n->ask_phase == NODE_PHASE_TRAIN && async_is_between(n, n->ask_round)) != 0;
    if (t->in) {
        n->pending = n->asking = asks;
        n->ask_phase = NODE_PHASE_TRAIN;
    }
    if (!asks)
        return;
    n->ask_round = pass(t, n->ask_round);
    n->asked_version = pass(t, n->asked_version);
    pass_reals(t, n->ask_w, 2 * n->s.M);
    pass_reals(t, n->ask_parent, n->s.M);
    if (t->out)
        tally_pack(&n->own, n->s.tiers, n->own_numbers);
    pass_reals(t, n->own_numbers, node_figures_count(n));
    if (t->in)
        tally_unpack(&n->own, n->s.tiers, n->own_numbers);
}

static void pass_async(const transfer *t, node *n)
{
    n->version = pass(t, n->version);
    n->turn_left = pass(t, n->turn_left);
    n->halted = pass(t, n->halted) != 0;
    n->stopping = pass(t, n->stopping) != 0;
    pass_question(t, n);
    for (size_t c = 0; c < n->s.n_children; c++) {
        n->child[c].fresh = pass(t, n->child[c].fresh) != 0;
        pass_reals(t, &n->child[c].sigma, 1);
        pass_reals(t, n->child_u + c * n->s.M, n->s.M);
    }
    const size_t count = (size_t)pass(t, n->n_heard);
    if (t->in && (count > t->in->left || !alloc_grow((void **)&n->heard, &n->heard_room, count, sizeof *n->heard))) {
        t->in->bad = true;
        return;
    }
    n->n_heard = count;
    for (size_t i = 0; i < count; i++) {
        n->heard[i].slot = (uint32_t)pass(t, n->heard[i].slot);
        n->heard[i].version = pass(t, n->heard[i].version);
        n->heard[i].k = pass(t, n->heard[i].k);
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
    const uint64_t shape[] = {n->s.M,     n->s.depth,   n->s.slot, n->s.n_children, n->s.leaf != NULL,
                              n->s.tiers, n->data_print};
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
    if (!n->s.async || n->s.leaf)
        n->pending = n->asking = false;
    channel_stop(&n->ask);
    channel_stop(&n->down);
    if (n->asking)
        channel_start(n, &n->ask);
    if (n->finished && !is_root(n))
        return;
    if (!is_root(n) && n->up_round > 0 && !n->took_part)
        channel_start(n, &n->up); /* asynchronous: no new turn before it is acknowledged (again) */
    n->since = n->now;
    if (!is_root(n) && n->answered >= 0 && (n->s.leaf || n->answer_phase == NODE_PHASE_TRAIN))
        channel_start(n, &n->answer);
    if (n->open)
        channel_start(n, &n->down);
    if (n->s.inner) {
        if (n->answer_phase == NODE_PHASE_FINAL && !n->finished) /* the models below have to be asked for again */
            n->answer_phase = NODE_PHASE_TRAIN;
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
    pass_state(&t, n);
    if (r->bad || r->left)
        return false;
    begin_again(n);
    return true;
}

/* ---- for who puts a whole run together ---- */

bool node_get_share(const node *n, uint64_t round, double *w, run_share *share)
{
    if (is_prelude(n) || n->diverged || n->anew || n->answered != (int64_t)round)
        return false;
    if (!n->s.async && n->round != round)
        return false;
    node_model(n, w);
    *share = (run_share){.w = w, .z = n->z, .q = n->q, .k = n->k, .last = n->last, .dual = n->dual};
    if (n->s.leaf && !n->s.x) {
        share->slope = n->slope;
        share->eta = n->eta;
    }
    return true;
}

int64_t node_last_row(const node *n)
{
    return is_prelude(n) ? -1 : n->answered;
}

const guard_state *node_guard(const node *n)
{
    return &n->guard;
}

stop_state node_stop(const node *n)
{
    return n->stop;
}
