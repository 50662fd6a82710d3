/*
 * The polish of runs that were ended early: the objective at the polished model, computed here from the model itself,
 * against the least value found in other ways (solutions.h) or the conditions of a minimum; what it does for phase
 * retrieval; when it does nothing; the clients' answers against each other; a second driver of them.
 */
#include "solutions.h"

#include "core/kernels.h"
#include "polish/polish.h"
#include "polish/squares.h"
#include "run/handle.h"

#define SEED(s) (unsigned long long)(s)

/* F at w, with whatever l1 the problem has. */
static double objective_at(const problem *p, const double *w)
{
    double sum = 0;
    for (size_t i = 0; i < p->n; i++)
        sum += p->weight[i] * hfsad_loss_value(&p->loss, p->y[i], dot(p->x + i * M, w));
    for (size_t m = 0; m < M; m++)
        sum += p->l1 * fabs(w[m]);
    return sum;
}

static hfsad_polish polish(hfsad_run *run)
{
    hfsad_polish result;
    hfsad_error err;
    ok(run_polish(run, NULL, NULL, &result, &err), &err);
    return result;
}

static hfsad_run *early_run(const setting *s, unsigned threads)
{
    hfsad_run *run = open_run(s, threads);
    for (uint64_t k = 1; k <= s->more; k++)
        hfsad_run_iterate(run);
    return run;
}

/* The polished model, which every node has. */
static void shared_model(const hfsad_run *run, double *w)
{
    double other[M];
    hfsad_run_node_model(run, 0, w);
    for (size_t node = 1; node < hfsad_run_nodes(run); node++) {
        hfsad_run_node_model(run, node, other);
        assert_memory_equal(other, w, sizeof other);
    }
}

static void play_from(const setting *s, uint64_t seed, hfsad_run *(*open)(const setting *s, unsigned threads))
{
    problem p = make_problem(seed, s, 1);
    const double best = solve(&p);
    hfsad_run *run = open(s, 1);
    const hfsad_polish result = polish(run);
    double w[M];
    if (!result.accepted)
        fail_msg("%s, seed %llu: %s", s->name, SEED(seed), result.reason);
    shared_model(run, w);
    const double there = objective_at(&p, w), gap = (there - best) / best;
    if (!(fabs(gap) <= 1e-9))
        fail_msg("%s, K_m = %d, seed %llu: %.3g above the solution %.9g", s->name, s->edge_rounds, SEED(seed), gap,
                 best);
    if (!(result.gap >= 0 && result.gap <= 1e-8 * best && fabs(result.objective_after - there) <= 1e-12 * best))
        fail_msg("%s, seed %llu: gap %g, objective %.17g, here %.17g", s->name, SEED(seed), result.gap,
                 result.objective_after, there);
    assert_true(result.objective_before > there && result.exchanges > 0 && result.bytes_up > 0);
    for (size_t m = 0; m < M; m++)
        assert_true(fabs(w[m]) <= s->loss.box);
    hfsad_run_free(run);
    free_problem(&p);
}

static hfsad_run *star_run(const setting *s, unsigned threads)
{
    return open_run_by("star", s, threads);
}

/* After iterations of hfsad, and as the last part of a star. */
static void play(const setting *s, uint64_t seed)
{
    play_from(s, seed, early_run);
    if (seed == 1 && s->participation >= 1 && !(s->how & LINEARIZED))
        play_from(s, seed, star_run);
}

