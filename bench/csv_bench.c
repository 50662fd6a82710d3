/*
 * How fast a CSV file of 17-digit numbers becomes a data set, beside the plain read() of the same file from the page
 * cache: csv_bench [megabytes] [features]. The file is made in TMPDIR and removed.
 */
#include "base/error.h"
#include "base/rng.h"
#include "model/dataset.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { RUNS = 5, CLIENTS_PER_EDGE = 50, READ_BYTES = 1 << 20 };

static double seconds_of(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double now(void)
{
    return seconds_of(CLOCK_MONOTONIC);
}

static double peak_mb(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss * 1024 / 1e6;
}

/* Returns the bytes written, 0 on failure. */
static size_t write_file(FILE *file, size_t bytes, size_t M)
{
    rng draws = {.key = rng_key(1, 0)};
    fputs("edge,client,y", file);
    for (size_t m = 1; m <= M; m++)
        fprintf(file, ",x%zu", m);
    fputc('\n', file);
    for (size_t client = 0; (size_t)ftell(file) < bytes; client++) {
        fprintf(file, "edge%zu,client%zu,%.17g", client / CLIENTS_PER_EDGE + 1, client + 1, rng_next_normal(&draws));
        for (size_t m = 0; m < M; m++)
            fprintf(file, ",%.17g", rng_next_normal(&draws));
        fputc('\n', file);
    }
    const long size = ftell(file);
    return fflush(file) == 0 && !ferror(file) && size > 0 ? (size_t)size : 0;
}

/* Seconds; negative on failure. */
static double time_plain(const char *path, char *buffer)
{
    const double start = now();
    const int file = open(path, O_RDONLY);
    if (file < 0)
        return -1;
    ssize_t got;
    do
        got = read(file, buffer, READ_BYTES);
    while (got > 0);
    close(file);
    return got < 0 ? -1 : now() - start;
}

/* cpu: what the process used of it, which says more than the clock on the wall where others run beside it. */
static double time_csv(const char *path, size_t *values, double *cpu)
{
    const double start = now(), cpu_start = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
    dataset *d;
    hfsad_error err;
    if (dataset_read(&d, path, false, &err)) {
        fprintf(stderr, "%s\n", err.message);
        return -1;
    }
    const double seconds = now() - start;
    *cpu = seconds_of(CLOCK_PROCESS_CPUTIME_ID) - cpu_start;
    *values = d->n_leaves * (d->M + 1);
    dataset_free(d);
    return seconds;
}

static int measure(const char *path, size_t bytes, size_t M)
{
    static char buffer[READ_BYTES];
    double plain = 1e9, csv = 1e9, cpu = 1e9, c = 0;
    size_t values = 0;
    for (int i = 0; i < RUNS; i++) {
        const double a = time_plain(path, buffer), b = time_csv(path, &values, &c);
        if (a < 0 || b < 0)
            return 1;
        plain = a < plain ? a : plain;
        csv = b < csv ? b : csv;
        cpu = c < cpu ? c : cpu;
    }
    const double mb = (double)bytes / 1e6;
    printf("csv_file_mb=%.1f\ncsv_features=%zu\n", mb, M);
    printf("csv_read_mb_per_s=%.0f\nplain_read_mb_per_s=%.0f\n", mb / csv, mb / plain);
    printf("csv_read_mb_per_cpu_s=%.0f\n", mb / cpu);
    printf("csv_over_plain_read=%.3f\n", plain / csv);
    printf("csv_read_ns_per_number=%.1f\n", csv * 1e9 / (double)values);
    printf("csv_data_mb=%.1f\ncsv_peak_memory_mb=%.1f\n", (double)values * 8 / 1e6, peak_mb());
    return 0;
}

int main(int argc, char **argv)
{
    const long megabytes = argc > 1 ? strtol(argv[1], NULL, 10) : 200,
               features = argc > 2 ? strtol(argv[2], NULL, 10) : 25;
    if (megabytes < 1 || features < 1 || argc > 3) {
        fprintf(stderr, "usage: csv_bench [megabytes] [features]\n");
        return 2;
    }
    const char *folder = getenv("TMPDIR");
    char path[4096];
    snprintf(path, sizeof path, "%.4000s/csv_bench.XXXXXX", folder ? folder : "/tmp");
    const int made = mkstemp(path);
    FILE *file = made < 0 ? NULL : fdopen(made, "w");
    if (!file) {
        perror(path);
        return 1;
    }
    const size_t bytes = write_file(file, (size_t)megabytes * 1000000, (size_t)features);
    const int status = bytes == 0 ? 1 : measure(path, bytes, (size_t)features);
    if (bytes == 0)
        perror(path);
    fclose(file);
    unlink(path);
    return status;
}
