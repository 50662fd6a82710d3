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

static void measure_node(const sim *s, size_t i, tally *t);

void measure_child(const sim *s, size_t c, tally *child)
{
    const size_t i = s->d->inner[c].parent, depth = s->d->inner[i].depth;
    const hfsad_link link = inner_link(s, c);
    const hfsad_link_rule rule = sim_inner_rule(s, c);
    measure_node(s, c, child); /* no deeper than HFSAD_TIERS_MAX */
    kernels()->link_measure(&rule, &link, s->M, s->inner_w + c * s->M, s->inner_w + i * s->M, s->inner_w,
                            &child->tier[depth]);
    child->dual[depth] = s->inner[c].dual;
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

/* The tally of inner node i with its own link, and of all below it, as it goes up. */
static void measure_fixed(const sim *s, size_t i, tally *t)
{
    enum { WORDS = (TALLY_MOST + HFSAD_TIERS_MAX) * FIXED_WORDS };
    const inner_node *node = &s->d->inner[i];
    const inner_class *class = &s->p->inner[i];
    const size_t tiers = s->d->depth, numbers = fixed_tally_numbers(tiers);
    uint64_t sum[WORDS], part[WORDS];
    *t = (tally){.priors = kernels()->prior_value(&class->prior, s->M, s->inner_w + i * s->M),
                 .consensus_priors = kernels()->prior_value(&class->prior, s->M, s->inner_w)};
    if (i) {
        const hfsad_link link = inner_link(s, i);
        const hfsad_link_rule rule = sim_inner_rule(s, i);
        kernels()->link_measure(&rule, &link, s->M, s->inner_w + i * s->M, s->inner_w + (size_t)node->parent * s->M,
                                s->inner_w, &t->tier[node->depth - 1]);
        t->dual[node->depth - 1] = s->inner[i].dual;
    }
    fixed_tally_put(t, tiers, sum);
    for (size_t c = 0; c < (size_t)node->n_inner + node->n_leaves; c++) {
        tally child = {0};
        if (c < node->n_inner) {
            measure_fixed(s, node->first_inner + c, &child); /* no deeper than HFSAD_TIERS_MAX */
        } else {
            const size_t leaf = node->first_leaf + c - node->n_inner;
            child.tier[node->depth] = s->leaf_sums[leaf];
            if (!plan_has_noise(s->p))
                child.dual[node->depth] = s->leaf_dual ? s->leaf_dual[leaf] : s->many.dual[leaf];
        }
        fixed_tally_put(&child, tiers, part);
        fixed_add(sum, part, numbers);
    }
    fixed_tally_get(t, tiers, sum);
}

/* ---- doubles ---- */

/* The tally of inner node i and of all below it, but its own link. */
static void measure_node(const sim *s, size_t i, tally *t)
{
    const inner_node *node = &s->d->inner[i];
    const inner_class *class = &s->p->inner[i];
    *t = (tally){.priors = kernels()->prior_value(&class->prior, s->M, s->inner_w + i * s->M),
                 .consensus_priors = kernels()->prior_value(&class->prior, s->M, s->inner_w)};
    for (size_t c = node->first_inner; c < node->first_inner + node->n_inner; c++) {
        tally child;
        if (!inner_is_here(s, c))
            continue;
        if (i == 0 && s->parts)
            child = s->parts[c - node->first_inner].below;
        else
            measure_child(s, c, &child);
        tally_add(t, &child);
    }
    for (size_t r = s->inner[i].first_run; r < s->inner[i].first_run + s->inner[i].n_runs; r++) {
        link_sums_add(&t->tier[node->depth], &s->run_sums[r]);
        t->dual[node->depth] += s->runs[r].dual;
    }
}

void sim_measure(sim *s, hfsad_figures *f)
{
    tally t;
    device_collect(s);
    if (s->p->fixed) {
        for_each(s, 0, s->d->n_leaves, s->d->n_rows, measure_leaf);
        measure_fixed(s, 0, &t);
    } else {
        for_each(s, 0, s->n_runs, s->d->n_rows, measure_run);
        ranks_measure(s);
        measure_node(s, 0, &t);
    }
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
