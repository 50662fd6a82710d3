/* The driver: threads change no bit, participation is the spec's, bytes are counted, the loop allocates nothing. */
#include "allocations.h"
#include "run/baseline.h"
#include "tools.h"

static const char *const paths[] = {"a", "b", "r/c", "r/d", ""};
static const size_t clients[] = {700, 3, 41, 2100, 5};

static leaf_class plain_leaves(double participation)
{
    return (leaf_class){.loss = {HFSAD_LOSS_PHASE_RETRIEVAL, 0.5, 1, 5, 0.3},
                        .rule = {{HFSAD_PENALTY_L1, 20, 1, 0, 0, 0}, {.c = 20, .alpha = sqrt(20)}},
                        .participation = participation,
                        .local_steps = 1};
}

static inner_class plain_inner(double participation)
{
    return (inner_class){{HFSAD_PENALTY_SCAD, 3, 0.1, 2.4, 0, 0},
                         {{HFSAD_PENALTY_L1, 900, 1, 0, 0, 0}, {.c = 40, .alpha = 100}},
                         participation,
                         false};
}

static double *play(const dataset *d, const plan *p, unsigned threads, int iterations, hfsad_figures *f, size_t *count)
{
    hfsad_error err;
    pool *t;
    sim *s;
    double *start = alloc_zero(d->M, sizeof *start);
    for (size_t m = 0; m < d->M; m++)
        start[m] = 0.2;
    ok(pool_create(&t, threads, &err), &err);
    ok(sim_create(&s, d, p, start, start, t, &err), &err);
    memset(f, 0, sizeof *f);
    for (int i = 0; i < iterations; i++) {
        sim_iterate(s);
        sim_measure(s, f);
    }
    double *state = whole_state(s, d, count);
    sim_free(s);
    pool_free(t);
    free(start);
    return state;
}

static void threads_change_no_bit(void **state)
{
    (void)state;
    rng r = {rng_key(1, rng_stream("sim")), 0};
    dataset *d = random_dataset(&r, 5, paths, clients, 25, false);
    for (int c = 0; c < 3; c++) {
        plan *p = simple_plan(d, plain_leaves(c ? 0.4 : 1), plain_inner(c == 2 ? 0.5 : 1), 3, c != 1);
        hfsad_figures one, f;
        size_t count, other;
        double *first = play(d, p, 1, 6, &one, &count);
        for (unsigned threads = 2; threads <= 5; threads++) {
            double *again = play(d, p, threads, 6, &f, &other);
            assert_int_equal(count, other);
            assert_memory_equal(first, again, count * sizeof *first);
            assert_memory_equal(&one, &f, sizeof f);
            free(again);
        }
        free(first);
        plan_free(p);
    }
    dataset_free(d);
}

/* A client steps in a round with probability p, and never sits out K_a global iterations in a row. */
static void participation(void **state)
{
    (void)state;
    enum { ITERATIONS = 60, K_A = 4 };
    rng r = {rng_key(2, rng_stream("sim")), 0};
    dataset *d = random_dataset(&r, 5, paths, clients, 3, false);
    plan *p = simple_plan(d, plain_leaves(0.1), plain_inner(0.1), 2, false);
    p->at_least_every = K_A;
    hfsad_error err;
    pool *t;
    sim *s;
    double start[3] = {1, 1, 1}, z[3], q[3];
    uint32_t *before = alloc_zero(d->n_leaves, sizeof *before), *idle = alloc_zero(d->n_leaves, sizeof *idle);
    ok(pool_create(&t, 2, &err), &err);
    ok(sim_create(&s, d, p, start, NULL, t, &err), &err);
    uint64_t steps = 0;
    for (uint32_t i = 1; i <= ITERATIONS; i++) {
        sim_iterate(s);
        for (size_t leaf = 0; leaf < d->n_leaves; leaf++) {
            const link_counters k = sim_leaf_link(s, leaf, z, q);
            idle[leaf] = k.k == before[leaf] ? idle[leaf] + 1 : 0;
            assert_true(idle[leaf] < K_A);
            assert_true((k.last == i) == (k.k != before[leaf]));
            steps += k.k - before[leaf];
            before[leaf] = k.k;
        }
        for (size_t e = 1; e < d->n_inner; e++)
            assert_true(i - sim_inner_link(s, e, z, q).last < K_A);
    }
    /* Expected steps: draws, plus the forced ones: a node idle for K_A - 1 iterations and again in both rounds. With
     * a = 0.9^2 the chance that an iteration passes without a draw, the state "idle j" has weight a^j, and of every
     * cycle a^K_A is forced. */
    const double a = 0.9 * 0.9, cycle = 1 + a + a * a + a * a * a;
    const double expected = (double)(d->n_leaves * ITERATIONS) * (2 * 0.1 + a * a * a * a / cycle);
    if (fabs((double)steps - expected) > 0.02 * expected)
        fail_msg("%llu steps, expected about %g", (unsigned long long)steps, expected);
    sim_free(s);
    pool_free(t);
    free(before);
    free(idle);
    plan_free(p);
    dataset_free(d);
}

