/*
 * The prox of a client's rows, written once over vec.h; kernels_body.h includes this file.
 *
 * Convex losses, by the dual. With a_r in weight_r d phi_r(s_r), s_r = <x_r, w>:
 *
 *     w = v - 1/sigma sum a_r x_r
 *
 * The a_r are found row by row: without the contribution of row r, the row's problem is the prox of one row with its s0
 * and kappa = weight |x_r|^2 / sigma. The slope of that prox is the new a_r. This is coordinate ascent on the dual with
 * one number per row; it starts from the a_r of the previous step. With a box, w = clip(v - 1/sigma sum a_r x_r), and
 * box.h solves the problem of a row.
 *
 * Phase retrieval, by majorising: around the anchors t_r = <x_r, w_last>
 *
 *     |y - s^2| <= |y + t^2 - 2 t s| + (s - t)^2        (equal at s = t)
 *
 * The right side is convex, so the rows are swept as above; then the anchors move. Every round lowers the client's
 * objective without smoothing.
 *
 * Linearised: g is the gradient at w_last of the loss smoothed by |.|_mu, and
 *
 *     w = P_box((eta w_last + sigma v - g) / (eta + sigma)),   eta doubled until  f(w) <= f + <g, d> + eta/2 |d|^2
 */
#include "core/rows_prox.h"
#include "math/box.h"
#include "math/losses.h"

#include <float.h>

typedef struct {
    double s, n; /* <x, w>, |x|^2 */
} row_facts;

/* Element m is added to lane m mod 8 of sum (m / 8) mod 4. All indices are constants; otherwise the compiler would keep
 * the sums in memory. */
VEC_FN row_facts dense_facts(const double *x, const double *w, size_t F)
{
    enum { V = VEC_LANES };
    vec s[4], n[4];
    for (int i = 0; i < 4; i++)
        s[i] = n[i] = vec_zero();
    size_t m = 0;
#define FACTS_OF(i, xv, wv)                                                                                            \
    do {                                                                                                               \
        const vec at = (xv);                                                                                           \
        s[i] = vec_fma(at, (wv), s[i]);                                                                                \
        n[i] = vec_fma(at, at, n[i]);                                                                                  \
    } while (0)
    for (; m + 4 * V <= F; m += 4 * V) {
        FACTS_OF(0, vec_load(x + m), vec_load(w + m));
        FACTS_OF(1, vec_load(x + m + V), vec_load(w + m + V));
        FACTS_OF(2, vec_load(x + m + 2 * V), vec_load(w + m + 2 * V));
        FACTS_OF(3, vec_load(x + m + 3 * V), vec_load(w + m + 3 * V));
    }
    if (m < F)
        FACTS_OF(0, row_load(x, m, F), row_load(w, m, F));
    if (m + V < F)
        FACTS_OF(1, row_load(x, m + V, F), row_load(w, m + V, F));
    if (m + 2 * V < F)
        FACTS_OF(2, row_load(x, m + 2 * V, F), row_load(w, m + 2 * V, F));
    if (m + 3 * V < F)
        FACTS_OF(3, row_load(x, m + 3 * V, F), row_load(w, m + 3 * V, F));
#undef FACTS_OF
    return (row_facts){vec_sum(vec_add(vec_add(s[0], s[1]), vec_add(s[2], s[3]))),
                       vec_sum(vec_add(vec_add(n[0], n[1]), vec_add(n[2], n[3])))};
}

VEC_FN row_facts facts_at(const client_rows *rows, size_t r, const double *w)
{
    row_facts f = {0, 0};
    if (!rows->start)
        f = dense_facts(rows->x + row_from(rows, r), w, rows->F);
    else
        for (size_t i = rows->start[r]; i < rows->start[r + 1]; i++) {
            f.s += rows->x[i] * w[rows->column[i]];
            f.n += rows->x[i] * rows->x[i];
        }
    if (rows->constant != 0) {
        f.s += rows->constant * w[rows->F];
        f.n += rows->constant * rows->constant;
    }
    return f;
}

