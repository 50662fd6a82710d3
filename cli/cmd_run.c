/* hfsad run: a spec, its data and a folder with what came of it. */
#include "base/clock.h"
#include "base/error.h"
#include "base/read_file.h"
#include "base/whole_file.h"
#include "cli.h"
#include "data/features.h"
#include "out/groups.h"
#include "out/report.h"
#include "out/warm.h"
#include "plan/choices.h"
#include "polish/task.h"
#include "progress.h"
#include "run.h"
#include "run/replay.h"
#include "run/save.h"
#include "spec/pack.h"
#include "spec/table.h"

#include <inttypes.h>
#include <math.h>
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
    bool replay_met; /* the record was of a run that met its tolerances */
} session;

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

static int parse_arguments(run_arguments *args, int argc, char **argv)
{
    const cli_option options[] = {
        {.name = "set",
         .kind = CLI_TEXTS,
         .value = &args->sets,
         .operand = "KEY=VALUE",
         .help = "override a setting of the spec, such as\n"
                 "run.iterations=100; may be repeated"},
        {.name = "out",
         .kind = CLI_TEXT,
         .value = &args->out,
         .operand = "DIR",
         .help = "output folder, created if missing; by default\n"
                 "spec-out in the current folder for spec.yaml"},
        {.name = "resume",
         .kind = CLI_TEXT,
         .value = &args->resume,
         .operand = "DIR",
         .help = "continue the finished or interrupted run in DIR, to the\n"
                 "same bits as an uninterrupted run; without SPEC.yaml,\n"
                 "the settings in DIR apply"},
        {.name = "warm-start",
         .kind = CLI_TEXT,
         .value = &args->warm,
         .operand = "MODEL",
         .help = "start every node from its model in MODEL, an output\n"
                 "folder or a model.csv; a node that is not in MODEL\n"
                 "starts from its nearest ancestor or the cloud"},
        {.name = "replay",
         .kind = CLI_TEXT,
         .value = &args->replay,
         .operand = "FILE",
         .help = "repeat an asynchronous federation of this spec from its\n"
                 "record, to the same bits"},
        {.name = "threads",
         .kind = CLI_WHOLE,
         .value = &args->threads,
         .least = 0,
         .most = 1024,
         .operand = "N",
         .help = "number of threads; 0, the default: one per core.\n"
                 "The results do not depend on it"},
        {.name = "quiet", .kind = CLI_FLAG, .value = &args->quiet, .help = "no progress, no table"},
    };
    const cli_syntax syntax = {
        .usage = "run SPEC.yaml [--set KEY=VALUE]... [--out DIR] [--warm-start MODEL]\n"
                 "          [--replay FILE] [--threads N] [--quiet]\n"
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
                 "A resumed run may change run.iterations, run.stop, run.polish, output.state,\n"
                 "output.every_seconds and output.checkpoint, and no other setting. Data and truth\n"
                 "may have moved, but not changed.\n\n"
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
    if (!status)
        status = report_check_inputs(s->args.out, labels, (const char *const *)paths, N, err);
    for (size_t i = 0; i < N; i++)
        free(paths[i]);
    return status;
}

/* The lock comes first: nobody replaces the checkpoint while it is read. */
static hfsad_status open_checkpoint(session *s, hfsad_error *err)
{
    struct stat info;
    if (stat(s->args.out, &info) != 0 || !S_ISDIR(info.st_mode))
        return error_set(err, HFSAD_ERROR_INPUT, "--resume %.300s: no such folder; name the output folder of a run",
                         s->args.out);
    const hfsad_status status = folder_lock(s->args.out, &s->lock, err);
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
    const hfsad_status status = run_measure(s->run, &s->end.figures, err);
    if (status)
        return status;
    if (s->spec->run.iterations > 0)
        report_row(s->report, &s->end.figures);
    const replay_rows rows = {s, take_replayed};
    return run_replay(s->run, s->args.replay, &rows, &s->replay_met, err);
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
        hfsad_run_create(&s->run, s->spec, (unsigned)s->args.threads, &err) ||
        (s->args.warm && warm_start(s->run, s->args.warm, &err)) ||
        report_create(&s->report, s->run, s->spec, s->args.out, &err) || (s->args.resume && resume(s, &err)) ||
        (s->args.replay && replay(s, &err)))
        return cli_fail(&err);
    if (s->spec->output.checkpoint && s->run->engine->links) /* once, not for every checkpoint */
        run_take_prints(s->run);
    return CLI_GO;
}

