/* The public functions of a path: the grid, the points, the choice, and the chosen run made again. */
#include "out/path_api.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/read_file.h"
#include "base/whole_file.h"
#include "out/training.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { FOLDS_MOST = 1000 };
static const double LAMBDA_LEAST = 1e-90, LAMBDA_MOST = 1e90, RATIO_LEAST = 1e-12, RATIO_MOST = 0.999,
                    SHARE_MOST = 0.999, RATIO_USUAL = 1e-3;

static hfsad_status check_settings(const hfsad_path_settings *s, hfsad_error *err)
{
    const int rows = (s->heldout_share > 0) + (s->heldout != NULL) + (s->heldout_file != NULL);
    if (s->n_lambdas > PATH_LAMBDAS_MOST || (s->n_lambdas == 1 && !s->lambdas))
        return error_set(err, HFSAD_ERROR_INPUT, "n_lambdas = %zu; expected 2 to %d", s->n_lambdas, PATH_LAMBDAS_MOST);
    if (s->ratio != 0 && !(s->ratio >= RATIO_LEAST && s->ratio <= RATIO_MOST))
        return error_set(err, HFSAD_ERROR_INPUT, "ratio = %g; expected %g to %g", s->ratio, RATIO_LEAST, RATIO_MOST);
    if (!(s->heldout_share >= 0 && s->heldout_share <= SHARE_MOST))
        return error_set(err, HFSAD_ERROR_INPUT, "heldout_share = %g; expected 0 to %g", s->heldout_share, SHARE_MOST);
    if (rows > 1)
        return error_set(err, HFSAD_ERROR_INPUT, "held-out rows are given twice; give either a share, data or a file");
    if (s->select == HFSAD_SELECT_HELDOUT && !rows)
        return error_set(err, HFSAD_ERROR_INPUT, "a choice by held-out rows needs such rows; give a share of them");
    if (s->folds == 1 || s->folds > FOLDS_MOST)
        return error_set(err, HFSAD_ERROR_INPUT, "folds = %zu; expected 2 to %d, or 0", s->folds, FOLDS_MOST);
    if ((s->select == HFSAD_SELECT_ONE_SE || s->select == HFSAD_SELECT_CV) && !s->folds)
        return error_set(err, HFSAD_ERROR_INPUT, "a choice by cross-validation needs folds; give a number of them");
    if ((unsigned)s->select > HFSAD_SELECT_CV)
        return error_set(err, HFSAD_ERROR_INPUT, "select = %d; expected one of hfsad_select", (int)s->select);
    for (size_t i = 0; s->lambdas && i < s->n_lambdas; i++)
        if (!(s->lambdas[i] >= LAMBDA_LEAST && s->lambdas[i] <= LAMBDA_MOST) ||
            (i && !(s->lambdas[i] < s->lambdas[i - 1])))
            return error_set(err, HFSAD_ERROR_INPUT, "lambda %zu is %g; expected falling numbers from %g to %g", i + 1,
                             s->lambdas[i], LAMBDA_MOST, LAMBDA_LEAST);
    return HFSAD_OK;
}

