/* What `hfsad runs` and `hfsad show` share: members of a run's JSON, times, traces. */
#ifndef HFSAD_CLI_RUNS_H
#define HFSAD_CLI_RUNS_H

#include "dash/history.h"

#include <stdio.h>

/* A text of an object, "" if there is none; a number, NAN if there is none. */
const char *runs_text(const cJSON *o, const char *name);
double runs_number(const cJSON *o, const char *name);
/* "2026-03-01 12:00:05" of ms since 1970, in local time; "" of NAN. */
enum { RUNS_TIME_SIZE = 40 };
void runs_time(double ms, char text[RUNS_TIME_SIZE]);
/* "a, b" */
void runs_tags(const cJSON *run, char *text, size_t size);

/* The whole trace as trace.csv has it. */
hfsad_status runs_print_trace(history *h, int64_t id, FILE *out, hfsad_error *err);

/* Files of all runs, or of those named, in a folder that is made: CSV tables, or MLflow's file layout. */
hfsad_status runs_export_csv(history *h, const cJSON *runs, const char *folder, hfsad_error *err);
hfsad_status runs_export_mlflow(history *h, const cJSON *runs, const char *folder, hfsad_error *err);

#endif
