/*
 * The polish in a federation: the cloud's solver asks through the tree, as the set-up does, and clients keep their
 * rows' multipliers from question to question. A client that has not had the question before, since it was killed, says
 * so; then all clients forget, and are asked again what their multipliers were made of, a tenth of all questions,
 * before the solver goes on from where it was. Where it fails for good the run keeps its own models.
 */
#define _POSIX_C_SOURCE 200809L
#include "net/federation_parts.h"

#include "base/alloc.h"
#include "base/error.h"
#include "data/features.h"
#include "plan/client_terms.h"
#include "polish/task.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

struct polish_memory {
    uint64_t attempt, number; /* of the last question */
    double committed;         /* the last POLISH_COMMIT's answer, which cannot be made twice */
    double rows[];            /* multiplier, bend, anchor of each */
};

bool federation_polishes(const federation *f, const plan *p)
{
    const size_t n_inner = f->shape->n_inner;
    return polish_is_due(f->spec, p, n_inner, f->shape->M) && !polish_why_not(p, n_inner);
}

size_t polish_message_most(const federation *f)
{
    const size_t M = features_count(f->shape) + 1, answer = 1 + polish_longest(M, POLISH_DIRECT),
                 question = INQUIRY_POLISH_HEAD + 2 * M;
    const bool may = f->spec->run.polish == 1 || (f->spec->run.polish < 0 && M <= POLISH_DIRECT + 1);
    return !may ? 0 : answer > question ? answer : question;
}

static void solver_end(polish_solver *s);

/* A question has one vector at least, which may not be looked at. */
static size_t vectors_of(polish_kind kind)
{
    const size_t vectors = polish_vectors(kind);
    return vectors ? vectors : 1;
}

void polish_forget(federation *f)
{
    solver_end(f->solver);
    for (size_t leaf = 0; f->polish && leaf < f->shape->n_leaves; leaf++)
        free(f->polish[leaf]);
    free(f->polish);
}

/* ---- a client ---- */

static client_rows rows_of(const federation *f, size_t leaf)
{
    client_rows rows = dataset_rows(f->t.rows, f->own[leaf]);
    rows.constant = f->shape->rows.constant;
    return rows;
}

static polish_memory *memory_of(federation *f, size_t leaf, size_t rows)
{
    if (!f->polish)
        f->polish = alloc_zero(f->shape->n_leaves, sizeof(polish_memory *));
    if (f->polish && !f->polish[leaf])
        f->polish[leaf] = alloc_zero(1, sizeof(polish_memory) + 3 * rows * sizeof(double));
    return f->polish ? f->polish[leaf] : NULL;
}

/* Whether the question follows what the client has, or is its last one again. */
static bool follows(polish_memory *m, uint64_t attempt, uint64_t number, size_t rows)
{
    if (number == 1) {
        memset(m->rows, 0, 3 * rows * sizeof *m->rows);
        m->attempt = attempt;
        m->number = 0;
    }
    return m->attempt == attempt && (m->number == number || m->number + 1 == number);
}

bool polish_client_answer(const seat *at, const inquiry_question *question, double *numbers)
{
    federation *f = at->f;
    const size_t M = f->shape->M, kind = (size_t)(question->kind - INQUIRY_POLISH);
    const size_t count = INQUIRY_POLISH_HEAD + (kind < POLISH_KINDS ? vectors_of((polish_kind)kind) : 0) * M;
    if (!f->result || kind >= POLISH_KINDS || question->count != count || question->most != 1 ||
        question->sums != polish_length((polish_kind)kind, M))
        return false;
    const double *v = question->values, *vector = v + INQUIRY_POLISH_HEAD, most = 0x1p53;
    if (!(v[0] >= 0 && v[0] <= most && v[1] >= 1 && v[1] <= most))
        return false;
    const client_rows rows = rows_of(f, at->leaf);
    const leaf_class *class = plan_leaf(f->p, at->leaf);
    polish_memory *m = memory_of(f, at->leaf, rows.count);
    if (!m)
        return false; /* it will be asked again */
    const uint64_t number = (uint64_t)v[1];
    numbers[0] = !follows(m, (uint64_t)v[0], number, rows.count);
    memset(numbers + 1, 0, question->sums * sizeof *numbers);
    if (numbers[0] > 0)
        return true;
    const polish_client client = {
        .loss = &class->loss,
        .rows = rows,
        .M = M,
        .factor = client_factor(class, &rows),
        .multiplier = m->rows,
        .bend = m->rows + rows.count,
        .anchor = m->rows + 2 * rows.count,
    };
    const polish_question asked = {(polish_kind)kind, v[2], v[3], vector, vector + M};
    if (kind == POLISH_COMMIT && m->number == number)
        numbers[1] = m->committed;
    else
        polish_answer(&client, &asked, numbers + 1);
    m->committed = numbers[1];
    m->number = number;
    return true;
}

