/* hfsad run: a spec, its data and a folder with what came of it. */
#include "base/clock.h"
#include "base/error.h"
#include "base/ranks.h"
#include "base/read_file.h"
#include "base/whole_file.h"
#include "cli.h"
#include "held.h"
#include "out/end_table.h"
#include "out/warm.h"
#include "progress.h"
#include "run.h"
#include "run/replay.h"
#include "run/save.h"
#include "spec/pack.h"
#include "spec/table.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Everything between set-up and clean-up; zero: not made yet. */
typedef struct {
    run_arguments args;
    hfsad_spec *spec;
    hfsad_run *run;
    report *report;
    train_end end; /* as far as it is known: of the last measurement */
    progress progress;
    checkpoint from;   /* to resume */
    int lock;          /* of the folder; -1: none */
    size_t made;       /* folders, for folder_unmake */
    double write_next; /* when the folder is due, on clock_seconds */
    bool write_failed; /* and the person knows */
    bool diverged;
    bool replay_all;  /* the record was of a whole run: there is nothing to train */
    bool replay_met;  /* the record was of a run that met its tolerances */
    record record;    /* of the history */
    double *model;    /* room for the cloud's, as the history keeps it; NULL: none */
    uint64_t repairs; /* of the safeguard, as far as the history knows */
} session;

/* Of several ranks one writes and prints. */
static bool is_first(void)
{
    return ranks()->rank == 0;
}

static int check_arguments(const run_arguments *args, const char *command)
{
    if (!args->spec_path && !args->resume)
        return cli_wrong(command, "a spec file is missing");
    if (args->resume && args->out)
        return cli_wrong(command, "--resume writes to the folder that it resumes; omit --out");
    if (args->resume && args->warm)
        return cli_wrong(command, "--resume continues from the state of the run; omit --warm-start");
    if (args->replay && (args->resume || args->warm))
        return cli_wrong(command, "--replay repeats a whole run; omit --resume and --warm-start");
    return CLI_GO;
}

static const char *const devices[] = {"cpu", "cuda", NULL};

static int parse_arguments(run_arguments *args, int argc, char **argv)
{
    const cli_option options[] = {
        {"set", CLI_TEXTS, &args->sets, 0, 0, NULL, "KEY=VALUE",
         "override a setting of the spec, such as\n"
         "run.iterations=100; may be repeated"},
        {"out", CLI_TEXT, &args->out, 0, 0, NULL, "DIR",
         "output folder, created if missing; by default\n"
         "spec-out in the current folder for spec.yaml"},
        {"resume", CLI_TEXT, &args->resume, 0, 0, NULL, "DIR",
         "continue the finished or interrupted run in DIR, to the\n"
         "same bits as an uninterrupted run; without SPEC.yaml,\n"
         "the settings in DIR apply"},
        {"warm-start", CLI_TEXT, &args->warm, 0, 0, NULL, "MODEL",
         "start every node from its model in MODEL, an output\n"
         "folder or a model.csv; a node that is not in MODEL\n"
         "starts from its nearest ancestor or the cloud"},
        {"replay", CLI_TEXT, &args->replay, 0, 0, NULL, "FILE",
         "repeat an asynchronous federation of this spec from its\n"
         "record, to the same bits"},
        {"threads", CLI_WHOLE, &args->threads, 0, 1024, NULL, "N",
         "number of threads; 0, the default: one per core.\n"
         "The results do not depend on it"},
        RECORD_OPTIONS(&args->record),
        DASH_OPTIONS(&args->record),
        {"force", CLI_FLAG, &args->force, 0, 0, NULL, NULL, "replace results of another spec in DIR"},
        {"device", CLI_CHOICE, &args->device, 0, 0, devices, "NAME",
         "cpu, the default, or cuda: HFSAD's rounds on a GPU, to\n"
         "the same bits; one row per client"},
        {"quiet", CLI_FLAG, &args->quiet, 0, 0, NULL, NULL, "no progress, no table"},
    };
    const cli_syntax syntax = {
        .usage = "run SPEC.yaml [--set KEY=VALUE]... [--out DIR] [--warm-start MODEL]\n"
                 "          [--replay FILE] [--threads N] [--device NAME] [--force] [--quiet]\n"
                 "hfsad run --resume DIR [SPEC.yaml] [--set KEY=VALUE]... [--threads N] [--quiet]",
        .about = "Trains models from a spec. `hfsad settings` lists the keys of a spec.",
        .options = options,
        .n_options = sizeof options / sizeof *options,
        .least_words = 0,
        .most_words = 1,
        .words = "a spec file",
        .after = "DIR contains trace.csv (one row per global iteration), model.csv (the models),\n"
                 "state.csv (z, q and counter of every link), summary.json and checkpoint.bin. DIR\n"
                 "is updated during the run. Each file is replaced as a whole. An earlier result\n"
                 "stays until this run has more than its start to write.\n\n"
                 "A resumed run may change run.iterations, run.stop, run.polish, personal, groups,\n"
                 "output.state, output.every_seconds and output.checkpoint, and no other setting.\n"
                 "Data and truth may have moved, but not changed.\n\n"
                 "mpirun -n N hfsad run ... shares the run out over N processes, to the same files.\n\n"
                 "Ctrl-C, SIGTERM and SIGHUP end the run after the current iteration, or abandon its\n"
                 "polish, and write the results so far. A second signal ends the run at once.\n\n"
                 "Exit status: 0 done, 1 the run failed (diverged, disk full), 2 the spec, data or\n"
                 "arguments are wrong, 129 after SIGHUP, 130 after Ctrl-C, 143 after SIGTERM.",
    };
    const int status = cli_parse(&syntax, argc, argv, &args->spec_path);
    return status == CLI_GO ? check_arguments(args, argv[0]) : status;
}

