/* Checked allocation: sizes are multiplied without overflow, big blocks are aligned to a cache line. */
#ifndef HFSAD_BASE_ALLOC_H
#define HFSAD_BASE_ALLOC_H

#include <stdbool.h>
#include <stddef.h>

/* count * size zeroed bytes, 64-byte aligned; NULL on overflow or lack of memory. Free with free(). */
void *alloc_zero(size_t count, size_t size);
/* The same, not zeroed. */
void *alloc_raw(size_t count, size_t size);
/* Grows *array (of element size) to hold at least need elements, doubling; false on lack of memory. */
bool alloc_grow(void **array, size_t *capacity, size_t need, size_t size);

#endif
