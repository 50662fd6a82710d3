/*
 * The centralized sub-gradient method of Davis, Drusvyatskiy, MacPhee and Paquette (2018), the paper's baseline: all
 * observations in one place,
 *
 *     w+ = P_box( w - t g/|g| ),   g in the subdifferential of F(w) = sum_j f_j(w) + prior(w)
 *
 * with the step t by one of four rules. It has no part in HFSAD.
 */
#ifndef HFSAD_RUN_SUBGRADIENT_H
#define HFSAD_RUN_SUBGRADIENT_H

#include "data/dataset.h"

typedef enum {
    STEP_GEOMETRIC, /* t = size shrink^k, k from 0 */
    STEP_POWER,     /* t = size / k^shrink, k from 1 */
    STEP_POLYAK,    /* t = size (F(w) - F*)/|g|, 0 if F(w) is below F* */
    STEP_CONSTANT,  /* t = size */
} step_kind;

typedef struct {
    step_kind kind;
    double size, shrink;
} step_rule;

/* The step number `done` (from 0) at a point with this excess F(w) - F* and |g|. */
double step_length(const step_rule *rule, uint64_t done, double excess, double norm);

/* The problem: a row-major copy of the observations, one loss, one prior. */
typedef struct {
    size_t n, M;
    double *x; /* n * M */
    double *y;
    hfsad_loss loss;
    hfsad_penalty prior;
} central_problem;

hfsad_status central_problem_create(central_problem **p, const dataset *d, const hfsad_loss *loss,
                                    const hfsad_penalty *prior, hfsad_error *err);
void central_problem_free(central_problem *p);
/* F at w, and a subgradient in g (M numbers) if g is not NULL. The box is left out. */
double central_objective(const central_problem *p, const double *w, double *g);

/* One step of the method on w, in place; g is scratch of M numbers. target = F*, read by STEP_POLYAK alone. */
void subgradient_step(const central_problem *p, const step_rule *rule, double target, uint64_t done, double *w,
                      double *g);

#endif
