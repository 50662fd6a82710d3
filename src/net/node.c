/* What all nodes have in common: set-up, what comes in, what goes out and when again. */
#include "net/node_parts.h"

#include "base/alloc.h"
#include "base/error.h"
#include "core/draw.h"

#include <assert.h>
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
    n->w = alloc_zero(M, sizeof(double));
    n->z = alloc_zero(M, sizeof(double));
    n->q = alloc_zero(M, sizeof(double));
    n->u = alloc_zero(M + 2, sizeof(double));
    n->guard.calm = n->s.guarded && is_root(n) ? alloc_zero(2 * M, sizeof(double)) : NULL;
    n->guard.before = n->guard.calm ? n->guard.calm + M : NULL;
    n->figures = alloc_zero(node_figures_count(n), sizeof(double));
    n->row_w = is_root(n) ? alloc_zero(M, sizeof(double)) : NULL;
    n->polish = n->s.polish ? alloc_zero(n->s.polish + M, sizeof(double)) : NULL;
    if (start)
        memcpy(start, n->s.start, M * sizeof *start);
    n->s.start = start;
    return start && (n->row_w || !is_root(n)) && (n->polish || !n->s.polish) && n->w && n->z && n->q && n->u &&
           n->figures && (n->guard.calm || !(n->s.guarded && is_root(n)));
}

hfsad_status node_create(node **out, const node_setup *setup, hfsad_error *err)
{
    *out = NULL;
    assert(setup->p->trace_every > 0 && !setup->leaf == !!setup->inner);
    node *n = alloc_zero(1, sizeof *n);
    if (!n)
        return error_memory(err, sizeof *n, "a node");
    n->s = *setup;
    if (!n->s.part)
        n->s.part = setup->M > NODE_PART ? setup->M : NODE_PART;
    n->K = setup->p->edge_rounds;
    n->end_round = setup->p->iterations * n->K;
    n->period = setup->depth == 1 ? n->K : 1;
    n->unit = setup->depth == 0 ? n->K : 1;
    n->nodes = 1; /* and those below, for inner_create */
    n->answered = -1;
    n->answer_phase = NODE_PHASE_TRAIN;
    n->begun = 1;
    n->changed = true;
    n->stop.met_since = UINT64_MAX;
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
    node_find_rule(n);
    n->guard.star = setup->star;
    if (n->guard.calm) {
        memcpy(n->guard.calm, n->s.start, setup->M * sizeof *n->w);
        memcpy(n->guard.before, n->s.start, setup->M * sizeof *n->w);
    }
    if (setup->async && setup->inner)
        async_start(n);
    *out = n;
    if (setup->inner && setup->stage == 0) /* a later one goes on with the clock of the one before */
        inner_advance(n);
    return HFSAD_OK;
}

void node_free(node *n)
{
    if (!n)
        return;
    async_free(n);
    look_free(n);
    if (n->s.leaf)
        leaf_free(n);
    else
        inner_free(n);
    free((double *)n->s.start);
    free(n->w);
    free(n->z);
    free(n->q);
    free(n->u);
    free(n->figures);
    free(n->guard.calm);
    free(n->first);
    free(n->polish);
    free(n->row_w);
    free(n->shown);
    free(n);
}

/* ---- for the other files ---- */

/* Once a value is acknowledged or overtaken: how long to wait with the next, so that rounds of seconds are not full of
 * repeated vectors. As in TCP, a value that was repeated says only that the wait was too short or something was lost,
 * and the longer one stays. */
static void channel_learn(const node *n, channel *c)
{
    const node_patience *p = &n->s.patience;
    if (!c->open)
        return;
    c->open = false;
    const uint64_t took = n->now - c->since, least = c->patience - c->patience / 4;
    uint64_t wait = c->repeated ? c->wait : 3 * took;
    wait = wait < least ? least : wait;
    c->patience = (uint32_t)(wait < p->first_ms ? p->first_ms : wait > p->most_ms ? p->most_ms : wait);
}

