/*
 * Training compared with solvers for one machine: sparse quantile regression
 *
 *     minimise   sum over all rows rho_tau(y - <x, w>)  +  lambda |w|_1
 *
 * split over 5 x 50 clients, until the cloud's model is within given relative distances of the optimum.
 *
 *     quantile --rows N --features M --tau T [--seed Z] --write FOLDER     the problem for the programs of others
 *     quantile --rows N --features M --tau T [--seed Z] [--repeat R] [--seconds S] [FILE.solution …]
 *
 * N: rows of each client. Z, 1 unless said: of the data; some defaults were chosen after seeing that one. A solution is
 * a file of the seconds that somebody took, then the coefficients, one number per line; its objective is computed here.
 * Prints one `name value unit` per line. The seconds are those of set-up after the data is there and of the iterations;
 * measuring is not counted.
 */
#define _GNU_SOURCE
#include "base/alloc.h"
#include "data/generated.h"
#include "data/rows.h"
#include "run/handle.h"
#include "run/sim.h"
#include "run/state.h"
#include "tools.h"

#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EDGES = 5, CLIENTS = 50, LEVELS = 4 };

static const double levels[LEVELS] = {1e-2, 1e-3, 1e-4, 1e-5};
static const char *const level_names[LEVELS] = {"1e-2", "1e-3", "1e-4", "1e-5"};

typedef struct {
    size_t rows, features; /* rows of a client */
    double tau, lambda;
    uint64_t seed;
    dataset *d;
    char label[64];
} problem;

static void say(const problem *p, const char *name, double value, const char *unit)
{
    char full[160];
    snprintf(full, sizeof full, "%.90s_%s", name, p->label);
    printf("%-60s %12.6g  %s\n", full, value, unit);
    fflush(stdout);
}

static dataset *draw_data(const problem *p)
{
    hfsad_error err;
    population *people;
    dataset *d;
    const population_law law = {.edges = EDGES,
                                .clients = CLIENTS,
                                .features = p->features,
                                .nonzero = (p->features + 9) / 10,
                                .rho = 0.5,
                                .task = TASK_REGRESSION,
                                .noise = {.kind = NOISE_STUDENT, .scale = 1, .df = 2},
                                .tau = p->tau,
                                .groups = 1,
                                .distance = 1,
                                .seed = p->seed};
    must(population_create(&people, &law, &err), &err);
    must(population_dataset(people, ROWS_TRAIN, p->rows, &d, &err), &err);
    population_free(people);
    malloc_trim(0);
    return d;
}

/* lambda: about the most that noise alone pulls any of the features. */
static void problem_make(problem *p)
{
    p->d = draw_data(p);
    const double n = (double)p->d->n_rows;
    p->lambda = sqrt(p->tau * (1 - p->tau) * 2 * n * log(2 * (double)p->features));
    snprintf(p->label, sizeof p->label, "%zux%zu_tau%g", p->d->n_rows, p->features, p->tau);
}

static double problem_objective(const problem *p, const double *w)
{
    const hfsad_loss loss = {HFSAD_LOSS_QUANTILE, p->tau, 1, INFINITY, 0.3};
    double sum = 0;
    for (size_t leaf = 0; leaf < p->d->n_leaves; leaf++) {
        const client_rows rows = dataset_rows(p->d, leaf);
        for (size_t r = 0; r < rows.count; r++)
            sum += hfsad_loss_value(&loss, rows.y[r], row_dot(&rows, r, w));
    }
    for (size_t m = 0; m < p->features; m++)
        sum += p->lambda * fabs(w[m]);
    return sum;
}

static void write_numbers(const char *folder, const char *name, const double *values, size_t count)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(values, sizeof *values, count, f) != count || fclose(f))
        die("cannot write", path);
}

/* shape: rows, features, tau, lambda; x row by row; all as doubles. */
static void problem_write(const problem *p, const char *folder)
{
    const double shape[] = {(double)p->d->n_rows, (double)p->features, p->tau, p->lambda};
    write_numbers(folder, "shape", shape, 4);
    write_numbers(folder, "x", p->d->rows.x, p->d->n_rows * p->features);
    write_numbers(folder, "y", p->d->rows.y, p->d->n_rows);
}