static void convex_losses(void **state)
{
    (void)state;
    static const setting list[] = {
        {"quantile 0.5", LOSS(QUANTILE, 0.5, 1), 0, 1, 1, flat_tree, 30, PLAIN},
        {"quantile 0.9", LOSS(QUANTILE, 0.9, 1), 0, 10, 1, flat_tree, 30, PLAIN},
        {"quantile 0.9 with l1", LOSS(QUANTILE, 0.9, 1), 20, 1, 1, flat_tree, 30, PLAIN},
        {"quantile 0.9 with l1", LOSS(QUANTILE, 0.9, 1), 20, 10, 1, flat_tree, 5, PLAIN},
        {"absolute", LOSS(ABSOLUTE, 0.5, 1), 0, 1, 1, star, 30, PLAIN},
        {"absolute, one row each", LOSS(ABSOLUTE, 0.5, 1), 0, 1, 1, flat_tree, 30, ONE_ROW},
        {"quantile 0.3, one row each, l1", LOSS(QUANTILE, 0.3, 1), 10, 10, 1, deep_tree, 30, ONE_ROW},
        {"quantile 0.3, half take part", LOSS(QUANTILE, 0.3, 1), 0, 1, 0.5, flat_tree, 30, PLAIN},
        {"quantile 0.3, depth 3, weighted", LOSS(QUANTILE, 0.3, 1), 0, 10, 1, deep_tree, 30, WEIGHTED},
        {"absolute, weighted means", LOSS(ABSOLUTE, 0.5, 1), 0, 1, 1, flat_tree, 30, WEIGHTED + MEAN},
        {"absolute, intercept", LOSS(ABSOLUTE, 0.5, 1), 0, 1, 1, flat_tree, 30, INTERCEPT},
        {"quantile 0.9, standardised", LOSS(QUANTILE, 0.9, 1), 0, 10, 1, deep_tree, 30, INTERCEPT + STANDARDIZE},
        {"absolute in a box", {HFSAD_LOSS_ABSOLUTE, 0.5, 1, 0.5, 0.3}, 0, 1, 1, flat_tree, 30, PLAIN},
        {"quantile 0.7 in a box with l1", {HFSAD_LOSS_QUANTILE, 0.7, 1, 0.6, 0.3}, 20, 10, 1, flat_tree, 30, PLAIN},
        {"absolute in a box, one row each", {HFSAD_LOSS_ABSOLUTE, 0.5, 1, 0.5, 0.3}, 0, 1, 1, deep_tree, 30, ONE_ROW},
        {"squared", LOSS(SQUARED, 0.5, 1), 0, 1, 1, flat_tree, 5, PLAIN},
        {"squared, one row each", LOSS(SQUARED, 0.5, 1), 0, 10, 1, flat_tree, 5, ONE_ROW},
        {"squared, weighted means", LOSS(SQUARED, 0.5, 1), 0, 1, 1, star, 5, WEIGHTED + MEAN},
        {"squared, standardised", LOSS(SQUARED, 0.5, 1), 0, 1, 1, flat_tree, 5, INTERCEPT + STANDARDIZE},
        {"squared with l1", LOSS(SQUARED, 0.5, 1), 60, 10, 1, deep_tree, 5, PLAIN},
        {"huber", LOSS(HUBER, 0.5, 0.5), 0, 1, 1, flat_tree, 5, PLAIN},
        {"huber, linearised", LOSS(HUBER, 0.5, 0.5), 0, 1, 1, flat_tree, 5, LINEARIZED},
        {"huber, weighted rows", LOSS(HUBER, 0.5, 0.5), 0, 10, 1, deep_tree, 5, WEIGHTED},
        {"logistic", LOSS(LOGISTIC, 0.5, 1), 0, 1, 1, flat_tree, 5, PLAIN},
        {"logistic, intercept", LOSS(LOGISTIC, 0.5, 1), 0, 10, 1, star, 5, INTERCEPT},
        {"expectile", LOSS(EXPECTILE, 0.8, 1), 0, 1, 1, flat_tree, 5, WEIGHTED},
        {"smoothed quantile", LOSS(SMOOTHED_QUANTILE, 0.3, 1), 0, 1, 1, flat_tree, 5, PLAIN},
        {"poisson", LOSS(POISSON, 0.5, 1), 0, 1, 1, flat_tree, 5, PLAIN},
        {"poisson, intercept, weighted means", LOSS(POISSON, 0.5, 1), 0, 10, 1, deep_tree, 5,
         INTERCEPT + WEIGHTED + MEAN},
        {"squared hinge, intercept", LOSS(SQUARED_HINGE, 0.5, 1), 0, 10, 1, deep_tree, 5, INTERCEPT + WEIGHTED},
        {"hinge", LOSS(HINGE, 0.5, 1), 0, 1, 1, flat_tree, 30, PLAIN},
        {"hinge", LOSS(HINGE, 0.5, 1), 0, 10, 1, deep_tree, 30, PLAIN},
        {"hinge with l1, one row each", LOSS(HINGE, 0.5, 1), 5, 1, 1, deep_tree, 30, ONE_ROW},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        for (uint64_t seed = 1; seed <= 3; seed++)
            play(&list[i], seed);
}

/* Smooth losses with l1 or in a box, of which GLPK and Newton know nothing: the conditions of a minimum. */
static void smooth_losses_with_kinks(void **state)
{
    (void)state;
    static const setting list[] = {
        {"huber with l1", LOSS(HUBER, 0.5, 0.5), 30, 1, 1, flat_tree, 5, WEIGHTED},
        {"logistic with l1", LOSS(LOGISTIC, 0.5, 1), 10, 1, 1, flat_tree, 5, PLAIN},
        {"squared in a box", {HFSAD_LOSS_SQUARED, 0.5, 1, 0.6, 0.3}, 0, 1, 1, flat_tree, 5, PLAIN},
        {"logistic in a box, l1", {HFSAD_LOSS_LOGISTIC, 0.5, 1, 0.4, 0.3}, 5, 1, 1, deep_tree, 5, ONE_ROW},
    };
    size_t zeros = 0, bounds = 0;
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        for (uint64_t seed = 1; seed <= 3; seed++) {
            problem p = make_problem(seed, &list[i], 1);
            hfsad_run *run = early_run(&list[i], 1);
            double w[M], g[M], none[M] = {0}, first[M];
            assert_true(polish(run).accepted);
            shared_model(run, w);
            smooth_value(&p, w, g, NULL);
            smooth_value(&p, none, first, NULL);
            for (size_t m = 0; m < M; m++) {
                const double box = p.loss.box, small = 1e-6 * (sqrt(dot(first, first)) + p.l1);
                const double pull = w[m] != 0 ? g[m] + copysign(p.l1, w[m]) : fmax(fabs(g[m]) - p.l1, 0);
                const bool bound = fabs(w[m]) == box;
                zeros += w[m] == 0;
                bounds += bound;
                if (!(fabs(w[m]) <= box && (bound ? pull * w[m] <= small * box : fabs(pull) <= small)))
                    fail_msg("%s, seed %llu: w_%zu = %g is pulled by %g", list[i].name, SEED(seed), m, w[m], pull);
            }
            hfsad_run_free(run);
            free_problem(&p);
        }
    assert_true(zeros > 0 && bounds > 0);
}

/* A squared loss with a scad prior: stationary, with exact zeros. */
static void concave_prior(void **state)
{
    (void)state;
    static const setting s = {"squared", LOSS(SQUARED, 0.5, 1), 0, 1, 1, flat_tree, 50, PLAIN};
    const hfsad_penalty scad = {HFSAD_PENALTY_SCAD, 200, 0.3, 3.7, 0, 0};
    size_t zeros = 0;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        problem p = make_problem(seed, &s, 1);
        hfsad_run *run = early_run(&s, 1);
        run->plan->inner[0].prior = scad;
        double w[M], g[M];
        assert_true(polish(run).accepted);
        shared_model(run, w);
        smooth_value(&p, w, g, NULL);
        for (size_t m = 0; m < M; m++) {
            const double slope = hfsad_penalty_gradient(&scad, w[m], 1e-300);
            zeros += w[m] == 0;
            if (!(w[m] != 0 ? fabs(g[m] + slope) <= 1e-4 * 200 * 0.3 : fabs(g[m]) <= 200 * 0.3))
                fail_msg("seed %llu: w_%zu = %g, slopes %g and %g", SEED(seed), m, w[m], g[m], slope);
        }
        hfsad_run_free(run);
        free_problem(&p);
    }
    assert_true(zeros > 0);
}

