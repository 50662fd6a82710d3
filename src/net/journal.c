/*
 * Batches in a file; see journal.h. A batch is a head of 48 bytes and its entries, and the next one begins at the next
 * multiple of 512, so that no sector of a disk in which something is committed is ever written again (in files of
 * version 1 it began where the one before ended). All numbers are little-endian:
 *
 *      0  mark "hfsj"   4  version   8  owner   16  epoch   24  sequence, from 1 in an epoch   32  length of the
 * entries 40  CRC-32C of the 40 bytes before it and of the entries (4)   44  zero (4)
 *
 * and an entry: kind (4), number (4), size (8), bytes, zeros up to a multiple of 8. What the bytes hold is the store's;
 * of it only rows of the trace are as the machine has them.
 */
#define _GNU_SOURCE /* O_DIRECT */
#include "net/journal.h"

#include "base/alloc.h"
#include "base/crc32c.h"
#include "base/error.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    AT_VERSION = 4,
    AT_OWNER = 8,
    AT_EPOCH = 16,
    AT_SEQUENCE = 24,
    AT_LENGTH = 32,
    AT_SUM = 40,
    HEAD = 48,
    ENTRY_HEAD = 16,
    VERSION = 2,
    STEP = 8,               /* entries stand at multiples of it, in version 1 heads too */
    SECTOR = 512,           /* heads do */
    PIECE = 256 << 10,      /* in which the file grows */
    SEARCH_PIECE = 1 << 20, /* in which a tail is looked through */
};
static const char mark[4] = {'h', 'f', 's', 'j'};

typedef struct {
    unsigned char *bytes;
    size_t size, room;
} room;

struct journal {
    char path[1000];
    int fd, direct;                  /* direct: past the page cache and synced by every write; -1: not to be had */
    uint64_t owner, epoch, sequence; /* of the next batch */
    uint64_t end, taken;             /* of the batches, and of the file */
    room batch;                      /* with place for its head */
    size_t last;                     /* where its last entry begins */
    bool failed, relaxed;
    journal_mark *marks;
    size_t n_marks, marks_room;
    int trouble; /* in reading: an errno, 0: none. What could not be read is not what was never written. */
};

/* ---- numbers ---- */

static void put_number(unsigned char *to, uint64_t v, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        to[i] = (unsigned char)(v >> (8 * i));
}

static uint64_t get_number(const unsigned char *from, size_t bytes)
{
    uint64_t v = 0;
    for (size_t i = 0; i < bytes; i++)
        v |= (uint64_t)from[i] << (8 * i);
    return v;
}

static size_t padded(size_t size)
{
    return (size + STEP - 1) / STEP * STEP;
}

static uint64_t next_sector(uint64_t at)
{
    return (at + SECTOR - 1) / SECTOR * SECTOR;
}

/* ---- the batch in hand ---- */

/* Room for the batch and for what is written behind it, where a disk can take it from. */
static bool make_room(room *r, size_t size)
{
    if (size + SECTOR <= r->room)
        return true;
    const size_t bytes = (size_t)next_sector(2 * size + SECTOR);
    unsigned char *more = aligned_alloc(SECTOR, bytes);
    if (!more)
        return false;
    if (r->size)
        memcpy(more, r->bytes, r->size);
    free(r->bytes);
    r->bytes = more;
    r->room = bytes;
    return true;
}

static bool append(journal *j, const void *bytes, size_t size)
{
    if (j->failed || size > SIZE_MAX / 8 || !make_room(&j->batch, j->batch.size + padded(size))) {
        j->failed = true;
        return false;
    }
    unsigned char *to = j->batch.bytes + j->batch.size;
    if (size)
        memcpy(to, bytes, size);
    memset(to + size, 0, padded(size) - size);
    j->batch.size += padded(size);
    return true;
}

void journal_put(journal *j, uint32_t kind, uint32_t about, const void *bytes, size_t size)
{
    static const unsigned char empty[HEAD];
    unsigned char head[ENTRY_HEAD];
    put_number(head, kind, 4);
    put_number(head + 4, about, 4);
    put_number(head + 8, size, 8);
    if (j->batch.size == 0)
        append(j, empty, HEAD);
    j->last = j->batch.size;
    append(j, head, ENTRY_HEAD);
    append(j, bytes, size);
}

void journal_add(journal *j, const void *bytes, size_t size)
{
    if (!append(j, bytes, size))
        return;
    const uint64_t old = get_number(j->batch.bytes + j->last + 8, 8);
    assert(old % STEP == 0);
    put_number(j->batch.bytes + j->last + 8, old + size, 8);
}

