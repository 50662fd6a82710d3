/*
 * Which rank (base/ranks.h) works on which part of a tree. The units are the inner children of the cloud, each with all
 * nodes below it, in their order, then the runs (core/kernels.h) of the clients directly below the cloud. A rank has
 * consecutive units, as many as every other but for one. What the units answer is added up by every rank in the order
 * of the units: the bits do not depend on the number of ranks.
 */
#ifndef HFSAD_DATA_SHARES_H
#define HFSAD_DATA_SHARES_H

#include "base/ranks.h"
#include "data/dataset.h"

/* The first unit of a rank; of the rank after the last: their number. */
static inline size_t share_first(size_t units, unsigned rank)
{
    return units * rank / ranks()->count;
}

/* Of a unit. */
static inline unsigned share_rank(size_t units, size_t unit)
{
    return (unsigned)(((unit + 1) * ranks()->count - 1) / units);
}

size_t share_units(const dataset *d);
bool share_is_mine(const dataset *d, size_t unit);
/* The unit of inner node i >= 1. */
size_t share_of_inner(const dataset *d, size_t i);
/* The unit of the clients of this parent from this slot on, up to the end of the slot's run. */
size_t share_of_slot(const dataset *d, size_t parent, size_t slot);

/* This rank's children of the cloud: inner ones, and clients by their slot. */
typedef struct {
    size_t inner, inner_end, slot, slot_end;
} share_children;
share_children share_of_rank(const dataset *d, unsigned rank);

/* all: `size` bytes for every unit. This rank has filled its own; then those of all ranks are there. */
void share_gather(const dataset *d, size_t size, void *all);

/* A sum over all children of the cloud, `size` bytes that every rank has alike: each rank adds its own children to it,
 * in the order of the ranks, first all inner children, then all clients. add: inner or clients; the children that are
 * this rank's. */
void share_add(const dataset *d, void *sum, size_t size, void *context,
               void (*add)(void *context, bool inner, const share_children *own));

#endif
