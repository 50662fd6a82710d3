/*
 * What the clients add to the figures of a row of the trace (core/measure_body.h, cell/client.c): of each run, in the
 * order of its clients. One row per client: a block of threads for a run, four threads a client as in narrow.cuh. Many
 * rows: a warp for a client, as in rows.cuh, then a block for a run.
 */
enum { FIGURES = 10, FIGURE_GAP = 5, FIGURE_DUAL = 9 };
static_assert(sizeof(device_figures) == FIGURES * sizeof(double), "an array of numbers");

struct figures_work {
    const device_rule *rules;
    device_clock clock;
    const double *cloud; /* its w */
    double *runs;        /* FIGURES for each run */
    double *clients;     /* FIGURES for each client with many rows */
    bool has_dual;
};

/* mu and its inverse after the last step; the loss is a member's, or that of all. */
struct figures_link {
    penalty_vec penalty;
    double mu, inv_mu;
    const hfsad_loss *loss;
};

static __device__ figures_link figures_link_of(const figures_work &f, const members_work &g, const hfsad_loss *loss,
                                               unsigned rule, size_t leaf)
{
    const bool single = g.m.n_classes > 0;
    const device_class *own = single ? &g.m.classes[g.m.class_of ? g.m.class_of[leaf] : 0] : NULL;
    const device_rule at = single ? own->rule : f.rules[rule];
    const double k = single ? g.m.k[leaf] : f.clock.k;
    const double root = single ? g.m.roots[own->pace * g.m.n_roots + g.m.k[leaf]] : f.clock.root;
    figures_link l;
    l.penalty = penalty_here(&at.penalty);
    l.mu = k > 0 ? vec_div(at.schedule.alpha, root) : 0;
    l.inv_mu = vec_div(root, at.schedule.alpha);
    l.loss = single ? &own->loss : loss;
    return l;
}

/* As measure_add puts them down; the losses are the first two, the dual residual the last. */
static __device__ void put_figures(const measure_vec &t, double loss, double consensus_loss, double dual, double *to)
{
    to[0] = loss;
    to[1] = consensus_loss;
    to[2] = t.penalty;
    to[3] = t.smoothing;
    to[4] = t.primal;
    to[FIGURE_GAP] = t.gap;
    to[6] = t.w;
    to[7] = t.zq;
    to[8] = vec_mul(2, t.multiplier);
    to[FIGURE_DUAL] = dual;
}

/* The largest of part i of thread i mod 4, for i from 0 to 7, compared in this order. */
static __device__ double gap_of_client(double low, double high, unsigned slot)
{
    double most = __shfl_sync(everyone, low, slot);
#pragma unroll
    for (unsigned i = 1; i < 8; i++)
        most = vec_max(most, __shfl_sync(everyone, i < 4 ? low : high, i % 4 * 8 + slot));
    return most;
}

/* Of the eight clients of a block, by a warp; to: FIGURES for each, 0 of those that are not there. */
template <typename S>
static __device__ void measure_block(const leaf_work &a, const figures_work &f, const members_work &g,
                                     const device_run &r, unsigned block, double *to)
{
    const unsigned j = threadIdx.x % 32 / 8, slot = threadIdx.x % 8;
    const unsigned rest = r.count - block * 8, wide = rest < 8 ? rest : 8, i = block * 8 + slot;
    const bool is_there = slot < wide;
    const figures_link l = figures_link_of(f, g, &a.loss, r.rule, (size_t)r.leaf + (is_there ? i : 0));
    const size_t M = a.M, first = r.at + (size_t)block * 8 * M + (is_there ? slot : 0);
    const double *parent = a.inner_w + (size_t)r.parent * M;
    measure_vec part[2] = {measure_zero(), measure_zero()}, t;
    double s[2] = {0, 0}, s0[2] = {0, 0};
    for (size_t m0 = 0; m0 < M && is_there; m0 += 8)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const size_t m = m0 + 4 * h + j, o = first + m * wide;
            if (m >= M)
                continue;
            double z, q;
            load_link<S>(a, o, &z, &q);
            const double x = a.x[o], w = a.w ? a.w[o] : z, root = f.cloud[m];
            s[h] = vec_fma(x, w, s[h]);
            s0[h] = vec_fma(x, root, s0[h]);
            measure_element(&part[h], &l.penalty, l.mu, l.inv_mu, w, z, q, parent[m], root);
        }
    t.penalty = sum_of_client(part[0].penalty, part[1].penalty);
    t.smoothing = sum_of_client(part[0].smoothing, part[1].smoothing);
    t.primal = sum_of_client(part[0].primal, part[1].primal);
    t.gap = gap_of_client(part[0].gap, part[1].gap, slot);
    t.w = sum_of_client(part[0].w, part[1].w);
    t.zq = sum_of_client(part[0].zq, part[1].zq);
    t.multiplier = sum_of_client(part[0].multiplier, part[1].multiplier);
    const double at = sum_of_client(s[0], s[1]), at0 = sum_of_client(s0[0], s0[1]);
    if (j != 0)
        return;
    if (is_there) {
        const double y = a.y[r.leaf + i];
        put_figures(t, loss_value(l.loss, y, at), loss_value(l.loss, y, at0), f.has_dual ? a.dual[r.leaf + i] : 0,
                    to + slot * FIGURES);
    } else {
        for (int n = 0; n < FIGURES; n++)
            to[slot * FIGURES + n] = 0;
    }
}

