#define _POSIX_C_SOURCE 200809L
#include "net/store.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/words.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { APPLICATION = 0x68667364 /* "hfsd" */, VERSION = 1 };

/* Statements, made once. */
#define STATEMENT_LIST(X)                                                                                              \
    X(BEGIN, "BEGIN IMMEDIATE")                                                                                        \
    X(COMMIT, "COMMIT")                                                                                                \
    X(ROLLBACK, "ROLLBACK")                                                                                            \
    X(GET_STATE, "SELECT state, sum FROM node WHERE name = ?1")                                                        \
    X(PUT_STATE, ("INSERT INTO node (name, state, sum) VALUES (?1, ?2, ?3) "                                           \
                  "ON CONFLICT (name) DO UPDATE SET state = ?2, sum = ?3"))                                            \
    X(GET_ROWS, "SELECT figures, sum FROM trace ORDER BY iteration")                                                   \
    X(PUT_ROW, "INSERT OR REPLACE INTO trace (iteration, figures, sum) VALUES (?1, ?2, ?3)")                           \
    X(GET_RECORD, "SELECT line FROM record ORDER BY number")                                                           \
    X(PUT_LINE, "INSERT INTO record (line) VALUES (?1)")

typedef enum {
#define STATEMENT_ENUM(name, text) DO_##name,
    STATEMENT_LIST(STATEMENT_ENUM)
#undef STATEMENT_ENUM
        STATEMENTS
} statement;

static const char *const texts[] = {
#define STATEMENT_TEXT(name, text) text,
    STATEMENT_LIST(STATEMENT_TEXT)
#undef STATEMENT_TEXT
};

struct store {
    sqlite3 *base;
    sqlite3_stmt *made[STATEMENTS];
    bool begun, empty; /* empty: nothing was ever committed */
    char path[1000];
};

/* ---- faults ---- */

static hfsad_status fault(const store *s, int code, hfsad_error *err)
{
    switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return error_set(err, HFSAD_ERROR_INPUT,
                         "%s is in use by another process: end that one, or give this one another state folder",
                         s->path);
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
        return error_set(err, HFSAD_ERROR_INPUT,
                         "%s is damaged or no state of hfsad: restore it from a copy, or give another state folder",
                         s->path);
    case SQLITE_FULL:
        return error_set(err, HFSAD_ERROR_IO, "%s cannot grow: make room on its disk", s->path);
    case SQLITE_NOMEM:
        return error_memory(err, 0, "the state folder");
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_PERM:
        return error_set(err, HFSAD_ERROR_INPUT, "%s cannot be opened for writing: %s", s->path,
                         errno ? strerror(errno) : sqlite3_errstr(code));
    default:
        return error_set(err, HFSAD_ERROR_IO, "%s cannot be read or written: %s", s->path, sqlite3_errstr(code));
    }
}

/* Runs a statement that gives no rows. */
static int run(store *s, statement what)
{
    const int code = sqlite3_step(s->made[what]);
    sqlite3_reset(s->made[what]);
    sqlite3_clear_bindings(s->made[what]);
    return code == SQLITE_DONE ? SQLITE_OK : code;
}

static hfsad_status give_up(store *s, int code, hfsad_error *err)
{
    if (s->begun && !sqlite3_get_autocommit(s->base))
        (void)run(s, DO_ROLLBACK);
    s->begun = false;
    return fault(s, code, err);
}

/* ---- opening ---- */

static int number_of(store *s, const char *query, int64_t *number)
{
    sqlite3_stmt *q = NULL;
    int code = sqlite3_prepare_v2(s->base, query, -1, &q, NULL);
    if (!code && (code = sqlite3_step(q)) == SQLITE_ROW) {
        *number = sqlite3_column_int64(q, 0);
        code = SQLITE_OK;
    }
    sqlite3_finalize(q);
    return code;
}

/* Locks the database for as long as it is open; a memory map of the WAL's index is then not needed either. */
static const char opening[] = "PRAGMA locking_mode = EXCLUSIVE;"
                              "PRAGMA journal_mode = WAL;"
                              "PRAGMA synchronous = FULL;"
                              "PRAGMA journal_size_limit = 67108864;"
                              "BEGIN EXCLUSIVE; COMMIT;";

static int make_tables(store *s, uint64_t run_id)
{
    char text[1000];
    snprintf(text, sizeof text,
             "BEGIN EXCLUSIVE;"
             "PRAGMA application_id = %d; PRAGMA user_version = %d;"
             "CREATE TABLE run (id INTEGER NOT NULL);"
             "INSERT INTO run VALUES (%lld);"
             "CREATE TABLE node (name TEXT PRIMARY KEY NOT NULL, state BLOB NOT NULL, sum INTEGER NOT NULL);"
             "CREATE TABLE trace (iteration INTEGER PRIMARY KEY, figures BLOB NOT NULL, sum INTEGER NOT NULL);"
             "CREATE TABLE record (number INTEGER PRIMARY KEY, line TEXT NOT NULL);"
             "COMMIT;",
             APPLICATION, VERSION, (long long)run_id);
    return sqlite3_exec(s->base, text, NULL, NULL, NULL);
}

