/* The folder of a broker: what it needs for one federation and nothing else, with limits from the tree; see keys.h. */
#include "net/keys.h"

#include "base/error.h"
#include "net/keys_cluster.h"
#include "net/keys_file.h"
#include "net/seal.h"
#include "net/topic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Frames of a topic: the retained one, one on its way in, and one on its way out. */
enum { FRAMES_OF_TOPIC = 3 };
/* Connections: a node has one or two, and a new connection may arrive before the broker has noticed the end of the old
 * one. */
enum { CONNECTIONS_OF_NODE = 4, CONNECTIONS_MORE = 16 };
/* The broker itself, and a TLS connection of a node. */
static const uint64_t memory_base = 64 << 20, memory_of_connection = 128 << 10;

static void put_topic(FILE *f, const char *way, const char *run, const char *path, topic_kind topic)
{
    fprintf(f, "topic %s hfsad/%s/%s/%s\n", way, run, path, topic_name(topic));
}

static bool is_child(const char *path, const char *parent)
{
    const char *last = strrchr(path, '/');
    const size_t length = last ? (size_t)(last - path) : 0;
    if (!last)
        return strcmp(parent, "cloud") == 0 && strcmp(path, parent) != 0;
    return strncmp(path, parent, length) == 0 && !parent[length];
}

/* Its own topics, those of its parent that are for it, and those of its children that are for it: each by its name. */
static void put_node(FILE *f, const keys_broker *b, size_t number)
{
    char parent[TOPIC_MAX];
    const char *path = b->nodes[number];
    const bool below = topic_parent(path, parent);
    bool above = false;
    for (size_t i = 0; i < b->n_nodes && !above; i++)
        above = is_child(b->nodes[i], path);
    fprintf(f, "\nuser %s\n", path);
    put_topic(f, "readwrite", b->run, path, TOPIC_STATUS);
    put_topic(f, "write", b->run, path, TOPIC_HELLO);
    for (int i = 0; i < TOPICS; i++)
        if (i != TOPIC_STATUS && i != TOPIC_HELLO && (topic_to_children((topic_kind)i) ? above : below))
            put_topic(f, "write", b->run, path, (topic_kind)i);
    for (int i = 0; i < TOPICS && below; i++)
        if (i == TOPIC_STATUS || i == TOPIC_HELLO || topic_to_children((topic_kind)i))
            put_topic(f, "read", b->run, parent, (topic_kind)i);
    for (size_t c = 0; c < b->n_nodes && above; c++)
        for (int i = 0; i < TOPICS && is_child(b->nodes[c], path); i++)
            if (!topic_to_children((topic_kind)i))
                put_topic(f, "read", b->run, b->nodes[c], (topic_kind)i);
}

static void put_acl(FILE *f, const keys_broker *b)
{
    fprintf(f, "# Written by hfsad keys broker: every topic that a node may write or read. mosquitto rereads it on "
               "SIGHUP.\n\n# The observer reads the status of all nodes.\nuser " KEYS_OBSERVER "\n");
    for (size_t i = 0; i < b->n_nodes; i++)
        put_topic(f, "read", b->run, b->nodes[i], TOPIC_STATUS);
    for (size_t i = 0; i < b->n_nodes; i++)
        put_node(f, b, i);
}

/* The line of the listener is the one that init wrote; everything else follows from the tree. */
static bool put_configuration(FILE *f, const keys_broker *b, const char *model)
{
    const char *line = strstr(model, "\nlistener ");
    const size_t packet = message_bytes_most(b->numbers) + KEYS_AROUND_FRAME + SEAL_TAG * b->n_nodes;
    const uint64_t connections = CONNECTIONS_OF_NODE * (uint64_t)b->n_nodes + CONNECTIONS_MORE,
                   frames = (uint64_t)b->n_nodes * TOPICS * FRAMES_OF_TOPIC,
                   memory = memory_base + connections * memory_of_connection + frames * packet;
    if (!line)
        return false;
    line++;
    fprintf(f,
            "# Written by hfsad keys broker for %zu nodes and messages of at most %zu numbers. Start: mosquitto -c "
            "THIS_FILE\n"
            "per_listener_settings false\n%.*s\n"
            "cafile %s/ca.crt\ncertfile %s/broker.crt\nkeyfile %s/broker.key\ncrlfile %s/revoked.crl\nacl_file %s/acl\n"
            "tls_version tlsv1.2\nrequire_certificate true\nuse_identity_as_username true\nallow_anonymous false\n"
            "# Nodes retransmit lost messages, so the broker stores nothing on disk.\n"
            "persistence false\nset_tcp_nodelay true\n"
            "# Limits: connections, packets that wait for a slow reader, the largest frame, and all memory together.\n"
            "max_connections %llu\nmax_queued_messages %llu\nmax_packet_size %zu\nmemory_limit %llu\n",
            b->n_nodes, b->numbers, (int)strcspn(line, "\n"), line, b->place, b->place, b->place, b->place, b->place,
            (unsigned long long)connections, (unsigned long long)frames, packet, (unsigned long long)memory);
    return true;
}

