/* What is put, and how it becomes a commit; see store.h. */
#define _DEFAULT_SOURCE /* htole32 */
#include "net/store_parts.h"

#include "base/alloc.h"
#include "base/error.h"

#include <assert.h>
#include <endian.h>
#include <stdlib.h>
#include <string.h>

enum {
    /* The log may have this multiple of the size of the snapshot, so that writing the snapshot costs little in
       comparison. */
    SNAPSHOTS_IN_ROOM = 8,
    ROOM_LEAST = 4 << 20,
    ROOM_MOST = 64 << 20, /* or twice the snapshot, if that is large */
};

/* ---- names ---- */

size_t store_find_name(contents *c, const char *name)
{
    for (size_t i = 0; i < c->n_names; i++) {
        const size_t at = (c->next_name + i) % c->n_names;
        if (strcmp(c->names[at].text, name) == 0) {
            c->next_name = at + 1;
            return at;
        }
    }
    return SIZE_MAX;
}

static void forget_names(contents *c, size_t count)
{
    while (c->n_names > count)
        free(c->names[--c->n_names].text);
}

static void forget(contents *c)
{
    forget_names(c, 0);
    free(c->names);
    *c = (contents){0};
}

/* Takes the text over, also on failure. */
static bool add_name(contents *c, char *text)
{
    if (!text || !alloc_grow((void **)&c->names, &c->names_room, c->n_names + 1, sizeof *c->names)) {
        free(text);
        return false;
    }
    c->names[c->n_names++] = (named){text, SIZE_MAX};
    return true;
}

/* The number of a name, which is put if it is new. */
static bool number_name(store *s, const char *name, uint32_t *number)
{
    contents *c = s->whole ? &s->next : &s->now;
    const size_t found = store_find_name(c, name);
    *number = (uint32_t)(found == SIZE_MAX ? c->n_names : found);
    if (found != SIZE_MAX)
        return true;
    if (!add_name(c, strdup(name)))
        return false;
    store_file_put(&s->f, ENTRY_NAME, 0, name, strlen(name), NULL, 0);
    return true;
}

/* Processes the new entries; returns NULL, or the first invalid entry. It allocates no memory, because a failure must
 * not make committed entries look lost. */
static const store_entry *keep_entries(contents *c, const store_entries *e)
{
    for (; c->looked < e->count; c->looked++) {
        const store_entry *one = &e->all[c->looked];
        c->kept_names += one->kind == ENTRY_NAME;
        if (one->kind > ENTRY_HEARD || c->kept_names > c->n_names || (one->kind == ENTRY_RUN) != (c->looked == 0) ||
            (one->kind == ENTRY_STATE && one->about >= c->kept_names) ||
            (one->kind == ENTRY_ROWS && one->size % sizeof(hfsad_figures)) ||
            (one->kind == ENTRY_HEARD && (one->about >= c->kept_frames || one->size % sizeof(uint32_t))))
            return one;
        if (one->kind == ENTRY_STATE)
            c->names[one->about].state = c->looked;
        c->kept_frames += one->kind == ENTRY_FRAME;
        c->was_heard = c->was_heard || one->kind == ENTRY_HEARD;
    }
    c->n_frames = c->kept_frames;
    c->heard = c->was_heard;
    return NULL;
}

/* ---- opening ---- */

hfsad_status store_garbled(const store *s, uint64_t at, hfsad_error *err)
{
    return store_file_refuse(&s->f, "state", at, "makes no sense", err);
}

static hfsad_status learn_names(store *s, hfsad_error *err)
{
    for (size_t i = 0; i < s->f.entries.count; i++) {
        const store_entry *e = &s->f.entries.all[i];
        void *text;
        if (e->kind != ENTRY_NAME)
            continue;
        const hfsad_status status = store_file_read(&s->f, e, &text, err);
        if (status)
            return status;
        if (!add_name(&s->now, text))
            return error_memory(err, (size_t)e->size, "the state folder");
    }
    return HFSAD_OK;
}

static void measure_room(store *s)
{
    const uint64_t bytes = s->f.snapshot;
    if (s->own_room)
        return;
    s->room = SNAPSHOTS_IN_ROOM * bytes;
    s->room = s->room < ROOM_LEAST ? ROOM_LEAST : s->room > ROOM_MOST ? ROOM_MOST : s->room;
    s->room = s->room < 2 * bytes ? 2 * bytes : s->room;
}

