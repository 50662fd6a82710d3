/* Intercept and standardisation: the columns, the way back to the user's units, and whole runs against least squares.
 */
#include "tools.h"

#include "data/features.h"
#include "run/handle.h"

#include <unistd.h>

extern void dposv_(const char *half, const int *n, const int *columns, double *a, const int *lda, double *b,
                   const int *ldb, int *info);

enum { EDGES = 3, CLIENTS = 3, ROWS = 12, F = 3, N = EDGES * CLIENTS * ROWS };

static struct {
    double x[N][F], y[N], weight[N];
} all;

/* Columns of very different place and size; an intercept of its own for every client. */
static void draw_rows(void)
{
    rng r = {rng_key(5, rng_stream("features")), 0};
    static const double place[F] = {50, -3, 0}, size[F] = {0.2, 10, 1};
    for (int i = 0; i < N; i++) {
        all.weight[i] = uniform(&r, 0.5, 2);
        all.y[i] = 20 + 2 * (i / ROWS) + 0.1 * rng_next_normal(&r);
        for (int m = 0; m < F; m++) {
            const double z = rng_next_normal(&r);
            all.x[i][m] = place[m] + size[m] * z;
            all.y[i] += all.x[i][m] * (m - 1.5);
        }
    }
}

static int make_files(void **state)
{
    if (enter_folder(state))
        return 1;
    draw_rows();
    FILE *dense = fopen(in_folder("dense.csv"), "w"), *sparse = fopen(in_folder("sparse.svm"), "w"),
         *constant = fopen(in_folder("constant.csv"), "w");
    if (!dense || !sparse || !constant)
        return 1;
    fprintf(dense, "edge,client,y,weight,x1,x2,x3\n");
    fprintf(constant, "edge,client,y,x1,x2\n");
    for (int i = 0; i < N; i++) {
        const int edge = i / ROWS / CLIENTS, client = i / ROWS;
        fprintf(dense, "e%d,c%d,%.17g,%.17g,%.17g,%.17g,%.17g\n", edge, client, all.y[i], all.weight[i], all.x[i][0],
                all.x[i][1], all.x[i][2]);
        fprintf(constant, "e%d,c%d,%.17g,%.17g,7\n", edge, client, all.y[i], all.x[i][0]);
        fprintf(sparse, "%.17g %s%d:%.17g # e%d/c%d\n", all.y[i], i % 2 ? "" : "1:2.5 ", 2 + 2 * (i % 2), all.x[i][1],
                edge, client);
    }
    return fclose(dense) || fclose(sparse) || fclose(constant);
}

static void columns_of_variance_one(void **state)
{
    (void)state;
    for (int intercept = 0; intercept < 2; intercept++) {
        hfsad_error err;
        dataset *d;
        ok(dataset_read(&d, in_folder("dense.csv"), true, &err), &err);
        ok(features_prepare(d, intercept, true, "data", &err), &err);
        assert_int_equal(d->M, F + intercept);
        for (int m = 0; m < F; m++) {
            double sum = 0, weights = 0, square = 0;
            for (int i = 0; i < N; i++) {
                sum += all.weight[i] * d->rows.x[i * F + m];
                weights += all.weight[i];
            }
            for (int i = 0; i < N; i++)
                square += all.weight[i] * pow(d->rows.x[i * F + m] - sum / weights, 2);
            assert_true(fabs(square / weights - 1) < 1e-10);
            assert_int_equal(fabs(sum / weights) < 1e-10, intercept); /* only an intercept takes up a shift */
        }
        dataset_free(d);
    }
}

/* Zeros that are not stored count for the variance, and stay zeros. */
static void sparse_columns(void **state)
{
    (void)state;
    hfsad_error err;
    dataset *d;
    ok(dataset_read(&d, in_folder("sparse.svm"), true, &err), &err);
    ok(features_prepare(d, true, true, "data", &err), &err);
    assert_non_null(d->rows.start);
    enum { COLUMNS = 4 }; /* the third is in no row */
    assert_int_equal(d->rows.F, COLUMNS);
    double dense[N][COLUMNS] = {{0}};
    for (size_t r = 0; r < N; r++)
        for (size_t i = d->rows.start[r]; i < d->rows.start[r + 1]; i++)
            dense[r][d->rows.column[i]] = d->rows.x[i];
    for (int m = 0; m < COLUMNS; m++) {
        double sum = 0, square = 0;
        for (int r = 0; r < N; r++)
            sum += dense[r][m];
        for (int r = 0; r < N; r++)
            square += pow(dense[r][m] - sum / N, 2);
        assert_true(m == 2 ? square == 0 && d->scale[m] == 1 : fabs(square / N - 1) < 1e-10);
        assert_true(d->centre[m] == 0);
    }
    dataset_free(d);
}

