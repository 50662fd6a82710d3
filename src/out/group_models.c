/* See group_models.h. */
#include "out/group_models.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/read_file.h"
#include "out/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* false: the groups are not in the form that a run writes. */
static bool read_groups(group_models *g, const cJSON *groups, size_t M)
{
    size_t k = 0;
    const cJSON *group, *v;
    double *share = g->room, *w = g->room + g->m.K;
    cJSON_ArrayForEach(group, groups)
    {
        const cJSON *part = json_at(group, "share"), *numbers = json_at(group, "model");
        size_t m = 0;
        if (!cJSON_IsNumber(part) || !cJSON_IsArray(numbers) || (size_t)cJSON_GetArraySize(numbers) != M)
            return false;
        share[k] = part->valuedouble;
        cJSON_ArrayForEach(v, numbers)
        {
            if (!cJSON_IsNumber(v) || !isfinite(v->valuedouble))
                return false;
            w[k * M + m++] = v->valuedouble;
        }
        k++;
    }
    g->m.share = share;
    g->m.w = w;
    return true;
}

static hfsad_status read_root(group_models *g, const scoring *s, const cJSON *root, hfsad_error *err)
{
    const size_t M = model_width(s->model);
    const cJSON *groups = json_at(root, "groups"), *scale = json_at(root, "personal.scale");
    const int K = cJSON_IsArray(groups) ? cJSON_GetArraySize(groups) : 0;
    if (K < 1 || K > MIXTURE_MOST || !cJSON_IsNumber(scale) || !(scale->valuedouble > 0))
        return error_set(err, HFSAD_ERROR_INPUT,
                         "%.300s/summary.json has no groups; run hfsad run with personal: groups", s->folder);
    *g = (group_models){.m = {.K = (size_t)K, .T = scale->valuedouble}};
    g->room = alloc_zero((size_t)K * (M + 1), sizeof *g->room);
    if (!g->room)
        return error_memory(err, (size_t)K * M * sizeof *g->room, "the groups");
    if (read_groups(g, groups, M))
        return HFSAD_OK;
    group_models_free(g);
    return error_set(err, HFSAD_ERROR_INPUT, "%.300s/summary.json: \"groups\" is damaged; run hfsad run again",
                     s->folder);
}

hfsad_status group_models_read(group_models *g, const scoring *s, hfsad_error *err)
{
    char *path = path_join(s->folder, "summary.json"), *text = NULL;
    size_t size;
    *g = (group_models){0};
    if (!path)
        return error_memory(err, strlen(s->folder), "a file name");
    cJSON *root = file_read(path, SIZE_MAX, &text, &size) ? NULL : cJSON_Parse(text);
    const hfsad_status status = read_root(g, s, root, err);
    cJSON_Delete(root);
    free(text);
    free(path);
    return status;
}

void group_models_free(group_models *g)
{
    free(g->room);
    *g = (group_models){0};
}

void group_models_assign(const group_models *g, const scoring *s, size_t leaf, double *scratch, double *p, double *w)
{
    const size_t M = model_width(s->model);
    const hfsad_loss loss = scoring_law(s, leaf).loss;
    mixture_client client = {.loss = &loss, .rows = dataset_rows(s->data, leaf), .M = M, .scratch = scratch};
    client.rows.constant = s->model->intercept ? 1 : 0;
    mixture_weights(&client, &g->m, p);
    mixture_model(&g->m, M, p, w);
}
