/* A process of a federation: its brokers, its nodes, and the loop. */
#define _GNU_SOURCE /* getrandom */
#include "base/clock.h"
#include "member_parts.h"

#include "base/error.h"
#include "data/nodes.h"
#include "net/broker_url.h"
#include "net/certificate.h"
#include "net/cloud_engine.h"
#include "net/keys.h"
#include "progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

enum { ABOVE, BELOW };
/* How long a process that ends waits for the broker to have heard of it. */
enum { LEAVE_MS = 1000 };

/* ---- brokers ---- */

static bool is_here(const char *name)
{
    return !strcmp(name, "localhost") || !strncmp(name, "127.", 4) || !strcmp(name, "::1");
}

hfsad_status member_check_broker(const char *url, bool insecure, hfsad_error *err)
{
    broker_url where;
    const hfsad_status status = broker_url_read(&where, url, err);
    if (status || where.tls || !where.port || is_here(where.host) || insecure)
        return status;
    return error_set(err, HFSAD_ERROR_INPUT,
                     "broker '%.200s': models would be sent unencrypted; use mqtts:// with certificates of `hfsad "
                     "keys`, or --insecure",
                     url);
}

static hfsad_status open_way(const member *m, const char *url, const transport_handler *handler, transport **way,
                             hfsad_error *err)
{
    char ca[KEYS_FILE_MAX];
    const member_arguments *a = &m->args;
    snprintf(ca, sizeof ca, "%s/ca.crt", a->keys ? a->keys : "");
    const transport_broker broker = {
        .url = url,
        .ca = a->keys ? ca : a->ca,
        .certificate = a->certificate,
        .key = a->key,
        .keepalive_s = (int)a->keepalive,
    };
    return transport_mqtt_create(way, &broker, handler, err);
}

typedef struct {
    const char *above, *below;
} urls;

static urls urls_of(const member *m)
{
    const member_arguments *a = &m->args;
    const char *both = a->broker ? a->broker : "mqtt://localhost";
    const char *above = a->above ? a->above : both, *below = a->below ? a->below : both;
    return (urls){m->role == ROLE_CLOUD ? below : above, m->role == ROLE_CLIENT ? above : below};
}

static hfsad_status check_way(const member *m, const char *url, hfsad_error *err)
{
    transport *way = NULL;
    hfsad_status status = member_check_broker(url, m->args.insecure, err);
    if (!status)
        status = open_way(m, url, &(transport_handler){0}, &way, err);
    transport_free(way);
    return status;
}

/* Before anything is written. */
static hfsad_status check_ways(const member *m, hfsad_error *err)
{
    const urls u = urls_of(m);
    const hfsad_status status = check_way(m, u.above, err);
    return status ? status : check_way(m, u.below, err);
}

static hfsad_status open_ways(member *m, hfsad_error *err)
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

static hfsad_status join(member *m, size_t number, hfsad_error *err)
{
    char path[TOPIC_MAX], certificate[KEYS_FILE_MAX], key[KEYS_FILE_MAX];
    const dataset *d = federation_shape(m->f);
    nodes_name(d, number, path, sizeof path);
    if (number >= d->n_inner && !federation_has_rows(m->f, number - d->n_inner))
        return error_set(err, HFSAD_ERROR_INPUT, "%s: the data has no rows of this client; name its file with --data",
                         path);
    const bool own = m->args.keys && keys_node_files(m->args.keys, path, certificate, key);
    const char *public = own ? certificate : m->args.certificate, *private = own ? key : m->args.key;
    const hfsad_status status = public && private ? certificate_check_node(path, public, private, err) : HFSAD_OK;
    return status ? status : federation_join(m->f, m->h, number, own ? certificate : NULL, own ? key : NULL, err);
}

static hfsad_status find_node(const member *m, const char *name, bool leaf, size_t *number, hfsad_error *err)
{
    const dataset *d = federation_shape(m->f);
    *number = nodes_find(d, name);
    if (*number == SIZE_MAX || leaf != (*number >= d->n_inner))
        return error_set(err, HFSAD_ERROR_INPUT, "no %s %.200s in this federation; `hfsad nodes` lists its nodes",
                         leaf ? "client" : "inner node", name);
    return HFSAD_OK;
}

