/*
 * The step of a client with many rows. What it returns is held against the optimality conditions of
 *
 *     argmin  sum weight phi(y, <x,w>) + sigma/2 |w - v|^2,   |w_m| <= box but for the intercept
 *
 * with the losses, their one-sided slopes and the sums written out here once more, plainly.
 */
#include "defined_losses.h"

#include "core/kernels.h"

enum { ROWS_MOST = 40, M_MOST = 24, JUNK = 3 };

extern void dposv_(const char *half, const int *n, const int *columns, double *a, const int *lda, double *b,
                   const int *ldb, int *info);

typedef struct {
    uint64_t seed;
    hfsad_loss loss;
    rows_solver solver;
    size_t count, F, M; /* M = F + 1 with an intercept */
    double constant;
    bool sparse, weighted;
    double factor, sigma, mu;
    double x[ROWS_MOST][M_MOST]; /* rows spread out, with the constant column */
    double y[ROWS_MOST], weight[ROWS_MOST];
    double v[M_MOST], w[M_MOST];
    double slope[ROWS_MOST], anchor[ROWS_MOST], eta;
    squared_factor *squared;
    /* the rows as the library takes them; the sparse ones do not begin at the arrays' start */
    double packed[ROWS_MOST * M_MOST + JUNK];
    size_t start[ROWS_MOST + 1];
    uint32_t column[ROWS_MOST * M_MOST + JUNK];
    client_rows rows;
} client;

static void pack(client *c)
{
    size_t n = c->sparse ? JUNK : 0;
    for (size_t i = 0; i < n; i++) {
        c->packed[i] = NAN;
        c->column[i] = UINT32_MAX;
    }
    for (size_t r = 0; r < c->count; r++) {
        c->start[r] = n;
        for (size_t m = 0; m < c->F; m++) {
            if (c->sparse && c->x[r][m] == 0)
                continue;
            c->column[n] = (uint32_t)m;
            c->packed[n++] = c->x[r][m];
        }
        if (c->constant != 0)
            c->x[r][c->F] = c->constant;
    }
    c->start[c->count] = n;
    c->rows = (client_rows){
        .count = c->count,
        .F = c->F,
        .start = c->sparse ? c->start : NULL,
        .column = c->sparse ? c->column : NULL,
        .x = c->packed,
        .y = c->y,
        .weight = c->weighted ? c->weight : NULL,
        .constant = c->constant,
    };
}

static double weight_of(const client *c, size_t r)
{
    return c->factor * (c->weighted ? c->weight[r] : 1);
}

/* One step through the kernels, at v and sigma: a link without a penalty in its first step. Only w and what the solver
 * keeps change. */
static void step(client *c)
{
    double z[M_MOST], q[M_MOST] = {0}, parent[M_MOST] = {0}, centre[M_MOST];
    double *scratch = alloc_raw(rows_scratch(c->M, ROWS_MOST), sizeof *scratch);
    uint32_t k = 0;
    const hfsad_link_rule rule = {{.kind = HFSAD_PENALTY_NONE, .lambda = 1, .gamma = 3},
                                  {.c = c->sigma, .alpha = c->mu}};
    memcpy(z, c->v, sizeof z);
    const rows_leaf leaf = {
        .problem =
            {
                .loss = &c->loss,
                .solver = &c->solver,
                .rows = c->rows,
                .M = c->M,
                .factor = c->factor,
                .slope = c->slope,
                .anchor = rows_anchored(&c->loss) ? c->anchor : NULL,
                .eta = &c->eta,
                .squared = c->squared,
                .scratch = scratch,
            },
        .rule = &rule,
        .z = z,
        .q = q,
        .w = c->w,
        .k = &k,
        .w_parent = parent,
        .centre = centre,
    };
    kernels()->rows_step(&leaf);
    assert_int_equal(k, 1);
    free(scratch);
}

static long double inner_product(const client *c, size_t r, const double *w)
{
    long double sum = 0;
    for (size_t m = 0; m < c->M; m++)
        sum += (long double)c->x[r][m] * w[m];
    return sum;
}

