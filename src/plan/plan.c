/*
 * From a spec and the data to numbers for every link and node: the presets of section 6, then what the spec says, then
 * its overrides.
 *
 * omega    weight of a client's link: nu |x|_max, nu the slope of the loss (phase retrieval: 5, the paper's number)
 * omega_0  weight of an inner node's link: (children's weights added up, the most of its depth) + eta lambda gamma
 * eta      weight of a prior: N_l - 1/L below, 1 at the cloud; together the number of clients
 * paper    c = omega, alpha = sqrt(20);  c = omega_0/25, alpha = 25 sqrt(20)
 * tuned    phase retrieval: the same with c a tenth
 *          convex losses: c = part of the mean bend of a client's loss per coordinate, alpha = a hundredth of a
 *          coefficient's likely size; c of an inner node = a tenth of its children's c added up, below the cloud times
 *          K_m, since w_0 rests for so many steps of the edge's multiplier
 */
#include "plan/plan.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/patterns.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_SIZE = HFSAD_TIERS_MAX * 256 };

static double pick(double given, double otherwise)
{
    return isnan(given) ? otherwise : given;
}

static int pick_choice(int given, int otherwise)
{
    return given < 0 ? otherwise : given;
}

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
    return (hfsad_penalty){.kind = kind,
                           .weight = pick(c.weight, preset.weight),
                           .lambda = pick(c.lambda, preset.lambda),
                           .gamma = pick(c.gamma, gamma),
                           .free = preset.free};
}

/* gamma may come from one place of the spec and the kind from another, so it is checked once more at the end; and
 * numbers that are fine one by one may overflow together. */
static hfsad_status check_penalty(const hfsad_penalty *p, const char *what, const char *node, hfsad_error *err)
{
    const double least = p->kind == HFSAD_PENALTY_SCAD ? 2 : 1, most = 1e100;
    const bool concave = p->kind == HFSAD_PENALTY_MCP || p->kind == HFSAD_PENALTY_SCAD;
    if (concave && !(p->gamma > least))
        return error_set(err, HFSAD_ERROR_INPUT, "%s of %s: gamma = %g, but %s needs gamma > %g; set %s.gamma", what,
                         node, p->gamma, p->kind == HFSAD_PENALTY_SCAD ? "scad" : "mcp", least, what);
    if (p->kind != HFSAD_PENALTY_NONE &&
        (!(p->weight * p->lambda <= most) || (concave && !(p->gamma * p->lambda <= most))))
        return error_set(err, HFSAD_ERROR_INPUT,
                         "%s of %s: weight = %g, lambda = %g: weight lambda and gamma lambda may be 1e100 at most",
                         what, node, p->weight, p->lambda);
    return HFSAD_OK;
}

static hfsad_status check_rule(const hfsad_link_rule *rule, const char *node, hfsad_error *err)
{
    const double values[] = {rule->schedule.c, rule->schedule.alpha};
    static const char *const names[] = {"c", "alpha"};
    for (size_t i = 0; i < 2; i++)
        if (!(values[i] >= 1e-100 && values[i] <= 1e100))
            return error_set(err, HFSAD_ERROR_INPUT, "schedule of %s: %s = %g; it may be from 1e-100 to 1e100", node,
                             names[i], values[i]);
    return check_penalty(&rule->penalty, "link", node, err);
}

/* What the presets work with. */
typedef struct {
    const hfsad_spec *spec;
    const dataset *d;
    pattern_list nodes;                  /* of the overrides */
    bool *used;                          /* n_overrides: matched a node */
    double shrink;                       /* of c: 1 for paper, 0.1 for tuned */
    bool by_bend;                        /* tuned, convex */
    double bend, length;                 /* of a client's loss per coordinate; the likely size of a coefficient */
    double client_c;                     /* c of a client's link, where by_bend */
    double inner_c[HFSAD_TIERS_MAX + 2]; /* c of an inner node's link, by its depth; likewise */
    double omega;                        /* weight of a client's link by the preset */
    double reach;                        /* how far a link that lets go holds */
    double noise;                        /* deviation of a coordinate of a client's gradient at its own truth */
    bool consensus;                      /* every link is tv, whatever the spec says */
    double omega_0[HFSAD_TIERS_MAX + 2]; /* of an inner node's link, by its depth */
    size_t edges;                        /* inner nodes with clients, but the cloud */
} preset;

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
    return (hfsad_penalty){.kind = paper ? HFSAD_PENALTY_SCAD : HFSAD_PENALTY_NONE,
                           .weight = eta(t, i),
                           .lambda = 0.1,
                           .gamma = paper ? 2.4 : default_gamma(HFSAD_PENALTY_NONE),
                           .free = t->spec->features.intercept != INTERCEPT_NONE};
}

