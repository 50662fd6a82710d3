/* Messages between simulated nodes, rounded if the spec's wire rounds (base/wire.h). A message follows from the state
 * of its link, so the last message of an absent node is still valid. */
#include "run/state.h"

#include "base/wire.h"
#include "plan/cohort.h"

#include <string.h>

void messages_down(sim *s)
{
    memcpy(s->said, s->inner_w, s->d->n_inner * s->M * sizeof *s->said);
    for (size_t i = 0; i < s->d->n_inner && !s->p->fixed; i++)
        (void)wire_round(s->said + i * s->M, s->M);
}

static double leaf_message(const sim *s, size_t leaf, thread_space *space, double *u)
{
    hfsad_link link = {space->rows + s->M, space->rows + 2 * s->M, s->k[leaf]};
    if (s->many.slope) { /* as they are: of many rows the numbers of a client follow each other */
        const rows_leaf one = rows_view(s, leaf, space);
        link.z = one.z;
        link.q = one.q;
    } else {
        dataset_gather(s->d, s->z, leaf, link.z);
        dataset_gather(s->d, s->q, leaf, link.q);
    }
    const double sigma = hfsad_link_message(sim_leaf_rule(s, plan_leaf(s->p, leaf)), &link, s->M, u);
    if (s->said && !s->p->fixed)
        (void)wire_round(u, s->M);
    return sigma;
}

double inner_message(const sim *s, size_t i, double *u)
{
    const hfsad_link link = inner_link(s, i);
    const hfsad_link_rule rule = sim_inner_rule(s, i);
    const double sigma = hfsad_link_message(&rule, &link, s->M, u);
    if (s->said && !s->p->fixed)
        (void)wire_round(u, s->M);
    return sigma;
}

/* ---- the cell of an inner node ---- */

/* Whether messages have come from other ranks. */
static bool from_units(const sim_cell *at)
{
    return at->i == 0 && at->s->unit_u;
}

static const double *unit_said(const sim *s, size_t unit, double *sigma)
{
    const double *message = unit_message(s, unit);
    *sigma = ((const unit_rest *)(message + s->M))->sigma;
    return message;
}

static bool put_words(const sim_cell *at, size_t slot, double sigma, double *u)
{
    sim *s = at->s;
    const inner_node *node = &s->d->inner[at->i];
    const bool leaf = slot >= node->n_inner;
    const size_t place = leaf ? slot - node->n_inner : slot,
                 child = place + (leaf ? node->first_leaf : node->first_inner);
    seeded_words seeded = {leaf && s->many.noise ? s->many.noise[child] : 0, 0, 0};
    const word_source words = seeded_words_source(&seeded);
    const bool fits = cell_words(s->p, s->M, sigma, cohort_members(s->p, leaf ? node->n_leaves : node->n_inner, place),
                                 leaf && s->many.noise ? &words : NULL, leaf ? s->k[child] : 0, u);
    if (!fits)
        s->over = 1 + (leaf ? s->d->n_inner : 0) + child;
    return fits;
}

static const double *message_of(void *context, size_t slot, double *room, double *sigma)
{
    const sim_cell *at = context;
    const sim *s = at->s;
    const inner_node *node = &s->d->inner[at->i];
    const size_t leaf = node->first_leaf + slot - node->n_inner;
    if (slot < node->n_inner && from_units(at))
        return unit_said(s, slot, sigma);
    if (slot >= node->n_inner && s->out && s->out[leaf])
        return NULL;
    *sigma = slot < node->n_inner ? inner_message(s, node->first_inner + slot, room)
                                  : leaf_message(s, leaf, at->space, room);
    return !s->p->fixed || put_words(at, slot, *sigma, room) ? room : NULL;
}

static const double *run_of(void *context, size_t run, double *sigma)
{
    const sim_cell *at = context;
    const sim *s = at->s;
    const size_t index = s->inner[at->i].first_run + run;
    if (from_units(at))
        return unit_said(s, s->d->inner[0].n_inner + run, sigma);
    *sigma = s->runs[index].sum_sigma;
    return s->run_u + index * s->M;
}

static cell_strain strain_of(void *context, size_t slot)
{
    const sim_cell *at = context;
    if (from_units(at))
        return (cell_strain){.numbers = ((const unit_rest *)(unit_message(at->s, slot) + at->s->M))->strain};
    return sim_strain_of(at->s, at->s->d->inner[at->i].first_inner + slot);
}

cell sim_cell_of(sim_cell *at)
{
    const sim *s = at->s;
    const inner_node *node = &s->d->inner[at->i];
    thread_space *space = at->space;
    return (cell){
        .p = s->p,
        .M = s->M,
        .n_inner = node->n_inner,
        .n_leaves = node->n_leaves,
        .context = at,
        .message = message_of,
        .run = run_of,
        .tally = measure_inner_child,
        .run_tally = measure_run_of,
        .tally_words = measure_words,
        .strain = strain_of,
        .partial = space->scratch + leaf_run_scratch(s->M),
        .room = space->said ? space->said : space->rows + 4 * s->M,
        .said = space->of,
        .sigma = space->sigma,
        .shares = space->shares,
    };
}

void sim_sum_run(sim *s, size_t index, thread_space *space)
{
    run_of_leaves *r = &s->runs[index];
    sim_cell at = {s, r->parent, space};
    const cell c = sim_cell_of(&at);
    r->sum_sigma = cell_sum_run(&c, index - s->inner[r->parent].first_run, s->run_u + index * s->M);
}

size_t sim_too_large(const sim *s)
{
    return s->over;
}
