/*
 * NPY, formats 1.0 to 3.0: a magic string, the length of the header, the header (a Python dictionary with the keys
 * descr, fortran_order and shape), the numbers.
 */
#define _DEFAULT_SOURCE /* le64toh */
#include "data/npy.h"

#include "base/error.h"
#include "data/format.h"

#include <assert.h>
#include <endian.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MAGIC_BYTES = 6, SHORT_PREFIX = 10, LONG_PREFIX = 12 };

enum { KEY_DESCR = 1, KEY_ORDER = 2, KEY_SHAPE = 4, KEY_ALL = 7 };

/* A position in the header. */
typedef struct {
    const char *at, *end;
    slice descr;
    bool fortran;
    size_t dims, shape[2];
} header;

__attribute__((format(printf, 3, 4))) static hfsad_status refuse_array(const char *name, hfsad_error *err,
                                                                       const char *format, ...)
{
    char text[sizeof err->message];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return error_set(err, HFSAD_ERROR_INPUT, "%.*s: %s", NAME_SHOWN, name, text);
}

/* ---- the dictionary; these functions return whether they found what they look for ---- */

static void skip_spaces(header *h)
{
    while (h->at < h->end && (*h->at == ' ' || *h->at == '\t' || *h->at == '\n' || *h->at == '\r'))
        h->at++;
}

static bool step(header *h, char c)
{
    skip_spaces(h);
    if (h->at == h->end || *h->at != c)
        return false;
    h->at++;
    return true;
}

static bool read_string(header *h, slice *s)
{
    skip_spaces(h);
    if (h->at == h->end || (*h->at != '\'' && *h->at != '"'))
        return false;
    const char quote = *h->at++, *start = h->at, *close = memchr(start, quote, (size_t)(h->end - start));
    if (!close)
        return false;
    *s = (slice){start, (size_t)(close - start)};
    h->at = close + 1;
    return true;
}

static bool is_text(slice s, const char *text)
{
    return s.length == strlen(text) && memcmp(s.text, text, s.length) == 0;
}

static bool read_truth(header *h, bool *value)
{
    skip_spaces(h);
    const size_t left = (size_t)(h->end - h->at);
    *value = left >= 4 && memcmp(h->at, "True", 4) == 0;
    if (!*value && (left < 5 || memcmp(h->at, "False", 5) != 0))
        return false;
    h->at += *value ? 4 : 5;
    return true;
}

static bool read_size(header *h, size_t *value)
{
    skip_spaces(h);
    const char *start = h->at;
    *value = 0;
    for (; h->at < h->end && (unsigned char)(*h->at - '0') < 10; h->at++)
        if (__builtin_mul_overflow(*value, 10, value) || __builtin_add_overflow(*value, (size_t)(*h->at - '0'), value))
            return false;
    return h->at > start;
}

/* Counts all dimensions and stores the first two. */
static bool read_shape(header *h)
{
    if (!step(h, '('))
        return false;
    h->shape[0] = h->shape[1] = 1;
    for (h->dims = 0; !step(h, ')'); h->dims++) {
        size_t value;
        if (!read_size(h, &value))
            return false;
        if (h->dims < 2)
            h->shape[h->dims] = value;
        if (!step(h, ',') && (h->at == h->end || *h->at != ')'))
            return false;
    }
    return true;
}

static bool read_dictionary(header *h)
{
    unsigned found = 0;
    if (!step(h, '{'))
        return false;
    while (!step(h, '}')) {
        slice key;
        if (!read_string(h, &key) || !step(h, ':'))
            return false;
        const unsigned which = is_text(key, "descr")           ? KEY_DESCR
                               : is_text(key, "fortran_order") ? KEY_ORDER
                               : is_text(key, "shape")         ? KEY_SHAPE
                                                               : 0;
        if (which == 0 || (found & which))
            return false;
        found |= which;
        if (which == KEY_DESCR) {
            const char *start = (skip_spaces(h), h->at);
            if (start < h->end && *start == '[') { /* several fields: the type check refuses the first character */
                h->descr = (slice){start, (size_t)(h->end - start)};
                return true;
            }
        }
        if (!(which == KEY_DESCR   ? read_string(h, &h->descr)
              : which == KEY_ORDER ? read_truth(h, &h->fortran)
                                   : read_shape(h)))
            return false;
        if (!step(h, ',') && (h->at == h->end || *h->at != '}'))
            return false;
    }
    skip_spaces(h);
    return found == KEY_ALL && h->at == h->end;
}

/* ---- meaning of the header ---- */

static hfsad_status check_type(const header *h, npy_head *out, const char *name, hfsad_error *err)
{
    char shown[EXCERPT_SIZE];
    const slice d = h->descr;
    excerpt(shown, d);
    if (is_text(d, "<f8") || is_text(d, "<f4")) {
        out->item = d.text[2] == '8' ? 8 : 4;
        return HFSAD_OK;
    }
    if (is_text(d, ">f8") || is_text(d, ">f4"))
        return refuse_array(name, err, "big-endian numbers (%s); expected <f8 or <f4: convert with a.astype('<f8')",
                            shown);
    if (d.length >= 2 && (d.text[1] == 'i' || d.text[1] == 'u' || d.text[1] == 'b'))
        return refuse_array(
            name, err, "whole numbers or truth values (%s); expected <f8 or <f4: convert with a.astype('<f8')", shown);
    return refuse_array(name, err, "numbers of the type %s; expected <f8 or <f4: convert with a.astype('<f8')", shown);
}

