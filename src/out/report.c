#include "out/report.h"

#include "base/clock.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/read_file.h"
#include "out/tables.h"
#include "out/trace.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct report {
    const hfsad_run *run;
    const hfsad_spec *spec;
    const char *folder;
    trace trace;
    size_t head, kept; /* bytes of the trace's text: its first line; the part for a checkpoint */
    row_room room;
    theorem_report theorem;
    bool resumed; /* the trace continues rows of a checkpoint or of an earlier training */
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
        trace_account(&r->trace, &run->plan->noise);
    if (!status)
        status = row_room_create(&r->room, run, err);
    if (status) {
        report_free(r);
        return status;
    }
    r->head = r->kept = r->trace.length;
    theorem_check(&r->theorem, run->data, run->plan, run->nu_f);
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
    /* A run that ends between two rows of the grid has a last row that a longer run would not have, so a checkpoint
     * leaves that row out. A star that is resumed starts again. */
    if (figures->iteration % (uint64_t)r->spec->run.trace_every == 0 && !r->run->has_star)
        r->kept = r->trace.length;
}

/* Upper limit on the rows of a run up to this iteration, within the allocated room. */
static bool fits_trace(const report *r, const checkpoint *from)
{
    const uint64_t every = (uint64_t)r->spec->run.trace_every, done = from->iteration / every;
    return done <= (uint64_t)r->spec->run.iterations / every && from->trace_length >= r->head &&
           from->trace_length - r->head <= (done + 1) * r->trace.row_size &&
           memcmp(from->trace, r->trace.text, r->head) == 0;
}

hfsad_status report_resume(report *r, hfsad_run *run, const checkpoint *from, hfsad_error *err)
{
    hfsad_status status = checkpoint_check_run(from, run, err);
    if (!status && !fits_trace(r, from))
        status = error_set(err, HFSAD_ERROR_INPUT, "%.300s has no trace for this run; start the run again", from->name);
    if (!status)
        status = checkpoint_restore(from, run, err);
    if (status)
        return status;
    memcpy(r->trace.text, from->trace, from->trace_length);
    r->trace.length = r->kept = from->trace_length;
    r->resumed = true;
    return HFSAD_OK;
}

bool report_rewind(report *r)
{
    r->trace.length = r->kept;
    const bool before = r->resumed;
    r->resumed = true;
    return before;
}

void report_use_folder(report *r, const char *folder)
{
    r->folder = folder;
}

const char *report_trace(report *r)
{
    r->trace.text[r->trace.length] = 0; /* room for a row is longer than any row */
    return r->trace.text;
}

const char *report_kept(const report *r, size_t *length)
{
    *length = r->kept;
    return r->trace.text;
}

const theorem_report *report_theorem(const report *r)
{
    return &r->theorem;
}

/* The order in which files are replaced. The checkpoint comes first, because the other files can be made again from it:
 * a run that is killed in between resumes as this run. The summary comes last, because it describes the other files. */
enum { CHECKPOINT, MODEL, COEFFICIENTS, STATE, TRACE, SUMMARY, N_FILES };
static const char *const file_names[N_FILES] = {CHECKPOINT_NAME, "model.csv", "coefficients.csv",
                                                "state.csv",     "trace.csv", "summary.json"};

/* If nodes were readmitted, the last column has their number so far. */
static void put_trace(const report *r, whole_file *f)
{
    const char *at = r->trace.text, *end = at + r->trace.length;
    if (!r->run->n_readmitted) {
        whole_file_put(f, at, r->trace.length);
        return;
    }
    for (bool head = true; at < end; head = false) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        char column[40];
        size_t count = 0;
        const uint64_t iteration = strtoull(at, NULL, 10);
        for (size_t i = 0; i < r->run->n_readmitted; i++)
            count += r->run->readmitted[i].iteration <= iteration && r->run->readmitted[i].where != ANEW_RETIRED;
        whole_file_put(f, at, (size_t)(newline - at));
        whole_file_put(f, column, (size_t)(head ? sprintf(column, ",readmitted\n") : sprintf(column, ",%zu\n", count)));
        at = newline + 1;
    }
}

