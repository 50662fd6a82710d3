/*
 * Power cuts: every call by which the store changes the disk is recorded; the disk is then put together as it may be
 * after a cut at any moment, and opened. What was committed is there, or what was about to be; nothing else.
 *
 * The model: a call is in force for certain once its file, or for names the folder, was synced afterwards. Of the calls
 * since then each file has the first ones, any number of them, and of the next one any of its sectors or the bytes up
 * to any place. SEED: begins with this one.
 */
#define _GNU_SOURCE
#include "store_random.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CALLS_MOST = 4000, FILES_MOST = 60, COMMITS = 25, SEEDS = 10, CUTS = 12, SECTOR = 512 };

/* ---- the record ---- */

typedef enum { MAKE, WRITE, GROW, SYNC, NAME, UNLINK, SYNC_NAMES } call_kind;

typedef struct {
    call_kind kind;
    size_t file; /* number of an inode, in the order in which they were made */
    unsigned char *bytes;
    size_t size;
    uint64_t at;
    char name[16]; /* MAKE, NAME, UNLINK */
} call;

static call calls[CALLS_MOST];
static size_t n_calls;
static ino_t inodes[FILES_MOST];
static size_t n_files;
static bool recording, refuses_direct;

static call *note(call_kind kind, size_t file, const char *name)
{
    assert_true(n_calls < CALLS_MOST);
    call *c = &calls[n_calls++];
    *c = (call){.kind = kind, .file = file};
    snprintf(c->name, sizeof c->name, "%s", name);
    return c;
}

/* The newest file of this number: numbers are given again. */
static size_t file_of(int fd)
{
    struct stat info;
    assert_int_equal(fstat(fd, &info), 0);
    size_t i = n_files;
    while (i > 0 && inodes[i - 1] != info.st_ino)
        i--;
    return i - 1; /* SIZE_MAX: the folder */
}

/* The linker sends the library's calls here (tests/CMakeLists.txt: --wrap). */
int __real_openat(int dir, const char *name, int flags, ...);
ssize_t __real_pwrite(int fd, const void *bytes, size_t size, off_t at);
int __real_fsync(int fd);
int __real_fdatasync(int fd);
int __real_renameat(int from_dir, const char *from, int to_dir, const char *to);
int __real_unlinkat(int dir, const char *name, int flags);
int __real_posix_fallocate(int fd, off_t at, off_t size);
int __wrap_openat(int dir, const char *name, int flags, mode_t mode);
ssize_t __wrap_pwrite(int fd, const void *bytes, size_t size, off_t at);
int __wrap_fsync(int fd);
int __wrap_fdatasync(int fd);
int __wrap_renameat(int from_dir, const char *from, int to_dir, const char *to);
int __wrap_unlinkat(int dir, const char *name, int flags);
int __wrap_posix_fallocate(int fd, off_t at, off_t size);

/* Stores through a mapping cannot be recorded; they reach the disk as an unsynced write of the same bytes does. */
void *__wrap_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    (void)at, (void)size, (void)protection, (void)flags, (void)fd, (void)offset;
    errno = ENODEV;
    return MAP_FAILED;
}

int __wrap_openat(int dir, const char *name, int flags, mode_t mode)
{
    if (refuses_direct && flags & O_DIRECT) { /* as some file systems do: then it is a write and a sync */
        errno = EINVAL;
        return -1;
    }
    const int fd = __real_openat(dir, name, flags, mode);
    struct stat info;
    if (recording && fd >= 0 && flags & O_CREAT) {
        assert_true(n_files < FILES_MOST && !fstat(fd, &info));
        assert_int_equal(info.st_size, 0);
        inodes[n_files] = info.st_ino;
        note(MAKE, n_files++, name);
    }
    return fd;
}

ssize_t __wrap_pwrite(int fd, const void *bytes, size_t size, off_t at)
{
    const ssize_t n = __real_pwrite(fd, bytes, size, at);
    const unsigned char *b = bytes;
    call *before = n_calls ? &calls[n_calls - 1] : NULL;
    if (recording && n > 0 && before && before->kind == GROW && before->at + before->size == (uint64_t)at && !b[0] &&
        !memcmp(b, b + 1, size - 1)) {
        before->size += (size_t)n; /* zeros behind zeros */
    } else if (recording && n > 0) {
        call *c = note(!b[0] && !memcmp(b, b + 1, size - 1) ? GROW : WRITE, file_of(fd), "");
        c->bytes = c->kind == WRITE ? malloc((size_t)n) : NULL;
        if (c->bytes)
            memcpy(c->bytes, bytes, (size_t)n);
        c->size = (size_t)n;
        c->at = (uint64_t)at;
        if (fcntl(fd, F_GETFL) & O_DSYNC)
            note(SYNC, c->file, "");
    }
    return n;
}

