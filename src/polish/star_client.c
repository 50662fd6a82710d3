#include "polish/star_client.h"

#include "base/alloc.h"
#include "core/kernels.h"
#include "math/losses.h"
#include "polish/score_answers.h"
#include "polish/triangle.h"

#include <stdlib.h>
#include <string.h>

/*
 * With B = L L' everything is in the client's own coordinates, u = L' x, in which B is the identity: a row is
 * white = L^-1 x_r, so that <x_r, x> = <white, u>, and its slope moves u by -white / sigma. A diagonal metric keeps x
 * and the rows as they are.
 */
struct star_client {
    size_t M, count;
    size_t level; /* of the cloud's coordinates, the one that is the client's last, if the client does not have all of
                     them */
    bool diagonal, begun;
    double sigma;    /* sigma of the last round */
    double *B;       /* triangle, and then L: line by line with M numbers each, 0 right of the diagonal; or diagonal */
    double *reach;   /* count: x' B^-1 x */
    double *white;   /* count vectors; NULL: the metric is diagonal */
    double *inverse; /* of the diagonal */
    double *s, *anchor, *z;
    double *dual; /* sigma (s - z) of the last restart */
    double *pull; /* sum of a white */
    double *u, *v;
    double *narrow; /* the cloud's vector in the client's coordinates */
    /* for several scores (score_answers.c): a star for each, and nothing else */
    star_client **parts;
    double *room;
};

static double weight_of(const polish_client *o, size_t r)
{
    return o->factor * row_weight(&o->rows, r);
}

/* If nodes have their own intercepts, a client has the coefficients and one intercept, its last coordinate. */
static bool is_narrow(const polish_client *o)
{
    return o->rows.constant != 0 && o->M > o->rows.F + 1;
}

static polish_client narrowed(const polish_client *o)
{
    polish_client one = *o;
    if (is_narrow(o)) {
        one.M = o->rows.F + 1;
        one.rows.beyond = 0;
    }
    return one;
}

void star_client_free(star_client *c)
{
    if (!c)
        return;
    for (size_t k = 0; c->parts && k < c->count; k++)
        star_client_free(c->parts[k]);
    free(c->parts);
    free(c->room);
    free(c->B);
    free(c->white);
    free(c->s);
    free(c);
}

star_client *star_client_split(star_client **all, size_t K, size_t room)
{
    if (*all)
        return *all;
    star_client *c = alloc_zero(1, sizeof *c);
    if (!c)
        return NULL;
    c->count = K;
    c->parts = alloc_zero(K, sizeof(star_client *));
    c->room = alloc_zero(room, sizeof *c->room);
    if (!c->parts || !c->room) {
        star_client_free(c);
        return NULL;
    }
    return *all = c;
}

star_client **star_client_part(star_client *all, size_t k)
{
    return &all->parts[k];
}

double *star_client_room(star_client *all)
{
    return all->room;
}

static star_client *make(const polish_client *o, bool diagonal)
{
    enum { VECTORS = 9 };
    const size_t M = o->M, count = o->rows.count, metric = diagonal ? M : M * M;
    star_client *c = alloc_zero(1, sizeof *c);
    if (!c)
        return NULL;
    c->M = M;
    c->count = count;
    c->diagonal = diagonal;
    c->B = alloc_zero(metric + count, sizeof *c->B);
    c->white = diagonal ? NULL : alloc_zero(count * M, sizeof *c->white);
    c->s = alloc_zero(VECTORS * M, sizeof *c->s);
    if (!c->B || (!c->white && !diagonal) || !c->s) {
        star_client_free(c);
        return NULL;
    }
    double **const vectors[VECTORS] = {&c->s, &c->anchor, &c->z,       &c->dual,  &c->pull,
                                       &c->u, &c->v,      &c->inverse, &c->narrow};
    for (size_t i = 1; i < VECTORS; i++)
        *vectors[i] = c->s + i * M;
    c->reach = c->B + metric;
    return c;
}

