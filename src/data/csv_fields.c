/* Lines and fields of CSV text, and error messages about them. */
#include "data/csv_parts.h"

#include "base/error.h"
#include "data/parse_number.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { NUMBER_BYTES = 64 /* bytes of a number with a decimal comma */ };

hfsad_status csv_line_error(const reader *r, const char *format, ...)
{
    char text[sizeof r->err->message];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return error_set(r->err, HFSAD_ERROR_INPUT, "%.*s:%zu: %s", NAME_SHOWN, r->name, r->line, text);
}

hfsad_status csv_column_error(const reader *r, size_t column, const char *format, ...)
{
    char text[sizeof r->err->message], shown[EXCERPT_SIZE];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (column >= r->n_columns) /* in the header, or beyond its last column */
        return csv_line_error(r, "column %zu: %s", column + 1, text);
    return csv_line_error(r, "column %zu (%s): %s", column + 1, excerpt(shown, r->columns[column]), text);
}

void csv_next_line(reader *r)
{
    if (r->at < r->end && *r->at == '\r')
        r->at++;
    if (r->at < r->end)
        r->at++;
    r->line++;
    r->line_start = r->at;
}

static bool ends_field(const reader *r, char c)
{
    return c == r->separator || (r->separator == ' ' && c == '\t');
}

static const char *separator_name(const reader *r)
{
    return r->separator == ',' ? "comma" : r->separator == ';' ? "semicolon" : r->separator == '\t' ? "tab" : "space";
}

static hfsad_status read_quoted(reader *r, const char *p, size_t column, slice *field)
{
    const char *start = ++p;
    while (p < r->end && *p != '\n' && (*p != '"' || (r->end - p > 1 && p[1] == '"')))
        p += *p == '"' ? 2 : 1;
    if (p == r->end || *p == '\n')
        return csv_column_error(r, column, "a quote is not closed on its line; close it");
    *field = (slice){start, (size_t)(p - start)};
    r->at = r->separator == ' ' ? p + 1 : csv_skip_spaces(r, p + 1);
    if (r->at < r->end && !ends_field(r, *r->at) && !csv_at_line_end(r, r->at))
        return csv_column_error(r, column, "text after the closing quote; expected a %s", separator_name(r));
    return HFSAD_OK;
}

hfsad_status csv_read_text(reader *r, size_t column, slice *field)
{
    const char *p = csv_skip_spaces(r, r->at), *start = p;
    if (p < r->end && *p == '"')
        return read_quoted(r, p, column, field);
    for (; p < r->end && !ends_field(r, *p) && *p != '\n'; p++) {
        if (*p == '"')
            return csv_column_error(r, column, "a quote inside a field; expected quotes around the whole field");
        if (*p == '\r' && csv_at_line_end(r, p))
            break;
    }
    r->at = p;
    while (p > start && csv_is_space(r, p[-1]))
        p--;
    *field = (slice){start, (size_t)(p - start)};
    return HFSAD_OK;
}

bool csv_take_separator(reader *r)
{
    if (r->separator == ' ') {
        r->at = csv_skip_spaces(r, r->at);
        return !csv_at_line_end(r, r->at);
    }
    const bool there = r->at < r->end && *r->at == r->separator;
    r->at += there;
    return there;
}

/* The reader is behind the surplus separator. */
static hfsad_status refuse_long_row(reader *r)
{
    size_t fields = r->n_columns;
    slice first = {"", 0}, field = first;
    do {
        if (csv_read_text(r, fields, &field))
            return HFSAD_ERROR_INPUT;
        if (fields++ == r->n_columns)
            first = field;
    } while (csv_take_separator(r));
    char shown[EXCERPT_SIZE];
    return csv_line_error(r, "%zu fields, expected %zu: column %zu (\"%s\") is one too many", fields, r->n_columns,
                          r->n_columns + 1, excerpt(shown, first));
}

