/* See grow.h. */
#include "personal/grow.h"

#include "base/alloc.h"
#include "math/loss_kind.h"
#include "personal/fit.h"
#include "polish/triangle.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

extern void dsyev_(const char *job, const char *half, const int *n, double *a, const int *lda, double *values,
                   double *work, const int *size, int *info);

enum { DIRECTIONS = 3 }; /* of every group */

typedef struct {
    size_t group;
    double gain;       /* spread between the two parts' means: twice the fall of the likelihood that it promises */
    double at, beyond; /* beyond: part of the group's clients that go */
    double *u;
} candidate;

typedef struct {
    fitted now, trial;
    double *directions;               /* DIRECTIONS * most * M */
    double *reach;                    /* DIRECTIONS * most */
    double *matrix, *values, *lapack; /* M M, M, 4 M */
    candidate list[DIRECTIONS * MIXTURE_MOST];
    size_t n_list;
} room;

/* ---- directions ---- */

/* The leading directions of between = S against within = V, scaled so that the place of a client that obeys the model
 * has variance 1: u'Vu = clients. false: LAPACK gave up. */
static bool leading(grower *g, room *r, double *S, double *V, double clients, double *u, double *reach, size_t stride)
{
    const size_t M = g->M;
    const int n = (int)M, size = 4 * n;
    int info = 0;
    double *scale = r->lapack, *column = g->work;
    for (size_t i = 0; i < M; i++)
        scale[i] = V[triangle(i) + i] > 0 ? 1 / sqrt(V[triangle(i) + i]) : 0;
    for (size_t i = 0; i < M; i++)
        for (size_t j = 0; j <= i; j++) {
            V[triangle(i) + j] = V[triangle(i) + j] * scale[i] * scale[j] + (i == j ? 1e-8 : 0);
            S[triangle(i) + j] *= scale[i] * scale[j];
        }
    triangle_factorise(M, V);
    /* L^-1 S L^-T, column by column: S is symmetric */
    for (int side = 0; side < 2; side++)
        for (size_t j = 0; j < M; j++) {
            for (size_t i = 0; i < M; i++)
                column[i] = side ? r->matrix[i * M + j] : i >= j ? S[triangle(i) + j] : S[triangle(j) + i];
            triangle_forward(M, V, column);
            for (size_t i = 0; i < M; i++)
                r->matrix[side ? i * M + j : j * M + i] = column[i];
        }
    for (size_t i = 0; i < M; i++) /* what rounding leaves of its symmetry */
        for (size_t j = 0; j < i; j++)
            r->matrix[i * M + j] = r->matrix[j * M + i] = (r->matrix[i * M + j] + r->matrix[j * M + i]) / 2;
    double *keep = g->work + M; /* scale is in LAPACK's place */
    memcpy(keep, scale, M * sizeof *keep);
    dsyev_("V", "L", &n, r->matrix, &n, r->values, r->lapack, &size, &info);
    for (size_t d = 0; d < DIRECTIONS; d++) {
        double *to = u + d * stride * M;
        reach[d * stride] = 0;
        if (info || d >= M || !(r->values[M - 1 - d] > 0))
            continue;
        memcpy(to, r->matrix + (M - 1 - d) * M, M * sizeof *to);
        for (size_t i = M; i-- > 0;) { /* L^-T */
            to[i] /= V[triangle(i) + i];
            for (size_t k = 0; k < i; k++)
                to[k] -= V[triangle(i) + k] * to[i];
        }
        size_t largest = 0;
        for (size_t i = 0; i < M; i++)
            largest = fabs(to[i]) > fabs(to[largest]) ? i : largest;
        const double factor = (to[largest] < 0 ? -1 : 1) * sqrt(clients);
        for (size_t i = 0; i < M; i++)
            to[i] *= factor * keep[i];
        reach[d * stride] = 4 * sqrt(r->values[M - 1 - d]);
    }
    return !info;
}

/* ---- cuts ---- */

/* The cut of a histogram that parts two means the farthest. */
static bool best_cut(const double *weights, double reach, double clients, candidate *c)
{
    const double *moments = weights + MIXTURE_BINS;
    double all = 0, sum = 0, left = 0, moment = 0;
    c->gain = 0;
    for (size_t b = 0; b < MIXTURE_BINS; b++) {
        all += weights[b];
        sum += moments[b];
    }
    for (size_t b = 0; b + 1 < MIXTURE_BINS; b++) {
        left += weights[b];
        moment += moments[b];
        const double right = all - left;
        if (left < 0.5 || right < 0.5)
            continue;
        const double gain = moment * moment / left + (sum - moment) * (sum - moment) / right - sum * sum / all;
        if (gain > c->gain) {
            c->gain = gain;
            c->at = reach * (2 * (double)(b + 1) / MIXTURE_BINS - 1);
            c->beyond = right / clients;
        }
    }
    return c->gain > 0;
}

static int by_gain(const void *left, const void *right)
{
    const candidate *a = left, *b = right;
    return a->gain < b->gain ? 1 : a->gain > b->gain ? -1 : 0;
}

