#include "plan/method.h"

#include "math/loss_kind.h"

#include <math.h>
#include <string.h>

static const char *link_forbids(const plan *of, const hfsad_penalty *p)
{
    if (penalty_is_concave(p))
        return "link: mcp and scad let nodes keep models of their own";
    if (!(hfsad_penalty_slope(p) > 0) || penalty_is_flat(p))
        return "link: some nodes are not tied to each other";
    return p->free && !of->owners ? "features.intercept: clients or edges have intercepts of their own" : NULL;
}

const char *plan_why_apart(const plan *p, size_t n_inner)
{
    const char *why = NULL;
    for (size_t c = 0; c < p->n_leaf_classes; c++)
        if (p->leaf_classes[c].loss.kind == HFSAD_LOSS_OWN)
            return "loss.kind: nothing is known of a program's own loss but what it answers";
    for (size_t c = 0; c < p->n_leaf_classes && !why; c++)
        why = link_forbids(p, &p->leaf_classes[c].rule.penalty);
    for (size_t i = 1; i < n_inner && !why; i++) /* the cloud has no link */
        why = link_forbids(p, &p->inner[i].rule.penalty);
    return why;
}

bool plan_is_convex(const plan *p, size_t n_inner)
{
    for (size_t c = 0; c < p->n_leaf_classes; c++)
        if (!loss_kind_of(&p->leaf_classes[c].loss)->conjugate && !loss_kind_of(&p->leaf_classes[c].loss)->several)
            return false;
    for (size_t i = 0; i < n_inner; i++)
        if (penalty_is_concave(&p->inner[i].prior) && p->inner[i].prior.weight > 0)
            return false;
    return true;
}

/* Links by hand may be too weak to tie the nodes. */
static bool has_links(const hfsad_spec *spec)
{
    bool any = !isnan(spec->link_client.weight) || !isnan(spec->link_edge.weight) || !isnan(spec->link_client.lambda) ||
               !isnan(spec->link_edge.lambda);
    for (size_t i = 0; i < spec->n_overrides; i++)
        any = any || !isnan(spec->overrides[i].link.weight) || !isnan(spec->overrides[i].link.lambda);
    return any;
}

static bool has_absences(const hfsad_spec *spec)
{
    bool any = spec->participation.client < 1 || spec->participation.edge < 1;
    for (size_t i = 0; i < spec->n_overrides; i++)
        any = any || spec->overrides[i].participation < 1;
    return any;
}

static bool is_scheduled(const SCHEDULE_settings *s)
{
    return !isnan(s->c) || !isnan(s->alpha) || !isnan(s->growth) || !isnan(s->relax) || s->shape >= 0;
}

bool plan_is_by_hand(const hfsad_spec *spec)
{
    bool any = is_scheduled(&spec->schedule_client) || is_scheduled(&spec->schedule_edge) ||
               spec->link_client.penalty >= 0 || spec->link_edge.penalty >= 0 || spec->loss.solver >= 0;
    for (size_t i = 0; i < spec->n_overrides; i++) {
        const override_settings *o = &spec->overrides[i];
        any = any || is_scheduled(&o->schedule) || o->link.penalty >= 0 || o->local_steps >= 0 || o->loss.solver >= 0;
    }
    return any || spec->top.aggregate > 0 || spec->top.preset == PRESET_PAPER || spec->run.polish >= 0 ||
           spec->run.start || (spec->run.edge_rounds >= 1 && spec->run.edge_rounds != 10) ||
           spec->run.local_steps != 1 || spec->stop.absolute > 0 || spec->stop.relative > 0;
}

const char *plan_why_no_star(const hfsad_spec *spec, const plan *p, size_t n_inner)
{
    const char *apart = plan_why_apart(p, n_inner);
    return apart                                   ? apart
           : !plan_is_convex(p, n_inner)           ? "the problem is not convex"
           : has_links(spec)                       ? "link: weights by hand may not tie the nodes to one model"
           : has_absences(spec)                    ? "run.participation: every node must take part in every round"
           : spec->federation.mode == MODE_ASYNC   ? "federation.mode: async rounds do not wait for all nodes"
           : spec->top.personal == PERSONAL_GROUPS ? "personal: groups are found from a run of hfsad"
           : spec->run.tries > 1                   ? "run.tries: only hfsad tries several starts"
                                                   : NULL;
}

static bool lets_go(const LINK_settings *link)
{
    return link->penalty >= 0 && penalty_kinds[link_kind(link->penalty)]->form == PENALTY_CONCAVE;
}

/* Whether a number of the spec, or a prior, acts on coefficients in the units of the data. */
static bool has_units(const LINK_settings *link, const PRIOR_settings *prior, const SCHEDULE_settings *schedule)
{
    return !isnan(link->weight) || !isnan(link->lambda) || !isnan(schedule->c) || !isnan(schedule->alpha) ||
           prior->penalty > (int)HFSAD_PENALTY_NONE;
}

bool plan_standardizes(const hfsad_spec *s)
{
    if (s->features.standardize >= 0)
        return s->features.standardize == 1;
    const char *refused = s->privacy.refuse ? s->privacy.refuse : "";
    bool apart = lets_go(&s->link_client) || lets_go(&s->link_edge);
    bool units = has_units(&s->link_client, &s->prior_cloud, &s->schedule_client) ||
                 has_units(&s->link_edge, &s->prior_edge, &s->schedule_edge) || isfinite(s->loss.box);
    for (size_t i = 0; i < s->n_overrides; i++) {
        const override_settings *o = &s->overrides[i];
        apart = apart || lets_go(&o->link);
        units = units || has_units(&o->link, &o->prior, &o->schedule) || isfinite(o->loss.box);
    }
    return apart && !units && s->top.preset == PRESET_TUNED && loss_kinds[s->loss.kind]->conjugate &&
           !algorithm_is_baseline(s->top.algorithm) && !spec_scores(s) && !spec_has_noise(s) &&
           !strstr(refused, "standardize");
}
