/* Noise laws; see generator_noise.h. */
#include "made/generator_noise.h"

#include "base/rng.h"

#include <math.h>
#include <stdbool.h>

/* Uniform draws that one number may take: the mixture's pick and a normal's two. */
enum { DRAWS = 3 };

/*
 * Continued fraction of the incomplete beta function (Abramowitz and Stegun 26.5.8) by the modified method of Lentz; it
 * converges fast for x < (a + 1)/(a + b + 2), in about sqrt(max(a, b)) steps.
 */
static double beta_fraction(double a, double b, double x)
{
    enum { STEPS_MOST = 2000 };
    const double tiny = 1e-300;
    double c = 1, d = 1 - (a + b) * x / (a + 1);
    d = 1 / (fabs(d) < tiny ? tiny : d);
    double value = d;
    for (int i = 2; i <= STEPS_MOST; i++) {
        const int half = i / 2;
        const double k = half, even = k * (b - k) / ((a + 2 * k - 1) * (a + 2 * k));
        const double odd = -(a + k) * (a + b + k) / ((a + 2 * k) * (a + 2 * k + 1));
        const double term = x * (i % 2 ? odd : even);
        d = 1 + term * d;
        c = 1 + term / c;
        d = 1 / (fabs(d) < tiny ? tiny : d);
        c = fabs(c) < tiny ? tiny : c;
        value *= c * d;
        if (fabs(c * d - 1) < 1e-16)
            break;
    }
    return value;
}

/* The regularised incomplete beta function I_x(a, b); y = 1 - x, which the caller has without cancellation. */
static double beta_share(double a, double b, double x, double y)
{
    if (x <= 0)
        return 0;
    if (y <= 0)
        return 1;
    const double front = exp(a * log(x) + b * log(y) + lgamma(a + b) - lgamma(a) - lgamma(b));
    if (x < (a + 1) / (a + b + 2))
        return front * beta_fraction(a, b, x) / a;
    return 1 - front * beta_fraction(b, a, y) / b;
}

static double normal_tail(double t)
{
    return 0.5 * erfc(t * 0.70710678118654752440);
}

double noise_tail(const noise_law *law, double t)
{
    switch (law->kind) {
    case NOISE_GAUSSIAN:
        return normal_tail(t);
    case NOISE_STUDENT: {
        const double whole = law->df + t * t;
        return 0.5 * beta_share(law->df / 2, 0.5, law->df / whole, t * t / whole);
    }
    case NOISE_MIXTURE:
        return (1 - law->share) * normal_tail(t) + law->share * normal_tail(t / law->factor);
    case NOISE_LAPLACE:
        return 0.5 * exp(-t);
    case NOISE_LOGISTIC:
        break;
    }
    return 1 / (1 + exp(t));
}

double noise_quantile(const noise_law *law, double tau)
{
    const double p = fmin(tau, 1 - tau);
    if (p >= 0.5)
        return 0;
    /* The tail falls from 1/2 to 0; the bracket doubles, then halves until its ends are neighbours. */
    double low = 0, high = 1;
    while (noise_tail(law, high) > p) {
        low = high;
        high *= 2;
    }
    for (;;) {
        const double middle = low + (high - low) / 2;
        if (!(middle > low && middle < high))
            break;
        if (noise_tail(law, middle) > p)
            low = middle;
        else
            high = middle;
    }
    return law->scale * (tau < 0.5 ? -high : high);
}

/* Student's t from two uniform numbers, for any df: Bailey, Mathematics of Computation 62 (1994). */
static double student(double df, rng *r)
{
    const double two_pi = 6.283185307179586476925;
    const double radius = sqrt(df * expm1(-2 / df * log(rng_next_uniform(r))));
    return radius * cos(two_pi * rng_next_uniform(r));
}

double noise_sample(const noise_law *law, uint64_t key, uint64_t number)
{
    rng r = {key, DRAWS * number};
    switch (law->kind) {
    case NOISE_GAUSSIAN:
        return law->scale * rng_next_normal(&r);
    case NOISE_STUDENT:
        return law->scale * student(law->df, &r);
    case NOISE_MIXTURE: {
        const bool far = rng_next_uniform(&r) < law->share;
        return law->scale * (far ? law->factor : 1) * rng_next_normal(&r);
    }
    case NOISE_LAPLACE: {
        const double u = rng_next_uniform(&r);
        return law->scale * (u < 0.5 ? log(2 * u) : -log(2 * (1 - u)));
    }
    case NOISE_LOGISTIC:
        break;
    }
    const double u = rng_next_uniform(&r);
    return law->scale * log(u / (1 - u));
}
