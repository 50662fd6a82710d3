/*
 * The prox over a box. Clipping the unconstrained answer is not the prox: a coordinate at its bound leaves more of the
 * change to the others. For a given s = <x, w> the nearest w in the box is w(t) = clip(v - t x, -B, B), and s(t) is
 * piecewise linear and decreasing in t. Between two breakpoints the free coordinates F are known, and with
 *
 *     s_F = sum_F x v + sum of the others' x w,      n_F = sum_F x^2,      s(t) = s_F - n_F t
 *
 * the objective is  phi(s) + sigma/2 (n_F t^2 + C): the scalar problem of the loss with s_F and n_F in place of s0 and
 * n.
 *
 * Phase retrieval: all stationary points are tried, clipped to their segment; the best of all segments is the prox.
 * Convex losses: sigma t is the slope of the loss at s(t), which decreases as t grows, so exactly one t fits. A segment
 * is skipped if its t lies beyond its end. sigma t is also the multiplier of the row; comparing values could not
 * determine it if s(t) is constant.
 */
#include "math/box.h"

#include "math/losses.h"

#define BOX_FN static
#define box_loss hfsad_loss_value
#include "math/box_body.h"

size_t box_scratch(size_t M)
{
    return 2 * 2 * M;
}

double box_search(const scalar_loss *law, size_t M, size_t boxed, const double *x, const double *v, double sigma,
                  double *scratch)
{
    return search_box(law, M, boxed, x, v, sigma, scratch);
}

void box_prox(const scalar_loss *law, size_t M, const double *x, const double *v, double sigma, double *w,
              double *scratch)
{
    const double t = box_search(law, M, M, x, v, sigma, scratch);
    for (size_t m = 0; m < M; m++)
        w[m] = clip(v[m] - t * x[m], law->loss->box);
}
