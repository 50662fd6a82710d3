/* hfsad_result: model, trace and settings of a run, apart from the run. */
#ifndef HFSAD_OUT_RESULT_H
#define HFSAD_OUT_RESULT_H

#include "out/model.h"
#include "out/trace_table.h"

struct hfsad_result {
    char *name; /* for messages: the folder, or "the result" */
    model *model;
    trace_table trace;
    uint32_t *group; /* of every node from the clients on; NULL: there are no groups */
    hfsad_spec *settings;
    double *errors; /* of the cloud's model; NULL: not known */
    hfsad_stop stop;
    char algorithm[16];
    hfsad_verdict verdict;
};

/* Settings, stop and verdict as summary.json has them. A setting that it does not have, or has as a range, keeps its
 * default. */
hfsad_status result_read_summary(hfsad_result *r, const char *folder, hfsad_error *err);

#endif