static hfsad_status fill_path(hfsad_path *p, const hfsad_spec *spec, hfsad_data *data, const hfsad_path_settings *s,
                              hfsad_error *err)
{
    const path_settings settings = {
        .prior = s->edges ? PATH_EDGE : PATH_CLOUD,
        .share = s->heldout_share,
        .file = s->heldout_file,
        .heldout = s->heldout,
        .memory = data,
        .threads = s->threads,
    };
    static const path_rule rules[] = {[HFSAD_SELECT_HELDOUT] = PATH_HELDOUT,
                                      [HFSAD_SELECT_BIC] = PATH_BIC,
                                      [HFSAD_SELECT_AIC] = PATH_AIC,
                                      [HFSAD_SELECT_ONE_SE] = PATH_ONE_SE,
                                      [HFSAD_SELECT_CV] = PATH_CV};
    p->count = s->n_lambdas ? s->n_lambdas : PATH_LAMBDAS_USUAL;
    p->ratio = s->ratio > 0 ? s->ratio : RATIO_USUAL;
    p->given = s->lambdas != NULL;
    p->rule = rules[s->select];
    p->folds = s->folds;
    p->fold_clients = s->fold_clients;
    p->prior = settings.prior;
    p->data = data;
    p->threads = s->threads;
    hfsad_status status = path_create(&p->path, spec, &settings, err);
    if (!status)
        status = path_check_length(p->path, p->count, err);
    if (status)
        return status;
    p->M = hfsad_run_features(path_run(p->path));
    p->lambdas = alloc_zero(p->count, sizeof *p->lambdas);
    p->points = alloc_zero(p->count, sizeof *p->points);
    p->w = alloc_zero(p->count * p->M, sizeof *p->w);
    p->cv_loss = alloc_zero(p->folds ? p->count : 0, sizeof *p->cv_loss);
    p->cv_error = alloc_zero(p->folds ? p->count : 0, sizeof *p->cv_error);
    if (!p->lambdas || !p->points || !p->w || !p->cv_loss || !p->cv_error)
        return error_memory(err, p->count * p->M * sizeof *p->w, "the path");
    if (p->given)
        memcpy(p->lambdas, s->lambdas, p->count * sizeof *p->lambdas);
    for (size_t i = 0; i < p->count; i++)
        p->points[i].w = p->w + i * p->M;
    return HFSAD_OK;
}

/* Inputs must not be files that the path writes; the files of best/ are those of a run. */
static hfsad_status check_folder(const hfsad_spec *spec, const hfsad_path_settings *s, hfsad_error *err)
{
    static const char *const labels[] = {"the spec", "data", "truth", "run.start", "the file of held-out rows"},
                             *const files[] = {"path.csv", "path.png", "path.svg"};
    enum { N = sizeof labels / sizeof *labels, N_FILES = sizeof files / sizeof *files };
    const char *const names[N] = {NULL, spec->top.data, spec->top.truth, spec->run.start, NULL};
    char *paths[N] = {s->spec_path ? strdup(s->spec_path) : NULL, NULL, NULL, NULL,
                      s->heldout_file ? strdup(s->heldout_file) : NULL},
         *best = path_join(s->folder, "best");
    hfsad_status status = best ? folder_check(best, err) : error_memory(err, 0, "a file name");
    for (size_t i = 0; i < N; i++)
        if (names[i])
            paths[i] = spec_find_file(spec, names[i]);
    if (!status && paths[1])
        status = folder_check_outside(s->folder, paths[1], err);
    if (!status)
        status = report_check_inputs(best, labels, (const char *const *)paths, N, err);
    for (size_t f = 0; f < N_FILES && !status; f++) {
        struct stat mine, theirs;
        char *output = path_join(s->folder, files[f]);
        for (size_t i = 0; output && i < N && !status && stat(output, &mine) == 0; i++)
            if (paths[i] && stat(paths[i], &theirs) == 0 && mine.st_dev == theirs.st_dev &&
                mine.st_ino == theirs.st_ino)
                status = error_set(err, HFSAD_ERROR_INPUT, "%s is %s and would be replaced; give another output folder",
                                   output, labels[i]);
        free(output);
    }
    for (size_t i = 0; i < N; i++)
        free(paths[i]);
    free(best);
    return status;
}

hfsad_status hfsad_path_create(hfsad_path **out, const hfsad_spec *spec, hfsad_data *data,
                               const hfsad_path_settings *given, hfsad_error *err)
{
    hfsad_path_settings s = {0};
    *out = NULL;
    memcpy(&s, given, given->size < sizeof s ? given->size : sizeof s);
    hfsad_status status = check_settings(&s, err);
    if (!status && s.folder)
        status = check_folder(spec, &s, err);
    if (status)
        return status;
    hfsad_path *p = alloc_zero(1, sizeof *p);
    status = p ? fill_path(p, spec, data, &s, err) : error_memory(err, sizeof *p, "a path");
    if (status)
        hfsad_path_free(p);
    else
        *out = p;
    return status;
}

void hfsad_path_free(hfsad_path *p)
{
    if (!p)
        return;
    path_free(p->path);
    free(p->lambdas);
    free(p->points);
    free(p->w);
    free(p->cv_loss);
    free(p->cv_error);
    free(p);
}

