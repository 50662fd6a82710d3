/* An edge, any inner node, and the root: it opens a round, waits for its children, steps, and forwards questions. */
#include "net/node_parts.h"

#include "base/alloc.h"
#include "base/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

hfsad_status inner_create(node *n, hfsad_error *err)
{
    const size_t M = n->s.M, children = n->s.n_children;
    node_child *copy = alloc_zero(children, sizeof *copy);
    if (copy)
        memcpy(copy, n->s.children, children * sizeof *copy);
    n->s.children = copy;
    n->inner.w_parent = alloc_zero(M, sizeof(double));
    n->inner.child = alloc_zero(children, sizeof *n->inner.child);
    n->inner.child_u = alloc_zero(children * M, sizeof(double));
    n->inner.child_figures = alloc_zero(children * node_answer_count(n), sizeof(double));
    n->inner.total = alloc_zero(M + node_answer_count(n), sizeof *n->inner.total);
    n->inner.partial = alloc_zero(tree_lanes(M) * M + M, sizeof(double));
    n->inner.sum = alloc_zero(M, sizeof(double));
    n->question.w = alloc_zero(2 * M, sizeof(double));
    n->question.parent = alloc_zero(M, sizeof(double));
    n->inner.slots = alloc_zero(2 * children + 1, sizeof(double));
    if (!copy || !n->inner.w_parent || !n->inner.child || !n->inner.child_u || !n->inner.child_figures ||
        !n->inner.total || !n->inner.partial || !n->inner.sum || !n->question.w || !n->question.parent ||
        !n->inner.slots)
        return error_memory(err, children * M * sizeof(double), "the messages of a node's children");
    if (n->s.p->aggregate) {
        n->inner.said = alloc_zero(children, sizeof(double *));
        n->inner.sigmas = alloc_zero(children, sizeof(double));
        n->inner.shares = alloc_zero(children, sizeof *n->inner.shares);
        if (!n->inner.said || !n->inner.sigmas || !n->inner.shares)
            return error_memory(err, children * sizeof(double), "the messages of a node's children");
    }
    memcpy(n->inner.w_parent, n->s.start, M * sizeof *n->inner.w_parent);
    n->nodes = 1;
    for (size_t c = 0; c < children; c++)
        n->nodes += copy[c].nodes;
    return HFSAD_OK;
}

void inner_free(node *n)
{
    for (size_t c = 0; n->inner.child && c < n->s.n_children; c++)
        free(n->inner.child[c].begin);
    free((node_child *)n->s.children);
    free(n->inner.w_parent);
    free(n->inner.child);
    free(n->inner.child_u);
    free(n->inner.child_figures);
    free(n->inner.partial);
    free(n->inner.said);
    free(n->inner.sigmas);
    free(n->inner.shares);
    free(n->inner.sum);
    free(n->inner.total);
    free(n->question.w);
    free(n->question.parent);
    free(n->inner.slots);
    free(n->inner.models);
}

/* ---- rounds ---- */

size_t inner_first_leaf(const node *n)
{
    size_t c = 0;
    while (c < n->s.n_children && !n->s.children[c].leaf)
        c++;
    return c;
}

static const double *message_of(void *context, size_t slot, double *room, double *sigma)
{
    const node *n = context;
    (void)room;
    *sigma = n->inner.child[slot].sigma;
    return n->inner.child[slot].out ? NULL : n->inner.child_u + slot * n->s.M;
}

static bool tally_of(void *context, size_t slot, tally *t)
{
    const node *n = context;
    if (n->inner.child[slot].answered)
        tally_unpack(t, n->s.tiers, n->inner.child_figures + slot * node_figures_count(n));
    return n->inner.child[slot].answered;
}

static const uint64_t *tally_words_of(void *context, size_t slot, uint64_t *room)
{
    const node *n = context;
    (void)room;
    if (!n->inner.child[slot].answered)
        return NULL;
    return (const uint64_t *)(const void *)(n->inner.child_figures + slot * node_answer_count(n));
}

