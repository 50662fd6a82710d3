#include "plan/owners.h"

#include "base/alloc.h"
#include "base/error.h"
#include "data/features.h"
#include "plan/method.h"

#include <string.h>

static size_t scores_of(const dataset *d)
{
    return d->classes ? d->classes : 1;
}

hfsad_status owners_find(plan *p, const hfsad_spec *spec, const dataset *d, hfsad_error *err)
{
    const bool client = spec->features.intercept == INTERCEPT_CLIENT;
    if ((!client && spec->features.intercept != INTERCEPT_EDGE) || !plan_is_convex(p, d->n_inner))
        return HFSAD_OK;
    for (size_t c = 0; c < p->n_leaf_classes; c++)
        if (loss_kind_of(&p->leaf_classes[c].loss)->several) /* scores of a row have coordinates in common */
            return HFSAD_OK;
    p->owner = client ? NULL : alloc_zero(d->n_inner, sizeof *p->owner);
    if (!client && !p->owner)
        return error_memory(err, d->n_inner * sizeof *p->owner, "the edges' intercepts");
    p->owners = client ? d->n_leaves : 0;
    for (size_t i = 0; p->owner && i < d->n_inner; i++) {
        p->owner[i] = (uint32_t)p->owners;
        p->owners += d->inner[i].n_leaves > 0;
    }
    if (owners_coordinates(p, d) > OWNERS_NUMBERS_MOST / d->n_leaves)
        p->owners = 0;
    return HFSAD_OK;
}

size_t owners_coordinates(const plan *p, const dataset *d)
{
    return p->owners ? (features_count(d) + p->owners) * scores_of(d) : d->M;
}

size_t owners_of(const plan *p, const dataset *d, size_t leaf)
{
    return !p->owners ? 0 : p->owner ? p->owner[dataset_parent(d, leaf)] : leaf;
}

void owners_spread(const plan *p, const dataset *d, const double *w, double *all)
{
    const size_t K = scores_of(d), F = features_weights(d);
    memcpy(all, w, d->M * sizeof *all);
    for (size_t o = 1; o < p->owners; o++)
        memcpy(all + F + o * K, w + F, K * sizeof *all);
}

/* The sum over the clients below of what their rows have; returns how many they are. */
static size_t add_below(const plan *p, const dataset *d, size_t i, const double *levels, double *sum)
{
    const inner_node *node = &d->inner[i];
    const size_t K = scores_of(d);
    size_t count = node->n_leaves;
    for (size_t leaf = node->first_leaf; leaf < node->first_leaf + count; leaf++)
        for (size_t k = 0; k < K; k++)
            sum[k] += levels[owners_of(p, d, leaf) * K + k];
    for (size_t child = node->first_inner; child < node->first_inner + node->n_inner; child++)
        count += add_below(p, d, child, levels, sum);
    return count;
}

void owners_model(const plan *p, const dataset *d, size_t node, const double *all, double *w)
{
    const size_t K = scores_of(d), F = features_weights(d);
    memcpy(w, all, F * sizeof *w);
    if (!p->owners) {
        memcpy(w + F, all + F, (d->M - F) * sizeof *w);
    } else if (node >= d->n_inner || (p->owner && d->inner[node].n_leaves)) {
        const size_t o = node >= d->n_inner ? owners_of(p, d, node - d->n_inner) : p->owner[node];
        memcpy(w + F, all + F + o * K, K * sizeof *w);
    } else {
        memset(w + F, 0, K * sizeof *w);
        const size_t count = add_below(p, d, node, all + F, w + F);
        for (size_t k = 0; k < K; k++)
            w[F + k] /= count ? (double)count : 1;
    }
}
