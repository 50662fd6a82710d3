/* See device_batch.h: the trees of all runs become a forest, level by level. */
#include "run/device_batch.h"

#include "base/alloc.h"
#include "base/error.h"
#include "run/device_parts.h"
#include "run/state.h"

#include <stdlib.h>
#include <string.h>

struct device_batch {
    const device_table *table;
    void *device;
    size_t n, M;
    uint32_t edge_rounds, k;
    hfsad_schedule leaf, inner;
    double *cloud; /* n models */
    char name[32];
};

/* What the device copies. */
typedef struct {
    device_problem problem;
    size_t level[HFSAD_TIERS_MAX + 2];
    device_run *runs;
    device_node *inner;
    device_rule *rules;
    double *x, *y, *n, *z, *q, *inner_w, *inner_z, *inner_q;
} forest;

const char *device_batch_refuses(const sim *s)
{
    const char *reason = device_refuses(s);
    if (reason)
        return reason;
    if (s->d->rows.first || s->w)
        return "a batch is of clients with one row, whose models are not kept";
    if (device_has_members(s) || s->absences)
        return "the nodes of a batch step in every round, and its clients have one class";
    if (s->unit_u)
        return "a batch is not shared by several ranks";
    return s->guard.calm && plan_is_guarded(s->p, s->d->n_inner) ? "a batch has no safeguard" : NULL;
}

/* The place of run t's inner node i in the forest. */
static size_t batch_place(const sim *s, size_t n, size_t t, size_t i)
{
    const uint32_t depth = s->d->inner[i].depth;
    return n * s->level[depth] + t * (s->level[depth + 1] - s->level[depth]) + i - s->level[depth];
}

static bool same_shape(const sim *a, const sim *b)
{
    bool same = a->M == b->M && a->d->n_inner == b->d->n_inner && a->d->n_leaves == b->d->n_leaves &&
                a->d->leaf_doubles == b->d->leaf_doubles && a->n_runs == b->n_runs && b->iteration == 0 &&
                a->p->edge_rounds == b->p->edge_rounds &&
                a->p->leaf_classes[0].loss.kind == b->p->leaf_classes[0].loss.kind &&
                a->p->leaf_classes[0].loss.box == b->p->leaf_classes[0].loss.box &&
                same_pace(&a->p->leaf_classes[0].rule.schedule, &b->p->leaf_classes[0].rule.schedule);
    for (size_t i = 0; same && i < a->d->n_inner; i++)
        same = a->d->inner[i].parent == b->d->inner[i].parent && a->d->inner[i].n_inner == b->d->inner[i].n_inner &&
               a->d->inner[i].n_leaves == b->d->inner[i].n_leaves &&
               (i == 0 || same_pace(&a->p->inner[i].rule.schedule, &b->p->inner[i].rule.schedule));
    return same;
}

