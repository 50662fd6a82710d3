/*
 * From a spec and the data to numbers for every link and node: the presets, then the settings of the spec, then its
 * overrides.
 *
 * omega    weight of a client's link: nu |x|_max, nu the slope of the loss (phase retrieval: 5, the paper's number)
 * omega_0  weight of an inner node's link: (children's weights added up, the most of its depth) + eta lambda gamma
 * eta      weight of a prior: N_l - 1/L below, 1 at the cloud; together the number of clients
 * paper    c = omega, alpha = sqrt(20);  c = omega_0/25, alpha = 25 sqrt(20);  r(k) = sqrt(k)
 * tuned    c of a client = ease * bend, the mean bend of a client's loss per coordinate; alpha = a hundredth of the
 *          likely size of a model
 *     convex losses: r(k) = sqrt(k); c of an inner node = a tenth of its children's c added up, below the cloud times
 *          K_m, because w_0 rests for that number of steps of the edge's multiplier
 *     phase retrieval: r grows by 1 + 0.02/K_m^0.3 a round in the end, because the residuals shrink from the size of
 *          the signal to that of the noise; c of an inner node = 0.4 times its children's c added up,
 *          alpha = omega_0/(4 c): a link so soft that its multiplier forgets what it gathered while w_0 rested.
 *          With run.cycles false and from a start that may be far from every valley it is 0.006, 0.1 and omega_0/(2 c),
 *          because what is frozen stays
 */
#include "plan/cohort.h"
#include "plan/method.h"
#include "plan/noise.h"
#include "plan/owners.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/fixed.h"
#include "base/ranks.h"
#include "base/wire.h"
#include "plan/scales.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static hfsad_penalty penalty_of(penalty_choice c, hfsad_penalty preset)
{
    const hfsad_penalty_kind kind = (hfsad_penalty_kind)pick_choice(c.kind, (int)preset.kind);
    const double gamma = kind == preset.kind ? preset.gamma : penalty_kinds[kind]->gamma;
    return (hfsad_penalty){.kind = kind,
                           .weight = pick(c.weight, preset.weight),
                           .lambda = pick(c.lambda, preset.lambda),
                           .gamma = pick(c.gamma, gamma),
                           .ratio = pick(c.ratio, preset.ratio),
                           .free = preset.free};
}

/* gamma may come from one place of the spec and the kind from another, so it is checked once more at the end; and
 * numbers that are fine one by one may overflow together. */
static hfsad_status check_penalty(const hfsad_penalty *p, const char *what, const char *node, hfsad_error *err)
{
    const double least = penalty_gamma_above[p->kind], most = 1e100;
    const bool concave = penalty_is_concave(p);
    if (least > 0 && !(p->gamma > least))
        return error_set(err, HFSAD_ERROR_INPUT, "%s of %s: gamma = %g, but %s needs gamma > %g; set %s.gamma", what,
                         node, p->gamma, penalty_names[p->kind], least, what);
    if (!penalty_is_flat(p) && (!(p->weight * p->lambda <= most) || (concave && !(p->gamma * p->lambda <= most))))
        return error_set(err, HFSAD_ERROR_INPUT,
                         "%s of %s: weight = %g, lambda = %g: weight lambda and gamma lambda must be at most 1e100",
                         what, node, p->weight, p->lambda);
    return HFSAD_OK;
}

static hfsad_status check_rule(const hfsad_link_rule *rule, const char *node, hfsad_error *err)
{
    const double values[] = {rule->schedule.c, rule->schedule.alpha};
    static const char *const names[] = {"c", "alpha"};
    for (size_t i = 0; i < 2; i++)
        if (!(values[i] >= 1e-100 && values[i] <= 1e100))
            return error_set(err, HFSAD_ERROR_INPUT, "schedule of %s: %s = %g; expected 1e-100 to 1e100", node,
                             names[i], values[i]);
    return check_penalty(&rule->penalty, "link", node, err);
}

/* What the presets work with. */
typedef struct {
    const hfsad_spec *spec;
    const dataset *d;
    choice_table choices;
    data_scales scales;
    bool tuned, sharp, far;              /* sharp: phase retrieval; far: from a start that knows little */
    double pace;                         /* tuned, sharp: by what r grows in an edge round in the end */
    double client_c;                     /* tuned: c of a client's link */
    double inner_c[HFSAD_TIERS_MAX + 2]; /* tuned: c of an inner node's link, by its depth */
    double reach;                        /* how far a link that lets go holds */
    bool consensus;                      /* every link is tv, whatever the spec says */
    double omega_0[HFSAD_TIERS_MAX + 2]; /* of an inner node's link, by its depth */
    size_t edges;                        /* inner nodes with clients, but the cloud */
    double prior_weight;                 /* of all priors */
} preset;

