/* What a run and a batch of runs tell a device (device.h). */
#ifndef HFSAD_RUN_DEVICE_PARTS_H
#define HFSAD_RUN_DEVICE_PARTS_H

#include "core/link_vec.h"
#include "run/device.h"
#include "run/sim.h"

/* The module of this device; NULL: why, in one line. */
const device_table *device_table_of(const char *name, char *why, size_t size);
/* Why the rounds of s cannot go to a device; NULL: they can. s may be NULL. */
const char *device_refuses(const sim *s);
/* Whether it has clients that the rule and the clock of a run do not describe (device_members). */
bool device_has_members(const sim *s);

static inline device_penalty penalty_for(const hfsad_penalty *p)
{
    const penalty_vec v = penalty_vec_of(p);
    return (device_penalty){(int)v.form,         vec_first(v.slope), vec_first(v.omega),
                            vec_first(v.lambda), vec_first(v.theta), vec_first(v.inv_kappa),
                            vec_first(v.reach),  vec_first(v.bend),  vec_first(v.ridge)};
}

static inline device_rule rule_for(const hfsad_link_rule *rule)
{
    return (device_rule){rule->schedule, penalty_for(&rule->penalty)};
}

/* Whether r(k) is the same. */
static inline bool same_pace(const hfsad_schedule *a, const hfsad_schedule *b)
{
    return a->growth == b->growth && a->turn == b->turn;
}

static inline device_clock clock_of(const hfsad_schedule *s, uint32_t k)
{
    return (device_clock){k, hfsad_schedule_root(s, k), k ? hfsad_schedule_root(s, k - 1) : 0,
                          hfsad_schedule_root(s, (uint64_t)k + 1)};
}

#endif
