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
    const char *features;                   /* names and patterns, separated by commas; NULL: all other columns */
    const char *categorical;                /* "name" or "name=level|level", separated by commas; NULL: none */
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
    bool given; /* its levels are the settings'; otherwise those of the table, sorted */
    text_pool texts;
    uint32_t *levels; /* in texts */
    size_t n_levels, capacity;
} category;

/* What the settings leave to the table. */
typedef struct {
    category *categories;
    size_t n_categories;
    double *sums; /* of the features that are numbers, and how many rows have one */
    size_t *counts;
    size_t n_sums;
} table_memory;

enum { LEVELS_MOST = 4096 };

/* The categories that the settings name. Call table_end also after a failure. */
hfsad_status table_begin(table_memory *m, const table_settings *t, hfsad_error *err);
void table_end(table_memory *m);
/* Whether the table must be read twice. */
bool columns_need_scan(const table_memory *m, const table_settings *t);

/* Role of a column by its name; after_y: its neighbour to the left is y. *index: of a category. */
column_role columns_role(const table_memory *m, const table_settings *t, slice name, bool after_y, size_t *index);
/* Name of the column of a role, EDGE to WEIGHT; *stated: by the settings. */
const char *columns_name(const table_settings *t, column_role role, bool *stated);
/* The first name in the settings that no column has; NULL: there is none. header: the names of all columns. */
bool columns_unmatched(const table_settings *t, const slice *header, size_t count, slice *name, const char **key);

/* The level with this text; SIZE_MAX: there is none. */
size_t category_find(const category *c, slice level);
/* Adds it if it is new. */
hfsad_status category_add(category *c, slice level, hfsad_error *err);
/* Sorts the levels that were found. */
void category_sort(category *c);

/* Whether a field has no value: empty, NA, NaN, null and the like. */
bool field_is_hole(slice field);

#endif
