/*
 * FedAvg and FedProx against a second implementation that keeps plain arrays and recursion, against hand-written loops,
 * and against solutions that are known.
 */
#include "defined_losses.h"

#include "core/kernels.h"
#include "run/baseline.h"
#include "spec/settings.h"

static const uint64_t SEED = 20260501;

static void assert_near(double value, double wanted, double tolerance)
{
    if (!(fabs(value - wanted) <= tolerance))
        fail_msg("seed %llu: %.17g instead of %.17g", (unsigned long long)SEED, value, wanted);
}

/* Clients with 1 to `most` rows each below the given paths; row weights; an intercept's constant where not 0, and then
 * F is one less than M. */
static dataset *many_rows(rng *r, size_t edges, const char *const *paths, const size_t *clients, size_t M, size_t most,
                          bool labels, double constant)
{
    hfsad_error err = {0};
    dataset_builder *b;
    dataset *d;
    double *x = alloc_zero(M, sizeof *x);
    ok(dataset_builder_create(&b, M, &err), &err);
    dataset_builder_use_rows(b);
    for (size_t e = 0, number = 0; e < edges; e++)
        for (size_t c = 0; c < clients[e]; c++) {
            char name[32];
            snprintf(name, sizeof name, "client%zu", ++number);
            for (size_t rows = 1 + below(r, most); rows > 0; rows--) {
                for (size_t m = 0; m < M; m++)
                    x[m] = rng_next_normal(r);
                const double s = x[0] + rng_next_normal(r);
                ok(dataset_builder_add(b, paths[e], name, labels ? (s > 0 ? 1 : -1) : fabs(s), x, NULL, 0, &err), &err);
            }
        }
    ok(dataset_builder_finish(b, &d, &err), &err);
    free(x);
    d->rows.weight = alloc_zero(d->n_rows, sizeof(double));
    for (size_t i = 0; i < d->n_rows; i++)
        d->rows.weight[i] = uniform(r, 0.5, 2);
    if (constant != 0) {
        const size_t F = M - 1;
        for (size_t i = 0; i < d->n_rows; i++)
            memmove(d->rows.x + i * F, d->rows.x + i * M, F * sizeof(double));
        d->rows.F = F;
        d->rows.constant = constant;
    }
    return d;
}

/* Sub-gradient of the weighted mean of the client's losses at w. */
static void mean_gradient(const dataset *d, size_t leaf, const hfsad_loss *loss, const double *w, double *g)
{
    const client_rows rows = dataset_rows(d, leaf);
    double total = 0;
    for (size_t m = 0; m < d->M; m++)
        g[m] = 0;
    for (size_t i = 0; i < rows.count; i++) {
        const double *x = rows.x + i * rows.F;
        double s = rows.constant != 0 ? rows.constant * w[rows.F] : 0;
        for (size_t m = 0; m < rows.F; m++)
            s += x[m] * w[m];
        const double a = rows.weight[i] * defined_slope(loss, rows.y[i], s, 1);
        for (size_t m = 0; m < rows.F; m++)
            g[m] += a * x[m];
        if (rows.constant != 0)
            g[rows.F] += a * rows.constant;
        total += rows.weight[i];
    }
    for (size_t m = 0; m < d->M; m++)
        g[m] /= total;
}

/* The rule of these settings; the loss is that of the plan's clients. */
static baseline_rule rule_of(hfsad_spec *spec, const dataset *d, const plan *p, const double *start)
{
    hfsad_error err = {0};
    local_survey local;
    baseline_rule rule;
    spec->loss.kind = (int)p->leaf_classes[0].loss.kind;
    spec->loss.scale = p->leaf_classes[0].mean ? SCALE_MEAN : SCALE_SUM;
    ok(local_survey_make(&local, spec, d, &err), &err);
    const surveyor ask = local_surveyor(&local);
    ok(baseline_rule_of(&rule, spec, d, p, start, &ask, &err), &err);
    local_survey_free(&local);
    return rule;
}

