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

enum { DIRECTIONS = 3, CUTS = 2 }; /* directions per group; cuts per direction */

typedef struct {
    size_t group;
    double gain;       /* spread between the parts' means, less the spread that one group shows there by chance */
    double at, beyond; /* beyond: share of the group's clients that move */
    double *u;
} candidate;

typedef struct {
    fitted now, trial;
    double *directions;               /* DIRECTIONS * most * M */
    double *reach;                    /* DIRECTIONS * most */
    double *matrix, *values, *lapack; /* M M, M, 4 M */
    candidate list[CUTS * DIRECTIONS * MIXTURE_MOST];
    size_t n_list;
} room;

/* ---- directions ---- */

/* The leading directions of between = S relative to within = V, scaled so that the coordinate of a client that follows
 * the model has variance 1: u'Vu = clients. false: LAPACK failed. */
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
    double *keep = g->work + M; /* scale is in LAPACK's memory */
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

/* The spread between the means of a standard normal's two parts on either side of `at`. */
static double chance_spread(double at)
{
    const double root = sqrt(0.5), below = erfc(-at * root) / 2, beyond = erfc(at * root) / 2;
    const double density = exp(-at * at / 2) / sqrt(6.283185307179586);
    return below > 0 && beyond > 0 ? density * density / (below * beyond) : 0;
}

/* The cut of a histogram with the largest spread between the two means. less_chance: the spread that one group shows by
 * chance is subtracted. Without it a cut divides groups of similar size; with it also a few clients at the end. */
static bool best_cut(const double *weights, double reach, double clients, bool less_chance, candidate *c)
{
    double best = 0;
    const double *moments = weights + MIXTURE_BINS;
    double all = 0, sum = 0, left = 0, moment = 0;
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
        const double spread = moment * moment / left + (sum - moment) * (sum - moment) / right - sum * sum / all;
        const double at = reach * (2 * (double)(b + 1) / MIXTURE_BINS - 1), gain = spread - all * chance_spread(at);
        if ((less_chance ? gain : spread) > best) {
            best = less_chance ? gain : spread;
            c->gain = gain;
            c->at = at;
            c->beyond = right / clients;
        }
    }
    return best > 0;
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
            const double *weights = g->answer + k * 2 * MIXTURE_BINS;
            candidate cuts[CUTS];
            for (size_t i = 0; i < CUTS && q.reach[k] > 0 && clients[k] >= 2; i++) {
                cuts[i] = (candidate){.group = k, .u = r->directions + (d * K + k) * M};
                const bool found = best_cut(weights, q.reach[k], clients[k], i > 0, &cuts[i]);
                if (found && !(i > 0 && cuts[i].at == cuts[0].at))
                    r->list[r->n_list++] = cuts[i];
            }
        }
    }
    qsort(r->list, r->n_list, sizeof *r->list, by_gain);
}

/* ---- growth ---- */

/* Sets r->trial to r->now with one group split in two, and fits it. */
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

/* Least weight of a group's clients. */
static double smallest(const grower *g, const fitted *m)
{
    double least = INFINITY;
    for (size_t k = 0; k < m->K; k++)
        least = fmin(least, m->share[k] * (double)g->p->n_clients);
    return least;
}

/* Whether the trial's groups help clients on rows that were not used for the weights. Without this check a client with
 * outliers may get its own model. Half of a client's rows may be too few to identify its group, so a group of MANY
 * clients needs no check. With least squares it also must gain twice its cost, because one outlier can gain that much.
 */
static bool holds_across(grower *g, room *r)
{
    enum { MANY = 4 };
    const bool squares = loss_kind_of(g->p->loss)->fit == LOSS_FIT_NORMAL;
    const double fall = bic_of(g, &r->now) - bic_of(g, &r->trial),
                 cost = 2 * (r->now.likelihood - r->trial.likelihood) - fall;
    const bool many = smallest(g, &r->trial) >= MANY;
    if (!mixture_has_scale(g->p->loss) || (many && !squares))
        return true;
    const mixture_question q = {.kind = MIXTURE_CROSS, .now = mixture_of(&r->trial), .from = mixture_of(&r->now)};
    const double level = !squares ? 0.7 : many && fall > cost ? 0 : 1.2; /* 0: the other rows gain at all */
    return grower_ask(g, &q) && g->answer[0] > level * sqrt(g->answer[1]);
}

/* Whether every group has at least problem->least clients. */
static bool is_large_enough(const grower *g, const fitted *m)
{
    return smallest(g, m) >= (double)g->p->least;
}

