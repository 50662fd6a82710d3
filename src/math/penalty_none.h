/* No penalty. A link of this kind ties nothing. */
#ifndef HFSAD_MATH_PENALTY_NONE_H
#define HFSAD_MATH_PENALTY_NONE_H

#include "math/penalty_kind.h"

PENALTY_FN penalty_shape none_shape(const hfsad_penalty *p)
{
    return (penalty_shape){.slope = 0, .kappa = p->gamma};
}

PENALTY_ROW none_kind = {.form = PENALTY_FLAT, .gamma = 3};

#endif
