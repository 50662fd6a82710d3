/* hfsad up: runs a whole federation on this machine: broker, cloud, edges and clients as separate processes. */
#define _GNU_SOURCE /* asprintf, mkdtemp, realpath */
#include "base/clock.h"
#include "base/read_file.h"
#include "cmd_member.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/whole_file.h"
#include "observe.h"
#include "progress.h"
#include "run.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORDS_MOST = 32, FAST_ENDS_MOST = 5 };
static const double fast_seconds = 1, grace_seconds = 5;

/* A process that is kept running. */
typedef struct {
    char *words[WORDS_MOST]; /* its command line, ended by NULL */
    int n_words;
    pid_t pid; /* 0: not running */
    double started;
    int fast_ends;       /* in a row */
    bool done;           /* ended successfully */
    bool quiet;          /* its output is not shown */
    char *state;         /* its state folder; one of the words */
    size_t first, count; /* its nodes */
} child;

typedef struct {
    const char *spec_path, *out, *state, *audit;
    cli_texts sets;
    bool force;
    bool quiet, each; /* each: one process for every client */
    int log, level, durability;
    hfsad_spec *spec;
    hfsad_tree *tree;
    char *socket_folder, *socket, *config, *nodes, *secret; /* files; socket_folder NULL: in the state folder */
    child *children;                                        /* the broker, the cloud, the others */
    size_t n_children, room;
    bool failed; /* no memory while a command line was built */
    size_t made; /* created levels of the state folder, for folder_unmake */
    int lock;    /* lock of the state folder */
    record_options recording;
    record record; /* entry in the history */
} session;

enum { BROKER, CLOUD };
enum { NAME_SIZE = HFSAD_TIERS_MAX * 256 }; /* longest path of a node */

/* Files in the state folder beside the nodes' folders, whose names have no +. */
#define SOCKET_NAME "+broker"
#define NODES_NAME "+nodes"
#define SECRET_NAME "+secret"     /* by which the processes authenticate messages */
#define RECORD_NAME "+%zu.record" /* of an inner node */
#define DONE_NAME "+done"         /* the other files are being removed */

static const char *const durabilities[] = {"power", "process", NULL};

/* ---- command lines ---- */

__attribute__((format(printf, 3, 4))) static void add_word(session *s, child *c, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    if (c->n_words == WORDS_MOST - 1 || vasprintf(&c->words[c->n_words], format, list) < 0) {
        c->words[c->n_words] = NULL;
        s->failed = true;
    } else {
        c->n_words++;
    }
    va_end(list);
}

static child *add_child(session *s)
{
    if (!alloc_grow((void **)&s->children, &s->room, s->n_children + 1, sizeof *s->children)) {
        s->failed = true;
        return NULL;
    }
    s->children[s->n_children] = (child){0};
    return &s->children[s->n_children++];
}

static void add_state(session *s, child *c, const char *path, bool clients)
{
    char folder[4096];
    add_word(s, c, "--state");
    s->failed = s->failed || !hfsad_state_folder(s->state, path, clients, folder, sizeof folder);
    if (s->failed)
        return;
    add_word(s, c, "%s", folder);
    if (!s->failed)
        c->state = c->words[c->n_words - 1];
}

static child *add_member(session *s, const char *command)
{
    char self[4096];
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    child *c = add_child(s);
    if (!c || length < 0) {
        s->failed = true;
        return c;
    }
    self[length] = 0;
    add_word(s, c, "%s", self);
    add_word(s, c, "%s", command);
    add_word(s, c, "%s", s->spec_path);
    add_word(s, c, "--broker=unix://%s", s->socket);
    add_word(s, c, "--secret=%s", s->secret);
    add_word(s, c, "--log=%s", s->log ? "json" : "text");
    add_word(s, c, "--log-level=%s", member_levels[s->level]);
    add_word(s, c, "--durability=%s", durabilities[s->durability]);
    for (size_t i = 0; i < s->sets.count; i++)
        add_word(s, c, "--set=%s", s->sets.room[i]);
    add_word(s, c, "--set=federation.nodes=%s", s->nodes);
    return c;
}

