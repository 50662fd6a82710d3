/* hfsad status: which nodes are up and how far training has got, once or until the run has ended. */
#define _POSIX_C_SOURCE 200809L
#include "base/error.h"
#include "cmd_member.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Shorter waits are not printed. NODES_DRAWN: limit for a tree that is drawn repeatedly. */
enum { WAIT_SHOWN_MS = 3000, NODES_DRAWN = 60 };

typedef struct {
    const char *spec_path, *keys, *ca, *certificate, *key;
    cli_texts sets, brokers;
    bool insecure, watch;
    double wait;
    hfsad_spec *spec;
    hfsad_observer *o;
} session;

static hfsad_seen seen_of(const session *s, size_t number)
{
    hfsad_seen n = {.size = sizeof n};
    hfsad_observer_node(s->o, number, &n);
    return n;
}

/* ---- printing ---- */

static void print_row(const hfsad_seen *n, int depth)
{
    const char *slash = strrchr(n->path, '/');
    printf("%*s%-*s  %-9s  %-8s", 2 * depth, "", 24 - 2 * depth, slash ? slash + 1 : n->path,
           hfsad_seen_state_name(n->state), n->phase);
    if (n->has_numbers)
        printf("  %8" PRIu64 "  %8" PRIu64 "  %8" PRIu64 "  %12" PRIu64 "  %12" PRIu64 "\n", n->round, n->refused,
               n->repeated, n->sent, n->received);
    else
        printf("  %8s  %8s  %8s  %12s  %12s\n", "-", "-", "-", "-", "-");
}

/* folded: for a large tree, only inner nodes and clients that need attention. */
static void print_node(const session *s, size_t number, int depth, bool folded)
{
    const hfsad_seen n = seen_of(s, number);
    size_t well = 0;
    print_row(&n, depth);
    for (size_t c = 0; c < n.children; c++) {
        const size_t child = hfsad_observer_child(s->o, number, c);
        const hfsad_seen below = seen_of(s, child);
        if (folded && !below.children && (below.state == HFSAD_SEEN_LIVE || below.state == HFSAD_SEEN_DONE))
            well++;
        else
            print_node(s, child, depth + 1, folded);
    }
    if (well)
        printf("%*s%zu clients live or done\n", 2 * depth + 2, "", well);
}

/* Which node waits for which child, and for how long. */
static void print_waits(const session *s)
{
    for (size_t i = 0; i < hfsad_observer_nodes(s->o); i++) {
        const hfsad_seen n = seen_of(s, i);
        if (!n.children)
            break; /* the clients come last */
        if (n.state != HFSAD_SEEN_LIVE || !n.waits || n.waits_ms < WAIT_SHOWN_MS)
            continue;
        printf("\n%s waits for %s", n.path, seen_of(s, n.waits_for).path);
        if (n.waits > 1)
            printf(" and %zu more", n.waits - 1);
        printf(" for %.0f s", (double)n.waits_ms / 1000);
    }
    putchar('\n');
}

/* Clients then do not report their losses. */
static bool has_noise(const hfsad_spec *spec)
{
    double epsilon = 0, rho = 0;
    (void)hfsad_spec_get_real(spec, "privacy.epsilon", &epsilon, NULL);
    (void)hfsad_spec_get_real(spec, "privacy.rho", &rho, NULL);
    return epsilon > 0 || rho > 0;
}

static void print_all(const session *s)
{
    const hfsad_seen cloud = seen_of(s, 0);
    int64_t iterations = 0;
    printf("%-24s  %-9s  %-8s  %8s  %8s  %8s  %12s  %12s\n", "node", "state", "phase", "round", "refused", "repeated",
           "bytes sent", "received");
    print_node(s, 0, 0, s->watch && hfsad_observer_nodes(s->o) > NODES_DRAWN);
    print_waits(s);
    (void)hfsad_spec_get_whole(s->spec, "run.iterations", &iterations, NULL);
    if (cloud.has_figures && has_noise(s->spec))
        printf("\niteration %" PRIu64 " of %" PRId64
               "; with a privacy budget objective and residuals are not computed\n",
               cloud.iteration, iterations);
    else if (cloud.has_figures)
        printf("\niteration %" PRIu64 " of %" PRId64 ", objective %.6g, residuals: primal %.3g, dual %.3g\n",
               cloud.iteration, iterations, cloud.objective, cloud.primal_residual, cloud.dual_residual);
}

/* A node whose broker does not answer is unknown; the other nodes are shown. */
static int show(const session *s)
{
    hfsad_error err = {0};
    size_t silent = 0;
    int status = CLI_DONE;
    for (size_t i = 0; i < s->brokers.count; i++)
        silent += hfsad_observer_broker(s->o, i) != NULL;
    if (silent < s->brokers.count)
        print_all(s);
    for (size_t i = 0; i < s->brokers.count; i++) {
        const char *why = hfsad_observer_broker(s->o, i);
        if (!why)
            continue;
        error_set(&err, HFSAD_ERROR_IO, "broker '%.200s' does not answer: %.300s", s->brokers.room[i], why);
        status = cli_fail(&err);
    }
    return cli_finish_stdout(status);
}

