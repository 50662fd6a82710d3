/* Functions for the tests of formats: messages with the seed, arrays and archives as numpy writes them. */
#ifndef HFSAD_TESTS_FORMATS_H
#define HFSAD_TESTS_FORMATS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "hfsad/hfsad.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zip.h>

#define TOOL static inline __attribute__((unused))

/* Said where something fails. */
static uint64_t last_seed;

TOOL void expect(const char *message, const char *part)
{
    if (!strstr(message, part))
        fail_msg("\"%s\" does not say \"%s\"; seed %llu", message, part, (unsigned long long)last_seed);
}

TOOL void ok(hfsad_status status, const hfsad_error *err)
{
    if (status)
        fail_msg("%s; seed %llu", err->message, (unsigned long long)last_seed);
}

typedef struct {
    char *bytes;
    size_t size;
} blob;

/* A header of the given format's version, padded as numpy does it, and room for `data` bytes behind it. */
TOOL blob array_blob(int version, const char *dictionary, const void *data, size_t size)
{
    const size_t prefix = version == 1 ? 10 : 12, text = strlen(dictionary) + 1;
    const size_t length = (prefix + text + 63) / 64 * 64 - prefix;
    blob b = {malloc(prefix + length + size + 1), prefix + length + size};
    assert_non_null(b.bytes);
    memcpy(b.bytes, "\x93NUMPY", 6);
    b.bytes[6] = (char)version;
    b.bytes[7] = 0;
    for (size_t i = 8; i < prefix; i++)
        b.bytes[i] = (char)(length >> 8 * (i - 8) & 0xff);
    memset(b.bytes + prefix, ' ', length);
    memcpy(b.bytes + prefix, dictionary, text - 1);
    b.bytes[prefix + length - 1] = '\n';
    if (size > 0)
        memcpy(b.bytes + prefix + length, data, size);
    return b;
}

/* columns 0: one dimension. */
TOOL blob number_blob(int version, size_t item, size_t rows, size_t columns, const double *x)
{
    char dictionary[160];
    const size_t count = rows * (columns ? columns : 1);
    if (columns)
        snprintf(dictionary, sizeof dictionary, "{'descr': '<f%zu', 'fortran_order': False, 'shape': (%zu, %zu), }",
                 item, rows, columns);
    else
        snprintf(dictionary, sizeof dictionary, "{'descr': '<f%zu', 'fortran_order': False, 'shape': (%zu,), }", item,
                 rows);
    float *single = malloc((count + 1) * sizeof *single);
    assert_non_null(single);
    for (size_t i = 0; i < count; i++)
        single[i] = (float)x[i];
    const blob b = array_blob(version, dictionary, item == 8 ? (const void *)x : single, count * item);
    free(single);
    return b;
}

/* An archive of named blobs, which are freed. */
TOOL blob zip_blob(size_t count, const char *const *names, blob *entries, bool deflate)
{
    zip_error_t problem;
    zip_error_init(&problem);
    zip_source_t *to = zip_source_buffer_create(NULL, 0, 0, &problem);
    assert_non_null(to);
    zip_source_keep(to);
    zip_t *z = zip_open_from_source(to, ZIP_TRUNCATE, &problem);
    assert_non_null(z);
    for (size_t i = 0; i < count; i++) {
        const zip_int64_t index =
            zip_file_add(z, names[i], zip_source_buffer(z, entries[i].bytes, entries[i].size, 0), ZIP_FL_ENC_UTF_8);
        assert_true(index >= 0);
        zip_set_file_compression(z, (zip_uint64_t)index, deflate ? ZIP_CM_DEFLATE : ZIP_CM_STORE, 0);
    }
    assert_int_equal(zip_close(z), 0);
    zip_stat_t info;
    assert_int_equal(zip_source_open(to), 0);
    assert_int_equal(zip_source_stat(to, &info), 0);
    blob b = {malloc(info.size), info.size};
    assert_non_null(b.bytes);
    assert_int_equal(zip_source_read(to, b.bytes, info.size), info.size);
    zip_source_close(to);
    zip_source_free(to);
    for (size_t i = 0; i < count; i++)
        free(entries[i].bytes);
    return b;
}

#endif
