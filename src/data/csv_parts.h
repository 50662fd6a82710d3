/* What the files of the CSV reader share: its state, and lines and fields. */
#ifndef HFSAD_DATA_CSV_PARTS_H
#define HFSAD_DATA_CSV_PARTS_H

#include "data/intake.h"

#define EXPECTED_NUMBER "expected a number such as -1.25 or 3e-4"

/* A column that is not a feature of numbers. */
typedef struct {
    size_t column;
    column_role role;
    size_t category; /* COLUMN_CATEGORY: which */
} special;

typedef struct {
    const char *name;
    const char *at, *end; /* the byte to be read next, the end of the file */
    const char *line_start, *body;
    size_t line;
    char separator; /* of fields: comma, semicolon, tab; space: a run of spaces and tabs */
    slice *columns; /* their names */
    size_t n_columns, columns_capacity;
    special *specials; /* in order of column */
    size_t n_specials, specials_capacity;
    size_t n_features; /* of numbers, and of categories */
    bool names_client; /* a column does */
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

/* At a newline, a carriage return before one or at the end, or at the end. */
static inline bool csv_at_line_end(const reader *r, const char *p)
{
    if (p < r->end && *p == '\r')
        p++;
    return p == r->end || *p == '\n';
}

void csv_next_line(reader *r);
/* Reads a field without what closes it. A quote that is written twice stays so: no name and no number holds one. */
hfsad_status csv_read_text(reader *r, size_t column, slice *field);
/* Steps over a separator; false: there is none. */
bool csv_take_separator(reader *r);
/* Steps over what follows the field in a column: a separator, or the end of the line after the last one. */
hfsad_status csv_close_field(reader *r, size_t column);
hfsad_status csv_text_field(reader *r, size_t column, slice *field);
/* *hole: the field has no value; without it that is an error. */
hfsad_status csv_number_field(reader *r, size_t column, double *value, bool *hole);
/* Whether the field is a number; true and false are 1 and 0. A decimal comma is one if semicolons separate the fields.
 */
bool csv_parse_field(const reader *r, slice field, double *value);
/* A category, or y, has no value in this row and others from here on. */
hfsad_status csv_missing_level(const reader *r, size_t column);
/* Whether the rest of the file is blank; a blank line before other text is refused. */
hfsad_status csv_skip_blank(reader *r, bool *over);

/* The first line: columns, specials, n_features, separator; then the reader is at the first row. */
hfsad_status csv_read_header(reader *r);

#endif
