/*
 * Cohorts: children of a node whose messages are added up as one. Inner children and clients of a node form cohorts of
 * their own, of consecutive slots and nearly equal size, each of at least plan.cohort members. All members of a cohort
 * take part in the same rounds: their draw is that of the first. Inner nodes that are fewer than a cohort are by
 * themselves; so are all children if there are no cohorts.
 */
#ifndef HFSAD_PLAN_COHORT_H
#define HFSAD_PLAN_COHORT_H

#include "plan/plan.h"

/* The number of cohorts of n children of one kind, and the first member of cohort i; for i = cohorts it is n. */
size_t cohorts_of(const plan *p, size_t n);
size_t cohort_first(size_t n, size_t cohorts, size_t i);
/* The first member of the cohort that child `slot` of n is in. */
size_t cohort_of(const plan *p, size_t n, size_t slot);
/* The number of members of that cohort. */
size_t cohort_members(const plan *p, size_t n, size_t slot);

/* Refused: clients of a node that are fewer than a cohort, and members that differ in their schedule or draws. */
hfsad_status cohorts_check(const plan *p, const dataset *d, hfsad_error *err);

#endif