char *run_folder(const char *spec_path, const char *ending)
{
    const char *slash = strrchr(spec_path, '/');
    const char *name = slash ? slash + 1 : spec_path;
    const char *dot = strrchr(name, '.');
    const size_t length = dot && dot != name ? (size_t)(dot - name) : strlen(name);
    char *folder = malloc(length + strlen(ending) + 2);
    if (folder)
        sprintf(folder, "%.*s-%s", (int)length, name, ending);
    return folder;
}

hfsad_status run_check_owner(const char *folder, const char *spec_path, hfsad_error *err)
{
    const hfsad_status status = report_check_owner(folder, spec_path, err);
    const size_t used = strlen(err->message);
    if (status == HFSAD_ERROR_INPUT)
        snprintf(err->message + used, sizeof err->message - used, ", or --force");
    return status;
}

/* A run must not write over what it reads. */
static hfsad_status check_inputs(const session *s, hfsad_error *err)
{
    static const char *const labels[] = {"the spec", "data", "truth", "run.start"};
    const char *const names[] = {s->args.spec_path, s->spec->top.data, s->spec->top.truth, s->spec->run.start};
    enum { N = sizeof labels / sizeof *labels };
    char *paths[N] = {0};
    hfsad_status status = HFSAD_OK;
    for (size_t i = 0; i < N && !status; i++) {
        if (!names[i])
            continue;
        paths[i] = i ? spec_find_file(s->spec, names[i]) : strdup(names[i]);
        if (!paths[i])
            status = error_memory(err, strlen(names[i]), "a file name");
    }
    if (!status)
        status = folder_check_outside(s->args.out, paths[1], err);
    if (!status && !s->args.resume && !s->args.force)
        status = run_check_owner(s->args.out, s->args.spec_path, err);
    if (!status)
        status = report_check_inputs(s->args.out, labels, (const char *const *)paths, N, err);
    for (size_t i = 0; i < N; i++)
        free(paths[i]);
    return status;
}

