/* What the files of the store share. */
#ifndef HFSAD_NET_STORE_PARTS_H
#define HFSAD_NET_STORE_PARTS_H

#include "net/journal.h"
#include "net/store.h"

#include <sqlite3.h>

/* Statements, made once. */
#define STATEMENT_LIST(X)                                                                                              \
    X(BEGIN, "BEGIN IMMEDIATE")                                                                                        \
    X(COMMIT, "COMMIT")                                                                                                \
    X(ROLLBACK, "ROLLBACK")                                                                                            \
    X(GET_STATE, "SELECT state, sum FROM node WHERE name = ?1")                                                        \
    X(PUT_STATE, ("INSERT INTO node (name, state, sum) VALUES (?1, ?2, ?3) "                                           \
                  "ON CONFLICT (name) DO UPDATE SET state = ?2, sum = ?3"))                                            \
    X(DROP_PIECES, "DELETE FROM node WHERE name > ?1 || char(10) AND name < ?1 || char(11)")                           \
    X(GET_ROWS, "SELECT figures, sum FROM trace ORDER BY iteration")                                                   \
    X(PUT_ROW, "INSERT OR REPLACE INTO trace (iteration, figures, sum) VALUES (?1, ?2, ?3)")                           \
    X(GET_RECORD, "SELECT line FROM record ORDER BY number")                                                           \
    X(PUT_LINE, "INSERT INTO record (line) VALUES (?1)")                                                               \
    X(PUT_EPOCH, "UPDATE run SET epoch = epoch + 1")

typedef enum {
#define STATEMENT_ENUM(name, text) DO_##name,
    STATEMENT_LIST(STATEMENT_ENUM)
#undef STATEMENT_ENUM
        STATEMENTS
} statement;

/* Entries of the journal. Names and frames are counted from 0 in every epoch, in the order of their entries. */
enum {
    ENTRY_NAME,  /* text */
    ENTRY_STATE, /* of name `about` */
    ENTRY_ROW,
    ENTRY_LINE,
    ENTRY_FRAME,
    ENTRY_HEARD, /* frame `about` by these names, 4 bytes each, little-endian */
};

typedef struct {
    char *text;
    size_t state; /* number of the mark, SIZE_MAX: none in this epoch */
} named;

struct store {
    sqlite3 *base;
    sqlite3_stmt *made[STATEMENTS];
    bool begun, empty;            /* empty: nothing was ever committed */
    char folder[990], path[1000]; /* path: of the base */
    journal *j;
    uint64_t epoch, room; /* room: of the journal */
    size_t piece;         /* bytes of a state in one row of the base */
    bool own_room;
    bool whole;                     /* the next commit */
    named *names;                   /* of this epoch */
    size_t n_names, names_room;     /* with those in hand */
    size_t kept_names, kept_frames; /* that are in the journal */
    size_t n_frames;
    size_t next_name;  /* to look for first: names come in the same order again and again */
    size_t next_mark;  /* of the journal's that is not known here yet */
    bool heard;        /* messages are in this epoch or in hand: only the caller can make a whole commit */
    bool was_heard;    /* in the journal */
    uint32_t *hearers; /* in hand, all of one frame, little-endian */
    size_t n_hearers, hearers_room;
    uint32_t hearing; /* that frame */
};

/* Refuses a folder of another run, and says whose it is. */
hfsad_status store_refuse_run(store *s, const store_user *user, hfsad_error *err);
hfsad_status store_fault(const store *s, int code, hfsad_error *err);
/* The journal's entries contradict each other. */
hfsad_status store_garbled(const store *s, hfsad_error *err);
/* SQLite does not notice a flipped bit within a row. */
int64_t store_sum(const void *bytes, size_t size);
/* The name under which a piece of a state is in the base: the first one's is the node's, others have their number
 * behind a line's end, which no name has. */
enum { PIECE_NAME_MAX = 1200 };
void store_name_piece(const char *name, size_t piece, char text[PIECE_NAME_MAX]);
/* SIZE_MAX: it is new. */
size_t store_find_name(store *s, const char *name);

#endif