static baseline *make(const dataset *d, const plan *p, const baseline_rule *rule, const double *start, pool *threads)
{
    hfsad_error err = {0};
    baseline *b;
    ok(baseline_create(&b, d, p, rule, start, NULL, threads, &err), &err);
    return b;
}

static pool *threads_of(unsigned count)
{
    hfsad_error err = {0};
    pool *threads;
    ok(pool_create(&threads, count, &err), &err);
    return threads;
}

static const leaf_class PLAIN_LEAF = {
    .loss = {HFSAD_LOSS_ABSOLUTE, 0.5, 1, INFINITY, 0.3}, .participation = 1, .local_steps = 1};
static const inner_class PLAIN_INNER = {.participation = 1};

/* One client and one local step: the sub-gradient method, for every loss. */
static void one_client(void **state)
{
    (void)state;
    static const char *const paths[] = {"edge"};
    static const size_t one[] = {1};
    enum { M = 5, ITERATIONS = 40 };
    pool *threads = threads_of(1);
    for (size_t i = 0; i < LOSSES; i++) {
        const hfsad_loss_kind kind = kind_at(i);
        rng r = {rng_key(SEED, (uint64_t)kind), 0};
        dataset *d = many_rows(&r, 1, paths, one, M, 9, has_labels(kind), 0);
        leaf_class leaf = PLAIN_LEAF;
        leaf.loss = (hfsad_loss){kind, 0.3, 0.7, kind % 2 ? 0.4 : INFINITY, 0.3};
        plan *p = simple_plan(d, leaf, PLAIN_INNER, 3, true);
        const baseline_rule rule = {{STEP_POWER, 0.2, 0.5}, 0};
        double start[M], w[M], g[M];
        for (size_t m = 0; m < M; m++)
            start[m] = w[m] = uniform(&r, -0.3, 0.3);
        baseline *b = make(d, p, &rule, start, threads);
        for (int k = 1; k <= ITERATIONS * 3; k++) {
            mean_gradient(d, 0, &leaf.loss, w, g);
            for (size_t m = 0; m < M; m++) {
                w[m] -= 0.2 / sqrt(k) * g[m];
                if (fabs(w[m]) > leaf.loss.box)
                    w[m] = copysign(leaf.loss.box, w[m]);
            }
            if (k % 3)
                continue;
            baseline_iterate(b);
            for (size_t m = 0; m < M; m++)
                if (!(fabs(baseline_inner_model(b, 0)[m] - w[m]) <= 1e-10))
                    fail_msg("seed %llu, loss %d, step %d: %.17g instead of %.17g", (unsigned long long)SEED, kind, k,
                             baseline_inner_model(b, 0)[m], w[m]);
        }
        baseline_free(b);
        plan_free(p);
        dataset_free(d);
    }
    pool_free(threads);
}

/* The second implementation: models in plain arrays, a node at a time, by recursion. */
enum { F = 4, M = 5, LEAVES = 9, NODES = 4 };

typedef struct {
    const dataset *d;
    const plan *p;
    double t0, rho, t;
    double w[LEAVES][M], inner[NODES][M];
    bool moved[LEAVES], inner_moved[NODES], sent[NODES];
    int last[LEAVES], inner_last[NODES];
    double since[NODES];
    int round, iteration;
} naive;

static bool takes(const naive *n, double probability, const char *name, int last, bool final)
{
    const double u = rng_uniform(rng_key(n->p->seed, rng_stream(name)), (uint64_t)n->round);
    return u < probability || (final && n->iteration - last >= (int)n->p->at_least_every);
}

static double mass_of(const naive *n, size_t leaf)
{
    double sum = 0;
    for (size_t i = n->d->rows.first[leaf]; i < n->d->rows.first[leaf + 1]; i++)
        sum += n->d->rows.weight[i];
    return n->p->leaf_classes[0].mean ? 1 : sum;
}

