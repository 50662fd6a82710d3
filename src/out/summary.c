/* summary.json; see summary.h. */
#include "out/summary.h"

#include "base/alloc.h"
#include "base/format_number.h"
#include "base/wire.h"
#include "data/builder.h"
#include "data/features.h"
#include "data/nodes.h"
#include "out/groups.h"
#include "out/json.h"
#include "personal/personal_task.h"
#include "plan/accountant.h"
#include "plan/guard.h"
#include "plan/noise.h"
#include "polish/task.h"
#include "run/anew.h"
#include "spec/table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

clients_per_edge count_clients(const dataset *d)
{
    clients_per_edge c = {SIZE_MAX, 0};
    for (size_t i = 0; i < d->n_inner; i++) {
        const size_t n = d->inner[i].n_leaves;
        if (!n)
            continue;
        c.least = n < c.least ? n : c.least;
        c.most = n > c.most ? n : c.most;
    }
    return c;
}

size_t count_nonzero(const hfsad_run *run)
{
    const double *w = run_inner_model(run, 0);
    size_t n = 0;
    for (size_t m = 0; m < features_weights(run->data); m++)
        n += w[m] != 0 && !column_is_constant(run->data, m / (run->data->classes ? run->data->classes : 1));
    return n;
}

static const char *const algorithm_names[] = {ALGORITHM_NAMES};
#define LINK_NAME_AT(KIND, prefix, link, prior, gamma_above) [HFSAD_PENALTY_##KIND] = link,
#define PRIOR_NAME_AT(KIND, prefix, link, prior, gamma_above) [HFSAD_PENALTY_##KIND] = prior,
static const char *const link_names[] = {HFSAD_PENALTY_LIST(LINK_NAME_AT)};
static const char *const prior_names[] = {HFSAD_PENALTY_LIST(PRIOR_NAME_AT)};
static const char *const shape_names[] = {SHAPE_NAMES};
enum { N_KINDS = HFSAD_PENALTY_COUNT, N_SHAPES = sizeof shape_names / sizeof *shape_names };

/* A setting over all nodes of a tier: the set of its values. */
typedef struct {
    double least, most;
    size_t count;
} span;

static void span_add(span *s, double v)
{
    s->least = s->count && s->least < v ? s->least : v;
    s->most = s->count && s->most > v ? s->most : v;
    s->count++;
}

/* One number if all nodes agree, [least, most] if they do not, nothing if the setting has no meaning. */
static void add_span(json *j, cJSON *object, const char *key, const span *s)
{
    if (!s->count)
        return;
    if (s->least == s->most) {
        json_add_real(j, object, key, s->least);
        return;
    }
    cJSON *pair = cJSON_CreateArray();
    json_append(j, pair, json_real(s->least));
    json_append(j, pair, json_real(s->most));
    json_add_item(j, object, key, pair);
}

typedef struct {
    bool kinds[N_KINDS];
    span weight, lambda, gamma, ratio, c, alpha, growth, relax;
    bool shapes[N_SHAPES];
} tier_spans;

static void spans_add_penalty(tier_spans *s, const hfsad_penalty *p)
{
    s->kinds[p->kind] = true;
    if (penalty_is_flat(p))
        return;
    span_add(&s->weight, p->weight);
    span_add(&s->lambda, p->lambda);
    if (penalty_gamma_above[p->kind] > 0)
        span_add(&s->gamma, p->gamma);
    if (penalty_kind_of(p)->has_ratio)
        span_add(&s->ratio, p->ratio);
}

static int shape_of(const hfsad_schedule *s)
{
    return !(s->growth > 0) ? SHAPE_SQRT : s->turn > 1 ? SHAPE_SQRT_GEOMETRIC : SHAPE_GEOMETRIC;
}

static void spans_add_rule(tier_spans *s, const hfsad_link_rule *rule)
{
    spans_add_penalty(s, &rule->penalty);
    span_add(&s->c, rule->schedule.c);
    span_add(&s->alpha, rule->schedule.alpha);
    span_add(&s->relax, 1 + rule->schedule.over);
    s->shapes[shape_of(&rule->schedule)] = true;
    if (rule->schedule.growth > 0)
        span_add(&s->growth, rule->schedule.growth);
}

