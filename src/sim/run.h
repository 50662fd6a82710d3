/* hfsad_run: spec, data, plan, simulator and clock in one handle. The report and the program read it through this. */
#ifndef HFSAD_SIM_RUN_H
#define HFSAD_SIM_RUN_H

#include "sim/sim.h"

struct hfsad_run {
    dataset *data;
    plan *plan;
    sim *sim;
    pool *threads;
    double *truth; /* NULL: not known */
    double *start;
    char *start_kind;
    double seconds;   /* spent in hfsad_run_iterate */
    hfsad_spec *spec; /* a copy, for checkpoints */
    uint64_t data_print, truth_print; /* of save.h; 0: not taken yet */
};

#endif
