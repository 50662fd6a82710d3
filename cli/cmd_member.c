/* See cmd_member.h. */
#define _POSIX_C_SOURCE 200809L
#include "cmd_member.h"

#include "observe.h"
#include "progress.h"
#include "record.h"
#include "run.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct {
    const char *spec_path;
    cli_texts sets;
    hfsad_member_settings member;
    log_options log;
    int durability, rows; /* choices: the second is 1 */
    int64_t keepalive;
    bool quiet;
    hfsad_spec *spec;
    progress progress;
    bool draws;               /* progress has begun */
    bool continues;           /* its state folder existed */
    int status;               /* exit status */
    record_options recording; /* cloud */
    record record;
    observation *watched; /* the nodes of a federation with --dash; NULL: not watched */
} session;

/* ---- options ---- */

const char *const member_levels[] = {"error", "warning", "info", "debug", NULL};
const char *const member_forms[] = {"text", "json", NULL};
static const char *const durabilities[] = {"power", "process", NULL};
static const char *const places[] = {"memory", "disk", NULL};

static size_t common_options(session *a, cli_option *o)
{
    const cli_option all[] = {
        {"set", CLI_TEXTS, &a->sets, 0, 0, NULL, "KEY=VALUE",
         "override a setting of the spec; use the same for all nodes"},
        {"broker", CLI_TEXT, &a->member.broker, 0, 0, NULL, "URL",
         "mqtts://host[:8883], mqtt://host[:1883] or unix:///socket\n"
         "(mqtt://localhost); the nodes of a clustered broker with commas\nbetween them"},
        {"state", CLI_TEXT, &a->member.state, 0, 0, NULL, "DIR",
         "folder for the state that survives a crash (spec-state/NAME)"},
        {"durability", CLI_CHOICE, &a->durability, 0, 0, durabilities, "power|process",
         "failures that a state survives: power (the default): loss of\n"
         "power, by one disk sync per round; process: a crash only"},
        {"keepalive", CLI_WHOLE, &a->keepalive, 5, 65535, NULL, "SECONDS",
         "probe a connection after this number of silent seconds; a\n"
         "dead one is detected after at most twice that (30)"},
        {"metrics", CLI_TEXT, &a->member.metrics, 0, 0, NULL, "HOST:PORT",
         "serve metrics for Prometheus at this address, such as\n"
         "127.0.0.1:9100, without access control"},
        {"log", CLI_CHOICE, &a->log.form, 0, 0, member_forms, "text|json", "format of the log on stderr (text)"},
        {"log-level", CLI_CHOICE, &a->log.level, 0, 0, member_levels, "LEVEL",
         "error, warning, info (the default) or debug"},
    };
    memcpy(o, all, sizeof all);
    return sizeof all / sizeof *all;
}

static size_t key_options(session *a, cli_option *o)
{
    const cli_option all[] = {
        {"keys", CLI_TEXT, &a->member.keys, 0, 0, NULL, "DIR",
         "folder made by hfsad keys, with ca.crt and the node's files\n"
         "below nodes/"},
        {"ca", CLI_TEXT, &a->member.ca, 0, 0, NULL, "FILE", "instead of --keys: certificate of the authority"},
        {"certificate", CLI_TEXT, &a->member.certificate, 0, 0, NULL, "FILE",
         "instead of --keys: certificate of the node"},
        {"key", CLI_TEXT, &a->member.key, 0, 0, NULL, "FILE", "instead of --keys: private key of the node"},
        {"secret", CLI_TEXT, &a->member.secret, 0, 0, NULL, "FILE",
         "without certificates: a secret of all nodes of this run, by\n"
         "which they know their messages; a new one for every run"},
        {"insecure", CLI_FLAG, &a->member.insecure, 0, 0, NULL, NULL,
         "allow mqtt:// to another machine: without TLS, everyone on\n"
         "the network path can read and change all messages"},
    };
    memcpy(o, all, sizeof all);
    return sizeof all / sizeof *all;
}

