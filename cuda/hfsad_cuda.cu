/*
 * The rounds of HFSAD on a GPU (run/device.h). Here: clients with one row of many features, one thread each, and the
 * host's side. The second pass over a client's numbers finds them in the cache, so that memory sees x, z and q once and
 * the new z and q once. narrow.cuh: one row of few features; general.cuh: one row,
 * any settings; rows.cuh: many rows; inner.cuh: the nodes above;
 * figures.cuh: the figures of a row of the trace.
 */
#define HFSAD_VEC_CUDA 1
#include "core/link_vec.h"
#include "core/measure_vec.h"
#include "math/losses.h"
#include "core/draw.h"
#include "run/device.h"

#define BOX_FN static __device__
static __device__ double box_loss(const hfsad_loss *loss, double y, double s)
{
    return loss_value(loss, y, s);
}

static __device__ double box_row_slope(const hfsad_loss *loss, double y, double s0, double kappa, double now)
{
    switch (loss->kind) {
#define LOSS_CASE(KIND, prefix, name)                                                                                  \
    case HFSAD_LOSS_##KIND:                                                                                            \
        return prefix##_row_slope(loss, y, s0, kappa, now);
        HFSAD_LOSS_LIST(LOSS_CASE)
#undef LOSS_CASE
    }
    return 0;
}

/* Of losses without exp: with one there is no box here (device_sim.c). */
static __device__ double box_slope(const hfsad_loss *loss, double y, double s)
{
    switch (loss->kind) {
    case HFSAD_LOSS_QUANTILE:
        return quantile_slope(loss, y, s);
    case HFSAD_LOSS_SMOOTHED_QUANTILE:
        return smoothed_quantile_slope(loss, y, s);
    case HFSAD_LOSS_EXPECTILE:
        return expectile_slope(loss, y, s);
    case HFSAD_LOSS_SQUARED:
        return squared_slope(loss, y, s);
    case HFSAD_LOSS_HUBER:
        return huber_slope(loss, y, s);
    case HFSAD_LOSS_HINGE:
        return hinge_slope(loss, y, s);
    case HFSAD_LOSS_SQUARED_HINGE:
        return squared_hinge_slope(loss, y, s);
    case HFSAD_LOSS_ABSOLUTE:
        return absolute_slope(loss, y, s);
    default: /* a new loss: no model rather than a wrong one */
        return NAN;
    }
}
#include "math/box_body.h"

#include <cstdio>
#include <cstdlib>

#if !defined(HFSAD_DEVICE_EMULATED) /* by tests/device_emulator.h */
#include <cuda_pipeline.h>

#define LAUNCH(kernel, blocks, threads, shared, ...) (kernel)<<<(unsigned)(blocks), threads, shared>>>(__VA_ARGS__)
#define SHARED_ROOM(name) extern __shared__ double name[]
#endif

enum { BLOCKS_AT_ONCE = 4, RUN_THREADS = 128 };

enum { TILE = 8 };
static const unsigned WARP = 32;
static const unsigned everyone = 0xffffffffu;

/* The coefficients of a round, made from a rule by step_kernel. */
struct leaf_step {
    link_step_vec link;
    penalty_vec penalty;
    double up_sigma; /* of the next counter */
};

struct leaf_work {
    const double *x, *y, *n, *inner_w;
    double *z, *q, *w, *dual, *run_u, *run_sigma;
    const device_run *runs;
    size_t M, n_runs, n_rules;
    hfsad_loss loss;
    const device_rule *rules;
    leaf_step *steps; /* one for each rule */
    device_clock clock;
    int *failed;
    unsigned char *late, *leaves; /* narrow.cuh: runs, and their clients, that are not done */
};

static __device__ penalty_vec penalty_here(const device_penalty *p)
{
    penalty_vec v;
    v.form = (penalty_form)p->form;
    v.slope = p->slope;
    v.omega = p->omega;
    v.lambda = p->lambda;
    v.theta = p->theta;
    v.inv_kappa = p->inv_kappa;
    v.reach = p->reach;
    v.bend = p->bend;
    v.ridge = p->ridge;
    return v;
}

/* Links are linear here, or flat, which is the same with a slope of 0; a constant for the compiler. */
__global__ void step_kernel(const leaf_work a)
{
    const size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i >= a.n_rules)
        return;
    const device_rule rule = a.rules[i];
    leaf_step *to = &a.steps[i];
    to->penalty = penalty_here(&rule.penalty);
    to->penalty.form = PENALTY_LINEAR;
    to->link = link_step_by(&rule.schedule, &to->penalty, a.clock.k, a.clock.root, a.clock.before);
    to->up_sigma = vec_mul(rule.schedule.c, a.clock.next);
}

/* vec_sum of lanes that are the same in all groups of eight. */
static __device__ __forceinline__ double sum_of_eight(double a)
{
    a = vec_add(a, __shfl_xor_sync(everyone, a, 4));
    a = vec_add(a, __shfl_xor_sync(everyone, a, 2));
    return vec_add(a, __shfl_xor_sync(everyone, a, 1));
}

