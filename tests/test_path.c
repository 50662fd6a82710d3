/* The parts of a path: held-out rows, points that can be repeated to the bit, the choice. */
#include "tools.h"

#include "data/split.h"
#include "run/lambda_path.h"

#include <unistd.h>

static const uint64_t SEED = 20260808;

/* Clients with 1 to 12 rows; y numbers the rows, and x repeats it, so that a row can be known again. */
static dataset *numbered(rng *r, size_t clients, size_t *rows)
{
    hfsad_error err;
    dataset_builder *b;
    dataset *d;
    *rows = 0;
    ok(dataset_builder_create(&b, 2, &err), &err);
    dataset_builder_use_rows(b);
    for (size_t c = 0; c < clients; c++)
        for (size_t n = 1 + below(r, 12); n > 0; n--, ++*rows) {
            char name[32];
            const double x[2] = {(double)*rows, -(double)*rows};
            snprintf(name, sizeof name, "c%zu", c);
            ok(dataset_builder_add(b, c % 2 ? "a" : "b", name, (double)*rows, x, NULL, 0, &err), &err);
        }
    ok(dataset_builder_finish(b, &d, &err), &err);
    return d;
}

/* Counts the rows of a leaf into seen, and checks that each is whole and the leaf's own. */
static size_t take_rows(const dataset *d, size_t leaf, const size_t *owner, int *seen)
{
    const client_rows rows = dataset_rows(d, leaf);
    for (size_t i = 0; i < rows.count; i++) {
        const size_t number = (size_t)rows.y[i];
        assert_true(rows.x[2 * i] == rows.y[i] && rows.x[2 * i + 1] == -rows.y[i]);
        assert_int_equal(owner[number], leaf);
        seen[number]++;
    }
    return rows.count;
}

static void rows_are_parted(void **state)
{
    (void)state;
    for (uint64_t turn = 0; turn < 60; turn++) {
        rng r = {rng_key(SEED, turn), 0};
        hfsad_error err = {0};
        size_t n, total;
        const size_t clients = 2 + below(&r, 8);
        dataset *d = numbered(&r, clients, &n), *held;
        const double share = uniform(&r, 0.3, 0.99);
        size_t *owner = alloc_zero(n, sizeof *owner), counts[16];
        int *seen = alloc_zero(n, sizeof *seen);
        for (size_t leaf = 0; leaf < d->n_leaves; leaf++) {
            const client_rows rows = dataset_rows(d, leaf);
            counts[leaf] = rows.count;
            for (size_t i = 0; i < rows.count; i++)
                owner[(size_t)rows.y[i]] = leaf;
        }
        if (dataset_split(d, share, turn, &held, &err)) { /* nobody has two rows */
            for (size_t leaf = 0; leaf < d->n_leaves; leaf++)
                assert_true(floor(share * (double)counts[leaf]) == 0 || counts[leaf] == 1);
        } else {
            total = 0;
            for (size_t leaf = 0; leaf < d->n_leaves; leaf++) {
                const size_t wanted = (size_t)floor(share * (double)counts[leaf]);
                const size_t gone = take_rows(held, leaf, owner, seen), stay = take_rows(d, leaf, owner, seen);
                assert_int_equal(gone, wanted < counts[leaf] ? wanted : counts[leaf] - 1);
                assert_int_equal(gone + stay, counts[leaf]);
                total += gone;
            }
            for (size_t i = 0; i < n; i++)
                if (seen[i] != 1)
                    fail_msg("seed %llu turn %llu: row %zu is there %d times", (unsigned long long)SEED,
                             (unsigned long long)turn, i, seen[i]);
            assert_int_equal(held->n_rows, total);
            assert_int_equal(d->n_rows, n - total);
        }
        dataset_free(held);
        dataset_free(d);
        free(owner);
        free(seen);
    }
}

/* The rows of data.csv, and of held.svm, whose rows lack the last feature. */
enum { ROWS = 60, CLIENTS = 6, F = 3 };
static struct {
    double x[F], y;
} data[ROWS];

