/* Rows that are kept from training, to judge a model by. */
#ifndef HFSAD_DATA_SPLIT_H
#define HFSAD_DATA_SPLIT_H

#include "data/dataset.h"

/*
 * Takes floor(share * rows) of every client's rows, but never all of them, out of d, which has the row table, and puts
 * them into *held: a data set of rows only, with the clients of d in the same order and without their tree. Which rows
 * is a draw by (seed, client). HFSAD_ERROR_INPUT where that is none at all.
 */
hfsad_status dataset_split(dataset *d, double share, uint64_t seed, dataset **held, hfsad_error *err);

#endif
