/*
 * Transport of frames: each topic has a last value. Two transports implement one table of functions: mqtt goes through
 * a broker, and tests/transport_local.h stays within a process. tests/test_transport.c runs the same tests on both.
 *
 * A transport has members, one for a node (or for several that share a login), each with its own topics to write, its
 * own filters to read, and its own will. One thread drives it: everything happens within transport_wait and
 * transport_send, which never block for the network.
 *
 * Guaranteed: while it is connected and the broker lives, a member gets the newest frame of every topic that it
 * subscribes to, also the retained frame sent before it connected. Not guaranteed: that it gets every frame (a newer
 * frame replaces one that has not been sent yet, so every queue is bounded), that a frame arrives only once, that
 * frames of different topics arrive in order, that the broker keeps anything. Nodes acknowledge and retransmit.
 */
#ifndef HFSAD_NET_TRANSPORT_H
#define HFSAD_NET_TRANSPORT_H

#include "hfsad/hfsad.h"

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct transport transport;

typedef enum {
    TRANSPORT_UP,      /* connected and subscribed; frames sent before are lost, so retransmit what matters */
    TRANSPORT_DOWN,    /* no connection; the transport reconnects by itself, with backoff */
    TRANSPORT_REFUSED, /* a DOWN that needs a fix: login, certificate, unknown host, a filter */
} transport_event;

/* Called within transport_wait only. They may send; they may not wait, join, leave or free. */
typedef struct {
    void *context;
    /* topic and bytes belong to the transport and are valid until the function returns. */
    void (*receive)(void *context, size_t member, const char *topic, const void *bytes, size_t size);
    /* why: one line that belongs to the transport; "" for UP. The function may be NULL. */
    void (*event)(void *context, size_t member, transport_event event, const char *why);
} transport_handler;

typedef struct {
    const char *name;           /* the node's path, as in its certificate; several may have one name */
    const char *const *filters; /* its subscriptions, renewed on every connection; `+` for a level, a closing `#` */
    size_t n_filters;
    const char *will_topic; /* NULL: no will */
    const void *will;       /* sent (and retained) in its name when it is gone without having left */
    size_t will_size;
    /* mqtt with TLS: PEM files of the member's certificate; NULL: the certificate of the transport */
    const char *certificate, *key;
} transport_member;

typedef struct {
    uint64_t frames_sent, frames_received;
    uint64_t bytes_sent, bytes_received; /* of frames with topics, as MQTT packs them; without TLS and TCP */
    uint64_t replaced;                   /* frames whose place a newer one took before they had left */
    uint64_t lost;                       /* frames sent while there was no connection */
    uint64_t connects;                   /* of all members together */
} transport_counts;

/* The table of a transport; callers use the functions below. Every slot copies its arguments unless stated otherwise.
 */
typedef struct {
    void (*free)(transport *t); /* members leave: no wills */
    hfsad_status (*join)(transport *t, const transport_member *member, size_t *number, hfsad_error *err);
    void (*leave)(transport *t, size_t member, bool with_will);
    hfsad_status (*send)(transport *t, size_t member, const char *topic, const void *bytes, size_t size, bool retain,
                         hfsad_error *err);
    hfsad_status (*wait)(transport *t, int64_t timeout_ms, hfsad_error *err);
    /* What wakes a wait, at most `room` of it; 0: there is more, or something else does. NULL: always something else.
     */
    size_t (*sockets)(transport *t, struct pollfd *to, size_t room);
} transport_ops;

/* What every transport begins with. */
struct transport {
    const transport_ops *ops;
    transport_handler handler;
    transport_counts counts;
};

typedef struct {
    const char *url;                       /* mqtt://host[:1883], mqtts://host[:8883] or unix:///path/to/socket */
    const char *ca;                        /* mqtts: PEM file of the authority that signed the broker's certificate */
    const char *certificate, *key;         /* mqtts: for members without their own; NULL: none */
    const char *user, *password;           /* NULL: none; with certificates the broker takes the name from there */
    int keepalive_s;                       /* 0: 30. A frozen node's will comes after one and a half of these. */
    int backoff_least_ms, backoff_most_ms; /* 0: 100 and 10,000 */
} transport_broker;

/*
 * Checks url and files, connects to nothing yet: members do when they join, in the background. Only the look-up of the
 * host's name may block. SIGPIPE must be ignored in the process: OpenSSL writes to closed connections.
 */
hfsad_status transport_mqtt_create(transport **t, const transport_broker *broker, const transport_handler *handler,
                                   hfsad_error *err);

/* NULL is allowed. */
void transport_free(transport *t);

/* Adds a member; *number counts from 0. The member connects in the background, and the handler is told. */
hfsad_status transport_join(transport *t, const transport_member *member, size_t *number, hfsad_error *err);
/* Removes a member; its number is not used again. with_will: as if the process had been killed (for tests). */
void transport_leave(transport *t, size_t member, bool with_will);

/*
 * Sets the newest value of a topic. The frame is sent at once or within the next waits. Only lack of memory is an error
 * here: a frame that cannot be sent now is lost and counted, and a frame that is too large for the broker is an error
 * of the next wait. retain: the broker keeps it for later subscribers; a retained value of size 0 clears it. A frame of
 * size 0 is delivered to no member.
 */
hfsad_status transport_send(transport *t, size_t member, const char *topic, const void *bytes, size_t size, bool retain,
                            hfsad_error *err);

/* Sends and receives, and calls the handler. Returns after an event or after timeout_ms (0: at once, < 0: no limit);
 * it may return earlier, for example on a signal. */
hfsad_status transport_wait(transport *t, int64_t timeout_ms, hfsad_error *err);
/* Waits for two transports at once; it may return much earlier. */
hfsad_status transport_wait_both(transport *a, transport *b, int64_t timeout_ms, hfsad_error *err);

#endif
