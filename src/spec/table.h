/*
 * The rows of settings.h as a table that code can walk: defaults, parsing, ranges, the nearest key, `hfsad settings`
 * and docs/settings.md all use it.
 */
#ifndef HFSAD_SPEC_TABLE_H
#define HFSAD_SPEC_TABLE_H

#include "spec/settings.h"

typedef enum { SETTING_REAL, SETTING_WHOLE, SETTING_FLAG, SETTING_TEXT, SETTING_CHOICE } setting_type;

typedef struct {
    const char *name;
    setting_type type;
    const char *const *choices; /* CHOICE: names, ended by NULL */
    size_t offset;              /* offset in the group's struct */
    const char *fallback, *range, *sentence;
} setting;

typedef struct {
    const char *key; /* "link.client"; "" for the top */
    const char *heading;
    size_t offset; /* offset of the group's struct */
    const setting *rows;
    size_t n_rows;
} settings_group;

/* A struct that settings fill: the spec, or an entry of its overrides. */
typedef struct {
    const settings_group *groups;
    size_t n_groups;
    const char *list; /* a key at the top that holds a list and is not a setting; NULL: none */
    bool inherits;    /* no defaults: a missing key is inherited, and every row except text accepts "auto" */
} settings_schema;

extern const settings_schema spec_schema, override_schema;

enum { SETTING_KEY_MAX = 64, SETTING_TEXT_MAX = 256 };

/* A setting and its place in the table. */
typedef struct {
    const settings_schema *schema;
    const settings_group *group;
    const setting *row;
    size_t index, offset;
    char key[SETTING_KEY_MAX]; /* "link.client.weight" */
} setting_at;

/* The i-th setting in the order of the table; false after the last. */
bool settings_at(const settings_schema *schema, size_t i, setting_at *at);
bool settings_find(const settings_schema *schema, const char *key, setting_at *at);
/* What a word in place of the mapping at key means: `loss: absolute` is `loss: {kind: absolute}`. */
bool settings_find_kind(const settings_schema *schema, const char *key, setting_at *at);
size_t settings_count(const settings_schema *schema);
/* The key that `name` below `data` means: data, columns.NAME, or split and the keys below it. */
void settings_alias(const char *name, char key[SETTING_KEY_MAX]);

typedef struct {
    size_t count;
    char name[32][SETTING_KEY_MAX];
} setting_names;

/* Keys allowed in the mapping at key ("" for the top), settings and mappings; none: key is not a mapping. */
void settings_below(const settings_schema *schema, const char *key, setting_names *names);
/* Index of the nearest name, ignoring case; *near: so near that the given name is a typing error. count > 0. */
size_t names_nearest(const setting_names *names, const char *name, bool *near);
/* Appends "a, b, c" to text of the given size. */
void names_list(const setting_names *names, char *text, size_t size);
/* The name that a word of another tool means ("mae": absolute); NULL: none. */
const char *setting_synonym(const setting_names *names, const char *text);

/* The type of the setting decides which member holds the value. */
typedef union {
    double real;
    int64_t whole;
    int index; /* FLAG, CHOICE */
    const char *text;
} setting_value;

/* Value of a setting that was not given: NAN, -1 or NULL. */
setting_value setting_unset(const setting *row);
/* Whether the setting has this value in the struct at base. */
bool setting_is_unset(const setting_at *at, const void *base);
/* The default in the table; unset for "auto", "none", "required", and if the schema inherits. */
setting_value setting_default(const setting_at *at);
/*
 * Reads one scalar. plain: it was not quoted, so that "none" has its special meaning for a text. value->text points to
 * text. On an error, why (SETTING_WHY_MAX bytes) states what is wrong and what would be right.
 */
bool setting_parse(const setting_at *at, const char *text, bool plain, setting_value *value, char *why);
enum { SETTING_WHY_MAX = 600 };

/* Whether a setting may have this value: unset, or within its range. For values that were not read from a scalar. */
bool setting_allows(const setting_at *at, setting_value value);

/* The value in the struct at base; a text is not copied. */
setting_value setting_load(const setting_at *at, const void *base);
/* Stores the value in the struct at base; a text is copied and the old text freed. false: no memory. */
bool setting_store(const setting_at *at, void *base, setting_value value);
/* Stores every default in a zeroed struct; false: no memory. */
bool settings_fill(const settings_schema *schema, void *base);
/* Frees the texts of a struct. */
void settings_clear(const settings_schema *schema, void *base);

/* "above 0", "from 1 to 1000000", "one of tv, mcp, scad", "true or false", "text". */
void setting_range_text(const setting *row, char *text, size_t size);
/* The same as part of a message: "a number above 0, or auto". */
void setting_expected(const setting_at *at, char *text, size_t size);

/*
 * How the first setting at or below key is written: "loss: {kind: quantile}", or "loss.kind=quantile" if dotted. The
 * value is `given` if the setting accepts it (given may be NULL), otherwise a value that it accepts.
 */
void setting_example(const settings_schema *schema, const char *key, const char *given, bool dotted, char *text,
                     size_t size);
/* The second half of a message about an unknown key: name is not a key below the mapping at key. dotted: keys are
 * written as in hfsad_spec_set. */
void setting_hint(const settings_schema *schema, const char *key, const char *name, bool dotted, char *text,
                  size_t size);

#endif