/* The lock comes first: no process replaces the checkpoint while it is read. */
static hfsad_status open_checkpoint(session *s, hfsad_error *err)
{
    struct stat info;
    if (stat(s->args.out, &info) != 0 || !S_ISDIR(info.st_mode))
        return error_set(err, HFSAD_ERROR_INPUT, "--resume %.300s: no such folder; name the output folder of a run",
                         s->args.out);
    const hfsad_status status = is_first() ? folder_lock(s->args.out, &s->lock, err) : HFSAD_OK;
    if (status)
        return status;
    char *path = path_join(s->args.out, CHECKPOINT_NAME);
    if (!path)
        return error_memory(err, strlen(s->args.out), "a file name");
    const hfsad_status opened = checkpoint_open(&s->from, path, err);
    free(path);
    return opened;
}

static hfsad_status load_spec(session *s, hfsad_error *err)
{
    if (s->args.spec_path)
        return hfsad_spec_load(&s->spec, s->args.spec_path, err);
    return spec_copy(&s->spec, s->from.spec, err);
}

static hfsad_status check_resumed(const session *s, hfsad_error *err)
{
    const uint64_t done = s->from.iteration, wanted = (uint64_t)s->spec->run.iterations;
    if (done > wanted)
        return error_set(err, HFSAD_ERROR_INPUT, "%s is at iteration %" PRIu64 "; give run.iterations of at least that",
                         s->args.out, done);
    return checkpoint_check_spec(&s->from, s->spec, err);
}

/* Where a run that stood still between two rows of the trace is to end, its dual residual was not formed. */
static hfsad_status resume(session *s, hfsad_error *err)
{
    const hfsad_status status = report_resume(s->report, s->run, &s->from, err);
    const uint64_t done = s->from.iteration;
    checkpoint_close(&s->from);
    if (!status && done == (uint64_t)s->spec->run.iterations && !sim_dual_known(s->run->sim))
        return error_set(err, HFSAD_ERROR_INPUT,
                         "%s was interrupted at iteration %" PRIu64 "; give more run.iterations", s->args.out, done);
    return status;
}

static void take_replayed(void *context, const hfsad_figures *figures)
{
    session *s = context;
    report_row(s->report, figures);
}

/* The record instead of iterations. */
static hfsad_status replay(session *s, hfsad_error *err)
{
    const replay_rows rows = {s, take_replayed};
    return run_replay(s->run, s->args.replay, &rows, &s->replay_all, &s->replay_met, err);
}

/* Everything that can be wrong with what the person gave is found here, before anything is written. */
static int set_up(session *s, const char *command)
{
    hfsad_error err = {0};
    if ((s->args.resume && open_checkpoint(s, &err)) || load_spec(s, &err))
        return cli_fail(&err);
    const int status = cli_apply_sets(s->spec, &s->args.sets, command);
    if (status != CLI_GO)
        return status;
    if (hfsad_spec_check(s->spec, &err) || (s->args.resume && check_resumed(s, &err)) ||
        folder_check(s->args.out, &err) || check_inputs(s, &err) ||
        (s->args.replay ? run_create_replay(&s->run, s->spec, s->args.replay, (unsigned)s->args.threads, &err)
                        : hfsad_run_create(&s->run, s->spec, (unsigned)s->args.threads, &err)) ||
        (s->args.warm && warm_start(s->run, s->args.warm, &err)) ||
        (s->args.device && run_use_device(s->run, devices[s->args.device], &err)) ||
        report_create(&s->report, s->run, s->spec, s->args.out, &err) || (s->args.resume && resume(s, &err)) ||
        (s->args.replay && replay(s, &err)))
        return cli_fail(&err);
    if (s->spec->output.checkpoint && s->run->algorithm->links) /* once, not for every checkpoint */
        run_take_prints(s->run);
    return CLI_GO;
}

static void tear_down(session *s)
{
    free(s->model);
    report_free(s->report);
    hfsad_run_free(s->run);
    hfsad_spec_free(s->spec);
    checkpoint_close(&s->from);
    folder_unlock(s->lock);
}