static double mass_below(const naive *n, size_t i)
{
    const inner_node *node = &n->d->inner[i];
    double sum = 0;
    for (size_t c = 0; c < node->n_leaves; c++)
        sum += mass_of(n, node->first_leaf + c);
    for (size_t c = 0; c < node->n_inner; c++)
        sum += mass_below(n, node->first_inner + c);
    return sum;
}

static bool naive_average(naive *n, size_t i)
{
    const inner_node *node = &n->d->inner[i];
    double sum[M] = {0}, total = 0;
    for (size_t c = 0; c < node->n_leaves; c++) {
        const size_t leaf = node->first_leaf + c;
        for (size_t m = 0; n->moved[leaf] && m < M; m++)
            sum[m] += mass_of(n, leaf) * n->w[leaf][m];
        total += n->moved[leaf] ? mass_of(n, leaf) : 0;
    }
    double shared = n->p->leaf_classes[0].rule.penalty.free ? 0 : total, shared_sum = shared > 0 ? sum[F] : 0;
    for (size_t c = node->first_inner; c < node->first_inner + node->n_inner; c++) {
        const double mass = n->inner_moved[c] ? mass_below(n, c) : 0;
        for (size_t m = 0; m < M; m++)
            sum[m] += mass * n->inner[c][m];
        total += mass;
        shared += n->p->inner[c].rule.penalty.free ? 0 : mass;
        shared_sum += n->p->inner[c].rule.penalty.free ? 0 : mass * n->inner[c][F];
    }
    if (total == 0)
        return false;
    const hfsad_penalty *prior = &n->p->inner[i].prior; /* l1 */
    const double cut = prior->weight * prior->lambda * n->since[i] / mass_below(n, i);
    for (size_t m = 0; m < F; m++)
        n->inner[i][m] = copysign(fmax(fabs(sum[m] / total) - cut, 0), sum[m]);
    n->inner[i][F] = shared > 0 ? shared_sum / shared : sum[F] / total;
    n->since[i] = 0;
    return true;
}

static void naive_send(naive *n, size_t i)
{
    const inner_node *node = &n->d->inner[i];
    for (size_t c = 0; c < node->n_leaves; c++)
        n->moved[node->first_leaf + c] = false;
    for (size_t c = node->first_inner; c < node->first_inner + node->n_inner; c++) {
        for (size_t m = 0; m < M - n->p->inner[c].rule.penalty.free; m++)
            n->inner[c][m] = n->inner[i][m];
        n->inner_moved[c] = false;
        n->since[c] = 0;
        naive_send(n, c);
    }
}

static void naive_clients(naive *n, size_t i, bool final)
{
    const inner_node *node = &n->d->inner[i];
    const leaf_class *class = &n->p->leaf_classes[0];
    for (size_t c = 0; c < node->n_leaves; c++) {
        const size_t leaf = node->first_leaf + c;
        char name[100];
        double g[M];
        dataset_leaf_name(n->d, leaf, name, sizeof name);
        if (!takes(n, class->participation, name, n->last[leaf], final))
            continue;
        n->last[leaf] = n->iteration;
        for (size_t m = 0; !n->moved[leaf] && m < M - class->rule.penalty.free; m++)
            n->w[leaf][m] = n->inner[i][m];
        n->moved[leaf] = true;
        for (uint32_t step = 0; step < class->local_steps; step++) {
            mean_gradient(n->d, leaf, &class->loss, n->w[leaf], g);
            for (size_t m = 0; m < M; m++) {
                const double rho = m < M - class->rule.penalty.free ? n->rho : 0;
                double v = (n->w[leaf][m] + n->t * (rho * n->inner[i][m] - g[m])) / (1 + n->t * rho);
                if (m < F && fabs(v) > class->loss.box)
                    v = copysign(class->loss.box, v);
                n->w[leaf][m] = v;
            }
        }
    }
}

