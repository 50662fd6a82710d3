/* What the files of the store share. */
#ifndef HFSAD_NET_STORE_PARTS_H
#define HFSAD_NET_STORE_PARTS_H

#include "net/store.h"
#include "net/store_file.h"

/* Kinds of entries. Names and messages are counted from 0 in a file, in the order of their entries. */
enum {
    ENTRY_RUN,   /* first of a snapshot: number of the run (8), size of a row (8) */
    ENTRY_NAME,  /* text */
    ENTRY_STATE, /* of name `about` */
    ENTRY_ROWS,  /* one hfsad_figures behind another, as the machine has them */
    ENTRY_LINES, /* each with its line's end */
    ENTRY_FRAME,
    ENTRY_HEARD, /* frame `about` by these names, 4 bytes each, little-endian */
};

typedef struct {
    char *text;
    size_t state; /* number of its last entry, SIZE_MAX: none */
} named;

/* What the entries of a file say. */
typedef struct {
    named *names;
    size_t n_names, names_room;     /* with those in hand */
    size_t kept_names, kept_frames; /* that are committed */
    size_t n_frames;
    size_t next_name; /* to look for first: names come in the same order again and again */
    size_t looked;    /* entries that are known here */
    bool heard;       /* messages are in the log or in hand: only the caller can make a whole commit */
    bool was_heard;   /* in the log */
} contents;

struct store {
    store_file f;
    contents now, next; /* next: of the snapshot that is being written */
    uint64_t run, room; /* room: of the log */
    bool own_room;
    bool whole;        /* the next commit */
    uint32_t *hearers; /* in hand, all of one frame, little-endian */
    size_t n_hearers, hearers_room;
    uint32_t hearing; /* that frame */
};

/* Refuses a folder of another run, and names that run. */
hfsad_status store_refuse_run(store *s, const store_user *user, hfsad_error *err);
/* The entries contradict each other. */
hfsad_status store_garbled(const store *s, uint64_t at, hfsad_error *err);
/* SIZE_MAX: it is new. */
size_t store_find_name(contents *c, const char *name);
/* Committed rows by iteration, of several of one iteration the last; free it. */
hfsad_status store_read_rows(const store *s, hfsad_figures **rows, size_t *count, hfsad_error *err);
/* Committed lines, each with its end, and a 0 behind them; free it. */
hfsad_status store_read_lines(const store *s, char **text, size_t *size, hfsad_error *err);

#endif
