#define _POSIX_C_SOURCE 200809L
#include "net/host.h"

#include "base/alloc.h"
#include "base/error.h"
#include "net/topic.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ABOVE, BELOW, WAYS };

/* A child's path and its slot, in the order of the paths. */
typedef struct {
    char *path;
    size_t slot;
    uint64_t lives_until; /* as it said itself; 0: it is gone or was never heard */
} child_name;

typedef struct {
    node *n;    /* NULL: not set up yet */
    inquiry *q; /* NULL: it was made elsewhere */
    void *q_context;
    unsigned twins;      /* how often an older process of this name has said that it lives */
    char *path, *parent; /* parent: NULL for the root */
    child_name *children;
    size_t n_children;
    size_t member[WAYS]; /* SIZE_MAX: none */
    bool uncommitted;    /* packed, and not yet in the store */
    bool has_row, ended;
    char *lines; /* of the record, with the path, not yet in the store; NULL: none */
    hfsad_figures row;
    uint64_t status_due;
    bool connected[WAYS];
    uint64_t garbled, strangers;
} hosted;

typedef struct {
    host *h;
    int way;
} sense;

/* Bytes that grow. */
typedef struct {
    unsigned char *bytes;
    size_t size, room;
    bool failed;
} buffer;

struct host {
    host_settings s;
    char *run;
    transport *way[WAYS];
    sense senses[WAYS];
    hosted *all;
    size_t count, room;
    size_t *whose[WAYS]; /* by number of the member */
    size_t whose_room[WAYS];
    double *values; /* of a message that comes */
    size_t most;
    buffer out;
    bool store_failed;
    double *result; /* of the set-up; NULL: not known yet */
    size_t n_result;
    bool result_kept;   /* in the store, or to be put there by the next commit */
    hfsad_figures last; /* row of the trace */
    uint64_t heard, commits, commit_failures;
    double commit_seconds;
    hfsad_status failed; /* within a handler, with the reason */
    hfsad_error broken;
};

const char *host_event_text(host_event_kind kind)
{
    static const char *const texts[] = {
#define TEXT(name, text) text,
        HOST_EVENT_LIST(TEXT)
#undef TEXT
    };
    return texts[kind];
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static uint64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static double wall_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return floor((double)t.tv_sec * 1000 + (double)t.tv_nsec / 1000000);
}

static void tell(const host *h, host_event_kind kind, const char *path, const char *text, const char *from,
                 const hfsad_figures *figures)
{
    const host_event event = {kind, path, text, from, figures};
    if (h->s.event)
        h->s.event(h->s.context, &event);
}

/* ---- set-up ---- */

hfsad_status host_create(host **out, const host_settings *settings, hfsad_error *err)
{
    *out = NULL;
    if (!topic_run_valid(settings->run))
        return error_set(err, HFSAD_ERROR_INPUT, "a run cannot be named \"%s\": one level of a topic, without + and #",
                         settings->run);
    host *h = alloc_zero(1, sizeof *h);
    if (!h || !(h->run = strdup(settings->run))) {
        free(h);
        return error_memory(err, sizeof *h, "a process of a federation");
    }
    h->s = *settings;
    h->s.run = h->run;
    h->last.iteration = UINT64_MAX;
    for (int way = 0; way < WAYS; way++)
        h->senses[way] = (sense){h, way};
    *out = h;
    return HFSAD_OK;
}

void host_free(host *h)
{
    if (!h)
        return;
    for (size_t i = 0; i < h->count; i++) {
        hosted *at = &h->all[i];
        node_free(at->n);
        inquiry_free(at->q);
        free(at->q_context);
        for (size_t c = 0; at->children && c < at->n_children; c++)
            free(at->children[c].path);
        free(at->children);
        free(at->lines);
        free(at->path);
        free(at->parent);
    }
    free(h->all);
    free(h->whose[ABOVE]);
    free(h->whose[BELOW]);
    free(h->values);
    free(h->result);
    free(h->out.bytes);
    free(h->run);
    free(h);
}

void host_connect(host *h, transport *above, transport *below)
{
    h->way[ABOVE] = above;
    h->way[BELOW] = below;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const child_name *)a)->path, ((const child_name *)b)->path);
}

