/* See recorder.h. */
#define _GNU_SOURCE /* asprintf */
#include "dash/recorder.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/read_file.h"
#include "dash/fingerprint.h"
#include "dash/settings_text.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ROWS_MOST: rows of the fastest run in half a second. MODELS_KEPT: beyond this number, every second model is
 * removed. */
enum {
    ROWS_MOST = 65536,
    EVENTS_MOST = 4096,
    MODELS_MOST = 256,
    MODELS_KEPT = 256,
    ENTRIES_MOST = 512,
    WRITE_MS = 300,
    BEAT_MS = 5000,
    SPEC_MOST = 1 << 24
};

typedef struct {
    uint64_t iteration;
    uint32_t nonzero, width, count;
    unsigned char *entries; /* count pairs of index and float, 32 bits each */
} model_row;

typedef struct {
    double at;
    int level;
    char node[200], text[400];
} event_row;

struct recorder {
    history *h;
    int64_t run;
    pthread_t thread;
    pthread_mutex_t lock; /* protects the queues and `ending` */
    pthread_mutex_t file; /* protects h: one transaction at a time */
    pthread_cond_t wake;
    bool started, ending;
    hfsad_figures *rows;
    size_t n_rows, room_rows;
    model_row models[MODELS_MOST];
    size_t n_models, n_kept;
    bool thinned;            /* the stride has grown since the last batch */
    _Atomic uint64_t stride; /* iterations between models that are kept */
    event_row *events;
    size_t n_events, room_events;
    uint64_t dropped;
    char *settings; /* all settings of the spec, if the resolved settings are unknown before the end; otherwise NULL */
    char *data;     /* file or folder to be hashed; NULL: none */
    double best;
    int64_t known; /* rows up to this iteration were recorded by an earlier process of the run; -1: none */
    bool resumed;  /* an earlier process began the entry */
    bool failed;   /* the file could not be written; err is set */
    hfsad_error err;
};

/* ---- statements ---- */

static sqlite3_stmt *prepare(const recorder *r, const char *sql)
{
    sqlite3_stmt *s = NULL;
    return sqlite3_prepare_v2(r->h->db, sql, -1, &s, NULL) == SQLITE_OK ? s : NULL;
}

static void bind_real(sqlite3_stmt *s, int at, double v)
{
    if (isfinite(v))
        sqlite3_bind_double(s, at, v);
    else
        sqlite3_bind_null(s, at);
}

static void bind_text(sqlite3_stmt *s, int at, const char *text)
{
    sqlite3_bind_text(s, at, text, -1, SQLITE_TRANSIENT);
}

/* Steps and resets the statement; returns whether it succeeded. */
static bool step(sqlite3_stmt *s)
{
    const bool good = s && sqlite3_step(s) == SQLITE_DONE;
    sqlite3_reset(s);
    return good;
}

static bool execute(const recorder *r, const char *sql)
{
    return sqlite3_exec(r->h->db, sql, NULL, NULL, NULL) == SQLITE_OK;
}

/* ---- writing to the file ---- */

static void bind_row(sqlite3_stmt *s, int64_t run, const hfsad_figures *f)
{
    const double all[] = {f->objective,        f->consensus_objective, f->primal_residual, f->dual_residual,
                          f->consensus_gap,    f->smoothing_gap,       f->relative_error,  f->seconds,
                          (double)f->bytes_up, (double)f->bytes_down,  f->gap_bound};
    double tiers[2 * HFSAD_TIERS_MAX];
    const size_t n = f->tiers < HFSAD_TIERS_MAX ? f->tiers : HFSAD_TIERS_MAX;
    sqlite3_bind_int64(s, 1, run);
    sqlite3_bind_int64(s, 2, (int64_t)f->iteration);
    for (int i = 0; i < (int)(sizeof all / sizeof *all); i++)
        bind_real(s, 3 + i, all[i]);
    memcpy(tiers, f->primal_tier, n * sizeof *tiers);
    memcpy(tiers + n, f->dual_tier, n * sizeof *tiers);
    sqlite3_bind_blob(s, 14, tiers, (int)(2 * n * sizeof *tiers), SQLITE_TRANSIENT);
}

