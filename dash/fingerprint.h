/* SHA-256 of texts, files and folders, as hexadecimal digits. */
#ifndef HFSAD_DASH_FINGERPRINT_H
#define HFSAD_DASH_FINGERPRINT_H

#include <stdbool.h>
#include <stddef.h>

enum { FINGERPRINT_SIZE = 72 };

void fingerprint_bytes(const void *bytes, size_t size, char hash[FINGERPRINT_SIZE]);
/* The hash of a file's content; of a folder, the hash of the sorted names of all files below it and their contents.
 * Files and folders of more than 1 GiB are identified by names, sizes and times instead; the text then begins with
 * "stat:". false: the data cannot be read. */
bool fingerprint_path(const char *path, char hash[FINGERPRINT_SIZE]);

#endif
