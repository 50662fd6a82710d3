/*
 * With the probabilities p of a row's classes the slope of its loss in the scores is p - e_y, the second derivative
 * diag(p) - p p'. The conjugate is finite at q - e_y for probabilities q, and the gap of that slope at the scores s is
 * the divergence sum of q log(q / p(s)).
 */
#include "polish/softmax_answers.h"

#include "core/kernels.h"
#include "core/softmax.h"
#include "math/loss_kind.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

/* POLISH_WIDEST: limit on features and intercept of a second derivative. SUMS_AT_ONCE: 64 KiB. */
enum { POLISH_WIDEST = 1025, SUMS_AT_ONCE = 8192, PAIRS_AT_ONCE = 64, ROWS_AT_ONCE = 4 };

static double weight_of(const polish_client *o, size_t r)
{
    return o->factor * row_weight(&o->rows, r);
}

/* c (p - e_y) in place of p. */
static void to_slope(size_t K, double c, double y, double *p)
{
    p[(size_t)y] -= 1;
    for (size_t k = 0; k < K; k++)
        p[k] *= c;
}

static void answer_value(const polish_client *o, size_t K, const double *w, double *answer)
{
    double s[SOFTMAX_CLASSES], p[SOFTMAX_CLASSES], *numbers = answer + o->M;
    for (size_t r = 0; r < o->rows.count; r++) {
        const double c = weight_of(o, r), y = o->rows.y[r];
        softmax_scores(&o->rows, r, K, w, s);
        const double value = c * softmax_loss(K, s, y, p);
        for (size_t k = 0; k < K; k++)
            o->bend[r * K + k] = p[k];
        to_slope(K, c, y, p);
        softmax_add(&o->rows, r, K, p, answer);
        numbers[POLISH_ENVELOPE] += value;
        numbers[POLISH_LOSS] += value;
        numbers[POLISH_MODEL] += value;
    }
}

static void answer_line(const polish_client *o, size_t K, const polish_question *q, double *answer)
{
    double s[SOFTMAX_CLASSES], along[SOFTMAX_CLASSES], at[SOFTMAX_CLASSES], p[SOFTMAX_CLASSES];
    for (size_t r = 0; r < o->rows.count; r++) {
        softmax_scores(&o->rows, r, K, q->point, s);
        softmax_scores(&o->rows, r, K, q->vector, along);
        for (size_t i = 0; i < POLISH_STEPS; i++) {
            for (size_t k = 0; k < K; k++)
                at[k] = s[k] + polish_steps[i] * along[k];
            (void)softmax_loss(K, at, o->rows.y[r], p);
            to_slope(K, weight_of(o, r), o->rows.y[r], p);
            for (size_t k = 0; k < K; k++)
                answer[i] += along[k] * p[k];
        }
    }
}

static void answer_scales(const polish_client *o, size_t K, double *answer)
{
    const client_rows *rows = &o->rows;
    double *slopes = answer + POLISH_SLOPES * o->M, *bends = answer + POLISH_BENDS * o->M;
    for (size_t r = 0; r < rows->count; r++) {
        const size_t from = row_from(rows, r), end = rows->start ? rows->start[r + 1] : from + rows->F;
        const double c = weight_of(o, r);
        for (size_t at = from; at < end + (rows->constant != 0); at++) {
            const double x = at == end ? rows->constant : rows->x[at];
            const size_t m = K * (at == end ? rows->F : rows->start ? rows->column[at] : at - from);
            for (size_t k = 0; k < K; k++) {
                slopes[m + k] += c * fabs(x);
                bends[m + k] += c * x * x / 4;
            }
        }
    }
}

static void answer_diagonal(const polish_client *o, size_t K, double *answer)
{
    const client_rows *rows = &o->rows;
    for (size_t r = 0; r < rows->count; r++) {
        const size_t from = row_from(rows, r), end = rows->start ? rows->start[r + 1] : from + rows->F;
        const double c = weight_of(o, r), *p = o->bend + r * K;
        for (size_t at = from; at < end + (rows->constant != 0); at++) {
            const double x = at == end ? rows->constant : rows->x[at];
            double *to = answer + K * (at == end ? rows->F : rows->start ? rows->column[at] : at - from);
            for (size_t k = 0; k < K; k++)
                to[k] += c * p[k] * (1 - p[k]) * x * x;
        }
    }
}

