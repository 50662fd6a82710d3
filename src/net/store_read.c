/* What the store gives back: of its journal what is there, of the base what is not. */
#define _DEFAULT_SOURCE /* le32toh */
#include "net/store_parts.h"

#include "base/alloc.h"
#include "base/error.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The row that the statement has found, behind the *size bytes that are there. */
static hfsad_status add_piece(const store *s, sqlite3_stmt *q, const char *name, char **bytes, size_t *size,
                              hfsad_error *err)
{
    const void *found = sqlite3_column_blob(q, 0);
    const size_t more = (size_t)sqlite3_column_bytes(q, 0);
    char *longer = realloc(*bytes, *size + more + 1);
    if (!longer)
        return error_memory(err, *size + more, "the state of a node");
    *bytes = longer;
    if (more)
        memcpy(longer + *size, found, more);
    if (store_sum(longer + *size, more) != sqlite3_column_int64(q, 1))
        return error_set(err, HFSAD_ERROR_INPUT, "%s: the state of %s is damaged: restore it from a copy", s->path,
                         name);
    *size += more;
    return HFSAD_OK;
}

static hfsad_status get_state_of_base(store *s, const char *name, void **bytes, size_t *size, hfsad_error *err)
{
    sqlite3_stmt *q = s->made[DO_GET_STATE];
    char text[PIECE_NAME_MAX], *all = NULL;
    hfsad_status status = HFSAD_OK;
    int code = SQLITE_ROW;
    for (size_t piece = 0; code == SQLITE_ROW && !status; piece++) {
        store_name_piece(name, piece, text);
        sqlite3_bind_text(q, 1, text, -1, SQLITE_STATIC);
        code = sqlite3_step(q);
        if (code == SQLITE_ROW)
            status = add_piece(s, q, name, &all, size, err);
        else if (code != SQLITE_DONE)
            status = store_fault(s, code, err);
        sqlite3_reset(q);
    }
    if (status) {
        free(all);
        all = NULL;
    }
    *bytes = all;
    return status;
}

hfsad_status store_get_state(store *s, const char *name, void **bytes, size_t *size, hfsad_error *err)
{
    size_t count;
    const size_t number = store_find_name(s, name);
    *bytes = NULL;
    *size = 0;
    if (number == SIZE_MAX || s->names[number].state == SIZE_MAX)
        return get_state_of_base(s, name, bytes, size, err);
    const journal_mark *m = &journal_marks(s->j, &count)[s->names[number].state];
    *size = (size_t)m->size;
    return journal_read(s->j, m, bytes, err);
}

const char *store_folder(store *s)
{
    return s->folder;
}

/* Of nodes: no pieces of their states, and nothing else that is put. */
static const char names_query[] = "SELECT name FROM node WHERE instr(name, char(10)) = 0 AND name NOT LIKE '+%'";

hfsad_status store_get_names(store *s, void (*name)(void *context, const char *path), void *context, hfsad_error *err)
{
    sqlite3_stmt *q = NULL;
    int code = sqlite3_prepare_v2(s->base, names_query, -1, &q, NULL);
    while (!code && (code = sqlite3_step(q)) == SQLITE_ROW) {
        name(context, (const char *)sqlite3_column_text(q, 0));
        code = SQLITE_OK;
    }
    sqlite3_finalize(q);
    for (size_t i = 0; i < s->n_names; i++)
        if (s->names[i].state != SIZE_MAX && s->names[i].text[0] != '+')
            name(context, s->names[i].text);
    return code == SQLITE_DONE ? HFSAD_OK : store_fault(s, code, err);
}

typedef struct {
    char first[200];
    size_t count;
} owners;

static void note_owner(void *context, const char *path)
{
    owners *o = context;
    if (o->count++ == 0)
        snprintf(o->first, sizeof o->first, "%s", path);
}

hfsad_status store_refuse_run(store *s, const store_user *user, hfsad_error *err)
{
    owners of = {0};
    hfsad_error unsaid;
    sqlite3_stmt *q = NULL;
    char why[300] = "", more[60] = "";
    (void)store_get_names(s, note_owner, &of, &unsaid);
    if (user->explain &&
        !sqlite3_prepare_v2(s->base, "SELECT state FROM node WHERE name = '" STORE_ABOUT "'", -1, &q, NULL) &&
        sqlite3_step(q) == SQLITE_ROW &&
        !user->explain(user->context, sqlite3_column_blob(q, 0), (size_t)sqlite3_column_bytes(q, 0), why, sizeof why))
        why[0] = 0;
    sqlite3_finalize(q);
    if (of.count > 1)
        snprintf(more, sizeof more, " and %zu more", of.count - 1);
    return error_set(
        err, HFSAD_ERROR_INPUT,
        "the state folder %.200s holds the state of another run%s%.100s%s: %s%s; give another folder by --state, "
        "or remove this one",
        user->shown ? user->shown : s->folder, of.count ? ", of " : "", of.first, more,
        why[0] ? "they differ in: " : "the spec or the list of nodes was another", why);
}

typedef struct {
    const char **names;
    size_t count, room;
} audience;

