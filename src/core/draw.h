/* Participation of a node in a round. Every algorithm draws the same nodes. */
#ifndef HFSAD_CORE_DRAW_H
#define HFSAD_CORE_DRAW_H

#include "base/rng.h"

#include <stdbool.h>

/* Draws by (seed, node, round). Rounds count from 1 over the whole run, K per global iteration. *last is the iteration
 * in which the node last took part; the draw updates it. If that was at_least_every iterations ago, the node takes part
 * in the last round of the iteration. */
RNG_FN bool draw_takes_part(double probability, uint64_t key, uint64_t round, uint64_t K, uint64_t at_least_every,
                            uint32_t *last)
{
    const uint64_t iteration = (round - 1) / K + 1;
    const bool overdue = round % K == 0 && iteration - *last >= at_least_every;
    const bool takes_part = probability >= 1 || overdue || rng_uniform(key, round - 1) < probability;
    if (takes_part)
        *last = (uint32_t)iteration;
    return takes_part;
}

#endif
