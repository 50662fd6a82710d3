/* One line about every run: whether its models are at the optimum, by the bound that the polish leaves. */
#include "base/alloc.h"
#include "plan/client_terms.h"
#include "polish/task.h"
#include "run/handle.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of the objective at 0: below this an objective counts as 0, and its gap is not compared with it. */
static const double as_good_as_zero = 1e-9;

/* Relative to the objective: at a stationary point a convex model of the objective falls by at most this part. The
 * objective itself may fall more in many such steps: of 180 problems of phase retrieval one fell by 2e-4, although the
 * model predicted 1e-6. */
static const double stationary = 1e-6;

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

/* Phase retrieval has no slope at 0 whatever the data, so that nothing moves a model that is 0, even if 0 is a maximum.
 * The search of the polish (polish/search.h) leaves it if a lower point is near. */
static bool is_blind(const hfsad_run *run, bool searched)
{
    const double *w = run->polished ? run->polished : run->engine->inner_model(run, 0);
    bool phase = false;
    for (size_t c = 0; c < run->plan->n_leaf_classes; c++)
        phase = phase || loss_kind_of(&run->plan->leaf_classes[c].loss)->majorised;
    for (size_t m = 0; m < run->data->M && phase; m++)
        phase = w[m] == 0;
    return phase && !searched;
}

static void say_blind(hfsad_verdict *v)
{
    say(v, HFSAD_VERDICT_NOT_CONVERGED,
        "the model is 0: phase retrieval has no slope there for any data, so no step leaves it; try "
        "run.start=robust or run.start=normal");
}

/* A problem that is not convex. The gap of its polish is how far the convex model of F around the last point may still
 * fall: 0 at a stationary point of the unsmoothed problem. */
static void judge_stationary(const hfsad_run *run, hfsad_verdict *v)
{
    const hfsad_polish *p = &run->polish;
    const double size = fmax(p->objective_after, as_good_as_zero * p->objective_zero), part = part_of(p->gap, size);
    char frozen[80] = "";
    v->gap = p->gap;
    if (is_blind(run, owners_coordinates(run->plan, run->data) <= polish_direct(run->data))) {
        say_blind(v);
        return;
    }
    if (p->objective_before > 1.01 * size)
        snprintf(frozen, sizeof frozen, "; the iterations ended %.3g%% above it",
                 100 * (p->objective_before / size - 1));
    if (part <= stationary)
        say(v, HFSAD_VERDICT_CONVERGED,
            "stationary: a convex model of the objective around this point falls by at most %.1e of it; not convex, so "
            "other minima may be lower%s",
            part, frozen);
    else if (!isfinite(part))
        say(v, HFSAD_VERDICT_NOT_CONVERGED,
            "the polish has used up its exchanges before it knew how far its last point is from a stationary one; try "
            "more run.iterations%s",
            frozen);
    else
        say(v, HFSAD_VERDICT_NOT_CONVERGED,
            "a convex model of the objective around this point may fall by %.3g%% of it; try more run.iterations%s",
            100 * part, frozen);
}

/* ---- without a polish: what the last row says of a problem that is not convex ---- */

static bool is_relaxed(const hfsad_run *run)
{
    uint64_t last;
    bool any = run->plan->cycles && run->engine->repairs && run->engine->repairs(run, &last) > 0;
    for (size_t c = 0; c < run->plan->n_leaf_classes; c++)
        any = any || run->plan->leaf_classes[c].rule.schedule.over != 0;
    for (size_t i = 1; i < run->data->n_inner; i++)
        any = any || run->plan->inner[i].rule.schedule.over != 0;
    return any;
}

/* Of links whose |d| = |w_child - w_parent| is below mu in a coordinate: slope |d|, and the pull there, which smoothing
 * lowers to slope |d|/mu, times |d|. stale: sigma^2 of the links that step more than once before their parent does. */
typedef struct {
    double full, pulled, stale;
} link_total;

