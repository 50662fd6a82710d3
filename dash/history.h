/*
 * The history of runs: one SQLite file that any number of processes write and read at once.
 *
 * A run is a row of `run`; its trace, models, events and nodes are rows of their own tables. What a run writes goes
 * through recorder.h, what programs and pages read through the functions below, as JSON.
 */
#ifndef HFSAD_DASH_HISTORY_H
#define HFSAD_DASH_HISTORY_H

#include "hfsad/hfsad.h"

#include <cjson/cJSON.h>
#include <sqlite3.h>

typedef struct history {
    sqlite3 *db;
    char *path;
} history;

typedef enum {
    HISTORY_READ,   /* the file must be there; an older version is migrated, because no reader knows it */
    HISTORY_WRITE,  /* the same, and rows change */
    HISTORY_CREATE, /* file and folders are made if they are missing */
} history_mode;

/* Levels of events, as those of net.h. */
enum { HISTORY_FAULT, HISTORY_WARNING, HISTORY_INFO };

/* HFSAD_HISTORY, else hfsad/runs.db below XDG_DATA_HOME or ~/.local/share; to be freed. NULL: HFSAD_HISTORY is `none`,
 * or there is no home. */
char *history_default_path(void);

/* HFSAD_ERROR_INPUT: no history, another version, a damaged file; the file is as it was. A file of an earlier version
 * is copied to FILE.v<version> before it is migrated. */
hfsad_status history_open(history **h, const char *path, history_mode mode, hfsad_error *err);
/* NULL is allowed. */
void history_close(history *h);
/* The last error of SQLite as an error of the history. */
hfsad_status history_error(const history *h, hfsad_error *err);

/* ---- reading ---- */

typedef struct {
    const char *status, *kind, *tag, *text; /* NULL: all; text: part of name, spec, folder or tag */
    const char *sort;                       /* a column of HISTORY_SORTS; NULL: started */
    bool rising;
    int64_t limit, offset; /* limit 0: 100 */
} history_filter;
#define HISTORY_SORTS(X)                                                                                               \
    X(started)                                                                                                         \
    X(name)                                                                                                            \
    X(status)                                                                                                          \
    X(iteration)                                                                                                       \
    X(objective)                                                                                                       \
    X(best)                                                                                                            \
    X(seconds)
bool history_sort_known(const char *column);

/* An array of runs without specs and summaries. NULL: err says why. */
cJSON *history_runs(history *h, const history_filter *f, hfsad_error *err);
/* Everything of a run but its trace. NULL: no such run (HFSAD_ERROR_INPUT), or a failure. */
cJSON *history_run(history *h, int64_t id, hfsad_error *err);
/* The columns of a trace from iteration `after` on, without it; at most `most` rows, evenly spaced and with the last
 * one. -1: from the start. */
cJSON *history_trace(history *h, int64_t id, int64_t after, int64_t most, hfsad_error *err);
/* The cloud's largest coefficients over time. */
cJSON *history_models(history *h, int64_t id, hfsad_error *err);
/* The last `most` events after event `after`. */
cJSON *history_events(history *h, int64_t id, int64_t after, int64_t most, hfsad_error *err);
/* The inner nodes with counts of what is below them, and the children of `under` from `offset` on, those that need
 * attention first. */
cJSON *history_nodes(history *h, int64_t id, int64_t under, int64_t offset, int64_t most, hfsad_error *err);
/* The number of a run: "12", or "last". false: no such run, and err says so. */
bool history_find(history *h, const char *word, int64_t *id, hfsad_error *err);
/* Changes with every commit of another connection. */
int64_t history_version(history *h);

/* ---- changing ---- */

hfsad_status history_delete(history *h, int64_t id, hfsad_error *err);
hfsad_status history_rename(history *h, int64_t id, const char *name, hfsad_error *err);
hfsad_status history_tag(history *h, int64_t id, const char *tag, bool add, hfsad_error *err);

/* Whether the process that began a run is still the one with that number; boot: of boot_id. */
bool process_lives(int64_t pid, int64_t since, const char *boot);
/* When the process was started, in ticks since boot; -1: there is none. */
int64_t process_since(int64_t pid);
/* Names this life of the machine's kernel. */
void boot_name(char name[64]);

#endif
