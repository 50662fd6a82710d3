/* hfsad status: who of a federation is there, from what the nodes say of themselves. */
#define _POSIX_C_SOURCE 200809L
#include "member.h"

#include "base/alloc.h"
#include "base/error.h"
#include "model/nodes.h"
#include "net/keys.h"
#include "progress.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* What a node has said last. */
typedef struct {
    bool heard, lives;
    uint64_t run, phase, round;
    double values[HOST_STATUS_NUMBERS];
} report_of;

typedef struct {
    const char *spec_path, *broker, *keys, *ca, *certificate, *key;
    cli_texts sets;
    bool insecure;
    double wait;
    hfsad_spec *spec;
    federation *f;
    report_of *nodes;
    size_t n_heard;
    double connected; /* since, on progress_clock; 0: not */
    hfsad_error wrong;
    bool is_wrong;
} session;

static void receive(void *context, size_t number_of_member, const char *topic, const void *bytes, size_t size)
{
    session *s = context;
    char path[TOPIC_MAX];
    topic_kind kind;
    message m;
    double values[HOST_STATUS_NUMBERS] = {0};
    (void)number_of_member;
    if (!topic_read(topic, s->spec->federation.name, path, &kind) || kind != TOPIC_STATUS ||
        message_decode(NULL, bytes, size, NULL, values, HOST_STATUS_NUMBERS, &m))
        return;
    const size_t number = nodes_find(federation_shape(s->f), path);
    if (number == SIZE_MAX)
        return;
    report_of *r = &s->nodes[number];
    s->n_heard += !r->heard;
    *r = (report_of){true, m.k == 1 && m.count >= HOST_STATUS_ITERATION, m.run, m.phase, m.round, {0}};
    memcpy(r->values, values, sizeof values);
}

static void event(void *context, size_t number_of_member, transport_event what, const char *why)
{
    session *s = context;
    (void)number_of_member;
    if (what == TRANSPORT_UP)
        s->connected = progress_clock();
    if (what == TRANSPORT_REFUSED && !s->is_wrong) {
        error_set(&s->wrong, HFSAD_ERROR_INPUT, "%.400s", why);
        s->is_wrong = true;
    }
}

static hfsad_status join(session *s, transport *t, hfsad_error *err)
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

static hfsad_status listen(session *s, hfsad_error *err)
{
    char ca[KEYS_FILE_MAX];
    snprintf(ca, sizeof ca, "%s/ca.crt", s->keys ? s->keys : "");
    const transport_broker broker = {
        .url = s->broker, .ca = s->keys ? ca : s->ca, .certificate = s->certificate, .key = s->key};
    const transport_handler handler = {s, receive, event};
    const dataset *d = federation_shape(s->f);
    transport *t = NULL;
    hfsad_status status = member_check_broker(s->broker, s->insecure, err);
    if (!status)
        status = transport_mqtt_create(&t, &broker, &handler, err);
    if (!status)
        status = join(s, t, err);
    const double begun = progress_clock();
    while (!status && !s->is_wrong && s->n_heard < d->n_inner + d->n_leaves &&
           progress_clock() < (s->connected > 0 ? s->connected : begun + 4 * s->wait) + s->wait)
        status = transport_wait(t, 20, err);
    transport_free(t);
    if (!status && s->is_wrong) {
        *err = s->wrong;
        return HFSAD_ERROR_INPUT;
    }
    if (!status && s->connected == 0)
        return error_set(err, HFSAD_ERROR_IO, "broker '%.200s' does not answer", s->broker);
    return status;
}

static const char *state_of(const session *s, const report_of *r)
{
    enum { STALE_MS = 15000 };
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    const double now = (double)t.tv_sec * 1000;
    if (!r->heard)
        return "unknown";
    if (!r->lives)
        return "gone";
    if (r->run != federation_run(s->f))
        return "other run";
    return now - r->values[HOST_STATUS_SAID] > STALE_MS ? "stale" : "live";
}

static const char *phase_name(const report_of *r)
{
    if (!r->lives)
        return "-";
    const uint64_t phase = r->phase & ((1 << NODE_PHASE_BITS) - 1);
    return phase == NODE_PHASE_SETUP ? "set-up" : phase == NODE_PHASE_FINAL ? "done" : "training";
}

