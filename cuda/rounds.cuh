/* The host's side: the rounds, the figures, and what comes back. */
static bool put_cloud(void *context, const double *w, char *why, size_t size)
{
    device *d = (device *)context;
    return fine(cudaMemcpy(d->inner.w, w, d->inner.M * sizeof *w, cudaMemcpyHostToDevice), "a copy", why, size);
}

typedef void (*leaf_function)(const leaf_work);

/* Measured rounds are few. */
static leaf_function narrow_for(const hfsad_loss *loss, bool want_dual)
{
    if (want_dual)
        return narrow_kernel<4, true, ANY_LOSS, true>;
    if (loss->kind == HFSAD_LOSS_PHASE_RETRIEVAL)
        return narrow_kernel<4, false, HFSAD_LOSS_PHASE_RETRIEVAL, true>;
    return loss->kind == HFSAD_LOSS_ABSOLUTE ? narrow_kernel<4, false, HFSAD_LOSS_ABSOLUTE, false>
                                             : narrow_kernel<4, false, ANY_LOSS, false>;
}

template <bool MANY> static leaf_function staged_for(const hfsad_loss *loss)
{
    if (loss->kind == HFSAD_LOSS_PHASE_RETRIEVAL)
        return staged_kernel<HFSAD_LOSS_PHASE_RETRIEVAL, true, MANY>;
    return loss->kind == HFSAD_LOSS_ABSOLUTE ? staged_kernel<HFSAD_LOSS_ABSOLUTE, false, MANY>
                                             : staged_kernel<ANY_LOSS, false, MANY>;
}

/* A warp for a run, if runs are small or so many that they fill the device. */
enum { STAGED_RUNS = 2000, STAGED_MOST = 64 };

/* For a kernel whose threads go on to other items. */
static unsigned blocks_for(size_t items, unsigned threads)
{
    const size_t blocks = (items + threads - 1) / threads;
    return (unsigned)(blocks < 1024 ? blocks : 1024);
}

static bool play_narrow(device *d, bool want_dual, char *why, size_t size)
{
    const size_t M = d->inner.M, shared = 2 * NARROW_WARPS * 8 * M * sizeof(double);
    const bool many = d->leaf.n_rules > 1;
    if (!many && !fine(cudaMemcpyToSymbolAsync(narrow_step, d->leaf.steps, sizeof *d->leaf.steps, 0,
                                               cudaMemcpyDeviceToDevice),
                       "a round", why, size))
        return false;
    if (many || (!want_dual && (d->most <= STAGED_MOST || d->n_runs >= STAGED_RUNS))) {
        const leaf_function kernel = many ? staged_for<true>(&d->leaf.loss) : staged_for<false>(&d->leaf.loss);
        LAUNCH(kernel, d->n_runs, 32, 3 * STAGED_CLIENTS * M * sizeof(double), d->leaf);
    } else {
        const leaf_function kernel = narrow_for(&d->leaf.loss, want_dual);
        LAUNCH(kernel, d->n_runs, NARROW_WARPS * 32, shared, d->leaf);
    }
    if (d->leaf.loss.box < INFINITY)
        LAUNCH(boxed_kernel, blocks_for(d->n_runs, BOXED_THREADS), BOXED_THREADS, 0, d->leaf);
    return fine(cudaGetLastError(), "a round", why, size);
}

