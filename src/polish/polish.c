/* The stages and outer steps of the polish; see polish.h. */
#include "polish/polish.h"

#include "base/alloc.h"
#include "math/penalty_kind.h"
#include "polish/choice.h"
#include "polish/endless.h"
#include "polish/errors.h"
#include "polish/search.h"
#include "polish/star.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Relative to F: the bound of an outer step that ends a stage, and the least fall for which another stage is worth its
 * exchanges. Of phase retrieval, whose verdict asks for 1e-6, less is enough. */
static const double enough = 1e-11, worth = 1e-10, anchored_enough = 3e-9, anchored_worth = 1e-8;
/* Of F at 0: below this F counts as 0. */
static const double as_good_as_zero = 1e-9;

double polish_prior_value(const polish_problem *p, const double *w)
{
    double sum = 0;
    for (size_t i = 0; i < p->n_priors; i++)
        for (size_t m = 0; m + p->priors[i].free < p->M; m++)
            sum += hfsad_penalty_value(&p->priors[i], w[m], 0);
    return sum;
}

/* Priors are l1 with a parabola, or l1 minus a convex part, which is linearised at w: its slope is that of the penalty
 * with infinite smoothing. */
static void linearise_priors(polish_state *s, const double *w)
{
    memset(s->l1, 0, s->M * sizeof *s->l1);
    memset(s->tilt, 0, s->M * sizeof *s->tilt);
    memset(s->ridge, 0, s->M * sizeof *s->ridge);
    for (size_t i = 0; i < s->p->n_priors; i++) {
        const hfsad_penalty *prior = &s->p->priors[i];
        for (size_t m = 0; !penalty_is_flat(prior) && m + prior->free < s->M; m++) {
            s->l1[m] += hfsad_penalty_slope(prior);
            s->ridge[m] += penalty_ridge(prior);
            s->tilt[m] -= penalty_is_concave(prior) ? hfsad_penalty_gradient(prior, w[m], INFINITY) : 0;
        }
    }
}

static bool has_concave_priors(const polish_problem *p)
{
    for (size_t i = 0; i < p->n_priors; i++)
        if (penalty_is_concave(&p->priors[i]) && p->priors[i].weight > 0)
            return true;
    return false;
}

void polish_cut_to_box(const polish_state *s, double *w)
{
    for (size_t m = 0; m < s->M; m++) {
        const double box = coordinate_box(s, m);
        w[m] = fmax(coordinate_is_positive(s, m) ? 0 : -box, fmin(box, w[m]));
    }
}

/* F at w. */
static bool whole_value(polish_state *s, const double *w, double *value)
{
    if (!polish_look(s, w))
        return false;
    *value = s->loss + polish_prior_value(s->p, w);
    return true;
}

/* The sizes by which derivatives are judged, and by which the proximal term and the coordinates' envelopes are
 * weighted. At the end about as many rows are in their kinks as there are coordinates. */
typedef struct {
    double *kinks, *bends; /* M each, copied out of the answer */
    double mean;           /* loss per unit of weight: a length in s */
    double share;
} stage_scales;

static bool take_scales(polish_state *s, stage_scales *at, double loss)
{
    if (!polish_ask(s, POLISH_SCALES, NULL, NULL))
        return false;
    const size_t M = s->M;
    const double *slopes = s->answer + POLISH_SLOPES * M, *counts = s->answer + POLISH_VECTORS * M;
    memcpy(at->kinks, s->answer + POLISH_KINKS * M, M * sizeof(double));
    memcpy(at->bends, s->answer + POLISH_BENDS * M, M * sizeof(double));
    at->mean = counts[POLISH_WEIGHT] > 0 ? loss / counts[POLISH_WEIGHT] : 0;
    at->share = counts[POLISH_KINKED] > 0 ? fmin(1, (double)M / counts[POLISH_KINKED]) : 0;
    double largest = 0;
    for (size_t m = 0; m < M; m++) {
        at->bends[m] += s->ridge[m];
        s->steep[m] = slopes[m] + s->l1[m];
        s->curved[m] = at->bends[m];
        s->scale[m] = s->steep[m] + sqrt(2 * at->bends[m] * loss);
        largest = fmax(largest, s->scale[m]);
    }
    for (size_t m = 0; m < M; m++) /* a column of zeros */
        s->scale[m] = fmax(s->scale[m], largest > 0 ? 1e-12 * largest : 1);
    return true;
}

