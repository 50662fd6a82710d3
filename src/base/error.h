/* One line of error text and its status; the library never prints and never exits. */
#ifndef HFSAD_BASE_ERROR_H
#define HFSAD_BASE_ERROR_H

#include "hfsad/hfsad.h"

/* Fills err (may be NULL) and returns status, so that `return error_set(...)` reads well. */
__attribute__((format(printf, 3, 4))) hfsad_status error_set(hfsad_error *err, hfsad_status status, const char *format,
                                                             ...);

hfsad_status error_memory(hfsad_error *err, size_t bytes, const char *what);

/* Levenshtein distance between short names (cut at 63 characters). */
size_t name_distance(const char *a, const char *b);

#endif
