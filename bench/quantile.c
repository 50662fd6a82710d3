/*
 * Training beside what one would pick on one machine: sparse quantile regression
 *
 *     minimise   sum over all rows rho_tau(y - <x, w>)  +  lambda |w|_1
 *
 * split over 5 x 50 clients, until the cloud's model is within given relative distances of the optimum.
 *
 *     quantile --rows N --features M --tau T --write FOLDER     the problem for the programs of others
 *     quantile --rows N --features M --tau T [--repeat R] [--seconds S] [FILE.solution …]
 *
 * N: rows of each client. A solution is a file of the seconds that somebody took, then the coefficients, one number per
 * line; its objective is computed here. Prints one `name value unit` per line. The seconds are those of set-up after the
 * data is there and of the iterations; measuring is not counted.
 */
#define _GNU_SOURCE
#include "base/alloc.h"
#include "model/rows.h"
#include "sim/generator_population.h"
#include "sim/sim.h"
#include "sim/state.h"

#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { EDGES = 5, CLIENTS = 50, LEVELS = 4 };

static const double levels[LEVELS] = {1e-2, 1e-3, 1e-4, 1e-5};
static const char *const level_names[LEVELS] = {"1e-2", "1e-3", "1e-4", "1e-5"};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void fail(const char *what, const char *about)
{
    fprintf(stderr, "quantile: %s%s\n", what, about);
    exit(1);
}

static void must(hfsad_status status, const hfsad_error *err)
{
    if (status)
        fail(err->message, "");
}

typedef struct {
    size_t rows, features; /* rows of a client */
    double tau, lambda;
    dataset *d;
    char label[64];
} problem;

static void say(const problem *p, const char *name, double value, const char *unit)
{
    char full[160];
    snprintf(full, sizeof full, "%s_%s", name, p->label);
    printf("%-60s %12.6g  %s\n", full, value, unit);
    fflush(stdout);
}

/* lambda: about the most that noise alone pulls any of the features. */
static void problem_make(problem *p)
{
    hfsad_error err;
    population *people;
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
                                .seed = 1};
    must(population_create(&people, &law, &err), &err);
    must(population_dataset(people, ROWS_TRAIN, p->rows, &p->d, &err), &err);
    population_free(people);
    malloc_trim(0);
    const double n = (double)p->d->n_rows;
    p->lambda = sqrt(p->tau * (1 - p->tau) * 2 * n * log(2 * (double)p->features));
    snprintf(p->label, sizeof p->label, "%zux%zu_tau%g", p->d->n_rows, p->features, p->tau);
}

static double problem_objective(const problem *p, const double *w)
{
    const hfsad_loss loss = {HFSAD_LOSS_QUANTILE, p->tau, 1, INFINITY};
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
        fail("cannot write ", path);
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
    const char *tolerance; /* NULL: the default */
    const char *clients;   /* output.clients */
} way;

static void set(hfsad_spec *spec, const char *key, const char *value)
{
    hfsad_error err;
    must(hfsad_spec_set(spec, key, value, &err), &err);
}

static void set_number(hfsad_spec *spec, const char *key, double value)
{
    char text[40];
    snprintf(text, sizeof text, "%.17g", value);
    set(spec, key, text);
}

/* What a user must say: the data, the loss, the prior. */
static hfsad_spec *spec_of(const problem *p, const way *how)
{
    hfsad_error err;
    hfsad_spec *spec;
    must(hfsad_spec_create(&spec, &err), &err);
    set(spec, "data", "memory");
    set(spec, "loss.kind", "quantile");
    set_number(spec, "loss.tau", p->tau);
    set(spec, "prior.cloud.penalty", "l1");
    set(spec, "prior.cloud.weight", "1");
    set_number(spec, "prior.cloud.lambda", p->lambda);
    set_number(spec, "run.edge_rounds", how->edge_rounds);
    set(spec, "output.clients", how->clients);
    if (how->tolerance)
        set(spec, "loss.tolerance", how->tolerance);
    must(hfsad_spec_check(spec, &err), &err);
    return spec;
}

static federation federation_open(const problem *p, const way *how)
{
    hfsad_error err;
    federation f;
    hfsad_spec *spec = spec_of(p, how);
    double *start = alloc_zero(p->features, sizeof *start);
    if (!start)
        fail("no memory", "");
    const double before = now();
    must(plan_create(&f.plan, spec, p->d, &err), &err);
    must(pool_create(&f.threads, how->threads, &err), &err);
    must(sim_create(&f.s, p->d, f.plan, start, NULL, f.threads, &err), &err);
    f.setup = now() - before;
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

/* The least objective known and, to see how far it can be off, the greatest lower bound. */
typedef struct {
    double value, bound;
} optimum;

/* A long run with small steps of everything: until the bounds meet, or the time is over. */
static optimum optimum_find(const problem *p, double seconds)
{
    enum { TOGETHER = 10 };
    optimum best = {INFINITY, -INFINITY};
    double *scratch = alloc_zero(p->features, sizeof *scratch);
    if (!scratch)
        fail("no memory", "");
    federation f = federation_open(p, &(way){0, 1, "1e-4", "false"});
    hfsad_figures figures;
    const double end = now() + seconds;
    do {
        for (int i = 0; i < TOGETHER; i++)
            sim_iterate(f.s);
        sim_measure(f.s, &figures);
        best.value = fmin(best.value, figures.consensus_objective);
        best.bound = fmax(best.bound, lower_bound(p, f.s, scratch));
    } while (best.value - best.bound > 1e-8 * best.value && now() < end);
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
        const double before = now();
        sim_iterate(f.s);
        spent += now() - before;
        sim_measure(f.s, &figures);
        for (; l < LEVELS && figures.consensus_objective <= best * (1 + levels[l]); l++)
            at[l] = (arrival){spent, (double)figures.iteration, passes(&f)};
    }
    federation_close(&f);
}

/* The best of several runs; they differ in their seconds only. Returns the seconds to 1e-3. */
static double bench_way(const problem *p, const way *how, double best, unsigned repeat, double most)
{
    arrival at[LEVELS], again[LEVELS];
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
        say(p, name, at[l].seconds, "s");
        if (how->threads != 1)
            continue;
        snprintf(name, sizeof name, "hfsad_iterations_%s_km%u", level_names[l], how->edge_rounds);
        say(p, name, at[l].iterations, "global iterations");
        snprintf(name, sizeof name, "hfsad_passes_%s_km%u", level_names[l], how->edge_rounds);
        say(p, name, at[l].passes, "rows read by the clients' steps over the rows there are");
    }
    return at[1].seconds;
}

int main(int argc, char **argv)
{
    problem p = {.rows = 50, .features = 100, .tau = 0.5};
    (void)argc;
    p.rows = (size_t)atol(argv[1]), p.features = (size_t)atol(argv[2]), p.tau = atof(argv[3]);
    problem_make(&p);
    if (argc > 4) problem_write(&p, argv[4]);
    double t=now();
    optimum o = optimum_find(&p, 30);
    printf("%.10g %.10g gap %g in %g s\n", o.value, o.bound, (o.value-o.bound)/o.value, now()-t);
    way w[] = {{1,1,NULL,"true"},{1,10,NULL,"true"},{2,1,NULL,"true"},{2,10,NULL,"true"}};
    for (int i = 0; i < 4; i++) bench_way(&p, &w[i], o.value, 3, 10);
}