VEC_FN void add_at(const client_rows *rows, size_t r, double a, double *w)
{
    if (rows->start) {
        row_add(rows, r, a, w);
        return;
    }
    const double *x = rows->x + row_from(rows, r);
    const vec factor = vec_set(a);
    for (size_t m = 0; m < rows->F; m += VEC_LANES)
        row_store(w, vec_fma(factor, row_load(x, m, rows->F), row_load(w, m, rows->F)), m, rows->F);
    if (rows->constant != 0)
        w[rows->F] += a * rows->constant;
}

/* Data of a sweep. u: v - 1/sigma sum a x, which equals w without a box. */
typedef struct {
    const rows_problem *p;
    double sigma, inv_sigma;
    double *u;
    double *x;      /* room for a sparse row as M plain numbers */
    size_t *moving; /* rows that moved in the last full sweep */
    double *box;
} rows_state;

/* The unweighted slope at the minimiser of the row's problem, from its present s: the slope of the loss or of phase
 * retrieval's majorant. */
VEC_FN double slope_of(const rows_problem *p, size_t r, double s0, double kappa, double now)
{
    if (!p->anchor)
        return loss_row_slope(p->loss, p->rows.y[r], s0, kappa, now);
    return majorant_row_slope(p->rows.y[r], p->anchor[r], s0, kappa);
}

/* New slope of row r with a box: the closed form if its w stays in the box, otherwise the exact search. On entry u does
 * not contain the row. */
static __attribute__((noinline)) double boxed_slope(const rows_state *at, size_t r, double weight)
{
    const rows_problem *p = at->p;
    const size_t M = p->M, boxed = p->rows.F;
    row_facts f = {0, 0};
    for (size_t m = 0; m < M; m++) {
        f.s += at->x[m] * at->u[m];
        f.n += at->x[m] * at->x[m];
    }
    const double a = weight * slope_of(p, r, f.s, weight * f.n * at->inv_sigma, f.s);
    double most = 0;
    for (size_t m = 0; m < boxed; m++)
        most = fmax(most, fabs(at->u[m] - a * at->inv_sigma * at->x[m]));
    if (most <= p->loss->box)
        return a;
    const scalar_loss law = {p->loss, p->rows.y[r], p->anchor ? &p->anchor[r] : NULL};
    return at->sigma * box_search(&law, M, boxed, at->x, at->u, at->sigma / weight, at->box);
}

static double boxed_row(const rows_state *at, size_t r)
{
    const rows_problem *p = at->p;
    const double before = p->slope[r], n = row_norm2(&p->rows, r), weight = p->factor * row_weight(&p->rows, r);
    if (!(n > 0))
        return 0;
    row_spread(&p->rows, r, p->M, at->x);
    for (size_t m = 0; m < p->M; m++)
        at->u[m] += before * at->inv_sigma * at->x[m];
    const double a = boxed_slope(at, r, weight);
    for (size_t m = 0; m < p->M; m++)
        at->u[m] -= a * at->inv_sigma * at->x[m];
    p->slope[r] = a;
    const double step = (a - before) * at->inv_sigma;
    return step * step * n;
}

/* Updates the slope of row r; returns the squared length by which u moves. */
VEC_FN double free_row(const rows_state *at, size_t r)
{
    const rows_problem *p = at->p;
    const double weight = p->factor * row_weight(&p->rows, r);
    const row_facts f = facts_at(&p->rows, r, at->u);
    if (!(f.n > 0))
        return 0;
    const double before = p->slope[r], lift = f.n * at->inv_sigma;
    const double a = weight * slope_of(p, r, f.s + before * lift, weight * lift, f.s);
    const double step = (before - a) * at->inv_sigma;
    if (step == 0)
        return 0;
    add_at(&p->rows, r, step, at->u);
    p->slope[r] = a;
    return step * step * f.n;
}

VEC_FN void count_visits(const rows_problem *p, size_t rows)
{
    if (p->visits)
        *p->visits += rows;
}

/* Visits every row once, in alternating directions, and lists the rows that moved. Returns the sum of the squared
 * moves. */
