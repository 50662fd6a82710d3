/* The paper's data: supports, noise, signal to noise, and draws that depend on seed and name only. */
#include "data/generated.h"
#include "tools.h"

enum { M_MOST = 64 };

static phase_retrieval small(uint64_t seed)
{
    return (phase_retrieval){
        .edges = 3, .clients = 7, .features = 12, .snr_db = 20, .keep_x = 0.8, .keep_w = 0.3, .seed = seed};
}

static dataset *make(const phase_retrieval *g, double *truth)
{
    hfsad_error err;
    dataset *d;
    ok(phase_retrieval_generate(g, &d, truth, &err), &err);
    return d;
}

/* <x,w> of a leaf by a plain sum: not the order of the generator, so compared with a tolerance. */
static double inner_product(const dataset *d, size_t leaf, const double *w)
{
    double row[M_MOST], sum = 0;
    dataset_gather(d, d->x, leaf, row);
    for (size_t m = 0; m < d->M; m++)
        sum += row[m] * w[m];
    return sum;
}

static void kept_counts(void **state)
{
    (void)state;
    assert_int_equal(kept_count(0.8, 25), 20);
    assert_int_equal(kept_count(0.3, 25), 8);
    assert_int_equal(kept_count(0.3, 10), 3);
    assert_int_equal(kept_count(0.07, 100), 7); /* 7.000000000000001 in binary */
    assert_int_equal(kept_count(0.28, 25), 7);
    assert_int_equal(kept_count(1, 25), 25);
    assert_int_equal(kept_count(0.001, 25), 1);
}

/* E eps = 1.9/lambda, E eps^2 = 21.8/lambda^2, with standard errors from the fourth moment 24021.6/lambda^4. */
static void noise_moments(void **state)
{
    (void)state;
    enum { DRAWS = 400000 };
    const double lambda = 0.4;
    rng r = {rng_key(11, 12), 0};
    double first = 0, second = 0;
    for (int i = 0; i < DRAWS; i++) {
        const double pick = rng_next_uniform(&r), u = rng_next_uniform(&r);
        const double eps = noise_draw(1 / lambda, pick, u) * lambda;
        assert_true(eps >= 0);
        first += eps / DRAWS;
        second += eps * eps / DRAWS;
    }
    assert_true(fabs(first - 1.9) < 5 * sqrt((21.8 - 1.9 * 1.9) / DRAWS));
    assert_true(fabs(second - 21.8) < 5 * sqrt((24021.6 - 21.8 * 21.8) / DRAWS));
}

static void noise_level(void **state)
{
    (void)state;
    for (int k = -4; k <= 4; k++) {
        const double snr = 7.5 * k, scale = noise_scale(250, 1234, snr), power = 21.8 * scale * scale;
        assert_true(fabs(10 * log10(1234 / (250 * power)) - snr) < 1e-9);
    }
    assert_true(noise_scale(10, 0, 20) == 0);
}

/* The formula, met by the noise that was really drawn. */
static void signal_to_noise(void **state)
{
    (void)state;
    phase_retrieval g = small(5);
    g.edges = 20;
    g.clients = 2000;
    g.snr_db = 3;
    double truth[M_MOST], signal = 0, noise = 0;
    dataset *d = make(&g, truth);
    for (size_t i = 0; i < d->n_leaves; i++) {
        const double s = inner_product(d, i, truth), eps = d->y[i] - s * s;
        signal += s * s;
        noise += eps * eps;
    }
    const double relative = noise * pow(10, 0.3) / signal - 1;
    assert_true(fabs(relative) < 5 * sqrt(24021.6 / (21.8 * 21.8) / (double)d->n_leaves));
    dataset_free(d);
}

