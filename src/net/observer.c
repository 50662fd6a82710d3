/* The observer of net.h: STATUS messages of all nodes, from one broker or several. */
#define _POSIX_C_SOURCE 200809L
#include "net/keys.h"
#include "net/member.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "data/nodes.h"
#include "spec/pack.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STALE_MS = 15000 };

/* The last report of a node at a broker. */
typedef struct {
    bool heard, lives, has_numbers; /* a will has none */
    uint64_t run, phase, round;
    double values[HOST_STATUS_NUMBERS];
} report_of;

typedef struct {
    hfsad_observer *all;
    char *url;
    transport *way;
    report_of *nodes;
    size_t n_heard;
    double connected; /* since when, on clock_seconds; 0: not connected */
    char why[300];    /* reason why not */
} lookout;

struct hfsad_observer {
    hfsad_spec *spec;
    federation *f;
    lookout *from;
    size_t n_from;
    char *keys, *ca, *certificate, *key; /* NULL: not given */
    bool insecure;
    uint64_t heard;
    hfsad_error wrong;
    bool is_wrong;
};

static void receive(void *context, size_t member, const char *topic, const void *bytes, size_t size)
{
    lookout *from = context;
    const hfsad_observer *o = from->all;
    char path[TOPIC_MAX];
    topic_kind kind;
    message m;
    double values[HOST_STATUS_NUMBERS] = {0};
    (void)member;
    if (!topic_read(topic, o->spec->federation.name, path, &kind) || kind != TOPIC_STATUS ||
        message_decode(NULL, bytes, message_frame_size(bytes, size), NULL, values, HOST_STATUS_NUMBERS, &m))
        return;
    const size_t number = nodes_find(federation_shape(o->f), path);
    if (number == SIZE_MAX)
        return;
    report_of *r = &from->nodes[number];
    from->n_heard += !r->heard;
    from->all->heard++;
    *r = (report_of){true, m.k > 0, m.count >= HOST_STATUS_ITERATION, m.run, m.phase, m.round, {0}};
    memcpy(r->values, values, sizeof values);
}

static void event(void *context, size_t member, transport_event what, const char *why)
{
    lookout *from = context;
    hfsad_observer *o = from->all;
    (void)member;
    if (what == TRANSPORT_UP)
        from->connected = clock_seconds();
    if (what == TRANSPORT_DOWN)
        snprintf(from->why, sizeof from->why, "%s", why);
    if (what == TRANSPORT_REFUSED && !o->is_wrong) {
        error_set(&o->wrong, HFSAD_ERROR_INPUT, "broker '%.200s': %.350s", from->url, why);
        o->is_wrong = true;
    }
}

static hfsad_status join(const hfsad_observer *o, transport *t, hfsad_error *err)
{
    char filters[HFSAD_TIERS_MAX + 1][TOPIC_MAX];
    const char *list[HFSAD_TIERS_MAX + 1];
    char path[2 * HFSAD_TIERS_MAX + 2] = "+", certificate[KEYS_FILE_MAX], key[KEYS_FILE_MAX];
    size_t number;
    const uint32_t depth = federation_shape(o->f)->depth;
    for (uint32_t i = 0; i < depth; i++) {
        if (!topic_write(filters[i], o->spec->federation.name, path, TOPIC_STATUS))
            return error_set(err, HFSAD_ERROR_INPUT, "federation.name is too long");
        list[i] = filters[i];
        strcat(path, "/+");
    }
    const bool own = o->keys && keys_node_files(o->keys, KEYS_OBSERVER, certificate, key);
    const transport_member observer = {.name = KEYS_OBSERVER,
                                       .filters = list,
                                       .n_filters = depth,
                                       .certificate = own ? certificate : NULL,
                                       .key = own ? key : NULL};
    return transport_join(t, &observer, &number, err);
}

size_t hfsad_observer_nodes(const hfsad_observer *o)
{
    const dataset *d = federation_shape(o->f);
    return d->n_inner + d->n_leaves;
}

static hfsad_status open_lookout(hfsad_observer *o, lookout *from, const char *url, hfsad_error *err)
{
    char ca[KEYS_FILE_MAX];
    snprintf(ca, sizeof ca, "%s/ca.crt", o->keys ? o->keys : "");
    const transport_broker broker = {
        .url = url, .ca = o->keys ? ca : o->ca, .certificate = o->certificate, .key = o->key};
    const transport_handler handler = {from, receive, event};
    *from = (lookout){.all = o, .url = strdup(url), .nodes = alloc_zero(hfsad_observer_nodes(o), sizeof *from->nodes)};
    if (!from->nodes || !from->url)
        return error_memory(err, hfsad_observer_nodes(o) * sizeof *from->nodes, "the nodes");
    hfsad_status status = member_check_broker(url, o->insecure, err);
    if (!status)
        status = transport_mqtt_create(&from->way, &broker, &handler, err);
    return status ? status : join(o, from->way, err);
}

