/*
 * Algorithm 1 over a tree in memory. One global iteration:
 *
 *     edge_rounds times { every participating client steps; every participating inner node steps, deepest first };
 *     the cloud steps once.
 *
 * Clients are processed in runs (kernels.h), each with its own sums, so the bits do not depend on the assignment of
 * runs to threads. All memory is allocated in sim_create (state.c).
 */
#include "run/state.h"

#include "core/draw.h"
#include "core/fold.h"
#include "run/anew.h"

#include <string.h>

static bool takes_part(const sim *s, double probability, uint64_t key, uint32_t *last)
{
    return draw_takes_part(probability, key, s->round + 1, s->p->edge_rounds, s->p->at_least_every, last);
}

static void draw_leaves(sim *s, run_of_leaves *r, size_t first, uint8_t *active)
{
    r->stepped = r->first_time = 0;
    for (size_t i = 0; i < r->count; i++) {
        const size_t leaf = first + i;
        const uint32_t before = s->last[leaf];
        active[i] = takes_part(s, plan_leaf(s->p, leaf)->participation, s->key[leaf], &s->last[leaf]);
        r->stepped += active[i];
        r->first_time += active[i] && before < s->iteration;
    }
}

void sim_step_leaf(sim *s, size_t leaf, leaf_run *one)
{
    kernels()->leaf_run(one);
    if (one->active && !*one->active)
        return;
    dataset_scatter(s->d, s->z, leaf, one->z);
    dataset_scatter(s->d, s->q, leaf, one->q);
    if (s->w)
        dataset_scatter(s->d, s->w, leaf, one->w);
}

/* A run whose leaves differ in loss, link or schedule: one by one, to the same bits. */
static void step_mixed_run(sim *s, run_of_leaves *r, size_t index, thread_space *space)
{
    const size_t M = s->M, first = run_first_leaf(s, r);
    fold sum;
    fold_begin(&sum, M, space->scratch + leaf_run_scratch(M), s->run_u + index * M);
    r->dual = 0;
    for (size_t i = 0; i < r->count; i++) {
        leaf_run one = leaf_view(s, first + i, r->parent, space);
        one.active = &space->active[i];
        one.w_parent = w_heard(s, one.w_parent);
        sim_step_leaf(s, first + i, &one);
        fold_add(&sum, one.sum_u, one.sum_sigma);
        r->dual += one.dual;
        if (s->leaf_dual)
            s->leaf_dual[first + i] = one.dual;
    }
    fold_end(&sum);
    r->sum_sigma = sum.sum_sigma;
}

void draw_run(sim *s, run_of_leaves *r, uint8_t *active)
{
    if (s->last) {
        draw_leaves(s, r, run_first_leaf(s, r), active);
        return;
    }
    memset(active, 1, r->count);
    r->stepped = r->count;
    r->first_time = s->first_round ? r->count : 0;
}

static void step_run(void *context, size_t index, unsigned thread)
{
    sim *s = context;
    run_of_leaves *r = &s->runs[index];
    thread_space *space = &s->spaces[thread];
    if (!r->mine)
        return;
    draw_run(s, r, space->active);
    if (r->class == MIXED) {
        step_mixed_run(s, r, index, space);
    } else {
        leaf_run run = run_view(s, r, index, space);
        run.active = r->stepped < r->count ? space->active : NULL;
        run.w_parent = w_heard(s, run.w_parent);
        kernels()->leaf_run(&run);
        r->sum_sigma = run.sum_sigma;
        r->dual = run.dual;
    }
    if (s->said && !s->p->fixed) /* the kernels add up messages as they are */
        sim_sum_run(s, index, space);
}

void sim_step_inner(sim *s, size_t i, thread_space *space, const double *w_parent)
{
    sim_cell at = {s, i, space};
    const cell c = sim_cell_of(&at);
    double *w = s->inner_w + i * s->M, *sum = space->rows + 5 * s->M;
    const double sigma = cell_sum(&c, sum);
    hfsad_link link = inner_link(s, i);
    const hfsad_link_rule rule = sim_inner_rule(s, i);
    s->inner[i].dual =
        inner_step(&s->p->inner[i].prior, i ? &rule : NULL, i ? &link : NULL, s->M, sum, sigma, w_parent, w);
    s->inner[i].k = link.k;
}

static void step_inner(void *context, size_t i, unsigned thread)
{
    sim *s = context;
    inner_state *state = &s->inner[i];
    if (!state->mine)
        return;
    const uint32_t before = state->last;
    state->dual = 0;
    state->stepped = takes_part(s, s->p->inner[i].participation, state->key, &state->last);
    state->first_time = state->stepped && before < s->iteration;
    if (state->stepped)
        sim_step_inner(s, i, &s->spaces[thread], w_heard(s, s->inner_w + (size_t)s->d->inner[i].parent * s->M));
}

static uint64_t children(const inner_node *node)
{
    return (uint64_t)node->n_inner + node->n_leaves;
}

/* One vector up per step of a child, but directly below the cloud one per global iteration, because the cloud uses only
 * the last; one vector down per child of every node that stepped. */
void count_round(sim *s)
{
    const uint64_t vector = s->M * sizeof(double);
    for (size_t r = 0; r < s->n_runs; r++)
        if (s->runs[r].mine)
            s->round_up += vector * (s->runs[r].parent ? s->runs[r].stepped : s->runs[r].first_time);
    for (size_t i = 1; i < s->d->n_inner; i++)
        if (s->inner[i].mine && s->inner[i].stepped) {
            s->round_down += vector * children(&s->d->inner[i]);
            s->round_up += s->d->inner[i].parent || s->inner[i].first_time ? vector : 0;
        }
}

static void play_round(sim *s)
{
    if (s->device) {
        device_play(s);
        return;
    }
    sim_settle_leaves(s);
    (void)dataset_x(s->d);
    if (s->said)
        messages_down(s);
    if (s->many.slope)
        many_round(s);
    else
        for_each(s, 0, s->n_runs, s->d->n_leaves, step_run);
    for (uint32_t depth = s->d->depth; depth-- > 1;) {
        const size_t first = s->level[depth], end = s->level[depth + 1];
        for_each(s, first, end, end - first, step_inner);
    }
    count_round(s);
    s->round++;
}

void sim_iterate(sim *s)
{
    const plan *p = s->p;
    s->iteration++;
    sim_find_rules(s);
    const bool measured = plan_measures(p, s->iteration);
    for (uint32_t round = 1; round <= p->edge_rounds; round++) {
        sim_begin_anew(s, true);
        s->first_round = round == 1;
        s->last_round = round == p->edge_rounds;
        s->want_dual = measured && s->last_round;
        play_round(s);
    }
    const bool stepped = device_step_cloud(s);
    ranks_exchange(s);
    if (!stepped) {
        sim_step_inner(s, 0, &s->spaces[0], NULL);
        device_tell_cloud(s);
    }
    if (s->d->rows.constant != 0)
        many_settle(s);
    s->bytes_down += s->M * sizeof(double) * children(&s->d->inner[0]);
    s->dual_known = measured;
    sim_guard(s);
    sim_begin_anew(s, false);
}