static hfsad_status write_folder(session *s, stop_reason stopped, hfsad_error *err)
{
    if (!is_first())
        return HFSAD_OK;
    return report_write_timed(s->report, &s->end.figures, stopped, s->spec->output.every_seconds, &s->write_next, err);
}

/* While the run goes on a full disk is no reason to lose it: it may have room again at the end. */
static void write_on_the_way(session *s)
{
    hfsad_error err = {0};
    if (!write_folder(s, STOP_RUNNING, &err)) {
        s->write_failed = false;
    } else if (!s->write_failed) {
        progress_end(&s->progress);
        fprintf(stderr, "hfsad: %s; the run continues and tries again later\n", err.message);
        progress_start(&s->progress, "iteration", s->end.figures.iteration, (uint64_t)s->spec->run.iterations,
                       s->args.quiet);
        s->write_failed = true;
    }
}

static void draw_progress(session *s, uint64_t iteration)
{
    char detail[100];
    if (!progress_due(&s->progress))
        return;
    int n = snprintf(detail, sizeof detail, "objective %.4g", s->end.figures.objective);
    if (s->run->truth)
        snprintf(detail + n, sizeof detail - (size_t)n, "  error %.1e", s->end.figures.relative_error);
    progress_draw(&s->progress, iteration, detail);
}

/* ---- hooks of the training ---- */

static bool is_interrupted(void *context)
{
    (void)context;
    if (cli_interrupted())
        cli_interrupts_heed();
    return cli_interrupted() != 0;
}

static bool is_due(void *context)
{
    const session *s = context;
    return is_first() && clock_seconds() >= s->write_next;
}

static void take_row(void *context, const hfsad_figures *row)
{
    session *s = context;
    report_row(s->report, row);
    if (s->record.r && recorder_wants_model(s->record.r, row->iteration) && s->model)
        hfsad_run_node_model(s->run, 0, s->model);
    record_row(&s->record, row, s->model, hfsad_run_features(s->run));
    uint64_t last = 0;
    const uint64_t repairs = s->record.r && s->run->engine->repairs ? s->run->engine->repairs(s->run, &last) : 0;
    if (repairs > s->repairs) {
        char text[100];
        snprintf(text, sizeof text, "safeguard: repair %" PRIu64 " at iteration %" PRIu64, repairs, last);
        recorder_event(s->record.r, HISTORY_WARNING, "", text);
    }
    s->repairs = repairs;
}

/* The start is no reason to give up an earlier result: that stays until there is more to show, or the end. */
static hfsad_status begin(void *context, const hfsad_figures *figures, hfsad_error *err)
{
    session *s = context;
    hfsad_status status = HFSAD_OK;
    s->end.figures = *figures;
    if (s->replay_all)
        return HFSAD_OK;
    if (report_exists(s->args.out))
        s->write_next = clock_seconds() + s->spec->output.every_seconds;
    else
        status = write_folder(s, STOP_RUNNING, err);
    progress_start(&s->progress, "iteration", figures->iteration, (uint64_t)s->spec->run.iterations, s->args.quiet);
    return status;
}

static void visit(void *context, uint64_t iteration, const hfsad_figures *figures, bool due)
{
    session *s = context;
    s->end.figures = *figures;
    if (due)
        write_on_the_way(s);
    draw_progress(s, iteration);
}

/* The folder has the run's own end first, which stays where the polish is interrupted or killed. */
static hfsad_status before_polish(void *context, const hfsad_figures *figures, stop_reason stopped, hfsad_error *err)
{
    session *s = context;
    s->end.figures = *figures;
    progress_end(&s->progress);
    recorder_event(s->record.r, HISTORY_INFO, "", "the polish begins");
    const hfsad_status status = write_folder(s, stopped, err);
    if (!status)
        progress_start(&s->progress, "polish: exchange", 0, 0, s->args.quiet);
    return status;
}

