/* hfsad evaluate: how well trained models predict held-out rows. */
#include "cli.h"
#include "progress.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct {
    const char *model, *data, *truth, *groups, *out;
    int with;
    bool quiet;
} evaluate_arguments;

static int parse_arguments(evaluate_arguments *a, int argc, char **argv)
{
    static const char *const choices[] = {HFSAD_WITH_WORDS, NULL};
    const cli_option options[] = {
        {"model", CLI_NEEDED, &a->model, 0, 0, NULL, "DIR", "output folder of `hfsad run`; required"},
        {"data", CLI_NEEDED, &a->data, 0, 0, NULL, "FILE", "held-out rows, in the format of a spec's data; required"},
        {"with", CLI_CHOICE, &a->with, 0, 0, choices, "WHOSE",
         "model to use for a client: client, edge, cloud or auto\n"
         "(the default): its own if there is one, otherwise that\n"
         "of its nearest ancestor"},
        {"truth", CLI_TEXT, &a->truth, 0, 0, NULL, "FILE",
         "true model, one number per line and feature; adds\n"
         "recall, precision and relative error"},
        {"groups", CLI_TEXT, &a->groups, 0, 0, NULL, "FILE",
         "CSV client,group: figures for these groups; by default\n"
         "for the groups that the run found"},
        {"out", CLI_TEXT, &a->out, 0, 0, NULL, "DIR", "folder for evaluation.csv and evaluation.json"},
        {"quiet", CLI_FLAG, &a->quiet, 0, 0, NULL, NULL, "no progress, no table"},
    };
    const cli_syntax syntax = {
        .usage = "evaluate --model DIR --data FILE [--with auto|client|edge|cloud]\n"
                 "               [--truth FILE] [--groups FILE] [--out DIR] [--quiet]",
        .about = "Measures the models of a run on rows that were not used in training, with the\n"
                 "loss of the run (including overrides, without the box).",
        .options = options,
        .n_options = sizeof options / sizeof *options,
        .after = "evaluation.csv has one row per node of the data, with these columns: rows; weight\n"
                 "(sum of their weights); loss (weighted mean over the rows below the node); total\n"
                 "(sum of the clients' losses, each a sum or mean by loss.scale of the run);\n"
                 "accuracy (losses of labels); coverage (quantile losses: share of rows with y at or\n"
                 "below the prediction, to compare with tau); model (the model used for a client;\n"
                 "an edge's own); nonzero (its non-zero features); recall and precision of these\n"
                 "and relative error against the truth; rmse, mae and r2 (numbers); auc, f1,\n"
                 "calibration and the counts true_positive, false_positive, true_negative,\n"
                 "false_negative (two classes); pinball_0.1, coverage_0.1 and so on (several tau).\n"
                 "Columns that the loss does not have are left out; a field without a value is empty.\n"
                 "evaluation.json has the overall figures: mean and total, worst client and edge,\n"
                 "median client, the cloud's model, the groups. The relative error of a group is the\n"
                 "mean over the models of its clients.\n\n"
                 "Exit status: 0 done, 1 the files could not be written, 2 the model, data or\n"
                 "arguments are wrong, 129 after SIGHUP, 130 after Ctrl-C, 143 after SIGTERM.\n"
                 "If the status is not 0, --out DIR is unchanged.",
    };
    return cli_parse(&syntax, argc, argv, NULL);
}

typedef struct {
    progress progress;
    bool begun, quiet;
} display;

static bool draw_progress(void *context, size_t done, size_t clients)
{
    display *d = context;
    if (!d->begun)
        progress_start(&d->progress, "client", 0, clients, d->quiet);
    d->begun = true;
    progress_draw(&d->progress, done, "");
    return !cli_interrupted();
}

static int evaluate_models(const evaluate_arguments *a)
{
    hfsad_error err = {0};
    display d = {.quiet = a->quiet};
    char *table;
    const hfsad_evaluate_settings settings = {
        .size = sizeof settings,
        .model = a->model,
        .data = a->data,
        .with = (hfsad_with)a->with,
        .truth = a->truth,
        .groups = a->groups,
        .out = a->out,
        .context = &d,
        .proceed = draw_progress,
    };
    if (a->out)
        cli_catch_interrupts(); /* the default action would leave temporaries */
    const hfsad_status status = hfsad_evaluate_folder(&settings, &table, &err);
    if (d.begun)
        progress_end(&d.progress);
    if (status && cli_interrupted()) {
        fputs("hfsad: interrupted; nothing was written\n", stderr);
        return 128 + cli_interrupted();
    }
    if (status)
        return cli_fail(&err);
    if (!a->quiet)
        fputs(table, stdout);
    if (!a->quiet && a->out)
        printf("\nwritten to %s\n", a->out);
    free(table);
    return cli_finish_stdout(CLI_DONE);
}

int cmd_evaluate(int argc, char **argv)
{
    evaluate_arguments a = {.with = HFSAD_WITH_AUTO};
    const int status = parse_arguments(&a, argc, argv);
    return status == CLI_GO ? evaluate_models(&a) : status;
}
