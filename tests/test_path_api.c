/* Paths on rows in memory: the points of the same path over a file, the choice, the chosen run. */
#include "sample.h"

#include "run/lambda_path.h"

#define SPEC "loss: {kind: absolute}\nprior: {cloud: {penalty: l1, weight: 1}}\nrun: {iterations: 40, trace_every: 7}\n"
enum { POINTS = 6 };

static void write_csv(const sample *s)
{
    FILE *f = fopen(in_folder("data.csv"), "w");
    fprintf(f, "edge,client,y,a,b,c,d\n");
    for (size_t i = 0; i < SAMPLE_ROWS; i++) {
        const char *name = s->path[s->code[i]];
        fprintf(f, "%.2s,%s,%.17g,%.17g,%.17g,%.17g,%.17g\n", name, name + 3, s->y[i], s->x[i][0], s->x[i][1],
                s->x[i][2], s->x[i][3]);
    }
    assert_int_equal(fclose(f), 0);
}

typedef struct {
    size_t points, asked, stop_at;
} witness;

static bool see(void *context, size_t done, const hfsad_path_point *point)
{
    witness *w = context;
    assert_int_equal(done, ++w->points);
    assert_true(point->lambda > 0);
    return done != w->stop_at;
}

static bool ask(void *context)
{
    ((witness *)context)->asked++;
    return true;
}

/* Against the steps one by one, on a file. */
static void check_points(bool star)
{
    static sample s;
    hfsad_error err;
    hfsad_path *made;
    hfsad_result *result;
    path *twin;
    double first, w[SAMPLE_F];
    sample_draw(&s, 1, false, false);
    write_csv(&s);
    hfsad_data *d = sample_data(&s, HFSAD_BORROW);
    hfsad_spec *spec = spec_from(SPEC);
    ok(hfsad_spec_set_text(spec, "algorithm", star ? "star" : "hfsad", &err), &err);
    witness seen = {0};
    const hfsad_path_settings settings = {.size = sizeof settings,
                                          .n_lambdas = POINTS,
                                          .ratio = 0.01,
                                          .heldout_share = 0.25,
                                          .select = HFSAD_SELECT_HELDOUT,
                                          .threads = 1};
    ok(hfsad_path_create(&made, spec, d, &settings, &err), &err);
    says(hfsad_path_result(made, &result, &err), &err, "train it first");
    ok(hfsad_path_train(made, see, ask, &seen, &err), &err);
    assert_int_equal(seen.points, POINTS);
    assert_true(seen.asked >= POINTS * (star ? 3 : 40));
    assert_int_equal(hfsad_path_points(made), POINTS);
    assert_int_equal(hfsad_path_width(made), SAMPLE_F);

    ok(hfsad_spec_set_text(spec, "data", in_folder("data.csv"), &err), &err);
    ok(path_create(&twin, spec, &(path_settings){.share = 0.25, .threads = 1}, &err), &err);
    ok(path_lambda_max(twin, &first, NULL, NULL, &err), &err);
    path_restart(twin);
    double least = INFINITY;
    size_t best = 0;
    for (size_t i = 0; i < POINTS; i++) {
        hfsad_path_point p = {.size = sizeof p};
        path_point q = {.w = w};
        hfsad_path_at(made, i, &p);
        ok(path_solve(twin, first * pow(0.01, (double)i / (POINTS - 1)), &q, NULL, NULL, &err), &err);
        assert_true(p.lambda == q.lambda && p.objective == q.figures.objective && p.nonzero == q.nonzero);
        assert_true(p.heldout == q.heldout && p.bic == q.bic && p.aic == q.aic);
        assert_int_equal(p.verdict, star ? HFSAD_VERDICT_CONVERGED : HFSAD_VERDICT_UNKNOWN);
        assert_true(star ? p.gap_bound <= 1e-4 * p.objective : isnan(p.gap_bound));
        assert_memory_equal(hfsad_path_models(made) + i * SAMPLE_F, w, sizeof w);
        if (p.heldout < least) {
            least = p.heldout;
            best = i;
        }
    }
    path_free(twin);
    assert_int_equal(hfsad_path_chosen(made), best);

    /* the chosen run once more */
    ok(hfsad_path_result(made, &result, &err), &err);
    assert_memory_equal(hfsad_result_models(result), hfsad_path_models(made) + best * SAMPLE_F, sizeof w);
    const size_t rows = hfsad_result_trace_rows(result);
    if (!star)
        assert_int_equal(rows, 7); /* 0, 7, ..., 35, 40 */
    hfsad_path_point p = {.size = sizeof p};
    hfsad_path_at(made, best, &p);
    assert_true(hfsad_result_trace(result, "objective")[rows - 1] == p.objective);
    ok(hfsad_path_write(made, in_folder("best"), &err), &err);
    hfsad_result *read;
    ok(hfsad_result_load(&read, in_folder("best"), &err), &err);
    assert_memory_equal(hfsad_result_models(read), hfsad_result_models(result),
                        hfsad_result_nodes(read) * SAMPLE_F * sizeof(double));
    double lambda;
    ok(hfsad_spec_get_real(hfsad_result_settings(read), "prior.cloud.lambda", &lambda, &err), &err);
    assert_true(lambda == p.lambda);
    hfsad_result_free(read);
    hfsad_result_free(result);
    hfsad_path_free(made);
    hfsad_path_free(NULL);
    hfsad_spec_free(spec);
    hfsad_data_free(d);
}

