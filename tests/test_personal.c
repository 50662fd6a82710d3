/*
 * Groups of clients (personal/grow.h): that they are found, against fits that know them, computed here by normal
 * equations; one group if there is one; the clients' answers against differences of the loss; questions as numbers.
 */
#include "tools.h"

#include "math/loss_kind.h"
#include "personal/personal_task.h"
#include "run/personal_run.h"
#include "run/train.h"

#include <math.h>

enum { F = 4, CLIENTS = 24, ROWS = 30 };

/* ---- data of clients that follow `groups` models ---- */

static size_t group_of(size_t client, size_t groups)
{
    return groups == 3 ? client % 3 : groups == 2 ? client % 4 == 0 : 0;
}

static double row(rng *r, const hfsad_loss *loss, size_t group, double *x)
{
    static const double models[3][F] = {{1, -2, 0.5, 1}, {-1, 1, 0.5, 2}, {2, 1, -1, -1}};
    double s = 0;
    for (size_t m = 0; m < F; m++) {
        x[m] = rng_next_normal(r);
        s += x[m] * models[group][m];
    }
    const loss_kind *kind = loss_kind_of(loss);
    if (kind->labels)
        return s + rng_next_normal(r) / 2 > 0 ? 1 : -1;
    return kind->start == LOSS_START_LOG ? floor(exp(s / 4) + 0.5) : s + rng_next_normal(r) / 2;
}

/* sums: of every group X'X and X'y, (F + 1) F numbers; may be NULL. */
static dataset *make(uint64_t seed, const hfsad_loss *loss, size_t groups, double *sums)
{
    rng r = {rng_key(seed, rng_stream("personal")), 0};
    dataset_builder *b;
    hfsad_error err;
    dataset *d;
    ok(dataset_builder_create(&b, F, &err), &err);
    for (size_t c = 0; c < CLIENTS; c++)
        for (size_t i = 0; i < ROWS; i++) {
            char name[20];
            double x[F];
            const size_t g = group_of(c, groups);
            const double y = row(&r, loss, g, x);
            snprintf(name, sizeof name, "c%02zu", c);
            ok(dataset_builder_add(b, c % 2 ? "a" : "b", name, y, x, NULL, 0, &err), &err);
            for (size_t m = 0; m < F && sums; m++) {
                for (size_t k = 0; k < F; k++)
                    sums[(g * (F + 1) + m) * F + k] += x[m] * x[k];
                sums[(g * (F + 1) + F) * F + m] += x[m] * y;
            }
        }
    ok(dataset_builder_finish(b, &d, &err), &err);
    return d;
}

static hfsad_run *trained(const char *text, dataset *d, unsigned threads)
{
    hfsad_spec *spec;
    hfsad_run *run;
    hfsad_error err;
    train_end end;
    char whole[300];
    snprintf(whole, sizeof whole, "data: x\npersonal: groups\n%s", text);
    ok(spec_load_text(&spec, "spec.yaml", whole, strlen(whole), &err), &err);
    ok(run_create_on(&run, spec, d, threads, &err), &err);
    ok(run_train(run, &(train_settings){0}, &end, &err), &err);
    hfsad_spec_free(spec);
    return run;
}

/* The client's number is in its name, "a/c07". */
static size_t client_of(const hfsad_run *run, size_t leaf)
{
    char name[40];
    hfsad_run_node_name(run, run->data->n_inner + leaf, name, sizeof name);
    return strtoul(strchr(name, '/') + 2, NULL, 10);
}

static bool is_right(const hfsad_run *run, size_t groups)
{
    uint32_t of[3];
    bool seen[3] = {false}, right = run->personal.found.K == groups;
    for (size_t leaf = 0; leaf < CLIENTS && right; leaf++) {
        const size_t g = group_of(client_of(run, leaf), groups);
        const uint32_t found = run_group_of(run, leaf);
        right = !seen[g] || of[g] == found;
        seen[g] = true;
        of[g] = found;
    }
    for (size_t g = 1; g < groups && right; g++)
        right = of[g] != of[0] && (g == 1 || of[g] != of[1]);
    return right;
}

/* ---- tests ---- */

