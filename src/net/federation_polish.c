/*
 * The polish in a federation: the cloud's solver asks through the tree, as the set-up does, and clients keep their
 * rows' multipliers from question to question. A client that has not had the question before, since it was killed, says
 * so, and the polish begins again: it is short, and its end does not depend on how often.
 */
#include "net/federation_parts.h"

#include "base/alloc.h"
#include "base/error.h"
#include "model/features.h"
#include "plan/client.h"
#include "polish/task.h"

#include <stdlib.h>
#include <string.h>

struct polish_memory {
    uint64_t attempt, number; /* of the last question */
    double committed;         /* the last POLISH_COMMIT's answer, which cannot be made twice */
    double rows[];            /* multiplier, bend, anchor of each */
};

bool federation_polishes(const federation *f, const plan *p)
{
    return f->spec->run.polish == 1 && !polish_why_not(p, f->shape->n_inner);
}

size_t polish_message_most(const federation *f)
{
    const size_t M = features_count(f->shape) + 1, answer = 1 + polish_longest(M, POLISH_DIRECT),
                 question = INQUIRY_POLISH_HEAD + 2 * M;
    return f->spec->run.polish != 1 ? 0 : answer > question ? answer : question;
}

void polish_forget(federation *f)
{
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
    const size_t count = INQUIRY_POLISH_HEAD + (kind == POLISH_LINE ? 2 : 1) * M;
    if (!f->result || kind > POLISH_COMMIT || question->count != count || question->most != 1 ||
        question->sums != polish_length((polish_kind)kind, M))
        return false;
    const double *v = question->values, *vector = v + INQUIRY_POLISH_HEAD;
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

typedef struct {
    inquiry_pass *pass;
    size_t M;
    uint64_t number;
    double *question, *answer;
    hfsad_status status; /* why ask gave up */
    hfsad_error *err;
} asker;

static bool ask(void *context, const polish_question *q, double *sum)
{
    asker *a = context;
    const size_t M = a->M, sums = polish_length(q->kind, M), vectors = q->kind == POLISH_LINE ? 2 : 1;
    double *v = a->question;
    v[0] = (double)inquiry_attempt(a->pass);
    v[1] = (double)++a->number;
    v[2] = q->kappa;
    v[3] = q->beta;
    memset(v + INQUIRY_POLISH_HEAD, 0, 2 * M * sizeof *v);
    if (q->vector)
        memcpy(v + INQUIRY_POLISH_HEAD, q->vector, M * sizeof *v);
    if (vectors == 2)
        memcpy(v + INQUIRY_POLISH_HEAD + M, q->point, M * sizeof *v);
    const inquiry_question question = {.kind = INQUIRY_POLISH + (int)q->kind,
                                       .most = 1,
                                       .sums = sums,
                                       .count = INQUIRY_POLISH_HEAD + vectors * M,
                                       .values = v};
    a->status = inquiry_ask(a->pass, &question, a->answer, a->err);
    if (!a->status && a->answer[0] > 0)
        a->status = INQUIRY_AGAIN;
    if (a->status)
        return false;
    memcpy(sum, a->answer + 1, sums * sizeof *sum);
    return true;
}

static void pack(double *to, const polish_result *r)
{
    const double numbers[FEDERATION_POLISH_HEAD] = {
        r->before,       r->after,      r->bound,          r->residual, (double)r->exchanges,
        (double)r->down, (double)r->up, (double)r->stages, r->finished,
    };
    memcpy(to, numbers, sizeof numbers);
}

polish_result federation_polish_result(const double *numbers)
{
    return (polish_result){
        .before = numbers[0],
        .after = numbers[1],
        .bound = numbers[2],
        .residual = numbers[3],
        .exchanges = (uint64_t)numbers[4],
        .down = (uint64_t)numbers[5],
        .up = (uint64_t)numbers[6],
        .stages = (uint32_t)numbers[7],
        .finished = numbers[8] > 0,
    };
}

hfsad_status polish_resolve(void *context, inquiry_pass *pass, const double *w, double **result, size_t *count,
                            hfsad_error *err)
{
    const federation *f = ((seat *)context)->f;
    const size_t M = f->shape->M;
    polish_problem problem;
    polish_result found;
    asker a = {.pass = pass, .M = M, .err = err};
    double *numbers = alloc_zero(FEDERATION_POLISH_HEAD + M, sizeof *numbers);
    a.question = alloc_zero(INQUIRY_POLISH_HEAD + 2 * M, sizeof *a.question);
    a.answer = alloc_zero(1 + polish_longest(M, POLISH_DIRECT), sizeof *a.answer);
    bool done = polish_problem_make(&problem, f->p, f->shape) && numbers && a.question && a.answer;
    problem.ask = ask;
    problem.context = &a;
    if (done) {
        memcpy(numbers + FEDERATION_POLISH_HEAD, w, M * sizeof *w);
        done = polish_solve(&problem, numbers + FEDERATION_POLISH_HEAD, &found);
    }
    free((hfsad_penalty *)problem.priors);
    free(a.question);
    free(a.answer);
    if (!done || a.status) {
        free(numbers);
        return a.status ? a.status : error_memory(err, M * sizeof *numbers, "the polish");
    }
    pack(numbers, &found);
    *result = numbers;
    *count = FEDERATION_POLISH_HEAD + M;
    return HFSAD_OK;
}
