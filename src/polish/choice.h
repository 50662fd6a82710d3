/*
 * Sparse problems by the columns that matter. With l1 on every feature most coefficients end at 0, and a star or a
 * polish of the others is cheaper by the square of the columns left out. The cloud chooses the columns of the steepest
 * slopes, tells the clients (POLISH_CHOOSE, chosen.h), and solves the problem of these columns, all others at 0.
 * Whenever that has a bound, all columns are asked for the slopes of the same rows (POLISH_REPAIR): a column whose
 * slope is within its l1 keeps its 0, and the bound is one of the whole problem; columns beyond it are chosen too, and
 * it begins again from the point reached. If more than half of all columns would be chosen, it goes on without a
 * choice.
 */
#ifndef HFSAD_POLISH_CHOICE_H
#define HFSAD_POLISH_CHOICE_H

#include "polish/inner.h"

/* The contribution of columns that are not chosen to a bound: a sum, and the largest part by which a slope exceeds its
 * l1. */
typedef struct {
    double base, worst;
} choice_charge;

bool choice_pays(const polish_problem *problem);
/* Same contract as polish_solve. */
bool choice_solve(const polish_problem *problem, double *w, polish_result *result);

/* Slopes of all columns at w, with the rows' slopes moved by `shift`, or as the last POLISH_PROJECT left them if shift
 * is NULL; w and shift are in chosen columns. Sets s->slopes for the chosen columns. gap: the rows' gap. false: no
 * answer. */
bool choice_look(polish_state *s, const double *w, const double *shift, double *gap, choice_charge *beyond);
/* Whether other columns have slopes, at an approximate w, that show that they matter; also true if there is no
 * answer. */
bool choice_needs_more(polish_state *s, const double *w);
/* Records the bounds of the chosen columns alone and of all columns. */
void choice_judge(choice *c, double chosen, double whole);

/* c may be NULL: the results are then false and 0. */
bool choice_is_too_small(const choice *c); /* more columns are needed, and these cannot improve */
double choice_lower(const choice *c);      /* bound of F from below, by earlier choices */
double choice_sigma(const choice *c);      /* of the last star */
uint64_t choice_spent(const choice *c);    /* exchanges of earlier choices */
void choice_keep(choice *c, const polish_state *s, double lower);

/* The problem itself, without a choice. */
bool polish_solve_columns(const polish_problem *problem, double *w, polish_result *result);

#endif
