/* One line about every run: whether its models are at the optimum, by the bound that the polish leaves. */
#include "polish/task.h"
#include "run/handle.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

/* Of the objective at 0: below this an objective counts as 0, and its gap is not compared with it. */
static const double as_good_as_zero = 1e-9;

static void say(hfsad_verdict *v, hfsad_verdict_kind kind, const char *format, ...)
{
    static const char *const begin[] = {"not known", "converged", "not converged"};
    const int n = snprintf(v->text, sizeof v->text, "%s: ", begin[kind]);
    va_list args;
    va_start(args, format);
    vsnprintf(v->text + n, sizeof v->text - (size_t)n, format, args);
    va_end(args);
    v->kind = kind;
}

static double least_of(const hfsad_polish *p)
{
    return fmax(p->objective_after - p->gap, as_good_as_zero * p->objective_zero);
}

bool verdict_is_close(const hfsad_polish *p, double gap)
{
    return p->gap <= gap * least_of(p);
}

static double part_of(double gap, double size)
{
    return gap > 0 ? gap / size : gap; /* 0 of 0 is nothing */
}

static void judge_polished(const hfsad_run *run, hfsad_verdict *v)
{
    const hfsad_polish *p = &run->polish;
    const double least = least_of(p), part = part_of(p->gap, least);
    v->gap = p->gap;
    if (part <= HFSAD_VERDICT_GAP)
        say(v, HFSAD_VERDICT_CONVERGED, "the objective is at most %.1e above its minimum, %.1e of it", p->gap, part);
    else if (isfinite(p->gap))
        say(v, HFSAD_VERDICT_NOT_CONVERGED,
            "the objective may be up to %.3g (%.3g%%) above its minimum; try features.standardize=true, a prior, or "
            "more run.iterations",
            p->gap, 100 * p->gap / fmax(p->objective_after, least));
    else
        say(v, HFSAD_VERDICT_NOT_CONVERGED,
            "no bound on the distance to the minimum was found; try features.standardize=true, a prior, or more "
            "run.iterations");
}

/* A problem that is not convex. The gap of its polish is how far the convex model of F around the last point may still
 * fall: 0 at a stationary point of the unsmoothed problem. */
static void judge_stationary(const hfsad_run *run, hfsad_verdict *v)
{
    const hfsad_polish *p = &run->polish;
    const double size = fmax(p->objective_after, as_good_as_zero * p->objective_zero), part = part_of(p->gap, size);
    char frozen[80] = "";
    v->gap = p->gap;
    if (p->objective_before > 1.01 * size)
        snprintf(frozen, sizeof frozen, "; the iterations ended %.3g%% above it",
                 100 * (p->objective_before / size - 1));
    if (part <= HFSAD_VERDICT_GAP)
        say(v, HFSAD_VERDICT_CONVERGED,
            "stationary: a convex model of the objective around this point falls by at most %.1e of it; not convex, so "
            "other minima may be lower%s",
            part, frozen);
    else
        say(v, HFSAD_VERDICT_NOT_CONVERGED,
            "a convex model of the objective around this point may fall by %.3g%% of it; try more run.iterations%s",
            100 * part, frozen);
}

void run_verdict(const hfsad_run *run, const hfsad_spec *spec, bool stands, hfsad_verdict *v)
{
    const size_t n_inner = run->data->n_inner, M = run->data->M;
    const char *why = run->algorithm->links ? plan_why_apart(run->plan, n_inner) : run->algorithm->unproven;
    *v = (hfsad_verdict){.gap = NAN};
    if (run->polish.unbounded)
        say(v, HFSAD_VERDICT_NOT_CONVERGED, "%s; add %s", run->polish.reason,
            run->plan->level ? "rows with another y, or train without intercept and with a prior (prior.cloud)"
                             : "a prior (prior.cloud) or loss.box");
    else if (run->polish.accepted && plan_is_convex(run->plan, n_inner))
        judge_polished(run, v);
    else if (run->polish.accepted)
        judge_stationary(run, v);
    else if (plan_has_noise(run->plan))
        say(v, HFSAD_VERDICT_UNKNOWN, "with noise (privacy) no figure is computed from the clients' rows");
    else if (why || run->polish.reason[0])
        say(v, HFSAD_VERDICT_UNKNOWN, "%s", why ? why : run->polish.reason);
    else if (stands)
        say(v, HFSAD_VERDICT_UNKNOWN, "the run has not come to its end");
    else if (!plan_is_convex(run->plan, n_inner))
        say(v, HFSAD_VERDICT_UNKNOWN, "the problem is not convex; run.polish=true goes on to a stationary point");
    else if (!polish_is_due(spec, run->plan, n_inner, M))
        say(v, HFSAD_VERDICT_UNKNOWN, "only the polish finds a bound; run.polish=true adds it");
    else
        say(v, HFSAD_VERDICT_UNKNOWN, "the run ended before the polish, which finds a bound");
}

const hfsad_verdict *hfsad_run_verdict(hfsad_run *run)
{
    run_verdict(run, run->spec, false, &run->verdict);
    return &run->verdict;
}
