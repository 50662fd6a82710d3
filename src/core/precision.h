/*
 * Numbers of a client's link between two steps, run.precision. z and q - z are rounded to 24 digits of a float or the 8
 * of a bfloat16 when a step has formed them, and below the smallest normal float they become 0. A device then keeps
 * them in 4 or 2 bytes; the processor keeps the same values in 8, so that both have the same bits. All sums are of
 * doubles. q - z, not q: the multiplier is a function of this distance, which is far smaller than q.
 */
#ifndef HFSAD_CORE_PRECISION_H
#define HFSAD_CORE_PRECISION_H

#include <math.h>

typedef enum { PRECISION_DOUBLE, PRECISION_FLOAT, PRECISION_BFLOAT16 } precision_kind;

#define PRECISION_TINY 0x1p-126       /* smallest normal float, and bfloat16 */
#define PRECISION_MOST 0x1.fffffep127 /* largest float; what is above is infinite */

/* Dekker's factor 2^s + 1, whose product with a number splits off its last s of 53 digits; 0: all are kept. */
static inline double precision_split(precision_kind kind)
{
    return kind == PRECISION_FLOAT ? 0x1p29 + 1 : kind == PRECISION_BFLOAT16 ? 0x1p45 + 1 : 0;
}

/* a rounded. Never -0: a device forms q as z + (q - z), which is 0 if both are -0. */
static inline double precision_round(double split, double a)
{
    const double big = split * a, high = big - (big - a);
    if (!(split > 0))
        return a;
    return fabs(high) < PRECISION_TINY ? 0 : fabs(high) > PRECISION_MOST ? copysign(INFINITY, a) : high;
}

#endif
