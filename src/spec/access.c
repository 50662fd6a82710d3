/* Single settings by key and type, which programs and bindings set and read back. Every function walks the table of
 * settings. */
#include "base/error.h"
#include "spec/source.h"
#include "spec/table.h"

#include <assert.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

hfsad_status hfsad_spec_parse(hfsad_spec **spec, const char *text, size_t length, hfsad_error *err)
{
    assert(spec && text);
    *spec = NULL;
    if (length > SOURCE_MAX_BYTES)
        return error_set(err, HFSAD_ERROR_INPUT, "the spec has %zu bytes; at most %d are allowed", length,
                         SOURCE_MAX_BYTES);
    return spec_load_text(spec, "spec", text, length, err);
}

/* The shortest of 15 to 17 digits that reads back to the same number, with a decimal point in every locale. */
static void real_text(double v, char *text, size_t size)
{
    const locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    const locale_t old = plain ? uselocale(plain) : (locale_t)0;
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, size, "%.*g", digits, v);
        if (strtod(text, NULL) == v)
            break;
    }
    if (plain) {
        uselocale(old);
        freelocale(plain);
    }
}

static const char *const TYPE_NAMES[] = {
    [SETTING_REAL] = "a number", [SETTING_WHOLE] = "a whole number", [SETTING_FLAG] = "true or false",
    [SETTING_TEXT] = "text",     [SETTING_CHOICE] = "a word",
};

static hfsad_status find_setting(const char *key, const char *value, setting_at *at, hfsad_error *err)
{
    char alias[SETTING_KEY_MAX];
    if (!strncmp(key, "data.", 5)) {
        settings_alias(key + 5, alias);
        key = alias;
    }
    if (settings_find(&spec_schema, key, at))
        return HFSAD_OK;
    source s = {.key = key, .value = value, .err = err};
    const hfsad_status status = source_find_key(&s, key);
    return status ? status : source_fail(&s, 0, "'%s' takes keys, not a value", key);
}

/* Stores a value of the row's type; text is the value in messages. */
static hfsad_status store(hfsad_spec *spec, const setting_at *at, setting_value value, const char *text,
                          hfsad_error *err)
{
    const bool given = at->row->type != SETTING_REAL || isfinite(value.real);
    char expected[SETTING_TEXT_MAX];
    source s = {.key = at->key, .value = text, .err = err};
    setting_expected(at, expected, sizeof expected);
    if (!given)
        return source_fail(&s, 0, "%s = %s is not a finite number; expected %s", at->key, text, expected);
    if (!setting_allows(at, value) || (at->row->type == SETTING_WHOLE && value.whole == -1))
        return source_fail(&s, 0, "%s = %s is out of range; expected %s", at->key, text, expected);
    setting_at list; /* a single level replaces a list of levels */
    if (!strcmp(at->key, "loss.tau") && settings_find(&spec_schema, "loss.levels", &list))
        (void)setting_store(&list, spec, (setting_value){.text = NULL});
    if (!setting_store(at, spec, value))
        return error_memory(err, strlen(text), at->key);
    spec->lines[at->index] = -1;
    return HFSAD_OK;
}

static hfsad_status refuse_type(const setting_at *at, const char *text, const char *given, hfsad_error *err)
{
    source s = {.key = at->key, .value = text, .err = err};
    return source_fail(&s, 0, "%s takes %s, not %s", at->key, TYPE_NAMES[at->row->type], given);
}

hfsad_status hfsad_spec_set_real(hfsad_spec *spec, const char *key, double value, hfsad_error *err)
{
    char text[40];
    setting_at at;
    real_text(value, text, sizeof text);
    const hfsad_status status = find_setting(key, text, &at, err);
    if (status)
        return status;
    if (at.row->type == SETTING_WHOLE && value == floor(value) && fabs(value) <= 0x1p53)
        return store(spec, &at, (setting_value){.whole = (int64_t)value}, text, err);
    if (at.row->type != SETTING_REAL)
        return refuse_type(&at, text, "a real number", err);
    return store(spec, &at, (setting_value){.real = value}, text, err);
}

