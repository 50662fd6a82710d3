/*
 * The ping-pong of pingpong.c through the federation's own transport and frames, encoded and checked: what is left
 * between this and the bare one is the price of those two. One process for the edge, one for its clients.
 *
 *   transport --port N [--clients 50] [--features 25] [--seconds 2] [--keys DIR]
 */
#include "net/transport.h"
#include "load.h"
#include "net/keys.h"
#include "net/message.h"
#include "net/topic.h"
#include "tools.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define RUN "bench"
enum { WARM = 2, ROUNDS_LEAST = 5 };

static load set;

typedef struct {
    transport *t;
    bool edge, over;
    size_t connected, arrived;
    uint64_t round;
    double *values, *received;
    unsigned char *frame;
    char topics[LOAD_CLIENTS_MOST][64]; /* where a member writes to */
} side;

static side here;

static void send_round(side *s, size_t member, message_kind kind, uint64_t round, size_t count)
{
    hfsad_error err;
    size_t size;
    const message m = {.kind = kind, .round = round, .sigma = 1, .count = count, .values = s->values};
    if (message_encode(NULL, &m, WIRE_DOUBLE, NULL, s->frame, &size))
        exit(1);
    must(transport_send(s->t, member, s->topics[member], s->frame, size, true, &err), &err);
}

static void on_receive(void *context, size_t member, const char *topic, const void *bytes, size_t size)
{
    side *s = context;
    message m;
    (void)topic;
    if (message_decode(NULL, bytes, size, NULL, s->received, set.features, &m))
        exit(1);
    if (s->edge)
        s->arrived += m.round == s->round;
    else if (m.count == 0)
        s->over = true;
    else
        send_round(s, member, MESSAGE_UP, m.round, m.count);
}

static void on_event(void *context, size_t member, transport_event event, const char *why)
{
    side *s = context;
    (void)member;
    s->connected += event == TRANSPORT_UP;
    if (event != TRANSPORT_UP) {
        fprintf(stderr, "transport: %s\n", why);
        exit(1);
    }
}

static void join(side *s, const char *path, const char *filter_path, topic_kind listens, topic_kind writes)
{
    hfsad_error err;
    char filter[TOPIC_MAX], topic[TOPIC_MAX];
    const char *filters[] = {filter};
    size_t number;
    topic_write(filter, RUN, filter_path, listens);
    topic_write(topic, RUN, path, writes);
    const transport_member m = {.name = path, .filters = filters, .n_filters = 1};
    must(transport_join(s->t, &m, &number, &err), &err);
    snprintf(s->topics[number], sizeof s->topics[number], "%.63s", topic);
}

static void begin(side *s, bool edge)
{
    hfsad_error err;
    char url[100], ca[KEYS_FILE_MAX], certificate[KEYS_FILE_MAX], key[KEYS_FILE_MAX];
    snprintf(url, sizeof url, "mqtt%s://localhost:%d", set.keys ? "s" : "", set.port);
    snprintf(ca, sizeof ca, "%s/ca.crt", set.keys ? set.keys : "");
    keys_node_files(set.keys ? set.keys : "", "edge1", certificate, key);
    const transport_broker plain = {.url = url};
    const transport_broker secure = {.url = url, .ca = ca, .certificate = certificate, .key = key};
    const transport_handler handler = {s, on_receive, on_event};
    s->edge = edge;
    s->values = calloc(set.features, sizeof *s->values);
    s->received = calloc(set.features, sizeof *s->received);
    s->frame = malloc(message_bytes_most(set.features));
    if (!s->values || !s->received || !s->frame)
        exit(1);
    for (size_t i = 0; i < set.features; i++)
        s->values[i] = sin((double)i);
    must(transport_mqtt_create(&s->t, set.keys ? &secure : &plain, &handler, &err), &err);
}

static void until(side *s, const size_t *count, size_t wanted)
{
    hfsad_error err;
    while (*count < wanted)
        must(transport_wait(s->t, 1000, &err), &err);
}

static void be_clients(int ready)
{
    hfsad_error err;
    side *s = &here;
    begin(s, false);
    for (size_t i = 0; i < set.clients; i++) {
        char path[40];
        snprintf(path, sizeof path, "edge1/client%zu", i + 1);
        join(s, path, "edge1", TOPIC_DOWN, TOPIC_UP);
    }
    until(s, &s->connected, set.clients);
    if (write(ready, "", 1) != 1)
        exit(1);
    while (!s->over)
        must(transport_wait(s->t, 1000, &err), &err);
    for (size_t i = 0; i < set.clients; i++) /* nothing retained is left behind */
        must(transport_send(s->t, i, s->topics[i], NULL, 0, true, &err), &err);
    transport_free(s->t);
}

static void be_edge(void)
{
    side *s = &here;
    double start = 0;
    begin(s, true);
    join(s, "edge1", "edge1/+", TOPIC_UP, TOPIC_DOWN);
    until(s, &s->connected, 1);
    while (s->round < WARM + ROUNDS_LEAST || now() - start < set.seconds) {
        if (s->round == WARM)
            start = now();
        s->arrived = 0;
        send_round(s, 0, MESSAGE_DOWN, ++s->round, set.features);
        until(s, &s->arrived, set.clients);
    }
    char name[100];
    snprintf(name, sizeof name, "transport%s_%zux%zu", set.keys ? "_tls" : "", set.clients, set.features);
    printf("%-44s %12.5g  rounds per second, by the federation's transport and frames\n", name,
           (double)(s->round - WARM) / (now() - start));
    fflush(stdout);
    hfsad_error err;
    send_round(s, 0, MESSAGE_DOWN, ++s->round, 0);
    must(transport_send(s->t, 0, s->topics[0], NULL, 0, true, &err), &err);
}

int main(int argc, char **argv)
{
    int ready[2];
    char byte;
    set = load_read(argc, argv);
    if (set.retain || set.processes > 1)
        die("--retain and --processes", "these are pingpong's");
    signal(SIGPIPE, SIG_IGN);
    const pid_t parent = getpid();
    if (pipe(ready) != 0)
        return 1;
    const pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            return 1;
        be_clients(ready[1]);
        return 0;
    }
    close(ready[1]);
    if (child < 0 || read(ready[0], &byte, 1) != 1)
        return 1;
    be_edge();
    int status = 1;
    waitpid(child, &status, 0); /* the clients go when they have heard the end; then so does the edge */
    transport_free(here.t);
    return status ? 1 : 0;
}
