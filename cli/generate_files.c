/* The files of `hfsad generate`; see generate.h. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/format_number.h"
#include "cli.h"
#include "generate.h"
#include "progress.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void generate_put(whole_file *f, const char *format, ...)
{
    char text[500];
    va_list args;
    va_start(args, format);
    const int length = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (length > 0)
        whole_file_put(f, text, (size_t)length < sizeof text ? (size_t)length : sizeof text - 1);
}

size_t generate_file_names(const generate_arguments *a, char names[FILES_MOST][FILE_NAME_SIZE])
{
    size_t n = 0;
    const char *end = a->tree ? "" : ".csv";
    snprintf(names[n++], FILE_NAME_SIZE, "data%s", end);
    if (a->test_rows > 0)
        snprintf(names[n++], FILE_NAME_SIZE, "test%s", end);
    snprintf(names[n++], FILE_NAME_SIZE, "truth.csv");
    if (a->kind == KIND_CLUSTERED) {
        for (int64_t g = 1; g <= a->groups; g++)
            snprintf(names[n++], FILE_NAME_SIZE, "truth-%d.csv", (int)g);
        snprintf(names[n++], FILE_NAME_SIZE, "groups.csv");
    }
    snprintf(names[n++], FILE_NAME_SIZE, "spec.yaml");
    return n;
}

size_t generate_folders(const generate_arguments *a)
{
    return a->tree ? (a->test_rows > 0 ? 2 : 1) : 0;
}

static void put_text(whole_file *f, const char *text)
{
    whole_file_put(f, text, strlen(text));
}

static void put_number(whole_file *f, bool first, int64_t digits, double value)
{
    char text[1 + NUMBER_SIZE] = ",";
    char *const at = text + !first;
    const size_t length =
        digits < 17 ? (size_t)snprintf(at, NUMBER_SIZE, "%.*g", (int)digits, value) : number_write(at, value);
    whole_file_put(f, text, (size_t)(at - text) + length);
}

/* Context of put_generated_row. */
typedef struct {
    whole_file *file; /* for a tree: the client's file */
    row_tree *tree;   /* NULL: one file */
    const generate_arguments *a;
    size_t M;
    progress *shown;
    uint64_t *done; /* rows of all files so far */
    const char *name;
    hfsad_status status;
    hfsad_error *err;
} row_writer;

static void put_header(const row_writer *k)
{
    put_text(k->file, k->tree ? "y" : "edge,client,y");
    for (size_t m = 1; m <= k->M; m++)
        generate_put(k->file, ",x%zu", m);
    put_text(k->file, "\n");
}

static bool find_file(row_writer *k, const generated_row *row)
{
    bool fresh;
    k->file = row_tree_file(k->tree, row, &fresh, k->err);
    if (!k->file)
        k->status = k->err->status;
    else if (fresh)
        put_header(k);
    return k->file;
}

/* The generators' names are "edge" and "client" with a number. */
static bool put_generated_row(void *context, const generated_row *drawn)
{
    row_writer *k = context;
    char edge[32 + WORD_SIZE], client[32 + WORD_SIZE];
    snprintf(edge, sizeof edge, "%s%s", k->a->edge_word, drawn->edge + strlen("edge"));
    snprintf(client, sizeof client, "%s%s", k->a->client_word, drawn->client + strlen("client"));
    const generated_row row = {edge, client, drawn->y, drawn->x};
    if (cli_interrupted() || (k->tree && !find_file(k, &row)))
        return false;
    if (!k->tree)
        generate_put(k->file, "%s,%s", edge, client);
    put_number(k->file, k->tree, k->a->digits, row.y);
    for (size_t m = 0; m < k->M; m++)
        put_number(k->file, false, k->a->digits, row.x[m]);
    put_text(k->file, "\n");
    progress_draw(k->shown, ++*k->done, k->name);
    return !k->file->reason; /* the disk is full: no further rows are needed */
}

static void put_truth(whole_file *f, size_t M, const double *truth)
{
    char text[NUMBER_SIZE];
    for (size_t m = 0; m < M; m++) {
        whole_file_put(f, text, number_write(text, truth[m]));
        put_text(f, "\n");
    }
}

static void put_groups(whole_file *f, const population *p, size_t clients, const char *word)
{
    put_text(f, "client,group\n");
    for (size_t j = 0; j < clients; j++)
        generate_put(f, "%s%zu,%zu\n", word, j + 1, population_group(p, j) + 1);
}

/* What the rows are drawn from. */
typedef struct {
    phase_retrieval paper;
    double *truth, scale;
    population *people; /* NULL: the paper's data */
} source;

