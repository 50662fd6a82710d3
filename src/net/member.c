/* A process of a federation: its brokers, its nodes, and the loop. */
#define _GNU_SOURCE /* getrandom */
#include "net/member.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/read_file.h"
#include "data/nodes.h"
#include "net/broker_url.h"
#include "net/certificate.h"
#include "net/keys.h"
#include "spec/pack.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

enum { ABOVE, BELOW };
/* Upper limit on the wait of an ending process until the broker has its last messages. */
enum { LEAVE_MS = 1000 };

/* ---- brokers ---- */

static bool is_here(const char *name)
{
    return !strcmp(name, "localhost") || !strncmp(name, "127.", 4) || !strcmp(name, "::1");
}

hfsad_status member_check_broker(const char *url, bool insecure, hfsad_error *err)
{
    broker_urls where;
    const hfsad_status status = broker_urls_read(&where, url, err);
    bool here = true;
    for (size_t i = 0; i < where.count && !status; i++)
        here = here && (!where.list[i].port || is_here(where.list[i].host));
    if (status || where.tls || here || insecure)
        return status;
    return error_set(err, HFSAD_ERROR_INPUT,
                     "broker '%.200s': models would be sent unencrypted; use mqtts:// with certificates of `hfsad "
                     "keys`, or allow it",
                     url);
}

static hfsad_status open_way(const hfsad_member *m, const char *url, const transport_handler *handler, transport **way,
                             hfsad_error *err)
{
    char ca[KEYS_FILE_MAX];
    const hfsad_member_settings *a = &m->s;
    snprintf(ca, sizeof ca, "%s/ca.crt", a->keys ? a->keys : "");
    const transport_broker broker = {
        .url = url,
        .ca = a->keys ? ca : a->ca,
        .certificate = a->certificate,
        .key = a->key,
        .keepalive_s = a->keepalive,
    };
    return transport_mqtt_create(way, &broker, handler, err);
}

typedef struct {
    const char *above, *below;
} urls;

static urls urls_of(const hfsad_member *m)
{
    const hfsad_member_settings *a = &m->s;
    const char *both = a->broker ? a->broker : "mqtt://localhost";
    const char *above = a->above ? a->above : both, *below = a->below ? a->below : both;
    return (urls){m->s.role == HFSAD_ROLE_CLOUD ? below : above, m->s.role == HFSAD_ROLE_CLIENT ? above : below};
}

static hfsad_status check_way(const hfsad_member *m, const char *url, hfsad_error *err)
{
    transport *way = NULL;
    hfsad_status status = member_check_broker(url, m->s.insecure, err);
    if (!status)
        status = open_way(m, url, &(transport_handler){0}, &way, err);
    transport_free(way);
    return status;
}

/* Before anything is written. */
static hfsad_status check_ways(const hfsad_member *m, hfsad_error *err)
{
    const urls u = urls_of(m);
    const hfsad_status status = check_way(m, u.above, err);
    return status ? status : check_way(m, u.below, err);
}

static hfsad_status open_ways(hfsad_member *m, hfsad_error *err)
{
    const urls u = urls_of(m);
    const transport_handler above = host_handler(m->h, true), below = host_handler(m->h, false);
    hfsad_status status = open_way(m, u.above, &above, &m->way[ABOVE], err);
    m->way[BELOW] = m->way[ABOVE];
    if (!status && strcmp(u.above, u.below) != 0)
        status = open_way(m, u.below, &below, &m->way[BELOW], err);
    host_connect(m->h, m->way[ABOVE], m->way[BELOW]);
    return status;
}

/* ---- nodes ---- */

static hfsad_status join(hfsad_member *m, size_t number, hfsad_error *err)
{
    char path[TOPIC_MAX], certificate[KEYS_FILE_MAX], key[KEYS_FILE_MAX];
    const dataset *d = federation_shape(m->f);
    nodes_name(d, number, path, sizeof path);
    if (number >= d->n_inner && !federation_has_rows(m->f, number - d->n_inner))
        return error_set(err, HFSAD_ERROR_INPUT, "%s: the data has no rows of this client; name its file of rows",
                         path);
    const bool own = m->s.keys && keys_node_files(m->s.keys, path, certificate, key);
    const char *public = own ? certificate : m->s.certificate, *private = own ? key : m->s.key;
    const hfsad_status status = public && private ? certificate_check_node(path, public, private, err) : HFSAD_OK;
    char ca[KEYS_FILE_MAX];
    snprintf(ca, sizeof ca, "%s/ca.crt", m->s.keys ? m->s.keys : "");
    const federation_files files = {own ? certificate : NULL, own ? key : NULL, public, private,
                                    m->s.keys ? ca : m->s.ca};
    return status ? status : federation_join(m->f, m->h, number, &files, err);
}

