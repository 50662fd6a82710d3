/* The table that a run ends with. */
#ifndef HFSAD_OUT_END_TABLE_H
#define HFSAD_OUT_END_TABLE_H

#include "out/report.h"

/* To be freed; NULL: no memory. out: the folder that was written. */
char *table_text(hfsad_run *run, const hfsad_spec *spec, const report *written, const train_end *end, const char *out);

#endif
