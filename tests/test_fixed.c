/* Fixed point: numbers, sums and maxima against an independent computation. */
#include "tools.h"

#include "plan/fixed_answer.h"

#include <math.h>

static double any(rng *r, int least, int most)
{
    const double size = ldexp(1 + rng_next_uniform(r), least + (int)(rng_next_uniform(r) * (most - least)));
    return rng_next_uniform(r) < 0.5 ? -size : size;
}

/* A number of 2^-35 or more comes back as it was, a smaller one within 2^-89. */
static void test_numbers(void **state)
{
    (void)state;
    rng r = {rng_key(1, rng_stream("fixed")), 0};
    uint64_t w[FIXED_WORDS];
    for (int i = 0; i < 100000; i++) {
        const double large = any(&r, -35, FIXED_MOST_BIT - 2), small = any(&r, -120, -35);
        assert_true(fixed_put(large, w));
        assert_true(fixed_get(w) == large);
        assert_true(fixed_put(small, w));
        assert_true(fabs(fixed_get(w) - small) <= 0x1p-89);
    }
    static const double wrong[] = {0x1p83, -0x1p83, 1e300, INFINITY, -INFINITY, NAN};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(fixed_put(wrong[i], w));
    assert_true(fixed_put(0, w) && fixed_get(w) == 0);
}

/* Sums are exact: of whole multiples of 2^-20 below 2^40 the doubles' are exact too; and in any order. */
static void test_sums(void **state)
{
    (void)state;
    rng r = {rng_key(2, rng_stream("fixed")), 0};
    for (int i = 0; i < 1000; i++) {
        uint64_t sum[FIXED_WORDS] = {0}, part[FIXED_WORDS];
        double expected = 0, huge = any(&r, 60, 80);
        assert_true(fixed_put(huge, part));
        fixed_add(sum, part, 1);
        for (int k = 0; k < 50; k++) {
            const double v = nearbyint(any(&r, 0, 40)) / 0x1p20;
            expected += v;
            assert_true(fixed_put(v, part));
            fixed_add(sum, part, 1);
        }
        assert_true(fixed_put(-huge, part)); /* doubles would have lost the small ones */
        fixed_add(sum, part, 1);
        assert_true(fixed_get(sum) == expected);
    }
}

static void test_maxima(void **state)
{
    (void)state;
    rng r = {rng_key(3, rng_stream("fixed")), 0};
    const answer_layout l = {MASK_BUCKETS, 1, 1};
    enum { WORDS = (2 + FIXED_BUCKETS) * FIXED_WORDS };
    assert_int_equal(fixed_answer_numbers(&l) * FIXED_WORDS, WORDS);
    for (int i = 0; i < 300; i++) {
        uint64_t sum[WORDS] = {0}, part[WORDS];
        double most = 0, got[2];
        for (int k = 0; k < 7; k++) {
            const double answer[] = {fabs(any(&r, -50, 60)), 1};
            most = fmax(most, answer[0]);
            assert_true(fixed_answer_put(&l, answer, part));
            fixed_add(sum, part, 2 + FIXED_BUCKETS);
        }
        fixed_answer_get(&l, sum, got);
        assert_true(got[1] == 7 && got[0] >= most && got[0] <= 1.19 * most);
        const double again[] = {got[0], 0};
        assert_true(fixed_answer_put(&l, again, part)); /* at the next node it does not grow */
        fixed_answer_get(&l, part, got);
        assert_true(got[0] == again[0]);
    }
    const double infinite[] = {INFINITY, INFINITY};
    uint64_t words[WORDS];
    double got[2];
    assert_true(fixed_answer_put(&l, infinite, words));
    fixed_answer_get(&l, words, got);
    assert_true(isinf(got[0]) && isinf(got[1]));
}

/* The grid of an UP: too large for the number of members is refused. */
static void test_grid(void **state)
{
    (void)state;
    double v[] = {1.25, -0.375, 0x1p40};
    int64_t to[3];
    size_t at = 9;
    assert_true(grid_put(v, 2, 8, 16, to, &at) && to[0] == 10 && to[1] == -3);
    assert_false(grid_put(v, 3, 0x1p20, 8, to, &at));
    assert_int_equal(at, 2);
    assert_true(grid_put(v, 3, 0x1p18, 8, to, &at));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_numbers), cmocka_unit_test(test_sums),
                                       cmocka_unit_test(test_maxima), cmocka_unit_test(test_grid)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
