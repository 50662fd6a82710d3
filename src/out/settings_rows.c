#define _POSIX_C_SOURCE 200809L /* open_memstream */
#include "out/settings_rows.h"

#include "data/features.h"
#include "math/loss_kind.h"
#include "math/penalty_kind.h"
#include "plan/plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool begins(const char *key, const char *with)
{
    return !strncmp(key, with, strlen(with));
}

static bool is_one_of(const char *key, const char *const *list)
{
    for (; *list; list++)
        if (!strcmp(key, *list))
            return true;
    return false;
}

/* ---- settings without effect ---- */

/* Why a penalty parameter has no effect, if the run has only these penalties. */
static const char *penalty_why_idle(const char *name, bool link, const hfsad_penalty *const *list, size_t count)
{
    bool any = false, gamma = false, ratio = false;
    for (size_t i = 0; i < count; i++) {
        any = any || !penalty_is_flat(list[i]);
        gamma = gamma || penalty_gamma_above[list[i]->kind] > 0;
        ratio = ratio || penalty_kind_of(list[i])->has_ratio;
    }
    if (!strcmp(name, "penalty"))
        return NULL;
    if (any && !strcmp(name, "gamma") && !gamma)
        return link ? "only mcp, scad, group-mcp and group-scad have it" : "only mcp and scad have it";
    return !any ? "the penalty is none" : !strcmp(name, "ratio") && !ratio ? "only elastic-net has it" : NULL;
}

static const char *tier_why_idle(const hfsad_run *run, const setting_at *at)
{
    const plan *p = run->plan;
    const bool link = begins(at->key, "link."), client = strstr(at->key, ".client.") != NULL;
    const bool cloud = strstr(at->key, ".cloud.") != NULL, prior = begins(at->key, "prior.");
    const size_t inner = run->data->n_inner;
    if (!client && !cloud && inner == 1)
        return "the data have no edges";
    if (!prior && (p->star || !run->algorithm->links))
        return p->star ? "star ties all nodes to one model" : "the baselines have no links";
    if (!prior && !link)
        return NULL;
    const size_t first = cloud ? 0 : 1, count = client ? p->n_leaf_classes : cloud ? 1 : inner - 1;
    const hfsad_penalty **list = malloc(count * sizeof *list);
    for (size_t i = 0; list && i < count; i++)
        list[i] = client ? &p->leaf_classes[i].rule.penalty
                  : link ? &p->inner[first + i].rule.penalty
                         : &p->inner[first + i].prior;
    const char *why = list ? penalty_why_idle(at->row->name, link, list, count) : NULL;
    free(list);
    return why;
}

