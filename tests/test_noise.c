/* Differential privacy: the distribution of the noise, its cost, clipping, and questions that are not asked of the
 * rows. */
#define _POSIX_C_SOURCE 200809L
#include "tools.h"

#include "base/fixed.h"
#include "base/rng.h"
#include "plan/accountant.h"
#include "plan/noise.h"
#include "plan/refusal.h"
#include "run/handle.h"

#include <math.h>
#include <string.h>

/* ---- the law ---- */

/* Against the law itself, summed in floating point: chi-square over the values that are likely enough. */
static void test_small_variances(void **state)
{
    (void)state;
    enum { DRAWS = 60000, MOST = 60 };
    static const uint64_t variances[] = {1, 2, 3, 10, 100};
    for (size_t v = 0; v < 5; v++) {
        seeded_words seeded = {11 + v, 0, 0};
        const word_source words = seeded_words_source(&seeded);
        words.begin(words.context, 1);
        const gaussian law_of = gaussian_of(variances[v]);
        double count[2 * MOST + 1] = {0}, law[2 * MOST + 1], all = 0, chi = 0;
        size_t cells = 0;
        for (int i = 0; i < DRAWS; i++) {
            const int64_t x = gaussian_draw(&law_of, &words);
            assert_in_range(x + MOST, 0, 2 * MOST);
            count[x + MOST]++;
        }
        for (int x = -MOST; x <= MOST; x++)
            all += law[x + MOST] = exp(-x * x / (2.0 * (double)variances[v]));
        for (int i = 0; i <= 2 * MOST; i++) {
            const double expected = DRAWS * law[i] / all;
            if (expected < 20)
                continue;
            chi += (count[i] - expected) * (count[i] - expected) / expected;
            cells++;
        }
        const double freedom = (double)cells; /* of mean `freedom` and deviation sqrt(2 freedom) */
        if (!(chi < freedom + 5 * sqrt(2 * freedom)))
            fail_msg("variance %llu: chi-square %g with %zu cells", (unsigned long long)variances[v], chi, cells);
    }
}

/* Millions of draws in cells of 1/50 of the deviation, and the far ones together: strips of the sampler have 1/16. */
static void test_many_draws(void **state)
{
    (void)state;
    enum { DRAWS = 4000000, CELLS = 400 };
    static const uint64_t variances[] = {250000, 6250000, UINT64_C(250000) << 20};
    for (size_t v = 0; v < 3; v++) {
        const double deviation = sqrt((double)variances[v]);
        const int64_t width = (int64_t)(deviation / 50);
        const gaussian law_of = gaussian_of(variances[v]);
        seeded_words seeded = {31 + v, 0, 0};
        const word_source words = seeded_words_source(&seeded);
        static double count[CELLS + 1];
        double chi = 0, rest = DRAWS, drawn = DRAWS;
        size_t cells = 0;
        memset(count, 0, sizeof count);
        words.begin(words.context, 1);
        for (int i = 0; i < DRAWS; i++) {
            const int64_t x = gaussian_draw(&law_of, &words), cell = (x < 0 ? -1 - x : x) / width;
            count[(cell < CELLS / 2 ? cell * 2 : CELLS - 2) + (x < 0)]++;
        }
        for (int i = 0; i < CELLS - 2; i++) { /* Euler and Maclaurin: the sum is the integral from half a unit below */
            const double low = (double)(i / 2 * width) + (i % 2 ? 1 : 0) - 0.5,
                         high = (double)((i / 2 + 1) * width) + (i % 2 ? 1 : 0) - 0.5;
            const double expected = DRAWS / 2.0 * (erfc(low / deviation / sqrt(2)) - erfc(high / deviation / sqrt(2)));
            if (expected < 20)
                break;
            chi += (count[i] - expected) * (count[i] - expected) / expected;
            rest -= expected;
            drawn -= count[i];
            cells++;
        }
        chi += (drawn - rest) * (drawn - rest) / fmax(rest, 1);
        const double freedom = (double)cells;
        if (!(chi < freedom + 5 * sqrt(2 * freedom) && chi > freedom - 5 * sqrt(2 * freedom)))
            fail_msg("variance %llu: chi-square %g with %zu cells", (unsigned long long)variances[v], chi, cells);
    }
}

