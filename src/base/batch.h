/*
 * Files of one folder that are replaced together: all are written under temporary names, and only when every one of
 * them is whole do they take their places. Given up before that, the folder is as it was, and gone again where it was
 * made for them.
 */
#ifndef HFSAD_BASE_BATCH_H
#define HFSAD_BASE_BATCH_H

#include "base/whole_file.h"

enum { BATCH_MOST = 32 };

typedef struct {
    char *folder;
    size_t made; /* for folder_unmake */
    size_t count;
    whole_file files[BATCH_MOST];
} file_batch;

/* Creates the folder if it is missing. On failure nothing is left behind. */
hfsad_status file_batch_begin(file_batch *b, const char *folder, hfsad_error *err);
/* One more file, to be written and, if that is wanted early, closed (whole_file_close). It lives as long as the batch;
 * NULL on failure. */
whole_file *file_batch_add(file_batch *b, const char *name, hfsad_error *err);
/* Closes all, replaces all. On failure the batch is still to be dropped. */
hfsad_status file_batch_commit(file_batch *b, hfsad_error *err);
/* Gives up what was not committed. Does nothing to a batch that was committed or never begun (all zero). */
void file_batch_drop(file_batch *b);

#endif