/* The steps of all clients and the sums of their runs. */
static bool play_leaves(device *d, const device_round *r, char *why, size_t size)
{
    const size_t shared = (8 * d->inner.M + TILE * d->threads) * sizeof(double);
    const leaf_function kernel = r->want_dual ? leaf_kernel<true> : leaf_kernel<false>;
    const bool members = d->members.m.n_classes > 0;
    d->leaf.clock = d->rows.clock = r->leaf;
    d->members.round = r->number;
    if (members)
        LAUNCH(draw_kernel, d->n_runs, 128, 0, d->members, d->leaf.runs);
    if (d->rows.rows.first) {
        if (members)
            ROWS_CALL(rows_members_kernel, per_thread(d->rows.M), d->rows.n_leaves, d->rows);
        else
            ROWS_CALL(rows_kernel, per_thread(d->rows.M), d->rows.n_leaves, d->rows);
        LAUNCH(messages_kernel, d->n_runs, 128, 0, d->rows);
        return true;
    }
    if (members) {
        LAUNCH(BY_PRECISION(d, general_kernel), d->n_runs, NARROW_WARPS * 32, 0, d->leaf, d->members);
        LAUNCH(BY_PRECISION(d, general_sums_kernel), d->n_runs, 256, 0, d->leaf, d->members);
        return true;
    }
    LAUNCH(step_kernel, (d->leaf.n_rules + 127) / 128, 128, 0, d->leaf);
    if (d->inner.M <= 8 * NARROW_TILES)
        return play_narrow(d, r->want_dual, why, size);
    if (shared > 48 << 10 &&
        !fine(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared), "memory", why,
              size))
        return false;
    LAUNCH(kernel, d->n_runs, d->threads, shared, d->leaf);
    return true;
}

static bool play(void *context, const device_round *r, char *why, size_t size)
{
    device *d = (device *)context;
    if (!play_leaves(d, r, why, size))
        return false;
    d->inner.clock = r->inner;
    d->inner.clocks = r->clocks ? d->clocks : NULL;
    d->inner.steps = r->clocks ? d->steps : NULL;
    if (r->clocks && !(fine(cudaMemcpy(d->clocks, r->clocks, d->n_inner * sizeof *d->clocks, cudaMemcpyHostToDevice),
                            "a round", why, size) &&
                       fine(cudaMemcpy(d->steps, r->steps, d->n_inner, cudaMemcpyHostToDevice), "a round", why, size)))
        return false;
    for (uint32_t depth = d->depth; depth-- > 1;) {
        d->inner.first = d->level[depth];
        d->inner.end = d->level[depth + 1];
        const size_t threads = (d->inner.end - d->inner.first) * 8;
        if (threads)
            LAUNCH(inner_kernel, (threads + 127) / 128, 128, 0, d->inner);
    }
    return fine(cudaGetLastError(), "a round", why, size);
}

static bool step_roots(void *context, const device_round *r, double *w, char *why, size_t size)
{
    device *d = (device *)context;
    (void)r; /* the clocks are those of its round */
    if (d->columns) {
        LAUNCH(root_messages_kernel, blocks_for(d->children * (d->inner.M + 1), 256), 256, 0, d->inner, d->columns, d->children);
        LAUNCH(root_columns_kernel, d->inner.M + 1, COLUMN_THREADS, 0, d->columns, d->children, d->sums);
        LAUNCH(root_end_kernel, 1, 256, 0, d->inner, d->sums);
    } else {
        LAUNCH(root_kernel, d->n_roots, ROOT_THREADS, 0, d->inner);
    }
    return fine(cudaGetLastError(), "a round", why, size) &&
           fine(cudaMemcpy(w, d->inner.w, d->n_roots * d->inner.M * sizeof *w, cudaMemcpyDeviceToHost), "a round", why,
                size);
}

static bool fetch_inner(const device *d, const device_problem *p, char *why, size_t size)
{
    const size_t inner = p->n_inner * p->M * sizeof(double);
    int failed = 0;
    if (!fine(cudaMemcpy(&failed, d->leaf.failed, sizeof failed, cudaMemcpyDeviceToHost), "a round", why, size))
        return false;
    if (failed) {
        snprintf(why, size, "CUDA: no memory for clients whose prox leaves the box; use the processor");
        return false;
    }
    return fine(cudaMemcpy(p->inner_w, d->inner.w, inner, cudaMemcpyDeviceToHost), "a copy", why, size) &&
                fine(cudaMemcpy(p->inner_z, d->inner.z, inner, cudaMemcpyDeviceToHost), "a copy", why, size) &&
                fine(cudaMemcpy(p->inner_q, d->inner.q, inner, cudaMemcpyDeviceToHost), "a copy", why, size) &&
                fine(cudaMemcpy(p->inner_dual, d->inner.dual, p->n_inner * sizeof(double), cudaMemcpyDeviceToHost),
                     "a copy", why, size);
}

