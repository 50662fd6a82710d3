/* hfsad_run_train: the rows that a loop by hand measures, the callback, cancelling and going on, the polish; and the
 * result in arrays, from the run and from its folder. */
#include "run/handle.h"
#include "sample.h"

#include <inttypes.h>

#define SPEC "loss: {kind: quantile, tau: 0.3}\nrun: {iterations: 37, trace_every: 5, edge_rounds: 2, polish: false}\n"

typedef struct {
    size_t rows, exchanges;
    uint64_t iteration[64];
    double objective[64];
    size_t stop_at; /* row at which to stop; SIZE_MAX: never */
    bool stop_polish;
} witness;

static bool watch(void *context, const hfsad_progress *p)
{
    witness *w = context;
    if (p->polish) {
        w->exchanges++;
        return !w->stop_polish;
    }
    w->iteration[w->rows] = p->figures->iteration;
    w->objective[w->rows] = p->figures->objective;
    return w->rows++ != w->stop_at;
}

static void test_rows(void **state)
{
    (void)state;
    static sample s;
    hfsad_error err;
    hfsad_figures f;
    hfsad_result *result;
    witness w = {.stop_at = SIZE_MAX};
    sample_draw(&s, 1, false, false);
    hfsad_data *d = sample_data(&s, HFSAD_COPY);
    hfsad_run *run = run_from(SPEC, d, 1), *twin = run_from(SPEC, d, 1);
    ok(hfsad_run_train(run, watch, &w, &result, &err), &err);
    assert_int_equal(w.rows, 9); /* 0, 5, ..., 35, 37 */
    assert_int_equal(hfsad_result_trace_rows(result), 9);
    const double *iteration = hfsad_result_trace(result, "iteration"),
                 *dual = hfsad_result_trace(result, "dual_residual"),
                 *objective = hfsad_result_trace(result, "objective");
    for (uint64_t i = 0, row = 0; i <= 37; i++) {
        if (i)
            hfsad_run_iterate(twin);
        if (i % 5 && i != 37)
            continue;
        ok(run_measure(twin, &f, &err), &err);
        assert_int_equal(w.iteration[row], i);
        assert_true(w.objective[row] == f.objective && objective[row] == f.objective && iteration[row] == (double)i);
        assert_true(dual[row] == f.dual_residual || (isnan(dual[row]) && isnan(f.dual_residual)));
        row++;
    }
    assert_null(hfsad_result_trace(result, "nonsense"));
    assert_string_equal(hfsad_result_trace_name(result, 0), "iteration");
    assert_true(hfsad_result_trace_columns(result) > 10);
    assert_int_equal(hfsad_result_stop(result), HFSAD_STOP_ITERATIONS);
    assert_int_equal(hfsad_result_verdict(result)->kind, HFSAD_VERDICT_UNKNOWN);
    /* all models in one array */
    double model[SAMPLE_F];
    assert_int_equal(hfsad_result_nodes(result), 1 + 3 + SAMPLE_CLIENTS);
    assert_int_equal(hfsad_result_inner_nodes(result), 4);
    assert_int_equal(hfsad_result_width(result), SAMPLE_F);
    assert_false(hfsad_result_intercept(result));
    for (size_t node = 0; node < hfsad_result_nodes(result); node++) {
        char name[64];
        hfsad_run_node_name(twin, node, name, sizeof name);
        assert_string_equal(hfsad_result_node_name(result, node), name);
        assert_int_equal(hfsad_result_find(result, name), node);
        hfsad_run_node_model(twin, node, model);
        assert_memory_equal(model, hfsad_result_models(result) + node * SAMPLE_F, sizeof model);
    }
    assert_true(hfsad_result_find(result, "nobody") == SIZE_MAX);
    hfsad_result_free(result);
    hfsad_run_free(run);
    hfsad_run_free(twin);
    hfsad_data_free(d);
}

