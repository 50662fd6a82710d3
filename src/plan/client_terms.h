/* What every driver of a client's steps decides alike, so that all reach the same bits. */
#ifndef HFSAD_PLAN_CLIENT_TERMS_H
#define HFSAD_PLAN_CLIENT_TERMS_H

#include "plan/plan.h"

/* The factor of the rows' weights: 1, or 1 over their sum. */
double client_factor(const leaf_class *class, const client_rows *rows);
/* Whether a client's squared loss is worth a factor: it may take no more memory than the rows it is made of. */
bool client_is_factored(const leaf_class *class, const client_rows *rows, size_t M);
/* Whether the clients' own w are kept: they are asked for, or a client's next step begins there. many: the data is in
 * the table of rows. */
bool plan_keeps_w(const plan *p, bool many);
/* Whether any node may sit out a round. */
bool plan_leaves_sit_out(const plan *p);
bool plan_inner_sit_out(const plan *p, size_t n_inner);

#endif
