/*
 * Builds a tree and its blocks, or its table of rows, from rows in any order.
 *
 * Memory: the features are stored once, as rows in order of arrival, with y and, from the first weight other than 1,
 * the weights. To finish, rows are swapped in place into the order of the leaves. Blocks are then made in place too,
 * from the last to the first: a block starts at or after its rows, because the alignment of earlier parents only shifts
 * it towards the end. The peak is therefore the rows with their y and weights, 1/32 more address space for that
 * alignment (of which pages are taken as needed), 4 bytes of notes for each row, and for each client 32 bytes of notes,
 * 16 to 32 of the table of names, 4 of leaf_name, 8 of n or of rows.first, and the name itself. It is twice the rows
 * while a builder without a known number of rows (dataset_builder_reserve) grows, and if parents have so few leaves
 * that the 1/32 is too little. Sparse rows have 12 bytes for each non-zero and 8 for each row; if they do not arrive in
 * the order of the leaves, first their values and then their columns are copied. Rows that go to a scratch file
 * (pages.h) are swapped there.
 */
#include "base/alloc.h"
#include "base/error.h"
#include "data/builder_parts.h"
#include "math/dot.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FILE_BYTES = 300, /* bytes of a file name in a message */
    NO_FILE = 0xffffffff,
    COUNT_MOST = 0xfffffffe, /* upper limit on rows, on clients, and on inner nodes */
};

/* Upper limit on |y|: the sum of the squares of all y, also with weights, stays finite. */
static const double Y_MOST = 1e150;

/* The index for which same() is true, or NO_NODE. */
static inline uint32_t find_name(const name_table *t, uint32_t hash, const dataset_builder *b, uint32_t parent,
                                 slice name, bool (*same)(const dataset_builder *, uint32_t, uint32_t, slice))
{
    if (!t->slots)
        return NO_NODE;
    const size_t mask = ((size_t)1 << t->bits) - 1;
    for (size_t i = names_start(t, hash); t->slots[i]; i = (i + 1) & mask) {
        const uint32_t index = (uint32_t)t->slots[i] - 1;
        if (t->slots[i] >> 32 == hash && same(b, index, parent, name))
            return index;
    }
    return NO_NODE;
}

static bool same_client(const dataset_builder *b, uint32_t index, uint32_t parent, slice name)
{
    return b->clients[index].parent == parent && texts_same(&b->names, b->clients[index].name, name);
}

static bool same_branch(const dataset_builder *b, uint32_t index, uint32_t parent, slice name)
{
    return b->branches[index].parent == parent && texts_same(&b->segments, b->branches[index].name, name);
}

/* ---- messages ---- */

enum { COLUMN_NONE = COLUMN_FEATURE }; /* the other values are those of column_role */
static const char *const COLUMN_NAMES[] = {"", "edge", "client", "y", "weight"};

/* Sets an error whose text begins with "data.csv:9: column 2 (client): ", "data.npy: row 9: " or "data.npy: ". */
__attribute__((format(printf, 4, 5))) static hfsad_status refuse_entry(const builder_entry *e, int column,
                                                                       hfsad_error *err, const char *format, ...)
{
    const size_t numbers[] = {0, e->edge_column, e->client_column, e->y_column, e->weight_column};
    const size_t number = numbers[column];
    char where[FILE_BYTES + 80] = "", text[sizeof err->message];
    int n = 0;
    if (e->file && e->line == 0)
        n = snprintf(where, sizeof where, "%.*s: ", FILE_BYTES, e->file);
    else if (!e->file && e->array)
        n = snprintf(where, sizeof where, "row %zu: ", e->line);
    else if (e->file)
        n = snprintf(where, sizeof where, e->array ? "%.*s: row %zu: " : "%.*s:%zu: ", FILE_BYTES, e->file, e->line);
    if (number > 0)
        snprintf(where + n, sizeof where - (size_t)n, "column %zu (%s): ", number, COLUMN_NAMES[column]);
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return error_set(err, HFSAD_ERROR_INPUT, "%s%s", where, text);
}

enum { PLACE_SIZE = FILE_BYTES + 32 };

/* The place of a row or client, as seen from the current file: "line 3", "a.csv:3", "a.csv", or "row 3" without a
 * file. */
