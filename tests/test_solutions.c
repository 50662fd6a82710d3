/*
 * Whole runs on clients with many rows, from files, with the default preset: the objective at the cloud's model against
 * solutions found in other ways. Linear programs by GLPK, normal equations by LAPACK, coordinate descent for the
 * squared loss with l1, Newton for huber and logistic.
 */
#define _XOPEN_SOURCE 700
#include "tools.h"

#include <glpk.h>

enum { M = 10 };

extern void dposv_(const char *half, const int *n, const int *columns, double *a, const int *lda, double *b,
                   const int *ldb, int *info);

/* All rows of the federation in one place. */
typedef struct {
    hfsad_loss loss;
    double l1;
    size_t n;
    double *x, *y; /* n rows of M; n */
} problem;

static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/hfsad-solutions-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int leave_folder(void **state)
{
    (void)state;
    char command[100];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

static FILE *open_in_folder(const char *name, char path[100])
{
    snprintf(path, 100, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    return f;
}

typedef struct {
    const char *path;
    size_t clients;
} edge_shape;

static const edge_shape flat_tree[] = {{"a", 3}, {"b", 9}, {"c", 6}, {NULL, 0}};
static const edge_shape deep_tree[] = {{"r/a", 2}, {"r/b", 7}, {"s/c", 5}, {"t", 3}, {"", 2}, {NULL, 0}};

/* Columns of unlike scales, a sparse model, noise with heavy tails; labels with some of them wrong. */
static void random_row(rng *r, bool labels, double *x, double *y)
{
    double s = 0;
    for (size_t m = 0; m < M; m++) {
        x[m] = rng_next_normal(r) * (m % 4 == 1 ? 2 : 1) + (m > 0 ? 0.3 * x[m - 1] : 0);
        s += m % 2 ? 0 : x[m] * (1 - 0.3 * (double)m / M);
    }
    const double heavy = rng_next_normal(r) / sqrt(rng_next_exponential(r));
    if (labels)
        *y = s + 1.5 * rng_next_normal(r) > 0 ? 1 : -1;
    else
        *y = s + 0.5 * heavy;
}

/* Writes data.csv and keeps the rows. */
static problem make_problem(uint64_t seed, hfsad_loss loss, double l1, const edge_shape *tree)
{
    enum { ROWS_MOST = 1000 };
    rng r = {rng_key(seed, rng_stream("solutions")), 0};
    problem p = {.loss = loss, .l1 = l1};
    char path[100];
    FILE *f = open_in_folder("data.csv", path);
    p.x = alloc_zero(ROWS_MOST * M, sizeof *p.x);
    p.y = alloc_zero(ROWS_MOST, sizeof *p.y);
    fprintf(f, "edge,client,y");
    for (size_t m = 0; m < M; m++)
        fprintf(f, ",x%zu", m + 1);
    fprintf(f, "\n");
    for (size_t number = 0; tree->path; tree++)
        for (size_t c = 0; c < tree->clients; c++, number++)
            for (size_t rows = 10 + below(&r, 31); rows > 0; rows--, p.n++) {
                double *x = p.x + p.n * M;
                assert_true(p.n < ROWS_MOST);
                random_row(&r, loss.kind == HFSAD_LOSS_LOGISTIC || loss.kind == HFSAD_LOSS_HINGE, x, p.y + p.n);
                fprintf(f, "%s,client%zu,%.17g", tree->path, number, p.y[p.n]);
                for (size_t m = 0; m < M; m++)
                    fprintf(f, ",%.17g", x[m]);
                fprintf(f, "\n");
            }
    assert_int_equal(fclose(f), 0);
    return p;
}

static void free_problem(problem *p)
{
    free(p->x);
    free(p->y);
}

static double dot(const double *a, const double *b)
{
    double sum = 0;
    for (size_t m = 0; m < M; m++)
        sum += a[m] * b[m];
    return sum;
}

/* Linear programs: w = wp - wn in 2 M columns with the cost l1, then what a row's residual costs above and below. */
static double solve_by_program(const problem *p)
{
    const bool hinge = p->loss.kind == HFSAD_LOSS_HINGE;
    const double above = p->loss.kind == HFSAD_LOSS_QUANTILE ? p->loss.tau : 1;
    const double under = p->loss.kind == HFSAD_LOSS_QUANTILE ? 1 - p->loss.tau : hinge ? 0 : 1;
    glp_prob *lp = glp_create_prob();
    glp_smcp settings;
    const int n = (int)p->n, columns = 2 * M + 2 * n;
    int index[2 * M + 3];
    double value[2 * M + 3];
    glp_term_out(GLP_OFF);
    glp_add_rows(lp, n);
    glp_add_cols(lp, columns);
    for (int j = 1; j <= columns; j++) {
        glp_set_col_bnds(lp, j, GLP_LO, 0, 0);
        glp_set_obj_coef(lp, j, j <= 2 * M ? p->l1 : j <= 2 * M + n ? above : under);
    }
    for (int i = 1; i <= n; i++) { /* hinge: y <x,w> + above - under = 1; else <x,w> + above - under = y */
        const double y = p->y[i - 1], side = hinge ? y : 1;
        for (int m = 1; m <= M; m++) {
            index[m] = m;
            index[M + m] = M + m;
            value[m] = side * p->x[(i - 1) * M + m - 1];
            value[M + m] = -value[m];
        }
        index[2 * M + 1] = 2 * M + i;
        value[2 * M + 1] = 1;
        index[2 * M + 2] = 2 * M + n + i;
        value[2 * M + 2] = -1;
        glp_set_mat_row(lp, i, 2 * M + 2, index, value);
        glp_set_row_bnds(lp, i, GLP_FX, hinge ? 1 : y, 0);
    }
    glp_init_smcp(&settings);
    settings.msg_lev = GLP_MSG_OFF;
    settings.presolve = GLP_ON;
    assert_int_equal(glp_simplex(lp, &settings), 0);
    assert_int_equal(glp_get_status(lp), GLP_OPT);
    const double least = glp_get_obj_val(lp);
    glp_delete_prob(lp);
    return least;
}

/* Value, slope and bend of the smooth losses. */
static double smooth_parts(const hfsad_loss *l, double y, double s, double *slope, double *bend)
{
    const double r = s - y, a = fabs(r), e = exp(-fabs(y * s)), p = y * s > 0 ? e / (1 + e) : 1 / (1 + e);
    switch (l->kind) {
    case HFSAD_LOSS_SQUARED:
        *slope = r;
        *bend = 1;
        return r * r / 2;
    case HFSAD_LOSS_HUBER:
        *slope = a <= l->delta ? r : copysign(l->delta, r);
        *bend = a <= l->delta;
        return a <= l->delta ? r * r / 2 : l->delta * (a - l->delta / 2);
    default:
        *slope = -y * p;
        *bend = p * (1 - p);
        return log1p(e) + fmax(0, -y * s);
    }
}

static double smooth_value(const problem *p, const double *w, double *g, double *h)
{
    double sum = 0, slope, bend;
    if (g)
        memset(g, 0, M * sizeof *g);
    if (h)
        memset(h, 0, M * M * sizeof *h);
    for (size_t i = 0; i < p->n; i++) {
        const double *x = p->x + i * M;
        sum += smooth_parts(&p->loss, p->y[i], dot(x, w), &slope, &bend);
        for (size_t m = 0; g && m < M; m++)
            g[m] += slope * x[m];
        for (size_t j = 0; h && j < M * M; j++)
            h[j] += bend * x[j / M] * x[j % M];
    }
    return sum;
}

/* Newton with halved steps; ends where the gradient is gone. The squared loss takes one step: the normal equations. */
static double solve_by_newton(const problem *p)
{
    double w[M] = {0}, g[M], h[M * M], next[M];
    double value = smooth_value(p, w, g, h), size = 1;
    const double first = sqrt(dot(g, g));
    for (int i = 0; i < 100 && (size = sqrt(dot(g, g))) > 1e-10 * first; i++) {
        const int n = M, one = 1;
        int info = -1;
        double d[M];
        memcpy(d, g, sizeof d);
        dposv_("L", &n, &one, h, &n, d, &n, &info);
        assert_int_equal(info, 0);
        double step = 1, there;
        do {
            for (size_t m = 0; m < M; m++)
                next[m] = w[m] - step * d[m];
            there = smooth_value(p, next, NULL, NULL);
            step /= 2;
        } while (there > value - 1e-4 * step * dot(g, d) && step > 1e-12);
        memcpy(w, next, sizeof w);
        value = smooth_value(p, w, g, h);
    }
    assert_true(size <= 1e-8 * first);
    return value;
}

/* The squared loss with l1, coordinate by coordinate until nothing moves. */
static double solve_by_descent(const problem *p)
{
    double w[M] = {0}, h[M * M], g[M], moved = 1;
    smooth_value(p, w, g, h);
    for (int sweep = 0; sweep < 100000 && moved > 1e-14; sweep++) {
        moved = 0;
        for (size_t m = 0; m < M; m++) {
            double slope = g[m];
            for (size_t j = 0; j < M; j++)
                slope += j == m ? 0 : h[m * M + j] * w[j];
            const double pull = fmax(fabs(slope) - p->l1, 0), before = w[m];
            w[m] = -copysign(pull, slope) / h[m * M + m];
            moved = fmax(moved, fabs(w[m] - before));
        }
    }
    assert_true(moved <= 1e-14);
    double sum = smooth_value(p, w, NULL, NULL);
    for (size_t m = 0; m < M; m++)
        sum += p->l1 * fabs(w[m]);
    return sum;
}

static double solve(const problem *p)
{
    switch (p->loss.kind) {
    case HFSAD_LOSS_SQUARED:
        return p->l1 > 0 ? solve_by_descent(p) : solve_by_newton(p);
    case HFSAD_LOSS_HUBER:
    case HFSAD_LOSS_LOGISTIC:
        return solve_by_newton(p);
    default:
        return solve_by_program(p);
    }
}

typedef struct {
    const char *name;
    hfsad_loss loss;
    double l1;
    int edge_rounds;
    double participation;
    const edge_shape *tree;
    uint64_t more; /* iterations to 1e-5 */
} setting;

static hfsad_run *open_run(const setting *s, unsigned threads)
{
    static const char *const kinds[] = {"phase-retrieval", "quantile", "absolute", "squared",
                                        "huber",           "logistic", "hinge"};
    char path[100];
    FILE *f = open_in_folder("spec.yaml", path);
    fprintf(f, "data: data.csv\nloss: {kind: %s, tau: %g, delta: %g}\npreset: tuned\n", kinds[s->loss.kind],
            s->loss.tau, s->loss.delta);
    if (s->l1 > 0)
        fprintf(f, "prior: {cloud: {penalty: l1, lambda: 1, weight: %g}}\n", s->l1);
    fprintf(f, "run: {iterations: %llu, edge_rounds: %d, participation: {client: %g}}\n", (unsigned long long)s->more,
            s->edge_rounds, s->participation);
    assert_int_equal(fclose(f), 0);
    hfsad_error err;
    hfsad_spec *spec;
    hfsad_run *run;
    ok(hfsad_spec_load(&spec, path, &err), &err);
    ok(hfsad_spec_check(spec, &err), &err);
    ok(hfsad_run_create(&run, spec, threads, &err), &err);
    hfsad_spec_free(spec);
    return run;
}

static double measured(hfsad_run *run)
{
    hfsad_figures f;
    hfsad_error err;
    ok(hfsad_run_measure(run, &f, &err), &err);
    return f.consensus_objective;
}

/* The accuracies; where the preset does not reach them yet, what it reaches stands in the row. */
static const double soon = 1e-3, late = 1e-5;

static void play(const setting *s, uint64_t seed, double soon_at_most, double late_at_most)
{
    problem p = make_problem(seed, s->loss, s->l1, s->tree);
    const double best = solve(&p);
    hfsad_run *run = open_run(s, 1);
    assert_true(best > 0 && measured(run) > 1.1 * best); /* the start is no solution */
    for (uint64_t k = 1; k <= s->more; k++) {
        hfsad_run_iterate(run);
        if (k != 400 && k != s->more)
            continue;
        const double gap = (measured(run) - best) / best, most = k == 400 ? soon_at_most : late_at_most;
        if (!(gap >= -1e-9 && gap <= most))
            fail_msg("%s, K_m = %d, seed %llu: %.3g above the solution %.9g after %llu iterations, at most %g", s->name,
                     s->edge_rounds, (unsigned long long)seed, gap, best, (unsigned long long)k, most);
    }
    hfsad_run_free(run);
    free_problem(&p);
}

#define LOSS(kind, tau, delta) {HFSAD_LOSS_##kind, tau, delta, INFINITY}

static void quantile_regression(void **state)
{
    (void)state;
    static const setting list[] = {
        {"quantile 0.5", LOSS(QUANTILE, 0.5, 1), 0, 1, 1, flat_tree, 1500},
        {"quantile 0.9", LOSS(QUANTILE, 0.9, 1), 0, 10, 1, flat_tree, 4000},
        {"quantile 0.9 with l1", LOSS(QUANTILE, 0.9, 1), 20, 1, 1, flat_tree, 1500},
        {"quantile 0.3 with l1", LOSS(QUANTILE, 0.3, 1), 20, 10, 1, flat_tree, 2500},
        {"absolute", LOSS(ABSOLUTE, 0.5, 1), 0, 1, 1, flat_tree, 1500},
        {"quantile 0.3, half take part", LOSS(QUANTILE, 0.3, 1), 0, 1, 0.5, flat_tree, 4000},
        {"quantile 0.3, depth 3", LOSS(QUANTILE, 0.3, 1), 0, 1, 1, deep_tree, 2500},
        {"quantile 0.3, depth 3", LOSS(QUANTILE, 0.3, 1), 0, 10, 1, deep_tree, 1500},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        play(&list[i], 1, soon, late);
}

static void smooth_regression(void **state)
{
    (void)state;
    static const setting list[] = {
        {"squared", LOSS(SQUARED, 0.5, 1), 0, 1, 1, flat_tree, 1000},
        {"squared", LOSS(SQUARED, 0.5, 1), 0, 10, 1, flat_tree, 1500},
        {"squared with l1", LOSS(SQUARED, 0.5, 1), 60, 1, 1, flat_tree, 1000},
        {"squared with l1", LOSS(SQUARED, 0.5, 1), 60, 10, 1, deep_tree, 1000},
        {"huber", LOSS(HUBER, 0.5, 0.5), 0, 1, 1, flat_tree, 500},
        {"huber", LOSS(HUBER, 0.5, 0.5), 0, 10, 1, deep_tree, 500},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        play(&list[i], 1, soon, late);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantile_regression),
        cmocka_unit_test(smooth_regression),
    };
    return cmocka_run_group_tests(tests, make_folder, leave_folder);
}
