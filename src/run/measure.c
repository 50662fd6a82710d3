/* The figures of a trace's row, over the simulator's tree. */
#include "run/state.h"

#include "data/features.h"
#include "plan/fixed_answer.h"

#include <math.h>

static void measure_run(void *context, size_t index, unsigned thread)
{
    sim *s = context;
    const run_of_leaves *r = &s->runs[index];
    link_sums *sums = &s->run_sums[index];
    *sums = (link_sums){0};
    if (!r->mine)
        return;
    if (s->many.slope) {
        many_measure(s, r, &s->spaces[thread], sums);
        return;
    }
    if (r->class == MIXED || s->here) {
        const size_t first = run_first_leaf(s, r);
        for (size_t leaf = first; leaf < first + r->count; leaf++) {
            if (!leaf_is_here(s, leaf))
                continue;
            const leaf_run one = leaf_view(s, leaf, r->parent, &s->spaces[thread]);
            kernels()->leaf_measure(&one, s->inner_w, sums);
        }
        return;
    }
    const leaf_run run = run_view(s, r, index, &s->spaces[thread]);
    kernels()->leaf_measure(&run, s->inner_w, sums);
}

/* ---- fixed point ---- */

static void measure_leaf(void *context, size_t leaf, unsigned thread)
{
    sim *s = context;
    const uint32_t parent = dataset_parent(s->d, leaf);
    s->leaf_sums[leaf] = (link_sums){0};
    if (plan_has_noise(s->p))
        return;
    if (s->many.slope) {
        const run_of_leaves one = {
            .parent = parent, .first_slot = (uint32_t)(leaf - s->d->inner[parent].first_leaf), .count = 1};
        many_measure(s, &one, &s->spaces[thread], &s->leaf_sums[leaf]);
    } else {
        const leaf_run one = leaf_view(s, leaf, parent, &s->spaces[thread]);
        kernels()->leaf_measure(&one, s->inner_w, &s->leaf_sums[leaf]);
    }
}

static tally leaf_tally(const sim *s, size_t leaf, size_t depth)
{
    tally t = {0};
    t.tier[depth] = s->leaf_sums[leaf];
    if (!plan_has_noise(s->p))
        t.dual[depth] = s->leaf_dual ? s->leaf_dual[leaf] : s->many.dual[leaf];
    return t;
}

const uint64_t *measure_words(void *context, size_t slot, uint64_t *room)
{
    const sim_cell *at = context;
    const inner_node *node = &at->s->d->inner[at->i];
    if (slot < node->n_inner ? !inner_is_here(at->s, node->first_inner + slot)
                             : !leaf_is_here(at->s, node->first_leaf + slot - node->n_inner))
        return NULL;
    const tally t = slot < node->n_inner ? sim_tally_of(at->s, node->first_inner + slot)
                                         : leaf_tally(at->s, node->first_leaf + slot - node->n_inner, node->depth);
    fixed_tally_put(&t, at->s->d->depth, room);
    return room;
}

/* ---- doubles ---- */

bool measure_inner_child(void *context, size_t slot, tally *t)
{
    const sim_cell *at = context;
    sim *s = at->s;
    const size_t child = s->d->inner[at->i].first_inner + slot;
    if (!inner_is_here(s, child))
        return false;
    *t = at->i == 0 && s->parts ? s->parts[slot].below : sim_tally_of(s, child);
    return true;
}

void measure_run_of(void *context, size_t run, tally *t)
{
    const sim_cell *at = context;
    const size_t depth = at->s->d->inner[at->i].depth, index = at->s->inner[at->i].first_run + run;
    t->tier[depth] = at->s->run_sums[index];
    t->dual[depth] = at->s->runs[index].dual;
}

/* Of inner node i with its own link, and of all below it; no deeper than HFSAD_TIERS_MAX. */
tally sim_tally_of(sim *s, size_t i)
{
    const hfsad_link link = inner_link(s, i);
    const hfsad_link_rule rule = sim_inner_rule(s, i);
    const inner_node *node = &s->d->inner[i];
    const cell_node own = {
        .class = &s->p->inner[i],
        .rule = &rule,
        .link = &link,
        .w = s->inner_w + i * s->M,
        .w_parent = s->inner_w + (size_t)node->parent * s->M,
        .dual = s->inner[i].dual,
        .depth = node->depth,
    };
    sim_cell at = {s, i, &s->spaces[0]};
    const cell c = sim_cell_of(&at);
    tally t = cell_own_tally(&own, s->M, s->inner_w);
    cell_add_tallies(&c, s->d->depth, &t);
    return t;
}

void sim_measure(sim *s, hfsad_figures *f)
{
    const bool measured = device_measure(s);
    if (!measured) {
        device_collect(s);
        (void)dataset_x(s->d);
    }
    if (s->p->fixed)
        for_each(s, 0, s->d->n_leaves, s->d->n_rows, measure_leaf);
    else if (!measured)
        for_each(s, 0, s->n_runs, s->d->n_rows, measure_run);
    if (!s->p->fixed)
        ranks_measure(s);
    const tally t = sim_tally_of(s, 0);
    tally_figures(&t, s->M, s->d->depth, s->iteration, s->dual_known || s->iteration == 0, f);
    f->relative_error = s->truth ? model_error(s->d, s->inner_w, s->truth, s->sign_free, s->spaces[0].rows) : NAN;
    f->bytes_up = s->bytes_up;
    f->bytes_down = s->bytes_down;
    guard_note(&s->guard, s->p, s->M, s->iteration, f->consensus_objective, s->inner_w);
    stop_rule(&s->stop, s->p, &t, f, s->M, dataset_links(s->d), s->absences);
}

bool sim_converged(const sim *s)
{
    return s->stop.converged;
}

double relative_error(size_t M, const double *estimate, const double *truth, bool sign_free)
{
    double minus = 0, plus = 0, size = 0;
    for (size_t m = 0; m < M; m++) {
        minus += (estimate[m] - truth[m]) * (estimate[m] - truth[m]);
        plus += (estimate[m] + truth[m]) * (estimate[m] + truth[m]);
        size += truth[m] * truth[m];
    }
    return (sign_free && plus < minus ? plus : minus) / size;
}

double model_error(const dataset *d, const double *w, const double *truth, bool sign_free, double *scratch)
{
    model_to_user(d, w, scratch);
    const double error = relative_error(features_count(d), scratch, truth, sign_free);
    return isfinite(error) ? error : NAN;
}
