/* See columns.h. */
#define _POSIX_C_SOURCE 200809L /* strndup */
#include "data/columns.h"

#include "base/alloc.h"
#include "base/error.h"
#include "data/parse_number.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_MOST = 1024 /* bytes of a column's name that are compared with patterns */ };

slice slice_trim(slice s)
{
    while (s.length > 0 && s.text[0] == ' ')
        s.text++, s.length--;
    while (s.length > 0 && s.text[s.length - 1] == ' ')
        s.length--;
    return s;
}

/* The next entry of a list separated by `mark`; false after the last entry. */
static bool next_entry(const char **at, const char *end, char mark, slice *entry)
{
    if (!*at || *at > end)
        return false;
    const char *stop = memchr(*at, mark, (size_t)(end - *at));
    stop = stop ? stop : end;
    *entry = slice_trim((slice){*at, (size_t)(stop - *at)});
    *at = stop + 1;
    return true;
}

static bool same_text(slice a, slice b)
{
    return a.length == b.length && memcmp(a.text, b.text, a.length) == 0;
}

static bool is_called(slice name, const char *text)
{
    return same_text(name, (slice){text, strlen(text)});
}

/* ---- categories ---- */

size_t category_find(const category *c, slice level)
{
    if (memchr(level.text, 0, level.length))
        return SIZE_MAX;
    for (size_t i = 0; i < c->n_levels; i++)
        if (texts_same(&c->texts, c->levels[i], level))
            return i;
    return SIZE_MAX;
}

hfsad_status category_add(category *c, slice level, hfsad_error *err)
{
    if (category_find(c, level) != SIZE_MAX)
        return HFSAD_OK;
    if (memchr(level.text, ',', level.length) || memchr(level.text, '|', level.length)) {
        char shown[EXCERPT_SIZE];
        return error_set(err, HFSAD_ERROR_INPUT,
                         "data.categorical: the level \"%s\" of %.*s holds a comma or a bar; rename it",
                         excerpt(shown, level), (int)c->name.length, c->name.text);
    }
    if (level.length > LEVEL_BYTES)
        return error_set(err, HFSAD_ERROR_INPUT, "a level of %.*s has more than %d bytes; is it a category?",
                         (int)c->name.length, c->name.text, LEVEL_BYTES);
    if (c->n_levels == LEVELS_MOST)
        return error_set(err, HFSAD_ERROR_INPUT,
                         "data.categorical: %.*s has more than %d levels; is it a category? Remove it from the list",
                         (int)c->name.length, c->name.text, LEVELS_MOST);
    if (!alloc_grow((void **)&c->levels, &c->capacity, c->n_levels + 1, sizeof *c->levels))
        return error_memory(err, (c->n_levels + 1) * sizeof *c->levels, "the levels of a category");
    const hfsad_status status = texts_add(&c->texts, level, &c->levels[c->n_levels], err);
    c->n_levels += status == HFSAD_OK;
    return status;
}

void category_sort(category *c)
{
    for (size_t i = 1; i < c->n_levels; i++) { /* a linear search: there are few levels, in runs of equal ones */
        const uint32_t level = c->levels[i];
        size_t j = i;
        for (; j > 0 && strcmp(c->texts.text + c->levels[j - 1], c->texts.text + level) > 0; j--)
            c->levels[j] = c->levels[j - 1];
        c->levels[j] = level;
    }
}

/* Parses "name" or "name=level|level". */
static hfsad_status read_category(category *c, slice entry, hfsad_error *err)
{
    const char *sign = memchr(entry.text, '=', entry.length), *end = entry.text + entry.length;
    c->name = sign ? slice_trim((slice){entry.text, (size_t)(sign - entry.text)}) : entry;
    c->given = sign != NULL;
    hfsad_status status = HFSAD_OK;
    slice level;
    for (const char *at = sign ? sign + 1 : NULL; !status && next_entry(&at, end, '|', &level);)
        status = category_add(c, level, err);
    if (!status && (c->name.length == 0 || (c->given && c->n_levels == 0)))
        return error_set(
            err, HFSAD_ERROR_INPUT,
            "data.categorical: \"%.*s\" is not a category; write the name of a column, or name=level|level "
            "with its levels",
            (int)(entry.length < 60 ? entry.length : 60), entry.text);
    return status;
}

