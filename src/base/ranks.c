#include "base/ranks.h"

static const rank_group alone = {.count = 1};
static const rank_group *joined = &alone;

const rank_group *ranks(void)
{
    return joined;
}

void ranks_join(const rank_group *group)
{
    joined = group;
}

bool ranks_any(bool here)
{
    if (joined->count == 1)
        return here;
    bool said[RANKS_MOST];
    size_t sizes[RANKS_MOST];
    bool any = false;
    for (unsigned r = 0; r < joined->count; r++)
        sizes[r] = sizeof here;
    joined->gather(joined->context, &here, sizes, said);
    for (unsigned r = 0; r < joined->count; r++)
        any = any || said[r];
    return any;
}
