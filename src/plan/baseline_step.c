/*
 * The automatic first step size of the baselines: 1 / L, with L the largest curvature of an edge's average,
 *
 *     H = sum a_j kappa_j mean_j(x x^T) / sum a_j     over the clients of an inner node
 *
 * kappa is the second derivative of the loss in s = <x, w>; if there is none, that of a parabola with the slope nu of
 * the loss and its typical height v at the start, nu^2 / v. L of a node is the largest eigenvalue of H; if only b of
 * its n clients take part on average, it is mixed with the largest of a single client as for mini-batches (Gower et
 * al., "SGD: General Analysis and Improved Rates", 2019),
 *
 *     L = n (b - 1) / (b (n - 1)) L_node + (n - b) / (b (n - 1)) L_client
 *
 * and if a client makes several steps by itself, L is L_client. The power iterations of all nodes go on together: a
 * question has a vector for each, and a client adds to that of its parent.
 */
#include "plan/baseline_step.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/rng.h"
#include "math/dot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { POWER_STEPS = 12 };      /* accurate to about a tenth; up to twice the value is stable */
enum { GROUP_DOUBLES = 65536 }; /* numbers of a question at most */

/* What a question begins with. */
enum {
    MISFIT, /* median of |y - s|, of |y - s^2| for phase retrieval */
    SIZE,   /* median of y, if a client has phase retrieval */
    COUNT,  /* mean of y, if a client has a loss of exp(s) */
    GROUPS,
    HEAD
};

size_t baseline_step_groups(const dataset *d)
{
    return d->n_inner * (d->M + 1) <= GROUP_DOUBLES ? d->n_inner : 1;
}

/* ---- a client ---- */

static double kappa_of(const double *head, const hfsad_loss *loss)
{
    const loss_kind *kind = loss_kind_of(loss);
    if (kind->majorised) /* nu^2 = 4 s^2 = 4 y; a start that fits must not end the run */
        return head[SIZE] > 0 ? 4 * head[SIZE] / fmax(head[MISFIT], 1e-3 * head[SIZE]) : 1;
    if (kind->start == LOSS_START_LOG) /* exp(s) bends more on the way */
        return 5 * kind->likely_bend(loss, head[COUNT] > 0 ? head[COUNT] : 1);
    return kind->likely_bend(loss, head[MISFIT] > 0 ? head[MISFIT] : 1);
}

static double mass_of(const survey_client *c)
{
    return c->mean ? 1 : rows_weight(&c->rows);
}

/* next += factor * mean(x x^T) v */
static void apply(const survey_client *c, double factor, const double *v, double *next)
{
    const double weights = rows_weight(&c->rows);
    for (size_t r = 0; r < c->rows.count && weights > 0; r++)
        row_add(&c->rows, r, factor * row_weight(&c->rows, r) / weights * row_dot(&c->rows, r, v), next);
}

/* The largest eigenvalue of kappa mean(x x^T). */
static double curvature_alone(const survey_client *c, double kappa, const double *direction)
{
    double *v = c->scratch, *next = v + c->M, size = 0;
    if (c->rows.count == 1)
        return kappa * row_norm2(&c->rows, 0);
    memcpy(v, direction, c->M * sizeof *v);
    for (int step = 0; step < POWER_STEPS; step++) {
        memset(next, 0, c->M * sizeof *next);
        apply(c, kappa, v, next);
        size = sqrt(dot8(c->M, next, next));
        if (!(size > 0))
            break;
        for (size_t m = 0; m < c->M; m++)
            v[m] = next[m] / size;
    }
    return size;
}

void baseline_step_answer(const survey_client *c, const survey_question *q, double *answer)
{
    const double *head = q->values, *v = head + HEAD, kappa = kappa_of(head, &c->loss), mass = mass_of(c);
    const size_t group = head[GROUPS] > 1 ? c->parent : 0;
    if (q->kind == SURVEY_CURVE_ALONE) {
        answer[group] = curvature_alone(c, kappa, v);
        return;
    }
    double *here = answer + group * (c->M + 1);
    here[0] = mass;
    apply(c, mass * kappa, v + group * c->M, here + 1);
}

/* ---- the cloud ---- */

typedef struct {
    const dataset *d;
    const plan *p;
    const surveyor *ask;
    size_t groups;
    double *values; /* HEAD, then a vector for every group */
    double *totals; /* of an answer */
    double *alone, *node;
} step_search;

static bool has_loss(const step_search *t, bool (*is)(const hfsad_loss *))
{
    for (size_t i = 0; i < t->p->n_leaf_classes; i++)
        if (is(&t->p->leaf_classes[i].loss))
            return true;
    return false;
}

static bool is_majorised(const hfsad_loss *loss)
{
    return loss_kind_of(loss)->majorised;
}

static bool is_count(const hfsad_loss *loss)
{
    return loss_kind_of(loss)->start == LOSS_START_LOG;
}

