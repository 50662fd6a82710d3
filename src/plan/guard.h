/*
 * The safeguard. The multiplier of an edge link is bounded by the weight of the link. The presets choose the weight so
 * large that at a solution multipliers are a few hundredths of it. If c is too small for the number of edge rounds, the
 * multipliers diverge towards the bound instead, because they accumulate while w_0 does not move. Definitions:
 *
 *     strain = mean of |Lambda| / weight over the links of inner nodes
 *     step   = |w_0 - w_0 of the iteration before|
 *
 * A large strain alone may belong to a solution, if the clients of an edge all pull one way. Steps may stay large if
 * few clients take part. An iteration is wild if the strain is large and the step is twice as large as any of the first
 * ones, or is large and leads to a w_0 beyond all likely sizes. After several wild iterations in a row, or if w_0 is
 * not finite, c of these links is tripled, and the run restarts at the w_0 of the last quiet iteration. Coordinates
 * that belong to clients or edges, which w_0 does not contain, restart at the start of the run. Links that are meant to
 * reach their bound are not watched (plan.c: watched).
 *
 * A star has no such links. Its clients' multipliers, accumulated over several rounds or local steps, can diverge too,
 * but only if their c is far below that of the preset; only then is a star watched. Strain, a property of edges that
 * average many clients, says little there. An iteration is wild by step and size alone, and the clients' c is
 * multiplied by ten, up to that of the preset.
 *
 * Phase retrieval with run.cycles. r grows whatever the progress, so that a run may freeze far from any solution: w_0
 * no longer moves, because the links have become hard. The same restart then begins a new cycle at the best w_0 that
 * has been measured, if there are enough iterations left for one. In cycle i = 1, 2, ... the clients take the prox of
 * the majorant of |y - s^2| around <x, w_parent>, which is convex, over-relaxed by 1.6, and r grows from 3 to 1e4 in
 * 350 i steps of a client. A wild iteration begins a new cycle, too. Whether there is room depends on run.iterations:
 * a run that is extended later may take another path than one that had all iterations from the start.
 *
 * Problems of one model that are not convex (plan.keeps_best). The w_0 with the least objective of all rows is kept:
 * cycles and the polish begin there, and a run without a polish returns it.
 */
#ifndef HFSAD_PLAN_GUARD_H
#define HFSAD_PLAN_GUARD_H

#include "base/words.h"
#include "plan/plan.h"

#include <math.h>

enum { GUARD_VECTORS = 3 };

typedef struct {
    double *calm, *before, *best;          /* w_0 of the last quiet iteration, of the one before, and that of the least
                                              objective;          M each in one block, the driver's */
    double first_step;                     /* the largest step of the first iterations */
    double least;                          /* objective of the best; INFINITY: of none */
    bool star;                             /* the driver's: no strain */
    uint64_t wild, repairs, repaired_last; /* wild iterations in a row; repairs; the iteration of the last */
    uint64_t noted;                        /* iteration of the last row */
} guard_state;

/* Room of GUARD_VECTORS M numbers, all vectors at start. */
void guard_begin(guard_state *g, double *room, size_t M, const double *start);
/* A row of the trace: the objective of one model for all, at w_0. */
void guard_note(guard_state *g, const plan *p, size_t M, uint64_t iteration, double objective, const double *w0);

/* Sums over links: the children of a node in slot order, each with its own link before the links below it. */
typedef struct {
    double sum, count;
} guard_strain;

/* The best w_0 after this iteration; w0 itself if rows are missing or nothing is kept. */
const double *guard_best(const guard_state *g, const plan *p, uint64_t iteration, const double *w0);

/* What a driver keeps of it beside calm and before. */
void guard_pass(const word_transfer *t, guard_state *g);

/* Whether any link is looked at. */
bool plan_is_guarded(const plan *p, size_t n_inner);
/* Whether a guard_state is kept at all. */
static inline bool plan_has_guard(const plan *p, size_t n_inner)
{
    return p->keeps_best || plan_is_guarded(p, n_inner);
}
/* Upper limit on the number of repairs, or of cycles. */
uint64_t guard_repairs_most(const plan *p);
/* The rule of an inner node's link after this number of repairs. */
hfsad_link_rule guard_rule(const plan *p, const hfsad_link_rule *rule, uint64_t repairs);
/* The same of a client's. */
hfsad_link_rule guard_leaf_rule(const plan *p, const hfsad_link_rule *rule, bool star, uint64_t repairs);
/* Whether clients take the prox of the majorant. */
static inline bool guard_majorises(const plan *p, uint64_t repairs)
{
    return p->cycles && repairs > 0;
}
/* rule: the one in force. */
guard_strain guard_link(const inner_class *class, const hfsad_link_rule *rule, const hfsad_link *link, size_t M);
/* Call after a global iteration; `tied`: the coordinates of w_0 that all nodes share. True: the run restarts at calm.
 */
bool guard_decide(guard_state *g, const plan *p, size_t M, size_t tied, const double *w0, uint64_t iteration,
                  guard_strain strain);
/* The dual residual after a repair: the value of the last round if it is finite, because no step has been made
 * since. */
static inline double guard_dual(double dual)
{
    return isfinite(dual) ? dual : (double)NAN;
}
/* Coordinates that are not some clients' or edges' own. */
size_t plan_tied(const plan *p, size_t M, size_t n_inner);

#endif
