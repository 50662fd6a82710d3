/*
 * A tree of nodes and the clients' rows (observations).
 *
 * Inner nodes are in breadth-first order: node 0 is the cloud, the inner children of a node are contiguous. Leaves
 * (clients) are ordered by their parent, within a parent by first appearance, so the leaves of a node are
 * contiguous too; a leaf's place among its siblings is its slot.
 *
 * Layout of one vector per leaf (x, z, q, w), "blocks": the leaves of a parent are cut into blocks of
 * `lanes` leaves (the last one narrower); a block holds element m of all its leaves side by side, then element
 * m + 1. With 8 lanes a vector instruction works on 8 clients at once and a client's sums run over m in the same
 * order on every machine; with 1 lane (large M) a block is a client's plain row. Only the start of each parent's blocks
 * is padded, to a cache line.
 *
 * The rows have one of two layouts. One dense row per client: x in blocks, as above, with y and n = |x|^2. Otherwise (a
 * client with several rows, sparse rows, row weights, an intercept, or on request of the caller): the table `rows`,
 * with lanes = 1 for the clients' vectors.
 */
#ifndef HFSAD_DATA_DATASET_H
#define HFSAD_DATA_DATASET_H

#include "data/columns.h"
#include "data/pages.h"

enum { NO_NODE = 0xffffffff };

typedef struct {
    uint32_t parent; /* NO_NODE for the cloud */
    uint32_t depth;  /* 0 for the cloud */
    uint32_t first_inner, n_inner;
    uint32_t first_leaf, n_leaves;
    size_t base; /* where its leaves' blocks start, in doubles */
    char *name;  /* full: "cloud", "edge1", "region2/edge1" */
} inner_node;

/*
 * Rows in the order of the leaves: leaf j has the rows first[j] to first[j + 1] - 1. Dense: row r is x[r * F] to
 * x[r * F + F - 1]. Sparse: its non-zeros are x[start[r]] to x[start[r + 1] - 1], in the columns column[start[r]] …,
 * which rise. An intercept is one more coordinate of the model, the last, behind a column that is not stored: it is
 * `constant` in every row.
 */
typedef struct {
    size_t F;      /* columns of x */
    size_t *first; /* n_leaves + 1; NULL: the other layout */
    size_t *start; /* n_rows + 1; NULL: dense */
    uint32_t *column;
    double *x;
    bool lent;        /* x is the caller's: nobody writes to it, and it is not freed */
    row_pages *pages; /* of x, dense, which then is on a disk; NULL: in memory */
    double *y;        /* n_rows */
    double *weight;   /* n_rows; NULL: all 1 */
    double constant;  /* 0: no intercept */
} row_table;

/* The rows of one leaf. */
typedef struct {
    size_t count, F;
    const size_t *start; /* NULL: dense; otherwise count + 1 offsets into column and x */
    const uint32_t *column;
    const double *x, *y, *weight;
    row_pages *pages; /* of x; NULL: in memory */
    double constant;
    size_t beyond; /* the intercept is coordinate F + beyond: 0, but for nodes with their own (plan/owners.h) */
} client_rows;

/* The coordinate of the intercept. */
static inline size_t rows_level(const client_rows *rows)
{
    return rows->F + rows->beyond;
}

typedef struct {
    size_t M;       /* numbers of a model: the features, and the intercept if there is one, for each class */
    size_t classes; /* with a score of their own (core/softmax.h); 0: one score */
    size_t n_inner, n_leaves, n_rows;
    uint32_t depth;      /* of the deepest leaf */
    uint32_t lanes;      /* width of a block: tree_lanes(M), or 1 where rows.first is not NULL */
    size_t leaf_doubles; /* length of one vector per leaf for all leaves, with the alignment */
    inner_node *inner;   /* n_inner */
    uint32_t *leaf_name; /* offset into names of each leaf's own name ("client7"), n_leaves */
    char *names;
    double *x; /* leaf_doubles; NULL where rows.first is not, likewise y and n */
    double *y; /* n_leaves */
    double *n; /* n_leaves: |x|^2, summed as dot8 does */
    row_table rows;
    char *feature_names; /* F texts, each closed by a 0, as a CSV file has them; NULL: unknown */
    char *categorical;   /* the table's categories with all levels (columns.h); NULL: none */
    char *labels;        /* of classes, in order, separated by commas; y is the place of one; NULL: y is a number */
    double *means;       /* of the table's features of numbers, in place of missing values; NULL: none are missing */
    size_t n_means;
    uint32_t *order;        /* place of each row of the input among the rows; NULL: not known */
    double *centre, *scale; /* F each: what standardisation took off and divided by, or NULL */
    bool fixed;             /* sums over clients are in fixed point (base/fixed.h) */
    uint8_t *absent;        /* n_leaves: clients whose rows are not asked (run/replay.h); NULL: none */
    uint8_t *later; /* n_leaves: clients that came to the list while the run went on; NULL: none. No plan counts them */
    size_t n_later;
    uint8_t *left;      /* the same of those that are not asked after training */
    uint8_t *held;      /* n_leaves: clients whose rows are in this process (part.h); NULL: all. The rows of others
                           have their places, which nobody reads or writes */
    hfsad_data *lender; /* whose arrays rows.x may be, kept alive; NULL: nobody's */
} dataset;

