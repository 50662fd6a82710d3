/* Fixed point (base/fixed.h): what a node sends up, and the sums of what its children send. With secure aggregation a
 * child's words are masked, and only the sum over its cohort means something. */
#include "net/node_parts.h"

#include "net/veil.h"

#include <string.h>

void node_digest(const node *n, message *m)
{
    if (!n->s.p->secure || m->fixed || (m->kind != MESSAGE_DOWN && m->kind != MESSAGE_ASK))
        return;
    /* Behind the w of a DOWN are calls (node_unit.c), which may be others when it is repeated. */
    const size_t most = m->kind == MESSAGE_DOWN ? n->s.M : SIZE_MAX;
    veil_digest(m->values, m->count < most ? m->count : most, m->digest);
    m->digested = true;
}

/* Among the children of its sort of its parent. */
size_t fixed_cohort(const node *n)
{
    return cohort_members(n->s.p, n->s.leaf ? n->s.siblings - n->s.inner_siblings : n->s.inner_siblings,
                          n->s.leaf ? n->s.slot - n->s.inner_siblings : n->s.slot);
}

bool fixed_up(node *n, message *m)
{
    size_t at;
    const size_t M = n->s.M, members = fixed_cohort(n);
    double *strain = m->values + M;
    if (!cell_words(n->s.p, M, m->sigma, members, n->leaf.noise.before ? &n->leaf.noise.words : NULL, n->k,
                    m->values) ||
        !grid_put(strain, m->count - M, STRAIN_FACTOR, members, (int64_t *)(void *)strain, &at)) {
        n->too_large = true;
        return false;
    }
    m->fixed = true;
    memcpy(m->digest, n->up_digest, sizeof m->digest);
    return true;
}

/* child_u has doubles, which its parent knows without a message. */
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

/* ---- tallies ---- */

void fixed_say_tally(node *n)
{
    tally t;
    tally_unpack(&t, n->s.tiers, n->answer.figures);
    fixed_tally_put(&t, n->s.tiers, (uint64_t *)(void *)n->answer.words);
}

void fixed_show_tally(const node *n, const double *words, double *numbers)
{
    tally t;
    fixed_tally_get(&t, n->s.tiers, (const uint64_t *)(const void *)words);
    tally_pack(&t, n->s.tiers, numbers);
}
