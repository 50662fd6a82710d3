/*
 * The polish in a federation: the cloud's solver asks through the tree, as the set-up does, and clients keep their
 * rows' multipliers from question to question. A restarted client lacks the previous question and reports that. Then
 * all clients reset, and are asked again the questions that determine their multipliers, a tenth of all questions,
 * before the solver continues. If the polish fails for good, the run keeps its own models.
 */
#include "net/federation_parts.h"

#include "base/alloc.h"
#include "base/error.h"
#include "data/features.h"
#include "plan/client_terms.h"
#include "polish/chosen.h"
#include "polish/errors.h"
#include "polish/star_client.h"
#include "polish/task.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct polish_memory {
    uint64_t attempt, number; /* of the last question */
    uint64_t life;            /* of the node that answered; a new process reports it once */
    double *last;             /* the last answer of a kind that cannot be made twice: commits, rounds, metrics */
    star_client *star;
    polish_chosen *chosen;
    double rows[]; /* multiplier, bend, anchor of each; then M + STAR_NUMBERS of `last` */
};

/* The polish: whether there is one, the longest message, and a client's answer. */
static bool federation_polishes(const federation *f, const plan *p)
{
    const size_t n_inner = f->shape->n_inner;
    return algorithm_of(f->spec)->links && polish_is_due(f->spec, p, n_inner, f->shape->M) &&
           !plan_why_apart(p, n_inner);
}

static size_t scores_of(const federation *f)
{
    return f->shape->classes ? f->shape->classes : 1;
}

/* Intercepts of nodes beyond the first, before the plan is known. */
static size_t most_owned(const federation *f)
{
    const dataset *d = f->shape;
    const int intercept = f->spec->features.intercept;
    const size_t nodes = intercept == INTERCEPT_CLIENT ? d->n_leaves : intercept == INTERCEPT_EDGE ? d->n_inner : 0;
    return nodes <= OWNERS_NUMBERS_MOST / d->n_leaves ? nodes * scores_of(f) : 0;
}

static size_t coordinates(const federation *f)
{
    return owners_coordinates(f->p, f->shape);
}

size_t polish_message_most(const federation *f)
{
    const size_t M = features_model(f->shape, 1) + most_owned(f);
    const bool may = algorithm_may_be_star(f->spec->top.algorithm) || f->spec->run.polish == 1 ||
                     (f->spec->run.polish < 0 && M <= POLISH_DIRECT + 1);
    return may ? POLISH_HEAD + polish_longest(M, polish_direct(f->shape)) : 0;
}

void polish_forget(federation *f)
{
    for (size_t leaf = 0; f->polish && leaf < f->shape->n_leaves; leaf++)
        if (f->polish[leaf]) {
            star_client_free(f->polish[leaf]->star);
            free(f->polish[leaf]->chosen);
            free(f->polish[leaf]);
        }
    free(f->polish);
}

/* ---- a client ---- */

client_rows federation_client_rows(const federation *f, size_t leaf)
{
    client_rows rows = dataset_rows(f->t.rows, f->own[leaf]);
    rows.constant = f->shape->rows.constant;
    return rows;
}

/* That a client keeps for a row: an anchor, and for each score multiplier and bend, or the probability of a class. */
static size_t row_numbers(const federation *f)
{
    return 1 + 2 * scores_of(f);
}

static polish_memory *memory_of(federation *f, size_t leaf, size_t rows)
{
    const size_t last = polish_length(POLISH_PROJECT, coordinates(f)); /* the longest answer of those that move */
    if (!f->polish)
        f->polish = alloc_zero(f->shape->n_leaves, sizeof(polish_memory *));
    if (f->polish && !f->polish[leaf] &&
        (f->polish[leaf] = alloc_zero(1, sizeof(polish_memory) + (row_numbers(f) * rows + last) * sizeof(double))))
        f->polish[leaf]->last = f->polish[leaf]->rows + row_numbers(f) * rows;
    return f->polish ? f->polish[leaf] : NULL;
}

/* Whether the question follows what the client has, or is its last one again. */
static bool follows(polish_memory *m, uint64_t attempt, uint64_t number, size_t numbers)
{
    if (number == 1) {
        memset(m->rows, 0, numbers * sizeof *m->rows);
        star_client_free(m->star);
        m->star = NULL;
        free(m->chosen);
        m->chosen = NULL;
        m->attempt = attempt;
        m->number = 0;
    }
    return m->attempt == attempt && (m->number == number || m->number + 1 == number);
}

