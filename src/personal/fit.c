/* See fit.h. */
#include "personal/fit.h"

#include "math/loss_kind.h"
#include "math/penalty_kind.h"
#include "polish/triangle.h"

#include <math.h>
#include <string.h>

/* The ridge, relative to a column's mean square. If a plane separates the classes, models would grow without limit: the
 * first model is drawn to 0, the groups' models to the first; a single group that a plane separates is held by a normal
 * prior of deviation 2.5 per deviation of a column. Otherwise the ridge is relative to the squares of all rows and only
 * keeps a singular matrix regular. */
static const double first_ridge = 1e-2, label_ridge = 0.05, held_ridge = 0.16, plain_ridge = 1e-9;

mixture mixture_of(const fitted *m)
{
    return (mixture){m->K, m->T, m->share, m->w};
}

void fitted_copy(const grower *g, fitted *to, const fitted *from)
{
    double *w = to->w;
    *to = *from;
    to->w = w;
    memcpy(w, from->w, from->K * g->M * sizeof *w);
}

/* Clients would refuse other values. */
static bool is_finite(const mixture *m, size_t M)
{
    bool finite = isfinite(m->T) && m->T > 0;
    for (size_t i = 0; i < m->K * M; i++)
        finite = finite && isfinite(m->w[i]);
    return finite;
}

bool grower_ask(grower *g, const mixture_question *q)
{
    personal_result *r = g->result;
    if (!is_finite(&q->now, g->M))
        g->gone = r->broken = true;
    g->gone = g->gone || !g->p->ask(g->p->context, q, g->answer);
    if (g->gone)
        return false;
    r->exchanges++;
    r->down += mixture_count(q, g->M);
    r->up += mixture_length(q, g->M);
    return true;
}

/* ---- the scale of the loss ---- */

bool mixture_has_scale(const hfsad_loss *loss)
{
    const loss_kind *kind = loss_kind_of(loss);
    return !kind->labels && kind->start != LOSS_START_LOG;
}

/* log of the integral of exp(-phi(r)/T) over r, without terms that do not depend on T. */
static double log_normaliser(const hfsad_loss *loss, double T)
{
    switch (loss_kind_of(loss)->fit) {
    case LOSS_FIT_NORMAL:
        return log(T) / 2;
    case LOSS_FIT_LAPLACE:
        return log(T);
    case LOSS_FIT_FIXED:
        break;
    }
    if (!mixture_has_scale(loss))
        return 0;
    const double d = loss->delta, root = sqrt(2 * T), pi = 3.14159265358979323846;
    return log(sqrt(pi) * root * erf(d / root) + 2 * T / d * exp(-d * d / (2 * T)));
}

/* The T of the largest likelihood if the sum of the losses is `loss`. */
static double scale_of(const grower *g, double loss)
{
    const hfsad_loss *kind = g->p->loss;
    const double mean = loss / g->rows;
    if (!mixture_has_scale(kind))
        return 1;
    double T = loss_kind_of(kind)->fit == LOSS_FIT_NORMAL ? 2 * mean : mean;
    if (loss_kind_of(kind)->fit == LOSS_FIT_FIXED) { /* between mean and 2 mean */
        double low = mean, high = 2 * mean;
        for (int i = 0; i < 60; i++) {
            const double a = low + (high - low) / 3, b = high - (high - low) / 3;
            if (mean / a + log_normaliser(kind, a) < mean / b + log_normaliser(kind, b))
                high = b;
            else
                low = a;
        }
        T = (low + high) / 2;
    }
    return fmax(T, g->least);
}

double kappa_of(const grower *g, double T, bool fine)
{
    return mixture_has_scale(g->p->loss) ? (fine ? 0.05 : 0.2) * T : fine ? 0.03 : 0.1;
}

/* ---- a step of one model ---- */

static double ridge_of(const grower *g, size_t m)
{
    const double part = !loss_kind_of(g->p->loss)->labels ? plain_ridge * g->rows
                        : g->held                         ? held_ridge
                        : g->centred                      ? label_ridge
                                                          : first_ridge;
    return part * g->column[m];
}

