/*
 * The safeguard: a c far too small for the number of edge rounds is detected and repaired; nothing else changes. And
 * the best of several starts.
 */
#include "tools.h"

#include "data/generated.h"
#include "plan/guard.h"
#include "run/handle.h"
#include "run/save.h"
#include "spec/table.h"

static dataset *data(uint64_t seed)
{
    phase_retrieval g = phase_retrieval_paper();
    hfsad_error err;
    dataset *d;
    double truth[25];
    g.seed = seed;
    ok(phase_retrieval_generate(&g, &d, truth, &err), &err);
    return d;
}

static hfsad_run *run_with(unsigned threads, dataset *d, const char *const *pairs)
{
    hfsad_error err;
    hfsad_spec *spec;
    hfsad_run *run;
    ok(spec_create(&spec, "test.yaml", &err), &err);
    ok(hfsad_spec_set(spec, "data", "unused", &err), &err);
    for (; *pairs; pairs += 2)
        ok(hfsad_spec_set(spec, pairs[0], pairs[1], &err), &err);
    ok(run_create_on(&run, spec, d, threads, &err), &err);
    hfsad_spec_free(spec);
    return run;
}

static hfsad_run *run_of(dataset *d, const char *const *pairs)
{
    return run_with(1, d, pairs);
}

static double objective_after(hfsad_run *run, int iterations)
{
    hfsad_figures f;
    for (int i = 0; i < iterations; i++)
        hfsad_run_iterate(run);
    (void)run_measure(run, &f, NULL);
    return f.consensus_objective;
}

static uint64_t repairs(const hfsad_run *run)
{
    uint64_t last;
    return sim_repairs(run->sim, &last);
}

static const char *const LOSSES[] = {"{kind: absolute}", "{kind: phase-retrieval, box: 5}", "{kind: huber}"};
enum { KINDS = sizeof LOSSES / sizeof *LOSSES };

static void a_small_c_is_repaired(void **state)
{
    (void)state;
    for (size_t kind = 0; kind < KINDS; kind++) {
        hfsad_run *usual = run_of(data(7), (const char *const[]){"loss", LOSSES[kind], "run.cycles", "false", NULL});
        const double best = objective_after(usual, 300);
        assert_int_equal(repairs(usual), 0);
        const double right = usual->plan->inner[1].rule.schedule.c;
        char c[32];
        snprintf(c, sizeof c, "%.17g", right / 50);
        const char *const pairs[] = {"loss",
                                     LOSSES[kind],
                                     "schedule.edge.c",
                                     c,
                                     "schedule.edge.shape",
                                     kind == 1 ? "sqrt-geometric" : "sqrt",
                                     "run.cycles",
                                     "false",
                                     NULL};
        hfsad_run *small = run_of(data(7), pairs);
        const double reached = objective_after(small, 300);
        if (!(repairs(small) > 0) || !(reached < 1.2 * best))
            fail_msg("%s: %llu repairs, objective %g, by itself %g", LOSSES[kind], (unsigned long long)repairs(small),
                     reached, best);
        assert_true(sim_inner_rule(small->sim, 1).schedule.c > small->plan->inner[1].rule.schedule.c);
        hfsad_run_free(usual);
        hfsad_run_free(small);
    }
}

static void the_papers_preset_is_left_alone(void **state)
{
    (void)state;
    static const char *const presets[] = {"paper", "tuned"}; /* the second: numbers that would be repaired */
    for (size_t i = 0; i < 2; i++) {
        hfsad_run *run =
            run_of(data(7), (const char *const[]){"loss", LOSSES[0], "preset", presets[i], "schedule.edge.c", "0.01",
                                                  "schedule.edge.alpha", "0.01", NULL});
        (void)objective_after(run, 50);
        assert_int_equal(repairs(run) > 0, i);
        hfsad_run_free(run);
    }
}

/* Clients right below the cloud. */
static dataset *star(uint64_t seed)
{
    hfsad_error err;
    dataset_builder *b;
    dataset *d;
    rng r = {rng_key(seed, rng_stream("star")), 0};
    ok(dataset_builder_create(&b, 10, &err), &err);
    for (int i = 0; i < 30 * 20; i++) {
        char name[16];
        double x[10], y = rng_next_normal(&r);
        snprintf(name, sizeof name, "c%d", i / 20);
        for (int m = 0; m < 10; m++)
            y += (x[m] = rng_next_normal(&r)) * (m % 3 == 0);
        ok(dataset_builder_add(b, "", name, y, x, NULL, 0, &err), &err);
    }
    ok(dataset_builder_finish(b, &d, &err), &err);
    return d;
}

