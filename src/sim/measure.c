/* The figures of a trace's row (docs/algorithm.md defines each) and the stop rule. */
#include "sim/state.h"

#include "model/features.h"

#include <math.h>

static void measure_run(void *context, size_t index, unsigned thread)
{
    sim *s = context;
    const run_of_leaves *r = &s->runs[index];
    link_sums *sums = &s->run_sums[index];
    *sums = (link_sums){0};
    if (s->many.slope) {
        many_measure(s, r, &s->spaces[thread], sums);
        return;
    }
    if (r->class == MIXED) {
        for (size_t i = 0; i < r->count; i++) {
            const leaf_run one = leaf_view(s, run_first_leaf(s, r) + i, r->parent, &s->spaces[thread]);
            kernels()->leaf_measure(&one, s->inner_w, sums);
        }
        return;
    }
    const leaf_run run = run_view(s, r, index, &s->spaces[thread]);
    kernels()->leaf_measure(&run, s->inner_w, sums);
}

static void add_sums(link_sums *total, const link_sums *part)
{
    total->loss += part->loss;
    total->consensus_loss += part->consensus_loss;
    total->penalty += part->penalty;
    total->smoothing += part->smoothing;
    total->primal += part->primal;
    total->gap = fmax(total->gap, part->gap);
    total->size_w += part->size_w;
    total->size_zq += part->size_zq;
    total->size_multiplier += part->size_multiplier;
}

/* Sums per tier (the depth of the child, less one), and the dual residual's beside them. */
static void measure_tiers(sim *s, link_sums *tier, double *dual)
{
    for_each(s, 0, s->n_runs, s->d->n_rows, measure_run);
    for (size_t i = 1; i < s->d->n_inner; i++) {
        const inner_node *node = &s->d->inner[i];
        const hfsad_link link = inner_link(s, i);
        link_sums sums = {0};
        kernels()->link_measure(&s->p->inner[i].rule, &link, s->M, s->inner_w + i * s->M,
                                s->inner_w + (size_t)node->parent * s->M, s->inner_w, &sums);
        add_sums(&tier[node->depth - 1], &sums);
        dual[node->depth - 1] += s->inner[i].dual;
    }
    for (size_t r = 0; r < s->n_runs; r++) {
        const uint32_t t = s->d->inner[s->runs[r].parent].depth;
        add_sums(&tier[t], &s->run_sums[r]);
        dual[t] += s->runs[r].dual;
    }
}

/* Both residuals below  sqrt(number of constraints) absolute + relative * the size of what they compare. */
static bool tolerances_met(const sim *s, const link_sums *total, double primal, double dual)
{
    const plan *p = s->p;
    if (!(p->stop_absolute > 0 || p->stop_relative > 0) || s->iteration == 0)
        return false;
    const double links = (double)(s->d->n_leaves + s->d->n_inner - 1);
    const double absolute = sqrt(2 * links * (double)s->M) * p->stop_absolute;
    const double size = sqrt(fmax(total->size_w, total->size_zq));
    return primal <= absolute + p->stop_relative * size &&
           dual <= absolute + p->stop_relative * sqrt(total->size_multiplier);
}

/* A link that sits out adds nothing to the dual residual. So where somebody may sit out, the tolerances must hold in
 * every measurement over K_a global iterations, in which everybody steps. Only the rows of the trace's grid are
 * remembered: a measurement between them depends on when the folder was written or the run interrupted. */
static void stop_rule(sim *s, bool met)
{
    uint64_t since = met ? s->met_since : UINT64_MAX;
    if (met && since == UINT64_MAX)
        since = s->iteration;
    if (s->p->trace_every && s->iteration % s->p->trace_every == 0)
        s->met_since = since;
    s->converged = met && (!s->absences || s->iteration - since >= s->p->at_least_every);
}

void sim_measure(sim *s, hfsad_figures *f)
{
    link_sums tier[HFSAD_TIERS_MAX] = {{0}}, total = {0};
    double dual[HFSAD_TIERS_MAX] = {0}, all_dual = 0, priors = 0, consensus_priors = 0;
    measure_tiers(s, tier, dual);
    for (size_t i = 0; i < s->d->n_inner; i++) {
        priors += kernels()->prior_value(&s->p->inner[i].prior, s->M, s->inner_w + i * s->M);
        consensus_priors += kernels()->prior_value(&s->p->inner[i].prior, s->M, s->inner_w);
    }
    f->iteration = s->iteration;
    f->tiers = s->d->depth;
    const bool known = s->dual_known || s->iteration == 0;
    for (size_t t = 0; t < f->tiers; t++) {
        add_sums(&total, &tier[t]);
        all_dual += dual[t];
        f->primal_tier[t] = sqrt(tier[t].primal);
        f->dual_tier[t] = known ? sqrt(dual[t]) : NAN;
    }
    f->objective = total.loss + total.penalty + priors;
    f->consensus_objective = total.consensus_loss + consensus_priors;
    f->primal_residual = sqrt(total.primal);
    f->dual_residual = known ? sqrt(all_dual) : NAN;
    f->consensus_gap = total.gap;
    f->smoothing_gap = total.smoothing;
    f->relative_error = s->truth ? model_error(s->d, s->inner_w, s->truth, s->sign_free, s->spaces[0].rows) : NAN;
    f->bytes_up = s->bytes_up;
    f->bytes_down = s->bytes_down;
    stop_rule(s, tolerances_met(s, &total, f->primal_residual, f->dual_residual));
}

bool sim_converged(const sim *s)
{
    return s->converged;
}

double relative_error(size_t M, const double *estimate, const double *truth, bool sign_free)
{
    double minus = 0, plus = 0, size = 0;
    for (size_t m = 0; m < M; m++) {
        minus += (estimate[m] - truth[m]) * (estimate[m] - truth[m]);
        plus += (estimate[m] + truth[m]) * (estimate[m] + truth[m]);
        size += truth[m] * truth[m];
    }
    return (sign_free && plus < minus ? plus : minus) / size;
}

double model_error(const dataset *d, const double *w, const double *truth, bool sign_free, double *scratch)
{
    model_to_user(d, w, scratch);
    return relative_error(features_count(d), scratch, truth, sign_free);
}
