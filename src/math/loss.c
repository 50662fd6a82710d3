/* The table of losses, and the losses for one number at a time. The prox of an observation is in src/core/steps.c. */
#include "math/losses.h"

#include <stdio.h>

const loss_kind *const loss_kinds[] = {
#define LOSS_TABLE_ROW(KIND, prefix, name) [HFSAD_LOSS_##KIND] = &prefix##_kind,
    HFSAD_LOSS_LIST(LOSS_TABLE_ROW)
#undef LOSS_TABLE_ROW
};

const char *const loss_names[] = {
#define LOSS_TABLE_NAME(KIND, prefix, name) [HFSAD_LOSS_##KIND] = name,
    HFSAD_LOSS_LIST(LOSS_TABLE_NAME)
#undef LOSS_TABLE_NAME
};

_Static_assert(sizeof loss_kinds / sizeof *loss_kinds == HFSAD_LOSS_COUNT, "a row for every loss");
_Static_assert(sizeof loss_names / sizeof *loss_names == HFSAD_LOSS_COUNT, "a name for every loss");

double hfsad_loss_value(const hfsad_loss *loss, double y, double s)
{
    return vec_first(loss_value(loss, vec_set(y), vec_set(s)));
}

double hfsad_loss_slope(const hfsad_loss *loss, double y, double s)
{
    return loss_slope(loss, y, s);
}

size_t loss_parameters_text(const hfsad_loss *loss, const char *separator, char *text, size_t size)
{
    const double values[] = {
#define LOSS_PARAMETER_VALUE(name) [LOSS_NUMBER_##name] = loss->name,
        LOSS_PARAMETERS(LOSS_PARAMETER_VALUE)
#undef LOSS_PARAMETER_VALUE
    };
    static const char *const names[] = {
#define LOSS_PARAMETER_NAME(name) [LOSS_NUMBER_##name] = #name,
        LOSS_PARAMETERS(LOSS_PARAMETER_NAME)
#undef LOSS_PARAMETER_NAME
    };
    size_t used = 0;
    if (size)
        *text = 0;
    for (int i = 0; i < LOSS_PARAMETER_COUNT; i++)
        if (loss_kind_of(loss)->parameters >> i & 1)
            used += (size_t)snprintf(used < size ? text + used : NULL, used < size ? size - used : 0, "%s%s %g",
                                     separator, names[i], values[i]);
    return used;
}
