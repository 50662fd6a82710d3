/* Fixed point (base/fixed.h): what a node sends up, and the sums of what its children send. With secure aggregation a
 * child's words are masked, and only the sum over its cohort means something. */
#include "net/node_parts.h"

#include "net/veil.h"

#include <math.h>
#include <string.h>

void node_digest(const node *n, message *m)
{
    if (n->s.p->secure)
        veil_digest(m->values, m->count, m->digest);
}

static size_t cohort_size(const node *n, size_t count, size_t slot)
{
    const size_t cohorts = cohorts_of(n->s.p, count), first = cohort_of(n->s.p, count, slot);
    size_t end = first + 1;
    while (end < count && cohort_of(n->s.p, count, end) == first)
        end++;
    return cohorts == count ? 1 : end - first;
}

/* Among the children of its sort of its parent. */
size_t fixed_cohort(const node *n)
{
    return cohort_size(n, n->s.leaf ? n->s.siblings - n->s.inner_siblings : n->s.inner_siblings,
                       n->s.leaf ? n->s.slot - n->s.inner_siblings : n->s.slot);
}

bool fixed_up(node *n, message *m)
{
    size_t at;
    int64_t *words = (int64_t *)(void *)m->values;
    const size_t M = n->s.M;
    if (!isfinite(m->sigma) || !grid_put(m->values, M, plan_up_factor(n->s.p, m->sigma), fixed_cohort(n), words, &at) ||
        !grid_put(m->values + M, m->count - M, STRAIN_FACTOR, fixed_cohort(n), words + M, &at)) {
        n->too_large = true;
        return false;
    }
    if (n->s.leaf && n->s.p->secure && n->leaf.noise.before && n->k) /* before its first step it knows no rows */
        noise_words(n->s.p, &n->leaf.noise.words, n->k, fixed_cohort(n), m->sigma, M, words);
    m->fixed = true;
    memcpy(m->digest, n->up_digest, sizeof m->digest);
    return true;
}

/* Of `count` children from `from`, all clients or all inner nodes. */
static double sum_cohorts(node *n, size_t from, size_t count)
{
    const size_t M = n->s.M, cohorts = cohorts_of(n->s.p, count);
    uint64_t *total = n->inner.total;
    double sigma = 0;
    for (size_t i = 0; i < cohorts; i++) {
        double factor = 1;
        memset(total, 0, M * sizeof *total);
        for (size_t c = from + cohort_first(count, cohorts, i); c < from + cohort_first(count, cohorts, i + 1); c++) {
            factor = plan_up_factor(n->s.p, n->inner.child[c].sigma);
            sigma += n->inner.child[c].sigma;
            for (size_t m = 0; m < M; m++) {
                uint64_t word;
                memcpy(&word, n->inner.child_u + c * M + m, sizeof word);
                total[m] += word;
            }
        }
        for (size_t m = 0; m < M; m++)
            n->inner.sum[m] += (double)(int64_t)total[m] / factor;
    }
    return sigma;
}

double fixed_inner_sum(node *n)
{
    const size_t leaves = inner_first_leaf(n);
    memset(n->inner.sum, 0, n->s.M * sizeof *n->inner.sum);
    const double inner = sum_cohorts(n, 0, leaves);
    return inner + sum_cohorts(n, leaves, n->s.n_children - leaves);
}

/* child_u has doubles, which its parent knows without being told. */
void fixed_assume(node *n, size_t c)
{
    double *u = n->inner.child_u + c * n->s.M;
    size_t at;
    n->too_large = !grid_put(u, n->s.M, plan_up_factor(n->s.p, n->inner.child[c].sigma), 2 * n->s.p->cohort + 1,
                             (int64_t *)(void *)u, &at) ||
                   n->too_large;
    memset(n->inner.child[c].strain_words, 0, sizeof n->inner.child[c].strain_words);
}

const double *fixed_shown(node *n, const message *m)
{
    const double factor = plan_up_factor(n->s.p, m->sigma);
    double *to = n->inner.partial;
    for (size_t i = 0; i < n->s.M; i++) {
        int64_t word;
        memcpy(&word, m->values + i, sizeof word);
        to[i] = (double)word / factor;
    }
    return to;
}

guard_strain fixed_strain(const node *n)
{
    uint64_t all[2] = {0, 0};
    for (size_t c = 0; c < n->s.n_children && !n->s.children[c].leaf; c++)
        for (size_t i = 0; i < 2; i++)
            all[i] += n->inner.child[c].strain_words[i];
    return (guard_strain){(double)(int64_t)all[0] / STRAIN_FACTOR, (double)(int64_t)all[1] / STRAIN_FACTOR};
}

/* ---- tallies ---- */

void fixed_say_tally(node *n)
{
    tally t;
    tally_unpack(&t, n->s.tiers, n->answer.figures);
    fixed_tally_put(&t, n->s.tiers, (uint64_t *)(void *)n->answer.words);
}

void fixed_add_children(const node *n, tally *t)
{
    const size_t numbers = fixed_tally_numbers(n->s.tiers), words = numbers * FIXED_WORDS;
    uint64_t *total = n->inner.total;
    fixed_tally_put(t, n->s.tiers, total);
    for (size_t c = 0; c < n->s.n_children; c++)
        fixed_add(total, (const uint64_t *)(const void *)(n->inner.child_figures + c * words), numbers);
    fixed_tally_get(t, n->s.tiers, total);
}

void fixed_show_tally(const node *n, const double *words, double *numbers)
{
    tally t;
    fixed_tally_get(&t, n->s.tiers, (const uint64_t *)(const void *)words);
    tally_pack(&t, n->s.tiers, numbers);
}