static void there_and_back(void **state)
{
    (void)state;
    hfsad_error err;
    dataset *d;
    const double w[F + 1] = {1.5, -0.25, 3, 7};
    double user[F + 1], back[F + 1], as_rows[F + 1];
    ok(dataset_read(&d, in_folder("dense.csv"), true, &err), &err);
    ok(features_prepare(d, true, true, "data", &err), &err);
    model_to_user(d, w, user);
    model_from_user(d, user, back);
    for (int m = 0; m <= F; m++)
        assert_true(fabs(back[m] - w[m]) < 1e-12 * (1 + fabs(w[m])));
    memcpy(as_rows, w, sizeof w);
    model_to_user(d, as_rows, as_rows); /* in place */
    assert_memory_equal(as_rows, user, sizeof user);
    for (size_t leaf = 0, i = 0; leaf < d->n_leaves; leaf++) { /* both predict the same */
        const client_rows rows = dataset_rows(d, leaf);
        for (size_t r = 0; r < rows.count; r++, i++) {
            double s = user[F];
            for (int m = 0; m < F; m++)
                s += user[m] * all.x[i][m];
            assert_true(fabs(s - row_dot(&rows, r, w)) < 1e-9 * (1 + fabs(s)));
        }
    }
    dataset_free(d);
}

/* 0.1 added up a hundred thousand times is not ten thousand times 1. */
static void constant_over_many_rows(void **state)
{
    (void)state;
    hfsad_error err = {0};
    dataset_builder *b;
    dataset *d;
    ok(dataset_builder_create(&b, 2, &err), &err);
    dataset_builder_use_rows(b);
    for (int i = 0; i < 100000; i++) {
        const double x[2] = {i % 7, 0.1};
        ok(dataset_builder_add(b, "e", i % 2 ? "c1" : "c2", i % 5, x, NULL, 0, &err), &err);
    }
    ok(dataset_builder_finish(b, &d, &err), &err);
    ok(features_prepare(d, true, true, "data.csv", &err), &err);
    assert_true(column_is_constant(d, 1) && !column_is_constant(d, 0));
    dataset_free(d);
}

/* A column of sparse rows that lies far from 0 has the deviation of its numbers, not of what rounding left of them. */
static void sparse_columns_far_from_zero(void **state)
{
    (void)state;
    enum { ROWS_HERE = 200 };
    const double place = 1e9;
    rng r = {rng_key(6, rng_stream("far")), 0};
    double x[ROWS_HERE], sum = 0, square = 0;
    FILE *f = fopen(in_folder("far.svm"), "w");
    assert_non_null(f);
    for (int i = 0; i < ROWS_HERE; i++) {
        x[i] = place + round(1000 * rng_next_normal(&r)) / 1024;
        sum += x[i] - place;
        fprintf(f, "%d 1:%.17g 2:%d # e/c%d\n", i % 3, x[i], i % 5 + 1, i % 4);
    }
    assert_int_equal(fclose(f), 0);
    for (int i = 0; i < ROWS_HERE; i++)
        square += pow(x[i] - place - sum / ROWS_HERE, 2);
    hfsad_error err = {0};
    dataset *d;
    ok(dataset_read(&d, in_folder("far.svm"), true, &err), &err);
    ok(features_prepare(d, false, true, "far.svm", &err), &err);
    assert_true(fabs(d->scale[0] / sqrt(square / ROWS_HERE) - 1) < 1e-6);
    dataset_free(d);
}