/* Whether a question has the lengths of one about M coordinates. */
static bool is_about(const inquiry_question *q, polish_kind kind, size_t M)
{
    return q->count == POLISH_HEAD + polish_down(kind, M) && q->sums == polish_length(kind, M);
}

bool polish_client_answer(const seat *at, const inquiry_question *question, double *numbers)
{
    federation *f = at->f;
    if (!f->result)
        return false;
    const size_t kind = (size_t)(question->kind - INQUIRY_POLISH), all = coordinates(f);
    if (kind >= POLISH_KINDS || question->most != 1 || question->count < POLISH_HEAD)
        return false;
    const double *v = question->values, *vector = v + POLISH_HEAD, most = 0x1p53;
    if (!(v[0] >= 0 && v[0] <= most && v[1] >= 1 && v[1] <= most))
        return false;
    client_rows rows = federation_client_rows(f, at->leaf);
    rows.beyond = owners_of(f->p, f->shape, at->leaf);
    const leaf_class *class = plan_leaf(f->p, at->leaf);
    polish_memory *m = memory_of(f, at->leaf, rows.count);
    if (!m)
        return false; /* it will be asked again */
    const bool whole = is_about(question, (polish_kind)kind, all);
    const size_t M = whole ? all : chosen_coordinates(m->chosen, all - rows.F);
    const bool lacks = !whole && question->values[1] != 1 && !m->chosen; /* restarted, it does not know the choice */
    if (!whole && !lacks && !is_about(question, (polish_kind)kind, M))
        return false;
    const uint64_t number = (uint64_t)v[1];
    const uint64_t life = f->lives[at->leaf];
    const bool lost = lacks || !follows(m, (uint64_t)v[0], number, row_numbers(f) * rows.count) || m->life < life;
    m->life = life;
    numbers[0] = lost ? 1 + (double)life : 0;
    memset(numbers + 1, 0, question->sums * sizeof *numbers);
    if (numbers[0] > 0)
        return true;
    const polish_client client = {
        .loss = &class->loss,
        .rows = rows,
        .M = all,
        .factor = client_factor(class, &rows),
        .multiplier = m->rows,
        .bend = m->rows + (1 + scores_of(f)) * rows.count,
        .anchor = m->rows + scores_of(f) * rows.count,
        .star = &m->star,
        .chosen = &m->chosen,
        .scores = plan_scores(f->p),
    };
    const polish_question asked = {(polish_kind)kind, v[2], v[3], vector, vector + M, v[4], whole ? 0 : M};
    const bool moves = polish_table[kind].how & ASK_MOVES;
    if (moves && m->number == number)
        memcpy(numbers + 1, m->last, question->sums * sizeof *numbers);
    else
        polish_answer(&client, &asked, numbers + 1);
    if (moves)
        memcpy(m->last, numbers + 1, question->sums * sizeof *numbers);
    m->number = number;
    return true;
}

/* ---- the root ---- */

/* A question as it is asked again; vectors: polish_down numbers. */
typedef struct {
    polish_kind kind;
    double kappa, beta, step;
    size_t M; /* coordinates that it is about */
    double *vectors;
} asked;

/* Why the solver is given up before its end. */
typedef enum {
    GOES_ON,
    BEGINS_ANEW, /* a client is lost, and what its multipliers were made of was not kept */
    HAS_ABSENT,  /* a client does not answer */
    HAS_LOST,    /* a client reports that it is lost whenever it is asked */
    HAS_ENDED    /* a turn ended it; the status states why */
} giving_up;

typedef struct {
    inquiry *q;
    const inquiry_turns *turns;
    size_t M;
    int before;                             /* kind of the solver's last question; -1: none */
    asked current;                          /* that the solver waits for */
    asked *past;                            /* answered ones that clients keep something of, as they came */
    size_t n_past, past_room, past_numbers; /* past_numbers: of all their vectors */
    bool forgets;                           /* no memory for them: a lost client restarts the polish */
    size_t again;                           /* of them: the next to be asked again; n_past: none */
    double *values;                         /* of the question as it goes out, with its head */
    double *answer;
    uint64_t attempt, number;    /* number: of the last question of this attempt that was answered */
    uint64_t life;               /* of the last client that was readmitted */
    uint64_t lost, progress;     /* attempts in which a client was lost; questions of the solver that were answered */
    const federation_rows *rows; /* NULL: none, or no caller wants them */
    double *row;                 /* the numbers of the first */
    uint64_t n_rows;
    giving_up why;
    hfsad_status status;
    hfsad_error *err;
} asker;

