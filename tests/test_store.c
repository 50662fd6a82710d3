/* The store of a process's nodes: after any end it has exactly what was committed. */
#define _GNU_SOURCE
#include "allocations.h"
#include "tools.h"

#include "net/store.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RUN = 4711 };

static const char *path_of(const char *name)
{
    static char path[300];
    snprintf(path, sizeof path, "%s/%s", in_folder("state"), name);
    return path;
}

static store *opened(void)
{
    hfsad_error err;
    store *s;
    ok(store_open(&s, in_folder("state"), RUN, &err), &err);
    return s;
}

static void refused(uint64_t run, const char *words)
{
    hfsad_error err = {0};
    store *s;
    assert_int_equal(store_open(&s, in_folder("state"), run, &err), HFSAD_ERROR_INPUT);
    assert_null(s);
    if (!strstr(err.message, words))
        fail_msg("not said: %s, but: %s", words, err.message);
}

static void put_text(store *s, const char *node, const char *text)
{
    hfsad_error err;
    ok(store_put_state(s, node, text, strlen(text), &err), &err);
}

static void expect_text(store *s, const char *node, const char *text)
{
    hfsad_error err;
    void *bytes;
    size_t size;
    ok(store_get_state(s, node, &bytes, &size, &err), &err);
    if (!text) {
        assert_null(bytes);
        return;
    }
    assert_non_null(bytes);
    assert_int_equal(size, strlen(text));
    assert_memory_equal(bytes, text, size);
    free(bytes);
}

static void check_row(void *context, const hfsad_figures *f)
{
    uint64_t *next = context;
    assert_true(f->iteration == *next && f->objective == (double)(10 * *next));
    ++*next;
}

static void check_line(void *context, const char *text)
{
    int *next = context;
    assert_int_equal(atoi(text), *next);
    ++*next;
}

static void test_keeps(void **unused)
{
    hfsad_error err;
    (void)unused;
    store *s = opened();
    expect_text(s, "edge1", NULL);
    put_text(s, "edge1", "first");
    put_text(s, "edge1/client7", "");
    for (uint64_t i = 3; i-- > 0;) {
        const hfsad_figures f = {.iteration = i, .objective = (double)(10 * i)};
        store_put_row(s, &f);
        store_put_row(s, &f);
    }
    store_put_line(s, "0");
    store_put_line(s, "1");
    ok(store_commit(s, &err), &err);
    ok(store_commit(s, &err), &err);
    put_text(s, "edge1", "second, never committed");
    put_text(s, "edge2", "neither");
    store_close(s);
    s = opened();
    expect_text(s, "edge1", "first");
    expect_text(s, "edge1/client7", "");
    expect_text(s, "edge2", NULL);
    uint64_t rows = 0;
    ok(store_get_rows(s, check_row, &rows, &err), &err);
    assert_true(rows == 3);
    int lines = 0;
    ok(store_get_record(s, check_line, &lines, &err), &err);
    assert_int_equal(lines, 2);
    put_text(s, "edge1", "second");
    ok(store_commit(s, &err), &err);
    expect_text(s, "edge1", "second");
    store_close(s);
    store_close(NULL);
}

/* ---- no memory ---- */

enum { TURNS = 60, HEARERS = 40 };

/* What a host puts in a turn; false: it failed, and all of it is to be put again. */
static bool put_turn(store *s, int turn)
{
    hfsad_error err;
    char text[40];
    uint32_t frame;
    snprintf(text, sizeof text, "%d", turn);
    store_put_line(s, text);
    snprintf(text, sizeof text, "a node that is new in turn %d", turn);
    if (store_put_state(s, text, text, strlen(text), &err))
        return false;
    store_put_frame(s, text, strlen(text), &frame);
    for (int i = 0; i < HEARERS; i++) {
        snprintf(text, sizeof text, "hearer %d of %d", i, turn);
        if (store_put_heard(s, text, frame, &err))
            return false;
    }
    return store_commit(s, &err) == HFSAD_OK;
}

static hfsad_status check_heard(void *context, const void *frame, size_t size, const char *const *names, size_t count,
                                hfsad_error *err)
{
    int *turn = context;
    char text[40];
    (void)err;
    snprintf(text, sizeof text, "a node that is new in turn %d", *turn);
    assert_int_equal(size, strlen(text));
    assert_memory_equal(frame, text, size);
    assert_int_equal(count, HEARERS);
    for (int i = 0; i < HEARERS; i++) {
        snprintf(text, sizeof text, "hearer %d of %d", i, *turn);
        assert_string_equal(names[i], text);
    }
    ++*turn;
    return HFSAD_OK;
}