/* A node that sits out keeps everything. Probability 0: only the K_a-th iteration moves anybody. */
static void who_sits_out_keeps_everything(void **state)
{
    (void)state;
    rng r = {rng_key(3, rng_stream("sim")), 0};
    dataset *d = random_dataset(&r, 5, paths, clients, 9, false);
    plan *p = simple_plan(d, plain_leaves(0), plain_inner(0), 3, true);
    p->at_least_every = 5;
    hfsad_figures f;
    size_t count;
    double *start = play(d, p, 1, 0, &f, &count), *four = play(d, p, 1, 4, &f, &count);
    assert_int_equal(f.bytes_up, 0);
    assert_memory_equal(start + 3 * 9, four + 3 * 9, (count - 3 * 9) * sizeof *four); /* all but the cloud */
    double *five = play(d, p, 1, 5, &f, &count);
    assert_int_equal(f.bytes_up, 8 * 9 * (d->n_leaves + d->n_inner - 1));
    assert_true(memcmp(start, five, count * sizeof *five) != 0);
    free(start);
    free(four);
    free(five);
    plan_free(p);
    dataset_free(d);
}

static void bytes(void **state)
{
    (void)state;
    rng r = {rng_key(4, rng_stream("sim")), 0};
    dataset *d = random_dataset(&r, 5, paths, clients, 4, false);
    plan *p = simple_plan(d, plain_leaves(1), plain_inner(1), 3, true);
    hfsad_figures f;
    size_t count;
    free(play(d, p, 1, 7, &f, &count));
    const uint64_t links = d->n_leaves + d->n_inner - 1, cloud = d->inner[0].n_inner + d->inner[0].n_leaves;
    assert_int_equal(f.bytes_up, 7 * 8 * 4 * (3 * (links - cloud) + cloud)); /* the cloud uses only the last */
    assert_int_equal(f.bytes_down, 7 * 8 * 4 * (3 * (links - cloud) + cloud));
    plan_free(p);
    dataset_free(d);
}

/* Consensus by tv links: squared loss without priors has the solution of the normal equations. */
static void finds_the_least_squares(void **state)
{
    (void)state;
    enum { M = 4 };
    rng r = {rng_key(5, rng_stream("sim")), 0};
    const char *const two[] = {"a", "b"};
    const size_t few[] = {30, 21};
    dataset *d = random_dataset(&r, 2, two, few, M, false);
    leaf_class c = plain_leaves(1);
    c.loss = (hfsad_loss){HFSAD_LOSS_SQUARED, 0.5, 1, INFINITY, 0.3};
    c.rule = (hfsad_link_rule){{HFSAD_PENALTY_L1, 60, 1, 0, 0, 0}, {.c = 2, .alpha = 2}};
    inner_class e = {
        {HFSAD_PENALTY_NONE, 0, 1, 3, 0, 0}, {{HFSAD_PENALTY_L1, 3000, 1, 0, 0, 0}, {.c = 10, .alpha = 2}}, 1, false};
    plan *p = simple_plan(d, c, e, 2, true);
    hfsad_figures f;
    size_t count;
    double *have = play(d, p, 1, 4000, &f, &count);
    double a[M][M + 1] = {{0}}, x[M];
    for (size_t leaf = 0; leaf < d->n_leaves; leaf++) {
        dataset_gather(d, d->x, leaf, x);
        for (size_t i = 0; i < M; i++) {
            for (size_t j = 0; j < M; j++)
                a[i][j] += x[i] * x[j];
            a[i][M] += x[i] * d->y[leaf];
        }
    }
    for (size_t i = 0; i < M; i++)
        for (size_t k = 0; k < M; k++) {
            const double by = k == i ? 0 : a[k][i] / a[i][i];
            for (size_t j = 0; j <= M; j++)
                a[k][j] -= by * a[i][j];
        }
    for (size_t m = 0; m < M; m++)
        if (fabs(have[m] - a[m][M] / a[m][m]) > 2e-3) /* the smoothing leaves a bias that shrinks like 1/sqrt(k) */
            fail_msg("w_0[%zu] = %.9g, normal equations %.9g", m, have[m], a[m][M] / a[m][m]);
    assert_true(f.consensus_gap < 2e-2);
    free(have);
    plan_free(p);
    dataset_free(d);
}

