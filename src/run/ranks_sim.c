/* The exchanges between the ranks of a run (data/shares.h): one per global iteration, one per row of the trace. Every
 * rank then takes the cloud's step itself, on the same numbers in the same order. */
#include "run/state.h"

#include <string.h>

void ranks_exchange(sim *s)
{
    const inner_node *cloud = &s->d->inner[0];
    const size_t units = s->unit_u ? share_units(s->d) : 0;
    bool told = false;
    for (size_t unit = 0; unit < units; unit++) {
        double *message = unit_message(s, unit);
        unit_rest *rest = (unit_rest *)(message + s->M);
        if (!share_is_mine(s->d, unit))
            continue;
        *rest = (unit_rest){.bytes_up = told ? 0 : (double)s->round_up, .bytes_down = told ? 0 : (double)s->round_down};
        told = true;
        if (unit < cloud->n_inner) {
            rest->sigma = inner_message(s, cloud->first_inner + unit, message);
            if (s->guard.calm)
                rest->strain = sim_strain_of(s, cloud->first_inner + unit).numbers;
        } else {
            const size_t run = s->inner[0].first_run + unit - cloud->n_inner;
            rest->sigma = s->runs[run].sum_sigma;
            memcpy(message, s->run_u + run * s->M, s->M * sizeof *message);
        }
    }
    if (units)
        share_gather(s->d, s->M * sizeof(double) + sizeof(unit_rest), s->unit_u);
    for (size_t unit = 0; unit < units; unit++) {
        const unit_rest *rest = (const unit_rest *)(unit_message(s, unit) + s->M);
        s->bytes_up += (uint64_t)rest->bytes_up;
        s->bytes_down += (uint64_t)rest->bytes_down;
    }
    if (units == 0) {
        s->bytes_up += s->round_up;
        s->bytes_down += s->round_down;
    }
    s->round_up = s->round_down = 0;
}

void ranks_measure(sim *s)
{
    const inner_node *cloud = &s->d->inner[0];
    const size_t units = s->parts ? share_units(s->d) : 0, first = s->inner[0].first_run;
    for (size_t unit = 0; unit < units; unit++) {
        if (!share_is_mine(s->d, unit))
            continue;
        if (unit < cloud->n_inner)
            s->parts[unit].below = sim_tally_of(s, cloud->first_inner + unit);
        else
            s->parts[unit] = (unit_part){.sums = s->run_sums[first + unit - cloud->n_inner],
                                         .dual = s->runs[first + unit - cloud->n_inner].dual};
    }
    if (units)
        share_gather(s->d, sizeof *s->parts, s->parts);
    for (size_t unit = cloud->n_inner; unit < units; unit++) {
        s->run_sums[first + unit - cloud->n_inner] = s->parts[unit].sums;
        s->runs[first + unit - cloud->n_inner].dual = s->parts[unit].dual;
    }
}

typedef void (*exchange)(void *context, unsigned from, void *bytes, size_t size);

/* The numbers of the clients below a parent from a slot on. */
static void pass_slots(sim *s, exchange pass, unsigned from, size_t parent, size_t slot, size_t count)
{
    void *context = ranks()->context;
    const inner_node *node = &s->d->inner[parent];
    const size_t leaf = node->first_leaf + slot, at = node->base + slot * s->M, bytes = count * s->M * sizeof(double);
    double *const vectors[] = {s->z, s->q, s->w};
    for (size_t i = 0; i < 3; i++)
        if (vectors[i])
            pass(context, from, vectors[i] + at, bytes);
    pass(context, from, s->k + leaf, count * sizeof *s->k);
    if (s->last)
        pass(context, from, s->last + leaf, count * sizeof *s->last);
    if (s->many.eta)
        pass(context, from, s->many.eta + leaf, count * sizeof *s->many.eta);
    if (s->many.slope) {
        const size_t row = s->d->rows.first[leaf];
        pass(context, from, s->many.slope + row, (s->d->rows.first[leaf + count] - row) * sizeof *s->many.slope);
    }
}

static unsigned rank_of(const sim *s, size_t unit)
{
    return share_rank(share_units(s->d), unit);
}

void sim_collect(sim *s)
{
    device_collect(s);
    const rank_group *group = ranks();
    const size_t bytes = s->M * sizeof(double);
    for (size_t i = 0; i < s->d->n_inner && s->unit_u; i++) {
        const unsigned from = i ? rank_of(s, share_of_inner(s->d, i)) : 0;
        group->share(group->context, from, s->inner_w + i * s->M, bytes);
        group->share(group->context, from, s->inner_z + i * s->M, bytes);
        group->share(group->context, from, s->inner_q + i * s->M, bytes);
        bool mine = s->inner[i].mine;
        group->share(group->context, from, &s->inner[i], sizeof s->inner[i]);
        s->inner[i].mine = mine;
    }
    for (size_t r = 0; r < s->n_runs && s->unit_u; r++) {
        run_of_leaves *run = &s->runs[r];
        const unsigned from = rank_of(s, share_of_slot(s->d, run->parent, run->first_slot));
        group->share(group->context, from, &run->dual, sizeof run->dual);
        pass_slots(s, group->bring, from, run->parent, run->first_slot, run->count);
    }
}

void ranks_intercepts(sim *s, double *sum, double *count)
{
    const rank_group *group = ranks();
    const inner_node *cloud = &s->d->inner[0];
    for (size_t c = cloud->first_inner; c < cloud->first_inner + cloud->n_inner && s->unit_u; c++) {
        const unsigned from = rank_of(s, share_of_inner(s->d, c));
        group->share(group->context, from, &sum[c], sizeof *sum);
        group->share(group->context, from, &count[c], sizeof *count);
    }
    for (size_t r = 0; r < s->inner[0].n_runs && s->unit_u; r++) {
        const run_of_leaves *run = &s->runs[s->inner[0].first_run + r];
        pass_slots(s, group->share, rank_of(s, share_of_slot(s->d, 0, run->first_slot)), 0, run->first_slot,
                   run->count);
    }
}
