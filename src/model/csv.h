/* Readers of CSV data and of files of numbers, over bytes in memory: what files and fuzzers share. */
#ifndef HFSAD_MODEL_CSV_H
#define HFSAD_MODEL_CSV_H

#include "model/dataset.h"

/* `name` stands for the file in messages, as_rows as in dataset_read. On failure *d is NULL. */
hfsad_status csv_parse(const char *bytes, size_t size, const char *name, bool as_rows, dataset **d, hfsad_error *err);
/* See vector_read. */
hfsad_status vector_parse(double *values, size_t count, const char *bytes, size_t size, const char *name,
                          const char *what, hfsad_error *err);

#endif