/* Sets the scales for the current kappa. */
static void set_weights(polish_state *s, const stage_scales *at)
{
    double largest = 0;
    for (size_t m = 0; m < s->M; m++) {
        s->weight[m] = at->bends[m] + at->kinks[m] * at->share / s->kappa;
        largest = fmax(largest, s->weight[m]);
    }
    for (size_t m = 0; m < s->M; m++) {
        s->weight[m] = fmax(s->weight[m], largest > 0 ? 1e-12 * largest : 1);
        s->rho[m] = s->weight[m] * s->stiff;
    }
}

/* Moves the multipliers of rows and coordinates to those at s->w. s->trial becomes that point with every coordinate at
 * its penalty's own point, and is evaluated without the proximal term. */
static bool settle(polish_state *s)
{
    if (!polish_ask(s, POLISH_COMMIT, s->w, NULL))
        return false;
    for (size_t m = 0; m < s->M; m++) {
        const coordinate_part part = coordinate_at(s, m, s->w[m]);
        s->trial[m] = part.point;
        s->multiplier[m] = part.slope;
        s->centre[m] = part.point;
    }
    return polish_look(s, s->trial);
}

/* Wide enough for rows and coordinates in their kinks to show a direction. */
static void widen(polish_state *s, const stage_scales *at)
{
    for (int i = 0; i < 20; i++) {
        set_weights(s, at);
        if (!polish_look(s, s->w) || s->active >= 1.5 * (double)s->M || at->share >= 1 || at->mean <= 0)
            return;
        s->kappa *= 2;
    }
}

/* The linearised priors at w minus their value at the point of linearisation, which is the priors' own value. */
static double prior_model(const polish_state *s, const double *w)
{
    double sum = 0;
    for (size_t m = 0; m < s->M; m++)
        sum += s->l1[m] * fabs(w[m]) + s->ridge[m] / 2 * w[m] * w[m] - s->tilt[m] * w[m];
    return sum;
}

/* A stage's convex problem: its model of F, equal to F where the stage begins. */
typedef struct {
    double begin;    /* F at the start of the stage */
    double shift;    /* from prior_model to the priors */
    double part;     /* part of the fall so far to which the bound is reduced; 0: none */
    double *best;    /* the point with the smallest F of all evaluated points */
    double least;    /* its F */
    double lowest;   /* smallest value of the model */
    double smallest; /* smallest bound of an outer step, and the model's value that it refers to */
    double lower;
    double merit;  /* merit of the last outer step */
    double bound;  /* how far `lowest` may be above the model's minimum */
    bool positive; /* the model is never below 0 */
} stage;

/* A measure of what is left to do at a point, defined even without a bound: of rows, and of the sum of all slopes. */
static double merit_of(const polish_state *s, const double *w, double level)
{
    double rest = 0;
    for (size_t m = 0; m < s->M; m++)
        rest += fabs(s->g[m]) * (fabs(w[m]) + level / s->scale[m]);
    return fmax(s->gap, 0) + rest;
}

/* Evaluates the point s->trial; returns the bound there. The smallest of the bounds counts, because far from the
 * minimum the sum of the tangents says little. */
