/* Which problem a plan states, and by which method it is solved. */
#ifndef HFSAD_PLAN_METHOD_H
#define HFSAD_PLAN_METHOD_H

#include "plan/plan.h"

/* Why the problem of the plan is not one model for all nodes; NULL: it is. */
const char *plan_why_apart(const plan *p, size_t n_inner);
/* Whether the problem of one model for all is convex. */
bool plan_is_convex(const plan *p, size_t n_inner);
/* Whether the spec changes a setting that only HFSAD has: then its author means HFSAD. */
bool plan_is_by_hand(const hfsad_spec *spec);
/* Why the star (polish/star.h) cannot train this; NULL: it can. */
const char *plan_why_no_star(const hfsad_spec *spec, const plan *p, size_t n_inner);
/* features.standardize, with auto chosen: links that let go measure how far a node's model is away, which depends on
 * the units of the columns. */
bool plan_standardizes(const hfsad_spec *spec);

#endif