/* Stopped at a row by its callback and trained on: models and trace of one that was left alone. */
static void test_cancel_by_callback(void **state)
{
    (void)state;
    static sample s;
    hfsad_error err;
    sample_draw(&s, 2, false, false);
    hfsad_data *d = sample_data(&s, HFSAD_COPY);
    hfsad_result *whole, *part, *rest;
    hfsad_run *run = run_from(SPEC, d, 1);
    ok(hfsad_run_train(run, NULL, NULL, &whole, &err), &err);
    hfsad_run_free(run);
    for (size_t at = 0; at < 9; at++) {
        witness w = {.stop_at = at}, on = {.stop_at = SIZE_MAX};
        run = run_from(SPEC, d, 2);
        ok(hfsad_run_train(run, watch, &w, &part, &err), &err);
        assert_int_equal(w.rows, at + 1);
        assert_int_equal(hfsad_result_trace_rows(part), at + 1);
        assert_int_equal(hfsad_result_stop(part), at == 8 ? HFSAD_STOP_ITERATIONS : HFSAD_STOP_INTERRUPTED);
        ok(hfsad_run_train(run, watch, &on, &rest, &err), &err);
        assert_int_equal(on.rows, at == 8 ? 1 : 8 - at); /* the last is off the grid and comes again */
        const size_t rows = hfsad_result_trace_rows(whole);
        assert_int_equal(hfsad_result_trace_rows(rest), rows);
        assert_memory_equal(hfsad_result_trace(rest, "objective"), hfsad_result_trace(whole, "objective"),
                            rows * sizeof(double));
        assert_memory_equal(hfsad_result_models(rest), hfsad_result_models(whole),
                            hfsad_result_nodes(whole) * SAMPLE_F * sizeof(double));
        hfsad_result_free(part);
        hfsad_result_free(rest);
        hfsad_run_free(run);
    }
    hfsad_result_free(whole);
    hfsad_data_free(d);
}

/* Before the training begins it counts for that training, and for no other. */
static void test_cancel_before(void **state)
{
    (void)state;
    static sample s;
    hfsad_error err;
    hfsad_result *result;
    sample_draw(&s, 3, false, false);
    hfsad_data *d = sample_data(&s, HFSAD_COPY);
    hfsad_run *run = run_from(SPEC, d, 1);
    hfsad_run_cancel(run);
    ok(hfsad_run_train(run, NULL, NULL, &result, &err), &err);
    assert_int_equal(hfsad_result_trace_rows(result), 1);
    hfsad_result_free(result);
    ok(hfsad_run_train(run, NULL, NULL, &result, &err), &err);
    assert_int_equal(hfsad_result_trace_rows(result), 9);
    hfsad_result_free(result);
    hfsad_run_free(run);
    hfsad_data_free(d);
}

