/*
 * What is asked down the tree and answered up it while nodes train. Every question is a row of one table:
 *
 *     row      goes down               comes up          combined            a node keeps
 *     figures  w_0, the parent's w     tally             added, slot order   round and tally of its answer
 *     models   nothing                 MODELs in parts   one after another   that it was asked
 *     repair   w to begin anew with    nothing           all have            the number of repairs, and its state
 *     stage    w to begin with         nothing           all have            the stage, and its state
 *     look     nothing                 MODELs in parts   one after another   nothing
 *
 * The mechanism is the same for all. A parent repeats its question until all children have answered. A node answers
 * whenever it is asked: a client at once, an inner node when its children have. After a crash nothing is known of a
 * question in hand; the parent asks again. (Asynchronous figures are different: node_state.c.) Only the models at the
 * end are also repeated by the node that has them, since it must hear that it may go.
 */
#include "net/node_parts.h"

#include "base/alloc.h"

#include <string.h>

/* How a question stands to the node that hears it. */
typedef enum { PLACE_NEW, PLACE_AGAIN, PLACE_OLD, PLACE_EARLY, PLACE_WRONG } place;

struct question_row {
    uint64_t phase;
    message_kind answer;
    bool holds;   /* no round begins while it is in hand */
    bool at_once; /* an inner node passes it on at once; otherwise when its own rounds have come to it */
    bool kept;    /* what came of it is part of the state */
    /* Numbers of the question, and of child c's answer or its part; SIZE_MAX: there is no such part. */
    size_t (*down)(const node *n);
    size_t (*up)(const node *n, size_t c, uint64_t part);
    place (*where)(const node *n, const message *m, uint64_t number);
    /* The largest number that a child can have answered. */
    uint64_t (*latest)(const node *n);
    /* A client answers; an inner node takes the question in hand. false: it cannot now, and will be asked again. */
    bool (*reply)(node *n, const message *m, uint64_t number);
    bool (*begin)(node *n, const message *m, uint64_t number);
    void (*pass_on)(node *n); /* an inner node passes it on; may be NULL */
    bool (*take)(node *n, size_t c, const message *m);
    bool (*finish)(node *n); /* all children have answered; false: no memory, it has to be asked again */
    message (*say)(node *n);
};

/* ---- sizes ---- */

static size_t no_numbers(const node *n)
{
    (void)n;
    return 0;
}

static size_t one_model(const node *n)
{
    return n->s.M;
}

static size_t up_nothing(const node *n, size_t c, uint64_t part)
{
    (void)n;
    (void)c;
    return part ? SIZE_MAX : 0;
}

static size_t up_figures(const node *n, size_t c, uint64_t part)
{
    (void)c;
    (void)part;
    return node_figures_count(n);
}

static size_t up_models(const node *n, size_t c, uint64_t part)
{
    const size_t size = node_part_size(n, n->s.children[c].nodes, part);
    return size ? size : SIZE_MAX;
}

static bool take_word(node *n, size_t c, const message *m)
{
    (void)m;
    return n->inner.child[c].answered = true;
}

static uint64_t last_answer(const node *n)
{
    return n->answer.round < 0 ? 0 : (uint64_t)n->answer.round;
}

/* ---- figures ---- */

static place where_figures(const node *n, const message *m, uint64_t number)
{
    uint32_t last;
    if ((int64_t)number <= n->answer.round)
        return (int64_t)number == n->answer.round && !n->answer.final ? PLACE_AGAIN : PLACE_OLD;
    if (n->answer.final)
        return PLACE_OLD;
    if (n->s.async)
        return !async_may_ask(n, m->round) ? PLACE_EARLY : async_can_answer(n, m->round) ? PLACE_NEW : PLACE_OLD;
    if (m->round != node_next_measure(n) || m->round < n->round)
        return PLACE_EARLY;
    return n->s.inner || node_sits_out_until(n, m->round, &last) ? PLACE_NEW : PLACE_EARLY;
}

