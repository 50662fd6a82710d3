/*
 * From a spec and the data to numbers for every link and node: the presets of section 6, then what the spec says, then
 * its overrides.
 *
 * omega    weight of a client's link: nu |x|_max, nu the slope of the loss (phase retrieval: 5, the paper's number)
 * omega_0  weight of an inner node's link: (children's weights added up, the most of its depth) + eta lambda gamma
 * eta      weight of a prior: N_l - 1/L below, 1 at the cloud; together the number of clients
 * paper    c = omega, alpha = sqrt(20);  c = omega_0/25, alpha = 25 sqrt(20)
 * tuned    the same with c a tenth
 */
#include "plan/plan.h"

#include "base/alloc.h"
#include "base/error.h"

#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static double pick(double given, double otherwise)
{
    return isnan(given) ? otherwise : given;
}

static int pick_choice(int given, int otherwise)
{
    return given < 0 ? otherwise : given;
}

/* ---- penalties ------------------------------------------------------------------------------------------------ */

static double default_gamma(hfsad_penalty_kind kind)
{
    return kind == HFSAD_PENALTY_SCAD ? 3.7 : 3;
}

/* What the spec says of a penalty, whichever table it stands in. */
typedef struct {
    int kind;
    double weight, lambda, gamma;
} penalty_choice;

static penalty_choice link_choice(const LINK_settings *s)
{
    return (penalty_choice){s->penalty, s->weight, s->lambda, s->gamma};
}

static penalty_choice prior_choice(const PRIOR_settings *s)
{
    return (penalty_choice){s->penalty, s->weight, s->lambda, s->gamma};
}

static penalty_choice over(penalty_choice general, penalty_choice special)
{
    return (penalty_choice){pick_choice(special.kind, general.kind), pick(special.weight, general.weight),
                            pick(special.lambda, general.lambda), pick(special.gamma, general.gamma)};
}

static hfsad_penalty penalty_of(penalty_choice c, hfsad_penalty preset)
{
    const hfsad_penalty_kind kind = (hfsad_penalty_kind)pick_choice(c.kind, (int)preset.kind);
    const double gamma = kind == preset.kind ? preset.gamma : default_gamma(kind);
    return (hfsad_penalty){kind, pick(c.weight, preset.weight), pick(c.lambda, preset.lambda), pick(c.gamma, gamma)};
}

/* gamma may come from one place of the spec and the kind from another, so it is checked once more at the end. */
static hfsad_status check_penalty(const hfsad_penalty *p, const char *what, const char *node, hfsad_error *err)
{
    const double least = p->kind == HFSAD_PENALTY_SCAD ? 2 : 1;
    if ((p->kind == HFSAD_PENALTY_MCP || p->kind == HFSAD_PENALTY_SCAD) && !(p->gamma > least))
        return error_set(err, HFSAD_ERROR_INPUT, "%s of %s: gamma = %g, but %s needs gamma > %g", what, node, p->gamma,
                         p->kind == HFSAD_PENALTY_SCAD ? "scad" : "mcp", least);
    return HFSAD_OK;
}

/* ---- the presets' numbers -----------------------------------------------------------------------------------------
 */

typedef struct {
    const hfsad_spec *spec;
    const dataset *d;
    double shrink;                       /* of c: 1 for paper, 0.1 for tuned */
    double omega;                        /* weight of a client's link by the preset */
    double omega_0[HFSAD_TIERS_MAX + 1]; /* of an inner node's link, by its depth */
    size_t edges;                        /* inner nodes with clients, but the cloud */
} preset;

double loss_slope_bound(const hfsad_loss *loss, double y)
{
    switch (loss->kind) {
    case HFSAD_LOSS_PHASE_RETRIEVAL:
        return 5;
    case HFSAD_LOSS_QUANTILE:
        return fmax(loss->tau, 1 - loss->tau);
    case HFSAD_LOSS_SQUARED:
        return fabs(y);
    case HFSAD_LOSS_HUBER:
        return loss->delta;
    case HFSAD_LOSS_ABSOLUTE:
    case HFSAD_LOSS_LOGISTIC:
    case HFSAD_LOSS_HINGE:
        break;
    }
    return 1;
}

static hfsad_loss loss_of(const LOSS_settings *s, const LOSS_settings *special)
{
    hfsad_loss loss = {(hfsad_loss_kind)s->kind, s->tau, s->delta, s->box};
    if (special) {
        loss.kind = (hfsad_loss_kind)pick_choice(special->kind, s->kind);
        loss.tau = pick(special->tau, s->tau);
        loss.delta = pick(special->delta, s->delta);
        loss.box = pick(special->box, s->box);
    }
    if (isnan(loss.box))
        loss.box = INFINITY;
    return loss;
}