static const char *place_text(char out[PLACE_SIZE], const dataset_builder *b, uint32_t file, size_t line)
{
    if (file == NO_FILE)
        snprintf(out, PLACE_SIZE, "row %zu", line);
    else if (line == 0)
        snprintf(out, PLACE_SIZE, "%.*s", FILE_BYTES, b->files.text + file);
    else if (file == b->last_file)
        snprintf(out, PLACE_SIZE, "line %zu", line);
    else
        snprintf(out, PLACE_SIZE, "%.*s:%zu", FILE_BYTES, b->files.text + file, line);
    return out;
}

/* "region2/edge1", or "the cloud". */
static const char *branch_text(char out[EXCERPT_SIZE], const dataset_builder *b, uint32_t i)
{
    if (i == 0)
        return "the cloud";
    uint32_t up[PATH_LEVELS] = {i};
    size_t levels = 0, length = 0;
    for (; i != 0; i = b->branches[i].parent)
        up[levels++] = i;
    char path[PATH_BYTES + 1];
    while (levels-- > 0) {
        const char *name = b->segments.text + b->branches[up[levels]].name;
        length += (size_t)snprintf(path + length, sizeof path - length, levels ? "%s/" : "%s", name);
    }
    return excerpt(out, (slice){path, length});
}

/* ---- adding ---- */

static const char *name_problem(slice name)
{
    if (name.length == 0)
        return "is empty";
    if (name.length > NAME_BYTES)
        return "is too long";
    if (name.length == 5 && memcmp(name.text, "cloud", 5) == 0)
        return "is the root's name";
    unsigned char high = 0;
    for (size_t i = 0; i < name.length; i++) {
        const unsigned char c = (unsigned char)name.text[i];
        if (c < 0x20 || c == 0x7f)
            return "holds a control character";
        if (c == ',' || c == '"' || c == '/')
            return c == ',' ? "holds a comma" : c == '"' ? "holds a quote" : "holds a slash";
        high |= c;
    }
    for (size_t i = 0, bytes; high >= 0x80 && i < name.length; i += bytes)
        if (!(bytes = utf8_length(name.text + i, name.length - i)))
            return "is not UTF-8";
    return NULL;
}

static hfsad_status check_name(const builder_entry *e, int column, slice name, hfsad_error *err)
{
    const char *problem = name_problem(name);
    if (!problem)
        return HFSAD_OK;
    char shown[EXCERPT_SIZE];
    const char *kind = column == COLUMN_CLIENT ? "client's" : "edge's";
    if (name.length == 0 && column == COLUMN_CLIENT)
        return refuse_entry(e, column, err, "empty field; expected the client's name");
    if (name.length == 0) {
        excerpt(shown, e->path);
        return refuse_entry(e, column, err,
                            "\"%s\" has an empty name between, before or after slashes; expected a path such as "
                            "edge1 or region2/edge1",
                            shown);
    }
    return refuse_entry(e, column, err,
                        "the %s name \"%s\" %s; expected 1 to %d bytes of UTF-8 without commas, quotes, slashes and "
                        "control characters, and not \"cloud\"",
                        kind, excerpt(shown, name), problem, NAME_BYTES);
}

static hfsad_status add_branch(dataset_builder *b, uint32_t parent, slice name, uint32_t hash, size_t line,
                               uint32_t *index, hfsad_error *err)
{
    if (b->n_branches > COUNT_MOST)
        return error_set(err, HFSAD_ERROR_INPUT, "more than %u inner nodes", COUNT_MOST);
    branch added = {.line = line, .file = b->last_file, .parent = parent, .depth = b->branches[parent].depth + 1};
    hfsad_status status = texts_add(&b->segments, name, &added.name, err);
    if (status)
        return status;
    const size_t need = b->n_branches + 1;
    if (!alloc_grow((void **)&b->branches, &b->branches_capacity, need, sizeof *b->branches))
        return error_memory(err, need * sizeof *b->branches, "inner nodes");
    *index = (uint32_t)b->n_branches;
    status = names_add(&b->branch_table, hash, *index, err);
    if (status)
        return status;
    b->branches[b->n_branches++] = added;
    branch *above = &b->branches[parent];
    if (above->first_child)
        b->branches[above->last_child].sibling = *index;
    else
        above->first_child = *index;
    above->last_child = *index;
    return HFSAD_OK;
}

