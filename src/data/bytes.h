/* The bytes of a file, mapped where that can be, and how a text begins. */
#ifndef HFSAD_DATA_BYTES_H
#define HFSAD_DATA_BYTES_H

#include "hfsad/hfsad.h"

enum { NAME_SHOWN = 300 /* bytes of a file's name in a message */ };

/* Of a mapping, [gone, kept) has been given back. */
typedef struct {
    const char *bytes;
    size_t size;
    char *mapping, *block; /* where it is mapped, or the memory it was read to */
    size_t gone, kept, block_capacity;
} file_bytes;

/* `expected` says what the file should be, for messages. text: what is read and not mapped ends at the first block with
 * a NUL, since such a file is refused anyway. bytes_close also after a failure. */
hfsad_status bytes_open(file_bytes *f, const char *path, bool text, const char *expected, hfsad_error *err);
void bytes_close(file_bytes *f);
/* Says that nothing between `body` and `at` is needed any more; messages may quote what lies before body. */
void bytes_release(file_bytes *f, const char *body, const char *at);
/* Gives back the memory of what has been read so far; reading it again takes longer. */
void bytes_forget(const file_bytes *f);

/* Steps over a byte order mark. Refuses an empty text and what is no text at all. */
hfsad_status text_begin(const char **at, const char *end, const char *name, const char *expected, hfsad_error *err);

#endif
