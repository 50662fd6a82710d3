/* Opens, migrates and changes the history; see history.h. */
#define _GNU_SOURCE /* asprintf */
#include "dash/history.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/read_file.h"

#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { APPLICATION = 0x68665344, BUSY_MS = 5000 }; /* "hfSD", in the header of the file */

/* The statements that lead from one version to the next; a new file goes through all of them. */
static const char *const steps[] = {
    /* 1 */
    /* long texts come last: lists and sorting do not read them */
    "CREATE TABLE run (id INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, name TEXT NOT NULL,"
    " status TEXT NOT NULL, started REAL NOT NULL, seen REAL, ended REAL, exit INTEGER, rows INTEGER NOT NULL DEFAULT "
    "0,"
    " iteration INTEGER, iterations INTEGER, objective REAL, best REAL, seconds REAL, bytes REAL, gap REAL,"
    " seed INTEGER, version TEXT, host TEXT, boot TEXT, pid INTEGER, pid_since INTEGER, spec_path TEXT, out TEXT,"
    " spec_hash TEXT, data_hash TEXT, why TEXT, given TEXT, spec TEXT, settings TEXT, summary TEXT);"
    "CREATE TABLE tag (run INTEGER NOT NULL, tag TEXT NOT NULL, PRIMARY KEY (run, tag)) WITHOUT ROWID;"
    "CREATE TABLE trace (run INTEGER NOT NULL, iteration INTEGER NOT NULL, objective REAL, consensus_objective REAL,"
    " primal_residual REAL, dual_residual REAL, consensus_gap REAL, smoothing_gap REAL, relative_error REAL,"
    " seconds REAL, bytes_up REAL, bytes_down REAL, gap_bound REAL, tiers BLOB, PRIMARY KEY (run, iteration))"
    " WITHOUT ROWID;"
    "CREATE TABLE event (id INTEGER PRIMARY KEY, run INTEGER NOT NULL, at REAL, level INTEGER, node TEXT, text TEXT);"
    "CREATE INDEX event_run ON event (run, id);",
    /* 2: models over time, the nodes of a federation */
    "CREATE TABLE model (run INTEGER NOT NULL, iteration INTEGER NOT NULL, nonzero INTEGER, width INTEGER,"
    " entries BLOB, PRIMARY KEY (run, iteration)) WITHOUT ROWID;"
    "CREATE TABLE node (run INTEGER NOT NULL, number INTEGER NOT NULL, parent INTEGER NOT NULL, path TEXT NOT NULL,"
    " inner INTEGER NOT NULL, state TEXT, phase TEXT, round INTEGER, refused INTEGER, repeated INTEGER, sent INTEGER,"
    " received INTEGER, waits_for TEXT, waits_more INTEGER, waits_ms INTEGER, losses INTEGER, said REAL,"
    " PRIMARY KEY (run, number)) WITHOUT ROWID;"
    "CREATE INDEX node_parent ON node (run, parent);",
};
enum { VERSION = sizeof steps / sizeof *steps };

char *history_default_path(void)
{
    const char *own = getenv("HFSAD_HISTORY"), *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
    char *path = NULL;
    int n = -1;
    if (own && *own)
        return strcmp(own, "none") ? strdup(own) : NULL;
    if (data && data[0] == '/')
        n = asprintf(&path, "%s/hfsad/runs.db", data);
    else if (home && home[0] == '/')
        n = asprintf(&path, "%s/.local/share/hfsad/runs.db", home);
    return n < 0 ? NULL : path;
}

hfsad_status history_error(const history *h, hfsad_error *err)
{
    const int code = sqlite3_errcode(h->db) & 0xff;
    if (code == SQLITE_NOTADB || code == SQLITE_CORRUPT)
        return error_set(err, HFSAD_ERROR_INPUT,
                         "history '%.300s' is damaged or no SQLite file (%.100s); move it away or give another "
                         "(--history); it was not changed",
                         h->path, sqlite3_errmsg(h->db));
    return error_set(err, HFSAD_ERROR_IO, "history '%.300s': %.200s", h->path, sqlite3_errmsg(h->db));
}

static hfsad_status execute(const history *h, const char *sql, hfsad_error *err)
{
    return sqlite3_exec(h->db, sql, NULL, NULL, NULL) == SQLITE_OK ? HFSAD_OK : history_error(h, err);
}

static hfsad_status number_of(const history *h, const char *sql, int64_t *number, hfsad_error *err)
{
    sqlite3_stmt *s = NULL;
    const bool good = sqlite3_prepare_v2(h->db, sql, -1, &s, NULL) == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW;
    *number = good ? sqlite3_column_int64(s, 0) : 0;
    const hfsad_status status = good ? HFSAD_OK : history_error(h, err);
    sqlite3_finalize(s);
    return status;
}