template <typename S>
__global__ void __launch_bounds__(NARROW_WARPS * 32) figures_kernel(const leaf_work a, const figures_work f,
                                                                      const members_work g)
{
    __shared__ double room[NARROW_WARPS * 8 * FIGURES];
    const device_run r = a.runs[blockIdx.x];
    const unsigned warp = threadIdx.x / 32, n = threadIdx.x, blocks = (r.count + 7) / 8;
    double sum = 0;
    for (unsigned base = 0; base < blocks; base += NARROW_WARPS) {
        const unsigned here = blocks - base < NARROW_WARPS ? blocks - base : NARROW_WARPS;
        if (warp < here)
            measure_block<S>(a, f, g, r, base + warp, room + warp * 8 * FIGURES);
        __syncthreads();
        for (unsigned b = 0; b < here && n < FIGURES; b++) {
            const double *of = room + b * 8 * FIGURES + n;
            double most = of[0];
            for (unsigned i = 0; i < 8; i++) {
                const double at = of[i * FIGURES];
                most = at > most ? at : most;
                if (n != FIGURE_GAP)
                    sum = vec_add(sum, at);
            }
            if (n == FIGURE_GAP)
                sum = fmax(sum, most);
        }
        __syncthreads();
    }
    if (n < FIGURES)
        f.runs[blockIdx.x * (size_t)FIGURES + n] = sum;
}

/* ---- many rows ---- */

/* Adds number k of each thread to the lanes of a row, in the order of the elements. */
static __device__ __forceinline__ double add_around(double sum, double term, unsigned lane)
{
#pragma unroll
    for (int g = 0; g < 4; g++)
        sum = vec_add(sum, __shfl_sync(everyone, term, (lane & 7) + 8 * g));
    return sum;
}

template <int K>
__global__ void __launch_bounds__(ROWS_WARPS *WARP) rows_figures_kernel(const rows_work a, const figures_work f)
{
    const size_t leaf = blockIdx.x * (size_t)ROWS_WARPS + threadIdx.x / WARP;
    if (leaf >= a.n_leaves)
        return;
    const device_run run = a.runs[a.run_of[leaf]];
    const figures_link l = figures_link_of(f, a.members, &a.loss, run.rule, leaf);
    const size_t at = run.at + (leaf - run.leaf) * a.M, first = a.rows.first[leaf], end = a.rows.first[leaf + 1];
    const unsigned lane = threadIdx.x % WARP;
    const double *parent = a.inner_w + (size_t)run.parent * a.M, *ws = a.w ? a.w : a.z;
    double w[K], w0[K], loss = 0, consensus_loss = 0;
    load_vector<K>(ws + at, a.M, lane, w);
    load_vector<K>(f.cloud, a.M, lane, w0);
    for (size_t row = first; row < end; row++) {
        double x[K];
        load_vector<K>(a.rows.x + row * a.M, a.M, lane, x);
        const double weight = a.rows.weight ? a.rows.weight[row] : 1, y = a.rows.y[row];
        loss += weight * loss_value(l.loss, y, dot_of<K>(x, w));
        consensus_loss += weight * loss_value(l.loss, y, dot_of<K>(x, w0));
    }
    measure_vec t = measure_zero();
#pragma unroll
    for (int k = 0; k < K; k++) {
        const size_t m = lane + WARP * k;
        measure_vec part = measure_zero();
        if (m < a.M)
            measure_element(&part, &l.penalty, l.mu, l.inv_mu, w[k], a.z[at + m], a.q[at + m], parent[m], w0[k]);
        t.penalty = add_around(t.penalty, part.penalty, lane);
        t.smoothing = add_around(t.smoothing, part.smoothing, lane);
        t.primal = add_around(t.primal, part.primal, lane);
        t.w = add_around(t.w, part.w, lane);
        t.zq = add_around(t.zq, part.zq, lane);
        t.multiplier = add_around(t.multiplier, part.multiplier, lane);
#pragma unroll
        for (int g = 0; g < 4; g++)
            t.gap = vec_max(t.gap, __shfl_sync(everyone, part.gap, (lane & 7) + 8 * g));
    }
    double most = __shfl_sync(everyone, t.gap, 0);
    for (unsigned i = 1; i < 8; i++) {
        const double gap = __shfl_sync(everyone, t.gap, i);
        most = gap > most ? gap : most;
    }
    const measure_vec all = {sum_of_eight(t.penalty), sum_of_eight(t.smoothing), sum_of_eight(t.primal), most,
                             sum_of_eight(t.w),       sum_of_eight(t.zq),        sum_of_eight(t.multiplier)};
    const double factor = a.rows.factor[leaf];
    if (lane == 0)
        put_figures(all, factor * loss, factor * consensus_loss, a.dual[leaf], f.clients + leaf * FIGURES);
}

__global__ void rows_sums_kernel(const rows_work a, const figures_work f)
{
    const device_run r = a.runs[blockIdx.x];
    const unsigned n = threadIdx.x;
    double sum = 0;
    for (size_t leaf = r.leaf; leaf < (size_t)r.leaf + r.count && n < FIGURES; leaf++) {
        const double at = f.clients[leaf * FIGURES + n];
        sum = n == FIGURE_GAP ? fmax(sum, at) : vec_add(sum, at);
    }
    if (n < FIGURES)
        f.runs[blockIdx.x * (size_t)FIGURES + n] = sum;
}
