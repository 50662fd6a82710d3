/* Losses against their definitions: the prox of one observation against brute force, with and without a box. */
#include "defined_losses.h"

enum { M_MOST = 40 };

typedef struct {
    hfsad_loss loss;
    size_t M;
    double x[M_MOST], v[M_MOST], y, n, sigma;
} setting;

static double value_at(const setting *s, const double *w)
{
    double product = 0, far = 0;
    for (size_t m = 0; m < s->M; m++) {
        product += s->x[m] * w[m];
        far += (w[m] - s->v[m]) * (w[m] - s->v[m]);
    }
    return (double)defined_loss(&s->loss, s->y, product) + s->sigma / 2 * far;
}

static double clip(double a, double bound)
{
    return fmin(fmax(a, -bound), bound);
}

/* The family that holds the minimiser: v - t x, cut to the box. */
static double along(const void *context, double t)
{
    const setting *s = context;
    double w[M_MOST];
    for (size_t m = 0; m < s->M; m++)
        w[m] = clip(s->v[m] - t * s->x[m], s->loss.box);
    return value_at(s, w);
}

static setting random_setting(rng *r, hfsad_loss_kind kind, size_t M, bool boxed)
{
    setting s = {.M = M, .sigma = log_uniform(r, 1e-2, 1e2)};
    s.loss = (hfsad_loss){kind, uniform(r, 0.05, 0.95), 1, INFINITY, 0.3};
    s.loss.delta = log_uniform(r, 0.1, 3);
    if (boxed)
        s.loss.box = log_uniform(r, 0.1, 3);
    for (size_t m = 0; m < M; m++) {
        s.x[m] = below(r, 6) ? rng_next_normal(r) : 0;
        s.v[m] = 2 * rng_next_normal(r);
        s.n += s.x[m] * s.x[m];
    }
    s.y = observation_near(r, kind, 3 * rng_next_normal(r));
    return s;
}

static void prox_of(const setting *s, double *w)
{
    double *scratch = alloc_zero(hfsad_loss_scratch(&s->loss, s->M), sizeof *scratch);
    hfsad_loss_prox(&s->loss, s->M, s->x, s->y, s->n, s->v, s->sigma, w, scratch);
    free(scratch);
    for (size_t m = 0; m < s->M; m++)
        assert_true(fabs(w[m]) <= s->loss.box);
}

static void check(const setting *s, double least, const char *what, size_t number)
{
    double w[M_MOST];
    prox_of(s, w);
    const double have = value_at(s, w);
    if (!(have <= least + 1e-9 * (fabs(least) + 1)))
        fail_msg("%s %zu: loss %d M %zu y %.17g sigma %.17g box %g: prox has %.17g, brute force %.17g", what, number,
                 (int)s->loss.kind, s->M, s->y, s->sigma, s->loss.box, have, least);
}

static void against_the_line(void **state)
{
    (void)state;
    rng r = {rng_key(1, rng_stream("loss")), 0};
    for (size_t i = 0; i < LOSSES * 700; i++) {
        const size_t M = 1 + below(&r, i % 10 ? 12 : M_MOST);
        const setting s = random_setting(&r, kind_at(i), M, i % 2);
        const double reach = 40 / (sqrt(s.n) + 0.1) + 40;
        check(&s, brute_minimum(along, &s, -reach, reach), "draw", i);
    }
}

/* Two features, all of the square: nothing is assumed about where the minimiser lies. */
static double square_minimum(const setting *s)
{
    double centre[2] = {0, 0}, half = s->loss.box, best = INFINITY;
    for (int round = 0; round < 12; round++) {
        double at[2] = {centre[0], centre[1]};
        for (int i = -60; i <= 60; i++)
            for (int j = -60; j <= 60; j++) {
                const double w[2] = {clip(centre[0] + half * i / 60, s->loss.box),
                                     clip(centre[1] + half * j / 60, s->loss.box)};
                const double value = value_at(s, w);
                if (value < best) {
                    best = value;
                    at[0] = w[0];
                    at[1] = w[1];
                }
            }
        centre[0] = at[0];
        centre[1] = at[1];
        half /= 8;
    }
    return best;
}