/* A federation on the problem's data, as hfsad_run_create would make it, but for reading. */
typedef struct {
    plan *plan;
    pool *threads;
    sim *s;
    double setup; /* seconds */
} federation;

typedef struct {
    unsigned threads, edge_rounds;
    clockid_t clock;
    bool lean; /* output.clients: false */
} way;

/* What a user must say: the data, the loss, the prior. */
static hfsad_spec *spec_of(const problem *p)
{
    hfsad_error err;
    hfsad_spec *spec;
    must(hfsad_spec_create(&spec, &err), &err);
    spec_put(spec, "data", "memory");
    spec_put(spec, "loss.kind", "quantile");
    spec_put_number(spec, "loss.tau", p->tau);
    spec_put(spec, "prior.cloud.penalty", "l1");
    spec_put(spec, "prior.cloud.weight", "1");
    spec_put_number(spec, "prior.cloud.lambda", p->lambda);
    must(hfsad_spec_check(spec, &err), &err);
    return spec;
}

static federation federation_open(const problem *p, const way *how)
{
    hfsad_error err;
    federation f;
    hfsad_spec *spec = spec_of(p);
    spec_put(spec, "algorithm", "hfsad"); /* its iterations are timed one by one */
    spec_put_number(spec, "run.edge_rounds", how->edge_rounds);
    spec_put(spec, "output.clients", how->lean ? "false" : "true");
    double *start = alloc_zero(p->features, sizeof *start);
    if (!start)
        die("no memory", "");
    const double before = seconds_on(how->clock);
    must(plan_create(&f.plan, spec, p->d, &err), &err);
    must(pool_create(&f.threads, how->threads, &err), &err);
    must(sim_create(&f.s, p->d, f.plan, start, NULL, f.threads, &err), &err);
    f.setup = seconds_on(how->clock) - before;
    free(start);
    hfsad_spec_free(spec);
    return f;
}

static void federation_close(federation *f)
{
    sim_free(f->s);
    pool_free(f->threads);
    plan_free(f->plan);
}

static double passes(const federation *f)
{
    double sum = 0;
    for (unsigned t = 0; t < pool_threads(f->threads); t++)
        sum += (double)f->s->spaces[t].visits;
    return sum / (double)f->s->d->n_rows;
}

/* The rows' slopes, scaled until they are feasible for the dual, sum u y with u in [tau - 1, tau] and
 * |sum u x|_m <= lambda: nothing is below this. scratch: M numbers. */
static double lower_bound(const problem *p, const sim *s, double *scratch)
{
    double value = 0, most = 0;
    memset(scratch, 0, p->features * sizeof *scratch);
    for (size_t leaf = 0; leaf < p->d->n_leaves; leaf++) {
        const client_rows rows = dataset_rows(p->d, leaf);
        const double *slope = s->many.slope + p->d->rows.first[leaf];
        for (size_t r = 0; r < rows.count; r++) {
            row_add(&rows, r, -slope[r], scratch);
            value -= slope[r] * rows.y[r];
        }
    }
    for (size_t m = 0; m < p->features; m++)
        most = fmax(most, fabs(scratch[m]));
    return value * fmin(1, p->lambda / most);
}

/* The least objective found, and the greatest lower bound. */
typedef struct {
    double value, bound;
} optimum;

/* A long run of the default settings, one round per iteration. */
static optimum optimum_find(const problem *p, double seconds)
{
    enum { TOGETHER = 10, LEAST = 400 }; /* a busy machine must not make the optimum worse */
    optimum best = {INFINITY, -INFINITY};
    double *scratch = alloc_zero(p->features, sizeof *scratch);
    if (!scratch)
        die("no memory", "");
    federation f = federation_open(p, &(way){.edge_rounds = 1});
    hfsad_figures figures;
    const double end = seconds_on(CLOCK_MONOTONIC) + seconds;
    do {
        for (int i = 0; i < TOGETHER; i++)
            sim_iterate(f.s);
        sim_measure(f.s, &figures);
        best.value = fmin(best.value, figures.consensus_objective);
        best.bound = fmax(best.bound, lower_bound(p, f.s, scratch));
    } while (best.value - best.bound > 1e-7 * best.value &&
             (figures.iteration < LEAST || seconds_on(CLOCK_MONOTONIC) < end));
    federation_close(&f);
    free(scratch);
    return best;
}

