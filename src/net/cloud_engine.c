/* See cloud_engine.h. */
#include "net/cloud_engine.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "data/features.h"
#include "plan/owners.h"
#include "run/anew.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct cloud_driver {
    hfsad_run *run; /* data and plan belong to the federation */
    federation *f;
    host *h;
    node *root;
    const inquiry_turns *turns;
    size_t *place;        /* by node: position of its model among the root's models */
    double *scratch;      /* M */
    hfsad_figures row;    /* the last */
    bool has_row, is_new; /* is_new: next_row has not returned it yet */
    bool is_over;         /* the last row is from before a restart */
    bool sign_free;
    double begun, before; /* begun: on clock_seconds; the seconds from before restarts */
};

/* ---- engine ---- */

static bool knows(const hfsad_run *r, size_t number)
{
    return number == 0 || cloud_has_models(r->driver);
}

/* The received model of a node below the cloud. */
static const double *model_below(const hfsad_run *r, size_t number)
{
    const cloud_driver *c = r->driver;
    return node_models_below(c->root) + (c->place[number] - 1) * r->data->M;
}

static run_absence absence(const hfsad_run *r, size_t number)
{
    return number && cloud_has_models(r->driver) ? node_model_absence(model_below(r, number)) : ABSENCE_NONE;
}

static const double *inner_model(const hfsad_run *r, size_t i)
{
    const cloud_driver *c = r->driver;
    while (absence(r, i))
        i = r->data->inner[i].parent;
    if (i > 0)
        return model_below(r, i);
    node_model(c->root, c->scratch);
    return c->scratch;
}

static void leaf_model(const hfsad_run *r, size_t leaf, double *w)
{
    const size_t number = r->data->n_inner + leaf;
    const double *model = absence(r, number) ? inner_model(r, dataset_parent(r->data, leaf)) : model_below(r, number);
    memcpy(w, model, r->data->M * sizeof *w);
}

static uint64_t repairs(const hfsad_run *r, uint64_t *last)
{
    return node_repairs(((const cloud_driver *)r->driver)->root, last);
}

static const double *best(const hfsad_run *r, double *objective)
{
    return node_best(((const cloud_driver *)r->driver)->root, objective);
}

static hfsad_status measure(hfsad_run *r, hfsad_figures *figures, hfsad_error *err)
{
    (void)err;
    *figures = ((const cloud_driver *)r->driver)->row;
    return HFSAD_OK;
}

static bool converged(const hfsad_run *r)
{
    return node_decided(((const cloud_driver *)r->driver)->root) == NODE_CONVERGED;
}

/* The bytes before the first row and the chosen start are known as soon as the row is. */
static void take_search(hfsad_run *r)
{
    const cloud_driver *c = r->driver;
    const start_search *search = node_get_search(c->root);
    r->before = federation_outcome(c->f)->cost;
    r->before.bytes_up += search->bytes_up;
    r->before.bytes_down += search->bytes_down;
    r->start_index = (uint32_t)search->kept;
    r->seconds = c->row.seconds;
}

static hfsad_status next_row(hfsad_run *r, hfsad_stop *stop, hfsad_error *err)
{
    static const hfsad_stop ends[] = {[NODE_RUNNING] = HFSAD_STOP_RUNNING,
                                      [NODE_DONE] = HFSAD_STOP_ITERATIONS,
                                      [NODE_CONVERGED] = HFSAD_STOP_TOLERANCE,
                                      [NODE_DIVERGED] = HFSAD_STOP_DIVERGED};
    cloud_driver *c = r->driver;
    hfsad_status status = HFSAD_OK;
    while (!status && !c->is_new && !c->is_over)
        status = c->turns->turn(c->turns->context, err);
    if (status == CLOUD_INTERRUPTED) {
        *stop = HFSAD_STOP_INTERRUPTED;
        return HFSAD_OK;
    }
    c->is_new = false;
    take_search(r);
    *stop = ends[node_decided(c->root)];
    return status;
}

/* ---- rows of a star, which are kept with the result ---- */

static void keep_row(const hfsad_figures *f, double *numbers)
{
    const double kept[FEDERATION_ROW] = {f->objective,        f->primal_residual,    f->dual_residual,  f->gap_bound,
                                         (double)f->bytes_up, (double)f->bytes_down, f->relative_error, f->seconds};
    memcpy(numbers, kept, sizeof kept);
}