static inline bool dataset_asks(const dataset *d, size_t leaf)
{
    return !d->absent || !d->absent[leaf];
}
static inline bool dataset_is_later(const dataset *d, size_t leaf)
{
    return d->later && d->later[leaf];
}
/* false: no memory. */
bool dataset_make_later(dataset *d, size_t leaf);
/* Clients of inner node i, links of the tree, and the number of a leaf among the others, without those that came later.
 */
size_t dataset_counted(const dataset *d, size_t i);
size_t dataset_links(const dataset *d);
size_t dataset_number(const dataset *d, size_t leaf);
size_t dataset_leaf(const dataset *d, size_t number); /* the inverse */
static inline bool dataset_holds(const dataset *d, size_t leaf)
{
    return !d->held || d->held[leaf];
}
/* Rows of the clients that are asked. */
size_t dataset_count_rows(const dataset *d);

/* The rows of a leaf; only where d->rows.first is not NULL. */
client_rows dataset_rows(const dataset *d, size_t leaf);
/* The same in either layout; row: room for M numbers. */
client_rows dataset_rows_any(const dataset *d, size_t leaf, double *row);

/* Width of a block for M features. */
uint32_t tree_lanes(size_t M);
/* Leaves per run of core/kernels.h; a multiple of 8. */
size_t run_slots(size_t M);

/* First element and stride between elements of a leaf's vector, relative to the array's start. */
typedef struct {
    size_t first, stride;
} leaf_place;

leaf_place dataset_place(const dataset *d, const inner_node *parent, uint32_t slot);
/* The parent of a leaf, by bisection. */
uint32_t dataset_parent(const dataset *d, size_t leaf);
/* Copies a leaf's vector out of, or into, an array in block layout. */
void dataset_gather(const dataset *d, const double *array, size_t leaf, double *row);
void dataset_scatter(const dataset *d, double *array, size_t leaf, const double *row);
/* "edge1/client7", cut to size; returns the full length. */
size_t dataset_leaf_name(const dataset *d, size_t leaf, char *buffer, size_t size);

/*
 * Building one: add rows in any order, then finish. `path` is the inner node's name ("edge1",
 * "region2/edge1", "" = directly below the cloud). `where` names file and line for messages and may be NULL.
 */
typedef struct dataset_builder dataset_builder;

hfsad_status dataset_builder_create(dataset_builder **b, size_t M, hfsad_error *err);
/* Adds the row (y, x) of a client, with weight 1. */
hfsad_status dataset_builder_add(dataset_builder *b, const char *path, const char *name, double y, const double *x,
                                 const char *file, size_t line, hfsad_error *err);
/* Asks for the table `rows` also where every client has one dense row of weight 1. */
void dataset_builder_use_rows(dataset_builder *b);
/* Builds the tree and moves the rows into blocks or into the table, a client's in order of arrival. Frees the builder,
 * also on failure. */
hfsad_status dataset_builder_finish(dataset_builder *b, dataset **d, hfsad_error *err);
void dataset_builder_free(dataset_builder *b);

void dataset_free(dataset *d);
/* Gives a data set whose x is lent a copy of its own, so that it can be changed. */
hfsad_status dataset_own_rows(dataset *d, hfsad_error *err);

/* Whatever the spec's `data` names: a CSV file, a LIBSVM file, a folder. table: what the columns mean; NULL: nothing is
 * stated. as_rows: always in the table `rows`. */
hfsad_status dataset_read_table(dataset **d, const char *path, const table_settings *table, bool as_rows,
                                hfsad_error *err);
/* The same with nothing stated. */
hfsad_status dataset_read(dataset **d, const char *path, bool as_rows, hfsad_error *err);
/* The rows of the client `name` below `path` ("" : the cloud) in the table `rows`: a file of this client alone (CSV
 * without edge and client, NPY, NPZ, LIBSVM), or, if `path` and `name` are NULL, any input of dataset_read. scratch: a
 * folder on whose disk dense rows are kept (pages.h), or NULL: in memory. */
hfsad_status dataset_read_client(dataset **d, const char *file, const table_settings *table, const char *path,
                                 const char *name, const char *scratch, hfsad_error *err);
/* The same in the table `rows`, for callers that only predict: CSV files may lack the column y; rows.y is then NULL.
 * Rows that name no client belong to the client `rows` below the cloud. */
hfsad_status dataset_read_inputs(dataset **d, const char *path, const table_settings *table, hfsad_error *err);
/* A file with one number per line; `count` numbers are expected. `what` names the setting for messages. */
hfsad_status vector_read(double *values, size_t count, const char *path, const char *what, hfsad_error *err);

#endif
