/* What of a process outlasts it: states are committed before anything is said of them, and taken up again. */
#include "net/host_parts.h"

#include "base/alloc.h"
#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RESULT_NAME "+result" /* no path of a node */

hfsad_status host_restore(host *h, hosted *at, hfsad_error *err)
{
    void *bytes;
    size_t size;
    if (!h->s.state)
        return HFSAD_OK;
    const hfsad_status status = store_get_state(h->s.state, at->path, &bytes, &size, err);
    if (status || !bytes)
        return status;
    word_reader reader = {bytes, size / WORD_BYTES, size % WORD_BYTES != 0};
    const bool done = node_unpack(at->n, &reader);
    free(bytes);
    return done ? HFSAD_OK
                : error_set(err, HFSAD_ERROR_INPUT,
                            "the state of %s is not one of this spec and this data: give another state folder",
                            at->path);
}

/* What an earlier life has kept. */
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

/* ---- commit ---- */

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

/* The node's new lines behind those that wait, each with the path before it. */
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

/* Calls back for every line of `lines`, which is torn up in doing so. */
static hfsad_status each_line(host *h, const hosted *at, bool stored, hfsad_error *err)
{
    hfsad_status status = HFSAD_OK;
    for (char *line = at->lines, *end; line && !status && (end = strchr(line, '\n')); line = end + 1) {
        *end = 0;
        if (stored)
            host_tell(h, HOST_RECORD, at->path, line, "", NULL);
        else
            status = store_put_line(h->s.state, line, err);
        *end = '\n';
    }
    return status;
}

static hfsad_status put_node(host *h, hosted *at, hfsad_error *err)
{
    if (!at->n)
        return HFSAD_OK;
    if (node_take_figures(at->n, &at->row)) {
        at->has_row = true;
        if (h->s.finish_row)
            h->s.finish_row(h->s.context, at->n, &at->row);
    }
    if (!take_lines(at))
        return error_memory(err, 0, "the record");
    if (!node_changed(at->n) && !at->uncommitted && !at->has_row)
        return HFSAD_OK;
    at->uncommitted = true;
    h->out.size = 0;
    h->out.failed = false;
    word_writer writer = {.put = append, .to = &h->out};
    node_pack(at->n, &writer);
    if (!h->s.state)
        return HFSAD_OK;
    if (h->out.failed)
        return error_memory(err, h->out.room, "the state of a node");
    hfsad_status status = store_put_state(h->s.state, at->path, h->out.bytes, h->out.size, err);
    if (!status && at->has_row)
        status = store_put_row(h->s.state, &at->row, err);
    return status ? status : each_line(h, at, false, err);
}

static hfsad_status put_result(host *h, hfsad_error *err)
{
    if (!h->s.state || !h->result || h->result_kept)
        return HFSAD_OK;
    h->out.size = 0;
    h->out.failed = false;
    word_writer writer = {.put = append, .to = &h->out};
    words_put_reals(&writer, h->result, h->n_result);
    if (h->out.failed)
        return error_memory(err, h->out.room, "the result of the set-up");
    return store_put_state(h->s.state, RESULT_NAME, h->out.bytes, h->out.size, err);
}

/* All that has changed, in one transaction. */
static hfsad_status put_all(host *h, hfsad_error *err)
{
    const double before = host_seconds();
    bool changed = false;
    hfsad_status status = put_result(h, err);
    for (size_t i = 0; i < h->count && !status; i++) {
        status = put_node(h, &h->all[i], err);
        changed = changed || h->all[i].uncommitted;
    }
    if (!status && h->s.state)
        status = store_commit(h->s.state, err);
    if (changed && !status && h->s.state) {
        h->commits++;
        h->commit_seconds += host_seconds() - before;
    }
    return status;
}

bool host_commit(host *h)
{
    hfsad_error err;
    const hfsad_status status = put_all(h, &err);
    if (status) {
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
        at->uncommitted = false;
        if (at->has_row)
            h->last = at->row;
        if (at->has_row)
            host_tell(h, HOST_ROW, at->path, "", "", &at->row);
        at->has_row = false;
        (void)each_line(h, at, true, NULL);
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
