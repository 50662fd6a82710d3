#include "net/tree.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/rng.h"
#include "math/dot.h"
#include "plan/client_terms.h"
#include "plan/cohort.h"
#include "plan/noise.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

uint32_t tree_parent(const dataset *d, size_t number)
{
    return number < d->n_inner ? d->inner[number].parent : dataset_parent(d, number - d->n_inner);
}

size_t tree_slot(const dataset *d, size_t number)
{
    if (number == 0)
        return 0;
    const inner_node *parent = &d->inner[tree_parent(d, number)];
    return number < d->n_inner ? number - parent->first_inner
                               : parent->n_inner + (number - d->n_inner - parent->first_leaf);
}

size_t tree_children(const dataset *d, size_t number)
{
    return number < d->n_inner ? (size_t)d->inner[number].n_inner + d->inner[number].n_leaves : 0;
}

size_t tree_child(const dataset *d, size_t number, size_t slot)
{
    const inner_node *at = &d->inner[number];
    return slot < at->n_inner ? at->first_inner + slot : d->n_inner + at->first_leaf + (slot - at->n_inner);
}

static uint32_t milliseconds(double seconds)
{
    return seconds < 1e-3 ? 1 : (uint32_t)(seconds * 1000);
}

node_patience tree_patience(const dataset *d)
{
    uint32_t most = 0;
    for (size_t i = 0; i < d->n_inner; i++)
        if (d->inner[i].n_inner + d->inner[i].n_leaves > most)
            most = d->inner[i].n_inner + d->inner[i].n_leaves;
    const uint32_t first = 200 + 3 * (most < 10000 ? most : 10000);
    return (node_patience){first, first > 1000 ? 5 * first : 5000};
}

/* A short deadline of steps does not justify rows without a child that is only busy: a replay needs complete rows. */
#define LEAST_ANSWER_SECONDS 2.0

uint32_t tree_answer_ms(const hfsad_spec *spec, size_t tiers)
{
    const FEDERATION_settings *f = &spec->federation;
    return f->mode == MODE_ASYNC && f->stale != STALE_WAIT
               ? milliseconds(fmax(f->deadline, LEAST_ANSWER_SECONDS)) * (uint32_t)tiers
               : 0;
}

hfsad_status tree_settings(tree *t, const hfsad_spec *spec, hfsad_error *err)
{
    const FEDERATION_settings *f = &spec->federation;
    t->patience = tree_patience(t->d);
    t->async = f->mode == MODE_ASYNC;
    t->pace = (node_pace){f->quorum,
                          milliseconds(f->deadline),
                          f->stale == STALE_WAIT,
                          f->stale_seconds > 0 ? milliseconds(f->stale_seconds) : 0,
                          f->local_seconds > 0 ? NODE_STEPS_MOST : 0,
                          milliseconds(fmax(f->deadline, LEAST_ANSWER_SECONDS))};
    t->exclude_after = (unsigned)f->exclude_after;
    if (!t->async)
        return HFSAD_OK;
    if (plan_leaves_sit_out(t->p) || plan_inner_sit_out(t->p, t->d->n_inner))
        return error_set(err, HFSAD_ERROR_INPUT, TREE_ASYNC_DRAWS);
    return HFSAD_OK;
}

/* ---- stages ---- */

static uint64_t stages_of(const tree *t)
{
    return (t->trial ? t->tries : 0) + (t->tied ? 2 : 1);
}

/* The tree of a stage. Those before the last train in lock step, so that the start is the simulator's. */
static tree stage_of(const tree *t, uint64_t stage)
{
    tree at = *t;
    if (stage + 1 == stages_of(t))
        return at;
    at.p = t->tied && stage == 0 ? t->tied : t->trial;
    at.async = false;
    at.average = NULL;
    at.polish = 0;
    return at;
}

/* ---- nodes ---- */

/* Whose draws are those of node `number`. */
static size_t first_of_cohort(const tree *t, size_t number)
{
    const inner_node *parent = &t->d->inner[tree_parent(t->d, number)];
    const bool leaf = number >= t->d->n_inner;
    const size_t base = leaf ? t->d->n_inner + parent->first_leaf : parent->first_inner;
    return base + cohort_of(t->p, leaf ? parent->n_leaves : parent->n_inner, number - base);
}

static uint64_t key_of(const tree *t, size_t number)
{
    char name[HFSAD_TIERS_MAX * 256];
    if (number)
        number = first_of_cohort(t, number);
    if (number < t->d->n_inner)
        return rng_key(t->p->seed, rng_stream(t->d->inner[number].name));
    dataset_leaf_name(t->d, number - t->d->n_inner, name, sizeof name);
    return rng_key(t->p->seed, rng_stream(name));
}

static size_t subtree(const dataset *d, size_t number)
{
    size_t nodes = 1;
    for (size_t c = 0; c < tree_children(d, number); c++)
        nodes += subtree(d, tree_child(d, number, c)); /* no deeper than HFSAD_TIERS_MAX */
    return nodes;
}

static size_t leaves_below(const dataset *d, size_t number)
{
    size_t leaves = number >= d->n_inner;
    for (size_t c = 0; c < tree_children(d, number); c++)
        leaves += leaves_below(d, tree_child(d, number, c));
    return leaves;
}

