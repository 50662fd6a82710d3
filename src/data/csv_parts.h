/* What the files of the CSV reader share: the state of a reader, and functions for lines and fields. */
#ifndef HFSAD_DATA_CSV_PARTS_H
#define HFSAD_DATA_CSV_PARTS_H

#include "data/intake.h"

#define EXPECTED_NUMBER "expected a number such as -1.25 or 3e-4"

/* A column that is not a numeric feature. */
typedef struct {
    size_t column;
    column_role role;
    size_t category; /* COLUMN_CATEGORY: number of the category */
} special;

typedef struct {
    const char *name;
    const char *at, *end; /* next byte to read; end of the file */
    const char *line_start, *body;
    size_t line;
    char separator; /* comma, semicolon or tab; space means a run of spaces and tabs */
    slice *columns; /* names of the columns */
    size_t n_columns, columns_capacity;
    special *specials; /* in increasing columns */
    size_t n_specials, specials_capacity;
    size_t n_features; /* numeric features and features of categories */
    bool names_client; /* a column names the client */
    intake *in;
    dataset_builder *builder;
    hfsad_error *err;
} reader;

__attribute__((format(printf, 2, 3))) hfsad_status csv_line_error(const reader *r, const char *format, ...);
__attribute__((format(printf, 3, 4))) hfsad_status csv_column_error(const reader *r, size_t column, const char *format,
                                                                    ...);

static inline bool csv_is_space(const reader *r, char c)
{
    return c == ' ' || (c == '\t' && r->separator != '\t');
}

static inline const char *csv_skip_spaces(const reader *r, const char *p)
{
    while (p < r->end && csv_is_space(r, *p))
        p++;
    return p;
}

/* Whether the reader is at a line end (newline, or carriage return before one or before the end) or at the end of the
 * file. */
static inline bool csv_at_line_end(const reader *r, const char *p)
{
    if (p < r->end && *p == '\r')
        p++;
    return p == r->end || *p == '\n';
}

void csv_next_line(reader *r);
/* Reads a field without its separator. A doubled quote stays doubled, because no name and no number contains a
 * quote. */
hfsad_status csv_read_text(reader *r, size_t column, slice *field);
/* Steps over a separator; false if there is none. */
bool csv_take_separator(reader *r);
/* Steps over what must follow the field of a column: a separator, or the line end after the last column. */
hfsad_status csv_close_field(reader *r, size_t column);
hfsad_status csv_text_field(reader *r, size_t column, slice *field);
/* *hole: set if the field has no value; if hole is NULL, that is an error. */
hfsad_status csv_number_field(reader *r, size_t column, double *value, bool *hole);
/* Whether the field is a number; true and false count as 1 and 0. A decimal comma is allowed if semicolons separate the
 * fields. */
bool csv_parse_field(const reader *r, slice field, double *value);
/* The error that a category or y has no value in this row; counts such rows from here on. */
hfsad_status csv_missing_level(const reader *r, size_t column);
/* Whether the rest of the file is blank; a blank line before other text is an error. */
hfsad_status csv_skip_blank(reader *r, bool *over);

/* Reads the first line: columns, specials, n_features, separator. The reader is then at the first row. */
hfsad_status csv_read_header(reader *r);

#endif
