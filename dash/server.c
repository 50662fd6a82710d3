/* The HTTP side of server.h: port, TLS, token, limits, events. */
#define _GNU_SOURCE /* strncasecmp, ssize_t */
#include "dash/server.h"

#include "base/address.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/read_file.h"
#include "dash/api.h"
#include "dash/assets.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* CONNECTIONS_MOST: limit on all connections; EVENTS_MOST: limit on connections that wait for changes. A browser keeps
 * six connections per host. An idle connection is closed after IDLE_SECONDS; event streams send a line every
 * BEAT_MS. */
enum {
    CONNECTIONS_MOST = 96,
    EVENTS_MOST = 32,
    CONNECTION_BYTES = 16384,
    IDLE_SECONDS = 15,
    BEAT_MS = 5000,
    TICK_MS = 250,
    TOKEN_LEAST = 16,
    TOKEN_MOST = 256
};

/* A connection that waits for changes. */
typedef struct stream {
    struct server *server;
    struct MHD_Connection *connection;
    bool used, suspended;
    int64_t told; /* the version that the page has; -1: none */
    uint64_t beat;
} stream;

struct server {
    int socket;
    unsigned port;
    char host[ADDRESS_HOST_SIZE];
    bool loopback;
    char *certificate, *key, token[TOKEN_MOST + 1]; /* token "": no token is required */
    struct MHD_Daemon *daemon;
    history *h; /* used by the server's thread only */
    int64_t run;
    pthread_mutex_t lock; /* protects the streams */
    stream streams[EVENTS_MOST];
    _Atomic int64_t version;
};

/* ---- answers ---- */

/* Forbids scripts, styles, pictures and connections from elsewhere, frames around the page, and forms. */
#define POLICY                                                                                                         \
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "              \
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

static enum MHD_Result send_response(struct MHD_Connection *to, unsigned status, const char *type,
                                     struct MHD_Response *r)
{
    static const char *const headers[][2] = {{"Content-Security-Policy", POLICY},
                                             {"X-Content-Type-Options", "nosniff"},
                                             {"X-Frame-Options", "DENY"},
                                             {"Referrer-Policy", "no-referrer"},
                                             {"Cross-Origin-Opener-Policy", "same-origin"},
                                             {"Cross-Origin-Resource-Policy", "same-origin"},
                                             {"Cache-Control", "no-store"}};
    if (!r)
        return MHD_NO;
    MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
        MHD_add_response_header(r, headers[i][0], headers[i][1]);
    const enum MHD_Result queued = MHD_queue_response(to, status, r);
    MHD_destroy_response(r);
    return queued;
}

static enum MHD_Result send_line(struct MHD_Connection *to, unsigned status, const char *line)
{
    return send_response(to, status, "text/plain; charset=utf-8",
                         MHD_create_response_from_buffer(strlen(line), (void *)line, MHD_RESPMEM_MUST_COPY));
}

static enum MHD_Result send_asset(struct MHD_Connection *to, unsigned status, const asset *a)
{
    return send_response(to, status, a->type,
                         MHD_create_response_from_buffer(a->size, (void *)a->bytes, MHD_RESPMEM_PERSISTENT));
}

static enum MHD_Result send_json(struct MHD_Connection *to, unsigned status, cJSON *o)
{
    char *text = cJSON_PrintUnformatted(o);
    cJSON_Delete(o);
    if (!text)
        return MHD_NO;
    return send_response(to, status, "application/json; charset=utf-8",
                         MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_FREE));
}

/* ---- event streams ---- */

static ssize_t fill_stream(void *context, uint64_t position, char *buffer, size_t size)
{
    stream *e = context;
    server *s = e->server;
    const int64_t version = atomic_load(&s->version);
    int n = 0;
    (void)position;
    if (e->told != version)
        n = snprintf(buffer, size, "event: change\ndata: %lld\n\n", (long long)version);
    else if (clock_ms() >= e->beat)
        n = snprintf(buffer, size, ": still here\n\n");
    if (n > 0 && (size_t)n < size) {
        e->told = version;
        e->beat = clock_ms() + BEAT_MS;
        return n;
    }
    pthread_mutex_lock(&s->lock);
    e->suspended = true;
    MHD_suspend_connection(e->connection);
    pthread_mutex_unlock(&s->lock);
    return 0;
}