/* Eight numbers of z, q and x each, all asked for before the first is used; 0 past the end. last: they are not needed
 * again, and the cache may forget them. */
template <bool last>
static __device__ __forceinline__ void load_tile(const leaf_work &a, size_t first, unsigned stride, size_t m0,
                                                 double *z, double *q, double *x)
{
#pragma unroll
    for (int j = 0; j < TILE; j++) {
        const bool is_there = m0 + j < a.M;
        const size_t o = is_there ? first + (m0 + j) * stride : first;
        z[j] = last ? __ldlu(a.z + o) : a.z[o];
        q[j] = last ? __ldlu(a.q + o) : a.q[o];
        x[j] = last ? __ldlu(a.x + o) : a.x[o];
        if (!is_there)
            z[j] = q[j] = x[j] = 0;
    }
}

static __device__ double sum_lanes(const double *p)
{
    return ((p[0] + p[4]) + (p[2] + p[6])) + ((p[1] + p[5]) + (p[3] + p[7]));
}

/* The w of a client whose prox leaves the box, in memory of the heap; rare. NULL: there is none left. */
static __device__ double *boxed_model(const leaf_work &a, const link_step_vec &c, const penalty_vec &p, double y,
                                      size_t first, unsigned stride)
{
    const size_t M = a.M;
    double *room = (double *)malloc(6 * M * sizeof(double));
    if (!room)
        return NULL;
    double *v = room, *x = room + M;
    for (size_t m = 0; m < M; m++) {
        const size_t o = first + m * stride;
        v[m] = link_centre(&c, &p, a.z[o], a.q[o]);
        x[m] = a.x[o];
    }
    const scalar_loss law = {&a.loss, y, NULL};
    const double t = search_box(&law, M, M, x, v, c.sigma, room + 2 * M);
    for (size_t m = 0; m < M; m++)
        v[m] = clip(v[m] - t * x[m], a.loss.box);
    return room;
}

/* Registers for so many warps that some have their numbers while others wait for memory. */
template <bool want_dual> __global__ void __launch_bounds__(RUN_THREADS, BLOCKS_AT_ONCE) leaf_kernel(const leaf_work a)
{
    SHARED_ROOM(room);
    __shared__ leaf_step shared_step;
    const unsigned T = blockDim.x, tid = threadIdx.x;
    const size_t M = a.M;
    double *sum = room, *tile = room + 8 * M;
    const device_run r = a.runs[blockIdx.x];
    const double *parent = a.inner_w + (size_t)r.parent * M;
    for (size_t o = tid; o < 8 * M; o += T)
        sum[o] = 0;
    if (tid == 0)
        shared_step = a.steps[r.rule];
    __syncthreads();
    const link_step_vec c = shared_step.link;
    penalty_vec p = shared_step.penalty;
    p.form = PENALTY_LINEAR;
    const double up_sigma = shared_step.up_sigma;
    for (unsigned base = 0; base < r.count; base += T) {
        const unsigned i = base + tid, left = r.count - base, here = left < T ? left : T;
        const bool is_there = tid < here;
        const unsigned block = i / 8, rest = r.count - block * 8, stride = is_there && rest < 8 ? rest : 8;
        const size_t first = r.at + (size_t)block * 8 * M + i % 8;
        double coefficient = 0, *boxed = NULL, dual[8] = {0, 0, 0, 0, 0, 0, 0, 0};
        if (is_there) {
            double part[8] = {0, 0, 0, 0, 0, 0, 0, 0}, most = 0;
            for (size_t m0 = 0; m0 < M; m0 += 8) {
                double zs[8], qs[8], xs[8];
                load_tile<false>(a, first, stride, m0, zs, qs, xs);
#pragma unroll
                for (int j = 0; j < 8; j++) {
                    const double v = link_centre(&c, &p, zs[j], qs[j]); /* 0 past the end, which adds nothing */
                    part[j] = vec_fma(xs[j], v, part[j]);
                    most = vec_max(most, vec_abs(v));
                }
            }
            const double y = a.y[r.leaf + i], n = a.n[r.leaf + i];
            coefficient = loss_coefficient(&a.loss, y, n, vec_sum_of(part), c.inv_sigma);
            if (a.loss.box < INFINITY &&
                a.loss.box < vec_mul(vec_fma(vec_abs(coefficient), vec_sqrt(n), most), 1 + 1e-12)) {
                double reach = 0;
                for (size_t m = 0; m < M; m++) {
                    const size_t o = first + m * stride;
                    reach = vec_max(reach, vec_abs(vec_fma(coefficient, a.x[o], link_centre(&c, &p, a.z[o], a.q[o]))));
                }
                if (a.loss.box < reach && !(boxed = boxed_model(a, c, p, y, first, stride)))
                    *a.failed = 1;
            }
        }
        for (size_t m0 = 0; m0 < M; m0 += TILE) {
            if (is_there) {
                double zs[TILE], qs[TILE], xs[TILE]; /* all loads first: a store might change what a load reads */
                load_tile<true>(a, first, stride, m0, zs, qs, xs);
#pragma unroll
                for (int j = 0; j < TILE; j++)
                    if (m0 + j < M) {
                        const size_t o = first + (m0 + j) * stride;
                        const double z_old = zs[j], q_old = qs[j], v = link_centre(&c, &p, z_old, q_old);
                        const double w = boxed ? boxed[m0 + j] : vec_fma(coefficient, xs[j], v);
                        double z = z_old, q;
                        link_copies(&c, &p, false, c.sweeps, v, w, parent[m0 + j], &z, &q);
                        if (want_dual) {
                            const double dz = vec_sub(z, z_old), dq = vec_sub(q, q_old);
                            dual[j] = vec_add(dual[j], vec_fma(dz, dz, vec_mul(dq, dq)));
                        }
                        __stcs(a.z + o, z);
                        __stcs(a.q + o, q);
                        if (a.w)
                            __stcs(a.w + o, w);
                        tile[j * T + tid] = link_up(&p, up_sigma, c.inv_mu, z, q);
                    }
            }
            __syncthreads();
            for (unsigned s = tid; s < TILE * 8; s += T) {
                const unsigned j = s / 8, lane = s % 8;
                if (m0 + j < M) {
                    double all = sum[(m0 + j) * 8 + lane];
                    for (unsigned slot = lane; slot < here; slot += 8)
                        all = vec_add(all, tile[j * T + slot]);
                    sum[(m0 + j) * 8 + lane] = all;
                }
            }
            __syncthreads();
        }
        if (is_there && want_dual)
            a.dual[r.leaf + i] = vec_mul(vec_mul(c.sigma, c.sigma), vec_sum_of(dual));
        if (boxed)
            free(boxed);
    }
    for (size_t m = tid; m < M; m += T)
        a.run_u[blockIdx.x * M + m] = sum_lanes(sum + 8 * m);
    __syncthreads();
    if (tid < 8) {
        double all = 0;
        for (unsigned slot = tid; slot < r.count; slot += 8)
            all = vec_add(all, up_sigma);
        tile[tid] = all;
    }
    __syncthreads();
    if (tid == 0)
        a.run_sigma[blockIdx.x] = sum_lanes(tile);
}

