/* Common parts of all nodes: set-up, input, output and retransmission. */
#include "net/node_parts.h"

#include "base/alloc.h"
#include "base/error.h"
#include "core/draw.h"
#include "polish/task.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *node_refusal_text(node_refusal refusal)
{
    static const char *const texts[] = {
#define TEXT(name, text) text,
        NODE_REFUSAL_LIST(TEXT)
#undef TEXT
    };
    return texts[refusal];
}

/* ---- set-up ---- */

static bool take_memory(node *n)
{
    const size_t M = n->s.M;
    double *start = alloc_zero(M, sizeof *start);
    n->w = alloc_zero(M + 1, sizeof(double));
    n->z = alloc_zero(M, sizeof(double));
    n->q = alloc_zero(M, sizeof(double));
    n->u = alloc_zero(M + 2, sizeof(double));
    n->root.guard.calm = n->s.keeps && is_root(n) ? alloc_zero(GUARD_VECTORS * M, sizeof(double)) : NULL;
    n->answer.figures = alloc_zero(node_figures_count(n), sizeof(double));
    n->answer.words = n->s.p->fixed ? alloc_zero(node_answer_count(n), sizeof(double)) : NULL;
    n->root.row_w = is_root(n) ? alloc_zero(M, sizeof(double)) : NULL;
    n->root.polish = n->s.polish ? alloc_zero(n->s.polish + M, sizeof(double)) : NULL;
    if (start)
        memcpy(start, n->s.start, M * sizeof *start);
    n->s.start = start;
    return start && (n->root.row_w || !is_root(n)) && (n->root.polish || !n->s.polish) && n->w && n->z && n->q &&
           n->u && n->answer.figures && (n->answer.words || !n->s.p->fixed) &&
           (n->root.guard.calm || !(n->s.keeps && is_root(n)));
}

/* After w, z and q have become one vector. */
static void shorten_client(node *n)
{
    double *const vectors[] = {n->w, n->z, n->q};
    for (size_t i = 0; i < 3 && n->s.leaf; i++)
        plan_shorten(n->s.p, n->s.M, vectors[i]);
}

hfsad_status node_create(node **out, const node_setup *setup, hfsad_error *err)
{
    *out = NULL;
    assert(setup->p->trace_every > 0 && !setup->leaf == !!setup->inner);
    node *n = alloc_zero(1, sizeof *n);
    if (!n)
        return error_memory(err, sizeof *n, "a node");
    n->s = *setup;
    n->a = setup->average ? &ALGORITHM_AVERAGING : &ALGORITHM_LINKS;
    n->s.tame = setup->tame && n->a->links;
    n->s.guarded = setup->guarded && n->a->links;
    n->s.keeps = setup->keeps && n->a->links;
    n->s.star = setup->star && n->a->links;
    n->s.keeps_w = setup->keeps_w || !n->a->links;
    n->talks = n->a->talks || n->s.guarded;
    if (!n->s.part)
        n->s.part = setup->M > NODE_PART ? setup->M : NODE_PART;
    n->K = setup->p->edge_rounds;
    n->end_round = setup->p->iterations * n->K;
    n->period = setup->depth == 1 ? n->K : 1;
    n->unit = setup->depth == 0 ? n->K : 1;
    n->nodes = 1; /* and those below, for inner_create */
    n->answer.round = -1;
    n->begun = 1;
    n->changed = true;
    n->root.stop.met_since = UINT64_MAX;
    hfsad_status status = take_memory(n) ? HFSAD_OK : error_memory(err, setup->M * sizeof(double), "a node's vectors");
    if (!status)
        status = setup->leaf ? leaf_create(n, err) : inner_create(n, err);
    if (!status && setup->async)
        status = async_create(n, err);
    if (!status)
        status = stages_create(n, err);
    if (status) {
        node_free(n);
        return status;
    }
    memcpy(n->w, n->s.start, setup->M * sizeof *n->w);
    hfsad_link link = {n->z, n->q, 0};
    hfsad_link_start(&link, setup->M, n->s.start);
    shorten_client(n);
    node_find_rule(n);
    bounds_reach(n);
    n->root.guard.star = n->s.star;
    if (n->root.guard.calm)
        guard_begin(&n->root.guard, n->root.guard.calm, setup->M, n->s.start);
    if (setup->async && setup->inner)
        async_start(n);
    *out = n;
    if (setup->inner && setup->stage == 0) /* a later stage continues the clock of the previous one */
        inner_advance(n);
    return HFSAD_OK;
}

