/*
 * Numbers of `federation.wire: fixed`: whole multiples of a power of two, whose sums are exact and do not depend on
 * their order, so that they may be masked (net/veil.h) and still add up.
 *
 * Answers to questions have no common scale. Each number is a whole multiple of 2^-FIXED_FRACTION, in FIXED_WORDS words
 * of two's complement, lowest word first: a double of 2^-35 or more in absolute value is exact, and the error of a
 * smaller one is at most 2^-89. Numbers of 2^FIXED_MOST_BIT or more do not fit, so that FIXED_SUM_MOST of them do not
 * overflow.
 *
 * The u of a link has a scale, sigma times the size of a model. It is a whole multiple of 1/factor in one word.
 */
#ifndef HFSAD_BASE_FIXED_H
#define HFSAD_BASE_FIXED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FIXED_WORDS = 3, FIXED_FRACTION = 88, FIXED_MOST_BIT = 83, FIXED_SUM_MOST = 1 << 20 };

/* false: v is not finite or does not fit; *to is then 0. */
bool fixed_put(double v, uint64_t to[FIXED_WORDS]);
/* The nearest double. */
double fixed_get(const uint64_t from[FIXED_WORDS]);
/* Operations on `count` numbers; sums wrap. */
void fixed_negate(uint64_t *numbers, size_t count);
void fixed_add(uint64_t *sum, const uint64_t *part, size_t count);

/* The sum of the answers of a node's children: in fixed point, or as doubles in the order of the children if words is
 * NULL. If an answer has a number that is not finite, all numbers of the sum are infinite. */
typedef struct {
    size_t count;
    double *sum;     /* count */
    uint64_t *words; /* FIXED_WORDS * count, or NULL */
    bool infinite;
} child_sum;
child_sum child_sum_begin(size_t count, double *sum, uint64_t *words);
/* false: a number does not fit; the sum is then infinite. */
bool child_sum_add(child_sum *s, const double *part);
/* Called after the last answer. */
void child_sum_end(child_sum *s);
/* Whether a number stands for infinity, because frames contain finite numbers only. */
bool fixed_is_infinite(double v);

/* Sums of one-word numbers stay below 2^GRID_BITS. */
enum { GRID_BITS = 62 };
/* Writes the numbers times factor, a power of two, rounded to whole numbers; `members` such numbers will be added.
 * false: a number is not finite or too large, and *at is its place. v and to may be the same memory. */
bool grid_put(const double *v, size_t count, double factor, size_t members, int64_t *to, size_t *at);
/* Factor of the safeguard's strain, which is sent after u. */
#define STRAIN_FACTOR 0x1p20

#endif
