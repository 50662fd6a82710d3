/* Trees, names and the layout of blocks, compared with the rows that were added. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "data/builder.h"
#include "math/dot.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_MOST = 400, PATHS_MOST = 24, PATH_SIZE = 80 };

static uint64_t last_seed;

static void expect(const char *message, const char *part)
{
    if (!strstr(message, part))
        fail_msg("\"%s\" does not say \"%s\"", message, part);
}

/* What was added: row r is client "c<r>" below paths[path_of[r]]. */
typedef struct {
    size_t M, n_paths, n_rows;
    char paths[PATHS_MOST][PATH_SIZE];
    size_t path_of[ROWS_MOST];
    double *x, y[ROWS_MOST];
} sample;

static void sample_draw(sample *s, rng *r, size_t M, size_t depth)
{
    s->M = M;
    s->n_paths = 1 + rng_next_below(r, PATHS_MOST);
    for (size_t i = 0; i < s->n_paths; i++) {
        const size_t levels = rng_next_below(r, depth);
        size_t length = 0;
        s->paths[i][0] = '\0';
        for (size_t level = 0; level < levels; level++)
            length += (size_t)snprintf(s->paths[i] + length, PATH_SIZE - length, "%sn%d", level ? "/" : "",
                                       (int)rng_next_below(r, 3));
    }
    s->n_rows = 1 + rng_next_below(r, M > 100 ? 40 : ROWS_MOST);
    s->x = alloc_raw(s->n_rows * M, sizeof(double));
    assert_non_null(s->x);
    for (size_t row = 0; row < s->n_rows; row++) {
        /* The square makes some parents large and some small. */
        const double u = rng_next_uniform(r);
        s->path_of[row] = (size_t)(u * u * (double)s->n_paths);
        s->y[row] = rng_next_normal(r);
        for (size_t m = 0; m < M; m++)
            s->x[row * M + m] = rng_next_normal(r);
    }
}

static dataset *sample_build(const sample *s, bool reserve)
{
    dataset_builder *b;
    dataset *d;
    hfsad_error err;
    assert_int_equal(dataset_builder_create(&b, s->M, &err), HFSAD_OK);
    if (reserve)
        assert_int_equal(dataset_builder_reserve(b, s->n_rows, &err), HFSAD_OK);
    for (size_t row = 0; row < s->n_rows; row++) {
        char client[32];
        snprintf(client, sizeof client, "c%zu", row);
        assert_int_equal(
            dataset_builder_add(b, s->paths[s->path_of[row]], client, s->y[row], s->x + row * s->M, NULL, 0, &err),
            HFSAD_OK);
    }
    assert_int_equal(dataset_builder_finish(b, &d, &err), HFSAD_OK);
    return d;
}

/* The first row at or below an inner node. */
static size_t first_appearance(const sample *s, const char *node)
{
    const size_t length = strlen(node);
    for (size_t row = 0; row < s->n_rows; row++) {
        const char *path = s->paths[s->path_of[row]];
        if (strncmp(path, node, length) == 0 && (path[length] == '\0' || path[length] == '/'))
            return row;
    }
    fail_msg("no row is below %s", node);
    return 0;
}

static void check_inner(const sample *s, const dataset *d)
{
    size_t leaf = 0, end = 0;
    uint32_t next_inner = 1, depth = 0;
    assert_string_equal(d->inner[0].name, "cloud");
    assert_true(d->inner[0].parent == NO_NODE && d->inner[0].depth == 0);
    for (size_t i = 0; i < d->n_inner; i++) {
        const inner_node *node = &d->inner[i];
        assert_int_equal(node->first_inner, next_inner);
        assert_int_equal(node->first_leaf, leaf);
        assert_int_equal(node->base % 8, 0);
        assert_true(node->base >= end && node->base - end < 8);
        end = node->base + node->n_leaves * d->M;
        leaf += node->n_leaves;
        for (uint32_t child = next_inner; child < next_inner + node->n_inner; child++) {
            assert_int_equal(d->inner[child].parent, i);
            assert_int_equal(d->inner[child].depth, node->depth + 1);
            const size_t length = i ? strlen(node->name) : 0;
            if (i)
                assert_true(strncmp(d->inner[child].name, node->name, length) == 0 &&
                            d->inner[child].name[length] == '/');
            assert_null(strchr(d->inner[child].name + length + (i > 0), '/'));
            if (child > next_inner)
                assert_true(first_appearance(s, d->inner[child - 1].name) < first_appearance(s, d->inner[child].name));
        }
        next_inner += node->n_inner;
        if (node->n_leaves > 0 && node->depth + 1 > depth)
            depth = node->depth + 1;
    }
    assert_int_equal(next_inner, d->n_inner);
    assert_int_equal(leaf, d->n_leaves);
    assert_int_equal(depth, d->depth);
    assert_true(d->leaf_doubles >= end && d->leaf_doubles - end < 8);
    assert_int_equal((uintptr_t)d->x % 64, 0);
}

