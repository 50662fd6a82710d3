/* The centralized baseline; see subgradient.h. */
#include "run/subgradient.h"

#include "base/alloc.h"
#include "base/error.h"
#include "math/dot.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

double step_length(const step_rule *rule, uint64_t done, double excess, double norm)
{
    switch (rule->kind) {
    case STEP_GEOMETRIC:
        return rule->size * pow(rule->shrink, (double)done);
    case STEP_POWER:
        return rule->size / pow((double)(done + 1), rule->shrink);
    case STEP_POLYAK:
        return excess > 0 ? rule->size * excess / norm : 0;
    case STEP_CONSTANT:
        return rule->size;
    }
    return 0;
}

hfsad_status central_problem_create(central_problem **out, const dataset *d, const hfsad_loss *loss,
                                    const hfsad_penalty *prior, hfsad_error *err)
{
    central_problem *p = calloc(1, sizeof *p);
    if (p) {
        *p = (central_problem){.n = d->n_leaves, .M = d->M, .loss = *loss, .prior = *prior};
        p->x = alloc_raw(d->n_leaves * d->M, sizeof(double)); /* no larger than d->x, so the product is safe */
        p->y = alloc_raw(d->n_leaves, sizeof(double));
    }
    if (!p || !p->x || !p->y) {
        central_problem_free(p);
        return error_memory(err, d->n_leaves * (d->M + 1) * sizeof(double), "the rows of the sub-gradient method");
    }
    for (size_t i = 0; i < d->n_leaves; i++) {
        dataset_gather(d, dataset_x(d), i, p->x + i * d->M);
        p->y[i] = d->y[i];
    }
    *out = p;
    return HFSAD_OK;
}

void central_problem_free(central_problem *p)
{
    if (!p)
        return;
    free(p->x);
    free(p->y);
    free(p);
}

static void add_scaled(size_t M, double *restrict sum, double factor, const double *restrict x)
{
    for (size_t m = 0; m < M; m++)
        sum[m] += factor * x[m];
}

double central_objective(const central_problem *p, const double *w, double *g)
{
    double value = 0;
    for (size_t m = 0; m < p->M; m++) {
        value += hfsad_penalty_value(&p->prior, w[m], 0);
        if (g) /* smoothed on less than the smallest number: the slope itself, and 0 at 0 */
            g[m] = hfsad_penalty_gradient(&p->prior, w[m], DBL_MIN);
    }
    for (size_t i = 0; i < p->n; i++) {
        const double *x = p->x + i * p->M;
        const double s = dot8(p->M, x, w);
        value += hfsad_loss_value(&p->loss, p->y[i], s);
        if (g)
            add_scaled(p->M, g, hfsad_loss_slope(&p->loss, p->y[i], s), x);
    }
    return value;
}

void subgradient_step(const central_problem *p, const step_rule *rule, double target, uint64_t done, double *w,
                      double *g)
{
    const double excess = central_objective(p, w, g) - target;
    const double norm = sqrt(dot8(p->M, g, g));
    if (norm == 0)
        return; /* stationary */
    const double factor = step_length(rule, done, excess, norm) / norm, box = p->loss.box;
    for (size_t m = 0; m < p->M; m++)
        w[m] = fmax(-box, fmin(box, w[m] - factor * g[m]));
}