static hfsad_status find_node(const hfsad_member *m, const char *name, bool leaf, size_t *number, hfsad_error *err)
{
    const dataset *d = federation_shape(m->f);
    *number = nodes_find(d, name);
    if (*number == SIZE_MAX || leaf != (*number >= d->n_inner))
        return error_set(err, HFSAD_ERROR_INPUT, "no %s %.200s in this federation; `hfsad nodes` lists its nodes",
                         leaf ? "client" : "inner node", name);
    return HFSAD_OK;
}

/* m->number: the node, or the edge whose clients are wanted. */
static hfsad_status check_names(hfsad_member *m, hfsad_error *err)
{
    const bool all = m->s.all_of != NULL;
    if (m->s.role == HFSAD_ROLE_CLOUD)
        return HFSAD_OK;
    const hfsad_status status =
        find_node(m, all ? m->s.all_of : m->s.name, m->s.role == HFSAD_ROLE_CLIENT && !all, &m->number, err);
    if (!status && m->number == 0 && !all)
        return error_set(err, HFSAD_ERROR_INPUT, "start the cloud with `hfsad cloud`");
    if (!status && all && federation_shape(m->f)->inner[m->number].n_leaves == 0)
        return error_set(err, HFSAD_ERROR_INPUT, "%.200s has no clients as direct children", m->s.all_of);
    return status;
}

static hfsad_status join_all(hfsad_member *m, hfsad_error *err)
{
    const dataset *d = federation_shape(m->f);
    hfsad_status status = HFSAD_OK;
    if (!m->s.all_of)
        return join(m, m->number, err);
    const inner_node *edge = &d->inner[m->number];
    for (size_t leaf = edge->first_leaf; leaf < edge->first_leaf + edge->n_leaves && !status; leaf++)
        if (!dataset_is_later(d, leaf) || federation_has_rows(m->f, leaf)) /* else another process has it */
            status = join(m, d->n_inner + leaf, err);
    return status;
}

/* ---- the loop ---- */

static uint64_t draw_process(void)
{
    uint64_t drawn = 0;
    while (drawn == 0)
        if (getrandom(&drawn, sizeof drawn, 0) != sizeof drawn)
            drawn = (uint64_t)clock();
    return drawn >> 12 | 1;
}

static hfsad_status open_metrics(hfsad_member *m, hfsad_error *err)
{
    char text[100];
    if (!m->s.metrics)
        return HFSAD_OK;
    const hfsad_status status = metrics_create(&m->metrics, m->s.metrics, err);
    if (!status) {
        snprintf(text, sizeof text, "port %u, /metrics", metrics_port(m->metrics));
        member_log(m, HFSAD_LOG_INFO, "", "serves metrics", text, "");
    }
    return status;
}

/* Anyone who can read the secret can impersonate any node. */
static hfsad_status read_secret(hfsad_member *m, hfsad_error *err)
{
    enum { LEAST = 16, MOST = 4096 };
    struct stat about;
    const char *name = m->s.secret;
    if (!name)
        return HFSAD_OK;
    if (m->s.keys || m->s.certificate)
        return error_set(err, HFSAD_ERROR_INPUT, "give a secret or certificates, not both");
    const int reason = stat(name, &about) ? errno : file_read(name, MOST, &m->secret, &m->secret_size);
    if (reason)
        return error_set(err, HFSAD_ERROR_INPUT, "%.300s: %s", name, strerror(reason));
    if (about.st_mode & (S_IRWXG | S_IRWXO))
        return error_set(err, HFSAD_ERROR_INPUT, "%.300s: other users can read this secret; set its mode to 0600",
                         name);
    if (m->secret_size < LEAST)
        return error_set(err, HFSAD_ERROR_INPUT, "%.300s: a secret has %d to %d bytes", name, LEAST, MOST);
    return HFSAD_OK;
}

