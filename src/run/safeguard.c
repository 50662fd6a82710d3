/* The safeguard of plan/guard.h over the simulator's tree. */
#include "run/state.h"

#include "base/fixed.h"
#include "base/wire.h"

hfsad_link_rule sim_inner_rule(const sim *s, size_t i)
{
    return guard_rule(s->p, &s->p->inner[i].rule, s->guard.repairs);
}

const hfsad_link_rule *sim_leaf_rule(const sim *s, const leaf_class *class)
{
    return s->leaf_rules ? &s->leaf_rules[class - s->p->leaf_classes] : &class->rule;
}

void sim_find_rules(sim *s)
{
    for (size_t i = 0; s->leaf_rules && i < s->p->n_leaf_classes; i++)
        s->leaf_rules[i] = guard_leaf_rule(s->p, &s->p->leaf_classes[i].rule, s->guard.star, s->guard.repairs);
}

uint64_t sim_repairs(const sim *s, uint64_t *last_iteration)
{
    *last_iteration = s->guard.repaired_last;
    return s->guard.repairs;
}

/* It travels behind u, with which it is rounded or not. */
static guard_strain strain_heard(const sim *s, size_t i, guard_strain strain)
{
    const hfsad_link link = inner_link(s, i);
    const hfsad_link_rule rule = sim_inner_rule(s, i);
    double *u = s->spaces[0].rows, numbers[] = {strain.sum, strain.count};
    (void)hfsad_link_message(&rule, &link, s->M, u);
    if (!wire_round(u, s->M) || !wire_round(numbers, 2))
        return strain;
    return (guard_strain){numbers[0], numbers[1]};
}

cell_strain sim_strain_of(sim *s, size_t i)
{
    sim_cell at = {s, i, &s->spaces[0]};
    const cell c = sim_cell_of(&at);
    const hfsad_link link = inner_link(s, i);
    const hfsad_link_rule rule = sim_inner_rule(s, i);
    const guard_strain strain = cell_strain_up(&c, &s->p->inner[i], &rule, &link); /* no deeper than HFSAD_TIERS_MAX */
    cell_strain said = {.numbers = strain};
    size_t place;
    if (s->said && !s->p->fixed)
        said.numbers = strain_heard(s, i, strain);
    else if (s->p->fixed &&
             !grid_put((const double[]){strain.sum, strain.count}, 2, STRAIN_FACTOR, 1, (int64_t *)said.words, &place))
        s->over = 1 + i;
    return said;
}

/* All links restart at w. */
static void begin_anew(sim *s, const double *w)
{
    for (size_t i = 0; i < s->d->n_inner + s->d->n_leaves; i++)
        sim_restart(s, i, w, true);
    for (size_t r = 0; r < s->n_runs; r++)
        s->runs[r].dual = guard_dual(s->runs[r].dual);
    if (s->d->rows.constant != 0)
        many_settle(s);
    sim_find_rules(s);
}

void sim_guard(sim *s)
{
    sim_cell at = {s, 0, &s->spaces[0]};
    const cell c = sim_cell_of(&at);
    if (s->guard.calm && plan_is_guarded(s->p, s->d->n_inner) &&
        guard_decide(&s->guard, s->p, s->M, plan_tied(s->p, s->M, s->d->n_inner), s->inner_w, s->iteration,
                     cell_strain_below(&c)))
        begin_anew(s, s->guard.calm);
}
