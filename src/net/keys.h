/*
 * Access control: a folder with an authority, the broker's certificate, one certificate per node whose common name is
 * the node's path, and a configuration of mosquitto that allows a node to write only below its own path and to read
 * only messages of its parent and its children.
 *
 *     DIR/ca.crt ca.key broker.crt broker.key mosquitto.conf acl revoked.crl nodes/<path>.crt nodes/<path>.key
 *
 * Folders and private keys are readable only by their owner. Keys are EC P-256.
 */
#ifndef HFSAD_NET_KEYS_H
#define HFSAD_NET_KEYS_H

#include "hfsad/hfsad.h"
#include "net/topic.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    KEYS_PATH_MAX = 64, /* bytes of a node's path: what a certificate's common name may have */
    KEYS_FILE_MAX = 4096,
    /* Of a packet besides its payload: MQTT's head and length, the topic with its length, MQTT 5's properties. */
    KEYS_AROUND_FRAME = 5 + 2 + TOPIC_MAX + 64,
};

/* In whose name the status of all nodes may be read, and nothing else. */
#define KEYS_OBSERVER "observer"

typedef struct {
    const char *dir;
    const char *const *hosts; /* names and addresses of the broker besides this machine's own loopback */
    size_t n_hosts;           /* 0: it listens on loopback only */
    int port;
    int days;         /* of the authority and the broker */
    bool force;       /* whatever is there is replaced; nodes need new certificates then */
    const char *kind; /* of the broker: NULL or "mosquitto"; "nats" or "rabbitmq": keys_broker_make writes for a
                         cluster, a node at each host, or three on this machine */
} keys_authority;

hfsad_status keys_init(const keys_authority *a, hfsad_error *err);

/* Certificates for these nodes, and their lines in the access list. All of them or none. force: replaced certificates
 * are revoked. *news: the broker's files have changed, and a running broker must reread them; may be NULL. */
hfsad_status keys_issue(const char *dir, const char *const *paths, size_t count, int days, bool force, bool *news,
                        hfsad_error *err);

/* The certificates of these nodes no longer count for a broker that has read the list again, and their files are
 * removed. All of them or none. */
hfsad_status keys_revoke(const char *dir, const char *const *paths, size_t count, hfsad_error *err);

/* The folder of a broker, for its user alone: ca.crt, broker.crt, broker.key and revoked.crl of the folder of keys, an
 * access list with the exact topics of every node, and a configuration whose limits follow from the tree. ca.key stays
 * where it is. Files that are there are replaced. If init was for a cluster: a configuration for each of its nodes
 * instead, nats-1.conf and so on, and the access list in its form. */
typedef struct {
    const char *keys, *folder;
    const char *place; /* of the folder on the broker's machine, for the configuration; NULL: here */
    const char *run;   /* its name in topics */
    const char *const *nodes;
    size_t n_nodes;
    size_t numbers; /* of the longest message */
} keys_broker;
/* Whether init was for a cluster, and the name of its kind, NULL: none. */
bool keys_clustered(const char *keys);
const char *keys_cluster_name(const char *keys);
hfsad_status keys_broker_make(const keys_broker *b, hfsad_error *err);

/* The names of a node's files; false: too long. */
bool keys_node_files(const char *dir, const char *path, char certificate[KEYS_FILE_MAX], char key[KEYS_FILE_MAX]);

#endif
