/*
 * The bound of the polish is never too small: the gap of a row against the definition of its tangent, and the gap of
 * whole runs on random problems (few rows, many columns, unlike scales, l1 from 0 to above its largest useful value,
 * any number of iterations before) against other solvers.
 */
#include "run/handle.h"
#include "solutions.h"

#include "polish/polish.h"

static const hfsad_loss_kind kinds[] = {HFSAD_LOSS_QUANTILE,     HFSAD_LOSS_ABSOLUTE, HFSAD_LOSS_SQUARED,
                                        HFSAD_LOSS_HUBER,        HFSAD_LOSS_LOGISTIC, HFSAD_LOSS_HINGE,
                                        HFSAD_LOSS_EXPECTILE,    HFSAD_LOSS_POISSON,  HFSAD_LOSS_SMOOTHED_QUANTILE,
                                        HFSAD_LOSS_SQUARED_HINGE};
enum { KINDS = sizeof kinds / sizeof *kinds };

static bool has_classes(hfsad_loss_kind kind)
{
    return kind == HFSAD_LOSS_LOGISTIC || kind == HFSAD_LOSS_HINGE || kind == HFSAD_LOSS_SQUARED_HINGE;
}

/* c phi(t) >= c phi(s) - gap + a (t - s) for every t, and equality for the t where that is tightest. */
static void gap_of_a_row(void **state)
{
    (void)state;
    rng r = {rng_key(1, rng_stream("bound rows")), 0};
    for (int i = 0; i < 1200; i++) {
        const hfsad_loss loss = {kinds[i % KINDS], uniform(&r, 0.05, 0.95), uniform(&r, 0.2, 3), INFINITY,
                                 uniform(&r, 0.1, 2)};
        const double y = has_classes(loss.kind)            ? (i / KINDS % 2 ? 1 : -1)
                         : loss.kind == HFSAD_LOSS_POISSON ? (double)below(&r, 5)
                                                           : uniform(&r, -4, 4);
        const double c = uniform(&r, 0.1, 3), s = uniform(&r, -4, 4);
        const double span = loss.kind == HFSAD_LOSS_EXPECTILE ? 3 : 6; /* its tangent touches within the grid below */
        const double a = polish_cut(&loss, c, y, c * uniform(&r, -span, span)), gap = polish_gap(&loss, c, y, s, a);
        double least = INFINITY;
        for (int k = -8000; k <= 8000; k++) {
            const double t = k * 5e-3;
            least = fmin(least, c * hfsad_loss_value(&loss, y, t) - a * (t - s));
        }
        const double expected = c * hfsad_loss_value(&loss, y, s) - least; /* the grid's is not above it */
        if (!(gap >= expected - 1e-12 * (1 + c) && gap <= expected + 1.5e-2 * (1 + c)))
            fail_msg("kind %d, c %g, y %g, s %g, slope %g: gap %g, by definition %g", (int)loss.kind, c, y, s, a, gap,
                     expected);
    }
}

static problem draw_problem(uint64_t seed, setting *s)
{
    enum { MOST = 60 };
    rng r = {rng_key(seed, rng_stream("bound problems")), 0};
    double x[M], scale[M];
    *s = (setting){
        .name = "random",
        .loss = {kinds[below(&r, KINDS)], uniform(&r, 0.05, 0.95), uniform(&r, 0.1, 2), INFINITY, uniform(&r, 0.1, 2)},
        .edge_rounds = 1,
        .participation = 1,
        .more = below(&r, 2) ? below(&r, 6) : 40,
        .how = (unsigned)((below(&r, 2) ? INTERCEPT : PLAIN) + (below(&r, 3) ? PLAIN : WEIGHTED))};
    problem p = {.loss = s->loss, .n = 4 + below(&r, MOST - 4)};
    const size_t columns = s->how & INTERCEPT ? M - 1 : M;
    FILE *f = open_in_folder("data.csv");
    p.x = alloc_zero(MOST * M, sizeof *p.x);
    p.y = alloc_zero(MOST, sizeof *p.y);
    p.weight = alloc_zero(MOST, sizeof *p.weight);
    const double spread = below(&r, 2) ? 2 : 0, used = 1 + (double)below(&r, M);
    for (size_t m = 0; m < M; m++)
        scale[m] = (double)m < used ? pow(10, uniform(&r, -spread, spread)) : 0;
    double largest = 0;
    write_header(f, s->how & WEIGHTED, columns);
    for (size_t i = 0; i < p.n; i++) {
        random_row(&r, s->loss.kind, x, &p.y[i]);
        for (size_t m = 0; m < M; m++)
            p.x[i * M + m] = m == M - 1 && (s->how & INTERCEPT) ? 1 : x[m] * scale[m];
        p.weight[i] = s->how & WEIGHTED ? uniform(&r, 0.2, 3) : 1;
        write_row(f, i % 3 ? "a" : "b", i % 5 * 3 + i % 3, p.y[i], s->how & WEIGHTED ? &p.weight[i] : NULL, p.x + i * M,
                  columns);
    }
    assert_int_equal(fclose(f), 0);
    for (size_t m = 0; m < columns; m++) {
        double sum = 0;
        for (size_t i = 0; i < p.n; i++)
            sum += p.weight[i] * p.x[i * M + m] * hfsad_loss_slope(&p.loss, p.y[i], 0);
        largest = fmax(largest, fabs(sum));
    }
    static const double parts[] = {0, 1e-3, 0.03, 0.3, 0.9, 1.2};
    s->l1 = p.l1 = largest * parts[below(&r, sizeof parts / sizeof *parts)];
    return p;
}

