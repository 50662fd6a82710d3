#include "base/alloc.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { CACHE_LINE = 64 };

void *alloc_raw(size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX / 2)
        return NULL;
    bytes = (bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
    return aligned_alloc(CACHE_LINE, bytes ? bytes : CACHE_LINE);
}

void *alloc_zero(size_t count, size_t size)
{
    void *p = alloc_raw(count, size);
    if (p)
        memset(p, 0, count * size);
    return p;
}

bool alloc_grow(void **array, size_t *capacity, size_t need, size_t size)
{
    if (need <= *capacity)
        return true;
    size_t larger = *capacity ? *capacity : 16;
    while (larger < need) {
        if (larger > SIZE_MAX / 2)
            return false;
        larger *= 2;
    }
    size_t bytes;
    if (__builtin_mul_overflow(larger, size, &bytes))
        return false;
    void *p = realloc(*array, bytes);
    if (!p)
        return false;
    *array = p;
    *capacity = larger;
    return true;
}
