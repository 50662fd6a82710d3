#include "personal/personal_task.h"

#include "base/alloc.h"
#include "data/features.h"
#include "plan/method.h"

#include <math.h>
#include <string.h>

bool personal_is_due(const hfsad_spec *spec)
{
    return spec->top.personal == PERSONAL_GROUPS;
}

static bool same_loss(const hfsad_loss *a, const hfsad_loss *b)
{
    return a->kind == b->kind && a->tau == b->tau && a->delta == b->delta && a->h == b->h && a->box == b->box;
}

const char *personal_why_not(const hfsad_spec *spec, const plan *p, size_t n_inner, size_t M)
{
    const char *why = plan_why_apart(p, n_inner);
    if (algorithm_is_baseline(spec->top.algorithm))
        return "algorithm: groups are not found with fedavg and fedprox";
    if (why || p->owners)
        return why ? why : "features.intercept: clients or edges have intercepts of their own";
    for (size_t c = 0; c < p->n_leaf_classes; c++) {
        const leaf_class *class = &p->leaf_classes[c];
        if (!loss_kind_of(&class->loss)->conjugate)
            return "loss.kind: groups are found for convex losses only";
        if (class->mean)
            return "loss.scale: a client's weight for a group follows from the sum over its rows; use sum";
        if (!same_loss(&class->loss, &p->leaf_classes[0].loss))
            return "overrides: all clients must have the same loss";
    }
    return M > PERSONAL_COORDINATES ? "data: groups are found for at most 256 coordinates" : NULL;
}

bool personal_problem_make(personal_problem *problem, const hfsad_spec *spec, const plan *p, const dataset *d)
{
    hfsad_penalty *priors = alloc_zero(d->n_inner, sizeof *priors);
    *problem = (personal_problem){
        .M = d->M,
        .boxed = features_count(d),
        .box = p->leaf_classes[0].loss.box,
        .n_priors = d->n_inner,
        .priors = priors,
        .loss = &p->leaf_classes[0].loss,
        .most = (size_t)spec->groups.most,
        .least = spec_cohort(spec),
        .n_clients = d->n_leaves,
        .length = p->length,
        .members = spec_shows_clients(spec),
    };
    for (size_t i = 0; priors && i < d->n_inner; i++)
        priors[i] = p->inner[i].prior;
    return priors != NULL;
}
