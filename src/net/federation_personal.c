/*
 * The groups in a federation: after the polish the cloud asks through the tree, as the set-up does. A question has
 * everything that its answer depends on, so a client that is restarted in between is asked again and answers the same.
 */
#include "net/federation_parts.h"

#include "base/alloc.h"
#include "data/features.h"
#include "personal/personal_task.h"

#include <stdlib.h>
#include <string.h>

/* The groups as numbers: these, then of every possible group its share, its model and its size, then the
 * clients' weights. */
enum { FINISHED, GROUPS, SCALE, EXCHANGES, DOWN, UP, GAIN, HEAD };

static size_t most_groups(const federation *f)
{
    return (size_t)f->spec->groups.most;
}

size_t federation_groups_numbers(const federation *f, const plan *p)
{
    const dataset *d = f->shape;
    if (!personal_is_due(f->spec) || personal_why_not(f->spec, p, d->n_inner, d->M))
        return 0;
    return HEAD + most_groups(f) * (2 + d->M + (spec_shows_clients(f->spec) ? d->n_leaves : 0));
}

size_t personal_message_most(const federation *f)
{
    const size_t M = features_count(f->shape) + 1, K = most_groups(f);
    if (!personal_is_due(f->spec) || M > PERSONAL_COORDINATES + 1)
        return 0;
    const personal_problem problem = {.M = M, .most = K};
    const size_t answer = personal_longest(&problem);
    const mixture_question longest = {.kind = MIXTURE_CROSS, .now.K = K, .from.K = K};
    const size_t question = mixture_count(&longest, M) + K * (M + 1);
    return answer > question ? answer : question;
}

/* ---- a client ---- */

static void open_client(const federation *f, size_t leaf, double *scratch, mixture_client *client)
{
    *client = (mixture_client){
        .loss = &plan_leaf(f->p, leaf)->loss,
        .rows = federation_client_rows(f, leaf),
        .M = f->shape->M,
        .number = leaf,
        .scratch = scratch,
    };
}

bool personal_client_answer(seat *at, const inquiry_question *question, double *numbers)
{
    federation *f = at->f;
    const size_t M = f->shape->M, kind = (size_t)(question->kind - INQUIRY_GROUPS);
    mixture_question q;
    if (!f->result || kind >= MIXTURE_KINDS ||
        !mixture_unpack(&q, (mixture_kind)kind, M, question->values, question->count) || question->most != 0 ||
        question->sums != mixture_length(&q, M))
        return false;
    if (q.kind == MIXTURE_SIZES || q.kind == MIXTURE_MEMBERS) { /* the last ones */
        hfsad_error err;
        if (kept_groups_put(&f->groups, f->folder, f->run, question->values, question->count, &err)) {
            at->why_not = "the models of the groups cannot be stored";
            return false;
        }
    }
    double *scratch = alloc_zero(mixture_scratch(M), sizeof *scratch);
    mixture_client client;
    open_client(f, at->leaf, scratch, &client);
    if (scratch)
        mixture_answer(&client, &q, numbers);
    free(scratch);
    return scratch != NULL; /* otherwise it will be asked again */
}

hfsad_status federation_own_groups(federation *f, mixture *m, hfsad_error *err)
{
    *m = (mixture){0};
    if (!personal_is_due(f->spec))
        return HFSAD_OK;
    mixture_question q;
    const hfsad_status status = kept_groups_get(&f->groups, f->folder, f->run, personal_message_most(f), err);
    if (!status && f->groups.count &&
        mixture_unpack(&q, MIXTURE_SIZES, f->shape->M, f->groups.numbers, f->groups.count))
        *m = q.now;
    return status;
}

bool federation_own_model(const federation *f, size_t leaf, const mixture *m, double *p, double *w)
{
    const size_t M = f->shape->M;
    double *scratch = alloc_zero(mixture_scratch(M), sizeof *scratch);
    mixture_client client;
    open_client(f, leaf, scratch, &client);
    if (scratch) {
        mixture_weights(&client, m, p);
        mixture_model(m, M, p, w);
    }
    free(scratch);
    return scratch != NULL;
}