#include "members.cuh"
#include "narrow.cuh"
#include "general.cuh"
#include "rows.cuh"
#include "inner.cuh"
#include "figures.cuh"

/* ---- the host's side ---- */

struct device {
    leaf_work leaf;
    rows_work rows; /* in place of leaf; its rows.first is NULL if clients have one row */
    inner_work inner;
    figures_work figures;
    members_work members;
    double *columns, *sums; /* of the messages to a cloud with many children; NULL: it has few */
    size_t children;
    device_clock *clocks; /* of all inner nodes */
    unsigned char *steps;
    size_t n_roots, n_leaves, leaf_doubles, n_runs, n_inner;
    uint32_t depth;
    size_t level[HFSAD_TIERS_MAX + 2];
    unsigned threads, most; /* most: clients of a run */
    void *taken[48];
    unsigned n_taken;
};

static bool fine(cudaError_t error, const char *what, char *why, size_t size)
{
    if (error == cudaSuccess)
        return true;
    snprintf(why, size, "CUDA: %s: %s", what, cudaGetErrorString(error));
    return false;
}

template <typename T> static bool take(device *d, T **to, const T *from, size_t count, char *why, size_t size)
{
    void *memory = NULL;
    if (!fine(cudaMalloc(&memory, count * sizeof(T) + 1), "memory", why, size))
        return false;
    d->taken[d->n_taken++] = memory;
    *to = (T *)memory;
    return !from || fine(cudaMemcpy(memory, from, count * sizeof(T), cudaMemcpyHostToDevice), "a copy", why, size);
}

static void close_device(void *context)
{
    device *d = (device *)context;
    for (unsigned i = 0; d && i < d->n_taken; i++)
        cudaFree(d->taken[i]);
    free(d);
}

/* Enough memory? The line says how many clients would fit. */
static bool has_room(const device_problem *p, char *why, size_t size)
{
    size_t left, all;
    if (!fine(cudaMemGetInfo(&left, &all), "memory", why, size))
        return false;
    const double vectors = p->w ? 4 : 3, spare = 300e6;
    const double each = p->members.n_classes ? 2 + 4 + 4 + 8 + 1 : 0; /* bytes of device_members */
    const double needed = each * (double)p->n_leaves + 8.0 * (vectors * (double)p->leaf_doubles + 3.0 * (double)p->n_leaves +
                                 (double)p->rows.n_rows * (double)(p->M + 5) +
                                 (p->rows.first ? (double)FIGURES * (double)p->n_leaves : 0) +
                                 (double)p->n_runs * (double)(p->M + 4 + FIGURES) + 5.0 * (double)(p->n_inner * p->M)) +
                          (double)p->n_inner * sizeof(device_node) +
                          (double)p->n_rules * (sizeof(device_rule) + sizeof(leaf_step));
    if (needed + spare <= (double)left)
        return true;
    snprintf(why, size,
             "the device has %.1f GB of memory free, and this run needs %.1f; about %.0f of its %zu clients would fit",
             (double)left / 1e9, (needed + spare) / 1e9,
             fmax(0, ((double)left - spare) / needed * (double)p->n_leaves), p->n_leaves);
    return false;
}

