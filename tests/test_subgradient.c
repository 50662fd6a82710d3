/* The centralized baseline: its objective and subgradient against independent computations, its steps, its box. */
#include "data/generated.h"
#include "run/subgradient.h"
#include "tools.h"

enum { M = 8, TRIES = 40 };

static const hfsad_loss PHASE = {.kind = HFSAD_LOSS_PHASE_RETRIEVAL, .box = INFINITY};
static const hfsad_penalty SCAD = {HFSAD_PENALTY_SCAD, 40, 0.1, 2.4, 0, 0},
                           NO_PRIOR = {HFSAD_PENALTY_NONE, 0, 1, 3, 0, 0};

static central_problem *problem(uint64_t seed, double snr_db, hfsad_loss loss, hfsad_penalty prior, double *truth)
{
    const phase_retrieval g = {
        .edges = 2, .clients = 40, .features = M, .snr_db = snr_db, .keep_x = 1, .keep_w = 0.5, .seed = seed};
    hfsad_error err;
    dataset *d;
    central_problem *p;
    ok(phase_retrieval_generate(&g, &d, truth, &err), &err);
    ok(central_problem_create(&p, d, &loss, &prior, &err), &err);
    dataset_free(d);
    return p;
}

static double scad(double t)
{
    const double a = fabs(t), l = SCAD.lambda, g = SCAD.gamma;
    if (a <= l)
        return l * a;
    if (a <= g * l)
        return (2 * g * l * a - a * a - l * l) / (2 * (g - 1));
    return l * l * (g + 1) / 2;
}

/* F written out; *kink: how near the point is to a place without a gradient. */
static double plain_objective(const central_problem *p, const double *w, double *kink)
{
    double value = 0;
    *kink = INFINITY;
    for (size_t i = 0; i < p->n; i++) {
        double s = 0;
        for (size_t m = 0; m < M; m++)
            s += p->x[i * M + m] * w[m];
        value += fabs(p->y[i] - s * s);
        *kink = fmin(*kink, fabs(p->y[i] - s * s));
    }
    for (size_t m = 0; m < M; m++) {
        value += p->prior.weight * scad(w[m]);
        *kink = fmin(*kink, fabs(w[m]));
    }
    return value;
}

static void gradient(void **state)
{
    (void)state;
    rng r = {rng_key(3, 1), 0};
    int checked = 0;
    for (uint64_t seed = 1; seed <= TRIES; seed++) {
        double truth[M], w[M], g[M], kink;
        central_problem *p = problem(seed, 0, PHASE, SCAD, truth);
        for (size_t m = 0; m < M; m++)
            w[m] = uniform(&r, -1, 1) * (below(&r, 2) ? 0.3 : 2);
        const double value = plain_objective(p, w, &kink);
        assert_true(fabs(central_objective(p, w, g) - value) < 1e-10 * value);
        assert_true(central_objective(p, w, NULL) == central_objective(p, w, g));
        for (size_t m = 0; kink > 1e-3 && m < M; m++, checked++) {
            const double h = 1e-6, at = w[m];
            double ignored;
            w[m] = at + h;
            const double above = plain_objective(p, w, &ignored);
            w[m] = at - h;
            const double slope = (above - plain_objective(p, w, &ignored)) / (2 * h);
            w[m] = at;
            if (fabs(slope - g[m]) > 1e-4 * (1 + fabs(slope)))
                fail_msg("seed %d, element %zu: %g instead of %g", (int)seed, m, g[m], slope);
        }
        central_problem_free(p);
    }
    assert_true(checked > 50);
}

/* At a kink any number between the slopes is right; F is then above its tangent for small moves along an axis. */
static void subgradient_at_zero(void **state)
{
    (void)state;
    double truth[M], w[M] = {0}, g[M], ignored;
    central_problem *p = problem(2, 20, PHASE, SCAD, truth);
    const double value = central_objective(p, w, g);
    for (size_t m = 0; m < M; m++)
        for (int side = -1; side <= 1; side += 2) {
            const double h = 1e-6 * side;
            w[m] = h;
            assert_true(plain_objective(p, w, &ignored) >= value + g[m] * h - 1e-9);
            w[m] = 0;
        }
    central_problem_free(p);
}

static double distance(const double *a, const double *b)
{
    double sum = 0;
    for (size_t m = 0; m < M; m++)
        sum += (a[m] - b[m]) * (a[m] - b[m]);
    return sqrt(sum);
}