static uint64_t word(uint64_t *counter)
{
    return rng_u64(rng_key(3, rng_stream("decide")), (*counter)++);
}

/* The decision by bounds and that by sums, against 64 digits of a long double: anywhere, and next to the limit. */
static void test_decisions(void **state)
{
    (void)state;
    enum { CASES = 20000 };
    uint64_t r = 0;
    size_t undecided = 0, near = 0;
    for (int i = 0; i < CASES; i++) {
        const uint64_t variance = 1 + word(&r) % (UINT64_C(1) << (1 + word(&r) % 40)), strip = word(&r) % 64;
        const gaussian g = gaussian_of(variance);
        assert_true(g.width * g.width * 256 >= variance &&
                    (g.width == 1 || (g.width - 1) * (g.width - 1) * 256 < variance));
        const uint64_t x = strip * g.width + word(&r) % g.width;
        const long double f =
            ((long double)(256 * x * x) - (long double)(strip * strip * variance)) / (512.0L * (long double)variance);
        if (!(f >= 0 && f < 1))
            continue;
        const long double limit = expl(-f) * 0x1p64L;
        const bool close = i % 2;
        const int64_t away = ((int64_t)(word(&r) % (UINT64_C(1) << 40)) + (INT64_C(1) << 30)) * (i % 4 < 2 ? 1 : -1);
        const uint64_t u = close ? (uint64_t)(limit + (long double)away) : word(&r);
        if (close && ((long double)u > 0x1p64L - 1 || limit + (long double)away >= 0x1p64L))
            continue;
        if (fabsl((long double)u - limit) < 0x1p26L) /* E is above C exp(-strip^2/512) by at most 2^-38 */
            continue;
        const int expected = (long double)u < limit, bounds = gaussian_decide(&g, strip, x, u, GAUSSIAN_BY_BOUNDS),
                  sums = gaussian_decide(&g, strip, x, u, GAUSSIAN_BY_SUMS);
        assert_int_equal(sums, expected);
        assert_true(bounds < 0 || bounds == expected);
        undecided += bounds < 0;
        near += close;
    }
    assert_true(near > CASES / 10 && undecided < CASES / 20);
}

/* Far above 1 the law is that of the normal distribution: Kolmogorov's distance. */
static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void test_large_variances(void **state)
{
    (void)state;
    enum { DRAWS = 20000 };
    static double x[DRAWS];
    for (uint64_t variance = UINT64_C(1) << 20; variance <= GAUSSIAN_VARIANCE_MOST; variance <<= 20) {
        seeded_words seeded = {5, 0, 0};
        const word_source words = seeded_words_source(&seeded);
        words.begin(words.context, variance);
        const gaussian law_of = gaussian_of(variance);
        for (int i = 0; i < DRAWS; i++)
            x[i] = (double)gaussian_draw(&law_of, &words) / sqrt((double)variance);
        qsort(x, DRAWS, sizeof *x, compare_doubles);
        double far = 0;
        for (int i = 0; i < DRAWS; i++)
            far = fmax(far, fabs(erfc(-x[i] / sqrt(2)) / 2 - (i + 0.5) / DRAWS));
        assert_true(far < 2 / sqrt(DRAWS)); /* 1.36 at 5%, 1.95 at a thousandth */
    }
}

/* A step that is drawn again has the same words; another step and another client have others. */
static void test_repetition(void **state)
{
    (void)state;
    int64_t drawn[4][8];
    seeded_words a = {noise_key(1, "e/a"), 0, 0}, b = {noise_key(1, "e/b"), 0, 0};
    const word_source words[] = {seeded_words_source(&a), seeded_words_source(&a), seeded_words_source(&a),
                                 seeded_words_source(&b)};
    static const uint64_t steps[] = {7, 8, 7, 7};
    const gaussian law_of = gaussian_of(GAUSSIAN_VARIANCE_MOST);
    for (size_t i = 0; i < 4; i++) {
        words[i].begin(words[i].context, steps[i]);
        for (size_t m = 0; m < 8; m++)
            drawn[i][m] = gaussian_draw(&law_of, &words[i]);
    }
    assert_memory_equal(drawn[0], drawn[2], sizeof drawn[0]);
    assert_memory_not_equal(drawn[0], drawn[1], sizeof drawn[0]);
    assert_memory_not_equal(drawn[0], drawn[3], sizeof drawn[0]);
}

