/* hfsad cloud: the root of a federation, and the output folder. */
#include "base/clock.h"
#include "member.h"

#include "base/whole_file.h"
#include "net/cloud_engine.h"
#include "out/report.h"
#include "progress.h"
#include "run.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    const char *out;
    bool quiet;
    hfsad_spec *spec;
    cloud_driver *cloud;
    const node *root;
    report *report;
    hfsad_figures figures; /* of the last row, also of an earlier life */
    stop_reason stopped;
    progress progress;
    bool has_row, write_failed;
    double write_next;
    int lock;
    size_t made;
} session;

/* ---- what the member calls ---- */

static int check(void *context, const member *m)
{
    session *s = context;
    hfsad_error err = {0};
    const char *labels[] = {"the spec", "truth"};
    char *truth = m->spec->top.truth ? spec_find_file(m->spec, m->spec->top.truth) : NULL;
    const char *inputs[] = {m->args.spec_path, truth};
    s->spec = m->spec;
    const bool wrong = folder_check(s->out, &err) || report_check_inputs(s->out, labels, inputs, 2, &err) ||
                       folder_make_new(s->out, &s->made, &err) || folder_lock(s->out, &s->lock, &err);
    free(truth);
    if (wrong)
        return cli_fail(&err);
    report_sweep(s->out);
    return CLI_GO;
}

static void take_row(void *context, const hfsad_figures *row)
{
    session *s = context;
    if (!s->has_row || row->iteration > s->figures.iteration)
        report_row(s->report, row);
    s->figures = *row;
    s->has_row = true;
}

static void take_old_row(void *context, const hfsad_figures *row)
{
    session *s = context;
    take_row(s, row);
    cloud_take_old_row(s->cloud, row);
}

static hfsad_status begin(void *context, const member *m, const inquiry_turns *turns, hfsad_error *err)
{
    session *s = context;
    s->root = host_node(m->h, 0);
    hfsad_status status = cloud_create(&s->cloud, m->f, m->h, m->spec, turns, err);
    if (!status)
        status = report_create(&s->report, cloud_run(s->cloud), s->spec, s->out, err);
    if (!status)
        status = store_get_rows(m->state, take_old_row, s, err);
    s->write_next = clock_seconds() + (report_exists(s->out) ? s->spec->output.every_seconds : 0);
    progress_start(&s->progress, "round", node_get_status(s->root).round, 0, s->quiet);
    return status;
}

static hfsad_status write_folder(session *s, stop_reason stopped, hfsad_error *err)
{
    return run_write(s->report, &s->figures, stopped, s->spec->output.every_seconds, &s->write_next, err);
}

/* Before the first row there may be training for the start; the rate is then that of this life's own iterations. */
static void draw(void *context)
{
    session *s = context;
    if (!s->has_row) {
        progress_draw(&s->progress, s->root ? node_get_status(s->root).round : 0, "before the run");
        return;
    }
    if (s->progress.total == 0) {
        progress_end(&s->progress);
        progress_start(&s->progress, "iteration", s->figures.iteration, (uint64_t)s->spec->run.iterations, s->quiet);
    }
    if (progress_due(&s->progress)) {
        char detail[100];
        const int n = snprintf(detail, sizeof detail, "objective %.4g", s->figures.objective);
        if (cloud_run(s->cloud)->truth)
            snprintf(detail + n, sizeof detail - (size_t)n, "  error %.1e", s->figures.relative_error);
        progress_draw(&s->progress, s->figures.iteration, detail);
    }
}

static bool is_interrupted(void *context)
{
    (void)context;
    if (cli_interrupted())
        cli_interrupts_heed();
    return cli_interrupted() != 0;
}

static bool is_due(void *context)
{
    return clock_seconds() >= ((const session *)context)->write_next;
}

static void visit(void *context, uint64_t iteration, const hfsad_figures *figures, bool due)
{
    session *s = context;
    hfsad_error err;
    (void)iteration;
    (void)figures;
    if (!due)
        return;
    const bool failed = write_folder(s, STOP_RUNNING, &err) != HFSAD_OK;
    if (failed && !s->write_failed)
        fprintf(stderr, "hfsad: %s; the run continues and tries again later\n", err.message);
    s->write_failed = failed;
}

static hfsad_status train(void *context, hfsad_error *err)
{
    session *s = context;
    const train_hooks hooks = {
        .context = s, .cancelled = is_interrupted, .due = is_due, .row = take_row, .visit = visit};
    train_end end;
    const hfsad_status status = cloud_train(s->cloud, &hooks, &end, err);
    s->stopped = end.stopped;
    progress_end(&s->progress);
    return status;
}

static void finish_row(void *context, const node *root, hfsad_figures *row)
{
    cloud_finish_row(((session *)context)->cloud, root, row);
}

static void hear_row(void *context, const hfsad_figures *row)
{
    cloud_take_row(((session *)context)->cloud, row);
}

static int conclude(void *context, const member *m)
{
    session *s = context;
    hfsad_error err = {0};
    hfsad_run *run = cloud_run(s->cloud);
    const stop_reason stopped = s->stopped;
    if (!s->has_row)
        return cli_interrupted() ? 128 + cli_interrupted() : CLI_DONE;
    if (write_folder(s, stopped, &err))
        return cli_fail(&err);
    if (!s->quiet && stopped != STOP_INTERRUPTED)
        run_print_table(run, m->spec, s->report, &s->figures, stopped, s->out);
    const int printed = cli_finish_stdout(CLI_DONE);
    if (stopped == STOP_DIVERGED) {
        fprintf(stderr, "hfsad: the iterates are no longer finite after iteration %" PRIu64 ": try %s; wrote %s\n",
                s->figures.iteration, run->engine->remedy, s->out);
        return CLI_FAILED;
    }
    if (stopped == STOP_INTERRUPTED) {
        fprintf(stderr, "hfsad: interrupted after iteration %" PRIu64 ": wrote %s%s\n", s->figures.iteration, s->out,
                cloud_has_models(s->cloud) ? "" : ", without the models below the cloud");
        return 128 + cli_interrupted();
    }
    return printed;
}

static void tear_down(session *s)
{
    report_free(s->report);
    cloud_free(s->cloud);
    folder_unlock(s->lock);
    if (!s->has_row)
        folder_unmake(s->out, s->made);
}

int cmd_cloud(int argc, char **argv)
{
    member_arguments a = {.sets.room = calloc((size_t)argc + 1, sizeof(char *)), .level = LOG_INFO, .linger = 6};
    int status = CLI_FAILED;
    char *folder = NULL;
    if (a.sets.room)
        status = member_parse(&a, ROLE_CLOUD, argc, argv);
    if (status == CLI_GO && !a.out)
        a.out = folder = run_folder(a.spec_path, "out");
    if (status == CLI_GO && a.out) {
        session s = {.out = a.out, .quiet = a.quiet, .lock = -1};
        const member_cloud role = {&s, check, begin, train, finish_row, hear_row, draw, conclude};
        status = member_run(&a, ROLE_CLOUD, &role);
        tear_down(&s);
    } else if (status == CLI_GO || !a.sets.room) {
        fputs("hfsad: not enough memory\n", stderr);
        status = CLI_FAILED;
    }
    free(folder);
    free(a.sets.room);
    return status;
}
