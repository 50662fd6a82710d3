/* Storage: states are committed before any message that depends on them is sent, and restored after a restart. */
#include "base/clock.h"
#include "net/host_parts.h"

#include "base/alloc.h"
#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RESULT_NAME "+result" /* no path of a node */

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

/* After a failed commit the messages in it are lost, so the next commit has the states instead. */
static void lose_messages(host *h)
{
    h->frame_epoch = 0;
    for (size_t i = 0; i < h->count; i++)
        h->all[i].unkept = h->all[i].unkept || h->all[i].uncommitted || (h->all[i].n && node_changed(h->all[i].n));
}

static hfsad_status other_data(const host *h, const char *path, hfsad_error *err)
{
    return error_set(err, HFSAD_ERROR_INPUT,
                     "the state folder %.200s holds a state of %.100s for another spec or other data: give another "
                     "state folder, or remove this one",
                     store_folder(h->s.state), path);
}

hfsad_status host_restore(host *h, hosted *at, hfsad_error *err)
{
    void *bytes;
    size_t size;
    if (!h->s.state)
        return HFSAD_OK;
    const hfsad_status status = store_get_state(h->s.state, at->path, &bytes, &size, err);
    at->unstored = !status && !bytes;
    if (status || !bytes)
        return status;
    word_reader reader = {bytes, size / WORD_BYTES, size % WORD_BYTES != 0};
    const bool done = node_unpack(at->n, &reader);
    free(bytes);
    at->unkept = false;
    return done ? HFSAD_OK : other_data(h, at->path, err);
}

/* Restores the state from before the restart. */
hfsad_status host_restore_result(host *h, hfsad_error *err)
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

/* ---- messages in place of states ---- */

void host_note_frame(host *h, const void *bytes, size_t size)
{
    h->frame.size = 0;
    h->frame.failed = false;
    h->frame_epoch = 0;
    append(&h->frame, bytes, size);
}

/* The message for the store: a difference has no meaning after a restart, so its decoded numbers are stored. false: no
 * memory. */
static bool put_frame(host *h, const message *m)
{
    const void *bytes = h->frame.bytes;
    size_t size = h->frame.size;
    if (h->s.encoding == WIRE_DELTA) {
        if (!alloc_grow((void **)&h->out.bytes, &h->out.room, message_bytes_most(m->count), 1) ||
            message_encode(NULL, m, WIRE_DOUBLE, NULL, h->out.bytes, &size))
            return false;
        bytes = h->out.bytes;
    }
    if (h->frame.failed)
        return false;
    store_put_frame(h->s.state, bytes, size, &h->frame_number);
    h->frame_epoch = store_epoch(h->s.state);
    return true;
}

void host_keep_message(host *h, hosted *at, const message *m)
{
    if (!h->s.state || at->unkept || !node_changed(at->n))
        return;
    const bool there = h->frame_epoch != 0 && h->frame_epoch == store_epoch(h->s.state);
    if (!there && !put_frame(h, m))
        at->unkept = true;
    else if (store_put_heard(h->s.state, at->path, h->frame_number, NULL))
        lose_messages(h);
}

typedef struct {
    host *h;
    size_t next; /* names are in the order of the nodes */
} replay;

static hosted *find_hosted(replay *r, const char *path)
{
    for (size_t i = 0; i < r->h->count; i++) {
        hosted *at = &r->h->all[(r->next + i) % r->h->count];
        if (strcmp(at->path, path) == 0) {
            r->next = (size_t)(at - r->h->all) + 1;
            return at;
        }
    }
    return NULL;
}

static hfsad_status on_heard(void *context, const void *frame, size_t size, const char *const *names, size_t count,
                             hfsad_error *err)
{
    replay *r = context;
    host *h = r->h;
    message m;
    if (message_decode_genuine(NULL, frame, size, NULL, h->values, h->most, &m))
        return error_set(err, HFSAD_ERROR_INPUT,
                         "the state folder %.200s has a message of another spec: give another state folder",
                         store_folder(h->s.state));
    for (size_t i = 0; i < count; i++) {
        hosted *at = find_hosted(r, names[i]);
        if (!at || !at->n)
            return error_set(err, HFSAD_ERROR_INPUT,
                             "the state folder %.200s belongs to a process with %.100s: start it with the same nodes, "
                             "or give another state folder",
                             store_folder(h->s.state), names[i]);
        if (!node_follows(at->n) || !node_handle(at->n, NODE_PARENT, &m, NULL))
            return other_data(h, names[i], err);
    }
    return HFSAD_OK;
}

hfsad_status host_recall(host *h, hfsad_error *err)
{
    if (h->replayed || !h->s.state)
        return HFSAD_OK;
    const double before = clock_work_seconds();
    replay r = {.h = h};
    h->replayed = true;
    const hfsad_status status = store_get_heard(h->s.state, on_heard, &r, err);
    h->replay_seconds = clock_work_seconds() - before;
    return status;
}

/* ---- commit ---- */

/* Appends the node's new lines, each after its path, to the lines of the next commit. */
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

/* Calls back for every line of `lines`, and overwrites the newlines. */
static void each_line(host *h, const hosted *at, bool stored)
{
    for (char *line = at->lines, *end; line && (end = strchr(line, '\n')); line = end + 1) {
        *end = 0;
        if (stored)
            host_tell(h, HOST_RECORD, at->path, line, "", NULL);
        else
            store_put_line(h->s.state, line);
        *end = '\n';
    }
}

hfsad_status host_put_lines(host *h, const char *lines, hfsad_error *err)
{
    char line[1200];
    for (const char *end; (end = strchr(lines, '\n')); lines = end + 1) {
        snprintf(line, sizeof line, "%.*s", (int)(end - lines), lines);
        host_tell(h, HOST_RECORD, h->all[0].path, line, "", NULL);
        if (h->s.state)
            store_put_line(h->s.state, line);
    }
    return h->s.state ? store_commit(h->s.state, err) : HFSAD_OK;
}

