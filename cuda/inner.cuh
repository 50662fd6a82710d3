/* The steps of the nodes above the clients: eight threads for an inner node, a block of threads for a cloud. */
struct inner_work {
    const device_node *nodes;
    size_t M, first, end;
    double *w, *z, *q, *dual;
    const double *run_u, *run_sigma;
    device_clock clock;
    const device_clock *clocks; /* of each node, if they differ */
    const unsigned char *steps; /* likewise */
};

static __device__ device_clock clock_here(const inner_work &a, size_t i)
{
    return a.clocks ? a.clocks[i] : a.clock;
}

__global__ void inner_kernel(const inner_work a)
{
    const size_t i = a.first + (blockIdx.x * (size_t)blockDim.x + threadIdx.x) / 8, M = a.M;
    const unsigned lane = threadIdx.x % 8;
    const bool exists = i < a.end, is_there = exists && a.nodes[i].mine && (!a.steps || a.steps[i]);
    double change = 0, sigma = 0;
    if (is_there) {
        const device_node node = a.nodes[i];
        const penalty_vec own = penalty_here(&node.prior), p = penalty_here(&node.rule.penalty);
        const device_clock clock = clock_here(a, i);
        const link_step_vec c = link_step_by(&node.rule.schedule, &p, clock.k, clock.root, clock.before);
        double weights = 0;
        for (size_t k = node.first_inner; k < node.first_inner + (size_t)node.n_inner; k++)
            weights = vec_add(weights, vec_mul(a.nodes[k].rule.schedule.c, clock_here(a, k).next));
        for (size_t k = node.first_run; k < node.first_run + node.n_runs; k++)
            weights = vec_add(weights, a.run_sigma[k]);
        const double scale = vec_div(1, vec_add(c.sigma, weights));
        sigma = c.sigma;
        for (size_t m = lane; m < M; m += 8) {
            double r = 0;
            for (size_t k = node.first_inner; k < node.first_inner + (size_t)node.n_inner; k++) {
                const device_rule *rule = &a.nodes[k].rule;
                const penalty_vec child = penalty_here(&rule->penalty);
                const device_clock at = clock_here(a, k);
                r = vec_add(r, link_up(&child, vec_mul(rule->schedule.c, at.next),
                                       vec_div(at.root, rule->schedule.alpha), a.z[k * M + m], a.q[k * M + m]));
            }
            for (size_t k = node.first_run; k < node.first_run + node.n_runs; k++)
                r = vec_add(r, a.run_u[k * M + m]);
            const double z_old = a.z[i * M + m], q_old = a.q[i * M + m], v = link_centre(&c, &p, z_old, q_old);
            r = vec_fma(c.sigma, v, r);
            const double w = link_cut(penalty_prox_exact(&own, vec_mul(scale, r), scale), LINK_TINY);
            double z = z_old, q;
            link_copies(&c, &p, c.relaxes, c.sweeps, v, w, a.w[(size_t)node.parent * M + m], &z, &q);
            const double dz = vec_sub(z, z_old), dq = vec_sub(q, q_old);
            change = vec_add(change, vec_fma(dz, dz, vec_mul(dq, dq)));
            a.w[i * M + m] = w;
            a.z[i * M + m] = z;
            a.q[i * M + m] = q;
        }
    }
    /* as vec_sum adds eight lanes */
    change = vec_add(change, __shfl_down_sync(0xffffffff, change, 4, 8));
    change = vec_add(change, __shfl_down_sync(0xffffffff, change, 2, 8));
    change = vec_add(change, __shfl_down_sync(0xffffffff, change, 1, 8));
    if (exists && lane == 0)
        a.dual[i] = vec_mul(vec_mul(sigma, sigma), change);
}

/* What child `slot` of a cloud says: number m of its message, or its weight if m is M. Inner children come first. */
static __device__ double said_by(const inner_work &a, const device_node &cloud, size_t slot, size_t m)
{
    if (slot >= cloud.n_inner) {
        const size_t run = cloud.first_run + slot - cloud.n_inner;
        return m == a.M ? a.run_sigma[run] : a.run_u[run * a.M + m];
    }
    const size_t k = cloud.first_inner + slot;
    const device_rule *rule = &a.nodes[k].rule;
    const device_clock clock = clock_here(a, k);
    const double sigma = vec_mul(rule->schedule.c, clock.next);
    if (m == a.M)
        return sigma;
    const penalty_vec p = penalty_here(&rule->penalty);
    return link_up(&p, sigma, vec_div(clock.root, rule->schedule.alpha), a.z[k * a.M + m], a.q[k * a.M + m]);
}

