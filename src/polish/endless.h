/*
 * Whether F has no minimum, because some losses fall for ever: logistic, multinomial, and poisson of counts of 0. There
 * is none exactly if a direction d exists along which no row's loss ever grows and some row's loss falls: a plane that
 * separates the classes, on which other rows may lie, or the counts of 0 from the others.
 *
 * Newton's method finds d. If there is a minimum its steps shrink to nothing. If not, each step moves the rows that
 * fall by about 1, for ever, and the other rows less and less: steps become a multiple of d.
 */
#ifndef HFSAD_POLISH_ENDLESS_H
#define HFSAD_POLISH_ENDLESS_H

#include "polish/inner.h"

/* w: a point near the least value. s->weight must be set, and no loss may have a kink. Changes s->w, trial and theta.
 */
bool polish_is_endless(polish_state *s, const double *w);

#endif
