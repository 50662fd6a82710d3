/*
 * The same bits from every set of kernels, from blocks, rows and message by message: an edge that receives its clients'
 * vectors one by one reaches what the simulator computes eight at a time.
 */
#include "defined_losses.h"

#include "core/fold.h"
#include "core/kernels.h"
#include "run/state.h"

/* Every shape, with and without over-relaxation. */
static hfsad_schedule schedule_for(size_t i)
{
    return (hfsad_schedule){
        .c = 5, .alpha = 4, .turn = i % 2 ? 1 : 3, .growth = i % 3 ? 1.03 : 0, .over = i % 4 ? 0 : 0.5};
}

static leaf_class class_for(size_t i)
{
    return (leaf_class){
        .loss = {kind_at(i), 0.3, 1, i % 2 ? 0.5 : INFINITY, 0.3},
        .rule = {{(hfsad_penalty_kind)(1 + i % 3), 4, 1, 3, 0, 0}, schedule_for(i)},
        .participation = i % 4 == 3 ? 0.6 : 1,
        .local_steps = i % 5 == 4 ? 2 : 1,
    };
}

static const inner_class edge_class = {
    {HFSAD_PENALTY_SCAD, 2, 0.1, 2.4, 0, 0}, {{HFSAD_PENALTY_L1, 20, 1, 0, 0, 0}, {.c = 10, .alpha = 20}}, 0.8, false};

static bool is_hidden(size_t m)
{
    return m % 5 == 1;
}

/* hidden: what hidden features start at; NAN: as the others. */
static double *state_from(const char *name, const dataset *d, const plan *p, int iterations, double hidden,
                          size_t *count)
{
    hfsad_error err;
    pool *threads;
    sim *s;
    hfsad_figures f;
    double *start = alloc_zero(d->M, sizeof *start);
    for (size_t m = 0; m < d->M; m++)
        start[m] = is_hidden(m) && !isnan(hidden) ? hidden : 0.3 - 0.01 * (double)(m % 50);
    assert_true(kernels_choose(name));
    ok(pool_create(&threads, 1, &err), &err);
    ok(sim_create(&s, d, p, start, NULL, threads, &err), &err);
    s->guard.repairs = p->cycles; /* in a cycle clients majorise */
    for (int i = 0; i < iterations; i++)
        sim_iterate(s);
    double *state = whole_state(s, d, count);
    sim_measure(s, &f);
    state = realloc(state, (*count + 6) * sizeof *state);
    const double figures[] = {f.objective,     f.consensus_objective, f.primal_residual,
                              f.dual_residual, f.consensus_gap,       f.smoothing_gap};
    memcpy(state + *count, figures, sizeof figures);
    *count += 6;
    sim_free(s);
    pool_free(threads);
    free(start);
    kernels_choose(NULL);
    return state;
}

static double *state_after(const char *name, const dataset *d, const plan *p, int iterations, size_t *count)
{
    return state_from(name, d, p, iterations, NAN, count);
}

/* Features that no client sees shrink below any number where a prior holds the edge's at 0: none may stay subnormal, in
 * any kernel, with any link, in blocks and in rows, and all kernels agree. */
static void tiny_numbers(void **state)
{
    (void)state;
    static const char *const names[] = {"plain", "avx2", "avx512"};
    const char *const paths[] = {"a", "b"};
    const size_t clients[] = {21, 3}, features[] = {7, 33, 600};
    for (size_t i = 0; i < 12; i++) {
        rng r = {rng_key(i, rng_stream("tiny")), 0};
        dataset *d = random_dataset(&r, 2, paths, clients, features[i % 3], false);
        for (size_t leaf = 0; leaf < d->n_leaves; leaf++) {
            double x[600];
            dataset_gather(d, d->x, leaf, x);
            for (size_t m = 0; m < d->M; m++)
                x[m] = is_hidden(m) ? 0 : x[m];
            dataset_scatter(d, d->x, leaf, x);
        }
        leaf_class c = class_for(i);
        c.loss.kind = HFSAD_LOSS_ABSOLUTE;
        c.rule.penalty.kind = i % 4 ? HFSAD_PENALTY_L1 : c.rule.penalty.kind;
        plan *p = simple_plan(d, c, edge_class, 2, i % 3 != 0);
        p->trace_every = 3; /* rounds with and without the dual residual */
        size_t count, zeros = 0, other;
        double *plain = state_from("plain", d, p, 60, i % 2 ? 1e-268 : -1e-300, &count);
        for (size_t j = 0; j < count; j++) {
            if (plain[j] != 0 && fabs(plain[j]) < 1e-305)
                fail_msg("case %zu: number %zu of the state is %g", i, j, plain[j]);
            zeros += plain[j] == 0;
        }
        assert_true(zeros >= 2 * d->n_leaves);
        for (size_t k = 1; k < 3; k++) {
            if (!kernels_choose(names[k]))
                continue;
            double *fast = state_from(names[k], d, p, 60, i % 2 ? 1e-268 : -1e-300, &other);
            if (memcmp(plain, fast, count * sizeof *plain))
                fail_msg("case %zu: %s differs from plain", i, names[k]);
            free(fast);
        }
        free(plain);
        plan_free(p);
        dataset_free(d);
    }
}

