/*
 * The meaning of a table's columns, as the key `data` of a spec states it: which column is y, which client a row
 * belongs to, which columns are features, which of these are categories, and how missing values are replaced.
 */
#ifndef HFSAD_DATA_COLUMNS_H
#define HFSAD_DATA_COLUMNS_H

#include "data/names.h"

typedef enum { MISSING_REFUSE, MISSING_MEAN } missing_rule;

/* All members 0: the columns edge, client, y and weight, and features. The caller owns the texts. */
typedef struct {
    const char *y, *client, *edge, *weight; /* names of columns; NULL: the default names */
    const char *features;    /* names and patterns, separated by commas; -name leaves one out; NULL: all others */
    const char *categorical; /* "name" or "name=level|level", separated by commas; NULL: none */
    const char *labels;      /* labels of the classes in order, separated by commas; NULL: y is a number */
    missing_rule missing;
    const double *means; /* means of the features, for MISSING_MEAN; NULL: the means of the table itself */
    /* If rows name no client, they are dealt over a tree with these numbers of edges and clients. */
    uint32_t edges, clients; /* clients 0: rows name their clients; edges 0: clients are children of the cloud */
    const char *by;          /* column with the names of clients, which are dealt over the edges; NULL: none */
    uint64_t seed;
} table_settings;

typedef enum {
    COLUMN_FEATURE,
    COLUMN_EDGE,
    COLUMN_CLIENT,
    COLUMN_Y,
    COLUMN_WEIGHT,
    COLUMN_CATEGORY,
    COLUMN_SKIPPED, /* not part of the data */
} column_role;

/* A category has a feature for every level except the first: 1 in rows with that level, otherwise 0. */
typedef struct {
    slice name;
    char *found; /* name of a column that was found to be text; NULL: the settings name the column */
    bool given;  /* the settings state its levels; otherwise the levels are those of the table, sorted */
    char *wrong; /* if `found` is set: the message in case other rows of the column hold numbers */
    text_pool texts;
    uint32_t *levels; /* offsets into texts */
    size_t n_levels, capacity;
} category;

/* What the settings leave to the table: found by a scan of the files. */
typedef struct {
    category *categories;
    size_t n_categories, categories_capacity;
    category labels; /* labels of y; its features are not used */
    bool has_labels;
    size_t rows;  /* number of rows scanned */
    double *sums; /* sums of the numeric features; counts: rows with a value */
    size_t *counts;
    size_t n_sums;
} table_memory;

/* Upper limits on the levels of a category, of a text column that no setting calls a category, and of y. */
enum { LEVELS_MOST = 4096, LEVELS_FOUND = 100, LABELS_MOST = 256, LEVEL_BYTES = 255 /* of a text */ };

/* Begins with the categories that the settings name. Call table_end also after a failure. */
hfsad_status table_begin(table_memory *m, const table_settings *t, hfsad_error *err);
void table_end(table_memory *m);
/* Whether the table must be read twice. */
bool columns_need_scan(const table_memory *m, const table_settings *t);

/* Role of a column by its name; after_y: the column to its left is y. *index: number of the category. */
column_role columns_role(const table_memory *m, const table_settings *t, slice name, bool after_y, size_t *index);
/* Name of the column with a role, EDGE to WEIGHT; *stated: the settings state the name. */
const char *columns_name(const table_settings *t, column_role role, bool *stated);
/* Finds the first name in the settings that no column has; false if there is none. header: names of all columns; known:
 * the settings belong to a trained model, so that columns left out may be absent. */
bool columns_unmatched(const table_settings *t, const slice *header, size_t count, bool known, slice *name,
                       const char **key);

/* The text without spaces at both ends, as entries of lists are read. */
slice slice_trim(slice s);
/* The number of the level with this text; SIZE_MAX: no such level. */
size_t category_find(const category *c, slice level);
/* The same; a new text adds a level. */
hfsad_status category_add(category *c, slice level, hfsad_error *err);
/* Sorts the levels that the scan found. */
void category_sort(category *c);
/* Notes a column of text that no setting mentions; the next scan collects its levels. is_y: the levels are labels.
 * wrong: the message in case other rows of the column hold numbers. */
hfsad_status table_add_text(table_memory *m, slice name, bool is_y, const char *wrong, hfsad_error *err);
/* Checks that columns found to be text have few enough levels, and rows for each level. */
hfsad_status table_check_found(const table_memory *m, hfsad_error *err);
/* Discards what the scan found. */
void table_forget(table_memory *m);
/* The place of a number among the labels; SIZE_MAX: not a label. */
size_t labels_find_number(const category *c, double y);
/* The label with this number in a list such as "no,yes"; false: no such label. */
bool label_at(const char *labels, size_t number, slice *label);
size_t labels_count(const char *labels);
/* Whether the labels are "0,1", which the losses of two classes accept as numbers. */
bool labels_are_plain(const char *labels);

/* Whether a field has no value: empty, NA, NaN, null and similar. */
bool field_is_hole(slice field);

#endif