static void add_inner(session *s, size_t i)
{
    char name[NAME_SIZE];
    (void)hfsad_tree_node_name(s->tree, i, name, sizeof name);
    child *c = add_member(s, i ? "edge" : "cloud");
    if (!c)
        return;
    c->first = i;
    c->count = 1;
    add_state(s, c, name, false);
    add_word(s, c, "--linger=0");
    add_word(s, c, "--record=%s/" RECORD_NAME, s->state, i);
    if (i) {
        add_word(s, c, "--name=%s", name);
        return;
    }
    add_word(s, c, "--out=%s", s->out);
    if (s->record.r) {
        add_word(s, c, "--history=%s", recorder_path(s->record.r));
        add_word(s, c, "--record-in=%lld", (long long)recorder_run(s->record.r));
    } else {
        add_word(s, c, "--no-history");
    }
    if (s->quiet)
        add_word(s, c, "--quiet");
}

static void add_clients(session *s, size_t i)
{
    size_t first;
    const size_t count = hfsad_tree_clients(s->tree, i, &first), end = s->each || !count ? first + count : first + 1;
    char name[NAME_SIZE];
    for (size_t node = first; node < end; node++) {
        child *c = add_member(s, "client");
        if (!c)
            return;
        (void)hfsad_tree_node_name(s->tree, s->each ? node : i, name, sizeof name);
        c->first = node;
        c->count = s->each ? 1 : count;
        add_state(s, c, name, !s->each);
        if (s->audit)
            add_word(s, c, "--audit=%s", s->audit);
        add_word(s, c, "--%s=%s", s->each ? "name" : "all-of", name);
    }
}

static hfsad_status add_all(session *s, hfsad_error *err)
{
    child *broker = add_child(s);
    if (broker) {
        broker->quiet = true;
        add_word(s, broker, "mosquitto");
        add_word(s, broker, "-c");
        add_word(s, broker, "%s", s->config);
    }
    for (size_t i = 0; i < hfsad_tree_inner_nodes(s->tree) && !s->failed; i++)
        add_inner(s, i);
    for (size_t i = 0; i < hfsad_tree_inner_nodes(s->tree) && !s->failed; i++)
        add_clients(s, i);
    return s->failed ? error_memory(err, 0, "the processes' command lines (or too many --set)") : HFSAD_OK;
}

/* ---- files ---- */

static hfsad_status write_text(const char *path, const char *text, hfsad_error *err)
{
    whole_file f;
    const hfsad_status status = whole_file_open(&f, path, 0666, err);
    if (status)
        return status;
    whole_file_put(&f, text, strlen(text));
    return whole_file_end(&f, err);
}

/* Whether a socket can be created there: its path must be short, and some file systems have no sockets. */
static bool takes_socket(const char *path)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof at.sun_path)
        return false;
    snprintf(at.sun_path, sizeof at.sun_path, "%s", path);
    unlink(path);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool good = fd >= 0 && bind(fd, (const struct sockaddr *)&at, sizeof at) == 0;
    if (fd >= 0)
        close(fd);
    unlink(path);
    return good;
}

/* Where the broker's files are: in the state folder, so that a killed `up` leaves nothing elsewhere; if a socket cannot
 * be created there, in a separate folder. */
static hfsad_status find_socket(session *s, const char *state, hfsad_error *err)
{
    const char *where = getenv("TMPDIR");
    if (asprintf(&s->socket, "%s/" SOCKET_NAME, state) < 0)
        s->socket = NULL;
    if (!s->socket || takes_socket(s->socket))
        return s->socket ? HFSAD_OK : error_memory(err, 0, "a file name");
    free(s->socket);
    s->socket = NULL;
    if (asprintf(&s->socket_folder, "%s/hfsad-XXXXXX", where && *where ? where : P_tmpdir) < 0)
        s->socket_folder = NULL;
    if (!s->socket_folder || !mkdtemp(s->socket_folder)) {
        free(s->socket_folder);
        s->socket_folder = NULL;
        return error_set(err, HFSAD_ERROR_IO, "cannot create a folder for the broker's socket: %s", strerror(errno));
    }
    if (asprintf(&s->socket, "%s/" SOCKET_NAME, s->socket_folder) < 0)
        s->socket = NULL;
    return s->socket ? HFSAD_OK : error_memory(err, 0, "a file name");
}