/* |x|^2 as dot.h promises it, written in another way. */
static double norm_of(size_t M, const double *x)
{
    double p[8];
    for (size_t i = 0; i < 8; i++) {
        p[i] = 0;
        for (size_t m = i; m < M; m += 8)
            p[i] += x[m] * x[m];
    }
    const double even = (p[0] + p[4]) + (p[2] + p[6]), odd = (p[1] + p[5]) + (p[3] + p[7]);
    return even + odd;
}

static void check_leaves(const sample *s, const dataset *d)
{
    double *row = alloc_raw(d->M, sizeof *row);
    unsigned char *used = alloc_zero(d->leaf_doubles, 1);
    assert_true(row && used);
    size_t before = 0;
    for (size_t leaf = 0; leaf < d->n_leaves; leaf++) {
        char name[PATH_SIZE + 40], expected[PATH_SIZE + 40];
        const inner_node *parent = &d->inner[dataset_parent(d, leaf)];
        const uint32_t slot = (uint32_t)leaf - parent->first_leaf;
        assert_true(leaf >= parent->first_leaf && slot < parent->n_leaves);
        const size_t from = strtoul(d->names + d->leaf_name[leaf] + 1, NULL, 10);
        assert_true(slot == 0 || from > before); /* siblings by first appearance */
        before = from;
        const char *path = s->paths[s->path_of[from]];
        snprintf(expected, sizeof expected, "%s%sc%zu", path, *path ? "/" : "", from);
        assert_int_equal(dataset_leaf_name(d, leaf, name, sizeof name), strlen(expected));
        assert_string_equal(name, expected);
        assert_true(d->y[leaf] == s->y[from]);
        dataset_gather(d, d->x, leaf, row);
        assert_memory_equal(row, s->x + from * d->M, d->M * sizeof *row);
        assert_true(d->n[leaf] == norm_of(d->M, row) && d->n[leaf] == dot8(d->M, row, row));
        const leaf_place place = dataset_place(d, parent, slot);
        for (size_t m = 0; m < d->M; m++) {
            const size_t at = place.first + m * place.stride;
            assert_true(at < d->leaf_doubles && !used[at]);
            used[at] = 1;
        }
    }
    for (size_t i = 0; i < d->leaf_doubles; i++)
        assert_true(used[i] || d->x[i] == 0); /* what the alignment adds is not left to chance */
    free(used);
    free(row);
}

static void check_scatter(const dataset *d, rng *r)
{
    double *array = alloc_zero(d->leaf_doubles, sizeof *array), *rows = alloc_raw(d->n_leaves * d->M, sizeof *rows);
    double *row = alloc_raw(d->M, sizeof *row);
    assert_true(array && rows && row);
    for (size_t i = 0; i < d->n_leaves * d->M; i++)
        rows[i] = rng_next_normal(r);
    for (size_t leaf = d->n_leaves; leaf-- > 0;)
        dataset_scatter(d, array, leaf, rows + leaf * d->M);
    for (size_t leaf = 0; leaf < d->n_leaves; leaf++) {
        dataset_gather(d, array, leaf, row);
        assert_memory_equal(row, rows + leaf * d->M, d->M * sizeof *row);
    }
    free(array);
    free(rows);
    free(row);
}

