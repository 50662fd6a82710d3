/* The table that is printed at the end of a run. */
#ifndef HFSAD_OUT_END_TABLE_H
#define HFSAD_OUT_END_TABLE_H

#include "out/report.h"

/* The caller frees the text; NULL: no memory. out: the folder that was written. */
char *table_text(hfsad_run *run, const hfsad_spec *spec, const report *written, const train_end *end, const char *out);

#endif
