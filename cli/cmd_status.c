/* hfsad status: which nodes are up and how far training has got, from their STATUS messages. */
#define _POSIX_C_SOURCE 200809L
#include "base/clock.h"
#include "cmd_member.h"
#include "net/member.h"

#include "base/alloc.h"
#include "base/error.h"
#include "data/nodes.h"
#include "net/keys.h"
#include "progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a node has said last at a broker. */
/* A node that waits for less is not worth a line. */
enum { WAIT_SHOWN_MS = 3000 };

typedef struct {
    bool heard, lives, has_numbers; /* a will has none */
    uint64_t run, phase, round;
    double values[HOST_STATUS_NUMBERS];
} report_of;

typedef struct session session;

typedef struct {
    session *all;
    const char *url;
    transport *way;
    report_of *nodes;
    size_t n_heard;
    double connected; /* since when, on clock_seconds; 0: not connected */
    char why[300];    /* reason why not */
} lookout;

struct session {
    const char *spec_path, *keys, *ca, *certificate, *key;
    cli_texts sets, brokers;
    bool insecure;
    double wait;
    hfsad_spec *spec;
    federation *f;
    lookout *from; /* one for each of brokers */
    hfsad_error wrong;
    bool is_wrong;
};

static void receive(void *context, size_t number_of_member, const char *topic, const void *bytes, size_t size)
{
    lookout *from = context;
    const session *s = from->all;
    char path[TOPIC_MAX];
    topic_kind kind;
    message m;
    double values[HOST_STATUS_NUMBERS] = {0};
    (void)number_of_member;
    if (!topic_read(topic, s->spec->federation.name, path, &kind) || kind != TOPIC_STATUS ||
        message_decode(NULL, bytes, message_frame_size(bytes, size), NULL, values, HOST_STATUS_NUMBERS, &m))
        return;
    const size_t number = nodes_find(federation_shape(s->f), path);
    if (number == SIZE_MAX)
        return;
    report_of *r = &from->nodes[number];
    from->n_heard += !r->heard;
    *r = (report_of){true, m.k == 1, m.count >= HOST_STATUS_ITERATION, m.run, m.phase, m.round, {0}};
    memcpy(r->values, values, sizeof values);
}

static void event(void *context, size_t number_of_member, transport_event what, const char *why)
{
    lookout *from = context;
    session *s = from->all;
    (void)number_of_member;
    if (what == TRANSPORT_UP)
        from->connected = clock_seconds();
    if (what == TRANSPORT_DOWN)
        snprintf(from->why, sizeof from->why, "%s", why);
    if (what == TRANSPORT_REFUSED && !s->is_wrong) {
        error_set(&s->wrong, HFSAD_ERROR_INPUT, "broker '%.200s': %.350s", from->url, why);
        s->is_wrong = true;
    }
}

static hfsad_status join(const session *s, transport *t, hfsad_error *err)
{
    static char filters[HFSAD_TIERS_MAX + 1][TOPIC_MAX];
    const char *list[HFSAD_TIERS_MAX + 1];
    char path[2 * HFSAD_TIERS_MAX + 2] = "+", certificate[KEYS_FILE_MAX], key[KEYS_FILE_MAX];
    size_t number;
    const uint32_t depth = federation_shape(s->f)->depth;
    for (uint32_t i = 0; i < depth; i++) {
        if (!topic_write(filters[i], s->spec->federation.name, path, TOPIC_STATUS))
            return error_set(err, HFSAD_ERROR_INPUT, "federation.name is too long");
        list[i] = filters[i];
        strcat(path, "/+");
    }
    const bool own = s->keys && keys_node_files(s->keys, KEYS_OBSERVER, certificate, key);
    const transport_member observer = {.name = KEYS_OBSERVER,
                                       .filters = list,
                                       .n_filters = depth,
                                       .certificate = own ? certificate : NULL,
                                       .key = own ? key : NULL};
    return transport_join(t, &observer, &number, err);
}

static size_t nodes_of(const session *s)
{
    const dataset *d = federation_shape(s->f);
    return d->n_inner + d->n_leaves;
}

static hfsad_status open_lookout(session *s, lookout *from, const char *url, hfsad_error *err)
{
    char ca[KEYS_FILE_MAX];
    snprintf(ca, sizeof ca, "%s/ca.crt", s->keys ? s->keys : "");
    const transport_broker broker = {
        .url = url, .ca = s->keys ? ca : s->ca, .certificate = s->certificate, .key = s->key};
    const transport_handler handler = {from, receive, event};
    *from = (lookout){.all = s, .url = url, .nodes = alloc_zero(nodes_of(s), sizeof *from->nodes)};
    if (!from->nodes)
        return error_memory(err, nodes_of(s) * sizeof *from->nodes, "the nodes");
    hfsad_status status = member_check_broker(url, s->insecure, err);
    if (!status)
        status = transport_mqtt_create(&from->way, &broker, &handler, err);
    return status ? status : join(s, from->way, err);
}