void node_free(node *n)
{
    if (!n)
        return;
    async_free(n);
    if (n->s.leaf)
        leaf_free(n);
    else
        inner_free(n);
    free((double *)n->s.start);
    free(n->w);
    free(n->z);
    free(n->q);
    free(n->u);
    free(n->answer.figures);
    free(n->answer.words);
    free(n->root.guard.calm);
    free(n->root.search.first);
    free(n->root.polish);
    free(n->root.row_w);
    free(n->shown);
    free(n);
}

/* ---- for the other files ---- */

const state_move node_moves[] = {
#define MOVE(from, to, why) {NODE_##from, NODE_##to, why},
    NODE_MOVE_LIST(MOVE)
#undef MOVE
};
const size_t n_node_moves = sizeof node_moves / sizeof *node_moves;

const state_move question_moves[] = {
#define MOVE(from, to, why) {QUESTION_##from, QUESTION_##to, why},
    QUESTION_MOVE_LIST(MOVE)
#undef MOVE
};
const size_t n_question_moves = sizeof question_moves / sizeof *question_moves;

bool move_is_legal(const state_move *moves, size_t count, int from, int to)
{
    for (size_t i = 0; i < count; i++)
        if (moves[i].from == from && moves[i].to == to)
            return true;
    return false;
}

void node_move(node *n, node_state to)
{
    assert(move_is_legal(node_moves, n_node_moves, (int)n->state, (int)to));
    n->state = to;
    n->changed = true;
}

void question_move(question *q, question_state to)
{
    assert(move_is_legal(question_moves, n_question_moves, (int)q->state, (int)to));
    q->state = to;
}

bool node_draw(const node *n, double participation, uint64_t key, uint32_t *last, uint64_t round)
{
    return draw_takes_part(participation, key, round, n->K, n->s.p->at_least_every, last);
}

bool node_sits_out_until(const node *n, uint64_t round, uint32_t *last)
{
    const double participation = n->s.leaf ? n->s.leaf->participation : n->s.inner->participation;
    *last = n->last;
    for (uint64_t r = n->round + 1; r <= round; r++)
        if (node_draw(n, participation, n->s.key, last, r))
            return false;
    return true;
}

uint64_t node_next_measure(const node *n)
{
    const uint64_t every = n->s.p->trace_every, end = n->s.p->iterations;
    if (n->answer.round < 0)
        return 0;
    if (n->s.async)
        return (uint64_t)n->answer.round < n->end_round ? n->end_round : UINT64_MAX;
    const uint64_t done = (uint64_t)n->answer.round / n->K;
    if (done >= end)
        return UINT64_MAX;
    const uint64_t next = (done / every + 1) * every;
    return (next < end ? next : end) * n->K;
}

void node_answer(node *n, const tally *t, uint64_t round)
{
    tally_pack(t, n->s.tiers, n->answer.figures);
    n->answer.round = (int64_t)round;
}

uint64_t node_parts_of(const node *n, size_t nodes)
{
    return (nodes * n->s.M + n->s.part - 1) / n->s.part;
}

size_t node_part_size(const node *n, size_t nodes, uint64_t part)
{
    const size_t all = nodes * n->s.M, before = (size_t)part * n->s.part;
    return part >= node_parts_of(n, nodes) ? 0 : all - before < n->s.part ? all - before : n->s.part;
}

bool node_refuse(node *n, node_refusal *to, node_refusal why)
{
    n->status.refused[why]++;
    if (to)
        *to = why;
    return false;
}

void node_greet(node *n, uint64_t begun)
{
    if (begun <= n->parent_begun)
        return;
    n->parent_begun = begun;
    if (!n->took_part) /* otherwise the link has already advanced; the next UP replaces this one */
        node_send(n, &n->up);
}

void node_find_rule(node *n)
{
    n->rule = n->s.inner ? guard_rule(n->s.p, &n->s.inner->rule, n->repairs)
                         : guard_leaf_rule(n->s.p, &n->s.leaf->rule, n->s.star, n->repairs);
}

