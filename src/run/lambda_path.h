/*
 * A path of models: the same run for one lambda of a prior after another, from large to small, each started from the
 * end of the previous one; and the criteria for choosing among them.
 */
#ifndef HFSAD_RUN_LAMBDA_PATH_H
#define HFSAD_RUN_LAMBDA_PATH_H

#include "run/handle.h"

typedef enum { PATH_CLOUD, PATH_EDGE } path_prior;
typedef enum { PATH_HELDOUT, PATH_BIC, PATH_AIC, PATH_ONE_SE, PATH_CV } path_rule;

typedef struct {
    double lambda;
    hfsad_figures figures;
    size_t nonzero; /* coefficients of the cloud's model that the prior may make zero and did not */
    double heldout; /* mean loss of the held-out rows; NAN: none are held out */
    double bic, aic;
    hfsad_verdict_kind verdict;
    double gap_bound; /* how far the objective is above its minimum at most; NAN: not known */
    double *w;        /* the cloud's model, hfsad_run_features numbers; the caller's */
} path_point;

typedef struct path path;

typedef struct {
    path_prior prior;
    double share;        /* of every client's rows held out; 0: none */
    const char *file;    /* held-out rows; NULL: none */
    hfsad_data *heldout; /* the same in memory */
    hfsad_data *memory;  /* to train on; NULL: the spec's files */
    size_t folds, fold;  /* the rows of this fold are held out (data/split.h); 0: no folds */
    bool fold_clients;   /* folds of clients, not of rows */
    unsigned threads;
} path_settings;

/* Reads the data and takes all memory. The prior must not be none. */
hfsad_status path_create(path **p, const hfsad_spec *spec, const path_settings *settings, hfsad_error *err);
void path_free(path *p);
hfsad_run *path_run(path *p);
/* The spec of the lambda in force. */
const hfsad_spec *path_spec(const path *p);

/* Error if the counters cannot hold the steps of a path with this number of points. */
hfsad_status path_check_length(const path *p, size_t points, hfsad_error *err);

/* Asked after every iteration, or exchange of a star; true: give up. A path that gave up can only be freed. */
typedef bool (*path_ask)(void *context);

/*
 * The smallest lambda with a cloud's model of zeros. Convex losses: from the gradient at zero, raised if a run from the
 * start does not end at zero. Phase retrieval, whose gradient at zero is 0: by bisection, to a hundredth, between runs
 * that end at zero and runs that do not, so it depends on run.iterations. HFSAD_ERROR_INPUT if none is found.
 */
hfsad_status path_lambda_max(path *p, double *lambda, path_ask stop, void *context, hfsad_error *err);

/* From the run's own start again. */
void path_restart(path *p);
/* The next point: the run with this lambda from the current state of the path, including the counters of the links
 * (with counters of 0 the smoothing would be coarse again and the start lost), or the model and slopes of a star. */
hfsad_status path_solve(path *p, double lambda, path_point *point, path_ask stop, void *context, hfsad_error *err);
/* Saves the start of the last point: path_return restores it, with its lambda in force, to repeat the point. */
void path_remember(path *p);
hfsad_status path_return(path *p, hfsad_error *err);
/* Whether the points are trained by star. */
bool path_is_star(const path *p);

/* The index of the best point; of equals the first, which has the largest lambda. */
size_t path_choose(const path_point *points, size_t count, path_rule rule);

#endif
