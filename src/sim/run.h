/* hfsad_run: spec, data, plan, engine and clock in one handle. The report and the program read it through this. */
#ifndef HFSAD_SIM_RUN_H
#define HFSAD_SIM_RUN_H

#include "sim/baseline.h"
#include "sim/engine.h"
#include "sim/sim.h"

struct hfsad_run {
    dataset *data;
    plan *plan;
    const engine *engine;
    sim *sim;           /* NULL: a baseline trains */
    baseline *baseline; /* NULL: the simulator does */
    baseline_rule rule; /* of the baseline */
    pool *threads;
    double *truth; /* NULL: not known */
    double *start;
    char *start_kind;
    double seconds; /* spent in hfsad_run_iterate */
};

#endif
