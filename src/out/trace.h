/* trace.csv as text in memory: rows are appended, and the file is this text, so a rewrite formats nothing again. All
 * memory is allocated at set-up. */
#ifndef HFSAD_OUT_TRACE_H
#define HFSAD_OUT_TRACE_H

#include "plan/plan.h"

typedef struct {
    char *text;
    size_t length, capacity;
    size_t tiers, row_size; /* row_size: the longest a row can be */
    bool relative_error;
    noise_budget noise;
} trace;

/* Room for the head and `rows` rows. */
hfsad_status trace_create(trace *t, uint64_t rows, size_t tiers, bool relative_error, hfsad_error *err);
/* Before the first row: what noise has spent follows as the last columns, if there is noise. */
void trace_account(trace *t, const noise_budget *noise);
void trace_free(trace *t);
void trace_append(trace *t, const hfsad_figures *figures);

#endif
