/* The polish of a run in this process. */
#include "base/clock.h"
#include "polish/errors.h"
#include "polish/squares.h"
#include "polish/star_client.h"
#include "polish/task.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/ranks.h"
#include "data/features.h"
#include "run/handle.h"
#include "run/tree_sum.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    hfsad_run *run;
    double *multiplier, *bend, *anchor; /* n_rows; anchor may be NULL */
    star_client **star;                 /* n_leaves */
    polish_chosen **chosen;             /* n_leaves */
    double *row;  /* SQUARES_ROWS rows for every thread; NULL if the data are in the table of rows */
    double *line; /* M for every thread */
    tree_sum sum;
    const polish_question *question;
    int before;            /* kind of the question before it; -1: none */
    const double *resumed; /* w of star_client_resume, for which there is no question */
    double sigma;
    bool (*proceed)(void *context, const hfsad_polish *so_far);
    void *context;
    hfsad_polish *so_far;
    polish_result result;
} asker;

/* What a path's star keeps. */
struct run_star {
    double *slopes;       /* slopes_of for each row */
    star_client **client; /* n_leaves */
    size_t clients;
    star_memory memory;
};

/* Multipliers of a row. */
static size_t slopes_of(const hfsad_run *r)
{
    return plan_scores(r->plan) ? r->plan->scores.K : 1;
}

/* Numbers of the solver's model. */
static size_t coordinates(const hfsad_run *r)
{
    return owners_coordinates(r->plan, r->data);
}

/* room: for a row, if the data are not in the table of rows. */
static polish_client client_with(const asker *a, size_t leaf, double *room)
{
    const dataset *d = a->run->data;
    const size_t row = d->rows.first ? d->rows.first[leaf] : leaf;
    const leaf_class *class = plan_leaf(a->run->plan, leaf);
    polish_client client = {
        .loss = &class->loss,
        .rows = dataset_rows_any(d, leaf, room),
        .M = coordinates(a->run),
        .factor = 1,
        .multiplier = a->multiplier + row * slopes_of(a->run),
        .bend = a->bend + row * (d->classes ? d->classes : 1),
        .anchor = a->anchor ? a->anchor + row : NULL,
        .star = &a->star[leaf],
        .chosen = &a->chosen[leaf],
        .scores = plan_scores(a->run->plan),
    };
    client.rows.beyond = owners_of(a->run->plan, d, leaf);
    if (class->mean)
        client.factor = 1 / rows_weight(&client.rows);
    return client;
}

static double *room_of(const asker *a, unsigned thread)
{
    return a->row ? a->row + thread * SQUARES_ROWS * a->run->data->M : NULL;
}

static polish_client client_of(const asker *a, size_t leaf, unsigned thread)
{
    return client_with(a, leaf, room_of(a, thread));
}

static void answer_leaf(void *context, size_t leaf, unsigned thread, double *answer)
{
    asker *a = context;
    const polish_client client = client_of(a, leaf, thread);
    if (a->resumed)
        star_client_resume(&client, a->resumed, a->sigma, answer);
    else
        polish_answer(&client, a->question, answer);
}

static bool add_leaf(void *context, size_t leaf, double *sum)
{
    asker *a = context;
    const polish_client client = client_of(a, leaf, 0);
    return !a->resumed && polish_answer_added(&client, a->question, sum);
}

/* Some lines of a triangle that is a sum over clients: the threads share its lines, not the clients, whose answers of
 * this length no cache holds. */
typedef struct {
    asker *a;
    size_t first, end; /* leaves */
    size_t slices;
    double *sum;
} triangle_sum;

/* The slices have about the same size. */
static size_t slice_begin(const triangle_sum *t, size_t part)
{
    const double M = (double)coordinates(t->a->run);
    return part == t->slices ? (size_t)M : (size_t)(M * sqrt((double)part / (double)t->slices));
}

