/* The output folder of the cloud: written while rows come, and at the end. */
#include "net/member.h"

#include "base/clock.h"
#include "base/whole_file.h"
#include "out/end_table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

hfsad_status member_open_out(hfsad_member *m, hfsad_error *err)
{
    static const char *const labels[] = {"the spec", "truth"};
    char *truth = m->spec->top.truth ? spec_find_file(m->spec, m->spec->top.truth) : NULL;
    const char *inputs[] = {m->spec->path, truth};
    hfsad_status status = folder_check(m->s.out, err);
    if (!status)
        status = report_check_inputs(m->s.out, labels, inputs, 2, err);
    free(truth);
    if (!status)
        status = folder_make_new(m->s.out, &m->cloud.made, err);
    if (!status)
        status = folder_lock(m->s.out, &m->cloud.lock, err);
    if (!status)
        report_sweep(m->s.out);
    return status;
}

void member_close_out(hfsad_member *m)
{
    if (m->s.role != HFSAD_ROLE_CLOUD || !m->s.out)
        return;
    report_free(m->cloud.report);
    cloud_free(m->cloud.driver);
    folder_unlock(m->cloud.lock);
    if (!m->cloud.has_row)
        folder_unmake(m->s.out, m->cloud.made);
}

static hfsad_status write_folder(cloud_part *c, const hfsad_spec *spec, stop_reason stopped, hfsad_error *err)
{
    return report_write_timed(c->report, &c->figures, stopped, spec->output.every_seconds, &c->write_next, err);
}

/* ---- hooks of the training ---- */

static bool is_cancelled(void *context)
{
    return atomic_load(&((hfsad_member *)context)->cancelled);
}

static bool is_due(void *context)
{
    return clock_seconds() >= ((const hfsad_member *)context)->cloud.write_next;
}

static void put_row(hfsad_member *m, const hfsad_figures *row, const double *model)
{
    cloud_part *c = &m->cloud;
    if (!c->has_row || row->iteration > c->figures.iteration)
        report_row(c->report, row);
    c->figures = *row;
    c->has_row = true;
    if (m->s.row)
        m->s.row(m->s.context, row, model, hfsad_run_features(cloud_run(c->driver)));
}

/* What the safeguard did since the last row, for those that watch: the summary tells it at the end only. */
static void tell_repairs(hfsad_member *m)
{
    char text[100];
    uint64_t last = 0;
    const hfsad_run *run = cloud_run(m->cloud.driver);
    const uint64_t repairs = run->algorithm->links ? run->engine->repairs(run, &last) : 0;
    snprintf(text, sizeof text, "repair %" PRIu64 " at iteration %" PRIu64, repairs, last);
    if (repairs > m->cloud.repairs)
        member_log(m, HFSAD_LOG_INFO, "cloud", "safeguard", text, "");
    m->cloud.repairs = repairs;
}

static void take_row(void *context, const hfsad_figures *row)
{
    hfsad_member *m = context;
    put_row(m, row, m->s.row ? run_inner_model(cloud_run(m->cloud.driver), 0) : NULL);
    tell_repairs(m);
}

static void take_old_row(void *context, const hfsad_figures *row)
{
    put_row(context, row, NULL);
    cloud_take_old_row(((hfsad_member *)context)->cloud.driver, row);
}

/* A full disk does not end the run: it may have space again at the end. */
static void visit(void *context, uint64_t iteration, const hfsad_figures *figures, bool due)
{
    hfsad_member *m = context;
    hfsad_error err;
    (void)iteration;
    (void)figures;
    if (!due)
        return;
    const bool failed = write_folder(&m->cloud, m->spec, STOP_RUNNING, &err) != HFSAD_OK;
    if (failed && !m->cloud.write_failed)
        member_log(m, HFSAD_LOG_ERROR, "cloud", err.message, "the run continues and tries again later", "");
    m->cloud.write_failed = failed;
}

/* ---- the run ---- */

static void tell_end(hfsad_member *m, const train_end *end)
{
    cloud_part *c = &m->cloud;
    hfsad_run *run = cloud_run(c->driver);
    char line[1000] = "";
    if (!m->s.ended)
        return;
    char *table = c->has_row ? table_text(run, m->spec, c->report, end, m->s.out) : NULL;
    if (c->has_row && end->stopped == STOP_DIVERGED)
        snprintf(line, sizeof line,
                 "the iterates are no longer finite after iteration %" PRIu64 ": try %s; wrote %.500s",
                 c->figures.iteration, run->algorithm->remedy, m->s.out);
    else if (c->has_row && end->stopped == STOP_INTERRUPTED)
        snprintf(line, sizeof line, "interrupted after iteration %" PRIu64 ": wrote %.500s%s", c->figures.iteration,
                 m->s.out, cloud_has_models(c->driver) ? "" : ", without the models below the cloud");
    m->s.ended(m->s.context, &(hfsad_member_end){(hfsad_stop)end->stopped, table ? table : "", line});
    free(table);
}

hfsad_status member_train(hfsad_member *m, const inquiry_turns *turns, hfsad_error *err)
{
    cloud_part *c = &m->cloud;
    const train_hooks hooks = {.context = m, .cancelled = is_cancelled, .due = is_due, .row = take_row, .visit = visit};
    train_end end;
    hfsad_status status = cloud_create(&c->driver, m->f, m->h, m->spec, turns, err);
    if (!status)
        status = report_create(&c->report, cloud_run(c->driver), m->spec, m->s.out, err);
    if (!status)
        status = store_get_rows(m->state, take_old_row, m, err);
    if (!status)
        status = member_take_readmissions(m, err);
    c->write_next = clock_seconds() + (report_exists(m->s.out) ? m->spec->output.every_seconds : 0);
    if (!status)
        status = cloud_train(c->driver, &hooks, &end, err);
    if (status)
        return status;
    m->stop = (hfsad_stop)end.stopped;
    end.figures = c->figures;
    if (c->has_row && (status = write_folder(c, m->spec, end.stopped, err)))
        return status;
    tell_end(m, &end);
    return HFSAD_OK;
}
