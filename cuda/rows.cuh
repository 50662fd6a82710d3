/*
 * Clients with many dense rows on a GPU: a warp per client. src/core/rows_body.h is the processor's code for the same
 * prox, the coordinate ascent on the dual; its sums are repeated here in its order:
 *
 * - dense_facts adds element m to lane m mod 8 of sum (m / 8) mod 4: thread m mod 32 of a warp.
 * - distance2 and row_link add element m to lane m mod 8, one after the other: the numbers go around the four groups of
 *   eight threads.
 * - vec_sum is shuffles over 4, 2 and 1.
 *
 * K numbers of u, v and a row are in the registers of each thread; element lane + 32 k of a vector is number k.
 */
struct rows_work {
    device_rows rows;
    double *norm2; /* of each row, as dense_facts adds it */
    unsigned *moving;
    double *z, *q, *w, *dual, *run_u, *run_sigma;
    const double *inner_w;
    const device_run *runs;
    const unsigned *run_of; /* of each client */
    size_t M, n_leaves, n_runs;
    unsigned lanes; /* of the sum of a run */
    hfsad_loss loss;
    const device_rule *rules;
    device_clock clock;
    unsigned long long *visits;
    members_work members;
};

static const unsigned ROWS_WARPS = 4, SHORT_SWEEPS = 10;

/* As dense_facts ends: (s0 + s1) + (s2 + s3), then vec_sum. */
static __device__ __forceinline__ double sum_of_warp(double a)
{
    a = vec_add(a, __shfl_xor_sync(everyone, a, 8));
    a = vec_add(a, __shfl_xor_sync(everyone, a, 16));
    return sum_of_eight(a);
}

template <int K> struct rows_client {
    const rows_work *a;
    const double *x; /* of its first row */
    size_t first;    /* row */
    unsigned count, lane;
    double factor, inv_sigma, tolerance;
    unsigned sweeps;
    const hfsad_loss *loss;
    double u[K], v[K];
    unsigned long long visited; /* rows */
};

template <int K> static __device__ __forceinline__ void load_vector(const double *from, size_t M, unsigned lane, double *to)
{
#pragma unroll
    for (int k = 0; k < K; k++)
        to[k] = lane + WARP * k < M ? from[lane + WARP * k] : 0;
}

template <int K> static __device__ __forceinline__ double dot_of(const double *x, const double *u)
{
    double part = 0;
#pragma unroll
    for (int k = 0; k < K; k++)
        part = vec_fma(x[k], u[k], part);
    return sum_of_warp(part);
}

template <int K> static __device__ double distance_to_centre(const rows_client<K> &c)
{
    double sum = 0;
#pragma unroll
    for (int k = 0; k < K; k++) {
        const double d = vec_sub(c.u[k], c.v[k]);
#pragma unroll
        for (int g = 0; g < 4; g++) {
            const double at = __shfl_sync(everyone, d, (c.lane & 7) + 8 * g);
            sum = vec_fma(at, at, sum);
        }
    }
    return sum_of_eight(sum);
}

static __device__ __forceinline__ double weight_of(const rows_work *a, size_t row, double factor)
{
    return factor * (a->rows.weight ? a->rows.weight[row] : 1);
}

/* free_row, of a row whose numbers are here. */
template <int K> static __device__ __forceinline__ double visit_row(rows_client<K> &c, unsigned r, const double *x)
{
    const rows_work *a = c.a;
    const size_t row = c.first + r;
    const double weight = weight_of(a, row, c.factor), n = a->norm2[row], before = a->rows.slope[row];
    const double s = dot_of<K>(x, c.u);
    if (!(n > 0))
        return 0;
    const double lift = n * c.inv_sigma;
    const double slope = weight * loss_row_slope(c.loss, a->rows.y[row], s + before * lift, weight * lift, s);
    const double step = (before - slope) * c.inv_sigma;
    if (step == 0)
        return 0;
#pragma unroll
    for (int k = 0; k < K; k++)
        c.u[k] = vec_fma(step, x[k], c.u[k]);
    __syncwarp();
    if (c.lane == 0)
        a->rows.slope[row] = slope;
    __syncwarp();
    return step * step * n;
}

/* listed: of the rows that moved, n; otherwise of all, and n becomes the number of those that moved. The next row is
 * asked for before this one is used. */