static bool write_rows(recorder *r, const hfsad_figures *rows, size_t count)
{
    sqlite3_stmt *put = prepare(r, "INSERT OR REPLACE INTO trace VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?)");
    bool good = put != NULL;
    for (size_t i = 0; i < count && good; i++) {
        bind_row(put, r->run, &rows[i]);
        good = step(put);
        if (rows[i].objective < r->best)
            r->best = rows[i].objective;
    }
    sqlite3_finalize(put);
    if (!count || !good)
        return good;
    const hfsad_figures *last = &rows[count - 1];
    sqlite3_stmt *set = prepare(r, "UPDATE run SET rows = rows + ?2, iteration = ?3, objective = ?4, "
                                   "best = min(coalesce(best, ?5), ?5), seconds = ?6, bytes = ?7, gap = ?8 "
                                   "WHERE id = ?1");
    sqlite3_bind_int64(set, 1, r->run);
    sqlite3_bind_int64(set, 2, (int64_t)count);
    sqlite3_bind_int64(set, 3, (int64_t)last->iteration);
    bind_real(set, 4, last->objective);
    bind_real(set, 5, r->best);
    bind_real(set, 6, last->seconds);
    bind_real(set, 7, (double)last->bytes_up + (double)last->bytes_down);
    bind_real(set, 8, last->gap_bound);
    good = step(set);
    sqlite3_finalize(set);
    return good;
}

static bool write_models(recorder *r, const model_row *models, size_t count)
{
    sqlite3_stmt *put = count ? prepare(r, "INSERT OR REPLACE INTO model VALUES (?,?,?,?,?)") : NULL;
    bool good = put || !count;
    for (size_t i = 0; i < count && good; i++) {
        sqlite3_bind_int64(put, 1, r->run);
        sqlite3_bind_int64(put, 2, (int64_t)models[i].iteration);
        sqlite3_bind_int64(put, 3, models[i].nonzero);
        sqlite3_bind_int64(put, 4, models[i].width);
        sqlite3_bind_blob(put, 5, models[i].entries, (int)(8 * models[i].count), SQLITE_TRANSIENT);
        good = step(put);
    }
    sqlite3_finalize(put);
    return good;
}

/* Removes every second model; from now on models are wanted at the new stride. */
static bool thin_models(const recorder *r, uint64_t stride)
{
    sqlite3_stmt *s = prepare(r, "DELETE FROM model WHERE run = ? AND iteration % ? != 0");
    sqlite3_bind_int64(s, 1, r->run);
    sqlite3_bind_int64(s, 2, (int64_t)stride);
    const bool good = step(s);
    sqlite3_finalize(s);
    return good;
}

static bool write_events(const recorder *r, const event_row *events, size_t count)
{
    sqlite3_stmt *put = count ? prepare(r, "INSERT INTO event (run, at, level, node, text) VALUES (?,?,?,?,?)") : NULL;
    bool good = put || !count;
    for (size_t i = 0; i < count && good; i++) {
        sqlite3_bind_int64(put, 1, r->run);
        sqlite3_bind_double(put, 2, events[i].at);
        sqlite3_bind_int(put, 3, events[i].level);
        bind_text(put, 4, events[i].node);
        bind_text(put, 5, events[i].text);
        good = step(put);
    }
    sqlite3_finalize(put);
    return good;
}

static bool write_beat(const recorder *r)
{
    sqlite3_stmt *s = prepare(r, "UPDATE run SET seen = ? WHERE id = ?");
    sqlite3_bind_double(s, 1, (double)clock_wall_ms());
    sqlite3_bind_int64(s, 2, r->run);
    const bool good = step(s);
    sqlite3_finalize(s);
    return good;
}

static void set_data_hash(const recorder *r, const char *hash)
{
    sqlite3_stmt *s = prepare(r, "UPDATE run SET data_hash = ? WHERE id = ?");
    bind_text(s, 1, hash);
    sqlite3_bind_int64(s, 2, r->run);
    (void)step(s);
    sqlite3_finalize(s);
}

/* ---- the thread ---- */

