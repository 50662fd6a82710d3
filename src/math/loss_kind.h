/*
 * What the program knows about a loss: one row of a table, each in its own file (such as loss_quantile.h).
 *
 * phi(s) is the loss of one row with the observation y, s = <x, w>, r = y - s. A loss file defines, with the prefix
 * that HFSAD_LOSS_LIST names,
 *
 *     <prefix>_value      phi of eight rows
 *     <prefix>_shift      d = s - s0 of eight rows; s minimises phi(s) + (s - s0)^2 / (2 kappa) globally, kappa > 0
 *     <prefix>_row_slope  convex losses, one row: the slope of phi at that minimiser, (s0 - s)/kappa. It is exact at
 *                         the bounds of the slope, so that a row which stays there does not move. now: the row's
 *                         present s, near which the minimiser may lie
 *     <prefix>_kind       its row of the table: everything below
 *
 * The innermost loops use the first three and <prefix>_slope: losses.h makes a switch over the list from them.
 * Everything else is called through the row.
 */
#ifndef HFSAD_MATH_LOSS_KIND_H
#define HFSAD_MATH_LOSS_KIND_H

#include "base/exp_log.h"
#include "hfsad/hfsad.h"
#include "math/vec.h"

#include <math.h>

/* The numbers of hfsad_loss that a loss may have: the member, the spec key loss.<member>, its name in files. */
#define LOSS_PARAMETERS(P) P(tau) P(delta) P(h)

enum {
#define LOSS_PARAMETER_NUMBER(name) LOSS_NUMBER_##name,
    LOSS_PARAMETERS(LOSS_PARAMETER_NUMBER)
#undef LOSS_PARAMETER_NUMBER
        LOSS_PARAMETER_COUNT
};
enum {
#define LOSS_PARAMETER_BIT(name) LOSS_HAS_##name = 1u << LOSS_NUMBER_##name,
    LOSS_PARAMETERS(LOSS_PARAMETER_BIT)
#undef LOSS_PARAMETER_BIT
};

/* The likelihood by which bic and aic judge the loss: see src/run/lambda_path.c. */
typedef enum { LOSS_FIT_NORMAL, LOSS_FIT_LAPLACE, LOSS_FIT_FIXED } loss_fit;

/* The start of an intercept: 0, the mean of y minus the features' part, or the logarithm of the mean of y. */
typedef enum { LOSS_START_ZERO, LOSS_START_MEAN, LOSS_START_LOG } loss_start;

typedef struct {
    unsigned parameters; /* LOSS_HAS_... */
    bool labels;         /* y is a class, -1 or 1 */
    bool endless;        /* for some y it falls for ever as s grows or falls: without a prior there may be no minimum */
    bool levels;         /* <x, w> is a tau-quantile of y: the share of y below it is reported */
    bool squared;        /* r^2 / 2: many rows are factorised once */
    bool several;        /* y is a class, 0, 1, …, and a row has a score for each class (core/softmax.h) */
    bool majorised;      /* not convex and even in s: many rows use a convex majorant around anchors (loss_phase.h) */
    loss_fit fit;
    loss_start start;

    /* Whether the loss accepts y; NULL: any finite y. takes: completes a message after "the loss takes". */
    bool (*fits)(double y);
    const char *takes;

    /* A subgradient of phi in s. */
    double (*slope)(const hfsad_loss *loss, double y, double s);
    /* Losses without a kink: the second derivative. NULL: the loss has a kink. */
    double (*bend)(const hfsad_loss *loss, double y, double s);
    /* Losses with a kink: phi with every |.| replaced by |.|_mu, and its slope. NULL: the loss is smooth. */
    double (*smoothed)(const hfsad_loss *loss, double y, double s, double mu, double *slope);
    /* The prediction of a model at s. NULL: s itself. */
    double (*predict)(double s);

    /* Convex losses: the conjugate phi*(a) = sup a s - phi(s), finite for a from low to high, and the Fenchel-Young gap
     * phi(s) + phi*(a) - a s >= 0 for such an a, without cancellation. */
    double (*conjugate)(const hfsad_loss *loss, double y, double a);
    void (*slopes)(const hfsad_loss *loss, double y, double *low, double *high);
    double (*gap)(const hfsad_loss *loss, double y, double s, double a);

    /*
     * Numbers for the presets (src/plan/scales.c). steepest: a bound on |slope|; for a loss without a bound, |slope| at
     * s = 0. growth: by how much |x| times the slope may exceed that if |s| <= span |x|, n = |x|^2; NULL: 0.
     * likely_bend: the second derivative at fitted rows; for a kink, its slopes spread over the scale of the residuals.
     * noise: the standard deviation of the slope at the true model. spread: the scale of y. score: the scale of s;
     * NULL: the scale of y.
     */
    double (*steepest)(const hfsad_loss *loss, double y);
    double (*growth)(const hfsad_loss *loss, double span, double n);
    double (*likely_bend)(const hfsad_loss *loss, double spread);
    double (*noise)(const hfsad_loss *loss, double spread);
    double (*score)(double spread);
    /* c over the second derivative. sigma grows with every step, so that a start that is too low is corrected and one
     * that is too high is not; and most rows of a fitted classifier have a small second derivative. */
    double ease;

    /* Bounds by which the polish judges derivatives: of |slope| beyond what the second derivative gives, and of the
     * second derivative. */
    double (*polish_slope)(const hfsad_loss *loss, double y);
    double (*polish_bend)(const hfsad_loss *loss, double y);
} loss_kind;