static void against_the_square(void **state)
{
    (void)state;
    rng r = {rng_key(2, rng_stream("loss")), 0};
    for (size_t i = 0; i < LOSSES * 40; i++) {
        const setting s = random_setting(&r, kind_at(i), 2, true);
        check(&s, square_minimum(&s), "square", i);
    }
}

/* Cases where clipping the unconstrained prox is not the prox. */
static void a_clip_is_wrong(void **state)
{
    (void)state;
    rng r = {rng_key(3, rng_stream("loss")), 0};
    size_t wrong[LOSSES] = {0};
    for (size_t i = 0; i < LOSSES * 200; i++) {
        const setting s = random_setting(&r, kind_at(i), 5, true);
        setting free_of_box = s;
        free_of_box.loss.box = INFINITY;
        double w[M_MOST], clipped[M_MOST];
        prox_of(&s, w);
        prox_of(&free_of_box, clipped);
        for (size_t m = 0; m < s.M; m++)
            clipped[m] = clip(clipped[m], s.loss.box);
        assert_true(value_at(&s, w) <= value_at(&s, clipped) + 1e-9);
        wrong[i % LOSSES] += value_at(&s, clipped) > value_at(&s, w) + 1e-3;
    }
    for (size_t kind = 0; kind < LOSSES; kind++)
        assert_true(wrong[kind] > 10);
    /* by hand: minimise |4 - (w1+w2)| + ((w1-3)^2 + w2^2)/2 over |w_m| <= 2. Free: (3.5, 0.5), clipped (2, 0.5) with
     * 1.5 + 0.625; the box's own minimiser moves the second coordinate on to (2, 1): 1 + 1 = 2. */
    const setting s = {
        .loss = {HFSAD_LOSS_ABSOLUTE, 0.5, 1, 2, 0.3}, .M = 2, .x = {1, 1}, .v = {3, 0}, .y = 4, .n = 2, .sigma = 1};
    double w[2];
    prox_of(&s, w);
    assert_true(fabs(w[0] - 2) < 1e-12 && fabs(w[1] - 1) < 1e-12);
}

static void slopes(void **state)
{
    (void)state;
    rng r = {rng_key(4, rng_stream("loss")), 0};
    for (size_t i = 0; i < LOSSES * 200; i++) {
        const setting s = random_setting(&r, kind_at(i), 1, false);
        const double at = 3 * rng_next_normal(&r), h = 1e-6;
        const double value = (double)defined_loss(&s.loss, s.y, at);
        const double difference =
            (double)(defined_loss(&s.loss, s.y, at + h) - defined_loss(&s.loss, s.y, at - h)) / (2 * h);
        assert_true(fabs(hfsad_loss_value(&s.loss, s.y, at) - value) < 1e-12 * (1 + at * at));
        assert_true(fabs(hfsad_loss_slope(&s.loss, s.y, at) - difference) < 1e-4 * (1 + fabs(at)));
    }
}

static void no_features_of_weight(void **state)
{
    (void)state;
    for (size_t kind = 0; kind < LOSSES; kind++) {
        const setting s = {.loss = {kind_at(kind), 0.5, 1, INFINITY, 0.3}, .M = 3, .v = {1, -2, 3}, .y = 1, .sigma = 2};
        double w[3];
        prox_of(&s, w);
        assert_memory_equal(w, s.v, sizeof w);
    }
}

