/* What the store gives back; see store.h. */

#include "net/store_parts.h"

#include "base/alloc.h"
#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

hfsad_status store_get_state(store *s, const char *name, void **bytes, size_t *size, hfsad_error *err)
{
    const size_t number = store_find_name(&s->now, name);
    *bytes = NULL;
    *size = 0;
    if (number == SIZE_MAX || s->now.names[number].state == SIZE_MAX)
        return HFSAD_OK;
    const store_entry *e = &s->f.entries.all[s->now.names[number].state];
    *size = (size_t)e->size;
    return store_file_read(&s->f, e, bytes, err);
}

void store_get_names(const store *s, void (*name)(void *context, const char *path), void *context)
{
    for (size_t i = 0; i < s->now.kept_names; i++)
        if (s->now.names[i].state != SIZE_MAX && s->now.names[i].text[0] != '+')
            name(context, s->now.names[i].text);
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
    void *about = NULL;
    size_t size;
    char why[300] = "", more[60] = "";
    store_get_names(s, note_owner, &of);
    if (user->explain && !store_get_state(s, STORE_ABOUT, &about, &size, &unsaid) && about &&
        !user->explain(user->context, about, size, why, sizeof why))
        why[0] = 0;
    free(about);
    if (of.count > 1)
        snprintf(more, sizeof more, " and %zu more", of.count - 1);
    return error_set(err, HFSAD_ERROR_INPUT,
                     "the state folder %.200s holds the state of another run%s%.100s%s: %s%s; give another state "
                     "folder, or remove this one",
                     user->shown ? user->shown : s->f.folder, of.count ? ", of " : "", of.first, more,
                     why[0] ? "they differ in: " : "the spec or the list of nodes differs", why);
}

/* ---- messages ---- */

typedef struct {
    const char **names; /* that have received one message */
    size_t count, room;
    size_t *frames; /* entries of messages so far */
    size_t n_frames, frames_room;
} hearing;

/* The nodes of an entry whose last state is older than the entry. */
static hfsad_status names_of(const store *s, size_t entry, hearing *to, hfsad_error *err)
{
    unsigned char *bytes;
    const store_entry *e = &s->f.entries.all[entry];
    const size_t most = (size_t)e->size / sizeof(uint32_t);
    to->count = 0;
    if (!alloc_grow((void **)&to->names, &to->room, most, sizeof *to->names))
        return error_memory(err, most, "the state folder");
    hfsad_status status = store_file_read(&s->f, e, (void **)&bytes, err);
    for (size_t i = 0; i < most && !status; i++) {
        const uint64_t number = get32(bytes + i * sizeof(uint32_t));
        const named *n = number < s->now.kept_names ? &s->now.names[number] : NULL;
        if (!n)
            status = store_garbled(s, e->at, err);
        else if (n->state == SIZE_MAX || n->state < entry)
            to->names[to->count++] = n->text;
    }
    free(bytes);
    return status;
}

hfsad_status store_get_heard(const store *s, store_heard *heard, void *context, hfsad_error *err)
{
    size_t of = SIZE_MAX;
    void *frame = NULL;
    hearing to = {0};
    hfsad_status status = HFSAD_OK;
    const store_entry *all = s->f.entries.all;
    for (size_t i = 0; i < s->f.entries.kept && !status; i++) {
        if (all[i].kind == ENTRY_FRAME) {
            if (!alloc_grow((void **)&to.frames, &to.frames_room, to.n_frames + 1, sizeof *to.frames))
                status = error_memory(err, to.n_frames, "the state folder");
            else
                to.frames[to.n_frames++] = i;
        }
        if (all[i].kind != ENTRY_HEARD)
            continue;
        status = names_of(s, i, &to, err);
        const size_t now = to.frames[all[i].about]; /* checked when the folder was opened */
        if (!status && now != of) {
            free(frame);
            status = store_file_read(&s->f, &all[now], &frame, err);
            of = now;
        }
        if (!status && to.count)
            status = heard(context, frame, (size_t)all[now].size, to.names, to.count, err);
    }
    free(frame);
    free(to.names);
    free(to.frames);
    return status;
}

/* ---- rows and lines ---- */

