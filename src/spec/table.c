/* The table of settings, and how a value is read; see table.h. */
#include "spec/table.h"

#include "base/error.h"

#include <assert.h>
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *const loss_names[] = {LOSS_NAMES NULL};
static const char *const algorithm_names[] = {ALGORITHM_NAMES, NULL};
static const char *const personal_names[] = {PERSONAL_NAMES, NULL};
static const char *const step_rule_names[] = {STEP_RULE_NAMES, NULL};
static const char *const shape_names[] = {SHAPE_NAMES, NULL};
static const char *const preset_names[] = {PRESET_NAMES, NULL};
static const char *const scale_names[] = {SCALE_NAMES, NULL};
static const char *const solver_names[] = {SOLVER_NAMES, NULL};
static const char *const intercept_names[] = {INTERCEPT_NAMES, NULL};
static const char *const mode_names[] = {MODE_NAMES, NULL};
static const char *const stale_names[] = {STALE_NAMES, NULL};
static const char *const wire_names[] = {WIRE_NAMES, NULL};
static const char *const precision_names[] = {PRECISION_NAMES, NULL};
static const char *const aggregation_names[] = {AGGREGATION_NAMES, NULL};
static const char *const noise_names[] = {NOISE_BY_NAMES, NULL};
static const char *const aggregate_names[] = {AGGREGATE_NAMES, NULL};
static const char *const missing_names[] = {MISSING_NAMES, NULL};
static const char *const link_names[] = {LINK_NAMES NULL};
static const char *const prior_names[] = {PRIOR_NAMES NULL};

typedef override_settings OVERRIDE_settings;

