/*
 * The catalogue of questions: one row for each kind that a client answers. A row has the words of the audit, the specs
 * that imply the question, how many different ones a client answers, which of its numbers are models, how its answer is
 * masked, and what a budget makes of it. Rows of star, polish and standard errors come from polish_table. A kind
 * without a row is answered by no client. docs/audit.md shows the catalogue as a table, and tests/test_catalogue.c
 * compares the two.
 */
#ifndef HFSAD_NET_CATALOGUE_H
#define HFSAD_NET_CATALOGUE_H

#include "net/inquiry.h"
#include "plan/fixed_answer.h"
#include "spec/settings.h"

/* The numbers of a question that privacy.largest bounds. */
typedef enum {
    MODEL_NONE,   /* thresholds, a matrix, a direction, or no numbers */
    MODEL_SET_UP, /* the set-up: a model from one place on (warden.c: steps) */
    MODEL_ALL,    /* the polish: everything behind the head */
    MODEL_POINT,  /* the polish: the second half, a point; the first is a direction */
    MODEL_GROUPS, /* the models of one or two mixtures */
} catalogue_models;

/* What a budget (privacy.rho) makes of the question. */
typedef enum {
    BUDGET_MADE_UP,   /* answered for made-up rows */
    BUDGET_NOT_ASKED, /* refused: the spec does not imply it */
    BUDGET_NOTHING,   /* its answer has nothing of the rows */
} catalogue_budget;

typedef struct {
    int kind;
    const char *text;   /* in the audit */
    const char *by;     /* the specs that imply it, in words */
    const char *refuse; /* word of privacy.refuse; "": none */
    unsigned most;      /* different questions, for each score; 0: of the set-up, see warden.c: steps */
    catalogue_models models;
    maxima_rule maxima; /* with secure aggregation the answer is masked, and its maxima travel in this way */
    catalogue_budget budget;
} catalogue_row;

/* The row of a kind; false: there is no such question. */
bool catalogue_find(int kind, catalogue_row *row);
/* Whether a spec implies a question after the set-up. */
bool catalogue_implies(const hfsad_spec *spec, int kind);
/* The words of the audit. */
const char *catalogue_describe(int kind);

#endif
