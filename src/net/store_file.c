/* Records in the file `state`, and the mark beside it: how they are written. See store_file.h. */
#define _GNU_SOURCE /* O_DIRECT, getrandom */
#include "net/store_file.h"

#include "base/alloc.h"
#include "base/crc32c.h"
#include "base/error.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

enum {
    PIECE = 256 << 10,    /* in which the file grows */
    FIRST_ROOM = 1 << 20, /* for the log behind a snapshot that is smaller */
    STREAM = 1 << 20,     /* of a snapshot that is written at a time */
};

/* ---- faults ---- */

hfsad_status store_file_fault(const store_file *f, const char *name, int code, hfsad_error *err)
{
    if (code == ENOMEM)
        return error_memory(err, f->batch.size, "the state folder");
    if (code == EFBIG)
        return error_set(err, HFSAD_ERROR_IO, "%s/%s cannot grow: %s; raise the limit on file sizes (ulimit -f)",
                         f->folder, name, strerror(code));
    if (code == ENOSPC || code == EDQUOT)
        return error_set(err, HFSAD_ERROR_IO, "%s/%s cannot grow: %s; make room on its disk", f->folder, name,
                         strerror(code));
    return error_set(err, HFSAD_ERROR_IO, "%s/%s cannot be read or written: %s", f->folder, name, strerror(code));
}

hfsad_status store_file_refuse(const store_file *f, const char *name, uint64_t at, const char *why, hfsad_error *err)
{
    return error_set(err, HFSAD_ERROR_INPUT,
                     "%.300s/%s %s (byte %llu): restore the whole folder from a copy that is not older, or restart the "
                     "run with new state folders",
                     f->folder, name, why, (unsigned long long)at);
}

/* ---- the record in hand ---- */

bool store_entries_add(store_entries *list, uint32_t kind, uint32_t about, uint64_t at, uint64_t size)
{
    if (!alloc_grow((void **)&list->all, &list->room, list->count + 1, sizeof *list->all))
        return false;
    list->all[list->count++] = (store_entry){kind, about, at, size};
    return true;
}

/* Space for this number of bytes and for the rest of a record's last sector, at an address from which a disk can take
 * it. */
