/* The journal of a state folder: whatever is cut off or flipped, what is read is what was committed, or refused. */
#define _GNU_SOURCE
#include "tools.h"

#include "base/crc32c.h"
#include "net/journal.h"
#include "net/store.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OWNER = 815, RUN = 7, BATCHES = 6, ENTRIES_MOST = 64 };

/* ---- batches ---- */

typedef struct {
    uint32_t kind, about;
    size_t size;
    unsigned char bytes[64];
} entry;

/* What was committed, where each batch ended, and where the next one begins. */
typedef struct {
    entry all[ENTRIES_MOST];
    size_t count, after[BATCHES + 1];
    uint64_t end[BATCHES + 1], next[BATCHES + 1];
} written;

static void write_epoch(uint64_t seed, uint64_t epoch, size_t batches, written *w)
{
    hfsad_error err;
    journal *j;
    rng r = {rng_key(seed, epoch), 0};
    ok(journal_open(&j, folder, OWNER, epoch, &err), &err);
    *w = (written){0};
    for (size_t b = 1; b <= batches; b++) {
        for (size_t n = 1 + below(&r, 4); n > 0; n--) {
            entry *e = &w->all[w->count++];
            *e = (entry){(uint32_t)below(&r, 6), (uint32_t)below(&r, 1000), below(&r, sizeof e->bytes), {0}};
            for (size_t i = 0; i < e->size; i++)
                e->bytes[i] = (unsigned char)below(&r, 256);
            const size_t first = e->size / 2 / 8 * 8;
            journal_put(j, e->kind, e->about, e->bytes, first);
            journal_add(j, e->bytes + first, e->size - first);
        }
        w->end[b] = journal_bytes(j);
        ok(journal_commit(j, &err), &err);
        w->after[b] = w->count;
        w->next[b] = journal_bytes(j);
        assert_true(w->next[b] % 512 == 0 && w->next[b] >= w->end[b] && w->next[b] < w->end[b] + 512);
    }
    journal_put(j, 1, 1, "never committed", 15);
    journal_close(j);
}

/* The journal has the entries of so many batches, and can be gone on with. */
static void expect(uint64_t epoch, const written *w, size_t batches, uint64_t seed)
{
    hfsad_error err;
    journal *j;
    size_t count;
    void *bytes;
    ok(journal_open(&j, folder, OWNER, epoch, &err), &err);
    const journal_mark *marks = journal_marks(j, &count);
    if (count != w->after[batches])
        fail_msg("seed %" PRIu64 ": %zu entries in place of %zu", seed, count, w->after[batches]);
    for (size_t i = 0; i < count; i++) {
        const entry *e = &w->all[i];
        ok(journal_read(j, &marks[i], &bytes, &err), &err);
        assert_true(marks[i].kind == e->kind && marks[i].about == e->about && marks[i].size == e->size);
        assert_memory_equal(bytes, e->bytes, e->size);
        free(bytes);
    }
    assert_true(journal_bytes(j) == w->next[batches]);
    journal_close(j);
}

static void refused(uint64_t owner, uint64_t epoch, const char *words, uint64_t seed)
{
    hfsad_error err = {0};
    journal *j;
    assert_int_equal(journal_open(&j, folder, owner, epoch, &err), HFSAD_ERROR_INPUT);
    assert_null(j);
    if (!strstr(err.message, words))
        fail_msg("seed %" PRIu64 ": not said: %s, but: %s", seed, words, err.message);
}

static char *contents(size_t *size)
{
    struct stat info;
    const int fd = open(in_folder("journal"), O_RDONLY);
    assert_int_equal(fstat(fd, &info), 0);
    char *all = malloc((size_t)info.st_size);
    *size = (size_t)info.st_size;
    assert_int_equal(read(fd, all, *size), *size);
    close(fd);
    return all;
}

