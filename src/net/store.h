/*
 * What a process of a federation must still know after it was killed: the states of its nodes, the rows of the trace
 * and the record of who took part. Whatever was put since the last commit is there as a whole or not at all.
 *
 * A state folder has one file with a snapshot and the log of what was committed since, and a mark of the last commit
 * (store_file.h). An ordinary commit is a record of the log, one durable write. A whole one is a new snapshot, which
 * takes the file's place.
 *
 * Of a node whose state follows from an earlier one and the messages that it has taken in since, the messages are put
 * in place of states: store_put_frame once, store_put_heard for every node that took it in. The caller makes a whole
 * commit, with the states of all such nodes, when store_is_full says so.
 *
 * The folder is locked while it is open, so a second process is refused, and the lock goes with the process however
 * that ends.
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
/* What was put under this name says, where it is there, what the run is: for who opens the folder with another. */
#define STORE_ABOUT "+about" /* no path of a node */
typedef struct {
    uint64_t run;
    const char *shown; /* the folder that a message names, where this is a part of it; NULL: this one */
    const void *context;
    /* In what that of another run differs, in words; false: it cannot be said. NULL: nobody knows. */
    bool (*explain)(const void *context, const void *about, size_t size, char *text, size_t room);
} store_user;
/* user: NULL for a folder of any run. */
hfsad_status store_open_as(store **s, const char *folder, const store_user *user, hfsad_error *err);
/* The folder, for messages; the store's. */
const char *store_folder(store *s);
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
/* The same; where nothing was ever committed its files are removed too, so that another run may have the folder. */
void store_discard(store *s);
/* Removes the files of a store that nobody has open; the folder stays. */
void store_remove(const char *folder);

/* The state that was last committed for the node; *bytes is NULL where there is none, free it otherwise. Damaged ones
 * are refused. */
hfsad_status store_get_state(store *s, const char *name, void **bytes, size_t *size, hfsad_error *err);
/* Calls back with the path of every node that has a state. */
hfsad_status store_get_names(store *s, void (*name)(void *context, const char *path), void *context, hfsad_error *err);
/* Calls back for every message that was committed, in order, with those who have taken it in since their last state.
 * What the function returns ends it. */
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
hfsad_status store_put_row(store *s, const hfsad_figures *figures, hfsad_error *err);
hfsad_status store_put_line(store *s, const char *text, hfsad_error *err);
/* A message; *number is good until store_epoch has another value or a commit fails. */
void store_put_frame(store *s, const void *bytes, size_t size, uint32_t *number);
hfsad_status store_put_heard(store *s, const char *name, uint32_t number, hfsad_error *err);
uint64_t store_epoch(const store *s);

/* Whether the next commit should be a whole one: the log is, with what is in hand, as large as it may be. */
bool store_is_full(const store *s);
/* Makes the next commit a whole one. What was put and not committed yet stays, but for messages: put the states of all
 * who have taken one in since their last state. */
hfsad_status store_begin_whole(store *s, hfsad_error *err);
/* All that was put since the last commit, synced to the disk. Where this or a put fails (HFSAD_ERROR_IO), none of it is
 * kept and it must be put again: a full disk may have room later. */
hfsad_status store_commit(store *s, hfsad_error *err);

#endif
