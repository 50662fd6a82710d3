/*
 * How far the stage's convex model of F at w may lie above its minimum. Slopes a_r that the rows' losses have somewhere
 * bound the model from below: with h = sum of a_r x_r - tilt and every w',
 *
 *     model(w') >= model(w) - gap + sum over m of  h_m (w'_m - w_m) + l1_m (|w'_m| - |w_m|)
 *
 * (gap: polish_gap, added up). Its least value over w' is finite only if |h_m| <= l1_m for every coordinate without a
 * box. What a coordinate has above that, its excess, is charged as follows.
 *
 *   ridge           Its parabola, ridge_m w'_m^2 / 2 on both sides, makes the least value finite: excess^2 / (2 ridge).
 *   box             excess * box, the most that the coordinate can make of it.
 *   l1 without tilt The slopes are multiplied by t = min l1_m / |h_m|. The dual value is concave and not below 0 for
 *                   slopes of 0, because no loss is below 0: t times the bound is a bound.
 *   l1 with tilt    The losses are not below 0: sum of (l1_m - |tilt_m|) |w'_m| <= model(w) for every better w'.
 *   not below 0     Only -h_m counts: h_m above 0 holds the coordinate at 0.
 *   neither         Only rounding may be left. It is charged for models up to `reach` times as far as the scales of
 *                   the column and of F, and farther if other columns can make up for it (variance inflation);
 *                   anything larger means that there is no bound. Losses that are flat on one side do not keep better
 *                   models that near: `reach` is then of w itself and of F at 0. If the products of the columns are
 *                   known, G = L L', all such coordinates together are charged |L^-1 h| |L' (w' - w)|: the second
 *                   factor is how far the rows' scores may move, whatever the columns have in common.
 *
 * If that is not small the slopes are repaired: moved where rows are in their kink, or bend, so that h meets its
 * limits.
 */
#include "math/dot.h"
#include "polish/choice.h"
#include "polish/triangle.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Relative to a free coordinate's scale: upper limit on what counts as rounding. */
static const double dust = 1e-8, reach = 1e4, near_reach = 1000;

static double excess_of(const polish_state *s, size_t m, double h)
{
    return fmax((coordinate_is_positive(s, m) ? -h : fabs(h)) - s->l1[m], 0);
}

/* s->scale is of the stage's start, where the rows of a loss without a bound on its slope may be far steeper. */
static double scale_at(const polish_state *s, size_t m, double level)
{
    return fmin(s->scale[m], s->steep[m] + sqrt(2 * s->curved[m] * fabs(level)));
}

/* Bound on the rounding errors of F and of h_m w_m. */
static double rounding_of(const polish_state *s, const double *w, double level)
{
    double sum = fabs(level);
    for (size_t m = 0; m < s->M; m++)
        sum += scale_at(s, m, level) * fabs(w[m]);
    return 4 * DBL_EPSILON * sum;
}

/* h w + l1 |w| + ridge w^2 / 2 minus its minimum in the box, for a ridge above 0. */
static double ridge_gap(const polish_state *s, size_t m, double w, double h)
{
    const double ridge = s->ridge[m], excess = excess_of(s, m, h), box = coordinate_box(s, m);
    const double least = excess <= ridge * box ? excess * excess / (2 * ridge) : box * (excess - ridge * box / 2);
    const double off = excess - ridge * fabs(w);
    if (excess <= ridge * box && h * w < 0 && excess > 0) /* the same without cancellation */
        return off * off / (2 * ridge);
    return h * w + s->l1[m] * fabs(w) + ridge / 2 * w * w + least;
}

/* Upper limit on the distance of a free coordinate of a better model from w. */
static double free_reach(const polish_state *s, size_t m, double w, double level)
{
    const double far = fmax(reach, near_reach * s->inflated[m]), scale = scale_at(s, m, level);
    if (s->p->one_sided)
        return far * (fabs(w) + (scale > 0 ? fmax(fabs(level), s->result->zero) / scale : 0));
    return 2 * fabs(w) + (scale > 0 ? far * fabs(level) / scale : 0);
}

static bool is_free(const polish_state *s, size_t m)
{
    return s->ridge[m] == 0 && s->l1[m] == 0 && !isfinite(coordinate_box(s, m)) && !coordinate_is_positive(s, m);
}