static void test_stop_rule_and_polish(void **state)
{
    (void)state;
    static sample s;
    static const char text[] = "loss: {kind: squared}\nrun: {iterations: 5000, trace_every: 10, polish: true, stop: "
                               "{relative: 1e-3, absolute: 1e-6}}\n";
    hfsad_error err;
    hfsad_result *result;
    witness w = {.stop_at = SIZE_MAX}, given_up = {.stop_at = SIZE_MAX, .stop_polish = true};
    double least[SAMPLE_F], other[SAMPLE_F];
    sample_draw(&s, 4, false, false);
    hfsad_data *d = sample_data(&s, HFSAD_COPY);
    hfsad_run *run = run_from(text, d, 1);
    ok(hfsad_run_train(run, watch, &w, &result, &err), &err);
    const size_t rows = hfsad_result_trace_rows(result);
    assert_true(hfsad_result_trace(result, "iteration")[rows - 1] < 5000);
    assert_true(w.exchanges > 0);
    assert_int_equal(hfsad_result_stop(result), HFSAD_STOP_TOLERANCE);
    const hfsad_verdict *verdict = hfsad_result_verdict(result);
    assert_int_equal(verdict->kind, HFSAD_VERDICT_CONVERGED);
    assert_true(verdict->gap >= 0 && verdict->gap < 1e-3);
    assert_non_null(strstr(verdict->text, "converged"));
    /* one model for all nodes, at which the gradient of the sum of squares is zero */
    memcpy(least, hfsad_result_models(result), sizeof least);
    for (size_t node = 1; node < hfsad_result_nodes(result); node++)
        assert_memory_equal(hfsad_result_models(result) + node * SAMPLE_F, least, sizeof least);
    for (size_t m = 0; m < SAMPLE_F; m++) {
        double slope = 0;
        for (size_t i = 0; i < SAMPLE_ROWS; i++) {
            double residual = -s.y[i];
            for (size_t k = 0; k < SAMPLE_F; k++)
                residual += s.x[i][k] * least[k];
            slope += s.x[i][m] * residual;
        }
        assert_true(fabs(slope) < 1e-4);
    }
    hfsad_result_free(result);
    hfsad_run_free(run);
    run = run_from(text, d, 1);
    ok(hfsad_run_train(run, watch, &given_up, &result, &err), &err);
    assert_int_equal(given_up.exchanges, 1);
    assert_int_equal(hfsad_result_stop(result), HFSAD_STOP_INTERRUPTED);
    assert_int_equal(hfsad_result_verdict(result)->kind, HFSAD_VERDICT_UNKNOWN);
    memcpy(other, hfsad_result_models(result), sizeof other);
    assert_memory_not_equal(other, least, sizeof other);
    hfsad_result_free(result);
    hfsad_run_free(run);
    hfsad_data_free(d);
}

static void test_diverged(void **state)
{
    (void)state;
    static sample s;
    hfsad_error err;
    hfsad_result *result;
    sample_draw(&s, 5, false, false);
    hfsad_data *d = sample_data(&s, HFSAD_COPY);
    hfsad_run *run = run_from("loss: {kind: squared}\nalgorithm: fedavg\nbaseline: {step: 1e9, rule: constant}\n"
                              "run: {iterations: 500}\n",
                              d, 1);
    assert_int_equal(hfsad_run_train(run, NULL, NULL, &result, &err), HFSAD_ERROR_DIVERGED);
    assert_non_null(result);
    assert_int_equal(hfsad_result_stop(result), HFSAD_STOP_DIVERGED);
    const size_t rows = hfsad_result_trace_rows(result);
    assert_true(!isfinite(hfsad_result_trace(result, "objective")[rows - 1]));
    hfsad_result_free(result);
    hfsad_run_free(run);
    hfsad_data_free(d);
}

static void same_text(const hfsad_result *a, const hfsad_result *b, const char *key)
{
    char left[1000], right[1000];
    hfsad_error err;
    ok(hfsad_spec_get(hfsad_result_settings(a), key, left, sizeof left, NULL, &err), &err);
    ok(hfsad_spec_get(hfsad_result_settings(b), key, right, sizeof right, NULL, &err), &err);
    if (strcmp(left, right) != 0)
        fail_msg("%s: %s and %s", key, left, right);
}