/* ---- its price ---- */

/* The least over a fine grid of alpha, in place of a bisection. */
static double delta_by_grid(double rho, double epsilon)
{
    double least = 1;
    for (double alpha = 1.0001; alpha < 1e5; alpha += 1e-4 * alpha)
        least = fmin(least, exp((alpha - 1) * (alpha * rho - epsilon) + alpha * log1p(-1 / alpha)) / (alpha - 1));
    return least;
}

static void test_accountant(void **state)
{
    (void)state;
    static const double rhos[] = {0.001, 0.1, 1, 2.56}, deltas[] = {1e-10, 1e-6, 1e-3};
    for (size_t r = 0; r < 4; r++)
        for (size_t d = 0; d < 3; d++) {
            const double epsilon = zcdp_epsilon(rhos[r], deltas[d]);
            assert_true(fabs(delta_by_grid(rhos[r], epsilon) / deltas[d] - 1) < 1e-5);
            assert_true(fabs(zcdp_rho(epsilon, deltas[d]) / rhos[r] - 1) < 1e-9);
            assert_true(epsilon < rhos[r] + 2 * sqrt(rhos[r] * log(1 / deltas[d])));
        }
    assert_true(zcdp_epsilon(0, 1e-6) == 0);
    /* United States Census Bureau, redistricting data of 2020 (announcement of 9 June 2021; Abowd and others, "The 2020
     * Census Disclosure Avoidance System TopDown Algorithm", HDSR 2022): rho = 2.56 is epsilon = 17.14 and rho = 0.07
     * is epsilon = 2.47, at delta = 1e-10, all of them rounded. */
    assert_true(zcdp_epsilon(2.555, 1e-10) <= 17.145 && zcdp_epsilon(2.565, 1e-10) >= 17.135);
    assert_true(zcdp_epsilon(0.065, 1e-10) <= 2.475 && zcdp_epsilon(0.075, 1e-10) >= 2.465);
}

/* The true delta of one discrete Gaussian, by summation over its law, is below what the accountant says. */
static void test_price_of_a_round(void **state)
{
    (void)state;
    enum { FAR = 4000 };
    const double variance = 2500, shift = 40, rho = shift * shift / (2 * variance);
    for (double epsilon = 0.5; epsilon < 4; epsilon += 0.5) {
        double all = 0, delta = 0;
        for (int x = -FAR; x <= FAR; x++)
            all += exp(-x * x / (2 * variance));
        for (int x = -FAR; x <= FAR; x++) {
            const double p = exp(-x * x / (2 * variance)) / all,
                         q = exp(-(x - shift) * (x - shift) / (2 * variance)) / all;
            delta += fmax(0, p - exp(epsilon) * q);
        }
        const double bound = zcdp_delta(rho, epsilon);
        assert_true(delta <= bound && delta > bound / 50);
    }
}

/* ---- clipping ---- */

static double length_of(const int64_t *v, size_t M)
{
    long double sum = 0;
    for (size_t m = 0; m < M; m++)
        sum += (long double)v[m] * v[m];
    return (double)sqrtl(sum);
}