/* G_j; if the metric is not diagonal, four rows at a time, which also stores the rows in `white`. */
static void add_own(star_client *c, const polish_client *o)
{
    const size_t M = c->M;
    size_t done = 0;
    if (c->diagonal) {
        for (size_t r = 0; r < c->count; r++)
            row_add_squares(&o->rows, r, weight_of(o, r), c->B);
        return;
    }
    for (size_t r = 0; r < c->count; r++)
        row_spread(&o->rows, r, M, c->white + r * M);
    for (; done + 4 <= c->count; done += 4) {
        const double *four = c->white + done * M;
        for (size_t m = 0; m < M; m++) {
            double factors[4];
            for (size_t k = 0; k < 4; k++)
                factors[k] = weight_of(o, done + k) * four[k * M + m];
            kernels()->add4(m + 1, factors, four, M, c->B + m * (m + 1) / 2);
        }
    }
    for (; done < c->count; done++)
        for (size_t m = 0; m < M; m++)
            kernels()->add_scaled(m + 1, weight_of(o, done) * c->white[done * M + m], c->white + done * M,
                                  c->B + m * (m + 1) / 2);
}

/* An element of the cloud's metric in the client's coordinates; k is not above m. */
static size_t place(const star_client *c, size_t m, size_t k)
{
    const size_t last = c->M - 1, line = m == last ? c->level : m;
    if (c->diagonal)
        return line;
    return line * (line + 1) / 2 + (k == last ? c->level : k);
}

bool star_client_gram(const polish_client *all, bool diagonal, double *answer)
{
    const polish_client one = narrowed(all), *o = &one;
    const size_t size = diagonal ? all->M : all->M * (all->M + 1) / 2;
    star_client_free(*o->star);
    star_client *c = *o->star = make(o, diagonal);
    for (size_t r = 0; r < o->rows.count; r++)
        answer[size] += weight_of(o, r);
    if (!c)
        return false;
    c->level = is_narrow(all) ? rows_level(&all->rows) : c->M - 1;
    add_own(c, o);
    for (size_t m = 0, at = 0; m < c->M; m++)
        for (size_t k = diagonal ? m : 0; k <= m; k++)
            answer[place(c, m, k)] = c->B[at++];
    return true;
}

/* From G_j to B_j. tiny: of the diagonal. */
static void set_metric(star_client *c, const double *G, double share, double tiny)
{
    for (size_t m = 0; m < c->M; m++) {
        const size_t line = c->diagonal ? m : m * (m + 1) / 2, width = c->diagonal ? 1 : m + 1;
        for (size_t k = 0; k < width; k++)
            c->B[line + k] = 0.75 * c->B[line + k] + share * 0.25 * G[line + k];
        c->B[line + width - 1] += share * (G[line + width - 1] > 0 ? tiny * G[line + width - 1] : 1);
    }
}

/* The same with an intercept that only some clients have: they share its line of G by their weights, and all of them
 * share the scatter S around it, which G has in place of its other lines; 4 D is on its diagonal. */
static void set_own_metric(star_client *c, const double *G, double share, double tiny)
{
    const size_t last = c->M - 1;
    const double *line = G + place(c, last, 0), whole = G[place(c, last, last)];
    const double part = c->B[last * (last + 1) / 2 + last] / whole;
    for (size_t m = 0, at = 0; m < last; m++)
        for (size_t k = 0; k <= m; k++, at++)
            c->B[at] = 0.75 * c->B[at] + 0.25 * (share * G[at] + part * line[m] * line[k] / whole);
    double *own = c->B + last * (last + 1) / 2;
    for (size_t k = 0; k < last; k++)
        own[k] = 0.75 * own[k] + 0.25 * part * line[k];
    own[last] = (1 + tiny) * own[last];
}

/* The same, diagonal. */
static void set_own_diagonal(star_client *c, const double *G, double share, double tiny)
{
    const size_t last = c->M - 1;
    const double own = c->B[last];
    set_metric(c, G, share, tiny);
    c->B[last] = (1 + tiny) * own;
}

