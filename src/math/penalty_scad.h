/* weight lambda |t| up to lambda, bent from there to gamma lambda, constant beyond; gamma > 2. */
#ifndef HFSAD_MATH_PENALTY_SCAD_H
#define HFSAD_MATH_PENALTY_SCAD_H

#include "math/penalty_kind.h"

PENALTY_FN penalty_shape scad_shape(const hfsad_penalty *p)
{
    return (penalty_shape){.slope = p->weight * p->lambda, .theta = p->lambda, .kappa = p->gamma - 1};
}

PENALTY_ROW scad_kind = {.form = PENALTY_CONCAVE, .gamma = 3.7};

#endif
