/* Hierarchical FedAvg and FedProx; see baseline.h. All memory is allocated in baseline_create. */
#include "run/baseline.h"

#include "base/alloc.h"
#include "base/error.h"
#include "core/draw.h"
#include "core/kernels.h"
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
    double *loss, *gap; /* leaves: of a measurement */
    double *space;      /* M per thread */
    uint32_t least_steps;
    uint64_t iteration, round, bytes_up, bytes_down;
    double t; /* step of this round */
    bool last_round, sign_free;
};

double baseline_mass(const dataset *d, const plan *p, size_t leaf)
{
    const client_rows rows = dataset_rows(d, leaf);
    return plan_leaf(p, leaf)->mean ? 1 : rows_weight(&rows);
}

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

/* The client's loss with this factor of its rows' weights. */
static rows_problem problem_of(const baseline *b, size_t leaf, double factor)
{
    return (rows_problem){
        .loss = &plan_leaf(b->p, leaf)->loss, .rows = dataset_rows(b->d, leaf), .M = b->M, .factor = factor};
}

static bool takes_part(const baseline *b, double probability, uint64_t key, uint32_t *last)
{
    return draw_takes_part(probability, key, b->round + 1, b->p->edge_rounds, b->p->at_least_every, last);
}

/* The step on <g, w> + rho/2 |w - anchor|^2 in closed form; for rho = 0 it is the plain one, to the bit. */
static void client_step(const baseline *b, const leaf_class *class, double t, const double *anchor, const double *g,
                        double *w)
{
    const double keep = 1 / (1 + t * b->rule.rho), box = class->loss.box;
    const size_t tied = b->M - class->rule.penalty.free;
    for (size_t m = 0; m < tied; m++)
        w[m] = keep * (w[m] - t * g[m]) + (1 - keep) * anchor[m];
    for (size_t m = tied; m < b->M; m++)
        w[m] -= t * g[m];
    for (size_t m = 0; m < b->F; m++)
        w[m] = w[m] > box ? box : w[m] < -box ? -box : w[m];
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
    if (!(b->mass[leaf] > 0))
        return;
    rows_problem problem = problem_of(b, leaf, 1);
    problem.factor = 1 / rows_weight(&problem.rows);
    /* Whoever makes more steps makes shorter ones, or his loss would count for more than the objective says. */
    const double t = b->t * b->least_steps / class->local_steps;
    for (uint32_t step = class->local_steps; step > 0; step--) {
        kernels()->rows_subgradient(&problem, w, g);
        client_step(b, class, t, anchor, g, w);
    }
}

typedef struct {
    const double *w;
    double mass; /* 0: it did not move */
    bool own;    /* its last coordinate is its own */
} child;

static size_t children(const inner_node *node)
{
    return (size_t)node->n_inner + node->n_leaves;
}

static child child_at(const baseline *b, const inner_node *node, size_t slot)
{
    if (slot < node->n_inner) {
        const size_t i = node->first_inner + slot;
        return (child){b->inner_w + i * b->M, b->inner[i].moved ? b->inner[i].mass : 0,
                       b->p->inner[i].rule.penalty.free > 0};
    }
    const size_t leaf = node->first_leaf + slot - node->n_inner;
    return (child){leaf_w(b, leaf, node), b->moved[leaf] ? b->mass[leaf] : 0,
                   plan_leaf(b->p, leaf)->rule.penalty.free > 0};
}

static void prior_step(const hfsad_penalty *prior, size_t M, double step, double *w)
{
    if (penalty_is_flat(prior) || !(step > 0))
        return;
    for (size_t m = 0; m < M - prior->free; m++)
        w[m] = hfsad_penalty_prox(prior, w[m], step, 0);
}

/* Whether any child moved. If all children have their own intercepts, the node's model contains their mean; it is not
 * sent. */
