/*
 * The polish of a run in this process: asks all clients of the tree and adds their answers up as in plan/survey.h, of a
 * node the inner children's sums in their order, then its leaves'.
 */
#include "polish/polish.h"

#include "base/alloc.h"
#include "base/error.h"
#include "model/features.h"
#include "sim/run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WAVE_DOUBLES = 1 << 20, WAVE_LEAST = 64 }; /* answers that are held at once */
enum { WORTH_A_THREAD = 8192 };                   /* numbers of rows */
enum { DIRECT = 512 };                            /* coordinates up to which a second derivative is sent */

typedef struct {
    hfsad_run *run;
    double *multiplier, *bend, *anchor; /* n_rows; anchor may be NULL */
    double *row;                        /* a row for every thread; NULL where the data is in the table of rows */
    double *total;                      /* sum of a node for every depth */
    double *answers;
    size_t wave, first; /* leaves asked at once, and the first of them */
    const polish_question *question;
    size_t length;
    bool (*proceed)(void *context, const hfsad_polish *so_far);
    void *context;
    hfsad_polish *so_far;
    polish_result result;
} asker;

static void answer_leaf(void *context, size_t item, unsigned thread)
{
    asker *a = context;
    const dataset *d = a->run->data;
    const size_t leaf = a->first + item, row = d->rows.first ? d->rows.first[leaf] : leaf;
    const leaf_class *class = plan_leaf(a->run->plan, leaf);
    polish_client client = {
        .loss = &class->loss,
        .rows = dataset_rows_any(d, leaf, a->row ? a->row + thread * d->M : NULL),
        .M = d->M,
        .factor = 1,
        .multiplier = a->multiplier + row,
        .bend = a->bend + row,
        .anchor = a->anchor ? a->anchor + row : NULL,
    };
    if (class->mean)
        client.factor = 1 / rows_weight(&client.rows);
    polish_answer(&client, a->question, a->answers + item * a->length);
}

static void answer_leaves(asker *a, size_t count)
{
    const dataset *d = a->run->data;
    const size_t rows = d->rows.first ? d->rows.first[a->first + count] - d->rows.first[a->first] : count;
    if (rows * d->M >= WORTH_A_THREAD)
        pool_run(a->run->threads, count, answer_leaf, a);
    else
        for (size_t i = 0; i < count; i++)
            answer_leaf(a, i, 0);
}

static void add_leaves(asker *a, const inner_node *node, double *sum)
{
    for (size_t done = 0; done < node->n_leaves; done += a->wave) {
        const size_t left = node->n_leaves - done, count = left < a->wave ? left : a->wave;
        a->first = node->first_leaf + done;
        answer_leaves(a, count);
        for (size_t i = 0; i < count; i++)
            for (size_t m = 0; m < a->length; m++)
                sum[m] += a->answers[i * a->length + m];
    }
}

/* A tree is no deeper than HFSAD_TIERS_MAX. */
static void sum_node(asker *a, const inner_node *node, double *sum)
{
    double *below = sum + a->length;
    memset(sum, 0, a->length * sizeof *sum);
    for (uint32_t c = 0; c < node->n_inner; c++) {
        sum_node(a, &a->run->data->inner[node->first_inner + c], below);
        for (size_t m = 0; m < a->length; m++)
            sum[m] += below[m];
    }
    add_leaves(a, node, sum);
}

static void count(asker *a)
{
    const uint64_t links = a->run->data->n_leaves + a->run->data->n_inner - 1;
    a->so_far->exchanges = a->result.exchanges;
    a->so_far->bytes_down = links * a->result.down * sizeof(double);
    a->so_far->bytes_up = links * a->result.up * sizeof(double);
    a->so_far->objective_before = a->result.before;
    a->so_far->objective_after = a->result.after;
}

static bool ask(void *context, const polish_question *question, double *sum)
{
    asker *a = context;
    count(a);
    if (a->proceed && !a->proceed(a->context, a->so_far))
        return false;
    a->question = question;
    a->length = polish_length(question->kind, a->run->data->M);
    sum_node(a, &a->run->data->inner[0], a->total);
    memcpy(sum, a->total, a->length * sizeof *sum);
    return true;
}

/* Why the run's problem is not that of one model for all; NULL: it is. */
static const char *why_not(const hfsad_run *r)
{
    if (!r->engine->links)
        return "algorithm: only hfsad is polished";
    for (size_t leaf = 0; leaf < r->data->n_leaves; leaf++)
        if (plan_leaf(r->plan, leaf)->loss.kind == HFSAD_LOSS_OWN)
            return "loss.kind: nothing is known of a program's own loss but what it answers";
    for (size_t i = 0; i < r->plan->n_leaf_classes + r->data->n_inner; i++) {
        const size_t inner = i - r->plan->n_leaf_classes;
        if (i == r->plan->n_leaf_classes)
            continue; /* the cloud has no link */
        const hfsad_penalty *p =
            i < r->plan->n_leaf_classes ? &r->plan->leaf_classes[i].rule.penalty : &r->plan->inner[inner].rule.penalty;
        if (penalty_lets_go(p))
            return "link: mcp and scad let nodes keep models of their own";
        if (!(hfsad_penalty_slope(p) > 0) || p->kind == HFSAD_PENALTY_NONE)
            return "link: some nodes are not tied to each other";
        if (p->free)
            return "features.intercept: clients or edges have intercepts of their own";
    }
    return NULL;
}

