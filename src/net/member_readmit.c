/*
 * Readmission and retirement as the operator asks for them: `hfsad readmit` and `hfsad retire` leave a file for each
 * node in the state folder of the cloud, which only its owner can write. A file contains the path of the node, a proof
 * of the authority if it leaves a cohort (veil_renew.c), and a last line if the node is to leave; the cloud removes it
 * when it is done.
 */
#define _POSIX_C_SOURCE 200809L
#include "net/member.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/read_file.h"
#include "base/whole_file.h"
#include "data/nodes.h"
#include "net/veil.h"
#include "run/algorithm.h"
#include "run/anew.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the operator ---- */

/* A request that the cloud has refused, until the operator has read it. */
#define REFUSED_NAME "refused-"

static char *next_file(DIR *folder, const char *prefix)
{
    for (const struct dirent *entry; (entry = readdir(folder));)
        if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0)
            return strdup(entry->d_name);
    return NULL;
}

/* The next request of a folder, to be freed; NULL: none. */
static char *next_request(DIR *folder)
{
    return next_file(folder, READMIT_NAME);
}

bool hfsad_readmit_is_pending(const char *state)
{
    DIR *folder = opendir(state);
    char *name = folder ? next_request(folder) : NULL;
    const bool any = name != NULL;
    free(name);
    if (folder)
        closedir(folder);
    return any;
}

static const char retires_line[] = "\nretire";

static const char *refusal_of(const hfsad_spec *spec, const dataset *d, size_t number, bool retires, bool proven)
{
    const bool inner = number < d->n_inner;
    return !retires ? readmit_refusal(spec, inner && d->inner[number].n_inner > 0)
           : inner  ? "only clients can leave; name them one by one"
           : spec_cohort(spec) && !proven
               ? "a client leaves its cohort only if the authority has signed it (hfsad keys cohort)"
           : spec->federation.mode == MODE_ASYNC ? NULL
                                                 : "in lock step the run needs every client: nodes join and leave with "
                                                   "federation.mode async";
}

/* The path before the proof, if there is one: returns whether. */
static bool take_path(const char *text, char *path, size_t size)
{
    const size_t length = strcspn(text, "\n");
    snprintf(path, size, "%.*s", (int)length, text);
    return text[length] != 0;
}

static hfsad_status check_nodes(const hfsad_spec *spec, const char *const *nodes, size_t count, bool retires,
                                hfsad_error *err)
{
    dataset *shape;
    hfsad_status status = member_shape(&shape, spec, NULL, NULL, err);
    if (status)
        return status;
    for (size_t i = 0; i < count && !status; i++) {
        char path[1200];
        const bool proven = take_path(nodes[i], path, sizeof path);
        const size_t number = nodes_find(shape, path);
        const char *why = number == 0
                              ? retires ? "the cloud cannot leave" : "the cloud cannot be replaced: restore its folder"
                          : number == SIZE_MAX ? "no such node in this federation; `hfsad nodes` lists its nodes"
                                               : refusal_of(spec, shape, number, retires, proven);
        if (why)
            status = error_set(err, HFSAD_ERROR_INPUT, "%.200s: %s", path, why);
    }
    dataset_free(shape);
    return status;
}

/* Removes the files of this node; returns whether there was one. */
static bool take_back(const char *state, const char *prefix, const char *path)
{
    DIR *folder = opendir(state);
    const size_t length = strcspn(path, "\n");
    bool any = false;
    for (char *name; folder && (name = next_file(folder, prefix)); free(name)) {
        char file[4400], *text;
        size_t size;
        snprintf(file, sizeof file, "%.4000s/%.300s", state, name);
        if (file_read(file, 1 << 16, &text, &size) != 0)
            continue;
        if (strcspn(text, "\n") == length && memcmp(text, path, length) == 0)
            any = unlink(file) == 0 || any;
        free(text);
    }
    if (folder)
        closedir(folder);
    return any;
}

bool hfsad_readmit_was_refused(const char *state, const char *name)
{
    return take_back(state, REFUSED_NAME, name);
}

static hfsad_status leave_requests(const hfsad_spec *spec, const char *state, const char *const *nodes, size_t count,
                                   bool retires, hfsad_error *err)
{
    hfsad_status status = spec ? check_nodes(spec, nodes, count, retires, err) : HFSAD_OK;
    if (!status && access(state, W_OK) != 0)
        status = error_set(err, HFSAD_ERROR_INPUT,
                           "%.300s is not a folder that can be written: give the cloud's state folder", state);
    for (size_t i = 0; i < count && !status; i++) {
        char name[80], text[1200];
        snprintf(text, sizeof text, "%.1000s%s", nodes[i], retires ? retires_line : "");
        snprintf(name, sizeof name, READMIT_NAME "%ld-%llu-%zu", (long)getpid(), (unsigned long long)clock_ms(), i);
        /* What was asked of this node before counts no more: a node that was to come back and then to leave, leaves. */
        (void)take_back(state, READMIT_NAME, nodes[i]);
        (void)take_back(state, REFUSED_NAME, nodes[i]);
        status = whole_file_write(state, name, text, strlen(text), err);
    }
    return status;
}

hfsad_status hfsad_readmit(const hfsad_spec *spec, const char *state, const char *const *nodes, size_t count,
                           hfsad_error *err)
{
    return leave_requests(spec, state, nodes, count, false, err);
}

