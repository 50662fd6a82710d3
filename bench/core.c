/*
 * Speed and memory of the core, compared with the limits of the machine, all measured in one run.
 *
 *     core [--quick] [--only cache|late|large|growth|gpu] [--clients N]     gpu: up to N clients (1e7), only if it is
 * named
 *
 * Prints one `name value unit` per line. Fractions are of the copy bandwidth: the bytes that must move in a round
 * (x, z, q read once, z and q written once; y, |x|^2 and the counter too) over the time of a round.
 */
#define _GNU_SOURCE
#include "base/alloc.h"
#include "base/module.h"
#include "base/rng.h"
#include "core/kernels.h"
#include "data/builder.h"
#include "run/device.h"
#include "run/sim.h"
#include "run/state.h"
#include "tools.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void say(const char *name, double value, const char *unit)
{
    printf("%-44s %12.5g  %s\n", name, value, unit);
    fflush(stdout);
}

enum { COPY_BYTES = 256 << 20 };

typedef struct {
    char *to, *from;
    size_t shares;
} copy_job;

static void copy_share(void *context, size_t item, unsigned thread)
{
    (void)thread;
    const copy_job *job = context;
    const size_t share = COPY_BYTES / job->shares;
    memcpy(job->to + item * share, job->from + item * share, share);
}

/* Bytes read and written per second by memcpy, the best of several. */
static double copy_bandwidth(unsigned threads)
{
    hfsad_error err;
    pool *p;
    must(pool_create(&p, threads, &err), &err);
    copy_job job = {alloc_raw(COPY_BYTES, 1), alloc_raw(COPY_BYTES, 1), 0};
    memset(job.to, 1, COPY_BYTES);
    memset(job.from, 2, COPY_BYTES);
    double best = INFINITY;
    for (int i = 0; i < 24; i++) { /* memcpy goes around the cache for large shares: the better of both */
        job.shares = i % 2 ? 64 : threads;
        const double start = now();
        pool_run(p, job.shares, copy_share, &job);
        best = fmin(best, now() - start);
    }
    free(job.to);
    free(job.from);
    pool_free(p);
    return 2.0 * COPY_BYTES / best;
}

#if defined(__x86_64__)
#define FMA_TARGET __attribute__((target("avx2,fma")))
#else
#define FMA_TARGET
#endif

typedef double four __attribute__((vector_size(32)));

/* Multiply-adds per second on one core: twelve independent chains of four doubles. */
FMA_TARGET static double fma_rate(void)
{
    enum { CHAINS = 12, STEPS = 20000000 };
    four a[CHAINS];
    for (int i = 0; i < CHAINS; i++)
        a[i] = (four){1, 2, 3, 4};
    const four x = {0.999999, 0.999998, 0.999997, 0.999996}, y = {1e-9, 1e-9, 1e-9, 1e-9};
    const double start = now();
    for (int s = 0; s < STEPS; s++)
        for (int i = 0; i < CHAINS; i++) {
#if defined(__x86_64__)
            a[i] = __builtin_ia32_vfmaddpd256(a[i], x, y);
#else
            a[i] = a[i] * x + y;
#endif
        }
    const double seconds = now() - start;
    volatile double keep = 0;
    for (int i = 0; i < CHAINS; i++)
        keep = keep + a[i][0];
    return (double)STEPS * CHAINS * 4 / seconds;
}

static hfsad_loss_kind loss_kind_in_use = HFSAD_LOSS_PHASE_RETRIEVAL;
static size_t rows_in_use = 1; /* of each client */

typedef struct {
    dataset *d;
    plan p;
    leaf_class class;
    pool *threads;
    sim *s;
    double resident; /* bytes that set-up added to the process */
} federation;

static double resident_bytes(void)
{
    long pages = 0, skip;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f || fscanf(f, "%ld %ld", &skip, &pages) != 2)
        pages = 0;
    if (f)
        fclose(f);
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