/* A new run gets a new secret: records of an earlier run do not count. */
static hfsad_status write_secret(const session *s, hfsad_error *err)
{
    unsigned char drawn[32];
    char text[2 * sizeof drawn + 2];
    whole_file f;
    if (access(s->secret, F_OK) == 0)
        return HFSAD_OK;
    if (getrandom(drawn, sizeof drawn, 0) != sizeof drawn)
        return error_set(err, HFSAD_ERROR_IO, "no random numbers: %s", strerror(errno));
    for (size_t i = 0; i < sizeof drawn; i++)
        snprintf(text + 2 * i, 3, "%02x", drawn[i]);
    strcat(text, "\n");
    hfsad_status status = whole_file_open(&f, s->secret, 0600, err);
    if (!status) {
        whole_file_put(&f, text, strlen(text));
        status = whole_file_end(&f, err);
    }
    explicit_bzero(drawn, sizeof drawn);
    explicit_bzero(text, sizeof text);
    return status;
}

static hfsad_status write_outputs(session *s, hfsad_error *err)
{
    const char *text = hfsad_tree_list(s->tree);
    char *config = NULL, *folder = realpath(s->state, NULL);
    hfsad_status status = folder ? find_socket(s, folder, err) : error_memory(err, 0, "a file name");
    if (!status &&
        (asprintf(&s->nodes, "%s/" NODES_NAME, folder) < 0 || asprintf(&s->config, "%s.conf", s->socket) < 0 ||
         asprintf(&s->secret, "%s/" SECRET_NAME, folder) < 0 ||
         asprintf(&config,
                  "listener 0 %s\nallow_anonymous true\npersistence false\nmax_queued_messages 0\n"
                  "log_type none\n%s",
                  s->socket, geteuid() == 0 ? "user root\n" : "") < 0))
        status = error_memory(err, 0, "the broker's configuration");
    if (!status)
        status = write_text(s->nodes, text, err);
    if (!status)
        status = write_text(s->config, config, err);
    if (!status)
        status = write_secret(s, err);
    free(folder);
    free(config);
    return status;
}

/* Removes what this command has created in the folder, and nothing else. A mark stays in the folder until this is done:
 * if the command is killed meanwhile, the rest of the folder cannot be continued. */
