/*
 * Criteria. With L the loss of all n rows (weights added up) by the cloud's model and d its non-zero coefficients,
 *
 *     bic = D + d log n,    aic = D + 2 d,
 *
 * D = n log(2L/n) for losses of normal errors of unknown variance, 2n log(L/n) for those of Laplace errors of unknown
 * scale, 2L if the scale is fixed: loss_fit in src/math/loss_kind.h. Of several levels D is the sum of theirs.
 */
#include "run/lambda_path.h"

#include "base/alloc.h"
#include "base/error.h"
#include "core/scores.h"
#include "data/features.h"
#include "data/memory.h"
#include "data/split.h"
#include "plan/labels.h"
#include "plan/owners.h"
#include "plan/read_table.h"
#include "run/save.h"
#include "spec/pack.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The state of a run in memory, and of its star if the points are a star's. */
typedef struct {
    unsigned char *bytes, *next;
    size_t words;
    double *slopes, sigma;
} snapshot;

struct path {
    hfsad_spec *spec;
    hfsad_run *run;
    path_prior prior;
    dataset *held;         /* NULL: none */
    hfsad_loss *held_loss; /* of each of its clients that the run does not know; NULL: it knows all */
    uint32_t *held_leaf;   /* which leaf of the run each of its clients is, or NO_NODE; NULL: the same one */
    snapshot start, before, best;
    double best_lambda, last_lambda;
    double *row, *w, *sum; /* M each */
    bool star;
};

static void keep_bytes(void *to, const void *bytes, size_t count)
{
    snapshot *s = to;
    memcpy(s->next, bytes, count);
    s->next += count;
}

static void snapshot_take(snapshot *s, const path *p)
{
    word_writer w = {.put = keep_bytes, .to = s};
    s->next = s->bytes;
    sim_pack(&w, p->run->sim);
    if (p->star) {
        const run_star_state star = run_star_at(p->run);
        memcpy(s->slopes, star.slopes, star.count * sizeof *s->slopes);
        s->sigma = *star.sigma;
    }
}

static void snapshot_put(const snapshot *s, path *p)
{
    word_reader r = {s->bytes, s->words, false};
    (void)sim_unpack(p->run->sim, &r); /* of this very run, so it fits */
    if (p->star) {
        const run_star_state star = run_star_at(p->run);
        memcpy(star.slopes, s->slopes, star.count * sizeof *s->slopes);
        *star.sigma = s->sigma;
    }
}

static bool snapshot_create(snapshot *s, const path *p)
{
    word_writer counted = {0};
    sim_pack(&counted, p->run->sim);
    s->words = (size_t)counted.count;
    s->bytes = alloc_raw(s->words, WORD_BYTES);
    s->slopes = alloc_zero(p->star ? run_star_at(p->run).count : 0, sizeof *s->slopes);
    return s->bytes && s->slopes;
}

static void snapshot_free(snapshot *s)
{
    free(s->bytes);
    free(s->slopes);
}

static const char *prior_key(path_prior prior)
{
    return prior == PATH_CLOUD ? "prior.cloud" : "prior.edge";
}

static hfsad_status set_lambda(path *p, double lambda, hfsad_error *err)
{
    *(p->prior == PATH_CLOUD ? &p->spec->prior_cloud.lambda : &p->spec->prior_edge.lambda) = lambda;
    p->last_lambda = lambda;
    return run_replan(p->run, p->spec, err);
}

/* The first inner node that the path's lambda is for. */
static size_t first_node(const path *p)
{
    return p->prior == PATH_CLOUD ? 0 : 1;
}

static size_t end_node(const path *p)
{
    return p->prior == PATH_CLOUD ? 1 : p->run->data->n_inner;
}

