/* The arguments of hfsad cloud, edge and client. */
#include "member.h"

#include <string.h>

const char *const member_levels[] = {"error", "warning", "info", "debug", NULL};
const char *const member_forms[] = {"text", "json", NULL};
static const char *const durabilities[] = {"power", "process", NULL};
static const char *const places[] = {"memory", "disk", NULL};

static size_t common_options(member_arguments *a, cli_option *o)
{
    const cli_option all[] = {
        {.name = "set",
         .kind = CLI_TEXTS,
         .value = &a->sets,
         .operand = "KEY=VALUE",
         .help = "override a setting of the spec; use the same for all nodes"},
        {.name = "broker",
         .kind = CLI_TEXT,
         .value = &a->broker,
         .operand = "URL",
         .help = "mqtts://host[:8883], mqtt://host[:1883] or unix:///socket\n(mqtt://localhost)"},
        {.name = "keys",
         .kind = CLI_TEXT,
         .value = &a->keys,
         .operand = "DIR",
         .help = "folder made by hfsad keys, with ca.crt and the node's files\n"
                 "below nodes/"},
        {.name = "ca",
         .kind = CLI_TEXT,
         .value = &a->ca,
         .operand = "FILE",
         .help = "instead of --keys: certificate of the authority"},
        {.name = "certificate",
         .kind = CLI_TEXT,
         .value = &a->certificate,
         .operand = "FILE",
         .help = "instead of --keys: certificate of the node"},
        {.name = "key",
         .kind = CLI_TEXT,
         .value = &a->key,
         .operand = "FILE",
         .help = "instead of --keys: private key of the node"},
        {.name = "insecure",
         .kind = CLI_FLAG,
         .value = &a->insecure,
         .help = "allow mqtt:// to another machine: without TLS, everyone on\n"
                 "the network path can read and change all messages"},
        {.name = "state",
         .kind = CLI_TEXT,
         .value = &a->state,
         .operand = "DIR",
         .help = "folder for the state that survives a crash (spec-state/NAME)"},
        {.name = "durability",
         .kind = CLI_CHOICE,
         .value = &a->durability,
         .choices = durabilities,
         .operand = "power|process",
         .help = "failures that a state survives: power (the default): loss of\n"
                 "power, by one disk sync per round; process: a crash only"},
        {.name = "keepalive",
         .kind = CLI_WHOLE,
         .value = &a->keepalive,
         .least = 5,
         .most = 65535,
         .operand = "SECONDS",
         .help = "probe a connection after this number of silent seconds; a\n"
                 "dead one is detected after at most twice that (30)"},
        {.name = "metrics",
         .kind = CLI_TEXT,
         .value = &a->metrics,
         .operand = "HOST:PORT",
         .help = "serve metrics for Prometheus at this address, such as\n"
                 "127.0.0.1:9100, without access control"},
        {.name = "log",
         .kind = CLI_CHOICE,
         .value = &a->log,
         .choices = member_forms,
         .operand = "text|json",
         .help = "format of the log on stderr (text)"},
        {.name = "log-level",
         .kind = CLI_CHOICE,
         .value = &a->level,
         .choices = member_levels,
         .operand = "LEVEL",
         .help = "error, warning, info (the default) or debug"},
    };
    memcpy(o, all, sizeof all);
    return sizeof all / sizeof *all;
}

static size_t inner_options(member_arguments *a, cli_option *o)
{
    const cli_option all[] = {
        {.name = "broker-below",
         .kind = CLI_TEXT,
         .value = &a->below,
         .operand = "URL",
         .help = "broker of the children, if it differs"},
        {.name = "record",
         .kind = CLI_TEXT,
         .value = &a->record,
         .operand = "FILE",
         .help = "asynchronous mode: file for the record, written at the end"},
        {.name = "linger",
         .kind = CLI_REAL,
         .value = &a->linger,
         .least = 0,
         .most = 1e6,
         .operand = "SECONDS",
         .help = "after the run: end this process after this number of silent\n"
                 "seconds (6)"},
    };
    memcpy(o, all, sizeof all);
    return sizeof all / sizeof *all;
}