static void end_stream(void *context)
{
    stream *e = context;
    pthread_mutex_lock(&e->server->lock);
    e->used = e->suspended = false;
    pthread_mutex_unlock(&e->server->lock);
}

static enum MHD_Result open_stream(server *s, struct MHD_Connection *to)
{
    stream *e = NULL;
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < EVENTS_MOST && !e; i++)
        if (!s->streams[i].used)
            e = &s->streams[i];
    if (e)
        *e = (stream){.server = s, .connection = to, .used = true, .told = -1};
    pthread_mutex_unlock(&s->lock);
    if (!e)
        return send_line(to, MHD_HTTP_SERVICE_UNAVAILABLE, "too many pages are open; close some\n");
    struct MHD_Response *r = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 512, fill_stream, e, end_stream);
    if (!r)
        end_stream(e);
    return send_response(to, MHD_HTTP_OK, "text/event-stream", r);
}

static void wake_streams(server *s)
{
    const int64_t version = atomic_load(&s->version);
    const uint64_t now = clock_ms();
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < EVENTS_MOST; i++) {
        stream *e = &s->streams[i];
        if (e->used && e->suspended && (e->told != version || now >= e->beat)) {
            e->suspended = false;
            MHD_resume_connection(e->connection);
        }
    }
    pthread_mutex_unlock(&s->lock);
}

static void resume_all(server *s)
{
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < EVENTS_MOST; i++)
        if (s->streams[i].used && s->streams[i].suspended) {
            s->streams[i].suspended = false;
            MHD_resume_connection(s->streams[i].connection);
        }
    pthread_mutex_unlock(&s->lock);
}

/* ---- access ---- */

/* Compares in a time that does not depend on where the texts differ. */
static bool same_text(const char *a, const char *b)
{
    const size_t n = strlen(a), m = strlen(b);
    unsigned differs = n != m;
    for (size_t i = 0; i < n; i++)
        differs |= (unsigned)(unsigned char)a[i] ^ (unsigned)(unsigned char)b[m ? i % m : 0];
    return differs == 0;
}

/* A page of another site whose name resolves to 127.0.0.1 must not read the history; its requests carry that name. */
static bool host_is_ours(const server *s, struct MHD_Connection *from)
{
    const char *host = MHD_lookup_connection_value(from, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);
    static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};
    if (!s->loopback)
        return true; /* a token is required */
    if (!host)
        return false;
    const char *colon = strrchr(host, ':');
    const size_t length = colon && !strchr(colon, ']') ? (size_t)(colon - host) : strlen(host);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == length && !strncasecmp(host, names[i], length))
            return true;
    return strlen(s->host) == length && !strncasecmp(host, s->host, length);
}

static bool has_token(const server *s, struct MHD_Connection *from)
{
    const char *header = MHD_lookup_connection_value(from, MHD_HEADER_KIND, MHD_HTTP_HEADER_AUTHORIZATION);
    const char *cookie = MHD_lookup_connection_value(from, MHD_COOKIE_KIND, "hfsad");
    if (!*s->token)
        return true;
    return (header && !strncmp(header, "Bearer ", 7) && same_text(header + 7, s->token)) ||
           (cookie && same_text(cookie, s->token));
}

/* The link with the token: the token becomes a cookie that scripts and other sites cannot read, and is removed from the
 * address. */
static enum MHD_Result take_token(const server *s, struct MHD_Connection *to, const char *token)
{
    char cookie[TOKEN_MOST + 100];
    if (!same_text(token, s->token))
        return send_asset(to, MHD_HTTP_UNAUTHORIZED, asset_find("/token"));
    snprintf(cookie, sizeof cookie, "hfsad=%s; HttpOnly; Secure; SameSite=Strict; Path=/", s->token);
    struct MHD_Response *r = MHD_create_response_from_buffer(0, (void *)"", MHD_RESPMEM_PERSISTENT);
    if (!r)
        return MHD_NO;
    MHD_add_response_header(r, MHD_HTTP_HEADER_SET_COOKIE, cookie);
    MHD_add_response_header(r, MHD_HTTP_HEADER_LOCATION, "/");
    return send_response(to, MHD_HTTP_SEE_OTHER, "text/plain", r);
}

