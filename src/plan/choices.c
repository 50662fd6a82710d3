/* What the spec says of a node: see choices.h. */
#include "plan/choices.h"

#include "base/alloc.h"
#include "base/error.h"
#include "math/loss_kind.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

penalty_choice link_choice(const LINK_settings *s)
{
    return (penalty_choice){link_kind(s->penalty), s->weight, s->lambda, s->gamma, NAN};
}

penalty_choice prior_choice(const PRIOR_settings *s)
{
    return (penalty_choice){s->penalty, s->weight, s->lambda, s->gamma, s->ratio};
}

penalty_choice choice_over(penalty_choice general, penalty_choice special)
{
    return (penalty_choice){pick_choice(special.kind, general.kind), pick(special.weight, general.weight),
                            pick(special.lambda, general.lambda), pick(special.gamma, general.gamma),
                            pick(special.ratio, general.ratio)};
}

SCHEDULE_settings schedule_over(const SCHEDULE_settings *s, const SCHEDULE_settings *special)
{
    if (!special)
        return *s;
    return (SCHEDULE_settings){pick(special->c, s->c), pick(special->alpha, s->alpha),
                               pick_choice(special->shape, s->shape), pick(special->growth, s->growth),
                               pick(special->relax, s->relax)};
}

hfsad_loss loss_of(const LOSS_settings *s, const LOSS_settings *special)
{
    hfsad_loss loss = {.kind = (hfsad_loss_kind)(special ? pick_choice(special->kind, s->kind) : s->kind),
                       .box = special ? pick(special->box, s->box) : s->box};
#define TAKE_PARAMETER(name) loss.name = special ? pick(special->name, s->name) : s->name;
    LOSS_PARAMETERS(TAKE_PARAMETER)
#undef TAKE_PARAMETER
    if (isnan(loss.box))
        loss.box = INFINITY;
    return loss;
}

bool is_mean(const hfsad_spec *s, const override_settings *special)
{
    return (special ? pick_choice(special->loss.scale, s->loss.scale) : s->loss.scale) == SCALE_MEAN;
}

typedef enum { CLOUD, EDGE, CLIENT } node_kind;

static bool says_loss(const override_settings *s)
{
#define SAYS_PARAMETER(name) || !isnan(s->loss.name)
    return s->loss.kind >= 0 || !isnan(s->loss.box) || s->loss.scale >= 0 || s->loss.solver >= 0 ||
           !isnan(s->loss.tolerance) || s->loss.sweeps > 0 LOSS_PARAMETERS(SAYS_PARAMETER);
#undef SAYS_PARAMETER
}

static bool says_penalty(penalty_choice c)
{
    return c.kind >= 0 || !isnan(c.weight) || !isnan(c.lambda) || !isnan(c.gamma) || !isnan(c.ratio);
}

