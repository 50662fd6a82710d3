/*
 * Which rank (base/ranks.h) works on which part of a tree. The units are the inner children of the cloud, each with all
 * nodes below it, in their order, then the runs (kernels.h) of the clients directly below the cloud. Unit u belongs to
 * rank u mod the number of ranks. What the units answer is exchanged and then added up by every rank in the order of
 * the units: the bits do not depend on the number of ranks.
 */
#ifndef HFSAD_CORE_SHARES_H
#define HFSAD_CORE_SHARES_H

#include "base/ranks.h"
#include "data/dataset.h"

static inline bool share_is_mine(size_t unit)
{
    const rank_group *group = ranks();
    return unit % group->count == group->rank;
}

size_t share_units(const dataset *d);
/* The unit of inner node i >= 1. */
size_t share_of_inner(const dataset *d, size_t i);
/* The unit of the clients of this parent from this slot on, up to the end of the slot's run. */
size_t share_of_slot(const dataset *d, size_t parent, size_t slot);

/* all: `size` bytes for every one of `count` units, the first of which belongs to rank 0. This rank has filled its own;
 * then those of all ranks are there. */
void share_gather(size_t count, size_t size, void *all);

#endif
