/* The settings of a run with what its plan came to: for hfsad_run_settings. */
#include "run/handle.h"

#include "base/error.h"
#include "polish/task.h"
#include "spec/pack.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A number over the nodes of a tier: NAN if two nodes differ. */
typedef struct {
    double value;
    bool given, differs;
} shared_number;

static void add_number(shared_number *s, double v)
{
    s->differs = s->differs || (s->given && s->value != v);
    s->value = v;
    s->given = true;
}

static double number_of(const shared_number *s)
{
    return s->given && !s->differs ? s->value : NAN;
}

static int choice_of(const shared_number *s)
{
    return s->given && !s->differs ? (int)s->value : -1;
}

typedef struct {
    shared_number kind, weight, lambda, gamma, ratio;
} shared_penalty;

typedef struct {
    shared_number c, alpha, shape, growth, relax;
} shared_schedule;

static void add_penalty(shared_penalty *s, const hfsad_penalty *p)
{
    add_number(&s->kind, p->kind);
    add_number(&s->weight, p->weight);
    add_number(&s->lambda, p->lambda);
    if (penalty_is_concave(p))
        add_number(&s->gamma, p->gamma);
    if (penalty_kind_of(p)->has_ratio)
        add_number(&s->ratio, p->ratio);
}

static void add_schedule(shared_schedule *s, const hfsad_schedule *r)
{
    add_number(&s->c, r->c);
    add_number(&s->alpha, r->alpha);
    add_number(&s->shape, !(r->growth > 0) ? SHAPE_SQRT : r->turn > 1 ? SHAPE_SQRT_GEOMETRIC : SHAPE_GEOMETRIC);
    if (r->growth > 0)
        add_number(&s->growth, r->growth);
    add_number(&s->relax, 1 + r->over);
}

static LINK_settings link_settings(const shared_penalty *s)
{
    return (LINK_settings){link_setting(choice_of(&s->kind)), number_of(&s->weight), number_of(&s->lambda),
                           number_of(&s->gamma)};
}

static PRIOR_settings prior_settings(const shared_penalty *s)
{
    return (PRIOR_settings){choice_of(&s->kind), number_of(&s->weight), number_of(&s->lambda), number_of(&s->gamma),
                            number_of(&s->ratio)};
}

static SCHEDULE_settings schedule_settings(const shared_schedule *s)
{
    return (SCHEDULE_settings){.c = number_of(&s->c),
                               .alpha = number_of(&s->alpha),
                               .shape = choice_of(&s->shape),
                               .growth = number_of(&s->growth),
                               .relax = number_of(&s->relax)};
}

static void take_links(hfsad_spec *spec, const hfsad_run *r)
{
    shared_penalty client = {0}, edge = {0};
    shared_schedule client_schedule = {0}, edge_schedule = {0};
    for (size_t i = 0; i < r->plan->n_leaf_classes; i++) {
        add_penalty(&client, &r->plan->leaf_classes[i].rule.penalty);
        add_schedule(&client_schedule, &r->plan->leaf_classes[i].rule.schedule);
    }
    for (size_t i = 1; i < r->data->n_inner; i++) {
        add_penalty(&edge, &r->plan->inner[i].rule.penalty);
        add_schedule(&edge_schedule, &r->plan->inner[i].rule.schedule);
    }
    spec->link_client = link_settings(&client);
    spec->link_edge = link_settings(&edge);
    spec->schedule_client = schedule_settings(&client_schedule);
    spec->schedule_edge = schedule_settings(&edge_schedule);
}

static void take_priors(hfsad_spec *spec, const hfsad_run *r)
{
    shared_penalty edge = {0}, cloud = {0};
    for (size_t i = 1; i < r->data->n_inner; i++)
        add_penalty(&edge, &r->plan->inner[i].prior);
    add_penalty(&cloud, &r->plan->inner[0].prior);
    spec->prior_edge = prior_settings(&edge);
    spec->prior_cloud = prior_settings(&cloud);
}

hfsad_status run_resolve(hfsad_run *r, hfsad_error *err)
{
    hfsad_spec *spec;
    const hfsad_status status = spec_copy(&spec, r->spec, err);
    if (status)
        return status;
    char *start = strdup(r->start_kind);
    if (!start) {
        hfsad_spec_free(spec);
        return error_memory(err, strlen(r->start_kind), "the start's name");
    }
    free(spec->run.start);
    spec->run.start = start;
    spec->run.edge_rounds = r->plan->edge_rounds;
    spec->run.polish = polish_is_due(r->spec, r->plan, r->data->n_inner, r->data->M);
    take_priors(spec, r);
    if (r->algorithm->links) {
        take_links(spec, r);
        shared_number solver = {0};
        for (size_t i = 0; i < r->plan->n_leaf_classes; i++)
            add_number(&solver,
                       r->plan->leaf_classes[i].solver.method == ROWS_EXACT ? SOLVER_EXACT : SOLVER_LINEARIZED);
        spec->loss.solver = choice_of(&solver);
    } else {
        spec->baseline.step = r->rule.step.size;
        spec->baseline.decay = r->rule.step.kind == STEP_CONSTANT ? NAN : r->rule.step.shrink;
        spec->baseline.rho = r->rule.rho;
    }
    hfsad_spec_free(r->resolved);
    r->resolved = spec;
    return HFSAD_OK;
}

const hfsad_spec *hfsad_run_settings(const hfsad_run *r)
{
    return r->resolved;
}