static bool reply_figures(node *n, const message *m, uint64_t number)
{
    const size_t M = n->s.M;
    uint32_t last;
    tally t;
    if (!n->s.async) {
        channel_stop(&n->up);
        (void)node_sits_out_until(n, number, &last);
        leaf_skip_to(n, number, last);
    }
    leaf_measure(n, m->values, n->s.depth == 1 ? m->values : m->values + M, &t);
    node_answer(n, &t, number);
    n->answer.k = n->k;
    return true;
}

/* From here on an asynchronous node steps no more, also after a crash: what its children have answered must stay true.
 */
static void halt(node *n)
{
    n->async.turn_left = 0;
    n->changed = true;
    channel_stop(&n->down);
    if (n->state != NODE_HALTED)
        node_move(n, NODE_HALTED);
}

static bool begin_figures(node *n, const message *m, uint64_t number)
{
    const size_t M = n->s.M;
    if (n->s.async)
        n->changed = true;
    else if (number >= n->up_round && !n->took_part)
        channel_stop(&n->up);
    if (n->s.async && number == n->end_round)
        halt(n);
    memcpy(n->question.w, m->values, M * sizeof *m->values);
    memcpy(n->question.parent, m->values + (n->s.depth > 1 ? M : 0), M * sizeof *m->values);
    return true;
}

/* This node's part of the figures. Asynchronous training goes on while the answers come. */
static void pass_figures_on(node *n)
{
    const inner_class *class = n->s.inner;
    question *q = &n->question;
    memcpy(q->w + (is_root(n) ? 0 : n->s.M), n->w, n->s.M * sizeof *n->w);
    q->own = (tally){.priors = kernels()->prior_value(&class->prior, n->s.M, n->w),
                     .consensus_priors = kernels()->prior_value(&class->prior, n->s.M, q->w),
                     .up = (double)n->sent_up,
                     .down = (double)n->sent_down};
    q->asked_version = n->async.version;
    n->changed = n->changed || n->s.async;
    if (is_root(n))
        return;
    const hfsad_link link = {n->z, n->q, n->k};
    kernels()->link_measure(&class->rule, &link, n->s.M, n->w, q->parent, q->w, &q->own.tier[n->s.depth - 1]);
    q->own.dual[n->s.depth - 1] = n->dual;
}

static bool take_figures(node *n, size_t c, const message *m)
{
    memcpy(n->inner.child_figures + c * m->count, m->values, m->count * sizeof *m->values);
    n->inner.child[c].answer_k = m->k;
    return n->inner.child[c].answered = true;
}

/* The children's tallies in the order of plan/tally.h; intercepts one after another. */
static void add_children(const node *n, tally *t)
{
    const size_t count = node_figures_count(n), leaves = inner_first_leaf(n), slots = run_slots(n->s.M);
    tally child;
    for (size_t c = 0; c < leaves; c++) {
        tally_unpack(&child, n->s.tiers, n->inner.child_figures + c * count);
        tally_add(t, &child);
    }
    for (size_t first = leaves; first < n->s.n_children; first += slots) {
        tally run = {0};
        for (size_t c = first; c < n->s.n_children && c < first + slots; c++) {
            tally_unpack(&child, n->s.tiers, n->inner.child_figures + c * count);
            t->intercepts += child.intercepts;
            child.intercepts = 0;
            tally_add(&run, &child);
        }
        tally_add(t, &run);
    }
}

/* Where clients or edges have intercepts of their own, nothing ties the nodes above: they show the mean over the
 * clients below. */
static void settle(node *n, tally *t)
{
    const size_t leaves = n->s.n_children - inner_first_leaf(n);
    const bool own_client = n->s.intercept == INTERCEPT_CLIENT;
    const double *w = n->question.w + (is_root(n) ? 0 : n->s.M);
    if (n->s.intercept == INTERCEPT_EDGE)
        t->intercepts += (double)leaves * w[n->s.M - 1];
    n->inner.has_settled = own_client || (n->s.intercept == INTERCEPT_EDGE && leaves == 0);
    if (n->inner.has_settled)
        n->inner.settled = t->intercepts / t->clients;
}

