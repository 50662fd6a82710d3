/* hfsad_state_folder: unique names, because names of nodes have no +. */
#include "hfsad/net.h"

#include "base/rng.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool hfsad_state_folder(const char *folder, const char *node, bool clients, char *path, size_t size)
{
    enum { NAME_MOST = 200 }; /* a folder's has 255 bytes at most */
    char print[20] = "";
    if (strlen(node) > NAME_MOST)
        snprintf(print, sizeof print, "++%016" PRIx64, rng_stream(node));
    const int length = snprintf(path, size, "%s/%.*s%s%s", folder, NAME_MOST, node, print, clients ? "++clients" : "");
    if (length < 0 || (size_t)length >= size)
        return false;
    for (char *c = path + strlen(folder) + 1; *c; c++)
        *c = *c == '/' ? '+' : *c;
    return true;
}