/* The callback that path_solve asks after every iteration. */
typedef struct {
    bool (*proceed)(void *context);
    void *context;
} asked;

static bool gives_up(void *context)
{
    const asked *a = context;
    return a->proceed && !a->proceed(a->context);
}

static hfsad_status find_lambdas(hfsad_path *p, asked *a, hfsad_error *err)
{
    double first;
    if (p->given)
        return HFSAD_OK;
    const hfsad_status status = path_lambda_max(p->path, &first, gives_up, a, err);
    for (size_t i = 0; i < p->count && !status; i++)
        p->lambdas[i] = first * pow(p->ratio, (double)i / (double)(p->count - 1));
    return status;
}

/* Solves a path on all rows except one fold and adds up its losses on that fold. */
static hfsad_status solve_fold(hfsad_path *p, size_t fold, double *w, double *squares, asked *a, hfsad_error *err)
{
    path *part = NULL;
    const path_settings settings = {.prior = p->prior,
                                    .memory = p->data,
                                    .threads = p->threads,
                                    .folds = p->folds,
                                    .fold = fold,
                                    .fold_clients = p->fold_clients};
    hfsad_status status = path_create(&part, path_spec(p->path), &settings, err);
    double share = 1;
    if (!status) { /* a sum over fewer rows, or over fewer clients' means, needs a smaller lambda for the same effect */
        const dataset *all = path_run(p->path)->data, *some = path_run(part)->data;
        share = path_spec(p->path)->loss.scale == SCALE_MEAN ? (double)some->n_leaves / (double)all->n_leaves
                                                             : (double)some->n_rows / (double)all->n_rows;
    }
    for (size_t i = 0; i < p->count && !status; i++) {
        path_point point = {.w = w};
        status = path_solve(part, share * p->lambdas[i], &point, gives_up, a, err);
        p->cv_loss[i] += point.heldout;
        squares[i] += point.heldout * point.heldout;
    }
    path_free(part);
    return status;
}

/* The largest lambda within one standard error of the smallest loss, or the lambda of the smallest loss itself. */
static size_t choose_fold(const hfsad_path *p)
{
    size_t best = 0, first = 0;
    for (size_t i = 1; i < p->count; i++)
        best = p->cv_loss[i] < p->cv_loss[best] ? i : best;
    while (p->rule == PATH_ONE_SE && p->cv_loss[first] > p->cv_loss[best] + p->cv_error[best])
        first++;
    return p->rule == PATH_ONE_SE ? first : best;
}

static hfsad_status cross_validate(hfsad_path *p, asked *a, hfsad_error *err)
{
    const double K = (double)p->folds;
    double *w = alloc_zero(p->M, sizeof *w), *squares = alloc_zero(p->count, sizeof *squares);
    hfsad_status status = w && squares ? HFSAD_OK : error_memory(err, p->M * sizeof *w, "the folds");
    memset(p->cv_loss, 0, p->count * sizeof *p->cv_loss);
    for (size_t fold = 0; fold < p->folds && !status; fold++)
        status = solve_fold(p, fold, w, squares, a, err);
    for (size_t i = 0; i < p->count && !status; i++) {
        p->cv_loss[i] /= K;
        p->cv_error[i] = sqrt(fmax(squares[i] / K - p->cv_loss[i] * p->cv_loss[i], 0) / (K - 1));
    }
    free(w);
    free(squares);
    return status;
}

/* Keeps the start of the best point so far, so that its run can be repeated to the same bits. */
hfsad_status hfsad_path_train(hfsad_path *p, bool (*point)(void *context, size_t done, const hfsad_path_point *point),
                              bool (*proceed)(void *context), void *context, hfsad_error *err)
{
    asked a = {proceed, context};
    hfsad_status status = find_lambdas(p, &a, err);
    if (!status && p->folds)
        status = cross_validate(p, &a, err);
    const bool by_folds = !status && (p->rule == PATH_ONE_SE || p->rule == PATH_CV);
    const size_t known = by_folds ? choose_fold(p) : 0;
    path_restart(p->path);
    for (size_t i = 0; i < p->count && !status; i++) {
        status = path_solve(p->path, p->lambdas[i], &p->points[i], gives_up, &a, err);
        if (status)
            break;
        if (by_folds ? i == known : path_choose(p->points, i + 1, p->rule) == i) {
            p->chosen = i;
            path_remember(p->path);
        }
        hfsad_path_point seen = {.size = sizeof seen};
        hfsad_path_at(p, i, &seen);
        if (point && !point(context, i + 1, &seen))
            status = error_set(err, HFSAD_ERROR_INPUT, "interrupted");
    }
    p->solved = !status;
    return status;
}

