/* weight (lambda |t| - t^2 / (2 gamma)) up to gamma lambda, constant beyond; gamma > 1. */
#ifndef HFSAD_MATH_PENALTY_MCP_H
#define HFSAD_MATH_PENALTY_MCP_H

#include "math/penalty_kind.h"

PENALTY_FN penalty_shape mcp_shape(const hfsad_penalty *p)
{
    return (penalty_shape){.slope = p->weight * p->lambda, .theta = 0, .kappa = p->gamma};
}

PENALTY_ROW mcp_kind = {.form = PENALTY_CONCAVE, .gamma = 3};

#endif
