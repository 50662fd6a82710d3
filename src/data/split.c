#include "data/split.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/rng.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static size_t held_of(size_t rows, double share)
{
    const size_t n = (size_t)floor(share * (double)rows);
    return n < rows ? n : rows - 1;
}

static size_t row_length(const row_table *t, size_t r)
{
    return t->start ? t->start[r + 1] - t->start[r] : t->F;
}

/* Marks the rows to move. The client's name selects the random stream, so that other clients do not matter. */
static void draw_heldout(const dataset *d, double share, uint64_t seed, uint8_t *goes, size_t *order)
{
    char name[HFSAD_TIERS_MAX * 256 + 8] = "held/";
    for (size_t leaf = 0; leaf < d->n_leaves; leaf++) {
        const size_t first = d->rows.first[leaf], count = d->rows.first[leaf + 1] - first;
        dataset_leaf_name(d, leaf, name + 5, sizeof name - 5);
        rng r = {rng_key(seed, rng_stream(name)), 0};
        for (size_t i = 0; i < count; i++)
            order[i] = i;
        rng_shuffle(&r, order, count);
        for (size_t i = 0; i < held_of(count, share); i++)
            goes[first + order[i]] = 1;
    }
}

static bool take_table(dataset *held, const dataset *d, size_t rows, size_t numbers)
{
    const row_table *t = &d->rows;
    row_table *h = &held->rows;
    held->M = d->M;
    held->n_leaves = d->n_leaves;
    held->n_rows = rows;
    held->lanes = 1;
    h->F = t->F;
    h->constant = t->constant;
    h->first = alloc_zero(d->n_leaves + 1, sizeof *h->first);
    h->x = alloc_raw(numbers, sizeof *h->x);
    h->y = alloc_raw(rows, sizeof *h->y);
    h->start = t->start ? alloc_zero(rows + 1, sizeof *h->start) : NULL;
    h->column = t->start ? alloc_raw(numbers, sizeof *h->column) : NULL;
    h->weight = t->weight ? alloc_raw(rows, sizeof *h->weight) : NULL;
    return h->first && h->x && h->y && (!t->start || (h->start && h->column)) && (!t->weight || h->weight);
}

/* Copies row r of `from`, whose numbers begin at `at`, to the next row of `to`. Both may be the same table; the target
 * is then before row r. */
typedef struct {
    size_t rows, numbers;
} fill_state;

static void move_row(row_table *to, fill_state *filled, const row_table *from, size_t r, size_t at, size_t length)
{
    memmove(to->x + filled->numbers, from->x + at, length * sizeof *to->x);
    if (to->start) {
        memmove(to->column + filled->numbers, from->column + at, length * sizeof *to->column);
        to->start[filled->rows + 1] = filled->numbers + length;
    }
    to->y[filled->rows] = from->y[r];
    if (to->weight)
        to->weight[filled->rows] = from->weight[r];
    filled->rows++;
    filled->numbers += length;
}

static void part(dataset *d, dataset *held, const uint8_t *goes)
{
    row_table *t = &d->rows;
    fill_state stay = {0}, go = {0};
    size_t r = 0, at = 0, next = t->start ? t->start[0] : 0;
    for (size_t leaf = 0; leaf < d->n_leaves; leaf++) {
        const size_t end = t->first[leaf + 1];
        for (; r < end; r++) {
            /* Moving the row may overwrite start[r + 1], so the end is read first. */
            at = next;
            next = t->start ? t->start[r + 1] : at + t->F;
            if (goes[r])
                move_row(&held->rows, &go, t, r, at, next - at);
            else
                move_row(t, &stay, t, r, at, next - at);
        }
        t->first[leaf + 1] = stay.rows;
        held->rows.first[leaf + 1] = go.rows;
    }
    d->n_rows = stay.rows;
}

hfsad_status dataset_split(dataset *d, double share, uint64_t seed, dataset **held, hfsad_error *err)
{
    assert(d->rows.first && share >= 0 && share < 1);
    *held = NULL;
    const hfsad_status owned = dataset_own_rows(d, err);
    if (owned)
        return owned;
    uint8_t *goes = alloc_zero(d->n_rows, 1);
    size_t *order = alloc_raw(d->n_rows, sizeof *order);
    dataset *made = alloc_zero(1, sizeof *made);
    hfsad_status status = HFSAD_OK;
    size_t rows = 0, numbers = 0;
    if (goes && order && made) {
        draw_heldout(d, share, seed, goes, order);
        for (size_t r = 0; r < d->n_rows; r++) {
            rows += goes[r];
            numbers += goes[r] ? row_length(&d->rows, r) : 0;
        }
    }
    if (!goes || !order || !made || !take_table(made, d, rows, numbers))
        status = error_memory(err, numbers * sizeof(double), "the held-out rows");
    else if (!rows)
        status = error_set(err, HFSAD_ERROR_INPUT,
                           "a share of %g of every client's rows is less than one row; give a larger share", share);
    else
        part(d, made, goes);
    free(goes);
    free(order);
    if (status)
        dataset_free(made);
    else
        *held = made;
    return status;
}