static hfsad_penalty prior_of(const preset *t, size_t i, const override_settings *special)
{
    penalty_choice c = prior_choice(i ? &t->spec->prior_edge : &t->spec->prior_cloud);
    if (special)
        c = over(c, prior_choice(&special->prior));
    return penalty_of(c, prior_preset(t, i));
}

/* What a link has where the spec leaves it out. tv: weight lambda is the bound that Theorem 1 asks for. mcp and scad,
 * for who may go his own way: they let go at a third of a coefficient's likely size, but not within four
 * deviations of a client's own estimate, and pull twice as hard as the noise of those who follow the common law. own:
 * the child has an intercept of its own. */
typedef struct {
    double bound, noise, reach;
    bool own;
} link_preset;

static hfsad_penalty link_of(const preset *t, const LINK_settings *s, const LINK_settings *special, link_preset from)
{
    penalty_choice c = link_choice(s);
    if (special)
        c = over(c, link_choice(special));
    if (t->consensus)
        c = (penalty_choice){HFSAD_PENALTY_L1, NAN, NAN, NAN};
    const bool concave = c.kind == HFSAD_PENALTY_MCP || c.kind == HFSAD_PENALTY_SCAD;
    const double lambda = pick(c.lambda, concave && t->by_bend ? from.reach / 3 : 1);
    const double slope = concave && t->by_bend ? 2 * from.noise : from.bound;
    return penalty_of(
        c, (hfsad_penalty){HFSAD_PENALTY_L1, slope / lambda, lambda, default_gamma(HFSAD_PENALTY_MCP), from.own});
}

/* What the spec leaves out is the preset's. */
static hfsad_schedule schedule_of(const SCHEDULE_settings *s, const SCHEDULE_settings *special,
                                  hfsad_schedule otherwise)
{
    const double given_c = special ? pick(special->c, s->c) : s->c;
    const double given_alpha = special ? pick(special->alpha, s->alpha) : s->alpha;
    return (hfsad_schedule){pick(given_c, otherwise.c > 0 ? otherwise.c : 1), pick(given_alpha, otherwise.alpha)};
}

/* The paper's c and alpha for a link of that slope; at_least where it pulls not at all. */
static hfsad_schedule paper_schedule(const preset *t, double slope, double at_least, double divide)
{
    return (hfsad_schedule){(slope > 0 ? slope : at_least) * t->shrink / divide, sqrt(20) * divide};
}

void omega_0_by_depth(const dataset *d, double leaf_pull, double (*prior_pull)(const hfsad_penalty *), const plan *p,
                      double *omega_0)
{
    for (uint32_t depth = 0; depth < HFSAD_TIERS_MAX + 2; depth++)
        omega_0[depth] = 0;
    for (size_t i = d->n_inner; i-- > 1;) { /* breadth-first order: the deepest first */
        const inner_node *node = &d->inner[i];
        const double below = node->n_leaves * leaf_pull + node->n_inner * omega_0[node->depth + 1];
        omega_0[node->depth] = fmax(omega_0[node->depth], below + prior_pull(&p->inner[i].prior));
    }
}

static bool is_mean(const hfsad_spec *s, const override_settings *special)
{
    return (special ? pick_choice(special->loss.scale, s->loss.scale) : s->loss.scale) == SCALE_MEAN;
}

