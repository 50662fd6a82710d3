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

#include <stddef.h>
#include <stdint.h>

static inline uint64_t rng_mix(uint64_t h)
{
    h = (h ^ (h >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    h = (h ^ (h >> 27)) * UINT64_C(0x94d049bb133111eb);
    return h ^ (h >> 31);
}

static inline uint64_t rng_key(uint64_t seed, uint64_t stream)
{
    return rng_mix(rng_mix(seed + UINT64_C(0x9e3779b97f4a7c15)) + stream);
}

static inline uint64_t rng_u64(uint64_t key, uint64_t counter)
{
    return rng_mix(key + (counter + 1) * UINT64_C(0x9e3779b97f4a7c15));
}

/* Uniform in [0, 1), 53 bits. */
static inline double rng_uniform(uint64_t key, uint64_t counter)
{
    return (double)(rng_u64(key, counter) >> 11) * 0x1p-53;
}

/* FNV-1a of a name: the stream of a node. */
uint64_t rng_stream(const char *name);

/* A generator for set-up code that wants one number after another. */
typedef struct {
    uint64_t key, counter;
} rng;

double rng_next_uniform(rng *r);             /* (0, 1) */
double rng_next_normal(rng *r);              /* N(0, 1), two uniforms each */
uint64_t rng_next_below(rng *r, uint64_t n); /* 0 … n-1, unbiased */
/* index[0 … n) becomes a random permutation of itself. */
void rng_shuffle(rng *r, size_t *index, size_t n);

#endif
