/* A client's answers; see mixture.h. */
#include "personal/mixture.h"

#include "math/loss_kind.h"

#include <math.h>
#include <string.h>

size_t mixture_scratch(size_t M)
{
    return M + 4 * (MIXTURE_MOST + 1);
}

/* What a row's loss, without its weight, is replaced by in the fit of a group: a parabola of this slope and bend.
 *
 * A loss with a kink at s = y between the slopes low and high is rounded to phi(s) + (high - low) kappa log(1 +
 * exp(-|s - y| / kappa)), which has a second derivative. Losses with bounded slopes also lie below the parabola of bend
 * (high - low)/2 / |s - y| through their own value and slope: a part of that keeps steps short where few rows are near
 * their turn. */
typedef struct {
    double slope, bend;
} row_bend;

static row_bend bend_of(const hfsad_loss *loss, double y, double s, double kappa)
{
    const loss_kind *kind = loss_kind_of(loss);
    double low, high;
    kind->slopes(loss, y, &low, &high);
    const double jump = high - low, off = s - y;
    if (!isfinite(jump) || (kind->bend && kind->labels))
        return (row_bend){kind->slope(loss, y, s), kind->bend(loss, y, s)};
    if (kind->bend) { /* the loss has its own width */
        const double most = kind->bend(loss, y, y);
        return (row_bend){kind->slope(loss, y, s), fmin(jump / 2 / fabs(off), most > 0 ? most : INFINITY)};
    }
    const double e = exp(-fabs(off) / kappa), above = 1 / (1 + e), part = off > 0 ? above : 1 - above;
    return (row_bend){low + jump * part, jump * above * (1 - above) / kappa + 0.05 * jump / 2 / fmax(fabs(off), kappa)};
}

/* By how much the rounded loss exceeds the loss. */
static double rounding(const hfsad_loss *loss, double y, double s, double kappa)
{
    double low, high;
    if (!(kappa > 0) || loss_kind_of(loss)->bend)
        return 0;
    loss_kind_of(loss)->slopes(loss, y, &low, &high);
    return (high - low) * kappa * log1p(exp(-fabs(s - y) / kappa));
}

/* The client's loss with each model, rounded over kappa, over the rows from `first` on in steps. */
static void losses(const mixture_client *c, const mixture *m, double kappa, size_t first, size_t step, double *f)
{
    for (size_t k = 0; k < m->K; k++) {
        f[k] = 0;
        for (size_t r = first; r < c->rows.count; r += step) {
            const double y = c->rows.y[r], s = row_dot(&c->rows, r, m->w + k * c->M);
            f[k] += row_weight(&c->rows, r) * (hfsad_loss_value(c->loss, y, s) + rounding(c->loss, y, s, kappa));
        }
    }
}

/* p from the losses f; returns -log sum_k share exp(-f/T). */
static double weigh(const mixture *m, const double *f, double *p)
{
    double most = -INFINITY, sum = 0;
    for (size_t k = 0; k < m->K; k++) {
        p[k] = log(fmax(m->share[k], 1e-12)) - f[k] / m->T;
        most = fmax(most, p[k]);
    }
    for (size_t k = 0; k < m->K; k++)
        sum += p[k] = exp(p[k] - most);
    for (size_t k = 0; k < m->K; k++)
        p[k] /= sum;
    return -(most + log(sum));
}

void mixture_weights(const mixture_client *c, const mixture *m, double *p)
{
    double *f = c->scratch + c->M;
    losses(c, m, 0, 0, 1, f);
    weigh(m, f, p);
}

size_t mixture_largest(const double *p, size_t K)
{
    size_t best = 0;
    for (size_t k = 1; k < K; k++)
        best = p[k] > p[best] ? k : best;
    return best;
}

void mixture_model(const mixture *m, size_t M, const double *p, double *w)
{
    memset(w, 0, M * sizeof *w);
    for (size_t k = 0; k < m->K; k++)
        for (size_t i = 0; i < M; i++)
            w[i] += p[k] * m->w[k * M + i];
}