static leaf_class leaf_class_of(const preset *t, const override_settings *special)
{
    const hfsad_spec *s = t->spec;
    leaf_class c = {.loss = loss_of(&s->loss, special ? &special->loss : NULL)};
    c.rule.penalty = link_of(t, &s->link_client, special ? &special->link : NULL,
                             (link_preset){t->omega, t->noise, t->reach, s->features.intercept == INTERCEPT_CLIENT});
    const hfsad_schedule usual = t->by_bend ? (hfsad_schedule){t->client_c, t->length / 100}
                                            : paper_schedule(t, hfsad_penalty_slope(&c.rule.penalty), t->omega, 1);
    c.rule.schedule = schedule_of(&s->schedule_client, special ? &special->schedule : NULL, usual);
    c.participation = special ? pick(special->participation, s->participation.client) : s->participation.client;
    c.local_steps = (uint32_t)(special && special->local_steps > 0 ? special->local_steps : s->run.local_steps);
    const int solver = special ? pick_choice(special->loss.solver, s->loss.solver) : s->loss.solver;
    c.solver.method = solver == SOLVER_LINEARIZED ? ROWS_LINEARIZED : ROWS_EXACT;
    c.solver.tolerance = special ? pick(special->loss.tolerance, s->loss.tolerance) : s->loss.tolerance;
    c.solver.sweeps = (uint32_t)(special && special->loss.sweeps > 0 ? special->loss.sweeps : s->loss.sweeps);
    c.mean = is_mean(s, special);
    if (c.loss.kind == HFSAD_LOSS_OWN && (solver < 0 ? !s->own.prox : solver == SOLVER_LINEARIZED))
        c.solver.method = ROWS_LINEARIZED;
    return c;
}

static size_t leaves_below(const dataset *d, size_t i)
{
    size_t sum = d->inner[i].n_leaves;
    for (size_t child = d->inner[i].first_inner; child < d->inner[i].first_inner + d->inner[i].n_inner; child++)
        sum += leaves_below(d, child);
    return sum;
}

static inner_class inner_class_of(const preset *t, size_t i, const override_settings *special)
{
    const hfsad_spec *s = t->spec;
    const double weight = t->omega_0[t->d->inner[i].depth];
    inner_class c = {.prior = prior_of(t, i, special)};
    const bool own = s->features.intercept == INTERCEPT_CLIENT || s->features.intercept == INTERCEPT_EDGE;
    const double noise = t->noise * sqrt((double)leaves_below(t->d, i));
    c.rule.penalty =
        link_of(t, &s->link_edge, special ? &special->link : NULL, (link_preset){weight, noise, t->reach, own});
    const hfsad_schedule usual = t->by_bend ? (hfsad_schedule){t->inner_c[t->d->inner[i].depth], t->length / 100}
                                            : paper_schedule(t, hfsad_penalty_slope(&c.rule.penalty), weight, 25);
    c.rule.schedule = schedule_of(&s->schedule_edge, special ? &special->schedule : NULL, usual);
    c.participation = special ? pick(special->participation, s->participation.edge) : s->participation.edge;
    return c;
}

typedef enum { CLOUD, EDGE, CLIENT } node_kind;

static bool says_loss(const override_settings *s)
{
    return s->loss.kind >= 0 || !isnan(s->loss.tau) || !isnan(s->loss.delta) || !isnan(s->loss.box) ||
           s->loss.scale >= 0 || s->loss.solver >= 0 || !isnan(s->loss.tolerance) || s->loss.sweeps > 0;
}

static bool says_penalty(penalty_choice c)
{
    return c.kind >= 0 || !isnan(c.weight) || !isnan(c.lambda) || !isnan(c.gamma);
}

static bool says_schedule(const override_settings *s)
{
    return !isnan(s->schedule.c) || !isnan(s->schedule.alpha);
}

/* The first part of an override that a node of this kind does not have, or NULL. */
static const char *foreign_part(const override_settings *s, node_kind kind)
{
    if (kind != CLIENT && says_loss(s))
        return "loss";
    if (kind != CLIENT && s->local_steps > 0)
        return "local_steps";
    if (kind == CLIENT && says_penalty(prior_choice(&s->prior)))
        return "prior";
    if (kind == CLOUD && says_penalty(link_choice(&s->link)))
        return "link";
    if (kind == CLOUD && says_schedule(s))
        return "schedule";
    if (kind == CLOUD && !isnan(s->participation))
        return "participation";
    return NULL;
}

enum { PLACE_SIZE = 300 };

/* "spec.yaml:12: overrides" or "--set overrides". */
static const char *place_of(const hfsad_spec *spec, const override_settings *s, char buffer[PLACE_SIZE])
{
    if (s->line > 0)
        snprintf(buffer, PLACE_SIZE, "%s:%d: overrides", spec->path, s->line);
    else
        snprintf(buffer, PLACE_SIZE, "--set overrides");
    return buffer;
}