static void put_contents(const char *all, size_t size)
{
    const int fd = open(in_folder("journal"), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_int_equal(write(fd, all, size), size);
    assert_int_equal(close(fd), 0);
}

/* A journal in which nothing stands. */
static void make_empty(void)
{
    hfsad_error err;
    journal *j;
    ok(journal_open(&j, folder, OWNER, 0, &err), &err);
    journal_close(j);
}

/* A file is cut off at every byte; behind the cut stand zeros, an older epoch, or nothing. */
static void test_cut(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        written older, w;
        size_t size, old_size;
        make_empty();
        write_epoch(seed, 1, BATCHES, &older);
        char *before = contents(&old_size);
        write_epoch(seed, 2, 1 + seed % BATCHES, &w);
        char *all = contents(&size), *torn = malloc(size);
        assert_true(size == old_size);
        const size_t batches = 1 + seed % BATCHES, end = (size_t)w.end[batches];
        for (size_t at = 0; at <= end; at++) {
            size_t whole = 0;
            while (whole < batches && w.end[whole + 1] <= at)
                whole++;
            memcpy(torn, before, size);
            if (seed % 3 == 0)
                memset(torn, 0, size);
            memcpy(torn, all, at);
            put_contents(torn, seed % 3 == 1 ? at : size > end + 4096 ? end + 4096 : size);
            /* what stood there before may by chance be what was cut off */
            while (seed % 3 != 1 && whole < batches && !memcmp(torn, all, (size_t)w.end[whole + 1]))
                whole++;
            expect(2, &w, whole, seed);
        }
        free(before);
        free(all);
        free(torn);
    }
}

/* A flipped bit is refused, or, in what was committed last, taken for the cut of a crash. */
static void test_flipped(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        written older, w;
        size_t size;
        rng r = {rng_key(seed, rng_stream("flip")), 0};
        make_empty();
        write_epoch(seed, 1, BATCHES, &older);
        write_epoch(seed, 2, BATCHES - 1, &w);
        char *all = contents(&size);
        const size_t end = (size_t)w.end[BATCHES - 1];
        for (size_t at = 0, b = 1; at < end + 200; at++) {
            const char bit = (char)(1 << below(&r, 8));
            while (b < BATCHES - 1 && at >= w.next[b])
                b++; /* the batch in which it stands, or behind which */
            all[at] ^= bit;
            put_contents(all, end + 4096);
            all[at] ^= bit;
            if (at < w.end[b] && b < BATCHES - 1)
                refused(OWNER, 2, "damaged", seed);
            else
                expect(2, &w, at < w.end[b] ? BATCHES - 2 : BATCHES - 1, seed);
        }
        free(all);
    }
}

static void test_foreign(void **unused)
{
    (void)unused;
    written w;
    make_empty();
    write_epoch(1, 2, 2, &w);
    refused(OWNER + 1, 2, "another state.db", 1);
    refused(OWNER, 1, "newer than state.db", 1);
    expect(2, &w, 2, 1);
    assert_int_equal(unlink(in_folder("journal")), 0);
    refused(OWNER, 2, "missing", 1);
}

/* Entries hold what others have sent: one that is a batch of another owner, left over from an older epoch, is no reason
 * to refuse the file. */
static void test_planted(void **unused)
{
    (void)unused;
    hfsad_error err;
    journal *j;
    written w;
    size_t size, count;
    make_empty();
    ok(journal_open(&j, folder, OWNER + 1, 3, &err), &err);
    journal_put(j, 1, 1, "not ours", 8);
    ok(journal_commit(j, &err), &err);
    const size_t length = (size_t)journal_bytes(j);
    journal_close(j);
    char *planted = contents(&size);
    make_empty();
    ok(journal_open(&j, folder, OWNER, 1, &err), &err);
    for (size_t i = 0; i < 100; i++)
        journal_put(j, 4, 0, planted, length);
    ok(journal_commit(j, &err), &err);
    journal_close(j);
    ok(journal_open(&j, folder, OWNER, 2, &err), &err);
    (void)journal_marks(j, &count);
    assert_int_equal(count, 0);
    journal_close(j);
    write_epoch(1, 2, 1, &w);
    expect(2, &w, 1, 1);
    free(planted);
}

/* Writes past the page cache and reads through it: every entry is what it was, also while the file grows and begins
 * anew. On a disk, where the others of this file are in memory. */
static void test_read_back(void **unused)
{
    (void)unused;
    enum { COMMITS = 100, EPOCHS = 2, SIZE_MOST = 400000 };
    static unsigned char all[COMMITS][SIZE_MOST];
    hfsad_error err;
    journal *j;
    rng r = {rng_key(5, rng_stream("read back")), 0};
    const char *where = getenv("TMPDIR");
    char *before = where ? strdup(where) : NULL;
    assert_int_equal(leave_folder(NULL), 0);
    assert_int_equal(setenv("TMPDIR", ".", 1), 0);
    assert_int_equal(enter_folder(NULL), 0);
    make_empty();
    for (uint64_t epoch = 1; epoch <= EPOCHS; epoch++) {
        ok(journal_open(&j, folder, OWNER, epoch, &err), &err);
        for (size_t i = 0; i < COMMITS; i++) {
            size_t count;
            void *bytes;
            const size_t size = 1 + below(&r, below(&r, 10) ? 9000 : SIZE_MOST), old = below(&r, i + 1);
            for (size_t n = 0; n < size; n++)
                all[i][n] = (unsigned char)below(&r, 256);
            journal_put(j, 1, (uint32_t)i, all[i], size);
            ok(journal_commit(j, &err), &err);
            const journal_mark *marks = journal_marks(j, &count);
            assert_int_equal(count, i + 1);
            assert_int_equal(marks[i].size, size);
            ok(journal_read(j, &marks[old], &bytes, &err), &err);
            assert_memory_equal(bytes, all[old], marks[old].size);
            free(bytes);
        }
        journal_close(j);
    }
    assert_int_equal(leave_folder(NULL), 0);
    assert_int_equal(before ? setenv("TMPDIR", before, 1) : unsetenv("TMPDIR"), 0);
    assert_int_equal(enter_folder(NULL), 0);
    free(before);
}

