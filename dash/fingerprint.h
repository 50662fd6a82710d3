/* SHA-256 of texts, files and folders, as hexadecimal digits. */
#ifndef HFSAD_DASH_FINGERPRINT_H
#define HFSAD_DASH_FINGERPRINT_H

#include <stdbool.h>
#include <stddef.h>

enum { FINGERPRINT_SIZE = 72 };

void fingerprint_bytes(const void *bytes, size_t size, char hash[FINGERPRINT_SIZE]);
/* A file by its content; a folder by the sorted names of all files below it and their content. More than 1 GiB is
 * told apart by names, sizes and times instead, and the text then begins with "stat:". false: it cannot be read. */
bool fingerprint_path(const char *path, char hash[FINGERPRINT_SIZE]);

#endif
