/*
 * A tree of nodes and the clients' rows (observations).
 *
 * Inner nodes are in breadth-first order: node 0 is the cloud, the inner children of a node are contiguous. Leaves
 * (clients) are ordered by their parent, within a parent by first appearance, so the leaves of a node are
 * contiguous too; a leaf's place among its siblings is its slot.
 *
 * Layout of one vector per leaf (x, z, q, w), "blocks": the leaves of a parent are cut into blocks of `lanes` leaves;
 * the last block may be narrower. A block holds element m of all its leaves side by side, then element m + 1. With 8
 * lanes a vector instruction works on 8 clients at once, and a client's sums run over m in the same order on every
 * machine. With 1 lane (large M) a block is a client's plain row. Only the start of each parent's blocks is padded, to
 * a cache line.
 *
 * The rows have one of two layouts. One dense row per client: x in blocks, as above, with y and n = |x|^2. Otherwise
 * the table `rows`, with lanes = 1 for the clients' vectors: if a client has several rows, rows are sparse or have
 * weights, there is an intercept, or the caller requests it.
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
    size_t base; /* offset of its leaves' blocks, in doubles */
    char *name;  /* full name: "cloud", "edge1", "region2/edge1" */
} inner_node;

/*
 * Rows in the order of the leaves: leaf j has the rows first[j] to first[j + 1] - 1. Dense: row r is x[r * F] to x[r *
 * F + F - 1]. Sparse: its non-zeros are x[start[r]] to x[start[r + 1] - 1], in the increasing columns column[start[r]]
 * …. An intercept is one more coordinate of the model, the last one. Its column is not stored: it is `constant` in
 * every row.
 */
typedef struct {
    size_t F;      /* columns of x */
    size_t *first; /* n_leaves + 1; NULL: layout in blocks */
    size_t *start; /* n_rows + 1; NULL: dense */
    uint32_t *column;
    double *x;
    bool lent;        /* the caller owns x: it is neither written nor freed */
    row_pages *pages; /* if dense x is on a disk; NULL: x is in memory */
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
    row_pages *pages; /* if x is on a disk; NULL: x is in memory */
    double constant;
    size_t beyond; /* the intercept is coordinate F + beyond; not 0 only for nodes with their own (plan/owners.h) */
} client_rows;

/* The coordinate of the intercept. */
static inline size_t rows_level(const client_rows *rows)
{
    return rows->F + rows->beyond;
}

