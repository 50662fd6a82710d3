#include "data/shares.h"

#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

static size_t units_of(const inner_node *cloud, size_t slots)
{
    return cloud->n_inner + (cloud->n_leaves + slots - 1) / slots;
}

size_t share_units(const dataset *d)
{
    return units_of(&d->inner[0], run_slots(d->M));
}

bool share_is_mine(const dataset *d, size_t unit)
{
    return share_rank(share_units(d), unit) == ranks()->rank;
}

size_t share_of_inner(const dataset *d, size_t i)
{
    while (d->inner[i].parent != 0)
        i = d->inner[i].parent;
    return i - d->inner[0].first_inner;
}

size_t share_of_slot(const dataset *d, size_t parent, size_t slot)
{
    return parent ? share_of_inner(d, parent) : d->inner[0].n_inner + slot / run_slots(d->M);
}

share_children share_of_rank(const dataset *d, unsigned rank)
{
    const inner_node *cloud = &d->inner[0];
    const size_t units = share_units(d), slots = run_slots(d->M), n = cloud->n_inner;
    const size_t first = share_first(units, rank), end = share_first(units, rank + 1);
    const size_t from = (first > n ? first - n : 0) * slots, to = (end > n ? end - n : 0) * slots;
    return (share_children){first < n ? first : n, end < n ? end : n, from < cloud->n_leaves ? from : cloud->n_leaves,
                            to < cloud->n_leaves ? to : cloud->n_leaves};
}

void share_gather(const dataset *d, size_t size, void *all)
{
    const rank_group *group = ranks();
    if (group->count == 1)
        return;
    const size_t units = share_units(d), first = share_first(units, group->rank),
                 own = share_first(units, group->rank + 1) - first;
    size_t *sizes = alloc_zero(group->count, sizeof *sizes);
    char *sent = alloc_zero(own * size + 1, 1);
    if (!sizes || !sent)
        group->end(group->context, 1);
    for (unsigned r = 0; r < group->count; r++)
        sizes[r] = (share_first(units, r + 1) - share_first(units, r)) * size;
    memcpy(sent, (char *)all + first * size, own * size);
    group->gather(group->context, sent, sizes, all);
    free(sizes);
    free(sent);
}

void share_add(const dataset *d, void *sum, size_t size, void *context,
               void (*add)(void *context, bool inner, const share_children *own))
{
    const rank_group *group = ranks();
    for (unsigned turn = 0; turn < 2 * group->count; turn++) {
        const unsigned rank = turn % group->count;
        const share_children own = share_of_rank(d, rank);
        const bool inner = turn < group->count;
        if (inner ? own.inner == own.inner_end : own.slot == own.slot_end)
            continue;
        if (rank == group->rank)
            add(context, inner, &own);
        group->share(group->context, rank, sum, size);
    }
}
