/* What the presets know of the data: see scales.h. */
#include "plan/scales.h"

#include "data/rows.h"
#include "math/dot.h"
#include "math/loss_kind.h"

#include <math.h>
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

hfsad_status data_scales_find(data_scales *t, const hfsad_spec *spec, const dataset *d, const surveyor *ask,
                              hfsad_error *err)
{
    const hfsad_loss loss = loss_of(&spec->loss, NULL);
    const double M = (double)d->M, clients = (double)d->n_leaves;
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
    return own ? own_scales(t, clients, ask, err) : HFSAD_OK;
}
