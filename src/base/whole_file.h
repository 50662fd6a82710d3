/*
 * Files replaced whole. What is written goes to a temporary name in the same folder; only when every byte is on the
 * disk does it take the place of the old file. A reader sees the old file or the new one, and a full disk leaves the
 * old one as it was. The program must ignore SIGXFSZ, so that a file size limit arrives as an error.
 */
#ifndef HFSAD_BASE_WHOLE_FILE_H
#define HFSAD_BASE_WHOLE_FILE_H

#include "hfsad/hfsad.h"

#include <stdio.h>
#include <sys/types.h>

typedef struct {
    FILE *stream; /* write here, without checking: the end checks */
    char *path, *temporary;
    int reason; /* errno of the first whole_file_put that failed */
} whole_file;

/* Opens folder/name for replacement. On failure nothing is left behind. */
hfsad_status whole_file_begin(whole_file *f, const char *folder, const char *name, hfsad_error *err);
/* The same for a path. mode: of the new file, less the umask; what only its owner may read goes past the buffer. */
hfsad_status whole_file_open(whole_file *f, const char *path, mode_t mode, hfsad_error *err);
/* fwrite that remembers why it failed. */
void whole_file_put(whole_file *f, const void *bytes, size_t count);
/* A field of a CSV file, of any length: quoted if it has a comma, a quote or a line break. suffix: the rest of
 * it, which has none of them. */
void whole_file_put_field(whole_file *f, const char *text, const char *suffix);
/* Flushes, syncs and renames; on failure the temporary is gone and the old file is untouched. */
hfsad_status whole_file_end(whole_file *f, hfsad_error *err);
/* Gives up: the temporary is removed. Does nothing to a file that has ended or never begun (all zero). */
void whole_file_drop(whole_file *f);

/* The two halves of whole_file_end, for several files that are to change together: close all, then replace all. */
hfsad_status whole_file_close(whole_file *f, hfsad_error *err);
hfsad_status whole_file_replace(whole_file *f, hfsad_error *err);
/* In place of whole_file_replace: fails where a file of that name is there. */
hfsad_status whole_file_place(whole_file *f, hfsad_error *err);
/* Makes the renames in a folder lasting; whole_file_end does it too. */
hfsad_status folder_sync(const char *folder, hfsad_error *err);

/* All of the above for bytes in memory. */
hfsad_status whole_file_write(const char *folder, const char *name, const void *bytes, size_t count, hfsad_error *err);

/* Whether files can be written to this folder or, where it does not exist, whether it can be made. Makes nothing. */
hfsad_status folder_check(const char *path, hfsad_error *err);
/* Refuses an output, there or not, within a folder of data, where the next reader would take it for a client. A data
 * that is no folder is passed over, and so are names that begin with a dot. */
/* Error if the output is the same file as one of the inputs; inputs that are NULL or missing are skipped. */
hfsad_status file_check_output(const char *output, const char *const *inputs, size_t count, hfsad_error *err);
hfsad_status folder_check_outside(const char *path, const char *data, hfsad_error *err);
/* mkdir -p; HFSAD_ERROR_INPUT on failure, and then nothing is left of what was made. */
hfsad_status folder_make(const char *path, hfsad_error *err);
/* The same; *made is for folder_unmake, which removes the folders that were made here, as far as they are empty. */
hfsad_status folder_make_new(const char *path, size_t *made, hfsad_error *err);
/* The same for a state folder, which messages call so, and which only its owner may enter. */
hfsad_status folder_make_state(const char *path, size_t *made, hfsad_error *err);
void folder_unmake(const char *path, size_t made);
/*
 * Locks the folder against other processes that call this, until folder_unlock or the end of the process; leaves no
 * file behind. HFSAD_ERROR_INPUT if another process has the lock. *lock: -1 on a file system without locks, which
 * excludes nobody.
 */
hfsad_status folder_lock(const char *path, int *lock, hfsad_error *err);
void folder_unlock(int lock);
/* Removes the temporaries of these files that processes left which are no more (SIGKILL, a crash). */
void folder_sweep(const char *folder, const char *const *names, size_t count);

#endif
