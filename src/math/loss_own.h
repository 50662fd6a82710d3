/* A loss supplied by a program: hfsad_spec_own_loss. It is a function of a client, not of a row, so the functions of a
 * row return 0 here, and src/plan/scales.c asks the program for the rest. */
#ifndef HFSAD_MATH_LOSS_OWN_H
#define HFSAD_MATH_LOSS_OWN_H

#include "math/loss_kind.h"

VEC_FN vec own_value(const hfsad_loss *loss, vec y, vec s)
{
    (void)loss, (void)y, (void)s;
    return vec_zero();
}

VEC_FN vec own_shift(const hfsad_loss *loss, vec y, vec s0, vec kappa)
{
    (void)loss, (void)y, (void)s0, (void)kappa;
    return vec_zero();
}

LOSS_FN double own_row_slope(const hfsad_loss *loss, double y, double s0, double kappa, double now)
{
    (void)loss, (void)y, (void)s0, (void)kappa, (void)now;
    return 0;
}

LOSS_FN double own_slope(const hfsad_loss *loss, double y, double s)
{
    (void)loss, (void)y, (void)s;
    return 0;
}

LOSS_FN double own_likely_bend(const hfsad_loss *loss, double spread)
{
    (void)loss;
    return 1 / spread;
}

LOSS_FN double own_noise(const hfsad_loss *loss, double spread)
{
    (void)loss, (void)spread;
    return 1;
}

LOSS_ROW own_kind = {
    .fit = LOSS_FIT_FIXED,
    .start = LOSS_START_MEAN,
    .slope = own_slope,
    .bend = own_slope,
    .steepest = loss_one,
    .likely_bend = own_likely_bend,
    .noise = own_noise,
    .ease = 0.25,
    .polish_slope = loss_one,
    .polish_bend = loss_one,
};

#endif