static void every_instruction_set(void **state)
{
    (void)state;
    static const char *const names[] = {"avx2", "avx512"};
    const char *const paths[] = {"a", "b", ""};
    const size_t clients[] = {21, 8, 3}, features[] = {1, 7, 25, 33, 600};
    for (size_t i = 0; i < 6 * LOSSES; i++) {
        rng r = {rng_key(i, rng_stream("kernels")), 0};
        dataset *d = random_dataset(&r, 3, paths, clients, features[i % 5], has_labels(kind_at(i)));
        plan *p = simple_plan(d, class_for(i), edge_class, 2, i % 3 != 0);
        p->cycles = kind_at(i) == HFSAD_LOSS_PHASE_RETRIEVAL && i / LOSSES % 2;
        p->pace = 1.02;
        p->split = precision_split((precision_kind)(i / 2 % 3));
        size_t count, other;
        double *plain = state_after("plain", d, p, 6, &count);
        for (size_t k = 0; k < 2; k++) {
            if (!kernels_choose(names[k]))
                continue;
            double *fast = state_after(names[k], d, p, 6, &other);
            assert_int_equal(count, other);
            if (memcmp(plain, fast, count * sizeof *plain))
                fail_msg("case %zu: %s differs from plain", i, names[k]);
            free(fast);
        }
        free(plain);
        plan_free(p);
        dataset_free(d);
    }
}

static double majorant(size_t M, const double *x, double y, double t, double sigma, const double *v, const double *w)
{
    double s = 0, far = 0;
    for (size_t m = 0; m < M; m++) {
        s += x[m] * w[m];
        far += (w[m] - v[m]) * (w[m] - v[m]);
    }
    return fabs(y + t * t - 2 * t * s) + (s - t) * (s - t) + sigma / 2 * far;
}

/* The step in a cycle is the prox of the majorant around <x, w_parent>: no point nearby is better, in a box and without
 * one, and all kernels agree. */
static void the_majorant(void **state)
{
    (void)state;
    enum { M = 9, CASES = 200 };
    static const char *const names[] = {"plain", "avx2", "avx512"};
    for (size_t i = 0; i < CASES; i++) {
        rng r = {rng_key(i, rng_stream("majorant")), 0};
        double x[M], v[M], parent[M], scratch[32 * M], first[M], norm = 0, t = 0;
        for (size_t m = 0; m < M; m++) {
            x[m] = rng_next_normal(&r);
            v[m] = 0.3 * rng_next_normal(&r);
            parent[m] = i % 7 ? rng_next_normal(&r) : 0;
            norm += x[m] * x[m];
            t += x[m] * parent[m];
        }
        const double y = 4 * rng_next_normal(&r), box = i % 2 ? 0.4 : INFINITY, c = ldexp(1, (int)(i % 12) - 4);
        const hfsad_loss loss = {.kind = HFSAD_LOSS_PHASE_RETRIEVAL, .box = box};
        const hfsad_link_rule rule = {{HFSAD_PENALTY_L1, 4, 1, 0, 0, 0}, {.c = c, .alpha = 1, .turn = 1}};
        for (size_t k = 0; k < 3; k++) {
            if (!kernels_choose(names[k]))
                continue;
            double z[M], q[M], w[M] = {0};
            uint32_t counter = 0;
            memcpy(z, v, sizeof z); /* q = z: no multiplier, so v is the centre */
            memcpy(q, v, sizeof q);
            leaf_run run = {.M = M,
                            .count = 1,
                            .lanes = 1,
                            .loss = &loss,
                            .rule = &rule,
                            .local_steps = 1,
                            .x = x,
                            .y = &y,
                            .n = &norm,
                            .z = z,
                            .q = q,
                            .w = w,
                            .k = &counter,
                            .w_parent = parent,
                            .majorant = true,
                            .scratch = scratch};
            kernels()->leaf_step(&run);
            if (k == 0)
                memcpy(first, w, sizeof w);
            assert_memory_equal(first, w, sizeof w);
        }
        kernels_choose(NULL);
        const double best = majorant(M, x, y, t, c, v, first);
        for (int n = 0; n < 200; n++) {
            double near[M];
            const double far = ldexp(1, -(n % 20));
            for (size_t m = 0; m < M; m++) {
                near[m] = first[m] + far * (n % 2 ? x[m] * rng_next_normal(&r) : rng_next_normal(&r));
                near[m] = fmax(-box, fmin(box, near[m]));
            }
            if (majorant(M, x, y, t, c, v, near) < best - 1e-12 * (1 + fabs(best)))
                fail_msg("case %zu: %g is below %g", i, majorant(M, x, y, t, c, v, near), best);
        }
    }
}