static double norm_of(size_t n, const double *a)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += a[i] * a[i];
    return sqrt(sum);
}

static void include(const hfsad_loss *l, double y, double s, double *low, double *high)
{
    for (int side = -1; side <= 1; side += 2) {
        *low = fmin(*low, defined_slope(l, y, s, side));
        *high = fmax(*high, defined_slope(l, y, s, side));
    }
}

/* The slopes of phi within `reach` of s: at the ends, and at phase retrieval's kink, where they jump and are largest.
 */
static void slopes_near(const hfsad_loss *l, double y, double s, double reach, double *low, double *high)
{
    *low = INFINITY;
    *high = -INFINITY;
    for (int at = -1; at <= 1; at++)
        include(l, y, s + at * reach, low, high);
    const double kink = copysign(sqrt(fmax(y, 0)), s);
    if (l->kind == HFSAD_LOSS_PHASE_RETRIEVAL && y >= 0 && fabs(s - kink) <= reach) {
        *low = fmin(*low, -2 * fabs(kink));
        *high = fmax(*high, 2 * fabs(kink));
    }
}

static long double objective(const client *c, const double *w)
{
    long double sum = 0;
    for (size_t r = 0; r < c->count; r++)
        sum += (long double)weight_of(c, r) * defined_loss(&c->loss, c->y[r], inner_product(c, r, w));
    for (size_t m = 0; m < c->M; m++)
        sum += (long double)c->sigma / 2 * (w[m] - (long double)c->v[m]) * (w[m] - (long double)c->v[m]);
    return sum;
}

static double bounded(const client *c, size_t m, double a)
{
    return m >= c->F ? a : fmin(c->loss.box, fmax(-c->loss.box, a));
}

#define COMPLAIN(c, ...)                                                                                               \
    do {                                                                                                               \
        print_error("seed %llu, loss %d, %zu rows, M = %zu, sigma %g, box %g: ", (unsigned long long)(c)->seed,        \
                    (int)(c)->loss.kind, (c)->count, (c)->M, (c)->sigma, (c)->loss.box);                               \
        fail_msg(__VA_ARGS__);                                                                                         \
    } while (0)

/* v - 1/sigma sum a x, and the size of what is added up there. */
static double from_slopes(const client *c, const double *a, double *u)
{
    double size = norm_of(c->M, c->v);
    for (size_t m = 0; m < c->M; m++) {
        long double sum = c->v[m], most = fabs(c->v[m]);
        for (size_t r = 0; r < c->count; r++) {
            sum -= (long double)a[r] * c->x[r][m] / c->sigma;
            most += fabsl((long double)a[r] * c->x[r][m] / c->sigma);
        }
        u[m] = (double)sum;
        size = fmax(size, (double)most);
    }
    return size;
}

/* w = clip(v - 1/sigma sum a x), and every a of a row that is not zero in weight times the slopes near <x,w>. */
static void certify(const client *c, const double *a, double tolerance)
{
    double u[M_MOST];
    const double size = from_slopes(c, a, u);
    for (size_t m = 0; m < c->M; m++) {
        const double want = bounded(c, m, u[m]);
        if (!(fabs(c->w[m] - want) <= tolerance * size))
            COMPLAIN(c, "w[%zu] = %.17g, by the rows' slopes %.17g", m, c->w[m], want);
        if (m < c->F && !(fabs(c->w[m]) <= c->loss.box))
            COMPLAIN(c, "w[%zu] = %.17g is outside", m, c->w[m]);
    }
    for (size_t r = 0; r < c->count; r++) {
        double low, high;
        const double n = norm_of(c->M, c->x[r]), s = (double)inner_product(c, r, c->w);
        if (n == 0)
            continue;
        slopes_near(&c->loss, c->y[r], s, tolerance * (fabs(c->y[r]) + n * size), &low, &high);
        const double slope = a[r] / weight_of(c, r), slack = tolerance * (1 + fabs(low) + fabs(high));
        if (!(slope >= low - slack && slope <= high + slack))
            COMPLAIN(c, "row %zu has the slope %.17g at s = %.17g, y = %.17g: outside of [%.17g, %.17g]", r, slope, s,
                     c->y[r], low, high);
    }
}