static size_t line_of(const dataset_builder *b, const builder_entry *e)
{
    return e->file ? e->line : b->n_rows + 1; /* line is 0 if the whole file belongs to one client or edge */
}

/* Finds the inner node at the entry's path; missing nodes on the way are added. */
static hfsad_status find_branch(dataset_builder *b, const builder_entry *e, uint32_t *index, hfsad_error *err)
{
    *index = 0;
    if (e->path.length == 0)
        return HFSAD_OK;
    if (e->path.length == b->last_path_length && memcmp(e->path.text, b->last_path, e->path.length) == 0) {
        *index = b->last_branch;
        return HFSAD_OK;
    }
    uint32_t at = 0;
    size_t start = 0;
    while (start <= e->path.length) {
        const char *slash = memchr(e->path.text + start, '/', e->path.length - start);
        const size_t end = slash ? (size_t)(slash - e->path.text) : e->path.length;
        const slice name = {e->path.text + start, end - start};
        hfsad_status status = check_name(e, COLUMN_EDGE, name, err);
        if (status)
            return status;
        if (b->branches[at].depth == PATH_LEVELS) {
            char shown[EXCERPT_SIZE];
            return refuse_entry(e, COLUMN_EDGE, err, "\"%s\" is too deep; expected at most %d names between slashes",
                                excerpt(shown, e->path), PATH_LEVELS);
        }
        const uint32_t hash = names_hash(at, name);
        uint32_t next = find_name(&b->branch_table, hash, b, at, name, same_branch);
        if (next == NO_NODE) {
            status = add_branch(b, at, name, hash, line_of(b, e), &next, err);
            if (status)
                return status;
        }
        at = next;
        start = end + 1;
    }
    memcpy(b->last_path, e->path.text, e->path.length); /* the path fits, because its names have been checked */
    b->last_path_length = e->path.length;
    b->last_branch = *index = at;
    return HFSAD_OK;
}

/* column: column of each x; NULL if the row has all columns. */
static hfsad_status refuse_numbers(const builder_entry *e, size_t count, const double *x, const uint32_t *column,
                                   hfsad_error *err)
{
    char shown[EXCERPT_SIZE];
    excerpt(shown, e->client);
    if (!isfinite(e->y))
        return refuse_entry(e, COLUMN_Y, err, "y of %s is %g; expected a finite number", shown, e->y);
    if (fabs(e->y) > Y_MOST)
        return refuse_entry(e, COLUMN_Y, err,
                            "y of %s is %g, too large to be squared and added up (at most %g); scale y down", shown,
                            e->y, Y_MOST);
    if (!(e->weight > 0 && isfinite(e->weight)))
        return refuse_entry(e, COLUMN_WEIGHT, err,
                            "the weight of a row of %s is %g; expected a finite number above 0, or remove the row",
                            shown, e->weight);
    for (size_t m = 0; m < count; m++)
        if (!isfinite(x[m]))
            return refuse_entry(e, COLUMN_NONE, err, "feature %zu of %s is %g; expected a finite number",
                                (column ? column[m] : m) + 1, shown, x[m]);
    if (isfinite(dot8(count, x, x)))
        return refuse_entry(e, COLUMN_WEIGHT, err,
                            "the weight of a row of %s is %g, too large for its y and features; scale the weights down",
                            shown, e->weight);
    return refuse_entry(e, COLUMN_NONE, err,
                        "the squares of the features of %s add up to more than a double holds; scale them down", shown);
}

static hfsad_status use_file(dataset_builder *b, const char *file, hfsad_error *err)
{
    if (!file) {
        b->last_file = NO_FILE;
        return HFSAD_OK;
    }
    if (b->last_file != NO_FILE && strcmp(b->files.text + b->last_file, file) == 0)
        return HFSAD_OK;
    return texts_add(&b->files, (slice){file, strlen(file)}, &b->last_file, err);
}

