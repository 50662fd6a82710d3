/*
 * The output folder of a run: checkpoint.bin, model.csv, state.csv, trace.csv, summary.json. An update writes all files
 * under temporary names and then renames them, so a full disk leaves the folder as it was after the last update.
 */
#ifndef HFSAD_OUT_REPORT_H
#define HFSAD_OUT_REPORT_H

#include "out/checkpoint.h"
#include "out/summary.h"

typedef struct report report;

/* Takes all memory, writes nothing. run, spec and folder must outlive it; folder may be NULL until report_use_folder.
 */
hfsad_status report_create(report **r, const hfsad_run *run, const hfsad_spec *spec, const char *folder,
                           hfsad_error *err);
void report_free(report *r);
/* Puts the run into the checkpoint's state and the trace's rows up to there into the trace. On failure both are as
 * they were. */
hfsad_status report_resume(report *r, hfsad_run *run, const checkpoint *from, hfsad_error *err);
/* Before a training: takes the rows away that a longer run would not have; whether the trace goes on from others. */
bool report_rewind(report *r);
void report_use_folder(report *r, const char *folder);
/* The text of trace.csv, closed by a 0; until the next row. And what a checkpoint takes of it. */
const char *report_trace(report *r);
const char *report_kept(const report *r, size_t *length);
/* Adds a row to the trace; at most run.iterations / run.trace_every + 2 of them. */
void report_row(report *r, const hfsad_figures *figures);
/* Brings the folder up to date; figures: those of the current point. */
hfsad_status report_write(report *r, const hfsad_figures *figures, stop_reason stopped, hfsad_error *err);
/* The same, and sets when, by clock_seconds, the folder is due again: not before ten times the time this took, so that
 * writing a million clients' models does not become the main work. */
hfsad_status report_write_timed(report *r, const hfsad_figures *figures, stop_reason stopped, double every_seconds,
                                double *next, hfsad_error *err);
/* Only state.csv and checkpoint.bin; the other files of the run already exist. */
hfsad_status report_write_state(report *r, hfsad_error *err);

/*
 * Before anything is written: refuses inputs (NULL or missing files are passed over) that are the same file as one of
 * the outputs. labels: what the inputs are, for the message.
 */
hfsad_status report_check_inputs(const char *folder, const char *const *labels, const char *const *inputs, size_t count,
                                 hfsad_error *err);
/* Whether the folder holds the result of an earlier run. */
/* Error if the folder has results of another spec than the one at this path. */
hfsad_status report_check_owner(const char *folder, const char *spec_path, hfsad_error *err);
bool report_exists(const char *folder);
/* Removes what killed runs left half-written in the folder. */
void report_sweep(const char *folder);

const theorem_report *report_theorem(const report *r);

#endif
