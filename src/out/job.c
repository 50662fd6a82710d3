/* A run into a folder: everything from a spec to the finished output folder, except what a program prints. */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/ranks.h"
#include "base/read_file.h"
#include "base/whole_file.h"
#include "out/end_table.h"
#include "out/warm.h"
#include "run/replay.h"
#include "run/save.h"
#include "spec/pack.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* All members 0: not made yet. */
struct hfsad_job {
    hfsad_job_settings args; /* its texts belong to the caller */
    hfsad_job_hooks hooks;
    hfsad_spec *spec;
    hfsad_run *run;
    report *report;
    train_end end;     /* end of the run, from the last measurement */
    checkpoint from;   /* the checkpoint to resume from */
    int lock;          /* lock of the folder; -1: none */
    size_t made;       /* number of folders that were created, for folder_unmake */
    double write_next; /* time on clock_seconds at which the folder is written next */
    bool write_failed; /* the last write failed, and the caller was told */
    bool replay_all;   /* the record covers a whole run: no training is left */
    bool replay_met;   /* the recorded run met its tolerances */
};

/* Only the first rank writes. */
static bool is_first(void)
{
    return ranks()->rank == 0;
}

/* ---- set-up ---- */

/* The output must not replace a file that the run reads. */
static hfsad_status check_inputs(const hfsad_job *j, hfsad_error *err)
{
    static const char *const labels[] = {"the spec", "data", "truth", "run.start"};
    const char *const names[] = {j->args.spec_path, j->spec->top.data, j->spec->top.truth, j->spec->run.start};
    enum { N = sizeof labels / sizeof *labels };
    char *paths[N] = {0};
    hfsad_status status = HFSAD_OK;
    for (size_t i = 0; i < N && !status; i++) {
        if (!names[i])
            continue;
        paths[i] = i ? spec_find_file(j->spec, names[i]) : strdup(names[i]);
        if (!paths[i])
            status = error_memory(err, strlen(names[i]), "a file name");
    }
    if (!status)
        status = folder_check_outside(j->args.folder, paths[1], err);
    if (!status && !j->args.resume && !j->args.force)
        status = report_check_owner(j->args.folder, j->args.spec_path, err);
    if (!status)
        status = report_check_inputs(j->args.folder, labels, (const char *const *)paths, N, err);
    for (size_t i = 0; i < N; i++)
        free(paths[i]);
    return status;
}

/* The folder is locked before the checkpoint is read, so that no other process replaces the checkpoint meanwhile. */
static hfsad_status open_checkpoint(hfsad_job *j, hfsad_error *err)
{
    struct stat info;
    if (stat(j->args.folder, &info) != 0 || !S_ISDIR(info.st_mode))
        return error_set(err, HFSAD_ERROR_INPUT, "%.300s: no such folder; name the output folder of a run",
                         j->args.folder);
    const hfsad_status status = is_first() ? folder_lock(j->args.folder, &j->lock, err) : HFSAD_OK;
    if (status)
        return status;
    char *path = path_join(j->args.folder, CHECKPOINT_NAME);
    if (!path)
        return error_memory(err, strlen(j->args.folder), "a file name");
    const hfsad_status opened = checkpoint_open(&j->from, path, err);
    free(path);
    return opened;
}

static hfsad_status load_spec(hfsad_job *j, hfsad_error *err)
{
    hfsad_status status = j->args.resume ? open_checkpoint(j, err) : HFSAD_OK;
    if (!status)
        status = j->args.spec_path ? hfsad_spec_load(&j->spec, j->args.spec_path, err)
                                   : spec_copy(&j->spec, j->from.spec, err);
    if (!status && j->args.adjust && !j->args.adjust(j->args.context, j->spec))
        status = error_set(err, HFSAD_ERROR_INPUT, "the caller refused the settings");
    return status ? status : hfsad_spec_check(j->spec, err);
}

static hfsad_status check_resumed(const hfsad_job *j, hfsad_error *err)
{
    const uint64_t done = j->from.iteration, wanted = (uint64_t)j->spec->run.iterations;
    if (done > wanted)
        return error_set(err, HFSAD_ERROR_INPUT,
                         "%s is at iteration %" PRIu64 "; set run.iterations to at least this number", j->args.folder,
                         done);
    return checkpoint_check_spec(&j->from, j->spec, err);
}