/* ---- a request, in the server's thread ---- */

/* All pages are one file, which reads its own address. */
static bool is_page(const char *url)
{
    return !strcmp(url, "/") || !strcmp(url, "/runs") || !strcmp(url, "/compare") || !strncmp(url, "/run/", 5) ||
           !strncmp(url, "/federation/", 12);
}

static const char *argument(void *from, const char *name)
{
    return MHD_lookup_connection_value(from, MHD_GET_ARGUMENT_KIND, name);
}

static enum MHD_Result answer(void *context, struct MHD_Connection *from, const char *url, const char *method,
                              const char *version, const char *upload, size_t *upload_size, void **request)
{
    server *s = context;
    (void)version;
    (void)upload;
    (void)request;
    if (*upload_size > 0) { /* a body is skipped; the answer follows its end */
        *upload_size = 0;
        return MHD_YES;
    }
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
        return send_line(from, MHD_HTTP_METHOD_NOT_ALLOWED, "the dashboard is read-only: only GET\n");
    if (!host_is_ours(s, from))
        return send_line(from, MHD_HTTP_FORBIDDEN, "the dashboard answers only at its own address\n");
    const char *token = argument(from, "token");
    if (token && *s->token)
        return take_token(s, from, token);
    if (!has_token(s, from) && strcmp(url, "/style.css") != 0)
        return send_asset(from, MHD_HTTP_UNAUTHORIZED, asset_find("/token"));
    if (!strcmp(url, "/api/events"))
        return open_stream(s, from);
    if (!strncmp(url, "/api/", 5)) {
        unsigned status = MHD_HTTP_OK;
        cJSON *o = api_answer(s->h, url + 4, argument, from, s->run, &status);
        return send_json(from, status, o);
    }
    const asset *a = asset_find(is_page(url) ? "/index" : url);
    return a ? send_asset(from, MHD_HTTP_OK, a) : send_line(from, MHD_HTTP_NOT_FOUND, "no such page; see /\n");
}

/* ---- set-up ---- */

/* Whether only processes of this machine can reach the address; a socket without a port is a file. */
static bool is_local(const struct sockaddr *at)
{
    if (at->sa_family == AF_INET)
        return (ntohl(((const struct sockaddr_in *)(const void *)at)->sin_addr.s_addr) >> 24) == 127;
    if (at->sa_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)at)->sin6_addr);
    return at->sa_family == AF_UNIX;
}

/* A socket that was passed in may listen at another address than the setting: the socket's address counts. */
static bool is_reached_locally(int socket, const struct addrinfo *found)
{
    struct sockaddr_storage at = {0};
    socklen_t size = sizeof at;
    if (socket < 0)
        return is_local(found->ai_addr);
    return getsockname(socket, (struct sockaddr *)&at, &size) == 0 && is_local((struct sockaddr *)&at);
}

static hfsad_status open_port(server *s, const server_settings *settings, hfsad_error *err)
{
    static const char what[] = "the dashboard";
    struct addrinfo *found;
    hfsad_status status = address_find(what, settings->address, "127.0.0.1:8080", s->host, &found, err);
    if (status)
        return status;
    s->loopback = is_reached_locally(settings->socket, found);
    if (!s->loopback && !settings->keys)
        status = address_refuse(what, settings->address,
                                "beyond this machine it needs a certificate and a token; give a folder with dash.crt, "
                                "dash.key and dash.token",
                                err);
    else if (settings->socket >= 0)
        s->socket = settings->socket;
    else
        status = address_listen(what, settings->address, found, CONNECTIONS_MOST, &s->socket, err);
    freeaddrinfo(found);
    if (!status)
        s->port = address_port(s->socket);
    return status;
}

static hfsad_status read_key(const char *folder, const char *name, char **text, hfsad_error *err)
{
    size_t size;
    char *path = path_join(folder, name);
    const int reason = path ? file_read(path, 1 << 20, text, &size) : ENOMEM;
    free(path);
    return reason ? error_set(err, HFSAD_ERROR_INPUT,
                              "%.300s/%s: %s; the dashboard needs dash.crt, dash.key and "
                              "dash.token there",
                              folder, name, strerror(reason))
                  : HFSAD_OK;
}

