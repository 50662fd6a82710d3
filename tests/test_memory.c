/* Data from arrays: the run has the bits of a run on a file with the same rows, for any layout of the arrays; how often
 * x is copied; which arrays are refused. */
#include "tools.h"

#include "allocations.h"
#include "run/handle.h"

enum { EDGES = 3, CLIENTS = 4, F = 5, ROWS_MOST = 6, N_MOST = EDGES * CLIENTS * ROWS_MOST };

/* Rows in the order of the file; node names are those of a client with its edge. */
typedef struct {
    size_t n;
    double x[N_MOST][F], y[N_MOST], weight[N_MOST];
    int64_t code[N_MOST];
    char paths[EDGES * CLIENTS][24];
    const char *path[EDGES * CLIENTS];
} sample;

/* mixed: the rows of all clients go round and round; otherwise a client's follow each other. */
static void draw(sample *s, uint64_t seed, size_t rows, bool mixed, bool sparse)
{
    rng r = {rng_key(seed, rng_stream("memory")), 0};
    s->n = EDGES * CLIENTS * rows;
    for (size_t c = 0; c < EDGES * CLIENTS; c++) {
        snprintf(s->paths[c], sizeof s->paths[c], "e%zu/c%zu", c / CLIENTS, c);
        s->path[c] = s->paths[c];
    }
    for (size_t i = 0; i < s->n; i++) {
        s->code[i] = (int64_t)(mixed ? i % (EDGES * CLIENTS) : i / rows);
        s->weight[i] = uniform(&r, 0.5, 2);
        s->y[i] = 3 + rng_next_normal(&r);
        for (size_t m = 0; m < F; m++) {
            s->x[i][m] = sparse && below(&r, 2) && m + 1 < F ? 0 : rng_next_normal(&r);
            s->y[i] += (m % 2 ? 1 : -2) * s->x[i][m];
        }
    }
}

static void write_csv(const sample *s, bool weights)
{
    FILE *f = fopen(in_folder("data.csv"), "w");
    fprintf(f, "edge,client,y%s,a,b,c,d,e\n", weights ? ",weight" : "");
    for (size_t i = 0; i < s->n; i++) {
        const char *path = s->path[s->code[i]], *slash = strchr(path, '/');
        fprintf(f, "%.*s,%s,%.17g", (int)(slash - path), path, slash + 1, s->y[i]);
        if (weights)
            fprintf(f, ",%.17g", s->weight[i]);
        for (size_t m = 0; m < F; m++)
            fprintf(f, ",%.17g", s->x[i][m]);
        fputc('\n', f);
    }
    assert_int_equal(fclose(f), 0);
}

static hfsad_spec *spec_of(const char *const *sets)
{
    hfsad_error err;
    hfsad_spec *spec;
    ok(hfsad_spec_create(&spec, &err), &err);
    ok(hfsad_spec_set(spec, "loss", "{kind: quantile, tau: 0.3}", &err), &err);
    ok(hfsad_spec_set(spec, "run.seed", "3", &err), &err);
    for (; *sets; sets += 2)
        ok(hfsad_spec_set(spec, sets[0], sets[1], &err), &err);
    return spec;
}

/* All models after 20 iterations; frees the run. */
static double *models(hfsad_run *run, size_t *count)
{
    const size_t M = hfsad_run_features(run), nodes = hfsad_run_nodes(run);
    double *w = calloc(nodes * M, sizeof *w);
    for (int i = 0; i < 20; i++)
        hfsad_run_iterate(run);
    for (size_t i = 0; i < nodes; i++)
        hfsad_run_node_model(run, i, w + i * M);
    *count = nodes * M;
    hfsad_run_free(run);
    return w;
}

static double *file_models(const char *const *sets, size_t *count)
{
    hfsad_error err;
    hfsad_run *run;
    hfsad_spec *spec = spec_of(sets);
    ok(hfsad_spec_set(spec, "data", in_folder("data.csv"), &err), &err);
    ok(hfsad_run_create(&run, spec, 1, &err), &err);
    hfsad_spec_free(spec);
    return models(run, count);
}

