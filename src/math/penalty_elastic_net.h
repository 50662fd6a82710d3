/* weight lambda (ratio |t| + (1 - ratio) t^2 / 2), ratio from 0 (l2) to 1 (l1). */
#ifndef HFSAD_MATH_PENALTY_ELASTIC_NET_H
#define HFSAD_MATH_PENALTY_ELASTIC_NET_H

#include "math/penalty_kind.h"

PENALTY_FN penalty_shape elastic_net_shape(const hfsad_penalty *p)
{
    const double strength = p->weight * p->lambda;
    return (penalty_shape){.slope = strength * p->ratio, .ridge = strength * (1 - p->ratio), .kappa = p->gamma};
}

PENALTY_ROW elastic_net_kind = {.form = PENALTY_RIDGED, .has_ratio = true, .gamma = 3};

#endif
