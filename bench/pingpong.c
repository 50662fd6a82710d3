/*
 * The limit that a federation is measured against: a bare ping-pong through a broker. An edge publishes a vector, every
 * client answers it with a vector of its own, the edge begins again when it has them all. libmosquitto and nothing
 * else: no checks, no arithmetic, nothing written to disk. The clients sit in one process or in one each.
 *
 *   pingpong --port N [--clients 50] [--features 25] [--processes 1] [--seconds 2] [--retain] [--keys DIR]
 *            [--sync BYTES] [--sync-edge BYTES]
 *
 * --keys: TLS with the certificates of a folder of `hfsad keys`, all as edge1. --sync: the limit of those who keep what
 * they say: in every round a process of clients writes so many bytes to a file of its own in the working folder and
 * syncs them before its first answer; --sync-edge: the edge likewise, before it begins a round. Prints `name value
 * unit`.
 */
#define _GNU_SOURCE /* O_DIRECT */
#include "disk.h"
#include "load.h"
#include "tools.h"

#include <errno.h>
#include <mosquitto.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define DOWN "hfsad/bench/edge1/down"
#define UP "hfsad/bench/edge1/client%zu/up"

enum { READS = 64, ROUNDS_LEAST = 5 };

static load set;

typedef struct {
    struct mosquitto *handle;
    size_t number; /* 0: the edge */
    bool listens;
} peer;

static double *vector; /* the first number is the round */
static size_t arrived, rounds, ended;
static disk own;

static void say(peer *p, const char *topic, size_t bytes)
{
    const int code = mosquitto_publish(p->handle, NULL, topic, (int)bytes, vector, 0, set.retain);
    if (code)
        die("publish", mosquitto_strerror(code));
}

static void on_message(struct mosquitto *handle, void *context, const struct mosquitto_message *message)
{
    peer *p = context;
    const size_t bytes = set.features * sizeof(double);
    if (p->number == 0) {
        arrived += message->payloadlen > 0;
        return;
    }
    char topic[100];
    snprintf(topic, sizeof topic, UP, p->number);
    if (message->payloadlen >= (int)bytes) {
        double round;
        memcpy(&round, message->payload, sizeof round);
        if (round > vector[0]) /* the first of this process that hears of it */
            disk_sync(&own);
        vector[0] = round;
        say(p, topic, bytes);
    } else if (message->payloadlen == 1) /* the end; nothing retained is left behind */
        ended += mosquitto_publish(handle, NULL, topic, 0, NULL, 0, true) == 0;
}

static void on_connect(struct mosquitto *handle, void *context, int code)
{
    (void)context;
    if (code)
        die("connect", mosquitto_connack_string(code));
    mosquitto_subscribe(handle, NULL, ((peer *)context)->number ? DOWN : "hfsad/bench/edge1/+/up", 0);
}

static void on_subscribe(struct mosquitto *handle, void *context, int id, int count, const int *granted)
{
    peer *p = context;
    (void)handle;
    (void)id;
    (void)count;
    (void)granted;
    p->listens = true;
}

static void join(peer *p, size_t number)
{
    *p = (peer){.number = number};
    p->handle = mosquitto_new(NULL, true, p);
    if (!p->handle)
        die("connect", "no memory");
    if (set.keys) {
        char ca[1000], certificate[1000], key[1000];
        snprintf(ca, sizeof ca, "%s/ca.crt", set.keys);
        snprintf(certificate, sizeof certificate, "%s/nodes/edge1.crt", set.keys);
        snprintf(key, sizeof key, "%s/nodes/edge1.key", set.keys);
        if (mosquitto_tls_set(p->handle, ca, NULL, certificate, key, NULL))
            die("keys", set.keys);
    }
    mosquitto_int_option(p->handle, MOSQ_OPT_TCP_NODELAY, 1);
    mosquitto_connect_callback_set(p->handle, on_connect);
    mosquitto_subscribe_callback_set(p->handle, on_subscribe);
    mosquitto_message_callback_set(p->handle, on_message);
    const int code = mosquitto_connect(p->handle, "localhost", set.port, 60);
    if (code)
        die("connect", mosquitto_strerror(code));
}