/* In the order of iterations; they arrive in that order, except for iterations that are repeated. */
static void add_trace_row(hfsad_figures *rows, size_t *count, const hfsad_figures *row)
{
    size_t at = *count;
    while (at > 0 && rows[at - 1].iteration > row->iteration)
        at--;
    if (at > 0 && rows[at - 1].iteration == row->iteration) {
        rows[at - 1] = *row;
        return;
    }
    memmove(rows + at + 1, rows + at, (*count - at) * sizeof *rows);
    rows[at] = *row;
    ++*count;
}

/* The bytes of all entries of a kind, one behind another, and a 0 behind them. */
static hfsad_status read_all(const store *s, uint32_t kind, char **all, size_t *size, hfsad_error *err)
{
    hfsad_status status = HFSAD_OK;
    size_t room = 1;
    for (size_t i = 0; i < s->f.entries.kept; i++)
        room += s->f.entries.all[i].kind == kind ? (size_t)s->f.entries.all[i].size : 0;
    *size = 0;
    *all = alloc_zero(room, 1);
    if (!*all)
        return error_memory(err, room, "the state folder");
    for (size_t i = 0; i < s->f.entries.kept && !status; i++) {
        const store_entry *e = &s->f.entries.all[i];
        void *bytes;
        if (e->kind != kind || (status = store_file_read(&s->f, e, &bytes, err)))
            continue;
        memcpy(*all + *size, bytes, (size_t)e->size);
        *size += (size_t)e->size;
        free(bytes);
    }
    return status;
}

hfsad_status store_read_lines(const store *s, char **text, size_t *size, hfsad_error *err)
{
    return read_all(s, ENTRY_LINES, text, size, err);
}

hfsad_status store_read_rows(const store *s, hfsad_figures **rows, size_t *count, hfsad_error *err)
{
    char *bytes;
    size_t size;
    hfsad_status status = read_all(s, ENTRY_ROWS, &bytes, &size, err);
    *rows = (hfsad_figures *)bytes; /* as aligned as any block */
    *count = 0;
    for (size_t i = 0; i < size / sizeof **rows && !status; i++) {
        const hfsad_figures row = (*rows)[i]; /* its place may be taken */
        add_trace_row(*rows, count, &row);
    }
    return status;
}

hfsad_status store_get_rows(store *s, void (*row)(void *context, const hfsad_figures *figures), void *context,
                            hfsad_error *err)
{
    hfsad_figures *rows;
    size_t count;
    const hfsad_status status = store_read_rows(s, &rows, &count, err);
    for (size_t i = 0; i < count && !status; i++)
        row(context, &rows[i]);
    free(rows);
    return status;
}

hfsad_status store_get_record(store *s, void (*line)(void *context, const char *text), void *context, hfsad_error *err)
{
    char *all;
    size_t size;
    const hfsad_status status = store_read_lines(s, &all, &size, err);
    for (char *at = all, *end; !status && (end = strchr(at, '\n')); at = end + 1) {
        *end = 0;
        line(context, at);
    }
    free(all);
    return status;
}

/* ---- check ---- */

static hfsad_status count_heard(void *context, const void *frame, size_t size, const char *const *names, size_t count,
                                hfsad_error *err)
{
    (void)frame, (void)size, (void)names, (void)count, (void)err;
    ++*(size_t *)context;
    return HFSAD_OK;
}

static void count_name(void *context, const char *path)
{
    (void)path;
    ++*(size_t *)context;
}

hfsad_status store_check(store *s, store_facts *facts, hfsad_error *err)
{
    const store_file *f = &s->f;
    hfsad_figures *rows = NULL;
    char *lines = NULL;
    size_t size;
    *facts = (store_facts){.run = s->run,
                           .commits = f->sequence,
                           .snapshot = f->snapshot,
                           .log = f->end - f->snapshot,
                           .unfinished = f->dirty > f->end ? f->dirty - f->end : 0};
    store_get_names(s, count_name, &facts->states);
    hfsad_status status = store_get_heard(s, count_heard, &facts->heard, err);
    if (!status)
        status = store_read_rows(s, &rows, &facts->rows, err);
    if (!status)
        status = store_read_lines(s, &lines, &size, err);
    for (const char *c = lines; !status && (c = strchr(c, '\n')); c++)
        facts->lines++;
    free(rows);
    free(lines);
    return status;
}
