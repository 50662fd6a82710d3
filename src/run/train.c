/* See train.h. */
#include "run/train.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/ranks.h"
#include "personal/personal_task.h"
#include "polish/task.h"
#include "run/personal_run.h"

#include <math.h>
#include <string.h>

const char *hfsad_stop_name(hfsad_stop stop)
{
    switch (stop) {
#define STOP_NAME(name, text)                                                                                          \
    case HFSAD_STOP_##name:                                                                                            \
        return text;
        HFSAD_STOP_LIST(STOP_NAME)
#undef STOP_NAME
    }
    return "?";
}

void hfsad_run_cancel(hfsad_run *run)
{
    atomic_store(&run->cancelled, true);
}

typedef struct {
    hfsad_run *run;
    const train_settings *settings;
    const train_hooks *hooks;
    train_end *end;
    bool pending; /* the star's last row is not in the trace yet */
    double until; /* of the clock: run.stop.time; 0: none */
} training;

static void settle(hfsad_run *run, bool last)
{
    if (run->engine->settle)
        run->engine->settle(run, last);
}

static bool is_late(const training *t)
{
    const bool late = ranks_any(t->until > 0 && clock_seconds() >= t->until);
    t->run->timed_out = t->run->timed_out || late;
    return late;
}

/* All ranks ask at once, and get one answer. */
static bool is_cancelled(const training *t)
{
    return is_late(t) || ranks_any(atomic_load(&t->run->cancelled) ||
                                   (t->hooks->cancelled && t->hooks->cancelled(t->hooks->context)));
}

static bool is_due(const training *t)
{
    return ranks_any(t->hooks->due && t->hooks->due(t->hooks->context));
}

static void append_row(const training *t)
{
    if (t->hooks->row)
        t->hooks->row(t->hooks->context, &t->end->figures);
}

/* Whether the trace lacks a row for the current iteration: at the start, and if a run is resumed at its end between two
 * rows of the grid, which no checkpoint's trace has. */
static bool needs_row(const training *t, hfsad_status status)
{
    const uint64_t done = t->end->figures.iteration;
    if (t->settings->origin != TRAIN_RESUMED)
        return true;
    return done % (uint64_t)t->run->spec->run.trace_every && (status || done == t->run->plan->iterations);
}

/* Trains from the current iteration to the last row of the trace. */
static hfsad_status iterate(const training *t, hfsad_error *err)
{
    const uint64_t iterations = t->run->plan->iterations;
    const uint64_t every = (uint64_t)t->run->spec->run.trace_every;
    const train_hooks *h = t->hooks;
    for (uint64_t i = t->end->figures.iteration + 1; i <= iterations; i++) {
        hfsad_run_iterate(t->run);
        const bool interrupted = is_cancelled(t) && i < iterations, last = interrupted || i == iterations;
        const bool row = last || i % every == 0, due = !last && is_due(t);
        if (row || due) {
            const hfsad_status status = run_measure(t->run, &t->end->figures, err);
            if (row || status)
                append_row(t);
            if (status) {
                t->end->stopped = STOP_DIVERGED;
                return status;
            }
        }
        if (interrupted ||
            (row && !last && atomic_load(&t->run->cancelled))) /* the latter: by the hook that saw the row */
            t->end->stopped = STOP_INTERRUPTED;
        else if (row && hfsad_run_converged(t->run))
            t->end->stopped = STOP_TOLERANCE;
        if (t->end->stopped != STOP_ITERATIONS)
            break;
        if (due)
            settle(t->run, false);
        if (h->visit)
            h->visit(h->context, i, &t->end->figures, due);
    }
    return HFSAD_OK;
}

static hfsad_status train(const training *t, hfsad_error *err)
{
    hfsad_status status = run_measure(t->run, &t->end->figures, err);
    if (needs_row(t, status))
        append_row(t);
    if (!status && t->hooks->begun)
        status = t->hooks->begun(t->hooks->context, &t->end->figures, err);
    if (status)
        return status;
    t->end->stopped = STOP_ITERATIONS;
    if (t->settings->origin == TRAIN_REPLAYED) {
        if (t->settings->tolerance_met || hfsad_run_converged(t->run))
            t->end->stopped = STOP_TOLERANCE;
        return HFSAD_OK;
    }
    if (t->settings->origin == TRAIN_RESUMED && hfsad_run_converged(t->run)) {
        t->end->stopped = STOP_TOLERANCE;
        return HFSAD_OK;
    }
    if (atomic_load(&t->run->cancelled) && t->end->figures.iteration < t->run->plan->iterations) {
        t->end->stopped = STOP_INTERRUPTED;
        return HFSAD_OK;
    }
    return iterate(t, err);
}