static hfsad_status open_host(hfsad_member *m, hfsad_error *err)
{
    snprintf(m->ca, sizeof m->ca, "%s/ca.crt", m->s.keys ? m->s.keys : "");
    snprintf(m->revoked, sizeof m->revoked, "%s/revoked.crl", m->s.keys ? m->s.keys : "");
    size_t prints;
    const double *about = federation_prints(m->f, &prints);
    const host_settings settings = {
        .run = m->spec->federation.name,
        .run_id = federation_run(m->f),
        .state = m->state,
        .about = about,
        .about_size = prints * sizeof *about,
        .encoding = spec_is_fixed(m->spec) ? WIRE_FIXED : (wire_encoding)m->spec->federation.wire,
        .local_seconds = m->spec->federation.local_seconds,
        .fleeting = !m->spec->federation.retain,
        .status_ms = 2000,
        .context = m,
        .event = member_on_event,
        .finish_row = member_on_finish_row,
        .other_run = member_on_other_run,
        .maker = m->f,
        .make = federation_make,
        .lived = federation_note_life,
        .knows = federation_knows,
        .process = draw_process(),
        .audit = m->audit ? member_on_audit : NULL,
        .secret = m->secret,
        .secret_size = m->secret_size,
        .files = {.ca = m->s.keys ? m->ca : m->s.ca,
                  .revoked = m->s.keys ? m->revoked : NULL,
                  .certificate = m->s.certificate,
                  .key = m->s.key},
    };
    const hfsad_status status = host_create(&m->h, &settings, err);
    return status ? status : open_ways(m, err);
}

static void tell_of_broker(hfsad_member *m)
{
    if (m->down_since == 0 || m->down_told || clock_seconds() < m->down_since + 1)
        return;
    m->down_told = true;
    member_log(m, HFSAD_LOG_WARNING, host_path(m->h, 0), "waits for the broker", m->down_text, "");
}

/* In synchronous mode all nodes wait for a missing one; log that. */
static void tell_of_neighbours(hfsad_member *m)
{
    static const double patience = 10;
    const node *n = host_node(m->h, 0);
    const node_status status = n ? node_get_status(n) : (node_status){0};
    const uint64_t round = n ? status.round + status.k + 1 : 0; /* asynchronous: only k moves */
    const double now = clock_seconds();
    if (round != m->seen_round || m->seen_at == 0 || m->down_since > 0) {
        if (m->wait_told && m->down_since == 0)
            member_log(m, HFSAD_LOG_INFO, host_path(m->h, 0), "goes on", "", "");
        m->seen_round = round;
        m->seen_at = now;
        m->wait_told = false;
    } else if (!m->wait_told && now > m->seen_at + patience) {
        char names[500];
        host_describe_waits(m->h, 0, names, sizeof names);
        m->wait_told = true;
        member_log(m, HFSAD_LOG_INFO, host_path(m->h, 0), names[0] ? "waits for" : "waits for others",
                   names[0] ? names
                   : n      ? "no round for 10 s; `hfsad status` shows which nodes are up"
                            : "no question of the set-up has come; `hfsad status` shows which nodes are up",
                   "");
    }
}

/* Between turns: false if the member is cancelled. */
static bool goes_on(hfsad_member *m)
{
    const node *n = host_node(m->h, 0);
    const hfsad_turn now = {n ? node_get_status(n).round : 0, m->cloud.has_row ? &m->cloud.figures : NULL};
    if (m->s.turn && !m->s.turn(m->s.context, &now))
        hfsad_member_cancel(m);
    return !atomic_load(&m->cancelled);
}

/* Until all below know that the run has ended, or until the time is over. */
static void pass_the_end_on(hfsad_member *m)
{
    static const double seconds = 6;
    hfsad_error err;
    const double end = clock_seconds() + seconds;
    while (!host_all_dismissed(m->h) && clock_seconds() < end && goes_on(m) && !host_step(m->h, 50, &err))
        continue;
    for (int i = 0; i < 3; i++)
        if (host_step(m->h, 10, &err))
            return;
}

/* The nodes that train with this cloud cannot see this error. */
static void dismiss(hfsad_member *m, const hfsad_error *why)
{
    hfsad_error err;
    if (m->s.role == HFSAD_ROLE_CLOUD && m->s.linger > 0 && !host_dismiss(m->h, why->message, &err))
        pass_the_end_on(m);
}