static bool grow_once(grower *g, room *r)
{
    enum { TRIES = 6 };
    const double best = bic_of(g, &r->now);
    const fit_limits limits = {25, 0.02, false, best};
    find_cuts(g, r);
    for (size_t i = 0; i < r->n_list && i < TRIES && !g->gone; i++) {
        try_cut(g, r, &r->list[i], &limits);
        if (!g->gone && bic_of(g, &r->trial) < best && is_large_enough(g, &r->trial) && holds_across(g, r)) {
            fitted_copy(g, &r->now, &r->trial);
            return true;
        }
    }
    return false;
}

/* The two groups whose models are the closest, in the metric of the columns. */
static void closest(const grower *g, const fitted *m, size_t pair[2])
{
    double least = INFINITY;
    for (size_t k = 1; k < m->K; k++)
        for (size_t l = 0; l < k; l++) {
            double distance = 0;
            for (size_t i = 0; i < g->M; i++) {
                const double d = m->w[k * g->M + i] - m->w[l * g->M + i];
                distance += g->column[i] * d * d;
            }
            if (distance < least) {
                least = distance;
                pair[0] = l;
                pair[1] = k;
            }
        }
}

/* Merges the two closest groups if the BIC falls: an early cut may have divided a true group. */
static bool merge_once(grower *g, room *r)
{
    const size_t M = g->M, last = r->now.K - 1;
    const fit_limits limits = {25, 0.02, false, bic_of(g, &r->now)};
    fitted *t = &r->trial;
    size_t pair[2] = {0, 1};
    closest(g, &r->now, pair);
    fitted_copy(g, t, &r->now);
    double *a = t->w + pair[0] * M, *b = t->w + pair[1] * M;
    const double share = t->share[pair[0]] + t->share[pair[1]], part = t->share[pair[1]] / share;
    for (size_t i = 0; i < M; i++)
        a[i] += part * (b[i] - a[i]);
    t->share[pair[0]] = share;
    t->share[pair[1]] = t->share[last];
    memmove(b, t->w + last * M, M * sizeof *b);
    t->K = last;
    fit_mixture(g, t, NULL, NULL, &limits);
    if (g->gone || !(bic_of(g, t) < limits.target) || !is_large_enough(g, t))
        return false;
    fitted_copy(g, &r->now, t);
    return true;
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

/* The sum over clients, so that the cloud need not know which client is in which group. */
static void ask_sizes(grower *g, const fitted *m)
{
    const mixture_question q = {.kind = MIXTURE_SIZES, .now = mixture_of(m), .kappa = 1};
    if (!grower_ask(g, &q))
        return;
    for (size_t k = 0; k < m->K; k++)
        g->result->size[k] = (uint64_t)fmax(0, fmin(g->answer[k], (double)g->p->n_clients));
}

static void count_members(grower *g, const fitted *m)
{
    personal_result *r = g->result;
    for (size_t i = 0; i < g->p->n_clients; i++)
        r->size[mixture_largest(r->p + i * m->K, m->K)]++;
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

/* Scale of the first round, in the units of the loss: as if every y had its likely size, and the model were 0. */
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
    memcpy(g->centre, m->w, g->M * sizeof *m->w); /* it fills what a group's rows do not determine */
    g->centred = true;
    const double alone = bic_of(g, m), loss = g->answer[MIXTURE_TOTALS + MIXTURE_LOSS];
    while (!g->gone && m->K < g->p->most && grow_once(g, r))
        ;
    while (!g->gone && m->K > 2 && merge_once(g, r)) /* K = 2 came from K = 1 with a higher BIC */
        ;
    g->result->gain = alone - bic_of(g, m);
    g->held = m->K == 1 && loss_kind_of(g->p->loss)->labels && loss < 0.1 * g->rows;
    if (g->held) /* rows have almost no loss: a plane may separate the classes */
        memset(g->centre, 0, g->M * sizeof *g->centre);
    if (g->gone || (m->K == 1 && !g->held))
        return;
    fitted_copy(g, &r->trial, m);
    fit_mixture(g, m, NULL, NULL, &last);
    if (!g->gone && m->K > 1 && !is_large_enough(g, m)) /* the finer fit has drawn clients out of a small group */
        fitted_copy(g, m, &r->trial);
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
    if (members) {
        ask_members(g, m);
        count_members(g, m);
    } else if (m->K > 1) {
        ask_sizes(g, m);
    } else {
        r->size[0] = g->p->n_clients;
    }
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
