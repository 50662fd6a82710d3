/*
 * From rows in any order to a tree and its blocks, or its table of rows.
 *
 * Memory: the features lie once, as rows in order of arrival, beside y and, from the first that is not 1 on, the
 * weights. To finish, rows are swapped into the order of the leaves where they are. Blocks are then made in place too,
 * from the last to the first: a block starts at or after the rows it is made of, by what the alignment of the parents
 * before it has added. So the peak is the rows with their y and weights, 1/32 more address space for that alignment (of
 * which pages are taken as needed), 4 bytes of notes for each row, and for each client 32 bytes of notes, 16 to 32 of
 * the table of names, 4 of leaf_name, 8 of n or of rows.first, and the name itself. It is twice the rows while a
 * builder grows that was not told how many come (dataset_builder_reserve), and where parents have so few leaves that
 * the 1/32 does not do.
 */
#include "model/builder.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/rng.h"
#include "math/dot.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    NAME_BYTES = 255,
    PATH_LEVELS = HFSAD_TIERS_MAX - 1, /* above a client at the greatest depth */
    PATH_BYTES = PATH_LEVELS * (NAME_BYTES + 1),
    FILE_BYTES = 300, /* of a file's name in a message */
    NO_FILE = 0xffffffff,
    COUNT_MOST = 0xfffffffe, /* rows, clients, and inner nodes */
    ALIGN = 8,               /* doubles in a cache line */
};

/* The squares of as many y as there can be still add up to a finite number, also with their weights. */
static const double Y_MOST = 1e150;

/* Texts one after the other, each closed by a 0, named by their offset. */
typedef struct {
    char *text;
    size_t size, capacity;
} text_pool;

/* Open addressing. A slot is a hash's 32 bits and index + 1, or 0; what the index names is the caller's. */
typedef struct {
    uint64_t *slots;
    size_t used;
    unsigned bits; /* 1 << bits slots */
} name_table;

/* A client in order of first appearance. */
typedef struct {
    size_t line; /* of its first row; where there is no file, that row's number */
    double n;    /* |x|^2 of its first row */
    uint32_t name, parent, file;
    uint32_t n_rows;
} client;

/* An inner node in order of first appearance. Branch 0 is the cloud, for which 0 also says "no child", "no sibling". */
typedef struct {
    size_t line;
    uint32_t file, name, parent, depth;
    uint32_t first_child, last_child, sibling;
    uint32_t n_leaves;
    uint32_t rank; /* its place in breadth-first order */
} branch;

struct dataset_builder {
    size_t M;
    double *rows, *y, *weight; /* weight: NULL while all are 1 */
    uint32_t *client_of;       /* each row's client, in the end the row's place */
    size_t n_rows, capacity, doubles;
    client *clients;
    size_t n_clients, clients_capacity;
    branch *branches;
    size_t n_branches, branches_capacity;
    text_pool names, segments, files;
    name_table client_table, branch_table;
    uint32_t last_file; /* files and paths come in runs */
    uint32_t last_branch;
    size_t last_path_length;
    uint32_t last_client;
    bool as_rows, refused;
    char last_path[PATH_BYTES];
};

/* ---- texts ---- */

