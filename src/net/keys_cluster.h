/* The files of a clustered broker, NATS; see keys.h. */
#ifndef HFSAD_NET_KEYS_CLUSTER_H
#define HFSAD_NET_KEYS_CLUSTER_H

#include "net/keys.h"
#include "net/keys_file.h"

/* In the folder of keys, of a cluster alone: its kind, then one line `HOST PORT` for each of its nodes. */
#define KEYS_CLUSTER "cluster"

/* Whether `kind` is that of a clustered broker; NULL and "mosquitto" are not. An error: unknown. */
hfsad_status keys_cluster_kind(const char *kind, bool *clustered, hfsad_error *err);
/* init: the file KEYS_CLUSTER. */
hfsad_status keys_cluster_add(key_files *files, const keys_authority *a, hfsad_error *err);
/* broker: a configuration for each node, and the access list; text is that of KEYS_CLUSTER, key that of broker.key, of
 * which the cluster's password is made. */
hfsad_status keys_cluster_make(key_files *files, const keys_broker *b, const char *text, const char *key,
                               hfsad_error *err);

#endif
