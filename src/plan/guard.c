#include "plan/guard.h"

#include <math.h>
#include <string.h>

static const double STRAIN_MOST = 0.1, STRAIN_QUIET = 0.03, STEP_QUIET = 0.03, SIZE_MOST = 10, STAR_SIZE_MOST = 3;
enum { FIRST = 5, WILD_MOST = 2, REPAIRS_MOST = 6 };

void guard_pass(const word_transfer *t, guard_state *g)
{
    words_pass_reals(t, &g->first_step, 1);
    words_pass(t, &g->wild);
    words_pass(t, &g->repairs);
    words_pass(t, &g->repaired_last);
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

hfsad_link_rule guard_rule(const hfsad_link_rule *rule, uint64_t repairs)
{
    hfsad_link_rule now = *rule;
    for (uint64_t n = 0; n < repairs; n++)
        now.schedule.c *= 3;
    return now;
}

hfsad_link_rule guard_star_rule(const plan *p, const hfsad_link_rule *rule, uint64_t repairs)
{
    hfsad_link_rule now = *rule;
    for (uint64_t n = 0; n < repairs && now.schedule.c < p->star_c; n++)
        now.schedule.c = fmin(10 * now.schedule.c, p->star_c);
    return now;
}

guard_strain guard_link(const inner_class *class, const hfsad_link *link, size_t M)
{
    guard_strain strain = {0, 0};
    if (!class->watched || link->k == 0)
        return strain;
    const double inv_mu = 1 / hfsad_schedule_mu(&class->rule.schedule, link->k);
    const size_t tied = M - class->rule.penalty.free;
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
    if ((isfinite(size) && g->wild < WILD_MOST) || g->repairs == REPAIRS_MOST)
        return false;
    g->repairs++;
    g->repaired_last = iteration;
    g->wild = 0;
    memcpy(g->before, g->calm, M * sizeof *g->before);
    return true;
}
