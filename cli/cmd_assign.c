/* hfsad assign: the groups of clients that were not in the training, by their rows. */
#include "base/error.h"
#include "base/format_number.h"
#include "cli.h"
#include "out/group_models.h"

#include <stdio.h>
#include <stdlib.h>

enum { NAME_SIZE = (HFSAD_TIERS_MAX + 1) * 256 };

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

static void put_numbers(const double *v, size_t count)
{
    char text[1 + NUMBER_SIZE] = ",";
    for (size_t i = 0; i < count; i++)
        fwrite(text, 1, 1 + number_write(text + 1, v[i]), stdout);
}

static void print_all(const scoring *s, const group_models *g, double *room)
{
    const size_t M = model_width(s->model), K = g->m.K;
    double *w = room, *scratch = w + M, p[MIXTURE_MOST];
    char name[NAME_SIZE];
    printf("node,group");
    for (size_t k = 0; k < K; k++)
        printf(",p%zu", k + 1);
    for (size_t m = 0; m < s->model->F; m++)
        printf(",w%zu", m + 1);
    puts(s->model->intercept ? ",intercept" : "");
    for (size_t leaf = 0; leaf < s->data->n_leaves; leaf++) {
        size_t best = 0;
        group_models_assign(g, s, leaf, scratch, p, w);
        for (size_t k = 1; k < K; k++)
            best = p[k] > p[best] ? k : best;
        dataset_leaf_name(s->data, leaf, name, sizeof name);
        printf("%s,%zu", name, best + 1);
        put_numbers(p, K);
        put_numbers(w, M);
        putchar('\n');
    }
}

static int carry_out(const assign_arguments *a)
{
    hfsad_error err = {0};
    scoring s;
    group_models g = {0};
    if (scoring_create(&s, a->model, a->data, WITH_CLOUD, &err))
        return cli_fail(&err);
    const size_t M = model_width(s.model);
    double *room = calloc(M + mixture_scratch(M), sizeof *room);
    hfsad_status status = room ? group_models_read(&g, &s, &err) : error_memory(&err, M * sizeof *room, "a model");
    if (!status && !scoring_has_y(&s))
        status = error_set(&err, HFSAD_ERROR_INPUT, "%.300s has no y; a group is found by rows with y", a->data);
    if (!status)
        print_all(&s, &g, room);
    group_models_free(&g);
    scoring_free(&s);
    free(room);
    return status ? cli_fail(&err) : cli_finish_stdout(CLI_DONE);
}

int cmd_assign(int argc, char **argv)
{
    assign_arguments a = {0};
    const int status = parse_arguments(&a, argc, argv);
    return status == CLI_GO ? carry_out(&a) : status;
}