static bool finish_figures(node *n)
{
    tally t = n->question.own;
    if (n->s.async && n->question.round == n->end_round)
        async_end(n);
    else if (n->s.async && n->question.round > 0)
        async_row(n);
    add_children(n, &t);
    settle(n, &t);
    if (is_root(n))
        root_conclude(n, &t);
    else
        node_answer(n, &t, n->question.round);
    return true;
}

static message say_figures(node *n)
{
    message m = node_letter_of(n, MESSAGE_ANSWER, NODE_PHASE_TRAIN, last_answer(n));
    m.values = n->answer.figures;
    m.count = node_figures_count(n);
    m.k = n->s.async ? n->answer.k : 0;
    return m;
}

/* ---- models, at the end and at a look ---- */

/* On lack of memory the answers are dropped; they come again, and so does this. */
static bool has_room_for_models(node *n)
{
    if (!n->inner.models)
        n->inner.models = alloc_zero(n->nodes * n->s.M, sizeof(double));
    return n->inner.models != NULL;
}

size_t node_models_before(const node *n, size_t c)
{
    size_t nodes = 1;
    for (size_t i = 0; i < c; i++)
        nodes += n->s.children[i].nodes;
    return nodes * n->s.M;
}

static bool take_models(node *n, size_t c, const message *m)
{
    child_state *child = &n->inner.child[c];
    if (!has_room_for_models(n))
        return false;
    const bool wanted = m->k == child->parts;
    if (wanted) {
        memcpy(n->inner.models + node_models_before(n, c) + m->k * n->s.part, m->values, m->count * sizeof *m->values);
        child->answered = ++child->parts == node_parts_of(n, n->s.children[c].nodes);
    }
    child->ack_part = !child->answered;
    n->ack_part = n->ack_part || child->ack_part;
    return wanted;
}

static void begin_models(node *n)
{
    n->inner.has_models = false;
    (void)has_room_for_models(n);
}

static bool gather_models(node *n)
{
    node_model(n, n->inner.models);
    n->inner.has_models = true;
    n->answer.part = 0;
    return true;
}

static message say_models(node *n, uint64_t phase, uint64_t round)
{
    message m = node_letter_of(n, MESSAGE_MODEL, phase, round);
    if (n->s.leaf)
        node_model(n, n->u);
    m.values = (n->s.leaf ? n->u : n->inner.models) + n->answer.part * n->s.part;
    m.count = node_part_size(n, n->nodes, n->answer.part);
    m.k = n->answer.part;
    return m;
}

static place where_models(const node *n, const message *m, uint64_t number)
{
    (void)m;
    if ((int64_t)number != n->answer.round)
        return PLACE_EARLY;
    return n->answer.final ? PLACE_AGAIN : PLACE_NEW;
}

static bool reply_models(node *n, const message *m, uint64_t number)
{
    (void)m;
    (void)number;
    if (!n->s.async)
        channel_stop(&n->up);
    n->answer.final = true;
    n->answer.part = 0;
    node_send(n, &n->answer.models);
    return true;
}

static bool begin_final(node *n, const message *m, uint64_t number)
{
    (void)m;
    if (number >= n->up_round && !n->took_part)
        channel_stop(&n->up);
    if (n->s.async)
        halt(n);
    return true;
}

static bool finish_models(node *n)
{
    (void)gather_models(n);
    n->answer.final = true;
    if (is_root(n)) {
        node_move(n, NODE_FINISHED);
        n->ack_end = true;
    } else {
        node_send(n, &n->answer.models);
    }
    return true;
}

static message say_final(node *n)
{
    return say_models(n, NODE_PHASE_FINAL, last_answer(n));
}

/* A look leaves no trace where it is given up: whatever else is asked overtakes it. */
static place where_look(const node *n, const message *m, uint64_t number)
{
    (void)m;
    if (n->answer.final || number < n->answer.look)
        return PLACE_OLD;
    if (number == n->answer.look && (n->s.leaf || n->inner.has_models))
        return PLACE_AGAIN;
    return question_holds(n) ? PLACE_OLD : PLACE_NEW;
}