static double record(polish_state *s, stage *t)
{
    const double there = s->loss + polish_prior_value(s->p, s->trial),
                 model = s->model + prior_model(s, s->trial) + t->shift;
    const double size = polish_size(s, s->g);
    t->merit = merit_of(s, s->trial, fabs(model));
    const double goal = 0.5 * s->p->gap * fmax(fabs(model), as_good_as_zero * s->result->zero);
    const double bound = polish_bound(s, s->trial, fmax(goal, enough * fmax(fabs(model), s->floor)));
    if (s->p->star) /* a bound of twice its rounding counts as 0, at the smallest gap that may be requested */
        s->result->zero = fmax(s->result->zero, fmin(2 * s->rounding / (1e-4 * as_good_as_zero), s->none));
    if (there < t->least) {
        memcpy(t->best, s->trial, s->M * sizeof *t->best);
        t->least = s->result->after = there;
    }
    t->lowest = fmin(t->lowest, model);
    if (bound < t->smallest) {
        t->smallest = bound;
        t->lower = fmax(t->lower, model - bound);
        s->result->residual = size;
    }
    t->bound = fmax(t->lowest - t->lower, 0);
    return bound + model - t->lowest;
}

bool polish_is_within(double gap, double bound, double F, double zero)
{
    return gap > 0 && bound <= gap * fmax(F - bound, as_good_as_zero * zero);
}

static bool is_close(const polish_state *s, const stage *t)
{
    return polish_is_within(s->p->gap, t->bound, t->least, s->result->zero);
}

static void add_row(polish_state *s, const stage *t, double primal, double dual)
{
    const polish_row row = {++s->rows, t->least, primal, dual, t->bound, s->result->down, s->result->up, t->best};
    if (s->p->row)
        s->p->row(s->p->context, &row);
}

static bool is_over(const polish_state *s, const stage *t)
{
    return s->gone || s->spent || is_close(s, t) || choice_is_too_small(s->p->choice) ||
           (s->p->limit && s->rows >= s->p->limit);
}

/* Whether the star continues after Newton's method has failed, which usually takes about 100 exchanges. Newton's method
 * fails if hardly more rows are in their kinks than there are free coordinates. */
static bool goes_on(const polish_state *s, const stage_scales *at)
{
    return s->p->rounds && s->direct && at->share > 0;
}

/* Solves a stage from s->w. */
static void solve_stage(polish_state *s, const stage_scales *at, stage *t)
{
    enum { OUTER = 60, PROMISED = 3000, NARROWING = 30 };
    const bool limited =
        goes_on(s, at) || s->p->anchored; /* the star, or another stage, goes on better than this one */
    const uint64_t most = limited ? s->result->exchanges + PROMISED : POLISH_EXCHANGES;
    const int patience = t->part > 0 ? 6 : 10;
    double smallest = INFINITY, last = INFINITY, tolerance = 1e-4;
    int idle = 0, failures = 0, settled = 0;
    bool has_kinks = false;
    for (size_t m = 0; m < s->M; m++)
        has_kinks = has_kinks || coordinate_exists(s, m);
    for (int k = 0; k < OUTER && idle < patience && s->result->exchanges < most; k++) {
        const double before = t->lowest;
        set_weights(s, at);
        const int steps = polish_newton(s, tolerance);
        if (s->gone || s->spent)
            return;
        failures = steps < 0 ? failures + 1 : 0;
        if (failures > 0 && failures <= 3) { /* too few rows are in their kinks: shorter steps */
            memcpy(s->centre, s->w, s->M * sizeof *s->w);
            s->theta = fmin(100 * s->theta, 1e-2);
            continue;
        }
        if (!settle(s))
            return;
        const double bound = record(s, t), size = fmax(fabs(t->lowest), s->floor);
        const double limit = fmax((s->p->anchored ? anchored_enough : enough) * size, 4 * s->rounding);
        add_row(s, t, s->result->residual, t->merit);
        if (is_over(s, t))
            return;
        const bool done = fmin(bound, t->positive ? t->lowest : bound) <= fmax(limit, t->part * (t->begin - t->lowest));
        /* smooth losses are flat at their minimum, so the model must settle, not only F */
        if (done && (at->share > 0 || t->part > 0 || t->merit <= 1e-9 * size || ++settled > 2))
            return;
        if (failures && at->share > 0 &&
            t->bound <= 1e-8 * size) /* Newton's method has reached the level of rounding */
            return;
        /* A stage that begins near its minimum finds nothing lower before kappa is as small as the rows' distances. */
        const bool narrows = t->part > 0 && t->lowest >= t->begin && k < NARROWING;
        idle = t->merit < 0.5 * smallest || t->lowest < before - 1e-13 * size || narrows ? 0 : idle + 1;
        const bool tight = at->share > 0 && s->gap <= 1e-12 * size;
        if (t->merit > 0.1 * last && tight && !has_kinks)
            s->kappa *= 10; /* the proximal term, which grows as kappa shrinks, holds the steps back */
        else if (t->merit > 0.1 * last && (tight || at->share <= 0))
            s->stiff = fmin(4 * s->stiff, 1e6); /* the coordinates lag, and kappa does not reach them */
        else if (t->merit > 0.1 * last)
            s->kappa *= steps <= 1 ? 0.1 : 0.4; /* multipliers that drift without a change go on faster */
        s->theta = fmax(s->theta * 0.3, s->direct ? 1e-13 : 1e-9); /* conjugate gradients need the larger one */
        tolerance = fmax(tolerance * 0.1, 1e-14);
        smallest = fmin(smallest, t->merit);
        last = t->merit;
    }
}

