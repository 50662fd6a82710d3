#include "plan/cohort.h"

#include "base/error.h"
#include "base/fixed.h"

#include <string.h>

size_t cohorts_of(const plan *p, size_t n)
{
    return p->cohort < COHORT_LEAST || n < p->cohort ? n : n / p->cohort;
}

size_t cohort_first(size_t n, size_t cohorts, size_t i)
{
    return i * n / cohorts;
}

/* The number of the cohort that a child is in. */
static size_t cohort_with(size_t n, size_t cohorts, size_t slot)
{
    size_t i = slot * cohorts / n;
    while (i > 0 && cohort_first(n, cohorts, i) > slot)
        i--;
    while (i + 1 < cohorts && cohort_first(n, cohorts, i + 1) <= slot)
        i++;
    return i;
}

size_t cohort_of(const plan *p, size_t n, size_t slot)
{
    const size_t cohorts = cohorts_of(p, n);
    return cohort_first(n, cohorts, cohort_with(n, cohorts, slot));
}

size_t cohort_members(const plan *p, size_t n, size_t slot)
{
    const size_t cohorts = cohorts_of(p, n), i = cohort_with(n, cohorts, slot);
    return cohort_first(n, cohorts, i + 1) - cohort_first(n, cohorts, i);
}

static bool is_alike(const hfsad_link_rule *a, const hfsad_link_rule *b)
{
    return memcmp(&a->schedule, &b->schedule, sizeof a->schedule) == 0;
}

static hfsad_status check_clients(const plan *p, const dataset *d, const inner_node *node, hfsad_error *err)
{
    const size_t n = node->n_leaves;
    if (n > 0 && n < p->cohort)
        return error_set(err, HFSAD_ERROR_INPUT,
                         "privacy.cohort: %.100s has %zu clients, and a cohort %zu at least; lower privacy.cohort or "
                         "move the clients to another node",
                         node->name, n, p->cohort);
    for (size_t i = 0; i < n; i++) {
        const size_t leaf = node->first_leaf + i, first = node->first_leaf + cohort_of(p, n, i);
        const leaf_class *a = plan_leaf(p, leaf), *b = plan_leaf(p, first);
        char name[HFSAD_TIERS_MAX * 256];
        dataset_leaf_name(d, leaf, name, sizeof name);
        if (!is_alike(&a->rule, &b->rule) || a->participation != b->participation || a->local_steps != b->local_steps)
            return error_set(
                err, HFSAD_ERROR_INPUT,
                "privacy.cohort: overrides give %.200s another schedule, participation or local_steps than "
                "other clients of its cohort; give all clients of a node the same",
                name);
    }
    return HFSAD_OK;
}

hfsad_status cohorts_check(const plan *p, const dataset *d, hfsad_error *err)
{
    hfsad_status status = HFSAD_OK;
    if (!p->fixed && p->cohort)
        return error_set(err, HFSAD_ERROR_INPUT,
                         "privacy.cohort needs federation.wire fixed or privacy.aggregation "
                         "secure");
    for (size_t i = 0; i < d->n_inner && p->fixed && !status; i++) {
        const inner_node *node = &d->inner[i];
        if ((size_t)node->n_inner + node->n_leaves > FIXED_SUM_MOST)
            return error_set(err, HFSAD_ERROR_INPUT, "federation.wire: fixed: %.100s has more than %d children",
                             node->name, FIXED_SUM_MOST);
        if (p->cohort)
            status = check_clients(p, d, node, err);
        for (size_t c = 0; c < node->n_inner && p->cohort && !status; c++) {
            const inner_class *a = &p->inner[node->first_inner + c],
                              *b = &p->inner[node->first_inner + cohort_of(p, node->n_inner, c)];
            if (!is_alike(&a->rule, &b->rule) || a->participation != b->participation)
                status = error_set(err, HFSAD_ERROR_INPUT,
                                   "privacy.cohort: overrides give %.100s another schedule or participation than other "
                                   "nodes of its cohort; give all nodes below a node the same",
                                   d->inner[node->first_inner + c].name);
        }
    }
    return status;
}