/* hides: an edge does not see every fifth feature, as in the paper's experiment. */
static void make_data(federation *f, size_t edges, size_t clients, size_t M, bool hides)
{
    hfsad_error err;
    dataset_builder *b;
    double *x = alloc_zero(M, sizeof *x);
    rng r = {rng_key(1, rng_stream("bench")), 0};
    must(dataset_builder_create(&b, M, &err), &err);
    must(dataset_builder_reserve(b, edges * clients * rows_in_use, &err), &err); /* as the CSV reader does */
    for (size_t e = 0, number = 0; e < edges; e++)
        for (size_t c = 0; c < clients; c++) {
            char edge[32], client[32];
            snprintf(edge, sizeof edge, "edge%zu", e + 1);
            snprintf(client, sizeof client, "client%zu", ++number);
            for (size_t row = 0; row < rows_in_use; row++) {
                double s = 0;
                for (size_t m = 0; m < M; m++) {
                    x[m] = hides && m % 5 == e % 5 ? 0 : rng_next_uniform(&r) * 2 - 1;
                    s += m % 3 ? 0 : x[m];
                }
                const double y = rows_in_use > 1 ? s + rng_next_uniform(&r) : s * s;
                must(dataset_builder_add(b, edge, client, y, x, NULL, 0, &err), &err);
            }
        }
    must(dataset_builder_finish(b, &f->d, &err), &err);
    free(x);
}

static void federation_open(federation *f, size_t edges, size_t clients, size_t M, unsigned threads, bool hides)
{
    hfsad_error err;
    *f = (federation){0};
    must(pool_create(&f->threads, threads, &err), &err);
    const double before = resident_bytes();
    make_data(f, edges, clients, M, hides);
    f->class = (leaf_class){
        .loss = {loss_kind_in_use, 0.5, 1, loss_kind_in_use == HFSAD_LOSS_PHASE_RETRIEVAL ? 5 : INFINITY, 0.3},
        .rule = {{HFSAD_PENALTY_L1, 5 * sqrt((double)M), 1, 0, 0, 0}, {.c = 5 * sqrt((double)M), .alpha = sqrt(20)}},
        .solver = {ROWS_EXACT, 0.1, 200},
        .participation = 1,
        .local_steps = 1,
    };
    f->p = (plan){.n_leaf_classes = 1, .leaf_classes = &f->class, .seed = 1, .edge_rounds = 1, .at_least_every = 20};
    f->p.inner = alloc_zero(f->d->n_inner, sizeof *f->p.inner);
    const double weight = (double)clients * 5 * sqrt((double)M);
    for (size_t i = 0; i < f->d->n_inner; i++)
        f->p.inner[i] =
            (inner_class){{HFSAD_PENALTY_SCAD, (double)clients, 0.1, 2.4, 0, 0},
                          {{HFSAD_PENALTY_L1, weight, 1, 0, 0, 0}, {.c = weight / 25, .alpha = 25 * sqrt(20)}},
                          1,
                          false};
    double *start = alloc_zero(M, sizeof *start);
    for (size_t m = 0; m < M; m++)
        start[m] = 0.1;
    must(sim_create(&f->s, f->d, &f->p, start, NULL, f->threads, &err), &err);
    free(start);
    f->resident = resident_bytes() - before;
}

static void federation_close(federation *f)
{
    sim_free(f->s);
    free(f->p.inner);
    dataset_free(f->d);
    pool_free(f->threads);
}

/* Seconds per round: the best of many short stretches, because these machines are shared. A stretch has at least as
 * many rounds as lie between two sweeps of small numbers. */
static double round_seconds(federation *f, double least)
{
    enum { FEWEST = 40, STRETCHES = 400, ROUNDS = 16 };
    double best = INFINITY;
    const double begun = now();
    sim_iterate(f->s);
    for (int i = 0; i < FEWEST || (i < STRETCHES && now() - begun < least); i++) {
        size_t rounds = 0;
        const double start = now();
        do {
            sim_iterate(f->s);
            rounds++;
        } while (now() - start < least / STRETCHES || (rounds < ROUNDS && now() - start < least / FEWEST));
        best = fmin(best, (now() - start) / (double)rounds);
    }
    return best;
}

/* x, z, q in; z, q out; y, |x|^2 in; k in and out. */
static double must_move(const federation *f)
{
    return (double)f->d->n_leaves * (8.0 * (5 * (double)f->d->M + 2) + 8);
}

static void bench_cache(double least)
{
    static const char *const names[] = {"plain", "avx2", "avx512"};
    federation f;
    federation_open(&f, 5, 50, 25, 1, false);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!kernels_choose(names[i]))
            continue;
        char name[64];
        snprintf(name, sizeof name, "update_ns_5_50_25_%s", names[i]);
        say(name, round_seconds(&f, least) / (double)f.d->n_leaves * 1e9, "ns per client update");
    }
    kernels_choose(NULL);
    const double best = round_seconds(&f, least) / (double)f.d->n_leaves * 1e9;
    say("update_ns_5_50_25", best, "ns per client update, edges and cloud included");
    federation_close(&f);
    federation_open(&f, 5, 48, 25, 1, false); /* 50 is six blocks of eight and a rest of two */
    say("update_ns_5_48_25", round_seconds(&f, least) / (double)f.d->n_leaves * 1e9, "the same without a rest");
    federation_close(&f);
}