static bool put_members(const device *d, const device_problem *p, char *why, size_t size)
{
    const device_members *from = &p->members, *to = &d->members.m;
    const size_t counters = p->n_leaves * sizeof(uint32_t);
    return !from->n_classes ||
           (fine(cudaMemcpy((void *)to->classes, from->classes, from->n_classes * sizeof *from->classes,
                            cudaMemcpyHostToDevice),
                 "a copy", why, size) &&
            fine(cudaMemcpy(to->k, from->k, counters, cudaMemcpyHostToDevice), "a copy", why, size) &&
            (!from->last || fine(cudaMemcpy(to->last, from->last, counters, cudaMemcpyHostToDevice), "a copy", why, size)));
}

static bool put(void *context, const device_problem *p, char *why, size_t size)
{
    device *d = (device *)context;
    const size_t leaves = p->leaf_doubles * sizeof(double), inner = p->n_inner * p->M * sizeof(double);
    if (p->rows.first && !fine(cudaMemcpy(d->rows.rows.slope, p->rows.slope, p->rows.n_rows * sizeof(double),
                                          cudaMemcpyHostToDevice),
                               "a copy", why, size))
        return false;
    return put_members(d, p, why, size) &&
           fine(cudaMemcpy(d->leaf.z, p->z, leaves, cudaMemcpyHostToDevice), "a copy", why, size) &&
           fine(cudaMemcpy(d->leaf.q, p->q, leaves, cudaMemcpyHostToDevice), "a copy", why, size) &&
           (!p->w || fine(cudaMemcpy(d->leaf.w, p->w, leaves, cudaMemcpyHostToDevice), "a copy", why, size)) &&
           fine(cudaMemcpy(d->inner.w, p->inner_w, inner, cudaMemcpyHostToDevice), "a copy", why, size) &&
           fine(cudaMemcpy(d->inner.z, p->inner_z, inner, cudaMemcpyHostToDevice), "a copy", why, size) &&
           fine(cudaMemcpy(d->inner.q, p->inner_q, inner, cudaMemcpyHostToDevice), "a copy", why, size) &&
           fine(cudaMemcpy((void *)d->leaf.rules, p->rules, p->n_rules * sizeof *p->rules, cudaMemcpyHostToDevice),
                "a copy", why, size) &&
           fine(cudaMemcpy((void *)d->inner.nodes, p->inner, p->n_inner * sizeof *p->inner, cudaMemcpyHostToDevice),
                "a copy", why, size);
}

/* Numbers of a vector in each thread of a warp. */
static unsigned per_thread(size_t M)
{
    unsigned k = 1;
    while (k * WARP < M)
        k *= 2;
    return k;
}

#define ROWS_CALL(kernel, K, blocks, ...)                                                                              \
    do {                                                                                                               \
        const unsigned n = (unsigned)(((blocks) + ROWS_WARPS - 1) / ROWS_WARPS), t = ROWS_WARPS * WARP;                \
        switch (n ? (K) : 0) {                                                                                         \
        case 0: break;                                                                                                 \
        case 1: LAUNCH(kernel<1>, n, t, 0, __VA_ARGS__); break;                                                               \
        case 2: LAUNCH(kernel<2>, n, t, 0, __VA_ARGS__); break;                                                               \
        case 4: LAUNCH(kernel<4>, n, t, 0, __VA_ARGS__); break;                                                               \
        case 8: LAUNCH(kernel<8>, n, t, 0, __VA_ARGS__); break;                                                               \
        default: LAUNCH(kernel<16>, n, t, 0, __VA_ARGS__);                                                                    \
        }                                                                                                              \
    } while (0)