void node_begin_anew(node *n, const double *w, bool repaired)
{
    cell_link l = {.w = n->w, .z = n->z, .q = n->q, .k = &n->k, .dual = &n->dual, .eta = &n->leaf.eta};
    if (n->s.leaf && !n->s.x) {
        l.slope = n->leaf.slope;
        l.rows = n->s.rows.count;
    }
    cell_begin_anew(&l, n->s.M, w, repaired);
    shorten_client(n);
    bounds_reach(n);
    n->repairs += repaired;
    node_find_rule(n);
    n->took_part = false;
    n->changed = true;
    channel_stop(&n->up);
}

/* ---- input ---- */

static bool fits_sender(const node *n, size_t from, message_kind kind)
{
    if (from == NODE_PARENT)
        return !is_root(n) && (kind == MESSAGE_DOWN || kind == MESSAGE_ASK || kind == MESSAGE_ACK);
    return from < n->s.n_children && (kind == MESSAGE_UP || kind == MESSAGE_ANSWER || kind == MESSAGE_MODEL ||
                                      kind == MESSAGE_ACK || kind == MESSAGE_RECORD);
}

/* An ACK with k = 1 says that the cloud has all models; k = 2 asks for a part of the models; k = 0 lists the received
 * UPs. Its numbers are the parent's number of starts, then pairs: the slot of a child, and a round or a part. A
 * restarted parent may have lost UPs that it had acknowledged, so only ACKs of its last start count. */
static bool handle_parent_ack(node *n, const message *m, node_refusal *why)
{
    double said = NAN;
    for (size_t i = 1; i + 1 < m->count; i += 2)
        if (m->values[i] == (double)n->s.slot)
            said = m->values[i + 1];
    if (said < 0 && m->k == 0 && m->values[0] >= (double)n->parent_begun) /* the parent has seen this counter */
        return node_refuse(n, why, -said > (double)((n->life << 32) + n->k) ? NODE_REFUSED_FUTURE : NODE_REFUSED_OLD);
    if (!(said >= 0 && said <= 0x1p53))
        return node_refuse(n, why, NODE_REFUSED_OLD);
    if (m->k == 2)
        return question_handle_part(n, m, (uint64_t)said, why);
    if (m->k == 1) {
        if (m->phase != NODE_PHASE_FINAL || (n->state != NODE_RESTS && n->state != NODE_HALTED))
            return node_refuse(n, why, NODE_REFUSED_OLD);
        node_move(n, NODE_FINISHED);
        channel_stop(&n->answer.models);
        n->ack_end = n->s.inner != NULL;
        return true;
    }
    if (m->phase != NODE_PHASE_TRAIN || m->values[0] < (double)n->parent_begun)
        return node_refuse(n, why, NODE_REFUSED_OLD);
    if (n->s.async && (uint64_t)said >> 32 != n->life) /* of another life of the link, which counts from elsewhere */
        return node_refuse(n, why, NODE_REFUSED_OLD);
    said -= n->s.async ? (double)(n->life << 32) : 0;
    if (n->s.async && said > (double)n->up_round)
        return node_refuse(n, why, NODE_REFUSED_FUTURE); /* every UP is in a state before it is sent */
    if (said >= (double)n->up_round && n->up.live) {
        channel_stop(&n->up);
        if (n->s.async)
            record_acknowledged(n);
        if (n->s.async)
            async_acknowledged(n);
    }
    return true;
}

/* A message of training or its end, with the stage and the number of repairs of this node. */
static bool handle_plain(node *n, size_t from, const message *m, node_refusal *why)
{
    if (from == NODE_PARENT && m->kind == MESSAGE_ACK)
        return handle_parent_ack(n, m, why);
    if (n->state == NODE_FINISHED) {
        n->ack_end = n->ack_end || from != NODE_PARENT;
        return node_refuse(n, why, NODE_REFUSED_OLD);
    }
    if (m->kind == MESSAGE_ASK || m->kind == MESSAGE_ANSWER || m->kind == MESSAGE_MODEL)
        return question_handle(n, from, question_of_phase(m->phase), m, m->round, why);
    if (m->phase != NODE_PHASE_TRAIN)
        return node_refuse(n, why, NODE_REFUSED_FUTURE);
    if (m->kind == MESSAGE_RECORD)
        return record_take(n, from, m, why);
    if (n->s.inner)
        return inner_handle(n, from, m, why);
    return n->s.async ? async_handle_down(n, m, why) : leaf_handle_down(n, m, why);
}