hfsad_status hfsad_spec_set_whole(hfsad_spec *spec, const char *key, int64_t value, hfsad_error *err)
{
    char text[40];
    setting_at at;
    snprintf(text, sizeof text, "%" PRId64, value);
    const hfsad_status status = find_setting(key, text, &at, err);
    if (status)
        return status;
    if (at.row->type == SETTING_REAL)
        return store(spec, &at, (setting_value){.real = (double)value}, text, err);
    if (at.row->type != SETTING_WHOLE)
        return refuse_type(&at, text, "a whole number", err);
    return store(spec, &at, (setting_value){.whole = value}, text, err);
}

hfsad_status hfsad_spec_set_flag(hfsad_spec *spec, const char *key, bool value, hfsad_error *err)
{
    const char *text = value ? "true" : "false";
    setting_at at;
    const hfsad_status status = find_setting(key, text, &at, err);
    if (status)
        return status;
    if (at.row->type != SETTING_FLAG)
        return refuse_type(&at, text, "true or false", err);
    return store(spec, &at, (setting_value){.index = value}, text, err);
}

hfsad_status hfsad_spec_set_text(hfsad_spec *spec, const char *key, const char *value, hfsad_error *err)
{
    assert(value);
    char why[SETTING_WHY_MAX];
    setting_at at;
    setting_value read;
    const hfsad_status status =
        settings_find_kind(&spec_schema, key, &at) ? HFSAD_OK : find_setting(key, value, &at, err);
    if (status)
        return status;
    if (at.row->type != SETTING_TEXT && at.row->type != SETTING_CHOICE)
        return refuse_type(&at, value, "text", err);
    source s = {.key = at.key, .value = value, .err = err};
    if (!setting_parse(&at, value, false, &read, why))
        return source_fail(&s, 0, "%s = %s", at.key, why);
    return store(spec, &at, read, value, err);
}

/* ---- reading back ---- */

/* Text that is truncated to its room; length counts all of it. */
typedef struct {
    char *to;
    size_t size, length;
} cut_text;

static void append_text(cut_text *t, const char *text)
{
    const size_t length = strlen(text), left = t->length < t->size ? t->size - t->length : 0;
    if (left > 0) {
        const size_t kept = length < left ? length : left - 1;
        memcpy(t->to + t->length, text, kept);
        t->to[t->length + kept] = 0;
    }
    t->length += length;
}

/* The text for a setting that was not given. */
static const char *word_of_unset(const setting_at *at)
{
    return at->schema->inherits ? "auto" : at->row->fallback;
}

static void put_value(cut_text *t, const setting_at *at, const void *base)
{
    const setting_value value = setting_load(at, base);
    char text[40];
    if (setting_is_unset(at, base)) {
        append_text(t, word_of_unset(at));
        return;
    }
    switch (at->row->type) {
    case SETTING_REAL:
        real_text(value.real, text, sizeof text);
        append_text(t, isinf(value.real) ? "none" : text); /* a box that an override lifts */
        break;
    case SETTING_WHOLE:
        snprintf(text, sizeof text, "%" PRId64, value.whole);
        append_text(t, text);
        break;
    case SETTING_FLAG:
        append_text(t, value.index ? "true" : "false");
        break;
    case SETTING_TEXT:
        append_text(t, value.text);
        break;
    case SETTING_CHOICE:
        append_text(t, at->row->choices[value.index]);
        break;
    }
}

/* A name as quoted YAML: a quote is written twice. */
static void put_quoted(cut_text *t, const char *text)
{
    append_text(t, "'");
    for (; *text; text++)
        append_text(t, *text == '\'' ? "''" : (const char[]){*text, 0});
    append_text(t, "'");
}

/* "{node: 'e1', loss: {kind: huber, delta: 2}}": the groups of an override are one level deep. */
static void put_override(cut_text *t, const override_settings *entry)
{
    const char *open = "";
    setting_at at;
    append_text(t, "{node: ");
    put_quoted(t, entry->node);
    for (size_t i = 0; settings_at(&override_schema, i, &at); i++) {
        if (setting_is_unset(&at, entry) || !strcmp(at.key, "node"))
            continue;
        const char *group = at.group->key;
        const bool another = strcmp(open, group) != 0;
        append_text(t, *open && another ? "}, " : ", ");
        if (another) {
            append_text(t, group);
            append_text(t, ": {");
        }
        open = group;
        append_text(t, at.row->name);
        append_text(t, ": ");
        put_value(t, &at, entry);
    }
    append_text(t, *open ? "}}" : "}");
}

