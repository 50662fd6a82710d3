/* The inside of hfsad_path, for the program. */
#ifndef HFSAD_OUT_PATH_API_H
#define HFSAD_OUT_PATH_API_H

#include "base/whole_file.h"
#include "run/lambda_path.h"

struct hfsad_path {
    path *path;
    size_t count, M;
    double *lambdas, *w; /* w: count models of M numbers */
    path_point *points;
    double ratio;
    bool given; /* the caller chose the lambdas */
    path_rule rule;
    size_t chosen;
    size_t folds; /* folds of cross-validation; 0: none */
    bool fold_clients;
    path_prior prior;
    hfsad_data *data;
    unsigned threads;
    double *cv_loss, *cv_error; /* per point, with folds: mean over the folds and its standard error */
    bool solved, returned;      /* all points are solved; the chosen run was repeated with its trace */
};

enum { PATH_LAMBDAS_MOST = HFSAD_PATH_LAMBDAS_MOST, PATH_LAMBDAS_USUAL = HFSAD_PATH_LAMBDAS };

#endif