static hfsad_status check_owner(store *s, uint64_t run_id, hfsad_error *err)
{
    int64_t application = 0, version = 0, objects = 0, id = 0;
    int code = number_of(s, "PRAGMA application_id", &application);
    if (!code)
        code = number_of(s, "PRAGMA user_version", &version);
    if (!code)
        code = number_of(s, "SELECT count(*) FROM sqlite_master", &objects);
    if (!code && objects == 0 && application == 0) {
        code = make_tables(s, run_id);
        s->empty = !code;
        return code ? fault(s, code, err) : HFSAD_OK;
    }
    if (code || application != APPLICATION)
        return fault(s, code ? code : SQLITE_NOTADB, err);
    if (version != VERSION)
        return error_set(err, HFSAD_ERROR_INPUT,
                         "%s has version %lld, this program reads %d: give another state folder", s->path,
                         (long long)version, VERSION);
    if ((code = number_of(s, "SELECT id FROM run", &id)))
        return fault(s, code, err);
    if ((uint64_t)id != run_id)
        return error_set(err, HFSAD_ERROR_INPUT,
                         "%s holds the state of another run (%016llx, not %016llx): the spec or the list of nodes has "
                         "changed; give another state folder",
                         s->path, (unsigned long long)id, (unsigned long long)run_id);
    if ((code = number_of(s, "SELECT count(*) FROM node", &objects)))
        return fault(s, code, err);
    s->empty = objects == 0;
    return HFSAD_OK;
}

static hfsad_status open_base(store *s, uint64_t run_id, hfsad_error *err)
{
    errno = 0;
    int code =
        sqlite3_open_v2(s->path, &s->base, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);
    if (!code)
        code = sqlite3_exec(s->base, opening, NULL, NULL, NULL);
    if (code)
        return fault(s, code, err);
    const hfsad_status status = check_owner(s, run_id, err);
    for (size_t i = 0; i < STATEMENTS && !status; i++)
        if ((code = sqlite3_prepare_v3(s->base, texts[i], -1, SQLITE_PREPARE_PERSISTENT, &s->made[i], NULL)))
            return fault(s, code, err);
    return status;
}

hfsad_status store_open(store **out, const char *folder, uint64_t run_id, hfsad_error *err)
{
    *out = NULL;
    store *s = alloc_zero(1, sizeof *s);
    if (!s)
        return error_memory(err, sizeof *s, "the state folder");
    hfsad_status status = HFSAD_OK;
    if ((size_t)snprintf(s->path, sizeof s->path, "%s/state.db", folder) >= sizeof s->path)
        status = error_set(err, HFSAD_ERROR_INPUT, "the name of the state folder is too long: %.100s...", folder);
    else if (mkdir(folder, 0700) && errno != EEXIST)
        status = error_set(err, HFSAD_ERROR_INPUT, "the state folder %s cannot be made: %s", folder, strerror(errno));
    else
        status = open_base(s, run_id, err);
    if (status)
        store_close(s);
    else
        *out = s;
    return status;
}

hfsad_status store_relax(store *s, hfsad_error *err)
{
    const int code = sqlite3_exec(s->base, "PRAGMA synchronous = OFF;", NULL, NULL, NULL);
    return code ? fault(s, code, err) : HFSAD_OK;
}

void store_close(store *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < STATEMENTS; i++)
        sqlite3_finalize(s->made[i]);
    sqlite3_close(s->base);
    free(s);
}

void store_discard(store *s)
{
    static const char *const endings[] = {"-wal", "-shm", ""};
    char path[sizeof s->path + 8];
    const bool remove_it = s && s->empty;
    if (remove_it)
        memcpy(path, s->path, sizeof s->path);
    const size_t length = remove_it ? strlen(path) : 0;
    store_close(s);
    for (size_t i = 0; remove_it && i < sizeof endings / sizeof *endings; i++) {
        snprintf(path + length, sizeof path - length, "%s", endings[i]);
        unlink(path);
    }
}

/* ---- reading ---- */

/* SQLite does not notice a flipped bit within a row. Bytes beyond the last whole word count as one more. */
static int64_t sum_of(const void *bytes, size_t size)
{
    const size_t whole = size / WORD_BYTES;
    uint64_t sum = words_sum(bytes, whole), rest = size;
    for (size_t i = whole * WORD_BYTES; i < size; i++)
        rest = rest << 8 | ((const unsigned char *)bytes)[i];
    return (int64_t)words_sum_add(sum, rest);
}

