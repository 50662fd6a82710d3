/*
 * CSV to a data set: RFC 4180 with spaces allowed around fields, a line being a row (no quoted newlines).
 *
 * A number is parsed in the mapped file and written to its final place in the builder. Nearly every number is read by
 * the loop of read_features; spaces, quotes, the last column and all errors go through number_field. Nothing depends on
 * the locale (number.c), and none is set.
 *
 * A file of the whole federation has the columns client, y and optionally edge. A file of a single client has no column
 * client; the intake names the client.
 */
#include "data/csv.h"

#include "base/alloc.h"
#include "base/error.h"
#include "data/intake.h"
#include "data/parse_number.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define EXPECTED_NUMBER "expected a number such as -1.25 or 3e-4"

enum { EDGE, CLIENT, Y, WEIGHT, SPECIALS };
static const char *const SPECIAL_NAMES[SPECIALS] = {"edge", "client", "y", "weight"};

typedef struct {
    size_t column;
    int kind; /* EDGE, CLIENT, Y or WEIGHT */
} special;

typedef struct {
    const char *name;
    const char *at, *end; /* the byte to be read next, the end of the file */
    const char *line_start, *body;
    size_t line;
    slice *columns; /* their names */
    size_t n_columns;
    special specials[SPECIALS]; /* in order of column */
    size_t n_specials;
    intake *in;
    dataset_builder *builder;
    hfsad_error *err;
} reader;

/* ---- messages ---- */

__attribute__((format(printf, 2, 3))) static hfsad_status line_error(const reader *r, const char *format, ...)
{
    char text[sizeof r->err->message];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return error_set(r->err, HFSAD_ERROR_INPUT, "%.*s:%zu: %s", NAME_SHOWN, r->name, r->line, text);
}

__attribute__((format(printf, 3, 4))) static hfsad_status column_error(const reader *r, size_t column,
                                                                       const char *format, ...)
{
    char text[sizeof r->err->message], shown[EXCERPT_SIZE];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (column >= r->n_columns) /* in the header, or beyond its last column */
        return line_error(r, "column %zu: %s", column + 1, text);
    return line_error(r, "column %zu (%s): %s", column + 1, excerpt(shown, r->columns[column]), text);
}

/* ---- lines and fields ---- */

static inline bool is_space(char c)
{
    return c == ' ' || c == '\t';
}

/* At a newline, a carriage return before one or at the end, or at the end. */
static inline bool at_line_end(const reader *r, const char *p)
{
    if (p < r->end && *p == '\r')
        p++;
    return p == r->end || *p == '\n';
}

static void next_line(reader *r)
{
    if (r->at < r->end && *r->at == '\r')
        r->at++;
    if (r->at < r->end)
        r->at++;
    r->line++;
    r->line_start = r->at;
}

static const char *skip_spaces(const reader *r, const char *p)
{
    while (p < r->end && is_space(*p))
        p++;
    return p;
}

/* Reads a field without what closes it. A quote that is written twice stays so: no name and no number holds one. */
static hfsad_status read_text(reader *r, size_t column, slice *field)
{
    const char *p = skip_spaces(r, r->at), *start = p;
    if (p < r->end && *p == '"') {
        start = ++p;
        while (p < r->end && *p != '\n' && (*p != '"' || (r->end - p > 1 && p[1] == '"')))
            p += *p == '"' ? 2 : 1;
        if (p == r->end || *p == '\n')
            return column_error(r, column, "a quote is not closed on its line; close it");
        *field = (slice){start, (size_t)(p - start)};
        r->at = skip_spaces(r, p + 1);
        if (r->at < r->end && *r->at != ',' && !at_line_end(r, r->at))
            return column_error(r, column, "text after the closing quote; expected a comma");
        return HFSAD_OK;
    }
    for (; p < r->end && *p != ',' && *p != '\n'; p++) {
        if (*p == '"')
            return column_error(r, column, "a quote inside a field; expected quotes around the whole field");
        if (*p == '\r' && at_line_end(r, p))
            break;
    }
    r->at = p;
    while (p > start && is_space(p[-1]))
        p--;
    *field = (slice){start, (size_t)(p - start)};
    return HFSAD_OK;
}

static hfsad_status refuse_long_row(reader *r)
{
    size_t fields = r->n_columns;
    slice first = {"", 0}, field = first;
    while (r->at < r->end && *r->at == ',') {
        r->at++;
        if (read_text(r, fields, &field))
            return HFSAD_ERROR_INPUT;
        if (fields++ == r->n_columns)
            first = field;
    }
    char shown[EXCERPT_SIZE];
    return line_error(r, "%zu fields, expected %zu: column %zu (\"%s\") is one too many", fields, r->n_columns,
                      r->n_columns + 1, excerpt(shown, first));
}