/* When a run was first so close. */
typedef struct {
    double seconds, iterations, passes;
} arrival;

/* One run until the closest level, or until the time is over: what was not reached stays NAN. */
static void run_once(const problem *p, const way *how, double best, double most, arrival at[LEVELS])
{
    federation f = federation_open(p, how);
    hfsad_figures figures;
    double spent = f.setup;
    for (size_t l = 0; l < LEVELS; l++)
        at[l] = (arrival){NAN, NAN, NAN};
    for (size_t l = 0; l < LEVELS && spent < most;) {
        const double before = seconds_on(how->clock);
        sim_iterate(f.s);
        spent += seconds_on(how->clock) - before;
        sim_measure(f.s, &figures);
        for (; l < LEVELS && figures.consensus_objective <= best * (1 + levels[l]); l++)
            at[l] = (arrival){spent, (double)figures.iteration, passes(&f)};
    }
    federation_close(&f);
}

/* The best of several runs; they differ in their seconds only. */
static void bench_way(const problem *p, const way *how, double best, unsigned repeat, double most, arrival at[LEVELS])
{
    arrival again[LEVELS];
    char name[80];
    run_once(p, how, best, most, at);
    for (unsigned i = 1; i < repeat; i++) {
        run_once(p, how, best, most, again);
        for (size_t l = 0; l < LEVELS; l++)
            at[l] = again[l].seconds < at[l].seconds || isnan(at[l].seconds) ? again[l] : at[l];
    }
    for (size_t l = 0; l < LEVELS; l++) {
        if (isnan(at[l].seconds))
            continue;
        snprintf(name, sizeof name, "hfsad_seconds_%s_km%u_threads%u", level_names[l], how->edge_rounds, how->threads);
        say(p, name, at[l].seconds, how->threads == 1 ? "s of the processor" : "s");
        if (how->threads != 1)
            continue;
        snprintf(name, sizeof name, "hfsad_iterations_%s_km%u", level_names[l], how->edge_rounds);
        say(p, name, at[l].iterations, "global iterations");
        snprintf(name, sizeof name, "hfsad_passes_%s_km%u", level_names[l], how->edge_rounds);
        say(p, name, at[l].passes, "rows read by the clients' steps over the rows there are");
    }
}

/* The star as `hfsad run` takes it by default. The end is that of its proof, for which nobody knows the optimum. */
typedef struct {
    double best, begun;
    arrival at[LEVELS];
    double end, proven;
} star_race;

static void see_row(void *context, const hfsad_figures *row)
{
    star_race *r = context;
    const double spent = seconds_on(CLOCK_PROCESS_CPUTIME_ID) - r->begun;
    for (size_t l = 0; l < LEVELS; l++)
        if (isnan(r->at[l].seconds) && row->objective <= r->best * (1 + levels[l]))
            r->at[l] = (arrival){spent, (double)row->iteration, NAN};
}

/* gap: run.stop.gap. From the rows in memory: reading is not counted, the survey and the metric are. */
static star_race race_star(const problem *p, double gap, double best)
{
    hfsad_error err;
    hfsad_run *run;
    hfsad_polish polish;
    star_race r = {.best = best};
    hfsad_spec *spec = spec_of(p);
    spec_put_number(spec, "run.stop.gap", gap);
    dataset *d = draw_data(p);
    for (size_t l = 0; l < LEVELS; l++)
        r.at[l] = (arrival){NAN, NAN, NAN};
    r.begun = seconds_on(CLOCK_PROCESS_CPUTIME_ID);
    must(run_create_on(&run, spec, d, 1, &err), &err);
    run->star_row = see_row;
    run->star_context = &r;
    must(run_polish(run, NULL, NULL, &polish, &err), &err);
    r.end = seconds_on(CLOCK_PROCESS_CPUTIME_ID) - r.begun;
    r.proven = polish.gap / polish.objective_after;
    hfsad_run_free(run);
    hfsad_spec_free(spec);
    return r;
}

