/* From spec to numbers: the presets recomputed, overrides, refused settings, and Theorem 1's conditions. */
#include "tools.h"

#include "spec/settings.h"

static const char *const paths[] = {"edge1", "edge2", "edge3"};
static const size_t clients[] = {5, 9, 2};

static hfsad_spec *spec_of(const char *const *pairs)
{
    hfsad_error err;
    hfsad_spec *spec;
    ok(spec_create(&spec, "test.yaml", &err), &err);
    for (; *pairs; pairs += 2)
        ok(hfsad_spec_set(spec, pairs[0], pairs[1], &err), &err);
    ok(hfsad_spec_check(spec, &err), &err);
    return spec;
}

static plan *plan_of(const dataset *d, const char *const *pairs)
{
    hfsad_error err;
    hfsad_spec *spec = spec_of(pairs);
    plan *p;
    ok(plan_create(&p, spec, d, &err), &err);
    hfsad_spec_free(spec);
    return p;
}

static void refused(const dataset *d, const char *const *pairs, const char *part)
{
    hfsad_error err;
    hfsad_spec *spec = spec_of(pairs);
    plan *p;
    assert_int_equal(plan_create(&p, spec, d, &err), HFSAD_ERROR_INPUT);
    assert_null(p);
    if (!strstr(err.message, part))
        fail_msg("'%s' does not say '%s'", err.message, part);
    hfsad_spec_free(spec);
}

/* nu_f recomputed: the hardest pull of a client within its box. */
static double bound_of(const dataset *d, const plan *p)
{
    double most = 0, row[16];
    for (size_t leaf = 0; leaf < d->n_leaves; leaf++) {
        const leaf_class *c = plan_leaf(p, leaf);
        const client_rows rows = dataset_rows_any(d, leaf, row);
        most = fmax(most, loss_measure(&rows, d->M, &c->loss, c->mean, c->loss.box).pull);
    }
    return most;
}

static void near(double have, double want)
{
    if (!(fabs(have - want) <= 1e-12 * fabs(want)))
        fail_msg("%.17g, expected %.17g", have, want);
}

static dataset *data(bool labels)
{
    rng r = {rng_key(1, rng_stream("plan")), 0};
    return random_dataset(&r, 3, paths, clients, 6, labels);
}

static double largest_norm(const dataset *d)
{
    double most = 0, x[6];
    for (size_t leaf = 0; leaf < d->n_leaves; leaf++) {
        double n = 0;
        dataset_gather(d, d->x, leaf, x);
        for (size_t m = 0; m < 6; m++)
            n += x[m] * x[m];
        most = fmax(most, n);
    }
    return sqrt(most);
}

static void the_papers_constants(void **state)
{
    (void)state;
    dataset *d = data(false);
    plan *p = plan_of(
        d, (const char *const[]){"data", "x", "loss", "{kind: phase-retrieval, box: 5}", "preset", "paper", NULL});
    const double omega = 5 * largest_norm(d), omega_0 = 9 * omega + (9 - 1.0 / 3) * 0.1 * 2.4;
    const hfsad_link_rule *client = &p->leaf_classes[0].rule;
    near(client->penalty.weight, omega);
    near(client->schedule.c, omega);
    near(client->schedule.alpha, sqrt(20));
    double total = 0;
    for (size_t i = 0; i < d->n_inner; i++) {
        const inner_class *c = &p->inner[i];
        assert_int_equal(c->prior.kind, HFSAD_PENALTY_SCAD);
        near(c->prior.lambda, 0.1);
        near(c->prior.gamma, 2.4);
        near(c->prior.weight, i ? (double)clients[i - 1] - 1.0 / 3 : 1);
        total += c->prior.weight;
        if (!i)
            continue;
        near(c->rule.penalty.weight, omega_0);
        near(c->rule.schedule.c, omega_0 / 25);
        near(c->rule.schedule.alpha, 25 * sqrt(20));
    }
    near(total, 16);
    theorem_report t;
    theorem_check(&t, d, p, bound_of(d, p));
    if (!t.holds)
        fail_msg("%s", t.reason);
    near(t.nu_f, omega);
    plan_free(p);
    dataset_free(d);
}

