/*
 * A federation of clients with many rows in a CSV file, all its rows in one place, and the least value of its objective
 * found in other ways: linear programs by GLPK, normal equations by LAPACK, coordinate descent for the squared loss
 * with l1, Newton for huber and logistic.
 */
#ifndef HFSAD_TESTS_SOLUTIONS_H
#define HFSAD_TESTS_SOLUTIONS_H

#include "defined_losses.h"

#include <glpk.h>

enum { M = 10 };

extern void dposv_(const char *half, const int *n, const int *columns, double *a, const int *lda, double *b,
                   const int *ldb, int *info);

/* All rows of the federation in one place. */
typedef struct {
    hfsad_loss loss;
    double l1;
    size_t n;
    double *x, *y, *weight; /* n rows of M; n; n: what a row's loss counts in the sum over all clients */
} problem;

typedef struct {
    const char *path;
    size_t clients;
} edge_shape;

static const edge_shape flat_tree[] = {{"a", 3}, {"b", 9}, {"c", 6}, {NULL, 0}};
static const edge_shape star[] = {{"", 12}, {NULL, 0}};
static const edge_shape deep_tree[] = {{"r/a", 2}, {"r/b", 7}, {"s/c", 5}, {"t", 3}, {"", 2}, {NULL, 0}};

typedef struct {
    const char *name;
    hfsad_loss loss;
    double l1;
    int edge_rounds;
    double participation;
    const edge_shape *tree;
    uint64_t more; /* iterations to the smaller gap */
    unsigned how;  /* WEIGHTED and so on, added up */
} setting;

/* Rows with weights; loss.scale: mean; loss.solver: linearized; the last coordinate is an intercept for all, which the
 * file has no column of; columns standardised; clients with one row each, as many more of them. */
enum { PLAIN = 0, WEIGHTED = 1, MEAN = 2, LINEARIZED = 4, INTERCEPT = 8, STANDARDIZE = 16, ONE_ROW = 32 };

TOOL FILE *open_in_folder(const char *name)
{
    FILE *f = fopen(in_folder(name), "w");
    assert_non_null(f);
    return f;
}

/* Columns of unlike scales, a sparse model, noise with heavy tails; labels with some of them wrong. */
TOOL void random_row(rng *r, hfsad_loss_kind kind, double *x, double *y)
{
    double s = 0;
    for (size_t m = 0; m < M; m++) {
        x[m] = rng_next_normal(r) * (m % 4 == 1 ? 2 : 1) + (m > 0 ? 0.3 * x[m - 1] : 0);
        s += m % 2 ? 0 : x[m] * (1 - 0.3 * (double)m / M);
    }
    const double heavy = rng_next_normal(r) / sqrt(exponential(r));
    if (has_labels(kind))
        *y = s + 1.5 * rng_next_normal(r) > 0 ? 1 : -1;
    else if (kind == HFSAD_LOSS_POISSON)
        *y = floor(exp(fmin(0.3 * s + 0.3 * rng_next_normal(r) + 0.7, 6)));
    else
        *y = kind == HFSAD_LOSS_PHASE_RETRIEVAL ? s * s + 0.1 * heavy * heavy : s + 0.5 * heavy;
}

TOOL void write_header(FILE *f, bool weighted, size_t columns)
{
    fprintf(f, "edge,client,y%s", weighted ? ",weight" : "");
    for (size_t m = 0; m < columns; m++)
        fprintf(f, ",x%zu", m + 1);
    fprintf(f, "\n");
}

TOOL void write_row(FILE *f, const char *path, size_t client, double y, const double *weight, const double *x,
                    size_t columns)
{
    fprintf(f, "%s,client%zu,%.17g", path, client, y);
    if (weight)
        fprintf(f, ",%.17g", *weight);
    for (size_t m = 0; m < columns; m++)
        fprintf(f, ",%.17g", x[m]);
    fprintf(f, "\n");
}

/* Writes data.csv and keeps the rows; `times` as many for every client. */
TOOL problem make_problem(uint64_t seed, const setting *s, size_t times)
{
    enum { ROWS_LEAST = 10, ROWS_MOST = 40, CLIENTS = 20 };
    const size_t room = CLIENTS * ROWS_MOST * times, columns = s->how & INTERCEPT ? M - 1 : M;
    rng r = {rng_key(seed, rng_stream("solutions")), 0};
    problem p = {.loss = s->loss, .l1 = s->l1};
    FILE *f = open_in_folder("data.csv");
    p.x = alloc_zero(room * M, sizeof *p.x);
    p.y = alloc_zero(room, sizeof *p.y);
    p.weight = alloc_zero(room, sizeof *p.weight);
    write_header(f, s->how & WEIGHTED, columns);
    size_t number = 0;
    for (const edge_shape *edge = s->tree; edge->path; edge++)
        for (size_t c = 0; c < edge->clients * (s->how & ONE_ROW ? ROWS_LEAST : 1); c++, number++) {
            const size_t first = p.n;
            size_t rows = s->how & ONE_ROW ? 1 : times * (ROWS_LEAST + below(&r, ROWS_MOST - ROWS_LEAST + 1));
            double sum = 0;
            for (; rows > 0; rows--, p.n++) {
                assert_true(p.n < room);
                random_row(&r, s->loss.kind, p.x + p.n * M, p.y + p.n);
                if (s->how & INTERCEPT)
                    p.x[p.n * M + M - 1] = 1;
                p.weight[p.n] = s->how & WEIGHTED ? uniform(&r, 0.2, 3) : 1;
                sum += p.weight[p.n];
                write_row(f, edge->path, number, p.y[p.n], s->how & WEIGHTED ? &p.weight[p.n] : NULL, p.x + p.n * M,
                          columns);
            }
            for (size_t i = first; (s->how & MEAN) && i < p.n; i++)
                p.weight[i] /= sum;
        }
    assert_int_equal(fclose(f), 0);
    return p;
}

