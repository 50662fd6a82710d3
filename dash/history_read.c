/* Reads the history as JSON; see history.h. */
#define _GNU_SOURCE /* strdup */
#include "dash/history.h"

#include "base/clock.h"
#include "base/error.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Seconds of silence after which a run of another machine or of an earlier boot counts as killed. */
enum { SILENT_MS = 60000, RUNS_DEFAULT = 100 };

/* Prepares a statement from a printf-like text (%Q quotes, %lld); NULL: err is set. */
static sqlite3_stmt *query(history *h, hfsad_error *err, const char *format, ...)
{
    sqlite3_stmt *s = NULL;
    va_list list;
    va_start(list, format);
    char *sql = sqlite3_vmprintf(format, list);
    va_end(list);
    if (!sql || sqlite3_prepare_v2(h->db, sql, -1, &s, NULL) != SQLITE_OK)
        (void)history_error(h, err);
    sqlite3_free(sql);
    return s;
}

static void add_number(cJSON *to, const char *name, double v)
{
    if (isfinite(v))
        cJSON_AddNumberToObject(to, name, v);
    else
        cJSON_AddNullToObject(to, name);
}

/* Adds a column under its own name. */
static void add_column(cJSON *to, sqlite3_stmt *s, int i)
{
    const char *name = sqlite3_column_name(s, i);
    switch (sqlite3_column_type(s, i)) {
    case SQLITE_INTEGER:
    case SQLITE_FLOAT:
        add_number(to, name, sqlite3_column_double(s, i));
        break;
    case SQLITE_TEXT:
        cJSON_AddStringToObject(to, name, (const char *)sqlite3_column_text(s, i));
        break;
    default:
        cJSON_AddNullToObject(to, name);
    }
}

static cJSON *row_object(sqlite3_stmt *s)
{
    cJSON *o = cJSON_CreateObject();
    for (int i = 0; i < sqlite3_column_count(s); i++)
        add_column(o, s, i);
    return o;
}

/* Replaces a text by the JSON that it holds. */
static void parse_member(cJSON *o, const char *name)
{
    const cJSON *text = cJSON_GetObjectItemCaseSensitive(o, name);
    cJSON *parsed = cJSON_IsString(text) ? cJSON_Parse(text->valuestring) : NULL;
    if (parsed)
        cJSON_ReplaceItemInObjectCaseSensitive(o, name, parsed);
}

static const char *text_of(const cJSON *o, const char *name)
{
    const cJSON *t = cJSON_GetObjectItemCaseSensitive(o, name);
    return cJSON_IsString(t) ? t->valuestring : "";
}

static double number_of(const cJSON *o, const char *name)
{
    const cJSON *n = cJSON_GetObjectItemCaseSensitive(o, name);
    return cJSON_IsNumber(n) ? n->valuedouble : NAN;
}

/* A run with the status `running` may have been killed, so its process is looked up. */
static void settle_status(cJSON *run)
{
    char host[256] = "";
    (void)gethostname(host, sizeof host - 1);
    if (!strcmp(text_of(run, "status"), "running")) {
        const bool here = !strcmp(text_of(run, "host"), host);
        const bool lives = here ? process_lives((int64_t)number_of(run, "pid"), (int64_t)number_of(run, "pid_since"),
                                                text_of(run, "boot"))
                                : (double)clock_wall_ms() - number_of(run, "seen") < SILENT_MS;
        if (!lives) {
            cJSON_ReplaceItemInObjectCaseSensitive(run, "status", cJSON_CreateString(here ? "killed" : "silent"));
            cJSON_ReplaceItemInObjectCaseSensitive(
                run, "why", cJSON_CreateString(here ? "its process ended without a report" : "silent for a minute"));
            add_number(run, "last_seen", number_of(run, "seen"));
        }
    }
    static const char *const inner[] = {"boot", "pid_since", "seen"};
    for (size_t i = 0; i < sizeof inner / sizeof *inner; i++)
        cJSON_DeleteItemFromObjectCaseSensitive(run, inner[i]);
}

static void add_tags(history *h, cJSON *run, int64_t id)
{
    hfsad_error err;
    cJSON *tags = cJSON_AddArrayToObject(run, "tags");
    sqlite3_stmt *s = query(h, &err, "SELECT tag FROM tag WHERE run = %lld ORDER BY tag", (sqlite3_int64)id);
    while (s && sqlite3_step(s) == SQLITE_ROW)
        cJSON_AddItemToArray(tags, cJSON_CreateString((const char *)sqlite3_column_text(s, 0)));
    sqlite3_finalize(s);
}

bool history_sort_known(const char *column)
{
    static const char *const known[] = {
#define NAME(name) #name,
        HISTORY_SORTS(NAME)
#undef NAME
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(column, known[i]))
            return true;
    return false;
}