int __wrap_fsync(int fd)
{
    if (recording) {
        const size_t file = file_of(fd);
        note(file == SIZE_MAX ? SYNC_NAMES : SYNC, file, "");
    }
    return __real_fsync(fd);
}

int __wrap_fdatasync(int fd)
{
    if (recording)
        note(SYNC, file_of(fd), "");
    return __real_fdatasync(fd);
}

int __wrap_renameat(int from_dir, const char *from, int to_dir, const char *to)
{
    if (recording) {
        const int fd = __real_openat(from_dir, from, O_RDONLY);
        note(NAME, file_of(fd), to);
        close(fd);
    }
    return __real_renameat(from_dir, from, to_dir, to);
}

int __wrap_unlinkat(int dir, const char *name, int flags)
{
    if (recording)
        note(UNLINK, 0, name);
    return __real_unlinkat(dir, name, flags);
}

int __wrap_posix_fallocate(int fd, off_t at, off_t size)
{
    const int code = __real_posix_fallocate(fd, at, size);
    if (recording && !code) {
        call *c = note(GROW, file_of(fd), "");
        c->at = (uint64_t)at;
        c->size = (size_t)size;
    }
    return code;
}

/* ---- the disk after a cut ---- */

/* Behind the bytes there are zeros up to the size. */
typedef struct {
    unsigned char *bytes;
    size_t count, size;
} file;

typedef struct {
    file files[FILES_MOST];
    size_t names[3]; /* files of state, mark, state.new; SIZE_MAX: none */
} disk;

static const char *const known[] = {"state", "mark", "state.new"};

static void grow(file *f, size_t size)
{
    f->size = size > f->size ? size : f->size;
}

static void put(file *f, size_t at, const unsigned char *bytes, size_t count)
{
    if (count && at + count > f->count) {
        f->bytes = realloc(f->bytes, at + count);
        memset(f->bytes + f->count, 0, at + count - f->count);
        f->count = at + count;
    }
    grow(f, at + count);
    if (count)
        memcpy(f->bytes + at, bytes, count);
}

static void clear(file *f, size_t at, size_t count)
{
    if (at < f->count)
        memset(f->bytes + at, 0, count < f->count - at ? count : f->count - at);
    grow(f, at + count);
}

/* A write of which some sectors, or the bytes up to a place, are in force. */
static void write_torn(file *f, const call *c, rng *r)
{
    const size_t at = (size_t)c->at;
    if (below(r, 2)) {
        put(f, at, c->bytes, below(r, c->size));
        return;
    }
    const bool grown = at + c->size <= f->size; /* the size is in force with the last bytes, or before them */
    if (grown || below(r, 2))
        grow(f, at + c->size);
    for (size_t i = 0; i < c->size;) {
        const size_t some = SECTOR - (at + i) % SECTOR < c->size - i ? SECTOR - (at + i) % SECTOR : c->size - i;
        if (below(r, 2) && at + i + some <= f->size)
            put(f, at + i, c->bytes + i, some);
        i += some;
    }
}

static void do_call(disk *d, const call *c, rng *r, bool torn)
{
    file *f = c->file < FILES_MOST ? &d->files[c->file] : NULL; /* SIZE_MAX: the folder */
    for (size_t i = 0; i < 3; i++)
        if ((c->kind == MAKE || c->kind == NAME || c->kind == UNLINK) && !strcmp(c->name, known[i]))
            d->names[i] = c->kind == UNLINK ? SIZE_MAX : c->file;
    if (c->kind == NAME)
        d->names[2] = SIZE_MAX;
    if (c->kind == GROW)
        clear(f, (size_t)c->at, torn ? below(r, c->size) : c->size);
    if (c->kind == WRITE && torn)
        write_torn(f, c, r);
    else if (c->kind == WRITE)
        put(f, (size_t)c->at, c->bytes, c->size);
}

static bool of_names(const call *c)
{
    return c->kind == MAKE || c->kind == NAME || c->kind == UNLINK || c->kind == SYNC_NAMES;
}

/* The calls of one file, or of the names, up to `cut`, of those that are not synced the first ones only. */
static void settle(disk *d, size_t which, bool names, size_t cut, rng *r, int how)
{
    size_t synced = 0, last;
    for (size_t i = 0; i < cut; i++)
        if (names ? calls[i].kind == SYNC_NAMES : calls[i].kind == SYNC && calls[i].file == which)
            synced = i;
    last = how == 0 ? cut : how == 1 ? synced : synced + below(r, cut - synced + 1);
    size_t unsynced = SIZE_MAX; /* the first one that is not in force */
    for (size_t i = 0; i < cut; i++) {
        const call *c = &calls[i];
        if (names ? !of_names(c) : of_names(c) || c->file != which)
            continue;
        if (i <= synced || i < last)
            do_call(d, c, r, false);
        else if (unsynced == SIZE_MAX)
            unsynced = i;
    }
    if (unsynced != SIZE_MAX && how == 2 && !names)
        do_call(d, &calls[unsynced], r, true);
}

