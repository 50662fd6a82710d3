/* The paper's experiment: every recorded error against the parts it is made of, the statistics, the verdicts. */
#include "lab/claims.h"
#include "spec/table.h"
#include "tools.h"

enum { TRIALS = 3, ITERATIONS = 5, METHODS = 6, TUNED = 5 };

static const paper_method METHOD[METHODS] = {
    {.edge_rounds = 3, .participation = 1},
    {.edge_rounds = 1, .participation = 0.5},
    {.skip = true},
    {.central = true, .rule = {STEP_POLYAK, 0.5, 1}},
    {.central = true, .rule = {STEP_GEOMETRIC, 0.2, 0.8}},
    [TUNED] = {.tuned = true, .edge_rounds = 2, .participation = 1},
};

static paper_settings small(void)
{
    return (paper_settings){
        .data = {.edges = 2, .clients = 8, .features = 6, .snr_db = 20, .keep_x = 0.8, .keep_w = 0.5, .seed = 31},
        .trials = TRIALS,
        .iterations = ITERATIONS,
        .start = "spectral",
        .threads = 1};
}

static paper_result *run(const paper_settings *s)
{
    hfsad_error err;
    paper_result *r;
    ok(paper_run(&r, s, METHOD, METHODS, NULL, &err), &err);
    assert_non_null(r);
    return r;
}

/* A trial made by hand, with the plan of a spec that says what `hfsad generate` writes. */
typedef struct {
    dataset *d;
    double truth[8], start[8];
} single;

static single make_single(uint64_t seed, const char *start)
{
    single t;
    hfsad_error err;
    phase_retrieval g = small().data;
    g.seed = seed;
    ok(phase_retrieval_generate(&g, &t.d, t.truth, &err), &err);
    ok(start_of(t.start, start, t.d, seed, &err), &err);
    return t;
}

static hfsad_spec *make_spec(uint64_t seed, const paper_method *m)
{
    hfsad_spec *spec;
    hfsad_error err;
    ok(spec_create(&spec, "test", &err), &err);
    if (m->tuned) { /* the default: no preset is named */
        ok(hfsad_spec_set(spec, "prior.edge", "{penalty: scad, lambda: 0.1, gamma: 2.4}", &err), &err);
        ok(hfsad_spec_set(spec, "prior.cloud", "{penalty: scad, lambda: 0.1, gamma: 2.4}", &err), &err);
    } else {
        spec->top.preset = PRESET_PAPER;
    }
    spec->loss.kind = HFSAD_LOSS_PHASE_RETRIEVAL;
    spec->loss.box = 5;
    spec->run.seed = (int64_t)seed;
    spec->run.edge_rounds = m->edge_rounds;
    spec->participation.client = m->participation;
    return spec;
}

static void hfsad_is_the_simulator(void **state)
{
    (void)state;
    const paper_settings s = small();
    paper_result *r = run(&s);
    hfsad_error err;
    for (size_t t = 0; t < TRIALS; t++)
        for (size_t method = 0; method < METHODS; method++) {
            if (METHOD[method].skip || METHOD[method].central)
                continue;
            single one = make_single(s.data.seed + t, METHOD[method].tuned ? "robust" : "spectral");
            hfsad_spec *spec = make_spec(s.data.seed + t, &METHOD[method]);
            plan *p;
            sim *driver;
            pool *threads;
            ok(plan_create(&p, spec, one.d, &err), &err);
            ok(pool_create(&threads, 1, &err), &err);
            ok(sim_create(&driver, one.d, p, one.start, one.truth, threads, &err), &err);
            for (size_t i = 0; i <= ITERATIONS; i++) {
                if (i)
                    sim_iterate(driver);
                hfsad_figures figures = {0};
                sim_measure(driver, &figures);
                assert_true(figures.relative_error == paper_errors(r, method, i)[t]);
            }
            sim_free(driver);
            pool_free(threads);
            plan_free(p);
            hfsad_spec_free(spec);
            dataset_free(one.d);
        }
    paper_result_free(r);
}