/* The priors at w: l1 |w| + ridge w^2 / 2 - tilt w, the concave part of mcp and scad linearised. */
static bool take_priors(grower *g, const double *w)
{
    bool any = isfinite(g->p->box);
    memset(g->l1, 0, 3 * g->M * sizeof *g->l1);
    for (size_t i = 0; i < g->p->n_priors; i++) {
        const hfsad_penalty *prior = &g->p->priors[i];
        for (size_t m = 0; !penalty_is_flat(prior) && m + prior->free < g->M; m++) {
            g->l1[m] += hfsad_penalty_slope(prior);
            g->ridge[m] += penalty_ridge(prior);
            g->tilt[m] -= penalty_is_concave(prior) ? hfsad_penalty_gradient(prior, w[m], INFINITY) : 0;
            any = true;
        }
    }
    for (size_t m = 0; m < g->M; m++) {
        g->ridge[m] += ridge_of(g, m);
        g->tilt[m] += ridge_of(g, m) * g->centre[m];
    }
    return any;
}

/* The contribution of priors and ridge to a group's loss. */
static double prior_value(const grower *g, const double *w)
{
    double sum = 0;
    for (size_t i = 0; i < g->p->n_priors; i++)
        for (size_t m = 0; m + g->p->priors[i].free < g->M; m++)
            sum += hfsad_penalty_value(&g->p->priors[i], w[m], 0);
    for (size_t m = 0; m < g->M; m++)
        sum += ridge_of(g, m) / 2 * (w[m] - g->centre[m]) * (w[m] - g->centre[m]);
    return sum;
}

/* Minimises the parabola with priors and box, one coordinate after the other. a: second derivative with the ridge;
 * slope: M, the derivative at w, which is updated. */
static void descend(const grower *g, const double *a, double *slope, double *w)
{
    enum { SWEEPS = 500 };
    const size_t M = g->M;
    double moved = 1, size = 1;
    for (int sweep = 0; sweep < SWEEPS && moved > 1e-10 * size; sweep++) {
        moved = size = 0;
        for (size_t m = 0; m < M; m++) {
            const double bend = a[triangle(m) + m], box = m < g->p->boxed ? g->p->box : INFINITY;
            if (!(bend > 0))
                continue;
            const double v = w[m] - slope[m] / bend, pull = g->l1[m] / bend;
            double to = v > pull ? v - pull : v < -pull ? v + pull : 0;
            to = fmax(-box, fmin(box, to));
            const double d = to - w[m];
            w[m] = to;
            for (size_t i = 0; d != 0 && i < M; i++)
                slope[i] += d * (i >= m ? a[triangle(i) + m] : a[triangle(m) + i]);
            moved += bend * d * d;
            size += bend * to * to;
        }
        moved = sqrt(moved);
        size = sqrt(size) + 1e-300;
    }
}

/* Moves w to the minimum of its parabola; returns the fall of the group's loss that the parabola predicts. */
static double move(grower *g, double *gradient, double *bend, double *w)
{
    const size_t M = g->M;
    double *a = g->work, *d = a + triangle(M), *old = d + M, fall = 0;
    const bool plain = !take_priors(g, w);
    memcpy(a, bend, triangle(M) * sizeof *a);
    for (size_t m = 0; m < M; m++) {
        a[triangle(m) + m] += g->ridge[m];
        d[m] = gradient[m] + g->ridge[m] * w[m] - g->tilt[m];
    }
    memcpy(old, w, M * sizeof *w);
    if (plain) {
        triangle_factorise(M, a);
        triangle_solve(M, a, d);
        for (size_t m = 0; m < M; m++)
            w[m] -= d[m];
    } else {
        descend(g, a, d, w);
    }
    bool finite = true;
    for (size_t m = 0; m < M; m++)
        finite = finite && isfinite(w[m]);
    if (!finite)
        memcpy(w, old, M * sizeof *w);
    for (size_t i = 0; i < M; i++) {
        const double di = w[i] - old[i];
        double sum = gradient[i] + bend[triangle(i) + i] * di / 2;
        for (size_t j = 0; j < i; j++)
            sum += bend[triangle(i) + j] * (w[j] - old[j]);
        fall -= di * sum;
    }
    return fall;
}

/* ---- rounds ---- */

