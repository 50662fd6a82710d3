/* The prints of spec and list of nodes, by which two processes find out whether they belong to one run, and name the
 * keys that differ if they do not. */
#include "net/federation_parts.h"

#include "base/alloc.h"
#include "spec/pack.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

message federation_introduce(const federation *f)
{
    message m = {.kind = MESSAGE_ANSWER, .run = f->run, .phase = NODE_PHASE_SETUP, .count = INQUIRY_HEAD + f->n_prints};
    m.values = alloc_zero(m.count, sizeof *m.values);
    if (!m.values)
        return m;
    m.values[0] = INQUIRY_SHAPE;
    memcpy(m.values + INQUIRY_HEAD, f->prints, f->n_prints * sizeof *m.values);
    return m;
}

/* false: they cannot be compared. */
static bool explain(const federation *f, const double *theirs, size_t count, char *text, size_t size)
{
    if (count != f->n_prints)
        return false;
    text[0] = 0;
    const size_t keys = spec_prints_differ(f->prints, theirs, text, size);
    if (theirs[count - 1] != f->prints[count - 1])
        snprintf(text + strlen(text), size - strlen(text), "%sthe list of nodes", keys ? ", " : "");
    return true;
}

bool federation_explain(const federation *f, const message *m, char *text, size_t size)
{
    if ((m->kind != MESSAGE_ASK && m->kind != MESSAGE_ANSWER) || m->phase != NODE_PHASE_SETUP ||
        m->count < INQUIRY_HEAD || m->values[0] != INQUIRY_SHAPE)
        return false;
    if (!explain(f, m->values + INQUIRY_HEAD, m->count - INQUIRY_HEAD, text, size))
        snprintf(text, size, "the version of hfsad");
    return true;
}

const double *federation_prints(const federation *f, size_t *count)
{
    *count = f->n_prints;
    return f->prints;
}

static bool explain_about(const void *context, const void *about, size_t size, char *text, size_t room)
{
    const federation *f = context;
    double *theirs = alloc_zero(f->n_prints, sizeof *theirs);
    bool done = theirs && size == f->n_prints * sizeof *theirs;
    if (done) {
        memcpy(theirs, about, size); /* it may lie anywhere */
        done = explain(f, theirs, f->n_prints, text, room);
    }
    free(theirs);
    return done;
}

hfsad_status federation_open_store(const federation *f, const char *folder, const char *shown, store **s,
                                   hfsad_error *err)
{
    const store_user user = {f->run, shown, f, explain_about};
    return store_open_as(s, folder, &user, err);
}