static void finds_groups(void **state)
{
    (void)state;
    static const char *const kinds[] = {"squared",  "absolute", "quantile, tau: 0.3",  "huber",
                                        "logistic", "hinge",    "expectile, tau: 0.6", "smoothed-quantile",
                                        "poisson"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        for (size_t groups = 1; groups <= 3; groups++) {
            char text[200];
            snprintf(text, sizeof text, "loss: {kind: %s}\nrun: {iterations: 2, polish: false}\n", kinds[i]);
            hfsad_spec *spec;
            hfsad_error err;
            char whole[300];
            snprintf(whole, sizeof whole, "data: x\n%s", text);
            ok(spec_load_text(&spec, "spec.yaml", whole, strlen(whole), &err), &err);
            const hfsad_loss loss = loss_of(&spec->loss, NULL);
            hfsad_spec_free(spec);
            hfsad_run *run = trained(text, make(groups, &loss, groups, NULL), 1);
            if (!is_right(run, groups))
                fail_msg("%s: %zu groups found, not the %zu: %s", kinds[i], run->personal.found.K, groups,
                         run->personal.reason);
            hfsad_run_free(run);
        }
}

/* For the squared loss with groups that are far apart: the least-squares fits of the true groups. */
static void models_are_fits(void **state)
{
    (void)state;
    const hfsad_loss loss = {.kind = HFSAD_LOSS_SQUARED, .box = INFINITY};
    double sums[3 * (F + 1) * F] = {0}, w[F], g[F];
    hfsad_run *run = trained("loss: {kind: squared}\nrun: {iterations: 2}\n", make(7, &loss, 3, sums), 1);
    for (size_t leaf = 0; leaf < CLIENTS; leaf++) {
        const double *of = sums + group_of(client_of(run, leaf), 3) * (F + 1) * F;
        hfsad_run_node_model(run, run->data->n_inner + leaf, w);
        for (size_t m = 0; m < F; m++) { /* X'X w = X'y */
            g[m] = -of[F * F + m];
            for (size_t k = 0; k < F; k++)
                g[m] += of[m * F + k] * w[k];
            if (fabs(g[m]) > 1e-5 * of[m * F + m])
                fail_msg("client %zu: derivative %g", leaf, g[m]);
        }
    }
    hfsad_run_free(run);
}

static void box_and_prior_hold(void **state)
{
    (void)state;
    const hfsad_loss loss = {.kind = HFSAD_LOSS_SQUARED, .box = INFINITY};
    double w[F];
    size_t zeros = 0;
    hfsad_run *run = trained("loss: {kind: squared, box: 1.5}\nprior: {cloud: {penalty: l1, weight: 1, lambda: 120}}\n"
                             "run: {iterations: 2}\n",
                             make(7, &loss, 3, NULL), 1);
    assert_true(run->personal.found.K > 1);
    for (size_t k = 0; k < run->personal.found.K; k++)
        for (size_t m = 0; m < F; m++) {
            const double v = run->personal.found.w[k * F + m];
            assert_true(fabs(v) <= 1.5);
            zeros += v == 0;
        }
    assert_true(zeros > 0);
    hfsad_run_node_model(run, run->data->n_inner, w);
    hfsad_run_free(run);
}

static void same_by_threads(void **state)
{
    (void)state;
    const hfsad_loss loss = {.kind = HFSAD_LOSS_ABSOLUTE, .box = INFINITY};
    const char *text = "loss: {kind: absolute}\nrun: {iterations: 2}\n";
    hfsad_run *a = trained(text, make(3, &loss, 3, NULL), 1), *b = trained(text, make(3, &loss, 3, NULL), 3);
    const personal_result *x = &a->personal.found, *y = &b->personal.found;
    assert_true(x->K == 3 && y->K == 3 && x->exchanges == y->exchanges);
    assert_memory_equal(x->w, y->w, 3 * F * sizeof(double));
    assert_memory_equal(x->p, y->p, 3 * CLIENTS * sizeof(double));
    hfsad_run_free(a);
    hfsad_run_free(b);
}

static void says_why_not(void **state)
{
    (void)state;
    static const char *const texts[][2] = {
        {"loss: {kind: squared}\nlink: {client: {penalty: mcp}}\n", "link"},
        {"loss: {kind: phase-retrieval}\n", "loss.kind"},
        {"loss: {kind: squared, scale: mean}\n", "loss.scale"},
        {"loss: {kind: squared}\nalgorithm: fedavg\n", "algorithm"},
        {"loss: {kind: squared}\nfeatures: {intercept: client}\n", "features.intercept"},
    };
    const hfsad_loss loss = {.kind = HFSAD_LOSS_SQUARED, .box = INFINITY};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char text[200];
        snprintf(text, sizeof text, "%srun: {iterations: 2, start: normal}\n", texts[i][0]);
        hfsad_run *run = trained(text, make(1, &loss, 2, NULL), 1);
        assert_true(run->personal.found.K == 0);
        if (strncmp(run->personal.reason, texts[i][1], strlen(texts[i][1])) != 0)
            fail_msg("%s: %s", texts[i][0], run->personal.reason);
        hfsad_run_free(run);
    }
}

/* ---- answers ---- */

/* -log of the likelihood's part that a client answers, and its slope along the models: the weights are those of the
 * mixture, so the gradient of the sum is that of the likelihood times T. */
