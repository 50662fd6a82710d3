/* Folder trees, NPY, NPZ and LIBSVM files compared with the written rows, and the messages about invalid folders. */
#define _GNU_SOURCE /* nftw, MAP_FIXED_NOREPLACE */
#include "formats.h"

#include "base/rng.h"
#include "data/csv.h"

#include <ftw.h>
#include <math.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- a folder for each test ---- */

enum { PATH_SIZE = 400 };

static char top[200];

static int make_top(void **state)
{
    (void)state;
    const char *folder = getenv("TMPDIR");
    snprintf(top, sizeof top, "%.150s/test_formats.XXXXXX", folder ? folder : "/tmp");
    return mkdtemp(top) ? 0 : 1;
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *where)
{
    (void)info, (void)type, (void)where;
    return remove(path);
}

static int remove_top(void **state)
{
    (void)state;
    return nftw(top, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* "<top>/<name>", with the folders on the way made. */
static const char *at(const char *name)
{
    static char path[2 * PATH_SIZE];
    snprintf(path, sizeof path, "%s/%s", top, name);
    for (char *slash = strchr(path + strlen(top) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
    return path;
}

static void write_bytes(const char *name, const void *bytes, size_t size)
{
    FILE *file = fopen(at(name), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static void write_text(const char *name, const char *text)
{
    write_bytes(name, text, strlen(text));
}

static void clear(const char *name)
{
    assert_int_equal(nftw(at(name), remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

/* ---- a random federation, and the data set that must come of it ---- */

enum { CLIENTS_MOST = 40, ROWS_MOST = 30, M_MOST = 12 };

/* In the order of the leaves: folders breadth first, numbers in names by their value. */
static const char *const FOLDERS[] = {"", "b2", "b10", "west", "b10/a", "west/2", "west/10", "west/2/deep"};
enum { N_FOLDERS = sizeof FOLDERS / sizeof *FOLDERS };

typedef struct {
    size_t folder, n_rows;
    char name[24];
    double x[ROWS_MOST][M_MOST], y[ROWS_MOST], weight[ROWS_MOST];
} member;

typedef struct {
    size_t M, n_clients, n_rows;
    bool any_weight;
    member clients[CLIENTS_MOST];
} federation;

/* fill: the part of the features that is not 0. single: numbers that a float holds. */
static void draw(federation *f, rng *r, double fill, bool single, bool weights)
{
    *f = (federation){.M = 1 + rng_next_below(r, M_MOST)};
    for (size_t folder = 0; folder < N_FOLDERS; folder++) {
        /* "b10" and "west" may be without clients of their own. */
        const size_t count = rng_next_below(r, 5) + (folder == 1 || folder > 3);
        for (size_t c = 0; c < count; c++) {
            member *m = &f->clients[f->n_clients++];
            m->folder = folder;
            m->n_rows = 1 + rng_next_below(r, ROWS_MOST);
            f->n_rows += m->n_rows;
            snprintf(m->name, sizeof m->name, "client%zu", c * c + 1);
            for (size_t row = 0; row < m->n_rows; row++) {
                m->y[row] = single ? (double)(float)rng_next_normal(r) : rng_next_normal(r);
                m->weight[row] = weights && rng_next_below(r, 2) ? -log(rng_next_uniform(r)) + 0.01 : 1;
                f->any_weight |= m->weight[row] != 1;
                for (size_t i = 0; i < f->M; i++) {
                    const double x = rng_next_normal(r);
                    m->x[row][i] = rng_next_uniform(r) >= fill ? 0 : single ? (double)(float)x : x;
                }
            }
        }
    }
    member *last = &f->clients[f->n_clients - 1]; /* the last feature is somewhere, so that sparse files show it */
    last->x[0][f->M - 1] = 1.5;
}

static void full_name(const federation *f, size_t c, char out[PATH_SIZE])
{
    const char *folder = FOLDERS[f->clients[c].folder];
    snprintf(out, PATH_SIZE, "%s%s%s", folder, *folder ? "/" : "", f->clients[c].name);
}

static double element(const client_rows *rows, size_t row, size_t m)
{
    if (!rows->start)
        return rows->x[row * rows->F + m];
    for (size_t i = rows->start[row]; i < rows->start[row + 1]; i++)
        if (rows->column[i] == m)
            return rows->x[i];
    return 0;
}

/* Every leaf is the client of its name; ordered: the leaves come as the clients do. */
static void check(const federation *f, const dataset *d, bool sparse, bool ordered)
{
    assert_int_equal(d->M, f->M);
    assert_int_equal(d->n_leaves, f->n_clients);
    assert_int_equal(d->n_rows, f->n_rows);
    assert_true(d->rows.first != NULL);
    assert_int_equal(d->rows.start != NULL, sparse);
    assert_int_equal(d->rows.weight != NULL, f->any_weight);
    for (size_t leaf = 0; leaf < d->n_leaves; leaf++) {
        char name[PATH_SIZE], expected[PATH_SIZE];
        dataset_leaf_name(d, leaf, name, sizeof name);
        size_t c = ordered ? leaf : 0;
        for (full_name(f, c, expected); !ordered && strcmp(name, expected) != 0; full_name(f, c, expected))
            assert_true(++c < f->n_clients);
        assert_string_equal(name, expected);
        const client_rows rows = dataset_rows(d, leaf);
        const member *m = &f->clients[c];
        assert_int_equal(rows.count, m->n_rows);
        for (size_t row = 0; row < rows.count; row++) {
            assert_true(rows.y[row] == m->y[row] && (rows.weight ? rows.weight[row] : 1) == m->weight[row]);
            size_t filled = 0;
            for (size_t i = 0; i < f->M; i++) {
                filled += m->x[row][i] != 0;
                if (element(&rows, row, i) != m->x[row][i])
                    fail_msg("%s row %zu feature %zu; seed %llu", name, row, i, (unsigned long long)last_seed);
            }
            if (!rows.start)
                continue;
            assert_int_equal(rows.start[row + 1] - rows.start[row], filled);
            for (size_t i = rows.start[row] + 1; i < rows.start[row + 1]; i++)
                assert_true(rows.column[i] > rows.column[i - 1]);
        }
    }
}

/* ---- writers ---- */

enum { WRITE_CSV, WRITE_NPY, WRITE_NPZ, WRITE_DEFLATED, WRITE_SVM, WRITERS };

static void write_csv(const federation *f, const member *m, const char *name)
{
    FILE *file = fopen(at(name), "wb");
    assert_non_null(file);
    fputs(f->any_weight ? "y,weight" : "y", file);
    for (size_t i = 0; i < f->M; i++)
        fprintf(file, ",x%zu", i + 1);
    for (size_t row = 0; row < m->n_rows; row++) {
        fprintf(file, "\n%.17g", m->y[row]);
        if (f->any_weight)
            fprintf(file, ",%.17g", m->weight[row]);
        for (size_t i = 0; i < f->M; i++)
            fprintf(file, ",%.17g", m->x[row][i]);
    }
    assert_int_equal(fclose(file), 0);
}

static void print_svm(FILE *file, const federation *f, const member *m, size_t row)
{
    fprintf(file, "%.17g", m->y[row]);
    for (size_t i = 0; i < f->M; i++)
        if (m->x[row][i] != 0 || i % 5 == 4) /* zeros may be written */
            fprintf(file, " %zu:%.17g", i + 1, m->x[row][i]);
}

static void write_svm(const federation *f, const member *m, const char *name)
{
    FILE *file = fopen(at(name), "wb");
    assert_non_null(file);
    fputs("# a comment\n\n", file);
    for (size_t row = 0; row < m->n_rows; row++) {
        print_svm(file, f, m, row);
        fputs(row % 3 == 0 ? " # what a comment says\r\n" : row % 3 == 1 ? "  \n\n" : "\n", file);
    }
    assert_int_equal(fclose(file), 0);
}

static void write_npy(const federation *f, const member *m, const char *name, rng *r, size_t item)
{
    double *all = malloc(m->n_rows * (f->M + 1) * sizeof *all);
    assert_non_null(all);
    for (size_t row = 0; row < m->n_rows; row++) {
        all[row * (f->M + 1)] = m->y[row];
        memcpy(all + row * (f->M + 1) + 1, m->x[row], f->M * sizeof *all);
    }
    const blob b = number_blob(1 + (int)rng_next_below(r, 3), item, m->n_rows, f->M + 1, all);
    write_bytes(name, b.bytes, b.size);
    free(b.bytes);
    free(all);
}

static void write_npz(const federation *f, const member *m, const char *name, size_t item, bool deflate)
{
    static const char *const names[] = {"weight.npy", "y.npy", "X.npy"};
    double *x = malloc(m->n_rows * f->M * sizeof *x);
    assert_non_null(x);
    for (size_t row = 0; row < m->n_rows; row++)
        memcpy(x + row * f->M, m->x[row], f->M * sizeof *x);
    blob entries[] = {number_blob(1, 8, m->n_rows, 0, m->weight), number_blob(1, item, m->n_rows, 0, m->y),
                      number_blob(2, item, m->n_rows, f->M, x)};
    const size_t skip = f->any_weight ? 0 : 1;
    if (skip)
        free(entries[0].bytes);
    const blob b = zip_blob(3 - skip, names + skip, entries + skip, deflate);
    write_bytes(name, b.bytes, b.size);
    free(b.bytes);
    free(x);
}

static void write_tree(const federation *f, rng *r, int writer, size_t item)
{
    static const char *const ends[WRITERS] = {".csv", ".npy", ".npz", ".NPZ", ".svm"};
    for (size_t c = 0; c < f->n_clients; c++) {
        char own[PATH_SIZE], name[PATH_SIZE + 32];
        const member *m = &f->clients[c];
        /* Several formats in one tree, where numbers are as wide as they say. */
        const int kind = writer != WRITERS ? writer : (int)rng_next_below(r, f->any_weight ? 1 : WRITE_SVM);
        full_name(f, c, own);
        const char *svm_end = c % 3 == 0 ? ".svm" : c % 3 == 1 ? ".libsvm" : ".txt";
        snprintf(name, sizeof name, "data/%s%s", own, kind == WRITE_SVM ? svm_end : ends[kind]);
        if (kind == WRITE_CSV)
            write_csv(f, m, name);
        else if (kind == WRITE_NPY)
            write_npy(f, m, name, r, item);
        else if (kind == WRITE_SVM)
            write_svm(f, m, name);
        else
            write_npz(f, m, name, item, kind == WRITE_DEFLATED);
    }
    write_text("data/.hidden", "not data");
    write_text("data/b2/.DS_Store", "not data");
}

static dataset *loaded(const char *name)
{
    hfsad_error err;
    dataset *d;
    ok(dataset_read(&d, at(name), true, &err), &err);
    return d;
}

static void test_trees(void **state)
{
    (void)state;
    federation *f = malloc(sizeof *f);
    assert_non_null(f);
    for (uint64_t seed = 1; seed <= 30; seed++) {
        last_seed = seed;
        rng r = {.key = rng_key(seed, 0)};
        const int writer = (int)(seed % (WRITERS + 1));
        const bool single = seed % 4 == 0;
        draw(f, &r, writer == WRITE_SVM ? 0.3 : 1, single, writer != WRITE_NPY && writer != WRITE_SVM && seed % 3 == 0);
        write_tree(f, &r, writer, single ? 4 : 8);
        dataset *d = loaded(seed % 2 ? "data" : "data/");
        check(f, d, writer == WRITE_SVM, true);
        dataset_free(d);
        clear("data");
    }
    free(f);
}

/* The rows of all clients in one file, in any order: each is its client's next. */
static void test_svm_file(void **state)
{
    (void)state;
    federation *f = malloc(sizeof *f);
    assert_non_null(f);
    for (uint64_t seed = 1; seed <= 30; seed++) {
        last_seed = seed;
        rng r = {.key = rng_key(seed, 1)};
        draw(f, &r, 0.4, false, false);
        FILE *file = fopen(at("data.svm"), "wb");
        assert_non_null(file);
        size_t next[CLIENTS_MOST] = {0};
        for (size_t left = f->n_rows; left > 0; left--) {
            size_t c = rng_next_below(&r, f->n_clients);
            while (next[c] == f->clients[c].n_rows)
                c = (c + 1) % f->n_clients;
            char name[PATH_SIZE];
            full_name(f, c, name);
            print_svm(file, f, &f->clients[c], next[c]++);
            fprintf(file, left % 2 ? " # %s\n" : "#%s \r\n", name);
        }
        assert_int_equal(fclose(file), 0);
        dataset *d = loaded("data.svm");
        check(f, d, true, false);
        dataset_free(d);
    }
    free(f);
}

/* Larger than what is given back of a mapping at a time; one row per client of a few is a block where nobody asks. */
static void test_large_array(void **state)
{
    (void)state;
    enum { ROWS = 120000, COLUMNS = 12 };
    double *all = malloc(sizeof(double) * ROWS * COLUMNS);
    assert_non_null(all);
    rng r = {.key = rng_key(5, 0)};
    for (size_t i = 0; i < (size_t)ROWS * COLUMNS; i++)
        all[i] = rng_next_normal(&r);
    blob b = number_blob(1, 8, ROWS, COLUMNS, all);
    write_bytes("data/e/a.npy", b.bytes, b.size);
    free(b.bytes);
    b = number_blob(1, 8, 1, COLUMNS, all);
    write_bytes("data/e/b.npy", b.bytes, b.size);
    free(b.bytes);
    dataset *d = loaded("data");
    assert_int_equal(d->n_rows, ROWS + 1);
    for (size_t row = 0; row <= ROWS; row++) {
        const double *from = all + (row < ROWS ? row : 0) * COLUMNS;
        assert_true(d->rows.y[row] == from[0]);
        assert_memory_equal(d->rows.x + row * (COLUMNS - 1), from + 1, (COLUMNS - 1) * sizeof *from);
    }
    dataset_free(d);
    unlink(at("data/e/a.npy"));
    hfsad_error err;
    ok(dataset_read(&d, at("data"), false, &err), &err);
    assert_true(!d->rows.first && d->n_leaves == 1 && d->x[0] == all[1]);
    dataset_free(d);
    free(all);
    clear("data");
}

/* The same for text, in which nothing stands before the rows. */
static void test_large_svm(void **state)
{
    (void)state;
    enum { ROWS = 700000 };
    FILE *file = fopen(at("large.svm"), "wb");
    assert_non_null(file);
    for (int row = 0; row < ROWS; row++)
        fprintf(file, "%d %d:%d # edge1/client%d\n", row, row % 7 + 1, row + 1, row % 3);
    assert_true(ftell(file) > 4 << 22); /* several parts are given back */
    assert_int_equal(fclose(file), 0);
    dataset *d = loaded("large.svm");
    unlink(at("large.svm"));
    assert_int_equal(d->n_rows, ROWS);
    assert_int_equal(d->n_leaves, 3);
    for (size_t leaf = 0; leaf < 3; leaf++) {
        const client_rows rows = dataset_rows(d, leaf);
        for (size_t i = 0; i < rows.count; i++) {
            const size_t row = 3 * i + leaf;
            assert_true(rows.start[i + 1] == rows.start[i] + 1 && rows.y[i] == (double)row);
            assert_true(rows.column[rows.start[i]] == row % 7 && rows.x[rows.start[i]] == (double)row + 1);
        }
    }
    dataset_free(d);
}

/* What was given back may be somebody else's by the time that more is given back, also where nothing stands before the
 * rows. */
static void test_release(void **state)
{
    (void)state;
    enum { PART = 5 << 20, OTHER = 1 << 20, PAGE = 4096 };
    char *zeros = calloc(4, PART);
    assert_non_null(zeros);
    write_bytes("large", zeros, 4 * (size_t)PART);
    free(zeros);
    file_bytes f;
    hfsad_error err;
    ok(bytes_open(&f, at("large"), true, "a file", &err), &err);
    assert_non_null(f.mapping);
    const char *body = f.bytes;
    bytes_release(&f, body, body + PART);
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
    char *other = mmap(f.mapping + OTHER, PAGE, PROT_READ | PROT_WRITE, flags, -1, 0);
    assert_ptr_equal(other, f.mapping + OTHER); /* it was free */
    other[0] = 7;
    bytes_release(&f, body, body + 2 * (size_t)PART);
    assert_int_equal(other[0], 7);
    bytes_close(&f);
    assert_int_equal(other[0], 7);
    munmap(other, PAGE);
    unlink(at("large"));
}

/* ---- order, links and depth ---- */

static void test_order(void **state)
{
    (void)state;
    static const char *const sorted[] = {"01",
                                         "1",
                                         "2",
                                         "010",
                                         "10",
                                         "B",
                                         "a",
                                         "a-b",
                                         "client",
                                         "client1",
                                         "client1b",
                                         "client2",
                                         "client2.x",
                                         "client10",
                                         "client99999999999999999998",
                                         "client99999999999999999999"};
    enum { N = sizeof sorted / sizeof *sorted };
    for (size_t i = 0; i < N; i++) {
        char name[PATH_SIZE];
        const size_t k = i * 7 % N; /* in another order */
        snprintf(name, sizeof name, "data/%s.csv", sorted[k]);
        write_text(name, "y,x\n1,2\n");
        snprintf(name, sizeof name, "data/f%s/c.csv", sorted[k]);
        write_text(name, "y,x\n1,2\n");
    }
    dataset *d = loaded("data");
    assert_int_equal(d->n_leaves, 2 * N);
    for (size_t i = 0; i < N; i++) {
        assert_string_equal(d->names + d->leaf_name[i], sorted[i]);
        assert_string_equal(d->inner[1 + i].name + 1, sorted[i]);
    }
    dataset_free(d);
    clear("data");
}

static void refused_folder(const char *first, const char *second)
{
    hfsad_error err;
    dataset *d = (dataset *)&d;
    assert_int_equal(dataset_read(&d, at("data"), false, &err), HFSAD_ERROR_INPUT);
    assert_null(d);
    expect(err.message, first);
    expect(err.message, second);
    assert_null(strchr(err.message, '\n'));
    clear("data");
}

static void test_links_and_depth(void **state)
{
    (void)state;
    write_text("elsewhere.csv", "y,x\n1,2\n");
    write_text("data/e/a.csv", "y,x\n1,2\n");
    assert_int_equal(symlink("../../elsewhere.csv", at("data/e/b.csv")), 0);
    dataset *d = loaded("data");
    assert_int_equal(d->n_leaves, 2);
    dataset_free(d);
    assert_int_equal(symlink("..", at("data/e/loop")), 0);
    refused_folder("data/e/loop: a link to a folder that contains it", "remove it");
    write_text("data/a.csv", "y,x\n1,2\n");
    assert_int_equal(symlink("nowhere.csv", at("data/b.csv")), 0);
    refused_folder("data/b.csv: cannot be read", "No such file");
    const char *limit = "data/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/a.csv";
    write_text(limit, "y,x\n1,2\n");
    d = loaded("data");
    assert_int_equal(d->depth, HFSAD_TIERS_MAX);
    dataset_free(d);
    write_text("data/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/a.csv", "y,x\n1,2\n");
    refused_folder("14/15/16: too deep", "at most 15 nested folders");
}

static void test_bad_folders(void **state)
{
    (void)state;
    static const struct {
        const char *files[3][2];
        const char *says[2];
    } bad[] = {
        {{{"data/e/a.csv", "y,x\n1,2\n"}, {"data/e/notes.md", "hello"}},
         {"data/e/notes.md: not a data file", ".libsvm"}},
        {{{"data/e/a.csv", "y,x\n1,2\n"}, {"data/e/csv", "y,x\n1,2\n"}}, {"data/e/csv: not a data file", ".npz"}},
        {{{"data/.git/a.csv", "y,x\n1,2\n"}}, {"data: an empty folder", "expected clients' files"}},
        {{{"data/a.csv", "y,x\n1,2\n"}, {"data/f/.keep", ""}}, {"data/f: an empty folder", "folders of them"}},
        {{{"data/a.csv", "y,x\n1,2\n"}, {"data/a.svm", "1 1:2\n"}},
         {"data/a.svm: sparse rows, but dense rows in", "data/a.csv"}},
        {{{"data/a.svm", "1 1:2\n"}, {"data/e/b.csv", "y,x\n1,2\n"}},
         {"e/b.csv: dense rows, but sparse rows", "data/a.svm"}},
        {{{"data/a.svm", "1 1:2\n"}, {"data/a.txt", "1 1:2\n"}}, {"data/a.txt: a already has a file", "data/a.svm"}},
        {{{"data/a.csv", "y,x\n1,2\n"}, {"data/a/b.csv", "y,x\n1,2\n"}}, {"a is a client (", "and an edge (a)"}},
        {{{"data/a.csv", "y,x\n1,2\n"}, {"data/b.csv", "y,x,z\n1,2,3\n"}},
         {"data/b.csv: 2 features, but 1 in", "data/a.csv"}},
        {{{"data/a.csv", "y,x,z\n1,2,3\n"}, {"data/b.csv", "y,x,Z\n1,2,3\n"}},
         {"data/b.csv:1: column 3: feature 2 is \"Z\", but \"z\" in", "data/a.csv"}},
        {{{"data/a.csv", "y,x\n"}}, {"data/a.csv:2: no row", "every client"}},
        {{{"data/a.csv", "y,x\n1,2\n"}, {"data/b.csv", "y,x\n"}}, {"data/b.csv:2: no row", "every client"}},
        {{{"data/a.csv", ""}}, {"data/a.csv: the file is empty", "header y,x1"}},
        {{{"data/a.svm", "# nothing\n"}}, {"data/a.svm: no row", "every client"}},
        {{{"data/a.svm", "1\n2\n"}}, {"data/a.svm: no features", "index"}},
        {{{"data/a.csv", "edge,client,y,x\ne,a,1,2\n"}}, {"data/a.csv:1: column 1 (edge): ", "remove this column"}},
        {{{"data/a.csv", "client,y,x\na,1,2\n"}}, {"data/a.csv:1: column 1 (client): ", "remove this column"}},
        {{{"data/a.csv", "label,x\n1,2\n"}}, {"no column \"y\"", "expected y,x1"}},
        {{{"data/a,b.csv", "y,x\n1,2\n"}}, {"data/a,b.csv: the client's name \"a,b\" holds a comma", "expected"}},
        {{{"data/a\"b/c.csv", "y,x\n1,2\n"}}, {"the edge's name \"a\"b\" holds a quote", "expected"}},
        {{{"data/cloud/c.csv", "y,x\n1,2\n"}}, {"the edge's name \"cloud\" is the root's name", "expected"}},
        {{{"data/a.csv", "y,weight,x\n1,0,2\n"}}, {"data/a.csv:2: column 2 (weight): ", "above 0"}},
        {{{"data/a.npy", "y,x\n1,2\n"}}, {"data/a.npy: does not begin like a NumPy array", "numpy.save"}},
        {{{"data/a.npy", ""}}, {"data/a.npy: cut short", "after 0 bytes"}},
        {{{"data/a.npz", "y,x\n1,2\n"}}, {"data/a.npz: cannot be read", "the arrays X, y"}},
        {{{"data/a.npz", ""}}, {"data/a.npz: the file is empty", "the arrays X, y"}},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        last_seed = i;
        for (size_t k = 0; k < 3 && bad[i].files[k][0]; k++)
            write_text(bad[i].files[k][0], bad[i].files[k][1]);
        refused_folder(bad[i].says[0], bad[i].says[1]);
    }
    assert_int_equal(mkfifo(at("data/a.csv"), 0600), 0);
    refused_folder("data/a.csv: neither a file nor a folder", "remove it");
    hfsad_error err;
    dataset *d;
    write_text("a.npy", "");
    assert_int_equal(dataset_read(&d, at("a.npy"), false, &err), HFSAD_ERROR_INPUT);
    expect(err.message, "a.npy: an array has the rows of one client; expected a folder");
    expect(err.message, "data/<edge>/<client>.npy");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trees),           cmocka_unit_test(test_svm_file),    cmocka_unit_test(test_large_array),
        cmocka_unit_test(test_large_svm),       cmocka_unit_test(test_release),     cmocka_unit_test(test_order),
        cmocka_unit_test(test_links_and_depth), cmocka_unit_test(test_bad_folders),
    };
    return cmocka_run_group_tests(tests, make_top, remove_top);
}
