/* A process of a federation: spec, tree, rows, state, brokers, and the loop. */
#define _GNU_SOURCE /* getrandom */
#include "member.h"

#include "base/error.h"
#include "base/rng.h"
#include "model/nodes.h"
#include "net/broker_url.h"
#include "net/certificate.h"
#include "net/keys.h"
#include "progress.h"
#include "report/file.h"
#include "run.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <time.h>
#include <unistd.h>

enum { ABOVE, BELOW };
/* How long a process that ends waits for the broker to have heard of it. */
enum { LEAVE_MS = 1000 };

/* ---- log ---- */

static void stamp(char text[40])
{
    struct timespec t;
    struct tm parts;
    clock_gettime(CLOCK_REALTIME, &t);
    gmtime_r(&t.tv_sec, &parts);
    const size_t n = strftime(text, 40, "%Y-%m-%dT%H:%M:%S", &parts);
    snprintf(text + n, 40 - n, ".%03ldZ", t.tv_nsec / 1000000);
}

void member_log(const member_arguments *a, log_level level, const char *path, const char *event, const char *text,
                const char *from)
{
    if ((int)level > a->level)
        return;
    if (a->log == 0) {
        fprintf(stderr, "hfsad: %s%s%s%s%s%s%s%s\n", path, *path ? ": " : "", event, *text ? ": " : "", text,
                *from ? " (" : "", from, *from ? ")" : "");
        return;
    }
    char time[40];
    stamp(time);
    cJSON *line = cJSON_CreateObject();
    const char *const fields[][2] = {{"time", time}, {"level", member_levels[level]},
                                     {"node", path}, {"event", event},
                                     {"text", text}, {"topic", from}};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (*fields[i][1])
            cJSON_AddStringToObject(line, fields[i][0], fields[i][1]);
    char *printed = cJSON_PrintUnformatted(line);
    if (printed)
        fprintf(stderr, "%s\n", printed);
    cJSON_free(printed);
    cJSON_Delete(line);
}

static log_level level_of(host_event_kind kind)
{
    switch (kind) {
    case HOST_STORE_FAILED:
    case HOST_REFUSED:
        return LOG_ERROR;
    case HOST_MESSAGE_REFUSED:
    case HOST_DISCONNECTED:
        return LOG_WARNING;
    case HOST_ROW:
    case HOST_RECORD:
        return LOG_DEBUG;
    default:
        return LOG_INFO;
    }
}

/* Whoever sends what is refused, and often, shall not fill the disk, nor hide with one kind of message another: so many
 * lines a minute for each reason. The status counts all of them. */
static bool is_flood(member *m, const char *why)
{
    enum { LINES = 10 };
    static const double window = 60;
    const double now = progress_clock();
    flood *f = &m->floods[rng_stream(why) % FLOODS];
    if (now > f->since + window)
        *f = (flood){.since = now};
    if (++f->lines == LINES + 1)
        member_log(&m->args, LOG_WARNING, "", "further messages that are refused so are not shown for a minute", why,
                   "");
    return f->lines > LINES;
}

/* To the parent, where that has another spec. */
static void introduce(member *m)
{
    hfsad_error err;
    const message said = federation_introduce(m->f);
    if (said.values)
        (void)host_say(m->h, 0, &said, &err);
    free(said.values);
}