static const char *loss_why_idle(const hfsad_run *run, const setting_at *at)
{
    const plan *p = run->plan;
    unsigned used = 0;
    for (size_t c = 0; c < p->n_leaf_classes; c++)
        used |= loss_kind_of(&p->leaf_classes[c].loss)->parameters;
#define PARAMETER_IDLE(name)                                                                                           \
    if (!strcmp(at->key, "loss." #name))                                                                               \
        return used & LOSS_HAS_##name ? NULL : "no client's loss has it";
    LOSS_PARAMETERS(PARAMETER_IDLE)
#undef PARAMETER_IDLE
    if (!strcmp(at->key, "loss.classes"))
        return run->data->classes && (!p->scores.K || p->scores.labels)
                   ? NULL
                   : "only multinomial and, above 2, the hinge losses have it";
    static const char *const steps[] = {"loss.solver", "loss.tolerance", "loss.sweeps", NULL};
    return is_one_of(at->key, steps) && p->star ? "star has no client steps" : NULL;
}

static const char *run_why_idle(const hfsad_run *run, const hfsad_spec *spec, const char *key)
{
    static const char *const by_hfsad[] = {"run.edge_rounds",   "run.local_steps",   "run.start",  "run.tries",
                                           "run.stop.absolute", "run.stop.relative", "run.polish", NULL};
    const bool absent = spec->participation.client < 1 || spec->participation.edge < 1 || spec->n_overrides;
    if (run->plan->star && is_one_of(key, by_hfsad))
        return "only hfsad has it, and this is star";
    if (!strcmp(key, "run.stop.gap") && !run->plan->star)
        return "only star has it";
    if (begins(key, "run.cost.") && (run->plan->star || spec->run.edge_rounds >= 1))
        return "only edge_rounds: auto of hfsad uses it";
    if (!strcmp(key, "run.cycles") && spec->loss.kind != HFSAD_LOSS_PHASE_RETRIEVAL)
        return "only phase-retrieval has cycles";
    if (!strcmp(key, "run.participation.at_least_every") && !absent && spec->federation.mode == MODE_SYNC)
        return "every node takes part in every round";
    return NULL;
}

/* Why the setting has no effect in this run, or NULL. */
static const char *setting_why_idle(const hfsad_run *run, const hfsad_spec *spec, const setting_at *at)
{
    static const char *const async[] = {"federation.quorum",        "federation.deadline",      "federation.stale",
                                        "federation.stale_seconds", "federation.local_seconds", NULL};
    const char *key = at->key;
    const bool averages = algorithm_is_baseline(spec->top.algorithm);
    if (begins(key, "loss."))
        return loss_why_idle(run, at);
    if (begins(key, "prior.") || begins(key, "link.") || begins(key, "schedule."))
        return tier_why_idle(run, at);
    if (begins(key, "baseline."))
        return !averages ? "only fedavg and fedprox have it"
               : !strcmp(key, "baseline.rho") && spec->top.algorithm == ALGORITHM_FEDAVG ? "only fedprox has it"
                                                                                         : NULL;
    if (begins(key, "groups."))
        return spec->top.personal == PERSONAL_NONE ? "personal is none" : NULL;
    if ((!strcmp(key, "split.seed") || !strcmp(key, "split.edges")) && !spec->split.clients && !spec->split.by)
        return "the rows are not dealt: split.clients and split.by are not set";
    if (is_one_of(key, async))
        return spec->federation.mode == MODE_SYNC ? "federation.mode is sync" : NULL;
    return run_why_idle(run, spec, key);
}

/* Whether the value differs from the default. */
static bool setting_is_changed(const hfsad_spec *spec, const setting_at *at)
{
    const setting_value now = setting_load(at, spec), usual = setting_default(at);
    switch (at->row->type) {
    case SETTING_REAL:
        return now.real != usual.real && !(isnan(now.real) && isnan(usual.real));
    case SETTING_WHOLE:
        return now.whole != usual.whole;
    case SETTING_FLAG:
    case SETTING_CHOICE:
        return now.index != usual.index;
    case SETTING_TEXT:
        return now.text && (!usual.text || strcmp(now.text, usual.text) != 0);
    }
    return false;
}

/* ---- rows ---- */

static char *end_text(FILE *o, char **text)
{
    if (fclose(o) == 0)
        return *text;
    free(*text);
    return NULL;
}

static void put_penalty(FILE *o, const char *where, const hfsad_penalty *p, const char *name)
{
    fprintf(o, "%s%s %s", ftell(o) > 0 ? "; " : "", where, name);
    if (penalty_is_flat(p))
        return;
    fprintf(o, ", lambda %.6g, weight %.6g", p->lambda, p->weight);
    if (penalty_gamma_above[p->kind] > 0)
        fprintf(o, ", gamma %.6g", p->gamma);
    if (penalty_kind_of(p)->has_ratio)
        fprintf(o, ", ratio %.6g", p->ratio);
}

/* Whether all inner nodes except the cloud have the same prior. */
static bool is_shared(const hfsad_run *run, bool link)
{
    const inner_class *inner = run->plan->inner;
    for (size_t i = 2; i < run->data->n_inner; i++) {
        const hfsad_penalty *a = link ? &inner[1].rule.penalty : &inner[1].prior,
                            *b = link ? &inner[i].rule.penalty : &inner[i].prior;
        if (a->kind != b->kind || (!penalty_is_flat(a) && (a->lambda != b->lambda || a->weight != b->weight ||
                                                           a->gamma != b->gamma || a->ratio != b->ratio)))
            return false;
    }
    return true;
}

char *priors_text(const hfsad_run *run)
{
    static const char *const names[] = {PRIOR_NAMES};
    char *text = NULL;
    size_t size;
    FILE *o = open_memstream(&text, &size);
    if (!o)
        return NULL;
    const inner_class *inner = run->plan->inner;
    bool any = false;
    for (size_t i = 1; i < run->data->n_inner; i++)
        any = any || !penalty_is_flat(&inner[i].prior);
    put_penalty(o, "cloud", &inner[0].prior, names[inner[0].prior.kind]);
    if (any && is_shared(run, false))
        put_penalty(o, "edges", &inner[1].prior, names[inner[1].prior.kind]);
    else if (any)
        fputs("; edges: see settings.prior in summary.json", o);
    if (run->data->scale && (any || !penalty_is_flat(&inner[0].prior)))
        fputs("; on standardized features", o);
    return end_text(o, &text);
}

char *links_text(const hfsad_run *run)
{
    static const char *const names[] = {LINK_NAMES};
    char *text = NULL;
    size_t size;
    FILE *o = open_memstream(&text, &size);
    if (!o)
        return NULL;
    const plan *p = run->plan;
    if (p->star)
        fputs("tied: one model for all nodes", o);
    else if (!run->algorithm->links)
        fputs("none: the clients' models are averaged", o);
    else if (p->n_leaf_classes > 1 || !is_shared(run, true))
        fputs("differ between nodes: see settings.link in summary.json", o);
    else {
        const hfsad_penalty *client = &p->leaf_classes[0].rule.penalty;
        put_penalty(o, "clients", client, names[link_setting((int)client->kind)]);
        if (run->data->n_inner > 1)
            put_penalty(o, "edges", &p->inner[1].rule.penalty, names[link_setting((int)p->inner[1].rule.penalty.kind)]);
    }
    return end_text(o, &text);
}

char *features_text(const hfsad_run *run, const hfsad_spec *spec)
{
    static const char *const whose[] = {
        [INTERCEPT_NONE] = "no intercept",
        [INTERCEPT_CLIENT] = "an intercept per client",
        [INTERCEPT_EDGE] = "an intercept per edge",
        [INTERCEPT_GLOBAL] = "one intercept",
    };
    char *text = NULL;
    size_t size;
    FILE *o = open_memstream(&text, &size);
    if (!o)
        return NULL;
    fprintf(o, "%s, %s", run->data->scale ? "standardized" : "as they are", whose[spec->features.intercept]);
    return end_text(o, &text);
}

char *constants_text(const hfsad_run *run)
{
    char *text = NULL;
    size_t size, count = 0;
    FILE *o = open_memstream(&text, &size);
    if (!o)
        return NULL;
    const char *name = run->data->feature_names;
    for (size_t m = 0; m < features_count(run->data); m++) {
        if (column_is_constant(run->data, m) && name)
            fprintf(o, "%s%s", count++ ? ", " : "", name);
        else if (column_is_constant(run->data, m))
            fprintf(o, "%sfeature %zu", count++ ? ", " : "", m + 1);
        name = name ? name + strlen(name) + 1 : NULL;
    }
    if (count)
        fputs(count == 1 ? ": coefficient 0" : ": coefficients 0", o);
    return end_text(o, &text);
}

char *categories_text(const hfsad_run *run, const hfsad_spec *spec)
{
    enum { SHOWN = 300 };
    char *text = NULL;
    size_t size;
    FILE *o = open_memstream(&text, &size);
    if (!o)
        return NULL;
    /* Categories of the spec come first in the list. */
    size_t stated = spec->columns.categorical ? 1 : 0;
    for (const char *at = spec->columns.categorical; at && *at; at++)
        stated += *at == ',';
    const char *at = run->data->categorical;
    for (size_t i = 0; at; i++) {
        const size_t name = strcspn(at, "="), length = strcspn(at, ",");
        size_t levels = 1;
        for (size_t c = 0; c < length; c++)
            levels += at[c] == '|';
        if (i >= stated && ftell(o) < SHOWN)
            fprintf(o, "%s%.*s (text, %zu level%s)", ftell(o) > 0 ? ", " : "", (int)name, at, levels,
                    levels == 1 ? "" : "s");
        at = at[length] ? at + length + 1 : NULL;
    }
    return end_text(o, &text);
}

/* Settings that other rows of the table describe in more detail. */
static bool is_shown_elsewhere(const char *key)
{
    static const char *const keys[] = {"data",         "truth",    "preset",           "algorithm",
                                       "loss.kind",    "loss.box", "federation.nodes", "loss.levels",
                                       "loss.classes", NULL};
#define PARAMETER_SHOWN(name)                                                                                          \
    if (!strcmp(key, "loss." #name))                                                                                   \
        return true;
    LOSS_PARAMETERS(PARAMETER_SHOWN)
#undef PARAMETER_SHOWN
    return is_one_of(key, keys) || begins(key, "prior.") || begins(key, "link.") || begins(key, "features.");
}

/* idle: settings without effect, including those given with their default value. */
static char *list_settings(const hfsad_run *run, const hfsad_spec *spec, bool idle)
{
    char *text = NULL;
    size_t size;
    FILE *o = open_memstream(&text, &size);
    if (!o)
        return NULL;
    setting_at at;
    for (size_t i = 0; settings_at(&spec_schema, i, &at); i++) {
        char value[200];
        const bool changed = setting_is_changed(spec, &at);
        const bool given =
            spec->lines && spec->lines[at.index] && begins(at.key, "loss."); /* it may list unused parameters */
        if (!changed && !(idle && given && !setting_is_unset(&at, spec)))
            continue;
        const char *why = setting_why_idle(run, spec, &at);
        if (idle && why)
            fprintf(o, "%s%s: %s", ftell(o) > 0 ? "; " : "", at.key, why);
        else if (!idle && !why && !is_shown_elsewhere(at.key) &&
                 !hfsad_spec_get(spec, at.key, value, sizeof value, NULL, NULL))
            fprintf(o, "%s%s %s", ftell(o) > 0 ? ", " : "", at.key, value);
    }
    return end_text(o, &text);
}

char *changed_text(const hfsad_run *run, const hfsad_spec *spec)
{
    return list_settings(run, spec, false);
}

char *idle_text(const hfsad_run *run, const hfsad_spec *spec)
{
    return list_settings(run, spec, true);
}
