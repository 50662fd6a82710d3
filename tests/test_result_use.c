/* Predictions and evaluation on rows in memory, beside sums by hand. */
#include "sample.h"

static hfsad_result *trained(const char *text, hfsad_data *d)
{
    hfsad_error err;
    hfsad_result *result;
    hfsad_run *run = run_from(text, d, 1);
    ok(hfsad_run_train(run, NULL, NULL, &result, &err), &err);
    hfsad_run_free(run);
    return result;
}

static double dot(const hfsad_result *r, const char *node, const double *x)
{
    const size_t width = hfsad_result_width(r), at = hfsad_result_find(r, node);
    assert_true(at != SIZE_MAX);
    const double *w = hfsad_result_models(r) + at * width;
    double sum = hfsad_result_intercept(r) ? w[width - 1] : 0;
    for (size_t m = 0; m < SAMPLE_F; m++)
        sum += w[m] * x[m];
    return sum;
}

static void near(double a, double b)
{
    if (!(fabs(a - b) <= 1e-9 * (1 + fabs(b))))
        fail_msg("%.17g and %.17g", a, b);
}

/* Every kind of choice, in the order of the rows, which come mixed. */
static void test_predict(void **state)
{
    (void)state;
    static sample s;
    static double prediction[SAMPLE_ROWS];
    static const char *const texts[] = {
        "loss: {kind: squared}\nfeatures: {intercept: client, standardize: true}\nrun: {iterations: 30}\n",
        "loss: {kind: logistic}\nrun: {iterations: 30}\n",
    };
    for (int labels = 0; labels < 2; labels++) {
        hfsad_error err;
        sample_draw(&s, 1, false, labels);
        hfsad_data *d = sample_data(&s, HFSAD_BORROW);
        hfsad_result *r = trained(texts[labels], d);
        for (int with = HFSAD_WITH_AUTO; with <= HFSAD_WITH_CLOUD; with++) {
            ok(hfsad_result_predict(r, d, (hfsad_with)with, prediction, &err), &err);
            for (size_t i = 0; i < SAMPLE_ROWS; i++) {
                char edge[8];
                snprintf(edge, sizeof edge, "e%d", (int)(s.code[i] % 3));
                const char *node = with == HFSAD_WITH_CLOUD  ? "cloud"
                                   : with == HFSAD_WITH_EDGE ? edge
                                                             : s.path[s.code[i]];
                const double score = dot(r, node, s.x[i]);
                near(prediction[i], labels ? 1 / (1 + exp(-score)) : score);
            }
        }
        hfsad_result_free(r);
        hfsad_data_free(d);
    }
}

/* Rows without y, of a client that the model does not know. */
static void test_strangers(void **state)
{
    (void)state;
    static sample s;
    hfsad_error err;
    hfsad_data *d, *rows;
    hfsad_evaluation *e;
    const char *const paths[] = {"e1/new", "e9/c1", "alone"}, *const names[] = {"a", "b", "c", "d"},
                      *const other[] = {"a", "b", "d", "c"};
    double prediction[3];
    sample_draw(&s, 2, false, false);
    d = sample_data(&s, HFSAD_BORROW);
    ok(hfsad_data_feature_names(d, names, &err), &err);
    hfsad_result *r = trained("loss: {kind: squared}\nrun: {iterations: 30}\n", d);
    ok(hfsad_data_create(&rows, 3, SAMPLE_F, HFSAD_COPY, &err), &err);
    ok(hfsad_data_dense(rows, s.x[0], SAMPLE_F, 1, &err), &err);
    ok(hfsad_data_paths(rows, paths, &err), &err);
    ok(hfsad_result_predict(r, rows, HFSAD_WITH_AUTO, prediction, &err), &err);
    near(prediction[0], dot(r, "e1", s.x[0]));
    near(prediction[1], dot(r, "cloud", s.x[1]));
    near(prediction[2], dot(r, "cloud", s.x[2]));
    says(hfsad_result_predict(r, rows, HFSAD_WITH_CLIENT, prediction, &err), &err,
         "the client alone has no model in the result");
    says(hfsad_result_predict(r, rows, HFSAD_WITH_EDGE, prediction, &err), &err,
         "the edge e9 has no model in the result");
    says(hfsad_result_predict(r, rows, (hfsad_with)9, prediction, &err), &err, "with = 9");
    says(hfsad_result_evaluate(r, rows, HFSAD_WITH_AUTO, &e, &err), &err, "data has no y to compare with");
    assert_null(e);
    ok(hfsad_data_feature_names(rows, other, &err), &err);
    says(hfsad_result_predict(r, rows, HFSAD_WITH_AUTO, prediction, &err), &err, "feature 3 is \"d\", but \"c\"");
    hfsad_data_free(rows);
    ok(hfsad_data_create(&rows, 3, SAMPLE_F - 1, HFSAD_COPY, &err), &err);
    ok(hfsad_data_dense(rows, s.x[0], SAMPLE_F, 1, &err), &err);
    ok(hfsad_data_paths(rows, paths, &err), &err);
    says(hfsad_result_predict(r, rows, HFSAD_WITH_AUTO, prediction, &err), &err,
         "data has 3 features, but the model in the result has 4");
    hfsad_data_free(rows);
    hfsad_result_free(r);
    hfsad_data_free(d);
}

