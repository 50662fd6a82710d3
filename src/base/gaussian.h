/*
 * The discrete Gaussian on the whole numbers, P(x) proportional to exp(-x^2 / (2 variance)), by whole numbers alone: no
 * floating-point number takes part, so that the sampled law is exactly this one. The method is that of Canonne, Kamath
 * and Steinke, "The Discrete Gaussian for Differential Privacy" (arXiv 2004.00010): a coin of probability
 * exp(-a/b) from coins of rational probability, from these a discrete Laplace variable, and from that, by rejection,
 * the Gaussian.
 */
#ifndef HFSAD_BASE_GAUSSIAN_H
#define HFSAD_BASE_GAUSSIAN_H

#include <stdint.h>

/* Uniform words. The words of one step are the same whenever they are drawn. */
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
/* variance: from 1 to GAUSSIAN_VARIANCE_MOST. */
int64_t gaussian_draw(const word_source *words, uint64_t variance);

#endif
