/* A mixture at the cloud, and its fit by questions: expectation maximisation. */
#ifndef HFSAD_PERSONAL_FIT_H
#define HFSAD_PERSONAL_FIT_H

#include "personal/grow.h"

typedef struct {
    size_t K;
    double T, share[MIXTURE_MOST];
    double *w;         /* room for MIXTURE_MOST models, limited by problem->most */
    double likelihood; /* -log, of all clients, with the ridge */
} fitted;

typedef struct {
    const personal_problem *p;
    personal_result *result;
    size_t M;
    double rows;    /* weight of all rows */
    double least;   /* lower limit on T */
    double *column; /* M: mean square of a column, for the ridge */
    double *answer; /* room for the longest answer */
    double *before; /* models of the previous round */
    double *work;   /* triangle(M) + 4 M */
    double *l1, *ridge, *tilt;
    double *centre; /* M: centre of the ridge */
    bool centred;
    bool held; /* one group, with the ridge of classes that a plane separates */
    bool gone; /* ask has failed */
} grower;

/* Whether the loss has a scale that is estimated. */
bool mixture_has_scale(const hfsad_loss *loss);
mixture mixture_of(const fitted *m);
void fitted_copy(const grower *g, fitted *to, const fitted *from);
double bic_of(const grower *g, const fitted *m);
bool grower_ask(grower *g, const mixture_question *q);
/* The width of rounded kinks. */
double kappa_of(const grower *g, double T, bool fine);

/* When a fit ends. */
typedef struct {
    unsigned rounds;
    double tolerance; /* fall of the likelihood in a round */
    bool fine;        /* kinks are rounded less */
    double target;    /* BIC; the fit is given up if it cannot reach this. INFINITY: never */
} fit_limits;

/* Rounds of expectation maximisation from m. cut: NULL, or the first rounds use the weights of `from`, cut. */
void fit_mixture(grower *g, fitted *m, const fitted *from, const mixture_cut *cut, const fit_limits *limits);

#endif
