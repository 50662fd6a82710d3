#define _DEFAULT_SOURCE /* madvise */
#include "base/alloc.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { CACHE_LINE = 64, HUGE_PAGE = 2 << 20 };

void *alloc_raw(size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX / 2)
        return NULL;
    const bool large = bytes >= 4 * (size_t)HUGE_PAGE;
    const size_t unit = large ? HUGE_PAGE : CACHE_LINE;
    bytes = bytes ? (bytes + unit - 1) / unit * unit : unit;
    void *p = aligned_alloc(unit, bytes);
#if defined(MADV_HUGEPAGE)
    if (p && large) /* a hint: without huge pages, streaming over hundreds of megabytes misses the TLB */
        (void)madvise(p, bytes, MADV_HUGEPAGE);
#endif
    return p;
}

void *alloc_zero(size_t count, size_t size)
{
    void *p = alloc_raw(count, size);
    const size_t large = p ? count * size / HUGE_PAGE * HUGE_PAGE : 0;
    size_t done = 0;
#if defined(__linux__)
    /* Linux replaces these pages by zeros when they are touched; pages that are never touched use no memory. */
    if (large >= 4 * (size_t)HUGE_PAGE && madvise(p, large, MADV_DONTNEED) == 0)
        done = large;
#endif
    if (p)
        memset((char *)p + done, 0, count * size - done);
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