static void lay_over(override_settings *merged, const override_settings *s)
{
    const penalty_choice link = over(link_choice(&merged->link), link_choice(&s->link));
    const penalty_choice prior = over(prior_choice(&merged->prior), prior_choice(&s->prior));
    merged->link = (LINK_settings){link.kind, link.weight, link.lambda, link.gamma};
    merged->prior = (PRIOR_settings){prior.kind, prior.weight, prior.lambda, prior.gamma};
    merged->loss.kind = pick_choice(s->loss.kind, merged->loss.kind);
    merged->loss.tau = pick(s->loss.tau, merged->loss.tau);
    merged->loss.delta = pick(s->loss.delta, merged->loss.delta);
    merged->loss.box = pick(s->loss.box, merged->loss.box);
    merged->loss.scale = pick_choice(s->loss.scale, merged->loss.scale);
    merged->loss.solver = pick_choice(s->loss.solver, merged->loss.solver);
    merged->loss.tolerance = pick(s->loss.tolerance, merged->loss.tolerance);
    if (s->loss.sweeps > 0)
        merged->loss.sweeps = s->loss.sweeps;
    merged->schedule.c = pick(s->schedule.c, merged->schedule.c);
    merged->schedule.alpha = pick(s->schedule.alpha, merged->schedule.alpha);
    merged->participation = pick(s->participation, merged->participation);
    if (s->local_steps > 0)
        merged->local_steps = s->local_steps;
}

/* All entries that match a node, the later ones over the earlier. *any: whether there is one. */
static hfsad_status override_for(const preset *t, const char *name, node_kind kind, override_settings *merged,
                                 bool *any, hfsad_error *err)
{
    static const char *const kinds[] = {"the cloud", "an edge", "a client"};
    *any = false;
    pattern_walk walk = patterns_find(&t->nodes, name);
    for (size_t o; (o = patterns_next(&walk)) != SIZE_MAX;) {
        const override_settings *s = &t->spec->overrides[o];
        char place[PLACE_SIZE];
        const char *foreign = foreign_part(s, kind);
        if (foreign)
            return error_set(err, HFSAD_ERROR_INPUT, "%s: %s is %s, which has no %s%s", place_of(t->spec, s, place),
                             name, kinds[kind], foreign, kind == EDGE ? "; write edge/* for its clients" : "");
        t->used[o] = true;
        if (*any)
            lay_over(merged, s);
        else
            *merged = *s;
        *any = true;
    }
    return HFSAD_OK;
}

static hfsad_status leaf_override(const preset *t, size_t leaf, char *name, size_t size, override_settings *special,
                                  bool *any, hfsad_error *err)
{
    dataset_leaf_name(t->d, leaf, name, size);
    return override_for(t, name, CLIENT, special, any, err);
}

static hfsad_status inner_override(const preset *t, size_t i, override_settings *special, bool *any, hfsad_error *err)
{
    return override_for(t, t->d->inner[i].name, i ? EDGE : CLOUD, special, any, err);
}

/* The node that is spelt most like `wanted`. */
static void nearest_node(const dataset *d, const char *wanted, char *buffer, size_t size)
{
    size_t least = SIZE_MAX;
    char name[NAME_SIZE];
    for (size_t i = 0; i < d->n_inner + d->n_leaves && least; i++) {
        if (i < d->n_inner)
            snprintf(name, sizeof name, "%s", d->inner[i].name);
        else
            dataset_leaf_name(d, i - d->n_inner, name, sizeof name);
        const size_t distance = name_distance(wanted, name);
        if (distance < least) {
            least = distance;
            snprintf(buffer, size, "%.200s", name);
        }
    }
}

static hfsad_status check_overrides(const preset *t, hfsad_error *err)
{
    for (size_t o = 0; o < t->spec->n_overrides; o++) {
        const override_settings *s = &t->spec->overrides[o];
        char place[PLACE_SIZE], near[256];
        place_of(t->spec, s, place);
        if (!t->used[o]) {
            nearest_node(t->d, s->node, near, sizeof near);
            return error_set(err, HFSAD_ERROR_INPUT, "%s: no node is called '%s'; the nearest is '%s'", place, s->node,
                             near);
        }
        if (!says_loss(s) && !says_schedule(s) && s->local_steps <= 0 && isnan(s->participation) &&
            !says_penalty(link_choice(&s->link)) && !says_penalty(prior_choice(&s->prior)))
            return error_set(err, HFSAD_ERROR_INPUT, "%s: '%s' sets nothing; take it out", place, s->node);
    }
    return HFSAD_OK;
}