static cell_strain strain_of(void *context, size_t slot)
{
    const node *n = context;
    const child_state *child = &n->inner.child[slot];
    cell_strain said = {.numbers = child->strain};
    if (n->s.p->fixed)
        memcpy(said.words, child->strain_words, sizeof said.words);
    return said;
}

cell node_cell(node *n)
{
    const size_t leaves = inner_first_leaf(n);
    return (cell){
        .p = n->s.p,
        .M = n->s.M,
        .n_inner = leaves,
        .n_leaves = n->s.n_children - leaves,
        .context = n,
        .message = message_of,
        .tally = tally_of,
        .tally_words = tally_words_of,
        .strain = strain_of,
        .partial = n->inner.partial,
        .said = n->inner.said,
        .sigma = n->inner.sigmas,
        .shares = n->inner.shares,
    };
}

/* ---- a look: the root waits while all nodes are idle ---- */

void node_look(node *n)
{
    n->root.looks = true;
    inner_advance(n);
}

/* In synchronous mode no node steps between a row of the trace and the next DOWN. */
static bool look_holds(const node *n)
{
    return n->root.looks && !n->s.async && (int64_t)n->round == n->answer.round;
}

/* While the root waits for the polish, all nodes are idle too. */
static bool may_look(const node *n)
{
    if (!n->root.looks || n->inner.has_models || n->question.state != QUESTION_NONE || is_prelude(n))
        return false;
    return n->state == NODE_ENDED || (n->s.async ? n->answer.round >= 0 : n->state == NODE_RESTS && look_holds(n));
}

static uint64_t period_start(const node *n, uint64_t round)
{
    return (round - 1) / n->period * n->period + 1;
}

static bool takes_part_in(const node *n, uint64_t round)
{
    uint32_t last = n->last;
    return node_draw(n, n->s.inner->participation, n->s.key, &last, round);
}

/* After a measurement a round begins only when the parent continues, because it may have ended the run instead. */
static bool may_open(const node *n)
{
    const question *q = &n->question;
    if (n->state != NODE_RESTS || n->round >= n->end_round || (question_holds(n) && q->state == QUESTION_ASKED) ||
        (question_holds(n) && q->round == n->round))
        return false;
    if (n->round == node_next_measure(n) || look_holds(n))
        return false;
    if (n->a->take_down && !is_root(n) && n->down_round != period_start(n, n->round + 1))
        return false; /* the node forwards the model of this DOWN */
    const bool measured = (int64_t)n->round == n->answer.round || (n->talks && n->round % n->K == 0);
    const bool passed_over = question_holds(n) && q->round > n->round; /* no DOWN: it sits out until that question */
    return is_root(n) || !measured || n->down_round > n->round || passed_over;
}

static void open_round(node *n)
{
    const uint64_t end = n->round + n->unit;
    if (n->a->open_round)
        n->a->open_round(n);
    for (size_t c = 0; c < n->s.n_children; c++) {
        child_state *child = &n->inner.child[c];
        const node_child *as = &n->s.children[c];
        uint64_t draws = 0;
        for (uint64_t r = n->round + 1; r <= end; r++)
            draws += node_draw(n, as->participation, as->key, &child->last, r);
        const bool takes_part = draws > 0 || (n->talks && !as->leaf);
        if (end > n->inner.opened) /* not if a question has closed the round before it was done */
            child->due_k += draws * (as->leaf ? as->local_steps : 1);
        child->told = !takes_part;
        if (!takes_part)
            continue;
        child->need = end;
        child->has = false;
    }
    n->inner.opened = end;
    node_move(n, NODE_TRAINS);
    node_send(n, &n->down);
}

static bool has_up(const node *n, const child_state *child)
{
    (void)n;
    return child->has;
}

/* Whether a property holds for all children. The search begins where the last one ended: within a round children only
 * gain it, so all searches of a round together pass each child about once, in whatever order their messages arrive. */