static bool take_room(asker *a)
{
    const dataset *d = a->run->data;
    bool anchored = false;
    for (size_t leaf = 0; leaf < d->n_leaves; leaf++)
        anchored = anchored || plan_leaf(a->run->plan, leaf)->loss.kind == HFSAD_LOSS_PHASE_RETRIEVAL;
    const size_t length = polish_longest(d->M, DIRECT);
    a->wave = WAVE_DOUBLES / length > WAVE_LEAST ? WAVE_DOUBLES / length : WAVE_LEAST;
    a->wave = a->wave < d->n_leaves ? a->wave : d->n_leaves;
    a->multiplier = alloc_zero(d->n_rows, sizeof(double));
    a->bend = alloc_zero(d->n_rows, sizeof(double));
    a->anchor = anchored ? alloc_zero(d->n_rows, sizeof(double)) : NULL;
    a->row = d->rows.first ? NULL : alloc_zero(pool_threads(a->run->threads) * d->M, sizeof(double));
    a->total = alloc_zero((d->depth + 1) * length, sizeof(double));
    a->answers = alloc_zero(a->wave * length, sizeof(double));
    return a->multiplier && a->bend && (a->anchor || !anchored) && (a->row || d->rows.first) && a->total && a->answers;
}

static void give_back(asker *a)
{
    free(a->multiplier);
    free(a->bend);
    free(a->anchor);
    free(a->row);
    free(a->total);
    free(a->answers);
}

/* Of all clients the smallest, since they share one model. */
static double box_of(const plan *p)
{
    double box = INFINITY;
    for (size_t c = 0; c < p->n_leaf_classes; c++)
        box = fmin(box, p->leaf_classes[c].loss.box);
    return box;
}

static bool solve(asker *a, double *w)
{
    const dataset *d = a->run->data;
    hfsad_penalty *priors = alloc_zero(d->n_inner, sizeof *priors);
    if (!priors)
        return false;
    for (size_t i = 0; i < d->n_inner; i++)
        priors[i] = a->run->plan->inner[i].prior;
    const polish_problem problem = {
        .M = d->M,
        .boxed = features_count(d),
        .box = box_of(a->run->plan),
        .n_priors = d->n_inner,
        .priors = priors,
        .direct = DIRECT,
        .anchored = a->anchor != NULL,
        .ask = ask,
        .context = a,
    };
    const bool done = polish_solve(&problem, w, &a->result);
    free(priors);
    count(a);
    return done;
}

/* Whether the weights are those by which Theorem 1 ties everybody: then a run's lower objective of models that differ
 * is what the links still give, or, for phase retrieval, whose bound is the paper's number, an outlier's own fit. */
static bool ties(const hfsad_run *r)
{
    theorem_report t;
    theorem_check(&t, r->data, r->plan, r->nu_f);
    const double most = 1 - 1e-12;
    return t.links_are_tv && t.client_weight >= most * t.client_weight_needed &&
           (r->data->n_inner == 1 || t.edge_weight >= most * t.edge_weight_needed);
}

/* Whether w may take the place of the run's models, whose objective is `run`. */
static void judge(hfsad_run *r, const asker *a, double run, hfsad_polish *result)
{
    const polish_result *found = &a->result;
    if (!found->finished)
        snprintf(result->reason, sizeof result->reason, "interrupted");
    else if (!isfinite(found->after) || found->after > found->before)
        snprintf(result->reason, sizeof result->reason, "no better model was found");
    else if (!ties(r) && found->after > run + 1e-9 * fabs(run))
        snprintf(
            result->reason, sizeof result->reason,
            "link: the run's own models, which differ, have the lower objective %.9g; larger weights would tie them",
            run);
    else
        result->accepted = true;
    result->gap = found->bound;
    result->residual = found->residual;
    if (r->truth && result->accepted)
        result->relative_error =
            model_error(r->data, r->polished, r->truth, signs_are_free(r->plan, r->data->n_leaves), a->answers);
}

static hfsad_status polish(hfsad_run *r, asker *a, hfsad_polish *result, hfsad_error *err)
{
    hfsad_figures figures;
    r->engine->measure(r, &figures);
    r->polished = alloc_zero(r->data->M, sizeof *r->polished);
    bool done = r->polished && take_room(a);
    if (done)
        memcpy(r->polished, r->engine->inner_model(r, 0), r->data->M * sizeof *r->polished);
    done = done && solve(a, r->polished);
    if (done)
        judge(r, a, figures.objective, result);
    give_back(a);
    return done ? HFSAD_OK : error_memory(err, 2 * r->data->n_rows * sizeof(double), "the polish");
}

hfsad_status hfsad_run_polish(hfsad_run *r, bool (*proceed)(void *context, const hfsad_polish *so_far), void *context,
                              hfsad_polish *result, hfsad_error *err)
{
    const double before = run_clock();
    const char *reason = why_not(r);
    asker a = {.run = r, .proceed = proceed, .context = context, .so_far = result};
    *result = (hfsad_polish){
        .objective_before = NAN, .objective_after = NAN, .gap = NAN, .residual = NAN, .relative_error = NAN};
    run_unpolish(r);
    if (reason)
        snprintf(result->reason, sizeof result->reason, "%s", reason);
    const hfsad_status status = reason ? HFSAD_OK : polish(r, &a, result, err);
    if (!result->accepted)
        run_unpolish(r);
    result->seconds = run_clock() - before;
    r->polish = *result;
    return status;
}
