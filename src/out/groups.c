#include "out/groups.h"

#include "base/alloc.h"
#include "base/error.h"
#include "data/features.h"
#include "run/personal_run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const hfsad_run *run;
    node_groups *g;
    uint32_t *first; /* for each group, the node whose model represents it */
    double *w, *other;
} search;

static void model_of(const hfsad_run *r, size_t node, double *w)
{
    if (node < r->data->n_inner)
        memcpy(w, r->engine->inner_model(r, node), r->data->M * sizeof *w);
    else
        r->engine->leaf_model(r, node - r->data->n_inner, w);
}

static const hfsad_penalty *link_penalty(const hfsad_run *r, size_t node)
{
    const size_t inner = r->data->n_inner;
    if (node < inner)
        return &r->plan->inner[node].rule.penalty;
    return &plan_leaf(r->plan, node - inner)->rule.penalty;
}

static size_t parent_of(const dataset *d, size_t node)
{
    return node < d->n_inner ? d->inner[node].parent : dataset_parent(d, node - d->n_inner);
}

/* Whether the model in s->w and the node's model differ by less than `reach` in every coordinate that the link ties;
 * for a link of norms, whether the norm of the difference is below `reach`. */
static bool near(search *s, size_t node, double reach, size_t tied, bool group)
{
    double most = 0;
    model_of(s->run, node, s->other);
    for (size_t m = 0; m < tied; m++) {
        const double d = fabs(s->w[m] - s->other[m]);
        most = group ? hypot(most, d) : fmax(most, d);
    }
    return most < reach;
}

static void place(search *s, size_t node)
{
    node_groups *g = s->g;
    const size_t parent = parent_of(s->run->data, node);
    const hfsad_penalty *link = link_penalty(s->run, node);
    const size_t tied = s->run->data->M - link->free;
    const double reach = link->gamma * link->lambda;
    const bool group = penalty_kind_of(link)->group;
    g->group[node] = g->group[parent];
    if (!penalty_is_concave(link))
        return;
    model_of(s->run, node, s->w);
    if (near(s, parent, reach, tied, group))
        return;
    uint32_t i = 0;
    while (i < g->count && !near(s, s->first[i], reach, tied, group))
        i++;
    if (i == g->count && g->count < GROUPS_MOST)
        s->first[g->count++] = (uint32_t)node;
    g->group[node] = i < g->count ? i : (uint32_t)g->count - 1;
}

/* Groups as personal/grow.h found them, the largest first; inner nodes belong to the largest. If the cloud does not
 * have the clients' weights, it only knows the groups' sizes. */
static hfsad_status take_found(node_groups *g, const hfsad_run *run, hfsad_error *err)
{
    const dataset *d = run->data;
    const personal_result *found = &run->personal.found;
    g->group = alloc_zero(d->n_inner + d->n_leaves, sizeof *g->group);
    g->clients = alloc_zero(found->K, sizeof *g->clients);
    if (!g->group || !g->clients) {
        groups_free(g);
        return error_memory(err, d->n_leaves * sizeof *g->group, "the groups");
    }
    g->count = found->K;
    for (size_t k = 0; k < found->K; k++)
        g->clients[k] = (size_t)found->size[k];
    for (size_t leaf = 0; leaf < d->n_leaves && found->p; leaf++)
        g->group[d->n_inner + leaf] = run_group_of(run, leaf);
    return HFSAD_OK;
}

hfsad_status groups_find(node_groups *g, const hfsad_run *run, hfsad_error *err)
{
    const dataset *d = run->data;
    const size_t nodes = d->n_inner + d->n_leaves;
    *g = (node_groups){0};
    if (run->personal.found.K)
        return take_found(g, run, err);
    if (!run->algorithm->links || !plan_lets_go(run->plan, d->n_inner))
        return HFSAD_OK;
    g->group = alloc_zero(nodes, sizeof *g->group);
    g->clients = alloc_zero(GROUPS_MOST, sizeof *g->clients);
    search s = {run, g, alloc_zero(GROUPS_MOST, sizeof *s.first), alloc_zero(d->M, sizeof(double)),
                alloc_zero(d->M, sizeof(double))};
    const bool enough = g->group && g->clients && s.first && s.w && s.other;
    if (enough) {
        g->count = 1;
        for (size_t node = 1; node < nodes; node++)
            place(&s, node);
        for (size_t node = d->n_inner; node < nodes; node++)
            g->clients[g->group[node]]++;
    }
    free(s.first);
    free(s.w);
    free(s.other);
    if (enough)
        return HFSAD_OK;
    groups_free(g);
    return error_memory(err, nodes * sizeof *g->group, "the groups");
}

size_t groups_count_same(const node_groups *g, const hfsad_run *run)
{
    const dataset *d = run->data;
    const double *cloud = run->engine->inner_model(run, 0);
    double *w = alloc_zero(d->M, sizeof *w), largest = 0;
    size_t count = 0;
    for (size_t m = 0; m < features_count(d); m++)
        largest = fmax(largest, fabs(cloud[m]));
    for (size_t leaf = 0; leaf < d->n_leaves && w; leaf++) {
        if (g->group[d->n_inner + leaf] != 0)
            continue;
        const size_t tied = d->M - link_penalty(run, d->n_inner + leaf)->free;
        double most = 0;
        model_of(run, d->n_inner + leaf, w);
        for (size_t m = 0; m < tied; m++)
            most = fmax(most, fabs(w[m] - cloud[m]));
        count += most <= 0.01 * largest;
    }
    free(w);
    return count;
}

void groups_free(node_groups *g)
{
    free(g->group);
    free(g->clients);
    *g = (node_groups){0};
}
