/*
 * The file `journal` of a state folder: what a process has committed since its states were last written to the base
 * (store.h). Batches stand one behind another, each synced as a whole and with a checksum over all of it; a batch holds
 * entries, each a kind, a number and bytes. The file is taken in large pieces and written from its start again in every
 * epoch, so a commit is one write into room that is there, and one sync; where the file system can do it, past the page
 * cache and in one call. A batch has its sectors to itself: what is committed is never written again.
 *
 * When it is opened, the batches of the epoch in force are read up to the first that is not whole. Behind that stands
 * what a crash has cut off or an earlier epoch has left; where instead a later batch of this epoch stands there,
 * something in between was damaged, and the file is refused. So is one of another base, and one of a later epoch than
 * the base's.
 */
#ifndef HFSAD_NET_JOURNAL_H
#define HFSAD_NET_JOURNAL_H

#include "hfsad/hfsad.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct journal journal;

/* An entry that is in the file. */
typedef struct {
    uint32_t kind, about;
    uint64_t at, size; /* of its bytes */
} journal_mark;

/* Why a file of the state folder cannot be written, by errno, and what to do about it. */
hfsad_status journal_fault(const char *path, int code, hfsad_error *err);

/* owner: a number that only the base and its journal have. In epoch 0, in which nothing is written to it, the file is
 * made, or emptied; later it must be there. */
hfsad_status journal_open(journal **j, const char *folder, uint64_t owner, uint64_t epoch, hfsad_error *err);
void journal_close(journal *j); /* NULL is allowed */
/* No sync any more: it outlasts the process, not a loss of power. */
void journal_relax(journal *j);

/* Into the batch in hand; lack of memory shows at the commit. */
void journal_put(journal *j, uint32_t kind, uint32_t about, const void *bytes, size_t size);
/* An entry in pieces: put it with size 0, then add to it; all but the last of a multiple of 8 bytes. */
void journal_add(journal *j, const void *bytes, size_t size);
bool journal_is_empty(const journal *j); /* nothing is in hand */
/* Bytes that the file will have with the batch in hand. */
uint64_t journal_bytes(const journal *j);
/* The batch in hand, if there is anything in it. On failure it is dropped; the file is as before. */
hfsad_status journal_commit(journal *j, hfsad_error *err);
void journal_drop(journal *j);
/* A new epoch: nothing is in the file or in hand. */
void journal_begin(journal *j, uint64_t epoch);

/* All entries that were committed in this epoch, in order; they last until the next commit. */
const journal_mark *journal_marks(const journal *j, size_t *count);
/* The entry's bytes, and a 0 behind them; free it. */
hfsad_status journal_read(journal *j, const journal_mark *mark, void **bytes, hfsad_error *err);
/* Calls back for every entry in hand. */
void journal_each(const journal *j, void (*entry)(void *context, uint32_t kind, uint32_t about, const void *, size_t),
                  void *context);

#endif
