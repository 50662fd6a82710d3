#include "report/report.h"

#include "base/alloc.h"
#include "base/error.h"
#include "report/tables.h"
#include "report/trace.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct report {
    const hfsad_run *run;
    const hfsad_spec *spec;
    const char *folder;
    trace trace;
    row_room room;
    theorem_report theorem;
};

hfsad_status report_create(report **made, const hfsad_run *run, const hfsad_spec *spec, const char *folder,
                           hfsad_error *err)
{
    report *r = alloc_zero(1, sizeof *r);
    if (!r)
        return error_memory(err, sizeof *r, "the report");
    r->run = run;
    r->spec = spec;
    r->folder = folder;
    const uint64_t rows = (uint64_t)(spec->run.iterations / spec->run.trace_every) + 2;
    hfsad_status status = trace_create(&r->trace, rows, run->data->depth, run->truth != NULL, err);
    if (!status)
        status = row_room_create(&r->room, run, err);
    if (status) {
        report_free(r);
        return status;
    }
    theorem_check(&r->theorem, run->data, run->plan);
    *made = r;
    return HFSAD_OK;
}

void report_free(report *r)
{
    if (!r)
        return;
    trace_free(&r->trace);
    row_room_free(&r->room);
    free(r);
}

void report_row(report *r, const hfsad_figures *figures)
{
    trace_append(&r->trace, figures);
}

const theorem_report *report_theorem(const report *r)
{
    return &r->theorem;
}

/* In the order in which they take their places: the summary, which tells of the others, last. */
enum { MODEL, STATE, TRACE, SUMMARY, N_FILES };
static const char *const file_names[N_FILES] = {"model.csv", "state.csv", "trace.csv", "summary.json"};

static hfsad_status fill(report *r, int which, whole_file *f, const hfsad_figures *figures, stop_reason stopped,
                         hfsad_error *err)
{
    char *text;
    switch (which) {
    case MODEL:
        model_table(f, r->run, r->spec->output.clients, &r->room);
        break;
    case STATE:
        state_table(f, r->run, &r->room);
        break;
    case TRACE:
        whole_file_put(f, r->trace.text, r->trace.length);
        break;
    case SUMMARY:
        text = summary_text(r->run, r->spec, &r->theorem, figures, stopped);
        if (!text)
            return error_memory(err, 0, "summary.json");
        whole_file_put(f, text, strlen(text));
        free(text);
        break;
    }
    return HFSAD_OK;
}

/* A state.csv of an earlier run into the same folder would not belong to this one's model. */
static hfsad_status remove_stale(const char *folder, const char *name, hfsad_error *err)
{
    const size_t size = strlen(folder) + strlen(name) + 2;
    char *path = malloc(size);
    if (!path)
        return error_memory(err, size, "a file name");
    snprintf(path, size, "%s/%s", folder, name);
    unlink(path);
    free(path);
    return HFSAD_OK;
}

hfsad_status report_write(report *r, const hfsad_figures *figures, stop_reason stopped, hfsad_error *err)
{
    whole_file files[N_FILES] = {0};
    hfsad_status status = HFSAD_OK;
    for (int i = 0; i < N_FILES && !status; i++) {
        if (i == STATE && !r->spec->output.state)
            continue;
        status = whole_file_begin(&files[i], r->folder, file_names[i], err);
        if (!status)
            status = fill(r, i, &files[i], figures, stopped, err);
        if (!status)
            status = whole_file_close(&files[i], err);
    }
    for (int i = 0; i < N_FILES && !status; i++) {
        if (files[i].path)
            status = whole_file_replace(&files[i], err);
        else
            status = remove_stale(r->folder, file_names[i], err);
    }
    for (int i = 0; i < N_FILES; i++)
        whole_file_drop(&files[i]);
    return status ? status : folder_sync(r->folder, err);
}