static void on_event(void *context, const host_event *event)
{
    member *m = context;
    log_level level = level_of(event->kind);
    if (event->kind == HOST_REFUSED && !m->is_wrong) {
        error_set(&m->wrong, HFSAD_ERROR_INPUT, "%.200s: %.350s", event->node, event->text);
        m->is_wrong = true;
        return;
    }
    if (event->kind == HOST_DISMISSED) { /* one line for all nodes of the process */
        if (!m->is_wrong)
            error_set(&m->wrong, HFSAD_ERROR_INPUT, "%.200s: the cloud has ended the run: %.350s", event->node,
                      event->text);
        m->is_wrong = m->is_dismissed = true;
        return;
    }
    /* many nodes of one process lose the broker together, and most often it is back at once */
    if (event->kind == HOST_DISCONNECTED) {
        level = LOG_DEBUG;
        m->is_up = false;
        m->strangers[0] = m->strangers[1] = 0;
        const bool first = m->down_since == 0;
        if (first)
            m->down_since = progress_clock();
        if (first || strcmp(event->node, host_path(m->h, 0)) == 0) { /* one may know more after some attempts */
            m->down_told = m->down_told && strcmp(m->down_text, event->text) == 0;
            snprintf(m->down_text, sizeof m->down_text, "%s", event->text);
        }
    }
    if (event->kind == HOST_CONNECTED) {
        level = m->down_told ? LOG_INFO : LOG_DEBUG;
        m->down_told = false;
        m->down_since = 0;
        m->is_up = true;
        if (m->strangers[0] || m->strangers[1])
            introduce(m);
    }
    if (event->kind == HOST_MESSAGE_REFUSED && is_flood(m, event->text))
        level = LOG_DEBUG;
    member_log(&m->args, level, event->node, host_event_text(event->kind), event->text, event->from);
    if (event->kind == HOST_ROW && m->cloud) {
        m->has_row = true;
        m->cloud->row(m->cloud->context, event->figures);
    }
}

static void on_finish_row(void *context, const node *root, hfsad_figures *row)
{
    member *m = context;
    if (m->cloud)
        m->cloud->finish_row(m->cloud->context, root, row);
}

/* What the broker remembers of an earlier run comes once in a connection and topic; a living parent says more, at once
 * where it is told who we are. A child that has another spec than its parent ends, and the parent says which one that
 * was. */
enum { REMEMBERED = 1 };
/* Who hears its parent does not listen to another of that name, who will see by then that it is the second. */
enum { FAMILIAR_MS = 10000 };

static void meet_parent(member *m, const char *path, const char *from, const message *said, const char *why)
{
    unsigned *heard = &m->strangers[said->kind == MESSAGE_DOWN];
    if (why)
        snprintf(m->reason, sizeof m->reason, "%s", why);
    if (!m->is_up) { /* what is remembered comes while we connect, when nothing can be said yet */
        *heard = 1;
        return;
    }
    if (++*heard <= REMEMBERED) {
        introduce(m);
        return;
    }
    if (m->is_wrong)
        return;
    m->is_wrong = true;
    if (m->reason[0])
        error_set(&m->wrong, HFSAD_ERROR_INPUT,
                  "%.100s: %.100s has another spec or other nodes, they differ in: %.250s; give all the same", path,
                  from, m->reason);
    else
        error_set(&m->wrong, HFSAD_ERROR_INPUT,
                  "%.100s: %.100s has another spec or other nodes; its log says in what they differ; give all the same",
                  path, from);
}

/* One line for each child and what is wrong with it, however often it comes back. */
static void meet_child(member *m, const char *from, const char *why)
{
    const uint64_t which = rng_stream(from) ^ rng_stream(why);
    if (which != m->last_stranger)
        member_log(&m->args, LOG_WARNING, from, "has another spec or other nodes, they differ in", why, "");
    m->last_stranger = which;
}

static bool on_other_run(void *context, const char *path, const char *from, const message *said)
{
    member *m = context;
    char why[500];
    const bool explained = federation_explain(m->f, said, why, sizeof why);
    if (said->kind == MESSAGE_ANSWER && explained)
        meet_child(m, from, why);
    if (said->kind != MESSAGE_ASK && said->kind != MESSAGE_DOWN)
        return said->kind == MESSAGE_ANSWER && explained;
    if (host_get_links(m->h, 0).parent_ms < FAMILIAR_MS)
        return false;
    if (strcmp(path, host_path(m->h, 0)) == 0) /* one of a process's nodes speaks for all */
        meet_parent(m, path, from, said, explained ? why : NULL);
    return true;
}

/* ---- spec, tree and rows ---- */

