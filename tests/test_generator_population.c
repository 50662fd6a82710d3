/* Clients with many rows: the quantile of y given x, correlations, supports, minorities, and draws that stand alone. */
#include "data/generated.h"
#include "tools.h"

enum { M_MOST = 40 };

static population_law small(uint64_t seed)
{
    return (population_law){
        .edges = 4,
        .clients = 5,
        .features = 12,
        .nonzero = 3,
        .rho = 0.5,
        .task = TASK_REGRESSION,
        .noise = {.kind = NOISE_STUDENT, .scale = 1, .df = 2, .share = 0.1, .factor = 10},
        .tau = 0.5,
        .groups = 1,
        .minority = 0.1,
        .distance = 2,
        .seed = seed,
    };
}

static population *make(const population_law *law)
{
    hfsad_error err;
    population *p;
    ok(population_create(&p, law, &err), &err);
    return p;
}

static double plain_dot(size_t M, const double *a, const double *b)
{
    double sum = 0;
    for (size_t m = 0; m < M; m++)
        sum += a[m] * b[m];
    return sum;
}

static void share_is(const char *what, uint64_t seed, size_t count, size_t of, double wanted)
{
    const double share = (double)count / (double)of;
    if (!(fabs(share - wanted) < 5 * sqrt(wanted * (1 - wanted) / (double)of)))
        fail_msg("%s, seed %d: %g of %zu instead of %g", what, (int)seed, share, of, wanted);
}

/* y lies below <x,w> in the share tau of the rows, be |x_1| small or large, for every law of the noise. */
static void quantile_given_x(void **state)
{
    (void)state;
    enum { ROWS = 400 };
    const double levels[] = {0.1, 0.5, 0.8};
    for (int noise = NOISE_GAUSSIAN; noise <= NOISE_LOGISTIC; noise++)
        for (int k = 0; k < 6; k++) {
            population_law law = small(30 + (uint64_t)k);
            law.noise.kind = (noise_kind)noise;
            law.tau = levels[k % 3];
            law.heteroscedastic = k >= 3;
            law.shift = k % 2;
            population *p = make(&law);
            size_t below[2] = {0}, all[2] = {0};
            for (size_t client = 0; client < 20; client++)
                for (size_t i = 0; i < ROWS; i++) {
                    double x[M_MOST], y;
                    population_fill(p, client, ROWS_TRAIN, i, 1, x, &y);
                    const int side = fabs(x[0]) > 0.7;
                    all[side]++;
                    below[side] += y <= plain_dot(law.features, x, population_truth(p, 0));
                }
            share_is("x_1 near 0", law.seed, below[0], all[0], law.tau);
            share_is("x_1 far from 0", law.seed, below[1], all[1], law.tau);
            population_free(p);
        }
}

/* Half of the rows have noise beyond the median of its size, times (1 + |x_1|)/2 where that is asked for. */
static void noise_spread(void **state)
{
    (void)state;
    for (int wide = 0; wide < 2; wide++) {
        population_law law = small(8);
        law.heteroscedastic = wide;
        law.noise.kind = NOISE_LAPLACE;
        law.noise.scale = 0.2;
        population *p = make(&law);
        size_t beyond[2] = {0}, all[2] = {0};
        for (size_t i = 0; i < 8000; i++) {
            double x[M_MOST], y;
            population_fill(p, i % 20, ROWS_TEST, i / 20, 1, x, &y);
            const int side = fabs(x[0]) > 1;
            const double noise = fabs(y - plain_dot(law.features, x, population_truth(p, 0)));
            all[side]++;
            beyond[side] += noise > 0.2 * log(2) * (wide ? (1 + fabs(x[0])) / 2 : 1);
        }
        share_is("small |x_1|", law.seed, beyond[0], all[0], 0.5);
        share_is("large |x_1|", law.seed, beyond[1], all[1], 0.5);
        population_free(p);
    }
}

/* Mean over the rows of (feature a of row i) (feature b of row i + lag), each less its mean. */
static double covariance(size_t rows, size_t M, const double *x, const double *mean, size_t a, size_t b, size_t lag)
{
    double sum = 0;
    for (size_t i = 0; i + lag < rows; i++)
        sum += (x[i * M + a] - mean[a]) * (x[(i + lag) * M + b] - mean[b]);
    return sum / (double)(rows - lag);
}

/* Within a client the covariances are rho^|i-j|, and 0 from one row to the next; the standard error of one is at most
 * sqrt(2/rows). */
