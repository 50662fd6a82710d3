#include "net/inquiry.h"

#include "base/alloc.h"
#include "base/error.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What the root keeps of a question that has been answered. */
typedef struct {
    int kind;
    size_t count, most, sums;
    double *totals;
} answered;

struct inquiry {
    inquiry_setup s;
    uint64_t now;

    /* the question in hand */
    bool has_question, complete;
    uint64_t round;  /* from 1 */
    uint64_t newest; /* of the polish's questions heard, 0: none */
    double *asked;   /* head and numbers, as it came and goes */
    size_t n_asked, asked_room;
    bool *heard;
    double *parts; /* n_children answers */
    size_t parts_room;
    double *totals;
    size_t totals_room;

    bool send_ask, send_answer;
    uint64_t due;
    uint32_t wait;

    unsigned ends; /* how often the root's last word was heard in this connection */
    bool dismissed, all_dismissed;
    char why[INQUIRY_WHY_MOST + 1];

    double *result; /* taken, not only heard of */
    size_t n_result;
    bool rests;

    /* the root */
    answered *known;
    size_t n_known, known_room;
    double *found; /* the result, on its way; of the polish, once it is there */
    size_t n_found;
    const double *from; /* of the polish; NULL: it is the set-up */
    uint64_t attempt;
    unsigned fruitless; /* attempts in a row that were lost at their first question */
    double failure;     /* of the polish; POLISH_UNFINISHED: none */
};

hfsad_status inquiry_create(inquiry **out, const inquiry_setup *setup, hfsad_error *err)
{
    inquiry *q = alloc_zero(1, sizeof *q);
    *out = NULL;
    if (q)
        q->heard = alloc_zero(setup->n_children, sizeof *q->heard);
    if (!q || !q->heard) {
        free(q);
        return error_memory(err, sizeof *q, "the set-up of a node");
    }
    q->s = *setup;
    *out = q;
    return HFSAD_OK;
}

static void forget(inquiry *q)
{
    for (size_t i = 0; i < q->n_known; i++)
        free(q->known[i].totals);
    q->n_known = 0;
}

void inquiry_free(inquiry *q)
{
    if (!q)
        return;
    forget(q);
    free(q->known);
    free(q->asked);
    free(q->heard);
    free(q->parts);
    free(q->totals);
    free(q->result);
    free(q->found);
    free(q);
}

static bool is_root(const inquiry *q)
{
    return q->s.resolve != NULL;
}

/* What is taken down, not answered from rows. */
static bool is_announcement(const inquiry_question *question)
{
    return question->kind == INQUIRY_RESULT || question->kind == INQUIRY_END;
}

/* ---- a question as numbers ---- */

static bool read_count(double v, size_t most, size_t *count)
{
    if (!(v >= 0) || v > (double)most || v != floor(v))
        return false;
    *count = (size_t)v;
    return true;
}

static bool read_question(const inquiry *q, const double *values, size_t count, inquiry_question *question)
{
    size_t kind, columns;
    *question = (inquiry_question){0};
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
    const size_t size = from->most + from->sums, count = INQUIRY_HEAD + from->n_columns + from->count;
    if (!alloc_grow((void **)&q->asked, &q->asked_room, count, sizeof *q->asked) ||
        !alloc_grow((void **)&q->parts, &q->parts_room, size * q->s.n_children + 1, sizeof *q->parts) ||
        !alloc_grow((void **)&q->totals, &q->totals_room, size + 1, sizeof *q->totals))
        return false;
    const double head[] = {from->kind, (double)from->most, (double)from->sums, from->constant, (double)from->n_columns};
    memcpy(q->asked, head, sizeof head);
    if (from->n_columns)
        memcpy(q->asked + INQUIRY_HEAD, from->columns, from->n_columns * sizeof *q->asked);
    if (from->count)
        memcpy(q->asked + INQUIRY_HEAD + from->n_columns, from->values, from->count * sizeof *q->asked);
    q->n_asked = count;
    q->has_question = true;
    q->complete = false;
    q->send_ask = q->send_answer = false; /* what waits to be sent is about the question before */
    q->round = round;
    memset(q->heard, 0, q->s.n_children * sizeof *q->heard);
    return true;
}

static void start_asking(inquiry *q)
{
    q->send_ask = true;
    q->wait = q->s.patience.first_ms;
    q->due = q->now + q->wait;
}