static void test_clip(void **state)
{
    (void)state;
    enum { M = 37 };
    rng r = {rng_key(2, 3), 0};
    double centre[M], v[M];
    int64_t steps[M];
    for (int trial = 0; trial < 2000; trial++) {
        const double rho = exp(6 * rng_next_normal(&r) - 4), radius = exp(4 * rng_next_normal(&r)),
                     size = radius * exp(3 * rng_next_normal(&r));
        const noise_lattice l = noise_lattice_of(rho, radius, 0);
        const double most = (double)l.most;
        assert_true(most * l.step <= radius && (most + 1) * l.step > radius);
        assert_true(2 * most * most / (double)l.variance <= rho);
        for (size_t m = 0; m < M; m++) {
            centre[m] = 10 * rng_next_normal(&r);
            v[m] = centre[m] + size * rng_next_normal(&r);
        }
        noise_clip(&l, M, centre, v, steps);
        unsigned __int128 sum = 0;
        for (size_t m = 0; m < M; m++)
            sum += (unsigned __int128)((__int128)steps[m] * steps[m]);
        assert_true(sum <= (unsigned __int128)((__int128)l.most * l.most));
        double inside = 0; /* what need not be clipped is not */
        for (size_t m = 0; m < M; m++)
            inside += (v[m] - centre[m]) * (v[m] - centre[m]);
        for (size_t m = 0; m < M && sqrt(inside) < 0.99 * most * l.step; m++)
            assert_true(fabs(v[m] - centre[m] - l.step * (double)steps[m]) <= l.step * (1 + 1e-9));
        if (sqrt(inside) > radius && most > 1000)
            assert_true(length_of(steps, M) > 0.9 * most);
        v[trial % M] = trial % 2 ? NAN : -INFINITY;
        noise_clip(&l, M, centre, v, steps);
        assert_true(length_of(steps, M) == 0);
    }
}

/* Whatever two models are, what is said of them under the same noise is at most twice `clip` apart, and the noise has
 * the deviation that is reported. */
static void test_model(void **state)
{
    (void)state;
    enum { M = 4000 };
    const noise_budget b = {.rho = 0.5, .clip = 0.3, .round_rho = 0.05, .rounds = 10, .each = 1};
    static double parent[M], a[M], c[M];
    static int64_t steps[M];
    rng r = {rng_key(9, 9), 0};
    seeded_words seeded = {17, 0, 0};
    const word_source words = seeded_words_source(&seeded);
    for (size_t m = 0; m < M; m++) {
        parent[m] = rng_next_normal(&r);
        a[m] = 100 * rng_next_normal(&r);
        c[m] = -a[m];
    }
    noise_model(&b, &words, 3, 1, M, parent, a, steps);
    noise_model(&b, &words, 3, 1, M, parent, c, steps);
    double apart = 0, square = 0;
    for (size_t m = 0; m < M; m++) {
        apart += (a[m] - c[m]) * (a[m] - c[m]);
        square += ((a[m] + c[m]) / 2 - parent[m]) * ((a[m] + c[m]) / 2 - parent[m]);
    }
    assert_true(sqrt(apart) <= 2 * b.clip * (1 + 1e-12) && sqrt(apart) > 1.9 * b.clip);
    assert_true(fabs(sqrt(square / M) / noise_deviation(&b) - 1) < 0.05);
    assert_true(fabs(2 * b.clip * b.clip * 4 / 4 / (noise_deviation(&b) * noise_deviation(&b)) / b.round_rho - 1) <
                1e-9);
}

/* Secure: whatever the link has come to, its u is clipped in whole steps, and stays so when it is formed again; the
 * shares of a cohort add up to the variance, on whole steps. */