static void empty_state(const char *folder)
{
    char path[4200], mark[4200];
    hfsad_error err;
    snprintf(mark, sizeof mark, "%.4000s/" DONE_NAME, folder);
    const int fd = open(mark, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (fd >= 0)
        close(fd);
    (void)folder_sync(folder, &err);
    DIR *all = opendir(folder);
    for (const struct dirent *one; all && (one = readdir(all));) {
        snprintf(path, sizeof path, "%.3900s/%.255s", folder, one->d_name);
        if (!strcmp(one->d_name, ".") || !strcmp(one->d_name, "..") || !strcmp(one->d_name, DONE_NAME))
            continue;
        if (one->d_name[0] == '+') {
            unlink(path);
        } else {
            hfsad_state_remove(path);
            rmdir(path); /* fails if other files are in it */
        }
    }
    if (all)
        closedir(all);
    (void)folder_sync(folder, &err);
    unlink(mark);
}

/* Completes the removal that a killed command began. */
static void finish_removal(const session *s)
{
    char mark[4200];
    snprintf(mark, sizeof mark, "%.4000s/" DONE_NAME, s->state);
    if (access(mark, F_OK) == 0)
        empty_state(s->state);
}

/* Whether an earlier `up` began in this folder and has not ended. */
static bool has_list(const session *s)
{
    char path[4200];
    snprintf(path, sizeof path, "%.4000s/" NODES_NAME, s->state);
    return access(path, F_OK) == 0;
}

/* Whether a process has left a state to continue from. */
static bool has_state(const session *s)
{
    for (size_t n = 0; n < s->n_children; n++)
        if (s->children[n].state && access(s->children[n].state, F_OK) == 0)
            return true;
    return false;
}

/* Writes the record of the run: one file for all nodes. In lock step the cloud has all of it. */
static hfsad_status gather_record(const session *s, hfsad_error *err)
{
    char *text = NULL, path[4200], *part;
    size_t size = 0, length;
    FILE *all = open_memstream(&text, &size);
    char mode[20] = "";
    bool whole = !hfsad_spec_get(s->spec, "federation.mode", mode, sizeof mode, NULL, err);
    for (size_t i = 0; all && i < hfsad_tree_inner_nodes(s->tree) && whole; i++) {
        snprintf(path, sizeof path, "%.4000s/" RECORD_NAME, s->state, i);
        whole = file_read(path, SIZE_MAX, &part, &length) == 0;
        fwrite(part, 1, whole ? length : 0, all);
        whole = whole || (i > 0 && strcmp(mode, "async") != 0);
        free(part);
    }
    if (!all || fclose(all) != 0)
        return error_memory(err, 0, "the record");
    const hfsad_status status =
        whole && size == 0 ? HFSAD_OK /* lock step without readmitted nodes */
        : whole            ? whole_file_write(s->out, "record", text, size, err)
                           : error_set(err, HFSAD_ERROR_IO, "%.300s cannot be read: no %.300s/record", path, s->out);
    free(text);
    return status;
}

/* Collects what no single process has: the states of all nodes, after all of them have stopped. */
static hfsad_status gather_state(const session *s, bool done, hfsad_error *err)
{
    bool whole;
    hfsad_tree_process *processes = alloc_zero(s->n_children, sizeof *processes);
    if (!processes)
        return error_memory(err, s->n_children * sizeof *processes, "the processes");
    for (size_t n = CLOUD; n < s->n_children; n++)
        processes[n - CLOUD] = (hfsad_tree_process){s->children[n].state, s->children[n].first, s->children[n].count};
    const hfsad_status status = hfsad_tree_gather(s->tree, processes, s->n_children - CLOUD, s->out, &whole, err);
    free(processes);
    if (!status && !whole && done)
        fprintf(stderr, "hfsad: %s has no state.csv and checkpoint.bin: %s\n", s->out, err->message);
    return status;
}

/* ---- processes ---- */

static bool start(child *c)
{
    const pid_t parent = getpid();
    fflush(NULL);
    c->started = clock_seconds();
    c->pid = fork();
    if (c->pid != 0)
        return c->pid > 0;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    setpgid(0, 0); /* this process passes Ctrl-C on */
    if (c->quiet) {
        const int null = open("/dev/null", O_WRONLY | O_CLOEXEC), spare = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10);
        dup2(null, STDOUT_FILENO);
        dup2(null, STDERR_FILENO);
        execvp(c->words[0], c->words);
        execv("/usr/sbin/mosquitto", c->words);
        dprintf(spare, "hfsad: mosquitto cannot be started: %s; install it (Debian: mosquitto)\n", strerror(errno));
        _exit(CLI_WRONG);
    }
    execv(c->words[0], c->words);
    fprintf(stderr, "hfsad: %s cannot be started: %s\n", c->words[0], strerror(errno));
    _exit(CLI_WRONG);
}

static bool broker_accepts(const session *s)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    snprintf(at.sun_path, sizeof at.sun_path, "%s", s->socket);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool good = fd >= 0 && connect(fd, (const struct sockaddr *)&at, sizeof at) == 0;
    if (fd >= 0)
        close(fd);
    return good;
}

/* A line of the history: which process ended, and why. */
static void tell_restart(session *s, const child *c, int status)
{
    char text[300], name[NAME_SIZE] = "broker";
    if (c != &s->children[BROKER])
        (void)hfsad_tree_node_name(s->tree, c->first, name, sizeof name);
    snprintf(text, sizeof text, "process started again after %s%s", WIFSIGNALED(status) ? "signal " : "exit status ",
             WIFSIGNALED(status) ? sigabbrev_np(WTERMSIG(status)) : "");
    if (!WIFSIGNALED(status))
        snprintf(text + strlen(text), sizeof text - strlen(text), "%d", WEXITSTATUS(status));
    recorder_event(s->record.r, HISTORY_WARNING, name, text);
}