void channel_start(node *n, channel *c)
{
    channel_learn(n, c);
    const uint32_t wait = c->patience ? c->patience : n->s.patience.first_ms;
    *c = (channel){.live = true,
                   .send = true,
                   .due = n->now + wait,
                   .wait = wait,
                   .open = true,
                   .since = n->now,
                   .patience = c->patience};
}

void channel_stop(channel *c)
{
    c->live = c->send = false;
}

bool node_draw(const node *n, double participation, uint64_t key, uint32_t *last, uint64_t round)
{
    const uint64_t iteration = (round - 1) / n->K + 1;
    const bool overdue = round % n->K == 0 && iteration - *last >= n->s.p->at_least_every;
    const bool takes_part = participation >= 1 || draw_takes_part(participation, key, round - 1, overdue);
    if (takes_part)
        *last = (uint32_t)iteration;
    return takes_part;
}

uint64_t node_next_measure(const node *n)
{
    const uint64_t every = n->s.p->trace_every, end = n->s.p->iterations;
    if (n->answered < 0)
        return 0;
    if (n->s.async)
        return (uint64_t)n->answered < n->end_round ? n->end_round : UINT64_MAX;
    const uint64_t done = (uint64_t)n->answered / n->K;
    if (done >= end)
        return UINT64_MAX;
    const uint64_t next = (done / every + 1) * every;
    return (next < end ? next : end) * n->K;
}

void node_answer(node *n, const tally *t, uint64_t round)
{
    tally_pack(t, n->s.tiers, n->figures);
    n->answered = (int64_t)round;
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
    if (!n->took_part) /* otherwise an UP will follow, and its link has left the last one's state */
        channel_start(n, &n->up);
}

void node_find_rule(node *n)
{
    n->rule = n->s.inner  ? guard_rule(&n->s.inner->rule, n->repairs)
              : n->s.star ? guard_star_rule(n->s.p, &n->s.leaf->rule, n->repairs)
                          : n->s.leaf->rule;
}

void node_begin_anew(node *n, const double *w)
{
    const size_t bytes = n->s.M * sizeof *w;
    memmove(n->w, w, bytes);
    memcpy(n->z, n->w, bytes);
    memcpy(n->q, n->w, bytes);
    n->k = 0;
    n->dual = guard_dual(n->dual);
    n->repairs++;
    node_find_rule(n);
    n->took_part = false;
    n->say_anew = !is_root(n);
    n->changed = true;
    channel_stop(&n->up);
    channel_stop(&n->answer);
}

/* ---- what comes in ---- */

static bool fits_sender(const node *n, size_t from, message_kind kind)
{
    if (from == NODE_PARENT)
        return !is_root(n) && (kind == MESSAGE_DOWN || kind == MESSAGE_ASK || kind == MESSAGE_ACK);
    return from < n->s.n_children &&
           (kind == MESSAGE_UP || kind == MESSAGE_ANSWER || kind == MESSAGE_MODEL || kind == MESSAGE_ACK);
}

/* Whose k is 1 speaks of answers, whose k is 2 of the part of the models that is wanted. Its numbers: how often the
 * parent has begun, then pairs: the slot of a child, and the round of what has come from it. What an earlier life of
 * the parent had got, a later one may have lost. */