template <int K> static __device__ double sweep_rows(rows_client<K> &c, unsigned number, bool listed, unsigned *n)
{
    const rows_work *a = c.a;
    unsigned *moving = a->moving + c.first;
    const unsigned count = listed ? *n : c.count;
    const bool forwards = listed ? number % 2 : number % 2 == 0;
    unsigned found = 0;
    double moved = 0, next[K], x[K];
    if (count) {
        const unsigned i = forwards ? 0 : count - 1;
        load_vector<K>(c.x + (listed ? moving[i] : i) * a->M, a->M, c.lane, next);
    }
    for (unsigned i = 0; i < count; i++) {
        const unsigned at = forwards ? i : count - 1 - i, r = listed ? moving[at] : at;
#pragma unroll
        for (int k = 0; k < K; k++)
            x[k] = next[k];
        if (i + 1 < count) {
            const unsigned then = forwards ? at + 1 : at - 1;
            load_vector<K>(c.x + (listed ? moving[then] : then) * a->M, a->M, c.lane, next);
        }
        const double move = visit_row<K>(c, r, x);
        if (!listed && move > 0) {
            if (c.lane == 0)
                moving[found] = r;
            found++;
        }
        moved += move;
    }
    __syncwarp();
    if (!listed)
        *n = found;
    c.visited += count;
    return moved;
}

template <int K> static __device__ void sweep_all_rows(rows_client<K> &c)
{
    const double tolerance2 = c.tolerance * c.tolerance;
    unsigned left = c.sweeps;
    for (unsigned number = 0; left > 0; number++) {
        unsigned n = 0;
        left--;
        if (sweep_rows<K>(c, number, false, &n) <= tolerance2 * distance_to_centre<K>(c))
            break;
        for (unsigned i = 0; left > 0 && 2 * (size_t)n <= c.count && i < SHORT_SWEEPS; i++)
            if (sweep_rows<K>(c, i, true, &n) <= tolerance2 * distance_to_centre<K>(c))
                break;
    }
}

template <int K> static __device__ void start_rows(rows_client<K> &c)
{
#pragma unroll
    for (int k = 0; k < K; k++)
        c.u[k] = c.v[k];
    for (unsigned r = 0; r < c.count; r++) {
        const double slope = c.a->rows.slope[c.first + r];
        if (slope == 0)
            continue;
        double x[K];
        load_vector<K>(c.x + (size_t)r * c.a->M, c.a->M, c.lane, x);
#pragma unroll
        for (int k = 0; k < K; k++)
            c.u[k] = vec_fma(-slope * c.inv_sigma, x[k], c.u[k]);
    }
    c.visited = c.count;
}

/* single_row_prox: its sums go from element to element. */
template <int K> static __device__ void single_row(rows_client<K> &c, double sigma)
{
    const rows_work *a = c.a;
    double x[K], s = 0, n = 0;
    load_vector<K>(c.x, a->M, c.lane, x);
#pragma unroll
    for (int k = 0; k < K; k++)
        for (unsigned l = 0; l < WARP; l++)
            if (l + WARP * k < a->M) {
                const double at = __shfl_sync(everyone, x[k], l), v = __shfl_sync(everyone, c.v[k], l);
                s += at * v;
                n += at * at;
            }
    const double t = -loss_coefficient(c.loss, a->rows.y[c.first], n, s, weight_of(a, c.first, c.factor) / sigma);
#pragma unroll
    for (int k = 0; k < K; k++)
        c.u[k] = c.v[k] - t * x[k];
}

/* The link step; the numbers go around as in distance_to_centre. */
template <int K>
static __device__ void end_rows(const rows_client<K> &c, const link_step_vec &step, const penalty_vec &p, size_t leaf,
                                size_t at, const double *parent)
{
    const rows_work *a = c.a;
    double change = 0;
#pragma unroll
    for (int k = 0; k < K; k++) {
        const size_t m = c.lane + WARP * k;
        double term = 0;
        if (m < a->M) {
            const double z_old = a->z[at + m], q_old = a->q[at + m];
            double z = z_old, q;
            link_copies(&step, &p, step.relaxes, step.sweeps, c.v[k], c.u[k], parent[m], &z, &q);
            const double dz = vec_sub(z, z_old), dq = vec_sub(q, q_old);
            term = vec_fma(dz, dz, vec_mul(dq, dq));
            a->z[at + m] = z;
            a->q[at + m] = q;
            if (a->w)
                a->w[at + m] = c.u[k];
        }
#pragma unroll
        for (int g = 0; g < 4; g++)
            change = vec_add(change, __shfl_sync(everyone, term, (c.lane & 7) + 8 * g));
    }
    change = sum_of_eight(change);
    if (c.lane == 0)
        a->dual[leaf] = vec_mul(step.sigma, step.sigma) * change;
}

/* One step of a client. */
template <int K>
static __device__ void step_rows(rows_client<K> &c, const link_step_vec &step, const penalty_vec &p, size_t leaf, size_t at,
                                 const double *parent)
{
    const rows_work &a = *c.a;
    c.inv_sigma = step.inv_sigma;
#pragma unroll
    for (int k = 0; k < K; k++) {
        const size_t m = c.lane + WARP * k;
        c.v[k] = m < a.M ? link_centre(&step, &p, a.z[at + m], a.q[at + m]) : 0;
    }
    if (c.count == 1) {
        single_row<K>(c, step.sigma);
    } else {
        start_rows<K>(c);
        sweep_all_rows<K>(c);
        if (c.lane == 0)
            atomicAdd(a.visits, c.visited);
    }
    end_rows<K>(c, step, p, leaf, at, parent);
}

