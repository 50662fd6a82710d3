/*
 * The usual measures of predictions, from sums over rows that can be added up the tree. For rows with numbers: root
 * mean square and mean absolute error, R^2. For rows with labels -1 and 1 (positive): confusion matrix, F1, area under
 * the ROC curve, and for probabilities the calibration error. A row counts by its weight.
 */
#ifndef HFSAD_OUT_MEASURES_H
#define HFSAD_OUT_MEASURES_H

#include <stdbool.h>
#include <stddef.h>

typedef struct {
    double weight, squared, absolute; /* over the rows with numbers: sum of weights, of (y - p)^2 and of |y - p| */
    double mean, spread;              /* weighted mean of their y, and sum of (y - mean)^2 */
    double positive[2], negative[2];  /* weight of rows with y = 1, and y = -1: predicted 1, predicted -1 */
    double levelled, pinball;         /* weight of the rows with a level tau; sum of their pinball losses */
    double auc, calibration;          /* over all rows with labels; NAN: one class only, or no probabilities */
} measure_sums;

void measures_number(measure_sums *m, double weight, double y, double prediction);
/* max(tau r, (tau - 1) r) with r = y - prediction. */
void measures_level(measure_sums *m, double weight, double tau, double y, double prediction);
void measures_label(measure_sums *m, double weight, bool positive, bool predicted);
/* Adds sums. auc and calibration are not sums and do not change. */
void measures_add(measure_sums *to, const measure_sums *from);

/* A row with a label, for measures that need all rows at once. */
typedef struct {
    double score, weight, probability; /* NAN: the score is not a probability */
    bool positive;
} ranked_row;
/* Sorts the rows and sets auc and calibration. */
void measures_rank(measure_sums *m, ranked_row *rows, size_t count);

/* name, rows that have the measure */
typedef enum { ROWS_NUMBERS, ROWS_LABELS, ROWS_LEVELS } measured_rows;
#define MEASURE_LIST(X)                                                                                                \
    X(rmse, ROWS_NUMBERS)                                                                                              \
    X(mae, ROWS_NUMBERS)                                                                                               \
    X(r2, ROWS_NUMBERS)                                                                                                \
    X(auc, ROWS_LABELS)                                                                                                \
    X(f1, ROWS_LABELS)                                                                                                 \
    X(calibration, ROWS_LABELS)                                                                                        \
    X(true_positive, ROWS_LABELS)                                                                                      \
    X(false_positive, ROWS_LABELS)                                                                                     \
    X(true_negative, ROWS_LABELS)                                                                                      \
    X(false_negative, ROWS_LABELS)                                                                                     \
    X(pinball, ROWS_LEVELS)
#define MEASURE_MEMBER(name, labels) MEASURE_##name,
typedef enum { MEASURE_LIST(MEASURE_MEMBER) MEASURES } measure;
#undef MEASURE_MEMBER

extern const struct measure_kind {
    const char *name;
    measured_rows rows;
} measure_kinds[MEASURES];

/* NAN if no row counts or the measure is 0/0. */
double measure_of(const measure_sums *m, measure kind);

#endif
