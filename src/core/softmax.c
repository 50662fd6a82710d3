#include "core/softmax.h"

#include <math.h>
#include <string.h>

void softmax_scores(const client_rows *rows, size_t r, size_t K, const double *w, double *s)
{
    const size_t from = row_from(rows, r), end = rows->start ? rows->start[r + 1] : from + rows->F;
    for (size_t k = 0; k < K; k++)
        s[k] = rows->constant != 0 ? rows->constant * w[rows->F * K + k] : 0;
    for (size_t at = from; at < end; at++) {
        const double x = rows->x[at], *of = w + K * (rows->start ? rows->column[at] : at - from);
        for (size_t k = 0; k < K; k++)
            s[k] += x * of[k];
    }
}

void softmax_add(const client_rows *rows, size_t r, size_t K, const double *a, double *w)
{
    const size_t from = row_from(rows, r), end = rows->start ? rows->start[r + 1] : from + rows->F;
    for (size_t at = from; at < end; at++) {
        const double x = rows->x[at];
        double *of = w + K * (rows->start ? rows->column[at] : at - from);
        for (size_t k = 0; k < K; k++)
            of[k] += x * a[k];
    }
    for (size_t k = 0; k < K && rows->constant != 0; k++)
        w[rows->F * K + k] += rows->constant * a[k];
}

double softmax_loss(size_t K, const double *s, double y, double *p)
{
    double most = s[0], sum = 0;
    for (size_t k = 1; k < K; k++)
        most = fmax(most, s[k]);
    for (size_t k = 0; k < K; k++)
        sum += exp(s[k] - most);
    for (size_t k = 0; p && k < K; k++)
        p[k] = exp(s[k] - most) / sum;
    return log(sum) + (most - s[(size_t)y]);
}

static double client_value(void *context, const hfsad_client *client, const double *w)
{
    (void)context;
    const client_rows *rows = client->inside;
    const size_t K = softmax_classes(rows, client->M);
    double s[SOFTMAX_CLASSES], sum = 0;
    for (size_t r = 0; r < rows->count; r++) {
        softmax_scores(rows, r, K, w, s);
        sum += row_weight(rows, r) * softmax_loss(K, s, rows->y[r], NULL);
    }
    return sum;
}

static double client_gradient(void *context, const hfsad_client *client, const double *w, double *g)
{
    (void)context;
    const client_rows *rows = client->inside;
    const size_t K = softmax_classes(rows, client->M);
    double s[SOFTMAX_CLASSES], p[SOFTMAX_CLASSES], sum = 0;
    memset(g, 0, client->M * sizeof *g);
    for (size_t r = 0; r < rows->count; r++) {
        const double c = row_weight(rows, r);
        softmax_scores(rows, r, K, w, s);
        sum += c * softmax_loss(K, s, rows->y[r], p);
        p[(size_t)rows->y[r]] -= 1;
        for (size_t k = 0; k < K; k++)
            p[k] *= c;
        softmax_add(rows, r, K, p, g);
    }
    return sum;
}

const hfsad_own_loss softmax_own = {.size = sizeof softmax_own, .value = client_value, .gradient = client_gradient};
