/*
 * The transport through a broker, by libmosquitto with MQTT 5, or 3.1.1 if the broker knows no other, and QoS 0
 * (acknowledging and repeating is the nodes' affair): a connection per member, all of them driven by one poll. A
 * clustered broker has several addresses; a member that loses one tries the next. See transport.h.
 *
 * What libmosquitto has accepted cannot be taken back, so it gets one frame at a time per member; others wait in
 * places of their topics (slots.h).
 */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/rng.h"
#include "net/broker_url.h"
#include "net/slots.h"
#include "net/transport.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <mosquitto.h>
#include <mqtt_protocol.h>
#include <netdb.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    KEEPALIVE_S = 30,
    KEEPALIVE_LEAST_S = 5, /* libmosquitto takes no less */
    BACKOFF_LEAST_MS = 100,
    BACKOFF_MOST_MS = 10000,
    MISC_EVERY_MS = 500,  /* keepalive is counted in seconds */
    READS_AT_ONCE = 64,   /* packets of one member before the others have their turn */
    CONNECTING_MOST = 64, /* connection attempts at a time: the backlog of a broker is short (mosquitto: 100) */
    REASON_SIZE = 300,
    SESSION_SIZE = 100,
    LEAVE_MS = 500,    /* for the broker to close connections that this process leaves */
    PUZZLED_AFTER = 3, /* connections that the other end has closed unasked: perhaps it speaks otherwise */
};

typedef enum { GONE, APART, CONNECTING, CONNECTED } member_state;

typedef struct mqtt mqtt;

typedef struct {
    mqtt *owner;
    size_t number;
    struct mosquitto *handle;
    char *name;
    char **filters;
    size_t n_filters;
    member_state state;
    transport_event told;  /* the last event that the handler received */
    int connack;           /* the broker's answer, -1 before it */
    size_t n_granted;      /* of the filters */
    const char *denied;    /* one of them; NULL: none */
    int farewell;          /* the reason with which the broker closed, 0: none */
    char log[REASON_SIZE]; /* libmosquitto's first complaint of this connection */
    int64_t next_try_ms;
    int attempts;
    size_t address; /* of the broker's addresses, the current one or the one tried next */
    bool older;     /* the broker speaks MQTT 3.1.1 */
    slot_queue queue;
    int left_open; /* its socket once it has taken leave, -1: none */
} member;

struct mqtt {
    transport front;
    broker_urls at;
    char *url, *ca, *certificate, *key, *user, *password;
    int keepalive_s, backoff_least_ms, backoff_most_ms;
    member **members;
    size_t n_members, capacity;
    struct pollfd *polls; /* one per member, and a spare one at the end */
    size_t *polled;       /* whose they are */
    slot_table slots;
    int64_t next_misc_ms;
    bool any;         /* the handler was called in this wait */
    size_t too_large; /* a frame that the broker does not take; 0: none */
};

static int64_t now_ms(void)
{
    return (int64_t)clock_ms();
}

static hfsad_status no_memory(hfsad_error *err, size_t bytes)
{
    return error_memory(err, bytes, "connections to the broker");
}

/* Of a PUBLISH at QoS 0 that has no properties: its kind, the length of the rest, the topic with its own length, the
 * length of the properties in MQTT 5, the frame. */
static uint64_t packet_bytes(const member *m, const char *topic, size_t size)
{
    const uint64_t rest = 2 + strlen(topic) + !m->older + size;
    return 1 + (rest < 1 << 7 ? 1U : rest < 1 << 14 ? 2U : rest < 1 << 21 ? 3U : 4U) + rest;
}

/* ---- what libmosquitto calls ---- */

static void on_connect(struct mosquitto *handle, void *context, int code)
{
    member *m = context;
    m->connack = code;
    if (code != 0)
        return;
    for (size_t i = 0; i < m->n_filters; i++)
        mosquitto_subscribe(handle, NULL, m->filters[i], 0);
}

/* The broker answers in the order of the questions. */
static void on_subscribe(struct mosquitto *handle, void *context, int id, int count, const int *granted)
{
    member *m = context;
    (void)handle;
    (void)id;
    for (int i = 0; i < count && m->n_granted < m->n_filters; i++, m->n_granted++)
        if (granted[i] >= 128)
            m->denied = m->filters[m->n_granted];
}

