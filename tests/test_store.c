/* The store of a process's nodes: what was committed is there after any end, and nothing else is. */
#define _GNU_SOURCE
#include "allocations.h"
#include "tools.h"

#include "net/store.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <sqlite3.h>
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
        ok(store_put_row(s, &f, &err), &err);
        ok(store_put_row(s, &f, &err), &err);
    }
    ok(store_put_line(s, "0", &err), &err);
    ok(store_put_line(s, "1", &err), &err);
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
    if (store_put_line(s, text, &err))
        return false;
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
    put_text(s, "a", "so that the next commit is one of the journal");
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
    assert_true(store_epoch(s) == epoch); /* all of it is in the journal */
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
    assert_non_null(strstr(err.message, "state.db"));
    assert_true(stored_number(s) == 1);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    put_number(s, 2, &err);
    ok(store_commit(s, &err), &err);
    store_close(s);
    s = opened();
    assert_true(stored_number(s) == 2);
    store_close(s);
}

/* A state that is too long for a row of the base is in several, and nothing of a longer one before it is left. */
static void test_pieces(void **unused)
{
    (void)unused;
    static const char *const texts[] = {"0123456789abcdef", "0123456", "", "01234567", "0123456789abc"};
    hfsad_error err;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        store *s = opened();
        store_set_piece(s, 4 + i % 2);
        put_text(s, "edge1", texts[i]);
        put_text(s, "edge1/client1", "another");
        put_text(s, "edge10", "and a longer other one");
        ok(store_begin_whole(s, &err), &err);
        ok(store_commit(s, &err), &err);
        expect_text(s, "edge1", texts[i]);
        store_close(s);
        s = opened();
        expect_text(s, "edge1", texts[i]);
        expect_text(s, "edge1/client1", "another");
        expect_text(s, "edge10", "and a longer other one");
        store_close(s);
    }
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

static void write_file(const char *bytes, size_t count)
{
    FILE *f = fopen(path_of("state.db"), "w");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, count, f), count);
    assert_int_equal(fclose(f), 0);
}

static void test_foreign(void **unused)
{
    (void)unused;
    const char *path = path_of("state.db");
    sqlite3 *other;
    store_close(opened());
    refused(RUN + 1, "another run");
    write_file("no database at all, but long enough to be looked at", 51);
    refused(RUN, "no state of hfsad");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(sqlite3_open(path, &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "CREATE TABLE node (a)", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(other);
    refused(RUN, "no state of hfsad");
    assert_int_equal(unlink(path), 0);
    store_close(opened());
    assert_int_equal(sqlite3_open(path, &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "PRAGMA user_version = 99", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(other);
    refused(RUN, "version 99");
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
}

/* A bit that flipped on the disk is not taken for a state. */
static void test_damaged(void **unused)
{
    (void)unused;
    static const char mark[] = "a state that is easy to find";
    hfsad_error err;
    const char *path = path_of("state.db");
    void *bytes;
    size_t size;
    store *s = opened();
    put_text(s, "edge1", mark);
    ok(store_commit(s, &err), &err);
    store_close(s);
    static char all[1 << 20];
    FILE *f = fopen(path, "r+");
    assert_non_null(f);
    const size_t count = fread(all, 1, sizeof all, f);
    char *found = memmem(all, count, mark, strlen(mark));
    assert_non_null(found);
    assert_int_equal(fseek(f, found - all + 3, SEEK_SET), 0);
    assert_int_equal(fputc(found[3] ^ 4, f), found[3] ^ 4);
    assert_int_equal(fclose(f), 0);
    s = opened();
    assert_int_equal(store_get_state(s, "edge1", &bytes, &size, &err), HFSAD_ERROR_INPUT);
    assert_null(bytes);
    assert_non_null(strstr(err.message, "damaged"));
    store_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_keeps, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_no_memory, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_killed, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_full, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_second, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_pieces, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_foreign, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_no_folder, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_damaged, enter_folder, leave_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
