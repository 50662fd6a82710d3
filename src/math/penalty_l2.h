/* weight lambda t^2 / 2: shrinks coefficients and sets none to zero. */
#ifndef HFSAD_MATH_PENALTY_L2_H
#define HFSAD_MATH_PENALTY_L2_H

#include "math/penalty_kind.h"

PENALTY_FN penalty_shape l2_shape(const hfsad_penalty *p)
{
    return (penalty_shape){.slope = 0, .ridge = p->weight * p->lambda, .kappa = p->gamma};
}

PENALTY_ROW l2_kind = {.form = PENALTY_RIDGED, .gamma = 3};

#endif
