/*
 * One row of many features: one thread a client, a block of threads for a run. The second pass over a client's numbers
 * finds them in the cache, so that memory sees x, z and q once and the new z and q once.
 */
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

/* What a thread knows of the run and of its client. */
struct wide_client {
    const leaf_work &a;
    const link_step_vec &link;
    const penalty_vec &penalty;
    const double *parent;
    size_t first; /* of its numbers, which are `stride` apart */
    unsigned stride;
    size_t leaf;
    double up_sigma;
    double coefficient;
    double *boxed; /* its model, if the prox leaves the box; freed by the caller */
};

/* The model left the box: the search finds another. */
static __device__ void wide_box(wide_client &t, double y, double n, double most)
{
    const leaf_work &a = t.a;
    if (!(a.loss.box < INFINITY) ||
        !(a.loss.box < vec_mul(vec_fma(vec_abs(t.coefficient), vec_sqrt(n), most), 1 + 1e-12)))
        return;
    double reach = 0;
    for (size_t m = 0; m < a.M; m++) {
        const size_t o = t.first + m * t.stride;
        reach = vec_max(reach, vec_abs(vec_fma(t.coefficient, a.x[o], link_centre(&t.link, &t.penalty, a.z[o], a.q[o]))));
    }
    if (a.loss.box < reach && !(t.boxed = boxed_model(a, t.link, t.penalty, y, t.first, t.stride)))
        *a.failed = 1;
}

/* The first pass: the coefficient of the row. */
static __device__ __forceinline__ void wide_prox(wide_client &t)
{
    const leaf_work &a = t.a;
    double part[8] = {0, 0, 0, 0, 0, 0, 0, 0}, most = 0;
    for (size_t m0 = 0; m0 < a.M; m0 += 8) {
        double zs[8], qs[8], xs[8];
        load_tile<false>(a, t.first, t.stride, m0, zs, qs, xs);
#pragma unroll
        for (int j = 0; j < 8; j++) {
            const double v = link_centre(&t.link, &t.penalty, zs[j], qs[j]); /* 0 past the end, which adds nothing */
            part[j] = vec_fma(xs[j], v, part[j]);
            most = vec_max(most, vec_abs(v));
        }
    }
    const double y = a.y[t.leaf], n = a.n[t.leaf];
    t.coefficient = loss_coefficient(&a.loss, y, n, vec_sum_of(part), t.link.inv_sigma);
    wide_box(t, y, n, most);
}

/* The second: eight numbers of the new state; said: what the client says of each, room.T apart. All loads come first: a
 * store might change what a load reads. */
template <bool want_dual>
static __device__ __forceinline__ void wide_copies(const wide_client &t, size_t m0, double *dual, double *said, unsigned T)
{
    const leaf_work &a = t.a;
    double zs[TILE], qs[TILE], xs[TILE];
    load_tile<true>(a, t.first, t.stride, m0, zs, qs, xs);
#pragma unroll
    for (int j = 0; j < TILE; j++)
        if (m0 + j < a.M) {
            const size_t o = t.first + (m0 + j) * t.stride;
            const double v = link_centre(&t.link, &t.penalty, zs[j], qs[j]);
            const double w = t.boxed ? t.boxed[m0 + j] : vec_fma(t.coefficient, xs[j], v);
            double z = zs[j], q;
            link_copies(&t.link, &t.penalty, false, t.link.sweeps, v, w, t.parent[m0 + j], &z, &q);
            if (want_dual) {
                const double dz = vec_sub(z, zs[j]), dq = vec_sub(q, qs[j]);
                dual[j] = vec_add(dual[j], vec_fma(dz, dz, vec_mul(dq, dq)));
            }
            __stcs(a.z + o, z);
            __stcs(a.q + o, q);
            if (a.w)
                __stcs(a.w + o, w);
            said[j * T] = link_up(&t.penalty, t.up_sigma, t.link.inv_mu, z, q);
        }
}

/* What the clients of a tile said, to the eight lanes of each number. */
static __device__ __forceinline__ void add_tile(size_t M, size_t m0, const double *tile, unsigned here, double *sum)
{
    const unsigned T = blockDim.x;
    for (unsigned s = threadIdx.x; s < TILE * 8; s += T) {
        const unsigned j = s / 8, lane = s % 8;
        if (m0 + j < M) {
            double all = sum[(m0 + j) * 8 + lane];
            for (unsigned slot = lane; slot < here; slot += 8)
                all = vec_add(all, tile[j * T + slot]);
            sum[(m0 + j) * 8 + lane] = all;
        }
    }
}

/* The sums of the run, from their lanes; tile: room. */
static __device__ void end_wide_run(const leaf_work &a, const device_run &r, double up_sigma, const double *sum, double *tile)
{
    const unsigned tid = threadIdx.x;
    for (size_t m = tid; m < a.M; m += blockDim.x)
        a.run_u[blockIdx.x * a.M + m] = sum_lanes(sum + 8 * m);
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

/* Registers for so many warps that some have their numbers while others wait for memory. */
template <bool want_dual> __global__ void __launch_bounds__(RUN_THREADS, BLOCKS_AT_ONCE) leaf_kernel(const leaf_work a)
{
    SHARED_ROOM(room);
    __shared__ leaf_step shared_step;
    const unsigned T = blockDim.x, tid = threadIdx.x;
    double *sum = room, *tile = room + 8 * a.M;
    const device_run r = a.runs[blockIdx.x];
    for (size_t o = tid; o < 8 * a.M; o += T)
        sum[o] = 0;
    if (tid == 0)
        shared_step = a.steps[r.rule];
    __syncthreads();
    const link_step_vec c = shared_step.link;
    penalty_vec p = shared_step.penalty;
    p.form = PENALTY_LINEAR;
    for (unsigned base = 0; base < r.count; base += T) {
        const unsigned i = base + tid, left = r.count - base, here = left < T ? left : T;
        const bool is_there = tid < here;
        const unsigned block = i / 8, rest = r.count - block * 8;
        double dual[8] = {0, 0, 0, 0, 0, 0, 0, 0};
        wide_client t = {a,
                         c,
                         p,
                         a.inner_w + (size_t)r.parent * a.M,
                         r.at + (size_t)block * 8 * a.M + i % 8,
                         is_there && rest < 8 ? rest : 8,
                         (size_t)r.leaf + i,
                         shared_step.up_sigma,
                         0,
                         NULL};
        if (is_there)
            wide_prox(t);
        for (size_t m0 = 0; m0 < a.M; m0 += TILE) {
            if (is_there)
                wide_copies<want_dual>(t, m0, dual, tile + tid, T);
            __syncthreads();
            add_tile(a.M, m0, tile, here, sum);
            __syncthreads();
        }
        if (is_there && want_dual)
            a.dual[t.leaf] = vec_mul(vec_mul(c.sigma, c.sigma), vec_sum_of(dual));
        if (t.boxed)
            free(t.boxed);
    }
    end_wide_run(a, r, shared_step.up_sigma, sum, tile);
}