static double eta(const preset *t, size_t i)
{
    const double n = t->d->inner[i].n_leaves;
    if (i == 0)
        return t->edges ? n + 1 : n;
    return n > 0 ? n - 1 / (double)t->edges : 0;
}

static hfsad_penalty prior_preset(const preset *t, size_t i)
{
    const bool paper = t->spec->top.preset == PRESET_PAPER;
    return (hfsad_penalty){paper ? HFSAD_PENALTY_SCAD : HFSAD_PENALTY_NONE, eta(t, i), 0.1,
                           paper ? 2.4 : default_gamma(HFSAD_PENALTY_NONE)};
}

static hfsad_penalty prior_of(const preset *t, size_t i, const override_settings *special)
{
    penalty_choice c = prior_choice(i ? &t->spec->prior_edge : &t->spec->prior_cloud);
    if (special)
        c = over(c, prior_choice(&special->prior));
    return penalty_of(c, prior_preset(t, i));
}

static hfsad_penalty link_of(const LINK_settings *s, const LINK_settings *special, double weight)
{
    penalty_choice c = link_choice(s);
    if (special)
        c = over(c, link_choice(special));
    return penalty_of(c, (hfsad_penalty){HFSAD_PENALTY_L1, weight, 1, default_gamma(HFSAD_PENALTY_MCP)});
}

/* c and alpha where the spec leaves them out; slope is the link's, at_least where the link pulls not at all. */
static hfsad_schedule schedule_of(const preset *t, const SCHEDULE_settings *s, const SCHEDULE_settings *special,
                                  double slope, double at_least, double divide)
{
    const double c = (slope > 0 ? slope : at_least) * t->shrink / divide, alpha = sqrt(20) * divide;
    const double given_c = special ? pick(special->c, s->c) : s->c;
    const double given_alpha = special ? pick(special->alpha, s->alpha) : s->alpha;
    return (hfsad_schedule){pick(given_c, c > 0 ? c : 1), pick(given_alpha, alpha)};
}

static void preset_weights(preset *t)
{
    const dataset *d = t->d;
    const hfsad_loss loss = loss_of(&t->spec->loss, NULL);
    t->omega = 0;
    for (size_t leaf = 0; leaf < d->n_leaves; leaf++)
        t->omega = fmax(t->omega, loss_slope_bound(&loss, d->y[leaf]) * sqrt(d->n[leaf]));
    for (size_t i = 1; i < d->n_inner; i++)
        t->edges += d->inner[i].n_leaves > 0;
    const double client = hfsad_penalty_slope(&(hfsad_penalty){
        HFSAD_PENALTY_L1, pick(t->spec->link_client.weight, t->omega), pick(t->spec->link_client.lambda, 1), 0});
    for (uint32_t depth = HFSAD_TIERS_MAX; depth > 0; depth--) {
        double most = 0, prior = 0;
        for (size_t i = 1; i < d->n_inner; i++) {
            if (d->inner[i].depth != depth)
                continue;
            const double below = depth < HFSAD_TIERS_MAX ? t->omega_0[depth + 1] : 0;
            const hfsad_penalty p = prior_of(t, i, NULL);
            most = fmax(most, d->inner[i].n_leaves * client + d->inner[i].n_inner * below);
            if (p.kind != HFSAD_PENALTY_NONE)
                prior = fmax(prior, p.weight * p.lambda * (p.kind == HFSAD_PENALTY_L1 ? 1 : p.gamma));
        }
        t->omega_0[depth] = most + prior;
    }
}

/* ---- classes
 * ---------------------------------------------------------------------------------------------------------- */

static leaf_class leaf_class_of(const preset *t, const override_settings *special)
{
    const hfsad_spec *s = t->spec;
    leaf_class c = {.loss = loss_of(&s->loss, special ? &special->loss : NULL)};
    c.rule.penalty = link_of(&s->link_client, special ? &special->link : NULL, t->omega);
    c.rule.schedule = schedule_of(t, &s->schedule_client, special ? &special->schedule : NULL,
                                  hfsad_penalty_slope(&c.rule.penalty), t->omega, 1);
    c.participation = special ? pick(special->participation, s->participation.client) : s->participation.client;
    c.local_steps = (uint32_t)(special && special->local_steps > 0 ? special->local_steps : s->run.local_steps);
    return c;
}

