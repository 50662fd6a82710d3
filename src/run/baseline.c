/* Hierarchical FedAvg and FedProx; see baseline.h. All memory is allocated in baseline_create. */
#include "run/baseline.h"

#include "base/alloc.h"
#include "base/error.h"
#include "cell/cell.h"
#include "cell/client.h"
#include "core/draw.h"
#include "run/sim.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    double mass;  /* a: of all clients below */
    double since; /* steps that the clients made since the node last averaged or received */
    uint64_t key;
    uint32_t last; /* global iteration in which it last took part */
    bool moved;    /* averaged since its parent last sent */
    bool sends;    /* in this round */
} averaging_node;

typedef enum { SAT_OUT, STEPPED, STEPPED_FIRST } leaf_part; /* first: for the first time in this global iteration */

struct baseline {
    const dataset *d;
    const plan *p;
    const double *truth;
    pool *threads;
    baseline_rule rule;
    size_t M, F; /* F: the coordinates but an intercept */
    double *w;   /* leaves: the last model of each */
    double *inner_w;
    averaging_node *inner;
    double *mass;   /* leaves: a_j */
    uint8_t *moved; /* leaves: stepped since the parent last sent */
    uint8_t *part;  /* leaves: leaf_part of this round */
    uint32_t *last; /* leaves */
    uint64_t *key;
    link_sums *sums; /* leaves: of a measurement */
    double *space;   /* M per thread */
    uint32_t least_steps;
    uint64_t iteration, round, bytes_up, bytes_down;
    bool last_round, sign_free;
};

/* Below this count of numbers a thread costs more than it gains. */
enum { WORTH_A_THREAD = 16384 };

typedef struct {
    baseline *b;
    size_t first;
    void (*work)(baseline *, size_t, unsigned);
} span;

static void work_at(void *context, size_t item, unsigned thread)
{
    const span *a = context;
    a->work(a->b, a->first + item, thread);
}

static void for_each(baseline *b, size_t first, size_t end, size_t rows, void (*work)(baseline *, size_t, unsigned))
{
    span a = {b, first, work};
    if (rows * b->M >= WORTH_A_THREAD)
        pool_run(b->threads, end - first, work_at, &a);
    else
        for (size_t i = first; i < end; i++)
            work(b, i, 0);
}

static double *leaf_w(const baseline *b, size_t leaf, const inner_node *parent)
{
    return b->w + dataset_place(b->d, parent, (uint32_t)(leaf - parent->first_leaf)).first;
}

static bool takes_part(const baseline *b, double probability, uint64_t key, uint32_t *last)
{
    return draw_takes_part(probability, key, b->round + 1, b->p->edge_rounds, b->p->at_least_every, last);
}

static void step_leaf(baseline *b, size_t leaf, unsigned thread)
{
    const leaf_class *class = plan_leaf(b->p, leaf);
    const uint32_t before = b->last[leaf];
    b->part[leaf] = SAT_OUT;
    if (!takes_part(b, class->participation, b->key[leaf], &b->last[leaf]))
        return;
    b->part[leaf] = before < b->iteration ? STEPPED_FIRST : STEPPED;
    const uint32_t parent = dataset_parent(b->d, leaf);
    const double *anchor = b->inner_w + (size_t)parent * b->M;
    double *w = leaf_w(b, leaf, &b->d->inner[parent]), *g = b->space + (size_t)thread * b->M;
    if (!b->moved[leaf])
        memcpy(w, anchor, (b->M - class->rule.penalty.free) * sizeof *w);
    b->moved[leaf] = 1;
    const client_rows rows = dataset_rows(b->d, leaf);
    averaging_step(&b->rule, b->least_steps, class, &rows, b->M, b->round, anchor, w, g);
}

static size_t children(const inner_node *node)
{
    return (size_t)node->n_inner + node->n_leaves;
}

typedef struct {
    baseline *b;
    const inner_node *node;
} averaged;

static averaging_part part_at(const void *context, size_t slot)
{
    const averaged *at = context;
    const baseline *b = at->b;
    const inner_node *node = at->node;
    if (slot < node->n_inner) {
        const size_t i = node->first_inner + slot;
        return (averaging_part){b->inner_w + i * b->M, b->inner[i].moved ? b->inner[i].mass : 0,
                                b->p->inner[i].rule.penalty.free > 0};
    }
    const size_t leaf = node->first_leaf + slot - node->n_inner;
    return (averaging_part){leaf_w(b, leaf, node), b->moved[leaf] ? b->mass[leaf] : 0,
                            plan_leaf(b->p, leaf)->rule.penalty.free > 0};
}

/* Whether any child moved. */
static bool average(baseline *b, size_t i)
{
    averaged at = {b, &b->d->inner[i]};
    const bool moved = averaging_mean(&b->p->inner[i].prior, b->inner[i].since / b->inner[i].mass, b->M,
                                      children(at.node), part_at, &at, b->F < b->M, b->inner_w + i * b->M);
    if (moved)
        b->inner[i].since = 0;
    return moved;
}

