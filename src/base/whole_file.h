/*
 * Replaces whole files. New contents go to a temporary name in the same folder and replace the old file only when every
 * byte is on the disk. A reader sees the old file or the new one; a full disk leaves the old file unchanged. The
 * program must ignore SIGXFSZ, so that a file size limit arrives as an error.
 */
#ifndef HFSAD_BASE_WHOLE_FILE_H
#define HFSAD_BASE_WHOLE_FILE_H

#include "hfsad/hfsad.h"

#include <stdio.h>
#include <sys/types.h>

typedef struct {
    FILE *stream; /* write here without checking errors: whole_file_end checks */
    char *path, *temporary;
    int reason; /* errno of the first whole_file_put that failed */
} whole_file;

/* Opens folder/name for replacement. On failure nothing is left behind. */
hfsad_status whole_file_begin(whole_file *f, const char *folder, const char *name, hfsad_error *err);
/* The same for a path. mode: permissions of the new file, less the umask. A file that only its owner may read is not
 * buffered. */
hfsad_status whole_file_open(whole_file *f, const char *path, mode_t mode, hfsad_error *err);
/* fwrite that keeps the errno of a failure. */
void whole_file_put(whole_file *f, const void *bytes, size_t count);
/* Writes a CSV field of any length; it is quoted if it has a comma, a quote or a line break. suffix: the rest of the
 * field, which has none of these. */
void whole_file_put_field(whole_file *f, const char *text, const char *suffix);
/* Flushes, syncs and renames. On failure the temporary file is removed and the old file does not change. */
hfsad_status whole_file_end(whole_file *f, hfsad_error *err);
/* Gives up: removes the temporary file. Does nothing to a file that has ended or never begun (all members 0). */
void whole_file_drop(whole_file *f);

/* The two halves of whole_file_end, for files that change together: close all, then replace all. */
hfsad_status whole_file_close(whole_file *f, hfsad_error *err);
hfsad_status whole_file_replace(whole_file *f, hfsad_error *err);
/* Instead of whole_file_replace: fails if a file of this name exists. */
hfsad_status whole_file_place(whole_file *f, hfsad_error *err);
/* Makes the renames in a folder durable; whole_file_end does so too. */
hfsad_status folder_sync(const char *folder, hfsad_error *err);

/* The whole sequence for bytes in memory. */
hfsad_status whole_file_write(const char *folder, const char *name, const void *bytes, size_t count, hfsad_error *err);

/* Whether files can be written to this folder or, if it does not exist, whether it can be created. Creates nothing. */
hfsad_status folder_check(const char *path, hfsad_error *err);
/* Refuses an output within a folder of data, whether it exists or not, because the next reader would take it for a
 * client. Data that are not a folder, and names that begin with a dot, are accepted. */
/* An error if the output is the same file as one of the inputs; inputs that are NULL or missing are skipped. */
hfsad_status file_check_output(const char *output, const char *const *inputs, size_t count, hfsad_error *err);
hfsad_status folder_check_outside(const char *path, const char *data, hfsad_error *err);
/* Like mkdir -p. HFSAD_ERROR_INPUT on failure; folders that were created are then removed. */
hfsad_status folder_make(const char *path, hfsad_error *err);
/* The same. *made is for folder_unmake, which removes the folders that were created here and are empty. */
hfsad_status folder_make_new(const char *path, size_t *made, hfsad_error *err);
/* The same for a state folder: messages call it so, and only its owner may enter it. */
hfsad_status folder_make_state(const char *path, size_t *made, hfsad_error *err);
void folder_unmake(const char *path, size_t made);
/*
 * Locks the folder against other processes that call this function, until folder_unlock or the end of the process;
 * leaves no file behind. HFSAD_ERROR_INPUT if another process has the lock. *lock: -1 on a file system without locks,
 * which excludes no process.
 */
hfsad_status folder_lock(const char *path, int *lock, hfsad_error *err);
void folder_unlock(int lock);
/* Removes temporaries of these files whose processes have ended (SIGKILL, a crash). */
void folder_sweep(const char *folder, const char *const *names, size_t count);

#endif
