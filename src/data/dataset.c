/* A tree and the clients' rows: the place of a leaf's vector in an array, and the names of leaves. See dataset.h. */
#include "data/dataset.h"

#include "base/alloc.h"
#include "base/error.h"
#include "data/generated.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Above this limit, a block of 8 leaves (8 M doubles of each vector) does not fit in the first-level cache, and rows
 * are long enough for vector instructions along them. */
enum { LANES = 8, LANES_MOST_FEATURES = 512 };

size_t run_slots(size_t M)
{
    size_t slots = 1024;
    while (slots > 64 && slots * M > 32768)
        slots /= 2;
    const size_t least = (M / 4 + 7) / 8 * 8;
    return slots > least ? slots : least;
}

uint32_t tree_lanes(size_t M)
{
    return M <= LANES_MOST_FEATURES ? LANES : 1;
}

leaf_place dataset_place(const dataset *d, const inner_node *parent, uint32_t slot)
{
    const uint32_t lane = slot % d->lanes, block = slot - lane, rest = parent->n_leaves - block;
    return (leaf_place){
        .first = parent->base + block * d->M + lane,
        .stride = rest < d->lanes ? rest : d->lanes,
    };
}

uint32_t dataset_parent(const dataset *d, size_t leaf)
{
    assert(leaf < d->n_leaves);
    /* The last node whose leaves begin at or before this leaf; a node without leaves begins where the next node
     * begins. */
    size_t low = 0, high = d->n_inner;
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (d->inner[middle].first_leaf <= leaf)
            low = middle;
        else
            high = middle;
    }
    return (uint32_t)low;
}

static leaf_place leaf_place_of(const dataset *d, size_t leaf)
{
    const inner_node *parent = &d->inner[dataset_parent(d, leaf)];
    return dataset_place(d, parent, (uint32_t)(leaf - parent->first_leaf));
}

void dataset_gather(const dataset *d, const double *array, size_t leaf, double *row)
{
    const leaf_place place = leaf_place_of(d, leaf);
    for (size_t m = 0; m < d->M; m++)
        row[m] = array[place.first + m * place.stride];
}

void dataset_scatter(const dataset *d, double *array, size_t leaf, const double *row)
{
    const leaf_place place = leaf_place_of(d, leaf);
    for (size_t m = 0; m < d->M; m++)
        array[place.first + m * place.stride] = row[m];
}

size_t dataset_leaf_name(const dataset *d, size_t leaf, char *buffer, size_t size)
{
    const uint32_t parent = dataset_parent(d, leaf);
    const char *const parts[] = {parent ? d->inner[parent].name : "", parent ? "/" : "", d->names + d->leaf_name[leaf]};
    size_t length = 0;
    for (size_t i = 0; i < 3; i++) {
        const size_t part = strlen(parts[i]);
        if (length < size)
            memcpy(buffer + length, parts[i], part < size - length ? part : size - length);
        length += part;
    }
    if (size > 0)
        buffer[length < size ? length : size - 1] = '\0';
    return length;
}

client_rows dataset_rows(const dataset *d, size_t leaf)
{
    const row_table *t = &d->rows;
    assert(t->first && leaf < d->n_leaves);
    const size_t first = t->first[leaf];
    return (client_rows){
        .count = t->first[leaf + 1] - first,
        .F = t->F,
        .start = t->start ? t->start + first : NULL,
        .column = t->column,
        .x = t->start ? t->x : t->x + first * t->F,
        .y = t->y ? t->y + first : NULL,
        .weight = t->weight ? t->weight + first : NULL,
        .pages = t->pages,
        .constant = t->constant,
    };
}

const double *dataset_x(const dataset *d)
{
    if (d->generated)
        generated_draw(d->generated, d);
    return d->x;
}

client_rows dataset_rows_any(const dataset *d, size_t leaf, double *row)
{
    if (d->rows.first)
        return dataset_rows(d, leaf);
    if (d->generated && !generated_is_drawn(d->generated))
        generated_row_of(d->generated, leaf, row);
    else
        dataset_gather(d, d->x, leaf, row);
    return (client_rows){.count = 1, .F = d->M, .x = row, .y = d->y + leaf};
}

hfsad_status dataset_own_rows(dataset *d, hfsad_error *err)
{
    row_table *t = &d->rows;
    if (!t->lent)
        return HFSAD_OK;
    const size_t count = d->n_rows * t->F;
    double *x = alloc_raw(count, sizeof *x);
    if (!x)
        return error_memory(err, count * sizeof *x, "a copy of the rows");
    memcpy(x, t->x, count * sizeof *x);
    t->x = x;
    t->lent = false;
    hfsad_data_free(d->lender);
    d->lender = NULL;
    return HFSAD_OK;
}

size_t dataset_count_rows(const dataset *d)
{
    size_t rows = d->n_rows;
    for (size_t leaf = 0; leaf < d->n_leaves; leaf++)
        if (!dataset_asks(d, leaf))
            rows -= d->rows.first ? d->rows.first[leaf + 1] - d->rows.first[leaf] : 1;
    return rows;
}

bool dataset_make_later(dataset *d, size_t leaf)
{
    if (!d->later && !(d->later = alloc_zero(d->n_leaves, sizeof *d->later)))
        return false;
    d->n_later += !d->later[leaf];
    d->later[leaf] = 1;
    return true;
}

static size_t later_between(const dataset *d, size_t first, size_t end)
{
    size_t later = 0;
    for (size_t leaf = first; d->later && leaf < end; leaf++)
        later += d->later[leaf];
    return later;
}

size_t dataset_counted(const dataset *d, size_t i)
{
    const inner_node *node = &d->inner[i];
    return node->n_leaves - later_between(d, node->first_leaf, (size_t)node->first_leaf + node->n_leaves);
}

size_t dataset_links(const dataset *d)
{
    return d->n_inner + d->n_leaves - d->n_later - 1;
}

size_t dataset_number(const dataset *d, size_t leaf)
{
    return leaf - later_between(d, 0, leaf);
}

size_t dataset_leaf(const dataset *d, size_t number)
{
    size_t leaf = number;
    if (!d->later)
        return leaf;
    for (leaf = 0; d->later[leaf] || number > 0; leaf++)
        number -= !d->later[leaf];
    return leaf;
}

void dataset_free(dataset *d)
{
    if (!d)
        return;
    free(d->later);
    free(d->absent);
    free(d->left);
    free(d->held);
    if (d->inner)
        free(d->inner[0].name); /* one block holds the names of all inner nodes */
    free(d->inner);
    free(d->leaf_name);
    free(d->names);
    free(d->x);
    generated_free(d->generated);
    free(d->y);
    free(d->n);
    free(d->rows.first);
    free(d->rows.start);
    free(d->rows.column);
    if (d->rows.pages)
        pages_free(d->rows.pages);
    else if (!d->rows.lent)
        free(d->rows.x);
    free(d->rows.y);
    free(d->rows.weight);
    free(d->feature_names);
    free(d->categorical);
    free(d->labels);
    free(d->means);
    free(d->order);
    free(d->centre);
    free(d->scale);
    hfsad_data_free(d->lender);
    free(d);
}
