/*
 * The safeguard. An edge link's multiplier is bounded by the link's weight, which the presets choose so large that at a
 * solution multipliers are a few hundredths of it. Where c is too small for the number of edge rounds, the multipliers
 * run off towards the bound instead, since they add up what w_0, at rest meanwhile, does not answer. So:
 *
 *     strain = mean of |Lambda| / weight over the links of inner nodes
 *     step   = |w_0 - w_0 of the iteration before|
 *
 * A large strain alone may be a solution's, where the clients of an edge all pull one way; steps may be large for long,
 * where few clients take part. An iteration is wild if the strain is large and the step is twice as large as any of the
 * first ones, or is large and leads to a w_0 beyond all likely sizes. After wild iterations in a row, or where w_0 is
 * not finite, c of these links is tripled, and the run begins anew at the w_0 of the last quiet iteration. Links that
 * are meant to reach their bound are not looked at (plan.c: watched).
 */
#include "sim/state.h"

#include <math.h>
#include <string.h>

static const double STRAIN_MOST = 0.1, STRAIN_QUIET = 0.03, STEP_QUIET = 0.03, SIZE_MOST = 10;
enum { FIRST = 5, WILD_MOST = 2, REPAIRS_MOST = 6 };

hfsad_link_rule sim_inner_rule(const sim *s, size_t i)
{
    hfsad_link_rule rule = s->p->inner[i].rule;
    for (uint64_t n = 0; n < s->repairs; n++)
        rule.schedule.c *= 3;
    return rule;
}

uint64_t sim_repairs(const sim *s, uint64_t *last_iteration)
{
    *last_iteration = s->repaired_last;
    return s->repairs;
}

static double strain_of(const sim *s)
{
    double sum = 0;
    size_t count = 0;
    for (size_t i = 1; i < s->d->n_inner; i++) {
        const inner_class *class = &s->p->inner[i];
        const hfsad_link link = inner_link(s, i);
        if (!class->watched || link.k == 0)
            continue;
        const double inv_mu = 1 / hfsad_schedule_mu(&class->rule.schedule, link.k);
        const size_t tied = s->M - class->rule.penalty.free;
        for (size_t m = 0; m < tied; m++)
            sum += fmin(fabs(link.q[m] - link.z[m]) * inv_mu, 1);
        count += tied;
    }
    return count ? sum / (double)count : 0;
}

static double distance(size_t M, const double *a, const double *b)
{
    double sum = 0;
    for (size_t m = 0; m < M; m++)
        sum += (a[m] - (b ? b[m] : 0)) * (a[m] - (b ? b[m] : 0));
    return sqrt(sum);
}

/* All nodes at w, multipliers 0, counters 0. The clients' numbers of many rows are those of a new run. */
static void begin_anew(sim *s, const double *w)
{
    const dataset *d = s->d;
    for (size_t i = 0; i < d->n_inner + d->n_leaves; i++)
        sim_place(s, i, w);
    memset(s->k, 0, d->n_leaves * sizeof *s->k);
    for (size_t i = 0; i < d->n_inner; i++)
        s->inner[i].k = 0;
    if (s->many.slope)
        memset(s->many.slope, 0, d->n_rows * sizeof *s->many.slope);
    if (s->many.eta)
        memset(s->many.eta, 0, d->n_leaves * sizeof *s->many.eta);
}

static bool is_wild(const sim *s, double strain, double step, double size)
{
    if (s->iteration <= s->repaired_last + FIRST || strain <= STRAIN_MOST)
        return false;
    return step > 2 * s->first_step || (step > STEP_QUIET * size && size > SIZE_MOST * s->p->length);
}

void sim_guard(sim *s)
{
    if (!s->calm)
        return;
    const double strain = strain_of(s), size = distance(s->M, s->inner_w, NULL);
    const double step = distance(s->M, s->inner_w, s->before);
    s->wild = is_wild(s, strain, step, size) ? s->wild + 1 : 0;
    if (s->iteration <= s->repaired_last + FIRST)
        s->first_step = fmax(s->iteration == s->repaired_last + 1 ? 0 : s->first_step, step);
    memcpy(s->before, s->inner_w, s->M * sizeof *s->before);
    if (strain <= STRAIN_QUIET && step <= STEP_QUIET * size)
        memcpy(s->calm, s->inner_w, s->M * sizeof *s->calm);
    if ((isfinite(size) && s->wild < WILD_MOST) || s->repairs == REPAIRS_MOST)
        return;
    s->repairs++;
    s->repaired_last = s->iteration;
    s->wild = 0;
    memcpy(s->before, s->calm, s->M * sizeof *s->before);
    begin_anew(s, s->calm);
}
