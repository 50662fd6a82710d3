/*
 * Clients that differ in their settings, sit out rounds or step several times (device_members): each has its class and
 * its counter, and r(k) comes from a table. If there are none, all clients of a run have the rule of the run and the clock
 * of the round.
 */
struct members_work {
    device_members m; /* arrays on the device */
    uint64_t round;
    unsigned char *active;
    unsigned long long *heard; /* messages so far: see device_table.heard */
};

struct member {
    penalty_vec penalty;
    hfsad_schedule schedule;
    const device_class *own; /* NULL: the rule of the run */
    const double *roots;
    unsigned k;
};

static __device__ member member_of(const members_work &g, size_t leaf)
{
    member c;
    c.own = &g.m.classes[g.m.class_of ? g.m.class_of[leaf] : 0];
    c.penalty = penalty_here(&c.own->rule.penalty);
    c.schedule = c.own->rule.schedule;
    c.roots = g.m.roots + c.own->pace * g.m.n_roots;
    c.k = g.m.k[leaf];
    return c;
}

static __device__ link_step_vec member_step(const member &c, unsigned k)
{
    return link_step_by(&c.schedule, &c.penalty, k, c.roots[k], c.roots[k - 1]);
}

/* Of its message. */
static __device__ double member_sigma(const member &c)
{
    return vec_mul(c.schedule.c, c.roots[c.k + 1]);
}

static __device__ double member_inv_mu(const member &c)
{
    return vec_div(c.roots[c.k], c.schedule.alpha);
}

/* A block of threads for a run. */
__global__ void draw_kernel(const members_work g, const device_run *runs)
{
    const device_run r = runs[blockIdx.x];
    for (unsigned i = threadIdx.x; i < r.count; i += blockDim.x) {
        const size_t leaf = (size_t)r.leaf + i;
        bool takes_part = true, first = g.round % g.m.edge_rounds == 1 % g.m.edge_rounds;
        if (g.m.last) {
            const uint64_t iteration = (g.round - 1) / g.m.edge_rounds + 1;
            const device_class *own = &g.m.classes[g.m.class_of ? g.m.class_of[leaf] : 0];
            uint32_t last = g.m.last[leaf];
            first = last < iteration;
            takes_part = draw_takes_part(own->participation, g.m.key[leaf], g.round, g.m.edge_rounds,
                                         g.m.at_least_every, &last);
            g.m.last[leaf] = last;
        }
        g.active[leaf] = takes_part;
        if (takes_part && (r.below_inner || first))
            atomicAdd(g.heard, 1ull);
    }
}
