/* What the presets know of the data: see scales.h. */
#include "plan/scales.h"

#include "base/alloc.h"
#include "base/error.h"
#include "data/features.h"
#include "data/rows.h"
#include "math/dot.h"
#include "math/loss_kind.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A row pulls by its slope times |x|. If nothing bounds the slope of the loss, a bound of w does (reach, which may be
 * infinite), unless x is 0; and |x|_1 <= sqrt(M) |x|. */
static double row_pull(const hfsad_loss *loss, size_t M, double y, double n, double reach)
{
    const loss_kind *kind = loss_kind_of(loss);
    const bool grows = kind->growth && reach > 0 && n > 0;
    return kind->steepest(loss, y) * sqrt(n) + (grows ? kind->growth(loss, reach * sqrt((double)M), n) : 0);
}

loss_facts loss_measure(const client_rows *rows, size_t M, const hfsad_loss *loss, bool mean, double reach)
{
    loss_facts f = {0};
    for (size_t r = 0; r < rows->count; r++) {
        const double weight = row_weight(rows, r), n = row_norm2(rows, r);
        f.pull += weight * row_pull(loss, M, rows->y[r], n, reach);
        f.energy += weight * n;
        f.noise += weight * weight * n;
        f.weight += weight;
    }
    if (mean)
        f = (loss_facts){f.pull / f.weight, f.energy / f.weight, f.noise / f.weight / f.weight, 1};
    return f;
}

/* The gradient at w; if the program supplies no gradient, by a prox with a short step. */
static void own_slope(const hfsad_own_loss *own, const hfsad_client *client, const double *w, double sigma, double *g)
{
    if (own->gradient) {
        (void)own->gradient(own->context, client, w, g);
        return;
    }
    memcpy(g, w, client->M * sizeof *g);
    own->prox(own->context, client, w, sigma, g);
    for (size_t m = 0; m < client->M; m++)
        g[m] = sigma * (w[m] - g[m]);
}

own_facts own_measure(const client_rows *rows, size_t M, size_t node, const hfsad_own_loss *own, double length,
                      double *scratch)
{
    const hfsad_client client = {node, rows->count, M, rows->y, rows->weight, rows};
    double *w = scratch, *g = scratch + M, *there = scratch + 2 * M, energy = 0;
    for (size_t r = 0; r < rows->count; r++)
        energy += row_norm2(rows, r);
    const double sigma = 1e6 * (energy > 0 ? energy : 1);
    memset(w, 0, M * sizeof *w);
    own_slope(own, &client, w, sigma, g);
    const double slope = sqrt(dot8(M, g, g));
    if (!(slope > 0))
        return (own_facts){0, 0};
    for (size_t m = 0; m < M; m++)
        w[m] = -length / slope * g[m];
    own_slope(own, &client, w, sigma, there);
    double change = 0;
    for (size_t m = 0; m < M; m++)
        change += (there[m] - g[m]) * (there[m] - g[m]);
    return (own_facts){slope, sqrt(change) / length};
}

/* A supplied loss is known only through its functions. Ten times the slope at 0 serves as a bound; a better bound can
 * be set by link.client.weight and schedule.client. */
static hfsad_status own_scales(data_scales *t, double clients, const surveyor *ask, hfsad_error *err)
{
    double totals[2];
    const survey_question q = {SURVEY_OWN, 1, &t->length, 1, 1};
    const hfsad_status status = ask->ask(ask->context, &q, totals, err);
    if (status)
        return status;
    const double slope = totals[0], bend = totals[1] / clients;
    t->omega = 10 * slope;
    t->bend = bend > 0 ? bend : slope / t->length;
    t->noise = slope / 10;
    return HFSAD_OK;
}

/* The mean of y if an intercept absorbs it. */
static hfsad_status find_centre(double *centre, bool intercept, const surveyor *ask, hfsad_error *err)
{
    double totals[2];
    const survey_question q = {SURVEY_CENTRE, 0, NULL, 0, 2};
    *centre = 0;
    if (!intercept)
        return HFSAD_OK;
    const hfsad_status status = ask->ask(ask->context, &q, totals, err);
    if (!status)
        *centre = totals[1] / totals[0];
    return status;
}

/* The scale of the observations: mean |y - centre|, 1 for labels. */
static double spread_of_y(const hfsad_loss *loss, double deviation, double weights)
{
    if (loss_kind_of(loss)->labels)
        return 1;
    return deviation > 0 ? deviation / weights : 1;
}

