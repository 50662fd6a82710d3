/* A state folder is opened: every byte of it is checked before anything of it is believed. See store_file.h. */
#define _GNU_SOURCE /* O_DIRECT */
#include "net/store_file.h"

#include "base/alloc.h"
#include "base/crc32c.h"
#include "base/error.h"
#include "net/kept_groups.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    WINDOW = 1 << 20,
    DYING_MS = 1000, /* a process that was killed holds its lock until it is quite dead */
    DYING_STEP_MS = 10,
};

typedef struct {
    uint64_t sequence, length;
    uint32_t blanks, before;
} head;

/* The file as it is read from its beginning to its end. */
typedef struct {
    store_file *f;
    unsigned char *window;
    uint64_t at; /* of the window */
    size_t size;
    uint64_t marked, marked_owner; /* the last commit, according to the mark */
    uint32_t marked_sum;
    bool marked_differs;
} reader;

/* At most WINDOW bytes of the file; NULL: the file is shorter, or f->trouble. */
static const unsigned char *look(reader *r, uint64_t at, size_t size)
{
    store_file *f = r->f;
    if (f->trouble || at > f->taken || size > f->taken - at)
        return NULL;
    if (at < r->at || at + size > r->at + r->size) {
        r->at = at;
        r->size = 0;
        const uint64_t left = f->taken - at;
        const size_t wanted = left < WINDOW ? (size_t)left : WINDOW;
        while (r->size < wanted) {
            const ssize_t n = pread(f->fd, r->window + r->size, wanted - r->size, (off_t)(at + r->size));
            if (n < 0 && errno == EINTR)
                continue;
            if (n <= 0) {
                f->trouble = n < 0 ? errno : EIO;
                return NULL;
            }
            r->size += (size_t)n;
        }
    }
    return r->window + (at - r->at);
}

/* The end of the last byte in [from, to) that is not zero; from: there is none. */
static uint64_t last_byte(reader *r, uint64_t from, uint64_t to)
{
    uint64_t last = from;
    for (uint64_t at = from; at < to;) {
        const size_t size = to - at < STORE_SECTOR ? (size_t)(to - at) : STORE_SECTOR;
        const unsigned char *bytes = look(r, at, size);
        if (bytes && (bytes[0] || memcmp(bytes, bytes + 1, size - 1) != 0))
            for (size_t i = 0; i < size; i++)
                last = bytes[i] ? at + i + 1 : last;
        at += size;
    }
    return last;
}

/* ---- records ---- */

static bool read_head(reader *r, uint64_t at, head *h)
{
    const unsigned char *b = look(r, at, STORE_HEAD);
    if (!b || memcmp(b, "hfs", 3) != 0 || b[3] != STORE_VERSION || get32(b + 36) != crc32c(0, b, 36))
        return false;
    if (at == 0)
        r->f->owner = get64(b + 8);
    *h = (head){get64(b + 16), get64(b + 24), get32(b + 4), get32(b + 32)};
    return get64(b + 8) == r->f->owner;
}

/* The record is there to its end. */
static bool is_there(const reader *r, uint64_t at, const head *h)
{
    return h->length <= r->f->taken - at && store_extent(h->length) <= r->f->taken - at;
}

/* Both, or 0 if they differ: the checksum that the record has, and the one that it should have. */
static uint32_t sum_record(reader *r, uint64_t at, const head *h)
{
    const uint64_t end = at + store_extent(h->length) - STORE_SUM;
    uint32_t sum = 0;
    for (uint64_t i = at + STORE_HEAD; i < end;) {
        const size_t size = end - i < WINDOW ? (size_t)(end - i) : WINDOW;
        const unsigned char *bytes = look(r, i, size);
        if (!bytes)
            return 0;
        sum = crc32c(sum, bytes, size);
        i += size;
    }
    const unsigned char *first = look(r, at, STORE_HEAD);
    sum = first ? store_checksum(crc32c(sum, first, STORE_HEAD)) : 0;
    const unsigned char *last = look(r, end, STORE_SUM);
    return last && get32(last) == sum ? sum : 0;
}

static bool read_entries(reader *r, uint64_t at, uint64_t length)
{
    while (length > 0) {
        const unsigned char *b = length < STORE_ENTRY_HEAD ? NULL : look(r, at, STORE_ENTRY_HEAD);
        const uint64_t size = b ? get64(b + 8) : 0, room = length - STORE_ENTRY_HEAD;
        if (!b || size > room || store_padded((size_t)size) > room)
            return false;
        if (!store_entries_add(&r->f->entries, get32(b), get32(b + 4), at + STORE_ENTRY_HEAD, size)) {
            r->f->trouble = ENOMEM;
            return false;
        }
        at += STORE_ENTRY_HEAD + store_padded((size_t)size);
        length = room - store_padded((size_t)size);
    }
    return true;
}

static void hold_against_mark(reader *r, uint64_t sequence, uint32_t sum)
{
    if (sequence == r->marked && sum != r->marked_sum)
        r->marked_differs = true;
}