static bool average(baseline *b, size_t i)
{
    const inner_node *node = &b->d->inner[i];
    const size_t n = children(node), F = b->F;
    double *w = b->inner_w + i * b->M, total = 0, tied = 0;
    for (size_t slot = 0; slot < n; slot++) {
        const child c = child_at(b, node, slot);
        total += c.mass;
        tied += c.own ? 0 : c.mass;
    }
    if (!(total > 0))
        return false;
    memset(w, 0, b->M * sizeof *w);
    for (size_t slot = 0; slot < n; slot++) {
        const child c = child_at(b, node, slot);
        if (!(c.mass > 0))
            continue;
        const double share = c.mass / total;
        for (size_t m = 0; m < F; m++)
            w[m] += share * c.w[m];
        if (F < b->M && (!c.own || !(tied > 0)))
            w[F] += c.mass / (tied > 0 ? tied : total) * c.w[F];
    }
    prior_step(&b->p->inner[i].prior, b->M, b->inner[i].since / b->inner[i].mass, w);
    b->inner[i].since = 0;
    return true;
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
    b->t = step_length(&b->rule.step, b->round, 0, 0);
    for_each(b, 0, d->n_leaves, d->n_rows, step_leaf);
    for (size_t i = 0; i < d->n_inner; i++)
        b->inner[i].since += b->t * b->least_steps;
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

/* w_0, with the node's own intercept if it has one. */
static const double *consensus_model(const baseline *b, size_t leaf, const double *w, const double *w_parent,
                                     uint32_t parent, double *room)
{
    if (b->F == b->M)
        return b->inner_w;
    memcpy(room, b->inner_w, b->M * sizeof *room);
    if (plan_leaf(b->p, leaf)->rule.penalty.free)
        room[b->F] = w[b->F];
    else if (parent && b->p->inner[parent].rule.penalty.free)
        room[b->F] = w_parent[b->F];
    return room;
}

static double largest_gap(size_t M, const double *w, const double *w0)
{
    double gap = 0;
    for (size_t m = 0; m < M; m++)
        gap = fabs(w[m] - w0[m]) <= gap ? gap : fabs(w[m] - w0[m]); /* not fmax, which would hide a NaN */
    return gap;
}

static void measure_leaf(baseline *b, size_t leaf, unsigned thread)
{
    const uint32_t parent = dataset_parent(b->d, leaf);
    const leaf_class *class = plan_leaf(b->p, leaf);
    const double *w = leaf_w(b, leaf, &b->d->inner[parent]);
    rows_problem problem = problem_of(b, leaf, 1);
    if (class->mean)
        problem.factor = 1 / rows_weight(&problem.rows);
    const double *w0 =
        consensus_model(b, leaf, w, b->inner_w + (size_t)parent * b->M, parent, b->space + (size_t)thread * b->M);
    b->loss[leaf] = kernels()->rows_loss(&problem, w0);
    b->gap[leaf] = largest_gap(b->M - class->rule.penalty.free, w, w0);
}

void baseline_measure(baseline *b, hfsad_figures *f)
{
    double objective = 0, gap = 0;
    for_each(b, 0, b->d->n_leaves, b->d->n_rows, measure_leaf);
    for (size_t leaf = 0; leaf < b->d->n_leaves; leaf++) {
        objective += b->loss[leaf];
        gap = b->gap[leaf] <= gap ? gap : b->gap[leaf];
    }
    for (size_t i = 0; i < b->d->n_inner; i++) {
        objective += kernels()->prior_value(&b->p->inner[i].prior, b->M, b->inner_w);
        const double here =
            i ? largest_gap(b->M - b->p->inner[i].rule.penalty.free, b->inner_w + i * b->M, b->inner_w) : 0;
        gap = here <= gap ? gap : here;
    }
    f->iteration = b->iteration;
    f->objective = f->consensus_objective = objective;
    f->primal_residual = f->dual_residual = f->smoothing_gap = f->gap_bound = NAN;
    f->consensus_gap = gap;
    f->relative_error = b->truth ? model_error(b->d, b->inner_w, b->truth, b->sign_free, b->space) : NAN;
    f->bytes_up = b->bytes_up;
    f->bytes_down = b->bytes_down;
    f->tiers = b->d->depth;
    for (size_t t = 0; t < f->tiers; t++)
        f->primal_tier[t] = f->dual_tier[t] = NAN;
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
    b->loss = alloc_zero(d->n_leaves, sizeof(double));
    b->gap = alloc_zero(d->n_leaves, sizeof(double));
    b->space = alloc_zero(pool_threads(b->threads) * b->M, sizeof(double));
    return b->w && b->inner_w && b->inner && b->mass && b->moved && b->part && b->last && b->key && b->loss && b->gap &&
           b->space;
}

static void make_nodes(baseline *b, const double *start)
{
    const dataset *d = b->d;
    char name[HFSAD_TIERS_MAX * 256];
    b->least_steps = UINT32_MAX;
    for (size_t leaf = 0; leaf < d->n_leaves; leaf++) {
        const uint32_t steps = plan_leaf(b->p, leaf)->local_steps;
        b->least_steps = steps < b->least_steps ? steps : b->least_steps;
        b->mass[leaf] = baseline_mass(d, b->p, leaf);
        dataset_leaf_name(d, leaf, name, sizeof name);
        b->key[leaf] = rng_key(b->p->seed, rng_stream(name));
        dataset_scatter(d, b->w, leaf, start);
    }
    for (size_t i = d->n_inner; i-- > 0;) { /* children before their parents */
        const inner_node *node = &d->inner[i];
        averaging_node *a = &b->inner[i];
        for (size_t leaf = node->first_leaf; leaf < (size_t)node->first_leaf + node->n_leaves; leaf++)
            a->mass += b->mass[leaf];
        if (i)
            b->inner[node->parent].mass += a->mass;
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
    free(b->loss);
    free(b->gap);
    free(b->space);
    free(b);
}
