/*
 * Questions of the cloud to all clients before training. A question is a kind and some numbers; a client answers with a
 * few numbers computed from its rows. On the way up answers are combined: the first ones by their maximum, the others
 * are added, over the inner children of a node in their order, then over its leaves. No row leaves a client, and every
 * driver gets the same bits, in memory or over a network.
 *
 * Presets and starts are plain functions that ask through a `surveyor` and continue with the totals: at once in memory,
 * after all clients have answered in a federation. The questions depend only on earlier answers.
 */
#ifndef HFSAD_PLAN_SURVEY_H
#define HFSAD_PLAN_SURVEY_H

#include "base/pool.h"
#include "plan/choices.h"
#include "plan/questions.h"

/* The rows of SURVEY_QUESTIONS: what goes down -> what comes up. w: a row's weight, or a model.
 *
 *     CENTRE       -> sum w, sum w y; w: a row's weight
 *     SCALE        centre -> most pull; sum energy, sqrt(noise), weight (scales.h), w |y - centre|, w
 *     OWN          length -> most slope; sum bend, of a program's own loss
 *     BOUND        -> most pull within the box: Theorem 1's nu_f
 *     COLUMNS      -> sum w x_m^2 of the M columns, w y, w |x|^2
 *     BELOW        thresholds -> sum w, and of the rows with y <= threshold, of each
 *     BELOW_ONE    likewise y/|x|^2 <= threshold
 *     BELOW_FIT    thresholds, M numbers v -> with p = <x,v>^2: sum w p, and of those with y/p <= threshold
 *     TRUNCATED    limit, v -> sum w min(max(y, 0), limit) x <x,v>
 *     ROBUST       scale, v -> sum w T(y/(|x|^2 scale)) x <x,v> / |x|^2, T(t) = 1 - 1/t, at least -10
 *     LEFT         w -> sum of weights, of weight (y - <x,w>)
 *     ENERGY       -> sum w, w |x|^2: what features_prepare makes an intercept's column from
 *     MOMENTS      whether squares, centre -> rows_sum_columns of features.h; M: without an intercept
 *     MISFIT       thresholds, w -> as BELOW, of |y - <x,w>|, or |y - <x,w>^2|
 *     CURVE        of baseline_step.c -> of every group: sum a, sum a kappa mean(x x^T) v
 *     CURVE_ALONE  the same -> of every group: most kappa |mean(x x^T)| of a client
 *     LOSS         w -> sum of the loss at w
 *     LEVELS       thresholds, w or nothing -> sum of the slopes of the loss at <x,w> + threshold, of each
 *     GRADIENT     w -> M numbers: sum of the gradients of the loss at w
 */
typedef enum {
#define SURVEY_ENUM(name, ...) SURVEY_##name,
    SURVEY_QUESTIONS(SURVEY_ENUM)
#undef SURVEY_ENUM
        SURVEY_KINDS
} survey_kind;

typedef struct {
    survey_kind kind;
    size_t count;
    const double *values;
    size_t most, sums; /* numbers of an answer: combined by their maximum, and added */
} survey_question;

typedef struct {
    void *context;
    /* totals has most + sums places. */
    hfsad_status (*ask)(void *context, const survey_question *q, double *totals, hfsad_error *err);
} surveyor;

/* What a client answers from. */
typedef struct {
    client_rows rows;
    size_t M;
    hfsad_loss loss;
    bool mean;                 /* its loss is the mean over its rows */
    const hfsad_own_loss *own; /* NULL: none */
    size_t classes;            /* with scores of their own; 0: one score */
    size_t node, parent;
    double *scratch; /* 4 M numbers */
} survey_client;

/* The weighted median, found by counting below thresholds: first powers of 4 around the guess, then finer ones. values:
 * of the question, count of them, the thresholds first. */
hfsad_status survey_half_point(const surveyor *ask, survey_kind kind, double *values, size_t count, double guess,
                               double *at, hfsad_error *err);

void survey_answer(const survey_client *c, const survey_question *q, double *answer);
/* Adds a child's answer to the total. */
void survey_combine(const survey_question *q, double *totals, const double *answer);

/* What questions send over all links of a tree. */
typedef struct {
    uint64_t questions, bytes_up, bytes_down;
} survey_cost;

/* A surveyor over data in memory. spec may be NULL if only starts are computed. */
typedef struct {
    const dataset *d;
    const hfsad_spec *spec;
    choice_table choices;
    double *room; /* answers of every depth, and scratch */
    size_t room_size;
    uint64_t *words;  /* answers in fixed point of every depth, and of a child; NULL: sums are of doubles */
    size_t most;      /* numbers of such an answer */
    survey_cost cost; /* so far */
    double *assumed;  /* with noise: two rows, their y and weights, which every client answers from; NULL: its own */
    pool *threads; /* set by the caller, which frees it: edges are asked at once, with the same bits; NULL: in turn */
} local_survey;

hfsad_status local_survey_make(local_survey *s, const hfsad_spec *spec, const dataset *d, hfsad_error *err);
void local_survey_free(local_survey *s);
surveyor local_surveyor(local_survey *s);
/* The client `leaf` with these rows, which need not be those of s->d; scratch is s's. */
hfsad_status survey_client_make(const local_survey *s, size_t leaf, client_rows rows, survey_client *c,
                                hfsad_error *err);
/* Whether a question has, and asks for, the numbers that its kind has for models of M numbers. */
bool survey_question_fits(const survey_question *q, size_t M);

#endif