/* A message of an earlier life of the parent, which counted other steps or was in another round, is old. In lock step
 * one of a later life is early: this node says its own life, and its parent admits it, or says that its state is an old
 * copy. begun: starts of the sender. */
static bool is_of_other_life(node *n, uint64_t begun, node_refusal *why)
{
    const uint64_t life = begun >> NODE_BEGUN_BIT;
    const bool early = !n->s.async && life > n->life;
    n->ack_down = n->ack_down || early;
    if (!early && !(n->s.async ? begun < n->parent_begun : life < n->parent_begun >> NODE_BEGUN_BIT))
        return false;
    (void)node_refuse(n, why, NODE_REFUSED_OLD);
    return true;
}

/* A child in another life of its link than this node has begun. In an earlier one, although it has been admitted since,
 * it goes on from an old copy of its state, and is told so. In a later one this node does: a life is on the disk of the
 * parent before the child hears of it. */
static bool refuse_life(node *n, size_t c, uint64_t life, node_refusal *why)
{
    child_state *child = &n->inner.child[c];
    if (life < child->life && child->admitted && !child->out && child->where != ANEW_RETIRED)
        n->ack_up = child->ack_up = child->is_behind = true;
    return node_refuse(n, why, life > child->life ? NODE_REFUSED_FUTURE : NODE_REFUSED_OLD);
}

/* Models that a parent sends to a client; numbers behind them are calls of cohorts, or of other algorithms. */
static bool has_good_model(const node *n, const message *m)
{
    const size_t M = n->s.M, most = m->kind == MESSAGE_DOWN ? M : 2 * M, count = m->count < most ? m->count : most;
    for (size_t i = 0; i < count && !isnan(n->s.p->largest); i++)
        if (!(fabs(m->values[i]) <= n->s.p->largest))
            return false;
    return true;
}

bool node_handle(node *n, size_t from, const message *m, node_refusal *why)
{
    message plain = *m;
    const uint64_t life = from == NODE_PARENT ? 0 : m->phase >> NODE_LIFE_BIT,
                   phase = m->phase - (life << NODE_LIFE_BIT), stage = phase >> NODE_STAGE_BIT,
                   above = phase - (stage << NODE_STAGE_BIT), epoch = above >> NODE_PHASE_BITS;
    const unsigned ahead = from == NODE_PARENT ? 0 : 1; /* children begin the next stage or a repair before this node */
    plain.phase = above - (epoch << NODE_PHASE_BITS);
    if (m->run != n->s.run)
        return node_refuse(n, why, NODE_REFUSED_RUN);
    if (!fits_sender(n, from, m->kind))
        return node_refuse(n, why, NODE_REFUSED_KIND);
    if (from != NODE_PARENT && life != n->inner.child[from].life)
        return refuse_life(n, from, life, why);
    if (life > 0) /* the child has it on its disk: told again, an empty folder would begin with an old model */
        node_child_confirm(n, from, life);
    if ((m->kind == MESSAGE_DOWN || m->kind == MESSAGE_ASK) && is_of_other_life(n, m->k, why))
        return false;
    const bool sums = m->kind == MESSAGE_UP || (m->kind == MESSAGE_ANSWER && plain.phase == NODE_PHASE_TRAIN);
    if (m->fixed != (sums && n->s.p->fixed))
        return node_refuse(n, why, NODE_REFUSED_KIND);
    if (from == NODE_PARENT && !m->digested)
        node_digest(n, &plain);
    if (!m->fixed && !numbers_take(n, &plain, why))
        return false;
    if (!question_of_phase(plain.phase))
        return node_refuse(n, why, NODE_REFUSED_FUTURE);
    if (n->s.leaf && (m->kind == MESSAGE_DOWN || m->kind == MESSAGE_ASK) && !has_good_model(n, &plain))
        return node_refuse(n, why, NODE_REFUSED_BOUND);
    const bool asks = m->kind == MESSAGE_ASK || m->kind == MESSAGE_ANSWER;
    if (plain.phase == NODE_PHASE_LOOK)
        return handle_plain(n, from, &plain, why);
    if (plain.phase == NODE_PHASE_STAGE && asks)
        return question_handle(n, from, &QUESTION_STAGE, &plain, stage, why);
    if (stage != n->s.stage)
        return node_refuse(n, why, stage > n->s.stage + ahead ? NODE_REFUSED_FUTURE : NODE_REFUSED_OLD);
    if (m->round > n->end_round + async_extra(n, from == NODE_PARENT ? n->parent_begun : n->begun))
        return node_refuse(n, why, NODE_REFUSED_FUTURE);
    if (plain.phase == NODE_PHASE_ANEW && asks)
        return question_handle(n, from, &QUESTION_REPAIR, &plain, epoch, why);
    if (epoch != n->repairs)
        return node_refuse(n, why, epoch > n->repairs + ahead ? NODE_REFUSED_FUTURE : NODE_REFUSED_OLD);
    return handle_plain(n, from, &plain, why);
}