/* Everything that can be moved now, waiting up to a second for it. */
static void turn(peer *peers, size_t count)
{
    static struct pollfd polls[LOAD_CLIENTS_MOST];
    for (size_t i = 0; i < count; i++)
        polls[i] = (struct pollfd){.fd = mosquitto_socket(peers[i].handle),
                                   .events = (short)(POLLIN | (mosquitto_want_write(peers[i].handle) ? POLLOUT : 0))};
    if (poll(polls, count, 1000) < 0 && errno != EINTR)
        die("poll", strerror(errno));
    for (size_t i = 0; i < count; i++) {
        int code = 0;
        const SSL *ssl = mosquitto_ssl_get(peers[i].handle);
        const bool shaking = ssl && !SSL_is_init_finished(ssl);
        if (polls[i].revents & ~POLLOUT || (polls[i].revents && shaking))
            for (int n = 0; n < READS && !code; n++) {
                errno = 0;
                code = mosquitto_loop_read(peers[i].handle, 1);
                if (errno == EAGAIN || shaking)
                    break;
            }
        if (!code && mosquitto_want_write(peers[i].handle))
            code = mosquitto_loop_write(peers[i].handle, 1);
        if (code)
            die("connection", mosquitto_strerror(code));
        mosquitto_loop_misc(peers[i].handle);
    }
}

static void wait_for_all(peer *peers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        while (!peers[i].listens)
            turn(peers, count);
}

/* Clients first … first + count - 1, until the edge says that it is over. A byte to `ready` when they listen. */
static void be_clients(size_t first, size_t count, int ready)
{
    static peer peers[LOAD_CLIENTS_MOST];
    disk_open(&own, set.sync);
    for (size_t i = 0; i < count; i++)
        join(&peers[i], first + i);
    wait_for_all(peers, count);
    if (write(ready, "", 1) != 1)
        die("pipe", strerror(errno));
    bool waits = true;
    while (ended < count || waits) {
        turn(peers, count);
        waits = false;
        for (size_t i = 0; i < count; i++)
            waits = waits || mosquitto_want_write(peers[i].handle);
    }
}

static void be_edge(void)
{
    static peer edge;
    disk_open(&own, set.sync_edge);
    join(&edge, 0);
    wait_for_all(&edge, 1);
    const size_t bytes = set.features * sizeof(double), warm = 2;
    double start = 0;
    while (rounds < warm + ROUNDS_LEAST || now() - start < set.seconds) {
        if (rounds == warm)
            start = now();
        arrived = 0;
        vector[0]++;
        disk_sync(&own);
        say(&edge, DOWN, bytes);
        while (arrived < set.clients)
            turn(&edge, 1);
        rounds++;
    }
    char name[100];
    snprintf(name, sizeof name, "pingpong%s%s%s_%zux%zu_processes%zu", set.keys ? "_tls" : "",
             set.retain ? "_retained" : "", set.sync || set.sync_edge ? "_synced" : "", set.clients, set.features,
             set.processes);
    printf("%-44s %12.5g  rounds per second, bare, QoS 0\n", name, (double)(rounds - warm) / (now() - start));
    fflush(stdout);
    mosquitto_publish(edge.handle, NULL, DOWN, 1, "", 0, false);
    mosquitto_publish(edge.handle, NULL, DOWN, 0, NULL, 0, true);
    while (mosquitto_want_write(edge.handle))
        turn(&edge, 1);
}

int main(int argc, char **argv)
{
    int ready[2];
    set = load_read(argc, argv);
    vector = calloc(set.features, sizeof *vector);
    if (!vector || pipe(ready) != 0)
        die("set-up", strerror(errno));
    signal(SIGPIPE, SIG_IGN);
    const pid_t parent = getpid();
    for (size_t i = 0; i < set.processes; i++) {
        const size_t first = set.clients * i / set.processes, next = set.clients * (i + 1) / set.processes;
        const pid_t child = fork();
        if (child < 0)
            die("fork", strerror(errno));
        if (child == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (getppid() != parent)
                return 1;
            mosquitto_lib_init();
            be_clients(first + 1, next - first, ready[1]);
            return 0;
        }
    }
    close(ready[1]);
    for (size_t i = 0; i < set.processes; i++) {
        char byte;
        if (read(ready[0], &byte, 1) != 1)
            die("clients", "they ended before they listened");
    }
    mosquitto_lib_init();
    be_edge();
    int status = 0;
    for (size_t i = 0; i < set.processes; i++) {
        int one;
        if (wait(&one) > 0 && one)
            status = 1;
    }
    return status;
}
