/*
 * One row per client and few features: a warp for each block of eight clients, four threads a client. Thread j of a
 * client has the features m with m mod 8 = j or j + 4: the lanes of dot8, so that its sums keep the processor's order.
 * A client's numbers are read once, by whole lines, and stay in registers. A client whose prox leaves the box, which is
 * rare, is left to boxed_kernel, together with the sums of its run. The bits are those of leaf_kernel.
 *
 * narrow_kernel has four warps for a run, which add up in turns, for few large runs. staged_kernel has a warp for a run.
 */
enum { NARROW_WARPS = 4, NARROW_TILES = 4 };

/* The coefficients of this round, if they are the same for all clients: copied from leaf_work.steps to where reading
 * them costs no register. */
static __constant__ leaf_step narrow_step;

/* Links are linear here, which the compiler must know. */
static __device__ __forceinline__ penalty_vec linear_of(const leaf_step &step)
{
    penalty_vec p = step.penalty;
    p.form = PENALTY_LINEAR;
    return p;
}

/* As vec_sum adds: p0 + p4 of a thread, then those of the others. */
static __device__ __forceinline__ double sum_of_client(double low, double high)
{
    double a = vec_add(low, high);
    a = vec_add(a, __shfl_xor_sync(0xffffffffu, a, 16));
    return vec_add(a, __shfl_xor_sync(0xffffffffu, a, 8));
}

static __device__ __forceinline__ double most_of_client(double a)
{
    a = vec_max(a, __shfl_xor_sync(0xffffffffu, a, 16));
    return vec_max(a, __shfl_xor_sync(0xffffffffu, a, 8));
}

