/* What a result reads from summary.json besides its model; see result.h. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/read_file.h"
#include "out/json.h"
#include "out/result.h"
#include "spec/table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static hfsad_status take(hfsad_spec *spec, const char *key, const cJSON *item, hfsad_error *err)
{
    if (cJSON_IsBool(item))
        return hfsad_spec_set_flag(spec, key, cJSON_IsTrue(item), err);
    if (cJSON_IsNumber(item))
        return hfsad_spec_set_real(spec, key, item->valuedouble, err);
    return cJSON_IsString(item) ? hfsad_spec_set_text(spec, key, item->valuestring, err) : HFSAD_OK;
}

/* JSON is YAML, except for a lifted box: "none" in quotes would be text. */
static hfsad_status take_overrides(hfsad_spec *spec, const cJSON *list, hfsad_error *err)
{
    char *text = cJSON_GetArraySize(list) ? cJSON_PrintUnformatted(list) : NULL;
    if (!text)
        return cJSON_GetArraySize(list) ? error_memory(err, 0, "overrides") : HFSAD_OK;
    for (char *at = text; (at = strstr(at, "\"box\":\"none\""));)
        memcpy(at, "\"box\": none ", sizeof "\"box\": none " - 1);
    const hfsad_status status = hfsad_spec_set(spec, "overrides", text, err);
    cJSON_free(text);
    return status;
}

static hfsad_status fill_settings(hfsad_spec *spec, const cJSON *settings, hfsad_error *err)
{
    hfsad_status status = HFSAD_OK;
    setting_at at;
    for (size_t i = 0; settings_at(&spec_schema, i, &at) && !status; i++)
        status = take(spec, at.key, json_at(settings, at.key), err);
    return status ? status : take_overrides(spec, json_at(settings, "overrides"), err);
}

static hfsad_status read_stop(hfsad_result *r, const char *path, const cJSON *item, hfsad_error *err)
{
    for (hfsad_stop stop = HFSAD_STOP_RUNNING; stop <= HFSAD_STOP_DIVERGED && cJSON_IsString(item); stop++)
        if (!strcmp(hfsad_stop_name(stop), item->valuestring)) {
            r->stop = stop;
            return HFSAD_OK;
        }
    return error_set(err, HFSAD_ERROR_INPUT, "%.300s: \"stopped\" has an unknown value; run hfsad run again", path);
}

/* Older summaries have no verdict: the verdict is then unknown. */
static void read_verdict(hfsad_verdict *v, const cJSON *root)
{
    const cJSON *converged = json_at(root, "converged"), *text = json_at(root, "verdict"),
                *gap = json_at(root, "polish.gap");
    v->kind = !cJSON_IsBool(converged)  ? HFSAD_VERDICT_UNKNOWN
              : cJSON_IsTrue(converged) ? HFSAD_VERDICT_CONVERGED
                                        : HFSAD_VERDICT_NOT_CONVERGED;
    v->gap = v->kind != HFSAD_VERDICT_UNKNOWN && cJSON_IsNumber(gap) ? gap->valuedouble : NAN;
    snprintf(v->text, sizeof v->text, "%s", cJSON_IsString(text) ? text->valuestring : "not known");
}

static hfsad_status read_errors(hfsad_result *r, const cJSON *list, hfsad_error *err)
{
    const size_t width = model_width(r->model);
    if (!cJSON_IsArray(list) || (size_t)cJSON_GetArraySize(list) != width)
        return HFSAD_OK;
    double *to = r->errors = alloc_raw(width, sizeof *r->errors);
    if (!to)
        return error_memory(err, width * sizeof *r->errors, "the standard errors");
    const cJSON *item;
    cJSON_ArrayForEach(item, list)
    {
        *to++ = cJSON_IsNumber(item) ? item->valuedouble : NAN;
    }
    return HFSAD_OK;
}

hfsad_status result_read_summary(hfsad_result *r, const char *folder, hfsad_error *err)
{
    char *path = path_join(folder, "summary.json"), *text = NULL;
    size_t size;
    if (!path)
        return error_memory(err, strlen(folder), "a file name");
    cJSON *root = file_read(path, SIZE_MAX, &text, &size) ? NULL : cJSON_Parse(text);
    const cJSON *settings = json_at(root, "settings");
    hfsad_status status = settings
                              ? read_stop(r, path, json_at(root, "stopped"), err)
                              : error_set(err, HFSAD_ERROR_INPUT, "%.300s has no settings; run hfsad run again", path);
    if (!status)
        status = hfsad_spec_create(&r->settings, err);
    if (!status)
        status = fill_settings(r->settings, settings, err);
    const cJSON *algorithm = json_at(root, "algorithm");
    snprintf(r->algorithm, sizeof r->algorithm, "%s",
             cJSON_IsString(algorithm) ? algorithm->valuestring : "hfsad"); /* older summaries name no algorithm */
    if (!status)
        status = read_errors(r, json_at(root, "standard_errors"), err);
    read_verdict(&r->verdict, root);
    cJSON_Delete(root);
    free(text);
    free(path);
    return status;
}
