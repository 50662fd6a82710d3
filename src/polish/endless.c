#include "polish/endless.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Whether nothing but the losses keeps the coordinate from growing. One at its end, 0, stays there. */
static bool is_free(const polish_state *s, size_t m)
{
    return !(s->l1[m] > 0) && !(s->ridge[m] > 0) && !isfinite(coordinate_box(s, m)) &&
           !(coordinate_is_positive(s, m) && s->w[m] <= 0);
}

/* F at s->w + step * direction, which becomes s->trial. NAN: no answer, or outside of what a model may be. */
static double value_after(polish_state *s, double step)
{
    bool inside = true;
    for (size_t m = 0; m < s->M; m++) {
        s->trial[m] = s->w[m] + step * s->direction[m];
        inside = inside && !(coordinate_is_positive(s, m) && s->trial[m] < 0);
    }
    return inside && polish_look(s, s->trial) ? s->loss + polish_prior_value(s->p, s->trial) : NAN;
}

/* Newton's step from s->w, the last evaluated point. Returns twice the fall that it promises. */
static double find_step(polish_state *s)
{
    const double huge = 1e30;
    double fall = 0;
    for (size_t m = 0; m < s->M; m++)
        if (!is_free(s, m)) {
            s->g[m] = 0;
            s->bend[m] = huge * s->weight[m];
        }
    if (!polish_direction(s))
        return NAN;
    for (size_t m = 0; m < s->M; m++) {
        s->direction[m] = is_free(s, m) ? s->direction[m] : 0;
        fall -= s->g[m] * s->direction[m];
    }
    return fall;
}

/* Moves s->w by the step, or by a part of it if F would not fall. */
static bool take_step(polish_state *s, double *F, double fall)
{
    enum { HALVES = 30 };
    double step = 1;
    for (int i = 0; i < HALVES; i++, step /= 2) {
        const double there = value_after(s, step);
        if (there <= *F - 1e-4 * step * fall) {
            *F = there;
            memcpy(s->w, s->trial, s->M * sizeof *s->w);
            return true;
        }
        if (s->gone || s->spent)
            return false;
    }
    return false;
}

/* Whether the triangle of the last step shows a direction in which rows hardly bend: they are far away, or columns
 * depend on each other. */
static bool is_thin(const polish_state *s)
{
    const double thin = 1e-8;
    for (size_t m = 0; m < s->M; m++) {
        const double root = s->answer[m * (m + 1) / 2 + m];
        if (is_free(s, m) && root * root <= thin * s->weight[m])
            return true;
    }
    return false;
}

typedef enum { WALK_ENDLESS, WALK_MINIMUM, WALK_UNSURE } walk_end;

/* Newton's steps from s->w until what is left to fall is rounding. Near a minimum each fall is about the square of the
 * one before; without a minimum it is steadily about 1/e of it.
 *
 * The probe: F is still lower after `far` steps. Its rows that lie on the plane move by rounding only if what is left
 * to fall is small, so it is made late. If there were a minimum, a row that resists would have to resist by less than
 * 1e-13 of what the others gain. */
static walk_end walk(polish_state *s)
{
    enum { STEPS = 120 };
    const double far = 1e4, late = 1e-9, last = 1e-16;
    double before = INFINITY;
    memcpy(s->centre, s->w, s->M * sizeof *s->w);
    if (!polish_look(s, s->w))
        return WALK_UNSURE;
    double F = s->loss + polish_prior_value(s->p, s->w);
    const double zero = fmax(s->result->zero, F);
    for (int i = 0; i < STEPS; i++) {
        const double fall = find_step(s);
        if (!(fall > fmax(1e3 * DBL_EPSILON * fabs(F), last * zero)))
            return s->gone || s->spent || is_thin(s) ? WALK_UNSURE : WALK_MINIMUM;
        const bool steady = fall >= 0.1 * before && fall > 1e5 * DBL_EPSILON * fabs(F);
        if (steady && fall <= late * zero && value_after(s, far) <= F - 0.1 * fall) {
            s->result->vanishes = F - polish_prior_value(s->p, s->w) <= 10 * fall;
            return WALK_ENDLESS;
        }
        before = fall;
        if (!take_step(s, &F, fall))
            return WALK_UNSURE;
        memcpy(s->centre, s->w, s->M * sizeof *s->w);
    }
    return WALK_UNSURE;
}

bool polish_is_endless(polish_state *s, const double *w)
{
    bool any = false;
    memcpy(s->w, w, s->M * sizeof *w);
    for (size_t m = 0; m < s->M; m++)
        any = any || is_free(s, m);
    s->theta = 1e-13;
    if (!any)
        return false;
    const walk_end end = walk(s);
    if (end != WALK_UNSURE || s->gone || s->spent)
        return end == WALK_ENDLESS;
    /* At w the rows that fall may have no slope left that rounding shows. From 0 they are seen on their way. Whether
     * they fall for ever does not depend on the coordinates that are held. */
    for (size_t m = 0; m < s->M; m++)
        s->w[m] = is_free(s, m) && coordinate_is_positive(s, m) ? w[m] : 0;
    return walk(s) == WALK_ENDLESS;
}
