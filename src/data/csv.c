/*
 * Reads CSV into a data set: RFC 4180, with spaces allowed around fields. Every line is a row; quoted newlines are not
 * supported.
 *
 * A number is parsed in the mapped file and written to its final place in the builder. Nearly every number is read by
 * the loop of read_features; spaces, quotes, the last column and all errors go through csv_number_field. Nothing
 * depends on the locale (parse_number.c), and none is set.
 *
 * A file of the whole federation names the client of every row, or its rows are dealt over clients. A file of a single
 * client names no clients; intake.h names that client.
 */
#include "data/csv.h"
#include "base/read_file.h"
#include "data/generated.h"

#include "base/alloc.h"
#include "base/error.h"
#include "data/csv_parts.h"
#include "data/format.h"
#include "data/parse_number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The number of a column among the numeric features. */
static size_t number_of(const reader *r, size_t column)
{
    size_t s = 0;
    while (s < r->n_specials && r->specials[s].column < column)
        s++;
    return column - s;
}

/* A feature that may have no value in this row. */
static hfsad_status feature_field(reader *r, size_t column, double *x)
{
    bool hole = false;
    const hfsad_status status = csv_number_field(r, column, x, r->in->table.missing == MISSING_MEAN ? &hole : NULL);
    if (status || !hole)
        return status;
    const table_memory *m = &r->in->memory;
    const size_t i = number_of(r, column);
    if (r->in->table.means) {
        *x = r->in->table.means[i];
        return HFSAD_OK;
    }
    if (i >= m->n_sums || m->counts[i] == 0)
        return csv_column_error(r, column, "no row has a value in this column; remove the column");
    *x = m->sums[i] / (double)m->counts[i];
    return HFSAD_OK;
}

/* Reads the numbers of columns [column, stop). */
static hfsad_status read_features(reader *r, size_t column, size_t stop, double *x)
{
    const size_t quick = stop < r->n_columns ? stop : r->n_columns - 1;
    const char separator = r->separator;
    for (; column < stop; column++, x++) {
        const char *p = column < quick ? number_parse(r->at, r->end, x) : NULL;
        if (p && p < r->end && *p == separator && isfinite(*x)) {
            r->at = p + 1;
            continue;
        }
        const hfsad_status status = feature_field(r, column, x);
        if (status)
            return status;
    }
    return HFSAD_OK;
}

/* Checks that the names of the features equal those of the other CSV files. */
static hfsad_status check_names(const reader *r)
{
    hfsad_status status = HFSAD_OK;
    size_t feature = 0;
    for (size_t c = 0, s = 0; c < r->n_columns && !status; c++) {
        const special *here = s < r->n_specials && r->specials[s].column == c ? &r->specials[s++] : NULL;
        if (!here)
            status = intake_name(r->in, r->name, c, feature++, r->columns[c]);
        if (!here || here->role != COLUMN_CATEGORY)
            continue;
        const category *k = &r->in->memory.categories[here->category];
        for (size_t l = 1; l < k->n_levels && !status; l++) {
            char name[600];
            const int length =
                snprintf(name, sizeof name, "%.*s=%s", (int)(k->name.length < 255 ? k->name.length : 255), k->name.text,
                         k->texts.text + k->levels[l]);
            const size_t most = sizeof name - 1;
            status =
                intake_name(r->in, r->name, c, feature++, (slice){name, (size_t)length < most ? (size_t)length : most});
        }
    }
    return status;
}

static hfsad_status refuse_level(const reader *r, size_t column, const category *k, slice field, const char *what)
{
    char shown[EXCERPT_SIZE];
    if (field_is_hole(field))
        return csv_missing_level(r, column);
    return csv_column_error(r, column, "\"%s\" is not one of the %zu %s (\"%s\", ...)", excerpt(shown, field),
                            k->n_levels, what, k->texts.text + k->levels[0]);
}

/* The field without the spaces around it, also within quotes, because lists of levels have no such spaces. */
static hfsad_status level_field(reader *r, size_t column, slice *field)
{
    const hfsad_status status = csv_text_field(r, column, field);
    *field = slice_trim(*field);
    return status;
}

