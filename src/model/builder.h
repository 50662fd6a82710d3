/* What the readers of files use of the builder beside dataset.h: rows are parsed where they stay. */
#ifndef HFSAD_MODEL_BUILDER_H
#define HFSAD_MODEL_BUILDER_H

#include "model/dataset.h"

/* Text without a closing 0. */
typedef struct {
    const char *text;
    size_t length;
} slice;

/* Room for so many rows in all, so that adding them moves nothing. */
hfsad_status dataset_builder_reserve(dataset_builder *b, size_t rows, hfsad_error *err);

size_t builder_rows(const dataset_builder *b);
bool builder_is_full(const dataset_builder *b);
/* Where the next row's M features go. The builder must not be full. */
double *builder_next_row(dataset_builder *b);

/* Says early which client the next row is of: its place in the table of names comes to the cache meanwhile. */
void builder_expect(const dataset_builder *b, slice name);

/* A row whose x stands in builder_next_row. */
typedef struct {
    slice path, client;
    double y, weight; /* weight: 1 where the rows have none */
    const char *file; /* may be NULL */
    size_t line;      /* counted from 1 */
    /* Counted from 1, for messages; 0: they do not come from columns. */
    size_t edge_column, client_column, y_column, weight_column;
} builder_entry;

/* Refuses bad names, a client below two edges, weights of 0 or less, and numbers that are not finite or too large to be
 * squared. After a failure the builder can only be freed. */
hfsad_status builder_commit(dataset_builder *b, const builder_entry *entry, hfsad_error *err);

/* Bytes of the UTF-8 character that text starts with, 0 where it starts with none (or is empty). */
size_t utf8_length(const char *text, size_t length);

/* What stands in a file, as a message shows it: 40 characters, what cannot be printed as \xNN. */
enum { EXCERPT_CHARACTERS = 40, EXCERPT_SIZE = 4 * EXCERPT_CHARACTERS + 4 };
const char *excerpt(char out[EXCERPT_SIZE], slice s);

#endif
