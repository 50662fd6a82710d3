/* See cell.h. */
#include "cell/cell.h"

#include "base/fixed.h"
#include "core/fold.h"
#include "plan/cohort.h"

#include <math.h>
#include <string.h>

size_t cell_runs(const cell *c)
{
    const size_t slots = run_slots(c->M);
    return (c->n_leaves + slots - 1) / slots;
}

double cell_sum_run(const cell *c, size_t run, double *sum)
{
    const size_t slots = run_slots(c->M), first = run * slots;
    fold all;
    fold_begin(&all, c->M, c->partial, sum);
    for (size_t leaf = first; leaf < c->n_leaves && leaf < first + slots; leaf++) {
        double sigma;
        const double *u = c->message(c->context, c->n_inner + leaf, c->room, &sigma);
        if (u)
            fold_add(&all, u, sigma);
    }
    fold_end(&all);
    return all.sum_sigma;
}

/* ---- fixed point ---- */

bool cell_words(const plan *p, size_t M, double sigma, size_t members, const word_source *noise, uint64_t k, double *u)
{
    int64_t *words = (int64_t *)(void *)u;
    size_t at;
    if (!isfinite(sigma) || !grid_put(u, M, plan_up_factor(p, sigma), members, words, &at))
        return false;
    if (noise && p->secure && k) /* before its first step a client knows no rows */
        noise_words(p, noise, k, members, sigma, M, words);
    return true;
}

/* Of n children from `from`, all clients or all inner nodes. */
static double sum_cohorts(const cell *c, size_t from, size_t n, double *sum)
{
    const size_t M = c->M, cohorts = cohorts_of(c->p, n);
    uint64_t *total = (uint64_t *)(void *)c->partial;
    double sigma = 0;
    for (size_t i = 0; i < cohorts; i++) {
        double factor = 1, own;
        memset(total, 0, M * sizeof *total);
        for (size_t slot = from + cohort_first(n, cohorts, i); slot < from + cohort_first(n, cohorts, i + 1); slot++) {
            const double *said = c->message(c->context, slot, c->room, &own);
            if (!said)
                continue;
            factor = plan_up_factor(c->p, own);
            sigma += own;
            for (size_t m = 0; m < M; m++) {
                uint64_t word;
                memcpy(&word, said + m, sizeof word);
                total[m] += word;
            }
        }
        for (size_t m = 0; m < M; m++)
            sum[m] += (double)(int64_t)total[m] / factor;
    }
    return sigma;
}

/* ---- a minority of liars ---- */

static double sum_robust(const cell *c, double *sum)
{
    size_t count = 0;
    for (size_t slot = 0; slot < c->n_inner + c->n_leaves; slot++) {
        double *room = c->room ? c->room + count * c->M : NULL;
        c->said[count] = c->message(c->context, slot, room, &c->sigma[count]);
        count += c->said[count] != NULL;
    }
    return robust_sum(c->p->aggregate, c->M, count, c->said, c->sigma, c->shares, sum);
}

/* ---- all of them ---- */

double cell_sum(const cell *c, double *sum)
{
    const size_t M = c->M;
    double sigma = 0, own = 0, *run_u = c->partial + tree_lanes(M) * M;
    if (c->p->aggregate && !c->p->fixed)
        return sum_robust(c, sum);
    memset(sum, 0, M * sizeof *sum);
    if (c->p->fixed) {
        sigma = sum_cohorts(c, 0, c->n_inner, sum);
        return sigma + sum_cohorts(c, c->n_inner, c->n_leaves, sum);
    }
    for (size_t slot = 0; slot < c->n_inner; slot++) {
        const double *u = c->message(c->context, slot, c->room, &own);
        if (!u)
            continue;
        sigma += own;
        kernels()->add(M, sum, u);
    }
    for (size_t run = 0; run < cell_runs(c); run++) {
        const double *u = run_u;
        if (c->run)
            u = c->run(c->context, run, &own);
        else
            own = cell_sum_run(c, run, run_u);
        sigma += own;
        kernels()->add(M, sum, u);
    }
    return sigma;
}
