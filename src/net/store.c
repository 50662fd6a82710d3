#define _GNU_SOURCE /* getrandom, htole32 */
#include "net/store_parts.h"

#include "base/alloc.h"
#include "base/crc32c.h"
#include "base/error.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { APPLICATION = 0x68667364 /* "hfsd" */, VERSION = 2 };

static const char *const texts[] = {
#define STATEMENT_TEXT(name, text) text,
    STATEMENT_LIST(STATEMENT_TEXT)
#undef STATEMENT_TEXT
};

enum {
    /* A journal has room for so many times the states of a process: then writing the base costs little beside it. */
    STATES_IN_ROOM = 8,
    ROOM_LEAST = 1 << 20,
    ROOM_MOST = 64 << 20, /* or twice the states, where these are large */
    PIECE = 256 << 20,    /* SQLite takes 10^9 bytes in a row */
    DYING_MS = 1000,      /* a process that was killed holds its locks until it is quite dead */
};

/* ---- faults ---- */

hfsad_status store_fault(const store *s, int code, hfsad_error *err)
{
    switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return error_set(err, HFSAD_ERROR_INPUT,
                         "%s is in use by another process: end that one, or give this one another folder by --state",
                         s->path);
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
        return error_set(
            err, HFSAD_ERROR_INPUT,
            "%s is damaged or no state of hfsad: restore it from a copy, or give another folder by --state", s->path);
    case SQLITE_FULL:
        return journal_fault(s->path, ENOSPC, err);
    case SQLITE_NOMEM:
        return error_memory(err, 0, "the state folder");
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_PERM:
        return error_set(err, HFSAD_ERROR_INPUT, "%s cannot be opened for writing: %s", s->path,
                         errno ? strerror(errno) : sqlite3_errstr(code));
    default:
        break;
    }
    /* SQLite does not always keep the reason of a write that was cut short */
    const bool full = errno == EFBIG || errno == ENOSPC || errno == EDQUOT;
    const int kept = s->base ? sqlite3_system_errno(s->base) : 0, reason = kept ? kept : full ? errno : 0;
    if ((code & 0xff) == SQLITE_IOERR && reason)
        return journal_fault(s->path, reason, err);
    return error_set(err, HFSAD_ERROR_IO, "%s cannot be read or written: %s", s->path, sqlite3_errstr(code));
}

/* Runs a statement that gives no rows. */
static int run(store *s, statement what)
{
    const int code = sqlite3_step(s->made[what]);
    sqlite3_reset(s->made[what]);
    sqlite3_clear_bindings(s->made[what]);
    return code == SQLITE_DONE ? SQLITE_OK : code;
}

static void forget_names(store *s, size_t count)
{
    while (s->n_names > count)
        free(s->names[--s->n_names].text);
}

/* Nothing of what was put stays. */
static void drop(store *s)
{
    if (s->begun && !sqlite3_get_autocommit(s->base))
        (void)run(s, DO_ROLLBACK);
    s->begun = s->whole = false;
    s->n_hearers = 0;
    s->heard = s->was_heard;
    journal_drop(s->j);
    forget_names(s, s->kept_names);
    s->n_frames = s->kept_frames;
}

static hfsad_status give_up(store *s, int code, hfsad_error *err)
{
    drop(s);
    return store_fault(s, code, err);
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
    uint64_t owner;
    if (getrandom(&owner, sizeof owner, 0) != (ssize_t)sizeof owner)
        return SQLITE_IOERR;
    snprintf(text, sizeof text,
             "BEGIN EXCLUSIVE;"
             "PRAGMA application_id = %d; PRAGMA user_version = %d;"
             "CREATE TABLE run (id INTEGER NOT NULL, owner INTEGER NOT NULL, epoch INTEGER NOT NULL);"
             "INSERT INTO run VALUES (%lld, %lld, 0);"
             "CREATE TABLE node (name TEXT PRIMARY KEY NOT NULL, state BLOB NOT NULL, sum INTEGER NOT NULL);"
             "CREATE TABLE trace (iteration INTEGER PRIMARY KEY, figures BLOB NOT NULL, sum INTEGER NOT NULL);"
             "CREATE TABLE record (number INTEGER PRIMARY KEY, line TEXT NOT NULL);"
             "COMMIT;",
             APPLICATION, VERSION, (long long)run_id, (long long)owner);
    return sqlite3_exec(s->base, text, NULL, NULL, NULL);
}

