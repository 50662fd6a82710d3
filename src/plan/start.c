/*
 * Start vectors: zero, N(0, I), a file, or for phase retrieval the leading eigenvector of a sum over all rows,
 *
 *     spectral   sum min(y, 3 median y) x x^T                       the usual one
 *     robust     sum T(y/(|x|^2 scale)) x x^T / |x|^2               T(t) = 1 - 1/t, scale a robust mean of y/|x|^2
 *
 * with the length that fits best. All that is asked of the clients are sums (survey.h).
 */
#include "base/alloc.h"
#include "base/error.h"
#include "base/rng.h"
#include "data/features.h"
#include "math/lanczos.h"
#include "plan/plan.h"
#include "plan/tally.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void normal_vector(double *v, size_t M, uint64_t seed, const char *stream)
{
    rng r = {rng_key(seed, rng_stream(stream)), 0};
    for (size_t m = 0; m < M; m++)
        v[m] = rng_next_normal(&r);
}

/* What the spectral starts work with. */
typedef struct {
    const surveyor *ask;
    size_t M;
    survey_kind kind; /* SURVEY_TRUNCATED or SURVEY_ROBUST */
    double parameter; /* its limit or scale */
    double *column;   /* M: root mean square of every column; robust: the matrix is taken between their inverses */
    double *values;   /* of a question: thresholds or parameter, then M numbers */
} spectrum;

static hfsad_status ask_spectrum(const spectrum *s, survey_kind kind, size_t count, size_t sums, double *totals,
                                 hfsad_error *err)
{
    const survey_question q = {kind, count, s->values, 0, sums};
    return s->ask->ask(s->ask->context, &q, totals, err);
}

static hfsad_status matrix(void *context, const double *v, double *product, hfsad_error *err)
{
    const spectrum *s = context;
    s->values[0] = s->parameter;
    for (size_t m = 0; m < s->M; m++)
        s->values[1 + m] = s->column[m] > 0 ? v[m] / s->column[m] : 0;
    const hfsad_status status = ask_spectrum(s, s->kind, 1 + s->M, s->M, product, err);
    for (size_t m = 0; m < s->M; m++)
        product[m] = s->column[m] > 0 ? product[m] / s->column[m] : 0;
    return status;
}

/* The columns' sizes, and the parameter of the kind. guess: roughly the size of <x,w>^2 over |x|^2. */
static hfsad_status prepare(spectrum *s, double *guess, double *totals, hfsad_error *err)
{
    hfsad_status status = ask_spectrum(s, SURVEY_COLUMNS, 0, s->M + 2, totals, err);
    if (status)
        return status;
    const double y = totals[s->M], n = totals[s->M + 1];
    if (!(y > 0) || !(n > 0))
        return error_set(err, HFSAD_ERROR_INPUT,
                         "run.start: spectral and robust need mostly positive observations; use zero or normal");
    *guess = y / n;
    for (size_t m = 0; m < s->M; m++)
        s->column[m] = s->kind == SURVEY_ROBUST ? sqrt(totals[m] / n) : 1;
    double median;
    if (s->kind == SURVEY_TRUNCATED)
        status = survey_half_point(s->ask, SURVEY_BELOW, s->values, SURVEY_THRESHOLDS, y, &median, err);
    else
        status = survey_half_point(s->ask, SURVEY_BELOW_ONE, s->values, SURVEY_THRESHOLDS, *guess, &median, err);
    const double of_square = 0.4549; /* the median of the square of a normal number of variance 1 */
    s->parameter = s->kind == SURVEY_TRUNCATED ? 3 * median : median / of_square;
    return status;
}

/* The length t that fits best: t^2 minimises sum |y - t^2 <x,v>^2|, the median of y/<x,v>^2 with weights <x,v>^2. */
static hfsad_status fit_length(const spectrum *s, double guess, double *v, hfsad_error *err)
{
    double square;
    memcpy(s->values + SURVEY_THRESHOLDS, v, s->M * sizeof *v);
    const hfsad_status status = survey_half_point(s->ask, SURVEY_BELOW_FIT, s->values, SURVEY_THRESHOLDS + s->M,
                                                  guess * (double)s->M, &square, err);
    for (size_t m = 0; m < s->M; m++)
        v[m] *= sqrt(square);
    return status;
}

static hfsad_status find_spectrum(spectrum *s, double *v, uint64_t seed, double *totals, hfsad_error *err)
{
    enum { STEPS = 100 };
    double guess = 0;
    hfsad_status status = prepare(s, &guess, totals, err);
    normal_vector(v, s->M, seed, "spectral");
    for (size_t m = 0; m < s->M; m++) /* a column of zeros would add an eigenvalue 0, which may be the largest */
        v[m] = s->column[m] > 0 ? v[m] : 0;
    if (!status)
        status = lanczos_largest(s->M, STEPS, s->kind == SURVEY_ROBUST ? 1e-3 : 1e-9, matrix, s, v, NULL, err);
    if (status)
        return status;
    double size = 0;
    for (size_t m = 0; m < s->M; m++) {
        v[m] = s->column[m] > 0 ? v[m] / s->column[m] : 0;
        size += v[m] * v[m];
    }
    for (size_t m = 0; m < s->M; m++)
        v[m] /= sqrt(size);
    return fit_length(s, guess, v, err);
}

