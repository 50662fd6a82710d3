/*
 * NPZ: a zip archive (libzip) of NPY files, here X.npy, y.npy and optionally weight.npy, stored or deflated.
 *
 * A few bytes of archive can claim arrays of any size. Memory is allocated only for plausible claims: the shape of an
 * array must match its size in the archive, and deflate expands one byte to at most DEFLATE_MOST bytes.
 */
#include "data/npz.h"

#include "base/alloc.h"
#include "base/error.h"
#include "data/format.h"
#include "data/npy.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zip.h>

enum {
    DEFLATE_MOST = 1032,
    CHUNK = NPY_HEAD_MOST,  /* bytes unpacked at a time */
    FORGET_BYTES = 1 << 20, /* bytes of numbers after which the memory of their packed form is released */
};

enum { ARRAY_X, ARRAY_Y, ARRAY_WEIGHT, ARRAYS };
static const char *const ARRAY_NAMES[ARRAYS] = {"X", "y", "weight"};

/* An array being unpacked: `left` bytes are still packed, chunk[at] to chunk[used - 1] are unpacked and not taken. */
typedef struct {
    zip_file_t *file;
    npy_head head;
    size_t size, left, at, used;
    char *chunk;
} unpacker;

typedef struct {
    zip_t *zip;
    const char *name;
    zip_int64_t index[ARRAYS]; /* -1: missing */
    unpacker arrays[ARRAYS];
    hfsad_error *err;
} archive;

__attribute__((format(printf, 2, 3))) static hfsad_status refuse_archive(const archive *a, const char *format, ...)
{
    char text[sizeof a->err->message];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return error_set(a->err, HFSAD_ERROR_INPUT, "%.*s: %s", NAME_SHOWN, a->name, text);
}

static hfsad_status open_archive(archive *a, const file_bytes *from)
{
    if (from->size == 0) /* libzip would accept an empty file as an empty archive */
        return refuse_archive(a, "the file is empty; expected " EXPECTED_NPZ);
    zip_error_t problem;
    zip_error_init(&problem);
    zip_source_t *source = zip_source_buffer_create(from->bytes, from->size, 0, &problem);
    a->zip = source ? zip_open_from_source(source, ZIP_RDONLY | ZIP_CHECKCONS, &problem) : NULL;
    hfsad_status status = HFSAD_OK;
    if (!a->zip) {
        zip_source_free(source);
        status = refuse_archive(a, "cannot be read: %s; expected " EXPECTED_NPZ, zip_error_strerror(&problem));
    }
    zip_error_fini(&problem);
    return status;
}

static hfsad_status find_arrays(archive *a)
{
    for (int i = 0; i < ARRAYS; i++)
        a->index[i] = -1;
    const zip_int64_t count = zip_get_num_entries(a->zip, 0);
    for (zip_int64_t entry = 0; entry < count; entry++) {
        const char *name = zip_get_name(a->zip, (zip_uint64_t)entry, ZIP_FL_ENC_RAW);
        int which = ARRAYS;
        for (int i = 0; name && i < ARRAYS; i++) {
            const size_t length = strlen(ARRAY_NAMES[i]);
            if (strncmp(name, ARRAY_NAMES[i], length) == 0 && strcmp(name + length, ".npy") == 0)
                which = i;
        }
        char shown[EXCERPT_SIZE];
        if (which == ARRAYS)
            return refuse_archive(
                a, "holds \"%s\"; expected the arrays X, y and, if rows have weights, weight, and no others",
                name ? excerpt(shown, (slice){name, strlen(name)}) : "");
        if (a->index[which] >= 0)
            return refuse_archive(a, "holds two arrays %s; expected one", ARRAY_NAMES[which]);
        a->index[which] = entry;
    }
    for (int i = ARRAY_X; i <= ARRAY_Y; i++)
        if (a->index[i] < 0)
            return refuse_archive(a, "no array %s; expected " EXPECTED_NPZ, ARRAY_NAMES[i]);
    return HFSAD_OK;
}

/* Unpacks the next bytes; some must be left. */
static hfsad_status unpack(archive *a, int which)
{
    unpacker *u = &a->arrays[which];
    memmove(u->chunk, u->chunk + u->at, u->used - u->at);
    u->used -= u->at;
    u->at = 0;
    while (u->left > 0 && u->used < CHUNK) {
        const size_t room = CHUNK - u->used;
        const zip_int64_t got = zip_fread(u->file, u->chunk + u->used, room < u->left ? room : u->left);
        if (got <= 0)
            return refuse_archive(a, "the array %s cannot be unpacked: %s", ARRAY_NAMES[which],
                                  got < 0 ? zip_file_strerror(u->file) : "it is cut short");
        u->used += (size_t)got;
        u->left -= (size_t)got;
    }
    return HFSAD_OK;
}

/* Reads the next `count` numbers. */
static hfsad_status take_numbers(archive *a, int which, double *to, size_t count)
{
    unpacker *u = &a->arrays[which];
    const size_t item = u->head.item;
    while (count > 0) {
        const size_t there = (u->used - u->at) / item, now = there < count ? there : count;
        npy_convert(to, u->chunk + u->at, item, now);
        u->at += now * item;
        to += now;
        count -= now;
        if (count > 0) {
            const hfsad_status status = unpack(a, which);
            if (status)
                return status;
        }
    }
    return HFSAD_OK;
}

/* libzip compares the checksum when the end of the file is read. */
static hfsad_status check_end(archive *a, int which)
{
    char beyond;
    unpacker *u = &a->arrays[which];
    if (u->file && zip_fread(u->file, &beyond, 1) != 0)
        return refuse_archive(a, "the array %s is damaged: %s", ARRAY_NAMES[which], zip_file_strerror(u->file));
    return HFSAD_OK;
}