static void step_inner(baseline *b, size_t i, unsigned thread)
{
    (void)thread;
    averaging_node *node = &b->inner[i];
    const double probability = b->p->inner[i].participation;
    uint32_t last = node->last; /* counted in count_up, if anything is sent */
    node->sends = takes_part(b, probability, node->key, &last) && average(b, i);
    node->moved = node->moved || node->sends;
}

/* As the simulator counts: a vector up per step of a child, below the cloud one per global iteration. */
static void count_up(baseline *b)
{
    const uint64_t vector = b->M * sizeof(double);
    for (size_t i = 0; i < b->d->n_inner; i++) {
        const inner_node *node = &b->d->inner[i];
        const leaf_part least = i ? STEPPED : STEPPED_FIRST;
        for (size_t leaf = node->first_leaf; leaf < (size_t)node->first_leaf + node->n_leaves; leaf++)
            b->bytes_up += b->part[leaf] >= least ? vector : 0;
        if (i == 0 || !b->inner[i].sends)
            continue;
        b->bytes_up += node->parent || b->inner[i].last < b->iteration ? vector : 0;
        b->inner[i].last = (uint32_t)b->iteration;
    }
}

/* Parents come before their children, so a model that arrives is passed on in the same sweep. */
static void send_down(baseline *b)
{
    for (size_t i = 0; i < b->d->n_inner; i++) {
        const inner_node *node = &b->d->inner[i];
        if (!b->inner[i].sends)
            continue;
        for (size_t c = node->first_inner; c < (size_t)node->first_inner + node->n_inner; c++) {
            const size_t tied = b->M - b->p->inner[c].rule.penalty.free;
            memcpy(b->inner_w + c * b->M, b->inner_w + i * b->M, tied * sizeof(double));
            b->inner[c].sends = true;
            b->inner[c].moved = false;
            b->inner[c].since = 0;
        }
        memset(b->moved + node->first_leaf, 0, node->n_leaves);
        b->bytes_down += b->M * sizeof(double) * children(node);
        b->inner[i].sends = false;
    }
}

static void play_round(baseline *b)
{
    const dataset *d = b->d;
    for_each(b, 0, d->n_leaves, d->n_rows, step_leaf);
    for (size_t i = 0; i < d->n_inner; i++)
        b->inner[i].since += averaging_steps(&b->rule, b->least_steps, b->round);
    for (size_t end = d->n_inner, first; end > 1; end = first) { /* the deepest first */
        first = end - 1;
        while (first > 1 && d->inner[first - 1].depth == d->inner[end - 1].depth)
            first--;
        for_each(b, first, end, d->n_leaves, step_inner);
    }
    count_up(b);
    b->round++;
}

void baseline_iterate(baseline *b)
{
    b->iteration++;
    for (uint32_t round = 1; round <= b->p->edge_rounds; round++) {
        b->last_round = round == b->p->edge_rounds;
        play_round(b);
        if (!b->last_round) /* after the last one the cloud's model is on its way to all of them */
            send_down(b);
    }
    average(b, 0);
    b->inner[0].sends = true;
    send_down(b);
}

static void measure_leaf(baseline *b, size_t leaf, unsigned thread)
{
    const uint32_t parent = dataset_parent(b->d, leaf);
    const double *w = leaf_w(b, leaf, &b->d->inner[parent]), *w_parent = b->inner_w + (size_t)parent * b->M;
    const bool own = plan_leaf(b->p, leaf)->rule.penalty.free, edge = parent && b->p->inner[parent].rule.penalty.free;
    const client_rows rows = dataset_rows(b->d, leaf);
    const double *w0 = client_consensus(b->M, b->inner_w,
                                        own    ? w + b->F
                                        : edge ? w_parent + b->F
                                               : NULL,
                                        b->space + (size_t)thread * b->M);
    averaging_measure(plan_leaf(b->p, leaf), &rows, b->M, w, w0, &b->sums[leaf]);
}

static tally measure_node(baseline *b, size_t i);

static bool measure_child(void *context, size_t slot, tally *t)
{
    const averaged *at = context;
    const inner_node *node = at->node;
    *t = (tally){0};
    if (slot < node->n_inner)
        *t = measure_node(at->b, node->first_inner + slot); /* no deeper than HFSAD_TIERS_MAX */
    else
        t->tier[node->depth] = at->b->sums[node->first_leaf + slot - node->n_inner];
    return true;
}

