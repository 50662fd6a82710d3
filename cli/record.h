/* The entry of a run in the history, and its dashboard, as the commands that train use them. */
#ifndef HFSAD_CLI_RECORD_H
#define HFSAD_CLI_RECORD_H

#include "cli.h"
#include "dash/recorder.h"

#include <sys/types.h>

typedef struct {
    const char *history; /* file; NULL: the default */
    bool none;
    const char *dash, *dash_keys; /* HOST:PORT, folder; NULL: no dashboard, no keys */
    int64_t run;                  /* of the history, entered by another process; 0: none */
} record_options;

#define RECORD_OPTIONS(o)                                                                                              \
    {.name = "history",                                                                                                \
     .kind = CLI_TEXT,                                                                                                 \
     .value = &(o)->history,                                                                                           \
     .operand = "FILE",                                                                                                \
     .help = "record the run there; by default HFSAD_HISTORY or\n"                                                     \
             "~/.local/share/hfsad/runs.db"},                                                                          \
    {                                                                                                                  \
        .name = "no-history", .kind = CLI_FLAG, .value = &(o)->none, .help = "do not record the run"                   \
    }
#define DASH_OPTIONS(o)                                                                                                \
    {.name = "dash",                                                                                                   \
     .kind = CLI_TEXT,                                                                                                 \
     .value = &(o)->dash,                                                                                              \
     .operand = "HOST:PORT",                                                                                           \
     .help = "serve the dashboard while the run lasts, such as\n"                                                      \
             "127.0.0.1:8080; see hfsad dash --help"},                                                                 \
    {                                                                                                                  \
        .name = "dash-keys", .kind = CLI_TEXT, .value = &(o)->dash_keys, .operand = "DIR",                             \
        .help = "certificate and token of the dashboard; needed beyond\nthis machine"                                  \
    }

/* A run that is being recorded. */
typedef struct {
    recorder *r;   /* NULL: it is not */
    bool borrowed; /* another process has entered the run, and will say how it ended */
    char *out;
    char *scratch; /* folder of a temporary history; NULL: none */
    pid_t dash;    /* process of the dashboard; 0: none */
} record;

/* A history that cannot be written costs one line on stderr, and the run continues: CLI_GO. A dashboard that cannot be
 * served ends it, because it was asked for: an exit status. */
int record_begin(record *r, const record_options *o, const recorder_start *start, bool quiet);
/* A row, with the cloud's model if model is not NULL. */
void record_row(record *r, const hfsad_figures *row, const double *model, size_t width);
/* Rows of trace.csv in a folder, for commands that do not see them pass. */
void record_trace(record *r, const char *folder);
/* summary.json is read from the output folder. diverged: exit status 1 means that. */
void record_end(record *r, int exit_status, bool diverged);

/* Opens the history that a command is about; CLI_GO or an exit status. */
int record_open(history **h, const char *path, history_mode mode);

#endif
