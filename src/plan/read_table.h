/* What the spec says about the columns of its data, as their reader takes it. */
#ifndef HFSAD_PLAN_READ_TABLE_H
#define HFSAD_PLAN_READ_TABLE_H

#include "data/columns.h"
#include "spec/settings.h"

/* Texts remain the spec's. */
static inline table_settings table_of_spec(const hfsad_spec *spec)
{
    return (table_settings){
        .y = spec->columns.y,
        .client = spec->columns.client,
        .edge = spec->columns.edge,
        .weight = spec->columns.weight,
        .features = spec->columns.features,
        .categorical = spec->columns.categorical,
        .labels = spec->columns.labels,
        .missing = (missing_rule)spec->columns.missing,
        .edges = (uint32_t)spec->split.edges,
        .clients = (uint32_t)spec->split.clients,
        .by = spec->split.by,
        .seed = (uint64_t)spec->split.seed,
    };
}

#endif