#define RUN_COLUMNS                                                                                                    \
    "id, kind, name, spec_path, spec_hash, data_hash, given, seed, version, host, boot, pid, pid_since, started, "     \
    "seen, ended, status, why, exit, iterations, out, rows, iteration, objective, best, seconds, bytes, gap, "         \
    "EXISTS (SELECT 1 FROM node WHERE node.run = run.id) AS federation, "                                              \
    "json_extract(summary, '$.converged') AS converged, json_extract(summary, '$.algorithm') AS algorithm"

/* In the file, killed runs have the status `running`. */
static bool is_wanted(const cJSON *run, const history_filter *f)
{
    return !f->status || !strcmp(f->status, text_of(run, "status"));
}

/* The numbers of all runs that match the filter, in order. */
static sqlite3_stmt *list_query(history *h, const history_filter *f, hfsad_error *err)
{
    const char *sort = f->sort && strcmp(f->sort, "started") && history_sort_known(f->sort) ? f->sort : NULL;
    char *like = sqlite3_mprintf("%%%s%%", f->text ? f->text : "");
    char *kind = f->kind ? sqlite3_mprintf(" AND kind = %Q", f->kind) : sqlite3_mprintf("");
    char *tag = f->tag ? sqlite3_mprintf(" AND EXISTS (SELECT 1 FROM tag WHERE tag.run = run.id AND tag = %Q)", f->tag)
                       : sqlite3_mprintf("");
    char *text = f->text
                     ? sqlite3_mprintf(" AND (name LIKE %Q OR coalesce(spec_path, '') LIKE %Q OR coalesce(out, '') "
                                       "LIKE %Q OR EXISTS (SELECT 1 FROM tag WHERE tag.run = run.id AND tag LIKE %Q))",
                                       like, like, like, like)
                     : sqlite3_mprintf("");
    const char *order = f->rising ? "ASC" : "DESC";
    sqlite3_stmt *s = !like || !kind || !tag || !text ? NULL
                      : sort ? query(h, err, "SELECT id FROM run WHERE 1%s%s%s ORDER BY %s IS NULL, %s %s, id DESC",
                                     kind, tag, text, sort, sort, order)
                             : query(h, err, "SELECT id FROM run WHERE 1%s%s%s ORDER BY id %s", kind, tag, text, order);
    sqlite3_free(like);
    sqlite3_free(kind);
    sqlite3_free(tag);
    sqlite3_free(text);
    return s;
}

/* A run without its long texts; NULL: it was deleted meanwhile, or does not match the filter. */
static cJSON *listed_run(history *h, sqlite3_stmt *one, int64_t id, const history_filter *f)
{
    cJSON *run = NULL;
    sqlite3_bind_int64(one, 1, id);
    if (sqlite3_step(one) == SQLITE_ROW) {
        run = row_object(one);
        settle_status(run);
        if (!is_wanted(run, f)) {
            cJSON_Delete(run);
            run = NULL;
        }
    }
    sqlite3_reset(one);
    if (run) {
        parse_member(run, "given");
        add_tags(h, run, id);
    }
    return run;
}

cJSON *history_runs(history *h, const history_filter *f, hfsad_error *err)
{
    const int64_t limit = f->limit > 0 ? f->limit : RUNS_DEFAULT;
    int64_t skip = f->offset, count = 0;
    int code = SQLITE_ROW;
    sqlite3_stmt *all = list_query(h, f, err),
                 *one = all ? query(h, err, "SELECT " RUN_COLUMNS " FROM run WHERE id = ?") : NULL;
    cJSON *runs = one ? cJSON_CreateArray() : NULL;
    while (one && count < limit && (code = sqlite3_step(all)) == SQLITE_ROW) {
        cJSON *run = listed_run(h, one, sqlite3_column_int64(all, 0), f);
        if (run && skip-- > 0) {
            cJSON_Delete(run);
        } else if (run) {
            cJSON_AddItemToArray(runs, run);
            count++;
        }
    }
    if (code != SQLITE_DONE && code != SQLITE_ROW) {
        (void)history_error(h, err);
        cJSON_Delete(runs);
        runs = NULL;
    }
    sqlite3_finalize(all);
    sqlite3_finalize(one);
    return runs;
}

cJSON *history_run(history *h, int64_t id, hfsad_error *err)
{
    sqlite3_stmt *s =
        query(h, err, "SELECT " RUN_COLUMNS ", settings, summary, spec FROM run WHERE id = %lld", (sqlite3_int64)id);
    cJSON *run = NULL;
    if (s && sqlite3_step(s) == SQLITE_ROW) {
        run = row_object(s);
        settle_status(run);
        parse_member(run, "given");
        parse_member(run, "settings");
        parse_member(run, "summary");
        add_tags(h, run, id);
        const char *out = text_of(run, "out");
        cJSON_AddBoolToObject(run, "out_exists", *out && access(out, F_OK) == 0);
    } else if (s) {
        error_set(err, HFSAD_ERROR_INPUT, "history '%.200s' has no run %lld; hfsad runs lists them", h->path,
                  (long long)id);
    }
    sqlite3_finalize(s);
    return run;
}