/* Nothing is lost and nothing stands twice where memory is short at whatever point of a turn. */
static void test_no_memory(void **unused)
{
    hfsad_error err;
    int failures = 0, lines = 0, turns = 0;
    (void)unused;
    store *s = opened();
    put_text(s, "a", "so that the next commit is one of the log");
    ok(store_commit(s, &err), &err);
    const uint64_t epoch = store_epoch(s);
    for (int turn = 0; turn < TURNS; turn++) {
        store_close(s); /* so that it has no room of earlier turns */
        s = opened();
        store_set_room(s, 64 << 20);
        allocations_left = (size_t)(turn % 15);
        const bool done = put_turn(s, turn);
        allocations_left = SIZE_MAX;
        failures += !done;
        if (!done && !put_turn(s, turn))
            fail_msg("turn %d: it fails with memory, too", turn);
    }
    assert_true(store_epoch(s) == epoch); /* all of it is in the log */
    if (failures < 20 || failures == TURNS)
        fail_msg("memory was short in %d turns of %d", failures, TURNS);
    for (int life = 0; life < 2; life++) {
        lines = turns = 0;
        ok(store_get_record(s, check_line, &lines, &err), &err);
        assert_int_equal(lines, TURNS);
        ok(store_get_heard(s, check_heard, &turns, &err), &err);
        assert_int_equal(turns, TURNS);
        store_close(s);
        s = opened();
    }
    store_close(s);
}

/* ---- killed ---- */

enum { NODES = 5, MOST = 40000 };

/* Every node's state is the number of the commit, again and again, in sizes that differ. */
static void put_number(store *s, uint64_t number, hfsad_error *err)
{
    static uint64_t words[MOST];
    for (size_t n = 0; n < NODES; n++) {
        char name[16];
        const size_t size = 1 + (size_t)rng_u64(n, number) % (n ? 300 : MOST);
        for (size_t i = 0; i < size; i++)
            words[i] = number;
        snprintf(name, sizeof name, "node%zu", n);
        ok(store_put_state(s, name, words, size * sizeof *words, err), err);
    }
}

static _Noreturn void write_until_killed(int to, uint64_t number)
{
    hfsad_error err;
    store *s = opened();
    for (;; number++) {
        put_number(s, number, &err);
        if (store_commit(s, &err) || write(to, &number, sizeof number) != sizeof number)
            _exit(1);
    }
}

static uint64_t stored_number(store *s)
{
    uint64_t number = 0;
    for (size_t n = 0; n < NODES; n++) {
        hfsad_error err;
        void *bytes;
        size_t size;
        char name[16];
        snprintf(name, sizeof name, "node%zu", n);
        ok(store_get_state(s, name, &bytes, &size, &err), &err);
        if (!bytes) {
            assert_true(number == 0);
            continue;
        }
        const uint64_t *words = bytes;
        if (n == 0)
            number = words[0];
        for (size_t i = 0; i < size / sizeof *words; i++)
            assert_true(words[i] == number);
        free(bytes);
    }
    return number;
}

static void test_killed(void **unused)
{
    (void)unused;
    rng r = {rng_key(1, rng_stream("killed")), 0};
    uint64_t next = 1;
    for (int trial = 0; trial < 40; trial++) {
        int ends[2];
        assert_int_equal(pipe(ends), 0);
        const pid_t child = fork();
        if (child == 0)
            write_until_killed(ends[1], next);
        close(ends[1]);
        uint64_t said = next - 1;
        for (size_t reports = below(&r, 6); reports > 0; reports--)
            assert_int_equal(read(ends[0], &said, sizeof said), sizeof said);
        for (volatile size_t spin = below(&r, 3000000); spin > 0; spin--) /* into the midst of a commit */
            ;
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        for (uint64_t more; read(ends[0], &more, sizeof more) == sizeof more;)
            said = more;
        close(ends[0]);
        store *s = opened();
        const uint64_t number = stored_number(s);
        if (number != said && number != said + 1)
            fail_msg("trial %d: %" PRIu64 " was committed, %" PRIu64 " is there", trial, said, number);
        store_close(s);
        next = number + 1;
    }
    assert_true(next > 20);
}

/* ---- no room ---- */