static void naive_iterate(naive *n)
{
    n->iteration++;
    for (uint32_t k = 0; k < n->p->edge_rounds; k++, n->round++) {
        const bool final = k + 1 == n->p->edge_rounds;
        n->t = n->t0 / sqrt(n->round + 1);
        for (size_t i = 0; i < n->d->n_inner; i++) {
            naive_clients(n, i, final);
            n->since[i] += n->t * n->p->leaf_classes[0].local_steps;
        }
        bool sends[NODES] = {false};
        for (size_t i = n->d->n_inner; i-- > 1;) {
            sends[i] = takes(n, n->p->inner[i].participation, n->d->inner[i].name, n->inner_last[i], final) &&
                       naive_average(n, i);
            n->inner_moved[i] = n->inner_moved[i] || sends[i];
            n->inner_last[i] = sends[i] ? n->iteration : n->inner_last[i];
        }
        for (size_t i = 1; i < n->d->n_inner && !final; i++)
            if (sends[i])
                naive_send(n, i);
    }
    naive_average(n, 0);
    naive_send(n, 0);
}

static void compare_models(const naive *n, const baseline *b, int variant)
{
    for (size_t i = 0; i < n->d->n_inner; i++)
        for (size_t m = 0; m < M; m++)
            if (!(fabs(baseline_inner_model(b, i)[m] - n->inner[i][m]) <= 1e-9))
                fail_msg("seed %llu, variant %d, iteration %d, %s: %.17g instead of %.17g", (unsigned long long)SEED,
                         variant, n->iteration, n->d->inner[i].name, baseline_inner_model(b, i)[m], n->inner[i][m]);
    for (size_t leaf = 0; leaf < n->d->n_leaves; leaf++) {
        double w[M];
        baseline_leaf_model(b, leaf, w);
        for (size_t m = 0; m < M; m++)
            if (!(fabs(w[m] - n->w[leaf][m]) <= 1e-9))
                fail_msg("seed %llu, variant %d, iteration %d, leaf %zu", (unsigned long long)SEED, variant,
                         n->iteration, leaf);
    }
}

/* What the trace says, from the models. */
static void compare_objective(const naive *n, baseline *b)
{
    hfsad_figures f = {0};
    double wanted = 0;
    baseline_measure(b, &f);
    const leaf_class *class = &n->p->leaf_classes[0];
    for (size_t i = 0; i < n->d->n_inner; i++) {
        const inner_node *node = &n->d->inner[i];
        for (size_t m = 0; m < F; m++)
            wanted += n->p->inner[i].prior.weight * n->p->inner[i].prior.lambda * fabs(n->inner[0][m]);
        for (size_t leaf = node->first_leaf; leaf < node->first_leaf + node->n_leaves; leaf++) {
            const client_rows rows = dataset_rows(n->d, leaf);
            const double own = class->rule.penalty.free                ? n->w[leaf][F]
                               : i && n->p->inner[i].rule.penalty.free ? n->inner[i][F]
                                                                       : n->inner[0][F];
            double sum = 0, weights = 0;
            for (size_t k = 0; k < rows.count; k++) {
                double s = rows.constant * own;
                for (size_t m = 0; m < F; m++)
                    s += rows.x[k * F + m] * n->inner[0][m];
                sum += rows.weight[k] * hfsad_loss_value(&class->loss, rows.y[k], s);
                weights += rows.weight[k];
            }
            wanted += class->mean ? sum / weights : sum;
        }
    }
    assert_near(f.consensus_objective, wanted, 1e-9 * fabs(wanted));
    assert_near(f.objective, wanted, 1e-9 * fabs(wanted));
    assert_true(isnan(f.primal_residual) && isnan(f.dual_residual) && isnan(f.smoothing_gap));
    assert_true(f.consensus_gap > 0);
}