/* A folder gives back what the run had: models, trace, groups and settings. */
static void test_folder(void **state)
{
    (void)state;
    static sample s;
    static const char *const texts[] = {
        SPEC,
        ("loss: {kind: huber, delta: 0.5}\nlink: {client: {penalty: mcp}}\nfeatures: {standardize: false}\n"
         "run: {iterations: 200}\noverrides: [{node: e0/c0, loss: {kind: absolute, box: none}, local_steps: 2}]\n"),
        "loss: {kind: squared}\nalgorithm: fedprox\nrun: {iterations: 9}\noutput: {clients: false}\n",
        "loss: {kind: absolute}\nfeatures: {intercept: edge, standardize: true}\nrun: {iterations: 300}\n",
        "loss: {kind: squared}\nrun: {iterations: 20}\n",
    };
    sample_draw(&s, 6, true, false);
    hfsad_data *d = sample_data(&s, HFSAD_BORROW);
    const char *const names[] = {"height", "width", "depth", "weight"};
    hfsad_error err;
    ok(hfsad_data_feature_names(d, names, &err), &err);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        hfsad_result *made, *read;
        hfsad_setting setting = {.size = sizeof setting};
        hfsad_run *run = run_from(texts[i], d, 1);
        ok(hfsad_run_train(run, NULL, NULL, &made, &err), &err);
        ok(hfsad_run_write(run, in_folder("deep/out"), &err), &err);
        ok(hfsad_result_load(&read, in_folder("deep/out"), &err), &err);
        const size_t nodes = hfsad_result_nodes(made), width = hfsad_result_width(made);
        assert_int_equal(nodes, i == 2 ? 4 : 4 + SAMPLE_CLIENTS);
        assert_int_equal(hfsad_result_nodes(read), nodes);
        assert_int_equal(hfsad_result_width(read), width);
        assert_int_equal(hfsad_result_inner_nodes(read), 4);
        assert_int_equal(hfsad_result_intercept(read), i == 3);
        assert_memory_equal(hfsad_result_models(read), hfsad_result_models(made), nodes * width * sizeof(double));
        assert_int_equal(hfsad_result_stop(read), hfsad_result_stop(made));
        assert_int_equal(hfsad_result_verdict(read)->kind, hfsad_result_verdict(made)->kind);
        assert_string_equal(hfsad_result_verdict(read)->text, hfsad_result_verdict(made)->text);
        assert_int_equal(hfsad_result_verdict(made)->kind, i >= 3   ? HFSAD_VERDICT_CONVERGED
                                                           : i == 1 ? HFSAD_VERDICT_NOT_CONVERGED
                                                                    : HFSAD_VERDICT_UNKNOWN);
        assert_int_equal(hfsad_result_groups(read), hfsad_result_groups(made));
        assert_int_equal(hfsad_result_groups(made), i == 1 ? 2 : 0);
        for (size_t node = 0; node < nodes; node++) {
            assert_string_equal(hfsad_result_node_name(read, node), hfsad_result_node_name(made, node));
            assert_int_equal(hfsad_result_group(read, node), hfsad_result_group(made, node));
        }
        if (i == 1) {
            assert_int_equal(hfsad_result_group(made, hfsad_result_find(made, "e2/c8")), 1);
            assert_int_equal(hfsad_result_group(made, hfsad_result_find(made, "e0/c0")), 0);
        }
        for (size_t c = 0; c < hfsad_result_trace_columns(made); c++) {
            const char *name = hfsad_result_trace_name(made, c);
            assert_string_equal(hfsad_result_trace_name(read, c), name);
            assert_memory_equal(hfsad_result_trace(read, name), hfsad_result_trace(made, name),
                                hfsad_result_trace_rows(made) * sizeof(double));
        }
        for (size_t n = 0; hfsad_settings_at(n, &setting); n++)
            if (!strncmp(setting.key, "link.client", 11) || !strncmp(setting.key, "run.", 4) ||
                !strncmp(setting.key, "loss.kind", 9) || !strncmp(setting.key, "schedule.client", 15))
                same_text(read, made, setting.key);
        same_text(read, made, "overrides");
        hfsad_result_free(made);
        hfsad_result_free(read);
        hfsad_run_free(run);
    }
    hfsad_data_free(d);
    hfsad_result *none;
    says(hfsad_result_load(&none, in_folder("nowhere"), &err), &err, "cannot be read");
    assert_null(none);
}

