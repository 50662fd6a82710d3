/*
 * The durable state of a process of a federation: the states of its nodes, the rows of the trace and the record. After
 * a crash, everything put since the last commit is there as a whole or not at all.
 *
 * A state folder has one file with a snapshot and the log of later commits, and a mark of the last commit
 * (store_file.h). An ordinary commit is a record of the log, one durable write. A whole commit is a new snapshot, which
 * replaces the file.
 *
 * If the state of a node follows from an earlier one and the messages processed since, the messages are put in place of
 * states: store_put_frame once, store_put_heard for every node that processed it. The caller makes a whole commit, with
 * the states of all such nodes, if store_is_full returns true.
 *
 * The folder is locked while it is open, so a second process is refused. The lock ends with the process.
 */
#ifndef HFSAD_NET_STORE_H
#define HFSAD_NET_STORE_H

#include "hfsad/hfsad.h"

#include <stdbool.h>

typedef struct store store;

/* Makes the folder (not its parents) if it is missing; the first commit makes the files. Refused (HFSAD_ERROR_INPUT),
 * and left as it is: a folder of another run or version, one that another process has open, and one of which a file is
 * damaged, missing, another folder's, or older than the other file. */
hfsad_status store_open(store **s, const char *folder, uint64_t run, hfsad_error *err);
/* An entry with this name, if present, describes the run, for a process that opens the folder with another run. */
#define STORE_ABOUT "+about" /* no path of a node */
typedef struct {
    uint64_t run;
    const char *shown; /* the folder that a message names, if this folder is a part of it; NULL: this one */
    const void *context;
    /* Describes the difference from another run in words; false: unknown. NULL: not available. */
    bool (*explain)(const void *context, const void *about, size_t size, char *text, size_t room);
} store_user;
/* user: NULL for a folder of any run. */
hfsad_status store_open_as(store **s, const char *folder, const store_user *user, hfsad_error *err);
/* The folder, for messages; the store's. */
const char *store_folder(store *s);
/* A number that was drawn when the folder was first written, of at most 52 bits; 0: nothing was ever committed. */
uint64_t store_instance(const store *s);
typedef struct {
    uint64_t run;
    uint64_t commits;                  /* so far */
    uint64_t snapshot, log;            /* bytes */
    uint64_t unfinished;               /* bytes of a write that was never finished, behind the log */
    size_t states, rows, lines, heard; /* heard: messages in place of states */
} store_facts;
/* All that the folder has is read. */
hfsad_status store_check(store *s, store_facts *facts, hfsad_error *err);
/* From now on commits are not synced to the disk: they outlast the process however that ends; after a loss of power the
 * folder may be lost. */
void store_relax(store *s);
/* The log's size at which the store is full, in place of one by the size of the snapshot. */
void store_set_room(store *s, uint64_t bytes);
/* What was not committed is lost. NULL is allowed. */
void store_close(store *s);
/* The same; if nothing was ever committed, its files are removed too, so that another run may have the folder. */
void store_discard(store *s);
/* Removes the files of a store that is not open; the folder stays. */
void store_remove(const char *folder);

/* The state that was last committed for the node; *bytes is NULL if there is none; otherwise the caller frees it. A
 * damaged state is an error. */
hfsad_status store_get_state(store *s, const char *name, void **bytes, size_t *size, hfsad_error *err);
/* Calls back with the path of every node that has a state. */
void store_get_names(const store *s, void (*name)(void *context, const char *path), void *context);
/* Calls back for every committed message, in order, with the nodes that processed it after their last state. A status
 * other than 0 from the function ends the loop. */
typedef hfsad_status store_heard(void *context, const void *frame, size_t size, const char *const *names, size_t count,
                                 hfsad_error *err);
hfsad_status store_get_heard(const store *s, store_heard *heard, void *context, hfsad_error *err);
/* Calls row for every row of the trace in the order of their iterations. */
hfsad_status store_get_rows(store *s, void (*row)(void *context, const hfsad_figures *figures), void *context,
                            hfsad_error *err);
/* The same for the lines of the record, in the order in which they were put. */
hfsad_status store_get_record(store *s, void (*line)(void *context, const char *text), void *context, hfsad_error *err);

hfsad_status store_put_state(store *s, const char *name, const void *bytes, size_t size, hfsad_error *err);
/* A second row of an iteration takes the place of the first. */
void store_put_row(store *s, const hfsad_figures *figures);
void store_put_line(store *s, const char *text);
/* A message; *number is good until store_epoch has another value or a commit fails. */
void store_put_frame(store *s, const void *bytes, size_t size, uint32_t *number);
hfsad_status store_put_heard(store *s, const char *name, uint32_t number, hfsad_error *err);
uint64_t store_epoch(const store *s);

/* Whether the next commit should be a whole one: the log with the pending entries has reached its limit. */
bool store_is_full(const store *s);
/* Makes the next commit a whole one. Pending entries stay, except messages: put the states of all nodes that have
 * processed one since their last state. */
hfsad_status store_begin_whole(store *s, hfsad_error *err);
/* Writes everything put since the last commit, synced to the disk. If this or a put fails (HFSAD_ERROR_IO), nothing of
 * it is kept and it must be put again: a full disk may have room later. */
hfsad_status store_commit(store *s, hfsad_error *err);

#endif
