/* See record.h. */
#define _GNU_SOURCE /* asprintf, mkdtemp */
#include "record.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/read_file.h"
#include "dash/server.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SUMMARY_MOST = 1 << 26, DASH_NICE = 10 };

static void warn(const hfsad_error *err)
{
    fprintf(stderr, "hfsad: %s; the run itself is not affected\n", err->message);
}

/* ---- the dashboard: a process of its own, so that nothing that happens to it reaches the training ---- */

/* The port is opened here, so that a wrong address is reported before the run begins. */
static int open_dash(const record_options *o, server **made)
{
    hfsad_error err = {0};
    const server_settings s = {.address = o->dash, .keys = o->dash_keys, .socket = -1};
    return server_create(made, &s, &err) ? cli_fail(&err) : CLI_GO;
}

/* In the child: `hfsad dash` on the open port, given as systemd gives one. */
static void become_dash(const record_options *o, const server *s, const char *path, int64_t run, pid_t parent)
{
    enum { FIRST_SOCKET = 3 };
    char self[4096], pid[24], page[24];
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || length < 0 || dup2(server_socket(s), FIRST_SOCKET) < 0)
        _exit(1);
    self[length] = 0;
    fcntl(FIRST_SOCKET, F_SETFD, 0);
    setpgid(0, 0); /* Ctrl-C is for the run, which ends this process */
    (void)setpriority(PRIO_PROCESS, 0, DASH_NICE);
    snprintf(pid, sizeof pid, "%ld", (long)getpid());
    snprintf(page, sizeof page, "%lld", (long long)run);
    setenv("LISTEN_PID", pid, 1);
    setenv("LISTEN_FDS", "1", 1);
    execl(self, "hfsad", "dash", "--listen", o->dash, "--history", path, "--run", page, "--quiet",
          o->dash_keys ? "--keys" : (char *)NULL, o->dash_keys, (char *)NULL);
    _exit(1);
}

static void start_dash(record *r, const record_options *o, const server *s, const char *path, bool quiet)
{
    const pid_t parent = getpid();
    char url[SERVER_URL_SIZE];
    server_url(s, url);
    fflush(NULL);
    r->dash = fork();
    if (r->dash == 0)
        become_dash(o, s, path, recorder_run(r->r), parent);
    if (r->dash < 0) {
        fprintf(stderr, "hfsad: no dashboard: %s\n", strerror(errno));
        r->dash = 0;
    } else if (!quiet) {
        fprintf(stderr, "hfsad: dashboard at %srun/%lld\n", url, (long long)recorder_run(r->r));
    }
}

static void stop_dash(record *r)
{
    if (r->dash > 0) {
        kill(r->dash, SIGTERM);
        (void)waitpid(r->dash, NULL, 0);
    }
    r->dash = 0;
}

/* ---- the entry ---- */

static char *scratch_history(record *r)
{
    const char *where = getenv("TMPDIR");
    char *path = NULL;
    if (asprintf(&r->scratch, "%s/hfsad-XXXXXX", where && *where ? where : P_tmpdir) < 0)
        r->scratch = NULL;
    if (!r->scratch || !mkdtemp(r->scratch) || asprintf(&path, "%s/runs.db", r->scratch) < 0)
        return NULL;
    return path;
}

static void remove_scratch(record *r)
{
    static const char *const names[] = {"runs.db", "runs.db-wal", "runs.db-shm"};
    char path[4200];
    for (size_t i = 0; r->scratch && i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%.4000s/%s", r->scratch, names[i]);
        unlink(path);
    }
    if (r->scratch)
        rmdir(r->scratch);
    free(r->scratch);
    r->scratch = NULL;
}

int record_begin(record *r, const record_options *o, const recorder_start *start, bool quiet)
{
    hfsad_error err = {0};
    server *s = NULL;
    *r = (record){0};
    if (o->dash) {
        const int status = open_dash(o, &s);
        if (status != CLI_GO)
            return status;
    }
    char *path = o->none ? NULL : o->history ? strdup(o->history) : history_default_path();
    if (!path && s)
        path = scratch_history(r);
    recorder_start all = *start;
    all.run = o->run;
    r->borrowed = o->run > 0;
    if (path && recorder_create(&r->r, path, &all, &err))
        warn(&err);
    if (!r->r && s && !r->scratch) { /* the dashboard was asked for, and needs a file */
        free(path);
        path = scratch_history(r);
        if (path && recorder_create(&r->r, path, &all, &err))
            warn(&err);
    }
    r->out = start->out ? strdup(start->out) : NULL;
    if (s && r->r)
        start_dash(r, o, s, path, quiet);
    server_free(s);
    free(path);
    return CLI_GO;
}

