/* State folders that were damaged: the last commit is read, or the folder is refused and left unchanged. SEED: the
 * first seed; TRIALS: damages of each folder. */
#define _GNU_SOURCE
#include "store_random.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STATE, MARK, FILES, FOLDERS = 2, STORES = 12, TRIALS = 700 };

static const char *const file_names[FILES] = {"state", "mark"};

typedef struct {
    unsigned char *bytes; /* NULL: there is no such file */
    size_t size;
} file;

typedef struct {
    file now[FILES], old[FILES]; /* old: after some earlier commit */
    uint64_t content;
    size_t end; /* of the last record in `state`: what is behind it was never written */
} made;

static const char *path_of(size_t which, int name)
{
    char path[40];
    snprintf(path, sizeof path, "%zu/%s", which, file_names[name]);
    return in_folder(path);
}

static file read_file(const char *path)
{
    file f = {0};
    struct stat info;
    const int fd = open(path, O_RDONLY);
    if (fd < 0)
        return f;
    assert_int_equal(fstat(fd, &info), 0);
    f = (file){malloc((size_t)info.st_size + 1), (size_t)info.st_size};
    assert_int_equal(read(fd, f.bytes, f.size), f.size);
    close(fd);
    return f;
}

static void write_file(const char *path, const file *f)
{
    if (!f->bytes) {
        unlink(path);
        return;
    }
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_int_equal(write(fd, f->bytes, f->size), f->size);
    assert_int_equal(close(fd), 0);
}

static file copy_of(const file *f)
{
    file c = {malloc(f->size + 1), f->size};
    memcpy(c.bytes, f->bytes, f->size);
    return c;
}

/* A folder of some commits, the last ones of which are in the log. fork: begins with the old files of this one. */
static made make(rng *r, size_t which, const made *fork)
{
    hfsad_error err;
    store *s;
    made m = {0};
    char name[8];
    snprintf(name, sizeof name, "%zu", which);
    assert_int_equal(mkdir(in_folder(name), 0700), 0);
    for (int n = 0; n < FILES && fork; n++)
        write_file(path_of(which, n), &fork->old[n]);
    ok(store_open(&s, in_folder(name), RUN, &err), &err);
    store_set_room(s, 3000 + 20000 * below(r, 3));
    const size_t commits = 2 + below(r, 40), early = 1 + below(r, commits - 1);
    for (size_t i = 0; i < commits; i++) {
        random_commit(s, r);
        if (i + 1 == early)
            for (int n = 0; n < FILES; n++)
                m.old[n] = read_file(path_of(which, n));
    }
    m.content = content_of(s);
    store_close(s);
    for (int n = 0; n < FILES; n++)
        m.now[n] = read_file(path_of(which, n));
    m.end = m.now[STATE].size;
    while (m.end > 0 && !m.now[STATE].bytes[m.end - 1])
        m.end--;
    m.now[STATE].size = m.end + below(r, 5000); /* as after a power cut: the rest is zeros */
    return m;
}

static void forget(made *m)
{
    for (int n = 0; n < FILES; n++) {
        free(m->now[n].bytes);
        free(m->old[n].bytes);
    }
}

#define DAMAGE_LIST(X) X(FLIP) X(CUT) X(ZERO) X(INSERT) X(REMOVE) X(MOVE) X(SPLICE) X(SWAP) X(DELETE) X(OLD)
typedef enum {
#define DAMAGE_ENUM(name) name,
    DAMAGE_LIST(DAMAGE_ENUM)
#undef DAMAGE_ENUM
        DAMAGES
} damage;
static const char *const damage_names[] = {
#define DAMAGE_TEXT(name) #name,
    DAMAGE_LIST(DAMAGE_TEXT)
#undef DAMAGE_TEXT
};

/* A place in the part of a file that was written, often one where a sector begins. */
static size_t place(rng *r, const made *m, int n)
{
    const size_t size = n == STATE ? m->end : m->now[n].size, at = below(r, size);
    return below(r, 3) ? at : at / 512 * 512;
}

/* Makes the damage in m->now[n], which is a copy. *certain: it is within what was committed, so it must be noticed. */
static void spoil(rng *r, damage what, int n, const made *other, made *m, bool *certain)
{
    file *f = &m->now[n];
    const size_t at = place(r, m, n), more = 1 + below(r, 3) * 511 + below(r, 2) * below(r, 3000);
    const size_t some = more < f->size - at ? more : f->size - at, from = place(r, m, n);
    file c = copy_of(f);
    switch (what) {
    case FLIP:
        c.bytes[at] ^= (unsigned char)(1 << below(r, 8));
        *certain = n == STATE;
        break;
    case CUT:
        c.size = at;
        *certain = n == STATE;
        break;
    case ZERO:
        memset(c.bytes + at, 0, some);
        break;
    case INSERT:
        c.bytes = realloc(c.bytes, c.size + more);
        memmove(c.bytes + at + more, c.bytes + at, c.size - at);
        for (size_t i = 0; i < more; i++)
            c.bytes[at + i] = from % 2 ? f->bytes[(from + i) % f->size] : 0;
        c.size += more;
        break;
    case REMOVE:
        memmove(c.bytes + at, c.bytes + at + some, c.size - at - some);
        c.size -= some;
        break;
    case SPLICE: /* records of the other folder, which may have begun as a copy of this one */
        if (n == STATE && at >= 512 && at < other->end)
            memcpy(c.bytes + at / 512 * 512, other->now[n].bytes + at / 512 * 512,
                   (other->end < m->end ? other->end : m->end) - at / 512 * 512);
        break;
    case MOVE:
        memmove(c.bytes + at, f->bytes + from, some < f->size - from ? some : f->size - from);
        break;
    default:
        free(c.bytes);
        c = what == DELETE ? (file){0} : copy_of(what == SWAP ? &other->now[n] : &m->old[n]);
        *certain = what != OLD;
    }
    *certain = *certain && (!c.bytes || c.size != f->size || memcmp(c.bytes, f->bytes, c.size) != 0);
    *f = c;
}

