/*
 * The state of reading the files of a federation: one builder, and what all files must agree on. A reader of a format
 * takes the bytes of a file: it calls intake_begin as soon as it knows the number of features, then commits rows to the
 * builder.
 */
#ifndef HFSAD_DATA_INTAKE_H
#define HFSAD_DATA_INTAKE_H

#include "data/builder.h"
#include "data/bytes.h"
#include "data/columns.h"

typedef struct {
    dataset_builder *builder;         /* created by the first file */
    slice path, client;               /* owner of the file's rows; client.text is NULL: each row names its client */
    const char *const *folders;       /* paths of the inner nodes in breadth-first order, if a folder tree has them */
    size_t n_folders;                 /* the first folder is the cloud */
    size_t bytes_before, bytes_after; /* bytes of the files read before, and of the files still to come */
    uint32_t first, first_named;      /* offsets into texts: the first file, and the first file with column names */
    uint32_t *names;                  /* offsets into texts: the names of that file's features */
    size_t n_names, names_capacity;
    text_pool texts;
    table_settings table; /* meaning of the columns */
    table_memory memory;
    struct {
        unsigned rank, count;     /* for ranks that read a part each (part.h); count 0: this process reads everything */
        size_t constants, scores; /* of the model: 1 with an intercept; scores per row */
    } part;
    bool scanning;       /* a scan for what the settings leave to the files; rows are not stored */
    bool guesses, again; /* text columns become categories or labels; one was found, so all files are read again */
    size_t *deck, dealt; /* for rows that are dealt: a round's clients in random order; rows so far */
    char dealt_client[24], dealt_edge[24];
    const char *scratch;      /* folder for a scratch file of dense rows; NULL: in memory */
    bool y_optional;          /* rows to predict: CSV files may all lack y, and may lack clients */
    size_t with_y, without_y; /* number of files so far */
    hfsad_error *err;
} intake;

/* Called first; table may be NULL. */
hfsad_status intake_open(intake *in, const table_settings *table);
/* Ends the scan; the rows are read next. */
hfsad_status intake_scanned(intake *in);
/* Discards what was read, because a column of text was found. */
void intake_restart(intake *in);
/* Replaces y of a file of numbers by the place of its label, if there are labels. */
hfsad_status intake_label(const intake *in, builder_entry *entry);
/* Sets the client and edge of a row by data.split; named: the row names its client. */
hfsad_status intake_deal(intake *in, bool named, builder_entry *entry);
/* Creates the builder for the first file, compares later files with it, and begins the client that owns the file. */
hfsad_status intake_begin(intake *in, const char *file, bool sparse, size_t features);
/* Checks the name of a feature in column `column` (both counted from 0) of a file with a header: it must be the same in
 * all files. */
hfsad_status intake_name(intake *in, const char *file, size_t column, size_t feature, slice name);
/* Notes whether a CSV file has y; all files must agree. */
hfsad_status intake_y(intake *in, const char *file, bool found);
/* Estimates a total from `count` items so far: by the bytes read of this file, the bytes left of it, and the other
 * files. An item has at least `least` bytes. */
size_t intake_guess(const intake *in, size_t count, size_t read, size_t left, size_t least);
/* Reserves room for the rows to come, estimated from the bytes left; a low estimate is corrected when it is reached. */
hfsad_status intake_room(intake *in, size_t read, size_t left, size_t least);
/* Reserves room for the rows of a file of `size` bytes that states their number, and for the files to come. */
hfsad_status intake_expect(intake *in, size_t rows, size_t size);
/* Returns the data set, or NULL if status is not HFSAD_OK. Frees the members of the intake. */
hfsad_status intake_finish(intake *in, hfsad_status status, bool as_rows, dataset **d);

#endif
