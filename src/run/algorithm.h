/* The algorithms as everything that drives them sees them: one row for each family. Their steps are run/sim.h and
 * run/baseline.h, and in a federation net/node_parts.h. */
#ifndef HFSAD_RUN_ALGORITHM_H
#define HFSAD_RUN_ALGORITHM_H

#include "run/averaging.h"

typedef struct {
    bool links;   /* links have a state: residuals, state.csv, Theorem 1, the stop rule and the polish mean something */
    bool as_rows; /* the data must be in the table of rows */
    const char *remedy;                               /* what to try if the iterates do not stay finite */
    const char *unpolished, *unproven, *unreadmitted; /* without links: why there is none of these */
    /* What the spec asks for and cannot have, as a message; NULL: nothing. */
    const char *(*refuses)(const hfsad_spec *spec);
    const char *(*refuses_federation)(const hfsad_spec *spec);
    bool (*is_finite)(const hfsad_figures *f);
    /* The step that the settings leave to the data; NULL: it has none. */
    hfsad_status (*find_rule)(baseline_rule *rule, const hfsad_spec *spec, const dataset *d, const plan *p,
                              const double *start, const surveyor *ask, hfsad_error *err);
} algorithm_row;

/* By the spec's `algorithm`. */
const algorithm_row *algorithm_of(const hfsad_spec *spec);

/* What all clients are asked before training, in this process or in a federation. */
typedef struct {
    data_scales scales;
    plan *plan;
    double nu_f; /* of Theorem 1 */
    baseline_rule rule;
    bool consensus;   /* the run begins where all clients tied to one model end */
    char *start_kind; /* of the run */
} run_beginning;
/* start: M numbers, where the first stage begins. What was made is there on failure, too. */
hfsad_status run_begin(run_beginning *b, const hfsad_spec *spec, const dataset *d, const surveyor *ask, double *start,
                       hfsad_error *err);
/* run.start, or what stands for it. */
const char *run_start_kind(const hfsad_spec *spec, const plan *p, size_t n_inner);

#endif
