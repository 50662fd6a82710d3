/*
 * Questions that go down the tree, and answers that come up, while nodes train: the rows of TRAINING_QUESTIONS
 * (plan/questions.h).
 *
 * The mechanism is the same for all. A parent retransmits its question until all children have answered. A node answers
 * whenever it is asked: a client at once, an inner node when its children have. After a crash a node knows nothing of
 * an open question; the parent asks again. (Asynchronous figures are different: node_state.c.) Only the models at the
 * end are also retransmitted by their node, because it needs the acknowledgement before it may end.
 */
#include "net/node_parts.h"

#include "base/alloc.h"
#include "plan/questions.h"

#include <string.h>

/* Relation of a question to the node that receives it. */
typedef enum { PLACE_NEW, PLACE_AGAIN, PLACE_OLD, PLACE_EARLY } place;

struct question_row {
    uint64_t phase;
    question_shape down;
    enum { UP_WORD, UP_TALLY, UP_MODELS } up;
    unsigned how; /* ASK_... */
    place (*where)(const node *n, uint64_t number);
    /* A client answers; an inner node takes up what comes with the question. false: not now, it will be asked again. */
    bool (*begin)(node *n, const message *m, uint64_t number);
    void (*pass_on)(node *n); /* an inner node passes it on; may be NULL */
    bool (*finish)(node *n);  /* all children have answered; false: no memory, it has to be asked again */
};

static uint64_t last_answer(const node *n)
{
    return n->answer.round < 0 ? 0 : (uint64_t)n->answer.round;
}

/* ---- figures ---- */

static place where_figures(const node *n, uint64_t number)
{
    uint32_t last;
    if ((int64_t)number <= n->answer.round)
        return (int64_t)number == n->answer.round && !n->answer.final ? PLACE_AGAIN : PLACE_OLD;
    if (n->answer.final)
        return PLACE_OLD;
    if (n->s.async)
        return !async_may_ask(n, number) ? PLACE_EARLY : async_can_answer(n, number) ? PLACE_NEW : PLACE_OLD;
    if (number != node_next_measure(n) || number < n->round)
        return PLACE_EARLY;
    return n->s.inner || node_sits_out_until(n, number, &last) ? PLACE_NEW : PLACE_EARLY;
}

static bool answer_figures(node *n, const message *m, uint64_t number)
{
    const size_t M = n->s.M;
    uint32_t last;
    tally t;
    if (!n->s.async) {
        channel_stop(&n->up);
        (void)node_sits_out_until(n, number, &last);
        leaf_skip_to(n, number, last);
    }
    n->a->measure_leaf(n, m->values, n->s.depth == 1 ? m->values : m->values + M, &t);
    node_answer(n, &t, number);
    memcpy(n->answer.digest, m->digest, sizeof m->digest);
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
    channel_stop(&n->async.calls);
    if (n->state != NODE_HALTED)
        node_move(n, NODE_HALTED);
}

static bool begin_figures(node *n, const message *m, uint64_t number)
{
    const size_t M = n->s.M;
    if (n->s.leaf)
        return answer_figures(n, m, number);
    if (n->s.async)
        n->changed = true;
    else if (number >= n->up_round && !n->took_part)
        channel_stop(&n->up);
    if (n->s.async && number == n->end_round)
        halt(n);
    memcpy(n->question.digest, m->digest, sizeof m->digest);
    memcpy(n->question.w, m->values, M * sizeof *m->values);
    memcpy(n->question.parent, m->values + (n->s.depth > 1 ? M : 0), M * sizeof *m->values);
    return true;
}

/* This node's part of the figures. Asynchronous training continues while the answers arrive. */
static void pass_figures_on(node *n)
{
    question *q = &n->question;
    if (n->a->take_down && !is_root(n) && q->round > 0) /* the end of an iteration */
        n->a->take_down(n, q->parent, (double)q->round);
    memcpy(q->w + (is_root(n) ? 0 : n->s.M), n->w, n->s.M * sizeof *n->w);
    n->a->measure_inner(n, q->w, q->parent, &q->own);
    q->asked_version = n->async.version;
    n->changed = n->changed || n->s.async;
}

static bool finish_figures(node *n)
{
    tally t = n->question.own;
    if (n->s.async && n->question.round == n->end_round)
        async_end(n);
    else if (n->s.async && (n->question.round > 0 || !async_all_are_first(n)))
        async_row(n);
    const cell c = node_cell(n);
    cell_add_tallies(&c, n->s.tiers, &t);
    n->a->take_tally(n, &t);
    if (is_root(n))
        root_conclude(n, &t);
    else
        node_answer(n, &t, n->question.round);
    memcpy(n->answer.digest, n->question.digest, sizeof n->answer.digest);
    return true;
}