/* ---- the root ---- */

typedef struct {
    inquiry *q;
    const inquiry_turns *turns;
    size_t M;
    uint64_t round;
    double *values; /* of the question as it goes out */
    hfsad_status status;
    hfsad_error *err;
} asker;

static bool ask_mixture(void *context, const mixture_question *q, double *sum)
{
    asker *a = context;
    mixture_pack(q, a->M, a->values);
    const inquiry_question question = {.kind = INQUIRY_GROUPS + (int)q->kind,
                                       .sums = mixture_length(q, a->M),
                                       .count = mixture_count(q, a->M),
                                       .values = a->values};
    a->status = inquiry_ask(a->q, ++a->round, &question, a->turns, sum, a->err);
    return !a->status;
}

static void pack(const federation *f, const personal_result *r, double *to)
{
    const size_t M = f->shape->M, most = most_groups(f);
    const double head[HEAD] = {r->broken ? -1 : r->finished,
                               (double)r->K,
                               r->T,
                               (double)r->exchanges,
                               (double)r->down,
                               (double)r->up,
                               r->gain};
    memcpy(to, head, sizeof head);
    if (!r->finished)
        return;
    memcpy(to + HEAD, r->share, r->K * sizeof *to);
    memcpy(to + HEAD + most, r->w, r->K * M * sizeof *to);
    for (size_t k = 0; k < r->K; k++)
        to[HEAD + most * (1 + M) + k] = (double)r->size[k];
    if (r->p)
        memcpy(to + HEAD + most * (2 + M), r->p, r->K * f->shape->n_leaves * sizeof *to);
}

const char *federation_groups_take(const federation *f, const double *numbers, personal_result *r)
{
    const size_t M = f->shape->M, most = most_groups(f), n = f->shape->n_leaves, K = (size_t)numbers[GROUPS];
    *r = (personal_result){.K = K,
                           .T = numbers[SCALE],
                           .exchanges = (uint64_t)numbers[EXCHANGES],
                           .down = (uint64_t)numbers[DOWN],
                           .up = (uint64_t)numbers[UP],
                           .gain = numbers[GAIN],
                           .finished = numbers[FINISHED] > 0};
    if (!r->finished)
        return numbers[FINISHED] < 0 ? PERSONAL_BROKEN : "the cloud does not have enough memory";
    const bool members = spec_shows_clients(f->spec) && K > 1;
    r->w = alloc_zero(K * M, sizeof *r->w);
    r->p = members ? alloc_zero(n * K, sizeof *r->p) : NULL;
    if (!r->w || (members && !r->p))
        return "the cloud does not have enough memory";
    memcpy(r->share, numbers + HEAD, K * sizeof *r->share);
    memcpy(r->w, numbers + HEAD + most, K * M * sizeof *r->w);
    for (size_t k = 0; k < K; k++)
        r->size[k] = (uint64_t)numbers[HEAD + most * (1 + M) + k];
    if (members)
        memcpy(r->p, numbers + HEAD + most * (2 + M), n * K * sizeof *r->p);
    return NULL;
}

hfsad_status federation_groups_from(const federation *f, inquiry *q, const inquiry_turns *turns, uint64_t attempt,
                                    const double *w, double *numbers, hfsad_error *err)
{
    asker a = {.q = q, .turns = turns, .M = f->shape->M, .round = attempt << INQUIRY_ATTEMPT_BIT, .err = err};
    personal_problem problem;
    personal_result found = {0};
    a.values = alloc_zero(personal_message_most(f), sizeof *a.values);
    bool done = personal_problem_make(&problem, f->spec, f->p, f->shape) && a.values;
    problem.ask = ask_mixture;
    problem.context = &a;
    done = done && personal_grow(&problem, w, &found);
    found.finished = found.finished && done;
    pack(f, &found, numbers);
    personal_free(&found);
    free((hfsad_penalty *)problem.priors);
    free(a.values);
    return a.status == HFSAD_ERROR_MEMORY ? HFSAD_OK : a.status; /* for lack of memory only the groups are given up */
}
