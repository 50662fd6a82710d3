/* docs/data.md as printed: every example is written or run, and read; all of them give the same data. */
#define _XOPEN_SOURCE 700 /* mkdtemp, nftw */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "data/dataset.h"
#include "plan/read_table.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINE_SIZE = 1000 };

static bool numpy; /* whether python3 has it */

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *where)
{
    (void)info, (void)type, (void)where;
    return remove(path);
}

/* Opens where a block goes: the file it names, or a program of Python. NULL: the block is no example. */
static FILE *open_block(const char *line, bool *program)
{
    char path[LINE_SIZE];
    *program = strcmp(line, "```python\n") == 0;
    if (*program)
        return fopen("example.py", "w");
    if (sscanf(line, "```text %999s", path) != 1 && sscanf(line, "```yaml %999s", path) != 1)
        return NULL;
    for (char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    return file;
}

static void close_block(FILE *file, bool program)
{
    assert_int_equal(fclose(file), 0);
    if (program && numpy)
        assert_int_equal(system("/usr/bin/python3 example.py"), 0);
}

static int write_examples(void **state)
{
    (void)state;
    const char *source = getenv("SOURCE_DIR"), *temporary = getenv("TMPDIR");
    char path[LINE_SIZE], line[LINE_SIZE];
    snprintf(path, sizeof path, "%s/docs/data.md", source ? source : ".");
    FILE *page = fopen(path, "r"), *block = NULL;
    snprintf(path, sizeof path, "%s/test_data_page.XXXXXX", temporary ? temporary : "/tmp");
    if (!page || !mkdtemp(path) || chdir(path) != 0)
        return 1;
    numpy = system("/usr/bin/python3 -c 'import numpy' 2>/dev/null") == 0;
    if (!numpy)
        fprintf(stderr, "numpy is not installed (package python3-numpy): its examples are left out\n");
    bool program = false;
    while (fgets(line, sizeof line, page)) {
        if (block && strncmp(line, "```", 3) == 0) {
            close_block(block, program);
            block = NULL;
        } else if (block) {
            fputs(line, block);
        } else if (strncmp(line, "```", 3) == 0) {
            block = open_block(line, &program);
            assert_non_null(block);
        }
    }
    assert_null(block);
    fclose(page);
    return 0;
}

static int remove_examples(void **state)
{
    (void)state;
    char folder[LINE_SIZE];
    return !getcwd(folder, sizeof folder) || chdir("/") != 0 || nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS) != 0;
}

static dataset *example(const char *path)
{
    dataset *d;
    hfsad_error err;
    if (dataset_read(&d, path, true, &err))
        fail_msg("%s", err.message);
    return d;
}

typedef struct {
    const char *client;
    double y, weight, x[2];
} row;

static void check(const char *path, size_t count, const row *rows)
{
    dataset *d = example(path);
    assert_int_equal(d->M, 2);
    assert_int_equal(d->n_rows, count);
    for (size_t leaf = 0; leaf < d->n_leaves; leaf++) {
        const client_rows own = dataset_rows(d, leaf);
        for (size_t i = 0; i < own.count; i++, rows++) {
            char name[64];
            double x[2] = {0};
            dataset_leaf_name(d, leaf, name, sizeof name);
            if (own.start)
                for (size_t k = own.start[i]; k < own.start[i + 1]; k++)
                    x[own.column[k]] = own.x[k];
            else
                memcpy(x, own.x + 2 * i, sizeof x);
            assert_string_equal(name, rows->client);
            assert_true(own.y[i] == rows->y && (own.weight ? own.weight[i] : 1) == rows->weight);
            assert_true(x[0] == rows->x[0] && x[1] == rows->x[1]);
        }
    }
    dataset_free(d);
}

static void test_same_federation(void **state)
{
    (void)state;
    static const row rows[] = {
        {"edge1/anna", 1.5, 1, {0.2, 0}},   {"edge1/anna", 2, 1, {0.5, 0.125}}, {"edge1/bob", -1, 1, {0, 1}},
        {"edge2/carl", 0.25, 1, {0.3, -2}}, {"edge2/carl", 7, 1, {0, 4}},
    };
    static const char *const paths[] = {"data.csv", "csv", "data.svm", "svm", "npy", "data.json"};
    for (size_t i = 0; i < (numpy ? 5 : 4); i++)
        check(paths[i], sizeof rows / sizeof *rows, rows);
}

static void test_weighted(void **state)
{
    (void)state;
    static const row rows[] = {
        {"edge1/anna", 1.5, 2, {0.2, 0}}, {"edge1/anna", 2, 0.5, {0.5, 0.125}}, {"edge2/carl", 7, 1, {0, 4}}};
    check("weighted.csv", 3, rows);
    if (numpy)
        check("npz", 3, rows);
}

/* The data of a spec on the page. */
static dataset *table(const char *spec_path)
{
    hfsad_spec *spec;
    hfsad_error err;
    dataset *d;
    if (hfsad_spec_load(&spec, spec_path, &err))
        fail_msg("%s", err.message);
    const table_settings settings = table_of_spec(spec);
    if (dataset_read_table(&d, spec->top.data, &settings, true, &err))
        fail_msg("%s", err.message);
    hfsad_spec_free(spec);
    return d;
}

static void test_tables(void **state)
{
    (void)state;
    dataset *d = table("sales.yaml");
    static const char names[] = "age\0size1\0size2\0region=south\0region=west";
    static const double first[] = {3, 1, 2, 0, 0}, third[] = {4.5, 5, 6, 0, 1}; /* the mean of 3 and 6 */
    assert_int_equal(d->M, 5);
    assert_memory_equal(d->feature_names, names, sizeof names);
    assert_int_equal(d->n_leaves, 2);
    assert_memory_equal(d->rows.x, first, sizeof first);
    assert_memory_equal(d->rows.x + 5, third, sizeof third); /* of the same shop, after its other row */
    assert_true(d->rows.y[0] == 10 && d->rows.weight[0] == 2);
    dataset_free(d);
    d = table("dealt.yaml");
    assert_int_equal(d->n_leaves, 2);
    assert_int_equal(d->n_inner, 3);
    assert_int_equal(d->rows.first[1], 2);
    dataset_free(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_federation), cmocka_unit_test(test_weighted),
                                       cmocka_unit_test(test_tables)};
    return cmocka_run_group_tests(tests, write_examples, remove_examples);
}