/* At a stationary point F lies above its tangent, which is not below it, less what its rows bend. */
static void phase_retrieval(void **state)
{
    (void)state;
    static const setting list[] = {
        {"one row each", {HFSAD_LOSS_PHASE_RETRIEVAL, 0.5, 1, 5, 0.3}, 0, 10, 1, flat_tree, 10, ONE_ROW},
        {"many rows", LOSS(PHASE_RETRIEVAL, 0.5, 1), 0, 1, 1, deep_tree, 10, WEIGHTED},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        for (uint64_t seed = 1; seed <= 3; seed++) {
            problem p = make_problem(seed, &list[i], 1);
            rng r = {rng_key(seed, rng_stream("directions")), 0};
            hfsad_run *run = early_run(&list[i], 1);
            double w[M], d[M], there[M];
            const hfsad_polish result = polish(run);
            assert_true(result.accepted);
            shared_model(run, w);
            const double least = objective_at(&p, w);
            if (!(least < (1 - 1e-6) * result.objective_before))
                fail_msg("%s, seed %llu: %g after %g", list[i].name, SEED(seed), least, result.objective_before);
            for (int k = 0; k < 300; k++) {
                double bend = 0;
                const double h = log_uniform(&r, 1e-5, 0.1);
                for (size_t m = 0; m < M; m++) {
                    d[m] = k < 2 * M ? (k / 2 == (int)m ? (k % 2 ? 1 : -1) : 0) : rng_next_normal(&r);
                    there[m] = w[m] + h * d[m];
                }
                for (size_t row = 0; row < p.n; row++)
                    bend += p.weight[row] * pow(h * dot(p.x + row * M, d), 2);
                if (!(objective_at(&p, there) >= least - bend - 1e-7 * result.objective_before))
                    fail_msg("%s, seed %llu: falls by %g along a step of %g", list[i].name, SEED(seed),
                             least - objective_at(&p, there), h);
            }
            hfsad_run_free(run);
            free_problem(&p);
        }
}

static bool stop_after(void *context, const hfsad_polish *so_far)
{
    return so_far->exchanges < *(const uint64_t *)context;
}

/* Interrupted, refused, or gone on from: the run's own models. */
static void leaves_the_run_alone(void **state)
{
    (void)state;
    static const setting s = {"quantile", LOSS(QUANTILE, 0.3, 1), 0, 1, 1, flat_tree, 20, PLAIN};
    problem p = make_problem(1, &s, 1);
    hfsad_run *run = early_run(&s, 1);
    hfsad_error err;
    hfsad_polish result;
    double before[M], after[M], polished[M];
    hfsad_run_node_model(run, 1, before);
    for (uint64_t some = 0; some < 100; some += 33) {
        ok(run_polish(run, stop_after, &some, &result, &err), &err);
        assert_true(!result.accepted && result.exchanges == some);
        assert_string_equal(result.reason, "interrupted");
        hfsad_run_node_model(run, 1, after);
        assert_memory_equal(before, after, sizeof after);
    }
    assert_true(polish(run).accepted);
    shared_model(run, polished);
    assert_memory_not_equal(before, polished, sizeof polished);
    assert_true(polish(run).accepted); /* from the run's end again, to the same bits */
    shared_model(run, after);
    assert_memory_equal(after, polished, sizeof polished);
    hfsad_run_iterate(run);
    hfsad_run *other = early_run(&s, 1);
    hfsad_run_iterate(other);
    hfsad_run_node_model(run, 1, after);
    hfsad_run_node_model(other, 1, before);
    assert_memory_equal(after, before, sizeof after);
    hfsad_run_free(other);
    hfsad_run_free(run);
    free_problem(&p);
}

static void refusals(void **state)
{
    (void)state;
    static const setting s = {"absolute", LOSS(ABSOLUTE, 0.5, 1), 0, 1, 1, flat_tree, 20, INTERCEPT};
    static const struct {
        const char *key, *value, *reason;
    } list[] = {
        {"link.client.penalty", "mcp", "link: mcp"},
        {"link.edge.weight", "0", "link: some nodes are not tied"},
        {"link.client.weight", "1e-3", "link: the run's own models"},
        {"algorithm", "fedavg", "algorithm"},
    };
    problem p = make_problem(1, &s, 1);
    hfsad_run_free(open_run(&s, 1)); /* writes spec.yaml */
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        hfsad_error err;
        hfsad_spec *spec;
        hfsad_run *run;
        ok(hfsad_spec_load(&spec, in_folder("spec.yaml"), &err), &err);
        ok(hfsad_spec_set(spec, list[i].key, list[i].value, &err), &err);
        ok(hfsad_run_create(&run, spec, 1, &err), &err);
        for (uint64_t k = 0; k < s.more; k++)
            hfsad_run_iterate(run);
        const hfsad_polish result = polish(run);
        if (result.accepted || strncmp(result.reason, list[i].reason, strlen(list[i].reason)) != 0)
            fail_msg("%s: %s gives \"%s\"", list[i].key, list[i].value, result.reason);
        hfsad_run_free(run);
        hfsad_spec_free(spec);
    }
    free_problem(&p);
}