/* Reads the entries of an existing folder. */
static hfsad_status learn(store *s, const store_user *user, hfsad_error *err)
{
    void *bytes;
    const store_entry *e = s->f.entries.all;
    if (s->f.entries.count == 0 || e->kind != ENTRY_RUN || e->size != 16)
        return store_garbled(s, STORE_HEAD, err);
    hfsad_status status = store_file_read(&s->f, e, &bytes, err);
    if (status)
        return status;
    s->run = get64(bytes);
    const uint64_t row = get64((unsigned char *)bytes + 8);
    free(bytes);
    if (row != sizeof(hfsad_figures))
        return store_file_refuse(&s->f, "state", e->at + 8, "is of another version of hfsad: rows have another size",
                                 err);
    status = learn_names(s, err);
    const store_entry *wrong = status ? NULL : keep_entries(&s->now, &s->f.entries);
    if (wrong)
        return store_garbled(s, wrong->at, err);
    measure_room(s);
    return status || !user || s->run == user->run ? status : store_refuse_run(s, user, err);
}

hfsad_status store_open(store **s, const char *folder, uint64_t run, hfsad_error *err)
{
    return store_open_as(s, folder, &(store_user){.run = run}, err);
}

hfsad_status store_open_as(store **out, const char *folder, const store_user *user, hfsad_error *err)
{
    *out = NULL;
    store *s = alloc_zero(1, sizeof *s);
    if (!s)
        return error_memory(err, sizeof *s, "the state folder");
    s->run = user ? user->run : 0;
    hfsad_status status = store_file_open(&s->f, folder, err);
    if (!status && s->f.sequence > 0)
        status = learn(s, user, err);
    if (status)
        store_close(s);
    else
        *out = s;
    return status;
}

uint64_t store_instance(const store *s)
{
    return s->f.sequence ? s->f.owner >> 12 : 0;
}

const char *store_folder(store *s)
{
    return s->f.folder;
}

void store_relax(store *s)
{
    s->f.relaxed = true;
}

void store_set_room(store *s, uint64_t bytes)
{
    s->room = bytes;
    s->own_room = true;
}

void store_close(store *s)
{
    if (!s)
        return;
    store_file_close(&s->f);
    forget(&s->now);
    forget(&s->next);
    free(s->hearers);
    free(s);
}

void store_remove(const char *folder)
{
    store_file_remove(folder);
}

void store_discard(store *s)
{
    if (s && s->f.sequence == 0)
        store_file_remove(s->f.folder);
    store_close(s);
}

/* ---- putting ---- */

/* Nothing of what was put stays. */
static hfsad_status drop(store *s, hfsad_status status)
{
    store_file_drop(&s->f);
    forget_names(&s->now, s->now.kept_names);
    forget(&s->next);
    s->now.n_frames = s->now.kept_frames;
    s->now.heard = s->now.was_heard;
    s->n_hearers = 0;
    s->whole = false;
    return status;
}

static hfsad_status lacks_memory(store *s, size_t size, hfsad_error *err)
{
    return drop(s, error_memory(err, size, "the state folder"));
}

/* The entry of consecutive nodes that have received one message. */
static void put_hearers(store *s)
{
    if (s->n_hearers)
        store_file_put(&s->f, ENTRY_HEARD, s->hearing, s->hearers, s->n_hearers * sizeof *s->hearers, NULL, 0);
    s->n_hearers = 0;
}

hfsad_status store_put_state(store *s, const char *name, const void *bytes, size_t size, hfsad_error *err)
{
    uint32_t number;
    if (!number_name(s, name, &number))
        return lacks_memory(s, size, err);
    put_hearers(s);
    store_file_put(&s->f, ENTRY_STATE, number, bytes, size, NULL, 0);
    return HFSAD_OK;
}

void store_put_row(store *s, const hfsad_figures *figures)
{
    store_file_put(&s->f, ENTRY_ROWS, 0, figures, sizeof *figures, NULL, 0);
}

void store_put_line(store *s, const char *text)
{
    store_file_put(&s->f, ENTRY_LINES, 0, text, strlen(text), "\n", 1);
}

void store_put_frame(store *s, const void *bytes, size_t size, uint32_t *number)
{
    put_hearers(s);
    *number = (uint32_t)s->now.n_frames++;
    if (!s->whole)
        store_file_put(&s->f, ENTRY_FRAME, 0, bytes, size, NULL, 0);
}

hfsad_status store_put_heard(store *s, const char *name, uint32_t frame, hfsad_error *err)
{
    uint32_t number;
    if (s->whole)
        return HFSAD_OK;
    if (s->hearing != frame)
        put_hearers(s);
    s->hearing = frame;
    s->now.heard = true;
    if (!number_name(s, name, &number) ||
        !alloc_grow((void **)&s->hearers, &s->hearers_room, s->n_hearers + 1, sizeof *s->hearers))
        return lacks_memory(s, sizeof number, err);
    s->hearers[s->n_hearers++] = htole32(number);
    return HFSAD_OK;
}

