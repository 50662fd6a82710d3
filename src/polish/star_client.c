#include "polish/star_client.h"

#include "base/alloc.h"
#include "math/dot.h"
#include "math/losses.h"
#include "polish/triangle.h"

#include <stdlib.h>
#include <string.h>

struct star_client {
    size_t M, count;
    bool diagonal, begun;
    double sigma;    /* of the last round */
    double *B;       /* triangle, or diagonal */
    double *reach;   /* count: x' B^-1 x */
    double *solved;  /* count vectors B^-1 x; NULL: the metric is diagonal */
    double *inverse; /* of the diagonal */
    double *s, *Bs;  /* and below: v and B v of several vectors */
    double *anchor, *Banchor;
    double *dual, *Bdual; /* sigma (s - z) of the last restart */
    double *z, *Bz;
    double *u; /* sum a B^-1 x */
    double *x, *v;
};

static double weight_of(const polish_client *o, size_t r)
{
    return o->factor * row_weight(&o->rows, r);
}

static bool is_diagonal(polish_kind kind)
{
    return kind == POLISH_METRIC_DIAGONAL;
}

void star_client_free(star_client *c)
{
    if (!c)
        return;
    free(c->B);
    free(c->solved);
    free(c->s);
    free(c);
}

static star_client *make(const polish_client *o, bool diagonal)
{
    enum { VECTORS = 12 };
    const size_t M = o->M, count = o->rows.count, metric = diagonal ? M : M * (M + 1) / 2;
    star_client *c = alloc_zero(1, sizeof *c);
    if (!c)
        return NULL;
    c->M = M;
    c->count = count;
    c->diagonal = diagonal;
    c->B = alloc_zero(metric + count, sizeof *c->B);
    c->solved = diagonal ? NULL : alloc_zero(count * M, sizeof *c->solved);
    c->s = alloc_zero(VECTORS * M, sizeof *c->s);
    if (!c->B || (!c->solved && !diagonal) || !c->s) {
        star_client_free(c);
        return NULL;
    }
    double **const vectors[VECTORS] = {&c->s, &c->Bs, &c->anchor, &c->Banchor, &c->dual, &c->Bdual,
                                       &c->z, &c->Bz, &c->u,      &c->x,       &c->v,    &c->inverse};
    for (size_t i = 1; i < VECTORS; i++)
        *vectors[i] = c->s + i * M;
    c->reach = c->B + metric;
    return c;
}

/* G_j first, then the share of what all have. tiny: of the diagonal. */
static void set_metric(star_client *c, const polish_client *o, const double *G, double share, double tiny)
{
    const size_t M = c->M;
    for (size_t r = 0; r < c->count; r++) {
        const double weight = 0.75 * weight_of(o, r);
        if (!(weight > 0))
            continue;
        if (c->diagonal)
            row_add_squares(&o->rows, r, weight, c->B);
        else
            polish_add_square(&o->rows, r, weight, c->B);
    }
    for (size_t m = 0; m < M; m++) {
        const size_t line = c->diagonal ? m : m * (m + 1) / 2, width = c->diagonal ? 1 : m + 1;
        for (size_t k = 0; k < width; k++)
            c->B[line + k] += share * 0.25 * G[line + k];
        c->B[line + width - 1] += share * (G[line + width - 1] > 0 ? tiny * G[line + width - 1] : 1);
    }
}

/* B^-1 x of every row, by a factor that is needed only here. */
static bool solve_rows(star_client *c, const polish_client *o)
{
    const size_t M = c->M, size = M * (M + 1) / 2;
    double *factor = alloc_zero(size, sizeof *factor);
    if (!factor)
        return false;
    memcpy(factor, c->B, size * sizeof *factor);
    triangle_factorise(M, factor);
    for (size_t r = 0; r < c->count; r++) {
        double *to = c->solved + r * M;
        row_spread(&o->rows, r, M, to);
        triangle_solve(M, factor, to);
        c->reach[r] = row_dot(&o->rows, r, to);
    }
    free(factor);
    return true;
}

static void divide_rows(star_client *c, const polish_client *o)
{
    for (size_t m = 0; m < c->M; m++)
        c->inverse[m] = 1 / c->B[m];
    for (size_t r = 0; r < c->count; r++) {
        memset(c->x, 0, c->M * sizeof *c->x);
        row_add_scaled(&o->rows, r, 1, c->inverse, c->x);
        c->reach[r] = row_dot(&o->rows, r, c->x);
    }
}

void star_client_begin(const polish_client *o, const polish_question *q, double *answer)
{
    double weight = 0;
    for (size_t r = 0; r < o->rows.count; r++)
        weight += weight_of(o, r);
    star_client_free(*o->star);
    star_client *c = *o->star = weight > 0 ? make(o, is_diagonal(q->kind)) : NULL;
    answer[0] = c || !(weight > 0);
    answer[1] = weight * loss_kind_of(o->loss)->likely_bend(o->loss, q->kappa);
    if (!c)
        return;
    set_metric(c, o, q->vector, weight / q->beta, q->step);
    if (c->diagonal)
        divide_rows(c, o);
    else if (!solve_rows(c, o)) {
        star_client_free(c);
        *o->star = NULL;
        answer[0] = 0;
    }
}

/* ---- a round ---- */

static void metric_times(const star_client *c, const double *v, double *product)
{
    if (c->diagonal)
        for (size_t m = 0; m < c->M; m++)
            product[m] = c->B[m] * v[m];
    else
        triangle_product(c->M, c->B, v, product);
}

