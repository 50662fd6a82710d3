/* hfsad generate: data of the paper's kind, its truth and a spec to run it with. */
#include "base/error.h"
#include "cli.h"
#include "paper.h"
#include "report/batch.h"
#include "report/number.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A federation larger than this is a slip of the pen: its rows alone would fill a disk. */
static const double CLIENTS_MOST = 1e8;

/* As run.seed has it. */
static const int64_t SEED_MOST = INT64_C(1) << 53;

typedef struct {
    const char *kind, *out, *seed_text;
    int64_t edges, clients, features, seed;
    double snr_db, keep_x, keep_w;
    bool force;
} generate_arguments;

enum { DATA, TRUTH, SPEC, FILES };
static const char *const NAMES[FILES] = {"data.csv", "truth.csv", "spec.yaml"};

static int parse_arguments(generate_arguments *a, int argc, char **argv)
{
    const cli_option options[] = {
        {"out", CLI_TEXT, &a->out, 0, 0, NULL, "DIR", "folder for the files; required"},
        {"edges", CLI_WHOLE, &a->edges, 1, 1e8, NULL, "L", "number of edges (5)"},
        {"clients", CLI_WHOLE, &a->clients, 1, 1e8, NULL, "N", "clients below each edge (50), one observation each"},
        {"features", CLI_WHOLE, &a->features, 1, 1e7, NULL, "M", "length of the model (25)"},
        {"snr-db", CLI_REAL, &a->snr_db, -300, 300, NULL, "DB", "signal to noise, in decibels (20)"},
        {"seed", CLI_TEXT, &a->seed_text, 0, 0, NULL, "N",
         "seed of every draw (1); trial t of `hfsad paper\n--seed S` is the data of seed S + t - 1"},
        {"keep-x", CLI_REAL, &a->keep_x, 1e-9, 1, NULL, "RATIO", "part of the features that an edge observes (0.8)"},
        {"keep-w", CLI_REAL, &a->keep_w, 1e-9, 1, NULL, "RATIO", "part of the true model that is not zero (0.3)"},
        {"force", CLI_FLAG, &a->force, 0, 0, NULL, NULL, "replace files that are there"},
    };
    const cli_syntax syntax = {
        .usage = "generate phase-retrieval --out DIR [--edges L] [--clients N] [--features M]\n"
                 "               [--snr-db DB] [--seed N] [--keep-x RATIO] [--keep-w RATIO] [--force]",
        .about = "Draws the data of the paper's experiment: intensities y = <x,w>^2 + noise of a sparse\n"
                 "model, with the noise exponential and now and then ten times larger.",
        .options = options,
        .n_options = sizeof options / sizeof *options,
        .least_words = 1,
        .most_words = 1,
        .words = "the kind of data (phase-retrieval)",
        .after = "DIR gets data.csv (edge, client, y, features), truth.csv (the true model, a number\n"
                 "per line) and spec.yaml, ready for `hfsad run DIR/spec.yaml`.\n\n"
                 "Exit status: 0 done, 1 the files could not be written, 2 the arguments are wrong, 130 after\n"
                 "Ctrl-C, 143 after SIGTERM, 129 after a hang-up; unless it is 0, DIR is as it was.",
    };
    return cli_parse(&syntax, argc, argv, &a->kind);
}

/* Data that this machine cannot hold would end in the kernel killing something, this program at best. */
static int check_memory(const generate_arguments *a, const char *command)
{
    const double need = (double)a->edges * (double)a->clients * (double)a->features * sizeof(double);
    const double have = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    if (need <= have || have <= 0)
        return CLI_GO;
    return cli_wrong(command,
                     "the data need %.0f bytes of memory and this machine has %.0f; take fewer --edges, --clients or "
                     "--features",
                     need, have);
}

/* What no single option can see. */
static int check_arguments(const generate_arguments *a, const char *command)
{
    if (strcmp(a->kind, "phase-retrieval") != 0)
        return cli_wrong(command, "unknown kind of data '%s'; known: phase-retrieval", a->kind);
    if (!a->out)
        return cli_wrong(command, "--out DIR is missing");
    if ((double)a->edges * (double)a->clients > CLIENTS_MOST)
        return cli_wrong(command, "--edges %" PRId64 " times --clients %" PRId64 " is more than %.0f clients", a->edges,
                         a->clients, CLIENTS_MOST);
    for (int i = 0; i < FILES && !a->force; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", a->out, NAMES[i]);
        if (access(path, F_OK) == 0)
            return cli_wrong(command, "%s is there already; give another --out, or --force to replace it", path);
    }
    return check_memory(a, command);
}

static void put_text(whole_file *f, const char *text)
{
    whole_file_put(f, text, strlen(text));
}

static void put_number(whole_file *f, char before, double value)
{
    char text[1 + NUMBER_SIZE];
    text[0] = before;
    whole_file_put(f, text, 1 + number_write(text + 1, value));
}

/* false: interrupted */
static bool write_data(whole_file *f, const dataset *d, double *row)
{
    char text[80];
    put_text(f, "edge,client,y");
    for (size_t m = 1; m <= d->M; m++) {
        snprintf(text, sizeof text, ",x%zu", m);
        put_text(f, text);
    }
    put_text(f, "\n");
    for (size_t i = 0; i < d->n_leaves && !cli_interrupted(); i++) {
        dataset_gather(d, d->x, i, row);
        snprintf(text, sizeof text, "%s,%s", d->inner[dataset_parent(d, i)].name, d->names + d->leaf_name[i]);
        put_text(f, text);
        put_number(f, ',', d->y[i]);
        for (size_t m = 0; m < d->M; m++)
            put_number(f, ',', row[m]);
        put_text(f, "\n");
    }
    return !cli_interrupted();
}