/* Trees of depth 2 and 3 with a client right below the cloud; all kinds of intercept, priors, absences. */
static void second_implementation(void **state)
{
    (void)state;
    static const char *const flat[] = {"", "edge1", "edge2", "edge3"}, *const deep[] = {"", "r/e1", "r/e2", "e3"};
    static const size_t clients[] = {1, 3, 4, 1};
    pool *threads = threads_of(1);
    for (int variant = 0; variant < 16; variant++) {
        rng r = {rng_key(SEED + 1, (uint64_t)variant), 0};
        const int intercept = variant % 3; /* per client, per edge, global */
        const bool three = variant % 4 == 3;
        dataset *d = many_rows(&r, three ? 3 : 4, three ? deep : flat, clients, M, 6, false, 0.7);
        assert_true(d->n_inner <= NODES && d->n_leaves <= LEAVES);
        leaf_class leaf = PLAIN_LEAF;
        leaf.loss = (hfsad_loss){HFSAD_LOSS_HUBER, 0, 0.5, variant & 1 ? 0.6 : INFINITY, 0.3};
        leaf.local_steps = 1 + (uint32_t)variant / 8;
        leaf.participation = variant & 2 ? 0.6 : 1;
        leaf.mean = variant & 4;
        leaf.rule.penalty.free = intercept == 0;
        inner_class inner = {.prior = {HFSAD_PENALTY_L1, 1.5, 0.2, 0, 1, 0}, .participation = variant & 8 ? 0.7 : 1};
        inner.rule.penalty.free = intercept < 2;
        plan *p = simple_plan(d, leaf, inner, 3, true);
        p->at_least_every = 2;
        const baseline_rule rule = {{STEP_POWER, 0.3, 0.5}, variant & 1 ? 2 : 0};
        naive *n = alloc_zero(1, sizeof *n);
        *n = (naive){.d = d, .p = p, .t0 = 0.3, .rho = rule.rho};
        double start[M];
        for (size_t m = 0; m < M; m++)
            start[m] = uniform(&r, -0.3, 0.3);
        for (size_t i = 0; i < NODES; i++)
            memcpy(n->inner[i], start, sizeof start);
        for (size_t i = 0; i < LEAVES; i++)
            memcpy(n->w[i], start, sizeof start);
        baseline *b = make(d, p, &rule, start, threads);
        for (int i = 0; i < 8; i++) {
            baseline_iterate(b);
            naive_iterate(n);
            compare_models(n, b, variant);
        }
        compare_objective(n, b);
        baseline_free(b);
        free(n);
        plan_free(p);
        dataset_free(d);
    }
    pool_free(threads);
}

/* Nobody can leave the edge's model where rho is huge; and no number overflows. */
static void huge_rho(void **state)
{
    (void)state;
    static const char *const paths[] = {"e1", "e2"};
    static const size_t clients[] = {3, 2};
    pool *threads = threads_of(1);
    const double rhos[] = {1e12, 1e300, 1.7e308};
    for (size_t k = 0; k < 3; k++) {
        rng r = {rng_key(SEED + 2, k), 0};
        dataset *d = many_rows(&r, 2, paths, clients, M, 4, false, 0);
        leaf_class leaf = PLAIN_LEAF;
        leaf.local_steps = 7;
        plan *p = simple_plan(d, leaf, PLAIN_INNER, 2, true);
        const baseline_rule rule = {{STEP_CONSTANT, 50, 0}, rhos[k]};
        double start[M], w[M];
        for (size_t m = 0; m < M; m++)
            start[m] = uniform(&r, -2, 2);
        baseline *b = make(d, p, &rule, start, threads);
        for (int i = 0; i < 20; i++)
            baseline_iterate(b);
        for (size_t leaf_number = 0; leaf_number < d->n_leaves; leaf_number++) {
            baseline_leaf_model(b, leaf_number, w);
            for (size_t m = 0; m < M; m++) {
                assert_near(w[m], start[m], 1e-9);
                assert_near(baseline_inner_model(b, 0)[m], start[m], 1e-9);
            }
        }
        baseline_free(b);
        plan_free(p);
        dataset_free(d);
    }
    pool_free(threads);
}