/* The baseline minimises what HFSAD's consensus does: SCAD with the number of clients as weight, box 5. */
static void baseline_is_the_method(void **state)
{
    (void)state;
    const paper_settings s = small();
    paper_result *r = run(&s);
    const hfsad_loss loss = {.kind = HFSAD_LOSS_PHASE_RETRIEVAL, .box = 5};
    const hfsad_penalty prior = {HFSAD_PENALTY_SCAD, 16, 0.1, 2.4, 0, 0};
    hfsad_error err;
    for (size_t k = 0; k < 2 * TRIALS; k++) {
        const size_t t = k / 2, method = 3 + k % 2;
        single one = make_single(s.data.seed + t, "spectral");
        central_problem *p;
        double g[8];
        ok(central_problem_create(&p, one.d, &loss, &prior, &err), &err);
        const double target = central_objective(p, one.truth, NULL);
        for (size_t i = 0; i <= ITERATIONS; i++) {
            if (i)
                subgradient_step(p, &METHOD[method].rule, target, i - 1, one.start, g);
            const double mine = relative_error(6, one.start, one.truth, true), its = paper_errors(r, method, i)[t];
            if (fabs(mine - its) > 1e-9 * mine)
                fail_msg("trial %zu, iteration %zu: %.17g instead of %.17g", t, i, its, mine);
        }
        central_problem_free(p);
        dataset_free(one.d);
    }
    paper_result_free(r);
}

static void trials_stand_alone(void **state)
{
    (void)state;
    paper_settings s = small();
    paper_result *all = run(&s);
    for (size_t t = 0; t < TRIALS; t++) {
        s.trials = 1;
        s.data.seed = small().data.seed + t;
        paper_result *one = run(&s);
        for (size_t method = 0; method < METHODS; method++)
            for (size_t i = 0; i <= ITERATIONS; i++) {
                assert_true(paper_errors(one, method, i)[0] == paper_errors(all, method, i)[t]);
                assert_true((paper_errors(all, method, i)[t] == 0) == METHOD[method].skip);
            }
        paper_result_free(one);
    }
    paper_result_free(all);
}

static void count_done(void *context, size_t trials)
{
    size_t *last = context;
    assert_int_equal(trials, *last + 1);
    *last = trials;
}

static bool stop_after_one(void *context)
{
    return *(size_t *)context >= 1;
}

static void hooks(void **state)
{
    (void)state;
    const paper_settings s = small();
    hfsad_error err;
    paper_result *r;
    size_t done = 0;
    paper_hooks h = {.context = &done, .done = count_done};
    ok(paper_run(&r, &s, METHOD, METHODS, &h, &err), &err);
    assert_non_null(r);
    assert_int_equal(done, TRIALS);
    paper_result_free(r);
    done = 0;
    h.stop = stop_after_one;
    ok(paper_run(&r, &s, METHOD, METHODS, &h, &err), &err);
    assert_null(r);
    assert_int_equal(done, 1);
}

static void failures(void **state)
{
    (void)state;
    paper_settings s = small();
    hfsad_error err;
    paper_result *r;
    s.start = "/no/such/file";
    assert_int_equal(paper_run(&r, &s, METHOD, METHODS, NULL, &err), HFSAD_ERROR_INPUT);
    assert_null(r);
    assert_non_null(strstr(err.message, "trial 1"));
    assert_non_null(strstr(err.message, "/no/such/file"));
    s = small();
    s.trials = SIZE_MAX / 16;
    assert_int_equal(paper_run(&r, &s, METHOD, METHODS, NULL, &err), HFSAD_ERROR_MEMORY);
}

/* Against numpy.quantile's numbers, and the defining properties on random values. */
static void spreads(void **state)
{
    (void)state;
    double room[101], values[101];
    const spread four = spread_of(4, (const double[]){4, 1, 3, 2}, room);
    assert_true(four.mean == 2.5 && four.median == 2.5 && four.lower == 1.75 && four.upper == 3.25);
    const spread one = spread_of(1, (const double[]){7}, room);
    assert_true(one.mean == 7 && one.median == 7 && one.lower == 7 && one.upper == 7);
    const spread lost = spread_of(5, (const double[]){1, INFINITY, 2, INFINITY, INFINITY}, room);
    assert_true(isinf(lost.mean) && isinf(lost.median) && lost.lower == 2 && isinf(lost.upper));
    rng r = {rng_key(1, 2), 0};
    for (size_t i = 0; i < 101; i++)
        values[i] = log_uniform(&r, 1e-6, 1);
    const spread s = spread_of(101, values, room);
    size_t below_lower = 0, below_median = 0, below_upper = 0;
    for (size_t i = 0; i < 101; i++) {
        below_lower += values[i] < s.lower ? 1 : 0;
        below_median += values[i] < s.median ? 1 : 0;
        below_upper += values[i] < s.upper ? 1 : 0;
    }
    assert_int_equal(below_lower, 25);
    assert_int_equal(below_median, 50);
    assert_int_equal(below_upper, 75);
}

