/* Joins paths and reads whole files. */
#ifndef HFSAD_BASE_READ_FILE_H
#define HFSAD_BASE_READ_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Whether a spec's data or truth is no path but the words of `hfsad generate` (data/generated.h). */
static inline bool is_command(const char *text)
{
    return strncmp(text, "generate ", 9) == 0;
}

/* path_join("a", "", "b") is "a/b": empty parts are left out. The caller frees the result; NULL: no memory. */
#define path_join(...) path_join_parts((const char *const[]){__VA_ARGS__, NULL})
char *path_join_parts(const char *const *parts);

/*
 * Reads all bytes of a file, or of a stream such as a FIFO, and appends a terminating 0 that *size does not count.
 * Returns 0 or an errno: EISDIR for a folder, EFBIG for more than `most` bytes. The caller frees *text.
 */
int file_read(const char *path, size_t most, char **text, size_t *size);

/*
 * Maps a regular file. Returns 0, an errno, or FILE_NOT_REGULAR. An empty file has no mapping: *bytes is NULL. Does not
 * wait for the writer of a FIFO. file_unmap releases the mapping.
 */
enum { FILE_NOT_REGULAR = -1 };
int file_map(const char *path, void **bytes, size_t *size);
void file_unmap(void *bytes, size_t size);

#endif
