/*
 * Which rank (base/ranks.h) works on which part of a tree. The units are the inner children of the cloud, each with all
 * nodes below it, in their order, then the runs (core/kernels.h) of the clients directly below the cloud. Every rank
 * has consecutive units; the numbers of units of two ranks differ by at most 1. Every rank adds up the units' results
 * in the order of the units, so the bits do not depend on the number of ranks.
 */
#ifndef HFSAD_DATA_SHARES_H
#define HFSAD_DATA_SHARES_H

#include "base/ranks.h"
#include "data/dataset.h"

/* The first unit of a rank; for the rank after the last: the number of units. */
static inline size_t share_first(size_t units, unsigned rank)
{
    return units * rank / ranks()->count;
}

/* The rank of a unit. */
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

/* This rank's children of the cloud: inner nodes, and clients by their slot. */
typedef struct {
    size_t inner, inner_end, slot, slot_end;
} share_children;
share_children share_of_rank(const dataset *d, unsigned rank);

/* all: `size` bytes for every unit. On entry this rank has filled its units; on return all units are filled. */
void share_gather(const dataset *d, size_t size, void *all);

/* A sum over all children of the cloud: `size` bytes, equal on all ranks. Each rank adds its own children, in the order
 * of the ranks: first all inner children, then all clients. add: adds this rank's inner children, or its clients. */
void share_add(const dataset *d, void *sum, size_t size, void *context,
               void (*add)(void *context, bool inner, const share_children *own));

#endif