static bool name_nodes(hosted *at, const host_place *place)
{
    char parent[TOPIC_MAX];
    at->path = strdup(place->path);
    at->parent = topic_parent(place->path, parent) ? strdup(parent) : NULL;
    at->children = alloc_zero(place->n_children, sizeof *at->children);
    at->n_children = place->n_children;
    if (!at->path || !at->children || (topic_parent(place->path, parent) && !at->parent))
        return false;
    for (size_t c = 0; c < place->n_children; c++) {
        at->children[c] = (child_name){.path = strdup(place->children[c]), .slot = c};
        if (!at->children[c].path)
            return false;
    }
    qsort(at->children, at->n_children, sizeof *at->children, by_path);
    return true;
}

static hfsad_status restore(host *h, hosted *at, hfsad_error *err)
{
    void *bytes;
    size_t size;
    if (!h->s.state)
        return HFSAD_OK;
    const hfsad_status status = store_get_state(h->s.state, at->path, &bytes, &size, err);
    if (status || !bytes)
        return status;
    word_reader reader = {bytes, size / WORD_BYTES, size % WORD_BYTES != 0};
    const bool done = node_unpack(at->n, &reader);
    free(bytes);
    return done ? HFSAD_OK
                : error_set(err, HFSAD_ERROR_INPUT,
                            "the state of %s is not one of this spec and this data: give another state folder",
                            at->path);
}

enum { FILTERS_MOST = TOPICS + 1 };

/* Its filters on one way; 0: too long. */
static size_t filters_of(const host *h, const hosted *at, int way, char filters[][TOPIC_MAX])
{
    char below[TOPIC_MAX];
    size_t count = 0;
    const bool same = h->way[ABOVE] == h->way[BELOW];
    snprintf(below, sizeof below, at->parent ? "%.1000s/+" : "+", at->path);
    for (int kind = 0; kind < TOPICS; kind++) {
        const bool from_parent = topic_to_children((topic_kind)kind);
        if (kind == TOPIC_STATUS) { /* its own: a second process of its name shows there */
            if (h->s.instance && (same || way == (at->parent ? ABOVE : BELOW)) &&
                !topic_write(filters[count++], h->run, at->path, TOPIC_STATUS))
                return 0;
            if (h->s.watches && at->n_children && (same || way == BELOW) &&
                !topic_write(filters[count++], h->run, below, TOPIC_STATUS))
                return 0;
            continue;
        }
        if ((from_parent ? !at->parent : !at->n_children) || (!same && from_parent != (way == ABOVE)))
            continue;
        if (!topic_write(filters[count++], h->run, from_parent ? at->parent : below, (topic_kind)kind))
            return 0;
    }
    return count;
}

static size_t encode(host *h, const message *m, hfsad_error *err)
{
    size_t size = 0;
    if (!alloc_grow((void **)&h->out.bytes, &h->out.room, message_bytes_most(m->count), 1)) {
        (void)error_memory(err, message_bytes_most(m->count), "a message");
        return 0;
    }
    const bool plain = m->kind != MESSAGE_UP && m->kind != MESSAGE_DOWN;
    const wire_encoding encoding = plain ? WIRE_DOUBLE : h->s.encoding;
    return message_encode(NULL, m, encoding, NULL, h->out.bytes, &size) ? 0 : size;
}

static uint64_t bytes_of(const host *h, bool sent)
{
    uint64_t bytes = 0;
    for (int way = 0; way < WAYS; way++)
        if (h->way[way] && (way == ABOVE || h->way[ABOVE] != h->way[BELOW]))
            bytes += sent ? h->way[way]->counts.bytes_sent : h->way[way]->counts.bytes_received;
    return bytes;
}