static double likelihood_of(const grower *g, const fitted *m)
{
    double priors = 0;
    for (size_t k = 0; k < m->K; k++)
        priors += prior_value(g, m->w + k * g->M);
    return g->answer[MIXTURE_LIKELIHOOD] + g->rows * log_normaliser(g->p->loss, m->T) + priors / m->T;
}

/* From the last answer to the next models, shares and scale. */
static void maximise(grower *g, fitted *m, bool held)
{
    const size_t M = g->M, length = MIXTURE_SUMS + M + triangle(M);
    double loss = 0, clients = 0;
    for (size_t k = 0; k < m->K; k++) {
        double *sums = g->answer + MIXTURE_TOTALS + k * length, *gradient = sums + MIXTURE_SUMS;
        const double fall = move(g, gradient, gradient + M, m->w + k * M);
        loss +=
            fmax(sums[MIXTURE_LOSS] - fmax(fall, 0), sums[MIXTURE_LOSS] / 4); /* the predicted fall may be too large */
        m->share[k] = sums[MIXTURE_CLIENTS];
        clients += sums[MIXTURE_CLIENTS];
    }
    for (size_t k = 0; k < m->K; k++)
        m->share[k] /= clients;
    if (!held) /* a model that has not settled says nothing about the scale */
        m->T = scale_of(g, loss);
}

/* The mixture's observations are the clients, so a coordinate costs the logarithm of their number. A further group
 * costs as much as four numbers estimated from all rows, because it is the best of many ways to divide the clients. For
 * labels it costs as much as two: their losses have no scale to estimate and no outliers. */
double bic_of(const grower *g, const fitted *m)
{
    const double numbers = (double)(m->K * g->M + m->K - 1), groups = (double)(m->K - 1);
    const double choice = loss_kind_of(g->p->loss)->labels ? 2 : 4;
    return 2 * m->likelihood + numbers * log((double)g->p->n_clients) + choice * groups * log(g->rows);
}

/* The last step was too long: goes halfway back. */
static void go_back(grower *g, fitted *m)
{
    for (size_t i = 0; i < m->K * g->M; i++)
        m->w[i] = (m->w[i] + g->before[i]) / 2;
}

/* The quantity that the fit lowers: with the weights of a cut the loss under them, otherwise the negative
 * log-likelihood. */
static double merit_of(const grower *g, const fitted *m, bool held)
{
    const size_t length = MIXTURE_SUMS + g->M + triangle(g->M);
    double sum = 0;
    if (!held)
        return m->likelihood;
    for (size_t k = 0; k < m->K; k++)
        sum += g->answer[MIXTURE_TOTALS + k * length + MIXTURE_LOSS] + prior_value(g, m->w + k * g->M);
    return sum / m->T;
}

void fit_mixture(grower *g, fitted *m, const fitted *from, const mixture_cut *cut, const fit_limits *limits)
{
    enum { HELD = 6, BACK = 8 };
    unsigned held = !cut ? 0 : loss_kind_of(g->p->loss)->squared ? 1 : HELD; /* rounds with the weights of the cut */
    unsigned free = 0, back = 0; /* rounds without them, and steps back in a row */
    double last = INFINITY;
    while (free < limits->rounds) {
        mixture_question q = {.kind = MIXTURE_STATS, .now = mixture_of(m), .kappa = kappa_of(g, m->T, limits->fine)};
        const bool holds = held > 0;
        if (holds) {
            q.from = mixture_of(from);
            q.cut = *cut;
        }
        if (!grower_ask(g, &q))
            return;
        m->likelihood = likelihood_of(g, m);
        const double merit = merit_of(g, m, holds), fall = last - merit;
        free += !holds;
        if (!(fall >= -1e-6 * (1 + fabs(last))) && isfinite(last) && back < BACK) {
            go_back(g, m);
            back++;
            continue;
        }
        if (!holds && back == 0 && fabs(fall) < limits->tolerance)
            return;
        if (free > 5 && bic_of(g, m) - 40 * fall > limits->target)
            return;
        if (free == limits->rounds)
            return; /* the likelihood belongs to these models */
        back = 0;
        last = merit;
        if (holds && (--held == 0 || fall < 1)) {
            held = 0;
            last = INFINITY;
        }
        memcpy(g->before, m->w, m->K * g->M * sizeof *m->w);
        maximise(g, m, holds);
    }
}
