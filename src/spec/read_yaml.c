/*
 * Reads YAML into settings: walks a document along the table of settings. The walk is at most as deep as the table and
 * stops at the first unknown or repeated key, so neither nesting nor aliases can make it long.
 */
#include "base/alloc.h"
#include "base/error.h"
#include "spec/source.h"
#include "spec/table.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LABEL_MAX = 80, KEY_SHOWN_MAX = 60 };

/* The struct to fill. */
typedef struct {
    const settings_schema *schema;
    void *base;            /* NULL: everything is checked, and nothing is stored */
    hfsad_spec *spec;      /* owner of lines and overrides; NULL: base is an entry of overrides */
    char label[LABEL_MAX]; /* prefix of keys in messages: "overrides[edge2]." */
} target;

static hfsad_status read_value(source *s, const target *t, const char *key, int id, size_t line);
static hfsad_status read_mapping(source *s, const target *t, const char *key, int id, size_t line);

static yaml_node_t *node_at(source *s, int id)
{
    return yaml_document_get_node(&s->document, id);
}

static size_t line_of(const yaml_node_t *node)
{
    return node->start_mark.line + 1;
}

static const char *text_of(const yaml_node_t *scalar)
{
    return (const char *)scalar->data.scalar.value;
}

static bool is_plain(const yaml_node_t *scalar)
{
    return scalar->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
}

/* Whether the scalar is the whole text; a quoted "\0" would truncate it. */
static bool is_whole(const yaml_node_t *scalar)
{
    return strlen(text_of(scalar)) == scalar->data.scalar.length;
}

static bool is_empty(const yaml_node_t *node)
{
    static const char *const words[] = {"~", "null", "Null", "NULL"};
    if (node->type != YAML_SCALAR_NODE)
        return false;
    bool empty = node->data.scalar.length == 0;
    for (size_t i = 0; i < sizeof words / sizeof *words && is_plain(node); i++)
        empty = empty || !strcmp(text_of(node), words[i]);
    return empty;
}

/* key: the mapping that contains name. */
static hfsad_status fail_unknown(source *s, const target *t, size_t line, const char *key, const char *name)
{
    char hint[600];
    setting_hint(t->schema, key, name, !s->path && t->schema == &spec_schema, hint, sizeof hint);
    return source_fail(s, line, "unknown key '%s%s%s%.*s%s'; %s", t->label, key, *key ? "." : "", KEY_SHOWN_MAX, name,
                       strlen(name) > KEY_SHOWN_MAX ? "..." : "", hint);
}

static hfsad_status store_value(source *s, const target *t, const setting_at *at, setting_value value, size_t line)
{
    if (!t->base)
        return HFSAD_OK;
    if (!setting_store(at, t->base, value))
        return error_memory(s->err, SETTING_TEXT_MAX, at->key);
    if (t->spec)
        t->spec->lines[at->index] = s->path ? (int)line : -1;
    return HFSAD_OK;
}

/* Joins a list of texts to one text, separated by commas. */
static hfsad_status read_list(source *s, const target *t, const setting_at *at, const yaml_node_t *node, size_t line)
{
    char *text = NULL;
    size_t capacity = 0, used = 0;
    hfsad_status status = HFSAD_OK;
    for (const yaml_node_item_t *i = node->data.sequence.items.start; i < node->data.sequence.items.top; i++) {
        const yaml_node_t *item = node_at(s, *i);
        const bool good = item->type == YAML_SCALAR_NODE && !is_empty(item) && is_whole(item);
        if (!good || strchr(text_of(item), ',')) {
            status = source_fail(s, line, "'%s%s': an entry of the list is not a name; expected text without commas",
                                 t->label, at->key);
            break;
        }
        if (!alloc_grow((void **)&text, &capacity, used + item->data.scalar.length + 3, 1)) {
            status = error_memory(s->err, used, at->key);
            break;
        }
        used += (size_t)snprintf(text + used, capacity - used, "%s%s", used ? "," : "", text_of(item));
    }
    if (!status && !used)
        status = source_fail(s, line, "'%s%s' is an empty list; name a column, or remove the key", t->label, at->key);
    if (!status)
        status = store_value(s, t, at, (setting_value){.text = text}, line);
    free(text);
    return status;
}