static void correlations(void **state)
{
    (void)state;
    enum { ROWS = 20000, M = 6 };
    const double rhos[] = {0.5, -0.8, 0};
    for (size_t k = 0; k < 3; k++) {
        population_law law = small(40 + k);
        law.features = M;
        law.rho = rhos[k];
        law.shift = k == 1 ? 3 : 0;
        population *p = make(&law);
        double *x = alloc_raw((size_t)ROWS * M, sizeof *x), *y = alloc_raw(ROWS, sizeof *y);
        double mean[M] = {0};
        population_fill(p, 7, ROWS_TRAIN, 0, ROWS, x, y);
        for (size_t i = 0; i < (size_t)ROWS * M; i++)
            mean[i % M] += x[i] / ROWS;
        for (size_t i = 0; i < 2 * (size_t)M * M; i++) {
            const size_t a = i / M % M, b = i % M, lag = i / (M * M);
            const double wanted = lag ? 0 : pow(law.rho, fabs((double)a - (double)b));
            const double found = covariance(ROWS, M, x, mean, a, b, lag);
            if (!(fabs(found - wanted) < 5 * sqrt(2.0 / ROWS)))
                fail_msg("seed %d, rho %g: features %zu and %zu, %zu rows apart, have %g", (int)law.seed, law.rho, a, b,
                         lag, found);
        }
        free(x);
        free(y);
        population_free(p);
    }
}

/* A client's means are its own, in both parts alike, and vary as the shift says. */
static void shifts(void **state)
{
    (void)state;
    enum { CLIENTS = 300, ROWS = 50, M = 4 };
    population_law law = small(50);
    law.clients = CLIENTS;
    law.features = M;
    law.shift = 2;
    population *p = make(&law);
    double variance = 0, between = 0;
    for (size_t client = 0; client < CLIENTS; client++) {
        double x[2][ROWS * M], y[ROWS], mean[2][M] = {0};
        for (int part = 0; part < 2; part++) {
            population_fill(p, client, (population_part)part, 0, ROWS, x[part], y);
            for (size_t i = 0; i < (size_t)ROWS * M; i++)
                mean[part][i % M] += x[part][i] / ROWS;
        }
        for (size_t m = 0; m < M; m++) {
            variance += mean[0][m] * mean[0][m] / (CLIENTS * M);
            between += (mean[0][m] - mean[1][m]) * (mean[0][m] - mean[1][m]) / (CLIENTS * M);
        }
    }
    assert_true(fabs(variance / (4 + 1.0 / ROWS) - 1) < 5 * sqrt(2.0 / (CLIENTS * M)));
    assert_true(fabs(between / (2.0 / ROWS) - 1) < 5 * sqrt(2 * 1.7 / (CLIENTS * M))); /* 1.7: rho = 0.5 */
    population_free(p);
}

static size_t count_nonzero(size_t M, const double *w)
{
    size_t n = 0;
    for (size_t m = 0; m < M; m++)
        n += w[m] != 0 ? 1 : 0;
    return n;
}

static void models(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 30; seed++) {
        population_law law = small(seed);
        law.groups = 2 + seed % 4;
        law.nonzero = 1 + seed % 12;
        law.minority = 0.3;
        population *p = make(&law);
        const double *first = population_truth(p, 0);
        assert_int_equal(count_nonzero(law.features, first), law.nonzero);
        for (size_t m = 0; m < law.features; m++)
            assert_true(first[m] == 0 || (fabs(first[m]) > 0.5 && fabs(first[m]) < 1.5));
        for (size_t g = 1; g < law.groups; g++) {
            const double *other = population_truth(p, g);
            size_t differ = 0;
            for (size_t m = 0; m < law.features; m++) {
                differ += other[m] != first[m] ? 1 : 0;
                assert_true(other[m] == first[m] || fabs(fabs(other[m] - first[m]) - law.distance) < 1e-12);
            }
            assert_int_equal(differ, law.nonzero);
            for (size_t h = 0; h < g; h++)
                assert_memory_not_equal(other, population_truth(p, h), law.features * sizeof *other);
        }
        population_free(p);
    }
}

/* One feature has two models at a distance: a third is refused. */
static void too_many_groups(void **state)
{
    (void)state;
    hfsad_error err;
    population_law law = small(3);
    law.features = law.nonzero = 1;
    law.minority = 0.4;
    law.groups = 3;
    population *p = make(&law);
    population_free(p);
    law.groups = 4;
    assert_int_equal(population_create(&p, &law, &err), HFSAD_ERROR_INPUT);
    assert_non_null(strstr(err.message, "fewer groups"));
    assert_null(p);
}

/* The minority has its share of the clients to the rounding, in every run of edges from the first; its groups differ
 * by one client at most. */