/* Ways in which the same rows can come. */
typedef enum { ROW_MAJOR, COLUMN_MAJOR, PADDED, BACKWARDS, N_LAYOUTS } layout;

static void set_dense(hfsad_data *d, const sample *s, layout how, double *room)
{
    hfsad_error err;
    const ptrdiff_t n = (ptrdiff_t)s->n;
    const struct {
        ptrdiff_t first, row, column;
    } place[N_LAYOUTS] = {{0, F, 1}, {0, 1, n}, {1, F + 3, 1}, {n * F - 1, -F, -1}}, p = place[how];
    for (ptrdiff_t i = 0; i < n; i++)
        for (ptrdiff_t m = 0; m < F; m++)
            room[p.first + i * p.row + m * p.column] = s->x[i][m];
    ok(hfsad_data_dense(d, room + p.first, p.row, p.column, &err), &err);
}

static hfsad_data *data_of(const sample *s, hfsad_keep keep, layout how, bool weights, double *room)
{
    hfsad_error err;
    hfsad_data *d;
    const char *paths[N_MOST];
    ok(hfsad_data_create(&d, s->n, F, keep, &err), &err);
    set_dense(d, s, how, room);
    ok(hfsad_data_y(d, s->y, 1, &err), &err);
    if (weights)
        ok(hfsad_data_weights(d, s->weight, 1, &err), &err);
    for (size_t i = 0; i < s->n; i++)
        paths[i] = s->path[s->code[i]];
    if (how % 2)
        ok(hfsad_data_codes(d, s->code, s->path, EDGES * CLIENTS, &err), &err);
    else
        ok(hfsad_data_paths(d, paths, &err), &err);
    if (keep == HFSAD_COPY) /* it must not look at these again */
        for (ptrdiff_t i = 0; i < (ptrdiff_t)((s->n + 1) * (F + 3)); i++)
            room[i] = NAN;
    return d;
}

static void same_models(hfsad_data *d, const char *const *sets, const double *expected, size_t count)
{
    hfsad_error err;
    hfsad_run *run;
    size_t found;
    hfsad_spec *spec = spec_of(sets);
    ok(hfsad_run_create_on(&run, spec, d, 2, &err), &err);
    hfsad_spec_free(spec);
    hfsad_data_free(d); /* the run keeps what it needs */
    double *w = models(run, &found);
    assert_int_equal(found, count);
    assert_memory_equal(w, expected, count * sizeof *w);
    free(w);
}

static void test_dense(void **state)
{
    (void)state;
    static const char *const plain[] = {NULL},
                             *const prepared[] = {"features.intercept", "edge", "features.standardize", "true", NULL},
                             *const constant[] = {"features.intercept", "global", NULL},
                             *const averaged[] = {"algorithm", "fedavg", NULL};
    static const char *const *const sets[] = {plain, prepared, constant, averaged};
    static sample s;
    double *room = calloc((N_MOST + 1) * (F + 3), sizeof *room);
    for (uint64_t seed = 0; seed < 32; seed++) {
        const char *const *set = sets[seed % 4];
        const bool weights = seed & 4;
        size_t count;
        draw(&s, seed, seed & 8 ? ROWS_MOST : 1, seed & 16, false);
        write_csv(&s, weights);
        double *expected = file_models(set, &count);
        for (int how = 0; how < N_LAYOUTS; how++)
            for (int keep = HFSAD_COPY; keep <= HFSAD_BORROW; keep++)
                same_models(data_of(&s, (hfsad_keep)keep, (layout)how, weights, room), set, expected, count);
        free(expected);
    }
    free(room);
}