/* ---- trace ---- */

static const char *const columns[] = {"iteration",     "objective",     "consensus_objective", "primal_residual",
                                      "dual_residual", "consensus_gap", "smoothing_gap",       "relative_error",
                                      "seconds",       "bytes_up",      "bytes_down",          "gap_bound"};
enum { COLUMNS = sizeof columns / sizeof *columns, PLOTTED_MOST = 100000000 };
#define TRACE_COLUMNS                                                                                                  \
    "iteration, objective, consensus_objective, primal_residual, dual_residual, consensus_gap, smoothing_gap, "        \
    "relative_error, seconds, bytes_up, bytes_down, gap_bound, tiers"

typedef struct {
    cJSON *column[COLUMNS], *tiers[2 * HFSAD_TIERS_MAX]; /* primal of all tiers, then dual */
    size_t n_tiers;
} trace_json;

static void add_value(cJSON *to, double v)
{
    cJSON_AddItemToArray(to, isfinite(v) ? cJSON_CreateNumber(v) : cJSON_CreateNull());
}

static void add_json_row(trace_json *t, sqlite3_stmt *s)
{
    for (int i = 0; i < COLUMNS; i++)
        add_value(t->column[i], sqlite3_column_type(s, i) == SQLITE_NULL ? NAN : sqlite3_column_double(s, i));
    double tiers[2 * HFSAD_TIERS_MAX];
    const size_t size = (size_t)sqlite3_column_bytes(s, COLUMNS), n = size / sizeof *tiers / 2;
    if (n > HFSAD_TIERS_MAX || n == 0)
        return;
    memcpy(tiers, sqlite3_column_blob(s, COLUMNS), 2 * n * sizeof *tiers);
    if (!t->n_tiers)
        for (size_t i = 0; i < 2 * n; i++)
            t->tiers[i] = cJSON_CreateArray();
    t->n_tiers = t->n_tiers ? t->n_tiers : n;
    for (size_t i = 0; i < 2 * t->n_tiers && n == t->n_tiers; i++)
        add_value(t->tiers[i], tiers[i]);
}

static cJSON *trace_object(const trace_json *t)
{
    cJSON *o = cJSON_CreateObject();
    for (int i = 0; i < COLUMNS; i++)
        cJSON_AddItemToObject(o, columns[i], t->column[i]);
    cJSON *primal = cJSON_AddArrayToObject(o, "primal_tier"), *dual = cJSON_AddArrayToObject(o, "dual_tier");
    for (size_t i = 0; i < t->n_tiers; i++) {
        cJSON_AddItemToArray(primal, t->tiers[i]);
        cJSON_AddItemToArray(dual, t->tiers[t->n_tiers + i]);
    }
    return o;
}

/* One search in the index for each point, so that a million rows cost no more than a few thousand. */
static int add_spaced(history *h, trace_json *t, int64_t id, int64_t first, int64_t last, int64_t most)
{
    sqlite3_stmt *s = NULL;
    int code = sqlite3_prepare_v2(h->db,
                                  "SELECT " TRACE_COLUMNS " FROM trace WHERE run = ? AND iteration >= ? "
                                  "ORDER BY iteration LIMIT 1",
                                  -1, &s, NULL);
    int64_t at = first;
    for (int64_t i = 0; i < most && at <= last && code == SQLITE_OK; i++) {
        sqlite3_bind_int64(s, 1, id);
        sqlite3_bind_int64(s, 2, i + 1 == most ? last : at);
        if (sqlite3_step(s) != SQLITE_ROW)
            break;
        const int64_t found = sqlite3_column_int64(s, 0);
        add_json_row(t, s);
        const int64_t next = first + (int64_t)((double)(last - first) * (double)(i + 1) / (double)(most - 1));
        at = next > found ? next : found + 1;
        code = sqlite3_reset(s);
    }
    sqlite3_finalize(s);
    return code;
}

