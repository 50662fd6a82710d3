/* What the files of all clustered brokers have in common: their nodes, and which node may write and read which topics.
 */
#include "net/keys_cluster.h"

#include "base/error.h"
#include "net/seal.h"

#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* On one machine, without a host: that many nodes, their ports so far apart. */
enum { NODES_HERE = 3, PORTS_APART = 10 };
enum { CONNECTIONS_MORE = 64, PAYLOAD_LEAST = 64 << 10 };

static const cluster_kind *const kinds[] = {&cluster_nats, &cluster_rabbitmq};
enum { KINDS_OF_CLUSTER = sizeof kinds / sizeof *kinds };

static const cluster_kind *find_kind(const char *kind, size_t length)
{
    for (size_t i = 0; i < KINDS_OF_CLUSTER; i++)
        if (strlen(kinds[i]->name) == length && strncmp(kinds[i]->name, kind, length) == 0)
            return kinds[i];
    return NULL;
}

hfsad_status keys_cluster_known(const char *kind, bool *clustered, hfsad_error *err)
{
    *clustered = kind && find_kind(kind, strlen(kind));
    if (!kind || *clustered || !strcmp(kind, "mosquitto"))
        return HFSAD_OK;
    return error_set(err, HFSAD_ERROR_INPUT, "unknown broker '%.60s'; known: mosquitto, nats, rabbitmq", kind);
}

/* ---- init ---- */

static hfsad_status check(const keys_authority *a, size_t count, hfsad_error *err)
{
    const cluster_kind *kind = find_kind(a->kind, strlen(a->kind));
    if (count == 2 || count > CLUSTER_NODES_MOST)
        return error_set(err, HFSAD_ERROR_INPUT,
                         "a cluster of %zu nodes; give 1 host, or 3 to %d: two cannot agree once one is gone", count,
                         CLUSTER_NODES_MOST);
    if (a->port + PORTS_APART * NODES_HERE > 65535)
        return error_set(err, HFSAD_ERROR_INPUT, "port %d: a cluster needs the ports after it, too", a->port);
    return kind->check ? kind->check(a, err) : HFSAD_OK;
}

hfsad_status keys_cluster_add(key_files *files, const keys_authority *a, hfsad_error *err)
{
    char *text = NULL;
    size_t length = 0;
    const size_t count = a->n_hosts ? a->n_hosts : NODES_HERE;
    const hfsad_status status = check(a, count, err);
    FILE *f = status ? NULL : open_memstream(&text, &length);
    if (!f)
        return status ? status : error_memory(err, 0, KEYS_CLUSTER);
    fprintf(f, "%s\n", a->kind);
    for (size_t i = 0; i < count; i++)
        fprintf(f, "%s %d\n", a->n_hosts ? a->hosts[i] : "127.0.0.1",
                a->n_hosts ? a->port : a->port + PORTS_APART * (int)i);
    if (fclose(f) == 0)
        return key_files_add(files, a->dir, KEYS_CLUSTER, text, length, false, a->force, err);
    free(text);
    return error_memory(err, length, KEYS_CLUSTER);
}

/* ---- broker ---- */

const cluster_kind *keys_cluster_kind(const char *text)
{
    return find_kind(text, strcspn(text, "\n"));
}

static const cluster_kind *read_places(cluster *c, const char *text)
{
    const char *line = strchr(text, '\n');
    while (line && line[1] && c->count < CLUSTER_NODES_MOST) {
        cluster_place *at = &c->nodes[c->count];
        if (sscanf(line + 1, "%253s %d", at->host, &at->port) != 2)
            break;
        c->count++;
        line = strchr(line + 1, '\n');
    }
    return c->count && line && !line[1] ? keys_cluster_kind(text) : NULL;
}

/* Characters that mean nothing in a subject, in a regular expression, in the name of a certificate and in the
 * configurations. */