#define TYPE_REAL SETTING_REAL, NULL
#define TYPE_WHOLE SETTING_WHOLE, NULL
#define TYPE_FLAG SETTING_FLAG, NULL
#define TYPE_TEXT SETTING_TEXT, NULL
#define TYPE_CHOICE_LOSS SETTING_CHOICE, loss_names
#define TYPE_CHOICE_ALGORITHM SETTING_CHOICE, algorithm_names
#define TYPE_CHOICE_PERSONAL SETTING_CHOICE, personal_names
#define TYPE_CHOICE_STEP_RULE SETTING_CHOICE, step_rule_names
#define TYPE_CHOICE_SHAPE SETTING_CHOICE, shape_names
#define TYPE_CHOICE_PRESET SETTING_CHOICE, preset_names
#define TYPE_CHOICE_SCALE SETTING_CHOICE, scale_names
#define TYPE_CHOICE_SOLVER SETTING_CHOICE, solver_names
#define TYPE_CHOICE_INTERCEPT SETTING_CHOICE, intercept_names
#define TYPE_CHOICE_MODE SETTING_CHOICE, mode_names
#define TYPE_CHOICE_STALE SETTING_CHOICE, stale_names
#define TYPE_CHOICE_WIRE SETTING_CHOICE, wire_names
#define TYPE_CHOICE_PRECISION SETTING_CHOICE, precision_names
#define TYPE_CHOICE_AGGREGATION SETTING_CHOICE, aggregation_names
#define TYPE_CHOICE_NOISE SETTING_CHOICE, noise_names
#define TYPE_CHOICE_AGGREGATE SETTING_CHOICE, aggregate_names
#define TYPE_CHOICE_MISSING SETTING_CHOICE, missing_names
#define TYPE_CHOICE_LINK SETTING_CHOICE, link_names
#define TYPE_CHOICE_PRIOR SETTING_CHOICE, prior_names
#define ROW(GROUP, type, field, fallback, range, sentence)                                                             \
    {#field, TYPE_##type, offsetof(GROUP##_settings, field), fallback, range, sentence},

static const setting TOP_rows[] = {SETTINGS_TOP(ROW)};
static const setting LOSS_rows[] = {SETTINGS_LOSS(ROW)};
static const setting GROUPS_rows[] = {SETTINGS_GROUPS(ROW)};
static const setting COLUMNS_rows[] = {SETTINGS_COLUMNS(ROW)};
static const setting SPLIT_rows[] = {SETTINGS_SPLIT(ROW)};
static const setting FEATURES_rows[] = {SETTINGS_FEATURES(ROW)};
static const setting LINK_rows[] = {SETTINGS_LINK(ROW)};
static const setting PRIOR_rows[] = {SETTINGS_PRIOR(ROW)};
static const setting SCHEDULE_rows[] = {SETTINGS_SCHEDULE(ROW)};
static const setting RUN_rows[] = {SETTINGS_RUN(ROW)};
static const setting PARTICIPATION_rows[] = {SETTINGS_PARTICIPATION(ROW)};
static const setting COST_rows[] = {SETTINGS_COST(ROW)};
static const setting STOP_rows[] = {SETTINGS_STOP(ROW)};
static const setting BASELINE_rows[] = {SETTINGS_BASELINE(ROW)};
static const setting OUTPUT_rows[] = {SETTINGS_OUTPUT(ROW)};
static const setting FEDERATION_rows[] = {SETTINGS_FEDERATION(ROW)};
static const setting PRIVACY_rows[] = {SETTINGS_PRIVACY(ROW)};
static const setting OVERRIDE_rows[] = {SETTINGS_OVERRIDE(ROW)};

#define COUNT(array) (sizeof(array) / sizeof(array)[0])
#define GROUP_AT(offset, key, GROUP, heading) {key, heading, offset, GROUP##_rows, COUNT(GROUP##_rows)},
#define SPEC_GROUP(member, key, GROUP, heading) GROUP_AT(offsetof(struct hfsad_spec, member), key, GROUP, heading)
#define OVERRIDE_GROUP(member, key, GROUP, heading) GROUP_AT(offsetof(override_settings, member), key, GROUP, heading)

static const settings_group spec_groups[] = {SPEC_GROUPS(SPEC_GROUP)};
static const settings_group override_groups[] = {GROUP_AT(0, "", OVERRIDE, "The node and its part in the run")
                                                     OVERRIDE_GROUPS(OVERRIDE_GROUP)};

const settings_schema spec_schema = {spec_groups, COUNT(spec_groups), "overrides", false};
const settings_schema override_schema = {override_groups, COUNT(override_groups), NULL, true};

bool settings_at(const settings_schema *schema, size_t i, setting_at *at)
{
    size_t first = 0;
    for (const settings_group *group = schema->groups; group < schema->groups + schema->n_groups; group++) {
        if (i < first + group->n_rows) {
            const setting *row = &group->rows[i - first];
            *at = (setting_at){schema, group, row, i, group->offset + row->offset, ""};
            snprintf(at->key, sizeof at->key, "%s%s%s", group->key, *group->key ? "." : "", row->name);
            return true;
        }
        first += group->n_rows;
    }
    return false;
}

bool settings_find(const settings_schema *schema, const char *key, setting_at *at)
{
    for (size_t i = 0; settings_at(schema, i, at); i++)
        if (!strcmp(at->key, key))
            return true;
    return false;
}

void settings_alias(const char *name, char key[SETTING_KEY_MAX])
{
    const bool split = !strncmp(name, "split", 5) && (!name[5] || name[5] == '.');
    if (!strcmp(name, "file"))
        snprintf(key, SETTING_KEY_MAX, "data");
    else
        snprintf(key, SETTING_KEY_MAX, split ? "%s" : "columns.%s", name);
}

bool settings_find_kind(const settings_schema *schema, const char *key, setting_at *at)
{
    char full[SETTING_KEY_MAX];
    snprintf(full, sizeof full, "%.40s.kind", key);
    if (settings_find(schema, full, at))
        return true;
    snprintf(full, sizeof full, "%.40s.penalty", key);
    return settings_find(schema, full, at);
}

size_t settings_count(const settings_schema *schema)
{
    size_t count = 0;
    for (size_t g = 0; g < schema->n_groups; g++)
        count += schema->groups[g].n_rows;
    return count;
}

static void names_add(setting_names *names, const char *name, size_t length)
{
    for (size_t i = 0; i < names->count; i++)
        if (strlen(names->name[i]) == length && !memcmp(names->name[i], name, length))
            return;
    assert(names->count < COUNT(names->name) && length < SETTING_KEY_MAX);
    memcpy(names->name[names->count], name, length);
    names->name[names->count++][length] = 0;
}

void settings_below(const settings_schema *schema, const char *key, setting_names *names)
{
    const size_t length = strlen(key);
    setting_at at;
    names->count = 0;
    for (size_t i = 0; settings_at(schema, i, &at); i++) {
        if (length > 0 && (strncmp(at.key, key, length) != 0 || at.key[length] != '.'))
            continue;
        const char *name = at.key + length + (length > 0);
        names_add(names, name, strcspn(name, "."));
    }
    if (length == 0 && schema->list)
        names_add(names, schema->list, strlen(schema->list));
}

size_t names_nearest(const setting_names *names, const char *name, bool *near)
{
    size_t best = 0, least = SIZE_MAX;
    char small[SETTING_KEY_MAX]; /* the known names are in lower case */
    snprintf(small, sizeof small, "%s", name);
    for (char *p = small; *p; p++)
        *p = *p >= 'A' && *p <= 'Z' ? (char)(*p - 'A' + 'a') : *p;
    for (size_t i = 0; i < names->count; i++) {
        const size_t distance = name_distance(names->name[i], small);
        if (distance < least) {
            least = distance;
            best = i;
        }
    }
    *near = least <= (strlen(small) + 1) / 2 && least < strlen(names->name[best]);
    return best;
}

void names_list(const setting_names *names, char *text, size_t size)
{
    for (size_t i = 0; i < names->count; i++) {
        const size_t used = strlen(text);
        snprintf(text + used, size - used, "%s%s", i > 0 ? ", " : "", names->name[i]);
    }
}

/* strtod in the "C" locale, because the calling program may have set a locale with a decimal comma. */
static double number_read(const char *text, char **end)
{
    const locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    const locale_t old = plain ? uselocale(plain) : (locale_t)0;
    const double number = strtod(text, end);
    if (plain) {
        uselocale(old);
        freelocale(plain);
    }
    return number;
}

typedef struct {
    double low, high;
    bool low_open, high_open;
    char low_text[24], high_text[24];
} interval;

static interval interval_read(const char *range)
{
    interval r = {0};
    char open = 0, close = 0;
    const int found = sscanf(range, "%c%23[^,],%23[^])]%c", &open, r.low_text, r.high_text, &close);
    assert(found == 4);
    (void)found;
    r.low = number_read(r.low_text, NULL);
    r.high = number_read(r.high_text, NULL);
    r.low_open = open == '(';
    r.high_open = close == ')';
    return r;
}

static bool interval_has(const interval *r, double number)
{
    return (r->low_open ? number > r->low : number >= r->low) && (r->high_open ? number < r->high : number <= r->high);
}

static void interval_text(const interval *r, char *text, size_t size)
{
    const char *low = r->low_open ? "above" : "at least", *high = r->high_open ? "below" : "at most";
    if (isinf(r->high))
        snprintf(text, size, "%s %s", low, r->low_text);
    else if (!r->low_open && !r->high_open)
        snprintf(text, size, "from %s to %s", r->low_text, r->high_text);
    else
        snprintf(text, size, "%s %s and %s %s", low, r->low_text, high, r->high_text);
}

static setting_names choice_names(const setting *row)
{
    setting_names names = {0};
    for (const char *const *choice = row->choices; *choice; choice++)
        names_add(&names, *choice, strlen(*choice));
    return names;
}

void setting_range_text(const setting *row, char *text, size_t size)
{
    switch (row->type) {
    case SETTING_REAL:
    case SETTING_WHOLE: {
        const interval range = interval_read(row->range);
        interval_text(&range, text, size);
        break;
    }
    case SETTING_FLAG:
        snprintf(text, size, "true or false");
        break;
    case SETTING_TEXT:
        snprintf(text, size, *row->range ? "text or a list" : "text");
        break;
    case SETTING_CHOICE: {
        const setting_names names = choice_names(row);
        snprintf(text, size, "one of ");
        names_list(&names, text, size);
        break;
    }
    }
}

static bool takes_auto(const setting_at *at)
{
    return !strcmp(at->row->fallback, "auto") || !strcmp(at->row->name, "edge_rounds") ||
           (at->schema->inherits && at->row->type != SETTING_TEXT);
}

static bool takes_none(const setting_at *at)
{
    return !strcmp(at->row->fallback, "none") && at->row->type != SETTING_CHOICE; /* a choice may list it */
}

void setting_expected(const setting_at *at, char *text, size_t size)
{
    char range[SETTING_TEXT_MAX];
    const setting_type type = at->row->type;
    setting_range_text(at->row, range, sizeof range);
    snprintf(text, size, "%s%s%s%s",
             type == SETTING_REAL    ? "a number "
             : type == SETTING_WHOLE ? "a whole number "
                                     : "",
             range, takes_none(at) ? ", or none" : "", takes_auto(at) ? ", or auto" : "");
}

setting_value setting_unset(const setting *row)
{
    switch (row->type) {
    case SETTING_REAL:
        return (setting_value){.real = NAN};
    case SETTING_WHOLE:
        return (setting_value){.whole = -1};
    case SETTING_TEXT:
        return (setting_value){.text = NULL};
    case SETTING_FLAG:
    case SETTING_CHOICE:
        break;
    }
    return (setting_value){.index = -1};
}

setting_value setting_default(const setting_at *at)
{
    const char *text = at->row->fallback;
    setting_value value = setting_unset(at->row);
    if (at->schema->inherits || !strcmp(text, "required"))
        return value;
    char why[SETTING_WHY_MAX] = "";
    const bool good = setting_parse(at, text, true, &value, why);
    assert(good && "a default in settings.h is outside its own range");
    (void)good;
    return value;
}

enum { VALUE_SHOWN_MAX = 60 };

static bool refuse_value(const setting_at *at, const char *text, const char *problem, char *why)
{
    char expected[SETTING_TEXT_MAX];
    setting_expected(at, expected, sizeof expected);
    snprintf(why, SETTING_WHY_MAX, "'%.*s%s' %s; expected %s", VALUE_SHOWN_MAX, text,
             strlen(text) > VALUE_SHOWN_MAX ? "..." : "", problem, expected);
    return false;
}

/* strtod also accepts hexadecimal, "inf" and "nan"; only decimal numbers are allowed here. */
static bool parse_number(const setting_at *at, const char *text, double *number, char *why)
{
    const char *word = text + strspn(text, "+-.");
    char *end = NULL;
    *number = number_read(text, &end);
    if (!strncmp(word, "inf", 3) || !strncmp(word, "Inf", 3) || !strncmp(word, "INF", 3) || !strncmp(word, "nan", 3) ||
        !strncmp(word, "NaN", 3) || !strncmp(word, "NAN", 3))
        return refuse_value(at, text, "is not a finite number", why);
    if (*end || end == text || text[strspn(text, "0123456789+-.eE")])
        return refuse_value(at, text, "is not a number", why);
    if (!isfinite(*number))
        return refuse_value(at, text, "is too large for a number", why);
    const interval range = interval_read(at->row->range);
    return interval_has(&range, *number) || refuse_value(at, text, "is out of range", why);
}

static bool parse_whole(const setting_at *at, const char *text, int64_t *whole, char *why)
{
    double number;
    if (!parse_number(at, text, &number, why))
        return false;
    if (number != floor(number))
        return refuse_value(at, text, "is not a whole number", why);
    /* Beyond 2^53 a double is not exact; plain digits are read exactly. */
    *whole = (int64_t)number;
    if (text[strspn(text, "0123456789")])
        return true;
    errno = 0;
    const long long exact = strtoll(text, NULL, 10);
    if (errno || exact != *whole)
        return refuse_value(at, text, "is out of range", why);
    return true;
}

static bool parse_choice(const setting_at *at, const char *text, int *index, char *why)
{
    const setting_names names = choice_names(at->row);
    for (size_t i = 0; i < names.count; i++)
        if (!strcmp(names.name[i], text)) {
            *index = (int)i;
            return true;
        }
    bool near;
    char expected[SETTING_TEXT_MAX];
    setting_expected(at, expected, sizeof expected);
    const char *nearest = names.name[names_nearest(&names, text, &near)], *synonym = setting_synonym(&names, text);
    if (synonym)
        nearest = synonym;
    else if (!near)
        return refuse_value(at, text, "is not known", why);
    snprintf(why, SETTING_WHY_MAX, "'%.*s%s' is not known; did you mean '%s'? (expected %s)", VALUE_SHOWN_MAX, text,
             strlen(text) > VALUE_SHOWN_MAX ? "..." : "", nearest, expected);
    return false;
}

static bool parse_flag(const setting_at *at, const char *text, int *flag, char *why)
{
    static const char *const words[][4] = {{"false", "no", "off", "0"}, {"true", "yes", "on", "1"}};
    for (*flag = 0; *flag < 2; ++*flag)
        for (size_t i = 0; i < COUNT(words[0]); i++)
            if (!strcasecmp(text, words[*flag][i]))
                return true;
    return refuse_value(at, text, "is neither true nor false", why);
}

bool setting_parse(const setting_at *at, const char *text, bool plain, setting_value *value, char *why)
{
    const setting_type type = at->row->type;
    if ((plain || type != SETTING_TEXT) && takes_none(at) && !strcmp(text, "none")) {
        *value = setting_unset(at->row);
        if (at->schema->inherits && type == SETTING_REAL) /* a lifted limit; unset would inherit it */
            value->real = INFINITY;
        return true;
    }
    if ((plain || type != SETTING_TEXT) && takes_auto(at) && !strcmp(text, "auto")) {
        *value = setting_unset(at->row);
        return true;
    }
    switch (type) {
    case SETTING_REAL:
        return parse_number(at, text, &value->real, why);
    case SETTING_WHOLE:
        return parse_whole(at, text, &value->whole, why);
    case SETTING_FLAG:
        return parse_flag(at, text, &value->index, why);
    case SETTING_CHOICE:
        return parse_choice(at, text, &value->index, why);
    case SETTING_TEXT:
        value->text = text;
        break;
    }
    return true;
}

bool setting_allows(const setting_at *at, setting_value value)
{
    size_t choices = 0;
    switch (at->row->type) {
    case SETTING_REAL:
    case SETTING_WHOLE: {
        const bool real = at->row->type == SETTING_REAL;
        const interval range = interval_read(at->row->range);
        if (real ? isnan(value.real) : value.whole == -1)
            return true;
        if (real && isinf(value.real)) /* a lifted limit */
            return value.real > 0 && at->schema->inherits && takes_none(at);
        return interval_has(&range, real ? value.real : (double)value.whole);
    }
    case SETTING_FLAG:
        return value.index >= -1 && value.index <= 1;
    case SETTING_CHOICE:
        while (at->row->choices[choices])
            choices++;
        return value.index >= -1 && value.index < (int)choices;
    case SETTING_TEXT:
        break;
    }
    return true;
}

setting_value setting_load(const setting_at *at, const void *base)
{
    const char *member = (const char *)base + at->offset;
    setting_value value = setting_unset(at->row);
    switch (at->row->type) {
    case SETTING_REAL:
        memcpy(&value.real, member, sizeof value.real);
        break;
    case SETTING_WHOLE:
        memcpy(&value.whole, member, sizeof value.whole);
        break;
    case SETTING_FLAG:
    case SETTING_CHOICE:
        memcpy(&value.index, member, sizeof value.index);
        break;
    case SETTING_TEXT:
        memcpy(&value.text, member, sizeof value.text);
        break;
    }
    return value;
}

bool setting_store(const setting_at *at, void *base, setting_value value)
{
    char *member = (char *)base + at->offset;
    switch (at->row->type) {
    case SETTING_REAL:
        memcpy(member, &value.real, sizeof value.real);
        break;
    case SETTING_WHOLE:
        memcpy(member, &value.whole, sizeof value.whole);
        break;
    case SETTING_FLAG:
    case SETTING_CHOICE:
        memcpy(member, &value.index, sizeof value.index);
        break;
    case SETTING_TEXT: {
        char **text = (char **)(void *)member;
        char *copy = value.text ? strdup(value.text) : NULL;
        if (value.text && !copy)
            return false;
        free(*text);
        *text = copy;
        break;
    }
    }
    return true;
}

bool settings_fill(const settings_schema *schema, void *base)
{
    setting_at at;
    for (size_t i = 0; settings_at(schema, i, &at); i++)
        if (!setting_store(&at, base, setting_default(&at)))
            return false;
    return true;
}

void settings_clear(const settings_schema *schema, void *base)
{
    setting_at at;
    for (size_t i = 0; settings_at(schema, i, &at); i++)
        if (at.row->type == SETTING_TEXT)
            setting_store(&at, base, (setting_value){.text = NULL});
}