cJSON *history_trace(history *h, int64_t id, int64_t after, int64_t most, hfsad_error *err)
{
    trace_json t = {0};
    sqlite3_stmt *s = query(h, err,
                            "SELECT (SELECT min(iteration) FROM trace WHERE run = %lld AND iteration > %lld), "
                            "(SELECT max(iteration) FROM trace WHERE run = %lld)",
                            (sqlite3_int64)id, (sqlite3_int64)after, (sqlite3_int64)id);
    if (!s)
        return NULL;
    const bool any = sqlite3_step(s) == SQLITE_ROW && sqlite3_column_type(s, 0) != SQLITE_NULL;
    const int64_t first = sqlite3_column_int64(s, 0), last = sqlite3_column_int64(s, 1);
    sqlite3_finalize(s);
    for (int i = 0; i < COLUMNS; i++)
        t.column[i] = cJSON_CreateArray();
    if (any && add_spaced(h, &t, id, first, last, most > 2 ? most : 2) != SQLITE_OK) {
        (void)history_error(h, err);
        cJSON_Delete(trace_object(&t));
        return NULL;
    }
    return trace_object(&t);
}

/* ---- models, events, nodes ---- */

cJSON *history_models(history *h, int64_t id, hfsad_error *err)
{
    sqlite3_stmt *s =
        query(h, err, "SELECT iteration, nonzero, width, entries FROM model WHERE run = %lld ORDER BY iteration",
              (sqlite3_int64)id);
    cJSON *all = s ? cJSON_CreateArray() : NULL;
    while (s && sqlite3_step(s) == SQLITE_ROW) {
        cJSON *one = cJSON_CreateObject(), *index = cJSON_CreateArray(), *value = cJSON_CreateArray();
        for (int i = 0; i < 3; i++)
            add_column(one, s, i);
        const unsigned char *bytes = sqlite3_column_blob(s, 3);
        for (int i = 0; i < sqlite3_column_bytes(s, 3) / 8; i++) {
            uint32_t at;
            float v;
            char text[32];
            memcpy(&at, bytes + (size_t)8 * (size_t)i, 4);
            memcpy(&v, bytes + (size_t)8 * (size_t)i + 4, 4);
            snprintf(text, sizeof text, "%.6g", isfinite(v) ? (double)v : 0.0);
            cJSON_AddItemToArray(index, cJSON_CreateNumber(at));
            cJSON_AddItemToArray(value, cJSON_CreateRaw(text));
        }
        cJSON_AddItemToObject(one, "index", index);
        cJSON_AddItemToObject(one, "value", value);
        cJSON_AddItemToArray(all, one);
    }
    sqlite3_finalize(s);
    return all;
}

static cJSON *rows_array(sqlite3_stmt *s)
{
    cJSON *all = s ? cJSON_CreateArray() : NULL;
    while (s && sqlite3_step(s) == SQLITE_ROW)
        cJSON_AddItemToArray(all, row_object(s));
    sqlite3_finalize(s);
    return all;
}

cJSON *history_events(history *h, int64_t id, int64_t after, int64_t most, hfsad_error *err)
{
    return rows_array(query(h, err,
                            "SELECT * FROM (SELECT id, at, level, node, text FROM event WHERE run = %lld AND id > %lld "
                            "ORDER BY id DESC LIMIT %lld) ORDER BY id",
                            (sqlite3_int64)id, (sqlite3_int64)after, (sqlite3_int64)most));
}

#define NODE_COLUMNS                                                                                                   \
    "number, parent, path, inner, state, phase, round, refused, repeated, sent, received, waits_for, waits_more, "     \
    "waits_ms, losses, said"

cJSON *history_nodes(history *h, int64_t id, int64_t under, int64_t offset, int64_t most, hfsad_error *err)
{
    const sqlite3_int64 run = id;
    cJSON *o = cJSON_CreateObject();
    cJSON *inner = rows_array(query(h, err,
                                    "SELECT " NODE_COLUMNS " FROM node WHERE run = %lld AND inner = 1 ORDER BY number "
                                    "LIMIT %lld",
                                    run, (sqlite3_int64)most));
    cJSON *counts = rows_array(query(h, err,
                                     "SELECT parent, state, count(*) AS count, sum(losses) AS losses, sum(refused) AS "
                                     "refused FROM node WHERE run = %lld AND inner = 0 GROUP BY parent, state",
                                     run));
    cJSON *children =
        rows_array(query(h, err,
                         "SELECT " NODE_COLUMNS " FROM node WHERE run = %lld AND parent = %lld AND inner = 0 ORDER BY "
                         "CASE state WHEN 'gone' THEN 0 WHEN 'stale' THEN 1 WHEN 'unknown' THEN 2 WHEN 'other run' "
                         "THEN 3 ELSE 4 END, number LIMIT %lld OFFSET %lld",
                         run, (sqlite3_int64)under, (sqlite3_int64)most, (sqlite3_int64)offset));
    if (!inner || !counts || !children) {
        cJSON_Delete(o);
        cJSON_Delete(inner);
        cJSON_Delete(counts);
        cJSON_Delete(children);
        return NULL;
    }
    cJSON_AddItemToObject(o, "inner", inner);
    cJSON_AddItemToObject(o, "counts", counts);
    cJSON_AddItemToObject(o, "children", children);
    return o;
}