hfsad_status hfsad_retire(const hfsad_spec *spec, const char *state, const char *const *nodes, size_t count,
                          hfsad_error *err)
{
    return leave_requests(spec, state, nodes, count, true, err);
}

/* ---- the cloud ---- */

static bool is_name(const hfsad_member *m, const char *text, bool retires)
{
    const dataset *d = federation_shape(m->f);
    char path[1200];
    const bool proven = take_path(text, path, sizeof path);
    const size_t number = nodes_find(d, path);
    if (proven && !veil_is_proven(m->s.keys ? m->ca : m->s.ca, federation_run(m->f), path, text + strlen(path) + 1))
        return false;
    return number != SIZE_MAX && number > 0 && strlen(text) <= INQUIRY_WHY_MOST &&
           !refusal_of(m->spec, d, number, retires, proven);
}

const char *readmit_refusal(const hfsad_spec *spec, bool above)
{
    return !algorithm_of(spec)->links ? algorithm_of(spec)->unreadmitted
           : spec_cohort(spec) ? "with secure aggregation no single client's link can start anew: restart the run "
                                 "with new state folders"
           : spec_has_noise(spec)
               ? "with noise (privacy.epsilon) a client that has lost its state folder would say its "
                 "rounds again with other noise: restart the run with new state folders"
           : above && spec->federation.mode == MODE_ASYNC
               ? "in an asynchronous run a node above edges cannot begin anew: restore its folder, or restart the run "
                 "with new state folders for all nodes"
               : NULL;
}

/* The path, and the proof behind it, remain; returns whether the node is to leave. */
static bool cut_request(char *text)
{
    char *line = strrchr(text, '\n');
    const bool retires = line && strcmp(line, retires_line) == 0;
    if (line)
        *line = 0;
    return retires;
}

/* A request of the operator: refused, or ordered unless it is on its way. */
static void take_request(hfsad_member *m, const char *name)
{
    char file[4400], *path;
    size_t size;
    snprintf(file, sizeof file, "%.4000s/%.300s", m->s.state, name);
    if (file_read(file, 1 << 16, &path, &size) != 0)
        return;
    const bool retires = cut_request(path);
    if (!is_name(m, path, retires)) {
        char refused[4400];
        snprintf(refused, sizeof refused, "%.4000s/" REFUSED_NAME "%.300s", m->s.state, name + strlen(READMIT_NAME));
        path[strcspn(path, "\n")] = 0; /* without the proof */
        member_log(m, HFSAD_LOG_ERROR, "cloud", retires ? "no client that can leave" : "no node that can be readmitted",
                   path, "");
        if (rename(file, refused) != 0)
            (void)unlink(file);
    } else {
        (void)host_readmit(m->h, path, retires);
    }
    free(path);
}

static void remove_request(const hfsad_member *m, const char *name, const run_readmission *done)
{
    char file[4400], *path;
    size_t size;
    snprintf(file, sizeof file, "%.4000s/%.300s", m->s.state, name);
    if (file_read(file, 1 << 16, &path, &size) != 0)
        return;
    const bool retires = cut_request(path);
    path[strcspn(path, "\n")] = 0;
    if (strcmp(path, done->path) == 0 && retires == (done->where == ANEW_RETIRED))
        (void)unlink(file);
    free(path);
}

static void each_request(hfsad_member *m, const run_readmission *done)
{
    DIR *folder = opendir(m->s.state);
    for (char *name; folder && (name = next_request(folder)); free(name)) {
        if (done)
            remove_request(m, name, done);
        else
            take_request(m, name);
    }
    if (folder)
        closedir(folder);
}

void member_readmit(hfsad_member *m)
{
    static const double every = 0.2;
    hfsad_error err;
    char said[80];
    const run_readmission *done;
    if (!host_node(m->h, 0) || !m->cloud.driver)
        return;
    while ((done = host_readmitted(m->h))) {
        snprintf(said, sizeof said, "from iteration %llu on", (unsigned long long)done->iteration);
        member_log(m, HFSAD_LOG_INFO, done->path, done->where == ANEW_RETIRED ? "has left" : "readmitted", said, "");
        if (run_note_readmission(cloud_run(m->cloud.driver), done, &err))
            member_log(m, HFSAD_LOG_ERROR, done->path, err.message, "", "");
        each_request(m, done);
    }
    if (clock_seconds() < m->cloud.readmit_next)
        return;
    m->cloud.readmit_next = clock_seconds() + every;
    each_request(m, NULL);
    for (size_t i = 0; i < NODE_ORDERS; i++) { /* also those of an earlier life */
        bool retires;
        const char *path = node_pending_order(host_node(m->h, 0), i, &retires);
        if (path)
            (void)host_readmit(m->h, path, retires);
    }
}

static void note_line(void *context, const char *line)
{
    hfsad_member *m = context;
    hfsad_error err;
    char text[1200];
    const int size = snprintf(text, sizeof text, "%.1100s\n", line);
    (void)run_take_readmissions(cloud_run(m->cloud.driver), text, (size_t)size, NULL, &err);
}

hfsad_status member_take_readmissions(hfsad_member *m, hfsad_error *err)
{
    return store_get_record(m->state, note_line, m, err);
}