/* Fills r->list, the most promising first. */
static void find_cuts(grower *g, room *r)
{
    const size_t M = g->M, K = r->now.K, length = 2 * triangle(M) + 1;
    mixture_question q = {.kind = MIXTURE_SPREAD, .now = mixture_of(&r->now), .kappa = kappa_of(g, r->now.T, false)};
    double clients[MIXTURE_MOST];
    r->n_list = 0;
    if (!grower_ask(g, &q))
        return;
    for (size_t k = 0; k < K; k++) {
        double *S = g->answer + k * length;
        clients[k] = S[2 * triangle(M)];
        leading(g, r, S, S + triangle(M), clients[k], r->directions + k * M, r->reach + k, K);
    }
    q.kind = MIXTURE_CUTS;
    for (size_t d = 0; d < DIRECTIONS; d++) {
        q.u = r->directions + d * K * M;
        q.reach = r->reach + d * K;
        if (!grower_ask(g, &q))
            return;
        for (size_t k = 0; k < K; k++) {
            candidate *c = &r->list[r->n_list];
            *c = (candidate){.group = k, .u = r->directions + (d * K + k) * M};
            r->n_list += q.reach[k] > 0 && clients[k] >= 2 &&
                         best_cut(g->answer + k * 2 * MIXTURE_BINS, q.reach[k], clients[k], c);
        }
    }
    qsort(r->list, r->n_list, sizeof *r->list, by_gain);
}

/* ---- growth ---- */

/* r->trial becomes r->now with one group in two, fitted. */
static void try_cut(grower *g, room *r, const candidate *c, const fit_limits *limits)
{
    const size_t K = r->now.K, M = g->M;
    fitted *t = &r->trial;
    fitted_copy(g, t, &r->now);
    t->K = K + 1;
    memcpy(t->w + K * M, t->w + c->group * M, M * sizeof *t->w);
    t->share[K] = t->share[c->group] * c->beyond;
    t->share[c->group] *= 1 - c->beyond;
    const mixture_cut cut = {.group = c->group, .at = c->at, .mix = 0.1, .u = c->u};
    fit_mixture(g, t, &r->now, &cut, limits);
}

/* Whether the trial's groups help clients on rows that the weights do not come from. A least-squares fit gains by
 * giving one client with an outlier a model of its own; the other losses do not. */
static bool holds_across(grower *g, room *r)
{
    if (loss_kind_of(g->p->loss)->fit != LOSS_FIT_NORMAL)
        return true;
    const mixture_question q = {.kind = MIXTURE_CROSS, .now = mixture_of(&r->trial), .from = mixture_of(&r->now)};
    return grower_ask(g, &q) && g->answer[0] > 1.2 * sqrt(g->answer[1]);
}

static bool grow_once(grower *g, room *r)
{
    enum { TRIES = 4 };
    const double best = bic_of(g, &r->now);
    const fit_limits limits = {25, 0.02, false, best};
    find_cuts(g, r);
    for (size_t i = 0; i < r->n_list && i < TRIES && !g->gone; i++) {
        try_cut(g, r, &r->list[i], &limits);
        if (!g->gone && bic_of(g, &r->trial) < best && holds_across(g, r)) {
            fitted_copy(g, &r->now, &r->trial);
            return true;
        }
    }
    return false;
}

/* Numbers of an answer to MIXTURE_MEMBERS. */
enum { MEMBERS_AT_ONCE = 1 << 14 };

static void ask_members(grower *g, const fitted *m)
{
    personal_result *r = g->result;
    const size_t n = g->p->n_clients, step = MEMBERS_AT_ONCE / m->K;
    for (size_t first = 0; first < n; first += step) {
        const mixture_question q = {.kind = MIXTURE_MEMBERS,
                                    .now = mixture_of(m),
                                    .kappa = 1,
                                    .first = first,
                                    .count = n - first < step ? n - first : step};
        if (!grower_ask(g, &q))
            return;
        memcpy(r->p + first * m->K, g->answer, q.count * m->K * sizeof *r->p);
    }
}

/* Mean squares of the columns. */
static void take_columns(grower *g, const fitted *m)
{
    const mixture_question q = {.kind = MIXTURE_COLUMNS, .now = mixture_of(m)};
    if (!grower_ask(g, &q))
        return;
    g->rows = g->answer[g->M];
    for (size_t i = 0; i < g->M; i++)
        g->column[i] = g->answer[i] / g->rows;
}

size_t personal_longest(const personal_problem *problem)
{
    const size_t M = problem->M;
    mixture_question q = {.kind = MIXTURE_STATS, .now.K = problem->most};
    const size_t stats = mixture_length(&q, M);
    q.kind = MIXTURE_SPREAD;
    const size_t spread = mixture_length(&q, M), longest = stats > spread ? stats : spread;
    return longest > MEMBERS_AT_ONCE ? longest : MEMBERS_AT_ONCE;
}

