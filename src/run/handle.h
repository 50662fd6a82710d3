/* hfsad_run: spec, data, plan, engine and clock in one handle. The report and the program read it through this. */
#ifndef HFSAD_RUN_HANDLE_H
#define HFSAD_RUN_HANDLE_H

#include "run/algorithm.h"
#include "run/baseline.h"
#include "run/engine.h"
#include "run/readmission.h"
#include "run/sim.h"

#include <stdatomic.h>

/* The groups that were found after the run (`personal: groups`). */
typedef struct {
    personal_result found; /* K = 0: none */
    char reason[200];      /* why there are none; "": not tried since the last iteration, or they are there */
    double seconds;
} run_personal;

typedef struct run_star run_star;

struct hfsad_run {
    dataset *data;
    plan *plan;
    data_scales scales; /* what the plan was made from */
    double nu_f;        /* of Theorem 1 */
    survey_cost before; /* what was sent before the first iteration */
    const algorithm_row *algorithm;
    const engine *engine;
    void *driver;       /* of an engine that is neither of these; data and plan are then the caller's */
    sim *sim;           /* NULL: a baseline trains, or a federation */
    baseline *baseline; /* NULL: the simulator does */
    baseline_rule rule; /* of the baseline */
    pool *threads;
    double *truth; /* NULL: not known */
    double *start;
    char *start_kind;
    uint32_t start_index;  /* which of run.tries was kept; 0: the first */
    double seconds;        /* spent in hfsad_run_iterate */
    hfsad_spec *spec;      /* a copy, for checkpoints */
    hfsad_spec *resolved;  /* the same with the plan's numbers */
    atomic_bool cancelled; /* the training is to end; hfsad_run_cancel */
    bool timed_out;        /* the last training ended by run.stop.time */
    void *record;          /* what out/training.c keeps beside the run; NULL: nothing yet */
    void (*record_free)(void *record);
    uint64_t data_print, truth_print; /* of save.h; 0: not taken yet */
    double *polished;                 /* the model of all nodes; NULL: each node has that of the engine */
    double *owned;                    /* polished: all coordinates, if nodes have intercepts of their own; or NULL */
    double best;                      /* objective of `polished`, if that is the best w_0 of all rows; NAN: it is not */
    double *errors;                   /* its standard errors in the units of the data; NULL: not known */
    void (*star_row)(void *context, const hfsad_figures *row); /* gets the rows of a star; NULL: no hook */
    void *star_context;
    double star_begun;           /* on clock_seconds */
    hfsad_figures star;          /* its last row */
    bool has_star;               /* there is one, since the last iteration */
    run_star *kept;              /* of a path's star from one lambda to the next; NULL: nothing */
    hfsad_polish polish;         /* its result; all zero: not tried since the last iteration */
    int unpolished;              /* replayed: how the polish failed (polish/task.h), 0: it did not */
    run_readmission *readmitted; /* in a federation, or by its record */
    size_t n_readmitted, readmitted_room;
    run_personal personal;
    hfsad_figures last;    /* of the last run_measure */
    hfsad_figures figures; /* of the last hfsad_run_measure */
    hfsad_verdict verdict; /* of the last hfsad_run_verdict */
};

/* The public functions of these names without hfsad_, into memory of the caller. */
hfsad_status run_measure(hfsad_run *run, hfsad_figures *figures, hfsad_error *err);
hfsad_status run_polish(hfsad_run *run, bool (*proceed)(void *context, const hfsad_polish *so_far), void *context,
                        hfsad_polish *result, hfsad_error *err);

/* From now on each polish of the run goes on from the slopes of the last one, for a path by star. They are state of the
 * path, together with the model: slopes of each row, and sigma, all 0 for a first star. */
typedef struct {
    double *slopes, *sigma;
    size_t count; /* of slopes */
} run_star_state;
hfsad_status run_star_keep(hfsad_run *run, hfsad_error *err);
run_star_state run_star_at(hfsad_run *run);
void run_star_free(run_star *kept);

/* hfsad_run_verdict by this spec; stands: the run has not come to its end. */
void run_verdict(const hfsad_run *run, const hfsad_spec *spec, bool stands, hfsad_verdict *verdict);
/* Whether the objective is proven to be this close to its minimum, relatively. */
bool verdict_is_close(const hfsad_polish *polish, double gap);
/* Whether all ranks (base/ranks.h) have come here, with the same spec, data and truth; status: this rank's, so far. */
hfsad_status ranks_compare(hfsad_run *run, const hfsad_spec *spec, hfsad_status status, hfsad_error *err);
/* The rounds of the run go to the device of this name, such as "cuda", from now on (device.h); before the first round.
 * The error says what the device cannot do. */
hfsad_status run_use_device(hfsad_run *run, const char *name, hfsad_error *err);
/* Fills run->resolved from spec, plan and start. */
hfsad_status run_resolve(hfsad_run *run, hfsad_error *err);
/* A row of the star: its figures, and its model becomes that of all nodes. */
void run_take_star(hfsad_run *run, const polish_row *row);
/* The same where the figures are known already; w: M numbers. */
void run_take_star_figures(hfsad_run *run, const hfsad_figures *figures, const double *w);
/* Where a polish begins: the best w_0 of all rows, or the last. */
const double *run_best(const hfsad_run *run);
/* Back to the engine's models. */
void run_unpolish(hfsad_run *run);
void run_ungroup(hfsad_run *run);
/* The model of an inner node, as the run has it. */
static inline const double *run_inner_model(const hfsad_run *run, size_t i)
{
    return run->polished ? run->polished : run->engine->inner_model(run, i);
}

/* hfsad_run_create on a data set that was read already, which it takes, also on failure. */
hfsad_status run_create_on(hfsad_run **run, const hfsad_spec *spec, dataset *data, unsigned threads, hfsad_error *err);
/* The same; data may be NULL. memory: where the rows are from; NULL: the spec's files. */
hfsad_status run_create_from(hfsad_run **run, const hfsad_spec *spec, dataset *data, hfsad_data *memory,
                             unsigned threads, hfsad_error *err);
/* For run_replay: without the clients that were not there at the set-up of the federation. */
hfsad_status run_create_replay(hfsad_run **run, const hfsad_spec *spec, const char *record, unsigned threads,
                               hfsad_error *err);
/* hfsad_run_create without asking the data for anything: scales and what came of them are known from a run that was
 * made elsewhere. It trains in this process, and its state is put in afterwards (save.h); or it trains where `driver`
 * is. */
typedef struct {
    data_scales scales;
    double nu_f;
    const char *start_kind;
    /* Of a driver; otherwise all NULL. Data and plan belong to the caller and outlive the run; the rest is copied. */
    const engine *engine;
    void *driver;
    dataset *data;
    plan *plan;
    const double *start;
    const baseline_rule *rule;
} run_known;
hfsad_status run_create_known(hfsad_run **run, const hfsad_spec *spec, const run_known *known, hfsad_error *err);
/* Other settings of links and priors for the same run, whose state stays. */
hfsad_status run_replan(hfsad_run *run, const hfsad_spec *spec, hfsad_error *err);

/* A number of this node does not fit into fixed point. */
hfsad_status run_too_large(const hfsad_run *r, size_t node, hfsad_error *err);

#endif
