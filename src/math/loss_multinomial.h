/*
 * Multinomial loss: log(sum over k of exp(s_k)) - s_y, y = 0, 1, … below loss.classes, with a score s_k for each class.
 * The functions of one score are empty here; core/softmax.h has the functions of all scores.
 */
#ifndef HFSAD_MATH_LOSS_MULTINOMIAL_H
#define HFSAD_MATH_LOSS_MULTINOMIAL_H

#include "math/loss_own.h"

VEC_FN vec multinomial_value(const hfsad_loss *loss, vec y, vec s)
{
    return own_value(loss, y, s);
}

VEC_FN vec multinomial_shift(const hfsad_loss *loss, vec y, vec s0, vec kappa)
{
    return own_shift(loss, y, s0, kappa);
}

LOSS_FN double multinomial_row_slope(const hfsad_loss *loss, double y, double s0, double kappa, double now)
{
    return own_row_slope(loss, y, s0, kappa, now);
}

LOSS_FN double multinomial_slope(const hfsad_loss *loss, double y, double s)
{
    return own_slope(loss, y, s);
}

LOSS_FN bool multinomial_fits(double y)
{
    return y >= 0 && y == floor(y);
}

/* Scale of y, and of the spread: p (1 - p) is at most this. */
LOSS_FN double multinomial_quarter(const hfsad_loss *loss, double any)
{
    (void)loss, (void)any;
    return 0.25;
}

LOSS_ROW multinomial_kind = {
    .endless = true,
    .several = true,
    .fit = LOSS_FIT_FIXED,
    .start = LOSS_START_ZERO,
    .fits = multinomial_fits,
    .takes = "the classes 0, 1, ... below loss.classes",
    .slope = multinomial_slope,
    .bend = multinomial_slope,
    .steepest = loss_one,
    .likely_bend = multinomial_quarter,
    .noise = own_noise,
    .ease = 0.1,
    .polish_slope = loss_one,
    .polish_bend = multinomial_quarter,
};

#endif
