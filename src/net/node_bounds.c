/*
 * What a child can say. A parent knows the rule of a child's link, in lock step also its counter, and the model w that
 * the child has stepped with. The multiplier of the link is bounded by the slope s of its penalty, so that
 *
 *     sigma = sigma(k + 1),   b = w + Gamma_before/sigma(k),   q = b - Gamma/sigma(k),   |Gamma_before|, |Gamma| <= s
 *     u = sigma q - Gamma,    |u - sigma w| <= s (1 + 2 sigma/sigma(k))
 *
 * holds for every client, whatever its rows are. A message beyond these bounds is refused. If the parent does not have
 * that w any more (asynchronous; a child that sits out, after a restart), the largest |w| of the run takes its place.
 */
#include "net/node_parts.h"

#include "base/bits.h"

#include <float.h>
#include <math.h>

/* Tolerance for rounding, floats on the wire, and sums in another order; and for a w that is too small for a float. */
static const double slack = 1e-6, smallest = FLT_TRUE_MIN;
/* q is computed from the child's own w, which fits its rows and may be far larger than the parent's: its rounding, in
 * likely sizes of a model. */
static const double rounded = 1e-9;
/* Beyond it sums of squares overflow: the run diverges, and every number may come. A plan with such a c has no bounds
 * (tree.c). */
static const double wild = 1e100;
/* A coordinate of the child's own may be as large as its data: sums of such numbers are still finite. */
static const double own_most = 1e300;

hfsad_link_rule child_rule(const node *n, size_t c)
{
    const node_child *as = &n->s.children[c];
    return as->leaf ? guard_leaf_rule(n->s.p, &as->rule, n->s.star, n->repairs)
                    : guard_rule(n->s.p, &as->rule, n->repairs);
}

static double slope_of(const hfsad_penalty *p)
{
    const bool bounded = p->kind != HFSAD_PENALTY_L2 && p->kind != HFSAD_PENALTY_ELASTIC_NET;
    return p->kind == HFSAD_PENALTY_NONE ? 0 : bounded ? p->lambda * p->weight : (double)INFINITY;
}

/* Coordinates that no link below ties belong to the children: their numbers in w mean nothing. */
static size_t tied_below(const node *n)
{
    size_t least = n->s.M;
    for (size_t c = 0; c < n->s.n_children; c++)
        least = n->s.children[c].rule.penalty.free < least ? n->s.children[c].rule.penalty.free : least;
    return n->s.n_children ? n->s.M - least : n->s.M;
}

void bounds_reach(node *n)
{
    const size_t tied = tied_below(n);
    double most = n->reach;
    for (size_t m = 0; m < tied; m++)
        most = fabs(n->w[m]) > most || isnan(n->w[m]) ? fabs(n->w[m]) : most;
    n->reach = most;
}

/* false: one of the numbers is not within `within` of sigma w, or of 0 if w is NULL. */
static bool all_within(const double *u, const double *w, size_t M, double sigma, double within)
{
    /* Doubles without a sign have the order of their bits, so that the highest bit of the difference tells which is
     * larger: without a branch this is vector code. A number that is not finite is beyond every limit. */
    const uint64_t sign = UINT64_C(1) << 63, limit = bits_of(within);
    uint64_t over = within >= 0 && within <= DBL_MAX ? 0 : sign;
    for (size_t m = 0; w && m < M; m++)
        over |= limit - (bits_of(u[m] - sigma * w[m]) & ~sign);
    for (size_t m = 0; !w && m < M; m++)
        over |= limit - (bits_of(u[m]) & ~sign);
    if (!(over & sign)) /* nearly always: the slack is not needed */
        return true;
    int beyond = 0;
    for (size_t m = 0; m < M; m++) {
        const double centre = w ? sigma * w[m] : 0;
        beyond += !(fabs(u[m] - centre) <= within + slack * (fabs(u[m]) + fabs(centre)) && fabs(u[m]) <= DBL_MAX);
    }
    return beyond == 0;
}