static hfsad_figures kept_row(const hfsad_run *r, uint64_t number, const double *v)
{
    hfsad_figures f = {.iteration = number,
                       .objective = v[0],
                       .consensus_objective = v[0],
                       .primal_residual = v[1],
                       .dual_residual = v[2],
                       .gap_bound = v[3],
                       .bytes_up = (uint64_t)v[4],
                       .bytes_down = (uint64_t)v[5],
                       .relative_error = v[6],
                       .seconds = v[7],
                       .tiers = r->data->depth};
    for (size_t i = 0; i < f.tiers; i++)
        f.primal_tier[i] = f.dual_tier[i] = NAN;
    return f;
}

static void take_star_row(void *context, const polish_row *row, double *numbers)
{
    hfsad_run *r = context;
    cloud_driver *c = r->driver;
    run_take_star(r, row);
    keep_row(&r->star, numbers);
    host_show_row(c->h, &r->star);
}

/* The root's state keeps the result of a polish over a restart. */
static hfsad_status polish(hfsad_run *r, double *w, polish_result *found, const char **why, hfsad_error *err)
{
    cloud_driver *c = r->driver;
    const federation_rows rows = {r, take_star_row};
    const bool known = node_get_polish(c->root) != NULL;
    const hfsad_status status = federation_polish(c->f, host_inquiry(c->h, 0), c->turns, c->root, &rows, err);
    if (status == CLOUD_INTERRUPTED) {
        *why = "interrupted";
        return HFSAD_OK;
    }
    if (status)
        return status;
    const double *numbers = node_get_polish(c->root);
    *why = federation_polish_failure(numbers);
    if (*why)
        return HFSAD_OK;
    *found = federation_polish_result(numbers);
    const size_t M = owners_coordinates(r->plan, r->data);
    const double *model = numbers + FEDERATION_POLISH_HEAD, *first = model + M;
    memcpy(w, model, M * sizeof *w);
    if (r->plan->errors) {
        free(r->errors);
        r->errors = alloc_zero(r->data->M, sizeof *w);
        if (!r->errors)
            return error_memory(err, r->data->M * sizeof *w, "the standard errors");
        memcpy(r->errors, numbers + federation_polish_numbers(r->plan, M) - r->data->M, r->data->M * sizeof *w);
    }
    for (uint64_t i = 0; known && i < federation_polish_rows(numbers); i++) {
        const hfsad_figures row = kept_row(r, i + 1, first + i * FEDERATION_ROW);
        run_take_star_figures(r, &row, model);
        host_show_row(c->h, &row);
    }
    return HFSAD_OK;
}

/* The groups were found together with the polish. */
static hfsad_status groups(hfsad_run *r, personal_result *found, const char **why, hfsad_error *err)
{
    cloud_driver *c = r->driver;
    const federation_rows rows = {r, take_star_row};
    const hfsad_status status = federation_polish(c->f, host_inquiry(c->h, 0), c->turns, c->root, &rows, err);
    if (status == CLOUD_INTERRUPTED) {
        *why = "interrupted";
        return HFSAD_OK;
    }
    const double *numbers = status ? NULL : node_get_polish(c->root);
    if (numbers)
        *why = federation_groups_take(
            c->f, numbers + federation_polish_numbers(r->plan, owners_coordinates(r->plan, r->data)), found);
    return status;
}

/* Allocates memory for models, and finds the position of each among the received ones. */
static hfsad_status place_models(hfsad_run *r, const hfsad_spec *spec, hfsad_error *err)
{
    cloud_driver *c = r->driver;
    const dataset *d = r->data;
    (void)spec;
    const size_t nodes = d->n_inner + d->n_leaves;
    size_t *order = alloc_zero(nodes, sizeof *order);
    c->place = alloc_zero(nodes, sizeof *c->place);
    c->scratch = alloc_zero(d->M, sizeof *c->scratch);
    if (order && c->place) {
        tree_order(d, order);
        for (size_t i = 0; i < nodes; i++)
            c->place[order[i]] = i;
    }
    free(order);
    return order && c->place && c->scratch ? HFSAD_OK : error_memory(err, nodes * sizeof *order, "the models");
}