/* Creates the folders above the file. */
static hfsad_status make_folders(const char *path, hfsad_error *err)
{
    char *copy = strdup(path);
    hfsad_status status = copy ? HFSAD_OK : error_memory(err, strlen(path), "a file name");
    for (char *at = copy ? strchr(copy + 1, '/') : NULL; at && !status; at = strchr(at + 1, '/')) {
        *at = 0;
        if (mkdir(copy, 0700) != 0 && errno != EEXIST)
            status = error_set(err, HFSAD_ERROR_IO, "history '%.300s': folder '%.200s' cannot be made: %s", path, copy,
                               strerror(errno));
        *at = '/';
    }
    free(copy);
    return status;
}

/* The copy is complete or missing. A copy of an earlier attempt has the same content, because nothing was migrated
 * then. */
static hfsad_status keep_copy(const history *h, int64_t version, hfsad_error *err)
{
    char *sql = NULL, *path = NULL;
    hfsad_status status = HFSAD_OK;
    if (asprintf(&path, "%s.v%lld", h->path, (long long)version) < 0)
        path = NULL;
    if (path)
        (void)unlink(path);
    sql = path ? sqlite3_mprintf("VACUUM INTO %Q", path) : NULL;
    status = sql ? execute(h, sql, err) : error_memory(err, 0, "a file name");
    sqlite3_free(sql);
    free(path);
    return status;
}

/* Brings the file to this version. Two processes may do so at once: the second finds it done. */
static hfsad_status migrate(const history *h, hfsad_error *err)
{
    int64_t version = 0;
    char *set = NULL;
    hfsad_status status = number_of(h, "PRAGMA user_version", &version, err);
    if (!status && version > 0 && version < VERSION)
        status = keep_copy(h, version, err);
    if (!status)
        status = execute(h, "BEGIN IMMEDIATE", err);
    if (status)
        return status;
    status = number_of(h, "PRAGMA user_version", &version, err);
    for (int64_t at = version; at < VERSION && !status; at++)
        status = execute(h, steps[at], err);
    set = sqlite3_mprintf("PRAGMA user_version = %d; PRAGMA application_id = %d", VERSION, APPLICATION);
    if (!status && version < VERSION)
        status = set ? execute(h, set, err) : error_memory(err, 0, "a query");
    sqlite3_free(set);
    if (status)
        sqlite3_exec(h->db, "ROLLBACK", NULL, NULL, NULL);
    return status ? status : execute(h, "COMMIT", err);
}

static hfsad_status check_version(const history *h, history_mode mode, hfsad_error *err)
{
    int64_t version = 0, application = 0, tables = 0;
    hfsad_status status = execute(h, "BEGIN", err); /* one state: another process may be creating the tables */
    if (!status)
        status = number_of(h, "PRAGMA user_version", &version, err);
    if (!status)
        status = number_of(h, "PRAGMA application_id", &application, err);
    if (!status)
        status = number_of(h, "SELECT count(*) FROM sqlite_master", &tables, err);
    (void)sqlite3_exec(h->db, "COMMIT", NULL, NULL, NULL);
    if (status)
        return status;
    if (application != APPLICATION && (tables > 0 || mode != HISTORY_CREATE))
        return error_set(err, HFSAD_ERROR_INPUT, "'%.300s' is not a history of hfsad; give another file (--history)",
                         h->path);
    if (version > VERSION)
        return error_set(err, HFSAD_ERROR_INPUT,
                         "history '%.300s' is of version %lld, written by a newer hfsad; this one reads up to version "
                         "%d: give another file (--history)",
                         h->path, (long long)version, VERSION);
    return version < VERSION ? migrate(h, err) : HFSAD_OK;
}

/* In this mode readers do not wait for the writer. Several processes may switch to it at once; the file stays in this
 * mode. */
static void use_wal(const history *h)
{
    for (int i = 0; i < 100; i++) {
        if (sqlite3_exec(h->db, "PRAGMA journal_mode = WAL", NULL, NULL, NULL) != SQLITE_BUSY)
            return;
        poll(NULL, 0, 10);
    }
}