static size_t inner_options(session *a, cli_option *o)
{
    const cli_option all[] = {
        {"broker-below", CLI_TEXT, &a->member.below, 0, 0, NULL, "URL", "broker of the children, if it differs"},
        {"record", CLI_TEXT, &a->member.record, 0, 0, NULL, "FILE",
         "asynchronous mode: file for the record, written at the end"},
        {"linger", CLI_REAL, &a->member.linger, 0, 1e6, NULL, "SECONDS",
         "after the run: end this process after this number of silent\n"
         "seconds (6)"},
    };
    memcpy(o, all, sizeof all);
    return sizeof all / sizeof *all;
}

static size_t cloud_options(session *a, cli_option *o)
{
    const cli_option all[] = {
        {"out", CLI_TEXT, &a->member.out, 0, 0, NULL, "DIR", "output folder (spec-out)"},
        RECORD_OPTIONS(&a->recording),
        DASH_OPTIONS(&a->recording),
        {"record-in", CLI_WHOLE, &a->recording.run, 1, 1e15, NULL, "ID",
         "add to this run of the history, as hfsad up does"},
        {"quiet", CLI_FLAG, &a->quiet, 0, 0, NULL, NULL, "no progress, no table"},
    };
    memcpy(o, all, sizeof all);
    return sizeof all / sizeof *all;
}

static size_t edge_options(session *a, cli_option *o)
{
    const cli_option all[] = {
        {"name", CLI_NEEDED, &a->member.name, 0, 0, NULL, "PATH", "such as edge1"},
        {"broker-above", CLI_TEXT, &a->member.above, 0, 0, NULL, "URL", "broker of the parent, if it differs"},
    };
    memcpy(o, all, sizeof all);
    return sizeof all / sizeof *all;
}

static size_t client_options(session *a, cli_option *o)
{
    const cli_option all[] = {
        {"name", CLI_TEXT, &a->member.name, 0, 0, NULL, "PATH", "such as edge1/client7"},
        {"all-of", CLI_TEXT, &a->member.all_of, 0, 0, NULL, "EDGE",
         "instead of --name: all clients of an edge or of the cloud"},
        {"data", CLI_TEXT, &a->member.data_file, 0, 0, NULL, "FILE",
         "rows of the client, or data of the whole federation, from\n"
         "which the client reads its own rows; by default data of\n"
         "the spec"},
        {"audit", CLI_TEXT, &a->member.audit, 0, 0, NULL, "FILE",
         "add a line to this file for every question that this client\n"
         "is asked, and whether it answered"},
        {"rows", CLI_CHOICE, &a->rows, 0, 0, places, "memory|disk",
         "place of dense rows: memory (the default), or disk: a\n"
         "scratch file beside the state folder, if the rows exceed\n"
         "the memory; the results are the same"},
        {"out", CLI_TEXT, &a->member.out, 0, 0, NULL, "DIR",
         "write the client's own model to DIR/model.csv at the end;\n"
         "not with algorithm star, whose model is the cloud's"},
    };
    memcpy(o, all, sizeof all);
    return sizeof all / sizeof *all;
}

static size_t role_options(session *a, hfsad_role role, cli_option *o)
{
    if (role == HFSAD_ROLE_CLIENT)
        return client_options(a, o);
    const size_t n = inner_options(a, o);
    return n + (role == HFSAD_ROLE_CLOUD ? cloud_options(a, o + n) : edge_options(a, o + n));
}

