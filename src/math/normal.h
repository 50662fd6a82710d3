/* The normal distribution. */
#ifndef HFSAD_MATH_NORMAL_H
#define HFSAD_MATH_NORMAL_H

#include <math.h>

static inline double normal_density(double x)
{
    return exp(-x * x / 2) / sqrt(2 * 3.14159265358979323846);
}

/* The x below which a normal variable lies with probability p, 0 < p < 1. Bisection on the side on which erfc does not
 * cancel. */
static inline double normal_quantile(double p)
{
    const double tail = p < 0.5 ? p : 1 - p;
    double low = 0, high = 40;
    for (int i = 0; i < 100; i++) {
        const double middle = (low + high) / 2;
        *(erfc(middle / sqrt(2)) / 2 > tail ? &low : &high) = middle;
    }
    return p < 0.5 ? -low : low;
}

#endif