static void minority_by_client(void **state)
{
    (void)state;
    bool differ = false;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        population_law law = small(seed);
        law.edges = 7;
        law.clients = 33;
        law.groups = 2 + seed % 3;
        law.minority = 0.05 + 0.04 * (double)seed;
        population *p = make(&law);
        size_t members[GROUPS_MOST] = {0}, others = 0;
        for (size_t client = 0; client < 7 * 33; client++) {
            const size_t g = population_group(p, client);
            members[g]++;
            others += g > 0;
            assert_int_equal(population_edge(p, client), client / 33);
            if (client % 33 == 32)
                assert_true(fabs((double)others - law.minority * (double)(client + 1)) <= 0.5 + 1e-9);
            differ |= seed > 1 && client == 5 && g > 0;
        }
        assert_int_equal(others, population_minority(&law));
        for (size_t g = 2; g < law.groups; g++)
            assert_true(members[g] == members[1] || members[g] + 1 == members[1]);
        population_free(p);
    }
    assert_true(differ);
}

static void minority_by_edge(void **state)
{
    (void)state;
    size_t chosen[10] = {0};
    for (uint64_t seed = 1; seed <= 60; seed++) {
        population_law law = small(seed);
        law.edges = 10;
        law.groups = 3;
        law.minority = 0.2;
        law.minority_by = MINORITY_BY_EDGE;
        population *p = make(&law);
        size_t members[3] = {0};
        for (size_t client = 0; client < 50; client++) {
            const size_t g = population_group(p, client);
            assert_int_equal(g, population_group(p, client / 5 * 5));
            members[g]++;
            chosen[client / 5] += g > 0;
        }
        assert_int_equal(members[0], 40);
        assert_int_equal(members[1], 5);
        assert_int_equal(members[2], 5);
        population_free(p);
    }
    for (size_t l = 0; l < 10; l++)
        assert_true(chosen[l] > 0 && chosen[l] < 5 * 60);
}

/* Each client's rows follow the model of its group. */
static void groups_are_followed(void **state)
{
    (void)state;
    enum { ROWS = 50 };
    population_law law = small(12);
    law.groups = 3;
    law.minority = 0.5;
    law.noise.scale = 0;
    population *p = make(&law);
    for (size_t client = 0; client < 20; client++)
        for (size_t i = 0; i < ROWS; i++) {
            double x[M_MOST], y;
            population_fill(p, client, ROWS_TRAIN, i, 1, x, &y);
            const double *w = population_truth(p, population_group(p, client));
            assert_true(fabs(y - plain_dot(law.features, x, w)) < 1e-12);
        }
    population_free(p);
}

/* With logistic noise the label is 1 with the probability 1/(1 + exp(-<x,w>/scale)). */
static void classes(void **state)
{
    (void)state;
    enum { ROWS = 1000, BINS = 4 };
    population_law law = small(14);
    law.task = TASK_CLASSIFICATION;
    law.noise = (noise_law){.kind = NOISE_LOGISTIC, .scale = 0.7};
    law.tau = 0.9; /* of no account */
    population *p = make(&law);
    double positive[BINS] = {0}, wanted[BINS] = {0}, variance[BINS] = {0};
    for (size_t client = 0; client < 20; client++)
        for (size_t i = 0; i < ROWS; i++) {
            double x[M_MOST], y;
            population_fill(p, client, ROWS_TRAIN, i, 1, x, &y);
            assert_true(y == 1 || y == -1);
            const double s = plain_dot(law.features, x, population_truth(p, 0)) / 0.7, chance = 1 / (1 + exp(-s));
            const int bin = s < -1 ? 0 : s < 0 ? 1 : s < 1 ? 2 : 3;
            positive[bin] += y > 0;
            wanted[bin] += chance;
            variance[bin] += chance * (1 - chance);
        }
    for (int bin = 0; bin < BINS; bin++)
        assert_true(variance[bin] > 50 && fabs(positive[bin] - wanted[bin]) < 5 * sqrt(variance[bin]));
    population_free(p);
}