static int parse_arguments(session *a, hfsad_role role, int argc, char **argv)
{
    static const char *const usages[] = {
        [HFSAD_ROLE_CLOUD] = "cloud SPEC.yaml [--broker URL] [--keys DIR] [--state DIR] [--out DIR] ...",
        [HFSAD_ROLE_EDGE] = "edge SPEC.yaml --name PATH [--broker URL] [--keys DIR] [--state DIR] ...",
        [HFSAD_ROLE_CLIENT] = ("client SPEC.yaml --name PATH [--data FILE] [--broker URL] [--keys DIR] ...\n"
                               "hfsad client SPEC.yaml --all-of EDGE [--data FILE] ..."),
    };
    static const char *const abouts[] = {
        [HFSAD_ROLE_CLOUD] =
            ("The root of a federation: sets up the nodes, steps once per global iteration, and writes the\n"
             "output folder as `hfsad run` does."),
        [HFSAD_ROLE_EDGE] = "An inner node of a federation, at any depth, between its children and its parent.",
        [HFSAD_ROLE_CLIENT] = "A client of a federation. Its rows stay on this machine.",
    };
    cli_option options[40];
    size_t n = role_options(a, role, options);
    n += common_options(a, options + n);
    n += key_options(a, options + n);
    const cli_syntax syntax = {
        .usage = usages[role],
        .about = abouts[role],
        .options = options,
        .n_options = n,
        .least_words = 1,
        .most_words = 1,
        .words = "a spec file",
        .after = "A killed process continues from its state folder, also on another machine. If the broker\n"
                 "is down, the process waits for it.\n\n"
                 "Exit status: 0 done, 1 the run has failed, 2 spec, data, state folder, certificate or\n"
                 "arguments are wrong, 75 a failure that a restart may fix (memory, disk, clock), 129, 130, 143\n"
                 "interrupted.",
    };
    const int status = cli_parse(&syntax, argc, argv, &a->spec_path);
    if (status == CLI_GO && role == HFSAD_ROLE_CLIENT && !a->member.name == !a->member.all_of)
        return cli_wrong(argv[0], "give --name or --all-of");
    return status;
}

int member_load(hfsad_spec **spec, const char *path, const cli_texts *sets, const char *command)
{
    hfsad_error err = {0};
    if (hfsad_spec_load(spec, path, &err))
        return cli_fail(&err);
    const int status = cli_apply_sets(*spec, sets, command);
    if (status != CLI_GO)
        return status;
    return hfsad_spec_check(*spec, &err) ? cli_fail(&err) : CLI_GO;
}

/* ---- log ---- */

static void stamp(char text[40])
{
    struct timespec now;
    struct tm parts;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &parts);
    const size_t n = strftime(text, 40, "%Y-%m-%dT%H:%M:%S", &parts);
    snprintf(text + n, 40 - n, ".%03uZ", (unsigned)(now.tv_nsec / 1000000));
}

void member_print(const log_options *o, const hfsad_log *said)
{
    if ((int)said->level > o->level)
        return;
    if (o->form == 0) {
        fprintf(stderr, "%shfsad: %s%s%s%s%s%s%s%s\n", progress_log_start(), said->node, *said->node ? ": " : "",
                said->event, *said->text ? ": " : "", said->text, *said->topic ? " (" : "", said->topic,
                *said->topic ? ")" : "");
        return;
    }
    char time[40];
    stamp(time);
    cJSON *line = cJSON_CreateObject();
    const char *const fields[][2] = {{"time", time},       {"level", member_levels[said->level]},
                                     {"node", said->node}, {"event", said->event},
                                     {"text", said->text}, {"topic", said->topic}};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (*fields[i][1])
            cJSON_AddStringToObject(line, fields[i][0], fields[i][1]);
    char *printed = cJSON_PrintUnformatted(line);
    if (printed)
        fprintf(stderr, "%s%s\n", progress_log_start(), printed);
    cJSON_free(printed);
    cJSON_Delete(line);
}

/* ---- callbacks ---- */

static void on_log(void *context, const hfsad_log *line)
{
    session *c = context;
    char text[400];
    member_print(&c->log, line);
    if (line->level > HFSAD_LOG_INFO)
        return;
    snprintf(text, sizeof text, "%s%s%s", line->event, *line->text ? ": " : "", line->text);
    recorder_event(c->record.r, (int)line->level, line->node, text);
}

