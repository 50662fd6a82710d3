/* See robust.h. */
#include "core/robust.h"

#include <stdlib.h>

/* Ties are ordered by weight, so that their order does not depend on the slots. */
static int by_value(const void *a, const void *b)
{
    const robust_share *x = a, *y = b;
    if (x->value != y->value)
        return x->value < y->value ? -1 : 1;
    return x->weight < y->weight ? -1 : x->weight > y->weight;
}

static double mean_of(const robust_share *shares, size_t first, size_t end)
{
    double sum = 0, weight = 0;
    for (size_t i = first; i < end; i++) {
        sum += shares[i].weight * shares[i].value;
        weight += shares[i].weight;
    }
    return sum / weight;
}

double robust_sum(int kind, size_t M, size_t n, const double *const *u, const double *sigma, robust_share *room,
                  double *sum)
{
    const size_t cut = kind == AGGREGATE_TRIMMED ? n / 4 : (n - 1) / 2;
    double all = 0;
    for (size_t c = 0; c < n; c++)
        all += sigma[c];
    for (size_t m = 0; m < M; m++) {
        for (size_t c = 0; c < n; c++)
            room[c] = (robust_share){u[c][m] / sigma[c], kind == AGGREGATE_MEDIAN ? 1 : sigma[c]};
        qsort(room, n, sizeof *room, by_value);
        sum[m] = all * mean_of(room, cut, n - cut);
    }
    return all;
}