/* The call at `cut` is the one that the cut hits. how: 0 all before it is in force, and it in part; 1 only what is
 * synced; 2 something in between. */
static void make_disk(size_t cut, int how, rng *r)
{
    disk d = {.names = {SIZE_MAX, SIZE_MAX, SIZE_MAX}};
    settle(&d, 0, true, cut, r, how);
    for (size_t i = 0; i < n_files; i++)
        settle(&d, i, false, cut, r, how);
    if (how == 0 && cut < n_calls && (calls[cut].kind == WRITE || calls[cut].kind == GROW))
        do_call(&d, &calls[cut], r, true);
    for (size_t i = 0; i < 3; i++) {
        char path[40];
        snprintf(path, sizeof path, "state/%s", known[i]);
        unlink(in_folder(path));
        if (d.names[i] == SIZE_MAX)
            continue;
        const file *f = &d.files[d.names[i]];
        const int fd = open(in_folder(path), O_WRONLY | O_CREAT | O_TRUNC, 0600);
        assert_int_equal(write(fd, f->bytes, f->count), f->count);
        assert_int_equal(ftruncate(fd, (off_t)f->size), 0);
        close(fd);
    }
    for (size_t i = 0; i < n_files; i++)
        free(d.files[i].bytes);
}

/* ---- */

static uint64_t contents[COMMITS + 1];
static size_t said[COMMITS + 1]; /* calls when the commit was said to be done */

/* The commit that the folder has; cut: in which it may be the one behind the last that was said. */
static void check(size_t cut, int how, uint64_t seed)
{
    hfsad_error err = {0};
    store *s;
    size_t done = 0;
    while (done < COMMITS && said[done + 1] <= cut)
        done++;
    if (store_open(&s, in_folder("state"), RUN, &err))
        fail_msg("SEED=%" PRIu64 ": cut at call %zu of %zu, %d: %s", seed, cut, n_calls, how, err.message);
    const uint64_t content = content_of(s);
    if (content != contents[done] && (done == COMMITS || content != contents[done + 1]))
        fail_msg("SEED=%" PRIu64 ": cut at call %zu of %zu, %d: not the content of commit %zu", seed, cut, n_calls, how,
                 done);
    store_close(s);
}

/* After a cut the process goes on. */
static void go_on(rng *r)
{
    hfsad_error err;
    store *s;
    ok(store_open(&s, in_folder("state"), RUN, &err), &err);
    for (size_t i = 0; i < 2; i++)
        random_commit(s, r);
    const uint64_t content = content_of(s);
    store_close(s);
    ok(store_open(&s, in_folder("state"), RUN, &err), &err);
    assert_true(content_of(s) == content);
    store_close(s);
}

static void test_power(void **unused)
{
    (void)unused;
    const char *text = getenv("SEED");
    const uint64_t first = text ? strtoull(text, NULL, 10) : 1;
    size_t cuts = 0;
    for (uint64_t seed = first; seed < first + SEEDS; seed++) {
        rng r = {rng_key(seed, rng_stream("power")), 0};
        hfsad_error err;
        store *s;
        for (size_t i = 0; i < n_calls; i++)
            free(calls[i].bytes);
        n_calls = n_files = 0;
        assert_int_equal(leave_folder(NULL), 0);
        assert_int_equal(enter_folder(NULL), 0);
        recording = true;
        refuses_direct = seed % 2;
        ok(store_open(&s, in_folder("state"), RUN, &err), &err);
        store_set_room(s, 2000 + 10000 * (seed % 3));
        contents[0] = content_of(s);
        for (size_t i = 1; i <= COMMITS; i++) {
            random_commit(s, &r);
            contents[i] = content_of(s);
            said[i] = n_calls;
        }
        recording = false;
        store_close(s);
        for (size_t cut = 0; cut <= n_calls; cut++)
            for (int n = 0; n < CUTS; n++, cuts++) {
                const int how = n < 2 ? n : n % 2 ? 2 : 0;
                make_disk(cut, how, &r);
                check(cut, how, seed);
                if (below(&r, 10) == 0)
                    go_on(&r);
            }
    }
    print_message("%zu power cuts\n", cuts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_power, enter_folder, leave_folder),
    };
    if (access("/dev/shm", W_OK) == 0)
        setenv("TMPDIR", "/dev/shm", 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
