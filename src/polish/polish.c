/* Stages and outer steps; polish.h says what for. */
#include "polish/polish.h"

#include "base/alloc.h"
#include "polish/inner.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Relative to F: where an outer step's bound ends a stage, and less than which no stage is worth another. */
static double env(const char *n, double d) { const char *v = getenv(n); return v ? atof(v) : d; }
static const double enough = 1e-11, worth = 1e-10;

static double prior_value(const polish_problem *p, const double *w)
{
    double sum = 0;
    for (size_t i = 0; i < p->n_priors; i++)
        for (size_t m = 0; m + p->priors[i].free < p->M; m++)
            sum += hfsad_penalty_value(&p->priors[i], w[m], 0);
    return sum;
}

/* Priors are l1 less a convex part, which is linearised at w: its slope is what a penalty smoothed without end has left
 * of its own. */
static void linearise_priors(polish_state *s, const double *w)
{
    memset(s->l1, 0, s->M * sizeof *s->l1);
    memset(s->tilt, 0, s->M * sizeof *s->tilt);
    for (size_t i = 0; i < s->p->n_priors; i++) {
        const hfsad_penalty *prior = &s->p->priors[i];
        for (size_t m = 0; prior->kind != HFSAD_PENALTY_NONE && m + prior->free < s->M; m++) {
            s->l1[m] += hfsad_penalty_slope(prior);
            s->tilt[m] -= hfsad_penalty_gradient(prior, w[m], INFINITY);
        }
    }
}

static bool has_concave_priors(const polish_problem *p)
{
    for (size_t i = 0; i < p->n_priors; i++)
        if ((p->priors[i].kind == HFSAD_PENALTY_MCP || p->priors[i].kind == HFSAD_PENALTY_SCAD) &&
            p->priors[i].weight > 0)
            return true;
    return false;
}

static void cut(const polish_state *s, double *w)
{
    for (size_t m = 0; m < s->M; m++) {
        const double box = coordinate_box(s, m);
        w[m] = fmax(-box, fmin(box, w[m]));
    }
}

/* F at w. */
static bool whole_value(polish_state *s, const double *w, double *value)
{
    if (!polish_look(s, w))
        return false;
    *value = s->loss + prior_value(s->p, w);
    return true;
}

/* The sizes by which derivatives are judged, and by which the proximal term and the coordinates' envelopes weigh. Of
 * rows with a kink about as many as coordinates are in it at the end. */
typedef struct {
    double *kinks, *bends; /* M each, copied out of the answer */
    double mean;           /* loss per unit of weight: a length in s */
    double share;
} stage_scales;

static bool take_scales(polish_state *s, stage_scales *at, double loss)
{
    if (!polish_ask(s, POLISH_SCALES, NULL))
        return false;
    const size_t M = s->M;
    const double *slopes = s->answer + POLISH_SLOPES * M, *counts = s->answer + POLISH_VECTORS * M;
    memcpy(at->kinks, s->answer + POLISH_KINKS * M, M * sizeof(double));
    memcpy(at->bends, s->answer + POLISH_BENDS * M, M * sizeof(double));
    at->mean = counts[POLISH_WEIGHT] > 0 ? loss / counts[POLISH_WEIGHT] : 0;
    at->share = counts[POLISH_KINKED] > 0 ? fmin(1, (double)M / counts[POLISH_KINKED]) : 0;
    double largest = 0;
    for (size_t m = 0; m < M; m++) {
        s->scale[m] = slopes[m] + sqrt(2 * at->bends[m] * loss) + s->l1[m];
        largest = fmax(largest, s->scale[m]);
    }
    for (size_t m = 0; m < M; m++) /* a column of zeros */
        s->scale[m] = fmax(s->scale[m], largest > 0 ? 1e-12 * largest : 1);
    return true;
}

/* For the kappa in force. */
static void set_weights(polish_state *s, const stage_scales *at)
{
    double largest = 0;
    for (size_t m = 0; m < s->M; m++) {
        s->weight[m] = at->bends[m] + at->kinks[m] * at->share / s->kappa;
        largest = fmax(largest, s->weight[m]);
    }
    for (size_t m = 0; m < s->M; m++) {
        s->weight[m] = fmax(s->weight[m], largest > 0 ? 1e-12 * largest : 1);
        s->rho[m] = s->weight[m];
    }
}

/* How far F's convex model at the point may lie above its minimum: the rows' and coordinates' tangents bound it from
 * below but for what is left of their sum, which weighs by how far the minimum may be. */
static double bound_of(const polish_state *s, const double *w)
{
    double rest = 0;
    for (size_t m = 0; m < s->M; m++)
        rest += fabs(s->g[m]) * fabs(w[m]);
    return fmax(s->gap, 0) + rest;
}

/* The multipliers of rows and coordinates move to those at s->w; s->trial becomes that point with every coordinate on
 * its penalty's own, and is looked at without the proximal term. */
static bool settle(polish_state *s)
{
    if (!polish_ask(s, POLISH_COMMIT, s->w))
        return false;
    for (size_t m = 0; m < s->M; m++) {
        const coordinate_part part = coordinate_at(s, m, s->w[m]);
        s->trial[m] = part.point;
        s->multiplier[m] = part.slope;
        s->centre[m] = part.point;
    }
    return polish_look(s, s->trial);
}