static hfsad_status check_shape(const header *h, npy_head *out, size_t size, const char *name, hfsad_error *err)
{
    if (h->fortran)
        return refuse_array(name, err, "in Fortran order; expected C order: convert with numpy.ascontiguousarray(a)");
    if (h->dims != 1 && h->dims != 2)
        return refuse_array(name, err, "%zu dimensions; expected 2, rows and columns", h->dims);
    out->dims = h->dims;
    memcpy(out->shape, h->shape, sizeof out->shape);
    size_t need;
    const size_t left = size - out->offset;
    if (__builtin_mul_overflow(h->shape[0], h->shape[1], &need) || __builtin_mul_overflow(need, out->item, &need))
        return refuse_array(name, err, "%zu times %zu numbers do not fit into an array; the header is damaged",
                            h->shape[0], h->shape[1]);
    if (left < need)
        return refuse_array(name, err, "cut short: %zu bytes of numbers, expected %zu by the shape", left, need);
    if (left > need)
        return refuse_array(name, err, "%zu bytes after the numbers, expected none by the shape", left - need);
    return HFSAD_OK;
}

hfsad_status npy_read_head(npy_head *out, const char *bytes, size_t given, size_t size, const char *name,
                           hfsad_error *err)
{
    assert(given == size || given >= NPY_HEAD_MOST);
    const unsigned char *b = (const unsigned char *)bytes;
    if (given >= MAGIC_BYTES && memcmp(bytes, "\x93NUMPY", MAGIC_BYTES) != 0)
        return refuse_array(name, err, "does not begin like a NumPy array; expected a file written by numpy.save");
    if (given < SHORT_PREFIX || (b[6] > 1 && given < LONG_PREFIX))
        return refuse_array(name, err, "cut short within the header, after %zu bytes", given);
    if (b[6] < 1 || b[6] > 3 || b[7] != 0)
        return refuse_array(name, err, "format %d.%d; expected 1.0, 2.0 or 3.0", b[6], b[7]);
    const size_t prefix = b[6] == 1 ? SHORT_PREFIX : LONG_PREFIX;
    size_t length = b[8] | (size_t)b[9] << 8;
    if (b[6] > 1)
        length |= (size_t)b[10] << 16 | (size_t)b[11] << 24;
    if (length > NPY_HEAD_MOST - LONG_PREFIX)
        return refuse_array(name, err, "a header of %zu bytes; expected at most %d", length,
                            NPY_HEAD_MOST - LONG_PREFIX);
    if (length > given - prefix)
        return refuse_array(name, err, "cut short within the header, after %zu bytes", given);
    header h = {.at = bytes + prefix, .end = bytes + prefix + length};
    if (!read_dictionary(&h)) {
        char shown[EXCERPT_SIZE];
        return refuse_array(name, err, "the header \"%s\" is not a dictionary with descr, fortran_order and shape",
                            excerpt(shown, (slice){bytes + prefix, length}));
    }
    out->offset = prefix + length;
    const hfsad_status status = check_type(&h, out, name, err);
    return status ? status : check_shape(&h, out, size, name, err);
}

void npy_convert(double *to, const char *from, size_t item, size_t count)
{
    if (item == 8) {
        for (size_t i = 0; i < count; i++) {
            uint64_t bits;
            memcpy(&bits, from + 8 * i, sizeof bits);
            bits = le64toh(bits);
            memcpy(to + i, &bits, sizeof bits);
        }
        return;
    }
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        float value;
        memcpy(&bits, from + 4 * i, sizeof bits);
        bits = le32toh(bits);
        memcpy(&value, &bits, sizeof value);
        to[i] = (double)value;
    }
}

/* ---- a client's file ---- */

static hfsad_status take_rows(intake *in, file_bytes *from, const npy_head *h, const char *name)
{
    dataset_builder *b = in->builder;
    const size_t F = h->shape[1] - 1, width = h->shape[1] * h->item;
    const char *body = from->bytes + h->offset, *at = body;
    for (size_t row = 0; row < h->shape[0]; row++, at += width) {
        builder_entry entry = {.path = in->path,
                               .client = in->client,
                               .weight = 1,
                               .file = name,
                               .line = row + 1,
                               .array = true,
                               .begun = true};
        npy_convert(&entry.y, at, h->item, 1);
        npy_convert(builder_next_row(b), at + h->item, h->item, F);
        hfsad_status status = intake_label(in, &entry);
        if (!status)
            status = builder_commit(b, &entry, in->err);
        if (status)
            return status;
        bytes_release(from, body, at);
    }
    return HFSAD_OK;
}

hfsad_status npy_take(intake *in, file_bytes *from, const char *name)
{
    assert(in->client.text);
    npy_head h = {0};
    hfsad_status status = npy_read_head(&h, from->bytes, from->size, from->size, name, in->err);
    if (status)
        return status;
    if (h.dims != 2 || h.shape[1] < 2)
        return refuse_array(name, in->err,
                            h.dims == 2 ? "shape (%zu, %zu); expected (rows, 1 + features), column 0 being y"
                                        : "shape (%zu,); expected (rows, 1 + features), column 0 being y",
                            h.shape[0], h.shape[1]);
    if (h.shape[0] == 0)
        return refuse_array(name, in->err, "no rows; expected at least one for every client");
    status = intake_begin(in, name, false, h.shape[1] - 1);
    if (!status)
        status = intake_expect(in, h.shape[0], from->size);
    return status ? status : take_rows(in, from, &h, name);
}

const data_format npy_format = {
    .ends = {".npy"},
    .expected = EXPECTED_NPY,
    .text = false,
    .columns = false,
    .clients = CLIENTS_NONE,
    .take = npy_take,
};
