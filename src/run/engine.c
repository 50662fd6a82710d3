#include "run/engine.h"

#include "base/error.h"
#include "run/anew.h"
#include "run/handle.h"
#include "run/state.h"

static hfsad_status sim_engine_create(hfsad_run *r, const hfsad_spec *spec, hfsad_error *err)
{
    (void)spec;
    return sim_create(&r->sim, r->data, r->plan, r->start, r->truth, r->threads, err);
}

static void sim_engine_iterate(hfsad_run *r)
{
    sim_iterate(r->sim);
}

static hfsad_status sim_engine_measure(hfsad_run *r, hfsad_figures *figures, hfsad_error *err)
{
    sim_measure(r->sim, figures);
    if (sim_failure(r->sim))
        return error_set(err, HFSAD_ERROR_IO, "%s", sim_failure(r->sim));
    return sim_too_large(r->sim) ? run_too_large(r, sim_too_large(r->sim) - 1, err) : HFSAD_OK;
}

static bool sim_engine_converged(const hfsad_run *r)
{
    return sim_converged(r->sim);
}

/* Whether the clients' own state is wanted at the end. If it is not, that of drawn rows may stay on a device: no figure
 * of the end depends on it. */
static bool wants_leaves(const hfsad_run *r)
{
    const OUTPUT_settings *output = &r->spec->output;
    return output->clients || output->state || output->checkpoint;
}

/* Links that restart after the last row are part of the end. */
static void sim_engine_settle(hfsad_run *r, bool last)
{
    if (last)
        sim_begin_anew(r->sim, true);
    if (!r->sim->device || wants_leaves(r))
        sim_collect(r->sim);
}

/* Of a device only the cloud's model is here after every iteration. */
static const double *sim_engine_inner_model(const hfsad_run *r, size_t i)
{
    if (i > 0)
        device_collect_inner(r->sim);
    return sim_inner_model(r->sim, i);
}

static void sim_engine_leaf_model(const hfsad_run *r, size_t leaf, double *w)
{
    device_collect(r->sim);
    sim_leaf_model(r->sim, leaf, w);
}

static uint64_t sim_engine_repairs(const hfsad_run *r, uint64_t *last)
{
    return sim_repairs(r->sim, last);
}

static const double *sim_engine_best(const hfsad_run *r, double *objective)
{
    return sim_best(r->sim, objective);
}

/* Of a replay. */
static run_absence sim_engine_absence(const hfsad_run *r, size_t node)
{
    return sim_absence(r->sim, node);
}

static bool sim_engine_knows(const hfsad_run *r, size_t node)
{
    return node < r->data->n_inner || !r->data->generated || !r->sim->device || wants_leaves(r);
}

static const engine sim_engine = {
    .saves = true,
    .knows = sim_engine_knows,
    .create = sim_engine_create,
    .iterate = sim_engine_iterate,
    .measure = sim_engine_measure,
    .converged = sim_engine_converged,
    .settle = sim_engine_settle,
    .inner_model = sim_engine_inner_model,
    .leaf_model = sim_engine_leaf_model,
    .absence = sim_engine_absence,
    .repairs = sim_engine_repairs,
    .best = sim_engine_best,
};

static hfsad_status baseline_engine_create(hfsad_run *r, const hfsad_spec *spec, hfsad_error *err)
{
    (void)spec;
    return baseline_create(&r->baseline, r->data, r->plan, &r->rule, r->start, r->truth, r->threads, err);
}

static void baseline_engine_iterate(hfsad_run *r)
{
    baseline_iterate(r->baseline);
}

static hfsad_status baseline_engine_measure(hfsad_run *r, hfsad_figures *figures, hfsad_error *err)
{
    (void)err;
    baseline_measure(r->baseline, figures);
    return HFSAD_OK;
}

/* Sub-gradient methods have no residual by which to stop. */
static bool baseline_engine_converged(const hfsad_run *r)
{
    (void)r;
    return false;
}

static const double *baseline_engine_inner_model(const hfsad_run *r, size_t i)
{
    return baseline_inner_model(r->baseline, i);
}

static void baseline_engine_leaf_model(const hfsad_run *r, size_t leaf, double *w)
{
    baseline_leaf_model(r->baseline, leaf, w);
}

static const engine baseline_engine = {
    .create = baseline_engine_create,
    .iterate = baseline_engine_iterate,
    .measure = baseline_engine_measure,
    .converged = baseline_engine_converged,
    .inner_model = baseline_engine_inner_model,
    .leaf_model = baseline_engine_leaf_model,
};

const engine *engine_of(const algorithm_row *algorithm)
{
    return algorithm->links ? &sim_engine : &baseline_engine;
}
