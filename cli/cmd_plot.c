/* hfsad plot: the models of a run in one picture. */
#include "cli.h"
#include "lab/model_picture.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct {
    model_picture_settings picture;
    cli_texts truths;
} plot_arguments;

static int parse_arguments(plot_arguments *a, int argc, char **argv)
{
    const cli_option options[] = {
        {"groups", CLI_TEXT, &a->picture.groups, 0, 0, NULL, "FILE",
         "CSV client,group: colours by these groups; by default\n"
         "by the groups that the run found"},
        {"truth", CLI_TEXTS, &a->truths, 0, 0, NULL, "FILE",
         "true model, one number per line and feature, drawn as\n"
         "marks; up to four times"},
        {"raw", CLI_FLAG, &a->picture.raw, 0, 0, NULL, NULL,
         "units of the data also if the run has standardized\nthe features"},
        {"out", CLI_TEXT, &a->picture.out, 0, 0, NULL, "DIR", "output folder for models.png and models.svg (plot-out)"},
    };
    const cli_syntax syntax = {
        .usage = "plot RUN [OTHER] [OTHER] [--groups FILE] [--truth FILE]... [--raw]\n"
                 "          [--out DIR]",
        .about = "Draws the model of every client of RUN, the output folder of `hfsad run`: a thin line\n"
                 "through its coefficients, coloured by the group of the client. The cloud's models of\n"
                 "OTHER runs are dashed lines. If RUN has standardized the features, the coefficients\n"
                 "are those of the standardized ones, on which a penalty acts.",
        .options = options,
        .n_options = sizeof options / sizeof *options,
        .least_words = 1,
        .most_words = 1 + MODEL_PICTURE_OTHERS,
        .words = "the output folder of a run",
        .after = "Groups beyond the fourth share a colour. Intercepts are not drawn. Limits: 1000\n"
                 "features, and 1000 clients per group.\n\n"
                 "Exit status: 0 done, 1 the files could not be written, 2 a folder, a file or an\n"
                 "argument is wrong or gnuplot is missing. If the status is not 0, DIR is unchanged.",
    };
    return cli_parse(&syntax, argc, argv, a->picture.folders);
}

static int draw_pictures(const plot_arguments *a)
{
    hfsad_error err = {0};
    model_picture *p;
    if (model_picture_create(&p, &a->picture, &err))
        return cli_fail(&err);
    cli_catch_interrupts(); /* from here on, the default action would leave temporaries */
    const hfsad_status status = model_picture_draw(p, cli_interrupted, &err);
    model_picture_free(p);
    if (status)
        return cli_fail(&err);
    if (cli_interrupted()) {
        fputs("hfsad: interrupted; nothing was written\n", stderr);
        return 128 + cli_interrupted();
    }
    printf("wrote %s: %s, %s\n", a->picture.out, model_picture_names[0], model_picture_names[1]);
    return cli_finish_stdout(CLI_DONE);
}

int cmd_plot(int argc, char **argv)
{
    plot_arguments a = {.picture.out = "plot-out", .truths.room = calloc((size_t)argc + 1, sizeof(char *))};
    if (!a.truths.room) {
        fputs("hfsad: not enough memory\n", stderr);
        return CLI_FAILED;
    }
    int status = parse_arguments(&a, argc, argv);
    if (status == CLI_GO && a.truths.count > MODEL_PICTURE_TRUTHS)
        status = cli_wrong(argv[0], "more than %d true models", MODEL_PICTURE_TRUTHS);
    a.picture.truths = a.truths.room;
    a.picture.n_truths = a.truths.count;
    if (status == CLI_GO)
        status = draw_pictures(&a);
    free(a.truths.room);
    return status;
}
