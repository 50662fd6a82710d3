/* Penalties against their definitions: values, derivatives, and the prox against brute force. */
#include "math/penalty_kind.h"
#include "tools.h"

/* The penalties by their definitions, written down once more and independently of the library. */
static double absolute(double t, double mu)
{
    const double a = fabs(t);
    return a >= mu ? a : t * t / (2 * mu) + mu / 2;
}

static double defined_value(const hfsad_penalty *p, double t, double mu)
{
    const double a = fabs(t), l = p->lambda, g = p->gamma;
    double exact = 0;
    switch (p->kind) {
    case HFSAD_PENALTY_NONE:
        return 0;
    case HFSAD_PENALTY_L1:
        return p->weight * l * absolute(t, mu);
    case HFSAD_PENALTY_L2:
        return p->weight * l * t * t / 2;
    case HFSAD_PENALTY_ELASTIC_NET:
        return p->weight * l * (p->ratio * absolute(t, mu) + (1 - p->ratio) * t * t / 2);
    case HFSAD_PENALTY_MCP:
    case HFSAD_PENALTY_GROUP_MCP: /* t: the norm */
        exact = a <= g * l ? l * a - t * t / (2 * g) : g * l * l / 2;
        break;
    case HFSAD_PENALTY_SCAD:
    case HFSAD_PENALTY_GROUP_SCAD:
        exact = a <= l ? l * a : a <= g * l ? (2 * g * l * a - t * t - l * l) / (2 * (g - 1)) : l * l * (g + 1) / 2;
        break;
    }
    return p->weight * (exact - l * a + l * absolute(t, mu));
}

static bool is_scad(size_t kind)
{
    return kind == HFSAD_PENALTY_SCAD || kind == HFSAD_PENALTY_GROUP_SCAD;
}

typedef struct {
    hfsad_penalty p;
    double v, step, mu;
} setting;

static double objective(const void *context, double x)
{
    const setting *s = context;
    return s->step * defined_value(&s->p, x, s->mu) + (x - s->v) * (x - s->v) / 2;
}

static hfsad_penalty random_penalty(rng *r, size_t kind)
{
    const double least = is_scad(kind) ? 2 : 1;
    const double weight = log_uniform(r, 1e-2, 1e2), lambda = log_uniform(r, 1e-2, 10);
    return (hfsad_penalty){
        (hfsad_penalty_kind)kind,         weight, lambda,
        least + log_uniform(r, 1e-2, 10), 0,      below(r, 5) ? uniform(r, 0, 1) : (double)below(r, 2)};
}

static void check_prox(const setting *s, const char *what, uint64_t number)
{
    const double x = hfsad_penalty_prox(&s->p, s->v, s->step, s->mu), have = objective(s, x);
    const double reach = fmax(fmax(fabs(s->v), s->mu), s->p.gamma * s->p.lambda) * 1.01;
    const double least = brute_minimum(objective, s, -reach, reach);
    if (!(have <= least + 1e-9 * (fabs(least) + 1e-12)))
        fail_msg("%s %llu: kind %d weight %.17g lambda %.17g gamma %.17g v %.17g step %.17g mu %.17g: prox %.17g has "
                 "%.17g, brute force %.17g",
                 what, (unsigned long long)number, (int)s->p.kind, s->p.weight, s->p.lambda, s->p.gamma, s->v, s->step,
                 s->mu, x, have, least);
}

static void prox_is_the_global_minimiser(void **state)
{
    (void)state;
    rng r = {rng_key(1, rng_stream("penalty")), 0};
    size_t not_convex = 0;
    for (uint64_t i = 0; i < 9000; i++) {
        setting s = {random_penalty(&r, i % HFSAD_PENALTY_COUNT), 0, 0, 0};
        s.step = log_uniform(&r, 1e-3, 1e3);
        s.mu = i % 3 ? log_uniform(&r, 1e-4, 1e2) : 0;
        const double scale = s.p.gamma * s.p.lambda + s.step * s.p.weight * s.p.lambda + s.mu;
        s.v = uniform(&r, -1.5, 1.5) * scale;
        const double kappa = is_scad(s.p.kind) ? s.p.gamma - 1 : s.p.gamma;
        not_convex += penalty_is_concave(&s.p) && s.step * s.p.weight / kappa > 1;
        check_prox(&s, "draw", i);
    }
    assert_true(not_convex > 1000);
}

