/* trace.csv as text in memory. Rows are appended, and the file is this text, so rewriting the file formats no row
 * again. All memory is allocated when the run is set up. */
#ifndef HFSAD_OUT_TRACE_H
#define HFSAD_OUT_TRACE_H

#include "plan/plan.h"

typedef struct {
    char *text;
    size_t length, capacity;
    size_t tiers, row_size; /* row_size: longest possible row */
    bool relative_error;
    noise_budget noise;
} trace;

/* Allocates room for the head and `rows` rows. */
hfsad_status trace_create(trace *t, uint64_t rows, size_t tiers, bool relative_error, hfsad_error *err);
/* Called before the first row: with noise, the last columns are what the noise has spent. */
void trace_account(trace *t, const noise_budget *noise);
void trace_free(trace *t);
void trace_append(trace *t, const hfsad_figures *figures);

#endif