/* auto: lambda of a prior, as a share of the smallest lambda at which all coefficients are 0. */
static const double LAMBDA_SHARE = 0.05;

static double eta(const preset *t, size_t i)
{
    const double n = (double)dataset_counted(t->d, i);
    if (i == 0)
        return t->edges ? n + 1 : n;
    return n > 0 ? n - 1 / (double)t->edges : 0;
}

static hfsad_penalty prior_preset(const preset *t, size_t i)
{
    const bool paper = t->spec->top.preset == PRESET_PAPER;
    return (hfsad_penalty){.kind = paper ? HFSAD_PENALTY_SCAD : HFSAD_PENALTY_NONE,
                           .weight = eta(t, i),
                           .lambda = 0.1, /* of the paper; auto_lambda puts another in its place */
                           .gamma = paper ? 2.4 : penalty_kinds[HFSAD_PENALTY_NONE]->gamma,
                           .ratio = 0.5,
                           .free = t->spec->features.intercept == INTERCEPT_NONE ? 0
                                   : t->d->classes                               ? t->d->classes
                                                                                 : 1};
}

static hfsad_penalty prior_of(const preset *t, size_t i, const override_settings *special)
{
    penalty_choice c = prior_choice(i ? &t->spec->prior_edge : &t->spec->prior_cloud);
    if (special)
        c = choice_over(c, prior_choice(&special->prior));
    hfsad_penalty usual = prior_preset(t, i);
    const double slope = t->scales.slope;
    if (t->tuned && slope > 0 && t->prior_weight > 0) {
        const double kink = c.kind == HFSAD_PENALTY_L2            ? 0
                            : c.kind == HFSAD_PENALTY_ELASTIC_NET ? pick(c.ratio, usual.ratio)
                                                                  : 1;
        usual.lambda = LAMBDA_SHARE * slope / (kink + (1 - kink) * t->scales.length) / t->prior_weight;
    }
    return penalty_of(c, usual);
}

/* Of all priors, as far as the spec has one for the node. */
static hfsad_status add_prior_weights(preset *t, hfsad_error *err)
{
    hfsad_status status = HFSAD_OK;
    for (size_t i = 0; i < t->d->n_inner && !status; i++) {
        override_settings special;
        bool any;
        if ((status = inner_override(&t->choices, i, &special, &any, err)))
            break;
        const hfsad_penalty prior = prior_of(t, i, any ? &special : NULL);
        t->prior_weight += penalty_is_flat(&prior) ? 0 : prior.weight;
    }
    return status;
}

/* Defaults of a link. tv: weight lambda is the bound of Theorem 1. mcp and scad, for children that may keep their own
 * model: they let go at a third of the likely size of a coefficient, but not within four standard deviations of a
 * client's own estimate, and pull twice as hard as the noise of clients that follow the common law. Those of norms
 * likewise: the norm of M such numbers is about sqrt(M) deviations, and hardly ever 2 or 3 more. own: the child has its
 * own intercept. */
typedef struct {
    double bound, noise, reach;
    bool own;
} link_preset;

static hfsad_penalty link_of(const preset *t, const LINK_settings *s, const LINK_settings *special, link_preset from)
{
    penalty_choice c = link_choice(s);
    if (special)
        c = choice_over(c, link_choice(special));
    if (t->consensus)
        c = (penalty_choice){HFSAD_PENALTY_L1, NAN, NAN, NAN, NAN};
    const bool concave = c.kind >= 0 && penalty_kinds[c.kind]->form == PENALTY_CONCAVE;
    const bool group = concave && penalty_kinds[c.kind]->group;
    const double root = sqrt((double)t->d->M - from.own), bend = t->scales.bend;
    const double own = bend > 0 ? t->scales.noise / bend : 0;
    const double reach = group ? fmax(0.3 * root * t->scales.length, (root + 3) * own) : from.reach;
    const double lambda = pick(c.lambda, concave && t->tuned ? reach / 3 : 1);
    const double slope = !concave || !t->tuned ? from.bound : (group ? root + 2 : 2) * from.noise;
    return penalty_of(c, (hfsad_penalty){.kind = HFSAD_PENALTY_L1,
                                         .weight = slope / lambda,
                                         .lambda = lambda,
                                         .gamma = penalty_kinds[HFSAD_PENALTY_MCP]->gamma,
                                         .free = from.own});
}

/* Where sqrt(k) grows no faster than by `growth` a step. */
static double turn_of(double growth)
{
    return fmax(1, floor(0.5 / log(growth)));
}

