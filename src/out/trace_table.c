/* See trace_table.h. */
#include "out/trace_table.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/read_file.h"
#include "data/parse_number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static hfsad_status read_head(trace_table *t, const char *text, const char *path, hfsad_error *err)
{
    const size_t length = strcspn(text, "\n");
    t->columns = 1;
    for (size_t i = 0; i < length; i++)
        t->columns += text[i] == ',';
    t->head = strndup(text, length);
    t->name = alloc_zero(t->columns, sizeof *t->name);
    if (!t->head || !t->name)
        return error_memory(err, length, path);
    char *at = t->head;
    for (size_t c = 0; c < t->columns; c++) {
        t->name[c] = at;
        at += strcspn(at, ",");
        *at++ = 0;
    }
    return HFSAD_OK;
}

/* Reads a number, or the text for a figure that is not finite. */
static const char *read_number(const char *at, const char *end, double *value)
{
    const bool negative = at < end && *at == '-';
    const char *word = at + negative;
    if (end - word >= 3 && (!strncmp(word, "nan", 3) || !strncmp(word, "inf", 3))) {
        *value = *word == 'n' ? NAN : negative ? -INFINITY : INFINITY;
        return word + 3;
    }
    return number_parse(at, end, value);
}

static hfsad_status read_rows(trace_table *t, const char *text, const char *path, hfsad_error *err)
{
    const char *end = text + strlen(text);
    for (size_t row = 0; row < t->rows; row++) {
        for (size_t c = 0; c < t->columns; c++) {
            const char *next = read_number(text, end, &t->numbers[c * t->rows + row]);
            if (!next || next == end || *next != (c + 1 < t->columns ? ',' : '\n'))
                return error_set(err, HFSAD_ERROR_INPUT, "%.300s:%zu: expected %zu numbers; field %zu is not a number",
                                 path, row + 2, t->columns, c + 1);
            text = next + 1;
        }
    }
    return HFSAD_OK;
}

static hfsad_status parse(trace_table *t, const char *text, const char *path, hfsad_error *err)
{
    const hfsad_status status = read_head(t, text, path, err);
    if (status)
        return status;
    const char *rows = text + strcspn(text, "\n");
    for (const char *p = rows; *p; p++)
        t->rows += *p != '\n' && p > text && p[-1] == '\n'; /* counts a truncated row too: it is refused below */
    if (!t->rows)
        return HFSAD_OK;
    t->numbers = alloc_raw(t->rows * t->columns, sizeof *t->numbers);
    if (!t->numbers)
        return error_memory(err, t->rows * t->columns * sizeof *t->numbers, path);
    return read_rows(t, rows + 1, path, err);
}

hfsad_status trace_table_parse(trace_table *t, const char *text, const char *path, hfsad_error *err)
{
    *t = (trace_table){0};
    const hfsad_status status = parse(t, text, path, err);
    if (status)
        trace_table_free(t);
    return status;
}

hfsad_status trace_table_read(trace_table *t, const char *path, hfsad_error *err)
{
    char *text = NULL;
    size_t size;
    *t = (trace_table){0};
    const int reason = file_read(path, SIZE_MAX, &text, &size);
    if (reason)
        return error_set(err, HFSAD_ERROR_INPUT, "%.300s: %s; expected the folder of a run that has ended", path,
                         strerror(reason));
    const hfsad_status status = trace_table_parse(t, text, path, err);
    free(text);
    return status;
}

void trace_table_free(trace_table *t)
{
    free(t->head);
    free(t->name);
    free(t->numbers);
    *t = (trace_table){0};
}

const double *trace_table_column(const trace_table *t, const char *name)
{
    for (size_t c = 0; c < t->columns; c++)
        if (!strcmp(t->name[c], name))
            return t->numbers + c * t->rows;
    return NULL;
}
