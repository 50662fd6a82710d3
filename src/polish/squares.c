/* See squares.h. */
#include "polish/squares.h"

#include "core/kernels.h"
#include "math/losses.h"

#include <string.h>

static void add_line(const square_rows *s, size_t m, double *line)
{
    double factors[SQUARES_ROWS];
    for (size_t i = 0; i < s->count; i++)
        factors[i] = s->factor[i] * s->x[i][m];
    kernels()->add_terms(m + 1, s->count, factors, s->x, line);
}

void squares_add(square_rows *s, size_t first, size_t end, double *triangle)
{
    for (size_t m = first; m < end && s->count; m++)
        add_line(s, m, triangle + m * (m + 1) / 2);
    s->count = 0;
}

void squares_add_sum(square_rows *s, size_t first, size_t end, double *line, double *triangle)
{
    for (size_t m = first; m < end && s->count; m++) {
        memset(line, 0, (m + 1) * sizeof *line);
        add_line(s, m, line);
        kernels()->add(m + 1, triangle + m * (m + 1) / 2, line);
    }
    s->count = 0;
}

double squares_factor(const polish_client *o, const polish_question *q, size_t r)
{
    if (q->kind == POLISH_HESSIAN)
        return o->bend[r];
    return loss_kind_of(o->loss)->majorised ? o->factor * row_weight(&o->rows, r) : 0;
}

void answer_squares(const polish_client *o, const polish_question *q, double *answer)
{
    square_rows s = {.M = o->M};
    const bool suits = squares_suit(&o->rows);
    for (size_t r = 0; r < o->rows.count; r++) {
        const double factor = squares_factor(o, q, r);
        if (!(factor > 0))
            continue;
        if (!suits) {
            polish_add_square(&o->rows, r, factor, answer);
            continue;
        }
        s.x[s.count] = o->rows.x + row_from(&o->rows, r);
        s.factor[s.count++] = factor;
        if (s.count == SQUARES_ROWS)
            squares_add(&s, 0, o->rows.F, answer);
    }
    squares_add(&s, 0, o->rows.F, answer);
}
