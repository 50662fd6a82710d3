/*
 * A client's part in the polish (polish.h): its rows' multipliers, and its answers to the cloud's questions. Every
 * answer is a vector, and the cloud needs only the sum over all clients, so edges add up answers on the way as they do
 * in training.
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
#include "plan/questions.h"

/* The rows of POLISH_QUESTIONS (plan/questions.h), a question about `vector`.
 *
 * ANCHOR: phase retrieval is linearised at `vector`; answer: the loss there
 *
 * SCALES: answer: polish_scales; the vector is not used
 *
 * VALUE: at `vector`; answer: the gradient, then polish_value
 *
 * LINE: answer: the derivative along `vector`, from `point`, after each of polish_steps
 *
 * DIAGONAL: diagonal of the second derivative at the last POLISH_VALUE
 *
 * HESSIAN: lower triangle of that second derivative, row by row; of phase retrieval without the parabola, whose part
 *   is 2 beta times SQUARES
 *
 * PRODUCT: that second derivative times `vector`
 *
 * COMMIT: the multipliers move to those at `vector`; answer: the sum of the moves
 *
 * REPAIR: not for phase retrieval. The slopes at `point`, moved by bend * <x, vector> and cut to the slopes that
 *   the loss has; answer: their sum over rows of slope * x, then the rows' gaps (polish_gap)
 *
 * GRAM: answer: sum of c x x', its lower triangle row by row, then sum of c
 *
 * GRAM_DIAGONAL: the same with the diagonal only
 *
 * SPREAD: answer: the weight of rows with |y - <x, vector>| <= kappa 4^(i - POLISH_LEVELS/2)
 *
 * METRIC: vector: POLISH_GRAM's sum, beta: that of c; star_client_begin
 *
 * METRIC_DIAGONAL: the same with the diagonal only
 *
 * ROUND: star_client_round
 *
 * FORGET: the multipliers become 0, and what the rounds kept is dropped, but for the metric if beta is 1
 *   (star_memory); answer: 0
 *
 * RESIDUALS: answer: rows with y - <x, vector> <= kappa + i beta, i from 0 to POLISH_LEVELS - 1, then how many
 *   rows there are, the sum of the residuals and that of their squares
 *
 * BREAD: at `vector`; answer: sum of c bend x x', its lower triangle; a kink's bend is its jump times a normal
 *   density of deviation kappa at the residual
 *
 * MEAT: at `vector`; answer: sum of c^2 slope^2 x x'
 *
 * SEARCH: phase retrieval. vector: POLISH_LANES points; answer: of each the gradient of the loss, then the loss
 *
 * CHOOSE: vector: 1 for every feature that later questions are about (chosen.h), otherwise 0; answer: 1
 *
 * PROJECT: The slopes that the last POLISH_PROJECT left, or those at `point` if kappa is above 0, are moved by c
 *   <x, vector>, multiplied by step, cut to the slopes that the loss has, and kept in place of the second
 *   derivatives. Answer: as of POLISH_REPAIR, then how many rows were beyond the end at which they were cut by
 *   more than polish_excess(i) of it, i from 0 to POLISH_LEVELS - 1
 *
 * SQUARES: answer: sum of c x x' over the rows of phase retrieval, its lower triangle row by row
 */
typedef enum {
#define POLISH_ENUM(name, ...) POLISH_##name,
    POLISH_QUESTIONS(POLISH_ENUM)
#undef POLISH_ENUM
        POLISH_KINDS
} polish_kind;
/* Coordinates up to which a star's metric may be whole (POLISH_GRAM, POLISH_METRIC), if that is worth its numbers. */
enum { STAR_WHOLE = 2048 };
/* Numbers of a question in a message that precede its vectors (net/federation_polish.c). */
enum { POLISH_HEAD = 5 };
enum { POLISH_LEVELS = 64, POLISH_MOMENTS = 3, POLISH_LANES = 16 };

/* beta of POLISH_VALUE and POLISH_REPAIR, if no loss is phase retrieval: a row in its kink gets a second derivative in
 * proportion to the distance of its slope from the ends of the kink. A repair then clips few slopes. */
#define POLISH_EASED 2.0