/* ---- time ---- */

enum { CHANNELS = 5 };

static void channels_of(node *n, channel *all[CHANNELS])
{
    channel *const each[CHANNELS] = {&n->up, &n->answer.models, &n->down, &n->question.ask, &n->async.calls};
    memcpy(all, each, sizeof each);
}

void node_tick(node *n, uint64_t now_ms)
{
    channel *all[CHANNELS];
    n->now = now_ms;
    if (n->s.async && n->question.ask.send &&
        !n->question.ask.again) /* the question arrived before the first tick, or with an old clock */
        n->question.ask.since = now_ms;
    channels_of(n, all);
    for (size_t i = 0; i < CHANNELS; i++)
        channel_tick(all[i], now_ms, &n->s.patience);
    if (n->s.async && n->s.inner) {
        if (unit_calls(n) && n->state == NODE_TRAINS)
            unit_call(n); /* a DOWN that was held back may be processed now */
        inner_advance(n);
    }
}

uint64_t node_due(const node *n)
{
    channel *all[CHANNELS];
    uint64_t due = n->s.async && n->s.inner ? async_due(n) : UINT64_MAX;
    channels_of((node *)n, all);
    for (size_t i = 0; i < CHANNELS; i++)
        if (channel_due(all[i]) < due)
            due = channel_due(all[i]);
    return due;
}

void node_repeat(node *n)
{
    channel *all[CHANNELS];
    channels_of(n, all);
    for (size_t i = 0; i < CHANNELS; i++)
        channel_repeat(all[i]);
    record_connect(n);
}

size_t node_message_most(const node *n)
{
    size_t most = 2 * n->s.M + 2 > node_answer_count(n) ? 2 * n->s.M + 2 : node_answer_count(n);
    most = unit_down_count(n) > most ? unit_down_count(n) : most;
    most = record_is_copied(n) && n->s.n_children && most < NODE_RECORD_NUMBERS ? NODE_RECORD_NUMBERS : most;
    for (size_t c = 0; c < n->s.n_children; c++) {
        const size_t part = node_part_size(n, n->s.children[c].nodes, 0);
        most = part > most ? part : most;
    }
    return most > 2 * n->s.siblings ? most : 2 * n->s.siblings + 1; /* an ACK may name all of them */
}

/* ---- output ---- */

message node_letter_of(const node *n, message_kind kind, uint64_t phase, uint64_t round)
{
    const bool asks = kind == MESSAGE_ASK;
    const uint64_t epoch = n->repairs + (asks && phase == NODE_PHASE_ANEW),
                   stage = n->s.stage + (asks && phase == NODE_PHASE_STAGE);
    message m = {.kind = kind, .run = n->s.run, .phase = phase, .round = round};
    if (phase != NODE_PHASE_LOOK)
        m.phase += (epoch << NODE_PHASE_BITS) + (stage << NODE_STAGE_BIT);
    return m;
}

bool node_protects_rows(const node *n)
{
    return n->s.p->noise.row > 0;
}

bool node_is_too_large(const node *n)
{
    return n->too_large;
}

static message up_letter(node *n)
{
    message m = node_letter_of(n, MESSAGE_UP, NODE_PHASE_TRAIN, n->up_round);
    double sigma;
    m.count = n->a->message_up(n, &sigma);
    m.k = n->k;
    m.values = n->u;
    m.sigma = sigma;
    if (n->s.p->fixed && fixed_up(n, &m))
        return m;
    m.plain = numbers_hide(n->u, n->s.M) && m.count == n->s.M;
    m.sigma = number_hide(sigma);
    return m;
}

