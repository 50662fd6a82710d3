/* The search of box.c, for the processor and for a device. The including file defines BOX_FN (how functions are
 * declared) and box_loss of a loss. A device has no majorants. */
#ifndef HFSAD_MATH_BOX_BODY_H
#define HFSAD_MATH_BOX_BODY_H

#include "math/box.h"
#include "math/losses.h"

/* An event: a coordinate becomes free, or reaches its other bound, as t grows past `at`. */
typedef struct {
    double at;
    double m; /* 2 * coordinate + (1 if it reaches a bound); a double, because events are stored as doubles */
} event;

/* A sum to which terms are added and from which they are removed again. It keeps the rounding error of each addition,
 * so that large terms do not destroy digits of small ones when they are removed. */
typedef struct {
    double high, low;
} exact_sum;

BOX_FN void sum_add(exact_sum *sum, double term)
{
    const double total = sum->high + term, back = total - sum->high;
    sum->low += (sum->high - (total - back)) + (term - back);
    sum->high = total;
}

BOX_FN double sum_value(const exact_sum *sum)
{
    return sum->high + sum->low;
}

BOX_FN bool later(event a, event b)
{
    return a.at > b.at || (!(b.at > a.at) && a.m > b.m);
}

/* Heap sort, because qsort may allocate. */
BOX_FN void sift(event *events, size_t root, size_t n)
{
    const event moving = events[root];
    for (size_t child = 2 * root + 1; child < n; child = 2 * root + 1) {
        if (child + 1 < n && later(events[child + 1], events[child]))
            child++;
        if (!later(events[child], moving))
            break;
        events[root] = events[child];
        root = child;
    }
    events[root] = moving;
}

BOX_FN void sort_events(event *events, size_t n)
{
    for (size_t i = n / 2; i-- > 0;)
        sift(events, i, n);
    for (size_t end = n; end-- > 1;) {
        const event last = events[0];
        events[0] = events[end];
        events[end] = last;
        sift(events, 0, end);
    }
}

BOX_FN double clip(double a, double bound)
{
    return a < -bound ? -bound : a > bound ? bound : a;
}

/* The state between two events. */
typedef struct {
    double s, n, cost; /* s_F, n_F, and C = sum over the fixed coordinates of (w - v)^2 */
} segment;

typedef struct {
    double t, value;
} answer;

BOX_FN void try_t(const scalar_loss *law, double sigma, segment g, double t, answer *best)
{
    const double value = box_loss(law->loss, law->y, g.s - g.n * t) + sigma / 2 * (g.n * t * t + g.cost);
    if (value < best->value)
        *best = (answer){t, value};
}

/* t of a convex loss if it lies in the segment: the slope at the minimiser of the scalar problem, divided by sigma. If
 * no coordinate is free, s is constant, and the smallest slope there is used. */
BOX_FN double convex_t(const scalar_loss *law, double sigma, segment g)
{
#if !defined(HFSAD_VEC_CUDA)
    if (law->anchor && g.n > 0)
        return majorant_row_slope(law->y, *law->anchor, g.s, g.n / sigma) / sigma;
    if (law->anchor)
        return majorant_least_slope(law->y, *law->anchor, g.s) / sigma;
#endif
    if (g.n > 0)
        return loss_row_slope(law->loss, law->y, g.s, g.n / sigma, g.s) / sigma;
    return loss_slope(law->loss, law->y, nextafter(g.s, -INFINITY)) / sigma;
}

/* The stationary t of phase retrieval's scalar problem (s, n), not clipped; returns their number. */
BOX_FN size_t stationary(const scalar_loss *law, double sigma, segment g, double t[4])
{
    if (!(g.n > 0))
        return 0;
    const size_t count = phase_stationary(law->y, g.s, 2 * g.n / sigma, t);
    for (size_t i = 0; i < count; i++)
        t[i] = (g.s - t[i]) / g.n;
    return count;
}

BOX_FN void try_segment(const scalar_loss *law, double sigma, segment g, double from, double to, answer *best)
{
    double t[4];
    const size_t count = stationary(law, sigma, g, t);
    for (size_t i = 0; i < count; i++)
        try_t(law, sigma, g, t[i] < from ? from : t[i] > to ? to : t[i], best);
    if (isfinite(from))
        try_t(law, sigma, g, from, best);
    if (isfinite(to))
        try_t(law, sigma, g, to, best);
}

typedef struct {
    exact_sum s, n, cost;
} running;

BOX_FN segment segment_of(const running *r)
{
    return (segment){sum_value(&r->s), fmax(sum_value(&r->n), 0), fmax(sum_value(&r->cost), 0)};
}

/* Coordinate m leaves `bound_m` for the interior (way 1), or reaches it (way -1). */
BOX_FN void move(running *r, double x, double v, double bound_m, double way)
{
    sum_add(&r->n, way * (x * x));
    sum_add(&r->s, way * (x * v));
    sum_add(&r->s, -way * (x * bound_m));
    sum_add(&r->cost, -way * ((bound_m - v) * (bound_m - v)));
}

BOX_FN double search_box(const scalar_loss *law, size_t M, size_t boxed, const double *x, const double *v, double sigma,
                         double *scratch)
{
    const double bound = law->loss->box;
    event *events = (event *)scratch;
    size_t n = 0;
    running sums = {{0, 0}, {0, 0}, {0, 0}}; /* at t = -infinity: every coordinate at the bound on x's side */
    for (size_t m = 0; m < boxed; m++) {
        const double far = x[m] > 0 ? bound : x[m] < 0 ? -bound : clip(v[m], bound);
        sum_add(&sums.s, x[m] * far);
        sum_add(&sums.cost, (far - v[m]) * (far - v[m]));
        if (x[m] == 0)
            continue;
        events[n++] = (event){(v[m] - far) / x[m], 2 * (double)m};
        events[n++] = (event){(v[m] + far) / x[m], 2 * (double)m + 1};
    }
    for (size_t m = boxed; m < M; m++) { /* free for every t */
        sum_add(&sums.s, x[m] * v[m]);
        sum_add(&sums.n, x[m] * x[m]);
    }
    sort_events(events, n);
    const bool convex = law->anchor || law->loss->kind != HFSAD_LOSS_PHASE_RETRIEVAL;
    answer best = {0, INFINITY};
    double from = -INFINITY;
    for (size_t i = 0; i < n; i++) {
        const segment g = segment_of(&sums);
        if (!convex) {
            try_segment(law, sigma, g, from, events[i].at, &best);
        } else {
            const double t = convex_t(law, sigma, g);
            if (t <= events[i].at)
                return fmax(t, from);
        }
        from = events[i].at;
        const size_t which = (size_t)events[i].m, m = which / 2;
        const bool leaves = which & 1;
        move(&sums, x[m], v[m], (x[m] > 0) != leaves ? bound : -bound, leaves ? -1 : 1);
    }
    if (convex)
        return fmax(convex_t(law, sigma, segment_of(&sums)), from);
    try_segment(law, sigma, segment_of(&sums), from, INFINITY, &best);
    return best.t;
}

#endif
