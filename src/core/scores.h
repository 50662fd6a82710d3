/*
 * Rows with K scores and a loss for each score: levels of a quantile, or each class against the rest. The model has the
 * layout of softmax.h. The loss of a row is the sum over its scores.
 */
#ifndef HFSAD_CORE_SCORES_H
#define HFSAD_CORE_SCORES_H

#include "core/softmax.h"
#include "math/loss_kind.h"

enum { SCORES_LEVELS = 99 }; /* upper limit on K */

typedef struct {
    size_t K;                     /* 0: rows have one score, or the scores of softmax.h */
    hfsad_loss loss;              /* loss of a score; levels have their own tau */
    bool labels;                  /* score k has the label 1 if y is k, otherwise the label -1 */
    double levels[SCORES_LEVELS]; /* tau of each score, if there are no labels */
} score_losses;

static inline hfsad_loss score_loss(const score_losses *s, size_t k)
{
    hfsad_loss loss = s->loss;
    loss.tau = s->labels ? loss.tau : s->levels[k];
    return loss;
}

static inline double score_y(const score_losses *s, size_t k, double y)
{
    return !s->labels ? y : y == (double)k ? 1 : -1;
}

/* The loss of a row with K scores. */
double scores_loss(const score_losses *s, const double *scores, double y);

/* Whether a loss accepts y if rows have `classes` scores (0: one score). scores_take: the end of a message after "the
 * loss takes". */
bool scores_fit(const hfsad_loss *loss, size_t classes, double y);
const char *scores_take(const hfsad_loss *loss, size_t classes);

/* The client's loss in the form of a loss supplied by a program; the context is a score_losses. */
hfsad_own_loss scores_own(score_losses *s);

#endif
