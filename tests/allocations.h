/* Counts the library's allocations, for tests of loops that must not allocate, and lets them fail, for tests of what
 * happens then. For one source file per program. */
#ifndef HFSAD_TESTS_ALLOCATIONS_H
#define HFSAD_TESTS_ALLOCATIONS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static atomic_size_t allocations;
/* Bytes that were asked for, whether or not they were given back. */
static atomic_size_t allocated_bytes __attribute__((unused));
/* Those that may still be made; SIZE_MAX: any number. */
static atomic_size_t allocations_left = SIZE_MAX;

static bool allocation_fails(size_t bytes)
{
    const size_t left = allocations_left;
    allocations++;
    allocated_bytes += bytes;
    if (left > 0 && left < SIZE_MAX)
        allocations_left = left - 1;
    return left == 0;
}

/* The linker sends the library's calls here (tests/CMakeLists.txt: --wrap). */
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *p, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);

void *__wrap_malloc(size_t size)
{
    return allocation_fails(size) ? NULL : __real_malloc(size);
}
void *__wrap_calloc(size_t count, size_t size)
{
    return allocation_fails(count * size) ? NULL : __real_calloc(count, size);
}
void *__wrap_realloc(void *p, size_t size)
{
    return allocation_fails(size) ? NULL : __real_realloc(p, size);
}
void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    return allocation_fails(size) ? NULL : __real_aligned_alloc(alignment, size);
}

#endif