/* From a checkpoint in another process: the trace goes on, too. */
static void test_resume(void **state)
{
    (void)state;
    static sample s;
    hfsad_error err;
    hfsad_result *whole, *rest;
    witness w = {.stop_at = 4};
    sample_draw(&s, 7, false, false);
    hfsad_data *d = sample_data(&s, HFSAD_COPY);
    hfsad_run *run = run_from(SPEC, d, 1);
    ok(hfsad_run_train(run, NULL, NULL, &whole, &err), &err);
    hfsad_run_free(run);
    run = run_from(SPEC, d, 1);
    ok(hfsad_run_train(run, watch, &w, NULL, &err), &err);
    ok(hfsad_run_save(run, in_folder("saved.bin"), &err), &err);
    hfsad_run_free(run);
    run = run_from(SPEC, d, 2);
    ok(hfsad_run_resume(run, in_folder("saved.bin"), &err), &err);
    ok(hfsad_run_train(run, NULL, NULL, &rest, &err), &err);
    const size_t rows = hfsad_result_trace_rows(whole);
    assert_int_equal(hfsad_result_trace_rows(rest), rows);
    assert_memory_equal(hfsad_result_trace(rest, "objective"), hfsad_result_trace(whole, "objective"),
                        rows * sizeof(double));
    assert_memory_equal(hfsad_result_models(rest), hfsad_result_models(whole),
                        hfsad_result_nodes(whole) * SAMPLE_F * sizeof(double));
    hfsad_run_free(run);
    /* other data: refused, and the run can be trained as it was */
    s.y[3] += 1;
    hfsad_data *other = sample_data(&s, HFSAD_COPY);
    run = run_from(SPEC, other, 1);
    says(hfsad_run_resume(run, in_folder("saved.bin"), &err), &err, "was made with another data set than");
    hfsad_result_free(rest);
    ok(hfsad_run_train(run, NULL, NULL, &rest, &err), &err);
    assert_int_equal(hfsad_result_trace_rows(rest), rows);
    hfsad_run_free(run);
    hfsad_result_free(whole);
    hfsad_result_free(rest);
    hfsad_data_free(d);
    hfsad_data_free(other);
}

static void test_warm_start(void **state)
{
    (void)state;
    static sample s;
    hfsad_error err;
    hfsad_result *first, *second;
    double w[SAMPLE_F];
    sample_draw(&s, 8, false, false);
    hfsad_data *d = sample_data(&s, HFSAD_COPY);
    hfsad_run *run = run_from(SPEC, d, 1);
    ok(hfsad_run_train(run, NULL, NULL, &first, &err), &err);
    says(hfsad_run_warm_start(run, first, &err), &err, "the run has iterated already");
    hfsad_run_free(run);
    run = run_from(SPEC, d, 1);
    ok(hfsad_run_warm_start(run, first, &err), &err);
    for (size_t node = 0; node < hfsad_run_nodes(run); node++) {
        hfsad_run_node_model(run, node, w);
        assert_memory_equal(w, hfsad_result_models(first) + node * SAMPLE_F, sizeof w);
    }
    ok(hfsad_run_train(run, NULL, NULL, &second, &err), &err);
    assert_true(hfsad_result_trace(second, "objective")[0] < hfsad_result_trace(first, "objective")[0]);
    char start[100];
    ok(hfsad_spec_get(hfsad_run_settings(run), "run.start", start, sizeof start, NULL, &err), &err);
    assert_string_equal(start, "the result");
    hfsad_run_free(run);
    run = run_from("loss: {kind: squared}\nalgorithm: fedavg\n", d, 1);
    says(hfsad_run_warm_start(run, first, &err), &err, "a baseline starts from one vector; give run.start");
    hfsad_run_free(run);
    run = run_from("loss: {kind: squared}\nfeatures: {intercept: global}\n", d, 1);
    says(hfsad_run_warm_start(run, first, &err), &err,
         "a model of 4 features, but the data have 4 and features.intercept");
    hfsad_run_free(run);
    hfsad_result_free(first);
    hfsad_result_free(second);
    hfsad_data_free(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),          cmocka_unit_test(test_cancel_by_callback),
        cmocka_unit_test(test_cancel_before), cmocka_unit_test(test_stop_rule_and_polish),
        cmocka_unit_test(test_diverged),      cmocka_unit_test(test_folder),
        cmocka_unit_test(test_resume),        cmocka_unit_test(test_warm_start),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