/* NULL: no memory. */
static category *new_category(table_memory *m, hfsad_error *err)
{
    if (!alloc_grow((void **)&m->categories, &m->categories_capacity, m->n_categories + 1, sizeof *m->categories)) {
        error_memory(err, (m->n_categories + 1) * sizeof *m->categories, "the categories");
        return NULL;
    }
    category *c = &m->categories[m->n_categories++];
    memset(c, 0, sizeof *c);
    return c;
}

static hfsad_status read_labels(category *c, const char *list, hfsad_error *err)
{
    const char *end = list + strlen(list);
    hfsad_status status = HFSAD_OK;
    c->given = true;
    c->name = (slice){"y", 1};
    for (slice label; !status && next_entry(&list, end, ',', &label);)
        status = category_add(c, label, err);
    if (!status && (c->n_levels < 2 || c->n_levels > LABELS_MOST))
        status = error_set(err, HFSAD_ERROR_INPUT,
                           "data.labels: %zu label%s; give 2 to %d different ones, such as [no, yes]", c->n_levels,
                           c->n_levels == 1 ? "" : "s", LABELS_MOST);
    return status;
}

bool label_at(const char *labels, size_t number, slice *label)
{
    for (; labels; number--) {
        const char *end = strchr(labels, ',');
        *label = (slice){labels, end ? (size_t)(end - labels) : strlen(labels)};
        if (number == 0)
            return true;
        labels = end ? end + 1 : NULL;
    }
    return false;
}

size_t labels_count(const char *labels)
{
    size_t count = 1;
    for (; *labels; labels++)
        count += *labels == ',';
    return count;
}

bool labels_are_plain(const char *labels)
{
    return !strcmp(labels, "0,1");
}

hfsad_status table_begin(table_memory *m, const table_settings *t, hfsad_error *err)
{
    const char *at = t->categorical, *end = at ? at + strlen(at) : NULL;
    hfsad_status status = HFSAD_OK;
    for (slice entry; !status && next_entry(&at, end, ',', &entry);) {
        category *c = new_category(m, err);
        status = c ? read_category(c, entry, err) : HFSAD_ERROR_MEMORY;
    }
    m->has_labels = t->labels && !labels_are_plain(t->labels);
    return !status && m->has_labels ? read_labels(&m->labels, t->labels, err) : status;
}

hfsad_status table_add_text(table_memory *m, slice name, bool is_y, const char *wrong, hfsad_error *err)
{
    category *c = is_y ? &m->labels : new_category(m, err);
    if (!c || !(c->found = strndup(name.text, name.length)) || !(c->wrong = strdup(wrong)))
        return error_memory(err, name.length, "the name of a column");
    c->name = (slice){c->found, name.length};
    m->has_labels = m->has_labels || is_y;
    return HFSAD_OK;
}

hfsad_status table_check_found(const table_memory *m, hfsad_error *err)
{
    for (size_t i = 0; i < m->n_categories; i++) {
        const category *c = &m->categories[i];
        if (c->found && c->n_levels > 1 && 2 * c->n_levels > m->rows)
            return error_set(err, HFSAD_ERROR_INPUT,
                             "column %s: %zu rows have %zu different texts, too many for a category; leave it out, "
                             "data: {features: [-%s]}, or state it, data: {categorical: [%s]}",
                             c->found, m->rows, c->n_levels, c->found, c->found);
    }
    if (m->has_labels && !m->labels.given && m->labels.n_levels < 2)
        return error_set(err, HFSAD_ERROR_INPUT, "column %s: all rows have the label %s; give rows of two classes",
                         m->labels.found, m->labels.n_levels ? m->labels.texts.text + m->labels.levels[0] : "");
    return HFSAD_OK;
}

static void forget_levels(category *c)
{
    if (c->given)
        return;
    c->n_levels = 0;
    c->texts.size = 0;
}

void table_forget(table_memory *m)
{
    for (size_t i = 0; i < m->n_categories; i++)
        forget_levels(&m->categories[i]);
    forget_levels(&m->labels);
    free(m->sums);
    free(m->counts);
    m->sums = NULL;
    m->counts = NULL;
    m->n_sums = m->rows = 0;
}

size_t labels_find_number(const category *c, double y)
{
    for (size_t i = 0; i < c->n_levels; i++) {
        const char *text = c->texts.text + c->levels[i], *end = text + strlen(text);
        double value;
        if (number_parse(text, end, &value) == end && value == y)
            return i;
    }
    return SIZE_MAX;
}

static void free_category(category *c)
{
    free(c->texts.text);
    free(c->levels);
    free(c->found);
    free(c->wrong);
}