/* From the row of the start to the last, as the engine brings them. */
static hfsad_status follow(const training *t, hfsad_error *err)
{
    const train_hooks *h = t->hooks;
    hfsad_status status = HFSAD_OK;
    hfsad_stop stop = HFSAD_STOP_RUNNING;
    for (bool begun = false; !status && stop == HFSAD_STOP_RUNNING; begun = true) {
        status = t->run->engine->next_row(t->run, &stop, err);
        if (status || stop == HFSAD_STOP_INTERRUPTED)
            break;
        status = run_measure(t->run, &t->end->figures, err);
        append_row(t);
        if (!status && !begun && h->begun)
            status = h->begun(h->context, &t->end->figures, err);
        if (!status && h->visit)
            h->visit(h->context, t->end->figures.iteration, &t->end->figures, h->due && h->due(h->context));
        if (stop == HFSAD_STOP_RUNNING && is_cancelled(t))
            stop = HFSAD_STOP_INTERRUPTED;
    }
    t->end->stopped = status == HFSAD_ERROR_DIVERGED ? STOP_DIVERGED : (stop_reason)stop;
    return status;
}

static bool go_on(void *context, const hfsad_polish *so_far)
{
    const training *t = context;
    if (atomic_load(&t->run->cancelled) || is_late(t))
        return false;
    return !t->hooks->polishing || t->hooks->polishing(t->hooks->context, so_far);
}

/* ---- the star: all of its training is in the polish ---- */

static bool star_goes_on(void *context, const hfsad_polish *so_far)
{
    (void)so_far;
    return !is_cancelled(context);
}

static void see_star_row(void *context, const hfsad_figures *row)
{
    training *t = context;
    const train_hooks *h = t->hooks;
    t->end->figures = *row;
    t->pending = row->iteration % t->run->plan->trace_every != 0;
    if (!t->pending)
        append_row(t);
    if (h->visit)
        h->visit(h->context, row->iteration, row, is_due(t));
}

static hfsad_status train_star(training *t, hfsad_error *err)
{
    hfsad_polish result;
    t->run->star_row = see_star_row;
    t->run->star_context = t;
    const hfsad_status status = run_polish(t->run, star_goes_on, t, &result, err);
    t->run->star_row = NULL;
    if (t->pending)
        append_row(t);
    t->end->stopped = is_cancelled(t) && result.reason[0]            ? STOP_INTERRUPTED
                      : verdict_is_close(&result, t->run->plan->gap) ? STOP_TOLERANCE
                                                                     : STOP_ITERATIONS;
    return status;
}

static hfsad_status polish(training *t, hfsad_error *err)
{
    const train_hooks *h = t->hooks;
    hfsad_polish result;
    const dataset *d = t->run->data;
    if (!polish_is_due(t->run->spec, t->run->plan, d->n_inner, d->M) ||
        (t->end->stopped != STOP_ITERATIONS && t->end->stopped != STOP_TOLERANCE))
        return HFSAD_OK;
    if (t->run->plan->star)
        return train_star(t, err);
    hfsad_status status = h->trained ? h->trained(h->context, &t->end->figures, t->end->stopped, err) : HFSAD_OK;
    if (status)
        return status;
    status = run_polish(t->run, go_on, t, &result, err);
    if (h->polished)
        h->polished(h->context);
    if (!result.accepted && is_cancelled(t))
        t->end->stopped = STOP_INTERRUPTED;
    return status;
}

/* Without a polish: the best w_0 of all rows is the model of all nodes, if it is better than the last. */
static hfsad_status keep_best(const training *t, hfsad_error *err)
{
    hfsad_run *r = t->run;
    const hfsad_figures *last = &t->end->figures;
    double least;
    const double *best = r->engine->best && !r->polished ? r->engine->best(r, &least) : NULL;
    if (!best || !(least < last->consensus_objective - 1e-9 * fabs(last->consensus_objective)) ||
        (least > last->objective && !polish_ties(r->data, r->plan, r->nu_f)) ||
        (t->end->stopped != STOP_ITERATIONS && t->end->stopped != STOP_TOLERANCE))
        return HFSAD_OK;
    r->polished = alloc_zero(r->data->M, sizeof *r->polished);
    if (!r->polished)
        return error_memory(err, r->data->M * sizeof *r->polished, "the best model");
    memcpy(r->polished, best, r->data->M * sizeof *best);
    r->best = least;
    return HFSAD_OK;
}

static bool group_on(void *context)
{
    return !is_cancelled(context);
}

static hfsad_status find_groups(training *t, hfsad_error *err)
{
    if (!personal_is_due(t->run->spec) || (t->end->stopped != STOP_ITERATIONS && t->end->stopped != STOP_TOLERANCE))
        return HFSAD_OK;
    const hfsad_status status = run_find_groups(t->run, group_on, t, err);
    if (!t->run->personal.found.finished && is_cancelled(t))
        t->end->stopped = STOP_INTERRUPTED;
    return status;
}

hfsad_status run_train(hfsad_run *run, const train_settings *settings, train_end *end, hfsad_error *err)
{
    static const train_hooks none = {0};
    training t = {run, settings, settings->hooks ? settings->hooks : &none, end, false, 0};
    if (run->spec->stop.time > 0 && !run->engine->next_row) /* a federation ends as a whole, or goes on */
        t.until = clock_seconds() + run->spec->stop.time;
    run->timed_out = false;
    *end = (train_end){.stopped = STOP_DIVERGED};
    hfsad_status status = run->engine->next_row ? follow(&t, err) : train(&t, err);
    settle(run, true);
    if (!status)
        status = polish(&t, err);
    if (!status)
        status = keep_best(&t, err);
    if (!status)
        status = find_groups(&t, err);
    atomic_store(&run->cancelled, false);
    return status;
}