void record_row(record *r, const hfsad_figures *row, const double *model, size_t width)
{
    recorder_row(r->r, row);
    if (model && recorder_wants_model(r->r, row->iteration))
        recorder_model(r->r, row->iteration, model, width);
}

static double cell(const hfsad_result *result, const char *name, size_t row)
{
    const double *column = hfsad_result_trace(result, name);
    return column ? column[row] : NAN;
}

void record_trace(record *r, const char *folder)
{
    hfsad_result *result;
    hfsad_error err;
    if (!r->r || hfsad_result_load(&result, folder, &err))
        return;
    for (size_t i = 0; i < hfsad_result_trace_rows(result); i++) {
        const hfsad_figures row = {.iteration = (uint64_t)cell(result, "iteration", i),
                                   .objective = cell(result, "objective", i),
                                   .consensus_objective = cell(result, "consensus_objective", i),
                                   .primal_residual = cell(result, "primal_residual", i),
                                   .dual_residual = cell(result, "dual_residual", i),
                                   .consensus_gap = cell(result, "consensus_gap", i),
                                   .smoothing_gap = cell(result, "smoothing_gap", i),
                                   .relative_error = cell(result, "relative_error", i),
                                   .seconds = cell(result, "seconds", i),
                                   .bytes_up = (uint64_t)cell(result, "bytes_up", i),
                                   .bytes_down = (uint64_t)cell(result, "bytes_down", i),
                                   .gap_bound = cell(result, "gap_bound", i)};
        recorder_row(r->r, &row);
    }
    const size_t width = hfsad_result_width(result), rows = hfsad_result_trace_rows(result);
    if (rows && hfsad_result_nodes(result))
        recorder_model(r->r, (uint64_t)cell(result, "iteration", rows - 1), hfsad_result_models(result), width);
    hfsad_result_free(result);
}

static char *read_summary(const record *r)
{
    char *text = NULL, *path = r->out ? path_join(r->out, "summary.json") : NULL;
    size_t size;
    if (path)
        (void)file_read(path, SUMMARY_MOST, &text, &size);
    free(path);
    return text;
}

/* What a child process has found out. */
static bool is_diverged(const char *summary)
{
    cJSON *o = summary ? cJSON_Parse(summary) : NULL;
    const cJSON *stopped = cJSON_GetObjectItemCaseSensitive(o, "stopped");
    const bool diverged = cJSON_IsString(stopped) && !strcmp(stopped->valuestring, "diverged");
    cJSON_Delete(o);
    return diverged;
}

void record_end(record *r, int exit_status, bool diverged)
{
    hfsad_error err = {0};
    if (r->r) {
        char *summary = exit_status == CLI_WRONG ? NULL : read_summary(r);
        diverged = diverged || (exit_status == CLI_FAILED && is_diverged(summary));
        const char *status = diverged                  ? "diverged"
                             : exit_status == CLI_DONE ? "done"
                             : exit_status > 128       ? "interrupted"
                                                       : "failed";
        const char *why = diverged            ? "the iterates are no longer finite"
                          : exit_status > 128 ? strsignal(exit_status - 128)
                          : exit_status       ? cli_last_failure()
                                              : NULL;
        if (!r->borrowed)
            recorder_event(r->r, exit_status ? HISTORY_FAULT : HISTORY_INFO, "",
                           exit_status ? status : "the run has ended");
        if (recorder_end(r->r, r->borrowed ? NULL : status, why, exit_status, summary, &err))
            warn(&err);
        free(summary);
        r->r = NULL;
    }
    stop_dash(r);
    remove_scratch(r);
    free(r->out);
    r->out = NULL;
}

int record_open(history **h, const char *path, history_mode mode)
{
    hfsad_error err = {0};
    char *own = path ? NULL : history_default_path();
    *h = NULL;
    if (!path && !own)
        error_set(&err, HFSAD_ERROR_INPUT,
                  "there is no history: HFSAD_HISTORY is none, or HOME is not set; give one "
                  "(--history)");
    else
        (void)history_open(h, path ? path : own, mode, &err);
    free(own);
    return *h ? CLI_GO : cli_fail(&err);
}
