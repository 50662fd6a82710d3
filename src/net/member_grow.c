/*
 * The list of nodes may grow while an asynchronous run goes on: `hfsad admit` adds lines `later <path>`, and a process
 * that finds such clients below its nodes is made anew from its state folder, as after a crash, with the longer list.
 * The list of the start still identifies the run. A new client takes part only after its first message: then its parent
 * asks the cloud for an order, as for a client that was not there at the set-up (host_admit.c).
 */
#define _POSIX_C_SOURCE 200809L
#include "net/member.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/read_file.h"
#include "base/whole_file.h"
#include "data/nodes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- the operator ---- */

/* Said of the operator's name, before a line of the longer list is wrong. */
static hfsad_status check_name(const dataset *now, const char *name, hfsad_error *err)
{
    const char *slash = strrchr(name, '/');
    char edge[HFSAD_TIERS_MAX * 256];
    if (nodes_find(now, name) != SIZE_MAX)
        return error_set(err, HFSAD_ERROR_INPUT, "%.300s is in the list already; name clients that are new", name);
    snprintf(edge, sizeof edge, "%.*s", slash ? (int)(slash - name) : 0, name);
    if (slash && nodes_find(now, edge) >= now->n_inner)
        return error_set(err, HFSAD_ERROR_INPUT,
                         "%.300s: the list has no edge %.300s; a client can be added below the nodes of the list, "
                         "without a new edge",
                         name, edge);
    return HFSAD_OK;
}

static hfsad_status check_growth(const hfsad_spec *spec, const dataset *now, const char *text, hfsad_error *err)
{
    dataset *grown;
    federation *f;
    hfsad_status status = member_shape(&grown, spec, text, NULL, err);
    if (status)
        return status;
    if (nodes_print(grown) != nodes_print(now)) {
        dataset_free(grown);
        return error_set(err, HFSAD_ERROR_INPUT,
                         "a client can be added below the nodes of the list, without a new edge");
    }
    status = federation_create(&f, spec, grown, err); /* what processes of the run will make of it */
    if (!status)
        federation_free(f);
    return status;
}

static hfsad_status add_names(const char *path, char **text, const char *const *names, size_t count, hfsad_error *err)
{
    size_t size = 0;
    char *old, *grown = NULL;
    FILE *f = NULL;
    if (file_read(path, SIZE_MAX, &old, &size) != 0)
        return error_set(err, HFSAD_ERROR_INPUT, "%.300s cannot be read", path);
    f = open_memstream(&grown, &(size_t){0});
    if (f) {
        fprintf(f, "%s%s", old, size && old[size - 1] != '\n' ? "\n" : "");
        for (size_t i = 0; i < count; i++)
            fprintf(f, "later %s\n", names[i]);
    }
    free(old);
    *text = f && fclose(f) == 0 ? grown : NULL;
    return *text ? HFSAD_OK : error_memory(err, size, "the list of nodes");
}

hfsad_status hfsad_admit(const hfsad_spec *spec, const char *const *names, size_t count, hfsad_error *err)
{
    if (!spec->federation.nodes)
        return error_set(err, HFSAD_ERROR_INPUT,
                         "the spec has no list of nodes that could grow: write it by `hfsad nodes`, and name it in "
                         "federation.nodes from the start");
    if (spec->federation.mode != MODE_ASYNC)
        return error_set(err, HFSAD_ERROR_INPUT,
                         "in lock step the run needs every client from the start: clients "
                         "can be added with federation.mode async");
    char *path = spec_find_file(spec, spec->federation.nodes), *text = NULL;
    dataset *now = NULL;
    hfsad_status status = path ? member_shape(&now, spec, NULL, NULL, err) : error_memory(err, 0, "a file name");
    for (size_t i = 0; i < count && !status; i++)
        status = check_name(now, names[i], err);
    if (!status)
        status = add_names(path, &text, names, count, err);
    if (!status)
        status = check_growth(spec, now, text, err);
    if (!status) {
        char *slash = strrchr(path, '/');
        if (slash)
            *slash = 0;
        status = whole_file_write(slash ? path : ".", slash ? slash + 1 : path, text, strlen(text), err);
    }
    free(text);
    free(path);
    dataset_free(now);
    return status;
}

/* ---- a process that runs ---- */

/* Changes with the content of the list; 0: there is none. */
static uint64_t look_at_list(const hfsad_member *m)
{
    struct stat about;
    char *path = m->s.nodes || !m->spec->federation.nodes || m->spec->federation.mode != MODE_ASYNC
                     ? NULL
                     : spec_find_file(m->spec, m->spec->federation.nodes);
    const bool found = path && stat(path, &about) == 0;
    free(path);
    return !found ? 0
                  : (uint64_t)about.st_mtim.tv_sec * 1000000000 + (uint64_t)about.st_mtim.tv_nsec +
                        (uint64_t)about.st_ino + (uint64_t)about.st_size;
}

/* Clients that came later and are below the node. */
static size_t count_later(const hfsad_member *m, const dataset *d)
{
    char name[HFSAD_TIERS_MAX * 256];
    size_t later = 0;
    const size_t length = strlen(m->s.name);
    for (size_t leaf = 0; d->later && leaf < d->n_leaves; leaf++) {
        nodes_name(d, d->n_inner + leaf, name, sizeof name);
        later += d->later[leaf] &&
                 (m->s.role == HFSAD_ROLE_CLOUD || (strncmp(name, m->s.name, length) == 0 && name[length] == '/'));
    }
    return later;
}

void member_note_list(hfsad_member *m)
{
    m->list_seen = look_at_list(m);
}

/* Whether a process that begins with the longer list could go on: a line written by hand may not fit the run. */
static hfsad_status check_grown(const hfsad_member *m, bool *grown, hfsad_error *err)
{
    dataset *now;
    federation *f;
    hfsad_status status = member_shape(&now, m->spec, NULL, NULL, err);
    if (status)
        return status;
    const dataset *before = federation_shape(m->f);
    const bool same = nodes_print(now) == nodes_print(before);
    *grown = same && count_later(m, now) > count_later(m, before);
    if (!same)
        status = error_set(err, HFSAD_ERROR_INPUT, "only lines `later PATH` may be added while the run goes on");
    if (status || !*grown) {
        dataset_free(now);
        return status;
    }
    status = federation_create(&f, m->spec, now, err);
    if (!status)
        federation_free(f);
    return status;
}

bool member_has_grown(hfsad_member *m)
{
    static const double every = 0.5;
    hfsad_error err;
    bool grown = false;
    if (m->s.role == HFSAD_ROLE_CLIENT || clock_seconds() < m->list_next)
        return false;
    m->list_next = clock_seconds() + every;
    const uint64_t seen = look_at_list(m);
    if (!seen || seen == m->list_seen)
        return false;
    m->list_seen = seen;
    if (check_grown(m, &grown, &err)) {
        member_log(m, HFSAD_LOG_ERROR, m->s.name, "the list of nodes has changed, and is not used", err.message, "");
        return false;
    }
    if (grown)
        member_log(m, HFSAD_LOG_INFO, m->s.name, "the list of nodes has grown", "", "");
    m->grown = m->grown || grown;
    return grown;
}

bool hfsad_member_has_grown(const hfsad_member *m)
{
    return m->grown;
}