/* Steps over what follows the field in a column: a comma, or the end of the line after the last one. */
static hfsad_status close_field(reader *r, size_t column)
{
    const bool last = column + 1 == r->n_columns;
    if (r->at < r->end && *r->at == ',') {
        if (last)
            return refuse_long_row(r);
        r->at++;
    } else if (!last) {
        char shown[EXCERPT_SIZE];
        return line_error(r, "%zu fields, expected %zu: column %zu (%s) is missing", column + 1, r->n_columns,
                          column + 2, excerpt(shown, r->columns[column + 1]));
    }
    return HFSAD_OK;
}

static hfsad_status name_field(reader *r, size_t column, slice *field)
{
    const hfsad_status status = read_text(r, column, field);
    return status ? status : close_field(r, column);
}

static hfsad_status refuse_number(const reader *r, size_t column, slice field, bool infinite)
{
    char shown[EXCERPT_SIZE];
    excerpt(shown, field);
    if (field.length == 0)
        return column_error(r, column, "empty field (a hole); expected a number");
    if (infinite)
        return column_error(r, column, "\"%s\" is too large for a double; expected a finite number", shown);
    const size_t sign = field.text[0] == '-' || field.text[0] == '+';
    if (field.length - sign >= 3 &&
        (strncasecmp(field.text + sign, "nan", 3) == 0 || strncasecmp(field.text + sign, "inf", 3) == 0))
        return column_error(r, column, "\"%s\" is not finite; expected a finite number", shown);
    return column_error(r, column, "\"%s\" is not a number; " EXPECTED_NUMBER, shown);
}

static hfsad_status number_field(reader *r, size_t column, double *value)
{
    slice field = {"", 0};
    const hfsad_status status = read_text(r, column, &field);
    if (status)
        return status;
    const char *end = field.text + field.length;
    while (field.length > 0 && is_space(*field.text)) /* spaces within quotes */
        field.text++, field.length--;
    while (field.length > 0 && is_space(end[-1]))
        end--, field.length--;
    if (number_parse(field.text, end, value) != end)
        return refuse_number(r, column, field, false);
    if (!isfinite(*value))
        return refuse_number(r, column, field, true);
    return close_field(r, column);
}

/* The numbers of columns [column, stop). */
static hfsad_status read_features(reader *r, size_t column, size_t stop, double *x)
{
    const size_t quick = stop < r->n_columns ? stop : r->n_columns - 1;
    for (; column < stop; column++, x++) {
        const char *p = column < quick ? number_parse(r->at, r->end, x) : NULL;
        if (p && p < r->end && *p == ',' && isfinite(*x)) {
            r->at = p + 1;
            continue;
        }
        const hfsad_status status = number_field(r, column, x);
        if (status)
            return status;
    }
    return HFSAD_OK;
}

/* Whether the rest of the file is blank; a blank line before other text is refused. */
static hfsad_status skip_blank(reader *r, bool *over)
{
    const char *p = skip_spaces(r, r->at);
    *over = p == r->end;
    if (*over || !at_line_end(r, p))
        return HFSAD_OK;
    while (p < r->end && (is_space(*p) || *p == '\r' || *p == '\n'))
        p++;
    *over = p == r->end;
    if (*over)
        return HFSAD_OK;
    return line_error(r, "a blank line before the end; remove it");
}

/* ---- header ---- */

typedef struct {
    slice name;
    size_t column;
} sorted_column;

static int compare_columns(const void *left, const void *right)
{
    const sorted_column *a = left, *b = right;
    const size_t common = a->name.length < b->name.length ? a->name.length : b->name.length;
    const int order = memcmp(a->name.text, b->name.text, common);
    if (order != 0)
        return order;
    if (a->name.length != b->name.length)
        return a->name.length < b->name.length ? -1 : 1;
    return a->column < b->column ? -1 : 1;
}

static hfsad_status check_duplicates(const reader *r)
{
    sorted_column *sorted = alloc_raw(r->n_columns, sizeof *sorted);
    if (!sorted)
        return error_memory(r->err, r->n_columns * sizeof *sorted, "the header");
    for (size_t c = 0; c < r->n_columns; c++)
        sorted[c] = (sorted_column){r->columns[c], c};
    qsort(sorted, r->n_columns, sizeof *sorted, compare_columns);
    hfsad_status status = HFSAD_OK;
    for (size_t i = 1; i < r->n_columns && !status; i++) {
        const sorted_column *a = &sorted[i - 1], *b = &sorted[i];
        if (a->name.length == b->name.length && memcmp(a->name.text, b->name.text, a->name.length) == 0)
            status = column_error(r, b->column, "duplicate column: column %zu has the same name; rename or remove one",
                                  a->column + 1);
    }
    free(sorted);
    return status;
}