/* Nothing near w, in the box, is better. */
static void perturb(const client *c, rng *r, double tolerance)
{
    const long double best = objective(c, c->w);
    const double size = norm_of(c->M, c->w) + norm_of(c->M, c->v);
    for (int i = 0; i < 24; i++) {
        double w[M_MOST];
        const double length = (i % 2 ? 1 : -1) * size * log_uniform(r, 1e-7, 1);
        const size_t one = below(r, c->M), row = below(r, c->count);
        for (size_t m = 0; m < c->M; m++) {
            const double d = i % 3 == 0 ? m == one : i % 3 == 1 ? c->x[row][m] : rng_next_normal(r);
            w[m] = bounded(c, m, c->w[m] + length * d);
        }
        const long double value = objective(c, w);
        if (!(value >= best - tolerance * (1 + fabsl(best))))
            COMPLAIN(c, "%.17Lg at w, but %.17Lg at a distance of %g", best, value, length);
    }
}

static double some_weight(rng *r)
{
    return log_uniform(r, 0.05, 20);
}

static void random_rows(client *c, rng *r, bool whole)
{
    double truth[M_MOST];
    for (size_t m = 0; m < M_MOST; m++)
        truth[m] = rng_next_normal(r);
    for (size_t i = 0; i < c->count; i++) {
        const size_t what = below(r, 12);
        double s = c->constant * truth[c->F];
        for (size_t m = 0; m < c->F; m++) {
            c->x[i][m] = below(r, 3) == 0 ? 0 : whole ? (double)below(r, 5) - 2 : rng_next_normal(r);
            if (what == 0)
                c->x[i][m] = 0;
            else if (what <= 2 && i > 0)
                c->x[i][m] = c->x[i - 1][m];
            s += c->x[i][m] * truth[m];
        }
        c->y[i] = observation_near(r, c->loss.kind, s);
        if (whole && !loss_kind_of(&c->loss)->fits)
            c->y[i] = (double)below(r, 5) - 2;
        if (what == 2 && i > 0)
            c->y[i] = c->y[i - 1];
        c->weight[i] = some_weight(r);
    }
}

/* Around the rows' own bend. Far below it coordinate ascent is slow, so few rows take that on. */
static void choose_sigma(client *c, rng *r, bool whole)
{
    double energy = 0;
    for (size_t i = 0; i < c->count; i++)
        energy += weight_of(c, i) * (c->constant * c->constant + 1) / (double)c->count;
    c->sigma = energy * log_uniform(r, 0.3, 100);
    if (c->count <= 3 && below(r, 2))
        c->sigma = energy * (below(r, 2) ? 1e6 : c->count == 1 ? 1e-6 : 0.02);
    if (whole)
        c->sigma = fmax(1, rint(c->sigma));
}