static hfsad_status check_owner(store *s, const store_user *user, hfsad_error *err)
{
    int64_t application = 0, version = 0, objects = 0, id = 0;
    int code = number_of(s, "PRAGMA application_id", &application);
    if (!code)
        code = number_of(s, "PRAGMA user_version", &version);
    if (!code)
        code = number_of(s, "SELECT count(*) FROM sqlite_master", &objects);
    if (!code && objects == 0 && application == 0) {
        code = make_tables(s, user->run);
        s->empty = !code;
        return code ? store_fault(s, code, err) : HFSAD_OK;
    }
    if (code || application != APPLICATION)
        return store_fault(s, code ? code : SQLITE_NOTADB, err);
    if (version != VERSION)
        return error_set(err, HFSAD_ERROR_INPUT,
                         "%s has version %lld, this program reads %d: give another folder by --state", s->path,
                         (long long)version, VERSION);
    if ((code = number_of(s, "SELECT id FROM run", &id)))
        return store_fault(s, code, err);
    if ((uint64_t)id != user->run)
        return store_refuse_run(s, user, err);
    if ((code = number_of(s, "SELECT count(*) FROM node", &objects)))
        return store_fault(s, code, err);
    s->empty = objects == 0;
    return HFSAD_OK;
}

static hfsad_status open_base(store *s, const store_user *user, hfsad_error *err)
{
    errno = 0;
    int code =
        sqlite3_open_v2(s->path, &s->base, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);
    if (!code)
        code = sqlite3_busy_timeout(s->base, DYING_MS);
    if (!code)
        code = sqlite3_exec(s->base, opening, NULL, NULL, NULL);
    if (code)
        return store_fault(s, code, err);
    const hfsad_status status = check_owner(s, user, err);
    for (size_t i = 0; i < STATEMENTS && !status; i++)
        if ((code = sqlite3_prepare_v3(s->base, texts[i], -1, SQLITE_PREPARE_PERSISTENT, &s->made[i], NULL)))
            return store_fault(s, code, err);
    return status;
}

/* The room that the states in the base ask for. */
static hfsad_status measure_room(store *s, hfsad_error *err)
{
    int64_t bytes = 0;
    const int code = number_of(s, "SELECT ifnull(sum(length(state)), 0) FROM node", &bytes);
    if (code)
        return store_fault(s, code, err);
    const uint64_t states = (uint64_t)bytes;
    if (s->own_room)
        return HFSAD_OK;
    s->room = STATES_IN_ROOM * states;
    s->room = s->room < ROOM_LEAST ? ROOM_LEAST : s->room > ROOM_MOST ? ROOM_MOST : s->room;
    s->room = s->room < 2 * states ? 2 * states : s->room;
    return HFSAD_OK;
}

static hfsad_status learn_names(store *s, hfsad_error *err);
static bool keep_marks(store *s);

static hfsad_status open_journal(store *s, const char *folder, hfsad_error *err)
{
    int64_t owner = 0, epoch = 0;
    int code = number_of(s, "SELECT owner FROM run", &owner);
    if (!code)
        code = number_of(s, "SELECT epoch FROM run", &epoch);
    if (code)
        return store_fault(s, code, err);
    s->epoch = (uint64_t)epoch;
    hfsad_status status = journal_open(&s->j, folder, (uint64_t)owner, s->epoch, err);
    if (!status)
        status = learn_names(s, err);
    if (!status && !keep_marks(s))
        status = store_garbled(s, err);
    return status ? status : measure_room(s, err);
}

hfsad_status store_open(store **s, const char *folder, uint64_t run_id, hfsad_error *err)
{
    return store_open_as(s, folder, &(store_user){.run = run_id}, err);
}

hfsad_status store_open_as(store **out, const char *folder, const store_user *user, hfsad_error *err)
{
    *out = NULL;
    store *s = alloc_zero(1, sizeof *s);
    if (!s)
        return error_memory(err, sizeof *s, "the state folder");
    s->piece = PIECE;
    hfsad_status status = HFSAD_OK;
    if ((size_t)snprintf(s->folder, sizeof s->folder, "%s", folder) >= sizeof s->folder)
        status = error_set(err, HFSAD_ERROR_INPUT, "the name of the state folder is too long: %.100s...", folder);
    else if (mkdir(folder, 0700) && errno != EEXIST)
        status = error_set(err, HFSAD_ERROR_INPUT, "the state folder %s cannot be made: %s", folder, strerror(errno));
    snprintf(s->path, sizeof s->path, "%s/state.db", s->folder);
    const bool there = status || access(s->path, F_OK) == 0;
    if (!status)
        status = open_base(s, user, err);
    if (!status)
        status = open_journal(s, folder, err);
    if (!status)
        *out = s;
    else
        store_close(s);
    if (!there && status == HFSAD_ERROR_IO) /* not where another process has just made it, and has it open */
        store_remove(folder);
    return status;
}