static void add_slice(void *context, size_t part, unsigned thread)
{
    const triangle_sum *t = context;
    const asker *a = t->a;
    const size_t M = coordinates(a->run), from = slice_begin(t, part), to = slice_begin(t, part + 1);
    square_rows alone = {.M = M}, together = {.M = M}; /* clients with one such row, and with several */
    for (size_t leaf = t->first; leaf < t->end; leaf++) {
        double *room = room_of(a, thread);
        const polish_client client = client_with(a, leaf, room ? room + alone.count * M : NULL);
        square_rows *s = &together;
        for (size_t r = 0; r < client.rows.count; r++) {
            const double factor = squares_factor(&client, a->question, r);
            if (!(factor > 0))
                continue;
            s->x[s->count] = client.rows.x + row_from(&client.rows, r);
            s->factor[s->count++] = factor;
        }
        if (together.count == 1) { /* the sum of one term is the term */
            alone.x[alone.count] = together.x[0];
            alone.factor[alone.count++] = together.factor[0];
            together.count = 0;
        }
        if (alone.count == SQUARES_ROWS || together.count)
            squares_add(&alone, from, to, t->sum);
        squares_add_sum(&together, from, to, a->line + thread * M, t->sum);
    }
    squares_add(&alone, from, to, t->sum);
}

/* Clients with more rows answer one by one, because each line would need all of them again. */
static bool add_many(void *context, size_t first, size_t end, double *sum)
{
    enum { LEAST = 64 };
    asker *a = context;
    const polish_question *q = a->question;
    const unsigned threads = pool_threads(a->run->threads);
    triangle_sum t = {a, first, end, threads > 1 ? 4 * threads : 1, sum};
    if (a->resumed || (q->kind != POLISH_HESSIAN && q->kind != POLISH_SQUARES) || q->chosen ||
        plan_scores(a->run->plan) || a->run->data->classes)
        return false;
    for (size_t leaf = first; leaf < end && a->run->data->rows.first; leaf++) {
        const client_rows rows = dataset_rows(a->run->data, leaf);
        if (rows.count > SQUARES_ROWS || !squares_suit(&rows))
            return false;
    }
    if (t.slices == 1 || (end - first) * coordinates(a->run) < LEAST * LEAST)
        for (size_t part = 0; part < t.slices; part++)
            add_slice(&t, part, 0);
    else
        pool_run(a->run->threads, t.slices, add_slice, &t);
    return true;
}

static void count(asker *a)
{
    polish_count(a->so_far, &a->result, a->run->data->n_leaves + a->run->data->n_inner - 1);
}

static bool ask(void *context, const polish_question *question, double *sum)
{
    asker *a = context;
    count(a);
    if (ranks_any(a->proceed && !a->proceed(a->context, a->so_far)))
        return false;
    assert(polish_may_follow(question->kind, a->before)); /* clients of a federation refuse it otherwise */
    a->question = question;
    a->before = (int)question->kind;
    return tree_sum_ask(&a->sum,
                        polish_length(question->kind, question->chosen ? question->chosen : coordinates(a->run)), sum);
}

static bool resume(void *context, const double *w, double sigma, double *sum)
{
    asker *a = context;
    a->resumed = w;
    a->sigma = sigma;
    const bool done = tree_sum_ask(&a->sum, coordinates(a->run), sum);
    a->resumed = NULL;
    return done;
}

hfsad_status run_star_keep(hfsad_run *r, hfsad_error *err)
{
    const dataset *d = r->data;
    run_star *s = r->kept = alloc_zero(1, sizeof *s);
    if (!s)
        return error_memory(err, sizeof *s, "the star of a path");
    const size_t size = star_metric_size(coordinates(r), star_is_whole(r->plan, d));
    s->clients = d->n_leaves;
    s->slopes = alloc_zero(d->n_rows * slopes_of(r), sizeof *s->slopes);
    s->client = alloc_zero(d->n_leaves, sizeof(star_client *));
    s->memory = (star_memory){.G = alloc_zero(size, sizeof(double)), .resume = resume};
    return s->slopes && s->client && s->memory.G
               ? HFSAD_OK
               : error_memory(err, (size + d->n_rows) * sizeof(double), "the star of a path");
}

void run_star_free(run_star *s)
{
    if (!s)
        return;
    for (size_t leaf = 0; s->client && leaf < s->clients; leaf++)
        star_client_free(s->client[leaf]);
    free(s->client);
    free(s->slopes);
    free(s->memory.G);
    free(s);
}

run_star_state run_star_at(hfsad_run *r)
{
    return (run_star_state){r->kept->slopes, &r->kept->memory.sigma, r->data->n_rows * slopes_of(r)};
}