hfsad_status history_open(history **out, const char *path, history_mode mode, hfsad_error *err)
{
    const int create = mode == HISTORY_CREATE ? SQLITE_OPEN_CREATE : 0;
    history *h = alloc_zero(1, sizeof *h);
    *out = NULL;
    if (!h || !(h->path = strdup(path))) {
        free(h);
        return error_memory(err, sizeof *h, "the history");
    }
    hfsad_status status = HFSAD_OK;
    if (create)
        status = make_folders(path, err);
    else if (access(path, F_OK) != 0)
        status = error_set(err, HFSAD_ERROR_INPUT, "there is no history '%.300s' yet; a run makes it", path);
    if (!status && sqlite3_open_v2(path, &h->db, SQLITE_OPEN_READWRITE | create, NULL) != SQLITE_OK)
        status = error_set(err, HFSAD_ERROR_IO, "history '%.300s' cannot be opened: %.200s", path,
                           h->db ? sqlite3_errmsg(h->db) : "memory");
    if (!status) {
        sqlite3_busy_timeout(h->db, BUSY_MS);
        sqlite3_db_config(h->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
        status = check_version(h, mode, err);
    }
    if (!status) {
        use_wal(h);
        /* A loss of power may lose the last rows, but not the file. There is no sync at the end, because the next
         * writer syncs. */
        (void)sqlite3_exec(h->db, "PRAGMA synchronous = NORMAL; PRAGMA trusted_schema = OFF", NULL, NULL, NULL);
        sqlite3_db_config(h->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
        if (mode == HISTORY_READ)
            (void)sqlite3_exec(h->db, "PRAGMA query_only = ON", NULL, NULL, NULL);
        *out = h;
        return HFSAD_OK;
    }
    history_close(h);
    return status;
}

void history_close(history *h)
{
    if (!h)
        return;
    sqlite3_close_v2(h->db);
    free(h->path);
    free(h);
}

int64_t history_version(history *h)
{
    int64_t version = 0;
    hfsad_error err;
    (void)number_of(h, "PRAGMA data_version", &version, &err);
    return version;
}

/* ---- processes ---- */

int64_t process_since(int64_t pid)
{
    char path[64], *text = NULL;
    size_t size;
    snprintf(path, sizeof path, "/proc/%lld/stat", (long long)pid);
    if (file_read(path, 4096, &text, &size) != 0)
        return -1;
    /* behind the name, which may contain any bytes but is the last text in brackets, field 22 of proc(5) */
    const char *at = strrchr(text, ')');
    long long since = -1;
    const bool zombie = at && at[1] == ' ' && at[2] == 'Z';
    for (int field = 2; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    if (at && !zombie)
        since = strtoll(at + 1, NULL, 10);
    free(text);
    return since;
}

void boot_name(char name[64])
{
    char *text = NULL;
    size_t size;
    name[0] = 0;
    if (file_read("/proc/sys/kernel/random/boot_id", 4096, &text, &size) != 0)
        return;
    snprintf(name, 64, "%.*s", (int)strcspn(text, "\n"), text);
    free(text);
}

bool process_lives(int64_t pid, int64_t since, const char *boot)
{
    char now[64];
    boot_name(now);
    return !strcmp(now, boot) && process_since(pid) == since;
}

/* ---- changing ---- */

bool history_find(history *h, const char *word, int64_t *id, hfsad_error *err)
{
    char *end;
    int64_t found = 0;
    if (!strcmp(word, "last")) {
        if (number_of(h, "SELECT coalesce(max(id), 0) FROM run", id, err))
            return false;
        if (*id == 0)
            error_set(err, HFSAD_ERROR_INPUT, "history '%.300s' has no run yet", h->path);
        return *id > 0;
    }
    *id = strtoll(word, &end, 10);
    char *sql = !isdigit((unsigned char)*word) || *end || strlen(word) > 18
                    ? NULL
                    : sqlite3_mprintf("SELECT count(*) FROM run WHERE id = %lld", (sqlite3_int64)*id);
    if (sql && number_of(h, sql, &found, err)) {
        sqlite3_free(sql);
        return false;
    }
    sqlite3_free(sql);
    if (!found)
        error_set(err, HFSAD_ERROR_INPUT, "history '%.200s' has no run '%.60s'; hfsad runs lists them", h->path, word);
    return found > 0;
}

hfsad_status history_delete(history *h, int64_t id, hfsad_error *err)
{
    static const char *const tables[] = {"trace", "model", "event", "node", "tag"};
    hfsad_status status = execute(h, "BEGIN IMMEDIATE", err);
    if (status)
        return status;
    for (size_t i = 0; i <= sizeof tables / sizeof *tables && !status; i++) {
        const bool all = i == sizeof tables / sizeof *tables;
        char *sql = sqlite3_mprintf("DELETE FROM %s WHERE %s = %lld", all ? "run" : tables[i], all ? "id" : "run",
                                    (sqlite3_int64)id);
        status = sql ? execute(h, sql, err) : error_memory(err, 0, "a query");
        sqlite3_free(sql);
    }
    if (status)
        sqlite3_exec(h->db, "ROLLBACK", NULL, NULL, NULL);
    return status ? status : execute(h, "COMMIT", err);
}

hfsad_status history_rename(history *h, int64_t id, const char *name, hfsad_error *err)
{
    char *sql = sqlite3_mprintf("UPDATE run SET name = %Q WHERE id = %lld", name, (sqlite3_int64)id);
    const hfsad_status status = sql ? execute(h, sql, err) : error_memory(err, 0, "a query");
    sqlite3_free(sql);
    return status;
}

hfsad_status history_tag(history *h, int64_t id, const char *tag, bool add, hfsad_error *err)
{
    char *sql = sqlite3_mprintf(add ? "INSERT OR IGNORE INTO tag VALUES (%lld, %Q)"
                                    : "DELETE FROM tag WHERE run = %lld AND tag = %Q",
                                (sqlite3_int64)id, tag);
    const hfsad_status status = sql ? execute(h, sql, err) : error_memory(err, 0, "a query");
    sqlite3_free(sql);
    return status;
}