/* Without a box the point moves by just the step of the rule, against the subgradient. */
static void steps(void **state)
{
    (void)state;
    const step_rule rules[] = {
        {STEP_GEOMETRIC, 0.3, 0.9}, {STEP_POWER, 2, 0.75}, {STEP_POLYAK, 0.5, 0}, {STEP_CONSTANT, 0.02, 0}};
    double truth[M];
    central_problem *p = problem(3, 10, PHASE, SCAD, truth);
    for (size_t k = 0; k < 4; k++) {
        double w[M], before[M], g[M], expected[M], ignored;
        for (size_t m = 0; m < M; m++)
            w[m] = truth[m] + 0.3;
        for (uint64_t done = 0; done < 20; done++) {
            memcpy(before, w, sizeof w);
            const double excess = plain_objective(p, w, &ignored) - 5;
            central_objective(p, w, expected);
            const double norm = distance(expected, (const double[M]){0});
            subgradient_step(p, &rules[k], 5, done, w, g);
            const double lengths[] = {0.3 * pow(0.9, (double)done), 2 / pow((double)done + 1, 0.75),
                                      0.5 * excess / norm, 0.02};
            assert_true(fabs(distance(w, before) - lengths[k]) < 1e-9 * (1 + lengths[k]));
            for (size_t m = 0; m < M; m++)
                assert_true(fabs(before[m] - w[m] - lengths[k] * expected[m] / norm) < 1e-9);
        }
    }
    central_problem_free(p);
}

/* Below F* Polyak's step would go uphill; it stays. So does every rule where the subgradient is 0. */
static void standing_still(void **state)
{
    (void)state;
    double truth[M], w[M], before[M], g[M];
    central_problem *p = problem(3, 10, PHASE, SCAD, truth);
    memcpy(w, truth, sizeof w);
    memcpy(before, truth, sizeof w);
    subgradient_step(p, &(step_rule){STEP_POLYAK, 1, 0}, 1e9, 0, w, g);
    assert_memory_equal(w, before, sizeof w);
    memset(w, 0, sizeof w); /* |y - <x,w>^2| and scad: 0 is among the subgradients at 0, and the one taken */
    memset(before, 0, sizeof w);
    subgradient_step(p, &(step_rule){STEP_CONSTANT, 1, 0}, 0, 0, w, g);
    for (size_t m = 0; m < M; m++)
        assert_true(w[m] == 0);
    central_problem_free(p);
}

static void box(void **state)
{
    (void)state;
    hfsad_loss loss = PHASE;
    size_t clipped = 0, inside = 0;
    loss.box = 0.5;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        const step_rule rule = {STEP_CONSTANT, 0.8, 0};
        double truth[M], g[M], free_w[M], box_w[M];
        central_problem *boxed = problem(seed, 10, loss, SCAD, truth), *open = problem(seed, 10, PHASE, SCAD, truth);
        for (size_t m = 0; m < M; m++)
            free_w[m] = box_w[m] = m % 2 ? 0.3 : -0.3;
        subgradient_step(open, &rule, 0, 0, free_w, g);
        subgradient_step(boxed, &rule, 0, 0, box_w, g);
        for (size_t m = 0; m < M; m++) {
            assert_true(box_w[m] == fmax(-0.5, fmin(0.5, free_w[m])));
            *(fabs(free_w[m]) > 0.5 ? &clipped : &inside) += 1;
        }
        central_problem_free(boxed);
        central_problem_free(open);
    }
    assert_true(clipped > 5 && inside > 5);
}

/* Without noise and prior the problem is sharp at the truth: geometric and Polyak steps converge linearly to it. */
static void convergence(void **state)
{
    (void)state;
    const struct {
        step_rule rule;
        double error;
    } cases[] = {{{STEP_GEOMETRIC, 0.3, 0.93}, 1e-12},
                 {{STEP_POLYAK, 1, 0}, 1e-12},
                 {{STEP_POWER, 1, 1}, 1e-4},
                 {{STEP_CONSTANT, 0.01, 0}, 1e-3}};
    for (size_t k = 0; k < 4; k++)
        for (uint64_t seed = 1; seed <= 5; seed++) {
            double truth[M], w[M], g[M];
            central_problem *p = problem(seed, 280, PHASE, NO_PRIOR, truth);
            for (size_t m = 0; m < M; m++)
                w[m] = truth[m] + (m % 2 ? 0.1 : -0.1);
            for (uint64_t done = 0; done < 400; done++)
                subgradient_step(p, &cases[k].rule, central_objective(p, truth, NULL), done, w, g);
            const double error = relative_error(M, w, truth, true);
            if (!(error < cases[k].error))
                fail_msg("rule %zu, seed %d: error %g", k, (int)seed, error);
            central_problem_free(p);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradient), cmocka_unit_test(subgradient_at_zero),
        cmocka_unit_test(steps),    cmocka_unit_test(standing_still),
        cmocka_unit_test(box),      cmocka_unit_test(convergence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
