/*
 * Readmissions of a federation, in the simulator: the link of a lost node, and all links below it, begin anew from the
 * parent's model (net/node_admit.c). The cloud has a line for each in its record, in lock step nothing else:
 *
 *     cloud  admitted  iteration  round  where  path
 *
 * iteration: the first whose row finds it so; where: anew_where. A node that went back to a round took all below it
 * along: what was readmitted there after that round is void.
 */
#ifndef HFSAD_RUN_ANEW_H
#define HFSAD_RUN_ANEW_H

#include "run/handle.h"

typedef struct anew {
    uint64_t round;
    anew_where where; /* BEFORE or AFTER */
    size_t node;      /* inner ones first, then the leaves */
} anew;

/* In lock step: those of a record, as the cloud has noted them. path: of the record, for messages. */
hfsad_status sim_take_anew(sim *s, const run_readmission *all, size_t count, const char *path, hfsad_error *err);
void sim_free_anew(sim *s);
/* Begins the links that are due at this round; last: also those after its row. */
void sim_begin_anew(sim *s, bool last);
/* One node and all below it. w: M numbers. */
void sim_place_anew(sim *s, size_t node, const double *w);
/* The parent's model as a child begins with it: coordinates that are not tied are 0. */
void sim_anew_model(const sim *s, size_t node, const double *w_parent, double *w);

/* For trace and summary. */
hfsad_status run_note_readmission(hfsad_run *run, const run_readmission *done, hfsad_error *err);
/* The lines of a record that say so. *only, if not NULL: there are some, and no others. */
hfsad_status run_take_readmissions(hfsad_run *run, const char *text, size_t size, bool *only, hfsad_error *err);
void run_free_readmissions(hfsad_run *run);
/* Refused: a readmission in a stage before the run. path: of the record, for messages. */
hfsad_status run_check_early(const hfsad_run *run, const char *path, hfsad_error *err);
/* Number of nodes, if the run is one that goes on without absent nodes; otherwise 0. */
size_t run_may_be_absent(const hfsad_run *run);
/* Of such a run: why the end of the run went without this node; NULL: it did not, or a node above it is named instead.
 */
const char *run_why_absent(const hfsad_run *run, size_t node);

#endif