static void add_link(link_total *sum, const hfsad_link_rule *rule, uint64_t steps, size_t M, const double *child,
                     const double *parent)
{
    const double mu = hfsad_schedule_mu(&rule->schedule, steps), slope = hfsad_penalty_slope(&rule->penalty);
    const bool group = penalty_kind_of(&rule->penalty)->group;
    double d = 0;
    for (size_t m = 0; m + rule->penalty.free < M; m++) {
        d = group ? hypot(d, child[m] - parent[m]) : fabs(child[m] - parent[m]);
        if (group && m + rule->penalty.free + 1 < M)
            continue;
        sum->full += d < mu ? slope * d : 0;
        sum->pulled += d < mu ? slope * d * d / mu : 0;
    }
}

/* false: a model is not here. */
static bool add_links(const hfsad_run *run, link_total *sum)
{
    const dataset *d = run->data;
    const engine *e = run->engine;
    const uint64_t steps = run->last.iteration * run->plan->edge_rounds;
    double *child = alloc_zero(2 * d->M, sizeof *child), *parent = child + d->M;
    bool all = child != NULL;
    for (size_t node = 1; all && node < d->n_inner + d->n_leaves; node++) {
        const bool leaf = node >= d->n_inner;
        const size_t at = leaf ? node - d->n_inner : node;
        const size_t above = leaf ? dataset_parent(d, at) : d->inner[at].parent;
        all = !e->knows || e->knows(run, node);
        if (!all)
            break;
        if (leaf)
            e->leaf_model(run, at, child);
        else
            memcpy(child, e->inner_model(run, at), d->M * sizeof *child);
        memcpy(parent, e->inner_model(run, above), d->M * sizeof *child);
        const hfsad_link_rule *rule = leaf ? &plan_leaf(run->plan, at)->rule : &run->plan->inner[at].rule;
        const uint64_t local = leaf ? plan_leaf(run->plan, at)->local_steps : 1;
        const double sigma = hfsad_schedule_sigma(&rule->schedule, steps * local + 1);
        add_link(sum, rule, steps * local, d->M, child, parent);
        sum->stale += local > 1 || (above == 0 && run->plan->edge_rounds > 1) ? sigma * sigma : 0;
    }
    free(child);
    return all;
}

/* By how much a convex model of the objective may fall within `length`, relative to it; *still: the part that is due to
 * smoothing. Each node is at the minimum of its own part. The sum of all nodes' subgradients is what z and q moved in
 * the last step, times sigma: at most sqrt(2 links) times the dual residual. If a link steps several times before its
 * parent does, q no longer moves in the last step; what the parent's step leaves is then sigma (w_parent - q), at most
 * sigma times the primal residual. One model for all: the subgradients belong to the nodes' models, not to the cloud's.
 * INFINITY: over-relaxed or absent nodes leave no such sum, and the best model of an earlier row has none. */
static double fall_by_residuals(const hfsad_run *run, double length, double *still)
{
    const hfsad_figures *f = &run->last;
    const double links = (double)(run->data->n_inner + run->data->n_leaves - 1);
    link_total sum = {0};
    *still = 0;
    if (run->polished || is_relaxed(run) || plan_leaves_sit_out(run->plan) ||
        plan_inner_sit_out(run->plan, run->data->n_inner) || run->spec->federation.mode == MODE_ASYNC ||
        !(f->objective > 0) || !add_links(run, &sum))
        return INFINITY;
    const bool apart = plan_why_apart(run->plan, run->data->n_inner) != NULL;
    *still = apart ? sum.full : fabs(f->consensus_objective - (f->objective - sum.full)) + sum.pulled;
    *still /= f->objective;
    const double pull = sqrt(2 * links) * f->dual_residual + sqrt(sum.stale) * f->primal_residual;
    const double fall = pull * length / f->objective + *still;
    return fall >= 0 ? fall : INFINITY;
}

/* Whether the links are so hard that nodes no longer move, whatever pulls them: every copy is at its node. */
static bool has_frozen(const hfsad_run *run, double length)
{
    const double links = (double)(run->data->n_inner + run->data->n_leaves - 1);
    return run->last.iteration > 0 && run->last.primal_residual <= 1e-5 * sqrt(2 * links) * length;
}