static double stretch_seconds(federation *f, size_t rounds)
{
    const double start = now();
    for (size_t i = 0; i < rounds; i++)
        sim_iterate(f->s);
    return (now() - start) / (double)rounds;
}

/* Rounds must not become slower as coordinates approach 0: subnormal numbers cost some processors a hundred cycles.
 * Early and late stretches alternate, because these machines are shared. */
static void bench_late(void)
{
    enum { ROUNDS = 1000, LATE = 200000, STRETCHES = 20 };
    federation early, late;
    double first = INFINITY, last = INFINITY;
    federation_open(&late, 5, 50, 25, 1, true);
    (void)stretch_seconds(&late, LATE);
    for (int i = 0; i < STRETCHES; i++) {
        federation_open(&early, 5, 50, 25, 1, true);
        first = fmin(first, stretch_seconds(&early, ROUNDS));
        last = fmin(last, stretch_seconds(&late, ROUNDS));
        federation_close(&early);
    }
    federation_close(&late);
    say("update_ns_first_rounds", first / 250 * 1e9, "ns per client update, rounds 1 to 1,000");
    say("update_ns_late_rounds", last / 250 * 1e9, "the same after 200,000 rounds");
    say("late_over_early", last / first, "ratio; more than 1.1: the run slows down");
}

static void bench_large(const char *label, size_t edges, size_t clients, size_t M, unsigned threads, double bandwidth,
                        double least)
{
    federation f;
    char name[96];
    federation_open(&f, edges, clients, M, threads, false);
    const double seconds = round_seconds(&f, least);
    snprintf(name, sizeof name, "round_ms_%s_threads%u", label, threads);
    say(name, seconds * 1e3, "ms per round");
    snprintf(name, sizeof name, "fraction_of_copy_%s_threads%u", label, threads);
    say(name, must_move(&f) / seconds / bandwidth, "of the copy bandwidth of as many threads");
    if (threads == 1) {
        const double vectors = 3 * 8.0 * (double)M + 8, each = f.resident / (double)f.d->n_leaves;
        snprintf(name, sizeof name, "overhead_bytes_%s", label);
        say(name, each - vectors, "bytes per client beyond data and two vectors, edges and threads included");
        snprintf(name, sizeof name, "memory_ratio_%s", label);
        say(name, each / vectors, "resident bytes over data and two vectors");
    }
    federation_close(&f);
}

/* Slope of log time against log size. */
static double exponent(const double *size, const double *seconds, size_t n)
{
    double mx = 0, my = 0, xy = 0, xx = 0;
    for (size_t i = 0; i < n; i++) {
        mx += log(size[i]) / (double)n;
        my += log(seconds[i]) / (double)n;
    }
    for (size_t i = 0; i < n; i++) {
        xy += (log(size[i]) - mx) * (log(seconds[i]) - my);
        xx += (log(size[i]) - mx) * (log(size[i]) - mx);
    }
    return xy / xx;
}

static void bench_growth(double least)
{
    static const size_t clients[] = {1000, 10000, 100000, 1000000}, features[] = {10, 100, 1000, 10000};
    double size[4], seconds[4];
    federation f;
    char name[64];
    for (size_t i = 0; i < 4; i++) {
        federation_open(&f, clients[i] / 50, 50, 25, 1, false);
        size[i] = (double)clients[i];
        seconds[i] = round_seconds(&f, least);
        snprintf(name, sizeof name, "update_ns_clients_%zu", clients[i]);
        say(name, seconds[i] / size[i] * 1e9, "ns per client update, M = 25, one thread");
        federation_close(&f);
    }
    say("growth_exponent_clients", exponent(size, seconds, 4), "time per round against clients, 1e3 to 1e6");
    for (size_t i = 0; i < 4; i++) {
        federation_open(&f, 20, 50, features[i], 1, false);
        size[i] = (double)features[i];
        seconds[i] = round_seconds(&f, least);
        snprintf(name, sizeof name, "element_ns_features_%zu", features[i]);
        say(name, seconds[i] / size[i] / 1000 * 1e9, "ns per client and feature, 1000 clients, one thread");
        federation_close(&f);
    }
    say("growth_exponent_features", exponent(size, seconds, 4), "time per round against M, 10 to 1e4");
}

/* ---- a device ---- */