static void tear_down(session *s)
{
    report_free(s->report);
    hfsad_run_free(s->run);
    hfsad_spec_free(s->spec);
    checkpoint_close(&s->from);
    folder_unlock(s->lock);
}

hfsad_status run_write(report *r, const hfsad_figures *figures, stop_reason stopped, double every_seconds, double *next,
                       hfsad_error *err)
{
    const double before = clock_seconds();
    const hfsad_status status = report_write(r, figures, stopped, err);
    const double after = clock_seconds();
    *next = after + fmax(every_seconds, 10 * (after - before));
    return status;
}

static hfsad_status write_folder(session *s, stop_reason stopped, hfsad_error *err)
{
    return run_write(s->report, &s->end.figures, stopped, s->spec->output.every_seconds, &s->write_next, err);
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
    return clock_seconds() >= s->write_next;
}

static void take_row(void *context, const hfsad_figures *row)
{
    session *s = context;
    report_row(s->report, row);
}

/* The start is no reason to give up an earlier result: that stays until there is more to show, or the end. */
static hfsad_status begin(void *context, const hfsad_figures *figures, hfsad_error *err)
{
    session *s = context;
    hfsad_status status = HFSAD_OK;
    s->end.figures = *figures;
    if (s->args.replay)
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
        .origin = s->args.resume   ? TRAIN_RESUMED
                  : s->args.replay ? TRAIN_REPLAYED
                                   : TRAIN_FRESH,
        .tolerance_met = s->replay_met,
        .hooks = &hooks,
    };
    const hfsad_status status = run_train(s->run, &settings, &s->end, err);
    progress_end(&s->progress);
    return status == HFSAD_ERROR_DIVERGED ? HFSAD_OK : status;
}

/* Label and value, the value broken at spaces to stay within 80 columns. */
static void print_row(const char *label, const char *value)
{
    enum { COLUMN = 21, WIDTH = 80 };
    printf("%-*s", COLUMN, label);
    int at = COLUMN;
    while (*value) {
        const int length = (int)strcspn(value, " ");
        if (at > COLUMN && at + 1 + length > WIDTH) {
            printf("\n%*s", COLUMN, "");
            at = COLUMN;
        } else if (at > COLUMN) {
            putchar(' ');
            at++;
        }
        printf("%.*s", length, value);
        at += length;
        value += length + (value[length] == ' ');
    }
    putchar('\n');
}

static void print_number(const char *label, double v)
{
    char text[40];
    snprintf(text, sizeof text, "%.8g", v);
    print_row(label, text);
}

static const char *plural(size_t n)
{
    return n == 1 ? "" : "s";
}

static void print_data(const dataset *d)
{
    char text[300], each[100] = "";
    const clients_per_edge clients = count_clients(d);
    if (d->n_inner > 1 && clients.least == clients.most)
        snprintf(each, sizeof each, " (%zu each)", clients.least);
    else if (d->n_inner > 1)
        snprintf(each, sizeof each, " (%zu to %zu each)", clients.least, clients.most);
    const size_t F = features_count(d);
    char rows[60] = "";
    if (d->n_rows > d->n_leaves)
        snprintf(rows, sizeof rows, ", %zu rows", d->n_rows);
    snprintf(text, sizeof text, "%zu edge%s, %zu client%s%s%s, %zu feature%s%s, %" PRIu32 " tier%s", d->n_inner - 1,
             plural(d->n_inner - 1), d->n_leaves, plural(d->n_leaves), each, rows, F, plural(F),
             d->M > F ? " and intercept" : "", d->depth, plural(d->depth));
    print_row("data", text);
}

