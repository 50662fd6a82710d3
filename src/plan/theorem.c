/* Theorem 1: consensus and stationarity hold for tv links if
 *
 *     alpha c >= sqrt(20) nu_f,  weight >= nu_f                 on client links
 *     beta  d >= sqrt(20) omega_0,  weight >= omega_0           on the links of inner nodes
 *     omega_0 = (what pulls from below: the children's nu_f or omega_0 added up, the most of a depth) + nu_r
 *
 * nu_f bounds the subgradients of the losses and nu_r those of the priors. For phase retrieval nu_f is the paper's
 * 5 max |x|; the report says so, since over the whole box the subgradients are larger.
 */
#include "plan/plan.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double tolerance = 1e-12; /* the paper's constants meet the conditions with equality */

/* Of the subgradients of a prior, anywhere. */
static double prior_bound(const hfsad_penalty *prior, double length)
{
    (void)length;
    return penalty_steepest(prior, INFINITY);
}

/* Leaves in `why` the reason if the losses' subgradients have no known bound. */
static void find_bounds(theorem_report *t, const dataset *d, const plan *p, char *why, size_t room)
{
    const hfsad_loss *own = NULL, *grows = NULL;
    for (size_t c = p->n_leaf_classes; c-- > 0;) {
        const hfsad_loss *loss = &p->leaf_classes[c].loss;
        own = loss->kind == HFSAD_LOSS_OWN ? loss : own;
        grows = loss_kind_of(loss)->growth ? loss : grows;
    }
    for (size_t i = 1; i < d->n_inner; i++) /* the cloud's prior pulls through no link */
        t->nu_r = fmax(t->nu_r, prior_bound(&p->inner[i].prior, INFINITY));
    if (own) {
        t->nu_f = INFINITY;
        snprintf(why, room, "nothing bounds the gradient of a program's own loss");
    } else if (!isfinite(t->nu_f)) {
        snprintf(why, room, "the %s loss without a box, or with an intercept, has no bounded gradient",
                 grows ? loss_names[grows->kind] : "data's");
    } else if (!isfinite(t->nu_r)) {
        snprintf(why, room, "an edge's prior of l2 or elastic-net has no bounded gradient");
    }
}

/* Keeps the link with the smallest margin. */
static void worst(double have, double need, double *kept_have, double *kept_need, bool first)
{
    if (first || have / need < *kept_have / *kept_need) {
        *kept_have = have;
        *kept_need = need;
    }
}

static void check_leaves(theorem_report *t, const dataset *d, const plan *p)
{
    const leaf_class *before = NULL;
    for (size_t leaf = 0; leaf < d->n_leaves; leaf++) {
        const leaf_class *class = plan_leaf(p, leaf);
        if (class == before)
            continue;
        const hfsad_link_rule *rule = &class->rule;
        t->links_are_tv = t->links_are_tv && rule->penalty.kind == HFSAD_PENALTY_L1;
        worst(rule->schedule.alpha * rule->schedule.c, sqrt(20) * t->nu_f, &t->client_alpha_c, &t->client_needed,
              !before);
        worst(hfsad_penalty_slope(&rule->penalty), t->nu_f, &t->client_weight, &t->client_weight_needed, !before);
        before = class;
    }
}

static void check_inner(theorem_report *t, const dataset *d, const plan *p)
{
    double need[HFSAD_TIERS_MAX + 2];
    omega_0_by_depth(d, t->nu_f, prior_bound, p, need);
    for (size_t i = 1; i < d->n_inner; i++) {
        const hfsad_link_rule *rule = &p->inner[i].rule;
        const double omega_0 = need[d->inner[i].depth];
        t->links_are_tv = t->links_are_tv && rule->penalty.kind == HFSAD_PENALTY_L1;
        worst(rule->schedule.alpha * rule->schedule.c, sqrt(20) * omega_0, &t->edge_beta_d, &t->edge_needed, i == 1);
        worst(hfsad_penalty_slope(&rule->penalty), omega_0, &t->edge_weight, &t->edge_weight_needed, i == 1);
    }
}

static bool enough(double have, double need)
{
    return have >= need * (1 - tolerance);
}

hfsad_status theorem_bound(double *nu_f, const surveyor *ask, hfsad_error *err)
{
    const survey_question q = {SURVEY_BOUND, 0, NULL, 1, 0};
    return ask->ask(ask->context, &q, nu_f, err);
}

void theorem_check(theorem_report *t, const dataset *d, const plan *p, double nu_f)
{
    *t = (theorem_report){.links_are_tv = true, .nu_f = nu_f};
    char unbounded[sizeof t->reason] = "";
    find_bounds(t, d, p, unbounded, sizeof unbounded);
    check_leaves(t, d, p);
    check_inner(t, d, p);
    char *why = t->reason;
    const size_t room = sizeof t->reason;
    if (!t->links_are_tv)
        snprintf(why, room, "not every link is tv");
    else if (*unbounded)
        snprintf(why, room, "%s", unbounded);
    else if (!enough(t->client_weight, t->client_weight_needed))
        snprintf(why, room, "a client link's weight is %.4g, below nu_f = %.4g", t->client_weight,
                 t->client_weight_needed);
    else if (!enough(t->client_alpha_c, t->client_needed))
        snprintf(why, room, "alpha c = %.4g on client links, below sqrt(20) nu_f = %.4g", t->client_alpha_c,
                 t->client_needed);
    else if (d->n_inner > 1 && !enough(t->edge_weight, t->edge_weight_needed))
        snprintf(why, room, "an edge link's weight is %.4g, below omega_0 = %.4g", t->edge_weight,
                 t->edge_weight_needed);
    else if (d->n_inner > 1 && !enough(t->edge_beta_d, t->edge_needed))
        snprintf(why, room, "alpha c = %.4g on edge links, below sqrt(20) omega_0 = %.4g", t->edge_beta_d,
                 t->edge_needed);
    t->holds = !*why;
}
