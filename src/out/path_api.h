/* hfsad_path from within, for the program. */
#ifndef HFSAD_OUT_PATH_API_H
#define HFSAD_OUT_PATH_API_H

#include "base/whole_file.h"
#include "run/lambda_path.h"

struct hfsad_path {
    path *path;
    size_t count, M;
    double *lambdas, *w; /* w: count rows of M */
    path_point *points;
    double ratio;
    bool given; /* the lambdas are the caller's */
    path_rule rule;
    size_t chosen;
    size_t folds; /* of cross-validation; 0: none */
    bool fold_clients;
    path_prior prior;
    hfsad_data *data;
    unsigned threads;
    double *cv_loss, *cv_error; /* of every point, if there are folds: mean over them, and its standard error */
    bool solved, returned;      /* all points are there; the chosen run was made again, with its trace */
};

enum { PATH_LAMBDAS_MOST = HFSAD_PATH_LAMBDAS_MOST, PATH_LAMBDAS_USUAL = HFSAD_PATH_LAMBDAS };

#endif