static void print_loss(const hfsad_spec *spec)
{
    static const char *const presets[] = {PRESET_NAMES}, *const algorithms[] = {ALGORITHM_NAMES};
    const hfsad_loss loss = loss_of(&spec->loss, NULL);
    char text[300];
    size_t n = (size_t)snprintf(text, sizeof text, "%s", loss_names[loss.kind]);
    n += loss_parameters_text(&loss, ", ", text + n, sizeof text - n);
    if (isfinite(spec->loss.box))
        snprintf(text + n, sizeof text - n, ", box %g", spec->loss.box);
    print_row("loss", text);
    if (spec->top.algorithm != ALGORITHM_HFSAD)
        print_row("algorithm", algorithms[spec->top.algorithm]);
    n = (size_t)snprintf(text, sizeof text, "%s", presets[spec->top.preset]);
    if (spec->n_overrides)
        snprintf(text + n, sizeof text - n, ", %zu override%s", spec->n_overrides, plural(spec->n_overrides));
    print_row("preset", text);
}

static void print_end(const session *s, stop_reason stopped)
{
    static const char *const reasons[] = {
        [STOP_RUNNING] = "?",
        [STOP_ITERATIONS] = "iteration limit",
        [STOP_TOLERANCE] = "tolerances met",
        [STOP_INTERRUPTED] = "interrupted",
        [STOP_DIVERGED] = "diverged: the iterates are no longer finite",
    };
    char text[200];
    const hfsad_figures *f = &s->end.figures;
    const unsigned threads = pool_threads(s->run->threads);
    print_row("start", s->run->start_kind ? s->run->start_kind : "?");
    print_row("stopped", reasons[stopped]);
    snprintf(text, sizeof text, "%" PRIu64 " in %.3g s, %.4g per second, %u thread%s", f->iteration, f->seconds,
             f->seconds > 0 ? (double)f->iteration / f->seconds : 0.0, threads, plural(threads));
    print_row("iterations", text);
}

/* "25 clients in a group of their own: edge1/client3, edge2/client7, ..." */
static void print_group(const hfsad_run *run, const node_groups *g, uint32_t group)
{
    enum { SHOWN = 6 };
    char text[80 + SHOWN * 70], name[64];
    size_t shown = 0, n = (size_t)snprintf(text, sizeof text, "%zu client%s on %s own:", g->clients[group],
                                           plural(g->clients[group]), g->clients[group] == 1 ? "its" : "their");
    const size_t inner = run->data->n_inner;
    for (size_t node = inner; node < hfsad_run_nodes(run) && shown <= SHOWN; node++) {
        if (g->group[node] != group)
            continue;
        hfsad_run_node_name(run, node, name, sizeof name);
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", shown ? ", " : " ", shown < SHOWN ? name : "...");
        shown++;
    }
    print_row("", text);
}

static void print_groups(const hfsad_run *run)
{
    enum { LINES = 8 };
    node_groups g;
    char text[100];
    if (groups_find(&g, run, NULL) || g.count == 0)
        return;
    snprintf(text, sizeof text, "%zu found: %zu client%s with the cloud's model", g.count, g.clients[0],
             plural(g.clients[0]));
    print_row("groups", text);
    for (uint32_t i = 1; i < g.count && i <= LINES; i++)
        print_group(run, &g, i);
    if (g.count > LINES + 1)
        print_row("", "and others; summary.json lists all");
    groups_free(&g);
}

static void print_polish(const hfsad_polish *p)
{
    char text[300];
    if (p->accepted)
        snprintf(text, sizeof text, "objective %.10g, by %.1e lower, gap %.1e", p->objective_after,
                 p->objective_before - p->objective_after, p->gap);
    else
        snprintf(text, sizeof text, "not done: %s", p->reason[0] ? p->reason : "the run ended before");
    print_row("polish", text);
    if (p->accepted) {
        snprintf(text, sizeof text, "%" PRIu64 " in %.3g s", p->exchanges, p->seconds);
        print_row("exchanges", text);
    }
    if (p->accepted && !isnan(p->relative_error))
        print_number("polished error", p->relative_error);
}