static void threads_give_the_same_bits(void **state)
{
    (void)state;
    static const char *const paths[] = {"r/e1", "r/e2", "e3", ""};
    static const size_t clients[] = {70, 50, 80, 20};
    enum { WIDE = 24 };
    rng r = {rng_key(SEED + 3, 0), 0};
    dataset *d = many_rows(&r, 4, paths, clients, WIDE, 9, false, 0);
    assert_true(d->n_rows * WIDE > 16384); /* enough to be shared out */
    leaf_class leaf = PLAIN_LEAF;
    leaf.participation = 0.7;
    inner_class inner = PLAIN_INNER;
    inner.prior = (hfsad_penalty){HFSAD_PENALTY_SCAD, 2, 0.1, 3.7, 0, 0};
    plan *p = simple_plan(d, leaf, inner, 3, true);
    const baseline_rule rule = {{STEP_GEOMETRIC, 0.5, 0.98}, 0.1};
    const double start[WIDE] = {0};
    pool *one = threads_of(1), *three = threads_of(3);
    baseline *a = make(d, p, &rule, start, one), *b = make(d, p, &rule, start, three);
    for (int i = 0; i < 5; i++) {
        hfsad_figures f = {0}, g = {0};
        baseline_iterate(a);
        baseline_iterate(b);
        baseline_measure(a, &f);
        baseline_measure(b, &g);
        assert_memory_equal(&f, &g, sizeof f);
    }
    for (size_t i = 0; i < d->n_inner; i++)
        assert_memory_equal(baseline_inner_model(a, i), baseline_inner_model(b, i), WIDE * sizeof(double));
    for (size_t i = 0; i < d->n_leaves; i++) {
        double v[WIDE], w[WIDE];
        baseline_leaf_model(a, i, v);
        baseline_leaf_model(b, i, w);
        assert_memory_equal(v, w, sizeof v);
    }
    baseline_free(a);
    baseline_free(b);
    pool_free(one);
    pool_free(three);
    plan_free(p);
    dataset_free(d);
}

typedef struct {
    double y, weight;
} weighted;

static int by_y(const void *a, const void *b)
{
    const double x = ((const weighted *)a)->y, y = ((const weighted *)b)->y;
    return (x > y) - (x < y);
}

/* Rows of the one feature 1: the consensus objective's minimiser is the weighted median, whatever the tree, and with
 * the mean over a client's rows another one. The step comes from the data. */
static void weighted_median(void **state)
{
    (void)state;
    static const char *const paths[] = {"e1", "e2", ""};
    static const size_t clients[] = {5, 9, 2};
    pool *threads = threads_of(1);
    for (int mean = 0; mean < 2; mean++) {
        hfsad_error err = {0};
        rng r = {rng_key(SEED + 4, (uint64_t)mean), 0};
        dataset *d = many_rows(&r, 3, paths, clients, 1, 12, false, 0);
        for (size_t i = 0; i < d->n_rows; i++) {
            d->rows.x[i] = 1;
            d->rows.y[i] = 100 + 10 * rng_next_normal(&r);
        }
        leaf_class leaf = PLAIN_LEAF;
        leaf.mean = mean;
        plan *p = simple_plan(d, leaf, PLAIN_INNER, 2, true);
        weighted *list = alloc_zero(d->n_rows, sizeof *list);
        double total = 0, sum = 0, best = 0;
        for (size_t j = 0; j < d->n_leaves; j++) {
            double own = 0;
            for (size_t i = d->rows.first[j]; i < d->rows.first[j + 1]; i++)
                own += d->rows.weight[i];
            for (size_t i = d->rows.first[j]; i < d->rows.first[j + 1]; i++) {
                list[i] = (weighted){d->rows.y[i], d->rows.weight[i] / (mean ? own : 1)};
                total += list[i].weight;
            }
        }
        qsort(list, d->n_rows, sizeof *list, by_y);
        size_t median = 0;
        while ((sum += list[median].weight) < total / 2)
            median++;
        for (size_t i = 0; i < d->n_rows; i++)
            best += list[i].weight * fabs(list[i].y - list[median].y);
        hfsad_spec *spec;
        baseline_rule rule;
        const double start = 0;
        ok(spec_create(&spec, "spec.yaml", &err), &err);
        spec->top.algorithm = ALGORITHM_FEDAVG;
        rule = rule_of(spec, d, p, &start);
        baseline *b = make(d, p, &rule, &start, threads);
        hfsad_figures f = {0};
        for (int i = 0; i < 3000; i++)
            baseline_iterate(b);
        baseline_measure(b, &f);
        if (!(f.consensus_objective >= best * (1 - 1e-12) && f.consensus_objective <= best * 1.001))
            fail_msg("seed %llu, mean %d: objective %.10g, optimum %.10g", (unsigned long long)SEED, mean,
                     f.consensus_objective, best);
        baseline_free(b);
        hfsad_spec_free(spec);
        free(list);
        plan_free(p);
        dataset_free(d);
    }
    pool_free(threads);
}