static bool is_plain(const char *name)
{
    for (const char *p = name; *p; p++)
        if (!((*p & 0x80) || (*p >= '0' && *p <= '9') || (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
              strchr("/_-", *p)))
            return false;
    return true;
}

static hfsad_status check_names(const keys_broker *b, const cluster_kind *kind, hfsad_error *err)
{
    const char *wrong = is_plain(b->run) ? NULL : b->run;
    for (size_t i = 0; i < b->n_nodes && !wrong; i++)
        wrong = is_plain(b->nodes[i]) ? NULL : b->nodes[i];
    if (wrong)
        return error_set(err, HFSAD_ERROR_INPUT,
                         "'%.100s' cannot be a name at a %s broker: use letters, digits, - and _ (no dots, no spaces)",
                         wrong, kind->title);
    if (strpbrk(b->place, kind->never))
        return error_set(err, HFSAD_ERROR_INPUT,
                         "%.300s: quotes, backslashes, # and spaces cannot be in the path of a %s broker's folder",
                         b->place, kind->title);
    return HFSAD_OK;
}

bool cluster_is_here(const cluster_place *p)
{
    return strcmp(p->host, "127.0.0.1") == 0;
}

static bool has_children(const keys_broker *b, const char *path)
{
    const size_t length = strlen(path);
    for (size_t i = 0; i < b->n_nodes; i++)
        if (strncmp(b->nodes[i], path, length) == 0 && b->nodes[i][length] == '/')
            return true;
    return false;
}

void cluster_writes(const keys_broker *b, const char *path, cluster_put *put, void *context)
{
    char parent[TOPIC_MAX];
    const bool below = topic_parent(path, parent), above = !below || has_children(b, path);
    for (int i = 0; i < TOPICS; i++)
        if (i == TOPIC_STATUS || i == TOPIC_HELLO || (topic_to_children((topic_kind)i) ? above : below))
            put(context, path, false, (topic_kind)i);
}

void cluster_reads(const keys_broker *b, const char *path, cluster_put *put, void *context)
{
    char parent[TOPIC_MAX];
    const bool below = topic_parent(path, parent), above = !below || has_children(b, path);
    put(context, path, false, TOPIC_STATUS);
    for (int i = 0; i < TOPICS && below; i++)
        if (i == TOPIC_STATUS || i == TOPIC_HELLO || topic_to_children((topic_kind)i))
            put(context, parent, false, (topic_kind)i);
    for (int i = 0; i < TOPICS && above; i++)
        if (!topic_to_children((topic_kind)i))
            put(context, below ? path : "", true, (topic_kind)i);
}

bool cluster_lets_in(const keys_broker *b, const char *path)
{
    char certificate[KEYS_FILE_MAX], key[KEYS_FILE_MAX];
    return keys_node_files(b->keys, path, certificate, key) && access(certificate, F_OK) == 0;
}

static void make_password(char password[CLUSTER_PASSWORD_SIZE], const char *key)
{
    static const char use[] = "hfsad cluster";
    unsigned char digest[SHA256_DIGEST_LENGTH];
    seal_key by;
    seal_key_make(&by, key, strlen(key));
    seal_mac(&by, use, sizeof use, digest);
    for (size_t i = 0; i < sizeof digest; i++)
        sprintf(password + 2 * i, "%02x", digest[i]);
}

static hfsad_status add_file(key_files *files, const cluster *c, const cluster_file *file, size_t node,
                             hfsad_error *err)
{
    char *made = NULL, name[40];
    size_t length = 0;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral" /* a name of the table above */
    snprintf(name, sizeof name, file->name, node + 1);
#pragma GCC diagnostic pop
    FILE *f = open_memstream(&made, &length);
    if (!f)
        return error_memory(err, 0, name);
    file->put(f, c, node);
    if (fclose(f) != 0) {
        free(made);
        return error_memory(err, length, name);
    }
    return key_files_add(files, c->b->folder, name, made, length, true, true, err);
}

hfsad_status keys_cluster_make(key_files *files, const keys_broker *b, const char *text, const char *key,
                               hfsad_error *err)
{
    const size_t frame = message_bytes_most(b->numbers) + KEYS_AROUND_FRAME + SEAL_TAG * b->n_nodes;
    cluster c = {.b = b,
                 .payload = frame > PAYLOAD_LEAST ? frame : PAYLOAD_LEAST,
                 .connections = CLUSTER_CONNECTIONS_OF_NODE * b->n_nodes + CONNECTIONS_MORE};
    const cluster_kind *kind = read_places(&c, text);
    if (!kind)
        return error_set(err, HFSAD_ERROR_INPUT, "%.300s/" KEYS_CLUSTER " is not as `hfsad keys init` writes it",
                         b->keys);
    make_password(c.password, key);
    hfsad_status status = check_names(b, kind, err);
    for (const cluster_file *file = kind->files; file->name && !status; file++) {
        const size_t count = strchr(file->name, '%') ? c.count : 1;
        for (size_t i = 0; i < count && !status; i++)
            status = add_file(files, &c, file, i, err);
    }
    return status;
}