static bool is_called(slice name, const char *text)
{
    return name.length == strlen(text) && memcmp(name.text, text, name.length) == 0;
}

static const char *expected_header(const reader *r)
{
    return r->in->client.text ? "y,x1,x2,..." : "edge,client,y,x1,x2,...";
}

static hfsad_status refuse_missing(const reader *r, int kind, slice header)
{
    const char *name = SPECIAL_NAMES[kind];
    char shown[EXCERPT_SIZE];
    for (size_t c = 0; c < r->n_columns && kind != WEIGHT; c++)
        if (r->columns[c].length == strlen(name) && strncasecmp(r->columns[c].text, name, strlen(name)) == 0)
            return column_error(r, c, "expected \"%s\", in lower case", name);
    if (kind == EDGE || kind == WEIGHT)
        return HFSAD_OK; /* all clients are below the cloud, all weights are 1 */
    return line_error(r, "no column \"%s\" in the header \"%s\"; expected %s", name, excerpt(shown, header),
                      expected_header(r));
}

/* Whether a column is the special column of that kind. A weight comes directly after y; in any other place it is a
 * feature. */
static bool is_special(const reader *r, size_t column, int kind)
{
    if (!is_called(r->columns[column], SPECIAL_NAMES[kind]))
        return false;
    return kind != WEIGHT || (column > 0 && is_called(r->columns[column - 1], SPECIAL_NAMES[Y]));
}

/* Finds the columns that are not features. */
static hfsad_status find_specials(reader *r, slice header)
{
    bool found[SPECIALS] = {false};
    for (size_t c = 0; c < r->n_columns; c++) {
        if (r->columns[c].length == 0)
            return column_error(r, c, "empty name in the header; expected a name for every column");
        for (int kind = 0; kind < SPECIALS; kind++)
            if (!found[kind] && is_special(r, c, kind)) {
                found[kind] = true;
                r->specials[r->n_specials++] = (special){c, kind};
            }
    }
    const bool own = r->in->client.text;
    for (size_t s = 0; own && s < r->n_specials; s++)
        if (r->specials[s].kind == EDGE || r->specials[s].kind == CLIENT)
            return column_error(r, r->specials[s].column,
                                "this file belongs to a single client, named after the file; remove this column");
    for (int kind = own ? Y : EDGE; kind < SPECIALS; kind++) {
        const bool missing = !found[kind] && !(kind == Y && r->in->y_optional);
        const hfsad_status status = missing ? refuse_missing(r, kind, header) : HFSAD_OK;
        if (status)
            return status;
    }
    const hfsad_status status = intake_y(r->in, r->name, found[Y]);
    return status ? status : check_duplicates(r);
}

static hfsad_status read_header(reader *r)
{
    if (at_line_end(r, skip_spaces(r, r->at)))
        return line_error(r, "the first line is blank; expected the header %s", expected_header(r));
    const char *start = r->at;
    size_t capacity = 0;
    for (;;) {
        slice name = {"", 0};
        const hfsad_status status = read_text(r, r->n_columns, &name);
        if (status)
            return status;
        if (!alloc_grow((void **)&r->columns, &capacity, r->n_columns + 1, sizeof *r->columns))
            return error_memory(r->err, (r->n_columns + 1) * sizeof *r->columns, "the header");
        r->columns[r->n_columns++] = name;
        if (memchr(name.text, '\0', name.length))
            return column_error(r, r->n_columns - 1, "a NUL byte; expected text in UTF-8");
        if (r->at == r->end || *r->at != ',')
            break;
        r->at++;
    }
    const hfsad_status status = find_specials(r, (slice){start, (size_t)(r->at - start)});
    if (status)
        return status;
    if (r->n_columns == r->n_specials)
        return line_error(r, "no column with a feature in the header; expected %s", expected_header(r));
    next_line(r);
    r->body = r->at;
    return HFSAD_OK;
}

/* ---- rows ---- */

/* The features' names must be those of the other CSV files. */
static hfsad_status check_names(const reader *r)
{
    hfsad_status status = HFSAD_OK;
    size_t feature = 0;
    for (size_t c = 0, s = 0; c < r->n_columns && !status; c++) {
        if (s < r->n_specials && r->specials[s].column == c)
            s++;
        else
            status = intake_name(r->in, r->name, c, feature++, r->columns[c]);
    }
    return status;
}