/* Masked numbers mean nothing; the numbers of an unmasked message in fixed point are decoded first. */
bool bounds_of_up(node *n, size_t c, const message *m)
{
    const double *u = m->fixed && !n->s.p->secure ? fixed_shown(n, m) : m->values;
    const hfsad_link_rule rule = child_rule(n, c);
    const double sigma = hfsad_schedule_sigma(&rule.schedule, m->k + 1),
                 before = m->k ? sigma / hfsad_schedule_sigma(&rule.schedule, m->k) : 0,
                 within = slope_of(&rule.penalty) * (1 + 2 * before) + sigma * (smallest + rounded * n->s.p->length);
    const size_t tied = n->s.M - rule.penalty.free; /* the others are the child's own */
    if (!n->s.tame || !(sigma * n->reach + within < wild) || !(n->reach < wild))
        return true;
    if (!(fabs(m->sigma - sigma) <= slack * sigma))
        return false;
    if (n->s.p->secure)
        return true;
    const bool of_this_w = !n->s.async && n->state == NODE_TRAINS && m->round == n->round + n->unit && m->k > 0;
    return (of_this_w ? all_within(u, n->w, tied, sigma, within)
                      : all_within(u, NULL, tied, 0, sigma * n->reach + within)) &&
           all_within(u + tied, NULL, rule.penalty.free, 0, own_most);
}

bool bounds_of_strain(const node *n, size_t c, double sum, double count)
{
    const double most = (double)(n->s.children[c].nodes * n->s.M);
    if (!n->s.tame || !(n->reach < wild))
        return true;
    return count >= 0 && count <= most && sum >= 0 && sum <= count * (1 + slack);
}

/* A turn of an asynchronous child has a fixed number of steps, or one that follows its speed. */
bool bounds_of_turn(const node *n, size_t c, uint64_t steps)
{
    const node_child *as = &n->s.children[c];
    const uint64_t rounds = is_root(n) ? n->K : 1;
    if (!as->leaf)
        return steps == rounds;
    return n->s.pace.steps_most ? steps <= rounds * n->s.pace.steps_most : steps == rounds * as->local_steps;
}

/* Counts are whole and limited, squares and penalties have no negative sum. Losses may be negative (poisson), and a
 * number that is not finite is that of a run that diverges. */
bool bounds_of_tally(const node *n, size_t c, const double *numbers)
{
    const node_child *as = &n->s.children[c];
    const double vectors = (double)(n->end_round + 1) * (double)as->nodes * (double)(as->nodes + 1);
    double shown[TALLY_MOST];
    tally t;
    if (!n->s.tame || !(n->reach < wild))
        return true;
    if (n->s.p->fixed)
        fixed_show_tally(n, numbers, shown);
    tally_unpack(&t, n->s.tiers, n->s.p->fixed ? shown : numbers);
    const double least = -slack * (1 + n->reach); /* a penalty of large numbers is rounded */
    bool good = !(t.priors < least) && !(t.consensus_priors < least) && t.up >= 0 && t.up <= vectors && t.down >= 0 &&
                t.down <= vectors && t.broken >= 0 && t.clients <= (double)as->leaves &&
                (n->s.async ? t.clients >= 0 : t.clients == (double)as->leaves);
    for (size_t d = 0; d < n->s.tiers && good; d++) {
        const link_sums *s = &t.tier[d];
        const double rounding = slack * (1 + fabs(s->penalty) + sqrt(s->size_w) + sqrt(s->size_zq));
        good = !(s->penalty < -rounding) && !(s->smoothing < -rounding) && !(s->primal < 0) && !(s->gap < 0) &&
               !(s->size_w < 0) && !(s->size_zq < 0) && !(s->size_multiplier < 0) && !(t.dual[d] < 0);
    }
    return good;
}

void node_set_aside(node *n, size_t c)
{
    n->changed = n->changed || !n->inner.child[c].aside;
    n->inner.child[c].aside = n->inner.child[c].absent = true;
    inner_advance(n);
}

bool node_refuse_lie(node *n, size_t c, node_refusal *why)
{
    n->inner.child[c].lies++;
    return node_refuse(n, why, NODE_REFUSED_BOUND);
}
