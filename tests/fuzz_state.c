/*
 * The reader of state folders, on arbitrary bytes, and on a valid file in which the input changes bytes and the
 * checksums are recomputed, so that the code after the checksums is reached. A folder is read, or refused with one line
 * and left unchanged.
 */
#define _GNU_SOURCE
#include "base/crc32c.h"
#include "net/store.h"
#include "net/store_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { GOOD_MOST = 1 << 16 };

static char folder[60];
static unsigned char good[GOOD_MOST];
static size_t good_size;

static void check(int holds)
{
    if (!holds)
        abort();
}

static void write_file(const char *name, const unsigned char *bytes, size_t size)
{
    char path[100];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    check(fd >= 0 && write(fd, bytes, size) == (ssize_t)size && close(fd) == 0);
}

static void leave(void)
{
    store_remove(folder);
    rmdir(folder);
}

/* A mark that allows every state of this owner: it knows no commit. */
static void write_mark(const unsigned char owner[8])
{
    unsigned char mark[STORE_MARK] = {'h', 'f', 'm', STORE_VERSION};
    memcpy(mark + 8, owner, 8);
    put32(mark + STORE_MARK - 4, crc32c(0, mark, STORE_MARK - 4));
    write_file("mark", mark, sizeof mark);
}

/* Made once: a small folder with an entry of every kind, in a snapshot and in a log. */
static void make_good(void)
{
    store *s;
    char path[100];
    uint32_t frame;
    const hfsad_figures row = {.iteration = 3};
    snprintf(folder, sizeof folder, "%s/hfsad-fuzz-XXXXXX", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
    check(mkdtemp(folder) != NULL);
    check(!store_open(&s, folder, 7, NULL));
    for (int i = 0; i < 3; i++) {
        check(!store_put_state(s, "edge1", "state", 5, NULL));
        store_put_row(s, &row);
        store_put_line(s, "a line");
        if (i == 0)
            check(!store_begin_whole(s, NULL));
        store_put_frame(s, "message", 7, &frame);
        check(!store_put_heard(s, "edge1/a", frame, NULL) && !store_put_heard(s, "edge1/b", frame, NULL));
        check(!store_commit(s, NULL));
    }
    store_close(s);
    snprintf(path, sizeof path, "%s/state", folder);
    FILE *f = fopen(path, "rb");
    check(f != NULL);
    good_size = fread(good, 1, GOOD_MOST, f);
    fclose(f);
    while (good_size > 0 && !good[good_size - 1])
        good_size--;
    check(good_size > 3 * STORE_SECTOR && good_size < GOOD_MOST);
    atexit(leave);
}

static void no_name(void *context, const char *path)
{
    void *bytes;
    size_t size;
    check(!store_get_state(context, path, &bytes, &size, NULL));
    free(bytes);
}

static void try_bytes(const unsigned char *bytes, size_t size)
{
    hfsad_error err = {0};
    store_facts facts;
    store *s;
    write_file("state", bytes, size);
    write_mark(size >= STORE_HEAD ? bytes + 8 : good + 8);
    hfsad_status status = store_open_as(&s, folder, NULL, &err);
    if (!status)
        status = store_check(s, &facts, &err);
    if (!status)
        store_get_names(s, no_name, s);
    store_close(s);
    check(!status || (status == HFSAD_ERROR_INPUT && err.status == status && !strchr(err.message, '\n')));
}

/* The input is a list of changes, four bytes each: a place in 16 bits, an operation, an operand. */
static void change(unsigned char *bytes, const uint8_t *data, size_t size)
{
    for (size_t i = 0; i + 4 <= size; i += 4) {
        const size_t at = (data[i] + 256U * data[i + 1]) % (good_size - 8);
        if (data[i + 2] % 3 == 0)
            bytes[at] = data[i + 3];
        else if (data[i + 2] % 3 == 1)
            bytes[at] ^= data[i + 3];
        else
            memset(bytes + at / 8 * 8, data[i + 3] % 2 ? 0xff : 0, 8);
    }
}

/* Makes heads, chain and checksums fit, record by record. */
static void seal(unsigned char *bytes, size_t size)
{
    uint32_t before = 0;
    for (size_t at = 0; at + STORE_HEAD <= size;) {
        unsigned char *head = bytes + at;
        const uint64_t length = get64(head + 24);
        if (length > size || at + store_extent(length) > size)
            return;
        put32(head + 32, before);
        put32(head + 36, crc32c(0, head, 36));
        const size_t extent = (size_t)store_extent(length);
        before =
            store_checksum(crc32c(crc32c(0, head + STORE_HEAD, extent - STORE_HEAD - STORE_SUM), head, STORE_HEAD));
        put32(head + extent - STORE_SUM, before);
        at += extent;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (good_size == 0)
        make_good();
    try_bytes(data, size);
    unsigned char *bytes = malloc(good_size);
    check(bytes != NULL);
    memcpy(bytes, good, good_size);
    seal(bytes, good_size);
    try_bytes(bytes, good_size);
    change(bytes, data, size);
    try_bytes(bytes, good_size);
    seal(bytes, good_size);
    try_bytes(bytes, good_size);
    free(bytes);
    return 0;
}
