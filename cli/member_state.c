/* The state folder of a process of a federation, and its record. */
#define _POSIX_C_SOURCE 200809L
#include "member_parts.h"

#include "base/error.h"
#include "base/rng.h"
#include "base/whole_file.h"
#include "data/nodes.h"
#include "run.h"

#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

char *member_state_path(const char *folder, const char *path, bool clients)
{
    enum { NAME_MOST = 200 }; /* a folder's has 255 bytes at most */
    const char *ending = clients ? "++clients" : "";
    const size_t size = strlen(folder) + NAME_MOST + 40;
    char *made = malloc(size);
    if (!made)
        return NULL;
    const int at = snprintf(made, size, "%s/%.*s", folder, NAME_MOST, path);
    for (char *c = made + strlen(folder) + 1; *c; c++)
        *c = *c == '/' ? '+' : *c;
    if (strlen(path) > NAME_MOST)
        snprintf(made + at, size - (size_t)at, "++%016" PRIx64 "%s", rng_stream(path), ending);
    else
        snprintf(made + at, size - (size_t)at, "%s", ending);
    return made;
}

static char *default_state(const member *m)
{
    char *folder = run_folder(m->args.spec_path, "state");
    const char *name = m->role == ROLE_CLOUD ? "cloud" : m->args.all_of ? m->args.all_of : m->args.name;
    char *path = folder ? member_state_path(folder, name, m->args.all_of != NULL) : NULL;
    free(folder);
    return path;
}

static char *state_folder(const member *m)
{
    return m->args.state ? strdup(m->args.state) : default_state(m);
}

/* Where rows on the disk go: the state folder or, as long as nobody has made it, the nearest folder above it. */
hfsad_status member_find_scratch(member *m, hfsad_error *err)
{
    struct stat info;
    struct statfs kind;
    if (m->args.rows != ROWS_ON_DISK)
        return HFSAD_OK;
    m->scratch = state_folder(m);
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
        member_log(&m->args, LOG_WARNING, "", "--rows disk keeps the rows in memory here",
                   "the state folder is on a tmpfs; give a --state on a disk", "");
    return HFSAD_OK;
}

typedef struct {
    const member *m;
    char other[200]; /* a node in the state that is none of this process's; "": there is none */
    bool has_own;
} ownership;

static bool is_own(const member *m, const char *path)
{
    const dataset *d = federation_shape(m->f);
    const size_t number = nodes_find(d, path);
    if (!m->args.all_of)
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
static hfsad_status check_owner(const member *m, hfsad_error *err)
{
    ownership o = {.m = m};
    store_get_names(m->state, note_owner, &o);
    if (o.has_own || !o.other[0])
        return HFSAD_OK;
    const char *mine = m->role == ROLE_CLOUD ? "cloud" : m->args.all_of ? m->args.all_of : m->args.name;
    return error_set(err, HFSAD_ERROR_INPUT,
                     "the state folder %.200s belongs to %.100s, not to %s%.100s: give another state folder",
                     m->state_folder, o.other, m->args.all_of ? "clients of " : "", mine);
}

hfsad_status member_open_state(member *m, hfsad_error *err)
{
    size_t made = 0;
    store *state = NULL;
    char *folder = m->state_folder = state_folder(m);
    hfsad_status status = folder ? folder_make_state(folder, &made, err) : error_memory(err, 0, "a file name");
    m->state_made = made;
    if (!status)
        status = federation_open_store(m->f, folder, NULL, &state, err);
    m->state = state;
    if (!status)
        status = check_owner(m, err);
    if (!status && m->args.durability == DURABLE_PROCESS)
        store_relax(m->state);
    return status;
}

/* A process that has ended before it had anything to keep leaves no trace: the folder would be in the way of another
 * spec. */
void member_close_state(member *m)
{
    store_discard(m->state);
    if (m->state_folder)
        folder_unmake(m->state_folder, m->state_made);
    char *name = m->state_folder && !m->args.state ? strrchr(m->state_folder, '/') : NULL;
    if (name) { /* of whichever process made it the last one closes the door */
        *name = 0;
        rmdir(m->state_folder);
    }
    free(m->state_folder);
}

static void put_line(void *context, const char *line)
{
    fprintf(context, "%s\n", line);
}

hfsad_status member_write_record(const member *m, hfsad_error *err)
{
    if (!m->args.record)
        return HFSAD_OK;
    FILE *f = fopen(m->args.record, "w");
    hfsad_status status = f ? store_get_record(m->state, put_line, f, err) : HFSAD_OK;
    const bool torn = !f || ferror(f);
    if (!f || ((fclose(f) != 0 || torn) && !status))
        status = error_set(err, HFSAD_ERROR_IO, "%.300s cannot be written", m->args.record);
    return status;
}
