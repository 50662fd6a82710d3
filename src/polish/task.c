#include "polish/task.h"

#include "base/alloc.h"
#include "data/features.h"

#include <math.h>
#include <stdio.h>

static const char *link_forbids(const hfsad_penalty *p)
{
    if (penalty_is_concave(p))
        return "link: mcp and scad let nodes keep models of their own";
    if (!(hfsad_penalty_slope(p) > 0) || penalty_is_flat(p))
        return "link: some nodes are not tied to each other";
    return p->free ? "features.intercept: clients or edges have intercepts of their own" : NULL;
}

const char *polish_why_not(const plan *p, size_t n_inner)
{
    const char *why = NULL;
    for (size_t c = 0; c < p->n_leaf_classes; c++)
        if (p->leaf_classes[c].loss.kind == HFSAD_LOSS_OWN)
            return "loss.kind: nothing is known of a program's own loss but what it answers";
    for (size_t c = 0; c < p->n_leaf_classes && !why; c++)
        why = link_forbids(&p->leaf_classes[c].rule.penalty);
    for (size_t i = 1; i < n_inner && !why; i++) /* the cloud has no link */
        why = link_forbids(&p->inner[i].rule.penalty);
    return why;
}

bool polish_is_convex(const plan *p, size_t n_inner)
{
    for (size_t c = 0; c < p->n_leaf_classes; c++)
        if (!loss_kind_of(&p->leaf_classes[c].loss)->conjugate)
            return false;
    for (size_t i = 0; i < n_inner; i++)
        if (penalty_is_concave(&p->inner[i].prior) && p->inner[i].prior.weight > 0)
            return false;
    return true;
}

/* Whether some client's loss is phase retrieval's. */
static bool is_anchored(const plan *p)
{
    for (size_t c = 0; c < p->n_leaf_classes; c++)
        if (loss_kind_of(&p->leaf_classes[c].loss)->majorised)
            return true;
    return false;
}

bool polish_is_due(const hfsad_spec *spec, const plan *p, size_t n_inner, size_t M)
{
    if (spec->run.polish >= 0)
        return spec->run.polish == 1;
    return spec->top.algorithm == ALGORITHM_HFSAD && spec->top.preset != PRESET_PAPER && spec->run.iterations > 0 &&
           M <= POLISH_DIRECT && !polish_why_not(p, n_inner) && (polish_is_convex(p, n_inner) || is_anchored(p));
}

/* The smallest of all clients, because they share one model. */
static double box_of(const plan *p)
{
    double box = INFINITY;
    for (size_t c = 0; c < p->n_leaf_classes; c++)
        box = fmin(box, p->leaf_classes[c].loss.box);
    return box;
}

bool polish_problem_make(polish_problem *problem, const plan *p, const dataset *d)
{
    hfsad_penalty *priors = alloc_zero(d->n_inner, sizeof *priors);
    *problem = (polish_problem){
        .M = d->M,
        .boxed = features_count(d),
        .box = box_of(p),
        .n_priors = d->n_inner,
        .priors = priors,
        .direct = POLISH_DIRECT,
        .anchored = is_anchored(p),
    };
    for (size_t i = 0; priors && i < d->n_inner; i++)
        priors[i] = p->inner[i].prior;
    return priors != NULL;
}

/* Smooth losses of labels alone (logistic) are left at next to 0: a plane separates the classes. */
static bool is_separable(const plan *p, const polish_result *found)
{
    for (size_t c = 0; c < p->n_leaf_classes; c++) {
        const loss_kind *kind = loss_kind_of(&p->leaf_classes[c].loss);
        if (!kind->labels || !kind->bend)
            return false;
    }
    return found->after <= 1e-4 * found->zero && found->bound >= 0.9 * found->after;
}

void polish_count(hfsad_polish *to, const polish_result *found, uint64_t links)
{
    to->exchanges = found->exchanges;
    to->bytes_down = links * found->down * sizeof(double);
    to->bytes_up = links * found->up * sizeof(double);
    to->objective_before = found->before;
    to->objective_after = found->after;
    to->objective_zero = found->zero;
}

/* Whether the weights are those by which Theorem 1 ties all nodes. Then a lower objective of models that differ comes
 * from links that have not converged or, for phase retrieval, whose bound is the paper's number, from the fit of an
 * outlier. */
static bool ties(const dataset *d, const plan *p, double nu_f)
{
    theorem_report t;
    theorem_check(&t, d, p, nu_f);
    const double most = 1 - 1e-12;
    return t.links_are_tv && t.client_weight >= most * t.client_weight_needed &&
           (d->n_inner == 1 || t.edge_weight >= most * t.edge_weight_needed);
}

void polish_judge(hfsad_polish *to, const polish_result *found, const dataset *d, const plan *p, double nu_f,
                  double objective)
{
    to->unbounded = found->finished && is_separable(p, found);
    if (!found->finished)
        snprintf(to->reason, sizeof to->reason, "interrupted");
    else if (!isfinite(found->after) || found->after > found->before)
        snprintf(to->reason, sizeof to->reason, "no better model was found");
    else if (to->unbounded)
        snprintf(to->reason, sizeof to->reason,
                 "a plane separates the classes: the loss goes to 0 as the model grows and has no minimum");
    else if (!ties(d, p, nu_f) && found->after > objective + 1e-9 * fabs(objective))
        snprintf(
            to->reason, sizeof to->reason,
            "link: the run's own models, which differ, have the lower objective %.9g; larger weights would tie them",
            objective);
    else
        to->accepted = true;
    to->gap = to->accepted ? found->bound : NAN;
    to->residual = found->residual;
}