static hfsad_status fill_file(report *r, int which, whole_file *f, const hfsad_figures *figures, stop_reason stopped,
                              hfsad_error *err)
{
    char *text;
    switch (which) {
    case CHECKPOINT:
        checkpoint_write(f, r->run, r->trace.text, r->kept);
        break;
    case MODEL:
        model_table(f, r->run, spec_shows_clients(r->spec), &r->room);
        break;
    case COEFFICIENTS:
        coefficient_table(f, r->run, &r->room);
        break;
    case STATE:
        state_table(f, r->run, &r->room);
        break;
    case TRACE:
        put_trace(r, f);
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

/* Removes the state.csv or checkpoint.bin of an earlier run, which would not match this run's model. A file that a
 * person put there stays. */
static hfsad_status remove_stale(const char *folder, int which, hfsad_error *err)
{
    const char *start = which == CHECKPOINT ? CHECKPOINT_MARK : STATE_HEAD;
    char head[sizeof STATE_HEAD] = "";
    char *path = path_join(folder, file_names[which]);
    if (!path)
        return error_memory(err, strlen(folder), "a file name");
    FILE *f = fopen(path, "r");
    const bool ours = f && fread(head, 1, strlen(start), f) == strlen(start) && !memcmp(head, start, strlen(start));
    if (f)
        fclose(f);
    if (ours)
        unlink(path);
    free(path);
    return HFSAD_OK;
}

static bool is_state(int which)
{
    return which == CHECKPOINT || which == STATE;
}

static bool is_wanted(const report *r, int which)
{
    if (!is_state(which))
        return true;
    return r->run->engine->saves && (which == CHECKPOINT ? r->spec->output.checkpoint : r->spec->output.state);
}

/* -1: no memory. */
static int stat_in(const char *folder, const char *name, struct stat *info)
{
    char *path = path_join(folder, name);
    const int found = path ? stat(path, info) == 0 : -1;
    free(path);
    return found;
}

hfsad_status report_check_inputs(const char *folder, const char *const *labels, const char *const *inputs, size_t count,
                                 hfsad_error *err)
{
    for (int i = 0; i < N_FILES; i++) {
        struct stat output, input;
        const int found = stat_in(folder, file_names[i], &output);
        if (found < 0)
            return error_memory(err, strlen(folder), "a file name");
        for (size_t n = 0; n < count && found; n++)
            if (inputs[n] && stat(inputs[n], &input) == 0 && input.st_dev == output.st_dev &&
                input.st_ino == output.st_ino)
                return error_set(err, HFSAD_ERROR_INPUT,
                                 "%s/%s is %s and would be replaced by this run's output; give another output folder",
                                 folder, file_names[i], labels[n]);
    }
    return HFSAD_OK;
}

bool report_exists(const char *folder)
{
    struct stat info;
    return stat_in(folder, file_names[SUMMARY], &info) > 0;
}

void report_sweep(const char *folder)
{
    folder_sweep(folder, file_names, N_FILES);
}

/* state_only: the other files exist already and stay. */
static hfsad_status write_files(report *r, bool state_only, const hfsad_figures *figures, stop_reason stopped,
                                hfsad_error *err)
{
    whole_file files[N_FILES] = {0};
    hfsad_status status = HFSAD_OK;
    for (int i = 0; i < N_FILES && !status; i++) {
        if (!is_wanted(r, i) || (state_only && !is_state(i)))
            continue;
        status = whole_file_begin(&files[i], r->folder, file_names[i], err);
        if (!status)
            status = fill_file(r, i, &files[i], figures, stopped, err);
        if (!status)
            status = whole_file_close(&files[i], err);
    }
    for (int i = 0; i < N_FILES && !status; i++) {
        if (files[i].path)
            status = whole_file_replace(&files[i], err);
        else if (is_state(i))
            status = remove_stale(r->folder, i, err);
    }
    for (int i = 0; i < N_FILES; i++)
        whole_file_drop(&files[i]);
    return status ? status : folder_sync(r->folder, err);
}

hfsad_status report_write(report *r, const hfsad_figures *figures, stop_reason stopped, hfsad_error *err)
{
    return write_files(r, false, figures, stopped, err);
}

hfsad_status report_write_timed(report *r, const hfsad_figures *figures, stop_reason stopped, double every_seconds,
                                double *next, hfsad_error *err)
{
    const double before = clock_seconds();
    const hfsad_status status = report_write(r, figures, stopped, err);
    const double after = clock_seconds();
    *next = after + fmax(every_seconds, 10 * (after - before));
    return status;
}

hfsad_status report_write_state(report *r, hfsad_error *err)
{
    return write_files(r, true, NULL, STOP_RUNNING, err);
}
