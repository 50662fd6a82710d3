/* The groups of a plan (`personal: groups`): whether they can be found, and the problem. Every driver that can ask all
 * clients starts here. */
#ifndef HFSAD_PERSONAL_PERSONAL_TASK_H
#define HFSAD_PERSONAL_PERSONAL_TASK_H

#include "personal/grow.h"
#include "plan/plan.h"

enum { PERSONAL_COORDINATES = 256 }; /* limit for sending the second derivatives of every group */

#define PERSONAL_BROKEN "the models are no longer finite; scale the columns (features.standardize)"

/* Whether a run of this spec ends with the groups. A run without iterations shows its start. */
bool personal_is_due(const hfsad_spec *spec);
/* Why the groups of the plan cannot be found; NULL: they can. */
const char *personal_why_not(const hfsad_spec *spec, const plan *p, size_t n_inner, size_t M);
/* Only the tree of d is used. The caller frees problem->priors and sets ask and context. false: no memory. */
bool personal_problem_make(personal_problem *problem, const hfsad_spec *spec, const plan *p, const dataset *d);

#endif