int member_load(hfsad_spec **spec, const char *path, const cli_texts *sets, const char *command)
{
    hfsad_error err = {0};
    if (hfsad_spec_load(spec, path, &err))
        return cli_fail(&err);
    const int status = cli_apply_sets(*spec, sets, command);
    if (status != CLI_GO)
        return status;
    return hfsad_spec_check(*spec, &err) ? cli_fail(&err) : CLI_GO;
}

/* scratch: as for dataset_read_client. */
static hfsad_status read_shape(dataset **shape, const hfsad_spec *spec, const char *scratch, hfsad_error *err)
{
    const bool listed = spec->federation.nodes != NULL;
    char *path = spec_find_file(spec, listed ? spec->federation.nodes : spec->top.data), *text = NULL;
    dataset *d = NULL;
    hfsad_status status = path ? HFSAD_OK : error_memory(err, 0, "a file name");
    if (!status && listed) {
        status = nodes_read(shape, path, err);
        free(path);
        return status;
    }
    if (!status)
        status = dataset_read_client(&d, path, NULL, NULL, scratch, err);
    if (!status && !(text = nodes_text(d)))
        status = error_memory(err, 0, "the list of nodes");
    if (!status)
        status = nodes_parse(shape, text, path, err);
    dataset_free(d);
    free(text);
    free(path);
    return status;
}

hfsad_status member_shape(dataset **shape, const hfsad_spec *spec, hfsad_error *err)
{
    return read_shape(shape, spec, NULL, err);
}

/* Whether a file is one client's own: an array, or a CSV file without a column `client`. */
static bool is_own_file(const char *path)
{
    struct stat info;
    char head[4096];
    const char *dot = strrchr(path, '.');
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
        return false;
    if (dot && (!strcmp(dot, ".npy") || !strcmp(dot, ".npz")))
        return true;
    FILE *f = fopen(path, "r");
    const bool read = f && fgets(head, sizeof head, f);
    if (f)
        fclose(f);
    for (char *field = read ? strtok(head, ",\"\r\n \t") : NULL; field; field = strtok(NULL, ",\"\r\n \t"))
        if (!strcmp(field, "client"))
            return false;
    return read;
}

static hfsad_status read_rows_of(const member *m, const char *path, dataset **rows, hfsad_error *err)
{
    char *parent = NULL;
    const char *name = NULL;
    if (m->args.name && is_own_file(path)) {
        const char *slash = strrchr(m->args.name, '/');
        name = slash ? slash + 1 : m->args.name;
        parent = strndup(m->args.name, slash ? (size_t)(slash - m->args.name) : 0);
        if (!parent)
            return error_memory(err, 0, "a name");
    }
    const hfsad_status status = dataset_read_client(rows, path, parent, name, m->scratch, err);
    free(parent);
    return status;
}

static char *find_rows(const member *m)
{
    return m->args.data ? strdup(m->args.data) : spec_find_file(m->spec, m->spec->top.data);
}

static hfsad_status read_rows_again(void *context, dataset **rows, hfsad_error *err)
{
    const member *m = context;
    char *path = find_rows(m);
    const hfsad_status status = path ? read_rows_of(m, path, rows, err) : error_memory(err, 0, "a file name");
    free(path);
    return status;
}