/* The dual residual is formed at the rows of the trace only. A run that was interrupted between two rows cannot end
 * there, because the end needs it. */
static hfsad_status resume(hfsad_job *j, hfsad_error *err)
{
    const hfsad_status status = report_resume(j->report, j->run, &j->from, err);
    const uint64_t done = j->from.iteration;
    checkpoint_close(&j->from);
    if (!status && done == (uint64_t)j->spec->run.iterations && !sim_dual_known(j->run->sim))
        return error_set(err, HFSAD_ERROR_INPUT,
                         "%s was interrupted at iteration %" PRIu64 "; set run.iterations to a larger number",
                         j->args.folder, done);
    return status;
}

static void take_replayed(void *context, const hfsad_figures *figures)
{
    report_row(((hfsad_job *)context)->report, figures);
}

/* Replays the record instead of iterating. */
static hfsad_status replay(hfsad_job *j, hfsad_error *err)
{
    const replay_rows rows = {j, take_replayed};
    return run_replay(j->run, j->args.replay, &rows, &j->replay_all, &j->replay_met, err);
}

static hfsad_status set_up_job(hfsad_job *j, hfsad_error *err)
{
    const hfsad_job_settings *a = &j->args;
    hfsad_status status;
    if ((status = load_spec(j, err)) || (a->resume && (status = check_resumed(j, err))) ||
        (status = folder_check(a->folder, err)) || (status = check_inputs(j, err)) ||
        (status = a->replay ? run_create_replay(&j->run, j->spec, a->replay, a->threads, err)
                            : hfsad_run_create(&j->run, j->spec, a->threads, err)) ||
        (a->warm && (status = warm_start(j->run, a->warm, err))) ||
        (a->device && (status = run_use_device(j->run, a->device, err))) ||
        (status = report_create(&j->report, j->run, j->spec, a->folder, err)) ||
        (a->resume && (status = resume(j, err))) || (a->replay && (status = replay(j, err))))
        return status;
    if (j->spec->output.checkpoint && j->run->algorithm->links) /* computed once, not for every checkpoint */
        run_take_prints(j->run);
    return HFSAD_OK;
}

hfsad_status hfsad_job_create(hfsad_job **out, const hfsad_job_settings *settings, hfsad_error *err)
{
    hfsad_job *j = *out = alloc_zero(1, sizeof *j);
    if (!j)
        return error_memory(err, sizeof *j, "a run");
    memcpy(&j->args, settings, settings->size < sizeof j->args ? settings->size : sizeof j->args);
    j->lock = -1;
    const hfsad_status status = set_up_job(j, err);
    if (status) {
        hfsad_job_free(j);
        *out = NULL;
    }
    return status;
}

void hfsad_job_free(hfsad_job *j)
{
    if (!j)
        return;
    report_free(j->report);
    hfsad_run_free(j->run);
    hfsad_spec_free(j->spec);
    checkpoint_close(&j->from);
    folder_unlock(j->lock);
    free(j);
}

/* ---- training ---- */

static hfsad_status write_folder(hfsad_job *j, stop_reason stopped, hfsad_error *err)
{
    if (!is_first())
        return HFSAD_OK;
    return report_write_timed(j->report, &j->end.figures, stopped, j->spec->output.every_seconds, &j->write_next, err);
}

static bool is_cancelled(void *context)
{
    const hfsad_job *j = context;
    return j->hooks.cancelled && j->hooks.cancelled(j->hooks.context);
}

static bool is_due(void *context)
{
    const hfsad_job *j = context;
    return is_first() && clock_seconds() >= j->write_next;
}

static void take_row(void *context, const hfsad_figures *row)
{
    hfsad_job *j = context;
    report_row(j->report, row);
    if (j->hooks.row)
        j->hooks.row(j->hooks.context, row);
}

/* An earlier result in the folder stays until this run has a result of its own to write. */
static hfsad_status begin_training(void *context, const hfsad_figures *figures, hfsad_error *err)
{
    hfsad_job *j = context;
    hfsad_status status = HFSAD_OK;
    j->end.figures = *figures;
    if (j->replay_all)
        return HFSAD_OK;
    if (report_exists(j->args.folder))
        j->write_next = clock_seconds() + j->spec->output.every_seconds;
    else
        status = write_folder(j, STOP_RUNNING, err);
    if (j->hooks.begun)
        j->hooks.begun(j->hooks.context, figures);
    return status;
}