/* A client of some shape with a wrong state to start from. */
static client random_client(uint64_t seed, rng *r, hfsad_loss_kind kind, size_t least)
{
    static const double taus[] = {0.02, 0.3, 0.5, 0.9};
    static const size_t counts[] = {1, 2, 3, 7, 15, ROWS_MOST};
    client c = {.seed = seed, .mu = 0.1, .factor = 1};
    const bool whole = below(r, 4) == 0; /* ties and kinks that are met exactly */
    c.loss = (hfsad_loss){kind, taus[below(r, 4)], log_uniform(r, 0.05, 3), INFINITY, 0.3};
    c.solver = (rows_solver){ROWS_EXACT, 1e-13, 40000};
    c.F = 1 + below(r, M_MOST - 1);
    if (below(r, 3) == 0)
        c.constant = whole ? 1 : uniform(r, 0.2, 3);
    c.M = c.F + (c.constant != 0);
    c.count = counts[below(r, 6)];
    c.count = c.count < least ? least : c.count;
    c.sparse = below(r, 2);
    c.weighted = below(r, 2);
    if (below(r, 2))
        c.loss.box = whole ? 1 : log_uniform(r, 0.03, 3);
    random_rows(&c, r, whole);
    const double far = below(r, 3) == 0 ? 10 : 1; /* the box is left far behind */
    for (size_t m = 0; m < c.M; m++) {
        c.v[m] = whole ? (double)below(r, 7) - 3 : far * rng_next_normal(r);
        c.w[m] = rng_next_normal(r);
    }
    for (size_t i = 0; i < c.count; i++) {
        c.slope[i] = 3 * rng_next_normal(r);
        c.anchor[i] = rng_next_normal(r);
    }
    if (below(r, 2)) {
        double sum = 0;
        for (size_t i = 0; i < c.count; i++)
            sum += c.weighted ? c.weight[i] : 1;
        c.factor = 1 / sum;
    }
    choose_sigma(&c, r, whole);
    return c;
}

/* What a single row keeps no slope of: the slope, within those of the loss, that explains w best. */
static double single_slope(const client *c, double tolerance)
{
    double low = -INFINITY, high = INFINITY, free_n = 0, free_sum = 0;
    for (size_t m = 0; m < c->M; m++) {
        const double x = c->x[0][m], a = c->sigma * (c->v[m] - c->w[m]) / x;
        if (x == 0)
            continue;
        if (m < c->F && fabs(c->w[m]) == c->loss.box) {
            if ((c->w[m] > 0) == (x > 0))
                high = fmin(high, a);
            else
                low = fmax(low, a);
        } else {
            free_n += x * x;
            free_sum += x * c->sigma * (c->v[m] - c->w[m]);
        }
    }
    if (free_n > 0)
        return free_sum / free_n;
    double least, most;
    const double s = (double)inner_product(c, 0, c->w);
    slopes_near(&c->loss, c->y[0], s, tolerance * (1 + fabs(s)), &least, &most);
    return fmin(fmax(fmax(low, least * weight_of(c, 0)), least * weight_of(c, 0)), fmin(high, most * weight_of(c, 0)));
}

static void check_convex(const client *c, rng *r, double tolerance)
{
    double a[ROWS_MOST];
    for (size_t i = 0; i < c->count; i++)
        a[i] = c->squared      ? weight_of(c, i) * (double)(inner_product(c, i, c->w) - c->y[i])
               : c->count == 1 ? single_slope(c, tolerance)
                               : c->slope[i];
    certify(c, a, tolerance);
    perturb(c, r, 1e-9);
}

static void convex_losses(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 100 * LOSSES; seed++) {
        rng r = {rng_key(seed, rng_stream("rows")), 0};
        if (kind_at(seed) == HFSAD_LOSS_PHASE_RETRIEVAL)
            continue;
        client c = random_client(seed, &r, kind_at(seed), 1);
        pack(&c);
        if (c.loss.kind == HFSAD_LOSS_SQUARED && isinf(c.loss.box) && c.count > 1 && below(&r, 2))
            assert_non_null(c.squared = squared_create(&c.rows, c.M, c.factor));
        /* from a wrong state, then with sigma growing and v moving a little, from what was left */
        for (int i = 0; i < 3; i++) {
            step(&c);
            check_convex(&c, &r, 1e-8);
            c.sigma *= 1.7;
            for (size_t m = 0; m < c.M; m++)
                c.v[m] += 0.1 * rng_next_normal(&r);
        }
        squared_free(c.squared);
    }
}