/* Numbers of all questions that are kept. */
enum { PAST_MOST = 1 << 24 };
/* Limit on lost attempts beyond the number of the solver's questions that were answered. Clients that are killed now
 * and then stay below it; a client that reports a loss again and again does not, whichever questions it answers. */
enum { LOST_MOST = 1000 };
/* Attempts of a life have different numbers than those of the next. */
enum { RETRIES_BIT = 20 };

static void forget_past(asker *a)
{
    for (size_t i = 0; i < a->n_past; i++)
        free(a->past[i].vectors);
    a->n_past = a->past_numbers = 0;
}

static void count_past(asker *a)
{
    a->past_numbers = 0;
    for (size_t i = 0; i < a->n_past; i++)
        a->past_numbers += polish_down(a->past[i].kind, a->past[i].M);
}

_Static_assert(INQUIRY_POLISH + POLISH_KINDS <= INQUIRY_GROUPS, "a kind of question for every kind of the polish");

static inquiry_question question_of(asker *a, const asked *q)
{
    const size_t count = polish_down(q->kind, q->M);
    const double head[POLISH_HEAD] = {(double)a->attempt, (double)(a->number + 1), q->kappa, q->beta, q->step};
    memcpy(a->values, head, sizeof head);
    if (count)
        memcpy(a->values + POLISH_HEAD, q->vectors, count * sizeof *q->vectors);
    return (inquiry_question){.kind = INQUIRY_POLISH + (int)q->kind,
                              .most = 1,
                              .sums = polish_length(q->kind, q->M),
                              .count = POLISH_HEAD + count,
                              .values = a->values};
}

/* All but the last choice of columns, which POLISH_FORGET leaves. */
static void forget_steps(asker *a)
{
    size_t last = a->n_past;
    while (last > 0 && a->past[last - 1].kind != POLISH_CHOOSE)
        last--;
    for (size_t i = 0; i < a->n_past; i++)
        if (i + 1 != last)
            free(a->past[i].vectors);
    if (last > 0)
        a->past[0] = a->past[last - 1];
    a->n_past = last > 0;
    count_past(a);
}

/* The last look, and the projections after it. */
static void forget_values(asker *a)
{
    size_t kept = 0;
    for (size_t i = 0; i < a->n_past; i++)
        if (a->past[i].kind == POLISH_VALUE || a->past[i].kind == POLISH_PROJECT)
            free(a->past[i].vectors);
        else
            a->past[kept++] = a->past[i];
    a->n_past = kept;
    count_past(a);
}

static void keep(asker *a)
{
    const polish_kind kind = a->current.kind;
    const size_t count = polish_down(kind, a->current.M);
    if (kind == POLISH_FORGET) {
        forget_steps(a);
        a->again = a->n_past;
    }
    if (a->forgets || !(polish_table[kind].how & ASK_KEPT))
        return;
    if (kind == POLISH_VALUE)
        forget_values(a);
    double *vectors = a->past_numbers + count <= PAST_MOST ? alloc_zero(count, sizeof *vectors) : NULL;
    a->forgets = !vectors || !alloc_grow((void **)&a->past, &a->past_room, a->n_past + 1, sizeof *a->past);
    if (a->forgets) {
        free(vectors);
        forget_past(a);
    } else {
        memcpy(vectors, a->current.vectors, count * sizeof *vectors);
        a->past[a->n_past] = a->current;
        a->past[a->n_past++].vectors = vectors;
        a->past_numbers += count;
    }
    a->again = a->n_past;
}

/* A client is lost: the next attempt begins with the questions that were kept. */
static void retry(asker *a, uint64_t life)
{
    const bool replaced = life > a->life; /* its rows may be others: earlier answers are void */
    a->life = replaced ? life : a->life;
    if (replaced)
        forget_past(a);
    a->lost++;
    a->attempt++;
    a->number = a->again = 0;
    if (a->lost >= LOST_MOST + a->progress || a->attempt % (UINT64_C(1) << RETRIES_BIT) == 0)
        a->why = HAS_LOST;
    else if (a->forgets || replaced)
        a->why = BEGINS_ANEW;
}