static double sweep(const rows_state *at, uint32_t number, size_t *n_moving)
{
    const rows_problem *p = at->p;
    const size_t count = p->rows.count;
    const bool boxed = p->loss->box < INFINITY;
    double moved = 0;
    *n_moving = 0;
    for (size_t i = 0; i < count; i++) {
        const size_t r = number % 2 ? count - 1 - i : i;
        const double move = boxed ? boxed_row(at, r) : free_row(at, r);
        at->moving[*n_moving] = r;
        *n_moving += move > 0;
        moved += move;
    }
    count_visits(p, count);
    return moved;
}

/* The same for the listed rows only, the last row first. */
static double sweep_listed(const rows_state *at, uint32_t number, size_t n)
{
    const rows_problem *p = at->p;
    const bool boxed = p->loss->box < INFINITY;
    double moved = 0;
    for (size_t i = 0; i < n; i++) {
        const size_t r = at->moving[number % 2 ? i : n - 1 - i];
        moved += boxed ? boxed_row(at, r) : free_row(at, r);
    }
    count_visits(p, n);
    return moved;
}

static double distance2(size_t M, const double *a, const double *b)
{
    vec sum = vec_zero();
    for (size_t m = 0; m < M; m += VEC_LANES) {
        const vec d = vec_sub(row_load(a, m, M), row_load(b, m, M));
        sum = vec_fma(d, d, sum);
    }
    return vec_sum(sum);
}

/* Sweeps until a full sweep moves u by at most tolerance |u - v|; returns the number of sweeps left. For a loss with a
 * kink, most rows stay at a bound of their slope. If half of the rows do, the other rows are swept first. These short
 * sweeps have a limit of their own and do not count as sweeps. */
static uint32_t sweep_all(const rows_state *at, const double *v, uint32_t left)
{
    enum { SHORT_SWEEPS = 10 };
    const double tolerance2 = at->p->solver->tolerance * at->p->solver->tolerance;
    for (uint32_t number = 0; left > 0; number++) {
        size_t n;
        left--;
        if (sweep(at, number, &n) <= tolerance2 * distance2(at->p->M, at->u, v))
            break;
        for (uint32_t i = 0; left > 0 && 2 * n <= at->p->rows.count && i < SHORT_SWEEPS; i++)
            if (sweep_listed(at, i, n) <= tolerance2 * distance2(at->p->M, at->u, v))
                break;
    }
    return left;
}

static void clip_to(const rows_problem *p, const double *u, double *w)
{
    const double box = p->loss->box;
    for (size_t m = 0; m < p->M; m++)
        w[m] = m >= p->rows.F || fabs(u[m]) <= box ? u[m] : copysign(box, u[m]);
}

/* u = v - 1/sigma sum a x */
static void start_from_slopes(const rows_state *at, const double *v)
{
    const rows_problem *p = at->p;
    memcpy(at->u, v, p->M * sizeof *v);
    for (size_t r = 0; r < p->rows.count; r++)
        if (p->slope[r] != 0)
            add_at(&p->rows, r, -p->slope[r] * at->inv_sigma, at->u);
    count_visits(p, p->rows.count);
}

static double rows_loss(const rows_problem *p, const double *w)
{
    if (p->own) {
        const hfsad_client client = rows_client(p);
        return p->own->value(p->own->context, &client, w);
    }
    double sum = 0;
    for (size_t r = 0; r < p->rows.count; r++)
        sum += row_weight(&p->rows, r) * hfsad_loss_value(p->loss, p->rows.y[r], facts_at(&p->rows, r, w).s);
    return p->factor * sum;
}

/* A single row: phase retrieval has a global minimiser in closed form. at: NULL, or the majorant around <x, at> is
 * minimised instead. */
