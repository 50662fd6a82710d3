/*
 * What the presets know of the data: how hard a client's loss can pull, how much it bends, and how large a model is
 * likely to be. All of it is sums over clients' rows.
 */
#include "plan/plan.h"

#include <math.h>

/* A row pulls by its slope times |x|; that of the squared loss, |y - <x,w>|, is bounded only where w is, and
 * |x|_1 <= sqrt(M) |x|. */
static double row_pull(const hfsad_loss *loss, size_t M, double y, double n, double reach)
{
    const double grown = loss->kind == HFSAD_LOSS_SQUARED && reach > 0 ? reach * sqrt((double)M) * n : 0;
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
        break;
    }
    return 1;
}

/* A kink bends as much as its slopes' bound spread over the residuals' scale. */
double loss_bend(const hfsad_loss *loss, double spread)
{
    switch (loss->kind) {
    case HFSAD_LOSS_SQUARED:
        return 1;
    case HFSAD_LOSS_HUBER:
        return fmin(1, loss->delta / spread);
    case HFSAD_LOSS_LOGISTIC:
        return 0.25;
    case HFSAD_LOSS_HINGE:
        return 1;
    case HFSAD_LOSS_QUANTILE:
    case HFSAD_LOSS_ABSOLUTE:
    case HFSAD_LOSS_PHASE_RETRIEVAL:
        break;
    }
    return loss_slope_bound(loss, 0) / spread;
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