/* y of a client lies `apart` above that of the one before. */
static path *make_path_of(const char *text, double apart, const char *held)
{
    char whole[500];
    rng r = {rng_key(SEED, 99), 0};
    hfsad_error err = {0};
    hfsad_spec *spec;
    path *p;
    FILE *f = fopen(in_folder("data.csv"), "w");
    assert_non_null(f);
    fputs("edge,client,y,x1,x2,x3\n", f);
    for (int i = 0; i < ROWS; i++) {
        for (int m = 0; m < F; m++)
            data[i].x[m] = rng_next_normal(&r);
        data[i].y = data[i].x[0] - 2 * data[i].x[1] + rng_next_normal(&r) + apart * (i % CLIENTS);
        fprintf(f, "e%d,c%d,%.17g,%.17g,%.17g,%.17g\n", i % 2, i % CLIENTS, data[i].y, data[i].x[0], data[i].x[1],
                data[i].x[2]);
    }
    fclose(f);
    f = fopen(in_folder("held.svm"), "w");
    assert_non_null(f);
    for (int i = 0; i < ROWS; i++)
        fprintf(f, "%.17g 1:%.17g 2:%.17g # e%d/c%d\n", data[i].y, data[i].x[0], data[i].x[1], i % 2, i % CLIENTS);
    fclose(f);
    const int n = snprintf(whole, sizeof whole, "data: data.csv\n%s", text);
    ok(spec_load_text(&spec, in_folder("spec.yaml"), whole, (size_t)n, &err), &err);
    const path_settings settings = {.threads = 1, .file = held ? in_folder(held) : NULL};
    ok(path_create(&p, spec, &settings, &err), &err);
    hfsad_spec_free(spec);
    return p;
}

static path *make_path(const char *text)
{
    return make_path_of(text, 0, NULL);
}

/* By rows that lack the features from `known` on. */
static double squared_loss(path *p, size_t known, const double *w)
{
    double sum = 0, own[F + 1];
    for (int i = 0; i < ROWS; i++) {
        char name[32], wanted[32];
        snprintf(wanted, sizeof wanted, "e%d/c%d", i % 2, i % CLIENTS);
        for (size_t node = 0; node < hfsad_run_nodes(path_run(p)); node++) {
            hfsad_run_node_name(path_run(p), node, name, sizeof name);
            if (!strcmp(name, wanted))
                hfsad_run_node_model(path_run(p), node, own);
        }
        double r = data[i].y - own[F];
        for (size_t m = 0; m < known; m++)
            r -= data[i].x[m] * w[m];
        sum += r * r / 2;
    }
    return sum;
}

/* Clients that lie far apart: with the cloud's intercept for all of them the losses would tell of nothing else. */
static void everybody_has_his_intercept(void **state)
{
    (void)state;
    hfsad_error err = {0};
    path *p = make_path_of("loss: {kind: squared}\nfeatures: {intercept: client}\nprior: {cloud: {penalty: l1, weight: "
                           "1}}\nrun: {iterations: 300}\n",
                           100, "held.svm");
    double lambda, most = 0, mean[CLIENTS] = {0}, w[F + 1];
    ok(path_lambda_max(p, &lambda, NULL, NULL, &err), &err);
    for (int i = 0; i < ROWS; i++)
        mean[i % CLIENTS] += data[i].y * CLIENTS / ROWS;
    for (int m = 0; m < F; m++) {
        double sum = 0;
        for (int i = 0; i < ROWS; i++)
            sum += data[i].x[m] * (data[i].y - mean[i % CLIENTS]);
        most = fmax(most, fabs(sum));
    }
    if (!(lambda > 0.999 * most && lambda < 1.15 * most))
        fail_msg("the first lambda is %g, and %g would do", lambda, most);
    path_point point = {.w = w};
    path_restart(p);
    ok(path_solve(p, lambda / 10, &point, NULL, NULL, &err), &err);
    const double fit = ROWS * log(2 * squared_loss(p, F, w) / ROWS), held = squared_loss(p, F - 1, w) / ROWS;
    assert_true(fabs(point.aic - fit - 2 * (double)point.nonzero) < 1e-9 * (1 + fabs(fit)));
    assert_true(fabs(point.heldout - held) < 1e-9 * held);
    path_free(p);
}

