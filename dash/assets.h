/* The files of web/ and the chart library, built into the program. */
#ifndef HFSAD_DASH_ASSETS_H
#define HFSAD_DASH_ASSETS_H

#include <stddef.h>

typedef struct {
    const char *path, *type;
    const unsigned char *bytes;
    size_t size;
} asset;

extern const asset assets[]; /* closed by an empty path; made by cmake/assets.cmake */

/* NULL: there is none. */
const asset *asset_find(const char *path);

#endif
