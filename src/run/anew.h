/*
 * Readmissions of a federation, in the simulator: the link of a lost node, and all links below it, restart from the
 * parent's model (net/node_admit.c). The cloud writes a line for each into its record; in synchronous training the
 * record has only these lines:
 *
 *     cloud  admitted  iteration  round  where  path
 *
 * iteration: the first iteration whose row includes the restart; where: anew_where. If a node went back to an earlier
 * place, all nodes below it went back too, and their readmissions there or later are void.
 */
#ifndef HFSAD_RUN_ANEW_H
#define HFSAD_RUN_ANEW_H

#include "run/handle.h"

typedef struct anew {
    uint64_t round;
    anew_where where; /* BEFORE or AFTER */
    size_t node;      /* inner nodes first, then leaves */
} anew;

/* Synchronous: takes over the readmissions of a record. path: of the record, for messages. */
hfsad_status sim_take_anew(sim *s, const run_readmission *all, size_t count, const char *path, hfsad_error *err);
void sim_free_anew(sim *s);
/* Restarts the links that are due at this round; last: also those due after its row. */
void sim_begin_anew(sim *s, bool last);
/* Restarts the links of a node and of all nodes below it at w, M numbers. */
void sim_place_anew(sim *s, size_t node, const double *w);
/* The model with which a child restarts: the parent's, with 0 for coordinates that the link does not tie. */
void sim_anew_model(const sim *s, size_t node, const double *w_parent, double *w);

/* Notes a readmission for trace and summary. */
hfsad_status run_note_readmission(hfsad_run *run, const run_readmission *done, hfsad_error *err);
/* Notes the readmissions of a record. *only (may be NULL): the record has readmissions and no other lines. */
hfsad_status run_take_readmissions(hfsad_run *run, const char *text, size_t size, bool *only, hfsad_error *err);
void run_free_readmissions(hfsad_run *run);
/* Refuses a readmission in a stage before the run. path: the record's, for messages. */
hfsad_status run_check_early(const hfsad_run *run, const char *path, hfsad_error *err);
/* The number of nodes if the run may continue without absent nodes; otherwise 0. */
size_t run_may_be_absent(const hfsad_run *run);
/* The reason why the end of such a run lacks this node; NULL: it does not, or a node above it is named instead. */
const char *run_why_absent(const hfsad_run *run, size_t node);

#endif
