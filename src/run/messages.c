/* Messages between simulated nodes, rounded if the spec's wire rounds (base/wire.h). A message follows from the state
 * of its link, so the last message of an absent node is still valid. */
#include "run/state.h"

#include "base/fixed.h"
#include "base/wire.h"
#include "core/fold.h"
#include "plan/cohort.h"
#include "plan/noise.h"

#include <string.h>

void messages_down(sim *s)
{
    memcpy(s->said, s->inner_w, s->d->n_inner * s->M * sizeof *s->said);
    for (size_t i = 0; i < s->d->n_inner && !s->p->fixed; i++)
        (void)wire_round(s->said + i * s->M, s->M);
}

double leaf_message(const sim *s, size_t leaf, thread_space *space, double *u)
{
    const hfsad_link link = {space->rows + s->M, space->rows + 2 * s->M, s->k[leaf]};
    dataset_gather(s->d, s->z, leaf, link.z);
    dataset_gather(s->d, s->q, leaf, link.q);
    const double sigma = hfsad_link_message(sim_leaf_rule(s, plan_leaf(s->p, leaf)), &link, s->M, u);
    if (s->said && !s->p->fixed)
        (void)wire_round(u, s->M);
    return sigma;
}

double inner_message(const sim *s, size_t i, double *u)
{
    const hfsad_link link = inner_link(s, i);
    const hfsad_link_rule rule = sim_inner_rule(s, i);
    const double sigma = hfsad_link_message(&rule, &link, s->M, u);
    if (s->said && !s->p->fixed)
        (void)wire_round(u, s->M);
    return sigma;
}

double sum_robust(const sim *s, size_t i, thread_space *space, double *sum)
{
    const inner_node *node = &s->d->inner[i];
    const size_t M = s->M, all = (size_t)node->n_inner + node->n_leaves;
    double *sigma = space->said + all * M;
    size_t n = 0;
    for (size_t c = 0; c < all; c++) {
        const size_t leaf = node->first_leaf + (c - node->n_inner);
        if (c >= node->n_inner && s->out && s->out[leaf])
            continue;
        double *u = space->said + n * M;
        space->of[n] = u;
        sigma[n++] = c < node->n_inner ? inner_message(s, node->first_inner + c, u) : leaf_message(s, leaf, space, u);
    }
    return robust_sum(s->p->aggregate, M, n, space->of, sigma, space->shares, sum);
}

double sum_messages(const sim *s, const run_of_leaves *r, thread_space *space, double *sum_u)
{
    const size_t first = run_first_leaf(s, r);
    double *u = space->rows + 4 * s->M;
    fold sum;
    fold_begin(&sum, s->M, space->scratch + leaf_run_scratch(s->M), sum_u);
    for (size_t leaf = first; leaf < first + r->count; leaf++)
        if (!s->out || !s->out[leaf])
            fold_add(&sum, u, leaf_message(s, leaf, space, u));
    fold_end(&sum);
    return sum.sum_sigma;
}

/* The children first to end of node i, all clients or all inner nodes, of which n are there; by cohorts. */
static double sum_cohorts(sim *s, size_t i, bool leaves, thread_space *space, double *sum)
{
    const inner_node *node = &s->d->inner[i];
    const size_t n = leaves ? node->n_leaves : node->n_inner, M = s->M, cohorts = cohorts_of(s->p, n);
    double *u = space->rows + 4 * M, sigma = 0;
    int64_t *total = (int64_t *)(void *)space->scratch, *part = total + M;
    for (size_t c = 0; c < cohorts; c++) {
        const size_t first = cohort_first(n, cohorts, c), end = cohort_first(n, cohorts, c + 1);
        double factor = 1;
        size_t at;
        memset(total, 0, M * sizeof *total);
        for (size_t slot = first; slot < end; slot++) {
            const size_t child = (leaves ? node->first_leaf : node->first_inner) + slot;
            const double own = leaves ? leaf_message(s, child, space, u) : inner_message(s, child, u);
            factor = plan_up_factor(s->p, own);
            sigma += own;
            if (!grid_put(u, M, factor, end - first, part, &at)) {
                s->over = 1 + (leaves ? s->d->n_inner : 0) + child;
                continue;
            }
            if (leaves && s->many.noise && s->p->secure && s->k[child]) {
                seeded_words seeded = {s->many.noise[child], 0, 0};
                const word_source words = seeded_words_source(&seeded);
                noise_words(s->p, &words, s->k[child], end - first, own, M, part);
            }
            for (size_t m = 0; m < M; m++)
                total[m] += part[m];
        }
        for (size_t m = 0; m < M; m++)
            sum[m] += (double)total[m] / factor;
    }
    return sigma;
}

double sum_fixed(sim *s, size_t i, thread_space *space, double *sum)
{
    memset(sum, 0, s->M * sizeof *sum);
    const double inner = sum_cohorts(s, i, false, space, sum);
    return inner + sum_cohorts(s, i, true, space, sum);
}

size_t sim_too_large(const sim *s)
{
    return s->over;
}