static void threads_change_no_bit(void **state)
{
    (void)state;
    static const setting list[] = {
        {"quantile", LOSS(QUANTILE, 0.3, 1), 20, 2, 1, deep_tree, 5, PLAIN},
        {"phase retrieval", {HFSAD_LOSS_PHASE_RETRIEVAL, 0.5, 1, 2, 0.3}, 0, 2, 1, deep_tree, 5, PLAIN},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        problem p = make_problem(2, &list[i], 6); /* enough rows for the threads to share */
        double first[M], w[M];
        for (unsigned threads = 1; threads <= 3; threads++) {
            hfsad_run *run = early_run(&list[i], threads);
            assert_true(polish(run).accepted);
            shared_model(run, threads == 1 ? first : w);
            if (threads > 1)
                assert_memory_equal(first, w, sizeof w);
            hfsad_run_free(run);
        }
        free_problem(&p);
    }
}

/* ---- the clients' answers, and a driver of this file's ---- */

enum { CLIENTS = 7, ROWS = 30, LONGEST = POLISH_LANES * (M + 1) }; /* more than M (M + 1) / 2 */

typedef struct {
    problem p;
    double multiplier[CLIENTS * ROWS], bend[CLIENTS * ROWS], anchor[CLIENTS * ROWS];
} crowd;