/* An earlier life may have asked for any. */
static uint64_t latest_look(const node *n)
{
    (void)n;
    return UINT64_MAX;
}

static bool reply_look(node *n, const message *m, uint64_t number)
{
    (void)m;
    n->answer.look = number;
    n->answer.part = 0;
    return true;
}

static bool begin_look(node *n, const message *m, uint64_t number)
{
    (void)m;
    n->answer.look = number;
    return has_room_for_models(n);
}

static message say_look(node *n)
{
    return say_models(n, NODE_PHASE_LOOK, n->answer.look);
}

bool question_handle_part(node *n, const message *m, uint64_t part, node_refusal *why)
{
    const bool final = m->phase == NODE_PHASE_FINAL, there = n->s.leaf || n->inner.has_models;
    if (!there || !(final ? n->answer.final : m->round == n->answer.look) || part == n->answer.part ||
        part >= node_parts_of(n, n->nodes))
        return node_refuse(n, why, NODE_REFUSED_OLD);
    n->answer.part = part;
    if (final)
        node_send(n, &n->answer.models);
    else
        n->answer.say = &QUESTION_LOOK;
    return true;
}

/* ---- a repair, and the next stage ---- */

static place where_repair(const node *n, const message *m, uint64_t number)
{
    (void)m;
    if (number > n->repairs + 1 || !n->s.guarded)
        return PLACE_EARLY;
    if (number <= n->repairs)
        return number == n->repairs ? PLACE_AGAIN : PLACE_OLD;
    return question_holds(n) ? PLACE_OLD : PLACE_NEW;
}

static uint64_t latest_repair(const node *n)
{
    return n->repairs + 1;
}

static bool reply_repair(node *n, const message *m, uint64_t number)
{
    (void)number;
    node_begin_anew(n, m->values);
    leaf_begin_anew(n);
    return true;
}

static bool begin_repair(node *n, const message *m, uint64_t number)
{
    (void)number;
    memcpy(n->question.w, m->values, n->s.M * sizeof *m->values);
    return true;
}

static bool finish_repair(node *n)
{
    inner_begin_anew(n);
    return true;
}

static message say_repair(node *n)
{
    return node_letter_of(n, MESSAGE_ANSWER, NODE_PHASE_ANEW, n->round);
}

static place where_stage(const node *n, const message *m, uint64_t number)
{
    if (!all_finite(m->values, m->count))
        return PLACE_WRONG;
    if (number > n->s.stage + 1 || number >= n->s.stages)
        return PLACE_EARLY;
    return number > n->s.stage ? PLACE_NEW : number == n->s.stage ? PLACE_AGAIN : PLACE_OLD;
}

static uint64_t latest_stage(const node *n)
{
    return n->s.stage + 1;
}

static bool reply_stage(node *n, const message *m, uint64_t number)
{
    return stage_begin(n, number, m->values);
}

static bool begin_stage(node *n, const message *m, uint64_t number)
{
    (void)number;
    memcpy(n->question.w, m->values, n->s.M * sizeof *m->values);
    if (n->state == NODE_TRAINS) /* other numbers have ended the stage */
        node_move(n, NODE_RESTS);
    channel_stop(&n->down);
    channel_stop(&n->up);
    return true;
}

static bool finish_stage(node *n)
{
    return stage_begin(n, n->s.stage + 1, n->question.w);
}

static message say_stage(node *n)
{
    return node_letter_of(n, MESSAGE_ANSWER, NODE_PHASE_STAGE, 0);
}

/* ---- the table ---- */

const question_row QUESTION_FIGURES = {
    .phase = NODE_PHASE_TRAIN,
    .answer = MESSAGE_ANSWER,
    .holds = true,
    .kept = true,
    .down = node_ask_count,
    .up = up_figures,
    .where = where_figures,
    .latest = node_next_measure,
    .reply = reply_figures,
    .begin = begin_figures,
    .pass_on = pass_figures_on,
    .take = take_figures,
    .finish = finish_figures,
    .say = say_figures,
};