static hfsad_status add_client(dataset_builder *b, slice name, leaf_note added, uint32_t *index, hfsad_error *err)
{
    const size_t need = b->n_clients + 1;
    *index = (uint32_t)b->n_clients;
    hfsad_status status = texts_add(&b->names, name, &added.name, err);
    if (status || (status = names_add(&b->client_table, names_hash(added.parent, name), *index, err)))
        return status;
    if (!alloc_grow((void **)&b->clients, &b->clients_capacity, need, sizeof *b->clients))
        return error_memory(err, need * sizeof *b->clients, "notes on the clients");
    b->clients[b->n_clients++] = added;
    b->branches[added.parent].n_leaves++;
    return HFSAD_OK;
}

/* Finds the entry's client; a new name adds a client. */
static hfsad_status find_client(dataset_builder *b, const builder_entry *e, uint32_t *index, hfsad_error *err)
{
    leaf_note added = {.line = line_of(b, e), .file = b->last_file};
    hfsad_status status = check_name(e, COLUMN_CLIENT, e->client, err);
    if (status || (status = find_branch(b, e, &added.parent, err)))
        return status;
    *index = b->last_client; /* consecutive rows often belong to one client */
    if (b->n_clients == 0 || !same_client(b, *index, added.parent, e->client)) {
        const uint32_t hash = names_hash(added.parent, e->client);
        *index = find_name(&b->client_table, hash, b, added.parent, e->client, same_client);
        if (*index == NO_NODE && (status = add_client(b, e->client, added, index, err)))
            return status;
        b->last_client = *index;
    }
    return HFSAD_OK;
}

/* Weights are stored from the first weight other than 1 on. */
static hfsad_status keep_weight(dataset_builder *b, double weight, hfsad_error *err)
{
    if (!b->weight && weight != 1) {
        b->weight = alloc_raw(b->capacity, sizeof *b->weight);
        if (!b->weight)
            return error_memory(err, b->capacity * sizeof *b->weight, "the rows' weights");
        for (size_t row = 0; row < b->n_rows; row++)
            b->weight[row] = 1;
    }
    if (b->weight)
        b->weight[b->n_rows] = weight;
    return HFSAD_OK;
}

/* Checks and stores the numbers of the next row; first: its first number in rows. */
static const double *row_to_commit(dataset_builder *b, size_t first)
{
    if (!b->lent.x)
        return b->pages ? pages_next(b->pages) : b->rows + first;
    const double *from = b->lent.x + (ptrdiff_t)b->n_rows * b->lent.row_stride;
    if (!b->lent_row)
        return from;
    for (size_t m = 0; m < b->M; m++)
        b->lent_row[m] = from[(ptrdiff_t)m * b->lent.column_stride];
    return b->lent_row;
}

static hfsad_status commit(dataset_builder *b, const builder_entry *e, hfsad_error *err)
{
    assert(b->n_rows < b->capacity);
    const size_t first = b->sparse ? b->start[b->n_rows] : b->n_rows * b->M;
    const size_t count = b->sparse ? b->n_entries - first : b->M;
    const double *x = row_to_commit(b, first), n = dot8(count, x, x);
    hfsad_status status = use_file(b, e->file, err);
    if (status)
        return status;
    if (!(fabs(e->y) <= Y_MOST && e->weight > 0 && e->weight * e->y * e->y <= Y_MOST * Y_MOST) ||
        !isfinite(n + e->weight * n))
        return refuse_numbers(e, count, x, b->sparse ? b->column + first : NULL, err);
    if (b->n_rows >= COUNT_MOST)
        return refuse_entry(e, COLUMN_NONE, err, "more than %u rows", COUNT_MOST);
    uint32_t index = b->last_client;
    if ((!e->begun && (status = find_client(b, e, &index, err))) || (status = keep_weight(b, e->weight, err)))
        return status;
    leaf_note *owner = &b->clients[index];
    if (owner->n_rows++ == 0)
        owner->n = n;
    b->client_of[b->n_rows] = index;
    b->y[b->n_rows++] = e->y;
    if (b->sparse)
        b->start[b->n_rows] = b->n_entries;
    return b->pages ? pages_commit(b->pages, err) : HFSAD_OK;
}

hfsad_status builder_commit(dataset_builder *b, const builder_entry *entry, hfsad_error *err)
{
    const hfsad_status status = commit(b, entry, err);
    b->refused |= status != HFSAD_OK;
    return status;
}