static hfsad_status find_head(step_search *t, const double *start, hfsad_error *err)
{
    const size_t M = t->d->M;
    double sums[2], *values = alloc_zero(SURVEY_THRESHOLDS + M, sizeof *values), *head = t->values;
    if (!values)
        return error_memory(err, M * sizeof *values, "the baseline's step");
    memcpy(values + SURVEY_THRESHOLDS, start, M * sizeof *start);
    hfsad_status status =
        survey_half_point(t->ask, SURVEY_MISFIT, values, SURVEY_THRESHOLDS + M, 1, &head[MISFIT], err);
    if (!status && has_loss(t, is_majorised))
        status = survey_half_point(t->ask, SURVEY_BELOW, values, SURVEY_THRESHOLDS, 1, &head[SIZE], err);
    if (!status && has_loss(t, is_count)) {
        status = t->ask->ask(t->ask->context, &(survey_question){SURVEY_CENTRE, 0, NULL, 0, 2}, sums, err);
        head[COUNT] = sums[0] > 0 ? sums[1] / sums[0] : 0;
    }
    for (size_t i = MISFIT; i <= SIZE; i++)
        head[i] = head[i] > 0x1p-30 ? head[i] : 0; /* below all thresholds but the first */
    head[GROUPS] = (double)t->groups;
    free(values);
    return status;
}

/* For every group the direction to begin from. */
static void begin_power(step_search *t)
{
    const size_t M = t->d->M;
    rng r = {rng_key(t->p->seed, rng_stream("step")), 0};
    double size = 0, *v = t->values + HEAD;
    for (size_t m = 0; m < M; m++) {
        v[m] = rng_next_normal(&r);
        size += v[m] * v[m];
    }
    for (size_t m = 0; m < M; m++)
        v[m] /= sqrt(size);
    for (size_t g = 1; g < t->groups; g++)
        memcpy(v + g * M, v, M * sizeof *v);
}

static hfsad_status find_nodes(step_search *t, hfsad_error *err)
{
    const size_t M = t->d->M, G = t->groups;
    const survey_question curve = {SURVEY_CURVE, HEAD + G * M, t->values, 0, G * (M + 1)};
    hfsad_status status = HFSAD_OK;
    for (int step = 0; step < POWER_STEPS && !status; step++) {
        status = t->ask->ask(t->ask->context, &curve, t->totals, err);
        for (size_t g = 0; g < G && !status; g++) {
            double *next = t->totals + g * (M + 1) + 1, *v = t->values + HEAD + g * M;
            const double size = next[-1] > 0 ? sqrt(dot8(M, next, next)) / next[-1] : 0;
            t->node[g] = size;
            for (size_t m = 0; m < M && size > 0; m++)
                v[m] = next[m] / (size * next[-1]);
        }
    }
    return status;
}

/* L of inner node i; 0: it has no clients. */
static double curvature_of(const step_search *t, size_t i)
{
    const size_t first = t->d->inner[i].first_leaf, n = t->d->inner[i].n_leaves, group = t->groups > 1 ? i : 0;
    const double client = t->alone[group], node = t->node[group];
    double part = 0;
    bool alone = i == 0; /* a client of the cloud makes all the rounds of an iteration by itself */
    for (size_t leaf = first; leaf < first + n; leaf++) {
        part += fmin(1, plan_leaf(t->p, leaf)->participation);
        alone = alone || plan_leaf(t->p, leaf)->local_steps > 1;
    }
    const double b = fmax(1, part), count = (double)n;
    if (!n)
        return 0;
    if (alone || n == 1)
        return client;
    return count * (b - 1) / (b * (count - 1)) * node + (count - b) / (b * (count - 1)) * client;
}

static hfsad_status search(step_search *t, const double *start, double *step, hfsad_error *err)
{
    const survey_question alone = {SURVEY_CURVE_ALONE, HEAD + t->d->M, t->values, t->groups, 0};
    double most = 0;
    hfsad_status status = find_head(t, start, err);
    begin_power(t);
    if (!status)
        status = t->ask->ask(t->ask->context, &alone, t->alone, err);
    if (!status)
        status = find_nodes(t, err);
    for (size_t i = 0; i < t->d->n_inner && !status; i++)
        most = fmax(most, curvature_of(t, i));
    *step = most > 0 ? 1 / most : 1;
    return status;
}

hfsad_status baseline_step_find(double *step, const dataset *d, const plan *p, const double *start, const surveyor *ask,
                                hfsad_error *err)
{
    step_search t = {.d = d, .p = p, .ask = ask, .groups = baseline_step_groups(d)};
    const size_t numbers = t.groups * (d->M + 1);
    t.values = alloc_zero(HEAD + numbers, sizeof *t.values);
    t.totals = alloc_zero(numbers, sizeof *t.totals);
    t.alone = alloc_zero(t.groups, sizeof *t.alone);
    t.node = alloc_zero(t.groups, sizeof *t.node);
    hfsad_status status = t.values && t.totals && t.alone && t.node
                              ? search(&t, start, step, err)
                              : error_memory(err, numbers * sizeof *t.values, "the baseline's step");
    free(t.values);
    free(t.totals);
    free(t.alone);
    free(t.node);
    if (!status && !(isfinite(*step) && *step > 0))
        status = error_set(err, HFSAD_ERROR_INPUT,
                           "baseline.step: auto fails for data of this size; set a number, or scale the data");
    return status;
}