static tally measure_node(baseline *b, size_t i)
{
    const inner_node *node = &b->d->inner[i];
    averaged at = {b, node};
    const cell c = {.p = b->p,
                    .M = b->M,
                    .n_inner = node->n_inner,
                    .n_leaves = node->n_leaves,
                    .context = &at,
                    .tally = measure_child};
    tally t = {.consensus_priors = kernels()->prior_value(&b->p->inner[i].prior, b->M, b->inner_w)};
    if (i)
        t.tier[node->depth - 1].gap =
            averaging_gap(b->M - b->p->inner[i].rule.penalty.free, b->inner_w + i * b->M, b->inner_w);
    cell_add_tallies(&c, b->d->depth, &t);
    return t;
}

void baseline_measure(baseline *b, hfsad_figures *f)
{
    for_each(b, 0, b->d->n_leaves, b->d->n_rows, measure_leaf);
    const tally t = measure_node(b, 0);
    averaging_figures(&t, b->M, b->d->depth, b->iteration, f);
    f->relative_error = b->truth ? model_error(b->d, b->inner_w, b->truth, b->sign_free, b->space) : NAN;
    f->bytes_up = b->bytes_up;
    f->bytes_down = b->bytes_down;
}

const double *baseline_inner_model(const baseline *b, size_t i)
{
    return b->inner_w + i * b->M;
}

void baseline_leaf_model(const baseline *b, size_t leaf, double *w)
{
    dataset_gather(b->d, b->w, leaf, w);
}

static bool take_memory(baseline *b)
{
    const dataset *d = b->d;
    b->w = alloc_zero(d->leaf_doubles, sizeof(double));
    b->inner_w = alloc_zero(d->n_inner * b->M, sizeof(double));
    b->inner = alloc_zero(d->n_inner, sizeof *b->inner);
    b->mass = alloc_zero(d->n_leaves, sizeof(double));
    b->moved = alloc_zero(d->n_leaves, 1);
    b->part = alloc_zero(d->n_leaves, 1);
    b->last = alloc_zero(d->n_leaves, sizeof *b->last);
    b->key = alloc_zero(d->n_leaves, sizeof *b->key);
    b->sums = alloc_zero(d->n_leaves, sizeof *b->sums);
    b->space = alloc_zero(pool_threads(b->threads) * b->M, sizeof(double));
    return b->w && b->inner_w && b->inner && b->mass && b->moved && b->part && b->last && b->key && b->sums && b->space;
}

/* In the order in which nodes hear of it; the children's are there. */
static double mass_below(const baseline *b, const inner_node *node)
{
    double mass = 0;
    for (size_t c = node->first_inner; c < (size_t)node->first_inner + node->n_inner; c++)
        mass += b->inner[c].mass;
    for (size_t leaf = node->first_leaf; leaf < (size_t)node->first_leaf + node->n_leaves; leaf++)
        mass += b->mass[leaf];
    return mass;
}

static void make_nodes(baseline *b, const double *start)
{
    const dataset *d = b->d;
    char name[HFSAD_TIERS_MAX * 256];
    b->least_steps = averaging_least_steps(b->p);
    for (size_t leaf = 0; leaf < d->n_leaves; leaf++) {
        const client_rows rows = dataset_rows(d, leaf);
        b->mass[leaf] = averaging_mass(plan_leaf(b->p, leaf), &rows);
        dataset_leaf_name(d, leaf, name, sizeof name);
        b->key[leaf] = rng_key(b->p->seed, rng_stream(name));
        dataset_scatter(d, b->w, leaf, start);
    }
    for (size_t i = d->n_inner; i-- > 0;) { /* children before their parents */
        const inner_node *node = &d->inner[i];
        averaging_node *a = &b->inner[i];
        a->mass = mass_below(b, node);
        a->key = rng_key(b->p->seed, rng_stream(node->name));
        memcpy(b->inner_w + i * b->M, start, b->M * sizeof *start);
    }
}

hfsad_status baseline_create(baseline **out, const dataset *d, const plan *p, const baseline_rule *rule,
                             const double *start, const double *truth, pool *threads, hfsad_error *err)
{
    *out = NULL;
    baseline *b = alloc_zero(1, sizeof *b);
    if (!b)
        return error_memory(err, sizeof *b, "a run");
    b->d = d;
    b->p = p;
    b->rule = *rule;
    b->truth = truth;
    b->threads = threads;
    b->M = d->M;
    b->F = d->rows.F;
    if (!take_memory(b)) {
        baseline_free(b);
        return error_memory(err, d->leaf_doubles * sizeof(double), "the clients' models");
    }
    make_nodes(b, start);
    b->sign_free = signs_are_free(p, d->n_leaves);
    *out = b;
    return HFSAD_OK;
}

void baseline_free(baseline *b)
{
    if (!b)
        return;
    free(b->w);
    free(b->inner_w);
    free(b->inner);
    free(b->mass);
    free(b->moved);
    free(b->part);
    free(b->last);
    free(b->key);
    free(b->sums);
    free(b->space);
    free(b);
}