static hfsad_status turn(hfsad_member *m, int64_t timeout_ms, hfsad_error *err)
{
    hfsad_status status = host_step(m->h, timeout_ms, err);
    metrics_turn(m->metrics, m->h);
    tell_of_broker(m);
    tell_of_neighbours(m);
    if (!status && !m->is_wrong && federation_broken(m->f)) {
        error_set(&m->wrong, HFSAD_ERROR_INPUT, "%.200s: %.400s", host_path(m->h, 0), federation_broken(m->f)->message);
        m->is_wrong = true;
    }
    if (!status && m->is_wrong) {
        if (m->is_dismissed)
            pass_the_end_on(m);
        *err = m->wrong;
        status = HFSAD_ERROR_INPUT;
    }
    if (!status && m->s.role == HFSAD_ROLE_CLOUD)
        member_readmit(m);
    if (!status && member_has_grown(m))
        status = MEMBER_GROWN;
    (void)goes_on(m);
    return status;
}

/* Children that do not know of the end yet ask again. */
static hfsad_status linger(hfsad_member *m, hfsad_error *err)
{
    double quiet_since = clock_seconds();
    uint64_t heard = host_get_counts(m->h).heard;
    hfsad_status status = HFSAD_OK;
    while (!status && goes_on(m) && clock_seconds() < quiet_since + m->s.linger) {
        status = host_step(m->h, 50, err);
        metrics_turn(m->metrics, m->h);
        if (host_get_counts(m->h).heard != heard)
            quiet_since = clock_seconds();
        heard = host_get_counts(m->h).heard;
    }
    /* the last messages must be sent before the connection closes */
    for (int i = 0; i < 3 && !status; i++)
        status = host_step(m->h, 10, err);
    return status;
}

/* A client whose run had ended before its process was started reports this: a parent with an old copy of the client's
 * state would wait for it. */
static hfsad_status say_the_end(hfsad_member *m, hfsad_error *err)
{
    static const double seconds = 3;
    const double end = clock_seconds() + seconds;
    hfsad_status status = HFSAD_OK;
    while (!status && !host_is_connected(m->h) && clock_seconds() < end && goes_on(m))
        status = host_step(m->h, 50, err);
    return status;
}

static hfsad_status turn_until_cancelled(void *context, hfsad_error *err)
{
    hfsad_member *m = context;
    const hfsad_status status = turn(m, m->metrics ? 200 : 1000, err); /* a request for metrics waits for a turn */
    return status || !atomic_load(&m->cancelled) ? status : CLOUD_INTERRUPTED;
}

static hfsad_status play(hfsad_member *m, hfsad_error *err)
{
    const inquiry_turns turns = {m, turn_until_cancelled};
    hfsad_status status = HFSAD_OK;
    if (m->s.role != HFSAD_ROLE_CLOUD) {
        while (!status && !host_ended(m->h))
            status = turns.turn(m, err);
        m->stop = status ? HFSAD_STOP_INTERRUPTED : HFSAD_STOP_ITERATIONS;
    } else if (!(status = federation_play(m->f, m->h, &turns, err))) {
        status = member_train(m, &turns, err);
    }
    return status == CLOUD_INTERRUPTED ? HFSAD_OK : status;
}

static hfsad_status serve(hfsad_member *m, hfsad_error *err)
{
    hfsad_status status = play(m, err);
    if (status == HFSAD_ERROR_INPUT && !m->is_wrong)
        dismiss(m, err);
    if (status || m->stop == HFSAD_STOP_INTERRUPTED)
        return status;
    status = member_write_record(m, err);
    if (!status)
        status = member_write_own(m, err);
    return status ? status : m->s.role == HFSAD_ROLE_CLIENT ? say_the_end(m, err) : linger(m, err);
}

hfsad_status hfsad_member_run(hfsad_member *m, hfsad_stop *stop, hfsad_error *err)
{
    const hfsad_status served = serve(m, err), status = served == MEMBER_GROWN ? HFSAD_OK : served;
    host_leave(m->h, LEAVE_MS);
    if (stop)
        *stop = m->stop;
    return status;
}

void hfsad_member_cancel(hfsad_member *m)
{
    atomic_store(&m->cancelled, true);
}

/* ---- set-up ---- */