static void a_star_is_repaired(void **state)
{
    (void)state;
    static const char *const losses[] = {"{kind: absolute}", "{kind: squared}", "{kind: huber}"};
    for (size_t kind = 0; kind < 3; kind++) {
        hfsad_run *usual = run_of(star(3), (const char *const[]){"loss", losses[kind], NULL});
        const double best = objective_after(usual, 200), right = usual->plan->leaf_classes[0].rule.schedule.c;
        assert_false(plan_is_guarded(usual->plan, 1));
        for (double divide = 1e3; divide <= 1e5; divide *= 100) {
            char c[32];
            snprintf(c, sizeof c, "%.17g", right / divide);
            const char *const pairs[] = {"loss", losses[kind], "schedule.client.c", c, NULL};
            hfsad_run *small = run_of(star(3), pairs);
            const double reached = objective_after(small, 200);
            if (!(repairs(small) > 0) || !(reached < 1.01 * best))
                fail_msg("%s, c / %g: %llu repairs, objective %g, by itself %g", losses[kind], divide,
                         (unsigned long long)repairs(small), reached, best);
            hfsad_run_free(small);
        }
        hfsad_run_free(usual);
    }
}

/* Edges that disagree pull their links to the bound for good: no divergence. */
static void disagreement_is_no_divergence(void **state)
{
    (void)state;
    hfsad_error err;
    dataset_builder *b;
    dataset *d;
    rng r = {rng_key(1, rng_stream("guard")), 0};
    ok(dataset_builder_create(&b, 1, &err), &err);
    for (int i = 0; i < 40; i++) {
        char edge[16], name[16];
        snprintf(edge, sizeof edge, "e%d", i % 4);
        snprintf(name, sizeof name, "c%d", i);
        const double x = 1;
        ok(dataset_builder_add(b, edge, name, 10 * (i % 4) + rng_next_normal(&r), &x, NULL, 0, &err), &err);
    }
    ok(dataset_builder_finish(b, &d, &err), &err);
    hfsad_run *run = run_of(d, (const char *const[]){"loss", "{kind: absolute}", NULL});
    (void)objective_after(run, 100);
    assert_int_equal(repairs(run), 0);
    hfsad_run_free(run);
}

static void sink(void *to, const void *bytes, size_t count)
{
    memcpy(*(char **)to, bytes, count);
    *(char **)to += count;
}

/* A run taken up from any iteration around a repair ends in the same bits. */
static void repairs_can_be_resumed(void **state)
{
    (void)state;
    const char *const pairs[] = {"loss", LOSSES[0], "schedule.edge.c", "1", "schedule.edge.alpha", "0.01", NULL};
    enum { END = 40 };
    hfsad_run *whole = run_of(data(7), pairs);
    const double want = objective_after(whole, END);
    assert_true(repairs(whole) > 0);
    for (int cut = 8; cut <= 30; cut += 2) {
        hfsad_run *first = run_of(data(7), pairs), *second = run_of(data(7), pairs);
        (void)objective_after(first, cut);
        word_writer counted = {0};
        sim_pack(&counted, first->sim);
        char *bytes = alloc_zero(counted.count, 8), *end = bytes;
        word_writer out = {.put = sink, .to = &end};
        sim_pack(&out, first->sim);
        word_reader in = {.at = (const unsigned char *)bytes, .left = counted.count};
        assert_true(sim_unpack(second->sim, &in));
        if (objective_after(second, END - cut) != want || repairs(second) != repairs(whole))
            fail_msg("taken up after iteration %d: another end", cut);
        free(bytes);
        hfsad_run_free(first);
        hfsad_run_free(second);
    }
    hfsad_run_free(whole);
}

/* The consensus objective after 20 iterations from a start. */
static double objective_from(const hfsad_run *run, const double *start)
{
    hfsad_error err;
    hfsad_figures f;
    sim *s;
    ok(sim_create(&s, run->data, run->plan, start, NULL, run->threads, &err), &err);
    for (int i = 0; i < 20; i++)
        sim_iterate(s);
    sim_measure(s, &f);
    sim_free(s);
    return f.consensus_objective;
}

static void the_best_of_several_starts(void **state)
{
    (void)state;
    enum { TRIES = 6, M = 25 };
    uint32_t others = 0;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        char number[16];
        snprintf(number, sizeof number, "%d", (int)seed);
        const char *pairs[] = {"loss",      LOSSES[1], "run.start",  "normal", "run.seed", number,
                               "run.tries", "6",       "run.cycles", "false",  NULL};
        hfsad_run *best = run_with((unsigned)seed, data(7), pairs);
        pairs[7] = "1";
        hfsad_run *first = run_of(data(7), pairs);
        double start[M], least = objective_from(first, first->start), length = 0;
        uint32_t kept = 0;
        memcpy(start, first->start, sizeof start);
        for (size_t m = 0; m < M; m++)
            length += first->start[m] * first->start[m];
        for (uint32_t i = 1; i < TRIES; i++) {
            double other[M];
            start_draw(other, M, seed, i, sqrt(length));
            const double objective = objective_from(first, other);
            if (objective < least) {
                least = objective;
                kept = i;
                memcpy(start, other, sizeof start);
            }
        }
        others += kept > 0;
        assert_int_equal(best->start_index, kept);
        assert_memory_equal(best->start, start, sizeof start);
        hfsad_run_free(best);
        hfsad_run_free(first);
    }
    assert_true(others > 0); /* or nothing was chosen */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_small_c_is_repaired),         cmocka_unit_test(the_papers_preset_is_left_alone),
        cmocka_unit_test(disagreement_is_no_divergence), cmocka_unit_test(repairs_can_be_resumed),
        cmocka_unit_test(the_best_of_several_starts),    cmocka_unit_test(a_star_is_repaired),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