/* A client has at most one file. */
static hfsad_status begin_client_file(dataset_builder *b, const builder_entry *e, hfsad_error *err)
{
    const size_t before = b->n_clients;
    uint32_t index;
    hfsad_status status = use_file(b, e->file, err);
    if (status || (status = find_client(b, e, &index, err)))
        return status;
    if (b->n_clients == before) {
        char shown[EXCERPT_SIZE], there[PLACE_SIZE];
        return refuse_entry(e, COLUMN_NONE, err, "%s already has a file, %s; remove or rename one of them",
                            excerpt(shown, e->client), place_text(there, b, b->clients[index].file, 0));
    }
    return HFSAD_OK;
}

hfsad_status builder_begin(dataset_builder *b, slice path, slice name, const char *file, hfsad_error *err)
{
    const builder_entry entry = {.path = path, .client = name, .file = file};
    const hfsad_status status = begin_client_file(b, &entry, err);
    b->refused |= status != HFSAD_OK;
    return status;
}

hfsad_status builder_meet(dataset_builder *b, slice path, slice name, uint32_t *index, hfsad_error *err)
{
    const builder_entry entry = {.path = path, .client = name};
    const hfsad_status status = find_client(b, &entry, index, err);
    b->refused |= status != HFSAD_OK;
    return status;
}

hfsad_status builder_add_inner(dataset_builder *b, slice path, const char *file, hfsad_error *err)
{
    const builder_entry entry = {.path = path, .file = file};
    uint32_t index;
    hfsad_status status = use_file(b, file, err);
    if (!status)
        status = find_branch(b, &entry, &index, err);
    b->refused |= status != HFSAD_OK;
    return status;
}

void builder_expect(const dataset_builder *b, slice name)
{
    const name_table *t = &b->client_table;
    if (t->slots)
        __builtin_prefetch(&t->slots[names_start(t, names_hash(b->last_branch, name))], 1);
}

bool builder_push(dataset_builder *b, uint32_t column, double value)
{
    assert(b->sparse);
    if (column >= b->M)
        b->M = (size_t)column + 1;
    if (value == 0)
        return true;
    if (b->n_entries == b->entries_capacity)
        return false;
    b->column[b->n_entries] = column;
    b->rows[b->n_entries++] = value;
    return true;
}

size_t builder_entries(const dataset_builder *b)
{
    return b->n_entries;
}

size_t builder_features(const dataset_builder *b)
{
    return b->M;
}

bool builder_is_sparse(const dataset_builder *b)
{
    return b->sparse;
}

size_t builder_rows(const dataset_builder *b)
{
    return b->n_rows;
}

size_t builder_clients(const dataset_builder *b)
{
    return b->n_clients;
}

size_t builder_capacity(const dataset_builder *b)
{
    return b->capacity;
}

bool builder_is_full(const dataset_builder *b)
{
    return b->n_rows == b->capacity;
}

double *builder_next_row(dataset_builder *b)
{
    assert(b->n_rows < b->capacity);
    return b->pages ? pages_next(b->pages) : b->rows + b->n_rows * b->M;
}

/* Moves *array with `used` elements to an allocation of `count` elements. */
static bool enlarge(void *array, size_t used, size_t count, size_t size)
{
    void *old, *larger = alloc_raw(count, size);
    if (!larger)
        return false;
    memcpy(&old, array, sizeof old);
    if (used > 0)
        memcpy(larger, old, used * size);
    free(old);
    memcpy(array, &larger, sizeof larger);
    return true;
}

static hfsad_status reserve_sparse(dataset_builder *b, size_t rows, hfsad_error *err)
{
    size_t bytes;
    if (__builtin_mul_overflow(rows, 3 * sizeof *b->y, &bytes) ||
        !enlarge(&b->start, b->capacity ? b->n_rows + 1 : 0, rows + 1, sizeof *b->start))
        return error_memory(err, rows, "the rows");
    b->start[0] = 0;
    return HFSAD_OK;
}

