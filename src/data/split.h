/* Rows that are kept out of training, to evaluate a model. */
#ifndef HFSAD_DATA_SPLIT_H
#define HFSAD_DATA_SPLIT_H

#include "data/dataset.h"

/*
 * Moves floor(share * rows) rows of every client, but never all of them, from d to *held. d has the row table. *held is
 * a data set of rows only, with the clients of d in the same order and without their tree. The rows are drawn by (seed,
 * client). HFSAD_ERROR_INPUT if no row would move.
 */
hfsad_status dataset_split(dataset *d, double share, uint64_t seed, dataset **held, hfsad_error *err);

/* Fold `fold` of `folds`, counted from 0. The rows of every client are dealt over the folds by (seed, client), or the
 * clients by seed. */
typedef struct {
    size_t fold, folds;
    bool clients;
    uint64_t seed;
} fold_rule;
/* *held: the rows of the fold; *train: all other rows. d has the row table and does not change. A client without rows
 * is left out. HFSAD_ERROR_INPUT if one of the two would be empty. */
hfsad_status dataset_fold(const dataset *d, const fold_rule *rule, dataset **train, dataset **held, hfsad_error *err);

#endif