static message status_of(const host *h, const hosted *at, bool lives, double values[HOST_STATUS_NUMBERS])
{
    const node_status status = at->n ? node_get_status(at->n) : (node_status){0};
    const bool ended = at->n && node_ended(at->n) != NODE_RUNNING;
    message m = {.kind = MESSAGE_STATUS,
                 .run = h->s.run_id,
                 .phase = !at->n  ? NODE_PHASE_SETUP
                          : ended ? NODE_PHASE_FINAL
                                  : NODE_PHASE_TRAIN,
                 .round = status.round,
                 .k = lives,
                 .values = values};
    if (!lives)
        return m;
    values[HOST_STATUS_K] = (double)status.k;
    values[HOST_STATUS_REPEATED] = (double)status.repeated;
    for (size_t i = 0; i < NODE_REFUSALS; i++)
        values[HOST_STATUS_REFUSED + i] = (double)status.refused[i];
    values[HOST_STATUS_INSTANCE] = (double)h->s.instance;
    values[HOST_STATUS_STARTED] = (double)h->s.started;
    values[HOST_STATUS_SAID] = wall_ms();
    values[HOST_STATUS_SENT] = (double)bytes_of(h, true);
    values[HOST_STATUS_RECEIVED] = (double)bytes_of(h, false);
    m.count = HOST_STATUS_ITERATION;
    if (at->parent)
        return m;
    const hfsad_figures *f = &h->last;
    const bool has = f->iteration != UINT64_MAX;
    const double figures[] = {has ? (double)f->iteration : -1, f->objective, f->primal_residual, f->dual_residual};
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        values[m.count++] = isfinite(figures[i]) ? figures[i] : 0;
    return m;
}

static hfsad_status join_way(host *h, size_t i, int way, const host_place *place, hfsad_error *err)
{
    hosted *at = &h->all[i];
    static char filters[FILTERS_MOST][TOPIC_MAX], will_topic[TOPIC_MAX];
    const char *list[FILTERS_MOST];
    double values[HOST_STATUS_NUMBERS];
    const size_t count = filters_of(h, at, way, filters);
    if (count == 0 || !topic_write(will_topic, h->run, at->path, TOPIC_STATUS))
        return error_set(err, HFSAD_ERROR_INPUT, "%s: the name is too long for a topic", at->path);
    for (size_t f = 0; f < count; f++)
        list[f] = filters[f];
    const message gone = status_of(h, at, false, values);
    const size_t size = encode(h, &gone, err);
    const transport_member member = {
        .name = at->path,
        .filters = list,
        .n_filters = count,
        .will_topic = will_topic,
        .will = h->out.bytes,
        .will_size = size,
        .certificate = place->certificate,
        .key = place->key,
    };
    const hfsad_status status =
        size ? transport_join(h->way[way], &member, &at->member[way], err) : error_memory(err, 0, "a message");
    if (status)
        return status;
    if (!alloc_grow((void **)&h->whose[way], &h->whose_room[way], at->member[way] + 1, sizeof *h->whose[way]))
        return error_memory(err, at->member[way], "the members of a process");
    h->whose[way][at->member[way]] = i;
    return HFSAD_OK;
}

static hfsad_status take_room(host *h, size_t most, hfsad_error *err)
{
    if (most <= h->most)
        return HFSAD_OK;
    double *values = realloc(h->values, most * sizeof *values);
    if (!values)
        return error_memory(err, most * sizeof *values, "a message");
    h->values = values;
    h->most = most;
    return HFSAD_OK;
}

/* The node that came last. */
static hfsad_status join_ways(host *h, const host_place *place, hfsad_error *err)
{
    const hosted *at = &h->all[h->count - 1];
    const bool two = h->way[ABOVE] != h->way[BELOW];
    hfsad_status status = HFSAD_OK;
    if (at->parent || !two)
        status = join_way(h, h->count - 1, ABOVE, place, err);
    if (!status && two && at->n_children)
        status = join_way(h, h->count - 1, BELOW, place, err);
    return status;
}

hfsad_status host_join(host *h, node *n, const host_place *place, hfsad_error *err)
{
    if (!alloc_grow((void **)&h->all, &h->room, h->count + 1, sizeof *h->all)) {
        node_free(n);
        return error_memory(err, sizeof *h->all, "the nodes of a process");
    }
    hosted *at = &h->all[h->count++];
    *at = (hosted){.n = n, .member = {SIZE_MAX, SIZE_MAX}};
    if (!topic_path_valid(place->path))
        return error_set(err, HFSAD_ERROR_INPUT, "%s cannot be a node's name in topics", place->path);
    if (!name_nodes(at, place))
        return error_memory(err, TOPIC_MAX, "the names of a process's nodes");
    hfsad_status status = take_room(h, node_message_most(n), err);
    if (!status)
        status = restore(h, at, err);
    return status ? status : join_ways(h, place, err);
}

