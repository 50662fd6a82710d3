/*
 * Writes a run to the history in a separate thread: rows, models and events go to bounded queues and from there to the
 * file a few times a second. If the file cannot be written or is slow, the run loses only its entry, and recorder_end
 * states the reason.
 */
#ifndef HFSAD_DASH_RECORDER_H
#define HFSAD_DASH_RECORDER_H

#include "dash/history.h"

typedef struct recorder recorder;

typedef struct {
    const char *kind; /* run, up, cloud, path, compare */
    const char *name; /* NULL: the name of the spec */
    const char *spec_path, *out;
    const hfsad_spec *spec;    /* including its --set */
    const hfsad_spec *settled; /* resolved settings; NULL: not known before the end */
    int64_t run;               /* a run that another process began; 0: a new run */
    bool continues;            /* there is a state of an earlier process: its entry is continued if it is found */
} recorder_start;

/* Opens the file, creating it if it is missing, enters the run and starts the thread. */
hfsad_status recorder_create(recorder **r, const char *path, const recorder_start *start, hfsad_error *err);
int64_t recorder_run(const recorder *r);
const char *recorder_path(const recorder *r);

/* These functions never wait and accept NULL. If a queue is full, the item is dropped. */
void recorder_row(recorder *r, const hfsad_figures *row);
/* Whether a model is wanted: at most a few hundred models of a run are kept. */
bool recorder_wants_model(const recorder *r, uint64_t iteration);
void recorder_model(recorder *r, uint64_t iteration, const double *w, size_t width);
void recorder_event(recorder *r, int level, const char *node, const char *text);

/* A node of a federation as an observer knows it. */
typedef struct {
    size_t number, parent; /* parent: SIZE_MAX for the cloud */
    const char *path;
    bool inner;
    const char *state, *phase;
    uint64_t round, refused, repeated, sent, received, losses;
    const char *waits_for; /* NULL: it waits for no child */
    uint64_t waits_more, waits_ms;
    double said; /* wall clock, ms */
} recorder_node;
/* Waits for the file: for the observer's thread, not for a training thread. */
void recorder_nodes(recorder *r, const recorder_node *nodes, size_t count);

/* status: done, failed, diverged, interrupted; NULL: the process that began the run reports it. summary: its text, or
 * NULL. Writes the rest, frees r, and returns an error if anything could not be written. */
hfsad_status recorder_end(recorder *r, const char *status, const char *why, int exit_status, const char *summary,
                          hfsad_error *err);

#endif