static bool says_schedule(const override_settings *s)
{
    const SCHEDULE_settings *t = &s->schedule;
    return !isnan(t->c) || !isnan(t->alpha) || t->shape >= 0 || !isnan(t->growth) || !isnan(t->relax);
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

/* "spec.yaml:12: overrides" or "overrides". */
static const char *override_place(const hfsad_spec *spec, const override_settings *s, char buffer[PLACE_SIZE])
{
    if (s->line > 0)
        snprintf(buffer, PLACE_SIZE, "%s:%d: overrides", spec->path, s->line);
    else
        snprintf(buffer, PLACE_SIZE, "overrides");
    return buffer;
}

static void lay_over(override_settings *merged, const override_settings *s)
{
    const penalty_choice link = choice_over(link_choice(&merged->link), link_choice(&s->link));
    const penalty_choice prior = choice_over(prior_choice(&merged->prior), prior_choice(&s->prior));
    merged->link = (LINK_settings){link_setting(link.kind), link.weight, link.lambda, link.gamma};
    merged->prior = (PRIOR_settings){prior.kind, prior.weight, prior.lambda, prior.gamma, prior.ratio};
    merged->loss.kind = pick_choice(s->loss.kind, merged->loss.kind);
#define MERGE_PARAMETER(name) merged->loss.name = pick(s->loss.name, merged->loss.name);
    LOSS_PARAMETERS(MERGE_PARAMETER)
#undef MERGE_PARAMETER
    merged->loss.box = pick(s->loss.box, merged->loss.box);
    merged->loss.scale = pick_choice(s->loss.scale, merged->loss.scale);
    merged->loss.solver = pick_choice(s->loss.solver, merged->loss.solver);
    merged->loss.tolerance = pick(s->loss.tolerance, merged->loss.tolerance);
    if (s->loss.sweeps > 0)
        merged->loss.sweeps = s->loss.sweeps;
    merged->schedule = schedule_over(&merged->schedule, &s->schedule);
    merged->participation = pick(s->participation, merged->participation);
    if (s->local_steps > 0)
        merged->local_steps = s->local_steps;
}

/* All entries that match a node, the later ones over the earlier. *any: whether there is one. */
static hfsad_status override_for(const choice_table *t, const char *name, node_kind kind, override_settings *merged,
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
            return error_set(err, HFSAD_ERROR_INPUT, "%s: %s is %s, which has no %s%s",
                             override_place(t->spec, s, place), name, kinds[kind], foreign,
                             kind == EDGE ? "; write edge/* for its clients" : "");
        t->used[o] = true;
        if (*any)
            lay_over(merged, s);
        else
            *merged = *s;
        *any = true;
    }
    return HFSAD_OK;
}

hfsad_status leaf_override(const choice_table *t, size_t leaf, char *name, size_t size, override_settings *special,
                           bool *any, hfsad_error *err)
{
    dataset_leaf_name(t->d, leaf, name, size);
    return override_for(t, name, CLIENT, special, any, err);
}

hfsad_status inner_override(const choice_table *t, size_t i, override_settings *special, bool *any, hfsad_error *err)
{
    return override_for(t, t->d->inner[i].name, i ? EDGE : CLOUD, special, any, err);
}

/* The node that is spelt most like `wanted`. */
static void nearest_node(const dataset *d, const char *wanted, char *buffer, size_t size)
{
    size_t least = SIZE_MAX;
    char name[NODE_NAME_SIZE];
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

hfsad_status check_overrides(const choice_table *t, hfsad_error *err)
{
    for (size_t o = 0; o < t->spec->n_overrides; o++) {
        const override_settings *s = &t->spec->overrides[o];
        char place[PLACE_SIZE], near[256];
        override_place(t->spec, s, place);
        if (!t->used[o] && t->spec->some_clients)
            continue;
        if (!t->used[o]) {
            nearest_node(t->d, s->node, near, sizeof near);
            return error_set(err, HFSAD_ERROR_INPUT, "%s: no node has the name '%s'; the nearest is '%s'", place,
                             s->node, near);
        }
        if (!says_loss(s) && !says_schedule(s) && s->local_steps <= 0 && isnan(s->participation) &&
            !says_penalty(link_choice(&s->link)) && !says_penalty(prior_choice(&s->prior)))
            return error_set(err, HFSAD_ERROR_INPUT, "%s: '%s' sets nothing; remove it", place, s->node);
    }
    return HFSAD_OK;
}

bool choices_make(choice_table *t, const hfsad_spec *spec, const dataset *d)
{
    const size_t count = spec->n_overrides;
    const char **nodes = alloc_zero(count, sizeof *nodes);
    *t = (choice_table){.spec = spec, .d = d, .used = alloc_zero(count, sizeof *t->used)};
    for (size_t o = 0; nodes && o < count; o++)
        nodes[o] = spec->overrides[o].node;
    const bool made = nodes && t->used && patterns_make(&t->nodes, nodes, count);
    free(nodes);
    return made;
}

void choices_free(choice_table *t)
{
    free(t->used);
    patterns_free(&t->nodes);
}