/* The node, where the result is there; it goes on from its state. */
static hfsad_status make_node(host *h, hosted *at, hfsad_error *err)
{
    hfsad_status status = h->s.make(h->s.maker, at->path, h->result, h->n_result, &at->n, err);
    if (!status)
        status = take_room(h, node_message_most(at->n), err);
    return status ? status : restore(h, at, err);
}

#define RESULT_NAME "+result" /* no path of a node */

/* What an earlier life has kept. */
static hfsad_status restore_result(host *h, hfsad_error *err)
{
    void *bytes = NULL;
    size_t size;
    if (!h->s.state || h->result)
        return HFSAD_OK;
    const hfsad_status status = store_get_state(h->s.state, RESULT_NAME, &bytes, &size, err);
    if (status || !bytes)
        return status;
    word_reader reader = {bytes, size / WORD_BYTES, size % WORD_BYTES != 0};
    h->n_result = reader.left;
    h->result = alloc_zero(h->n_result, sizeof *h->result);
    if (h->result)
        words_get_reals(&reader, h->result, h->n_result);
    free(bytes);
    h->result_kept = true;
    return h->result ? HFSAD_OK : error_memory(err, size, "the result of the set-up");
}

hfsad_status host_enter(host *h, inquiry *q, void *context, size_t most, const host_place *place, hfsad_error *err)
{
    if (!alloc_grow((void **)&h->all, &h->room, h->count + 1, sizeof *h->all)) {
        inquiry_free(q);
        free(context);
        return error_memory(err, sizeof *h->all, "the nodes of a process");
    }
    hosted *at = &h->all[h->count++];
    *at = (hosted){.q = q, .q_context = context, .member = {SIZE_MAX, SIZE_MAX}};
    if (!topic_path_valid(place->path))
        return error_set(err, HFSAD_ERROR_INPUT, "%s cannot be a node's name in topics", place->path);
    if (!name_nodes(at, place))
        return error_memory(err, TOPIC_MAX, "the names of a process's nodes");
    hfsad_status status = take_room(h, most > HOST_STATUS_NUMBERS ? most : HOST_STATUS_NUMBERS, err);
    if (!status)
        status = restore_result(h, err);
    if (!status && h->result)
        status = make_node(h, at, err);
    if (!status && !at->parent && h->result)
        inquiry_rest(q);
    else if (!status && !at->parent)
        status = inquiry_begin(q, err);
    return status ? status : join_ways(h, place, err);
}

/* ---- what comes in ---- */

static void refuse(const host *h, const hosted *at, const char *topic, const char *why)
{
    tell(h, HOST_MESSAGE_REFUSED, at->path, why, topic, NULL);
}

/* How many steps fit into a time, if `steps` of them took so long. */
static uint32_t steps_in(double time, double took, uint64_t steps)
{
    enum { MOST = 1000 };
    const double fit = took > 0 ? time * (double)steps / took : MOST;
    return fit > MOST ? MOST : fit < 1 ? 1 : (uint32_t)fit;
}

static bool sender_of(const hosted *at, const char *path, topic_kind kind, size_t *from)
{
    const child_name wanted = {.path = (char *)path};
    if (topic_to_children(kind)) {
        *from = NODE_PARENT;
        return at->parent && strcmp(path, at->parent) == 0;
    }
    const child_name *found = bsearch(&wanted, at->children, at->n_children, sizeof wanted, by_path);
    *from = found ? found->slot : 0;
    return found != NULL;
}

/* A child says that it lives, or its will that it is gone. */
static void note_child(const host *h, const hosted *at, const char *path, const message *m)
{
    const child_name wanted = {.path = (char *)path};
    child_name *found = bsearch(&wanted, at->children, at->n_children, sizeof wanted, by_path);
    if (found)
        found->lives_until = m->k == 0 || m->run != h->s.run_id ? 0 : now_ms() + 3 * (uint64_t)h->s.status_ms;
}

static void break_down(host *h, hfsad_status status, const hfsad_error *err)
{
    if (!status || h->failed)
        return;
    h->failed = status;
    h->broken = *err;
}

