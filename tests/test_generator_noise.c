/* The generators' noise: tails against integrals of the densities, quantiles, and draws against the tails. */
#include "made/generator_noise.h"
#include "tools.h"

static const noise_law LAWS[] = {
    {.kind = NOISE_GAUSSIAN, .scale = 1},
    {.kind = NOISE_STUDENT, .scale = 1, .df = 0.5},
    {.kind = NOISE_STUDENT, .scale = 1, .df = 1},
    {.kind = NOISE_STUDENT, .scale = 1, .df = 2},
    {.kind = NOISE_STUDENT, .scale = 1, .df = 3.7},
    {.kind = NOISE_STUDENT, .scale = 1, .df = 1000},
    {.kind = NOISE_MIXTURE, .scale = 1, .share = 0.1, .factor = 10},
    {.kind = NOISE_MIXTURE, .scale = 1, .share = 1, .factor = 0.25},
    {.kind = NOISE_LAPLACE, .scale = 1},
    {.kind = NOISE_LOGISTIC, .scale = 1},
};
enum { N_LAWS = sizeof LAWS / sizeof *LAWS };

static double normal_density(double t)
{
    return exp(-t * t / 2) / sqrt(2 * acos(-1));
}

/* Gamma((v + 1)/2)/(sqrt(v pi) Gamma(v/2)), for large v by its series, whose next term is 5/(128 v^3). */
static double student_constant(double v)
{
    if (v < 300)
        return tgamma(v / 2 + 0.5) / tgamma(v / 2) / sqrt(v * acos(-1));
    return (1 - 1 / (4 * v) + 1 / (32 * v * v)) / sqrt(2 * acos(-1));
}

static double density(const noise_law *law, double t)
{
    switch (law->kind) {
    case NOISE_GAUSSIAN:
        return normal_density(t);
    case NOISE_STUDENT:
        return student_constant(law->df) * exp(-(law->df + 1) / 2 * log1p(t * t / law->df));
    case NOISE_MIXTURE:
        return (1 - law->share) * normal_density(t) + law->share * normal_density(t / law->factor) / law->factor;
    case NOISE_LAPLACE:
        return exp(-fabs(t)) / 2;
    case NOISE_LOGISTIC:
        break;
    }
    return 0.25 / (cosh(t / 2) * cosh(t / 2));
}

/* P(0 < noise < t) by Simpson's rule. */
static double integral(const noise_law *law, double t)
{
    enum { PANELS = 4000 };
    double sum = density(law, 0) + density(law, t);
    for (int i = 1; i < PANELS; i++)
        sum += density(law, t * i / PANELS) * (i % 2 ? 4 : 2);
    return sum * t / (3 * PANELS);
}

static void tails(void **state)
{
    (void)state;
    const double at[] = {0, 1e-9, 0.01, 0.3, 0.9, 1.5, 3, 7};
    for (size_t i = 0; i < N_LAWS; i++)
        for (size_t k = 0; k < sizeof at / sizeof *at; k++) {
            const double wanted = 0.5 - integral(&LAWS[i], at[k]), tail = noise_tail(&LAWS[i], at[k]);
            if (!(fabs(tail - wanted) < 1e-10))
                fail_msg("law %zu: P(> %g) = %.15g, not %.15g", i, at[k], tail, wanted);
        }
}

/* Far out, where 1/2 less an integral says nothing: closed forms of Student's law. */
static void far_tails(void **state)
{
    (void)state;
    for (double t = 1; t < 1e8; t *= 7) {
        const double cauchy = atan(1 / t) / acos(-1), root = sqrt(2 + t * t), two = 1 / (root * (root + t));
        assert_true(fabs(noise_tail(&LAWS[2], t) / cauchy - 1) < 1e-11);
        assert_true(fabs(noise_tail(&LAWS[3], t) / two - 1) < 1e-11);
    }
}

static void quantiles(void **state)
{
    (void)state;
    const double levels[] = {1e-4, 0.05, 0.25, 0.4999, 0.5, 0.7, 0.95, 0.9999};
    for (size_t i = 0; i < N_LAWS; i++)
        for (size_t k = 0; k < sizeof levels / sizeof *levels; k++) {
            noise_law wide = LAWS[i];
            wide.scale = 3;
            const double tau = levels[k], q = noise_quantile(&LAWS[i], tau);
            const double below = q < 0 ? noise_tail(&LAWS[i], -q) : 1 - noise_tail(&LAWS[i], q);
            if (!(fabs(below - tau) < 1e-13))
                fail_msg("law %zu: P(<= q) = %.17g at tau = %g", i, below, tau);
            assert_true(noise_quantile(&wide, tau) == 3 * q);
        }
    const double p = 0.9; /* closed forms */
    assert_true(fabs(noise_quantile(&LAWS[3], p) - (2 * p - 1) / sqrt(2 * p * (1 - p))) < 1e-13);
    assert_true(fabs(noise_quantile(&LAWS[8], p) + log(2 * (1 - p))) < 1e-13);
    assert_true(fabs(noise_quantile(&LAWS[9], p) - log(p / (1 - p))) < 1e-13);
    assert_true(fabs(noise_quantile(&LAWS[0], 0.975) - 1.959963984540054) < 1e-13);
}

/* The share of draws below each of many levels; below the tau-quantile it is tau. */
static void draws(void **state)
{
    (void)state;
    enum { DRAWS = 100000 };
    const double levels[] = {0.01, 0.1, 0.3, 0.5, 0.65, 0.9, 0.99};
    enum { N_LEVELS = sizeof levels / sizeof *levels };
    const uint64_t seed = 21;
    for (size_t i = 0; i < N_LAWS; i++) {
        noise_law law = LAWS[i];
        law.scale = 0.3;
        double q[N_LEVELS];
        size_t below[N_LEVELS] = {0};
        for (size_t k = 0; k < N_LEVELS; k++)
            q[k] = noise_quantile(&law, levels[k]);
        for (uint64_t n = 0; n < DRAWS; n++) {
            const double noise = noise_sample(&law, rng_key(seed, i), n);
            for (size_t k = 0; k < N_LEVELS; k++)
                below[k] += noise <= q[k];
        }
        for (size_t k = 0; k < N_LEVELS; k++) {
            const double share = (double)below[k] / DRAWS, tau = levels[k];
            if (!(fabs(share - tau) < 5 * sqrt(tau * (1 - tau) / DRAWS)))
                fail_msg("seed %d, law %zu: %g of the draws are below the %g-quantile", (int)seed, i, share, tau);
        }
    }
}

/* A draw is a function of its number alone, and neighbours have nothing in common. */
static void draws_are_apart(void **state)
{
    (void)state;
    enum { DRAWS = 20000 };
    for (size_t i = 0; i < N_LAWS; i++) {
        int same_side = 0;
        for (uint64_t n = 0; n < DRAWS; n++) {
            const double a = noise_sample(&LAWS[i], 5, n), b = noise_sample(&LAWS[i], 5, n + 1);
            assert_true(a == noise_sample(&LAWS[i], 5, n) && isfinite(a));
            same_side += (a > 0) == (b > 0);
        }
        assert_true(abs(2 * same_side - DRAWS) < 5 * sqrt(DRAWS));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tails), cmocka_unit_test(far_tails),       cmocka_unit_test(quantiles),
        cmocka_unit_test(draws), cmocka_unit_test(draws_are_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
