/*
 * The groups' models as the cloud's last question of `personal: groups` had them, in memory and in the state folder of
 * a process with clients. A client's weights and its own model follow from them and from its rows, so they need not
 * leave the client. The file is written before the question is answered: a client that is killed afterwards is not
 * asked again.
 */
#ifndef HFSAD_NET_KEPT_GROUPS_H
#define HFSAD_NET_KEPT_GROUPS_H

#include "hfsad/hfsad.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* File in the state folder: run, count, numbers, each 8 bytes; CRC-32C of all these, 4 bytes. */
#define KEPT_GROUPS_NAME "groups.last"

typedef struct {
    size_t count; /* 0: none */
    double *numbers;
} kept_groups;

/* folder may be NULL: the groups last as long as the process. Writes nothing if they are kept already. */
hfsad_status kept_groups_put(kept_groups *k, const char *folder, uint64_t run, const double *numbers, size_t count,
                             hfsad_error *err);
/* Reads the file unless the groups are in memory. A missing file, or another run's, leaves count 0; a damaged one is an
 * error. most: limit on count. */
hfsad_status kept_groups_get(kept_groups *k, const char *folder, uint64_t run, size_t most, hfsad_error *err);
void kept_groups_free(kept_groups *k);

#endif