/* The mean over the clients of half the slope / (mean |y|) * |x|^2 / M. */
static double mean_bend(const dataset *d, double slope)
{
    double y = 0, n = 0;
    for (size_t leaf = 0; leaf < d->n_leaves; leaf++) {
        y += fabs(d->y[leaf]);
        n += d->n[leaf];
    }
    return slope / 2 / y * n / (double)d->M;
}

/* The paper's preset carried over to other trees: weights add up from below, priors to the number of clients, and the
 * paper's constants meet Theorem 1's conditions on each of them. */
static void other_trees(void **state)
{
    (void)state;
    static const struct {
        size_t edges;
        const char *paths[4];
        size_t clients[4], inner;
    } trees[] = {
        {1, {""}, {7}, 1},
        {4, {"r1/a", "r1/b", "r2/c", "r2"}, {3, 8, 4, 2}, 6},
        {3, {"", "a", "b"}, {60, 2, 3}, 3},
    };
    for (size_t i = 0; i < 3; i++) {
        rng r = {rng_key(i, rng_stream("trees")), 0};
        dataset *d = random_dataset(&r, trees[i].edges, trees[i].paths, trees[i].clients, 6, false);
        assert_int_equal(d->n_inner, trees[i].inner);
        for (int tuned = 0; tuned < 2; tuned++) {
            plan *p = plan_of(d, (const char *const[]){"data", "x", "loss", "{kind: quantile, tau: 0.8}", "prior.edge",
                                                       "{penalty: l1, lambda: 0.1}", "prior.cloud",
                                                       "{penalty: l1, lambda: 0.1}", "preset",
                                                       tuned ? "tuned" : "paper", NULL});
            const double omega = 0.8 * largest_norm(d), c = tuned ? mean_bend(d, 0.8) : omega;
            near(p->leaf_classes[0].rule.penalty.weight, omega);
            near(p->leaf_classes[0].rule.schedule.c, c);
            double etas = 0;
            for (size_t k = 0; k < d->n_inner; k++)
                etas += p->inner[k].prior.weight;
            near(etas, (double)d->n_leaves);
            theorem_report t;
            theorem_check(&t, d, p, bound_of(d, p));
            assert_int_equal(t.holds, !tuned);
            if (i == 1) { /* r1 has two edges below, of which b is the larger; r2 has one and two clients */
                const double deep = 8 * omega + (8 - 1.0 / 4) * 0.1,
                             high = fmax(2 * deep, deep + 2 * omega + (2 - 0.25) * 0.1);
                const double tuned_deep = 0.1 * 8 * c, tuned_high = 0.1 * 10 * fmax(2 * tuned_deep, tuned_deep + 2 * c);
                for (size_t k = 1; k < d->n_inner; k++) {
                    const bool top = d->inner[k].depth == 1;
                    near(p->inner[k].rule.penalty.weight, top ? high : deep);
                    near(p->inner[k].rule.schedule.c,
                         tuned ? (top ? tuned_high : tuned_deep) : (top ? high : deep) / 25);
                }
            }
            plan_free(p);
        }
        dataset_free(d);
    }
}

/* The presets see what overrides make of a client's loss and of an edge's prior. */
static void presets_see_overrides(void **state)
{
    (void)state;
    dataset *d = data(false);
    plan *p = plan_of(d, (const char *const[]){"data", "x", "loss", "{kind: absolute}", "preset", "paper", "overrides",
                                               "[{node: '*/*', loss: {kind: phase-retrieval, box: 5}},"
                                               " {node: edge2, prior: {weight: 1000}}]",
                                               NULL});
    theorem_report t;
    theorem_check(&t, d, p, bound_of(d, p));
    if (!t.holds)
        fail_msg("%s", t.reason);
    near(t.nu_f, 5 * largest_norm(d));
    plan_free(p);
    /* a class that no leaf has does not count */
    p = plan_of(d,
                (const char *const[]){"data", "x", "loss", "{kind: absolute}", "preset", "paper", "link.client.penalty",
                                      "mcp", "overrides", "[{node: '*/*', link: {penalty: tv}}]", NULL});
    theorem_check(&t, d, p, bound_of(d, p));
    if (!t.holds)
        fail_msg("%s", t.reason);
    plan_free(p);
    dataset_free(d);
}