typedef struct {
    size_t M;       /* numbers of a model: features and, if there is one, the intercept, times the classes */
    size_t classes; /* classes with a score each (core/softmax.h); 0: one score */
    size_t n_inner, n_leaves, n_rows;
    uint32_t depth;      /* depth of the deepest leaf */
    uint32_t lanes;      /* width of a block: tree_lanes(M), or 1 if rows.first is not NULL */
    size_t leaf_doubles; /* length of an array with one vector per leaf, alignment included */
    inner_node *inner;   /* n_inner */
    uint32_t *leaf_name; /* n_leaves: offset into names of each leaf's last name ("client7") */
    char *names;
    double *x; /* leaf_doubles; x, y and n are NULL if rows.first is not */
    double *y; /* n_leaves */
    double *n; /* n_leaves: |x|^2, summed by dot8 */
    row_table rows;
    char *feature_names; /* F texts, each with a terminating 0, as in a CSV file; NULL: unknown */
    char *categorical;   /* categories of the table with all levels (columns.h); NULL: none */
    char *labels;        /* classes in order, separated by commas; y is the place of one; NULL: y is a number */
    double *means;       /* of the numeric features, replacing missing values; NULL: no value is missing */
    size_t n_means;
    uint32_t *order;        /* place of each input row among the rows; NULL: unknown */
    double *centre, *scale; /* F each: standardisation subtracted centre and divided by scale; or NULL */
    bool fixed;             /* sums over clients are in fixed point (base/fixed.h) */
    uint8_t *absent;        /* n_leaves: clients whose rows are not used (run/replay.h); NULL: none */
    uint8_t *later;         /* n_leaves: clients that joined during the run; NULL: none. No plan counts them */
    size_t n_later;
    uint8_t *left; /* n_leaves: clients that are not asked after training; NULL: none */
    uint8_t *held; /* n_leaves: clients whose rows are here (part.h); NULL: all. Places of other rows stay untouched */
    hfsad_data *lender;          /* owner of the arrays that rows.x may use, kept alive; NULL: none */
    struct generated *generated; /* what x is drawn from (generated.h); NULL: x is there */
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
/* Clients of inner node i, links of the tree, and the number of a leaf among the leaves; clients that joined later do
 * not count. */
size_t dataset_counted(const dataset *d, size_t i);
size_t dataset_links(const dataset *d);
size_t dataset_number(const dataset *d, size_t leaf);
size_t dataset_leaf(const dataset *d, size_t number); /* the inverse */
static inline bool dataset_holds(const dataset *d, size_t leaf)
{
    return !d->held || d->held[leaf];
}
/* Number of rows of the clients that are asked. */
size_t dataset_count_rows(const dataset *d);

/* The rows of a leaf; d->rows.first must not be NULL. */
client_rows dataset_rows(const dataset *d, size_t leaf);
/* The same for either layout; row: room for M numbers. */
client_rows dataset_rows_any(const dataset *d, size_t leaf, double *row);

/* x, drawn if it is not there yet; not while several threads work. */
const double *dataset_x(const dataset *d);

/* Width of a block for M features. */
uint32_t tree_lanes(size_t M);
/* Leaves per run (core/kernels.h); a multiple of 8. */
size_t run_slots(size_t M);

/* Offset of the first element of a leaf's vector in an array, and the stride between its elements. */
typedef struct {
    size_t first, stride;
} leaf_place;

leaf_place dataset_place(const dataset *d, const inner_node *parent, uint32_t slot);
/* The parent of a leaf, found by bisection. */
uint32_t dataset_parent(const dataset *d, size_t leaf);
/* Copies a leaf's vector from or to an array in block layout. */
void dataset_gather(const dataset *d, const double *array, size_t leaf, double *row);
void dataset_scatter(const dataset *d, double *array, size_t leaf, const double *row);
/* Writes "edge1/client7", truncated to size; returns the full length. */
size_t dataset_leaf_name(const dataset *d, size_t leaf, char *buffer, size_t size);

/*
 * Building a data set: add rows in any order, then finish. `path` is the inner node's name ("edge1", "region2/edge1",
 * "" for the cloud). `where` names file and line for messages and may be NULL.
 */
typedef struct dataset_builder dataset_builder;

hfsad_status dataset_builder_create(dataset_builder **b, size_t M, hfsad_error *err);
/* Adds the row (y, x) of a client, with weight 1. */
hfsad_status dataset_builder_add(dataset_builder *b, const char *path, const char *name, double y, const double *x,
                                 const char *file, size_t line, hfsad_error *err);
/* Requests the table `rows` even if every client has one dense row of weight 1. */
void dataset_builder_use_rows(dataset_builder *b);
/* Builds the tree and moves the rows into blocks or into the table, a client's rows in order of arrival. Frees the
 * builder, also on failure. */
hfsad_status dataset_builder_finish(dataset_builder *b, dataset **d, hfsad_error *err);
void dataset_builder_free(dataset_builder *b);

void dataset_free(dataset *d);
/* Replaces a lent x by a copy, so that it can be changed. */
hfsad_status dataset_own_rows(dataset *d, hfsad_error *err);

/* Reads the input that the spec's `data` names: a CSV file, a LIBSVM file, a folder. table: meaning of the columns;
 * NULL: defaults. as_rows: always in the table `rows`. */
hfsad_status dataset_read_table(dataset **d, const char *path, const table_settings *table, bool as_rows,
                                hfsad_error *err);
/* The same with default columns. */
hfsad_status dataset_read(dataset **d, const char *path, bool as_rows, hfsad_error *err);
/* Reads the rows of the client `name` below `path` ("": the cloud) into the table `rows`, from a file of this client
 * alone (CSV without edge and client, NPY, NPZ, LIBSVM); if `path` and `name` are NULL, from any input of dataset_read.
 * scratch: folder on whose disk dense rows are kept (pages.h); NULL: in memory. */
hfsad_status dataset_read_client(dataset **d, const char *file, const table_settings *table, const char *path,
                                 const char *name, const char *scratch, hfsad_error *err);
/* The same into the table `rows`, for callers that only predict: CSV files may lack the column y; rows.y is then NULL.
 * Rows that name no client belong to the client `rows` below the cloud. */
hfsad_status dataset_read_inputs(dataset **d, const char *path, const table_settings *table, hfsad_error *err);
/* Reads a file with one number per line; `count` numbers are expected. `what` names the setting for messages. */
hfsad_status vector_read(double *values, size_t count, const char *path, const char *what, hfsad_error *err);

#endif