static hfsad_status open_array(archive *a, int which)
{
    unpacker *u = &a->arrays[which];
    zip_stat_t info;
    const char *array = ARRAY_NAMES[which];
    const zip_uint64_t all = ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD;
    if (zip_stat_index(a->zip, (zip_uint64_t)a->index[which], 0, &info) != 0 || (info.valid & all) != all)
        return refuse_archive(a, "the archive has no size for the array %s", array);
    if (info.comp_method != ZIP_CM_STORE && info.comp_method != ZIP_CM_DEFLATE)
        return refuse_archive(a, "the array %s is compressed by an unknown method; expected stored or deflated", array);
    const bool stored = info.comp_method == ZIP_CM_STORE;
    if (stored ? info.size != info.comp_size : info.size / DEFLATE_MOST > info.comp_size)
        return refuse_archive(a, "the array %s claims %llu bytes, too many for its %llu compressed bytes", array,
                              (unsigned long long)info.size, (unsigned long long)info.comp_size);
    u->file = zip_fopen_index(a->zip, (zip_uint64_t)a->index[which], 0);
    if (!u->file)
        return refuse_archive(a, "the array %s cannot be unpacked: %s", array, zip_strerror(a->zip));
    u->chunk = alloc_raw(CHUNK, 1);
    if (!u->chunk)
        return error_memory(a->err, CHUNK, "unpacking");
    u->size = u->left = (size_t)info.size;
    hfsad_status status = unpack(a, which);
    if (status)
        return status;
    char name[NAME_SHOWN + 32];
    snprintf(name, sizeof name, "%.*s: array %s", NAME_SHOWN - 16, a->name, array);
    status = npy_read_head(&u->head, u->chunk, u->used, u->size, name, a->err);
    u->at = status ? 0 : u->head.offset;
    return status;
}

static hfsad_status check_shapes(const archive *a)
{
    const npy_head *X = &a->arrays[ARRAY_X].head;
    if (X->dims != 2 || X->shape[1] == 0)
        return refuse_archive(a, "array X: expected the shape (rows, features)");
    if (X->shape[0] == 0)
        return refuse_archive(a, "no rows; expected at least one for every client");
    for (int i = ARRAY_Y; i < ARRAYS; i++) {
        const npy_head *h = &a->arrays[i].head;
        if (a->index[i] < 0)
            continue;
        if (h->dims != 1)
            return refuse_archive(a, "array %s: shape (%zu, %zu); expected (rows,): convert with %s.ravel()",
                                  ARRAY_NAMES[i], h->shape[0], h->shape[1], ARRAY_NAMES[i]);
        if (h->shape[0] != X->shape[0])
            return refuse_archive(a, "%zu rows in X but %zu numbers in %s; expected equal numbers", X->shape[0],
                                  h->shape[0], ARRAY_NAMES[i]);
    }
    return HFSAD_OK;
}

static hfsad_status take_rows(archive *a, intake *in, const file_bytes *from)
{
    const npy_head *X = &a->arrays[ARRAY_X].head;
    const bool weighted = a->index[ARRAY_WEIGHT] >= 0;
    const size_t width = X->shape[1] * X->item;
    hfsad_status status = HFSAD_OK;
    for (size_t row = 0, taken = 0; row < X->shape[0] && !status; row++) {
        builder_entry entry = {.path = in->path,
                               .client = in->client,
                               .weight = 1,
                               .file = a->name,
                               .line = row + 1,
                               .array = true,
                               .begun = true};
        if ((status = take_numbers(a, ARRAY_Y, &entry.y, 1)) ||
            (weighted && (status = take_numbers(a, ARRAY_WEIGHT, &entry.weight, 1))) ||
            (status = take_numbers(a, ARRAY_X, builder_next_row(in->builder), X->shape[1])))
            break;
        if (!(status = intake_label(in, &entry)))
            status = builder_commit(in->builder, &entry, in->err);
        taken += width;
        if (taken >= FORGET_BYTES) {
            bytes_forget(from);
            taken = 0;
        }
    }
    for (int i = 0; i < ARRAYS && !status; i++)
        status = check_end(a, i);
    return status;
}

static hfsad_status read_arrays(archive *a, intake *in, const file_bytes *from)
{
    hfsad_status status = open_archive(a, from);
    if (!status)
        status = find_arrays(a);
    for (int i = 0; i < ARRAYS && !status; i++)
        if (a->index[i] >= 0)
            status = open_array(a, i);
    if (!status)
        status = check_shapes(a);
    if (!status)
        status = intake_begin(in, a->name, false, a->arrays[ARRAY_X].head.shape[1]);
    if (!status)
        status = intake_expect(in, a->arrays[ARRAY_X].head.shape[0], from->size);
    return status ? status : take_rows(a, in, from);
}

hfsad_status npz_take(intake *in, file_bytes *from, const char *name)
{
    assert(in->client.text);
    archive a = {.name = name, .err = in->err};
    const hfsad_status status = read_arrays(&a, in, from);
    for (int i = 0; i < ARRAYS; i++) {
        if (a.arrays[i].file)
            zip_fclose(a.arrays[i].file);
        free(a.arrays[i].chunk);
    }
    if (a.zip)
        zip_discard(a.zip);
    return status;
}

const data_format npz_format = {
    .ends = {".npz"},
    .expected = EXPECTED_NPZ,
    .text = false,
    .columns = false,
    .clients = CLIENTS_NONE,
    .take = npz_take,
};