hfsad_status host_get_lines(const host *h, void (*line)(void *context, const char *text), void *context,
                            hfsad_error *err)
{
    return h->s.state ? store_get_record(h->s.state, line, context, err) : HFSAD_OK;
}

static hfsad_status put_state(host *h, hosted *at, hfsad_error *err)
{
    word_writer writer;
    do { /* twice if the state has grown: the first pass counts its words */
        writer = (word_writer){.memory = h->out.bytes, .room = h->out.room / WORD_BYTES};
        node_pack(at->n, &writer);
        if (!alloc_grow((void **)&h->out.bytes, &h->out.room, writer.count * WORD_BYTES, 1))
            return error_memory(err, writer.count * WORD_BYTES, "the state of a node");
    } while (writer.count > writer.room);
    return store_put_state(h->s.state, at->path, h->out.bytes, writer.count * WORD_BYTES, err);
}

/* whole: also unchanged states that messages replace. */
static hfsad_status put_node_state(host *h, hosted *at, bool whole, hfsad_error *err)
{
    hfsad_status status = HFSAD_OK;
    if (!at->n)
        return HFSAD_OK;
    const bool changed = node_changed(at->n) || at->uncommitted || at->has_row;
    at->uncommitted = changed;
    if (!h->s.state || (!whole && node_follows(at->n)))
        node_keep(at->n);
    else if (changed || node_follows(at->n))
        status = put_state(h, at, err);
    if (status || !h->s.state)
        return status;
    if (at->has_row)
        store_put_row(h->s.state, &at->row);
    each_line(h, at, false);
    return HFSAD_OK;
}

static hfsad_status take_news(host *h, hosted *at, hfsad_error *err)
{
    if (!at->n)
        return HFSAD_OK;
    if (node_take_figures(at->n, &at->row)) {
        at->has_row = true;
        if (h->s.finish_row)
            h->s.finish_row(h->s.context, at->n, &at->row);
    }
    return take_lines(at) ? HFSAD_OK : error_memory(err, 0, "the record");
}

static hfsad_status put_result(host *h, hfsad_error *err)
{
    if (!h->s.state || !h->result || h->result_kept)
        return HFSAD_OK;
    h->out.size = 0;
    h->out.failed = false;
    word_writer writer = {.put = append, .to = &h->out, .unsummed = true};
    words_put_reals(&writer, h->result, h->n_result);
    if (h->out.failed)
        return error_memory(err, h->out.room, "the result of the set-up");
    const hfsad_status status = store_put_state(h->s.state, RESULT_NAME, h->out.bytes, h->out.size, err);
    return status || !h->s.about ? status : store_put_state(h->s.state, STORE_ABOUT, h->s.about, h->s.about_size, err);
}

/* Whether the states of all nodes go into the store: the log is full, or it would take too long to hand its
 * messages over again, or there are clients without a state there. */
static bool is_whole(const host *h)
{
    static const double most_seconds = 0.5;
    bool whole = h->s.state && (store_is_full(h->s.state) || h->replay_seconds > most_seconds), changed = false;
    for (size_t i = 0; i < h->count; i++) {
        const hosted *at = &h->all[i];
        const bool news = at->n && (node_changed(at->n) || at->uncommitted || at->has_row);
        changed = changed || news;
        whole = whole || (news && at->unkept && node_follows(at->n));
    }
    return whole && changed && h->s.state;
}

/* All that has changed, in one commit. */
static hfsad_status put_all(host *h, hfsad_error *err)
{
    const double before = clock_seconds();
    bool changed = false;
    hfsad_status status = HFSAD_OK;
    for (size_t i = 0; i < h->count && !status; i++)
        status = take_news(h, &h->all[i], err);
    const bool whole = is_whole(h);
    if (!status && whole)
        status = store_begin_whole(h->s.state, err);
    if (!status)
        status = put_result(h, err);
    for (size_t i = 0; i < h->count && !status; i++) {
        status = put_node_state(h, &h->all[i], whole, err);
        changed = changed || h->all[i].uncommitted;
    }
    if (!status && h->s.state)
        status = store_commit(h->s.state, err);
    if (!status && whole)
        h->replay_seconds = 0;
    if (changed && !status && h->s.state) {
        h->commits++;
        h->commit_seconds += clock_seconds() - before;
    }
    return status;
}

bool host_commit(host *h)
{
    hfsad_error err;
    const hfsad_status status = put_all(h, &err);
    if (status) {
        lose_messages(h);
        h->commit_failures++;
        if (!h->store_failed)
            host_tell(h, HOST_STORE_FAILED, "", err.message, "", NULL);
        h->store_failed = true;
        return false;
    }
    if (h->store_failed)
        host_tell(h, HOST_STORE_WORKS, "", "", "", NULL);
    h->store_failed = false;
    h->result_kept = h->result != NULL;
    for (size_t i = 0; i < h->count; i++) {
        hosted *at = &h->all[i];
        if (at->uncommitted && at->n_children)
            host_tell_absences(h, at);
        at->uncommitted = false;
        at->unkept = at->unkept && !at->n;
        if (at->has_row)
            h->last = at->row;
        if (at->has_row)
            host_tell(h, HOST_ROW, at->path, "", "", &at->row);
        at->has_row = false;
        each_line(h, at, true);
        free(at->lines);
        at->lines = NULL;
        if (!at->ended && at->n && node_ended(at->n) != NODE_RUNNING) {
            at->ended = true;
            at->status_due = 0;
            host_tell(h, HOST_ENDED, at->path, "", "", NULL);
        }
    }
    return true;
}
