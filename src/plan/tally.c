#include "plan/tally.h"

#include <math.h>
#include <string.h>

static void link_sums_add(link_sums *total, const link_sums *part)
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

void tally_add(tally *total, const tally *part)
{
    total->priors += part->priors;
    total->consensus_priors += part->consensus_priors;
    total->up += part->up;
    total->down += part->down;
    total->intercepts += part->intercepts;
    total->clients += part->clients;
    total->broken += part->broken;
    for (size_t t = 0; t < HFSAD_TIERS_MAX; t++) {
        link_sums_add(&total->tier[t], &part->tier[t]);
        total->dual[t] += part->dual[t];
    }
}

enum { HEAD = TALLY_HEAD, PER_TIER = TALLY_TIER };

_Static_assert(sizeof(link_sums) == (PER_TIER - 1) * sizeof(double), "link_sums has nine numbers");

size_t tally_numbers(size_t tiers)
{
    return HEAD + PER_TIER * tiers;
}

void tally_pack(const tally *t, size_t tiers, double *numbers)
{
    const double head[HEAD] = {t->priors, t->consensus_priors, t->up, t->down, t->intercepts, t->clients, t->broken};
    memcpy(numbers, head, sizeof head);
    for (size_t i = 0; i < tiers; i++) {
        double *at = numbers + HEAD + PER_TIER * i;
        memcpy(at, &t->tier[i], sizeof t->tier[i]);
        at[PER_TIER - 1] = t->dual[i];
    }
}

void tally_unpack(tally *t, size_t tiers, const double *numbers)
{
    *t = (tally){.priors = numbers[0],
                 .consensus_priors = numbers[1],
                 .up = numbers[2],
                 .down = numbers[3],
                 .intercepts = numbers[4],
                 .clients = numbers[5],
                 .broken = numbers[6]};
    for (size_t i = 0; i < tiers; i++) {
        const double *at = numbers + HEAD + PER_TIER * i;
        memcpy(&t->tier[i], at, sizeof t->tier[i]);
        t->dual[i] = at[PER_TIER - 1];
    }
}

static link_sums all_tiers(const tally *t, size_t tiers)
{
    link_sums total = {0};
    for (size_t i = 0; i < tiers; i++)
        link_sums_add(&total, &t->tier[i]);
    return total;
}

/* Which of them is nan and which inf, and why, is chance, and is not the same wherever the sums are made. */
static void figures_break(hfsad_figures *f)
{
    f->objective = f->consensus_objective = f->primal_residual = f->dual_residual = NAN;
    f->consensus_gap = f->smoothing_gap = NAN;
    for (size_t i = 0; i < f->tiers; i++)
        f->primal_tier[i] = f->dual_tier[i] = NAN;
}

void figures_hide(hfsad_figures *f)
{
    figures_break(f);
}

void tally_figures(const tally *t, size_t M, size_t tiers, uint64_t iteration, bool dual_known, hfsad_figures *f)
{
    const link_sums total = all_tiers(t, tiers);
    double dual = 0;
    f->iteration = iteration;
    f->tiers = tiers;
    for (size_t i = 0; i < tiers; i++) {
        dual += t->dual[i];
        f->primal_tier[i] = sqrt(t->tier[i].primal);
        f->dual_tier[i] = dual_known && !isnan(t->dual[i]) ? sqrt(t->dual[i]) : NAN;
    }
    f->objective = total.loss + total.penalty + t->priors;
    f->consensus_objective = total.consensus_loss + t->consensus_priors;
    f->primal_residual = sqrt(total.primal);
    f->dual_residual = dual_known && !isnan(dual) ? sqrt(dual) : NAN;
    f->consensus_gap = total.gap;
    f->smoothing_gap = total.smoothing;
    f->gap_bound = NAN;
    f->bytes_up = (uint64_t)t->up * M * sizeof(double);
    f->bytes_down = (uint64_t)t->down * M * sizeof(double);
    if (t->broken > 0 || !figures_are_finite(f))
        figures_break(f);
}

bool figures_are_finite(const hfsad_figures *f)
{
    return isfinite(f->objective + f->consensus_objective + f->consensus_gap + f->primal_residual + f->smoothing_gap) &&
           !isinf(f->dual_residual);
}

/* Both residuals below  sqrt(number of constraints) absolute + relative * the size of what they compare. */
static bool tolerances_met(const plan *p, const tally *t, const hfsad_figures *f, size_t M, size_t links)
{
    if (!(p->stop_absolute > 0 || p->stop_relative > 0) || f->iteration == 0)
        return false;
    const link_sums total = all_tiers(t, f->tiers);
    const double absolute = sqrt(2 * (double)links * (double)M) * p->stop_absolute;
    const double size = sqrt(fmax(total.size_w, total.size_zq));
    return f->primal_residual <= absolute + p->stop_relative * size &&
           f->dual_residual <= absolute + p->stop_relative * sqrt(total.size_multiplier);
}

/* An absent link adds nothing to the dual residual. If nodes may be absent, the tolerances must therefore hold in every
 * measurement over K_a global iterations, in which every node steps. Only the regular rows of the trace count: a
 * measurement between them depends on when the folder was written or the run interrupted. */
void stop_rule(stop_state *s, const plan *p, const tally *t, const hfsad_figures *f, size_t M, size_t links,
               bool absences)
{
    const bool met = tolerances_met(p, t, f, M, links);
    uint64_t since = met ? s->met_since : UINT64_MAX;
    if (met && since == UINT64_MAX)
        since = f->iteration;
    if (p->trace_every && f->iteration % p->trace_every == 0)
        s->met_since = since;
    s->converged = met && (!absences || f->iteration - since >= p->at_least_every);
}