static void single_row_prox(const rows_problem *p, const double *at, const double *v, double sigma, double *w)
{
    double *x = p->scratch;
    row_spread(&p->rows, 0, p->M, x);
    const double weight = p->factor * row_weight(&p->rows, 0);
    double s = 0, n = 0, anchor = 0, most = 0;
    for (size_t m = 0; m < p->M; m++) {
        s += x[m] * v[m];
        n += x[m] * x[m];
        anchor += at ? x[m] * at[m] : 0;
    }
    const scalar_loss law = {p->loss, p->rows.y[0], at ? &anchor : NULL};
    const vec y = vec_set(p->rows.y[0]), norm = vec_set(n), s0 = vec_set(s), inv_sigma = vec_set(weight / sigma);
    double t = -vec_first(at ? majorant_coefficient(y, norm, vec_set(anchor), s0, inv_sigma)
                             : loss_coefficient(p->loss, y, norm, s0, inv_sigma));
    for (size_t m = 0; m < p->rows.F; m++)
        most = fmax(most, fabs(v[m] - t * x[m]));
    if (most > p->loss->box)
        t = box_search(&law, p->M, p->rows.F, x, v, sigma / weight, p->scratch + p->M);
    for (size_t m = 0; m < p->M; m++)
        w[m] = v[m] - t * x[m];
    clip_to(p, w, w);
}

static double prox_objective(const rows_problem *p, const double *v, double sigma, const double *w)
{
    return rows_loss(p, w) + sigma / 2 * distance2(p->M, w, v);
}

/* Rounds of majorising from the last w. A round that does not lower the objective (its sweeps ended early) is
 * discarded. */
static void majorised_prox(const rows_problem *p, const rows_state *at, const double *v, double *w)
{
    const double tolerance2 = p->solver->tolerance * p->solver->tolerance;
    double *next = p->scratch + 2 * p->M;
    clip_to(p, w, w); /* the start may lie outside the box */
    double best = prox_objective(p, v, at->sigma, w);
    uint32_t left = p->solver->sweeps;
    while (left > 0) {
        for (size_t r = 0; r < p->rows.count; r++)
            p->anchor[r] = facts_at(&p->rows, r, w).s;
        start_from_slopes(at, v);
        left = sweep_all(at, v, left);
        clip_to(p, at->u, next);
        const double value = prox_objective(p, v, at->sigma, next), moved = distance2(p->M, next, w);
        if (!(value < best))
            break;
        best = value;
        memcpy(w, next, p->M * sizeof *w);
        if (moved <= tolerance2 * distance2(p->M, w, v))
            break;
    }
}

/* Minimises the majorant around <x_r, at>; the anchors do not move. */
static void anchored_prox(const rows_problem *p, const rows_state *state, const double *at, const double *v, double *w)
{
    for (size_t r = 0; r < p->rows.count; r++)
        p->anchor[r] = facts_at(&p->rows, r, at).s;
    start_from_slopes(state, v);
    sweep_all(state, v, p->solver->sweeps);
    clip_to(p, state->u, w);
}

/* With u = v - 1/sigma sum a x, the objective at u minus the dual function at a is the sum of the rows' Fenchel-Young
 * gaps, none of which is negative. The objective is strongly convex, so this sum is at least sigma/2
 * |u - solution|^2. */
static double duality_gap(const rows_problem *p, const double *u)
{
    const loss_kind *kind = loss_kind_of(p->loss);
    double sum = 0, low, high;
    for (size_t r = 0; r < p->rows.count; r++) {
        const double weight = p->factor * row_weight(&p->rows, r), y = p->rows.y[r];
        if (!(weight > 0))
            continue;
        kind->slopes(p->loss, y, &low, &high);
        sum += weight * kind->gap(p->loss, y, facts_at(&p->rows, r, u).s, loss_clip(p->slope[r] / weight, low, high));
    }
    return sum;
}

/* Sweeps until the duality gap proves that u is within the required distance of the solution. The limits of the solver
 * do not apply here. */
static void certify(const rows_problem *p, const rows_state *at, const double *v)
{
    const uint32_t most = UINT32_C(1) << 20;
    for (uint32_t sweeps = 1; sweeps <= most; sweeps *= 2) {
        size_t moving;
        start_from_slopes(at, v); /* removes the rounding errors of the sweeps */
        if (2 * at->sigma * duality_gap(p, at->u) <= p->pull * p->pull)
            return;
        for (uint32_t i = 0; i < sweeps; i++)
            sweep(at, i, &moving);
    }
    *p->inexact = true;
}

