/* HFSAD as steps of a node: links with their multipliers (docs/algorithm.md). */
#include "net/node_parts.h"

static void leaf_round(node *n, const double *w_parent, uint64_t round)
{
    (void)round;
    leaf_step(n, w_parent, n->s.leaf->local_steps);
}

static size_t message_up(node *n, double *sigma)
{
    const hfsad_link link = {n->z, n->q, n->k};
    size_t count = n->s.M;
    *sigma = hfsad_link_message(&n->rule, &link, n->s.M, n->u);
    if (n->s.guarded && n->s.inner) {
        const guard_strain own = guard_link(n->s.inner, &n->rule, &link, n->s.M), below = inner_strain(n);
        n->u[count++] = own.sum + below.sum;
        n->u[count++] = own.count + below.count;
    }
    return count;
}

static void measure_inner(node *n, const double *w0, const double *w_parent, tally *t)
{
    const inner_class *class = n->s.inner;
    *t = (tally){.priors = kernels()->prior_value(&class->prior, n->s.M, n->w),
                 .consensus_priors = kernels()->prior_value(&class->prior, n->s.M, w0),
                 .up = (double)n->sent_up,
                 .down = (double)n->sent_down};
    if (is_root(n))
        return;
    const hfsad_link link = {n->z, n->q, n->k};
    kernels()->link_measure(&n->rule, &link, n->s.M, n->w, w_parent, w0, &t->tier[n->s.depth - 1]);
    t->dual[n->s.depth - 1] = n->dual;
}

/* If clients or edges have their own intercepts, the nodes above are not tied: they report the mean over the clients
 * below. */
static void settle(node *n, tally *t)
{
    size_t leaves = 0;
    for (size_t c = inner_first_leaf(n); c < n->s.n_children; c++)
        leaves += n->inner.child[c].answered;
    const bool own_client = n->s.intercept == INTERCEPT_CLIENT;
    const double *w = n->question.w + (is_root(n) ? 0 : n->s.M);
    if (n->s.intercept == INTERCEPT_EDGE)
        t->intercepts += (double)leaves * w[n->s.M - 1];
    n->inner.has_settled = own_client || (n->s.intercept == INTERCEPT_EDGE && leaves == 0);
    if (n->inner.has_settled)
        n->inner.settled = t->intercepts / t->clients;
}

static void make_figures(const node *n, const tally *t, uint64_t iteration, hfsad_figures *f)
{
    tally_figures(t, n->s.M, n->s.tiers, iteration, true, f);
}

const algorithm_steps ALGORITHM_LINKS = {
    .leaf_round = leaf_round,
    .inner_round = links_inner_round,
    .root_round = node_step,
    .message_up = message_up,
    .measure_leaf = links_measure_leaf,
    .measure_inner = measure_inner,
    .take_tally = settle,
    .make_figures = make_figures,
    .is_finite = figures_are_finite,
};
