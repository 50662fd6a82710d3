/*
 * The step of a client whose dense rows are on a disk (hfsad client --rows disk) beside the same step with the rows in
 * memory: `rows_on_disk FOLDER [ROWS FEATURES]`, the scratch file being made in that folder. Quantile loss, the exact
 * method as the program runs it by default. The steps of the three take turns; each line is the median.
 *
 * warm: the kernel still has the whole file; cold: it has forgotten the file before every step (needs root).
 */
#define _GNU_SOURCE
#include "base/alloc.h"
#include "base/clock.h"
#include "base/rng.h"
#include "core/kernels.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STEPS = 15, MEMORY = 0, WARM, COLD, KINDS };

typedef struct {
    client_rows rows;
    double *w, *z, *q, *slope, eta;
    uint32_t k;
    uint64_t visits;
    double seconds[STEPS];
    bool measured;
} client;

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void must(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "rows_on_disk: %s\n", what);
    exit(1);
}

/* The file that is mapped at x, out of the kernel's cache. */
static bool forget(const row_pages *p, const double *x, size_t bytes)
{
    char name[100];
    const uintptr_t at = (uintptr_t)x, page = (uintptr_t)sysconf(_SC_PAGESIZE);
    pages_leave((row_pages *)p);
    snprintf(name, sizeof name, "/proc/self/map_files/%jx-%jx", (uintmax_t)at,
             (uintmax_t)((at + bytes + page - 1) / page * page));
    const int file = open(name, O_RDONLY | O_CLOEXEC);
    const bool done = file >= 0 && fdatasync(file) == 0 && posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED) == 0;
    if (file >= 0)
        close(file);
    return done;
}

static client client_of(const client_rows *rows)
{
    client c = {.rows = *rows};
    must((c.w = alloc_zero(rows->F, sizeof *c.w)) && (c.z = alloc_zero(rows->F, sizeof *c.z)) &&
             (c.q = alloc_zero(rows->F, sizeof *c.q)) && (c.slope = alloc_zero(rows->count, sizeof *c.slope)),
         "not enough memory");
    return c;
}

static void take_step(client *c, const double *parent, double *room)
{
    const size_t M = c->rows.F;
    const hfsad_loss loss = {.kind = HFSAD_LOSS_QUANTILE, .tau = 0.5, .box = INFINITY};
    const rows_solver solver = {ROWS_EXACT, 0.1, 100};
    const hfsad_link_rule rule = {{.kind = HFSAD_PENALTY_L1, .lambda = 1}, {.c = 100, .alpha = 1}};
    const rows_leaf leaf = {
        .problem = {.loss = &loss,
                    .solver = &solver,
                    .rows = c->rows,
                    .M = M,
                    .factor = 1,
                    .slope = c->slope,
                    .eta = &c->eta,
                    .scratch = room + M,
                    .visits = &c->visits},
        .rule = &rule,
        .z = c->z,
        .q = c->q,
        .w = c->w,
        .k = &c->k,
        .w_parent = parent,
        .centre = room,
    };
    kernels()->rows_step(&leaf);
}

int main(int argc, char **argv)
{
    static const char *const names[KINDS] = {"memory", "disk_warm", "disk_cold"};
    must(argc == 2 || argc == 4, "usage: rows_on_disk FOLDER [ROWS FEATURES]");
    const size_t count = argc == 4 ? strtoul(argv[2], NULL, 10) : 1000,
                 F = argc == 4 ? strtoul(argv[3], NULL, 10) : 10000;
    hfsad_error err;
    row_pages *pages;
    rng r = {rng_key(1, rng_stream("rows on disk")), 0};
    double *x = alloc_raw(count * F, sizeof *x), *y = alloc_zero(count, sizeof *y), *mapped;
    double *parent = alloc_zero(F, sizeof *parent), *room = alloc_zero(F + rows_scratch(F, count), sizeof *room);
    must(count > 1 && F > 0 && x && y && parent && room, "not enough memory");
    must(!pages_create(&pages, argv[1], F, &err), err.message);
    for (size_t i = 0; i < count; i++) {
        for (size_t m = 0; m < F; m++)
            x[i * F + m] = rng_next_normal(&r);
        y[i] = x[i * F] + rng_next_normal(&r);
        memcpy(pages_next(pages), x + i * F, F * sizeof *x);
        must(!pages_commit(pages, &err), err.message);
    }
    must(!pages_map(pages, &mapped, &err), err.message);
    pages_seal(pages);
    const client_rows rows = {.count = count, .F = F, .x = x, .y = y};
    client clients[KINDS] = {client_of(&rows), client_of(&rows), client_of(&rows)};
    for (int kind = WARM; kind < KINDS; kind++) {
        clients[kind].rows.x = mapped;
        clients[kind].rows.pages = pages;
    }
    for (int step = 0; step < STEPS; step++)
        for (int kind = 0; kind < KINDS; kind++) {
            client *c = &clients[kind];
            if (kind == COLD && !forget(pages, mapped, count * F * sizeof *x))
                continue;
            const double from = clock_seconds();
            take_step(c, parent, room);
            c->seconds[step] = clock_seconds() - from;
            c->measured = true;
        }
    for (int kind = 0; kind < KINDS && clients[kind].measured; kind++) {
        client *c = &clients[kind];
        must(memcmp(c->w, clients[MEMORY].w, F * sizeof *c->w) == 0, "the bits differ");
        qsort(c->seconds, STEPS, sizeof *c->seconds, compare);
        printf("%s_ms %.1f ms a step, %.1f passes over the rows\n", names[kind], 1e3 * c->seconds[STEPS / 2],
               (double)c->visits / (double)count / STEPS);
    }
    for (int kind = 0; kind < KINDS; kind++) {
        free(clients[kind].w);
        free(clients[kind].z);
        free(clients[kind].q);
        free(clients[kind].slope);
    }
    pages_free(pages);
    free(x);
    free(y);
    free(parent);
    free(room);
    return 0;
}