/* Row r of a client is the same whatever else there is; another seed, part, client or row is another one. */
static void rows_stand_alone(void **state)
{
    (void)state;
    enum { ROWS = 9 };
    population_law law = small(17);
    population *p = make(&law), *again = make(&law);
    law.edges = 9;
    law.clients = 31;
    population *larger = make(&law);
    law.seed++;
    population *other = make(&law);
    double x[ROWS * M_MOST], y[ROWS], a[M_MOST], b;
    const size_t bytes = law.features * sizeof *x;
    population_fill(p, 13, ROWS_TRAIN, 0, ROWS, x, y);
    for (size_t i = ROWS; i-- > 0;) {
        const population *const same[] = {p, again, larger};
        const double *row = x + i * law.features;
        for (int k = 0; k < 3; k++) {
            population_fill(same[k], 13, ROWS_TRAIN, i, 1, a, &b);
            assert_memory_equal(a, row, bytes);
            assert_true(b == y[i]);
        }
        population_fill(p, 13, ROWS_TEST, i, 1, a, &b);
        assert_true(a[0] != row[0] && a[law.features - 1] != row[law.features - 1]);
        population_fill(p, 12, ROWS_TRAIN, i, 1, a, &b);
        assert_true(a[0] != row[0]);
        population_fill(other, 13, ROWS_TRAIN, i, 1, a, &b);
        assert_true(a[0] != row[0]);
        assert_true(i == 0 || row[0] != x[(i - 1) * law.features]);
    }
    population_free(p);
    population_free(again);
    population_free(larger);
    population_free(other);
}

typedef struct {
    const population *p;
    size_t next, until;
} visit;

static bool compare_row(void *context, const generated_row *row)
{
    visit *v = context;
    const size_t client = v->next / 3;
    double x[M_MOST], y;
    char name[32];
    population_fill(v->p, client, ROWS_TEST, v->next % 3, 1, x, &y);
    assert_memory_equal(x, row->x, 12 * sizeof *x);
    assert_true(y == row->y);
    snprintf(name, sizeof name, "client%zu", client + 1);
    assert_string_equal(name, row->client);
    snprintf(name, sizeof name, "edge%zu", client / 5 + 1);
    assert_string_equal(name, row->edge);
    return ++v->next < v->until;
}

static void rows_in_order(void **state)
{
    (void)state;
    hfsad_error err;
    const population_law law = small(23);
    population *p = make(&law);
    visit all = {p, 0, 1000}, some = {p, 0, 7};
    ok(population_rows(p, ROWS_TEST, 3, compare_row, &all, &err), &err);
    assert_int_equal(all.next, 20 * 3);
    ok(population_rows(p, ROWS_TEST, 3, compare_row, &some, &err), &err);
    assert_int_equal(some.next, 7);
    population_free(p);
}

static void as_dataset(void **state)
{
    (void)state;
    hfsad_error err;
    const population_law law = small(24);
    population *p = make(&law);
    dataset *d;
    ok(population_dataset(p, ROWS_TRAIN, 1, &d, &err), &err);
    assert_int_equal(d->n_leaves, 20);
    assert_int_equal(d->n_inner, 5);
    for (size_t leaf = 0; leaf < 20; leaf++) {
        double x[M_MOST], row[M_MOST], y;
        char name[64], wanted[64];
        population_fill(p, leaf, ROWS_TRAIN, 0, 1, x, &y);
        dataset_gather(d, d->x, leaf, row);
        assert_memory_equal(x, row, law.features * sizeof *x);
        assert_true(d->y[leaf] == y);
        dataset_leaf_name(d, leaf, name, sizeof name);
        snprintf(wanted, sizeof wanted, "edge%zu/client%zu", leaf / 5 + 1, leaf + 1);
        assert_string_equal(name, wanted);
    }
    dataset_free(d);
    population_free(p);
}

static void as_dataset_of_many_rows(void **state)
{
    (void)state;
    enum { ROWS = 3 };
    hfsad_error err;
    const population_law law = small(25);
    population *p = make(&law);
    dataset *d;
    ok(population_dataset(p, ROWS_TEST, ROWS, &d, &err), &err);
    assert_int_equal(d->n_leaves, 20);
    assert_int_equal(d->n_rows, 20 * ROWS);
    for (size_t leaf = 0; leaf < 20; leaf++) {
        double x[ROWS * M_MOST], y[ROWS];
        const client_rows rows = dataset_rows(d, leaf);
        population_fill(p, leaf, ROWS_TEST, 0, ROWS, x, y);
        assert_int_equal(rows.count, ROWS);
        assert_memory_equal(rows.x, x, ROWS * law.features * sizeof *x);
        assert_memory_equal(rows.y, y, sizeof y);
    }
    dataset_free(d);
    population_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantile_given_x),
        cmocka_unit_test(noise_spread),
        cmocka_unit_test(correlations),
        cmocka_unit_test(shifts),
        cmocka_unit_test(models),
        cmocka_unit_test(too_many_groups),
        cmocka_unit_test(minority_by_client),
        cmocka_unit_test(minority_by_edge),
        cmocka_unit_test(groups_are_followed),
        cmocka_unit_test(classes),
        cmocka_unit_test(rows_stand_alone),
        cmocka_unit_test(rows_in_order),
        cmocka_unit_test(as_dataset),
        cmocka_unit_test(as_dataset_of_many_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