/* ---- watching ---- */

static bool has_ended(const session *s)
{
    return seen_of(s, 0).state == HFSAD_SEEN_DONE;
}

/* On a terminal the cursor goes home and the rest of a longer earlier table is erased; otherwise tables are separated
 * by an empty line. */
static int watch(session *s)
{
    const bool terminal = isatty(STDOUT_FILENO) != 0;
    hfsad_error err = {0};
    cli_catch_interrupts();
    for (bool first = true;; first = false) {
        if (hfsad_observer_wait(s->o, s->wait, false, &err))
            return cli_fail(&err);
        if (cli_interrupted())
            return 128 + cli_interrupted();
        fputs(!terminal ? (first ? "" : "\n") : first ? "\033[2J\033[H" : "\033[H\033[J", stdout);
        const int status = show(s);
        if (status > 128 || has_ended(s))
            return status;
    }
}

static int show_status(session *s)
{
    hfsad_error err = {0};
    const int status = member_load(&s->spec, s->spec_path, &s->sets, "status");
    if (status != CLI_GO)
        return status;
    if (s->brokers.count == 0)
        s->brokers.room[s->brokers.count++] = "mqtt://localhost";
    const hfsad_observer_settings settings = {.size = sizeof settings,
                                              .brokers = s->brokers.room,
                                              .n_brokers = s->brokers.count,
                                              .keys = s->keys,
                                              .ca = s->ca,
                                              .certificate = s->certificate,
                                              .key = s->key,
                                              .insecure = s->insecure};
    if (hfsad_observer_create(&s->o, s->spec, &settings, &err))
        return cli_fail(&err);
    if (s->watch)
        return watch(s);
    return hfsad_observer_wait(s->o, s->wait, true, &err) ? cli_fail(&err) : show(s);
}

static int parse_arguments(session *s, int argc, char **argv)
{
    const cli_option options[] = {
        {"set", CLI_TEXTS, &s->sets, 0, 0, NULL, "KEY=VALUE", "as for the nodes"},
        {"broker", CLI_TEXTS, &s->brokers, 0, 0, NULL, "URL",
         "as for the nodes (mqtt://localhost); repeat it for each\n"
         "broker of the federation"},
        {"keys", CLI_TEXT, &s->keys, 0, 0, NULL, "DIR", "folder made by hfsad keys, with a certificate for 'observer'"},
        {"ca", CLI_TEXT, &s->ca, 0, 0, NULL, "FILE", "instead of --keys: certificate of the authority"},
        {"certificate", CLI_TEXT, &s->certificate, 0, 0, NULL, "FILE",
         "instead of --keys: certificate of the observer"},
        {"key", CLI_TEXT, &s->key, 0, 0, NULL, "FILE", "instead of --keys: private key of the observer"},
        {"insecure", CLI_FLAG, &s->insecure, 0, 0, NULL, NULL, "allow mqtt:// to another machine"},
        {"watch", CLI_FLAG, &s->watch, 0, 0, NULL, NULL,
         "draw the table again each second until the run has ended\n"
         "or Ctrl-C; on a terminal in place"},
        {"wait", CLI_REAL, &s->wait, 0, 1000, NULL, "SECONDS", "longest time to listen (1)"},
    };
    const cli_syntax syntax = {
        .usage = "status SPEC.yaml [--broker URL]... [--keys DIR] [--wait SECONDS] [--watch]",
        .about = "Prints the state of every node: live, stale (silent for 15 s), gone (its process has ended),\n"
                 "done (its run has ended), unknown (never heard at these brokers); its rounds, refused and\n"
                 "repeated messages and bytes; and the last figures of the cloud.",
        .options = options,
        .n_options = sizeof options / sizeof *options,
        .least_words = 1,
        .most_words = 1,
        .words = "a spec file",
    };
    return cli_parse(&syntax, argc, argv, &s->spec_path);
}

int cmd_status(int argc, char **argv)
{
    session s = {.sets.room = calloc((size_t)argc + 1, sizeof(char *)),
                 .brokers.room = calloc((size_t)argc + 1, sizeof(char *)),
                 .wait = 1};
    int status = CLI_FAILED;
    if (s.sets.room && s.brokers.room)
        status = parse_arguments(&s, argc, argv);
    else
        fputs("hfsad: not enough memory\n", stderr);
    if (status == CLI_GO)
        status = show_status(&s);
    hfsad_observer_free(s.o);
    hfsad_spec_free(s.spec);
    free(s.sets.room);
    free(s.brokers.room);
    return status;
}