/* A failed write during training does not end the run: the disk may have space again at the end. */
static void write_on_the_way(hfsad_job *j)
{
    hfsad_error err = {0};
    const bool failed = write_folder(j, STOP_RUNNING, &err) != HFSAD_OK;
    if (failed && !j->write_failed && j->hooks.unwritten)
        j->hooks.unwritten(j->hooks.context, &j->end.figures, err.message);
    j->write_failed = failed;
}

static void visit(void *context, uint64_t iteration, const hfsad_figures *figures, bool due)
{
    hfsad_job *j = context;
    j->end.figures = *figures;
    if (due)
        write_on_the_way(j);
    if (j->hooks.iterated)
        j->hooks.iterated(j->hooks.context, iteration, figures);
}

/* The folder first gets the result of the training, which stays if the polish is interrupted or killed. */
static hfsad_status before_polish(void *context, const hfsad_figures *figures, stop_reason stopped, hfsad_error *err)
{
    hfsad_job *j = context;
    j->end.figures = *figures;
    const hfsad_status status = write_folder(j, stopped, err);
    if (!status && j->hooks.trained)
        j->hooks.trained(j->hooks.context);
    return status;
}

static bool go_on(void *context, const hfsad_polish *so_far)
{
    const hfsad_job *j = context;
    return !j->hooks.polishing || j->hooks.polishing(j->hooks.context, so_far);
}

static hfsad_status train(hfsad_job *j, hfsad_error *err)
{
    const train_hooks hooks = {
        .context = j,
        .cancelled = is_cancelled,
        .due = is_due,
        .row = take_row,
        .begun = begin_training,
        .visit = visit,
        .trained = before_polish,
        .polishing = go_on,
    };
    const train_settings settings = {
        .origin = j->args.resume  ? TRAIN_RESUMED
                  : j->replay_all ? TRAIN_REPLAYED
                                  : TRAIN_FRESH,
        .tolerance_met = j->replay_met,
        .hooks = &hooks,
    };
    const hfsad_status status = run_train(j->run, &settings, &j->end, err);
    return status == HFSAD_ERROR_DIVERGED ? HFSAD_OK : status;
}

hfsad_status hfsad_job_train(hfsad_job *j, const hfsad_job_hooks *hooks, hfsad_stop *stop, hfsad_error *err)
{
    const char *folder = j->args.folder;
    hfsad_status status = HFSAD_OK;
    memcpy(&j->hooks, hooks, hooks->size < sizeof j->hooks ? hooks->size : sizeof j->hooks);
    if (is_first())
        status = folder_make_new(folder, &j->made, err);
    if (!status && is_first() && !j->args.resume)
        status = folder_lock(folder, &j->lock, err);
    if (!status && j->hooks.opened && !j->hooks.opened(j->hooks.context))
        status = error_set(err, HFSAD_ERROR_INPUT, "the caller has ended the run");
    if (!status && is_first())
        report_sweep(folder);
    if (!status)
        status = train(j, err);
    if (!status)
        status = write_folder(j, j->end.stopped, err);
    if (status)
        folder_unmake(folder, j->made);
    *stop = (hfsad_stop)j->end.stopped;
    return status;
}

/* ---- results ---- */

hfsad_run *hfsad_job_run(const hfsad_job *j)
{
    return j->run;
}

const hfsad_spec *hfsad_job_spec(const hfsad_job *j)
{
    return j->spec;
}

const hfsad_figures *hfsad_job_figures(const hfsad_job *j)
{
    return &j->end.figures;
}

char *hfsad_job_table(const hfsad_job *j)
{
    return table_text(j->run, j->spec, j->report, &j->end, j->args.folder);
}

bool hfsad_run_timed_out(const hfsad_run *run)
{
    return run->timed_out;
}

const char *hfsad_run_remedy(const hfsad_run *run)
{
    return run->algorithm->remedy;
}

uint64_t hfsad_run_repairs(const hfsad_run *run, uint64_t *last)
{
    *last = 0;
    return run->algorithm->links ? run->engine->repairs(run, last) : 0;
}

hfsad_status hfsad_folder_check_owner(const char *folder, const char *spec_path, hfsad_error *err)
{
    return report_check_owner(folder, spec_path, err);
}
