/* "spec-state/edge1+client7", "spec-state/edge1++clients": the folder of a node's state, or of all clients of an inner
 * node; unique, because names have no +. */
#ifndef HFSAD_NET_STATE_PATH_H
#define HFSAD_NET_STATE_PATH_H

#include <stdbool.h>

/* The caller frees it; NULL: no memory. */
char *state_path(const char *folder, const char *path, bool clients);

#endif