/* B v for B = diag(p) - p p'. */
static void bend_times(size_t K, const double *p, const double *v, double *product)
{
    double mean = 0;
    for (size_t k = 0; k < K; k++)
        mean += p[k] * v[k];
    for (size_t k = 0; k < K; k++)
        product[k] = p[k] * (v[k] - mean);
}

static void answer_product(const polish_client *o, size_t K, const double *v, double *answer)
{
    double s[SOFTMAX_CLASSES], a[SOFTMAX_CLASSES];
    for (size_t r = 0; r < o->rows.count; r++) {
        softmax_scores(&o->rows, r, K, v, s);
        bend_times(K, o->bend + r * K, s, a);
        for (size_t k = 0; k < K; k++)
            a[k] *= weight_of(o, r);
        softmax_add(&o->rows, r, K, a, answer);
    }
}

/* Pairs of classes k >= l, and c B_kl of row r for each of them. */
typedef struct {
    uint16_t k, l;
} class_pair;

static void pair_factors(const polish_client *o, size_t K, size_t r, const class_pair *pairs, size_t count, double *b)
{
    const double c = weight_of(o, r), *p = o->bend + r * K;
    for (size_t q = 0; q < count; q++)
        b[q] = c * p[pairs[q].k] * ((pairs[q].k == pairs[q].l) - p[pairs[q].l]);
}

/* Sums of c B_kl x_m x over the rows, for features m from `first` to `end` and some pairs. Rows are added one after the
 * other, so the bits do not depend on the numbers of features and pairs at once. */
static void sum_lines(const polish_client *o, size_t K, size_t first, size_t end, const class_pair *pairs, size_t count,
                      double *sums)
{
    const client_rows *rows = &o->rows;
    const size_t F = rows->F, width = F + (rows->constant != 0);
    const kernel_table *table = kernels();
    double b[ROWS_AT_ONCE][PAIRS_AT_ONCE], a[ROWS_AT_ONCE];
    memset(sums, 0, (end - first) * count * width * sizeof *sums);
    for (size_t r = 0; r < rows->count; r += ROWS_AT_ONCE) {
        const size_t n = rows->count - r < ROWS_AT_ONCE ? rows->count - r : ROWS_AT_ONCE;
        const double *x = rows->x + row_from(rows, r);
        for (size_t i = 0; i < n; i++)
            pair_factors(o, K, r + i, pairs, count, b[i]);
        for (size_t m = first; m < end; m++)
            for (size_t q = 0; q < count; q++) {
                double *sum = sums + ((m - first) * count + q) * width;
                for (size_t i = 0; i < n; i++)
                    a[i] = b[i][q] * (m < F ? x[i * F + m] : rows->constant);
                if (n == ROWS_AT_ONCE)
                    table->add4(m < F ? m + 1 : F, a, x, F, sum);
                for (size_t i = 0; i < n && n < ROWS_AT_ONCE; i++)
                    table->add_scaled(m < F ? m + 1 : F, a[i], x + i * F, sum);
                for (size_t i = 0; i < n && m == F; i++)
                    sum[F] += a[i] * rows->constant;
            }
    }
}

/* Line m K + k, and line m K + l if k and l differ, of a pair. */
static void put_sums(size_t K, size_t m, class_pair at, const double *sum, double *triangle)
{
    const size_t k = at.k, l = at.l;
    double *line = triangle + (m * K + k) * (m * K + k + 1) / 2, *other = triangle + (m * K + l) * (m * K + l + 1) / 2;
    for (size_t n = 0; n <= m; n++) {
        line[n * K + l] += sum[n];
        if (k != l && n < m)
            other[n * K + k] += sum[n];
    }
}

/* The same for dense rows: sums run along x, and as many of them as fit into the cache share one pass over the rows. */
static void dense_hessian(const polish_client *o, size_t K, double *triangle)
{
    const size_t width = o->rows.F + (o->rows.constant != 0);
    const size_t most = SUMS_AT_ONCE / width < PAIRS_AT_ONCE ? SUMS_AT_ONCE / width : PAIRS_AT_ONCE;
    double sums[SUMS_AT_ONCE];
    class_pair pairs[PAIRS_AT_ONCE];
    size_t count = 0;
    for (size_t k = 0; k < K; k++)
        for (size_t l = 0; l <= k; l++) {
            pairs[count++] = (class_pair){(uint16_t)k, (uint16_t)l};
            if (count < most && !(k + 1 == K && l == k))
                continue;
            const size_t together = SUMS_AT_ONCE / (count * width);
            for (size_t first = 0; first < width; first += together) {
                const size_t end = first + together < width ? first + together : width;
                sum_lines(o, K, first, end, pairs, count, sums);
                for (size_t m = first; m < end; m++)
                    for (size_t q = 0; q < count; q++)
                        put_sums(K, m, pairs[q], sums + ((m - first) * count + q) * width, triangle);
            }
            count = 0;
        }
}