static hfsad_status copy_settings(hfsad_member *m, const hfsad_member_settings *given, hfsad_error *err)
{
    hfsad_member_settings *s = &m->s;
    const char **const all[] = {&s->name,  &s->all_of, &s->nodes,   &s->data_file, &s->broker,      &s->above,
                                &s->below, &s->keys,   &s->ca,      &s->key,       &s->certificate, &s->state,
                                &s->out,   &s->record, &s->metrics, &s->secret,    &s->audit};
    static_assert(sizeof all / sizeof *all <= sizeof m->texts / sizeof *m->texts, "room for all texts");
    memcpy(s, given, given->size < sizeof *s ? given->size : sizeof *s);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (*all[i] && !(m->texts[i] = strdup(*all[i])))
            return error_memory(err, strlen(*all[i]), "a text");
        *all[i] = m->texts[i];
    }
    if (s->role == HFSAD_ROLE_CLOUD)
        s->name = "cloud";
    if (!s->state)
        return error_set(err, HFSAD_ERROR_INPUT, "a process of a federation needs a state folder");
    if (s->role == HFSAD_ROLE_CLOUD && !s->out)
        return error_set(err, HFSAD_ERROR_INPUT, "the cloud needs an output folder");
    if (!s->name == !s->all_of || (s->all_of && s->role != HFSAD_ROLE_CLIENT))
        return error_set(err, HFSAD_ERROR_INPUT, "give the name of the node, or the node whose clients are wanted");
    return HFSAD_OK;
}

static hfsad_status open_all(hfsad_member *m, hfsad_error *err)
{
    dataset *shape;
    hfsad_status status = member_find_scratch(m, err);
    member_note_list(m);
    if (!status)
        status = member_shape(&shape, m->spec, m->s.nodes, m->scratch, err);
    if (!status)
        status = federation_create(&m->f, m->spec, shape, err);
    if (!status)
        status = read_secret(m, err);
    if (!status)
        status = member_open_audit(m, err);
    if (!status)
        status = check_ways(m, err);
    if (!status && m->s.role == HFSAD_ROLE_CLIENT)
        status = member_read_rows(m, err);
    if (!status)
        status = check_names(m, err);
    if (!status && m->s.role == HFSAD_ROLE_CLOUD)
        status = member_open_out(m, err);
    if (!status)
        status = open_metrics(m, err);
    if (!status)
        status = member_open_state(m, err);
    if (!status)
        status = open_host(m, err);
    return status ? status : join_all(m, err);
}

hfsad_status hfsad_member_create(hfsad_member **member, const hfsad_spec *spec, const hfsad_member_settings *settings,
                                 hfsad_error *err)
{
    hfsad_member *m = alloc_zero(1, sizeof *m);
    *member = NULL;
    if (!m)
        return error_memory(err, sizeof *m, "a process of a federation");
    m->cloud.lock = -1;
    m->stop = HFSAD_STOP_INTERRUPTED;
    hfsad_status status = copy_settings(m, settings, err);
    if (!status)
        status = spec_check_settings(spec, !m->s.nodes, err);
    if (!status)
        status = spec_copy(&m->spec, spec, err);
    if (!status && m->s.role == HFSAD_ROLE_CLIENT && spec->loss.kind == (int)HFSAD_LOSS_OWN && !spec->own.value)
        status = error_set(err, HFSAD_ERROR_INPUT,
                           "loss.kind: own: no loss was supplied; a program supplies it through hfsad_spec_own_loss");
    if (!status) {
        m->spec->own_elsewhere = true;
        status = open_all(m, err);
    }
    if (status) {
        hfsad_member_free(m);
        return status;
    }
    *member = m;
    return HFSAD_OK;
}

void hfsad_member_free(hfsad_member *m)
{
    if (!m)
        return;
    metrics_free(m->metrics);
    host_free(m->h);
    if (m->way[BELOW] != m->way[ABOVE])
        transport_free(m->way[BELOW]);
    transport_free(m->way[ABOVE]);
    member_close_out(m);
    member_close_state(m);
    federation_free(m->f);
    if (m->secret)
        explicit_bzero(m->secret, m->secret_size);
    free(m->secret);
    if (m->audit)
        fclose(m->audit);
    free(m->scratch);
    hfsad_spec_free(m->spec);
    for (size_t i = 0; i < sizeof m->texts / sizeof *m->texts; i++)
        free(m->texts[i]);
    free(m);
}
