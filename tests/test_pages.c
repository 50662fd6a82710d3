/*
 * Rows on a disk: all reads, from CSV and NPY files, standardised or not, and every step have the bits of rows in
 * memory; only a few blocks of them are in memory at a time; nothing is left in the folder.
 */
#define _GNU_SOURCE
#include "tools.h"

#include "core/kernels.h"
#include "data/features.h"

#include <dirent.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

/* Blocks of five rows, of which two are kept; the pages around them come with what is read. */
enum { F = 12000, ROWS = 27, KEPT_MOST = 3 << 19 };

static void same_bits(const void *a, const void *b, size_t count, const char *what, uint64_t seed)
{
    if (memcmp(a, b, count * sizeof(double)) != 0)
        fail_msg("%s: other bits than in memory, seed %" PRIu64, what, seed);
}

/* ---- files ---- */

/* Numbers that are exact in few digits. labels: y is -1 or 1. */
static double *draw_numbers(uint64_t seed, size_t rows, size_t columns, bool labels)
{
    rng r = {rng_key(seed, rng_stream("pages")), 0};
    double *x = alloc_raw(rows * (1 + columns), sizeof *x);
    for (size_t i = 0; i < rows * (1 + columns); i++)
        x[i] = ((double)below(&r, 2001) - 1000) / 64;
    for (size_t i = 0; i < rows && labels; i++)
        x[i * (1 + columns)] = below(&r, 2) ? 1 : -1;
    return x;
}

/* y first. clients: 0: the file is one client's; otherwise the rows are dealt out to so many. */
static void write_csv(const char *name, size_t rows, size_t columns, const double *x, size_t clients)
{
    FILE *f = fopen(in_folder(name), "w");
    assert_non_null(f);
    fputs(clients ? "edge,client,y" : "y", f);
    for (size_t m = 0; m < columns; m++)
        fprintf(f, ",x%zu", m + 1);
    for (size_t r = 0; r < rows; r++) {
        fputc('\n', f);
        if (clients)
            fprintf(f, "edge%zu,client%zu,", r % clients % 2, r % clients);
        for (size_t m = 0; m <= columns; m++)
            fprintf(f, "%s%.10g", m ? "," : "", x[r * (1 + columns) + m]);
    }
    fputc('\n', f);
    assert_int_equal(fclose(f), 0);
}

static void write_npy(const char *name, size_t rows, size_t columns, const double *x)
{
    char head[129];
    FILE *f = fopen(in_folder(name), "w");
    assert_non_null(f);
    const int n = snprintf(head, sizeof head, "{'descr': '<f8', 'fortran_order': False, 'shape': (%zu, %zu), }", rows,
                           columns + 1);
    memset(head + n, ' ', sizeof head - (size_t)n);
    head[117] = '\n';
    assert_int_equal(fwrite("\x93NUMPY\1\0\x76\0", 1, 10, f), 10);
    assert_int_equal(fwrite(head, 1, 118, f), 118);
    assert_int_equal(fwrite(x, sizeof *x, rows * (1 + columns), f), rows * (1 + columns));
    assert_int_equal(fclose(f), 0);
}

static size_t names_in_folder(void)
{
    size_t count = 0;
    DIR *open = opendir(folder);
    assert_non_null(open);
    for (const struct dirent *e; (e = readdir(open));)
        count += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(open);
    return count;
}

/* Bytes of the mapping at x that are in this process's memory. */
static size_t bytes_in_memory(const double *x)
{
    char line[4096], start[40];
    size_t kib = SIZE_MAX;
    bool found = false;
    snprintf(start, sizeof start, "%" PRIxPTR "-", (uintptr_t)x);
    FILE *f = fopen("/proc/self/smaps", "r");
    assert_non_null(f);
    while (kib == SIZE_MAX && fgets(line, sizeof line, f)) {
        found = found || !strncmp(line, start, strlen(start));
        if (found && sscanf(line, "Rss: %zu", &kib) != 1)
            kib = SIZE_MAX;
    }
    fclose(f);
    assert_true(kib != SIZE_MAX);
    return kib << 10;
}

static dataset *read_rows(const char *file, bool own, const char *scratch)
{
    hfsad_error err;
    dataset *d;
    ok(dataset_read_client(&d, file, NULL, own ? "edge1" : NULL, own ? "client1" : NULL, scratch, &err), &err);
    assert_true((d->rows.pages != NULL) == (scratch != NULL));
    return d;
}

static void same_rows(const dataset *a, const dataset *b, const char *what, uint64_t seed)
{
    assert_int_equal(a->n_rows, b->n_rows);
    assert_int_equal(a->n_leaves, b->n_leaves);
    assert_memory_equal(a->rows.first, b->rows.first, (a->n_leaves + 1) * sizeof *a->rows.first);
    same_bits(a->rows.y, b->rows.y, a->n_rows, what, seed);
    for (size_t leaf = 0; leaf < a->n_leaves; leaf++) {
        const client_rows here = dataset_rows(a, leaf), there = dataset_rows(b, leaf);
        for (size_t r = 0; r < here.count; r++)
            same_bits(here.x + row_from(&here, r), there.x + row_from(&there, r), here.F, what, seed);
    }
}