hfsad_status csv_close_field(reader *r, size_t column)
{
    const bool last = column + 1 == r->n_columns;
    if (csv_take_separator(r))
        return last ? refuse_long_row(r) : HFSAD_OK;
    if (last)
        return HFSAD_OK;
    char shown[EXCERPT_SIZE];
    return csv_line_error(r, "%zu fields, expected %zu: column %zu (%s) is missing", column + 1, r->n_columns,
                          column + 2, excerpt(shown, r->columns[column + 1]));
}

hfsad_status csv_text_field(reader *r, size_t column, slice *field)
{
    const hfsad_status status = csv_read_text(r, column, field);
    return status ? status : csv_close_field(r, column);
}

/* ---- numbers ---- */

/* Counts the rows without a value in the column, from this row on. */
static size_t count_holes(const reader *r, size_t column)
{
    reader walk = *r;
    walk.err = NULL; /* other errors in these rows are not reported here */
    walk.at = r->line_start;
    size_t holes = 0;
    for (bool over; !csv_skip_blank(&walk, &over) && !over; csv_next_line(&walk)) {
        slice field = {"", 0};
        for (size_t c = 0; c < r->n_columns; c++) {
            if (csv_text_field(&walk, c, &field))
                return holes;
            holes += c == column && field_is_hole(field);
        }
    }
    return holes;
}

/* Independent of the locale. */
static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static column_role role_of(const reader *r, size_t column)
{
    for (size_t s = 0; s < r->n_specials; s++)
        if (r->specials[s].column == column)
            return r->specials[s].role;
    return COLUMN_FEATURE;
}

hfsad_status csv_missing_level(const reader *r, size_t column)
{
    const size_t holes = count_holes(r, column);
    return csv_column_error(
        r, column, "%zu row%s no value in this column of text; give %s a text such as \"other\", or leave %s out",
        holes, holes == 1 ? " has" : "s have", holes == 1 ? "it" : "them", holes == 1 ? "the row" : "the rows");
}

static hfsad_status refuse_hole(const reader *r, size_t column, slice field)
{
    char shown[EXCERPT_SIZE];
    const char *const wanted = field.length == 0 ? "a number" : "a finite number";
    char what[EXCERPT_SIZE + 40];
    if (field.length == 0)
        snprintf(what, sizeof what, "empty field (a hole)");
    else
        snprintf(what, sizeof what, "\"%s\" is not finite", excerpt(shown, field));
    const column_role role = r->body ? role_of(r, column) : COLUMN_SKIPPED;
    if (role != COLUMN_FEATURE && role != COLUMN_Y)
        return csv_column_error(r, column, "%s; expected %s", what, wanted);
    const size_t holes = count_holes(r, column);
    if (role == COLUMN_Y)
        return csv_column_error(
            r, column, "%s; %zu row%s no value in this column; expected %s: fill %s, or leave %s out", what, holes,
            holes == 1 ? " has" : "s have", wanted, holes == 1 ? "it" : "them", holes == 1 ? "the row" : "the rows");
    return csv_column_error(r, column,
                            "%s; %zu row%s no value in this column; expected %s: fill %s, or set data.missing to mean",
                            what, holes, holes == 1 ? " has" : "s have", wanted, holes == 1 ? "it" : "them");
}

/* Whether data.categorical can name the column, as `hfsad predict` needs it later. */
static bool can_be_listed(slice name)
{
    return !memchr(name.text, ',', name.length) && !memchr(name.text, '=', name.length) &&
           slice_trim(name).length == name.length;
}

