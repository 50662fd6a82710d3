/* See algorithm.h. */
#include "run/algorithm.h"

#include "base/error.h"
#include "spec/settings.h"

#include <stdlib.h>
#include <string.h>

static const char *refuses_nothing(const hfsad_spec *spec)
{
    (void)spec;
    return NULL;
}

static const char *averaging_refuses(const hfsad_spec *spec)
{
    return spec->own.value || spec->loss.kind == (int)HFSAD_LOSS_OWN
               ? "algorithm: the baselines do not support an own loss"
               : NULL;
}

static const char *averaging_refuses_federation(const hfsad_spec *spec)
{
    return spec->federation.mode == MODE_ASYNC   ? "algorithm: fedavg and fedprox need federation.mode sync"
           : spec->federation.wire == WIRE_FLOAT ? "algorithm: fedavg and fedprox need federation.wire double or delta"
                                                 : averaging_refuses(spec);
}

static const algorithm_row links_row = {
    .links = true,
    .remedy = "a larger schedule.client.c and schedule.edge.c, or another run.start",
    .refuses = refuses_nothing,
    .refuses_federation = refuses_nothing,
    .is_finite = figures_are_finite,
};

static const algorithm_row averaging_row = {
    .as_rows = true,
    .remedy = "a smaller baseline.step, or another run.start",
    .unpolished = "algorithm: only hfsad is polished",
    .unproven = "algorithm: a baseline has no bound",
    .unreadmitted = "fedavg and fedprox have no links that could start anew: restart the run with new state folders",
    .refuses = averaging_refuses,
    .refuses_federation = averaging_refuses_federation,
    .is_finite = averaging_is_finite,
    .find_rule = baseline_rule_of,
};

const algorithm_row *algorithm_of(const hfsad_spec *spec)
{
    return algorithm_is_baseline(spec->top.algorithm) ? &averaging_row : &links_row;
}

const char *run_start_kind(const hfsad_spec *spec, const plan *p, size_t n_inner)
{
    const bool apart = algorithm_of(spec)->links && plan_lets_go(p, n_inner);
    return spec->run.start ? spec->run.start : apart ? "consensus" : start_default(spec);
}

static hfsad_status find_start(run_beginning *b, const hfsad_spec *spec, const dataset *d, const surveyor *ask,
                               double *start, hfsad_error *err)
{
    const char *kind = run_start_kind(spec, b->plan, d->n_inner);
    const algorithm_row *algorithm = algorithm_of(spec);
    b->consensus = strcmp(kind, "consensus") == 0;
    b->start_kind = spec_find_start(spec, kind);
    if (!b->start_kind)
        return error_memory(err, 0, "a file name");
    const hfsad_status status =
        start_plain(start, b->consensus ? start_default(spec) : b->start_kind, spec, d, &b->scales, ask, err);
    return status || !algorithm->find_rule ? status : algorithm->find_rule(&b->rule, spec, d, b->plan, start, ask, err);
}

hfsad_status run_begin(run_beginning *b, const hfsad_spec *spec, const dataset *d, const surveyor *ask, double *start,
                       hfsad_error *err)
{
    hfsad_status status;
    *b = (run_beginning){0};
    if (!(status = plan_find(&b->plan, &b->scales, spec, d, ask, err)) && !(status = theorem_bound(&b->nu_f, ask, err)))
        status = find_start(b, spec, d, ask, start, err);
    return status;
}