static void scenario_tables(void **state)
{
    (void)state;
    const bool all[] = {true, true, true}, second[] = {false, true, false};
    paper_method m[PAPER_METHODS], negative[PAPER_METHODS];
    paper_methods(m, all, 20);
    paper_methods(negative, all, -20);
    const uint32_t rounds[] = {1, 5, 10, 20};
    const double participation[] = {0.3, 0.5, 0.7, 1};
    for (size_t i = 0; i < PAPER_METHODS; i++)
        assert_false(m[i].skip);
    for (size_t i = 0; i < 4; i++) {
        const paper_method *k = &m[paper_scenarios[1].series[i].method], *c = &m[paper_scenarios[2].series[i].method];
        assert_true(!k->central && !k->tuned && k->edge_rounds == rounds[i] && k->participation == 1);
        assert_true(!c->central && !c->tuned && c->edge_rounds == 1 && c->participation == participation[i]);
        const paper_method *sub = &m[paper_scenarios[0].series[i + 1].method];
        assert_true(sub->central && sub->rule.kind == (step_kind)i);
    }
    const paper_method *first = &m[paper_scenarios[0].series[0].method],
                       *last = &m[paper_scenarios[0].series[5].method];
    assert_true(!first->central && !first->tuned && first->edge_rounds == 10);
    assert_true(!last->central && last->tuned && last->edge_rounds == 10 && last->participation == 1);
    paper_methods(m, second, 20);
    size_t wanted = 0;
    for (size_t i = 0; i < PAPER_METHODS; i++)
        wanted += m[i].skip ? 0 : 1;
    assert_int_equal(wanted, 4);
    /* the rules in use are in the grid that they are said to come from */
    step_rule grid[STEP_GRID_MOST];
    const size_t n = paper_step_grid(grid);
    paper_methods(m, all, 20);
    for (size_t i = 0; i < PAPER_METHODS; i++)
        for (size_t sign = 0; sign < 2 && m[i].central; sign++) {
            const step_rule *rule = sign ? &negative[i].rule : &m[i].rule;
            size_t found = 0;
            for (size_t k = 0; k < n; k++)
                found += grid[k].kind == rule->kind && grid[k].size == rule->size && grid[k].shrink == rule->shrink;
            assert_int_equal(found, 1);
        }
}