static hfsad_status refuse_text(const reader *r, size_t column, const char *shown, bool letter)
{
    const column_role role = r->body ? role_of(r, column) : COLUMN_SKIPPED;
    char name[EXCERPT_SIZE];
    if (role == COLUMN_FEATURE && r->in->client.text)
        csv_column_error(r, column,
                         "\"%s\" is not a number; if the column is a category, state all levels of all clients, "
                         "data: {categorical: [\"%s=%s|...\"]}; or leave it out, data: {features: [-%s]}",
                         shown, excerpt(name, r->columns[column]), shown, name);
    else if (role == COLUMN_FEATURE && letter)
        csv_column_error(
            r, column,
            "\"%s\" is not a number; " EXPECTED_NUMBER
            "; a column of text can be a category (data.categorical) or be left out, data: {features: [-%s]}",
            shown, excerpt(name, r->columns[column]));
    else if (role == COLUMN_Y && letter)
        csv_column_error(r, column,
                         "\"%s\" is not a number; " EXPECTED_NUMBER
                         "; if y is a class, state the labels: data: {labels: [%s, ...]}",
                         shown, shown);
    else
        csv_column_error(r, column, "\"%s\" is not a number; " EXPECTED_NUMBER, shown);
    if ((role != COLUMN_FEATURE && role != COLUMN_Y) || !r->in->guesses)
        return HFSAD_ERROR_INPUT;
    if (role == COLUMN_FEATURE && !can_be_listed(r->columns[column]))
        return csv_column_error(
            r, column,
            "\"%s\" is not a number, and the name of a category cannot hold a comma, an equals sign "
            "or spaces at its ends; rename the column",
            shown);
    r->in->again = true;
    const hfsad_status status =
        table_add_text(&r->in->memory, r->columns[column], role == COLUMN_Y, r->err ? r->err->message : "", r->err);
    return status ? status : HFSAD_ERROR_INPUT;
}

static hfsad_status refuse_number(const reader *r, size_t column, slice field, bool infinite)
{
    char shown[EXCERPT_SIZE];
    excerpt(shown, field);
    if (field_is_hole(field))
        return refuse_hole(r, column, field);
    if (infinite)
        return csv_column_error(r, column, "\"%s\" is too large for a double; expected a finite number", shown);
    const size_t sign = field.text[0] == '-' || field.text[0] == '+';
    if (field.length - sign >= 3 &&
        (strncasecmp(field.text + sign, "nan", 3) == 0 || strncasecmp(field.text + sign, "inf", 3) == 0))
        return csv_column_error(r, column, "\"%s\" is not finite; expected a finite number", shown);
    return refuse_text(r, column, shown, is_letter(field.text[0]));
}

/* The spellings of R, pandas and JSON. */
static bool parse_truth(slice field, double *value)
{
    static const char *const words[] = {"false", "true", "False", "True", "FALSE", "TRUE"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (field.length == strlen(words[i]) && memcmp(field.text, words[i], field.length) == 0) {
            *value = (double)(i % 2);
            return true;
        }
    return false;
}

bool csv_parse_field(const reader *r, slice field, double *value)
{
    const char *end = field.text + field.length;
    if ((number_parse(field.text, end, value) == end && field.length > 0) || parse_truth(field, value))
        return true;
    char text[NUMBER_BYTES];
    const char *comma = r->separator == ';' ? memchr(field.text, ',', field.length) : NULL;
    if (!comma || field.length > sizeof text)
        return false;
    memcpy(text, field.text, field.length);
    text[comma - field.text] = '.';
    return number_parse(text, text + field.length, value) == text + field.length;
}

hfsad_status csv_number_field(reader *r, size_t column, double *value, bool *hole)
{
    slice field = {"", 0};
    const hfsad_status status = csv_read_text(r, column, &field);
    if (status)
        return status;
    while (field.length > 0 && csv_is_space(r, *field.text)) /* spaces within quotes */
        field.text++, field.length--;
    while (field.length > 0 && csv_is_space(r, field.text[field.length - 1]))
        field.length--;
    if (hole && (*hole = field_is_hole(field)))
        return csv_close_field(r, column);
    if (!csv_parse_field(r, field, value))
        return refuse_number(r, column, field, false);
    if (!isfinite(*value))
        return refuse_number(r, column, field, true);
    return csv_close_field(r, column);
}

hfsad_status csv_skip_blank(reader *r, bool *over)
{
    const char *p = csv_skip_spaces(r, r->at);
    *over = p == r->end;
    if (*over || !csv_at_line_end(r, p))
        return HFSAD_OK;
    while (p < r->end && (csv_is_space(r, *p) || *p == '\r' || *p == '\n'))
        p++;
    *over = p == r->end;
    if (*over)
        return HFSAD_OK;
    return csv_line_error(r, "a blank line before the end; remove it");
}
