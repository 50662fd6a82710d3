/* Messages between simulated nodes, rounded if the spec's wire rounds (base/wire.h). A message follows from the state
 * of its link, so the last message of an absent node is still valid. */
#include "run/state.h"

#include "base/wire.h"
#include "core/fold.h"

#include <string.h>

void messages_down(sim *s)
{
    memcpy(s->said, s->inner_w, s->d->n_inner * s->M * sizeof *s->said);
    for (size_t i = 0; i < s->d->n_inner; i++)
        (void)wire_round(s->said + i * s->M, s->M);
}

double leaf_message(const sim *s, size_t leaf, thread_space *space, double *u)
{
    const hfsad_link link = {space->rows + s->M, space->rows + 2 * s->M, s->k[leaf]};
    dataset_gather(s->d, s->z, leaf, link.z);
    dataset_gather(s->d, s->q, leaf, link.q);
    const double sigma = hfsad_link_message(sim_leaf_rule(s, plan_leaf(s->p, leaf)), &link, s->M, u);
    if (s->said)
        (void)wire_round(u, s->M);
    return sigma;
}

double inner_message(const sim *s, size_t i, double *u)
{
    const hfsad_link link = inner_link(s, i);
    const hfsad_link_rule rule = sim_inner_rule(s, i);
    const double sigma = hfsad_link_message(&rule, &link, s->M, u);
    if (s->said)
        (void)wire_round(u, s->M);
    return sigma;
}

double sum_messages(const sim *s, const run_of_leaves *r, thread_space *space, double *sum_u)
{
    const size_t first = run_first_leaf(s, r);
    double *u = space->rows + 4 * s->M;
    fold sum;
    fold_begin(&sum, s->M, space->scratch + leaf_run_scratch(s->M), sum_u);
    for (size_t leaf = first; leaf < first + r->count; leaf++)
        fold_add(&sum, u, leaf_message(s, leaf, space, u));
    fold_end(&sum);
    return sum.sum_sigma;
}
