/* The host's side: memory of the device, and what goes there when a run begins. */
struct device {
    leaf_work leaf;
    rows_work rows; /* in place of leaf; its rows.first is NULL if clients have one row */
    inner_work inner;
    figures_work figures;
    members_work members;
    drawn_work drawn;
    double *start; /* M numbers */
    int precision; /* of z and q */
    double *part;  /* if that is not double: LINK_PART numbers of z and as many of q on their way */
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

/* The kernel for the numbers in which z and q are kept. */
#define BY_PRECISION(d, kernel)                                                                                        \
    ((d)->precision == PRECISION_FLOAT      ? (kernel<float>)                                                          \
     : (d)->precision == PRECISION_BFLOAT16 ? (kernel<half_float>)                                                     \
                                            : (kernel<double>))
enum { LINK_PART = 1 << 21 };

static size_t link_bytes(int precision)
{
    return precision == PRECISION_FLOAT ? sizeof(float) : precision == PRECISION_BFLOAT16 ? 2 : sizeof(double);
}

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
    const double vectors = (p->w ? 2 : 1) + 2.0 * (double)link_bytes(p->precision) / 8, spare = 300e6;
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

/* z and q of all clients through the room d->part, because they are shorter here. */
static bool put_parts(const device *d, const device_problem *p, char *why, size_t size)
{
    double *z = d->part, *q = z + LINK_PART;
    for (size_t at = 0; at < p->leaf_doubles; at += LINK_PART) {
        const size_t left = p->leaf_doubles - at, count = left < LINK_PART ? left : LINK_PART;
        if (!fine(cudaMemcpy(z, p->z + at, count * sizeof *z, cudaMemcpyHostToDevice), "a copy", why, size) ||
            !fine(cudaMemcpy(q, p->q + at, count * sizeof *q, cudaMemcpyHostToDevice), "a copy", why, size))
            return false;
        LAUNCH(BY_PRECISION(d, shorten_kernel), 256, 128, 0, d->leaf, at, count, z, q);
    }
    return fine(cudaGetLastError(), "a copy", why, size);
}

static bool fetch_parts(const device *d, const device_problem *p, char *why, size_t size)
{
    double *z = d->part, *q = z + LINK_PART;
    for (size_t at = 0; at < p->leaf_doubles; at += LINK_PART) {
        const size_t left = p->leaf_doubles - at, count = left < LINK_PART ? left : LINK_PART;
        LAUNCH(BY_PRECISION(d, lengthen_kernel), 256, 128, 0, d->leaf, at, count, z, q);
        if (!fine(cudaMemcpy(p->z + at, z, count * sizeof *z, cudaMemcpyDeviceToHost), "a copy", why, size) ||
            !fine(cudaMemcpy(p->q + at, q, count * sizeof *q, cudaMemcpyDeviceToHost), "a copy", why, size))
            return false;
    }
    return fine(cudaGetLastError(), "a copy", why, size);
}

static bool put_leaves(const device *d, const device_problem *p, char *why, size_t size)
{
    const size_t leaves = p->leaf_doubles * sizeof(double);
    if (p->start) {
        if (!fine(cudaMemcpy(d->start, p->start, p->M * sizeof(double), cudaMemcpyHostToDevice), "a copy", why, size))
            return false;
        LAUNCH(BY_PRECISION(d, start_kernel), d->n_runs, 128, 0, d->drawn, d->leaf);
        return fine(cudaGetLastError(), "the start", why, size);
    }
    if (d->part)
        return put_parts(d, p, why, size) &&
               (!p->w || fine(cudaMemcpy(d->leaf.w, p->w, leaves, cudaMemcpyHostToDevice), "a copy", why, size));
    return fine(cudaMemcpy(d->leaf.z, p->z, leaves, cudaMemcpyHostToDevice), "a copy", why, size) &&
           fine(cudaMemcpy(d->leaf.q, p->q, leaves, cudaMemcpyHostToDevice), "a copy", why, size) &&
           (!p->w || fine(cudaMemcpy(d->leaf.w, p->w, leaves, cudaMemcpyHostToDevice), "a copy", why, size));
}

static bool put(void *context, const device_problem *p, char *why, size_t size)
{
    device *d = (device *)context;
    const size_t inner = p->n_inner * p->M * sizeof(double);
    if (p->rows.first && !fine(cudaMemcpy(d->rows.rows.slope, p->rows.slope, p->rows.n_rows * sizeof(double),
                                          cudaMemcpyHostToDevice),
                               "a copy", why, size))
        return false;
    return put_members(d, p, why, size) && put_leaves(d, p, why, size) &&
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

/* Draws x if it is not given. */
static bool set_up_drawn(device *d, const device_problem *p, char *why, size_t size)
{
    const leaf_work *l = &d->leaf;
    drawn_work *w = &d->drawn;
    if (!take(d, &d->start, (const double *)NULL, p->M, why, size) ||
        !fine(cudaMemset(l->dual, 0, p->n_leaves * sizeof(double)), "memory", why, size))
        return false;
    w->start = d->start;
    w->M = p->M;
    w->runs = l->runs;
    w->x = (double *)l->x;
    w->w = l->w;
    if (!p->draw.law)
        return true;
    w->law = *p->draw.law;
    w->clients = p->draw.clients;
    w->first = p->draw.first;
    if (p->draw.keep && !take(d, (double **)&w->keep, p->draw.keep, p->draw.edges * p->M, why, size))
        return false;
    LAUNCH(draw_rows_kernel, d->n_runs, 128, 0, *w);
    return fine(cudaGetLastError(), "the rows", why, size);
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
    l->split = p->split;
    d->precision = p->precision;
    if (p->precision != PRECISION_DOUBLE && !take(d, &d->part, (const double *)NULL, 2 * LINK_PART, why, size))
        return false;
    double *state[7] = {0};
    if (!p->rows.first && (!take(d, (double **)&l->x, p->draw.law ? NULL : p->x, p->leaf_doubles, why, size) ||
                           !take(d, (double **)&l->y, p->y, p->n_leaves, why, size) ||
                           !take(d, (double **)&l->n, p->n, p->n_leaves, why, size)))
        return false;
    if (!take(d, (device_run **)&l->runs, p->runs, p->n_runs, why, size) ||
        !take(d, (device_node **)&d->inner.nodes, p->inner, p->n_inner, why, size) ||
        !take(d, (device_rule **)&l->rules, p->rules, p->n_rules, why, size) ||
        !take(d, &l->failed, (const int *)NULL, 1, why, size))
        return false;
    const size_t links = (p->leaf_doubles * link_bytes(p->precision) + sizeof(double) - 1) / sizeof(double);
    const size_t counts[7] = {links, links, p->n_leaves, p->n_inner * p->M,
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
    if (!set_up_members(d, p, why, size) || !set_up_drawn(d, p, why, size))
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
