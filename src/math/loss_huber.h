/* Huber's loss: r^2 / 2 if |r| <= delta, delta |r| - delta^2 / 2 beyond. */
#ifndef HFSAD_MATH_LOSS_HUBER_H
#define HFSAD_MATH_LOSS_HUBER_H

#include "math/loss_kind.h"

VEC_FN vec huber_value(const hfsad_loss *loss, vec y, vec s)
{
    const vec a = vec_abs(vec_sub(y, s)), delta = vec_set(loss->delta), inner = vec_min(a, delta);
    return vec_add(vec_mul(vec_set(0.5), vec_mul(inner, inner)), vec_mul(delta, vec_sub(a, inner)));
}

VEC_FN vec huber_shift(const hfsad_loss *loss, vec y, vec s0, vec kappa)
{
    const vec most = vec_mul(kappa, vec_set(loss->delta));
    const vec d = vec_mul(vec_sub(y, s0), vec_div(kappa, vec_add(vec_set(1), kappa)));
    return vec_clip(d, vec_sub(vec_zero(), most), most);
}

LOSS_FN double huber_row_slope(const hfsad_loss *loss, double y, double s0, double kappa, double now)
{
    (void)now;
    return -loss_clip((y - s0) / (1 + kappa), -loss->delta, loss->delta);
}

LOSS_FN double huber_slope(const hfsad_loss *loss, double y, double s)
{
    const double r = y - s;
    return r > loss->delta ? -loss->delta : r < -loss->delta ? loss->delta : -r;
}

LOSS_FN double huber_bend(const hfsad_loss *loss, double y, double s)
{
    return fabs(y - s) <= loss->delta;
}

LOSS_FN double huber_conjugate(const hfsad_loss *loss, double y, double a)
{
    (void)loss;
    return a * y + a * a / 2;
}

LOSS_FN void huber_slopes(const hfsad_loss *loss, double y, double *low, double *high)
{
    (void)y;
    *low = -loss->delta;
    *high = loss->delta;
}

LOSS_FN double huber_gap(const hfsad_loss *loss, double y, double s, double a)
{
    const double r = y - s, delta = loss->delta, side = r > 0 ? a : -a; /* the slope for r > 0 */
    if (fabs(r) <= delta)
        return (r + a) * (r + a) / 2;
    return (delta + side) * (fabs(r) - delta + (delta + side) / 2);
}

LOSS_FN double huber_steepest(const hfsad_loss *loss, double y)
{
    (void)y;
    return loss->delta;
}

LOSS_FN double huber_likely_bend(const hfsad_loss *loss, double spread)
{
    return fmin(1, loss->delta / spread);
}

LOSS_FN double huber_noise(const hfsad_loss *loss, double spread)
{
    return fmin(loss->delta, spread);
}

LOSS_ROW huber_kind = {
    .parameters = LOSS_HAS_delta,
    .fit = LOSS_FIT_FIXED,
    .start = LOSS_START_MEAN,
    .slope = huber_slope,
    .bend = huber_bend,
    .conjugate = huber_conjugate,
    .slopes = huber_slopes,
    .gap = huber_gap,
    .steepest = huber_steepest,
    .likely_bend = huber_likely_bend,
    .noise = huber_noise,
    .ease = 0.25,
    .polish_slope = huber_steepest,
    .polish_bend = loss_one,
};

#endif