/* A loss that is to come from a program. */
static hfsad_status check_own(const hfsad_spec *spec, const leaf_class *c, const char *node, hfsad_error *err)
{
    if (c->loss.kind != HFSAD_LOSS_OWN)
        return HFSAD_OK;
    const bool linearized = c->solver.method == ROWS_LINEARIZED;
    const char *wrong = !spec->own.value                       ? "no program has given one (hfsad_spec_own_loss)"
                        : linearized && !spec->own.gradient    ? "loss.solver: linearized needs its gradient"
                        : !linearized && !spec->own.prox       ? "loss.solver: exact needs its prox"
                        : !linearized && isfinite(c->loss.box) ? "loss.box does not go with a prox of one's own"
                        : c->mean                              ? "loss.scale does not go with it"
                                                               : NULL;
    if (!wrong)
        return HFSAD_OK;
    return error_set(err, HFSAD_ERROR_INPUT, "loss.kind: own of %s: %s", node, wrong);
}

static bool same_class(const leaf_class *a, const leaf_class *b)
{
    const hfsad_penalty *p = &a->rule.penalty, *q = &b->rule.penalty;
    return a->loss.kind == b->loss.kind && a->loss.tau == b->loss.tau && a->loss.delta == b->loss.delta &&
           a->loss.box == b->loss.box && p->kind == q->kind && p->weight == q->weight && p->lambda == q->lambda &&
           p->gamma == q->gamma && a->rule.schedule.c == b->rule.schedule.c &&
           a->rule.schedule.alpha == b->rule.schedule.alpha && a->participation == b->participation &&
           a->local_steps == b->local_steps && a->solver.method == b->solver.method &&
           a->solver.tolerance == b->solver.tolerance && a->solver.sweeps == b->solver.sweeps && a->mean == b->mean;
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
    return check_rule(&c->rule, name, err);
}

/* The preset's weight of a client's link, the largest slope of any client's loss; and the clients' mean bend. */
static hfsad_status find_scales(preset *t, hfsad_error *err)
{
    char name[NAME_SIZE];
    const hfsad_loss common = loss_of(&t->spec->loss, NULL);
    const double spread = data_spread(t->d, &common), M = (double)t->d->M;
    double energy = 0, weight = 0;
    for (size_t leaf = 0; leaf < t->d->n_leaves; leaf++) {
        override_settings special;
        bool any = false;
        hfsad_status status = HFSAD_OK;
        if (t->spec->n_overrides)
            status = leaf_override(t, leaf, name, sizeof name, &special, &any, err);
        if (status)
            return status;
        const hfsad_loss loss = any ? loss_of(&t->spec->loss, &special.loss) : common;
        const loss_facts f = loss_measure(t->d, leaf, &loss, is_mean(t->spec, any ? &special : NULL), 0);
        t->omega = fmax(t->omega, f.pull);
        t->bend += loss_bend(&common, spread) * f.energy / M / (double)t->d->n_leaves;
        t->noise += loss_noise(&common, spread) * sqrt(f.noise / M) / (double)t->d->n_leaves;
        energy += f.energy;
        weight += f.weight;
    }
    t->length = energy > 0 ? spread / sqrt(energy / weight / M) : spread;
    t->reach = fmax(0.3 * t->length, t->bend > 0 ? 4 * t->noise / t->bend : 0);
    t->by_bend = t->spec->top.preset == PRESET_TUNED && common.kind != HFSAD_LOSS_PHASE_RETRIEVAL;
    return HFSAD_OK;
}

/* Nothing is known of a program's own loss but what its functions say. Ten times the slope at 0 is taken for a bound;
 * who knows better sets link.client.weight and schedule.client. */
static hfsad_status find_own_scales(preset *t, hfsad_error *err)
{
    const dataset *d = t->d;
    double *scratch = alloc_zero(3 * d->M, sizeof *scratch), bend = 0, slope = 0;
    if (!scratch)
        return error_memory(err, 3 * d->M * sizeof *scratch, "the plan");
    for (size_t leaf = 0; leaf < d->n_leaves; leaf++) {
        const own_facts f = own_measure(d, leaf, &t->spec->own, t->length, scratch);
        slope = fmax(slope, f.slope);
        bend += f.bend / (double)d->n_leaves;
    }
    free(scratch);
    t->omega = 10 * slope;
    t->bend = bend > 0 ? bend : slope / t->length;
    t->noise = slope / 10;
    return HFSAD_OK;
}