static polish_client client_of(crowd *c, size_t i)
{
    const size_t first = i * ROWS;
    return (polish_client){
        .loss = &c->p.loss,
        .rows = {.count = ROWS, .F = M, .x = c->p.x + first * M, .y = c->p.y + first, .weight = c->p.weight + first},
        .M = M,
        .factor = 1,
        .multiplier = c->multiplier + first,
        .bend = c->bend + first,
        .anchor = c->anchor + first,
    };
}

static bool ask_crowd(void *context, const polish_question *q, double *sum)
{
    crowd *c = context;
    double answer[LONGEST];
    const size_t length = polish_length(q->kind, M);
    assert_true(length <= LONGEST);
    memset(sum, 0, length * sizeof *sum);
    for (size_t i = 0; i < CLIENTS; i++) {
        const polish_client client = client_of(c, i);
        polish_answer(&client, q, answer);
        for (size_t k = 0; k < length; k++)
            sum[k] += answer[k];
    }
    return true;
}

/* A question without an entry would answer by a null pointer. */
static void every_kind_has_an_entry(void **state)
{
    (void)state;
    for (polish_kind kind = 0; kind < POLISH_KINDS; kind++) {
        const polish_entry *e = &polish_table[kind];
        assert_non_null(e->answer);
        assert_true(polish_length(kind, 1) > 0);
        assert_true(!(e->how & ASK_MOVES) || e->how & ASK_KEPT);
        assert_true(e->bound != BOUND_POINT || e->down.vectors == 2);
    }
}

static crowd *make_crowd(uint64_t seed, hfsad_loss loss)
{
    rng r = {rng_key(seed, rng_stream("crowd")), 0};
    crowd *c = alloc_zero(1, sizeof *c);
    c->p = (problem){.loss = loss, .n = CLIENTS * ROWS};
    c->p.x = alloc_zero(c->p.n * M, sizeof(double));
    c->p.y = alloc_zero(c->p.n, sizeof(double));
    c->p.weight = alloc_zero(c->p.n, sizeof(double));
    for (size_t i = 0; i < c->p.n; i++) {
        random_row(&r, loss.kind, c->p.x + i * M, c->p.y + i);
        c->p.weight[i] = uniform(&r, 0, 2);
        c->multiplier[i] = 0;
    }
    return c;
}

static void free_crowd(crowd *c)
{
    free_problem(&c->p);
    free(c);
}

