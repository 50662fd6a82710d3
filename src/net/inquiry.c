#include "net/inquiry.h"

#include "base/alloc.h"
#include "base/error.h"
#include "net/catalogue.h"
#include "net/veil.h"
#include "plan/fixed_answer.h"
#include "plan/survey.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct inquiry {
    inquiry_setup s;
    uint64_t now;

    /* the question in hand */
    enum {
        IDLE,  /* none */
        ASKS,  /* the children's answers are waited for */
        KNOWS, /* its answer is there, for whenever it is asked again */
    } state;
    uint64_t round;  /* from 1 */
    uint64_t newest; /* of the polish's questions heard, 0: none */
    double *asked;   /* head and numbers, as it came and goes */
    size_t n_asked, asked_room;
    uint64_t members; /* k of the question: 0: not decided; otherwise 1 + the number of clients that are none */
    bool *heard;
    bool *without;     /* children that are not asked */
    bool *lives, *out; /* inquiry_note_child */
    unsigned *lies;    /* answers of each child that cannot be */
    double *parts;     /* n_children answers */
    size_t parts_room;
    double *totals;
    size_t totals_room;
    double *words; /* fixed point: the sum of the children's answers, and the answer as it goes up */
    size_t words_room;
    double lost; /* 1 + life of a child that has said in the open that it cannot answer this question; 0: none */
    bool too_large;

    channel ask;
    bool send_answer;

    unsigned ends; /* number of times that the root's last word was received in this connection */
    bool dismissed, all_dismissed;
    char why[INQUIRY_WHY_MOST + 1];

    const char *why_not; /* the last question was not answered; NULL: it was, or no reason is known */

    double *result; /* accepted, not only received */
    size_t n_result;
};

hfsad_status inquiry_create(inquiry **out, const inquiry_setup *setup, hfsad_error *err)
{
    inquiry *q = alloc_zero(1, sizeof *q);
    *out = NULL;
    if (q) {
        q->heard = alloc_zero(setup->n_children, sizeof *q->heard);
        q->without = alloc_zero(setup->n_children, sizeof *q->without);
        q->lives = alloc_zero(setup->n_children, sizeof *q->lives);
        q->out = alloc_zero(setup->n_children, sizeof *q->out);
        q->lies = alloc_zero(setup->n_children, sizeof *q->lies);
    }
    if (!q || !q->heard || !q->without || !q->lives || !q->out || !q->lies) {
        inquiry_free(q);
        return error_memory(err, sizeof *q, "the set-up of a node");
    }
    q->s = *setup;
    *out = q;
    return HFSAD_OK;
}

void inquiry_free(inquiry *q)
{
    if (!q)
        return;
    free(q->asked);
    free(q->heard);
    free(q->without);
    free(q->lives);
    free(q->out);
    free(q->lies);
    free(q->parts);
    free(q->totals);
    free(q->words);
    free(q->result);
    free(q);
}

static bool is_root(const inquiry *q)
{
    return q->s.root;
}

/* How a kind of question travels, ASK_...; of kinds that only the bytes of a message have, like a survey's. Everything
 * else is the same for all: questions go down to the clients as they came, and answers are combined on the way up, the
 * first numbers by their maximum, the others added, in slot order. */
static unsigned how_of(const inquiry_question *question)
{
    const catalogue_row *row = catalogue_find(question->kind);
    return row ? row->how : question->kind >= INQUIRY_POLISH ? ASK_IN_ORDER : 0;
}

/* How the answers to a question go up; false: as doubles. A lost client says so in the open: its answer under the same
 * masks as an earlier one would uncover that one. */
static bool layout_of(const inquiry *q, const inquiry_question *question, answer_layout *l)
{
    const catalogue_row *row = catalogue_find(question->kind);
    *l = (answer_layout){row ? row->mask : MASK_BUCKETS, question->most, question->sums};
    return q->s.fixed && !(how_of(question) & ASK_ANNOUNCED);
}