/* The factored squared loss against the normal equations, solved by LAPACK's Cholesky. */
static void squared_by_normal_equations(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        rng r = {rng_key(seed, rng_stream("squared")), 0};
        client c = random_client(seed, &r, HFSAD_LOSS_SQUARED, 1);
        c.loss.box = INFINITY;
        pack(&c);
        assert_non_null(c.squared = squared_create(&c.rows, c.M, c.factor));
        for (int i = 0; i < 3; i++, c.sigma *= 10) {
            double left[M_MOST * M_MOST], right[M_MOST], w[M_MOST], scratch[8 * M_MOST + ROWS_MOST];
            const int n = (int)c.M, one = 1;
            int info = -1;
            for (size_t m = 0; m < c.M; m++) {
                right[m] = c.sigma * c.v[m];
                for (size_t j = 0; j < c.M; j++)
                    left[m * c.M + j] = m == j ? c.sigma : 0;
                for (size_t k = 0; k < c.count; k++) {
                    right[m] += weight_of(&c, k) * c.y[k] * c.x[k][m];
                    for (size_t j = 0; j < c.M; j++)
                        left[m * c.M + j] += weight_of(&c, k) * c.x[k][m] * c.x[k][j];
                }
            }
            dposv_("L", &n, &one, left, &n, right, &n, &info);
            assert_int_equal(info, 0);
            assert_true(rows_scratch(c.M, ROWS_MOST) <= sizeof scratch / sizeof *scratch);
            squared_prox(c.squared, &c.rows, c.v, c.sigma, w, scratch);
            for (size_t m = 0; m < c.M; m++)
                if (!(fabs(w[m] - right[m]) <= 1e-8 * (1 + norm_of(c.M, right))))
                    COMPLAIN(&c, "w[%zu] = %.17g, by the normal equations %.17g", m, w[m], right[m]);
        }
        squared_free(c.squared);
    }
}

/* Rows that repeat, and sigma so small beside them that the matrix is nearly singular: the gradient at w is that of the
 * rounding, not of a pivot gone wrong. */
static void squared_of_repeated_rows(void **state)
{
    (void)state;
    static const double sigmas[] = {1e-6, 1e-10, 1e-14};
    for (uint64_t seed = 0; seed < 300; seed++) {
        rng r = {rng_key(seed, rng_stream("repeated")), 0};
        client c = random_client(seed, &r, HFSAD_LOSS_SQUARED, 1);
        double w[M_MOST], scratch[8 * M_MOST + ROWS_MOST], energy = 1, gradient[M_MOST];
        c.loss.box = INFINITY;
        for (size_t k = 0; k < c.count; k++)
            for (size_t m = 0; m < c.F; m++) {
                c.x[k][m] = c.x[k % 2][m];
                energy += weight_of(&c, k) * c.x[k][m] * c.x[k][m];
            }
        pack(&c);
        c.sigma = sigmas[seed % 3] * energy;
        assert_non_null(c.squared = squared_create(&c.rows, c.M, c.factor));
        squared_prox(c.squared, &c.rows, c.v, c.sigma, w, scratch);
        for (size_t m = 0; m < c.M; m++) {
            long double sum = (long double)c.sigma * (w[m] - c.v[m]);
            for (size_t k = 0; k < c.count; k++)
                sum += weight_of(&c, k) * (inner_product(&c, k, w) - c.y[k]) * c.x[k][m];
            gradient[m] = (double)sum;
        }
        const double scale = (energy + c.constant * c.constant) * (1 + norm_of(c.M, w) + norm_of(c.count, c.y));
        if (!(norm_of(c.M, gradient) <= 1e-15 / sigmas[seed % 3] * scale))
            COMPLAIN(&c, "gradient of %g where numbers of %g are added up", norm_of(c.M, gradient), scale);
        squared_free(c.squared);
    }
}

/* A row's subproblem of one dimension: w = clip(v - t x), over t. */
typedef struct {
    const client *c;
} along_row;

static double along_row_value(const void *context, double t)
{
    const client *c = ((const along_row *)context)->c;
    double w[M_MOST];
    for (size_t m = 0; m < c->M; m++)
        w[m] = bounded(c, m, c->v[m] - t * c->x[0][m]);
    return (double)objective(c, w);
}