bool journal_is_empty(const journal *j)
{
    return j->batch.size == 0 && !j->failed;
}

uint64_t journal_bytes(const journal *j)
{
    return j->end + j->batch.size;
}

void journal_drop(journal *j)
{
    j->batch.size = 0;
    j->failed = false;
}

void journal_begin(journal *j, uint64_t epoch)
{
    journal_drop(j);
    j->epoch = epoch;
    j->sequence = 1;
    j->end = 0;
    j->n_marks = 0;
}

void journal_each(const journal *j, void (*entry)(void *context, uint32_t kind, uint32_t about, const void *, size_t),
                  void *context)
{
    for (size_t at = HEAD; at < j->batch.size;) {
        const unsigned char *from = j->batch.bytes + at;
        const size_t size = (size_t)get_number(from + 8, 8);
        entry(context, (uint32_t)get_number(from, 4), (uint32_t)get_number(from + 4, 4), from + ENTRY_HEAD, size);
        at += ENTRY_HEAD + padded(size);
    }
}

/* ---- writing ---- */

hfsad_status journal_fault(const char *path, int code, hfsad_error *err)
{
    if (code == EFBIG)
        return error_set(err, HFSAD_ERROR_IO, "%s cannot grow: %s; raise the limit on the size of a file (ulimit -f)",
                         path, strerror(code));
    if (code == ENOSPC || code == EDQUOT)
        return error_set(err, HFSAD_ERROR_IO, "%s cannot grow: %s; make room on its disk", path, strerror(code));
    return error_set(err, HFSAD_ERROR_IO, "%s cannot be read or written: %s", path, strerror(code));
}

static hfsad_status fault(const journal *j, int code, hfsad_error *err)
{
    return journal_fault(j->path, code, err);
}

static int write_all(int fd, const unsigned char *bytes, size_t size, uint64_t at)
{
    while (size > 0) {
        const ssize_t n = pwrite(fd, bytes, size, (off_t)at);
        if (n < 0 && errno != EINTR)
            return errno;
        if (n > 0) {
            bytes += n;
            at += (uint64_t)n;
            size -= (size_t)n;
        }
    }
    return 0;
}

/* The file gets room for a batch and, where that is small, for more. That is written, not only taken: a sync after the
 * first write to a place waits for the file system's own journal, later ones do not. */
static int take_place(journal *j, size_t size)
{
    static const unsigned char zeros[1 << 12];
    const uint64_t need = j->end + size, most = size < PIECE ? (need + PIECE - 1) / PIECE * PIECE : need;
    if (need <= j->taken)
        return 0;
    int code;
    do
        code = posix_fallocate(j->fd, (off_t)j->taken, (off_t)(most - j->taken));
    while (code == EINTR);
    for (uint64_t at = need; at < most && !code;) {
        const size_t some = sizeof zeros - (size_t)(at % sizeof zeros);
        code = write_all(j->fd, zeros, some, at);
        at += some;
    }
    if (!code)
        j->taken = most;
    return code;
}

/* Marks for the entries of a batch that stands at `at`; false: no memory, or they are not entries. */
static bool mark_entries(journal *j, const unsigned char *batch, size_t size, uint64_t at)
{
    const size_t before = j->n_marks;
    for (size_t i = HEAD; i < size;) {
        const uint64_t bytes = size - i >= ENTRY_HEAD ? get_number(batch + i + 8, 8) : UINT64_MAX;
        if (bytes > size - i || padded((size_t)bytes) > size - i - ENTRY_HEAD ||
            !alloc_grow((void **)&j->marks, &j->marks_room, j->n_marks + 1, sizeof *j->marks)) {
            j->n_marks = before;
            return false;
        }
        j->marks[j->n_marks++] = (journal_mark){(uint32_t)get_number(batch + i, 4),
                                                (uint32_t)get_number(batch + i + 4, 4), at + i + ENTRY_HEAD, bytes};
        i += ENTRY_HEAD + padded((size_t)bytes);
    }
    return true;
}

static uint32_t sum_of(const unsigned char *batch, size_t size)
{
    return crc32c(crc32c(0, batch, AT_SUM), batch + HEAD, size - HEAD);
}

/* By one call, which costs less processor time than a write and a sync through the page cache; false: it was not done,
 * and has to go that way. */
static bool write_direct(journal *j, const unsigned char *bytes, size_t size)
{
    if (j->direct < 0 || j->relaxed || j->end % SECTOR)
        return false;
    if (pwrite(j->direct, bytes, size, (off_t)j->end) == (ssize_t)size)
        return true;
    if (errno == EINVAL) { /* a disk with larger sectors */
        close(j->direct);
        j->direct = -1;
    }
    return false;
}