static void put_overrides(cut_text *t, const hfsad_spec *spec)
{
    append_text(t, "[");
    for (size_t i = 0; i < spec->n_overrides; i++) {
        append_text(t, i ? ", " : "");
        put_override(t, &spec->overrides[i]);
    }
    append_text(t, "]");
}

hfsad_status hfsad_spec_get(const hfsad_spec *spec, const char *key, char *buffer, size_t size, size_t *length,
                            hfsad_error *err)
{
    cut_text t = {buffer, size, 0};
    setting_at at;
    if (!strcmp(key, spec_schema.list)) {
        put_overrides(&t, spec);
    } else {
        const hfsad_status status = find_setting(key, "?", &at, err);
        if (status)
            return status;
        append_text(&t, ""); /* terminates an empty text, too */
        put_value(&t, &at, spec);
    }
    if (length)
        *length = t.length;
    return HFSAD_OK;
}

static hfsad_status load(const hfsad_spec *spec, const char *key, setting_type type, setting_value *value,
                         hfsad_error *err)
{
    setting_at at;
    const hfsad_status status = find_setting(key, "?", &at, err);
    if (status)
        return status;
    if (at.row->type != type)
        return error_set(err, HFSAD_ERROR_INPUT, "%s is %s, not %s", at.key, TYPE_NAMES[at.row->type],
                         TYPE_NAMES[type]);
    *value = setting_load(&at, spec);
    return HFSAD_OK;
}

hfsad_status hfsad_spec_get_real(const hfsad_spec *spec, const char *key, double *value, hfsad_error *err)
{
    setting_value v;
    const hfsad_status status = load(spec, key, SETTING_REAL, &v, err);
    if (!status)
        *value = v.real;
    return status;
}

hfsad_status hfsad_spec_get_whole(const hfsad_spec *spec, const char *key, int64_t *value, hfsad_error *err)
{
    setting_value v;
    const hfsad_status status = load(spec, key, SETTING_WHOLE, &v, err);
    if (!status)
        *value = v.whole;
    return status;
}

hfsad_status hfsad_spec_get_flag(const hfsad_spec *spec, const char *key, bool *value, hfsad_error *err)
{
    setting_value v;
    const hfsad_status status = load(spec, key, SETTING_FLAG, &v, err);
    if (!status)
        *value = v.index > 0;
    return status;
}

/* ---- listing the settings ---- */

size_t hfsad_settings_count(void)
{
    return settings_count(&spec_schema);
}

static bool describe(const settings_schema *schema, size_t i, hfsad_setting *described)
{
    static const hfsad_setting_type types[] = {
        [SETTING_REAL] = HFSAD_SETTING_REAL,     [SETTING_WHOLE] = HFSAD_SETTING_WHOLE,
        [SETTING_FLAG] = HFSAD_SETTING_FLAG,     [SETTING_TEXT] = HFSAD_SETTING_TEXT,
        [SETTING_CHOICE] = HFSAD_SETTING_CHOICE,
    };
    setting_at at;
    if (!settings_at(schema, i, &at))
        return false;
    hfsad_setting all = {
        .size = described->size,
        .type = types[at.row->type],
        .fallback = schema->inherits && at.row->type != SETTING_TEXT ? "auto" : at.row->fallback,
        .help = at.row->sentence,
        .choices = at.row->choices,
        .heading = at.group->heading,
    };
    static_assert(sizeof all.key >= SETTING_KEY_MAX && sizeof all.range >= SETTING_TEXT_MAX, "room in hfsad_setting");
    snprintf(all.key, sizeof all.key, "%s", at.key);
    setting_range_text(at.row, all.range, sizeof all.range);
    memcpy(described, &all, described->size < sizeof all ? described->size : sizeof all);
    return true;
}

bool hfsad_settings_at(size_t i, hfsad_setting *described)
{
    return describe(&spec_schema, i, described);
}

bool hfsad_settings_override_at(size_t i, hfsad_setting *described)
{
    return describe(&override_schema, i, described);
}
