/* Reads trace.csv: its columns as arrays. */
#ifndef HFSAD_OUT_TRACE_TABLE_H
#define HFSAD_OUT_TRACE_TABLE_H

#include "hfsad/hfsad.h"

typedef struct {
    size_t rows, columns;
    char *head;      /* the names, each with a terminating 0 */
    char **name;     /* columns */
    double *numbers; /* all rows of the first column, then of the next */
} trace_table;

/* text: the whole file, with a terminating 0; path is for messages. On failure there is nothing to free. */
hfsad_status trace_table_parse(trace_table *t, const char *text, const char *path, hfsad_error *err);
hfsad_status trace_table_read(trace_table *t, const char *path, hfsad_error *err);
void trace_table_free(trace_table *t);
/* NULL: no such column. */
const double *trace_table_column(const trace_table *t, const char *name);

#endif