/* m->number: the node, or the edge whose clients are wanted. */
static hfsad_status check_names(member *m, hfsad_error *err)
{
    const bool all = m->args.all_of != NULL;
    if (m->role == ROLE_CLOUD)
        return HFSAD_OK;
    const hfsad_status status =
        find_node(m, all ? m->args.all_of : m->args.name, m->role == ROLE_CLIENT && !all, &m->number, err);
    if (!status && m->number == 0 && !all)
        return error_set(err, HFSAD_ERROR_INPUT, "start the cloud with `hfsad cloud`");
    if (!status && all && federation_shape(m->f)->inner[m->number].n_leaves == 0)
        return error_set(err, HFSAD_ERROR_INPUT, "%.200s has no clients as direct children", m->args.all_of);
    return status;
}

static hfsad_status join_all(member *m, hfsad_error *err)
{
    const dataset *d = federation_shape(m->f);
    hfsad_status status = HFSAD_OK;
    if (!m->args.all_of)
        return join(m, m->number, err);
    const inner_node *edge = &d->inner[m->number];
    for (size_t leaf = edge->first_leaf; leaf < edge->first_leaf + edge->n_leaves && !status; leaf++)
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

static hfsad_status open_metrics(member *m, hfsad_error *err)
{
    char text[100];
    if (!m->args.metrics)
        return HFSAD_OK;
    const hfsad_status status = metrics_create(&m->metrics, m->args.metrics, err);
    if (!status) {
        snprintf(text, sizeof text, "port %u, /metrics", metrics_port(m->metrics));
        member_log(&m->args, LOG_INFO, "", "serves metrics", text, "");
    }
    return status;
}

static hfsad_status open_host(member *m, hfsad_error *err)
{
    size_t prints;
    const double *about = federation_prints(m->f, &prints);
    const host_settings settings = {
        .run = m->spec->federation.name,
        .run_id = federation_run(m->f),
        .state = m->state,
        .about = about,
        .about_size = prints * sizeof *about,
        .encoding = (wire_encoding)m->spec->federation.wire,
        .local_seconds = m->spec->federation.local_seconds,
        .status_ms = 2000,
        .context = m,
        .event = member_on_event,
        .finish_row = member_on_finish_row,
        .other_run = member_on_other_run,
        .maker = m->f,
        .make = federation_make,
        .process = draw_process(),
    };
    const hfsad_status status = host_create(&m->h, &settings, err);
    return status ? status : open_ways(m, err);
}

static void tell_of_broker(member *m)
{
    if (m->down_since == 0 || m->down_told || clock_seconds() < m->down_since + 1)
        return;
    m->down_told = true;
    member_log(&m->args, LOG_WARNING, host_path(m->h, 0), "waits for the broker", m->down_text, "");
}

/* In synchronous mode all nodes wait for a missing one; log that. */
static void tell_of_neighbours(member *m)
{
    static const double patience = 10;
    const node *n = host_node(m->h, 0);
    const uint64_t round = n ? node_get_status(n).round + 1 : 0;
    const double now = clock_seconds();
    if (round != m->seen_round || m->seen_at == 0 || m->down_since > 0) {
        if (m->wait_told && m->down_since == 0)
            member_log(&m->args, LOG_INFO, host_path(m->h, 0), "goes on", "", "");
        m->seen_round = round;
        m->seen_at = now;
        m->wait_told = false;
    } else if (!m->wait_told && now > m->seen_at + patience) {
        m->wait_told = true;
        member_log(&m->args, LOG_INFO, host_path(m->h, 0), "waits for others",
                   n ? "no round for 10 s; `hfsad status` shows which nodes are up"
                     : "some nodes have not been heard; `hfsad status` shows which nodes are up",
                   "");
    }
}

/* Until all below know that the run is ended, or for so long. */
static void pass_the_end_on(member *m)
{
    static const double seconds = 6;
    hfsad_error err;
    const double end = clock_seconds() + seconds;
    while (!host_all_dismissed(m->h) && clock_seconds() < end && !cli_interrupted() && !host_step(m->h, 50, &err))
        continue;
    for (int i = 0; i < 3; i++)
        if (host_step(m->h, 10, &err))
            return;
}

/* The nodes that train with this cloud cannot see this error. */
static void dismiss(member *m, const hfsad_error *why)
{
    hfsad_error err;
    if (m->cloud && m->args.linger > 0 && !host_dismiss(m->h, why->message, &err))
        pass_the_end_on(m);
}

static hfsad_status turn(member *m, int64_t timeout_ms, hfsad_error *err)
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
    if (!status && m->cloud && m->begun)
        m->cloud->turn(m->cloud->context);
    return status;
}