/* Points where pieces meet, and where two minima are equally deep. */
static void prox_at_breakpoints_and_ties(void **state)
{
    (void)state;
    rng r = {rng_key(2, rng_stream("penalty")), 0};
    for (uint64_t i = 0; i < 300; i++) {
        const hfsad_penalty p = random_penalty(&r, i % HFSAD_PENALTY_COUNT);
        const double step = log_uniform(&r, 1e-2, 1e2), mu = i % 2 ? log_uniform(&r, 1e-3, 10) : 0;
        const double pull = step * p.weight * p.lambda;
        const double points[] = {0,         p.lambda,        p.gamma * p.lambda,        mu,        pull,
                                 mu + pull, p.lambda + pull, p.gamma * p.lambda + pull, -p.lambda, -p.gamma * p.lambda};
        for (size_t k = 0; k < sizeof points / sizeof *points; k++)
            check_prox(&(setting){p, points[k], step, mu}, "breakpoint", i);
        /* bisection for the v at which the prox jumps; just beside it both branches are within rounding of each other
         */
        double low = 0, high = p.gamma * p.lambda + 2 * pull + mu;
        for (int round = 0; round < 60; round++) {
            const double v = (low + high) / 2, x = hfsad_penalty_prox(&p, v, step, mu);
            if (x < v / 2)
                low = v;
            else
                high = v;
        }
        check_prox(&(setting){p, low, step, mu}, "tie", i);
        check_prox(&(setting){p, high, step, mu}, "tie", i);
        check_prox(&(setting){p, -low, step, mu}, "tie", i);
    }
}

static void values_and_gradients(void **state)
{
    (void)state;
    rng r = {rng_key(3, rng_stream("penalty")), 0};
    for (uint64_t i = 0; i < 4000; i++) {
        const hfsad_penalty p = random_penalty(&r, i % HFSAD_PENALTY_COUNT);
        const double mu = log_uniform(&r, 1e-3, 10), t = uniform(&r, -2, 2) * (p.gamma * p.lambda + mu), h = 1e-6 * mu;
        const double want = defined_value(&p, t, mu), scale = p.weight * p.lambda * (fabs(t) + mu);
        assert_true(fabs(hfsad_penalty_value(&p, t, mu) - want) <= 1e-12 * scale);
        assert_true(fabs(hfsad_penalty_value(&p, t, 0) - defined_value(&p, t, 0)) <= 1e-12 * scale);
        assert_true(hfsad_penalty_value(&p, t, mu) >= hfsad_penalty_value(&p, t, 0) - 1e-12 * scale);
        const double slope = (defined_value(&p, t + h, mu) - defined_value(&p, t - h, mu)) / (2 * h);
        const double error = fabs(hfsad_penalty_gradient(&p, t, mu) - slope);
        if (error > 1e-4 * p.weight * p.lambda + 1e-9 * scale / h)
            fail_msg("draw %llu: gradient off by %g", (unsigned long long)i, error);
        assert_true(fabs(hfsad_penalty_gradient(&p, t, mu)) <= hfsad_penalty_slope(&p) * (1 + 1e-12) ||
                    p.kind >= HFSAD_PENALTY_MCP);
        assert_true(fabs(hfsad_penalty_gradient(&p, t, mu)) <= penalty_steepest(&p, fabs(t)) * (1 + 1e-12) ||
                    penalty_is_concave(&p));
    }
}

/* All digits, not only as many as comparing objectives leaves: the derivative vanishes at the prox. */
static void prox_to_the_last_digits(void **state)
{
    (void)state;
    rng r = {rng_key(4, rng_stream("penalty")), 0};
    for (uint64_t i = 0; i < 4000; i++) {
        const hfsad_penalty p = random_penalty(&r, 1 + i % (HFSAD_PENALTY_COUNT - 1));
        const double mu = log_uniform(&r, 1e-3, 10), step = log_uniform(&r, 1e-3, 10);
        const double v = log_uniform(&r, 1e-12, 10) * (mu + step * p.weight * p.lambda);
        const double x = hfsad_penalty_prox(&p, v, step, mu);
        const double pull = step * hfsad_penalty_gradient(&p, x, mu), left = x + pull - v;
        /* what a rounding of x changes */
        const double steep = step * p.weight * (p.lambda / mu + 1);
        if (!(fabs(left) <= 1e-14 * (fabs(x) * (1 + steep) + fabs(pull) + fabs(v))))
            fail_msg("draw %llu: kind %d, v %.17g: derivative %g at the prox %.17g", (unsigned long long)i, (int)p.kind,
                     v, left, x);
    }
    const hfsad_penalty mcp = {HFSAD_PENALTY_MCP, 1, 1, 3, 0, 0};
    assert_true(fabs(hfsad_penalty_prox(&mcp, 1e-9, 0.5, 0.1) / (1e-9 / (1 + 0.5 * (10 - 1.0 / 3))) - 1) < 1e-12);
}