/* The record after the last one; false: there is no valid record. */
static bool read_record(reader *r)
{
    store_file *f = r->f;
    head h;
    const bool first = f->end == 0;
    if (!read_head(r, f->end, &h) || !is_there(r, f->end, &h) ||
        (first ? h.sequence == 0 : h.sequence != f->sequence + 1 || h.before != f->sum))
        return false;
    const uint32_t sum = sum_record(r, f->end, &h);
    if (!sum || !read_entries(r, f->end + STORE_HEAD, h.length))
        return false;
    if (first) {
        f->first = h.sequence;
        f->snapshot = store_extent(h.length);
        hold_against_mark(r, h.sequence - 1, h.before);
    }
    hold_against_mark(r, h.sequence, sum);
    f->end += store_extent(h.length);
    f->sequence = h.sequence;
    f->sum = sum;
    f->entries.kept = f->entries.count;
    return true;
}

/* ---- the end of the log ---- */

/* Sectors between the first and the last that are zero. */
static uint32_t count_zeros(reader *r, uint64_t at, uint64_t extent)
{
    uint32_t zeros = 0;
    for (uint64_t i = STORE_SECTOR; i + STORE_SECTOR < extent && at + i + STORE_SECTOR <= r->f->taken;
         i += STORE_SECTOR)
        zeros += last_byte(r, at + i, at + i + STORE_SECTOR) == at + i;
    return zeros;
}

/* Whether the bytes after the last record are an unfinished write; f->dirty is its end. */
static bool is_unfinished(reader *r)
{
    store_file *f = r->f;
    const uint64_t at = f->end;
    head h;
    f->dirty = last_byte(r, at, f->taken);
    if (f->dirty <= at + STORE_HEAD)
        return true;
    if (read_head(r, at, &h)) {
        if (h.sequence != f->sequence + 1 || h.before != f->sum)
            return false;
        if (!is_there(r, at, &h))
            return true;
        const uint64_t end = at + store_extent(h.length);
        if (f->dirty > end)
            return false;
        return last_byte(r, end - 1, end) == end - 1 || count_zeros(r, at, end - at) > h.blanks;
    }
    if (last_byte(r, at, at + STORE_SECTOR) != at)
        return false;
    for (uint64_t i = at + STORE_SECTOR; i < f->dirty; i += STORE_SECTOR) /* its first sector is missing */
        if (read_head(r, i, &h))
            return false;
    return true;
}

static hfsad_status refuse_first(reader *r, hfsad_error *err)
{
    const unsigned char *b = look(r, 0, 4);
    const bool ours = b && memcmp(b, "hfs", 3) == 0;
    char why[100];
    snprintf(why, sizeof why, "%s", ours ? "is damaged" : "is damaged or not a state of hfsad");
    if (ours && b[3] != STORE_VERSION)
        snprintf(why, sizeof why, "has version %d, this program reads %d", b[3], STORE_VERSION);
    return store_file_refuse(r->f, "state", 0, why, err);
}

static hfsad_status read_state(reader *r, hfsad_error *err)
{
    store_file *f = r->f;
    while (read_record(r))
        ;
    const bool unfinished = f->sequence > 0 && is_unfinished(r);
    if (f->trouble)
        return store_file_fault(f, "state", f->trouble, err);
    if (f->sequence == 0)
        return refuse_first(r, err);
    if (f->owner != r->marked_owner)
        return store_file_refuse(f, "mark", 0, "belongs to another state", err);
    f->entries.count = f->entries.kept;
    if (!unfinished)
        return store_file_refuse(f, "state", f->end, "is damaged", err);
    if (r->marked > f->sequence)
        return store_file_refuse(f, "state", f->end, "is an old copy or was cut off: the file mark has a later commit",
                                 err);
    return r->marked_differs ? store_file_refuse(f, "state", f->end, "does not match the file mark", err) : HFSAD_OK;
}

/* ---- the folder ---- */

