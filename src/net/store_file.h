/*
 * The file `state` of a state folder: a snapshot, and behind it the log of what was committed since. See store.h for
 * what the entries mean.
 *
 * A record is what one commit has written. It fills whole sectors of 512 bytes. All numbers are little-endian:
 *
 *      0  letters "hfs", version (1)      4  blanks: sectors of this record that are zero
 *      8  owner: drawn when the folder was first written      16  sequence number of the commit, from 1
 *     24  length of the entries      32  checksum of the record before      36  CRC-32C of the 36 bytes before
 *     40  entries, each: kind (4), about (4), size (8), bytes, zeros up to a multiple of 8
 *         zeros; in the last 4 bytes of the last sector the checksum: the CRC-32C of all that is between the head and
 *         it, then of the head; its last byte has at least two bits set
 *
 * The first record is the snapshot. It is written to `state.new`, synced, and takes the place of `state` by a rename,
 * so it is never unfinished. The others are appended by one durable write each, into space that was zero before.
 *
 * The file `mark` holds owner, sequence number and checksum of the last commit, in two slots written in turn, after
 * the commit is on the disk and without a sync. It is written through a mapping if its file system writes in place. So
 * the log is never behind the mark, whatever ends the process or the machine; if it is, `state` was cut off or is an
 * old copy.
 *
 * Behind the last valid record nothing but an unfinished write is passed over. A write is unfinished if a sector of it
 * was never written: the head is good, and the record ends behind the end of the file, its last byte is zero, or
 * more of its sectors are zero than `blanks` says; or the head was not written as a whole. Nothing may stand behind
 * such a record. Everything else is damage, and the folder is refused.
 */
#ifndef HFSAD_NET_STORE_FILE_H
#define HFSAD_NET_STORE_FILE_H

#include "hfsad/hfsad.h"

#include "base/bits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where an entry is in the file. */
typedef struct {
    uint32_t kind, about;
    uint64_t at, size; /* of its bytes */
} store_entry;

typedef struct {
    store_entry *all;
    size_t count, room;
    size_t kept; /* the first ones, which are committed */
} store_entries;

typedef struct {
    unsigned char *bytes;
    size_t size, room;
} store_buffer;

typedef struct {
    char folder[990];
    int dir, fd, direct, fresh, mark; /* -1: not open. dir: the folder, locked; direct: past the page cache, synced by
                                         every write; fresh: state.new */
    unsigned char *slots;             /* the mark in memory, or NULL */
    bool mapped;                      /* it was tried */
    bool relaxed;                     /* nothing is synced */
    bool renamed;                     /* state.new has become state, and the folder is not synced yet */
    uint64_t owner;
    uint64_t sequence, first;    /* of the last commit, and of the snapshot; 0: nothing was ever committed */
    uint64_t snapshot;           /* bytes of the snapshot's record */
    uint64_t end, taken, dirty;  /* of the last record, of the file, and of what an unfinished write has left */
    uint32_t sum;                /* of the last record */
    store_buffer batch;          /* the current record from its head on; of a snapshot, the unwritten part */
    store_entries entries, next; /* next: of state.new */
    uint64_t written;            /* bytes of state.new, without those in batch */
    uint32_t written_sum;        /* of these, but for the head */
    int trouble;                 /* errno of a put or a read that failed; 0: none */
} store_file;

enum { STORE_SECTOR = 512, STORE_HEAD = 40, STORE_ENTRY_HEAD = 16, STORE_SUM = 4, STORE_MARK = 32, STORE_VERSION = 1 };

/* Bytes of a record whose entries have this length. */
static inline uint64_t store_extent(uint64_t length)
{
    return (STORE_HEAD + length + STORE_SUM + STORE_SECTOR - 1) / STORE_SECTOR * STORE_SECTOR;
}

/* The checksum that is written for a CRC-32C. A flipped bit does not make its last byte zero: only a write that was
 * never finished has that. */
static inline uint32_t store_checksum(uint32_t crc)
{
    return __builtin_popcount(crc >> 24) < 2 ? crc | UINT32_C(0xc0000000) : crc;
}

static inline size_t store_padded(size_t size)
{
    return (size + 7) / 8 * 8;
}

/* The room of a mark in memory. */
enum { STORE_SLOTS = STORE_SECTOR + STORE_MARK };

bool store_entries_add(store_entries *list, uint32_t kind, uint32_t about, uint64_t at, uint64_t size);

/* Opens the folder, which is made if it is missing, and reads it. Writes nothing. On failure, too, close it. */
hfsad_status store_file_open(store_file *f, const char *folder, hfsad_error *err);
void store_file_close(store_file *f);
/* Removes the files; the folder stays. */
void store_file_remove(const char *folder);

/* Adds an entry to the record in hand, of the log or, after store_file_begin, of the snapshot; lack of memory shows at
 * the commit. The bytes may be given in two parts. */
void store_file_put(store_file *f, uint32_t kind, uint32_t about, const void *bytes, size_t size, const void *more,
                    size_t n_more);
bool store_file_is_empty(const store_file *f); /* nothing is in hand */
/* Bytes of the log with the record in hand. */
uint64_t store_file_log_bytes(const store_file *f);
/* The record in hand goes to the log. On failure it is dropped. */
hfsad_status store_file_append(store_file *f, hfsad_error *err);
/* Begins a snapshot; the caller gets the current content and frees it. */
hfsad_status store_file_begin(store_file *f, store_buffer *in_hand, hfsad_error *err);
/* The snapshot takes the place of the file. On failure nothing has changed or, if f->first has, only the sync of the
 * folder is missing: the next commit makes up for it. */
hfsad_status store_file_replace(store_file *f, hfsad_error *err);
void store_file_drop(store_file *f);

/* The bytes of an entry that is committed, and a 0 behind them; free it. */
hfsad_status store_file_read(const store_file *f, const store_entry *e, void **bytes, hfsad_error *err);
/* Why a file cannot be written, by errno, and what to do about it. */
hfsad_status store_file_fault(const store_file *f, const char *name, int code, hfsad_error *err);
/* name and place, what is wrong, and what to do. */
hfsad_status store_file_refuse(const store_file *f, const char *name, uint64_t at, const char *why, hfsad_error *err);

#endif
