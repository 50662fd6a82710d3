#include "plan/guard.h"

#include <math.h>
#include <string.h>

static const double STRAIN_MOST = 0.1, STRAIN_QUIET = 0.03, STEP_QUIET = 0.03, SIZE_MOST = 10, STAR_SIZE_MOST = 3;
static const double FROZEN = 1e-5, CYCLE_FIRST = 3, CYCLE_LAST = 1e4;
enum { FIRST = 5, WILD_MOST = 2, REPAIRS_MOST = 6, CYCLES_MOST = 20, CYCLE_STEPS = 350 };

void guard_begin(guard_state *g, double *room, size_t M, const double *start)
{
    g->calm = room;
    g->before = room + M;
    g->best = room + 2 * M;
    g->least = INFINITY;
    g->noted = 0;
    for (size_t i = 0; i < GUARD_VECTORS; i++)
        memcpy(room + i * M, start, M * sizeof *start);
}

void guard_note(guard_state *g, const plan *p, size_t M, uint64_t iteration, double objective, const double *w0)
{
    const uint64_t every = p->trace_every ? p->trace_every : 1; /* rows beside the grid come when the clock says so */
    const bool counts = iteration % every == 0 || iteration == p->iterations;
    if (!g->calm || !p->keeps_best || !counts || (iteration && iteration == g->noted))
        return;
    g->noted = iteration;
    if (!(objective < g->least))
        return;
    g->least = objective;
    memcpy(g->best, w0, M * sizeof *w0);
}

const double *guard_best(const guard_state *g, const plan *p, uint64_t iteration, const double *w0)
{
    return g->calm && p->keeps_best && g->noted == iteration && isfinite(g->least) ? g->best : w0;
}

void guard_pass(const word_transfer *t, guard_state *g)
{
    words_pass_reals(t, &g->first_step, 1);
    words_pass(t, &g->wild);
    words_pass(t, &g->repairs);
    words_pass(t, &g->repaired_last);
    words_pass(t, &g->noted);
    words_pass_reals(t, &g->least, 1);
}

uint64_t guard_repairs_most(const plan *p)
{
    return p->cycles ? CYCLES_MOST : REPAIRS_MOST;
}

bool plan_is_guarded(const plan *p, size_t n_inner)
{
    for (size_t i = 0; i < n_inner; i++)
        if (p->inner[i].watched)
            return true;
    return false;
}

size_t plan_tied(const plan *p, size_t M, size_t n_inner)
{
    const size_t client = p->leaf_classes[0].rule.penalty.free, edge = n_inner > 1 ? p->inner[1].rule.penalty.free : 0;
    return M - (client > edge ? client : edge);
}

/* In steps of a client, to which the steps of inner nodes keep pace. */
static hfsad_link_rule cycle_rule(const plan *p, const hfsad_link_rule *rule, uint64_t cycle)
{
    hfsad_link_rule now = *rule;
    if (cycle == 0)
        return now;
    const double pace = log(CYCLE_LAST / CYCLE_FIRST) / ((double)cycle * CYCLE_STEPS);
    now.schedule.c *= CYCLE_FIRST;
    now.schedule.alpha /= CYCLE_FIRST;
    now.schedule.growth = pow(rule->schedule.growth, pace / log(p->pace));
    now.schedule.turn = 1;
    now.schedule.over = 0.6;
    return now;
}

hfsad_link_rule guard_rule(const plan *p, const hfsad_link_rule *rule, uint64_t repairs)
{
    hfsad_link_rule now = *rule;
    if (p->cycles)
        return cycle_rule(p, rule, repairs);
    for (uint64_t n = 0; n < repairs && isfinite(now.schedule.c); n++) /* a damaged checkpoint may have any number */
        now.schedule.c *= 3;
    return now;
}

hfsad_link_rule guard_leaf_rule(const plan *p, const hfsad_link_rule *rule, bool star, uint64_t repairs)
{
    hfsad_link_rule now = *rule;
    if (p->cycles)
        return cycle_rule(p, rule, repairs);
    for (uint64_t n = 0; star && n < repairs && now.schedule.c < p->star_c; n++)
        now.schedule.c = fmin(10 * now.schedule.c, p->star_c);
    return now;
}

