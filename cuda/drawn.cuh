/* Rows that are drawn here (made/draws.h), and the start of all clients: a thread for a client of a run. */
struct drawn_work {
    feature_law law;
    const double *keep, *start;
    size_t M, clients, first;
    const device_run *runs;
    double *x, *w;
};

/* The place of number 0 of client i of a run, and the distance to the next. */
static __device__ size_t client_place(const device_run &r, size_t M, unsigned i, unsigned *stride)
{
    const unsigned rest = r.count - i / 8 * 8;
    *stride = rest < 8 ? rest : 8;
    return r.at + (size_t)(i / 8) * 8 * M + i % 8;
}

__global__ void draw_rows_kernel(const drawn_work a)
{
    const device_run r = a.runs[blockIdx.x];
    for (unsigned i = threadIdx.x; i < r.count; i += blockDim.x) {
        unsigned stride;
        const size_t at = client_place(r, a.M, i, &stride), number = a.first + r.leaf + i;
        draw_client(&a.law, number + 1, a.keep ? a.keep + number / a.clients * a.M : NULL, a.M, a.x + at, stride);
    }
}

template <typename S> __global__ void start_kernel(const drawn_work a, const leaf_work l)
{
    const device_run r = a.runs[blockIdx.x];
    for (unsigned i = threadIdx.x; i < r.count; i += blockDim.x) {
        unsigned stride;
        const size_t at = client_place(r, a.M, i, &stride);
        for (size_t m = 0; m < a.M; m++) {
            store_link<S>(l, at + m * stride, a.start[m], a.start[m]);
            if (a.w)
                a.w[at + m * stride] = a.start[m];
        }
    }
}

/* Links from `at` on, between doubles and the numbers in which they are kept here. */
template <typename S> __global__ void shorten_kernel(const leaf_work l, size_t at, size_t count, const double *z, const double *q)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (size_t)blockDim.x)
        store_link<S>(l, at + i, z[i], q[i]);
}

template <typename S> __global__ void lengthen_kernel(const leaf_work l, size_t at, size_t count, double *z, double *q)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (size_t)blockDim.x)
        load_link<S>(l, at + i, &z[i], &q[i]);
}