static double steepest(const hfsad_loss *loss, double y)
{
    return loss_kind_of(loss)->steepest(loss, y);
}

static void slopes_of_losses(void **state)
{
    (void)state;
    near(steepest(&(hfsad_loss){HFSAD_LOSS_QUANTILE, 0.3, 1, 1, 0.3}, 2), 0.7);
    near(steepest(&(hfsad_loss){HFSAD_LOSS_HUBER, 0.3, 4, 1, 0.3}, 2), 4);
    near(steepest(&(hfsad_loss){HFSAD_LOSS_SQUARED, 0.3, 4, 1, 0.3}, -2), 2);
    near(steepest(&(hfsad_loss){HFSAD_LOSS_HINGE, 0.3, 4, 1, 0.3}, 1), 1);
}

static void explicit_keys_win(void **state)
{
    (void)state;
    dataset *d = data(false);
    plan *p = plan_of(d, (const char *const[]){"data", "x", "loss", "{kind: quantile, tau: 0.2}", "link.client.weight",
                                               "3", "schedule.edge.alpha", "7", "prior.cloud",
                                               "{penalty: l1, weight: 2}", "preset", "paper", NULL});
    near(p->leaf_classes[0].rule.penalty.weight, 3);
    near(p->leaf_classes[0].rule.schedule.c, 3); /* c follows the weight that is in force */
    near(p->inner[1].rule.schedule.alpha, 7);
    near(p->inner[1].rule.penalty.weight, 9 * 3 + (9 - 1.0 / 3) * 0.1 * 2.4);
    assert_int_equal(p->inner[0].prior.kind, HFSAD_PENALTY_L1);
    near(p->inner[0].prior.weight, 2);
    assert_int_equal(p->inner[1].prior.kind, HFSAD_PENALTY_SCAD);
    plan_free(p);
    dataset_free(d);
}

static void overrides(void **state)
{
    (void)state;
    dataset *d = data(false);
    plan *p = plan_of(d, (const char *const[]){"data", "x", "loss", "{kind: absolute}", "link.client.weight", "3",
                                               "overrides",
                                               "[{node: edge2, prior: {penalty: mcp, lambda: 0.2, gamma: 3}},"
                                               " {node: 'edge1/*', link: {penalty: scad, gamma: 4}, local_steps: 2},"
                                               " {node: edge1/client2, link: {weight: 9}, participation: 0.5}]",
                                               NULL});
    assert_int_equal(p->inner[2].prior.kind, HFSAD_PENALTY_MCP);
    near(p->inner[2].prior.lambda, 0.2);
    assert_int_equal(p->inner[1].prior.kind, HFSAD_PENALTY_NONE);
    const leaf_class *first = &p->leaf_classes[p->leaf_class_of[0]], *second = &p->leaf_classes[p->leaf_class_of[1]];
    const leaf_class *other = &p->leaf_classes[p->leaf_class_of[5]];
    assert_int_equal(first->rule.penalty.kind, HFSAD_PENALTY_SCAD);
    near(first->rule.penalty.gamma, 4);
    near(first->rule.penalty.weight, 3);
    assert_int_equal(first->local_steps, 2);
    near(second->rule.penalty.weight, 9);
    near(second->participation, 0.5);
    assert_int_equal(second->rule.penalty.kind, HFSAD_PENALTY_SCAD);
    assert_int_equal(other->rule.penalty.kind, HFSAD_PENALTY_L1);
    assert_int_equal(p->n_leaf_classes, 3);
    theorem_report t;
    theorem_check(&t, d, p, bound_of(d, p));
    assert_false(t.holds);
    assert_non_null(strstr(t.reason, "tv"));
    plan_free(p);
    dataset_free(d);
}

