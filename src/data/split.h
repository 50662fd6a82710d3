/* Rows that are kept from training, to judge a model by. */
#ifndef HFSAD_DATA_SPLIT_H
#define HFSAD_DATA_SPLIT_H

#include "data/dataset.h"

/*
 * Moves floor(share * rows) of every client's rows, but never all of them, from d, which has the row table, to *held: a
 * data set of rows only, with the clients of d in the same order and without their tree. The rows are drawn by (seed,
 * client). HFSAD_ERROR_INPUT if no row would move.
 */
hfsad_status dataset_split(dataset *d, double share, uint64_t seed, dataset **held, hfsad_error *err);

/* Fold `fold` of `folds`, counted from 0: the rows of every client, or the clients, are dealt over the folds by (seed,
 * client) or by seed. */
typedef struct {
    size_t fold, folds;
    bool clients;
    uint64_t seed;
} fold_rule;
/* *held: the rows of the fold; *train: all others. d has the row table and stays as it is. A client without rows is not
 * there. HFSAD_ERROR_INPUT if one of them would be empty. */
hfsad_status dataset_fold(const dataset *d, const fold_rule *rule, dataset **train, dataset **held, hfsad_error *err);

#endif
