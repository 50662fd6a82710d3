/* Clients with many rows in the simulator: threads change no bit, kernels neither, and the loop allocates nothing. */
#include "allocations.h"
#include "defined_losses.h"

#include "core/kernels.h"

enum { M = 12 };

/* Enough rows for the threads to share out. */
static dataset *many_rows_dataset(uint64_t seed, hfsad_loss_kind kind)
{
    static const char *const paths[] = {"a", "r/b", "r/c", ""};
    static const size_t clients[] = {5, 19, 2, 3};
    rng r = {rng_key(seed, rng_stream("rows sim")), 0};
    hfsad_error err;
    dataset_builder *b;
    dataset *d;
    ok(dataset_builder_create(&b, M, &err), &err);
    for (size_t e = 0; e < 4; e++)
        for (size_t c = 0; c < clients[e]; c++)
            for (size_t rows = c == 0 ? 1 : 50 + below(&r, 60); rows > 0; rows--) {
                char name[32];
                double x[M], s = 0;
                snprintf(name, sizeof name, "%zu-%zu", e, c);
                for (size_t m = 0; m < M; m++) {
                    x[m] = below(&r, 4) ? rng_next_normal(&r) : 0;
                    s += m % 2 ? 0 : x[m];
                }
                const double noise = 0.3 * rng_next_normal(&r);
                const double y = has_labels(kind)                     ? (s + noise > 0 ? 1 : -1)
                                 : kind == HFSAD_LOSS_PHASE_RETRIEVAL ? s * s + noise
                                 : kind == HFSAD_LOSS_POISSON         ? floor(exp(fmin(s / 3 + noise, 3)))
                                                                      : s + noise;
                ok(dataset_builder_add(b, paths[e], name, y, x, NULL, 0, &err), &err);
            }
    ok(dataset_builder_finish(b, &d, &err), &err);
    assert_non_null(d->rows.first);
    assert_true(d->n_rows * M >= 16384);
    return d;
}

/* All losses, with a box or without, exact or linearised, some of the clients absent. */
static plan *plan_for(const dataset *d, size_t i)
{
    const leaf_class leaves = {
        .loss = {kind_at(i), 0.3, 1, i % 2 ? INFINITY : 0.7, 0.3},
        .rule = {{HFSAD_PENALTY_L1, 40, 1, 3, 0, 0}, {.c = 20, .alpha = 0.5}},
        .participation = i % 3 == 2 ? 0.6 : 1,
        .local_steps = i % 5 == 4 ? 2 : 1,
        .solver = {i % 4 == 3 ? ROWS_LINEARIZED : ROWS_EXACT, 0.01, 20},
        .mean = i % 6 == 5,
    };
    const inner_class inner = {{HFSAD_PENALTY_L1, 1, 0.1, 3, 0, 0},
                               {{HFSAD_PENALTY_L1, 900, 1, 3, 0, 0}, {.c = 40, .alpha = 0.5}},
                               i % 3 == 2 ? 0.8 : 1,
                               false};
    return simple_plan(d, leaves, inner, 1, i % 2);
}

static double *play(const dataset *d, const plan *p, unsigned threads, hfsad_figures *f, size_t *count)
{
    const double start[M] = {1, -0.2, 0.9};
    hfsad_error err;
    pool *t;
    sim *s;
    const size_t before = allocations;
    ok(pool_create(&t, threads, &err), &err);
    ok(sim_create(&s, d, p, start, start, t, &err), &err);
    assert_true(allocations > before + 10); /* the counter works */
    const size_t taken = allocations;
    memset(f, 0, sizeof *f);
    for (int i = 0; i < 2; i++) {
        sim_iterate(s);
        sim_measure(s, f);
    }
    assert_int_equal(allocations, taken);
    double *all = whole_state(s, d, count);
    sim_free(s);
    pool_free(t);
    return all;
}

static void threads_and_kernels_change_no_bit(void **state)
{
    (void)state;
    static const char *const names[] = {"plain", "avx2", "avx512"};
    for (size_t i = 0; i < 2 * LOSSES; i++) {
        dataset *d = many_rows_dataset(i, kind_at(i));
        plan *p = plan_for(d, i);
        hfsad_figures one, f;
        size_t count, other;
        double *first = play(d, p, 1, &one, &count);
        for (size_t run = 0; run < (i < LOSSES ? 4 : 1); run++) {
            if (run > 0 && !kernels_choose(names[run - 1]))
                continue;
            double *again = play(d, p, run == 0 ? 3 : 2, &f, &other);
            kernels_choose(NULL);
            assert_int_equal(count, other);
            if (memcmp(first, again, count * sizeof *again) || memcmp(&one, &f, sizeof f))
                fail_msg("case %zu: %s", i, run == 0 ? "three threads differ from one" : names[run - 1]);
            free(again);
        }
        for (size_t j = 0; j < count; j++)
            assert_true(isfinite(first[j]));
        free(first);
        plan_free(p);
        dataset_free(d);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_and_kernels_change_no_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