/* s + ratio (from - s) */
static void draw(size_t M, double ratio, const double *from, double *s)
{
    for (size_t m = 0; m < M; m++)
        s[m] = from[m] + ratio * (s[m] - from[m]);
}

/* A restart keeps sigma B (s - z), the client's part of the multipliers, also if sigma changes. */
static void begin_round(star_client *c, const polish_question *q)
{
    const size_t M = c->M, bytes = M * sizeof(double);
    const bool restarts = !(q->step > 0);
    if (c->begun && restarts && c->sigma != q->kappa) {
        draw(M, c->sigma / q->kappa, c->z, c->s);
        draw(M, c->sigma / q->kappa, c->Bz, c->Bs);
    }
    c->sigma = q->kappa;
    memcpy(c->z, q->vector, bytes);
    metric_times(c, c->z, c->Bz);
    if (!c->begun) {
        memcpy(c->s, c->z, bytes);
        memcpy(c->Bs, c->Bz, bytes);
    }
    c->begun = true;
    if (!restarts)
        return;
    memcpy(c->anchor, c->s, bytes);
    memcpy(c->Banchor, c->Bs, bytes);
    for (size_t m = 0; m < M; m++) {
        c->dual[m] = c->sigma * (c->s[m] - c->z[m]);
        c->Bdual[m] = c->sigma * (c->Bs[m] - c->Bz[m]);
    }
}

static void add_solved(const star_client *c, const polish_client *o, size_t r, double a, double *to)
{
    if (c->diagonal) {
        row_add_scaled(&o->rows, r, a, c->inverse, to);
        return;
    }
    const double *solved = c->solved + r * c->M;
    for (size_t m = 0; m < c->M; m++)
        to[m] += a * solved[m];
}

/* Every row once, forwards and backwards in alternation; returns how far x moves, squared, in B. */
static double sweep(star_client *c, const polish_client *o, size_t number)
{
    double moved = 0;
    for (size_t i = 0; i < c->count; i++) {
        const size_t r = number % 2 ? c->count - 1 - i : i;
        const double weight = weight_of(o, r), lift = c->reach[r] / c->sigma;
        if (!(weight > 0) || !(lift > 0))
            continue;
        const double now = row_dot(&o->rows, r, c->x), before = o->multiplier[r];
        const double a = weight * loss_row_slope(o->loss, o->rows.y[r], now + before * lift, weight * lift, now);
        const double step = (before - a) / c->sigma;
        if (step == 0)
            continue;
        o->multiplier[r] = a;
        add_solved(c, o, r, step, c->x);
        moved += step * step * c->reach[r];
    }
    return moved;
}

static void ascend(star_client *c, const polish_client *o, const polish_question *q)
{
    enum { SWEEPS = 200, FIRST = 10 };
    const size_t M = c->M, most = q->beta > 0 ? SWEEPS : FIRST;
    if (!(q->step > 0)) { /* now and then from the beginning, against rounding */
        memset(c->u, 0, M * sizeof *c->u);
        for (size_t r = 0; r < c->count; r++)
            if (o->multiplier[r] != 0)
                add_solved(c, o, r, o->multiplier[r], c->u);
    }
    for (size_t m = 0; m < M; m++) {
        c->v[m] = 2 * c->z[m] - c->s[m];
        c->x[m] = c->v[m] - c->u[m] / c->sigma;
    }
    for (size_t i = 0; i < most; i++)
        if (sweep(c, o, i) <= q->beta * q->beta || c->count == 1)
            break;
    for (size_t m = 0; m < M; m++)
        c->u[m] = c->sigma * (c->v[m] - c->x[m]);
}

/* What the rows say at z with their slopes. */
static void add_rows(const star_client *c, const polish_client *o, double *answer)
{
    double *numbers = answer + c->M;
    for (size_t r = 0; r < c->count; r++) {
        const double weight = weight_of(o, r), y = o->rows.y[r];
        if (!(weight > 0))
            continue;
        const double s = row_dot(&o->rows, r, c->z), a = o->multiplier[r];
        row_add(&o->rows, r, a, answer);
        numbers[STAR_LOSS] += weight * hfsad_loss_value(o->loss, y, s);
        numbers[STAR_GAP] += polish_gap(o->loss, weight, y, s, a);
    }
}

void star_client_round(const polish_client *o, const polish_question *q, double *answer)
{
    star_client *c = *o->star;
    if (!c)
        return;
    const size_t M = c->M;
    double *numbers = answer + M;
    begin_round(c, q);
    ascend(c, o, q);
    add_rows(c, o, answer);
    const double old = 1 / (q->step + 2), new = (q->step + 1) / (q->step + 2);
    for (size_t m = 0; m < M; m++) {
        const double away = c->x[m] - c->z[m], Baway = c->Bz[m] - c->Bs[m] - answer[m] / c->sigma;
        numbers[STAR_RESIDUAL] += away * Baway;
        c->s[m] = old * c->anchor[m] + new *(c->s[m] + 2 * away);
        c->Bs[m] = old * c->Banchor[m] + new *(c->Bs[m] + 2 * Baway);
        numbers[STAR_MOVED] +=
            (c->sigma * (c->s[m] - c->z[m]) - c->dual[m]) * (c->sigma * (c->Bs[m] - c->Bz[m]) - c->Bdual[m]);
    }
}
