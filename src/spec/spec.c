/* A spec as a whole: created, checked across its fields, freed; and the files that it names. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/read_file.h"
#include "spec/source.h"
#include "spec/table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { LABEL_MAX = 80 };

hfsad_status spec_create(hfsad_spec **spec, const char *path, hfsad_error *err)
{
    const char *slash = strrchr(path, '/');
    hfsad_spec *made = alloc_zero(1, sizeof *made);
    *spec = NULL;
    if (!made)
        return error_memory(err, sizeof *made, "the spec");
    made->path = strdup(path);
    made->folder = slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
    made->lines = alloc_zero(settings_count(&spec_schema), sizeof *made->lines);
    if (!made->path || !made->folder || !made->lines || !settings_fill(&spec_schema, made)) {
        hfsad_spec_free(made);
        return error_memory(err, sizeof *made, "the spec");
    }
    *spec = made;
    return HFSAD_OK;
}

hfsad_status hfsad_spec_create(hfsad_spec **spec, hfsad_error *err)
{
    return spec_create(spec, "spec.yaml", err);
}

void hfsad_spec_free(hfsad_spec *spec)
{
    if (!spec)
        return;
    settings_clear(&spec_schema, spec);
    for (size_t i = 0; i < spec->n_overrides; i++)
        settings_clear(&override_schema, &spec->overrides[i]);
    free(spec->overrides);
    free(spec->lines);
    free(spec->base);
    free(spec->folder);
    free(spec->path);
    free(spec);
}

bool setting_is_unset(const setting_at *at, const void *base)
{
    const char *member = (const char *)base + at->offset;
    double real;
    int64_t whole;
    int index;
    switch (at->row->type) {
    case SETTING_REAL:
        memcpy(&real, member, sizeof real);
        return isnan(real);
    case SETTING_WHOLE:
        memcpy(&whole, member, sizeof whole);
        return whole == -1;
    case SETTING_TEXT:
        return *(char *const *)(const void *)member == NULL;
    case SETTING_FLAG:
    case SETTING_CHOICE:
        break;
    }
    memcpy(&index, member, sizeof index);
    return index == -1;
}

/* without_data: the key `data` may be missing. */
static hfsad_status check_required(const hfsad_spec *spec, bool without_data, hfsad_error *err)
{
    setting_at at;
    char example[SETTING_TEXT_MAX], top[SETTING_KEY_MAX], choices[SETTING_TEXT_MAX] = "";
    for (size_t i = 0; settings_at(&spec_schema, i, &at); i++) {
        if (strcmp(at.row->fallback, "required") != 0 || !setting_is_unset(&at, spec) ||
            (without_data && !strcmp(at.key, "data")))
            continue;
        snprintf(top, sizeof top, "%.*s", (int)strcspn(at.key, "."), at.key);
        setting_example(&spec_schema, top, NULL, false, example, sizeof example);
        if (at.row->choices)
            setting_range_text(at.row, choices, sizeof choices);
        source s = {.path = spec->path, .err = err};
        return source_fail(&s, 0, "the key '%s' is missing; add '%s'%s%s%s", at.key, example, *choices ? " (" : "",
                           choices, *choices ? ")" : "");
    }
    return HFSAD_OK;
}

/* Limits that depend on another key; the range of the row itself is the widest of them. line: as in
 * hfsad_spec.lines. */
static hfsad_status check_gamma(const hfsad_spec *spec, int line, const char *key, int penalty, double gamma,
                                hfsad_error *err)
{
    static const double above[] = {
#define GAMMA_ABOVE(KIND, prefix, link, prior, gamma_above) [HFSAD_PENALTY_##KIND] = gamma_above,
        HFSAD_PENALTY_LIST(GAMMA_ABOVE)
#undef GAMMA_ABOVE
    };
    static const char *const names[] = {PRIOR_NAMES HFSAD_PENALTY_LINKS(LINK_NAME)};
    char full[LABEL_MAX + SETTING_KEY_MAX], value[32];
    if (penalty < 0 || above[penalty] == 0 || isnan(gamma) || gamma > above[penalty])
        return HFSAD_OK;
    snprintf(full, sizeof full, "%s.gamma", key);
    snprintf(value, sizeof value, "%g", gamma);
    source s = {.path = line > 0 ? spec->path : NULL, .key = full, .value = value, .err = err};
    return source_fail(&s, line > 0 ? (size_t)line : 0,
                       "%s = %s is out of range for the penalty %s; expected a number above %g", full, value,
                       names[penalty], above[penalty]);
}

static hfsad_status check_override(const hfsad_spec *spec, const override_settings *o, hfsad_error *err)
{
    char key[LABEL_MAX];
    snprintf(key, sizeof key, "overrides[%.60s].link", o->node);
    const hfsad_status status = check_gamma(spec, o->line, key, link_kind(o->link.penalty), o->link.gamma, err);
    if (status)
        return status;
    snprintf(key, sizeof key, "overrides[%.60s].prior", o->node);
    return check_gamma(spec, o->line, key, o->prior.penalty, o->prior.gamma, err);
}

