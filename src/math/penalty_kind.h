/*
 * What the program knows about a penalty: one row of a table, each in its own file (such as penalty_mcp.h). All
 * penalties belong to one family, whose mathematics is in penalty_vec.h:
 *
 *     P(t) = slope |t| + ridge t^2 / 2 - weight h(t),   h = 0 up to theta, then a parabola of bend 1/kappa, then linear
 *
 * A penalty file defines, with the prefix that HFSAD_PENALTY_LIST names, <prefix>_shape and its row <prefix>_kind.
 */
#ifndef HFSAD_MATH_PENALTY_KIND_H
#define HFSAD_MATH_PENALTY_KIND_H

#include "hfsad/hfsad.h"

#include <math.h>

/* flat: nothing; linear: slope |t| alone; ridged: slope |t| + ridge t^2 / 2; concave: slope |t| - weight h(t). */
typedef enum { PENALTY_FLAT, PENALTY_LINEAR, PENALTY_RIDGED, PENALTY_CONCAVE } penalty_form;

typedef struct {
    double slope;        /* slope of P next to t = 0 */
    double ridge;        /* ridged */
    double theta, kappa; /* concave */
} penalty_shape;

typedef struct {
    penalty_form form;
    bool group; /* acts on the norm of the vector, not on each coordinate */
    bool has_ratio;
    double gamma; /* default for a spec without gamma */
} penalty_kind;

extern const penalty_kind *const penalty_kinds[];
extern const double penalty_gamma_above[]; /* lower limit on gamma; 0: the penalty has no gamma */
extern const char *const penalty_names[];  /* names in the spec: of a prior, or of a link that is not a prior */

static inline const penalty_kind *penalty_kind_of(const hfsad_penalty *p)
{
    return penalty_kinds[p->kind];
}

/* Whether the penalty is constant far from 0. */
static inline bool penalty_is_concave(const hfsad_penalty *p)
{
    return penalty_kind_of(p)->form == PENALTY_CONCAVE;
}

/* Whether the penalty is "none". */
static inline bool penalty_is_flat(const hfsad_penalty *p)
{
    return penalty_kind_of(p)->form == PENALTY_FLAT;
}

/* The largest slope for |t| <= reach. */
double penalty_steepest(const hfsad_penalty *p, double reach);
/* Second derivative of a ridge; otherwise 0. */
double penalty_ridge(const hfsad_penalty *p);

#define PENALTY_FN static inline __attribute__((unused))
#define PENALTY_ROW static const penalty_kind __attribute__((unused))

#endif
