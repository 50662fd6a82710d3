/*
 * Random numbers as a function of (seed, stream, counter), so that a draw does not depend on the order in which
 * draws are made. The stream of a node is the hash of its name; the counter is the round.
 *
 *     key  = mix(mix(seed) + stream)          draw = mix(key + counter * golden)
 *
 * which is the SplitMix64 generator of Steele, Lea and Flood, started at key and read at position counter.
 */
#ifndef HFSAD_BASE_RNG_H
#define HFSAD_BASE_RNG_H

#include "base/exp_log.h"

#include <stddef.h>
#include <stdint.h>

/* Marks functions that a device compiles, too: the draws of clients. */
#if defined(__CUDACC__)
#define RNG_FN static inline __host__ __device__
#else
#define RNG_FN static inline
#endif

RNG_FN uint64_t rng_mix(uint64_t h)
{
    h = (h ^ (h >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    h = (h ^ (h >> 27)) * UINT64_C(0x94d049bb133111eb);
    return h ^ (h >> 31);
}

RNG_FN uint64_t rng_key(uint64_t seed, uint64_t stream)
{
    return rng_mix(rng_mix(seed + UINT64_C(0x9e3779b97f4a7c15)) + stream);
}

RNG_FN uint64_t rng_u64(uint64_t key, uint64_t counter)
{
    return rng_mix(key + (counter + 1) * UINT64_C(0x9e3779b97f4a7c15));
}

/* Uniform in [0, 1), 53 bits. */
RNG_FN double rng_uniform(uint64_t key, uint64_t counter)
{
    return (double)(rng_u64(key, counter) >> 11) * 0x1p-53;
}

/* FNV-1a hash of a name: the stream of a node. The others go on with more of a name, so that a common beginning is
 * hashed once: stream("client12") is that of "client", and then of the number 12. */
RNG_FN uint64_t rng_stream_more(uint64_t h, const char *name)
{
    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
    return h;
}

RNG_FN uint64_t rng_stream_number(uint64_t h, uint64_t number)
{
    uint64_t unit = 1;
    while (number / unit >= 10)
        unit *= 10;
    for (; unit; unit /= 10)
        h = (h ^ ('0' + number / unit % 10)) * UINT64_C(0x100000001b3);
    return h;
}

RNG_FN uint64_t rng_stream(const char *name)
{
    return rng_stream_more(UINT64_C(0xcbf29ce484222325), name);
}

/* A generator for set-up code that needs a sequence of numbers. */
typedef struct {
    uint64_t key, counter;
} rng;

/* (0, 1) */
RNG_FN double rng_next_uniform(rng *r)
{
    return ((double)(rng_u64(r->key, r->counter++) >> 11) + 0.5) * 0x1p-53;
}

/* N(0, 1), two uniforms each */
RNG_FN double rng_next_normal(rng *r)
{
    const double radius = sqrt(-2 * same_log(rng_next_uniform(r)));
    return radius * same_cos_turns(rng_next_uniform(r));
}

uint64_t rng_next_below(rng *r, uint64_t n); /* 0 … n-1, unbiased */
/* Permutes index[0 … n) at random. */
void rng_shuffle(rng *r, size_t *index, size_t n);

#endif
