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

#include "base/error.h"
#include "net/seal.h"
#include "net/topic.h"

#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* On one machine, without a host: that many nodes, their ports so far apart. */
enum { NODES_HERE = 3, PORTS_APART = 10, NODES_MOST = 32 };
enum { CONNECTIONS_OF_NODE = 4, CONNECTIONS_MORE = 64, PAYLOAD_LEAST = 64 << 10 };

typedef struct {
    char host[254];
    int port;
} place;

typedef struct {
    place nodes[NODES_MOST];
    size_t count;
} places;

hfsad_status keys_cluster_kind(const char *kind, bool *clustered, hfsad_error *err)
{
    *clustered = kind && strcmp(kind, "nats") == 0;
    if (!kind || *clustered || !strcmp(kind, "mosquitto"))
        return HFSAD_OK;
    return error_set(err, HFSAD_ERROR_INPUT, "unknown broker '%.60s'; known: mosquitto, nats", kind);
}

/* ---- init ---- */

hfsad_status keys_cluster_add(key_files *files, const keys_authority *a, hfsad_error *err)
{
    char *text = NULL;
    size_t length = 0;
    const size_t count = a->n_hosts ? a->n_hosts : NODES_HERE;
    if (count == 2 || count > NODES_MOST)
        return error_set(err, HFSAD_ERROR_INPUT,
                         "a cluster of %zu nodes; give 1 host, or 3 to %d: two cannot agree once one is gone", count,
                         NODES_MOST);
    if (a->port + PORTS_APART * NODES_HERE > 65535)
        return error_set(err, HFSAD_ERROR_INPUT, "port %d: a cluster needs the ports after it, too", a->port);
    FILE *f = open_memstream(&text, &length);
    if (!f)
        return error_memory(err, 0, KEYS_CLUSTER);
    fprintf(f, "nats\n");
    for (size_t i = 0; i < count; i++)
        fprintf(f, "%s %d\n", a->n_hosts ? a->hosts[i] : "127.0.0.1",
                a->n_hosts ? a->port : a->port + PORTS_APART * (int)i);
    if (fclose(f) == 0)
        return key_files_add(files, a->dir, KEYS_CLUSTER, text, length, false, a->force, err);
    free(text);
    return error_memory(err, length, KEYS_CLUSTER);
}

/* ---- broker ---- */

static hfsad_status read_places(places *p, const char *text, const char *dir, hfsad_error *err)
{
    const char *line = strchr(text, '\n');
    p->count = 0;
    while (line && line[1] && p->count < NODES_MOST) {
        place *at = &p->nodes[p->count];
        if (sscanf(line + 1, "%253s %d", at->host, &at->port) != 2)
            break;
        p->count++;
        line = strchr(line + 1, '\n');
    }
    if (strncmp(text, "nats\n", 5) == 0 && p->count && line && !line[1])
        return HFSAD_OK;
    return error_set(err, HFSAD_ERROR_INPUT, "%.300s/" KEYS_CLUSTER " is not as `hfsad keys init` writes it", dir);
}