static hfsad_status check_prior(const path *p, hfsad_error *err)
{
    for (size_t i = first_node(p); i < end_node(p); i++)
        if (penalty_steepest(&p->run->plan->inner[i].prior, 1) > 0)
            return HFSAD_OK;
    return error_set(err, HFSAD_ERROR_INPUT,
                     "%s has no lambda to vary: set %s.penalty to l1, l2, elastic-net, mcp or scad and a weight%s",
                     prior_key(p->prior), prior_key(p->prior),
                     p->run->data->n_inner == 1 && p->prior == PATH_EDGE ? "; the data have no edges" : "");
}

typedef struct {
    char *name;
    uint32_t leaf;
} named_leaf;

static int by_name(const void *a, const void *b)
{
    return strcmp(((const named_leaf *)a)->name, ((const named_leaf *)b)->name);
}

static char *leaf_name(const dataset *d, size_t leaf)
{
    char name[HFSAD_TIERS_MAX * 256];
    dataset_leaf_name(d, leaf, name, sizeof name);
    return strdup(name);
}

static hfsad_status find_losses(path *p, hfsad_error *err);

/* The clients of a file by their names. */
static hfsad_status match_leaves(path *p, hfsad_error *err)
{
    const dataset *d = p->run->data;
    p->held_leaf = alloc_zero(p->held->n_leaves, sizeof *p->held_leaf);
    named_leaf *list = alloc_zero(d->n_leaves, sizeof *list);
    bool enough = p->held_leaf && list;
    for (uint32_t leaf = 0; leaf < d->n_leaves && enough; leaf++) {
        list[leaf] = (named_leaf){leaf_name(d, leaf), leaf};
        enough = list[leaf].name != NULL;
    }
    if (enough)
        qsort(list, d->n_leaves, sizeof *list, by_name);
    for (size_t leaf = 0; enough && leaf < p->held->n_leaves; leaf++) {
        const named_leaf wanted = {.name = leaf_name(p->held, leaf)};
        enough = wanted.name != NULL;
        const named_leaf *found = enough ? bsearch(&wanted, list, d->n_leaves, sizeof *list, by_name) : NULL;
        p->held_leaf[leaf] = found ? found->leaf : NO_NODE;
        free(wanted.name);
    }
    for (size_t leaf = 0; list && leaf < d->n_leaves; leaf++)
        free(list[leaf].name);
    free(list);
    return enough ? find_losses(p, err) : error_memory(err, d->n_leaves * sizeof *list, "the held-out clients");
}

/* A client that the run does not know has the loss that the spec gives its name. */
static hfsad_status find_losses(path *p, hfsad_error *err)
{
    choice_table t;
    override_settings special;
    char name[NODE_NAME_SIZE];
    p->held_loss = alloc_zero(p->held->n_leaves, sizeof *p->held_loss);
    hfsad_status status = choices_make(&t, p->spec, p->held) && p->held_loss
                              ? HFSAD_OK
                              : error_memory(err, p->held->n_leaves * sizeof *p->held_loss, "the held-out clients");
    for (size_t leaf = 0; leaf < p->held->n_leaves && !status; leaf++) {
        bool any = false;
        status = leaf_override(&t, leaf, name, sizeof name, &special, &any, err);
        p->held_loss[leaf] = loss_of(&p->spec->loss, any ? &special.loss : NULL);
    }
    choices_free(&t);
    return status;
}

static const hfsad_loss *held_loss(const path *p, size_t held)
{
    const uint32_t leaf = p->held_leaf ? p->held_leaf[held] : (uint32_t)held;
    return leaf == NO_NODE ? &p->held_loss[held] : &plan_leaf(p->run->plan, leaf)->loss;
}