static hfsad_status plan_leaves(plan *p, preset *t, hfsad_error *err)
{
    const dataset *d = t->d;
    hfsad_status status = find_scales(t, err);
    if (!status && t->spec->loss.kind == (int)HFSAD_LOSS_OWN && t->spec->own.value)
        status = find_own_scales(t, err);
    if (status)
        return status;
    const hfsad_loss common = loss_of(&t->spec->loss, NULL);
    t->client_c = loss_ease(&common) * t->bend;
    p->leaf_classes[0] = leaf_class_of(t, NULL);
    p->n_leaf_classes = 1;
    status = check_rule(&p->leaf_classes[0].rule, "every client", err);
    if (!status)
        status = check_own(t->spec, &p->leaf_classes[0], "every client", err);
    if (status || !t->spec->n_overrides)
        return status;
    p->leaf_class_of = alloc_zero(d->n_leaves, sizeof *p->leaf_class_of);
    if (!p->leaf_class_of)
        return error_memory(err, d->n_leaves * sizeof *p->leaf_class_of, "overrides");
    char name[NAME_SIZE];
    for (size_t leaf = 0; leaf < d->n_leaves && !status; leaf++) {
        override_settings special;
        bool any;
        status = leaf_override(t, leaf, name, sizeof name, &special, &any, err);
        if (status || !any)
            continue;
        const leaf_class c = leaf_class_of(t, &special);
        if (!(status = check_own(t->spec, &c, name, err)))
            status = assign_class(p, leaf, &c, name, err);
    }
    return status;
}

/* The paper's eta lambda gamma. */
static double paper_prior_pull(const hfsad_penalty *prior)
{
    const bool concave = prior->kind == HFSAD_PENALTY_MCP || prior->kind == HFSAD_PENALTY_SCAD;
    return hfsad_penalty_slope(prior) * (concave ? prior->gamma : 1);
}

/* c of the inner nodes' links from their children's, the deepest first; one number for a depth, the most. */
static void find_inner_c(preset *t)
{
    for (size_t i = t->d->n_inner; i-- > 1;) {
        const inner_node *node = &t->d->inner[i];
        const double client = pick(t->spec->schedule_client.c, t->client_c);
        const double below = node->n_leaves * client + node->n_inner * t->inner_c[node->depth + 1];
        const double c = 0.1 * below * (node->depth == 1 ? (double)t->spec->run.edge_rounds : 1);
        t->inner_c[node->depth] = fmax(t->inner_c[node->depth], c);
    }
}

/* Priors first, since the preset's weight of an edge's link depends on them; then the links. */
static hfsad_status plan_inner(plan *p, preset *t, hfsad_error *err)
{
    const dataset *d = t->d;
    hfsad_status status = HFSAD_OK;
    override_settings special;
    bool any;
    for (size_t i = 0; i < d->n_inner && !status; i++)
        if (!(status = inner_override(t, i, &special, &any, err))) {
            p->inner[i].prior = prior_of(t, i, any ? &special : NULL);
            status = check_penalty(&p->inner[i].prior, "prior", d->inner[i].name, err);
        }
    const double client = pick(t->spec->link_client.weight, t->omega) * pick(t->spec->link_client.lambda, 1);
    omega_0_by_depth(d, client, paper_prior_pull, p, t->omega_0);
    find_inner_c(t);
    for (size_t i = 0; i < d->n_inner && !status; i++)
        if (!(status = inner_override(t, i, &special, &any, err))) {
            p->inner[i] = inner_class_of(t, i, any ? &special : NULL);
            status = i ? check_rule(&p->inner[i].rule, d->inner[i].name, err) : HFSAD_OK;
        }
    return status;
}

static hfsad_status check_label(const dataset *d, size_t leaf, size_t row, hfsad_loss_kind kind, double y,
                                hfsad_error *err)
{
    if (y == 1 || y == -1)
        return HFSAD_OK;
    char name[256];
    dataset_leaf_name(d, leaf, name, sizeof name);
    return error_set(err, HFSAD_ERROR_INPUT, "row %zu of %s has y = %g: the %s loss takes the labels -1 and 1%s",
                     row + 1, name, y, kind == HFSAD_LOSS_HINGE ? "hinge" : "logistic",
                     y == 0 ? "; write -1 for 0" : "");
}