/* Every number of the state, summed as words: whether the device has the processor's bits. */
static uint64_t state_print(federation *f)
{
    const size_t M = f->d->M;
    double *rows = alloc_zero(3 * M, sizeof *rows);
    uint64_t print = 1;
    sim_collect(f->s);
    for (size_t leaf = 0; leaf < f->d->n_leaves; leaf++) {
        const link_counters k = sim_leaf_link(f->s, leaf, rows, rows + M);
        sim_leaf_model(f->s, leaf, rows + 2 * M);
        for (size_t m = 0; m < 3 * M; m++) {
            uint64_t word;
            memcpy(&word, &rows[m], sizeof word);
            print = (print ^ word) * 0x9e3779b97f4a7c15u;
        }
        print += k.k;
    }
    free(rows);
    return print;
}

static bool same_bits(size_t edges, size_t clients, size_t M, bool hides)
{
    federation a, b;
    hfsad_error err;
    hfsad_figures fa, fb;
    federation_open(&a, edges, clients, M, 1, hides);
    federation_open(&b, edges, clients, M, 1, hides);
    a.p.edge_rounds = b.p.edge_rounds = 3;
    a.p.trace_every = b.p.trace_every = 2;
    must(sim_use_device(b.s, "cuda", &err), &err);
    for (int i = 0; i < 40; i++) {
        sim_iterate(a.s);
        sim_iterate(b.s);
    }
    sim_measure(a.s, &fa);
    sim_measure(b.s, &fb);
    const bool same = state_print(&a) == state_print(&b) && fa.objective == fb.objective &&
                      fa.dual_residual == fb.dual_residual && fa.primal_residual == fb.primal_residual &&
                      !memcmp(sim_cloud(a.s), sim_cloud(b.s), M * sizeof(double));
    federation_close(&a);
    federation_close(&b);
    return same;
}

static void bench_bits(void)
{
    static const hfsad_loss_kind kinds[] = {HFSAD_LOSS_PHASE_RETRIEVAL, HFSAD_LOSS_ABSOLUTE, HFSAD_LOSS_QUANTILE,
                                            HFSAD_LOSS_SQUARED, HFSAD_LOSS_HUBER};
    double same = 0, all = 0;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        loss_kind_in_use = kinds[i];
        same += same_bits(5, 50, 25, true) + same_bits(3, 1, 7, false) + same_bits(4, 2500, 25, false) +
                same_bits(7, 67, 40, false);
        all += 4;
    }
    say("gpu_same_bits", same / all, "of the problems: same state and figures as the processor");
}

static void bench_device(const char *label, size_t edges, size_t clients, double bandwidth)
{
    enum { ITERATIONS = 5, ROUNDS = 10 };
    federation f;
    hfsad_error err;
    char name[96];
    federation_open(&f, edges, clients, 25, 16, false);
    f.p.edge_rounds = ROUNDS;
    must(sim_use_device(f.s, "cuda", &err), &err);
    sim_iterate(f.s);
    double best = INFINITY;
    for (int i = 0; i < ITERATIONS; i++)
        best = fmin(best, stretch_seconds(&f, 1) / ROUNDS);
    snprintf(name, sizeof name, "gpu_round_ms_%s", label);
    say(name, best * 1e3, "ms per round, edges, cloud and exchange with the host included");
    snprintf(name, sizeof name, "gpu_update_ns_%s", label);
    say(name, best / (double)f.d->n_leaves * 1e9, "ns per client update");
    snprintf(name, sizeof name, "gpu_fraction_of_copy_%s", label);
    say(name, must_move(&f) / best / bandwidth, "of the device's copy bandwidth (aim: 0.7)");
    hfsad_figures figures;
    const double start = now();
    sim_measure(f.s, &figures);
    snprintf(name, sizeof name, "gpu_row_ms_%s", label);
    say(name, (now() - start) * 1e3, "ms for the figures of a row of the trace");
    federation_close(&f);
}