/* The contents of the queues; only the thread uses it. */
typedef struct {
    hfsad_figures *rows;
    size_t n_rows, room_rows;
    model_row models[MODELS_MOST];
    size_t n_models;
    event_row *events;
    size_t n_events, room_events;
    uint64_t thin; /* the new stride; 0: unchanged */
} batch;

static bool write_batch(recorder *r, const batch *b)
{
    pthread_mutex_lock(&r->file);
    bool good = execute(r, "BEGIN IMMEDIATE") && write_rows(r, b->rows, b->n_rows) &&
                (!b->thin || thin_models(r, b->thin)) && write_models(r, b->models, b->n_models) &&
                write_events(r, b->events, b->n_events) && write_beat(r) && execute(r, "COMMIT");
    if (!good && !r->failed) {
        (void)history_error(r->h, &r->err);
        r->failed = true;
    }
    if (!good)
        (void)execute(r, "ROLLBACK");
    pthread_mutex_unlock(&r->file);
    return good;
}

/* Swaps the queues with the batch's empty arrays; no row is copied. */
static void take_queues(recorder *r, batch *b)
{
    hfsad_figures *rows = b->rows;
    event_row *events = b->events;
    const size_t room_rows = b->room_rows, room_events = b->room_events;
    *b = (batch){.rows = r->rows,
                 .n_rows = r->n_rows,
                 .room_rows = r->room_rows,
                 .n_models = r->n_models,
                 .events = r->events,
                 .n_events = r->n_events,
                 .room_events = r->room_events};
    memcpy(b->models, r->models, r->n_models * sizeof *b->models);
    r->rows = rows;
    r->room_rows = room_rows;
    r->events = events;
    r->room_events = room_events;
    r->n_kept += r->n_models;
    r->n_rows = r->n_models = r->n_events = 0;
    if (r->n_kept > MODELS_KEPT) {
        r->stride = 2 * r->stride;
        r->n_kept /= 2;
        r->thinned = true;
    }
    b->thin = r->thinned ? r->stride : 0;
    r->thinned = false;
}

static bool wait_for_work(recorder *r)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += WRITE_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    while (!r->ending)
        if (pthread_cond_timedwait(&r->wake, &r->lock, &until) != 0)
            break;
    return r->ending;
}

static void *work(void *context)
{
    recorder *r = context;
    batch b = {0};
    double beat = 0;
    char hash[FINGERPRINT_SIZE];
    if (r->data && fingerprint_path(r->data, hash)) {
        pthread_mutex_lock(&r->file);
        set_data_hash(r, hash);
        pthread_mutex_unlock(&r->file);
    }
    for (bool ending = false; !ending;) {
        pthread_mutex_lock(&r->lock);
        ending = wait_for_work(r);
        take_queues(r, &b);
        pthread_mutex_unlock(&r->lock);
        if (b.n_rows || b.n_models || b.n_events || b.thin || ending || clock_seconds() > beat) {
            (void)write_batch(r, &b);
            beat = clock_seconds() + BEAT_MS / 1e3;
        }
        for (size_t i = 0; i < b.n_models; i++)
            free(b.models[i].entries);
        b.n_models = 0;
    }
    free(b.rows);
    free(b.events);
    return NULL;
}

/* ---- queues ---- */

void recorder_row(recorder *r, const hfsad_figures *row)
{
    if (!r || (int64_t)row->iteration <= r->known)
        return;
    pthread_mutex_lock(&r->lock);
    if (r->n_rows < ROWS_MOST && alloc_grow((void **)&r->rows, &r->room_rows, r->n_rows + 1, sizeof *r->rows))
        r->rows[r->n_rows++] = *row;
    else
        r->dropped++;
    pthread_mutex_unlock(&r->lock);
}

bool recorder_wants_model(const recorder *r, uint64_t iteration)
{
    return r && iteration % r->stride == 0;
}

static int by_size(const void *a, const void *b)
{
    const float x = fabsf(((const float *)a)[1]), y = fabsf(((const float *)b)[1]);
    return (x < y) - (x > y);
}