/* Labels of the two-class losses. */
static hfsad_status check_labels(const plan *p, const dataset *d, hfsad_error *err)
{
    hfsad_status status = HFSAD_OK;
    for (size_t leaf = 0; leaf < d->n_leaves && !status; leaf++) {
        const hfsad_loss_kind kind = plan_leaf(p, leaf)->loss.kind;
        if (kind != HFSAD_LOSS_LOGISTIC && kind != HFSAD_LOSS_HINGE)
            continue;
        if (!d->rows.first) {
            status = check_label(d, leaf, 0, kind, d->y[leaf], err);
            continue;
        }
        const client_rows rows = dataset_rows(d, leaf);
        for (size_t r = 0; r < rows.count && !status; r++)
            status = check_label(d, leaf, r, kind, rows.y[r], err);
    }
    return status;
}

/* A link's counter has 31 bits. */
static hfsad_status check_counters(const plan *p, hfsad_error *err)
{
    for (size_t c = 0; c < p->n_leaf_classes; c++) {
        const double steps = (double)p->iterations * p->edge_rounds * p->leaf_classes[c].local_steps;
        if (steps >= 0x1p31)
            return error_set(
                err, HFSAD_ERROR_INPUT,
                "run: iterations * edge_rounds * local_steps = %.3g steps of a client; at most 2^31 - 1, so lower "
                "one of the three",
                steps);
    }
    return HFSAD_OK;
}

static hfsad_status fill_plan(plan *p, preset *t, hfsad_error *err)
{
    const hfsad_spec *spec = t->spec;
    p->seed = (uint64_t)spec->run.seed;
    p->iterations = (uint64_t)spec->run.iterations;
    p->trace_every = (uint64_t)spec->run.trace_every;
    p->edge_rounds = (uint32_t)spec->run.edge_rounds;
    p->at_least_every = (uint32_t)spec->participation.at_least_every;
    p->keep_w = spec->output.clients == 1;
    p->stop_absolute = spec->stop.absolute;
    p->stop_relative = spec->stop.relative;
    p->own = spec->own;
    for (size_t i = 1; i < t->d->n_inner; i++)
        t->edges += t->d->inner[i].n_leaves > 0;
    hfsad_status status;
    if ((status = plan_leaves(p, t, err)) || (status = plan_inner(p, t, err)) || (status = check_overrides(t, err)) ||
        (status = check_labels(p, t->d, err)))
        return status;
    return check_counters(p, err);
}

static bool list_overrides(preset *t)
{
    const size_t count = t->spec->n_overrides;
    const char **nodes = alloc_zero(count, sizeof *nodes);
    t->used = alloc_zero(count, sizeof *t->used);
    for (size_t o = 0; nodes && o < count; o++)
        nodes[o] = t->spec->overrides[o].node;
    const bool made = nodes && t->used && patterns_make(&t->nodes, nodes, count);
    free(nodes);
    return made;
}

static hfsad_status create(plan **out, const hfsad_spec *spec, const dataset *d, bool consensus, hfsad_error *err)
{
    *out = NULL;
    plan *p = alloc_zero(1, sizeof *p);
    preset t = {.spec = spec, .d = d, .shrink = spec->top.preset == PRESET_PAPER ? 1 : 0.1, .consensus = consensus};
    if (p) {
        p->leaf_classes = alloc_zero(spec->n_overrides ? CLASSES_MAX : 1, sizeof *p->leaf_classes);
        p->inner = alloc_zero(d->n_inner, sizeof *p->inner);
    }
    hfsad_status status;
    if (p && p->leaf_classes && p->inner && list_overrides(&t))
        status = fill_plan(p, &t, err);
    else
        status = error_memory(err, d->n_inner * sizeof *p->inner, "the plan");
    free(t.used);
    patterns_free(&t.nodes);
    if (status)
        plan_free(p);
    else
        *out = p;
    return status;
}

hfsad_status plan_create(plan **p, const hfsad_spec *spec, const dataset *d, hfsad_error *err)
{
    return create(p, spec, d, false, err);
}

hfsad_status plan_create_consensus(plan **p, const hfsad_spec *spec, const dataset *d, hfsad_error *err)
{
    return create(p, spec, d, true, err);
}

bool plan_lets_go(const plan *p, size_t n_inner)
{
    for (size_t c = 0; c < p->n_leaf_classes; c++)
        if (penalty_lets_go(&p->leaf_classes[c].rule.penalty))
            return true;
    for (size_t i = 1; i < n_inner; i++)
        if (penalty_lets_go(&p->inner[i].rule.penalty))
            return true;
    return false;
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
