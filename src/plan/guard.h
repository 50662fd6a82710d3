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
 * not finite, c of these links is tripled, and the run begins anew at the w_0 of the last quiet iteration; coordinates
 * that are some clients' or edges' own, of which w_0 knows nothing, begin where the run began. Links that are meant to
 * reach their bound are not looked at (plan.c: watched).
 *
 * A star has no such links. What its clients' multipliers add up over several rounds or local steps can make it run off
 * too, though only where their c is set far below the preset's; only then it is watched. There strain, a property of
 * edges that average many clients, says little: an iteration is wild by step and size alone, and the clients' c is
 * taken ten times as large, but not above the preset's.
 */
#ifndef HFSAD_PLAN_GUARD_H
#define HFSAD_PLAN_GUARD_H

#include "base/words.h"
#include "plan/plan.h"

#include <math.h>

typedef struct {
    double *calm, *before; /* w_0 of the last quiet iteration, and of the one before; M each, the driver's */
    double first_step;     /* the largest step of the first iterations */
    bool star;             /* the driver's: no strain */
    uint64_t wild, repairs, repaired_last; /* wild iterations in a row; repairs; the iteration of the last */
} guard_state;

/* Of links: over a node's children in the order of their slots, each with its own link before what is below it. */
typedef struct {
    double sum, count;
} guard_strain;

/* What a driver keeps of it beside calm and before. */
void guard_pass(const word_transfer *t, guard_state *g);

/* Whether any link is looked at. */
bool plan_is_guarded(const plan *p, size_t n_inner);
/* A link's rule after so many repairs. */
hfsad_link_rule guard_rule(const hfsad_link_rule *rule, uint64_t repairs);
/* The same of a client's in a star. */
hfsad_link_rule guard_star_rule(const plan *p, const hfsad_link_rule *rule, uint64_t repairs);
guard_strain guard_link(const inner_class *class, const hfsad_link *link, size_t M);
/* After a global iteration; `tied`: the coordinates of w_0 that all share. True: the run begins anew at calm. */
bool guard_decide(guard_state *g, const plan *p, size_t M, size_t tied, const double *w0, uint64_t iteration,
                  guard_strain strain);
/* What the dual residual of the last round counts for after a repair: no step has been made since. */
static inline double guard_dual(double dual)
{
    return isfinite(dual) ? dual : (double)NAN;
}
/* Coordinates that are not some clients' or edges' own. */
size_t plan_tied(const plan *p, size_t M, size_t n_inner);

#endif
