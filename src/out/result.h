/* hfsad_result: model, trace and settings of a run, independent of the run. */
#ifndef HFSAD_OUT_RESULT_H
#define HFSAD_OUT_RESULT_H

#include "out/model.h"
#include "out/trace_table.h"

struct hfsad_result {
    char *name; /* for messages: the folder, or "the result" */
    model *model;
    trace_table trace;
    uint32_t *group; /* group of every node, clients first; NULL: no groups */
    hfsad_spec *settings;
    double *errors; /* standard errors of the cloud's model; NULL: unknown */
    hfsad_stop stop;
    char algorithm[16];
    hfsad_verdict verdict;
};

/* Reads settings, stop reason and verdict from summary.json. A setting that the summary does not have, or has as a
 * range, keeps its default. */
hfsad_status result_read_summary(hfsad_result *r, const char *folder, hfsad_error *err);

#endif
