/*
 * Files of one folder that are replaced together. All files are written under temporary names; they replace the old
 * files only when every one of them is complete. If the batch is dropped before that, the folder does not change, and a
 * folder that was created for the batch is removed.
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
/* Adds a file to be written; the caller may close it early (whole_file_close). The batch owns it. NULL on failure. */
whole_file *file_batch_add(file_batch *b, const char *name, hfsad_error *err);
/* Closes and replaces all files. After a failure the batch must still be dropped. */
hfsad_status file_batch_commit(file_batch *b, hfsad_error *err);
/* Discards files that were not committed. Does nothing to a batch that was committed or never begun (all members 0). */
void file_batch_drop(file_batch *b);

#endif