/* The step of one client in its box, by one thread. */
static __device__ void boxed_step(const leaf_work &a, const leaf_step &step, const device_run &r, unsigned i)
{
    const link_step_vec &c = step.link;
    const penalty_vec p = linear_of(step);
    const size_t M = a.M, first = r.at + (size_t)(i / 8) * 8 * M + i % 8;
    const unsigned rest = r.count - i / 8 * 8, wide = rest < 8 ? rest : 8;
    const double *parent = a.inner_w + (size_t)r.parent * M;
    double *boxed = boxed_model(a, c, p, a.y[r.leaf + i], first, wide), dual[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    if (!boxed) {
        *a.failed = 1;
        return;
    }
    for (size_t m = 0; m < M; m++) {
        const size_t o = first + m * wide;
        const double z_old = a.z[o], q_old = a.q[o];
        double z = z_old, q;
        link_copies(&c, &p, false, c.sweeps, link_centre(&c, &p, z_old, q_old), boxed[m], parent[m], &z, &q);
        const double dz = vec_sub(z, z_old), dq = vec_sub(q, q_old);
        dual[m % 8] = vec_add(dual[m % 8], vec_fma(dz, dz, vec_mul(dq, dq)));
        a.z[o] = z;
        a.q[o] = q;
        if (a.w)
            a.w[o] = boxed[m];
    }
    a.dual[r.leaf + i] = vec_mul(vec_mul(c.sigma, c.sigma), vec_sum_of(dual));
    free(boxed);
}

/* Of runs with clients that left their box: their steps, and the sums of the run from the new state. */
static __device__ void finish_run(const leaf_work &a, size_t run)
{
    const device_run r = a.runs[run];
    const leaf_step &step = a.steps[r.rule];
    const penalty_vec p = linear_of(step);
    for (unsigned i = threadIdx.x; i < r.count; i += blockDim.x)
        if (a.leaves[r.leaf + i]) {
            boxed_step(a, step, r, i);
            a.leaves[r.leaf + i] = 0;
        }
    __syncthreads();
    for (size_t m = threadIdx.x; m < a.M; m += blockDim.x) {
        double sum[8] = {0, 0, 0, 0, 0, 0, 0, 0};
        for (unsigned i = 0; i < r.count; i++) {
            const unsigned rest = r.count - i / 8 * 8, wide = rest < 8 ? rest : 8;
            const size_t o = r.at + (size_t)(i / 8) * 8 * a.M + i % 8 + m * wide;
            sum[i % 8] = vec_add(sum[i % 8], link_up(&p, step.up_sigma, step.link.inv_mu, a.z[o], a.q[o]));
        }
        a.run_u[run * a.M + m] = sum_lanes(sum);
    }
    if (threadIdx.x == 0)
        a.late[run] = 0;
}

enum { BOXED_THREADS = 64 };

/* Looks at as many runs at once as there are threads in a block. */
__global__ void __launch_bounds__(BOXED_THREADS) boxed_kernel(const leaf_work a)
{
    __shared__ unsigned char late[BOXED_THREADS];
    for (size_t first = blockIdx.x * (size_t)BOXED_THREADS; first < a.n_runs; first += gridDim.x * (size_t)BOXED_THREADS) {
        __syncthreads();
        late[threadIdx.x] = first + threadIdx.x < a.n_runs && a.late[first + threadIdx.x];
        __syncthreads();
        for (unsigned i = 0; i < BOXED_THREADS; i++)
            if (late[i])
                finish_run(a, first + i);
    }
}

/* KIND: of the loss, for the compiler; ANY_LOSS: a.loss.kind. */
enum { ANY_LOSS = -1 };

/* The step of a block; say(n, m, u) gets the messages of its clients, 0 of one that is not there: u[n] of feature
 * m = n / 2 * 8 + n % 2 * 4 + j. */
template <int TILES, bool want_dual, int KIND, bool BOX, typename Say>
static __device__ __forceinline__ void step_block(const leaf_work &a, const leaf_step &step, const device_run &r,
                                                  size_t run, unsigned block, Say say)
{
    enum { N = 2 * TILES };
    const link_step_vec &c = step.link;
    const penalty_vec p = linear_of(step);
    const unsigned j = threadIdx.x % 32 / 8, slot = threadIdx.x % 8, M = (unsigned)a.M;
    const unsigned rest = r.count - block * 8, wide = rest < 8 ? rest : 8, i = block * 8 + slot;
    const double *parent = a.inner_w + (size_t)r.parent * M;
    const bool is_there = slot < wide;
    const size_t first = r.at + (size_t)block * 8 * M + (is_there ? slot : 0);
    double x[N], z[N], v[N], low = 0, high = 0, dual[2] = {0, 0};
#pragma unroll
    for (int n = 0; n < N; n++) {
        const unsigned m = n / 2 * 8 + n % 2 * 4 + j;
        const size_t o = first + (size_t)m * wide;
        const bool has = is_there && m < M;
        z[n] = has ? __ldcs(a.z + o) : 0;
        v[n] = has ? __ldcs(a.q + o) : 0;
        x[n] = has ? __ldcs(a.x + o) : 0;
    }
    const double y = is_there ? a.y[r.leaf + i] : 0, norm = is_there ? a.n[r.leaf + i] : 0;
    double q_old[want_dual ? N : 1];
#pragma unroll
    for (int n = 0; n < N; n++) {
        if (want_dual)
            q_old[n] = v[n];
        v[n] = link_centre(&c, &p, z[n], v[n]); /* 0 past the end, which adds nothing */
        double &part = n % 2 ? high : low;
        part = vec_fma(x[n], v[n], part);
    }
    hfsad_loss loss = a.loss;
    if (KIND != ANY_LOSS)
        loss.kind = (hfsad_loss_kind)KIND;
    const double by = loss_coefficient(&loss, y, norm, sum_of_client(low, high), c.inv_sigma);
    bool stays = is_there;
    if (BOX) {
        double reach = 0;
#pragma unroll
        for (int n = 0; n < N; n++)
            reach = vec_max(reach, vec_abs(vec_fma(by, x[n], v[n])));
        reach = most_of_client(reach);
        if (is_there && loss.box < reach) {
            stays = false;
            a.leaves[r.leaf + i] = a.late[run] = 1;
        }
    }
#pragma unroll
    for (int n = 0; n < N; n++) {
        const unsigned m = n / 2 * 8 + n % 2 * 4 + j;
        if (m >= M)
            continue;
        const size_t o = first + (size_t)m * wide;
        const double w = vec_fma(by, x[n], v[n]);
        double at = z[n], q;
        link_copies(&c, &p, false, c.sweeps, v[n], w, parent[m], &at, &q);
        if (want_dual) {
            const double dz = vec_sub(at, z[n]), dq = vec_sub(q, q_old[n]);
            dual[n % 2] = vec_add(dual[n % 2], vec_fma(dz, dz, vec_mul(dq, dq)));
        }
        say(n, m, is_there ? link_up(&p, step.up_sigma, c.inv_mu, at, q) : 0);
        if (stays) {
            __stcs(a.z + o, at);
            __stcs(a.q + o, q);
            if (a.w)
                __stcs(a.w + o, w);
        }
    }
    if (want_dual) {
        const double change = sum_of_client(dual[0], dual[1]);
        if (stays && j == 0)
            a.dual[r.leaf + i] = vec_mul(vec_mul(c.sigma, c.sigma), change);
    }
}

/* The sum of up_sigma over the clients of a run, by a warp. */
static __device__ __forceinline__ void add_sigmas(const leaf_work &a, const leaf_step &step, const device_run &r,
                                                  size_t run)
{
    double all = 0;
    for (unsigned i = threadIdx.x % 8; i < r.count; i += 8)
        all = vec_add(all, step.up_sigma);
    all = sum_of_eight(all);
    if (threadIdx.x % 32 == 0)
        a.run_sigma[run] = all;
}

template <int TILES, bool want_dual, int KIND, bool BOX>
__global__ void __launch_bounds__(NARROW_WARPS * 32, BOX ? 4 : 5) narrow_kernel(const __grid_constant__ leaf_work a)
{
    SHARED_ROOM(room);
    const unsigned T = blockDim.x, tid = threadIdx.x, warps = T / 32, warp = tid / 32, slot = tid % 8;
    const unsigned M = (unsigned)a.M;
    double *tiles = room; /* two turns of a tile per warp: the messages of eight clients, by features */
    const device_run r = a.runs[blockIdx.x];
    const unsigned blocks = (r.count + 7) / 8;
    double sum[TILES]; /* of feature (tid + n T) / 8 and the lane tid mod 8 of the clients; T is at least 64 */
#pragma unroll
    for (int n = 0; n < TILES; n++)
        sum[n] = 0;
    unsigned turn = 0;
    for (unsigned base = 0; base < blocks; base += warps, turn ^= 1) {
        const unsigned block = base + warp;
        double *tile = tiles + (size_t)(turn * warps + warp) * 8 * M;
        if (block < blocks)
            step_block<TILES, want_dual, KIND, BOX>(a, narrow_step, r, blockIdx.x, block,
                                                    [&](int, unsigned m, double u) { tile[m * 8 + slot] = u; });
        __syncthreads(); /* also: the tiles of two turns ago have been added */
        const unsigned here = blocks - base < warps ? blocks - base : warps;
#pragma unroll
        for (int n = 0; n < TILES; n++) {
            const unsigned s = tid + n * T;
            if (s < 8 * M)
                for (unsigned from = 0; from < here; from++)
                    sum[n] = vec_add(sum[n], tiles[(turn * warps + from) * 8 * M + s]);
        }
    }
#pragma unroll
    for (int n = 0; n < TILES; n++) {
        const unsigned s = tid + n * T;
        const double all = sum_of_eight(s < 8 * M ? sum[n] : 0);
        if (s < 8 * M && s % 8 == 0)
            a.run_u[blockIdx.x * (size_t)M + s / 8] = all;
    }
    if (warp == 0)
        add_sigmas(a, narrow_step, r, blockIdx.x);
}

/*
 * A warp for a run, and STAGED_CLIENTS at a time, whose numbers come to shared memory: their coefficients, which cost most
 * for phase retrieval, are then found at once, not eight at a time as in step_block. The sums are in registers, because
 * a thread has the same lane of the sum in every block. MANY: runs have different rules.
 */
static __device__ void stage(double *to, const double *from, size_t count)
{
    const unsigned lane = threadIdx.x % 32;
    const size_t pairs = ((size_t)from / 8) % 2 ? 0 : count / 2;
    for (size_t i = lane; i < pairs; i += 32)
        __pipeline_memcpy_async(to + 2 * i, from + 2 * i, 16);
    for (size_t i = 2 * pairs + lane; i < count; i += 32)
        __pipeline_memcpy_async(to + i, from + i, 8);
}

/* 16 clients at a time measured best: with 32 too few warps have room, with 8 all threads solve for all. */
enum { STAGED_CLIENTS = 16 };

static __device__ void stage_chunk(const leaf_work &a, const device_run &r, unsigned done, double *to)
{
    const unsigned left = r.count - done, here = left < STAGED_CLIENTS ? left : STAGED_CLIENTS;
    const size_t base = r.at + (size_t)done * a.M, count = (size_t)here * a.M, room = STAGED_CLIENTS * a.M;
    stage(to, a.x + base, count);
    stage(to + room, a.z + base, count);
    stage(to + 2 * room, a.q + base, count);
    __pipeline_commit();
}

/* The numbers of a thread in a block of eight clients, of which `wide` are there. */
#define STAGED_EACH(n, m, o)                                                                                           \
    _Pragma("unroll") for (int n = 0; n < 2 * NARROW_TILES; n++)                                                       \
        if (const unsigned m = n / 2 * 8 + n % 2 * 4 + j, o = at + m * wide; m < M && slot < wide)

template <int KIND, bool BOX, bool MANY>
__global__ void __launch_bounds__(32) staged_kernel(const __grid_constant__ leaf_work a)
{
    SHARED_ROOM(room);
    enum { N = 2 * NARROW_TILES };
    const unsigned lane = threadIdx.x, j = lane / 8, slot = lane % 8, M = (unsigned)a.M;
    const device_run r = a.runs[blockIdx.x];
    const leaf_step &step = MANY ? a.steps[r.rule] : narrow_step;
    const link_step_vec &c = step.link;
    const penalty_vec p = linear_of(step);
    double sum[N], parent[N];
    hfsad_loss loss = a.loss;
    if (KIND != ANY_LOSS)
        loss.kind = (hfsad_loss_kind)KIND;
#pragma unroll
    for (int n = 0; n < N; n++) {
        const unsigned m = n / 2 * 8 + n % 2 * 4 + j;
        sum[n] = 0;
        parent[n] = m < M ? a.inner_w[(size_t)r.parent * M + m] : 0;
    }
    const double *xs = room, *zs = xs + STAGED_CLIENTS * M, *qs = zs + STAGED_CLIENTS * M;
    for (unsigned done = 0; done < r.count; done += STAGED_CLIENTS) {
        const unsigned left = r.count - done, here = left < STAGED_CLIENTS ? left : STAGED_CLIENTS, blocks = (here + 7) / 8;
        const size_t base = r.at + (size_t)done * M, leaf = (size_t)r.leaf + done;
        __syncwarp();
        stage_chunk(a, r, done, room);
        const double y = lane < here ? a.y[leaf + lane] : 0, norm = lane < here ? a.n[leaf + lane] : 0;
        __pipeline_wait_prior(0);
        __syncwarp();
        double own = 0; /* <x, v> of client done + lane */
#pragma unroll 1
        for (unsigned b = 0; b < blocks; b++) {
            const unsigned rest = here - b * 8, wide = rest < 8 ? rest : 8, at = b * 8 * M + slot;
            double part[2] = {0, 0};
            STAGED_EACH(n, m, o)
                part[n % 2] = vec_fma(xs[o], link_centre(&c, &p, zs[o], qs[o]), part[n % 2]);
            const double s = sum_of_client(part[0], part[1]);
            own = j == b ? s : own;
        }
        const double coefficient = loss_coefficient(&loss, y, norm, own, c.inv_sigma);
#pragma unroll 1
        for (unsigned b = 0; b < blocks; b++) {
            const unsigned rest = here - b * 8, wide = rest < 8 ? rest : 8, at = b * 8 * M + slot;
            const double by = __shfl_sync(everyone, coefficient, b * 8 + slot);
            bool stays = slot < wide;
            if (BOX) {
                double reach = 0;
                STAGED_EACH(n, m, o)
                    reach = vec_max(reach, vec_abs(vec_fma(by, xs[o], link_centre(&c, &p, zs[o], qs[o]))));
                reach = most_of_client(reach);
                if (stays && loss.box < reach) {
                    stays = false;
                    a.leaves[leaf + b * 8 + slot] = a.late[blockIdx.x] = 1;
                }
            }
            STAGED_EACH(n, m, o)
            {
                const double v = link_centre(&c, &p, zs[o], qs[o]), w = vec_fma(by, xs[o], v);
                double z = zs[o], q;
                link_copies(&c, &p, false, c.sweeps, v, w, parent[n], &z, &q);
                sum[n] = vec_add(sum[n], link_up(&p, step.up_sigma, c.inv_mu, z, q));
                if (stays) {
                    __stcs(a.z + base + o, z);
                    __stcs(a.q + base + o, q);
                    if (a.w)
                        __stcs(a.w + base + o, w);
                }
            }
        }
    }
#pragma unroll
    for (int n = 0; n < N; n++) {
        const unsigned m = n / 2 * 8 + n % 2 * 4 + j;
        const double all = sum_of_eight(sum[n]);
        if (m < M && slot == 0)
            a.run_u[blockIdx.x * (size_t)M + m] = all;
    }
    add_sigmas(a, step, r, blockIdx.x);
}