static void on_disconnect(struct mosquitto *handle, void *context, int code)
{
    member *m = context;
    (void)handle;
    if (code >= 128) /* MQTT's reasons; below are libmosquitto's own errors */
        m->farewell = code;
}

static void on_message(struct mosquitto *handle, void *context, const struct mosquitto_message *message)
{
    member *m = context;
    transport *t = &m->owner->front;
    (void)handle;
    if (message->payloadlen <= 0)
        return;
    m->owner->any = true;
    t->counts.frames_received++;
    t->counts.bytes_received += packet_bytes(m, message->topic, (size_t)message->payloadlen);
    t->handler.receive(t->handler.context, m->number, message->topic, message->payload, (size_t)message->payloadlen);
}

static void on_log(struct mosquitto *handle, void *context, int level, const char *text)
{
    member *m = context;
    (void)handle;
    if (level == MOSQ_LOG_ERR && !m->log[0]) /* the first is the cause */
        snprintf(m->log, sizeof m->log, "%s", text);
}

/* ---- coming and going ---- */

static void tell(member *m, transport_event event, const char *why)
{
    transport *t = &m->owner->front;
    m->owner->any = true;
    m->told = event;
    if (t->handler.event)
        t->handler.event(t->handler.context, m->number, event, why);
}

/* What to do about a TLS fault, by a word of OpenSSL's; "": not known. */
static const char *tls_advice(const char *fault)
{
    static const struct {
        const char *word, *advice;
    } known[] = {
        {"host name", "; its certificate does not name this host: make the keys anew with this host"},
        {"verify failed", "; its certificate was not issued by the authority that this node was given"},
        {"unknown ca", "; this node's certificate was issued by another authority: use that of the broker"},
        {"revoked", "; this node's certificate was revoked: issue a new one"},
        {"not yet valid", "; a certificate is not valid yet: is the clock of this machine or of the broker behind?"},
        {"expired", "; this node's certificate has expired: issue a new one"},
        {"certificate required", "; give this node its certificate and key"},
        {"wrong version", "; does it speak TLS at this port?"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strstr(fault, known[i].word))
            return known[i].advice;
    return "";
}

static const broker_url *url_of(const member *m)
{
    return &m->owner->at.list[m->address];
}

/* Closed by the other side before it has answered to our CONNECT. */
static bool unanswered(const member *m, int code, int reason)
{
    return m->connack < 0 && (code == MOSQ_ERR_CONN_LOST || code == MOSQ_ERR_TLS ||
                              (code == MOSQ_ERR_ERRNO && (reason == ECONNRESET || reason == EPIPE)));
}

/* The likely cause if a server accepts connections and closes them without a message; "": something else. */
static const char *other_tongue(const member *m, int code, int reason)
{
    const mqtt *t = m->owner;
    if (!unanswered(m, code, reason) || !url_of(m)->port || m->attempts < PUZZLED_AFTER)
        return "";
    return t->at.tls ? "; does it speak TLS at this port? If not, give mqtt://"
                     : "; does it require TLS at this port? Then give mqtts://";
}

/* Whether a reconnect can succeed by itself, and the reason in words. */
static transport_event judge_code(const member *m, int code, int reason, char why[REASON_SIZE])
{
    /* Causes that a user can fix are the certificates, or another service at the port; a killed broker reads as EOF. */
    const bool tls = strstr(m->log, "alert") || strstr(m->log, "verif") || strstr(m->log, "wrong version") ||
                     strstr(m->log, "certificate");
    if (m->connack > 0) {
        const bool busy = m->connack == MQTT_RC_SERVER_UNAVAILABLE || m->connack == MQTT_RC_SERVER_BUSY ||
                          m->connack == CONNACK_REFUSED_SERVER_UNAVAILABLE;
        const char *text =
            m->connack < 128 ? mosquitto_connack_string(m->connack) : mosquitto_reason_string(m->connack);
        snprintf(why, REASON_SIZE, "the broker refuses '%.60s': %.60s", m->name, text);
        return busy ? TRANSPORT_DOWN : TRANSPORT_REFUSED;
    }
    if (m->denied) {
        snprintf(why, REASON_SIZE, "the broker does not allow '%.60s' to subscribe to %.80s", m->name, m->denied);
        return TRANSPORT_REFUSED;
    }
    if (m->farewell) {
        snprintf(why, REASON_SIZE, "the broker closed the connection: %.60s", mosquitto_reason_string(m->farewell));
        return TRANSPORT_DOWN;
    }
    if (code == MOSQ_ERR_EAI) {
        snprintf(why, REASON_SIZE, "the host '%.60s' is not found: %.60s", url_of(m)->host, gai_strerror(reason));
        return reason == EAI_AGAIN ? TRANSPORT_DOWN : TRANSPORT_REFUSED;
    }
    if (tls) {
        snprintf(why, REASON_SIZE, "TLS with the broker fails: %.110s%s", m->log, tls_advice(m->log));
        return TRANSPORT_REFUSED;
    }
    const char *text = !code                              ? "it was closed"
                       : code == MOSQ_ERR_ERRNO && reason ? strerror(reason)
                                                          : mosquitto_strerror(code);
    const int length = (int)strcspn(text, "."); /* libmosquitto speaks in sentences */
    snprintf(why, REASON_SIZE, "no connection to the broker: %.*s%s%.100s%s", length < 60 ? length : 60, text,
             m->log[0] ? "; " : "", m->log, other_tongue(m, code, reason));
    return TRANSPORT_DOWN;
}

/* Nothing here needs more than MQTT 3.1.1. */
static bool choose_version(member *m, bool older)
{
    m->older = older;
    return mosquitto_int_option(m->handle, MOSQ_OPT_PROTOCOL_VERSION, older ? MQTT_PROTOCOL_V311 : MQTT_PROTOCOL_V5) ==
           MOSQ_ERR_SUCCESS;
}

/* The handler is told of a problem once, not of every attempt; but also of a refusal that first looked less serious: a
 * broker that refuses us may close the connection before its reason arrives. */
static void fall(member *m, int code, int reason)
{
    mqtt *t = m->owner;
    /* Longer waits begin after every address has been tried. */
    const int turns = m->attempts / (int)t->at.count, most = turns < 20 ? turns : 20;
    int64_t delay = (int64_t)t->backoff_least_ms << most;
    if (delay > t->backoff_most_ms)
        delay = t->backoff_most_ms;
    /* Up to half as long again, so that thousands do not come back at the same moment. */
    delay += (int64_t)(rng_u64(rng_key(rng_stream(m->name), (uint64_t)getpid()), (uint64_t)m->attempts) %
                       (uint64_t)(delay / 2 + 1));
    m->attempts++;
    m->next_try_ms = now_ms() + delay;
    m->state = APART;
    t->front.counts.lost += slots_drop(&t->slots, &m->queue);
    char why[REASON_SIZE];
    const transport_event event = judge_code(m, code, reason, why);
    const bool puzzled = event == TRANSPORT_DOWN && m->attempts == PUZZLED_AFTER && other_tongue(m, code, reason)[0];
    /* A broker without MQTT 5 may close without an answer: the next turn of the addresses tries the other version. */
    if (unanswered(m, code, reason))
        choose_version(m, m->attempts / (int)t->at.count % 2 != 0);
    m->address = (m->address + 1) % t->at.count;
    if (m->told == TRANSPORT_UP || (m->told == TRANSPORT_DOWN && event == TRANSPORT_REFUSED) || puzzled)
        tell(m, event, why);
}

static void rise(member *m)
{
    m->state = CONNECTED;
    m->attempts = 0;
    /* Without this, libmosquitto would format a line for every packet. */
    mosquitto_log_callback_set(m->handle, NULL);
    m->owner->front.counts.connects++;
    tell(m, TRANSPORT_UP, "");
}

static void connect_now(member *m)
{
    const mqtt *t = m->owner;
    m->connack = -1;
    m->n_granted = 0;
    m->denied = NULL;
    m->farewell = 0;
    m->log[0] = 0;
    m->state = CONNECTING;
    mosquitto_log_callback_set(m->handle, on_log);
    errno = 0;
    const int code = mosquitto_connect_async(m->handle, url_of(m)->host, url_of(m)->port, t->keepalive_s);
    if (code)
        fall(m, code, errno);
}

/* A broker without MQTT 5 that reports this in its answer. */
static bool step_down(member *m)
{
    if (m->older || m->connack != MQTT_RC_UNSUPPORTED_PROTOCOL_VERSION || !choose_version(m, true))
        return false;
    connect_now(m);
    return true;
}

/* After every call that may have changed it. */
static void look(member *m, int code, int reason)
{
    if (step_down(m))
        return;
    if (code || m->connack > 0 || m->denied || mosquitto_socket(m->handle) < 0)
        fall(m, code, reason);
    else if (m->state == CONNECTING && m->connack == 0 && m->n_granted == m->n_filters)
        rise(m);
}

/* ---- sending ---- */

static void publish(member *m, const char *topic, const void *bytes, size_t size, bool retain)
{
    transport_counts *counts = &m->owner->front.counts;
    const int code = size <= INT_MAX ? mosquitto_publish(m->handle, NULL, topic, (int)size, bytes, 0, retain)
                                     : MOSQ_ERR_PAYLOAD_SIZE;
    if (code == MOSQ_ERR_OVERSIZE_PACKET || code == MOSQ_ERR_PAYLOAD_SIZE)
        m->owner->too_large = size;
    if (code) { /* a broken connection is found by the next read */
        counts->lost++;
        return;
    }
    counts->frames_sent++;
    counts->bytes_sent += packet_bytes(m, topic, size);
}

static void flush(member *m)
{
    slot_table *slots = &m->owner->slots;
    size_t place;
    parcel *value;
    while (m->state == CONNECTED && !mosquitto_want_write(m->handle) && slots_take(slots, &m->queue, &place, &value)) {
        publish(m, slots->slots[place].topic, value->bytes, value->size, slots->slots[place].retain);
        parcel_drop(value);
    }
}

static hfsad_status mqtt_send(transport *front, size_t number, const char *topic, const void *bytes, size_t size,
                              bool retain, hfsad_error *err)
{
    mqtt *t = (mqtt *)front;
    member *m = number < t->n_members ? t->members[number] : NULL;
    if (!m || m->state != CONNECTED) {
        front->counts.lost++;
        return HFSAD_OK;
    }
    flush(m);
    if (m->queue.first == NO_SLOT && !mosquitto_want_write(m->handle)) {
        publish(m, topic, bytes, size, retain);
        return HFSAD_OK;
    }
    const size_t place = slots_find(&t->slots, number, topic);
    parcel *value = place == NO_SLOT ? NULL : parcel_make(bytes, size);
    if (!value)
        return no_memory(err, size);
    front->counts.replaced += slots_put(&t->slots, &m->queue, place, value, retain);
    return HFSAD_OK;
}

/* ---- waiting ---- */

static bool in_handshake(const member *m)
{
    const SSL *ssl = mosquitto_ssl_get(m->handle);
    return ssl && !SSL_is_init_finished(ssl);
}

/* Reads packets that have arrived. libmosquitto reports by errno that there was nothing more. */
static int read_some(member *m, int *reason)
{
    int code = MOSQ_ERR_SUCCESS;
    for (int i = 0; i < READS_AT_ONCE && !code && mosquitto_socket(m->handle) >= 0; i++) {
        errno = 0;
        code = mosquitto_loop_read(m->handle, 1);
        *reason = errno;
        if (*reason == EAGAIN || m->connack > 0 || in_handshake(m))
            break;
    }
    return code;
}

/* Whether a handshake has begun: a server answers at this port. */
static bool has_greeted(const member *m)
{
    const SSL *ssl = mosquitto_ssl_get(m->handle);
    return ssl && SSL_get_wbio(ssl) && BIO_number_written(SSL_get_wbio(ssl)) > 0;
}

/* Whether a connection attempt has failed. libmosquitto mistakes this for a slow handshake, because it has already
 * consumed the error of the socket. */
static bool has_nobody(const member *m, short happened)
{
    struct sockaddr_storage peer;
    socklen_t size = sizeof peer;
    return m->state == CONNECTING && happened & POLLHUP && mosquitto_socket(m->handle) >= 0 &&
           getpeername(mosquitto_socket(m->handle), (struct sockaddr *)&peer, &size) != 0;
}

static void serve(member *m, short happened)
{
    int code = MOSQ_ERR_SUCCESS, reason = 0;
    /* A handshake continues by reading, whatever the socket is ready for. */
    if (happened & ~POLLOUT || in_handshake(m))
        code = read_some(m, &reason);
    if (!code && has_nobody(m, happened)) {
        code = MOSQ_ERR_ERRNO;
        reason = has_greeted(m) ? ECONNRESET : ECONNREFUSED;
    }
    /* Also what the handler has sent meanwhile. */
    if (!code && mosquitto_socket(m->handle) >= 0 && mosquitto_want_write(m->handle) && !in_handshake(m)) {
        errno = 0;
        code = mosquitto_loop_write(m->handle, 1);
        reason = errno;
    }
    look(m, code, reason);
    flush(m);
}

/* Returns when to look again, at the latest. */
static int64_t connect_the_due(mqtt *t, int64_t now, int64_t until)
{
    size_t connecting = 0;
    for (size_t i = 0; i < t->n_members; i++)
        connecting += t->members[i]->state == CONNECTING;
    for (size_t i = 0; i < t->n_members; i++) {
        member *m = t->members[i];
        const bool due = m->state == APART && m->next_try_ms <= now;
        if (due && connecting < CONNECTING_MOST) {
            connect_now(m);
            connecting += m->state == CONNECTING;
        }
        /* A member that waits for others is woken by their progress. */
        if (m->state == APART && m->next_try_ms > now && m->next_try_ms < until)
            until = m->next_try_ms;
    }
    return until;
}

static void misc(mqtt *t, int64_t now)
{
    if (now < t->next_misc_ms)
        return;
    t->next_misc_ms = now + MISC_EVERY_MS;
    for (size_t i = 0; i < t->n_members; i++) {
        member *m = t->members[i];
        if (m->state < CONNECTING)
            continue;
        errno = 0;
        const int code = mosquitto_loop_misc(m->handle);
        look(m, code, errno);
    }
}

static nfds_t gather(mqtt *t)
{
    nfds_t n = 0;
    for (size_t i = 0; i < t->n_members; i++) {
        const member *m = t->members[i];
        if (m->state < CONNECTING)
            continue;
        const short out = mosquitto_want_write(m->handle) ? POLLOUT : 0;
        t->polls[n] = (struct pollfd){.fd = mosquitto_socket(m->handle), .events = (short)(POLLIN | out)};
        t->polled[n++] = i;
    }
    return n;
}

static hfsad_status say_too_large(mqtt *t, hfsad_error *err)
{
    const size_t size = t->too_large;
    t->too_large = 0;
    return error_set(err, HFSAD_ERROR_INPUT,
                     "a message of %zu bytes exceeds the limit of the broker at %.200s; raise the limit (mosquitto: "
                     "max_packet_size, EMQX: mqtt.max_packet_size)",
                     size, t->url);
}

static size_t mqtt_sockets(transport *front, struct pollfd *to, size_t room)
{
    mqtt *t = (mqtt *)front;
    for (size_t i = 0; i < t->n_members; i++)
        if (t->members[i]->state == APART)
            return 0;
    const size_t n = (size_t)gather(t);
    if (n > room)
        return 0;
    memcpy(to, t->polls, n * sizeof *to);
    return n;
}

static hfsad_status mqtt_wait(transport *front, int64_t timeout_ms, hfsad_error *err)
{
    mqtt *t = (mqtt *)front;
    const int64_t start = now_ms();
    int64_t until = timeout_ms < 0 || timeout_ms > INT_MAX ? start + INT_MAX : start + timeout_ms;
    t->any = false;
    until = connect_the_due(t, start, until);
    misc(t, start);
    const bool idle = t->n_members == 0;
    if (!idle && t->next_misc_ms < until)
        until = t->next_misc_ms;
    const nfds_t n = gather(t);
    const int64_t left = t->any || until < start ? 0 : until - start;
    const int ready = poll(t->polls, n, (int)left);
    if (ready < 0 && errno != EINTR)
        return error_set(err, HFSAD_ERROR_IO, "waiting for the broker failed: %s", strerror(errno));
    for (nfds_t i = 0; ready > 0 && i < n; i++) {
        member *m = t->members[t->polled[i]];
        if (t->polls[i].revents && m->state >= CONNECTING)
            serve(m, t->polls[i].revents);
    }
    return t->too_large ? say_too_large(t, err) : HFSAD_OK;
}

/* ---- members ---- */

static void member_free(member *m)
{
    if (!m)
        return;
    if (m->handle)
        mosquitto_destroy(m->handle);
    for (size_t i = 0; i < m->n_filters; i++)
        free(m->filters[i]);
    free(m->filters);
    free(m->name);
    free(m);
}

/* Until the broker has closed its side, or until the time is over. A socket that is closed with unread data resets the
 * connection; a broker that notices this before it has read DISCONNECT publishes the will. */
static void drain(int *socket, uint64_t end)
{
    char unread[4096];
    ssize_t n = *socket >= 0 ? 1 : 0;
    while (n > 0) {
        struct pollfd p = {.fd = *socket, .events = POLLIN};
        const uint64_t now = clock_ms();
        n = now < end && poll(&p, 1, (int)(end - now)) > 0 ? recv(*socket, unread, sizeof unread, MSG_DONTWAIT) : 0;
    }
    if (*socket >= 0)
        close(*socket);
    *socket = -1;
}

/* Says that it leaves; left_open then keeps the connection for drain(). */
static void take_leave(mqtt *t, member *m, bool with_will)
{
    if (m->state == GONE)
        return;
    flush(m);
    if (!with_will && m->state >= CONNECTING) {
        m->left_open = mosquitto_socket(m->handle) >= 0 ? dup(mosquitto_socket(m->handle)) : -1;
        mosquitto_disconnect(m->handle);
    }
    mosquitto_destroy(m->handle);
    m->handle = NULL;
    m->state = GONE;
    slots_drop(&t->slots, &m->queue);
}

static void mqtt_leave(transport *front, size_t number, bool with_will)
{
    mqtt *t = (mqtt *)front;
    if (number >= t->n_members)
        return;
    take_leave(t, t->members[number], with_will);
    drain(&t->members[number]->left_open, clock_ms() + LEAVE_MS);
}

static void mqtt_free(transport *front)
{
    mqtt *t = (mqtt *)front;
    for (size_t i = 0; i < t->n_members; i++)
        take_leave(t, t->members[i], false);
    const uint64_t end = clock_ms() + LEAVE_MS;
    for (size_t i = 0; i < t->n_members; i++) {
        drain(&t->members[i]->left_open, end);
        member_free(t->members[i]);
    }
    slots_free(&t->slots);
    free(t->members);
    free(t->polls);
    free(t->polled);
    free(t->url);
    free(t->ca);
    free(t->certificate);
    free(t->key);
    free(t->user);
    free(t->password);
    free(t);
    mosquitto_lib_cleanup();
}

static hfsad_status check_file(const char *path, const char *what, hfsad_error *err)
{
    if (!path || access(path, R_OK) == 0)
        return HFSAD_OK;
    return error_set(err, HFSAD_ERROR_INPUT, "%s %.300s cannot be read: %s; hfsad keys creates these files", what, path,
                     strerror(errno));
}

/* Everything that a handle must know before it connects. */
static int set_up_member(const mqtt *t, member *m, const transport_member *from)
{
    struct mosquitto *h = m->handle;
    int code = mosquitto_int_option(h, MOSQ_OPT_PROTOCOL_VERSION, MQTT_PROTOCOL_V5);
    if (!code)
        code = mosquitto_int_option(h, MOSQ_OPT_TCP_NODELAY, 1);
    if (!code && t->user)
        code = mosquitto_username_pw_set(h, t->user, t->password);
    if (!code && t->at.tls)
        code = mosquitto_tls_set(h, t->ca, NULL, from->certificate ? from->certificate : t->certificate,
                                 from->key ? from->key : t->key, NULL);
    if (!code && from->will_topic)
        code = mosquitto_will_set(h, from->will_topic, (int)from->will_size, from->will, 0, true);
    mosquitto_connect_callback_set(h, on_connect);
    mosquitto_subscribe_callback_set(h, on_subscribe);
    mosquitto_disconnect_callback_set(h, on_disconnect);
    mosquitto_message_callback_set(h, on_message);
    return code;
}

/*
 * An unpredictable name: a connection with the name of a session disconnects its owner. Two processes of one node would
 * do that to each other forever, instead of seeing each other's status.
 */
static bool session_name(char id[SESSION_SIZE], const char *name)
{
    uint64_t random;
    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
        return false;
    snprintf(id, SESSION_SIZE, "%.70s@%016" PRIx64, name, random);
    return true;
}

static bool member_fill(member *m, const transport_member *from)
{
    m->name = strdup(from->name);
    m->filters = calloc(from->n_filters ? from->n_filters : 1, sizeof *m->filters);
    bool good = m->name && m->filters;
    for (; good && m->n_filters < from->n_filters; m->n_filters += good)
        good = (m->filters[m->n_filters] = strdup(from->filters[m->n_filters])) != NULL;
    char id[SESSION_SIZE];
    if (good)
        good = session_name(id, from->name);
    m->handle = good ? mosquitto_new(id, true, m) : NULL;
    return m->handle != NULL;
}

static bool more_room(mqtt *t)
{
    if (t->n_members < t->capacity)
        return true;
    const size_t n = t->capacity ? 2 * t->capacity : 16;
    member **members = realloc(t->members, n * sizeof(member *));
    t->members = members ? members : t->members;
    struct pollfd *polls = realloc(t->polls, n * sizeof *polls);
    t->polls = polls ? polls : t->polls;
    size_t *polled = realloc(t->polled, n * sizeof *polled);
    t->polled = polled ? polled : t->polled;
    if (!members || !polls || !polled)
        return false;
    t->capacity = n;
    return true; // cppcheck-suppress memleak ; all of it is t's
}

static hfsad_status mqtt_join(transport *front, const transport_member *from, size_t *number, hfsad_error *err)
{
    mqtt *t = (mqtt *)front;
    hfsad_status status = check_file(from->certificate, "the certificate", err);
    if (!status)
        status = check_file(from->key, "the private key", err);
    if (status)
        return status;
    member *m = calloc(1, sizeof *m);
    if (!m || !more_room(t) || !member_fill(m, from)) {
        member_free(m);
        return no_memory(err, sizeof *m);
    }
    m->owner = t;
    m->number = t->n_members;
    m->queue = SLOT_QUEUE_EMPTY;
    m->connack = m->left_open = -1;
    m->state = APART;
    m->address = rng_u64(rng_key(rng_stream(m->name), 0), 0) % t->at.count; /* members are spread over the addresses */
    const int code = set_up_member(t, m, from);
    if (code) {
        member_free(m);
        return error_set(err, HFSAD_ERROR_INPUT, "'%.200s' cannot connect to %.200s: %s", from->name, t->url,
                         mosquitto_strerror(code));
    }
    *number = m->number;
    t->members[t->n_members++] = m;
    return HFSAD_OK;
}

/* ---- the transport ---- */

static bool copy_text(char **to, const char *from)
{
    *to = from ? strdup(from) : NULL;
    return *to || !from;
}

static bool copy_broker(mqtt *t, const transport_broker *from)
{
    t->keepalive_s = from->keepalive_s > KEEPALIVE_LEAST_S ? from->keepalive_s : KEEPALIVE_LEAST_S;
    if (!from->keepalive_s)
        t->keepalive_s = KEEPALIVE_S;
    t->backoff_least_ms = from->backoff_least_ms > 0 ? from->backoff_least_ms : BACKOFF_LEAST_MS;
    t->backoff_most_ms = from->backoff_most_ms > 0 ? from->backoff_most_ms : BACKOFF_MOST_MS;
    return copy_text(&t->url, from->url) && copy_text(&t->ca, from->ca) &&
           copy_text(&t->certificate, from->certificate) && copy_text(&t->key, from->key) &&
           copy_text(&t->user, from->user) && copy_text(&t->password, from->password);
}

static hfsad_status check_broker(const transport_broker *b, broker_urls *at, hfsad_error *err)
{
    hfsad_status status = broker_urls_read(at, b->url, err);
    if (!status && at->tls && !b->ca)
        status = error_set(err, HFSAD_ERROR_INPUT,
                           "%.200s: a TLS connection needs the certificate of the authority; "
                           "hfsad keys init creates it",
                           b->url);
    if (!status)
        status = check_file(b->ca, "the certificate of the authority", err);
    if (!status)
        status = check_file(b->certificate, "the certificate", err);
    if (!status)
        status = check_file(b->key, "the private key", err);
    return status;
}

hfsad_status transport_mqtt_create(transport **out, const transport_broker *broker, const transport_handler *handler,
                                   hfsad_error *err)
{
    static const transport_ops ops = {mqtt_free, mqtt_join, mqtt_leave, mqtt_send, mqtt_wait, mqtt_sockets};
    broker_urls at;
    *out = NULL;
    const hfsad_status status = check_broker(broker, &at, err);
    if (status)
        return status;
    mqtt *t = calloc(1, sizeof *t);
    if (!t)
        return no_memory(err, sizeof *t);
    mosquitto_lib_init();
    t->front.ops = &ops;
    t->front.handler = *handler;
    t->at = at;
    if (!copy_broker(t, broker)) {
        mqtt_free(&t->front);
        return no_memory(err, sizeof *t);
    }
    *out = &t->front;
    return HFSAD_OK;
}