/* A broker that is down is waited for a little longer. Several have different nodes. */
static bool is_waiting(const session *s, const lookout *from, double begun)
{
    if (s->brokers.count == 1 && from->n_heard == nodes_of(s))
        return false;
    return clock_seconds() < (from->connected > 0 ? from->connected : begun + 4 * s->wait) + s->wait;
}

static hfsad_status listen(session *s, hfsad_error *err)
{
    const double begun = clock_seconds();
    hfsad_status status = HFSAD_OK;
    bool waiting = true;
    for (size_t i = 0; i < s->brokers.count && !status; i++)
        status = open_lookout(s, &s->from[i], s->brokers.room[i], err);
    while (!status && !s->is_wrong && waiting) {
        waiting = false;
        for (size_t i = 0; i < s->brokers.count && !status; i++) {
            status = transport_wait(s->from[i].way, s->brokers.count > 1 ? 5 : 20, err);
            waiting = waiting || is_waiting(s, &s->from[i], begun);
        }
    }
    if (!status && s->is_wrong) {
        *err = s->wrong;
        return HFSAD_ERROR_INPUT;
    }
    return status;
}

/* ---- what a node is ---- */

static double age_ms(const report_of *r)
{
    return (double)clock_wall_ms() - r->values[HOST_STATUS_SAID];
}

static bool is_live(const report_of *r)
{
    enum { STALE_MS = 15000 };
    return r->lives && r->has_numbers && age_ms(r) <= STALE_MS;
}

/* Of two reports on a node from two brokers, whether b is better: a live report first; then the later of two reports
 * with times; a will, which has no time, before an old report. */
static bool is_better(const report_of *a, const report_of *b)
{
    if (!a->heard || !b->heard)
        return b->heard;
    if (is_live(a) != is_live(b))
        return is_live(b);
    if (a->has_numbers && b->has_numbers)
        return age_ms(b) < age_ms(a);
    return a->has_numbers ? a->lives : !b->lives;
}

static const report_of *report_on(const session *s, size_t number)
{
    const report_of *best = &s->from[0].nodes[number];
    for (size_t i = 1; i < s->brokers.count; i++)
        if (is_better(best, &s->from[i].nodes[number]))
            best = &s->from[i].nodes[number];
    return best;
}

static uint64_t phase_of(const report_of *r)
{
    return r->phase & ((1 << NODE_PHASE_BITS) - 1);
}

static const char *state_of(const session *s, const report_of *r)
{
    if (!r->heard)
        return "unknown";
    if (r->run == federation_run(s->f) && phase_of(r) == NODE_PHASE_FINAL && !is_live(r))
        return "done";
    if (!r->lives)
        return "gone";
    if (r->run != federation_run(s->f))
        return "other run";
    return is_live(r) ? "live" : "stale";
}

static const char *phase_name(const report_of *r)
{
    if (!r->has_numbers)
        return "-";
    const uint64_t phase = phase_of(r);
    return phase == NODE_PHASE_SETUP ? "set-up" : phase == NODE_PHASE_FINAL ? "done" : "training";
}

static void print_node(const session *s, size_t number, int depth)
{
    const dataset *d = federation_shape(s->f);
    const report_of *r = report_on(s, number);
    char name[TOPIC_MAX];
    double refused = 0;
    nodes_name(d, number, name, sizeof name);
    const char *slash = strrchr(name, '/');
    for (size_t i = 0; i < NODE_REFUSALS; i++)
        if (i != NODE_REFUSED_OLD)
            refused += r->values[HOST_STATUS_REFUSED + i];
    refused += r->values[HOST_STATUS_GARBLED];
    printf("%*s%-*s  %-9s  %-8s", 2 * depth, "", 24 - 2 * depth, slash ? slash + 1 : name, state_of(s, r),
           phase_name(r));
    if (r->has_numbers)
        printf("  %8" PRIu64 "  %8.0f  %8.0f  %12.0f  %12.0f\n", r->round, refused, r->values[HOST_STATUS_REPEATED],
               r->values[HOST_STATUS_SENT], r->values[HOST_STATUS_RECEIVED]);
    else
        printf("  %8s  %8s  %8s  %12s  %12s\n", "-", "-", "-", "-", "-");
    for (size_t c = 0; c < tree_children(d, number); c++)
        print_node(s, tree_child(d, number, c), depth + 1);
}

/* Which node waits for which child, and for how long. */
static void print_waits(const session *s)
{
    const dataset *d = federation_shape(s->f);
    for (size_t i = 0; i < d->n_inner; i++) {
        const report_of *r = report_on(s, i);
        const double *v = r->values, count = v[HOST_STATUS_WAITS], ms = v[HOST_STATUS_WAITS_MS];
        const size_t slot = (size_t)v[HOST_STATUS_WAITS_FOR];
        char name[TOPIC_MAX], child[TOPIC_MAX];
        if (!r->has_numbers || !is_live(r) || !(count > 0) || !(ms >= WAIT_SHOWN_MS) || slot >= tree_children(d, i))
            continue;
        nodes_name(d, i, name, sizeof name);
        nodes_name(d, tree_child(d, i, slot), child, sizeof child);
        printf("\n%s waits for %s", name, child);
        if (count > 1)
            printf(" and %.0f more", count - 1);
        printf(" for %.0f s", ms / 1000);
    }
    putchar('\n');
}