static void checkpoint_choice(void **state)
{
    (void)state;
    const struct {
        uint32_t iterations;
        size_t count;
        uint32_t at[4];
    } cases[] = {{300, 4, {50, 100, 200, 300}},
                 {1000, 4, {50, 100, 200, 1000}},
                 {60, 4, {10, 20, 40, 60}},
                 {6, 4, {1, 2, 4, 6}},
                 {2, 2, {1, 2}},
                 {1, 1, {1}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const checkpoints c = checkpoints_of(cases[i].iterations);
        assert_int_equal(c.count, cases[i].count);
        assert_memory_equal(c.at, cases[i].at, c.count * sizeof *c.at);
    }
}

static void error_texts(void **state)
{
    (void)state;
    assert_string_equal(error_text_of(0.0374).text, "3.7e-2");
    assert_string_equal(error_text_of(1.04).text, "1.0e0");
    assert_string_equal(error_text_of(123456).text, "1.2e5");
    assert_string_equal(error_text_of(2e-12).text, "2.0e-12");
    assert_string_equal(error_text_of(0).text, "0.0e0");
    assert_string_equal(error_text_of(INFINITY).text, "inf");
}

static void summaries(void **state)
{
    (void)state;
    double room[3], errors[] = {0.5, 0.5, 0.5, 0.01, 0.05, 0.3}; /* two points, three trials */
    const paper_result r = {.methods = 1, .points = 2, .trials = 3, .error = errors};
    const checkpoints c = checkpoints_of(1);
    const series_summary s = series_summarize(&r, 0, &c, room);
    assert_true(fabs(s.mean[0] - 0.12) < 1e-15);
    assert_true(s.median[0] == 0.05);
    assert_int_equal(s.lost, 1); /* 0.05 itself is not lost */
    errors[4] = INFINITY;
    assert_int_equal(series_summarize(&r, 0, &c, room).lost, 2);
}

/* A series whose mean and median take these values at the four checkpoints. */
static series_summary series(double a, double b, double c, double d)
{
    return (series_summary){.mean = {a, b, c, d}, .median = {a, b, c, d}};
}

static verdict judge(size_t claim, const series_summary *s, const char *cell)
{
    const checkpoints c = checkpoints_of(300);
    const finding f = paper_claims[claim].judge(s, &c);
    assert_non_null(strstr(f.cell, cell));
    assert_true(strlen(f.cell) <= 24);
    assert_true(f.sentence[strlen(f.sentence) - 1] == '.'); /* not cut */
    return f.verdict;
}

static void verdicts_on_the_baseline(void **state)
{
    (void)state;
    series_summary s[6] = {series(0.1, 0.01, 1e-3, 1e-4)};
    for (size_t i = 1; i < 5; i++)
        s[i] = series(0.2, 0.1, 0.1, 1e-2 * (double)i);
    s[5] = series(1e-9, 1e-9, 1e-9, 1e-9); /* the tuned preset is no rule to be beaten */
    assert_int_equal(judge(0, s, "3 of 3"), VERDICT_YES);
    assert_int_equal(judge(1, s, "1.0e-4 vs 1.0e-2"), VERDICT_YES);
    s[1].mean[0] = 0.05; /* the rule that ends lowest was faster at first */
    assert_int_equal(judge(0, s, "2 of 3"), VERDICT_PARTLY);
    assert_int_equal(judge(1, s, ""), VERDICT_YES);
    s[3] = series(1e-6, 1e-6, 1e-6, 1e-6);
    assert_int_equal(judge(0, s, "0 of 3"), VERDICT_NO);
    assert_int_equal(judge(1, s, "1.0e-4 vs 1.0e-6"), VERDICT_PARTLY);
    s[0] = series(1, 1, 1, 1);
    assert_int_equal(judge(1, s, ""), VERDICT_NO);
    s[0] = series(NAN, NAN, NAN, INFINITY); /* a method that diverges wins nothing */
    assert_int_equal(judge(0, s, "0 of 3"), VERDICT_NO);
    assert_int_equal(judge(1, s, "inf"), VERDICT_NO);
}

static void tuned_against_the_rules(void **state)
{
    (void)state;
    series_summary s[6] = {series(1e-9, 1e-9, 1e-9, 1e-9)}; /* the paper's constants are not asked */
    for (size_t i = 1; i < 5; i++)
        s[i] = series(0.2, 0.1, 0.1, 1e-2 * (double)i);
    s[5] = series(0.1, 0.2, 1e-3, 1e-4);
    const checkpoints c = checkpoints_of(300);
    const finding f = tuned_judge(s, &c);
    assert_int_equal(f.verdict, VERDICT_PARTLY);
    assert_non_null(strstr(f.cell, "3 of 4"));
    assert_non_null(
        strstr(f.sentence, "hfsad tuned is 1.0e-1 against 2.0e-1 after 50, 2.0e-1 against 1.0e-1 after 100"));
    assert_non_null(
        strstr(f.sentence, "1.0e-4 against 1.0e-2 after 300 iterations; by the median it is ahead at 3 of 4."));
}

static void verdicts_on_rounds(void **state)
{
    (void)state;
    series_summary s[4] = {series(8, 8, 8, 8), series(4, 4, 4, 4), series(2, 2, 2, 2), series(1, 1, 1, 1)};
    assert_int_equal(judge(2, s, "3 of 3"), VERDICT_YES);
    s[3].mean[3] = 100; /* the end is no matter of speed */
    assert_int_equal(judge(2, s, "3 of 3"), VERDICT_YES);
    s[1].mean[2] = 0.5;
    assert_int_equal(judge(2, s, "2 of 3"), VERDICT_PARTLY);
    s[3] = series(9, 9, 9, 9);
    assert_int_equal(judge(2, s, "0 of 3"), VERDICT_NO);
}

static void verdicts_on_participation(void **state)
{
    (void)state;
    series_summary s[4] = {series(1.9, 1, 1, 1), series(1, 1, 1, 1), series(1, 1, 1, 1), series(1, 1, 1, 1)};
    assert_int_equal(judge(3, s, "factor of 1.9"), VERDICT_YES);
    s[0].mean[3] = 30;
    assert_int_equal(judge(3, s, "factor of 30"), VERDICT_PARTLY);
    s[2] = series(0.1, 0.1, 0.1, 0.1);
    assert_int_equal(judge(3, s, "factor of 3e+02"), VERDICT_NO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hfsad_is_the_simulator),
        cmocka_unit_test(baseline_is_the_method),
        cmocka_unit_test(trials_stand_alone),
        cmocka_unit_test(hooks),
        cmocka_unit_test(failures),
        cmocka_unit_test(spreads),
        cmocka_unit_test(scenario_tables),
        cmocka_unit_test(checkpoint_choice),
        cmocka_unit_test(error_texts),
        cmocka_unit_test(summaries),
        cmocka_unit_test(verdicts_on_the_baseline),
        cmocka_unit_test(tuned_against_the_rules),
        cmocka_unit_test(verdicts_on_rounds),
        cmocka_unit_test(verdicts_on_participation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
