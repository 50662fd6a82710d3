/*
 * The output folder of a run: checkpoint.bin, model.csv, state.csv, trace.csv, summary.json. An update writes all files
 * under temporary names and then renames them, so a full disk leaves the folder as it was after the last update.
 */
#ifndef HFSAD_OUT_REPORT_H
#define HFSAD_OUT_REPORT_H

#include "out/checkpoint.h"
#include "out/summary.h"

typedef struct report report;

/* Allocates all memory and writes nothing. run, spec and folder must outlive r; folder may be NULL until
 * report_use_folder. */
hfsad_status report_create(report **r, const hfsad_run *run, const hfsad_spec *spec, const char *folder,
                           hfsad_error *err);
void report_free(report *r);
/* Puts the run into the checkpoint's state and copies the checkpoint's rows to the trace. On failure neither changes.
 */
hfsad_status report_resume(report *r, hfsad_run *run, const checkpoint *from, hfsad_error *err);
/* Called before a training: removes rows that a longer run would not have. Returns whether the trace continues earlier
 * rows. */
bool report_rewind(report *r);
void report_use_folder(report *r, const char *folder);
/* The text of trace.csv with a terminating 0, valid until the next row; report_kept: the part for a checkpoint. */
const char *report_trace(report *r);
const char *report_kept(const report *r, size_t *length);
/* Adds a row to the trace; at most run.iterations / run.trace_every + 2 rows. */
void report_row(report *r, const hfsad_figures *figures);
/* Replaces the files of the folder; figures: those of the current point. */
hfsad_status report_write(report *r, const hfsad_figures *figures, stop_reason stopped, hfsad_error *err);
/* The same. Sets *next to the time on clock_seconds at which the folder is written again: after at least ten times the
 * duration of this write, so that writing the models of a million clients does not dominate the run. */
hfsad_status report_write_timed(report *r, const hfsad_figures *figures, stop_reason stopped, double every_seconds,
                                double *next, hfsad_error *err);
/* Writes only state.csv and checkpoint.bin; the other files of the run exist already. */
hfsad_status report_write_state(report *r, hfsad_error *err);

/*
 * Called before anything is written: refuses inputs that are the same file as an output. Inputs that are NULL or
 * missing are skipped. labels: names of the inputs, for the message.
 */
hfsad_status report_check_inputs(const char *folder, const char *const *labels, const char *const *inputs, size_t count,
                                 hfsad_error *err);
/* An error if the folder has the results of another spec than the one at this path. */
hfsad_status report_check_owner(const char *folder, const char *spec_path, hfsad_error *err);
bool report_exists(const char *folder);
/* Removes files that killed runs left half-written in the folder. */
void report_sweep(const char *folder);

const theorem_report *report_theorem(const report *r);

#endif