size_t inquiry_words_most(size_t most)
{
    enum { MAXIMA = 2 };
    return (1 + MAXIMA * FIXED_BUCKETS + most) * FIXED_WORDS;
}

/* Numbers of an answer in a frame. */
static size_t answer_count(const inquiry *q, const inquiry_question *question)
{
    answer_layout l;
    return layout_of(q, question, &l) ? fixed_answer_numbers(&l) * FIXED_WORDS : question->most + question->sums;
}

/* ---- a question as numbers ---- */

static bool read_count(double v, size_t most, size_t *count)
{
    if (!(v >= 0) || v > (double)most || v != floor(v))
        return false;
    *count = (size_t)v;
    return true;
}

/* members: k of the message. */
static bool read_question(const inquiry *q, const double *values, size_t count, uint64_t members,
                          inquiry_question *question)
{
    size_t kind, columns;
    *question = (inquiry_question){.decided = members > 0, .n_absent = members > 0 ? (size_t)members - 1 : 0};
    if (count < INQUIRY_HEAD || members > count - INQUIRY_HEAD + 1)
        return false;
    count -= question->n_absent;
    question->absent = values + count;
    if (count < INQUIRY_HEAD || !read_count(values[4], count - INQUIRY_HEAD, &columns) ||
        !read_count(values[0], INQUIRY_KINDS, &kind) || !read_count(values[1], q->s.most, &question->most) ||
        !read_count(values[2], q->s.most, &question->sums) || question->most + question->sums > q->s.most)
        return false;
    question->kind = (int)kind;
    question->constant = values[3];
    question->n_columns = columns;
    question->columns = values + INQUIRY_HEAD;
    question->values = values + INQUIRY_HEAD + columns;
    question->count = count - INQUIRY_HEAD - columns;
    return true;
}

/* Takes a question in hand; false: no memory. */
static bool take_question(inquiry *q, uint64_t round, const inquiry_question *from)
{
    const size_t size = from->most + from->sums, own = INQUIRY_HEAD + from->n_columns + from->count,
                 count = own + from->n_absent, words = answer_count(q, from);
    if (!alloc_grow((void **)&q->asked, &q->asked_room, count, sizeof *q->asked) ||
        !alloc_grow((void **)&q->parts, &q->parts_room, words * q->s.n_children + 1, sizeof *q->parts) ||
        !alloc_grow((void **)&q->words, &q->words_room, words + 1, sizeof *q->words) ||
        !alloc_grow((void **)&q->totals, &q->totals_room, size + 1, sizeof *q->totals))
        return false;
    q->lost = 0;
    const double head[] = {from->kind, (double)from->most, (double)from->sums, from->constant, (double)from->n_columns};
    memcpy(q->asked, head, sizeof head);
    if (from->n_columns)
        memcpy(q->asked + INQUIRY_HEAD, from->columns, from->n_columns * sizeof *q->asked);
    if (from->count)
        memcpy(q->asked + INQUIRY_HEAD + from->n_columns, from->values, from->count * sizeof *q->asked);
    if (from->n_absent)
        memcpy(q->asked + own, from->absent, from->n_absent * sizeof *q->asked);
    q->n_asked = count;
    q->members = from->decided ? 1 + from->n_absent : 0;
    q->state = ASKS;
    q->send_answer = false; /* what waits to be sent is about the question before */
    channel_stop(&q->ask);
    q->round = round;
    memset(q->heard, 0, q->s.n_children * sizeof *q->heard);
    memset(q->without, 0, q->s.n_children * sizeof *q->without);
    for (size_t i = 0; i < from->n_absent; i++) {
        const double slot = from->absent[i] - (double)q->s.first_leaf + (double)q->s.n_inner;
        if (slot >= (double)q->s.n_inner && slot < (double)(q->s.n_children - q->s.n_later))
            q->heard[(size_t)slot] = q->without[(size_t)slot] = true;
    }
    for (size_t c = q->s.n_children - q->s.n_later; c < q->s.n_children; c++)
        q->heard[c] = q->without[c] = true;
    for (size_t c = 0; how_of(from) & ASK_IN_ORDER && c < q->s.n_children; c++)
        q->heard[c] = q->without[c] = q->out[c];
    return true;
}