static hfsad_status source_make(source *s, const generate_arguments *a, hfsad_error *err)
{
    *s = (source){0};
    if (a->kind != KIND_PHASE_RETRIEVAL) {
        const population_law law = generate_law(a);
        return population_create(&s->people, &law, err);
    }
    s->paper = (phase_retrieval){.edges = (size_t)a->edges,
                                 .clients = (size_t)a->clients,
                                 .features = (size_t)a->features,
                                 .snr_db = a->snr_db,
                                 .keep_x = a->keep_x,
                                 .keep_w = a->keep_w,
                                 .seed = (uint64_t)a->seed,
                                 .rows = (size_t)a->rows};
    s->truth = alloc_zero(s->paper.features, sizeof *s->truth);
    if (!s->truth)
        return error_memory(err, s->paper.features * sizeof *s->truth, "the true model");
    return phase_retrieval_prepare(&s->paper, s->truth, &s->scale, err);
}

static void source_free(source *s)
{
    free(s->truth);
    population_free(s->people);
}

/* The files in the order of generate_file_names. */
typedef struct {
    const generate_arguments *a;
    const source *s;
    whole_file *files[FILES_MOST]; /* NULL for a folder */
    row_tree trees[2];
    size_t next; /* next file to write */
    progress shown;
    uint64_t done;
} writing;

static hfsad_status write_rows(writing *k, population_part part, int64_t rows, hfsad_error *err)
{
    const source *s = k->s;
    row_tree *tree = &k->trees[k->next];
    row_writer w = {.file = k->files[k->next++],
                    .a = k->a,
                    .M = (size_t)k->a->features,
                    .shown = &k->shown,
                    .done = &k->done,
                    .name = part == ROWS_TEST ? "test" : "data",
                    .err = err};
    hfsad_status status = HFSAD_OK;
    if (w.file) {
        put_header(&w);
    } else {
        status = row_tree_begin(tree, k->a->out, w.name, err);
        w.tree = tree;
    }
    if (!status && s->people)
        status = population_rows(s->people, part, (size_t)rows, put_generated_row, &w, err);
    else if (!status)
        status = phase_retrieval_rows(&s->paper, s->truth, s->scale, put_generated_row, &w, err);
    if (!status)
        status = w.status;
    return status || !w.tree || cli_interrupted() ? status : row_tree_place(tree, err);
}

static void write_truths(writing *k)
{
    const size_t M = (size_t)k->a->features;
    const population *p = k->s->people;
    put_truth(k->files[k->next++], M, p ? population_truth(p, 0) : k->s->truth);
    if (k->a->kind != KIND_CLUSTERED)
        return;
    for (size_t g = 0; g < (size_t)k->a->groups; g++)
        put_truth(k->files[k->next++], M, population_truth(p, g));
    put_groups(k->files[k->next++], p, (size_t)k->a->edges * (size_t)k->a->clients, k->a->client_word);
}

static hfsad_status write_parts(writing *k, hfsad_error *err)
{
    const generate_arguments *a = k->a;
    const uint64_t clients = (uint64_t)a->edges * (uint64_t)a->clients;
    progress_start(&k->shown, "row", 0, clients * (uint64_t)(a->rows + a->test_rows), a->quiet);
    hfsad_status status = write_rows(k, ROWS_TRAIN, a->rows, err);
    if (!status && a->test_rows > 0)
        status = write_rows(k, ROWS_TEST, a->test_rows, err);
    progress_end(&k->shown);
    if (status)
        return status;
    write_truths(k);
    generate_spec(k->files[k->next], a);
    return HFSAD_OK;
}

static hfsad_status write_all(const generate_arguments *a, const source *s, file_batch *batch, bool *whole,
                              hfsad_error *err)
{
    char names[FILES_MOST][FILE_NAME_SIZE];
    writing k = {.a = a, .s = s};
    const size_t n = generate_file_names(a, names);
    for (size_t i = generate_folders(a); i < n; i++) {
        k.files[i] = file_batch_add(batch, names[i], err);
        if (!k.files[i])
            return err->status;
    }
    hfsad_status status = write_parts(&k, err);
    const bool going_on = !status && !cli_interrupted();
    if (going_on)
        status = file_batch_commit(batch, err);
    *whole = going_on && !status;
    for (size_t i = 0; i < sizeof k.trees / sizeof *k.trees; i++)
        row_tree_end(&k.trees[i], *whole);
    return status;
}

hfsad_status generate_files(const generate_arguments *a, bool *whole, hfsad_error *err)
{
    file_batch batch = {0};
    source s = {0};
    *whole = false;
    hfsad_status status = folder_check(a->out, err);
    if (!status)
        status = source_make(&s, a, err);
    if (!status) {
        cli_catch_interrupts(); /* from here on, the default action would leave temporaries */
        status = file_batch_begin(&batch, a->out, err);
        if (!status)
            status = write_all(a, &s, &batch, whole, err);
        file_batch_drop(&batch);
    }
    source_free(&s);
    return status;
}
