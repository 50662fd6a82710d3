/* The files of `hfsad generate`; see generate.h. */
#include "base/alloc.h"
#include "base/error.h"
#include "cli.h"
#include "generate.h"
#include "progress.h"
#include "report/number.h"

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
    snprintf(names[n++], FILE_NAME_SIZE, "data.csv");
    if (a->test_rows > 0)
        snprintf(names[n++], FILE_NAME_SIZE, "test.csv");
    snprintf(names[n++], FILE_NAME_SIZE, "truth.csv");
    if (a->kind == KIND_CLUSTERED) {
        for (int64_t g = 1; g <= a->groups; g++)
            snprintf(names[n++], FILE_NAME_SIZE, "truth-%d.csv", (int)g);
        snprintf(names[n++], FILE_NAME_SIZE, "groups.csv");
    }
    snprintf(names[n++], FILE_NAME_SIZE, "spec.yaml");
    return n;
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

/* Context of put_row. */
typedef struct {
    whole_file *file;
    size_t M;
    progress *shown;
    uint64_t *done; /* rows of all files so far */
    const char *name;
} row_writer;

static void put_header(const row_writer *k)
{
    put_text(k->file, "edge,client,y");
    for (size_t m = 1; m <= k->M; m++)
        generate_put(k->file, ",x%zu", m);
    put_text(k->file, "\n");
}

static bool put_row(void *context, const generated_row *row)
{
    const row_writer *k = context;
    if (cli_interrupted())
        return false;
    generate_put(k->file, "%s,%s", row->edge, row->client);
    put_number(k->file, ',', row->y);
    for (size_t m = 0; m < k->M; m++)
        put_number(k->file, ',', row->x[m]);
    put_text(k->file, "\n");
    progress_draw(k->shown, ++*k->done, k->name);
    return !k->file->reason; /* a full disk: the rest need not be drawn */
}

static void put_truth(whole_file *f, size_t M, const double *truth)
{
    char text[NUMBER_SIZE];
    for (size_t m = 0; m < M; m++) {
        whole_file_put(f, text, number_write(text, truth[m]));
        put_text(f, "\n");
    }
}

static void put_groups(whole_file *f, const population *p, size_t clients)
{
    put_text(f, "client,group\n");
    for (size_t j = 0; j < clients; j++)
        generate_put(f, "client%zu,%zu\n", j + 1, population_group(p, j) + 1);
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
                                 .seed = (uint64_t)a->seed};
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
    whole_file *files[FILES_MOST];
    size_t next; /* to be written */
    progress shown;
    uint64_t done;
} writing;

static hfsad_status write_rows(writing *k, population_part part, int64_t rows, hfsad_error *err)
{
    const source *s = k->s;
    const char *name = part == ROWS_TEST ? "test.csv" : "data.csv";
    row_writer w = {k->files[k->next++], (size_t)k->a->features, &k->shown, &k->done, name};
    put_header(&w);
    if (s->people)
        return population_rows(s->people, part, (size_t)rows, put_row, &w, err);
    return phase_retrieval_rows(&s->paper, s->truth, s->scale, put_row, &w, err);
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
    put_groups(k->files[k->next++], p, (size_t)k->a->edges * (size_t)k->a->clients);
}

static hfsad_status write_all(const generate_arguments *a, const source *s, file_batch *batch, bool *whole,
                              hfsad_error *err)
{
    char names[FILES_MOST][FILE_NAME_SIZE];
    writing k = {.a = a, .s = s};
    const size_t n = generate_file_names(a, names);
    for (size_t i = 0; i < n; i++) {
        k.files[i] = file_batch_add(batch, names[i], err);
        if (!k.files[i])
            return err->status;
    }
    const uint64_t clients = (uint64_t)a->edges * (uint64_t)a->clients;
    const uint64_t rows = s->people ? (uint64_t)(a->rows + a->test_rows) : 1;
    progress_start(&k.shown, "row", 0, clients * rows, a->quiet);
    hfsad_status status = write_rows(&k, ROWS_TRAIN, a->rows, err);
    if (!status && a->test_rows > 0)
        status = write_rows(&k, ROWS_TEST, a->test_rows, err);
    progress_end(&k.shown);
    if (status)
        return status;
    write_truths(&k);
    generate_spec(k.files[k.next], a);
    *whole = !cli_interrupted();
    return *whole ? file_batch_commit(batch, err) : HFSAD_OK;
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
        cli_catch_interrupts(); /* until here the default action does no harm; from here on it would leave temporaries
                                 */
        status = file_batch_begin(&batch, a->out, err);
        if (!status)
            status = write_all(a, &s, &batch, whole, err);
        file_batch_drop(&batch);
    }
    source_free(&s);
    return status;
}