static void test_shares(void **state)
{
    (void)state;
    enum { M = 1500, MEMBERS = 7 };
    const plan p = {.noise = {.rho = 0.2, .clip = 0.4, .round_rho = 0.02, .rounds = 10, .each = 1},
                    .fixed = true,
                    .secure = true,
                    .cohort = 4,
                    .fraction = 36};
    const hfsad_link_rule rule = {.penalty = {.kind = HFSAD_PENALTY_L1, .weight = 3, .lambda = 1},
                                  .schedule = {.c = 2.3, .alpha = 0.1, .turn = 1}};
    static double parent[M], z[M], q[M], u[M], centre[M], square[M];
    static int64_t steps[M], words[M], sum[M];
    rng r = {rng_key(21, 4), 0};
    double sigma = 0;
    memset(sum, 0, sizeof sum);
    for (size_t j = 0; j < MEMBERS; j++) {
        hfsad_link link = {z, q, 5};
        size_t at;
        for (size_t m = 0; m < M; m++) {
            parent[m] = sin((double)m);
            z[m] = parent[m] + 3 * rng_next_normal(&r);
            q[m] = z[m] + 0.2 * rng_next_normal(&r);
        }
        assert_true(noise_clip_link(&p, &rule, &link, M, parent, u, centre, steps));
        sigma = hfsad_link_message(&rule, &link, M, u);
        const noise_lattice l =
            noise_lattice_of(p.noise.round_rho, sigma * p.noise.clip, 0x1p14 / plan_up_factor(&p, sigma));
        assert_true(length_of(steps, M) <= (double)l.most && length_of(steps, M) > 0.99 * (double)l.most);
        double apart = 0;
        for (size_t m = 0; m < M; m++)
            apart += (u[m] / sigma - parent[m]) * (u[m] / sigma - parent[m]);
        assert_true(sqrt(apart) < p.noise.clip * (1 + 1e-5));
        assert_true(grid_put(u, M, plan_up_factor(&p, sigma), MEMBERS, words, &at));
        seeded_words seeded = {noise_key(3, j % 2 ? "odd" : "even") + j, 0, 0};
        const word_source source = seeded_words_source(&seeded);
        noise_words(&p, &source, link.k, MEMBERS, sigma, M, words);
        const int64_t unit = (int64_t)(l.step * plan_up_factor(&p, sigma));
        for (size_t m = 0; m < M; m++) {
            assert_true(words[m] % unit == 0);
            sum[m] += words[m] / unit - (int64_t)nearbyint(centre[m] / l.step) - steps[m];
            square[m] = (double)sum[m] * (double)sum[m];
        }
    }
    const noise_lattice l =
        noise_lattice_of(p.noise.round_rho, sigma * p.noise.clip, 0x1p14 / plan_up_factor(&p, sigma));
    double variance = 0;
    for (size_t m = 0; m < M; m++)
        variance += square[m] / M;
    if (!(fabs(variance / (double)l.variance - 1) < 0.2)) /* its deviation is sqrt(2 / M) = 0.037 */
        fail_msg("variance %g instead of %g", variance, (double)l.variance);
}

/* ---- specs ---- */

static hfsad_spec *spec_with(const char *data, const char *more)
{
    char text[2000];
    hfsad_spec *spec;
    hfsad_error err;
    char *words = strdup(more);
    snprintf(text, sizeof text,
             "data: %s\nloss: {kind: absolute}\nprivacy: {rho: 1, clip: 0.5}\nrun: {iterations: 3, edge_rounds: 2}\n",
             data);
    ok(spec_load_text(&spec, "spec.yaml", text, strlen(text), &err), &err);
    for (char *at = strtok(words, ";"), *equals; at; at = strtok(NULL, ";")) {
        equals = strchr(at, '=');
        *equals = 0;
        ok(hfsad_spec_set(spec, at, equals + 1, &err), &err);
    }
    free(words);
    return spec;
}

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *settings, *says;
    } rows[] = {
        {"", NULL},
        {"algorithm=hfsad", NULL},
        {"run.start=normal", NULL},
        {"privacy.aggregation=secure", NULL},
        {"algorithm=star", "algorithm"},
        {"algorithm=fedavg", "algorithm"},
        {"run.polish=true", "run.polish"},
        {"output.errors=true", "output.errors"},
        {"personal=groups", "personal"},
        {"features.standardize=true", "features.standardize"},
        {"features.intercept=global", "features.intercept"},
        {"run.start=spectral", "run.start"},
        {"run.start=robust", "run.start"},
        {"loss.kind=phase-retrieval", "run.start"},
        {"loss.kind=phase-retrieval;run.start=normal", NULL},
        {"run.start=consensus", "run.start"},
        {"link.client.penalty=mcp", "link"},
        {"run.tries=3", "run.tries"},
        {"run.stop.relative=0.1", "run.stop"},
        {"run.local_steps=2", "run.local_steps"},
        {"federation.mode=async", NULL},
        {"federation.mode=async;federation.local_seconds=0.5", "federation.local_seconds"},
        {"run.participation.client=0.5", NULL},
        {"prior.cloud.penalty=l1", "prior"},
        {"privacy.epsilon=1", "both"},
        {"privacy.clip=none", "clip is missing"},
        {"privacy.rho=none", "privacy.clip needs"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        hfsad_error err = {0};
        hfsad_spec *spec = spec_with("data.csv", rows[i].settings);
        const hfsad_status status = refusal_check(spec, &err);
        if (!rows[i].says != !status || (status && !strstr(err.message, rows[i].says)))
            fail_msg("%s: %s", rows[i].settings, err.message);
        hfsad_spec_free(spec);
    }
    hfsad_error err;
    const plan small = {.noise = {.rho = 1e-9, .clip = 1, .round_rho = 1e-12, .rounds = 1000}};
    assert_int_equal(noise_check_budget(&small, &err), HFSAD_ERROR_INPUT);
}