/* The queue of models is full before it is written: every second model is dropped, as in the file. */
static void thin_queue(recorder *r)
{
    size_t kept = 0;
    r->stride = 2 * r->stride;
    for (size_t i = 0; i < r->n_models; i++) {
        if (r->models[i].iteration % r->stride == 0 && kept < MODELS_MOST / 2)
            r->models[kept++] = r->models[i];
        else
            free(r->models[i].entries);
    }
    r->n_models = kept;
    r->n_kept /= 2;
    r->thinned = true;
}

void recorder_model(recorder *r, uint64_t iteration, const double *w, size_t width)
{
    if (!r || width > UINT32_MAX)
        return;
    model_row m = {.iteration = iteration, .width = (uint32_t)width};
    struct {
        uint32_t index;
        float value;
    } *all = alloc_raw(width ? width : 1, sizeof *all);
    if (!all)
        return;
    for (size_t i = 0; i < width; i++)
        if (w[i] != 0) {
            all[m.nonzero].index = (uint32_t)i;
            all[m.nonzero++].value = (float)w[i];
        }
    m.count = m.nonzero < ENTRIES_MOST ? m.nonzero : ENTRIES_MOST;
    if (m.nonzero > ENTRIES_MOST)
        qsort(all, m.nonzero, sizeof *all, by_size);
    m.entries = (unsigned char *)all;
    pthread_mutex_lock(&r->lock);
    if (r->n_models == MODELS_MOST)
        thin_queue(r);
    r->models[r->n_models++] = m;
    pthread_mutex_unlock(&r->lock);
}

void recorder_event(recorder *r, int level, const char *node, const char *text)
{
    if (!r)
        return;
    pthread_mutex_lock(&r->lock);
    if (r->n_events < EVENTS_MOST &&
        alloc_grow((void **)&r->events, &r->room_events, r->n_events + 1, sizeof *r->events)) {
        event_row *e = &r->events[r->n_events++];
        e->at = (double)clock_wall_ms();
        e->level = level;
        snprintf(e->node, sizeof e->node, "%s", node);
        snprintf(e->text, sizeof e->text, "%s", text);
    } else {
        r->dropped++;
    }
    pthread_mutex_unlock(&r->lock);
}

static void bind_node(const recorder *r, sqlite3_stmt *s, const recorder_node *n)
{
    sqlite3_bind_int64(s, 1, r->run);
    sqlite3_bind_int64(s, 2, (int64_t)n->number);
    sqlite3_bind_int64(s, 3, n->parent == SIZE_MAX ? -1 : (int64_t)n->parent);
    bind_text(s, 4, n->path);
    sqlite3_bind_int(s, 5, n->inner);
    bind_text(s, 6, n->state);
    bind_text(s, 7, n->phase);
    sqlite3_bind_int64(s, 8, (int64_t)n->round);
    sqlite3_bind_int64(s, 9, (int64_t)n->refused);
    sqlite3_bind_int64(s, 10, (int64_t)n->repeated);
    sqlite3_bind_int64(s, 11, (int64_t)n->sent);
    sqlite3_bind_int64(s, 12, (int64_t)n->received);
    bind_text(s, 13, n->waits_for);
    sqlite3_bind_int64(s, 14, (int64_t)n->waits_more);
    sqlite3_bind_int64(s, 15, (int64_t)n->waits_ms);
    sqlite3_bind_int64(s, 16, (int64_t)n->losses);
    sqlite3_bind_double(s, 17, n->said);
}

void recorder_nodes(recorder *r, const recorder_node *nodes, size_t count)
{
    if (!r || !count)
        return;
    pthread_mutex_lock(&r->file);
    bool good = execute(r, "BEGIN IMMEDIATE");
    sqlite3_stmt *put =
        good ? prepare(r, "INSERT OR REPLACE INTO node VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)") : NULL;
    for (size_t i = 0; i < count && put && good; i++) {
        bind_node(r, put, &nodes[i]);
        good = step(put);
    }
    sqlite3_finalize(put);
    if (!good || !execute(r, "COMMIT"))
        (void)execute(r, "ROLLBACK");
    pthread_mutex_unlock(&r->file);
}

/* ---- begin and end ---- */

