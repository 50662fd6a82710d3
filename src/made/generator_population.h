/*
 * Data of clients with many rows: sparse linear models, correlated features, noise with heavy tails, and a minority of
 * the clients that follows other models.
 *
 *     regression       y = <x, w_g> + b_edge + s(x) (noise - its tau-quantile)
 *     classification   y = the sign of <x, w_g> + b_edge + s(x) noise, -1 or 1
 *     counts           y = a Poisson number of mean exp(<x, w_g> + b_edge), by the normal number `noise`; x is a
 * quarter as large, so that the means stay moderate
 *
 * so the tau-quantile of y given x is <x, w_g> + b_edge whatever the noise; s = 1 or, heteroscedastic, (1 + |x_1|)/2. A
 * client's features are normal with the covariances rho^|i-j| and a mean of the client; the b_edge are normal with mean
 * 0. w_1, the majority's model, has `nonzero` coefficients with sizes from 0.5 to 1.5; the others differ from it by
 * `distance` in the same number of coordinates.
 *
 * Every draw is a function of (seed, name of the client, counter): a client's rows do not depend on the number of other
 * clients or rows. Only the choice of the minority depends on the number of candidates.
 */
#ifndef HFSAD_MADE_GENERATOR_POPULATION_H
#define HFSAD_MADE_GENERATOR_POPULATION_H

#include "made/generator.h"
#include "made/generator_noise.h"

typedef enum { TASK_REGRESSION, TASK_CLASSIFICATION, TASK_COUNTS } population_task;
typedef enum { MINORITY_BY_CLIENT, MINORITY_BY_EDGE } minority_spread;

typedef struct {
    size_t edges, clients, features; /* L, clients below each edge, M; >= 1 */
    size_t nonzero;                  /* 1 … M */
    double rho;                      /* in (-1, 1) */
    double shift;                    /* standard deviation of the mean of a client's feature */
    double intercepts;               /* standard deviation of b_edge */
    population_task task;
    noise_law noise;
    double tau; /* in (0, 1); for regression */
    bool heteroscedastic;
    size_t groups;               /* models, the majority's among them: 1 … GROUPS_MOST */
    double minority;             /* share of the clients, or edges, that follow the models 2, 3, … */
    double distance;             /* > 0 */
    minority_spread minority_by; /* clients of every edge, or all clients of some edges */
    uint64_t seed;
} population_law;

enum { GROUPS_MOST = 20 };

/* Rows to train on and rows held out: the same law, other draws. */
typedef enum { ROWS_TRAIN, ROWS_TEST } population_part;

typedef struct population population;

/* Number of clients, or edges, in the minority. If groups > 1, it must be at least groups - 1 and not all of them. */
size_t population_minority(const population_law *law);

/* Fails without memory, and if two groups would have equal models because there are too few models at this distance. */
hfsad_status population_create(population **p, const population_law *law, hfsad_error *err);
void population_free(population *p);

/* Groups and clients count from 0 here; group 0 is the majority. */
size_t population_features(const population *p);
const double *population_truth(const population *p, size_t group);
size_t population_group(const population *p, size_t client);
size_t population_edge(const population *p, size_t client);
double population_intercept(const population *p, size_t edge);

/* Rows first … first + count - 1 of a client: x has count * M numbers, row by row, y has count. Any thread may call
 * this. */
void population_fill(const population *p, size_t client, population_part part, size_t first, size_t count, double *x,
                     double *y);
/* Passes this number of rows of every client, named edge1, … and client1, … across the federation. HFSAD_OK also if
 * `use` stopped early. */
hfsad_status population_rows(const population *p, population_part part, size_t rows, row_use use, void *context,
                             hfsad_error *err);

#endif