static hfsad_status read_scalar(source *s, const target *t, const setting_at *at, int id, size_t line)
{
    const yaml_node_t *node = node_at(s, id);
    char why[SETTING_WHY_MAX], expected[SETTING_TEXT_MAX];
    setting_value value;
    setting_expected(at, expected, sizeof expected);
    if (is_empty(node))
        return source_fail(s, line, "'%s%s' has no value; expected %s, or remove the key", t->label, at->key, expected);
    if (node->type == YAML_SEQUENCE_NODE && at->row->type == SETTING_TEXT && *at->row->range)
        return read_list(s, t, at, node, line);
    if (node->type != YAML_SCALAR_NODE)
        return source_fail(s, line, "'%s%s' takes one value, not a %s; expected %s", t->label, at->key,
                           node->type == YAML_SEQUENCE_NODE ? "list" : "mapping", expected);
    if (!is_whole(node))
        return source_fail(s, line, "'%s%s' contains a NUL character; expected %s", t->label, at->key, expected);
    if (!setting_parse(at, text_of(node), is_plain(node), &value, why))
        return source_fail(s, line, "%s%s = %s", t->label, at->key, why);
    return store_value(s, t, at, value, line);
}

static const yaml_node_t *find_twin(source *s, const yaml_node_t *mapping, const yaml_node_pair_t *pair)
{
    const char *name = text_of(node_at(s, pair->key));
    for (const yaml_node_pair_t *p = mapping->data.mapping.pairs.start; p < pair; p++)
        if (!strcmp(text_of(node_at(s, p->key)), name))
            return node_at(s, p->key);
    return NULL;
}

/* All pairs before this one have been read, so their keys are known words. */
static hfsad_status read_pair(source *s, const target *t, const char *key, const yaml_node_t *mapping,
                              const yaml_node_pair_t *pair)
{
    const yaml_node_t *word = node_at(s, pair->key);
    const size_t line = line_of(word);
    if (word->type != YAML_SCALAR_NODE)
        return source_fail(s, line, "a key is a list or a mapping; expected a word such as 'data'");
    const char *name = text_of(word);
    setting_names names;
    bool known = false;
    settings_below(t->schema, key, &names);
    for (size_t i = 0; i < names.count; i++)
        known = known || (is_whole(word) && !strcmp(names.name[i], name));
    if (!known)
        return fail_unknown(s, t, line, key, name);
    char full[SETTING_KEY_MAX];
    snprintf(full, sizeof full, "%s%s%s", key, *key ? "." : "", name);
    const yaml_node_t *twin = find_twin(s, mapping, pair);
    if (twin)
        return source_fail(s, line, "'%s%s' is given twice, first in line %zu; keep one", t->label, full,
                           line_of(twin));
    return read_value(s, t, full, pair->value, line);
}

static hfsad_status read_mapping(source *s, const target *t, const char *key, int id, size_t line)
{
    const yaml_node_t *node = node_at(s, id);
    setting_at at;
    if (node->type == YAML_SCALAR_NODE && !is_empty(node) && settings_find_kind(t->schema, key, &at))
        return read_scalar(s, t, &at, id, line);
    if (node->type != YAML_MAPPING_NODE) {
        char example[SETTING_TEXT_MAX];
        const char *given = node->type == YAML_SCALAR_NODE && !is_empty(node) ? text_of(node) : NULL;
        setting_example(t->schema, key, given, !s->path && t->spec, example, sizeof example);
        if (is_empty(node))
            return source_fail(s, line, "'%s%s' has no value; write '%s', or remove the key", t->label, key, example);
        return source_fail(s, line, "'%s%s' takes keys, not a %s; write '%s'", t->label, key, given ? "value" : "list",
                           example);
    }
    for (const yaml_node_pair_t *p = node->data.mapping.pairs.start; p < node->data.mapping.pairs.top; p++) {
        const hfsad_status status = read_pair(s, t, key, node, p);
        if (status)
            return status;
    }
    return HFSAD_OK;
}

#define OVERRIDES_EXAMPLE "write 'overrides: [{node: edge1, prior: {penalty: l1}}]'"

/* Names the entry in messages by its node, if it has one that can be shown. */
static void label_override(source *s, const yaml_node_t *entry, target *t)
{
    snprintf(t->label, sizeof t->label, "overrides.");
    for (const yaml_node_pair_t *p = entry->data.mapping.pairs.start; p < entry->data.mapping.pairs.top; p++) {
        const yaml_node_t *word = node_at(s, p->key), *node = node_at(s, p->value);
        if (word->type == YAML_SCALAR_NODE && !strcmp(text_of(word), "node")) {
            if (node->type == YAML_SCALAR_NODE && !is_empty(node))
                snprintf(t->label, sizeof t->label, "overrides[%.60s].", text_of(node));
            return;
        }
    }
}

