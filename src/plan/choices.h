/*
 * What the spec says of a node: its general keys, and over them the overrides that match the node's name, the later
 * ones over the earlier. What neither says is NAN, or negative.
 */
#ifndef HFSAD_PLAN_CHOICES_H
#define HFSAD_PLAN_CHOICES_H

#include "base/patterns.h"
#include "data/dataset.h"
#include "spec/settings.h"

#include <math.h>

enum { NODE_NAME_SIZE = HFSAD_TIERS_MAX * 256 };

static inline double pick(double given, double otherwise)
{
    return isnan(given) ? otherwise : given;
}

static inline int pick_choice(int given, int otherwise)
{
    return given < 0 ? otherwise : given;
}

/* Settings of a penalty, from either table of the spec. */
typedef struct {
    int kind;
    double weight, lambda, gamma, ratio;
} penalty_choice;

penalty_choice link_choice(const LINK_settings *s);
penalty_choice prior_choice(const PRIOR_settings *s);
penalty_choice choice_over(penalty_choice general, penalty_choice special);

/* special: NULL if no override matches. */
SCHEDULE_settings schedule_over(const SCHEDULE_settings *s, const SCHEDULE_settings *special);
hfsad_loss loss_of(const LOSS_settings *s, const LOSS_settings *special);
bool is_mean(const hfsad_spec *s, const override_settings *special);

typedef struct {
    const hfsad_spec *spec;
    const dataset *d;   /* for the nodes' names */
    pattern_list nodes; /* of the overrides */
    bool *used;         /* n_overrides: matched a node */
} choice_table;

/* False: no memory; free it in any case. */
bool choices_make(choice_table *t, const hfsad_spec *spec, const dataset *d);
void choices_free(choice_table *t);

/* All entries that match a node. *any: whether there is one. */
hfsad_status leaf_override(const choice_table *t, size_t leaf, char *name, size_t size, override_settings *special,
                           bool *any, hfsad_error *err);
hfsad_status inner_override(const choice_table *t, size_t i, override_settings *special, bool *any, hfsad_error *err);
/* Refuses entries that match no node, or set nothing. */
hfsad_status check_overrides(const choice_table *t, hfsad_error *err);

#endif