static bool measure(void *context, const device_problem *p, const device_round *r, device_figures *figures, char *why,
                    size_t size)
{
    device *d = (device *)context;
    d->figures.clock = r->leaf;
    d->figures.has_dual = r->want_dual;
    if (d->rows.rows.first) {
        ROWS_CALL(rows_figures_kernel, per_thread(d->rows.M), d->rows.n_leaves, d->rows, d->figures);
        LAUNCH(rows_sums_kernel, d->n_runs, 32, 0, d->rows, d->figures);
    } else {
        LAUNCH(BY_PRECISION(d, figures_kernel), d->n_runs, NARROW_WARPS * 32, 0, d->leaf, d->figures, d->members);
    }
    return fine(cudaGetLastError(), "the figures", why, size) &&
           fine(cudaMemcpy(figures, d->figures.runs, d->n_runs * sizeof *figures, cudaMemcpyDeviceToHost), "the figures",
                why, size) &&
           fetch_inner(d, p, why, size);
}

static bool fetch(void *context, const device_problem *p, bool all, char *why, size_t size)
{
    device *d = (device *)context;
    const size_t leaves = p->leaf_doubles * sizeof(double);
    const bool done = fetch_inner(d, p, why, size);
    if (!done || !all)
        return done;
    const size_t counters = p->n_leaves * sizeof(uint32_t);
    if (p->members.n_classes &&
        !(fine(cudaMemcpy(p->members.k, d->members.m.k, counters, cudaMemcpyDeviceToHost), "a copy", why, size) &&
          (!p->members.last ||
           fine(cudaMemcpy(p->members.last, d->members.m.last, counters, cudaMemcpyDeviceToHost), "a copy", why, size))))
        return false;
    if (p->rows.first) {
        unsigned long long visits = 0;
        if (!fine(cudaMemcpy(p->rows.slope, d->rows.rows.slope, p->rows.n_rows * sizeof(double),
                             cudaMemcpyDeviceToHost),
                  "a copy", why, size) ||
            !fine(cudaMemcpy(&visits, d->rows.visits, sizeof visits, cudaMemcpyDeviceToHost), "a copy", why, size) ||
            !fine(cudaMemset(d->rows.visits, 0, sizeof visits), "memory", why, size))
            return false;
        if (p->rows.visits)
            *p->rows.visits += visits;
    }
    const bool links =
        d->part ? fetch_parts(d, p, why, size)
                : fine(cudaMemcpy(p->z, d->leaf.z, leaves, cudaMemcpyDeviceToHost), "a copy", why, size) &&
                      fine(cudaMemcpy(p->q, d->leaf.q, leaves, cudaMemcpyDeviceToHost), "a copy", why, size);
    return links &&
           (!p->w || fine(cudaMemcpy(p->w, d->leaf.w, leaves, cudaMemcpyDeviceToHost), "a copy", why, size)) &&
           fine(cudaMemcpy(p->dual, d->leaf.dual, p->n_leaves * sizeof(double), cudaMemcpyDeviceToHost), "a copy", why,
                size);
}

static bool heard(void *context, uint64_t *count, char *why, size_t size)
{
    const device *d = (const device *)context;
    return fine(cudaMemcpy(count, d->members.heard, sizeof *count, cudaMemcpyDeviceToHost), "a round", why, size);
}

/* For benchmarks: bytes that a copy on the device reads and writes in a second. */
static double copy_rate(void)
{
    const size_t bytes = (size_t)4 << 30;
    void *from = NULL, *to = NULL;
    cudaEvent_t start, stop;
    float best = INFINITY;
    if (cudaMalloc(&from, bytes) != cudaSuccess || cudaMalloc(&to, bytes) != cudaSuccess)
        return 0;
    cudaMemset(from, 1, bytes);
    cudaEventCreate(&start);
    cudaEventCreate(&stop);
    for (int i = 0; i < 12; i++) {
        float ms;
        cudaEventRecord(start);
        cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice);
        cudaEventRecord(stop);
        cudaEventSynchronize(stop);
        cudaEventElapsedTime(&ms, start, stop);
        best = ms < best ? ms : best;
    }
    cudaFree(from);
    cudaFree(to);
    return 2.0 * (double)bytes / (best * 1e-3);
}