static hfsad_status read_override(source *s, override_settings *entry, int id)
{
    const yaml_node_t *node = node_at(s, id);
    const size_t line = line_of(node);
    if (node->type != YAML_MAPPING_NODE)
        return source_fail(s, line, "an entry of 'overrides' takes keys; " OVERRIDES_EXAMPLE);
    target t = {&override_schema, entry, NULL, ""};
    label_override(s, node, &t);
    if (!settings_fill(&override_schema, entry))
        return error_memory(s->err, sizeof *entry, "overrides");
    entry->line = s->path ? (int)line : 0;
    const hfsad_status status = read_mapping(s, &t, "", id, line);
    if (!status && !entry->node)
        return source_fail(s, line, "an entry of 'overrides' lacks the key 'node'; " OVERRIDES_EXAMPLE);
    return status;
}

static void free_overrides(override_settings *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        settings_clear(&override_schema, &list[i]);
    free(list);
}

static hfsad_status read_overrides(source *s, const target *t, int id, size_t line)
{
    const yaml_node_t *node = node_at(s, id);
    if (node->type != YAML_SEQUENCE_NODE)
        return source_fail(s, line, "'overrides' takes a list; " OVERRIDES_EXAMPLE);
    override_settings *list = NULL;
    size_t count = 0, capacity = 0;
    hfsad_status status = HFSAD_OK;
    for (const yaml_node_item_t *i = node->data.sequence.items.start; i < node->data.sequence.items.top && !status;
         i++) {
        void *grown = list;
        if (!alloc_grow(&grown, &capacity, count + 1, sizeof *list)) {
            status = error_memory(s->err, (count + 1) * sizeof *list, "overrides");
            break;
        }
        list = grown;
        memset(&list[count], 0, sizeof *list);
        status = read_override(s, &list[count++], *i);
    }
    if (status || !t->base) {
        free_overrides(list, count);
        return status;
    }
    free_overrides(t->spec->overrides, t->spec->n_overrides);
    t->spec->overrides = list;
    t->spec->n_overrides = count;
    return HFSAD_OK;
}

/* `data: {file: F, y: COLUMN, split: {...}}`. */
static hfsad_status read_table(source *s, const target *t, const yaml_node_t *node)
{
    bool named = false;
    hfsad_status status = HFSAD_OK;
    for (const yaml_node_pair_t *p = node->data.mapping.pairs.start; p < node->data.mapping.pairs.top && !status; p++) {
        const yaml_node_t *word = node_at(s, p->key);
        const size_t line = line_of(word);
        char key[SETTING_KEY_MAX];
        setting_at at;
        if (word->type != YAML_SCALAR_NODE)
            return source_fail(s, line, "a key of 'data' is a list or a mapping; expected a word such as 'file'");
        const char *name = text_of(word);
        const yaml_node_t *twin = find_twin(s, node, p);
        if (twin)
            return source_fail(s, line, "'data.%.60s' is given twice, first in line %zu; keep one", name,
                               line_of(twin));
        named = named || !strcmp(name, "file");
        settings_alias(name, key);
        if (!is_whole(word) || (strcmp(key, "split") != 0 && !settings_find(t->schema, key, &at)))
            return source_fail(s, line,
                               "unknown key 'data.%.60s'; expected file, y, client, edge, weight, features, "
                               "categorical, labels, missing or split",
                               name);
        status =
            !strcmp(key, "split") ? read_mapping(s, t, key, p->value, line) : read_value(s, t, key, p->value, line);
    }
    return status || named ? status
                           : source_fail(s, line_of(node), "'data' has no key 'file'; write 'data: {file: data.csv}'");
}

/* `tau: [0.1, 0.5, 0.9]` sets loss.levels, and tau to the level in the middle. */
static hfsad_status read_levels(source *s, const target *t, const char *key, const yaml_node_t *node, size_t line)
{
    const yaml_node_item_t *first = node->data.sequence.items.start, *end = node->data.sequence.items.top;
    setting_at at;
    if (first == end || !settings_find(t->schema, "loss.levels", &at))
        return source_fail(s, line, "'%s%s' is an empty list; give levels between 0 and 1", t->label, key);
    const hfsad_status status = end - first > 1 ? read_list(s, t, &at, node, line) : HFSAD_OK;
    (void)settings_find(t->schema, key, &at);
    return status ? status : read_scalar(s, t, &at, first[(end - first) / 2], line);
}