/* ---- the root ---- */

/* A question as it is asked again; vectors: as many as its kind has, of M numbers. */
typedef struct {
    polish_kind kind;
    double kappa, beta;
    double *vectors;
} asked;

/* The solver in a thread of its own, which is left in the middle of a question and gone on with once it is answered:
 * one of the two always waits for the other. */
struct polish_solver {
    pthread_t thread;
    sem_t go, back;
    polish_problem problem;
    polish_result found;
    double *numbers; /* the result: a head, and the model */
    asked current;   /* that the solver waits for */
    asked *past;     /* answered ones that clients keep something of, as they came */
    size_t n_past, past_room;
    bool forgets;   /* there is no room for them: a lost client means to begin anew */
    size_t again;   /* of them: the next to be asked again; n_past: none */
    double *values; /* of the question as it goes out, with its head */
    double *answer;
    uint64_t attempt, number; /* of the last one answered */
    bool solved, ended, give_up;
};

/* Numbers of all questions that are kept. */
enum { PAST_MOST = 1 << 24 };

static void wait_for(sem_t *s)
{
    while (sem_wait(s) != 0)
        continue; /* a signal came */
}

static bool ask(void *context, const polish_question *q, double *sum)
{
    polish_solver *s = context;
    const size_t M = s->problem.M, bytes = M * sizeof *sum;
    double *v = s->current.vectors;
    s->current = (asked){q->kind, q->kappa, q->beta, v};
    memset(v, 0, 2 * bytes);
    if (q->vector)
        memcpy(v, q->vector, bytes);
    if (vectors_of(q->kind) == 2)
        memcpy(v + M, q->point, bytes);
    sem_post(&s->back);
    wait_for(&s->go);
    if (s->give_up)
        return false;
    memcpy(sum, s->answer + 1, polish_length(q->kind, M) * sizeof *sum);
    return true;
}

static void *solve(void *context)
{
    polish_solver *s = context;
    wait_for(&s->go);
    s->solved = !s->give_up && polish_solve(&s->problem, s->numbers + FEDERATION_POLISH_HEAD, &s->found);
    s->ended = true;
    sem_post(&s->back);
    return NULL;
}

static void go_on(polish_solver *s)
{
    sem_post(&s->go);
    wait_for(&s->back);
}

static void forget_past(polish_solver *s)
{
    for (size_t i = 0; i < s->n_past; i++)
        free(s->past[i].vectors);
    s->n_past = 0;
}

static void solver_free_room(polish_solver *s)
{
    forget_past(s);
    free(s->past);
    free(s->current.vectors);
    free((hfsad_penalty *)s->problem.priors);
    free(s->numbers);
    free(s->values);
    free(s->answer);
    free(s);
}

static void solver_end(polish_solver *s)
{
    if (!s)
        return;
    s->give_up = true;
    while (!s->ended)
        go_on(s);
    pthread_join(s->thread, NULL);
    sem_destroy(&s->go);
    sem_destroy(&s->back);
    solver_free_room(s);
}

/* Signals are for the thread that asks whether one came. */
static bool start_thread(polish_solver *s)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    sem_init(&s->go, 0, 0);
    sem_init(&s->back, 0, 0);
    const bool started = pthread_create(&s->thread, NULL, solve, s) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

static polish_solver *solver_begin(const federation *f, uint64_t attempt, const double *w)
{
    const size_t M = f->shape->M;
    polish_solver *s = alloc_zero(1, sizeof *s);
    if (!s)
        return NULL;
    s->attempt = attempt;
    s->numbers = alloc_zero(FEDERATION_POLISH_HEAD + M, sizeof(double));
    s->values = alloc_zero(INQUIRY_POLISH_HEAD + 2 * M, sizeof(double));
    s->current.vectors = alloc_zero(2 * M, sizeof(double));
    s->answer = alloc_zero(1 + polish_longest(M, POLISH_DIRECT), sizeof(double));
    const bool made =
        polish_problem_make(&s->problem, f->p, f->shape) && s->numbers && s->values && s->answer && s->current.vectors;
    s->problem.ask = ask;
    s->problem.context = s;
    if (made)
        memcpy(s->numbers + FEDERATION_POLISH_HEAD, w, M * sizeof *w);
    if (!made || !start_thread(s)) {
        solver_free_room(s);
        return NULL;
    }
    go_on(s);
    return s;
}