/* 2 n = sigma: one of the candidates of phase retrieval is infinite. y = 0, s0 = 0: they all meet. */
static void corners_of_phase_retrieval(void **state)
{
    (void)state;
    const double ys[] = {-1, 0, 1e-300, 1, 4}, vs[] = {0, -1, 2, 1e-160}, sigmas[] = {1e-6, 1, 2, 1e6};
    for (size_t a = 0; a < 5; a++)
        for (size_t b = 0; b < 4; b++)
            for (size_t c = 0; c < 4; c++) {
                const setting s = {.loss = {HFSAD_LOSS_PHASE_RETRIEVAL, 0.5, 1, c % 2 ? 1.5 : INFINITY, 0.3},
                                   .M = 1,
                                   .x = {1},
                                   .v = {vs[b]},
                                   .y = ys[a],
                                   .n = 1,
                                   .sigma = sigmas[c]};
                check(&s, brute_minimum(along, &s, -6, 6), "corner", a * 100 + b * 10 + c);
            }
}

static void close_to(double have, double want)
{
    if (!(fabs(have - want) <= 1e-9 * fabs(want)))
        fail_msg("%.17g, expected %.17g", have, want);
}

/* Features of very different size: sums that large terms enter and leave keep the small ones. */
static void box_with_uneven_features(void **state)
{
    (void)state;
    double w[2];
    setting s = {.loss = {HFSAD_LOSS_SQUARED, 0.5, 1, 1, 0.3},
                 .M = 2,
                 .x = {1e8, 1},
                 .v = {0, 0},
                 .y = -(1e8 + 0.5),
                 .n = 1e16 + 1,
                 .sigma = 1};
    prox_of(&s, w);
    close_to(w[0], -1);
    close_to(w[1], -0.25); /* minimise (0.5 + w)^2/2 + w^2/2 */
    s.loss.kind = HFSAD_LOSS_PHASE_RETRIEVAL;
    s.v[0] = -1;
    s.y = (1e8 + 0.5) * (1e8 + 0.5);
    prox_of(&s, w);
    close_to(w[0], -1);
    close_to(w[1], -0.5);
}

typedef struct {
    hfsad_loss loss;
    double y, a;
} line;

/* phi(s) - a s, by the definition. */
static double above_the_line(const void *context, double s)
{
    const line *l = context;
    return (double)(defined_loss(&l->loss, l->y, s) - l->a * s);
}

/* A slope that the conjugate is finite for, now and then one of the two outermost. */
static double random_slope(rng *r, const loss_kind *kind, const setting *s)
{
    double low, high;
    kind->slopes(&s->loss, s->y, &low, &high);
    assert_true(low < high);
    const double from = isfinite(low) ? low : -4, to = isfinite(high) ? high : 4;
    if (!below(r, 5) && isfinite(below(r, 2) ? low : high))
        return below(r, 2) && isfinite(low) ? low : isfinite(high) ? high : low;
    return uniform(r, from, to);
}

/* phi*(a) = sup a s - phi(s) by brute force, and phi(s) + phi*(a) - a s three ways: by definition, by the row's own
 * formula, and 0 at a = phi'(s). */
static void conjugates(void **state)
{
    (void)state;
    rng r = {rng_key(5, rng_stream("loss")), 0};
    for (size_t i = 0; i < LOSSES * 300; i++) {
        const setting s = random_setting(&r, kind_at(i), 1, false);
        const loss_kind *kind = loss_kind_of(&s.loss);
        if (!kind->conjugate)
            continue;
        const line l = {s.loss, s.y, random_slope(&r, kind, &s)};
        const double at = 3 * rng_next_normal(&r), conjugate = kind->conjugate(&s.loss, s.y, l.a);
        const double brute = -brute_minimum(above_the_line, &l, -60, 60), size = 1 + fabs(brute) + fabs(l.a * at);
        if (!(fabs(conjugate - brute) <= 1e-8 * size))
            fail_msg("draw %zu: loss %d, y %.17g: conjugate %.17g at %.17g, brute force %.17g", i, (int)s.loss.kind,
                     s.y, conjugate, l.a, brute);
        const double gap = kind->gap(&s.loss, s.y, at, l.a);
        const double defined = (double)(defined_loss(&s.loss, s.y, at) + brute - l.a * at);
        if (!(gap >= 0) || !(fabs(gap - defined) <= 1e-8 * size))
            fail_msg("draw %zu: loss %d, y %.17g, s %.17g, a %.17g: gap %.17g, by definition %.17g", i,
                     (int)s.loss.kind, s.y, at, l.a, gap, defined);
        const double slope = hfsad_loss_slope(&s.loss, s.y, at), tight = kind->gap(&s.loss, s.y, at, slope);
        assert_true(tight >= 0 && tight <= 1e-15 * (1 + fabs(at) + fabs(s.y)) * (1 + fabs(slope)));
    }
}