/* Frames hold finite numbers only; no sum of the clients' is larger than this. */
static void make_finite(double *v, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!isfinite(v[i]))
            v[i] = v[i] < 0 ? -DBL_MAX : DBL_MAX;
}

/* ---- the root ---- */

/* Questions are numbered from 1. */
static uint64_t round_of(const inquiry *q, size_t number)
{
    return (q->attempt << INQUIRY_ATTEMPT_BIT) + number + 1;
}

/* Attempts of a life have different numbers than those of the next. */
enum { RETRIES_BIT = 20 };

static bool may_retry(const inquiry *q)
{
    return q->fruitless < INQUIRY_ATTEMPTS && q->attempt % (UINT64_C(1) << RETRIES_BIT) != 0;
}

static hfsad_status resolve_polish(inquiry *q, double **result, size_t *count, hfsad_error *err)
{
    hfsad_status status;
    do {
        inquiry_pass pass = {.q = q};
        status = q->s.polish(q->s.context, &pass, q->from, result, count, err);
        if (status == INQUIRY_AGAIN) {
            q->fruitless = q->n_known > 1 ? 0 : q->fruitless + 1;
            forget(q);
            q->attempt++;
        }
    } while (status == INQUIRY_AGAIN && may_retry(q));
    return status;
}

static hfsad_status run_resolve(inquiry *q, hfsad_error *err)
{
    inquiry_pass pass = {.q = q};
    double *result = NULL;
    size_t count = 0;
    const hfsad_status status =
        q->from ? resolve_polish(q, &result, &count, err) : q->s.resolve(q->s.context, &pass, &result, &count, err);
    if (status) {
        free(result);
        return status == INQUIRY_WAITS ? HFSAD_OK : status;
    }
    free(q->found);
    q->found = result;
    q->n_found = count;
    const inquiry_question last = {.kind = INQUIRY_RESULT, .sums = 1, .count = count, .values = result};
    if (q->from)
        return HFSAD_OK;
    if (!take_question(q, round_of(q, q->n_known), &last))
        return error_memory(err, count * sizeof *result, "the result of the set-up");
    start_asking(q);
    return HFSAD_OK;
}

/* Without the polish there still are the models of the run. */
static void heed_failure(inquiry *q, hfsad_status status)
{
    if (status)
        q->failure = status == INQUIRY_AGAIN ? POLISH_LOST : POLISH_NO_MEMORY;
}

void inquiry_begin_polish(inquiry *q, uint64_t life, const double *w)
{
    hfsad_error unsaid;
    forget(q);
    free(q->found);
    q->found = NULL;
    q->from = w;
    q->attempt = life << RETRIES_BIT;
    q->fruitless = 0;
    q->failure = POLISH_UNFINISHED;
    q->rests = false;
    heed_failure(q, run_resolve(q, &unsaid));
}

bool inquiry_is_polishing(const inquiry *q)
{
    return q->from != NULL;
}

uint64_t inquiry_attempt(const inquiry_pass *pass)
{
    return pass->q->attempt;
}

uint64_t inquiry_life(uint64_t attempt)
{
    return attempt >> RETRIES_BIT;
}

const double *inquiry_polished(const inquiry *q, size_t *count)
{
    const bool failed = q->failure > POLISH_UNFINISHED;
    *count = failed ? 1 : q->n_found;
    return failed ? &q->failure : q->from ? q->found : NULL;
}

hfsad_status inquiry_ask(inquiry_pass *pass, const inquiry_question *question, double *totals, hfsad_error *err)
{
    inquiry *q = pass->q;
    const size_t number = pass->next++, size = question->most + question->sums;
    if (number < q->n_known) {
        for (size_t i = 0; i < size; i++) {
            const double v = q->known[number].totals[i];
            totals[i] = v >= DBL_MAX ? INFINITY : v <= -DBL_MAX ? -INFINITY : v;
        }
        return HFSAD_OK;
    }
    if (INQUIRY_HEAD + question->n_columns + question->count > q->s.most || size > q->s.most ||
        !take_question(q, round_of(q, number), question))
        return error_memory(err, question->count * sizeof *totals, "a question");
    start_asking(q);
    return INQUIRY_WAITS;
}