static hfsad_status check_heldout_labels(const path *p, const char *file, hfsad_error *err)
{
    const size_t classes = p->run->data->classes;
    label_signs found = {0};
    for (size_t leaf = 0; leaf < p->held->n_leaves; leaf++) {
        const hfsad_loss *loss = held_loss(p, leaf);
        labels_settle_leaf(p->held, leaf, loss, classes, &found);
        const client_rows rows = dataset_rows(p->held, leaf);
        for (size_t r = 0; r < rows.count && loss_kind_of(loss)->fits; r++) {
            char name[256];
            if (scores_fit(loss, classes, rows.y[r]))
                continue;
            /* rows of a share have no tree of their own */
            dataset_leaf_name(p->held_leaf ? p->held : p->run->data, leaf, name, sizeof name);
            return error_set(err, HFSAD_ERROR_INPUT, "%.300s: row %zu of %s has y = %g: the loss takes %s", file, r + 1,
                             name, rows.y[r], scores_take(loss, classes));
        }
    }
    return labels_check(&found, err);
}

/* Sparse rows have no column after the last non-zero one, so fewer features are not an error there. */
static hfsad_status read_heldout(path *p, const path_settings *settings, size_t features, hfsad_error *err)
{
    const char *file = settings->file ? settings->file : "the held-out data", *of = p->spec->top.data;
    table_settings table = table_of_spec(p->spec);
    table.categorical = p->run->data->categorical; /* with the levels of the rows that are trained on */
    table.labels = p->run->data->labels;
    table.means = p->run->data->means;
    hfsad_status status = settings->file ? dataset_read_table(&p->held, file, &table, true, err)
                                         : data_lay(settings->heldout, true, true, NULL, &p->held, err);
    if (!status && p->held->M != features && !(p->held->rows.start && p->held->M < features))
        status =
            error_set(err, HFSAD_ERROR_INPUT, "%.300s has %zu features; the data have %zu", file, p->held->M, features);
    if (!status)
        status = features_check_names(p->held, file, p->run->data->feature_names, of ? of : "data", err);
    if (!status)
        status = match_leaves(p, err);
    return status ? status : check_heldout_labels(p, file, err);
}

static hfsad_status read_data(const path *p, hfsad_data *memory, dataset **d, hfsad_error *err)
{
    if (memory)
        return data_lay(memory, true, true, NULL, d, err);
    char *file = spec_find_file(p->spec, p->spec->top.data);
    if (!file)
        return error_memory(err, strlen(p->spec->top.data), "a path");
    const table_settings table = table_of_spec(p->spec);
    hfsad_status status = dataset_read_table(d, file, &table, true, err);
    if (!status) /* before the rows are divided, so that all rows show which labels exist */
        status = labels_settle(*d, p->spec, err);
    free(file);
    return status;
}

/* The rows of a fold are held out. */
static hfsad_status take_fold(path *p, const path_settings *settings, dataset **train, hfsad_error *err)
{
    dataset *all = NULL;
    p->spec->some_clients = settings->fold_clients;
    const fold_rule rule = {settings->fold, settings->folds, settings->fold_clients, (uint64_t)p->spec->run.seed};
    hfsad_status status = read_data(p, settings->memory, &all, err);
    if (!status)
        status = dataset_fold(all, &rule, train, &p->held, err);
    dataset_free(all);
    return status;
}