static void files_give_the_same_rows(void **state)
{
    (void)state;
    static const struct {
        size_t rows, columns;
    } shapes[] = {{ROWS, F}, {10000, 30}, {3, 70000}, {1, 3}};
    for (uint64_t seed = 0; seed < sizeof shapes / sizeof *shapes; seed++) {
        const size_t rows = shapes[seed].rows, columns = shapes[seed].columns;
        double *x = draw_numbers(seed, rows, columns, false);
        write_csv("own.csv", rows, columns, x, 0);
        write_csv("all.csv", rows, columns, x, 5);
        write_npy("own.npy", rows, columns, x);
        static const char *const files[] = {"own.csv", "own.npy", "all.csv"};
        for (size_t i = 0; i < 3; i++) {
            dataset *memory = read_rows(in_folder(files[i]), i < 2, NULL);
            dataset *disk = read_rows(in_folder(files[i]), i < 2, folder);
            same_rows(memory, disk, files[i], seed);
            if (i < 2) /* and those that were written */
                for (size_t r = 0; r < rows; r++)
                    same_bits(disk->rows.x + r * columns, x + r * (1 + columns) + 1, columns, files[i], seed);
            assert_int_equal(names_in_folder(), 3);
            dataset_free(memory);
            dataset_free(disk);
        }
        free(x);
    }
}

/* ---- steps ---- */

typedef struct {
    hfsad_loss loss;
    rows_solver solver;
    client_rows rows;
    squared_factor *squared;
    double w[F + 1], slope[ROWS], anchor[ROWS], eta;
} client;

static void take_steps(client *c, size_t M, uint64_t seed)
{
    enum { STEPS = 2 };
    rng r = {rng_key(seed, rng_stream("start")), 0};
    double *room = alloc_zero(4 * M + rows_scratch(M, ROWS), sizeof *room);
    double *z = room, *q = z + M, *parent = q + M, *centre = parent + M, *scratch = centre + M;
    uint32_t k = 0;
    const hfsad_link_rule rule = {{.kind = HFSAD_PENALTY_L1, .lambda = 1, .gamma = 3}, {.c = 1e4, .alpha = 1}};
    for (size_t m = 0; m < M; m++)
        z[m] = parent[m] = c->w[m] = 0.01 * rng_next_normal(&r);
    const rows_leaf leaf = {
        .problem = {.loss = &c->loss,
                    .solver = &c->solver,
                    .rows = c->rows,
                    .M = M,
                    .factor = 1,
                    .slope = c->slope,
                    .anchor = rows_anchored(&c->loss) ? c->anchor : NULL,
                    .eta = &c->eta,
                    .squared = c->squared,
                    .scratch = scratch},
        .rule = &rule,
        .z = z,
        .q = q,
        .w = c->w,
        .k = &k,
        .w_parent = parent,
        .centre = centre,
    };
    for (int i = 0; i < STEPS; i++)
        kernels()->rows_step(&leaf);
    free(room);
}

static const hfsad_loss losses[] = {
    {.kind = HFSAD_LOSS_PHASE_RETRIEVAL, .box = 5},
    {.kind = HFSAD_LOSS_PHASE_RETRIEVAL, .box = INFINITY},
    {.kind = HFSAD_LOSS_QUANTILE, .tau = 0.3, .box = 1},
    {.kind = HFSAD_LOSS_QUANTILE, .tau = 0.3, .box = INFINITY},
    {.kind = HFSAD_LOSS_ABSOLUTE, .box = INFINITY},
    {.kind = HFSAD_LOSS_SQUARED, .box = INFINITY},
    {.kind = HFSAD_LOSS_SQUARED, .box = 0.1},
    {.kind = HFSAD_LOSS_HUBER, .delta = 1, .box = INFINITY},
    {.kind = HFSAD_LOSS_LOGISTIC, .box = INFINITY},
    {.kind = HFSAD_LOSS_HINGE, .box = INFINITY},
};

/* Both ways of solving, once with an intercept and once without; the squared loss without a box also by its factor. */
static void compare_steps(const row_table *memory, const row_table *disk, size_t number, bool intercept, uint64_t seed)
{
    static client here, there;
    const dataset a = {.n_leaves = 1, .rows = *memory}, b = {.n_leaves = 1, .rows = *disk};
    for (int variant = 0; variant < 3; variant++) {
        const rows_solver solver = {variant == 1 ? ROWS_LINEARIZED : ROWS_EXACT, 1e-3, 3};
        const bool factored = variant == 2, with_intercept = intercept == (variant != 1);
        if (factored && (losses[number].kind != HFSAD_LOSS_SQUARED || losses[number].box < INFINITY))
            continue;
        here = (client){.loss = losses[number], .solver = solver, .rows = dataset_rows(&a, 0)};
        there = (client){.loss = losses[number], .solver = solver, .rows = dataset_rows(&b, 0)};
        here.rows.constant = there.rows.constant = with_intercept ? 1.5 : 0;
        const size_t M = F + with_intercept;
        if (factored) {
            assert_non_null(here.squared = squared_create(&here.rows, M, 1));
            assert_non_null(there.squared = squared_create(&there.rows, M, 1));
        }
        take_steps(&here, M, seed);
        take_steps(&there, M, seed);
        char what[100];
        snprintf(what, sizeof what, "loss %zu, variant %d, intercept %d", number, variant, intercept);
        same_bits(here.w, there.w, M, what, seed);
        same_bits(here.slope, there.slope, ROWS, what, seed);
        if (!isfinite(here.w[0]) || (number != 0 && here.w[0] == 0))
            fail_msg("%s: w = %g does not move, seed %" PRIu64, what, here.w[0], seed);
        squared_free(here.squared);
        squared_free(there.squared);
        assert_true(bytes_in_memory(disk->x) <= KEPT_MOST);
    }
}