static void bad_input(void **state)
{
    (void)state;
    dataset *d = data(false);
#define BASE "data", "x", "loss", "{kind: absolute}"
    refused(d, (const char *const[]){BASE, "overrides", "[{node: edge9, participation: 1}]", NULL}, "edge9");
    refused(d,
            (const char *const[]){BASE, "link.client.gamma", "1.5", "overrides",
                                  "[{node: edge1/client1, link: {penalty: scad}}]", NULL},
            "gamma > 2");
    refused(d, (const char *const[]){"data", "x", "loss", "{kind: hinge}", NULL}, "-1 and 1");
    refused(d, (const char *const[]){BASE, "overrides", "[{node: edge1, loss: {kind: huber}}]", NULL}, "has no loss");
    refused(d, (const char *const[]){BASE, "overrides", "[{node: edge1, local_steps: 3}]", NULL}, "edge/*");
    refused(d, (const char *const[]){BASE, "overrides", "[{node: edge1/client2, prior: {weight: 1}}]", NULL},
            "no prior");
    refused(d, (const char *const[]){BASE, "overrides", "[{node: cloud, participation: 0.5}]", NULL}, "participation");
    refused(d, (const char *const[]){BASE, "overrides", "[{node: cloud, link: {weight: 0.5}}]", NULL}, "no link");
    refused(d, (const char *const[]){BASE, "overrides", "[{node: edge1}]", NULL}, "sets nothing");
    refused(d, (const char *const[]){BASE, "overrides", "[{node: edgee2, participation: 1}]", NULL}, "'edge2'");
    refused(d, (const char *const[]){BASE, "schedule.client.c", "1e300", NULL}, "1e100");
    refused(d, (const char *const[]){BASE, "link.edge", "{weight: 1e90, lambda: 1e90}", NULL}, "1e100");
    refused(d, (const char *const[]){BASE, "run", "{iterations: 1000000, edge_rounds: 10000}", NULL}, "2^31");
    dataset_free(d);
    d = data(true);
    plan_free(plan_of(d, (const char *const[]){"data", "x", "loss", "{kind: logistic}", NULL}));
    dataset_free(d);
}