/* Clients under two edges, three features, the squared loss: for the stop rule. */
typedef struct {
    dataset *d;
    plan *p;
    pool *t;
    sim *s;
} small;

static small small_open(uint64_t seed, size_t first, size_t second, double participation, double absolute,
                        double relative)
{
    rng r = {rng_key(seed, rng_stream("sim")), 0};
    const char *const two[] = {"a", "b"};
    const size_t few[] = {first, second};
    const double start[3] = {0};
    hfsad_error err;
    small o = {.d = random_dataset(&r, 2, two, few, 3, false)};
    leaf_class c = plain_leaves(participation);
    c.loss.kind = HFSAD_LOSS_SQUARED;
    o.p = simple_plan(o.d, c, plain_inner(participation), 1, true);
    o.p->at_least_every = 10;
    o.p->stop_absolute = absolute;
    o.p->stop_relative = relative;
    ok(pool_create(&o.t, 1, &err), &err);
    ok(sim_create(&o.s, o.d, o.p, start, NULL, o.t, &err), &err);
    return o;
}

static void small_close(small *o)
{
    sim_free(o->s);
    pool_free(o->t);
    plan_free(o->p);
    dataset_free(o->d);
}

static void stops_on_tolerances(void **state)
{
    (void)state;
    hfsad_figures f;
    for (int loose = 0; loose < 2; loose++) {
        small o = small_open(6, 10, 12, 1, loose ? 1e6 : 1e-300, 0);
        sim_measure(o.s, &f);
        assert_false(sim_converged(o.s)); /* the start never counts */
        sim_iterate(o.s);
        sim_measure(o.s, &f);
        assert_int_equal(sim_converged(o.s), loose);
        small_close(&o);
    }
}

/* Squared sizes of what the residuals compare, from the state. */
typedef struct {
    double w, copies, multipliers;
} sizes;

static sizes sizes_of(const small *o)
{
    enum { M = 3 };
    sizes z2 = {0, 0, 0};
    double w[M], z[M], q[M];
    for (size_t node = 1; node < o->d->n_inner + o->d->n_leaves; node++) {
        const bool inner = node < o->d->n_inner;
        const size_t leaf = node - o->d->n_inner, up = inner ? 0 : dataset_parent(o->d, leaf);
        const link_counters k = inner ? sim_inner_link(o->s, node, z, q) : sim_leaf_link(o->s, leaf, z, q);
        const hfsad_link_rule *rule = inner ? &o->p->inner[node].rule : &o->p->leaf_classes[0].rule;
        if (inner)
            memcpy(w, sim_inner_model(o->s, node), sizeof w);
        else
            sim_leaf_model(o->s, leaf, w);
        for (size_t m = 0; m < M; m++) {
            const double parent = sim_inner_model(o->s, up)[m];
            const double l = hfsad_penalty_gradient(&rule->penalty, q[m] - z[m], rule->schedule.alpha / sqrt(k.k));
            z2.w += w[m] * w[m] + parent * parent;
            z2.copies += z[m] * z[m] + q[m] * q[m];
            z2.multipliers += 2 * l * l;
        }
    }
    return z2;
}

/* The tolerances are those of docs/algorithm.md, recomputed from the state. */
static void tolerances_are_the_documented_ones(void **state)
{
    (void)state;
    hfsad_figures f;
    size_t met = 0, missed = 0;
    for (int i = 0; i < 60; i++) {
        const double relative = exp(-14 + 0.3 * i), absolute = i % 2 ? 0 : 1e-3;
        small o = small_open(9, 4, 2, 1, absolute, relative);
        for (int k = 0; k < 40; k++)
            sim_iterate(o.s);
        sim_measure(o.s, &f);
        const sizes z2 = sizes_of(&o);
        const double floor = sqrt(2.0 * 3 * 8) * absolute; /* 8 links of 3 features, two constraints each */
        const bool want = f.primal_residual <= floor + relative * sqrt(fmax(z2.w, z2.copies)) &&
                          f.dual_residual <= floor + relative * sqrt(z2.multipliers);
        assert_int_equal(sim_converged(o.s), want);
        met += want;
        missed += !want;
        small_close(&o);
    }
    assert_true(met > 5 && missed > 5);
}