/* g = gradient of the client's loss at w. */
static void gradient(const mixture_client *c, const double *w, double kappa, double *g)
{
    memset(g, 0, c->M * sizeof *g);
    for (size_t r = 0; r < c->rows.count; r++) {
        const row_bend b = bend_of(c->loss, c->rows.y[r], row_dot(&c->rows, r, w), kappa);
        row_add(&c->rows, r, row_weight(&c->rows, r) * b.slope, g);
    }
}

/* The client's coordinate along u, for the model w; its variance is 1 if u is scaled accordingly and the client follows
 * w. */
static double place(const mixture_client *c, const double *w, double kappa, const double *u)
{
    double *g = c->scratch, sum = 0;
    gradient(c, w, kappa, g);
    for (size_t m = 0; m < c->M; m++)
        sum += u[m] * g[m];
    return sum / sqrt(fmax(rows_weight(&c->rows), 1e-300));
}

/* The weights for K + 1 groups after the cut of q->from. */
static void cut_weights(const mixture_client *c, const mixture_question *q, double *p)
{
    const size_t K = q->from.K, k = q->cut.group;
    mixture_weights(c, &q->from, p);
    const bool beyond = place(c, q->from.w + k * c->M, q->kappa, q->cut.u) > q->cut.at;
    const double part = q->now.share[K] / (q->now.share[k] + q->now.share[K]);
    p[K] = p[k] * ((1 - q->cut.mix) * beyond + q->cut.mix * part);
    p[k] -= p[K];
}

/* Adds a x x' to a lower triangle. */
static void add_square(const client_rows *rows, size_t r, double a, double *to)
{
    const size_t from = row_from(rows, r), count = rows->start ? rows->start[r + 1] - from : rows->F;
    const double *x = rows->x + from;
    const uint32_t *column = rows->start ? rows->column + from : NULL;
    for (size_t i = 0; i < count; i++) {
        const size_t m = column ? column[i] : i;
        double *line = to + triangle(m);
        const double factor = a * x[i];
        if (column)
            for (size_t k = 0; k <= i; k++)
                line[column[k]] += factor * x[k];
        else
            for (size_t k = 0; k <= i; k++)
                line[k] += factor * x[k];
    }
    if (rows->constant == 0)
        return;
    double *line = to + triangle(rows->F);
    row_add(rows, r, a * rows->constant, line);
}

static void answer_stats(const mixture_client *c, const mixture_question *q, double *answer)
{
    const size_t M = c->M, K = q->now.K;
    double *f = c->scratch + M, *p = f + MIXTURE_MOST + 1;
    double cut[MIXTURE_MOST + 1];
    if (q->from.K)
        cut_weights(c, q, cut);
    losses(c, &q->now, q->kappa, 0, 1, f);
    answer[MIXTURE_LIKELIHOOD] = weigh(&q->now, f, p);
    answer[MIXTURE_ROWS] = rows_weight(&c->rows);
    for (size_t k = 0; k < K; k++) {
        const double weight = q->from.K ? cut[k] : p[k], *w = q->now.w + k * M;
        double *sums = answer + MIXTURE_TOTALS + k * (MIXTURE_SUMS + M + triangle(M)), *g = sums + MIXTURE_SUMS;
        sums[MIXTURE_CLIENTS] = weight;
        sums[MIXTURE_LOSS] = weight * f[k];
        for (size_t r = 0; r < c->rows.count && weight > 1e-9; r++) {
            const row_bend b = bend_of(c->loss, c->rows.y[r], row_dot(&c->rows, r, w), q->kappa);
            const double a = weight * row_weight(&c->rows, r);
            row_add(&c->rows, r, a * b.slope, g);
            add_square(&c->rows, r, a * b.bend, g + M);
        }
    }
}