/* Sparse rows against the same numbers in a LIBSVM file, whose clients are named by their path. */
static void test_sparse(void **state)
{
    (void)state;
    static sample s;
    for (uint64_t seed = 0; seed < 8; seed++) {
        static int32_t start[N_MOST + 1], column[N_MOST * F];
        static int64_t wide_start[N_MOST + 1], wide_column[N_MOST * F];
        static double value[N_MOST * F];
        hfsad_error err;
        size_t count;
        draw(&s, 100 + seed, ROWS_MOST, seed & 1, true);
        FILE *f = fopen(in_folder("data.svm"), "w");
        int32_t at = 0;
        for (size_t i = 0; i < s.n; i++) {
            fprintf(f, "%.17g", s.y[i]);
            for (int32_t m = 0; m < F; m++) {
                if (s.x[i][m] == 0 && !(seed & 2)) /* zeros that are written make no difference */
                    continue;
                column[at] = m;
                wide_column[at] = m;
                value[at++] = s.x[i][m];
                if (s.x[i][m] != 0)
                    fprintf(f, " %d:%.17g", m + 1, s.x[i][m]);
            }
            fprintf(f, " # %s\n", s.path[s.code[i]]);
            start[i + 1] = at;
            wide_start[i + 1] = at;
        }
        assert_int_equal(fclose(f), 0);
        static const char *const set[] = {"features.intercept", "client", NULL};
        hfsad_run *run;
        hfsad_spec *spec = spec_of(set);
        ok(hfsad_spec_set(spec, "data", in_folder("data.svm"), &err), &err);
        ok(hfsad_run_create(&run, spec, 1, &err), &err);
        hfsad_spec_free(spec);
        double *expected = models(run, &count);
        for (int how = 0; how < 4; how++) {
            hfsad_data *d;
            ok(hfsad_data_create(&d, s.n, F, how & 1 ? HFSAD_COPY : HFSAD_BORROW, &err), &err);
            ok(how & 2 ? hfsad_data_csr(d, start, column, value, &err)
                       : hfsad_data_csr64(d, wide_start, wide_column, value, &err),
               &err);
            ok(hfsad_data_y(d, s.y, 1, &err), &err);
            ok(hfsad_data_codes(d, s.code, s.path, EDGES * CLIENTS, &err), &err);
            same_models(d, set, expected, count);
        }
        free(expected);
    }
}

/* Clients of many rows: what a run allocates, in units of x. */
static double copies(bool in_order, const char *key, const char *value)
{
    enum { N = 40, EACH = 200, WIDE = 100 };
    hfsad_error err;
    hfsad_data *d;
    hfsad_run *run;
    rng r = {rng_key(5, rng_stream("copies")), 0};
    char names[N][16];
    const char *paths[N];
    double *x = calloc((size_t)N * EACH * WIDE, sizeof *x), *y = calloc(N * EACH, sizeof *y);
    int64_t *codes = calloc(N * EACH, sizeof *codes);
    for (size_t c = 0; c < N; c++) {
        snprintf(names[c], sizeof names[c], "e/%zu", c);
        paths[c] = names[c];
    }
    for (size_t i = 0; i < (size_t)N * EACH * WIDE; i++)
        x[i] = rng_next_normal(&r);
    for (size_t i = 0; i < N * EACH; i++) {
        y[i] = rng_next_normal(&r);
        codes[i] = (int64_t)(in_order ? i / EACH : i % N);
    }
    ok(hfsad_data_create(&d, N * EACH, WIDE, HFSAD_BORROW, &err), &err);
    ok(hfsad_data_dense(d, x, WIDE, 1, &err), &err);
    ok(hfsad_data_y(d, y, 1, &err), &err);
    ok(hfsad_data_codes(d, codes, paths, N, &err), &err);
    const char *const sets[] = {key, value, NULL};
    hfsad_spec *spec = spec_of(sets);
    const size_t before = allocated_bytes;
    ok(hfsad_run_create_on(&run, spec, d, 1, &err), &err);
    const size_t bytes = allocated_bytes - before;
    hfsad_run_iterate(run);
    hfsad_run_free(run);
    hfsad_spec_free(spec);
    hfsad_data_free(d);
    free(x);
    free(y);
    free(codes);
    return (double)bytes / ((double)N * EACH * WIDE * sizeof *x);
}

static void test_copies(void **state)
{
    (void)state;
    const double none = copies(true, "loss.solver", "exact"), one = copies(false, "loss.solver", "exact"),
                 standardised = copies(true, "features.standardize", "true");
    print_message("copies of x: %.3f in order, %.3f out of order, %.3f standardised\n", none, one, standardised);
    assert_true(none < 0.2);
    assert_true(one >= 1 && one < 1.2);
    assert_true(standardised >= 1 && standardised < 1.2);
}

