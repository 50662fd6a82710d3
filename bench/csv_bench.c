/*
 * The speed of reading files into a data set, compared with plain read() of the same files from the page cache:
 * csv_bench [megabytes] [features]. csv: one row per client, 17 digits per number; rows: as many rows, of few clients
 * and in any order; npy: a folder of arrays; svm: LIBSVM text, a third of the features in a row. The files are made in
 * TMPDIR and removed.
 */
#include "base/error.h"
#include "base/rng.h"
#include "data/dataset.h"
#include "tools.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RUNS = 5, CLIENTS_PER_EDGE = 50, FEW_CLIENTS = 250, ARRAYS = 10, READ_BYTES = 1 << 20, PATH_SIZE = 4096 };

typedef enum { CSV, ROWS, NPY, SVM, KINDS } kind;
static const char *const NAMES[KINDS] = {"csv", "rows", "npy", "svm"};

static double peak_mb(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss * 1024 / 1e6;
}

/* The i-th file of a kind in a folder. What dataset_read gets is the file, or for arrays the folder. */
static void file_path(char path[PATH_SIZE], const char *folder, kind k, int i)
{
    if (k == NPY)
        snprintf(path, PATH_SIZE, "%.4000s/npy/client%d.npy", folder, i + 1);
    else
        snprintf(path, PATH_SIZE, "%.4000s/data.%s", folder, k == SVM ? "svm" : "csv");
}

static int files_of(kind k)
{
    return k == NPY ? ARRAYS : 1;
}

static void write_csv(FILE *file, size_t bytes, size_t M, bool few)
{
    rng draws = {.key = rng_key(1, 0)};
    fputs("edge,client,y", file);
    for (size_t m = 1; m <= M; m++)
        fprintf(file, ",x%zu", m);
    fputc('\n', file);
    for (size_t row = 0; (size_t)ftell(file) < bytes; row++) {
        const size_t client = few ? rng_next_below(&draws, FEW_CLIENTS) : row;
        fprintf(file, "edge%zu,client%zu,%.17g", client / CLIENTS_PER_EDGE + 1, client + 1, rng_next_normal(&draws));
        for (size_t m = 0; m < M; m++)
            fprintf(file, ",%.17g", rng_next_normal(&draws));
        fputc('\n', file);
    }
}

static void write_svm(FILE *file, size_t bytes, size_t M)
{
    rng draws = {.key = rng_key(1, 0)};
    while ((size_t)ftell(file) < bytes) {
        const size_t client = rng_next_below(&draws, FEW_CLIENTS);
        fprintf(file, "%.17g", rng_next_normal(&draws));
        for (size_t m = 1; m <= M; m++)
            if (rng_next_below(&draws, 3) == 0)
                fprintf(file, " %zu:%.17g", m, rng_next_normal(&draws));
        fprintf(file, " # edge%zu/client%zu\n", client / CLIENTS_PER_EDGE + 1, client + 1);
    }
}

static void write_npy(FILE *file, size_t bytes, size_t M, uint64_t seed)
{
    rng draws = {.key = rng_key(seed, 0)};
    const size_t rows = bytes / ((M + 1) * sizeof(double)) + 1;
    char header[118];
    const int used =
        snprintf(header, sizeof header, "{'descr': '<f8', 'fortran_order': False, 'shape': (%zu, %zu), }", rows, M + 1);
    memset(header + used, ' ', sizeof header - (size_t)used);
    header[sizeof header - 1] = '\n';
    fwrite("\x93NUMPY\1\0v\0", 1, 10, file); /* format 1.0, a header of 0x76 bytes */
    fwrite(header, 1, sizeof header, file);
    for (size_t i = 0; i < rows * (M + 1); i++) {
        const double value = rng_next_normal(&draws);
        fwrite(&value, sizeof value, 1, file);
    }
}

/* Returns the bytes written, 0 on failure. */
static size_t write_files(const char *folder, kind k, size_t bytes, size_t M)
{
    char path[PATH_SIZE];
    size_t all = 0;
    for (int i = 0; i < files_of(k); i++) {
        file_path(path, folder, k, i);
        FILE *file = fopen(path, "wb");
        if (!file)
            return 0;
        if (k == NPY)
            write_npy(file, bytes / ARRAYS, M, (uint64_t)i);
        else if (k == SVM)
            write_svm(file, bytes, M);
        else
            write_csv(file, bytes, M, k == ROWS);
        const long size = ftell(file);
        const bool failed = ferror(file) || size <= 0;
        if (fclose(file) != 0 || failed)
            return 0;
        all += (size_t)size;
    }
    return all;
}