/* Of all free coordinates together; INFINITY: the products of the columns are not known. */
static double free_charge(const polish_state *s, const double *w, double level)
{
    double *v = s->work, longest = 0;
    if (!s->root)
        return INFINITY;
    for (size_t m = 0; m < s->M; m++) {
        const double scale = scale_at(s, m, level), *line = s->root + m * (m + 1) / 2;
        v[m] = is_free(s, m) ? s->slopes[m] - s->tilt[m] : 0;
        longest = scale > 0 ? fmax(longest, sqrt(dot8(m + 1, line, line)) / scale) : longest;
    }
    triangle_forward(s->M, s->root, v);
    const double size = sqrt(dot8(s->M, v, v));
    if (!s->p->one_sided)
        return size * near_reach * longest * fabs(level);
    memset(v, 0, s->M * sizeof *v);
    for (size_t m = 0; m < s->M; m++)
        for (size_t k = 0; k <= m; k++)
            v[k] += s->root[m * (m + 1) / 2 + k] * w[m];
    return size * near_reach * (sqrt(dot8(s->M, v, v)) + longest * fmax(fabs(level), s->result->zero));
}

/* beyond: the contribution of columns that were not chosen. */
static double bound_of(polish_state *s, const double *w, double gap, choice_charge beyond)
{
    double level = s->model, base = fmax(gap, 0) + beyond.base, worst = beyond.worst, alone = 0;
    bool tilted = false;
    for (size_t m = 0; m < s->M; m++)
        level += s->l1[m] * fabs(w[m]) + s->ridge[m] / 2 * w[m] * w[m] - s->tilt[m] * w[m];
    for (size_t m = 0; m < s->M; m++) {
        const double h = s->slopes[m] - s->tilt[m], excess = excess_of(s, m, h), box = coordinate_box(s, m);
        const double hold = s->l1[m] - fabs(s->tilt[m]);
        if (s->ridge[m] > 0) {
            base += ridge_gap(s, m, w[m], h);
            continue;
        }
        tilted = tilted || s->tilt[m] != 0;
        if (is_free(s, m)) {
            alone += excess <= dust * s->scale[m] ? h * w[m] + excess * free_reach(s, m, w[m], level) : INFINITY;
            continue;
        }
        base += h * w[m] + s->l1[m] * fabs(w[m]);
        if (isfinite(box))
            base += excess * box;
        else if (hold > 1e-9 * s->l1[m])
            worst = fmax(worst, excess / hold);
        else if (excess <= dust * s->scale[m])
            base += excess * free_reach(s, m, w[m], level);
        else
            return INFINITY;
    }
    if (alone > 0)
        base += fmin(alone, free_charge(s, w, level));
    if (isnan(base) || isnan(alone) || isinf(base)) /* fmax would hide a NaN */
        return INFINITY;
    s->rounding = rounding_of(s, w, level);
    base = fmax(base, 0) + s->rounding;
    s->charged = worst * level;
    if (tilted)
        return base + worst * fmax(level, 0);
    return base < level ? (base + worst * level) / (1 + worst) : base;
}

/* By how much h of a coordinate exceeds its limit. */
static double coordinate_rest(const polish_state *s, size_t m, double w, double h)
{
    const double l1 = s->l1[m], box = coordinate_box(s, m);
    if (w >= box)
        return fmax(h + l1, 0);
    if (w <= -box)
        return fmin(h - l1, 0);
    if (w != 0)
        return h + copysign(l1, w);
    return copysign(excess_of(s, m, h), h); /* if a coordinate may not be below 0 and has an excess, its h is below 0 */
}

/* Whether a repair only reduces the excess over l1, a little at a time. On its way the star has about as many
 * coordinates off 0 as rows in their kinks, or more if there are many. A system that brings all of them to their l1 at
 * once is then singular or clips slopes. */
static bool is_gentle(const polish_state *s, size_t m)
{
    return (!s->direct || s->beta == POLISH_EASED) && s->l1[m] > 0 && s->ridge[m] == 0 &&
           !isfinite(coordinate_box(s, m));
}

/* Sets s->g and s->bend: what is repaired, and which coordinates take part. */
static bool set_repair(polish_state *s, const double *w)
{
    bool any = false;
    for (size_t m = 0; m < s->M; m++) {
        const double h = s->slopes[m] + s->ridge[m] * w[m] - s->tilt[m], box = coordinate_box(s, m);
        const bool kinked = s->l1[m] > 0 || coordinate_is_positive(s, m);
        const bool held = (w[m] == 0 && kinked) || fabs(w[m]) >= box;
        const bool gently = is_gentle(s, m);
        s->g[m] = gently ? copysign(excess_of(s, m, h), h) : coordinate_rest(s, m, w[m], h);
        s->bend[m] = s->weight[m] * (held && s->g[m] == 0 ? 1e12 : !gently ? 1e-13 : s->direct ? 1e-4 : 1e-2);
        any = any || s->g[m] != 0;
    }
    return any;
}

/* shift: of the nearest slopes that meet the limits of all columns, in the sum of (a' - a)^2 / c over the rows. With
 * a' = a + c <x, u> this u minimises u' G u / 2 + h' u + sum of l1_m |u_m|. Coordinates with a ridge or a box have no
 * limits. false: no memory. */
