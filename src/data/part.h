/*
 * Several ranks (base/ranks.h) that read a part of the data each: of a CSV file the lines of a range of bytes, of a
 * folder tree the files of their clients. Every rank then has the whole tree, with the names and the number of rows of
 * all clients, and the rows of the clients of its units (shares.h). The rows have the places that they would have if
 * all were here, in memory that is taken when it is touched.
 */
#ifndef HFSAD_DATA_PART_H
#define HFSAD_DATA_PART_H

#include "data/folder.h"
#include "data/intake.h"

/* What the number of a model's coordinates follows from, together with the features: units depend on it. */
typedef struct {
    bool possible; /* the caller can work with rows that are not here */
    bool intercept;
    size_t scores; /* 0 counts as 1 */
} part_model;

/* All ranks call these three. */

/* *d is NULL, and the caller reads all of it, if the data cannot be read in parts, if the ranks see different files, or
 * if they have an error: a reader of the whole data can report it. */
hfsad_status dataset_read_part(dataset **d, const char *path, const table_settings *table, bool as_rows,
                               const part_model *model, hfsad_error *err);
/* Whether all ranks can read their part: the same file, or the same files. */
bool part_begin(intake *in, const char *path, const table_settings *table, const part_model *model);
/* After reading: the trees become one, and rows go to their rank. lines: of one file; otherwise of a folder tree. */
hfsad_status part_join(intake *in, bool lines);

/* Whether this rank reads file i of the tree: also the first, which the others must agree with. */
bool part_reads_file(const intake *in, const folder_tree *t, size_t i);

#endif