static void print_all(const session *s)
{
    const report_of *cloud = report_on(s, 0);
    const double *figures = cloud->values;
    printf("%-24s  %-9s  %-8s  %8s  %8s  %8s  %12s  %12s\n", "node", "state", "phase", "round", "refused", "repeated",
           "bytes sent", "received");
    print_node(s, 0, 0);
    print_waits(s);
    if (cloud->has_numbers && cloud->run == federation_run(s->f) && figures[HOST_STATUS_ITERATION] >= 0)
        printf("\niteration %.0f of %" PRId64 ", objective %.6g, residuals: primal %.3g, dual %.3g\n",
               figures[HOST_STATUS_ITERATION], s->spec->run.iterations, figures[HOST_STATUS_OBJECTIVE],
               figures[HOST_STATUS_PRIMAL], figures[HOST_STATUS_DUAL]);
}

/* Who is at a broker that does not answer is not known; the others are shown all the same. */
static int show(const session *s)
{
    hfsad_error err = {0};
    size_t silent = 0;
    int status = CLI_DONE;
    for (size_t i = 0; i < s->brokers.count; i++)
        silent += s->from[i].connected == 0;
    if (silent < s->brokers.count)
        print_all(s);
    for (size_t i = 0; i < s->brokers.count; i++) {
        if (s->from[i].connected > 0)
            continue;
        error_set(&err, HFSAD_ERROR_IO, "broker '%.200s' does not answer: %.300s", s->from[i].url,
                  s->from[i].why[0] ? s->from[i].why : "no connection in time");
        status = cli_fail(&err);
    }
    return cli_finish_stdout(status);
}

static int carry_out(session *s)
{
    hfsad_error err = {0};
    dataset *shape;
    const int status = member_load(&s->spec, s->spec_path, &s->sets, "status");
    if (status != CLI_GO)
        return status;
    if (member_shape(&shape, s->spec, NULL, NULL, &err) || federation_create(&s->f, s->spec, shape, &err))
        return cli_fail(&err);
    if (s->brokers.count == 0)
        s->brokers.room[s->brokers.count++] = "mqtt://localhost";
    s->from = alloc_zero(s->brokers.count, sizeof *s->from);
    if (!s->from) {
        error_memory(&err, s->brokers.count * sizeof *s->from, "the brokers");
        return cli_fail(&err);
    }
    return listen(s, &err) ? cli_fail(&err) : show(s);
}

static int parse(session *s, int argc, char **argv)
{
    const cli_option options[] = {
        {.name = "set", .kind = CLI_TEXTS, .value = &s->sets, .operand = "KEY=VALUE", .help = "as for the nodes"},
        {.name = "broker",
         .kind = CLI_TEXTS,
         .value = &s->brokers,
         .operand = "URL",
         .help = "as for the nodes (mqtt://localhost); repeat it for each\n"
                 "broker of the federation"},
        {.name = "keys",
         .kind = CLI_TEXT,
         .value = &s->keys,
         .operand = "DIR",
         .help = "folder made by hfsad keys, with a certificate for 'observer'"},
        {.name = "ca",
         .kind = CLI_TEXT,
         .value = &s->ca,
         .operand = "FILE",
         .help = "instead of --keys: certificate of the authority"},
        {.name = "certificate",
         .kind = CLI_TEXT,
         .value = &s->certificate,
         .operand = "FILE",
         .help = "instead of --keys: certificate of the observer"},
        {.name = "key",
         .kind = CLI_TEXT,
         .value = &s->key,
         .operand = "FILE",
         .help = "instead of --keys: private key of the observer"},
        {.name = "insecure", .kind = CLI_FLAG, .value = &s->insecure, .help = "allow mqtt:// to another machine"},
        {.name = "wait",
         .kind = CLI_REAL,
         .value = &s->wait,
         .least = 0,
         .most = 1000,
         .operand = "SECONDS",
         .help = "longest time to listen (1)"},
    };
    const cli_syntax syntax = {
        .usage = "status SPEC.yaml [--broker URL]... [--keys DIR] [--wait SECONDS]",
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
        status = parse(&s, argc, argv);
    else
        fputs("hfsad: not enough memory\n", stderr);
    if (status == CLI_GO)
        status = carry_out(&s);
    for (size_t i = 0; s.from && i < s.brokers.count; i++) {
        transport_free(s.from[i].way);
        free(s.from[i].nodes);
    }
    free(s.from);
    federation_free(s.f);
    hfsad_spec_free(s.spec);
    free(s.sets.room);
    free(s.brokers.room);
    return status;
}