/* Those of an entry to whom it was news after their last state. */
static hfsad_status names_of(const store *s, size_t entry, audience *to, hfsad_error *err)
{
    size_t marks;
    void *bytes;
    const journal_mark *m = &journal_marks(s->j, &marks)[entry];
    const size_t most = (size_t)m->size / sizeof(uint32_t);
    to->count = 0;
    if (!alloc_grow((void **)&to->names, &to->room, most, sizeof *to->names))
        return error_memory(err, most, "the journal");
    hfsad_status status = journal_read(s->j, m, &bytes, err);
    for (size_t i = 0; i < most && !status; i++) {
        uint32_t number;
        memcpy(&number, (const char *)bytes + i * sizeof number, sizeof number);
        number = le32toh(number);
        const named *n = number < s->kept_names ? &s->names[number] : NULL;
        if (!n)
            status = store_garbled(s, err);
        else if (n->state == SIZE_MAX || n->state < entry)
            to->names[to->count++] = n->text;
    }
    free(bytes);
    return status;
}

/* Where a frame stands: before the entry of those who heard it. */
static size_t frame_entry(const journal_mark *marks, size_t before, uint32_t number)
{
    size_t i = 0;
    while (i < before && (marks[i].kind != ENTRY_FRAME || number-- > 0))
        i++;
    return i;
}

hfsad_status store_get_heard(const store *s, store_heard *heard, void *context, hfsad_error *err)
{
    size_t count, of = SIZE_MAX;
    void *frame = NULL;
    audience to = {0};
    hfsad_status status = HFSAD_OK;
    const journal_mark *marks = journal_marks(s->j, &count);
    for (size_t i = 0; i < count && !status; i++) {
        if (marks[i].kind != ENTRY_HEARD)
            continue;
        status = names_of(s, i, &to, err);
        const size_t now = frame_entry(marks, i, marks[i].about);
        if (!status && now != of) {
            free(frame);
            status = journal_read(s->j, &marks[now], &frame, err);
            of = now;
        }
        if (!status && to.count)
            status = heard(context, frame, (size_t)marks[now].size, to.names, to.count, err);
    }
    free(frame);
    free(to.names);
    return status;
}

static hfsad_status damaged_row(const store *s, hfsad_error *err)
{
    return error_set(err, HFSAD_ERROR_INPUT, "%s: a row of the trace is damaged: restore it from a copy", s->path);
}

static int by_iteration(const void *a, const void *b)
{
    const uint64_t x = ((const hfsad_figures *)a)->iteration, y = ((const hfsad_figures *)b)->iteration;
    return (x > y) - (x < y);
}

/* The journal's rows by iteration, of several of one iteration the last; free it. */
static hfsad_status rows_of_journal(const store *s, hfsad_figures **rows, size_t *n, hfsad_error *err)
{
    size_t count, room = 0;
    const journal_mark *marks = journal_marks(s->j, &count);
    hfsad_status status = HFSAD_OK;
    *rows = NULL;
    *n = 0;
    for (size_t i = 0; i < count && !status; i++) {
        void *bytes;
        if (marks[i].kind != ENTRY_ROW)
            continue;
        if (marks[i].size != sizeof **rows)
            return damaged_row(s, err);
        if (!alloc_grow((void **)rows, &room, *n + 1, sizeof **rows))
            return error_memory(err, *n * sizeof **rows, "the rows of the trace");
        status = journal_read(s->j, &marks[i], &bytes, err);
        if (status)
            return status;
        size_t at = 0;
        while (at < *n && (*rows)[at].iteration != ((const hfsad_figures *)bytes)->iteration)
            at++;
        memcpy(&(*rows)[at], bytes, sizeof **rows);
        *n += at == *n;
        free(bytes);
    }
    if (*n)
        qsort(*rows, *n, sizeof **rows, by_iteration);
    return status;
}

hfsad_status store_get_rows(store *s, void (*row)(void *context, const hfsad_figures *figures), void *context,
                            hfsad_error *err)
{
    sqlite3_stmt *q = s->made[DO_GET_ROWS];
    hfsad_figures *newer = NULL;
    size_t count, next = 0;
    int code = SQLITE_DONE;
    hfsad_status status = rows_of_journal(s, &newer, &count, err);
    while (!status && (code = sqlite3_step(q)) == SQLITE_ROW) {
        hfsad_figures f;
        const void *found = sqlite3_column_blob(q, 0);
        const size_t size = (size_t)sqlite3_column_bytes(q, 0);
        if (size != sizeof f || store_sum(found, size) != sqlite3_column_int64(q, 1)) {
            status = damaged_row(s, err);
            break;
        }
        memcpy(&f, found, sizeof f);
        while (next < count && newer[next].iteration < f.iteration)
            row(context, &newer[next++]);
        if (next == count || newer[next].iteration != f.iteration)
            row(context, &f);
    }
    if (!status && code != SQLITE_DONE)
        status = store_fault(s, code, err);
    while (!status && next < count)
        row(context, &newer[next++]);
    sqlite3_reset(q);
    free(newer);
    return status;
}

hfsad_status store_get_record(store *s, void (*line)(void *context, const char *text), void *context, hfsad_error *err)
{
    sqlite3_stmt *q = s->made[DO_GET_RECORD];
    size_t count;
    int code;
    while ((code = sqlite3_step(q)) == SQLITE_ROW)
        line(context, (const char *)sqlite3_column_text(q, 0));
    sqlite3_reset(q);
    hfsad_status status = code == SQLITE_DONE ? HFSAD_OK : store_fault(s, code, err);
    const journal_mark *marks = journal_marks(s->j, &count);
    for (size_t i = 0; i < count && !status; i++) {
        void *text;
        if (marks[i].kind != ENTRY_LINE)
            continue;
        status = journal_read(s->j, &marks[i], &text, err);
        if (!status)
            line(context, text);
        free(text);
    }
    return status;
}