static bool is_left_open(const PRIOR_settings *prior, double lambda)
{
    return prior->penalty > (int)HFSAD_PENALTY_NONE && isnan(lambda);
}

bool lambda_is_wanted(const hfsad_spec *spec)
{
    const double edge = spec->prior_edge.lambda;
    bool any = is_left_open(&spec->prior_cloud, spec->prior_cloud.lambda) || is_left_open(&spec->prior_edge, edge);
    for (size_t i = 0; i < spec->n_overrides; i++)
        any = any || is_left_open(&spec->overrides[i].prior, pick(spec->overrides[i].prior.lambda, edge));
    const loss_kind *kind = loss_kinds[spec->loss.kind];
    return any && spec->top.preset == PRESET_TUNED &&
           (kind->conjugate || kind->several); /* elsewhere the gradient at 0 says nothing */
}

hfsad_status level_find(double *level, const double *w, size_t M, double centre, double spread, const surveyor *ask,
                        hfsad_error *err)
{
    enum { ROUNDS = 8, N = SURVEY_THRESHOLDS };
    const size_t count = w ? N + M : N;
    double totals[N], low = centre, high = centre, *at = alloc_zero(count, sizeof *at);
    if (!at)
        return error_memory(err, count * sizeof *at, "a question");
    if (w)
        memcpy(at + N, w, M * sizeof *w);
    hfsad_status status = HFSAD_OK;
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < N; i++) {
            const int away = i < N / 2 ? N / 2 - i : i - N / 2 + 1; /* 1 to 16, on both sides */
            at[i] =
                round ? low + (high - low) * (i + 1) / N : centre + copysign(ldexp(spread, 2 * away - 16), i - 15.5);
        }
        const survey_question q = {SURVEY_LEVELS, count, at, 0, N};
        if ((status = ask->ask(ask->context, &q, totals, err)))
            break;
        int first = 0;
        while (first < N - 1 && totals[first] < 0)
            first++;
        low = first ? at[first - 1] : round ? low : at[0];
        high = at[first];
    }
    *level = high;
    free(at);
    return status;
}

/* From the sums of the clients' gradients. Levels of a quantile go by loss.tau, the one in the middle; several classes
 * by a model of zeros. */
static hfsad_status find_slope(data_scales *t, const hfsad_loss *loss, const dataset *d, double centre, double spread,
                               const surveyor *ask, hfsad_error *err)
{
    const size_t M = d->M, F = features_count(d);
    const bool classes = d->classes && (loss_kind_of(loss)->labels || loss_kind_of(loss)->several);
    double *w = alloc_zero(2 * M, sizeof *w), level = 0;
    if (!w)
        return error_memory(err, 2 * M * sizeof *w, "a gradient");
    hfsad_status status =
        d->rows.constant != 0 && !classes ? level_find(&level, NULL, M, centre, spread, ask, err) : HFSAD_OK;
    if (d->rows.constant != 0 && !classes)
        w[F] = level / d->rows.constant;
    const survey_question q = {SURVEY_GRADIENT, M, w, 0, M};
    if (!status)
        status = ask->ask(ask->context, &q, w + M, err);
    for (size_t m = 0; m < (classes ? features_weights(d) : F) && !status; m++)
        t->slope = fmax(t->slope, fabs(w[M + m]));
    free(w);
    return status;
}

/* From the sums over the rows and the scale of y. */
static void derive(data_scales *t, const hfsad_loss *loss, const dataset *d, double spread)
{
    const loss_kind *kind = loss_kind_of(loss);
    const double M = (double)d->M, clients = (double)(d->n_leaves - d->n_later);
    const double size = kind->score ? kind->score(spread) : spread;
    t->spread = spread;
    t->bend = kind->likely_bend(loss, spread) * t->energy / M / clients;
    t->noise = kind->noise(loss, spread) * t->deviations / sqrt(M) / clients;
    t->length = t->energy > 0 ? size / sqrt(t->energy / t->weight / M) : size;
}

