/*
 * The numbers of an answer with `federation.wire: fixed` (base/fixed.h). A sum over children says nothing of the
 * largest, so a maximum travels as counts: how many clients are in each bucket, four to an octave. The maximum is then
 * the upper end of the highest bucket in which there is one, at most 19% more than the largest number.
 *
 *     1 number     clients whose answer is not finite; all sums are then infinite
 *     maxima       MASK_BUCKETS: FIXED_BUCKETS counts of each; MASK_FLAGS: 0 or 1 of each; MASK_APART: none
 *     sums
 */
#ifndef HFSAD_PLAN_FIXED_ANSWER_H
#define HFSAD_PLAN_FIXED_ANSWER_H

#include "base/fixed.h"
#include "plan/questions.h"
#include "plan/tally.h"

/* A format for the node's name. */
#define FIXED_TOO_LARGE                                                                                                \
    "%.60s: a number is too large for federation.wire fixed; standardise the features, give them in larger units, "    \
    "lower federation.fraction if it is set, or use another wire"
enum { FIXED_BUCKETS = 512 };
typedef struct {
    question_mask maxima;
    size_t most, sums;
} answer_layout;

/* Numbers of an answer, each of FIXED_WORDS words. */
size_t fixed_answer_numbers(const answer_layout *l);
/* false: a finite number does not fit. */
bool fixed_answer_put(const answer_layout *l, const double *answer, uint64_t *words);
void fixed_answer_get(const answer_layout *l, const uint64_t *words, double *answer);

/*
 * A tally. In place of the largest gap of a tier goes its square: the sum's root is the figure, which is no smaller
 * than the largest gap. A dual residual that is not known is counted. A tally that does not fit counts as broken.
 */
size_t fixed_tally_numbers(size_t tiers);
void fixed_tally_put(const tally *t, size_t tiers, uint64_t *words);
void fixed_tally_get(tally *t, size_t tiers, const uint64_t *words);

#endif
