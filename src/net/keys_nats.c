/*
 * The files of a cluster of nats-server. What differs from mosquitto:
 *
 * - A topic a/b/c is a subject a.b.c, and its access list holds subjects. A subscription with a wildcard needs a
 *   wildcard in the list; the topics that it covers are written by the children of that node alone.
 * - A user is the subject of a certificate, CN=edge1/client7 (verify_and_map).
 * - The nodes of the cluster find each other at the port after that of the clients, by TLS with the broker's
 *   certificate, and by a password, because every node of the federation has a certificate of the same authority.
 * - It reads no list of revoked certificates: a node without a certificate in the folder of keys is left out instead.
 */
#include "net/keys_cluster.h"

#include <string.h>

typedef struct {
    FILE *f;
    const char *run;
    bool first;
} list;

static void put_subject(FILE *f, const char *run, const char *path, const char *level, topic_kind topic, bool first)
{
    fprintf(f, "%s\"hfsad.%s.", first ? "" : ", ", run);
    for (const char *p = path; *p; p++)
        putc(*p == '/' ? '.' : *p, f);
    fprintf(f, "%s%s.%s\"", *path && *level ? "." : "", level, topic_name(topic));
}

static void put_one(void *context, const char *path, bool children, topic_kind topic)
{
    list *l = context;
    put_subject(l->f, l->run, path, children ? "*" : "", topic, l->first);
    l->first = false;
}

static void put_node(FILE *f, const keys_broker *b, const char *path)
{
    fprintf(f, "  {user: \"CN=%s\", permissions: {publish: {allow: [", path);
    cluster_writes(b, path, put_one, &(list){f, b->run, true});
    fprintf(f, "]}, subscribe: {allow: [");
    cluster_reads(b, path, put_one, &(list){f, b->run, true});
    fprintf(f, "]}}}\n");
}

static void put_users(FILE *f, const cluster *c, size_t node)
{
    (void)node;
    char levels[2 * HFSAD_TIERS_MAX + 1] = "*";
    fprintf(f, "# Written by hfsad keys broker. A running nats-server rereads it on SIGHUP.\nusers: [\n");
    fprintf(f, "  {user: \"CN=" KEYS_OBSERVER "\", permissions: {publish: {deny: [\">\"]}, subscribe: {allow: [");
    for (int i = 0; i < HFSAD_TIERS_MAX; i++, strcat(levels, i < HFSAD_TIERS_MAX ? ".*" : ""))
        put_subject(f, c->b->run, "", levels, TOPIC_STATUS, i == 0);
    fprintf(f, "]}}}\n");
    for (size_t i = 0; i < c->b->n_nodes; i++)
        if (cluster_lets_in(c->b, c->b->nodes[i]))
            put_node(f, c->b, c->b->nodes[i]);
    fprintf(f, "]\n");
}

static void put_tls(FILE *f, const keys_broker *b, const char *more)
{
    fprintf(f, "tls {cert_file: \"%s/broker.crt\", key_file: \"%s/broker.key\", ca_file: \"%s/ca.crt\"%s}", b->place,
            b->place, b->place, more);
}

static void put_configuration(FILE *f, const cluster *c, size_t number)
{
    const cluster_place *at = &c->nodes[number];
    const char *address = cluster_is_here(at) ? at->host : "0.0.0.0";
    fprintf(f,
            "# Written by hfsad keys broker, for node %zu of %zu. Start: nats-server -c THIS_FILE\n"
            "server_name: hfsad-%zu\n"
            "# Nodes of the federation come by MQTT. This listener cannot be left out; it asks for the same "
            "certificates.\n"
            "listen: \"127.0.0.1:-1\"\n"
            "max_payload: %zu\nmax_pending: %zu\nmax_connections: %zu\n"
            "jetstream {store_dir: \"%s/store-%zu\"}\n",
            number + 1, c->count, number + 1, c->payload, 64 * c->payload, c->connections, c->b->place, number + 1);
    put_tls(f, c->b, ", verify_and_map: true");
    fprintf(f, "\nmqtt {\n  listen: \"%s:%d\"\n  ", address, at->port);
    put_tls(f, c->b, ", verify_and_map: true");
    fprintf(f, "\n}\n");
    if (c->count > 1) {
        fprintf(f, "cluster {\n  name: hfsad\n  listen: \"%s:%d\"\n  ", address, at->port + 1);
        put_tls(f, c->b, "");
        fprintf(f, "\n  authorization {user: hfsad, password: \"%s\"}\n  routes: [\n", c->password);
        for (size_t i = 0; i < c->count; i++) {
            const bool six = strchr(c->nodes[i].host, ':') != NULL;
            fprintf(f, "    \"nats-route://hfsad:%s@%s%s%s:%d\"\n", c->password, six ? "[" : "", c->nodes[i].host,
                    six ? "]" : "", c->nodes[i].port + 1);
        }
        fprintf(f, "  ]\n}\n");
    }
    fprintf(f, "accounts {hfsad {jetstream: enabled, include ./users.conf}}\n");
}

static const cluster_file files[] = {{"nats-%zu.conf", put_configuration}, {"users.conf", put_users}, {NULL, NULL}};

const cluster_kind cluster_nats = {.name = "nats", .title = "NATS", .never = "\"\\\n\r", .files = files};