static void start_asking(inquiry *q)
{
    channel_start(&q->ask, q->now, &q->s.patience);
}

/* Frames hold finite numbers only; no sum of the clients' is larger than this. */
static void make_finite(double *v, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!isfinite(v[i]))
            v[i] = v[i] < 0 ? -DBL_MAX : DBL_MAX;
}

/* ---- the root ---- */

hfsad_status inquiry_ask(inquiry *q, uint64_t round, const inquiry_question *question, const inquiry_turns *turns,
                         double *totals, hfsad_error *err)
{
    const size_t size = question->most + question->sums;
    hfsad_status status = HFSAD_OK;
    assert(is_root(q));
    if (INQUIRY_HEAD + question->n_columns + question->count > q->s.most || size > q->s.most ||
        !take_question(q, round, question))
        return error_memory(err, question->count * sizeof *totals, "a question");
    start_asking(q);
    while (q->state == ASKS && !status)
        status = turns->turn(turns->context, err);
    q->state = IDLE;
    channel_stop(&q->ask);
    for (size_t i = 0; i < size && !status; i++) {
        const double v = q->totals[i];
        totals[i] = v >= DBL_MAX ? INFINITY : v <= -DBL_MAX ? -INFINITY : v;
    }
    return status;
}

hfsad_status inquiry_dismiss(inquiry *q, const char *why, hfsad_error *err)
{
    double values[INQUIRY_WHY_MOST];
    inquiry_question last = {.kind = INQUIRY_END, .sums = 1, .values = values};
    for (; why[last.count] && last.count < INQUIRY_WHY_MOST; last.count++)
        values[last.count] = (unsigned char)why[last.count];
    if (!take_question(q, UINT32_MAX, &last))
        return error_memory(err, sizeof values, "the last word");
    start_asking(q);
    return HFSAD_OK;
}

/* ---- answers ---- */

static hfsad_status take_result(inquiry *q, const double *values, size_t count, hfsad_error *err)
{
    if (q->result && (count != q->n_result || memcmp(q->result, values, count * sizeof *values) != 0))
        return error_set(err, HFSAD_ERROR_INPUT,
                         "the cloud's set-up differs from the one stored here: data or a file of the spec have "
                         "changed; restart all nodes with new state folders");
    if (q->result)
        return HFSAD_OK;
    q->result = alloc_zero(count, sizeof *q->result);
    if (!q->result)
        return error_memory(err, count * sizeof *values, "the result of the set-up");
    memcpy(q->result, values, count * sizeof *values);
    q->n_result = count;
    return HFSAD_OK;
}

hfsad_status inquiry_remember(inquiry *q, const double *result, size_t count, hfsad_error *err)
{
    return take_result(q, result, count, err);
}

/* All children have answered. */
static void conclude(inquiry *q)
{
    inquiry_question question;
    (void)read_question(q, q->asked, q->n_asked, q->members, &question);
    const size_t size = question.most + question.sums;
    const survey_question as = {.most = question.most, .sums = question.sums};
    answer_layout l;
    memset(q->totals, 0, size * sizeof *q->totals);
    if (q->lost > 0) {
        q->totals[0] = q->lost;
    } else if (layout_of(q, &question, &l)) {
        const size_t numbers = fixed_answer_numbers(&l), words = numbers * FIXED_WORDS;
        memset(q->words, 0, words * sizeof *q->words);
        for (size_t c = 0; c < q->s.n_children; c++)
            fixed_add((uint64_t *)(void *)q->words, (const uint64_t *)(const void *)(q->parts + c * words), numbers);
        fixed_answer_get(&l, (const uint64_t *)(const void *)q->words, q->totals);
    } else {
        for (size_t c = 0; c < q->s.n_children; c++)
            if (!q->without[c])
                survey_combine(&as, q->totals, q->parts + c * size);
    }
    if (how_of(&question) & ASK_ANNOUNCED)
        q->totals[0] += 1;
    make_finite(q->totals, size);
    q->state = KNOWS;
    channel_stop(&q->ask);
    q->send_answer = !is_root(q);
    q->all_dismissed = how_of(&question) & ASK_LAST_WORD;
}