/* Children that have not heard of the end ask for it again. */
static hfsad_status linger(member *m, hfsad_error *err)
{
    double quiet_since = clock_seconds();
    uint64_t heard = host_get_counts(m->h).heard;
    hfsad_status status = HFSAD_OK;
    while (!status && !cli_interrupted() && clock_seconds() < quiet_since + m->args.linger) {
        status = host_step(m->h, 50, err);
        metrics_turn(m->metrics, m->h);
        if (host_get_counts(m->h).heard != heard)
            quiet_since = clock_seconds();
        heard = host_get_counts(m->h).heard;
    }
    /* what was said last must leave before the connection does */
    for (int i = 0; i < 3 && !status; i++)
        status = host_step(m->h, 10, err);
    return status;
}

static hfsad_status turn_until_interrupted(void *context, hfsad_error *err)
{
    member *m = context;
    const hfsad_status status = turn(m, m->metrics ? 200 : 1000, err); /* a request for metrics waits for a turn */
    return status || !cli_interrupted() ? status : CLOUD_INTERRUPTED;
}

static hfsad_status play_cloud(member *m, const inquiry_turns *turns, hfsad_error *err)
{
    hfsad_status status = federation_play(m->f, m->h, turns, err);
    if (status)
        return status;
    status = m->cloud->begin(m->cloud->context, m, turns, err);
    m->begun = !status;
    return status ? status : m->cloud->train(m->cloud->context, err);
}

static int serve(member *m)
{
    hfsad_error err = {0};
    const inquiry_turns turns = {m, turn_until_interrupted};
    hfsad_status status = m->cloud ? play_cloud(m, &turns, &err) : HFSAD_OK;
    while (!m->cloud && !status && !host_ended(m->h))
        status = turns.turn(m, &err);
    cli_interrupts_heed();
    if (status == CLOUD_INTERRUPTED)
        status = HFSAD_OK;
    if (status == HFSAD_ERROR_INPUT && !m->is_wrong)
        dismiss(m, &err);
    if (status)
        return cli_fail(&err);
    int exit_status = cli_interrupted() ? 128 + cli_interrupted() : CLI_DONE;
    if (m->begun)
        exit_status = m->cloud->end(m->cloud->context, m);
    if (!cli_interrupted() && (member_write_record(m, &err) || (m->role != ROLE_CLIENT && linger(m, &err))))
        return cli_fail(&err);
    return exit_status;
}

static int set_up(member *m)
{
    hfsad_error err = {0};
    dataset *shape;
    int status = member_load(&m->spec, m->args.spec_path, &m->args.sets, m->args.command);
    if (status != CLI_GO)
        return status;
    if (member_find_scratch(m, &err) || member_read_shape(&shape, m->spec, m->scratch, &err) ||
        federation_create(&m->f, m->spec, shape, &err) || check_ways(m, &err) ||
        (m->role == ROLE_CLIENT && member_read_rows(m, &err)) || check_names(m, &err))
        return cli_fail(&err);
    if (m->cloud && (status = m->cloud->check(m->cloud->context, m)) != CLI_GO)
        return status;
    if (open_metrics(m, &err) || member_open_state(m, &err) || open_host(m, &err) || join_all(m, &err))
        return cli_fail(&err);
    return CLI_GO;
}

int member_run(const member_arguments *a, member_role role, const member_cloud *cloud)
{
    member m = {.args = *a, .role = role, .cloud = cloud};
    int status = set_up(&m);
    if (status == CLI_GO) {
        cli_catch_interrupts();
        status = serve(&m);
        host_leave(m.h, LEAVE_MS);
    }
    metrics_free(m.metrics);
    host_free(m.h);
    if (m.way[BELOW] != m.way[ABOVE])
        transport_free(m.way[BELOW]);
    transport_free(m.way[ABOVE]);
    member_close_state(&m);
    federation_free(m.f);
    free(m.scratch);
    hfsad_spec_free(m.spec);
    return status;
}
