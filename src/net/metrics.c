/* The HTTP server of metrics.h. */
#define _GNU_SOURCE /* pthread_cond_clockwait's clock */
#include "net/metrics.h"

#include "base/address.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"

#include <microhttpd.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A connection lasts LIFE_MS at most, whatever comes of it: a caller that asks for nothing, or byte by byte, must not
 * keep the others out. */
enum { CONNECTIONS_MOST = 128, CONNECTION_BYTES = 8192, PATIENCE_SECONDS = 2, LIFE_MS = 3000 };

typedef struct {
    int fd;
    uint64_t since;
} caller;

struct metrics {
    struct MHD_Daemon *daemon;
    unsigned port;
    pthread_mutex_t lock;
    pthread_cond_t written;
    bool wanted, closing;
    uint64_t number; /* of the text */
    char *text;      /* NULL: none yet */
    size_t size;
    caller callers[CONNECTIONS_MOST];
    size_t n_callers;
};

/* ---- a request, in the server's thread ---- */

/* A copy of a text that was written after this call began, or of the last one if the loop is busy for long. */
static char *await_text(metrics *m, size_t *size)
{
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += PATIENCE_SECONDS;
    pthread_mutex_lock(&m->lock);
    const uint64_t before = m->number;
    m->wanted = true;
    int code = 0;
    while (m->number == before && !m->closing && code == 0)
        code = pthread_cond_timedwait(&m->written, &m->lock, &end);
    char *copy = m->text ? malloc(m->size + 1) : NULL;
    *size = m->size;
    if (copy)
        memcpy(copy, m->text, m->size);
    pthread_mutex_unlock(&m->lock);
    return copy;
}

static enum MHD_Result reply(struct MHD_Connection *to, unsigned status, const char *type, char *text, size_t size)
{
    struct MHD_Response *r = MHD_create_response_from_buffer(size, text, MHD_RESPMEM_MUST_FREE);
    if (!r) {
        free(text);
        return MHD_NO;
    }
    MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    const enum MHD_Result queued = MHD_queue_response(to, status, r);
    MHD_destroy_response(r);
    return queued;
}

static enum MHD_Result reply_line(struct MHD_Connection *to, unsigned status, const char *line)
{
    char *text = strdup(line);
    return text ? reply(to, status, "text/plain; charset=utf-8", text, strlen(text)) : MHD_NO;
}

static enum MHD_Result answer(void *context, struct MHD_Connection *from, const char *url, const char *method,
                              const char *version, const char *upload, size_t *upload_size, void **request)
{
    metrics *m = context;
    (void)version;
    (void)upload;
    (void)request;
    if (*upload_size > 0) { /* a body: passed over, the answer comes after its end */
        *upload_size = 0;
        return MHD_YES;
    }
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
        return reply_line(from, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET\n");
    if (strcmp(url, "/metrics") != 0)
        return reply_line(from, MHD_HTTP_NOT_FOUND, "see /metrics\n");
    size_t size;
    char *text = await_text(m, &size);
    if (!text)
        return reply_line(from, MHD_HTTP_SERVICE_UNAVAILABLE, "nothing yet\n");
    return reply(from, MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8", text, size);
}

/* A connection has begun, or is about to be closed. */
static void on_connection(void *context, struct MHD_Connection *c, void **own, enum MHD_ConnectionNotificationCode code)
{
    metrics *m = context;
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
    (void)own;
    if (!info)
        return;
    pthread_mutex_lock(&m->lock);
    if (code == MHD_CONNECTION_NOTIFY_STARTED && m->n_callers < CONNECTIONS_MOST)
        m->callers[m->n_callers++] = (caller){info->connect_fd, clock_ms()};
    for (size_t i = 0; code == MHD_CONNECTION_NOTIFY_CLOSED && i < m->n_callers; i++)
        if (m->callers[i].fd == info->connect_fd)
            m->callers[i--] = m->callers[--m->n_callers];
    pthread_mutex_unlock(&m->lock);
}

/* ---- the loop's thread ---- */

/* Under the lock, so that the server has not closed them meanwhile; it does so next. */
static void hang_up(metrics *m)
{
    const uint64_t now = clock_ms();
    for (size_t i = 0; i < m->n_callers; i++)
        if (now > m->callers[i].since + LIFE_MS)
            shutdown(m->callers[i].fd, SHUT_RDWR);
}

void metrics_turn(metrics *m, const host *h)
{
    if (!m)
        return;
    pthread_mutex_lock(&m->lock);
    const bool wanted = m->wanted;
    hang_up(m);
    pthread_mutex_unlock(&m->lock);
    if (!wanted)
        return;
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    if (!f)
        return;
    metrics_write(f, h);
    if (fclose(f) != 0) {
        free(text);
        return;
    }
    pthread_mutex_lock(&m->lock);
    free(m->text);
    m->text = text;
    m->size = size;
    m->number++;
    m->wanted = false;
    pthread_cond_broadcast(&m->written);
    pthread_mutex_unlock(&m->lock);
}

/* ---- set-up ---- */

static hfsad_status open_socket(const char *address, int *fd, unsigned *port, hfsad_error *err)
{
    char name[ADDRESS_HOST_SIZE];
    struct addrinfo *found;
    hfsad_status status = address_find("metrics", address, "127.0.0.1:9100", name, &found, err);
    if (status)
        return status;
    status = address_listen("metrics", address, found, CONNECTIONS_MOST, fd, err);
    freeaddrinfo(found);
    if (!status)
        *port = address_port(*fd);
    return status;
}

static void init_locks(metrics *m)
{
    pthread_condattr_t kind;
    pthread_condattr_init(&kind);
    pthread_condattr_setclock(&kind, CLOCK_MONOTONIC);
    pthread_cond_init(&m->written, &kind);
    pthread_condattr_destroy(&kind);
    pthread_mutex_init(&m->lock, NULL);
}

hfsad_status metrics_create(metrics **out, const char *address, hfsad_error *err)
{
    *out = NULL;
    metrics *m = alloc_zero(1, sizeof *m);
    if (!m)
        return error_memory(err, sizeof *m, "the metrics");
    init_locks(m);
    int fd = -1;
    hfsad_status status = open_socket(address, &fd, &m->port, err);
    if (!status) {
        sigset_t all, old;
        sigfillset(&all);
        pthread_sigmask(SIG_BLOCK, &all, &old); /* Ctrl-C must wake the loop, not the server */
        m->daemon = MHD_start_daemon(
            MHD_USE_AUTO_INTERNAL_THREAD | MHD_USE_ITC, 0, NULL, NULL, answer, m, MHD_OPTION_LISTEN_SOCKET, fd,
            MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MOST, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
            (size_t)CONNECTION_BYTES, MHD_OPTION_NOTIFY_CONNECTION, on_connection, m, MHD_OPTION_END);
        pthread_sigmask(SIG_SETMASK, &old, NULL);
        if (!m->daemon) {
            close(fd);
            status = error_set(err, HFSAD_ERROR_IO, "the metrics server at '%.200s' does not start", address);
        }
    }
    if (status)
        metrics_free(m);
    else
        *out = m;
    return status;
}

void metrics_free(metrics *m)
{
    if (!m)
        return;
    pthread_mutex_lock(&m->lock);
    m->closing = true;
    pthread_cond_broadcast(&m->written);
    pthread_mutex_unlock(&m->lock);
    if (m->daemon)
        MHD_stop_daemon(m->daemon);
    pthread_cond_destroy(&m->written);
    pthread_mutex_destroy(&m->lock);
    free(m->text);
    free(m);
}

unsigned metrics_port(const metrics *m)
{
    return m->port;
}
