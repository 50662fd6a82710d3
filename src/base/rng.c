#include "base/rng.h"

uint64_t rng_next_below(rng *r, uint64_t n)
{
    const uint64_t limit = UINT64_MAX - UINT64_MAX % n;
    uint64_t u;
    do
        u = rng_u64(r->key, r->counter++);
    while (u >= limit);
    return u % n;
}

void rng_shuffle(rng *r, size_t *index, size_t n)
{
    for (size_t i = n; i > 1; i--) {
        const size_t j = (size_t)rng_next_below(r, i), t = index[i - 1];
        index[i - 1] = index[j];
        index[j] = t;
    }
}
