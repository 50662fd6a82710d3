/* The random numbers: known answers, so that a run's draws stay what they were, and plain statistics. */
#include "tools.h"

/* SplitMix64 started at 1234567, as its authors' reference prints it: key = 1234567 and counter = 0, 1, 2. */
static void known_answers(void **state)
{
    (void)state;
    assert_true(rng_u64(1234567, 0) == UINT64_C(6457827717110365317));
    assert_true(rng_u64(1234567, 1) == UINT64_C(3203168211198807973));
    assert_true(rng_u64(1234567, 2) == UINT64_C(9817491932198370423));
    assert_true(rng_stream("") == UINT64_C(0xcbf29ce484222325)); /* FNV-1a's basis, and its value for "a" */
    assert_true(rng_stream("a") == UINT64_C(0xaf63dc4c8601ec8c));
}

static void moments(void **state)
{
    (void)state;
    enum { N = 200000 };
    rng r = {rng_key(1, 2), 0};
    double mean = 0, square = 0, rate = 0, uniforms = 0;
    size_t sixes = 0;
    for (int i = 0; i < N; i++) {
        const double x = rng_next_normal(&r);
        mean += x / N;
        square += x * x / N;
        rate += exponential(&r) / N;
        uniforms += rng_uniform(rng_key(3, 4), (uint64_t)i) / N;
        sixes += rng_next_below(&r, 6) == 5;
    }
    assert_true(fabs(mean) < 0.01 && fabs(square - 1) < 0.02);
    assert_true(fabs(rate - 1) < 0.01 && fabs(uniforms - 0.5) < 0.003);
    assert_true(fabs((double)sixes / N - 1.0 / 6) < 0.004);
}

static void streams_differ(void **state)
{
    (void)state;
    size_t same = 0;
    for (uint64_t i = 0; i < 1000; i++)
        same += (rng_uniform(rng_key(1, rng_stream("edge1")), i) < 0.5) ==
                (rng_uniform(rng_key(1, rng_stream("edge2")), i) < 0.5);
    assert_true(same > 420 && same < 580);
    size_t index[50];
    for (size_t i = 0; i < 50; i++)
        index[i] = i;
    rng r = {rng_key(5, 6), 0};
    rng_shuffle(&r, index, 50);
    size_t seen = 0, fixed = 0;
    for (size_t i = 0; i < 50; i++) {
        fixed += index[i] == i;
        for (size_t j = 0; j < 50; j++)
            seen += index[j] == i;
    }
    assert_int_equal(seen, 50);
    assert_true(fixed < 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_answers),
        cmocka_unit_test(moments),
        cmocka_unit_test(streams_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