/* Another process says that it is this node. The older one stays; a value that only the broker remembers comes once. */
static void meet_twin(host *h, hosted *at, const message *m)
{
    if (m->k == 0 || m->count < HOST_STATUS_SAID || m->values[HOST_STATUS_INSTANCE] == (double)h->s.instance)
        return;
    const double theirs = m->values[HOST_STATUS_STARTED], mine = (double)h->s.started;
    const bool older = theirs < mine || (theirs == mine && m->values[HOST_STATUS_INSTANCE] < (double)h->s.instance);
    if (!older) {
        at->status_due = 0;
        return;
    }
    hfsad_error err;
    if (++at->twins > 1)
        break_down(h,
                   error_set(&err, HFSAD_ERROR_INPUT,
                             "%s runs already, in another process: end that one, or give this one another name",
                             at->path),
                   &err);
}

static bool is_setup(const message *m)
{
    return m->phase == NODE_PHASE_SETUP;
}

/* The set-up's result has come: the node is made, and both are committed before anything is said of it. */
static void take_setup(host *h, hosted *at)
{
    hfsad_error err;
    size_t count;
    const double *result = inquiry_result(at->q, &count);
    if (at->n || !result)
        return;
    if (!h->result) {
        h->result = alloc_zero(count, sizeof *result);
        if (!h->result) {
            break_down(h, error_memory(&err, count * sizeof *result, "the result of the set-up"), &err);
            return;
        }
        memcpy(h->result, result, count * sizeof *result);
        h->n_result = count;
    }
    const hfsad_status status = make_node(h, at, &err);
    break_down(h, status, &err);
    at->status_due = 0;
    if (!status)
        tell(h, HOST_READY, at->path, "", "", NULL);
}

static bool hand_over(host *h, hosted *at, size_t from, const message *m, node_refusal *why)
{
    hfsad_error err;
    hfsad_status failed = HFSAD_OK;
    if (!at->q || !is_setup(m)) {
        if (at->n)
            return node_handle(at->n, from, m, why);
        *why = m->run == h->s.run_id ? NODE_REFUSED_OLD : NODE_REFUSED_RUN;
        return false;
    }
    const bool news = inquiry_handle(at->q, from, m, why, &failed, &err);
    break_down(h, failed, &err);
    if (failed)
        *why = NODE_REFUSED_OLD;
    take_setup(h, at);
    return news;
}

static void receive(void *context, size_t member, const char *topic, const void *bytes, size_t size)
{
    const sense *s = context;
    host *h = s->h;
    hosted *at = &h->all[h->whose[s->way][member]];
    char path[TOPIC_MAX];
    topic_kind kind;
    size_t from;
    message m;
    node_refusal why;
    if (size == 0) /* a retained value that was cleared */
        return;
    const bool own = topic_read(topic, h->run, path, &kind) && kind == TOPIC_STATUS && strcmp(path, at->path) == 0;
    if (!own && (!topic_read(topic, h->run, path, &kind) || !sender_of(at, path, kind, &from))) {
        at->strangers++;
        refuse(h, at, topic, "from a node that is no neighbour");
        return;
    }
    const message_fault fault = message_decode(NULL, bytes, size, NULL, h->values, h->most, &m);
    if (fault) {
        at->garbled++;
        refuse(h, at, topic, message_fault_text(fault));
        return;
    }
    if (m.kind != topic_message_kind(kind)) {
        at->garbled++;
        refuse(h, at, topic, "of another kind than its topic's");
        return;
    }
    if (own) {
        meet_twin(h, at, &m);
        return;
    }
    if (kind == TOPIC_STATUS && h->s.watches) {
        note_child(h, at, path, &m);
        return;
    }
    h->heard++;
    if (m.run != h->s.run_id && h->s.other_run)
        h->s.other_run(h->s.context, at->path, path, &m);
    const uint64_t k = at->n ? node_get_status(at->n).k : 0;
    const double before = h->s.local_seconds > 0 ? seconds() : 0;
    if (!hand_over(h, at, from, &m, &why) && why != NODE_REFUSED_OLD)
        refuse(h, at, topic, node_refusal_text(why));
    const uint64_t steps = at->n ? node_get_status(at->n).k - k : 0;
    if (h->s.local_seconds > 0 && at->n_children == 0 && steps > 0)
        node_set_local_steps(at->n, steps_in(h->s.local_seconds, seconds() - before, steps));
}

