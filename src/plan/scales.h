/*
 * What the presets know of the data: how hard a client's loss can pull, how much it bends, and how large a model is
 * likely to be. Everything is made of sums and maxima over the clients (survey.h).
 */
#ifndef HFSAD_PLAN_SCALES_H
#define HFSAD_PLAN_SCALES_H

#include "plan/survey.h"

/* A client's rows, or their mean. */
typedef struct {
    double pull;   /* bound of its subgradients |sum weight phi'(s) x| */
    double energy; /* sum weight |x|^2 */
    double noise;  /* sum weight^2 |x|^2: slopes that know nothing of each other add up by their squares */
    double weight;
} loss_facts;
/* reach > 0: bound of every |w_m|, for losses whose slope grows; 0: at w = 0. */
loss_facts loss_measure(const client_rows *rows, size_t M, const hfsad_loss *loss, bool mean, double reach);

/* A program's own loss: |gradient| at 0, and by how much it changes on the way down, per length. scratch: 3 M. */
typedef struct {
    double slope, bend;
} own_facts;
own_facts own_measure(const client_rows *rows, size_t M, size_t node, const hfsad_own_loss *own, double length,
                      double *scratch);

typedef struct {
    double omega;  /* the hardest pull of a client */
    double bend;   /* of a client's loss per coordinate, in the mean */
    double noise;  /* deviation of a coordinate of a client's gradient at its own truth, in the mean */
    double length; /* the likely size of a model */
    double slope;  /* largest |gradient| of a coefficient if all are 0 and the intercept fits; 0: not asked for */
    bool level;    /* every y is the same: 0 without an intercept, and for losses of counts */
    /* What the first answers say, for data_scales_settle. */
    double energy, deviations, weight; /* sums: weight |x|^2, of a client sqrt(noise), weight */
    double centre, spread;             /* mean of y if an intercept takes that up, and mean |y - centre| */
    double intercept;                  /* of a model without features, if `settled` */
    bool settled;
} data_scales;

/* Whether a prior's lambda is to be found from the data. */
bool lambda_is_wanted(const hfsad_spec *spec);

/* d: for the shape of the tree and the number of features; its rows are not looked at. */
hfsad_status data_scales_find(data_scales *t, const hfsad_spec *spec, const dataset *d, const surveyor *ask,
                              hfsad_error *err);

/* Whether a run of HFSAD by this spec starts from scales that a few outliers of y cannot move; and whether their spread
 * is one of quantiles, too. */
bool scales_are_settled(const hfsad_spec *spec);
bool spread_is_settled(const hfsad_spec *spec);
/* After data_scales_find: the intercept of a model without features, and for losses of bounded slope the median of
 * what that leaves of y in the place of a mean. */
hfsad_status data_scales_settle(data_scales *t, const hfsad_spec *spec, const dataset *d, const surveyor *ask,
                                hfsad_error *err);
/* Where the slopes of a convex loss add up to 0 if all rows get the same number beside <x, w>. w: M numbers; NULL: 0.
 * centre, spread: it is looked for within 4^8 spreads; beyond, and if there is no such number: an end of these. */
hfsad_status level_find(double *level, const double *w, size_t M, double centre, double spread, const surveyor *ask,
                        hfsad_error *err);

#endif
