/* Writes the groups of clients that were not in the training, found from their rows, as CSV. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/format_number.h"
#include "out/group_models.h"

#include <stdio.h>
#include <stdlib.h>

enum { NAME_SIZE = (HFSAD_TIERS_MAX + 1) * 256 };

static void put_numbers(FILE *o, const double *v, size_t count)
{
    char text[1 + NUMBER_SIZE] = ",";
    for (size_t i = 0; i < count; i++)
        fwrite(text, 1, 1 + number_write(text + 1, v[i]), o);
}

static void print_all(FILE *o, const scoring *s, const group_models *g, double *room)
{
    const size_t M = model_width(s->model), K = g->m.K;
    double *w = room, *scratch = w + M, p[MIXTURE_MOST];
    char name[NAME_SIZE];
    fprintf(o, "node,group");
    for (size_t k = 0; k < K; k++)
        fprintf(o, ",p%zu", k + 1);
    for (size_t m = 0; m < s->model->F; m++)
        fprintf(o, ",w%zu", m + 1);
    fputs(s->model->intercept ? ",intercept\n" : "\n", o);
    for (size_t leaf = 0; leaf < s->data->n_leaves; leaf++) {
        group_models_assign(g, s, leaf, scratch, p, w);
        dataset_leaf_name(s->data, leaf, name, sizeof name);
        fprintf(o, "%s,%zu", name, mixture_largest(p, K) + 1);
        put_numbers(o, p, K);
        put_numbers(o, w, M);
        fputc('\n', o);
    }
}

hfsad_status hfsad_assign_table(const char *folder, const char *data, hfsad_put *put, void *context, hfsad_error *err)
{
    scoring s;
    group_models g = {0};
    char *text = NULL;
    size_t size = 0;
    hfsad_status status = scoring_create(&s, folder, data, WITH_CLOUD, err);
    if (status)
        return status;
    const size_t M = model_width(s.model);
    double *room = alloc_zero(M + mixture_scratch(M), sizeof *room);
    status = room ? group_models_read(&g, &s, err) : error_memory(err, M * sizeof *room, "a model");
    if (!status && !scoring_has_y(&s))
        status =
            error_set(err, HFSAD_ERROR_INPUT, "%.300s has no y; a client's group is found from its rows with y", data);
    FILE *o = status ? NULL : open_memstream(&text, &size);
    if (o)
        print_all(o, &s, &g, room);
    if (!status && (!o || fclose(o) != 0))
        status = error_memory(err, size, "the groups");
    if (!status)
        (void)put(context, text, size, s.data->n_rows, s.data->n_rows);
    free(text);
    group_models_free(&g);
    scoring_free(&s);
    free(room);
    return status;
}
