/*
 * Tables in JSON, as pandas and R's jsonlite write them. The table is converted to CSV in memory and read as CSV, so
 * that columns, categories and missing values mean the same. Forms:
 *
 *     [{"y": 1, "x": 2}, ...]                        records; also JSON lines, one record per line
 *     {"y": [1, ...], "x": [2, ...]}                 columns
 *     {"y": {"0": 1, ...}, "x": {"0": 2, ...}}       columns with row labels, which are skipped
 *     {"columns": ["y", "x"], "data": [[1, 2], ...]} rows with a header
 *     {"schema": ..., "data": [{"y": 1}, ...]}       records with a schema
 */
#define _POSIX_C_SOURCE 200809L /* open_memstream */
#include "base/error.h"
#include "data/format.h"

#include <cjson/cJSON.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPECTED_JSON "expected a table in JSON: a list of records, or an object of columns"

typedef struct {
    FILE *to;
    const char **names;
    size_t count, room;
    const cJSON **cells; /* count values of a record */
    bool nested, no_memory;
} json_table;

static void put_text(FILE *o, const char *text)
{
    const bool plain = !text[strcspn(text, ",\"\r\n")] && *text != ' ';
    if (plain) {
        fputs(text, o);
        return;
    }
    fputc('"', o);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', o);
        fputc(*text == '\n' || *text == '\r' ? ' ' : *text, o); /* a field must end on the line on which it begins */
    }
    fputc('"', o);
}

static void put_cell(json_table *t, const cJSON *cell, bool first)
{
    if (!first)
        fputc(',', t->to);
    if (cJSON_IsNumber(cell))
        fprintf(t->to, "%.17g", cell->valuedouble);
    else if (cJSON_IsBool(cell))
        fputc(cJSON_IsTrue(cell) ? '1' : '0', t->to);
    else if (cJSON_IsString(cell))
        put_text(t->to, cell->valuestring);
    else if (cell && !cJSON_IsNull(cell))
        t->nested = true;
}

/* jsonlite calls the row labels of R "_row". */
static bool is_label(const char *name)
{
    return !strcmp(name, "_row");
}

/* The column with this name; a new name adds a column. near: its likely place. */
static size_t column_of(json_table *t, const char *name, size_t near)
{
    if (near < t->count && !strcmp(t->names[near], name))
        return near;
    for (size_t i = 0; i < t->count; i++)
        if (!strcmp(t->names[i], name))
            return i;
    if (t->count == t->room) {
        const size_t room = 2 * t->room + 64;
        const char **names = realloc(t->names, room * sizeof *names);
        if (names)
            t->names = names;
        const cJSON **cells = realloc(t->cells, room * sizeof *cells);
        if (cells)
            t->cells = cells;
        t->no_memory = !names || !cells;
        if (t->no_memory)
            return 0;
        t->room = room;
    }
    t->names[t->count] = name;
    return t->count++;
}

static void put_header(json_table *t)
{
    for (size_t i = 0; i < t->count; i++) {
        fputs(i ? "," : "", t->to);
        put_text(t->to, t->names[i]);
    }
    fputc('\n', t->to);
}

static void put_records(json_table *t, const cJSON *list, const char *skipped)
{
    const cJSON *record, *cell;
    cJSON_ArrayForEach(record, list)
    {
        size_t near = 0;
        t->nested = t->nested || !cJSON_IsObject(record);
        cJSON_ArrayForEach(cell, record)
        {
            if (cell->string && !is_label(cell->string) && (!skipped || strcmp(cell->string, skipped) != 0))
                near = column_of(t, cell->string, near) + 1;
        }
    }
    put_header(t);
    if (t->no_memory || !t->cells)
        return;
    cJSON_ArrayForEach(record, list)
    {
        size_t near = 0;
        memset(t->cells, 0, t->count * sizeof *t->cells);
        cJSON_ArrayForEach(cell, record)
        {
            if (!cell->string || is_label(cell->string) || (skipped && !strcmp(cell->string, skipped)))
                continue;
            const size_t at = column_of(t, cell->string, near);
            t->cells[at] = cell;
            near = at + 1;
        }
        for (size_t i = 0; i < t->count; i++)
            put_cell(t, t->cells[i], i == 0);
        fputc('\n', t->to);
    }
}

/* Reads an object of lists, or of objects with row labels; all must have the same length. */
static void put_columns(json_table *t, const cJSON *root)
{
    const cJSON *column;
    int rows = -1;
    cJSON_ArrayForEach(column, root)
    {
        if (is_label(column->string))
            continue;
        t->nested = t->nested || (rows >= 0 && cJSON_GetArraySize(column) != rows);
        rows = cJSON_GetArraySize(column);
        const size_t at = column_of(t, column->string, t->count);
        if (t->no_memory)
            return;
        t->cells[at] = column->child;
    }
    put_header(t);
    for (int r = 0; r < rows && !t->nested; r++) {
        for (size_t i = 0; i < t->count; i++) {
            put_cell(t, t->cells[i], i == 0);
            t->cells[i] = t->cells[i]->next;
        }
        fputc('\n', t->to);
    }
}