static void write_truth(whole_file *f, size_t M, const double *truth)
{
    char text[NUMBER_SIZE];
    for (size_t m = 0; m < M; m++) {
        whole_file_put(f, text, number_write(text, truth[m]));
        put_text(f, "\n");
    }
}

static void write_spec(whole_file *f, const generate_arguments *a)
{
    char text[800];
    snprintf(text, sizeof text,
             "# Made by: hfsad generate phase-retrieval --edges %" PRId64 " --clients %" PRId64 " --features %" PRId64
             " --snr-db %.17g\n#          --seed %" PRId64 " --keep-x %.17g --keep-w %.17g\n",
             a->edges, a->clients, a->features, a->snr_db, a->seed, a->keep_x, a->keep_w);
    put_text(f, text);
    snprintf(text, sizeof text,
             "# `hfsad settings` lists every key.\n"
             "data: data.csv\n"
             "truth: truth.csv          # adds relative_error to the trace\n"
             "loss: {kind: phase-retrieval, box: 5}\n"
             "preset: paper             # the paper's constants; tuned: the default\n"
             "run:\n"
             "  iterations: 300\n"
             "  edge_rounds: 10         # K_m\n"
             "  start: spectral\n"
             "  seed: %" PRId64 "\n",
             a->seed);
    put_text(f, text);
}

/* All three files or none; none too where interrupted. */
static hfsad_status write_files(const generate_arguments *a, const dataset *d, const double *truth, double *row,
                                file_batch *files, bool *whole, hfsad_error *err)
{
    whole_file *open[FILES];
    for (int i = 0; i < FILES; i++) {
        open[i] = file_batch_add(files, NAMES[i], err);
        if (!open[i])
            return err->status;
    }
    write_spec(open[SPEC], a);
    write_truth(open[TRUTH], d->M, truth);
    *whole = write_data(open[DATA], d, row);
    return *whole ? file_batch_commit(files, err) : HFSAD_OK;
}

/* Quoted for a shell where it needs to be. */
static void print_path(const char *folder, const char *name)
{
    const size_t plain = strspn(folder, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+-");
    if (!folder[plain]) {
        printf("%s/%s", folder, name);
        return;
    }
    putchar('\'');
    for (; *folder; folder++)
        fputs(*folder == '\'' ? "'\\''" : (char[2]){*folder, 0}, stdout);
    printf("/%s'", name);
}

static void print_outcome(const generate_arguments *a)
{
    printf("wrote %s: %s, %s, %s\n", a->out, NAMES[DATA], NAMES[TRUTH], NAMES[SPEC]);
    printf("%" PRId64 " edge%s with %" PRId64 " client%s each, %" PRId64
           " feature%s (%zu observed per edge, %zu of the "
           "model not zero), snr %g dB, seed %" PRId64 "\n",
           a->edges, a->edges == 1 ? "" : "s", a->clients, a->clients == 1 ? "" : "s", a->features,
           a->features == 1 ? "" : "s", kept_count(a->keep_x, (size_t)a->features),
           kept_count(a->keep_w, (size_t)a->features), a->snr_db, a->seed);
    printf("next: hfsad run ");
    print_path(a->out, NAMES[SPEC]);
    printf(" --out ");
    print_path(a->out, "run");
    putchar('\n');
}

/* *whole: false where interrupted. */
static hfsad_status generate(const generate_arguments *a, double *truth, double *row, bool *whole, hfsad_error *err)
{
    const phase_retrieval g = {.edges = (size_t)a->edges,
                               .clients = (size_t)a->clients,
                               .features = (size_t)a->features,
                               .snr_db = a->snr_db,
                               .keep_x = a->keep_x,
                               .keep_w = a->keep_w,
                               .seed = (uint64_t)a->seed};
    dataset *d = NULL;
    file_batch files = {0};
    hfsad_status status = folder_check(a->out, err);
    if (!status)
        status = phase_retrieval_generate(&g, &d, truth, err);
    if (status || !d)
        return status;
    cli_catch_interrupts(); /* before this the default action does no harm; from here on it would leave temporaries */
    status = file_batch_begin(&files, a->out, err);
    if (!status)
        status = write_files(a, d, truth, row, &files, whole, err);
    file_batch_drop(&files);
    dataset_free(d);
    return status;
}

static int carry_out(const generate_arguments *a)
{
    hfsad_error err = {0};
    const size_t M = (size_t)a->features;
    double *truth = calloc(2 * M, sizeof *truth);
    if (!truth) {
        error_memory(&err, 2 * M * sizeof *truth, "the true model");
        return cli_fail(&err);
    }
    bool whole = false;
    const hfsad_status status = generate(a, truth, truth + M, &whole, &err);
    free(truth);
    if (status)
        return cli_fail(&err);
    if (!whole) {
        fputs("hfsad: interrupted; nothing was written\n", stderr);
        return 128 + cli_interrupted();
    }
    print_outcome(a);
    return cli_finish_stdout(CLI_DONE);
}

int cmd_generate(int argc, char **argv)
{
    const phase_retrieval usual = phase_retrieval_paper();
    generate_arguments a = {.edges = (int64_t)usual.edges,
                            .clients = (int64_t)usual.clients,
                            .features = (int64_t)usual.features,
                            .seed_text = "1",
                            .snr_db = usual.snr_db,
                            .keep_x = usual.keep_x,
                            .keep_w = usual.keep_w};
    int status = parse_arguments(&a, argc, argv);
    if (status == CLI_GO)
        status = paper_seed(argv[0], a.seed_text, SEED_MOST, &a.seed);
    if (status == CLI_GO)
        status = check_arguments(&a, argv[0]);
    if (status != CLI_GO)
        return status;
    return carry_out(&a);
}
