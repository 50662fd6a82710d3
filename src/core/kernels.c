/* Chooses the kernels for this machine. */
#include "core/kernels.h"

#include "data/dataset.h"
#include "math/box.h"

#include <stdatomic.h>
#include <string.h>

static _Atomic(const kernel_table *) chosen;

static const kernel_table *find_kernels(const char *name)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if ((!name || !strcmp(name, "avx512")) && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
        return &kernels_avx512;
    if ((!name || !strcmp(name, "avx2")) && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return &kernels_avx2;
#endif
    return !name || !strcmp(name, "plain") ? &kernels_plain : NULL;
}

const kernel_table *kernels(void)
{
    const kernel_table *table = atomic_load_explicit(&chosen, memory_order_acquire);
    if (!table) {
        table = find_kernels(NULL);
        atomic_store_explicit(&chosen, table, memory_order_release);
    }
    return table;
}

bool kernels_choose(const char *name)
{
    const kernel_table *table = find_kernels(name);
    if (table)
        atomic_store_explicit(&chosen, table, memory_order_release);
    return table != NULL;
}

size_t leaf_run_scratch(size_t M)
{
    const size_t rows = tree_lanes(M) == 8 ? LEAF_RUN_ROWS * 8 : 2; /* a row needs its centre and w */
    return rows * M + 2 * M + box_scratch(M);
}

/* The layout of exact_prox; the other methods need less. */
size_t rows_scratch(size_t M, size_t rows)
{
    return 3 * M + rows + box_scratch(M);
}
