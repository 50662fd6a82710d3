/* hfsad run: trains a spec and writes an output folder. */
#include "base/error.h"
#include "base/ranks.h"
#include "cli.h"
#include "held.h"
#include "progress.h"
#include "run.h"

#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Everything from set-up to clean-up; all members 0: not made yet. */
typedef struct {
    run_arguments args;
    const char *command;
    int refused; /* exit status of an error that was already printed */
    hfsad_job *job;
    int64_t iterations;
    hfsad_stop stop;
    progress progress;
    record record;    /* entry in the history */
    double *model;    /* room for the cloud's model, for the history; NULL: none */
    uint64_t repairs; /* repairs of the safeguard that the history has */
} session;

/* Only the first rank writes and prints. */
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
         "the same bits; docs/scale.md lists what it can do"},
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

static void name_force(hfsad_error *err)
{
    const size_t used = strlen(err->message);
    snprintf(err->message + used, sizeof err->message - used, ", or --force");
}

hfsad_status run_check_owner(const char *folder, const char *spec_path, hfsad_error *err)
{
    const hfsad_status status = hfsad_folder_check_owner(folder, spec_path, err);
    if (status == HFSAD_ERROR_INPUT)
        name_force(err);
    return status;
}

static bool apply_sets(void *context, hfsad_spec *spec)
{
    session *s = context;
    s->refused = cli_apply_sets(spec, &s->args.sets, s->command);
    return s->refused == CLI_GO;
}

/* Finds every error in the user's input before anything is written. */
static int set_up_run(session *s)
{
    hfsad_error err = {0};
    s->refused = CLI_GO;
    const hfsad_job_settings settings = {
        .size = sizeof settings,
        .folder = s->args.out,
        .spec_path = s->args.spec_path,
        .resume = s->args.resume != NULL,
        .force = s->args.force,
        .threads = (unsigned)s->args.threads,
        .replay = s->args.replay,
        .warm = s->args.warm,
        .device = s->args.device ? devices[s->args.device] : NULL,
        .context = s,
        .adjust = apply_sets,
    };
    struct stat info;
    if (s->args.resume && (stat(s->args.out, &info) != 0 || !S_ISDIR(info.st_mode))) {
        error_set(&err, HFSAD_ERROR_INPUT, "--resume %.300s: no such folder; name the output folder of a run",
                  s->args.out);
        return cli_fail(&err);
    }
    if (hfsad_job_create(&s->job, &settings, &err)) {
        hfsad_error owner = {0};
        if (!s->args.resume && !s->args.force && hfsad_folder_check_owner(s->args.out, s->args.spec_path, &owner) &&
            !strcmp(owner.message, err.message))
            name_force(&err);
        return s->refused != CLI_GO ? s->refused : cli_fail(&err);
    }
    if (hfsad_spec_get_whole(hfsad_job_spec(s->job), "run.iterations", &s->iterations, &err))
        return cli_fail(&err);
    return CLI_GO;
}

static void tear_down(session *s)
{
    free(s->model);
    hfsad_job_free(s->job);
}

/* ---- hooks of the training ---- */

static void draw_progress(void *context, uint64_t iteration, const hfsad_figures *figures)
{
    session *s = context;
    char detail[100];
    if (!progress_due(&s->progress))
        return;
    int n = snprintf(detail, sizeof detail, "objective %.4g", figures->objective);
    if (!isnan(figures->relative_error))
        snprintf(detail + n, sizeof detail - (size_t)n, "  error %.1e", figures->relative_error);
    progress_draw(&s->progress, iteration, detail);
}

static bool is_interrupted(void *context)
{
    (void)context;
    if (cli_interrupted())
        cli_interrupts_heed();
    return cli_interrupted() != 0;
}

static void keep_row(void *context, const hfsad_figures *row)
{
    session *s = context;
    hfsad_run *run = hfsad_job_run(s->job);
    if (!s->record.r)
        return;
    if (recorder_wants_model(s->record.r, row->iteration) && s->model)
        hfsad_run_node_model(run, 0, s->model);
    record_row(&s->record, row, s->model, hfsad_run_features(run));
    uint64_t last;
    const uint64_t repairs = hfsad_run_repairs(run, &last);
    if (repairs > s->repairs) {
        char text[100];
        snprintf(text, sizeof text, "safeguard: repair %" PRIu64 " at iteration %" PRIu64, repairs, last);
        recorder_event(s->record.r, HISTORY_WARNING, "", text);
    }
    s->repairs = repairs;
}

static void show_start(void *context, const hfsad_figures *figures)
{
    session *s = context;
    progress_start(&s->progress, "iteration", figures->iteration, (uint64_t)s->iterations, s->args.quiet);
}

static void say_unwritten(void *context, const hfsad_figures *figures, const char *why)
{
    session *s = context;
    progress_end(&s->progress);
    fprintf(stderr, "hfsad: %s; the run continues and tries again later\n", why);
    show_start(s, figures);
}

