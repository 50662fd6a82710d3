/* The columns of a table, as the settings in a summary name them. */
#include "base/alloc.h"
#include "base/error.h"
#include "out/json.h"
#include "out/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool read_text(const cJSON *root, const char *key, const char **text)
{
    const cJSON *item = json_at(root, key);
    if (!cJSON_IsString(item))
        return true;
    *text = strdup(item->valuestring);
    return *text != NULL;
}

static hfsad_status read_means(table_settings *t, const cJSON *list, size_t features, hfsad_error *err)
{
    const size_t count = cJSON_IsArray(list) ? (size_t)cJSON_GetArraySize(list) : 0;
    if (!count)
        return HFSAD_OK;
    double *means = alloc_raw(features + count, sizeof *means);
    if (!means)
        return error_memory(err, (features + count) * sizeof *means, "the means");
    t->means = means;
    const cJSON *item;
    cJSON_ArrayForEach(item, list)
    {
        if (!cJSON_IsNumber(item) || !isfinite(item->valuedouble))
            return error_set(err, HFSAD_ERROR_INPUT, "settings.columns.means of the summary is not a list of numbers");
        *means++ = item->valuedouble;
    }
    while (means < t->means + features) /* the check of names refuses a table with more columns than the model */
        *means++ = 0;
    return HFSAD_OK;
}

hfsad_status model_read_columns(model *m, const void *root, hfsad_error *err)
{
    table_settings *t = &m->table;
    const cJSON *missing = json_at(root, "settings.columns.missing"), *edges = json_at(root, "settings.split.edges"),
                *seed = json_at(root, "settings.split.seed"), *features = json_at(root, "data.features");
    const struct {
        const char *key, **text;
    } texts[] = {
        {"settings.columns.y", &t->y},
        {"settings.columns.client", &t->client},
        {"settings.columns.edge", &t->edge},
        {"settings.columns.weight", &t->weight},
        {"settings.columns.features", &t->features},
        {"settings.columns.categorical", &t->categorical},
        {"settings.columns.labels", &t->labels},
        {"settings.split.by", &t->by},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (!read_text(root, texts[i].key, texts[i].text))
            return error_memory(err, 0, "the names of columns");
    t->missing = cJSON_IsString(missing) && !strcmp(missing->valuestring, "mean") ? MISSING_MEAN : MISSING_REFUSE;
    /* Rows dealt over clients do not name their client; clients named by a column are dealt over edges. */
    t->edges = t->by && cJSON_IsNumber(edges) && edges->valuedouble >= 0 ? (uint32_t)edges->valuedouble : 0;
    t->seed = cJSON_IsNumber(seed) && seed->valuedouble >= 0 ? (uint64_t)seed->valuedouble : 1;
    return read_means(t, json_at(root, "settings.columns.means"),
                      cJSON_IsNumber(features) && features->valuedouble > 0 ? (size_t)features->valuedouble : 0, err);
}

void model_free_columns(model *m)
{
    const char *const texts[] = {m->table.y,        m->table.client,      m->table.edge,   m->table.weight,
                                 m->table.features, m->table.categorical, m->table.labels, m->table.by};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        free((void *)(uintptr_t)texts[i]);
    free((void *)(uintptr_t)m->table.means);
    m->table = (table_settings){0};
}
