/* hfsad assign: finds the groups of clients that were not in the training, from their rows. */
#include "cli.h"

#include <stdio.h>

typedef struct {
    const char *model, *data;
} assign_arguments;

static int parse_arguments(assign_arguments *a, int argc, char **argv)
{
    const cli_option options[] = {
        {"model", CLI_NEEDED, &a->model, 0, 0, NULL, "DIR",
         "output folder of `hfsad run` with personal: groups;\n"
         "required"},
        {"data", CLI_NEEDED, &a->data, 0, 0, NULL, "FILE",
         "rows of the clients with y, in the format of a spec's\n"
         "data; required"},
    };
    const cli_syntax syntax = {
        .usage = "assign --model DIR --data FILE",
        .about = "Finds the group of every client in FILE, without training.",
        .options = options,
        .n_options = sizeof options / sizeof *options,
        .after = "The CSV has the columns node (the client), group (that of the largest weight,\n"
                 "counted from 1), p1 ... (the weights of all groups) and w1 ... (the client's\n"
                 "model: the groups' models by these weights), the intercept last.\n\n"
                 "Exit status: 0 done, 2 the model, data or arguments are wrong.",
    };
    return cli_parse(&syntax, argc, argv, NULL);
}

static bool write_text(void *context, const char *text, size_t length, size_t done, size_t rows)
{
    (void)context;
    (void)done;
    (void)rows;
    return fwrite(text, 1, length, stdout) == length;
}

static int assign_clients(const assign_arguments *a)
{
    hfsad_error err = {0};
    return hfsad_assign_table(a->model, a->data, write_text, NULL, &err) ? cli_fail(&err) : cli_finish_stdout(CLI_DONE);
}

int cmd_assign(int argc, char **argv)
{
    assign_arguments a = {0};
    const int status = parse_arguments(&a, argc, argv);
    return status == CLI_GO ? assign_clients(&a) : status;
}