/* After the state of the links. */
static bool set_up_rows(device *d, const device_problem *p, char *why, size_t size)
{
    rows_work *r = &d->rows;
    const device_rows *from = &p->rows;
    const leaf_work *l = &d->leaf;
    unsigned *run_of = (unsigned *)malloc(p->n_leaves * sizeof *run_of);
    for (size_t i = 0; run_of && i < p->n_runs; i++)
        for (unsigned j = 0; j < p->runs[i].count; j++)
            run_of[p->runs[i].leaf + j] = (unsigned)i;
    r->rows = *from;
    r->z = l->z;
    r->q = l->q;
    r->w = l->w;
    r->dual = l->dual;
    r->run_u = l->run_u;
    r->run_sigma = l->run_sigma;
    r->inner_w = l->inner_w;
    r->runs = l->runs;
    r->M = p->M;
    r->n_leaves = p->n_leaves;
    r->n_runs = p->n_runs;
    r->rules = l->rules;
    r->lanes = from->lanes;
    r->loss = p->loss;
    const bool done =
        run_of && take(d, (double **)&r->rows.x, from->x, from->n_rows * p->M, why, size) &&
        take(d, (double **)&r->rows.y, from->y, from->n_rows, why, size) &&
        (!from->weight || take(d, (double **)&r->rows.weight, from->weight, from->n_rows, why, size)) &&
        take(d, (double **)&r->rows.factor, from->factor, p->n_leaves, why, size) &&
        take(d, (size_t **)&r->rows.first, from->first, p->n_leaves + 1, why, size) &&
        take(d, (unsigned **)&r->run_of, run_of, p->n_leaves, why, size) &&
        take(d, &r->rows.slope, (const double *)NULL, from->n_rows, why, size) &&
        take(d, &r->norm2, (const double *)NULL, from->n_rows, why, size) &&
        take(d, &r->moving, (const unsigned *)NULL, from->n_rows, why, size) &&
        take(d, &r->visits, (const unsigned long long *)NULL, 1, why, size) &&
        take(d, &d->figures.clients, (const double *)NULL, p->n_leaves * FIGURES, why, size) &&
        fine(cudaMemset(r->visits, 0, sizeof *r->visits), "memory", why, size);
    free(run_of);
    if (!done)
        return false;
    ROWS_CALL(norms_kernel, per_thread(p->M), from->n_rows, *r, from->n_rows);
    return fine(cudaGetLastError(), "the rows", why, size);
}

static bool set_up_members(device *d, const device_problem *p, char *why, size_t size)
{
    const device_members *from = &p->members;
    device_members *m = &d->members.m;
    const size_t n = p->n_leaves;
    *m = *from;
    if (!take(d, &d->clocks, (const device_clock *)NULL, p->n_inner, why, size) ||
        !take(d, &d->steps, (const unsigned char *)NULL, p->n_inner, why, size))
        return false;
    if (!from->n_classes)
        return true;
    return take(d, (device_class **)&m->classes, from->classes, from->n_classes, why, size) &&
           (!from->class_of || take(d, (uint16_t **)&m->class_of, from->class_of, n, why, size)) &&
           take(d, &m->k, from->k, n, why, size) && (!from->last || take(d, &m->last, from->last, n, why, size)) &&
           (!from->last || take(d, (uint64_t **)&m->key, from->key, n, why, size)) &&
           take(d, (double **)&m->roots, from->roots, from->n_paces * from->n_roots, why, size) &&
           take(d, &d->members.active, (const unsigned char *)NULL, n, why, size) &&
           take(d, &d->members.heard, (const unsigned long long *)NULL, 1, why, size) &&
           fine(cudaMemset(d->members.heard, 0, sizeof *d->members.heard), "memory", why, size);
}

static bool set_up(device *d, const device_problem *p, char *why, size_t size)
{
    leaf_work *l = &d->leaf;
    unsigned most = 0;
    for (size_t r = 0; r < p->n_runs; r++)
        most = p->runs[r].count > most ? p->runs[r].count : most;
    d->most = most;
    d->threads = most <= 64 ? 64 : RUN_THREADS;
    d->n_leaves = p->n_leaves;
    d->leaf_doubles = p->leaf_doubles;
    d->n_runs = p->n_runs;
    d->n_inner = p->n_inner;
    d->depth = p->depth;
    memcpy(d->level, p->level, sizeof d->level);
    d->n_roots = p->n_roots;
    l->M = d->inner.M = p->M;
    l->n_runs = p->n_runs;
    l->n_rules = p->n_rules;
    l->loss = p->loss;
    double *state[7] = {0};
    if (!p->rows.first && (!take(d, (double **)&l->x, p->x, p->leaf_doubles, why, size) ||
                           !take(d, (double **)&l->y, p->y, p->n_leaves, why, size) ||
                           !take(d, (double **)&l->n, p->n, p->n_leaves, why, size)))
        return false;
    if (!take(d, (device_run **)&l->runs, p->runs, p->n_runs, why, size) ||
        !take(d, (device_node **)&d->inner.nodes, p->inner, p->n_inner, why, size) ||
        !take(d, (device_rule **)&l->rules, p->rules, p->n_rules, why, size) ||
        !take(d, &l->failed, (const int *)NULL, 1, why, size))
        return false;
    const size_t counts[7] = {p->leaf_doubles, p->leaf_doubles, p->n_leaves, p->n_inner * p->M,
                              p->n_inner * p->M, p->n_inner * p->M, p->n_inner};
    for (int i = 0; i < 7; i++)
        if (!take(d, &state[i], (const double *)NULL, counts[i], why, size))
            return false;
    l->z = state[0];
    l->q = state[1];
    l->dual = state[2];
    d->inner.w = state[3];
    d->inner.z = state[4];
    d->inner.q = state[5];
    d->inner.dual = state[6];
    l->inner_w = d->inner.w;
    if ((p->w && !take(d, &l->w, (const double *)NULL, p->leaf_doubles, why, size)) ||
        !take(d, &l->run_u, (const double *)NULL, p->n_runs * p->M, why, size) ||
        !take(d, &l->run_sigma, (const double *)NULL, p->n_runs, why, size) ||
        !take(d, &l->steps, (const leaf_step *)NULL, p->n_rules, why, size) ||
        !take(d, &d->figures.runs, (const double *)NULL, p->n_runs * FIGURES, why, size) ||
        !take(d, &l->late, (const unsigned char *)NULL, p->n_runs, why, size) ||
        !take(d, &l->leaves, (const unsigned char *)NULL, p->n_leaves, why, size) ||
        !fine(cudaMemset(l->late, 0, p->n_runs), "memory", why, size) ||
        !fine(cudaMemset(l->leaves, 0, p->n_leaves), "memory", why, size) ||
        !fine(cudaMemset(l->failed, 0, sizeof(int)), "memory", why, size))
        return false;
    d->inner.run_u = l->run_u;
    d->inner.run_sigma = l->run_sigma;
    d->figures.rules = l->rules;
    d->figures.cloud = d->inner.w;
    d->children = (size_t)p->inner[0].n_inner + p->inner[0].n_runs;
    if (d->children >= ROOT_LARGE && p->n_roots == 1 &&
        (!take(d, &d->columns, (const double *)NULL, d->children * (p->M + 1), why, size) ||
         !take(d, &d->sums, (const double *)NULL, p->M + 1, why, size)))
        return false;
    if (!set_up_members(d, p, why, size))
        return false;
    d->rows.members = d->members;
    return (!p->rows.first || set_up_rows(d, p, why, size)) && put(d, p, why, size);
}