static double figure_of(const hfsad_evaluation *e, const char *name, hfsad_row_figures *f)
{
    for (size_t i = 0; i < hfsad_evaluation_nodes(e); i++)
        if (!strcmp(hfsad_evaluation_node_name(e, i), name)) {
            f->size = sizeof *f;
            hfsad_evaluation_figures(e, i, f);
            return f->loss;
        }
    fail_msg("no node %s", name);
    return NAN;
}

static void test_evaluate(void **state)
{
    (void)state;
    static sample s;
    static double weight[SAMPLE_ROWS];
    hfsad_error err;
    hfsad_evaluation *e;
    hfsad_row_figures f;
    rng random = {rng_key(3, rng_stream("weights")), 0};
    sample_draw(&s, 3, true, false);
    for (size_t i = 0; i < SAMPLE_ROWS; i++)
        weight[i] = uniform(&random, 0.5, 2);
    hfsad_data *d = sample_data(&s, HFSAD_BORROW);
    ok(hfsad_data_weights(d, weight, 1, &err), &err);
    hfsad_result *r = trained("loss: {kind: quantile, tau: 0.25}\nrun: {iterations: 50}\n", d);
    ok(hfsad_result_evaluate(r, d, HFSAD_WITH_EDGE, &e, &err), &err);
    assert_int_equal(hfsad_evaluation_nodes(e), 4 + SAMPLE_CLIENTS);
    double losses[SAMPLE_CLIENTS], all = 0, all_weight = 0, covered = 0;
    for (size_t c = 0; c < SAMPLE_CLIENTS; c++) {
        double sum = 0, w = 0;
        char edge[8];
        snprintf(edge, sizeof edge, "e%zu", c % 3);
        for (size_t i = 0; i < SAMPLE_ROWS; i++) {
            if (s.code[i] != (int64_t)c)
                continue;
            const double score = dot(r, edge, s.x[i]), residual = s.y[i] - score;
            sum += weight[i] * (residual > 0 ? 0.25 * residual : -0.75 * residual);
            w += weight[i];
            covered += s.y[i] <= score ? weight[i] : 0;
        }
        near(figure_of(e, s.path[c], &f), sum / w);
        assert_int_equal(f.rows, SAMPLE_EACH);
        near(f.weight, w);
        near(f.total, sum);
        assert_true(isnan(f.accuracy));
        losses[c] = f.loss;
        all += sum;
        all_weight += w;
    }
    near(figure_of(e, "cloud", &f), all / all_weight);
    near(f.coverage, covered / all_weight);
    assert_int_equal(f.rows, SAMPLE_ROWS);
    size_t below_median = 0, above = 0;
    for (size_t c = 0; c < SAMPLE_CLIENTS; c++) {
        below_median += losses[c] < hfsad_evaluation_median(e);
        above += losses[c] > hfsad_evaluation_median(e);
    }
    assert_int_equal(below_median, SAMPLE_CLIENTS / 2);
    assert_int_equal(above, SAMPLE_CLIENTS / 2);
    /* a struct of an older caller */
    f = (hfsad_row_figures){.size = offsetof(hfsad_row_figures, loss), .loss = -7};
    hfsad_evaluation_figures(e, 0, &f);
    assert_true(f.loss == -7 && f.rows == SAMPLE_ROWS);
    hfsad_evaluation_free(e);
    hfsad_evaluation_free(NULL);
    hfsad_result_free(r);
    hfsad_data_free(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_predict),
        cmocka_unit_test(test_strangers),
        cmocka_unit_test(test_evaluate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