hfsad_status store_get_state(store *s, const char *name, void **bytes, size_t *size, hfsad_error *err)
{
    sqlite3_stmt *q = s->made[DO_GET_STATE];
    hfsad_status status = HFSAD_OK;
    *bytes = NULL;
    *size = 0;
    sqlite3_bind_text(q, 1, name, -1, SQLITE_STATIC);
    const int code = sqlite3_step(q);
    if (code == SQLITE_ROW) {
        const void *found = sqlite3_column_blob(q, 0);
        *size = (size_t)sqlite3_column_bytes(q, 0);
        *bytes = alloc_zero(*size + 1, 1);
        if (!*bytes)
            status = error_memory(err, *size, "the state of a node");
        else if (*size)
            memcpy(*bytes, found, *size);
        if (!status && sum_of(*bytes, *size) != sqlite3_column_int64(q, 1)) {
            free(*bytes);
            *bytes = NULL;
            status = error_set(err, HFSAD_ERROR_INPUT, "%s: the state of %s is damaged: restore it from a copy",
                               s->path, name);
        }
    } else if (code != SQLITE_DONE) {
        status = fault(s, code, err);
    }
    sqlite3_reset(q);
    return status;
}

hfsad_status store_get_rows(store *s, void (*row)(void *context, const hfsad_figures *figures), void *context,
                            hfsad_error *err)
{
    sqlite3_stmt *q = s->made[DO_GET_ROWS];
    hfsad_status status = HFSAD_OK;
    int code;
    while ((code = sqlite3_step(q)) == SQLITE_ROW && !status) {
        hfsad_figures f;
        const void *found = sqlite3_column_blob(q, 0);
        const size_t size = (size_t)sqlite3_column_bytes(q, 0);
        if (size != sizeof f || sum_of(found, size) != sqlite3_column_int64(q, 1)) {
            status =
                error_set(err, HFSAD_ERROR_INPUT, "%s: a row of the trace is damaged: restore it from a copy", s->path);
        } else {
            memcpy(&f, found, sizeof f);
            row(context, &f);
        }
    }
    sqlite3_reset(q);
    return status || code == SQLITE_DONE ? status : fault(s, code, err);
}

hfsad_status store_get_record(store *s, void (*line)(void *context, const char *text), void *context, hfsad_error *err)
{
    sqlite3_stmt *q = s->made[DO_GET_RECORD];
    int code;
    while ((code = sqlite3_step(q)) == SQLITE_ROW)
        line(context, (const char *)sqlite3_column_text(q, 0));
    sqlite3_reset(q);
    return code == SQLITE_DONE ? HFSAD_OK : fault(s, code, err);
}

/* ---- writing ---- */

static hfsad_status begin(store *s, hfsad_error *err)
{
    if (s->begun)
        return HFSAD_OK;
    const int code = run(s, DO_BEGIN);
    s->begun = code == SQLITE_OK;
    return code ? fault(s, code, err) : HFSAD_OK;
}

static hfsad_status put(store *s, statement what, hfsad_error *err)
{
    const int code = run(s, what);
    return code ? give_up(s, code, err) : HFSAD_OK;
}

hfsad_status store_put_state(store *s, const char *name, const void *bytes, size_t size, hfsad_error *err)
{
    const hfsad_status status = begin(s, err);
    if (status)
        return status;
    sqlite3_stmt *q = s->made[DO_PUT_STATE];
    sqlite3_bind_text(q, 1, name, -1, SQLITE_STATIC);
    if (sqlite3_bind_blob64(q, 2, bytes, size, SQLITE_STATIC))
        return give_up(s, SQLITE_TOOBIG, err);
    sqlite3_bind_int64(q, 3, sum_of(bytes, size));
    return put(s, DO_PUT_STATE, err);
}

hfsad_status store_put_row(store *s, const hfsad_figures *figures, hfsad_error *err)
{
    const hfsad_status status = begin(s, err);
    if (status)
        return status;
    sqlite3_stmt *q = s->made[DO_PUT_ROW];
    sqlite3_bind_int64(q, 1, (sqlite3_int64)figures->iteration);
    sqlite3_bind_blob64(q, 2, figures, sizeof *figures, SQLITE_STATIC);
    sqlite3_bind_int64(q, 3, sum_of(figures, sizeof *figures));
    return put(s, DO_PUT_ROW, err);
}

hfsad_status store_put_line(store *s, const char *text, hfsad_error *err)
{
    const hfsad_status status = begin(s, err);
    if (status)
        return status;
    sqlite3_bind_text(s->made[DO_PUT_LINE], 1, text, -1, SQLITE_STATIC);
    return put(s, DO_PUT_LINE, err);
}

hfsad_status store_commit(store *s, hfsad_error *err)
{
    if (!s->begun)
        return HFSAD_OK;
    const int code = run(s, DO_COMMIT);
    if (code)
        return give_up(s, code, err);
    s->begun = s->empty = false;
    return HFSAD_OK;
}