/* CLI_GO, or the exit status if a process ended with an error that a restart cannot fix. */
static int see_to(session *s, child *c)
{
    int status;
    if (c->done || (c->pid > 0 && waitpid(c->pid, &status, WNOHANG) != c->pid))
        return CLI_GO;
    if (c->pid > 0) {
        const bool cloud = c == &s->children[CLOUD];
        c->pid = 0;
        c->fast_ends = clock_seconds() < c->started + fast_seconds ? c->fast_ends + 1 : 0;
        if (WIFEXITED(status) && c != &s->children[BROKER] && WEXITSTATUS(status) == CLI_DONE) {
            c->done = true;
            return CLI_GO;
        }
        if (WIFEXITED(status) && (WEXITSTATUS(status) == CLI_WRONG || (cloud && WEXITSTATUS(status) == CLI_FAILED)))
            return WEXITSTATUS(status);
        if (WIFEXITED(status) && c->fast_ends >= FAST_ENDS_MOST) {
            fprintf(stderr, "hfsad: %s %s ends each time it is started\n", c->words[0], c->words[1]);
            return CLI_FAILED;
        }
        member_print(&(log_options){s->log, s->level},
                     &(hfsad_log){HFSAD_LOG_INFO, "", "started again", c->words[1], ""});
        tell_restart(s, c, status);
    }
    if (c == &s->children[BROKER])
        unlink(s->socket);
    return start(c) ? CLI_GO : CLI_FAILED;
}

/* The cloud asks the other processes for their models before it ends. */
static void stop_cloud(session *s)
{
    child *cloud = &s->children[CLOUD];
    if (s->n_children <= CLOUD || cloud->pid <= 0)
        return;
    kill(cloud->pid, SIGTERM);
    for (const double end = clock_seconds() + HFSAD_MEMBER_LOOK_SECONDS + grace_seconds;
         cloud->pid > 0 && clock_seconds() < end; poll(NULL, 0, 5))
        if (waitpid(cloud->pid, NULL, WNOHANG) == cloud->pid)
            cloud->pid = 0;
}

static void stop_all(session *s)
{
    const int signals[] = {SIGTERM, SIGKILL};
    for (int i = 0; i < 2; i++) {
        size_t left = 1;
        for (size_t n = s->n_children; n-- > 0;)
            if (s->children[n].pid > 0 && n != BROKER)
                kill(s->children[n].pid, signals[i]);
        for (const double end = clock_seconds() + grace_seconds; left && clock_seconds() < end; poll(NULL, 0, 5)) {
            left = 0;
            for (size_t n = 0; n < s->n_children; n++) {
                child *c = &s->children[n];
                if (n == BROKER || c->pid <= 0)
                    continue;
                if (waitpid(c->pid, NULL, WNOHANG) == c->pid)
                    c->pid = 0;
                else
                    left++;
            }
        }
    }
    if (s->n_children && s->children[BROKER].pid > 0) {
        kill(s->children[BROKER].pid, SIGKILL);
        waitpid(s->children[BROKER].pid, NULL, 0);
    }
}

/* The cloud tells the other processes that the run has ended. A process that misses it, for example a killed one, is no
 * longer needed. */
static void let_end(session *s)
{
    const double end = clock_seconds() + grace_seconds;
    for (bool all = false; !all && clock_seconds() < end && !cli_interrupted(); poll(NULL, 0, 5)) {
        all = true;
        for (size_t n = CLOUD + 1; n < s->n_children; n++)
            all = see_to(s, &s->children[n]) == CLI_GO && s->children[n].done && all;
    }
}