static int write_batch(journal *j, const unsigned char *bytes, size_t size)
{
    const bool zeros = j->end + size > j->taken && size < PIECE; /* these are to be synced once, too */
    int code = take_place(j, size);
    if (code || (!zeros && write_direct(j, bytes, size)))
        return code;
    code = write_all(j->fd, bytes, size, j->end);
    if (!code && !j->relaxed && fdatasync(j->fd))
        code = errno;
    return code;
}

hfsad_status journal_commit(journal *j, hfsad_error *err)
{
    const size_t size = j->batch.size, old = j->n_marks;
    const uint64_t next = next_sector(j->end + size);
    unsigned char *b = j->batch.bytes;
    if (size == 0 && !j->failed)
        return HFSAD_OK;
    if (j->failed || !mark_entries(j, b, size, j->end)) {
        journal_drop(j);
        return error_memory(err, size, "the journal");
    }
    memcpy(b, mark, sizeof mark);
    put_number(b + AT_VERSION, VERSION, 4);
    put_number(b + AT_OWNER, j->owner, 8);
    put_number(b + AT_EPOCH, j->epoch, 8);
    put_number(b + AT_SEQUENCE, j->sequence, 8);
    put_number(b + AT_LENGTH, size - HEAD, 8);
    put_number(b + AT_SUM, sum_of(b, size), 4);
    journal_drop(j);
    memset(b + size, 0, (size_t)(next - j->end) - size);
    const int code = write_batch(j, b, (size_t)(next - j->end));
    if (code) {
        j->n_marks = old;
        return fault(j, code, err);
    }
    j->end = next;
    j->sequence++;
    return HFSAD_OK;
}

/* ---- reading ---- */

const journal_mark *journal_marks(const journal *j, size_t *count)
{
    *count = j->n_marks;
    return j->marks;
}