static hfsad_status lock_folder(store_file *f, hfsad_error *err)
{
    f->dir = open(f->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (f->dir < 0)
        return error_set(err, HFSAD_ERROR_INPUT, "the state folder %s cannot be opened: %s", f->folder,
                         strerror(errno));
    for (int waited = 0; flock(f->dir, LOCK_EX | LOCK_NB); waited += DYING_STEP_MS) {
        if (errno != EWOULDBLOCK)
            return error_set(err, HFSAD_ERROR_INPUT,
                             "the state folder %s cannot be locked: %s; give a state folder on a disk of this machine",
                             f->folder, strerror(errno));
        if (waited >= DYING_MS)
            return error_set(
                err, HFSAD_ERROR_INPUT,
                "the state folder %s is in use by another process: end that process, or give another state folder",
                f->folder);
        poll(NULL, 0, DYING_STEP_MS);
    }
    return HFSAD_OK;
}

static hfsad_status open_one(store_file *f, const char *name, int *fd, hfsad_error *err)
{
    *fd = openat(f->dir, name, O_RDWR | O_CLOEXEC);
    if (*fd >= 0 || errno == ENOENT)
        return HFSAD_OK;
    return error_set(err, HFSAD_ERROR_INPUT, "%s/%s cannot be opened for writing: %s", f->folder, name,
                     strerror(errno));
}

/* The mark's newest slot. */
static hfsad_status read_mark(reader *r, hfsad_error *err)
{
    store_file *f = r->f;
    bool found = false;
    for (int i = 0; i < 2; i++) {
        unsigned char b[STORE_MARK];
        if (pread(f->mark, b, sizeof b, i * STORE_SECTOR) != (ssize_t)sizeof b || memcmp(b, "hfm", 3) != 0 ||
            b[3] != STORE_VERSION || get32(b + STORE_MARK - 4) != crc32c(0, b, STORE_MARK - 4))
            continue;
        const uint64_t sequence = get64(b + 16);
        if (found && sequence < r->marked)
            continue;
        found = true;
        r->marked_sum = get32(b + 4);
        r->marked_owner = get64(b + 8);
        r->marked = sequence;
    }
    return found ? HFSAD_OK : store_file_refuse(f, "mark", 0, "is damaged or not a mark of hfsad", err);
}

static hfsad_status read_files(reader *r, hfsad_error *err)
{
    store_file *f = r->f;
    struct stat info;
    if (faccessat(f->dir, "state.db", F_OK, 0) == 0)
        return error_set(err, HFSAD_ERROR_INPUT,
                         "%s/state.db is a state of an earlier version (SQLite), which this program does not read: "
                         "finish its run with that version of hfsad, or give another state folder",
                         f->folder);
    hfsad_status status = open_one(f, "mark", &f->mark, err);
    if (!status)
        status = open_one(f, "state", &f->fd, err);
    if (!status && f->fd < 0 && f->mark >= 0 && !fstat(f->mark, &info) && info.st_size <= STORE_MARK) {
        close(f->mark); /* of a first commit that was never finished: the second slot is written behind it */
        f->mark = -1;
    }
    if (!status && f->fd < 0 && f->mark < 0 && faccessat(f->dir, ".", W_OK, AT_EACCESS))
        return error_set(err, HFSAD_ERROR_INPUT, "the state folder %s cannot be written: %s; give another state folder",
                         f->folder, strerror(errno));
    if (status || (f->fd < 0 && f->mark < 0))
        return status;
    if (f->fd < 0)
        return store_file_refuse(f, "state", 0, "is missing", err);
    if (f->mark < 0)
        return store_file_refuse(f, "mark", 0, "is missing", err);
    if (fstat(f->fd, &info))
        return store_file_fault(f, "state", errno, err);
    f->taken = (uint64_t)info.st_size;
    f->direct = openat(f->dir, "state", O_WRONLY | O_DIRECT | O_DSYNC | O_CLOEXEC);
    status = read_mark(r, err);
    return status ? status : read_state(r, err);
}

hfsad_status store_file_open(store_file *f, const char *folder, hfsad_error *err)
{
    *f = (store_file){.dir = -1, .fd = -1, .direct = -1, .fresh = -1, .mark = -1};
    if ((size_t)snprintf(f->folder, sizeof f->folder, "%s", folder) >= sizeof f->folder)
        return error_set(err, HFSAD_ERROR_INPUT, "the name of the state folder is too long: %.100s...", folder);
    if (mkdir(folder, 0700) && errno != EEXIST)
        return error_set(err, HFSAD_ERROR_INPUT, "the state folder %s cannot be created: %s", folder, strerror(errno));
    hfsad_status status = lock_folder(f, err);
    reader r = {.f = f, .window = status ? NULL : alloc_raw(WINDOW, 1)};
    if (!status && !r.window)
        status = error_memory(err, WINDOW, "the state folder");
    if (!status)
        status = read_files(&r, err);
    free(r.window);
    return status;
}

hfsad_status store_file_read(const store_file *f, const store_entry *e, void **bytes, hfsad_error *err)
{
    unsigned char *to = alloc_raw((size_t)e->size + 1, 1);
    *bytes = to;
    if (!to)
        return error_memory(err, (size_t)e->size, "the state folder");
    size_t done = 0;
    to[e->size] = 0;
    errno = EIO;
    while (done < e->size) {
        const ssize_t n = pread(f->fd, to + done, (size_t)e->size - done, (off_t)(e->at + done));
        if (n > 0)
            done += (size_t)n;
        else if (n == 0 || errno != EINTR)
            break;
    }
    if (done == e->size)
        return HFSAD_OK;
    free(to);
    *bytes = NULL;
    return store_file_fault(f, "state", errno, err);
}

void store_file_close(store_file *f)
{
    store_file_drop(f);
    if (f->slots)
        munmap(f->slots, STORE_SLOTS);
    const int all[] = {f->fd, f->direct, f->mark, f->dir};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i] >= 0)
            close(all[i]);
    free(f->batch.bytes);
    free(f->entries.all);
    free(f->next.all);
}

void store_file_remove(const char *folder)
{
    static const char *const names[] = {"state.new",   "state",       "mark",      "cohort.key",
                                        "cohort.list", "cohort.gone", "noise.key", KEPT_GROUPS_NAME};
    char path[4200];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%.4000s/%s", folder, names[i]);
        unlink(path);
    }
}
