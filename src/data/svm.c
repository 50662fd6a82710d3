/*
 * Reads LIBSVM text into sparse rows: `label index:value …`; indices start at 1 and increase; # begins a comment.
 *
 * In a file of the whole federation the comment at the end of a row is the path of its client. Numbers are read as in
 * CSV (parse_number.c).
 */
#include "data/svm.h"

#include "base/error.h"
#include "data/format.h"
#include "data/parse_number.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define EXPECTED_PAIR "expected index:value such as 3:0.25"

enum {
    ROW_BYTES = 2,   /* least size of a row: a label and a line end */
    ENTRY_BYTES = 4, /* least size of an entry: a space, an index, a colon and a value */
};

/* Upper limit on an index: columns have 32 bits, and the number of features is one more. */
static const uint64_t INDEX_MOST = 0xfffffffe;

typedef struct {
    const char *name;
    const char *at, *end; /* next byte to read; end of the file */
    const char *line_start, *body;
    size_t line;
    intake *in;
} reader;

__attribute__((format(printf, 3, 4))) static hfsad_status refuse_text(const reader *r, const char *where,
                                                                      const char *format, ...)
{
    char text[sizeof r->in->err->message];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return error_set(r->in->err, HFSAD_ERROR_INPUT, "%.*s:%zu: column %zu: %s", NAME_SHOWN, r->name, r->line,
                     (size_t)(where - r->line_start) + 1, text);
}

static inline bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

static void skip_spaces(reader *r)
{
    while (r->at < r->end && is_space(*r->at))
        r->at++;
}

static bool at_word_end(const reader *r, const char *p)
{
    return p == r->end || is_space(*p) || *p == '\n' || *p == '#';
}

/* The text from p to the next space. */
static slice word_at(const reader *r, const char *p)
{
    const char *end = p;
    while (!at_word_end(r, end))
        end++;
    return (slice){p, (size_t)(end - p)};
}

static const char *line_end(const reader *r)
{
    const char *newline = memchr(r->at, '\n', (size_t)(r->end - r->at));
    return newline ? newline : r->end;
}

static hfsad_status refuse_number(const reader *r, const char *start, bool label, double value)
{
    const char *what = label ? "label" : "value";
    char shown[EXCERPT_SIZE];
    const slice word = word_at(r, start);
    excerpt(shown, word);
    const size_t sign = word.length > 0 && (word.text[0] == '-' || word.text[0] == '+');
    if (isinf(value))
        return refuse_text(r, start, "the %s \"%s\" is too large for a double; expected a finite number", what, shown);
    if (word.length - sign >= 3 &&
        (strncasecmp(word.text + sign, "nan", 3) == 0 || strncasecmp(word.text + sign, "inf", 3) == 0))
        return refuse_text(r, start, "the %s \"%s\" is not finite; expected a finite number", what, shown);
    if (label)
        return refuse_text(
            r, start,
            "the label \"%s\" is not a number; expected LIBSVM text such as 1.5 3:0.2 (the name of a CSV file "
            "ends in .csv)",
            shown);
    return refuse_text(r, start, "the value \"%s\" is not a number; expected a number such as -1.25 or 3e-4", shown);
}

static hfsad_status read_number(reader *r, bool label, double *value)
{
    *value = 0;
    const char *end = number_parse(r->at, r->end, value);
    if (!end || !at_word_end(r, end) || !isfinite(*value))
        return refuse_number(r, r->at, label, end && at_word_end(r, end) ? *value : 0);
    r->at = end;
    return HFSAD_OK;
}

static hfsad_status refuse_pair(const reader *r, const char *start)
{
    char shown[EXCERPT_SIZE];
    const slice word = word_at(r, start);
    if (word.length >= 4 && memcmp(word.text, "qid:", 4) == 0)
        return refuse_text(r, start, "\"%s\": queries (qid) are for ranking and not supported; remove them",
                           excerpt(shown, word));
    return refuse_text(r, start, "\"%s\" is not a pair; " EXPECTED_PAIR, excerpt(shown, word));
}

/* Reads an index and the colon after it. before: the previous index, or 0. */
static hfsad_status read_index(reader *r, uint64_t before, uint64_t *index)
{
    const char *start = r->at, *p = start;
    uint64_t value = 0;
    for (; p < r->end && (unsigned char)(*p - '0') < 10; p++)
        if (value <= INDEX_MOST)
            value = value * 10 + (uint64_t)(*p - '0');
    if (p == start || p == r->end || *p != ':')
        return refuse_pair(r, start);
    if (value == 0)
        return refuse_text(r, start, "index 0; indices are counted from 1");
    if (value > INDEX_MOST) {
        char shown[EXCERPT_SIZE];
        return refuse_text(r, start, "the index %s is too large; expected at most %llu",
                           excerpt(shown, (slice){start, (size_t)(p - start)}), (unsigned long long)INDEX_MOST);
    }
    if (value <= before)
        return refuse_text(r, start, "index %llu after index %llu; expected increasing indices",
                           (unsigned long long)value, (unsigned long long)before);
    r->at = p + 1;
    if (at_word_end(r, r->at))
        return refuse_text(r, start, "index %llu without a value; " EXPECTED_PAIR, (unsigned long long)value);
    *index = value;
    return HFSAD_OK;
}