static bool open_device(void **context, const device_problem *p, char *why, size_t size)
{
    int count = 0;
    device *d = (device *)calloc(1, sizeof *d);
    *context = NULL;
    bool done = d && fine(cudaGetDeviceCount(&count), "no device", why, size);
    if (done && count < 1) {
        snprintf(why, size, "CUDA: there is no device");
        done = false;
    }
    done = done && fine(cudaSetDevice((int)(p->rank % (unsigned)count)), "a device", why, size);
    if (done && cudaDeviceSetLimit(cudaLimitMallocHeapSize, (size_t)128 << 20) != cudaSuccess)
        (void)cudaGetLastError(); /* a run before this one has set it */
    done = done && has_room(p, why, size) &&
           set_up(d, p, why, size);
    if (done)
        *context = d;
    else
        close_device(d);
    return done;
}

static bool put_cloud(void *context, const double *w, char *why, size_t size)
{
    device *d = (device *)context;
    return fine(cudaMemcpy(d->inner.w, w, d->inner.M * sizeof *w, cudaMemcpyHostToDevice), "a copy", why, size);
}

typedef void (*leaf_function)(const leaf_work);

/* Measured rounds are few. */
static leaf_function narrow_for(const hfsad_loss *loss, bool want_dual)
{
    if (want_dual)
        return narrow_kernel<4, true, ANY_LOSS, true>;
    if (loss->kind == HFSAD_LOSS_PHASE_RETRIEVAL)
        return narrow_kernel<4, false, HFSAD_LOSS_PHASE_RETRIEVAL, true>;
    return loss->kind == HFSAD_LOSS_ABSOLUTE ? narrow_kernel<4, false, HFSAD_LOSS_ABSOLUTE, false>
                                             : narrow_kernel<4, false, ANY_LOSS, false>;
}

template <bool MANY> static leaf_function staged_for(const hfsad_loss *loss)
{
    if (loss->kind == HFSAD_LOSS_PHASE_RETRIEVAL)
        return staged_kernel<HFSAD_LOSS_PHASE_RETRIEVAL, true, MANY>;
    return loss->kind == HFSAD_LOSS_ABSOLUTE ? staged_kernel<HFSAD_LOSS_ABSOLUTE, false, MANY>
                                             : staged_kernel<ANY_LOSS, false, MANY>;
}

/* A warp for a run, if runs are small or so many that they fill the device. */
enum { STAGED_RUNS = 2000, STAGED_MOST = 64 };

/* For a kernel whose threads go on to other items. */
static unsigned blocks_for(size_t items, unsigned threads)
{
    const size_t blocks = (items + threads - 1) / threads;
    return (unsigned)(blocks < 1024 ? blocks : 1024);
}