/* Two clients at 0 and 1 meet in the middle, though one makes five steps to the other's one: to first order in the
 * step, as the steps of a round have the same length in sum. */
static void unequal_local_steps(void **state)
{
    (void)state;
    hfsad_error err = {0};
    dataset_builder *builder;
    dataset *d;
    const double x = 1, start = 0.9;
    ok(dataset_builder_create(&builder, 1, &err), &err);
    dataset_builder_use_rows(builder);
    ok(dataset_builder_add(builder, "e", "a", 0, &x, NULL, 0, &err), &err);
    ok(dataset_builder_add(builder, "e", "b", 1, &x, NULL, 0, &err), &err);
    ok(dataset_builder_finish(builder, &d, &err), &err);
    pool *threads = threads_of(1);
    plan *p = simple_plan(d, PLAIN_LEAF, PLAIN_INNER, 1, true);
    free(p->leaf_classes);
    p->leaf_classes = alloc_zero(2, sizeof *p->leaf_classes);
    p->leaf_class_of = alloc_zero(2, sizeof *p->leaf_class_of);
    p->n_leaf_classes = 2;
    p->leaf_classes[0] = p->leaf_classes[1] = PLAIN_LEAF;
    p->leaf_classes[0].loss.kind = p->leaf_classes[1].loss.kind = HFSAD_LOSS_SQUARED;
    p->leaf_classes[1].local_steps = 5;
    p->leaf_class_of[1] = 1;
    const baseline_rule rule = {{STEP_CONSTANT, 0.01, 0}, 0};
    baseline *b = make(d, p, &rule, &start, threads);
    for (int i = 0; i < 3000; i++)
        baseline_iterate(b);
    /* where both pulls balance: 0.01 w = (1 - 0.998^5)(1 - w) */
    const double pull = 1 - pow(0.998, 5), wanted = pull / (0.01 + pull);
    assert_near(baseline_inner_model(b, 0)[0], wanted, 1e-9);
    assert_near(wanted, 0.5, 2e-3);
    baseline_free(b);
    plan_free(p);
    pool_free(threads);
    dataset_free(d);
}

/* The step in the units of the data: y times 10 makes it 10 times as long for |y - s|, x times 10 a hundredth (and 10
 * times as small a model). FedProx takes its rho from it, and a setting wins. */