/* Settings that are not given come from the preset; if c or alpha is given, r(k) = sqrt(k) as in the paper. */
static hfsad_schedule schedule_of(const SCHEDULE_settings *general, const SCHEDULE_settings *special,
                                  hfsad_schedule usual)
{
    const SCHEDULE_settings s = schedule_over(general, special);
    const bool by_hand = !isnan(s.c) || !isnan(s.alpha);
    const bool grows = !isnan(s.growth) || (usual.growth > 0 && !by_hand);
    const int shape = pick_choice(s.shape, grows ? SHAPE_SQRT_GEOMETRIC : SHAPE_SQRT);
    const double growth = pick(s.growth, usual.growth > 0 ? usual.growth : 1.01);
    return (hfsad_schedule){.c = pick(s.c, usual.c > 0 ? usual.c : 1),
                            .alpha = pick(s.alpha, usual.alpha),
                            .turn = shape == SHAPE_SQRT_GEOMETRIC ? turn_of(growth) : 1,
                            .growth = shape == SHAPE_SQRT ? 0 : growth,
                            .over = pick(s.relax, 1 + usual.over) - 1};
}

/* The paper's c and alpha for a link of this slope; at_least if the link does not pull. */
static hfsad_schedule paper_schedule(double slope, double at_least, double divide)
{
    return (hfsad_schedule){.c = (slope > 0 ? slope : at_least) / divide, .alpha = sqrt(20) * divide};
}

static hfsad_schedule client_schedule(const preset *t, double slope, uint32_t local_steps)
{
    if (!t->tuned)
        return paper_schedule(slope, t->scales.omega, 1);
    return (hfsad_schedule){
        .c = t->client_c, .alpha = t->scales.length / 100, .growth = t->sharp ? pow(t->pace, 1.0 / local_steps) : 0};
}

/* An inner node keeps pace with its clients, which may take part less often. */
static hfsad_schedule inner_schedule(const preset *t, size_t i, const hfsad_penalty *link, double participation)
{
    const double slope = hfsad_penalty_slope(link), c = t->inner_c[t->d->inner[i].depth];
    if (!t->tuned)
        return paper_schedule(slope, t->omega_0[t->d->inner[i].depth], 25);
    if (!t->sharp)
        return (hfsad_schedule){.c = c, .alpha = t->scales.length / 100};
    const double clients = t->spec->participation.client;
    const double steps = participation > 0 && clients > 0 ? clients / participation : 1;
    return (hfsad_schedule){.c = c,
                            .alpha = slope > 0 && link->kind == HFSAD_PENALTY_L1 ? slope / ((t->far ? 2 : 4) * c)
                                                                                 : t->scales.length / 100,
                            .growth = pow(t->pace, steps)};
}

void omega_0_by_depth(const dataset *d, double leaf_pull, double (*prior_pull)(const hfsad_penalty *, double length),
                      const plan *p, double *omega_0)
{
    for (uint32_t depth = 0; depth < HFSAD_TIERS_MAX + 2; depth++)
        omega_0[depth] = 0;
    for (size_t i = d->n_inner; i-- > 1;) { /* breadth-first order: the deepest first */
        const inner_node *node = &d->inner[i];
        const double below = (double)dataset_counted(d, i) * leaf_pull + node->n_inner * omega_0[node->depth + 1];
        omega_0[node->depth] = fmax(omega_0[node->depth], below + prior_pull(&p->inner[i].prior, p->length));
    }
}

static leaf_class leaf_class_of(const preset *t, const override_settings *special)
{
    const hfsad_spec *s = t->spec;
    leaf_class c = {.loss = loss_of(&s->loss, special ? &special->loss : NULL)};
    c.rule.penalty =
        link_of(t, &s->link_client, special ? &special->link : NULL,
                (link_preset){t->scales.omega, t->scales.noise, t->reach, s->features.intercept == INTERCEPT_CLIENT});
    c.participation = special ? pick(special->participation, s->participation.client) : s->participation.client;
    c.local_steps = (uint32_t)(special && special->local_steps > 0 ? special->local_steps : s->run.local_steps);
    c.rule.schedule = schedule_of(&s->schedule_client, special ? &special->schedule : NULL,
                                  client_schedule(t, hfsad_penalty_slope(&c.rule.penalty), c.local_steps));
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
    size_t sum = dataset_counted(d, i);
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
    const double noise = t->scales.noise * sqrt((double)leaves_below(t->d, i));
    c.rule.penalty =
        link_of(t, &s->link_edge, special ? &special->link : NULL, (link_preset){weight, noise, t->reach, own});
    c.participation = special ? pick(special->participation, s->participation.edge) : s->participation.edge;
    c.rule.schedule = schedule_of(&s->schedule_edge, special ? &special->schedule : NULL,
                                  inner_schedule(t, i, &c.rule.penalty, c.participation));
    return c;
}