void table_end(table_memory *m)
{
    for (size_t i = 0; i < m->n_categories; i++)
        free_category(&m->categories[i]);
    free_category(&m->labels);
    free(m->categories);
    free(m->sums);
    free(m->counts);
    *m = (table_memory){0};
}

bool columns_need_scan(const table_memory *m, const table_settings *t)
{
    bool need = (t->missing == MISSING_MEAN && !t->means) || (m->has_labels && !m->labels.given);
    for (size_t i = 0; i < m->n_categories; i++)
        need = need || !m->categories[i].given;
    return need;
}

/* ---- roles ---- */

const char *columns_name(const table_settings *t, column_role role, bool *stated)
{
    const char *const names[] = {
        [COLUMN_EDGE] = "edge", [COLUMN_CLIENT] = "client", [COLUMN_Y] = "y", [COLUMN_WEIGHT] = "weight"};
    const char *const given[] = {[COLUMN_EDGE] = t->edge,
                                 [COLUMN_CLIENT] = t->by ? t->by : t->client,
                                 [COLUMN_Y] = t->y,
                                 [COLUMN_WEIGHT] = t->weight};
    *stated = given[role] != NULL;
    return *stated ? given[role] : names[role];
}

static bool is_like(slice name, slice entry)
{
    char text[NAME_MOST], pattern[NAME_MOST];
    if (name.length >= sizeof text || entry.length >= sizeof pattern)
        return same_text(name, entry);
    memcpy(text, name.text, name.length);
    text[name.length] = 0;
    memcpy(pattern, entry.text, entry.length);
    pattern[entry.length] = 0;
    return same_text(name, entry) || fnmatch(pattern, text, 0) == 0;
}

/* Whether the entry has the form "-date", which leaves a column out. */
static bool leaves_out(slice *entry)
{
    if (entry->length < 2 || entry->text[0] != '-')
        return false;
    *entry = (slice){entry->text + 1, entry->length - 1};
    return true;
}

/* Whether the list contains the column, also by a pattern. A list whose entries all leave columns out contains all
 * other columns. */
static bool list_has(const char *list, slice name)
{
    const char *end = list + strlen(list);
    bool named = false, any = false;
    for (slice entry; next_entry(&list, end, ',', &entry);) {
        if (same_text(entry, name))
            return true;
        const bool out = leaves_out(&entry), match = is_like(name, entry);
        if (out && match)
            return false;
        any = any || !out;
        named = named || match;
    }
    return named || !any;
}

column_role columns_role(const table_memory *m, const table_settings *t, slice name, bool after_y, size_t *index)
{
    for (column_role role = COLUMN_EDGE; role <= COLUMN_WEIGHT; role++) {
        bool stated;
        if (is_called(name, columns_name(t, role, &stated)) && (role != COLUMN_WEIGHT || stated || after_y))
            return role;
    }
    for (*index = 0; *index < m->n_categories; ++*index)
        if (same_text(m->categories[*index].name, name))
            return COLUMN_CATEGORY;
    return t->features && !list_has(t->features, name) ? COLUMN_SKIPPED : COLUMN_FEATURE;
}

static bool header_has(const slice *header, size_t count, slice entry)
{
    for (size_t c = 0; c < count; c++)
        if (is_like(header[c], entry))
            return true;
    return false;
}

bool columns_unmatched(const table_settings *t, const slice *header, size_t count, bool known, slice *name,
                       const char **key)
{
    const struct {
        const char *key, *list;
    } lists[] = {{"data.features", t->features}, {"data.categorical", t->categorical}, {"data.weight", t->weight}};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        const char *at = lists[i].list, *end = at ? at + strlen(at) : NULL;
        while (next_entry(&at, end, ',', name)) {
            const char *sign = i == 1 ? memchr(name->text, '=', name->length) : NULL;
            if (sign)
                *name = slice_trim((slice){name->text, (size_t)(sign - name->text)});
            *key = lists[i].key;
            slice other = *name;
            const bool there = header_has(header, count, *name), out = i == 0 && leaves_out(&other);
            if (!there && !(out && (known || header_has(header, count, other))))
                return true;
        }
    }
    return false;
}

bool field_is_hole(slice field)
{
    static const char *const words[] = {"", "NA", "N/A", "NaN", "nan", "NAN", "null", "NULL", "None", "?"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (is_called(field, words[i]))
            return true;
    return false;
}