/* Sets the feature of the field's level to 1 and the features of the other levels to 0. */
static hfsad_status read_category(reader *r, const special *s, double *x)
{
    const category *k = &r->in->memory.categories[s->category];
    slice field = {"", 0};
    const hfsad_status status = level_field(r, s->column, &field);
    if (status)
        return status;
    const size_t level = category_find(k, field);
    if (level == SIZE_MAX)
        return refuse_level(r, s->column, k, field, "levels of this category");
    for (size_t l = 1; l < k->n_levels; l++)
        x[l - 1] = l == level;
    return HFSAD_OK;
}

/* Sets y to the class of the row: the place of its label. */
static hfsad_status read_label(reader *r, size_t column, double *y)
{
    const category *k = &r->in->memory.labels;
    slice field = {"", 0};
    const hfsad_status status = level_field(r, column, &field);
    if (status)
        return status;
    size_t label = category_find(k, field);
    if (label == SIZE_MAX && csv_parse_field(r, field, y))
        label = labels_find_number(k, *y);
    *y = (double)label;
    return label == SIZE_MAX ? refuse_level(r, column, k, field, "labels") : HFSAD_OK;
}

static hfsad_status read_special(reader *r, const special *s, builder_entry *entry)
{
    slice skipped;
    hfsad_status status;
    switch (s->role) {
    case COLUMN_Y:
        entry->y_column = s->column + 1;
        return r->in->memory.has_labels ? read_label(r, s->column, &entry->y)
                                        : csv_number_field(r, s->column, &entry->y, NULL);
    case COLUMN_WEIGHT:
        entry->weight_column = s->column + 1;
        return csv_number_field(r, s->column, &entry->weight, NULL);
    case COLUMN_EDGE:
        entry->edge_column = s->column + 1;
        return csv_text_field(r, s->column, &entry->path);
    case COLUMN_CLIENT:
        entry->client_column = s->column + 1;
        status = csv_text_field(r, s->column, &entry->client);
        if (!status)
            builder_expect(r->builder, entry->client);
        return status;
    default:
        return csv_text_field(r, s->column, &skipped);
    }
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
    for (const special *s = r->specials; s < r->specials + r->n_specials; s++) {
        hfsad_status status = read_features(r, column, s->column, x);
        x += s->column - column;
        column = s->column + 1;
        if (status)
            return status;
        if (s->role == COLUMN_CATEGORY) {
            status = read_category(r, s, x);
            x += r->in->memory.categories[s->category].n_levels - 1;
        } else {
            status = read_special(r, s, &entry);
        }
        if (status)
            return status;
    }
    hfsad_status status = read_features(r, column, r->n_columns, x);
    if (!status && !r->in->client.text)
        status = intake_deal(r->in, r->names_client, &entry);
    return status ? status : builder_commit(r->builder, &entry, r->err);
}

/* The start of the first line at or after a position. */
static const char *line_at(const reader *r, size_t offset)
{
    const char *at = r->body + offset, *end = offset ? memchr(at - 1, '\n', (size_t)(r->end - at) + 1) : at;
    return offset == 0 ? at : end ? end + 1 : r->end;
}

/* With several ranks, each reads a part of the lines (part.h). A blank line at the end of a part is left to the rank
 * that reads all lines, which can tell whether it is an error. */
static hfsad_status take_part(reader *r)
{
    const unsigned rank = r->in->part.rank, count = r->in->part.count;
    const size_t each = (size_t)(r->end - r->body) / count;
    const bool last = rank + 1 == count;
    const char *from = line_at(r, each * rank), *to = last ? r->end : line_at(r, each * (rank + 1)), *p = to;
    while (p > from && (p[-1] == '\r' || p[-1] == '\n' || csv_is_space(r, p[-1])))
        p--;
    if (!last && to > from && memchr(p, '\n', (size_t)(to - p)) != to - 1)
        return csv_line_error(r, "a blank line before the end; remove it");
    r->at = r->line_start = r->body = from;
    r->end = to;
    return HFSAD_OK;
}