hfsad_status store_relax(store *s, hfsad_error *err)
{
    const int code = sqlite3_exec(s->base, "PRAGMA synchronous = OFF;", NULL, NULL, NULL);
    journal_relax(s->j);
    return code ? store_fault(s, code, err) : HFSAD_OK;
}

void store_set_room(store *s, uint64_t bytes)
{
    s->room = bytes;
    s->own_room = true;
}

void store_set_piece(store *s, size_t bytes)
{
    s->piece = bytes;
}

void store_close(store *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < STATEMENTS; i++)
        sqlite3_finalize(s->made[i]);
    sqlite3_close(s->base);
    journal_close(s->j);
    forget_names(s, 0);
    free(s->names);
    free(s->hearers);
    free(s);
}

void store_remove(const char *folder)
{
    static const char *const names[] = {"state.db-wal", "state.db-shm", "state.db", "journal"};
    char path[4200];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%.4000s/%s", folder, names[i]);
        unlink(path);
    }
}

void store_discard(store *s)
{
    char folder[sizeof s->folder];
    const bool remove_it = s && s->empty;
    if (remove_it)
        memcpy(folder, s->folder, sizeof folder);
    store_close(s);
    if (remove_it)
        store_remove(folder);
}

/* ---- what the journal has ---- */

int64_t store_sum(const void *bytes, size_t size)
{
    return crc32c(0, bytes, size);
}

size_t store_find_name(store *s, const char *name)
{
    for (size_t i = 0; i < s->n_names; i++) {
        const size_t at = (s->next_name + i) % s->n_names;
        if (strcmp(s->names[at].text, name) == 0) {
            s->next_name = at + 1;
            return at;
        }
    }
    return SIZE_MAX;
}

/* Takes the text over, also on failure. */
static bool add_name(store *s, char *text)
{
    if (!text || !alloc_grow((void **)&s->names, &s->names_room, s->n_names + 1, sizeof *s->names)) {
        free(text);
        return false;
    }
    s->names[s->n_names++] = (named){text, SIZE_MAX};
    return true;
}

hfsad_status store_garbled(const store *s, hfsad_error *err)
{
    return error_set(err, HFSAD_ERROR_INPUT, "%s: its journal makes no sense: restore the whole folder from a copy",
                     s->path);
}

/* The names of a journal that was opened; those of one that is written are here before it has them. */
static hfsad_status learn_names(store *s, hfsad_error *err)
{
    size_t count;
    const journal_mark *marks = journal_marks(s->j, &count);
    for (size_t i = 0; i < count; i++) {
        void *text;
        if (marks[i].kind != ENTRY_NAME)
            continue;
        const hfsad_status status = journal_read(s->j, &marks[i], &text, err);
        if (status)
            return status;
        if (!add_name(s, text))
            return error_memory(err, marks[i].size, "the journal");
    }
    return HFSAD_OK;
}

/* What has come into the journal since it was last looked at; false: it makes no sense. It takes no memory, as what is
 * committed must not be taken for lost and put again. */
static bool keep_marks(store *s)
{
    size_t count;
    const journal_mark *marks = journal_marks(s->j, &count);
    for (size_t i = s->next_mark; i < count; i++) {
        const journal_mark *m = &marks[i];
        s->kept_names += m->kind == ENTRY_NAME;
        if (m->kind > ENTRY_HEARD || s->kept_names > s->n_names ||
            (m->kind == ENTRY_STATE && m->about >= s->kept_names) ||
            (m->kind == ENTRY_HEARD && m->about >= s->kept_frames))
            return false;
        if (m->kind == ENTRY_STATE)
            s->names[m->about].state = i;
        s->kept_frames += m->kind == ENTRY_FRAME;
        s->was_heard = s->was_heard || m->kind == ENTRY_HEARD;
    }
    s->next_mark = count;
    s->n_frames = s->kept_frames;
    s->heard = s->was_heard;
    return true;
}