static bool find_nearest(polish_state *s)
{
    double *b = s->g, *box = s->bend, *ridge = s->work;
    if (!s->nearest && !(s->nearest = lasso_create(s->M, false)))
        return false;
    for (size_t m = 0; m < s->M; m++) {
        b[m] = s->tilt[m] - s->slopes[m];
        box[m] = s->ridge[m] == 0 && !isfinite(coordinate_box(s, m)) ? INFINITY : 0;
        ridge[m] = s->shift[m] = 0;
    }
    const lasso_problem p = {s->M, s->G, false, b, s->l1, ridge, box, 1, s->p->positive ? s->p->boxed : 0};
    lasso_solve(s->nearest, &p, s->shift);
    return true;
}

/* Of the last answer to POLISH_PROJECT: by how much a slope was beyond its loss's at most. */
static double largest_excess(const polish_state *s)
{
    const double *beyond = s->answer + s->M + 1;
    int i = POLISH_LEVELS - 1;
    while (i >= 0 && beyond[i] > 0)
        i--;
    return i < 0 ? INFINITY : i == POLISH_LEVELS - 1 ? 0 : polish_excess(i);
}

/* Projections in turn on the columns' limits, with over-relaxation, and on the losses' slopes, which leave less and
 * less to do. The last one multiplies the slopes instead of cutting them, so that columns without a prior have a sum
 * of 0. Neither needs second derivatives. */
static double projected_bound(polish_state *s, const double *w, double enough)
{
    enum { MOST = 12 };
    const double relax = 1.8, part = 0.2, kappa = s->kappa;
    const choice_charge none = {0};
    double now = INFINITY, over = 0;
    bool last = false;
    for (int i = 0; i < MOST && find_nearest(s); i++) {
        for (size_t m = 0; m < s->M && !last; m++)
            s->shift[m] *= relax;
        s->step = last && over < 1 ? 1 / (1 + over) : 1;
        const bool answered = polish_ask(s, POLISH_PROJECT, s->shift, w);
        s->step = s->kappa = 0;
        if (!answered)
            break;
        memcpy(s->slopes, s->answer, s->M * sizeof *s->slopes);
        now = bound_of(s, w, s->answer[s->M], none);
        if (last || now <= enough || (isfinite(now) && s->charged <= part * now))
            break;
        over = largest_excess(s);
        last = over * fabs(s->model) <= part * enough || i + 2 == MOST;
    }
    s->kappa = kappa;
    return now;
}

/* For chosen columns: their bound is a bound of the whole problem only if the slopes also meet the limits of all other
 * columns. */
static double whole_bound(polish_state *s, const double *w, const double *shift, double chosen)
{
    double gap;
    choice_charge beyond;
    if (!isfinite(chosen) || !choice_look(s, w, shift, &gap, &beyond))
        return INFINITY;
    const double whole = bound_of(s, w, gap, beyond);
    choice_judge(s->p->choice, chosen, whole);
    return whole;
}

double polish_bound(polish_state *s, const double *w, double enough)
{
    int repairs = s->direct ? 3 : 8;
    const choice_charge none = {0};
    bool gentle = false;
    for (size_t m = 0; m < s->M; m++)
        gentle = gentle || is_gentle(s, m);
    repairs = gentle ? 8 : repairs;
    memset(s->kept, 0, s->M * sizeof *s->kept);
    double best = bound_of(s, w, s->gap, none);
    if (s->G && !s->direct && best > enough) {
        const double now = projected_bound(s, w, enough);
        best = fmin(best, now);
        if (isfinite(best) || s->gap > enough) /* which the others would not lower either */
            return s->p->choice ? whole_bound(s, w, now <= best ? NULL : s->kept, best) : best;
        if (!polish_look(s, w))
            return best;
    }
    memset(s->shift, 0, s->M * sizeof *s->shift);
    for (int i = 0; i < repairs && best > enough; i++) {
        if (!set_repair(s, w) || !polish_direction(s))
            break;
        for (size_t m = 0; m < s->M; m++)
            s->shift[m] += s->direction[m];
        if (!polish_ask(s, POLISH_REPAIR, s->shift, w))
            break;
        memcpy(s->slopes, s->answer, s->M * sizeof *s->slopes);
        const double now = bound_of(s, w, s->answer[s->M], none);
        if (now < best && s->p->choice)
            memcpy(s->kept, s->shift, s->M * sizeof *s->kept);
        best = fmin(best, now);
        if (gentle && s->charged <= 0.05 * now) /* the limit of such repairs */
            break;
    }
    return s->p->choice ? whole_bound(s, w, s->kept, best) : best;
}