static bool play_narrow(device *d, bool want_dual, char *why, size_t size)
{
    const size_t M = d->inner.M, shared = 2 * NARROW_WARPS * 8 * M * sizeof(double);
    const bool many = d->leaf.n_rules > 1;
    if (!many && !fine(cudaMemcpyToSymbolAsync(narrow_step, d->leaf.steps, sizeof *d->leaf.steps, 0,
                                               cudaMemcpyDeviceToDevice),
                       "a round", why, size))
        return false;
    if (many || (!want_dual && (d->most <= STAGED_MOST || d->n_runs >= STAGED_RUNS))) {
        const leaf_function kernel = many ? staged_for<true>(&d->leaf.loss) : staged_for<false>(&d->leaf.loss);
        LAUNCH(kernel, d->n_runs, 32, 3 * STAGED_CLIENTS * M * sizeof(double), d->leaf);
    } else {
        const leaf_function kernel = narrow_for(&d->leaf.loss, want_dual);
        LAUNCH(kernel, d->n_runs, NARROW_WARPS * 32, shared, d->leaf);
    }
    if (d->leaf.loss.box < INFINITY)
        LAUNCH(boxed_kernel, blocks_for(d->n_runs, BOXED_THREADS), BOXED_THREADS, 0, d->leaf);
    return fine(cudaGetLastError(), "a round", why, size);
}

/* The steps of all clients and the sums of their runs. */
static bool play_leaves(device *d, const device_round *r, char *why, size_t size)
{
    const size_t shared = (8 * d->inner.M + TILE * d->threads) * sizeof(double);
    const leaf_function kernel = r->want_dual ? leaf_kernel<true> : leaf_kernel<false>;
    const bool members = d->members.m.n_classes > 0;
    d->leaf.clock = d->rows.clock = r->leaf;
    d->members.round = r->number;
    if (members)
        LAUNCH(draw_kernel, d->n_runs, 128, 0, d->members, d->leaf.runs);
    if (d->rows.rows.first) {
        if (members)
            ROWS_CALL(rows_members_kernel, per_thread(d->rows.M), d->rows.n_leaves, d->rows);
        else
            ROWS_CALL(rows_kernel, per_thread(d->rows.M), d->rows.n_leaves, d->rows);
        LAUNCH(messages_kernel, d->n_runs, 128, 0, d->rows);
        return true;
    }
    if (members) {
        LAUNCH(general_kernel, d->n_runs, NARROW_WARPS * 32, 0, d->leaf, d->members);
        LAUNCH(general_sums_kernel, d->n_runs, 256, 0, d->leaf, d->members);
        return true;
    }
    LAUNCH(step_kernel, (d->leaf.n_rules + 127) / 128, 128, 0, d->leaf);
    if (d->inner.M <= 8 * NARROW_TILES)
        return play_narrow(d, r->want_dual, why, size);
    if (shared > 48 << 10 &&
        !fine(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared), "memory", why,
              size))
        return false;
    LAUNCH(kernel, d->n_runs, d->threads, shared, d->leaf);
    return true;
}

static bool play(void *context, const device_round *r, char *why, size_t size)
{
    device *d = (device *)context;
    if (!play_leaves(d, r, why, size))
        return false;
    d->inner.clock = r->inner;
    d->inner.clocks = r->clocks ? d->clocks : NULL;
    d->inner.steps = r->clocks ? d->steps : NULL;
    if (r->clocks && !(fine(cudaMemcpy(d->clocks, r->clocks, d->n_inner * sizeof *d->clocks, cudaMemcpyHostToDevice),
                            "a round", why, size) &&
                       fine(cudaMemcpy(d->steps, r->steps, d->n_inner, cudaMemcpyHostToDevice), "a round", why, size)))
        return false;
    for (uint32_t depth = d->depth; depth-- > 1;) {
        d->inner.first = d->level[depth];
        d->inner.end = d->level[depth + 1];
        const size_t threads = (d->inner.end - d->inner.first) * 8;
        if (threads)
            LAUNCH(inner_kernel, (threads + 127) / 128, 128, 0, d->inner);
    }
    return fine(cudaGetLastError(), "a round", why, size);
}

static bool step_roots(void *context, const device_round *r, double *w, char *why, size_t size)
{
    device *d = (device *)context;
    (void)r; /* the clocks are those of its round */
    if (d->columns) {
        LAUNCH(root_messages_kernel, blocks_for(d->children * (d->inner.M + 1), 256), 256, 0, d->inner, d->columns, d->children);
        LAUNCH(root_columns_kernel, d->inner.M + 1, COLUMN_THREADS, 0, d->columns, d->children, d->sums);
        LAUNCH(root_end_kernel, 1, 256, 0, d->inner, d->sums);
    } else {
        LAUNCH(root_kernel, d->n_roots, ROOT_THREADS, 0, d->inner);
    }
    return fine(cudaGetLastError(), "a round", why, size) &&
           fine(cudaMemcpy(w, d->inner.w, d->n_roots * d->inner.M * sizeof *w, cudaMemcpyDeviceToHost), "a round", why,
                size);
}

