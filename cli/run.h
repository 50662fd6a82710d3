/* One run of a spec into a folder, as `hfsad run` and `hfsad compare` make it. */
#ifndef HFSAD_CLI_RUN_H
#define HFSAD_CLI_RUN_H

#include "cli.h"
#include "record.h"

typedef struct {
    const char *spec_path, *out;
    const char *replay;        /* file, NULL: not wanted */
    const char *resume, *warm; /* NULL: not wanted; resume: the same as out, and spec_path may be NULL */
    int64_t threads;
    int device;           /* 0: the processor */
    bool force;           /* replace results of another spec */
    bool quiet, no_table; /* quiet: no progress either */
    cli_texts sets;       /* KEY=VALUE, in their order */
    record_options record;
    const char *kind; /* of the history's entry; NULL: run */
} run_arguments;

/*
 * These print errors on stderr and return an exit status. command: its name for messages. run_algorithm returns
 * `algorithm` of the spec with the sets; run_check finds all errors of spec, data and arguments. Both write nothing and
 * return CLI_GO if there is no error. *diverged: the folder is complete, but the run is not a result.
 */
int run_algorithm(const run_arguments *args, const char *command, char *algorithm, size_t size);
int run_check(const run_arguments *args, const char *command);
int run_spec(const run_arguments *args, const char *command, bool *diverged);

/* report_check_owner, whose message then names --force. */
hfsad_status run_check_owner(const char *folder, const char *spec_path, hfsad_error *err);

/* "dir/spec.yaml" and "out" give "spec-out". NULL: no memory. */
char *run_folder(const char *spec_path, const char *ending);

#endif