static bool make_room(store_buffer *b, size_t size)
{
    if (size + 2 * STORE_SECTOR <= b->room)
        return true;
    if (size > SIZE_MAX / 8)
        return false;
    const size_t bytes = (2 * size + 3 * STORE_SECTOR) / STORE_SECTOR * STORE_SECTOR;
    unsigned char *more = aligned_alloc(STORE_SECTOR, bytes);
    if (!more)
        return false;
    if (b->size)
        memcpy(more, b->bytes, b->size);
    free(b->bytes);
    b->bytes = more;
    b->room = bytes;
    return true;
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

/* Bytes of a snapshot are appended to state.new. */
static void stream(store_file *f, const unsigned char *bytes, size_t size)
{
    if (f->trouble)
        return;
    f->trouble = write_all(f->fresh, bytes, size, f->written);
    const size_t head = f->written == 0 ? STORE_HEAD : 0; /* which is not known yet */
    f->written_sum = crc32c(f->written_sum, bytes + head, size - head);
    f->written += size;
}

static void stream_batch(store_file *f)
{
    stream(f, f->batch.bytes, f->batch.size);
    f->batch.size = 0;
}

/* Large pieces of a snapshot are not copied. */
static void add_bytes(store_file *f, const void *bytes, size_t size)
{
    const bool whole = f->fresh >= 0;
    if (f->trouble || size == 0)
        return;
    if (whole && f->batch.size > 0 && f->batch.size + size > STREAM)
        stream_batch(f);
    if (whole && size > STREAM) {
        stream(f, bytes, size);
    } else if (make_room(&f->batch, f->batch.size + size)) {
        memcpy(f->batch.bytes + f->batch.size, bytes, size);
        f->batch.size += size;
    } else {
        f->trouble = ENOMEM;
    }
}

void store_file_put(store_file *f, uint32_t kind, uint32_t about, const void *bytes, size_t size, const void *more,
                    size_t n_more)
{
    static const unsigned char zeros[STORE_HEAD];
    const bool whole = f->fresh >= 0;
    unsigned char head[STORE_ENTRY_HEAD];
    put32(head, kind);
    put32(head + 4, about);
    put64(head + 8, size + n_more);
    if (f->batch.size == 0 && (!whole || f->written == 0))
        add_bytes(f, zeros, STORE_HEAD);
    const uint64_t at = (whole ? f->written : f->end) + f->batch.size + STORE_ENTRY_HEAD;
    add_bytes(f, head, sizeof head);
    add_bytes(f, bytes, size);
    add_bytes(f, more, n_more);
    add_bytes(f, zeros, store_padded(size + n_more) - size - n_more);
    if (!f->trouble && !store_entries_add(whole ? &f->next : &f->entries, kind, about, at, size + n_more))
        f->trouble = ENOMEM;
}

bool store_file_is_empty(const store_file *f)
{
    return f->batch.size == 0 && !f->trouble && f->fresh < 0;
}

uint64_t store_file_log_bytes(const store_file *f)
{
    return f->end - f->snapshot + f->batch.size;
}

void store_file_drop(store_file *f)
{
    if (f->fresh >= 0) {
        close(f->fresh);
        unlinkat(f->dir, "state.new", 0);
    }
    f->fresh = -1;
    f->written = f->written_sum = 0;
    f->next.count = 0;
    f->entries.count = f->entries.kept;
    f->batch.size = 0;
    f->trouble = 0;
}

/* ---- the mark ---- */

/* Whether a store through a mapping never needs new blocks. Elsewhere, on file systems whose files can share blocks
 * (XFS too), a full disk would end the process by a signal; an error of a write is passed over. */
static bool writes_in_place(int fd)
{
    struct statfs s;
    enum { EXT = 0xef53, TMPFS = 0x01021994 };
    return !fstatfs(fd, &s) && (s.f_type == EXT || s.f_type == TMPFS);
}

/* A write would update the inode's time in every commit, and wait while a sync of another file writes the same block of
 * inodes. The slots of the commits before are in the file, so the blocks are there. */
static void map_mark(store_file *f)
{
    struct stat info;
    if (f->mapped || f->sequence < 2)
        return;
    f->mapped = true;
    if (fstat(f->mark, &info) || info.st_size < STORE_SLOTS || !writes_in_place(f->mark))
        return;
    void *slots = mmap(NULL, STORE_SLOTS, PROT_READ | PROT_WRITE, MAP_SHARED, f->mark, 0);
    f->slots = slots == MAP_FAILED ? NULL : slots;
}

/* Without a sync: a mark that is lost with the power is one that is older, which is allowed. */
static int write_mark(const store_file *f)
{
    unsigned char slot[STORE_MARK] = {0};
    memcpy(slot, "hfm", 3);
    slot[3] = STORE_VERSION;
    put32(slot + 4, f->sum);
    put64(slot + 8, f->owner);
    put64(slot + 16, f->sequence);
    put32(slot + STORE_MARK - 4, crc32c(0, slot, STORE_MARK - 4));
    const size_t at = f->sequence % 2 * STORE_SECTOR;
    if (!f->slots)
        return write_all(f->mark, slot, sizeof slot, at);
    memcpy(f->slots + at, slot, sizeof slot);
    return 0;
}

/* Before the first commit of a folder. */
static int make_mark(store_file *f)
{
    if (f->mark >= 0)
        return 0;
    f->mark = openat(f->dir, "mark", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    int code = f->mark < 0 || getrandom(&f->owner, sizeof f->owner, 0) < 0 ? errno : write_mark(f);
    if (!code && (fsync(f->mark) || fsync(f->dir)))
        code = errno;
    if (code && f->mark >= 0) {
        close(f->mark);
        f->mark = -1;
    }
    return code;
}

/* ---- commits ---- */

/* Sectors of a record between the first and the last that are zero. */
static uint32_t count_blanks(const unsigned char *record, size_t size)
{
    uint32_t blanks = 0;
    for (size_t at = STORE_SECTOR; at + STORE_SECTOR < size; at += STORE_SECTOR)
        blanks += !record[at] && memcmp(record + at, record + at + 1, STORE_SECTOR - 1) == 0;
    return blanks;
}

static void write_head(const store_file *f, unsigned char head[STORE_HEAD], uint64_t length, uint32_t blanks)
{
    memcpy(head, "hfs", 3);
    head[3] = STORE_VERSION;
    put32(head + 4, blanks);
    put64(head + 8, f->owner);
    put64(head + 16, f->sequence + 1);
    put64(head + 24, length);
    put32(head + 32, f->sum);
    put32(head + 36, crc32c(0, head, 36));
}

static int write_zeros(int fd, uint64_t from, uint64_t to)
{
    static const unsigned char zeros[1 << 14];
    int code = 0;
    for (uint64_t at = from; at < to && !code; at += sizeof zeros)
        code = write_all(fd, zeros, to - at < sizeof zeros ? (size_t)(to - at) : sizeof zeros, at);
    return code;
}

/* The file gets room for a record and, if that is small, for more. That is written, not only taken: a sync after the
 * first write to a place waits for the file system's own journal, later ones do not. */
static int take_place(store_file *f, size_t size)
{
    const uint64_t need = f->end + size, most = size < PIECE ? (need + PIECE - 1) / PIECE * PIECE : need;
    if (need <= f->taken || f->relaxed) /* without a sync the file grows by itself */
        return 0;
    int code;
    do
        code = posix_fallocate(f->fd, (off_t)f->taken, (off_t)(most - f->taken));
    while (code == EINTR);
    if (!code)
        code = write_zeros(f->fd, need, most);
    if (!code)
        f->taken = most;
    return code;
}

/* By one call, which costs less processor time than a write and a sync through the page cache; false: it was not done,
 * and has to go that way. */
static bool write_direct(store_file *f, const unsigned char *bytes, size_t size)
{
    if (f->direct < 0 || f->relaxed)
        return false;
    if (pwrite(f->direct, bytes, size, (off_t)f->end) == (ssize_t)size)
        return true;
    if (errno == EINVAL) { /* a disk with larger sectors */
        close(f->direct);
        f->direct = -1;
    }
    return false;
}

/* A write up to `end` has failed. What lies behind the end of the file was not written, and a full disk would have no
 * room for zeros there. */
static void note_dirt(store_file *f, uint64_t end)
{
    struct stat info;
    if (!fstat(f->fd, &info) && (uint64_t)info.st_size < end)
        end = (uint64_t)info.st_size;
    if (f->dirty < end)
        f->dirty = end;
}

static int write_record(store_file *f, const unsigned char *bytes, size_t size)
{
    const bool alone = f->end + size <= f->taken || size >= PIECE; /* no zeros have to be synced with it */
    int code = take_place(f, size);
    if (code || (alone && f->dirty <= f->end && write_direct(f, bytes, size)))
        return code;       /* without a place nothing was written */
    if (f->dirty > f->end) /* what an unfinished write has left would be damage behind this record */
        code = write_zeros(f->fd, f->end, f->dirty);
    if (!code)
        code = write_all(f->fd, bytes, size, f->end);
    if (!code && !f->relaxed && fdatasync(f->fd))
        code = errno;
    if (code)
        note_dirt(f, f->end + size);
    return code;
}

/* The rename of a snapshot is in force only then. */
static int sync_folder(store_file *f)
{
    if (f->renamed && !f->relaxed && fsync(f->dir))
        return errno;
    f->renamed = false;
    return 0;
}

hfsad_status store_file_append(store_file *f, hfsad_error *err)
{
    const size_t used = f->batch.size;
    assert(f->sequence > 0 && f->fresh < 0);
    int code = f->trouble ? f->trouble : sync_folder(f);
    if (!code) {
        const size_t size = (size_t)store_extent(used - STORE_HEAD);
        unsigned char *b = f->batch.bytes;
        memset(b + used, 0, size - used);
        write_head(f, b, used - STORE_HEAD, count_blanks(b, size));
        const uint32_t sum =
            store_checksum(crc32c(crc32c(0, b + STORE_HEAD, size - STORE_HEAD - STORE_SUM), b, STORE_HEAD));
        put32(b + size - STORE_SUM, sum);
        code = write_record(f, b, size);
        if (!code) {
            f->end += size;
            f->sequence++;
            f->sum = sum;
            f->dirty = 0;
            f->entries.kept = f->entries.count;
            (void)write_mark(f);
            map_mark(f);
        }
    }
    store_file_drop(f);
    return code ? store_file_fault(f, "state", code, err) : HFSAD_OK;
}

hfsad_status store_file_begin(store_file *f, store_buffer *in_hand, hfsad_error *err)
{
    int code = f->trouble ? f->trouble : make_mark(f);
    if (code) {
        store_file_drop(f);
        return store_file_fault(f, "mark", code, err);
    }
    f->fresh = openat(f->dir, "state.new", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (f->fresh < 0) {
        code = errno;
        store_file_drop(f);
        return store_file_fault(f, "state.new", code, err);
    }
    *in_hand = f->batch;
    f->batch = (store_buffer){0};
    return HFSAD_OK;
}

/* The last of state.new: its end and, now that it is known, its head. */
static int finish_snapshot(store_file *f, uint32_t *sum, uint64_t *taken)
{
    unsigned char head[STORE_HEAD], tail[STORE_SECTOR + STORE_SUM] = {0};
    stream_batch(f);
    if (f->trouble)
        return f->trouble;
    const uint64_t length = f->written - STORE_HEAD;
    const size_t rest = (size_t)(store_extent(length) - f->written);
    write_head(f, head, length, 0);
    *sum = store_checksum(crc32c(crc32c(f->written_sum, tail, rest - STORE_SUM), head, STORE_HEAD));
    put32(tail + rest - STORE_SUM, *sum);
    stream(f, tail, rest);
    if (!f->trouble)
        f->trouble = write_all(f->fresh, head, STORE_HEAD, 0);
    *taken = f->written;
    if (!f->trouble && !f->relaxed && f->written < FIRST_ROOM) { /* for the log: one sync does for both */
        f->trouble = write_zeros(f->fresh, f->written, f->written + FIRST_ROOM);
        *taken += FIRST_ROOM;
    }
    if (!f->trouble && !f->relaxed && fsync(f->fresh))
        f->trouble = errno;
    return f->trouble;
}

hfsad_status store_file_replace(store_file *f, hfsad_error *err)
{
    uint32_t sum;
    uint64_t taken;
    int code = finish_snapshot(f, &sum, &taken);
    if (!code && renameat(f->dir, "state.new", f->dir, "state"))
        code = errno;
    if (code) {
        store_file_drop(f);
        return store_file_fault(f, "state.new", code, err);
    }
    if (f->fd >= 0)
        close(f->fd);
    if (f->direct >= 0)
        close(f->direct);
    f->fd = f->fresh;
    f->direct = openat(f->dir, "state", O_WRONLY | O_DIRECT | O_DSYNC | O_CLOEXEC);
    f->snapshot = f->end = f->written;
    f->taken = taken;
    f->first = ++f->sequence;
    f->sum = sum;
    f->dirty = 0;
    const store_entries old = f->entries;
    f->entries = f->next;
    f->entries.kept = f->entries.count;
    f->next = old;
    f->fresh = -1;
    f->renamed = true;
    store_file_drop(f);
    if ((code = sync_folder(f)))
        return store_file_fault(f, "state", code, err);
    (void)write_mark(f);
    return HFSAD_OK;
}