/* Line i = m K + k of the lower triangle gets c B_kl x_m x_n in column n K + l. */
static void answer_hessian(const polish_client *o, size_t K, double *triangle)
{
    const client_rows *rows = &o->rows;
    if (!rows->start && rows->F < POLISH_WIDEST) {
        dense_hessian(o, K, triangle);
        return;
    }
    double a[SOFTMAX_CLASSES];
    for (size_t r = 0; r < rows->count; r++) {
        const size_t from = row_from(rows, r), count = rows->start ? rows->start[r + 1] - from : rows->F;
        const size_t all = count + (rows->constant != 0);
        const double c = weight_of(o, r), *p = o->bend + r * K;
        for (size_t i = 0; i < all; i++) {
            const double x = i == count ? rows->constant : rows->x[from + i];
            const size_t m = i == count ? rows->F : rows->start ? rows->column[from + i] : i;
            for (size_t k = 0; k < K; k++) {
                double *line = triangle + (m * K + k) * (m * K + k + 1) / 2;
                for (size_t l = 0; l < K; l++)
                    a[l] = c * x * p[k] * ((k == l) - p[l]);
                for (size_t j = 0; j <= i; j++) {
                    const double other = j == count ? rows->constant : rows->x[from + j];
                    const size_t n = j == count ? rows->F : rows->start ? rows->column[from + j] : j;
                    for (size_t l = 0; l < (j == i ? k + 1 : K); l++)
                        line[n * K + l] += a[l] * other;
                }
            }
        }
    }
}

/* The probabilities at the point, moved by B <x, vector> and projected to probabilities again. */
static void answer_repair(const polish_client *o, size_t K, const polish_question *question, double *answer)
{
    double s[SOFTMAX_CLASSES], p[SOFTMAX_CLASSES], q[SOFTMAX_CLASSES], along[SOFTMAX_CLASSES];
    for (size_t r = 0; r < o->rows.count; r++) {
        const double c = weight_of(o, r), y = o->rows.y[r];
        softmax_scores(&o->rows, r, K, question->point, s);
        softmax_scores(&o->rows, r, K, question->vector, along);
        const double level = softmax_loss(K, s, y, p) + s[(size_t)y]; /* log of the sum: log p_k = s_k - level */
        double sum = 0, gap = 0;
        bend_times(K, p, along, q);
        for (size_t k = 0; k < K; k++)
            sum += q[k] = fmax(p[k] + q[k], 0);
        for (size_t k = 0; k < K; k++) {
            q[k] /= sum;
            gap += loss_entropy_gap(q[k], p[k], s[k] - level);
        }
        to_slope(K, c, y, q);
        softmax_add(&o->rows, r, K, q, answer);
        answer[o->M] += c * gap;
    }
}

static double loss_at(const polish_client *o, size_t K, const double *w)
{
    double s[SOFTMAX_CLASSES], sum = 0;
    for (size_t r = 0; r < o->rows.count; r++) {
        softmax_scores(&o->rows, r, K, w, s);
        sum += weight_of(o, r) * softmax_loss(K, s, o->rows.y[r], NULL);
    }
    return sum;
}

void softmax_answer(const polish_client *o, const polish_question *q, double *answer)
{
    const size_t K = softmax_classes(&o->rows, o->M);
    switch (q->kind) {
    case POLISH_ANCHOR:
        *answer = loss_at(o, K, q->vector);
        break;
    case POLISH_SCALES:
        answer_scales(o, K, answer);
        break;
    case POLISH_VALUE:
        answer_value(o, K, q->vector, answer);
        break;
    case POLISH_LINE:
        answer_line(o, K, q, answer);
        break;
    case POLISH_DIAGONAL:
        answer_diagonal(o, K, answer);
        break;
    case POLISH_HESSIAN:
        answer_hessian(o, K, answer);
        break;
    case POLISH_PRODUCT:
        answer_product(o, K, q->vector, answer);
        break;
    case POLISH_REPAIR:
        answer_repair(o, K, q, answer);
        break;
    default: /* nothing is kept between questions, and there are no rounds */
        break;
    }
}
