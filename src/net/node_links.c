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
        const cell c = node_cell(n);
        const guard_strain strain = cell_strain_up(&c, n->s.inner, &n->rule, &link);
        n->u[count++] = strain.sum;
        n->u[count++] = strain.count;
    }
    return count;
}

static void measure_inner(node *n, const double *w0, const double *w_parent, tally *t)
{
    const hfsad_link link = {n->z, n->q, n->k};
    const cell_node own = {n->s.inner, &n->rule, &link, n->w, w_parent, n->dual, n->s.depth};
    *t = cell_own_tally(&own, n->s.M, w0);
    t->up = (double)n->sent_up;
    t->down = (double)n->sent_down;
}

static void settle(node *n, tally *t)
{
    size_t leaves = 0;
    for (size_t c = inner_first_leaf(n); c < n->s.n_children; c++)
        leaves += n->inner.child[c].answered;
    const intercept_owner owner = {n->s.intercept == INTERCEPT_CLIENT, n->s.intercept == INTERCEPT_EDGE};
    const double *w = n->question.w + (is_root(n) ? 0 : n->s.M);
    const cell c = node_cell(n);
    n->inner.has_settled = cell_settle(&c, owner, leaves, w[n->s.M - 1], &t->intercepts, t->clients, &n->inner.settled);
}

static void make_figures(const node *n, const tally *t, uint64_t iteration, hfsad_figures *f)
{
    tally_figures(t, n->s.M, n->s.tiers, iteration, true, f);
}

const algorithm_steps ALGORITHM_LINKS = {
    .links = true,
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