static client phase_client(uint64_t seed, rng *r, size_t least)
{
    client c = random_client(seed, r, HFSAD_LOSS_PHASE_RETRIEVAL, least);
    c.solver = (rows_solver){ROWS_EXACT, 1e-10, 100000};
    c.sigma *= 3;
    for (size_t m = 0; m < c.M; m++)
        c.w[m] = bounded(&c, m, c.w[m]);
    return c;
}

/* One row: the global minimiser, from wherever it starts, and what the one-observation prox says. */
static void phase_of_one_row(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 300; seed++) {
        rng r = {rng_key(seed, rng_stream("phase1")), 0};
        client c = phase_client(seed, &r, 1);
        c.count = 1;
        pack(&c);
        step(&c);
        const along_row line = {&c};
        const double n = norm_of(c.M, c.x[0]), far = n > 0 ? 20 * (1 + norm_of(c.M, c.v)) / n : 1;
        const double least = brute_minimum(along_row_value, &line, -far, far), have = (double)objective(&c, c.w);
        if (!(have <= least + 1e-9 * (1 + fabs(least))))
            COMPLAIN(&c, "%.17g, by brute force %.17g", have, least);
        if (c.constant != 0)
            continue;
        double w[M_MOST], scratch[5 * M_MOST];
        hfsad_loss_prox(&c.loss, c.M, c.x[0], c.y[0], n * n, c.v, c.sigma / weight_of(&c, 0), w, scratch);
        for (size_t m = 0; m < c.M; m++)
            if (!(fabs(w[m] - c.w[m]) <= 1e-9 * (1 + norm_of(c.M, c.v))) &&
                !(fabsl(objective(&c, w) - have) <= 1e-12 * fabs(have))) /* two minimisers */
                COMPLAIN(&c, "w[%zu] = %.17g, by the one-observation prox %.17g", m, c.w[m], w[m]);
    }
}

/* Many rows: no step goes up, and after a few at one v the last w is stationary. */
static void phase_of_many_rows(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 60; seed++) {
        rng r = {rng_key(seed, rng_stream("phase")), 0};
        client c = phase_client(seed, &r, 2);
        pack(&c);
        for (int i = 0; i < 12; i++) {
            const long double before = objective(&c, c.w);
            step(&c);
            if (!(objective(&c, c.w) <= before * (1 + 1e-15L)))
                COMPLAIN(&c, "from %.17Lg up to %.17Lg", before, objective(&c, c.w));
            if (i % 4 == 3) {
                certify(&c, c.slope, 1e-5);
                c.sigma *= 1.5;
            }
        }
    }
}

/* A start outside the box: the step goes inside, whatever the objective is outside. */
static void phase_comes_into_the_box(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 100; seed++) {
        rng r = {rng_key(seed, rng_stream("outside")), 0};
        client c = phase_client(seed, &r, 2);
        c.loss.box = uniform(&r, 0.05, 0.5);
        c.solver.sweeps = (uint32_t)(1 + below(&r, 5));
        for (size_t m = 0; m < c.M; m++)
            c.w[m] = c.v[m] = rng_next_normal(&r);
        pack(&c);
        step(&c);
        for (size_t m = 0; m < c.F; m++)
            if (!(fabs(c.w[m]) <= c.loss.box))
                COMPLAIN(&c, "w[%zu] = %.17g is outside", m, c.w[m]);
    }
}

/* Least objective over a square, by a grid that is refined where it is least. */
static double grid_minimum(const client *c, double *best_w)
{
    enum { POINTS = 40, ROUNDS = 26 };
    double centre[2] = {0, 0}, half = 6, best = INFINITY;
    for (int round = 0; round < ROUNDS; round++, half *= 0.5) {
        const double origin[2] = {centre[0], centre[1]};
        for (int i = -POINTS; i <= POINTS; i++)
            for (int j = c->M > 1 ? -POINTS : 0; j <= (c->M > 1 ? POINTS : 0); j++) {
                const double w[2] = {bounded(c, 0, origin[0] + half * i / POINTS),
                                     bounded(c, 1, origin[1] + half * j / POINTS)};
                const double value = (double)objective(c, w);
                if (value < best) {
                    best = value;
                    memcpy(centre, w, sizeof w);
                }
            }
    }
    memcpy(best_w, centre, sizeof centre);
    return best;
}