static hfsad_status fill_path(path *p, const hfsad_spec *spec, const path_settings *settings, hfsad_error *err)
{
    dataset *data = NULL;
    hfsad_status status = spec_check_settings(spec, !settings->memory, err);
    if (!status && !algorithm_of(spec)->links)
        status =
            error_set(err, HFSAD_ERROR_INPUT, "algorithm: a path is made by star or hfsad; leave the baselines out");
    else if (!status && spec_has_noise(spec))
        status =
            error_set(err, HFSAD_ERROR_INPUT, "privacy: every point of a path would spend the budget; train one model");
    if (!status)
        status = spec_copy(&p->spec, spec, err);
    if (!status &&
        settings->share > 0) { /* without a share the data lie as for `hfsad run`, and can be resumed by it */
        status = read_data(p, settings->memory, &data, err);
        if (!status)
            status = dataset_split(data, settings->share, (uint64_t)spec->run.seed, &p->held, err);
        p->spec->output.checkpoint = 0;
    }
    if (!status && settings->folds)
        status = take_fold(p, settings, &data, err);
    if (status) {
        dataset_free(data);
        return status;
    }
    status = run_create_from(&p->run, p->spec, data, settings->memory, settings->threads, err);
    if (!status)
        status = check_prior(p, err);
    if (!status && settings->folds)
        status = match_leaves(p, err);
    if (!status && p->held)
        status = check_heldout_labels(p, settings->folds ? "a fold" : "the held-out rows", err);
    if (!status && (settings->file || settings->heldout))
        status = read_heldout(p, settings, features_count(p->run->data), err);
    if (status)
        return status;
    p->star = p->run->plan->star && p->run->plan->limit > 0;
    if (p->star && (status = run_star_keep(p->run, err)))
        return status;
    const size_t M = p->run->data->M;
    p->row = alloc_zero(M, sizeof *p->row);
    p->w = alloc_zero(M, sizeof *p->w);
    p->sum = alloc_zero(M, sizeof *p->sum);
    if (!p->row || !p->w || !p->sum || !snapshot_create(&p->start, p) || !snapshot_create(&p->before, p) ||
        !snapshot_create(&p->best, p))
        return error_memory(err, 3 * p->start.words * WORD_BYTES, "the states of the path");
    snapshot_take(&p->start, p);
    return HFSAD_OK;
}

hfsad_status path_create(path **out, const hfsad_spec *spec, const path_settings *settings, hfsad_error *err)
{
    *out = NULL;
    path *p = alloc_zero(1, sizeof *p);
    if (!p)
        return error_memory(err, sizeof *p, "a path");
    p->prior = settings->prior;
    const hfsad_status status = fill_path(p, spec, settings, err);
    if (status)
        path_free(p);
    else
        *out = p;
    return status;
}

void path_free(path *p)
{
    if (!p)
        return;
    hfsad_run_free(p->run);
    hfsad_spec_free(p->spec);
    dataset_free(p->held);
    free(p->held_leaf);
    free(p->held_loss);
    snapshot_free(&p->start);
    snapshot_free(&p->before);
    snapshot_free(&p->best);
    free(p->row);
    free(p->w);
    free(p->sum);
    free(p);
}

hfsad_run *path_run(path *p)
{
    return p->run;
}

const hfsad_spec *path_spec(const path *p)
{
    return p->spec;
}

hfsad_status path_check_length(const path *p, size_t points, hfsad_error *err)
{
    const plan *made = p->run->plan;
    for (size_t c = 0; c < made->n_leaf_classes; c++) {
        const double steps = (double)made->iterations * made->edge_rounds * made->leaf_classes[c].local_steps;
        if (steps * (double)points >= 0x1p31)
            return error_set(err, HFSAD_ERROR_INPUT,
                             "%zu lambdas of %.3g steps of a client each; at most 2^31 - 1 in all, so give fewer "
                             "lambdas or a lower run.iterations",
                             points, steps);
    }
    return HFSAD_OK;
}

typedef struct {
    double loss, weight;
} loss_sum;