/* ---- nothing else is computed from rows ---- */

static void write_rows(const char *name, double size, int rows)
{
    FILE *f = fopen(in_folder(name), "w");
    rng r = {rng_key(4, (uint64_t)rows), 0};
    fprintf(f, "edge,client,y,x1,x2\n");
    for (int c = 0; c < 6; c++)
        for (int i = 0; i < (c ? rows : 1); i++)
            fprintf(f, "e%d,c%d,%.17g,%.17g,%.17g\n", c / 3, c, size * rng_next_normal(&r), size * rng_next_normal(&r),
                    size * rng_next_normal(&r));
    fclose(f);
}

static void test_set_up_knows_nothing(void **state)
{
    (void)state;
    hfsad_run *run[2];
    hfsad_error err;
    write_rows("a.csv", 1, 1);
    write_rows("b.csv", 1e6, 30);
    for (size_t i = 0; i < 2; i++) {
        hfsad_spec *spec = spec_with(in_folder(i ? "b.csv" : "a.csv"), "");
        ok(hfsad_run_create(&run[i], spec, 1, &err), &err);
        hfsad_spec_free(spec);
    }
    assert_memory_equal(&run[0]->scales.omega, &run[1]->scales.omega, sizeof(double));
    assert_true(run[0]->scales.bend == run[1]->scales.bend && run[0]->scales.noise == run[1]->scales.noise &&
                run[0]->scales.length == run[1]->scales.length && run[0]->nu_f == run[1]->nu_f);
    assert_memory_equal(run[0]->start, run[1]->start, 2 * sizeof(double));
    const hfsad_link_rule *one = &run[0]->plan->leaf_classes[0].rule, *other = &run[1]->plan->leaf_classes[0].rule;
    assert_memory_equal(&one->schedule, &other->schedule, sizeof one->schedule);
    assert_true(one->penalty.kind == other->penalty.kind && one->penalty.weight == other->penalty.weight &&
                one->penalty.lambda == other->penalty.lambda && one->penalty.free == other->penalty.free);
    for (size_t i = 0; i < 2; i++) {
        const hfsad_figures *f;
        for (int k = 0; k < 3; k++)
            hfsad_run_iterate(run[i]);
        ok(hfsad_run_measure(run[i], &f, &err), &err);
        assert_true(isnan(f->objective) && isnan(f->consensus_objective) && isnan(f->primal_residual) &&
                    isnan(f->dual_residual) && isnan(f->consensus_gap) && isnan(f->smoothing_gap));
        hfsad_run_free(run[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small_variances),
        cmocka_unit_test(test_many_draws),
        cmocka_unit_test(test_decisions),
        cmocka_unit_test(test_large_variances),
        cmocka_unit_test(test_repetition),
        cmocka_unit_test(test_accountant),
        cmocka_unit_test(test_price_of_a_round),
        cmocka_unit_test(test_clip),
        cmocka_unit_test(test_model),
        cmocka_unit_test(test_shares),
        cmocka_unit_test(test_refused),
        cmocka_unit_test_setup_teardown(test_set_up_knows_nothing, enter_folder, leave_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
