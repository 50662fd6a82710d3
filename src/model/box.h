/* The prox of a loss of one observation over the box |w_m| <= B (section 5). */
#ifndef HFSAD_MODEL_BOX_H
#define HFSAD_MODEL_BOX_H

#include "hfsad/hfsad.h"

/* Doubles of scratch for box_prox. */
size_t box_scratch(size_t M);

/* w = argmin loss(y, <x,w>) + sigma/2 |w - v|^2, |w_m| <= loss->box. w may be v. */
void box_prox(const hfsad_loss *loss, size_t M, const double *x, double y, const double *v, double sigma, double *w,
              double *scratch);

#endif
