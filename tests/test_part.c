/*
 * Ranks that read a part of the data each (data/part.h), as forked processes with shared memory in place of MPI: every
 * rank must have the tree of one that reads everything, the rows of its own clients and of no other, and the ranks
 * together each client once.
 */
#define _DEFAULT_SOURCE
#include "base/rng.h"
#include "data/part.h"
#include "data/shares.h"
#include "tools.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROOM = 8 << 20, MOST = 7 };

typedef struct {
    pthread_barrier_t barrier;
    size_t sizes[MOST][MOST];
    int clients[MOST]; /* held */
    char room[MOST][ROOM];
} board;

static board *shared;
static rank_group group;

static void wait_all(void)
{
    pthread_barrier_wait(&shared->barrier);
}

/* In a rank's process, where cmocka's jump would lead back into the test. */
static void check(bool fine, int line)
{
    if (fine)
        return;
    fprintf(stderr, "%s:%d: rank %u of %u\n", __FILE__, line, group.rank, group.count);
    _exit(1);
}
#define must(fine) check(fine, __LINE__)

static void gather(void *context, const void *own, const size_t *sizes, void *all)
{
    (void)context;
    must(sizes[group.rank] <= ROOM);
    memcpy(shared->room[group.rank], own, sizes[group.rank]);
    wait_all();
    for (unsigned r = 0; r < group.count; all = (char *)all + sizes[r++])
        memcpy(all, shared->room[r], sizes[r]);
    wait_all();
}

static void share(void *context, unsigned from, void *bytes, size_t size)
{
    (void)context;
    must(size <= ROOM);
    if (group.rank == from)
        memcpy(shared->room[from], bytes, size);
    wait_all();
    memcpy(bytes, shared->room[from], size);
    wait_all();
}

static void deliver(void *context, const void *own, const size_t *out, void *all, const size_t *in)
{
    (void)context;
    size_t sent = 0;
    for (unsigned r = 0; r < group.count; sent += out[r++])
        shared->sizes[group.rank][r] = out[r];
    memcpy(shared->room[group.rank], own, sent);
    wait_all();
    for (unsigned r = 0; r < group.count; r++) {
        size_t at = 0;
        for (unsigned to = 0; to < group.rank; to++)
            at += shared->sizes[r][to];
        must(in[r] == shared->sizes[r][group.rank]);
        memcpy(all, shared->room[r] + at, in[r]);
        all = (char *)all + in[r];
    }
    wait_all();
}

static void end(void *context, int status)
{
    (void)context;
    _exit(status ? status : 1);
}

static void compare_rows(const dataset *whole, const dataset *part, size_t leaf)
{
    double a[40], b[40];
    const client_rows x = dataset_rows_any(whole, leaf, a), y = dataset_rows_any(part, leaf, b);
    must(x.count == y.count);
    must(!memcmp(x.x, y.x, x.count * x.F * sizeof *x.x));
    must(!memcmp(x.y, y.y, x.count * sizeof *x.y));
    for (size_t r = 0; r < x.count && x.weight; r++)
        must(x.weight[r] == y.weight[r]);
    if (!whole->rows.first)
        must(whole->n[leaf] == part->n[leaf]);
}

/* In the process of a rank. parts: whether it is to be read in parts. */
static void read_and_compare(const char *path, const dataset *whole, bool parts, bool as_rows)
{
    const table_settings none = {0};
    const part_model model = {.possible = true};
    dataset *d;
    hfsad_error err;
    must(!dataset_read_part(&d, path, &none, as_rows, &model, &err));
    must((d != NULL) == parts);
    if (!d)
        return;
    must(d->n_leaves == whole->n_leaves);
    must(d->n_inner == whole->n_inner);
    must(d->n_rows == whole->n_rows);
    must(!d->rows.first == !whole->rows.first);
    for (size_t i = 0; i < d->n_inner; i++) {
        must(!strcmp(d->inner[i].name, whole->inner[i].name));
        must(d->inner[i].base == whole->inner[i].base);
    }
    for (size_t leaf = 0; leaf < d->n_leaves; leaf++) {
        const uint32_t parent = dataset_parent(d, leaf);
        const size_t unit = share_of_slot(d, parent, leaf - d->inner[parent].first_leaf);
        must(!strcmp(d->names + d->leaf_name[leaf], whole->names + whole->leaf_name[leaf]));
        must(dataset_holds(d, leaf) == share_is_mine(d, unit));
        if (d->rows.first)
            must(d->rows.first[leaf] == whole->rows.first[leaf]);
        shared->clients[group.rank] += dataset_holds(d, leaf);
        if (dataset_holds(d, leaf))
            compare_rows(whole, d, leaf);
    }
    dataset_free(d);
}

