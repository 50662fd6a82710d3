/* Starts a run from a model that was trained before. */
#ifndef HFSAD_OUT_WARM_H
#define HFSAD_OUT_WARM_H

#include "out/model.h"
#include "run/handle.h"

/*
 * w, z and q of every node become that node's model; if the model has no such node, the model of its nearest ancestor.
 * Multipliers and counters are zero, so the run must not have iterated. path: an output folder or a model.csv. On
 * failure the run does not change.
 */
hfsad_status warm_start(hfsad_run *run, const char *path, hfsad_error *err);
/* The same from models in memory; path names them in messages and as the start. */
hfsad_status warm_start_from(hfsad_run *run, const model *m, const char *path, hfsad_error *err);

#endif
