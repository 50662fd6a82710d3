/* See pages.h. Rows are released and read ahead in blocks. */
#define _GNU_SOURCE /* O_TMPFILE, madvise */
#include "data/pages.h"

#include "base/alloc.h"
#include "base/error.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    BLOCK_BYTES = 1 << 19, /* approximate; blocks have whole rows, at least one */
    WRITE_BYTES = 1 << 18,
    BLOCKS_KEPT = 2,
    AROUND = 1 << 16,   /* Linux maps this many bytes around a missing page, aligned; no page is larger */
    FOLDER_SHOWN = 300, /* bytes of a folder's name in a message */
};

struct row_pages {
    char *folder;
    int file;
    size_t F, n_rows;
    double *buffer; /* rows that wait to be written */
    size_t waiting, buffer_rows;
    double *x; /* the mapping */
    size_t bytes, block_doubles;
    size_t kept[BLOCKS_KEPT]; /* blocks in memory; SIZE_MAX: none */
    size_t oldest, last;      /* index in kept of the block to release next; the block visited last */
};

static hfsad_status scratch_error(const row_pages *p, const char *what, hfsad_error *err)
{
    return error_set(err, HFSAD_ERROR_IO, "%.*s: a scratch file for the rows cannot be %s there: %s", FOLDER_SHOWN,
                     p->folder, what, strerror(errno));
}

/* Some file systems cannot create a file without a name. */
static int open_scratch(const char *folder)
{
    const int file = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (file >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
        return file;
    static const char name[] = "/.hfsad-rows-XXXXXX";
    const size_t size = strlen(folder) + sizeof name;
    char *path = alloc_raw(size, 1);
    if (!path)
        return -1;
    snprintf(path, size, "%s%s", folder, name);
    const int named = mkostemp(path, O_CLOEXEC);
    if (named >= 0)
        unlink(path);
    free(path);
    return named;
}

hfsad_status pages_create(row_pages **out, const char *folder, size_t F, hfsad_error *err)
{
    row_pages *p = alloc_zero(1, sizeof *p);
    size_t bytes;
    *out = NULL;
    if (!p || __builtin_mul_overflow(F, sizeof *p->x, &bytes)) {
        free(p);
        return error_memory(err, sizeof *p, "a table of rows");
    }
    p->F = F;
    p->buffer_rows = bytes < WRITE_BYTES ? WRITE_BYTES / bytes : 1;
    p->block_doubles = F * (bytes < BLOCK_BYTES ? BLOCK_BYTES / bytes : 1);
    p->last = SIZE_MAX;
    for (size_t i = 0; i < BLOCKS_KEPT; i++)
        p->kept[i] = SIZE_MAX;
    p->file = -1;
    p->folder = strdup(folder);
    p->buffer = alloc_raw(p->buffer_rows * F, sizeof *p->buffer);
    hfsad_status status = HFSAD_OK;
    if (!p->folder || !p->buffer)
        status = error_memory(err, p->buffer_rows * bytes, "a table of rows");
    else if ((p->file = open_scratch(folder)) < 0)
        status = scratch_error(p, "made", err);
    if (status)
        pages_free(p);
    else
        *out = p;
    return status;
}

void pages_free(row_pages *p)
{
    if (!p)
        return;
    if (p->x)
        munmap(p->x, p->bytes);
    if (p->file >= 0)
        close(p->file);
    free(p->buffer);
    free(p->folder);
    free(p);
}

const char *pages_folder(const row_pages *p)
{
    return p->folder;
}

/* ---- writing ---- */

double *pages_next(row_pages *p)
{
    return p->buffer + p->waiting * p->F;
}

static hfsad_status write_out(row_pages *p, hfsad_error *err)
{
    const char *from = (const char *)p->buffer;
    size_t left = p->waiting * p->F * sizeof *p->buffer;
    while (left > 0) {
        const ssize_t written = write(p->file, from, left);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return scratch_error(p, "written", err);
        from += written;
        left -= (size_t)written;
    }
    p->waiting = 0;
    return HFSAD_OK;
}

hfsad_status pages_commit(row_pages *p, hfsad_error *err)
{
    assert(!p->x);
    p->n_rows++;
    return ++p->waiting == p->buffer_rows ? write_out(p, err) : HFSAD_OK;
}

/* ---- reading ---- */

hfsad_status pages_map(row_pages *p, double **x, hfsad_error *err)
{
    assert(!p->x && p->n_rows > 0);
    const hfsad_status status = write_out(p, err);
    if (status)
        return status;
    free(p->buffer);
    p->buffer = NULL;
    p->bytes = p->n_rows * p->F * sizeof *p->x;
    void *mapping = mmap(NULL, p->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, p->file, 0);
    if (mapping == MAP_FAILED)
        return scratch_error(p, "mapped", err);
    close(p->file);
    p->file = -1;
    *x = p->x = mapping;
    return HFSAD_OK;
}

void pages_seal(row_pages *p)
{
    (void)mprotect(p->x, p->bytes, PROT_READ);
}

/* The pages that reading a block loads. Pages at its ends may be shared with its neighbours, which then load them
 * again. Nothing is loaded beyond the last block. */
static void advise(const row_pages *p, size_t block, int advice)
{
    const uintptr_t x = (uintptr_t)p->x, end_of_all = x + p->bytes, size = p->block_doubles * sizeof *p->x;
    if (block >= (p->bytes + size - 1) / size)
        return;
    const uintptr_t first = (x + block * size) / AROUND * AROUND,
                    end = (x + (block + 1) * size + AROUND - 1) / AROUND * AROUND;
    char *from = (char *)p->x + (first > x ? first - x : 0);
    (void)madvise(from, (end < end_of_all ? end : end_of_all) - (uintptr_t)from, advice);
}

void pages_leave(row_pages *p)
{
    for (size_t i = 0; i < BLOCKS_KEPT; i++) {
        if (p->kept[i] != SIZE_MAX)
            advise(p, p->kept[i], MADV_DONTNEED);
        p->kept[i] = SIZE_MAX;
    }
    p->last = SIZE_MAX;
}

static void enter(row_pages *p, size_t block)
{
    for (size_t i = 0; i < BLOCKS_KEPT; i++)
        if (p->kept[i] == block)
            return;
    if (p->kept[p->oldest] != SIZE_MAX)
        advise(p, p->kept[p->oldest], MADV_DONTNEED);
    p->kept[p->oldest] = block;
    p->oldest = (p->oldest + 1) % BLOCKS_KEPT;
    /* sweeps alternate their direction; a disk is faster if the next block is announced early */
    if (block == p->last + 1)
        advise(p, block + 1, MADV_WILLNEED);
    else if (block + 1 == p->last && block > 0)
        advise(p, block - 1, MADV_WILLNEED);
}

void pages_visit(row_pages *p, const double *row)
{
    const size_t block = (size_t)(row - p->x) / p->block_doubles;
    if (block == p->last)
        return;
    enter(p, block);
    p->last = block;
}