static void before_polish(void *context)
{
    session *s = context;
    progress_end(&s->progress);
    recorder_event(s->record.r, HISTORY_INFO, "", "the polish begins");
    progress_start(&s->progress, "polish: exchange", 0, 0, s->args.quiet);
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

/* Prints the last lines on stderr; returns the exit status. */
static int conclude(const session *s)
{
    const hfsad_run *run = hfsad_job_run(s->job);
    const uint64_t i = hfsad_job_figures(s->job)->iteration;
    if (s->stop == HFSAD_STOP_DIVERGED) {
        fprintf(stderr, "hfsad: the iterates are no longer finite after iteration %" PRIu64 ": try %s; wrote %s\n", i,
                hfsad_run_remedy(run), s->args.out);
        return CLI_FAILED;
    }
    if (s->stop == HFSAD_STOP_INTERRUPTED && hfsad_run_timed_out(run) && !cli_interrupted()) {
        fprintf(stderr, "hfsad: run.stop.time is over after iteration %" PRIu64 ": wrote %s\n", i, s->args.out);
        return CLI_DONE;
    }
    if (s->stop == HFSAD_STOP_INTERRUPTED) {
        fprintf(stderr, "hfsad: interrupted after iteration %" PRIu64 ": wrote %s\n", i, s->args.out);
        return 128 + cli_interrupted();
    }
    return CLI_DONE;
}

/* On a terminal, leaves the progress line, or the echo of Ctrl-C, first. */
static void catch_interrupts(const session *s)
{
    static char together[600];
#define SLOW_LINE "hfsad: finishing the iteration; Ctrl-C again ends at once"
    cli_when_slow(s->args.quiet ? NULL : isatty(STDERR_FILENO) ? "\n" SLOW_LINE : SLOW_LINE);
#undef SLOW_LINE
    if (ranks()->count > 1) { /* mpirun ends all ranks if one dies, and kills them a second later */
        snprintf(together, sizeof together,
                 "hfsad: this rank is told to end and waits for the others; if one of them died: hfsad run --resume "
                 "%.400s goes on from the last checkpoint",
                 s->args.out);
        cli_when_slow(is_first() ? together : NULL);
    }
    cli_catch_interrupts();
}

/* The folder exists; sets what an interrupt does from here on. */
static bool enter_history(void *context)
{
    session *s = context;
    hfsad_run *run = hfsad_job_run(s->job);
    const recorder_start start = {.kind = s->args.kind ? s->args.kind : "run",
                                  .spec_path = s->args.spec_path,
                                  .out = s->args.out,
                                  .spec = hfsad_job_spec(s->job),
                                  .settled = hfsad_run_settings(run)};
    if (is_first())
        s->refused = record_begin(&s->record, &s->args.record, &start, s->args.quiet);
    if (s->refused == CLI_GO && s->record.r) {
        s->model = calloc(hfsad_run_features(run), sizeof *s->model);
        if (s->args.resume) /* the rows that exist already */
            record_trace(&s->record, s->args.out);
    }
    if (s->refused == CLI_GO)
        catch_interrupts(s);
    return s->refused == CLI_GO;
}

static int train_run(session *s)
{
    hfsad_error err = {0};
    const hfsad_job_hooks hooks = {
        .size = sizeof hooks,
        .context = s,
        .opened = enter_history,
        .cancelled = is_interrupted,
        .row = keep_row,
        .begun = show_start,
        .iterated = draw_progress,
        .unwritten = say_unwritten,
        .trained = before_polish,
        .polishing = go_on,
    };
    const hfsad_status status = hfsad_job_train(s->job, &hooks, &s->stop, &err);
    progress_end(&s->progress);
    if (status)
        return s->refused != CLI_GO ? s->refused : cli_fail(&err);
    if (!s->args.quiet && !s->args.no_table) {
        char *text = hfsad_job_table(s->job);
        fputs(text ? text : "", stdout);
        free(text);
    }
    const int exit_status = cli_finish_stdout(CLI_DONE), concluded = conclude(s);
    return concluded ? concluded : exit_status;
}

int run_check(const run_arguments *args, const char *command)
{
    session s = {.args = *args, .command = command};
    const int status = set_up_run(&s);
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
    session s = {.args = *args, .command = command, .stop = HFSAD_STOP_RUNNING};
    int status = set_up_run(&s);
    if (status == CLI_GO)
        status = train_run(&s);
    if (s.model && s.record.r) { /* after the polish, if there was one */
        hfsad_run *run = hfsad_job_run(s.job);
        hfsad_run_node_model(run, 0, s.model);
        recorder_model(s.record.r, hfsad_job_figures(s.job)->iteration, s.model, hfsad_run_features(run));
    }
    if (s.args.replay && status == CLI_DONE) /* its rows arrived before the folder existed */
        record_trace(&s.record, s.args.out);
    *diverged = s.stop == HFSAD_STOP_DIVERGED;
    record_end(&s.record, status, *diverged);
    tear_down(&s);
    return status;
}

/* All ranks end together, with one status and the message of one rank; a rank that ends alone ends them all. */
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