static void ask_once(asker *a, const asked *q)
{
    const inquiry_question question = question_of(a, q);
    const uint64_t round = (a->attempt << INQUIRY_ATTEMPT_BIT) + a->number + 1;
    a->status = inquiry_ask(a->q, round, &question, a->turns, a->answer, a->err);
    if (a->status)
        a->why = HAS_ENDED;
    else if (a->answer[0] >= INQUIRY_ABSENT)
        a->why = HAS_ABSENT;
    else if (a->answer[0] > 0)
        retry(a, (uint64_t)fmin(a->answer[0], 0x1p53) - 1); /* a client may send any number */
    else
        a->number++;
}

/* The solver's question, after the questions repeated for lost clients. */
static bool ask(void *context, const polish_question *q, double *sum)
{
    asker *a = context;
    const size_t M = q->chosen ? q->chosen : a->M;
    const size_t points = polish_points(q->kind, M), count = polish_down(q->kind, M) - points;
    double *v = a->current.vectors;
    assert(polish_may_follow(q->kind, a->before)); /* clients refuse it otherwise, and the run would wait for ever */
    a->before = (int)q->kind;
    a->current = (asked){q->kind, q->kappa, q->beta, q->step, M, v};
    if (count)
        memcpy(v, q->vector, count * sizeof *v);
    if (points)
        memcpy(v + count, q->point, points * sizeof *v);
    for (bool done = false; !done && a->why == GOES_ON;) {
        const uint64_t before = a->number;
        const bool again = a->again < a->n_past;
        ask_once(a, again ? &a->past[a->again] : &a->current);
        const bool answered = a->why == GOES_ON && a->number > before;
        a->again += answered && again;
        done = answered && !again;
    }
    if (a->why != GOES_ON)
        return false;
    a->progress++;
    keep(a);
    memcpy(sum, a->answer + 1, polish_length(q->kind, M) * sizeof *sum);
    return true;
}

size_t federation_polish_numbers(const plan *p, size_t M)
{
    return FEDERATION_POLISH_HEAD + M + (p->star ? (size_t)p->limit * FEDERATION_ROW : 0) + (p->errors ? M : 0);
}

uint64_t federation_polish_rows(const double *numbers)
{
    return (uint64_t)numbers[10];
}

/* If the solver starts again, its rows are the same. */
static void take_polish_row(void *context, const polish_row *row)
{
    asker *a = context;
    if (row->number <= a->n_rows || a->why == BEGINS_ANEW) /* the latter: it was broken off within this row */
        return;
    a->rows->row(a->rows->context, row, a->row + a->n_rows * FEDERATION_ROW);
    a->n_rows = row->number;
}

static int polish_end_of(const polish_result *r)
{
    return !r->finished  ? POLISH_UNFINISHED
           : r->vanishes ? POLISH_VANISHES
           : r->endless  ? POLISH_ENDLESS
                         : POLISH_FINISHED;
}

static void pack(double *to, const polish_result *r, uint64_t rows)
{
    const double numbers[FEDERATION_POLISH_HEAD] = {
        polish_end_of(r), r->before,     r->after,          r->bound, r->residual,  (double)r->exchanges,
        (double)r->down,  (double)r->up, (double)r->stages, r->zero,  (double)rows,
    };
    memcpy(to, numbers, sizeof numbers);
}

polish_result federation_polish_result(const double *numbers)
{
    return (polish_result){
        .finished = numbers[0] == POLISH_FINISHED || numbers[0] == POLISH_ENDLESS || numbers[0] == POLISH_VANISHES,
        .endless = numbers[0] == POLISH_ENDLESS || numbers[0] == POLISH_VANISHES,
        .vanishes = numbers[0] == POLISH_VANISHES,
        .before = numbers[1],
        .after = numbers[2],
        .bound = numbers[3],
        .residual = numbers[4],
        .exchanges = (uint64_t)numbers[5],
        .down = (uint64_t)numbers[6],
        .up = (uint64_t)numbers[7],
        .stages = (uint32_t)numbers[8],
        .zero = numbers[9],
    };
}

const char *federation_polish_failure(const double *numbers)
{
    return polish_failure((int)numbers[0]);
}