static void supports(void **state)
{
    (void)state;
    bool differ = false;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        const phase_retrieval g = small(seed);
        double truth[M_MOST], row[M_MOST], first[M_MOST];
        dataset *d = make(&g, truth);
        assert_int_equal(d->n_leaves, 21);
        assert_int_equal(d->n_inner, 4);
        size_t kept = 0;
        for (size_t m = 0; m < d->M; m++)
            kept += truth[m] != 0 ? 1 : 0;
        assert_int_equal(kept, 4);
        for (size_t i = 0; i < d->n_leaves; i++) {
            dataset_gather(d, d->x, i, row);
            if (i % 7 == 0) {
                for (size_t m = 0; i && m < d->M; m++)
                    differ |= (row[m] != 0) != (first[m] != 0);
                memcpy(first, row, sizeof row);
            }
            kept = 0;
            for (size_t m = 0; m < d->M; m++) {
                kept += row[m] != 0 ? 1 : 0;
                assert_int_equal(row[m] != 0, first[m] != 0);
            }
            assert_int_equal(kept, 10);
        }
        dataset_free(d);
    }
    assert_true(differ);
}

static void names(void **state)
{
    (void)state;
    const phase_retrieval g = small(1);
    double truth[M_MOST];
    char name[64];
    dataset *d = make(&g, truth);
    dataset_leaf_name(d, 0, name, sizeof name);
    assert_string_equal(name, "edge1/client1");
    dataset_leaf_name(d, 20, name, sizeof name);
    assert_string_equal(name, "edge3/client21");
    dataset_free(d);
}

/* The noise is the same draws at every level: 40 dB are a factor of 100. It is never negative. */
static void noise_scales(void **state)
{
    (void)state;
    phase_retrieval g = small(9);
    double truth[M_MOST];
    dataset *quiet = make(&g, truth);
    g.snr_db = -20;
    dataset *loud = make(&g, truth);
    for (size_t i = 0; i < quiet->n_leaves; i++) {
        const double s = inner_product(quiet, i, truth);
        const double a = quiet->y[i] - s * s, b = loud->y[i] - s * s;
        assert_true(a > -1e-12 && fabs(b - 100 * a) < 1e-9 * (1 + b));
    }
    dataset_free(quiet);
    dataset_free(loud);
}

static void draws_stand_alone(void **state)
{
    (void)state;
    phase_retrieval g = small(4);
    double truth[M_MOST], other[M_MOST], a[M_MOST], b[M_MOST];
    dataset *d = make(&g, truth), *again = make(&g, other);
    assert_memory_equal(truth, other, g.features * sizeof *truth);
    assert_memory_equal(d->y, again->y, d->n_leaves * sizeof *d->y);
    g.edges = 5;
    dataset *larger = make(&g, other); /* more edges: the rows of the first ones stay */
    for (size_t i = 0; i < d->n_leaves; i++) {
        dataset_gather(d, d->x, i, a);
        dataset_gather(larger, larger->x, i, b);
        assert_memory_equal(a, b, d->M * sizeof *a);
    }
    g.seed = 5;
    dataset *next = make(&g, other);
    assert_memory_not_equal(truth, other, g.features * sizeof *truth);
    dataset_gather(next, next->x, 0, b);
    dataset_gather(d, d->x, 0, a);
    assert_memory_not_equal(a, b, d->M * sizeof *a);
    dataset_free(d);
    dataset_free(again);
    dataset_free(larger);
    dataset_free(next);
}

/* No edge may see the true model at all: then there is no signal, no noise, and still data. */
static void nothing_observed(void **state)
{
    (void)state;
    bool seen = false;
    for (uint64_t seed = 1; seed < 50 && !seen; seed++) {
        const phase_retrieval g = {1, 4, 2, 20, 0.5, 0.5, seed, 1};
        double truth[M_MOST];
        dataset *d = make(&g, truth);
        seen = inner_product(d, 0, truth) == 0;
        for (size_t i = 0; i < d->n_leaves && seen; i++)
            assert_true(d->y[i] == 0);
        dataset_free(d);
    }
    assert_true(seen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kept_counts),     cmocka_unit_test(noise_moments),     cmocka_unit_test(noise_level),
        cmocka_unit_test(signal_to_noise), cmocka_unit_test(supports),          cmocka_unit_test(names),
        cmocka_unit_test(noise_scales),    cmocka_unit_test(draws_stand_alone), cmocka_unit_test(nothing_observed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