size_t hfsad_path_points(const hfsad_path *p)
{
    return p->count;
}

void hfsad_path_at(const hfsad_path *p, size_t i, hfsad_path_point *to)
{
    const path_point *from = &p->points[i];
    const hfsad_path_point all = {
        .size = to->size,
        .lambda = from->lambda,
        .objective = from->figures.objective,
        .consensus_objective = from->figures.consensus_objective,
        .nonzero = from->nonzero,
        .heldout = from->heldout,
        .bic = from->bic,
        .aic = from->aic,
        .relative_error = from->figures.relative_error,
        .cv_loss = p->folds ? p->cv_loss[i] : NAN,
        .cv_error = p->folds ? p->cv_error[i] : NAN,
        .verdict = from->verdict,
        .gap_bound = from->gap_bound,
    };
    memcpy(to, &all, to->size < sizeof all ? to->size : sizeof all);
}

size_t hfsad_path_width(const hfsad_path *p)
{
    return p->M;
}

const double *hfsad_path_models(const hfsad_path *p)
{
    return p->w;
}

size_t hfsad_path_chosen(const hfsad_path *p)
{
    return p->chosen;
}

static void take_path_row(void *context, const hfsad_figures *row)
{
    report_row(((training_record *)context)->report, row);
}

static hfsad_status train_star(hfsad_run *run, training_record *record, hfsad_error *err)
{
    const train_hooks hooks = {.context = record, .row = take_path_row};
    const hfsad_status status = run_train(run, &(train_settings){.hooks = &hooks}, &record->end, err);
    record->measured = true;
    return status;
}

/* Repeats the chosen run, now with its trace. */
static hfsad_status run_again(hfsad_path *p, hfsad_error *err)
{
    if (p->returned)
        return HFSAD_OK;
    if (!p->solved)
        return error_set(err, HFSAD_ERROR_INPUT, "the path has no points yet; train it first");
    hfsad_run *run = path_run(p->path);
    training_record *record = NULL;
    hfsad_status status = path_return(p->path, err);
    if (!status)
        status = training_record_of(run, &record, err);
    if (!status && path_is_star(p->path)) {
        status = train_star(run, record, err);
        p->returned = !status;
        return status;
    }
    if (status)
        return status;
    const uint64_t iterations = p->points[p->chosen].figures.iteration, every = (uint64_t)run->spec->run.trace_every;
    for (uint64_t i = 0; i <= iterations && !status; i++) {
        if (i)
            hfsad_run_iterate(run);
        if (i % every && i < iterations)
            continue;
        status = run_measure(run, &record->end.figures, err);
        record->measured = true;
        if (!status)
            report_row(record->report, &record->end.figures);
    }
    record->end.stopped = iterations < (uint64_t)run->spec->run.iterations ? STOP_TOLERANCE : STOP_ITERATIONS;
    p->returned = !status;
    return status;
}

hfsad_status hfsad_path_result(hfsad_path *p, hfsad_result **result, hfsad_error *err)
{
    *result = NULL;
    const hfsad_status status = run_again(p, err);
    return status ? status : hfsad_result_take(result, path_run(p->path), err);
}

hfsad_status hfsad_path_write(hfsad_path *p, const char *folder, hfsad_error *err)
{
    const hfsad_status status = run_again(p, err);
    return status ? status : hfsad_run_write(path_run(p->path), folder, err);
}

const hfsad_verdict *hfsad_path_verdict(const hfsad_path *p)
{
    return hfsad_run_verdict(path_run(p->path));
}