extern const loss_kind *const loss_kinds[];
extern const char *const loss_names[];

static inline const loss_kind *loss_kind_of(const hfsad_loss *loss)
{
    return loss_kinds[loss->kind];
}

/* Other values of y are refused when data are read. */
static inline bool loss_fits(const hfsad_loss *loss, double y)
{
    const loss_kind *kind = loss_kind_of(loss);
    return !kind->fits || kind->fits(y);
}

/* Writes "tau 0.5", the parameters of the loss, each after the separator; returns the length as snprintf does. */
size_t loss_parameters_text(const hfsad_loss *loss, const char *separator, char *text, size_t size);

/* ---- functions that several losses use ---- */

#if defined(HFSAD_VEC_CUDA)
#define LOSS_FN static inline __host__ __device__
#else
#define LOSS_FN static inline __attribute__((unused))
#endif

LOSS_FN double loss_clip(double a, double low, double high)
{
    const double above = low > a ? low : a;
    return high < above ? high : above;
}

/* One number after the other, for losses that need exp and log. */
VEC_FN vec loss_each(double (*f)(double, double, double), vec a, vec b, vec c)
{
    double first[VEC_LANES], second[VEC_LANES], third[VEC_LANES];
    vec_store(first, a);
    vec_store(second, b);
    vec_store(third, c);
    for (int i = 0; i < VEC_LANES; i++)
        first[i] = f(first[i], second[i], third[i]);
    return vec_load(first);
}

/* |t|_mu and its slope. */
static inline double smooth_abs(double t, double mu, double *slope)
{
    const double a = fabs(t);
    *slope = a >= mu ? copysign(1, t) : t / mu;
    return a >= mu ? a : t * t / (2 * mu) + mu / 2;
}

/* u log(u/e) - u + e for u >= 0 and e >= 0. log_e is given, because e itself may underflow to 0. Near u = e the series
 * of (1 + d) log(1 + d) - d is used, because the terms of the definition cancel there. */
LOSS_FN double loss_entropy_gap(double u, double e, double log_e)
{
    const double d = (u - e) / e;
    if (!(u > 0))
        return e;
    if (!(fabs(d) < 0.1))
        return u * (same_log(u) - log_e) - u + e;
    double sum = 0;
    for (int k = 18; k >= 2; k--)
        sum = 1.0 / (k * (k - 1)) - d * sum;
    return e * d * d * sum;
}

static inline bool loss_is_label(double y)
{
    return y == 1 || y == -1;
}

static inline double loss_one(const hfsad_loss *loss, double y)
{
    (void)loss;
    (void)y;
    return 1;
}

#define LOSS_ROW static const loss_kind __attribute__((unused))

#endif