/* A run on `d` must be refused with this text in its message. */
static void refused(hfsad_data *d, const char *text)
{
    hfsad_error err = {0};
    hfsad_run *run;
    static const char *const sets[] = {NULL};
    hfsad_spec *spec = spec_of(sets);
    assert_int_equal(hfsad_run_create_on(&run, spec, d, 1, &err), HFSAD_ERROR_INPUT);
    assert_null(run);
    if (!strstr(err.message, text) || strchr(err.message, '\n'))
        fail_msg("'%s' instead of '%s'", err.message, text);
    hfsad_spec_free(spec);
}

static void says(hfsad_status status, const hfsad_error *err, const char *text)
{
    assert_int_equal(status, HFSAD_ERROR_INPUT);
    if (!strstr(err->message, text) || strchr(err->message, '\n'))
        fail_msg("'%s' instead of '%s'", err->message, text);
}

static void test_numbers_refused(void **state)
{
    (void)state;
    double x[] = {1, 2, 3, 4, 5, 6, 7, 8}, y[] = {1, 2, 3, 4}, weight[] = {1, 1, 1, 1};
    const char *const paths[] = {"e1/a", "e1/a", "e2/b", "e2/b"};
    const struct {
        double *at, value;
        const char *text;
    } cases[] = {
        {&x[5], NAN, "row 3: feature 2 of b is nan; expected a finite number"},
        {&x[0], -INFINITY, "row 1: feature 1 of a is -inf"},
        {&x[7], 1e200, "row 4: the squares of the features of b"},
        {&y[1], INFINITY, "row 2: y of a is inf"},
        {&y[3], NAN, "row 4: y of b is nan"},
        {&weight[2], 0, "row 3: the weight of a row of b is 0"},
        {&weight[0], NAN, "row 1: the weight of a row of a is nan"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hfsad_error err;
        hfsad_data *d;
        const double old = *cases[i].at;
        *cases[i].at = cases[i].value;
        ok(hfsad_data_create(&d, 4, 2, i % 2 ? HFSAD_COPY : HFSAD_BORROW, &err), &err);
        ok(hfsad_data_dense(d, x, 2, 1, &err), &err);
        ok(hfsad_data_y(d, y, 1, &err), &err);
        ok(hfsad_data_weights(d, weight, 1, &err), &err);
        ok(hfsad_data_paths(d, paths, &err), &err);
        refused(d, cases[i].text);
        hfsad_data_free(d);
        *cases[i].at = old;
    }
}

static void test_shapes_refused(void **state)
{
    (void)state;
    hfsad_error err;
    hfsad_data *d;
    const double x[] = {1, 2, 3, 4}, y[] = {1, 2};
    says(hfsad_data_create(&d, 0, 2, HFSAD_COPY, &err), &err, "0 rows of 2 features; expected at least one of each");
    says(hfsad_data_create(&d, 2, 0, HFSAD_COPY, &err), &err, "2 rows of 0 features");
    says(hfsad_data_create(&d, SIZE_MAX, 2, HFSAD_COPY, &err), &err, "are too many");
    says(hfsad_data_create(&d, 2, 2, (hfsad_keep)7, &err), &err, "keep = 7");
    ok(hfsad_data_create(&d, 2, 2, HFSAD_COPY, &err), &err);
    refused(d, "the data has no x: hfsad_data_dense");
    says(hfsad_data_dense(d, NULL, 2, 1, &err), &err, "x: NULL; expected an array");
    const int32_t starts[][3] = {{1, 1, 2}, {0, 3, 4}, {0, 2, 1}}, twice[] = {1, 1, 0}, far[] = {0, 2, 0};
    says(hfsad_data_csr(d, starts[0], twice, x, &err), &err, "start[0] is 1; expected 0");
    says(hfsad_data_csr(d, starts[1], twice, x, &err), &err, "row 1: start goes from 0 to 3");
    says(hfsad_data_csr(d, starts[2], twice, x, &err), &err, "row 2: start goes from 2 to 1");
    ok(hfsad_data_csr(d, (const int32_t[]){0, 2, 3}, twice, x, &err), &err);
    refused(d, "the data has no paths: hfsad_data_paths");
    const int64_t codes[] = {0, 1}, wrong[] = {0, 2}, negative[] = {-1, 0};
    const char *const paths[] = {"e/a", "e/b"}, *const bad[] = {"e/a", "e//b"}, *const none[] = {"e/a", NULL},
                      *const clash[] = {"e/a", "e"};
    says(hfsad_data_codes(d, wrong, paths, 2, &err), &err, "row 2: the code 2 is out of range; expected 0 to 1");
    says(hfsad_data_codes(d, negative, paths, 2, &err), &err, "row 1: the code -1 is out of range");
    says(hfsad_data_codes(d, codes, none, 2, &err), &err, "path 1 is NULL");
    says(hfsad_data_paths(d, none, &err), &err, "row 2: the path is NULL");
    ok(hfsad_data_codes(d, codes, paths, 2, &err), &err);
    refused(d, "the data has no y: hfsad_data_y");
    ok(hfsad_data_y(d, y, 1, &err), &err);
    refused(d, "row 1: column 1 does not rise");
    ok(hfsad_data_csr(d, (const int32_t[]){0, 2, 3}, far, x, &err), &err);
    refused(d, "row 1: column 2 is out of range; expected rising columns from 0 to 1");
    ok(hfsad_data_dense(d, x, 2, 1, &err), &err);
    ok(hfsad_data_paths(d, bad, &err), &err);
    refused(d, "row 2: \"e/\" has an empty name between");
    ok(hfsad_data_paths(d, clash, &err), &err);
    refused(d, "e is a client (row 2) and an edge (row 1)");
    const char *const names[] = {"width", ""}, *const control[] = {"wid\nth", "b"};
    says(hfsad_data_feature_names(d, names, &err), &err, "the name of feature 2 is empty");
    says(hfsad_data_feature_names(d, control, &err), &err, "the name of feature 1 is not printable");
    says(hfsad_data_truth(d, (const double[]){0, 0}, &err), &err, "truth is all zero");
    says(hfsad_data_truth(d, (const double[]){NAN, 0}, &err), &err, "truth is not finite");
    hfsad_data_free(d);
}

/* Rows that a run uses cannot be taken from under it. */
static void test_in_use(void **state)
{
    (void)state;
    hfsad_error err;
    hfsad_data *d;
    hfsad_run *run;
    static const char *const sets[] = {NULL};
    hfsad_spec *spec = spec_of(sets);
    const double x[] = {1, 2, 3, 4}, y[] = {1, 2, 3, 4};
    const char *const paths[] = {"e/a", "e/a", "e/b", "e/b"}, *const names[] = {"length"};
    ok(hfsad_data_create(&d, 4, 1, HFSAD_COPY, &err), &err);
    ok(hfsad_data_dense(d, x, 1, 1, &err), &err);
    ok(hfsad_data_y(d, y, 1, &err), &err);
    ok(hfsad_data_paths(d, paths, &err), &err);
    ok(hfsad_data_feature_names(d, names, &err), &err);
    ok(hfsad_data_truth(d, (const double[]){1}, &err), &err);
    ok(hfsad_run_create_on(&run, spec, d, 1, &err), &err);
    says(hfsad_data_dense(d, x, 1, 1, &err), &err, "the data is in use by a run; free the run first");
    says(hfsad_data_paths(d, paths, &err), &err, "in use");
    hfsad_figures f;
    hfsad_run_iterate(run);
    ok(run_measure(run, &f, &err), &err);
    assert_true(isfinite(f.relative_error));
    assert_string_equal(run->data->feature_names, "length");
    hfsad_run_free(run);
    ok(hfsad_data_dense(d, x, 1, 1, &err), &err);
    hfsad_spec_free(spec);
    hfsad_data_free(d);
    hfsad_data_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dense),           cmocka_unit_test(test_sparse),         cmocka_unit_test(test_copies),
        cmocka_unit_test(test_numbers_refused), cmocka_unit_test(test_shapes_refused), cmocka_unit_test(test_in_use),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
