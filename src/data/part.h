/*
 * Several ranks (base/ranks.h) read a part of the data each: the lines in a range of bytes of a CSV file, or the files
 * of their clients in a folder tree. Afterwards every rank has the whole tree, with the names and numbers of rows of
 * all clients, and the rows of the clients in its units (shares.h). These rows have the places that they would have
 * among all rows; memory for the other places is reserved and never touched.
 */
#ifndef HFSAD_DATA_PART_H
#define HFSAD_DATA_PART_H

#include "data/folder.h"
#include "data/intake.h"

/* Determines, with the number of features, how many coordinates a model has; the units depend on it. */
typedef struct {
    bool possible; /* the caller can work without the rows of other ranks */
    bool intercept;
    size_t scores; /* 0 counts as 1 */
} part_model;

/* All ranks call these functions together. */

/* *d is NULL, and the caller reads all data, if the data cannot be read in parts, the ranks see different files, or a
 * rank has an error: a reader of all data can report it. */
hfsad_status dataset_read_part(dataset **d, const char *path, const table_settings *table, bool as_rows,
                               const part_model *model, hfsad_error *err);
/* Whether all ranks can read their part: they see the same file, or the same files. */
bool part_begin(intake *in, const char *path, const table_settings *table, const part_model *model);
/* Called after reading: merges the trees, and sends rows to their rank. lines: the data are one file; otherwise a
 * folder tree. */
hfsad_status part_join(intake *in, bool lines);

/* Whether this rank reads file i of the tree. Every rank reads the first file, because other files are compared with
 * it. */
bool part_reads_file(const intake *in, const folder_tree *t, size_t i);

#endif
