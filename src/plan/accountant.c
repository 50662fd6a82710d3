#include "plan/accountant.h"

#include <math.h>
#include <stdbool.h>

enum { HALVINGS = 200 };

/* The logarithm of delta at alpha, and its derivative, which rises. */
static double log_delta(double rho, double epsilon, double alpha)
{
    return (alpha - 1) * (alpha * rho - epsilon) + alpha * log1p(-1 / alpha) - log(alpha - 1);
}

static double slope(double rho, double epsilon, double alpha)
{
    return (2 * alpha - 1) * rho - epsilon + log1p(-1 / alpha);
}

double zcdp_delta(double rho, double epsilon)
{
    if (!(rho > 0))
        return 0;
    double low = 1, high = 2 + (epsilon + 1) / (2 * rho);
    for (int i = 0; i < HALVINGS; i++) {
        const double middle = (low + high) / 2;
        if (slope(rho, epsilon, middle) < 0)
            low = middle;
        else
            high = middle;
    }
    /* every alpha gives a valid bound */
    return fmin(1, exp(log_delta(rho, epsilon, high)));
}

double zcdp_epsilon(double rho, double delta)
{
    double low = 0, high = rho + 2 * sqrt(rho * log(1 / delta)); /* the simple conversion */
    if (!(rho > 0))
        return 0;
    for (int i = 0; i < HALVINGS; i++) {
        const double middle = (low + high) / 2;
        if (zcdp_delta(rho, middle) > delta)
            low = middle;
        else
            high = middle;
    }
    return high;
}

double zcdp_rho(double epsilon, double delta)
{
    double low = 0, high = epsilon + 1; /* rho at 0 <= delta < 1 is below */
    for (int i = 0; i < HALVINGS; i++) {
        const double middle = (low + high) / 2;
        if (zcdp_delta(middle, epsilon) > delta)
            high = middle;
        else
            low = middle;
    }
    return low;
}
