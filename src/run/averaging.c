/* See averaging.h. */
#include "run/averaging.h"

#include "plan/baseline_step.h"

#include <math.h>
#include <string.h>

baseline_rule baseline_rule_with(const hfsad_spec *spec, const plan *p, double step)
{
    static const step_kind kinds[] = {
        [STEP_RULE_CONSTANT] = STEP_CONSTANT, [STEP_RULE_POWER] = STEP_POWER, [STEP_RULE_GEOMETRIC] = STEP_GEOMETRIC};
    const BASELINE_settings *s = &spec->baseline;
    const double rounds = (double)p->iterations * p->edge_rounds;
    baseline_rule rule = {{kinds[s->rule], step, s->decay}, 0};
    if (isnan(s->decay))
        rule.step.shrink = s->rule == STEP_RULE_GEOMETRIC ? pow(1e-3, 1 / fmax(rounds, 1)) : 0.5;
    if (spec->top.algorithm == ALGORITHM_FEDPROX)
        rule.rho = isnan(s->rho) ? 1 / step : s->rho;
    return rule;
}

hfsad_status baseline_rule_of(baseline_rule *rule, const hfsad_spec *spec, const dataset *d, const plan *p,
                              const double *start, const surveyor *ask, hfsad_error *err)
{
    double step = spec->baseline.step;
    const hfsad_status status = isnan(step) ? baseline_step_find(&step, d, p, start, ask, err) : HFSAD_OK;
    *rule = baseline_rule_with(spec, p, step);
    return status;
}

uint32_t averaging_least_steps(const plan *p)
{
    uint32_t least = UINT32_MAX;
    for (size_t i = 0; i < p->n_leaf_classes; i++)
        least = p->leaf_classes[i].local_steps < least ? p->leaf_classes[i].local_steps : least;
    return least;
}

/* ---- a client ---- */

double averaging_mass(const leaf_class *class, const client_rows *rows)
{
    return class->mean ? 1 : rows_weight(rows);
}

/* The step on <g, w> + rho/2 |w - anchor|^2 in closed form; for rho = 0 it is the plain one, to the bit. */
static void step_once(double t, double rho, const leaf_class *class, size_t M, size_t F, const double *anchor,
                      const double *g, double *w)
{
    const double keep = 1 / (1 + t * rho), box = class->loss.box;
    const size_t tied = M - class->rule.penalty.free;
    for (size_t m = 0; m < tied; m++)
        w[m] = keep * (w[m] - t * g[m]) + (1 - keep) * anchor[m];
    for (size_t m = tied; m < M; m++)
        w[m] -= t * g[m];
    for (size_t m = 0; m < F; m++)
        w[m] = w[m] > box ? box : w[m] < -box ? -box : w[m];
}

void averaging_step(const baseline_rule *rule, uint32_t least_steps, const leaf_class *class, const client_rows *rows,
                    size_t M, uint64_t round, const double *anchor, double *w, double *g)
{
    const rows_problem problem = {.loss = &class->loss, .rows = *rows, .M = M, .factor = 1 / rows_weight(rows)};
    const double t = step_length(&rule->step, round, 0, 0) * least_steps / class->local_steps;
    if (!(averaging_mass(class, rows) > 0))
        return;
    for (uint32_t step = class->local_steps; step > 0; step--) {
        kernels()->rows_subgradient(&problem, w, g);
        step_once(t, rule->rho, class, M, rows->F, anchor, g, w);
    }
}

/* ---- an inner node ---- */

static void prior_step(const hfsad_penalty *prior, size_t M, double step, double *w)
{
    if (penalty_is_flat(prior) || !(step > 0))
        return;
    for (size_t m = 0; m < M - prior->free; m++)
        w[m] = hfsad_penalty_prox(prior, w[m], step, 0);
}

bool averaging_mean(const hfsad_penalty *prior, double step, size_t M, size_t n,
                    averaging_part (*part)(const void *context, size_t slot), const void *context, bool intercept,
                    double *w)
{
    const size_t F = M - intercept;
    double total = 0, tied = 0;
    for (size_t slot = 0; slot < n; slot++) {
        const averaging_part c = part(context, slot);
        total += c.mass;
        tied += c.own ? 0 : c.mass;
    }
    if (!(total > 0))
        return false;
    memset(w, 0, M * sizeof *w);
    for (size_t slot = 0; slot < n; slot++) {
        const averaging_part c = part(context, slot);
        if (!(c.mass > 0))
            continue;
        const double share = c.mass / total;
        for (size_t m = 0; m < F; m++)
            w[m] += share * c.w[m];
        if (intercept && (!c.own || !(tied > 0)))
            w[F] += c.mass / (tied > 0 ? tied : total) * c.w[F];
    }
    prior_step(prior, M, step, w);
    return true;
}

/* ---- figures ---- */

double averaging_gap(size_t M, const double *w, const double *w0)
{
    double gap = 0;
    for (size_t m = 0; m < M; m++)
        gap = fabs(w[m] - w0[m]) <= gap ? gap : fabs(w[m] - w0[m]); /* not fmax, which would hide a NaN */
    return gap;
}

void averaging_measure(const leaf_class *class, const client_rows *rows, size_t M, const double *w, const double *w0,
                       link_sums *sums)
{
    const rows_problem problem = {
        .loss = &class->loss, .rows = *rows, .M = M, .factor = class->mean ? 1 / rows_weight(rows) : 1};
    sums->consensus_loss = kernels()->rows_loss(&problem, w0);
    sums->gap = averaging_gap(M - class->rule.penalty.free, w, w0);
}

bool averaging_is_finite(const hfsad_figures *f)
{
    return isfinite(f->objective + f->consensus_objective + f->consensus_gap) && !isinf(f->dual_residual);
}

/* If one figure is not finite, which of them is nan and which inf depends on the order of the sums. */
void averaging_figures(const tally *t, size_t M, size_t tiers, uint64_t iteration, hfsad_figures *f)
{
    double loss = 0, gap = 0;
    for (size_t i = 0; i < tiers; i++) {
        loss += t->tier[i].consensus_loss;
        gap = t->tier[i].gap <= gap ? gap : t->tier[i].gap;
        f->primal_tier[i] = f->dual_tier[i] = NAN;
    }
    f->iteration = iteration;
    f->tiers = tiers;
    f->objective = f->consensus_objective = loss + t->consensus_priors;
    f->consensus_gap = gap;
    f->primal_residual = f->dual_residual = f->smoothing_gap = f->gap_bound = NAN;
    f->bytes_up = (uint64_t)t->up * M * sizeof(double);
    f->bytes_down = (uint64_t)t->down * M * sizeof(double);
    if (t->broken > 0 || !averaging_is_finite(f))
        f->objective = f->consensus_objective = f->consensus_gap = NAN;
}