static hfsad_status spectral_vector(double *v, survey_kind kind, size_t M, uint64_t seed, const surveyor *asker,
                                    hfsad_error *err)
{
    spectrum s = {.ask = asker, .M = M, .kind = kind};
    double *totals = alloc_zero(M + 2, sizeof *totals);
    s.column = alloc_zero(M, sizeof *s.column);
    s.values = alloc_zero(M + SURVEY_THRESHOLDS, sizeof *s.values);
    hfsad_status status;
    if (totals && s.column && s.values)
        status = find_spectrum(&s, v, seed, totals, err);
    else
        status = error_memory(err, 3 * M * sizeof *v, "the spectral start");
    free(totals);
    free(s.column);
    free(s.values);
    return status;
}

void start_draw(double *start, size_t M, uint64_t seed, uint64_t index, double length)
{
    rng r = {rng_key(seed, rng_stream("starts") + index), 0};
    double size = 0;
    for (size_t m = 0; m < M; m++) {
        start[m] = rng_next_normal(&r);
        size += start[m] * start[m];
    }
    for (size_t m = 0; m < M; m++)
        start[m] *= length / sqrt(size);
}

/* Also for numbers whose squares overflow: a start that is not finite is not a start. */
static double length_of(const double *v, size_t M)
{
    double square = 0, most = 0, part = 0;
    for (size_t m = 0; m < M; m++) {
        square += v[m] * v[m];
        most = fmax(most, fabs(v[m]));
    }
    if (isfinite(square) || !isfinite(most))
        return sqrt(square);
    for (size_t m = 0; m < M; m++)
        part += v[m] / most * (v[m] / most);
    return fmin(most * sqrt(part), DBL_MAX);
}

/* Start number `index` of run.tries: the first is the start itself; the others are random vectors of its length, or of
 * the likely length if it is 0. */
static void start_try(double *start, const double *first, size_t M, uint64_t seed, uint64_t index, double likely)
{
    const double length = length_of(first, M);
    if (index)
        start_draw(start, M, seed, index, length > 0 && isfinite(length) ? length : likely);
    else
        memmove(start, first, M * sizeof *start);
}

void start_search_begin(const start_search *s, uint64_t stage, double *w)
{
    const uint64_t first = s->consensus; /* of the tries */
    start_try(w, s->first, s->M, s->seed,
              stage + 1 == s->stages ? s->kept
              : stage < first        ? 0
                                     : stage - first,
              s->likely);
}

void start_search_conclude(start_search *s, uint64_t stage, const hfsad_figures *f, const double *w)
{
    bool finite = figures_are_finite(f);
    for (size_t m = 0; m < s->M; m++)
        finite = finite && isfinite(w[m]);
    if (!finite)
        return;
    s->bytes_up += f->bytes_up;
    s->bytes_down += f->bytes_down;
    if (s->consensus && stage == 0) {
        memcpy(s->first, w, s->M * sizeof *w);
    } else if (f->consensus_objective < s->least) {
        s->least = f->consensus_objective;
        s->kept = stage - s->consensus;
    }
}

void start_search_pass(const word_transfer *t, start_search *s)
{
    words_pass(t, &s->bytes_up);
    words_pass(t, &s->bytes_down);
    words_pass(t, &s->kept);
    words_pass_reals(t, &s->least, 1);
    words_pass_reals(t, s->first, s->M);
}

/* The intercept, the last coordinate: what the features leave of y, in the mean over the rows. */
static hfsad_status start_intercept(double *start, const dataset *d, const surveyor *ask, hfsad_error *err)
{
    const size_t F = features_count(d);
    double totals[2];
    const survey_question q = {SURVEY_LEFT, d->M, start, 0, 2};
    start[F] = 0;
    const size_t K = d->classes ? d->classes : 1;
    const hfsad_status status = ask->ask(ask->context, &q, totals, err);
    for (size_t k = 0; k < K && !status; k++)
        start[F * K + k] = totals[1] / totals[0] / d->rows.constant;
    return status;
}

hfsad_status start_vector(double *start, const char *kind, const dataset *d, uint64_t seed, const surveyor *ask,
                          hfsad_error *err)
{
    const size_t F = features_count(d);
    memset(start, 0, d->M * sizeof *start);
    if (!strcmp(kind, "zero"))
        return HFSAD_OK;
    if (!strcmp(kind, "spectral"))
        return spectral_vector(start, SURVEY_TRUNCATED, d->M, seed, ask, err);
    if (!strcmp(kind, "robust"))
        return spectral_vector(start, SURVEY_ROBUST, d->M, seed, ask, err);
    if (!strcmp(kind, "normal")) {
        normal_vector(start, F, seed, "start");
        return HFSAD_OK;
    }
    const hfsad_status status = vector_read(start, F, kind, "run.start", err);
    if (!status)
        model_from_user(d, start, start);
    return status;
}

