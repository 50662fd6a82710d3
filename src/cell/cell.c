/* See cell.h. */
#include "cell/cell.h"

#include "base/fixed.h"
#include "core/fold.h"
#include "plan/cohort.h"
#include "plan/fixed_answer.h"

#include <math.h>
#include <string.h>

/* The number of runs of the clients. */
static size_t cell_runs(const cell *c)
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

/* Sums n children from `from` on; all are clients, or all are inner nodes. */
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

/* ---- robust against a lying minority ---- */

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

/* ---- sum over all children ---- */

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

/* ---- figures ---- */

tally cell_own_tally(const cell_node *n, size_t M, const double *w0)
{
    const hfsad_penalty *prior = &n->class->prior;
    tally t = {.priors = kernels()->prior_value(prior, M, n->w),
               .consensus_priors = kernels()->prior_value(prior, M, w0)};
    if (n->depth == 0)
        return t;
    kernels()->link_measure(n->rule, n->link, M, n->w, n->w_parent, w0, &t.tier[n->depth - 1]);
    t.dual[n->depth - 1] = n->dual;
    return t;
}

static void add_words(const cell *c, size_t tiers, tally *t)
{
    enum { WORDS = (TALLY_MOST + HFSAD_TIERS_MAX) * FIXED_WORDS };
    uint64_t sum[WORDS], room[WORDS];
    fixed_tally_put(t, tiers, sum);
    for (size_t slot = 0; slot < c->n_inner + c->n_leaves; slot++) {
        const uint64_t *words = c->tally_words(c->context, slot, room);
        if (words)
            fixed_add(sum, words, fixed_tally_numbers(tiers));
    }
    fixed_tally_get(t, tiers, sum);
}

/* The order of plan/tally.h, but with the intercepts one after another, as cell_settle reads them. */
static void add_run(const cell *c, size_t run, tally *t)
{
    const size_t slots = run_slots(c->M), first = run * slots;
    tally all = {0}, child;
    if (c->run_tally)
        c->run_tally(c->context, run, &all);
    for (size_t leaf = first; !c->run_tally && leaf < c->n_leaves && leaf < first + slots; leaf++) {
        if (!c->tally(c->context, c->n_inner + leaf, &child))
            continue;
        t->intercepts += child.intercepts;
        child.intercepts = 0;
        tally_add(&all, &child);
    }
    tally_add(t, &all);
}

void cell_add_tallies(const cell *c, size_t tiers, tally *t)
{
    tally child;
    if (c->p->fixed) {
        add_words(c, tiers, t);
        return;
    }
    for (size_t slot = 0; slot < c->n_inner; slot++)
        if (c->tally(c->context, slot, &child))
            tally_add(t, &child);
    for (size_t run = 0; run < cell_runs(c); run++)
        add_run(c, run, t);
}

/* ---- the safeguard ---- */

guard_strain cell_strain_below(const cell *c)
{
    guard_strain sum = {0, 0};
    uint64_t words[2] = {0, 0};
    for (size_t slot = 0; slot < c->n_inner; slot++) {
        const cell_strain child = c->strain(c->context, slot);
        if (c->p->fixed) {
            words[0] += child.words[0];
            words[1] += child.words[1];
        } else {
            sum.sum += child.numbers.sum;
            sum.count += child.numbers.count;
        }
    }
    if (c->p->fixed)
        sum = (guard_strain){(double)(int64_t)words[0] / STRAIN_FACTOR, (double)(int64_t)words[1] / STRAIN_FACTOR};
    return sum;
}

guard_strain cell_strain_up(const cell *c, const inner_class *class, const hfsad_link_rule *rule,
                            const hfsad_link *link)
{
    const guard_strain own = guard_link(class, rule, link, c->M), below = cell_strain_below(c);
    return (guard_strain){own.sum + below.sum, own.count + below.count};
}

/* ---- restart ---- */

void cell_begin_anew(const cell_link *l, size_t M, const double *w, bool repaired)
{
    if (l->w) {
        memmove(l->w, w, M * sizeof *w);
        memcpy(l->z, l->w, M * sizeof *w);
        memcpy(l->q, l->w, M * sizeof *w);
    }
    *l->k = 0;
    if (l->dual)
        *l->dual = repaired ? guard_dual(*l->dual) : 0;
    if (l->slope)
        memset(l->slope, 0, l->rows * sizeof *l->slope);
    if (l->eta)
        *l->eta = 0;
}

/* ---- intercepts ---- */

bool cell_settle(const cell *c, intercept_owner owner, size_t leaves, double w, double *sum, double count, double *mean)
{
    if (!owner.client && owner.edge)
        *sum += (double)leaves * w;
    if (!owner.client && !(owner.edge && c->n_leaves == 0))
        return false;
    *mean = *sum / count;
    return true;
}