template <int K> static __device__ rows_client<K> rows_client_of(const rows_work &a, size_t leaf)
{
    rows_client<K> c;
    c.a = &a;
    c.first = a.rows.first[leaf];
    c.count = (unsigned)(a.rows.first[leaf + 1] - c.first);
    c.x = a.rows.x + c.first * a.M;
    c.lane = threadIdx.x % WARP;
    c.factor = a.rows.factor[leaf];
    c.tolerance = a.rows.tolerance;
    c.sweeps = a.rows.sweeps;
    c.loss = &a.loss;
    return c;
}

template <int K> __global__ void __launch_bounds__(ROWS_WARPS *WARP) rows_kernel(const rows_work a)
{
    const size_t leaf = blockIdx.x * (size_t)ROWS_WARPS + threadIdx.x / WARP;
    if (leaf >= a.n_leaves)
        return;
    const device_run run = a.runs[a.run_of[leaf]];
    const device_rule rule = a.rules[run.rule];
    const penalty_vec p = penalty_here(&rule.penalty);
    rows_client<K> c = rows_client_of<K>(a, leaf);
    step_rows<K>(c, link_step_by(&rule.schedule, &p, a.clock.k, a.clock.root, a.clock.before), p, leaf,
                 run.at + (leaf - run.leaf) * a.M, a.inner_w + (size_t)run.parent * a.M);
}

/* The same for members (members.cuh). */
template <int K> __global__ void __launch_bounds__(ROWS_WARPS *WARP) rows_members_kernel(const rows_work a)
{
    const size_t leaf = blockIdx.x * (size_t)ROWS_WARPS + threadIdx.x / WARP;
    if (leaf >= a.n_leaves)
        return;
    const device_run run = a.runs[a.run_of[leaf]];
    rows_client<K> c = rows_client_of<K>(a, leaf);
    member own = member_of(a.members, leaf);
    c.loss = &own.own->loss;
    c.tolerance = own.own->tolerance;
    c.sweeps = own.own->sweeps;
    if (!a.members.active[leaf]) {
        if (c.lane == 0)
            a.dual[leaf] = 0;
        return;
    }
#pragma unroll 1
    for (unsigned n = 0; n < own.own->local_steps; n++) {
        own.k++;
        step_rows<K>(c, member_step(own, own.k), own.penalty, leaf, run.at + (leaf - run.leaf) * a.M,
                     a.inner_w + (size_t)run.parent * a.M);
        __syncwarp();
    }
    if (c.lane == 0)
        a.members.m.k[leaf] = own.k;
}

template <int K> __global__ void norms_kernel(const rows_work a, size_t n_rows)
{
    const size_t row = blockIdx.x * (size_t)ROWS_WARPS + threadIdx.x / WARP;
    double x[K];
    if (row >= n_rows)
        return;
    load_vector<K>(a.rows.x + row * a.M, a.M, threadIdx.x % WARP, x);
    const double n = dot_of<K>(x, x);
    if (threadIdx.x % WARP == 0)
        a.norm2[row] = n;
}

/* What a client says: number m of its message, or its weight if m is M. */
static __device__ __forceinline__ double said_by_rows(const rows_work &a, const device_run &run, const device_rule &rule,
                                                      unsigned slot, size_t m)
{
    const size_t o = run.at + slot * a.M + m;
    if (a.members.m.n_classes) {
        const member c = member_of(a.members, (size_t)run.leaf + slot);
        const double sigma = member_sigma(c);
        return m == a.M ? sigma : link_up(&c.penalty, sigma, member_inv_mu(c), a.z[o], a.q[o]);
    }
    const double sigma = vec_mul(rule.schedule.c, a.clock.next);
    const penalty_vec p = penalty_here(&rule.penalty);
    return m == a.M ? sigma : link_up(&p, sigma, vec_div(a.clock.root, rule.schedule.alpha), a.z[o], a.q[o]);
}

/* The messages of a run's clients, added as core/fold.c does. */
__global__ void messages_kernel(const rows_work a)
{
    const device_run run = a.runs[blockIdx.x];
    const device_rule rule = a.rules[run.rule];
    for (size_t m = threadIdx.x; m <= a.M; m += blockDim.x) {
        double lane[8] = {0, 0, 0, 0, 0, 0, 0, 0};
        for (unsigned slot = 0; slot < run.count; slot += a.lanes)
#pragma unroll
            for (unsigned i = 0; i < 8; i++)
                if (i < a.lanes && slot + i < run.count)
                    lane[i] = vec_add(lane[i], said_by_rows(a, run, rule, slot + i, m));
        double *to = m == a.M ? &a.run_sigma[blockIdx.x] : &a.run_u[blockIdx.x * a.M + m];
        *to = 0 + sum_lanes(lane);
    }
}