static void test_random_trees(void **state)
{
    (void)state;
    sample *s = malloc(sizeof *s);
    assert_non_null(s);
    for (uint64_t seed = 1; seed <= 300; seed++) {
        rng r = {.key = rng_key(seed, 0)};
        const size_t M = seed % 10 == 0 ? 500 + rng_next_below(&r, 101) : 1 + rng_next_below(&r, 60);
        last_seed = seed;
        sample_draw(s, &r, M, 1 + seed % 4);
        dataset *d = sample_build(s, seed % 2);
        assert_int_equal(d->M, M);
        assert_int_equal(d->n_leaves, s->n_rows);
        assert_int_equal(d->lanes, M <= 512 ? 8 : 1);
        check_inner(s, d);
        check_leaves(s, d);
        check_scatter(d, &r);
        dataset_free(d);
        free(s->x);
    }
    free(s);
}

/* ---- the table of rows ---- */

/* Row r belongs to client "c<client_of[r]>" below paths[path_of[client]]; y is r, so that it says which row it is. */
typedef struct {
    size_t clients, client_of[ROWS_MOST];
    double weight[ROWS_MOST];
} assignment;

static void add_row(dataset_builder *b, const sample *s, const assignment *a, size_t row)
{
    hfsad_error err;
    char client[32];
    const size_t c = a->client_of[row];
    const char *path = s->paths[s->path_of[c]];
    snprintf(client, sizeof client, "c%zu", c);
    if (builder_is_full(b))
        assert_int_equal(dataset_builder_reserve(b, row + 1 + row / 2, &err), HFSAD_OK);
    memcpy(builder_next_row(b), s->x + row * s->M, s->M * sizeof *s->x);
    const builder_entry entry = {
        .path = {path, strlen(path)}, .client = {client, strlen(client)}, .y = (double)row, .weight = a->weight[row]};
    if (builder_commit(b, &entry, &err))
        fail_msg("%s; seed %llu", err.message, (unsigned long long)last_seed);
}

static void check_table(const sample *s, const assignment *a, const dataset *d)
{
    const row_table *t = &d->rows;
    assert_true(!d->x && !d->y && !d->n && t->first && !t->start && !t->column);
    assert_int_equal(d->lanes, 1);
    assert_int_equal(t->F, s->M);
    assert_int_equal(d->n_rows, s->n_rows);
    assert_int_equal(t->first[0], 0);
    assert_int_equal(t->first[d->n_leaves], s->n_rows);
    size_t seen = 0;
    for (size_t leaf = 0; leaf < d->n_leaves; leaf++) {
        const client_rows rows = dataset_rows(d, leaf);
        char name[PATH_SIZE + 40], expected[PATH_SIZE + 40];
        const size_t c = strtoul(d->names + d->leaf_name[leaf] + 1, NULL, 10);
        const char *path = s->paths[s->path_of[c]];
        snprintf(expected, sizeof expected, "%s%sc%zu", path, *path ? "/" : "", c);
        dataset_leaf_name(d, leaf, name, sizeof name);
        assert_string_equal(name, expected);
        size_t next = 0;
        for (size_t row = 0; row < s->n_rows; row++) {
            if (a->client_of[row] != c)
                continue;
            assert_true(next < rows.count && rows.y[next] == (double)row);
            assert_memory_equal(rows.x + next * rows.F, s->x + row * s->M, s->M * sizeof *s->x);
            assert_true((rows.weight ? rows.weight[next] : 1) == a->weight[row]);
            next++;
        }
        assert_int_equal(next, rows.count);
        assert_true(next > 0);
        seen += next;
    }
    assert_int_equal(seen, s->n_rows);
}

