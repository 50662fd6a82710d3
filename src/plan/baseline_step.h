/* The automatic first step size of the baselines, from sums over the clients. */
#ifndef HFSAD_PLAN_BASELINE_STEP_H
#define HFSAD_PLAN_BASELINE_STEP_H

#include "plan/plan.h"

/* d: the tree; its rows are not looked at. start: M numbers. */
hfsad_status baseline_step_find(double *step, const dataset *d, const plan *p, const double *start, const surveyor *ask,
                                hfsad_error *err);
/* A client's answers to SURVEY_CURVE and SURVEY_CURVE_ALONE. */
void baseline_step_answer(const survey_client *c, const survey_question *q, double *answer);
/* Nodes whose curvature is found apart: all inner ones, or one for all if the vectors would be too many. */
size_t baseline_step_groups(const dataset *d);

#endif