/* From w; again if a lost client restarts it. numbers: the head and the model. false: no memory. */
static bool solve(asker *a, const federation *f, const double *w, double *numbers)
{
    polish_problem problem;
    polish_result found = {0};
    bool solved = polish_problem_make(&problem, f->p, f->shape);
    problem.ask = ask;
    problem.context = a;
    problem.row = a->rows && problem.star ? take_polish_row : NULL;
    if (f->p->errors)
        solved = solved && (problem.variance = alloc_zero(a->M * (a->M + 1) / 2, sizeof *problem.variance));
    for (bool anew = true; anew && solved;) {
        owners_spread(f->p, f->shape, w, numbers + FEDERATION_POLISH_HEAD);
        a->why = GOES_ON;
        a->forgets = false;
        a->before = -1;
        solved = polish_solve(&problem, numbers + FEDERATION_POLISH_HEAD, &found);
        anew = a->why == BEGINS_ANEW;
    }
    if (f->p->errors) /* behind everything else */
        solved = solved &&
                 errors_to_user(f->shape, problem.variance, numbers + federation_polish_numbers(f->p, a->M) - a->M);
    free(problem.variance);
    free((hfsad_penalty *)problem.priors);
    pack(numbers, &found, a->n_rows);
    return solved;
}

hfsad_status federation_polish_from(const federation *f, inquiry *q, const inquiry_turns *turns, uint64_t life,
                                    const double *w, const federation_rows *rows, double *numbers, hfsad_error *err)
{
    const size_t M = coordinates(f);
    asker a = {.q = q, .turns = turns, .M = M, .attempt = life << RETRIES_BIT, .rows = rows, .err = err};
    a.row = numbers + FEDERATION_POLISH_HEAD + M;
    const size_t longest = polish_longest(M, polish_direct(f->shape));
    a.values = alloc_zero(POLISH_HEAD + longest, sizeof *a.values);
    a.current.vectors = alloc_zero(longest, sizeof *a.current.vectors);
    a.answer = alloc_zero(1 + longest, sizeof *a.answer);
    const bool solved = a.values && a.current.vectors && a.answer && solve(&a, f, w, numbers);
    if (!solved || a.why != GOES_ON)
        memset(numbers, 0, (FEDERATION_POLISH_HEAD + M) * sizeof *numbers);
    if (!solved || a.why != GOES_ON)
        numbers[0] = a.why == HAS_LOST ? POLISH_LOST : a.why == HAS_ABSENT ? POLISH_ABSENT : POLISH_NO_MEMORY;
    forget_past(&a);
    free(a.past);
    free(a.current.vectors);
    free(a.values);
    free(a.answer);
    return a.status == HFSAD_ERROR_MEMORY ? HFSAD_OK : a.status; /* for lack of memory only the polish is given up */
}

/* Polish and groups of one life have different numbers. */
static uint64_t groups_attempt(uint64_t life)
{
    return (life << RETRIES_BIT) + (UINT64_C(1) << (RETRIES_BIT - 1));
}

size_t federation_end_numbers(const federation *f, const plan *p)
{
    const size_t groups = federation_groups_numbers(f, p);
    if (!algorithm_of(f->spec)->links)
        return 0;
    return groups || federation_polishes(f, p) ? federation_polish_numbers(p, owners_coordinates(p, f->shape)) + groups
                                               : 0;
}

hfsad_status federation_polish(const federation *f, inquiry *q, const inquiry_turns *turns, node *root,
                               const federation_rows *rows, hfsad_error *err)
{
    uint64_t life;
    const double *w = node_wants_polish(root, &life), no_memory = POLISH_NO_MEMORY;
    const size_t count = federation_end_numbers(f, f->p), polish = federation_polish_numbers(f->p, coordinates(f));
    hfsad_status status = HFSAD_OK;
    if (!w)
        return HFSAD_OK;
    double *numbers = alloc_zero(count, sizeof *numbers);
    if (numbers && federation_polishes(f, f->p))
        status = federation_polish_from(f, q, turns, life, w, rows, numbers, err);
    if (!status && numbers && count > polish)
        status = federation_groups_from(f, q, turns, groups_attempt(life), w, numbers + polish, err);
    if (!status)
        node_take_polish(root, numbers ? numbers : &no_memory, numbers ? count : 1);
    free(numbers);
    return status;
}