static void pack(double *to, const polish_result *r)
{
    const double numbers[FEDERATION_POLISH_HEAD] = {
        r->finished ? POLISH_FINISHED : POLISH_UNFINISHED,
        r->before,
        r->after,
        r->bound,
        r->residual,
        (double)r->exchanges,
        (double)r->down,
        (double)r->up,
        (double)r->stages,
        r->zero,
    };
    memcpy(to, numbers, sizeof numbers);
}

polish_result federation_polish_result(const double *numbers)
{
    return (polish_result){
        .finished = numbers[0] == POLISH_FINISHED,
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
    return numbers[0] == POLISH_LOST        ? "a client is lost whenever it is asked"
           : numbers[0] == POLISH_NO_MEMORY ? "the cloud has not enough memory for it"
                                            : NULL;
}

/* The solver of this life, ready for this attempt; NULL: no memory. */
static polish_solver *solver_of(federation *f, uint64_t attempt, const double *w)
{
    polish_solver *s = f->solver;
    if (s && s->attempt != attempt && (s->forgets || inquiry_life(s->attempt) != inquiry_life(attempt))) {
        solver_end(s);
        s = NULL;
    }
    if (!s)
        return solver_begin(f, attempt, w);
    if (s->attempt != attempt)
        s->again = s->number = 0;
    s->attempt = attempt;
    return s;
}

static inquiry_question question_of(polish_solver *s, const asked *q)
{
    const size_t M = s->problem.M, count = vectors_of(q->kind) * M;
    const double head[INQUIRY_POLISH_HEAD] = {(double)s->attempt, (double)(s->number + 1), q->kappa, q->beta};
    memcpy(s->values, head, sizeof head);
    memcpy(s->values + INQUIRY_POLISH_HEAD, q->vectors, count * sizeof *q->vectors);
    return (inquiry_question){.kind = INQUIRY_POLISH + (int)q->kind,
                              .most = 1,
                              .sums = polish_length(q->kind, M),
                              .count = INQUIRY_POLISH_HEAD + count,
                              .values = s->values};
}

/* What a client has is made by anchors and commits, one after the other, and by the last look at the values. */
static void keep(polish_solver *s)
{
    const size_t M = s->problem.M;
    const polish_kind kind = s->current.kind;
    if (s->forgets || (kind != POLISH_ANCHOR && kind != POLISH_COMMIT && kind != POLISH_VALUE))
        return;
    for (size_t i = 0; kind == POLISH_VALUE && i < s->n_past; i++)
        if (s->past[i].kind == POLISH_VALUE) {
            free(s->past[i].vectors);
            memmove(s->past + i, s->past + i + 1, (--s->n_past - i) * sizeof *s->past);
        }
    double *vectors = (s->n_past + 1) * M <= PAST_MOST ? alloc_zero(M, sizeof *vectors) : NULL;
    s->forgets = !vectors || !alloc_grow((void **)&s->past, &s->past_room, s->n_past + 1, sizeof *s->past);
    if (s->forgets) {
        free(vectors);
        forget_past(s);
    } else {
        memcpy(vectors, s->current.vectors, M * sizeof *vectors);
        s->past[s->n_past] = s->current;
        s->past[s->n_past++].vectors = vectors;
    }
    s->again = s->n_past;
}

hfsad_status polish_resolve(void *context, inquiry_pass *pass, const double *w, double **result, size_t *count,
                            hfsad_error *err)
{
    federation *f = ((seat *)context)->f;
    const size_t M = f->shape->M;
    polish_solver *s = f->solver = solver_of(f, inquiry_attempt(pass), w);
    if (!s)
        return error_memory(err, polish_longest(M, POLISH_DIRECT) * sizeof *w, "the polish");
    while (!s->ended) {
        const bool again = s->again < s->n_past;
        const inquiry_question question = question_of(s, again ? &s->past[s->again] : &s->current);
        pass->next = (size_t)s->number;
        const hfsad_status status = inquiry_ask(pass, &question, s->answer, err);
        if (status)
            return status;
        if (s->answer[0] > 0)
            return INQUIRY_AGAIN;
        s->number++;
        if (again) {
            s->again++;
            continue;
        }
        keep(s);
        go_on(s);
    }
    if (!s->solved)
        return error_memory(err, M * sizeof *w, "the polish");
    pack(s->numbers, &s->found);
    *count = FEDERATION_POLISH_HEAD + M;
    *result = alloc_zero(*count, sizeof **result);
    if (!*result)
        return error_memory(err, *count * sizeof **result, "the polish");
    memcpy(*result, s->numbers, *count * sizeof **result);
    return HFSAD_OK;
}