/* An earlier run of the same spec may have left its last words with the broker, the end among them. They are cleared
 * before a node takes part: neighbours have a node only once all of them have been heard in the set-up. */
static void clear_topics(host *h, const hosted *at, int way)
{
    char topic[TOPIC_MAX];
    hfsad_error err;
    const bool same = h->way[ABOVE] == h->way[BELOW];
    for (int kind = 0; kind < TOPICS; kind++)
        if (kind != TOPIC_STATUS && (same || topic_to_children((topic_kind)kind) == (way == BELOW)) &&
            topic_write(topic, h->run, at->path, (topic_kind)kind))
            break_down(h, transport_send(h->way[way], at->member[way], topic, NULL, 0, true, &err), &err);
}

static void connection(void *context, size_t member, transport_event event, const char *why)
{
    static const host_event_kind kinds[] = {
        [TRANSPORT_UP] = HOST_CONNECTED, [TRANSPORT_DOWN] = HOST_DISCONNECTED, [TRANSPORT_REFUSED] = HOST_REFUSED};
    const sense *s = context;
    host *h = s->h;
    if (member >= h->whose_room[s->way])
        return;
    hosted *at = &h->all[h->whose[s->way][member]];
    at->connected[s->way] = event == TRANSPORT_UP;
    if (event == TRANSPORT_UP) {
        if (at->n)
            node_repeat(at->n);
        if (at->q && !at->n)
            clear_topics(h, at, s->way);
        if (at->q)
            inquiry_repeat(at->q);
        at->status_due = 0;
    }
    tell(h, kinds[event], at->path, why, "", NULL);
}

transport_handler host_handler(host *h, bool above)
{
    return (transport_handler){&h->senses[above ? ABOVE : BELOW], receive, connection};
}

/* ---- commit ---- */

static void append(void *to, const void *bytes, size_t count)
{
    buffer *b = to;
    if (count == 0)
        return;
    if (b->failed || !alloc_grow((void **)&b->bytes, &b->room, b->size + count, 1)) {
        b->failed = true;
        return;
    }
    memcpy(b->bytes + b->size, bytes, count);
    b->size += count;
}

/* The node's new lines behind those that wait, each with the path before it. */
static bool take_lines(hosted *at)
{
    char *more = node_take_lines(at->n);
    if (!more)
        return true;
    size_t count = 0;
    for (const char *c = more; *c; c++)
        count += *c == '\n';
    const size_t old = at->lines ? strlen(at->lines) : 0, path = strlen(at->path) + 1;
    char *all = realloc(at->lines, old + strlen(more) + count * path + 1);
    if (all) {
        char *to = all + old;
        at->lines = all;
        for (char *from = more, *end; (end = strchr(from, '\n')); from = end + 1)
            to += sprintf(to, "%s %.*s", at->path, (int)(end + 1 - from), from);
    }
    free(more);
    return all != NULL;
}

/* Calls back for every line of `lines`, which is torn up in doing so. */
static hfsad_status each_line(host *h, const hosted *at, bool stored, hfsad_error *err)
{
    hfsad_status status = HFSAD_OK;
    for (char *line = at->lines, *end; line && !status && (end = strchr(line, '\n')); line = end + 1) {
        *end = 0;
        if (stored)
            tell(h, HOST_RECORD, at->path, line, "", NULL);
        else
            status = store_put_line(h->s.state, line, err);
        *end = '\n';
    }
    return status;
}

static hfsad_status put_node(host *h, hosted *at, hfsad_error *err)
{
    if (!at->n)
        return HFSAD_OK;
    if (node_take_figures(at->n, &at->row)) {
        at->has_row = true;
        if (h->s.finish_row)
            h->s.finish_row(h->s.context, at->n, &at->row);
    }
    if (!take_lines(at))
        return error_memory(err, 0, "the record");
    if (!node_changed(at->n) && !at->uncommitted && !at->has_row)
        return HFSAD_OK;
    at->uncommitted = true;
    h->out.size = 0;
    h->out.failed = false;
    word_writer writer = {.put = append, .to = &h->out};
    node_pack(at->n, &writer);
    if (!h->s.state)
        return HFSAD_OK;
    if (h->out.failed)
        return error_memory(err, h->out.room, "the state of a node");
    hfsad_status status = store_put_state(h->s.state, at->path, h->out.bytes, h->out.size, err);
    if (!status && at->has_row)
        status = store_put_row(h->s.state, &at->row, err);
    return status ? status : each_line(h, at, false, err);
}