/* ---- the star, before Newton's method ---- */

typedef struct {
    polish_state *s;
    stage *t;
    const stage_scales *at;
    uint64_t rounds, per_row;
} star_stage;

/* By a diagonal metric, also if it becomes whole, after Newton's method, and of MANY coordinates with kinks, rounds are
 * many and cheap: this number of them is one row. */
enum { CHEAP_ROUNDS = 10, MANY = 128 };

static bool see_round(void *context, const double *w, double objective, double primal, double dual)
{
    star_stage *a = context;
    stage *t = a->t;
    if (objective < t->least) {
        memcpy(t->best, w, a->s->M * sizeof *w);
        t->lowest = t->least = a->s->result->after = objective;
        t->bound = fmax(t->lowest - t->lower, 0);
    }
    if (++a->rounds % a->per_row == 0)
        add_row(a->s, t, primal, dual);
    return !is_over(a->s, t);
}

/* The clients' slopes are those of their last round: kappa is so large that evaluating does not move them. */
static bool certify(void *context, const double *w)
{
    const star_stage *a = context;
    polish_state *s = a->s;
    s->kappa = 1e4 * fmax(a->at->mean, 1e-300);
    s->beta = POLISH_EASED;
    set_weights(s, a->at);
    memcpy(s->trial, w, s->M * sizeof *w);
    if (!polish_look(s, s->trial))
        return true;
    (void)record(s, a->t);
    s->beta = 0;
    return is_close(s, a->t) || choice_is_too_small(s->p->choice);
}

/* Like certify, for the slopes of columns that were not chosen. */
static bool look_around(void *context, const double *w)
{
    const star_stage *a = context;
    polish_state *s = a->s;
    s->kappa = 1e4 * fmax(a->at->mean, 1e-300);
    s->beta = POLISH_EASED;
    const bool more = choice_needs_more(s, w);
    s->beta = 0;
    return more;
}

/* Sets the rows' slopes to 0. */
static void forget(polish_state *s, const stage *t)
{
    s->beta = s->p->memory ? 1 : 0;
    if (!is_over(s, t))
        (void)polish_ask(s, POLISH_FORGET, NULL, NULL);
    s->beta = 0;
}

/* Newton's method starts at the star's end, but with wide envelopes and without slopes: with the star's slopes, which
 * are nearly right, too few rows are in their kinks to show a direction. */
