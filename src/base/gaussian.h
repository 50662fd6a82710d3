/*
 * The discrete Gaussian on the whole numbers, P(x) proportional to exp(-x^2 / (2 variance)), by whole numbers alone: no
 * floating-point number takes part. The method is rejection from strips, as Karney's ("Sampling exactly from the normal
 * distribution", 2016), with the strips of a table:
 *
 *     width    the least whole number that is at least sqrt(variance)/16
 *     strip    i = 0, 1, ... with the probability E_i / sum of E,   E_i >= C exp(-i^2/512)
 *     size     x = i width + (0 ... width - 1), all alike
 *     accepted with the probability C exp(-x^2 / (2 variance)) / E_i, which is at most 1; then a sign
 *
 * A uniform number u decides, whose digits are drawn as they are needed: within four deviations bounds of the
 * probability in 64 bits nearly always, otherwise sums of whole numbers of any length. What is drawn has exactly this
 * law, but for an event of probability below 2^-200.
 */
#ifndef HFSAD_BASE_GAUSSIAN_H
#define HFSAD_BASE_GAUSSIAN_H

#include <stdbool.h>
#include <stdint.h>

/* A source of uniform words. The words of a step do not depend on when they are drawn. */
typedef struct {
    void *context;
    void (*begin)(void *context, uint64_t step);
    uint64_t (*next)(void *context);
} word_source;

/* Words of a simulation, by base/rng.h: not secret. */
typedef struct {
    uint64_t key, step, counter;
} seeded_words;
word_source seeded_words_source(seeded_words *w);

#define GAUSSIAN_VARIANCE_MOST (UINT64_C(1) << 40)
typedef struct {
    uint64_t variance, width;
    uint64_t inverse; /* 2^shift / (512 variance), rounded down, at least 2^63 */
    unsigned shift;
} gaussian;
/* variance: from 1 to GAUSSIAN_VARIANCE_MOST. */
gaussian gaussian_of(uint64_t variance);
int64_t gaussian_draw(const gaussian *g, const word_source *words);

/* For tests. The part of the decision that is left if x^2 / (2 variance) - strip^2/512 is below 1: whether x is
 * accepted by the uniform number (u + …)/2^64. 1: yes, 0: no, -1: not known by this method. */
typedef enum { GAUSSIAN_BY_BOUNDS, GAUSSIAN_BY_SUMS } gaussian_method;
int gaussian_decide(const gaussian *g, uint64_t strip, uint64_t x, uint64_t u, gaussian_method method);

#endif