/* "tv", or ["tv","mcp"] if overrides mix them. */
static void add_kinds(json *j, cJSON *object, const char *key, const bool *kinds, int count, const char *const *names)
{
    cJSON *list = cJSON_CreateArray();
    int last = 0, n = 0;
    for (int i = 0; i < count; i++) {
        if (!kinds[i])
            continue;
        json_append(j, list, cJSON_CreateString(names[i]));
        last = i;
        n++;
    }
    if (n == 1) {
        cJSON_Delete(list);
        list = cJSON_CreateString(names[last]);
    }
    json_add_item(j, object, key, list);
}

static void add_penalty(json *j, cJSON *parent, const char *key, const tier_spans *s, const char *const *names)
{
    cJSON *object = json_add_object(j, parent, key);
    add_kinds(j, object, "penalty", s->kinds, N_KINDS, names);
    add_span(j, object, "weight", &s->weight);
    add_span(j, object, "lambda", &s->lambda);
    add_span(j, object, "gamma", &s->gamma);
    add_span(j, object, "ratio", &s->ratio);
}

static void add_schedule(json *j, cJSON *parent, const char *key, const tier_spans *s)
{
    cJSON *object = json_add_object(j, parent, key);
    add_span(j, object, "c", &s->c);
    add_span(j, object, "alpha", &s->alpha);
    add_kinds(j, object, "shape", s->shapes, N_SHAPES, shape_names);
    add_span(j, object, "growth", &s->growth);
    add_span(j, object, "relax", &s->relax);
}

static void add_baseline(json *j, cJSON *settings, const baseline_rule *rule)
{
    static const char *const names[] = {
        [STEP_CONSTANT] = "constant", [STEP_POWER] = "power", [STEP_GEOMETRIC] = "geometric"};
    cJSON *object = json_add_object(j, settings, "baseline");
    json_add_real(j, object, "step", rule->step.size);
    json_add_text(j, object, "rule", names[rule->step.kind]);
    if (rule->step.kind != STEP_CONSTANT)
        json_add_real(j, object, "decay", rule->step.shrink);
    json_add_real(j, object, "rho", rule->rho);
}

/* Settings per node, from presets and overrides. The part for edges is left out if all clients are directly below the
 * cloud. */
static void add_resolved(json *j, cJSON *settings, const hfsad_run *run)
{
    const plan *p = run->plan;
    tier_spans client = {0}, edge = {0}, edge_prior = {0}, cloud_prior = {0};
    for (size_t i = 0; i < p->n_leaf_classes; i++)
        spans_add_rule(&client, &p->leaf_classes[i].rule);
    uint64_t last;
    const uint64_t repairs = run->algorithm->links ? run->engine->repairs(run, &last) : 0;
    for (size_t i = 1; i < run->data->n_inner; i++) {
        const hfsad_link_rule rule = guard_rule(p, &p->inner[i].rule, p->cycles ? 0 : repairs);
        spans_add_rule(&edge, &rule);
        spans_add_penalty(&edge_prior, &p->inner[i].prior);
    }
    spans_add_penalty(&cloud_prior, &p->inner[0].prior);

    const bool edges = run->data->n_inner > 1;
    cJSON *prior = json_add_object(j, settings, "prior");
    if (edges)
        add_penalty(j, prior, "edge", &edge_prior, prior_names);
    add_penalty(j, prior, "cloud", &cloud_prior, prior_names);
    if (!run->algorithm->links) {
        add_baseline(j, settings, &run->rule);
        return;
    }
    cJSON *link = json_add_object(j, settings, "link");
    cJSON *schedule = json_add_object(j, settings, "schedule");
    add_penalty(j, link, "client", &client, link_names);
    if (edges)
        add_penalty(j, link, "edge", &edge, link_names);
    add_schedule(j, schedule, "client", &client);
    if (edges)
        add_schedule(j, schedule, "edge", &edge);
}