size_t utf8_length(const char *text, size_t length)
{
    const unsigned char *at = (const unsigned char *)text;
    if (length == 0 || at[0] < 0x80)
        return length > 0;
    const size_t bytes = at[0] >= 0xf0 ? 4 : at[0] >= 0xe0 ? 3 : 2;
    if (at[0] < 0xc2 || at[0] > 0xf4 || bytes > length)
        return 0;
    for (size_t i = 1; i < bytes; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    const bool longer_than_need = (at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xf0 && at[1] < 0x90);
    const bool surrogate = at[0] == 0xed && at[1] >= 0xa0, beyond = at[0] == 0xf4 && at[1] >= 0x90;
    return longer_than_need || surrogate || beyond ? 0 : bytes;
}

/* Bytes of the UTF-8 character at text, 0 where there is none that can be shown. */
static size_t character_length(const char *text, size_t length)
{
    const unsigned char first = (unsigned char)text[0];
    return first < 0x20 || first == 0x7f ? 0 : utf8_length(text, length);
}

const char *excerpt(char out[EXCERPT_SIZE], slice s)
{
    char *to = out;
    size_t i = 0;
    for (size_t shown = 0; i < s.length && shown < EXCERPT_CHARACTERS; shown++) {
        const size_t bytes = character_length(s.text + i, s.length - i);
        if (bytes > 0) {
            memcpy(to, s.text + i, bytes);
            to += bytes;
            i += bytes;
        } else {
            to += snprintf(to, 5, "\\x%02x", (unsigned char)s.text[i]);
            i++;
        }
    }
    memcpy(to, i < s.length ? "..." : "", i < s.length ? 4 : 1);
    return out;
}

static hfsad_status pool_add(text_pool *pool, slice s, uint32_t *offset, hfsad_error *err)
{
    if (s.length >= UINT32_MAX - pool->size)
        return error_set(err, HFSAD_ERROR_INPUT, "names of more than 4 GiB in all; use shorter names");
    if (!alloc_grow((void **)&pool->text, &pool->capacity, pool->size + s.length + 1, 1))
        return error_memory(err, pool->size + s.length + 1, "names");
    *offset = (uint32_t)pool->size;
    memcpy(pool->text + pool->size, s.text, s.length);
    pool->text[pool->size + s.length] = '\0';
    pool->size += s.length + 1;
    return HFSAD_OK;
}

static bool pool_same(const text_pool *pool, uint32_t offset, slice s)
{
    const char *text = pool->text + offset;
    return strncmp(text, s.text, s.length) == 0 && text[s.length] == '\0';
}

/* ---- the table ---- */

static uint32_t hash_of(uint32_t parent, slice s)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325) ^ parent;
    for (size_t i = 0; i < s.length; i++)
        h = (h ^ (unsigned char)s.text[i]) * UINT64_C(0x100000001b3);
    return (uint32_t)(rng_mix(h) >> 32);
}

static size_t table_start(const name_table *t, uint32_t hash)
{
    return (size_t)((hash * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - t->bits));
}

static void table_put(name_table *t, uint64_t slot)
{
    const size_t mask = ((size_t)1 << t->bits) - 1;
    size_t i = table_start(t, (uint32_t)(slot >> 32));
    while (t->slots[i])
        i = (i + 1) & mask;
    t->slots[i] = slot;
}

/* At most half of the slots are used. */
static hfsad_status table_add(name_table *t, uint32_t hash, uint32_t index, hfsad_error *err)
{
    if (!t->slots || (t->used + 1) >> (t->bits - 1)) {
        name_table larger = {.used = t->used, .bits = t->slots ? t->bits + 1 : 6};
        const size_t slots = (size_t)1 << larger.bits;
        larger.slots = alloc_zero(slots, sizeof *larger.slots);
        if (!larger.slots)
            return error_memory(err, slots * sizeof *larger.slots, "the table of names");
        for (size_t i = 0; t->slots && i < (size_t)1 << t->bits; i++)
            if (t->slots[i])
                table_put(&larger, t->slots[i]);
        free(t->slots);
        *t = larger;
    }
    table_put(t, (uint64_t)hash << 32 | ((uint64_t)index + 1));
    t->used++;
    return HFSAD_OK;
}

/* The index for which same() holds, NO_NODE where there is none. */
static inline uint32_t table_find(const name_table *t, uint32_t hash, const dataset_builder *b, uint32_t parent,
                                  slice name, bool (*same)(const dataset_builder *, uint32_t, uint32_t, slice))
{
    if (!t->slots)
        return NO_NODE;
    const size_t mask = ((size_t)1 << t->bits) - 1;
    for (size_t i = table_start(t, hash); t->slots[i]; i = (i + 1) & mask) {
        const uint32_t index = (uint32_t)t->slots[i] - 1;
        if (t->slots[i] >> 32 == hash && same(b, index, parent, name))
            return index;
    }
    return NO_NODE;
}

static bool same_client(const dataset_builder *b, uint32_t index, uint32_t parent, slice name)
{
    (void)parent; /* a client's name stands once in the whole tree */
    return pool_same(&b->names, b->clients[index].name, name);
}

static bool same_branch(const dataset_builder *b, uint32_t index, uint32_t parent, slice name)
{
    return b->branches[index].parent == parent && pool_same(&b->segments, b->branches[index].name, name);
}

/* ---- messages ---- */

enum { COLUMN_NONE, COLUMN_EDGE, COLUMN_CLIENT, COLUMN_Y, COLUMN_WEIGHT };
static const char *const COLUMN_NAMES[] = {"", "edge", "client", "y", "weight"};

