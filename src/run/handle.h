/* hfsad_run: spec, data, plan, engine and clock in one handle. The report and the program read it through this. */
#ifndef HFSAD_RUN_HANDLE_H
#define HFSAD_RUN_HANDLE_H

#include "run/algorithm.h"
#include "run/baseline.h"
#include "run/engine.h"
#include "run/readmission.h"
#include "run/sim.h"

#include <stdatomic.h>

/* Groups of clients, found after the run (`personal: groups`). */
typedef struct {
    personal_result found; /* K = 0: none */
    char reason[200];      /* why there are no groups; "": found, or not tried since the last iteration */
    double seconds;
} run_personal;

typedef struct run_star run_star;

struct hfsad_run {
    dataset *data;
    plan *plan;
    data_scales scales; /* input of the plan */
    double nu_f;        /* of Theorem 1 */
    survey_cost before; /* bytes and questions before the first iteration */
    const algorithm_row *algorithm;
    const engine *engine;
    void *driver;       /* of an engine other than the two below; data and plan then belong to the caller */
    sim *sim;           /* NULL: a baseline or a federation trains */
    baseline *baseline; /* NULL: another engine trains */
    baseline_rule rule; /* of the baseline */
    pool *threads;
    double *truth; /* NULL: not known */
    double *start;
    char *start_kind;
    uint32_t start_index;  /* which of run.tries was kept; 0: the first */
    double seconds;        /* spent in hfsad_run_iterate */
    hfsad_spec *spec;      /* a copy, for checkpoints */
    hfsad_spec *resolved;  /* the same with the plan's numbers */
    atomic_bool cancelled; /* the training has to end: hfsad_run_cancel */
    bool timed_out;        /* the last training ended by run.stop.time */
    void *record;          /* of out/training.c; NULL: none yet */
    void (*record_free)(void *record);
    uint64_t data_print, truth_print; /* fingerprints (save.h); 0: not computed yet */
    double *polished;                 /* the model of all nodes; NULL: each node has the engine's model */
    double *owned;  /* polished models of all nodes, if nodes have their own intercepts; otherwise NULL */
    double best;    /* objective of `polished` if that is the best w_0 of all rows; otherwise NAN */
    double *errors; /* its standard errors in the units of the data; NULL: not known */
    void (*star_row)(void *context, const hfsad_figures *row); /* called with every row of a star; NULL: no hook */
    void *star_context;
    double star_begun;           /* on clock_seconds */
    hfsad_figures star;          /* its last row */
    bool has_star;               /* the star has a row since the last iteration */
    run_star *kept;              /* state of a path's star between two values of lambda; NULL: none */
    hfsad_polish polish;         /* its result; all zero: not tried since the last iteration */
    int unpolished;              /* replay: reason for which the polish failed (polish/task.h), 0: it did not */
    run_readmission *readmitted; /* in a federation, or by its record */
    size_t n_readmitted, readmitted_room;
    run_personal personal;
    hfsad_figures last;    /* of the last run_measure */
    hfsad_figures figures; /* of the last hfsad_run_measure */
    hfsad_verdict verdict; /* of the last hfsad_run_verdict */
};

/* The public functions of the same names with hfsad_, but into memory of the caller. */
hfsad_status run_measure(hfsad_run *run, hfsad_figures *figures, hfsad_error *err);
hfsad_status run_polish(hfsad_run *run, bool (*proceed)(void *context, const hfsad_polish *so_far), void *context,
                        hfsad_polish *result, hfsad_error *err);

/* For a path by star: each further polish continues from the slopes of the last one. The state of the path is the
 * model, the slope of each row, and sigma; slopes and sigma are 0 before the first star. */
typedef struct {
    double *slopes, *sigma;
    size_t count; /* number of slopes */
} run_star_state;
hfsad_status run_star_keep(hfsad_run *run, hfsad_error *err);
run_star_state run_star_at(hfsad_run *run);
void run_star_free(run_star *kept);

/* hfsad_run_verdict with this spec; stands: the run has not ended yet. */
void run_verdict(const hfsad_run *run, const hfsad_spec *spec, bool stands, hfsad_verdict *verdict);
/* Whether the objective is proven to be within this relative distance of its minimum. */
bool verdict_is_close(const hfsad_polish *polish, double gap);
/* Checks that all ranks (base/ranks.h) have got this far with the same spec, data and truth; status: this rank's
 * status. */
hfsad_status ranks_compare(hfsad_run *run, const hfsad_spec *spec, hfsad_status status, hfsad_error *err);
/* Moves the rounds of the run to the device of this name, such as "cuda" (device.h). Call it before the first round. An
 * error if the device cannot run this spec. */
hfsad_status run_use_device(hfsad_run *run, const char *name, hfsad_error *err);
/* Fills run->resolved from spec, plan and start. */
hfsad_status run_resolve(hfsad_run *run, hfsad_error *err);
/* Takes a row of the star: measures its figures, and sets the model of all nodes to the row's model. */
void run_take_star(hfsad_run *run, const polish_row *row);
/* The same if the figures are known already; w: M numbers. */
void run_take_star_figures(hfsad_run *run, const hfsad_figures *figures, const double *w);
/* The model from which a polish starts: the best w_0 of all rows, or the last. */
const double *run_best(const hfsad_run *run);
/* Discards the polished model: the run has the engine's models again. */
void run_unpolish(hfsad_run *run);
void run_ungroup(hfsad_run *run);
/* The model of an inner node, polished if there was a polish. */
static inline const double *run_inner_model(const hfsad_run *run, size_t i)
{
    return run->polished ? run->polished : run->engine->inner_model(run, i);
}

/* hfsad_run_create with data that has been read already; takes ownership of the data, also on failure. */
hfsad_status run_create_on(hfsad_run **run, const hfsad_spec *spec, dataset *data, unsigned threads, hfsad_error *err);
/* The same; data may be NULL. memory: the source of the rows; NULL: the spec's files. */
hfsad_status run_create_from(hfsad_run **run, const hfsad_spec *spec, dataset *data, hfsad_data *memory,
                             unsigned threads, hfsad_error *err);
/* For run_replay: leaves out the clients that were absent during the set-up of the federation. */
hfsad_status run_create_replay(hfsad_run **run, const hfsad_spec *spec, const char *record, unsigned threads,
                               hfsad_error *err);
/* hfsad_run_create without a survey: the scales of the data are known from another run. Either the run trains in this
 * process, from a state that is loaded afterwards (save.h), or `driver` trains it. */
typedef struct {
    data_scales scales;
    double nu_f;
    const char *start_kind;
    /* With a driver; otherwise all NULL. Data and plan belong to the caller and must outlive the run; the rest is
     * copied. */
    const engine *engine;
    void *driver;
    dataset *data;
    plan *plan;
    const double *start;
    const baseline_rule *rule;
} run_known;
hfsad_status run_create_known(hfsad_run **run, const hfsad_spec *spec, const run_known *known, hfsad_error *err);
/* Changes links and priors of the run; its state stays. */
hfsad_status run_replan(hfsad_run *run, const hfsad_spec *spec, hfsad_error *err);

/* The error that a number of this node does not fit into fixed point. */
hfsad_status run_too_large(const hfsad_run *r, size_t node, hfsad_error *err);

#endif
