/*
 * Topics: hfsad/<run>/<node's path>/<topic>. A path is "cloud", "edge1", "edge1/client7"; its levels are levels of the
 * topic. A node writes below its own path and nowhere else: to its children, to its parent, or for everyone.
 */
#ifndef HFSAD_NET_TOPIC_H
#define HFSAD_NET_TOPIC_H

#include "net/message.h"

#include <stdbool.h>

/* Name, last level, kind of its messages. Each holds a last value, so whatever must not put the other out has its own.
 */
#define TOPIC_LIST(X)                                                                                                  \
    X(DOWN, "down", DOWN)                                                                                              \
    X(ASK, "ask", ASK)                                                                                                 \
    X(UP_ACK, "up-ack", ACK)                                                                                           \
    X(ANSWER_ACK, "answer-ack", ACK)                                                                                   \
    X(UP, "up", UP)                                                                                                    \
    X(ANSWER, "answer", ANSWER)                                                                                        \
    X(MODEL, "model", MODEL)                                                                                           \
    X(DOWN_ACK, "down-ack", ACK)                                                                                       \
    X(RECORD, "record", RECORD)                                                                                        \
    X(STATUS, "status", STATUS)                                                                                        \
    X(HELLO, "hello", KINDS) /* no message: credential.h */

typedef enum {
#define TOPIC_ENUM(name, text, kind) TOPIC_##name,
    TOPIC_LIST(TOPIC_ENUM)
#undef TOPIC_ENUM
        TOPICS
} topic_kind;

const char *topic_name(topic_kind topic);
message_kind topic_message_kind(topic_kind topic);
/* Whether it goes from a node to its children: DOWN to ANSWER_ACK. */
bool topic_to_children(topic_kind topic);
/* The topic of a message; an ACK to the children acknowledges UPs if its k is 0, ANSWERs and MODELs if it is 1. */
topic_kind topic_of(const message *m, bool to_parent);

enum { TOPIC_MAX = 1024, TOPIC_RUN_MAX = 64 }; /* bytes, the closing 0 among them */

/* Whether a text may be a run's name (one level) or a node's path: levels that are not empty, of UTF-8 without control
 * characters, `+` and `#`, and all of it within the limits. */
bool topic_run_valid(const char *run);
bool topic_path_valid(const char *path);

/* run and path are valid; a path of "+" in place of a level, as in "edge1/+", makes a filter. False: too long. */
bool topic_write(char topic[TOPIC_MAX], const char *run, const char *path, topic_kind kind);
/* The path, copied, and the kind of a topic of this run; false for any other topic. */
bool topic_read(const char *topic, const char *run, char path[TOPIC_MAX], topic_kind *kind);

/* The path of a node's parent: "edge1/client7" -> "edge1", "edge1" -> "cloud"; false for the cloud. */
bool topic_parent(const char *path, char parent[TOPIC_MAX]);

/* The rule of MQTT: `+` matches one level, a closing `#` any number of levels. */
bool topic_matches(const char *filter, const char *topic);

#endif
