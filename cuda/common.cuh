/* What the kernels of clients with one row share, and the sums of vec.h by threads. */
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
    double split; /* of core/precision.h; 0: z and q are doubles, otherwise read by load_link */
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

/* A bfloat16: the first half of a float. */
struct half_float {
    uint16_t bits;
};

static __device__ __forceinline__ double widen(double a)
{
    return a;
}
static __device__ __forceinline__ double widen(float a)
{
    return a;
}
static __device__ __forceinline__ double widen(half_float a)
{
    const uint32_t bits = (uint32_t)a.bits << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* a is such a number already (link_shorten), or 0 or not finite. */
static __device__ __forceinline__ void narrow_to(float *to, double a)
{
    *to = (float)a;
}
static __device__ __forceinline__ void narrow_to(half_float *to, double a)
{
    const float value = (float)a;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    to->bits = (uint16_t)(bits >> 16);
}

/* Number o of the clients' links: z and q, or shorter numbers for z and q - z. Adding them gives the q of link_shorten
 * again: q - z is the distance that it added, but for an error that link_short removes. */
template <typename S> static __device__ __forceinline__ void load_link(const leaf_work &a, size_t o, double *z, double *q)
{
    *z = widen(((const S *)a.z)[o]);
    *q = vec_add(*z, widen(((const S *)a.q)[o]));
}
template <> __device__ __forceinline__ void load_link<double>(const leaf_work &a, size_t o, double *z, double *q)
{
    *z = a.z[o];
    *q = a.q[o];
}
template <typename S> static __device__ __forceinline__ void store_link(const leaf_work &a, size_t o, double z, double q)
{
    narrow_to((S *)a.z + o, z);
    narrow_to((S *)a.q + o, link_short(a.split, vec_sub(q, z)));
}
template <> __device__ __forceinline__ void store_link<double>(const leaf_work &a, size_t o, double z, double q)
{
    a.z[o] = z;
    a.q[o] = q;
}

/* vec_sum of lanes that are the same in all groups of eight. */
static __device__ __forceinline__ double sum_of_eight(double a)
{
    a = vec_add(a, __shfl_xor_sync(everyone, a, 4));
    a = vec_add(a, __shfl_xor_sync(everyone, a, 2));
    return vec_add(a, __shfl_xor_sync(everyone, a, 1));
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