static bool all_children(const node *n, bool (*is_good)(const node *n, const child_state *child), size_t *from)
{
    const size_t count = n->s.n_children;
    size_t c = *from < count ? *from : 0;
    for (size_t i = 0; i < count; i++, c = c + 1 < count ? c + 1 : 0)
        if (!is_good(n, &n->inner.child[c])) {
            *from = c;
            return false;
        }
    return true;
}

static bool is_ready(node *n)
{
    if (!all_children(n, has_up, &n->inner.lacks))
        return false;
    const uint64_t round = n->round + n->unit;
    return is_root(n) || (!n->talks && !takes_part_in(n, round)) || n->down_round == period_start(n, round);
}

/* Number of children, without those that were added to the list later and have not joined. */
static size_t inner_heard(const node *n)
{
    size_t count = n->s.n_children;
    for (size_t c = n->s.n_children - n->s.n_later; c < n->s.n_children; c++)
        count -= n->inner.child[c].life == 0;
    return count;
}

void node_step(node *n)
{
    hfsad_link link = {n->z, n->q, n->k};
    const cell c = node_cell(n);
    const double sigma = cell_sum(&c, n->inner.sum);
    n->dual = inner_step(&n->s.inner->prior, is_root(n) ? NULL : &n->rule, is_root(n) ? NULL : &link, n->s.M,
                         n->inner.sum, sigma, n->inner.w_parent, n->w);
    n->k = link.k;
    bounds_reach(n);
    n->sent_down += inner_heard(n);
}

/* One round of an inner node, if it takes part. */
void links_inner_round(node *n, uint64_t round)
{
    const uint32_t last = n->last;
    n->dual = 0;
    if (!node_draw(n, n->s.inner->participation, n->s.key, &n->last, round))
        return;
    if (!n->s.async)
        channel_stop(&n->up); /* the link advances, and the last UP is obsolete */
    node_step(n);
    n->took_part = true;
    n->sent_up += n->s.depth > 1 || last < n->last; /* the cloud uses only the last of an iteration */
}

static void step(node *n)
{
    if (is_root(n))
        n->a->root_round(n);
    else
        n->a->inner_round(n, n->round + 1);
    n->round += n->unit;
    channel_stop(&n->down);
    const cell c = node_cell(n);
    const bool runs_off =
        is_root(n) && n->s.guarded &&
        guard_decide(&n->root.guard, n->s.p, n->s.M, n->s.tied, n->w, n->round / n->K, cell_strain_below(&c));
    node_move(n, runs_off ? NODE_REPAIRS : NODE_RESTS);
    if (is_root(n) || n->round % n->period || !(n->took_part || n->talks))
        return;
    n->took_part = false;
    n->up_round = n->round;
    memcpy(n->up_digest, n->down_digest, sizeof n->up_digest);
    node_send(n, &n->up);
}

/* ---- the safeguard ---- */

void inner_assume(node *n, size_t c, const hfsad_link_rule *rule, const double *start)
{
    double *u = n->inner.child_u + c * n->s.M;
    memcpy(u, start, n->s.M * sizeof *u);
    if (n->s.children[c].leaf)
        plan_shorten(n->s.p, n->s.M, u);
    const hfsad_link link = {u, u, 0}; /* a number of the message is formed from this number of the link */
    n->inner.child[c].sigma = hfsad_link_message(rule, &link, n->s.M, u);
    n->inner.child[c].has = true;
    if (n->s.p->fixed)
        fixed_assume(n, c);
    else if (n->s.p->rounds)
        (void)wire_round(u, n->s.M);
}

/* The messages of its children after a repair are known without asking. */
void inner_begin_anew(node *n)
{
    node_begin_anew(n, n->question.w, true);
    if (is_root(n))
        node_move(n, NODE_RESTS);
    memcpy(n->inner.w_parent, n->w, n->s.M * sizeof *n->w);
    for (size_t c = 0; c < n->s.n_children; c++) {
        const hfsad_link_rule rule = child_rule(n, c);
        child_state *child = &n->inner.child[c];
        inner_assume(n, c, &rule, n->w);
        child->k = child->due_k = 0;
        child->strain = (guard_strain){0, 0};
    }
}