/* A broker that is down is waited for a little longer. Several have different nodes. */
static bool is_waiting(const hfsad_observer *o, const lookout *from, double begun, double seconds, bool all)
{
    if (all && o->n_from == 1 && from->n_heard == hfsad_observer_nodes(o))
        return false;
    if (!all)
        return clock_seconds() < begun + seconds;
    return clock_seconds() < (from->connected > 0 ? from->connected : begun + 4 * seconds) + seconds;
}

hfsad_status hfsad_observer_wait(hfsad_observer *o, double seconds, bool all, hfsad_error *err)
{
    const double begun = clock_seconds();
    hfsad_status status = HFSAD_OK;
    bool waiting = true;
    while (!status && !o->is_wrong && waiting) {
        waiting = false;
        for (size_t i = 0; i < o->n_from && !status; i++) {
            status = transport_wait(o->from[i].way, o->n_from > 1 ? 5 : 20, err);
            waiting = waiting || is_waiting(o, &o->from[i], begun, seconds, all);
        }
    }
    if (!status && o->is_wrong) {
        if (err)
            *err = o->wrong;
        return HFSAD_ERROR_INPUT;
    }
    return status;
}

/* ---- what a node is ---- */

static double age_ms(const report_of *r)
{
    return (double)clock_wall_ms() - r->values[HOST_STATUS_SAID];
}

static bool is_live(const report_of *r)
{
    return r->lives && r->has_numbers && age_ms(r) <= STALE_MS;
}

/* Of two reports on a node from two brokers, whether b is better: a live report first; then the later of two reports
 * with times; a will, which has no time, before an old report. */
static bool is_better(const report_of *a, const report_of *b)
{
    if (!a->heard || !b->heard)
        return b->heard;
    if (is_live(a) != is_live(b))
        return is_live(b);
    if (a->has_numbers && b->has_numbers)
        return age_ms(b) < age_ms(a);
    return a->has_numbers ? a->lives : !b->lives;
}

static const report_of *report_on(const hfsad_observer *o, size_t number)
{
    const report_of *best = &o->from[0].nodes[number];
    for (size_t i = 1; i < o->n_from; i++)
        if (is_better(best, &o->from[i].nodes[number]))
            best = &o->from[i].nodes[number];
    return best;
}

static uint64_t phase_of(const report_of *r)
{
    return r->phase & ((1 << NODE_PHASE_BITS) - 1);
}

static hfsad_seen_state state_of(const hfsad_observer *o, const report_of *r)
{
    if (!r->heard)
        return HFSAD_SEEN_UNKNOWN;
    if (r->run == federation_run(o->f) && phase_of(r) == NODE_PHASE_FINAL && !is_live(r))
        return HFSAD_SEEN_DONE;
    if (!r->lives)
        return HFSAD_SEEN_GONE;
    if (r->run != federation_run(o->f))
        return HFSAD_SEEN_OTHER_RUN;
    return is_live(r) ? HFSAD_SEEN_LIVE : HFSAD_SEEN_STALE;
}

const char *hfsad_seen_state_name(hfsad_seen_state state)
{
    static const char *const names[] = {"unknown", "live", "stale", "gone", "done", "other run"};
    return (size_t)state < sizeof names / sizeof *names ? names[state] : "unknown";
}

static const char *phase_name(const report_of *r)
{
    if (!r->has_numbers)
        return "-";
    const uint64_t phase = phase_of(r);
    return phase == NODE_PHASE_SETUP ? "set-up" : phase == NODE_PHASE_FINAL ? "done" : "training";
}

/* Numbers of a message may be anything. */
static uint64_t whole_of(double v)
{
    return v >= 0 && v < 1e18 ? (uint64_t)v : 0;
}

