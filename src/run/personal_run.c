/* Groups of a run in this process, or of its engine's; see personal_run.h. */
#include "run/personal_run.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "personal/personal_task.h"
#include "run/tree_sum.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    hfsad_run *run;
    tree_sum sum;
    const mixture_question *question;
    double *row;     /* a row for every thread; NULL if the data are in the table of rows */
    double *scratch; /* for every thread */
    bool (*proceed)(void *context);
    void *context;
} asker;

static void answer(void *context, size_t leaf, unsigned thread, double *numbers)
{
    const asker *a = context;
    const dataset *d = a->run->data;
    const mixture_client client = {
        .loss = &plan_leaf(a->run->plan, leaf)->loss,
        .rows = dataset_rows_any(d, leaf, a->row ? a->row + thread * d->M : NULL),
        .M = d->M,
        .number = leaf,
        .scratch = a->scratch + thread * mixture_scratch(d->M),
    };
    mixture_answer(&client, a->question, numbers);
}

static bool ask_mixture(void *context, const mixture_question *question, double *sum)
{
    asker *a = context;
    if (a->proceed && !a->proceed(a->context))
        return false;
    a->question = question;
    return tree_sum_ask(&a->sum, mixture_length(question, a->run->data->M), sum);
}

/* By the clients of this process; false: no memory. */
static bool find_here(asker *a, personal_problem *problem, const double *w, personal_result *found)
{
    const dataset *d = a->run->data;
    const unsigned threads = pool_threads(a->run->threads);
    a->sum = (tree_sum){
        .d = d, .threads = a->run->threads, .longest = personal_longest(problem), .answer = answer, .context = a};
    a->row = d->rows.first ? NULL : alloc_zero(threads * d->M, sizeof(double));
    a->scratch = alloc_zero(threads * mixture_scratch(d->M), sizeof(double));
    problem->ask = ask_mixture;
    problem->context = a;
    const bool done =
        tree_sum_take(&a->sum) && (a->row || d->rows.first) && a->scratch && personal_grow(problem, w, found);
    tree_sum_give_back(&a->sum);
    free(a->row);
    free(a->scratch);
    return done;
}

static hfsad_status find_groups(hfsad_run *r, asker *a, personal_result *found, const char **why, hfsad_error *err)
{
    personal_problem problem;
    const double *w = r->engine->inner_model(r, 0);
    if (r->engine->groups)
        return r->engine->groups(r, found, why, err);
    const bool done = personal_problem_make(&problem, r->spec, r->plan, r->data) && find_here(a, &problem, w, found);
    free((hfsad_penalty *)problem.priors);
    if (a->sum.over)
        return run_too_large(r, a->sum.over - 1, err);
    if (done && !found->finished)
        *why = found->broken ? PERSONAL_BROKEN : "interrupted";
    return done ? HFSAD_OK : error_memory(err, 0, "the groups");
}

hfsad_status run_find_groups(hfsad_run *r, bool (*proceed)(void *context), void *context, hfsad_error *err)
{
    const double before = clock_seconds();
    asker a = {.run = r, .proceed = proceed, .context = context};
    run_personal *to = &r->personal;
    run_ungroup(r);
    const char *why = personal_why_not(r->spec, r->plan, r->data->n_inner, r->data->M);
    hfsad_status status = why ? HFSAD_OK : find_groups(r, &a, &to->found, &why, err);
    if (why)
        run_ungroup(r);
    if (why)
        snprintf(to->reason, sizeof to->reason, "%s", why);
    to->seconds = clock_seconds() - before;
    return status;
}

bool run_is_held(const hfsad_run *r)
{
    return r->personal.found.K == 1 && r->personal.found.w && r->polish.unbounded;
}

uint32_t run_group_of(const hfsad_run *r, size_t leaf)
{
    const personal_result *g = &r->personal.found;
    return g->p ? (uint32_t)mixture_largest(g->p + leaf * g->K, g->K) : 0;
}