static void phase_by_brute_force(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 24; seed++) {
        rng r = {rng_key(seed, rng_stream("grid")), 0};
        client c = phase_client(seed, &r, 5);
        double at[2];
        c.F = c.M = 1 + seed % 2;
        c.constant = 0;
        c.count = 5;
        for (size_t m = 0; m < 2; m++)
            c.v[m] = fmod(c.v[m], 2);
        pack(&c);
        const double least = grid_minimum(&c, at);
        for (size_t m = 0; m < c.M; m++)
            c.w[m] = bounded(&c, m, at[m] + 0.003 * rng_next_normal(&r));
        step(&c);
        const double have = (double)objective(&c, c.w);
        if (!(have <= least + 1e-6 * (1 + fabs(least))))
            COMPLAIN(&c, "%.17g, by brute force %.17g", have, least);
    }
}

static long double smoothed_abs(long double t, double mu)
{
    return fabsl(t) >= mu ? fabsl(t) : t * t / (2 * mu) + mu / 2;
}

static long double smoothed_phi(const hfsad_loss *l, double y, long double s, double mu)
{
    switch (l->kind) {
    case HFSAD_LOSS_PHASE_RETRIEVAL:
        return smoothed_abs(y - s * s, mu);
    case HFSAD_LOSS_QUANTILE: /* rho = |r|/2 + (tau - 1/2) r */
        return smoothed_abs(y - s, mu) / 2 + (l->tau - 0.5L) * (y - s);
    case HFSAD_LOSS_ABSOLUTE:
        return smoothed_abs(y - s, mu);
    case HFSAD_LOSS_HINGE:
        return smoothed_abs(1 - y * s, mu) / 2 + (1 - y * s) / 2;
    default:
        return defined_loss(l, y, s);
    }
}

static long double smoothed_loss(const client *c, const double *w)
{
    long double sum = 0;
    for (size_t r = 0; r < c->count; r++)
        sum += weight_of(c, r) * smoothed_phi(&c->loss, c->y[r], inner_product(c, r, w), c->mu);
    return sum;
}

static long double smoothed_objective(const client *c, const double *w)
{
    long double sum = smoothed_loss(c, w);
    for (size_t m = 0; m < c->M; m++)
        sum += c->sigma / 2 * (w[m] - c->v[m]) * (w[m] - c->v[m]);
    return sum;
}

/* The gradient of the smoothed loss by differences of the loss itself. */
static void differences(const client *c, const double *w, double *g)
{
    for (size_t m = 0; m < c->M; m++) {
        double low[M_MOST], high[M_MOST];
        memcpy(low, w, sizeof low);
        memcpy(high, w, sizeof high);
        low[m] -= 1e-7;
        high[m] += 1e-7;
        g[m] = (double)((smoothed_loss(c, high) - smoothed_loss(c, low)) / ((long double)high[m] - low[m]));
    }
}