static void free_forest(forest *f)
{
    void *const all[] = {f->runs, f->inner, f->rules, f->x, f->y, f->n, f->z, f->q, f->inner_w, f->inner_z, f->inner_q};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

static bool take_forest(forest *f, const sim *s, size_t n)
{
    const size_t numbers = n * s->d->leaf_doubles, leaves = n * s->d->n_leaves, inner = n * s->d->n_inner;
    f->runs = alloc_zero(n * s->n_runs, sizeof *f->runs);
    f->inner = alloc_zero(inner, sizeof *f->inner);
    f->rules = alloc_zero(n, sizeof *f->rules);
    f->x = alloc_zero(numbers, sizeof(double));
    f->z = alloc_zero(numbers, sizeof(double));
    f->q = alloc_zero(numbers, sizeof(double));
    f->y = alloc_zero(leaves, sizeof(double));
    f->n = alloc_zero(leaves, sizeof(double));
    f->inner_w = alloc_zero(inner * s->M, sizeof(double));
    f->inner_z = alloc_zero(inner * s->M, sizeof(double));
    f->inner_q = alloc_zero(inner * s->M, sizeof(double));
    return f->runs && f->inner && f->rules && f->x && f->z && f->q && f->y && f->n && f->inner_w && f->inner_z &&
           f->inner_q;
}

static void add_tree(forest *f, const sim *s, size_t n, size_t t)
{
    const dataset *d = s->d;
    const size_t numbers = d->leaf_doubles, M = s->M;
    f->rules[t] = rule_for(sim_leaf_rule(s, &s->p->leaf_classes[0]));
    memcpy(f->x + t * numbers, dataset_x(d), numbers * sizeof(double));
    memcpy(f->z + t * numbers, s->z, numbers * sizeof(double));
    memcpy(f->q + t * numbers, s->q, numbers * sizeof(double));
    memcpy(f->y + t * d->n_leaves, d->y, d->n_leaves * sizeof(double));
    memcpy(f->n + t * d->n_leaves, d->n, d->n_leaves * sizeof(double));
    for (size_t r = 0; r < s->n_runs; r++) {
        const run_of_leaves *run = &s->runs[r];
        f->runs[t * s->n_runs + r] =
            (device_run){.at = t * numbers + d->inner[run->parent].base + (size_t)run->first_slot * M,
                         .parent = (uint32_t)batch_place(s, n, t, run->parent),
                         .leaf = (uint32_t)(t * d->n_leaves + run_first_leaf(s, run)),
                         .count = run->count,
                         .rule = (uint32_t)t,
                         .below_inner = run->parent != 0};
    }
    for (size_t i = 0; i < d->n_inner; i++) {
        const inner_node *node = &d->inner[i];
        const size_t at = batch_place(s, n, t, i);
        const hfsad_link_rule rule = sim_inner_rule(s, i);
        f->inner[at] =
            (device_node){.parent = i ? (uint32_t)batch_place(s, n, t, node->parent) : 0,
                          .first_inner = node->n_inner ? (uint32_t)batch_place(s, n, t, node->first_inner) : 0,
                          .n_inner = node->n_inner,
                          .mine = true,
                          .first_run = t * s->n_runs + s->inner[i].first_run,
                          .n_runs = s->inner[i].n_runs,
                          .prior = penalty_for(&s->p->inner[i].prior),
                          .rule = rule_for(&rule)};
        memcpy(f->inner_w + at * M, s->inner_w + i * M, M * sizeof(double));
        memcpy(f->inner_z + at * M, s->inner_z + i * M, M * sizeof(double));
        memcpy(f->inner_q + at * M, s->inner_q + i * M, M * sizeof(double));
    }
}

static void describe(forest *f, const sim *s, size_t n)
{
    for (size_t i = 0; i < sizeof f->level / sizeof *f->level; i++)
        f->level[i] = n * s->level[i];
    f->problem = (device_problem){.M = s->M,
                                  .n_leaves = n * s->d->n_leaves,
                                  .leaf_doubles = n * s->d->leaf_doubles,
                                  .n_runs = n * s->n_runs,
                                  .n_inner = n * s->d->n_inner,
                                  .n_roots = n,
                                  .n_rules = n,
                                  .depth = s->d->depth,
                                  .level = f->level,
                                  .loss = s->p->leaf_classes[0].loss,
                                  .rules = f->rules,
                                  .x = f->x,
                                  .y = f->y,
                                  .n = f->n,
                                  .runs = f->runs,
                                  .inner = f->inner,
                                  .z = f->z,
                                  .q = f->q,
                                  .inner_w = f->inner_w,
                                  .inner_z = f->inner_z,
                                  .inner_q = f->inner_q};
}

static hfsad_status open_batch(device_batch *b, sim *const *sims, hfsad_error *err)
{
    char why[300];
    forest f = {0};
    const sim *s = sims[0];
    hfsad_status status = HFSAD_OK;
    b->table = device_table_of(b->name, why, sizeof why);
    if (!b->table)
        return error_set(err, HFSAD_ERROR_INPUT, "device %s: %s", b->name, why);
    b->cloud = alloc_zero(b->n * b->M, sizeof *b->cloud);
    if (!b->cloud || !take_forest(&f, s, b->n)) {
        status = error_memory(err, b->n * s->d->leaf_doubles * sizeof(double), "a batch; a smaller one needs less");
    } else {
        for (size_t t = 0; t < b->n; t++)
            add_tree(&f, sims[t], b->n, t);
        describe(&f, s, b->n);
        if (!b->table->open(&b->device, &f.problem, why, sizeof why))
            status = error_set(err, HFSAD_ERROR_INPUT, "device %s: %s", b->name, why);
    }
    free_forest(&f);
    return status;
}

hfsad_status device_batch_create(device_batch **out, sim *const *sims, size_t n, const char *device, hfsad_error *err)
{
    *out = NULL;
    const sim *s = sims[0];
    for (size_t t = 0; t < n; t++) {
        const char *reason = device_batch_refuses(sims[t]);
        if (!reason && !same_shape(s, sims[t]))
            reason = "the runs of a batch must have one shape";
        if (reason)
            return error_set(err, HFSAD_ERROR_INPUT, "device %s: %s", device, reason);
    }
    device_batch *b = alloc_zero(1, sizeof *b);
    if (!b)
        return error_memory(err, sizeof *b, "a batch");
    b->n = n;
    b->M = s->M;
    b->edge_rounds = s->p->edge_rounds;
    b->leaf = s->p->leaf_classes[0].rule.schedule;
    b->inner = s->d->n_inner > 1 ? s->p->inner[1].rule.schedule : b->leaf;
    strncpy(b->name, device, sizeof b->name - 1);
    const hfsad_status status = open_batch(b, sims, err);
    if (status) {
        device_batch_free(b);
        return status;
    }
    for (size_t t = 0; t < n; t++)
        memcpy(b->cloud + t * b->M, sims[t]->inner_w, b->M * sizeof *b->cloud);
    *out = b;
    return HFSAD_OK;
}

hfsad_status device_batch_iterate(device_batch *b, hfsad_error *err)
{
    char why[300];
    device_round round = {0};
    bool done = true;
    for (uint32_t i = 0; i < b->edge_rounds && done; i++) {
        b->k++;
        round = (device_round){.leaf = clock_of(&b->leaf, b->k), .inner = clock_of(&b->inner, b->k), .number = b->k};
        done = b->table->round(b->device, &round, why, sizeof why);
    }
    if (!done || !b->table->step_roots(b->device, &round, b->cloud, why, sizeof why))
        return error_set(err, HFSAD_ERROR_INPUT, "device %s: %s", b->name, why);
    return HFSAD_OK;
}

const double *device_batch_cloud(const device_batch *b, size_t run)
{
    return b->cloud + run * b->M;
}

void device_batch_free(device_batch *b)
{
    if (!b)
        return;
    if (b->device)
        b->table->close(b->device);
    free(b->cloud);
    free(b);
}