static hfsad_status read_rows(member *m, hfsad_error *err)
{
    dataset *rows = NULL;
    char *path = find_rows(m);
    if (!path)
        return error_memory(err, 0, "a file name");
    hfsad_status status =
        access(path, R_OK) == 0
            ? read_rows_of(m, path, &rows, err)
            : error_set(err, HFSAD_ERROR_INPUT, "%.300s cannot be read: %s; %s", path, strerror(errno),
                        m->args.data ? "--data names the file with the client's rows"
                                     : "it is the spec's data; give the file with the client's rows by --data");
    if (!status)
        status = federation_take_rows(m->f, rows, path, err);
    federation_set_reader(m->f, read_rows_again, m);
    free(path);
    return status;
}

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
                     "broker '%.200s': models would travel in the open; give mqtts:// with certificates of `hfsad "
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
        return error_set(err, HFSAD_ERROR_INPUT, "%s: the data has no rows of this client; give its file by --data",
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
        return error_set(err, HFSAD_ERROR_INPUT, "%.200s is no %s of this federation; `hfsad nodes` lists its nodes",
                         name, leaf ? "client" : "inner node");
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
        return error_set(err, HFSAD_ERROR_INPUT, "the cloud is started by `hfsad cloud`");
    if (!status && all && federation_shape(m->f)->inner[m->number].n_leaves == 0)
        return error_set(err, HFSAD_ERROR_INPUT, "%.200s has no clients of its own", m->args.all_of);
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

/* ---- state ---- */

/* "spec-state/edge1_client7" */
static char *default_state(const member *m)
{
    char *folder = run_folder(m->args.spec_path, "state");
    const char *name = m->role == ROLE_CLOUD ? "cloud" : m->args.all_of ? m->args.all_of : m->args.name;
    const char *ending = m->args.all_of ? "-clients" : "";
    const size_t size = (folder ? strlen(folder) : 0) + strlen(name) + strlen(ending) + 2;
    char *path = folder ? malloc(size) : NULL;
    if (path) {
        const int at = snprintf(path, size, "%s/", folder);
        snprintf(path + at, size - (size_t)at, "%s%s", name, ending);
        for (char *c = path + at; *c; c++)
            *c = *c == '/' ? '_' : *c;
    }
    free(folder);
    return path;
}

static char *state_folder(const member *m)
{
    return m->args.state ? strdup(m->args.state) : default_state(m);
}

/* Where rows on the disk go: the state folder or, as long as nobody has made it, the nearest folder above it. */
static hfsad_status find_scratch(member *m, hfsad_error *err)
{
    struct stat info;
    struct statfs kind;
    if (m->args.rows != ROWS_ON_DISK)
        return HFSAD_OK;
    m->scratch = state_folder(m);
    while (m->scratch && (stat(m->scratch, &info) != 0 || !S_ISDIR(info.st_mode))) {
        char *slash = strrchr(m->scratch, '/');
        if (slash && slash != m->scratch) {
            *slash = 0;
            continue;
        }
        free(m->scratch);
        m->scratch = strdup(slash ? "/" : ".");
        break;
    }
    if (!m->scratch)
        return error_memory(err, 0, "a file name");
    if (statfs(m->scratch, &kind) == 0 && kind.f_type == TMPFS_MAGIC)
        member_log(&m->args, LOG_WARNING, "", "rows on the disk would be in memory",
                   "the state folder is on a tmpfs; give --state on a disk", "");
    return HFSAD_OK;
}

typedef struct {
    const member *m;
    char other[200]; /* a node in the state that is none of this process's; "": there is none */
    bool has_own;
} ownership;

static bool is_own(const member *m, const char *path)
{
    const dataset *d = federation_shape(m->f);
    const size_t number = nodes_find(d, path);
    if (!m->args.all_of)
        return number == m->number;
    const inner_node *edge = &d->inner[m->number];
    return number != SIZE_MAX && number >= d->n_inner + edge->first_leaf &&
           number < d->n_inner + edge->first_leaf + edge->n_leaves;
}

static void note_owner(void *context, const char *path)
{
    ownership *o = context;
    if (is_own(o->m, path))
        o->has_own = true;
    else
        snprintf(o->other, sizeof o->other, "%s", path);
}

/* The state of another node of this run would be passed over, and be lost with the next commit. */
static hfsad_status check_owner(const member *m, hfsad_error *err)
{
    ownership o = {.m = m};
    const hfsad_status status = store_get_names(m->state, note_owner, &o, err);
    if (status || o.has_own || !o.other[0])
        return status;
    const char *mine = m->role == ROLE_CLOUD ? "cloud" : m->args.all_of ? m->args.all_of : m->args.name;
    return error_set(err, HFSAD_ERROR_INPUT,
                     "the state folder %.200s is that of %.100s, not of %s%.100s: give another folder by --state",
                     m->state_folder, o.other, m->args.all_of ? "clients of " : "", mine);
}

static hfsad_status open_state(member *m, hfsad_error *err)
{
    size_t made = 0;
    store *state = NULL;
    char *folder = m->state_folder = state_folder(m);
    hfsad_status status = folder ? folder_make_state(folder, &made, err) : error_memory(err, 0, "a file name");
    m->state_made = made;
    if (!status)
        status = federation_open_store(m->f, folder, NULL, &state, err);
    m->state = state;
    if (!status)
        status = check_owner(m, err);
    if (!status && m->args.durability == DURABLE_PROCESS)
        status = store_relax(m->state, err);
    return status;
}

/* A process that has ended before it had anything to keep leaves no trace: the folder would be in the way of another
 * spec. */
static void close_state(member *m)
{
    store_discard(m->state);
    if (m->state_folder)
        folder_unmake(m->state_folder, m->state_made);
    char *name = m->state_folder && !m->args.state ? strrchr(m->state_folder, '/') : NULL;
    if (name) { /* of whichever process made it the last one closes the door */
        *name = 0;
        rmdir(m->state_folder);
    }
    free(m->state_folder);
}

static void put_line(void *context, const char *line)
{
    fprintf(context, "%s\n", line);
}

static hfsad_status write_record(const member *m, hfsad_error *err)
{
    if (!m->args.record)
        return HFSAD_OK;
    FILE *f = fopen(m->args.record, "w");
    hfsad_status status = f ? store_get_record(m->state, put_line, f, err) : HFSAD_OK;
    const bool torn = !f || ferror(f);
    if (!f || ((fclose(f) != 0 || torn) && !status))
        status = error_set(err, HFSAD_ERROR_IO, "%.300s cannot be written", m->args.record);
    return status;
}

/* ---- the loop ---- */

static uint64_t draw_instance(void)
{
    uint64_t drawn = 0;
    while (drawn == 0)
        if (getrandom(&drawn, sizeof drawn, 0) != sizeof drawn)
            drawn = (uint64_t)clock();
    return drawn >> 12 | 1;
}

static uint64_t wall_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
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
        .watches = m->metrics != NULL,
        .context = m,
        .event = on_event,
        .finish_row = on_finish_row,
        .other_run = on_other_run,
        .maker = m->f,
        .make = federation_make,
        .instance = draw_instance(),
        .started = wall_ms(),
    };
    const hfsad_status status = host_create(&m->h, &settings, err);
    return status ? status : open_ways(m, err);
}

