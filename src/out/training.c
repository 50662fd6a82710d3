/* hfsad_run_train and hfsad_run_write: run/train.h with a trace and a callback. */
#include "out/training.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/whole_file.h"
#include "out/result.h"
#include "run/save.h"

#include <stdlib.h>
#include <string.h>

static void free_record(void *record)
{
    training_record *t = record;
    report_free(t->report);
    free(t);
}

hfsad_status training_record_of(hfsad_run *run, training_record **record, hfsad_error *err)
{
    if (run->record) {
        *record = run->record;
        return HFSAD_OK;
    }
    training_record *made = alloc_zero(1, sizeof *made);
    if (!made)
        return error_memory(err, sizeof *made, "the trace");
    const hfsad_status status = report_create(&made->report, run, run->spec, NULL, err);
    if (status) {
        free_record(made);
        return status;
    }
    run->record = made;
    run->record_free = free_record;
    *record = made;
    return HFSAD_OK;
}

typedef struct {
    hfsad_run *run;
    training_record *record;
    hfsad_callback callback;
    void *context;
} session;

static bool tell(const session *s, const hfsad_polish *polish)
{
    const hfsad_progress progress = {.figures = &s->record->end.figures, .polish = polish};
    return !s->callback || s->callback(s->context, &progress);
}

static void take_row(void *context, const hfsad_figures *row)
{
    session *s = context;
    s->record->end.figures = *row;
    s->record->measured = true;
    report_row(s->record->report, row);
    if (!tell(s, NULL))
        hfsad_run_cancel(s->run);
}

static bool go_on(void *context, const hfsad_polish *so_far)
{
    session *s = context;
    if (!tell(s, so_far))
        hfsad_run_cancel(s->run);
    return !atomic_load(&s->run->cancelled);
}

hfsad_status hfsad_run_train(hfsad_run *run, hfsad_callback callback, void *context, hfsad_result **result,
                             hfsad_error *err)
{
    session s = {.run = run, .callback = callback, .context = context};
    if (result)
        *result = NULL;
    hfsad_status status = training_record_of(run, &s.record, err);
    if (status)
        return status;
    const train_hooks hooks = {.context = &s, .row = take_row, .polishing = go_on};
    const train_settings settings = {.origin = report_rewind(s.record->report) ? TRAIN_RESUMED : TRAIN_FRESH,
                                     .hooks = &hooks};
    s.record->end.stopped = STOP_RUNNING;
    train_end end;
    status = run_train(run, &settings, &end, err);
    s.record->end = end;
    s.record->measured = true;
    if (result && (!status || status == HFSAD_ERROR_DIVERGED)) {
        const hfsad_status taken = hfsad_result_take(result, run, status ? NULL : err);
        status = status ? status : taken;
    }
    return status;
}

static hfsad_status write_into(report *r, const char *folder, const train_end *end, hfsad_error *err)
{
    int lock = -1;
    hfsad_status status = folder_lock(folder, &lock, err);
    if (status)
        return status;
    report_sweep(folder);
    report_use_folder(r, folder);
    status = report_write(r, &end->figures, end->stopped, err);
    report_use_folder(r, NULL);
    folder_unlock(lock);
    return status;
}

hfsad_status hfsad_run_write(hfsad_run *run, const char *folder, hfsad_error *err)
{
    training_record *record = NULL;
    size_t made = 0;
    hfsad_status status = training_record_of(run, &record, err);
    if (!status)
        status = folder_make_new(folder, &made, err);
    if (status)
        return status;
    if (!record->measured) { /* the caller iterated by hand; a diverged run is written, too */
        run_measure(run, &record->end.figures, NULL);
        record->measured = true;
    }
    if (run->spec->output.checkpoint && run->algorithm->links && !run->data_print)
        run_take_prints(run);
    status = write_into(record->report, folder, &record->end, err);
    if (status)
        folder_unmake(folder, made);
    return status;
}

hfsad_status hfsad_run_save(const hfsad_run *run, const char *path, hfsad_error *err)
{
    if (!run->algorithm->links)
        return error_set(err, HFSAD_ERROR_INPUT, CHECKPOINT_NO_STATE);
    const training_record *record = run->record;
    size_t length = 0;
    const char *trace = record ? report_kept(record->report, &length) : NULL;
    whole_file f;
    const hfsad_status status = whole_file_open(&f, path, 0666, err);
    if (status)
        return status;
    checkpoint_write(&f, run, trace, length);
    return whole_file_end(&f, err);
}

/* A checkpoint of hfsad_run_save may have no trace; the rows then begin at the current iteration. */
hfsad_status hfsad_run_resume(hfsad_run *run, const char *path, hfsad_error *err)
{
    checkpoint c;
    training_record *record = NULL;
    if (!run->algorithm->links)
        return error_set(err, HFSAD_ERROR_INPUT, CHECKPOINT_NO_STATE);
    hfsad_status status = checkpoint_open(&c, path, err);
    if (!status && !c.trace_length)
        status = checkpoint_restore(&c, run, err);
    else if (!status && !(status = training_record_of(run, &record, err)))
        status = report_resume(record->report, run, &c, err);
    checkpoint_close(&c);
    return status;
}
