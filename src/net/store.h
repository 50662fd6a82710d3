/*
 * What a process of a federation must still know after it was killed: the states of its nodes, the rows of the trace
 * and the record of who took part. One SQLite database in the state folder, in WAL mode, synced at every commit;
 * whatever was put since the last commit is there as a whole or not at all. The database is locked while it is open, so
 * a second process is refused, and the lock goes with the process however that ends.
 */
#ifndef HFSAD_NET_STORE_H
#define HFSAD_NET_STORE_H

#include "hfsad/hfsad.h"

typedef struct store store;

/* Makes the folder (not its parents) and the database where they are missing. Refused (HFSAD_ERROR_INPUT): a folder of
 * another run, a database that is not ours or damaged, one that another process has open. */
hfsad_status store_open(store **s, const char *folder, uint64_t run, hfsad_error *err);
/* From now on commits are not synced to the disk: they outlast the process however that
 * ends; after a loss of power the folder may be lost. */
hfsad_status store_relax(store *s, hfsad_error *err);
/* What was not committed is lost. NULL is allowed. */
void store_close(store *s);
/* The same; where nothing was ever committed its files are removed too, so that another run may have the folder. */
void store_discard(store *s);

/* The state that was last committed for the node; *bytes is NULL where there is none, free it otherwise. Damaged ones
 * are refused. */
hfsad_status store_get_state(store *s, const char *name, void **bytes, size_t *size, hfsad_error *err);
/* Calls row for every row of the trace in the order of their iterations. */
hfsad_status store_get_rows(store *s, void (*row)(void *context, const hfsad_figures *figures), void *context,
                            hfsad_error *err);
/* The same for the lines of the record, in the order in which they were put. */
hfsad_status store_get_record(store *s, void (*line)(void *context, const char *text), void *context, hfsad_error *err);

hfsad_status store_put_state(store *s, const char *name, const void *bytes, size_t size, hfsad_error *err);
/* A second row of an iteration takes the place of the first. */
hfsad_status store_put_row(store *s, const hfsad_figures *figures, hfsad_error *err);
hfsad_status store_put_line(store *s, const char *text, hfsad_error *err);
/* All that was put since the last commit, synced to the disk. Where this or a put fails (HFSAD_ERROR_IO), none of it is
 * kept and it must be put again: a full disk may have room later. */
hfsad_status store_commit(store *s, hfsad_error *err);

#endif