static void on_old_row(void *context, const hfsad_figures *row)
{
    member *m = context;
    m->has_row = true;
    m->cloud->row(m->cloud->context, row);
}

/* The cloud's folder begins with its node. */
static hfsad_status begin_cloud(member *m, hfsad_error *err)
{
    const node *root = m->cloud ? host_node(m->h, 0) : NULL;
    if (!root || m->begun)
        return HFSAD_OK;
    m->begun = true;
    const hfsad_status status = m->cloud->begin(m->cloud->context, m, root, err);
    return status ? status : store_get_rows(m->state, on_old_row, m, err);
}

static void tell_of_broker(member *m)
{
    if (m->down_since == 0 || m->down_told || progress_clock() < m->down_since + 1)
        return;
    m->down_told = true;
    member_log(&m->args, LOG_WARNING, host_path(m->h, 0), "waits for the broker", m->down_text, "");
}

/* In lock step everybody waits for who is missing; somebody should say so. */
static void tell_of_neighbours(member *m)
{
    static const double patience = 10;
    const node *n = host_node(m->h, 0);
    const uint64_t round = n ? node_get_status(n).round + 1 : 0;
    const double now = progress_clock();
    if (round != m->seen_round || m->seen_at == 0 || m->down_since > 0) {
        if (m->wait_told && m->down_since == 0)
            member_log(&m->args, LOG_INFO, host_path(m->h, 0), "goes on", "", "");
        m->seen_round = round;
        m->seen_at = now;
        m->wait_told = false;
    } else if (!m->wait_told && now > m->seen_at + patience) {
        m->wait_told = true;
        member_log(&m->args, LOG_INFO, host_path(m->h, 0), "waits for others",
                   n ? "no round for 10 s; `hfsad status` shows who is there"
                     : "not all nodes have been heard; `hfsad status` shows who is there",
                   "");
    }
}