static void print_table(const session *s, stop_reason stopped)
{
    const hfsad_figures *f = &s->end.figures;
    const theorem_report *theorem = report_theorem(s->report);
    char text[300];
    print_data(s->run->data);
    print_loss(s->spec);
    print_end(s, stopped);
    print_number("objective", f->objective);
    print_number("consensus objective", f->consensus_objective);
    if (s->run->engine->links) {
        print_number("primal residual", f->primal_residual);
        print_number("dual residual", f->dual_residual);
    }
    print_number("consensus gap", f->consensus_gap);
    if (s->run->engine->links)
        print_number("smoothing gap", f->smoothing_gap);
    if (s->run->truth)
        print_number("relative error", f->relative_error);
    if (polish_is_due(s->spec, s->run->plan, s->run->data->n_inner, s->run->data->M))
        print_polish(&s->run->polish);
    snprintf(text, sizeof text, "%zu of %zu in the cloud's model", count_nonzero(s->run), features_count(s->run->data));
    print_row("non-zero", text);
    print_groups(s->run);
    snprintf(text, sizeof text, "%s%s",
             theorem->holds ? "covers this run" : "does not cover this run: ", theorem->holds ? "" : theorem->reason);
    if (s->run->engine->links)
        print_row("Theorem 1", text);
    hfsad_verdict verdict;
    run_verdict(s->run, s->spec, stopped == STOP_INTERRUPTED, &verdict);
    print_row("verdict", verdict.text);
    print_row("written to", s->args.out);
}

void run_print_table(hfsad_run *run, hfsad_spec *spec, report *written, const hfsad_figures *figures,
                     stop_reason stopped, const char *out)
{
    const session s = {.args.out = out, .spec = spec, .run = run, .report = written, .end.figures = *figures};
    print_table(&s, stopped);
}

/* Last words on stderr, and the exit status. */
static int conclude(const session *s, stop_reason stopped)
{
    const uint64_t i = s->end.figures.iteration;
    if (stopped == STOP_DIVERGED) {
        fprintf(stderr, "hfsad: the iterates are no longer finite after iteration %" PRIu64 ": try %s; wrote %s\n", i,
                s->run->engine->remedy, s->args.out);
        return CLI_FAILED;
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
static void catch_interrupts(bool quiet)
{
#define SLOW_LINE "hfsad: finishing the iteration; Ctrl-C again ends at once"
    cli_when_slow(quiet ? NULL : isatty(STDERR_FILENO) ? "\n" SLOW_LINE : SLOW_LINE);
#undef SLOW_LINE
    cli_catch_interrupts();
}

static int carry_out(session *s)
{
    hfsad_error err = {0};
    if (folder_make_new(s->args.out, &s->made, &err))
        return cli_fail(&err);
    if (!s->args.resume && folder_lock(s->args.out, &s->lock, &err))
        return fail_write(s, &err);
    report_sweep(s->args.out);
    catch_interrupts(s->args.quiet);
    if (train(s, &err) || write_folder(s, s->end.stopped, &err))
        return fail_write(s, &err);
    if (!s->args.quiet && !s->args.no_table)
        print_table(s, s->end.stopped);
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

int run_algorithm(const run_arguments *args, const char *command, int *algorithm)
{
    hfsad_error err = {0};
    hfsad_spec *spec;
    if (hfsad_spec_load(&spec, args->spec_path, &err))
        return cli_fail(&err);
    const int status = cli_apply_sets(spec, &args->sets, command);
    *algorithm = spec->top.algorithm;
    hfsad_spec_free(spec);
    return status;
}

int run_spec(const run_arguments *args, const char *command, bool *diverged)
{
    session s = {.args = *args, .lock = -1};
    int status = set_up(&s, command);
    if (status == CLI_GO)
        status = carry_out(&s);
    *diverged = s.diverged;
    tear_down(&s);
    return status;
}

int cmd_run(int argc, char **argv)
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
