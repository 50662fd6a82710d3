/* The files of a clustered broker, of NATS or RabbitMQ; see keys.h. */
#ifndef HFSAD_NET_KEYS_CLUSTER_H
#define HFSAD_NET_KEYS_CLUSTER_H

#include "net/keys.h"
#include "net/keys_file.h"
#include "net/topic.h"

#include <stdio.h>

/* In the folder of keys, of a cluster alone: its kind, then one line `HOST PORT` for each of its nodes. */
#define KEYS_CLUSTER "cluster"

/* Whether `kind` is that of a clustered broker; NULL and "mosquitto" are not. An error: unknown. */
hfsad_status keys_cluster_known(const char *kind, bool *clustered, hfsad_error *err);
/* init: the file KEYS_CLUSTER. */
hfsad_status keys_cluster_add(key_files *files, const keys_authority *a, hfsad_error *err);
/* broker: a configuration for each node, and the access list; text is that of KEYS_CLUSTER, key that of broker.key, of
 * which the cluster's password is made. */
hfsad_status keys_cluster_make(key_files *files, const keys_broker *b, const char *text, const char *key,
                               hfsad_error *err);

/* ---- for the kinds ---- */

enum { CLUSTER_NODES_MOST = 32, CLUSTER_PASSWORD_SIZE = 65, CLUSTER_CONNECTIONS_OF_NODE = 4 };

typedef struct {
    char host[254];
    int port;
} cluster_place;

typedef struct {
    const keys_broker *b;
    cluster_place nodes[CLUSTER_NODES_MOST];
    size_t count;
    char password[CLUSTER_PASSWORD_SIZE]; /* the same for all nodes, known to holders of broker.key alone */
    size_t payload;                       /* bytes of the longest message */
    size_t connections;                   /* of all nodes of the federation */
} cluster;

typedef struct {
    const char *name; /* with %zu: one file for each node of the cluster */
    void (*put)(FILE *f, const cluster *c, size_t node);
} cluster_file;

typedef struct {
    const char *name, *title; /* in the file KEYS_CLUSTER, and in messages */
    const char *never;        /* characters that cannot be in the path of the broker's folder */
    hfsad_status (*check)(const keys_authority *a, hfsad_error *err); /* init; NULL: nothing more to check */
    const cluster_file *files;                                        /* up to one without a name */
} cluster_kind;

extern const cluster_kind cluster_nats, cluster_rabbitmq;
/* By the text of KEYS_CLUSTER; NULL: unknown. */
const cluster_kind *keys_cluster_kind(const char *text);

/* Whether the node is on this machine, as without --host. */
bool cluster_is_here(const cluster_place *p);

/* put() for everything that a node may read: its own status, its parent's topics, its children's; and for everything
 * that it may write. children: the topic of each child of `path`, whose name a wildcard replaces; the children of the
 * cloud have no path before their name, so `path` is "". */
typedef void cluster_put(void *context, const char *path, bool children, topic_kind topic);
void cluster_reads(const keys_broker *b, const char *path, cluster_put *put, void *context);
void cluster_writes(const keys_broker *b, const char *path, cluster_put *put, void *context);
/* Whether it has a certificate: neither revoked nor still to be issued. */
bool cluster_lets_in(const keys_broker *b, const char *path);

#endif
