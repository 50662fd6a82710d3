/* The state folders of all processes of a federation on this machine, put together as one run. */
#ifndef HFSAD_NET_GATHER_H
#define HFSAD_NET_GATHER_H

#include "data/dataset.h"
#include "hfsad/net.h"

#include <stdbool.h>
#include <stddef.h>

/* Writes state.csv and checkpoint.bin of the run that these processes have trained, a federation of this shape, into
 * the folder with its other files. The cloud is the first process, and every node is in one of them. If the nodes are
 * not all at the cloud's last row, or the data has other nodes than the federation, *whole is false, nothing is written
 * and err->message says why. */
hfsad_status gather_states(const hfsad_spec *spec, const dataset *shape, const hfsad_tree_process *processes,
                           size_t count, const char *out, bool *whole, hfsad_error *err);

#endif