TOOL void free_problem(problem *p)
{
    free(p->x);
    free(p->y);
    free(p->weight);
}

TOOL double dot(const double *a, const double *b)
{
    double sum = 0;
    for (size_t m = 0; m < M; m++)
        sum += a[m] * b[m];
    return sum;
}

/* Linear programs: w = wp - wn in 2 M columns with the cost l1, then what a row's residual costs above and below. */
TOOL double solve_by_program(const problem *p)
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
        const int row = (j - 2 * M - 1) % n; /* of the residuals' columns */
        glp_set_col_bnds(lp, j, j <= 2 * M && isfinite(p->loss.box) ? GLP_DB : GLP_LO, 0, p->loss.box);
        glp_set_obj_coef(lp, j, j <= 2 * M ? p->l1 : p->weight[row] * (j <= 2 * M + n ? above : under));
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
TOOL double smooth_parts(const hfsad_loss *l, double y, double s, double *slope, double *bend)
{
    *slope = defined_slope(l, y, s, 1);
    *bend = defined_bend(l, y, s);
    return (double)defined_loss(l, y, s);
}

TOOL double smooth_value(const problem *p, const double *w, double *g, double *h)
{
    double sum = 0, slope, bend;
    if (g)
        memset(g, 0, M * sizeof *g);
    if (h)
        memset(h, 0, M * M * sizeof *h);
    for (size_t i = 0; i < p->n; i++) {
        const double *x = p->x + i * M;
        sum += p->weight[i] * smooth_parts(&p->loss, p->y[i], dot(x, w), &slope, &bend);
        for (size_t m = 0; g && m < M; m++)
            g[m] += p->weight[i] * slope * x[m];
        for (size_t j = 0; h && j < M * M; j++)
            h[j] += p->weight[i] * bend * x[j / M] * x[j % M];
    }
    return sum;
}

/* Newton with halved steps; ends where the gradient is gone. The squared loss takes one step: the normal equations. */
TOOL double solve_by_newton(const problem *p)
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
TOOL double solve_by_descent(const problem *p)
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

TOOL double solve(const problem *p)
{
    if (p->loss.kind == HFSAD_LOSS_SQUARED && p->l1 > 0)
        return solve_by_descent(p);
    return isnan(defined_bend(&p->loss, 1, 0)) ? solve_by_program(p) : solve_by_newton(p);
}

TOOL hfsad_run *open_run_by(const char *algorithm, const setting *s, unsigned threads)
{
    FILE *f = open_in_folder("spec.yaml");
    const bool limited = strcmp(algorithm, "star") == 0; /* its iterations are a limit */
    fprintf(f, "data: data.csv\nalgorithm: %s\npreset: tuned\nloss: {kind: %s, tau: %g, delta: %g, h: %g, scale: %s",
            algorithm, loss_names[s->loss.kind], s->loss.tau, s->loss.delta, s->loss.h, s->how & MEAN ? "mean" : "sum");
    if (isfinite(s->loss.box))
        fprintf(f, ", box: %g", s->loss.box);
    fprintf(f, "%s}\n", s->how & LINEARIZED ? ", solver: linearized" : "");
    fprintf(f, "features: {intercept: %s, standardize: %s}\n", s->how & INTERCEPT ? "global" : "none",
            s->how & STANDARDIZE ? "true" : "false");
    if (s->l1 > 0)
        fprintf(f, "prior: {cloud: {penalty: l1, lambda: 1, weight: %g}}\n", s->l1);
    fprintf(f, "run: {iterations: %llu, edge_rounds: %d, participation: {client: %g}, stop: {gap: 0}}\n",
            limited ? 300 : (unsigned long long)s->more, s->edge_rounds, s->participation);
    assert_int_equal(fclose(f), 0);
    hfsad_error err;
    hfsad_spec *spec;
    hfsad_run *run;
    ok(hfsad_spec_load(&spec, in_folder("spec.yaml"), &err), &err);
    ok(hfsad_spec_check(spec, &err), &err);
    ok(hfsad_run_create(&run, spec, threads, &err), &err);
    hfsad_spec_free(spec);
    return run;
}

TOOL hfsad_run *open_run(const setting *s, unsigned threads)
{
    return open_run_by("hfsad", s, threads);
}

#define LOSS(kind, tau, delta)                                                                                         \
    {                                                                                                                  \
        HFSAD_LOSS_##kind, tau, delta, INFINITY, 0.3                                                                   \
    }

#endif