static void solve_star(polish_state *s, const stage_scales *at, stage *t, bool alone)
{
    const bool hard = s->M > MANY && at->share > 0, cheap = alone || hard || !s->whole_metric;
    star_stage a = {s, t, at, 0, cheap ? CHEAP_ROUNDS : 1};
    star_watch watch = {.context = &a,
                        .round = see_round,
                        .certify = certify,
                        .look = s->p->choice ? look_around : NULL,
                        .gap = s->p->gap > 0 ? s->p->gap : enough,
                        .least = t->least,
                        .per_row = cheap ? CHEAP_ROUNDS : 1,
                        .hard = hard,
                        .alone = alone};
    const double kappa = s->kappa;
    s->theta = 0;
    memcpy(s->w, t->best, s->M * sizeof *s->w);
    bool slow = false, done = star_solve(s, &watch, &slow);
    if (done && slow && !is_over(s, t)) {
        s->whole_metric = true;
        memcpy(s->w, t->best, s->M * sizeof *s->w);
        watch.least = t->least;
        done = star_solve(s, &watch, &slow);
        if (!done && !s->gone && !s->spent) { /* a client has no memory for it */
            s->whole_metric = false;
            watch.stays = true;
            done = star_solve(s, &watch, &slow);
        }
    }
    if (done)
        memcpy(s->w, t->best, s->M * sizeof *s->w);
    memcpy(s->centre, s->w, s->M * sizeof *s->w);
    s->kappa = kappa;
    s->step = 0;
    s->theta = 1e-2;
    forget(s, t);
}

static void solve_again(polish_state *s, const stage_scales *at, stage *t)
{
    forget(s, t);
    solve_star(s, at, t, true);
}

static bool begin_stage(polish_state *s, stage_scales *at, stage *t, const double *w)
{
    linearise_priors(s, w);
    if ((s->p->anchored && !polish_ask(s, POLISH_ANCHOR, w, NULL)) || !take_scales(s, at, t->least))
        return false;
    memcpy(s->w, w, s->M * sizeof *w);
    memcpy(s->centre, w, s->M * sizeof *w);
    memcpy(t->best, w, s->M * sizeof *w);
    t->begin = t->lowest = t->least;
    t->shift = polish_prior_value(s->p, w) - prior_model(s, w);
    t->positive = !has_concave_priors(s->p);
    t->lower = t->positive ? 0 : -INFINITY;
    t->lower = fmax(t->lower, choice_lower(s->p->choice));
    t->bound = t->smallest = INFINITY;
    s->theta = 1e-2;
    s->stiff = 1;
    s->kappa = at->mean > 0 ? 0.1 * at->mean : 1;
    return true;
}

/* Runs stages until one finds that its model's minimum is at its start, which makes that point stationary. The
 * curvature of phase retrieval counts more if F falls less than its model. */
static void solve_stages(polish_state *s, stage_scales *at, double *w, stage *t)
{
    enum { STAGES = 200 };
    const bool repeats = s->p->anchored || has_concave_priors(s->p);
    t->least = s->result->after;
    t->part = repeats ? 0.1 : 0;
    for (uint32_t i = 0; i < STAGES; i++) {
        if (!begin_stage(s, at, t, w))
            break;
        if (s->p->rounds)
            solve_star(s, at, t, !s->direct && at->share > 0);
        if (!is_over(s, t) && i == 0)
            widen(s, at);
        if (!is_over(s, t))
            solve_stage(s, at, t);
        if (goes_on(s, at) && !is_over(s, t))
            solve_again(s, at, t);
        if (s->gone && !s->p->star)
            break;
        const double fall = t->begin - t->least, promised = t->begin - t->lowest;
        if (fall > 0)
            memcpy(w, t->best, s->M * sizeof *w);
        s->result->stages++;
        s->result->after = t->least;
        s->result->bound = repeats ? promised + t->bound : t->bound;
        const double small = (s->p->anchored ? anchored_worth : worth) * fmax(fabs(t->begin), s->floor);
        if (!repeats || s->gone || s->spent || promised <= small || t->least <= small ||
            (s->beta >= 1 && fall <= small))
            break;
        if (fall < 0.2 * promised)
            s->beta = fmin(1, s->beta * 8);
        else if (fall > 0.7 * promised)
            s->beta = fmax(s->beta / 4, 1e-4);
    }
    s->result->finished = !s->gone;
}

/* Whether the polish searches for a lower valley than the one that the iterations reached. */
static bool searches(const polish_state *s)
{
    return s->p->anchored && s->direct;
}

