/*
 * Rows with a score for each of K classes. A model has K numbers for the first feature, K for the second and so on,
 * then K intercepts: s_k = sum over m of x_m w[m K + k].
 */
#ifndef HFSAD_CORE_SOFTMAX_H
#define HFSAD_CORE_SOFTMAX_H

#include "data/rows.h"

enum { SOFTMAX_CLASSES = 256 }; /* upper limit on the number of classes */

/* Number of classes of a model with M numbers. */
static inline size_t softmax_classes(const client_rows *rows, size_t M)
{
    return M / (rows->F + (rows->constant != 0));
}

/* Writes K scores to s. */
void softmax_scores(const client_rows *rows, size_t r, size_t K, const double *w, double *s);
/* w[m K + k] += x_m a_k */
void softmax_add(const client_rows *rows, size_t r, size_t K, const double *a, double *w);
/* log(sum of exp(s)) - s_y. p: receives the probabilities of the classes; may be NULL. */
double softmax_loss(size_t K, const double *s, double y, double *p);

/* The client's loss in the form of a loss supplied by a program. */
extern const hfsad_own_loss softmax_own;

#endif
