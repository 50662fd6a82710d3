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

/* Whether F never grows if one coordinate does, such as the intercept of a client whose rows are of one class. If its
 * rows are so far away already that they have neither a slope nor a bend that rounding leaves, Newton's steps do not
 * show it. All rows that have the column must be that far. */
static bool has_endless_coordinate(polish_state *s, double F)
{
    enum { MOST = 64 };
    const double flat = 1e-10, far = 1e4;
    int tried = 0;
    if (!polish_ask(s, POLISH_DIAGONAL, NULL, NULL))
        return false;
    double *bends = s->work;
    memcpy(bends, s->answer, s->M * sizeof *bends);
    memset(s->direction, 0, s->M * sizeof *s->direction);
    for (size_t m = 0; m < s->M && tried < MOST; m++) {
        if (!is_free(s, m) || !(bends[m] <= flat * s->weight[m]))
            continue;
        const double step = far * (fabs(s->w[m]) + sqrt(fabs(s->none) / s->weight[m]));
        tried++;
        s->direction[m] = 1;
        const double up = value_after(s, step), down = value_after(s, -step);
        s->direction[m] = 0;
        if (s->gone || s->spent)
            return false;
        const double same = F + 1e2 * DBL_EPSILON * fabs(F), more = F + 1e-6 * fmax(s->result->zero, fabs(F));
        if ((up <= same && !(down <= more)) || (down <= same && !(up <= more)))
            return true;
    }
    return false;
}

/* The probe: F is still lower after `far` steps. Its rows that lie on the plane move by rounding only if what is left
 * to fall is small, so it is made late. If there were a minimum, a row that resists would have to resist by less than
 * 1e-13 of what the others gain. */
bool polish_is_endless(polish_state *s, const double *w)
{
    enum { STEPS = 80 };
    const double far = 1e4, late = 1e-9, last = 1e-16;
    const double zero = fmax(s->result->zero, 1e-9 * s->none);
    bool any = false, found = false;
    memcpy(s->w, w, s->M * sizeof *w);
    memcpy(s->centre, w, s->M * sizeof *w);
    for (size_t m = 0; m < s->M; m++)
        any = any || is_free(s, m);
    s->theta = 1e-13;
    if (!any || !polish_look(s, s->w))
        return false;
    double F = s->loss + polish_prior_value(s->p, s->w);
    if (has_endless_coordinate(s, F))
        return true;
    if (s->gone || s->spent || !polish_look(s, s->w))
        return false;
    for (int i = 0; i < STEPS && !found; i++) {
        const double fall = find_step(s);
        if (!(fall > fmax(1e3 * DBL_EPSILON * fabs(F), last * zero)))
            return false;
        found = fall <= late * zero && value_after(s, far) <= F - 0.1 * fall;
        if (found || s->gone || s->spent)
            return found;
        if (!take_step(s, &F, fall))
            return false;
        memcpy(s->centre, s->w, s->M * sizeof *s->w);
    }
    return false;
}