static void answer_spread(const mixture_client *c, const mixture_question *q, double *answer)
{
    const size_t M = c->M;
    double p[MIXTURE_MOST], *g = c->scratch;
    mixture_weights(c, &q->now, p);
    const double n = rows_weight(&c->rows);
    for (size_t k = 0; k < q->now.K; k++) {
        double *between = answer + k * (2 * triangle(M) + 1), *within = between + triangle(M);
        const double *w = q->now.w + k * M;
        within[triangle(M)] = p[k];
        if (!(p[k] > 1e-9) || !(n > 0))
            continue;
        gradient(c, w, q->kappa, g);
        for (size_t i = 0; i < M; i++)
            for (size_t j = 0; j <= i; j++)
                between[triangle(i) + j] += p[k] / n * g[i] * g[j];
        for (size_t r = 0; r < c->rows.count; r++) {
            const row_bend b = bend_of(c->loss, c->rows.y[r], row_dot(&c->rows, r, w), q->kappa);
            add_square(&c->rows, r, p[k] / n * row_weight(&c->rows, r) * b.slope * b.slope, within);
        }
    }
}

static void answer_cuts(const mixture_client *c, const mixture_question *q, double *answer)
{
    double p[MIXTURE_MOST];
    mixture_weights(c, &q->now, p);
    for (size_t k = 0; k < q->now.K; k++) {
        if (!(q->reach[k] > 0))
            continue;
        const double t = place(c, q->now.w + k * c->M, q->kappa, q->u + k * c->M);
        const double bin = floor((t / q->reach[k] + 1) / 2 * MIXTURE_BINS);
        const size_t b = bin >= MIXTURE_BINS ? MIXTURE_BINS - 1 : bin > 0 ? (size_t)bin : 0;
        double *weights = answer + k * 2 * MIXTURE_BINS;
        weights[b] = p[k];
        weights[MIXTURE_BINS + b] = p[k] * t;
    }
}

/* The client's loss on each half of its rows, with weights from the other half. */
static double crossed(const mixture_client *c, const mixture *m)
{
    double *f = c->scratch + c->M, *other = f + MIXTURE_MOST + 1, p[MIXTURE_MOST], sum = 0;
    for (size_t half = 0; half < 2; half++) {
        losses(c, m, 0, half, 2, f);
        losses(c, m, 0, 1 - half, 2, other);
        weigh(m, f, p);
        for (size_t k = 0; k < m->K; k++)
            sum += p[k] * other[k];
    }
    return sum;
}

static void answer_size(const mixture_client *c, const mixture_question *q, double *answer)
{
    double p[MIXTURE_MOST];
    mixture_weights(c, &q->now, p);
    answer[mixture_largest(p, q->now.K)] = 1;
}

static void answer_squares(const mixture_client *c, const mixture_question *q, double *answer)
{
    (void)q;
    for (size_t r = 0; r < c->rows.count; r++)
        row_add_squares(&c->rows, r, row_weight(&c->rows, r), answer);
    answer[c->M] = rows_weight(&c->rows);
}

static void answer_cross(const mixture_client *c, const mixture_question *q, double *answer)
{
    answer[0] = crossed(c, &q->from) - crossed(c, &q->now);
    answer[1] = answer[0] * answer[0];
}

static void answer_members(const mixture_client *c, const mixture_question *q, double *answer)
{
    if (c->number >= q->first && c->number - q->first < q->count)
        mixture_weights(c, &q->now, answer + (c->number - q->first) * q->now.K);
}

void mixture_answer(const mixture_client *c, const mixture_question *q, double *answer)
{
    static void (*const answers[MIXTURE_KINDS])(const mixture_client *, const mixture_question *, double *) = {
#define MIXTURE_ROW(name, down, most, up, answer, ...) [MIXTURE_##name] = answer,
        GROUPS_QUESTIONS(MIXTURE_ROW)
#undef MIXTURE_ROW
    };
    memset(answer, 0, mixture_length(q, c->M) * sizeof *answer);
    answers[q->kind](c, q, answer);
}
