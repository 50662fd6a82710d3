/*
 * All losses, and the four functions of each that innermost loops need. A switch generated from HFSAD_LOSS_LIST
 * chooses the function, so a loss without a file, or a file without its functions, does not compile. Code outside
 * innermost loops needs loss_kind.h only.
 */
#ifndef HFSAD_MATH_LOSSES_H
#define HFSAD_MATH_LOSSES_H

#include "math/loss_absolute.h"
#include "math/loss_expectile.h"
#include "math/loss_hinge.h"
#include "math/loss_huber.h"
#include "math/loss_logistic.h"
#include "math/loss_multinomial.h"
#include "math/loss_own.h"
#include "math/loss_phase.h"
#include "math/loss_poisson.h"
#include "math/loss_quantile.h"
#include "math/loss_smoothed_quantile.h"
#include "math/loss_squared.h"
#include "math/loss_squared_hinge.h"

VEC_FN vec loss_value(const hfsad_loss *loss, vec y, vec s)
{
    switch (loss->kind) {
#define LOSS_CASE(KIND, prefix, name)                                                                                  \
    case HFSAD_LOSS_##KIND:                                                                                            \
        return prefix##_value(loss, y, s);
        HFSAD_LOSS_LIST(LOSS_CASE)
#undef LOSS_CASE
    }
    return vec_zero();
}

/* d = s - s0 of the prox; kappa > 0 */
VEC_FN vec loss_shift(const hfsad_loss *loss, vec y, vec s0, vec kappa)
{
    switch (loss->kind) {
#define LOSS_CASE(KIND, prefix, name)                                                                                  \
    case HFSAD_LOSS_##KIND:                                                                                            \
        return prefix##_shift(loss, y, s0, kappa);
        HFSAD_LOSS_LIST(LOSS_CASE)
#undef LOSS_CASE
    }
    return vec_zero();
}

/*
 * With s = <x, w>, s0 = <x, v> and kappa = |x|^2 / sigma the prox of the loss is v + (d/|x|^2) x. This is d/|x|^2, the
 * coefficient of x; 0 if x is 0.
 */
VEC_FN vec loss_coefficient(const hfsad_loss *loss, vec y, vec n, vec s0, vec inv_sigma)
{
    const vmask some = vec_less(vec_zero(), n);
    const vec safe = vec_select(some, n, vec_set(1));
    const vec d = loss_shift(loss, y, s0, vec_mul(safe, inv_sigma));
    return vec_select(some, vec_div(d, safe), vec_zero());
}

/* The same for phase retrieval's majorant at the anchors. */
VEC_FN vec majorant_coefficient(vec y, vec n, vec anchor, vec s0, vec inv_sigma)
{
    const vmask some = vec_less(vec_zero(), n);
    const vec safe = vec_select(some, n, vec_set(1));
    const vec d = majorant_shift(y, anchor, s0, vec_mul(safe, inv_sigma));
    return vec_select(some, vec_div(d, safe), vec_zero());
}

LOSS_FN double loss_row_slope(const hfsad_loss *loss, double y, double s0, double kappa, double now)
{
    switch (loss->kind) {
#define LOSS_CASE(KIND, prefix, name)                                                                                  \
    case HFSAD_LOSS_##KIND:                                                                                            \
        return prefix##_row_slope(loss, y, s0, kappa, now);
        HFSAD_LOSS_LIST(LOSS_CASE)
#undef LOSS_CASE
    }
    return 0;
}

LOSS_FN double loss_slope(const hfsad_loss *loss, double y, double s)
{
    switch (loss->kind) {
#define LOSS_CASE(KIND, prefix, name)                                                                                  \
    case HFSAD_LOSS_##KIND:                                                                                            \
        return prefix##_slope(loss, y, s);
        HFSAD_LOSS_LIST(LOSS_CASE)
#undef LOSS_CASE
    }
    return 0;
}

/* The loss with every |.| replaced by |.|_mu, and its slope in s. */
static inline double loss_row_smooth(const hfsad_loss *loss, double y, double s, double mu, double *slope)
{
    const loss_kind *kind = loss_kind_of(loss);
    if (kind->smoothed)
        return kind->smoothed(loss, y, s, mu, slope);
    *slope = kind->slope(loss, y, s);
    return hfsad_loss_value(loss, y, s);
}

#endif
