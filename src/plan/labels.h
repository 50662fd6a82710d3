/*
 * Labels of classes. Losses of two classes have the labels -1 and 1; rows that have 0 and 1 mean the same, and become
 * -1 and 1 before anything is computed. Rows with both 0 and -1 are refused, because one of them would be a third
 * class.
 */
#ifndef HFSAD_PLAN_LABELS_H
#define HFSAD_PLAN_LABELS_H

#include "data/dataset.h"
#include "spec/settings.h"

/* What the rows of several clients have shown; all zero first. */
typedef struct {
    size_t zeros, minus_ones;       /* rows */
    char zero[100], minus_one[100]; /* the first of each, in words */
} label_signs;

/* The rows of one client, whose loss this is; classes: those of the run, 0: one score. */
void labels_settle_leaf(dataset *d, size_t leaf, const hfsad_loss *loss, size_t classes, label_signs *found);
/* Whether y, as it was read, is what has been settled. */
bool labels_same(const double *read, const double *settled, size_t count);
hfsad_status labels_check(const label_signs *found, hfsad_error *err);

/* Checks the rows of all clients against the losses of the spec, and that a table has as many labels as the loss
 * takes. */
hfsad_status labels_settle(dataset *d, const hfsad_spec *spec, hfsad_error *err);

/* "no is -1, yes is 1", to be freed; "" : there are none. */
char *labels_text(const dataset *d);

#endif
