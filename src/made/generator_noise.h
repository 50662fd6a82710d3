/*
 * Noise of the generated regressions: distributions that are symmetric about 0, their quantiles to machine precision,
 * and draws that are functions of (key, number of the draw).
 */
#ifndef HFSAD_MADE_GENERATOR_NOISE_H
#define HFSAD_MADE_GENERATOR_NOISE_H

#include <stdint.h>

typedef enum { NOISE_GAUSSIAN, NOISE_STUDENT, NOISE_MIXTURE, NOISE_LAPLACE, NOISE_LOGISTIC } noise_kind;
#define NOISE_NAMES "gaussian", "student", "mixture", "laplace", "logistic"

typedef struct {
    noise_kind kind;
    double scale;         /* factor of the standard distribution, >= 0 */
    double df;            /* student: degrees of freedom, from 0.5 to 1000 */
    double share, factor; /* mixture: N(0, 1), and with this probability N(0, factor^2) */
} noise_law;

/* P(noise > t) for t >= 0 and scale 1. */
double noise_tail(const noise_law *law, double t);
/* The q with P(noise <= q) = tau, 0 < tau < 1. */
double noise_quantile(const noise_law *law, double tau);
/* The number-th draw of the stream `key`. */
double noise_sample(const noise_law *law, uint64_t key, uint64_t number);

#endif