static void run_ranks(const char *path, unsigned count, bool parts, bool as_rows)
{
    dataset *whole;
    hfsad_error err;
    pthread_barrierattr_t attributes;
    pid_t children[MOST];
    int status, clients = 0;
    assert_int_equal(dataset_read(&whole, path, as_rows, &err), parts ? HFSAD_OK : HFSAD_ERROR_INPUT);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(shared, MAP_FAILED);
    pthread_barrierattr_init(&attributes);
    pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&shared->barrier, &attributes, count);
    for (unsigned r = 0; r < count; r++)
        if (!(children[r] = fork())) {
            group = (rank_group){r, count, NULL, gather, share, deliver, NULL, NULL, end};
            ranks_join(&group);
            alarm(60);
            read_and_compare(path, whole, parts, as_rows);
            _exit(0);
        }
    for (unsigned r = 0; r < count; r++) {
        waitpid(children[r], &status, 0);
        assert_int_equal(status, 0);
        clients += shared->clients[r];
    }
    if (parts)
        assert_int_equal(clients, whole->n_leaves);
    munmap(shared, sizeof *shared);
    dataset_free(whole);
}

/* Rows of a tree of depth three and of the cloud's own clients, in any order. */
static void write_table(const char *path, uint64_t seed, size_t rows, bool weights, const char *last)
{
    FILE *f = fopen(path, "w");
    rng r = {rng_key(seed, 1), 0};
    assert_non_null(f);
    fprintf(f, "edge,client,y,a,b,c%s\n", weights ? ",weight" : "");
    for (size_t i = 0; i < rows; i++) {
        static const char *const edges[] = {"north/one", "north/two", "south", "", "east", "west"};
        const uint64_t edge = rng_next_below(&r, 6), client = rng_next_below(&r, 9);
        fprintf(f, "%s,client%d,%.17g,%.17g,%.17g,%g", edges[edge], (int)(10 * edge + client), rng_next_normal(&r),
                rng_next_normal(&r), rng_next_normal(&r), (double)i);
        fprintf(f, weights ? ",%g\n" : "\n", (double)(i % 3) + 0.5);
    }
    fputs(last, f);
    fclose(f);
}

static const unsigned counts[] = {1, 2, 3, 4, 7};

static void test_lines(void **state)
{
    (void)state;
    for (size_t i = 0; i < 5; i++)
        for (int kind = 0; kind < 3; kind++) {
            write_table("t.csv", 10 * i + (unsigned)kind, kind ? 400 : 5, kind == 2, kind ? "\n\n" : "");
            if (counts[i] > 1)
                run_ranks("t.csv", counts[i], true, kind == 1);
        }
}

static void test_one_row_each(void **state)
{
    (void)state;
    FILE *f = fopen("u.csv", "w");
    assert_non_null(f);
    fputs("edge,client,y,a,b\n", f);
    for (int i = 0; i < 3000; i++)
        fprintf(f, "%s%d,c%d,%d,%g,2\n", i % 3 ? "e" : "", i % 3 ? i * 7 % 11 : 0, i, i, 1.0 / (i + 1));
    fclose(f);
    for (size_t i = 1; i < 5; i++)
        run_ranks("u.csv", counts[i], true, false);
}

/* What is wrong with a line is left to one that reads all of them, wherever the line is. */
static void test_mistakes(void **state)
{
    (void)state;
    write_table("bad.csv", 1, 60, false, "west,client1,nan,1,2,3\n");
    run_ranks("bad.csv", 3, false, false);
    write_table("bad.csv", 1, 1, false, "\neast,client1,1,1,2,3\n");
    for (size_t i = 1; i < 5; i++)
        run_ranks("bad.csv", counts[i], false, false);
}

static void test_files(void **state)
{
    (void)state;
    static const char *const folders[] = {"tree", "tree/e1", "tree/e2", "tree/e2/deep", "tree/e3"};
    for (size_t i = 0; i < 5; i++) {
        mkdir(folders[i], 0700);
        for (size_t c = 0; c < 3 + i; c++) {
            char name[80];
            snprintf(name, sizeof name, "%s/c%zu.csv", folders[i], c);
            FILE *f = fopen(name, "w");
            assert_non_null(f);
            fputs("y,a,b\n", f);
            for (size_t row = 0; row <= c; row++)
                fprintf(f, "%zu,%zu,%zu\n", row, c, i);
            fclose(f);
        }
    }
    for (size_t i = 1; i < 5; i++)
        run_ranks("tree", counts[i], true, false);
    FILE *f = fopen("tree/e3/c9.csv", "w"); /* other columns than the first file */
    assert_non_null(f);
    fputs("y,b,a\n1,2,3\n", f);
    fclose(f);
    run_ranks("tree", 3, false, false);
}

static int set_up(void **state)
{
    return enter_folder(state) || chdir(folder);
}

static int tear_down(void **state)
{
    return chdir("/") || leave_folder(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_one_row_each),
        cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_files),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