static inner_class inner_class_of(const preset *t, size_t i, const override_settings *special)
{
    const hfsad_spec *s = t->spec;
    const double weight = t->omega_0[t->d->inner[i].depth];
    inner_class c = {.prior = prior_of(t, i, special)};
    c.rule.penalty = link_of(&s->link_edge, special ? &special->link : NULL, weight);
    c.rule.schedule = schedule_of(t, &s->schedule_edge, special ? &special->schedule : NULL,
                                  hfsad_penalty_slope(&c.rule.penalty), weight, 25);
    c.participation = special ? pick(special->participation, s->participation.edge) : s->participation.edge;
    return c;
}

/* ---- overrides ----------------------------------------------------------------------------------------------------
 */

/* All entries that match a node, the later ones over the earlier; false where none does. */
static bool override_for(const hfsad_spec *spec, const char *name, bool *used, override_settings *merged)
{
    bool any = false;
    for (size_t o = 0; o < spec->n_overrides; o++) {
        const override_settings *s = &spec->overrides[o];
        if (fnmatch(s->node, name, FNM_PATHNAME) != 0)
            continue;
        used[o] = true;
        if (!any) {
            *merged = *s;
            any = true;
            continue;
        }
        const penalty_choice link = over(link_choice(&merged->link), link_choice(&s->link));
        const penalty_choice prior = over(prior_choice(&merged->prior), prior_choice(&s->prior));
        merged->link = (LINK_settings){link.kind, link.weight, link.lambda, link.gamma};
        merged->prior = (PRIOR_settings){prior.kind, prior.weight, prior.lambda, prior.gamma};
        merged->loss.kind = pick_choice(s->loss.kind, merged->loss.kind);
        merged->loss.tau = pick(s->loss.tau, merged->loss.tau);
        merged->loss.delta = pick(s->loss.delta, merged->loss.delta);
        merged->loss.box = pick(s->loss.box, merged->loss.box);
        merged->schedule.c = pick(s->schedule.c, merged->schedule.c);
        merged->schedule.alpha = pick(s->schedule.alpha, merged->schedule.alpha);
        merged->participation = pick(s->participation, merged->participation);
        if (s->local_steps > 0)
            merged->local_steps = s->local_steps;
    }
    return any;
}

static bool same_class(const leaf_class *a, const leaf_class *b)
{
    const hfsad_penalty *p = &a->rule.penalty, *q = &b->rule.penalty;
    return a->loss.kind == b->loss.kind && a->loss.tau == b->loss.tau && a->loss.delta == b->loss.delta &&
           a->loss.box == b->loss.box && p->kind == q->kind && p->weight == q->weight && p->lambda == q->lambda &&
           p->gamma == q->gamma && a->rule.schedule.c == b->rule.schedule.c &&
           a->rule.schedule.alpha == b->rule.schedule.alpha && a->participation == b->participation &&
           a->local_steps == b->local_steps;
}

enum { CLASSES_MAX = 4096 };

static hfsad_status assign_class(plan *p, size_t leaf, const leaf_class *c, const char *name, hfsad_error *err)
{
    for (size_t i = 0; i < p->n_leaf_classes; i++)
        if (same_class(&p->leaf_classes[i], c)) {
            p->leaf_class_of[leaf] = (uint16_t)i;
            return HFSAD_OK;
        }
    if (p->n_leaf_classes == CLASSES_MAX)
        return error_set(err, HFSAD_ERROR_INPUT, "overrides: more than %d different kinds of clients (at %s)",
                         CLASSES_MAX, name);
    p->leaf_class_of[leaf] = (uint16_t)p->n_leaf_classes;
    p->leaf_classes[p->n_leaf_classes++] = *c;
    return check_penalty(&c->rule.penalty, "link", name, err);
}

static hfsad_status plan_leaves(plan *p, const preset *t, bool *used, hfsad_error *err)
{
    const dataset *d = t->d;
    p->leaf_classes[0] = leaf_class_of(t, NULL);
    p->n_leaf_classes = 1;
    hfsad_status status = check_penalty(&p->leaf_classes[0].rule.penalty, "link.client", "every client", err);
    if (status || !t->spec->n_overrides)
        return status;
    p->leaf_class_of = alloc_zero(d->n_leaves, sizeof *p->leaf_class_of);
    if (!p->leaf_class_of)
        return error_memory(err, d->n_leaves * sizeof *p->leaf_class_of, "overrides");
    char name[HFSAD_TIERS_MAX * 256];
    for (size_t leaf = 0; leaf < d->n_leaves && !status; leaf++) {
        override_settings special;
        dataset_leaf_name(d, leaf, name, sizeof name);
        if (!override_for(t->spec, name, used, &special))
            continue;
        const leaf_class c = leaf_class_of(t, &special);
        status = assign_class(p, leaf, &c, name, err);
    }
    return status;
}