static void take_numbers(const hfsad_observer *o, size_t number, const report_of *r, hfsad_seen *s)
{
    const dataset *d = federation_shape(o->f);
    const double *v = r->values;
    double refused = v[HOST_STATUS_GARBLED];
    for (size_t i = 0; i < NODE_REFUSALS; i++)
        if (i != NODE_REFUSED_OLD)
            refused += v[HOST_STATUS_REFUSED + i];
    s->round = r->round;
    s->refused = whole_of(refused);
    s->repeated = whole_of(v[HOST_STATUS_REPEATED]);
    s->sent = whole_of(v[HOST_STATUS_SENT]);
    s->received = whole_of(v[HOST_STATUS_RECEIVED]);
    s->process = whole_of(v[HOST_STATUS_PROCESS]);
    s->said_ms = whole_of(v[HOST_STATUS_SAID]);
    const uint64_t place = whole_of(v[HOST_STATUS_WAITS_FOR]);
    if (v[HOST_STATUS_WAITS] > 0 && s->children && place < s->children) {
        s->waits = (size_t)whole_of(v[HOST_STATUS_WAITS]);
        s->waits_for = tree_child(d, number, (size_t)place);
        s->waits_ms = whole_of(v[HOST_STATUS_WAITS_MS]);
    }
    s->has_figures = number == 0 && r->run == federation_run(o->f) && v[HOST_STATUS_ITERATION] >= 0;
    if (!s->has_figures)
        return;
    s->iteration = whole_of(v[HOST_STATUS_ITERATION]);
    s->objective = v[HOST_STATUS_OBJECTIVE];
    s->primal_residual = v[HOST_STATUS_PRIMAL];
    s->dual_residual = v[HOST_STATUS_DUAL];
}

bool hfsad_observer_node(const hfsad_observer *o, size_t number, hfsad_seen *seen)
{
    const dataset *d = federation_shape(o->f);
    if (number >= hfsad_observer_nodes(o))
        return false;
    const report_of *r = report_on(o, number);
    const size_t size = seen->size;
    hfsad_seen s = {.size = size,
                    .parent = number ? tree_parent(d, number) : SIZE_MAX,
                    .children = number < d->n_inner ? tree_children(d, number) : 0,
                    .state = state_of(o, r),
                    .phase = phase_name(r),
                    .has_numbers = r->has_numbers};
    nodes_name(d, number, s.path, sizeof s.path);
    if (r->has_numbers)
        take_numbers(o, number, r, &s);
    memcpy(seen, &s, size < sizeof s ? size : sizeof s);
    return true;
}

size_t hfsad_observer_child(const hfsad_observer *o, size_t number, size_t place)
{
    return tree_child(federation_shape(o->f), number, place);
}

uint64_t hfsad_observer_heard(const hfsad_observer *o)
{
    return o->heard;
}

const char *hfsad_observer_broker(const hfsad_observer *o, size_t broker)
{
    const lookout *from = &o->from[broker];
    return from->connected > 0 ? NULL : from->why[0] ? from->why : "no connection in time";
}

/* ---- set-up ---- */

static bool copy_text(char **to, const char *from)
{
    *to = from ? strdup(from) : NULL;
    return !from || *to;
}

static hfsad_status open_all(hfsad_observer *o, const hfsad_spec *spec, const hfsad_observer_settings *s,
                             hfsad_error *err)
{
    static const char *const usual[] = {"mqtt://localhost"};
    const char *const *brokers = s->n_brokers ? s->brokers : usual;
    dataset *shape;
    if (!copy_text(&o->keys, s->keys) || !copy_text(&o->ca, s->ca) || !copy_text(&o->certificate, s->certificate) ||
        !copy_text(&o->key, s->key))
        return error_memory(err, 0, "a text");
    hfsad_status status = spec_copy(&o->spec, spec, err);
    if (!status)
        status = member_shape(&shape, o->spec, s->nodes, NULL, err);
    if (!status)
        status = federation_create(&o->f, o->spec, shape, err);
    const size_t count = s->n_brokers ? s->n_brokers : 1;
    o->from = status ? NULL : alloc_zero(count, sizeof *o->from);
    if (!status && !o->from)
        status = error_memory(err, count * sizeof *o->from, "the brokers");
    for (size_t i = 0; i < count && !status; i++) {
        o->n_from = i + 1;
        status = open_lookout(o, &o->from[i], brokers[i], err);
    }
    return status;
}

hfsad_status hfsad_observer_create(hfsad_observer **observer, const hfsad_spec *spec,
                                   const hfsad_observer_settings *settings, hfsad_error *err)
{
    hfsad_observer_settings s = {0};
    hfsad_observer *o = alloc_zero(1, sizeof *o);
    *observer = NULL;
    if (!o)
        return error_memory(err, sizeof *o, "an observer");
    memcpy(&s, settings, settings->size < sizeof s ? settings->size : sizeof s);
    o->insecure = s.insecure;
    const hfsad_status status = open_all(o, spec, &s, err);
    if (status)
        hfsad_observer_free(o);
    else
        *observer = o;
    return status;
}

void hfsad_observer_free(hfsad_observer *o)
{
    if (!o)
        return;
    for (size_t i = 0; i < o->n_from; i++) {
        transport_free(o->from[i].way);
        free(o->from[i].nodes);
        free(o->from[i].url);
    }
    free(o->from);
    federation_free(o->f);
    hfsad_spec_free(o->spec);
    free(o->keys);
    free(o->ca);
    free(o->certificate);
    free(o->key);
    free(o);
}
