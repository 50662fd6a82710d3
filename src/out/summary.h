/* summary.json: settings, data, reason for stopping and final figures of a run. */
#ifndef HFSAD_OUT_SUMMARY_H
#define HFSAD_OUT_SUMMARY_H

#include "run/train.h"

/* Clients below an edge: the smallest and the largest number over the nodes that have clients. */
typedef struct {
    size_t least, most;
} clients_per_edge;
clients_per_edge count_clients(const dataset *d);

/* Number of coefficients of the cloud's model that are not exactly zero. */
size_t count_nonzero(const hfsad_run *run);

/* The name of the training algorithm. */
const char *summary_algorithm(const hfsad_run *run, const hfsad_spec *spec);
/* The text, which the caller frees with free(); NULL: no memory. */
char *summary_text(const hfsad_run *run, const hfsad_spec *spec, const theorem_report *theorem,
                   const hfsad_figures *figures, stop_reason stopped);

#endif