static bool take_vectors(asker *a)
{
    const dataset *d = a->run->data;
    run_star *kept = a->run->kept;
    bool anchored = false;
    for (size_t leaf = 0; leaf < d->n_leaves; leaf++)
        anchored = anchored || loss_kind_of(&plan_leaf(a->run->plan, leaf)->loss)->majorised;
    a->sum = (tree_sum){.d = d,
                        .threads = a->run->threads,
                        .longest = polish_longest(coordinates(a->run), polish_direct(d)),
                        .answer = answer_leaf,
                        .add = add_leaf,
                        .add_many = add_many,
                        .context = a};
    a->multiplier = kept ? kept->slopes : alloc_zero(d->n_rows * slopes_of(a->run), sizeof(double));
    a->bend = alloc_zero(d->n_rows * (d->classes ? d->classes : 1), sizeof(double));
    a->anchor = anchored ? alloc_zero(d->n_rows, sizeof(double)) : NULL;
    a->star = kept ? kept->client : alloc_zero(d->n_leaves, sizeof(star_client *));
    a->chosen = alloc_zero(d->n_leaves, sizeof(polish_chosen *));
    a->row = d->rows.first ? NULL : alloc_zero(pool_threads(a->run->threads) * SQUARES_ROWS * d->M, sizeof(double));
    a->line = alloc_zero(pool_threads(a->run->threads) * coordinates(a->run), sizeof(double));
    return tree_sum_take(&a->sum) && a->star && a->chosen && a->multiplier && a->bend && (a->anchor || !anchored) &&
           (a->row || d->rows.first) && a->line;
}

static void give_back(asker *a)
{
    for (size_t leaf = 0; a->star && !a->run->kept && leaf < a->run->data->n_leaves; leaf++)
        star_client_free(a->star[leaf]);
    for (size_t leaf = 0; a->chosen && leaf < a->run->data->n_leaves; leaf++)
        free(a->chosen[leaf]);
    free(a->chosen);
    if (!a->run->kept) {
        free(a->star);
        free(a->multiplier);
    }
    free(a->bend);
    free(a->anchor);
    free(a->row);
    free(a->line);
    tree_sum_give_back(&a->sum);
}

static void take_polish_row(void *context, const polish_row *row)
{
    run_take_star(((asker *)context)->run, row);
}

static bool solve(asker *a, double *w)
{
    polish_problem problem;
    bool done = polish_problem_make(&problem, a->run->plan, a->run->data);
    problem.ask = ask;
    problem.context = a;
    problem.row = problem.star ? take_polish_row : NULL;
    problem.memory = a->run->kept ? &a->run->kept->memory : NULL;
    const dataset *d = a->run->data;
    if (a->run->plan->errors) {
        problem.variance = alloc_zero(d->M * (d->M + 1) / 2, sizeof *problem.variance);
        a->run->errors = alloc_zero(d->M, sizeof(double));
        done = done && problem.variance && a->run->errors;
    }
    done = done && polish_solve(&problem, w, &a->result);
    if (done && a->run->errors)
        done = errors_to_user(d, problem.variance, a->run->errors);
    free(problem.variance);
    free((hfsad_penalty *)problem.priors);
    count(a);
    return done;
}

/* The solver's model; inner nodes and clients with an intercept of their own have it in `owned`. */
static void take_model(hfsad_run *r, const double *w)
{
    if (r->owned)
        memcpy(r->owned, w, coordinates(r) * sizeof *w);
    owners_model(r->plan, r->data, 0, w, r->polished);
}

/* Where the solver begins: the cloud's model, or on a path the models that the last point has left. */
static void spread_start(const hfsad_run *r, double *w)
{
    const dataset *d = r->data;
    owners_spread(r->plan, d, run_best(r), w);
    for (size_t leaf = 0; leaf < d->n_leaves && r->kept && r->plan->owners && !d->classes; leaf++)
        w[features_weights(d) + owners_of(r->plan, d, leaf)] = sim_intercept(r->sim, leaf);
}

static void judge(hfsad_run *r, const asker *a, double objective, hfsad_polish *result)
{
    polish_judge(result, &a->result, r->data, r->plan, r->nu_f, objective);
    double *scratch = r->truth && result->accepted ? alloc_zero(r->data->M, sizeof *scratch) : NULL;
    if (scratch)
        result->relative_error =
            model_error(r->data, r->polished, r->truth, signs_are_free(r->plan, r->data->n_leaves), scratch);
    free(scratch);
}

void run_take_star_figures(hfsad_run *r, const hfsad_figures *figures, const double *w)
{
    take_model(r, w);
    r->star = *figures;
    r->has_star = true;
    if (r->star_row)
        r->star_row(r->star_context, figures);
}