static int watch(session *s)
{
    const double before = clock_seconds();
    if (!start(&s->children[BROKER]))
        return CLI_FAILED;
    while (!broker_accepts(s)) {
        const int status = see_to(s, &s->children[BROKER]);
        if (status != CLI_GO)
            return status;
        if (clock_seconds() > before + 10) {
            fputs("hfsad: the broker does not accept connections\n", stderr);
            return CLI_FAILED;
        }
        poll(NULL, 0, 5);
    }
    while (!cli_interrupted() && !s->children[CLOUD].done) {
        for (size_t n = 0; n < s->n_children; n++) {
            const int status = see_to(s, &s->children[n]);
            if (status != CLI_GO)
                return status;
        }
        poll(NULL, 0, 20);
    }
    cli_interrupts_heed();
    if (cli_interrupted()) {
        stop_cloud(s);
        return 128 + cli_interrupted();
    }
    let_end(s);
    return CLI_DONE;
}

/* ---- the command ---- */

/* If an `up` was killed while it started a process, that process holds the lock until it ends too. */
static hfsad_status lock_state(session *s, hfsad_error *err)
{
    const double end = clock_seconds() + fast_seconds;
    while (folder_lock(s->state, &s->lock, err)) {
        if (clock_seconds() > end)
            return HFSAD_ERROR_INPUT;
        poll(NULL, 0, 20);
    }
    /* files that a killed `up` had not finished writing */
    static const char *const written[] = {NODES_NAME, SECRET_NAME, SOCKET_NAME ".conf"};
    folder_sweep(s->state, written, sizeof written / sizeof *written);
    finish_removal(s);
    return HFSAD_OK;
}

static int set_up_federation(session *s)
{
    hfsad_error err = {0};
    const int status = member_load(&s->spec, s->spec_path, &s->sets, "up");
    if (status != CLI_GO)
        return status;
    if (folder_check(s->out, &err) || (!s->force && run_check_owner(s->out, s->spec_path, &err)) ||
        hfsad_tree_create(&s->tree, s->spec, &err))
        return cli_fail(&err);
    /* otherwise every process would print these */
    if (folder_make_state(s->state, &s->made, &err) || lock_state(s, &err) ||
        hfsad_tree_check_state(s->tree, s->state, &err))
        return cli_fail(&err);
    const bool continues = has_list(s);
    if (write_outputs(s, &err))
        return cli_fail(&err);
    const recorder_start start = {
        .kind = "up", .spec_path = s->spec_path, .out = s->out, .spec = s->spec, .continues = continues};
    const int recorded = record_begin(&s->record, &s->recording, &start, s->quiet);
    if (recorded != CLI_GO)
        return recorded;
    return add_all(s, &err) ? cli_fail(&err) : CLI_GO;
}

/* The states of the nodes, from the broker, which need not be up yet. */
static observation *observe(const session *s)
{
    char *url = NULL;
    observation *o = NULL;
    if (asprintf(&url, "unix://%s", s->socket) >= 0) {
        const char *const brokers[] = {url};
        const hfsad_observer_settings settings = {
            .size = sizeof settings, .brokers = brokers, .n_brokers = 1, .nodes = hfsad_tree_list(s->tree)};
        o = observe_begin(s->record.r, s->spec, &settings);
        free(url);
    }
    return o;
}

static void tear_down(session *s, bool finished)
{
    if (s->config) {
        unlink(s->socket);
        unlink(s->config);
    }
    if (s->socket_folder)
        rmdir(s->socket_folder);
    if (finished || (s->nodes && !has_state(s))) {
        empty_state(s->state);
        rmdir(s->state);
    }
    folder_unlock(s->lock);
    folder_unmake(s->state, s->made);
    for (size_t n = 0; n < s->n_children; n++)
        for (int w = 0; w < s->children[n].n_words; w++)
            free(s->children[n].words[w]);
    free(s->children);
    free(s->socket_folder);
    free(s->socket);
    free(s->config);
    free(s->nodes);
    free(s->secret);
    hfsad_tree_free(s->tree);
    hfsad_spec_free(s->spec);
}