/* Many rows per client: the same rounds from the start on the device and on all cores. */
static void bench_device_rows(size_t edges, size_t clients, size_t rows, size_t M, unsigned threads, double bandwidth)
{
    enum { ITERATIONS = 3, ROUNDS = 4 };
    double seconds[2] = {0}, visits[2] = {0};
    uint64_t print[2];
    loss_kind_in_use = HFSAD_LOSS_QUANTILE;
    rows_in_use = rows;
    for (int device = 0; device < 2; device++) {
        federation f;
        hfsad_error err;
        federation_open(&f, edges, clients, M, threads, false);
        f.p.edge_rounds = ROUNDS;
        if (device)
            must(sim_use_device(f.s, "cuda", &err), &err);
        for (int i = 0; i < ITERATIONS; i++)
            seconds[device] += stretch_seconds(&f, 1);
        device_collect(f.s);
        for (unsigned t = 0; t < threads; t++)
            visits[device] += (double)f.s->spaces[t].visits;
        print[device] = state_print(&f);
        federation_close(&f);
    }
    rows_in_use = 1;
    say("gpu_rows_same_bits", print[0] == print[1] && visits[0] == visits[1], "1: same state, same rows read");
    say("gpu_rows_per_s", visits[1] / seconds[1] / 1e9, "1e9 rows of many per client read a second");
    say("gpu_rows_fraction_of_copy", visits[1] * (double)M * 8 / seconds[1] / bandwidth, "of the copy bandwidth");
    say("gpu_rows_ms_per_round", seconds[1] * 1e3 / (ITERATIONS * ROUNDS), "ms, the first 12 rounds");
    say("gpu_rows_times_cpu", seconds[0] / seconds[1], "as fast as all cores of this machine");
}

/* brief: no other comparisons than those of rounds */
static void bench_gpu(size_t most, bool brief)
{
    char why[300] = "hfsad-cuda.so is missing";
    void *module = module_open("hfsad-cuda.so", why, sizeof why);
    if (!module)
        module = module_open("../hfsad-cuda.so", why, sizeof why);
    const device_table *table = module ? dlsym(module, DEVICE_TABLE) : NULL;
    const double bandwidth = table ? table->copy_rate() : 0;
    if (!(bandwidth > 0)) {
        printf("gpu: left out: %s\n", table ? "no device" : why);
        return;
    }
    say("gpu_copy_gb_per_s", bandwidth / 1e9, "GB/s read and written");
    const unsigned cores = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
    if (!brief) {
        bench_bits();
        bench_device_rows(10, most < 10000000 ? 100 : 10000, 100, 100, cores, bandwidth);
    }
    static const struct {
        const char *label;
        size_t edges, clients;
    } sizes[] = {{"1e6", 1000, 1000},  {"2e6", 2000, 1000},       {"2e6_of_50", 40000, 50},
                 {"1e7", 10000, 1000}, {"1e7_of_50", 200000, 50}, {"1e8", 100000, 1000}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int phase = 1; phase >= 0; phase--) {
            char label[64];
            if (sizes[i].edges * sizes[i].clients > most)
                continue;
            loss_kind_in_use = phase ? HFSAD_LOSS_PHASE_RETRIEVAL : HFSAD_LOSS_ABSOLUTE;
            snprintf(label, sizeof label, "%s_%s", sizes[i].label, phase ? "phase" : "absolute");
            bench_device(label, sizes[i].edges, sizes[i].clients, bandwidth);
        }
}

int main(int argc, char **argv)
{
    const char *only = NULL;
    double least = 1;
    size_t most = 10000000; /* clients on a device */
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "--quick"))
            least = 0.2;
        else if (!strcmp(argv[i], "--only") && i + 1 < argc)
            only = argv[++i];
        else if (!strcmp(argv[i], "--clients") && i + 1 < argc)
            most = (size_t)strtoull(argv[++i], NULL, 10);
    if (only && !strncmp(only, "gpu", 3)) {
        bench_gpu(most, !strcmp(only, "gpu-rounds"));
        return 0;
    }
    const double one = copy_bandwidth(1), two = copy_bandwidth(2);
    say("kernels_are_avx512", !strcmp(kernels()->name, "avx512"), kernels()->name);
    say("copy_gb_per_s_threads1", one / 1e9, "GB/s read and written");
    say("copy_gb_per_s_threads2", two / 1e9, "GB/s read and written");
    say("fma_per_ns", fma_rate() / 1e9, "multiply-adds of doubles per ns, one core, AVX2");
    if (!only || !strcmp(only, "cache"))
        bench_cache(least);
    if (!only || !strcmp(only, "late"))
        bench_late();
    if (!only || !strcmp(only, "large")) {
        bench_large("1000000x25", 20000, 50, 25, 1, one, least);
        bench_large("1000000x25", 20000, 50, 25, 2, two, least);
        bench_large("250x10000", 5, 50, 10000, 1, one, least);
        bench_large("250x10000", 5, 50, 10000, 2, two, least);
    }
    if (!only || !strcmp(only, "growth"))
        bench_growth(least);
    return 0;
}
