/* Reads trace.csv and summary.json of a run that has ended. */
#include "base/error.h"
#include "compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const compare_names[] = {
#define COMPARE_NAME(name) #name,
    COMPARE_PLACES(COMPARE_NAME) COMPARE_METRICS(COMPARE_NAME)
#undef COMPARE_NAME
        NULL};

static hfsad_status take_trace(compared_run *r, const hfsad_result *from, hfsad_error *err)
{
    for (int i = 0; i <= COMPARE_consensus_objective; i++)
        if (!hfsad_result_trace(from, compare_names[i]))
            return error_set(err, HFSAD_ERROR_INPUT,
                             "%s/trace.csv:1: the column %s is missing; give the folder of a run", r->folder,
                             compare_names[i]);
    r->rows = hfsad_result_trace_rows(from);
    if (!r->rows)
        return error_set(err, HFSAD_ERROR_INPUT, "%s/trace.csv has no rows; give the folder of a run that has ended",
                         r->folder);
    for (int i = 0; i < COMPARE_COLUMNS; i++) {
        const double *column = hfsad_result_trace(from, compare_names[i]);
        r->column[i] = calloc(r->rows, sizeof(double));
        if (!r->column[i])
            return error_memory(err, r->rows * sizeof(double), r->folder);
        for (size_t row = 0; row < r->rows; row++)
            r->column[i][row] = column ? column[row] : NAN;
    }
    return HFSAD_OK;
}

hfsad_status compared_run_read(compared_run *r, hfsad_error *err)
{
    hfsad_result *from;
    int64_t rounds;
    hfsad_status status = hfsad_result_load_trace(&from, r->folder, err);
    if (status)
        return status;
    if (hfsad_result_stop(from) == HFSAD_STOP_RUNNING)
        status = error_set(err, HFSAD_ERROR_INPUT, "%s: the run has not ended; wait for it, or run its spec again",
                           r->folder);
    if (!status)
        status = hfsad_spec_get_whole(hfsad_result_settings(from), "run.edge_rounds", &rounds, err);
    if (!status)
        status = take_trace(r, from, err);
    if (!status) {
        r->edge_rounds = (double)rounds;
        snprintf(r->algorithm, sizeof r->algorithm, "%s", hfsad_result_algorithm(from));
    }
    hfsad_result_free(from);
    return status;
}

void compared_run_free(compared_run *r)
{
    free(r->name);
    free(r->folder);
    for (int i = 0; i < COMPARE_COLUMNS; i++)
        free(r->column[i]);
    *r = (compared_run){0};
}