static void on_row(void *context, const hfsad_figures *row, const double *model, size_t width)
{
    record_row(&((session *)context)->record, row, model, width);
}

/* Before the first row there may be training for the start; the rate then counts only this process's iterations. */
static void draw_progress(session *c, const hfsad_turn *now)
{
    char detail[100];
    if (!c->draws && now->round > 0 && !now->figures)
        progress_start(&c->progress, "round", now->round, 0, c->quiet);
    c->draws = c->draws || now->round > 0;
    if (!now->figures) {
        if (c->draws)
            progress_draw(&c->progress, now->round, "before the run");
        return;
    }
    if (c->progress.total == 0) {
        int64_t total = 0;
        (void)hfsad_spec_get_whole(c->spec, "run.iterations", &total, NULL);
        progress_end(&c->progress);
        progress_start(&c->progress, "iteration", now->figures->iteration, (uint64_t)total, c->quiet);
    }
    if (!progress_due(&c->progress))
        return;
    const int n = snprintf(detail, sizeof detail, "objective %.4g", now->figures->objective);
    if (!isnan(now->figures->relative_error))
        snprintf(detail + n, sizeof detail - (size_t)n, "  error %.1e", now->figures->relative_error);
    progress_draw(&c->progress, now->figures->iteration, detail);
}

static bool on_turn(void *context, const hfsad_turn *now)
{
    session *c = context;
    if (c->member.role == HFSAD_ROLE_CLOUD)
        draw_progress(c, now);
    if (cli_interrupted())
        cli_interrupts_heed();
    return !cli_interrupted();
}

static void on_end(void *context, const hfsad_member_end *end)
{
    session *c = context;
    progress_end(&c->progress);
    if (!c->quiet && end->stop != HFSAD_STOP_INTERRUPTED)
        fputs(end->table, stdout);
    c->status = cli_finish_stdout(CLI_DONE);
    if (*end->line)
        fprintf(stderr, "hfsad: %s\n", end->line);
    if (end->stop == HFSAD_STOP_DIVERGED)
        c->status = CLI_FAILED;
}

/* ---- the command ---- */

/* A lack of memory, a failing disk and a wrong clock may be over when the process is started again. */
static int fail_member(const hfsad_error *err)
{
    const int status = cli_fail(err);
    return status == CLI_FAILED && (err->status == HFSAD_ERROR_IO || err->status == HFSAD_ERROR_MEMORY) ? CLI_AGAIN
                                                                                                        : status;
}

/* Only the cloud sees the rows. Its nodes are watched for the dashboard, which needs a certificate for the observer;
 * some clouds do not have it. */
static int enter_history(session *c)
{
    const recorder_start start = {
        .kind = "cloud", .spec_path = c->spec_path, .out = c->member.out, .spec = c->spec, .continues = c->continues};
    const char *brokers[2];
    if (c->member.role != HFSAD_ROLE_CLOUD)
        return CLI_GO;
    const int status = record_begin(&c->record, &c->recording, &start, c->quiet);
    if (status != CLI_GO || !c->recording.dash)
        return status;
    size_t n = 0;
    const char *below = c->member.below ? c->member.below : c->member.broker;
    brokers[n++] = below ? below : "mqtt://localhost";
    const hfsad_observer_settings settings = {.size = sizeof settings,
                                              .brokers = brokers,
                                              .n_brokers = n,
                                              .nodes = c->member.nodes,
                                              .keys = c->member.keys,
                                              .ca = c->member.ca,
                                              .certificate = c->member.certificate,
                                              .key = c->member.key,
                                              .insecure = c->member.insecure};
    c->watched = observe_begin(c->record.r, c->spec, &settings);
    return CLI_GO;
}