static void set_rows(star_client *c, const polish_client *o)
{
    const size_t M = c->M;
    if (!c->diagonal) {
        triangle_factorise_fast(M, c->B);
        triangle_forward_many(M, c->B, c->count, c->white);
        triangle_spread(M, c->B);
    }
    for (size_t m = 0; c->diagonal && m < M; m++)
        c->inverse[m] = 1 / c->B[m];
    for (size_t r = 0; r < c->count; r++) {
        if (c->diagonal) {
            memset(c->u, 0, M * sizeof *c->u);
            row_add_scaled(&o->rows, r, 1, c->inverse, c->u);
        }
        c->reach[r] = c->diagonal ? row_dot(&o->rows, r, c->u) : kernels()->dot(M, c->white + r * M, c->white + r * M);
    }
}

void star_client_begin(const polish_client *all, const polish_question *q, double *answer)
{
    const polish_client one = narrowed(all), *o = &one;
    double weight = 0;
    for (size_t r = 0; r < o->rows.count; r++)
        weight += weight_of(o, r);
    answer[1] = weight * loss_kind_of(o->loss)->likely_bend(o->loss, q->kappa);
    if (!(weight > 0)) { /* no contribution in any round */
        star_client_free(*o->star);
        *o->star = NULL;
        answer[0] = 1;
        return;
    }
    answer[0] = *o->star != NULL;
    if (*o->star) {
        (!is_narrow(all)        ? set_metric
         : (*o->star)->diagonal ? set_own_diagonal
                                : set_own_metric)(*o->star, q->vector, weight / q->beta, q->step);
        set_rows(*o->star, o);
    }
}

/* ---- a round ---- */

static void to_own(const star_client *c, const double *v, double *u)
{
    if (c->level != c->M - 1) {
        memcpy(c->narrow, v, (c->M - 1) * sizeof *v);
        c->narrow[c->M - 1] = v[c->level];
        v = c->narrow;
    }
    if (c->diagonal)
        memcpy(u, v, c->M * sizeof *u);
    else
        square_upper(c->M, c->B, v, u);
}

/* s + ratio (from - s) */
static void draw(size_t M, double ratio, const double *from, double *s)
{
    for (size_t m = 0; m < M; m++)
        s[m] = from[m] + ratio * (s[m] - from[m]);
}

/* A restart keeps sigma (s - z), the client's part of the multipliers, also if sigma changes. */
static void begin_round(star_client *c, const polish_question *q)
{
    const size_t M = c->M, bytes = M * sizeof(double);
    const bool restarts = !(q->step > 0);
    if (c->begun && restarts && c->sigma != q->kappa)
        draw(M, c->sigma / q->kappa, c->z, c->s);
    c->sigma = q->kappa;
    to_own(c, q->vector, c->z);
    if (!c->begun)
        memcpy(c->s, c->z, bytes);
    c->begun = true;
    if (!restarts)
        return;
    memcpy(c->anchor, c->s, bytes);
    for (size_t m = 0; m < M; m++)
        c->dual[m] = c->sigma * (c->s[m] - c->z[m]);
}

/* <x_r, x> for x by its u. */
static double row_at(const star_client *c, const polish_client *o, size_t r, const double *u)
{
    return c->diagonal ? row_dot(&o->rows, r, u) : kernels()->dot(c->M, c->white + r * c->M, u);
}

/* u += a B^-1 x_r */
static void add_row(const star_client *c, const polish_client *o, size_t r, double a, double *u)
{
    if (c->diagonal)
        row_add_scaled(&o->rows, r, a, c->inverse, u);
    else
        kernels()->add_scaled(c->M, a, c->white + r * c->M, u);
}

/* Visits every row once, in alternating directions; returns the squared distance, in B, by which x moves. */
static double sweep(star_client *c, const polish_client *o, size_t number)
{
    double moved = 0;
    for (size_t i = 0; i < c->count; i++) {
        const size_t r = number % 2 ? c->count - 1 - i : i;
        const double weight = weight_of(o, r), lift = c->reach[r] / c->sigma;
        if (!(weight > 0) || !(lift > 0))
            continue;
        const double now = row_at(c, o, r, c->u), before = o->multiplier[r];
        const double a = weight * loss_row_slope(o->loss, o->rows.y[r], now + before * lift, weight * lift, now);
        const double step = (before - a) / c->sigma;
        if (step == 0)
            continue;
        o->multiplier[r] = a;
        add_row(c, o, r, step, c->u);
        moved += step * step * c->reach[r];
    }
    return moved;
}