/* Opens the first folder with these files: its content, or 0 after a refusal that names what is wrong. */
static uint64_t open_spoilt(const made *m)
{
    hfsad_error err = {0};
    store *s;
    for (int n = 0; n < FILES; n++)
        write_file(path_of(0, n), &m->now[n]);
    const hfsad_status status = store_open(&s, in_folder("0"), RUN, &err);
    if (status) {
        assert_int_equal(status, HFSAD_ERROR_INPUT);
        if ((!strstr(err.message, "0/state") && !strstr(err.message, "0/mark")) || !strstr(err.message, "(byte ") ||
            !strstr(err.message, "restore the whole folder") || strchr(err.message, '\n'))
            fail_msg("not said well: %s", err.message);
        for (int n = 0; n < FILES; n++) {
            file after = read_file(path_of(0, n));
            assert_true(!after.bytes == !m->now[n].bytes && after.size == m->now[n].size);
            if (after.bytes)
                assert_memory_equal(after.bytes, m->now[n].bytes, after.size);
            free(after.bytes);
        }
        return 0;
    }
    const uint64_t content = content_of(s);
    store_close(s);
    return content;
}

/* What was read can be gone on with. */
static void go_on(rng *r)
{
    hfsad_error err;
    store *s;
    ok(store_open(&s, in_folder("0"), RUN, &err), &err);
    for (int i = 0; i < 2; i++)
        random_commit(s, r);
    const uint64_t content = content_of(s);
    store_close(s);
    ok(store_open(&s, in_folder("0"), RUN, &err), &err);
    assert_true(content_of(s) == content);
    store_close(s);
}

static size_t tried[DAMAGES], refused[DAMAGES];

static void damage_once(rng *r, const made *m, const made *other, uint64_t seed, size_t trial)
{
    made spoilt = *m;
    bool certain = false;
    /* a file of a fork is as new as ours, and may be whole: nothing but records of it can be told apart */
    const damage drawn = (damage)below(r, DAMAGES), what = drawn == SWAP && seed % 2 ? SPLICE : drawn;
    const int n = below(r, 4) ? STATE : MARK;
    spoil(r, what, n, other, &spoilt, &certain);
    const uint64_t content = open_spoilt(&spoilt);
    tried[what]++;
    refused[what] += content == 0;
    if (content && content != m->content)
        fail_msg("SEED=%" PRIu64 ", trial %zu: %s of %s: another content", seed, trial, damage_names[what],
                 file_names[n]);
    if (content && certain)
        fail_msg("SEED=%" PRIu64 ", trial %zu: %s of %s: not noticed", seed, trial, damage_names[what], file_names[n]);
    if (content && below(r, 4) == 0)
        go_on(r);
    free(spoilt.now[n].bytes);
}

static uint64_t number(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

static void test_damage(void **unused)
{
    (void)unused;
    const uint64_t first = number("SEED", 1), trials = number("TRIALS", TRIALS);
    for (uint64_t seed = first; seed < first + STORES; seed++) {
        rng r = {rng_key(seed, rng_stream("damage")), 0};
        assert_int_equal(leave_folder(NULL), 0);
        assert_int_equal(enter_folder(NULL), 0);
        made m[FOLDERS];
        m[0] = make(&r, 0, NULL);
        m[1] = make(&r, 1, seed % 2 ? &m[0] : NULL);
        assert_true(open_spoilt(&m[0]) == m[0].content);
        for (size_t trial = 0; trial < trials; trial++)
            damage_once(&r, &m[0], &m[1], seed, trial);
        for (size_t i = 0; i < FOLDERS; i++)
            forget(&m[i]);
    }
    for (int i = 0; i < DAMAGES; i++) {
        print_message("%-6s %5zu, %5zu refused\n", damage_names[i], tried[i], refused[i]);
        assert_true(refused[i] > 0);
    }
}

/* Every bit of a small folder's state, also if the mark is of the beginning: a power cut may leave it so. Damage is not
 * taken for a write that was never finished. */
static void test_every_bit(void **unused)
{
    (void)unused;
    hfsad_error err;
    store *s;
    ok(store_open(&s, in_folder("0"), RUN, &err), &err);
    file marks[2];
    for (int i = 0; i < 4; i++) {
        const char zeros[1100] = {0}; /* with sectors that are like such as were never written */
        ok(store_put_state(s, "a", zeros, i % 2 ? sizeof zeros : 40, &err), &err);
        ok(store_commit(s, &err), &err);
        if (i == 0)
            marks[0] = read_file(path_of(0, MARK));
    }
    const uint64_t content = content_of(s);
    store_close(s);
    marks[1] = read_file(path_of(0, MARK));
    file state = read_file(path_of(0, STATE));
    size_t end = state.size;
    while (!state.bytes[end - 1])
        end--;
    assert_true(end > 3000);
    for (int old = 0; old < 2; old++) {
        made m = {.now = {[STATE] = {state.bytes, end + 2000}, [MARK] = marks[old]}};
        assert_true(open_spoilt(&m) == content);
        for (size_t bit = 0; bit < 8 * end; bit++) {
            state.bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
            if (open_spoilt(&m))
                fail_msg("bit %zu, mark %d: not noticed", bit, old);
            state.bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        }
    }
    free(state.bytes);
    free(marks[0].bytes);
    free(marks[1].bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_damage, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_every_bit, enter_folder, leave_folder),
    };
    if (access("/dev/shm", W_OK) == 0)
        setenv("TMPDIR", "/dev/shm", 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