/* "dir/trial.yaml" gives "trial", "dir/spec.yaml" gives "dir". */
static void name_of(const char *path, char name[200])
{
    const char *slash = strrchr(path, '/');
    snprintf(name, 200, "%s", slash ? slash + 1 : path);
    char *dot = strrchr(name, '.');
    if (dot && dot != name)
        *dot = 0;
    if (strcmp(name, "spec") != 0 || !slash)
        return;
    const char *folder = slash;
    while (folder > path && folder[-1] != '/')
        folder--;
    if (folder < slash && *folder != '.')
        snprintf(name, 200, "%.*s", (int)(slash - folder), folder);
}

static void bind_spec(sqlite3_stmt *s, const recorder_start *start)
{
    char *text = NULL, hash[FINGERPRINT_SIZE];
    size_t size = 0;
    if (start->spec_path && file_read(start->spec_path, SPEC_MOST, &text, &size) == 0) {
        sqlite3_bind_text(s, 4, text, (int)size, SQLITE_TRANSIENT);
        fingerprint_bytes(text, size, hash);
        bind_text(s, 5, hash);
    }
    free(text);
    char *given = settings_text(start->spec, false);
    char *settled = start->settled ? settings_text(start->settled, true) : NULL;
    bind_text(s, 6, given);
    bind_text(s, 7, settled);
    cJSON_free(given);
    cJSON_free(settled);
}

/* The absolute path, also of a folder that does not exist yet; the caller frees it. */
static char *full_path(const char *path)
{
    char *found = path ? realpath(path, NULL) : NULL, folder[4096], *full = NULL;
    if (found || !path)
        return found;
    if (path[0] == '/' || !getcwd(folder, sizeof folder) || asprintf(&full, "%s/%s", folder, path) < 0)
        return strdup(path);
    return full;
}

static bool enter_run(recorder *r, const recorder_start *start)
{
    char name[200] = "run", host[256] = "", boot[64], *out = full_path(start->out), *spec = full_path(start->spec_path);
    int64_t seed = 0, iterations = 0;
    if (start->name || start->spec_path)
        name_of(start->name ? start->name : spec ? spec : start->spec_path, name);
    (void)gethostname(host, sizeof host - 1);
    boot_name(boot);
    (void)hfsad_spec_get_whole(start->spec, "run.seed", &seed, NULL);
    (void)hfsad_spec_get_whole(start->spec, "run.iterations", &iterations, NULL);
    sqlite3_stmt *s = prepare(r, "INSERT INTO run (kind, name, spec_path, spec, spec_hash, given, settings, seed, "
                                 "version, host, boot, pid, pid_since, started, seen, status, iterations, out) "
                                 "VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,'running',?,?)");
    bind_text(s, 1, start->kind);
    bind_text(s, 2, name);
    bind_text(s, 3, spec);
    bind_spec(s, start);
    sqlite3_bind_int64(s, 8, seed);
    bind_text(s, 9, hfsad_version());
    bind_text(s, 10, host);
    bind_text(s, 11, boot);
    sqlite3_bind_int64(s, 12, getpid());
    sqlite3_bind_int64(s, 13, process_since(getpid()));
    sqlite3_bind_double(s, 14, (double)clock_wall_ms());
    sqlite3_bind_double(s, 15, (double)clock_wall_ms());
    sqlite3_bind_int64(s, 16, iterations);
    bind_text(s, 17, out);
    const bool good = step(s);
    r->run = sqlite3_last_insert_rowid(r->h->db);
    sqlite3_finalize(s);
    free(out);
    free(spec);
    return good;
}

/* ---- a run that goes on ---- */

/* Whether an entry may be continued: it has not ended successfully, and no process of this machine works on it. */
static bool is_left(sqlite3_stmt *s)
{
    char host[256] = "";
    const char *status = (const char *)sqlite3_column_text(s, 1), *at = (const char *)sqlite3_column_text(s, 2),
               *boot = (const char *)sqlite3_column_text(s, 3);
    (void)gethostname(host, sizeof host - 1);
    if (!status || !strcmp(status, "done") || !strcmp(status, "diverged"))
        return false;
    return strcmp(status, "running") != 0 || !at || strcmp(at, host) != 0 || !boot ||
           !process_lives(sqlite3_column_int64(s, 4), sqlite3_column_int64(s, 5), boot);
}

