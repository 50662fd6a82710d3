/* Texts as files that come into being whole, readable by their owner alone if they are secret; used by keys.c. */
#ifndef HFSAD_NET_KEYS_FILE_H
#define HFSAD_NET_KEYS_FILE_H

#include "hfsad/hfsad.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct {
    char *name; /* with its folder */
    char *text;
    size_t length;
    bool secret, replace;
} key_file;

/* Files to be, written together. */
typedef struct {
    key_file *files;
    size_t count, capacity;
} key_files;

/* Takes text over, also on failure; text NULL: no memory was left for it. */
hfsad_status key_files_add(key_files *f, const char *dir, const char *name, char *text, size_t length, bool secret,
                           bool replace, hfsad_error *err);
void key_files_free(key_files *f);
/* An error if a file exists that may not be replaced. */
hfsad_status key_files_check(const key_files *f, hfsad_error *err);
/* Writes all. On failure new ones are removed again. */
hfsad_status key_files_write(const key_files *f, hfsad_error *err);

/* mkdir -p of the folder that `name` is in, below `dir`, for the owner alone; dir itself as well if name is "". */
hfsad_status key_folder_make(const char *dir, const char *name, hfsad_error *err);
/* The whole text, closed by a 0; free it. NULL with err set: it cannot be read. */
char *key_file_read(const char *dir, const char *name, hfsad_error *err);

#endif
