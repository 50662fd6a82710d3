/* The table of algorithms: one row for each family. Their steps are in run/sim.h and run/baseline.h; those of a
 * federation are in net/node_parts.h. */
#ifndef HFSAD_RUN_ALGORITHM_H
#define HFSAD_RUN_ALGORITHM_H

#include "run/averaging.h"

typedef struct {
    bool links;   /* links have a state: residuals, state.csv, Theorem 1, the stop rule and the polish mean something */
    bool as_rows; /* the data must be in the table of rows */
    const char *remedy; /* advice if the iterates diverge */
    const char *unpolished, *unproven,
        *unreadmitted; /* without links: why polish, proof and readmission are not available */
    /* The message if the algorithm cannot do what the spec asks for; NULL: it can. */
    const char *(*refuses)(const hfsad_spec *spec);
    const char *(*refuses_federation)(const hfsad_spec *spec);
    bool (*is_finite)(const hfsad_figures *f);
    /* Finds a step size that the settings leave to the data; NULL: the algorithm has none. */
    hfsad_status (*find_rule)(baseline_rule *rule, const hfsad_spec *spec, const dataset *d, const plan *p,
                              const double *start, const surveyor *ask, hfsad_error *err);
} algorithm_row;

/* The row for the spec's `algorithm`. */
const algorithm_row *algorithm_of(const hfsad_spec *spec);

/* The survey: what all clients are asked before training, in this process or in a federation. */
typedef struct {
    data_scales scales;
    plan *plan;
    double nu_f; /* of Theorem 1 */
    baseline_rule rule;
    bool consensus;   /* the run starts from the model of a preceding training with all clients tied to one model */
    char *start_kind; /* of the run */
} run_beginning;
/* start: M numbers, the start of the first stage. On failure the caller frees what has been made so far. */
hfsad_status run_begin(run_beginning *b, const hfsad_spec *spec, const dataset *d, const surveyor *ask, double *start,
                       hfsad_error *err);
/* run.start, or its replacement if it is auto. */
const char *run_start_kind(const hfsad_spec *spec, const plan *p, size_t n_inner);

#endif