/* scratch: u, a row, the next w of majorised_prox, the list of moving rows, and the box's events */
static void exact_prox(const rows_problem *p, const double *anchor, const double *v, double sigma, double *w)
{
    const rows_state at = {
        .p = p,
        .sigma = sigma,
        .inv_sigma = 1 / sigma,
        .u = p->scratch,
        .x = p->scratch + p->M,
        .moving = (size_t *)(void *)(p->scratch + 3 * p->M),
        .box = p->scratch + 3 * p->M + p->rows.count,
    };
    if (p->anchor) {
        if (anchor)
            anchored_prox(p, &at, anchor, v, w);
        else
            majorised_prox(p, &at, v, w);
        return;
    }
    start_from_slopes(&at, v);
    sweep_all(&at, v, p->solver->sweeps);
    if (p->pull > 0)
        certify(p, &at, v);
    clip_to(p, at.u, w);
}

/* The smoothed loss; its gradient goes to g if g is not NULL. */
static double smooth_loss(const rows_problem *p, double mu, const double *w, double *g)
{
    if (p->own) {
        const hfsad_client client = rows_client(p);
        return g ? p->own->gradient(p->own->context, &client, w, g) : p->own->value(p->own->context, &client, w);
    }
    double sum = 0;
    if (g)
        memset(g, 0, p->M * sizeof *g);
    for (size_t r = 0; r < p->rows.count; r++) {
        const double weight = p->factor * row_weight(&p->rows, r);
        double slope;
        sum += weight * loss_row_smooth(p->loss, p->rows.y[r], facts_at(&p->rows, r, w).s, mu, &slope);
        if (g && slope != 0)
            add_at(&p->rows, r, weight * slope, g);
    }
    return sum;
}

/* With a smoothing interval of length 0 the loss itself is used. */
static double rows_subgradient(const rows_problem *p, const double *w, double *g)
{
    return smooth_loss(p, 0, w, g);
}

static void linearized_prox(const rows_problem *p, const double *v, double sigma, double mu, double *w)
{
    enum { DOUBLINGS = 200 };
    const size_t M = p->M;
    double *g = p->scratch, *next = p->scratch + M;
    const double value = smooth_loss(p, mu, w, g);
    double eta = *p->eta / 2;
    for (int i = 0; i < DOUBLINGS; i++) {
        for (size_t m = 0; m < M; m++)
            next[m] = (eta * w[m] + sigma * v[m] - g[m]) / (eta + sigma);
        clip_to(p, next, next);
        double along = 0;
        for (size_t m = 0; m < M; m++)
            along += g[m] * (next[m] - w[m]);
        const double d2 = distance2(M, next, w), bound = value + along + eta / 2 * d2;
        if (smooth_loss(p, mu, next, NULL) <= bound + 1e-12 * fabs(value) || d2 == 0)
            break;
        eta = eta > 0 ? 2 * eta : 1e-3 * sigma;
    }
    *p->eta = eta;
    memcpy(w, next, M * sizeof *w);
}

/* w: on entry the last w. mu: the smoothing of the linearised method. anchor: NULL, or the point at which phase
 * retrieval is majorised. */
static void rows_prox(const rows_problem *p, const double *anchor, const double *v, double sigma, double mu, double *w)
{
    if (p->solver->method == ROWS_LINEARIZED) {
        linearized_prox(p, v, sigma, mu, w);
    } else if (p->own) {
        const hfsad_client client = rows_client(p);
        p->own->prox(p->own->context, &client, v, sigma, w);
    } else if (p->rows.count == 1 && !(p->pull > 0)) {
        single_row_prox(p, anchor, v, sigma, w);
    } else if (p->squared) {
        squared_prox(p->squared, &p->rows, v, sigma, w, p->scratch);
    } else {
        exact_prox(p, anchor, v, sigma, w);
    }
}