/* One linearised step: the point that the equation says, for an eta that majorises. */
static void check_linearized(client *c)
{
    double g[M_MOST], before[M_MOST];
    memcpy(before, c->w, sizeof before);
    differences(c, before, g);
    const long double value = smoothed_loss(c, before), whole = smoothed_objective(c, before);
    step(c);
    long double bound = value;
    for (size_t m = 0; m < c->M; m++) {
        const double d = c->w[m] - before[m];
        const double want = bounded(c, m, (c->eta * before[m] + c->sigma * c->v[m] - g[m]) / (c->eta + c->sigma));
        if (!(fabs(c->w[m] - want) <= 1e-5 * (1 + fabs(g[m])) * (1 + 1 / c->sigma)))
            COMPLAIN(c, "w[%zu] = %.17g, by the equation %.17g", m, c->w[m], want);
        bound += g[m] * d + c->eta / 2 * d * d;
    }
    const long double slack = 1e-5L * (1 + fabsl(value));
    if (!(smoothed_loss(c, c->w) <= bound + slack))
        COMPLAIN(c, "eta %g: the smoothed loss is %.17Lg, above its majorant %.17Lg", c->eta, smoothed_loss(c, c->w),
                 bound);
    if (!(smoothed_objective(c, c->w) <= whole + 1e-11L * (1 + fabsl(whole))))
        COMPLAIN(c, "from %.17Lg up to %.17Lg", whole, smoothed_objective(c, c->w));
}

static void linearized(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 280; seed++) {
        rng r = {rng_key(seed, rng_stream("linear")), 0};
        client c = random_client(seed, &r, kind_at(seed), 1);
        pack(&c);
        c.solver.method = ROWS_LINEARIZED;
        c.mu = log_uniform(&r, 0.05, 0.5);
        for (size_t m = 0; m < c.M; m++)
            c.w[m] = bounded(&c, m, c.w[m]);
        for (int i = 0; i < 5; i++)
            check_linearized(&c);
        if (c.loss.kind == HFSAD_LOSS_PHASE_RETRIEVAL)
            continue;
        /* repeated at one v it ends where the exact step does, but for the smoothing; its rate is eta/(eta + sigma) */
        double weights = 0, bend = 0;
        for (size_t i = 0; i < c.count; i++) {
            const double n = norm_of(c.M, c.x[i]);
            weights += weight_of(&c, i);
            bend += weight_of(&c, i) * n * n / c.mu;
        }
        c.sigma = fmax(c.sigma, bend / 50);
        for (int i = 0; i < 600; i++)
            step(&c);
        const long double have = objective(&c, c.w);
        c.solver.method = ROWS_EXACT;
        step(&c);
        const long double want = objective(&c, c.w);
        if (!(have >= want - 1e-9L * (1 + fabsl(want)) &&
              have <= want + weights * c.mu / 2 + 1e-3L * (1 + fabsl(want))))
            COMPLAIN(&c, "linearised %.17Lg, exact %.17Lg", have, want);
    }
}

/* Every set of kernels: the same bits of w and of what is kept. */
static void every_instruction_set(void **state)
{
    (void)state;
    static const char *const names[] = {"avx2", "avx512"};
    for (uint64_t seed = 0; seed < 210; seed++) {
        rng r = {rng_key(seed, rng_stream("bits")), 0};
        client start = random_client(seed, &r, kind_at(seed), 1);
        start.solver = (rows_solver){seed % 3 ? ROWS_EXACT : ROWS_LINEARIZED, 1e-3, 50};
        client plain = start;
        pack(&plain);
        assert_true(kernels_choose("plain"));
        step(&plain);
        for (size_t k = 0; k < 2; k++) {
            if (!kernels_choose(names[k]))
                continue;
            client fast = start;
            pack(&fast);
            step(&fast);
            if (memcmp(fast.w, plain.w, sizeof fast.w) || memcmp(fast.slope, plain.slope, sizeof fast.slope) ||
                memcmp(fast.anchor, plain.anchor, sizeof fast.anchor) || memcmp(&fast.eta, &plain.eta, sizeof fast.eta))
                COMPLAIN(&fast, "%s differs from plain", names[k]);
        }
        kernels_choose(NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convex_losses),
        cmocka_unit_test(squared_by_normal_equations),
        cmocka_unit_test(squared_of_repeated_rows),
        cmocka_unit_test(phase_of_one_row),
        cmocka_unit_test(phase_of_many_rows),
        cmocka_unit_test(phase_by_brute_force),
        cmocka_unit_test(phase_comes_into_the_box),
        cmocka_unit_test(linearized),
        cmocka_unit_test(every_instruction_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
