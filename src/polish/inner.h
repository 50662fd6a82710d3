/* What the files of the polish's cloud share: its state, and Newton's method on one outer step's smooth problem. */
#ifndef HFSAD_POLISH_INNER_H
#define HFSAD_POLISH_INNER_H

#include "polish/lasso.h"
#include "polish/polish.h"

/* Upper limit on the number of exchanges, and how many of them are kept for endless.h. */
enum { POLISH_EXCHANGES = 20000, ENDLESS_EXCHANGES = 2000 };

typedef struct {
    const polish_problem *p;
    polish_result *result;
    size_t M;
    double kappa, beta, step; /* members of the questions */
    double theta;             /* factor of the proximal term theta/2 sum weight_m (w_m - centre_m)^2 */
    double stiff;             /* factor of rho */
    uint64_t rows;            /* number of polish_row so far */
    uint64_t reserve;         /* number of exchanges that are kept for later */
    bool gone;                /* ask has failed */
    bool spent;               /* POLISH_EXCHANGES - reserve questions were asked */
    bool direct;
    bool whole_metric; /* of the star */
    bool whole;        /* the last Newton step was a full step */

    /* M each. The coordinates' own part: l1_m |w_m| in the box, with its envelope's multipliers, then the smooth
     * ridge_m w_m^2 / 2 - tilt_m w_m. */
    double *l1, *ridge, *tilt, *multiplier, *rho;
    double *weight, *centre;
    double *scale; /* sum of the sizes of the terms in a derivative of this coordinate at the start of the stage: */
    double *steep, *curved; /* steep + sqrt(2 curved F) */

    /* At the last evaluated point. */
    double value, loss, model, gap, active;
    double *g;      /* gradient of the whole objective */
    double *bend;   /* of the coordinates' part and the proximal term */
    double *answer; /* room for the longest answer */

    const double *G; /* sum of c x x', its lower triangle, while a star has it; otherwise NULL */
    lasso *nearest;  /* for projections by it */
    double sigma;    /* sigma of the last star; 0: none */
    double none;     /* F at 0 */
    double floor;    /* reference for F if it is nearly 0: a share of the loss at 0, the scale of its rounding */
    double *w, *trial, *direction;
    double *lanes;   /* for the search: POLISH_SEARCH_ROOM vectors, if there is one */
    double *squares; /* answer to POLISH_SQUARES, if phase retrieval has second derivatives */
    bool squares_known;
    double *work;    /* 3 M */
    double rounding; /* part of the last bound that no step can remove */
    double charged;  /* part of it for slopes beyond their l1 */
    double *shift;   /* moves the rows' slopes by bend * <x, shift> */
    double *kept;    /* the shift of the smallest bound; not in work, which polish_direction uses */
    double *slopes;  /* sum over rows of slope * x */
    double
        *inflated; /* how much longer a coordinate may become than its column's size says, as others make up for it */
    double *root;  /* factor of the sum of c x x', its lower triangle; NULL: no star has asked for it */
} polish_state;

/* R_w of all inner nodes, and the box. */
double polish_prior_value(const polish_problem *p, const double *w);
void polish_cut_to_box(const polish_state *s, double *w);

bool polish_ask(polish_state *s, polish_kind kind, const double *vector, const double *point);
/* Evaluates value, gradient and second derivatives at w. */
bool polish_look(polish_state *s, const double *w);
/* Solves (second derivative at the last evaluated point + s->bend) direction = -s->g. */
bool polish_direction(polish_state *s);
/* Upper bound on how far the stage's model at w, the last evaluated point, is above its minimum. Slopes are repaired
 * while the bound is above `enough`. INFINITY: no bound. Changes g and bend. */
double polish_bound(polish_state *s, const double *w, double enough);
/* Whether a bound proves F to be within a relative gap of its minimum; zero: F at 0. */
bool polish_is_within(double gap, double bound, double F, double zero);
/* Newton's method from s->w until no derivative is above tolerance * scale; returns the number of steps, -1 if it did
 * not come near. */
int polish_newton(polish_state *s, double tolerance);

/* The coordinates' part. */
typedef struct {
    double value, slope, bend;
    double point; /* the point of the penalty itself, in the box */
} coordinate_part;
bool coordinate_exists(const polish_state *s, size_t m);
double coordinate_box(const polish_state *s, size_t m);
/* Whether the coordinate may not be below 0. */
bool coordinate_is_positive(const polish_state *s, size_t m);
coordinate_part coordinate_at(const polish_state *s, size_t m, double w);
/* Largest |derivative| / scale. */
double polish_size(const polish_state *s, const double *g);

#endif
