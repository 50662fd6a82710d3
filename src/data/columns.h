/*
 * The meaning of a table's columns, as the key `data` of a spec states it: which column is y, which client a row
 * belongs to, which columns are features, which of them are categories, what becomes of missing values.
 */
#ifndef HFSAD_DATA_COLUMNS_H
#define HFSAD_DATA_COLUMNS_H

#include "data/names.h"

typedef enum { MISSING_REFUSE, MISSING_MEAN } missing_rule;

/* All zero: the columns edge, client, y and weight, and features. The texts are the caller's. */
typedef struct {
    const char *y, *client, *edge, *weight; /* names of columns; NULL: as above */
    const char *features;    /* names and patterns, separated by commas, -name leaves out; NULL: all others */
    const char *categorical; /* "name" or "name=level|level", separated by commas; NULL: none */
    const char *labels;      /* of classes, in order, separated by commas; NULL: y is a number */
    missing_rule missing;
    const double *means; /* of the features, for MISSING_MEAN; NULL: those of the table itself */
    /* Rows that name no client are dealt over a tree of this many edges and clients. */
    uint32_t edges, clients; /* clients 0: the rows name them; edges 0: they are children of the cloud */
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
    COLUMN_SKIPPED, /* no part of the data */
} column_role;

/* A category has a feature for every level but the first: 1 in the rows of that level, otherwise 0. */
typedef struct {
    slice name;
    char *own;   /* the name of a column that was found; NULL: the settings name it */
    bool given;  /* its levels are the settings'; otherwise those of the table, sorted */
    char *wrong; /* with own: what is wrong if other rows have numbers there */
    text_pool texts;
    uint32_t *levels; /* in texts */
    size_t n_levels, capacity;
} category;

/* What the settings leave to the table. */
typedef struct {
    category *categories;
    size_t n_categories, categories_capacity;
    category labels; /* of y; its features are not used */
    bool has_labels;
    size_t rows;  /* that were scanned */
    double *sums; /* of the features that are numbers, and how many rows have one */
    size_t *counts;
    size_t n_sums;
} table_memory;

/* At most as many levels has a category, a column of text that nobody called a category, and y. */
enum { LEVELS_MOST = 4096, LEVELS_FOUND = 100, LABELS_MOST = 256, LEVEL_BYTES = 255 /* of the text of a level */ };

/* The categories that the settings name. Call table_end also after a failure. */
hfsad_status table_begin(table_memory *m, const table_settings *t, hfsad_error *err);
void table_end(table_memory *m);
/* Whether the table must be read twice. */
bool columns_need_scan(const table_memory *m, const table_settings *t);

/* Role of a column by its name; after_y: its neighbour to the left is y. *index: of a category. */
column_role columns_role(const table_memory *m, const table_settings *t, slice name, bool after_y, size_t *index);
/* Name of the column of a role, EDGE to WEIGHT; *stated: by the settings. */
const char *columns_name(const table_settings *t, column_role role, bool *stated);
/* The first name in the settings that no column has; false: there is none. header: the names of all columns; known: the
 * settings are a trained model's, so that columns which they leave out may be absent. */
bool columns_unmatched(const table_settings *t, const slice *header, size_t count, bool known, slice *name,
                       const char **key);

/* Without the spaces at both ends, as entries of lists are read. */
slice slice_trim(slice s);
/* The level with this text; SIZE_MAX: there is none. */
size_t category_find(const category *c, slice level);
/* Adds it if it is new. */
hfsad_status category_add(category *c, slice level, hfsad_error *err);
/* Sorts the levels that were found. */
void category_sort(category *c);
/* A column has text that no setting speaks of: its levels are scanned next. is_y: they are labels. wrong: the message
 * if other rows have numbers there. */
hfsad_status table_add_text(table_memory *m, slice name, bool is_y, const char *wrong, hfsad_error *err);
/* The levels of columns that were found are few enough, and there are rows for each. */
hfsad_status table_check_found(const table_memory *m, hfsad_error *err);
/* What was scanned is forgotten. */
void table_forget(table_memory *m);
/* The place of a number among the labels; SIZE_MAX: there is none. */
size_t labels_find_number(const category *c, double y);
/* The label with this number of a list "no,yes"; false: there is none. */
bool label_at(const char *labels, size_t number, slice *label);
size_t labels_count(const char *labels);
/* "0,1", which says no more than the losses of two classes do. */
bool labels_are_plain(const char *labels);

/* Whether a field has no value: empty, NA, NaN, null and the like. */
bool field_is_hole(slice field);

#endif
