/*
 * Turns a builder's rows, in order of arrival, into a tree and its blocks or its table of rows. builder.c states how
 * much memory this takes.
 */
#include "base/alloc.h"
#include "base/error.h"
#include "data/builder_parts.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Puts inner nodes in breadth-first order; sets their leaves and the starts of their blocks. */
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

/* Makes the full names, all in one allocation. Parents come first. */
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

/* Names the leaves and sets client_of to the place of each row. first has n_leaves + 1 elements. */
static void place_rows(dataset_builder *b, dataset *d, size_t *first)
{
    for (size_t i = 0; i < b->n_branches; i++)
        b->branches[i].n_leaves = 0;
    for (size_t c = 0; c < b->n_clients; c++) {
        leaf_note *from = &b->clients[c];
        branch *parent = &b->branches[from->parent];
        const uint32_t leaf = d->inner[parent->rank].first_leaf + parent->n_leaves++;
        d->leaf_name[leaf] = from->name;
        if (d->n)
            d->n[leaf] = from->n;
        if (d->held)
            d->held[leaf] = b->held[c];
        first[leaf] = from->n_rows;
        from->name = leaf; /* the builder's notes are no longer needed */
    }
    for (size_t leaf = 0, row = 0; leaf <= d->n_leaves; leaf++) {
        const size_t count = leaf < d->n_leaves ? first[leaf] : 0;
        first[leaf] = row;
        row += count;
    }
    for (size_t row = 0; row < b->n_rows; row++)
        if (b->held && !b->held[b->client_of[row]])
            b->client_of[row] = NO_NODE;
        else
            b->client_of[row] = (uint32_t)first[b->clients[b->client_of[row]].name]++;
    for (size_t c = 0; b->held && c < b->n_clients; c++) /* rows of other ranks' clients have places, too */
        if (!b->held[c])
            first[b->clients[c].name] += b->clients[c].n_rows;
    for (size_t leaf = d->n_leaves; leaf > 0; leaf--) /* each element has advanced to the start of the next leaf */
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

/* Moves row r to place client_of[r]; every swap puts one row into its final place. */
static void order_rows(dataset_builder *b)
{
    uint32_t *place = b->client_of;
    const size_t M = b->sparse || b->lent.x ? 0 : b->M; /* lent rows are copied to their places later */
    for (size_t row = 0; row < b->n_rows; row++)
        while (place[row] != row) {
            const uint32_t to = place[row];
            if (b->pages) {
                pages_visit(b->pages, b->rows + row * M);
                pages_visit(b->pages, b->rows + to * M);
            }
            swap_rows(M, b->rows + row * M, b->rows + to * M);
            swap_rows(1, b->y + row, b->y + to);
            if (b->weight)
                swap_rows(1, b->weight + row, b->weight + to);
            place[row] = place[to];
            place[to] = to;
        }
}

/* Turns rows in the order of the leaves into blocks. x and rows may be the same memory. scratch holds the rows of one
 * block. */
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

/* Copies the elements of every sparse row to the start of its place. */
static bool move_entries(const dataset_builder *b, const size_t *start, void **array, size_t size)
{
    char *moved = alloc_raw(b->n_entries, size);
    if (!moved)
        return false;
    for (size_t row = 0; row < b->n_rows; row++)
        memcpy(moved + start[b->client_of[row]] * size, (char *)*array + b->start[row] * size,
               (b->start[row + 1] - b->start[row]) * size);
    free(*array);
    *array = moved;
    return true;
}

/* Sparse rows differ in length, so rows out of order are copied, not swapped. */
static hfsad_status order_entries(dataset_builder *b, hfsad_error *err)
{
    size_t row = 0;
    while (row < b->n_rows && b->client_of[row] == row)
        row++;
    if (row == b->n_rows)
        return HFSAD_OK;
    size_t *start = alloc_raw(b->n_rows + 1, sizeof *start);
    if (!start)
        return error_memory(err, (b->n_rows + 1) * sizeof *start, "the order of the rows");
    start[0] = 0;
    for (row = 0; row < b->n_rows; row++)
        start[b->client_of[row] + 1] = b->start[row + 1] - b->start[row];
    for (row = 0; row < b->n_rows; row++)
        start[row + 1] += start[row];
    void *x = b->rows, *column = b->column;
    const bool moved =
        move_entries(b, start, &x, sizeof *b->rows) && move_entries(b, start, &column, sizeof *b->column);
    b->rows = x;
    b->column = column;
    free(b->start);
    b->start = start;
    return moved ? HFSAD_OK : error_memory(err, b->n_entries * sizeof *b->rows, "the order of the rows");
}

static bool in_order(const dataset_builder *b)
{
    for (size_t row = 0; row < b->n_rows; row++)
        if (b->client_of[row] != row)
            return false;
    return true;
}

/* The only copy of lent rows, each to its place; no copy if they can stay where they are. */
static hfsad_status take_lent(dataset_builder *b, dataset *d, bool as_rows, hfsad_error *err)
{
    const ptrdiff_t step = b->lent.column_stride;
    if (as_rows && step == 1 && b->lent.row_stride == (ptrdiff_t)b->M && in_order(b)) {
        d->rows.lent = true;
        return HFSAD_OK;
    }
    const size_t doubles = as_rows || d->leaf_doubles < b->n_rows * b->M ? b->n_rows * b->M : d->leaf_doubles;
    b->rows = alloc_raw(doubles, sizeof *b->rows);
    if (!b->rows)
        return error_memory(err, doubles * sizeof *b->rows, "the rows");
    b->doubles = doubles;
    for (size_t row = 0; row < b->n_rows; row++) {
        const double *from = b->lent.x + (ptrdiff_t)row * b->lent.row_stride;
        double *to = b->rows + b->client_of[row] * b->M;
        for (size_t m = 0; m < b->M; m++)
            to[m] = from[(ptrdiff_t)m * step];
    }
    return HFSAD_OK;
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

static void make_table(dataset_builder *b, dataset *d)
{
    row_table *t = &d->rows;
    t->F = b->M;
    t->start = b->start;
    t->column = b->column;
    t->x = t->lent ? (double *)(uintptr_t)b->lent.x : b->rows;
    t->pages = b->pages;
    if (t->pages)
        pages_seal(t->pages);
    b->pages = NULL;
    t->y = b->y;
    t->weight = b->weight;
    b->rows = b->y = b->weight = NULL;
    b->start = NULL;
    b->column = NULL;
}

/* Moves the rows of this rank's clients to the places that they would have among all rows (part.h). */
static hfsad_status spread_rows(const dataset_builder *b, dataset *d, bool as_rows, hfsad_error *err)
{
    const size_t numbers = as_rows ? d->n_rows * b->M : d->leaf_doubles;
    double *x = as_rows ? alloc_raw(numbers, sizeof *x) : alloc_zero(numbers, sizeof *x);
    double *y = alloc_raw(d->n_rows, sizeof *y), *weight = b->weighted ? alloc_raw(d->n_rows, sizeof *weight) : NULL;
    *(as_rows ? &d->rows.x : &d->x) = x;
    *(as_rows ? &d->rows.y : &d->y) = y;
    d->rows.weight = weight;
    d->rows.F = as_rows ? b->M : 0;
    if (!x || !y || (b->weighted && !weight))
        return error_memory(err, numbers * sizeof *x, "the rows");
    for (size_t row = 0; row < b->n_rows; row++) {
        const size_t place = b->client_of[row];
        if (place == NO_NODE)
            continue;
        if (as_rows)
            memcpy(x + place * b->M, b->rows + row * b->M, b->M * sizeof *x);
        else
            dataset_scatter(d, x, place, b->rows + row * b->M);
        y[place] = b->y[row];
        if (weight)
            weight[place] = b->weight ? b->weight[row] : 1;
    }
    if (!as_rows) {
        free(d->rows.first);
        d->rows.first = NULL;
    }
    return HFSAD_OK;
}

static void take_names(dataset_builder *b, dataset *d)
{
    d->names = b->names.text;
    b->names.text = NULL;
    char *names = realloc(d->names, b->names.size); /* releases unused memory from growing */
    if (names)
        d->names = names;
}

static hfsad_status lay_out_rows(dataset_builder *b, dataset *d, uint32_t *order, hfsad_error *err)
{
    size_t rows = b->held ? 0 : b->n_rows;
    for (size_t c = 0; b->held && c < b->n_clients; c++)
        rows += b->clients[c].n_rows;
    if (rows >= NO_NODE)
        return error_set(err, HFSAD_ERROR_INPUT, "more than %u rows", NO_NODE - 1);
    const bool as_rows = b->as_rows || b->sparse || b->weight || b->weighted || rows > b->n_clients;
    d->M = b->M;
    d->n_inner = b->n_branches;
    d->n_leaves = b->n_clients;
    d->n_rows = rows;
    d->held = b->held ? alloc_zero(b->n_clients, 1) : NULL;
    d->lanes = as_rows ? 1 : tree_lanes(b->M);
    d->inner = alloc_zero(d->n_inner, sizeof *d->inner);
    d->n = as_rows ? NULL : alloc_raw(d->n_leaves, sizeof *d->n);
    d->leaf_name = alloc_raw(d->n_leaves, sizeof *d->leaf_name);
    d->rows.first = alloc_raw(d->n_leaves + 1, sizeof *d->rows.first); /* blocks need it during the layout only */
    if (!order || !d->inner || !(d->n || as_rows) || !d->leaf_name || !d->rows.first || (b->held && !d->held))
        return error_memory(err, d->n_inner * sizeof *d->inner + d->n_leaves * 24, "the tree");
    lay_tree(b, d, order);
    hfsad_status status = name_inner(b, d, order, err);
    if (status)
        return status;
    place_rows(b, d, d->rows.first);
    free(b->clients);
    b->clients = NULL;
    take_names(b, d);
    if (b->held)
        return spread_rows(b, d, as_rows, err);
    if ((b->sparse && (status = order_entries(b, err))) || (b->pages && (status = pages_map(b->pages, &b->rows, err))))
        return status;
    if (b->places)
        memcpy(b->places, b->client_of, b->n_rows * sizeof *b->places);
    if (b->lent.x && (status = take_lent(b, d, as_rows, err)))
        return status;
    order_rows(b);
    if (as_rows) {
        make_table(b, d);
        return HFSAD_OK;
    }
    free(d->rows.first);
    d->rows.first = NULL;
    /* cppcheck-suppress memleak; d owns it */
    return make_blocks(b, d, err);
}

hfsad_status layout_fill(dataset_builder *b, dataset *d, hfsad_error *err)
{
    uint32_t *order = alloc_raw(b->n_branches, sizeof *order);
    const hfsad_status status = lay_out_rows(b, d, order, err);
    free(order);
    return status;
}