hfsad_status data_scales_find(data_scales *t, const hfsad_spec *spec, const dataset *d, const surveyor *ask,
                              hfsad_error *err)
{
    const hfsad_loss loss = loss_of(&spec->loss, NULL);
    double centre, totals[6];
    const bool centred = spec->features.intercept != INTERCEPT_NONE && loss_kind_of(&loss)->start != LOSS_START_LOG;
    hfsad_status status = find_centre(&centre, centred, ask, err);
    const survey_question q = {SURVEY_SCALE, 1, &centre, 1, 5};
    if (status || (status = ask->ask(ask->context, &q, totals, err)))
        return status;
    const loss_kind *kind = loss_kind_of(&loss);
    *t = (data_scales){
        .omega = totals[0] > 0 ? totals[0] : 1, /* clients that pull at nothing are tied by any weight */
        .level = !(totals[4] > 0),
        .energy = totals[1],
        .deviations = totals[2],
        .weight = totals[3],
        .centre = centre,
    };
    derive(t, &loss, d, spread_of_y(&loss, totals[4], totals[5]));
    const bool own = spec->loss.kind == (int)HFSAD_LOSS_OWN && (spec->own.value || spec->own_elsewhere);
    if (own)
        return own_scales(t, (double)(d->n_leaves - d->n_later), ask, err);
    const double size = kind->score ? kind->score(t->spread) : t->spread;
    return lambda_is_wanted(spec) ? find_slope(t, &loss, d, kind->score || kind->labels ? 0 : centre, size, ask, err)
                                  : HFSAD_OK;
}

bool scales_are_settled(const hfsad_spec *spec)
{
    const loss_kind *kind = loss_kinds[spec->loss.kind];
    return spec->top.preset == PRESET_TUNED && kind->conjugate && kind->start != LOSS_START_LOG &&
           !algorithm_is_baseline(spec->top.algorithm) && !spec_scores(spec) &&
           !spec_has_noise(spec); /* made-up rows have no outliers */
}

bool spread_is_settled(const hfsad_spec *spec)
{
    const loss_kind *kind = loss_kinds[spec->loss.kind];
    /* If the slope grows without a bound, an outlier of y is one of the minimum, too. */
    return scales_are_settled(spec) && !kind->labels && !kind->growth;
}

/* The median of |y - <x, w>|, to a tenth, of the rows for which it is not 0: beside the guess, which is a mean. */
static hfsad_status find_spread(double *spread, const double *w, size_t M, const surveyor *ask, hfsad_error *err)
{
    enum { ROUNDS = 2, N = SURVEY_THRESHOLDS };
    double totals[N + 1], low = 0, high = 0, *values = alloc_zero(N + M, sizeof *values), none = 0;
    if (!values)
        return error_memory(err, (N + M) * sizeof *values, "a question");
    memcpy(values + N, w, M * sizeof *w);
    hfsad_status status = HFSAD_OK;
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < N; i++)
            values[i] = round ? low + (high - low) * (i + 1) / N : ldexp(*spread, 2 * (i - N / 2));
        const survey_question q = {SURVEY_MISFIT, N + M, values, 0, N + 1};
        if ((status = ask->ask(ask->context, &q, totals, err)))
            break;
        none = round ? none : totals[1];
        int first = 0;
        while (first < N - 1 && totals[1 + first] - none < (totals[0] - none) / 2)
            first++;
        low = first ? values[first - 1] : low;
        high = values[first];
    }
    free(values);
    if (!status && high > 0 && totals[0] > none)
        *spread = high;
    return status;
}

/* The mean is the answer for the squared loss. */
static hfsad_status find_intercept(data_scales *t, const hfsad_loss *loss, const dataset *d, const surveyor *ask,
                                   hfsad_error *err)
{
    const double centre = loss_kind_of(loss)->labels ? 0 : t->centre;
    double level = t->centre;
    const hfsad_status status =
        loss_kind_of(loss)->squared ? HFSAD_OK : level_find(&level, NULL, d->M, centre, t->spread, ask, err);
    /* one class only has none */
    t->intercept = fabs(level - centre) < ldexp(t->spread, 15) ? level : centre;
    return status;
}

hfsad_status data_scales_settle(data_scales *t, const hfsad_spec *spec, const dataset *d, const surveyor *ask,
                                hfsad_error *err)
{
    const hfsad_loss loss = loss_of(&spec->loss, NULL);
    const bool intercept = d->rows.constant != 0;
    hfsad_status status = intercept ? find_intercept(t, &loss, d, ask, err) : HFSAD_OK;
    double *w = alloc_zero(d->M, sizeof *w), spread = t->spread;
    if (!w)
        return error_memory(err, d->M * sizeof *w, "a model");
    if (intercept)
        w[features_count(d)] = t->intercept / d->rows.constant;
    if (!status && spread_is_settled(spec) && !(status = find_spread(&spread, w, d->M, ask, err)))
        derive(t, &loss, d, spread);
    t->settled = true;
    free(w);
    return status;
}