/* Wide enough that rows and coordinates in their kinks can tell where to go. */
static void widen(polish_state *s, const stage_scales *at)
{
    for (int i = 0; i < 20; i++) {
        set_weights(s, at);
        if (!polish_look(s, s->w) || s->active >= 1.5 * (double)s->M || at->share >= 1 || at->mean <= 0)
            return;
        s->kappa *= 2;
    }
}

/* One convex problem, from s->w; best: the point with the least F of all that were looked at, and its F. */
static void solve_stage(polish_state *s, const stage_scales *at, double *best, double *least)
{
    enum { OUTER = 60, PATIENCE = 6 };
    double record = INFINITY, last = INFINITY, tolerance = env("TOL", 1e-4);
    int idle = 0;
    memcpy(s->centre, s->w, s->M * sizeof *s->w);
    for (int k = 0; k < OUTER && idle < PATIENCE; k++) {
        set_weights(s, at);
        polish_newton(s, tolerance);
        if (s->gone || !settle(s))
            return;
        const double there = s->loss + prior_value(s->p, s->trial), bound = bound_of(s, s->trial);
        if (there < *least) {
            memcpy(best, s->trial, s->M * sizeof *best);
            *least = there;
            s->result->bound = bound;
            s->result->residual = polish_size(s, s->g);
        }
        if (getenv("POLISH_DEBUG"))
            fprintf(stderr, "outer %d kappa %.2e F %.15g bound %.2e gap %.2e res %.2e active %g exch %lu\n", k, s->kappa, there, bound, s->gap, polish_size(s, s->g), s->active, s->result->exchanges);
        if (bound <= enough * fabs(there))
            return;
        idle = bound < 0.5 * record ? 0 : idle + 1;
        record = fmin(record, bound);
        if (bound > 0.1 * last) {
            s->kappa *= env("KF", 0.3);
        }
            s->theta = fmax(s->theta * env("TF", 0.3), env("TM", 1e-9));
        last = bound;
        tolerance = fmax(tolerance * 0.1, 1e-14);
    }
}

/* Stage after stage while F falls; where it does not, phase retrieval's curvature counts more. */
static void solve_stages(polish_state *s, stage_scales *at, double *w, double *best)
{
    enum { STAGES = 60 };
    const bool repeats = s->p->anchored || has_concave_priors(s->p);
    double now = s->result->before;
    for (uint32_t stage = 0; stage < STAGES; stage++) {
        linearise_priors(s, w);
        if ((s->p->anchored && !polish_ask(s, POLISH_ANCHOR, w)) || !take_scales(s, at, s->result->after))
            return;
        memcpy(s->w, w, s->M * sizeof *w);
        memcpy(s->centre, w, s->M * sizeof *w);
        s->theta = env("T0", 1e-4);
        s->kappa = at->mean > 0 ? env("K0", 0.1) * at->mean : 1;
        widen(s, at);
        double least = now;
        solve_stage(s, at, best, &least);
        if (s->gone)
            return;
        s->result->stages++;
        const double fall = now - least;
        if (fall > 0)
            memcpy(w, best, s->M * sizeof *w);
        s->result->after = now = least;
        if (!repeats || (fall <= worth * fabs(now) && (s->beta >= 1 || !s->p->anchored)))
            break;
        s->beta = fall > worth * fabs(now) ? s->beta / 4 : fmin(1, s->beta * 8);
    }
    s->result->finished = true;
}

/* Everything in one block. */
static double *take_room(polish_state *s, stage_scales *at, double **best)
{
    const size_t M = s->M;
    double **const vectors[] = {&s->l1,       &s->tilt,   &s->multiplier, &s->rho,  &s->weight,    &s->centre, &s->scale, &s->g,
                                &s->bend,     &s->w,      &s->trial,      &s->direction, &at->kinks, &at->bends, best};
    enum { VECTORS = sizeof vectors / sizeof *vectors, WORK = 3 };
    const size_t longest = polish_longest(M);
    double *room = alloc_zero((VECTORS + WORK) * M + longest, sizeof *room);
    for (size_t i = 0; room && i < VECTORS; i++)
        *vectors[i] = room + i * M;
    s->work = room + VECTORS * M;
    s->answer = s->work + WORK * M;
    return room;
}

bool polish_solve(const polish_problem *problem, double *w, polish_result *result)
{
    polish_state s = {.p = problem, .result = result, .M = problem->M, .kappa = 1, .beta = 0.1};
    stage_scales at = {0};
    double *best;
    *result = (polish_result){.bound = NAN, .residual = NAN};
    s.direct = s.M <= POLISH_DIRECT;
    double *room = take_room(&s, &at, &best);
    if (!room)
        return false;
    cut(&s, w);
    linearise_priors(&s, w);
    for (size_t m = 0; m < s.M; m++)
        s.rho[m] = 1;
    if ((!problem->anchored || polish_ask(&s, POLISH_ANCHOR, w)) && whole_value(&s, w, &result->before)) {
        result->after = result->before;
        solve_stages(&s, &at, w, best);
    }
    free(room);
    return true;
}