/* mu = infinity is where a link starts: the multiplier at q - z = 0 is 0. */
static void infinite_smoothing(void **state)
{
    (void)state;
    for (size_t kind = 0; kind < 4; kind++) {
        const hfsad_penalty p = {(hfsad_penalty_kind)kind, 2, 0.5, 3, 0, 0};
        assert_true(hfsad_penalty_gradient(&p, 0, INFINITY) == 0);
    }
}

/* ---- links of norms ---- */

enum { WIDE = 20 };

static double norm_of(size_t M, const double *a, const double *b)
{
    double sum = 0;
    for (size_t m = 0; m < M; m++)
        sum += (a[m] - (b ? b[m] : 0)) * (a[m] - (b ? b[m] : 0));
    return sqrt(sum);
}

/* step P(|e|) + |e - t|^2 / 2 */
static double whole_objective(const setting *s, size_t M, const double *e, const double *t)
{
    const double far = norm_of(M, e, t);
    return s->step * defined_value(&s->p, norm_of(M, e, NULL), s->mu) + far * far / 2;
}

/* The first step of a link, whose multiplier is 0: e = q - z is the prox at t = w_parent - w_child. Rivals: every
 * length along t, and vectors drawn around e, around t and at random. */
static void prox_of_a_norm(void **state)
{
    (void)state;
    rng r = {rng_key(5, rng_stream("penalty")), 0};
    size_t not_convex = 0, shrunk = 0;
    for (uint64_t i = 0; i < 600; i++) {
        const size_t M = 1 + below(&r, WIDE);
        const hfsad_link_rule rule = {random_penalty(&r, i % 2 ? HFSAD_PENALTY_GROUP_MCP : HFSAD_PENALTY_GROUP_SCAD),
                                      {.c = log_uniform(&r, 1e-2, 1e2), .alpha = log_uniform(&r, 1e-4, 1e2)}};
        setting s = {rule.penalty, 0, 2 / rule.schedule.c, rule.schedule.alpha};
        double z[WIDE], q[WIDE], child[WIDE], parent[WIDE], t[WIDE], e[WIDE], other[WIDE];
        const double scale = s.p.gamma * s.p.lambda + s.step * s.p.weight * s.p.lambda + s.mu;
        const double size = i % 10 ? uniform(&r, 0, 1.5) * scale / sqrt((double)M) : 0;
        for (size_t m = 0; m < M; m++) {
            z[m] = q[m] = uniform(&r, -1, 1);
            child[m] = uniform(&r, -1, 1);
            parent[m] = child[m] + uniform(&r, -size, size);
            t[m] = parent[m] - child[m];
        }
        hfsad_link link = {z, q, 1};
        hfsad_link_step(&rule, &link, M, child, parent);
        for (size_t m = 0; m < M; m++)
            e[m] = q[m] - z[m];
        s.v = norm_of(M, t, NULL);
        const double have = whole_objective(&s, M, e, t), reach = 1.01 * fmax(fmax(s.v, s.mu), s.p.gamma * s.p.lambda);
        double least = brute_minimum(objective, &s, 0, reach);
        for (int draw = 0; draw < 60; draw++) {
            const double by = log_uniform(&r, 1e-6, 1) * scale;
            for (size_t m = 0; m < M; m++)
                other[m] = (draw % 3 == 0 ? e[m] : draw % 3 == 1 ? t[m] : 0) + uniform(&r, -by, by);
            least = fmin(least, whole_objective(&s, M, other, t));
        }
        if (!(have <= least + 1e-8 * (fabs(least) + 1e-12 * scale * scale)))
            fail_msg("draw %llu, kind %d, M %zu, |t| %g: e has %.17g, another vector %.17g", (unsigned long long)i,
                     (int)s.p.kind, M, s.v, have, least);
        not_convex += s.step * s.p.weight / (is_scad(s.p.kind) ? s.p.gamma - 1 : s.p.gamma) > 1;
        shrunk += norm_of(M, e, NULL) < 0.5 * s.v;
    }
    assert_true(not_convex > 60 && shrunk > 60);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prox_is_the_global_minimiser), cmocka_unit_test(prox_at_breakpoints_and_ties),
        cmocka_unit_test(values_and_gradients),         cmocka_unit_test(prox_to_the_last_digits),
        cmocka_unit_test(infinite_smoothing),           cmocka_unit_test(prox_of_a_norm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