static hfsad_status read_keys(server *s, const char *folder, hfsad_error *err)
{
    char *token = NULL;
    hfsad_status status = read_key(folder, "dash.crt", &s->certificate, err);
    if (!status)
        status = read_key(folder, "dash.key", &s->key, err);
    if (!status)
        status = read_key(folder, "dash.token", &token, err);
    if (status)
        return status;
    token[strcspn(token, "\r\n")] = 0;
    const size_t length = strlen(token);
    const bool plain = strspn(token, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~") == length;
    if (length < TOKEN_LEAST || length > TOKEN_MOST || !plain)
        status = error_set(err, HFSAD_ERROR_INPUT,
                           "%.300s/dash.token: a token has %d to %d letters, digits or -._~ on one line, such as that "
                           "of openssl rand -hex 32",
                           folder, TOKEN_LEAST, TOKEN_MOST);
    else
        memcpy(s->token, token, length + 1);
    free(token);
    return status;
}

hfsad_status server_create(server **out, const server_settings *settings, hfsad_error *err)
{
    server *s = alloc_zero(1, sizeof *s);
    *out = NULL;
    if (!s)
        return error_memory(err, sizeof *s, "the dashboard");
    s->socket = -1;
    pthread_mutex_init(&s->lock, NULL);
    hfsad_status status = settings->keys ? read_keys(s, settings->keys, err) : HFSAD_OK;
    if (!status)
        status = open_port(s, settings, err);
    if (status)
        server_free(s);
    else
        *out = s;
    return status;
}

void server_free(server *s)
{
    if (!s)
        return;
    if (s->socket >= 0)
        close(s->socket);
    pthread_mutex_destroy(&s->lock);
    free(s->certificate);
    free(s->key);
    free(s);
}

int server_socket(const server *s)
{
    return s->socket;
}

void server_url(const server *s, char url[SERVER_URL_SIZE])
{
    const bool six = strchr(s->host, ':') != NULL;
    snprintf(url, SERVER_URL_SIZE, "%s://%s%s%s:%u/", s->certificate ? "https" : "http", six ? "[" : "", s->host,
             six ? "]" : "", s->port);
}

static hfsad_status start(server *s, hfsad_error *err)
{
    sigset_t all, old;
    const struct MHD_OptionItem tls[] = {{MHD_OPTION_HTTPS_MEM_CERT, 0, s->certificate},
                                         {MHD_OPTION_HTTPS_MEM_KEY, 0, s->key},
                                         {MHD_OPTION_END, 0, NULL}};
    const struct MHD_OptionItem none[] = {{MHD_OPTION_END, 0, NULL}};
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old);
    s->daemon =
        MHD_start_daemon(MHD_USE_AUTO_INTERNAL_THREAD | MHD_USE_ITC | MHD_ALLOW_SUSPEND_RESUME |
                             (s->certificate ? (unsigned)MHD_USE_TLS : 0U),
                         0, NULL, NULL, answer, s, MHD_OPTION_LISTEN_SOCKET, s->socket, MHD_OPTION_CONNECTION_LIMIT,
                         (unsigned)CONNECTIONS_MOST, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES,
                         MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_SECONDS, MHD_OPTION_ARRAY,
                         s->certificate ? tls : none, MHD_OPTION_END);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (!s->daemon)
        return error_set(err, HFSAD_ERROR_INPUT, "the dashboard does not start%s",
                         s->certificate ? ": dash.crt and dash.key are not a certificate and its key" : "");
    s->socket = -1; /* the daemon closes it */
    return HFSAD_OK;
}

hfsad_status server_run(server *s, const char *path, int64_t run, bool (*stopped)(void), hfsad_error *err)
{
    history *watch = NULL;
    s->run = run;
    hfsad_status status = history_open(&s->h, path, HISTORY_READ, err);
    if (!status)
        status = history_open(&watch, path, HISTORY_READ, err);
    if (!status)
        status = start(s, err);
    while (!status && !(stopped && stopped())) {
        atomic_store(&s->version, history_version(watch));
        wake_streams(s);
        poll(NULL, 0, TICK_MS);
    }
    if (s->daemon) {
        resume_all(s);
        MHD_stop_daemon(s->daemon);
    }
    s->daemon = NULL;
    history_close(watch);
    history_close(s->h);
    s->h = NULL;
    return status;
}