static hfsad_status reserve_dense(dataset_builder *b, size_t rows, hfsad_error *err)
{
    size_t used, doubles, bytes;
    if (__builtin_mul_overflow(rows, b->M, &used) || __builtin_add_overflow(used, used / 32 + 2 * ALIGN, &doubles) ||
        __builtin_mul_overflow(doubles, sizeof *b->rows, &bytes))
        return error_memory(err, SIZE_MAX, "the rows");
    if (!enlarge(&b->rows, b->n_rows * b->M, doubles, sizeof *b->rows))
        return error_memory(err, bytes, "the rows");
    b->doubles = doubles;
    return HFSAD_OK;
}

hfsad_status dataset_builder_reserve(dataset_builder *b, size_t rows, hfsad_error *err)
{
    if (rows <= b->capacity)
        return HFSAD_OK;
    const hfsad_status status = b->sparse               ? reserve_sparse(b, rows, err)
                                : b->pages || b->lent.x ? HFSAD_OK
                                                        : reserve_dense(b, rows, err);
    if (status)
        return status;
    if (!enlarge(&b->y, b->n_rows, rows, sizeof *b->y) ||
        !enlarge(&b->client_of, b->n_rows, rows, sizeof *b->client_of) ||
        (b->weight && !enlarge(&b->weight, b->n_rows, rows, sizeof *b->weight)))
        return error_memory(err, rows * sizeof *b->y, "the rows");
    b->capacity = rows;
    return HFSAD_OK;
}

hfsad_status builder_reserve_entries(dataset_builder *b, size_t count, hfsad_error *err)
{
    if (count <= b->entries_capacity)
        return HFSAD_OK;
    if (!enlarge(&b->rows, b->n_entries, count, sizeof *b->rows) ||
        !enlarge(&b->column, b->n_entries, count, sizeof *b->column))
        return error_memory(err, count > SIZE_MAX / 16 ? SIZE_MAX : count * 12, "the non-zeros");
    b->entries_capacity = count;
    return HFSAD_OK;
}

static hfsad_status create(dataset_builder **b, size_t M, bool sparse, hfsad_error *err)
{
    *b = NULL;
    dataset_builder *made = alloc_zero(1, sizeof *made);
    if (!made || !alloc_grow((void **)&made->branches, &made->branches_capacity, 1, sizeof *made->branches)) {
        free(made);
        return error_memory(err, sizeof *made, "a data set");
    }
    made->M = M;
    made->sparse = sparse;
    made->last_file = NO_FILE;
    made->branches[0] = (branch){.file = NO_FILE};
    made->n_branches = 1;
    *b = made;
    return HFSAD_OK;
}

hfsad_status dataset_builder_create(dataset_builder **b, size_t M, hfsad_error *err)
{
    *b = NULL;
    if (M == 0)
        return error_set(err, HFSAD_ERROR_INPUT, "no features; expected at least one");
    return create(b, M, false, err);
}

hfsad_status builder_create_sparse(dataset_builder **b, hfsad_error *err)
{
    return create(b, 0, true, err);
}

hfsad_status dataset_builder_add(dataset_builder *b, const char *path, const char *name, double y, const double *x,
                                 const char *file, size_t line, hfsad_error *err)
{
    if (builder_is_full(b)) {
        const hfsad_status status = dataset_builder_reserve(b, b->n_rows + b->n_rows / 2 + 16, err);
        if (status) {
            b->refused = true;
            return status;
        }
    }
    memcpy(builder_next_row(b), x, b->M * sizeof *x);
    const builder_entry entry = {
        .path = {path, strlen(path)}, .client = {name, strlen(name)}, .y = y, .weight = 1, .file = file, .line = line};
    return builder_commit(b, &entry, err);
}

void dataset_builder_use_rows(dataset_builder *b)
{
    b->as_rows = true;
}

hfsad_status builder_use_pages(dataset_builder *b, const char *folder, hfsad_error *err)
{
    assert(b->capacity == 0 && !b->sparse);
    dataset_builder_use_rows(b);
    return pages_create(&b->pages, folder, b->M, err);
}

hfsad_status builder_lend(dataset_builder *b, const lent_rows *lent, size_t rows, hfsad_error *err)
{
    assert(b->capacity == 0 && !b->sparse && !b->pages);
    b->lent = *lent;
    if (lent->column_stride != 1 && !(b->lent_row = alloc_raw(b->M, sizeof *b->lent_row)))
        return error_memory(err, b->M * sizeof *b->lent_row, "a row");
    return dataset_builder_reserve(b, rows, err);
}