static void constant_columns(void **state)
{
    (void)state;
    hfsad_error err = {0};
    dataset *d;
    ok(dataset_read(&d, in_folder("constant.csv"), true, &err), &err);
    ok(features_prepare(d, false, true, "data.csv", &err), &err);
    double w[2] = {1, -1}, user[2];
    for (size_t r = 0; r < d->n_rows; r++)
        assert_true(d->rows.x[2 * r + 1] == 0); /* the solver sees nothing of it */
    model_to_user(d, w, user);
    assert_true(user[1] == 0 && !signbit(user[1]) && user[0] != 0);
    model_from_user(d, user, w);
    assert_true(w[1] == 0 && fabs(w[0] - 1) < 1e-12);
    dataset_free(d);
    ok(dataset_read(&d, in_folder("constant.csv"), true, &err), &err);
    ok(features_prepare(d, true, false, "data.csv", &err), &err); /* not standardised, it may stay */
    dataset_free(d);
}

/* Weighted least squares with one intercept per group. */
static void least_squares(int groups, int rows_of_group, double *w)
{
    const int n = F + groups, one = 1;
    double a[(F + N) * (F + N)], x[F + N];
    int info;
    memset(a, 0, sizeof a);
    memset(w, 0, (size_t)n * sizeof *w);
    for (int i = 0; i < N; i++) {
        memset(x, 0, sizeof x);
        memcpy(x, all.x[i], sizeof all.x[i]);
        x[F + i / rows_of_group] = 1;
        for (int p = 0; p < n; p++) {
            w[p] += all.weight[i] * x[p] * all.y[i];
            for (int q = 0; q < n; q++)
                a[p * n + q] += all.weight[i] * x[p] * x[q];
        }
    }
    dposv_("L", &n, &one, a, &n, w, &n, &info);
    assert_int_equal(info, 0);
}

/* scale: of the terms that add up to it */
static void near(double found, double wanted, double scale, const char *what)
{
    if (!(fabs(found - wanted) < 1e-4 * scale))
        fail_msg("%s: %.12g, expected %.12g", what, found, wanted);
}

/* Every node's model of a run with an intercept at that level. */
static void play(const char *level, int groups)
{
    hfsad_error err;
    hfsad_spec *spec;
    hfsad_run *run;
    double exact[F + N], w[F + 1];
    least_squares(groups, N / groups, exact);
    ok(hfsad_spec_create(&spec, &err), &err);
    const char *const sets[] = {"data",     in_folder("dense.csv"), "loss.kind", "squared",
                                "features", "{standardize: true}",  NULL};
    for (int i = 0; sets[i]; i += 2)
        ok(hfsad_spec_set(spec, sets[i], sets[i + 1], &err), &err);
    ok(hfsad_spec_set(spec, "features.intercept", level, &err), &err);
    ok(hfsad_run_create(&run, spec, 1, &err), &err);
    for (int i = 0; i < 2000; i++)
        hfsad_run_iterate(run);
    assert_int_equal(hfsad_run_features(run), F + 1);
    assert_true(hfsad_run_intercept(run));
    hfsad_figures figures;
    ok(run_measure(run, &figures, &err), &err);
    assert_true(figures.consensus_gap < 1e-3); /* edges' intercepts lie 6 apart, which is no lack of consensus */
    for (size_t node = 0; node < hfsad_run_nodes(run); node++) {
        hfsad_run_node_model(run, node, w);
        for (int m = 0; m < F; m++)
            near(w[m], exact[m], 1, level);
        int first = 0, end = groups; /* the groups below the node */
        const int edge = (int)node - 1, client = (int)node - 1 - EDGES;
        if (node > EDGES) {
            first = client * groups / (EDGES * CLIENTS);
            end = first + 1;
        } else if (node > 0) {
            first = edge * groups / EDGES;
            end = groups < EDGES ? first + 1 : (edge + 1) * groups / EDGES;
        }
        double mean = 0;
        for (int g = first; g < end; g++)
            mean += exact[F + g] / (end - first);
        near(w[F], mean, 1.5 * 50, "intercept"); /* it takes up -1.5 times a column around 50 */
    }
    hfsad_run_free(run);
    hfsad_spec_free(spec);
}

static void whole_runs(void **state)
{
    (void)state;
    play("global", 1);
    play("edge", EDGES);
    play("client", EDGES * CLIENTS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_of_variance_one),
        cmocka_unit_test(sparse_columns),
        cmocka_unit_test(there_and_back),
        cmocka_unit_test(constant_columns),
        cmocka_unit_test(constant_over_many_rows),
        cmocka_unit_test(sparse_columns_far_from_zero),
        cmocka_unit_test(whole_runs),
    };
    return cmocka_run_group_tests(tests, make_files, leave_folder);
}