static void test_full(void **unused)
{
    (void)unused;
    hfsad_error err = {0};
    struct rlimit before, small;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    store *s = opened();
    put_number(s, 1, &err);
    ok(store_commit(s, &err), &err);
    small = before;
    small.rlim_cur = 600000;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    static unsigned char big[3000000];
    hfsad_status status = store_put_state(s, "node1", big, sizeof big, &err);
    if (!status)
        status = store_commit(s, &err);
    assert_int_equal(status, HFSAD_ERROR_IO);
    assert_non_null(strstr(err.message, "state/state"));
    assert_true(stored_number(s) == 1);
    ok(store_put_state(s, "node1", big, 100, &err), &err); /* and so after a write that was cut off */
    ok(store_commit(s, &err), &err);
    put_number(s, 1, &err);
    ok(store_commit(s, &err), &err);
    status = store_put_state(s, "node1", big, sizeof big, &err);
    if (!status)
        status = store_begin_whole(s, &err);
    if (!status)
        status = store_commit(s, &err);
    assert_int_equal(status, HFSAD_ERROR_IO);
    assert_true(access(path_of("state.new"), F_OK) != 0);
    assert_true(stored_number(s) == 1);
    store_close(s);
    s = opened();
    assert_true(stored_number(s) == 1);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    put_number(s, 2, &err);
    ok(store_commit(s, &err), &err);
    store_close(s);
    s = opened();
    assert_true(stored_number(s) == 2);
    store_close(s);
}

/* ---- whose it is ---- */

static void test_second(void **unused)
{
    (void)unused;
    int ends[2];
    char byte;
    assert_int_equal(pipe(ends), 0);
    store *s = opened();
    refused(RUN, "in use"); /* by ourselves */
    store_close(s);
    const pid_t child = fork();
    if (child == 0) {
        s = opened();
        if (write(ends[1], "x", 1) == 1)
            for (;;)
                pause();
        _exit(1);
    }
    assert_int_equal(read(ends[0], &byte, 1), 1);
    refused(RUN, "in use");
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    close(ends[0]);
    close(ends[1]);
    store_close(opened());
}

static void write_file(const char *name, const char *bytes, size_t count)
{
    FILE *f = fopen(path_of(name), "w");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, count, f), count);
    assert_int_equal(fclose(f), 0);
}

static void flip_bit(const char *name, long at)
{
    FILE *f = fopen(path_of(name), "r+");
    assert_non_null(f);
    assert_int_equal(fseek(f, at, SEEK_SET), 0);
    const int byte = fgetc(f) ^ 2;
    assert_int_equal(fseek(f, at, SEEK_SET), 0);
    assert_int_equal(fputc(byte, f), byte);
    assert_int_equal(fclose(f), 0);
}

static void commit_text(const char *node, const char *text)
{
    hfsad_error err;
    store *s = opened();
    put_text(s, node, text);
    ok(store_commit(s, &err), &err);
    store_close(s);
}

static void test_foreign(void **unused)
{
    (void)unused;
    commit_text("edge1", "text");
    refused(RUN + 1, "another run, of edge1");
    flip_bit("state", 3); /* the version */
    refused(RUN, "/state has version 3, this program reads 1 (byte 0)");
    write_file("state", "no state at all, but long enough to be looked at", 48);
    refused(RUN, "/state is damaged or not a state of hfsad (byte 0)");
    write_file("state", "", 0);
    refused(RUN, "/state is damaged or not a state of hfsad (byte 0)");
    assert_int_equal(unlink(path_of("state")), 0);
    refused(RUN, "/state is missing");
    assert_int_equal(unlink(path_of("mark")), 0);
    commit_text("edge1", "text");
    assert_int_equal(unlink(path_of("mark")), 0);
    refused(RUN, "/mark is missing");
    write_file("state.db", "SQLite format 3", 16);
    refused(RUN, "/state.db is a state of an earlier version (SQLite)");
    assert_int_equal(unlink(path_of("state.db")), 0);
    assert_int_equal(unlink(path_of("state")), 0);
    commit_text("edge1", "text");
}

/* A folder in which nothing was committed is as good as none; discarded, it is empty. */
static void test_nothing(void **unused)
{
    (void)unused;
    store *s = opened();
    assert_true(store_is_full(s) && store_epoch(s) == 0);
    put_text(s, "edge1", "never committed");
    store_close(s);
    s = opened();
    hfsad_error err;
    put_text(s, "edge1", "never committed");
    ok(store_begin_whole(s, &err), &err);
    store_discard(s);
    assert_int_equal(rmdir(in_folder("state")), 0);
    commit_text("edge1", "text");
    store_discard(opened());
    s = opened();
    expect_text(s, "edge1", "text");
    store_close(s);
    store_remove(in_folder("state"));
    assert_int_equal(rmdir(in_folder("state")), 0);
}

