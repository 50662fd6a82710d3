/*
 * A client's part in the polish (polish.h): its rows' multipliers, and its answers to the cloud's questions. Every
 * answer is a vector whose sum over all clients is all that the cloud needs, so that edges can add answers up on the
 * way as they do in training.
 *
 * A row with a kink, c phi(y, s) at s = <x, w>, has a multiplier a, kept here, and enters by its envelope
 *
 *     min over s' of  c phi(y, s') + a (s - s') + c/(2 kappa) (s - s')^2
 *
 * whose slope in s is the next multiplier, a sub-gradient of c phi at the minimiser s'. Smooth losses enter as they
 * are. Phase retrieval is linearised at an anchor t, with u = 2 t s in the place of s and beta times its curvature:
 *
 *     c |y + t^2 - 2 t s| + beta c (s - t)^2        (above c |y - s^2| where beta = 1)
 */
#ifndef HFSAD_POLISH_ANSWERS_H
#define HFSAD_POLISH_ANSWERS_H

#include "core/scores.h"
#include "data/rows.h"

typedef enum {
    POLISH_ANCHOR,   /* phase retrieval is linearised at `vector`; answer: the loss there */
    POLISH_SCALES,   /* answer: polish_scales; the vector is not looked at */
    POLISH_VALUE,    /* at `vector`; answer: the gradient, then polish_value */
    POLISH_LINE,     /* answer: the derivative along `vector`, from `point`, after each of polish_steps */
    POLISH_DIAGONAL, /* of the second derivative at the last POLISH_VALUE */
    POLISH_HESSIAN,  /* its lower triangle, row by row */
    POLISH_PRODUCT,  /* it times `vector` */
    POLISH_COMMIT,   /* the multipliers become those at `vector`; answer: by how much, added up */
    POLISH_REPAIR, /* not for phase retrieval. The slopes at `point`, moved by bend * <x, vector> and cut to the slopes
                      that the loss has; answer: their sum over rows of slope * x, then the rows' gaps (polish_gap) */
    POLISH_GRAM,   /* answer: sum of c x x', its lower triangle row by row, then sum of c */
    POLISH_GRAM_DIAGONAL,   /* the same with the diagonal only */
    POLISH_SPREAD,          /* answer: the weight of rows with |y - <x, vector>| <= kappa 4^(i - POLISH_LEVELS/2) */
    POLISH_METRIC,          /* vector: POLISH_GRAM's sum, beta: that of c; star_client_begin */
    POLISH_METRIC_DIAGONAL, /* the same with the diagonal only */
    POLISH_ROUND,           /* star_client_round */
    POLISH_FORGET,          /* the multipliers become 0, and what the rounds kept is dropped, but for the metric if beta
                               is 1 (star_memory); answer: 0 */
    POLISH_RESIDUALS,       /* answer: rows with y - <x, vector> <= kappa + i beta, i from 0 to POLISH_LEVELS - 1, then
                               how many rows there are, the sum of the residuals and that of their squares */
    POLISH_BREAD,           /* at `vector`; answer: sum of c bend x x', its lower triangle; a kink's bend is its jump
                               times a normal density of deviation kappa at the residual */
    POLISH_MEAT,            /* at `vector`; answer: sum of c^2 slope^2 x x' */
    POLISH_SEARCH, /* phase retrieval. vector: POLISH_LANES points; answer: of each the gradient of the loss, then
                      the loss */
    POLISH_KINDS
} polish_kind;
enum { POLISH_LEVELS = 64, POLISH_MOMENTS = 3, POLISH_LANES = 8 };

/* beta of POLISH_VALUE and POLISH_REPAIR, if no loss is phase retrieval's: a row in its kink bends in proportion to the
 * distance of its slope to the ends of the kink. A repair then cuts hardly any slope. */
#define POLISH_EASED 2.0

typedef struct {
    polish_kind kind;
    double kappa; /* half the width, in s, over which an envelope rounds a kink of slopes -1 and 1 */
    double beta;  /* of phase retrieval, in [0, 1]; or POLISH_EASED */
    const double *vector;
    const double *point; /* POLISH_LINE and POLISH_REPAIR only */
    double step;         /* POLISH_METRIC and POLISH_ROUND only */
} polish_question;

/* Falling. */
enum { POLISH_STEPS = 16 };
extern const double polish_steps[POLISH_STEPS];

/* Behind the gradient. */
enum {
    POLISH_ENVELOPE, /* value of the envelopes and smooth losses */
    POLISH_LOSS,     /* the loss itself */
    POLISH_MODEL,    /* the same, but phase retrieval's linearised */
    POLISH_GAP,      /* what that is above its tangents at the next multipliers: with those a bound from below */
    POLISH_ACTIVE,   /* rows in their kink */
    POLISH_NUMBERS
};

/* Sums over rows: three vectors of M, then two numbers. */
enum {
    POLISH_SLOPES, /* bound of c |slope of phi| |x_m|, for losses that have one */
    POLISH_KINKS,  /* c x_m^2 of rows with a kink */
    POLISH_BENDS,  /* c x_m^2 times the largest bend of the smooth losses */
    POLISH_VECTORS
};
enum { POLISH_WEIGHT, POLISH_KINKED, POLISH_COUNTS }; /* c of rows with a kink, and how many they are */

/* Numbers that go down with a question, and how many of them are `point`. */
size_t polish_down(polish_kind kind, size_t M);
size_t polish_points(polish_kind kind, size_t M);
/* Length of an answer, and of the longest; direct: limit on the coordinates for POLISH_HESSIAN. */
size_t polish_length(polish_kind kind, size_t M);
size_t polish_longest(size_t M, size_t direct);

typedef struct star_client star_client;

typedef struct {
    const hfsad_loss *loss;
    client_rows rows;
    size_t M;
    double factor;      /* of every row's weight */
    double *multiplier; /* count; 0 at first */
    double *bend;       /* count: second derivative of the rows' part at the last POLISH_VALUE; of several scores the
                           probabilities, classes times as many */
    double *anchor;     /* count; for phase retrieval only, otherwise NULL */
    star_client **star; /* made by POLISH_METRIC; to be freed */
    const score_losses *scores; /* several: multiplier and bend have count numbers for each; NULL: one */
} polish_client;

/* c phi(y, s) less the tangent of slope a that touches it: c phi(y, s) + (c phi)*(a) - a s >= 0, 0 if a is a slope at
 * s. So sum of c phi(y, <x, w'>) >= sum of c phi(y, s) - polish_gap + a (<x, w'> - s) for every w': a bound from below.
 * a must be a slope of c phi somewhere (polish_cut). Not for phase retrieval and own losses. */
double polish_gap(const hfsad_loss *loss, double c, double y, double s, double a);
/* The slope of c phi next to a. */
double polish_cut(const hfsad_loss *loss, double c, double y, double a);

/* triangle += bend x x' */
void polish_add_square(const client_rows *rows, size_t r, double bend, double *triangle);

/* The last three questions: error_answers.c. */
void answer_residuals(const polish_client *client, const polish_question *question, double *answer);
void answer_bread(const polish_client *client, const polish_question *question, double *answer);
void answer_meat(const polish_client *client, const polish_question *question, double *answer);

/* answer: polish_length numbers, all written. Touches only what the client owns. */
void polish_answer(const polish_client *client, const polish_question *question, double *answer);

#endif