static void step_from_data(void **state)
{
    (void)state;
    static const char *const paths[] = {"e1", "e2"};
    static const size_t clients[] = {6, 4};
    hfsad_error err = {0};
    rng r = {rng_key(SEED + 5, 0), 0};
    dataset *d = many_rows(&r, 2, paths, clients, M, 5, false, 0);
    leaf_class leaf = PLAIN_LEAF;
    pool *threads = threads_of(2);
    plan *p = simple_plan(d, leaf, PLAIN_INNER, 2, true);
    p->iterations = 50;
    const double start[M] = {0};
    hfsad_spec *spec;
    baseline_rule a, b, c, e, g;
    ok(spec_create(&spec, "spec.yaml", &err), &err);
    spec->top.algorithm = ALGORITHM_FEDPROX;
    a = rule_of(spec, d, p, start);
    assert_true(a.step.kind == STEP_POWER && a.step.shrink == 0.5);
    assert_near(a.rho * a.step.size, 1, 1e-12);
    for (size_t i = 0; i < d->n_rows; i++)
        d->rows.y[i] *= 10;
    b = rule_of(spec, d, p, start);
    assert_near(b.step.size, 10 * a.step.size, 1e-7 * b.step.size);
    for (size_t i = 0; i < d->n_rows * M; i++)
        d->rows.x[i] *= 10;
    c = rule_of(spec, d, p, start);
    assert_near(c.step.size, b.step.size / 100, 1e-7 * b.step.size);
    p->leaf_classes[0].local_steps = 3; /* a client by itself bends more than the mean of many */
    e = rule_of(spec, d, p, start);
    assert_true(e.step.size < c.step.size);
    spec->top.algorithm = ALGORITHM_FEDAVG;
    spec->baseline.step = 0.25;
    spec->baseline.rule = STEP_RULE_GEOMETRIC;
    g = rule_of(spec, d, p, start);
    assert_true(g.step.size == 0.25 && g.rho == 0);
    assert_near(step_length(&g.step, 100, 0, 0), 0.25e-3, 1e-9);
    hfsad_spec_free(spec);
    plan_free(p);
    pool_free(threads);
    dataset_free(d);
}

/* The same clients take part as in the simulator, and as many vectors travel. */
static void bytes_as_the_simulator(void **state)
{
    (void)state;
    static const char *const paths[] = {"r/e1", "r/e2", "e3", ""};
    static const size_t clients[] = {9, 7, 8, 3};
    pool *threads = threads_of(1);
    for (int variant = 0; variant < 2; variant++) {
        hfsad_error err = {0};
        rng r = {rng_key(SEED + 6, (uint64_t)variant), 0};
        dataset *d = many_rows(&r, 4, paths, clients, M, 4, false, 0);
        leaf_class leaf = PLAIN_LEAF;
        leaf.participation = variant ? 0.8 : 1; /* somebody of every edge in every round */
        leaf.solver = (rows_solver){ROWS_EXACT, 1e-3, 20};
        leaf.rule = (hfsad_link_rule){{HFSAD_PENALTY_L1, 1, 1, 3, 0, 0}, {.c = 1, .alpha = 1}};
        inner_class inner = PLAIN_INNER;
        inner.rule = leaf.rule;
        plan *p = simple_plan(d, leaf, inner, 4, true);
        const baseline_rule rule = {{STEP_CONSTANT, 0.1, 0}, 0};
        const double start[M] = {0};
        baseline *b = make(d, p, &rule, start, threads);
        sim *s;
        ok(sim_create(&s, d, p, start, NULL, threads, &err), &err);
        hfsad_figures f = {0}, g = {0};
        for (int i = 0; i < 10; i++) {
            baseline_iterate(b);
            sim_iterate(s);
        }
        baseline_measure(b, &f);
        sim_measure(s, &g);
        assert_int_equal(f.bytes_up, g.bytes_up);
        assert_int_equal(f.bytes_down, g.bytes_down);
        baseline_free(b);
        sim_free(s);
        plan_free(p);
        dataset_free(d);
    }
    pool_free(threads);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_client),      cmocka_unit_test(second_implementation),
        cmocka_unit_test(huge_rho),        cmocka_unit_test(threads_give_the_same_bits),
        cmocka_unit_test(weighted_median), cmocka_unit_test(unequal_local_steps),
        cmocka_unit_test(step_from_data),  cmocka_unit_test(bytes_as_the_simulator),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
