/* Paths joined and whole files read. */
#ifndef HFSAD_BASE_READ_FILE_H
#define HFSAD_BASE_READ_FILE_H

#include <stddef.h>

/* path_join("a", "", "b") is "a/b": parts that are empty are left out. Free it. NULL: no memory. */
#define path_join(...) path_join_parts((const char *const[]){__VA_ARGS__, NULL})
char *path_join_parts(const char *const *parts);

/*
 * The bytes of a file, or of what can only be read from beginning to end (a FIFO), closed by a 0 that *size does not
 * count. Returns 0 or an errno: EISDIR for a folder, EFBIG if there are more than `most` bytes. Free *text.
 */
int file_read(const char *path, size_t most, char **text, size_t *size);

/*
 * The bytes of a regular file, mapped. Returns 0, an errno, or FILE_NOT_REGULAR. An empty file has no mapping: *bytes
 * is NULL. Does not wait for the writer of a FIFO. file_unmap takes what came of it.
 */
enum { FILE_NOT_REGULAR = -1 };
int file_map(const char *path, void **bytes, size_t *size);
void file_unmap(void *bytes, size_t size);

#endif