static bool all_heard(const inquiry *q)
{
    for (size_t c = 0; c < q->s.n_children; c++)
        if (!q->heard[c])
            return false;
    return true;
}

/* ---- input ---- */

static bool refuse_question(node_refusal *to, node_refusal why)
{
    if (to)
        *to = why;
    return false;
}

/* Whether the root's last word is to be believed. */
static bool hear_end(inquiry *q, const inquiry_question *question)
{
    if (question->most != 0 || question->sums != 1 || question->count > INQUIRY_WHY_MOST || ++q->ends < 2)
        return false;
    for (size_t i = 0; i < question->count; i++) { /* it goes to a terminal */
        const double c = question->values[i];
        q->why[i] = c >= ' ' && c <= '~' ? (char)c : '?';
    }
    q->why[question->count] = 0;
    return q->dismissed = true;
}

static bool handle_ask(inquiry *q, const message *m, node_refusal *why, hfsad_status *failed, hfsad_error *err)
{
    inquiry_question question;
    if (m->count < INQUIRY_HEAD || m->count > q->s.most || !read_question(q, m->values, m->count, m->k, &question))
        return refuse_question(why, NODE_REFUSED_SIZE);
    const unsigned how = how_of(&question);
    question.round = m->round;
    q->why_not = NULL;
    if (!(how & ASK_LAST_WORD))
        q->ends = 0;
    else if (!hear_end(q, &question))
        return refuse_question(why, NODE_REFUSED_OLD);
    const bool same = q->state != IDLE && q->round == m->round && q->n_asked == m->count && q->members == m->k &&
                      memcmp(q->asked, m->values, m->count * sizeof *q->asked) == 0;
    if (same) {
        q->send_answer = q->send_answer || q->state == KNOWS;
        return refuse_question(why, NODE_REFUSED_OLD);
    }
    if (!(how & ASK_LAST_WORD) && m->round < q->newest)
        return refuse_question(why, NODE_REFUSED_OLD);
    if (q->s.secure && q->state != IDLE && q->round == m->round) /* another question under the same number */
        return refuse_question(why, NODE_REFUSED_VALUE);
    const uint64_t newest = q->newest;
    if (how & ASK_IN_ORDER)
        q->newest = m->round;
    if (!take_question(q, m->round, &question)) {
        *failed = error_memory(err, m->count * sizeof(double), "a question");
        return false;
    }
    if (how & ASK_RESULT && (*failed = take_result(q, question.values, question.count, err)))
        return false;
    if (q->s.n_children) {
        start_asking(q);
        if (all_heard(q)) /* none of its clients is a member */
            conclude(q);
        return true;
    }
    q->all_dismissed = how & ASK_LAST_WORD;
    if (how & ASK_ANNOUNCED) {
        q->totals[0] = 1;
    } else if (!q->s.answer(q->s.context, &question, q->totals)) {
        q->state = IDLE;
        q->newest = newest; /* a question that is refused must not make the next ones old */
        q->why_not = q->s.why ? q->s.why(q->s.context) : NULL;
        return refuse_question(why, NODE_REFUSED_VALUE);
    }
    make_finite(q->totals, question.most + question.sums);
    q->state = KNOWS;
    return q->send_answer = true;
}