static bool go_on(void *context, const hfsad_polish *so_far)
{
    session *s = context;
    char detail[60];
    if (is_interrupted(s))
        return false;
    if (progress_due(&s->progress)) {
        snprintf(detail, sizeof detail, "objective %.9g", so_far->objective_after);
        progress_draw(&s->progress, so_far->exchanges, detail);
    }
    return true;
}

static hfsad_status train(session *s, hfsad_error *err)
{
    const train_hooks hooks = {
        .context = s,
        .cancelled = is_interrupted,
        .due = is_due,
        .row = take_row,
        .begun = begin,
        .visit = visit,
        .trained = before_polish,
        .polishing = go_on,
    };
    const train_settings settings = {
        .origin = s->args.resume  ? TRAIN_RESUMED
                  : s->replay_all ? TRAIN_REPLAYED
                                  : TRAIN_FRESH,
        .tolerance_met = s->replay_met,
        .hooks = &hooks,
    };
    const hfsad_status status = run_train(s->run, &settings, &s->end, err);
    progress_end(&s->progress);
    return status == HFSAD_ERROR_DIVERGED ? HFSAD_OK : status;
}

static void print_table(const session *s)
{
    char *text = table_text(s->run, s->spec, s->report, &s->end, s->args.out);
    fputs(text ? text : "", stdout);
    free(text);
}

/* Last words on stderr, and the exit status. */
static int conclude(const session *s, stop_reason stopped)
{
    const uint64_t i = s->end.figures.iteration;
    if (stopped == STOP_DIVERGED) {
        fprintf(stderr, "hfsad: the iterates are no longer finite after iteration %" PRIu64 ": try %s; wrote %s\n", i,
                s->run->algorithm->remedy, s->args.out);
        return CLI_FAILED;
    }
    if (stopped == STOP_INTERRUPTED && s->run->timed_out && !cli_interrupted()) {
        fprintf(stderr, "hfsad: run.stop.time is over after iteration %" PRIu64 ": wrote %s\n", i, s->args.out);
        return CLI_DONE;
    }
    if (stopped == STOP_INTERRUPTED) {
        fprintf(stderr, "hfsad: interrupted after iteration %" PRIu64 ": wrote %s\n", i, s->args.out);
        return 128 + cli_interrupted();
    }
    return CLI_DONE;
}

static int fail_write(session *s, const hfsad_error *err)
{
    folder_unmake(s->args.out, s->made);
    return cli_fail(err);
}

/* On a terminal the line of the progress, or what Ctrl-C is echoed as, is left first. */
static void catch_interrupts(const session *s)
{
    static char together[600];
#define SLOW_LINE "hfsad: finishing the iteration; Ctrl-C again ends at once"
    cli_when_slow(s->args.quiet ? NULL : isatty(STDERR_FILENO) ? "\n" SLOW_LINE : SLOW_LINE);
#undef SLOW_LINE
    if (ranks()->count > 1) { /* mpirun ends all ranks if one of them dies, and kills them a second later */
        snprintf(together, sizeof together,
                 "hfsad: this rank is told to end and waits for the others; if one of them died: hfsad run --resume "
                 "%.400s goes on from the last checkpoint",
                 s->args.out);
        cli_when_slow(is_first() ? together : NULL);
    }
    cli_catch_interrupts();
}

static int enter_history(session *s)
{
    const recorder_start start = {.kind = s->args.kind ? s->args.kind : "run",
                                  .spec_path = s->args.spec_path,
                                  .out = s->args.out,
                                  .spec = s->spec,
                                  .settled = hfsad_run_settings(s->run)};
    const int status = record_begin(&s->record, &s->args.record, &start, s->args.quiet);
    if (status == CLI_GO && s->record.r) {
        s->model = calloc(hfsad_run_features(s->run), sizeof *s->model);
        if (s->args.resume) /* the rows that are there already */
            record_trace(&s->record, s->args.out);
    }
    return status;
}