typedef struct {
    polish_kind kind;
    double kappa; /* half the width, in s, over which an envelope rounds a kink of slopes -1 and 1 */
    double beta;  /* for phase retrieval, in [0, 1]; or POLISH_EASED */
    const double *vector;
    const double *point; /* POLISH_LINE, POLISH_REPAIR and POLISH_PROJECT only */
    double step;         /* POLISH_METRIC, POLISH_ROUND and POLISH_PROJECT only */
    size_t chosen;       /* number of coordinates, if the question is about those of the last POLISH_CHOOSE; 0: all */
} polish_question;

/* In decreasing order, from 1 to 3e-10. */
double polish_excess(int i);

/* In decreasing order. */
enum { POLISH_STEPS = 16 };
extern const double polish_steps[POLISH_STEPS];

/* Numbers after the gradient. */
enum {
    POLISH_ENVELOPE, /* value of the envelopes and smooth losses */
    POLISH_LOSS,     /* the loss itself */
    POLISH_MODEL,    /* the same, with phase retrieval linearised */
    POLISH_GAP,      /* how far that is above its tangents at the next multipliers, which give a lower bound */
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
enum { POLISH_WEIGHT, POLISH_KINKED, POLISH_COUNTS }; /* c of rows with a kink, and their number */

typedef struct star_client star_client;
typedef struct polish_chosen polish_chosen;

typedef struct {
    const hfsad_loss *loss;
    client_rows rows;
    size_t M;
    double factor;          /* factor of every row's weight */
    double *multiplier;     /* count; 0 at first */
    double *bend;           /* count: second derivative of the rows' part at the last POLISH_VALUE, of phase retrieval
                               that of the kink; of several scores the
                               probabilities, classes times as many */
    double *anchor;         /* count; for phase retrieval only, otherwise NULL */
    star_client **star;     /* made by POLISH_METRIC; the owner frees it */
    polish_chosen **chosen; /* made by POLISH_CHOOSE; the owner frees it; NULL: that question is never asked */
    const score_losses *scores; /* several: multiplier and bend have count numbers for each; NULL: one */
} polish_client;

/* One entry for each kind: what goes down and comes up, the answer of a client, ASK_... */
typedef struct {
    question_shape down, up;
    void (*answer)(const polish_client *, const polish_question *, double *); /* the answer is 0 before */
    unsigned how;
    int bound;
} polish_entry;
extern const polish_entry polish_table[POLISH_KINDS];

/* Whether the solver may ask a question right after another one; before: a polish_kind, -1: none, the first question.
 */
bool polish_may_follow(polish_kind kind, int before);

/* Numbers that are sent down with a question, and how many of them are `point`. */
size_t polish_down(polish_kind kind, size_t M);
size_t polish_points(polish_kind kind, size_t M);
/* Length of an answer, and of the longest answer; direct: limit on the coordinates for POLISH_HESSIAN, which may be
 * chosen coordinates. */
size_t polish_length(polish_kind kind, size_t M);
size_t polish_longest(size_t M, size_t direct);

/* c phi(y, s) less the tangent of slope a that touches it: c phi(y, s) + (c phi)*(a) - a s >= 0, 0 if a is a slope at
 * s. So sum of c phi(y, <x, w'>) >= sum of c phi(y, s) - polish_gap + a (<x, w'> - s) for every w': a bound from below.
 * a must be a slope of c phi somewhere (polish_cut). Not for phase retrieval and own losses. */
double polish_gap(const hfsad_loss *loss, double c, double y, double s, double a);
/* The slope of c phi that is nearest to a. */
double polish_cut(const hfsad_loss *loss, double c, double y, double a);

/* triangle += bend x x' */
void polish_add_square(const client_rows *rows, size_t r, double bend, double *triangle);

/* The last three questions: error_answers.c. */
void answer_residuals(const polish_client *client, const polish_question *question, double *answer);
void answer_bread(const polish_client *client, const polish_question *question, double *answer);
void answer_meat(const polish_client *client, const polish_question *question, double *answer);

/* answer: polish_length numbers, all written. Changes only the client's own memory. */
void polish_answer(const polish_client *client, const polish_question *question, double *answer);
/* sum += answer, with the same bits, for a client of one row, whose answer has one term for each number: saves the room
 * and the time for answers that are long. false: ask polish_answer. */
bool polish_answer_added(const polish_client *client, const polish_question *question, double *sum);

#endif
