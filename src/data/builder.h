/* The builder's interface for file readers, in addition to dataset.h. Readers parse rows directly into their final
 * place. */
#ifndef HFSAD_DATA_BUILDER_H
#define HFSAD_DATA_BUILDER_H

#include "data/dataset.h"
#include "data/names.h"

/* Reserves room for this total number of rows, so that adding rows moves no memory. */
hfsad_status dataset_builder_reserve(dataset_builder *b, size_t rows, hfsad_error *err);

size_t builder_rows(const dataset_builder *b);
size_t builder_clients(const dataset_builder *b);
size_t builder_capacity(const dataset_builder *b);
bool builder_is_full(const dataset_builder *b);
/* Memory for the M features of the next row. The builder must not be full. */
double *builder_next_row(dataset_builder *b);

/* Stores dense rows in a scratch file in that folder (pages.h), in the table `rows`. Called before the first row. */
hfsad_status builder_use_pages(dataset_builder *b, const char *folder, hfsad_error *err);

/* Uses dense rows in the caller's memory: row r of `rows` has x[r * row_stride + m * column_stride] for feature m. Rows
 * are committed in order and copied once, when the builder finishes. No copy is made if the rows go to the table
 * `rows`, are contiguous and are in the order of the leaves: the data set then borrows them (row_table.lent). Called
 * before the first row. */
typedef struct {
    const double *x;
    ptrdiff_t row_stride, column_stride;
} lent_rows;
hfsad_status builder_lend(dataset_builder *b, const lent_rows *lent, size_t rows, hfsad_error *err);

/* The client of the last committed row. builder_choose: the next row with `begun` set belongs to this client. */
uint32_t builder_client(const dataset_builder *b);
void builder_choose(dataset_builder *b, uint32_t client);
/* Raises the number of features of sparse rows to at least this number. */
void builder_widen(dataset_builder *b, size_t features);
/* places: room for a number per row. Finishing stores each row's place in the order of the leaves there. */
void builder_tell_places(dataset_builder *b, uint32_t *places);

/* Announces the client of the next row, below the inner node of the last row, so that the client's slot of the name
 * table is in the cache when the row arrives. */
void builder_expect(const dataset_builder *b, slice name);

/*
 * A builder of sparse rows: M is the largest index so far. The non-zeros of the next row are pushed in increasing
 * columns, counted from 0, before the row is committed; a value of 0 is not stored. false: reserve room for more
 * entries first.
 */
hfsad_status builder_create_sparse(dataset_builder **b, hfsad_error *err);
hfsad_status builder_reserve_entries(dataset_builder *b, size_t count, hfsad_error *err);
bool builder_push(dataset_builder *b, uint32_t column, double value);
size_t builder_entries(const dataset_builder *b);

size_t builder_features(const dataset_builder *b);
bool builder_is_sparse(const dataset_builder *b);

/* Begins a file that belongs to one client: rows committed with `begun` set belong to that client until the next
 * call. */
hfsad_status builder_begin(dataset_builder *b, slice path, slice name, const char *file, hfsad_error *err);
/* The client with this name; a new name adds a client. */
hfsad_status builder_meet(dataset_builder *b, slice path, slice name, uint32_t *index, hfsad_error *err);
/* Adds an inner node, so that its place among its siblings does not depend on the order of the clients. */
hfsad_status builder_add_inner(dataset_builder *b, slice path, const char *file, hfsad_error *err);

/* A row whose x is in builder_next_row, or has been pushed. */
typedef struct {
    slice path, client;
    double y, weight; /* weight: 1 if the rows have no weights */
    const char *file; /* may be NULL */
    size_t line;      /* counted from 1 */
    bool array;       /* line is the row of an array */
    bool begun;       /* the row belongs to the client that was begun; path and client are for messages */
    /* Column numbers from 1, for messages; 0: not read from columns. */
    size_t edge_column, client_column, y_column, weight_column;
} builder_entry;

/* Adds a row. The same name below two inner nodes means two clients. Refuses invalid names, weights of 0 or less, and
 * numbers that are not finite or too large to be squared. After a failure the builder can only be freed. */
hfsad_status builder_commit(dataset_builder *b, const builder_entry *entry, hfsad_error *err);

#endif