static hfsad_status put_result(host *h, hfsad_error *err)
{
    if (!h->s.state || !h->result || h->result_kept)
        return HFSAD_OK;
    h->out.size = 0;
    h->out.failed = false;
    word_writer writer = {.put = append, .to = &h->out};
    words_put_reals(&writer, h->result, h->n_result);
    if (h->out.failed)
        return error_memory(err, h->out.room, "the result of the set-up");
    return store_put_state(h->s.state, RESULT_NAME, h->out.bytes, h->out.size, err);
}

/* All that has changed, in one transaction. */
static hfsad_status put_all(host *h, hfsad_error *err)
{
    const double before = seconds();
    bool changed = false;
    hfsad_status status = put_result(h, err);
    for (size_t i = 0; i < h->count && !status; i++) {
        status = put_node(h, &h->all[i], err);
        changed = changed || h->all[i].uncommitted;
    }
    if (!status && h->s.state)
        status = store_commit(h->s.state, err);
    if (changed && !status && h->s.state) {
        h->commits++;
        h->commit_seconds += seconds() - before;
    }
    return status;
}

static bool commit(host *h)
{
    hfsad_error err;
    const hfsad_status status = put_all(h, &err);
    if (status) {
        h->commit_failures++;
        if (!h->store_failed)
            tell(h, HOST_STORE_FAILED, "", err.message, "", NULL);
        h->store_failed = true;
        return false;
    }
    if (h->store_failed)
        tell(h, HOST_STORE_WORKS, "", "", "", NULL);
    h->store_failed = false;
    h->result_kept = h->result != NULL;
    for (size_t i = 0; i < h->count; i++) {
        hosted *at = &h->all[i];
        at->uncommitted = false;
        if (at->has_row)
            h->last = at->row;
        if (at->has_row)
            tell(h, HOST_ROW, at->path, "", "", &at->row);
        at->has_row = false;
        (void)each_line(h, at, true, NULL);
        free(at->lines);
        at->lines = NULL;
        if (!at->ended && at->n && node_ended(at->n) != NODE_RUNNING) {
            at->ended = true;
            at->status_due = 0;
            tell(h, HOST_ENDED, at->path, "", "", NULL);
        }
    }
    return true;
}

/* ---- what goes out ---- */

static hfsad_status send(host *h, const hosted *at, int way, topic_kind kind, const message *m, hfsad_error *err)
{
    char topic[TOPIC_MAX];
    if (at->member[way] == SIZE_MAX)
        way = !way;
    const size_t size = encode(h, m, err);
    if (!size || !topic_write(topic, h->run, at->path, kind)) /* a number that does not fit a float */
        return HFSAD_OK;
    return transport_send(h->way[way], at->member[way], topic, h->out.bytes, size, true, err);
}

static hfsad_status send_all(host *h, uint64_t now, hfsad_error *err)
{
    hfsad_status status = HFSAD_OK;
    for (size_t i = 0; i < h->count && !status; i++) {
        hosted *at = &h->all[i];
        node_letter letter;
        while (!status &&
               ((at->q && inquiry_next_letter(at->q, &letter)) || (at->n && node_next_letter(at->n, &letter))))
            status =
                send(h, at, letter.to_parent ? ABOVE : BELOW, topic_of(&letter.m, letter.to_parent), &letter.m, err);
        if (!status && h->s.status_ms && now >= at->status_due) {
            double values[HOST_STATUS_NUMBERS];
            const message m = status_of(h, at, true, values);
            status = send(h, at, ABOVE, TOPIC_STATUS, &m, err);
            at->status_due = now + h->s.status_ms;
        }
    }
    return status;
}

/* ---- a turn ---- */