/* The search goes first: far from a minimum its steps gain more than a stage, which needs second derivatives. */
static void solve_valleys(polish_state *s, stage_scales *at, double *w, stage *t)
{
    enum { SEARCHES = 8 };
    bool goes_on = searches(s);
    for (uint64_t i = 0; i < SEARCHES && goes_on; i++) {
        linearise_priors(s, w);
        goes_on = (i == 0 || polish_ask(s, POLISH_ANCHOR, w, NULL)) && take_scales(s, at, s->result->after) &&
                  polish_search(s, i, w);
    }
    solve_stages(s, at, w, t);
    s->result->finished = !s->gone;
}

/* Of chosen columns the last choice is asked: one that needs more columns has not reached the least value. */
static bool has_no_minimum(polish_state *s, const stage_scales *at, const double *w)
{
    if (!s->reserve || s->gone || choice_is_too_small(s->p->choice))
        return false;
    s->reserve = 0;
    s->spent = false;
    for (size_t m = 0; m < s->M; m++)
        s->weight[m] = at->bends[m] > 0 ? at->bends[m] : 1;
    return polish_is_endless(s, w);
}

/* Allocates everything in one block. */
static double *take_room(polish_state *s, stage_scales *at, stage *t)
{
    const size_t M = s->M;
    double **const vectors[] = {&s->l1,        &s->ridge,    &s->tilt,   &s->multiplier, &s->rho,   &s->weight,
                                &s->centre,    &s->scale,    &s->g,      &s->bend,       &s->w,     &s->trial,
                                &s->direction, &at->kinks,   &at->bends, &t->best,       &s->shift, &s->kept,
                                &s->slopes,    &s->inflated, &s->steep,  &s->curved};
    enum { VECTORS = sizeof vectors / sizeof *vectors, WORK = 3 };
    const size_t longest = polish_longest(M, s->p->direct);
    const size_t lanes = searches(s) ? POLISH_SEARCH_ROOM * M : 0;
    const size_t triangle = searches(s) ? M * (M + 1) / 2 : 0;
    double *room = alloc_zero((VECTORS + WORK) * M + longest + lanes + triangle, sizeof *room);
    if (!room)
        return NULL;
    for (size_t i = 0; i < VECTORS; i++)
        *vectors[i] = room + i * M;
    s->work = room + VECTORS * M;
    s->answer = s->work + WORK * M;
    s->lanes = s->answer + longest;
    s->squares = s->lanes + lanes;
    return room;
}

bool polish_solve_columns(const polish_problem *problem, double *w, polish_result *result)
{
    polish_state s = {.p = problem, .result = result, .M = problem->M, .kappa = 1, .beta = 0.1};
    stage_scales at = {0};
    stage t = {0};
    *result = (polish_result){.bound = NAN, .residual = NAN};
    s.direct = s.M <= problem->direct;
    s.reserve = problem->endless && s.direct && !has_concave_priors(problem) ? ENDLESS_EXCHANGES : 0;
    s.whole_metric = problem->whole_metric;
    s.sigma = choice_sigma(problem->choice);
    double *room = take_room(&s, &at, &t);
    if (!room)
        return false;
    polish_cut_to_box(&s, w);
    linearise_priors(&s, w);
    for (size_t m = 0; m < s.M; m++)
        s.rho[m] = s.inflated[m] = 1;
    double none; /* s.w is 0 */
    if ((!problem->anchored || polish_ask(&s, POLISH_ANCHOR, w, NULL)) && whole_value(&s, s.w, &none) &&
        whole_value(&s, w, &result->before)) {
        s.none = none;
        s.floor = 1e-4 * none;
        /* The star starts at the intercept alone, if there is one, so that an offset of y does not matter. */
        result->zero = problem->star ? fmax(fmin(none, result->before), 1e-6 * none) : none;
        result->after = result->before;
        solve_valleys(&s, &at, w, &t);
        result->endless = has_no_minimum(&s, &at, w);
        if (problem->variance && result->finished)
            polish_errors(&s, w);
    }
    choice_keep(problem->choice, &s, t.lower);
    free(s.root);
    free(room);
    return true;
}

bool polish_solve(const polish_problem *problem, double *w, polish_result *result)
{
    return (choice_pays(problem) ? choice_solve : polish_solve_columns)(problem, w, result);
}