/* ---- whole commits ---- */

/* Rows and lines so far. */
static hfsad_status carry_over(store *s, hfsad_error *err)
{
    hfsad_figures *rows = NULL;
    char *lines = NULL;
    size_t count, size;
    hfsad_status status = store_read_rows(s, &rows, &count, err);
    if (!status)
        status = store_read_lines(s, &lines, &size, err);
    if (!status && count)
        store_file_put(&s->f, ENTRY_ROWS, 0, rows, count * sizeof *rows, NULL, 0);
    if (!status && size)
        store_file_put(&s->f, ENTRY_LINES, 0, lines, size, NULL, 0);
    free(rows);
    free(lines);
    return status;
}

/* Pending entries for the log, except messages. */
static hfsad_status carry_hand(store *s, const store_buffer *hand, hfsad_error *err)
{
    hfsad_status status = HFSAD_OK;
    for (size_t i = s->f.entries.kept; i < s->f.entries.count && !status; i++) {
        const store_entry *e = &s->f.entries.all[i];
        const unsigned char *bytes = hand->bytes + (e->at - s->f.end);
        if (e->kind == ENTRY_STATE)
            status = store_put_state(s, s->now.names[e->about].text, bytes, (size_t)e->size, err);
        else if (e->kind == ENTRY_ROWS || e->kind == ENTRY_LINES)
            store_file_put(&s->f, e->kind, 0, bytes, (size_t)e->size, NULL, 0);
    }
    return status;
}

/* States that were not put again. */
static hfsad_status carry_states(store *s, hfsad_error *err)
{
    hfsad_status status = HFSAD_OK;
    (void)keep_entries(&s->next, &s->f.next);
    for (size_t i = 0; i < s->now.kept_names && !status; i++) {
        const named *n = &s->now.names[i];
        const size_t there = n->state == SIZE_MAX ? SIZE_MAX : store_find_name(&s->next, n->text);
        void *bytes;
        if (n->state == SIZE_MAX || (there != SIZE_MAX && s->next.names[there].state != SIZE_MAX))
            continue;
        const store_entry *e = &s->f.entries.all[n->state];
        status = store_file_read(&s->f, e, &bytes, err);
        if (status)
            return status;
        status = store_put_state(s, n->text, bytes, (size_t)e->size, err);
        free(bytes);
    }
    return status;
}

hfsad_status store_begin_whole(store *s, hfsad_error *err)
{
    unsigned char run[16];
    store_buffer hand;
    if (s->whole)
        return HFSAD_OK;
    s->n_hearers = 0;
    hfsad_status status = store_file_begin(&s->f, &hand, err);
    if (status)
        return drop(s, status);
    s->whole = true;
    put64(run, s->run);
    put64(run + 8, sizeof(hfsad_figures));
    store_file_put(&s->f, ENTRY_RUN, 0, run, sizeof run, NULL, 0);
    status = carry_over(s, err);
    if (!status)
        status = carry_hand(s, &hand, err);
    free(hand.bytes);
    return status ? drop(s, status) : HFSAD_OK;
}

bool store_is_full(const store *s)
{
    return s->f.sequence == 0 || store_file_log_bytes(&s->f) > s->room;
}

uint64_t store_epoch(const store *s)
{
    return s->f.first;
}

static hfsad_status commit_whole(store *s, hfsad_error *err)
{
    const uint64_t before = s->f.first;
    hfsad_status status = carry_states(s, err);
    if (!status)
        status = store_file_replace(&s->f, err);
    if (s->f.first == before)
        return drop(s, status);
    const store_entry *wrong = keep_entries(&s->next, &s->f.entries);
    assert(!wrong);
    (void)wrong;
    forget(&s->now);
    s->now = s->next;
    s->next = (contents){0};
    measure_room(s);
    return drop(s, status);
}

hfsad_status store_commit(store *s, hfsad_error *err)
{
    hfsad_status status = HFSAD_OK;
    put_hearers(s);
    if (store_file_is_empty(&s->f))
        return HFSAD_OK;
    if (!s->now.heard && store_is_full(s))
        status = store_begin_whole(s, err);
    if (status || s->whole)
        return status ? status : commit_whole(s, err);
    status = store_file_append(&s->f, err);
    if (status)
        return drop(s, status);
    const store_entry *wrong = keep_entries(&s->now, &s->f.entries);
    assert(!wrong);
    (void)wrong;
    return HFSAD_OK;
}
