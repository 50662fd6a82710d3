/* The prox of a loss of one observation over the box |w_m| <= B (docs/algorithm.md, "The prox of a loss in a box"). */
#ifndef HFSAD_MATH_BOX_H
#define HFSAD_MATH_BOX_H

#include "hfsad/hfsad.h"

/* Doubles of scratch for box_prox. */
size_t box_scratch(size_t M);

/* The function that is minimised along x: a loss, or phase retrieval's majorant around an anchor (loss_phase.h). */
typedef struct {
    const hfsad_loss *loss;
    double y;
    const double *anchor; /* NULL: the loss itself */
} scalar_loss;

/* The t for which w = clip(v - t x) is argmin phi(<x,w>) + sigma/2 |w - v|^2, |w_m| <= loss->box for m < boxed. */
double box_search(const scalar_loss *law, size_t M, size_t boxed, const double *x, const double *v, double sigma,
                  double *scratch);

/* w = argmin phi(<x,w>) + sigma/2 |w - v|^2, |w_m| <= loss->box. w may be v. */
void box_prox(const scalar_loss *law, size_t M, const double *x, const double *v, double sigma, double *w,
              double *scratch);

#endif