static hfsad_status keep_answer(inquiry *q, hfsad_error *err)
{
    inquiry_question question;
    (void)read_question(q, q->asked, q->n_asked, &question);
    const size_t size = question.most + question.sums;
    double *totals = alloc_zero(size, sizeof *totals);
    if (!totals || !alloc_grow((void **)&q->known, &q->known_room, q->n_known + 1, sizeof *q->known)) {
        free(totals);
        return error_memory(err, size * sizeof *totals, "an answer");
    }
    memcpy(totals, q->totals, size * sizeof *totals);
    if (q->from && q->n_known > 0) { /* the polish goes on from where it is */
        free(q->known[q->n_known - 1].totals);
        q->known[q->n_known - 1].totals = NULL;
    }
    q->known[q->n_known++] = (answered){question.kind, question.count, question.most, question.sums, totals};
    return run_resolve(q, err);
}

hfsad_status inquiry_begin(inquiry *q, hfsad_error *err)
{
    return run_resolve(q, err);
}

void inquiry_rest(inquiry *q)
{
    q->rests = true;
    q->has_question = q->send_ask = q->send_answer = false;
}

hfsad_status inquiry_dismiss(inquiry *q, const char *why, hfsad_error *err)
{
    double values[INQUIRY_WHY_MOST];
    inquiry_question last = {.kind = INQUIRY_END, .sums = 1, .values = values};
    for (; why[last.count] && last.count < INQUIRY_WHY_MOST; last.count++)
        values[last.count] = (unsigned char)why[last.count];
    if (!take_question(q, UINT32_MAX, &last))
        return error_memory(err, sizeof values, "the last word");
    q->rests = false;
    start_asking(q);
    return HFSAD_OK;
}

survey_cost inquiry_cost(const inquiry *q, size_t links)
{
    survey_cost cost = {0};
    for (size_t i = 0; i < q->n_known; i++) {
        if (q->known[i].kind >= INQUIRY_SHAPE || q->known[i].kind == SURVEY_ENERGY ||
            q->known[i].kind == SURVEY_MOMENTS)
            continue;
        cost.questions++;
        cost.bytes_down += links * q->known[i].count * sizeof(double);
        cost.bytes_up += links * (q->known[i].most + q->known[i].sums) * sizeof(double);
    }
    return cost;
}

/* ---- answers ---- */

static hfsad_status take_result(inquiry *q, const double *values, size_t count, hfsad_error *err)
{
    if (q->result && (count != q->n_result || memcmp(q->result, values, count * sizeof *values) != 0))
        return error_set(err, HFSAD_ERROR_INPUT,
                         "the cloud's set-up had another result than the one kept here: data or a file of the spec "
                         "have changed; begin all nodes anew, with other state folders");
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
static hfsad_status conclude(inquiry *q, hfsad_error *err)
{
    inquiry_question question;
    (void)read_question(q, q->asked, q->n_asked, &question);
    const size_t size = question.most + question.sums;
    const survey_question as = {.most = question.most, .sums = question.sums};
    memset(q->totals, 0, size * sizeof *q->totals);
    for (size_t c = 0; c < q->s.n_children; c++)
        survey_combine(&as, q->totals, q->parts + c * size);
    if (is_announcement(&question))
        q->totals[0] += 1;
    make_finite(q->totals, size);
    q->complete = true;
    q->send_ask = false;
    q->all_dismissed = question.kind == INQUIRY_END;
    if (!is_root(q)) {
        q->send_answer = true;
        return HFSAD_OK;
    }
    q->has_question = false;
    if (question.kind == INQUIRY_END)
        return HFSAD_OK;
    if (question.kind == INQUIRY_RESULT)
        return take_result(q, q->found, q->n_found, err);
    const hfsad_status status = keep_answer(q, err);
    if (!q->from)
        return status;
    heed_failure(q, status);
    return HFSAD_OK;
}

static bool all_heard(const inquiry *q)
{
    for (size_t c = 0; c < q->s.n_children; c++)
        if (!q->heard[c])
            return false;
    return true;
}

/* ---- what comes in ---- */

static bool refuse(node_refusal *to, node_refusal why)
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
    if (m->count < INQUIRY_HEAD || m->count > q->s.most || !read_question(q, m->values, m->count, &question))
        return refuse(why, NODE_REFUSED_SIZE);
    if (question.kind != INQUIRY_END)
        q->ends = 0;
    else if (!hear_end(q, &question))
        return refuse(why, NODE_REFUSED_OLD);
    const bool same = q->has_question && q->round == m->round && q->n_asked == m->count &&
                      memcmp(q->asked, m->values, m->count * sizeof *q->asked) == 0;
    if (same) {
        q->send_answer = q->send_answer || q->complete;
        return refuse(why, NODE_REFUSED_OLD);
    }
    if (question.kind != INQUIRY_END && m->round < q->newest) /* it would make clients forget where they are */
        return refuse(why, NODE_REFUSED_OLD);
    if (question.kind >= INQUIRY_POLISH)
        q->newest = m->round;
    if (!take_question(q, m->round, &question)) {
        *failed = error_memory(err, m->count * sizeof(double), "a question");
        return false;
    }
    if (question.kind == INQUIRY_RESULT && (*failed = take_result(q, question.values, question.count, err)))
        return false;
    if (q->s.n_children) {
        start_asking(q);
        return true;
    }
    q->all_dismissed = question.kind == INQUIRY_END;
    if (is_announcement(&question)) {
        q->totals[0] = 1;
    } else if (!q->s.answer(q->s.context, &question, q->totals)) {
        q->has_question = false;
        return refuse(why, NODE_REFUSED_VALUE);
    }
    make_finite(q->totals, question.most + question.sums);
    q->complete = q->send_answer = true;
    return true;
}