uint32_t builder_client(const dataset_builder *b)
{
    return b->last_client;
}

void builder_choose(dataset_builder *b, uint32_t client)
{
    assert(client < b->n_clients);
    b->last_client = client;
}

void builder_widen(dataset_builder *b, size_t features)
{
    assert(b->sparse);
    b->M = features > b->M ? features : b->M;
}

void builder_tell_places(dataset_builder *b, uint32_t *places)
{
    b->places = places;
}

void dataset_builder_free(dataset_builder *b)
{
    if (!b)
        return;
    if (b->pages)
        pages_free(b->pages);
    else
        free(b->rows);
    free(b->lent_row);
    free(b->y);
    free(b->weight);
    free(b->client_of);
    free(b->held);
    free(b->start);
    free(b->column);
    free(b->clients);
    free(b->branches);
    free(b->names.text);
    free(b->segments.text);
    free(b->files.text);
    free(b->client_table.slots);
    free(b->branch_table.slots);
    free(b);
}

/* ---- finishing ---- */

/* Checks that no edge and client share a name, because the output names its rows after nodes. */
static hfsad_status check_clashes(const dataset_builder *b, hfsad_error *err)
{
    for (uint32_t i = 1; i < b->n_branches; i++) {
        const branch *edge = &b->branches[i];
        const char *text = b->segments.text + edge->name;
        const slice name = {text, strlen(text)};
        const uint32_t hash = names_hash(edge->parent, name);
        const uint32_t found = find_name(&b->client_table, hash, b, edge->parent, name, same_client);
        if (found == NO_NODE)
            continue;
        const leaf_note *leaf = &b->clients[found];
        char here[PLACE_SIZE], there[PLACE_SIZE], shown[EXCERPT_SIZE];
        const builder_entry at = {.file = leaf->file == NO_FILE ? NULL : b->files.text + leaf->file,
                                  .line = leaf->line};
        return refuse_entry(&at, COLUMN_NONE, err, "%s is a client (%s) and an edge (%s): rename one of them",
                            branch_text(shown, b, i), place_text(here, b, leaf->file, leaf->line),
                            place_text(there, b, edge->file, edge->line));
    }
    return HFSAD_OK;
}

/* Limits the size of all models, because a sparse file of a few bytes can ask for models of any size. */
static hfsad_status check_size(const dataset_builder *b, hfsad_error *err)
{
    size_t doubles;
    const builder_entry at = {.file = b->last_file == NO_FILE ? NULL : b->files.text + b->last_file};
    if (b->M == 0)
        return refuse_entry(&at, COLUMN_NONE, err, "no features: no row has an index; expected at least one");
    if (__builtin_mul_overflow(b->n_clients + b->n_branches, b->M + ALIGN, &doubles) || doubles > SIZE_MAX / 64)
        return refuse_entry(&at, COLUMN_NONE, err,
                            "%zu clients with models of %zu numbers are too many; check the largest index",
                            b->n_clients, b->M);
    return HFSAD_OK;
}

static hfsad_status finish(dataset_builder *b, dataset **d, hfsad_error *err)
{
    if (b->refused)
        return error_set(err, HFSAD_ERROR_INPUT, "a row was refused");
    if (b->n_rows == 0 && !b->held)
        return error_set(err, HFSAD_ERROR_INPUT, "no rows; expected at least one");
    hfsad_status status = check_size(b, err);
    if (status || (status = check_clashes(b, err)))
        return status;
    free(b->client_table.slots);
    b->client_table.slots = NULL;
    dataset *made = alloc_zero(1, sizeof *made);
    if (!made)
        return error_memory(err, sizeof *made, "a data set");
    status = layout_fill(b, made, err);
    if (status)
        dataset_free(made);
    else
        *d = made;
    return status;
}

hfsad_status dataset_builder_finish(dataset_builder *b, dataset **d, hfsad_error *err)
{
    *d = NULL;
    const hfsad_status status = finish(b, d, err);
    dataset_builder_free(b);
    return status;
}
