/* hfsad dash: history and live runs as pages for a browser. */
#define _GNU_SOURCE /* setenv */
#include "dash/server.h"
#include "record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

typedef struct {
    const char *listen, *history, *keys;
    int64_t run;
    bool quiet;
} dash_arguments;

static int parse_arguments(dash_arguments *a, int argc, char **argv)
{
    const cli_option options[] = {
        {"listen", CLI_TEXT, &a->listen, 0, 0, NULL, "HOST:PORT",
         "address (127.0.0.1:8080); with port 0 the system chooses one"},
        {"history", CLI_TEXT, &a->history, 0, 0, NULL, "FILE",
         "history of runs; by default HFSAD_HISTORY or\n"
         "~/.local/share/hfsad/runs.db"},
        {"keys", CLI_TEXT, &a->keys, 0, 0, NULL, "DIR",
         "folder with dash.crt, dash.key and dash.token: HTTPS, and\n"
         "every request needs the token; needed beyond this machine"},
        {"run", CLI_WHOLE, &a->run, 0, 1e15, NULL, "ID", "begin with the page of this run"},
        {"quiet", CLI_FLAG, &a->quiet, 0, 0, NULL, NULL, "do not print the address"},
    };
    const cli_syntax syntax = {
        .usage = "dash [--listen HOST:PORT] [--history FILE] [--keys DIR]",
        .about = "Serves the history of runs, with those that train now, as pages for a browser: runs, one run, its\n"
                 "federation, and runs compared. Read-only; nothing is loaded from elsewhere. Ctrl-C ends it.",
        .options = options,
        .n_options = sizeof options / sizeof *options,
        .after = "Keys for HOST, a name by which browsers reach this machine:\n\n"
                 "  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 365 -subj /CN=HOST \\\n"
                 "    -addext subjectAltName=DNS:HOST -keyout DIR/dash.key -out DIR/dash.crt\n"
                 "  openssl rand -hex 32 >DIR/dash.token\n\n"
                 "Then open https://HOST:PORT/?token=TOKEN once; the browser keeps the token as a cookie.\n"
                 "Other programs send it as `Authorization: Bearer TOKEN`.\n\n"
                 "A socket that systemd passes is used in place of a new one.\n\n"
                 "Exit status: 0 ended by a signal, 1 failed, 2 address, history, keys or arguments are wrong.",
    };
    return cli_parse(&syntax, argc, argv, NULL);
}

static bool stopped(void)
{
    return cli_interrupted() != 0;
}

/* The first socket passed by systemd or by `hfsad run --dash`; -1: none. */
static int given_socket(void)
{
    const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
    const bool ours = pid && count && strtol(pid, NULL, 10) == (long)getpid() && strtol(count, NULL, 10) >= 1;
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    return ours ? 3 : -1;
}

int cmd_dash(int argc, char **argv)
{
    dash_arguments a = {.listen = "127.0.0.1:8080"};
    hfsad_error err = {0};
    history *h;
    server *s = NULL;
    int status = parse_arguments(&a, argc, argv);
    if (status == CLI_GO)
        status = record_open(&h, a.history, HISTORY_CREATE); /* an empty history is shown, too */
    if (status != CLI_GO)
        return status;
    const server_settings settings = {.address = a.listen, .keys = a.keys, .socket = given_socket()};
    char url[SERVER_URL_SIZE];
    if (server_create(&s, &settings, &err)) {
        history_close(h);
        return cli_fail(&err);
    }
    server_url(s, url);
    cli_catch_interrupts();
    if (!a.quiet)
        printf("%s\n", url);
    status = a.quiet ? CLI_DONE : cli_finish_stdout(CLI_DONE);
    if (status == CLI_DONE && server_run(s, h->path, a.run, stopped, &err))
        status = cli_fail(&err);
    server_free(s);
    history_close(h);
    return status;
}