/* ---- models, at the end and at a look ---- */

/* On lack of memory the answers are dropped; they come again, and so does this. */
static bool has_room_for_models(node *n)
{
    if (!n->inner.models)
        n->inner.models = alloc_zero(n->nodes * n->s.M, sizeof(double));
    return n->inner.models != NULL;
}

static size_t models_before(const node *n, size_t c)
{
    size_t nodes = 1;
    for (size_t i = 0; i < c; i++)
        nodes += n->s.children[i].nodes;
    return nodes * n->s.M;
}

static void begin_models(node *n)
{
    n->inner.has_models = false;
    (void)has_room_for_models(n);
}

static bool gather_models(node *n)
{
    node_model(n, n->inner.models);
    for (size_t c = 0; c < n->s.n_children; c++)
        for (size_t i = 0; !n->inner.child[c].answered && i < n->s.children[c].nodes; i++)
            model_mark_absent(n->inner.models + models_before(n, c) + i * n->s.M, n->inner.child[c].aside);
    n->inner.has_models = true;
    n->answer.part = 0;
    return true;
}

static place where_models(const node *n, uint64_t number)
{
    const bool passed_over = n->s.async && (int64_t)number > n->answer.round; /* the last figures went without it */
    if ((int64_t)number != n->answer.round && !passed_over)
        return PLACE_EARLY;
    return n->answer.final ? PLACE_AGAIN : PLACE_NEW;
}

static bool begin_final(node *n, const message *m, uint64_t number)
{
    (void)m;
    if (n->s.async)
        n->answer.round = (int64_t)number;
    if (n->s.leaf ? !n->s.async : number >= n->up_round && !n->took_part)
        channel_stop(&n->up);
    if (n->s.inner && n->s.async)
        halt(n);
    if (n->s.inner)
        return true;
    n->answer.part = 0;
    n->answer.final = true;
    node_send(n, &n->answer.models);
    return true;
}