/* ---- the root ---- */

/* The root has the tally of the tree: a row of the trace, and the decision whether to continue. */
void root_conclude(node *n, const tally *t)
{
    hfsad_figures *f = &n->root.row;
    *f = (hfsad_figures){.relative_error = NAN, .seconds = NAN};
    const bool last = n->question.round >= n->end_round;
    n->a->make_figures(n, t, n->s.async && last ? n->async.version : n->question.round / n->K, f);
    if (is_prelude(n)) {
        n->answer.round = (int64_t)n->question.round;
        stage_conclude(n, f);
        return;
    }
    guard_note(&n->root.guard, n->s.p, n->s.M, f->iteration, f->consensus_objective, n->question.w);
    stop_rule(&n->root.stop, n->s.p, t, f, n->s.M, n->s.links, n->s.absences);
    n->async.stopping = n->async.stopping || (n->s.async && n->root.stop.converged); /* nodes are not idle yet */
    n->root.row_ready = true;
    memcpy(n->root.row_w, n->question.w, n->s.M * sizeof *n->root.row_w);
    n->answer.round = (int64_t)n->question.round;
    if (!n->a->is_finite(f))
        n->root.end = NODE_DIVERGED;
    else if (n->s.async ? n->async.stopping && last : n->root.stop.converged)
        n->root.end = NODE_CONVERGED;
    else if (last)
        n->root.end = NODE_DONE;
}

static bool measures_now(const node *n, uint64_t *round)
{
    if (n->s.async)
        return async_measures(n, round);
    *round = node_next_measure(n);
    return n->round == *round;
}

/* The root asks the question that its state calls for. */
static void root_questions(node *n)
{
    question *q = &n->question;
    const size_t bytes = n->s.M * sizeof *q->w;
    uint64_t round;
    if (q->state != QUESTION_NONE)
        return;
    if (n->state == NODE_RESTS && is_prelude(n) && !all_finite(n->w, n->s.M))
        stage_conclude(n, NULL); /* this start has diverged */
    if (n->state == NODE_RESTS && n->root.end != NODE_RUNNING)
        node_move(n, NODE_ENDED);
    if (n->state == NODE_ENDED && (!n->root.polish || n->root.end == NODE_DIVERGED))
        node_move(n, NODE_CLOSES);
    if (n->state == NODE_STAGE_OVER) {
        start_search_begin(&n->root.search, n->s.stage + 1, q->w);
        question_ask(n, &QUESTION_STAGE, n->s.stage + 1, 0);
    } else if (n->state == NODE_REPAIRS) {
        memcpy(q->w, n->root.guard.calm, bytes);
        question_ask(n, &QUESTION_REPAIR, n->repairs + 1, n->round);
    } else if (n->state == NODE_CLOSES) {
        question_ask(n, &QUESTION_MODELS, (uint64_t)n->answer.round, (uint64_t)n->answer.round);
    } else if (n->state == NODE_RESTS && measures_now(n, &round)) {
        memcpy(q->w, n->w, bytes);
        question_ask(n, &QUESTION_FIGURES, round, round);
    } else if (may_look(n)) {
        enum { BITS = 16 };
        n->answer.look = (n->begun << BITS) + 1;
        question_ask(n, &QUESTION_LOOK, n->answer.look, n->answer.look);
    }
}

void inner_advance(node *n)
{
    for (bool moves = true; moves;) {
        if (is_root(n))
            root_questions(n);
        moves = question_advance(n);
        if (moves)
            continue;
        if (n->state == NODE_TRAINS && (n->s.async ? async_is_ready(n) : is_ready(n))) {
            (n->s.async ? async_step : step)(n);
            moves = true;
        } else if (n->state == NODE_RESTS && (n->s.async ? async_may_open(n) : may_open(n))) {
            (n->s.async ? async_open : open_round)(n);
            moves = true;
        }
    }
}

/* ---- messages ---- */

