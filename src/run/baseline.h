/* Hierarchical FedAvg and FedProx (averaging.h) in this process, to compare with: the same spec, data, tree,
 * participation and count of bytes as the simulator's. */
#ifndef HFSAD_RUN_BASELINE_H
#define HFSAD_RUN_BASELINE_H

#include "base/pool.h"
#include "run/averaging.h"

typedef struct baseline baseline;

/* Keeps references to d, p and truth; takes all memory. d has its rows in the table. start has M numbers; truth too, or
 * is NULL. */
hfsad_status baseline_create(baseline **b, const dataset *d, const plan *p, const baseline_rule *rule,
                             const double *start, const double *truth, pool *threads, hfsad_error *err);
void baseline_free(baseline *b);
void baseline_iterate(baseline *b);
/* objective is the consensus objective; residuals and smoothing gap, which belong to links, are NAN; seconds is left
 * alone. */
void baseline_measure(baseline *b, hfsad_figures *figures);

const double *baseline_inner_model(const baseline *b, size_t i);
/* After the client's last step. */
void baseline_leaf_model(const baseline *b, size_t leaf, double *w);

#endif