/* A loss that is to come from a program. */
static hfsad_status check_own(const hfsad_spec *spec, const leaf_class *c, const char *node, hfsad_error *err)
{
    if (c->loss.kind != HFSAD_LOSS_OWN || (spec->own_elsewhere && !spec->own.value))
        return HFSAD_OK;
    const bool linearized = c->solver.method == ROWS_LINEARIZED;
    const char *wrong = !spec->own.value                       ? "no loss was supplied (hfsad_spec_own_loss)"
                        : linearized && !spec->own.gradient    ? "loss.solver: linearized needs its gradient"
                        : !linearized && !spec->own.prox       ? "loss.solver: exact needs its prox"
                        : !linearized && isfinite(c->loss.box) ? "loss.box cannot be combined with a supplied prox"
                        : c->mean                              ? "loss.scale cannot be combined with it"
                                                               : NULL;
    if (!wrong)
        return HFSAD_OK;
    return error_set(err, HFSAD_ERROR_INPUT, "loss.kind: own of %s: %s", node, wrong);
}

static bool same_schedule(const hfsad_schedule *a, const hfsad_schedule *b)
{
    return a->c == b->c && a->alpha == b->alpha && a->turn == b->turn && a->growth == b->growth && a->over == b->over;
}

static bool same_loss(const hfsad_loss *a, const hfsad_loss *b)
{
#define SAME_PARAMETER(name) &&a->name == b->name
    return a->kind == b->kind && a->box == b->box LOSS_PARAMETERS(SAME_PARAMETER);
#undef SAME_PARAMETER
}

