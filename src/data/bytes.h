/* The bytes of a file, mapped if possible, and the checks of how a text begins. */
#ifndef HFSAD_DATA_BYTES_H
#define HFSAD_DATA_BYTES_H

#include "hfsad/hfsad.h"

enum { NAME_SHOWN = 300 /* bytes of a file name in a message */ };

/* The bytes [gone, kept) of a mapping have been unmapped. */
typedef struct {
    const char *bytes;
    size_t size;
    char *mapping, *block; /* the mapping, or the memory that holds the file */
    size_t gone, kept, block_capacity;
} file_bytes;

/* `expected` describes the expected file in messages. text: if the file is read and not mapped, reading ends at the
 * first block with a NUL, because such a file is an error anyway. Call bytes_close also after a failure. */
hfsad_status bytes_open(file_bytes *f, const char *path, bool text, const char *expected, hfsad_error *err);
void bytes_close(file_bytes *f);
/* States that the bytes between `body` and `at` are no longer needed; messages may still quote text before body. */
void bytes_release(file_bytes *f, const char *body, const char *at);
/* Releases the memory of all bytes read so far; reading them again takes longer. */
void bytes_forget(const file_bytes *f);

/* Skips a byte order mark. An empty file and a file that is not text are errors. */
hfsad_status text_begin(const char **at, const char *end, const char *name, const char *expected, hfsad_error *err);

#endif
