#include "base/ranks.h"

#include <stdlib.h>
#include <string.h>

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

bool ranks_same(const void *bytes, size_t size)
{
    char *first = joined->count > 1 ? malloc(size + 1) : NULL;
    if (joined->count == 1)
        return true;
    if (!first)
        joined->end(joined->context, 1);
    memcpy(first, bytes, size);
    joined->share(joined->context, 0, first, size);
    const bool same = memcmp(first, bytes, size) == 0;
    free(first);
    return !ranks_any(!same);
}

hfsad_status ranks_agree(hfsad_status status, hfsad_error *err)
{
    hfsad_error heard = {0};
    if (joined->count == 1 || !ranks_any(status != HFSAD_OK))
        return status;
    for (unsigned r = 0; r < joined->count && !heard.status; r++) {
        heard = status && err ? *err : (hfsad_error){0};
        heard.status = status;
        joined->share(joined->context, r, &heard, sizeof heard);
    }
    if (err)
        *err = heard;
    return heard.status;
}