static bool same_class(const leaf_class *a, const leaf_class *b)
{
    const hfsad_penalty *p = &a->rule.penalty, *q = &b->rule.penalty;
    return same_loss(&a->loss, &b->loss) && p->kind == q->kind && p->weight == q->weight && p->lambda == q->lambda &&
           p->gamma == q->gamma && same_schedule(&a->rule.schedule, &b->rule.schedule) &&
           a->participation == b->participation && a->local_steps == b->local_steps &&
           a->solver.method == b->solver.method && a->solver.tolerance == b->solver.tolerance &&
           a->solver.sweeps == b->solver.sweeps && a->mean == b->mean;
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

static hfsad_status plan_leaves(plan *p, preset *t, hfsad_error *err)
{
    const dataset *d = t->d;
    p->leaf_classes[0] = leaf_class_of(t, NULL);
    p->n_leaf_classes = 1;
    hfsad_status status = check_rule(&p->leaf_classes[0].rule, "every client", err);
    if (!status)
        status = check_own(t->spec, &p->leaf_classes[0], "every client", err);
    if (status || !t->spec->n_overrides)
        return status;
    p->leaf_class_of = alloc_zero(d->n_leaves, sizeof *p->leaf_class_of);
    if (!p->leaf_class_of)
        return error_memory(err, d->n_leaves * sizeof *p->leaf_class_of, "overrides");
    char name[NODE_NAME_SIZE];
    for (size_t leaf = 0; leaf < d->n_leaves && !status; leaf++) {
        override_settings special;
        bool any;
        status = leaf_override(&t->choices, leaf, name, sizeof name, &special, &any, err);
        if (status || !any)
            continue;
        const leaf_class c = leaf_class_of(t, &special);
        if (!(status = check_own(t->spec, &c, name, err)))
            status = assign_class(p, leaf, &c, name, err);
    }
    return status;
}

/* The paper's eta lambda gamma. Of a ridge the pull on a coefficient ten times the likely size of a model. */
static double paper_prior_pull(const hfsad_penalty *prior, double length)
{
    return penalty_steepest(prior, 10 * length) * (penalty_is_concave(prior) ? prior->gamma : 1);
}

/* c of the inner nodes' links from their children's, the deepest first; one number for a depth, the most. */
static void find_inner_c(preset *t)
{
    for (size_t i = t->d->n_inner; i-- > 1;) {
        const inner_node *node = &t->d->inner[i];
        const double client = pick(t->spec->schedule_client.c, t->client_c);
        const double below = (double)dataset_counted(t->d, i) * client + node->n_inner * t->inner_c[node->depth + 1];
        const double rests = node->depth == 1 ? (double)spec_edge_rounds(t->spec) : 1;
        const double c = below * (t->sharp ? (t->far ? 0.1 : 0.4) : 0.1 * rests);
        t->inner_c[node->depth] = fmax(t->inner_c[node->depth], c);
    }
}

/* Of the cloud: a star, whose clients have a c below the preset's. */
static bool is_star_watched(const preset *t, const hfsad_link_rule *client)
{
    return t->d->n_inner == 1 && t->tuned && client->penalty.kind == HFSAD_PENALTY_L1 &&
           hfsad_penalty_slope(&client->penalty) >= t->scales.omega * (1 - 1e-9) && client->schedule.c < t->client_c;
}

static bool is_watched(const preset *t, size_t i, const hfsad_penalty *link)
{
    return i && t->tuned && link->kind == HFSAD_PENALTY_L1 &&
           hfsad_penalty_slope(link) >= t->omega_0[t->d->inner[i].depth] * (1 - 1e-9);
}

/* Phase retrieval of one model with growing schedules. The safeguard begins new cycles, so all links are watched. This
 * is the default if no polish follows, because a polish continues from the point at which a run has frozen. */
static bool has_cycles(const preset *t, const plan *p)
{
    const bool by_itself = t->spec->run.cycles < 0 && t->spec->run.polish == 0;
    if (!t->tuned || !t->sharp || !(t->spec->run.cycles == 1 || by_itself) ||
        algorithm_is_baseline(t->spec->top.algorithm))
        return false;
    for (size_t c = 0; c < p->n_leaf_classes; c++) {
        const leaf_class *class = &p->leaf_classes[c];
        if (!loss_kind_of(&class->loss)->majorised || class->rule.penalty.kind != HFSAD_PENALTY_L1 ||
            class->rule.penalty.free || !(class->rule.schedule.growth > 0) || class->solver.method != ROWS_EXACT)
            return false;
    }
    for (size_t i = 1; i < t->d->n_inner; i++)
        if (!p->inner[i].watched || p->inner[i].rule.penalty.free || !(p->inner[i].rule.schedule.growth > 0))
            return false;
    return true;
}

/* Priors first, because the preset's weight of an edge's link depends on them; then the links. */
static hfsad_status plan_inner(plan *p, preset *t, hfsad_error *err)
{
    const dataset *d = t->d;
    hfsad_status status = t->scales.slope > 0 ? add_prior_weights(t, err) : HFSAD_OK;
    override_settings special;
    bool any;
    for (size_t i = 0; i < d->n_inner && !status; i++)
        if (!(status = inner_override(&t->choices, i, &special, &any, err))) {
            p->inner[i].prior = prior_of(t, i, any ? &special : NULL);
            status = check_penalty(&p->inner[i].prior, "prior", d->inner[i].name, err);
        }
    const double client = pick(t->spec->link_client.weight, t->scales.omega) * pick(t->spec->link_client.lambda, 1);
    omega_0_by_depth(d, client, paper_prior_pull, p, t->omega_0);
    find_inner_c(t);
    for (size_t i = 0; i < d->n_inner && !status; i++)
        if (!(status = inner_override(&t->choices, i, &special, &any, err))) {
            p->inner[i] = inner_class_of(t, i, any ? &special : NULL);
            p->inner[i].watched = is_watched(t, i, &p->inner[i].rule.penalty);
            status = i ? check_rule(&p->inner[i].rule, d->inner[i].name, err) : HFSAD_OK;
        }
    if (!status)
        status = owners_find(p, t->spec, d, err);
    p->star_c = t->client_c;
    p->pace = t->pace;
    p->cycles = has_cycles(t, p);
    p->inner[0].watched = d->n_inner == 1 && (p->cycles || is_star_watched(t, &p->leaf_classes[0].rule));
    p->cycles = p->cycles && !plan_has_noise(p);
    p->keeps_best = t->tuned && !plan_why_apart(p, d->n_inner) && !plan_is_convex(p, d->n_inner) && !p->aggregate &&
                    !plan_has_noise(p) && !algorithm_is_baseline(t->spec->top.algorithm) &&
                    t->spec->federation.mode != MODE_ASYNC;
    for (size_t i = 0; i < d->n_inner && plan_has_noise(p); i++)
        p->inner[i].watched = false; /* a repair would add rounds to those that the budget was divided over */
    return status;
}

static hfsad_status check_label(const dataset *d, size_t leaf, size_t row, const hfsad_loss *loss, double y,
                                hfsad_error *err)
{
    if (scores_fit(loss, d->classes, y))
        return HFSAD_OK;
    char name[256];
    dataset_leaf_name(d, leaf, name, sizeof name);
    return error_set(err, HFSAD_ERROR_INPUT, "row %zu of %s has y = %g: the %s loss takes %s%s", row + 1, name, y,
                     loss_names[loss->kind], scores_take(loss, d->classes),
                     d->classes || !loss_kind_of(loss)->labels ? ""
                                                               : ", or 0 and 1; two others: data: {labels: [1, 2]}, "
                                                                 "the second is the positive one; several classes: "
                                                                 "see loss.classes");
}

/* Observations that the losses can take. */
static hfsad_status check_labels(const plan *p, const dataset *d, hfsad_error *err)
{
    hfsad_status status = HFSAD_OK;
    for (size_t leaf = 0; leaf < d->n_leaves && !status; leaf++) {
        const hfsad_loss *loss = &plan_leaf(p, leaf)->loss;
        if (!loss_kind_of(loss)->fits || !dataset_holds(d, leaf))
            continue;
        if (!d->rows.first) {
            status = check_label(d, leaf, 0, loss, d->y[leaf], err);
            continue;
        }
        const client_rows rows = dataset_rows(d, leaf);
        for (size_t r = 0; r < rows.count && !status; r++)
            status = check_label(d, leaf, r, loss, rows.y[r], err);
    }
    return d->held ? ranks_agree(status, err) : status;
}

/* Standard errors are those of a minimum that no constraint and no kink of a penalty holds. */
static hfsad_status check_errors(plan *p, const preset *t, hfsad_error *err)
{
    const hfsad_spec *spec = t->spec;
    const char *why = plan_why_apart(p, t->d->n_inner);
    p->errors = spec->output.errors == 1;
    if (!p->errors)
        return HFSAD_OK;
    if (!why && !plan_is_convex(p, t->d->n_inner))
        why = "the problem is not convex";
    for (size_t i = 0; i < t->d->n_inner && !why; i++)
        if (hfsad_penalty_slope(&p->inner[i].prior) > 0)
            why = "prior: a penalty with a kink at 0 selects features; use none or l2";
    for (size_t c = 0; c < p->n_leaf_classes && !why; c++)
        why = isfinite(p->leaf_classes[c].loss.box) ? "loss.box: a model at its bound has none" : NULL;
    if (!why && p->owners)
        why = "features.intercept: clients or edges have intercepts of their own; use global";
    if (!why && p->positive)
        why = "features.positive: a model at its bound has none";
    if (!why && t->d->classes)
        why = "loss: a run with several scores has none; run one tau, or one class against the rest, at a time";
    if (!why && t->d->M > 512)
        why = "data: more than 512 coordinates";
    if (!why && !p->star && spec->run.polish != 1 && (spec->run.polish == 0 || p->iterations == 0))
        why = "run.polish: the run must go to the minimum";
    return why ? error_set(err, HFSAD_ERROR_INPUT, "output.errors: %s", why) : HFSAD_OK;
}

/* A link's counter has 31 bits. */
static hfsad_status check_counters(const plan *p, hfsad_error *err)
{
    for (size_t c = 0; c < p->n_leaf_classes; c++) {
        const double steps = (double)p->iterations * p->edge_rounds * p->leaf_classes[c].local_steps;
        if (steps >= 0x1p31)
            return error_set(err, HFSAD_ERROR_INPUT,
                             "run: iterations * edge_rounds * local_steps = %.3g steps of a client; the limit is 2^31 "
                             "- 1, so lower one of the three",
                             steps);
    }
    return HFSAD_OK;
}

/* Only the links of clients with one row are rounded. */
static hfsad_status check_precision(const plan *p, const hfsad_spec *spec, const dataset *d, hfsad_error *err)
{
    const char *why = NULL;
    if (!(p->split > 0))
        return HFSAD_OK;
    if (p->star || algorithm_is_baseline(spec->top.algorithm))
        why = "this algorithm has no links; set algorithm: hfsad";
    else if (d->rows.first || d->n_rows > d->n_leaves)
        why = "clients must have one row each, without an intercept; their rows take the memory otherwise";
    else if (spec_has_noise(spec))
        why = "a budget of differential privacy needs double";
    for (size_t c = 0; c < p->n_leaf_classes && !why; c++)
        if (penalty_kind_of(&p->leaf_classes[c].rule.penalty)->group)
            why = "links group-mcp and group-scad need double";
    return why ? error_set(err, HFSAD_ERROR_INPUT, "run.precision: %s", why) : HFSAD_OK;
}

/* The setting that gives rows several scores. */
static const char *several_key(const hfsad_spec *spec)
{
    return spec->loss.levels                           ? "loss.tau: a list"
           : spec->loss.kind == HFSAD_LOSS_MULTINOMIAL ? "loss.kind: multinomial"
                                                       : "loss.classes";
}

/* Only the polish, and star, which is one, can keep coefficients from falling below 0 and has several scores. */
static hfsad_status check_polished(const plan *p, const hfsad_spec *spec, const char *why, hfsad_error *err)
{
    const bool several = spec_scores(spec) > 0;
    if ((!p->positive && !several) || (spec->run.iterations == 0 && spec->run.polish == 1))
        return HFSAD_OK;
    return error_set(err, HFSAD_ERROR_INPUT, "%s: only algorithm: star can train this%s%s",
                     several ? several_key(spec) : "features.positive",
                     why ? ", and it cannot: " : "; set algorithm: star", why ? why : "");
}

static void take_scores(plan *p, const hfsad_spec *spec)
{
    const hfsad_loss *loss = &p->leaf_classes[0].loss;
    if (!spec_scores(spec) || loss_kind_of(loss)->several)
        return;
    _Static_assert((int)SPEC_LEVELS == (int)SCORES_LEVELS, "as many levels as a spec may have");
    p->scores = (score_losses){.K = spec_scores(spec), .loss = *loss, .labels = loss_kind_of(loss)->labels};
    (void)spec_levels(spec, p->scores.levels);
    plan_settle(p);
}

/* One number of scores for all clients, whose models are the cloud's. */
static hfsad_status check_several(const plan *p, const hfsad_spec *spec, hfsad_error *err)
{
    const hfsad_loss *loss = &p->leaf_classes[0].loss;
    bool any = spec_scores(spec) > 0, all = true, mean = false;
    for (size_t c = 0; c < p->n_leaf_classes; c++) {
        const hfsad_loss *other = &p->leaf_classes[c].loss;
        all = all && loss->kind == other->kind && loss->tau == other->tau && loss->h == other->h;
        any = any || loss_kind_of(other)->several;
        mean = mean || p->leaf_classes[c].mean;
    }
    const char *wrong = !any              ? NULL
                        : !all            ? "all clients must have it"
                        : mean            ? "loss.scale: mean cannot be combined with it"
                        : spec->top.truth ? "truth: it cannot be given for several classes; remove it"
                                          : NULL;
    return wrong ? error_set(err, HFSAD_ERROR_INPUT, "%s: %s", several_key(spec), wrong) : HFSAD_OK;
}

static hfsad_status choose_method(plan *p, const preset *t, hfsad_error *err)
{
    const hfsad_spec *spec = t->spec;
    const bool asked = spec->top.algorithm == ALGORITHM_STAR;
    p->positive = spec->features.positive == 1;
    if (plan_has_noise(p)) /* which only the rounds of HFSAD have */
        return check_polished(p, spec, "it adds no noise (privacy)", err);
    if (!asked && (spec->top.algorithm != ALGORITHM_AUTO || plan_is_by_hand(spec)))
        return check_polished(p, spec, NULL, err);
    const char *why = plan_why_no_star(spec, p, t->d->n_inner);
    if (why && asked)
        return error_set(err, HFSAD_ERROR_INPUT, "algorithm: star cannot train this: %s; use auto or hfsad", why);
    if (why || t->consensus)
        return check_polished(p, spec, why, err);
    p->star = true;
    p->gap = spec->stop.gap;
    p->limit = p->iterations;
    p->iterations = 0;
    return HFSAD_OK;
}

/* A model may become 2^ROOM_BITS times as large as the survey expects before a sum over a cohort overflows. */
static int choose_fraction(const hfsad_spec *spec, double length)
{
    enum { ROOM_BITS = 16 };
    const size_t members = 2 * spec_cohort(spec); /* no cohort has more */
    if (spec->federation.fraction >= 0)
        return (int)spec->federation.fraction;
    return GRID_BITS - ROOM_BITS - (members ? ilogb((double)members) + 1 : 0) -
           (isfinite(length) && length > 0 ? ilogb(length) : 0);
}

double plan_up_factor(const plan *p, double sigma)
{
    return ldexp(1, p->fraction - (isfinite(sigma) && sigma > 0 ? ilogb(sigma) : 0));
}

static hfsad_status fill_plan(plan *p, preset *t, hfsad_error *err)
{
    const hfsad_spec *spec = t->spec;
    p->seed = (uint64_t)spec->run.seed;
    p->iterations = (uint64_t)spec->run.iterations;
    p->trace_every = (uint64_t)spec->run.trace_every;
    p->edge_rounds = (uint32_t)spec_edge_rounds(spec);
    p->at_least_every = (uint32_t)spec->participation.at_least_every;
    p->keep_w = spec_shows_clients(spec);
    p->fixed = spec_is_fixed(spec);
    p->aggregate = spec->top.aggregate;
    p->rounds = p->fixed || spec->federation.wire == WIRE_FLOAT;
    p->secure = spec_is_secure(spec);
    p->cohort = spec_cohort(spec);
    p->async = spec->federation.mode == MODE_ASYNC;
    p->noise = noise_budget_of(spec);
    p->largest = spec->privacy.largest;
    p->fraction = choose_fraction(spec, fmax(t->scales.length, noise_size(&p->noise)));
    p->stop_absolute = spec->stop.absolute;
    p->stop_relative = spec->stop.relative;
    p->length = t->scales.length;
    p->level = t->scales.level;
    p->own = spec->own;
    for (size_t i = 1; i < t->d->n_inner; i++)
        t->edges += dataset_counted(t->d, i) > 0;
    hfsad_status status;
    if ((status = plan_leaves(p, t, err)) || (status = check_several(p, spec, err)) ||
        (status = plan_inner(p, t, err)) || (status = check_overrides(&t->choices, err)) ||
        (status = check_labels(p, t->d, err)) || (status = cohorts_check(p, t->d, err)))
        return status;
    noise_count_rounds(p, t->d);
    if ((status = noise_take_rows(p, spec, err)))
        return status;
    take_scores(p, spec);
    if ((status = choose_method(p, t, err)) || (status = check_errors(p, t, err)) ||
        (status = noise_check_budget(p, err)))
        return status;
    p->split = precision_split((precision_kind)spec->run.precision);
    status = check_precision(p, spec, t->d, err);
    return status ? status : check_counters(p, err);
}

static bool starts_far(const char *start)
{
    return start && (!strcmp(start, "zero") || !strcmp(start, "normal") || !strcmp(start, "spectral"));
}

static void apply_scales(preset *t, const data_scales *scales)
{
    const hfsad_loss loss = loss_of(&t->spec->loss, NULL);
    t->scales = *scales;
    t->tuned = t->spec->top.preset == PRESET_TUNED;
    t->sharp = loss_kind_of(&loss)->majorised;
    t->far = t->spec->run.cycles == 0 && starts_far(t->spec->run.start);
    t->pace = 1 + (t->far ? 0.006 : 0.02) / pow((double)spec_edge_rounds(t->spec), 0.3);
    t->client_c = loss_kind_of(&loss)->ease * scales->bend;
    t->reach = fmax(0.3 * scales->length, scales->bend > 0 ? 4 * scales->noise / scales->bend : 0);
}

hfsad_status plan_resolve(plan **out, const hfsad_spec *spec, const dataset *d, const data_scales *scales,
                          bool consensus, hfsad_error *err)
{
    *out = NULL;
    plan *p = alloc_zero(1, sizeof *p);
    preset t = {.spec = spec, .d = d, .consensus = consensus};
    if (p) {
        p->leaf_classes = alloc_zero(spec->n_overrides ? CLASSES_MAX : 1, sizeof *p->leaf_classes);
        p->inner = alloc_zero(d->n_inner, sizeof *p->inner);
    }
    hfsad_status status;
    apply_scales(&t, scales);
    if (choices_make(&t.choices, spec, d) && p && p->leaf_classes && p->inner)
        status = fill_plan(p, &t, err);
    else
        status = error_memory(err, d->n_inner * sizeof *p->inner, "the plan");
    choices_free(&t.choices);
    if (status)
        plan_free(p);
    else
        *out = p;
    return status;
}

hfsad_status plan_find(plan **p, data_scales *scales, const hfsad_spec *spec, const dataset *d, const surveyor *ask,
                       hfsad_error *err)
{
    *p = NULL;
    hfsad_status status = data_scales_find(scales, spec, d, ask, err);
    if (!status)
        status = plan_resolve(p, spec, d, scales, false, err);
    if (status || (*p)->star || !scales_are_settled(spec))
        return status;
    plan_free(*p); /* the star has coordinates of its own, and must not wait for more questions */
    *p = NULL;
    status = data_scales_settle(scales, spec, d, ask, err);
    return status ? status : plan_resolve(p, spec, d, scales, false, err);
}

hfsad_status plan_create(plan **p, const hfsad_spec *spec, const dataset *d, hfsad_error *err)
{
    local_survey survey;
    data_scales scales;
    *p = NULL;
    hfsad_status status = local_survey_make(&survey, spec, d, err);
    if (status)
        return status;
    const surveyor ask = local_surveyor(&survey);
    status = plan_find(p, &scales, spec, d, &ask, err);
    local_survey_free(&survey);
    return status;
}

const hfsad_own_loss *plan_client_loss(const plan *p, const leaf_class *class)
{
    return loss_kind_of(&class->loss)->several  ? &softmax_own
           : p->scores.K                        ? &p->scores_own
           : class->loss.kind == HFSAD_LOSS_OWN ? &p->own
                                                : NULL;
}

void plan_settle(plan *p)
{
    p->scores_own = scores_own(&p->scores);
}

bool plan_lets_go(const plan *p, size_t n_inner)
{
    for (size_t c = 0; c < p->n_leaf_classes; c++)
        if (penalty_is_concave(&p->leaf_classes[c].rule.penalty))
            return true;
    for (size_t i = 1; i < n_inner; i++)
        if (penalty_is_concave(&p->inner[i].rule.penalty))
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
    free(p->owner);
    free(p);
}