static int compare_reals(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* The cloud's model as the leaf's rows see it, with the intercept of a node that has its own; NO_NODE: the cloud's.
 */
static const double *model_for(const path *p, uint32_t leaf, double *w)
{
    const size_t M = p->run->data->M;
    memcpy(w, run_inner_model(p->run, 0), M * sizeof *w);
    if (leaf != NO_NODE && p->run->owned)
        owners_model(p->run->plan, p->run->data, p->run->data->n_inner + leaf, p->run->owned, w);
    else if (hfsad_run_intercept(p->run) && leaf != NO_NODE && !p->run->polished)
        w[M - 1] = sim_intercept(p->run->sim, leaf);
    return w;
}

/* The loss of a row; several classes and levels have scores of their own. to_predict: levels are sorted, as by `hfsad
 * predict`. by_level: what the loss of each level is added to, times weight; NULL: nothing. */
static double row_loss(const path *p, const hfsad_loss *loss, const client_rows *rows, size_t r, const double *w,
                       bool to_predict, double *by_level)
{
    double scores[SOFTMAX_CLASSES];
    const size_t K = p->run->data->classes;
    const score_losses *several = plan_scores(p->run->plan);
    if (!K)
        return hfsad_loss_value(loss, rows->y[r], row_dot(rows, r, w));
    softmax_scores(rows, r, K, w, scores);
    if (!several)
        return softmax_loss(K, scores, rows->y[r], NULL);
    if (to_predict && !several->labels)
        qsort(scores, K, sizeof *scores, compare_reals);
    for (size_t k = 0; k < K && by_level; k++) {
        const hfsad_loss one = score_loss(several, k);
        by_level[k] += row_weight(rows, r) * hfsad_loss_value(&one, score_y(several, k, rows->y[r]), scores[k]);
    }
    return scores_loss(several, scores, rows->y[r]);
}

/* sum += factor times its gradient in w */
static void add_gradient(const path *p, const hfsad_loss *loss, const client_rows *rows, size_t r, double factor,
                         const double *w, double *sum)
{
    double scores[SOFTMAX_CLASSES], slopes[SOFTMAX_CLASSES];
    const size_t K = p->run->data->classes;
    if (!K) {
        row_add(rows, r, factor * hfsad_loss_slope(loss, rows->y[r], row_dot(rows, r, w)), sum);
        return;
    }
    const score_losses *several = plan_scores(p->run->plan);
    softmax_scores(rows, r, K, w, scores);
    if (!several) {
        (void)softmax_loss(K, scores, rows->y[r], slopes);
        slopes[(size_t)rows->y[r]] -= 1;
    }
    for (size_t k = 0; k < K && several; k++) {
        const hfsad_loss one = score_loss(several, k);
        slopes[k] = hfsad_loss_slope(&one, score_y(several, k, rows->y[r]), scores[k]);
    }
    for (size_t k = 0; k < K; k++)
        slopes[k] *= factor;
    softmax_add(rows, r, K, slopes, sum);
}

/* The loss of the training rows, as the run has them. */
static loss_sum training_loss(const path *p, double *by_level)
{
    const dataset *d = p->run->data;
    loss_sum sum = {0};
    for (uint32_t leaf = 0; leaf < d->n_leaves; leaf++) {
        const client_rows rows = dataset_rows_any(d, leaf, p->row);
        const double *w = model_for(p, leaf, p->sum);
        for (size_t r = 0; r < rows.count; r++) {
            const double weight = row_weight(&rows, r);
            sum.loss += weight * row_loss(p, &plan_leaf(p->run->plan, leaf)->loss, &rows, r, w, false, by_level);
            sum.weight += weight;
        }
    }
    return sum;
}

/* The mean loss of the held-out rows, which are in the units of the data. */
static double heldout_loss(const path *p)
{
    loss_sum sum = {0};
    for (uint32_t held = 0; p->held && held < p->held->n_leaves; held++) {
        const uint32_t leaf = p->held_leaf ? p->held_leaf[held] : held;
        const hfsad_loss *loss = held_loss(p, held);
        client_rows rows = dataset_rows(p->held, held);
        rows.F = features_count(p->run->data); /* sparse ones may have fewer */
        rows.constant = p->run->data->rows.constant != 0;
        model_to_user(p->run->data, model_for(p, leaf, p->sum), p->sum);
        for (size_t r = 0; r < rows.count; r++) {
            const double weight = row_weight(&rows, r);
            sum.loss += weight * row_loss(p, loss, &rows, r, p->sum, true, NULL);
            sum.weight += weight;
        }
    }
    return sum.weight > 0 ? sum.loss / sum.weight : NAN;
}

static double deviance(hfsad_loss_kind kind, loss_sum sum)
{
    switch (loss_kinds[kind]->fit) {
    case LOSS_FIT_NORMAL:
        return sum.weight * log(2 * sum.loss / sum.weight);
    case LOSS_FIT_LAPLACE:
        return 2 * sum.weight * log(sum.loss / sum.weight);
    case LOSS_FIT_FIXED:
        break;
    }
    return 2 * sum.loss;
}

/* Of several levels each has errors of its own scale. */
static double training_fit(const path *p, double *weight)
{
    double by_level[SCORES_LEVELS] = {0}, fit = 0;
    const score_losses *s = plan_scores(p->run->plan);
    const bool levels = s && !s->labels;
    const loss_sum sum = training_loss(p, levels ? by_level : NULL);
    const hfsad_loss_kind kind = (hfsad_loss_kind)p->spec->loss.kind;
    *weight = sum.weight;
    for (size_t k = 0; levels && k < s->K; k++)
        fit += deviance(kind, (loss_sum){by_level[k], sum.weight});
    return levels ? fit : deviance(kind, sum);
}

/* Coordinates that the cloud's prior is on: all but an intercept. */
static size_t penalised(const path *p)
{
    return p->run->data->M - p->run->plan->inner[0].prior.free;
}

static size_t count_nonzero(const path *p)
{
    const double *w = run_inner_model(p->run, 0);
    size_t n = 0;
    for (size_t m = 0; m < penalised(p); m++)
        n += w[m] != 0;
    return n;
}

static hfsad_status iterate(path *p, hfsad_figures *f, path_ask stop, void *context, hfsad_error *err)
{
    const uint64_t iterations = p->run->plan->iterations, every = p->run->plan->trace_every;
    const bool rule = p->run->plan->stop_absolute > 0 || p->run->plan->stop_relative > 0;
    bool over = false;
    for (uint64_t i = 1; i <= iterations && !over; i++) {
        hfsad_run_iterate(p->run);
        if (stop && stop(context))
            return error_set(err, HFSAD_ERROR_INPUT, "interrupted");
        if (rule && i % every == 0) {
            const hfsad_status status = run_measure(p->run, f, err);
            if (status)
                return status;
            over = hfsad_run_converged(p->run);
        }
    }
    return run_measure(p->run, f, err);
}

typedef struct {
    path_ask stop;
    void *context;
} asked;

static bool goes_on(void *context, const hfsad_polish *so_far)
{
    const asked *a = context;
    (void)so_far;
    return !a->stop || !a->stop(a->context);
}

/* From the model of the last point, which all nodes then have. */
static hfsad_status solve_star(path *p, hfsad_figures *f, path_ask stop, void *context, hfsad_error *err)
{
    asked a = {stop, context};
    hfsad_polish result;
    hfsad_status status = run_polish(p->run, goes_on, &a, &result, err);
    if (!status && !result.accepted)
        status = error_set(err, HFSAD_ERROR_INPUT, "%s", result.reason);
    else if (!status && !strcmp(result.reason, "interrupted"))
        status = error_set(err, HFSAD_ERROR_INPUT, "interrupted");
    if (!status)
        status = run_measure(p->run, f, err);
    for (size_t i = 0; i < hfsad_run_nodes(p->run) && !status; i++) {
        memcpy(p->w, p->run->polished, p->run->data->M * sizeof *p->w);
        if (p->run->owned)
            owners_model(p->run->plan, p->run->data, i, p->run->owned, p->w);
        sim_set_model(p->run->sim, i, p->w);
    }
    return status;
}

static void judge(path *p, path_point *point)
{
    hfsad_verdict v;
    run_verdict(p->run, p->spec, false, &v);
    point->verdict = v.kind;
    point->gap_bound = v.gap;
}

bool path_is_star(const path *p)
{
    return p->star;
}

void path_restart(path *p)
{
    run_unpolish(p->run);
    snapshot_put(&p->start, p);
}

hfsad_status path_solve(path *p, double lambda, path_point *point, path_ask stop, void *context, hfsad_error *err)
{
    hfsad_status status = set_lambda(p, lambda, err);
    if (status)
        return status;
    sim_rewind(p->run->sim);
    p->run->seconds = 0;
    snapshot_take(&p->before, p);
    point->lambda = lambda;
    status = (p->star ? solve_star : iterate)(p, &point->figures, stop, context, err);
    if (status)
        return status;
    judge(p, point);
    double weight;
    const double fit = training_fit(p, &weight);
    hfsad_run_node_model(p->run, 0, point->w);
    point->nonzero = count_nonzero(p);
    point->heldout = heldout_loss(p);
    const double d = (double)point->nonzero;
    point->bic = fit + d * log(weight);
    point->aic = fit + d * 2;
    return HFSAD_OK;
}

void path_remember(path *p)
{
    const snapshot old = p->best;
    p->best = p->before;
    p->before = old;
    p->best_lambda = p->last_lambda;
}

hfsad_status path_return(path *p, hfsad_error *err)
{
    char *kind = strdup("the end of the path's previous lambda");
    const hfsad_status status = kind ? set_lambda(p, p->best_lambda, err) : error_memory(err, 0, "the start's name");
    if (status) {
        free(kind);
        return status;
    }
    run_unpolish(p->run);
    snapshot_put(&p->best, p);
    free(p->run->start_kind);
    p->run->start_kind = kind;
    p->run->seconds = 0;
    return HFSAD_OK;
}

static double criterion(const path_point *point, path_rule rule)
{
    return rule == PATH_HELDOUT ? point->heldout : rule == PATH_BIC ? point->bic : point->aic;
}

size_t path_choose(const path_point *points, size_t count, path_rule rule)
{
    size_t best = 0;
    for (size_t i = 1; i < count; i++)
        if (criterion(&points[i], rule) < criterion(&points[best], rule))
            best = i;
    return best;
}

/* The largest |sum of gradients| in any penalised coordinate, of all losses at the cloud's model with zeros there. */
static double gradient_at_zero(const path *p)
{
    const dataset *d = p->run->data;
    double *w = p->w, *sum = p->sum, most = 0;
    memset(sum, 0, d->M * sizeof *sum);
    for (uint32_t leaf = 0; leaf < d->n_leaves; leaf++) {
        const client_rows rows = dataset_rows_any(d, leaf, p->row);
        const leaf_class *class = plan_leaf(p->run->plan, leaf);
        const double scale = class->mean ? 1 / rows_weight(&rows) : 1;
        model_for(p, leaf, w);
        memset(w, 0, penalised(p) * sizeof *w);
        for (size_t r = 0; r < rows.count; r++)
            add_gradient(p, &class->loss, &rows, r, scale * row_weight(&rows, r), w, sum);
    }
    for (size_t m = 0; m < penalised(p); m++)
        most = fmax(most, fabs(sum[m]));
    return most;
}

/* The part of lambda that is a kink at 0: 1, but less for l2 and elastic-net. */
static double kink_share(const hfsad_penalty *prior)
{
    hfsad_penalty one = *prior;
    one.weight = one.lambda = 1;
    return hfsad_penalty_slope(&one);
}

/* Whether a lambda of the path can hold the model at zero; l2 cannot. */
static bool can_give_zero(const path *p)
{
    for (size_t i = first_node(p); i < end_node(p); i++)
        if (hfsad_penalty_slope(&p->run->plan->inner[i].prior) > 0)
            return true;
    return false;
}

/* The lambda at which all priors together hold that gradient at zero: the other tier's have theirs already. */
static double first_guess(const path *p)
{
    double others = 0, weights = 0;
    for (size_t i = 0; i < p->run->data->n_inner; i++) {
        const hfsad_penalty *prior = &p->run->plan->inner[i].prior;
        if (penalty_is_flat(prior))
            continue;
        if (i >= first_node(p) && i < end_node(p))
            weights += prior->weight * fmax(kink_share(prior), 1e-3);
        else
            others += hfsad_penalty_slope(prior);
    }
    const double guess = (gradient_at_zero(p) - others) / weights;
    return guess > 0 && isfinite(guess) ? guess : 1;
}

static hfsad_status gives_zero(path *p, double lambda, bool *zero, path_ask stop, void *context, hfsad_error *err)
{
    path_point point = {.w = p->w};
    path_restart(p);
    const hfsad_status status = path_solve(p, lambda, &point, stop, context, err);
    *zero = !status && point.nonzero == 0;
    return status;
}

static bool is_convex(const path *p)
{
    for (size_t c = 0; c < p->run->plan->n_leaf_classes; c++)
        if (loss_kind_of(&p->run->plan->leaf_classes[c].loss)->majorised)
            return false;
    return true;
}

static hfsad_status nothing_found(const path *p, hfsad_error *err)
{
    return error_set(err, HFSAD_ERROR_INPUT,
                     "no lambda of %s was found at which the cloud's model turns from zero; give a list of lambdas",
                     prior_key(p->prior));
}

/* A run only tests whether a larger lambda is needed, for example if links are too weak for consensus. The test is
 * slightly above the border, because runs at the border converge slowly: a run that has not converged is still zero far
 * below the border, although its limit is not. */
static hfsad_status raise_to_zero(path *p, double *lambda, path_ask stop, void *context, hfsad_error *err)
{
    enum { TRIES = 60 };
    bool zero = false;
    for (int i = 0; i < TRIES; i++) {
        const hfsad_status status = gives_zero(p, *lambda, &zero, stop, context, err);
        if (status || zero)
            return status;
        *lambda *= i < 5 ? 1.02 : 1.1;
    }
    return nothing_found(p, err);
}

/* Between a run that ends at zero and one that does not, to a hundredth. */
static hfsad_status search(path *p, double *lambda, path_ask stop, void *context, hfsad_error *err)
{
    enum { TRIES = 80 };
    const double near = 1.01, least = 1e-90, most = 1e90;
    double low = 0, high = INFINITY, at = *lambda, step = near;
    for (int i = 0; i < TRIES && at > least && at < most; i++) {
        bool zero;
        const hfsad_status status = gives_zero(p, at, &zero, stop, context, err);
        if (status)
            return status;
        *(zero ? &high : &low) = at;
        if (low > 0 && high <= low * near) {
            *lambda = high;
            return HFSAD_OK;
        }
        if (low > 0 && high < INFINITY) {
            at = sqrt(low * high);
            continue;
        }
        at = zero ? at / step : at * step;
        step = fmin(step * step * step, 100); /* 1.01, 1.03, 1.09, ... */
    }
    return nothing_found(p, err);
}

hfsad_status path_lambda_max(path *p, double *lambda, path_ask stop, void *context, hfsad_error *err)
{
    const double rounding = 1 + 1e-9;
    const bool convex = is_convex(p);
    bool zero;
    *lambda = first_guess(p) * rounding;
    if (!can_give_zero(p)) /* from the lambda at which a kink of a thousandth holds the model, as in glmnet */
        return HFSAD_OK;
    if (!convex)
        return search(p, lambda, stop, context, err);
    if (p->run->plan->inner[0].prior.free) { /* the intercept decides what the gradient is: first a run that finds it */
        const hfsad_status status = gives_zero(p, 2 * *lambda, &zero, stop, context, err);
        if (status)
            return status;
        *lambda = first_guess(p) * rounding;
    }
    return raise_to_zero(p, lambda, stop, context, err);
}