/* Whether sums over rows can have this value: counts, weights, squares and lengths are not negative. */
static bool is_possible(const inquiry_question *question, const double *v)
{
    const unsigned how = how_of(question);
    const size_t size = question->most + question->sums, last = size > 2 ? size - 2 : 0,
                 positive = how & ASK_POSITIVE           ? size
                            : how & ASK_POSITIVE_FIRST   ? 1
                            : how & ASK_POSITIVE_COLUMNS ? last
                                                         : 0;
    for (size_t i = 0; i < positive; i++)
        if (!(v[i] >= 0))
            return false;
    if (!(how & ASK_FLAGS_AND_ROWS))
        return true;
    enum { ROWS = 2 };
    for (size_t i = 0; i < size; i++)
        if (i != ROWS && v[i] != 0 && v[i] != 1)
            return false;
    return v[ROWS] >= 1 && v[ROWS] <= 0x1p53 && v[ROWS] == floor(v[ROWS]);
}

static bool handle_answer(inquiry *q, size_t c, const message *m, node_refusal *why)
{
    inquiry_question question;
    if (q->state != ASKS || m->round != q->round || q->heard[c])
        return refuse_question(why, NODE_REFUSED_OLD);
    (void)read_question(q, q->asked, q->n_asked, q->members, &question);
    const size_t size = question.most + question.sums, count = answer_count(q, &question);
    answer_layout l;
    const bool fixed = layout_of(q, &question, &l),
               lost = fixed && l.maxima == MASK_APART && !m->fixed && m->count == size && m->values[0] > 0;
    if (m->fixed != (fixed && !lost))
        return refuse_question(why, NODE_REFUSED_KIND);
    if (!lost && m->count != count)
        return refuse_question(why, NODE_REFUSED_SIZE);
    if (fixed && !lost && !q->s.secure) /* totals are made when all answers are there */
        fixed_answer_get(&l, (const uint64_t *)(const void *)m->values, q->totals);
    if (!lost && !(fixed && q->s.secure) && !is_possible(&question, fixed ? q->totals : m->values)) {
        q->lies[c]++;
        return refuse_question(why, NODE_REFUSED_BOUND);
    }
    if (lost && m->values[0] > q->lost)
        q->lost = m->values[0];
    if (count && !lost)
        memcpy(q->parts + c * count, m->values, count * sizeof *q->parts);
    q->heard[c] = true;
    if (all_heard(q))
        conclude(q);
    return true;
}

bool inquiry_handle(inquiry *q, size_t from, const message *m, node_refusal *why, hfsad_status *failed,
                    hfsad_error *err)
{
    *failed = HFSAD_OK;
    if (m->run != q->s.run)
        return refuse_question(why, NODE_REFUSED_RUN);
    if (from == NODE_PARENT && m->kind == MESSAGE_ASK && !is_root(q))
        return handle_ask(q, m, why, failed, err);
    if (from < q->s.n_children && m->kind == MESSAGE_ANSWER)
        return handle_answer(q, from, m, why);
    return refuse_question(why, NODE_REFUSED_KIND);
}

/* ---- time, and what goes out ---- */

/* Whether clients that do not answer are left out: not decided yet, and there is time only for the others. */
static bool may_leave_out(const inquiry *q)
{
    if (q->state != ASKS || !q->s.join_ms || q->members)
        return false;
    inquiry_question question;
    return read_question(q, q->asked, q->n_asked, q->members, &question) && question.kind == INQUIRY_SHAPE &&
           question.sums > 1;
}

/* Not without all: a node needs a client, and inner nodes are always waited for. */
static void leave_out(inquiry *q)
{
    bool any = false;
    for (size_t c = 0; c < q->s.n_children; c++)
        any = any || q->heard[c];
    for (size_t c = q->s.n_inner; c < q->s.n_children && any; c++) {
        q->without[c] = q->without[c] || !q->heard[c];
        q->heard[c] = true;
    }
    if (any && all_heard(q))
        conclude(q);
}

/* When a question of the polish goes without its answer: it is given up if one is missing. */
static uint64_t gives_up(const inquiry *q)
{
    enum { LIVE_ANSWER_MS = 60000 };
    const uint64_t least = q->s.answer_ms, most = least > LIVE_ANSWER_MS ? least : LIVE_ANSWER_MS;
    if (q->state != ASKS || !least || q->asked[0] < INQUIRY_POLISH || q->asked[0] >= INQUIRY_GROUPS)
        return UINT64_MAX;
    bool lives = true;
    for (size_t c = 0; c < q->s.n_children; c++)
        lives = lives && (q->heard[c] || q->lives[c]);
    return q->ask.since + (lives ? most : least);
}

