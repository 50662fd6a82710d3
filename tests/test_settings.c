/* Settings from text and by type, read back and listed; and the settings that a run resolved. */
#include "tools.h"

#include "run/handle.h"
#include "spec/table.h"

#include <locale.h>

static hfsad_spec *parsed(const char *text)
{
    hfsad_error err;
    hfsad_spec *spec;
    ok(hfsad_spec_parse(&spec, text, strlen(text), &err), &err);
    return spec;
}

static const char *get(const hfsad_spec *spec, const char *key)
{
    static char text[4][2000];
    static int turn;
    hfsad_error err;
    size_t length;
    turn = (turn + 1) % 4;
    ok(hfsad_spec_get(spec, key, text[turn], sizeof text[turn], &length, &err), &err);
    assert_int_equal(length, strlen(text[turn]));
    return text[turn];
}

static void says(hfsad_status status, const hfsad_error *err, const char *text)
{
    assert_int_equal(status, HFSAD_ERROR_INPUT);
    if (!strstr(err->message, text) || strchr(err->message, '\n') || strstr(err->message, "--"))
        fail_msg("'%s' instead of '%s'", err->message, text);
}

static void test_parse(void **state)
{
    (void)state;
    hfsad_error err;
    hfsad_spec *spec = parsed("loss: {kind: quantile, tau: 0.3}\nrun: {iterations: 40}\n");
    assert_string_equal(get(spec, "loss.kind"), "quantile");
    assert_string_equal(get(spec, "loss.tau"), "0.3");
    assert_string_equal(get(spec, "run.iterations"), "40");
    assert_string_equal(get(spec, "run.start"), "auto");
    assert_string_equal(get(spec, "loss.box"), "none");
    assert_string_equal(get(spec, "data"), "required");
    assert_string_equal(get(spec, "overrides"), "[]");
    hfsad_spec_free(spec);
    const char *wrong = "loss: {kind: quantile, tau: 3}\n";
    says(hfsad_spec_parse(&spec, wrong, strlen(wrong), &err), &err, "spec:1: loss.tau = '3' is out of range");
    assert_null(spec);
    const size_t size = ((size_t)1 << 20) + 1;
    char *large = malloc(size);
    memset(large, ' ', size);
    says(hfsad_spec_parse(&spec, large, size, &err), &err, "at most 1048576");
    free(large);
}

/* Every setting of every type, set by type to something else than its default, reads back, as a value and as text; and
 * the text set again gives the same. */
static void test_round_trip(void **state)
{
    (void)state;
    hfsad_error err;
    hfsad_setting s = {.size = sizeof s};
    size_t n = 0, types[5] = {0};
    for (; hfsad_settings_at(n, &s); n++) {
        hfsad_spec *spec = parsed("loss: {kind: squared}\n"), *twin = parsed("loss: {kind: squared}\n");
        types[s.type]++;
        assert_true(s.fallback && s.help && *s.range && *s.key);
        assert_true((s.choices != NULL) == (s.type == HFSAD_SETTING_CHOICE));
        if (s.type == HFSAD_SETTING_REAL) {
            const double values[] = {0.1, 1.1, 1.7, 3, 1e-9};
            size_t taken = 0;
            for (size_t i = 0; i < 5; i++) {
                double back;
                if (hfsad_spec_set_real(spec, s.key, values[i], &err))
                    continue;
                taken++;
                ok(hfsad_spec_get_real(spec, s.key, &back, &err), &err);
                assert_true(back == values[i]);
            }
            assert_true(taken > 0);
            says(hfsad_spec_set_real(spec, s.key, NAN, &err), &err, "is not a finite number");
            says(hfsad_spec_set_real(spec, s.key, INFINITY, &err), &err, "is not a finite number");
            says(hfsad_spec_set_real(spec, s.key, -1, &err), &err, "is out of range");
            says(hfsad_spec_set_text(spec, s.key, "1", &err), &err, "takes a number, not text");
        } else if (s.type == HFSAD_SETTING_WHOLE) {
            int64_t back;
            ok(hfsad_spec_set_whole(spec, s.key, 7, &err), &err);
            ok(hfsad_spec_set_real(spec, s.key, 9, &err), &err);
            ok(hfsad_spec_get_whole(spec, s.key, &back, &err), &err);
            assert_int_equal(back, 9);
            says(hfsad_spec_set_whole(spec, s.key, -1, &err), &err, "is out of range");
            says(hfsad_spec_set_real(spec, s.key, 1.5, &err), &err, "takes a whole number");
            says(hfsad_spec_set_flag(spec, s.key, true, &err), &err, "takes a whole number");
        } else if (s.type == HFSAD_SETTING_FLAG) {
            bool back;
            const bool other = strcmp(s.fallback, "true") != 0;
            ok(hfsad_spec_set_flag(spec, s.key, other, &err), &err);
            ok(hfsad_spec_get_flag(spec, s.key, &back, &err), &err);
            assert_int_equal(back, other);
            says(hfsad_spec_set_whole(spec, s.key, 1, &err), &err, "takes true or false");
            says(hfsad_spec_set_real(spec, s.key, 1, &err), &err, "takes true or false");
        } else if (s.type == HFSAD_SETTING_TEXT) {
            ok(hfsad_spec_set_text(spec, s.key, "none", &err), &err); /* a file of that name */
            assert_string_equal(get(spec, s.key), "none");
            ok(hfsad_spec_set_text(spec, s.key, "a: [b", &err), &err);
            assert_string_equal(get(spec, s.key), "a: [b");
            ok(hfsad_spec_set_text(spec, s.key, "name", &err), &err);
        } else {
            for (const char *const *c = s.choices; *c; c++) {
                ok(hfsad_spec_set_text(spec, s.key, *c, &err), &err);
                assert_string_equal(get(spec, s.key), *c);
            }
            says(hfsad_spec_set_text(spec, s.key, "nonsense", &err), &err, "is not known");
            says(hfsad_spec_set_whole(spec, s.key, 1, &err), &err, "takes a word");
        }
        ok(hfsad_spec_set(twin, s.key, get(spec, s.key), &err), &err);
        assert_string_equal(get(twin, s.key), get(spec, s.key));
        hfsad_spec_free(spec);
        hfsad_spec_free(twin);
    }
    assert_int_equal(n, hfsad_settings_count());
    for (size_t i = 0; i < 5; i++)
        assert_true(types[i] > 0);
    assert_false(hfsad_settings_at(n, &s));
}