guard_strain guard_link(const inner_class *class, const hfsad_link_rule *rule, const hfsad_link *link, size_t M)
{
    guard_strain strain = {0, 0};
    if (!class->watched || link->k == 0)
        return strain;
    const double inv_mu = 1 / hfsad_schedule_mu(&rule->schedule, link->k);
    const size_t tied = M - rule->penalty.free;
    for (size_t m = 0; m < tied; m++)
        strain.sum += fmin(fabs(link->q[m] - link->z[m]) * inv_mu, 1);
    strain.count = (double)tied;
    return strain;
}

static double distance(size_t count, const double *a, const double *b)
{
    double sum = 0;
    for (size_t m = 0; m < count; m++)
        sum += (a[m] - (b ? b[m] : 0)) * (a[m] - (b ? b[m] : 0));
    return sqrt(sum);
}

/* In a star a repair leads at most to the preset's c, so that one too many does little harm. */
static double size_most(const guard_state *g, const plan *p)
{
    return (g->star ? STAR_SIZE_MOST : SIZE_MOST) * p->length;
}

static bool is_wild(const guard_state *g, const plan *p, uint64_t iteration, double strain, double step, double size)
{
    const bool far = step > STEP_QUIET * size && size > size_most(g, p);
    if (iteration <= g->repaired_last + FIRST)
        return false;
    return g->star ? far : strain > STRAIN_MOST && (far || step > 2 * g->first_step);
}

/* Iterations of a cycle, also if clients sit out. */
static double cycle_length(const plan *p, uint64_t cycle)
{
    return ceil((double)cycle * CYCLE_STEPS / (p->edge_rounds * fmax(p->leaf_classes[0].participation, 0.01)));
}

/* Whether the cycle is over and there is room for another one. */
static bool has_frozen(const guard_state *g, const plan *p, uint64_t iteration, double step, double size)
{
    if (!p->cycles || g->repairs == CYCLES_MOST || iteration >= p->iterations ||
        (double)(p->iterations - iteration) < cycle_length(p, g->repairs + 1))
        return false;
    if (g->repairs == 0)
        return iteration > FIRST && step <= FROZEN * size;
    return (double)(iteration - g->repaired_last) >= cycle_length(p, g->repairs);
}

/* Where the next cycle begins: the best, if the rows of the trace are up to date. */
static void set_calm(guard_state *g, const plan *p, size_t M, const double *w0, uint64_t iteration)
{
    memcpy(g->calm, guard_best(g, p, iteration - 1, w0), M * sizeof *w0);
}

bool guard_decide(guard_state *g, const plan *p, size_t M, size_t tied, const double *w0, uint64_t iteration,
                  guard_strain of)
{
    const double strain = of.count > 0 ? of.sum / of.count : 0, size = distance(tied, w0, NULL);
    const double step = distance(tied, w0, g->before);
    g->wild = is_wild(g, p, iteration, strain, step, size) ? g->wild + 1 : 0;
    if (iteration <= g->repaired_last + FIRST)
        g->first_step = fmax(iteration == g->repaired_last + 1 ? 0 : g->first_step, step);
    memcpy(g->before, w0, tied * sizeof *w0);
    if (isfinite(size) && strain <= STRAIN_QUIET && step <= STEP_QUIET * size && !(g->star && size > size_most(g, p)))
        memcpy(g->calm, w0, tied * sizeof *w0);
    const bool over = isfinite(size) && has_frozen(g, p, iteration, step, size);
    if (!over && ((isfinite(size) && g->wild < WILD_MOST) || g->repairs >= guard_repairs_most(p)))
        return false;
    if (over)
        set_calm(g, p, M, w0, iteration);
    g->repairs++;
    g->repaired_last = iteration;
    g->wild = 0;
    memcpy(g->before, g->calm, M * sizeof *g->before);
    return true;
}