/* Going back to the point that was remembered gives its bits again, whatever was solved in between. */
static void points_can_be_repeated(void **state)
{
    (void)state;
    static const double lambdas[] = {20, 6, 2, 0.7, 0.2};
    hfsad_error err = {0};
    for (size_t best = 0; best < 5; best++) {
        path *p = make_path("loss: {kind: quantile}\nprior: {cloud: {penalty: l1}}\n"
                            "run: {iterations: 12, participation: {client: 0.6}}\n");
        double w[3], kept[3];
        path_point point = {.w = w}, wanted = {0};
        for (size_t i = 0; i < 5; i++) {
            ok(path_solve(p, lambdas[i], &point, NULL, NULL, &err), &err);
            if (i == best) {
                path_remember(p);
                memcpy(kept, w, sizeof w);
                wanted = point;
            }
        }
        ok(path_return(p, &err), &err);
        hfsad_figures f;
        for (int i = 0; i < 12; i++)
            hfsad_run_iterate(path_run(p));
        ok(run_measure(path_run(p), &f, &err), &err);
        hfsad_run_node_model(path_run(p), 0, w);
        assert_memory_equal(w, kept, sizeof w);
        assert_true(f.objective == wanted.figures.objective && f.dual_residual == wanted.figures.dual_residual);
        assert_true(path_spec(p)->prior_cloud.lambda == lambdas[best]);
        path_free(p);
    }
}

/* A point that was reached over others is as good as one from the start: to a millionth in few iterations. */
static void points_are_near_their_end(void **state)
{
    (void)state;
    hfsad_error err = {0};
    const char *few = "loss: {kind: squared}\nprior: {cloud: {penalty: l1}}\nrun: {iterations: 60}\n";
    const char *many = "loss: {kind: squared}\nprior: {cloud: {penalty: l1}}\nrun: {iterations: 6000}\n";
    path *p = make_path(few), *reference = make_path(many);
    double w[3];
    path_point warm = {.w = w}, cold = {.w = w}, end = {.w = w};
    ok(path_solve(reference, 5, &end, NULL, NULL, &err), &err);
    ok(path_solve(p, 5, &cold, NULL, NULL, &err), &err);
    path_restart(p);
    for (double lambda = 40; lambda >= 5; lambda /= 2)
        ok(path_solve(p, lambda, &warm, NULL, NULL, &err), &err);
    const double best = end.figures.consensus_objective;
    const double near = warm.figures.consensus_objective - best, far = cold.figures.consensus_objective - best;
    if (!(fabs(near) < 1e-6 * best && fabs(far) < 1e-6 * best))
        fail_msg("over others %g, from the start %g above the end %g", near, far, best);
    path_free(p);
    path_free(reference);
}

static void the_least_is_chosen(void **state)
{
    (void)state;
    path_point points[4] = {{.lambda = 4, .heldout = 3, .bic = 1, .aic = 2},
                            {.lambda = 3, .heldout = 2, .bic = 1, .aic = 3},
                            {.lambda = 2, .heldout = 2, .bic = 2, .aic = 0},
                            {.lambda = 1, .heldout = 4, .bic = 0, .aic = 1}};
    assert_int_equal(path_choose(points, 4, PATH_HELDOUT), 1);
    assert_int_equal(path_choose(points, 4, PATH_BIC), 3);
    assert_int_equal(path_choose(points, 3, PATH_BIC), 0);
    assert_int_equal(path_choose(points, 4, PATH_AIC), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_parted),
        cmocka_unit_test(points_can_be_repeated),
        cmocka_unit_test(points_are_near_their_end),
        cmocka_unit_test(the_least_is_chosen),
        cmocka_unit_test(everybody_has_his_intercept),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