static hfsad_status read_rows(reader *r, file_bytes *from)
{
    const bool part = r->in->part.count > 1 && !r->in->client.text;
    const hfsad_status narrowed = part ? take_part(r) : HFSAD_OK;
    if (narrowed)
        return narrowed;
    const size_t before = builder_rows(r->builder);
    const size_t least = 2 * builder_features(r->builder); /* a digit and a comma for each number */
    for (;;) {
        bool over;
        hfsad_status status = csv_skip_blank(r, &over);
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
        csv_next_line(r);
        bytes_release(from, r->body, r->line_start);
    }
    if (builder_rows(r->builder) == before && !part)
        return csv_line_error(r, "no row after the header; expected at least one for every client");
    return HFSAD_OK;
}

/* ---- the scan: levels of categories and means of columns, if the settings do not state them ---- */

/* The category whose levels are to be found in this column; NULL: none. */
static category *scanned(reader *r, const special *s)
{
    table_memory *m = &r->in->memory;
    category *k = s && s->role == COLUMN_CATEGORY             ? &m->categories[s->category]
                  : s && s->role == COLUMN_Y && m->has_labels ? &m->labels
                                                              : NULL;
    return k && !k->given ? k : NULL;
}

static hfsad_status scan_level(reader *r, size_t column, category *k, slice field)
{
    const size_t most = k == &r->in->memory.labels ? LABELS_MOST : k->found ? LEVELS_FOUND : LEVELS_MOST;
    double value;
    char shown[EXCERPT_SIZE];
    if (field_is_hole(field))
        return csv_missing_level(r, column);
    if (k->found && csv_parse_field(r, field, &value))
        return error_set(r->err, HFSAD_ERROR_INPUT, "%s", k->wrong);
    for (size_t i = 0; i < field.length; i++)
        if (field.text[i] == ',' || field.text[i] == '|' || (unsigned char)field.text[i] < ' ')
            return csv_column_error(r, column,
                                    k == &r->in->memory.labels
                                        ? "the label holds a comma, a bar or a control character; rename it"
                                        : "the level of a category holds a comma, a bar or a control character; "
                                          "rename it, or leave the column out, data: {features: [-%s]}",
                                    excerpt(shown, k->name));
    for (size_t i = 0, bytes; i < field.length; i += bytes) /* summary.json, which hfsad predict reads, must be UTF-8 */
        if (!(bytes = utf8_length(field.text + i, field.length - i)))
            return csv_column_error(r, column, "\"%s\" is not UTF-8; save the table as UTF-8", excerpt(shown, field));
    if (k->n_levels < most || category_find(k, field) != SIZE_MAX)
        return category_add(k, field, r->err);
    if (!k->found)
        return csv_column_error(r, column, "more than %zu levels; is this a category? Remove it from data.categorical",
                                most);
    if (k == &r->in->memory.labels)
        return csv_column_error(r, column, "more than %zu different texts in y; expected numbers, or labels of classes",
                                most);
    return csv_column_error(
        r, column,
        "more than %zu different texts, too many for a category; leave it out, data: {features: [-%s]}, or "
        "state it, data: {categorical: [%s]}",
        most, excerpt(shown, k->name), shown);
}

static hfsad_status scan_field(reader *r, const special *s, size_t column, size_t number)
{
    table_memory *m = &r->in->memory;
    slice field = {"", 0};
    double value;
    if (!s && r->in->table.missing == MISSING_MEAN) {
        bool hole = false;
        const hfsad_status status = csv_number_field(r, column, &value, &hole);
        if (!status && !hole) {
            m->sums[number] += value;
            m->counts[number]++;
        }
        return status;
    }
    const hfsad_status status = level_field(r, column, &field);
    category *k = scanned(r, s);
    return status || !k ? status : scan_level(r, column, k, field);
}

