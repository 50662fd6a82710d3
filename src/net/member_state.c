/* The state folder of a process of a federation, and its record. */
#define _POSIX_C_SOURCE 200809L
#include "net/member.h"

#include "base/error.h"
#include "base/whole_file.h"
#include "data/nodes.h"

#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

/* The folder for rows on the disk: the state folder or, until it exists, the nearest folder above it. */
hfsad_status member_find_scratch(hfsad_member *m, hfsad_error *err)
{
    struct stat info;
    struct statfs kind;
    if (!m->s.rows_on_disk)
        return HFSAD_OK;
    m->scratch = strdup(m->s.state);
    while (m->scratch && (stat(m->scratch, &info) != 0 || !S_ISDIR(info.st_mode))) {
        char *slash = strrchr(m->scratch, '/');
        if (slash && slash != m->scratch) {
            *slash = 0;
            continue;
        }
        free(m->scratch);
        m->scratch = strdup(slash ? "/" : ".");
        break;
    }
    if (!m->scratch)
        return error_memory(err, 0, "a file name");
    if (statfs(m->scratch, &kind) == 0 && kind.f_type == TMPFS_MAGIC)
        member_log(m, HFSAD_LOG_WARNING, "", "rows on the disk stay in memory here",
                   "the state folder is on a tmpfs; give a state folder on a disk", "");
    return HFSAD_OK;
}

typedef struct {
    const hfsad_member *m;
    char other[200]; /* a node of the state that this process does not have; "": none */
    bool has_own;
} ownership;

static bool is_own(const hfsad_member *m, const char *path)
{
    const dataset *d = federation_shape(m->f);
    const size_t number = nodes_find(d, path);
    if (!m->s.all_of)
        return number == m->number;
    const inner_node *edge = &d->inner[m->number];
    return number != SIZE_MAX && number >= d->n_inner + edge->first_leaf &&
           number < d->n_inner + edge->first_leaf + edge->n_leaves;
}

static void note_owner(void *context, const char *path)
{
    ownership *o = context;
    if (is_own(o->m, path))
        o->has_own = true;
    else
        snprintf(o->other, sizeof o->other, "%s", path);
}

/* The state of another node of this run would be passed over, and be lost with the next commit. */
static hfsad_status check_owner(const hfsad_member *m, hfsad_error *err)
{
    ownership o = {.m = m};
    store_get_names(m->state, note_owner, &o);
    if (o.has_own || !o.other[0])
        return HFSAD_OK;
    const char *mine = m->s.all_of ? m->s.all_of : m->s.name;
    return error_set(err, HFSAD_ERROR_INPUT,
                     "the state folder %.200s belongs to %.100s, not to %s%.100s: give another state folder",
                     m->s.state, o.other, m->s.all_of ? "clients of " : "", mine);
}

hfsad_status member_open_state(hfsad_member *m, hfsad_error *err)
{
    size_t made = 0;
    store *state = NULL;
    hfsad_status status = folder_make_state(m->s.state, &made, err);
    m->state_made = made;
    if (!status)
        status = federation_open_store(m->f, m->s.state, NULL, &state, err);
    m->state = state;
    if (!status)
        status = check_owner(m, err);
    /* A state that goes back would repeat masks or noise for another message. */
    if (!status && m->s.state_process && !spec_has_noise(m->spec) && !spec_cohort(m->spec))
        store_relax(m->state);
    return status;
}

/* A process that has ended before it had anything to keep leaves no trace: the folder would be in the way of another
 * spec. */
void member_close_state(hfsad_member *m)
{
    store_discard(m->state);
    if (m->s.state)
        folder_unmake(m->s.state, m->state_made);
}

static void put_line(void *context, const char *line)
{
    fprintf(context, "%s\n", line);
}

hfsad_status member_write_record(const hfsad_member *m, hfsad_error *err)
{
    if (!m->s.record)
        return HFSAD_OK;
    FILE *f = fopen(m->s.record, "w");
    hfsad_status status = f ? store_get_record(m->state, put_line, f, err) : HFSAD_OK;
    const bool torn = !f || ferror(f);
    if (!f || ((fclose(f) != 0 || torn) && !status))
        status = error_set(err, HFSAD_ERROR_IO, "%.300s cannot be written", m->s.record);
    return status;
}