/* The object at a key such as "run.participation", made if it is missing. */
static cJSON *object_at(json *j, cJSON *object, const char *key)
{
    char part[SETTING_KEY_MAX];
    while (*key && object) {
        const size_t length = strcspn(key, ".");
        snprintf(part, sizeof part, "%.*s", (int)length, key);
        cJSON *child = cJSON_GetObjectItemCaseSensitive(object, part);
        object = child ? child : json_add_object(j, object, part);
        key += length + (key[length] == '.');
    }
    return object;
}

static void add_value(json *j, cJSON *object, const setting *row, const void *value)
{
    switch (row->type) {
    case SETTING_REAL:
        json_add_real(j, object, row->name, *(const double *)value);
        break;
    case SETTING_WHOLE:
        json_add_whole(j, object, row->name, (uint64_t) * (const int64_t *)value);
        break;
    case SETTING_FLAG:
        if (*(const int *)value < 0) /* auto */
            json_add_text(j, object, row->name, NULL);
        else
            json_add_flag(j, object, row->name, *(const int *)value > 0);
        break;
    case SETTING_TEXT:
        json_add_text(j, object, row->name, *(char *const *)value);
        break;
    case SETTING_CHOICE:
        json_add_text(j, object, row->name, *(const int *)value < 0 ? NULL : row->choices[*(const int *)value]);
        break;
    }
}

/* Whether some client's loss has one of these parameters. */
static bool uses_parameter(const hfsad_spec *spec, unsigned parameters)
{
    unsigned used = loss_kinds[spec->loss.kind]->parameters;
    for (size_t i = 0; i < spec->n_overrides; i++)
        if (spec->overrides[i].loss.kind >= 0)
            used |= loss_kinds[spec->overrides[i].loss.kind]->parameters;
    return used & parameters;
}

