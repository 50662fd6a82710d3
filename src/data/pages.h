/*
 * Dense rows in a scratch file instead of memory: written in sequence, then mapped. A reader announces each row, and
 * the block read longest ago is released, so that only a few blocks of rows are in the memory of the process. The
 * kernel caches as much of the file as free memory allows. The file has no name, so nothing is left behind when the
 * process ends. One thread at a time.
 */
#ifndef HFSAD_DATA_PAGES_H
#define HFSAD_DATA_PAGES_H

#include "hfsad/hfsad.h"

typedef struct row_pages row_pages;

/* A file for rows of F numbers in a folder, which must exist. */
hfsad_status pages_create(row_pages **p, const char *folder, size_t F, hfsad_error *err);
void pages_free(row_pages *p);
const char *pages_folder(const row_pages *p);

/* Room for the next row, which pages_commit then keeps; before pages_map. */
double *pages_next(row_pages *p);
hfsad_status pages_commit(row_pages *p, hfsad_error *err);

/* All rows, at least one, one after the other; they may be written to until pages_seal. */
hfsad_status pages_map(row_pages *p, double **x, hfsad_error *err);
void pages_seal(row_pages *p);

/* Before a row is read: F numbers of the mapping from `row` on. The rows that the last few calls named stay in memory;
 * the others may be read as well, and count as memory in use until their turn comes again. */
void pages_visit(row_pages *p, const double *row);
/* Nobody reads for a while: gives all of it back. */
void pages_leave(row_pages *p);

#endif