/* The best of several runs. */
static star_race bench_star(const problem *p, double best, unsigned repeat)
{
    char name[80];
    star_race r = race_star(p, 1e-5, best);
    for (unsigned i = 1; i < repeat; i++) {
        const star_race again = race_star(p, 1e-5, best);
        for (size_t l = 0; l < LEVELS; l++)
            r.at[l] = again.at[l].seconds < r.at[l].seconds ? again.at[l] : r.at[l];
        r.end = fmin(r.end, again.end);
    }
    for (size_t l = 0; l < LEVELS; l++) {
        snprintf(name, sizeof name, "star_seconds_%s", level_names[l]);
        say(p, name, r.at[l].seconds, "s of the processor until a row is that close");
        snprintf(name, sizeof name, "star_rows_%s", level_names[l]);
        say(p, name, r.at[l].iterations, "rows of the trace");
    }
    say(p, "star_seconds_end", r.end, "s of the processor until the proof of 1e-5");
    say(p, "star_proven", r.proven, "relative gap that is proven there");
    return r;
}

/* What somebody else found. */
typedef struct {
    char name[64];
    double seconds, objective;
} solution;

static solution solution_read(const problem *p, const char *path)
{
    solution s = {.seconds = NAN};
    double *w = alloc_zero(p->features, sizeof *w);
    FILE *f = fopen(path, "r");
    if (!w || !f || fscanf(f, "%lf", &s.seconds) != 1)
        die("cannot read", path);
    for (size_t m = 0; m < p->features; m++)
        if (fscanf(f, "%lf", &w[m]) != 1)
            die("too few coefficients in", path);
    fclose(f);
    const char *base = strrchr(path, '/');
    snprintf(s.name, sizeof s.name, "%.60s", base ? base + 1 : path);
    s.name[strcspn(s.name, ".")] = 0;
    s.objective = problem_objective(p, w);
    free(w);
    return s;
}

static void bench_solution(const problem *p, const solution *s, const optimum *best, const arrival ours[LEVELS],
                           const star_race *star)
{
    char name[128];
    snprintf(name, sizeof name, "%.40s_seconds", s->name);
    say(p, name, s->seconds, "s of the processor");
    snprintf(name, sizeof name, "%.40s_objective", s->name);
    say(p, name, s->objective, "as computed here");
    snprintf(name, sizeof name, "%.40s_excess", s->name);
    say(p, name, s->objective / best->value - 1, "relative, over the least objective of all");
    for (size_t l = 1; l < LEVELS; l += 2) {
        snprintf(name, sizeof name, "%.40s_over_hfsad_%s", s->name, level_names[l]);
        say(p, name, s->seconds / ours[l].seconds, "its seconds over hfsad's to that distance, K_m = 1, one thread");
    }
    snprintf(name, sizeof name, "%.40s_over_star_1e-5", s->name);
    say(p, name, s->seconds / star->at[LEVELS - 1].seconds, "its seconds over the star's to 1e-5, all defaults");
    snprintf(name, sizeof name, "%.40s_over_star_end", s->name);
    say(p, name, s->seconds / star->end, "its seconds over the star's to the proof");
}

/* A line of /proc/self/status, in bytes; NAN where there is none. */
static double status_bytes(const char *key)
{
    char line[256];
    double kilobytes = NAN;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, key, strlen(key)))
            kilobytes = strtod(line + strlen(key), NULL);
    if (f)
        fclose(f);
    return 1024 * kilobytes;
}

static void forget_peak(void)
{
    FILE *f = fopen("/proc/self/clear_refs", "w");
    if (!f || fputs("5", f) == EOF)
        fprintf(stderr, "quantile: the peak of the resident memory cannot be set back\n");
    if (f)
        fclose(f);
}

/* The most that set-up and some iterations held beyond the data. The aim is two vectors per link and a number per row;
 * clients with many rows keep a third vector, their own w, unless nobody wants to see it (lean). */