static hfsad_status push(reader *r, uint32_t column, double value)
{
    dataset_builder *b = r->in->builder;
    if (builder_push(b, column, value))
        return HFSAD_OK;
    const size_t count = builder_entries(b), read = (size_t)(r->at - r->body), left = (size_t)(r->end - r->at);
    const size_t guess = intake_guess(r->in, count, read, left, ENTRY_BYTES);
    const hfsad_status status = builder_reserve_entries(b, guess > count ? guess : count + 1, r->in->err);
    if (!status)
        builder_push(b, column, value);
    return status;
}

static hfsad_status read_pairs(reader *r)
{
    uint64_t index = 0;
    for (;;) {
        skip_spaces(r);
        if (r->at == r->end || *r->at == '\n' || *r->at == '#')
            return HFSAD_OK;
        double value;
        hfsad_status status = read_index(r, index, &index);
        if (status || (status = read_number(r, false, &value)) || (status = push(r, (uint32_t)(index - 1), value)))
            return status;
    }
}

/* Sets the client that the comment names. */
static hfsad_status read_client(reader *r, builder_entry *entry)
{
    const char *start = r->at, *end = line_end(r);
    if (start < end && *start == '#')
        start++;
    while (start < end && is_space(*start))
        start++;
    while (end > start && is_space(end[-1]))
        end--;
    if (start == end)
        return refuse_text(r, start,
                           "no client at the end of the row; expected its name as a comment, such as 1.5 3:0.2 17:1 # "
                           "edge1/client7, a folder with a file for every client, or data: {split: {clients: 10}}");
    const char *name = end;
    while (name > start && name[-1] != '/')
        name--;
    entry->client = (slice){name, (size_t)(end - name)};
    entry->path = (slice){start, name > start ? (size_t)(name - start) - 1 : 0};
    if (name == start + 1) /* "/client" has an empty name before the slash; it does not mean the cloud */
        return refuse_text(r, start,
                           "an empty name before the slash; expected a client such as edge1/client7 or client7");
    entry->edge_column = (size_t)(start - r->line_start) + 1;
    entry->client_column = (size_t)(name - r->line_start) + 1;
    return HFSAD_OK;
}

static hfsad_status read_row(reader *r)
{
    intake *in = r->in;
    builder_entry entry = {.path = in->path,
                           .client = in->client,
                           .weight = 1,
                           .file = r->name,
                           .line = r->line,
                           .begun = in->client.text,
                           .y_column = (size_t)(r->at - r->line_start) + 1};
    hfsad_status status = HFSAD_OK;
    if (builder_is_full(in->builder))
        status = intake_room(in, (size_t)(r->at - r->body), (size_t)(r->end - r->at), ROW_BYTES);
    if (status || (status = read_number(r, true, &entry.y)) || (status = intake_label(in, &entry)) ||
        (status = read_pairs(r)) || (!in->client.text && !in->table.clients && (status = read_client(r, &entry))) ||
        (!in->client.text && (status = intake_deal(in, !in->table.clients, &entry))))
        return status;
    return builder_commit(in->builder, &entry, in->err);
}

static hfsad_status read_rows(reader *r, file_bytes *from)
{
    const size_t before = builder_rows(r->in->builder);
    while (r->at < r->end) {
        r->line_start = r->at;
        bytes_release(from, r->body, r->at);
        skip_spaces(r);
        if (r->at < r->end && *r->at != '\n' && *r->at != '#') {
            const hfsad_status status = read_row(r);
            if (status)
                return status;
        }
        r->at = line_end(r);
        if (r->at < r->end)
            r->at++;
        r->line++;
    }
    if (builder_rows(r->in->builder) == before)
        return error_set(r->in->err, HFSAD_ERROR_INPUT, "%.*s: no row; expected at least one for every client",
                         NAME_SHOWN, r->name);
    return HFSAD_OK;
}

hfsad_status svm_take(intake *in, file_bytes *from, const char *name)
{
    reader r = {.name = name, .at = from->bytes, .end = from->bytes + from->size, .line = 1, .in = in};
    hfsad_status status = text_begin(&r.at, r.end, name, EXPECTED_SVM, in->err);
    if (status || (status = intake_begin(in, name, true, 0)))
        return status;
    r.body = r.at;
    return read_rows(&r, from);
}

const data_format svm_format = {
    .ends = {".svm", ".libsvm", ".txt"},
    .expected = EXPECTED_SVM,
    .text = true,
    .columns = false,
    .clients = CLIENTS_COMMENT,
    .take = svm_take,
};