void run_take_star(hfsad_run *r, const polish_row *row)
{
    const dataset *d = r->data;
    const uint64_t bytes = (d->n_leaves + d->n_inner - 1) * sizeof(double);
    hfsad_figures f = {.iteration = row->number,
                       .objective = row->objective,
                       .consensus_objective = row->objective,
                       .primal_residual = row->primal,
                       .dual_residual = row->dual,
                       .relative_error = NAN,
                       .seconds = r->seconds + clock_seconds() - r->star_begun,
                       .bytes_up = bytes * row->up,
                       .bytes_down = bytes * row->down,
                       .tiers = d->depth,
                       .gap_bound = row->bound};
    for (size_t i = 0; i < f.tiers; i++)
        f.primal_tier[i] = f.dual_tier[i] = NAN;
    double *scratch = r->truth ? alloc_zero(d->M, sizeof *scratch) : NULL;
    if (scratch)
        f.relative_error = model_error(d, row->w, r->truth, signs_are_free(r->plan, d->n_leaves), scratch);
    free(scratch);
    run_take_star_figures(r, &f, row->w);
}

/* By the clients of this process; false: no memory. */
static bool solve_here(asker *a, double *w)
{
    const bool done = take_vectors(a) && solve(a, w);
    give_back(a);
    return done;
}

static hfsad_status polish(hfsad_run *r, asker *a, hfsad_polish *result, hfsad_error *err)
{
    hfsad_figures figures;
    const char *why = NULL;
    (void)r->engine->measure(r, &figures, NULL); /* a failure shows at the next row */
    double *w = alloc_zero(coordinates(r), sizeof *w);
    r->owned = r->plan->owners ? alloc_zero(coordinates(r), sizeof *w) : NULL;
    r->polished = alloc_zero(r->data->M, sizeof *r->polished);
    bool done = w && r->polished && (r->owned || !r->plan->owners);
    if (done)
        spread_start(r, w);
    if (r->unpolished) {
        why = polish_failure(r->unpolished);
        count(a);
    } else if (done && r->engine->polish) {
        const hfsad_status status = r->engine->polish(r, w, &a->result, &why, err);
        if (status) {
            free(w);
            return status;
        }
        count(a);
    } else {
        done = done && solve_here(a, w);
    }
    if (done && !(why && r->has_star)) /* a star that was interrupted has left its last row */
        take_model(r, w);
    free(w);
    if (why)
        snprintf(result->reason, sizeof result->reason, "%s", why);
    if (why && r->has_star) { /* how far it has come */
        result->accepted = true;
        result->gap = r->star.gap_bound;
        result->objective_after = r->star.objective;
    }
    if (why)
        return HFSAD_OK;
    if (a->sum.over)
        return run_too_large(r, a->sum.over - 1, err);
    if (done)
        judge(r, a, figures.objective, result);
    return done ? HFSAD_OK : error_memory(err, 2 * r->data->n_rows * sizeof(double), "the polish");
}

hfsad_status run_polish(hfsad_run *r, bool (*proceed)(void *context, const hfsad_polish *so_far), void *context,
                        hfsad_polish *result, hfsad_error *err)
{
    const double before = clock_seconds();
    const char *reason = r->algorithm->links ? plan_why_apart(r->plan, r->data->n_inner) : r->algorithm->unpolished;
    asker a = {.run = r, .before = -1, .proceed = proceed, .context = context, .so_far = result};
    *result = (hfsad_polish){
        .objective_before = NAN, .objective_after = NAN, .gap = NAN, .residual = NAN, .relative_error = NAN};
    run_unpolish(r);
    r->star_begun = before;
    if (reason)
        snprintf(result->reason, sizeof result->reason, "%s", reason);
    const hfsad_status status = reason ? HFSAD_OK : polish(r, &a, result, err);
    if (!result->accepted)
        run_unpolish(r);
    result->seconds = clock_seconds() - before;
    r->polish = *result;
    return status;
}

hfsad_status hfsad_run_polish(hfsad_run *r, bool (*proceed)(void *context, const hfsad_polish *so_far), void *context,
                              const hfsad_polish **result, hfsad_error *err)
{
    hfsad_polish found;
    if (result)
        *result = &r->polish;
    return run_polish(r, proceed, context, &found, err);
}