static void put_rows(json_table *t, const cJSON *head, const cJSON *rows)
{
    const cJSON *item, *row;
    cJSON_ArrayForEach(item, head)
    {
        t->nested = t->nested || !cJSON_IsString(item);
        if (!t->nested)
            column_of(t, item->valuestring, t->count);
    }
    t->nested = t->nested || t->count != (size_t)cJSON_GetArraySize(head);
    put_header(t);
    cJSON_ArrayForEach(row, rows)
    {
        t->nested = t->nested || (size_t)cJSON_GetArraySize(row) != t->count;
        cJSON_ArrayForEach(item, row) put_cell(t, item, item == row->child);
        fputc('\n', t->to);
    }
}

static bool has_only(const cJSON *root, bool lists)
{
    const cJSON *item;
    cJSON_ArrayForEach(item, root)
    {
        if (lists ? !cJSON_IsArray(item) : !cJSON_IsObject(item))
            return false;
    }
    return root->child != NULL;
}

static void put_table(json_table *t, cJSON *root, cJSON *list)
{
    const cJSON *head = cJSON_GetObjectItemCaseSensitive(root, "columns"),
                *rows = cJSON_GetObjectItemCaseSensitive(root, "data");
    const bool several = cJSON_GetArraySize(list) > 1;
    if (cJSON_IsArray(root))
        put_records(t, root, NULL);
    else if (!several && cJSON_IsArray(head) && cJSON_IsArray(rows) && (!rows->child || cJSON_IsArray(rows->child)))
        put_rows(t, head, rows);
    else if (!several && cJSON_GetObjectItemCaseSensitive(root, "schema") && cJSON_IsArray(rows))
        put_records(t, rows, "index");
    else if (!several && (has_only(root, true) || has_only(root, false)))
        put_columns(t, root);
    else
        put_records(t, list, NULL);
}

/* Parses one value after the other, as in JSON lines; NULL: not JSON, and *at is the place. */
static cJSON *parse_all(const char *bytes, size_t size, size_t *at)
{
    cJSON *list = cJSON_CreateArray();
    const char *end = bytes + size;
    for (const char *next = bytes; list;) {
        while (next < end && isspace((unsigned char)*next))
            next++;
        *at = (size_t)(next - bytes);
        if (next == end)
            break;
        cJSON *value = cJSON_ParseWithLengthOpts(next, (size_t)(end - next), &next, false);
        if (!value || !cJSON_AddItemToArray(list, value)) {
            *at = value ? *at : (size_t)(cJSON_GetErrorPtr() - bytes);
            cJSON_Delete(value);
            cJSON_Delete(list);
            return NULL;
        }
    }
    return list;
}

static hfsad_status refuse_json(const intake *in, const char *bytes, size_t at, const char *name)
{
    size_t line = 1;
    for (size_t i = 0; i < at; i++)
        line += bytes[i] == '\n';
    return error_set(in->err, HFSAD_ERROR_INPUT, "%.*s:%zu: not JSON; " EXPECTED_JSON, NAME_SHOWN, name, line);
}

static hfsad_status records_take(intake *in, file_bytes *from, const char *name)
{
    const char *start = from->bytes;
    size_t at = 0, size = 0;
    hfsad_status status = text_begin(&start, from->bytes + from->size, name, EXPECTED_JSON, in->err);
    if (status)
        return status;
    const size_t length = (size_t)(from->bytes + from->size - start);
    cJSON *list = parse_all(start, length, &at);
    cJSON *root = cJSON_GetArrayItem(list, 0);
    if (!list || !(cJSON_IsArray(root) || cJSON_IsObject(root))) {
        cJSON_Delete(list);
        return refuse_json(in, start, at < length ? at : 0, name);
    }
    char *text = NULL;
    json_table t = {.to = open_memstream(&text, &size)};
    if (t.to)
        put_table(&t, root, list);
    const bool written = t.to && fclose(t.to) == 0 && !t.no_memory;
    cJSON_Delete(list);
    free(t.names);
    free(t.cells);
    if (!written)
        status = error_memory(in->err, size, "a table in JSON");
    else if (t.nested)
        status = error_set(in->err, HFSAD_ERROR_INPUT,
                           "%.*s: a value is a list or an object, or columns differ in length; " EXPECTED_JSON,
                           NAME_SHOWN, name);
    else
        status = csv_format.take(in, &(file_bytes){.bytes = text, .size = size}, name);
    free(text);
    return status;
}

const data_format records_format = {
    .ends = {".json", ".jsonl", ".ndjson"},
    .expected = EXPECTED_JSON,
    .text = true,
    .columns = true,
    .clients = CLIENTS_COLUMN,
    .take = records_take,
};