/* Nothing cancels: a slope off by e has a gap of about e^2 over twice the bend, to many digits, if the loss bends. */
static void small_gaps(void **state)
{
    (void)state;
    rng r = {rng_key(6, rng_stream("loss")), 0};
    for (size_t i = 0; i < LOSSES * 100; i++) {
        const setting s = random_setting(&r, kind_at(i), 1, false);
        const loss_kind *kind = loss_kind_of(&s.loss);
        const double at = s.y + rng_next_normal(&r) / 2;
        if (!kind->conjugate || !kind->bend || !(kind->bend(&s.loss, s.y, at) > 1e-3))
            continue;
        double low, high;
        kind->slopes(&s.loss, s.y, &low, &high);
        const double slope = hfsad_loss_slope(&s.loss, s.y, at), bend = kind->bend(&s.loss, s.y, at);
        const double off = 1e-7 * bend, a = slope + (slope + off < high ? off : -off), real = a - slope;
        if (a <= low || a >= high || fabs(s.loss.delta - fabs(slope)) < 1e-5)
            continue;
        const double want = real * real / (2 * bend), have = kind->gap(&s.loss, s.y, at, a);
        if (!(fabs(have - want) <= 1e-5 * want))
            fail_msg("draw %zu: loss %d, y %.17g, s %.17g: gap %.17g, expected about %.17g", i, (int)s.loss.kind, s.y,
                     at, have, want);
    }
}

/* The logistic prox: a = kappa / (1 + exp(margin + a)), far out on every side. */
static void extremes_of_logistic(void **state)
{
    (void)state;
    const hfsad_loss loss = {HFSAD_LOSS_LOGISTIC, 0.5, 1, INFINITY, 0.3};
    const double kappas[] = {1e-8, 1, 1e10, 1e60, 1e100}, margins[] = {-800, -30, 0, 30, 700};
    for (size_t i = 0; i < 5; i++)
        for (size_t j = 0; j < 5; j++) {
            const double x = 1, v = margins[j], sigma = 1 / kappas[i];
            double w, scratch[8];
            hfsad_loss_prox(&loss, 1, &x, 1, 1, &v, sigma, &w, scratch);
            const double a = w - v, back = kappas[i] / (1 + exp(v + a));
            if (!(fabs(a - back) <= 1e-9 * fabs(a) + 1e-13 * fabs(v) * (1 + back)))
                fail_msg("kappa %g, margin %g: a = %.17g, but %.17g comes back", kappas[i], v, a, back);
        }
    close_to(hfsad_loss_value(&loss, 1, -800), 800);
    close_to(hfsad_loss_value(&loss, -1, 800), 800);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(against_the_line),
        cmocka_unit_test(against_the_square),
        cmocka_unit_test(a_clip_is_wrong),
        cmocka_unit_test(slopes),
        cmocka_unit_test(no_features_of_weight),
        cmocka_unit_test(corners_of_phase_retrieval),
        cmocka_unit_test(box_with_uneven_features),
        cmocka_unit_test(extremes_of_logistic),
        cmocka_unit_test(conjugates),
        cmocka_unit_test(small_gaps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
