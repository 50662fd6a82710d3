/* Who takes part in a round: the same nodes under every algorithm. */
#ifndef HFSAD_CORE_DRAW_H
#define HFSAD_CORE_DRAW_H

#include "base/rng.h"

#include <stdbool.h>

/* A draw keyed by (seed, node, round); overdue: this is the last round of the K_a-th global iteration after the node
 * last took part. */
static inline bool draw_takes_part(double probability, uint64_t key, uint64_t round, bool overdue)
{
    return overdue || rng_uniform(key, round) < probability;
}

#endif