static bool take_room(grower *g, room *r)
{
    const size_t M = g->M, most = g->p->most, length = personal_longest(g->p);
    double **const vectors[] = {&g->column,  &g->centre,     &g->answer, &g->before, &g->work,   &g->l1,    &r->now.w,
                                &r->trial.w, &r->directions, &r->reach,  &r->matrix, &r->values, &r->lapack};
    const size_t sizes[] = {M,
                            M,
                            length,
                            most * M,
                            triangle(M) + 4 * M,
                            3 * M,
                            most * M,
                            most * M,
                            DIRECTIONS * most * M,
                            DIRECTIONS * most,
                            M * M,
                            M,
                            4 * M};
    bool enough = true;
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        enough = (*vectors[i] = alloc_zero(sizes[i], sizeof(double))) && enough;
    g->ridge = g->l1 ? g->l1 + M : NULL;
    g->tilt = g->l1 ? g->l1 + 2 * M : NULL;
    return enough;
}

static void give_back(grower *g, room *r)
{
    double *const vectors[] = {g->column,  g->centre,     g->answer, g->before, g->work,   g->l1,    r->now.w,
                               r->trial.w, r->directions, r->reach,  r->matrix, r->values, r->lapack};
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        free(vectors[i]);
}

/* Of the first round, in the units of the loss: as if every y were of its likely size, and the model 0. */
static double first_scale(const grower *g)
{
    double squares = 0;
    for (size_t m = 0; m < g->M; m++)
        squares += g->column[m];
    const double T = hfsad_loss_value(g->p->loss, g->p->length * sqrt(squares / (double)g->M), 0);
    return mixture_has_scale(g->p->loss) && T > 0 && isfinite(T) ? T : 1;
}

static void grow(grower *g, room *r)
{
    fitted *m = &r->now;
    const fit_limits first = {40, 1e-2, false, INFINITY}, last = {40, 1e-3, true, INFINITY};
    take_columns(g, m);
    m->T = first_scale(g);
    g->least = 1e-300;
    if (g->gone)
        return;
    fit_mixture(g, m, NULL, NULL, &first);
    g->least = fmax(1e-8 * m->T, 1e-300);
    memcpy(g->centre, m->w, g->M * sizeof *m->w); /* what a group's rows do not say is taken from all */
    g->centred = true;
    const double alone = bic_of(g, m), loss = g->answer[MIXTURE_TOTALS + MIXTURE_LOSS];
    while (!g->gone && m->K < g->p->most && grow_once(g, r))
        ;
    g->result->gain = alone - bic_of(g, m);
    g->held = m->K == 1 && loss_kind_of(g->p->loss)->labels && loss < 0.1 * g->rows;
    if (g->held) /* rows lose hardly anything: a plane may separate the classes */
        memset(g->centre, 0, g->M * sizeof *g->centre);
    if (!g->gone && (m->K > 1 || g->held))
        fit_mixture(g, m, NULL, NULL, &last);
}

/* The largest group first. */
static void order(grower *g, fitted *m)
{
    for (size_t k = 1; k < m->K; k++)
        for (size_t i = k; i > 0 && m->share[i] > m->share[i - 1]; i--) {
            const double share = m->share[i];
            m->share[i] = m->share[i - 1];
            m->share[i - 1] = share;
            memcpy(g->work, m->w + i * g->M, g->M * sizeof *m->w);
            memmove(m->w + i * g->M, m->w + (i - 1) * g->M, g->M * sizeof *m->w);
            memcpy(m->w + (i - 1) * g->M, g->work, g->M * sizeof *m->w);
        }
}

static bool keep(grower *g, const fitted *m)
{
    personal_result *r = g->result;
    const bool members = g->p->members && m->K > 1;
    r->K = m->K;
    r->T = m->T;
    memcpy(r->share, m->share, sizeof r->share);
    r->w = alloc_zero(m->K * g->M, sizeof *r->w);
    r->p = members ? alloc_zero(g->p->n_clients * m->K, sizeof *r->p) : NULL;
    if (!r->w || (members && !r->p))
        return false;
    memcpy(r->w, m->w, m->K * g->M * sizeof *r->w);
    if (members)
        ask_members(g, m);
    r->finished = !g->gone;
    return true;
}

bool personal_grow(const personal_problem *problem, const double *w, personal_result *result)
{
    grower g = {.p = problem, .result = result, .M = problem->M};
    *result = (personal_result){0};
    room *r = alloc_zero(1, sizeof *r);
    bool enough = r && take_room(&g, r);
    if (enough) {
        memcpy(r->now.w, w, g.M * sizeof *w);
        r->now.K = 1;
        r->now.T = r->now.share[0] = 1;
        grow(&g, r);
        order(&g, &r->now);
        enough = g.gone || keep(&g, &r->now);
    }
    if (r)
        give_back(&g, r);
    free(r);
    return enough;
}

void personal_free(personal_result *result)
{
    free(result->w);
    free(result->p);
    *result = (personal_result){0};
}