/* The intercept, if there is one, is not penalised. */
static double l1_of(const problem *p, const setting *s, size_t m)
{
    return m == M - 1 && (s->how & INTERCEPT) ? 0 : p->l1;
}

static double value_at(const problem *p, const setting *s, const double *w)
{
    double sum = 0;
    for (size_t i = 0; i < p->n; i++)
        sum += p->weight[i] * hfsad_loss_value(&p->loss, p->y[i], dot(p->x + i * M, w));
    for (size_t m = 0; m < M; m++)
        sum += l1_of(p, s, m) * fabs(w[m]);
    return sum;
}

/* Golden-section search along every coordinate in turn: finds a lower value if there is one nearby, for any loss. */
static double improve(const problem *p, const setting *s, double *w)
{
    double best = value_at(p, s, w);
    for (int sweep = 0; sweep < 3; sweep++)
        for (size_t m = 0; m < M; m++) {
            const double here = w[m];
            for (double reach = 1e-6 * (1 + fabs(here)); reach < 1e4; reach *= 30)
                for (int side = -1; side <= 1; side += 2) {
                    double low = 0, high = side * reach;
                    for (int i = 0; i < 25; i++) {
                        const double a = low + 0.381966 * (high - low), b = low + 0.618034 * (high - low);
                        w[m] = here + a;
                        const double fa = value_at(p, s, w);
                        w[m] = here + b;
                        if (fa < value_at(p, s, w))
                            high = b;
                        else
                            low = a;
                    }
                    w[m] = here + (low + high) / 2;
                    if (value_at(p, s, w) < best) {
                        best = value_at(p, s, w);
                        break;
                    }
                    w[m] = here;
                }
        }
    return best;
}

static bool is_linear(hfsad_loss_kind kind)
{
    return kind == HFSAD_LOSS_QUANTILE || kind == HFSAD_LOSS_ABSOLUTE || kind == HFSAD_LOSS_HINGE;
}

static void never_below_the_truth(void **state)
{
    (void)state;
    size_t converged = 0, tried = 0;
    for (uint64_t seed = 1; seed <= 120; seed++) {
        setting s;
        problem p = draw_problem(seed, &s);
        hfsad_run *run = open_run(&s, 1);
        hfsad_polish result;
        hfsad_verdict verdict;
        hfsad_error err;
        double w[M];
        for (uint64_t k = 0; k < s.more; k++)
            hfsad_run_iterate(run);
        ok(run_polish(run, NULL, NULL, &result, &err), &err);
        verdict = *hfsad_run_verdict(run);
        hfsad_run_node_model(run, 0, w);
        const double there = value_at(&p, &s, w), lower = there - result.gap;
        double least = improve(&p, &s, w);
        if (is_linear(p.loss.kind) && !(s.how & INTERCEPT && p.l1 > 0)) /* the program penalises every column alike */
            least = fmin(least, solve_by_program(&p));
        double none[M] = {0};
        const double size = value_at(&p, &s, none);
        if (result.accepted && lower > least + 1e-9 * least + 1e-12 * size)
            fail_msg("seed %llu, kind %d: F %.12g with a gap of %g, but there is a point with %.12g",
                     (unsigned long long)seed, (int)p.loss.kind, there, result.gap, least);
        if (verdict.kind == HFSAD_VERDICT_CONVERGED && there - least > 1.01e-4 * fmax(least, 1e-9 * size))
            fail_msg("seed %llu, kind %d: %s, but it is %g above", (unsigned long long)seed, (int)p.loss.kind,
                     verdict.text, there - least);
        tried += !result.unbounded;
        converged += verdict.kind == HFSAD_VERDICT_CONVERGED;
        hfsad_run_free(run);
        free_problem(&p);
    }
    if (converged < tried - tried / 50)
        fail_msg("%zu of %zu converged", converged, tried);
}

static void words_of_the_verdict(void **state)
{
    (void)state;
    static const setting s = {"phase", LOSS(PHASE_RETRIEVAL, 0.5, 1), 0, 1, 1, star, 3, PLAIN};
    problem p = make_problem(1, &s, 1);
    hfsad_run *run = open_run(&s, 1);
    hfsad_verdict v;
    v = *hfsad_run_verdict(run);
    assert_int_equal(v.kind, HFSAD_VERDICT_UNKNOWN);
    assert_true(strstr(v.text, "not known: ") == v.text && strstr(v.text, "not convex") && isnan(v.gap));
    hfsad_run_free(run);
    free_problem(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gap_of_a_row),
        cmocka_unit_test(never_below_the_truth),
        cmocka_unit_test(words_of_the_verdict),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