static bool handle_down(node *n, const message *m, node_refusal *why)
{
    if (m->count != n->s.M + n->a->down)
        return node_refuse(n, why, NODE_REFUSED_SIZE);
    if (m->round <= n->down_round) {
        if (m->round == n->down_round) {
            node_greet(n, m->k);
            n->ack_down = true;
        }
        return node_refuse(n, why, NODE_REFUSED_OLD);
    }
    const uint64_t before = m->round - 1;
    uint32_t last;
    if (before % n->period || before >= node_next_measure(n) ||
        (n->talks ? before != n->round : !node_sits_out_until(n, before, &last)))
        return node_refuse(n, why, NODE_REFUSED_FUTURE);
    if (m->round > n->up_round)
        channel_stop(&n->up);
    n->down_round = m->round;
    memcpy(n->down_digest, m->digest, sizeof m->digest);
    memcpy(n->inner.w_parent, m->values, n->s.M * sizeof *n->inner.w_parent);
    if (n->a->take_down)
        n->a->take_down(n, m->values, m->values[n->s.M]);
    n->changed = true;
    node_greet(n, m->k);
    return true;
}

static bool handle_up(node *n, size_t c, const message *m, node_refusal *why)
{
    child_state *child = &n->inner.child[c];
    const bool strained = n->talks && !n->s.children[c].leaf;
    if (m->count != n->s.M + (strained ? 2 : 0))
        return node_refuse(n, why, NODE_REFUSED_SIZE);
    if (m->round != child->need || child->has) {
        child->ack_up = child->ack_up || m->round == child->need;
        n->ack_up = n->ack_up || child->ack_up;
        return node_refuse(n, why, m->round > child->need ? NODE_REFUSED_FUTURE : NODE_REFUSED_OLD);
    }
    if (m->k < child->k) {
        n->ack_up = child->ack_up = child->is_behind = true;
        return node_refuse(n, why, NODE_REFUSED_VALUE);
    }
    if (!(m->sigma > 0) || m->k > UINT32_MAX)
        return node_refuse(n, why, NODE_REFUSED_VALUE);
    if (m->k != child->due_k || !bounds_of_up(n, c, m) ||
        (strained && !m->fixed && !bounds_of_strain(n, c, m->values[n->s.M], m->values[n->s.M + 1])))
        return node_refuse_lie(n, c, why);
    if (strained && m->fixed)
        memcpy(child->strain_words, m->values + n->s.M, sizeof child->strain_words);
    else if (strained)
        child->strain = (guard_strain){m->values[n->s.M], m->values[n->s.M + 1]};
    child->has = child->told = true;
    child->k = m->k;
    child->sigma = m->sigma;
    memcpy(n->inner.child_u + c * n->s.M, m->values, n->s.M * sizeof(double));
    return true;
}

/* A child has the DOWN of the open round, sent after our last start. If all needed children have it, it is not
 * retransmitted. */
static bool handle_ack(node *n, size_t c, const message *m, node_refusal *why)
{
    if (m->count != 1)
        return node_refuse(n, why, NODE_REFUSED_SIZE);
    if (n->state != NODE_TRAINS || m->round != n->round + 1 || m->values[0] != (double)n->begun ||
        !(n->inner.child[c].has || n->inner.child[c].need == n->round + n->unit))
        return node_refuse(n, why, NODE_REFUSED_OLD);
    n->inner.child[c].told = true;
    return true;
}

static bool is_told(const node *n, const child_state *child)
{
    return child->told && (child->has || child->need == n->round + n->unit);
}

bool inner_handle(node *n, size_t from, const message *m, node_refusal *why)
{
    const bool news = m->kind == MESSAGE_DOWN ? (n->s.async ? async_handle_down(n, m, why) : handle_down(n, m, why))
                      : m->kind == MESSAGE_UP
                          ? (n->s.async ? async_handle_up(n, from, m, why) : handle_up(n, from, m, why))
                          : handle_ack(n, from, m, why);
    if (!news)
        return false;
    inner_advance(n);
    if (n->state == NODE_TRAINS && !n->s.async && all_children(n, is_told, &n->inner.untold))
        channel_stop(&n->down);
    return true;
}