static const hfsad_loss losses[] = {
    LOSS(PHASE_RETRIEVAL, 0.5, 1),   LOSS(QUANTILE, 0.8, 1), LOSS(ABSOLUTE, 0.5, 1),      LOSS(SQUARED, 0.5, 1),
    LOSS(HUBER, 0.5, 0.5),           LOSS(LOGISTIC, 0.5, 1), LOSS(HINGE, 0.5, 1),         LOSS(EXPECTILE, 0.8, 1),
    LOSS(SMOOTHED_QUANTILE, 0.3, 1), LOSS(POISSON, 0.5, 1),  LOSS(SQUARED_HINGE, 0.5, 1),
};

/* Gradient by differences of the value; line, product, triangle and diagonal by each other and by the gradient. */
static void answers_fit_together(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof losses / sizeof *losses; i++)
        for (uint64_t seed = 1; seed <= 5; seed++) {
            crowd *c = make_crowd(seed, losses[i]);
            rng r = {rng_key(seed, rng_stream("points")), 0};
            double w[M], d[M], v[LONGEST], line[LONGEST], there[M], low[LONGEST], high[LONGEST], h[LONGEST], g[LONGEST];
            for (size_t m = 0; m < M; m++) {
                w[m] = rng_next_normal(&r);
                d[m] = rng_next_normal(&r);
            }
            polish_question q = {POLISH_ANCHOR, 0.7, 0.3, d, NULL, 0, 0};
            ask_crowd(c, &q, v);
            q = (polish_question){POLISH_COMMIT, 0.7, 0.3, d, NULL, 0, 0}; /* some multipliers */
            ask_crowd(c, &q, v);
            const double e = 1e-5;
            for (size_t m = 0; m < M; m++)
                there[m] = w[m] + e * d[m];
            q = (polish_question){POLISH_VALUE, 0.7, 0.3, there, NULL, 0, 0};
            ask_crowd(c, &q, high);
            for (size_t m = 0; m < M; m++)
                there[m] = w[m] - e * d[m];
            ask_crowd(c, &q, low);
            q.vector = w;
            ask_crowd(c, &q, v);
            const double slope = (high[M + POLISH_ENVELOPE] - low[M + POLISH_ENVELOPE]) / (2 * e);
            const double size = fabs(v[M + POLISH_ENVELOPE]) + fabs(slope);
            if (!(fabs(slope - dot(v, d)) <= 1e-4 * size && v[M + POLISH_GAP] >= -1e-12 * size))
                fail_msg("loss %d, seed %llu: slope %g, %g by differences, gap %g", (int)losses[i].kind, SEED(seed),
                         dot(v, d), slope, v[M + POLISH_GAP]);
            q = (polish_question){POLISH_HESSIAN, 0.7, 0.3, w, NULL, 0, 0};
            ask_crowd(c, &q, h);
            q.kind = POLISH_SQUARES; /* of the parabola */
            ask_crowd(c, &q, g);
            for (size_t m = 0; m < M * (M + 1) / 2; m++)
                h[m] += 2 * 0.3 * g[m];
            q = (polish_question){POLISH_PRODUCT, 0.7, 0.3, d, NULL, 0, 0};
            ask_crowd(c, &q, g);
            q = (polish_question){POLISH_DIAGONAL, 0.7, 0.3, w, NULL, 0, 0};
            ask_crowd(c, &q, low);
            for (size_t m = 0; m < M; m++) {
                double sum = 0;
                for (size_t k = 0; k < M; k++)
                    sum += h[k <= m ? m * (m + 1) / 2 + k : k * (k + 1) / 2 + m] * d[k];
                assert_true(fabs(sum - g[m]) <= 1e-9 * (1 + fabs(sum)));
                assert_true(fabs(h[m * (m + 1) / 2 + m] - low[m]) <= 1e-9 * (1 + low[m]));
            }
            q = (polish_question){POLISH_LINE, 0.7, 0.3, d, w, 0, 0};
            ask_crowd(c, &q, line);
            for (size_t k = 0; k < POLISH_STEPS; k++) {
                for (size_t m = 0; m < M; m++)
                    there[m] = w[m] + polish_steps[k] * d[m];
                q = (polish_question){POLISH_VALUE, 0.7, 0.3, there, NULL, 0, 0};
                ask_crowd(c, &q, v);
                assert_true(fabs(dot(v, d) - line[k]) <= 1e-9 * (1 + fabs(line[k])) * size);
                assert_true(k == 0 || line[k] <= line[k - 1] + 1e-9 * size); /* convex */
            }
            free_crowd(c);
        }
}

