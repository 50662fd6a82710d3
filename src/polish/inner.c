/* One outer step's problem: envelopes of rows and coordinates plus the proximal term, piecewise smooth and convex. */
#include "polish/inner.h"

#include "math/dot.h"
#include "polish/choice.h"
#include "polish/triangle.h"

#include <math.h>
#include <string.h>

bool polish_ask(polish_state *s, polish_kind kind, const double *vector, const double *point)
{
    const choice *c = s->p->choice;
    const polish_question q = {kind, s->kappa, s->beta, vector, point, s->step, c ? s->M : 0};
    s->spent = s->result->exchanges + choice_spent(c) + s->reserve >= POLISH_EXCHANGES;
    if (s->gone || s->spent || !s->p->ask(s->p->context, &q, s->answer)) {
        s->gone = !s->spent;
        return false;
    }
    s->result->exchanges++;
    s->result->down += polish_down(kind, s->M);
    s->result->up += polish_length(kind, s->M);
    return true;
}

double coordinate_box(const polish_state *s, size_t m)
{
    return m < s->p->boxed ? s->p->box : INFINITY;
}

bool coordinate_is_positive(const polish_state *s, size_t m)
{
    return s->p->positive && m < s->p->boxed;
}

bool coordinate_exists(const polish_state *s, size_t m)
{
    return s->l1[m] > 0 || isfinite(coordinate_box(s, m)) || coordinate_is_positive(s, m);
}

/* l1 |w| in the box by its envelope: the prox is the shrunk point, clipped to the box. */
coordinate_part coordinate_at(const polish_state *s, size_t m, double w)
{
    if (!coordinate_exists(s, m))
        return (coordinate_part){0, 0, 0, w};
    const double rho = s->rho[m], a = s->multiplier[m], box = coordinate_box(s, m), l1 = s->l1[m];
    const double from = w + a / rho, size = coordinate_is_positive(s, m) ? from : fabs(from);
    const double shrunk = fmax(size - l1 / rho, 0);
    const double point = copysign(fmin(shrunk, box), from), next = rho * (from - point);
    return (coordinate_part){
        .value = l1 * fabs(point) + (next - a) * (next + a) / (2 * rho),
        .slope = next,
        .bend = shrunk > 0 && shrunk <= box ? 0 : rho,
        .point = point,
    };
}

bool polish_look(polish_state *s, const double *w)
{
    if (!polish_ask(s, POLISH_VALUE, w, NULL))
        return false;
    const double *numbers = s->answer + s->M;
    s->loss = numbers[POLISH_LOSS];
    s->model = numbers[POLISH_MODEL];
    s->gap = numbers[POLISH_GAP];
    s->active = numbers[POLISH_ACTIVE];
    s->value = numbers[POLISH_ENVELOPE];
    memcpy(s->slopes, s->answer, s->M * sizeof *s->slopes);
    for (size_t m = 0; m < s->M; m++) {
        const coordinate_part part = coordinate_at(s, m, w[m]);
        const double prox = s->theta * s->weight[m], away = w[m] - s->centre[m];
        s->value += part.value + s->ridge[m] / 2 * w[m] * w[m] - s->tilt[m] * w[m] + prox / 2 * away * away;
        s->g[m] = s->answer[m] + part.slope + s->ridge[m] * w[m] - s->tilt[m] + prox * away;
        s->bend[m] = part.bend + s->ridge[m] + prox;
        s->active += part.bend > 0;
    }
    return true;
}

double polish_size(const polish_state *s, const double *g)
{
    double most = 0;
    for (size_t m = 0; m < s->M; m++)
        most = fmax(most, fabs(g[m]) / s->scale[m]);
    return most;
}

/* The sum of the rows' squares never changes: few rows are in their kinks, but all of them have phase retrieval's
 * parabola. */
static bool know_squares(polish_state *s)
{
    if (!s->p->anchored || s->squares_known)
        return true;
    s->squares_known = polish_ask(s, POLISH_SQUARES, NULL, NULL);
    memcpy(s->squares, s->answer, s->M * (s->M + 1) / 2 * sizeof *s->squares);
    return s->squares_known;
}

static bool direct_direction(polish_state *s)
{
    if (!know_squares(s) || !polish_ask(s, POLISH_HESSIAN, NULL, NULL))
        return false;
    for (size_t i = 0; s->p->anchored && i < s->M * (s->M + 1) / 2; i++)
        s->answer[i] += 2 * s->beta * s->squares[i];
    for (size_t m = 0; m < s->M; m++) {
        s->answer[m * (m + 1) / 2 + m] += s->bend[m];
        s->direction[m] = -s->g[m];
    }
    (s->p->anchored ? triangle_factorise_fast : triangle_factorise)(s->M, s->answer);
    triangle_solve(s->M, s->answer, s->direction);
    return true;
}

