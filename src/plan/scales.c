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

/* The gradient at w, through a prox of short step where the program has no gradient. */
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

/* The mean of y where an intercept takes that up. */
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

/* Where the slopes of a convex loss add up to 0: the intercept of a model without features. */
static hfsad_status find_level(double *level, double centre, double spread, const surveyor *ask, hfsad_error *err)
{
    enum { ROUNDS = 8, N = SURVEY_THRESHOLDS };
    double at[N], totals[N], low = centre, high = centre;
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < N; i++) {
            const int away = i < N / 2 ? N / 2 - i : i - N / 2 + 1; /* 1 to 16, on both sides */
            at[i] =
                round ? low + (high - low) * (i + 1) / N : centre + copysign(ldexp(spread, 2 * away - 16), i - 15.5);
        }
        const survey_question q = {SURVEY_LEVELS, N, at, 0, N};
        const hfsad_status status = ask->ask(ask->context, &q, totals, err);
        if (status)
            return status;
        int first = 0;
        while (first < N - 1 && totals[first] < 0)
            first++;
        low = first ? at[first - 1] : round ? low : at[0];
        high = at[first];
    }
    *level = high;
    return HFSAD_OK;
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
    hfsad_status status = d->rows.constant != 0 && !classes ? find_level(&level, centre, spread, ask, err) : HFSAD_OK;
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

hfsad_status data_scales_find(data_scales *t, const hfsad_spec *spec, const dataset *d, const surveyor *ask,
                              hfsad_error *err)
{
    const hfsad_loss loss = loss_of(&spec->loss, NULL);
    const double M = (double)d->M, clients = (double)(d->n_leaves - d->n_later);
    double centre, totals[6];
    const bool centred = spec->features.intercept != INTERCEPT_NONE && loss_kind_of(&loss)->start != LOSS_START_LOG;
    hfsad_status status = find_centre(&centre, centred, ask, err);
    const survey_question q = {SURVEY_SCALE, 1, &centre, 1, 5};
    if (status || (status = ask->ask(ask->context, &q, totals, err)))
        return status;
    const double energy = totals[1], noise = totals[2], weight = totals[3];
    const double spread = spread_of_y(&loss, totals[4], totals[5]);
    const loss_kind *kind = loss_kind_of(&loss);
    const double size = kind->score ? kind->score(spread) : spread;
    *t = (data_scales){
        .omega = totals[0] > 0 ? totals[0] : 1, /* clients that pull at nothing are tied by any weight */
        .level = !(totals[4] > 0),
        .bend = kind->likely_bend(&loss, spread) * energy / M / clients,
        .noise = kind->noise(&loss, spread) * noise / sqrt(M) / clients,
        .length = energy > 0 ? size / sqrt(energy / weight / M) : size,
    };
    const bool own = spec->loss.kind == (int)HFSAD_LOSS_OWN && (spec->own.value || spec->own_elsewhere);
    if (own)
        return own_scales(t, clients, ask, err);
    return lambda_is_wanted(spec) ? find_slope(t, &loss, d, kind->score || kind->labels ? 0 : centre, size, ask, err)
                                  : HFSAD_OK;
}