/* With participation by chance an iteration in which nobody steps has no dual residual: that is not convergence. */
static void an_idle_iteration_is_no_convergence(void **state)
{
    (void)state;
    hfsad_figures f;
    small o = small_open(8, 1, 1, 0.05, 1e-3, 0);
    size_t idle = 0;
    for (uint64_t i = 1, met = 0; i <= 3000; i++) {
        sim_iterate(o.s);
        sim_measure(o.s, &f);
        idle += f.dual_residual == 0;
        const double n = sqrt(2.0 * 4 * 3) * 1e-3;
        met = f.primal_residual <= n && f.dual_residual <= n ? met + 1 : 0;
        assert_int_equal(sim_converged(o.s), met > 10);
    }
    assert_true(idle > 100);
    assert_true(sim_converged(o.s));
    small_close(&o);
}

static void the_loop_allocates_nothing(void **state)
{
    (void)state;
    rng r = {rng_key(7, rng_stream("sim")), 0};
    dataset *d = random_dataset(&r, 5, paths, clients, 25, false);
    leaf_class c = plain_leaves(0.7);
    c.loss.box = 0.3; /* so that the box's sort runs too */
    plan *p = simple_plan(d, c, plain_inner(0.7), 2, true);
    hfsad_error err;
    pool *t;
    sim *s;
    hfsad_figures f;
    double start[25] = {0.1};
    const size_t before = allocations;
    ok(pool_create(&t, 2, &err), &err);
    ok(sim_create(&s, d, p, start, NULL, t, &err), &err);
    assert_true(allocations > before + 10); /* the counter works */
    const size_t taken = allocations;
    for (int i = 0; i < 10; i++) {
        sim_iterate(s);
        sim_measure(s, &f);
    }
    assert_int_equal(allocations, taken);
    sim_free(s);
    pool_free(t);
    plan_free(p);
    dataset_free(d);
}

/* The loop of the baselines neither. */
static void the_baselines_loop_allocates_nothing(void **state)
{
    (void)state;
    rng r = {rng_key(8, rng_stream("sim")), 0};
    hfsad_error err;
    dataset_builder *builder;
    dataset *d;
    ok(dataset_builder_create(&builder, 25, &err), &err);
    dataset_builder_use_rows(builder);
    for (int i = 0; i < 120; i++) {
        double x[25];
        char name[32];
        snprintf(name, sizeof name, "client%d", i / 3);
        for (size_t m = 0; m < 25; m++)
            x[m] = rng_next_normal(&r);
        ok(dataset_builder_add(builder, i < 60 ? "a" : "b", name, rng_next_normal(&r), x, NULL, 0, &err), &err);
    }
    ok(dataset_builder_finish(builder, &d, &err), &err);
    plan *p = simple_plan(d, plain_leaves(0.7), plain_inner(0.7), 2, true);
    const baseline_rule rule = {{STEP_POWER, 0.1, 0.5}, 1};
    pool *t;
    baseline *b;
    hfsad_figures f;
    double start[25] = {0.1};
    ok(pool_create(&t, 2, &err), &err);
    const size_t before = allocations;
    ok(baseline_create(&b, d, p, &rule, start, NULL, t, &err), &err);
    assert_true(allocations > before + 5);
    const size_t taken = allocations;
    for (int i = 0; i < 10; i++) {
        baseline_iterate(b);
        baseline_measure(b, &f);
    }
    assert_int_equal(allocations, taken);
    baseline_free(b);
    pool_free(t);
    plan_free(p);
    dataset_free(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_change_no_bit),
        cmocka_unit_test(participation),
        cmocka_unit_test(who_sits_out_keeps_everything),
        cmocka_unit_test(bytes),
        cmocka_unit_test(finds_the_least_squares),
        cmocka_unit_test(stops_on_tolerances),
        cmocka_unit_test(an_idle_iteration_is_no_convergence),
        cmocka_unit_test(tolerances_are_the_documented_ones),

        cmocka_unit_test(the_loop_allocates_nothing),
        cmocka_unit_test(the_baselines_loop_allocates_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