static bool fetch_inner(const device *d, const device_problem *p, char *why, size_t size)
{
    const size_t inner = p->n_inner * p->M * sizeof(double);
    int failed = 0;
    if (!fine(cudaMemcpy(&failed, d->leaf.failed, sizeof failed, cudaMemcpyDeviceToHost), "a round", why, size))
        return false;
    if (failed) {
        snprintf(why, size, "CUDA: no memory for clients whose prox leaves the box; use the processor");
        return false;
    }
    return fine(cudaMemcpy(p->inner_w, d->inner.w, inner, cudaMemcpyDeviceToHost), "a copy", why, size) &&
                fine(cudaMemcpy(p->inner_z, d->inner.z, inner, cudaMemcpyDeviceToHost), "a copy", why, size) &&
                fine(cudaMemcpy(p->inner_q, d->inner.q, inner, cudaMemcpyDeviceToHost), "a copy", why, size) &&
                fine(cudaMemcpy(p->inner_dual, d->inner.dual, p->n_inner * sizeof(double), cudaMemcpyDeviceToHost),
                     "a copy", why, size);
}

static bool measure(void *context, const device_problem *p, const device_round *r, device_figures *figures, char *why,
                    size_t size)
{
    device *d = (device *)context;
    d->figures.clock = r->leaf;
    d->figures.has_dual = r->want_dual;
    if (d->rows.rows.first) {
        ROWS_CALL(rows_figures_kernel, per_thread(d->rows.M), d->rows.n_leaves, d->rows, d->figures);
        LAUNCH(rows_sums_kernel, d->n_runs, 32, 0, d->rows, d->figures);
    } else {
        LAUNCH(figures_kernel, d->n_runs, NARROW_WARPS * 32, 0, d->leaf, d->figures, d->members);
    }
    return fine(cudaGetLastError(), "the figures", why, size) &&
           fine(cudaMemcpy(figures, d->figures.runs, d->n_runs * sizeof *figures, cudaMemcpyDeviceToHost), "the figures",
                why, size) &&
           fetch_inner(d, p, why, size);
}

static bool fetch(void *context, const device_problem *p, bool all, char *why, size_t size)
{
    device *d = (device *)context;
    const size_t leaves = p->leaf_doubles * sizeof(double);
    const bool done = fetch_inner(d, p, why, size);
    if (!done || !all)
        return done;
    const size_t counters = p->n_leaves * sizeof(uint32_t);
    if (p->members.n_classes &&
        !(fine(cudaMemcpy(p->members.k, d->members.m.k, counters, cudaMemcpyDeviceToHost), "a copy", why, size) &&
          (!p->members.last ||
           fine(cudaMemcpy(p->members.last, d->members.m.last, counters, cudaMemcpyDeviceToHost), "a copy", why, size))))
        return false;
    if (p->rows.first) {
        unsigned long long visits = 0;
        if (!fine(cudaMemcpy(p->rows.slope, d->rows.rows.slope, p->rows.n_rows * sizeof(double),
                             cudaMemcpyDeviceToHost),
                  "a copy", why, size) ||
            !fine(cudaMemcpy(&visits, d->rows.visits, sizeof visits, cudaMemcpyDeviceToHost), "a copy", why, size) ||
            !fine(cudaMemset(d->rows.visits, 0, sizeof visits), "memory", why, size))
            return false;
        if (p->rows.visits)
            *p->rows.visits += visits;
    }
    return fine(cudaMemcpy(p->z, d->leaf.z, leaves, cudaMemcpyDeviceToHost), "a copy", why, size) &&
           fine(cudaMemcpy(p->q, d->leaf.q, leaves, cudaMemcpyDeviceToHost), "a copy", why, size) &&
           (!p->w || fine(cudaMemcpy(p->w, d->leaf.w, leaves, cudaMemcpyDeviceToHost), "a copy", why, size)) &&
           fine(cudaMemcpy(p->dual, d->leaf.dual, p->n_leaves * sizeof(double), cudaMemcpyDeviceToHost), "a copy", why,
                size);
}

static bool heard(void *context, uint64_t *count, char *why, size_t size)
{
    const device *d = (const device *)context;
    return fine(cudaMemcpy(count, d->members.heard, sizeof *count, cudaMemcpyDeviceToHost), "a round", why, size);
}

/* For benchmarks: bytes that a copy on the device reads and writes in a second. */
static double copy_rate(void)
{
    const size_t bytes = (size_t)4 << 30;
    void *from = NULL, *to = NULL;
    cudaEvent_t start, stop;
    float best = INFINITY;
    if (cudaMalloc(&from, bytes) != cudaSuccess || cudaMalloc(&to, bytes) != cudaSuccess)
        return 0;
    cudaMemset(from, 1, bytes);
    cudaEventCreate(&start);
    cudaEventCreate(&stop);
    for (int i = 0; i < 12; i++) {
        float ms;
        cudaEventRecord(start);
        cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice);
        cudaEventRecord(stop);
        cudaEventSynchronize(stop);
        cudaEventElapsedTime(&ms, start, stop);
        best = ms < best ? ms : best;
    }
    cudaFree(from);
    cudaFree(to);
    return 2.0 * (double)bytes / (best * 1e-3);
}

extern "C" __attribute__((visibility("default"))) const device_table hfsad_device = {
    open_device, close_device, put, put_cloud, play, step_roots, measure, heard, fetch, copy_rate};
