/*
 * FedAvg and FedProx (run/averaging.h) as steps of a node. A DOWN is w and the number of the round after which its
 * sender last sent a new model: children adopt w if that number is new to them. An UP is w with the mass as its sigma,
 * of an inner node also whether it has moved since its parent sent. Inner nodes wait for every DOWN, because they pass
 * on what they adopt; the question for figures at the end of an iteration is such a DOWN, too.
 */
#include "net/node_parts.h"

#include "run/averaging.h"

#include <math.h>
#include <string.h>

static size_t tied(const node *n)
{
    return n->s.M - (n->s.leaf ? n->s.leaf->rule.penalty.free : n->s.inner->rule.penalty.free);
}

/* ---- a client ---- */

static void leaf_round(node *n, const double *w_parent, uint64_t round)
{
    const double sent = w_parent[n->s.M];
    if (n->average.seen != sent)
        memcpy(n->w, w_parent, tied(n) * sizeof *n->w);
    n->average.seen = sent;
    averaging_step(n->s.average, averaging_least_steps(n->s.p), n->s.leaf, &n->s.rows, n->s.M, round - 1, w_parent,
                   n->w, n->leaf.centre);
    n->k += n->s.leaf->local_steps;
}

static void measure_leaf(node *n, const double *w0, const double *w_parent, tally *t)
{
    *t = (tally){.up = (double)n->sent_up, .intercepts = averaging_mass(n->s.leaf, &n->s.rows), .clients = 1};
    averaging_measure(n->s.leaf, &n->s.rows, n->s.M, n->w, leaf_consensus(n, w0, w_parent), &t->tier[n->s.depth - 1]);
}

/* ---- an inner node and the root ---- */

static averaging_part part_at(const void *context, size_t c)
{
    const node *n = context;
    const child_state *child = &n->inner.child[c];
    return (averaging_part){n->inner.child_u + c * n->s.M, child->strain.sum > 0 ? child->sigma : 0,
                            n->s.children[c].rule.penalty.free > 0};
}

static bool average(node *n)
{
    const bool moved = averaging_mean(&n->s.inner->prior, n->average.since / n->average.mass, n->s.M, n->s.n_children,
                                      part_at, n, n->s.intercept != INTERCEPT_NONE, n->w);
    if (moved)
        n->average.since = 0;
    return moved;
}

/* An inner child reports whether it has moved; for a client, its parent knows the draws. */
static void hear_children(node *n, uint64_t end)
{
    for (size_t c = 0; c < n->s.n_children; c++)
        if (n->s.children[c].leaf && n->inner.child[c].need == end)
            n->inner.child[c].strain.sum = 1;
}

static void inner_round(node *n, uint64_t round)
{
    uint32_t last = n->last;
    n->average.since += averaging_steps(n->s.average, averaging_least_steps(n->s.p), round - 1);
    hear_children(n, round);
    n->k += node_draw(n, n->s.inner->participation, n->s.key, &n->average.drawn, round); /* as its parent counts */
    if (!node_draw(n, n->s.inner->participation, n->s.key, &last, round) || !average(n))
        return;
    n->average.moved = n->average.sends = true;
    n->sent_up += n->s.depth > 1 || n->last < last; /* the cloud uses only the last of an iteration */
    n->last = last;
}

static void root_round(node *n)
{
    for (uint64_t round = n->round; round < n->round + n->unit; round++)
        n->average.since += averaging_steps(n->s.average, averaging_least_steps(n->s.p), round);
    hear_children(n, n->round + n->unit);
    (void)average(n);
    n->average.sends = true;
}

static void take_down(node *n, const double *w, double sent)
{
    if (n->average.seen == sent)
        return;
    n->average.seen = sent;
    memcpy(n->w, w, tied(n) * sizeof *w);
    n->average.moved = false;
    n->average.sends = true;
    n->average.since = 0;
    n->changed = true;
}

/* What it has to send goes with the DOWN of the round. */
static void open_round(node *n)
{
    if (!n->average.sends)
        return;
    n->average.sends = false;
    n->w[n->s.M] = (double)n->round;
    n->sent_down += n->s.n_children;
    for (size_t c = 0; c < n->s.n_children; c++)
        n->inner.child[c].strain.sum = 0;
}

static void measure_inner(node *n, const double *w0, const double *w_parent, tally *t)
{
    (void)w_parent;
    const size_t children = n->average.sends ? n->s.n_children : 0; /* the DOWN after this question counts */
    *t = (tally){.consensus_priors = kernels()->prior_value(&n->s.inner->prior, n->s.M, w0),
                 .up = (double)n->sent_up,
                 .down = (double)(n->sent_down + children)};
    if (!is_root(n))
        t->tier[n->s.depth - 1].gap = averaging_gap(tied(n), n->w, w0);
}

static void take_tally(node *n, tally *t)
{
    n->average.mass = t->intercepts;
}

/* ---- messages ---- */

static size_t message_up(node *n, double *sigma)
{
    memcpy(n->u, n->w, n->s.M * sizeof *n->u);
    *sigma = n->s.leaf ? averaging_mass(n->s.leaf, &n->s.rows) : n->average.mass;
    if (n->s.leaf)
        return n->s.M;
    n->u[n->s.M] = n->average.moved;
    n->u[n->s.M + 1] = 0;
    return n->s.M + 2;
}

static void pass(const word_transfer *t, node *n)
{
    words_pass_reals(t, &n->average.seen, 1);
    words_pass_reals(t, &n->average.since, 1);
    words_pass_reals(t, &n->average.mass, 1);
    words_pass_32(t, &n->average.drawn);
    words_pass_flag(t, &n->average.moved);
    words_pass_flag(t, &n->average.sends);
}

static void make_figures(const node *n, const tally *t, uint64_t iteration, hfsad_figures *f)
{
    averaging_figures(t, n->s.M, n->s.tiers, iteration, f);
}

const algorithm_steps ALGORITHM_AVERAGING = {
    .talks = true,
    .down = 1,
    .leaf_round = leaf_round,
    .inner_round = inner_round,
    .root_round = root_round,
    .message_up = message_up,
    .take_down = take_down,
    .open_round = open_round,
    .measure_leaf = measure_leaf,
    .measure_inner = measure_inner,
    .take_tally = take_tally,
    .make_figures = make_figures,
    .is_finite = averaging_is_finite,
    .pass = pass,
};
