/*
 * One row per client, any settings (members.cuh): links of all kinds, over-relaxed or not, clients that sit out, several
 * local steps, a box for every loss. Four threads a client as in narrow.cuh, but its numbers are read twice in a step, so
 * that the number of features does not matter. The sums of a run are a second kernel's.
 */

/* The t of a client whose prox leaves the box, by its first thread, for all four. */
template <typename S>
static __device__ double boxed_t(const leaf_work &a, const member &c, const link_step_vec &step, bool outside, double y,
                                 size_t first, unsigned wide)
{
    const unsigned slot = threadIdx.x % 8;
    double t = 0;
    if (outside && threadIdx.x % 32 / 8 == 0) {
        double *room = (double *)malloc(6 * a.M * sizeof(double));
        if (room) {
            for (size_t m = 0; m < a.M; m++) {
                double z, q;
                load_link<S>(a, first + m * wide, &z, &q);
                room[m] = link_centre(&step, &c.penalty, z, q);
                room[a.M + m] = a.x[first + m * wide];
            }
            const scalar_loss law = {&c.own->loss, y, NULL};
            t = search_box(&law, a.M, a.M, room + a.M, room, step.sigma, room + 2 * a.M);
            free(room);
        } else {
            *a.failed = 1;
        }
    }
    return __shfl_sync(everyone, t, slot);
}

/* One step of a client that `steps`; its threads take part in the sums of the warp anyway. Returns |dz|^2 + |dq|^2. */
template <typename S>
static __device__ double general_step(const leaf_work &a, const member &c, bool steps, size_t leaf, size_t first,
                                      unsigned wide, const double *parent)
{
    const unsigned j = threadIdx.x % 32 / 8;
    const penalty_vec &p = c.penalty;
    const link_step_vec s = member_step(c, c.k + 1);
    const hfsad_loss &loss = c.own->loss;
    const double y = steps ? a.y[leaf] : 0, norm = steps ? a.n[leaf] : 0;
    double part[2] = {0, 0}, dual[2] = {0, 0}, reach = 0;
    for (size_t m = j; m < a.M && steps; m += 4) {
        const size_t o = first + m * wide;
        double &sum = part[m / 4 % 2], z, q;
        load_link<S>(a, o, &z, &q);
        sum = vec_fma(a.x[o], link_centre(&s, &p, z, q), sum);
    }
    const double by = loss_coefficient(&loss, y, norm, sum_of_client(part[0], part[1]), s.inv_sigma);
    for (size_t m = j; m < a.M && steps && loss.box < INFINITY; m += 4) {
        const size_t o = first + m * wide;
        double z, q;
        load_link<S>(a, o, &z, &q);
        reach = vec_max(reach, vec_abs(vec_fma(by, a.x[o], link_centre(&s, &p, z, q))));
    }
    const bool outside = loss.box < most_of_client(reach) && steps;
    const double t = boxed_t<S>(a, c, s, outside, y, first, wide);
    for (size_t m = j; m < a.M && steps; m += 4) {
        const size_t o = first + m * wide;
        double z_old, q_old;
        load_link<S>(a, o, &z_old, &q_old);
        const double v = link_centre(&s, &p, z_old, q_old);
        const double w = outside ? clip(v - t * a.x[o], loss.box) : vec_fma(by, a.x[o], v);
        double z = z_old, q;
        link_copies(&s, &p, s.relaxes, s.sweeps, v, w, parent[m], &z, &q);
        if (sizeof(S) < sizeof(double))
            link_shorten(a.split, &z, &q);
        const double dz = vec_sub(z, z_old), dq = vec_sub(q, q_old);
        double &sum = dual[m / 4 % 2];
        sum = vec_add(sum, vec_fma(dz, dz, vec_mul(dq, dq)));
        store_link<S>(a, o, z, q);
        if (a.w)
            a.w[o] = w;
    }
    return vec_mul(vec_mul(s.sigma, s.sigma), sum_of_client(dual[0], dual[1]));
}

template <typename S>
__global__ void __launch_bounds__(NARROW_WARPS * 32) general_kernel(const leaf_work a, const members_work g)
{
    const device_run r = a.runs[blockIdx.x];
    const unsigned j = threadIdx.x % 32 / 8, slot = threadIdx.x % 8, blocks = (r.count + 7) / 8;
    const double *parent = a.inner_w + (size_t)r.parent * a.M;
    for (unsigned block = threadIdx.x / 32; block < blocks; block += NARROW_WARPS) {
        const unsigned rest = r.count - block * 8, wide = rest < 8 ? rest : 8;
        const bool is_there = slot < wide;
        const size_t leaf = (size_t)r.leaf + block * 8 + (is_there ? slot : 0);
        const size_t first = r.at + (size_t)block * 8 * a.M + (is_there ? slot : 0);
        const bool active = is_there && g.active[leaf];
        member c = member_of(g, leaf);
        double dual = 0;
        for (unsigned n = 1; n <= g.m.most_steps; n++) {
            const bool steps = active && n <= c.own->local_steps;
            const double change = general_step<S>(a, c, steps, leaf, first, wide, parent);
            if (steps) {
                dual = change;
                c.k++;
            }
        }
        __syncwarp();
        if (is_there && j == 0) {
            g.m.k[leaf] = c.k;
            a.dual[leaf] = dual;
        }
    }
}

/* Eight threads for each number of the sum of a run, and for the sum of the weights, whose number is M. */
template <typename S> __global__ void general_sums_kernel(const leaf_work a, const members_work g)
{
    const device_run r = a.runs[blockIdx.x];
    const unsigned lane = threadIdx.x % 8;
    for (size_t base = 0; base <= a.M; base += blockDim.x / 8) {
        const size_t m = base + threadIdx.x / 8;
        double sum = 0;
        for (unsigned i = lane; i < r.count && m <= a.M; i += 8) {
            const member c = member_of(g, (size_t)r.leaf + i);
            const unsigned rest = r.count - i / 8 * 8, wide = rest < 8 ? rest : 8;
            const size_t o = r.at + (size_t)(i / 8) * 8 * a.M + i % 8 + m * wide;
            const double sigma = member_sigma(c);
            double z = 0, q = 0;
            if (m < a.M)
                load_link<S>(a, o, &z, &q);
            sum = vec_add(sum, m == a.M ? sigma : link_up(&c.penalty, sigma, member_inv_mu(c), z, q));
        }
        sum = sum_of_eight(sum);
        if (lane == 0 && m < a.M)
            a.run_u[blockIdx.x * a.M + m] = sum;
        if (lane == 0 && m == a.M)
            a.run_sigma[blockIdx.x] = sum;
    }
}