static unsigned mode_of(const char *path)
{
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    return (unsigned)info.st_mode & 0777;
}

static void test_modes(void **unused)
{
    (void)unused;
    const mode_t before = umask(0);
    commit_text("edge1", "text");
    assert_int_equal(mode_of(in_folder("state")), 0700);
    assert_int_equal(mode_of(path_of("state")), 0600);
    assert_int_equal(mode_of(path_of("mark")), 0600);
    umask(before);
}

static void test_no_folder(void **unused)
{
    (void)unused;
    hfsad_error err;
    store *s;
    assert_int_equal(store_open(&s, "missing/folder", RUN, &err), HFSAD_ERROR_INPUT);
    assert_non_null(strstr(err.message, "missing/folder"));
    const char *file = in_folder("file");
    assert_int_equal(close(open(file, O_CREAT | O_WRONLY, 0600)), 0);
    assert_int_equal(store_open(&s, file, RUN, &err), HFSAD_ERROR_INPUT);
    assert_int_equal(unlink(file), 0);
    /* one in which nothing can be made; root can, everywhere */
    assert_int_equal(mkdir(in_folder("locked"), 0555), 0);
    assert_int_equal(chmod(folder, 0755), 0);
    const bool root = geteuid() == 0;
    assert_true(!root || seteuid(65534) == 0);
    assert_int_equal(store_open(&s, in_folder("locked"), RUN, &err), HFSAD_ERROR_INPUT);
    assert_non_null(strstr(err.message, "locked cannot be written"));
    assert_true(!root || seteuid(0) == 0);
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
        store_put_row(s, &f);
        now.row[f.iteration] = f.objective;
        return;
    }
    case 2:
        store_put_line(s, line);
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
        store_put_line(s, "line");
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

static void test_model(void **unused)
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

/* Writes past the page cache and reads through it: every state is what it was, also while the file grows and begins
 * anew. On a disk, whereas other tests may be in memory. */
static void test_read_back(void **unused)
{
    (void)unused;
    enum { COMMITS = 200, SIZE_MOST = 400000 };
    static unsigned char all[COMMITS][SIZE_MOST];
    static size_t sizes[COMMITS];
    hfsad_error err;
    rng r = {rng_key(5, rng_stream("read back")), 0};
    const char *where = getenv("TMPDIR");
    char *before = where ? strdup(where) : NULL;
    assert_int_equal(leave_folder(NULL), 0);
    assert_int_equal(setenv("TMPDIR", ".", 1), 0);
    assert_int_equal(enter_folder(NULL), 0);
    store *s = opened();
    for (size_t i = 0; i < COMMITS; i++) {
        char name[16];
        void *bytes;
        size_t size, old = below(&r, i + 1);
        sizes[i] = 1 + below(&r, below(&r, 10) ? 9000 : SIZE_MOST);
        for (size_t n = 0; n < sizes[i]; n++)
            all[i][n] = (unsigned char)below(&r, 256);
        snprintf(name, sizeof name, "node%zu", i);
        ok(store_put_state(s, name, all[i], sizes[i], &err), &err);
        ok(store_commit(s, &err), &err);
        snprintf(name, sizeof name, "node%zu", old);
        ok(store_get_state(s, name, &bytes, &size, &err), &err);
        assert_int_equal(size, sizes[old]);
        assert_memory_equal(bytes, all[old], size);
        free(bytes);
        if (i % 50 == 49) {
            store_close(s);
            s = opened();
        }
    }
    assert_true(store_epoch(s) > 1);
    store_close(s);
    assert_int_equal(leave_folder(NULL), 0);
    assert_int_equal(before ? setenv("TMPDIR", before, 1) : unsetenv("TMPDIR"), 0);
    assert_int_equal(enter_folder(NULL), 0);
    free(before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_keeps, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_no_memory, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_killed, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_full, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_second, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_foreign, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_no_folder, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_nothing, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_modes, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_model, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_read_back, enter_folder, leave_folder),
    };
    if (access("/dev/shm", W_OK) == 0) /* thousands of syncs */
        setenv("TMPDIR", "/dev/shm", 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