const question_row QUESTION_MODELS = {
    .phase = NODE_PHASE_FINAL,
    .answer = MESSAGE_MODEL,
    .holds = true,
    .kept = true,
    .down = no_numbers,
    .up = up_models,
    .where = where_models,
    .latest = last_answer,
    .reply = reply_models,
    .begin = begin_final,
    .pass_on = begin_models,
    .take = take_models,
    .finish = finish_models,
    .say = say_final,
};

const question_row QUESTION_REPAIR = {
    .phase = NODE_PHASE_ANEW,
    .answer = MESSAGE_ANSWER,
    .holds = true,
    .at_once = true,
    .kept = true,
    .down = one_model,
    .up = up_nothing,
    .where = where_repair,
    .latest = latest_repair,
    .reply = reply_repair,
    .begin = begin_repair,
    .take = take_word,
    .finish = finish_repair,
    .say = say_repair,
};

const question_row QUESTION_STAGE = {
    .phase = NODE_PHASE_STAGE,
    .answer = MESSAGE_ANSWER,
    .holds = true,
    .at_once = true,
    .kept = true,
    .down = one_model,
    .up = up_nothing,
    .where = where_stage,
    .latest = latest_stage,
    .reply = reply_stage,
    .begin = begin_stage,
    .take = take_word,
    .finish = finish_stage,
    .say = say_stage,
};

const question_row QUESTION_LOOK = {
    .phase = NODE_PHASE_LOOK,
    .answer = MESSAGE_MODEL,
    .at_once = true,
    .down = no_numbers,
    .up = up_models,
    .where = where_look,
    .latest = latest_look,
    .reply = reply_look,
    .begin = begin_look,
    .pass_on = begin_models,
    .take = take_models,
    .finish = gather_models,
    .say = say_look,
};

const question_row *question_of_phase(uint64_t phase)
{
    static const question_row *const rows[] = {
        [NODE_PHASE_TRAIN] = &QUESTION_FIGURES, [NODE_PHASE_FINAL] = &QUESTION_MODELS,
        [NODE_PHASE_ANEW] = &QUESTION_REPAIR,   [NODE_PHASE_STAGE] = &QUESTION_STAGE,
        [NODE_PHASE_LOOK] = &QUESTION_LOOK,
    };
    return phase < sizeof rows / sizeof *rows ? rows[phase] : NULL;
}

/* ---- the mechanism ---- */

bool question_holds(const node *n)
{
    return n->question.state != QUESTION_NONE && n->question.row->holds;
}

static void take_in_hand(node *n, const question_row *row, uint64_t number, uint64_t round)
{
    question *q = &n->question;
    channel_stop(&q->ask);
    q->row = row;
    q->number = number;
    q->round = round;
}

static void pass_on(node *n)
{
    question_move(&n->question, QUESTION_ASKED);
    if (n->question.row->pass_on)
        n->question.row->pass_on(n);
    for (size_t c = 0; c < n->s.n_children; c++) {
        n->inner.child[c].answered = false;
        n->inner.child[c].parts = 0;
    }
    node_send(n, &n->question.ask);
}

void question_ask(node *n, const question_row *row, uint64_t number, uint64_t round)
{
    take_in_hand(n, row, number, round);
    pass_on(n);
}