static bool handle_parent_ack(node *n, const message *m, node_refusal *why)
{
    double round = -1;
    for (size_t i = 1; i + 1 < m->count; i += 2)
        if (m->values[i] == (double)n->s.slot)
            round = m->values[i + 1];
    if (round < 0)
        return node_refuse(n, why, NODE_REFUSED_OLD);
    if (m->phase == NODE_PHASE_FINAL && m->k == 1) {
        n->changed = n->changed || !n->finished;
        n->finished = true;
        channel_stop(&n->answer);
        if (n->s.inner)
            inner_ack_all(n);
        return true;
    }
    if (m->phase == NODE_PHASE_FINAL && m->k == 2) {
        const bool other = n->answer_phase == NODE_PHASE_FINAL && n->answer.live && round != (double)n->part &&
                           round < (double)node_parts_of(n, n->nodes);
        if (!other || m->values[0] < (double)n->asker_begun)
            return node_refuse(n, why, NODE_REFUSED_OLD);
        n->part = (uint64_t)round;
        channel_start(n, &n->answer);
        return true;
    }
    if (m->values[0] < (double)(m->k == 1 ? n->asker_begun : n->parent_begun))
        return node_refuse(n, why, NODE_REFUSED_OLD);
    if (m->k == 1 && n->answer_phase == NODE_PHASE_TRAIN && round >= (double)n->answered)
        channel_stop(&n->answer);
    if (m->k == 0 && round >= (double)n->up_round && n->up.live) {
        channel_stop(&n->up);
        if (n->s.async)
            async_acknowledged(n);
    }
    return true;
}

static bool fits_phase(const message *m)
{
    switch (m->kind) {
    case MESSAGE_MODEL:
        return m->phase == NODE_PHASE_FINAL;
    case MESSAGE_ASK:
    case MESSAGE_ACK:
        return m->phase == NODE_PHASE_TRAIN || m->phase == NODE_PHASE_FINAL;
    default:
        return m->phase == NODE_PHASE_TRAIN;
    }
}

/* A question or an answer of NODE_PHASE_ANEW; epoch: the number of repairs when it is done. */
static bool handle_anew(node *n, size_t from, const message *m, uint64_t epoch, node_refusal *why)
{
    if (m->kind != MESSAGE_ASK && m->kind != MESSAGE_ANSWER)
        return node_refuse(n, why, NODE_REFUSED_KIND);
    if (m->count != (m->kind == MESSAGE_ASK ? n->s.M : 0))
        return node_refuse(n, why, NODE_REFUSED_SIZE);
    if (epoch > n->repairs + 1 || !n->s.guarded)
        return node_refuse(n, why, NODE_REFUSED_FUTURE);
    if (m->kind == MESSAGE_ANSWER) {
        if (epoch <= n->repairs || !n->asking || n->ask_phase != NODE_PHASE_ANEW)
            return node_refuse(n, why, NODE_REFUSED_OLD);
        n->child[from].answered = true;
    } else if (epoch <= n->repairs || n->pending) {
        n->say_anew = n->say_anew || epoch == n->repairs;
        return node_refuse(n, why, NODE_REFUSED_OLD);
    } else if (n->s.leaf) {
        node_begin_anew(n, m->values);
        leaf_begin_anew(n);
    } else {
        memcpy(n->ask_w, m->values, n->s.M * sizeof *n->ask_w);
        inner_ask(n, NODE_PHASE_ANEW, n->round);
    }
    if (n->s.inner)
        inner_advance(n);
    return true;
}

static bool handle_plain(node *n, size_t from, const message *m, node_refusal *why)
{
    if (from == NODE_PARENT && m->kind == MESSAGE_ACK)
        return handle_parent_ack(n, m, why);
    if (from == NODE_PARENT && n->finished)
        return node_refuse(n, why, NODE_REFUSED_OLD);
    return n->s.leaf ? leaf_handle(n, m, why) : inner_handle(n, from, m, why);
}