/* Until all below know that the run is ended, or for so long. */
static void pass_the_end_on(member *m)
{
    static const double seconds = 6;
    hfsad_error err;
    const double end = progress_clock() + seconds;
    while (!host_all_dismissed(m->h) && progress_clock() < end && !cli_interrupted() && !host_step(m->h, 50, &err))
        continue;
    for (int i = 0; i < 3; i++)
        if (host_step(m->h, 10, &err))
            return;
}

/* Who trains with this cloud cannot see what is wrong here. */
static void dismiss(member *m, const hfsad_error *why)
{
    hfsad_error err;
    if (m->cloud && m->args.linger > 0 && !host_dismiss(m->h, why->message, &err))
        pass_the_end_on(m);
}

static hfsad_status turn(member *m, int64_t timeout_ms, hfsad_error *err)
{
    hfsad_status status = begin_cloud(m, err);
    if (!status)
        status = host_step(m->h, timeout_ms, err);
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
    double quiet_since = progress_clock();
    uint64_t heard = host_get_counts(m->h).heard;
    hfsad_status status = HFSAD_OK;
    while (!status && !cli_interrupted() && progress_clock() < quiet_since + m->args.linger) {
        status = host_step(m->h, 50, err);
        metrics_turn(m->metrics, m->h);
        if (host_get_counts(m->h).heard != heard)
            quiet_since = progress_clock();
        heard = host_get_counts(m->h).heard;
    }
    /* what was said last must leave before the connection does */
    for (int i = 0; i < 3 && !status; i++)
        status = host_step(m->h, 10, err);
    return status;
}

/* The folder of an interrupted run has the models below the cloud too, where they can be had soon. In a stage before
 * the run there is nothing to write. */
static hfsad_status look(member *m, hfsad_error *err)
{
    node *root = m->cloud && m->begun && m->has_row ? host_node(m->h, 0) : NULL;
    const double end = progress_clock() + MEMBER_LOOK_SECONDS;
    hfsad_status status = HFSAD_OK;
    if (!root || host_ended(m->h))
        return status;
    node_look(root);
    while (!status && !host_ended(m->h) && !node_models_below(root) && progress_clock() < end)
        status = turn(m, 50, err);
    return status;
}

static int serve(member *m)
{
    hfsad_error err = {0};
    hfsad_status status = HFSAD_OK;
    while (!status && !host_ended(m->h) && !cli_interrupted())
        status = turn(m, m->metrics ? 200 : 1000, &err); /* who asks for the metrics waits for a turn */
    cli_interrupts_heed();
    if (!status)
        status = begin_cloud(m, &err);
    if (!status && cli_interrupted())
        status = look(m, &err);
    if (status == HFSAD_ERROR_INPUT && !m->is_wrong)
        dismiss(m, &err);
    if (status)
        return cli_fail(&err);
    int exit_status = cli_interrupted() ? 128 + cli_interrupted() : CLI_DONE;
    if (m->cloud && m->begun)
        exit_status = m->cloud->end(m->cloud->context, m, host_node(m->h, 0));
    if (!cli_interrupted() && (write_record(m, &err) || (m->role != ROLE_CLIENT && linger(m, &err))))
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
    if (find_scratch(m, &err) || read_shape(&shape, m->spec, m->scratch, &err) ||
        federation_create(&m->f, m->spec, shape, &err) || check_ways(m, &err) ||
        (m->role == ROLE_CLIENT && read_rows(m, &err)) || check_names(m, &err))
        return cli_fail(&err);
    if (m->cloud && (status = m->cloud->check(m->cloud->context, m)) != CLI_GO)
        return status;
    if (open_metrics(m, &err) || open_state(m, &err) || open_host(m, &err) || join_all(m, &err))
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
    close_state(&m);
    federation_free(m.f);
    free(m.scratch);
    hfsad_spec_free(m.spec);
    return status;
}