/* ---- the base ---- */

void store_name_piece(const char *name, size_t piece, char text[PIECE_NAME_MAX])
{
    if (piece)
        snprintf(text, PIECE_NAME_MAX, "%s\n%zu", name, piece);
    else
        snprintf(text, PIECE_NAME_MAX, "%s", name);
}

static int base_put_piece(store *s, const char *name, size_t piece, const void *bytes, size_t size)
{
    char text[PIECE_NAME_MAX];
    sqlite3_stmt *q = s->made[DO_PUT_STATE];
    store_name_piece(name, piece, text);
    sqlite3_bind_text(q, 1, text, -1, SQLITE_STATIC);
    if (sqlite3_bind_blob64(q, 2, bytes, size, SQLITE_STATIC))
        return SQLITE_TOOBIG;
    sqlite3_bind_int64(q, 3, store_sum(bytes, size));
    return run(s, DO_PUT_STATE);
}

static int base_put_state(store *s, const char *name, const void *bytes, size_t size)
{
    const unsigned char *from = bytes;
    sqlite3_bind_text(s->made[DO_DROP_PIECES], 1, name, -1, SQLITE_STATIC);
    int code = run(s, DO_DROP_PIECES);
    for (size_t at = 0, piece = 0; !code && (at < size || piece == 0); at += s->piece, piece++)
        code = base_put_piece(s, name, piece, from + at, size - at < s->piece ? size - at : s->piece);
    return code;
}

static int base_put_row(store *s, const hfsad_figures *figures)
{
    sqlite3_stmt *q = s->made[DO_PUT_ROW];
    sqlite3_bind_int64(q, 1, (sqlite3_int64)figures->iteration);
    sqlite3_bind_blob64(q, 2, figures, sizeof *figures, SQLITE_STATIC);
    sqlite3_bind_int64(q, 3, store_sum(figures, sizeof *figures));
    return run(s, DO_PUT_ROW);
}

static int base_put_line(store *s, const char *text, size_t size)
{
    sqlite3_bind_text(s->made[DO_PUT_LINE], 1, text, (int)size, SQLITE_STATIC);
    return run(s, DO_PUT_LINE);
}

typedef struct {
    store *s;
    int code;
} moving;

/* An entry of the journal goes to the base. */
static void move_entry(void *context, uint32_t kind, uint32_t about, const void *bytes, size_t size)
{
    moving *m = context;
    if (m->code)
        return;
    if (kind == ENTRY_STATE)
        m->code = base_put_state(m->s, m->s->names[about].text, bytes, size);
    else if (kind == ENTRY_ROW && size == sizeof(hfsad_figures))
        m->code = base_put_row(m->s, bytes);
    else if (kind == ENTRY_LINE)
        m->code = base_put_line(m->s, bytes, size);
}

/* All that counts of what the journal has and of what is in hand. */
static hfsad_status move_to_base(store *s, hfsad_error *err)
{
    size_t count;
    moving m = {s, SQLITE_OK};
    const journal_mark *marks = journal_marks(s->j, &count);
    for (size_t i = 0; i < count && !m.code; i++) {
        void *bytes;
        const bool old = marks[i].kind == ENTRY_STATE && s->names[marks[i].about].state != i;
        if (old || marks[i].kind == ENTRY_NAME || marks[i].kind == ENTRY_FRAME || marks[i].kind == ENTRY_HEARD)
            continue;
        const hfsad_status status = journal_read(s->j, &marks[i], &bytes, err);
        if (status) {
            drop(s);
            return status;
        }
        move_entry(&m, marks[i].kind, marks[i].about, bytes, (size_t)marks[i].size);
        free(bytes);
    }
    journal_each(s->j, move_entry, &m);
    return m.code ? give_up(s, m.code, err) : HFSAD_OK;
}

/* ---- writing ---- */

hfsad_status store_begin_whole(store *s, hfsad_error *err)
{
    if (s->whole)
        return HFSAD_OK;
    int code = run(s, DO_BEGIN);
    s->begun = code == SQLITE_OK;
    if (!code)
        code = run(s, DO_PUT_EPOCH);
    if (code)
        return give_up(s, code, err);
    s->whole = true;
    return move_to_base(s, err);
}

bool store_is_full(const store *s)
{
    return s->epoch == 0 || journal_bytes(s->j) > s->room;
}

