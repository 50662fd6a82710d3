/* The builder's interface for file readers, in addition to dataset.h: rows are parsed into their final place. */
#ifndef HFSAD_DATA_BUILDER_H
#define HFSAD_DATA_BUILDER_H

#include "data/dataset.h"
#include "data/names.h"

/* Reserves room for this total number of rows, so that adding them moves no memory. */
hfsad_status dataset_builder_reserve(dataset_builder *b, size_t rows, hfsad_error *err);

size_t builder_rows(const dataset_builder *b);
size_t builder_clients(const dataset_builder *b);
size_t builder_capacity(const dataset_builder *b);
bool builder_is_full(const dataset_builder *b);
/* The place for the M features of the next row. The builder must not be full. */
double *builder_next_row(dataset_builder *b);

/* Dense rows go to a scratch file in that folder (pages.h), in the table `rows`; before the first row. */
hfsad_status builder_use_pages(dataset_builder *b, const char *folder, hfsad_error *err);

/* Dense rows of the caller's: row r of `rows` has the number x[r * row_stride + m * column_stride] for feature m. They
 * are committed in order and copied once, when the builder finishes, to where they stay; not even that if they go to
 * the table `rows`, lie side by side and are in the order of the leaves: the data set then borrows them
 * (row_table.lent). Before the first row. */
typedef struct {
    const double *x;
    ptrdiff_t row_stride, column_stride;
} lent_rows;
hfsad_status builder_lend(dataset_builder *b, const lent_rows *lent, size_t rows, hfsad_error *err);

/* The client of the last row that was committed; the next one with `begun` set belongs to the client that is chosen. */
uint32_t builder_client(const dataset_builder *b);
void builder_choose(dataset_builder *b, uint32_t client);
/* Sparse rows of at least this number of features. */
void builder_widen(dataset_builder *b, size_t features);
/* Room for a number per row, which finishing fills: the place of each row in the order of the leaves. */
void builder_tell_places(dataset_builder *b, uint32_t *places);

/* Says early which client the next row is of, below the inner node of the last row: its place in the table of names
 * comes to the cache meanwhile. */
void builder_expect(const dataset_builder *b, slice name);

/*
 * Sparse rows instead: M is the largest index that comes. The non-zeros of the next row are pushed, columns counted
 * from 0 and rising, before it is committed; a value of 0 is not kept. false: no room for another, reserve some.
 */
hfsad_status builder_create_sparse(dataset_builder **b, hfsad_error *err);
hfsad_status builder_reserve_entries(dataset_builder *b, size_t count, hfsad_error *err);
bool builder_push(dataset_builder *b, uint32_t column, double value);
size_t builder_entries(const dataset_builder *b);

size_t builder_features(const dataset_builder *b);
bool builder_is_sparse(const dataset_builder *b);

/* A file that is one client's: the rows committed as `begun` until the next call are its. */
hfsad_status builder_begin(dataset_builder *b, slice path, slice name, const char *file, hfsad_error *err);
/* The client of this name, which is added if it is new. */
hfsad_status builder_meet(dataset_builder *b, slice path, slice name, uint32_t *index, hfsad_error *err);
/* Adds an inner node, so that its place among its siblings does not depend on the order of the clients. */
hfsad_status builder_add_inner(dataset_builder *b, slice path, const char *file, hfsad_error *err);

/* Adds a row whose x is in builder_next_row, or has been pushed. */
typedef struct {
    slice path, client;
    double y, weight; /* weight: 1 if the rows have none */
    const char *file; /* may be NULL */
    size_t line;      /* counted from 1 */
    bool array;       /* line is a row of an array */
    bool begun;       /* of the client that was begun; path and client are for messages */
    /* Counted from 1, for messages; 0: they do not come from columns. */
    size_t edge_column, client_column, y_column, weight_column;
} builder_entry;

/* The same name below two inner nodes is two clients. Refuses bad names, weights of 0 or less, and numbers that are not
 * finite or too large to be squared. After a failure the builder can only be freed. */
hfsad_status builder_commit(dataset_builder *b, const builder_entry *entry, hfsad_error *err);

#endif
