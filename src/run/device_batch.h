/*
 * Many independent runs of one shape on a device at once (device.h), for problems that are too small to fill it. Each
 * run has the bits that it has alone on the processor. Only the clouds' models come back.
 */
#ifndef HFSAD_RUN_DEVICE_BATCH_H
#define HFSAD_RUN_DEVICE_BATCH_H

#include "run/sim.h"

typedef struct device_batch device_batch;

/* Why a run like s cannot be part of a batch; NULL: it can. */
const char *device_batch_refuses(const sim *s);
/* sims: before their first iteration, n of them, of the same tree, features, loss and number of edge rounds. Their
 * state is copied; they and their data need not stay. */
hfsad_status device_batch_create(device_batch **b, sim *const *sims, size_t n, const char *device, hfsad_error *err);
/* One global iteration of all runs. */
hfsad_status device_batch_iterate(device_batch *b, hfsad_error *err);
const double *device_batch_cloud(const device_batch *b, size_t run);
void device_batch_free(device_batch *b);

#endif