/* A federation of one edge, played by hand through the public functions, client by client. */
static void by_messages(size_t clients, size_t M, size_t i)
{
    rng r = {rng_key(i, rng_stream("messages")), 0};
    const char *const paths[] = {"edge"};
    dataset *d = random_dataset(&r, 1, paths, &clients, M, false);
    leaf_class c = class_for(i % 5);
    c.participation = 1;
    inner_class e = edge_class;
    e.participation = 1;
    plan *p = simple_plan(d, c, e, 1, true);
    size_t count;
    double *want = state_after("plain", d, p, 4, &count);

    double *memory = alloc_zero((4 * clients + 10 + tree_lanes(M)) * M, sizeof *memory);
    double *x = memory, *z = x + clients * M, *q = z + clients * M, *w = q + clients * M, *row = w + clients * M;
    double *edge = row, *edge_z = row + M, *edge_q = row + 2 * M, *cloud = row + 3 * M, *u = row + 4 * M;
    double *sum = row + 5 * M, *start = row + 6 * M, *partial = row + 7 * M;
    double *scratch = alloc_zero(hfsad_loss_scratch(&c.loss, M), sizeof *scratch);
    uint32_t *k = alloc_zero(clients, sizeof *k);
    hfsad_link up = {edge_z, edge_q, 0};
    for (size_t m = 0; m < M; m++)
        start[m] = edge[m] = cloud[m] = 0.3 - 0.01 * (double)(m % 50);
    hfsad_link_start(&up, M, start);
    for (size_t j = 0; j < clients; j++) {
        hfsad_link link = {z + j * M, q + j * M, 0};
        hfsad_link_start(&link, M, start);
        dataset_gather(d, d->x, j, x + j * M);
    }
    for (int iteration = 0; iteration < 4; iteration++) {
        fold total;
        fold_begin(&total, M, partial, sum);
        for (size_t j = 0; j < clients; j++) {
            const hfsad_leaf leaf = {&c.loss, x + j * M, d->y[j], d->n[j]};
            hfsad_link link = {z + j * M, q + j * M, k[j]};
            for (uint32_t step = 0; step < c.local_steps; step++)
                hfsad_leaf_step(&leaf, &c.rule, &link, M, edge, w + j * M, scratch);
            k[j] = link.k;
            const double sigma = hfsad_link_message(&c.rule, &link, M, u);
            fold_add(&total, u, sigma);
        }
        fold_end(&total);
        hfsad_inner_step(&e.prior, &e.rule, &up, M, sum, total.sum_sigma, cloud, edge);
        const double sigma = hfsad_link_message(&e.rule, &up, M, u);
        hfsad_root_step(&e.prior, M, u, sigma, cloud);
    }
    assert_memory_equal(want, cloud, M * sizeof *cloud);
    assert_memory_equal(want + 3 * M, edge, M * sizeof *edge);
    for (size_t j = 0; j < clients; j++) {
        const double *node = want + (6 + 3 * j) * M;
        assert_memory_equal(node, w + j * M, M * sizeof *w);
        assert_memory_equal(node + M, z + j * M, M * sizeof *z);
        assert_memory_equal(node + 2 * M, q + j * M, M * sizeof *q);
    }
    free(want);
    free(memory);
    free(scratch);
    free(k);
    plan_free(p);
    dataset_free(d);
}

static void message_by_message(void **state)
{
    (void)state;
    by_messages(1, 5, 0);
    by_messages(19, 25, 1);
    by_messages(2500, 9, 2); /* several runs */
    by_messages(21, 600, 3); /* rows, and runs of 32 */
    by_messages(70, 1024, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_instruction_set),
        cmocka_unit_test(tiny_numbers),
        cmocka_unit_test(the_majorant),
        cmocka_unit_test(message_by_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