static const setting_names START_WORDS = {5, {"zero", "normal", "spectral", "robust", "consensus"}};

static bool is_start_word(const char *start)
{
    for (size_t i = 0; i < START_WORDS.count; i++)
        if (!strcmp(start, START_WORDS.name[i]))
            return true;
    return false;
}

char *spec_find_start(const hfsad_spec *spec, const char *start)
{
    return is_start_word(start) ? strdup(start) : spec_find_file(spec, start);
}

/* A start that is not a file but close to a known word is reported as a typing error. Any other missing file is
 * reported when it is read. */
static hfsad_status check_start(const hfsad_spec *spec, hfsad_error *err)
{
    const char *start = spec->run.start;
    bool near;
    if (!start || is_start_word(start))
        return HFSAD_OK;
    const char *word = START_WORDS.name[names_nearest(&START_WORDS, start, &near)];
    if (!near)
        return HFSAD_OK;
    struct stat about;
    char *path = spec_find_file(spec, start);
    if (!path)
        return error_memory(err, strlen(start), "a file name");
    const bool found = stat(path, &about) == 0;
    free(path);
    if (found)
        return HFSAD_OK;
    setting_at at;
    char known[SETTING_TEXT_MAX] = "";
    names_list(&START_WORDS, known, sizeof known);
    const int line = settings_find(&spec_schema, "run.start", &at) ? spec->lines[at.index] : 0;
    source s = {.path = line > 0 ? spec->path : NULL, .key = "run.start", .value = start, .err = err};
    return source_fail(&s, line > 0 ? (size_t)line : 0,
                       "run.start = '%.60s' is not known; did you mean '%s'? (expected %s, or a file)", start, word,
                       known);
}

static hfsad_status check_privacy(const hfsad_spec *spec, hfsad_error *err)
{
    const bool fixed = spec_is_fixed(spec), secure = spec_is_secure(spec);
    const char *what = secure ? "privacy.aggregation: secure" : "federation.wire: fixed", *why = NULL;
    if (fixed && algorithm_is_baseline(spec->top.algorithm))
        why = "cannot be used with fedavg and fedprox; use algorithm hfsad, star or auto";
    else if (fixed && spec->federation.mode == MODE_ASYNC && spec->federation.local_seconds > 0)
        why = "cannot be used with federation.local_seconds: all members of a cohort make the same steps";
    else if (fixed && (spec->features.intercept == INTERCEPT_CLIENT || spec->features.intercept == INTERCEPT_EDGE))
        why = "cannot be used with features.intercept client and edge; use global or none";
    else if (secure && spec->privacy.cohort == 1)
        why = "needs privacy.cohort 2 or more: the sum over one client is that client's";
    return why ? error_set(err, HFSAD_ERROR_INPUT, "%s %s", what, why) : HFSAD_OK;
}

/* Checks settings that only the links of HFSAD can use. */
static hfsad_status check_aggregate(const hfsad_spec *spec, hfsad_error *err)
{
    const char *why = spec->top.aggregate == 0                     ? NULL
                      : algorithm_is_baseline(spec->top.algorithm) ? "algorithm hfsad; fedavg and fedprox take means"
                      : spec->top.algorithm == ALGORITHM_STAR      ? "algorithm hfsad; a star adds up all clients"
                      : spec->run.polish == 1                      ? "run.polish false; a polish adds up all clients"
                      : spec->top.personal == PERSONAL_GROUPS      ? "personal: none; groups are found by sums"
                      : spec_is_fixed(spec)                        ? "a federation.wire other than fixed"
                                                                   : NULL;
    return why ? error_set(err, HFSAD_ERROR_INPUT, "aggregate: trimmed and median need %s", why) : HFSAD_OK;
}

size_t spec_levels(const hfsad_spec *spec, double levels[SPEC_LEVELS])
{
    setting_at at;
    setting_value value;
    char why[SETTING_WHY_MAX], one[64];
    size_t count = 0;
    (void)settings_find(&spec_schema, "loss.tau", &at);
    for (const char *text = spec->loss.levels; text && count < SPEC_LEVELS; count++) {
        const size_t length = strcspn(text, ",");
        snprintf(one, sizeof one, "%.*s", (int)(length < sizeof one ? length : sizeof one - 1), text);
        levels[count] = setting_parse(&at, one, true, &value, why) ? value.real : NAN;
        text = text[length] ? text + length + 1 : NULL;
    }
    return count;
}

size_t spec_scores(const hfsad_spec *spec)
{
    double levels[SPEC_LEVELS];
    const int kind = spec->loss.kind;
    if (spec->loss.levels)
        return spec_levels(spec, levels);
    const bool rest = (kind == HFSAD_LOSS_HINGE || kind == HFSAD_LOSS_SQUARED_HINGE) && spec->loss.classes > 2;
    return kind == HFSAD_LOSS_MULTINOMIAL || rest ? (size_t)spec->loss.classes : 0;
}