static void test_many_rows(void **state)
{
    (void)state;
    sample *s = malloc(sizeof *s);
    assignment *a = malloc(sizeof *a);
    assert_true(s && a);
    for (uint64_t seed = 1; seed <= 200; seed++) {
        rng r = {.key = rng_key(seed, 1)};
        hfsad_error err;
        dataset_builder *b;
        dataset *d;
        last_seed = seed;
        sample_draw(s, &r, 1 + rng_next_below(&r, 30), 1 + seed % 4);
        a->clients = 1 + rng_next_below(&r, s->n_rows);
        /* Now and then one row each of weight 1, where only the wish makes a table. */
        const bool single = seed % 5 == 0, weighted = !single && seed % 2, sorted = seed % 3 == 0;
        assert_int_equal(dataset_builder_create(&b, s->M, &err), HFSAD_OK);
        for (size_t row = 0; row < s->n_rows; row++) {
            a->client_of[row] = single ? row : sorted ? row * a->clients / s->n_rows : rng_next_below(&r, a->clients);
            a->weight[row] = weighted && rng_next_below(&r, 3) ? -log(rng_next_uniform(&r)) + 1e-3 : 1;
            add_row(b, s, a, row);
        }
        const bool asked = single || seed % 7 == 0;
        if (asked)
            dataset_builder_use_rows(b);
        assert_int_equal(dataset_builder_finish(b, &d, &err), HFSAD_OK);
        bool any_weight = false;
        for (size_t row = 0; row < s->n_rows; row++)
            any_weight |= a->weight[row] != 1;
        assert_int_equal(d->rows.first != NULL, asked || any_weight || d->n_leaves < s->n_rows);
        assert_int_equal(d->rows.weight != NULL, any_weight);
        if (d->rows.first)
            check_table(s, a, d);
        dataset_free(d);
        free(s->x);
    }
    free(a);
    free(s);
}