/* The last entry of this command for the same spec, settings and output folder; 0: none to continue. */
static int64_t find_left(const recorder *r, const recorder_start *start)
{
    char *text = NULL, hash[FINGERPRINT_SIZE] = "", *given = settings_text(start->spec, false),
         *out = full_path(start->out);
    size_t size = 0;
    int64_t id = 0;
    if (start->spec_path && file_read(start->spec_path, SPEC_MOST, &text, &size) == 0)
        fingerprint_bytes(text, size, hash);
    sqlite3_stmt *s = prepare(r, "SELECT id, status, host, boot, pid, pid_since FROM run WHERE kind = ? AND out IS ? "
                                 "AND spec_hash IS ? AND given IS ? ORDER BY id DESC LIMIT 1");
    bind_text(s, 1, start->kind);
    bind_text(s, 2, out);
    bind_text(s, 3, hash);
    bind_text(s, 4, given);
    if (sqlite3_step(s) == SQLITE_ROW && is_left(s))
        id = sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    cJSON_free(given);
    free(out);
    free(text);
    return id;
}

/* Assigns the entry to this process. */
static bool take_over(const recorder *r)
{
    char host[256] = "", boot[64];
    (void)gethostname(host, sizeof host - 1);
    boot_name(boot);
    sqlite3_stmt *s = prepare(r, "UPDATE run SET status = 'running', why = NULL, exit = NULL, ended = NULL, host = ?, "
                                 "boot = ?, pid = ?, pid_since = ?, seen = ?, version = ? WHERE id = ?");
    bind_text(s, 1, host);
    bind_text(s, 2, boot);
    sqlite3_bind_int64(s, 3, getpid());
    sqlite3_bind_int64(s, 4, process_since(getpid()));
    sqlite3_bind_double(s, 5, (double)clock_wall_ms());
    bind_text(s, 6, hfsad_version());
    sqlite3_bind_int64(s, 7, r->run);
    const bool good = step(s);
    sqlite3_finalize(s);
    return good;
}

/* Creates the entry, or finds the entry that this run continues. */
static bool begin_run(recorder *r, const recorder_start *start)
{
    bool good = execute(r, "BEGIN IMMEDIATE");
    r->run = good && start->continues ? find_left(r, start) : 0;
    r->resumed = r->run > 0;
    good = good && (r->resumed ? take_over(r) : enter_run(r, start)) && execute(r, "COMMIT");
    if (!good)
        (void)execute(r, "ROLLBACK");
    return good;
}

/* The models that an earlier process has kept, and their stride: all their iterations are multiples of it. */
static void count_models(recorder *r)
{
    uint64_t bits = 0;
    sqlite3_stmt *s = prepare(r, "SELECT iteration FROM model WHERE run = ?");
    sqlite3_bind_int64(s, 1, r->run);
    while (sqlite3_step(s) == SQLITE_ROW) {
        bits |= (uint64_t)sqlite3_column_int64(s, 0);
        r->n_kept++;
    }
    sqlite3_finalize(s);
    r->stride = bits ? bits & (~bits + 1) : 1;
}

/* Finds the data relative to the spec. */
static char *find_data(const recorder_start *start)
{
    char name[1000];
    const char *slash = start->spec_path ? strrchr(start->spec_path, '/') : NULL;
    struct stat info;
    if (start->run || hfsad_spec_get(start->spec, "data", name, sizeof name, NULL, NULL) || !*name)
        return NULL;
    char *path = alloc_zero(1, strlen(name) + (slash ? strlen(start->spec_path) : 0) + 2);
    if (path && slash && name[0] != '/')
        sprintf(path, "%.*s/%s", (int)(slash - start->spec_path), start->spec_path, name);
    else if (path)
        strcpy(path, name);
    if (path && stat(path, &info) != 0) {
        free(path);
        path = NULL;
    }
    return path;
}

static int64_t last_known(const recorder *r)
{
    sqlite3_stmt *s = prepare(r, "SELECT coalesce(max(iteration), -1) FROM trace WHERE run = ?");
    sqlite3_bind_int64(s, 1, r->run);
    const int64_t last = sqlite3_step(s) == SQLITE_ROW ? sqlite3_column_int64(s, 0) : -1;
    sqlite3_finalize(s);
    return last;
}

