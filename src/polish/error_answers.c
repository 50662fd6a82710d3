/*
 * The clients' answers for the standard errors (errors.h). A kink has no second derivative. It is replaced by the
 * density of the residuals there, estimated by a normal kernel, times the jump of the slope (Powell's sandwich).
 */
#include "polish/answers.h"

#include "math/loss_kind.h"

#include <math.h>

static double weight_of(const polish_client *o, size_t r)
{
    return o->factor * row_weight(&o->rows, r);
}

void answer_residuals(const polish_client *o, const polish_question *q, double *answer)
{
    double *moments = answer + POLISH_LEVELS;
    for (size_t r = 0; r < o->rows.count; r++) {
        const double rest = o->rows.y[r] - row_dot(&o->rows, r, q->vector);
        if (!(weight_of(o, r) > 0))
            continue;
        for (int i = 0; i < POLISH_LEVELS; i++)
            answer[i] += rest <= q->kappa + i * q->beta;
        moments[0] += 1;
        moments[1] += rest;
        moments[2] += rest * rest;
    }
}

static double jump_of(const hfsad_loss *loss, double y)
{
    double low, high;
    loss_kind_of(loss)->slopes(loss, y, &low, &high);
    return high - low;
}

void answer_bread(const polish_client *o, const polish_question *q, double *answer)
{
    const loss_kind *kind = loss_kind_of(o->loss);
    const double root = sqrt(2 * 3.14159265358979323846);
    for (size_t r = 0; r < o->rows.count; r++) {
        const double y = o->rows.y[r], s = row_dot(&o->rows, r, q->vector), z = (y - s) / q->kappa;
        const double bend =
            kind->bend ? kind->bend(o->loss, y, s) : jump_of(o->loss, y) * exp(-z * z / 2) / (root * q->kappa);
        if (bend > 0)
            polish_add_square(&o->rows, r, weight_of(o, r) * bend, answer);
    }
}

/* Rows of a quantile loss are below with probability tau, also rows in their kink: slope^2 has the expectation of that
 * distribution. */
void answer_meat(const polish_client *o, const polish_question *q, double *answer)
{
    const loss_kind *kind = loss_kind_of(o->loss);
    for (size_t r = 0; r < o->rows.count; r++) {
        const double c = weight_of(o, r), slope = kind->slope(o->loss, o->rows.y[r], row_dot(&o->rows, r, q->vector));
        const bool law = kind->levels && !kind->bend;
        polish_add_square(&o->rows, r, c * c * (law ? o->loss->tau * (1 - o->loss->tau) : slope * slope), answer);
    }
}
