/* The functions of src/base/exp_log.h against libm in long double: exp and log within 1.2 units in the last place, also
 * at the ends, log1p within 3, the cosine within 2. */
#include "base/exp_log.h"
#include "tools.h"

#include <float.h>

/* Distance in units of the last place of the exact value. */
static double apart(double got, long double exact)
{
    const double near = (double)exact;
    const long double unit = fabsl((long double)nextafter(near, INFINITY) - (long double)near);
    return (double)(fabsl((long double)got - exact) / unit);
}

static void test_exp(void **state)
{
    (void)state;
    rng r = {rng_key(1, 1), 0};
    double worst = 0;
    for (int i = 0; i < 400000; i++) {
        const double x = i % 2 ? uniform(&r, -745, 709.7) : (i % 4 ? -1 : 1) * log_uniform(&r, 1e-300, 40);
        const double far = apart(same_exp(x), expl((long double)x));
        worst = far > worst ? far : worst;
        if (x > -708 && !(far <= 1.2))
            fail_msg("exp(%.17g) = %.17g, %g units away", x, same_exp(x), far);
        if (!(fabs(same_exp(x) - exp(x)) <= 1.2 * DBL_EPSILON * exp(x) + 0x1p-1074))
            fail_msg("exp(%.17g) = %.17g", x, same_exp(x));
    }
    assert_true(same_exp(0) == 1 && same_exp(-0.0) == 1);
    assert_true(same_exp(710) == INFINITY && same_exp(INFINITY) == INFINITY && isfinite(same_exp(709.78)));
    assert_true(same_exp(-746) == 0 && same_exp(-INFINITY) == 0 && same_exp(-745) == 0x1p-1074);
    assert_true(isnan(same_exp(NAN)));
    print_message("exp: at most %.3f units\n", worst);
}

static void test_log(void **state)
{
    (void)state;
    rng r = {rng_key(2, 1), 0};
    double worst = 0;
    for (int i = 0; i < 400000; i++) {
        const double x = i % 2 ? log_uniform(&r, 1e-307, 1e308) : 1 + uniform(&r, -0.4, 0.6) * (i % 4 ? 1 : 1e-9);
        const double far = apart(same_log(x), logl((long double)x));
        worst = far > worst ? far : worst;
        if (!(far <= 1.2))
            fail_msg("log(%.17g) = %.17g, %g units away", x, same_log(x), far);
    }
    assert_true(same_log(1) == 0 && same_log(0) == -INFINITY && same_log(INFINITY) == INFINITY);
    assert_true(isnan(same_log(-1)) && isnan(same_log(NAN)));
    assert_true(fabs(same_log(0x1p-1074) - log(0x1p-1074)) <= 2e-13 &&
                fabs(same_log(0x1p-1040) - log(0x1p-1040)) <= 2e-13);
    print_message("log: at most %.3f units\n", worst);
}

static void test_log1p(void **state)
{
    (void)state;
    rng r = {rng_key(3, 1), 0};
    double worst = 0;
    for (int i = 0; i < 400000; i++) {
        const double x = i % 2 ? log_uniform(&r, 1e-300, 1e10) : -log_uniform(&r, 1e-20, 0.999);
        const double far = apart(same_log1p(x), log1pl((long double)x));
        worst = far > worst ? far : worst;
        if (!(far <= 3))
            fail_msg("log1p(%.17g) = %.17g, %g units away", x, same_log1p(x), far);
    }
    assert_true(same_log1p(0) == 0 && same_log1p(INFINITY) == INFINITY && same_log1p(1e-20) == 1e-20);
    assert_true(same_log1p(-1) == -INFINITY && isnan(same_log1p(NAN)));
    print_message("log1p: at most %.3f units\n", worst);
}

static void test_cos(void **state)
{
    (void)state;
    const long double two_pi = 6.28318530717958647692528676655900577L;
    rng r = {rng_key(4, 1), 0};
    double worst = 0;
    for (int i = 0; i < 400000; i++) {
        const double u =
            i % 2 ? rng_next_uniform(&r) : 0.25 * (i / 2 % 5) + (i / 10 % 2 ? 1 : -1) * log_uniform(&r, 1e-12, 0.1);
        if (!(u >= 0 && u <= 1))
            continue;
        const double quarter = nearbyint(4 * u);
        const long double x = two_pi * ((long double)u - (long double)quarter / 4); /* exact but for the product */
        const int turn = (int)quarter % 4;
        const long double exact = turn == 0 ? cosl(x) : turn == 1 ? -sinl(x) : turn == 2 ? -cosl(x) : sinl(x);
        const double far = apart(same_cos_turns(u), exact);
        worst = far > worst ? far : worst;
        if (!(far <= 2))
            fail_msg("cos(2 pi %.17g) = %.17g, %g units away", u, same_cos_turns(u), far);
    }
    assert_true(same_cos_turns(0) == 1 && same_cos_turns(1) == 1 && same_cos_turns(0.5) == -1);
    assert_true(same_cos_turns(0.25) == 0 && same_cos_turns(0.75) == 0);
    print_message("cos: at most %.3f units\n", worst);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_exp), cmocka_unit_test(test_log),
                                       cmocka_unit_test(test_log1p), cmocka_unit_test(test_cos)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