static bool handle_answer(inquiry *q, size_t c, const message *m, node_refusal *why, hfsad_status *failed,
                          hfsad_error *err)
{
    inquiry_question question;
    if (!q->has_question || q->complete || m->round != q->round || q->heard[c])
        return refuse(why, NODE_REFUSED_OLD);
    (void)read_question(q, q->asked, q->n_asked, &question);
    const size_t size = question.most + question.sums;
    if (m->count != size)
        return refuse(why, NODE_REFUSED_SIZE);
    if (size)
        memcpy(q->parts + c * size, m->values, size * sizeof *q->parts);
    q->heard[c] = true;
    if (all_heard(q))
        *failed = conclude(q, err);
    return true;
}

bool inquiry_handle(inquiry *q, size_t from, const message *m, node_refusal *why, hfsad_status *failed,
                    hfsad_error *err)
{
    *failed = HFSAD_OK;
    if (m->run != q->s.run)
        return refuse(why, NODE_REFUSED_RUN);
    if (q->rests)
        return refuse(why, NODE_REFUSED_OLD);
    if (from == NODE_PARENT && m->kind == MESSAGE_ASK && !is_root(q))
        return handle_ask(q, m, why, failed, err);
    if (from < q->s.n_children && m->kind == MESSAGE_ANSWER)
        return handle_answer(q, from, m, why, failed, err);
    return refuse(why, NODE_REFUSED_KIND);
}

/* ---- time, and what goes out ---- */

static bool is_asking(const inquiry *q)
{
    return q->has_question && !q->complete && q->s.n_children;
}

void inquiry_tick(inquiry *q, uint64_t now_ms)
{
    q->now = now_ms;
    if (!is_asking(q) || q->due > now_ms)
        return;
    q->send_ask = true;
    q->wait = q->wait < q->s.patience.most_ms / 2 ? 2 * q->wait : q->s.patience.most_ms;
    q->due = now_ms + q->wait;
}

uint64_t inquiry_due(const inquiry *q)
{
    return is_asking(q) ? q->due : UINT64_MAX;
}

void inquiry_repeat(inquiry *q)
{
    q->send_ask = is_asking(q);
    q->ends = 0;
}

bool inquiry_next_letter(inquiry *q, node_letter *letter)
{
    const message m = {.run = q->s.run, .phase = NODE_PHASE_SETUP, .round = q->round};
    letter->m = m;
    if (q->send_answer) {
        inquiry_question question;
        (void)read_question(q, q->asked, q->n_asked, &question);
        q->send_answer = false;
        letter->to_parent = true;
        letter->m.kind = MESSAGE_ANSWER;
        letter->m.values = q->totals;
        letter->m.count = question.most + question.sums;
        return true;
    }
    if (!q->send_ask)
        return false;
    q->send_ask = false;
    letter->to_parent = false;
    letter->m.kind = MESSAGE_ASK;
    letter->m.values = q->asked;
    letter->m.count = q->n_asked;
    return true;
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
