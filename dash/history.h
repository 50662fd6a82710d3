/*
 * The history of runs: one SQLite file that any number of processes write and read at once.
 *
 * A run is a row of `run`; its trace, models, events and nodes are rows of their own tables. A run writes by
 * recorder.h. Programs and pages read by the functions below, as JSON.
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
    HISTORY_READ,   /* the file must exist; an older version is migrated */
    HISTORY_WRITE,  /* the same, and rows may change */
    HISTORY_CREATE, /* creates the file and its folders if they are missing */
} history_mode;

/* Levels of events, equal to those of net.h. */
enum { HISTORY_FAULT, HISTORY_WARNING, HISTORY_INFO };

/* HFSAD_HISTORY, otherwise hfsad/runs.db below XDG_DATA_HOME or ~/.local/share; the caller frees it. NULL:
 * HFSAD_HISTORY is `none`, or there is no home folder. */
char *history_default_path(void);

/* HFSAD_ERROR_INPUT: no history, another version, or a damaged file; the file does not change. A file of an earlier
 * version is copied to FILE.v<version> before it is migrated. */
hfsad_status history_open(history **h, const char *path, history_mode mode, hfsad_error *err);
/* h may be NULL. */
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
/* Everything about a run except its trace. NULL: no such run (HFSAD_ERROR_INPUT), or a failure. */
cJSON *history_run(history *h, int64_t id, hfsad_error *err);
/* The columns of a trace after iteration `after` (-1: from the start); at most `most` rows, evenly spaced, including
 * the last row. */
cJSON *history_trace(history *h, int64_t id, int64_t after, int64_t most, hfsad_error *err);
/* The cloud's largest coefficients over time. */
cJSON *history_models(history *h, int64_t id, hfsad_error *err);
/* The last `most` events after event `after`. */
cJSON *history_events(history *h, int64_t id, int64_t after, int64_t most, hfsad_error *err);
/* The inner nodes with counts of the nodes below them, and the children of `under` from `offset` on; nodes that need
 * attention come first. */
cJSON *history_nodes(history *h, int64_t id, int64_t under, int64_t offset, int64_t most, hfsad_error *err);
/* Finds the number of a run: "12", or "last". false: no such run, and err is set. */
bool history_find(history *h, const char *word, int64_t *id, hfsad_error *err);
/* Changes with every commit of another connection. */
int64_t history_version(history *h);

/* ---- changing ---- */

hfsad_status history_delete(history *h, int64_t id, hfsad_error *err);
hfsad_status history_rename(history *h, int64_t id, const char *name, hfsad_error *err);
hfsad_status history_tag(history *h, int64_t id, const char *tag, bool add, hfsad_error *err);

/* Whether the process that began a run still exists, by its number and start; boot: boot_id. */
bool process_lives(int64_t pid, int64_t since, const char *boot);
/* The start time of a process, in ticks since boot; -1: no such process. */
int64_t process_since(int64_t pid);
/* Identifies this boot of the machine. */
void boot_name(char name[64]);

#endif