/* A caller compiled against a smaller struct gets no more than that. */
static void test_small_struct(void **state)
{
    (void)state;
    hfsad_setting s = {.size = offsetof(hfsad_setting, fallback), .fallback = "untouched"};
    assert_true(hfsad_settings_at(0, &s));
    assert_string_equal(s.key, "data");
    assert_string_equal(s.fallback, "untouched");
    assert_int_equal(s.size, offsetof(hfsad_setting, fallback));
}

static void test_overrides(void **state)
{
    (void)state;
    hfsad_error err;
    const char *list =
        "[{node: 'it''s', local_steps: 3, participation: 0.25, loss: {kind: huber, box: none, delta: 2}, "
        "link: {weight: 0.1}, schedule: {shape: geometric, growth: 1.5}}, {node: 'e2/*', loss: {tau: "
        "0.125}}, {node: 'plain', local_steps: 2}]";
    hfsad_spec *spec = parsed("loss: {kind: squared}\n"), *twin = parsed("loss: {kind: squared}\n");
    ok(hfsad_spec_set(spec, "overrides", list, &err), &err);
    assert_string_equal(get(spec, "overrides"), list);
    ok(hfsad_spec_set(twin, "overrides", get(spec, "overrides"), &err), &err);
    assert_string_equal(get(twin, "overrides"), list);
    char cut[9];
    size_t length;
    ok(hfsad_spec_get(spec, "overrides", cut, sizeof cut, &length, &err), &err);
    assert_string_equal(cut, "[{node: ");
    assert_int_equal(length, strlen(list));
    ok(hfsad_spec_get(spec, "overrides", NULL, 0, &length, &err), &err);
    hfsad_spec_free(spec);
    hfsad_spec_free(twin);
}

static void test_refused(void **state)
{
    (void)state;
    hfsad_error err;
    double real;
    bool flag;
    int64_t whole;
    char text[10];
    hfsad_spec *spec = parsed("loss: {kind: squared}\n");
    says(hfsad_spec_set_real(spec, "loss.tua", 0.3, &err), &err, "loss.tua=0.3: unknown key 'loss.tua'");
    says(hfsad_spec_set_whole(spec, "run.iteration", 3, &err), &err, "did you mean 'run.iterations'?");
    says(hfsad_spec_set_text(spec, "run", "squared", &err), &err, "'run' takes keys, not a value");
    says(hfsad_spec_get(spec, "nothing", text, sizeof text, NULL, &err), &err, "unknown key 'nothing'");
    says(hfsad_spec_get_real(spec, "run.seed", &real, &err), &err, "run.seed is a whole number, not a number");
    says(hfsad_spec_get_flag(spec, "loss.tau", &flag, &err), &err, "loss.tau is a number, not true or false");
    says(hfsad_spec_get_whole(spec, "loss.kind", &whole, &err), &err, "loss.kind is a word");
    hfsad_spec_free(spec);
}

/* Numbers have a point in a locale with a decimal comma, too. */
static void test_locale(void **state)
{
    (void)state;
    hfsad_error err;
    const char *before = setlocale(LC_ALL, NULL);
    if (!setlocale(LC_ALL, "de_DE.UTF-8"))
        print_message("without de_DE.UTF-8 this is the C locale once more\n");
    hfsad_spec *spec = parsed("loss: {kind: squared}\n");
    ok(hfsad_spec_set_real(spec, "loss.tau", 0.1 + 0.2, &err), &err);
    assert_string_equal(get(spec, "loss.tau"), "0.30000000000000004");
    hfsad_spec_free(spec);
    setlocale(LC_ALL, before);
}