static void put_number(unsigned char *to, uint64_t v, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        to[i] = (unsigned char)(v >> (8 * i));
}

/* A file of version 1, whose batches stand close together, is read and gone on with. */
static void test_version_1(void **unused)
{
    (void)unused;
    enum { BATCH = 48 + 16 + 16, OLD = 9, NEW = 4 };
    hfsad_error err;
    journal *j;
    size_t count;
    void *bytes;
    unsigned char all[OLD * BATCH] = {0};
    for (uint64_t i = 0; i < OLD; i++) {
        unsigned char *b = all + i * BATCH;
        memcpy(b, "hfsj", 4);
        put_number(b + 4, 1, 4);
        put_number(b + 8, OWNER, 8);
        put_number(b + 16, 3, 8);
        put_number(b + 24, i + 1, 8);
        put_number(b + 32, BATCH - 48, 8);
        put_number(b + 48, 2, 4);
        put_number(b + 52, i, 4);
        put_number(b + 56, 9, 8);
        memcpy(b + 64, "version 1", 9);
        put_number(b + 40, crc32c(crc32c(0, b, 40), b + 48, BATCH - 48), 4);
    }
    put_contents((const char *)all, sizeof all);
    for (size_t i = 0; i <= NEW; i++) {
        ok(journal_open(&j, folder, OWNER, 3, &err), &err);
        const journal_mark *marks = journal_marks(j, &count);
        assert_int_equal(count, OLD + i);
        for (size_t n = 0; n < count; n++) {
            ok(journal_read(j, &marks[n], &bytes, &err), &err);
            assert_int_equal(marks[n].about, n);
            assert_memory_equal(bytes, n < OLD ? "version 1" : "version 2", 9);
            free(bytes);
        }
        journal_put(j, 2, (uint32_t)count, "version 2", 9);
        ok(journal_commit(j, &err), &err);
        journal_close(j);
    }
}

/* ---- the store against a list of all that was put ---- */

enum { NAMES = 5, HEARD_MOST = 2000, LINES_MOST = 3000, ROWS = 40 };

typedef struct {
    uint64_t state[NAMES]; /* 0: none */
    uint64_t heard[NAMES][HEARD_MOST];
    size_t n_heard[NAMES];
    double row[ROWS]; /* 0: none */
    size_t lines;
} memory;

static memory now, kept;

static const char *name_of(size_t i)
{
    static const char *const names[] = {"a", "edge1", "edge1/b", "c", "a longer name"};
    return names[i];
}

/* A number as bytes whose length goes with it. */
static size_t spell(uint64_t number, char text[200])
{
    const int size = snprintf(text, 200, "%" PRIu64 "%*s", number, (int)(number % 97), "");
    return (size_t)size;
}

static void put_something(store *s, rng *r)
{
    static uint64_t next = 1;
    static const char *line = "line";
    char text[200];
    hfsad_error err;
    uint32_t number;
    const size_t size = spell(++next, text), i = below(r, NAMES);
    switch (below(r, 4)) {
    case 0:
        ok(store_put_state(s, name_of(i), text, size, &err), &err);
        now.state[i] = next;
        now.n_heard[i] = 0;
        return;
    case 1: {
        const hfsad_figures f = {.iteration = below(r, ROWS), .objective = (double)next};
        ok(store_put_row(s, &f, &err), &err);
        now.row[f.iteration] = f.objective;
        return;
    }
    case 2:
        ok(store_put_line(s, line, &err), &err);
        now.lines++;
        return;
    default:
        store_put_frame(s, text, size, &number);
        for (size_t n = 0; n < NAMES; n++)
            if (below(r, 2)) {
                ok(store_put_heard(s, name_of(n), number, &err), &err);
                now.heard[n][now.n_heard[n]++] = next;
                assert_true(now.n_heard[n] < HEARD_MOST);
            }
    }
}