/* key is known: a setting, a mapping or the list. */
static hfsad_status read_value(source *s, const target *t, const char *key, int id, size_t line)
{
    setting_at at;
    if (t->schema == &spec_schema && !strcmp(key, "data") && node_at(s, id)->type == YAML_MAPPING_NODE)
        return read_table(s, t, node_at(s, id));
    if (!strcmp(key, "loss.tau") && node_at(s, id)->type == YAML_SEQUENCE_NODE)
        return read_levels(s, t, key, node_at(s, id), line);
    if (!strcmp(key, "loss.tau") && t->base && settings_find(t->schema, "loss.levels", &at) &&
        !setting_store(&at, t->base, (setting_value){.text = NULL})) /* a single level replaces a list of levels */
        return error_memory(s->err, SETTING_TEXT_MAX, key);
    if (settings_find(t->schema, key, &at))
        return read_scalar(s, t, &at, id, line);
    if (t->schema->list && !strcmp(key, t->schema->list))
        return read_overrides(s, t, id, line);
    return read_mapping(s, t, key, id, line);
}

static hfsad_status read_file(source *s, hfsad_spec *spec)
{
    const yaml_node_t *root = yaml_document_get_root_node(&s->document);
    const char *need = "a spec needs at least 'data: data.csv' and 'loss: {kind: squared}'";
    if (!root || is_empty(root))
        return source_fail(s, 0, "is empty; %s", need);
    if (root->type != YAML_MAPPING_NODE)
        return source_fail(s, line_of(root), "expected keys, found a %s; %s",
                           root->type == YAML_SEQUENCE_NODE ? "list" : "value", need);
    const target t = {&spec_schema, spec, spec, ""};
    return read_mapping(s, &t, "", 1, line_of(root));
}

hfsad_status spec_load_text(hfsad_spec **spec, const char *path, const char *text, size_t size, hfsad_error *err)
{
    assert(spec && path && text);
    source s = {.path = path, .err = err};
    *spec = NULL;
    hfsad_status status = source_parse(&s, text, size);
    if (status)
        return status;
    hfsad_spec *made = NULL;
    status = spec_create(&made, path, err);
    if (!status)
        status = read_file(&s, made);
    source_end(&s);
    if (status)
        hfsad_spec_free(made);
    else
        *spec = made;
    return status;
}

hfsad_status hfsad_spec_load(hfsad_spec **spec, const char *path, hfsad_error *err)
{
    assert(spec && path);
    source s = {.path = path, .err = err};
    char *text = NULL;
    size_t size = 0;
    *spec = NULL;
    hfsad_status status = source_read(&s, &text, &size);
    if (!status)
        status = spec_load_text(spec, path, text, size, err);
    free(text);
    return status;
}

/* Follows a dotted key through the table as far as it is known. */
static hfsad_status find_key(source *s, const target *t, const char *key)
{
    char known[SETTING_KEY_MAX] = "";
    setting_names names;
    for (const char *rest = key;;) {
        const size_t length = strcspn(rest, ".");
        bool found = false;
        settings_below(t->schema, known, &names);
        for (size_t i = 0; i < names.count && !found; i++)
            found = strlen(names.name[i]) == length && !strncmp(names.name[i], rest, length);
        if (!found)
            return fail_unknown(s, t, 0, known, rest);
        const size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%.*s", used > 0 ? "." : "", (int)length, rest);
        if (!rest[length])
            return HFSAD_OK;
        rest += length + 1;
    }
}

hfsad_status source_find_key(source *s, const char *key)
{
    return find_key(s, &(target){&spec_schema, NULL, NULL, ""}, key);
}

hfsad_status hfsad_spec_set(hfsad_spec *spec, const char *key, const char *value, hfsad_error *err)
{
    assert(spec && key && value);
    char alias[SETTING_KEY_MAX];
    if (!strncmp(key, "data.", 5)) {
        settings_alias(key + 5, alias);
        key = alias;
    }
    source s = {.key = key, .value = value, .err = err};
    target t = {&spec_schema, NULL, spec, ""};
    hfsad_status status = find_key(&s, &t, key);
    if (status)
        return status;
    if (strlen(value) > SOURCE_MAX_BYTES)
        return source_fail(&s, 0, "the value is longer than %d bytes", SOURCE_MAX_BYTES);
    status = source_parse(&s, value, strlen(value));
    if (status)
        return status;
    if (!yaml_document_get_root_node(&s.document)) {
        status = source_fail(&s, 0, "'%s' has no value; write %s=VALUE", key, key);
    } else {
        status = read_value(&s, &t, key, 1, 0); /* first without storing, so that a refused value changes nothing */
        t.base = spec;
        if (!status)
            status = read_value(&s, &t, key, 1, 0);
    }
    source_end(&s);
    return status;
}