static hfsad_status plan_inner(plan *p, const preset *t, bool *used, hfsad_error *err)
{
    hfsad_status status = HFSAD_OK;
    for (size_t i = 0; i < t->d->n_inner && !status; i++) {
        const char *name = t->d->inner[i].name;
        override_settings special;
        const bool any = override_for(t->spec, name, used, &special);
        p->inner[i] = inner_class_of(t, i, any ? &special : NULL);
        status = check_penalty(&p->inner[i].prior, "prior", name, err);
        if (!status)
            status = check_penalty(&p->inner[i].rule.penalty, "link", name, err);
    }
    return status;
}

static hfsad_status check_used(const hfsad_spec *spec, const dataset *d, const bool *used, hfsad_error *err)
{
    for (size_t o = 0; o < spec->n_overrides; o++)
        if (!used[o])
            return error_set(err, HFSAD_ERROR_INPUT,
                             "%s:%d: overrides: no node is called '%s'; names look like '%s' or 'edge/client'",
                             spec->path, spec->overrides[o].line, spec->overrides[o].node,
                             d->inner[d->n_inner > 1].name);
    return HFSAD_OK;
}

/* Labels of the two-class losses. */
static hfsad_status check_labels(const plan *p, const dataset *d, hfsad_error *err)
{
    for (size_t leaf = 0; leaf < d->n_leaves; leaf++) {
        const hfsad_loss_kind kind = p->leaf_classes[p->leaf_class_of ? p->leaf_class_of[leaf] : 0].loss.kind;
        const bool two_classes = kind == HFSAD_LOSS_LOGISTIC || kind == HFSAD_LOSS_HINGE;
        if (!two_classes || d->y[leaf] == 1 || d->y[leaf] == -1)
            continue;
        char name[256];
        dataset_leaf_name(d, leaf, name, sizeof name);
        return error_set(err, HFSAD_ERROR_INPUT, "%s has y = %g: the %s loss takes the labels -1 and 1", name,
                         d->y[leaf], kind == HFSAD_LOSS_HINGE ? "hinge" : "logistic");
    }
    return HFSAD_OK;
}

/* A link's counter has 31 bits. */
static hfsad_status check_counters(const plan *p, hfsad_error *err)
{
    for (size_t c = 0; c < p->n_leaf_classes; c++) {
        const double steps = (double)p->iterations * p->edge_rounds * p->leaf_classes[c].local_steps;
        if (steps >= 0x1p31)
            return error_set(err, HFSAD_ERROR_INPUT,
                             "run: iterations * edge_rounds * local_steps = %.3g steps of a client, at most 2^31 - 1",
                             steps);
    }
    return HFSAD_OK;
}

hfsad_status plan_create(plan **out, const hfsad_spec *spec, const dataset *d, hfsad_error *err)
{
    *out = NULL;
    plan *p = alloc_zero(1, sizeof *p);
    bool *used = alloc_zero(spec->n_overrides + 1, sizeof *used);
    preset t = {.spec = spec, .d = d, .shrink = spec->top.preset == PRESET_PAPER ? 1 : 0.1};
    hfsad_status status = HFSAD_OK;
    if (p) {
        p->leaf_classes = alloc_zero(spec->n_overrides ? CLASSES_MAX : 1, sizeof *p->leaf_classes);
        p->inner = alloc_zero(d->n_inner, sizeof *p->inner);
    }
    if (!p || !used || !p->leaf_classes || !p->inner) {
        status = error_memory(err, d->n_inner * sizeof *p->inner, "the plan");
        goto out;
    }
    p->seed = (uint64_t)spec->run.seed;
    p->iterations = (uint64_t)spec->run.iterations;
    p->trace_every = (uint64_t)spec->run.trace_every;
    p->edge_rounds = (uint32_t)spec->run.edge_rounds;
    p->at_least_every = (uint32_t)spec->participation.at_least_every;
    p->keep_w = spec->output.clients == 1;
    p->stop_absolute = spec->stop.absolute;
    p->stop_relative = spec->stop.relative;
    preset_weights(&t);
    if ((status = plan_leaves(p, &t, used, err)) || (status = plan_inner(p, &t, used, err)) ||
        (status = check_used(spec, d, used, err)) || (status = check_labels(p, d, err)) ||
        (status = check_counters(p, err)))
        goto out;
    *out = p;
    p = NULL;
out:
    free(used);
    plan_free(p);
    return status;
}

void plan_free(plan *p)
{
    if (!p)
        return;
    free(p->leaf_classes);
    free(p->leaf_class_of);
    free(p->inner);
    free(p);
}
