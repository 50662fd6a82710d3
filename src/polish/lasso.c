#include "polish/lasso.h"

#include "base/alloc.h"
#include "math/dot.h"
#include "polish/triangle.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef enum { AT_ZERO, FREE, AT_BOX } place;

struct lasso {
    size_t M, n_free;
    bool factored; /* the factor belongs to the free coordinates, with this ridge */
    double factor_of_ridge;
    unsigned char *place, *before;
    size_t *index;  /* indices of the free coordinates */
    double *factor; /* triangle of the free coordinates */
    double *room;
    double *target, *slope, *sign; /* target: for the free coordinates, in the order of index */
};

lasso *lasso_create(size_t M, bool diagonal)
{
    lasso *l = alloc_zero(1, sizeof *l);
    if (!l || diagonal)
        return l;
    l->M = M;
    l->place = alloc_zero(2 * M, 1);
    l->index = alloc_zero(M, sizeof *l->index);
    l->room = alloc_zero(M * (M + 1) / 2 + 3 * M, sizeof *l->room);
    if (!l->place || !l->index || !l->room) {
        lasso_free(l);
        return NULL;
    }
    l->before = l->place + M;
    l->target = l->room;
    l->slope = l->target + M;
    l->sign = l->slope + M;
    l->factor = l->sign + M;
    return l;
}

void lasso_free(lasso *l)
{
    if (!l)
        return;
    free(l->place);
    free(l->index);
    free(l->room);
    free(l);
}

static double entry(const lasso_problem *p, size_t i, size_t j)
{
    return i >= j ? p->G[i * (i + 1) / 2 + j] : p->G[j * (j + 1) / 2 + i];
}

static double diagonal_at(const lasso_problem *p, size_t m)
{
    return p->diagonal ? p->G[m] : entry(p, m, m);
}

/* The derivative of l1 jumps at 0. */
static bool is_kinked(const lasso_problem *p, size_t m)
{
    return p->l1[m] > 0 || m < p->positive;
}

static double shrunk(const lasso_problem *p, size_t m, double pull)
{
    const double size = m < p->positive ? pull : fabs(pull);
    const double rest = fmax(size - p->factor * p->l1[m], 0) / (diagonal_at(p, m) + p->factor * p->ridge[m]);
    return copysign(fmin(rest, p->box[m]), pull);
}

/* The derivative without l1. */
static void slopes(lasso *l, const lasso_problem *p, const double *w)
{
    triangle_product(l->M, p->G, w, l->slope);
    for (size_t m = 0; m < l->M; m++)
        l->slope[m] += p->factor * p->ridge[m] * w[m] - p->b[m];
}

/* One coordinate after the other: not exact, but it finds most active constraints. */
static void descend(lasso *l, const lasso_problem *p, double *w)
{
    enum { SWEEPS = 20 };
    slopes(l, p, w);
    for (int sweep = 0; sweep < SWEEPS; sweep++)
        for (size_t m = 0; m < l->M; m++) {
            const double bend = diagonal_at(p, m) + p->factor * p->ridge[m];
            const double next = shrunk(p, m, bend * w[m] - l->slope[m]), step = next - w[m];
            if (step == 0)
                continue;
            w[m] = next;
            l->slope[m] += p->factor * p->ridge[m] * step;
            for (size_t k = 0; k < l->M; k++)
                l->slope[k] += entry(p, m, k) * step;
        }
}

static void take_places(lasso *l, const lasso_problem *p, const double *w)
{
    for (size_t m = 0; m < l->M; m++) {
        const bool kinked = is_kinked(p, m);
        l->place[m] = fabs(w[m]) >= p->box[m] ? AT_BOX : kinked && w[m] == 0 ? AT_ZERO : FREE;
        l->sign[m] = !kinked || w[m] == 0 ? 0 : copysign(1, w[m]);
    }
}

static void factorise(lasso *l, const lasso_problem *p)
{
    if (l->factored && l->factor_of_ridge == p->factor && memcmp(l->place, l->before, l->M) == 0)
        return;
    double *at = l->factor;
    l->n_free = 0;
    for (size_t m = 0; m < l->M; m++)
        if (l->place[m] == FREE) {
            l->index[l->n_free++] = m;
            for (size_t k = 0; k < l->n_free; k++)
                *at++ = entry(p, m, l->index[k]);
            at[-1] += p->factor * p->ridge[m];
        }
    triangle_factorise(l->n_free, l->factor);
    memcpy(l->before, l->place, l->M);
    l->factored = true;
    l->factor_of_ridge = p->factor;
}

