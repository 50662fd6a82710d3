/* The engine of a run trains it: the simulator of HFSAD, a baseline, or the federation below a cloud. Everything else
 * in a run is the same for all engines. */
#ifndef HFSAD_RUN_ENGINE_H
#define HFSAD_RUN_ENGINE_H

#include "personal/grow.h"
#include "polish/polish.h"
#include "run/algorithm.h"
#include "run/readmission.h"
#include "spec/settings.h"

typedef struct {
    bool saves; /* the engine has the state of all links, so state.csv and checkpoint.bin can be written */
    /* Called when data, plan, start, truth and threads are set. */
    hfsad_status (*create)(hfsad_run *r, const hfsad_spec *spec, hfsad_error *err);
    void (*iterate)(hfsad_run *r);
    /* Instead of `iterate`: trains to the next row of the trace, whose figures `measure` then returns. *stop:
     * HFSAD_STOP_RUNNING, or why this row is the last; HFSAD_STOP_INTERRUPTED: there is no new row. */
    hfsad_status (*next_row)(hfsad_run *r, hfsad_stop *stop, hfsad_error *err);
    /* An error: the state is not valid; the figures are set nevertheless. */
    hfsad_status (*measure)(hfsad_run *r, hfsad_figures *figures, hfsad_error *err);
    bool (*converged)(const hfsad_run *r);
    /* Completes the state of all links before it is read; last: after the last row. NULL: nothing to do. */
    void (*settle)(hfsad_run *r, bool last);
    const double *(*inner_model)(const hfsad_run *r, size_t i);
    void (*leaf_model)(const hfsad_run *r, size_t leaf, double *w);
    /* Whether the engine has the node's model; NULL: always. */
    bool (*knows)(const hfsad_run *r, size_t node);
    /* Whether the end of an asynchronous run lacks the node or a node above it; NULL: never. */
    run_absence (*absence)(const hfsad_run *r, size_t node);
    /* The number of the safeguard's repairs; *last: the iteration of the last one. Only for algorithms with links. */
    uint64_t (*repairs)(const hfsad_run *r, uint64_t *last);
    /* The best w_0 of all rows, and its objective; NULL, or a NULL function: the run keeps the last w_0. */
    const double *(*best)(const hfsad_run *r, double *objective);
    /* Polishes w in place; *why: the reason for a failure, or NULL. A NULL function: polish_run.c asks the clients of
     * this process. */
    hfsad_status (*polish)(hfsad_run *r, double *w, polish_result *found, const char **why, hfsad_error *err);
    /* Finds groups, starting from the cloud's model; *why as above. A NULL function: personal_run.c asks the clients of
     * this process. */
    hfsad_status (*groups)(hfsad_run *r, personal_result *found, const char **why, hfsad_error *err);
} engine;

/* The engines of this process. */
const engine *engine_of(const algorithm_row *algorithm);

#endif
