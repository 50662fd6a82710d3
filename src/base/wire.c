#include "base/wire.h"

#include <math.h>

bool wire_round(double *v, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!isfinite((float)v[i]))
            return false;
    for (size_t i = 0; i < count; i++)
        v[i] = (double)(float)v[i];
    return true;
}