/* Characters that mean nothing in a subject, in the name of a certificate and in the configuration. */
static bool is_plain(const char *name)
{
    for (const char *p = name; *p; p++)
        if (!((*p & 0x80) || (*p >= '0' && *p <= '9') || (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
              strchr("/_-", *p)))
            return false;
    return true;
}

static hfsad_status check_names(const keys_broker *b, hfsad_error *err)
{
    const char *wrong = is_plain(b->run) ? NULL : b->run;
    for (size_t i = 0; i < b->n_nodes && !wrong; i++)
        wrong = is_plain(b->nodes[i]) ? NULL : b->nodes[i];
    if (!wrong)
        return HFSAD_OK;
    return error_set(err, HFSAD_ERROR_INPUT,
                     "'%.100s' cannot be a name at a NATS broker: use letters, digits, - and _ (no dots, no spaces)",
                     wrong);
}

static void put_subject(FILE *f, const char *run, const char *path, const char *level, topic_kind topic, bool *first)
{
    fprintf(f, "%s\"hfsad.%s.", *first ? "" : ", ", run);
    for (const char *p = path; *p; p++)
        putc(*p == '/' ? '.' : *p, f);
    fprintf(f, "%s%s%s\"", level, *path || *level ? "." : "", topic_name(topic));
    *first = false;
}

/* What `path` may write. */
static void put_writes(FILE *f, const keys_broker *b, const char *path, bool above, bool below)
{
    bool first = true;
    for (int i = 0; i < TOPICS; i++)
        if (i == TOPIC_STATUS || i == TOPIC_HELLO || (topic_to_children((topic_kind)i) ? above : below))
            put_subject(f, b->run, path, "", (topic_kind)i, &first);
}

/* What it may read: its own status, its parent, its children. The children of the cloud have no path before their
 * name. */
static void put_reads(FILE *f, const keys_broker *b, const char *path, const char *parent, bool above)
{
    bool first = true;
    const bool cloud = !parent;
    put_subject(f, b->run, path, "", TOPIC_STATUS, &first);
    for (int i = 0; i < TOPICS && parent; i++)
        if (i == TOPIC_STATUS || i == TOPIC_HELLO || topic_to_children((topic_kind)i))
            put_subject(f, b->run, parent, "", (topic_kind)i, &first);
    for (int i = 0; i < TOPICS && above; i++)
        if (!topic_to_children((topic_kind)i))
            put_subject(f, b->run, cloud ? "" : path, cloud ? "*" : ".*", (topic_kind)i, &first);
}

static void put_node(FILE *f, const keys_broker *b, size_t number)
{
    char parent[TOPIC_MAX], certificate[KEYS_FILE_MAX], key[KEYS_FILE_MAX];
    const char *path = b->nodes[number];
    const bool below = topic_parent(path, parent);
    bool above = !below;
    const size_t length = strlen(path);
    if (!keys_node_files(b->keys, path, certificate, key) || access(certificate, F_OK) != 0)
        return; /* revoked, or not issued yet */
    for (size_t i = 0; i < b->n_nodes && !above; i++)
        above = strncmp(b->nodes[i], path, length) == 0 && b->nodes[i][length] == '/';
    fprintf(f, "  {user: \"CN=%s\", permissions: {publish: {allow: [", path);
    put_writes(f, b, path, above, below);
    fprintf(f, "]}, subscribe: {allow: [");
    put_reads(f, b, path, below ? parent : NULL, above);
    fprintf(f, "]}}}\n");
}

static void put_users(FILE *f, const keys_broker *b)
{
    char levels[2 * HFSAD_TIERS_MAX + 1] = "*";
    bool first = true;
    fprintf(f, "# Written by hfsad keys broker. A running nats-server rereads it on SIGHUP.\nusers: [\n");
    fprintf(f, "  {user: \"CN=" KEYS_OBSERVER "\", permissions: {publish: {deny: [\">\"]}, subscribe: {allow: [");
    for (int i = 0; i < HFSAD_TIERS_MAX; i++, strcat(levels, i < HFSAD_TIERS_MAX ? ".*" : ""))
        put_subject(f, b->run, "", levels, TOPIC_STATUS, &first);
    fprintf(f, "]}}}\n");
    for (size_t i = 0; i < b->n_nodes; i++)
        put_node(f, b, i);
    fprintf(f, "]\n");
}

/* The same for all nodes of the cluster, and known to holders of broker.key alone. */
static void make_password(char password[2 * SHA256_DIGEST_LENGTH + 1], const char *key)
{
    static const char use[] = "hfsad cluster";
    unsigned char digest[SHA256_DIGEST_LENGTH];
    seal_key by;
    seal_key_make(&by, key, strlen(key));
    seal_mac(&by, use, sizeof use, digest);
    for (size_t i = 0; i < sizeof digest; i++)
        sprintf(password + 2 * i, "%02x", digest[i]);
}

static void put_tls(FILE *f, const keys_broker *b, const char *more)
{
    fprintf(f, "tls {cert_file: \"%s/broker.crt\", key_file: \"%s/broker.key\", ca_file: \"%s/ca.crt\"%s}", b->place,
            b->place, b->place, more);
}

static void put_configuration(FILE *f, const keys_broker *b, const places *p, size_t number, const char *key)
{
    const place *at = &p->nodes[number];
    char password[2 * SHA256_DIGEST_LENGTH + 1];
    const bool here = strcmp(at->host, "127.0.0.1") == 0;
    const size_t frame = message_bytes_most(b->numbers) + KEYS_AROUND_FRAME + SEAL_TAG * b->n_nodes,
                 payload = frame > PAYLOAD_LEAST ? frame : PAYLOAD_LEAST;
    make_password(password, key);
    fprintf(f,
            "# Written by hfsad keys broker, for node %zu of %zu. Start: nats-server -c THIS_FILE\n"
            "server_name: hfsad-%zu\n"
            "# Nodes of the federation come by MQTT. This listener cannot be left out; it asks for the same "
            "certificates.\n"
            "listen: \"127.0.0.1:-1\"\n"
            "max_payload: %zu\nmax_pending: %zu\nmax_connections: %zu\n"
            "jetstream {store_dir: \"%s/store-%zu\"}\n",
            number + 1, p->count, number + 1, payload, 64 * payload,
            CONNECTIONS_OF_NODE * b->n_nodes + CONNECTIONS_MORE, b->place, number + 1);
    put_tls(f, b, ", verify_and_map: true");
    fprintf(f, "\nmqtt {\n  listen: \"%s:%d\"\n  ", here ? at->host : "0.0.0.0", at->port);
    put_tls(f, b, ", verify_and_map: true");
    fprintf(f, "\n}\n");
    if (p->count > 1) {
        fprintf(f, "cluster {\n  name: hfsad\n  listen: \"%s:%d\"\n  ", here ? at->host : "0.0.0.0", at->port + 1);
        put_tls(f, b, "");
        fprintf(f, "\n  authorization {user: hfsad, password: \"%s\"}\n  routes: [\n", password);
        for (size_t i = 0; i < p->count; i++)
            fprintf(f, "    \"nats-route://hfsad:%s@%s%s%s:%d\"\n", password, strchr(p->nodes[i].host, ':') ? "[" : "",
                    p->nodes[i].host, strchr(p->nodes[i].host, ':') ? "]" : "", p->nodes[i].port + 1);
        fprintf(f, "  ]\n}\n");
    }
    fprintf(f, "accounts {hfsad {jetstream: enabled, include ./users.conf}}\n");
}

hfsad_status keys_cluster_make(key_files *files, const keys_broker *b, const char *text, const char *key,
                               hfsad_error *err)
{
    places p;
    hfsad_status status = check_names(b, err);
    if (!status)
        status = read_places(&p, text, b->keys, err);
    for (size_t i = 0; !status && i <= p.count; i++) {
        char *made = NULL, name[40] = "users.conf";
        size_t length = 0;
        FILE *f = open_memstream(&made, &length);
        if (!f)
            return error_memory(err, 0, name);
        if (i < p.count) {
            snprintf(name, sizeof name, "nats-%zu.conf", i + 1);
            put_configuration(f, b, &p, i, key);
        } else {
            put_users(f, b);
        }
        if (fclose(f) != 0) {
            free(made);
            made = NULL;
        }
        status = key_files_add(files, b->folder, name, made, length, true, true, err);
    }
    return status;
}