static message ack_down_letter(node *n)
{
    message m = node_letter_of(n, MESSAGE_ACK, NODE_PHASE_TRAIN, n->down_round);
    n->seen_begun = (double)n->parent_begun;
    m.values = &n->seen_begun;
    m.count = 1;
    return m;
}

/* Clears a flag and returns its value. */
static bool take_flag(bool *flag)
{
    const bool was = *flag;
    *flag = false;
    return was;
}

/* Messages of an earlier life of the link are old. */
static bool next_to_parent_of_life(node *n, message *m)
{
    const question_row *say = n->answer.say;
    if ((n->up.send || say || n->answer.models.send) && record_next_letter(n, m))
        return true;
    record_repeat(n);
    n->answer.say = NULL;
    if (channel_take(&n->up, &n->status.repeated)) {
        *m = up_letter(n);
        n->answer.say = say;
        return !n->too_large;
    } else if (say) {
        *m = question_answer_letter(n, say);
    } else if (channel_take(&n->answer.models, &n->status.repeated)) {
        *m = question_answer_letter(n, &QUESTION_MODELS);
    } else if (take_flag(&n->ack_down)) {
        *m = ack_down_letter(n);
    } else {
        return false;
    }
    return true;
}

static bool next_to_parent(node *n, message *m)
{
    const bool any = next_to_parent_of_life(n, m);
    if (any)
        m->phase += n->life << NODE_LIFE_BIT;
    return any;
}

static message down_letter(node *n)
{
    if (n->async.down)
        return unit_down(n);
    message m = node_letter_of(n, MESSAGE_DOWN, NODE_PHASE_TRAIN, (n->s.async ? n->async.version : n->round) + 1);
    m.k = n->begun;
    m.count = n->s.M + n->a->down;
    m.values = numbers_to_say(n->inner.partial, n->w, m.count, &m.plain);
    return m;
}

/* The ACK to the children: the received UPs; or, at the end, that the cloud has all models, which the broker retains
 * for children that reconnect late. */
static message ack_letter(node *n, bool end)
{
    message m = node_letter_of(n, MESSAGE_ACK, end ? NODE_PHASE_FINAL : NODE_PHASE_TRAIN, 0);
    m.k = end;
    m.values = n->inner.slots;
    n->inner.slots[m.count++] = (double)n->begun;
    for (size_t c = 0; c < n->s.n_children; c++) {
        child_state *child = &n->inner.child[c];
        const bool wanted = take_flag(&child->ack_up) &&
                            (n->s.async || child->has || child->is_behind); /* or a round was opened afterwards */
        if (!end && !wanted)
            continue;
        n->inner.slots[m.count++] = (double)c;
        n->inner.slots[m.count++] = end                            ? (double)(n->answer.round < 0 ? 0 : n->answer.round)
                                    : take_flag(&child->is_behind) ? -(double)async_lived(child, child->k)
                                    : n->s.async                   ? (double)async_lived(child, child->need)
                                                                   : (double)child->need;
    }
    return m;
}

static bool next_to_children(node *n, message *m)
{
    if (channel_take(&n->down, &n->status.repeated))
        *m = down_letter(n);
    else if (unit_next_call(n, m))
        return true;
    else if (channel_take(&n->question.ask, &n->status.repeated))
        *m = question_letter(n);
    else if (take_flag(&n->ack_part))
        *m = question_part_letter(n);
    else if (take_flag(&n->ack_up))
        *m = ack_letter(n, false);
    else if (take_flag(&n->ack_end))
        *m = ack_letter(n, true);
    else
        return false;
    return true;
}

bool node_next_letter(node *n, node_letter *letter)
{
    letter->to_parent = next_to_parent(n, &letter->m);
    return letter->to_parent || (n->s.inner && next_to_children(n, &letter->m));
}

/* ---- queries ---- */

node_end node_ended(const node *n)
{
    if (is_root(n))
        return n->state == NODE_FINISHED ? n->root.end : NODE_RUNNING;
    return n->state == NODE_FINISHED ? NODE_DONE : NODE_RUNNING;
}

node_end node_decided(const node *n)
{
    return n->root.end;
}

bool node_take_figures(node *n, hfsad_figures *f)
{
    if (n->root.row_ready)
        *f = n->root.row;
    const bool ready = n->root.row_ready;
    n->root.row_ready = false;
    return ready;
}