/* Returns how many there were. */
static size_t read_all(journal *j, unsigned char *to, size_t size, uint64_t at)
{
    size_t done = 0;
    while (done < size) {
        const ssize_t n = pread(j->fd, to + done, size - done, (off_t)(at + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            j->trouble = errno;
        if (n <= 0)
            break;
        done += (size_t)n;
    }
    return done;
}

hfsad_status journal_read(journal *j, const journal_mark *m, void **bytes, hfsad_error *err)
{
    unsigned char *to = alloc_raw((size_t)m->size + 1, 1);
    *bytes = to;
    if (!to)
        return error_memory(err, (size_t)m->size, "the journal");
    to[m->size] = 0;
    if (read_all(j, to, (size_t)m->size, m->at) == m->size)
        return HFSAD_OK;
    free(to);
    *bytes = NULL;
    return fault(j, EIO, err);
}

/* A whole batch at `at`, into *r, which begins with it; 0: there is none, or there is trouble. Within entries stands
 * what others have sent, and they can make it look like a batch, but not like this owner's: one of another owner counts
 * only where nothing but a batch can stand. */
static size_t read_batch(journal *j, uint64_t at, room *r)
{
    unsigned char head[HEAD];
    if (at > j->taken || j->taken - at < HEAD || read_all(j, head, HEAD, at) < HEAD ||
        memcmp(head, mark, sizeof mark) != 0 || get_number(head + AT_VERSION, 4) - 1 >= VERSION ||
        get_number(head + AT_SUM + 4, 4) != 0 || (at > 0 && get_number(head + AT_OWNER, 8) != j->owner))
        return 0;
    const uint64_t length = get_number(head + AT_LENGTH, 8);
    if (length > j->taken - at - HEAD || length % STEP)
        return 0;
    if (!alloc_grow((void **)&r->bytes, &r->room, (size_t)length + HEAD, 1)) {
        j->trouble = ENOMEM;
        return 0;
    }
    const size_t size = (size_t)length + HEAD;
    if (read_all(j, r->bytes, size, at) < size || get_number(r->bytes + AT_SUM, 4) != sum_of(r->bytes, size))
        return 0;
    return size;
}

static hfsad_status refuse(const journal *j, const char *why, hfsad_error *err)
{
    return error_set(err, HFSAD_ERROR_INPUT,
                     "%s %s: restore the whole folder from a copy, or give another state folder", j->path, why);
}

/* What a batch behind the end says of all. */
static hfsad_status judge(const journal *j, const unsigned char *batch, hfsad_error *err)
{
    const uint64_t epoch = get_number(batch + AT_EPOCH, 8);
    if (get_number(batch + AT_OWNER, 8) != j->owner)
        return refuse(j, "belongs to another state.db", err);
    if (epoch > j->epoch)
        return refuse(j, "is newer than state.db", err);
    return epoch == j->epoch ? refuse(j, "is damaged", err) : HFSAD_OK;
}

/* Whether a whole batch behind the end shows that more was committed than was read. */
static hfsad_status check_tail(journal *j, room *r, hfsad_error *err)
{
    unsigned char *piece = alloc_raw(SEARCH_PIECE, 1);
    hfsad_status status = HFSAD_OK;
    if (!piece)
        return error_memory(err, SEARCH_PIECE, "the journal");
    for (uint64_t at = j->end; at < j->taken && !status; at += SEARCH_PIECE) {
        const size_t count = read_all(j, piece, SEARCH_PIECE, at);
        for (size_t i = 0; i + STEP <= count && !status; i += STEP)
            if (memcmp(piece + i, mark, sizeof mark) == 0 && read_batch(j, at + i, r) > 0)
                status = judge(j, r->bytes, err);
    }
    free(piece);
    return status;
}

static hfsad_status read_epoch(journal *j, hfsad_error *err)
{
    room r = {0};
    hfsad_status status = HFSAD_OK;
    size_t size;
    while (!status && (size = read_batch(j, j->end, &r)) > 0 && get_number(r.bytes + AT_OWNER, 8) == j->owner &&
           get_number(r.bytes + AT_EPOCH, 8) == j->epoch && get_number(r.bytes + AT_SEQUENCE, 8) == j->sequence) {
        if (!mark_entries(j, r.bytes, size, j->end))
            status = refuse(j, "cannot be read", err);
        j->end += size;
        if (get_number(r.bytes + AT_VERSION, 4) > 1)
            j->end = next_sector(j->end);
        j->sequence++;
    }
    if (!status)
        status = check_tail(j, &r, err);
    if (!status && j->trouble)
        status = fault(j, j->trouble, err);
    free(r.bytes);
    return status;
}

/* ---- opening ---- */

static int sync_folder(const char *folder)
{
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const int code = fd < 0 || fsync(fd) ? errno : 0;
    if (fd >= 0)
        close(fd);
    return code;
}

static hfsad_status open_file(journal *j, const char *folder, hfsad_error *err)
{
    struct stat info;
    if (j->epoch == 0) { /* nothing of this base is in it yet; what another one has left may go */
        j->fd = open(j->path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        const int code = j->fd < 0 ? 0 : sync_folder(folder);
        if (code)
            return fault(j, code, err);
    } else {
        j->fd = open(j->path, O_RDWR | O_CLOEXEC);
    }
    if (j->fd < 0 && errno == ENOENT)
        return error_set(err, HFSAD_ERROR_INPUT,
                         "%s is missing: it belongs to state.db; copy the whole folder, or give another state folder",
                         j->path);
    if (j->fd < 0)
        return error_set(err, HFSAD_ERROR_INPUT, "%s cannot be opened for writing: %s", j->path, strerror(errno));
    if (fstat(j->fd, &info))
        return fault(j, errno, err);
    j->taken = (uint64_t)info.st_size;
    j->direct = open(j->path, O_WRONLY | O_DIRECT | O_DSYNC | O_CLOEXEC);
    return HFSAD_OK;
}

hfsad_status journal_open(journal **out, const char *folder, uint64_t owner, uint64_t epoch, hfsad_error *err)
{
    *out = NULL;
    journal *j = alloc_zero(1, sizeof *j);
    if (!j)
        return error_memory(err, sizeof *j, "the journal");
    j->fd = j->direct = -1;
    j->owner = owner;
    journal_begin(j, epoch);
    hfsad_status status = HFSAD_OK;
    if ((size_t)snprintf(j->path, sizeof j->path, "%s/journal", folder) >= sizeof j->path)
        status = error_set(err, HFSAD_ERROR_INPUT, "the name of the state folder is too long: %.100s...", folder);
    if (!status)
        status = open_file(j, folder, err);
    if (!status)
        status = read_epoch(j, err);
    if (status)
        journal_close(j);
    else
        *out = j;
    return status;
}

void journal_relax(journal *j)
{
    j->relaxed = true;
}

void journal_close(journal *j)
{
    if (!j)
        return;
    if (j->fd >= 0)
        close(j->fd);
    if (j->direct >= 0)
        close(j->direct);
    free(j->batch.bytes);
    free(j->marks);
    free(j);
}