static bool finish_models(node *n)
{
    if (n->s.async)
        async_models(n);
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

/* A look that is given up leaves no state: any other question overtakes it. */
static place where_look(const node *n, uint64_t number)
{
    if (n->answer.final || number < n->answer.look)
        return PLACE_OLD;
    if (number == n->answer.look && (n->s.leaf || n->inner.has_models))
        return PLACE_AGAIN;
    return question_holds(n) ? PLACE_OLD : PLACE_NEW;
}

static bool begin_look(node *n, const message *m, uint64_t number)
{
    (void)m;
    n->answer.look = number;
    n->answer.part = 0;
    return n->s.leaf || has_room_for_models(n);
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

static place where_repair(const node *n, uint64_t number)
{
    if (number > n->repairs + 1 || number > guard_repairs_most(n->s.p) || !n->s.guarded)
        return PLACE_EARLY;
    if (number <= n->repairs)
        return number == n->repairs ? PLACE_AGAIN : PLACE_OLD;
    return question_holds(n) ? PLACE_OLD : PLACE_NEW;
}

static bool begin_repair(node *n, const message *m, uint64_t number)
{
    (void)number;
    if (n->s.inner) {
        memcpy(n->question.w, m->values, n->s.M * sizeof *m->values);
        return true;
    }
    node_begin_anew(n, m->values, true);
    return true;
}

static bool finish_repair(node *n)
{
    inner_begin_anew(n);
    return true;
}

static place where_stage(const node *n, uint64_t number)
{
    if (number > n->s.stage + 1 || number >= n->s.stages)
        return PLACE_EARLY;
    return number > n->s.stage ? PLACE_NEW : number == n->s.stage ? PLACE_AGAIN : PLACE_OLD;
}

static bool begin_stage(node *n, const message *m, uint64_t number)
{
    if (!all_finite(m->values, m->count))
        return false;
    if (n->s.leaf)
        return stage_begin(n, number, m->values);
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

/* ---- the table ---- */

enum {
    PHASE_BEFORE = NODE_PHASE_TRAIN - 1,
#define PHASE(name, ...) PHASE_##name,
    TRAINING_QUESTIONS(PHASE)
};
_Static_assert(PHASE_MODELS == (int)NODE_PHASE_FINAL && PHASE_REPAIR == (int)NODE_PHASE_ANEW &&
                   PHASE_STAGE == (int)NODE_PHASE_STAGE && PHASE_LOOK == (int)NODE_PHASE_LOOK,
               "the order of the rows is that of the phases");

#define FUNCTIONS(where, begin, pass_on, finish) where, begin, pass_on, finish
#define QUESTION(name, down, most, up, functions, how, ...)                                                            \
    const question_row QUESTION_##name = {PHASE_##name, down, up, how, functions};
TRAINING_QUESTIONS(QUESTION)

const question_row *question_of_phase(uint64_t phase)
{
    static const question_row *const rows[] = {
#define OF_PHASE(name, ...) [PHASE_##name] = &QUESTION_##name,
        TRAINING_QUESTIONS(OF_PHASE)};
    return phase < sizeof rows / sizeof *rows ? rows[phase] : NULL;
}

/* ---- what comes up ---- */

/* Numbers of child c's answer, or of a part of it; SIZE_MAX: there is no such part. */
static size_t numbers_up(const node *n, const question_row *row, size_t c, uint64_t part)
{
    if (row->up != UP_MODELS)
        return row->up == UP_TALLY ? node_answer_count(n) : 0;
    const size_t size = node_part_size(n, n->s.children[c].nodes, part);
    return size ? size : SIZE_MAX;
}

static bool take_part(node *n, size_t c, const message *m)
{
    child_state *child = &n->inner.child[c];
    if (!has_room_for_models(n))
        return false;
    const bool wanted = m->k == child->parts;
    if (wanted) {
        memcpy(n->inner.models + models_before(n, c) + m->k * n->s.part, m->values, m->count * sizeof *m->values);
        child->answered = ++child->parts == node_parts_of(n, n->s.children[c].nodes);
    }
    child->ack_part = !child->answered;
    n->ack_part = n->ack_part || child->ack_part;
    return wanted;
}

/* false: it is not the part that is wanted. */
static bool take_answer(node *n, const question_row *row, size_t c, const message *m)
{
    child_state *child = &n->inner.child[c];
    if (row->up == UP_MODELS)
        return take_part(n, c, m);
    if (row->up == UP_TALLY)
        memcpy(n->inner.child_figures + c * m->count, m->values, m->count * sizeof *m->values);
    child->answer_k = (child->life << 32) + m->k; /* as the record counts */
    child->answer_version = m->sigma >= 0 && m->sigma <= 0x1p53 ? (uint64_t)m->sigma : 0;
    record_pay(n, c);
    return child->answered = true;
}

message question_answer_letter(node *n, const question_row *row)
{
    const uint64_t round = row == &QUESTION_LOOK ? n->answer.look : row->up == UP_WORD ? 0 : last_answer(n);
    message m = node_letter_of(n, row->up == UP_MODELS ? MESSAGE_MODEL : MESSAGE_ANSWER, row->phase, round);
    if (row->up == UP_TALLY) {
        m.fixed = n->s.p->fixed;
        if (m.fixed)
            fixed_say_tally(n);
        memcpy(m.digest, n->answer.digest, sizeof m.digest);
        m.values = m.fixed ? n->answer.words : n->answer.figures;
        m.count = node_answer_count(n);
        m.k = n->s.async ? n->answer.k : 0;
    } else if (row->up == UP_MODELS) {
        if (n->s.leaf)
            node_model(n, n->u);
        if (n->s.leaf && n->s.p->secure) /* its model stays with it */
            memset(n->u, 0, n->s.M * sizeof *n->u);
        m.values = (n->s.leaf ? n->u : n->inner.models) + n->answer.part * n->s.part;
        m.count = node_part_size(n, n->nodes, n->answer.part);
        m.k = n->answer.part;
    }
    if (record_is_copied(n) &&
        row->how & ASK_KEPT) /* the version of a client's last step; the lines of an inner node that led here */
        m.sigma = n->s.leaf ? (double)n->up_round : (double)record_size(n);
    if (!m.fixed)
        m.plain = numbers_hide(m.values, m.count);
    return m;
}

/* ---- the mechanism ---- */

bool question_holds(const node *n)
{
    return n->question.state != QUESTION_NONE && n->question.row->how & ASK_HOLDS;
}

static void take_in_hand(node *n, const question_row *row, uint64_t number, uint64_t round)
{
    question *q = &n->question;
    channel_stop(&q->ask);
    channel_stop(&n->answer.models); /* of an earlier life of the parent */
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

/* Numbers of a question as it comes to this node, and as it goes to the children. */
static size_t numbers_down(const node *n, const question_row *row, bool to_children)
{
    const bool one = to_children ? is_root(n) : n->s.depth == 1; /* the cloud's w is also the parent's */
    return (one && row->down.vectors > 1 ? 1 : row->down.vectors) * n->s.M;
}

static bool hear_question(node *n, const question_row *row, const message *m, uint64_t number, node_refusal *why)
{
    const question *q = &n->question;
    if (m->count != numbers_down(n, row, false))
        return node_refuse(n, why, NODE_REFUSED_SIZE);
    /* The answer to the current question follows. An older question, whose parent has continued without this node, must
     * not replace it: children that have answered the newer question would repeat answers that were made with an
     * earlier model of this node. */
    if (q->state != QUESTION_NONE && q->row == row && number <= q->number)
        return node_refuse(n, why, NODE_REFUSED_OLD);
    const place where = row->where(n, number);
    if (where == PLACE_AGAIN)
        n->answer.say = row;
    if (where != PLACE_NEW || !row->begin(n, m, number))
        return node_refuse(n, why, where == PLACE_EARLY ? NODE_REFUSED_FUTURE : NODE_REFUSED_OLD);
    n->answer.say = n->s.leaf && row != &QUESTION_MODELS ? row : NULL; /* models at the end have a channel */
    n->changed = n->changed || (n->s.leaf && row->how & ASK_KEPT);
    if (n->s.leaf)
        return true;
    take_in_hand(n, row, number, m->round);
    if (row->how & ASK_AT_ONCE)
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
    if ((m->kind == MESSAGE_MODEL) != (row->up == UP_MODELS))
        return node_refuse(n, why, NODE_REFUSED_KIND);
    if (m->count != numbers_up(n, row, c, m->k))
        return node_refuse(n, why, NODE_REFUSED_SIZE);
    if (n->inner.child[c].aside || n->inner.child[c].out || (row == &QUESTION_MODELS && n->inner.child[c].missed) ||
        (row == &QUESTION_FIGURES && n->inner.child[c].closing))
        return node_refuse(n, why, NODE_REFUSED_OLD);
    if (q->state != QUESTION_ASKED || q->row != row || q->number != number)
        return node_refuse(n, why, row->where(n, number) == PLACE_EARLY ? NODE_REFUSED_FUTURE : NODE_REFUSED_OLD);
    if (!record_has_bytes(n, c, m->sigma))
        return node_refuse(n, why, NODE_REFUSED_OLD); /* it is asked again, and sends its lines first */
    if (!n->inner.child[c].answered && row->up == UP_TALLY && !n->s.p->secure && !bounds_of_tally(n, c, m->values))
        return node_refuse_lie(n, c, why);
    if (n->inner.child[c].answered || !take_answer(n, row, c, m))
        return node_refuse(n, why, NODE_REFUSED_OLD);
    inner_advance(n);
    return true;
}

bool question_handle(node *n, size_t from, const question_row *row, const message *m, uint64_t number,
                     node_refusal *why)
{
    return from == NODE_PARENT ? hear_question(n, row, m, number, why) : hear_answer(n, from, row, m, number, why);
}

/* Or all that are waited for, and one at least: figures of no client are none. */
static bool all_answered(const node *n)
{
    const bool models = n->question.row->up == UP_MODELS;
    bool any = n->s.n_children == 0 || models;
    for (size_t c = 0; c < n->s.n_children; c++) {
        const child_state *child = &n->inner.child[c];
        if (!child->answered && !child->aside && !child->out && !(models && child->missed) &&
            !(!models && unit_is_renewed(n, unit_first(n, c))) && !async_answers_without(n, c))
            return false;
        any = any || (child->answered && unit_has_answered(n, unit_first(n, c)));
    }
    return any;
}

static void finish(node *n)
{
    const question_row *row = n->question.row;
    if (row->up == UP_TALLY)
        unit_drop_partial(n);
    for (size_t c = 0; c < n->s.n_children; c++) /* a new cohort answers no question, and trains */
        n->inner.child[c].absent =
            n->inner.child[c].absent || (!n->inner.child[c].answered && !unit_is_renewed(n, unit_first(n, c)));
    question_move(&n->question, QUESTION_NONE);
    n->changed = n->changed || row->how & ASK_KEPT;
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
    m.count = numbers_down(n, q->row, true);
    m.values = numbers_to_say(n->inner.partial, q->w, m.count, &m.plain);
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