static hfsad_status add_text(key_files *files, const keys_broker *b, const char *name, bool configuration,
                             const char *model, hfsad_error *err)
{
    char *text = NULL;
    size_t length = 0;
    FILE *f = open_memstream(&text, &length);
    bool good = f != NULL;
    if (f && configuration)
        good = put_configuration(f, b, model);
    else if (f)
        put_acl(f, b);
    if (f)
        good = fclose(f) == 0 && good;
    if (good)
        return key_files_add(files, b->folder, name, text, length, true, true, err);
    free(text);
    return f ? error_set(err, HFSAD_ERROR_INPUT, "%.300s/mosquitto.conf has no line `listener`: run hfsad keys init",
                         b->keys)
             : error_memory(err, length, name);
}

/* Of mosquitto's access list: %u and %c are replaced in patterns only, of which there are none; + and # are no part of
 * names. A name with an outer blank would be cut. */
static hfsad_status check_names(const keys_broker *b, hfsad_error *err)
{
    for (size_t i = 0; i < b->n_nodes; i++) {
        const char *path = b->nodes[i];
        if (path[0] == ' ' || path[strlen(path) - 1] == ' ' || strlen(path) > KEYS_PATH_MAX)
            return error_set(err, HFSAD_ERROR_INPUT,
                             "'%.100s' cannot have a certificate: use at most %d bytes without outer spaces", path,
                             KEYS_PATH_MAX);
    }
    return HFSAD_OK;
}

static hfsad_status add_mosquitto(key_files *files, const keys_broker *b, hfsad_error *err)
{
    char *model = key_file_read(b->keys, "mosquitto.conf", err);
    hfsad_status status = model ? add_text(files, b, "acl", false, NULL, err) : HFSAD_ERROR_INPUT;
    if (!status)
        status = add_text(files, b, "mosquitto.conf", true, model, err);
    free(model);
    return status;
}

static hfsad_status add_cluster(key_files *files, const keys_broker *b, hfsad_error *err)
{
    char *text = key_file_read(b->keys, KEYS_CLUSTER, err),
         *key = text ? key_file_read(b->keys, "broker.key", err) : NULL;
    const hfsad_status status = key ? keys_cluster_make(files, b, text, key, err) : HFSAD_ERROR_INPUT;
    if (key)
        explicit_bzero(key, strlen(key));
    free(key);
    free(text);
    return status;
}

bool keys_clustered(const char *keys)
{
    char name[KEYS_FILE_MAX];
    snprintf(name, sizeof name, "%s/" KEYS_CLUSTER, keys);
    return access(name, F_OK) == 0;
}

const char *keys_cluster_name(const char *keys)
{
    hfsad_error ignored;
    char *text = keys_clustered(keys) ? key_file_read(keys, KEYS_CLUSTER, &ignored) : NULL;
    const cluster_kind *kind = text ? keys_cluster_kind(text) : NULL;
    free(text);
    return kind ? kind->name : NULL;
}

static hfsad_status make_at(const keys_broker *b, hfsad_error *err)
{
    static const char *const copied[] = {"ca.crt", "broker.crt", "broker.key", "revoked.crl"};
    key_files files = {0};
    hfsad_status status = HFSAD_OK;
    for (size_t i = 0; i < sizeof copied / sizeof *copied && !status; i++) {
        char *text = key_file_read(b->keys, copied[i], err);
        status =
            text ? key_files_add(&files, b->folder, copied[i], text, strlen(text), true, true, err) : HFSAD_ERROR_INPUT;
    }
    if (!status)
        status = keys_clustered(b->keys) ? add_cluster(&files, b, err) : add_mosquitto(&files, b, err);
    if (!status)
        status = key_files_write(&files, err);
    key_files_free(&files);
    return status;
}

hfsad_status keys_broker_make(const keys_broker *b, hfsad_error *err)
{
    keys_broker at = *b;
    hfsad_status status = check_names(b, err);
    if (!status)
        status = key_folder_make(b->folder, "", err);
    char *here = status || b->place ? NULL : realpath(b->folder, NULL);
    if (here)
        at.place = here;
    if (!status)
        status = at.place ? make_at(&at, err) : error_memory(err, 0, "a file name");
    free(here);
    return status;
}