static void judge_residuals(const hfsad_run *run, const char *apart, hfsad_verdict *v)
{
    const double *w = run->polished ? run->polished : run->engine->inner_model(run, 0);
    const char *advice = apart ? "" : ", or run.polish=true, which goes on to a stationary point";
    double length = 0;
    for (size_t m = 0; m < run->data->M; m++)
        length += w[m] * w[m];
    length = fmax(sqrt(length), run->plan->length); /* a model that is still 0 has far to go */
    double still;
    const double fall = fall_by_residuals(run, length, &still);
    v->gap = NAN;
    if (is_blind(run, false))
        say_blind(v);
    else if (fall <= HFSAD_VERDICT_GAP)
        say(v, HFSAD_VERDICT_CONVERGED,
            "stationary: by the residuals a convex model of the objective around this point falls by at most %.1e of "
            "it; not convex, so other minima may be lower",
            fall);
    else if (has_frozen(run, length) && !(fall - still <= HFSAD_VERDICT_GAP))
        say(v, HFSAD_VERDICT_NOT_CONVERGED,
            "the nodes have stopped moving (primal residual %.1e), and the residuals do not show that the point is "
            "stationary (dual residual %.1e); try another run.start%s",
            run->last.primal_residual, run->last.dual_residual, advice);
    else if (apart && fall - still <= HFSAD_VERDICT_GAP) /* smoothing falls with the root of the iterations only */
        say(v, HFSAD_VERDICT_NOT_CONVERGED,
            "the smoothing of the links may hide %.1e of the objective, and %.0e is asked for; try smaller "
            "schedule.client.alpha and schedule.edge.alpha, such as a tenth of those in summary.json, or more "
            "run.iterations",
            still, HFSAD_VERDICT_GAP);
    else
        say(v, HFSAD_VERDICT_NOT_CONVERGED,
            "the residuals do not show a stationary point (primal %.1e, dual %.1e, smoothing %.1e of the objective); "
            "try more run.iterations%s",
            run->last.primal_residual, run->last.dual_residual, still, advice);
}

/* Not convex, or with links that let go: the residuals decide. */
static bool is_judged_by_residuals(const hfsad_run *run)
{
    const plan *p = run->plan;
    const size_t n_inner = run->data->n_inner;
    bool own = false;
    for (size_t c = 0; c < p->n_leaf_classes; c++)
        own = own || p->leaf_classes[c].loss.kind == HFSAD_LOSS_OWN;
    return run->algorithm->links && !own && !p->aggregate && !run->polish.reason[0] &&
           (!plan_is_convex(p, n_inner) || plan_lets_go(p, n_inner));
}

void run_verdict(const hfsad_run *run, const hfsad_spec *spec, bool stands, hfsad_verdict *v)
{
    const size_t n_inner = run->data->n_inner, M = run->data->M;
    const char *why = run->algorithm->links ? plan_why_apart(run->plan, n_inner) : run->algorithm->unproven;
    *v = (hfsad_verdict){.gap = NAN};
    if (run->polish.unbounded)
        say(v, HFSAD_VERDICT_NOT_CONVERGED, "%s; add %s", run->polish.reason,
            run->plan->owners && !run->plan->level ? "a prior (prior.cloud), with features.intercept=global"
            : run->plan->level ? "rows with another y, or train without intercept and with a prior (prior.cloud)"
            : run->data->classes && polish_holds_columns(run->plan, run->data)
                ? "rows of that class, or train without intercept"
                : "a prior (prior.cloud) or loss.box");
    else if (run->polish.accepted && plan_is_convex(run->plan, n_inner))
        judge_polished(run, v);
    else if (run->polish.accepted)
        judge_stationary(run, v);
    else if (plan_has_noise(run->plan))
        say(v, HFSAD_VERDICT_UNKNOWN, "with noise (privacy) no figure is computed from the clients' rows");
    else if (is_judged_by_residuals(run) && !stands && run->last.iteration == 0)
        say(v, HFSAD_VERDICT_UNKNOWN, "the problem is not convex, and no iteration has been measured");
    else if (is_judged_by_residuals(run) && !stands)
        judge_residuals(run, why, v);
    else if (why || run->polish.reason[0])
        say(v, HFSAD_VERDICT_UNKNOWN, "%s", why ? why : run->polish.reason);
    else if (stands)
        say(v, HFSAD_VERDICT_UNKNOWN, "the run has not ended");
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