/* Every lane has its loss, and the gradient of that by differences. */
static void lanes_fit_together(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        const double e = 1e-6;
        crowd *c = make_crowd(seed, losses[0]);
        rng r = {rng_key(seed, rng_stream("lanes")), 0};
        double points[POLISH_LANES * M], at[LONGEST], there[LONGEST];
        for (size_t i = 0; i < POLISH_LANES * M; i++)
            points[i] = rng_next_normal(&r);
        polish_question q = {POLISH_SEARCH, 0, 0, points, NULL, 0, 0};
        ask_crowd(c, &q, at);
        for (size_t l = 0; l < POLISH_LANES; l++)
            assert_true(fabs(at[l * (M + 1) + M] / objective_at(&c->p, points + l * M) - 1) < 1e-12);
        for (size_t m = 0; m < M; m++) {
            for (size_t l = 0; l < POLISH_LANES; l++)
                points[l * M + m] += e;
            ask_crowd(c, &q, there);
            for (size_t l = 0; l < POLISH_LANES; l++) {
                const double *of = at + l * (M + 1), slope = (there[l * (M + 1) + M] - of[M]) / e;
                points[l * M + m] -= e;
                if (!(fabs(of[m] - slope) <= 1e-4 * of[M]))
                    fail_msg("seed %llu, lane %zu: slope %g, %g by differences", SEED(seed), l, of[m], slope);
            }
        }
        free_crowd(c);
    }
}

/* Squares of several rows at once have the bits of one after the other, whatever the instructions: each a term of its
 * own, or a client's sum, and also some lines only. */
static void squares_together(void **state)
{
    (void)state;
    static const char *const names[] = {"plain", "avx2", "avx512"};
    crowd *c = make_crowd(3, losses[0]);
    for (size_t n = 0; n < sizeof names / sizeof *names; n++)
        for (size_t count = 1; count <= SQUARES_ROWS && kernels_choose(names[n]); count++) {
            double each[LONGEST], sum[LONGEST] = {0}, terms[LONGEST], added[LONGEST], line[M];
            const client_rows rows = client_of(c, 1).rows;
            square_rows s = {.M = M}, t;
            for (size_t i = 0; i < LONGEST; i++)
                each[i] = terms[i] = added[i] = 0.1 * (double)i;
            for (size_t r = 0; r < count; r++) {
                s.x[s.count] = rows.x + r * M;
                s.factor[s.count++] = 0.3 + (double)r / 7;
                polish_add_square(&rows, r, s.factor[r], each);
                polish_add_square(&rows, r, s.factor[r], sum);
            }
            t = s;
            squares_add(&t, 0, M / 2, terms);
            t = s;
            squares_add(&t, M / 2, M, terms);
            assert_memory_equal(terms, each, sizeof each);
            assert_int_equal(t.count, 0);
            squares_add_sum(&s, 0, M, line, added);
            for (size_t i = 0; i < LONGEST; i++)
                each[i] = 0.1 * (double)i + sum[i];
            assert_memory_equal(added, each, sizeof each);
        }
    kernels_choose(NULL);
    free_crowd(c);
}

/* The rows one by one as clients: answers added at once have the bits of answers that are added up. */
static void added_answers(void **state)
{
    (void)state;
    static const polish_kind kinds[] = {POLISH_VALUE, POLISH_HESSIAN, POLISH_SEARCH, POLISH_SQUARES};
    for (size_t i = 0; i < sizeof losses / sizeof *losses; i++) {
        crowd *c = make_crowd(i + 1, losses[i]);
        rng r = {rng_key(i, rng_stream("added")), 0};
        double points[POLISH_LANES * M];
        for (size_t k = 0; k < POLISH_LANES * M; k++)
            points[k] = rng_next_normal(&r);
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            if (kinds[k] == POLISH_SEARCH && i > 0) /* phase retrieval's only */
                continue;
            const polish_question q = {kinds[k], 0.7, 0.3, points, NULL, 0, 0};
            double sum[LONGEST] = {0}, added[LONGEST] = {0}, answer[LONGEST];
            for (size_t row = 0; row < c->p.n; row++) {
                polish_client one = client_of(c, row / ROWS);
                const size_t at = row % ROWS;
                one.rows.count = 1;
                one.rows.x += at * M;
                one.rows.y += at;
                one.rows.weight += at;
                one.multiplier += at;
                one.bend += at;
                one.anchor += at;
                polish_answer(&one, &q, answer);
                for (size_t m = 0; m < polish_length(q.kind, M); m++)
                    sum[m] += answer[m];
                assert_true(polish_answer_added(&one, &q, added));
            }
            assert_memory_equal(sum, added, sizeof sum);
            const polish_client many = client_of(c, 0);
            assert_false(polish_answer_added(&many, &q, added)); /* their terms are added up before */
        }
        free_crowd(c);
    }
}