static void bench_memory(const problem *p, bool lean)
{
    const dataset *d = p->d;
    const double links = (double)(d->n_leaves + d->n_inner - 1), rows = (double)d->n_rows;
    const double vector = 8 * (double)d->M;
    malloc_trim(0);
    forget_peak();
    const double before = status_bytes("VmRSS:");
    federation f = federation_open(p, &(way){.threads = 1, .edge_rounds = 1, .lean = lean});
    hfsad_figures figures;
    for (int i = 0; i < 3; i++)
        sim_iterate(f.s);
    sim_measure(f.s, &figures);
    const double beyond = status_bytes("VmHWM:") - before;
    federation_close(&f);
    if (lean) {
        say(p, "memory_vectors_per_link_lean", (beyond - 8 * rows) / (vector * links),
            "the same with output.clients: false");
        return;
    }
    say(p, "memory_bytes_beyond_data", beyond, "peak");
    say(p, "memory_over_data", beyond / (8 * rows * (double)(d->M + 1)), "of the data's own bytes");
    say(p, "memory_bytes_per_row", (beyond - 2 * vector * links) / rows,
        "beyond data and two vectors per link (aim: 8)");
    say(p, "memory_vectors_per_link", (beyond - 8 * rows) / (vector * links),
        "beyond data and 8 bytes per row (aim: 2; a client's own w is a third)");
}

static void bench_problem(const problem *p, unsigned repeat, double most, size_t n, const solution *solutions)
{
    optimum best = optimum_find(p, most);
    say(p, "hfsad_objective", best.value, "after a long run");
    say(p, "hfsad_bound", best.bound, "lower bound of the optimum, by the rows' slopes");
    for (size_t i = 0; i < n; i++) {
        char name[128];
        snprintf(name, sizeof name, "hfsad_objective_against_%.40s", solutions[i].name);
        say(p, name, best.value / solutions[i].objective - 1, "relative difference");
    }
    for (size_t i = 0; i < n; i++)
        best.value = fmin(best.value, solutions[i].objective);
    say(p, "optimum", best.value, "the least objective of all: the distances below are from this");
    arrival ours[LEVELS], other[LEVELS];
    const star_race star = bench_star(p, best.value, repeat);
    for (unsigned threads = 1; threads <= 2; threads++)
        for (unsigned rounds = 1; rounds <= 10; rounds += 9) {
            const clockid_t clock = threads == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC;
            const bool first = threads == 1 && rounds == 1;
            bench_way(p, &(way){threads, rounds, clock, false}, best.value, repeat, most, first ? ours : other);
        }
    for (size_t i = 0; i < n; i++)
        bench_solution(p, &solutions[i], &best, ours, &star);
    bench_memory(p, false);
    bench_memory(p, true);
}

static const char *option(int argc, char **argv, int *i)
{
    if (*i + 1 >= argc)
        die("a value is missing after", argv[*i]);
    return argv[++*i];
}

int main(int argc, char **argv)
{
    enum { SOLUTIONS_MOST = 16 };
    problem p = {.rows = 50, .features = 100, .tau = 0.5, .seed = 1};
    unsigned repeat = 5;
    double seconds = 20;
    const char *folder = NULL, *paths[SOLUTIONS_MOST];
    solution solutions[SOLUTIONS_MOST];
    size_t n = 0;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--rows"))
            p.rows = strtoul(option(argc, argv, &i), NULL, 10);
        else if (!strcmp(argv[i], "--features"))
            p.features = strtoul(option(argc, argv, &i), NULL, 10);
        else if (!strcmp(argv[i], "--tau"))
            p.tau = strtod(option(argc, argv, &i), NULL);
        else if (!strcmp(argv[i], "--seed"))
            p.seed = strtoull(option(argc, argv, &i), NULL, 10);
        else if (!strcmp(argv[i], "--repeat"))
            repeat = (unsigned)strtoul(option(argc, argv, &i), NULL, 10);
        else if (!strcmp(argv[i], "--seconds"))
            seconds = strtod(option(argc, argv, &i), NULL);
        else if (!strcmp(argv[i], "--write"))
            folder = option(argc, argv, &i);
        else if (argv[i][0] == '-' || n == SOLUTIONS_MOST)
            die("not understood", argv[i]);
        else
            paths[n++] = argv[i];
    }
    if (p.rows < 2 || p.features < 1 || !(p.tau > 0 && p.tau < 1))
        die("needs --rows of 2 at least, --features of 1 at least and --tau in (0,1)", "");
    problem_make(&p);
    for (size_t i = 0; i < n; i++)
        solutions[i] = solution_read(&p, paths[i]);
    if (folder)
        problem_write(&p, folder);
    else
        bench_problem(&p, repeat, seconds, n, solutions);
    dataset_free(p.d);
    return 0;
}