static hfsad_status inner_node_of(node **n, const tree *t, size_t number, node_setup *s, hfsad_error *err)
{
    const dataset *d = t->d;
    s->inner = &t->p->inner[number];
    s->depth = d->inner[number].depth;
    s->n_children = tree_children(d, number);
    s->n_later = d->inner[number].n_leaves - dataset_counted(d, number);
    node_child *children = alloc_zero(s->n_children, sizeof *children);
    if (!children)
        return error_memory(err, s->n_children * sizeof *children, "a node's children");
    for (size_t c = 0; c < s->n_children; c++) {
        const size_t child = tree_child(d, number, c);
        const bool leaf = child >= d->n_inner;
        children[c] = (node_child){
            .leaf = leaf,
            .out = leaf && t->async && t->out && t->out[child - d->n_inner],
            .participation =
                leaf ? plan_leaf(t->p, child - d->n_inner)->participation : t->p->inner[child].participation,
            .key = key_of(t, child),
            .nodes = subtree(d, child),
            .leaves = leaves_below(d, child),
            .local_steps = leaf ? plan_leaf(t->p, child - d->n_inner)->local_steps : 1,
            .rule = leaf ? plan_leaf(t->p, child - d->n_inner)->rule : t->p->inner[child].rule,
        };
    }
    s->children = children;
    const hfsad_status status = node_create(n, s, err);
    free(children);
    return status;
}

static hfsad_status leaf_of(node **n, const tree *t, size_t leaf, node_setup *s, hfsad_error *err)
{
    const dataset *d = t->d;
    double *row = NULL;
    s->leaf = plan_leaf(t->p, leaf);
    s->depth = d->inner[dataset_parent(d, leaf)].depth + 1;
    s->keeps_w = plan_keeps_w(t->p, d->rows.first != NULL);
    if (t->rows) {
        client_rows rows = dataset_rows(t->rows, t->own[leaf]);
        rows.constant = d->rows.constant;
        if (d->rows.first) {
            s->rows = rows;
        } else {
            s->x = rows.x;
            s->y = rows.y[0];
            s->n = dot8(d->M, rows.x, rows.x);
        }
    } else if (d->rows.first) {
        s->rows = dataset_rows(d, leaf);
    } else {
        row = alloc_zero(d->M, sizeof *row);
        if (!row)
            return error_memory(err, d->M * sizeof *row, "a client's row");
        dataset_gather(d, dataset_x(d), leaf, row);
        s->x = row;
        s->y = d->y[leaf];
        s->n = d->n[leaf];
    }
    char name[HFSAD_TIERS_MAX * 256];
    dataset_leaf_name(d, leaf, name, sizeof name);
    s->noise_key = noise_key(t->p->seed, name);
    if (t->noise)
        s->noise = t->noise[leaf];
    const hfsad_status status = node_create(n, s, err);
    free(row);
    return status;
}

/* Whether sums of sigma stay far from an overflow, r(k) being 1e8 at most. */
static bool is_tame(const plan *p, size_t n_inner)
{
    static const double most = 1e150;
    bool tame = true;
    for (size_t i = 0; i < p->n_leaf_classes; i++)
        tame = tame && p->leaf_classes[i].rule.schedule.c < most;
    for (size_t i = 1; i < n_inner; i++)
        tame = tame && p->inner[i].rule.schedule.c < most;
    return tame;
}

static hfsad_status make_stage(const void *maker, size_t number, uint64_t stage, const double *start, node **n,
                               hfsad_error *err)
{
    const tree *all = maker, t = stage_of(all, stage);
    const dataset *d = t.d;
    node_setup s = {
        .run = t.run,
        .p = t.p,
        .M = d->M,
        .tiers = d->depth,
        .slot = tree_slot(d, number),
        .siblings = number ? tree_children(d, tree_parent(d, number)) : 1,
        .inner_siblings = number ? d->inner[tree_parent(d, number)].n_inner : 0,
        .key = key_of(&t, number),
        .intercept = t.intercept,
        .start = start,
        .patience = t.patience,
        .average = t.average,
        .tame = is_tame(t.p, d->n_inner),
        .guarded = plan_is_guarded(t.p, d->n_inner) && !t.async,
        .keeps = plan_has_guard(t.p, d->n_inner) && !t.async,
        .star = t.p->inner[0].watched && d->n_inner == 1 && !t.async,
        .tied = plan_tied(t.p, d->M, d->n_inner),
        .exclude_after = t.exclude_after,
        .async = t.async,
        .pace = t.pace,
        .number = number,
        .links = dataset_links(d),
        .absences = plan_leaves_sit_out(t.p) || plan_inner_sit_out(t.p, d->n_inner),
        .part = t.part,
        .polish = number ? 0 : t.polish,
        .stage = stage,
        .stages = stages_of(all),
        .consensus = all->tied != NULL,
        .maker = all,
        .make = make_stage,
    };
    return number < d->n_inner ? inner_node_of(n, &t, number, &s, err) : leaf_of(n, &t, number - d->n_inner, &s, err);
}

hfsad_status tree_node(node **n, const tree *t, size_t number, hfsad_error *err)
{
    return make_stage(t, number, 0, t->start, n, err);
}

static size_t *put_order(const dataset *d, size_t number, size_t *order)
{
    *order++ = number;
    for (size_t c = 0; c < tree_children(d, number); c++)
        order = put_order(d, tree_child(d, number, c), order);
    return order;
}

void tree_order(const dataset *d, size_t *order)
{
    (void)put_order(d, 0, order);
}