static hfsad_status read_special(reader *r, size_t column, int kind, builder_entry *entry)
{
    if (kind == Y) {
        entry->y_column = column + 1;
        return number_field(r, column, &entry->y);
    }
    if (kind == WEIGHT) {
        entry->weight_column = column + 1;
        return number_field(r, column, &entry->weight);
    }
    if (kind == EDGE) {
        entry->edge_column = column + 1;
        return name_field(r, column, &entry->path);
    }
    entry->client_column = column + 1;
    const hfsad_status status = name_field(r, column, &entry->client);
    if (!status)
        builder_expect(r->builder, entry->client);
    return status;
}

static hfsad_status read_row(reader *r)
{
    builder_entry entry = {.path = r->in->path,
                           .client = r->in->client,
                           .weight = 1,
                           .file = r->name,
                           .line = r->line,
                           .begun = r->in->client.text};
    double *x = builder_next_row(r->builder);
    size_t column = 0;
    for (size_t s = 0; s < r->n_specials; s++) {
        const size_t stop = r->specials[s].column;
        hfsad_status status = read_features(r, column, stop, x);
        if (!status)
            status = read_special(r, stop, r->specials[s].kind, &entry);
        if (status)
            return status;
        x += stop - column;
        column = stop + 1;
    }
    const hfsad_status status = read_features(r, column, r->n_columns, x);
    return status ? status : builder_commit(r->builder, &entry, r->err);
}

static hfsad_status read_rows(reader *r, file_bytes *from)
{
    const size_t before = builder_rows(r->builder);
    const size_t least = 2 * builder_features(r->builder); /* a digit and a comma per number */
    for (;;) {
        bool over;
        hfsad_status status = skip_blank(r, &over);
        if (status)
            return status;
        if (over)
            break;
        if (builder_is_full(r->builder) &&
            (status = intake_room(r->in, (size_t)(r->at - r->body), (size_t)(r->end - r->at), least)))
            return status;
        status = read_row(r);
        if (status)
            return status;
        next_line(r);
        bytes_release(from, r->body, r->line_start);
    }
    if (builder_rows(r->builder) == before)
        return line_error(r, "no row after the header; expected at least one for every client");
    return HFSAD_OK;
}

hfsad_status csv_take(intake *in, file_bytes *from, const char *name)
{
    const char *expected = in->client.text ? EXPECTED_OWN_CSV : EXPECTED_CSV;
    reader r = {.name = name, .at = from->bytes, .end = from->bytes + from->size, .line = 1, .in = in, .err = in->err};
    hfsad_status status = text_begin(&r.at, r.end, name, expected, r.err);
    r.line_start = r.at;
    if (!status)
        status = read_header(&r);
    if (!status)
        status = intake_begin(in, name, false, r.n_columns - r.n_specials);
    if (!status)
        status = check_names(&r);
    r.builder = in->builder;
    if (!status)
        status = read_rows(&r, from);
    free(r.columns);
    return status;
}

hfsad_status csv_parse(const char *bytes, size_t size, const char *name, bool as_rows, dataset **d, hfsad_error *err)
{
    file_bytes from = {.bytes = bytes ? bytes : "", .size = size};
    intake in = {.err = err};
    const hfsad_status status = csv_take(&in, &from, name);
    return intake_finish(&in, status, as_rows, d);
}

/* Numbers are counted beyond those expected, so that the message can say how many there are. */
static hfsad_status read_numbers(reader *r, double *values, size_t count, const char *what)
{
    size_t found = 0;
    for (;; found++) {
        bool over;
        hfsad_status status = skip_blank(r, &over);
        if (status)
            return status;
        if (over)
            break;
        double beyond;
        status = number_field(r, 0, found < count ? &values[found] : &beyond);
        if (status)
            return status;
        next_line(r);
    }
    if (found == count)
        return HFSAD_OK;
    return error_set(r->err, HFSAD_ERROR_INPUT, "%.*s: %zu numbers for %s, expected %zu: one per line and feature",
                     NAME_SHOWN, r->name, found, what, count);
}

hfsad_status vector_parse(double *values, size_t count, const char *bytes, size_t size, const char *name,
                          const char *what, hfsad_error *err)
{
    const char *start = bytes ? bytes : "";
    slice column = {what, strlen(what)};
    reader r = {
        .name = name, .at = start, .end = start + size, .line = 1, .columns = &column, .n_columns = 1, .err = err};
    const hfsad_status status = text_begin(&r.at, r.end, name, "one number per line", err);
    r.line_start = r.at;
    return status ? status : read_numbers(&r, values, count, what);
}

hfsad_status vector_read(double *values, size_t count, const char *path, const char *what, hfsad_error *err)
{
    char expected[100];
    snprintf(expected, sizeof expected, "the numbers of %.40s, one per line", what);
    file_bytes f;
    hfsad_status status = bytes_open(&f, path, true, expected, err);
    if (!status)
        status = vector_parse(values, count, f.bytes, f.size, path, what, err);
    bytes_close(&f);
    return status;
}