/* Rows that a model fits exactly, and a start that knows nothing of it, or is 0: beyond the limit on direct steps there
 * is no search, and the polish ends in the valley that it begins in. */
static void lower_valleys(void **state)
{
    (void)state;
    enum { SEEDS = 40 };
    int fitted[2] = {0};
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        for (int searches = 0; searches < 2; searches++) {
            const hfsad_penalty none = {0};
            crowd *c = make_crowd(seed, losses[0]);
            rng r = {rng_key(seed, rng_stream("valleys")), 0};
            double truth[M], w[M] = {0};
            polish_result result;
            for (size_t m = 0; m < M; m++)
                truth[m] = rng_next_normal(&r);
            for (size_t i = 0; i < c->p.n; i++)
                c->p.y[i] = pow(dot(c->p.x + i * M, truth), 2);
            for (size_t m = 0; m < M && seed % 2; m++)
                w[m] = rng_next_normal(&r);
            const polish_problem p = {.M = M,
                                      .boxed = M,
                                      .box = INFINITY,
                                      .n_priors = 1,
                                      .priors = &none,
                                      .direct = searches ? M : 0,
                                      .anchored = true,
                                      .seed = 1,
                                      .length = 2,
                                      .ask = ask_crowd,
                                      .context = c};
            assert_true(polish_solve(&p, w, &result) && result.finished);
            fitted[searches] += objective_at(&c->p, w) <= 1e-6 * result.zero;
            free_crowd(c);
        }
    if (!(fitted[1] == SEEDS && fitted[0] < SEEDS))
        fail_msg("fitted %d of %d with a search, %d without", fitted[1], SEEDS, fitted[0]);
}

/* With the second derivative itself and by conjugate gradients, added up here in another order. */
static void second_driver(void **state)
{
    (void)state;
    for (size_t i = 1; i < sizeof losses / sizeof *losses; i++)
        for (uint64_t seed = 1; seed <= 2; seed++) {
            double found[2];
            crowd *c = make_crowd(seed, losses[i]);
            const double best = solve(&c->p);
            for (int way = 0; way < 2; way++) {
                const hfsad_penalty none = {0};
                polish_result result;
                double w[M] = {0};
                memset(c->multiplier, 0, sizeof c->multiplier);
                const polish_problem whole = {.M = M,
                                              .boxed = M,
                                              .box = INFINITY,
                                              .n_priors = 1,
                                              .priors = &none,
                                              .direct = way ? M : 0,
                                              .ask = ask_crowd,
                                              .context = c};
                assert_true(polish_solve(&whole, w, &result) && result.finished);
                found[way] = objective_at(&c->p, w);
                if (!(fabs(found[way] - best) <= 1e-9 * best))
                    fail_msg("loss %d, seed %llu, way %d: %.17g, solution %.17g", (int)losses[i].kind, SEED(seed), way,
                             found[way], best);
            }
            free_crowd(c);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_has_an_entry), cmocka_unit_test(answers_fit_together),
        cmocka_unit_test(second_driver),           cmocka_unit_test(lanes_fit_together),
        cmocka_unit_test(added_answers),           cmocka_unit_test(lower_valleys),
        cmocka_unit_test(convex_losses),           cmocka_unit_test(smooth_losses_with_kinks),
        cmocka_unit_test(concave_prior),           cmocka_unit_test(phase_retrieval),
        cmocka_unit_test(leaves_the_run_alone),    cmocka_unit_test(refusals),
        cmocka_unit_test(squares_together),        cmocka_unit_test(threads_change_no_bit),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
