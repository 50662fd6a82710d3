#include "polish/errors.h"

#include "base/alloc.h"
#include "data/features.h"
#include "math/dot.h"
#include "math/normal.h"
#include "polish/triangle.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The quantile of the residuals: every question divides the width of the bracket by 63. */
static bool find_quantile(polish_state *s, const double *w, double mean, double deviation, double share, double *found)
{
    enum { ROUNDS = 6 };
    double low = mean - 2 * deviation, high = mean + 2 * deviation; /* by Chebyshev's inequality */
    for (int round = 0; round < ROUNDS; round++) {
        const double step = (high - low) / (POLISH_LEVELS - 1);
        s->kappa = low;
        s->beta = step;
        if (!polish_ask(s, POLISH_RESIDUALS, w, NULL))
            return false;
        int i = 1;
        while (i < POLISH_LEVELS - 1 && s->answer[i] < share * s->answer[POLISH_LEVELS])
            i++;
        high = low + i * step;
        low = high - step;
    }
    *found = high;
    return true;
}

/* Hall and Sheather's width: of the level, then of the residuals at their robust scale. */
static bool find_width(polish_state *s, const double *w, double *width)
{
    const double tau = s->p->level, x = normal_quantile(tau), density = normal_density(x), z = normal_quantile(0.975);
    double low, high;
    s->kappa = s->beta = 0;
    if (!polish_ask(s, POLISH_RESIDUALS, w, NULL))
        return false;
    const double n = s->answer[POLISH_LEVELS], mean = s->answer[POLISH_LEVELS + 1] / n;
    const double deviation = sqrt(fmax(s->answer[POLISH_LEVELS + 2] - n * mean * mean, 0) / fmax(n - 1, 1));
    double h = cbrt(z * z * 1.5 * density * density / (2 * x * x + 1) / n);
    while (tau - h <= 0 || tau + h >= 1)
        h /= 2;
    if (!find_quantile(s, w, mean, deviation, 0.25, &low) || !find_quantile(s, w, mean, deviation, 0.75, &high))
        return false;
    const double robust = (high - low) / 1.34;
    *width = (normal_quantile(tau + h) - normal_quantile(tau - h)) * (robust > 0 ? fmin(deviation, robust) : deviation);
    return *width > 0;
}

/* inverse: M vectors, the columns of H^-1. */
static bool find_inverse(polish_state *s, const double *w, double *inverse)
{
    const size_t M = s->M;
    double width = 1;
    if (s->p->level > 0 && !find_width(s, w, &width))
        return false;
    s->kappa = width;
    s->beta = 0;
    if (!polish_ask(s, POLISH_BREAD, w, NULL))
        return false;
    for (size_t m = 0; m < M; m++) {
        double *at = s->answer + m * (m + 1) / 2 + m;
        *at += s->ridge[m];
        if (!(*at > 0)) /* a column of zeros */
            *at = INFINITY;
    }
    triangle_factorise(M, s->answer);
    memset(inverse, 0, M * M * sizeof *inverse);
    for (size_t m = 0; m < M; m++) {
        inverse[m * M + m] = 1;
        triangle_solve(M, s->answer, inverse + m * M);
    }
    return true;
}

void polish_errors(polish_state *s, const double *w)
{
    const size_t M = s->M;
    double *inverse = alloc_zero(M * M, sizeof *inverse), *product = s->work, *to = s->p->variance;
    const bool known = inverse && find_inverse(s, w, inverse) && polish_ask(s, POLISH_MEAT, w, NULL);
    for (size_t m = 0; m < M; m++) {
        if (known)
            triangle_product(M, s->answer, inverse + m * M, product);
        for (size_t k = 0; k <= m; k++)
            *to++ = known ? dot8(M, product, inverse + k * M) : NAN;
    }
    free(inverse);
}

bool errors_to_user(const dataset *d, const double *variance, double *errors)
{
    const size_t M = d->M;
    double *whole = alloc_zero(M * M + M, sizeof *whole), *line = whole ? whole + M * M : NULL;
    if (!whole)
        return false;
    for (size_t m = 0; m < M; m++)
        for (size_t k = 0; k <= m; k++)
            whole[m * M + k] = whole[k * M + m] = variance[m * (m + 1) / 2 + k];
    for (size_t m = 0; m < M; m++) /* T V, then T (T V)' */
        model_to_user(d, whole + m * M, whole + m * M);
    for (size_t m = 0; m < M; m++) {
        for (size_t k = 0; k < M; k++)
            line[k] = whole[k * M + m];
        model_to_user(d, line, line);
        errors[m] = line[m] > 0 ? sqrt(line[m]) : NAN;
    }
    free(whole);
    return true;
}