const double *node_row_w(const node *n)
{
    return n->root.row_w;
}

void node_model(const node *n, double *w)
{
    const bool shown = n->s.inner || n->s.keeps_w;
    memcpy(w, shown ? n->w : n->z, n->s.M * sizeof *w);
    if (n->inner.has_settled)
        w[n->s.M - 1] = n->inner.settled;
}

void node_set_local_steps(node *n, uint32_t steps)
{
    n->leaf.local_steps = steps ? steps : 1;
}

char *node_take_lines(node *n)
{
    char *lines = n->async.lines;
    n->async.lines = NULL;
    n->async.lines_size = n->async.lines_room = 0;
    return lines;
}

const double *node_models_below(const node *n)
{
    return n->inner.has_models ? n->inner.models + n->s.M : NULL;
}

node_status node_get_status(const node *n)
{
    node_status status = n->status;
    status.round = n->round;
    status.k = !is_root(n) ? n->k : n->s.async ? n->async.version : n->round / n->K;
    return status;
}

bool node_waits_for(const node *n, size_t c)
{
    const child_state *child = &n->inner.child[c];
    if (child->out)
        return false;
    if (n->question.state == QUESTION_ASKED)
        return !child->answered;
    return n->state == NODE_TRAINS && (n->s.async ? async_is_stale(n, c) : !child->has);
}

uint64_t node_waits_since(const node *n)
{
    return n->question.state == QUESTION_ASKED ? n->question.ask.since : n->down.since;
}

uint64_t node_child_k(const node *n, size_t c)
{
    return n->inner.child[c].k;
}

bool node_child_is_absent(const node *n, size_t c)
{
    return n->inner.child[c].absent || n->inner.child[c].out;
}

bool node_child_is_out(const node *n, size_t c)
{
    return n->inner.child[c].out;
}

bool node_child_counts(const node *n, size_t c)
{
    return !n->inner.child[c].out && !n->inner.child[c].aside;
}

bool node_child_is_mute(const node *n, size_t c)
{
    return node_asks(n) && !n->inner.child[c].answered && async_answers_without(n, c);
}

bool node_child_trains(const node *n, size_t c)
{
    return n->inner.child[c].need > 0;
}

bool node_child_lies(const node *n, size_t c)
{
    return n->inner.child[c].lies >= (n->s.exclude_after ? n->s.exclude_after : 1);
}

uint64_t node_life(const node *n)
{
    return n->life;
}

bool node_is_async(const node *n)
{
    return n->s.async;
}

uint64_t node_said(const node *n)
{
    return n->up_round;
}

uint64_t node_begun(const node *n)
{
    return n->begun;
}

const double *node_best(const node *n, double *objective)
{
    *objective = n->root.guard.least;
    return guard_best(&n->root.guard, n->s.p, n->round / n->K, NULL);
}

const double *node_wants_polish(node *n, uint64_t *begun)
{
    if (n->state != NODE_ENDED)
        return NULL;
    *begun = n->begun;
    double *w = n->root.polish + n->s.polish;
    node_model(n, w);
    double least;
    const double *best = node_best(n, &least);
    if (best)
        memcpy(w, best, n->s.M * sizeof *w);
    return w;
}

void node_take_polish(node *n, const double *result, size_t count)
{
    assert(count <= n->s.polish && n->state == NODE_ENDED);
    if (n->s.async && count && polish_failure((int)result[0])) {
        char line[40];
        snprintf(line, sizeof line, "unpolished %d\n", (int)result[0]);
        async_put(n, line);
    }
    memset(n->root.polish, 0, n->s.polish * sizeof *result);
    memcpy(n->root.polish, result, count * sizeof *result);
    node_move(n, NODE_CLOSES);
    inner_advance(n);
}

/* A run that has diverged ends without a polish. */
const double *node_get_polish(const node *n)
{
    const bool there = n->state == NODE_CLOSES || n->state == NODE_FINISHED;
    return there && n->root.end != NODE_DIVERGED ? n->root.polish : NULL;
}

const start_search *node_get_search(const node *n)
{
    return &n->root.search;
}

uint64_t node_repairs(const node *n, uint64_t *last)
{
    *last = n->root.guard.repaired_last;
    return n->repairs;
}
