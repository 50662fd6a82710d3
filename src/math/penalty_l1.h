/* weight lambda |t|: l1 of a prior, tv of a link. */
#ifndef HFSAD_MATH_PENALTY_L1_H
#define HFSAD_MATH_PENALTY_L1_H

#include "math/penalty_kind.h"

PENALTY_FN penalty_shape l1_shape(const hfsad_penalty *p)
{
    return (penalty_shape){.slope = p->weight * p->lambda, .kappa = p->gamma};
}

PENALTY_ROW l1_kind = {.form = PENALTY_LINEAR, .gamma = 3};

#endif
