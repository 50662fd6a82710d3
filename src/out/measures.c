/* See measures.h. */
#include "out/measures.h"

#include <math.h>
#include <stdlib.h>

enum { BINS = 10 /* number of bins for probabilities, all equally wide */ };

#define MEASURE_ROW(name, rows) {#name, rows},
const struct measure_kind measure_kinds[MEASURES] = {MEASURE_LIST(MEASURE_ROW)};

/* Merges two sets of y: the spreads of both, plus the spread of their means. */
static void join(measure_sums *to, double weight, double mean, double spread)
{
    const double all = to->weight + weight, away = mean - to->mean;
    if (!(weight > 0))
        return;
    to->spread += spread + away * away * (to->weight / all) * weight;
    to->mean += away * (weight / all);
    to->weight = all;
}

void measures_number(measure_sums *m, double weight, double y, double prediction)
{
    join(m, weight, y, 0);
    m->squared += weight * (y - prediction) * (y - prediction);
    m->absolute += weight * fabs(y - prediction);
}

void measures_level(measure_sums *m, double weight, double tau, double y, double prediction)
{
    m->levelled += weight;
    m->pinball += weight * fmax(tau * (y - prediction), (tau - 1) * (y - prediction));
}

void measures_label(measure_sums *m, double weight, bool positive, bool predicted)
{
    (positive ? m->positive : m->negative)[predicted ? 0 : 1] += weight;
}

void measures_add(measure_sums *to, const measure_sums *from)
{
    join(to, from->weight, from->mean, from->spread);
    to->squared += from->squared;
    to->absolute += from->absolute;
    to->levelled += from->levelled;
    to->pinball += from->pinball;
    for (int i = 0; i < 2; i++) {
        to->positive[i] += from->positive[i];
        to->negative[i] += from->negative[i];
    }
}

static int compare_scores(const void *left, const void *right)
{
    const double a = ((const ranked_row *)left)->score, b = ((const ranked_row *)right)->score;
    return (a > b) - (a < b);
}

/* Mean distance between the mean probability of a bin and its share of positives. */
static double calibration_error(const ranked_row *rows, size_t count)
{
    double weight[BINS] = {0}, expected[BINS] = {0}, seen[BINS] = {0}, all = 0, error = 0;
    for (size_t i = 0; i < count; i++) {
        const double p = rows[i].probability;
        if (isnan(p))
            continue;
        const int bin = p >= 1 ? BINS - 1 : (int)(p * BINS);
        weight[bin] += rows[i].weight;
        expected[bin] += rows[i].weight * p;
        seen[bin] += rows[i].positive ? rows[i].weight : 0;
        all += rows[i].weight;
    }
    for (int bin = 0; bin < BINS; bin++)
        error += fabs(expected[bin] - seen[bin]);
    return all > 0 ? error / all : NAN;
}

void measures_rank(measure_sums *m, ranked_row *rows, size_t count)
{
    double below = 0, positives = 0, pairs = 0; /* weight of the negatives with lower scores */
    qsort(rows, count, sizeof *rows, compare_scores);
    for (size_t i = 0, next; i < count; i = next) {
        double up = 0, down = 0;
        for (next = i; next < count && rows[next].score == rows[i].score; next++)
            *(rows[next].positive ? &up : &down) += rows[next].weight;
        pairs += up * (below + down / 2);
        below += down;
        positives += up;
    }
    m->auc = below > 0 && positives > 0 ? pairs / (below * positives) : NAN;
    m->calibration = calibration_error(rows, count);
}

double measure_of(const measure_sums *m, measure kind)
{
    const double labelled = m->positive[0] + m->positive[1] + m->negative[0] + m->negative[1];
    const double missed = m->positive[1] + m->negative[0];
    switch (kind) {
    case MEASURE_rmse:
        return m->weight > 0 ? sqrt(m->squared / m->weight) : NAN;
    case MEASURE_mae:
        return m->weight > 0 ? m->absolute / m->weight : NAN;
    case MEASURE_r2:
        return m->spread > 0 ? 1 - m->squared / m->spread : NAN;
    case MEASURE_pinball:
        return m->levelled > 0 ? m->pinball / m->levelled : NAN;
    case MEASURE_auc:
        return labelled > 0 ? m->auc : NAN;
    case MEASURE_f1:
        return 2 * m->positive[0] + missed > 0 ? 2 * m->positive[0] / (2 * m->positive[0] + missed) : NAN;
    case MEASURE_calibration:
        return labelled > 0 ? m->calibration : NAN;
    case MEASURE_true_positive:
        return labelled > 0 ? m->positive[0] : NAN;
    case MEASURE_false_positive:
        return labelled > 0 ? m->negative[0] : NAN;
    case MEASURE_true_negative:
        return labelled > 0 ? m->negative[1] : NAN;
    case MEASURE_false_negative:
        return labelled > 0 ? m->positive[1] : NAN;
    case MEASURES:
        break;
    }
    return NAN;
}
