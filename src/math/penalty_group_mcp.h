/* mcp of the norm of a vector; gamma > 1. */
#ifndef HFSAD_MATH_PENALTY_GROUP_MCP_H
#define HFSAD_MATH_PENALTY_GROUP_MCP_H

#include "math/penalty_mcp.h"

PENALTY_FN penalty_shape group_mcp_shape(const hfsad_penalty *p)
{
    return mcp_shape(p);
}

PENALTY_ROW group_mcp_kind = {.form = PENALTY_CONCAVE, .group = true, .gamma = 3};

#endif
