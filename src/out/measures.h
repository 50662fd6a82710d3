/*
 * Usual measures of predictions, from sums over rows that can be added up the tree. Rows with numbers: root mean square
 * and mean absolute error, R^2. Rows with labels -1 and 1, of which 1 is the positive: confusion matrix, F1, area under
 * the ROC curve, and for probabilities the calibration error. A row counts as much as its weight.
 */
#ifndef HFSAD_OUT_MEASURES_H
#define HFSAD_OUT_MEASURES_H

#include <stdbool.h>
#include <stddef.h>

typedef struct {
    double weight, squared, absolute; /* of the rows with numbers: sum of weights, of (y - p)^2 and |y - p| */
    double mean, spread;              /* weighted mean of their y, and sum of (y - mean)^2 */
    double positive[2], negative[2];  /* weight of rows with y = 1, and y = -1: predicted 1, predicted -1 */
    double auc, calibration;          /* of all rows with labels; NAN: there are not two classes, no probabilities */
} measure_sums;

void measures_number(measure_sums *m, double weight, double y, double prediction);
void measures_label(measure_sums *m, double weight, bool positive, bool predicted);
/* auc and calibration are not sums: they stay as they are. */
void measures_add(measure_sums *to, const measure_sums *from);

/* A row with a label, for what needs all rows at once. */
typedef struct {
    double score, weight, probability; /* NAN: the score is no probability */
    bool positive;
} ranked_row;
/* Sorts the rows; fills auc and calibration. */
void measures_rank(measure_sums *m, ranked_row *rows, size_t count);

/* name, whether it is of rows with labels. */
#define MEASURE_LIST(X)                                                                                                \
    X(rmse, false)                                                                                                     \
    X(mae, false)                                                                                                      \
    X(r2, false)                                                                                                       \
    X(auc, true)                                                                                                       \
    X(f1, true)                                                                                                        \
    X(calibration, true)                                                                                               \
    X(true_positive, true)                                                                                             \
    X(false_positive, true)                                                                                            \
    X(true_negative, true)                                                                                             \
    X(false_negative, true)
#define MEASURE_MEMBER(name, labels) MEASURE_##name,
typedef enum { MEASURE_LIST(MEASURE_MEMBER) MEASURES } measure;
#undef MEASURE_MEMBER

extern const struct measure_kind {
    const char *name;
    bool labels;
} measure_kinds[MEASURES];

/* NAN: no row counts, or it is 0/0. */
double measure_of(const measure_sums *m, measure kind);

#endif