/* The list of nodes has grown: executes this program again with the same arguments and its state folder. */
static void begin_anew(void)
{
    char words[1 << 16], *argv[1024];
    size_t count = 0;
    FILE *f = fopen("/proc/self/cmdline", "r");
    const size_t size = f ? fread(words, 1, sizeof words - 1, f) : 0;
    if (f)
        fclose(f);
    words[size] = 0;
    for (char *word = words; word < words + size && count + 1 < sizeof argv / sizeof *argv; word += strlen(word) + 1)
        argv[count++] = word;
    argv[count] = NULL;
    fflush(NULL);
    if (count)
        execv("/proc/self/exe", argv);
    fputs("hfsad: the list of nodes has grown: start this process again\n", stderr);
}

static int run_member(session *c)
{
    hfsad_error err = {0};
    hfsad_member *member;
    hfsad_stop stop;
    c->continues = access(c->member.state, F_OK) == 0;
    if (hfsad_member_create(&member, c->spec, &c->member, &err))
        return fail_member(&err);
    const int recorded = enter_history(c);
    if (recorded != CLI_GO) {
        hfsad_member_free(member);
        return recorded;
    }
    cli_catch_interrupts();
    const hfsad_status status = hfsad_member_run(member, &stop, &err);
    progress_end(&c->progress);
    const bool grown = !status && hfsad_member_has_grown(member);
    hfsad_member_free(member);
    const int ended = status ? fail_member(&err) : stop == HFSAD_STOP_INTERRUPTED ? 128 + cli_interrupted() : c->status;
    observe_end(c->watched);
    record_end(&c->record, ended, !status && stop == HFSAD_STOP_DIVERGED);
    if (grown && !cli_interrupted())
        begin_anew();
    return ended;
}

/* "spec-out" for the cloud, "spec-state/NAME" for the state; NULL: no memory. The folder of all states is removed with
 * its last state. */
static int run_in_folders(session *c)
{
    const bool is_cloud = c->member.role == HFSAD_ROLE_CLOUD;
    const char *name = is_cloud ? "cloud" : c->member.all_of ? c->member.all_of : c->member.name;
    char *out = run_folder(c->spec_path, "out"), *states = run_folder(c->spec_path, "state");
    char state[4096];
    const bool named = states && hfsad_state_folder(states, name, c->member.all_of != NULL, state, sizeof state);
    const bool own_state = !c->member.state;
    int status = CLI_FAILED;
    if (is_cloud && !c->member.out)
        c->member.out = out;
    if (own_state)
        c->member.state = state;
    if (out && named)
        status = run_member(c);
    else
        fputs("hfsad: not enough memory\n", stderr);
    if (own_state && states)
        rmdir(states);
    free(out);
    free(states);
    return status;
}

int member_command(hfsad_role role, int argc, char **argv)
{
    session c = {.sets.room = calloc((size_t)argc + 1, sizeof(char *)),
                 .log.level = HFSAD_LOG_INFO,
                 .member = {.size = sizeof c.member, .role = role, .log = on_log, .turn = on_turn, .ended = on_end}};
    if (role == HFSAD_ROLE_CLOUD)
        c.member.row = on_row;
    c.member.linger = role == HFSAD_ROLE_CLIENT ? 0 : 6;
    c.member.context = &c;
    if (!c.sets.room) {
        fputs("hfsad: not enough memory\n", stderr);
        return CLI_FAILED;
    }
    int status = parse_arguments(&c, role, argc, argv);
    c.member.keepalive = (int)c.keepalive;
    c.member.state_process = c.durability == 1;
    c.member.rows_on_disk = c.rows == 1;
    if (status == CLI_GO)
        status = member_load(&c.spec, c.spec_path, &c.sets, argv[0]);
    if (status == CLI_GO)
        status = run_in_folders(&c);
    hfsad_spec_free(c.spec);
    free(c.sets.room);
    return status;
}

int cmd_cloud(int argc, char **argv)
{
    return member_command(HFSAD_ROLE_CLOUD, argc, argv);
}

int cmd_edge(int argc, char **argv)
{
    return member_command(HFSAD_ROLE_EDGE, argc, argv);
}

int cmd_client(int argc, char **argv)
{
    return member_command(HFSAD_ROLE_CLIENT, argc, argv);
}