static bool hear_question(node *n, const question_row *row, const message *m, uint64_t number, node_refusal *why)
{
    static const node_refusal refusals[] = {[PLACE_AGAIN] = NODE_REFUSED_OLD,
                                            [PLACE_OLD] = NODE_REFUSED_OLD,
                                            [PLACE_EARLY] = NODE_REFUSED_FUTURE,
                                            [PLACE_WRONG] = NODE_REFUSED_VALUE};
    const question *q = &n->question;
    if (m->count != row->down(n))
        return node_refuse(n, why, NODE_REFUSED_SIZE);
    if (q->state != QUESTION_NONE && q->row == row && q->number == number) /* the answer follows */
        return node_refuse(n, why, NODE_REFUSED_OLD);
    const place where = row->where(n, m, number);
    if (where == PLACE_AGAIN)
        n->answer.say = row;
    if (where != PLACE_NEW)
        return node_refuse(n, why, refusals[where]);
    if (!(n->s.leaf ? row->reply : row->begin)(n, m, number))
        return node_refuse(n, why, NODE_REFUSED_OLD);
    if (n->s.leaf) {
        n->answer.say = row == &QUESTION_MODELS ? NULL : row; /* those are repeated */
        n->changed = n->changed || row->kept;
        return true;
    }
    n->answer.say = NULL;
    channel_stop(&n->answer.models);
    take_in_hand(n, row, number, m->round);
    if (row->at_once)
        pass_on(n);
    else
        question_move(&n->question, QUESTION_WAITS);
    inner_advance(n);
    return true;
}

static bool hear_answer(node *n, size_t c, const question_row *row, const message *m, uint64_t number,
                        node_refusal *why)
{
    const question *q = &n->question;
    if (m->count != row->up(n, c, row->answer == MESSAGE_MODEL ? m->k : 0))
        return node_refuse(n, why, NODE_REFUSED_SIZE);
    if (q->state != QUESTION_ASKED || q->row != row || q->number != number)
        return node_refuse(n, why, number > row->latest(n) ? NODE_REFUSED_FUTURE : NODE_REFUSED_OLD);
    if (n->inner.child[c].answered || !row->take(n, c, m))
        return node_refuse(n, why, NODE_REFUSED_OLD);
    inner_advance(n);
    return true;
}

bool question_handle(node *n, size_t from, const question_row *row, const message *m, uint64_t number,
                     node_refusal *why)
{
    if (from == NODE_PARENT)
        return hear_question(n, row, m, number, why);
    if (m->kind != row->answer)
        return node_refuse(n, why, NODE_REFUSED_KIND);
    return hear_answer(n, from, row, m, number, why);
}

static bool all_answered(const node *n)
{
    for (size_t c = 0; c < n->s.n_children; c++)
        if (!n->inner.child[c].answered)
            return false;
    return true;
}

static void finish(node *n)
{
    const question_row *row = n->question.row;
    question_move(&n->question, QUESTION_NONE);
    n->changed = n->changed || row->kept;
    channel_stop(&n->question.ask);
    const bool done = row->finish(n);
    n->answer.say = done && !is_root(n) && row != &QUESTION_MODELS ? row : NULL;
}

bool question_advance(node *n)
{
    const question *q = &n->question;
    if (q->state == QUESTION_ASKED && all_answered(n))
        finish(n);
    else if (q->state == QUESTION_WAITS && (n->s.async || (n->state != NODE_TRAINS && q->round == n->round)))
        pass_on(n);
    else
        return false;
    return true;
}

/* ---- letters ---- */

message question_letter(node *n)
{
    const question *q = &n->question;
    message m = node_letter_of(n, MESSAGE_ASK, q->row->phase, q->round);
    m.k = n->begun;
    m.count = q->row != &QUESTION_FIGURES ? q->row->down(n) : is_root(n) ? n->s.M : 2 * n->s.M;
    m.values = numbers_to_say(n->inner.partial, q->w, m.count);
    return m;
}

message question_answer_letter(node *n, const question_row *row)
{
    const message m = row->say(n);
    numbers_hide(m.values, m.count);
    return m;
}

message question_part_letter(node *n)
{
    const bool look = n->question.row == &QUESTION_LOOK;
    message m = node_letter_of(n, MESSAGE_ACK, look ? NODE_PHASE_LOOK : NODE_PHASE_FINAL, look ? n->answer.look : 0);
    m.k = 2;
    m.values = n->inner.slots;
    n->inner.slots[m.count++] = (double)n->begun;
    for (size_t c = 0; c < n->s.n_children; c++) {
        child_state *child = &n->inner.child[c];
        if (!child->ack_part)
            continue;
        child->ack_part = false;
        n->inner.slots[m.count++] = (double)c;
        n->inner.slots[m.count++] = (double)child->parts;
    }
    return m;
}