static size_t cloud_options(member_arguments *a, cli_option *o)
{
    const cli_option all[] = {
        {.name = "out", .kind = CLI_TEXT, .value = &a->out, .operand = "DIR", .help = "output folder (spec-out)"},
        {.name = "quiet", .kind = CLI_FLAG, .value = &a->quiet, .help = "no progress, no table"},
    };
    memcpy(o, all, sizeof all);
    return sizeof all / sizeof *all;
}

static size_t edge_options(member_arguments *a, cli_option *o)
{
    const cli_option all[] = {
        {.name = "name", .kind = CLI_NEEDED, .value = &a->name, .operand = "PATH", .help = "such as edge1"},
        {.name = "broker-above",
         .kind = CLI_TEXT,
         .value = &a->above,
         .operand = "URL",
         .help = "broker of the parent, if it differs"},
    };
    memcpy(o, all, sizeof all);
    return sizeof all / sizeof *all;
}

static size_t client_options(member_arguments *a, cli_option *o)
{
    const cli_option all[] = {
        {.name = "name", .kind = CLI_TEXT, .value = &a->name, .operand = "PATH", .help = "such as edge1/client7"},
        {.name = "all-of",
         .kind = CLI_TEXT,
         .value = &a->all_of,
         .operand = "EDGE",
         .help = "instead of --name: all clients of an edge or of the cloud"},
        {.name = "data",
         .kind = CLI_TEXT,
         .value = &a->data,
         .operand = "FILE",
         .help = "rows of the client, or data of the whole federation, from\n"
                 "which the client reads its own rows; by default data of\n"
                 "the spec"},
        {.name = "rows",
         .kind = CLI_CHOICE,
         .value = &a->rows,
         .choices = places,
         .operand = "memory|disk",
         .help = "place of dense rows: memory (the default), or disk: a\n"
                 "scratch file beside the state folder, if the rows exceed\n"
                 "the memory; the results are the same"},
    };
    memcpy(o, all, sizeof all);
    return sizeof all / sizeof *all;
}

static size_t role_options(member_arguments *a, member_role role, cli_option *o)
{
    if (role == ROLE_CLIENT)
        return client_options(a, o);
    const size_t n = inner_options(a, o);
    return n + (role == ROLE_CLOUD ? cloud_options(a, o + n) : edge_options(a, o + n));
}

int member_parse(member_arguments *a, member_role role, int argc, char **argv)
{
    static const char *const usages[] = {
        [ROLE_CLOUD] = "cloud SPEC.yaml [--broker URL] [--keys DIR] [--state DIR] [--out DIR] ...",
        [ROLE_EDGE] = "edge SPEC.yaml --name PATH [--broker URL] [--keys DIR] [--state DIR] ...",
        [ROLE_CLIENT] = ("client SPEC.yaml --name PATH [--data FILE] [--broker URL] [--keys DIR] ...\n"
                         "hfsad client SPEC.yaml --all-of EDGE [--data FILE] ..."),
    };
    static const char *const abouts[] = {
        [ROLE_CLOUD] = ("The root of a federation: sets up the nodes, steps once per global iteration, and writes the\n"
                        "output folder as `hfsad run` does."),
        [ROLE_EDGE] = "An inner node of a federation, at any depth, between its children and its parent.",
        [ROLE_CLIENT] = "A client of a federation. Its rows stay on this machine.",
    };
    cli_option options[24];
    size_t n = role_options(a, role, options);
    n += common_options(a, options + n);
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
                 "Exit status: 0 done, 1 failed, 2 spec, data, state folder, certificate or arguments are\n"
                 "wrong, 129, 130, 143 interrupted.",
    };
    a->command = argv[0];
    const int status = cli_parse(&syntax, argc, argv, &a->spec_path);
    if (status == CLI_GO && role == ROLE_CLIENT && !a->name == !a->all_of)
        return cli_wrong(argv[0], "give --name or --all-of");
    return status;
}