static void test_bad_weights(void **state)
{
    (void)state;
    static const struct {
        double y, x, weight;
        const char *says;
    } bad[] = {
        {1, 1, 0, "the weight of a row of c is 0; expected a finite number above 0"},
        {1, 1, -2, "the weight of a row of c is -2"},
        {1, 1, NAN, "the weight of a row of c is nan"},
        {0, 0, INFINITY, "the weight of a row of c is inf"},
        {1e140, 1, 1e30, "scale the weights down"},
        {1, 1e140, 1e30, "scale the weights down"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        dataset_builder *b;
        hfsad_error err;
        assert_int_equal(dataset_builder_create(&b, 1, &err), HFSAD_OK);
        assert_int_equal(dataset_builder_reserve(b, 1, &err), HFSAD_OK);
        builder_next_row(b)[0] = bad[i].x;
        const builder_entry entry = {.path = {"e", 1},
                                     .client = {"c", 1},
                                     .y = bad[i].y,
                                     .weight = bad[i].weight,
                                     .file = "a.csv",
                                     .line = 4,
                                     .weight_column = 3};
        assert_int_equal(builder_commit(b, &entry, &err), HFSAD_ERROR_INPUT);
        expect(err.message, "a.csv:4: column 3 (weight): ");
        expect(err.message, bad[i].says);
        dataset_builder_free(b);
    }
}

/* One leaf per parent: the blocks need far more room than the rows. */
static void test_many_small_parents(void **state)
{
    (void)state;
    enum { N = 20000 };
    dataset_builder *b;
    dataset *d;
    hfsad_error err;
    assert_int_equal(dataset_builder_create(&b, 1, &err), HFSAD_OK);
    for (int i = 0; i < N; i++) {
        char path[32], client[32];
        const double x = i;
        snprintf(path, sizeof path, "e%d", i);
        snprintf(client, sizeof client, "c%d", i);
        assert_int_equal(dataset_builder_add(b, path, client, -i, &x, NULL, 0, &err), HFSAD_OK);
    }
    assert_int_equal(dataset_builder_finish(b, &d, &err), HFSAD_OK);
    assert_int_equal(d->leaf_doubles, 8 * N);
    for (size_t i = 0; i < N; i++) {
        assert_true(d->x[8 * i] == (double)i && d->y[i] == -(double)i);
        assert_int_equal(dataset_parent(d, i), i + 1);
    }
    dataset_free(d);
}

static void test_names_are_cut(void **state)
{
    (void)state;
    dataset_builder *b;
    dataset *d;
    hfsad_error err;
    const double x = 1;
    assert_int_equal(dataset_builder_create(&b, 1, &err), HFSAD_OK);
    assert_int_equal(dataset_builder_add(b, "region2/edge1", "client7", 0, &x, NULL, 0, &err), HFSAD_OK);
    assert_int_equal(dataset_builder_finish(b, &d, &err), HFSAD_OK);
    const char *full = "region2/edge1/client7";
    for (size_t size = 0; size < 30; size++) {
        char name[32];
        memset(name, '#', sizeof name);
        assert_int_equal(dataset_leaf_name(d, 0, name, size), strlen(full));
        if (size > 0) {
            const size_t length = size - 1 < strlen(full) ? size - 1 : strlen(full);
            assert_int_equal(strlen(name), length);
            assert_memory_equal(name, full, length);
        }
        assert_int_equal(name[size > strlen(full) ? strlen(full) + 1 : size], '#');
    }
    assert_string_equal(d->inner[1].name, "region2");
    assert_string_equal(d->inner[2].name, "region2/edge1");
    assert_int_equal(d->depth, 3);
    dataset_free(d);
}

/* Adds (path, client) after (first_path, first_client) and returns the message of whatever fails. */
static const char *refusal(const char *first_path, const char *first_client, const char *path, const char *client,
                           double y, double x)
{
    static hfsad_error err;
    dataset_builder *b;
    dataset *d;
    const double one = 1;
    assert_int_equal(dataset_builder_create(&b, 1, &err), HFSAD_OK);
    assert_int_equal(dataset_builder_add(b, first_path, first_client, 1, &one, "a.csv", 3, &err), HFSAD_OK);
    hfsad_status status = dataset_builder_add(b, path, client, y, &x, "a.csv", 9, &err);
    if (status) {
        hfsad_error later;
        assert_int_equal(dataset_builder_finish(b, &d, &later), HFSAD_ERROR_INPUT);
    } else {
        status = dataset_builder_finish(b, &d, &err);
    }
    assert_int_equal(status, HFSAD_ERROR_INPUT);
    assert_null(d);
    assert_int_equal(err.status, HFSAD_ERROR_INPUT);
    return err.message;
}

static void test_bad_names(void **state)
{
    (void)state;
    static const char *const bad[] = {"cloud", "a,b", "a\"b", "a\nb", "a\x7f",
                                      /* no UTF-8: a byte alone, cut short, too long a form, a surrogate, too large */
                                      "a\x80", "\xe2\x82", "\xc0\xaf", "\xe0\x80\xaf", "\xf0\x80\x80\xaf",
                                      "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xff"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        expect(refusal("e", "c", "e", bad[i], 0, 1), "a.csv:9: ");
        expect(refusal("e", "c", "e", bad[i], 0, 1), "client's name");
        expect(refusal("e", "c", bad[i], "d", 0, 1), "edge's name");
    }
    expect(refusal("e", "c", "e", "a/b", 0, 1), "holds a slash");
    expect(refusal("e", "c", "e", "", 0, 1), "empty");
    expect(refusal("e", "c", "a/cloud/b", "d", 0, 1), "root's name");
    static const char *const paths[] = {"a//b", "/a", "a/", "/"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        expect(refusal("e", "c", paths[i], "d", 0, 1), "empty name");

    char name[300];
    memset(name, 'n', sizeof name);
    name[256] = '\0';
    expect(refusal("e", "c", "e", name, 0, 1), "too long");
    expect(refusal("e", "c", name, "d", 0, 1), "too long");
    const char *deep = "1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16";
    expect(refusal("e", "c", deep, "d", 0, 1), "too deep");
}

static void test_bad_rows(void **state)
{
    (void)state;
    expect(refusal("", "a", "a", "b", 0, 1), "a is a client (line 3) and an edge (line 9)");
    expect(refusal("r/a", "b", "r", "a", 0, 1), "a.csv:9: r/a is a client (line 9) and an edge (line 3)");
    expect(refusal("e", "c", "e", "d", NAN, 1), "y of d is nan; expected a finite number");
    expect(refusal("e", "c", "e", "d", 0, -INFINITY), "feature 1 of d is -inf; expected a finite number");
    expect(refusal("e", "c", "e", "d", 0, 1e200), "scale them down");
    expect(refusal("e", "c", "e", "d", 1.01e150, 1), "a.csv:9: y of d is 1.01e+150, too large");
    expect(refusal("e", "c", "e", "d", -1e300, 1), "scale y down");
}

/* What is unusual and allowed. */
static void test_good_rows(void **state)
{
    (void)state;
    static const char *const names[] = {"\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x8c\xb3", "\xf4\x8f\xbf\xbf",
                                        "\xee\x80\x80"};
    enum { N = sizeof names / sizeof *names };
    dataset_builder *b;
    dataset *d;
    hfsad_error err;
    const double one = 1;
    assert_int_equal(dataset_builder_create(&b, 1, &err), HFSAD_OK);
    for (size_t i = 0; i < N; i++)
        if (dataset_builder_add(b, "", names[i], i % 2 ? 1e150 : -1e150, &one, NULL, 0, &err))
            fail_msg("%s", err.message);
    assert_int_equal(dataset_builder_finish(b, &d, &err), HFSAD_OK);
    assert_int_equal(d->n_leaves, N);
    dataset_free(d);
}

/* What looks like a clash and is none. */
static void test_names_apart(void **state)
{
    (void)state;
    dataset_builder *b;
    dataset *d;
    hfsad_error err;
    const double x = 1;
    const char *limit = "1/2/3/4/5/6/7/8/9/10/11/12/13/14/15";
    char name[256];
    memset(name, 'n', 255);
    name[255] = '\0';
    assert_int_equal(dataset_builder_create(&b, 1, &err), HFSAD_OK);
    assert_int_equal(dataset_builder_add(b, "a", "b", 0, &x, NULL, 0, &err), HFSAD_OK);
    assert_int_equal(dataset_builder_add(b, "b", "a", 0, &x, NULL, 0, &err), HFSAD_OK);
    assert_int_equal(dataset_builder_add(b, "a/c", "d", 0, &x, NULL, 0, &err), HFSAD_OK);
    assert_int_equal(dataset_builder_add(b, limit, name, 0, &x, NULL, 0, &err), HFSAD_OK);
    assert_int_equal(dataset_builder_finish(b, &d, &err), HFSAD_OK);
    assert_int_equal(d->depth, HFSAD_TIERS_MAX);
    assert_int_equal(d->n_inner, 1 + 3 + 15);
    dataset_free(d);
}

static void test_nothing_to_build(void **state)
{
    (void)state;
    dataset_builder *b;
    dataset *d;
    hfsad_error err;
    assert_int_equal(dataset_builder_create(&b, 0, &err), HFSAD_ERROR_INPUT);
    assert_null(b);
    assert_int_equal(dataset_builder_create(&b, 3, &err), HFSAD_OK);
    assert_int_equal(dataset_builder_finish(b, &d, &err), HFSAD_ERROR_INPUT);
    expect(err.message, "no rows");
    assert_int_equal(dataset_builder_create(&b, SIZE_MAX / 4, &err), HFSAD_OK);
    assert_int_equal(dataset_builder_reserve(b, 1, &err), HFSAD_ERROR_MEMORY);
    assert_int_equal(dataset_builder_reserve(b, 100, &err), HFSAD_ERROR_MEMORY);
    dataset_builder_free(b);
    dataset_builder_free(NULL);
    dataset_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_trees),     cmocka_unit_test(test_many_small_parents),
        cmocka_unit_test(test_names_are_cut),    cmocka_unit_test(test_bad_names),
        cmocka_unit_test(test_bad_rows),         cmocka_unit_test(test_names_apart),
        cmocka_unit_test(test_nothing_to_build), cmocka_unit_test(test_good_rows),
        cmocka_unit_test(test_many_rows),        cmocka_unit_test(test_bad_weights),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    if (failed)
        fprintf(stderr, "last seed of test_random_trees: %llu\n", (unsigned long long)last_seed);
    return failed;
}