static void test_points(void **state)
{
    (void)state;
    check_points(false);
}

static void test_star(void **state)
{
    (void)state;
    check_points(true);
}

/* Held-out rows in memory, lambdas of one's own, and an end by the callback. */
static void test_given(void **state)
{
    (void)state;
    static sample s, other;
    static const double lambdas[] = {30, 3, 0.3};
    hfsad_error err;
    hfsad_path *made;
    sample_draw(&s, 2, false, false);
    sample_draw(&other, 3, false, false);
    hfsad_data *d = sample_data(&s, HFSAD_COPY), *held = sample_data(&other, HFSAD_COPY);
    hfsad_spec *spec = spec_from(SPEC);
    hfsad_path_settings settings = {
        .size = sizeof settings, .lambdas = lambdas, .n_lambdas = 3, .heldout = held, .threads = 1};
    ok(hfsad_path_create(&made, spec, d, &settings, &err), &err);
    ok(hfsad_path_train(made, NULL, NULL, NULL, &err), &err);
    for (size_t i = 0; i < 3; i++) {
        hfsad_path_point p = {.size = sizeof p};
        hfsad_path_at(made, i, &p);
        double loss = 0;
        const double *w = hfsad_path_models(made) + i * SAMPLE_F;
        for (size_t row = 0; row < SAMPLE_ROWS; row++) {
            double residual = other.y[row];
            for (size_t m = 0; m < SAMPLE_F; m++)
                residual -= w[m] * other.x[row][m];
            loss += fabs(residual) / SAMPLE_ROWS;
        }
        assert_true(p.lambda == lambdas[i] && fabs(p.heldout - loss) < 1e-9 * loss);
    }
    hfsad_path_free(made);
    witness stopped = {.stop_at = 2};
    ok(hfsad_path_create(&made, spec, d, &settings, &err), &err);
    says(hfsad_path_train(made, see, NULL, &stopped, &err), &err, "interrupted");
    assert_int_equal(stopped.points, 2);
    hfsad_path_free(made);
    hfsad_spec_free(spec);
    hfsad_data_free(d);
    hfsad_data_free(held);
}

static void test_refused(void **state)
{
    (void)state;
    static sample s;
    static const double rising[] = {1, 2};
    const struct {
        hfsad_path_settings settings;
        const char *text;
    } cases[] = {
        {{.n_lambdas = 1, .select = HFSAD_SELECT_BIC}, "n_lambdas = 1; expected 2 to 10000"},
        {{.n_lambdas = 20000, .select = HFSAD_SELECT_BIC}, "n_lambdas = 20000"},
        {{.ratio = 2, .select = HFSAD_SELECT_BIC}, "ratio = 2"},
        {{.ratio = NAN, .select = HFSAD_SELECT_BIC}, "ratio = nan"},
        {{.heldout_share = 1.5}, "heldout_share = 1.5"},
        {{.heldout_share = 0.5, .heldout_file = "x.csv"}, "held-out rows are given twice"},
        {{.select = HFSAD_SELECT_HELDOUT}, "a choice by held-out rows needs such rows"},
        {{.select = (hfsad_select)5}, "select = 5"},
        {{.lambdas = rising, .n_lambdas = 2, .select = HFSAD_SELECT_BIC}, "lambda 2 is 2; expected falling numbers"},
        {{.edges = true, .select = HFSAD_SELECT_AIC}, "prior.edge has no lambda to vary"},
    };
    sample_draw(&s, 4, false, false);
    hfsad_data *d = sample_data(&s, HFSAD_COPY);
    hfsad_spec *spec = spec_from(SPEC);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hfsad_error err;
        hfsad_path *made;
        hfsad_path_settings settings = cases[i].settings;
        settings.size = sizeof settings;
        says(hfsad_path_create(&made, spec, d, &settings, &err), &err, cases[i].text);
        assert_null(made);
    }
    hfsad_spec_free(spec);
    hfsad_data_free(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_points),
        cmocka_unit_test(test_star),
        cmocka_unit_test(test_given),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
