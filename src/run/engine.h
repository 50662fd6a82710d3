/* What trains in a run: the simulator of HFSAD, a baseline, or the federation below a cloud. Everything else of a run
 * is the same for all. */
#ifndef HFSAD_RUN_ENGINE_H
#define HFSAD_RUN_ENGINE_H

#include "personal/grow.h"
#include "polish/polish.h"
#include "run/algorithm.h"
#include "run/readmission.h"
#include "spec/settings.h"

typedef struct {
    bool saves; /* the state of all links is here: state.csv and checkpoint.bin can be written */
    /* data, plan, start, truth and threads are there */
    hfsad_status (*create)(hfsad_run *r, const hfsad_spec *spec, hfsad_error *err);
    void (*iterate)(hfsad_run *r);
    /* Instead of `iterate`: trains to the next row of the trace, whose figures `measure` then returns. *stop:
     * HFSAD_STOP_RUNNING, or why this row is the last; HFSAD_STOP_INTERRUPTED: there is no new row. */
    hfsad_status (*next_row)(hfsad_run *r, hfsad_stop *stop, hfsad_error *err);
    void (*measure)(hfsad_run *r, hfsad_figures *figures);
    bool (*converged)(const hfsad_run *r);
    const double *(*inner_model)(const hfsad_run *r, size_t i);
    void (*leaf_model)(const hfsad_run *r, size_t leaf, double *w);
    /* Whether the node's model is here; NULL: always. */
    bool (*knows)(const hfsad_run *r, size_t node);
    /* Whether the end of an asynchronous run went without the node, or without a node above it; NULL: never. */
    run_absence (*absence)(const hfsad_run *r, size_t node);
    /* The safeguard's repairs so far; *last: the iteration of the last. Only of an algorithm with links. */
    uint64_t (*repairs)(const hfsad_run *r, uint64_t *last);
    /* The best w_0 of all rows and its objective; NULL: the last one is to be kept. A NULL function: always. */
    const double *(*best)(const hfsad_run *r, double *objective);
    /* The polish, from w to w; *why: the reason for which there is none, or NULL. A NULL function: polish_run.c asks
     * the clients of this process. */
    hfsad_status (*polish)(hfsad_run *r, double *w, polish_result *found, const char **why, hfsad_error *err);
    /* The groups, from the cloud's model; *why likewise. A NULL function: personal_run.c asks the clients of this
     * process. */
    hfsad_status (*groups)(hfsad_run *r, personal_result *found, const char **why, hfsad_error *err);
} engine;

/* In this process. */
const engine *engine_of(const algorithm_row *algorithm);

#endif