/* From the slopes of the last round; leaves u. */
static void ascend(star_client *c, const polish_client *o, const polish_question *q)
{
    enum { SWEEPS = 200, FIRST = 10 };
    const size_t M = c->M, most = q->beta > 0 ? SWEEPS : FIRST;
    if (!(q->step > 0)) { /* recomputed now and then, against rounding */
        memset(c->pull, 0, M * sizeof *c->pull);
        for (size_t r = 0; r < c->count; r++)
            if (o->multiplier[r] != 0)
                add_row(c, o, r, o->multiplier[r], c->pull);
    }
    for (size_t m = 0; m < M; m++) {
        c->v[m] = 2 * c->z[m] - c->s[m];
        c->u[m] = c->v[m] - c->pull[m] / c->sigma;
    }
    for (size_t i = 0; i < most; i++)
        if (sweep(c, o, i) <= q->beta * q->beta || c->count == 1)
            break;
    for (size_t m = 0; m < M; m++)
        c->pull[m] = c->sigma * (c->v[m] - c->u[m]);
}

void star_client_resume(const polish_client *all, const double *w, double sigma, double *answer)
{
    const polish_client one = narrowed(all), *o = &one;
    star_client *c = *o->star;
    memset(answer, 0, all->M * sizeof *answer);
    if (!c)
        return;
    if (o->scores) {
        scores_resume(all, w, sigma, answer);
        return;
    }
    for (size_t r = 0; r < c->count && loss_kind_of(o->loss)->bend; r++)
        o->multiplier[r] = weight_of(o, r) * hfsad_loss_slope(o->loss, o->rows.y[r], row_dot(&all->rows, r, w));
    for (size_t r = 0; r < c->count; r++)
        row_add(&all->rows, r, o->multiplier[r], answer);
    to_own(c, w, c->z);
    memset(c->u, 0, c->M * sizeof *c->u);
    for (size_t r = 0; r < c->count; r++)
        add_row(c, o, r, o->multiplier[r], c->u);
    for (size_t m = 0; m < c->M; m++)
        c->s[m] = c->z[m] - c->u[m] / sigma;
    c->sigma = sigma;
    c->begun = true;
}

/* The rows' answer at z with their slopes: sum of a x, and numbers. */
static void add_rows(const star_client *c, const polish_client *o, double *answer, double *numbers)
{
    for (size_t r = 0; r < c->count; r++) {
        const double weight = weight_of(o, r), y = o->rows.y[r];
        if (!(weight > 0))
            continue;
        const double s = row_at(c, o, r, c->z), a = o->multiplier[r];
        numbers[STAR_LOSS] += weight * hfsad_loss_value(o->loss, y, s);
        numbers[STAR_GAP] += polish_gap(o->loss, weight, y, s, a);
    }
    if (!c->diagonal)
        square_lower(c->M, c->B, c->pull, answer);
    for (size_t m = 0; c->diagonal && m < c->M; m++)
        answer[m] = c->B[m] * c->pull[m];
    if (c->level != c->M - 1) {
        answer[c->level] = answer[c->M - 1];
        answer[c->M - 1] = 0;
    }
}

void star_client_round(const polish_client *all, const polish_question *q, double *answer)
{
    const polish_client one = narrowed(all), *o = &one;
    star_client *c = *o->star;
    if (!c)
        return;
    const size_t M = c->M;
    double *numbers = answer + all->M;
    begin_round(c, q);
    ascend(c, o, q);
    add_rows(c, o, answer, numbers);
    const double old = 1 / (q->step + 2), new = (q->step + 1) / (q->step + 2);
    for (size_t m = 0; m < M; m++) {
        const double away = c->u[m] - c->z[m], metric = c->diagonal ? c->B[m] : 1;
        numbers[STAR_RESIDUAL] += metric * away * away;
        c->s[m] = old * c->anchor[m] + new *(c->s[m] + 2 * away);
        const double moved = c->sigma * (c->s[m] - c->z[m]) - c->dual[m];
        numbers[STAR_MOVED] += metric * moved * moved;
    }
}