enum { ROOT_THREADS = 256, ROOT_WIDE = 64, ROOT_TILE = 64 };

/* A cloud may have many children, and their messages are added one after the other: all threads fetch a tile of them,
 * then one thread for each number adds. The last number is the weight. */
__global__ void __launch_bounds__(ROOT_THREADS) root_kernel(const inner_work a)
{
    __shared__ double tile[ROOT_TILE * (ROOT_WIDE + 1)];
    __shared__ double weights;
    const device_node cloud = a.nodes[blockIdx.x];
    const penalty_vec own = penalty_here(&cloud.prior);
    const size_t M = a.M, children = (size_t)cloud.n_inner + cloud.n_runs;
    for (size_t m0 = 0; m0 < M; m0 += ROOT_WIDE) {
        const unsigned wide = (unsigned)(M - m0 < ROOT_WIDE ? M - m0 : ROOT_WIDE), row = wide + 1, tid = threadIdx.x;
        double sum = 0;
        for (size_t first = 0; first < children; first += ROOT_TILE) {
            const unsigned here = (unsigned)(children - first < ROOT_TILE ? children - first : ROOT_TILE);
            for (unsigned o = tid; o < here * row; o += blockDim.x)
                tile[o] = said_by(a, cloud, first + o / row, o % row < wide ? m0 + o % row : M);
            __syncthreads();
            for (unsigned i = 0; i < here && tid < row; i++)
                sum = vec_add(sum, tile[i * row + tid]);
            __syncthreads();
        }
        if (tid == wide)
            weights = sum;
        __syncthreads();
        const double scale = vec_div(1, weights);
        if (tid < wide)
            a.w[blockIdx.x * M + m0 + tid] = link_cut(penalty_prox_exact(&own, vec_mul(scale, sum), scale), LINK_TINY);
        __syncthreads();
    }
}

/* The same for a cloud with so many children that one block of threads would take long to fetch their messages: all are
 * written down by columns, then a block of threads adds a column. */
enum { ROOT_LARGE = 4096, COLUMN_THREADS = 256, COLUMN_TILE = 2048 };

__global__ void root_messages_kernel(const inner_work a, double *columns, size_t children)
{
    const device_node cloud = a.nodes[0];
    for (size_t o = blockIdx.x * (size_t)blockDim.x + threadIdx.x; o < children * (a.M + 1);
         o += gridDim.x * (size_t)blockDim.x)
        columns[o % (a.M + 1) * children + o / (a.M + 1)] = said_by(a, cloud, o / (a.M + 1), o % (a.M + 1));
}

/* Thread 0 adds a tile while the others fetch the next. */
__global__ void __launch_bounds__(COLUMN_THREADS) root_columns_kernel(const double *columns, size_t children, double *sums)
{
    __shared__ double tile[2][COLUMN_TILE];
    const double *column = columns + blockIdx.x * children;
    double sum = 0;
    for (unsigned i = threadIdx.x; i < COLUMN_TILE; i += blockDim.x)
        tile[0][i] = i < children ? column[i] : 0;
    unsigned turn = 0;
    for (size_t first = 0; first < children; first += COLUMN_TILE, turn ^= 1) {
        __syncthreads();
        const size_t next = first + COLUMN_TILE;
        if (threadIdx.x >= 32)
            for (size_t i = threadIdx.x - 32; i < COLUMN_TILE && next + i < children; i += blockDim.x - 32)
                tile[turn ^ 1][i] = column[next + i];
        const unsigned here = (unsigned)(children - first < COLUMN_TILE ? children - first : COLUMN_TILE);
        if (threadIdx.x == 0)
#pragma unroll 16
            for (unsigned i = 0; i < here; i++)
                sum = vec_add(sum, tile[turn][i]);
    }
    if (threadIdx.x == 0)
        sums[blockIdx.x] = sum;
}

__global__ void root_end_kernel(const inner_work a, const double *sums)
{
    const penalty_vec own = penalty_here(&a.nodes[0].prior);
    const double scale = vec_div(1, sums[a.M]);
    for (size_t m = threadIdx.x; m < a.M; m += blockDim.x)
        a.w[m] = link_cut(penalty_prox_exact(&own, vec_mul(scale, sums[m]), scale), LINK_TINY);
}