static int carry_out(session *s)
{
    hfsad_error err = {0};
    if (is_first() && folder_make_new(s->args.out, &s->made, &err))
        return cli_fail(&err);
    if (is_first() && !s->args.resume && folder_lock(s->args.out, &s->lock, &err))
        return fail_write(s, &err);
    const int recorded = is_first() ? enter_history(s) : CLI_GO;
    if (recorded != CLI_GO) {
        folder_unmake(s->args.out, s->made);
        return recorded;
    }
    if (is_first())
        report_sweep(s->args.out);
    catch_interrupts(s);
    if (train(s, &err) || write_folder(s, s->end.stopped, &err))
        return fail_write(s, &err);
    if (!s->args.quiet && !s->args.no_table)
        print_table(s);
    const int exit_status = cli_finish_stdout(CLI_DONE);
    s->diverged = s->end.stopped == STOP_DIVERGED;
    const int concluded = conclude(s, s->end.stopped);
    return concluded ? concluded : exit_status;
}

int run_check(const run_arguments *args, const char *command)
{
    session s = {.args = *args, .lock = -1};
    const int status = set_up(&s, command);
    tear_down(&s);
    return status;
}

int run_algorithm(const run_arguments *args, const char *command, char *algorithm, size_t size)
{
    hfsad_error err = {0};
    hfsad_spec *spec;
    if (hfsad_spec_load(&spec, args->spec_path, &err))
        return cli_fail(&err);
    int status = cli_apply_sets(spec, &args->sets, command);
    if (status == CLI_GO && hfsad_spec_get(spec, "algorithm", algorithm, size, NULL, &err))
        status = cli_fail(&err);
    hfsad_spec_free(spec);
    return status;
}

int run_spec(const run_arguments *args, const char *command, bool *diverged)
{
    session s = {.args = *args, .lock = -1};
    int status = set_up(&s, command);
    if (status == CLI_GO)
        status = carry_out(&s);
    if (s.model && s.record.r) { /* after the polish, if there was one */
        hfsad_run_node_model(s.run, 0, s.model);
        recorder_model(s.record.r, s.end.figures.iteration, s.model, hfsad_run_features(s.run));
    }
    if (s.args.replay && status == CLI_DONE) /* its rows came before the folder was there */
        record_trace(&s.record, s.args.out);
    record_end(&s.record, status, s.diverged);
    *diverged = s.diverged;
    tear_down(&s);
    return status;
}

/* All ranks end together, with one status and the words of one of them; a rank that ends alone ends them all. */
static int leave_ranks(int status)
{
    const rank_group *group = ranks();
    if (group->count == 1)
        return status;
    int *statuses = calloc(group->count, sizeof *statuses);
    fflush(stdout);
    if (!statuses || !group->leave(group->context, status, statuses)) {
        held_say();
        group->end(group->context, status ? status : CLI_FAILED);
    }
    unsigned first = 0;
    while (first < group->count && statuses[first] == CLI_DONE)
        first++;
    if (first == group->rank)
        held_say();
    status = first < group->count ? statuses[first] : CLI_DONE;
    free(statuses);
    return status;
}

static int run(int argc, char **argv)
{
    run_arguments args = {.sets.room = calloc((size_t)argc + 1, sizeof(char *))};
    int status = CLI_FAILED;
    bool diverged;
    char *folder = NULL;
    if (args.sets.room)
        status = parse_arguments(&args, argc, argv);
    if (status == CLI_GO && args.resume)
        args.out = args.resume;
    if (status == CLI_GO && !args.out)
        args.out = folder = run_folder(args.spec_path, "out");
    if (status == CLI_GO && args.out)
        status = run_spec(&args, argv[0], &diverged);
    if (!args.sets.room || status == CLI_GO) {
        fputs("hfsad: not enough memory\n", stderr);
        status = CLI_FAILED;
    }
    free(folder);
    free(args.sets.room);
    return status;
}

int cmd_run(int argc, char **argv)
{
    char why[300] = "";
    if (!ranks_launch(why, sizeof why))
        return cli_wrong(argv[0], "%s", why);
    if (!is_first())
        held_begin();
    return leave_ranks(run(argc, argv));
}