static int run_federation(session *s, bool keep)
{
    hfsad_error err = {0};
    int status = set_up_federation(s);
    if (status == CLI_GO) {
        cli_catch_interrupts();
        observation *o = observe(s);
        status = watch(s);
        observe_end(o);
    }
    stop_all(s);
    if (status == CLI_DONE && gather_record(s, &err))
        status = cli_fail(&err);
    if (status != CLI_WRONG && gather_state(s, status == CLI_DONE, &err))
        status = cli_fail(&err);
    record_end(&s->record, status, false);
    if (status > 128)
        fprintf(stderr, "hfsad: the federation is stopped; `hfsad up` continues from %s\n", s->state);
    tear_down(s, status == CLI_DONE && !keep);
    return status;
}

static int parse_arguments(session *s, bool *keep, int argc, char **argv)
{
    const cli_option options[] = {
        {"set", CLI_TEXTS, &s->sets, 0, 0, NULL, "KEY=VALUE", "override a setting of the spec; may be repeated"},
        {"out", CLI_TEXT, &s->out, 0, 0, NULL, "DIR", "output folder (spec-out)"},
        {"state", CLI_TEXT, &s->state, 0, 0, NULL, "DIR",
         "folder for the states of the processes (spec-state);\n"
         "removed at the end; an interrupted run continues from it"},
        {"keep-state", CLI_FLAG, keep, 0, 0, NULL, NULL, "keep the state folder at the end"},
        {"processes", CLI_FLAG, &s->each, 0, 0, NULL, NULL,
         "one process per client, not one for all clients of an edge"},
        {"audit", CLI_TEXT, &s->audit, 0, 0, NULL, "FILE", "a line for every question that a client is asked"},
        {"durability", CLI_CHOICE, &s->durability, 0, 0, durabilities, "power|process",
         "failures that a state survives: power (the default): loss of\n"
         "power, by one disk sync per round; process: a crash only"},
        {"log", CLI_CHOICE, &s->log, 0, 0, member_forms, "text|json", "format of the log on stderr (text)"},
        {"log-level", CLI_CHOICE, &s->level, 0, 0, member_levels, "LEVEL",
         "error, warning (the default), info or debug"},
        RECORD_OPTIONS(&s->recording),
        DASH_OPTIONS(&s->recording),
        {"force", CLI_FLAG, &s->force, 0, 0, NULL, NULL, "replace results of another spec in DIR"},
        {"quiet", CLI_FLAG, &s->quiet, 0, 0, NULL, NULL, "no progress, no table"},
    };
    const cli_syntax syntax = {
        .usage = "up SPEC.yaml [--set KEY=VALUE]... [--out DIR] [--state DIR] [--processes] ...",
        .about = "Runs the spec as a federation on this machine: a broker (mosquitto), the cloud, the edges and\n"
                 "the clients as separate processes. A process that dies is restarted and continues.\n"
                 "The output folder is that of `hfsad run`, with the same bits if federation.mode is sync;\n"
                 "`hfsad run --resume` continues from it. An asynchronous federation writes its record there, for\n"
                 "`hfsad run --replay`.",
        .options = options,
        .n_options = sizeof options / sizeof *options,
        .least_words = 1,
        .most_words = 1,
        .words = "a spec file",
        .after = "Exit status: 0 done, 1 the run failed, 2 the spec, data or arguments are wrong, 129 after\n"
                 "SIGHUP, 130 after Ctrl-C, 143 after SIGTERM.",
    };
    return cli_parse(&syntax, argc, argv, &s->spec_path);
}

int cmd_up(int argc, char **argv)
{
    session s = {.sets.room = calloc((size_t)argc + 1, sizeof(char *)), .level = HFSAD_LOG_WARNING, .lock = -1};
    int status = CLI_FAILED;
    bool keep = false;
    char *out = NULL, *state = NULL;
    if (s.sets.room)
        status = parse_arguments(&s, &keep, argc, argv);
    if (status == CLI_GO && !s.out)
        s.out = out = run_folder(s.spec_path, "out");
    if (status == CLI_GO && !s.state)
        s.state = state = run_folder(s.spec_path, "state");
    if (status == CLI_GO && s.out && s.state) {
        status = run_federation(&s, keep);
    } else if (status == CLI_GO || !s.sets.room) {
        fputs("hfsad: not enough memory\n", stderr);
        status = CLI_FAILED;
    }
    free(out);
    free(state);
    free(s.sets.room);
    return status;
}