enum { F = 4, N = 60 };

static hfsad_data *some_data(void)
{
    static double x[N][F], y[N];
    static const char *const paths[] = {"e1/a", "e1/b", "e2/c", "e2/d", "e2/e"};
    int64_t codes[N];
    hfsad_error err;
    hfsad_data *d;
    rng r = {rng_key(1, rng_stream("settings")), 0};
    for (size_t i = 0; i < N; i++) {
        codes[i] = (int64_t)i % 5;
        y[i] = rng_next_normal(&r);
        for (size_t m = 0; m < F; m++)
            y[i] += x[i][m] = rng_next_normal(&r);
    }
    ok(hfsad_data_create(&d, N, F, HFSAD_BORROW, &err), &err);
    ok(hfsad_data_dense(d, x[0], F, 1, &err), &err);
    ok(hfsad_data_y(d, y, 1, &err), &err);
    ok(hfsad_data_codes(d, codes, paths, 5, &err), &err);
    return d;
}

/* The cloud's model after 30 iterations, and the settings in force as a spec of their own. */
static void train(const hfsad_spec *spec, double *w, hfsad_spec **resolved)
{
    hfsad_error err;
    hfsad_run *run;
    hfsad_data *d = some_data();
    hfsad_setting s = {.size = sizeof s};
    ok(hfsad_run_create_on(&run, spec, d, 1, &err), &err);
    ok(hfsad_spec_create(resolved, &err), &err);
    for (size_t i = 0; hfsad_settings_at(i, &s); i++) {
        const char *text = get(hfsad_run_settings(run), s.key);
        if (strcmp(text, "required") != 0)
            ok(hfsad_spec_set(*resolved, s.key, text, &err), &err);
    }
    for (int i = 0; i < 30; i++)
        hfsad_run_iterate(run);
    hfsad_run_node_model(run, 0, w);
    hfsad_run_free(run);
    hfsad_data_free(d);
}

/* What is in force: no auto is left where it means something, and the same run comes of it. */
static void test_resolved(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "loss: {kind: quantile, tau: 0.3}\n",
        "loss: {kind: squared}\npreset: paper\n",
        ("loss: {kind: huber}\nlink: {client: {penalty: mcp}}\nprior: {cloud: {penalty: scad}}\n"
         "run: {start: zero}\n"),
        "loss: {kind: absolute}\nalgorithm: fedprox\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        double w[F], again[F], number;
        hfsad_error err;
        hfsad_spec *spec = parsed(texts[i]), *resolved, *twice;
        train(spec, w, &resolved);
        train(resolved, again, &twice);
        assert_memory_equal(w, again, sizeof w);
        const bool baseline_run = i == 3;
        ok(hfsad_spec_get_real(resolved, baseline_run ? "baseline.step" : "schedule.client.c", &number, &err), &err);
        assert_true(number > 0);
        ok(hfsad_spec_get_real(resolved, baseline_run ? "baseline.rho" : "link.client.weight", &number, &err), &err);
        assert_true(number > 0);
        assert_string_not_equal(get(resolved, "run.start"), "auto");
        assert_string_not_equal(get(resolved, "prior.cloud.penalty"), "auto");
        hfsad_spec_free(spec);
        hfsad_spec_free(resolved);
        hfsad_spec_free(twice);
    }
}

/* A tier whose nodes differ has no number of its own. */
static void test_differing(void **state)
{
    (void)state;
    hfsad_error err;
    hfsad_run *run;
    double c;
    hfsad_data *d = some_data();
    hfsad_spec *spec = parsed("loss: {kind: squared}\nlink: {client: {weight: 3}}\nschedule: {client: {c: 5}}\n"
                              "overrides: [{node: e1/a, schedule: {c: 4}}]\n");
    ok(hfsad_run_create_on(&run, spec, d, 1, &err), &err);
    ok(hfsad_spec_get_real(hfsad_run_settings(run), "schedule.client.c", &c, &err), &err);
    assert_true(isnan(c));
    assert_string_equal(get(hfsad_run_settings(run), "schedule.client.c"), "auto");
    assert_string_equal(get(hfsad_run_settings(run), "link.client.weight"), "3");
    assert_string_equal(get(hfsad_run_settings(run), "overrides"), "[{node: 'e1/a', schedule: {c: 4}}]");
    hfsad_run_free(run);
    hfsad_spec_free(spec);
    hfsad_data_free(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse),     cmocka_unit_test(test_round_trip), cmocka_unit_test(test_small_struct),
        cmocka_unit_test(test_overrides), cmocka_unit_test(test_refused),    cmocka_unit_test(test_locale),
        cmocka_unit_test(test_resolved),  cmocka_unit_test(test_differing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