void inquiry_note_child(inquiry *q, size_t c, bool lives, bool out)
{
    q->lives[c] = lives;
    q->out[c] = out;
}

void inquiry_tick(inquiry *q, uint64_t now_ms)
{
    q->now = now_ms;
    if (q->ask.send && !q->ask.again) /* the clock was old when it was asked, or 0 */
        q->ask.since = now_ms;
    if (may_leave_out(q) && now_ms - q->ask.since >= q->s.join_ms)
        leave_out(q);
    if (gives_up(q) <= now_ms) {
        q->lost = INQUIRY_ABSENT;
        conclude(q);
    }
    channel_tick(&q->ask, now_ms, &q->s.patience);
}

uint64_t inquiry_due(const inquiry *q)
{
    const uint64_t due = channel_due(&q->ask), leaves = q->ask.since + q->s.join_ms;
    const uint64_t ends = gives_up(q), first = ends < due ? ends : due;
    return may_leave_out(q) && leaves > q->now && leaves < first ? leaves : first;
}

void inquiry_repeat(inquiry *q)
{
    channel_repeat(&q->ask);
    q->ends = 0;
}

bool inquiry_speaks(const inquiry *q)
{
    return q->send_answer || q->ask.send;
}

bool inquiry_is_too_large(const inquiry *q)
{
    return q->too_large;
}

/* false: it cannot be sent. */
static bool say_in_fixed_point(inquiry *q, const inquiry_question *question, message *m)
{
    answer_layout l;
    if (!layout_of(q, question, &l) || (l.maxima == MASK_APART && q->totals[0] > 0))
        return true;
    m->fixed = true;
    m->values = q->words;
    m->count = answer_count(q, question);
    q->too_large = !fixed_answer_put(&l, q->totals, (uint64_t *)(void *)q->words);
    if (q->s.secure)
        veil_digest(q->asked, q->n_asked, m->digest);
    return !q->too_large;
}

bool inquiry_next_letter(inquiry *q, node_letter *letter)
{
    if (!inquiry_speaks(q))
        return false;
    const message m = {.run = q->s.run, .phase = NODE_PHASE_SETUP, .round = q->round};
    letter->m = m;
    if (q->send_answer) {
        inquiry_question question;
        (void)read_question(q, q->asked, q->n_asked, q->members, &question);
        q->send_answer = false;
        letter->to_parent = true;
        letter->m.kind = MESSAGE_ANSWER;
        letter->m.values = q->totals;
        letter->m.count = question.most + question.sums;
        return say_in_fixed_point(q, &question, &letter->m);
    }
    uint64_t repeated = 0; /* not counted */
    if (!channel_take(&q->ask, &repeated))
        return false;
    letter->to_parent = false;
    letter->m.kind = MESSAGE_ASK;
    letter->m.values = q->asked;
    letter->m.count = q->n_asked;
    letter->m.k = q->members;
    return true;
}

const char *inquiry_why(const inquiry *q)
{
    return q->why_not;
}

bool inquiry_child_lies(const inquiry *q, size_t c)
{
    return q->lies[c] > 0;
}

bool inquiry_waits_for(const inquiry *q, size_t c)
{
    return q->state == ASKS && !q->heard[c];
}

uint64_t inquiry_waits_since(const inquiry *q)
{
    return q->ask.since;
}

const char *inquiry_dismissal(const inquiry *q)
{
    return q->dismissed ? q->why : NULL;
}

bool inquiry_all_dismissed(const inquiry *q)
{
    return q->all_dismissed;
}

const double *inquiry_result(const inquiry *q, size_t *count)
{
    *count = q->n_result;
    return q->result;
}