static uint64_t due_of(const hosted *at)
{
    const uint64_t trains = at->n ? node_due(at->n) : UINT64_MAX, asks = at->q ? inquiry_due(at->q) : UINT64_MAX;
    return trains < asks ? trains : asks;
}

static void tick(const hosted *at, uint64_t now)
{
    if (at->q)
        inquiry_tick(at->q, now);
    if (at->n)
        node_tick(at->n, now);
}

static hfsad_status listen(host *h, uint64_t now, int64_t timeout_ms, hfsad_error *err)
{
    for (size_t i = 0; i < h->count; i++) {
        const uint64_t due = due_of(&h->all[i]);
        const int64_t left = due == UINT64_MAX ? INT64_MAX : due <= now ? 0 : (int64_t)(due - now);
        if (timeout_ms < 0 || left < timeout_ms)
            timeout_ms = left == INT64_MAX ? timeout_ms : left;
    }
    if (h->store_failed && (timeout_ms < 0 || timeout_ms > 1000))
        timeout_ms = 1000;
    if (h->way[ABOVE] == h->way[BELOW] || !h->way[ABOVE] || !h->way[BELOW])
        return transport_wait(h->way[h->way[ABOVE] ? ABOVE : BELOW], timeout_ms, err);
    enum { SLICE_MS = 5 }; /* no transport knows of the other */
    const hfsad_status status = transport_wait(h->way[ABOVE], 0, err);
    return status ? status
                  : transport_wait(h->way[BELOW], timeout_ms < 0 || timeout_ms > SLICE_MS ? SLICE_MS : timeout_ms, err);
}

hfsad_status host_step(host *h, int64_t timeout_ms, hfsad_error *err)
{
    uint64_t now = now_ms();
    bool waits = true;
    for (size_t i = 0; i < h->count; i++) {
        tick(&h->all[i], now);
        waits =
            waits && !(h->all[i].n && node_changed(h->all[i].n)); /* a node that has just begun has something to say */
    }
    hfsad_status status = listen(h, now, waits || h->store_failed ? timeout_ms : 0, err);
    now = now_ms();
    for (size_t i = 0; i < h->count; i++)
        tick(&h->all[i], now);
    if (!status && h->failed) {
        *err = h->broken;
        return h->failed;
    }
    if (!status && commit(h))
        status = send_all(h, now, err);
    return status;
}

hfsad_status host_say(host *h, size_t i, const message *m, hfsad_error *err)
{
    return send(h, &h->all[i], ABOVE, topic_of(m, true), m, err);
}

bool host_ended(const host *h)
{
    for (size_t i = 0; i < h->count; i++)
        if (!h->all[i].ended)
            return false;
    return true;
}

size_t host_nodes(const host *h)
{
    return h->count;
}

node *host_node(const host *h, size_t i)
{
    return h->all[i].n;
}

const char *host_path(const host *h, size_t i)
{
    return h->all[i].path;
}

host_counts host_get_counts(const host *h)
{
    host_counts c = {.commits = h->commits, .commit_failures = h->commit_failures, .commit_seconds = h->commit_seconds};
    for (int way = 0; way < WAYS; way++) {
        if (!h->way[way] || (way == BELOW && h->way[ABOVE] == h->way[BELOW]))
            continue;
        const transport_counts *t = &h->way[way]->counts;
        c.frames.frames_sent += t->frames_sent;
        c.frames.frames_received += t->frames_received;
        c.frames.bytes_sent += t->bytes_sent;
        c.frames.bytes_received += t->bytes_received;
        c.frames.replaced += t->replaced;
        c.frames.lost += t->lost;
        c.frames.connects += t->connects;
    }
    return c;
}

host_links host_get_links(const host *h, size_t i)
{
    const hosted *at = &h->all[i];
    const uint64_t now = now_ms();
    host_links links = {
        .connected = true, .children = at->n_children, .garbled = at->garbled, .strangers = at->strangers};
    for (int way = 0; way < WAYS; way++)
        links.connected = links.connected && (at->member[way] == SIZE_MAX || at->connected[way]);
    for (size_t c = 0; c < at->n_children; c++)
        links.live += at->children[c].lives_until > now;
    return links;
}

const hfsad_figures *host_last_row(const host *h)
{
    return h->last.iteration == UINT64_MAX ? NULL : &h->last;
}
