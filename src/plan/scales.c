/*
 * What the presets know of the data: how hard a client's loss can pull, how much it bends, and how large a model is
 * likely to be. All of it is sums over clients' rows.
 */
#include "plan/plan.h"

#include "math/dot.h"

#include <math.h>
#include <string.h>

/* A row pulls by its slope times |x|; that of the squared loss, |y - <x,w>|, is bounded only where w is (reach may be
 * infinite), or x is 0; and |x|_1 <= sqrt(M) |x|. */
static double row_pull(const hfsad_loss *loss, size_t M, double y, double n, double reach)
{
    const double grown = loss->kind == HFSAD_LOSS_SQUARED && reach > 0 && n > 0 ? reach * sqrt((double)M) * n : 0;
    return loss_slope_bound(loss, y) * sqrt(n) + grown;
}

loss_facts loss_measure(const dataset *d, size_t leaf, const hfsad_loss *loss, bool mean, double reach)
{
    if (!d->rows.first)
        return (loss_facts){row_pull(loss, d->M, d->y[leaf], d->n[leaf], reach), d->n[leaf], 1};
    const client_rows rows = dataset_rows(d, leaf);
    loss_facts f = {0, 0, 0};
    for (size_t r = 0; r < rows.count; r++) {
        const double weight = row_weight(&rows, r), n = row_norm2(&rows, r);
        f.pull += weight * row_pull(loss, d->M, rows.y[r], n, reach);
        f.energy += weight * n;
        f.weight += weight;
    }
    if (mean)
        f = (loss_facts){f.pull / f.weight, f.energy / f.weight, 1};
    return f;
}

double loss_slope_bound(const hfsad_loss *loss, double y)
{
    switch (loss->kind) {
    case HFSAD_LOSS_PHASE_RETRIEVAL:
        return 5;
    case HFSAD_LOSS_QUANTILE:
        return fmax(loss->tau, 1 - loss->tau);
    case HFSAD_LOSS_SQUARED:
        return fabs(y);
    case HFSAD_LOSS_HUBER:
        return loss->delta;
    case HFSAD_LOSS_ABSOLUTE:
    case HFSAD_LOSS_LOGISTIC:
    case HFSAD_LOSS_HINGE:
    case HFSAD_LOSS_OWN:
        break;
    }
    return 1;
}

/* A kink bends as much as its slopes' bound spread over the residuals' scale. */
double loss_bend(const hfsad_loss *loss, double spread)
{
    switch (loss->kind) {
    case HFSAD_LOSS_SQUARED:
    case HFSAD_LOSS_HINGE:
        return 1;
    case HFSAD_LOSS_HUBER:
        return fmin(1, loss->delta / spread);
    case HFSAD_LOSS_LOGISTIC:
        return 0.25;
    case HFSAD_LOSS_QUANTILE:
    case HFSAD_LOSS_ABSOLUTE:
    case HFSAD_LOSS_PHASE_RETRIEVAL:
    case HFSAD_LOSS_OWN:
        break;
    }
    return loss_slope_bound(loss, 0) / spread;
}

/* sigma grows with every step, so that a start below the true bend is made good and one above is not; and most rows of
 * a fitted classifier lie where it hardly bends. */
double loss_ease(const hfsad_loss *loss)
{
    switch (loss->kind) {
    case HFSAD_LOSS_SQUARED:
    case HFSAD_LOSS_HUBER:
    case HFSAD_LOSS_OWN:
        return 0.25;
    case HFSAD_LOSS_LOGISTIC:
        return 0.1;
    case HFSAD_LOSS_HINGE:
        return 0.05;
    case HFSAD_LOSS_QUANTILE:
    case HFSAD_LOSS_ABSOLUTE:
    case HFSAD_LOSS_PHASE_RETRIEVAL:
        break;
    }
    return 0.5;
}

double loss_noise(const hfsad_loss *loss, double spread)
{
    switch (loss->kind) {
    case HFSAD_LOSS_QUANTILE:
        return sqrt(loss->tau * (1 - loss->tau));
    case HFSAD_LOSS_SQUARED:
        return spread;
    case HFSAD_LOSS_HUBER:
        return fmin(loss->delta, spread);
    case HFSAD_LOSS_LOGISTIC:
    case HFSAD_LOSS_HINGE:
        return 0.5;
    case HFSAD_LOSS_ABSOLUTE:
    case HFSAD_LOSS_PHASE_RETRIEVAL:
    case HFSAD_LOSS_OWN:
        break;
    }
    return 1;
}

/* Mean |y|, around the mean where an intercept takes that up; 1 for labels. */
double data_spread(const dataset *d, const hfsad_loss *loss)
{
    if (loss->kind == HFSAD_LOSS_LOGISTIC || loss->kind == HFSAD_LOSS_HINGE)
        return 1;
    const double *y = d->rows.first ? d->rows.y : d->y, *weight = d->rows.first ? d->rows.weight : NULL;
    double sum = 0, weights = 0, spread = 0;
    for (size_t i = 0; i < d->n_rows; i++) {
        weights += weight ? weight[i] : 1;
        sum += (weight ? weight[i] : 1) * y[i];
    }
    const double centre = d->rows.constant != 0 ? sum / weights : 0;
    for (size_t i = 0; i < d->n_rows; i++)
        spread += (weight ? weight[i] : 1) * fabs(y[i] - centre);
    return spread > 0 ? spread / weights : 1;
}

/* The gradient at w, through a prox of short step where the program has no gradient. */
static void own_slope(const hfsad_own_loss *own, const hfsad_client *client, const double *w, double sigma, double *g)
{
    if (own->gradient) {
        (void)own->gradient(own->context, client, w, g);
        return;
    }
    memcpy(g, w, client->M * sizeof *g);
    own->prox(own->context, client, w, sigma, g);
    for (size_t m = 0; m < client->M; m++)
        g[m] = sigma * (w[m] - g[m]);
}

own_facts own_measure(const dataset *d, size_t leaf, const hfsad_own_loss *own, double length, double *scratch)
{
    const client_rows rows = dataset_rows(d, leaf);
    const hfsad_client client = {d->n_inner + leaf, rows.count, d->M, rows.y, rows.weight, &rows};
    const size_t M = d->M;
    double *w = scratch, *g = scratch + M, *there = scratch + 2 * M, energy = 0;
    for (size_t r = 0; r < rows.count; r++)
        energy += row_norm2(&rows, r);
    const double sigma = 1e6 * (energy > 0 ? energy : 1);
    memset(w, 0, M * sizeof *w);
    own_slope(own, &client, w, sigma, g);
    const double slope = sqrt(dot8(M, g, g));
    if (!(slope > 0))
        return (own_facts){0, 0};
    for (size_t m = 0; m < M; m++)
        w[m] = -length / slope * g[m];
    own_slope(own, &client, w, sigma, there);
    double change = 0;
    for (size_t m = 0; m < M; m++)
        change += (there[m] - g[m]) * (there[m] - g[m]);
    return (own_facts){slope, sqrt(change) / length};
}