static void steps_have_the_same_bits(void **state)
{
    (void)state;
    hfsad_error err;
    double *columns = alloc_raw(2 * (size_t)F, sizeof *columns);
    for (uint64_t seed = 0; seed < sizeof losses / sizeof *losses; seed++) {
        const hfsad_loss_kind kind = losses[seed].kind;
        double *x = draw_numbers(100 + seed, ROWS, F, kind == HFSAD_LOSS_LOGISTIC || kind == HFSAD_LOSS_HINGE);
        write_npy("own.npy", ROWS, F, x);
        free(x);
        dataset *memory = read_rows(in_folder("own.npy"), true, NULL);
        dataset *disk = read_rows(in_folder("own.npy"), true, folder);
        compare_steps(&memory->rows, &disk->rows, seed, false, seed);
        rng r = {rng_key(seed, rng_stream("columns")), 0};
        for (size_t m = 0; m < F; m++) {
            columns[m] = rng_next_normal(&r);
            columns[F + m] = uniform(&r, 1, 9);
        }
        row_table scaled_memory, scaled_disk;
        ok(columns_standardise(&scaled_memory, &memory->rows, ROWS, columns, columns + F, &err), &err);
        ok(columns_standardise(&scaled_disk, &disk->rows, ROWS, columns, columns + F, &err), &err);
        assert_non_null(scaled_disk.pages);
        assert_int_equal(bytes_in_memory(disk->rows.x), 0);
        for (size_t i = 0; i < 100; i++) {
            const size_t row = below(&r, ROWS), m = below(&r, F), at = row * F + m;
            assert_true(scaled_disk.x[at] == (memory->rows.x[at] - columns[m]) / columns[F + m]);
        }
        compare_steps(&scaled_memory, &scaled_disk, seed, true, seed);
        columns_free(&scaled_memory);
        columns_free(&scaled_disk);
        dataset_free(memory);
        dataset_free(disk);
        assert_int_equal(names_in_folder(), 1);
    }
    free(columns);
}

/* Sums of the set-up. */
static void sums_have_the_same_bits(void **state)
{
    (void)state;
    double *x = draw_numbers(7, ROWS, F, false), *room = alloc_zero(3 * (1 + 2 * (size_t)F), sizeof *room);
    double *here = room, *there = room + 1 + 2 * F, *zero = there + 1 + 2 * F;
    write_csv("own.csv", ROWS, F, x, 0);
    dataset *memory = read_rows(in_folder("own.csv"), true, NULL);
    dataset *disk = read_rows(in_folder("own.csv"), true, folder);
    const client_rows a = dataset_rows(memory, 0), b = dataset_rows(disk, 0);
    rows_sum_columns(&a, zero, true, here);
    rows_sum_columns(&b, zero, true, there);
    same_bits(here, there, 1 + 2 * F, "sums", 7);
    assert_true(rows_measure_energy(&a).energy == rows_measure_energy(&b).energy);
    assert_true(bytes_in_memory(disk->rows.x) <= KEPT_MOST);
    dataset_free(memory);
    dataset_free(disk);
    free(room);
    free(x);
}

/* ---- failures ---- */

static void a_disk_that_refuses(void **state)
{
    (void)state;
    hfsad_error err;
    dataset *d;
    double *x = draw_numbers(8, ROWS, F, false);
    write_npy("own.npy", ROWS, F, x);
    free(x);
    const char *missing = in_folder("missing");
    assert_int_equal(dataset_read_client(&d, in_folder("own.npy"), NULL, "edge1", "client1", missing, &err),
                     HFSAD_ERROR_IO);
    assert_non_null(strstr(err.message, "missing: a scratch file for the rows cannot be made there: No such file"));
    assert_null(d);
    struct rlimit old, full;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    full = (struct rlimit){1 << 20, old.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &full), 0);
    const hfsad_status status = dataset_read_client(&d, in_folder("own.npy"), NULL, "edge1", "client1", folder, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(status, HFSAD_ERROR_IO);
    assert_non_null(strstr(err.message, "cannot be written there: File too large"));
    assert_null(d);
    assert_int_equal(names_in_folder(), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(files_give_the_same_rows, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(steps_have_the_same_bits, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(sums_have_the_same_bits, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(a_disk_that_refuses, enter_folder, leave_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