static void gradient_is_slope(void **state)
{
    (void)state;
    static const hfsad_loss losses[] = {{.kind = HFSAD_LOSS_SQUARED, .box = INFINITY},
                                        {.kind = HFSAD_LOSS_ABSOLUTE, .box = INFINITY},
                                        {.kind = HFSAD_LOSS_QUANTILE, .tau = 0.2, .box = INFINITY},
                                        {.kind = HFSAD_LOSS_HUBER, .delta = 0.7, .box = INFINITY},
                                        {.kind = HFSAD_LOSS_LOGISTIC, .box = INFINITY},
                                        {.kind = HFSAD_LOSS_HINGE, .box = INFINITY}};
    enum { K = 2, LENGTH = MIXTURE_TOTALS + K * (MIXTURE_SUMS + F + F * (F + 1) / 2) };
    for (size_t i = 0; i < sizeof losses / sizeof *losses; i++) {
        dataset *d = make(i, &losses[i], 2, NULL);
        double share[K] = {0.6, 0.4}, w[K * F], answer[LENGTH], there[LENGTH],
               *scratch = alloc_zero(mixture_scratch(F), 8);
        rng r = {rng_key(i, 1), 0};
        for (size_t m = 0; m < K * F; m++)
            w[m] = rng_next_normal(&r);
        const mixture_client c = {&losses[i], dataset_rows(d, 3), F, 3, scratch};
        const mixture_question q = {.kind = MIXTURE_STATS, .now = {K, 20, share, w}, .kappa = 0.3};
        mixture_answer(&c, &q, answer);
        for (size_t m = 0; m < K * F; m++) {
            const double h = 1e-5, old = w[m];
            const size_t at = MIXTURE_TOTALS + m / F * (MIXTURE_SUMS + F + F * (F + 1) / 2) + MIXTURE_SUMS + m % F;
            w[m] = old + h;
            mixture_answer(&c, &q, there);
            double slope = there[MIXTURE_LIKELIHOOD];
            w[m] = old - h;
            mixture_answer(&c, &q, there);
            slope = 20 * (slope - there[MIXTURE_LIKELIHOOD]) / (2 * h);
            w[m] = old;
            if (fabs(slope - answer[at]) > 1e-4 * (1 + fabs(slope)))
                fail_msg("loss %zu, coordinate %zu: %.9g, by differences %.9g", i, m, answer[at], slope);
        }
        free(scratch);
        dataset_free(d);
    }
}

/* Sizes are those that the clients' weights give, also if the cloud does not get the weights; none is below the cohort.
 */
static void sizes_are_sums(void **state)
{
    (void)state;
    const hfsad_loss loss = {.kind = HFSAD_LOSS_SQUARED, .box = INFINITY};
    const char *const texts[] = {
        "loss: squared\n",
        "loss: squared\noutput: {clients: false}\n",
        "loss: squared\nprivacy: {aggregation: secure, cohort: 6}\n",
        "loss: squared\nprivacy: {aggregation: secure, cohort: 7}\n",
    };
    for (size_t i = 0; i < 4; i++) {
        hfsad_run *run = trained(texts[i], make(5, &loss, 2, NULL), 1);
        const personal_result *found = &run->personal.found;
        if (i == 3) { /* the second group has 6 clients */
            assert_int_equal(found->K, 1);
            assert_int_equal(found->size[0], CLIENTS);
        } else {
            assert_int_equal(found->K, 2);
            assert_int_equal(found->size[0], CLIENTS - CLIENTS / 4);
            assert_int_equal(found->size[1], CLIENTS / 4);
        }
        assert_true(!found->p == (i > 0));
        hfsad_run_free(run);
    }
}

static void questions_travel(void **state)
{
    (void)state;
    double share[3] = {0.5, 0.3, 0.2}, w[3 * F] = {1, 2, 3}, u[3 * F] = {4, 5}, reach[3] = {6, 7, 8}, values[200];
    for (int kind = 0; kind < MIXTURE_KINDS; kind++) {
        mixture_question q = {
            .kind = (mixture_kind)kind, .now = {3, 2, share, w}, .kappa = 0.1, .first = 2, .count = 9};
        mixture_question back;
        q.u = u;
        q.reach = reach;
        if (kind == MIXTURE_STATS || kind == MIXTURE_CROSS) {
            q.from = (mixture){2, 3, share + 1, w + F};
            q.cut = (mixture_cut){1, -0.5, 0.1, u};
        }
        const size_t count = mixture_count(&q, F);
        assert_true(count <= 200);
        mixture_pack(&q, F, values);
        assert_true(mixture_unpack(&back, (mixture_kind)kind, F, values, count));
        assert_true(back.now.K == 3 && back.now.T == 2 && back.first == 2 && back.count == 9 && back.kappa == 0.1);
        assert_memory_equal(back.now.w, w, sizeof w);
        assert_true(mixture_length(&back, F) == mixture_length(&q, F));
        if (kind == MIXTURE_STATS)
            assert_true(back.cut.group == 1 && back.cut.at == -0.5 && back.cut.u[1] == 5 &&
                        back.from.w[F - 1] == w[2 * F - 1]);
        if (kind == MIXTURE_CUTS)
            assert_true(back.u[0] == 4 && back.reach[2] == 8);
        assert_false(mixture_unpack(&back, (mixture_kind)kind, F, values, count - 1));
        assert_false(mixture_unpack(&back, (mixture_kind)kind, F, values, 3));
        values[3] = 2.5;
        assert_false(mixture_unpack(&back, (mixture_kind)kind, F, values, count));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_groups),     cmocka_unit_test(models_are_fits), cmocka_unit_test(box_and_prior_hold),
        cmocka_unit_test(same_by_threads),  cmocka_unit_test(says_why_not),    cmocka_unit_test(gradient_is_slope),
        cmocka_unit_test(questions_travel), cmocka_unit_test(sizes_are_sums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