static bool is_longer(const char *list, size_t most)
{
    size_t count = 1;
    for (; *list; list++)
        count += *list == ',';
    return count > most;
}

/* Checks several levels or classes. */
static hfsad_status check_scores(const hfsad_spec *spec, hfsad_error *err)
{
    double levels[SPEC_LEVELS];
    const size_t count = spec_levels(spec, levels);
    const int kind = spec->loss.kind;
    const char *key = count ? "loss.tau" : "loss.classes", *why = NULL;
    bool rise = count != 1 && (!count || !is_longer(spec->loss.levels, SPEC_LEVELS));
    for (size_t i = 0; i < count; i++)
        rise = rise && isfinite(levels[i]) && (i == 0 || levels[i] > levels[i - 1]);
    if (count && kind != HFSAD_LOSS_QUANTILE && kind != HFSAD_LOSS_SMOOTHED_QUANTILE && kind != HFSAD_LOSS_EXPECTILE)
        why = "a list of levels is for quantile, smoothed-quantile and expectile";
    else if (!rise)
        why = "a list has 2 to 99 levels between 0 and 1, each above the one before";
    else if (kind == HFSAD_LOSS_LOGISTIC && spec->loss.classes > 2)
        why = "logistic has two classes; loss.kind multinomial is the same for more";
    for (size_t i = 0; i < spec->n_overrides && !why; i++)
        if (spec->overrides[i].loss.levels || (spec_scores(spec) && spec->overrides[i].loss.classes > 0)) {
            key = spec->overrides[i].loss.levels ? "loss.tau" : key;
            why = "all nodes have the same list or classes; remove it from overrides";
        }
    return why ? error_set(err, HFSAD_ERROR_INPUT, "%s: %s", key, why) : HFSAD_OK;
}

hfsad_status hfsad_spec_check(const hfsad_spec *spec, hfsad_error *err)
{
    return spec_check_settings(spec, true, err);
}

hfsad_status spec_check_settings(const hfsad_spec *spec, bool needs_data, hfsad_error *err)
{
    const struct {
        const char *key;
        int penalty;
        double gamma;
    } pairs[] = {
        {"link.client", link_kind(spec->link_client.penalty), spec->link_client.gamma},
        {"link.edge", link_kind(spec->link_edge.penalty), spec->link_edge.gamma},
        {"prior.edge", spec->prior_edge.penalty, spec->prior_edge.gamma},
        {"prior.cloud", spec->prior_cloud.penalty, spec->prior_cloud.gamma},
    };
    hfsad_status status = check_required(spec, !needs_data, err);
    if (!status)
        status = check_start(spec, err);
    if (!status)
        status = check_scores(spec, err);
    if (!status)
        status = check_privacy(spec, err);
    if (!status)
        status = check_aggregate(spec, err);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs && !status; i++) {
        char key[SETTING_KEY_MAX];
        setting_at at;
        snprintf(key, sizeof key, "%s.gamma", pairs[i].key);
        const int line = settings_find(&spec_schema, key, &at) ? spec->lines[at.index] : 0;
        status = check_gamma(spec, line, pairs[i].key, pairs[i].penalty, pairs[i].gamma, err);
    }
    for (size_t i = 0; i < spec->n_overrides && !status; i++)
        status = check_override(spec, &spec->overrides[i], err);
    return status;
}

hfsad_status hfsad_spec_own_loss(hfsad_spec *spec, const hfsad_own_loss *loss, hfsad_error *err)
{
    hfsad_own_loss own = {0};
    memcpy(&own, loss, loss->size < sizeof own ? loss->size : sizeof own);
    if (!own.value)
        return error_set(err, HFSAD_ERROR_INPUT, "loss.kind own needs a function for its value");
    if (!own.prox && !own.gradient)
        return error_set(err, HFSAD_ERROR_INPUT, "loss.kind own needs a function for its prox or its gradient");
    spec->own = own;
    return HFSAD_OK;
}

/* "base/folder/name", without parts that are NULL or ".". NULL: no memory. */
static char *join(const char *base, const char *folder, const char *name)
{
    return path_join(base && (!folder || folder[0] != '/') ? base : "",
                     folder && strcmp(folder, ".") != 0 ? folder : "", name);
}

char *spec_find_file(const hfsad_spec *spec, const char *name)
{
    struct stat about;
    if (name[0] == '/' || is_command(name))
        return strdup(name);
    char *beside = join(spec->base, spec->folder, name);
    if (!strcmp(spec->folder, "."))
        return beside;
    char *here = beside ? join(spec->base, NULL, name) : NULL;
    /* if neither exists, the message names the first */
    const bool take = here && stat(beside, &about) != 0 && stat(here, &about) == 0;
    free(take || !here ? beside : here);
    return take || !here ? here : beside;
}