static bool start_thread(recorder *r)
{
    sigset_t all, old;
    pthread_condattr_t kind;
    pthread_condattr_init(&kind);
    pthread_condattr_setclock(&kind, CLOCK_MONOTONIC);
    pthread_cond_init(&r->wake, &kind);
    pthread_condattr_destroy(&kind);
    pthread_mutex_init(&r->lock, NULL);
    pthread_mutex_init(&r->file, NULL);
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old); /* the training thread handles Ctrl-C */
    r->started = pthread_create(&r->thread, NULL, work, r) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return r->started;
}

static void free_recorder(recorder *r)
{
    for (size_t i = 0; i < r->n_models; i++)
        free(r->models[i].entries);
    free(r->rows);
    free(r->events);
    free(r->data);
    cJSON_free(r->settings);
    history_close(r->h);
    free(r);
}

hfsad_status recorder_create(recorder **out, const char *path, const recorder_start *start, hfsad_error *err)
{
    recorder *r = alloc_zero(1, sizeof *r);
    *out = NULL;
    if (!r)
        return error_memory(err, sizeof *r, "the history");
    r->stride = 1;
    r->best = INFINITY;
    r->run = start->run;
    hfsad_status status = history_open(&r->h, path, start->run ? HISTORY_WRITE : HISTORY_CREATE, err);
    if (!status && !start->run && !begin_run(r, start))
        status = history_error(r->h, err);
    if (!status) {
        r->known = last_known(r);
        count_models(r);
        r->data = find_data(start);
        r->settings = start->settled || start->run ? NULL : settings_text(start->spec, true);
        if (!start_thread(r))
            status = error_set(err, HFSAD_ERROR_MEMORY, "history '%.300s': no thread can be started", path);
    }
    if (status)
        free_recorder(r);
    else
        *out = r;
    if (!status && r->resumed)
        recorder_event(r, HISTORY_INFO, "", "continues in a new process");
    return status;
}

int64_t recorder_run(const recorder *r)
{
    return r->run;
}

const char *recorder_path(const recorder *r)
{
    return r->h->path;
}

static bool write_end(const recorder *r, const char *status, const char *why, int exit_status, const char *summary)
{
    char *settled = settings_resolved(r->settings, summary);
    sqlite3_stmt *s = prepare(r, "UPDATE run SET status = ?2, why = ?3, exit = ?4, summary = ?5, ended = ?6, "
                                 "settings = coalesce(?7, settings) WHERE id = ?1");
    sqlite3_bind_int64(s, 1, r->run);
    bind_text(s, 2, status);
    bind_text(s, 3, why);
    sqlite3_bind_int(s, 4, exit_status);
    bind_text(s, 5, summary);
    sqlite3_bind_double(s, 6, (double)clock_wall_ms());
    bind_text(s, 7, settled);
    const bool good = step(s);
    sqlite3_finalize(s);
    cJSON_free(settled);
    return good;
}

hfsad_status recorder_end(recorder *r, const char *status, const char *why, int exit_status, const char *summary,
                          hfsad_error *err)
{
    if (!r)
        return HFSAD_OK;
    pthread_mutex_lock(&r->lock);
    r->ending = true;
    pthread_cond_signal(&r->wake);
    pthread_mutex_unlock(&r->lock);
    pthread_join(r->thread, NULL);
    pthread_cond_destroy(&r->wake);
    pthread_mutex_destroy(&r->lock);
    pthread_mutex_destroy(&r->file);
    hfsad_status result = HFSAD_OK;
    if (status && !write_end(r, status, why, exit_status, summary) && !r->failed)
        result = history_error(r->h, err);
    if (r->failed) {
        *err = r->err;
        result = err->status;
    } else if (r->dropped && !result) {
        result = error_set(err, HFSAD_ERROR_IO, "history '%.300s' was too slow: %llu rows or events are missing in it",
                           r->h->path, (unsigned long long)r->dropped);
    }
    free_recorder(r);
    return result;
}
