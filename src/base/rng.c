#include "base/rng.h"

#include <math.h>

uint64_t rng_stream(const char *name)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
    return h;
}

double rng_next_uniform(rng *r)
{
    return ((double)(rng_u64(r->key, r->counter++) >> 11) + 0.5) * 0x1p-53;
}

double rng_next_normal(rng *r)
{
    const double two_pi = 6.283185307179586476925;
    const double radius = sqrt(-2 * log(rng_next_uniform(r)));
    return radius * cos(two_pi * rng_next_uniform(r));
}

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