const char *start_default(const hfsad_spec *spec)
{
    if (!loss_kinds[spec->loss.kind]->majorised)
        return "zero";
    return spec->top.preset == PRESET_PAPER ? "spectral" : "robust";
}

/* Of a loss with exp(s) for the mean of y: the logarithm of that mean. */
static hfsad_status start_log_intercept(double *start, const dataset *d, const surveyor *ask, hfsad_error *err)
{
    double totals[2];
    const survey_question q = {SURVEY_CENTRE, 0, NULL, 0, 2};
    const hfsad_status status = ask->ask(ask->context, &q, totals, err);
    if (!status && totals[1] > 0)
        start[features_count(d)] = log(totals[1] / totals[0]) / d->rows.constant;
    return status;
}

/* The sum of the loss at w. */
static hfsad_status loss_at(const double *w, size_t M, const surveyor *ask, double *loss, hfsad_error *err)
{
    const survey_question q = {SURVEY_LOSS, M, w, 0, 1};
    return ask->ask(ask->context, &q, loss, err);
}

/* Sub-gradient steps of falling length, from 0.3 to 0.004 of the length of w: roughly to the bottom of its valley. g: M
 * numbers. */
static hfsad_status descend(double *w, double *g, size_t M, const surveyor *ask, hfsad_error *err)
{
    const survey_question q = {SURVEY_GRADIENT, M, w, 0, M};
    hfsad_status status = HFSAD_OK;
    double step = 0.3 * length_of(w, M);
    for (int k = 0; k < START_STEPS && !status; k++, step *= 0.93) {
        status = ask->ask(ask->context, &q, g, err);
        const double size = status ? 0 : length_of(g, M);
        for (size_t m = 0; m < M && size > 0 && isfinite(size); m++)
            w[m] -= step / size * g[m];
    }
    return status;
}

/* Phase retrieval: the robust start in the place of one that leads to a larger loss, because a run hardly leaves the
 * valley that it begins in. If both lead to the same loss, that with the smaller loss is nearer. Data that have no
 * robust start (mostly negative observations) keep theirs. */
static hfsad_status start_better(double *start, const hfsad_spec *spec, const dataset *d, const surveyor *ask,
                                 hfsad_error *err)
{
    const size_t M = d->M;
    double *robust = alloc_zero(4 * M, sizeof *robust), *a = robust + M, *b = a + M, *g = b + M;
    double near[2] = {0}, below[2] = {0}; /* the losses at both starts, and after descending from them */
    if (!robust)
        return error_memory(err, 4 * M * sizeof *robust, "the robust start");
    hfsad_status status = start_vector(robust, "robust", d, (uint64_t)spec->run.seed, ask, err);
    if (status == HFSAD_ERROR_INPUT) {
        free(robust);
        return HFSAD_OK;
    }
    memcpy(a, start, M * sizeof *a);
    memcpy(b, robust, M * sizeof *b);
    for (int i = 0; i < 2 && !status; i++)
        if (!(status = loss_at(i ? b : a, M, ask, &near[i], err)) && !(status = descend(i ? b : a, g, M, ask, err)))
            status = loss_at(i ? b : a, M, ask, &below[i], err);
    const bool same = fabs(below[0] - below[1]) <= 0.02 * below[1];
    if (!status && !(same ? near[0] <= near[1] : below[0] <= below[1]))
        memcpy(start, robust, M * sizeof *start);
    free(robust);
    return status;
}

static bool wants_better(const hfsad_spec *spec, const char *kind)
{
    return loss_kinds[spec->loss.kind]->majorised && !algorithm_is_baseline(spec->top.algorithm) &&
           spec->top.preset == PRESET_TUNED && spec->run.cycles != 0 && strcmp(kind, "robust") != 0 &&
           !spec_has_noise(spec);
}

/* What the features of a start leave to the intercept. */
static hfsad_status start_level(double *start, const dataset *d, const data_scales *scales, const surveyor *ask,
                                hfsad_error *err)
{
    const size_t F = features_count(d);
    bool any = false;
    for (size_t m = 0; m < F; m++)
        any = any || start[m] != 0;
    double level = scales->intercept;
    start[F] = 0;
    const hfsad_status status =
        any ? level_find(&level, start, d->M, scales->intercept, scales->spread, ask, err) : HFSAD_OK;
    start[F] = level / d->rows.constant;
    return status;
}

hfsad_status start_plain(double *start, const char *kind, const hfsad_spec *spec, const dataset *d,
                         const data_scales *scales, const surveyor *ask, hfsad_error *err)
{
    hfsad_status status = start_vector(start, kind, d, (uint64_t)spec->run.seed, ask, err);
    if (!status && wants_better(spec, kind))
        status = start_better(start, spec, d, ask, err);
    const loss_start intercept = loss_kinds[spec->loss.kind]->start;
    if (!status && d->rows.constant != 0 && scales->settled)
        return start_level(start, d, scales, ask, err);
    if (!status && d->rows.constant != 0 && intercept == LOSS_START_LOG)
        return start_log_intercept(start, d, ask, err);
    if (!status && d->rows.constant != 0 && intercept == LOSS_START_MEAN)
        return start_intercept(start, d, ask, err);
    return status;
}
