/*
 * The step of a client with many rows: w = argmin f(w) + sigma/2 |w - v|^2 over the box, where f is the sum of weight *
 * phi(y, <x, w>) over the client's rows. rows_body.h solves it; kernels.h says how it is compiled.
 */
#ifndef HFSAD_CORE_ROWS_PROX_H
#define HFSAD_CORE_ROWS_PROX_H

#include "data/rows.h"
#include "math/loss_kind.h"

typedef enum { ROWS_EXACT, ROWS_LINEARIZED } rows_method;

typedef struct {
    rows_method method;
    double tolerance; /* exact: sweeps end after one that moves w by at most tolerance |w - v| */
    uint32_t sweeps;  /* upper limit on the number of sweeps */
} rows_solver;

typedef struct squared_factor squared_factor;

typedef struct {
    const hfsad_loss *loss;
    const rows_solver *solver;
    client_rows rows;
    size_t M;
    double factor;  /* multiplies every row's weight: 1, or 1 over the sum of the weights */
    double *slope;  /* count: the rows' weighted slopes at the last solution, kept from step to step; exact only */
    double *anchor; /* count: phase retrieval by the exact method only */
    double *eta;    /* linearized: the majorising weight, kept from step to step */
    const squared_factor *squared; /* NULL: not factored */
    const hfsad_own_loss *own;     /* a loss supplied by the calling program; NULL: a built-in loss */
    size_t node;                   /* argument for that loss */
    double *scratch;               /* rows_scratch */
    uint64_t *visits;              /* exact: counts the rows that were read; may be NULL */
    double pull;   /* exact, convex loss without a box: w ends within pull / sigma of the solution; 0: no bound */
    bool *inexact; /* set to true if that bound was not reached */
} rows_problem;

size_t rows_scratch(size_t M, size_t rows);

/* What a callback receives. */
static inline hfsad_client rows_client(const rows_problem *p)
{
    return (hfsad_client){p->node, p->rows.count, p->M, p->rows.y, p->rows.weight, &p->rows};
}

/* Whether the exact method needs the anchors. */
static inline bool rows_anchored(const hfsad_loss *loss)
{
    return loss_kind_of(loss)->majorised;
}

/*
 * Squared loss without a box. X^T X = Q T Q^T with a tridiagonal T is formed once (X X^T if there are fewer rows than
 * coordinates); every sigma then costs two products with Q. NULL: no memory, or LAPACK failed.
 */
squared_factor *squared_create(const client_rows *rows, size_t M, double factor);
void squared_free(squared_factor *s);
/* Number of doubles that squared_create keeps for this number of rows. */
size_t squared_doubles(size_t rows, size_t M);
/* w = argmin factor sum weight (y - <x,w>)^2 / 2 + sigma/2 |w - v|^2; scratch: rows_scratch. */
void squared_prox(const squared_factor *s, const client_rows *rows, const double *v, double sigma, double *w,
                  double *scratch);

#endif
