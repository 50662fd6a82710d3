#include "core/shares.h"

#include "base/alloc.h"
#include "core/kernels.h"

#include <stdlib.h>
#include <string.h>

size_t share_units(const dataset *d)
{
    const size_t slots = run_slots(d->M);
    return d->inner[0].n_inner + (d->inner[0].n_leaves + slots - 1) / slots;
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

/* Units of a rank among `count`, the first of which belongs to rank 0. */
static size_t units_of(const rank_group *group, unsigned rank, size_t count)
{
    return count > rank ? (count - rank - 1) / group->count + 1 : 0;
}

void share_gather(size_t count, size_t size, void *all)
{
    const rank_group *group = ranks();
    if (group->count == 1)
        return;
    const size_t own = units_of(group, group->rank, count);
    size_t *sizes = alloc_zero(group->count, sizeof *sizes);
    char *sent = alloc_zero(own * size + 1, 1), *heard = alloc_zero(count * size + 1, 1), *to = all;
    if (!sizes || !sent || !heard)
        group->end(group->context, 1);
    for (unsigned r = 0; r < group->count; r++)
        sizes[r] = units_of(group, r, count) * size;
    for (size_t i = 0; i < own; i++)
        memcpy(sent + i * size, to + (i * group->count + group->rank) * size, size);
    group->gather(group->context, sent, sizes, heard);
    const char *from = heard;
    for (unsigned r = 0; r < group->count; r++)
        for (size_t unit = r; unit < count; unit += group->count, from += size)
            memcpy(to + unit * size, from, size);
    free(sizes);
    free(sent);
    free(heard);
}