static void print_node(const session *s, size_t number, int depth)
{
    const dataset *d = federation_shape(s->f);
    const report_of *r = &s->nodes[number];
    char name[TOPIC_MAX];
    double refused = 0;
    nodes_name(d, number, name, sizeof name);
    const char *slash = strrchr(name, '/');
    for (size_t i = 0; i < NODE_REFUSALS; i++)
        if (i != NODE_REFUSED_OLD)
            refused += r->values[HOST_STATUS_REFUSED + i];
    printf("%*s%-*s  %-9s  %-8s  %8" PRIu64 "  %8.0f  %8.0f  %12.0f  %12.0f\n", 2 * depth, "", 24 - 2 * depth,
           slash ? slash + 1 : name, state_of(s, r), phase_name(r), r->round, refused, r->values[HOST_STATUS_REPEATED],
           r->values[HOST_STATUS_SENT], r->values[HOST_STATUS_RECEIVED]);
    for (size_t c = 0; c < tree_children(d, number); c++)
        print_node(s, tree_child(d, number, c), depth + 1);
}

static void print_all(const session *s)
{
    const double *cloud = s->nodes[0].values;
    printf("%-24s  %-9s  %-8s  %8s  %8s  %8s  %12s  %12s\n", "node", "state", "phase", "round", "refused", "repeated",
           "bytes sent", "received");
    print_node(s, 0, 0);
    if (s->nodes[0].lives && cloud[HOST_STATUS_ITERATION] >= 0)
        printf("\niteration %.0f of %" PRId64 ", objective %.6g, residuals: primal %.3g, dual %.3g\n",
               cloud[HOST_STATUS_ITERATION], s->spec->run.iterations, cloud[HOST_STATUS_OBJECTIVE],
               cloud[HOST_STATUS_PRIMAL], cloud[HOST_STATUS_DUAL]);
}

static int carry_out(session *s)
{
    hfsad_error err = {0};
    dataset *shape;
    const int status = member_load(&s->spec, s->spec_path, &s->sets, "status");
    if (status != CLI_GO)
        return status;
    if (member_shape(&shape, s->spec, &err) || federation_create(&s->f, s->spec, shape, &err))
        return cli_fail(&err);
    s->nodes = alloc_zero(shape->n_inner + shape->n_leaves, sizeof *s->nodes);
    if (!s->nodes) {
        error_memory(&err, shape->n_leaves * sizeof *s->nodes, "the nodes");
        return cli_fail(&err);
    }
    if (listen(s, &err))
        return cli_fail(&err);
    print_all(s);
    return cli_finish_stdout(CLI_DONE);
}

static int parse(session *s, int argc, char **argv)
{
    const cli_option options[] = {
        {.name = "set", .kind = CLI_TEXTS, .value = &s->sets, .operand = "KEY=VALUE", .help = "as for the nodes"},
        {.name = "broker",
         .kind = CLI_TEXT,
         .value = &s->broker,
         .operand = "URL",
         .help = "as for the nodes (mqtt://localhost)"},
        {.name = "keys",
         .kind = CLI_TEXT,
         .value = &s->keys,
         .operand = "DIR",
         .help = "a folder as hfsad keys makes it, with a certificate for\n'observer'"},
        {.name = "ca", .kind = CLI_TEXT, .value = &s->ca, .operand = "FILE", .help = "or: the authority's certificate"},
        {.name = "certificate",
         .kind = CLI_TEXT,
         .value = &s->certificate,
         .operand = "FILE",
         .help = "the observer's"},
        {.name = "key", .kind = CLI_TEXT, .value = &s->key, .operand = "FILE", .help = "and its private key"},
        {.name = "insecure", .kind = CLI_FLAG, .value = &s->insecure, .help = "allow mqtt:// to another machine"},
        {.name = "wait",
         .kind = CLI_REAL,
         .value = &s->wait,
         .least = 0,
         .most = 1000,
         .operand = "SECONDS",
         .help = "how long to listen at most (1)"},
    };
    const cli_syntax syntax = {
        .usage = "status SPEC.yaml [--broker URL] [--keys DIR] [--wait SECONDS]",
        .about = "Prints the tree: who is live, stale (nothing heard for 15 s) or gone, rounds, messages refused and\n"
                 "repeated, bytes of the node's process; and the last figures of the cloud.",
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
    session s = {.sets.room = calloc((size_t)argc + 1, sizeof(char *)), .broker = "mqtt://localhost", .wait = 1};
    int status = CLI_FAILED;
    if (s.sets.room)
        status = parse(&s, argc, argv);
    else
        fputs("hfsad: not enough memory\n", stderr);
    if (status == CLI_GO)
        status = carry_out(&s);
    free(s.nodes);
    federation_free(s.f);
    hfsad_spec_free(s.spec);
    free(s.sets.room);
    return status;
}