bool node_handle(node *n, size_t from, const message *m, node_refusal *why)
{
    message plain = *m;
    const uint64_t stage = m->phase >> NODE_STAGE_BIT, above = m->phase - (stage << NODE_STAGE_BIT),
                   epoch = above >> NODE_PHASE_BITS;
    const unsigned ahead = from == NODE_PARENT ? 0 : 1; /* children begin the next stage, or anew, before we do */
    plain.phase = above - (epoch << NODE_PHASE_BITS);
    if (m->run != n->s.run)
        return node_refuse(n, why, NODE_REFUSED_RUN);
    if (!fits_sender(n, from, m->kind))
        return node_refuse(n, why, NODE_REFUSED_KIND);
    if (!numbers_take(n, &plain, why))
        return false;
    if (plain.phase == NODE_PHASE_LOOK)
        return look_handle(n, from, &plain, why);
    if (plain.phase == NODE_PHASE_STAGE)
        return stage_handle(n, from, &plain, stage, why);
    if (stage != n->s.stage)
        return node_refuse(n, why, stage > n->s.stage + ahead ? NODE_REFUSED_FUTURE : NODE_REFUSED_OLD);
    if ((plain.phase != NODE_PHASE_ANEW && !fits_phase(&plain)) || m->round > n->end_round)
        return node_refuse(n, why, NODE_REFUSED_FUTURE);
    if (plain.phase == NODE_PHASE_ANEW)
        return handle_anew(n, from, &plain, epoch, why);
    if (epoch != n->repairs)
        return node_refuse(n, why, epoch > n->repairs + ahead ? NODE_REFUSED_FUTURE : NODE_REFUSED_OLD);
    return handle_plain(n, from, &plain, why);
}

/* ---- time ---- */

enum { CHANNELS = 5 };

static void tick_channel(node *n, channel *c)
{
    if (!c->live)
        channel_learn(n, c);
    if (!c->live || c->due > n->now)
        return;
    c->send = c->repeated = true;
    c->wait = c->wait < n->s.patience.most_ms / 2 ? 2 * c->wait : n->s.patience.most_ms;
    c->due = n->now + c->wait;
}

void node_tick(node *n, uint64_t now_ms)
{
    n->now = now_ms;
    tick_channel(n, &n->up);
    tick_channel(n, &n->answer);
    tick_channel(n, &n->down);
    tick_channel(n, &n->ask);
    tick_channel(n, &n->look_ask);
    if (n->s.async && n->s.inner)
        inner_advance(n);
}

uint64_t node_due(const node *n)
{
    const channel *all[CHANNELS] = {&n->up, &n->answer, &n->down, &n->ask, &n->look_ask};
    uint64_t due = UINT64_MAX;
    for (size_t i = 0; i < CHANNELS; i++)
        if (all[i]->live && all[i]->due < due)
            due = all[i]->due;
    const uint64_t step = n->s.async && n->s.inner ? async_due(n) : UINT64_MAX;
    return step < due ? step : due;
}

void node_repeat(node *n)
{
    channel *all[CHANNELS] = {&n->up, &n->answer, &n->down, &n->ask, &n->look_ask};
    for (size_t i = 0; i < CHANNELS; i++)
        all[i]->send = all[i]->live;
}

size_t node_message_most(const node *n)
{
    size_t most = 2 * n->s.M + 2 > node_figures_count(n) ? 2 * n->s.M + 2 : node_figures_count(n);
    for (size_t c = 0; c < n->s.n_children; c++) {
        const size_t part = node_part_size(n, n->s.children[c].nodes, 0);
        most = part > most ? part : most;
    }
    return most > 2 * n->s.siblings ? most : 2 * n->s.siblings + 1; /* an ACK may name all of them */
}

/* ---- what goes out ---- */

static bool take_channel(node *n, channel *c)
{
    if (!c->send)
        return false;
    n->status.repeated += c->again;
    c->send = false;
    c->again = true;
    return true;
}

static message letter_of(const node *n, message_kind kind, uint64_t phase, uint64_t round)
{
    const bool asks = kind == MESSAGE_ASK;
    const uint64_t epoch = n->repairs + (asks && phase == NODE_PHASE_ANEW),
                   stage = n->s.stage + (asks && phase == NODE_PHASE_STAGE);
    return (message){.kind = kind,
                     .run = n->s.run,
                     .phase = phase + (epoch << NODE_PHASE_BITS) + (stage << NODE_STAGE_BIT),
                     .round = round};
}

