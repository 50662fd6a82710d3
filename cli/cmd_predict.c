/* hfsad predict: writes the predictions of trained models for rows as CSV. */
#include "base/batch.h"
#include "base/error.h"
#include "cli.h"
#include "progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { ROWS_AT_A_TIME = 4096 }; /* rows between two checks of the clock and interrupts */

typedef struct {
    const char *model, *data, *out;
    int with;
    bool quiet;
} predict_arguments;

static int parse_arguments(predict_arguments *a, int argc, char **argv)
{
    static const char *const choices[] = {HFSAD_WITH_WORDS, NULL};
    const cli_option options[] = {
        {"model", CLI_NEEDED, &a->model, 0, 0, NULL, "DIR", "output folder of `hfsad run`; required"},
        {"data", CLI_NEEDED, &a->data, 0, 0, NULL, "FILE",
         "rows to predict, in the format of a spec's data;\n"
         "required"},
        {"with", CLI_CHOICE, &a->with, 0, 0, choices, "WHOSE",
         "model to use for a client: client, edge, cloud or auto\n"
         "(the default): its own if there is one, otherwise that\n"
         "of its nearest ancestor"},
        {"out", CLI_TEXT, &a->out, 0, 0, NULL, "FILE",
         "file for the predictions, replaced as a whole; by\n"
         "default standard output"},
        {"quiet", CLI_FLAG, &a->quiet, 0, 0, NULL, NULL, "no progress"},
    };
    const cli_syntax syntax = {
        .usage = "predict --model DIR --data FILE [--with auto|client|edge|cloud]\n"
                 "              [--out FILE] [--quiet]",
        .about = "Predicts y of every row with the models of a run.",
        .options = options,
        .n_options = sizeof options / sizeof *options,
        .after = "The CSV has the columns edge, client, row (counted from 1 within the client),\n"
                 "prediction, label (losses of labels; as in the table that was trained on), a column\n"
                 "for each of several classes or levels of tau (p0, p1, or q0.1, q0.9), node (the\n"
                 "node whose model was used) and y (if the data has it), in the order of the data.\n\n"
                 "A prediction is <x,w>, plus the intercept if the model has one; its square for\n"
                 "phase-retrieval, the mean count exp(<x,w>) for poisson, the probability of the\n"
                 "positive class for logistic, the margin for hinge. The loss is that of the run, with\n"
                 "its overrides.\n\n"
                 "Exit status: 0 done, 1 the file could not be written, 2 the model, data or\n"
                 "arguments are wrong, 129 after SIGHUP, 130 after Ctrl-C, 143 after SIGTERM.\n"
                 "If the status is not 0, --out FILE is unchanged.",
    };
    return cli_parse(&syntax, argc, argv, NULL);
}

/* Splits a path into folder and name, which the caller frees. NULL: no memory. */
static char *folder_of(const char *path, const char **name)
{
    const char *slash = strrchr(path, '/');
    *name = slash ? slash + 1 : path;
    if (!slash)
        return strdup(".");
    return strndup(path, slash == path ? 1 : (size_t)(slash - path));
}

/* --out must be a file that may be replaced, and not an input. */
static hfsad_status check_output(const predict_arguments *a, hfsad_error *err)
{
    struct stat info;
    const char *name;
    char *folder = folder_of(a->out, &name), table[4096], summary[4096];
    if (!folder)
        return error_memory(err, strlen(a->out), "a file name");
    hfsad_status status = folder_check(folder, err);
    free(folder);
    if (!status)
        status = folder_check_outside(a->out, a->data, err);
    if (status)
        return status;
    if (!*name || (stat(a->out, &info) == 0 && !S_ISREG(info.st_mode)))
        return error_set(err, HFSAD_ERROR_INPUT,
                         "--out %.300s is not a regular file; name another file, or omit --out for standard output",
                         a->out);
    snprintf(table, sizeof table, "%s/model.csv", a->model);
    snprintf(summary, sizeof summary, "%s/summary.json", a->model);
    return file_check_output(a->out, (const char *const[]){a->data, table, summary}, 3, err);
}

/* Where the rows go. */
typedef struct {
    const predict_arguments *args;
    bool begun;
    file_batch files;
    whole_file *file; /* NULL: standard output */
    progress progress;
    size_t shown;
    hfsad_error err; /* of the file */
} sink;

/* Called before the first row, so that rows that cannot be predicted leave nothing behind. */
static bool begin_output(sink *k, size_t rows)
{
    const char *name;
    k->begun = true;
    if (k->args->out) {
        char *folder = folder_of(k->args->out, &name);
        cli_catch_interrupts(); /* from here on, the default action would leave a temporary */
        if (!folder)
            error_memory(&k->err, strlen(k->args->out), "a file name");
        else if (!file_batch_begin(&k->files, folder, &k->err))
            k->file = file_batch_add(&k->files, name, &k->err);
        free(folder);
    }
    progress_start(&k->progress, "row", 0, rows, k->args->quiet);
    return !k->args->out || k->file;
}

static bool write_text(void *context, const char *text, size_t length, size_t done, size_t rows)
{
    sink *k = context;
    if (!k->begun && !begin_output(k, rows))
        return false;
    if (k->file)
        whole_file_put(k->file, text, length);
    else
        fwrite(text, 1, length, stdout);
    if (done < k->shown + ROWS_AT_A_TIME)
        return true;
    k->shown = done;
    progress_draw(&k->progress, done, "");
    return !cli_interrupted() && !ferror(k->file ? k->file->stream : stdout);
}

static int predict_rows(const predict_arguments *a)
{
    hfsad_error err = {0};
    sink k = {.args = a};
    if ((a->out && check_output(a, &err)) ||
        hfsad_predict_table(a->model, a->data, (hfsad_with)a->with, write_text, &k, &err)) {
        file_batch_drop(&k.files);
        return cli_fail(&err);
    }
    progress_end(&k.progress);
    if (!a->out)
        return cli_finish_stdout(CLI_DONE);
    hfsad_status status = k.file ? HFSAD_OK : k.err.status;
    if (!status && !cli_interrupted())
        status = file_batch_commit(&k.files, &k.err);
    file_batch_drop(&k.files);
    if (status)
        return cli_fail(&k.err);
    if (!cli_interrupted())
        return CLI_DONE;
    fputs("hfsad: interrupted; nothing was written\n", stderr);
    return 128 + cli_interrupted();
}

int cmd_predict(int argc, char **argv)
{
    predict_arguments a = {.with = HFSAD_WITH_AUTO};
    const int status = parse_arguments(&a, argc, argv);
    return status == CLI_GO ? predict_rows(&a) : status;
}