/* "data.csv:9: column 2 (client): " and the text. */
__attribute__((format(printf, 4, 5))) static hfsad_status refuse(const builder_entry *e, int column, hfsad_error *err,
                                                                 const char *format, ...)
{
    const size_t numbers[] = {0, e->edge_column, e->client_column, e->y_column, e->weight_column};
    const size_t number = numbers[column];
    char where[FILE_BYTES + 80] = "", text[sizeof err->message];
    int n = 0;
    if (e->file)
        n = snprintf(where, sizeof where, "%.*s:%zu: ", FILE_BYTES, e->file, e->line);
    if (number > 0)
        snprintf(where + n, sizeof where - (size_t)n, "column %zu (%s): ", number, COLUMN_NAMES[column]);
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return error_set(err, HFSAD_ERROR_INPUT, "%s%s", where, text);
}

enum { PLACE_SIZE = FILE_BYTES + 32 };

/* Where a row stands, seen from another: "line 3", "a.csv:3", or "row 3" where no file is known. */
static const char *place_text(char out[PLACE_SIZE], const dataset_builder *b, uint32_t file, size_t line)
{
    if (file == NO_FILE)
        snprintf(out, PLACE_SIZE, "row %zu", line);
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
        return refuse(e, column, err, "empty field; expected the client's name");
    if (name.length == 0) {
        excerpt(shown, e->path);
        return refuse(e, column, err,
                      "\"%s\" has an empty name between, before or after slashes; expected a path such as "
                      "edge1 or region2/edge1",
                      shown);
    }
    return refuse(e, column, err,
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
    hfsad_status status = pool_add(&b->segments, name, &added.name, err);
    if (status)
        return status;
    const size_t need = b->n_branches + 1;
    if (!alloc_grow((void **)&b->branches, &b->branches_capacity, need, sizeof *b->branches))
        return error_memory(err, need * sizeof *b->branches, "inner nodes");
    *index = (uint32_t)b->n_branches;
    status = table_add(&b->branch_table, hash, *index, err);
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
    return e->file ? e->line : b->n_rows + 1;
}

/* The inner node that the entry's path names; nodes on the way are added. */
static hfsad_status find_branch(dataset_builder *b, const builder_entry *e, uint32_t *index, hfsad_error *err)
{
    if (e->path.length == b->last_path_length && memcmp(e->path.text, b->last_path, e->path.length) == 0) {
        *index = b->last_branch;
        return HFSAD_OK;
    }
    uint32_t at = 0;
    size_t start = 0;
    while (start <= e->path.length && e->path.length > 0) {
        const char *slash = memchr(e->path.text + start, '/', e->path.length - start);
        const size_t end = slash ? (size_t)(slash - e->path.text) : e->path.length;
        const slice name = {e->path.text + start, end - start};
        hfsad_status status = check_name(e, COLUMN_EDGE, name, err);
        if (status)
            return status;
        if (b->branches[at].depth == PATH_LEVELS) {
            char shown[EXCERPT_SIZE];
            return refuse(e, COLUMN_EDGE, err, "\"%s\" is too deep; expected at most %d names between slashes",
                          excerpt(shown, e->path), PATH_LEVELS);
        }
        const uint32_t hash = hash_of(at, name);
        uint32_t next = table_find(&b->branch_table, hash, b, at, name, same_branch);
        if (next == NO_NODE) {
            status = add_branch(b, at, name, hash, line_of(b, e), &next, err);
            if (status)
                return status;
        }
        at = next;
        start = end + 1;
    }
    memcpy(b->last_path, e->path.text, e->path.length); /* its names have passed: it fits */
    b->last_path_length = e->path.length;
    b->last_branch = *index = at;
    return HFSAD_OK;
}

static hfsad_status refuse_second_edge(const dataset_builder *b, const builder_entry *e, const client *earlier,
                                       uint32_t parent, hfsad_error *err)
{
    char shown[EXCERPT_SIZE], here[PLACE_SIZE], there[PLACE_SIZE], edge[EXCERPT_SIZE], other[EXCERPT_SIZE];
    return refuse(e, COLUMN_EDGE, err,
                  "%s is below %s (%s) and below %s (%s): a client has one edge; rename one of them",
                  excerpt(shown, e->client), branch_text(other, b, earlier->parent),
                  place_text(there, b, earlier->file, earlier->line), branch_text(edge, b, parent),
                  place_text(here, b, b->last_file, line_of(b, e)));
}

static hfsad_status refuse_numbers(const dataset_builder *b, const builder_entry *e, const double *x, hfsad_error *err)
{
    char shown[EXCERPT_SIZE];
    excerpt(shown, e->client);
    if (!isfinite(e->y))
        return refuse(e, COLUMN_Y, err, "y of %s is %g; expected a finite number", shown, e->y);
    if (fabs(e->y) > Y_MOST)
        return refuse(e, COLUMN_Y, err,
                      "y of %s is %g, too large to be squared and added up (at most %g); scale y down", shown, e->y,
                      Y_MOST);
    if (!(e->weight > 0 && isfinite(e->weight)))
        return refuse(e, COLUMN_WEIGHT, err,
                      "the weight of a row of %s is %g; expected a finite number above 0, or leave the row out", shown,
                      e->weight);
    for (size_t m = 0; m < b->M; m++)
        if (!isfinite(x[m]))
            return refuse(e, COLUMN_NONE, err, "feature %zu of %s is %g; expected a finite number", m + 1, shown, x[m]);
    const double n = dot8(b->M, x, x);
    if (isfinite(n))
        return refuse(e, COLUMN_WEIGHT, err,
                      "the weight of a row of %s is %g, too large for its y and features; scale the weights down",
                      shown, e->weight);
    return refuse(e, COLUMN_NONE, err,
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
    return pool_add(&b->files, (slice){file, strlen(file)}, &b->last_file, err);
}

/* The entry's client, which is added where the name is new. */
static hfsad_status find_client(dataset_builder *b, const builder_entry *e, double n, uint32_t *index, hfsad_error *err)
{
    client added = {.line = line_of(b, e), .n = n, .file = b->last_file};
    hfsad_status status = check_name(e, COLUMN_CLIENT, e->client, err);
    if (status || (status = find_branch(b, e, &added.parent, err)))
        return status;
    *index = b->last_client; /* the rows of a client often come together */
    if (b->n_clients == 0 || !same_client(b, *index, 0, e->client)) {
        const uint32_t hash = hash_of(0, e->client);
        *index = table_find(&b->client_table, hash, b, 0, e->client, same_client);
        if (*index == NO_NODE) {
            const size_t need = b->n_clients + 1;
            *index = (uint32_t)b->n_clients;
            if ((status = pool_add(&b->names, e->client, &added.name, err)) ||
                (status = table_add(&b->client_table, hash, *index, err)))
                return status;
            if (!alloc_grow((void **)&b->clients, &b->clients_capacity, need, sizeof *b->clients))
                return error_memory(err, need * sizeof *b->clients, "notes on the clients");
            b->clients[b->n_clients++] = added;
            b->branches[added.parent].n_leaves++;
        }
        b->last_client = *index;
    }
    if (b->clients[*index].parent != added.parent)
        return refuse_second_edge(b, e, &b->clients[*index], added.parent, err);
    return HFSAD_OK;
}

/* Weights are kept from the first that is not 1 on. */
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

static hfsad_status commit(dataset_builder *b, const builder_entry *e, hfsad_error *err)
{
    assert(b->n_rows < b->capacity);
    const double *x = b->rows + b->n_rows * b->M, n = dot8(b->M, x, x);
    hfsad_status status = use_file(b, e->file, err);
    if (status)
        return status;
    if (!(fabs(e->y) <= Y_MOST && e->weight > 0 && e->weight * e->y * e->y <= Y_MOST * Y_MOST) ||
        !isfinite(n + e->weight * n))
        return refuse_numbers(b, e, x, err);
    if (b->n_rows >= COUNT_MOST)
        return refuse(e, COLUMN_NONE, err, "more than %u rows", COUNT_MOST);
    uint32_t index = 0;
    if ((status = find_client(b, e, n, &index, err)) || (status = keep_weight(b, e->weight, err)))
        return status;
    b->clients[index].n_rows++;
    b->client_of[b->n_rows] = index;
    b->y[b->n_rows++] = e->y;
    return HFSAD_OK;
}

hfsad_status builder_commit(dataset_builder *b, const builder_entry *entry, hfsad_error *err)
{
    const hfsad_status status = commit(b, entry, err);
    b->refused |= status != HFSAD_OK;
    return status;
}

void builder_expect(const dataset_builder *b, slice name)
{
    const name_table *t = &b->client_table;
    if (t->slots)
        __builtin_prefetch(&t->slots[table_start(t, hash_of(0, name))], 1);
}

size_t builder_rows(const dataset_builder *b)
{
    return b->n_rows;
}

bool builder_is_full(const dataset_builder *b)
{
    return b->n_rows == b->capacity;
}

double *builder_next_row(dataset_builder *b)
{
    assert(b->n_rows < b->capacity);
    return b->rows + b->n_rows * b->M;
}

/* *array, of `used` elements, to one of `count`. */
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

hfsad_status dataset_builder_reserve(dataset_builder *b, size_t rows, hfsad_error *err)
{
    if (rows <= b->capacity)
        return HFSAD_OK;
    size_t used, doubles, bytes;
    if (__builtin_mul_overflow(rows, b->M, &used) || __builtin_add_overflow(used, used / 32 + 2 * ALIGN, &doubles) ||
        __builtin_mul_overflow(doubles, sizeof *b->rows, &bytes))
        return error_memory(err, SIZE_MAX, "the rows");
    if (!enlarge(&b->rows, b->n_rows * b->M, doubles, sizeof *b->rows) ||
        !enlarge(&b->y, b->n_rows, rows, sizeof *b->y) ||
        !enlarge(&b->client_of, b->n_rows, rows, sizeof *b->client_of) ||
        (b->weight && !enlarge(&b->weight, b->n_rows, rows, sizeof *b->weight)))
        return error_memory(err, bytes, "the rows");
    b->capacity = rows;
    b->doubles = doubles;
    return HFSAD_OK;
}

hfsad_status dataset_builder_create(dataset_builder **b, size_t M, hfsad_error *err)
{
    *b = NULL;
    if (M == 0)
        return error_set(err, HFSAD_ERROR_INPUT, "no features; expected at least one");
    dataset_builder *made = alloc_zero(1, sizeof *made);
    if (!made || !alloc_grow((void **)&made->branches, &made->branches_capacity, 1, sizeof *made->branches)) {
        free(made);
        return error_memory(err, sizeof *made, "a data set");
    }
    made->M = M;
    made->last_file = NO_FILE;
    made->branches[0] = (branch){.file = NO_FILE};
    made->n_branches = 1;
    *b = made;
    return HFSAD_OK;
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

void dataset_builder_free(dataset_builder *b)
{
    if (!b)
        return;
    free(b->rows);
    free(b->y);
    free(b->weight);
    free(b->client_of);
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

/* Names of nodes are names of rows in the output: an edge and a client must not have the same. */
static hfsad_status check_clashes(const dataset_builder *b, hfsad_error *err)
{
    for (uint32_t i = 1; i < b->n_branches; i++) {
        const branch *edge = &b->branches[i];
        const char *text = b->segments.text + edge->name;
        const slice name = {text, strlen(text)};
        const uint32_t found = table_find(&b->client_table, hash_of(0, name), b, 0, name, same_client);
        if (found == NO_NODE || b->clients[found].parent != edge->parent)
            continue;
        const client *leaf = &b->clients[found];
        char here[PLACE_SIZE], there[PLACE_SIZE], shown[EXCERPT_SIZE];
        const builder_entry at = {.file = leaf->file == NO_FILE ? NULL : b->files.text + leaf->file,
                                  .line = leaf->line};
        return refuse(&at, COLUMN_NONE, err, "%s is a client (%s) and an edge (%s): rename one of them",
                      branch_text(shown, b, i), place_text(here, b, leaf->file, leaf->line),
                      place_text(there, b, edge->file, edge->line));
    }
    return HFSAD_OK;
}

/* Inner nodes in breadth-first order, their leaves and where their blocks start. */
static void lay_tree(dataset_builder *b, dataset *d, uint32_t *order)
{
    size_t tail = 1, end = 0;
    uint32_t leaf = 0;
    order[0] = 0;
    for (uint32_t i = 0; i < d->n_inner; i++) {
        branch *from = &b->branches[order[i]];
        inner_node *node = &d->inner[i];
        from->rank = i;
        node->parent = i > 0 ? b->branches[from->parent].rank : NO_NODE;
        node->depth = from->depth;
        node->first_inner = (uint32_t)tail;
        for (uint32_t child = from->first_child; child; child = b->branches[child].sibling)
            order[tail++] = child;
        node->n_inner = (uint32_t)tail - node->first_inner;
        node->first_leaf = leaf;
        node->n_leaves = from->n_leaves;
        leaf += from->n_leaves;
        node->base = (end + ALIGN - 1) / ALIGN * ALIGN;
        end = node->base + node->n_leaves * d->M;
        if (node->n_leaves > 0 && node->depth + 1 > d->depth)
            d->depth = node->depth + 1;
    }
    d->leaf_doubles = (end + ALIGN - 1) / ALIGN * ALIGN;
}

/* Full names, all in one block. Parents come first. */
static hfsad_status name_inner(const dataset_builder *b, dataset *d, const uint32_t *order, hfsad_error *err)
{
    size_t size = sizeof "cloud";
    for (size_t i = 1; i < d->n_inner; i++)
        for (const branch *at = &b->branches[order[i]]; at->depth > 0; at = &b->branches[at->parent])
            size += strlen(b->segments.text + at->name) + 1;
    char *to = alloc_raw(size, 1);
    if (!to)
        return error_memory(err, size, "names of inner nodes");
    d->inner[0].name = to;
    memcpy(to, "cloud", sizeof "cloud");
    to += sizeof "cloud";
    for (size_t i = 1; i < d->n_inner; i++) {
        const inner_node *parent = &d->inner[d->inner[i].parent];
        d->inner[i].name = to;
        if (parent->depth > 0) {
            const size_t length = strlen(parent->name);
            memcpy(to, parent->name, length);
            to[length] = '/';
            to += length + 1;
        }
        const char *name = b->segments.text + b->branches[order[i]].name;
        const size_t length = strlen(name) + 1;
        memcpy(to, name, length);
        to += length;
    }
    return HFSAD_OK;
}

/* Names the leaves and says in client_of where each row goes. first has n_leaves + 1 elements. */
static void place_rows(dataset_builder *b, dataset *d, size_t *first)
{
    for (size_t i = 0; i < b->n_branches; i++)
        b->branches[i].n_leaves = 0;
    for (size_t c = 0; c < b->n_clients; c++) {
        client *from = &b->clients[c];
        branch *parent = &b->branches[from->parent];
        const uint32_t leaf = d->inner[parent->rank].first_leaf + parent->n_leaves++;
        d->leaf_name[leaf] = from->name;
        if (d->n)
            d->n[leaf] = from->n;
        first[leaf] = from->n_rows;
        from->name = leaf; /* the notes are not needed any more */
    }
    for (size_t leaf = 0, row = 0; leaf <= d->n_leaves; leaf++) {
        const size_t count = leaf < d->n_leaves ? first[leaf] : 0;
        first[leaf] = row;
        row += count;
    }
    for (size_t row = 0; row < b->n_rows; row++)
        b->client_of[row] = (uint32_t)first[b->clients[b->client_of[row]].name]++;
    for (size_t leaf = d->n_leaves; leaf > 0; leaf--) /* each has moved on to where the next began */
        first[leaf] = first[leaf - 1];
    first[0] = 0;
}

static void swap_rows(size_t M, double *restrict a, double *restrict b)
{
    for (size_t m = 0; m < M; m++) {
        const double t = a[m];
        a[m] = b[m];
        b[m] = t;
    }
}

/* Row r to place client_of[r]; every swap brings one row to its place for good. */
static void order_rows(dataset_builder *b)
{
    uint32_t *place = b->client_of;
    for (size_t row = 0; row < b->n_rows; row++)
        while (place[row] != row) {
            const uint32_t to = place[row];
            swap_rows(b->M, b->rows + row * b->M, b->rows + to * b->M);
            swap_rows(1, b->y + row, b->y + to);
            if (b->weight)
                swap_rows(1, b->weight + row, b->weight + to);
            place[row] = place[to];
            place[to] = to;
        }
}

/* Rows in the order of the leaves become blocks. x may be rows. One block's rows fit in scratch. */
static void lay_blocks(const dataset *d, const double *rows, double *x, double *scratch)
{
    size_t next = d->leaf_doubles;
    for (size_t i = d->n_inner; i-- > 0;) {
        const inner_node *node = &d->inner[i];
        const double *from = rows + node->first_leaf * d->M;
        double *to = x + node->base;
        const size_t used = node->n_leaves * d->M;
        memset(to + used, 0, (next - node->base - used) * sizeof *x);
        next = node->base;
        if (d->lanes == 1) {
            memmove(to, from, used * sizeof *x);
            continue;
        }
        const size_t lanes = d->lanes, last = (node->n_leaves + lanes - 1) / lanes * lanes;
        for (size_t leaf = last; leaf > 0; leaf -= lanes) {
            const size_t first = leaf - lanes, rest = node->n_leaves - first, width = rest < lanes ? rest : lanes;
            memcpy(scratch, from + first * d->M, width * d->M * sizeof *x);
            for (size_t m = 0; m < d->M; m++)
                for (size_t l = 0; l < width; l++)
                    to[first * d->M + m * width + l] = scratch[l * d->M + m];
        }
    }
}

static hfsad_status make_blocks(dataset_builder *b, dataset *d, hfsad_error *err)
{
    double *scratch = alloc_raw(d->lanes * d->M, sizeof *scratch);
    double *x = d->leaf_doubles <= b->doubles ? b->rows : alloc_raw(d->leaf_doubles, sizeof *x);
    if (!scratch || !x) {
        free(scratch);
        if (x != b->rows)
            free(x);
        return error_memory(err, d->leaf_doubles * sizeof *x, "the rows");
    }
    lay_blocks(d, b->rows, x, scratch);
    free(scratch);
    if (x != b->rows)
        free(b->rows);
    b->rows = NULL;
    d->x = x;
    d->y = b->y;
    b->y = NULL;
    return HFSAD_OK;
}

static void make_table(dataset_builder *b, dataset *d, size_t *first)
{
    d->rows = (row_table){.F = b->M, .first = first, .x = b->rows, .y = b->y, .weight = b->weight};
    b->rows = b->y = b->weight = NULL;
}

static void take_names(dataset_builder *b, dataset *d)
{
    d->names = b->names.text;
    b->names.text = NULL;
    char *names = realloc(d->names, b->names.size); /* gives back what growing left over */
    if (names)
        d->names = names;
}

static hfsad_status fill(dataset_builder *b, dataset *d, uint32_t *order, size_t *first, hfsad_error *err)
{
    const bool as_rows = b->as_rows || b->weight || b->n_rows > b->n_clients;
    d->M = b->M;
    d->n_inner = b->n_branches;
    d->n_leaves = b->n_clients;
    d->n_rows = b->n_rows;
    d->lanes = as_rows ? 1 : tree_lanes(b->M);
    d->inner = alloc_zero(d->n_inner, sizeof *d->inner);
    d->n = as_rows ? NULL : alloc_raw(d->n_leaves, sizeof *d->n);
    d->leaf_name = alloc_raw(d->n_leaves, sizeof *d->leaf_name);
    hfsad_status status = HFSAD_OK;
    if (!order || !first || !d->inner || !(d->n || as_rows) || !d->leaf_name) {
        status = error_memory(err, d->n_inner * sizeof *d->inner + d->n_leaves * 24, "the tree");
    } else {
        lay_tree(b, d, order);
        status = name_inner(b, d, order, err);
    }
    if (status) {
        free(first);
        return status;
    }
    place_rows(b, d, first);
    free(b->clients);
    b->clients = NULL;
    take_names(b, d);
    order_rows(b);
    if (as_rows) {
        make_table(b, d, first);
        return HFSAD_OK;
    }
    free(first);
    /* cppcheck-suppress memleak; d has it */
    return make_blocks(b, d, err);
}

static hfsad_status finish(dataset_builder *b, dataset **d, hfsad_error *err)
{
    if (b->refused)
        return error_set(err, HFSAD_ERROR_INPUT, "a row was refused");
    if (b->n_rows == 0)
        return error_set(err, HFSAD_ERROR_INPUT, "no rows; expected at least one");
    hfsad_status status = check_clashes(b, err);
    if (status)
        return status;
    free(b->client_table.slots);
    b->client_table.slots = NULL;
    dataset *made = alloc_zero(1, sizeof *made);
    if (!made)
        return error_memory(err, sizeof *made, "a data set");
    uint32_t *order = alloc_raw(b->n_branches, sizeof *order);
    status = fill(b, made, order, alloc_raw(b->n_clients + 1, sizeof(size_t)), err);
    free(order);
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