/* Whether the value in the spec is the one in effect and has a meaning in this run. */
static bool applies(const char *key, const hfsad_spec *spec)
{
    if (!strncmp(key, "link.", 5) || !strncmp(key, "prior.", 6) || !strncmp(key, "schedule.", 9) ||
        !strncmp(key, "baseline.", 9))
        return false; /* add_resolved writes these */
    if (!strcmp(key, "federation.wire"))
        return spec->federation.wire == WIRE_FLOAT || spec->federation.wire == WIRE_FIXED; /* the wires that round */
    if (!strncmp(key, "privacy.", 8))
        return spec_cohort(spec) > 0;
    if (!strncmp(key, "federation.", 11))
        return false; /* how processes reached the result: it has no effect on the result, or the record has it */
    if (!strncmp(key, "columns.", 8) || !strncmp(key, "split.", 6))
        return false; /* add_table writes these */
#define PARAMETER_APPLIES(name)                                                                                        \
    if (!strcmp(key, "loss." #name))                                                                                   \
        return uses_parameter(spec, LOSS_HAS_##name);
    LOSS_PARAMETERS(PARAMETER_APPLIES)
#undef PARAMETER_APPLIES
    if (!strcmp(key, "loss.classes"))
        return spec_scores(spec) && !spec->loss.levels;
    if (!strcmp(key, "loss.levels"))
        return spec->loss.levels != NULL;
    if (!strcmp(key, "output.errors") || !strcmp(key, "output.confidence"))
        return spec->output.errors == 1;
    if (!strcmp(key, "features.positive"))
        return spec->features.positive == 1;
    if (!strncmp(key, "run.cost.", 9))
        return spec->run.edge_rounds < 1;
    return strcmp(key, "run.start") != 0; /* may be auto; the resolved value is added elsewhere */
}

/* As in the spec: the node and the keys that are set. */
static void add_overrides(json *j, cJSON *settings, const hfsad_spec *spec)
{
    cJSON *list = cJSON_CreateArray();
    for (size_t i = 0; i < spec->n_overrides && j->ok; i++) {
        const char *base = (const char *)&spec->overrides[i];
        setting_at at;
        cJSON *entry = cJSON_CreateObject();
        for (size_t n = 0; settings_at(&override_schema, n, &at); n++) {
            if (setting_is_unset(&at, base))
                continue;
            cJSON *object = object_at(j, entry, at.group->key);
            if (at.row->type == SETTING_REAL && isinf(*(const double *)(const void *)(base + at.offset)))
                json_add_text(j, object, at.row->name, "none"); /* a lifted box */
            else
                add_value(j, object, at.row, base + at.offset);
        }
        json_append(j, list, entry);
    }
    json_add_item(j, settings, "overrides", list);
}

/* How the table was read, as far as the spec states it: rows to predict are read alike. */
static void add_table(json *j, cJSON *settings, const dataset *d, const hfsad_spec *spec)
{
    setting_at at;
    for (size_t i = 0; settings_at(&spec_schema, i, &at); i++) {
        const bool table = !strcmp(at.group->key, "columns") || !strcmp(at.group->key, "split");
        if (table && !strcmp(at.row->name, "categorical") && d->categorical)
            json_add_text(j, object_at(j, settings, at.group->key), at.row->name, d->categorical);
        else if (table && !strcmp(at.row->name, "labels") && d->labels)
            json_add_text(j, object_at(j, settings, at.group->key), at.row->name, d->labels);
        else if (table && spec->lines[at.index] != 0)
            add_value(j, object_at(j, settings, at.group->key), at.row, (const char *)spec + at.offset);
    }
    if (!d->means)
        return;
    cJSON *list = cJSON_CreateArray();
    for (size_t m = 0; m < d->n_means && j->ok; m++)
        json_append(j, list, json_real(d->means[m]));
    json_add_item(j, object_at(j, settings, "columns"), "means", list);
}

static void add_settings(json *j, cJSON *root, const hfsad_run *run, const hfsad_spec *spec)
{
    cJSON *settings = json_add_object(j, root, "settings");
    setting_at at;
    for (size_t i = 0; settings_at(&spec_schema, i, &at); i++)
        if (!strcmp(at.key, "run.polish")) /* auto: the resolved value is written */
            json_add_flag(j, object_at(j, settings, "run"), "polish",
                          polish_is_due(spec, run->plan, run->data->n_inner, run->data->M));
        else if (!strcmp(at.key, "run.edge_rounds"))
            json_add_whole(j, object_at(j, settings, "run"), "edge_rounds", run->plan->edge_rounds);
        else if (!strcmp(at.key, "output.clients")) /* secure aggregation: clients keep their models */
            json_add_flag(j, object_at(j, settings, "output"), "clients", spec_shows_clients(spec));
        else if (applies(at.key, spec))
            add_value(j, object_at(j, settings, at.group->key), at.row, (const char *)spec + at.offset);
    json_add_text(j, object_at(j, settings, "run"), "start", run->start_kind);
    add_resolved(j, settings, run);
    add_table(j, settings, run->data, spec);
    add_overrides(j, settings, spec);
}

/* The names allow a reader to notice data whose columns are in another order. */
static void add_feature_names(json *j, cJSON *shape, const dataset *d)
{
    if (!d->feature_names)
        return;
    cJSON *list = cJSON_CreateArray();
    const char *name = d->feature_names;
    for (size_t m = 0; m < features_count(d) && j->ok; m++, name += strlen(name) + 1)
        json_append(j, list, cJSON_CreateString(name));
    json_add_item(j, shape, "feature_names", list);
}

/* The standard deviations by which columns were divided; 0: the column is constant. */
static void add_feature_scales(json *j, cJSON *shape, const dataset *d)
{
    if (!d->scale)
        return;
    cJSON *list = cJSON_CreateArray();
    for (size_t m = 0; m < features_count(d) && j->ok; m++)
        json_append(j, list, cJSON_CreateNumber(column_is_constant(d, m) ? 0 : d->scale[m]));
    json_add_item(j, shape, "feature_scales", list);
}

static void add_constant_columns(json *j, cJSON *shape, const dataset *d)
{
    cJSON *list = NULL;
    for (size_t m = 0; m < features_count(d) && j->ok; m++) {
        if (!column_is_constant(d, m))
            continue;
        list = list ? list : cJSON_CreateArray();
        json_append(j, list, json_real((double)m + 1));
    }
    if (list)
        json_add_item(j, shape, "constant_features", list);
}

/* Standard errors of the cloud's model, in the order of model.csv. */
static void add_errors(json *j, cJSON *root, const hfsad_run *run)
{
    cJSON *list = run->errors ? cJSON_CreateArray() : NULL;
    for (size_t m = 0; m < run->data->M && list; m++) {
        cJSON *item = json_real(run->errors[m]);
        if (!item || !cJSON_AddItemToArray(list, item))
            j->ok = false;
    }
    if (run->errors)
        json_add_item(j, root, "standard_errors", list);
}

/* With noise, the cloud of a federation does not know the number of rows. */
static void add_shape(json *j, cJSON *root, const dataset *d, bool noise)
{
    cJSON *shape = json_add_object(j, root, "data");
    const clients_per_edge clients = count_clients(d);
    json_add_whole(j, shape, "inner_nodes", d->n_inner); /* includes the cloud */
    json_add_whole(j, shape, "edges", d->n_inner - 1);
    json_add_whole(j, shape, "clients", d->n_leaves);
    if (!noise)
        json_add_whole(j, shape, "rows", dataset_count_rows(d));
    json_add_whole(j, shape, "features", features_count(d));
    add_feature_names(j, shape, d);
    add_feature_scales(j, shape, d);
    add_constant_columns(j, shape, d);
    json_add_whole(j, shape, "depth", d->depth);
    cJSON *per_edge = json_add_object(j, shape, "clients_per_edge");
    json_add_whole(j, per_edge, "least", clients.least);
    json_add_whole(j, per_edge, "most", clients.most);
}

static void add_figures(json *j, cJSON *root, const hfsad_run *run, const hfsad_figures *f)
{
    cJSON *figures = json_add_object(j, root, "figures");
    json_add_real(j, figures, "objective", f->objective);
    json_add_real(j, figures, "consensus_objective", f->consensus_objective);
    json_add_real(j, figures, "primal_residual", f->primal_residual);
    json_add_real(j, figures, "dual_residual", f->dual_residual);
    json_add_real(j, figures, "consensus_gap", f->consensus_gap);
    json_add_real(j, figures, "smoothing_gap", f->smoothing_gap);
    if (run->has_star)
        json_add_real(j, figures, "gap_bound", f->gap_bound);
    if (run->truth)
        json_add_real(j, figures, "relative_error", f->relative_error);
    json_add_whole(j, figures, "nonzero_coefficients", count_nonzero(run));
    json_add_whole(j, figures, "bytes_up", f->bytes_up);
    json_add_whole(j, figures, "bytes_down", f->bytes_down);
    cJSON *tiers = cJSON_CreateArray();
    for (size_t t = 0; t < f->tiers; t++) {
        cJSON *tier = cJSON_CreateObject();
        json_add_real(j, tier, "primal_residual", f->primal_tier[t]);
        json_add_real(j, tier, "dual_residual", f->dual_tier[t]);
        json_append(j, tiers, tier);
    }
    json_add_item(j, figures, "tiers", tiers); /* first: the links directly below the cloud */
}

/* The models that `hfsad assign` compares with, in the user's units. */
static void add_group_model(json *j, cJSON *group, const hfsad_run *run, uint32_t k)
{
    const personal_result *found = &run->personal.found;
    const size_t M = run->data->M;
    double *w = alloc_zero(M, sizeof *w);
    j->ok = j->ok && w;
    if (!w)
        return;
    json_add_real(j, group, "share", found->share[k]);
    model_to_user(run->data, found->w + k * M, w);
    cJSON *model = cJSON_CreateArray();
    for (size_t m = 0; m < M; m++)
        json_append(j, model, json_real(w[m]));
    json_add_item(j, group, "model", model);
    free(w);
}

static void add_personal(json *j, cJSON *root, const hfsad_run *run)
{
    const run_personal *p = &run->personal;
    const uint64_t links = run->data->n_leaves + run->data->n_inner - 1;
    cJSON *personal = json_add_object(j, root, "personal");
    json_add_whole(j, personal, "groups", p->found.K);
    json_add_text(j, personal, "reason", p->found.K || p->reason[0] ? p->reason : "not tried");
    if (!p->found.K)
        return;
    json_add_real(j, personal, "scale", p->found.T);
    json_add_real(j, personal, "bic_fall", p->found.gain);
    json_add_whole(j, personal, "exchanges", p->found.exchanges);
    json_add_whole(j, personal, "bytes_up", links * p->found.up * sizeof(double));
    json_add_whole(j, personal, "bytes_down", links * p->found.down * sizeof(double));
    json_add_real(j, personal, "seconds", p->seconds);
}

/* The groups, the cloud's first; the other groups with their clients' names. */
static void add_groups(json *j, cJSON *root, const hfsad_run *run)
{
    node_groups g;
    if (!run->personal.found.K && run->engine->knows && !run->engine->knows(run, hfsad_run_nodes(run) - 1))
        return;
    if (groups_find(&g, run, NULL))
        j->ok = false;
    if (g.count == 0)
        return;
    cJSON *groups = cJSON_CreateArray();
    char name[HFSAD_TIERS_MAX * 256];
    for (uint32_t i = 0; i < g.count; i++) {
        cJSON *group = cJSON_CreateObject(), *names = i ? cJSON_CreateArray() : NULL;
        json_add_whole(j, group, "clients", g.clients[i]);
        for (size_t node = run->data->n_inner; names && node < hfsad_run_nodes(run); node++)
            if (g.group[node] == i) {
                hfsad_run_node_name(run, node, name, sizeof name);
                json_append(j, names, cJSON_CreateString(name));
            }
        if (names)
            json_add_item(j, group, "names", names);
        if (run->personal.found.K)
            add_group_model(j, group, run, i);
        json_append(j, groups, group);
    }
    json_add_item(j, root, "groups", groups);
    groups_free(&g);
}

static void add_polish(json *j, cJSON *root, const hfsad_run *run)
{
    const hfsad_polish *p = &run->polish;
    const bool tried = p->accepted || p->reason[0];
    cJSON *polish = json_add_object(j, root, "polish");
    json_add_flag(j, polish, "accepted", p->accepted);
    json_add_text(j, polish, "reason", tried ? p->reason : "not tried");
    if (!p->exchanges)
        return;
    json_add_real(j, polish, "objective_before", p->objective_before);
    json_add_real(j, polish, "objective_after", p->objective_after);
    json_add_real(j, polish, "gap", p->gap);
    json_add_real(j, polish, "residual", p->residual);
    if (run->truth)
        json_add_real(j, polish, "relative_error", p->relative_error);
    if (run->plan->star && (!run->data->classes || run->plan->scores.K))
        json_add_text(j, polish, "metric", star_metric_name(run->plan, run->data, run->kept != NULL));
    json_add_whole(j, polish, "exchanges", p->exchanges);
    json_add_whole(j, polish, "bytes_up", p->bytes_up);
    json_add_whole(j, polish, "bytes_down", p->bytes_down);
    json_add_real(j, polish, "seconds", p->seconds);
}

/* converged: true, false, or null if it is unknown. */
static void add_verdict(json *j, cJSON *root, const hfsad_run *run, const hfsad_spec *spec, stop_reason stopped)
{
    hfsad_verdict v;
    run_verdict(run, spec, stopped == STOP_RUNNING || stopped == STOP_INTERRUPTED, &v);
    if (v.kind == HFSAD_VERDICT_UNKNOWN)
        json_add_item(j, root, "converged", cJSON_CreateNull());
    else
        json_add_flag(j, root, "converged", v.kind == HFSAD_VERDICT_CONVERGED);
    json_add_text(j, root, "verdict", v.text);
}

static void add_theorem(json *j, cJSON *root, const hfsad_run *run, const theorem_report *t)
{
    cJSON *theorem = json_add_object(j, root, "theorem_1");
    json_add_flag(j, theorem, "holds", t->holds);
    json_add_text(j, theorem, "reason", t->reason);
    json_add_flag(j, theorem, "links_are_tv", t->links_are_tv);
    json_add_real(j, theorem, "nu_f", t->nu_f);
    json_add_real(j, theorem, "nu_r", t->nu_r);
    json_add_real(j, theorem, "client_alpha_c", t->client_alpha_c);
    json_add_real(j, theorem, "client_alpha_c_needed", t->client_needed);
    json_add_real(j, theorem, "client_weight", t->client_weight);
    json_add_real(j, theorem, "client_weight_needed", t->client_weight_needed);
    if (run->data->n_inner == 1)
        return;
    json_add_real(j, theorem, "edge_beta_d", t->edge_beta_d);
    json_add_real(j, theorem, "edge_beta_d_needed", t->edge_needed);
    json_add_real(j, theorem, "edge_weight", t->edge_weight);
    json_add_real(j, theorem, "edge_weight_needed", t->edge_weight_needed);
}

/* What the presets found in the data, and whether the safeguard intervened. */
static void add_choices(json *j, cJSON *root, const hfsad_run *run)
{
    cJSON *scales = json_add_object(j, root, "scales");
    json_add_real(j, scales, "pull", run->scales.omega);
    json_add_real(j, scales, "bend", run->scales.bend);
    json_add_real(j, scales, "noise", run->scales.noise);
    json_add_real(j, scales, "length", run->scales.length);
    cJSON *before = json_add_object(j, root, "before_training");
    json_add_whole(j, before, "questions", run->before.questions);
    json_add_whole(j, before, "bytes_up", run->before.bytes_up);
    json_add_whole(j, before, "bytes_down", run->before.bytes_down);
    if (!run->algorithm->links)
        return;
    uint64_t last;
    cJSON *safeguard = json_add_object(j, root, "safeguard");
    json_add_whole(j, safeguard, "repairs", run->engine->repairs(run, &last));
    if (last)
        json_add_whole(j, safeguard, "last_iteration", last);
}

/* Nodes that were readmitted or have left; no list if there are none. */
static void add_changes(json *j, cJSON *root, const hfsad_run *run, const char *name, bool retired)
{
    cJSON *list = NULL;
    for (size_t i = 0; i < run->n_readmitted; i++) {
        if ((run->readmitted[i].where == ANEW_RETIRED) != retired)
            continue;
        if (!list)
            list = cJSON_CreateArray();
        cJSON *one = cJSON_CreateObject();
        json_add_text(j, one, "node", run->readmitted[i].path);
        json_add_whole(j, one, "iteration", run->readmitted[i].iteration);
        if (!one || !cJSON_AddItemToArray(list, one))
            j->ok = false;
    }
    if (list)
        json_add_item(j, root, name, list);
}

/* Nodes that did not answer at the end; no list if there are none. */
static void add_absent(json *j, cJSON *root, const hfsad_run *run)
{
    char name[HFSAD_TIERS_MAX * 256];
    cJSON *list = NULL;
    for (size_t node = 1; node < run_may_be_absent(run); node++) {
        const char *why = run_why_absent(run, node);
        if (!why)
            continue;
        if (!list)
            list = cJSON_CreateArray();
        cJSON *one = cJSON_CreateObject();
        nodes_name(run->data, node, name, sizeof name);
        json_add_text(j, one, "node", name);
        json_add_text(j, one, "why", why);
        if (!one || !cJSON_AddItemToArray(list, one))
            j->ok = false;
    }
    if (list)
        json_add_item(j, root, "absent", list);
}

const char *summary_algorithm(const hfsad_run *run, const hfsad_spec *spec)
{
    return algorithm_names[run->plan->star                         ? ALGORITHM_STAR
                           : spec->top.algorithm == ALGORITHM_AUTO ? ALGORITHM_HFSAD
                                                                   : spec->top.algorithm];
}

/* The privacy budget, what was spent of it, and the resulting noise. */
static void add_noise(json *j, cJSON *root, const hfsad_run *run, const hfsad_spec *spec, uint64_t iterations)
{
    const noise_budget *b = &run->plan->noise;
    if (!plan_has_noise(run->plan))
        return;
    const double spent = noise_spent(b, iterations);
    const bool secret = spec->privacy.noise == NOISE_SECRET && run->engine->next_row;
    cJSON *noise = json_add_object(j, root, "privacy");
    json_add_flag(j, noise, "guaranteed", secret);
    json_add_text(j, noise, "noise", secret ? "by the secrets of the clients" : "a simulation, by run.seed");
    json_add_text(j, noise, "unit", b->row > 0 ? "record" : "client");
    if (b->row > 0)
        json_add_real(j, noise, "record", spec->privacy.record);
    json_add_text(j, noise, "added", run->plan->secure ? "by each cohort together" : "by each client");
    json_add_real(j, noise, "clip", b->clip);
    json_add_real(j, noise, "delta", b->delta);
    json_add_real(j, noise, "rho", b->rho);
    json_add_real(j, noise, "epsilon", zcdp_epsilon(b->rho, b->delta));
    json_add_real(j, noise, "rho_spent", spent);
    json_add_real(j, noise, "epsilon_spent", zcdp_epsilon(spent, b->delta));
    json_add_whole(j, noise, "rounds", b->rounds);
    json_add_real(j, noise, "deviation", noise_deviation(b));
}

char *summary_text(const hfsad_run *run, const hfsad_spec *spec, const theorem_report *theorem,
                   const hfsad_figures *figures, stop_reason stopped)
{
    json state = {.ok = true}, *j = &state;
    cJSON *root = cJSON_CreateObject();
    json_add_text(j, root, "version", hfsad_version());
    json_add_text(j, root, "spec", spec->path);
    json_add_text(j, root, "algorithm", summary_algorithm(run, spec));
    json_add_text(j, root, "stopped", stop_reason_name(stopped));
    json_add_whole(j, root, "iterations", figures->iteration);
    json_add_real(j, root, "seconds", figures->seconds);
    json_add_real(j, root, "iterations_per_second",
                  figures->seconds > 0 ? (double)figures->iteration / figures->seconds : NAN);
    json_add_whole(j, root, "threads", pool_threads(run->threads));
    json_add_text(j, root, "start", run->start_kind);
    if (spec->run.tries > 1 && run->algorithm->links)
        json_add_whole(j, root, "start_kept", run->start_index + 1);
    add_changes(j, root, run, "readmitted", false);
    add_changes(j, root, run, "retired", true);
    add_absent(j, root, run);
    add_shape(j, root, run->data, plan_has_noise(run->plan));
    add_errors(j, root, run);
    add_figures(j, root, run, figures);
    if (run->polished && isfinite(run->best))
        json_add_real(j, root, "best_objective", run->best);
    add_verdict(j, root, run, spec, stopped);
    add_noise(j, root, run, spec, figures->iteration);
    if (polish_is_due(spec, run->plan, run->data->n_inner, run->data->M))
        add_polish(j, root, run);
    if (personal_is_due(spec))
        add_personal(j, root, run);
    add_groups(j, root, run);
    add_settings(j, root, run, spec);
    add_choices(j, root, run);
    if (run->algorithm->links)
        add_theorem(j, root, run, theorem);

    char *printed = j->ok ? cJSON_Print(root) : NULL;
    cJSON_Delete(root);
    if (!printed)
        return NULL;
    const size_t length = strlen(printed);
    char *text = malloc(length + 2);
    if (text) {
        memcpy(text, printed, length);
        memcpy(text + length, "\n", 2);
    }
    cJSON_free(printed);
    return text;
}