static hfsad_status scan_rows(reader *r)
{
    table_memory *m = &r->in->memory;
    const size_t numbers = r->n_columns - r->n_specials;
    if (!m->sums && numbers) {
        m->sums = alloc_zero(numbers, sizeof *m->sums);
        m->counts = alloc_zero(numbers, sizeof *m->counts);
        m->n_sums = numbers;
        if (!m->sums || !m->counts)
            return error_memory(r->err, numbers * sizeof *m->sums, "the means of columns");
    }
    if (numbers != m->n_sums)
        return csv_line_error(r, "%zu features, but %zu in the first file; expected the same number in all files",
                              numbers, m->n_sums);
    for (;;) {
        bool over;
        hfsad_status status = csv_skip_blank(r, &over);
        if (status || over)
            return status;
        for (size_t c = 0, s = 0; c < r->n_columns && !status; c++) {
            const special *here = s < r->n_specials && r->specials[s].column == c ? &r->specials[s++] : NULL;
            status = scan_field(r, here, c, c - s);
        }
        if (status)
            return status;
        m->rows++;
        csv_next_line(r);
    }
}

hfsad_status csv_take(intake *in, file_bytes *from, const char *name)
{
    const char *expected = in->client.text ? EXPECTED_OWN_CSV : EXPECTED_CSV;
    reader r = {.name = name, .at = from->bytes, .end = from->bytes + from->size, .line = 1, .in = in, .err = in->err};
    hfsad_status status = text_begin(&r.at, r.end, name, expected, r.err);
    r.line_start = r.at;
    if (!status)
        status = csv_read_header(&r);
    if (!status && in->scanning) {
        status = scan_rows(&r);
    } else if (!status) {
        status = intake_begin(in, name, false, r.n_features);
        if (!status)
            status = check_names(&r);
        r.builder = in->builder;
        if (!status)
            status = read_rows(&r, from);
    }
    free(r.columns);
    free(r.specials);
    return status;
}

hfsad_status csv_parse(const char *bytes, size_t size, const char *name, const table_settings *table, bool as_rows,
                       dataset **d, hfsad_error *err)
{
    file_bytes from = {.bytes = bytes ? bytes : "", .size = size};
    intake in = {.err = err};
    hfsad_status status = intake_open(&in, table);
    if (!status && columns_need_scan(&in.memory, &in.table)) {
        in.scanning = true;
        status = csv_take(&in, &from, name);
        if (!status)
            status = intake_scanned(&in);
    }
    if (!status)
        status = csv_take(&in, &from, name);
    return intake_finish(&in, status, as_rows, d);
}

/* Counts numbers beyond the expected ones, so that the message can state their number. */
static hfsad_status read_numbers(reader *r, double *values, size_t count, const char *what)
{
    size_t found = 0;
    for (;; found++) {
        bool over;
        hfsad_status status = csv_skip_blank(r, &over);
        if (status)
            return status;
        if (over)
            break;
        double beyond;
        status = csv_number_field(r, 0, found < count ? &values[found] : &beyond, NULL);
        if (status)
            return status;
        csv_next_line(r);
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
    reader r = {.name = name,
                .at = start,
                .end = start + size,
                .line = 1,
                .separator = ',',
                .columns = &column,
                .n_columns = 1,
                .err = err};
    const hfsad_status status = text_begin(&r.at, r.end, name, "one number per line", err);
    r.line_start = r.at;
    return status ? status : read_numbers(&r, values, count, what);
}

hfsad_status vector_read(double *values, size_t count, const char *path, const char *what, hfsad_error *err)
{
    if (is_command(path))
        return generated_truth(path, values, count, err);
    char expected[100];
    snprintf(expected, sizeof expected, "the numbers of %.40s, one per line", what);
    file_bytes f;
    hfsad_status status = bytes_open(&f, path, true, expected, err);
    if (!status)
        status = vector_parse(values, count, f.bytes, f.size, path, what, err);
    bytes_close(&f);
    return status;
}

const data_format csv_format = {
    .ends = {".csv"},
    .expected = EXPECTED_CSV,
    .text = true,
    .columns = true,
    .clients = CLIENTS_COLUMN,
    .take = csv_take,
};
