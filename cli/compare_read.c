/* trace.csv and summary.json of a run that has ended. */
#include "base/read_file.h"
#include "compare.h"
#include "out/json.h"

#include "base/error.h"

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

/* Where each compared column stands in the head, or -1; the number of columns. */
static size_t read_head(const char *line, int place[COMPARE_COLUMNS])
{
    size_t columns = 0;
    for (int i = 0; i < COMPARE_COLUMNS; i++)
        place[i] = -1;
    while (true) {
        const size_t length = strcspn(line, ",\n");
        for (int i = 0; i < COMPARE_COLUMNS; i++)
            if (strlen(compare_names[i]) == length && !strncmp(line, compare_names[i], length))
                place[i] = (int)columns;
        columns++;
        if (line[length] != ',')
            return columns;
        line += length + 1;
    }
}

static hfsad_status take_rows(compared_run *r, const char *path, const char *text, const int *place, size_t columns,
                              hfsad_error *err)
{
    for (size_t row = 0; row < r->rows; row++) {
        for (size_t c = 0; c < columns; c++) {
            char *end;
            const double value = strtod(text, &end);
            if (end == text || *end != (c + 1 < columns ? ',' : '\n'))
                return error_set(err, HFSAD_ERROR_INPUT, "%s:%zu: %zu numbers are expected, and the %zu. is none", path,
                                 row + 2, columns, c + 1);
            for (int i = 0; i < COMPARE_COLUMNS; i++)
                if (place[i] == (int)c)
                    r->column[i][row] = value;
            text = end + 1;
        }
    }
    return HFSAD_OK;
}

static hfsad_status take_trace(compared_run *r, const char *path, const char *text, hfsad_error *err)
{
    int place[COMPARE_COLUMNS];
    const size_t columns = read_head(text, place), head = strcspn(text, "\n");
    for (int i = 0; i <= COMPARE_consensus_objective; i++)
        if (place[i] < 0)
            return error_set(err, HFSAD_ERROR_INPUT, "%s:1: the column %s is missing; give the folder of a run", path,
                             compare_names[i]);
    for (const char *p = text + head; *p; p++)
        r->rows += *p != '\n' && p[-1] == '\n'; /* one that was cut short too: it is refused below */
    if (!r->rows)
        return error_set(err, HFSAD_ERROR_INPUT, "%s has no rows; give the folder of a run that has ended", path);
    for (int i = 0; i < COMPARE_COLUMNS; i++) {
        r->column[i] = calloc(r->rows, sizeof(double));
        if (!r->column[i])
            return error_memory(err, r->rows * sizeof(double), path);
        for (size_t row = 0; row < r->rows; row++)
            r->column[i][row] = NAN;
    }
    return take_rows(r, path, text + head + 1, place, columns, err);
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
    text = NULL;
    snprintf(path, size, "%s/trace.csv", r->folder);
    if (!status)
        status = read_text(path, &text, err);
    if (!status && text)
        status = take_trace(r, path, text, err);
    free(text);
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