static message up_letter(node *n)
{
    message m = letter_of(n, MESSAGE_UP, NODE_PHASE_TRAIN, n->up_round);
    const hfsad_link link = {n->z, n->q, n->k};
    const double sigma = hfsad_link_message(&n->rule, &link, n->s.M, n->u);
    numbers_hide(n->u, n->s.M);
    m.k = n->k;
    m.sigma = number_hide(sigma);
    m.values = n->u;
    m.count = n->s.M;
    if (n->s.guarded && n->s.inner) {
        const guard_strain own = guard_link(n->s.inner, &link, n->s.M), below = inner_strain(n);
        n->u[m.count++] = own.sum + below.sum;
        n->u[m.count++] = own.count + below.count;
    }
    return m;
}

static message answer_letter(node *n)
{
    const bool final = n->answer_phase == NODE_PHASE_FINAL;
    message m = letter_of(n, final ? MESSAGE_MODEL : MESSAGE_ANSWER, n->answer_phase, (uint64_t)n->answered);
    m.values = n->figures;
    m.count = node_figures_count(n);
    m.k = n->s.async && !final ? n->answered_k : 0;
    if (final && n->s.leaf)
        node_model(n, n->u);
    if (final) {
        m.values = (n->s.leaf ? n->u : n->models) + n->part * n->s.part;
        m.count = node_part_size(n, n->nodes, n->part);
        m.k = n->part;
    }
    numbers_hide(m.values, m.count);
    return m;
}

static bool next_to_parent(node *n, message *m)
{
    if (take_channel(n, &n->up)) {
        *m = up_letter(n);
        return true;
    }
    if (take_channel(n, &n->answer)) {
        *m = answer_letter(n);
        return true;
    }
    if (n->say_anew) {
        *m = letter_of(n, MESSAGE_ANSWER, NODE_PHASE_ANEW, n->round);
        n->say_anew = false;
        return true;
    }
    if (n->say_look) {
        *m = look_model_letter(n);
        return true;
    }
    if (n->say_stage) {
        *m = letter_of(n, MESSAGE_ANSWER, NODE_PHASE_STAGE, 0);
        n->say_stage = false;
        return true;
    }
    if (n->ack_down) {
        *m = letter_of(n, MESSAGE_ACK, NODE_PHASE_TRAIN, n->down_round);
        n->seen_begun = (double)n->parent_begun;
        m->values = &n->seen_begun;
        m->count = 1;
        n->ack_down = false;
        return true;
    }
    return false;
}

static message ack_letter(node *n, bool of_answers)
{
    message m = letter_of(n, MESSAGE_ACK, of_answers && n->finished ? NODE_PHASE_FINAL : NODE_PHASE_TRAIN, 0);
    m.k = of_answers;
    m.values = n->slots;
    n->slots[m.count++] = (double)n->begun;
    for (size_t c = 0; c < n->s.n_children; c++) {
        child_state *child = &n->child[c];
        bool *flag = of_answers ? &child->ack_answer : &child->ack_up;
        if (!*flag && !(of_answers && n->finished)) /* the broker retains the last one: for who comes late */
            continue;
        *flag = false;
        if (!of_answers && !n->s.async && !child->has) /* a round has been opened since */
            continue;
        n->slots[m.count++] = (double)c;
        n->slots[m.count++] = !of_answers                    ? (double)child->need
                              : n->asking && child->answered ? (double)n->ask_round
                                                             : (double)(n->answered < 0 ? 0 : n->answered);
    }
    return m;
}

/* Which part of its models each child is to say next. */
static message part_letter(node *n)
{
    message m = letter_of(n, MESSAGE_ACK, NODE_PHASE_FINAL, 0);
    m.k = 2;
    m.values = n->slots;
    n->slots[m.count++] = (double)n->begun;
    for (size_t c = 0; c < n->s.n_children; c++) {
        if (!n->child[c].ack_part)
            continue;
        n->child[c].ack_part = false;
        n->slots[m.count++] = (double)c;
        n->slots[m.count++] = (double)n->child[c].parts;
    }
    return m;
}

