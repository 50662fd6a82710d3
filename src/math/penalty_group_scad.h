/* scad of the norm of a vector; gamma > 2. */
#ifndef HFSAD_MATH_PENALTY_GROUP_SCAD_H
#define HFSAD_MATH_PENALTY_GROUP_SCAD_H

#include "math/penalty_scad.h"

PENALTY_FN penalty_shape group_scad_shape(const hfsad_penalty *p)
{
    return scad_shape(p);
}

PENALTY_ROW group_scad_kind = {.form = PENALTY_CONCAVE, .group = true, .gamma = 3.7};

#endif
