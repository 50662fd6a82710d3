/*
 * Topics: hfsad/<run>/<node's path>/<kind>. A path is "cloud", "edge1", "edge1/client7"; its levels are levels of the
 * topic. Who writes where: docs/protocol.md.
 */
#ifndef HFSAD_NET_TOPIC_H
#define HFSAD_NET_TOPIC_H

#include "net/message.h"

#include <stdbool.h>

enum { TOPIC_MAX = 1024, TOPIC_RUN_MAX = 64 }; /* bytes, the closing 0 among them */

/* Whether a text may be a run's name (one level) or a node's path: levels that are not empty, of UTF-8 without control
 * characters, `+` and `#`, and all of it within the limits. */
bool topic_run_valid(const char *run);
bool topic_path_valid(const char *path);

/* run and path are valid; a path of "+" in place of a level, as in "edge1/+", makes a filter. False: too long. */
bool topic_write(char topic[TOPIC_MAX], const char *run, const char *path, message_kind kind);
/* The path, copied, and the kind of a topic of this run; false for any other topic. */
bool topic_read(const char *topic, const char *run, char path[TOPIC_MAX], message_kind *kind);

/* The path of a node's parent: "edge1/client7" -> "edge1", "edge1" -> "cloud"; false for the cloud. */
bool topic_parent(const char *path, char parent[TOPIC_MAX]);

/* MQTT's rule: `+` stands for one level, a closing `#` for any number of them. */
bool topic_matches(const char *filter, const char *topic);

#endif