/* Seconds; negative on failure. */
static double time_plain(const char *folder, kind k, char *buffer)
{
    const double start = now();
    ssize_t got = 0;
    for (int i = 0; i < files_of(k) && got == 0; i++) {
        char path[PATH_SIZE];
        file_path(path, folder, k, i);
        const int file = open(path, O_RDONLY);
        if (file < 0)
            return -1;
        do
            got = read(file, buffer, READ_BYTES);
        while (got > 0);
        close(file);
    }
    return got < 0 ? -1 : now() - start;
}

/* cpu: what the process used of it, which says more than the clock on the wall where others run beside it. */
static double time_data(const char *path, size_t *values, double *cpu)
{
    const double start = now(), cpu_start = seconds_on(CLOCK_PROCESS_CPUTIME_ID);
    dataset *d;
    hfsad_error err;
    if (dataset_read(&d, path, false, &err)) {
        fprintf(stderr, "%s\n", err.message);
        return -1;
    }
    const double seconds = now() - start;
    *cpu = seconds_on(CLOCK_PROCESS_CPUTIME_ID) - cpu_start;
    *values = d->n_rows + (d->rows.start ? d->rows.start[d->n_rows] : d->n_rows * d->M);
    dataset_free(d);
    return seconds;
}

static int measure(const char *folder, kind k, size_t bytes, size_t M)
{
    static char buffer[READ_BYTES];
    char path[PATH_SIZE];
    double plain = 1e9, data = 1e9, cpu = 1e9, c = 0;
    size_t values = 0;
    file_path(path, folder, k, 0);
    if (k == NPY)
        *strrchr(path, '/') = '\0';
    for (int i = 0; i < RUNS; i++) {
        const double a = time_plain(folder, k, buffer), b = time_data(path, &values, &c);
        if (a < 0 || b < 0)
            return 1;
        plain = a < plain ? a : plain;
        data = b < data ? b : data;
        cpu = c < cpu ? c : cpu;
    }
    const double mb = (double)bytes / 1e6;
    const char *name = NAMES[k];
    printf("%s_file_mb=%.1f\n%s_features=%zu\n", name, mb, name, M);
    printf("%s_read_mb_per_s=%.0f\n%s_plain_read_mb_per_s=%.0f\n", name, mb / data, name, mb / plain);
    printf("%s_read_mb_per_cpu_s=%.0f\n", name, mb / cpu);
    printf("%s_over_plain_read=%.3f\n", name, plain / data);
    printf("%s_read_ns_per_number=%.1f\n", name, data * 1e9 / (double)values);
    printf("%s_data_mb=%.1f\n%s_peak_memory_mb=%.1f\n", name, (double)values * 8 / 1e6, name, peak_mb());
    return 0;
}

static void remove_files(const char *folder, kind k)
{
    for (int i = 0; i < files_of(k); i++) {
        char path[PATH_SIZE];
        file_path(path, folder, k, i);
        unlink(path);
    }
}

/* In a process of its own, so that the peak of its memory is its own. */
static int run(const char *folder, kind k, size_t bytes, size_t M)
{
    const size_t written = write_files(folder, k, bytes, M);
    if (written == 0)
        perror(folder);
    fflush(stdout);
    const pid_t child = written ? fork() : -1;
    if (child == 0) {
        const int status = measure(folder, k, written, M);
        fflush(stdout);
        _exit(status);
    }
    int status = 1;
    if (child > 0)
        waitpid(child, &status, 0);
    remove_files(folder, k);
    return status != 0;
}

int main(int argc, char **argv)
{
    const long megabytes = argc > 1 ? strtol(argv[1], NULL, 10) : 200,
               features = argc > 2 ? strtol(argv[2], NULL, 10) : 25;
    if (megabytes < 1 || features < 1 || argc > 3) {
        fprintf(stderr, "usage: csv_bench [megabytes] [features]\n");
        return 2;
    }
    const char *temporary = getenv("TMPDIR");
    char folder[PATH_SIZE], arrays[PATH_SIZE];
    snprintf(folder, sizeof folder, "%.4000s/csv_bench.XXXXXX", temporary ? temporary : "/tmp");
    if (!mkdtemp(folder)) {
        perror(folder);
        return 1;
    }
    snprintf(arrays, sizeof arrays, "%.4000s/npy", folder);
    int status = mkdir(arrays, 0700) != 0;
    for (kind k = CSV; k < KINDS && status == 0; k++)
        status = run(folder, k, (size_t)megabytes * 1000000, (size_t)features);
    rmdir(arrays);
    rmdir(folder);
    return status;
}
