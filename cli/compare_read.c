/* trace.csv and summary.json of a run that has ended. */
#include "base/read_file.h"
#include "compare.h"
#include "out/json.h"

#include "base/error.h"
#include "out/trace_table.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const compare_names[] = {
#define COMPARE_NAME(name) #name,
    COMPARE_PLACES(COMPARE_NAME) COMPARE_METRICS(COMPARE_NAME)
#undef COMPARE_NAME
        NULL};

/* The whole file with a closing 0; path names it in messages. */
static hfsad_status read_text(const char *path, char **text, hfsad_error *err)
{
    size_t size;
    const int reason = file_read(path, SIZE_MAX, text, &size);
    if (!reason)
        return HFSAD_OK;
    return error_set(err, HFSAD_ERROR_INPUT, "%s: %s; the folder of a run that has ended is expected", path,
                     strerror(reason));
}

static hfsad_status take_summary(compared_run *r, const char *path, const char *text, hfsad_error *err)
{
    cJSON *root = cJSON_Parse(text);
    const cJSON *stopped = json_at(root, "stopped"), *algorithm = json_at(root, "algorithm");
    const cJSON *rounds = json_at(root, "settings.run.edge_rounds");
    hfsad_status status = HFSAD_OK;
    if (!cJSON_IsString(stopped) || !cJSON_IsNumber(rounds))
        status = error_set(err, HFSAD_ERROR_INPUT, "%s is not the summary of a run; give the folder of one", path);
    else if (!strcmp(stopped->valuestring, "running"))
        status =
            error_set(err, HFSAD_ERROR_INPUT, "%s: the run has not ended; wait for it, or run its spec again", path);
    else
        r->edge_rounds = rounds->valuedouble;
    snprintf(r->algorithm, sizeof r->algorithm, "%s",
             cJSON_IsString(algorithm) ? algorithm->valuestring : "hfsad"); /* older summaries know no other */
    cJSON_Delete(root);
    return status;
}

static hfsad_status take_trace(compared_run *r, const trace_table *t, const char *path, hfsad_error *err)
{
    for (int i = 0; i <= COMPARE_consensus_objective; i++)
        if (!trace_table_column(t, compare_names[i]))
            return error_set(err, HFSAD_ERROR_INPUT, "%s:1: the column %s is missing; give the folder of a run", path,
                             compare_names[i]);
    if (!t->rows)
        return error_set(err, HFSAD_ERROR_INPUT, "%s has no rows; give the folder of a run that has ended", path);
    r->rows = t->rows;
    for (int i = 0; i < COMPARE_COLUMNS; i++) {
        const double *from = trace_table_column(t, compare_names[i]);
        r->column[i] = calloc(r->rows, sizeof(double));
        if (!r->column[i])
            return error_memory(err, r->rows * sizeof(double), path);
        for (size_t row = 0; row < r->rows; row++)
            r->column[i][row] = from ? from[row] : NAN;
    }
    return HFSAD_OK;
}

hfsad_status compared_run_read(compared_run *r, hfsad_error *err)
{
    const size_t size = strlen(r->folder) + sizeof "/summary.json";
    char *path = malloc(size), *text = NULL;
    if (!path)
        return error_memory(err, size, "a file name");
    snprintf(path, size, "%s/summary.json", r->folder);
    hfsad_status status = read_text(path, &text, err);
    if (!status && text)
        status = take_summary(r, path, text, err);
    free(text);
    snprintf(path, size, "%s/trace.csv", r->folder);
    trace_table trace = {0};
    if (!status)
        status = trace_table_read(&trace, path, err);
    if (!status)
        status = take_trace(r, &trace, path, err);
    trace_table_free(&trace);
    free(path);
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