static const engine cloud_engine = {
    .create = place_models,
    .next_row = next_row,
    .measure = measure,
    .converged = converged,
    .inner_model = inner_model,
    .leaf_model = leaf_model,
    .knows = knows,
    .absence = absence,
    .repairs = repairs,
    .best = best,
    .polish = polish,
    .groups = groups,
};

/* ---- the run ---- */

hfsad_status cloud_create(cloud_driver **out, federation *f, host *h, const hfsad_spec *spec,
                          const inquiry_turns *turns, hfsad_error *err)
{
    const federation_result *result = federation_outcome(f);
    char *start_kind = federation_start_kind(f);
    cloud_driver *c = *out = alloc_zero(1, sizeof *c);
    if (!c || !start_kind) {
        free(start_kind);
        return error_memory(err, sizeof *c, "a run");
    }
    c->f = f;
    c->h = h;
    c->root = host_node(h, 0);
    c->turns = turns;
    c->is_over = node_decided(c->root) != NODE_RUNNING;
    c->begun = clock_seconds();
    const run_known known = {
        .scales = result->scales,
        .nu_f = result->nu_f,
        .start_kind = start_kind,
        .engine = &cloud_engine,
        .driver = c,
        .data = (dataset *)federation_shape(f),
        .plan = federation_plan(f),
        .start = result->start,
        .rule = federation_rule(f),
    };
    const hfsad_status status = run_create_known(&c->run, spec, &known, err);
    free(start_kind);
    if (!status)
        c->sign_free = signs_are_free(c->run->plan, c->run->data->n_leaves);
    return status;
}

void cloud_free(cloud_driver *c)
{
    if (!c)
        return;
    hfsad_run_free(c->run);
    free(c->place);
    free(c->scratch);
    free(c);
}

hfsad_run *cloud_run(cloud_driver *c)
{
    return c->run;
}

void cloud_take_old_row(cloud_driver *c, const hfsad_figures *row)
{
    c->row = *row;
    c->has_row = true;
    if (row->seconds > c->before)
        c->before = row->seconds;
}

void cloud_finish_row(cloud_driver *c, const node *root, hfsad_figures *row)
{
    row->seconds = c->before + clock_seconds() - c->begun;
    if (c->run->truth)
        row->relative_error = model_error(c->run->data, node_row_w(root), c->run->truth, c->sign_free, c->scratch);
}

void cloud_take_row(cloud_driver *c, const hfsad_figures *row)
{
    c->row = *row;
    c->has_row = c->is_new = true;
}

bool cloud_has_models(const cloud_driver *c)
{
    return node_models_below(c->root) != NULL;
}

/* In a stage before the run there is nothing to write. */
static hfsad_status look(cloud_driver *c, hfsad_error *err)
{
    const double end = clock_seconds() + HFSAD_MEMBER_LOOK_SECONDS;
    hfsad_status status = HFSAD_OK;
    if (!c->has_row || host_ended(c->h))
        return status;
    node_look(c->root);
    while ((!status || status == CLOUD_INTERRUPTED) && !host_ended(c->h) && !cloud_has_models(c) &&
           clock_seconds() < end)
        status = c->turns->turn(c->turns->context, err);
    return status == CLOUD_INTERRUPTED ? HFSAD_OK : status;
}

hfsad_status cloud_train(cloud_driver *c, const train_hooks *hooks, train_end *end, hfsad_error *err)
{
    hfsad_status status = run_train(c->run, &(train_settings){.hooks = hooks}, end, err);
    if (status == HFSAD_ERROR_DIVERGED)
        status = HFSAD_OK;
    while (!status && end->stopped != STOP_INTERRUPTED && !host_ended(c->h))
        status = c->turns->turn(c->turns->context, err);
    if (status == CLOUD_INTERRUPTED)
        status = HFSAD_OK;
    if (c->has_row && !c->run->has_star)
        end->figures = c->row;
    if (status || host_ended(c->h))
        return status;
    end->stopped = STOP_INTERRUPTED; /* without the models the run has not ended */
    if (!c->run->has_star)
        run_unpolish(c->run);
    status = look(c, err);
    if (!status && c->is_new && !next_row(c->run, &(hfsad_stop){0}, err)) {
        end->figures = c->row;
        hooks->row(hooks->context, &c->row);
    }
    return status;
}
