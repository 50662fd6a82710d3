/* See state_path.h. */
#include "net/state_path.h"

#include "base/rng.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *state_path(const char *folder, const char *path, bool clients)
{
    enum { NAME_MOST = 200 }; /* a folder's has 255 bytes at most */
    const char *ending = clients ? "++clients" : "";
    const size_t size = strlen(folder) + NAME_MOST + 40;
    char *made = malloc(size);
    if (!made)
        return NULL;
    const int at = snprintf(made, size, "%s/%.*s", folder, NAME_MOST, path);
    for (char *c = made + strlen(folder) + 1; *c; c++)
        *c = *c == '/' ? '+' : *c;
    if (strlen(path) > NAME_MOST)
        snprintf(made + at, size - (size_t)at, "++%016" PRIx64 "%s", rng_stream(path), ending);
    else
        snprintf(made + at, size - (size_t)at, "%s", ending);
    return made;
}
