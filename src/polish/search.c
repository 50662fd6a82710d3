/* See search.h. */
#include "polish/search.h"

#include "base/rng.h"
#include "math/penalty_kind.h"

#include <math.h>
#include <string.h>

/* Steps shrink by this factor in each of QUESTIONS: those of 0.3 of the model's length end at 7e-4 of it. */
enum { QUESTIONS = 150 };
static const double SHRINK = 0.96;
/* A search that lowers F by this part of it is worth another one. */
static const double LOWER = 1e-3;
/* A loss of at most this part of that at 0 is the noise of the right valley: wrong valleys leave far more. If F falls
 * by less than the part FALLS in PROBE questions, this valley's bottom is near, too. */
enum { PROBE = 10 };
static const double EXPLAINED = 0.05, FALLS = 5e-3;

typedef enum { LANE_HERE, LANE_SIGNS, LANE_NEAR, LANE_ANYWHERE } lane_kind;

/* The start of a lane, and its first step relative to the model's length. */
typedef struct {
    lane_kind kind;
    double step;
    double from_zero; /* length of the lane's start if the model is 0, relative to the likely length */
} lane;

static const lane lanes[POLISH_LANES] = {
    {LANE_HERE, 1, 0.01},    {LANE_HERE, 0.3, 0.03},  {LANE_HERE, 0.1, 0.1},   {LANE_HERE, 0.03, 0.3},
    {LANE_HERE, 0.01, 1},    {LANE_SIGNS, 0.3, 0.1},  {LANE_SIGNS, 0.3, 0.3},  {LANE_SIGNS, 0.3, 1},
    {LANE_SIGNS, 0.1, 1},    {LANE_NEAR, 0.3, 1},     {LANE_NEAR, 0.3, 1},     {LANE_NEAR, 0.1, 1},
    {LANE_ANYWHERE, 0.3, 1}, {LANE_ANYWHERE, 0.3, 1}, {LANE_ANYWHERE, 0.3, 1}, {LANE_ANYWHERE, 0.1, 1},
};

/* In the coordinates w_m / D_m. */
static double length_of(size_t M, const double *w, const double *D)
{
    double sum = 0;
    for (size_t m = 0; m < M; m++)
        sum += D[m] > 0 ? w[m] / D[m] * (w[m] / D[m]) : 0;
    return sqrt(sum);
}

/* Coordinates that appear in no row do not move. */
static void set_sizes(const polish_state *s, double *D)
{
    double largest = 0;
    for (size_t m = 0; m < s->M; m++)
        largest = fmax(largest, s->scale[m]);
    for (size_t m = 0; m < s->M; m++)
        D[m] = s->scale[m] > 1e-9 * largest ? largest / s->scale[m] : 0;
}

static void begin_lane(const polish_state *s, const lane *l, rng *r, const double *w, const double *D, double *to)
{
    const size_t M = s->M;
    const double away = 0.7, flipped = 0.3, length = length_of(M, w, D);
    const lane_kind kind = length > 0 ? l->kind : LANE_ANYWHERE;
    const double size = length > 0 ? length : l->from_zero * s->p->length / length_of(M, D, D) * sqrt((double)M);
    for (size_t m = 0; m < M; m++)
        to[m] = D[m] * rng_next_normal(r);
    const double drawn = length_of(M, to, D), part = drawn > 0 ? size / drawn : 0;
    for (size_t m = 0; m < M; m++)
        switch (kind) {
        case LANE_HERE:
            to[m] = w[m];
            break;
        case LANE_SIGNS:
            to[m] = rng_next_uniform(r) < flipped ? -w[m] : w[m];
            break;
        case LANE_NEAR:
            to[m] = w[m] + away * part * to[m];
            break;
        case LANE_ANYWHERE:
            to[m] *= part;
            break;
        }
    polish_cut_to_box(s, to);
}

/* The sub-gradient of the priors, with 0 at 0, is added to g. */
static void add_prior_slopes(const polish_problem *p, const double *w, double *g)
{
    for (size_t i = 0; i < p->n_priors; i++) {
        const hfsad_penalty *prior = &p->priors[i];
        for (size_t m = 0; !penalty_is_flat(prior) && m + prior->free < p->M; m++) {
            g[m] += w[m] != 0 ? copysign(hfsad_penalty_slope(prior), w[m]) : 0;
            g[m] += penalty_ridge(prior) * w[m];
            g[m] += penalty_is_concave(prior) ? hfsad_penalty_gradient(prior, w[m], INFINITY) : 0;
        }
    }
}

static void step_lane(const polish_state *s, double *w, double *g, const double *D, double step)
{
    double size = 0;
    add_prior_slopes(s->p, w, g);
    for (size_t m = 0; m < s->M; m++)
        size += D[m] * g[m] * (D[m] * g[m]);
    for (size_t m = 0; m < s->M && size > 0; m++)
        w[m] -= step / sqrt(size) * D[m] * D[m] * g[m];
    polish_cut_to_box(s, w);
}

/* The best point of all lanes: its F, and the loss in it. */
typedef struct {
    double *w, least, loss;
    bool found;
} best_point;

/* All lanes make a step; false: the question failed. */
static bool step_lanes(polish_state *s, const double *D, const double *steps, best_point *best)
{
    const size_t M = s->M;
    if (!polish_ask(s, POLISH_SEARCH, s->lanes, NULL))
        return false;
    for (size_t l = 0; l < POLISH_LANES; l++) {
        double *point = s->lanes + l * M, *g = s->answer + l * (M + 1);
        const double value = g[M] + polish_prior_value(s->p, point);
        if (value < best->least) {
            memcpy(best->w, point, M * sizeof *best->w);
            best->least = value;
            best->loss = g[M];
            best->found = true;
        }
        step_lane(s, point, g, D, steps[l]);
    }
    return true;
}

static void take_best(polish_state *s, const best_point *best, double *w)
{
    if (!best->found)
        return;
    memcpy(w, best->w, s->M * sizeof *w);
    s->result->after = best->least;
    s->loss = best->loss;
    s->result->bound = INFINITY; /* nothing is known of it yet */
}

static bool is_explained(const polish_state *s)
{
    return s->loss <= EXPLAINED * s->none;
}

bool polish_search(polish_state *s, uint64_t number, double *w)
{
    const size_t M = s->M;
    const double before = s->result->after, size = fmax(fabs(before), s->floor);
    double *points = s->lanes, *D = points + (POLISH_LANES + 1) * M, steps[POLISH_LANES];
    best_point best = {points + POLISH_LANES * M, before, s->loss, false};
    const bool explained = is_explained(s);
    set_sizes(s, D);
    rng r = {rng_key(s->p->seed, rng_stream("search") + number), 0};
    for (size_t l = 0; l < POLISH_LANES; l++) {
        begin_lane(s, &lanes[l], &r, w, D, points + l * M);
        steps[l] = lanes[l].step * length_of(M, points + l * M, D);
    }
    for (int k = 1; k <= QUESTIONS; k++) {
        if (!step_lanes(s, D, steps, &best))
            return false;
        for (size_t l = 0; l < POLISH_LANES; l++)
            steps[l] *= SHRINK;
        if (k == PROBE && explained && before - best.least < FALLS * size)
            break;
    }
    take_best(s, &best, w);
    return before - best.least > LOWER * size && !is_explained(s);
}