static bool next_to_children(node *n, message *m)
{
    if (take_channel(n, &n->down)) {
        *m = letter_of(n, MESSAGE_DOWN, NODE_PHASE_TRAIN, (n->s.async ? n->version : n->round) + 1);
        m->k = n->begun;
        m->values = numbers_to_say(n->partial, n->w, n->s.M);
        m->count = n->s.M;
        return true;
    }
    if (take_channel(n, &n->ask)) {
        *m = letter_of(n, MESSAGE_ASK, n->ask_phase, n->ask_round);
        m->k = n->begun;
        m->count = n->ask_phase == NODE_PHASE_FINAL                 ? 0
                   : is_root(n) || n->ask_phase != NODE_PHASE_TRAIN ? n->s.M
                                                                    : 2 * n->s.M;
        m->values = numbers_to_say(n->partial, n->ask_w, m->count);
        return true;
    }
    if (take_channel(n, &n->look_ask)) {
        *m = look_ask_letter(n);
        return true;
    }
    if (n->ack_look) {
        *m = look_ack_letter(n);
        return true;
    }
    if (n->ack_part) {
        *m = part_letter(n);
        n->ack_part = false;
        return true;
    }
    if (n->ack_up || n->ack_answer) {
        const bool of_answers = !n->ack_up;
        *m = ack_letter(n, of_answers);
        *(of_answers ? &n->ack_answer : &n->ack_up) = false;
        return true;
    }
    return false;
}

bool node_next_letter(node *n, node_letter *letter)
{
    if (next_to_parent(n, &letter->m)) {
        letter->to_parent = true;
        return true;
    }
    letter->to_parent = false;
    return n->s.inner && next_to_children(n, &letter->m);
}

/* ---- what others want to know ---- */

node_end node_ended(const node *n)
{
    if (is_root(n))
        return n->finished ? n->end : NODE_RUNNING;
    return n->finished ? NODE_DONE : NODE_RUNNING;
}

bool node_take_figures(node *n, hfsad_figures *f)
{
    if (n->row_ready)
        *f = n->row;
    const bool ready = n->row_ready;
    n->row_ready = false;
    return ready;
}

const double *node_row_w(const node *n)
{
    return n->row_w;
}

void node_model(const node *n, double *w)
{
    const bool shown = n->s.inner || n->s.keeps_w;
    memcpy(w, shown ? n->w : n->z, n->s.M * sizeof *w);
    if (n->has_settled)
        w[n->s.M - 1] = n->settled;
}

void node_set_local_steps(node *n, uint32_t steps)
{
    n->local_steps = steps ? steps : 1;
}

char *node_take_lines(node *n)
{
    char *lines = n->lines;
    n->lines = NULL;
    n->lines_size = n->lines_room = 0;
    return lines;
}

const double *node_models_below(const node *n)
{
    const double *all = n->finished ? n->models : n->looked ? n->look_models : NULL;
    return all ? all + n->s.M : NULL;
}

node_status node_get_status(const node *n)
{
    node_status status = n->status;
    status.round = n->round;
    status.k = !is_root(n) ? n->k : n->s.async ? n->version : n->round / n->K;
    return status;
}

const double *node_wants_polish(node *n, uint64_t *begun)
{
    const bool ended = n->end == NODE_DONE || n->end == NODE_CONVERGED;
    if (!n->polish || n->polished || !ended || n->open || n->pending)
        return NULL;
    *begun = n->begun;
    node_model(n, n->polish + n->s.polish);
    return n->polish + n->s.polish;
}

void node_take_polish(node *n, const double *result, size_t count)
{
    assert(count <= n->s.polish);
    memset(n->polish, 0, n->s.polish * sizeof *result);
    memcpy(n->polish, result, count * sizeof *result);
    n->polished = n->changed = true;
    inner_advance(n);
}

const double *node_get_polish(const node *n)
{
    return n->polished ? n->polish : NULL;
}

node_prelude node_get_prelude(const node *n)
{
    return n->prelude;
}

uint64_t node_repairs(const node *n, uint64_t *last)
{
    *last = n->guard.repaired_last;
    return n->repairs;
}