static void theorem_needs_its_constants(void **state)
{
    (void)state;
    dataset *d = data(false);
    static const struct {
        const char *key, *value, *reason;
    } cases[] = {
        {"schedule.client.alpha", "1", "alpha c"},
        {"schedule.edge.c", "0.01", "edge links"},
        {"link.client.weight", "0.1", "client link's weight"},
        {"link.edge.weight", "0.1", "edge link's weight"},
        {"loss", "{kind: squared, box: none}", "squared"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        plan *p = plan_of(d, (const char *const[]){"data", "x", "loss", "{kind: phase-retrieval, box: 5}", "preset",
                                                   "paper", cases[i].key, cases[i].value, NULL});
        theorem_report t;
        theorem_check(&t, d, p, bound_of(d, p));
        assert_false(t.holds);
        if (!strstr(t.reason, cases[i].reason))
            fail_msg("%s: '%s'", cases[i].key, t.reason);
        plan_free(p);
    }
    dataset_free(d);
}

/* The spectral start finds the direction of a signal without noise. */
static void spectral_start(void **state)
{
    (void)state;
    enum { M = 8, CLIENTS = 4000 };
    hfsad_error err;
    rng r = {rng_key(2, rng_stream("plan")), 0};
    dataset_builder *b;
    dataset *d;
    double x[M], w[M] = {1, -2, 0, 0.5, 0, 0, 3, 0}, start[M], again[M];
    ok(dataset_builder_create(&b, M, &err), &err);
    for (size_t i = 0; i < CLIENTS; i++) {
        char name[32];
        snprintf(name, sizeof name, "c%zu", i);
        double s = 0;
        for (size_t m = 0; m < M; m++) {
            x[m] = rng_next_normal(&r);
            s += x[m] * w[m];
        }
        ok(dataset_builder_add(b, "e", name, s * s, x, NULL, 0, &err), &err);
    }
    ok(dataset_builder_finish(b, &d, &err), &err);
    ok(start_of(start, "spectral", d, 3, &err), &err);
    ok(start_of(again, "spectral", d, 3, &err), &err);
    assert_memory_equal(start, again, sizeof start);
    assert_true(relative_error(M, start, w, true) < 0.1);
    for (size_t leaf = 0; leaf < d->n_leaves; leaf++)
        d->y[leaf] = -1;
    assert_int_equal(start_of(start, "spectral", d, 3, &err), HFSAD_ERROR_INPUT);
    assert_int_equal(start_of(start, "no/such/file", d, 3, &err), HFSAD_ERROR_INPUT);
    ok(start_of(start, "zero", d, 3, &err), &err);
    assert_true(start[3] == 0);
    ok(start_of(start, "normal", d, 3, &err), &err);
    ok(start_of(again, "normal", d, 4, &err), &err);
    assert_memory_not_equal(start, again, sizeof start);
    dataset_free(d);
}

/* Rows of zeros pull nobody; they hide not that the others' pull has no bound. */
static void theorem_with_rows_of_zeros(void **state)
{
    (void)state;
    hfsad_error err;
    dataset_builder *b;
    dataset *d;
    ok(dataset_builder_create(&b, 2, &err), &err);
    dataset_builder_use_rows(b);
    for (int i = 0; i < 6; i++) {
        const double x[2] = {i < 3 ? 0 : 1, i < 3 ? 0 : i};
        ok(dataset_builder_add(b, "", i % 3 == 0 ? "a" : i % 3 == 1 ? "b" : "c", 1, x, NULL, 0, &err), &err);
    }
    ok(dataset_builder_finish(b, &d, &err), &err);
    plan *p = plan_of(d, (const char *const[]){"data", "x", "loss", "{kind: squared}", "preset", "paper", NULL});
    theorem_report t;
    theorem_check(&t, d, p, bound_of(d, p));
    assert_true(isinf(t.nu_f) && !t.holds);
    assert_non_null(strstr(t.reason, "squared"));
    plan_free(p);
    dataset_free(d);
}

/* The mean of 16 rows is their sum over 16, and so is all that it is measured by: a link that lets go pulls a 16th as
 * hard, as far as before. */
static void links_that_let_go_by_the_mean(void **state)
{
    (void)state;
    static const char *const scales[] = {"{kind: absolute}", "{kind: absolute, scale: mean}"};
    rng r = {rng_key(2, rng_stream("plan")), 0};
    hfsad_error err;
    dataset_builder *b;
    dataset *d;
    hfsad_link_rule rule[2][2]; /* by scale: a client's, an edge's */
    ok(dataset_builder_create(&b, 2, &err), &err);
    for (int i = 0; i < 64; i++) {
        const double x[2] = {rng_next_normal(&r), rng_next_normal(&r)};
        const char name[] = {(char)('a' + i % 4), 0};
        ok(dataset_builder_add(b, i % 2 ? "e1" : "e2", name, rng_next_normal(&r), x, NULL, 0, &err), &err);
    }
    ok(dataset_builder_finish(b, &d, &err), &err);
    for (int mean = 0; mean < 2; mean++) {
        plan *p = plan_of(d, (const char *const[]){"data", "x", "loss", scales[mean], "link.client.penalty", "mcp",
                                                   "link.edge.penalty", "scad", NULL});
        rule[mean][0] = p->leaf_classes[0].rule;
        rule[mean][1] = p->inner[1].rule;
        plan_free(p);
    }
    for (int i = 0; i < 2; i++) {
        const hfsad_link_rule *sum = &rule[0][i], *mean = &rule[1][i];
        near(16 * hfsad_penalty_slope(&mean->penalty), hfsad_penalty_slope(&sum->penalty));
        near(mean->penalty.gamma * mean->penalty.lambda, sum->penalty.gamma * sum->penalty.lambda);
        near(16 * mean->schedule.c, sum->schedule.c);
    }
    dataset_free(d);
}

/* Shapes, and what is auto: c or alpha by hand means the paper's sqrt(k). */
static void shapes_of_schedules(void **state)
{
    (void)state;
    dataset *d = data(false);
    static const struct {
        const char *loss, *schedule;
        double turn, growth, over;
    } cases[] = {
        {"absolute", "{}", 1, 0, 0},
        {"phase-retrieval", "{c: 3}", 1, 0, 0},
        {"phase-retrieval", "{alpha: 3}", 1, 0, 0},
        {"phase-retrieval", "{shape: sqrt}", 1, 0, 0},
        {"phase-retrieval", "{shape: geometric, growth: 1.5}", 1, 1.5, 0},
        {"absolute", "{growth: 1.02, relax: 1.5}", 25, 1.02, 0.5},
        {"absolute", "{c: 3, shape: sqrt-geometric}", 50, 1.01, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char loss[64];
        snprintf(loss, sizeof loss, "{kind: %s}", cases[i].loss);
        plan *p =
            plan_of(d, (const char *const[]){"data", "x", "loss", loss, "schedule.client", cases[i].schedule, NULL});
        const hfsad_schedule *s = &p->leaf_classes[0].rule.schedule;
        if (s->turn != cases[i].turn || s->growth != cases[i].growth || s->over != cases[i].over)
            fail_msg("%s %s: turn %g, growth %g, over %g", loss, cases[i].schedule, s->turn, s->growth, s->over);
        plan_free(p);
    }
    dataset_free(d);
}

/* The tuned preset of phase retrieval recomputed, with clients who take part less often and step more often. */
static void tuned_for_phase_retrieval(void **state)
{
    (void)state;
    dataset *d = data(false);
    plan *p = plan_of(
        d, (const char *const[]){"data", "x", "loss", "{kind: phase-retrieval}", "run",
                                 "{edge_rounds: 10, local_steps: 2, participation: {client: 0.4, edge: 0.8}}", NULL});
    double n = 0;
    for (size_t leaf = 0; leaf < d->n_leaves; leaf++)
        n += d->n[leaf] / (double)d->n_leaves;
    const double pace = 1 + 0.02 / pow(10, 0.3), c = 3 * 2 * n / (double)d->M;
    const hfsad_schedule *client = &p->leaf_classes[0].rule.schedule, *edge = &p->inner[1].rule.schedule;
    near(client->c, c);
    near(client->growth, sqrt(pace));
    near(edge->c, 0.4 * 9 * c); /* of the largest edge */
    near(edge->alpha * edge->c, hfsad_penalty_slope(&p->inner[1].rule.penalty) / 4);
    near(edge->growth, sqrt(pace));
    assert_true(p->inner[1].watched && !p->inner[0].watched);
    plan_free(p);
    dataset_free(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_papers_constants),
        cmocka_unit_test(explicit_keys_win),
        cmocka_unit_test(overrides),
        cmocka_unit_test(bad_input),
        cmocka_unit_test(theorem_needs_its_constants),
        cmocka_unit_test(theorem_with_rows_of_zeros),
        cmocka_unit_test(links_that_let_go_by_the_mean),
        cmocka_unit_test(other_trees),
        cmocka_unit_test(presets_see_overrides),
        cmocka_unit_test(slopes_of_losses),
        cmocka_unit_test(spectral_start),
        cmocka_unit_test(shapes_of_schedules),
        cmocka_unit_test(tuned_for_phase_retrieval),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
