/* The inside of a builder, which builder.c fills and layout.c turns into a data set. */
#ifndef HFSAD_DATA_BUILDER_PARTS_H
#define HFSAD_DATA_BUILDER_PARTS_H

#include "data/builder.h"

enum {
    NAME_BYTES = 255,
    PATH_LEVELS = HFSAD_TIERS_MAX - 1, /* levels above a client at the greatest depth */
    PATH_BYTES = PATH_LEVELS * (NAME_BYTES + 1),
    ALIGN = 8, /* doubles in a cache line */
};

/* A client in order of first appearance. */
typedef struct {
    size_t line; /* line of its first row; without a file, the row's number; 0: the whole file belongs to the client */
    double n;    /* |x|^2 of its first row */
    uint32_t name, parent, file;
    uint32_t n_rows;
} leaf_note;

/* An inner node in order of first appearance. Branch 0 is the cloud; as a child or sibling, 0 means none. */
typedef struct {
    size_t line;
    uint32_t file, name, parent, depth;
    uint32_t first_child, last_child, sibling;
    uint32_t n_leaves;
    uint32_t rank; /* its place in breadth-first order */
} branch;

struct dataset_builder {
    size_t M;                  /* sparse: the largest index so far */
    double *rows, *y, *weight; /* weight is NULL while all weights are 1 */
    lent_rows lent;            /* x is NULL: the builder owns the rows */
    double *lent_row;          /* room for one lent row, unless the numbers of a row are contiguous */
    uint32_t *places;          /* NULL: not requested */
    row_pages *pages;          /* NULL: rows are in memory; otherwise `rows` is NULL until all rows are written */
    uint32_t *client_of;       /* each row's client, in the end each row's place */
    size_t n_rows, capacity, doubles;
    bool sparse;
    size_t *start; /* sparse: row r has the entries start[r] to start[r + 1] - 1 of rows and column */
    uint32_t *column;
    size_t n_entries, entries_capacity;
    leaf_note *clients;
    size_t n_clients, clients_capacity;
    branch *branches;
    size_t n_branches, branches_capacity;
    text_pool names, segments, files;
    name_table client_table, branch_table;
    uint32_t last_file; /* cache: consecutive rows often share file and path */
    uint32_t last_branch;
    size_t last_path_length;
    uint32_t last_client;
    bool as_rows, refused;
    uint8_t *held; /* n_clients: whether the client's rows are here (part.h); NULL: all. Other rows are left out */
    bool weighted; /* some rank has weights */
    char last_path[PATH_BYTES];
};

/* Fills d from a builder that has rows and no duplicate names. Memory that d takes no longer belongs to the builder. */
hfsad_status layout_fill(dataset_builder *b, dataset *d, hfsad_error *err);

#endif