static void commit(store *s, rng *r)
{
    hfsad_error err;
    if (store_is_full(s) || below(r, 20) == 0) {
        ok(store_begin_whole(s, &err), &err);
        for (size_t i = 0; i < NAMES; i++) {
            char text[200];
            if (now.n_heard[i] == 0)
                continue;
            now.state[i] = now.heard[i][now.n_heard[i] - 1];
            now.n_heard[i] = 0;
            ok(store_put_state(s, name_of(i), text, spell(now.state[i], text), &err), &err);
        }
        ok(store_put_line(s, "line", &err), &err);
        now.lines++;
    }
    ok(store_commit(s, &err), &err);
    kept = now;
}

static size_t seen[NAMES];

static hfsad_status on_heard(void *context, const void *frame, size_t size, const char *const *names, size_t count,
                             hfsad_error *err)
{
    char text[200];
    (void)context;
    (void)err;
    for (size_t n = 0; n < count; n++) {
        size_t i = 0;
        while (strcmp(names[n], name_of(i)) != 0)
            i++;
        assert_true(seen[i] < kept.n_heard[i]);
        assert_int_equal(size, spell(kept.heard[i][seen[i]++], text));
        assert_memory_equal(frame, text, size);
    }
    return HFSAD_OK;
}

static void on_row(void *context, const hfsad_figures *f)
{
    uint64_t *next = context;
    while (kept.row[*next] == 0)
        ++*next;
    assert_true(f->iteration == *next && f->objective == kept.row[*next]);
    ++*next;
}

static void on_line(void *context, const char *text)
{
    assert_string_equal(text, "line");
    ++*(size_t *)context;
}

static void compare(store *s)
{
    hfsad_error err;
    uint64_t rows = 0;
    size_t lines = 0;
    for (size_t i = 0; i < NAMES; i++) {
        char text[200];
        void *bytes;
        size_t size;
        ok(store_get_state(s, name_of(i), &bytes, &size, &err), &err);
        assert_true(!bytes == !kept.state[i]);
        if (bytes) {
            assert_int_equal(size, spell(kept.state[i], text));
            assert_memory_equal(bytes, text, size);
        }
        free(bytes);
        seen[i] = 0;
    }
    ok(store_get_heard(s, on_heard, NULL, &err), &err);
    for (size_t i = 0; i < NAMES; i++)
        assert_int_equal(seen[i], kept.n_heard[i]);
    ok(store_get_rows(s, on_row, &rows, &err), &err);
    while (rows < ROWS)
        assert_true(kept.row[rows++] == 0);
    ok(store_get_record(s, on_line, &lines, &err), &err);
    assert_int_equal(lines, kept.lines);
}

static void test_store(void **unused)
{
    (void)unused;
    hfsad_error err;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        rng r = {rng_key(seed, rng_stream("store")), 0};
        store *s;
        assert_int_equal(leave_folder(NULL), 0);
        assert_int_equal(enter_folder(NULL), 0);
        memset(&now, 0, sizeof now);
        kept = now;
        print_message("seed %" PRIu64 "\n", seed);
        ok(store_open(&s, in_folder("state"), RUN, &err), &err);
        for (int turn = 0; turn < 400; turn++) {
            store_set_room(s, 100 + 5000 * (seed % 3));
            for (size_t n = below(&r, 4); n > 0; n--)
                put_something(s, &r);
            if (below(&r, 4))
                commit(s, &r);
            if (below(&r, 10) == 0) {
                store_close(s);
                ok(store_open(&s, in_folder("state"), RUN, &err), &err);
                now = kept;
            }
            if (turn % 7 == 0 && !memcmp(&now, &kept, sizeof now))
                compare(s);
        }
        store_close(s);
    }
}

/* Half a folder is none. */
static void test_half(void **unused)
{
    (void)unused;
    hfsad_error err = {0};
    store *s;
    ok(store_open(&s, in_folder("state"), RUN, &err), &err);
    ok(store_put_state(s, "a", "b", 1, &err), &err);
    ok(store_commit(s, &err), &err);
    store_close(s);
    assert_int_equal(unlink(in_folder("state/journal")), 0);
    assert_int_equal(store_open(&s, in_folder("state"), RUN, &err), HFSAD_ERROR_INPUT);
    assert_non_null(strstr(err.message, "missing"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_cut, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_flipped, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_foreign, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_planted, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_read_back, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_version_1, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_store, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_half, enter_folder, leave_folder),
    };
    if (access("/dev/shm", W_OK) == 0) /* thousands of syncs */
        setenv("TMPDIR", "/dev/shm", 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
