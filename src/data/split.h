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

#endif
