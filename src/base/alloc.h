/* Checked allocation: sizes are multiplied without overflow, and large allocations are aligned to a cache line. */
#ifndef HFSAD_BASE_ALLOC_H
#define HFSAD_BASE_ALLOC_H

#include <stdbool.h>
#include <stddef.h>

/* count * size zeroed bytes, 64-byte aligned; NULL on overflow or if there is no memory. Free with free(). */
void *alloc_zero(size_t count, size_t size);
/* The same, not zeroed. */
void *alloc_raw(size_t count, size_t size);
/* Grows *array, whose elements have `size` bytes, to at least `need` elements by doubling; false: no memory. */
bool alloc_grow(void **array, size_t *capacity, size_t need, size_t size);

/* A variable that its function fills before it reads it. The hardened build zeroes all others: of a kilobyte this takes
 * longer than the work of many a function that is called for every message. */
#if defined(__has_attribute)
#if __has_attribute(uninitialized)
#define UNFILLED __attribute__((uninitialized))
#endif
#endif
#if !defined(UNFILLED)
#define UNFILLED
#endif

#endif
