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

/* Creates a file for rows of F numbers in a folder, which must exist. */
hfsad_status pages_create(row_pages **p, const char *folder, size_t F, hfsad_error *err);
void pages_free(row_pages *p);
const char *pages_folder(const row_pages *p);

/* Room for the next row, which pages_commit then stores; called before pages_map. */
double *pages_next(row_pages *p);
hfsad_status pages_commit(row_pages *p, hfsad_error *err);

/* Maps all rows (at least one), one after the other; they may be written until pages_seal. */
hfsad_status pages_map(row_pages *p, double **x, hfsad_error *err);
void pages_seal(row_pages *p);

/* Called before a row is read: F numbers of the mapping from `row` on. The rows of the last few calls stay in memory.
 * Other rows can be read too; they then count as memory in use until their block is released. */
void pages_visit(row_pages *p, const double *row);
/* Releases all memory of the mapping, because no reader needs it for a while. */
void pages_leave(row_pages *p);

#endif
