/*
 * What the files of a federation are read into: one builder, and what the files must agree in. A reader of a format
 * takes a file's bytes: it calls intake_begin once it knows the number of features, then commits rows to the builder.
 */
#ifndef HFSAD_DATA_INTAKE_H
#define HFSAD_DATA_INTAKE_H

#include "data/builder.h"
#include "data/bytes.h"
#include "data/columns.h"

typedef struct {
    dataset_builder *builder;   /* made by the first file */
    slice path, client;         /* whose rows the file holds; client.text is NULL: each row says it */
    const char *const *folders; /* paths of the inner nodes in breadth-first order, where a folder tree has them */
    size_t n_folders;           /* the first is the cloud */
    size_t bytes_before, bytes_after; /* in the files read before, and in those still to come */
    uint32_t first, first_named;      /* in texts: the first file of all, and the first with names of columns */
    uint32_t *names;                  /* in texts: the features' names there */
    size_t n_names, names_capacity;
    text_pool texts;
    table_settings table; /* what the columns mean */
    table_memory memory;
    struct {
        unsigned rank, count;     /* of the ranks that read a part each (part.h); count 0: all is read */
        size_t constants, scores; /* of the model: 1 with an intercept; scores of each row */
    } part;
    bool scanning;       /* the files are read for what the settings leave to them; rows are not kept */
    bool guesses, again; /* columns of text become categories, or labels; one was found, so all is read again */
    size_t *deck, dealt; /* of rows that are dealt: the clients of a round in random order, rows so far */
    char dealt_client[24], dealt_edge[24];
    const char *scratch;      /* folder for dense rows; NULL: in memory */
    bool y_optional;          /* rows to predict: CSV files may be without y, all of them, and without clients */
    size_t with_y, without_y; /* files so far */
    hfsad_error *err;
} intake;

/* First of all; table may be NULL. */
hfsad_status intake_open(intake *in, const table_settings *table);
/* The files were scanned: their rows are read next. */
hfsad_status intake_scanned(intake *in);
/* A column of text was found: forgets what was read. */
void intake_restart(intake *in);
/* y of a file of numbers becomes the place of its label, if there are labels. */
hfsad_status intake_label(const intake *in, builder_entry *entry);
/* The client of a row, and its edge, by data.split; named: the row names its client. */
hfsad_status intake_deal(intake *in, bool named, builder_entry *entry);
/* Makes the builder for the first file, holds the others against it, begins the client whose file it is. */
hfsad_status intake_begin(intake *in, const char *file, bool sparse, size_t features);
/* The name of a feature in column `column` (both counted from 0) of a file with a header: the same in all files. */
hfsad_status intake_name(intake *in, const char *file, size_t column, size_t feature, slice name);
/* Notes whether a CSV file has y; all of them must be alike. */
hfsad_status intake_y(intake *in, const char *file, bool found);
/* How many there will be in all where `count` came so far: by the bytes read of this file, those left of it and the
 * other files; one has at least `least` bytes. */
size_t intake_guess(const intake *in, size_t count, size_t read, size_t left, size_t least);
/* Room for the rows to come, as many as the bytes left say; a guess that is too small is corrected when it is met. */
hfsad_status intake_room(intake *in, size_t read, size_t left, size_t least);
/* Room for the rows of a file of `size` bytes that says how many it has, and for those to come. */
hfsad_status intake_expect(intake *in, size_t rows, size_t size);
/* The data set, or NULL if status is not HFSAD_OK. Frees what the intake holds. */
hfsad_status intake_finish(intake *in, hfsad_status status, bool as_rows, dataset **d);

#endif