/* The target of the free coordinates with their present signs: w minus the solution of the factored system for the
 * slope. */
static void aim(lasso *l, const lasso_problem *p, const double *w)
{
    factorise(l, p);
    slopes(l, p, w);
    for (size_t i = 0; i < l->n_free; i++) {
        const size_t m = l->index[i];
        l->target[i] = -l->slope[m] - p->factor * p->l1[m] * l->sign[m];
    }
    triangle_solve(l->n_free, l->factor, l->target);
}

/* Moves until a coordinate reaches 0 or its box; false: it stopped there, and that coordinate is no longer free. */
static bool go(lasso *l, const lasso_problem *p, double *w)
{
    double step = 1;
    size_t stops = SIZE_MAX;
    place where = FREE;
    for (size_t i = 0; i < l->n_free; i++) {
        const size_t m = l->index[i];
        const double d = l->target[i], to = w[m] + d;
        double at = 1;
        place next = FREE;
        if (fabs(to) > p->box[m]) {
            at = fmax((p->box[m] - copysign(1, d) * w[m]) / fabs(d), 0);
            next = AT_BOX;
        }
        if (l->sign[m] != 0 && to * l->sign[m] < 0) {
            at = -w[m] / d;
            next = AT_ZERO;
        }
        if (next != FREE && at < step) {
            step = at;
            stops = m;
            where = next;
        }
    }
    for (size_t i = 0; i < l->n_free; i++)
        w[l->index[i]] += step * l->target[i];
    if (stops == SIZE_MAX)
        return true;
    l->place[stops] = (unsigned char)where;
    w[stops] = where == AT_ZERO ? 0 : copysign(p->box[stops], w[stops]);
    l->sign[stops] = where == AT_ZERO || !is_kinked(p, stops) ? 0 : copysign(1, w[stops]);
    return false;
}

/* The gain of freeing a coordinate, in units of that coordinate. */
static double pull_of(const lasso *l, const lasso_problem *p, const double *w, size_t m)
{
    const double l1 = p->factor * p->l1[m], unit = sqrt(diagonal_at(p, m) + p->factor * p->ridge[m]);
    if (l->place[m] == FREE)
        return 0;
    const double inward = copysign(1, w[m]) * l->slope[m] + l1; /* at its box: the derivative outward */
    const double fall = m < p->positive ? -l->slope[m] : fabs(l->slope[m]);
    const double gain = l->place[m] == AT_ZERO ? fall - l1 : inward;
    return unit > 0 ? gain / unit : 0;
}

/* Frees the coordinates with the largest gain; false: none has a gain. */
static bool release(lasso *l, const lasso_problem *p, const double *w, bool several)
{
    double most = 0, size = 0;
    slopes(l, p, w);
    for (size_t m = 0; m < l->M; m++) {
        const double unit = sqrt(diagonal_at(p, m) + p->factor * p->ridge[m]);
        most = fmax(most, pull_of(l, p, w, m));
        if (unit > 0)
            size = fmax(size, fmax(fabs(p->b[m]), p->factor * p->l1[m]) / unit);
    }
    if (!(most > 1e-12 * size))
        return false;
    bool any = false;
    for (size_t m = 0; m < l->M && (several || !any); m++)
        if (pull_of(l, p, w, m) >= (several ? 0.5 : 1) * most) {
            if (is_kinked(p, m) && l->place[m] == AT_ZERO)
                l->sign[m] = -copysign(1, l->slope[m]);
            l->place[m] = FREE;
            any = true;
        }
    return true;
}

void lasso_solve(lasso *l, const lasso_problem *p, double *w)
{
    if (p->diagonal) {
        for (size_t m = 0; m < p->M; m++)
            w[m] = shrunk(p, m, p->b[m]);
        return;
    }
    const size_t most = 4 * l->M + 50;
    take_places(l, p, w);
    bool descended = false;
    for (size_t i = 0; i < most; i++) {
        aim(l, p, w);
        const bool whole = go(l, p, w);
        if (whole && !release(l, p, w, i < 20))
            return;
        if (!descended) {
            descend(l, p, w);
            take_places(l, p, w);
            descended = true;
        }
    }
}
