/*
 * The figures of a row of the trace (defined in docs/algorithm.md) as sums over a tree, and the stop rule.
 *
 * Order. A node's tally begins with its own prior. Then it adds, in slot order, the tallies of its inner children, each
 * including the child's link; then its leaves, which are first summed in runs of run_slots(M). A process that receives
 * the nodes one at a time therefore gets the simulator's bits.
 */
#ifndef HFSAD_PLAN_TALLY_H
#define HFSAD_PLAN_TALLY_H

#include "core/kernels.h"
#include "plan/plan.h"

/* All numbers are doubles, so that a tally travels as a vector; the whole numbers are exact up to 2^53. */
typedef struct {
    double priors, consensus_priors; /* of the inner nodes, at their own w and at w_0 */
    double up, down;                 /* vectors sent so far */
    double intercepts, clients;      /* sum of the intercepts below, and the number of their clients */
    double broken;                   /* nodes, of other programs, that cannot say their numbers */
    link_sums tier[HFSAD_TIERS_MAX]; /* by the depth of the child, less one */
    double dual[HFSAD_TIERS_MAX];    /* sigma^2 (|dz|^2 + |dq|^2) of the last edge round; NAN: it is not known */
} tally;

void tally_add(tally *total, const tally *part);

/* As a vector, the first `tiers` tiers only; of TALLY_MOST numbers at most. */
enum { TALLY_HEAD = 7, TALLY_TIER = 10, TALLY_MOST = TALLY_HEAD + TALLY_TIER * HFSAD_TIERS_MAX };
size_t tally_numbers(size_t tiers);
void tally_pack(const tally *t, size_t tiers, double *numbers);
void tally_unpack(tally *t, size_t tiers, const double *numbers);

/* What a row says, from the whole tree's tally. seconds and relative_error are left alone. dual_known: otherwise the
 * dual residuals are NAN. If one of the others is not finite all of them become NAN. */
void tally_figures(const tally *t, size_t M, size_t tiers, uint64_t iteration, bool dual_known, hfsad_figures *f);
/* Of a run with noise: what would be computed from the clients' rows is not known. */
void figures_hide(hfsad_figures *f);
/* Otherwise the run has diverged. */
bool figures_are_finite(const hfsad_figures *f);

typedef struct {
    uint64_t met_since; /* first iteration from which the tolerances are met, or UINT64_MAX */
    bool converged;
} stop_state;

/* links: of the whole tree; absences: a node may be absent. */
void stop_rule(stop_state *s, const plan *p, const tally *t, const hfsad_figures *f, size_t M, size_t links,
               bool absences);

/* Whether the iteration's figures go into the trace. */
static inline bool plan_measures(const plan *p, uint64_t iteration)
{
    return p->trace_every && (iteration % p->trace_every == 0 || iteration == p->iterations);
}

#endif