uint64_t store_epoch(const store *s)
{
    return s->epoch;
}

/* The number of a name, which is put into the journal where it is new. */
static bool number_name(store *s, const char *name, uint32_t *number)
{
    const size_t found = store_find_name(s, name);
    *number = (uint32_t)(found == SIZE_MAX ? s->n_names : found);
    if (found != SIZE_MAX)
        return true;
    if (!add_name(s, strdup(name)))
        return false;
    journal_put(s->j, ENTRY_NAME, 0, name, strlen(name));
    return true;
}

static hfsad_status lacks_memory(store *s, size_t size, hfsad_error *err)
{
    drop(s);
    return error_memory(err, size, "the journal");
}

/* The entry of those who have heard one message one after another. */
static void put_hearers(store *s)
{
    if (s->n_hearers)
        journal_put(s->j, ENTRY_HEARD, s->hearing, s->hearers, s->n_hearers * sizeof *s->hearers);
    s->n_hearers = 0;
}

hfsad_status store_put_state(store *s, const char *name, const void *bytes, size_t size, hfsad_error *err)
{
    uint32_t number;
    if (s->whole) {
        const int code = base_put_state(s, name, bytes, size);
        return code ? give_up(s, code, err) : HFSAD_OK;
    }
    if (!number_name(s, name, &number))
        return lacks_memory(s, size, err);
    put_hearers(s);
    journal_put(s->j, ENTRY_STATE, number, bytes, size);
    return HFSAD_OK;
}

hfsad_status store_put_row(store *s, const hfsad_figures *figures, hfsad_error *err)
{
    if (s->whole) {
        const int code = base_put_row(s, figures);
        return code ? give_up(s, code, err) : HFSAD_OK;
    }
    journal_put(s->j, ENTRY_ROW, 0, figures, sizeof *figures);
    return HFSAD_OK;
}

hfsad_status store_put_line(store *s, const char *text, hfsad_error *err)
{
    if (s->whole) {
        const int code = base_put_line(s, text, strlen(text));
        return code ? give_up(s, code, err) : HFSAD_OK;
    }
    journal_put(s->j, ENTRY_LINE, 0, text, strlen(text));
    return HFSAD_OK;
}

void store_put_frame(store *s, const void *bytes, size_t size, uint32_t *number)
{
    put_hearers(s);
    *number = (uint32_t)s->n_frames++;
    if (!s->whole)
        journal_put(s->j, ENTRY_FRAME, 0, bytes, size);
}

hfsad_status store_put_heard(store *s, const char *name, uint32_t frame, hfsad_error *err)
{
    uint32_t number;
    if (s->whole)
        return HFSAD_OK;
    if (s->hearing != frame)
        put_hearers(s);
    s->hearing = frame;
    s->heard = true;
    if (!number_name(s, name, &number) ||
        !alloc_grow((void **)&s->hearers, &s->hearers_room, s->n_hearers + 1, sizeof *s->hearers))
        return lacks_memory(s, sizeof number, err);
    s->hearers[s->n_hearers++] = htole32(number);
    return HFSAD_OK;
}

static hfsad_status commit_journal(store *s, hfsad_error *err)
{
    const hfsad_status status = journal_commit(s->j, err);
    if (status) {
        drop(s);
        return status;
    }
    const bool sound = keep_marks(s);
    assert(sound);
    (void)sound;
    return HFSAD_OK;
}

static hfsad_status commit_base(store *s, hfsad_error *err)
{
    hfsad_error unsaid;
    const int code = run(s, DO_COMMIT);
    if (code)
        return give_up(s, code, err);
    s->begun = s->whole = s->heard = s->was_heard = s->empty = false;
    s->epoch++;
    forget_names(s, 0);
    s->kept_names = s->kept_frames = s->n_frames = s->n_hearers = s->next_mark = 0;
    journal_begin(s->j, s->epoch);
    (void)measure_room(s, &unsaid); /* the old one will do */
    return HFSAD_OK;
}

hfsad_status store_commit(store *s, hfsad_error *err)
{
    hfsad_status status = HFSAD_OK;
    put_hearers(s);
    if (!s->whole && journal_is_empty(s->j))
        return HFSAD_OK;
    if (!s->heard && store_is_full(s))
        status = store_begin_whole(s, err);
    if (status)
        return status;
    return s->whole ? commit_base(s, err) : commit_journal(s, err);
}