/* Conjugate gradients, preconditioned by the diagonal, until the residual is a small part of the gradient. */
static bool iterative_direction(polish_state *s, double tolerance)
{
    const size_t M = s->M, most = 2 * M + 50;
    double *rest = s->work, *search = rest + M, *diagonal = search + M, *d = s->direction, *product = s->answer;
    if (!polish_ask(s, POLISH_DIAGONAL, NULL, NULL))
        return false;
    double size = 0;
    for (size_t m = 0; m < M; m++) {
        diagonal[m] = s->answer[m] + s->bend[m];
        d[m] = 0;
        rest[m] = -s->g[m];
        search[m] = rest[m] / diagonal[m];
        size += rest[m] * search[m];
    }
    const double enough = tolerance * tolerance * size;
    for (size_t i = 0; i < most && size > enough; i++) {
        if (!polish_ask(s, POLISH_PRODUCT, search, NULL))
            return false;
        for (size_t m = 0; m < M; m++)
            product[m] += s->bend[m] * search[m];
        const double curvature = dot8(M, search, product), step = size / curvature;
        if (!(curvature > 0))
            break;
        double next = 0;
        for (size_t m = 0; m < M; m++) {
            d[m] += step * search[m];
            rest[m] -= step * product[m];
            next += rest[m] * (rest[m] / diagonal[m]);
        }
        for (size_t m = 0; m < M; m++)
            search[m] = rest[m] / diagonal[m] + next / size * search[m];
        size = next;
    }
    return true;
}

bool polish_direction(polish_state *s)
{
    return s->direct ? direct_direction(s) : iterative_direction(s, 1e-6);
}

/* The derivative along the direction increases and is linear between kinks: finds its zero between two of
 * polish_steps. */
static double best_step(polish_state *s)
{
    double above = 0, before = 0;
    if (!polish_ask(s, POLISH_LINE, s->direction, s->w))
        return 0;
    for (size_t i = 0; i < POLISH_STEPS; i++) {
        const double step = polish_steps[i];
        double slope = s->answer[i];
        for (size_t m = 0; m < s->M; m++) {
            const double d = s->direction[m], w = s->w[m] + step * d;
            slope += d * (coordinate_at(s, m, w).slope + s->ridge[m] * w - s->tilt[m] +
                          s->theta * s->weight[m] * (w - s->centre[m]));
        }
        if (slope <= 0)
            return i == 0 ? step : step + (before - step) * slope / (slope - above);
        above = slope;
        before = step;
    }
    return before / 2;
}

/* A full step is tried first if the last step was full, and accepted if the value falls. Otherwise the derivatives
 * along the line decide, because rounding affects them far later than the value: while the derivative is not above 0,
 * the value falls. */
static bool search_line(polish_state *s)
{
    enum { TRIALS = 30 };
    const double start = s->value, slope = dot8(s->M, s->g, s->direction);
    if (!(slope < 0))
        return false;
    bool asked = !s->whole;
    double step = asked ? best_step(s) : 1;
    for (int i = 0; i < TRIALS && step > 0; i++) {
        for (size_t m = 0; m < s->M; m++)
            s->trial[m] = s->w[m] + step * s->direction[m];
        if (!polish_look(s, s->trial))
            return false;
        const double there = dot8(s->M, s->g, s->direction);
        if (asked ? there <= -0.3 * slope : s->value < start && fabs(there) <= -0.5 * slope) {
            memcpy(s->w, s->trial, s->M * sizeof *s->w);
            s->whole = fabs(step - 1) < 0.1;
            return true;
        }
        step = asked ? step * fmax(slope / (slope - there), 1e-3) : best_step(s);
        asked = true;
    }
    return false;
}

/* Also ends if only rounding moves: the gradient no longer falls although all of it is within range. */
int polish_newton(polish_state *s, double tolerance)
{
    enum { STEPS = 100, PATIENCE = 4 };
    const double near = 1e-7; /* rounding of s over kappa */
    double least = INFINITY;
    int stale = 0, i = 0;
    s->whole = true;
    if (!polish_look(s, s->w))
        return -1;
    for (; i < STEPS && stale < PATIENCE; i++) {
        const double size = polish_size(s, s->g);
        stale = size > near || size <= least / 2 ? 0 : stale + 1;
        least = fmin(least, size);
        if (size <= tolerance || !polish_direction(s) || !search_line(s))
            break;
    }
    return least <= fmax(tolerance, near) ? i : -1;
}
